//! Computes a law below a profile without a lattice, from the profile at some nodes: the largest of the supporting
//! lines.
//!
//! Between two nodes the lines at both meet; an atom lies there, with the difference of the slopes as its mass.
//! Computed exactly, this is the law with each cell's mass at its mean e^{−loss}, so the profile falls by the effect of
//! a variance of w²/12, where the law that [`super::masses`] makes for a lattice loses w²/3.
//!
//! **Rounding.** Atoms are used as they are computed. Their profile g is piecewise linear in α; on the piece that
//! passes node i it is below the supporting line there if it is so at both ends. So g is compared at each atom with
//! lower bounds on the lines of the nodes beside it, which include all errors of values and slopes. Where g is above
//! them by some factor, the masses of larger losses, of which g consists there, are divided by it; that lowers g
//! elsewhere too. The last atom, where g ends, is at the smallest loss where the last line may be 0. Where wide cells
//! resolve little, far out, little else is lost.

use crate::error::Result;
use crate::pair::ProfilePoint;
use crate::pld::check::{self, rounding, Atoms};
use crate::pld::mesh::{Defects, Mesh, Node};
use crate::special::{real, UNIT_ROUNDOFF};

/// Atoms of finite loss whose profile, together with a mass of infinite loss, lies below the profile that the nodes
/// were taken from.
#[derive(Debug, Clone)]
pub struct Tangents {
    /// The losses, increasing.
    pub loss: Vec<f64>,
    /// The masses, positive.
    pub mass: Vec<f64>,
}

/// The errors of a node's value may be at most this fraction of it.
const RESOLVED: f64 = 1e-10;

/// Returns the law from below; `floor` is at most the profile's limit at ∞, and is its mass of infinite loss. It has no
/// atoms if errors leave nothing.
///
/// # Errors
/// [`crate::Error::Numerics`] for a law that is not below the profile ([`super::check`]).
pub fn tangents(mesh: &Mesh, floor: f64) -> Result<Tangents> {
    let nodes = kept(mesh, floor);
    let (mut loss, mut mass) = (Vec::with_capacity(nodes.len()), Vec::with_capacity(nodes.len()));
    // The node to the left of each atom.
    let mut left = Vec::with_capacity(nodes.len());
    for (i, node) in nodes.iter().enumerate() {
        let (value, slope) = (node.point.delta - floor, node.point.slope);
        // These are the point where the line meets the next one, as α/α_i − 1, and the change of the slope there, times
        // α_i.
        let (over, change) = if let Some(next) = nodes.get(i + 1) {
            let width = next.epsilon - node.epsilon;
            let missed = value - (next.point.delta - floor) + next.point.slope * (-width).exp_m1();
            let change = slope - next.point.slope * (-width).exp();
            ((missed / change).clamp(0.0, width.exp_m1()), change)
        } else {
            // The last atom is at the smallest loss where the line may end, given the errors of both.
            let least = value - node.point.delta_error - 16.0 * UNIT_ROUNDOFF * (value + floor);
            (least.max(0.0) / (slope + node.point.slope_error) * (1.0 - 8.0 * UNIT_ROUNDOFF), slope)
        };
        let at = node.epsilon + over.ln_1p();
        let (at, part) = (at - 4.0 * UNIT_ROUNDOFF * at.abs(), (1.0 + over) * change);
        if part > 0.0 && part.is_finite() && at.is_finite() && loss.last().is_none_or(|last| at > *last) {
            loss.push(at);
            mass.push(part);
            left.push(i);
        }
    }
    let ratios = ratios(&nodes, floor, &loss, &mass, &left);
    let mut factor: f64 = 1.0;
    for (part, ratio) in mass.iter_mut().zip(ratios) {
        factor = factor.min(ratio);
        *part *= factor;
    }
    let resolved = mass.iter().take_while(|part| **part > 0.0).count();
    loss.truncate(resolved);
    mass.truncate(resolved);
    check::below(Atoms { loss: &loss, mass: &mass, at_infinity: floor }, mesh, rounding(mesh.nodes.len()))?;
    Ok(Tangents { loss, mass })
}

/// Returns the line 1 − α at this node.
fn trivial(node: &Node) -> Node {
    let (delta, slope) = (-node.epsilon.exp_m1(), node.epsilon.exp());
    let (delta_error, slope_error) = (4.0 * UNIT_ROUNDOFF * delta.abs(), 4.0 * UNIT_ROUNDOFF * slope);
    Node { point: ProfilePoint { delta, delta_error, slope, slope_error, ..node.point }, ..*node }
}

/// Returns the nodes whose values and defects are larger than their errors.
fn kept(mesh: &Mesh, floor: f64) -> Vec<Node> {
    let mut kept: Vec<Node> = Vec::with_capacity(mesh.nodes.len());
    let known = |node: &Node| {
        let (point, value) = (&node.point, node.point.delta - floor);
        value > 0.0 && point.slope > 0.0 && point.delta_error + UNIT_ROUNDOFF * floor <= RESOLVED * value
    };
    // If the error of the first value is a large fraction of it, the line 1 − α, which is below every profile, gives
    // most of the law.
    kept.extend(mesh.nodes.first().filter(|node| !known(node)).map(trivial).filter(known));
    for node in &mesh.nodes {
        if known(node) && kept.last().is_none_or(|last| Defects::between(last, node, floor).resolved()) {
            kept.push(*node);
        }
    }
    kept
}

/// Returns for each atom the ratio of supporting lines and the atoms' profile where the piece that ends at it begins:
/// at the atom before it, or at α = 0.
fn ratios(nodes: &[Node], floor: f64, loss: &[f64], mass: &[f64], left: &[usize]) -> Vec<f64> {
    let n = loss.len();
    let summed = 8.0 * UNIT_ROUNDOFF * (real(n) + 8.0);
    // These are the atoms' profile at the atoms, from the right, and its slope times α.
    let mut heights = vec![0.0; n];
    let mut slope = 0.0;
    for k in (0..n.saturating_sub(1)).rev() {
        let width = loss[k + 1] - loss[k];
        let right = slope + mass[k + 1];
        heights[k] = heights[k + 1] + right * -(-width).exp_m1();
        slope = right * (-width).exp();
    }
    let total: f64 = mass.iter().sum();
    let mut ratios = vec![1.0_f64; n];
    for (i, node) in nodes.iter().enumerate() {
        // The profile passes this node between these atoms.
        let after = left.partition_point(|&at| at < i);
        let before = after.checked_sub(1);
        let ends = [before.map_or(-1.0, |k| (loss[k] - node.epsilon).exp_m1()), over(loss, after, node.epsilon)];
        let point = &node.point;
        let value = point.delta - point.delta_error - floor * (1.0 + UNIT_ROUNDOFF);
        // This is a lower bound on the line with the true value and slope at an end.
        let line = |end: f64| {
            let rounding = 8.0 * UNIT_ROUNDOFF * (point.delta + point.slope * end.abs());
            value - point.slope * end - point.slope_error * end.abs() - rounding
        };
        // The profile where this piece begins consists of the atoms from `after` on, and where it ends of those after
        // that one.
        let heights = [before.map_or(total, |k| heights[k]), heights.get(after).copied().unwrap_or(0.0)];
        for ((end, height), atom) in ends.into_iter().zip(heights).zip(after..n) {
            ratios[atom] = ratios[atom].min(line(end) / (height * (1.0 + summed)) * (1.0 - summed));
        }
    }
    ratios
}

/// Returns an atom's e^{loss}/α − 1; right of all atoms there is nothing to compare with.
fn over(loss: &[f64], k: usize, epsilon: f64) -> f64 {
    loss.get(k).map_or(0.0, |at| (at - epsilon).exp_m1())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pair::mixture::MixturePair;
    use crate::pair::rare::RarePair;
    use crate::pair::Profile;
    use crate::pld::mesh::exact_spacing;
    use crate::run::Run;

    /// Returns the profile of atoms by its definition.
    fn profile(atoms: &Tangents, epsilon: f64) -> f64 {
        let terms = atoms.loss.iter().zip(&atoms.mass).filter(|(loss, _)| **loss > epsilon);
        terms.map(|(loss, mass)| mass * -(epsilon - loss).exp_m1()).sum()
    }

    #[test]
    fn atoms_are_below_the_profile_everywhere_and_meet_it_at_the_nodes() {
        let often: [Box<dyn Profile>; 2] = [false, true].map(|reverse| {
            let pair = MixturePair::poisson(1, 0.1, 1.0, false).unwrap();
            Box::new(if reverse { pair.reversed() } else { pair }) as Box<dyn Profile>
        });
        let rare =
            [false, true].map(|reverse| Box::new(RarePair::new(1e-9, 0.3, reverse).unwrap()) as Box<dyn Profile>);
        for (pair, (low, high)) in often.iter().chain(&rare).zip([(-0.2, 3.0), (-3.0, 0.2), (-1e-6, 8.0), (-8.0, 1e-6)])
        {
            let ends = Mesh::around(pair.as_ref(), exact_spacing(1e-11), 0.0, (low, high));
            // Cells are as wide as the remainder of the profile allows.
            let fine = |left: &Node, right: &Node, gap: f64| {
                gap <= 1e-3 * right.point.delta && right.epsilon - left.epsilon < 0.5
            };
            let mesh = ends.refined(pair.as_ref(), 1 << 14, &Run::default(), fine).unwrap();
            let atoms = tangents(&mesh, 0.0).unwrap();
            assert!(atoms.loss.len() > 10, "{}", atoms.loss.len());
            for cell in mesh.nodes.windows(2) {
                for share in [0.0, 0.2, 0.5, 0.9] {
                    let epsilon = cell[0].epsilon + share * (cell[1].epsilon - cell[0].epsilon);
                    let (exact, found) = (pair.at(epsilon), profile(&atoms, epsilon));
                    assert!(found <= exact.delta + exact.delta_error, "{epsilon} {found} {exact:?}");
                    if share == 0.0 && exact.delta > 1e-280 && exact.delta_error < 1e-11 * exact.delta {
                        assert!(found >= exact.delta * (1.0 - 1e-6), "{epsilon} {found} {exact:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn most_of_a_law_is_certain_where_its_first_value_is_not_resolved() {
        let pair = MixturePair::poisson(1, 1e-5, 0.125, false).unwrap();
        let ends = Mesh::around(&pair, exact_spacing(1e-9), 0.0, (-1.0016e-5, 90.0));
        let fine = |left: &Node, right: &Node, gap: f64| {
            gap <= 1e-2 * right.point.delta || right.epsilon < 0.01 + left.epsilon
        };
        let mesh = ends.refined(&pair, 1 << 12, &Run::default(), fine).unwrap();
        let first = &mesh.nodes[0].point;
        assert!(first.delta_error > RESOLVED * first.delta);
        let atoms = tangents(&mesh, 0.0).unwrap();
        assert!(atoms.mass.iter().sum::<f64>() > 1.0 - 1e-12);
        for epsilon in [-1.0, -1e-4, -9e-6, -1e-7, 0.0, 1e-3, 1.0, 20.0, 60.0] {
            let (exact, found) = (pair.at(epsilon), profile(&atoms, epsilon));
            assert!(found <= exact.delta + exact.delta_error, "{epsilon} {found} {exact:?}");
        }
    }
}
