//! The bounds on δ of batches of a fixed size, with the choice of lattice, tilt and cover.
//!
//! The choices decide how near the bounds are to the truth, and how long they take; each bound holds for any of them.

use crate::adaptive::class::{self, Places};
use crate::adaptive::level::Level;
use crate::adaptive::recursion::{most, solve, tilts, Lattice, LatticeCurve, Stage};
use crate::adaptive::triangles::corner;
use crate::error::{Error, Result};
use crate::laws::Weights;
use crate::pair::substitution::Change;
use crate::pld::mesh::{exact_spacing, Side};
use crate::run::Run;
use crate::special::UNIT_ROUNDOFF;

/// Rounds with one law of how often the records in question are drawn, and one noise.
#[derive(Debug, Clone, PartialEq)]
pub struct Phase {
    pub(super) weights: Weights,
    pub(super) noise_multiplier: f64,
    pub(super) count: u64,
}

impl Phase {
    /// Creates the rounds; σ is in units of the clip norm.
    ///
    /// # Errors
    /// [`Error::Domain`] unless there may be a draw and may be none, σ is between 10⁻³ and 10⁶, and there is a round; as
    /// [`Weights::whole`].
    pub fn new(weights: Weights, noise_multiplier: f64, count: u64) -> Result<Self> {
        weights.whole()?;
        let undrawn = if weights.count.first() == Some(&0) { weights.log_probability[0].exp() } else { 0.0 };
        if undrawn < LEAST_UNDRAWN || weights.count.len() < 2 {
            let allowed = "a chance of being drawn, and of not being drawn";
            return Err(Error::Domain { name: "draws", value: undrawn, allowed });
        }
        if !(1e-3..=1e6).contains(&noise_multiplier) {
            return Err(Error::Domain { name: "noise_multiplier", value: noise_multiplier, allowed: "10^-3 to 10^6" });
        }
        if count == 0 {
            return Err(Error::Domain { name: "count", value: 0.0, allowed: "at least one round" });
        }
        Ok(Self { weights, noise_multiplier, count })
    }

    /// Returns (j, p_j/(1 − p_0)) for j ≥ 1, up to one beyond which more draws have a probability of at most `negligible`.
    fn shares(&self, negligible: f64) -> Vec<(u32, f64)> {
        let numbers: Vec<(u32, f64)> = self
            .weights
            .count
            .iter()
            .zip(&self.weights.log_probability)
            .skip(1)
            .map(|(&j, log)| (j, log.exp()))
            .collect();
        let after = |kept: usize| numbers[kept..].iter().map(|draw| draw.1).sum::<f64>();
        let kept = (1..numbers.len()).find(|&kept| after(kept) <= negligible).unwrap_or(numbers.len());
        let drawn = self.drawn();
        numbers[..kept].iter().map(|&(j, p)| (j, p / drawn)).collect()
    }

    /// Returns 1 − p_0, rounded up.
    pub(super) fn drawn(&self) -> f64 {
        let sum: f64 = self.weights.log_probability[1..].iter().map(|log| log.exp()).sum();
        (sum * (1.0 + self.weights.relative_error + 1e-14)).min(1.0 - UNIT_ROUNDOFF)
    }

    /// Whether a record is drawn at most once.
    fn once(&self) -> bool {
        self.weights.count == [0, 1]
    }
}

/// The least probability that no record in question is drawn.
const LEAST_UNDRAWN: f64 = 1e-12;

/// Where the curve should be accurate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Target {
    /// Around this δ.
    Delta(f64),
    /// Around this ε.
    Epsilon(f64),
}

/// How much work a curve may take.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Effort {
    /// The relative increase of the variance of losses, by the lattice, that is tolerated if there is room.
    pub spread: f64,
    /// The most entries of transforms.
    pub cells: u64,
    /// The most rings of a cover.
    pub rings: u32,
}

/// The entries of transforms that each round may take, enough for 64 laws of 2¹⁴ points or for 90, and the rings of the cover; the
/// errors of many rounds add up, so more is done for each of them from [`MANY`] on. The last number is for all rounds together.
const CELLS_OF_ROUND: [u64; 2] = [1_200_000, 1_500_000];
const RINGS: [u32; 2] = [32, 45];
const MANY: u64 = 2000;
const MOST_CELLS: u64 = 20_000_000_000;

impl Effort {
    /// Returns the usual effort: about 6 ms for each round on one core, and three minutes for all.
    #[must_use]
    pub fn usual(phases: &[Phase]) -> Self {
        let rounds = phases.iter().fold(0_u64, |sum, phase| sum.saturating_add(phase.count));
        let many = usize::from(rounds >= MANY);
        let cells = CELLS_OF_ROUND[many].saturating_mul(rounds).min(MOST_CELLS);
        Self { spread: 1e-3, cells, rings: RINGS[many] }
    }
}

/// Bounds on δ at increasing ε from 0, from one side.
#[derive(Debug, Clone)]
pub struct DeltaBounds {
    /// The side.
    pub side: Side,
    /// (ε, δ), of a removed record and of an added one, or of both.
    pub points: Vec<Vec<(f64, f64)>>,
    /// The lattice and the tilt.
    pub lattice: Lattice,
    /// The largest number of laws of a round.
    pub laws: usize,
    /// The curves, for their errors.
    curves: Vec<LatticeCurve>,
}

impl DeltaBounds {
    /// Returns the parts of the error at ε, in units of δ: transforms, window, infinite losses, relative rounding; the larger ones if
    /// there are two directions.
    #[must_use]
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // a place in the table
    pub fn errors(&self, epsilon: f64) -> [f64; 4] {
        let k = (epsilon / self.lattice.spacing).max(0.0) as usize;
        let each = self.curves.iter().map(|curve| curve.errors(k.min(self.lattice.points - 1)));
        each.fold([0.0; 4], |most, one| std::array::from_fn(|k| f64::max(most[k], one[k])))
    }
}

/// The lattice and the reach of laws for some rounds.
struct Choice {
    places: Places,
    lattice: Lattice,
}

/// The δ of infinite losses, and that at the end of the window, relative to the δ that is asked for.
const BEYOND: f64 = 1e-6;
const OMITTED: f64 = 1e-5;
/// So many times as far as the losses of one draw reach, and as many nats, those of several draws are looked at.
const FURTHER: f64 = 2.0;
/// The mass of smaller losses than laws have, for each round.
const LEFT: f64 = 1e-10;
/// The lengths of transforms.
const SHORTEST: usize = 1 << 11;
const LONGEST: usize = 1 << 19;
/// The number of laws for which there should be room before the lattice is refined.
const FEWEST_LAWS: f64 = 60.0;
/// The positions at which profiles are evaluated, as [`Places::positions`] takes it.
const STEP: f64 = 0.04;
const FINE_STEP: f64 = 0.004;

/// Returns upper bounds on δ: V_T of the theorem is at most the curve through them, with chords in e^ε.
///
/// * Guarantee: every δ is at least that of any gradients, for both directions, with batches as the head of this room says.
/// * Precision: none is promised; with 32 rings about 0.1 % of ε.
/// * Source: the head of this room.
///
/// # Errors
/// [`Error::Domain`], [`Error::Numerics`], [`Error::Cancelled`] and [`Error::TimeLimit`].
pub fn above(change: Change, phases: &[Phase], target: Target, effort: Effort, run: &Run) -> Result<DeltaBounds> {
    if let Some(several) = phases.iter().find(|phase| !phase.once()) {
        let most = several.weights.count.last().copied().map_or(0.0, f64::from);
        return Err(Error::Domain { name: "draws", value: most, allowed: "at most one, from above" });
    }
    let choice = Choice::new(change, phases, target, effort, (FEWEST_LAWS, 1), run)?;
    let total: u64 = phases.iter().map(|phase| phase.count).sum();
    let affordable = effort.cells / (2 * total.max(1) * choice.lattice.length as u64);
    let rings = u32::try_from(affordable).unwrap_or(u32::MAX).clamp(2, effort.rings.max(2));
    let stages = phases
        .iter()
        .map(|phase| {
            Ok(Stage { laws: class::above(change, phase, rings, STEP, &choice.places, run)?, count: phase.count })
        })
        .collect::<Result<Vec<_>>>()?;
    let curves = solve(&stages, choice.lattice, Side::Upper, run)?;
    Ok(bounds(curves, &stages))
}

/// Returns lower bounds on δ, of two pairs from which adaptive gradients choose: V_T is at least the step function through them, whose
/// value between two points is that of the right one.
///
/// # Errors
/// As [`above`].
pub fn below(change: Change, phases: &[Phase], target: Target, effort: Effort, run: &Run) -> Result<DeltaBounds> {
    // Two laws, or two for each direction, leave room for a finer lattice, from which the loss of a step at the end is smaller too.
    let laws = match change {
        Change::Replaced => 4.0,
        Change::Zeroed => 8.0,
    };
    let block = (phases.iter().map(|phase| phase.count).sum::<u64>() / MOST_CHOICES).max(1);
    let effort = Effort { spread: 0.1 * effort.spread, ..effort };
    let choice = Choice::new(change, phases, target, effort, (laws, block), run)?;
    let mut stages = Vec::new();
    for phase in phases {
        let step = if phase.once() { FINE_STEP } else { STEP };
        for (rounds, count) in [(block, phase.count / block), (1, phase.count % block)] {
            if count > 0 {
                stages.push(Stage { laws: class::below(change, phase, rounds, step, &choice.places, run)?, count });
            }
        }
    }
    let curves = solve(&stages, choice.lattice, Side::Lower, run)?;
    Ok(bounds(curves, &stages))
}

/// How often the attacker of the lower bounds chooses at most: with this many choices ε is lower by some 10⁻⁴ of it.
const MOST_CHOICES: u64 = 800;

fn bounds(curves: Vec<LatticeCurve>, stages: &[Stage]) -> DeltaBounds {
    let of = |curve: &LatticeCurve| -> Vec<(f64, f64)> {
        curve.values().into_iter().enumerate().map(|(k, delta)| (curve.at(k), delta)).collect()
    };
    let laws = stages.iter().map(|stage| stage.laws.iter().map(Vec::len).sum()).max().unwrap_or(0);
    let (side, lattice) = (curves[0].side, curves[0].lattice);
    DeltaBounds { side, points: curves.iter().map(of).collect(), lattice, laws, curves }
}

/// Returns the least multiple of `step` at which a falling function is at most `limit`; 10⁶ steps at most.
fn first(step: f64, limit: f64, falling: impl Fn(f64) -> f64) -> f64 {
    let (mut low, mut high) = (0.0, step);
    while falling(high) > limit && high < 1e6 * step {
        low = high;
        high *= 2.0;
    }
    while high - low > step {
        let middle = 0.5 * (low + high);
        if falling(middle) > limit {
            low = middle;
        } else {
            high = middle;
        }
    }
    high
}

/// Estimates of the pair with the largest losses, by quadrature over its Q: u at 0, x at 2 and x′ at 0, or at 1 if it is the
/// record's own place that is empty.
struct Estimate {
    /// (weight, loss).
    outcomes: Vec<(f64, f64)>,
    /// E[L²] under Q.
    square: f64,
}

impl Estimate {
    fn new(change: Change, phase: &Phase, shares: &[(u32, f64)], reach: f64) -> Self {
        let drawn = phase.drawn();
        let each = shares
            .iter()
            .map(|&(j, share)| (share, Self::of(change, drawn, phase.noise_multiplier / f64::from(j), reach)));
        let mut all = Self { outcomes: Vec::new(), square: 0.0 };
        for (share, one) in each {
            all.outcomes.extend(one.outcomes.into_iter().map(|(weight, loss)| (share * weight, loss)));
            all.square += share * one.square;
        }
        all
    }

    fn of(change: Change, q: f64, noise_multiplier: f64, reach: f64) -> Self {
        let c = 1.0 / noise_multiplier;
        let log_ratio = |shift: f64, y: f64| {
            let exponent = shift * y - 0.5 * shift * shift;
            if exponent > 300.0 {
                exponent + q.ln()
            } else {
                (q * exponent.exp_m1()).ln_1p()
            }
        };
        let replaced = |y: f64| match change {
            Change::Replaced => 0.0,
            Change::Zeroed => log_ratio(c, y),
        };
        let loss = |y: f64| log_ratio(2.0 * c, y) - replaced(y);
        let width = 0.01;
        let outcomes: Vec<(f64, f64)> = (-1000..20_000)
            .map(|k| f64::from(k) * width)
            .map(|y| (width * 0.398_942_28 * (replaced(y) - 0.5 * y * y).exp(), loss(y)))
            .take_while(|outcome| outcome.1 <= reach)
            .collect();
        let square = outcomes.iter().map(|(weight, loss)| weight * loss * loss).sum();
        Self { outcomes, square }
    }

    /// Returns about E[e^{θL}], L under P.
    fn moment(&self, tilt: f64) -> f64 {
        // Zero times infinity would say nothing.
        let each = self.outcomes.iter().filter(|(weight, _)| *weight > 0.0);
        each.map(|(weight, loss)| weight * ((1.0 + tilt) * loss).exp()).sum()
    }
}

/// The largest triangles of each number of draws, with its share.
struct Corner(Vec<(f64, [Level; 2])>);

impl Corner {
    fn new(change: Change, phase: &Phase, shares: &[(u32, f64)]) -> Self {
        let level = |j: u32, gram| Level::new(gram, phase.drawn(), phase.noise_multiplier / f64::from(j));
        Self(shares.iter().map(|&(j, share)| (share, corner(change).map(|gram| level(j, gram)))).collect())
    }

    /// Returns about the δ of what is larger than ε, of one number of draws.
    fn at(&self, number: usize, epsilon: f64) -> f64 {
        let (share, levels) = &self.0[number];
        share * levels[0].at(epsilon).max(levels[1].at(epsilon))
    }

    /// Returns how far losses reach. Those of several draws that are much larger than those of one are cut off.
    fn reach(&self, limit: f64) -> f64 {
        let of_one = first(1.0 / 64.0, limit, |at| self.at(0, at));
        let furthest = FURTHER * of_one + FURTHER;
        let of_more = (1..self.0.len()).map(|number| {
            if self.at(number, furthest) > limit {
                furthest
            } else {
                first(1.0 / 64.0, limit, |at| self.at(number, at))
            }
        });
        of_more.fold(of_one, f64::max)
    }

    /// Returns how far they reach to the left: P(L < −ℓ) ≤ e^{−ℓ}, and it is at most the δ of the reversed pair there.
    fn left(&self) -> f64 {
        let of = |number| first(1.0 / 64.0, LEFT, |at| (-at).exp() * self.at(number, at) * 4.0);
        (0..self.0.len()).map(of).fold(0.0, f64::max)
    }
}

/// Returns a length that is as fine as wanted, if the work allows it for a few laws at least.
#[allow(clippy::cast_precision_loss)] // estimates
fn length(wanted: f64, transforms: f64, effort: Effort) -> usize {
    let mut length = SHORTEST;
    while length < LONGEST && wanted > length as f64 && transforms * 2.0 * length as f64 <= effort.cells as f64 {
        length *= 2;
    }
    length
}

impl Choice {
    /// Chooses for so many laws, and for blocks of so many rounds.
    fn new(
        change: Change,
        phases: &[Phase],
        target: Target,
        effort: Effort,
        (laws, block): (f64, u64),
        run: &Run,
    ) -> Result<Self> {
        if phases.is_empty() {
            return Err(Error::Domain { name: "phases", value: 0.0, allowed: "at least one" });
        }
        #[allow(clippy::cast_precision_loss)] // estimates
        let counts: Vec<f64> = phases.iter().map(|phase| phase.count as f64).collect();
        let total: f64 = counts.iter().sum();
        let least = match target {
            Target::Delta(delta) => delta,
            Target::Epsilon(_) => 1e-12,
        };
        let negligible = least * BEYOND / total;
        let shares: Vec<Vec<(u32, f64)>> = phases.iter().map(|phase| phase.shares(negligible)).collect();
        let corners: Vec<Corner> =
            phases.iter().zip(&shares).map(|(phase, shares)| Corner::new(change, phase, shares)).collect();
        let reach = |delta: f64| corners.iter().map(|corner| corner.reach(delta * BEYOND / total)).fold(0.0, f64::max);
        let widest = reach(least);
        let estimates: Vec<Estimate> =
            phases.iter().zip(&shares).map(|(phase, shares)| Estimate::new(change, phase, shares, widest)).collect();
        // ln b_T, where e^{θs}W_T(s) is at most b_T.
        let log_bound = |tilt: f64| {
            let growth: f64 =
                estimates.iter().zip(&counts).map(|(one, count)| count * one.moment(tilt).max(1.0).ln()).sum();
            growth + (most(tilt) * (total / (1.0 + growth)).max(1.0)).ln()
        };
        let grid: Vec<(f64, f64)> =
            tilts().map(|tilt| (tilt, log_bound(tilt))).filter(|one| one.1.is_finite()).collect();
        let at_delta = |delta: f64| {
            let end = |&(tilt, bound): &(f64, f64)| (bound - delta.ln()) / tilt;
            grid.iter().map(|one| (end(one), one.0)).fold((f64::INFINITY, 1.0), |a, b| if b.0 < a.0 { b } else { a })
        };
        let (tilt, delta) = match target {
            Target::Delta(delta) => (at_delta(delta).1, delta),
            Target::Epsilon(epsilon) => {
                let value = |&(tilt, bound): &(f64, f64)| bound - tilt * epsilon;
                let best = grid.iter().map(|one| (value(one), one.0)).fold((f64::INFINITY, 1.0), |a, b| {
                    if b.0 < a.0 {
                        b
                    } else {
                        a
                    }
                });
                (best.1, best.0.clamp(-690.0, -1.0).exp())
            }
        };
        let right = reach(delta);
        let end = at_delta(delta * OMITTED).0.max(match target {
            Target::Epsilon(epsilon) => 1.05 * epsilon,
            Target::Delta(_) => 0.0,
        });
        let left = corners.iter().map(Corner::left).fold(0.0, f64::max).min(right);
        if !(end.is_finite() && end > 0.0) {
            return Err(Error::Unresolved { reason: "the losses of adaptive gradients are too large" });
        }
        #[allow(clippy::cast_precision_loss)] // estimates
        let (block, blocks) = (block as f64, counts.iter().map(|count| (count / block as f64).ceil()).sum::<f64>());
        let (left, right) = if block > 1.0 {
            let limit = (delta * BEYOND / blocks).ln();
            let most = |one: &Estimate| {
                tilts().map(|tilt| (block * one.moment(tilt).ln() - limit) / tilt).fold(f64::INFINITY, f64::min)
            };
            let right = estimates.iter().map(most).fold(0.0, f64::max).clamp(right, end + right);
            ((2.0 * block.sqrt() * left).min(right), right)
        } else {
            (left, right)
        };
        let span = end + right + left;
        let variance = block * estimates.iter().map(|one| one.square).fold(f64::INFINITY, f64::min);
        let wanted = (6.0 * variance * effort.spread).sqrt();
        let length = length(span / wanted, blocks * laws, effort);
        #[allow(clippy::cast_precision_loss)] // a length
        let spacing = exact_spacing(span / (length as f64 - 16.0) * (1.0 + 1e-3));
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // at most a length
        let (across, reach) = ((right / spacing).ceil() as usize + 2, (left / spacing).ceil() as usize);
        // Nodes are apart: the leftmost one may be further left.
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // at most a length
        let slack = ((STEP / spacing) as usize + 2).max(2);
        let points = length.saturating_sub(across + reach + slack);
        if points < 16 {
            return Err(Error::Unresolved { reason: "the losses of adaptive gradients are too large" });
        }
        run.check()?;
        Ok(Self { places: Places { spacing, left, right }, lattice: Lattice { spacing, points, tilt, length } })
    }
}
