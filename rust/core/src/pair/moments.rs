//! Moments of the likelihood ratio, which are Rényi divergences: what all profiles share, and the bound from a profile.
//!
//! The divergence of order a > 1 of a pair is D_a(P‖Q) = ln E_Q[(P/Q)^a]/(a − 1), in nats. It is a mean of a convex function
//! of P/Q, so a pair that dominates another one has the larger divergence; and divergences of rounds that may depend on the
//! outcomes of earlier rounds add (Mironov 2017, arXiv:1702.07476, Proposition 1). (a − 1)D_a is convex in a, as the logarithm
//! of a moment generating function of the loss, and 0 at a = 1: where a formula holds for whole orders, a chord between two of
//! them is a bound in between. Pairs with a formula have it in their files; all others are integrated.
//!
//! **From a profile.** For f(t) = t^a and a pair with E_Q[P/Q] = 1, f(1) = 1 and
//!
//! `E_Q[(P/Q)^a] = 1 + ∫_0^1 f″(t) E_Q[(t − P/Q)₊] dt + ∫_1^∞ f″(t) E_Q[(P/Q − t)₊] dt`,
//!
//! with E_Q[(P/Q − t)₊] = H_t(P‖Q) and E_Q[(t − P/Q)₊] = H_t − 1 + t. Both are convex in t, so the chords between nodes t_i =
//! e^{x_i} of upper bounds on H are bounds as well (the functional increases with H, as f″ > 0). Summed by parts, the
//! integral of the chords is Σ_i g_i·(S_i − S_{i−1}), where g_i is the bound at a node and S_i = (f(t_{i+1}) − f(t_i))/(t_{i+1} −
//! t_i) increases with i, so all terms are positive. At the first node, with the chord from (0, 0), it is g_0·(S_0 −
//! t_0^{a−1}); at the last one g_N·(a·t_N^{a−1} − S_{N−1}). Beyond the last node either the loss is over, or a Gaussian pair
//! with a shift c has no smaller profile there ([`Profile::dominating_shift`]), and then ∫_{t_N}^∞ f″ g ≤ E_Q[L^a; L > t_N] =
//! e^{a(a−1)c²/2}·Φ(ac − c/2 − x_N/c), and no H_t at a node with x ≥ 0 is above that of the Gaussian pair.
//!
//! **Rounding.** ln S_i is off by a few units of its terms, and the difference of two of them is raised by as much. All terms
//! are positive, and their logarithms are raised by more than their rounding, so every result is an upper bound.

use rayon::prelude::*;

use crate::error::{domain, Result};
use crate::exact::{decimal, Enclosure, Rational};
use crate::pair::Profile;
use crate::run::Run;
use crate::special::{mills_series, upper_tail, UNIT_ROUNDOFF};

/// Relative and absolute margins for the rounding of logarithms and exponentials, and of sums of them.
pub(super) const RELATIVE: f64 = 512.0 * UNIT_ROUNDOFF;
pub(super) const ABSOLUTE: f64 = 32.0 * UNIT_ROUNDOFF;

/// The spacing of nodes, times the order, and relative to the distance from 0 or to the usual loss; the relative error of E
/// − 1 is about an eighth of its square.
const SPACING: f64 = 0.03;
const FINE: f64 = 0.02;
/// About the most nodes on each side; more make the spacing larger, and the bound looser.
const MOST_NODES: f64 = 20_000.0;
/// The least usual loss.
const USUAL: f64 = 1e-6;
/// The logarithm of what is negligible beside 1.
const NEGLIGIBLE: f64 = 30.0;
/// −ln of the smallest probability of a shift that is looked for, and how often the profile is looked at for that.
const FAINTEST: f64 = 750.0;
const SAMPLES: u32 = 128;
/// How often the interval of the last node is halved, and how often the nodes may be too few.
const HALVINGS: usize = 20;
const PASSES: usize = 3;
/// An absolute margin for the logarithms of terms, a relative one, and an absolute one for H − 1 + t.
const OF_TERMS: f64 = 1e-8;
const OF_SUMS: f64 = 8192.0 * UNIT_ROUNDOFF;
const OF_VALUES: f64 = 4.0 * UNIT_ROUNDOFF;
/// Nodes that one task evaluates.
const PER_TASK: usize = 256;

/// Returns a shift in units of the noise, of a quotient that is off by a few units of rounding, rounded up.
pub(super) fn rounded_shift(shift: f64) -> f64 {
    shift * (1.0 + 8.0 * UNIT_ROUNDOFF)
}

/// Returns an upper bound on the Rényi divergence D_a(P‖Q) of a profile's direction, in nats; `None` if none is known.
///
/// * Units: the order a > 1, taken as its decimal.
/// * Guarantee: at least D_a of every pair that the profile bounds; exactly D_a, or the bound that is used in its place, where
///   [`Profile::exact_divergence`] knows it.
///
/// # Errors
/// [`Error::Domain`] for an order that is not above 1 and finite; as [`Run::check`].
pub fn divergence(profile: &dyn Profile, order: f64, run: &Run) -> Result<Option<Rational>> {
    if !(order > 1.0 && order.is_finite()) {
        return domain("order", order, "greater than 1 and finite");
    }
    if let Some(exact) = profile.exact_divergence(order) {
        return Ok(Some(exact));
    }
    let moment = profile.log_moment(order, run)?.and_then(|moment| Rational::from_float(moment.max(0.0)));
    Ok(moment.map(|moment| moment / (decimal(order) - Rational::from_integer(1.into()))))
}

/// Returns (a − 1)·D_a for a divergence that is known exactly, rounded up.
pub(super) fn of_divergence(divergence: Rational, order: f64) -> f64 {
    Enclosure::exactly(divergence * (decimal(order) - Rational::from_integer(1.into()))).doubles().1
}

/// Returns an upper bound on ln E_Q[(P/Q)^a] by the integral of the profile; `None` if its tail is not known.
///
/// # Errors
/// As [`Run::check`].
pub(super) fn integrated<P: Profile + ?Sized>(profile: &P, order: f64, run: &Run) -> Result<Option<f64>> {
    let largest = profile.exact_largest_loss().map(|loss| loss.doubles().1).filter(|loss| loss.is_finite());
    let Some(end) = largest.map(|_| None).or_else(|| profile.dominating_shift().map(Some)) else { return Ok(None) };
    // The distance of the two laws is half of the mean size of L − 1.
    let usual = profile.bounds(0.0).1.max(USUAL);
    let (mut last, mut total) = (0.0, f64::NEG_INFINITY);
    let mut floor = 2.0 * usual.ln() + (order * (order - 1.0)).ln();
    if let Some(shift) = end {
        floor = floor.max(at_least(profile, order, farthest(order, shift)));
    }
    for _ in 0..PASSES {
        let next = largest.unwrap_or_else(|| end.map_or(0.0, |shift| reach(order, shift, floor - NEGLIGIBLE)));
        if next <= last {
            break;
        }
        last = next;
        let within = to(profile, order, usual, (last, end), run)?;
        let beyond = end.map_or(f64::NEG_INFINITY, |shift| log_beyond(order, shift, last));
        total = log_sum(&[within, beyond]);
        if beyond <= within - NEGLIGIBLE / 2.0 {
            break;
        }
        floor = within;
    }
    if let Some(shift) = end.filter(|_| order * last > MOST_NODES) {
        // Where nodes are too far from each other, the Gaussian pair alone may be the better bound for t ≥ 1.
        let below = to(profile, order, usual, (0.0, end), run)?;
        total = total.min(log_sum(&[below, log_beyond(order, shift, 0.0)]));
    }
    if total == f64::NEG_INFINITY {
        return Ok(Some(0.0));
    }
    Ok(Some(shifted(total + OF_TERMS + OF_SUMS * total.abs()) * (1.0 + OF_SUMS)))
}

/// Returns ln of the integral of f″ times the chords up to the loss `last`, where the loss ends if there is no shift.
fn to<P: Profile + ?Sized>(
    profile: &P,
    order: f64,
    usual: f64,
    (last, shift): (f64, Option<f64>),
    run: &Run,
) -> Result<f64> {
    let mut all: Vec<f64> = nodes(NEGLIGIBLE / order, order, usual).iter().rev().map(|x| -x).collect();
    all.pop();
    all.extend(nodes(last, order, usual));
    let values = all.par_chunks(PER_TASK).map(|some| {
        run.check()?;
        Ok(some.iter().map(|&x| log_value(profile, x, shift)).collect::<Vec<f64>>())
    });
    let values: Vec<f64> = values.collect::<Result<Vec<_>>>()?.concat();
    let mut terms = Vec::with_capacity(all.len());
    let mut lower = (order - 1.0) * all[0];
    for (index, (&x, value)) in all.iter().zip(values).enumerate() {
        let base = (order - 1.0) * x;
        let upper = match all.get(index + 1) {
            Some(next) => base + slope(order, next - x),
            None if shift.is_some() => base + order.ln(),
            // The loss is over, and the value 0.
            None => break,
        };
        // The logarithms of both slopes are off by a few units of their terms.
        let error = 16.0 * UNIT_ROUNDOFF * (1.0 + order.ln() + base.abs() + upper.abs() + lower.abs());
        if value > f64::NEG_INFINITY {
            terms.push(upper + (-(lower - upper - error).exp_m1()).max(0.0).ln() + value);
        }
        lower = upper;
    }
    Ok(log_sum(&terms))
}

/// Returns an upper bound on ln H_t at x = ln t ≥ 0, and on ln(H_t − 1 + t) at x < 0.
fn log_value<P: Profile + ?Sized>(profile: &P, x: f64, shift: Option<f64>) -> f64 {
    let most = profile.bounds(x).1;
    if x < 0.0 {
        return x.exp().min(most + x.exp_m1() + OF_VALUES).max(0.0).ln();
    }
    // Far away the Gaussian pair is a better bound than a value with an absolute error.
    shift.map_or(f64::INFINITY, |c| log_gaussian(x / c - c / 2.0, c)).min(most.ln())
}

/// Returns an upper bound on ln H_t of a Gaussian pair with the shift c at ln t = cd + c²/2.
///
/// With the Mills ratio M, H_t = φ(d)(M(d) − M(d + c)). For d > 0, M′ = dM − 1 and M(d) ≥ d/(1 + d²) (Gordon 1941), and M is
/// convex, so the difference is at most c/(1 + d²).
fn log_gaussian(d: f64, c: f64) -> f64 {
    let tail = log_tail(d);
    if d <= 0.0 {
        return tail;
    }
    let density = -0.5 * (d * d + (2.0 * std::f64::consts::PI).ln());
    tail.min(density + (c / (1.0 + d * d)).ln() + OF_SUMS * (1.0 + d * d))
}

/// Returns an upper bound on ln E_Q[L^a; ln L > x] for a pair that a Gaussian pair with this shift dominates there.
fn log_beyond(order: f64, shift: f64, x: f64) -> f64 {
    order * (order - 1.0) * shift * shift / 2.0 + log_tail(x / shift + shift / 2.0 - order * shift)
}

/// Returns the largest loss that may count for a shift, however rare it is among doubles.
fn farthest(order: f64, shift: f64) -> f64 {
    shift * (order * shift + (2.0 * order * FAINTEST).sqrt())
}

/// Returns about ln E_Q[L^a] from some losses, since it is at least t^{a−1}·H_t for every t; it only decides where nodes end.
fn at_least<P: Profile + ?Sized>(profile: &P, order: f64, most: f64) -> f64 {
    let each = (1..=SAMPLES).map(|k| most * f64::from(k) / f64::from(SAMPLES)).filter(|x| order * x >= 1.0);
    each.map(|x| (order - 1.0) * x + (order - 1.0).ln().min(0.0) + profile.bounds(x).0.ln())
        .fold(f64::NEG_INFINITY, f64::max)
}

/// Returns the loss from which on the Gaussian pair has no more than e^`negligible`.
fn reach(order: f64, shift: f64, negligible: f64) -> f64 {
    let (mut low, mut high) = (0.0, farthest(order, shift));
    for _ in 0..HALVINGS {
        let middle = 0.5 * (low + high);
        if log_beyond(order, shift, middle) <= negligible {
            high = middle;
        } else {
            low = middle;
        }
    }
    high
}

/// Returns nodes from 0 to `last`, closer to one another near 0, where small losses are.
fn nodes(last: f64, order: f64, usual: f64) -> Vec<f64> {
    let most = (last / MOST_NODES).max(SPACING / order);
    let (mut nodes, mut x) = (vec![0.0], 0.0_f64);
    while x < last {
        x += most.min(FINE * usual.max(x));
        nodes.push(x);
    }
    nodes
}

/// Returns ln[(e^{aw} − 1)/(e^w − 1)] for a width w > 0.
fn slope(order: f64, width: f64) -> f64 {
    if order * width < 1.0 {
        ((order * width).exp_m1() / width.exp_m1()).ln()
    } else {
        log_expm1(order * width) - log_expm1(width)
    }
}

/// Returns an upper bound on ln Pr[N(0, 1) > x].
fn log_tail(x: f64) -> f64 {
    if x < 30.0 {
        let tail = upper_tail(x, 0.0);
        return (tail.value + tail.error).ln() + ABSOLUTE;
    }
    -x * x / 2.0 + mills_series(x).ln() + OF_SUMS
}

/// Returns ln Σ e^x; −∞ for an empty sum. The sum is off by two units of rounding, whatever the number of terms is.
pub(super) fn log_sum(terms: &[f64]) -> f64 {
    // `f64::max` would ignore a NaN.
    let largest = terms.iter().fold(f64::NEG_INFINITY, |a, &b| if a.is_nan() || a > b { a } else { b });
    if !largest.is_finite() {
        return largest;
    }
    let (mut sum, mut lost) = (0.0_f64, 0.0_f64);
    for term in terms {
        let part = (term - largest).exp();
        let next = sum + part;
        lost += if sum >= part { (sum - next) + part } else { (part - next) + sum };
        sum = next;
    }
    largest + (sum + lost).ln()
}

/// Returns ln(1 + e^x).
pub(super) fn shifted(x: f64) -> f64 {
    if x > 0.0 {
        x + (-x).exp().ln_1p()
    } else {
        x.exp().ln_1p()
    }
}

/// Returns ln(e^x − 1) for x ≥ 0; −∞ at 0.
pub(super) fn log_expm1(x: f64) -> f64 {
    if x <= 0.0 {
        f64::NEG_INFINITY
    } else if x < 1.0 {
        x.exp_m1().ln()
    } else {
        x + (-(-x).exp()).ln_1p()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pair::discrete::DiscretePair;
    use crate::pair::gaussian::GaussianPair;
    use crate::pair::laplace::Laplace;
    use crate::pair::mixture::MixturePair;
    use crate::pair::tabulated::Tabulated;

    const ORDERS: [f64; 6] = [1.1, 1.5, 2.0, 2.5, 8.0, 30.0];

    fn integral(profile: &dyn Profile, order: f64) -> f64 {
        integrated(profile, order, &Run::default()).unwrap().unwrap()
    }

    #[test]
    fn integrals_are_above_the_exact_moments_and_near_them() {
        for a in ORDERS {
            for shift in [1e-3, 0.1, 1.0, 3.0] {
                let (found, exact) =
                    (integral(&GaussianPair::new(shift, 1.0).unwrap(), a), a * (a - 1.0) * shift * shift / 2.0);
                assert!(found >= exact && found <= exact * (1.0 + 3e-4), "{a} {shift} {found} {exact}");
            }
            let outcomes = [(0.5, 0.2), (0.3, 0.3), (0.2, 0.5)];
            let exact = outcomes.iter().map(|&(p, q): &(f64, f64)| p.powf(a) * q.powf(1.0 - a)).sum::<f64>().ln();
            let pair = DiscretePair::new(outcomes.to_vec()).unwrap();
            let found = integral(&pair, a);
            assert!(found >= exact && found <= exact * (1.0 + 3e-4), "{a} {found} {exact}");
            // The sum over the outcomes is the same, and so is its divergence.
            let sum = pair.log_moment(a, &Run::default()).unwrap().unwrap();
            assert!(sum >= exact * (1.0 - 1e-14) && sum <= exact * (1.0 + 1e-10) + 1e-13, "{a} {sum} {exact}");
            // The moment of Laplace noise, by quadrature with the kinks as borders.
            let (theta, step) = (0.7_f64, 1e-3);
            let of_noise: f64 = (-60_000..60_700)
                .map(|k| (f64::from(k) + 0.5) * step)
                .map(|y| 0.5 * step * (-y.abs() + (a - 1.0) * ((y - theta).abs() - y.abs())).exp())
                .sum();
            let laplace = Laplace::new(theta, 1.0).unwrap();
            for found in [integral(&laplace, a), laplace.log_moment(a, &Run::default()).unwrap().unwrap()] {
                let exact = of_noise.ln();
                assert!(found >= exact * (1.0 - 1e-5) && found <= exact * (1.0 + 4e-4), "{a} {found} {exact}");
            }
        }
    }

    #[test]
    fn the_largest_shift_dominates_a_mixture_however_rare_it_is() {
        // E_Q[(Σ_j w_j e^{s_j y − s_j²/2})²] = Σ_{jk} w_j w_k e^{s_j s_k}.
        for rare in [1e-2, 1e-9, 1e-30, 1e-100] {
            let weighted = [(1.0 - rare, 0.1), (rare, 5.0)];
            let pair = MixturePair::weighted(&weighted, 1.0).unwrap();
            let all = weighted.iter().flat_map(|one| weighted.iter().map(move |other| (one, other)));
            let exact: f64 = all.map(|(one, other)| one.0 * other.0 * (one.1 * other.1).exp_m1()).sum::<f64>().ln_1p();
            let found = integral(&pair, 2.0);
            assert!(found >= exact && found <= exact * (1.0 + 3e-4), "{rare} {found} {exact}");
            assert!(pair.dominating_shift().unwrap() >= 5.0 && pair.dominating_shift().unwrap() <= 5.0 + 1e-12);
        }
    }

    #[test]
    fn divergences_are_refused_or_unknown_where_there_are_none() {
        let run = Run::default();
        let gaussian = GaussianPair::new(1.0, 1.0).unwrap();
        for order in [1.0, 0.5, f64::NAN, f64::INFINITY] {
            assert!(divergence(&gaussian, order, &run).is_err());
        }
        assert_eq!(divergence(&gaussian, 2.5, &run).unwrap(), Some(decimal(1.25)));
        // An infinite loss has no moments.
        let failing = Tabulated::guarantees(&[(1.0, 1e-6)]).unwrap();
        assert!(divergence(&failing, 2.0, &run).unwrap().is_none());
        run.cancel();
        assert!(integrated(&gaussian, 2.0, &run).is_err());
    }

    #[test]
    fn sums_of_logarithms_keep_all_their_terms() {
        let many: Vec<f64> = (0..200_000).map(|_| -20.0).chain([0.0]).collect();
        let exact = (200_000.0 * (-20.0_f64).exp()).ln_1p();
        assert!((log_sum(&many) - exact).abs() < 4.0 * UNIT_ROUNDOFF && log_sum(&[]) == f64::NEG_INFINITY);
        for x in [1e-300, 1e-9, 0.5, 1.0, 30.0, 800.0] {
            let back = shifted(log_expm1(x));
            assert!((back - x).abs() <= 4.0 * UNIT_ROUNDOFF * x.max(1e-3), "{x} {back}");
        }
    }
}
