//! One of T rounds, chosen at random and in secret: the likelihood ratio is a mean of independent log-normal numbers.
//!
//! A record takes part in round t with probability 1/T, and shifts the released vector by m_t there, orthogonal to its
//! shifts in the other rounds: P = (1/T) Σ_t N(m_t, σ²I), Q = N(0, σ²I) (Choquette-Choo et al. 2024, arXiv:2410.06266;
//! Chua et al. 2024, arXiv:2412.16802; Feldman & Shenfeld 2025, arXiv:2502.08202). Under Q its density is
//!
//! ```text
//! S = dP/dQ = (1/T) Σ_t Z_t,   Z_t = exp(N(−s_t/2, s_t)) independent,   s_t = ‖m_t‖²/σ²,   E_Q S = 1,
//! δ_remove(ε) = E_Q (S − e^ε)₊,   δ_add(ε) = E_Q (1 − e^ε S)₊.
//! ```
//!
//! Both are expectations of convex functions of S, so a law above that of S in convex order gives upper bounds, in both
//! directions and at every ε, and one below it gives lower bounds. The order survives independent sums (Müller & Stoyan
//! 2002, Theorem 1.5.5 for convex functions of sums), so it is enough to preserve it at each step:
//!
//! - *Above* ([`spread`]): the mass of a value between two nodes of a geometric grid goes to both, so that the mean is
//!   kept. Mass below the lowest node goes to it and to 0; beyond the highest node the mass stays there, and the excess
//!   of the mean goes to infinity, where P has mass and Q none.
//! - *Below* ([`means`]): the values in a cell are replaced by their conditional mean (Jensen's inequality), however
//!   cells are chosen.
//!
//! The law of T terms is made by doubling. On a geometric grid e^{hi} + e^{hj} is e^{h·max}(1 + e^{−h|i−j|}): the
//! position of a sum depends on i − j alone. Everything is sums and products of non-negative numbers, so masses have
//! small *relative* errors, which are tracked, and δ is as accurate at 1e-100 as at 1e-5.
//!
//! For a law (m, x) of S that is known with E x = 1, the pair (x·m, m) has these profiles, so a pair that dominates
//! here dominates in composition. Profiles are read off without cancellation ([`ratio`]).

mod grid;
mod leaf;
mod means;
mod pairs;
mod ratio;
mod spread;

use crate::error::{domain, Result};
use crate::pair::mixture::MixturePair;
use crate::pair::moments::rounded_shift;
use crate::pair::{larger, Profile, ProfilePoint};
use crate::run::Run;
use crate::special::{real, UNIT_ROUNDOFF};

use grid::GeometricGrid;
use means::Means;
use ratio::RatioLaw;
use spread::Spread;

/// The largest number of participations: a law costs as many products as there are pairs of numbers of participations.
pub const MOST_PARTICIPATIONS: usize = 16;

/// Terms of one kind: `count` rounds that each shift the record's contribution by √`square` standard deviations.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Terms {
    /// s = ‖m‖²/σ².
    pub square: f64,
    /// The number of such rounds.
    pub count: u64,
}

/// The laws that enclose the likelihood ratio of one allocation, from above and from below.
#[derive(Debug, Clone)]
pub struct Allocation {
    above: std::sync::Arc<RatioLaw>,
    below: std::sync::Arc<RatioLaw>,
    largest_square: f64,
}

impl Allocation {
    /// Computes the laws for these rounds. `spacing` is the distance between nodes, in standard deviations of the law
    /// that they discretise; the relative gap between both laws is about its square. Masses (and means) below
    /// `negligible` are not resolved: they count towards δ, which is safe.
    ///
    /// Domain: at least one term, `square` in [10⁻¹², 10³] and such that no likelihood ratio that is not negligible is
    /// beyond e^650 (s = 400 at 10⁻¹²⁰), counts whose sum is at most 10⁹, `spacing` in [2⁻¹⁴, 2⁻⁴], `negligible` in
    /// [10⁻²⁵⁰, 10⁻³].
    ///
    /// # Errors
    /// [`Error::Domain`] outside of the domain, and where there would be too many nodes to sum; the errors of
    /// [`Run::check`].
    pub fn new(terms: &[Terms], spacing: f64, negligible: f64, run: &Run) -> Result<Self> {
        let (grid, total) = grid_of(terms, spacing, negligible)?;
        let above = summed(terms, &grid, |term| Spread::leaf(term, &grid), run)?;
        let below = summed(terms, &grid, |term| Means::leaf(term, 1, &grid), run)?;
        Ok(Self {
            above: std::sync::Arc::new(above.ratio(total, &grid)),
            below: std::sync::Arc::new(below.ratio(total)),
            largest_square: terms.iter().fold(0.0, |most, term| term.square.max(most)),
        })
    }

    /// Returns the profile of one direction: a lower bound with `below`, an upper bound otherwise.
    pub fn profile(&self, add: bool, below: bool) -> AllocationProfile {
        let law = std::sync::Arc::clone(if below { &self.below } else { &self.above });
        AllocationProfile { law, add, largest_square: Some(self.largest_square) }
    }
}

/// Returns the grid for these terms, and the number of terms; the domain is that of [`Allocation::new`].
fn grid_of(terms: &[Terms], spacing: f64, negligible: f64) -> Result<(GeometricGrid, u64)> {
    let total: u64 = terms.iter().map(|term| term.count).sum();
    let inside = |value: f64, low: f64, high: f64| (low..=high).contains(&value);
    if terms.is_empty() || terms.iter().any(|term| term.count == 0) || total > 1_000_000_000 {
        return domain("rounds", real(total), "1 to 10^9 in all, of each kind at least 1");
    }
    if let Some(term) = terms.iter().find(|term| !inside(term.square, 1e-12, 1e3)) {
        return domain("square", term.square, "1e-12 to 1e3");
    }
    if !inside(spacing, 2.0_f64.powi(-14), 2.0_f64.powi(-4)) {
        return domain("spacing", spacing, "2^-14 to 2^-4");
    }
    if !inside(negligible, 1e-250, 1e-3) {
        return domain("negligible", negligible, "1e-250 to 1e-3");
    }
    Ok((GeometricGrid::new(terms, total, spacing, negligible)?, total))
}

/// Lower bounds for an allocation of several rounds to a record, where all sets of this many rounds have the same
/// probability.
///
/// The record shifts the released vector by m_t in each of its rounds t, orthogonal to its shifts in the others. The
/// bounds are from two data sets whose outputs are reduced to one of these statistics:
///
/// - the cell in which the sum of all Z lies, over which the likelihood ratio is averaged ([`means`]): good where few
///   rounds decide;
/// - the sum of the outputs' projections on the m_t, N(k·√s, T) against N(0, T), s the least square: good where many
///   rounds contribute a little each.
///
/// The larger of the two profiles bounds both directions from below, at every ε and in composition.
#[derive(Debug, Clone)]
pub struct Several {
    below: std::sync::Arc<RatioLaw>,
    summed: MixturePair,
}

impl Several {
    /// Computes the laws for `participations` of these rounds; the other arguments are those of [`Allocation::new`].
    ///
    /// # Errors
    /// As [`Allocation::new`]; [`Error::Domain`] for no participations, more than rounds, or more than
    /// [`MOST_PARTICIPATIONS`].
    pub fn new(terms: &[Terms], participations: usize, spacing: f64, negligible: f64, run: &Run) -> Result<Self> {
        let (grid, total) = grid_of(terms, spacing, negligible)?;
        let most = usize::try_from(total).unwrap_or(usize::MAX).min(MOST_PARTICIPATIONS);
        if !(1..=most).contains(&participations) {
            let value = real(participations);
            return domain("participations", value, "1 to 16, at most the rounds");
        }
        let below = summed(terms, &grid, |term| Means::leaf(term, participations, &grid), run)?;
        let least = terms.iter().fold(f64::INFINITY, |least, term| least.min(term.square));
        let shift = real(participations) * (least / real(total)).sqrt() * (1.0 - 8.0 * UNIT_ROUNDOFF);
        Ok(Self { below: std::sync::Arc::new(below.ratio(total)), summed: MixturePair::gaussian(shift, 1.0)? })
    }

    /// Returns the profile of one direction.
    pub fn profile(&self, add: bool) -> SeveralProfile {
        let cells = AllocationProfile { law: std::sync::Arc::clone(&self.below), add, largest_square: None };
        SeveralProfile { cells, summed: self.summed.clone() }
    }
}

/// The lower bound on the profile of several rounds in one direction. The part from the sum is the same in both
/// directions.
#[derive(Debug, Clone)]
pub struct SeveralProfile {
    cells: AllocationProfile,
    summed: MixturePair,
}

impl Profile for SeveralProfile {
    fn at_within(&self, epsilon: f64, _bracket: (f64, f64)) -> ProfilePoint {
        larger(self.cells.at(epsilon), self.summed.at(epsilon).or_trivial(epsilon))
    }
}

/// The profile of one direction of a law of the likelihood ratio.
#[derive(Debug, Clone)]
pub struct AllocationProfile {
    law: std::sync::Arc<RatioLaw>,
    add: bool,
    /// The largest square of a shift, for one participation.
    largest_square: Option<f64>,
}

impl Profile for AllocationProfile {
    fn at_within(&self, epsilon: f64, _bracket: (f64, f64)) -> ProfilePoint {
        if self.add { self.law.add(epsilon) } else { self.law.remove(epsilon) }.or_trivial(epsilon)
    }

    fn delta_at_infinity(&self) -> f64 {
        self.law.at_infinity(self.add)
    }

    /// Returns the largest shift: the pair is a mixture of pairs of one round each, whose shifts are orthogonal.
    fn dominating_shift(&self) -> Option<f64> {
        self.largest_square.map(|square| rounded_shift(square.sqrt()))
    }
}

/// A law of a sum that can be added to a law of independent terms.
trait Law: Sized + Clone {
    /// Returns how often the grid was refined.
    fn refined(&self) -> u32;
    /// Returns the same law on a grid that is finer by 2^`refined` than the first one.
    fn embedded(&self, refined: u32) -> Self;
    /// Returns the law of the sum, on a grid that is `finer` (1 or 2) times as fine; both laws are on the same grid.
    fn plus(&self, other: &Self, finer: usize, grid: &GeometricGrid, run: &Run) -> Result<Self>;
    /// Returns the law without ends that hardly matter, where it is the law of this many terms.
    fn pruned(self, terms: u64, grid: &GeometricGrid) -> Self;
}

/// Returns the law of the sum of all terms, by doubling.
fn summed<L: Law>(terms: &[Terms], grid: &GeometricGrid, leaf: impl Fn(Terms) -> L, run: &Run) -> Result<L> {
    let mut sum: Option<(L, u64)> = None;
    for term in terms {
        let (mut power, mut size, mut left) = (leaf(*term), 1_u64, term.count);
        loop {
            if left & 1 == 1 {
                sum = Some(match sum {
                    None => (power.clone(), size),
                    Some((found, terms)) => {
                        let refined = found.refined().max(power.refined());
                        let (one, other) = (found.embedded(refined), power.embedded(refined));
                        (one.plus(&other, 1, grid, run)?.pruned(terms + size, grid), terms + size)
                    }
                });
            }
            left >>= 1;
            if left == 0 {
                break;
            }
            size *= 2;
            let finer = if grid.wanted(term.square, size) < 0.75 * grid.step(power.refined()) { 2 } else { 1 };
            power = power.plus(&power, finer, grid, run)?.pruned(size, grid);
        }
    }
    Ok(sum.expect("at least one term").0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pair::mixture::MixturePair;

    fn law(squares: &[(f64, u64)], spacing: f64) -> Allocation {
        let terms: Vec<Terms> = squares.iter().map(|&(square, count)| Terms { square, count }).collect();
        Allocation::new(&terms, spacing, 1e-40, &Run::default()).unwrap()
    }

    /// The upper law is above the lower one, by little, and a finer grid makes the gap smaller.
    #[test]
    fn laws_enclose() {
        for squares in [&[(1.0, 7)][..], &[(0.04, 100)], &[(6.0, 33)], &[(0.5, 3), (2.0, 5)]] {
            let (coarse, fine) = (law(squares, 0.05), law(squares, 0.02));
            for add in [false, true] {
                for epsilon in [-0.5, 0.0, 0.1, 0.5, 1.0, 2.0] {
                    let at = |law: &Allocation, below| law.profile(add, below).at(epsilon);
                    let (above, below) = (at(&coarse, false), at(&coarse, true));
                    let (nearer, farther) = (at(&fine, false), at(&fine, true));
                    let slack = above.delta_error + below.delta_error + nearer.delta_error + farther.delta_error;
                    for below in [&below, &farther] {
                        for above in [&above, &nearer] {
                            assert!(below.delta <= above.delta + slack, "{squares:?} {add} {epsilon}");
                        }
                    }
                    // The slack also covers masses that are not resolved.
                    let least = slack + 1e-40;
                    assert!(nearer.delta - farther.delta <= 0.5 * (above.delta - below.delta) + least);
                }
            }
        }
    }

    /// An allocation to one round is a Gaussian mechanism.
    #[test]
    fn one_round_is_gaussian() {
        let (found, exact) = (law(&[(1.44, 1)], 0.01), MixturePair::gaussian(1.2, 1.0).unwrap());
        for add in [false, true] {
            for epsilon in [-1.0, 0.0, 1.0, 4.0, 9.0] {
                let exact = exact.at(epsilon);
                let (above, below) = (found.profile(add, false).at(epsilon), found.profile(add, true).at(epsilon));
                assert!(
                    below.delta - below.delta_error <= exact.delta && exact.delta <= above.delta + above.delta_error
                );
                assert!(above.delta - below.delta <= 2e-3 * exact.delta, "{epsilon}");
            }
        }
    }

    #[test]
    fn what_is_outside_of_the_domain_is_refused() {
        let made =
            |square, count, spacing| Allocation::new(&[Terms { square, count }], spacing, 1e-20, &Run::default());
        for wrong in
            [made(0.0, 3, 0.01), made(f64::NAN, 3, 0.01), made(1.0, 0, 0.01), made(1.0, 3, 0.5), made(900.0, 3, 0.01)]
        {
            assert!(wrong.is_err());
        }
        assert!(Allocation::new(&[], 0.01, 1e-20, &Run::default()).is_err());
        let run = Run::default();
        run.cancel();
        assert!(Allocation::new(&[Terms { square: 1.0, count: 5 }], 0.01, 1e-20, &run).is_err());
    }
}
