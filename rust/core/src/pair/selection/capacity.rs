//! The same bound where much of the outcomes is involved: not all of them can stand at the best position.
//!
//! P(a run is better) is uniformly distributed for an outcome drawn from P. So for every function v ≥ 0 of the position,
//! `Σ_E p·(payoff) ≤ ∫_0^1 v(b) db + Σ p·sup_b (payoff at b − v(b))_+`: what is subtracted from the payoffs is added as
//! its integral. Here v is linear on each cell. *Any* v gives a bound; the v used is the potential of the coupling of
//! positions and outcomes in which better positions have larger losses, between two positions, found by search. (The
//! payoff f′(1 − b) − αx f′(1 − B(b)) is submodular in position and loss: among couplings this one is optimal.)

use crate::pair::selection::payoff::Lines;
use crate::pair::selection::positions::Positions;
use crate::pair::selection::table::Table;
use crate::special::UNIT_ROUNDOFF;

/// Values of neighbouring knots differ by this much in their logarithm, and those below the second are left out.
const APART: f64 = 0.25;
const SMALL: f64 = 1e-9;
/// Positions below this are searched as one.
const NEAREST: f64 = 1e-4;

/// The bound for one direction.
#[derive(Debug)]
pub(super) struct Capacity {
    positions: Positions,
    /// Knots x = e^{−ℓ}, increasing from 0, and x·h(1/x) at each of them.
    knots: Vec<f64>,
    values: Vec<f64>,
    /// P(loss > ℓ) and e^{−ℓ}, by falling probability.
    quantiles: Vec<(f64, f64)>,
    /// The cells at which the last best v began and ended.
    last: Option<(usize, usize)>,
}

impl Capacity {
    /// Creates the bound from the cells of one direction and its tables.
    pub fn new(positions: Positions, forward: &Table, backward: &Table) -> Self {
        let mut losses: Vec<f64> = Vec::new();
        let mut side = |table: &Table, sign: f64| {
            let mut last = f64::INFINITY;
            for (k, &(epsilon, value)) in table.nodes.iter().enumerate() {
                let end = k + 1 == table.nodes.len();
                if epsilon >= 0.0 && (end || (value > SMALL && value < last * (-APART).exp())) {
                    losses.push(sign * epsilon);
                    last = value;
                }
            }
        };
        side(forward, 1.0);
        side(backward, -1.0);
        losses.retain(|loss| loss.abs() < 300.0);
        losses.sort_unstable_by(|a, b| b.total_cmp(a));
        losses.dedup_by(|next, kept| *kept - *next <= 1e-12 * kept.abs());
        let knots: Vec<f64> = [0.0].into_iter().chain(losses.iter().map(|loss| (-loss).exp())).collect();
        let at = |loss: f64| forward.at(loss, 8.0 * UNIT_ROUNDOFF * (1.0 + loss.abs()));
        let values = losses.iter().zip(&knots[1..]).map(|(loss, x)| x * at(*loss) * (1.0 + 1e-14)).collect();
        Self { positions, knots, values, quantiles: quantiles(forward), last: None }
    }

    /// Returns an upper bound on `sup_E A(E) − e^ε B(E)`, for 0 ≤ ε ≤ 600.
    pub fn at(&mut self, epsilon: f64) -> f64 {
        let cells = self.positions.cells.len();
        let near = self.positions.cells.partition_point(|cell| cell[0].position < NEAREST).min(cells - 1);
        let width = cells - near;
        let mut best = (f64::INFINITY, (0, 0));
        let mut step = width / 8;
        if let Some(last) = self.last {
            best = (self.bound(epsilon, last.0, last.1), last);
        } else {
            for first in [0].into_iter().chain((0..5).map(|k| near + width * k / 6)) {
                for end in (1..=10).map(|k| near + width * k / 10) {
                    let value = self.bound(epsilon, first, end);
                    if value < best.0 {
                        best = (value, (first, end));
                    }
                }
            }
            step /= 2;
        }
        while step > 0 {
            let (first, end) = best.1;
            let less = if first <= near + step { 0 } else { first - step };
            let trials =
                [(first, end + step), (first, end.saturating_sub(step)), (first.max(near) + step, end), (less, end)];
            let before = best.0;
            for (first, end) in trials {
                let (first, end) = (first.min(cells), end.clamp(near, cells));
                if first < end && (first, end) != best.1 {
                    let value = self.bound(epsilon, first, end);
                    if value < best.0 {
                        best = (value, (first, end));
                    }
                }
            }
            if best.0 >= before {
                step /= 2;
            }
        }
        self.last = Some(best.1);
        best.0
    }

    /// Returns the bound with the potential between two cells.
    fn bound(&self, epsilon: f64, first: usize, end: usize) -> f64 {
        let cells = &self.positions.cells;
        let alpha = epsilon.exp() * (1.0 - 4.0 * UNIT_ROUNDOFF * (1.0 + epsilon));
        let begin = cells.get(first).map_or(1.0, |cell| cell[0].position);
        // v at the left end of each cell, and at the right end of the last one.
        let mut v = vec![0.0; cells.len() + 1];
        let mut sum = 0.0;
        for k in (first..end.min(cells.len())).rev() {
            let [left, right] = cells[k];
            let x = self.quantile(0.5 * (left.position + right.position) - begin);
            sum += (left.weight - right.weight) - alpha * x * (left.opposed - right.opposed);
            v[k] = sum.max(0.0);
        }
        // Two cells that meet have one weight there, so the smaller value of the other term makes both lines' bound.
        let mut lines = Lines::default();
        let mut integral = 0.0;
        let mut before = f64::INFINITY;
        for (k, [left, right]) in cells.iter().enumerate() {
            lines.push(left.weight * (1.0 + 2.0 * UNIT_ROUNDOFF) - v[k], alpha * left.opposed.min(before));
            integral += 0.5 * (v[k] + v[k + 1]) * (right.position - left.position);
            before = right.opposed;
        }
        if let Some([_, last]) = cells.last() {
            lines.push(last.weight * (1.0 + 2.0 * UNIT_ROUNDOFF) - v[cells.len()], alpha * last.opposed);
        }
        let (constant, weights) = lines.hinges(&self.knots);
        let sum: f64 = weights.iter().zip(&self.values).map(|(weight, value)| weight * value).sum();
        (constant + self.positions.rest + integral + sum) * (1.0 + 1e-12)
    }

    /// Returns e^{−ℓ} for the loss ℓ that is exceeded with this probability, or nearly so.
    fn quantile(&self, probability: f64) -> f64 {
        let next = self.quantiles.partition_point(|quantile| quantile.0 > probability);
        self.quantiles.get(next).or(self.quantiles.last()).map_or(1.0, |quantile| quantile.1)
    }
}

/// Returns P(loss > ℓ) and e^{−ℓ} at the nodes of a table, by falling probability. It decides how good a v is, not
/// whether it is one.
fn quantiles(forward: &Table) -> Vec<(f64, f64)> {
    let mut all: Vec<(f64, f64)> = forward
        .nodes
        .windows(2)
        .map(|pair| {
            let ((left, before), (right, after)) = (pair[0], pair[1]);
            (before + (before - after) / (right - left).exp_m1(), (-0.5 * (left + right)).exp())
        })
        .collect();
    let mut largest = 0.0_f64;
    for quantile in all.iter_mut().rev() {
        largest = largest.max(quantile.0);
        quantile.0 = largest;
    }
    all
}
