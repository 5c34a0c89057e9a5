//! One record that is sampled with a small probability.
//!
//! The pair of [`super::mixture::MixturePair::poisson`], written so that no number of the size of p is the difference of numbers
//! near 1. With c = 1/σ, `z = 1 + (α − 1)/p` and `τ = ln(z)/c + c/2` the likelihood ratio of N(c, 1) and N(0, 1) is z
//! at τ, and
//!
//! * remove: `H_α((1−p)N(0) + pN(c) ‖ N(0)) = p (Φ(c − τ) − zΦ(−τ))` for z > 0, and 1 − α otherwise;
//! * add: `H_α(N(0) ‖ (1−p)N(0) + pN(c)) = αp (zΦ(τ) − Φ(τ − c))` with `z = 1 + (1/α − 1)/p`, and 0 for z ≤ 0:
//!
//! with `α(1 − p + pz) = 1` the half-line y < τ has the difference `Φ(τ)(1 − α(1−p)) − αpΦ(τ − c)`. The losses lie
//! above ln(1−p) (remove) or below −ln(1−p) (add). Each of a million rounds has an error of 10⁻¹⁶ of p rather than of
//! 1, so their total error is negligible.

use std::sync::Arc;

use crate::error::{domain, Result};
use crate::pair::moments::rounded_shift;
use crate::pair::{LargestLoss, Profile, ProfilePoint, Reversal};
use crate::special::{scaled_upper_tail, upper_tail, UNIT_ROUNDOFF};

/// `(1−p)N(0, σ²) + pN(1, σ²)` against `N(0, σ²)`, or the other direction of the same pair.
///
/// * Guarantee: [`Profile::at_within`] returns values within their stated errors.
/// * Precision: about 10⁻¹⁵ of p where losses are near ln(1 − p), and of δ in the tail, as in [`scaled_upper_tail`].
/// * Source: Balle, Barthe & Gaboardi 2018, Theorem 2, for remove; the head of this file for add.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RarePair {
    probability: f64,
    /// c = 1/σ.
    shift: f64,
    reverse: bool,
}

impl RarePair {
    /// Creates the pair for a record that takes part with this probability; `reverse` gives the add direction.
    ///
    /// # Errors
    /// [`Error::Domain`] unless 0 < p < 1 and σ is positive and finite.
    pub fn new(probability: f64, noise_multiplier: f64, reverse: bool) -> Result<Self> {
        if !(probability > 0.0 && probability < 1.0) {
            return domain("probability", probability, "between 0 and 1");
        }
        let shift = 1.0 / noise_multiplier;
        if !(shift > 0.0 && shift.is_finite()) {
            return domain("noise_multiplier", noise_multiplier, "a positive finite number");
        }
        Ok(Self { probability, shift, reverse })
    }

    /// Returns ln z, for z = 1 + (e^x − 1)/p, and a bound on the error of ln z, from x; `None` where z is below
    /// [`CORNER`] or not positive.
    fn ratio(&self, x: f64) -> Option<(f64, f64)> {
        let excess = x.exp_m1() / self.probability;
        let z = 1.0 + excess;
        if z <= CORNER {
            return None;
        }
        // e^x may overflow; beyond x = 1 nothing cancels.
        let log = if x < 1.0 {
            excess.ln_1p()
        } else {
            x - self.probability.ln() + (-(1.0 - self.probability) * (-x).exp()).ln_1p()
        };
        let cancelled = if excess < 0.0 { -excess / z } else { 1.0 };
        Some((log, UNIT_ROUNDOFF * (6.0 + 4.0 * cancelled + 4.0 * log.abs() + 2.0 * x.abs())))
    }

    /// Returns an upper bound on pzΦ(τ), from x, where z is below [`CORNER`]; 0 where z is certainly not positive.
    ///
    /// zΦ(τ) increases with z. The numbers that are rounded are e^x − 1, a quotient of a size near 1, and a sum.
    fn at_most_in_corner(&self, x: f64) -> f64 {
        let z = 1.0 + x.exp_m1() / self.probability + 8.0 * UNIT_ROUNDOFF;
        if z <= 0.0 {
            return 0.0;
        }
        let (center, c) = (z.ln() / self.shift, self.shift);
        let tail = upper_tail(-center - 0.5 * c, UNIT_ROUNDOFF * (4.0 * center.abs() + 4.0 * c));
        self.probability * z * (tail.value + tail.error) * (1.0 + 8.0 * UNIT_ROUNDOFF)
    }

    fn remove(&self, epsilon: f64) -> ProfilePoint {
        let Some((log, log_error)) = self.ratio(epsilon) else {
            let (delta, slope) = (-epsilon.exp_m1(), epsilon.exp());
            // δ = p(1 − Φ(τ − c) − z + zΦ(τ)) lies above 1 − α = p(1 − z) by at most pzΦ(τ).
            let edge = self.at_most_in_corner(epsilon);
            return ProfilePoint {
                delta,
                delta_error: edge + 4.0 * UNIT_ROUNDOFF * delta.abs(),
                slope,
                slope_error: 4.0 * UNIT_ROUNDOFF * slope,
                threshold: f64::NAN,
            };
        };
        let (p, c) = (self.probability, self.shift);
        let center = log / c;
        let x_error = UNIT_ROUNDOFF * (3.0 * center.abs() + 4.0 * c);
        let above = upper_tail(center - 0.5 * c, x_error).scaled(p, UNIT_ROUNDOFF);
        let below = scaled_upper_tail(log, center + 0.5 * c, x_error).scaled(p, UNIT_ROUNDOFF);
        // z is used in both terms, so an error in it costs only the slope times that error.
        let slope = scaled_upper_tail(epsilon, center + 0.5 * c, x_error);
        let delta = above.value - below.value;
        ProfilePoint {
            delta: delta.max(0.0),
            delta_error: above.error
                + below.error
                + below.value * 2.0 * log_error.exp_m1()
                + UNIT_ROUNDOFF * delta.abs(),
            slope: slope.value,
            slope_error: slope.error,
            threshold: f64::NAN,
        }
    }

    fn add(&self, epsilon: f64) -> ProfilePoint {
        let (p, c) = (self.probability, self.shift);
        let Some((log, log_error)) = self.ratio(-epsilon) else {
            // δ is at most αpzΦ(τ), and 0 is a supporting line.
            let delta_error = self.at_most_in_corner(-epsilon) * epsilon.exp() * (1.0 + 8.0 * UNIT_ROUNDOFF);
            return ProfilePoint { delta: 0.0, delta_error, slope: 0.0, slope_error: 0.0, threshold: f64::NAN };
        };
        let center = log / c;
        let x_error = UNIT_ROUNDOFF * (3.0 * center.abs() + 4.0 * c);
        // α p z = 1 − α(1 − p).
        let (rest, kept) = (-epsilon.exp_m1(), p * epsilon.exp());
        let factor = (rest + kept).max(0.0);
        let cancelled = 4.0 * UNIT_ROUNDOFF * (rest.abs() + kept);
        let (ahead, behind) = (upper_tail(-center - 0.5 * c, x_error), upper_tail(0.5 * c - center, x_error));
        let above = ahead.scaled(factor, 0.0);
        let below = behind.scaled(kept, 4.0 * UNIT_ROUNDOFF);
        let delta = above.value - below.value;
        let alpha = epsilon.exp();
        let slope = ahead.scaled(alpha * (1.0 - p), 8.0 * UNIT_ROUNDOFF);
        let more = behind.scaled(kept, 8.0 * UNIT_ROUNDOFF);
        ProfilePoint {
            delta: delta.max(0.0),
            delta_error: above.error
                + below.error
                + above.value * 2.0 * log_error.exp_m1()
                + cancelled * (ahead.value + ahead.error)
                + UNIT_ROUNDOFF * delta.abs(),
            slope: slope.value + more.value,
            slope_error: slope.error + more.error + 2.0 * UNIT_ROUNDOFF * (slope.value + more.value),
            threshold: f64::NAN,
        }
    }
}

/// Where z is below this, δ is known well enough without ln z.
const CORNER: f64 = 1e-12;

impl Profile for RarePair {
    fn at_within(&self, epsilon: f64, _bracket: (f64, f64)) -> ProfilePoint {
        if self.reverse {
            self.add(epsilon)
        } else {
            self.remove(epsilon)
        }
    }

    /// Returns −ln(1 − p) in the add direction: no outcome is more than 1/(1 − p) times as probable without the record.
    fn largest_loss(&self) -> LargestLoss {
        if !self.reverse {
            return LargestLoss::UNBOUNDED;
        }
        let (end, rounding) = (-(-self.probability).ln_1p(), 4.0 * UNIT_ROUNDOFF);
        LargestLoss { at_least: end * (1.0 - rounding), at_most: end * (1.0 + rounding), mass: 0.0 }
    }

    fn reversal(&self) -> Reversal {
        Reversal::Other(Arc::new(Self { reverse: !self.reverse, ..*self }))
    }

    fn dominating_shift(&self) -> Option<f64> {
        Some(rounded_shift(self.shift))
    }
}
