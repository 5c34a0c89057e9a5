//! An integer released with the discrete Gaussian noise of several parties, each of which adds its own.
//!
//! X is the sum of n independent variables with laws ∝ e^{−x²/2σ²} on the integers. It is not discrete Gaussian (Kairouz, Liu &
//! Steinke 2021). Its law is log-concave, as a convolution of log-concave laws, so [`LogConcave`](super::integers) has its profile.
//!
//! **The law.** With s² = nσ², Pr[X = k] ∝ Σ e^{−|z|²/2σ²} over all integer vectors z with the sum k. |z|² is k²/n and the square of
//! the distance of z from (k/n)(1, …, 1), so `Pr[X = k] ∝ e^{−k²/2s²} Θ(k)`. Adding 1 to every z_i moves k by n and keeps that
//! distance: Θ(k + n) = Θ(k) = Θ(n − k).
//!
//! * **Nearly constant Θ.** A further party makes Θ′(k) = Σ_j e^{−(j−c)²/2t²} Θ(j), t² = σ²n/(n + 1), c = kn/(n + 1): the weights
//!   multiply e^{−k²/2(n+1)σ²}. By Poisson summation, Σ_j e^{−(j−c)²/2t²} = t√(2π)(1 + 2Σ_{l ≥ 1} q^{l²} cos 2πlc), q = e^{−2π²t²},
//!   which is within the factors 1 ± ω of t√(2π), ω = 2q/(1 − q). So `ln Θ_max/Θ_min ≤ Σ_{m < n} ln((1 + ω_m)/(1 − ω_m))`. Kairouz,
//!   Liu & Steinke have a bound of this form. Where it is small, it is the error of ln Pr[X = k]/Pr[X = 0] = −k²/2s².
//! * **Otherwise** the laws are convolved, by doubling. All terms are positive, so a product of two laws has the sum of their
//!   relative errors and that of a sum of positive terms. Weights below a cut are dropped; their mass is bounded by a geometric
//!   series, and followed as an error in total variation. Weights that are not far above it are not used: beyond them there is the
//!   period of Θ, or if n is larger than the table, its end.
//!
//! **Divergences.** Let X be moved by d = qn + r, 0 ≤ r < n.
//!
//! * If r of the parties' noises are moved by q + 1 and the others by q, the sum is moved by d, and it is a function of all of them.
//!   So D_a ≤ a·(r(q + 1)² + (n − r)q²)/2σ²: divergences add, and a function does not increase them (Canonne, Kamath & Steinke 2020
//!   for one party). For r = 0 this is ad²/2s².
//! * D_a ≤ ad²/2s² + M, M = max ln Θ(x − d)/Θ(x): (a − 1)D_a is a(a − 1)d²/2s² + ln Σ_x e^{−(x−ad)²/2s²} Θ(x − d)^a Θ(x)^{1−a}/Z, the
//!   sum is at most e^{(a−1)M} Σ_x e^{−(x−ad)²/2s²} Θ(x − d)/Z, and with y = x − d and c = (a − 1)d the last sum is
//!   Σ_y e^{−(y−c)²/2s²} Θ(y) = (Σ_j e^{−(j−c/n)²/2σ²})^n over all vectors, which is Z for c = 0 and largest there, by Poisson
//!   summation.

use num_traits::Zero;

use crate::error::{domain, Result};
use crate::exact::{decimal, Rational};
use crate::pair::integers::{LogConcave, RESOLVED};
use crate::pair::{Profile, ProfilePoint, Reversal};
use crate::special::{real, UNIT_ROUNDOFF};

/// The σ of a party, the number of parties and the σ√n that are accepted, and the largest shift.
const SIGMAS: (f64, f64) = (0.1, 1e4);
const MOST_PARTIES: u64 = 1_000_000;
const MOST_SPREAD: f64 = 1e4;
const MOST_SHIFT: u64 = 1_000_000;
/// Laws are convolved unless ln Θ_max/Θ_min is below the first number; if σ√n is larger than the second, this bound must be
/// below the third, as it is for σ ≥ 1.5.
const CONSTANT: f64 = 1e-12;
const MOST_CONVOLVED: f64 = 1000.0;
const NEARLY_CONSTANT: f64 = 1e-8;
/// Weights below the first number are dropped, and those below the second not used, beside that of 0.
const DROPPED: f64 = 1e-290;
const USED: f64 = 1e-240;

/// The profile of a sum of discrete Gaussians moved by `shift` against the same noise, in both directions.
///
/// * Formula: at the head of this file and of `integers`.
/// * Units: shift and σ in units of the integers; σ is the parameter of one party.
/// * Guarantee: [`Profile::at_within`] returns values within their stated errors.
/// * Precision: relative to probabilities, 10⁻¹⁵ times the number of parties for σ below 1.5, otherwise 10⁻¹⁵ to 10⁻⁹.
/// * Source: Kairouz, Liu & Steinke 2021, arXiv:2102.06387, for the mechanism; the head of this file for the numbers.
#[derive(Debug, Clone)]
pub struct Parties {
    shift: f64,
    law: LogConcave,
    /// Both bounds on divergences: D_a ≤ a·`split`, and D_a ≤ a·`wide` + `spread` where the last is known.
    split: Rational,
    wide: Rational,
    spread: Option<Rational>,
}

impl Parties {
    /// Creates the profile for integers that differ by `shift` and the noise of so many parties, each with this σ.
    ///
    /// # Errors
    /// [`Error::Domain`] unless the shift is from 1 to 10⁶, σ from 0.1, the number of parties from 1 to 10⁶, σ√n at most 10⁴, and
    /// at most 1000 for σ below 1.5.
    pub fn new(shift: u64, sigma: f64, parties: u64) -> Result<Self> {
        // exact where they are accepted
        let (d, n) = (real(shift), real(parties));
        if shift == 0 || shift > MOST_SHIFT {
            return domain("shift", d, "an integer from 1 to 1000000");
        }
        if !(SIGMAS.0..=SIGMAS.1).contains(&sigma) {
            return domain("sigma", sigma, "between 0.1 and 10000");
        }
        if parties == 0 || parties > MOST_PARTIES {
            return domain("parties", n, "an integer from 1 to 1000000");
        }
        let (size, spread) = (sigma * n.sqrt(), of_theta(sigma, parties));
        let most = if spread <= NEARLY_CONSTANT { MOST_SPREAD } else { MOST_CONVOLVED };
        if size > most {
            return domain("sigma times the root of parties", size, "at most 10000, and 1000 for sigma below 1.5");
        }
        let variance = decimal(sigma) * decimal(sigma);
        let half = |square: Rational, by: &Rational| square / (by * Rational::from_integer(2.into()));
        let whole = |count: u64| Rational::from_integer(count.into());
        let (each, more) = (shift / parties, shift % parties);
        let squares =
            whole(more) * whole(each + 1) * whole(each + 1) + whole(parties - more) * whole(each) * whole(each);
        let reach = shift + reach(size);
        let (logs, spread) = if spread <= CONSTANT || size > MOST_CONVOLVED {
            (gaussian(sigma, n, reach, spread), Some(spread))
        } else {
            let mut logs = summed(sigma, parties);
            let theta = modulation(&logs, sigma, n).map(|theta| largest_step(&theta, shift));
            extend(&mut logs, sigma, parties, reach);
            (logs, theta)
        };
        Ok(Self {
            shift: d,
            law: LogConcave::new(&logs),
            split: half(squares, &variance),
            wide: half(whole(shift) * whole(shift), &(whole(parties) * &variance)),
            spread: if more == 0 { Some(Rational::zero()) } else { spread.and_then(Rational::from_float) },
        })
    }
}

/// Returns an integer at which e^{−k²/2s²} is e^{−RESOLVED}.
fn reach(size: f64) -> u64 {
    // It is positive, and below a million.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let reach = (size * (2.0 * RESOLVED).sqrt()).ceil() as u64;
    reach + 1
}

/// Returns an upper bound on ln Θ_max/Θ_min; infinity if the formula of this file says nothing.
fn of_theta(sigma: f64, parties: u64) -> f64 {
    let square = 2.0 * std::f64::consts::PI.powi(2) * sigma * sigma;
    let of = |m: u64| {
        // Far out the power is 0 in doubles, and the smallest one above it is a bound.
        let q = ((-square * (real(m) / real(m + 1))).exp() * (1.0 + 1e-9)).max(f64::MIN_POSITIVE);
        let omega = 2.0 * q / (1.0 - q);
        if omega < 1.0 {
            omega.ln_1p() - (-omega).ln_1p()
        } else {
            f64::INFINITY
        }
    };
    (1..parties).map(of).sum::<f64>() * (1.0 + 1e-9)
}

/// Returns −k²/2s² for k from 0 to `last`, where the sum differs from it by `spread` at most.
fn gaussian(sigma: f64, n: f64, last: u64, spread: f64) -> Vec<(f64, f64)> {
    let twice = 2.0 * sigma * sigma * n;
    let log = |k: u64| -(real(k) * real(k)) / twice;
    (0..=last).map(|k| (log(k), if k == 0 { 0.0 } else { spread + 6.0 * UNIT_ROUNDOFF * -log(k) })).collect()
}

/// A symmetric law without its constant, by its weights at k ≥ 0, of which the first is 1.
#[derive(Clone)]
struct Weights {
    half: Vec<f64>,
    /// A bound on the relative error of each weight, up to a common factor.
    relative: f64,
    /// A bound on the total of all weights that are missing, here or in what this was made of.
    missing: f64,
}

impl Weights {
    /// Returns the weights e^{−x²/2σ²}, each to 6u.
    fn of(sigma: f64) -> Self {
        let square = sigma * sigma;
        let rest = sigma.mul_add(sigma, -square);
        let weight = |k: u64| {
            let (k, twice) = (real(k) * real(k), 2.0 * square);
            let high = k / twice;
            // What the quotient and the square have lost.
            let low = ((-high).mul_add(twice, k) - 2.0 * high * rest) / twice;
            (-high).exp() * (1.0 - low)
        };
        Self { half: Vec::new(), relative: 6.0 * UNIT_ROUNDOFF, missing: 0.0 }.filled((0..).map(weight))
    }

    /// Returns the same with these weights, down to the first that is dropped; they fall, and so do the ratios of neighbours.
    fn filled(mut self, weights: impl Iterator<Item = f64>) -> Self {
        let mut ratio = 0.5_f64;
        let mut kept: Vec<f64> = Vec::new();
        for weight in weights {
            if let (Some(&first), Some(&last)) = (kept.first(), kept.last()) {
                ratio = weight / last;
                if weight < DROPPED * first {
                    break;
                }
            }
            kept.push(weight);
        }
        let first = kept[0];
        // Both sides; ratios are off by less than 1e-6, and beyond the last one they are no larger.
        let ratio = ratio.min(1.0 - 1e-6) * (1.0 + 1e-6);
        self.missing = (self.missing / first + 2.0 * DROPPED / (1.0 - ratio)) * (1.0 + 1e-9);
        self.half = kept.into_iter().map(|weight| weight / first).collect();
        self.relative += 2.0 * UNIT_ROUNDOFF;
        self
    }

    /// Returns all weights, from the left to the right.
    fn both(&self) -> Vec<f64> {
        self.half.iter().skip(1).rev().chain(&self.half).copied().collect()
    }

    /// Returns the weights of the sum of two independent variables.
    fn convolved(&self, other: &Self) -> Self {
        let (one, two) = (self.both(), other.both());
        let (a, b) = (self.half.len() - 1, other.half.len() - 1);
        // Both are symmetric: Σ_i one(i) two(i − k), over the i for which both are in their tables.
        let weight = |k: usize| {
            let (first, last) = ((a + k).saturating_sub(b), (2 * a).min(a + k + b));
            let begin = first + b - a - k;
            product(&one[first..=last], &two[begin..=begin + last - first])
        };
        let total = |weights: &Self, both: &[f64]| both.iter().sum::<f64>() + weights.missing;
        let terms = real(one.len().min(two.len()) / LANES + LANES + 4);
        Self {
            half: Vec::new(),
            relative: (self.relative + other.relative + terms * UNIT_ROUNDOFF) * (1.0 + 1e-6),
            missing: 1.01 * (self.missing * total(other, &two) + other.missing * total(self, &one)),
        }
        .filled((0..=a + b).map(weight))
    }
}

/// Sums of products have as many parts, each summed in its order.
const LANES: usize = 8;

/// Returns Σ a_i b_i; each term is rounded once, and by each addition to its part and of the parts.
fn product(one: &[f64], two: &[f64]) -> f64 {
    let mut parts = [0.0_f64; LANES];
    let (ones, twos) = (one.chunks_exact(LANES), two.chunks_exact(LANES));
    let rest: f64 = ones.remainder().iter().zip(twos.remainder()).map(|(a, b)| a * b).sum();
    for (a, b) in ones.zip(twos) {
        for lane in 0..LANES {
            parts[lane] += a[lane] * b[lane];
        }
    }
    parts.iter().sum::<f64>() + rest
}

/// Returns ln Pr[X = k]/Pr[X = 0] of the sum of all parties' noise, as far as weights are used, with bounds on the errors.
fn summed(sigma: f64, parties: u64) -> Vec<(f64, f64)> {
    let (mut doubled, mut left) = (Weights::of(sigma), parties);
    let mut all: Option<Weights> = None;
    while left > 0 {
        if left % 2 == 1 {
            all = Some(all.map_or_else(|| doubled.clone(), |some| some.convolved(&doubled)));
        }
        left /= 2;
        if left > 0 {
            doubled = doubled.convolved(&doubled);
        }
    }
    let all = all.unwrap_or(doubled);
    let error = |weight: f64| (all.relative + all.missing / weight) * (1.0 + 1e-6);
    let used = all.half.iter().take_while(|weight| **weight >= USED);
    used.map(|&weight| (weight.ln(), error(weight) + 2.0 * UNIT_ROUNDOFF * weight.ln().abs())).collect()
}

/// Returns ln Θ for one period, each with a bound on its error; `None` if the table does not have all of them.
fn modulation(logs: &[(f64, f64)], sigma: f64, n: f64) -> Option<Vec<(f64, f64)>> {
    // At most 10⁶.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let period = n as usize;
    let of = |j: usize| {
        let k = j.min(period - j);
        let square = real(k) * real(k) / (2.0 * sigma * sigma * n);
        logs.get(k).map(|&(log, error)| (log + square, error + 8.0 * UNIT_ROUNDOFF * (square + log.abs())))
    };
    (0..period).map(of).collect()
}

/// Returns an upper bound on max ln Θ(x − shift)/Θ(x).
fn largest_step(theta: &[(f64, f64)], shift: u64) -> f64 {
    let period = theta.len();
    // Below the period.
    #[allow(clippy::cast_possible_truncation)]
    let moved = (shift % real_count(period)) as usize;
    let step = |j: usize| {
        let (from, to) = (theta[(j + period - moved) % period], theta[j]);
        from.0 - to.0 + (from.1 + to.1) * (1.0 + 1e-6)
    };
    (0..period).map(step).fold(0.0, f64::max)
}

/// Extends the table by its period, if it is longer than that.
fn extend(logs: &mut Vec<(f64, f64)>, sigma: f64, parties: u64, last: u64) {
    let length = real_count(logs.len());
    if length <= parties {
        return;
    }
    for k in length..=last {
        // Within the table.
        #[allow(clippy::cast_possible_truncation)]
        let (log, error) = logs[(k - parties) as usize];
        let step = real(2 * (k - parties) + parties) / (2.0 * sigma * sigma);
        logs.push((log - step, error + UNIT_ROUNDOFF * (5.0 * step + log.abs())));
    }
}

/// Returns a length as a count.
fn real_count(length: usize) -> u64 {
    u64::try_from(length).unwrap_or(u64::MAX)
}

impl Profile for Parties {
    fn at_within(&self, epsilon: f64, _bracket: (f64, f64)) -> ProfilePoint {
        self.law.point(self.shift, epsilon)
    }

    /// The two laws are mirror images.
    fn reversal(&self) -> Reversal {
        Reversal::Same
    }

    /// Returns the smaller one of both bounds on the divergence.
    fn exact_divergence(&self, order: f64) -> Option<Rational> {
        let (order, split) = (decimal(order), decimal(order) * &self.split);
        let wide = self.spread.as_ref().map(|spread| order * &self.wide + spread);
        Some(wide.map_or_else(|| split.clone(), |wide| wide.min(split.clone())))
    }

    /// Returns the smaller one of both bounds, each of which is one for orders of at least 1.
    fn concentration(&self) -> Option<Rational> {
        let wide = self.spread.as_ref().map(|spread| &self.wide + spread);
        Some(wide.map_or_else(|| self.split.clone(), |wide| wide.min(self.split.clone())))
    }
}

#[cfg(test)]
mod tests {
    use num_traits::ToPrimitive;

    use super::*;
    use crate::pair::discrete_gaussian::DiscreteGaussian;

    /// Returns the law of the sum, of which the one entry before the last is at 0, by adding one party after the other.
    fn direct(sigma: f64, parties: u64, reach: i64) -> Vec<f64> {
        let one: Vec<f64> = (-reach..=reach).map(|x| (-(real(x * x)) / (2.0 * sigma * sigma)).exp()).collect();
        let at = |law: &[f64], x: i64| usize::try_from(x + reach).ok().and_then(|x| law.get(x)).copied().unwrap_or(0.0);
        let mut law = one.clone();
        for _ in 1..parties {
            law = (-reach..=reach).map(|x| (-reach..=reach).map(|y| at(&law, y) * at(&one, x - y)).sum()).collect();
        }
        let total: f64 = law.iter().sum();
        law.into_iter().map(|weight| weight / total).collect()
    }

    #[test]
    fn profiles_and_divergences_are_those_of_all_outcomes() {
        for (shift, sigma, parties) in
            [(1_i64, 0.3, 3), (3, 0.3, 3), (2, 0.5, 5), (1, 1.0, 10), (4, 1.0, 4), (3, 2.5, 2)]
        {
            let (reach, profile) = (70, Parties::new(shift.unsigned_abs(), sigma, parties).unwrap());
            let law = direct(sigma, parties, reach);
            let at = |x: i64| usize::try_from(x + reach).ok().and_then(|x| law.get(x)).copied().unwrap_or(0.0);
            for step in -20..60 {
                let epsilon = 0.131 * f64::from(step);
                let sum: f64 = (-reach..=reach).map(|x| (at(x - shift) - epsilon.exp() * at(x)).max(0.0)).sum();
                let point = profile.at(epsilon);
                let distance = (point.delta - sum).abs();
                assert!(
                    distance <= 1e-11 * sum + 1e-14 + point.delta_error,
                    "{shift} {sigma} {parties} {point:?} {sum}"
                );
                assert!(point.delta_error <= 1e-10, "{point:?}");
            }
            let rho = profile.concentration().unwrap().to_f64().unwrap();
            for a in [1.01, 1.5, 2.0, 3.0] {
                let terms = (-reach / 2..=reach / 2).filter(|&x| at(x).min(at(x - shift)) > 1e-280);
                let sum: f64 = terms.map(|x| (a * at(x - shift).ln() - (a - 1.0) * at(x).ln()).exp()).sum();
                let (exact, found) = (sum.ln() / (a - 1.0), profile.exact_divergence(a).unwrap().to_f64().unwrap());
                assert!(
                    exact <= found * (1.0 + 1e-9) + 1e-12 && found <= a * rho * (1.0 + 1e-12),
                    "{a} {exact} {found}"
                );
            }
        }
    }

    #[test]
    fn one_party_and_wide_noise_are_discrete_gaussian() {
        for (sigma, parties, of_one) in [(0.7, 1, 0.7), (3.0, 4, 6.0), (20.0, 25, 100.0), (2.0, 10_000, 200.0)] {
            let (sum, one) = (Parties::new(2, sigma, parties).unwrap(), DiscreteGaussian::new(2, of_one).unwrap());
            for step in -10..40 {
                let epsilon = 0.1 * f64::from(step) * 2.0 / of_one;
                let (sum, one) = (sum.at(epsilon), one.at(epsilon));
                assert!((sum.delta - one.delta).abs() <= sum.delta_error + one.delta_error, "{sigma} {sum:?} {one:?}");
                assert!(sum.delta_error <= 1e-9, "{sum:?}");
            }
        }
    }

    #[test]
    fn both_ways_to_the_law_agree_where_they_meet() {
        let (sigma, parties) = (1.5, 200);
        let (near, logs) = (of_theta(sigma, parties), summed(sigma, parties));
        assert!(near > CONSTANT && near < NEARLY_CONSTANT);
        for ((one, of_one), (two, of_two)) in logs.iter().zip(gaussian(sigma, real(parties), 600, near)) {
            assert!((one - two).abs() <= of_one + of_two, "{one} {two}");
            assert!(*of_one < 1e-11, "{of_one}");
        }
    }

    #[test]
    fn what_is_too_wide_or_too_narrow_is_refused() {
        for (shift, sigma, parties) in
            [(0, 1.0, 2), (1, 0.05, 2), (1, 1.0, 0), (1, 1.0, 1 << 20), (1, 1.2, 900_000), (1, 2e3, 100)]
        {
            assert!(Parties::new(shift, sigma, parties).is_err());
        }
        assert!(Parties::new(1, 0.1, 1_000_000).is_ok() && Parties::new(1, 1.5, 1_000_000).is_ok());
    }
}
