//! The points where a profile is evaluated: lattice points, dense where the answer depends on them.
//!
//! The lattice `ε = i·spacing` has a spacing with at most twelve significant bits, so every lattice point is a binary64
//! number exactly. Only a subset of its points is used: a cell is halved while the area between the profile and its
//! chord matters to the question asked.

use crate::error::Result;
use crate::pair::{Profile, ProfilePoint};
use crate::run::{Run, EVALUATION};
use crate::special::{real, UNIT_ROUNDOFF};

/// The side of the profile that a measure lies on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// At least the profile everywhere.
    Upper,
    /// At most the profile everywhere.
    Lower,
}

/// A lattice point with the profile there.
#[derive(Debug, Clone, Copy)]
pub struct Node {
    /// The position on the lattice.
    pub index: i64,
    /// Its position in nats, `index · spacing`, exactly: the loss without the lattice's offset.
    pub epsilon: f64,
    /// The profile at that loss.
    pub point: ProfilePoint,
}

/// Nodes in increasing order on a lattice.
#[derive(Debug, Clone)]
pub struct Mesh {
    /// The lattice spacing, in nats.
    pub spacing: f64,
    /// The loss at position 0. Its sum with every position is exact.
    pub offset: f64,
    /// The nodes, at least two.
    pub nodes: Vec<Node>,
}

/// Returns the largest number with twelve significant bits that is at most `value` (positive, normal): its multiples by
/// any index below 2⁴¹ are exact.
pub fn exact_spacing(value: f64) -> f64 {
    f64::from_bits(value.to_bits() & !((1u64 << 41) - 1))
}

/// How far the supporting lines at two neighbouring nodes are below each other's values, as upper bounds.
///
/// `a`: the value at the right node minus the left line there; `b`: the value at the left node minus the right line
/// there, values and lines taken at the lower end of their errors (and the lines' slopes at their worse end).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Defects {
    a: f64,
    b: f64,
    /// Whether both are larger than the rounding of the numbers that they were computed from.
    resolved: bool,
}

/// Returns a lower bound on δ at a node: the value minus its error, or its limit at ∞ if that is larger.
pub fn lower_value(node: &Node, at_infinity: f64) -> f64 {
    let point = &node.point;
    (point.delta - point.delta_error - 4.0 * UNIT_ROUNDOFF * point.delta).max(at_infinity)
}

impl Defects {
    /// Computes the defects of the cell between two nodes of a profile with this lower bound on its limit at ∞.
    pub fn between(left: &Node, right: &Node, at_infinity: f64) -> Self {
        let width = right.epsilon - left.epsilon;
        let (forward, backward) = (width.exp_m1(), -(-width).exp_m1());
        let (p, q) = (&left.point, &right.point);
        let drop = lower_value(left, at_infinity) - lower_value(right, at_infinity);
        // Values and lines are lowered by the same errors, so only rounding remains.
        let rounding = 8.0 * UNIT_ROUNDOFF * (p.delta + q.delta);
        let rise = (p.slope + p.slope_error) * forward * (1.0 + 8.0 * UNIT_ROUNDOFF);
        // A slope that has underflowed gives no information across a cell this wide.
        let rise = if rise.is_nan() { f64::INFINITY } else { rise };
        let fall = (q.slope - q.slope_error) * backward * (1.0 - 8.0 * UNIT_ROUNDOFF);
        let (a, b) = ((rise - drop + rounding).max(0.0), (drop - fall + rounding).max(0.0));
        let errors = rounding + p.delta_error + q.delta_error;
        let resolved = a > 4.0 * (errors + p.slope_error * forward) && b > 4.0 * (errors + q.slope_error * backward);
        Self { a, b, resolved }
    }

    /// Returns whether both are larger than the errors of values and slopes.
    pub fn resolved(self) -> bool {
        self.resolved
    }

    /// Returns an upper bound on the distance of the chord from the larger of the two lines: ab/(a + b), where they
    /// meet.
    pub fn gap(self) -> f64 {
        if !self.resolved && self.a.is_finite() {
            0.0
        } else if self.a.is_finite() {
            self.a * (self.b / (self.a + self.b))
        } else {
            self.b
        }
    }

    /// Returns how much the right value must be lowered when the left one is lowered by `left`: `a(1 − left/b)`.
    pub fn right_needed(self, left: f64) -> f64 {
        if left >= self.b {
            0.0
        } else {
            self.a * (1.0 - left / self.b) * (1.0 + 8.0 * UNIT_ROUNDOFF) + UNIT_ROUNDOFF * self.a
        }
    }

    /// Returns how much the left value must be lowered when the right one is lowered by `right`: `b(1 − right/a)`.
    pub fn left_needed(self, right: f64) -> f64 {
        if right >= self.a {
            0.0
        } else {
            self.b * (1.0 - right / self.a) * (1.0 + 8.0 * UNIT_ROUNDOFF) + UNIT_ROUNDOFF * self.b
        }
    }
}

/// Returns the interval of losses that matters for one profile: outside it, the mass of P is below `lower_mass` on the
/// left and δ is below `upper_delta` on the right. The ends are located to a few per mille.
pub fn extent(profile: &dyn Profile, lower_mass: f64, upper_delta: f64) -> (f64, f64) {
    let floor = profile.delta_at_infinity();
    let beyond = |epsilon: f64| {
        let point = profile.at(epsilon).or_trivial(epsilon);
        point.delta - floor <= upper_delta.max(2.0 * point.delta_error)
    };
    // P(L ≤ ε) = 1 − δ − slope.
    let before = |epsilon: f64| {
        let point = profile.at(epsilon).or_trivial(epsilon);
        point.delta + epsilon.exp_m1() <= lower_mass.max(2.0 * point.delta_error)
    };
    (outermost(-1.0, before), outermost(1.0, beyond))
}

/// Returns a point on the side `sign` of zero where `reached` holds, close to the first such point; `reached` is
/// monotone.
fn outermost(sign: f64, reached: impl Fn(f64) -> bool) -> f64 {
    let mut outer = 1e-6;
    while !reached(sign * outer) && outer < 1e9 {
        outer *= 4.0;
    }
    let mut inner = outer / 4.0;
    while outer > 1.003 * inner {
        let middle = (inner * outer).sqrt();
        if reached(sign * middle) {
            outer = middle;
        } else {
            inner = middle;
        }
    }
    sign * outer
}

impl Mesh {
    /// Creates the mesh of the two lattice points around the losses `low` and `high`, on a lattice with this offset.
    pub fn around(profile: &dyn Profile, spacing: f64, offset: f64, (low, high): (f64, f64)) -> Self {
        #[allow(clippy::cast_possible_truncation)] // the caller's spacing is at least 2^-40 of the extent
        let place = |loss: f64, round: fn(f64) -> f64| round((loss - offset) / spacing) as i64;
        let (first, last) = (place(low, f64::floor), place(high, f64::ceil));
        let nodes = [first, last.max(first + 1)].map(|index| node(profile, spacing, offset, index, OPEN));
        Self { spacing, offset, nodes: nodes.to_vec() }
    }

    /// Returns the same mesh with cells halved until `accept(left, right, gap)` holds or a cell has the width of the
    /// lattice, or there are `limit` nodes.
    ///
    /// # Errors
    /// [`crate::Error::Cancelled`] and [`crate::Error::TimeLimit`].
    pub fn refined(
        mut self,
        profile: &dyn Profile,
        limit: usize,
        run: &Run,
        accept: impl Fn(&Node, &Node, f64) -> bool,
    ) -> Result<Self> {
        let floor = profile.delta_at_infinity();
        let mut pending = std::mem::take(&mut self.nodes);
        pending.reverse();
        let mut nodes: Vec<Node> = pending.pop().into_iter().collect();
        let first = nodes.len() + pending.len();
        while let (Some(right), Some(&left)) = (pending.last().copied(), nodes.last()) {
            let width = right.index - left.index;
            if width > 1
                && nodes.len() + pending.len() < limit
                && !accept(&left, &right, Defects::between(&left, &right, floor).gap())
            {
                let bracket = (left.point.threshold, right.point.threshold);
                let bracket = if bracket.0 < bracket.1 { bracket } else { OPEN };
                pending.push(node(profile, self.spacing, self.offset, left.index + width / 2, bracket));
            } else {
                nodes.push(right);
                pending.pop();
                if nodes.len().is_multiple_of(4096) {
                    run.check()?;
                }
            }
        }
        run.count(EVALUATION * (nodes.len() - first) as u64);
        Ok(Self { nodes, ..self })
    }
}

const OPEN: (f64, f64) = (f64::NEG_INFINITY, f64::INFINITY);

// indices stay below 2^41: the product is exact
fn node(profile: &dyn Profile, spacing: f64, offset: f64, index: i64, bracket: (f64, f64)) -> Node {
    let epsilon = real(index) * spacing;
    let loss = offset + epsilon;
    Node { index, epsilon, point: profile.at_within(loss, bracket).or_trivial(loss) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slope_that_underflowed_claims_nothing_across_a_wide_cell() {
        let at = |index: i32, delta: f64, slope: f64| Node {
            index: index.into(),
            epsilon: index.into(),
            point: ProfilePoint { delta, delta_error: 0.0, slope, slope_error: 0.0, threshold: f64::NAN },
        };
        // This is 1 − e^ε at ε = −1000, where the slope e^ε underflows; e^1200 times it is unknown.
        let defects = Defects::between(&at(-1000, 1.0, 0.0), &at(200, 0.01, 1e-3), 0.0);
        assert!(defects.right_needed(0.0).is_infinite());
        assert!(defects.gap() > 0.9);
    }
}
