//! Where the cells of a product lie: such that together they change ln δ by what they may, with as few of them as that takes.
//!
//! A cell of width w adds a variance of w²/6 at most to each loss in it, which matters by the curvature of δ in what the other rounds
//! lose ([`Place::weight`]). Nothing here is a bound: choices decide how narrow an interval is, and nothing else.

use crate::pld::doubling::Law;
use crate::pld::mesh::Node;

/// About where an answer lies, and what the rounds lose.
#[derive(Debug, Clone)]
pub struct Place {
    /// ε there.
    pub epsilon: f64,
    /// How far from there it may lie.
    pub reach: f64,
    /// −d ln δ/dε there.
    pub hazard: f64,
    /// ln δ there.
    pub log_delta: f64,
    /// What all rounds lose, where it is known.
    pub losses: Option<Outline>,
}

impl Place {
    /// How much ln δ changes with half the variance of one loss in this range.
    ///
    /// A loss x makes of δ(ε) the others' δ(ε − x). Two losses with the same sums of p and p·e^{−x} differ in it by its curvature in
    /// e^{−x}, which is the density of what the others lose at ε − x: nearly that of all rounds. Before that is known: the loss x
    /// makes e^{κx} times as much of δ with the hazard κ, and never more than 1, so the curvature is at most κ(κ + 1)e^{κx}, about κ/δ
    /// where x is ε, and 1/δ further out, where δ(ε − x) = 1 − e^{ε−x}.
    #[must_use]
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

    /// How much a gap between the profile of so many rounds and its chord changes ln δ: its area is half a variance.
    pub fn cost(&self, rounds: f64) -> impl Fn(&Node, &Node, f64) -> f64 + '_ {
        move |left, right, gap| {
            if gap == 0.0 {
                return 0.0;
            }
            gap * (right.epsilon - left.epsilon) * rounds * self.weight(left.epsilon, right.epsilon)
        }
    }
}

/// A law as a density that is constant between points. For choices: nothing here is a bound.
#[derive(Debug, Clone)]
pub struct Outline {
    /// Increasing.
    point: Vec<f64>,
    /// The mass up to each point.
    below: Vec<f64>,
    /// The mass from each point on: far up it is less than the other sum resolves.
    above: Vec<f64>,
}

impl Outline {
    /// From `first` on, the mass up to each of these points; where one lies on the last, its mass is spread up to the next.
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

    /// Atoms (loss, mass), each spread out from the one before it; `None` where there are none.
    #[must_use]
    pub fn of(mut atoms: Vec<(f64, f64)>) -> Option<Self> {
        atoms.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
        let first = atoms.first()?.0;
        Some(Self::new(first, atoms.into_iter()))
    }

    /// The value of one of the sums at a loss.
    fn at(&self, sums: &[f64], loss: f64) -> f64 {
        let next = self.point.partition_point(|&point| point <= loss);
        if next == 0 || next == self.point.len() {
            return sums[next.max(1) - 1];
        }
        let share = (loss - self.point[next - 1]) / (self.point[next] - self.point[next - 1]);
        sums[next - 1] + share * (sums[next] - sums[next - 1])
    }

    /// The mass between two losses.
    fn mass(&self, from: f64, to: f64) -> f64 {
        let below = self.at(&self.below, to);
        let found = if below <= 0.5 {
            below - self.at(&self.below, from)
        } else {
            self.at(&self.above, from) - self.at(&self.above, to)
        };
        found.max(0.0)
    }

    /// The mean density between two losses.
    fn density(&self, from: f64, to: f64) -> f64 {
        self.mass(from, to) / (to - from).max(f64::MIN_POSITIVE)
    }
}

/// What the cells are to be good for: nothing here is a bound.
#[derive(Debug, Clone, Copy)]
pub struct Care<'a> {
    /// Where the answer lies.
    pub place: &'a Place,
    /// How much all cells together may change ln δ.
    pub budget: f64,
    /// Mass of a round's losses that may be counted as infinite, or left out.
    pub ignored: f64,
    /// Cells of a product, at least and at most.
    pub cells: (u32, u32),
    /// Larger losses may be counted as infinite, or as this one.
    pub highest: f64,
}

/// Atoms of a law that stand for it where cells are chosen.
const SKETCHED: usize = 160;
/// Groups of pairs of these that each have cells of one width.
const GROUPS: usize = 400;
/// This share of them is spread evenly.
const EVERYWHERE: f64 = 0.05;
/// The widths of cells are found so often, each time with weights for those of the time before.
const SMOOTHED: usize = 3;

/// Edges of cells for the product of two laws, of which there are `blocks` in all rounds: such that all their cells together change
/// ln δ by about `care.budget`.
///
/// A cell of width w adds a variance of w²/6 at most to each loss in it. For a given number of cells the sum of what that costs is
/// least when each costs the same: where the density of the product times the weight is g, cells have a width in proportion to
/// g^(−1/3).
pub(super) fn cells(a: &Law, b: &Law, care: &Care<'_>, blocks: f64) -> Vec<f64> {
    let (first, last) = (a.loss[0] + b.loss[0], a.loss[a.loss.len() - 1] + b.loss[b.loss.len() - 1]);
    let product = pairs(a, b, care, first);
    let mut points: Vec<f64> = product.point.iter().copied().chain([first, last]).collect();
    if let Some(losses) = &care.place.losses {
        points.extend(losses.point.iter().map(|loss| care.place.epsilon - loss));
    }
    points.retain(|point| (first..=last).contains(point));
    points.sort_unstable_by(f64::total_cmp);
    // A cell is as wide as it is: the weight is a mean over what its own cell and the ones beside it cover.
    let cost = |from: f64, to: f64, width: f64| {
        let weight = care.place.weight(from - width, to + width);
        // Without a width there is no cost.
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
        // A few cells everywhere: what was thought to cost nothing may matter elsewhere.
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
    // The k-th edge is where k shares are spent.
    let (mut spent, mut group) = (0.0, 0);
    for k in 1..parts {
        let target = f64::from(k) * each;
        while group + 1 < groups.len() && spent + groups[group].2 < target {
            spent += groups[group].2;
            group += 1;
        }
        let Some(&(from, to, cost)) = groups.get(group) else { break };
        let edge = from + (to - from) * ((target - spent) / cost).clamp(0.0, 1.0);
        // Cells that rounding could empty are none.
        if edge - edges[edges.len() - 1] > 1e-10 * edge.abs() {
            edges.push(edge);
        }
    }
    // Nothing lies beyond the last edge.
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

/// The product of two laws in outline.
fn pairs(a: &Law, b: &Law, care: &Care<'_>, first: f64) -> Outline {
    let (one, two) = (sketch(a, care), sketch(b, care));
    let mut pairs: Vec<(f64, f64)> = Vec::with_capacity(one.len() * two.len());
    for x in &one {
        pairs.extend(two.iter().map(|y| (x.0 + y.0, x.1 * y.1)));
    }
    pairs.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
    let groups = pairs.chunks(pairs.len().div_ceil(GROUPS));
    Outline::new(first, groups.map(|group| (group[group.len() - 1].0, group.iter().map(|pair| pair.1).sum())))
}

/// A law as a few atoms (loss, mass), closest where it counts.
fn sketch(law: &Law, care: &Care<'_>) -> Vec<(f64, f64)> {
    let atoms: Vec<(f64, f64)> = law.loss.iter().copied().zip(law.mass.iter().copied()).collect();
    if atoms.len() <= SKETCHED {
        return atoms;
    }
    let cost = |i: usize| {
        let ((loss, mass), before) = (atoms[i], atoms[i.saturating_sub(1)].0);
        (mass * care.place.weight(before, loss) * (loss - before).powi(2)).cbrt()
    };
    #[allow(clippy::cast_precision_loss)] // small
    let step = (0..atoms.len()).map(cost).sum::<f64>() / SKETCHED as f64;
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
