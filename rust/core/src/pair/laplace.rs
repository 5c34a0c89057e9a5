//! The Laplace mechanism: a number released with Laplace noise.

use crate::error::{Error, Result};
use crate::exact::{decimal, Enclosure, Rational};
use crate::pair::moments::RELATIVE;
use crate::pair::{LargestLoss, Profile, ProfilePoint, Reversal};
use crate::run::Run;
use crate::special::UNIT_ROUNDOFF;

/// `Lap(0, b)` against `Lap(Δ, b)`, θ = Δ/b: `δ(ε) = 1 − e^{(ε−θ)/2}` for |ε| ≤ θ, `1 − e^ε` below and 0 above.
///
/// * Guarantee: the exact profile of the Laplace mechanism at distance Δ, within the stated error; it dominates all
///   smaller distances (it grows with θ), and it is the same in both directions.
/// * Precision: a few units of rounding.
/// * Source: integration of the two densities; e.g. Balle, Barthe & Gaboardi 2018, Theorem 3.
#[derive(Debug, Clone, PartialEq)]
pub struct Laplace {
    theta: f64,
    /// The quotient of the decimals.
    exact: Rational,
}

impl Laplace {
    /// Creates the profile for a query with this sensitivity and noise of this scale.
    ///
    /// # Errors
    /// [`Error::Domain`] unless both are positive and finite, and so is their quotient.
    pub fn new(sensitivity: f64, scale: f64) -> Result<Self> {
        for (name, value) in
            [("sensitivity", sensitivity), ("scale", scale), ("sensitivity/scale", sensitivity / scale)]
        {
            if !(value > 0.0 && value.is_finite()) {
                return Err(Error::Domain { name, value, allowed: "a positive finite number" });
            }
        }
        Ok(Self { theta: sensitivity / scale, exact: decimal(sensitivity) / decimal(scale) })
    }
}

impl Profile for Laplace {
    fn at_within(&self, epsilon: f64, _bracket: (f64, f64)) -> ProfilePoint {
        let theta = self.theta;
        if epsilon < -theta {
            let (delta, slope) = (-epsilon.exp_m1(), epsilon.exp());
            // At the corner −θ, rounding of θ may decide on which side ε lies; both formulas agree there up to that
            // rounding.
            let rounding = 4.0 * UNIT_ROUNDOFF * (1.0 + theta);
            return ProfilePoint {
                delta,
                delta_error: rounding * delta.max(slope),
                slope,
                slope_error: rounding * slope,
                threshold: f64::NAN,
            };
        }
        let half = 0.5 * (epsilon - theta);
        // θ is a quotient, known to u.
        let argument = UNIT_ROUNDOFF * (theta + 2.0 * half.abs());
        if half >= 0.0 {
            let edge = if half <= argument { argument } else { 0.0 };
            return ProfilePoint { delta: 0.0, delta_error: edge, slope: 0.0, slope_error: edge, threshold: f64::NAN };
        }
        let slope = 0.5 * half.exp();
        ProfilePoint {
            delta: -half.exp_m1(),
            delta_error: 2.0 * argument + 4.0 * UNIT_ROUNDOFF * -half.exp_m1(),
            slope,
            slope_error: slope * (2.0 * argument + 4.0 * UNIT_ROUNDOFF),
            threshold: f64::NAN,
        }
    }

    /// Returns θ, which is the loss of every outcome on the near side of both means: half of the outcomes.
    fn largest_loss(&self) -> LargestLoss {
        let rounding = 2.0 * UNIT_ROUNDOFF;
        LargestLoss { at_least: self.theta * (1.0 - rounding), at_most: self.theta * (1.0 + rounding), mass: 0.5 }
    }

    fn exact_largest_loss(&self) -> Option<Enclosure> {
        Some(Enclosure::exactly(self.exact.clone()))
    }

    /// The two densities are mirror images.
    fn reversal(&self) -> Reversal {
        Reversal::Same
    }

    /// Returns ln[a/(2a−1)·e^{(a−1)θ} + (a−1)/(2a−1)·e^{−aθ}] (Mironov 2017, Proposition 6), as the logarithm of 1 + [a(e^{(a−1)θ}
    /// − 1) − (a − 1)(1 − e^{−aθ})]/(2a − 1).
    fn log_moment(&self, order: f64, _run: &Run) -> Result<Option<f64>> {
        let (a, grown) = (order, (order - 1.0) * self.theta);
        let logarithm = if grown > 600.0 {
            // The second term is below e^{−grown} of the first.
            grown + (a / (2.0 * a - 1.0)).ln() + (-grown).exp()
        } else {
            let (up, down) = (a * grown.exp_m1(), (a - 1.0) * -(-a * self.theta).exp_m1());
            ((up - down + (up + down) * 8.0 * UNIT_ROUNDOFF) / (2.0 * a - 1.0)).ln_1p()
        };
        Ok(Some(logarithm * (1.0 + RELATIVE)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_profile_is_that_of_the_densities() {
        let profile = Laplace::new(1.0, 0.7).unwrap();
        let density = |y: f64, at: f64| (-(y - at).abs() / 0.7).exp() / 1.4;
        for epsilon in [-3.0_f64, -1.5, -1.4, -0.3, 0.0, 0.5, 1.2, 1.4, 1.5, 4.0] {
            // The midpoint rule uses a grid that has the kinks as cell borders.
            let step = 1e-4;
            let sum: f64 = (-400_000..400_000)
                .map(|k| (f64::from(k) + 0.5) * step)
                .map(|y| (density(y, 0.0) - epsilon.exp() * density(y, 1.0)).max(0.0) * step)
                .sum();
            let point = profile.at(epsilon);
            assert!((point.delta - sum).abs() < 1e-7 + point.delta_error, "{epsilon} {} {sum}", point.delta);
        }
    }

    #[test]
    fn the_largest_loss_is_where_the_profile_ends() {
        for scale in [0.3, 1.0, 7.0, 1e6] {
            let profile = Laplace::new(1.0, scale).unwrap();
            let largest = profile.largest_loss();
            assert!(largest.at_least < 1.0 / scale && 1.0 / scale < largest.at_most);
            assert!(profile.at(largest.at_most * (1.0 + 1e-12)).delta.abs() < 1e-300);
            // P(y ≤ 0) for Lap(0, b).
            assert!((largest.mass - 0.5).abs() < 1e-300);
        }
    }

    #[test]
    fn corners_and_slopes() {
        let profile = Laplace::new(2.0, 1.0).unwrap();
        assert!((profile.at(0.0).delta - (1.0 - (-1.0f64).exp())).abs() < 1e-15);
        assert!(profile.at(2.0).delta.abs() < 1e-15);
        assert!(profile.at(2.0 + 1e-9).delta_error.abs() < 1e-300);
        for epsilon in [-2.5, -1.0, 0.3, 1.9] {
            let (left, right) = (profile.at(epsilon - 1e-6).delta, profile.at(epsilon + 1e-6).delta);
            assert!((profile.at(epsilon).slope - (left - right) / 2e-6).abs() < 1e-6);
        }
        assert!(Laplace::new(0.0, 1.0).is_err());
        assert!(Laplace::new(1.0, f64::NAN).is_err());
    }
}
