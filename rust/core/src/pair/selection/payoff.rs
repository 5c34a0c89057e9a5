//! What one run's outcome can add to the difference of the two laws of the best run.
//!
//! An outcome with the ratio q/p adds at most `p·Ω(α q/p)`, where Ω(z) is the largest of 0 and `weight − z·opposed` over
//! all positions ([`positions`](super::positions)). Ω is convex and falls with z. Between *knots* it is below its
//! chords, and these are a sum of hinges `Σ_j w_j (z_j − z)_+` with w_j ≥ 0. Since ∫ (z_j p − α q)_+ = z_j H_{α/z_j}, the
//! sum over all outcomes is at most `Σ_j w_j z_j h(α/z_j)`, for every profile h of one run.

use crate::pair::selection::positions::End;
use crate::pair::selection::table::Table;
use crate::special::UNIT_ROUNDOFF;

/// A line whose root has a larger logarithm than this counts as if it were level.
const LEVEL: f64 = 600.0;

/// Lines weight − z·opposed.
#[derive(Debug, Clone, Default)]
pub(super) struct Lines {
    pub weights: Vec<f64>,
    pub opposed: Vec<f64>,
}

impl Lines {
    /// Adds a line, unless it is nowhere positive.
    pub fn push(&mut self, weight: f64, opposed: f64) {
        if weight > 0.0 {
            self.weights.push(weight);
            self.opposed.push(opposed);
        }
    }

    /// Separates the lines that are practically level; returns the largest weight of these.
    fn without_level(&self) -> (Self, f64) {
        let (mut rest, mut level) = (Self::default(), 0.0_f64);
        for (&weight, &opposed) in self.weights.iter().zip(&self.opposed) {
            if opposed > 0.0 && weight.ln() - opposed.ln() < LEVEL {
                rest.push(weight, opposed);
            } else {
                level = level.max(weight);
            }
        }
        (rest, level)
    }

    /// Returns an upper bound on the largest of 0 and the lines at z.
    fn at(&self, z: f64) -> f64 {
        let mut largest = 0.0_f64;
        for (weight, opposed) in self.weights.iter().zip(&self.opposed) {
            let value = weight * (1.0 + 4.0 * UNIT_ROUNDOFF) - z * opposed;
            largest = if value > largest { value } else { largest };
        }
        largest * (1.0 + 2.0 * UNIT_ROUNDOFF)
    }

    /// Returns a constant c and, for each knot but the first, a w ≥ 0, so that Ω(z) ≤ c + Σ_j w_j (z_j − z)_+ for z ≥ 0.
    /// The knots increase from 0.
    pub fn hinges(&self, knots: &[f64]) -> (f64, Vec<f64>) {
        let values: Vec<f64> = knots.iter().map(|z| self.at(*z)).collect();
        // The steepness of each chord, and what its rounding can be.
        let chords: Vec<(f64, f64)> = (1..knots.len())
            .map(|j| {
                let width = knots[j] - knots[j - 1];
                let steepness = (values[j - 1] - values[j]) / width;
                (steepness, 8.0 * UNIT_ROUNDOFF * (values[j - 1] + values[j]) / width)
            })
            .collect();
        let hinges = (0..chords.len())
            .map(|j| {
                let (next, error) = chords.get(j + 1).copied().unwrap_or_default();
                let hinge = chords[j].0 - next + chords[j].1 + error;
                // `f64::max` would make a bound of 0 of a NaN.
                if hinge.is_nan() {
                    f64::INFINITY
                } else {
                    hinge.max(0.0)
                }
            })
            .collect();
        (values.last().copied().unwrap_or(0.0), hinges)
    }
}

/// Ω without any regard for how much of the outcomes fits into a position.
#[derive(Debug)]
pub(super) struct Payoff {
    constant: f64,
    /// ln z_j and w_j z_j of the hinges.
    hinges: Vec<(f64, f64)>,
    /// ln z of the largest z with Ω(z) > 0.
    reach: f64,
}

/// The distance of knots in ln z, and in the logarithm of their distance from the last one; the number of the latter.
const STEP: f64 = 0.05;
const CLOSER: f64 = 0.1;
const CLOSE: i32 = 140;
/// The first knot after 0 has this ln z; if there would be too many knots, they are further apart.
const FIRST: f64 = -9.0;
const MOST: f64 = 1500.0;

impl Payoff {
    /// Creates Ω for these cells; `rest` bounds the weight of all other positions.
    pub fn new(cells: &[[End; 2]], rest: f64) -> Self {
        let mut lines = Lines::default();
        for end in cells.iter().flatten() {
            lines.push(end.weight, end.opposed);
        }
        let (lines, level) = lines.without_level();
        let logs = lines.weights.iter().zip(&lines.opposed).map(|(weight, opposed)| weight.ln() - opposed.ln());
        let reach = logs.fold(0.0, f64::max) + 1e-12;
        let root = reach.exp();
        let step = STEP.max((reach - FIRST) / MOST);
        let mut knots = vec![0.0, root];
        let mut log = FIRST;
        while log < reach - STEP {
            knots.push(log.exp());
            log += step;
        }
        knots.extend((0..CLOSE).map(|k| root * (1.0 - 0.5 * STEP.exp() * (-CLOSER * f64::from(k)).exp())));
        knots.sort_unstable_by(f64::total_cmp);
        knots.dedup_by(|next, kept| *next - *kept < 1e-9 * *next);
        let (beyond, weights) = lines.hinges(&knots);
        // All lines are 0 at the largest root, up to the rounding that `at` adds.
        let hinges = knots[1..].iter().zip(weights).filter(|(_, weight)| *weight > 0.0);
        Self {
            constant: level + rest + beyond,
            hinges: hinges.map(|(z, weight)| (z.ln(), weight * z * (1.0 + 1e-14))).collect(),
            reach,
        }
    }

    /// Returns an upper bound on the difference of the two laws of the best run, `sup_E A(E) − e^ε B(E)`.
    pub fn at(&self, forward: &Table, epsilon: f64) -> f64 {
        let sum: f64 = self
            .hinges
            .iter()
            .map(|&(log, weight)| {
                let slack = 4.0 * UNIT_ROUNDOFF * (2.0 + epsilon.abs() + log.abs());
                weight * forward.at(epsilon - log, slack)
            })
            .sum();
        (self.constant + sum) * (1.0 + 1e-12)
    }

    /// Returns an upper bound on the loss that the order of outcomes adds to that of one run.
    pub fn reach(&self) -> f64 {
        self.reach
    }
}
