//! One record of a fixed-size batch set to zero while every other record opposes it: two concrete data sets.
//!
//! All records but the sensitive one contribute −1, and the sensitive one 1 or, where it is set to zero, 0. The m
//! records drawn contain the sensitive one once or not at all, so the sum is −m + 2, −m + 1 or −m:
//! `P = (1−q)N(0, σ²) + qN(2, σ²)` and `Q = (1−q)N(0, σ²) + qN(1, σ²)` are the exact laws of a round, up to a shift. So
//! the hockey stick of this pair is a lower bound on the worst case, in every round and in the composition of all
//! rounds.
//!
//! The likelihood ratio P/Q falls from 1 and then rises without bound ([`MixturePair::opposed_zero_out`]). With c = 1/σ and u =
//! e^{cy − c²/2} it is least where `qu² + 2(1−q)u = (1−q)e^{c²}`. So {P > αQ} is a half-line for α ≥ 1, and {Q > αP} is an interval
//! around that place. Below 1, H_α(P‖Q) = 1 − α + α·H_{1/α}(Q‖P).

use std::sync::Arc;

use crate::error::Result;
use crate::laws::Weights;
use crate::pair::mixture::MixturePair;
use crate::pair::{Profile, ProfilePoint, Reversal};
use crate::special::UNIT_ROUNDOFF;

/// The hockey stick of `P = (1−q)N(0, σ²) + qN(2, σ²)` and `Q = (1−q)N(0, σ²) + qN(1, σ²)`, in either order.
///
/// * Guarantee: [`Profile::at`] returns values within their stated errors.
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

impl Opposed {
    /// Creates the pair; `weights` is the law of how often the record is drawn, on 0 and 1, or on 1 alone.
    ///
    /// # Errors
    /// [`crate::Error::Domain`] unless σ is positive and finite.
    pub fn new(weights: &Weights, noise_multiplier: f64) -> Result<Self> {
        let pair = MixturePair::opposed_zero_out(weights, noise_multiplier)?;
        let [stay, drawn] = weights.log_probability[..] else {
            // The record is always drawn: this is one Gaussian against another, whose ratio rises everywhere.
            return Ok(Self { pair, bottom: f64::NEG_INFINITY, reverse: false });
        };
        let (stay, drawn, c) = (stay.exp(), drawn.exp(), 1.0 / noise_multiplier);
        // This is the root u of the quadratic, divided by e^{c²/2}, which may overflow.
        let scaled = stay * (-0.5 * c * c).exp();
        let log_ratio = (stay / (scaled + (scaled * scaled + drawn * stay).sqrt())).ln();
        Ok(Self { pair, bottom: c + log_ratio / c, reverse: false })
    }

    /// Returns the pair (Q, P).
    #[must_use]
    pub fn reversed(&self) -> Self {
        Self { reverse: !self.reverse, ..self.clone() }
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
        let mut low = self.bottom;
        if low > f64::NEG_INFINITY {
            if excess(low) >= 0.0 {
                // The loss of (Q, P) is at most −L here.
                let (loss, _, rounding) = self.pair.loss(low);
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
            let left = low - FAR;
            low = if excess(left) < 0.0 { f64::NEG_INFINITY } else { crossing(low, left) };
        }
        let start = if low > f64::NEG_INFINITY || self.bottom > f64::NEG_INFINITY { self.bottom } else { -FAR };
        let mut right = start.max(0.0) + 1.0;
        while excess(right) < 0.0 && right < 1e9 {
            right *= 2.0;
        }
        let high = crossing(start, right);
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
                self.pair.at_within(epsilon, bracket)
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
