//! Rounds composed without a lattice: where most of them lose far less than any lattice can resolve.
//!
//! A record that is sampled with probability p loses about −p in most rounds and, rarely, a nat or more. One lattice
//! for all of these losses is coarser than p, and n rounds spread or lose n times the amount below its resolution; and
//! where a few rare losses make up δ, a transform's error is a large fraction of it whatever the tilt. So the law of
//! one round is doubled repeatedly, on cells of any width: a product sums, in each cell [a, a + w) of losses, the mass
//! P = Σp and its part Y = Σ p(1 − e^{−x}) of all pairs of atoms that fall at a + x. These two sums are all that is
//! stored for a cell:
//!
//! * **Upper.** Mass Y/(1 − e^{−w}) at the upper end and the rest at the lower one have the same sums of p and
//!   p·e^{−x}, and are spread further: the profile Σ p(1 − α e^{−ℓ})_+, a mean of convex functions of e^{−ℓ}, only
//!   grows.
//! * **Lower.** All of P at a − ln(1 − Y/P) has the same two sums and is not spread at all: the profile only falls
//!   (Jensen).
//!
//! Composition is monotone in each law (see [`super`]), so products of upper laws are upper laws. The law of all rounds
//! gains (loses) a variance of about w²/6 (w²/12) for each product that was formed; [`super::cells`] spreads that
//! evenly. The common loss n·ln(1 − p) is a sum of exact positions, and adds no variance.
//!
//! **Rounding.** Each number is rounded to the safe side where it is computed: masses of an upper law up and those of a
//! lower one down by the relative error of their sums (a count of their terms), positions by that of the additions,
//! which moves losses up or down. So the computed laws are bounds on the exact ones. What underflows is less than
//! 10⁻³⁰⁰ in total, which the upper law counts as infinite loss.

use std::sync::Arc;

use crate::error::Result;
use crate::pair::{Profile, ProfilePoint};
use crate::pld::cells::{cells, Care, Outline};
use crate::pld::check::{self, Atoms};
use crate::pld::masses::Masses;
use crate::pld::mesh::{Mesh, Side};
use crate::pld::tangents::{tangents, Tangents};
use crate::run::Run;
use crate::special::{real, UNDERFLOW, UNIT_ROUNDOFF};

/// A finite measure of losses whose profile bounds that of some rounds from one side.
#[derive(Debug, Clone)]
pub struct Law {
    side: Side,
    /// The losses, increasing.
    pub(super) loss: Vec<f64>,
    /// The masses, positive.
    pub(super) mass: Vec<f64>,
    at_infinity: f64,
}

/// Atoms with more mass than `HEAVY` are spread over `SCALES` scales.
const HEAVY: f64 = 0.02;
const SCALES: i32 = 12;

impl Law {
    /// Returns the law of one round from one side; `None` if all of its loss may be infinite, or no mass is certain.
    ///
    /// # Errors
    /// [`crate::Error::Numerics`] for a law that is not on its side of the profile ([`super::check`]).
    pub fn of_one(side: Side, profile: &dyn Profile, mesh: &Mesh) -> Result<Option<Self>> {
        Ok(match side {
            Side::Upper => Self::above(&Masses::new(side, profile, mesh)?),
            Side::Lower => {
                let floor = profile.delta_at_infinity();
                Self::below(tangents(mesh, floor)?, floor)
            }
        })
    }

    /// Returns the law of max(1 − α, f), which is below every profile whose limit at ∞ is at least f: one atom, where 1 − α is f.
    pub fn trivial(at_infinity: f64) -> Self {
        let at_infinity = at_infinity.clamp(0.0, 1.0 - UNIT_ROUNDOFF);
        let (rest, rounding) = (1.0 - at_infinity, 4.0 * UNIT_ROUNDOFF);
        let loss = (-at_infinity).ln_1p() * (1.0 + rounding);
        Self { side: Side::Lower, loss: vec![loss], mass: vec![rest * (1.0 - rounding)], at_infinity }
    }

    /// Returns the law of one round from above; `None` if all of its loss may be infinite.
    fn above(masses: &Masses) -> Option<Self> {
        let factor = (1.0 + masses.relative_error) * (1.0 + 4.0 * UNIT_ROUNDOFF);
        (!masses.mass.is_empty()).then(|| Self {
            side: Side::Upper,
            loss: masses.epsilon.clone(),
            mass: masses.mass.iter().map(|mass| mass * factor).collect(),
            at_infinity: masses.at_infinity * factor,
        })
    }

    /// Returns the law of one round from below, with this mass of infinite loss; `None` if no mass is certain.
    fn below(tangents: Tangents, at_infinity: f64) -> Option<Self> {
        let Tangents { loss, mass } = tangents;
        (!loss.is_empty()).then_some(Self { side: Side::Lower, loss, mass, at_infinity })
    }

    /// Returns the law of `count` such rounds, by doubling, and one more round for each binary digit of `count` that is
    /// set.
    ///
    /// # Errors
    /// [`crate::Error::Cancelled`] and [`crate::Error::TimeLimit`].
    pub fn power(&self, count: u64, care: &Care<'_>, run: &Run) -> Result<Self> {
        // Each product gets its share of the budget.
        let care = Care { budget: care.budget / f64::from(1 + count.ilog2() + count.count_ones()), ..*care };
        let (all, mut rounds) = (real(count), 1.0);
        let mut law = self.clone();
        for digit in (0..count.ilog2()).rev() {
            rounds *= 2.0;
            law = law.product(
                &law,
                true,
                &cells(law.atoms(), law.atoms(), &care, all / rounds),
                rounds * care.ignored,
                care.highest,
                run,
            )?;
            if count >> digit & 1 == 1 {
                rounds += 1.0;
                law = law.product(
                    self,
                    false,
                    &cells(law.atoms(), self.atoms(), &care, all / rounds),
                    rounds * care.ignored,
                    care.highest,
                    run,
                )?;
            }
        }
        Ok(law)
    }

    /// Returns the law of all rounds of some kinds; `None` if there are none.
    ///
    /// # Errors
    /// [`crate::Error::Cancelled`] and [`crate::Error::TimeLimit`].
    pub fn of_all<'a>(
        kinds: impl IntoIterator<Item = (&'a Self, u64)>,
        care: &Care<'_>,
        run: &Run,
    ) -> Result<Option<Self>> {
        let mut product: Option<Self> = None;
        for (one, count) in kinds {
            let power = one.power(count, care, run)?;
            product = Some(match product {
                Some(law) => law.times(&power, care, run)?,
                None => power,
            });
        }
        Ok(product)
    }

    /// Returns the law of the rounds of both.
    ///
    /// # Errors
    /// [`crate::Error::Cancelled`] and [`crate::Error::TimeLimit`].
    pub fn times(&self, other: &Self, care: &Care<'_>, run: &Run) -> Result<Self> {
        self.product(other, false, &cells(self.atoms(), other.atoms(), care, 1.0), care.ignored, care.highest, run)
    }

    fn atoms(&self) -> Atoms<'_> {
        Atoms { loss: &self.loss, mass: &self.mass, at_infinity: self.at_infinity }
    }

    /// Returns the law without its infinite loss.
    pub fn finite(self) -> Self {
        Self { at_infinity: 0.0, ..self }
    }

    /// Returns ln Σ p e^{λℓ} over finite losses; for a law from above, an upper bound: e^{λℓ} is convex in e^{−ℓ}.
    pub fn log_moment(&self, exponent: f64) -> f64 {
        let sum: f64 = self.loss.iter().zip(&self.mass).map(|(loss, mass)| mass * (exponent * loss).exp()).sum();
        let error = UNIT_ROUNDOFF * (real(self.mass.len()) + 8.0 + exponent * self.largest());
        sum.ln() + error
    }

    /// Returns the largest |ℓ| of finite losses.
    fn largest(&self) -> f64 {
        self.loss.iter().fold(0.0, |most, loss| most.max(loss.abs()))
    }

    /// Returns Σ p h(ℓ), where h is at most `limit`, and equal to it at infinite loss.
    pub fn mean(&self, curve: impl Fn(f64) -> f64, limit: f64) -> f64 {
        let finite: f64 = self.loss.iter().zip(&self.mass).map(|(&loss, mass)| mass * curve(loss)).sum();
        finite + self.at_infinity * limit
    }

    /// Returns the mass of infinite loss.
    pub fn at_infinity(&self) -> f64 {
        self.at_infinity
    }

    /// Returns by how much its total mass exceeds 1, because of rounding.
    pub fn excess(&self) -> f64 {
        (self.mass.iter().sum::<f64>() + self.at_infinity - 1.0).max(0.0)
    }

    /// Returns the law with the mass of each atom spread out halfway to its neighbours; a heavy atom is spread over all
    /// scales up to that, since the true width of its mass is unknown.
    pub fn spread(&self) -> Outline {
        let (n, loss) = (self.loss.len(), &self.loss);
        let gap = |k: usize| if k < n && k > 0 { 0.5 * (loss[k] - loss[k - 1]) } else { 0.0 };
        let mut parts = Vec::with_capacity(2 * n);
        for (k, (&at, &mass)) in loss.iter().zip(&self.mass).enumerate() {
            let scales = if mass > HEAVY { SCALES } else { 1 };
            let right = if k + 1 < n { gap(k + 1) } else { gap(k) };
            let left = if k > 0 { gap(k) } else { right };
            // Half of the mass lies on each side, evenly over the scales.
            let part = 0.5 * mass / f64::from(scales);
            parts.extend(
                (0..scales).map(|scale| (at - left * 0.25_f64.powi(scale), if scale > 0 { part } else { 0.0 })),
            );
            parts.push((at, part));
            parts.extend((0..scales).rev().map(|scale| (at + right * 0.25_f64.powi(scale), part)));
        }
        Outline::new(parts.first().map_or(0.0, |part| part.0), parts.into_iter())
    }

    /// Returns the number of atoms.
    #[allow(clippy::len_without_is_empty)] // there is always one
    pub fn len(&self) -> usize {
        self.mass.len()
    }

    /// Returns the product of two laws on cells between these edges; with `same`, both laws are the same, and each pair
    /// is computed once.
    fn product(&self, other: &Self, same: bool, edges: &[f64], ignored: f64, highest: f64, run: &Run) -> Result<Self> {
        let mut sums = vec![Sums::default(); edges.len() - 1];
        let pairs = self.len() as u64 * other.len() as u64;
        run.count(if same { pairs.div_ceil(2) } else { pairs });
        for (i, (&one, &p)) in self.loss.iter().zip(&self.mass).enumerate() {
            if i % 256 == 0 {
                run.check()?;
            }
            let from = if same { i } else { 0 };
            let mut cell = position(edges, one + other.loss[from]);
            let mut sum = Sums::default();
            for (j, (&two, &q)) in other.loss.iter().zip(&other.mass).enumerate().skip(from) {
                let loss = one + two;
                if loss >= edges[cell + 1] && cell + 2 < edges.len() {
                    sums[cell].gather(&sum);
                    sum = Sums::default();
                    // It is usually the next cell, so a search would be slower.
                    while loss >= edges[cell + 1] && cell + 2 < edges.len() {
                        cell += 1;
                    }
                }
                let mass = if same && j > i { 2.0 * p * q } else { p * q };
                sum.take(mass, loss - edges[cell]);
            }
            sums[cell].gather(&sum);
        }
        let finite = |law: &Self| law.mass.iter().sum::<f64>();
        let (own, rest) = (finite(self), finite(other));
        let infinite = self.at_infinity * (rest + other.at_infinity) + other.at_infinity * own;
        let summed = UNIT_ROUNDOFF * (real(self.mass.len().max(other.mass.len())) + 8.0);
        let mut law = match self.side {
            Side::Upper => upper(&sums, edges),
            Side::Lower => lower(&sums, edges),
        };
        law.at_infinity += match self.side {
            Side::Upper => infinite * (1.0 + summed) + UNDERFLOW,
            Side::Lower => infinite * (1.0 - summed),
        };
        let error = sums.iter().map(Sums::relative_error).fold(0.0, f64::max);
        let cells = sums.iter().zip(edges).map(|(sum, end)| (sum.mass, *end));
        check::product(self.side, [self.atoms(), other.atoms()], law.atoms(), error, cells)?;
        law.cut(ignored, highest);
        Ok(law)
    }

    /// Removes the largest losses: those with at most the mass `ignored` become infinite, or are left out; those above
    /// `highest` become infinite, or equal to `highest`.
    fn cut(&mut self, ignored: f64, highest: f64) {
        if self.side == Side::Lower {
            for loss in &mut self.loss {
                *loss = loss.min(highest);
            }
        }
        let mut mass = 0.0;
        while self.side == Side::Upper && self.mass.len() > 2 && self.loss[self.loss.len() - 1] > highest {
            mass += self.mass.pop().unwrap_or(0.0);
            self.loss.pop();
        }
        let ignored = mass + ignored;
        while self.mass.len() > 2 && mass + self.mass[self.mass.len() - 1] <= ignored {
            mass += self.mass.pop().unwrap_or(0.0);
            self.loss.pop();
        }
        if self.side == Side::Upper {
            self.at_infinity += mass * (1.0 + 1e-12);
        }
    }

    /// Returns the profile of the law.
    pub fn profile(&self) -> Arc<dyn Profile> {
        Arc::new(LawProfile::new(self))
    }
}

/// The sums over the atoms in a cell.
#[derive(Debug, Clone, Copy, Default)]
struct Sums {
    /// Σ p.
    mass: f64,
    /// Σ p(1 − e^{−x}), with x measured from the cell's lower end.
    part: f64,
    /// The maximum number of additions that a term of the sums went through.
    depth: u32,
}

impl Sums {
    fn take(&mut self, mass: f64, x: f64) {
        // The remainder of the series is below x⁹/10! of its value: less than 10⁻²⁰.
        let fall = if x < 0.03 {
            let rest = 1.0 - x * (1.0 / 6.0) * (1.0 - x * (1.0 / 7.0) * (1.0 - 0.125 * x * (1.0 - x * (1.0 / 9.0))));
            x * (1.0 - 0.5 * x * (1.0 - x * (1.0 / 3.0) * (1.0 - 0.25 * x * (1.0 - 0.2 * x * rest))))
        } else {
            -(-x).exp_m1()
        };
        self.mass += mass;
        self.part += mass * fall;
        self.depth += 1;
    }

    fn gather(&mut self, row: &Self) {
        self.mass += row.mass;
        self.part += row.part;
        // Terms of this row went through the additions of the row and of the rows after it.
        self.depth = self.depth.max(row.depth) + 1;
    }

    /// Returns the relative error of both sums: of the products, of x, of 1 − e^{−x}, and of the additions.
    fn relative_error(&self) -> f64 {
        UNIT_ROUNDOFF * (f64::from(self.depth) + 16.0)
    }
}

/// Returns the cell that holds a loss; the outermost cells also hold all losses beyond them.
fn position(edges: &[f64], loss: f64) -> usize {
    edges.partition_point(|&edge| edge <= loss).clamp(1, edges.len() - 1) - 1
}

/// Returns a bound on the rounding of positions in a cell: two positions were added, which moved the sum by at most u
/// times it.
fn moved(edges: &[f64], cell: usize) -> f64 {
    4.0 * UNIT_ROUNDOFF * edges[cell].abs().max(edges[cell + 1].abs())
}

fn upper(sums: &[Sums], edges: &[f64]) -> Law {
    let mut mass = vec![0.0; edges.len()];
    let mut shift = vec![0.0_f64; edges.len()];
    for (cell, sum) in sums.iter().enumerate().filter(|(_, sum)| sum.mass > 0.0) {
        let error = sum.relative_error();
        let whole = -(edges[cell] - edges[cell + 1]).exp_m1();
        let most = sum.mass * (1.0 + error);
        let (low, high) = if sum.mass > RESOLVED {
            let share = sum.part / whole;
            // The small term allows for underflow.
            (most - share * (1.0 - 2.0 * error), (share * (1.0 + 2.0 * error) + 1e-30 * most).min(most))
        } else {
            (0.0, most)
        };
        mass[cell] += low.max(0.0) * (1.0 + 4.0 * UNIT_ROUNDOFF);
        mass[cell + 1] += high * (1.0 + 4.0 * UNIT_ROUNDOFF);
        let moved = moved(edges, cell);
        shift[cell] = shift[cell].max(moved);
        shift[cell + 1] = shift[cell + 1].max(moved);
    }
    let mut law = Law { side: Side::Upper, loss: Vec::new(), mass: Vec::new(), at_infinity: 0.0 };
    let mut last = f64::NEG_INFINITY;
    for ((edge, shift), mass) in edges.iter().zip(shift).zip(mass).filter(|(_, mass)| *mass > 0.0) {
        last = last.max(edge + shift);
        law.loss.push(last);
        law.mass.push(mass);
    }
    if law.loss.is_empty() {
        // All of the mass underflowed: it is less than this bound, which is placed at the last edge.
        law.loss.push(edges[edges.len() - 1]);
        law.mass.push(UNDERFLOW);
    }
    law
}

/// Above this, terms lost to underflow are less than 10⁻³⁰ of a sum, also when divided by a cell's width.
const RESOLVED: f64 = 1e-260;

fn lower(sums: &[Sums], edges: &[f64]) -> Law {
    let mut law = Law { side: Side::Lower, loss: Vec::new(), mass: Vec::new(), at_infinity: 0.0 };
    for (cell, sum) in sums.iter().enumerate().filter(|(_, sum)| sum.mass > RESOLVED) {
        let error = sum.relative_error();
        let share = (sum.part / sum.mass) * (1.0 - 2.0 * error - 4.0 * UNIT_ROUNDOFF);
        let within = -(-share).ln_1p() * (1.0 - 4.0 * UNIT_ROUNDOFF);
        law.loss.push(edges[cell] + within - moved(edges, cell));
        law.mass.push(sum.mass * (1.0 - error));
    }
    if law.loss.is_empty() {
        // The certain mass of many rounds may be below the smallest double; then no mass is certain.
        law.loss.push(edges[0]);
        law.mass.push(0.0);
    }
    for k in (1..law.loss.len()).rev() {
        law.loss[k - 1] = law.loss[k - 1].min(law.loss[k]);
    }
    law
}

/// The profile of a law, with the sums over all atoms to the right of each atom.
#[derive(Debug)]
struct LawProfile {
    loss: Vec<f64>,
    /// δ and the slope at each atom, both without the contribution of the atom itself on its left.
    delta: Vec<f64>,
    slope: Vec<f64>,
    mass: Vec<f64>,
    at_infinity: f64,
    relative_error: f64,
}

impl LawProfile {
    fn new(law: &Law) -> Self {
        let n = law.loss.len();
        let (mut delta, mut slope) = (vec![0.0; n], vec![0.0; n]);
        for k in (0..n.saturating_sub(1)).rev() {
            let width = law.loss[k + 1] - law.loss[k];
            let right = slope[k + 1] + law.mass[k + 1];
            delta[k] = delta[k + 1] + right * -(-width).exp_m1();
            slope[k] = right * (-width).exp();
        }
        let relative_error = 8.0 * UNIT_ROUNDOFF * (real(n) + 8.0);
        Self {
            loss: law.loss.clone(),
            delta,
            slope,
            mass: law.mass.clone(),
            at_infinity: law.at_infinity,
            relative_error,
        }
    }
}

impl Profile for LawProfile {
    fn at_within(&self, epsilon: f64, _bracket: (f64, f64)) -> ProfilePoint {
        let next = self.loss.partition_point(|&loss| loss <= epsilon);
        let (mut delta, mut slope) = (0.0, 0.0);
        if next < self.loss.len() {
            let width = self.loss[next] - epsilon;
            let right = self.slope[next] + self.mass[next];
            delta = self.delta[next] + right * -(-width).exp_m1();
            slope = right * (-width).exp();
        }
        // Each step adds positive terms that have an error of a few u.
        ProfilePoint {
            delta: delta + self.at_infinity,
            delta_error: self.relative_error * (delta + self.at_infinity),
            slope,
            slope_error: self.relative_error * slope,
            threshold: f64::NAN,
        }
    }

    fn delta_at_infinity(&self) -> f64 {
        self.at_infinity
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pld::cells::Place;

    const LOSSES: [f64; 4] = [-0.3, -0.01, 0.4, 2.5];
    const MASSES: [f64; 4] = [0.2, 0.5, 0.28, 0.01];
    const AT_INFINITY: f64 = 0.01;

    /// Returns δ(ε) of this many rounds by enumerating all outcomes.
    fn enumerated(rounds: u32, epsilon: f64) -> f64 {
        if rounds == 0 {
            return (-epsilon.exp_m1()).max(0.0);
        }
        let outcomes = LOSSES.iter().zip(MASSES);
        // An infinite loss in this round counts in full, whatever the other losses are.
        AT_INFINITY + outcomes.map(|(loss, mass)| mass * enumerated(rounds - 1, epsilon - loss)).sum::<f64>()
    }

    const PLACE: Place = Place { epsilon: 1.0, reach: 0.1, hazard: 1.5, log_delta: -3.0, losses: None };

    fn care(place: &Place, budget: f64) -> Care<'_> {
        Care { place, budget, ignored: 0.0, cells: (64, 8192), highest: 30.0 }
    }

    #[test]
    fn products_enclose_all_outcomes_and_come_near_them() {
        let law = |side| Law { side, loss: LOSSES.to_vec(), mass: MASSES.to_vec(), at_infinity: AT_INFINITY };
        for (budget, near) in [(10.0, 0.05), (1e-5, 1e-3)] {
            for rounds in [2, 5, 7] {
                let of =
                    |side| law(side).power(rounds.into(), &care(&PLACE, budget), &Run::default()).unwrap().profile();
                let (above, below) = (of(Side::Upper), of(Side::Lower));
                for step in -20..40 {
                    let epsilon = 0.25 * f64::from(step);
                    let exact = enumerated(rounds, epsilon);
                    let (above, below) = (above.at(epsilon), below.at(epsilon));
                    assert!(above.delta + above.delta_error >= exact * (1.0 - 1e-14), "{epsilon} {above:?} {exact}");
                    assert!(below.delta - below.delta_error <= exact * (1.0 + 1e-14), "{epsilon} {below:?} {exact}");
                    assert!(above.delta - below.delta <= near * exact, "{epsilon} {above:?} {below:?}");
                }
            }
        }
    }

    #[test]
    fn what_is_too_small_for_a_double_is_missing_below() {
        let place = Place { epsilon: 1.0, log_delta: -5.0, reach: 0.1, hazard: 1.0, losses: None };
        let run = Run::default();
        let one = Law { side: Side::Lower, loss: vec![-0.5, 2.0], mass: vec![1e-40, 1e-60], at_infinity: 1e-9 };
        for count in [1, 7, 2000] {
            let law = one.power(count, &care(&place, 1e-3), &run).unwrap();
            assert!(law.len() >= 1);
            let found = law.profile().at_within(0.1, (0.1, 0.1));
            assert!(found.delta >= 0.0 && found.delta <= f64::from(u32::try_from(count).unwrap()) * 1.1e-9);
            let twice = law.times(&one, &care(&place, 1e-3), &run).unwrap();
            assert!(twice.profile().at_within(0.1, (0.1, 0.1)).delta <= 3000.0 * 1.1e-9);
        }
    }

    #[test]
    fn rounds_that_lose_nothing_lose_nothing_together() {
        let law = Law { side: Side::Lower, loss: vec![0.0], mass: vec![1.0], at_infinity: 0.0 };
        let point = law.power(16, &care(&PLACE, 1.0), &Run::default()).unwrap().profile().at(-1.0);
        assert!((point.delta + (-1.0_f64).exp_m1()).abs() < 1e-12, "{point:?}");
    }

    #[test]
    fn what_is_left_out_is_infinite_above_and_missing_below() {
        let [above, below] = [Side::Upper, Side::Lower].map(|side| {
            let mut law = Law { side, loss: vec![0.0, 1.0, 2.0], mass: vec![0.9, 0.09, 0.01], at_infinity: 0.0 };
            law.cut(0.05, 5.0);
            law
        });
        assert_eq!(above.mass, [0.9, 0.09]);
        assert!(above.at_infinity >= 0.01);
        assert!(below.at_infinity.abs() < 1e-300);
    }
}
