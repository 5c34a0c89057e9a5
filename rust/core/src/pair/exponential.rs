//! The exponential mechanism, and every mechanism of bounded range.
//!
//! The losses of a mechanism of bounded range r lie in an interval of length r. For each 0 < t < r the two-point losses
//! t and t − r, with P-mass p_t = (e^r − e^t)/(e^r − 1) at t, are such a mechanism, and the supremum of their profiles
//! is that of all (Dong, Durfee & Rogers 2020, arXiv:1909.13830, Lemma 3.3 and Theorem 2):
//!
//! `h(α) = sup_t p_t (1 − αe^{−t}) = (e^{r/2} − √α)²/(e^r − 1)` on [e^{−r}, e^r], at e^t = √α·e^{r/2};
//!
//! 1 − α below and 0 above. It is convex, as a supremum of convex functions, and its own reflection, so it is the
//! profile of both directions. No single t attains it at every α: composed, it is an upper bound, and
//! [`super::exponential_runs`] has a smaller one.
//!
//! With x = (r − ε)/2 this is `(1 − e^{−x})²/(1 − e^{−r})`, and −dh/dε = (1 − e^{−x})e^{−x}/(1 − e^{−r}): products of
//! positive numbers, each known to a few units of rounding, since r is given and r − ε is rounded once.

use crate::error::{domain, Result};
use crate::exact::{decimal, Enclosure, Rational};
use crate::pair::moments::{ABSOLUTE, RELATIVE};
use crate::pair::{pure, LargestLoss, Profile, ProfilePoint, Reversal};
use crate::run::Run;
use crate::special::{UNDERFLOW, UNIT_ROUNDOFF};

/// The profile of every mechanism of bounded range r, in both directions.
///
/// * Formula: `(e^{r/2} − e^{ε/2})²/(e^r − 1)` for |ε| ≤ r.
/// * Units: r and ε in nats. r is 2ηΔ where outcomes have the weight e^{ηu} and one record moves utilities u by at most
///   Δ, and ηΔ where it moves all of them in the same direction.
/// * Guarantee: [`Profile::at_within`] returns values within their stated errors.
/// * Precision: a few units of rounding.
/// * Source: Dong, Durfee & Rogers 2020, arXiv:1909.13830.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Exponential {
    range: f64,
    /// 1 − e^{−r}.
    span: f64,
}

impl Exponential {
    /// Creates the profile for this range.
    ///
    /// # Errors
    /// [`Error::Domain`] unless the range is positive and finite.
    pub fn new(range: f64) -> Result<Self> {
        if !(range > 0.0 && range.is_finite()) {
            return domain("range", range, "a positive finite number");
        }
        Ok(Self { range, span: -(-range).exp_m1() })
    }
}

/// Beyond this product of order and range, and below this range, the worst two losses are not computed.
const LARGEST_POWER: f64 = 300.0;
const SMALLEST_RANGE: f64 = 1e-3;
/// Below this range ρ is r²/8, which is larger by a relative r²/72.
const SMALL_RANGE: f64 = 0.05;

/// Returns an upper bound on ln E_Q[(P/Q)^a] of all losses within an interval of this length.
///
/// It is the smallest of three bounds. The losses lie in an interval [t − r, t] and E_P e^{−L} = 1; e^{(a−1)L} is a convex
/// function of e^{−L}, so the two ends are worst: `sup_t p_t·e^{(a−1)t} + (1 − p_t)·e^{(a−1)(t−r)}`. The derivative in t has one
/// root, e^t = (a−1)(e^r − e^{−(a−1)r})/(a(1 − e^{−(a−1)r})). By Hoeffding's lemma it is at most e^{a(a−1)r²/8} (Cesar & Rogers
/// 2021, arXiv:2004.07223), and losses of range r are at most r in both directions.
pub(super) fn log_moment(r: f64, a: f64) -> f64 {
    let least = (a * (a - 1.0) * r * r / 8.0 * (1.0 + RELATIVE)).min(pure::log_moment(r, a));
    if a * r > LARGEST_POWER || r < SMALLEST_RANGE {
        return least;
    }
    let shrunk = (-(a - 1.0) * r).exp();
    let t = ((a - 1.0) * (r.exp() - shrunk) / (a * (1.0 - shrunk))).ln().clamp(0.0, r);
    let mass = (r.exp() - t.exp()) / r.exp_m1();
    let value = mass * ((a - 1.0) * t).exp() + (1.0 - mass) * ((a - 1.0) * (t - r)).exp();
    // The root is placed with an error of a few units, and the maximum is flat there.
    least.min(value.ln() + ABSOLUTE * (1.0 + 4.0 * a * (1.0 + r)))
}

/// Returns a ρ with D_a ≤ aρ for this range: `ln((e^r − 1)/r) − 1 + r/(e^r − 1)`, or r²/8 by Hoeffding's lemma, which is larger.
///
/// The former is the largest mean loss of two losses t and t − r, at e^t = (e^r − 1)/r, and the supremum of D_a/a is there, at a
/// → 1 (Harrison & Manurangsi, arXiv:2510.25746). It is rounded up; below [`SMALL_RANGE`] it would lose its digits.
pub(super) fn concentration(range: f64) -> Rational {
    let exact = decimal(range);
    let hoeffding = &exact * &exact / Rational::from_integer(8.into());
    if range < SMALL_RANGE {
        return hoeffding;
    }
    let r = range * (1.0 + 2.0 * UNIT_ROUNDOFF);
    let rho = r + (-(-r).exp()).ln_1p() - r.ln() - 1.0 + r / r.exp_m1() + 16.0 * UNIT_ROUNDOFF * (1.0 + r);
    Rational::from_float(rho).map_or(hoeffding.clone(), |rho| rho.min(hoeffding))
}

impl Profile for Exponential {
    fn at_within(&self, epsilon: f64, _bracket: (f64, f64)) -> ProfilePoint {
        let r = self.range;
        if epsilon >= r {
            return ProfilePoint { delta: 0.0, delta_error: 0.0, slope: 0.0, slope_error: 0.0, threshold: f64::NAN };
        }
        let rounding = 16.0 * UNIT_ROUNDOFF;
        let (delta, slope, distance) = if epsilon <= -r {
            (-epsilon.exp_m1(), epsilon.exp(), 0.0)
        } else {
            let x = 0.5 * (r - epsilon);
            let missing = -(-x).exp_m1();
            (missing * missing / self.span, missing * (-x).exp() / self.span, x.min(800.0))
        };
        ProfilePoint {
            delta: delta.min(1.0),
            delta_error: rounding * delta + UNDERFLOW,
            slope,
            slope_error: (rounding + 2.0 * UNIT_ROUNDOFF * distance) * slope + UNDERFLOW,
            threshold: f64::NAN,
        }
    }

    /// Returns r. As ε rises to r, the mass of the outcomes {L > ε} falls to 0, so no mass is known there.
    fn largest_loss(&self) -> LargestLoss {
        LargestLoss { at_least: self.range, at_most: self.range, mass: 0.0 }
    }

    fn exact_largest_loss(&self) -> Option<Enclosure> {
        Some(Enclosure::exactly(decimal(self.range)))
    }

    /// h is its own reflection: (e^{r/2} − √α)² = α·(e^{r/2} − √(1/α))² + (1 − α)(e^r − 1).
    fn reversal(&self) -> Reversal {
        Reversal::Same
    }

    fn log_moment(&self, order: f64, _run: &Run) -> Result<Option<f64>> {
        Ok(Some(log_moment(self.range, order)))
    }

    fn concentration(&self) -> Option<Rational> {
        Some(concentration(self.range))
    }
}

#[cfg(test)]
mod tests {
    use num_traits::ToPrimitive;

    use super::*;

    /// Returns the largest profile of two-point losses t, t − r over a grid of t.
    fn supremum(r: f64, epsilon: f64) -> f64 {
        let two = |t: f64| {
            let mass = (t - r).exp_m1() / (-r).exp_m1();
            let over = |loss: f64| (-(epsilon - loss).exp_m1()).max(0.0);
            mass * over(t) + (1.0 - mass) * over(t - r)
        };
        (0..=40_000).map(|k| two(r * f64::from(k) / 40_000.0)).fold(0.0, f64::max)
    }

    #[test]
    fn the_profile_is_the_supremum_of_two_point_losses() {
        for r in [1e-3, 0.2, 1.0, 6.0] {
            let profile = Exponential::new(r).unwrap();
            for share in [-1.3, -1.0, -0.8, -0.1, 0.0, 0.3, 0.9, 0.99, 1.0, 2.0] {
                let (point, least) = (profile.at(share * r), supremum(r, share * r));
                assert!(point.delta + point.delta_error >= least * (1.0 - 1e-11), "{r} {share} {point:?} {least}");
                assert!(point.delta <= least * (1.0 + 1e-6) + 1e-15, "{r} {share} {point:?} {least}");
            }
        }
    }

    #[test]
    fn lines_support_it_at_any_range() {
        for r in [1e-6, 1e-2, 3.0, 100.0, 700.0, 2000.0] {
            let profile = Exponential::new(r).unwrap();
            let all: Vec<f64> = (-60..60).map(|k| f64::from(k) / 40.0 * r).collect();
            for &at in &all {
                let line = profile.at(at);
                assert!(line.delta.is_finite() && line.slope.is_finite() && line.delta >= 0.0);
                for &other in &all {
                    let (point, change) = (profile.at(other), (other - at).exp_m1());
                    if !change.is_finite() {
                        continue;
                    }
                    let slope = line.slope + line.slope_error * change.signum();
                    let below = line.delta - line.delta_error - slope * change;
                    let rounding = 4.0 * UNIT_ROUNDOFF * (line.delta + (slope * change).abs());
                    assert!(below <= point.delta + point.delta_error + rounding, "{r} {at} {other}");
                }
            }
        }
        assert!(Exponential::new(0.0).is_err() && Exponential::new(f64::NAN).is_err());
        assert!(Exponential::new(f64::INFINITY).is_err());
    }

    #[test]
    fn moments_are_those_of_the_worst_two_point_losses() {
        for r in [0.05_f64, 1.0, 6.0] {
            for a in [1.1, 1.5, 2.0, 8.0, 30.0] {
                let two = |t: f64| {
                    let mass = (r.exp() - t.exp()) / r.exp_m1();
                    mass * ((a - 1.0) * t).exp() + (1.0 - mass) * ((a - 1.0) * (t - r)).exp()
                };
                let worst = (0..=20_000).map(|k| two(r * f64::from(k) / 20_000.0)).fold(0.0, f64::max).ln();
                let found = log_moment(r, a);
                assert!(found >= worst * (1.0 - 1e-12), "{r} {a} {found} {worst}");
                assert!(found <= worst * (1.0 + 1e-6) + 1e-12, "{r} {a} {found} {worst}");
                assert!(found <= a * (a - 1.0) * r * r / 8.0 * (1.0 + 1e-12));
            }
        }
        assert!(log_moment(900.0, 64.0).is_finite() && log_moment(1e-8, 64.0) > 0.0);
        // The supremum of D_a/a over a grid of orders, which is near its limit at 1.
        for r in [1e-3_f64, 0.04, 0.06, 1.0, 6.0, 40.0] {
            let largest = (0..400).map(|k| 1.0 + 1e-3 * 1.05_f64.powi(k)).map(|a| log_moment(r, a) / (a - 1.0) / a);
            let (largest, rho) = (largest.fold(0.0, f64::max), concentration(r).to_f64().unwrap());
            assert!(rho >= largest * (1.0 - 1e-6) && rho <= largest * (1.0 + 5e-3), "{r} {rho} {largest}");
        }
    }
}
