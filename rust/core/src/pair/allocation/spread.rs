//! Laws above in convex order: masses on the nodes of a geometric grid and at 0, and the mean that was moved to
//! infinity.

use crate::error::Result;
use crate::pair::allocation::grid::{offset, GeometricGrid};
use crate::pair::allocation::leaf::LogNormal;
use crate::pair::allocation::pairs::{Nodes, Pairs};
use crate::pair::allocation::ratio::{Atom, RatioLaw};
use crate::pair::allocation::{Law, Terms};
use crate::run::Run;
use crate::special::{real, UNIT_ROUNDOFF};

/// A law above that of a sum.
#[derive(Debug, Clone)]
pub struct Spread {
    refined: u32,
    /// The node with the first mass.
    first: i64,
    masses: Vec<f64>,
    /// After the grid was refined, only every `stride`-th node has mass, from the first on.
    stride: usize,
    /// The mass at 0.
    nothing: f64,
    /// The expectation of the part beyond the last node.
    beyond: f64,
    /// A bound on the relative error of every mass.
    error: f64,
    /// A bound on the relative distance of the values from those of the nodes.
    moved: f64,
}

impl Spread {
    /// Returns the law of one term.
    pub fn leaf(term: Terms, grid: &GeometricGrid) -> Self {
        let (law, h) = (LogNormal::new(term.square), grid.step(0));
        let (low, high) = grid.ends(term.square);
        #[allow(clippy::cast_possible_truncation)] // limited by the grid
        let (first, last) = ((low / h).floor() as i64, (high / h).ceil() as i64);
        let nodes = usize::try_from(last - first).unwrap_or(0) + 1;
        let mut masses = vec![0.0; nodes];
        let (whole, back) = (h.exp_m1(), (-h).exp_m1());
        for (cell, node) in (first..last).enumerate() {
            let v = h * real(node);
            // The mass at e^{v+w} is divided between e^v and e^{v+h}, in proportion to the distance from the other
            // node.
            masses[cell] += law.over_cell(v, h, |w| (w - h).exp_m1() / back);
            masses[cell + 1] += law.over_cell(v, h, |w| w.exp_m1() / whole);
        }
        let (bottom, top) = (h * real(first), h * real(last));
        let ((below, mean_below), (above, mean_above)) = (law.below(bottom), law.above(top));
        masses[0] += mean_below * (-bottom).exp();
        masses[nodes - 1] += above;
        Self {
            refined: 0,
            first,
            masses,
            stride: 1,
            // A law with more mass at 0 and more mean at infinity is above this one as well.
            nothing: below,
            beyond: mean_above,
            error: law.error(grid.reach()),
            moved: 4.0 * UNIT_ROUNDOFF * (1.0 + bottom.abs().max(top.abs())),
        }
    }

    /// Returns the law of the mean of this many terms, as a law of the likelihood ratio.
    pub fn ratio(&self, terms: u64, grid: &GeometricGrid) -> RatioLaw {
        let (h, scale) = (grid.step(self.refined), real(terms).ln());
        let atoms = self.masses.iter().zip(self.first..).filter(|(mass, _)| **mass > 0.0).map(|(mass, node)| {
            let log = h * real(node) - scale;
            Atom { value: log.exp(), mass: *mass }
        });
        let beyond = self.beyond / real(terms);
        let atoms: Vec<Atom> = atoms.collect();
        let largest = atoms.iter().fold(1.0_f64, |most, atom| most.max(atom.value.ln().abs()));
        RatioLaw::new(
            atoms,
            self.nothing,
            beyond,
            self.error,
            self.moved + 8.0 * UNIT_ROUNDOFF * (largest + 4.0 + scale),
        )
    }

    fn nodes(&self) -> Nodes {
        Nodes { first: self.first, count: self.masses.len(), phase: 0, stride: self.stride }
    }

    fn total(&self) -> f64 {
        (self.nothing + self.masses.iter().sum::<f64>()) * (1.0 + 2.0 * self.error + 1e-9)
    }
}

impl Law for Spread {
    fn refined(&self) -> u32 {
        self.refined
    }

    fn embedded(&self, refined: u32) -> Self {
        let finer = 1_usize << (refined - self.refined);
        let mut masses = vec![0.0; (self.masses.len() - 1) * finer + 1];
        for (mass, place) in self.masses.iter().zip(masses.iter_mut().step_by(finer)) {
            *place = *mass;
        }
        Self {
            refined,
            first: self.first * i64::try_from(finer).expect("a few"),
            masses,
            stride: self.stride * finer,
            ..self.clone()
        }
    }

    fn plus(&self, other: &Self, finer: usize, grid: &GeometricGrid, run: &Run) -> Result<Self> {
        let same = std::ptr::eq(self, other);
        let mut products = Sums::default();
        // For a law and itself, one order of the pairs covers both.
        for (late, early, strict) in
            [(self, other, same), (other, self, true)].into_iter().take(if same { 1 } else { 2 })
        {
            let pairs = Pairs::new(late.nodes(), early.nodes(), strict, grid.step(self.refined), finer);
            let Some(pairs) = pairs else { continue };
            products.add(&pairs, &late.masses, &early.masses, if same { 2.0 } else { 1.0 }, run)?;
        }
        if same {
            // Pairs of equal nodes occur once, not twice.
            products.add_equal(&self.masses, self.first, grid.step(self.refined), finer);
        }
        let fine = grid.step(self.refined) / f64::from(u32::try_from(finer).expect("1 or 2"));
        // If one term is 0, the sum is the other term. Values below all other sums are divided between the least of
        // them and 0.
        let mut nothing = self.nothing * other.nothing;
        for (law, factor) in [(self, other.nothing), (other, self.nothing)] {
            for (mass, node) in law.masses.iter().zip(law.first..) {
                let (mass, node) = (factor * mass, node * i64::try_from(finer).expect("1 or 2"));
                if let Ok(place) = usize::try_from(node - products.first) {
                    products.masses[place] += mass;
                } else {
                    let kept = (fine * real(node - products.first)).exp();
                    products.masses[0] += mass * kept;
                    nothing += mass * (1.0 - kept) * (1.0 + 4.0 * UNIT_ROUNDOFF);
                }
            }
        }
        let additions = real(2 * (self.masses.len() + other.masses.len()) + 16);
        Ok(Self {
            refined: self.refined + u32::from(finer == 2),
            first: products.first,
            masses: products.masses,
            stride: 1,
            nothing,
            beyond: (self.beyond * other.total() + other.beyond * self.total()) * (1.0 + 8.0 * UNIT_ROUNDOFF),
            error: (self.error + other.error + additions * UNIT_ROUNDOFF) * (1.0 + 1e-6),
            // An error of e in a share moves the value by e·(e^h − 1), relatively; e is below 4u/(e^h − 1).
            moved: self.moved.max(other.moved) + 8.0 * UNIT_ROUNDOFF,
        })
    }

    fn pruned(mut self, terms: u64, grid: &GeometricGrid) -> Self {
        let (h, loss) = (grid.step(self.refined), grid.loss(terms));
        let value = |node: i64| (h * real(node)).exp();
        // At the lower end, mass goes to 0 and to the first node that is kept.
        let (mut mass, mut cut) = (0.0, 0);
        while cut + 1 < self.masses.len() && mass + self.masses[cut] <= loss {
            mass += self.masses[cut];
            cut += 1;
        }
        for place in 0..cut {
            let kept = (-h * real(cut - place)).exp();
            self.masses[cut] += kept * self.masses[place];
            // This adds more than the exact share, by a rounding.
            self.nothing += (1.0 - kept) * self.masses[place] * (1.0 + 4.0 * UNIT_ROUNDOFF);
        }
        self.masses.drain(..cut);
        self.first += i64::try_from(cut).expect("nodes");
        // At the upper end, mass stays at the last node, and the excess of its mean over that node goes to infinity.
        let (mut mean, mut keep) = (0.0, self.masses.len());
        let most = loss * grid.total();
        while keep > 1 {
            let more = mean + self.masses[keep - 1] * value(self.first + i64::try_from(keep - 1).expect("nodes"));
            if more > most {
                break;
            }
            mean = more;
            keep -= 1;
        }
        if keep < self.masses.len() {
            let above: f64 = self.masses[keep..].iter().sum();
            self.masses.truncate(keep);
            self.masses[keep - 1] += above;
            self.beyond += mean * (1.0 + 4.0 * self.error + 1e-9);
        }
        let additions = real(cut + 8);
        self.error += additions * UNIT_ROUNDOFF;
        self
    }
}

/// Masses of sums, from a node of the finer grid on.
#[derive(Default)]
struct Sums {
    first: i64,
    masses: Vec<f64>,
}

impl Sums {
    /// Adds products of masses, each `factor` times, to the nodes around the sums.
    fn add(&mut self, pairs: &Pairs, late: &[f64], early: &[f64], factor: f64, run: &Run) -> Result<()> {
        let fine = pairs.fine();
        let ups: Vec<(usize, f64)> = pairs
            .distances()
            .map(|distance| {
                let (above, part) = pairs.above(distance);
                (above, factor * share(part, fine))
            })
            .collect();
        let nearest = *pairs.distances().start();
        // The lower and the upper shares are summed separately, so that no addition waits for the one before.
        let [lower, upper] = pairs.sums(
            |distance| ups[distance - nearest].0,
            1,
            run,
            |row, [lower, upper]| {
                let up = ups[row.distance - nearest].1;
                let down = factor - up;
                let (x, y) = (&late[row.late.clone()], &early[row.early.clone()]);
                if row.stride > 1 {
                    for k in (0..x.len()).step_by(row.stride) {
                        let product = x[k] * y[k];
                        lower[k] += down * product;
                        upper[k] += up * product;
                    }
                    return;
                }
                for (((low, high), x), y) in lower.iter_mut().zip(upper.iter_mut()).zip(x).zip(y) {
                    let product = x * y;
                    *low += down * product;
                    *high += up * product;
                }
            },
        )?;
        self.merge(pairs.base(), &lower);
        self.merge(pairs.base() + 1, &upper);
        Ok(())
    }

    /// Adds the squares of masses to the nodes around twice their values.
    fn add_equal(&mut self, masses: &[f64], first: i64, step: f64, finer: usize) {
        let (above, part) = offset(0, step, finer);
        let whole = i64::try_from(finer).expect("1 or 2");
        let up = share(part, step / f64::from(u32::try_from(finer).expect("1 or 2")));
        let mut spread = vec![0.0; (masses.len() - 1) * finer + 2];
        for (k, mass) in masses.iter().enumerate() {
            spread[k * finer] += (1.0 - up) * mass * mass;
            spread[k * finer + 1] += up * mass * mass;
        }
        self.merge(first * whole + i64::try_from(above).expect("nodes"), &spread);
    }

    fn merge(&mut self, first: i64, more: &[f64]) {
        if self.masses.is_empty() {
            self.first = first;
        }
        if let Ok(before @ 1..) = usize::try_from(self.first - first) {
            self.masses.splice(0..0, std::iter::repeat_n(0.0, before));
            self.first = first;
        }
        let place = usize::try_from(first - self.first).expect("at or above the first");
        if self.masses.len() < place + more.len() {
            self.masses.resize(place + more.len(), 0.0);
        }
        for (sum, one) in self.masses[place..].iter_mut().zip(more) {
            *sum += one;
        }
    }
}

/// Returns the share of the upper node for a value that lies `part` of a step above the lower one.
fn share(part: f64, fine: f64) -> f64 {
    ((fine * part).exp_m1() / fine.exp_m1()).clamp(0.0, 1.0)
}
