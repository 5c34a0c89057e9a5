//! One record of a fixed-size batch set to zero while every other record opposes it: two concrete data sets.
//!
//! All records but the sensitive one contribute −1, and the sensitive one 1 or, where it is set to zero, 0. The m
//! records drawn contain the sensitive one once or not at all, so the sum is −m + 2, −m + 1 or −m:
//! `P = (1−q)N(0, σ²) + qN(2, σ²)` and `Q = (1−q)N(0, σ²) + qN(1, σ²)` are the exact laws of a round, up to a shift. So
//! the hockey stick of this pair is a lower bound on the worst case, in every round and in the composition of all
//! rounds.

use crate::error::Result;
use crate::laws::Weights;
use crate::pair::mixture::MixturePair;
use crate::pair::{Profile, ProfilePoint};
use crate::special::UNIT_ROUNDOFF;

/// `sup_τ P(y > τ) − e^ε Q(y > τ)` for `P = (1−q)N(0, σ²) + qN(2, σ²)` and `Q = (1−q)N(0, σ²) + qN(1, σ²)`.
///
/// * Guarantee: at most H_{e^ε}(P‖Q) within the stated errors, and equal to it for ε ≥ 0; convex, a supremum of lines
///   in α = e^ε.
/// * Precision: that of [`MixturePair`].
/// * Source: the likelihood ratio falls from 1 and then rises (see [`MixturePair::opposed_zero_out`]); with c = 1/σ and
///   u = e^{cy − c²/2} it is least where `qu² + 2(1−q)u = (1−q)e^{c²}`. The best half-line begins where the ratio
///   crosses α upwards, or is the whole line: then the difference is 1 − α.
#[derive(Debug, Clone, PartialEq)]
pub struct Opposed {
    pair: MixturePair,
    /// The least loss; below it, the whole line is the best half-line.
    least: f64,
}

impl Opposed {
    /// Creates the pair; `weights` is the law of how often the record is drawn, on 0 and 1, or on 1 alone.
    ///
    /// # Errors
    /// [`crate::Error::Domain`] unless σ is positive and finite.
    pub fn new(weights: &Weights, noise_multiplier: f64) -> Result<Self> {
        let pair = MixturePair::opposed_zero_out(weights, noise_multiplier)?;
        let [stay, drawn] = weights.log_probability[..] else {
            // The record is always drawn: this is one Gaussian against another, whose ratio rises everywhere.
            return Ok(Self { pair: pair.rising_from(f64::NEG_INFINITY), least: f64::NEG_INFINITY });
        };
        let (stay, drawn, c) = (stay.exp(), drawn.exp(), 1.0 / noise_multiplier);
        // This is the root u of the quadratic, divided by e^{c²/2}, which may overflow.
        let scaled = stay * (-0.5 * c * c).exp();
        let log_ratio = (stay / (scaled + (scaled * scaled + drawn * stay).sqrt())).ln();
        let pair = pair.rising_from(c + log_ratio / c);
        let least = pair.loss_at_start();
        Ok(Self { pair, least })
    }
}

impl Profile for Opposed {
    fn at_within(&self, epsilon: f64, bracket: (f64, f64)) -> ProfilePoint {
        let (delta, slope) = (-epsilon.exp_m1(), epsilon.exp());
        let rounding = 4.0 * UNIT_ROUNDOFF;
        let whole = ProfilePoint {
            delta,
            delta_error: rounding * delta.abs(),
            slope,
            slope_error: rounding * slope,
            threshold: f64::NAN,
        };
        if epsilon <= self.least {
            return whole;
        }
        let half = self.pair.at_within(epsilon, bracket);
        if half.delta >= delta {
            half
        } else {
            // Either may be the larger one: neither is above the supremum.
            ProfilePoint { delta_error: whole.delta_error + half.delta_error, ..whole }
        }
    }
}
