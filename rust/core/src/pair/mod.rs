//! The privacy profile of one round, for every way to describe a round.
//!
//! A *profile* is the convex, decreasing function δ(ε) = H_{e^ε}(P‖Q) of one direction of one round, where (P, Q) is a
//! dominating pair, or any convex bound on it. This room takes the parameters of a round and returns its two profiles
//! (remove and add). It must not know about composition, targets or documents.
//!
//! One file each: [`gaussian`] (the Gaussian mechanism), [`mixture`] (pairs of Gaussian mixtures, whose components are
//! in `components`, and their thresholds in `threshold`), [`poisson`] (records that take part independently), [`rare`] (one
//! record that rarely takes part),
//! [`substitution`] (batches of fixed size with replaced records), [`hull`] (the best of several bounds), [`laplace`],
//! [`discrete`] (finite pairs), [`public`] (participation that the attacker knows), [`summed`] (what sums of rounds
//! reveal about secret participation), [`allocation`] (one of several rounds, chosen in secret), [`truncated`] (Poisson
//! sampling with truncated batches); [`discrete_laplace`], [`discrete_gaussian`], [`skellam`] and
//! [`parties`] (noise on the integers, the last two with `integers`, which has symmetric log-concave laws),
//! [`exponential`] (mechanisms of bounded range), [`exponential_runs`] (several of these in a row), [`tabulated`] (stated
//! values), [`renyi`] (stated Rényi bounds), [`subsampled`] (Poisson sampling of any of these), [`sometimes`] (draws of
//! which the output may tell), [`selection`] (the best of a random number of their runs); [`amplification`] (one draw
//! before any mechanism); [`shown`] (an outcome that shows the record, beside any of these), [`worst`] (which of several pairs
//! the data sets have is not known); [`batch`] has the laws of how many sensitive records a batch holds.
//! [`check`] has what every profile satisfies.
//!
//! A fact of a pair has its home in the pair's file: its largest loss, its reversal, what losses are infinite, its Rényi
//! divergences and what bounds them. Wrappers derive theirs from the profiles inside. Nobody else knows them. [`moments`] has
//! the divergences of a pair of which only the profile is known, `sampled_moments` those under Poisson sampling, and [`pure`]
//! what follows from the largest losses.

pub mod allocation;
pub mod amplification;
pub mod batch;
pub mod check;
mod components;
pub mod discrete;
pub mod discrete_gaussian;
pub mod discrete_laplace;
pub mod exponential;
pub mod exponential_runs;
pub mod gaussian;
pub mod hull;
mod integers;
pub mod laplace;
pub mod mixture;
pub mod moments;
pub mod opposed;
pub mod parties;
pub mod poisson;
pub mod public;
pub mod pure;
pub mod rare;
pub mod renyi;
mod sampled_moments;
pub mod selection;
pub mod shown;
pub mod skellam;
pub mod sometimes;
pub mod subsampled;
pub mod substitution;
pub mod summed;
pub mod tabulated;
mod threshold;
pub mod truncated;
pub mod worst;

use std::sync::Arc;

use crate::error::Result;
use crate::exact::{Enclosure, Rational};
use crate::run::Run;
use crate::special::{Approximation, UNIT_ROUNDOFF};

/// One evaluation of a profile at ε, with the error of each number.
///
/// `delta` is δ(ε) = P(L > ε) − e^ε Q(L > ε), which lies within `delta_error` of the exact value. `slope` is −dδ/dε =
/// e^ε Q(L > ε) at the outcome set used; together they are a supporting line: for every α′, with α = e^ε,
/// `δ(ln α′) ≥ (delta − delta_error) − (slope ± slope_error)(α′/α − 1)`, with the less favourable sign. Where the
/// profile has a corner (or is so flat that the threshold is not determined) any slope with that property may be
/// returned.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ProfilePoint {
    /// δ(ε).
    pub delta: f64,
    /// Upper bound on |computed − exact| of `delta`.
    pub delta_error: f64,
    /// −dδ/dε = e^ε·Q(L > ε), or that of another supporting line.
    pub slope: f64,
    /// An upper bound on the distance of `slope` from the slope of a supporting line.
    pub slope_error: f64,
    /// The threshold that the evaluation found, if it searched for one: a hint for evaluations nearby, NaN otherwise.
    pub threshold: f64,
}

impl ProfilePoint {
    /// Returns the point from the two terms of an outcome set, `above` = P(L > ε) and `below` = e^ε·Q(L > ε).
    fn of(above: Approximation, below: Approximation) -> Self {
        let delta = above.value - below.value;
        Self {
            delta: delta.max(0.0),
            delta_error: above.error + below.error + UNIT_ROUNDOFF * delta.abs(),
            slope: below.value,
            slope_error: below.error,
            threshold: f64::NAN,
        }
    }

    /// Returns the point itself if its numbers are finite and its errors at least zero; otherwise what is true of every
    /// profile at ε: δ between 1 − e^ε and 1, slope between 0 and e^ε and at most 1.
    ///
    /// No profile should need this. It guarantees that a NaN never becomes a bound.
    pub fn or_trivial(self, epsilon: f64) -> Self {
        let errors = [self.delta_error, self.slope_error];
        if self.delta.is_finite() && self.slope.is_finite() && errors.iter().all(|e| e.is_finite() && *e >= 0.0) {
            return self;
        }
        let lowest = (-epsilon.exp_m1()).max(0.0);
        let steepest = epsilon.exp().min(1.0);
        Self {
            delta: 0.5 * (1.0 + lowest),
            delta_error: 0.5 * (1.0 - lowest) + 1e-15,
            slope: 0.5 * steepest,
            slope_error: 0.5 * steepest + 1e-15,
            threshold: f64::NAN,
        }
    }
}

/// Returns the larger of two profiles of one pair of data sets, each for a different statistic of the output.
///
/// Both are at most the pair's profile at every α, so their maximum is as well, and also in composition. Where the two
/// are close, either may be the larger one: the result is known to the worse of the two errors.
fn larger(one: ProfilePoint, other: ProfilePoint) -> ProfilePoint {
    let (most, least) = if other.delta > one.delta { (other, one) } else { (one, other) };
    ProfilePoint { delta_error: most.delta_error.max(least.delta_error), threshold: f64::NAN, ..most }
}

/// The largest loss of a round, sup {ε : δ(ε) > 0}: above it δ(ε) is exactly 0.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LargestLoss {
    /// A lower bound on it.
    pub at_least: f64,
    /// An upper bound on it, +∞ where losses have no bound: P(L > `at_most`) = 0.
    pub at_most: f64,
    /// A lower bound on P(L ≥ `at_least`); 0 where none is known. If it is positive, the profile's points are those of
    /// the outcome set {L > ε} itself: P(L > ε) is at most value plus slope, each raised by its error.
    pub mass: f64,
}

impl LargestLoss {
    /// The value for losses that have no bound, or no known one.
    pub const UNBOUNDED: Self = Self { at_least: f64::NEG_INFINITY, at_most: f64::INFINITY, mass: 0.0 };
}

/// A privacy profile: convex and decreasing in α = e^ε, with δ(α → 0) = 1.
pub trait Profile: Send + Sync + std::fmt::Debug {
    /// Evaluates the profile at ε (any finite value). `bracket` holds the thresholds of evaluations at a smaller and a
    /// larger ε, or ∓∞; it may speed the evaluation up and must not change its guarantee.
    fn at_within(&self, epsilon: f64, bracket: (f64, f64)) -> ProfilePoint;

    /// Evaluates the profile at ε (any finite value).
    fn at(&self, epsilon: f64) -> ProfilePoint {
        self.at_within(epsilon, (f64::NEG_INFINITY, f64::INFINITY))
    }

    /// Returns lower and upper bounds on δ(ε) at any finite ε.
    fn bounds(&self, epsilon: f64) -> (f64, f64) {
        let point = self.at(epsilon).or_trivial(epsilon);
        let (least, most) = (point.delta - point.delta_error, point.delta + point.delta_error);
        // The difference and the sum are rounded outwards.
        let rounding = UNIT_ROUNDOFF * most;
        ((least - rounding).clamp(0.0, 1.0), (most + rounding).clamp(0.0, 1.0))
    }

    /// Returns a lower bound on lim δ(ε) for ε → ∞: the mass that P puts where Q has none.
    fn delta_at_infinity(&self) -> f64 {
        0.0
    }

    /// Returns the largest loss, where it is known to be bounded.
    fn largest_loss(&self) -> LargestLoss {
        LargestLoss::UNBOUNDED
    }

    /// Returns the largest loss in rational numbers, where it is known to be bounded.
    ///
    /// A pair that is described by decimals whose largest loss follows from them by products and quotients returns it
    /// exactly; otherwise the enclosure is that of [`Profile::largest_loss`]. No largest loss is negative, since δ(ε) ≥ 1 −
    /// e^ε > 0 for ε < 0.
    fn exact_largest_loss(&self) -> Option<Enclosure> {
        let largest = self.largest_loss();
        Enclosure::between(largest.at_least.max(0.0), largest.at_most)
    }

    /// Returns the profile of the pair (Q, P).
    fn reversal(&self) -> Reversal {
        Reversal::Unknown
    }

    /// Returns the Rényi divergence D_a(P‖Q), or a bound on it, where the decimals that describe the pair give it as a rational
    /// number; the order a > 1 is taken as its decimal.
    fn exact_divergence(&self, _order: f64) -> Option<Rational> {
        None
    }

    /// Returns an upper bound on ln E_Q[(P/Q)^a] = (a − 1)·D_a(P‖Q) for an order a > 1; `None` if none is known. It may be
    /// infinite.
    ///
    /// # Errors
    /// As [`Run::check`].
    fn log_moment(&self, order: f64, run: &Run) -> Result<Option<f64>> {
        match self.exact_divergence(order) {
            Some(divergence) => Ok(Some(moments::of_divergence(divergence, order))),
            None => moments::integrated(self, order, run),
        }
    }

    /// Returns a shift c > 0 such that the profile of N(c, 1) against N(0, 1) is nowhere smaller than that of what this one
    /// bounds, for α ≥ 1; `None` if none is known.
    ///
    /// H_α is jointly convex in the pair. So a mixture of pairs N(i, 1) against N(j, 1), with any joint law of i and j, has at
    /// most the H_α of the pair with the largest distance |i − j|, for α ≥ 1.
    fn dominating_shift(&self) -> Option<f64> {
        None
    }

    /// Returns a ρ with D_a(P‖Q) ≤ aρ for every order a > 1; `None` if none is known.
    fn concentration(&self) -> Option<Rational> {
        pure::largest_loss_of_both(self).map(|loss| pure::concentration(&loss))
    }

    /// Returns μ² for a μ such that the pair N(μ, 1) against N(0, 1) dominates this one; `None` if none is known.
    fn gaussian_square(&self) -> Option<Rational> {
        pure::largest_loss_of_both(self).and_then(|loss| pure::gaussian_square(Enclosure::exactly(loss).doubles().1))
    }
}

/// The profile of a pair whose two laws are exchanged.
#[derive(Debug, Clone)]
pub enum Reversal {
    /// It is the profile itself: H_α(Q‖P) = H_α(P‖Q) for every α.
    Same,
    /// It is another profile.
    Other(Arc<dyn Profile>),
    /// It is not known, or the profile is a bound that belongs to no pair.
    Unknown,
}
