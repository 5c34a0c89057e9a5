//! The lower convex hull of several bounds on one profile.
//!
//! Where several upper bounds on a profile hold, so does their minimum; and since the profile itself is convex in α = e^ε, so does
//! every chord of the minimum. The hull is the minimum, with chords over the stretches where it is not convex. Where these
//! begin and end is found by sampling: that decides how near to convex and how tight the result is, never whether it is an
//! upper bound.

use std::sync::Arc;

use crate::pair::{Profile, ProfilePoint};
use crate::special::{UNDERFLOW, UNIT_ROUNDOFF};

/// The first samples on each side of ε = 0: the smallest, and how many for each doubling. Then the ends of each chord are refined.
const SMALLEST: f64 = 1e-3;
const PER_OCTAVE: f64 = 8.0;
const REFINEMENTS: usize = 16;
/// By how much, relatively, the slope of a piece may miss that of a supporting line of the hull, because the ends of chords are
/// found by sampling. Not proven: a supporting line serves the lower account of a composition of bounds, never the guarantee.
const UNCERTAIN: f64 = 1e-8;
/// Beyond the ε at which δ falls below this, on either side, nothing is looked at.
const NOTHING: f64 = 1e-290;

/// The lower convex hull of the minimum of several profiles.
#[derive(Debug, Clone)]
pub struct Hull {
    pieces: Vec<Arc<dyn Profile>>,
    /// Sorted; they do not overlap.
    chords: Vec<Chord>,
}

/// A chord between two values of the minimum, each taken at the upper end of its error.
#[derive(Debug, Clone, Copy)]
struct Chord {
    left: Sample,
    right: Sample,
}

#[derive(Debug, Clone, Copy)]
struct Sample {
    epsilon: f64,
    value: f64,
    error: f64,
    piece: usize,
}

impl Hull {
    /// The hull of these upper bounds on one profile.
    #[must_use]
    pub fn new(pieces: Vec<Arc<dyn Profile>>) -> Self {
        let mut hull = Self { pieces, chords: Vec::new() };
        let side = |sign: f64| {
            let end = hull.end(sign).abs();
            (0..)
                .map(|k| SMALLEST * (f64::from(k) / PER_OCTAVE).exp2())
                .take_while(move |x| *x < 2.0 * end)
                .map(move |x| sign * x)
        };
        let mut grid: Vec<f64> = side(-1.0).chain([0.0]).chain(side(1.0)).collect();
        grid.sort_by(f64::total_cmp);
        let mut samples: Vec<Sample> = grid.into_iter().map(|epsilon| hull.sample(epsilon)).collect();
        for _ in 0..REFINEMENTS {
            let kept = vertices(&samples);
            let mut finer: Vec<f64> = Vec::new();
            for cell in kept.windows(2).filter(|cell| spans(&samples, cell)) {
                for &end in cell {
                    for (low, high) in [(end.saturating_sub(1), end), (end, (end + 1).min(samples.len() - 1))] {
                        let (low, high) = (samples[low].epsilon, samples[high].epsilon);
                        if high - low > 1e-7 * high.abs().max(1e-3) {
                            finer.push(0.5 * (low + high));
                        }
                    }
                }
            }
            finer.sort_by(f64::total_cmp);
            finer.dedup();
            samples.extend(finer.into_iter().map(|epsilon| hull.sample(epsilon)));
            samples.sort_by(|a, b| a.epsilon.total_cmp(&b.epsilon));
        }
        let kept = vertices(&samples);
        hull.chords = kept
            .windows(2)
            .filter(|cell| spans(&samples, cell))
            .map(|cell| Chord { left: samples[cell[0]], right: samples[cell[1]] })
            .collect();
        hull
    }

    /// The ε on the side `sign` beyond which every profile is as good as at its limit.
    fn end(&self, sign: f64) -> f64 {
        let mut epsilon = SMALLEST * sign;
        // Left of 0 the distance from the limit 1 − e^ε.
        while epsilon.abs() < 1e6 {
            let least = self.least(epsilon).1;
            let distance = if sign > 0.0 { least.delta } else { least.delta + epsilon.exp_m1() };
            if distance <= NOTHING.max(2.0 * least.delta_error) {
                break;
            }
            epsilon *= 2.0;
        }
        epsilon
    }

    fn least(&self, epsilon: f64) -> (usize, ProfilePoint) {
        let mut best: Option<(usize, ProfilePoint)> = None;
        for (piece, profile) in self.pieces.iter().enumerate() {
            let point = profile.at(epsilon).or_trivial(epsilon);
            // Pieces that rounding cannot tell apart meet here: right of it the steepest is the least.
            let better = best.is_none_or(|(_, least)| {
                let errors = point.delta_error + least.delta_error;
                let uneven = point.delta_error.max(least.delta_error) > 1e3 * point.delta_error.min(least.delta_error);
                if uneven || (point.delta - least.delta).abs() > errors {
                    point.delta + point.delta_error < least.delta + least.delta_error
                } else {
                    point.slope > least.slope
                }
            });
            if better {
                best = Some((piece, point));
            }
        }
        // Without pieces nothing is known.
        let unknown = ProfilePoint { delta: f64::NAN, delta_error: 0.0, slope: 0.0, slope_error: 0.0, threshold: 0.0 };
        best.unwrap_or_else(|| (0, unknown.or_trivial(epsilon)))
    }

    fn sample(&self, epsilon: f64) -> Sample {
        let (piece, point) = self.least(epsilon);
        Sample { epsilon, value: point.delta + point.delta_error, error: point.delta_error, piece }
    }
}

/// Whether a chord belongs between two neighbouring vertices: there are samples above it, or the minimum changes its piece.
fn spans(samples: &[Sample], cell: &[usize]) -> bool {
    cell[1] > cell[0] + 1 || samples[cell[0]].piece != samples[cell[1]].piece
}

/// The samples that are vertices of the lower convex hull in α, or too near to it for rounding to tell.
fn vertices(samples: &[Sample]) -> Vec<usize> {
    let mut kept: Vec<usize> = Vec::with_capacity(samples.len());
    for k in 0..samples.len() {
        while let [.., i, j] = kept[..] {
            let (first, middle, last) = (&samples[i], &samples[j], &samples[k]);
            // The chord's value at the middle: the share of the way in α, without e^ε.
            let share = (middle.epsilon - first.epsilon).exp_m1() / (last.epsilon - first.epsilon).exp_m1();
            let chord = first.value + (last.value - first.value) * share;
            let rounding = first.error + middle.error + last.error + 16.0 * UNIT_ROUNDOFF * first.value;
            if middle.value <= chord + 2.0 * rounding || share.is_nan() {
                break;
            }
            kept.pop();
        }
        kept.push(k);
    }
    kept
}

impl Profile for Hull {
    fn at_within(&self, epsilon: f64, bracket: (f64, f64)) -> ProfilePoint {
        let next = self.chords.partition_point(|chord| chord.right.epsilon <= epsilon);
        match self.chords.get(next) {
            Some(Chord { left, right }) if left.epsilon < epsilon => {
                let across = (right.epsilon - left.epsilon).exp_m1();
                let (drop, along) = (left.value - right.value, (epsilon - left.epsilon).exp_m1());
                let delta = left.value - drop * (along / across);
                let steepness = (epsilon - left.epsilon).exp() / across;
                let slope = drop * steepness;
                let rounding = 16.0 * UNIT_ROUNDOFF * (1.0 + right.epsilon.abs().max(left.epsilon.abs()));
                ProfilePoint {
                    delta: delta.max(0.0),
                    delta_error: rounding * left.value + UNDERFLOW,
                    slope: slope.max(0.0),
                    slope_error: (rounding + UNCERTAIN) * slope.abs()
                        + (left.error + right.error) * steepness
                        + UNDERFLOW,
                    threshold: f64::NAN,
                }
            }
            _ if self.pieces.len() == 1 => self.pieces[0].at_within(epsilon, bracket),
            _ => {
                let point = self.least(epsilon).1;
                // A threshold of one piece says nothing about the others'.
                ProfilePoint { slope_error: point.slope_error + UNCERTAIN * point.slope, threshold: f64::NAN, ..point }
            }
        }
    }
}
