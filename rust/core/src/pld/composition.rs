//! The composition of rounds as the profile of one round, bounded from one side.
//!
//! Where several phases run only if a unit is drawn, the draw acts on their composition, so its profile is needed at every
//! ε rather than an answer at one. Each round is replaced by a law above or below it, as in [`super::without_lattice`];
//! the laws are multiplied on cells ([`super::doubling`], which proves their direction and rounding); the profile of the
//! product is the bound. The cells are spread for a tilt of [`TILT`], which decides how near both bounds are to each other
//! and nothing else.
//!
//! Every profile is 1 at α = 0 and convex. A law from above has slightly more mass than 1, because of its rounding, and its
//! profile is above 1 for small α. So left of the first atom ℓ where the chord from (0, 1) is steeper than the law's
//! profile g on the right of ℓ, the bound is that chord: the true profile is convex, 1 at α = 0, and at most g(ℓ) at ℓ.
//! With the chord, the bound is convex: 1 − g(ℓ) is at least the slope of g, by more than the errors of both.
//!
//! Every profile is at least 1 − α. A law from below whose errors took some of its mass is below that for small α, so the
//! larger one of the two is used: it is convex as a maximum of convex functions.

use std::sync::Arc;

use num_traits::Zero;

use crate::error::{domain, Error, Result};
use crate::exact::{Enclosure, Rational};
use crate::pair::check::Checked;
use crate::pair::{LargestLoss, Profile, ProfilePoint};
use crate::pld::answer::Round;
use crate::pld::cells::{Care, Place};
use crate::pld::doubling::Law;
use crate::pld::mesh::{exact_spacing, extent, Defects, Mesh, Node, Side};
use crate::run::Run;
use crate::special::{real, UNIT_ROUNDOFF};

/// The maximum growth of the weight of a loss with its size, for the choice of cells, and the maximum number of standard
/// deviations of all losses by which it moves the cells to the right.
const TILT: f64 = 2.0;
const MOVED: f64 = 1.5;
/// The mass of a round's losses that may be left of its mesh.
const LEFT: f64 = 1e-14;
/// The δ down to which cells are placed; the weight of larger losses does not grow further.
const SMALLEST_DELTA: f64 = 1e-16;
/// The mass of all rounds' losses that may be counted as infinite, or left out.
const IGNORED: f64 = 1e-30;
/// The number of atoms of one round's law, and the minimum and maximum number of cells of a product.
const ATOMS: usize = 2048;
const CELLS: (u32, u32) = (2048, 4096);

/// Returns a bound on the profile of a composition of rounds from one side.
///
/// * Guarantee: at least (at most) the profile of the composition at every ε, within the stated errors.
/// * Precision: none is promised; for some tens of rounds both sides differ by about 10⁻⁴ of δ.
/// * Source: the documentation of [`super::doubling`].
///
/// # Errors
/// [`Error::Domain`] without rounds or for a count of zero; [`Error::Unresolved`] if nothing but an infinite loss is
/// certain; [`Error::Cancelled`] and [`Error::TimeLimit`].
pub fn composition(rounds: &[Round], side: Side, run: &Run) -> Result<Checked> {
    if rounds.is_empty() || rounds.iter().any(|round| round.count == 0) {
        return domain("count", 0.0, "at least one round of each kind");
    }
    if let [only] = rounds {
        if only.count == 1 {
            return Ok(only.profile.clone());
        }
    }
    let counts: Vec<f64> = rounds.iter().map(|round| real(round.count)).collect();
    let total: f64 = counts.iter().sum();
    let ignored = IGNORED / total;
    let extents: Vec<(f64, f64)> = rounds.iter().map(|round| ends(round.profile.as_ref(), ignored)).collect();
    let reach: f64 = extents.iter().zip(&counts).map(|(extent, count)| count * extent.1.max(0.0)).sum();
    let mut place = Place { epsilon: reach, reach: 0.0, hazard: TILT, log_delta: SMALLEST_DELTA.ln(), losses: None };
    let finest = extents.iter().fold(0.0_f64, |most, e| most.max(e.1.max(-e.0))) * 2.0_f64.powi(-38);
    let mut laws = Vec::with_capacity(rounds.len());
    for ((round, &extent), &count) in rounds.iter().zip(&extents).zip(&counts) {
        let profile = round.profile.as_ref();
        let mesh = meshed(Mesh::around(profile, exact_spacing(finest), 0.0, extent), profile, &place, count, run)?;
        laws.push(match (Law::of_one(side, profile, &mesh)?, side) {
            (Some(law), _) => law,
            // A round whose finite losses are nearly one, such as (0, δ), has none that are resolved from below.
            (None, Side::Lower) => Law::trivial(profile.delta_at_infinity()),
            (None, Side::Upper) => return Err(Error::Unresolved { reason: "all losses of a round may be infinite" }),
        });
    }
    let variance: f64 = laws.iter().zip(&counts).map(|(law, count)| count * variance(law)).sum();
    place.hazard = TILT.min(MOVED / variance.sqrt().max(1e-9));
    let care =
        Care { place: &place, budget: 1e-9 / real(rounds.len()), ignored, cells: CELLS, highest: 2.0 * reach + 1.0 };
    let law = Law::of_all(laws.iter().zip(rounds.iter().map(|round| round.count)), &care, run)?;
    let law = law.ok_or(Error::Numerics { reason: "rounds without a law" })?;
    let bound = match side {
        Side::Upper => from_one(&law),
        Side::Lower => Arc::new(AtLeastTrivial(law.profile())),
    };
    Checked::of(Composed { bound, rounds: rounds.to_vec() })
}

/// A bound on the profile of a composition, with what its rounds say of it.
#[derive(Debug, Clone)]
struct Composed {
    bound: Arc<dyn Profile>,
    rounds: Vec<Round>,
}

impl Composed {
    /// Returns the sum of a fact over all rounds; `None` if it is not known of one.
    fn sum(&self, fact: impl Fn(&dyn Profile) -> Option<Rational>) -> Option<Rational> {
        self.rounds.iter().try_fold(Rational::zero(), |sum, round| {
            Some(sum + fact(round.profile.as_ref())? * Rational::from_integer(round.count.into()))
        })
    }
}

impl Profile for Composed {
    fn at_within(&self, epsilon: f64, bracket: (f64, f64)) -> ProfilePoint {
        self.bound.at_within(epsilon, bracket)
    }

    fn delta_at_infinity(&self) -> f64 {
        self.bound.delta_at_infinity()
    }

    fn largest_loss(&self) -> LargestLoss {
        self.bound.largest_loss()
    }

    /// Losses of rounds add up, and all of them are the largest together.
    fn exact_largest_loss(&self) -> Option<Enclosure> {
        self.rounds
            .iter()
            .try_fold(Enclosure::zero(), |sum, round| Some(sum.plus(&round.profile.exact_largest_loss()?, round.count)))
    }

    /// Divergences of rounds add up, whether they are chosen adaptively or not (Mironov 2017, Proposition 1).
    fn exact_divergence(&self, order: f64) -> Option<Rational> {
        self.sum(|profile| profile.exact_divergence(order))
    }

    fn log_moment(&self, order: f64, run: &Run) -> Result<Option<f64>> {
        let mut total = 0.0;
        for round in &self.rounds {
            let Some(moment) = round.profile.log_moment(order, run)? else { return Ok(None) };
            // the rounding is part of the margin
            let count = real(round.count);
            // Each step rounds to the nearest; the margin is more than it can have lost.
            total = (total + count * moment.max(0.0)) * (1.0 + 8.0 * UNIT_ROUNDOFF);
        }
        Ok(Some(total))
    }

    /// Sums of divergences that are at most aρ_i are at most aΣρ_i.
    fn concentration(&self) -> Option<Rational> {
        self.sum(|profile| profile.concentration())
    }

    /// Pairs that dominate compose, and Gaussian pairs compose to that with Σμ_i² (Dong, Roth & Su 2022, Corollary 3.3).
    fn gaussian_square(&self) -> Option<Rational> {
        self.sum(|profile| profile.gaussian_square())
    }
}

/// Returns the losses between which a round's mesh lies; it only decides how near the law is to the profile.
///
/// Where Q has mass that P does not have, 1 − α is not the profile on the left, so the left end is where P(L ≤ ε) = 1 − δ −
/// slope is small. Further left, rounding would hide the difference of the lines there from those on the right.
fn ends(profile: &dyn Profile, ignored: f64) -> (f64, f64) {
    let (mut low, high) = extent(profile, 1e-15, ignored);
    let below = |epsilon: f64| {
        let point = profile.at(epsilon).or_trivial(epsilon);
        1.0 - point.delta - point.slope <= LEFT.max(2.0 * (point.delta_error + point.slope_error))
    };
    let mut right = high;
    for _ in 0..40 {
        let middle = 0.5 * (low + right);
        if below(middle) {
            low = middle;
        } else {
            right = middle;
        }
    }
    // The mesh begins beside the first atom, not at it.
    (low - 1e-2 * (high - low), high)
}

/// Returns the variance of the finite losses of a law, an estimate.
fn variance(law: &Law) -> f64 {
    let mass: f64 = law.mass.iter().sum();
    let mean = law.mean(|loss| loss, 0.0) / mass;
    law.mean(|loss| (loss - mean) * (loss - mean), 0.0) / mass
}

/// Returns the mesh with about [`ATOMS`] cells that cost about the same.
fn meshed(ends: Mesh, profile: &dyn Profile, place: &Place, count: f64, run: &Run) -> Result<Mesh> {
    let cost = place.cost(count);
    let coarse = ends.refined(profile, ATOMS / 2, run, |left, right, gap| cost(left, right, gap) <= 1e-3)?;
    let floor = profile.delta_at_infinity();
    let root = |cell: &[Node]| cost(&cell[0], &cell[1], Defects::between(&cell[0], &cell[1], floor).gap()).cbrt();
    let roots: f64 = coarse.nodes.windows(2).map(root).sum();
    let per_cell = (2.0 * roots / real(ATOMS)).powi(3);
    coarse.refined(profile, ATOMS, run, |left, right, gap| cost(left, right, gap) <= per_cell)
}

/// Returns the profile of a law from above, with the chord from (0, 1).
fn from_one(law: &Law) -> Arc<dyn Profile> {
    let profile = law.profile();
    let at = |loss: &f64| (*loss, profile.at(*loss));
    let convex = |(_, point): &(f64, ProfilePoint)| {
        let (most, steepest) = (point.delta + point.delta_error, point.slope + point.slope_error);
        1.0 - most >= steepest + 8.0 * UNIT_ROUNDOFF
    };
    match law.loss.iter().map(at).find(convex) {
        Some((end, vertex)) => Arc::new(FromOne { profile, end, vertex }),
        None => profile,
    }
}

/// A profile right of `end`, and left of it the chord from (0, 1) to its value there.
#[derive(Debug)]
struct FromOne {
    profile: Arc<dyn Profile>,
    end: f64,
    vertex: ProfilePoint,
}

impl Profile for FromOne {
    fn at_within(&self, epsilon: f64, bracket: (f64, f64)) -> ProfilePoint {
        if epsilon >= self.end {
            return self.profile.at_within(epsilon, bracket);
        }
        let (value, error) = (self.vertex.delta, self.vertex.delta_error);
        let (distance, drop) = (self.end - epsilon, 1.0 - value);
        let (share, rounding) = ((-distance).exp(), 8.0 * UNIT_ROUNDOFF);
        let (delta, slope) = (value + drop * -(-distance).exp_m1(), drop * share);
        ProfilePoint {
            delta,
            // The chord moves by the error of its right end times its share of the width.
            delta_error: error * share * (1.0 + 1e-9) + rounding * delta,
            slope,
            slope_error: error * share * (1.0 + 1e-9) + rounding * (1.0 + distance.min(800.0)) * share,
            threshold: f64::NAN,
        }
    }

    fn delta_at_infinity(&self) -> f64 {
        self.profile.delta_at_infinity()
    }
}

/// The larger one of a profile from below and 1 − α.
#[derive(Debug)]
struct AtLeastTrivial(Arc<dyn Profile>);

impl Profile for AtLeastTrivial {
    fn at_within(&self, epsilon: f64, bracket: (f64, f64)) -> ProfilePoint {
        let point = self.0.at_within(epsilon, bracket);
        let least = -epsilon.exp_m1();
        if point.delta >= least {
            return point;
        }
        // Either may be the larger one: neither is above the profile of the composition.
        let (slope, rounding) = (epsilon.exp(), 4.0 * UNIT_ROUNDOFF);
        ProfilePoint {
            delta: least,
            delta_error: rounding * least + point.delta_error,
            slope,
            slope_error: rounding * slope,
            threshold: f64::NAN,
        }
    }

    fn delta_at_infinity(&self) -> f64 {
        self.0.delta_at_infinity()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exact::decimal;
    use crate::pair::discrete::DiscretePair;
    use crate::pair::gaussian::GaussianPair;
    use crate::pair::laplace::Laplace;
    use crate::pair::poisson::PoissonPair;
    use crate::pair::tabulated::Tabulated;

    fn both(rounds: &[Round]) -> [Checked; 2] {
        [Side::Lower, Side::Upper].map(|side| composition(rounds, side, &Run::default()).unwrap())
    }

    #[test]
    fn gaussian_rounds_are_one_gaussian() {
        let rounds = [
            Round { profile: Checked::of(GaussianPair::new(0.3, 1.0).unwrap()).unwrap(), count: 40 },
            Round { profile: Checked::of(GaussianPair::new(1.0, 1.0).unwrap()).unwrap(), count: 1 },
        ];
        let exact = GaussianPair::new((40.0 * 0.09 + 1.0_f64).sqrt(), 1.0).unwrap();
        let [below, above] = both(&rounds);
        for step in -30..60 {
            let epsilon = 0.2 * f64::from(step);
            let (low, truth, high) = (below.bounds(epsilon), exact.bounds(epsilon), above.bounds(epsilon));
            assert!(low.0 <= truth.1 && truth.0 <= high.1, "{epsilon} {low:?} {truth:?} {high:?}");
            if truth.1 > 1e-8 {
                assert!(high.1 - low.0 <= 2e-3 * truth.1, "{epsilon} {low:?} {truth:?} {high:?}");
            }
        }
        // Far left, both are 1 − α, up to what rounding may have moved there.
        assert!(above.at(-40.0).delta <= 1.0 && (above.at(-12.0).delta + (-12.0_f64).exp_m1()) < 1e-8);
        for at in [-30.0, -8.0, -5.0, -3.0, -1.0, 0.5] {
            let line = above.at(at);
            for other in (-160..40).map(|k| 0.1 * f64::from(k)) {
                let (point, change) = (above.at(other), (other - at).exp_m1());
                let slope = line.slope + line.slope_error * change.signum();
                let least = line.delta - line.delta_error - slope * change;
                assert!(least <= point.delta + point.delta_error + 1e-15, "{at} {other}");
            }
        }
    }

    #[test]
    fn finite_rounds_are_all_outcomes() {
        let (p, e) = (0.6, 0.01);
        let outcomes = vec![(p, 1.0 - p - e), (1.0 - p - e, p), (e, 0.0), (0.0, e)];
        let pair = DiscretePair::new(outcomes.clone()).unwrap();
        let rounds = [
            Round { profile: Checked::of(pair).unwrap(), count: 4 },
            Round { profile: Checked::of(Laplace::new(1.0, 1e3).unwrap()).unwrap(), count: 1 },
        ];
        // Laplace noise of scale 1000 moves ε by at most 0.001.
        let exact = |epsilon: f64| {
            let mut sum = 0.0;
            for code in 0..256_usize {
                let mut laws = (1.0, 1.0);
                for round in 0..4 {
                    let one = outcomes[code >> (2 * round) & 3];
                    laws = (laws.0 * one.0, laws.1 * one.1);
                }
                sum += (laws.0 - epsilon.exp() * laws.1).max(0.0_f64);
            }
            sum
        };
        let [below, above] = both(&rounds);
        for step in -20..30 {
            let epsilon = 0.1 * f64::from(step) + 0.03;
            assert!(below.bounds(epsilon).0 <= exact(epsilon - 1e-3) + 1e-15, "{epsilon}");
            assert!(above.bounds(epsilon).1 >= exact(epsilon + 1e-3) - 1e-15, "{epsilon}");
            assert!(above.bounds(epsilon).1 - below.bounds(epsilon).0 <= 2e-3 * exact(epsilon), "{epsilon}");
        }
        assert!(composition(&[], Side::Upper, &Run::default()).is_err());
    }

    #[test]
    fn rounds_without_resolved_losses_have_a_bound_from_below() {
        for delta in [1e-9, 1e-5, 3e-4, 1e-2, 0.3, 0.999] {
            for count in [2_u64, 5, 40] {
                let profile = Tabulated::guarantees(&[(0.0, delta)]).unwrap();
                let [below, above] = both(&[Round { profile: Checked::of(profile).unwrap(), count }]);
                // All rounds lose nothing, or one of them everything.
                let exact = -(real(count) * (-delta).ln_1p()).exp_m1();
                for epsilon in [0.0, 0.1, 3.0] {
                    let (low, high) = (below.bounds(epsilon).0, above.bounds(epsilon).1);
                    assert!(
                        low <= exact * (1.0 + 1e-13) && exact <= high * (1.0 + 1e-13),
                        "{delta} {count} {low} {high}"
                    );
                    assert!(low >= exact * (1.0 - 1e-9), "{delta} {count} {epsilon} {low} {exact}");
                }
            }
        }
        // A record that is hardly hidden: nearly all of the loss is −ln(1 − p) in one direction, and huge in the other.
        for noise in [0.02, 0.05, 0.06] {
            let round = |reverse| PoissonPair::new(1, 0.01, noise, false, reverse).unwrap();
            for reverse in [false, true] {
                let [below, above] = both(&[Round { profile: Checked::of(round(reverse)).unwrap(), count: 10 }]);
                for epsilon in [-1.0, 0.0, 0.05, 1.0, 100.0] {
                    assert!(below.bounds(epsilon).0 <= above.bounds(epsilon).1, "{noise} {reverse} {epsilon}");
                    // A record that is in no batch, with probability 0.99^10, hides its absence.
                    assert!(below.bounds(epsilon).0 <= 1.0 - 0.99_f64.powi(10) + (-epsilon.exp_m1()).max(0.0) + 1e-9);
                }
            }
        }
    }

    #[test]
    fn facts_of_rounds_add_up() {
        let run = Run::default();
        let rounds = [
            Round { profile: Checked::of(GaussianPair::new(0.1, 1.0).unwrap()).unwrap(), count: 4 },
            Round { profile: Checked::of(GaussianPair::new(0.3, 1.0).unwrap()).unwrap(), count: 1 },
        ];
        let [_, above] = both(&rounds);
        assert_eq!(above.gaussian_square(), Some(decimal(0.13)));
        assert_eq!(above.concentration(), Some(decimal(0.065)));
        assert_eq!(above.exact_divergence(3.0), Some(decimal(0.195)));
        let mixed = [
            Round { profile: Checked::of(Laplace::new(1.0, 2.0).unwrap()).unwrap(), count: 2 },
            Round { profile: Checked::of(DiscretePair::new(vec![(0.6, 0.4), (0.4, 0.6)]).unwrap()).unwrap(), count: 1 },
        ];
        let [_, above] = both(&mixed);
        let one = |at: usize| mixed[at].profile.log_moment(2.5, &run).unwrap().unwrap();
        let (found, sum) = (above.log_moment(2.5, &run).unwrap().unwrap(), 2.0 * one(0) + one(1));
        assert!(found >= sum && found <= sum * (1.0 + 1e-13) && above.exact_divergence(2.5).is_none());
    }
}
