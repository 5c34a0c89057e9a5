//! From a profile on a lattice to two discrete loss distributions, one above and one below it.
//!
//! Write a convex piecewise-linear function of α with kinks at `α_i = e^{ε_i}` as `g(α) = m_∞ + Σ p_i (1 − α/α_i)_+`.
//! Its masses are second differences: with `D_i = g_i − g_{i+1}`,
//! `p_i = D_{i−1}/(1 − e^{−(ε_i−ε_{i−1})}) − D_i/(e^{ε_{i+1}−ε_i} − 1)`, in which no e^ε appears, so large losses do
//! not overflow.
//!
//! * **Upper.** Let U_i ≥ δ(ε_i) fall with i ([`upper_values`]). The lower convex hull of the points (α_i, U_i) is convex, and still at least δ: δ is
//!   convex and at most U at the nodes, and the hull is the largest such function. Right of the last node it stays
//!   constant (m_∞).
//! * **Lower.** Between two nodes the profile lies above its two supporting lines there; let a and b be how far the
//!   left line is below the right value and the right line below the left value ([`Defects`]). The segment between the
//!   two values lowered by s and s′ lies below the larger line, hence below the profile, exactly if it does so where
//!   the lines meet: `s/b + s′/a ≥ 1`. Going left to right, each node is lowered as little as this allows. Lowering a
//!   value further never invalidates a segment, so the hull of the result is still below. The left value may also be
//!   lowered by all of b afterwards: this is done where lowering the right one would pull a plateau down ([`dragged`]),
//!   with a kink or a wide cell to its left. In the smooth case s alternates around `fh²/4`, and the law loses a
//!   variance of `h²/3` where the upper one gains `h²/6`; at a sharp edge of the density nothing is lost on its empty
//!   side.
//!
//! Rounding: the differences D are exact to u, each mass adds 3u of the slope at its node, and the slopes re-summed
//! from the masses therefore differ from the intended ones by at most 4u for each node. Both measures are defined up to
//! the factor `1 ± relative_error`, which the composition raises to the number of rounds.

use crate::error::Result;
use crate::pair::Profile;
use crate::pld::check::{self, Atoms};
use crate::pld::mesh::{lower_value, Defects, Mesh, Node, Side};
use crate::special::{real, UNIT_ROUNDOFF};

/// A measure on the lattice whose profile bounds another one from one side.
#[derive(Debug, Clone)]
pub struct Masses {
    /// The lattice spacing, in nats.
    pub spacing: f64,
    /// Lattice positions, increasing.
    pub index: Vec<i64>,
    /// The losses `index · spacing`, without the lattice's offset.
    pub epsilon: Vec<f64>,
    /// Positive masses.
    pub mass: Vec<f64>,
    /// Mass at loss +∞.
    pub at_infinity: f64,
    /// The relative error: the bound holds for the measure times 1 + `relative_error` (upper) or 1 − `relative_error`
    /// (lower).
    pub relative_error: f64,
}

impl Masses {
    pub(super) fn atoms(&self) -> Atoms<'_> {
        Atoms { loss: &self.epsilon, mass: &self.mass, at_infinity: self.at_infinity }
    }

    /// Discretises a profile sampled on `mesh` from one side.
    ///
    /// # Errors
    /// [`crate::Error::Numerics`] for masses that no such law has ([`super::check`]).
    pub fn new(side: Side, profile: &dyn Profile, mesh: &Mesh) -> Result<Self> {
        let masses = match side {
            Side::Upper => upper(mesh),
            Side::Lower => lower(mesh, profile.delta_at_infinity()),
        };
        check::masses(side, masses.atoms(), masses.relative_error, mesh)?;
        Ok(masses)
    }

    /// Returns the measure from above of values at the nodes that are upper bounds on some profile; nothing else is known of it.
    ///
    /// # Errors
    /// As [`Masses::new`].
    pub fn above(mesh: &Mesh) -> Result<Self> {
        let masses = upper(mesh);
        check::masses(Side::Upper, masses.atoms(), masses.relative_error, mesh)?;
        Ok(masses)
    }
}

fn upper(mesh: &Mesh) -> Masses {
    let values = upper_values(mesh);
    let last = values[values.len() - 1];
    hull(mesh, 1.0, &values, last)
}

/// Returns the upper bounds U on δ at the nodes: the smallest known there or further left, since δ falls.
pub(super) fn upper_values(mesh: &Mesh) -> Vec<f64> {
    let least = |least: &mut f64, node: &Node| {
        *least = least.min(node.point.delta + node.point.delta_error);
        Some(*least)
    };
    mesh.nodes.iter().scan(1.0, least).collect()
}

/// If a value would be lowered by more than this fraction of it, lowering the other end of the cell is considered.
const NOTICED: f64 = 1e-5;
/// The other end is lowered afterwards if the hull would follow over `PLATEAU` nats, and if that costs less by the
/// factor `MUCH`.
const PLATEAU: f64 = 32.0;
const MUCH: f64 = 16.0;
/// The maximum number of nodes that are visited for the cost of lowering one.
const MOST_DRAGGED: usize = 4096;

/// Returns the range of losses on which the hull follows the value of node j when it is lowered by `by`: as far as
/// supporting lines pass above half of the decrease. On a plateau that is all of it. This is only a cost: no bound
/// depends on it.
fn dragged(nodes: &[Node], j: usize, by: f64) -> f64 {
    let height = nodes[j].point.delta - 0.5 * by;
    let over = |k: &usize| {
        let (there, point) = (&nodes[*k], &nodes[*k].point);
        point.delta - point.slope * (nodes[j].epsilon - there.epsilon).exp_m1() > height
    };
    let end = nodes.len() - 1;
    let right = (j + 1..end).take(MOST_DRAGGED).find(|k| !over(k)).unwrap_or(end.min(j + MOST_DRAGGED));
    let left = (1..j).rev().take(MOST_DRAGGED).find(|k| !over(k)).unwrap_or(j.saturating_sub(MOST_DRAGGED));
    nodes[right].epsilon - nodes[left].epsilon
}

fn lower(mesh: &Mesh, at_infinity: f64) -> Masses {
    let nodes = &mesh.nodes;
    // This is a lower bound on δ − δ(∞) at the nodes.
    let floor = |node: &Node| lower_value(node, at_infinity) - at_infinity;
    let mut values = Vec::with_capacity(nodes.len());
    // Left of the first node the supporting line 1 − α is used, up to the node.
    let first = floor(&nodes[0]);
    let line = -(mesh.offset + nodes[0].epsilon).exp_m1() * (1.0 - 4.0 * UNIT_ROUNDOFF) - at_infinity;
    values.push(first.min(line).max(0.0));
    let mut lowered = first - values[0];
    for (i, cell) in nodes.windows(2).enumerate() {
        let defects = Defects::between(&cell[0], &cell[1], at_infinity);
        let target = floor(&cell[1]);
        let needed = defects.right_needed(lowered);
        if needed > NOTICED * target && target > 0.0 {
            let (left, room) = (floor(&cell[0]), defects.left_needed(0.0));
            let by = needed.min(0.5 * target);
            let (width, extra) = (dragged(nodes, i + 1, by), (room - lowered).max(0.0));
            if width > PLATEAU && room <= left && MUCH * extra * dragged(nodes, i, extra) < by * width {
                values[i] = (left - room).clamp(0.0, values[i]);
                values.push(target);
                lowered = 0.0;
                continue;
            }
        }
        if needed < target {
            lowered = needed;
            values.push(target - needed);
            continue;
        }
        // The right value would be lost altogether, so only part of it is given up, and the left one is lowered for the
        // rest.
        let given = if target > 0.0 { 0.5 * target } else { 0.0 };
        values[i] = (floor(&cell[0]) - defects.left_needed(given)).clamp(0.0, values[i]);
        values.push(target - given);
        lowered = given;
        if target == 0.0 {
            break;
        }
    }
    // Right of the last node the only known bound is δ ≥ δ(∞).
    let last = values.len() - 1;
    if values[last] > 0.0 {
        let defects = Defects::between(&nodes[last - 1], &nodes[last], at_infinity);
        let left = floor(&nodes[last - 1]) - defects.left_needed(floor(&nodes[last]));
        values[last - 1] = left.clamp(0.0, values[last - 1]);
        values[last] = 0.0;
    }
    let mut masses = hull(mesh, 1.0 - at_infinity, &values, 0.0);
    masses.at_infinity = at_infinity;
    masses
}

/// Returns the lower convex hull of `(0, origin)` and the first `values.len()` nodes, as masses. `at_infinity` is the
/// value right of them.
fn hull(mesh: &Mesh, origin: f64, values: &[f64], at_infinity: f64) -> Masses {
    let nodes = &mesh.nodes;
    // These are the slopes on both sides of node j, in units of 1/α_j; `None` is the origin α = 0.
    let left_slope = |i: Option<usize>, j: usize| match i {
        None => origin - values[j],
        Some(i) => (values[i] - values[j]) / -(nodes[i].epsilon - nodes[j].epsilon).exp_m1(),
    };
    let right_slope = |j: usize, k: usize| (values[j] - values[k]) / (nodes[k].epsilon - nodes[j].epsilon).exp_m1();
    let mut kept: Vec<usize> = Vec::with_capacity(values.len());
    for k in 0..values.len() {
        while let Some(&j) = kept.last() {
            let previous = kept.len().checked_sub(2).map(|p| kept[p]);
            if left_slope(previous, j) >= right_slope(j, k) {
                break;
            }
            kept.pop();
        }
        kept.push(k);
    }
    let mut masses = Masses {
        spacing: mesh.spacing,
        index: Vec::with_capacity(kept.len()),
        epsilon: Vec::with_capacity(kept.len()),
        mass: Vec::with_capacity(kept.len()),
        at_infinity,
        relative_error: 16.0 * UNIT_ROUNDOFF * (real(values.len()) + 8.0),
    };
    for (position, &j) in kept.iter().enumerate() {
        let previous = position.checked_sub(1).map(|p| kept[p]);
        let after = kept.get(position + 1).map_or(0.0, |&k| right_slope(j, k));
        let mass = left_slope(previous, j) - after;
        if mass > 0.0 {
            masses.index.push(nodes[j].index);
            masses.epsilon.push(nodes[j].epsilon);
            masses.mass.push(mass);
        }
    }
    masses
}
