//! One record of a fixed-size batch set to zero while every other record opposes it: two concrete data sets.
//!
//! All records but the sensitive one contribute −1, and the sensitive one 1 or, where it is set to zero, 0. The m
//! records drawn contain the sensitive one once or not at all, so the sum is −m + 2, −m + 1 or −m:
//! `P = (1−q)N(0, σ²) + qN(2, σ²)` and `Q = (1−q)N(0, σ²) + qN(1, σ²)` are the exact laws of a round, up to a shift. So
//! the hockey stick of this pair is a lower bound on the worst case, in every round and in the composition of all
//! rounds.
//!
//! The likelihood ratio P/Q falls from 1 and then rises without bound ([`MixturePair::opposed_zero_out`]). So {P > αQ} is a half-line for
//! α ≥ 1, and {Q > αP} is an interval around the place where it is least. Below 1, H_α(P‖Q) = 1 − α + α·H_{1/α}(Q‖P).
//!
//! **Several draws.** If the records in question are drawn j times with probability p_j, P = Σ p_j N(2j, σ²) and Q = Σ p_j N(j, σ²).
//! That their ratio falls and rises is not proven, so what is returned bounds the hockey stick from below: any set of outcomes does.

use std::sync::Arc;

use crate::error::Result;
use crate::laws::Weights;
use crate::pair::mixture::MixturePair;
use crate::pair::{Profile, ProfilePoint, Reversal};
use crate::special::UNIT_ROUNDOFF;

/// The hockey stick of `P = (1−q)N(0, σ²) + qN(2, σ²)` and `Q = (1−q)N(0, σ²) + qN(1, σ²)`, in either order.
///
/// * Guarantee: [`Profile::at`] returns values within their stated errors if a record is drawn at most once; otherwise they are at most
///   that error above the profile.
/// * Precision: that of [`MixturePair`], and about 10⁻¹⁵ for intervals.
/// * Source: the head of this file.
#[derive(Debug, Clone, PartialEq)]
pub struct Opposed {
    pair: MixturePair,
    /// Where the likelihood ratio is least.
    bottom: f64,
    /// Whether it is H(Q‖P).
    reverse: bool,
}

/// The steps of a search for the end of an interval, and how far to the left it goes.
const STEPS: u32 = 80;
const FAR: f64 = 64.0;
/// The grid on which the least ratio is looked for.
const LEFTMOST: f64 = 12.0;
const PLACES: u32 = 600;

impl Opposed {
    /// Creates the pair; `weights` is the law of how often the records in question are drawn.
    ///
    /// # Errors
    /// [`crate::Error::Domain`] unless σ is positive and finite.
    pub fn new(weights: &Weights, noise_multiplier: f64) -> Result<Self> {
        let pair = MixturePair::opposed_zero_out(weights, noise_multiplier)?;
        // Where it is least on a grid, and then in thirds around that place; further left it is 1 but for its rounding.
        let right = 1.5 / noise_multiplier;
        let place = |k: u32| right - (right + LEFTMOST) * f64::from(k) / f64::from(PLACES);
        let least = (0..=PLACES).map(place).fold((0.0, right), |least, y| {
            let loss = pair.loss(y).0;
            if loss < least.0 {
                (loss, y)
            } else {
                least
            }
        });
        let around = (right + LEFTMOST) / f64::from(PLACES);
        let (mut low, mut high) = (least.1 - around, (least.1 + around).min(right));
        for _ in 0..2 * STEPS {
            let (one, other) = (low + (high - low) / 3.0, high - (high - low) / 3.0);
            if pair.loss(one).0 < pair.loss(other).0 {
                high = other;
            } else {
                low = one;
            }
        }
        let bottom = 0.5 * (low + high);
        Ok(Self { pair: pair.rising_from(bottom), bottom, reverse: false })
    }

    /// Returns the pair (Q, P).
    #[must_use]
    pub fn reversed(&self) -> Self {
        Self { reverse: !self.reverse, ..self.clone() }
    }

    /// Returns a bracket of the first place right of the bottom where the loss exceeds ε ≥ 0. With many draws the loss falls again far
    /// to the right, where hardly any mass is.
    fn around(&self, epsilon: f64, bracket: (f64, f64)) -> (f64, f64) {
        let (mut low, mut step) = (bracket.0.max(self.bottom), 0.25);
        while self.pair.loss(low + step).0 < epsilon && step < 1e6 {
            low += step;
            step *= 1.5;
        }
        (low, bracket.1.min(low + step).max(low))
    }

    /// Returns H_α(Q‖P) for α = e^ε ≥ 1. For any interval it is the difference of the two masses at least.
    fn interval(&self, epsilon: f64) -> ProfilePoint {
        let excess = |y: f64| self.pair.loss(y).0 + epsilon;
        let crossing = |mut inside: f64, mut outside: f64| {
            for _ in 0..STEPS {
                let middle = 0.5 * (inside + outside);
                if excess(middle) < 0.0 {
                    inside = middle;
                } else {
                    outside = middle;
                }
            }
            inside
        };
        if excess(self.bottom) >= 0.0 {
            // The loss of (Q, P) is at most −L here.
            let (loss, _, rounding) = self.pair.loss(self.bottom);
            let rounding = rounding + self.pair.weight_error();
            let hardly = if rounding - loss > epsilon { rounding * 2.0 } else { 0.0 };
            return ProfilePoint {
                delta: 0.0,
                delta_error: hardly,
                slope: 0.0,
                slope_error: hardly,
                threshold: f64::NAN,
            };
        }
        let left = self.bottom - FAR;
        let low = if excess(left) < 0.0 { f64::NEG_INFINITY } else { crossing(self.bottom, left) };
        let mut right = self.bottom.max(0.0) + 1.0;
        while excess(right) < 0.0 && right < 1e9 {
            right *= 2.0;
        }
        let high = crossing(self.bottom, right);
        let (own, replaced) = self.pair.masses_between(low, high, epsilon);
        // What is on the wrong side of an end has nearly equal masses.
        let residual = |y: f64| {
            if y.is_finite() {
                let (loss, _, rounding) = self.pair.loss(y);
                (loss + epsilon).abs() + rounding + self.pair.weight_error()
            } else {
                0.0
            }
        };
        let wrong = 2.0 * residual(low).max(residual(high)).exp_m1();
        let point = ProfilePoint::of(own, replaced);
        ProfilePoint { delta_error: point.delta_error + wrong, ..point }
    }
}

impl Profile for Opposed {
    fn at_within(&self, epsilon: f64, bracket: (f64, f64)) -> ProfilePoint {
        let direct = |epsilon: f64, reverse: bool| {
            if reverse {
                self.interval(epsilon)
            } else {
                self.pair.at_within(epsilon, self.around(epsilon, bracket))
            }
        };
        if epsilon >= 0.0 {
            return direct(epsilon, self.reverse);
        }
        let (alpha, other) = (epsilon.exp(), direct(-epsilon, !self.reverse));
        let rounding = 8.0 * UNIT_ROUNDOFF;
        ProfilePoint {
            delta: -epsilon.exp_m1() + alpha * other.delta,
            delta_error: alpha * other.delta_error + rounding,
            slope: (alpha * (1.0 - other.delta - other.slope)).max(0.0),
            slope_error: alpha * (other.delta_error + other.slope_error) + rounding,
            threshold: f64::NAN,
        }
    }

    fn reversal(&self) -> Reversal {
        Reversal::Other(Arc::new(self.reversed()))
    }
}
