//! The value of a sample when the sampled mechanism is composed with one whose curve is known.
//!
//! Let (P, Q) be the pair that is sampled, L = ln P/Q, and (P₀, Q₀) the product of the dominating pairs of everything
//! else, with D(x) = H_{e^x}(P₀‖Q₀). Then H_{e^ε}(P×P₀‖Q×Q₀) = E_{y~P} D(ε − L(y)): given y, the phases that compose
//! are compared at e^ε·Q(y)/P(y). Without a composed profile D(x) = (1 − e^x)₊. A sample's value is therefore read off
//! a table of D, from above for bets that δ is small, from below for bets that it is large.
//!
//! **The tables** are linear in α = e^x between nodes that are equally spaced in x. D is convex and decreasing in α,
//! with D = 1 at α = 0.
//!
//! *From above.* The lower convex hull of the point (0, 1) and of proven upper bounds at the nodes lies above D: D is
//! convex and lies below these points, and the hull is the largest such function. To the right of the last node D is at
//! most its value there, the *tail mass*, which is subtracted from the table: D ≤ tail mass + D°, D° = 0 beyond the
//! last node, and samples estimate the mean of D°. Convexity gives α|D°′| ≤ D(0) − D(α) ≤ 1: the value changes by at
//! most as much as the loss.
//!
//! *From below.* Let l ≤ D ≤ v at the nodes. Inside a cell D lies above the line through its left neighbours, continued
//! from the left, and above the one through its right neighbours, continued from the right (convexity), and so above
//! each line's value with l at the near node and v at the far one. The larger of two lines is convex with one kink; the
//! chord between its end points, lowered by its distance at the kink, lies below it. A node takes the smaller of the
//! values from its two cells, so that the table is continuous, then is lowered to decrease from node to node, by the
//! tail mass, and to the upper table. The first node is lowered to 1 − α, which D is never below; left of it the line
//! to (0, 1) lies below 1 − α.
//!
//! **Rounding.** A value is `base − slope·e^{x − reference}` with slope·e^{x − reference} ≤ base up to rounding:
//! 16u·base covers the exponential, product and difference, and also the choice of a neighbouring cell where x is
//! within rounding of a node, since the lines meet there. `base` is moved to the safe side by [`SLACK`] times the
//! largest base of the cell and its neighbours, which also covers the rounding of the hull and of the lines. The caller
//! adds the effect of the error of x itself: see [`Curve::argument_error`].

use crate::error::{domain, Error, Result};
use crate::special::{real, UNIT_ROUNDOFF};
use crate::vector::functions::exp;
use crate::vector::{splat, Vector, LANES};

/// The relative change of `base` to the safe side; see the head of this file.
const SLACK: f64 = 1e-13;

/// One interval on which a table is linear in α; aligned so that a look-up touches one cache line.
#[derive(Debug, Clone, Copy, PartialEq)]
#[repr(align(32))]
struct Cell {
    base: f64,
    slope: f64,
    reference: f64,
}

/// A curve D of the mechanisms that are composed with the sampled one, from above and from below.
#[derive(Debug, Clone, PartialEq)]
pub struct Curve {
    /// x of the first node.
    first: f64,
    spacing: f64,
    density: f64,
    /// The cells: left of the first node, between the nodes, and right of the last.
    upper: Vec<Cell>,
    lower: Vec<Cell>,
    tail_mass: f64,
    gap: f64,
}

/// The table that is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bound {
    /// An upper bound on D° = D − tail mass.
    Above,
    /// A lower bound on D − tail mass, or 0.
    Below,
}

impl Curve {
    /// Creates the curve with nodes at `first`, `first + spacing`, …
    ///
    /// * `upper`: upper bounds on D there.
    /// * `lower`: for a pair whose D is nowhere larger (or the same pair), lower and upper bounds on its D.
    ///
    /// # Errors
    /// [`Error::Domain`] for fewer than two nodes, lengths that differ, a spacing that is not positive, nodes beyond
    /// ±600 or bounds outside [0, 1]; [`Error::Numerics`] for bounds that cross.
    pub fn new(first: f64, spacing: f64, upper: &[f64], lower: &[(f64, f64)]) -> Result<Self> {
        let last = first + spacing * real(upper.len());
        if upper.len() < 2 || upper.len() != lower.len() {
            let value = real(upper.len());
            return domain("nodes", value, "at least 2, as many from above as from below");
        }
        if !(spacing > 0.0 && first.abs() <= 600.0 && last.abs() <= 600.0) {
            return domain("spacing", spacing, "greater than 0, with nodes between -600 and 600");
        }
        let all = upper.iter().chain(lower.iter().flat_map(|(l, v)| [l, v]));
        if let Some(&wrong) = all.into_iter().find(|value| !(0.0..=1.0).contains(*value)) {
            return domain("delta", wrong, "between 0 and 1");
        }
        if upper.iter().zip(lower).any(|(u, (l, v))| l > u || l > v) {
            return Err(Error::Numerics { reason: "the bounds on the composed curve cross; this is a defect" });
        }
        let raised = hull(spacing, upper);
        let tail_mass = raised[raised.len() - 1];
        let above: Vec<f64> = raised.iter().map(|u| u - tail_mass).collect();
        let mut below = supported(spacing, lower);
        // The node is rounded down: 1 − e^x has an error of at most 2u.
        below[0] = below[0].min(-libm::expm1(first) * (1.0 - 1e-15) - 1e-16).max(below[1]);
        let starts_high = below[0] > tail_mass && below[0] <= -libm::expm1(first);
        for (value, most) in below.iter_mut().zip(&above) {
            *value = (*value - tail_mass).clamp(0.0, *most);
        }
        let gap = relative_gap(&above, &below);
        let cells = |nodes: &[f64], left: Cell, side: f64| cells(first, spacing, nodes, left, side);
        let chord = Cell { base: 1.0 - tail_mass, slope: (1.0 - tail_mass - above[0]).max(0.0), reference: first };
        let low = if starts_high {
            Cell { base: 1.0 - tail_mass, slope: 1.0 - tail_mass - below[0], reference: first }
        } else {
            Cell { base: below[0], slope: 0.0, reference: first }
        };
        Ok(Self {
            first,
            spacing,
            density: 1.0 / spacing,
            upper: cells(&above, chord, 1.0),
            lower: cells(&below, low, -1.0),
            tail_mass,
            gap,
        })
    }

    /// Returns the amount that is subtracted in the tables: D is at most D° plus this.
    pub fn tail_mass(&self) -> f64 {
        self.tail_mass
    }

    /// Returns the largest distance between the tables at a node relative to the upper one, where the upper one is
    /// above a thousandth.
    pub fn gap(&self) -> f64 {
        self.gap
    }

    /// Returns the effect of the rounding of x = ε − (ln of a ratio of densities), of its position in the table and of
    /// x − reference.
    ///
    /// Inside the table |x| is at most its reach, so all intermediate numbers are at most |ε| + reach, and each of four
    /// operations adds a u of that. Left of it the table is 1 − (1 − D(x₀))e^{x − x₀}, and |x|e^{x − x₀} is less than
    /// at the first node, or 1.
    pub fn argument_error(&self, epsilon: f64) -> f64 {
        let reach = self.first.abs().max((self.first + self.spacing * real(self.upper.len())).abs());
        8.0 * UNIT_ROUNDOFF * (epsilon.abs() + 2.0 * reach + 1.0)
    }

    fn table(&self, bound: Bound) -> &[Cell] {
        match bound {
            Bound::Above => &self.upper,
            Bound::Below => &self.lower,
        }
    }

    #[inline(always)]
    fn place(&self, x: f64) -> usize {
        let last = real(self.upper.len() - 1);
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // clamped to the table
        let index = ((x - self.first) * self.density + 1.0).clamp(0.0, last) as usize;
        index
    }

    /// Returns the values of a table at eight arguments.
    #[inline(always)]
    pub fn at<V: Vector>(&self, bound: Bound, x: V) -> V {
        let table = self.table(bound);
        let mut arguments = splat(0.0);
        x.store(&mut arguments);
        let (mut base, mut slope, mut reference) = (splat(0.0), splat(0.0), splat(0.0));
        for lane in 0..LANES {
            let cell = &table[self.place(arguments[lane])];
            base[lane] = cell.base;
            slope[lane] = cell.slope;
            reference[lane] = cell.reference;
        }
        let growth = exp(x.sub(V::load(&reference)));
        V::load(&base).sub(V::load(&slope).mul(growth)).max(V::splat(0.0))
    }

    /// Returns the value of a table at one argument, which may be infinite.
    pub fn single(&self, bound: Bound, x: f64) -> f64 {
        let cell = self.table(bound)[self.place(x)];
        (cell.base - cell.slope * libm::exp((x - cell.reference).min(700.0))).max(0.0)
    }

    /// Returns an upper bound on ln sup_x e^{cx} D°(x), c > 0: over each cell of t^c(base − slope·t), which rises up to
    /// t = c·base/((c + 1)·slope) and then falls.
    ///
    /// Rounding: at the maximum the slope is 0, and at a cell's right end, where the product still rises, it is at most
    /// c/t; so t's own error of 4u counts c times. The difference may have an error of 4u of both its terms, the
    /// logarithm of a few u of its terms.
    pub fn log_peak(&self, c: f64) -> f64 {
        let peak = |(k, cell): (usize, &Cell)| {
            let (least, most) = self.ends(k);
            let t = if cell.slope > 0.0 { (c * cell.base / ((c + 1.0) * cell.slope)).clamp(least, most) } else { most };
            let value = cell.base - cell.slope * t + 4.0 * UNIT_ROUNDOFF * (cell.base.abs() + cell.slope * t);
            if value > 0.0 && t > 0.0 {
                let (height, depth) = (c * (cell.reference.abs() + t.ln().abs()), value.ln().abs());
                c * (cell.reference + t.ln()) + value.ln() + 4.0 * UNIT_ROUNDOFF * (height + depth + c + 1.0)
            } else {
                f64::NEG_INFINITY
            }
        };
        // Right of the last node D° is 0; the value of that cell only allows for a choice of the cell by rounding.
        self.upper[..self.upper.len() - 1].iter().enumerate().map(peak).fold(f64::NEG_INFINITY, f64::max)
    }

    /// Returns an upper bound on ln sup_x e^{cx}|dV/dx| for both tables: in a cell it is slope·t^{c+1}, largest at its
    /// right end, which may have an error of 2u; and a few u of the terms of the logarithm.
    pub fn log_steepness(&self, c: f64) -> f64 {
        let steepest = |table: &[Cell]| {
            let steep = |(k, cell): (usize, &Cell)| {
                let most = self.ends(k).1;
                let terms = [cell.slope.ln(), c * cell.reference, (c + 1.0) * most.ln()];
                let size: f64 = terms.iter().filter(|term| term.is_finite()).map(|term| term.abs()).sum();
                terms.iter().sum::<f64>() + 4.0 * UNIT_ROUNDOFF * (size + c + 1.0)
            };
            table[..table.len() - 1].iter().enumerate().map(steep).fold(f64::NEG_INFINITY, f64::max)
        };
        steepest(&self.upper).max(steepest(&self.lower))
    }

    /// Returns the least and the largest e^{x − reference} of a cell.
    fn ends(&self, cell: usize) -> (f64, f64) {
        if cell == 0 {
            (0.0, 1.0)
        } else {
            (1.0, self.spacing.exp())
        }
    }
}

/// Returns the values at the nodes of the lower convex hull, in α, of (0, 1) and the points at the nodes.
fn hull(spacing: f64, upper: &[f64]) -> Vec<f64> {
    // α is relative to the first node's, which has the same convexity and does not underflow.
    let alpha = |j: usize| (spacing * real(j)).exp();
    let mut least = 1.0_f64;
    let mut kept: Vec<(f64, f64)> = vec![(0.0, 1.0)];
    for (j, &value) in upper.iter().enumerate() {
        least = least.min(value);
        let point = (alpha(j), least);
        while let [.., a, b] = kept[..] {
            // b is above the chord from a to the new point, so it is no corner.
            if (b.1 - a.1) * (point.0 - a.0) < (point.1 - a.1) * (b.0 - a.0) {
                break;
            }
            kept.pop();
        }
        kept.push(point);
    }
    let mut corner = 0;
    (0..upper.len())
        .map(|j| {
            let at = alpha(j);
            while corner + 2 < kept.len() && kept[corner + 1].0 < at {
                corner += 1;
            }
            let ((a, above), (b, below)) = (kept[corner], kept[corner + 1]);
            let share = ((at - a) / (b - a)).clamp(0.0, 1.0);
            // The hull is below the node's own bound; if rounding reverses this, either value may be used.
            (above + (below - above) * share).max(below)
        })
        .collect()
}

/// Returns nodes of a continuous decreasing function below a convex decreasing one, from (lower, upper) bounds on it.
fn supported(spacing: f64, bounds: &[(f64, f64)]) -> Vec<f64> {
    let (n, ratio) = (bounds.len(), spacing.exp());
    let mut nodes = vec![f64::INFINITY; n];
    for j in 0..n - 1 {
        let (left, right) = (bounds[j].0, bounds[j + 1].0);
        // In t = α/α_j from 1 to e^h. From the left: l_j − (v_{j−1} − l_j)(t − 1)/(1 − e^{−h}).
        let falling = |t: f64| match j.checked_sub(1) {
            Some(before) => left - (bounds[before].1 - left) * (t - 1.0) * ratio / (ratio - 1.0),
            None => right,
        };
        // From the right: l_{j+1} + (l_{j+1} − v_{j+2})(e^h − t)/(e^{2h} − e^h). Either way D is at least l_{j+1}.
        let rising = |t: f64| {
            let steep = bounds.get(j + 2).map_or(0.0, |next| (right - next.1).max(0.0));
            right + steep * (ratio - t) / (ratio * (ratio - 1.0))
        };
        let larger = |t: f64| falling(t).max(rising(t));
        let (near, far) = (larger(1.0), larger(ratio));
        // These are the differences of the two lines at both ends; where the sign changes, the lines meet.
        let (before, after) = (falling(1.0) - rising(1.0), falling(ratio) - rising(ratio));
        let mut lowered = 0.0;
        if before * after < 0.0 {
            let share = before / (before - after);
            let kink = larger(1.0 + share * (ratio - 1.0));
            lowered = (near + share * (far - near) - kink).max(0.0);
        }
        nodes[j] = nodes[j].min(near - lowered);
        nodes[j + 1] = nodes[j + 1].min(far - lowered);
    }
    let mut least = 1.0_f64;
    for node in &mut nodes {
        least = least.min(*node);
        *node = least.max(0.0);
    }
    nodes
}

/// Returns the cells of a table with these nodes, moved up for `side` = 1 and down for `side` = −1.
fn cells(first: f64, spacing: f64, nodes: &[f64], left: Cell, side: f64) -> Vec<Cell> {
    let width = spacing.exp_m1();
    let mut table = vec![left];
    for (j, pair) in nodes.windows(2).enumerate() {
        let slope = ((pair[0] - pair[1]) / width).max(0.0);
        let reference = first + spacing * real(j);
        table.push(Cell { base: pair[0] + slope, slope, reference });
    }
    let bases: Vec<f64> = table.iter().map(|cell| cell.base).collect();
    for (k, cell) in table.iter_mut().enumerate() {
        let largest = bases[k.saturating_sub(1)..(k + 2).min(bases.len())].iter().fold(0.0_f64, |a, b| a.max(*b));
        cell.base += side * SLACK * largest;
    }
    let reference = first + spacing * real(nodes.len() - 1);
    let beyond = if side > 0.0 { SLACK * bases[bases.len() - 1] } else { 0.0 };
    table.push(Cell { base: beyond, slope: 0.0, reference });
    table
}

fn relative_gap(above: &[f64], below: &[f64]) -> f64 {
    above.iter().zip(below).filter(|(a, _)| **a > 1e-3).map(|(a, b)| (a - b) / a).fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vector::{instruction_sets, with_instruction_set, Lanes, Vectored};

    /// Returns H_{e^x} of randomised response that tells the truth with probability e/(1 + e): it ends at x = 1, and is
    /// linear in between.
    fn response(x: f64) -> f64 {
        let truth = 1.0 / (1.0 + libm::exp(-1.0));
        let alpha = libm::exp(x);
        (truth - alpha * (1.0 - truth)).max(0.0) + (1.0 - truth - alpha * truth).max(0.0)
    }

    fn curve() -> Curve {
        let nodes: Vec<f64> = (0..65).map(|j| response(-2.0 + f64::from(j) / 16.0)).collect();
        let both: Vec<(f64, f64)> = nodes.iter().map(|d| (*d, *d)).collect();
        Curve::new(-2.0, 1.0 / 16.0, &nodes, &both).unwrap()
    }

    #[test]
    fn piecewise_linear_curves_are_met_and_never_crossed() {
        let curve = curve();
        assert!(curve.tail_mass().abs() < f64::EPSILON);
        for k in -4000..4000 {
            let x = f64::from(k) / 700.0;
            let (below, above) = (curve.single(Bound::Below, x), curve.single(Bound::Above, x));
            assert!(below <= response(x) && response(x) <= above, "{x}");
            // The kinks lie at nodes, so the tables differ only by the slack; left of the first node D is 1 − α.
            assert!(above - below < 1e-11, "{x}: {below} {above}");
        }
    }

    #[test]
    fn instruction_sets_agree_bit_for_bit() {
        struct Look<'a>(&'a Curve, Lanes, Bound);
        impl Vectored for Look<'_> {
            type Output = Lanes;
            #[inline(always)]
            fn run<V: Vector>(self) -> Lanes {
                let mut out = splat(0.0);
                self.0.at(self.2, V::load(&self.1)).store(&mut out);
                out
            }
        }
        let curve = curve();
        for bound in [Bound::Above, Bound::Below] {
            for start in -40..40 {
                let x = Lanes(std::array::from_fn(|l| {
                    f64::from(start) / 9.0 + [0.0, 0.013, 0.4, 1.1, 2.0, 2.03, 3.0, 9.0][l]
                }));
                let reference = with_instruction_set("portable", Look(&curve, x, bound)).unwrap();
                for name in instruction_sets() {
                    assert_eq!(with_instruction_set(name, Look(&curve, x, bound)).unwrap(), reference, "{name}");
                }
                for lane in 0..LANES {
                    assert!((reference[lane] - curve.single(bound, x[lane])).abs() < 1e-14);
                }
            }
        }
    }
}
