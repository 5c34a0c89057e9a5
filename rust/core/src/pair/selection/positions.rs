//! Where the best run can stand in the order of outcomes: how large the densities of the best run are there.
//!
//! A *position* is b = P(a run is better). There the density of the best run is f′(1 − b) times that of one run under
//! P, and under Q at least f′(1 − B(b)) times that, where B(b) bounds Q(a run is better) from above. Positions are
//! divided into cells; on each, a line L is at least B. The difference f′(1 − b) − z·f′(1 − L(b)) is at most that of a
//! chord of the first term and a tangent of the second, for both are convex in b, and a linear function is largest at
//! one of the ends. So every cell gives two pairs (weight, opposed), and for all z ≥ 0 and all its positions
//! `f′(1 − b) − z f′(1 − B(b)) ≤ max (weight − z·opposed)`.

use crate::error::Result;
use crate::pair::selection::runs::Runs;
use crate::pair::selection::table::Table;
use crate::run::Run;
use crate::special::{real, UNIT_ROUNDOFF};

/// Positions with a weight below f′(1)·e^{−230} ≈ f′(1)·1e-100 are bounded by that weight.
const DEEPEST: f64 = 230.0;
/// Cells are not divided where the density under Q can be smaller than that under P by more than this exponent.
const STEEPEST: f64 = 600.0;
/// The relative error that is allowed for in a decay.
const DECAY: f64 = 1e-11;
/// Up to this half-width, relative to its value, a tangent is used; otherwise the smallest value on the cell.
const TANGENT: f64 = 0.3;

/// One end of a cell: b, an upper bound on f′(1 − b), and a lower bound that stands for f′(1 − B(b)) on that cell.
#[derive(Debug, Clone, Copy)]
pub(super) struct End {
    pub position: f64,
    pub weight: f64,
    pub opposed: f64,
}

/// The cells, by increasing b.
#[derive(Debug, Clone)]
pub(super) struct Positions {
    pub cells: Vec<[End; 2]>,
    /// An upper bound on the weight of all positions that no cell contains.
    pub rest: f64,
}

impl Positions {
    /// Creates the cells for `backward`, the table of H(Q‖P), with about `step` as the largest change of a logarithm
    /// on a cell, and not many more than `most` cells.
    pub fn new(runs: &Runs, backward: &Table, step: f64, most: usize, run: &Run) -> Result<Self> {
        let lines = Lines::new(backward);
        let total = runs.decay(1.0);
        let last = if total <= DEEPEST { 1.0 } else { reached(runs, DEEPEST) };
        let rest =
            if last < 1.0 { runs.mean() * (1.0 + 1e-11) * (-runs.decay(last) * (1.0 - DECAY)).exp() } else { 0.0 };
        let sum = total.min(DEEPEST) + total.min(DEEPEST + STEEPEST);
        let step = step.max(sum / real(most));
        // Where B(b) reaches 1 a line gives way to the level one: no cell contains that point.
        let ends = [0.0, lines.full(), last];
        let mut bounds: Vec<f64> = (0..26).map(|k| 10f64.powi(-12 * k)).chain(ends).collect();
        bounds.retain(|b| *b <= last);
        bounds.sort_unstable_by(f64::total_cmp);
        bounds.dedup();
        let mut points: Vec<Point> = bounds.into_iter().map(|b| Point::new(runs, &lines, b)).collect();
        loop {
            run.check()?;
            let mut finer = Vec::with_capacity(2 * points.len());
            for pair in points.windows(2) {
                finer.push(pair[0]);
                if pair[0].position > 0.0 && apart(pair, step) {
                    let (left, right) = (pair[0].position, pair[1].position);
                    let middle = if right > 4.0 * left { (left * right).sqrt() } else { 0.5 * (left + right) };
                    if left < middle && middle < right {
                        finer.push(Point::new(runs, &lines, middle));
                    }
                }
            }
            finer.extend(points.last());
            let grown = finer.len() > points.len();
            points = finer;
            if !grown || points.len() > 8 * most {
                break;
            }
        }
        let cells = points.windows(2).map(|pair| cell(runs, &lines, pair[0].position, pair[1].position)).collect();
        Ok(Self { cells, rest })
    }
}

/// Returns the b at which the decay is `depth`, which is less than its value at 1.
fn reached(runs: &Runs, depth: f64) -> f64 {
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..200 {
        let middle = 0.5 * (low + high);
        if runs.decay(middle) < depth {
            low = middle;
        } else {
            high = middle;
        }
    }
    high
}

/// The lines β·b + k that bound B(b), and the level line 1.
#[derive(Debug)]
struct Lines {
    slopes: Vec<f64>,
    values: Vec<f64>,
}

impl Lines {
    /// Creates the lines of every node: Q(S) ≤ β·P(S) + H_β(Q‖P) for every set S of outcomes.
    fn new(backward: &Table) -> Self {
        let mut lines = Self { slopes: vec![0.0], values: vec![1.0] };
        for &(epsilon, value) in &backward.nodes {
            let slope = epsilon.exp() * (1.0 + 4.0 * UNIT_ROUNDOFF * (1.0 + epsilon.abs()));
            if slope.is_finite() {
                lines.slopes.push(slope);
                lines.values.push(value);
            }
        }
        // At b = 0 the value alone counts; the last node has the smallest.
        if let Some(&(_, value)) = backward.nodes.last() {
            lines.slopes.push(f64::MAX);
            lines.values.push(value);
        }
        lines
    }

    /// Returns the line that is least at b.
    fn least(&self, b: f64) -> usize {
        let mut best = (0, f64::INFINITY);
        for (k, (slope, value)) in self.slopes.iter().zip(&self.values).enumerate() {
            let bound = slope * b + value;
            if bound < best.1 {
                best = (k, bound);
            }
        }
        best.0
    }

    /// Returns nearly the least b at which no line is below 1; there every line that is not level is at most 1, or reached 1
    /// before.
    fn full(&self) -> f64 {
        let reached = |(slope, value): (&f64, &f64)| (1.0 - value) / slope;
        let last = self.slopes.iter().zip(&self.values).skip(1).map(reached).fold(0.0, f64::max);
        (last * (1.0 - 4.0 * UNIT_ROUNDOFF)).min(1.0)
    }

    fn at(&self, line: usize, b: f64) -> f64 {
        self.slopes[line] * b + self.values[line]
    }
}

/// A position with the decays of its two weights, to decide where cells are divided.
#[derive(Debug, Clone, Copy)]
struct Point {
    position: f64,
    decay: f64,
    opposed: f64,
}

impl Point {
    fn new(runs: &Runs, lines: &Lines, position: f64) -> Self {
        let better = lines.at(lines.least(position), position).min(1.0);
        Self { position, decay: runs.decay(position), opposed: runs.decay(better) }
    }
}

/// Returns whether two neighbouring positions are further apart than `step`, in one of the two weights.
fn apart(pair: &[Point], step: f64) -> bool {
    let too_steep = pair.iter().all(|point| point.opposed - point.decay > STEEPEST);
    let changes = [pair[1].decay - pair[0].decay, pair[1].opposed - pair[0].opposed];
    !too_steep && changes.iter().any(|change| *change > step)
}

/// Returns the two ends of a cell.
fn cell(runs: &Runs, lines: &Lines, left: f64, right: f64) -> [End; 2] {
    let mean = runs.mean() * (1.0 + 1e-12);
    let middle = 0.5 * (left + right);
    // At 1 and beyond, the level line is the least one.
    let line =
        [middle, right].map(|b| lines.least(b)).into_iter().find(|line| lines.at(*line, right) <= 1.0).unwrap_or(0);
    let lowest = |better: f64| mean * (1.0 - 1e-11) * (-runs.decay(better) * (1.0 + DECAY)).exp();
    let better = lines.at(line, middle);
    let half = runs.decay_slope(better) * lines.slopes[line] * (middle - left);
    let opposed = if half < TANGENT {
        [1.0, -1.0].map(|side| lowest(better) * (1.0 + side * half - 1e-8 * half))
    } else {
        [lowest(lines.at(line, right)); 2]
    };
    let weight = |b: f64| mean * (1.0 + 1e-12) * (-runs.decay(b) * (1.0 - DECAY)).exp();
    [
        End { position: left, weight: weight(left), opposed: opposed[0] },
        End { position: right, weight: weight(right), opposed: opposed[1] },
    ]
}
