//! Chooses the cells of a product: as few as possible such that together they change ln δ by no more than allowed.
//!
//! A cell of width w adds a variance of at most w²/6 to each loss in it. The effect of that depends on the curvature of
//! δ in the losses of the other rounds ([`Place::weight`]). None of these numbers is a bound: the choices only decide
//! how narrow an interval is.

use crate::pld::check::Atoms;
use crate::pld::mesh::Node;
use crate::special::real;

/// The approximate position of an answer, and the law of the rounds' losses.
#[derive(Debug, Clone)]
pub struct Place {
    /// ε at the answer.
    pub epsilon: f64,
    /// How far from there the answer may lie.
    pub reach: f64,
    /// −d ln δ/dε at the answer.
    pub hazard: f64,
    /// ln δ at the answer.
    pub log_delta: f64,
    /// The law of the sum of all losses, where it is known.
    pub losses: Option<Outline>,
}

impl Place {
    /// Returns how much ln δ changes with half the variance of one loss in this range.
    ///
    /// A loss x turns δ(ε) into δ(ε − x) of the other rounds. Two losses with the same sums of p and p·e^{−x} differ in
    /// it by its curvature in e^{−x}, which is the density at ε − x of the other rounds' losses: nearly that of all
    /// rounds. As long as that is unknown: the loss x contributes e^{κx} times as much to δ with the hazard κ, and
    /// never more than 1, so the curvature is at most κ(κ + 1)e^{κx}, about κ/δ where x is ε, and 1/δ further out,
    /// where δ(ε − x) = 1 − e^{ε−x}.
    pub fn weight(&self, left: f64, right: f64) -> f64 {
        if let Some(losses) = &self.losses {
            let (from, to) = (self.epsilon - right - self.reach, self.epsilon - left + self.reach);
            return losses.density(from, to) * (-self.log_delta).exp();
        }
        let log = self.hazard.ln();
        let close = right < self.epsilon + 8.0 / self.hazard;
        let far = if close { log } else { 0.0 } - self.log_delta;
        (log + log.max(0.0) + self.hazard * right).min(far).exp()
    }

    /// Returns how much a gap between the profile of this many rounds and its chord changes ln δ: its area is half a
    /// variance.
    pub fn cost(&self, rounds: f64) -> impl Fn(&Node, &Node, f64) -> f64 + '_ {
        move |left, right, gap| {
            if gap == 0.0 {
                return 0.0;
            }
            gap * (right.epsilon - left.epsilon) * rounds * self.weight(left.epsilon, right.epsilon)
        }
    }
}

/// A law as a density that is constant between points. It is used for choices only; none of its numbers is a bound.
#[derive(Debug, Clone)]
pub struct Outline {
    /// The points, increasing.
    point: Vec<f64>,
    /// The mass up to each point.
    below: Vec<f64>,
    /// The mass from each point on, stored separately because for large losses it is smaller than the rounding of
    /// `below`.
    above: Vec<f64>,
}

impl Outline {
    /// Creates the outline from `first` on, with the mass up to each of these points; if a point equals the last one,
    /// its mass is spread up to the next.
    pub(super) fn new(first: f64, parts: impl Iterator<Item = (f64, f64)>) -> Self {
        let (mut point, mut mass, mut carried) = (vec![first], vec![0.0], 0.0);
        for (at, part) in parts {
            carried += part;
            if at > point[point.len() - 1] {
                point.push(at);
                mass.push(carried);
                carried = 0.0;
            }
        }
        let added = |sum: &mut f64, part: &f64| {
            *sum += part;
            Some(*sum)
        };
        let below = mass.iter().scan(0.0, added).collect();
        let mut above: Vec<f64> = mass[1..].iter().rev().scan(0.0, added).collect();
        above.reverse();
        above.push(0.0);
        Self { point, below, above }
    }

    /// Creates the outline of atoms (loss, mass), each spread out from the one before it; `None` if there are none.
    pub fn of(mut atoms: Vec<(f64, f64)>) -> Option<Self> {
        atoms.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
        let first = atoms.first()?.0;
        Some(Self::new(first, atoms.into_iter()))
    }

    /// Returns the value of one of the sums at a loss.
    fn at(&self, sums: &[f64], loss: f64) -> f64 {
        let next = self.point.partition_point(|&point| point <= loss);
        if next == 0 || next == self.point.len() {
            return sums[next.max(1) - 1];
        }
        let share = (loss - self.point[next - 1]) / (self.point[next] - self.point[next - 1]);
        sums[next - 1] + share * (sums[next] - sums[next - 1])
    }

    /// Returns the mass between two losses.
    fn mass(&self, from: f64, to: f64) -> f64 {
        let below = self.at(&self.below, to);
        let mass = if below <= 0.5 {
            below - self.at(&self.below, from)
        } else {
            self.at(&self.above, from) - self.at(&self.above, to)
        };
        mass.max(0.0)
    }

    /// Returns the mean density between two losses.
    fn density(&self, from: f64, to: f64) -> f64 {
        self.mass(from, to) / (to - from).max(f64::MIN_POSITIVE)
    }
}

/// What the cells must achieve; none of these numbers is a bound.
#[derive(Debug, Clone, Copy)]
pub struct Care<'a> {
    /// Where the answer lies.
    pub place: &'a Place,
    /// How much all cells together may change ln δ.
    pub budget: f64,
    /// The mass of a round's losses that may be counted as infinite, or left out.
    pub ignored: f64,
    /// The minimum and maximum number of cells of a product.
    pub cells: (u32, u32),
    /// Larger losses may be counted as infinite, or as this loss.
    pub highest: f64,
}

/// The number of atoms that represent a law where cells are chosen.
const SKETCHED: usize = 160;
/// The number of groups of pairs of these atoms that each have cells of one width.
const GROUPS: usize = 400;
/// The fraction of the cells that is spread evenly.
const EVERYWHERE: f64 = 0.05;
/// The number of times that the widths of cells are computed, each time with weights for the previous widths.
const SMOOTHED: usize = 3;

/// Returns edges of cells for the product of two laws, of which there are `blocks` in all rounds, such that all their
/// cells together change ln δ by about `care.budget`.
///
/// A cell of width w adds a variance of at most w²/6 to each loss in it. For a given number of cells the total cost is
/// least when each cell costs the same: where the density of the product times the weight is g, cells have a width in
/// proportion to g^(−1/3).
pub(super) fn cells(a: Atoms<'_>, b: Atoms<'_>, care: &Care<'_>, blocks: f64) -> Vec<f64> {
    let (first, last) = (a.loss[0] + b.loss[0], a.loss[a.loss.len() - 1] + b.loss[b.loss.len() - 1]);
    let product = pairs(a, b, care, first);
    let mut points: Vec<f64> = product.point.iter().copied().chain([first, last]).collect();
    if let Some(losses) = &care.place.losses {
        points.extend(losses.point.iter().map(|loss| care.place.epsilon - loss));
    }
    points.retain(|point| (first..=last).contains(point));
    points.sort_unstable_by(f64::total_cmp);
    // The weight is a mean over the range of the cell and the cells beside it.
    let cost = |from: f64, to: f64, width: f64| {
        let weight = care.place.weight(from - width, to + width);
        // A cell without a width has no cost.
        (product.mass(from, to) * weight * (to - from).powi(2)).cbrt().max(0.0)
    };
    let mut groups: Vec<(f64, f64, f64)> = points.windows(2).map(|w| (w[0], w[1], cost(w[0], w[1], 0.0))).collect();
    let (mut each, mut parts) = (0.0, 1);
    for round in 0..SMOOTHED {
        if round > 0 {
            for (from, to, spent) in &mut groups {
                *spent = cost(*from, *to, each * (*to - *from) / *spent);
            }
        }
        let total: f64 = groups.iter().map(|group| group.2).sum();
        // A few cells are placed everywhere, because a cost that was estimated as 0 may not be 0.
        let rest = if total > 0.0 { EVERYWHERE * total } else { 1.0 } / (last - first).max(f64::MIN_POSITIVE);
        for (from, to, spent) in &mut groups {
            *spent += rest * (*to - *from);
        }
        let count = (blocks / (12.0 * care.budget) * total.powi(3))
            .sqrt()
            .max(f64::from(care.cells.0))
            .min(f64::from(care.cells.1));
        each = groups.iter().map(|group| group.2).sum::<f64>() / count;
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // at most as many as there may be
        {
            parts = count.ceil() as u32;
        }
    }
    let mut edges = vec![first];
    // The k-th edge is where k shares have been spent.
    let (mut spent, mut group) = (0.0, 0);
    for k in 1..parts {
        let target = f64::from(k) * each;
        while group + 1 < groups.len() && spent + groups[group].2 < target {
            spent += groups[group].2;
            group += 1;
        }
        let Some(&(from, to, cost)) = groups.get(group) else { break };
        let edge = from + (to - from) * ((target - spent) / cost).clamp(0.0, 1.0);
        // Cells that rounding could make empty are left out.
        if edge - edges[edges.len() - 1] > 1e-10 * edge.abs() {
            edges.push(edge);
        }
    }
    // No mass lies beyond the last edge.
    let end = edges.len() - 1;
    if end == 0 {
        edges.push(last.max(first + 1e-10 * first.abs()) + 1e-300);
    } else if last - edges[end] > 1e-10 * last.abs() {
        edges.push(last);
    } else {
        edges[end] = edges[end].max(last);
    }
    edges
}

/// Returns the outline of the product of two laws.
fn pairs(a: Atoms<'_>, b: Atoms<'_>, care: &Care<'_>, first: f64) -> Outline {
    let (one, two) = (sketch(a, care), sketch(b, care));
    let mut pairs: Vec<(f64, f64)> = Vec::with_capacity(one.len() * two.len());
    for x in &one {
        pairs.extend(two.iter().map(|y| (x.0 + y.0, x.1 * y.1)));
    }
    pairs.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
    let groups = pairs.chunks(pairs.len().div_ceil(GROUPS));
    Outline::new(first, groups.map(|group| (group[group.len() - 1].0, group.iter().map(|pair| pair.1).sum())))
}

/// Returns a law as a few atoms (loss, mass), closest where the cost is largest.
fn sketch(law: Atoms<'_>, care: &Care<'_>) -> Vec<(f64, f64)> {
    let atoms: Vec<(f64, f64)> = law.loss.iter().copied().zip(law.mass.iter().copied()).collect();
    if atoms.len() <= SKETCHED {
        return atoms;
    }
    let cost = |i: usize| {
        let ((loss, mass), before) = (atoms[i], atoms[i.saturating_sub(1)].0);
        (mass * care.place.weight(before, loss) * (loss - before).powi(2)).cbrt()
    };
    let step = (0..atoms.len()).map(cost).sum::<f64>() / real(SKETCHED);
    let (mut few, mut spent, mut sum) = (Vec::with_capacity(SKETCHED + 2), 0.0, 0.0);
    for (i, (loss, mass)) in atoms.iter().enumerate() {
        spent += cost(i);
        sum += mass;
        if spent >= step || i == 0 || i + 1 == atoms.len() {
            few.push((*loss, sum));
            (spent, sum) = (0.0, 0.0);
        }
    }
    few
}
