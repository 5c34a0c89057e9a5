//! The Laplace mechanism: a number released with Laplace noise.

use crate::error::{domain, Result};
use crate::exact::{decimal, Enclosure, Rational};
use crate::pair::moments::RELATIVE;
use crate::pair::pure::square_through;
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
                return domain(name, value, "a positive finite number");
            }
        }
        Ok(Self { theta: sensitivity / scale, exact: decimal(sensitivity) / decimal(scale) })
    }
}

/// Below this θ its ρ is summed as a series.
const SMALL: f64 = 1e-2;

/// Returns θ − 1 + e^{−θ}, rounded up, which is D_a ≤ aρ for every a > 1 (Harrison & Manurangsi, arXiv:2510.25746).
///
/// *Proof.* With c = θ/2 and w = (2a − 1)², the moment is e^{−c}·f(w), f(w) = cosh(c√w) + sinh(c√w)/√w, and a(a − 1) = (w − 1)/4.
/// f is entire, of order ½. Its zeros are those w for which the solution of u″ = wu with u(0) = u′(0) = 1 is 0 at c; this is the
/// eigenvalue problem of a self-adjoint operator, so they are real, and f(w) > 0 for w ≥ 0. So f(w) = f(0)·Π(1 + w/w_i) with
/// w_i > 0 (Hadamard), and ln f is concave. Hence D_a/a = 4(ln f(w) − ln f(1))/(w − 1) is at most its limit for a → 1, the mean
/// loss θ − 1 + e^{−θ}. ∎
pub(super) fn concentration(theta: f64) -> Option<Rational> {
    let rho = if theta < SMALL {
        // Terms alternate and fall, so a sum that ends with a positive one is above.
        theta * theta * (0.5 - theta * (1.0 / 6.0 - theta / 24.0)) * (1.0 + 16.0 * UNIT_ROUNDOFF)
    } else {
        theta + (-theta).exp_m1() + 4.0 * UNIT_ROUNDOFF * (1.0 + theta)
    };
    Rational::from_float(rho)
}

/// Returns μ² of the smallest Gaussian pair that dominates: Φ(−μ/2) = e^{−θ/2}/2, rounded up.
///
/// *Proof.* The trade-off function of the two densities is e^{−θ}/4x for e^{−θ}/2 ≤ x ≤ ½, and straight from there to (0, 1) and to
/// (1, 0). That of N(μ, 1) against N(0, 1) has the points (Φ(−s), Φ(s − μ)), whose product is largest at s = μ/2, since ln Φ is
/// concave; so it is at most e^{−θ}/4, and the function is below the middle part. It is convex with the same ends, so it is
/// below the straight parts too. At s = μ/2 both touch. ∎
pub(super) fn gaussian_square(theta: f64) -> Option<Rational> {
    square_through((-theta / 2.0).exp() / 2.0, -(-theta / 2.0).exp_m1())
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

    fn concentration(&self) -> Option<Rational> {
        concentration(self.theta * (1.0 + 2.0 * UNIT_ROUNDOFF))
    }

    fn gaussian_square(&self) -> Option<Rational> {
        gaussian_square(self.theta * (1.0 + 2.0 * UNIT_ROUNDOFF))
    }
}

#[cfg(test)]
mod tests {
    use num_traits::ToPrimitive;

    use super::*;
    use crate::pair::gaussian::GaussianPair;

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

    #[test]
    fn rho_is_the_supremum_over_orders_and_mu_the_smallest() {
        let run = Run::default();
        for theta in [1e-6, 1e-3, 0.009, 0.011, 0.5, 1.0, 3.0, 40.0] {
            let profile = Laplace::new(theta, 1.0).unwrap();
            let rho = profile.concentration().and_then(|rho| rho.to_f64()).unwrap();
            let orders = (0..300).map(|k| 1.0 + 1e-4 * 1.06_f64.powi(k));
            let each = orders.map(|a| profile.log_moment(a, &run).unwrap().unwrap() / (a - 1.0) / a);
            let largest = each.fold(0.0, f64::max);
            assert!(rho >= largest * (1.0 - 1e-6) && rho <= largest * (1.0 + 1e-3), "{theta} {rho} {largest}");
        }
        for (theta, known) in [(1.0, 1.030_1), (1e-6, 0.0), (20.0, 0.0), (300.0, 0.0)] {
            let profile = Laplace::new(theta, 1.0).unwrap();
            let mu = profile.gaussian_square().and_then(|square| square.to_f64()).unwrap().sqrt();
            assert!(known <= 0.0 || (mu - known).abs() < 1e-4, "{theta} {mu}");
            let (gaussian, less) =
                (GaussianPair::new(mu, 1.0).unwrap(), GaussianPair::new(mu * (1.0 - 1e-6), 1.0).unwrap());
            let mut below = false;
            for k in -400..=400 {
                let epsilon = theta * f64::from(k) / 400.0;
                let (least, most) = profile.bounds(epsilon);
                assert!(least <= gaussian.bounds(epsilon).1 * (1.0 + 1e-12), "{theta} {epsilon}");
                below |= less.bounds(epsilon).1 < most;
            }
            // Both touch at ε = 0, where δ is 1 to rounding for the largest θ.
            assert!(below || theta > 100.0, "{theta}");
        }
    }
}
