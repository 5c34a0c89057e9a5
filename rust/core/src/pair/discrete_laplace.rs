//! An integer released with discrete Laplace (two-sided geometric) noise.
//!
//! P(x) = t·e^{−|x|/b} on the integers, t = (1 − q)/(1 + q), q = e^{−1/b}, and Q is P moved by d ≥ 1. The loss (|x − d| −
//! |x|)/b falls with x, from d/b at x ≤ 0 to −d/b at x ≥ d. So for |ε| < d/b the best outcomes are {x ≤ m} for the
//! largest m with (d − 2m)/b > ε, 0 ≤ m < d, and from P(x ≤ m) = 1 − e^{−(m+1)/b}/(1 + q) and Q(x ≤ m) = e^{−(d−m)/b}/(1
//! + q),
//!
//! `δ(ε) = [(1 − e^{−y}) + q(1 − e^{−m/b})]/(1 + q)`, y = (d − m)/b − ε ≥ 0: a sum of positive terms.
//!
//! Both directions are mirror images. The outcomes {x ≤ m} for any m give a line P − αQ below the profile. If rounding
//! of bd or εb moves m by one, the outcome concerned has a loss within that rounding of ε, and changes the difference by
//! no more than the rounding times its mass.

use crate::error::{domain, Result};
use crate::exact::{decimal, Enclosure, Rational};
use crate::pair::moments::{log_expm1, log_sum, ABSOLUTE};
use crate::pair::{pure, LargestLoss, Profile, ProfilePoint, Reversal};
use crate::run::Run;
use crate::special::{real, UNDERFLOW, UNIT_ROUNDOFF};

/// The largest shift for which every number of outcomes is exact.
const MOST_SHIFT: u64 = 1 << 52;

/// The profile of discrete Laplace noise of scale b against the same noise moved by `shift`, in both directions.
///
/// * Formula: at the head of this file. It is that of Laplace noise, 1 − e^{(ε − d/b)/2}, where (d − εb)/2 is an integer, and
///   its chords in e^ε elsewhere, which are above it.
/// * Guarantee: [`Profile::at_within`] returns values within their stated errors; it grows with the shift.
/// * Precision: that of ε and d/b, and a few units of rounding.
/// * Source: Ghosh, Roughgarden & Sundararajan 2012 for the mechanism; the head of this file for the profile.
#[derive(Debug, Clone, PartialEq)]
pub struct DiscreteLaplace {
    shift: f64,
    scale: f64,
    /// q = e^{−1/b}.
    ratio: f64,
    /// The shift divided by the decimal of the scale.
    exact: Rational,
}

impl DiscreteLaplace {
    /// Creates the profile for integers that differ by `shift` and noise of this scale.
    ///
    /// # Errors
    /// [`Error::Domain`] unless the shift is from 1 to 2⁵², the scale positive and finite, and so is their quotient.
    pub fn new(shift: u64, scale: f64) -> Result<Self> {
        // exact where it is accepted
        let d = real(shift);
        if shift == 0 || shift > MOST_SHIFT {
            return domain("shift", d, "an integer from 1 to 2^52");
        }
        for (name, value) in [("scale", scale), ("shift/scale", d / scale)] {
            if !(value > 0.0 && value.is_finite()) {
                return domain(name, value, "a positive finite number");
            }
        }
        Ok(Self { shift: d, scale, ratio: (-1.0 / scale).exp(), exact: decimal(d) / decimal(scale) })
    }

    /// Returns the largest loss d/b, known to u.
    fn end(&self) -> f64 {
        self.shift / self.scale
    }
}

impl Profile for DiscreteLaplace {
    fn at_within(&self, epsilon: f64, _bracket: (f64, f64)) -> ProfilePoint {
        let (d, b, q) = (self.shift, self.scale, self.ratio);
        // How far the losses and ε may be from each other because of rounding.
        let argument = 4.0 * UNIT_ROUNDOFF * (self.end() + epsilon.abs());
        let rounding = 8.0 * UNIT_ROUNDOFF;
        // The largest integer below (d − εb)/2.
        let m = (0.5 * (d - epsilon * b)).ceil() - 1.0;
        if m < 0.0 {
            let edge = if epsilon <= self.end() + argument { argument } else { 0.0 };
            return ProfilePoint { delta: 0.0, delta_error: edge, slope: 0.0, slope_error: edge, threshold: f64::NAN };
        }
        if m >= d {
            let (delta, slope) = (-epsilon.exp_m1(), epsilon.exp());
            return ProfilePoint {
                delta,
                delta_error: rounding * delta.abs() + argument * slope,
                slope,
                slope_error: (rounding + argument) * slope,
                threshold: f64::NAN,
            };
        }
        let rest = (d - m) / b - epsilon;
        let delta = (-(-rest).exp_m1() + q * -(-m / b).exp_m1()) / (1.0 + q);
        let slope = (-rest).exp() / (1.0 + q);
        // q is off by u(2 + 1/b) of itself; the rest by the rounding of losses, and an outcome with a loss that near to ε by no
        // more than its mass, at most e^{−m/b}.
        let of_ratio = 2.0 * UNIT_ROUNDOFF * (2.0 + 1.0 / b) * q * -(-m / b).exp_m1();
        ProfilePoint {
            delta: delta.clamp(0.0, 1.0),
            delta_error: rounding * delta.abs() + of_ratio + argument * (2.0 * slope + (-m / b).exp()) + UNDERFLOW,
            slope,
            slope_error: (rounding + 2.0 * argument) * slope + UNDERFLOW,
            threshold: f64::NAN,
        }
    }

    /// Returns d/b, the loss of all x ≤ 0, which have the mass 1/(1 + q).
    fn largest_loss(&self) -> LargestLoss {
        let rounding = 2.0 * UNIT_ROUNDOFF;
        LargestLoss {
            at_least: self.end() * (1.0 - rounding),
            at_most: self.end() * (1.0 + rounding),
            mass: (1.0 - 8.0 * UNIT_ROUNDOFF) / (1.0 + self.ratio),
        }
    }

    fn exact_largest_loss(&self) -> Option<Enclosure> {
        Some(Enclosure::exactly(self.exact.clone()))
    }

    /// The two laws are mirror images.
    fn reversal(&self) -> Reversal {
        Reversal::Same
    }

    /// Returns ln E_P e^{(a−1)L}, or the bound of pure ε = d/b if that is smaller: its digits are kept for small d/b.
    ///
    /// The loss is d/b at x ≤ 0, with the mass 1/(1 + q), −d/b at x ≥ d, with e^{−d/b}/(1 + q), and (d − 2x)/b between them.
    /// There the sum is t·e^{(a−1)d/b}·Σ_{x=1}^{d−1} r^x, r = e^{−(2a−1)/b}: a geometric series.
    fn log_moment(&self, order: f64, _run: &Run) -> Result<Option<f64>> {
        let (a, rate, end) = (order, 1.0 / self.scale, self.end());
        let (whole, grown) = (self.ratio.ln_1p(), (a - 1.0) * end);
        // ln(1 − e^{−x}) = ln(e^x − 1) − x.
        let missing = |x: f64| if x < 1.0 { log_expm1(x) - x } else { (-(-x).exp()).ln_1p() };
        let (mass, step) = (missing(rate) - whole, (2.0 * a - 1.0) * rate);
        let mut terms = vec![grown - whole, -grown - end - whole];
        if self.shift > 1.0 {
            terms.push(mass + grown - step + missing((self.shift - 1.0) * step) - missing(step));
        }
        let size = 1.0 + 2.0 * a * (end + rate) + mass.abs() + missing(step).abs();
        let logarithm = log_sum(&terms) + ABSOLUTE * size;
        Ok(Some(logarithm.min(pure::log_moment(end * (1.0 + 2.0 * UNIT_ROUNDOFF), a))))
    }

    /// Returns that of Laplace noise with θ = d/b, whose profile is nowhere smaller.
    fn concentration(&self) -> Option<Rational> {
        let end = Rational::from_float(self.end() * (1.0 + 2.0 * UNIT_ROUNDOFF))?;
        Some(pure::concentration(&end))
    }

    /// Returns that of pure differential privacy with ε = d/b; one step has no other losses than ±ε, and attains it.
    fn gaussian_square(&self) -> Option<Rational> {
        pure::gaussian_square(self.end() * (1.0 + 2.0 * UNIT_ROUNDOFF))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[allow(clippy::cast_possible_truncation, clippy::cast_possible_wrap, clippy::cast_precision_loss)] // small integers
    fn the_profile_is_that_of_all_outcomes() {
        for (shift, scale) in [(1, 0.4), (1, 3.0), (3, 1.7), (10, 2.5), (7, 0.2)] {
            let profile = DiscreteLaplace::new(shift, scale).unwrap();
            let d = shift as i64;
            let q = (-1.0 / scale).exp();
            let law = |x: i64| (1.0 - q) / (1.0 + q) * (-(real(x.abs())) / scale).exp();
            let end = real(shift) / scale;
            for share in [-1.2, -0.7, -0.31, 0.0, 0.2, 0.5, 0.83, 0.999, 1.0, 1.1] {
                let epsilon = share * end;
                let outcomes = -200..=200 + d;
                let sum: f64 = outcomes.map(|x| (law(x) - epsilon.exp() * law(x - d)).max(0.0)).sum();
                let point = profile.at(epsilon);
                assert!((point.delta - sum).abs() <= 1e-13 + point.delta_error, "{shift} {scale} {share} {point:?}");
                let above: f64 = (-200..=200 + d)
                    .filter(|&x| real((x - d).abs() - x.abs()) / scale > epsilon + 1e-12)
                    .map(law)
                    .sum();
                assert!(point.delta + point.slope >= above - 1e-13, "{shift} {scale} {share}");
            }
        }
    }

    #[test]
    fn at_integers_it_is_the_laplace_mechanism() {
        for (shift, scale) in [(1_u64, 1e6), (1000, 1e3), (4, 1e-3), (1 << 40, 1e9)] {
            let profile = DiscreteLaplace::new(shift, scale).unwrap();
            let (d, end) = (real(shift), real(shift) / scale);
            for m in [0.0, 1.0, 3.0, (0.25 * d).floor(), (0.5 * d).floor()] {
                let epsilon = (d - 2.0 * m) / scale;
                if m <= d && epsilon < end {
                    let point = profile.at(epsilon);
                    let exact = -(-m / scale).exp_m1();
                    assert!((point.delta - exact).abs() <= 2.0 * point.delta_error, "{shift} {scale} {m} {point:?}");
                    assert!(point.delta_error <= 1e-14 * end.max(1.0), "{point:?}");
                }
            }
            let largest = profile.largest_loss();
            assert!(largest.at_least < end && end < largest.at_most && largest.mass >= 0.49);
        }
        assert!(DiscreteLaplace::new(0, 1.0).is_err() && DiscreteLaplace::new(1, 0.0).is_err());
        assert!(DiscreteLaplace::new(1, f64::NAN).is_err());
    }

    #[test]
    #[allow(clippy::cast_possible_wrap, clippy::cast_precision_loss)] // small integers
    fn moments_are_those_of_all_outcomes_and_of_any_size() {
        let run = Run::default();
        for (shift, scale) in [(1, 0.5_f64), (2, 1.5), (7, 20.0), (40, 3.0)] {
            let (d, q) = (shift as i64, (-1.0 / scale).exp());
            let profile = DiscreteLaplace::new(shift, scale).unwrap();
            for a in [1.1, 1.5, 2.0, 8.0, 30.0] {
                let term = |x: i64| {
                    let loss = real((x - d).abs() - x.abs()) / scale;
                    (1.0 - q) / (1.0 + q) * (-(real(x.abs())) / scale + (a - 1.0) * loss).exp()
                };
                let exact = (-800..=800 + d).map(term).sum::<f64>().ln();
                let found = profile.log_moment(a, &run).unwrap().unwrap();
                assert!(found >= exact * (1.0 - 1e-12) - 1e-13, "{shift} {scale} {a} {found} {exact}");
                assert!(found <= exact * (1.0 + 1e-10) + 1e-12, "{shift} {scale} {a} {found} {exact}");
            }
        }
        // Not more than the Laplace mechanism of the same θ, and not less than nothing.
        for (shift, scale) in [(1 << 50, 1e17), (1 << 50, 1e13), (MOST_SHIFT, 1e-3), (1, 1e300), (3, 1e-300)] {
            let profile = DiscreteLaplace::new(shift, scale).unwrap();
            for a in [1.5, 1000.0] {
                let found = profile.log_moment(a, &run).unwrap().unwrap();
                assert!(
                    found >= 0.0 && found <= (a - 1.0) * profile.end() * (1.0 + 1e-9),
                    "{shift} {scale} {a} {found}"
                );
            }
        }
    }
}
