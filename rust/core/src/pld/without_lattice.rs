//! Answers where no lattice is fine enough for the losses of most rounds: rounds are doubled on cells of any width.
//!
//! As in [`super::search`], the choices only decide how narrow the interval is.

use crate::error::{Error, Result};
use crate::pld::answer::{at_least, at_most, single, Answer, Budget, Query, SMALLEST_DELTA};
use crate::pld::cells::{Care, Place};
use crate::pld::doubling::Law;
use crate::pld::mesh::{exact_spacing, Mesh, Side};
use crate::pld::question::{scale, Search, Seen};
use crate::special::real;

/// The smallest relative width that doubling can attain.
const NARROW: f64 = 2e-5;
/// The relative width of the first answer, which determines where more precision is needed.
const ROUGH: f64 = 0.03;
/// The factor by which the next answer is to be narrower, and the maximum number of passes.
const STEP: f64 = 0.1;
const PASSES: usize = 8;
/// If an interval is this much wider than its cells are chosen for, they were chosen for the wrong position.
const MISSED: f64 = 8.0;
/// The minimum number of cells for a product in the first pass, doubled in each later one: the cost of cells is only an
/// estimate, and if it is too low, more cells are the remedy.
const LEAST_CELLS: u32 = 256;
/// The maximum number of cells in the first pass, doubled in each later one up to a limit: a product takes half the
/// square of their number, and the first passes determine where the later ones need fine cells.
const FIRST_CELLS: u32 = 1024;
const MOST_CELLS: u32 = 8192;
/// Passes continue while the width falls at least to this fraction of the previous one.
const WORTHWHILE: f64 = 0.9;
/// A δ below this is left as wide as transforms have it: pictures of a profile need many such values, and their lower
/// bounds are not used.
const DOUBLED_DELTA: f64 = 1e-20;
/// Losses this far beyond the answer count as infinite: their contribution to δ changes by a factor of 1 + e to minus
/// this.
const BEYOND: f64 = 40.0;
/// The minimum decrease of ln δ with each nat, for the choice of cells.
pub(super) const SMALLEST_HAZARD: f64 = 0.01;
/// The approximate maximum number of atoms of the law of one round that is doubled.
pub(super) const MOST_BASE_NODES: usize = 1 << 12;

impl Search<'_> {
    /// Returns whether an answer that transforms left too wide is worth another way.
    pub(super) fn worth_doubling(&self, answer: &Answer) -> bool {
        let resolved = match self.query {
            Query::Delta(_) => answer.upper > DOUBLED_DELTA,
            Query::Epsilon(_) => true,
        };
        let narrow = answer.upper.is_finite() && answer.upper - answer.lower <= NARROW * answer.upper;
        resolved && !narrow
    }

    /// Returns the answer where no lattice is fine enough for the losses of most rounds: rounds are doubled up to all
    /// of them, without a lattice.
    ///
    /// How fast δ falls near the answer decides what the cells must resolve, so a rough answer comes first.
    pub(super) fn by_doubling(&self, mut best: Answer, seen: &mut Seen<'_>) -> Result<Answer> {
        let groups = self.groups(&self.sketch);
        let (epsilon, delta) = match self.query {
            Query::Epsilon(delta) if best.upper.is_finite() => (best.upper, delta),
            Query::Epsilon(delta) => (groups.at(groups.tilt_for_delta(delta)).mean.max(best.lower), delta),
            Query::Delta(epsilon) => (epsilon, best.upper),
        };
        let hazard = groups.tilt_for_epsilon(epsilon).max(SMALLEST_HAZARD);
        let mut place = Place { epsilon, reach: 0.0, hazard, log_delta: delta.ln(), losses: None };
        let finest = self.tolerance.max(NARROW);
        let (mut tolerance, mut previous, mut highest) = (ROUGH.max(finest), f64::INFINITY, f64::INFINITY);
        for pass in 0..PASSES {
            let width = match self.query {
                Query::Epsilon(delta) => tolerance * scale(place.epsilon, delta),
                Query::Delta(_) => tolerance / place.hazard,
            };
            let cells = (LEAST_CELLS << pass, (FIRST_CELLS << pass).min(MOST_CELLS));
            let laws = self.laws(&place, 0.3 * width * place.hazard, cells)?;
            let Some((upper, lower)) = laws else { break };
            let (above, below) = (upper.profile(), lower.profile());
            let (high, low) = (single(above.as_ref(), self.query)?.upper, single(below.as_ref(), self.query)?.lower);
            // Bounds that cross show a defect in one of them, which must not be hidden.
            if low > high {
                return Err(Error::Numerics { reason: "the law from below came out above the one from above" });
            }
            seen(&|epsilon| (at_least(below.as_ref(), epsilon), at_most(above.as_ref(), epsilon)));
            let epsilon = if let Query::Epsilon(_) = self.query { high } else { place.epsilon };
            let (point, least) = (above.at(epsilon), below.at(epsilon));
            let answer = Answer {
                lower: low,
                upper: high,
                budget: Budget {
                    truncation: upper.at_infinity(),
                    mass_rounding: upper.excess() * point.delta,
                    cells: ((point.delta + point.delta_error) - (least.delta - least.delta_error)).max(0.0),
                    ..Budget::default()
                },
                nodes: upper.len() + lower.len(),
                ..Answer::default()
            };
            best = self.judged(best.and(answer)?);
            let width = (high - low) / self.wanted(&best);
            let narrow = best.upper - best.lower <= NARROW * best.upper;
            if best.within_tolerance || narrow || !best.upper.is_finite() {
                break;
            }
            let next = if width * finest > MISSED * tolerance {
                // The cells were chosen for another position, and a better one is known now.
                tolerance
            } else if tolerance > finest {
                finest.max(STEP * tolerance.min(width * finest))
            } else {
                tolerance * (0.7 / width).max(0.25)
            };
            tolerance = next.max(0.01 * finest);
            let point = above.at(if let Query::Epsilon(_) = self.query { best.upper } else { place.epsilon });
            // The mass that may have become infinite because of the cells of this pass does not fall with ε.
            let finite = (point.delta - upper.at_infinity()).max(SMALLEST_DELTA);
            place.hazard = (point.slope / finite).max(hazard);
            match self.query {
                Query::Epsilon(_) => {
                    place.epsilon = 0.5 * (best.upper + best.lower);
                    place.reach = 0.5 * (best.upper - best.lower);
                }
                Query::Delta(_) => place.log_delta = best.upper.max(SMALLEST_DELTA).ln(),
            }
            // Passes end when more cells no longer help.
            if pass > 2 && width > WORTHWHILE * previous && high > WORTHWHILE * highest {
                break;
            }
            // A law that is mostly mass that may have become infinite does not show where losses are.
            if (width < previous || high < highest) && finite > upper.at_infinity() {
                (previous, place.losses) = (width.min(previous), Some(upper.spread()));
            }
            highest = high;
        }
        Ok(best)
    }

    /// Returns the laws of all rounds, from above and from below, whose cells change ln δ at `place` by about `budget`,
    /// with this minimum and maximum number of cells; `None` if errors leave nothing, or if too little work is left.
    fn laws(&self, place: &Place, budget: f64, cells: (u32, u32)) -> Result<Option<(Law, Law)>> {
        let (finest, limit) = (self.finest(), self.most_nodes(MOST_BASE_NODES));
        let mut ones = Vec::with_capacity(self.rounds.len());
        for (round, &extent) in self.rounds.iter().zip(&self.extents) {
            let profile = round.profile.as_ref();
            let ends = Mesh::around(profile, exact_spacing(finest), 0.0, extent);
            let (count, share) = (real(round.count), 0.2 * budget / real(self.rounds.len()));
            ones.push(self.graded(ends, profile, share, limit, place.cost(count), |_, _, _| true)?);
        }
        let nodes: Vec<usize> = ones.iter().map(|mesh| mesh.nodes.len()).collect();
        let Some(cells) = self.affordable(&nodes, cells) else { return Ok(None) };
        let common: f64 = self.rounds.iter().zip(&self.extents).map(|(r, e)| real(r.count) * e.0.min(0.0)).sum();
        let care = Care {
            place,
            budget: 0.8 * budget / real(self.rounds.len()),
            ignored: self.ignored(place.log_delta.exp()),
            cells,
            highest: place.epsilon + place.reach + BEYOND - common,
        };
        let law = |side: Side| -> Result<Option<Law>> {
            let kinds = self.rounds.iter().zip(&ones);
            let each: Result<Vec<Option<Law>>> =
                kinds.map(|(round, mesh)| Law::of_one(side, round.profile.as_ref(), mesh)).collect();
            let Some(laws) = each?.into_iter().collect::<Option<Vec<Law>>>() else { return Ok(None) };
            Law::of_all(laws.iter().zip(self.rounds.iter().map(|round| round.count)), &care, self.run)
        };
        let (upper, lower) = rayon::join(|| law(Side::Upper), || law(Side::Lower));
        Ok(upper?.zip(lower?))
    }
}
