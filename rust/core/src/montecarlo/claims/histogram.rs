//! Loss histograms: the results of sampling, and the moments that are computed from them.
//!
//! A histogram counts samples by their privacy loss L, with the sum of their weights and of the squares: for bins [l,
//! l + h) of losses the sums Σ w and Σ w², w = e^{ln P/R − ln M/R} (w = 1 for plain sampling). Histograms of the same
//! mechanism, direction, proposal and bins merge by addition. δ(ε) is the mean of w(1 − e^{ε−L})_+, with a composed
//! profile that of w·D(ε − L) (see [`crate::montecarlo::value`]); both grow with L, so if L is moved to the upper edge
//! of its bin the sum can only grow, and to the lower edge only shrink.

use crate::montecarlo::value::{Bound, Curve};
use crate::special::real;

/// Bins of a histogram; the first also holds everything below, the last everything above (its upper edge is ∞).
pub const BINS: usize = 4096;

/// The edges: bin k is [`lowest + k·width`, `lowest + (k + 1)·width`).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Edges {
    /// The lower edge of the first bin.
    pub lowest: f64,
    /// The width of a bin in nats.
    pub width: f64,
}

/// Counts and weights by privacy loss.
#[derive(Debug, Clone, PartialEq)]
pub struct Histogram {
    /// The edges of the bins.
    pub edges: Edges,
    /// The number of all samples, including those with weight 0.
    pub samples: u64,
    /// The number of samples in each bin.
    pub counts: Vec<u64>,
    /// Σ w in each bin.
    pub weights: Vec<f64>,
    /// Σ w² in each bin.
    pub squares: Vec<f64>,
}

/// Moments of the summands of δ(ε), each on the stated side of the exact sample moment.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Moments {
    /// An upper bound on the mean.
    pub mean_above: f64,
    /// A lower bound on the mean.
    pub mean_below: f64,
    /// An upper bound on the mean of the squares.
    pub square_above: f64,
}

impl Histogram {
    /// Creates an empty histogram.
    pub fn new(edges: Edges) -> Self {
        Self { edges, samples: 0, counts: vec![0; BINS], weights: vec![0.0; BINS], squares: vec![0.0; BINS] }
    }

    /// Adds one sample.
    #[inline(always)]
    pub fn add(&mut self, loss: f64, weight: f64) {
        self.samples += 1;
        let place = (loss - self.edges.lowest) / self.edges.width;
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss)]
        // clamped to the bins
        let bin = place.clamp(0.0, real(BINS - 1)) as usize;
        self.counts[bin] += 1;
        self.weights[bin] += weight;
        self.squares[bin] += weight * weight;
    }

    /// Adds another histogram of the same mechanism, direction, proposal and edges.
    pub fn merge(&mut self, other: &Self) {
        debug_assert_eq!(self.edges, other.edges);
        self.samples += other.samples;
        for k in 0..BINS {
            self.counts[k] += other.counts[k];
            self.weights[k] += other.weights[k];
            self.squares[k] += other.squares[k];
        }
    }

    /// Returns the moments over all samples of w(1 − e^{ε−L})_+, or of w·D(ε − L) without the curve's tail mass.
    pub fn moments(&self, epsilon: f64, curve: Option<&Curve>) -> Moments {
        let (samples, mut sums) = (real(self.samples), Moments { mean_above: 0.0, mean_below: 0.0, square_above: 0.0 });
        for k in 0..BINS {
            let (lower, upper) =
                (self.edges.lowest + real(k) * self.edges.width, self.edges.lowest + real(k + 1) * self.edges.width);
            let share = |loss: f64, bound: Bound| match curve {
                Some(curve) => curve.single(bound, epsilon - loss),
                None => (-(epsilon - loss).exp_m1()).max(0.0),
            };
            // Rounding may have put a loss into the neighbouring bin, so the edges are moved by that much.
            let nudge = 1e-12 * (1.0 + upper.abs()) + curve.map_or(0.0, |curve| curve.argument_error(epsilon));
            let above = if k + 1 == BINS { 1.0 } else { share(upper + nudge, Bound::Above) };
            let below = if k == 0 { 0.0 } else { share(lower - nudge, Bound::Below) };
            sums.mean_above += self.weights[k] * above;
            sums.mean_below += self.weights[k] * below;
            sums.square_above += self.squares[k] * above * above;
        }
        let rounding = 1.0 + 1e-11;
        Moments {
            mean_above: sums.mean_above / samples * rounding,
            mean_below: sums.mean_below / samples / rounding,
            square_above: sums.square_above / samples * rounding,
        }
    }
}
