//! What follows for a pair from the largest losses of both directions alone: pure differential privacy.
//!
//! If no loss of (P, Q) and none of (Q, P) is above ε, the pair of randomised response dominates: P has e^ε/(1 + e^ε) at the
//! loss ε and the rest at −ε, and Q the same exchanged (Kairouz, Oh & Viswanath 2015, arXiv:1311.0776, Theorem 3.4).
//!
//! * Its moments are E_Q[(P/Q)^a] = (e^{aε} + e^{(1−a)ε})/(1 + e^ε) = 1 + (e^{(a−1)ε} − 1)(1 − e^{−aε})/(1 + e^{−ε}).
//! * D_a ≤ aε·tanh(ε/2) for every a > 1, which is at most aε²/2 (the latter is Bun & Steinke 2016, arXiv:1605.02065, Proposition
//!   1.4). *Proof.* With c = ε/2 and w = (2a − 1)², the moment is cosh(c√w)/cosh(c), and a(a − 1) = (w − 1)/4. F(w) = ln
//!   cosh(c√w) is concave, since F′(w) = c·tanh(c√w)/2√w and tanh(x)/x falls. So D_a/a = 4(F(w) − F(1))/(w − 1) ≤ 4F′(1) = 2c·tanh(c).
//!   It is the limit for a → 1, so nothing smaller holds for every a. ∎
//! * Its trade-off function consists of the straight lines from (0, 1) to (c, c) to (1, 0), c = 1/(1 + e^ε) (Dong, Roth & Su
//!   2022, Proposition 2.5). That of N(μ, 1) against N(0, 1) is convex, has the same ends, and passes through (c, c) for
//!   Φ(−μ/2) = c; so it is below both lines, and the Gaussian pair with this or a larger μ dominates.

use crate::exact::{Enclosure, Rational};
use crate::pair::moments::{log_expm1, shifted, RELATIVE};
use crate::pair::{Profile, Reversal};
use crate::special::{upper_tail, UNIT_ROUNDOFF};

/// The smallest tail for which a μ is searched.
const SMALLEST: f64 = 1e-300;
/// A bound on the relative error of erf and of the few operations beside it.
const OF_ERF: f64 = 8192.0 * UNIT_ROUNDOFF;
/// Below this distance of the corner from ½ the condition is that of erf.
const NEAR: f64 = 0.46;
/// More than the halvings of an interval that begins at 0, for the precision of [`RELATIVE`].
const MOST_HALVINGS: usize = 128;

/// Returns the larger one of the largest losses of both directions, or an upper bound on it; `None` unless both are known.
pub(super) fn largest_loss_of_both<P: Profile + ?Sized>(profile: &P) -> Option<Rational> {
    let one = profile.exact_largest_loss()?.at_most;
    match profile.reversal() {
        Reversal::Same => Some(one),
        Reversal::Other(other) => Some(one.max(other.exact_largest_loss()?.at_most)),
        Reversal::Unknown => None,
    }
}

/// Returns an upper bound on ln E_Q[(P/Q)^a] for losses of at most ε in both directions.
pub fn log_moment(epsilon: f64, a: f64) -> f64 {
    if epsilon <= 0.0 {
        return 0.0;
    }
    let excess = log_expm1((a - 1.0) * epsilon) + (-(-a * epsilon).exp_m1()).ln() - (-epsilon).exp().ln_1p();
    shifted(excess) * (1.0 + RELATIVE)
}

/// Returns ε·tanh(ε/2), rounded up, a ρ with D_a ≤ aρ for every order a > 1 for losses of at most ε in both directions.
pub fn concentration(epsilon: &Rational) -> Rational {
    let most = Enclosure::exactly(epsilon.clone()).doubles().1;
    let square = epsilon * epsilon / Rational::from_integer(2.into());
    let exact = Rational::from_float(most * (most / 2.0).tanh() * (1.0 + 8.0 * UNIT_ROUNDOFF));
    exact.map_or(square.clone(), |exact| exact.min(square))
}

/// Returns μ² for a μ such that the pair N(μ, 1) against N(0, 1) dominates all whose losses are at most ε in both directions.
///
/// μ is rounded up: Φ(−μ/2) ≤ 1/(1 + e^ε). It is about √(π/2)·ε for small ε. `None` where the tail is beyond the doubles, from
/// about ε = 690 on.
pub fn gaussian_square(epsilon: f64) -> Option<Rational> {
    // 1/(1 + e^ε) and (e^ε − 1)/(e^ε + 1).
    let corner = (-epsilon).exp() / (1.0 + (-epsilon).exp());
    square_through(corner, (epsilon / 2.0).tanh())
}

/// Returns μ² for the least μ with Φ(−μ/2) ≤ c, rounded up: the trade-off function of the pair passes through (c, c) or below.
///
/// `corner` is c and `distance` is 1 − 2c, which keeps its digits where c is near ½; both are known to a few units of rounding.
pub(super) fn square_through(corner: f64, distance: f64) -> Option<Rational> {
    let mu = Rational::from_float(gaussian(corner, distance)?)?;
    Some(&mu * &mu)
}

/// Returns the μ of [`square_through`].
fn gaussian(corner: f64, distance: f64) -> Option<f64> {
    if distance <= 0.0 {
        return Some(0.0);
    }
    let tail = corner * (1.0 - 8.0 * UNIT_ROUNDOFF);
    let distance = distance * (1.0 + OF_ERF);
    if tail.is_nan() || tail < SMALLEST {
        return None;
    }
    let enough = |mu: f64| {
        if distance < NEAR {
            // The same condition is 2Φ(μ/2) − 1 ≥ 1 − 2c.
            libm::erf(mu / 8.0_f64.sqrt()) * (1.0 - OF_ERF) >= distance
        } else {
            let above = upper_tail(mu / 2.0, 0.0);
            above.value + above.error <= tail
        }
    };
    // μ is about √(2π)(1 − 2c) for c near ½, and Φ(−μ/2) ≤ e^{−μ²/8} for all.
    let (mut low, mut high) = (0.0, if distance < NEAR { 4.0 * distance } else { (-8.0 * tail.ln()).sqrt() + 1.0 });
    if !enough(high) {
        return None;
    }
    for _ in 0..MOST_HALVINGS {
        if high - low <= RELATIVE * high {
            break;
        }
        let middle = 0.5 * (low + high);
        if enough(middle) {
            high = middle;
        } else {
            low = middle;
        }
    }
    Some(high)
}

#[cfg(test)]
mod tests {
    use num_traits::ToPrimitive;

    use super::*;
    use crate::exact::decimal;
    use crate::pair::gaussian::GaussianPair;

    #[test]
    fn moments_are_those_of_randomised_response() {
        for epsilon in [1e-6_f64, 1e-3, 0.7, 5.0] {
            let likely = 1.0 / (1.0 + (-epsilon).exp());
            let rare = 1.0 / (1.0 + epsilon.exp());
            for a in [1.1, 2.0, 8.0, 30.0] {
                let found = log_moment(epsilon, a);
                // 1 + Σ q((p/q)^a − 1 − a(p/q − 1)), whose terms are positive.
                let term = |p: f64, q: f64, loss: f64| q * ((a * loss).exp_m1() - a * (p - q) / q);
                let exact = (term(likely, rare, epsilon) + term(rare, likely, -epsilon)).ln_1p();
                let rounding = 1e-15 * (1.0 + a * epsilon) * (a * epsilon).exp();
                assert!(found >= exact * (1.0 - 1e-12) - rounding, "{epsilon} {a} {found} {exact}");
                assert!(found <= exact * (1.0 + 1e-12) + rounding, "{epsilon} {a} {found} {exact}");
                assert!(found <= a * (a - 1.0) * epsilon * epsilon / 2.0 * (1.0 + 1e-12));
            }
        }
        assert!(log_moment(0.0, 2.0).abs() < 1e-300 && log_moment(1e6, 64.0).is_finite());
        let rho = |epsilon: f64| concentration(&decimal(epsilon)).to_f64().unwrap();
        for epsilon in [1e-9_f64, 0.01, 0.3, 1.0, 7.0, 300.0] {
            let orders = (0..400).map(|k| 1.0 + 1e-6 * 1.06_f64.powi(k));
            let largest = orders.map(|a| log_moment(epsilon, a) / (a - 1.0) / a).fold(0.0, f64::max);
            assert!(rho(epsilon) >= largest * (1.0 - 1e-9), "{epsilon} {largest}");
            assert!(rho(epsilon) <= largest * (1.0 + 1e-4), "{epsilon} {largest}");
        }
        assert!((rho(1.0) - 0.462_117_157_260_009_8).abs() < 1e-15);
    }

    fn of_pure(epsilon: f64) -> Option<f64> {
        gaussian((-epsilon).exp() / (1.0 + (-epsilon).exp()), (epsilon / 2.0).tanh())
    }

    #[test]
    fn gaussian_pairs_dominate_randomised_response_and_hardly_more() {
        for epsilon in [1e-9_f64, 1e-3, 0.3, 0.999, 1.0, 2.0, 30.0, 300.0, 600.0] {
            let mu = of_pure(epsilon).unwrap();
            let profile = GaussianPair::new(mu, 1.0).unwrap();
            let likely = 1.0 / (1.0 + (-epsilon).exp());
            for share in [0.0, 0.3, 0.9, 0.999] {
                // p − e^x q at x = share·ε, as a product of positive terms.
                let x = share * epsilon;
                let delta = likely * -(x - epsilon).exp_m1();
                assert!(profile.bounds(x).1 >= delta * (1.0 - 1e-12), "{epsilon} {share}");
            }
            // Both touch at (c, c): Φ(−μ/2) is hardly below 1/(1 + e^ε).
            let nearer = upper_tail(mu * (1.0 - 1e-9) / 2.0, 0.0).value;
            assert!(nearer >= 1.0 / (1.0 + epsilon.exp()) * (1.0 - 1e-9 * (1.0 + mu * mu)), "{epsilon} {mu}");
        }
        assert_eq!(of_pure(0.0), Some(0.0));
        assert!(of_pure(700.0).is_none() && of_pure(f64::INFINITY).is_none() && of_pure(5e-324).is_some());
    }
}
