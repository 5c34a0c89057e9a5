//! Laws below in convex order: cells of a geometric grid, each with its mass and its conditional mean.
//!
//! **Several participations.** If a record takes part in k of T rounds, and every set of k rounds has the same
//! probability, the likelihood ratio is S = e_k(Z)/C(T, k), e_k the elementary symmetric polynomial. The cells are
//! cells of the sum of all Z, whatever k is, and each stores the expectations of e_0 = 1, e_1, …, e_k over the cell:
//! for two independent groups of terms these are e_j = Σ_i e_i·e_{j−i}. At the end E[S | cell] = E[e_k; cell]/(C(T,
//! k)·Pr[cell]), which lies below S in convex order (Jensen).

use crate::error::Result;
use crate::pair::allocation::grid::GeometricGrid;
use crate::pair::allocation::leaf::LogNormal;
use crate::pair::allocation::pairs::{Nodes, Pairs};
use crate::pair::allocation::ratio::{Atom, RatioLaw};
use crate::pair::allocation::{Law, Terms};
use crate::run::Run;
use crate::special::{real, UNIT_ROUNDOFF};

/// A law below that of a sum. Any grouping of values into cells is valid, so cells are only nominally those of the
/// grid: a sum goes to the cell in which the sum of the cells' middles lies.
#[derive(Debug, Clone)]
pub struct Means {
    refined: u32,
    /// The cell with the first mass; cell i holds the values near e^{h(i + ½)}.
    first: i64,
    masses: Vec<f64>,
    /// The expectation of e_1 over each cell.
    moments: Vec<f64>,
    /// The expectations of e_2, e_3, …, e_k over each cell.
    higher: Vec<Vec<f64>>,
    /// After the grid was refined, only every `stride`-th cell has mass.
    stride: usize,
    /// A bound on the relative error of every mass and moment.
    error: f64,
}

impl Means {
    /// Returns the law of one term, for this many participations.
    pub fn leaf(term: Terms, participations: usize, grid: &GeometricGrid) -> Self {
        let (law, h) = (LogNormal::new(term.square), grid.step(0));
        let (low, high) = grid.ends(term.square);
        #[allow(clippy::cast_possible_truncation)] // limited by the grid
        let (first, last) = ((low / h).floor() as i64, (high / h).ceil() as i64);
        let edge = |cell: i64| h * real(cell);
        let (below, above) = (law.below(edge(first)), law.above(edge(last)));
        let (mut masses, mut moments) = (vec![below.0], vec![below.1]);
        for cell in first..last {
            let v = edge(cell);
            masses.push(law.over_cell(v, h, |_| 1.0));
            moments.push(v.exp() * law.over_cell(v, h, f64::exp));
        }
        masses.push(above.0);
        moments.push(above.1);
        let error = law.error(grid.reach()) + 4.0 * UNIT_ROUNDOFF * (1.0 + low.abs().max(high.abs()));
        // One term has no product of two.
        let higher = vec![vec![0.0; masses.len()]; participations - 1];
        Self { refined: 0, first: first - 1, masses, moments, higher, stride: 1, error }
    }

    /// Returns the expectations of e_j over each cell.
    fn elementary(&self, j: usize) -> &[f64] {
        match j {
            0 => &self.masses,
            1 => &self.moments,
            _ => &self.higher[j - 2],
        }
    }

    /// Returns the largest j.
    fn degree(&self) -> usize {
        self.higher.len() + 1
    }

    /// Returns the law of e_k of this many terms divided by its mean, as a law of the likelihood ratio.
    pub fn ratio(&self, terms: u64) -> RatioLaw {
        let degree = self.degree();
        let sets = sets(terms, degree);
        let cells = self.masses.iter().zip(self.elementary(degree)).filter(|(mass, sum)| **mass > 0.0 && **sum > 0.0);
        let mut atoms: Vec<Atom> = cells
            .map(|(mass, sum)| Atom { value: sum / mass / sets, mass: *mass })
            .filter(|atom| atom.value.is_finite())
            .collect();
        atoms.sort_by(|one, other| one.value.total_cmp(&other.value));
        let rounding = (4.0 + 4.0 * real(degree)) * UNIT_ROUNDOFF;
        RatioLaw::new(atoms, 0.0, 0.0, self.error, 2.0 * self.error + rounding)
    }

    fn nodes(&self) -> Nodes {
        Nodes { first: self.first, count: self.masses.len(), phase: self.stride / 2, stride: self.stride }
    }

    /// Adds masses, moments and higher moments, in this order, from a cell on.
    fn merge(&mut self, first: i64, more: &[Vec<f64>]) {
        if self.masses.is_empty() {
            self.first = first;
        }
        let before = usize::try_from(self.first - first).unwrap_or(0);
        self.first -= i64::try_from(before).expect("cells");
        let place = usize::try_from(first - self.first).expect("at or above the first");
        let all = [&mut self.masses, &mut self.moments].into_iter().chain(&mut self.higher);
        for (sums, more) in all.zip(more) {
            sums.splice(0..0, std::iter::repeat_n(0.0, before));
            sums.resize(sums.len().max(place + more.len()), 0.0);
            for (sum, one) in sums[place..].iter_mut().zip(more) {
                *sum += one;
            }
        }
    }
}

/// Returns C(terms, k), as a product of k quotients.
fn sets(terms: u64, k: usize) -> f64 {
    (0..k).map(|i| (real(terms) - real(i)) / (real(i) + 1.0)).product()
}

impl Law for Means {
    fn refined(&self) -> u32 {
        self.refined
    }

    fn embedded(&self, refined: u32) -> Self {
        let finer = 1_usize << (refined - self.refined);
        let spread = |values: &[f64]| {
            let mut finer_values = vec![0.0; values.len() * finer];
            for (value, place) in values.iter().zip(finer_values.iter_mut().skip(finer / 2).step_by(finer)) {
                *place = *value;
            }
            finer_values
        };
        Self {
            refined,
            first: self.first * i64::try_from(finer).expect("a few"),
            masses: spread(&self.masses),
            moments: spread(&self.moments),
            higher: self.higher.iter().map(|values| spread(values)).collect(),
            stride: self.stride * finer,
            error: self.error,
        }
    }

    fn plus(&self, other: &Self, finer: usize, grid: &GeometricGrid, run: &Run) -> Result<Self> {
        let mut sum = Self {
            refined: self.refined + u32::from(finer == 2),
            first: 0,
            masses: vec![],
            moments: vec![],
            higher: vec![vec![]; self.higher.len()],
            stride: 1,
            error: 0.0,
        };
        // For a law and itself, one order of the pairs covers both.
        let same = std::ptr::eq(self, other);
        for (late, early, strict) in
            [(self, other, false), (other, self, true)].into_iter().take(if same { 1 } else { 2 })
        {
            let pairs = Pairs::new(late.nodes(), early.nodes(), strict, grid.step(self.refined), finer);
            let Some(pairs) = pairs else { continue };
            // The middle of the higher cell is half a cell above its lower edge.
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // cells
            let lifted = |distance: usize| {
                let (whole, part) = pairs.above(distance);
                whole + (part + 0.5 * real(finer)) as usize
            };
            let lifts: Vec<usize> = pairs.distances().map(lifted).collect();
            let nearest = *pairs.distances().start();
            let sums = pairs.sums(
                |distance| lifts[distance - nearest],
                2,
                run,
                |row, [masses, moments]| {
                    let (x, x_mean) = (&late.masses[row.late.clone()], &late.moments[row.late.clone()]);
                    let (y, y_mean) = (&early.masses[row.early.clone()], &early.moments[row.early.clone()]);
                    let factor = if same && row.distance > 0 { 2.0 } else { 1.0 };
                    if row.stride > 1 {
                        for k in (0..x.len()).step_by(row.stride) {
                            masses[k] += factor * (x[k] * y[k]);
                            moments[k] += factor * (x_mean[k] * y[k] + x[k] * y_mean[k]);
                        }
                        return;
                    }
                    let terms = x.iter().zip(x_mean).zip(y.iter().zip(y_mean));
                    for ((mass, moment), ((x, x_mean), (y, y_mean))) in
                        masses.iter_mut().zip(moments.iter_mut()).zip(terms)
                    {
                        *mass += factor * (x * y);
                        *moment += factor * (x_mean * y + x * y_mean);
                    }
                },
            )?;
            let mut all = Vec::from(sums);
            for j in 2..=self.degree() {
                let [sums] = pairs.sums(
                    |distance| lifts[distance - nearest],
                    2,
                    run,
                    |row, [sums]| {
                        let factor = if same && row.distance > 0 { 2.0 } else { 1.0 };
                        for i in 0..=j {
                            let x = &late.elementary(i)[row.late.clone()];
                            let y = &early.elementary(j - i)[row.early.clone()];
                            for k in (0..x.len()).step_by(row.stride) {
                                sums[k] += factor * (x[k] * y[k]);
                            }
                        }
                    },
                )?;
                all.push(sums);
            }
            sum.merge(pairs.base(), &all);
        }
        // For each pair at most k + 1 products are added.
        let products = self.degree();
        let additions = real(2 * products * (self.masses.len() + other.masses.len()) + 16);
        sum.error = (self.error + other.error + additions * UNIT_ROUNDOFF) * (1.0 + 1e-6);
        Ok(sum)
    }

    fn pruned(mut self, terms: u64, grid: &GeometricGrid) -> Self {
        let loss = grid.loss(terms);
        let (mut mass, mut moment, mut cut) = (0.0, 0.0, 0);
        while cut + 1 < self.masses.len() && mass + self.masses[cut] <= loss {
            mass += self.masses[cut];
            moment += self.moments[cut];
            cut += 1;
        }
        self.masses.drain(..cut);
        self.moments.drain(..cut);
        self.first += i64::try_from(cut).expect("cells");
        self.masses[0] += mass;
        self.moments[0] += moment;
        for sums in &mut self.higher {
            let dropped: f64 = sums.drain(..cut).sum();
            sums[0] += dropped;
        }
        // Values beyond the grid's ends contribute little to every number of participations in these terms.
        let most: Vec<f64> =
            (1..=self.degree()).map(|j| loss * if j == 1 { grid.total() } else { sets(terms, j) }).collect();
        let (mut mass, mut tails, mut keep) = (0.0, vec![0.0; most.len()], self.masses.len());
        while keep > 1 {
            let next: Vec<f64> =
                tails.iter().enumerate().map(|(j, tail)| tail + self.elementary(j + 1)[keep - 1]).collect();
            if next.iter().zip(&most).any(|(tail, most)| tail > most) {
                break;
            }
            keep -= 1;
            mass += self.masses[keep];
            tails = next;
        }
        let moment = tails[0];
        self.masses.truncate(keep);
        self.moments.truncate(keep);
        self.masses[keep - 1] += mass;
        self.moments[keep - 1] += moment;
        for sums in &mut self.higher {
            let dropped: f64 = sums.drain(keep..).sum();
            sums[keep - 1] += dropped;
        }
        let additions = real(cut + 8);
        self.error += additions * UNIT_ROUNDOFF;
        self
    }
}
