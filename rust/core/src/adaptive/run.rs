//! The bounds on δ of batches of a fixed size, with the choice of lattice, tilt and cover.
//!
//! The choices decide how near the bounds are to the truth, and how long they take; each bound holds for any of them.

use crate::adaptive::class::{self, Places};
use crate::adaptive::level::Level;
use crate::adaptive::recursion::{most, solve, tilts, Lattice, LatticeCurve, Stage};
use crate::adaptive::triangles::corner;
use crate::error::{Error, Result};
use crate::pair::substitution::Change;
use crate::pld::masses::Masses;
use crate::pld::mesh::{exact_spacing, Side};
use crate::run::Run;

/// Rounds of batches of one size, with one noise.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Phase {
    pub(super) dataset_size: u64,
    pub(super) batch_size: u64,
    pub(super) noise_multiplier: f64,
    pub(super) count: u64,
}

impl Phase {
    /// Creates the rounds; σ is in units of the clip norm.
    ///
    /// # Errors
    /// [`Error::Domain`] unless 0 < B < N < 2⁵³, σ is between 10⁻³ and 10⁶, and there is a round.
    #[allow(clippy::cast_precision_loss)] // for messages
    pub fn new(dataset_size: u64, batch_size: u64, noise_multiplier: f64, count: u64) -> Result<Self> {
        if dataset_size >= 1 << 53 {
            return Err(Error::Domain { name: "dataset_size", value: dataset_size as f64, allowed: "below 2^53" });
        }
        if batch_size == 0 || batch_size >= dataset_size {
            let allowed = "at least 1, and smaller than the data set";
            return Err(Error::Domain { name: "batch_size", value: batch_size as f64, allowed });
        }
        if !(1e-3..=1e6).contains(&noise_multiplier) {
            return Err(Error::Domain { name: "noise_multiplier", value: noise_multiplier, allowed: "10^-3 to 10^6" });
        }
        if count == 0 {
            return Err(Error::Domain { name: "count", value: 0.0, allowed: "at least one round" });
        }
        Ok(Self { dataset_size, batch_size, noise_multiplier, count })
    }

    /// Returns q, rounded up.
    #[allow(clippy::cast_precision_loss)] // sizes are below 2^53
    pub(super) fn probability_above(&self) -> f64 {
        (self.batch_size as f64 / self.dataset_size as f64).next_up()
    }
}

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
    let choice = Choice::new(change, phases, target, effort, FEWEST_LAWS, run)?;
    let total: u64 = phases.iter().map(|phase| phase.count).sum();
    let affordable = effort.cells / (2 * total.max(1) * choice.lattice.length as u64);
    let rings = u32::try_from(affordable).unwrap_or(u32::MAX).clamp(2, effort.rings.max(2));
    let stages = stages(phases, |phase| class::above(change, phase, rings, STEP, &choice.places, run))?;
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
    let choice = Choice::new(change, phases, target, Effort { spread: 0.1 * effort.spread, ..effort }, laws, run)?;
    let stages = stages(phases, |phase| class::below(change, phase, FINE_STEP, &choice.places, run))?;
    let curves = solve(&stages, choice.lattice, Side::Lower, run)?;
    Ok(bounds(curves, &stages))
}

fn stages(phases: &[Phase], laws: impl Fn(&Phase) -> Result<Vec<Vec<Masses>>>) -> Result<Vec<Stage>> {
    phases.iter().map(|phase| Ok(Stage { laws: laws(phase)?, count: phase.count })).collect()
}

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
    fn new(change: Change, phase: &Phase, reach: f64) -> Self {
        let (q, c) = (phase.probability_above(), 1.0 / phase.noise_multiplier);
        let log_ratio = |shift: f64, y: f64| (q * (shift * y - 0.5 * shift * shift).exp_m1()).ln_1p();
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
        self.outcomes.iter().map(|(weight, loss)| weight * ((1.0 + tilt) * loss).exp()).sum()
    }
}

impl Choice {
    fn new(change: Change, phases: &[Phase], target: Target, effort: Effort, laws: f64, run: &Run) -> Result<Self> {
        if phases.is_empty() {
            return Err(Error::Domain { name: "phases", value: 0.0, allowed: "at least one" });
        }
        #[allow(clippy::cast_precision_loss)] // estimates
        let counts: Vec<f64> = phases.iter().map(|phase| phase.count as f64).collect();
        let total: f64 = counts.iter().sum();
        let corners: Vec<[Level; 2]> = phases
            .iter()
            .map(|phase| corner(change).map(|gram| Level::new(gram, phase.probability_above(), phase.noise_multiplier)))
            .collect();
        let largest = |corner: &[Level; 2], at: f64| corner[0].at(at).max(corner[1].at(at));
        // How far losses reach.
        let reach = |delta: f64| {
            let limit = delta * BEYOND / total;
            corners.iter().map(|one| first(1.0 / 64.0, limit, |at| largest(one, at))).fold(0.0, f64::max)
        };
        let least = match target {
            Target::Delta(delta) => delta,
            Target::Epsilon(_) => 1e-12,
        };
        let estimates: Vec<Estimate> = phases.iter().map(|phase| Estimate::new(change, phase, reach(least))).collect();
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
        // P(L < −ℓ) ≤ e^{−ℓ}, and it is at most the δ of the reversed pair there.
        let left = corners
            .iter()
            .map(|one| first(1.0 / 64.0, LEFT, |at| (-at).exp() * largest(one, at) * 4.0))
            .fold(0.0, f64::max)
            .min(right);
        if !(end.is_finite() && end > 0.0) {
            return Err(Error::Unresolved { reason: "the losses of adaptive gradients are too large" });
        }
        let span = end + right + left;
        let variance = estimates.iter().map(|one| one.square).fold(f64::INFINITY, f64::min);
        let wanted = (6.0 * variance * effort.spread).sqrt();
        // As fine as wanted, if the work allows it for a few laws at least.
        #[allow(clippy::cast_precision_loss)] // estimates
        let length = {
            let mut length = SHORTEST;
            let cost = |length: usize| total * laws * length as f64;
            while length < LONGEST && span / (length as f64) > wanted && cost(2 * length) <= effort.cells as f64 {
                length *= 2;
            }
            length
        };
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
