//! An integer released with discrete Gaussian noise.
//!
//! X has the law e^{−x²/2σ²}/Z on the integers; P is the law of X + d and Q that of X, d ≥ 1. The loss (2dx − d²)/2σ² rises
//! with x, so the best outcomes are {x ≥ m} for the least m with a loss above ε, and `δ(ε) = S(m − d) − e^ε S(m)`, S(k) =
//! Pr[X ≥ k]. Both directions are mirror images. The outcomes {x ≥ m} for any m give a line below the profile; if rounding
//! moves m by one, the outcome concerned has a loss within that rounding of ε, and changes the difference by no more than
//! the rounding times its mass.
//!
//! S(−k) = 1 − S(k + 1) leaves k ≥ 0, where S is `e^{−k²/2σ²} R(k)/Z`. R(k) = Σ_{j ≥ k} e^{−(j² − k²)/2σ²} is between 1 and
//! R(0) and neither overflows nor underflows, so losses may be larger than any exponent.
//!
//! * **σ < 1000:** R(k) = 1 + e^{−(2k+1)/2σ²} R(k + 1), from 10σ beyond the last k that matters, where it begins with 1. What
//!   is missing there is below e^{−450} of the result. The error is followed through the recursion. Z = 2R(0) − 1.
//! * **σ ≥ 1000:** by Euler and Maclaurin, with f(x) = e^{−x²/2σ²}, t = k/σ and He the Hermite polynomials,
//!   `Σ_{j ≥ k} f(j) = ∫_k^∞ f + f(k)(1/2 + t/(12σ) − He₃(t)/(720σ³)) + ρ`, |ρ| ≤ (|f⁽⁵⁾(k)| + ∫_k^∞ |f⁽⁶⁾|)/30240. There
//!   f⁽⁵⁾ = −He₅(t)f/σ⁵; the integral is |f⁽⁵⁾(k)| right of the last zero of He₆ (3.33), and at most 68/σ⁵ anywhere, since ∫
//!   |He₆| e^{−s²/2} ≤ √(2π·6!) by Cauchy and Schwarz. Z = σ√(2π) up to e^{−2π²σ²}, by Poisson summation.
//!
//! Outcomes beyond 40σ have a probability below e^{−800} together.

use crate::error::{domain, Result};
use crate::exact::{decimal, Rational};
use crate::pair::{Profile, ProfilePoint, Reversal};
use crate::special::{real, scaled_upper_tail, Approximation, UNDERFLOW, UNIT_ROUNDOFF};

/// Sums over integers are replaced by integrals from this σ on.
const WIDE: f64 = 1000.0;
/// The σ that are accepted, and the largest shift.
const SIGMAS: (f64, f64) = (1e-2, 1e5);
const MOST_SHIFT: u64 = 1_000_000;
/// The probability of an outcome this many σ away is below 10⁻³⁴⁷.
const REACH: f64 = 40.0;
/// How many σ further the recursion starts.
const START: f64 = 10.0;

/// The profile of discrete Gaussian noise moved by `shift` against the same noise, in both directions.
///
/// * Formula: at the head of this file.
/// * Units: shift and σ in units of the integers. σ is the parameter; for σ > 1 the standard deviation equals it to 10⁻⁷.
/// * Guarantee: [`Profile::at_within`] returns values within their stated errors; it grows with the shift.
/// * Precision: 10⁻¹⁶ times σ relative to S for σ < 1000, and that of the normal tail from there on.
/// * Source: Canonne, Kamath & Steinke 2020, arXiv:2004.00010, for the mechanism; the head of this file.
#[derive(Debug, Clone)]
pub struct DiscreteGaussian {
    shift: f64,
    sigma: f64,
    /// R(k) with its absolute error, for k = 0, 1, …; empty for wide noise.
    sums: Vec<(f64, f64)>,
}

impl DiscreteGaussian {
    /// Creates the profile for integers that differ by `shift` and noise with this σ.
    ///
    /// # Errors
    /// [`Error::Domain`] unless the shift is from 1 to 10⁶ and σ from 0.01 to 10⁵.
    pub fn new(shift: u64, sigma: f64) -> Result<Self> {
        // exact where it is accepted
        let d = real(shift);
        if shift == 0 || shift > MOST_SHIFT {
            return domain("shift", d, "an integer from 1 to 1000000");
        }
        if !(SIGMAS.0..=SIGMAS.1).contains(&sigma) {
            return domain("sigma", sigma, "between 0.01 and 100000");
        }
        let sums = if sigma < WIDE { sums(d + REACH * sigma + 2.0, sigma) } else { Vec::new() };
        Ok(Self { shift: d, sigma, sums })
    }

    /// Returns `e^ε Pr[X ≥ k]` for an integer k, where the product is at most 1.
    fn tail(&self, epsilon: f64, k: f64) -> Approximation {
        if k >= 1.0 {
            return self.right(epsilon, k);
        }
        let (all, rest) = (epsilon.exp(), self.right(epsilon, 1.0 - k));
        Approximation {
            value: (all - rest.value).max(0.0),
            error: rest.error + 2.0 * UNIT_ROUNDOFF * (1.0 + epsilon.abs()) * all,
        }
    }

    /// Returns `e^ε Pr[X ≥ k]` for k ≥ 1.
    fn right(&self, epsilon: f64, k: f64) -> Approximation {
        if self.sums.is_empty() {
            return self.integral(epsilon, k);
        }
        // The index is an integer, and in range.
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let sum = if k < 1e9 { self.sums.get(k as usize) } else { None };
        let (Some(&(sum, error)), Some(&first)) = (sum, self.sums.first()) else {
            return Approximation { value: 0.0, error: UNDERFLOW };
        };
        let (exponent, whole) = (0.5 * k * (k / (self.sigma * self.sigma)), 2.0 * first.0 - 1.0);
        let value = (epsilon - exponent).exp() * (sum / whole);
        let relative = UNIT_ROUNDOFF * (12.0 + 4.0 * exponent + 2.0 * epsilon.abs());
        Approximation {
            value,
            error: value * (relative + error / sum + 2.0 * first.1 / whole) * (1.0 + 1e-9) + UNDERFLOW,
        }
    }

    /// Returns `e^ε Pr[X ≥ k]` for k ≥ 1 and wide noise.
    fn integral(&self, epsilon: f64, k: f64) -> Approximation {
        let (sigma, t) = (self.sigma, k / self.sigma);
        let mut sum = scaled_upper_tail(epsilon, t, 2.0 * UNIT_ROUNDOFF * t);
        let density = (epsilon - 0.5 * t * t).exp() / ((2.0 * std::f64::consts::PI).sqrt() * sigma);
        let hermite = t * (t * t - 3.0) / 720.0;
        let factor = 0.5 + (t / 12.0 - hermite / (sigma * sigma)) / sigma;
        let fifth = t * (t * t * (t * t + 10.0) + 15.0);
        // Left of the last zero of He₆, e^{t²/2} is at most 256.
        let left_out = (2.0 * fifth + if t < 3.33 { 68.0 * 256.0 } else { 0.0 }) / (30_240.0 * sigma.powi(5));
        let size = 0.5 + (t / 12.0 + (t * t * t + 3.0 * t) / (720.0 * sigma * sigma)) / sigma;
        let rounding = UNIT_ROUNDOFF * (16.0 + 2.0 * t * t + 2.0 * epsilon.abs());
        sum += Approximation {
            value: density * factor,
            error: density * (left_out * 1.001 + size * rounding) + UNDERFLOW,
        };
        sum
    }
}

/// Returns R(k) and its absolute error for k from 0 to `last`.
fn sums(last: f64, sigma: f64) -> Vec<(f64, f64)> {
    // Both are at most a few million.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let (last, start) = (last.ceil() as u32, (last + START * sigma + 2.0).ceil() as u32);
    let half = 0.5 / (sigma * sigma);
    let (mut sum, mut error) = (1.0_f64, 0.0_f64);
    let mut all = Vec::with_capacity(last as usize + 1);
    for k in (0..start).rev() {
        let exponent = f64::from(2 * k + 1) * half;
        let ratio = (-exponent).exp();
        // The exponential is off by 2u and its argument by 4u, each product and sum by u.
        error = ratio * (error + sum * UNIT_ROUNDOFF * (4.0 + 4.0 * exponent));
        sum = 1.0 + ratio * sum;
        error = (error + UNIT_ROUNDOFF * sum) * (1.0 + 8.0 * UNIT_ROUNDOFF);
        if k <= last {
            all.push((sum, error + UNDERFLOW));
        }
    }
    all.reverse();
    all
}

impl Profile for DiscreteGaussian {
    fn at_within(&self, epsilon: f64, _bracket: (f64, f64)) -> ProfilePoint {
        let (d, sigma) = (self.shift, self.sigma);
        let threshold = epsilon * (sigma / d) * sigma + 0.5 * d;
        let m = threshold.floor() + 1.0;
        if m - d > REACH * sigma + 1.0 {
            return ProfilePoint {
                delta: 0.0,
                delta_error: UNDERFLOW,
                slope: 0.0,
                slope_error: UNDERFLOW,
                threshold: f64::NAN,
            };
        }
        let point = ProfilePoint::of(self.tail(0.0, m - d), self.tail(epsilon, m));
        // How far ε and the loss of an outcome may have been moved across each other.
        let rounding = 8.0 * UNIT_ROUNDOFF * (epsilon.abs() + (d / sigma) * (d / sigma));
        let nearest = (threshold - threshold.round()).abs() * (d / sigma) / sigma;
        let beside = if nearest > 2.0 * rounding { Approximation::default() } else { self.tail(0.0, m - 1.0 - d) };
        ProfilePoint {
            delta: point.delta.min(1.0),
            delta_error: point.delta_error + 2.0 * rounding * (beside.value + beside.error),
            ..point
        }
    }

    /// The two laws are mirror images.
    fn reversal(&self) -> Reversal {
        Reversal::Same
    }

    /// Returns ad²/2σ², the divergence of Gaussian noise, which is no smaller (Canonne, Kamath & Steinke 2020).
    ///
    /// E_Q[(P/Q)^a] = e^{a(a−1)d²/2σ²}·Σ_x e^{−(x − ad)²/2σ²}/Σ_x e^{−x²/2σ²}, and by Poisson summation the sum over the integers
    /// is largest where they are centred.
    fn exact_divergence(&self, order: f64) -> Option<Rational> {
        self.concentration().map(|rho| decimal(order) * rho)
    }

    /// Returns d²/2σ².
    fn concentration(&self) -> Option<Rational> {
        let shift = decimal(self.shift) / decimal(self.sigma);
        Some(&shift * &shift / Rational::from_integer(2.into()))
    }
}

#[cfg(test)]
mod tests {
    use num_traits::ToPrimitive;

    use super::*;
    use crate::pair::gaussian::GaussianPair;
    use crate::run::Run;

    /// Returns δ(ε), and P of the losses above ε, by summing over all outcomes.
    #[allow(clippy::cast_possible_truncation, clippy::cast_precision_loss)] // small integers
    fn direct(d: i64, sigma: f64, epsilon: f64) -> (f64, f64) {
        let reach = (40.0 * sigma).ceil() as i64 + 2;
        let law = |x: i64| (-(real(x * x)) / (2.0 * sigma * sigma)).exp();
        let whole: f64 = (-reach..=reach).map(law).sum();
        let loss = |x: i64| (real(2 * d * x - d * d)) / (2.0 * sigma * sigma);
        let outcomes = (d - reach..=d + reach).filter(|&x| loss(x) > epsilon);
        let terms = outcomes.map(|x| (law(x - d) / whole, -(epsilon - loss(x)).exp_m1()));
        terms.fold((0.0, 0.0), |(delta, above), (p, part)| (delta + p * part, above + p))
    }

    #[test]
    fn the_profile_is_that_of_all_outcomes() {
        for (d, sigma) in [(1, 0.01), (1, 0.3), (1, 1.0), (2, 1.0), (1, 7.3), (30, 11.0), (5, 0.2), (100, 2.0)] {
            let profile = DiscreteGaussian::new(d, sigma).unwrap();
            let unit = real(d) / sigma;
            for step in -80..80 {
                let epsilon = 0.5 * unit * unit + 0.103_7 * f64::from(step) * unit;
                let (delta, above) = direct(i64::try_from(d).unwrap(), sigma, epsilon);
                let point = profile.at(epsilon);
                let near = 1e-12 * delta + 1e-15 * unit * unit * above;
                assert!(
                    (point.delta - delta).abs() <= near + point.delta_error,
                    "{d} {sigma} {epsilon} {point:?} {delta}"
                );
                // At step 0, ε is the loss of an outcome, whose rounding costs its mass.
                let tie = if step == 0 { 1e-14 * unit * unit } else { 0.0 };
                let most = 1e-11 * above.max(1e-290) * unit.max(1.0).powi(2) + tie;
                assert!(point.delta_error <= most, "{point:?}");
                assert!((point.delta + point.slope - above).abs() <= 1e-9 * above * unit.max(1.0) + 1e-290);
            }
        }
    }

    #[test]
    fn both_ways_agree_where_they_meet() {
        let (sigma, below) = (WIDE, WIDE * (1.0 - 1e-16));
        let (wide, narrow) = (DiscreteGaussian::new(700, sigma).unwrap(), DiscreteGaussian::new(700, below).unwrap());
        assert!(wide.sums.is_empty() && !narrow.sums.is_empty());
        for k in [1.0, 2.0, 500.0, 1000.0, 3000.0, 3340.0, 9000.0, 20_000.0] {
            for epsilon in [-2.0, 0.0, 0.1] {
                let (one, two) = (wide.right(epsilon, k), narrow.right(epsilon, k));
                assert!((one.value - two.value).abs() <= one.error + two.error, "{k} {one:?} {two:?}");
                assert!(one.error <= 1e-12 * one.value && two.error <= 1e-12 * two.value, "{k} {one:?} {two:?}");
            }
        }
    }

    #[test]
    fn wide_noise_is_near_the_gaussian_mechanism() {
        for (d, sigma) in [(20_000, 2e4), (5_000, 1e5)] {
            let profile = DiscreteGaussian::new(d, sigma).unwrap();
            let gaussian = GaussianPair::new(real(d), sigma).unwrap();
            for step in -20..40 {
                let epsilon = 0.1 * f64::from(step);
                let (one, two) = (profile.at(epsilon), gaussian.at(epsilon));
                assert!((one.delta - two.delta).abs() <= 1e-4 * two.delta + 1e-290, "{epsilon} {one:?} {two:?}");
            }
        }
        assert!(DiscreteGaussian::new(0, 1.0).is_err() && DiscreteGaussian::new(1, 1e-3).is_err());
        assert!(DiscreteGaussian::new(1, f64::NAN).is_err() && DiscreteGaussian::new(1, 1e6).is_err());
    }

    #[test]
    #[allow(clippy::cast_possible_truncation, clippy::cast_precision_loss)] // small integers
    fn divergences_are_above_those_of_all_outcomes() {
        for (d, sigma) in [(1_i32, 0.3_f64), (1, 1.0), (2, 1.5), (5, 4.0)] {
            let profile = DiscreteGaussian::new(u64::from(d.unsigned_abs()), sigma).unwrap();
            for a in [1.1, 2.0, 3.7, 8.0] {
                let reach = (40.0 * sigma) as i32 + 20 * d;
                let log = |x: i32| -f64::from(x * x) / (2.0 * sigma * sigma);
                let whole: f64 = (-reach..=reach).map(|x| log(x).exp()).sum();
                let sum: f64 = (-reach..=reach).map(|x| (a * log(x - d) + (1.0 - a) * log(x)).exp()).sum();
                let (found, exact) = (profile.log_moment(a, &Run::default()).unwrap().unwrap(), (sum / whole).ln());
                assert!(found >= exact * (1.0 - 1e-12), "{d} {sigma} {a} {found} {exact}");
                let rho = profile.concentration().and_then(|rho| rho.to_f64()).unwrap();
                assert!(exact / (a - 1.0) <= a * rho * (1.0 + 1e-12), "{d} {sigma} {a}");
                // Where a·d is an integer, the bound is attained.
                if a.fract() == 0.0 {
                    assert!(found <= exact * (1.0 + 1e-12), "{d} {sigma} {a} {found} {exact}");
                }
            }
        }
    }
}
