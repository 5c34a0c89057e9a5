//! Bets: wealth that grows when δ(ε) is smaller (or larger) than claimed.
//!
//! A bet at ε against the claim "E V ≥ t" starts with wealth 1 and multiplies it by 1 + λ(t − V) for each sample, 0 < λ
//! < 1/(c − t) with V ≤ c, the weight bound. If the claim is true the wealth is a non-negative supermartingale, so it
//! ever reaches 1/q with probability at most q (Ville 1939; Waudby-Smith & Ramdas 2024): reaching it certifies E V < t
//! at level q, at any stopping time. With λ < 0, λ > −1/t, the same holds against "E V ≤ t" for any V ≥ 0. ε, t and λ
//! are fixed before the samples are drawn. A mixture of bets with different λ against one claim (the mean of their
//! wealths) is a bet too.
//!
//! V is rounded against the bet: the possible error of the log densities is added to the loss and to the weight (or
//! subtracted from them for λ < 0), then V is cut off at its bound, which the exact V obeys. With a composed profile V
//! is read off the profile, from above for λ > 0 and from below for λ < 0 (see [`crate::montecarlo::value`]), without
//! the curve's tail mass; the claim is then about the remainder.

use crate::error::{domain, Result};
use crate::montecarlo::family::Ratios;
use crate::montecarlo::value::{Bound, Curve};
use crate::vector::functions::{exp, ln};
use crate::vector::{splat, Lanes, Vector};

/// Bets at one ε, which share V.
#[derive(Debug, Clone, PartialEq)]
pub struct BetTable {
    /// ε.
    pub epsilon: f64,
    /// The weight bound, an upper bound on V; see [`crate::montecarlo::weight_bounds`].
    pub weight_bound: f64,
    /// (t, λ) of each bet.
    pub bets: Vec<(f64, f64)>,
}

impl BetTable {
    /// Returns the loss up to which a sample has V = 0 at every ε of these tables, even when it is rounded up; −∞ with
    /// a composed profile.
    pub fn least(tables: &[Self], error: f64, curve: Option<&Curve>) -> f64 {
        if curve.is_some() {
            return f64::NEG_INFINITY;
        }
        // 1 − (1 − 4·error)e^{ε − L} is positive from L = ε + ln(1 − 4·error) on; the rest allows for the rounding of
        // this bound itself.
        tables.iter().map(|table| table.epsilon - 1e-9 * (1.0 + table.epsilon.abs())).fold(f64::INFINITY, f64::min)
            - 8.0 * error
    }

    /// Checks that no sample can cost more than a bet's wealth.
    ///
    /// # Errors
    /// [`Error::Domain`] for an ε that is not finite, and for a bet that could lose more than its wealth.
    pub fn check(&self) -> Result<()> {
        if !self.epsilon.is_finite() {
            return domain("epsilon", self.epsilon, "finite");
        }
        for &(threshold, fraction) in &self.bets {
            let safe = if fraction >= 0.0 {
                fraction * (self.weight_bound - threshold) < 1.0
            } else {
                -fraction * threshold < 1.0
            };
            // λ(t − V) must stay above −1: for λ > 0 at V = c, for λ < 0 at V = 0, where λ(t − V) = λt.
            if !(safe && fraction.is_finite() && threshold.is_finite() && threshold >= 0.0) {
                let allowed = "less than 1/(weight bound − threshold), and greater than −1/threshold";
                return domain("betting fraction", fraction, allowed);
            }
        }
        Ok(())
    }
}

/// Sums over the samples of a shard for one table.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ShardSums {
    /// ln of the wealth of each bet.
    pub log_wealth: Vec<f64>,
    /// Σ V, not rounded to either side: for estimates only.
    pub value: f64,
    /// Σ V².
    pub square: f64,
}

/// Sums while a shard runs, by lane.
#[derive(Debug, Clone)]
pub struct Running {
    wealth: Vec<Lanes>,
    value: Lanes,
    square: Lanes,
}

impl Running {
    /// Creates sums of no samples.
    pub fn new(table: &BetTable) -> Self {
        Self { wealth: vec![splat(0.0); table.bets.len()], value: splat(0.0), square: splat(0.0) }
    }

    /// Adds eight samples with their weights dN/dM and losses; `error` bounds the error of each log density.
    #[inline(always)]
    pub fn add<V: Vector>(&mut self, table: &BetTable, (weight, loss): (V, V), error: f64, curve: Option<&Curve>) {
        // Both log densities of the loss and both of the weight may have an error of `error`.
        let (up, down) = (1.0 + 4.0 * error, 1.0 - 4.0 * error);
        let (zero, one, most) = (V::splat(0.0), V::splat(1.0), V::splat(table.weight_bound));
        let (value, above, below);
        if let Some(curve) = curve {
            let argument = V::splat(table.epsilon).sub(loss);
            let shift = V::splat(4.0 * error + curve.argument_error(table.epsilon));
            value = weight.mul(curve.at(Bound::Above, argument));
            above = weight.mul(V::splat(up)).mul(curve.at(Bound::Above, argument.sub(shift))).min(most);
            below = if table.bets.iter().any(|&(_, fraction)| fraction < 0.0) {
                weight.mul(V::splat(down)).mul(curve.at(Bound::Below, argument.add(shift))).min(most)
            } else {
                zero
            };
        } else {
            let ratio = exp(V::splat(table.epsilon).sub(loss));
            value = weight.mul(one.sub(ratio).max(zero));
            above = weight.mul(V::splat(up)).mul(ratio.mul_add(V::splat(-down), one).max(zero)).min(most);
            below = weight.mul(V::splat(down)).mul(ratio.mul_add(V::splat(-up), one).max(zero)).min(most);
        }
        V::load(&self.value).add(value).store(&mut self.value);
        value.mul_add(value, V::load(&self.square)).store(&mut self.square);
        for (&(threshold, fraction), wealth) in table.bets.iter().zip(&mut self.wealth) {
            let side = if fraction >= 0.0 { above } else { below };
            let growth = ln(V::splat(fraction).mul_add(V::splat(threshold).sub(side), one));
            V::load(wealth).add(growth).store(wealth);
        }
    }

    /// Returns the sums over lanes, in the order of the lanes.
    pub fn finish(&self) -> ShardSums {
        ShardSums {
            log_wealth: self.wealth.iter().map(|lanes| lanes.0.iter().sum()).collect(),
            value: self.value.0.iter().sum(),
            square: self.square.0.iter().sum(),
        }
    }
}

/// A sample's log densities in the roles that they have in a direction.
#[derive(Debug, Clone, Copy)]
pub struct Sides<'a> {
    /// ln of the density that the hockey stick is of.
    pub numerator: &'a Lanes,
    /// ln of the density that is subtracted.
    pub denominator: &'a Lanes,
    /// ln of the density that samples are drawn from.
    pub proposal: &'a Lanes,
}

impl<'a> Sides<'a> {
    /// Assigns the roles: P against Q, or Q against P for `add`.
    #[inline(always)]
    pub fn of(ratios: &'a Ratios, add: bool) -> Self {
        let (numerator, denominator) =
            if add { (&ratios.mirrored, &ratios.mixture) } else { (&ratios.mixture, &ratios.mirrored) };
        Self { numerator, denominator, proposal: &ratios.proposal }
    }

    /// Returns the weight of the samples and their loss.
    #[inline(always)]
    pub fn weighed<V: Vector>(&self) -> (V, V) {
        let numerator = V::load(self.numerator);
        (exp(numerator.sub(V::load(self.proposal))), numerator.sub(V::load(self.denominator)))
    }
}
