//! Chooses the tilt and the part of the lattice that a composition is computed on.
//!
//! None of these choices affects a bound: [`super::compose`] computes its bounds from the actual masses whatever is
//! chosen here. The choices decide how short the transform is.
//!
//! A tilt at the saddle point makes δ a sum of order one but gives rare large losses weight, which a longer window must
//! hold. A smaller tilt keeps the window short as long as rounding errors stay far below the tilted δ. The window needs
//!
//! * to reach so far up that the untilted mass above it is negligible compared to δ;
//! * to be so long that tilted mass beyond one length above the point of reading is negligible (it would wrap around);
//! * on the lower side, *either* to start where the tilted law starts, *or* to be so long that `e^{−λ·length}` is
//!   negligible compared to δ: mass that wraps up from below by one length is multiplied by that factor.

use crate::pld::cumulant::{Cumulant, Groups};
use crate::pld::mesh::exact_spacing;
use crate::special::real;

/// The requirements of a composition.
#[derive(Debug, Clone, Copy)]
pub struct Goal {
    /// The expected ε of the answer.
    pub epsilon: f64,
    /// How far below it the answer may lie.
    pub margin: f64,
    /// ln δ at that ε, roughly.
    pub log_delta: f64,
    /// The relative error in δ that the window and the rounding may each cause.
    pub slack: f64,
    /// The lattice spacing that the discretisation requires.
    pub spacing: f64,
    /// The finest lattice spacing on which the rounds' losses have exact positions.
    pub finest: f64,
    /// The number of rounds.
    pub rounds: f64,
    /// The maximum length of a transform.
    pub longest: usize,
    /// Whether the window has room for the spread of the lattice itself, in addition to that of the rounds.
    pub spread: bool,
    /// How many lattice steps left of its start the window is to begin.
    pub room: f64,
}

/// A part of the lattice, a tilt, and the Markov parameters that bound the mass outside.
#[derive(Debug, Clone, Copy)]
pub struct Grid {
    /// The tilt λ.
    pub tilt: f64,
    /// The lattice spacing.
    pub spacing: f64,
    /// The first lattice position.
    pub first: i64,
    /// The length of the transform, a power of two.
    pub length: usize,
    /// The smallest ε at which the composition is read.
    pub read_from: f64,
    /// λ-values for the Markov bounds: on the untilted mass above the window, the tilted mass that wraps from above,
    /// and the tilted mass below the window.
    pub theta: [f64; 3],
    /// Whether the spacing had to be coarser than required.
    pub limited: bool,
}

/// Transforms longer than this are costly enough to search for a shorter one.
pub const COSTLY: usize = 1 << 18;
/// Tilts, spacings and points of reading that differ by less than this fraction are regarded as equal.
const SAME: f64 = 0.01;

impl Grid {
    /// Returns whether a costly grid is practically equal to an earlier one, whose answer was at least `found`: if
    /// `found` is inside the range that the earlier one could read, another point of reading is no better.
    pub fn repeats(&self, earlier: &Self, found: f64) -> bool {
        let same = |a: f64, b: f64| (a - b).abs() <= SAME * b.abs();
        self.length == earlier.length
            && self.length >= COSTLY
            && same(self.spacing, earlier.spacing)
            && same(self.tilt, earlier.tilt)
            && (found > earlier.read_from || same(self.read_from, earlier.read_from))
    }

    /// Returns the same part of a lattice whose position 0 is this loss.
    pub fn without(&self, origin: f64) -> Self {
        let first = (real(self.first) - origin / self.spacing).floor();
        // An upper bound is read a rounding error below the given ε.
        let room = if origin.abs() > 0.0 { self.spacing } else { 0.0 };
        #[allow(clippy::cast_possible_truncation)] // as above
        Self { first: first as i64, read_from: self.read_from - origin - room, ..*self }
    }
}

/// The relative errors in δ that are allowed one after the other while no transform is long enough.
const COARSE_SLACKS: [f64; 3] = [1e-5, 1e-4, 1e-3];

struct Candidate {
    tilt: f64,
    start: f64,
    width: f64,
    theta: [f64; 3],
}

/// Chooses a grid for `goal`; `saddle` is the tilt whose mean loss is the expected answer.
pub fn choose(groups: &Groups, saddle: f64, goal: &Goal) -> Grid {
    let read_from = (goal.epsilon - goal.margin).max(0.0);
    // Transforms have power-of-two lengths, so all of the required one is used.
    let longest = real(goal.longest);
    let room = goal.room * goal.spacing.max(goal.finest);
    let width_of = |one: &Candidate| (1.02 * one.width).max(58.0 * goal.finest) + room;
    let needed_by = |one: &Candidate| (width_of(one) / goal.spacing.max(goal.finest)).max(64.0);
    let spread = if goal.spread { lattice_variance(goal, goal.spacing.max(goal.finest)) } else { 0.0 };
    let mut best = candidate(groups, saddle, goal, read_from, goal.slack, spread);
    // If no transform is long enough, a lattice that is too coarse costs more than a window that loses more mass.
    for slack in COARSE_SLACKS.into_iter().filter(|slack| *slack > goal.slack) {
        if needed_by(&best) <= longest {
            break;
        }
        let other = candidate(groups, saddle, goal, read_from, slack, spread);
        if other.width < best.width {
            best = other;
        }
    }
    let (width, needed) = (width_of(&best), needed_by(&best));
    let length = needed.log2().ceil().exp2().min(longest);
    let spacing = exact_spacing((width / (length - 6.0)).max(goal.finest));
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // between 64 and `longest`; positions below 2^41
    Grid {
        tilt: best.tilt,
        spacing,
        first: ((best.start - room) / spacing).floor() as i64 - 2,
        length: length as usize,
        read_from,
        theta: best.theta,
        limited: needed > longest,
    }
}

/// Returns the maximum variance that a lattice of this spacing adds: it splits each round's loss between two
/// neighbouring points.
fn lattice_variance(goal: &Goal, spacing: f64) -> f64 {
    0.25 * goal.rounds * spacing * spacing
}

/// Returns the shortest window for `goal` with this relative error in δ from the window and from the rounding, where
/// the lattice adds the variance `spread`.
fn candidate(groups: &Groups, saddle: f64, goal: &Goal, read_from: f64, slack: f64, spread: f64) -> Candidate {
    let log_slack = slack.ln();
    let untilted = groups.at(0.0);
    // If a law passes a point with mass at most e^m, then for its sum with normal noise of variance v that point lies
    // √(−2mv) further out, and a θ of at most √(−2m/v) proves it.
    let reach = |lambda: f64, at: &Cumulant, sign: f64, log_mass: f64| {
        let (point, theta) = groups.reach(lambda, at, sign, log_mass);
        let size = (-2.0 * log_mass.min(0.0)).sqrt();
        (point + sign * size * spread.sqrt(), theta.min(size / spread.sqrt()))
    };
    let (top, theta_top) = reach(0.0, &untilted, 1.0, goal.log_delta + log_slack);
    [1.0, 0.7, 0.45]
        .iter()
        .filter_map(|share| {
            let tilt = share * saddle;
            let at = groups.at(tilt);
            // This is the tilted sum: δ in units of e^{K − λε}.
            let log_sum = (goal.log_delta + tilt * goal.epsilon - at.value).min(0.0);
            let log_noise = ((goal.rounds + 16.0) * 1e-13).ln();
            if *share < 1.0 && (log_noise > log_sum + log_slack || saddle == 0.0) {
                return None;
            }
            let (above, theta_above) = reach(tilt, &at, 1.0, log_sum + log_slack);
            let (below, theta_below) = reach(tilt, &at, -1.0, log_sum + log_slack);
            let below = below.min(read_from);
            let wrapped = above - read_from;
            let weighed_down = wrapped.max(top - read_from).max((1.0 - goal.log_delta - log_slack) / tilt);
            let held = wrapped.max(top - below);
            let (start, width) = if weighed_down < held { (read_from, weighed_down) } else { (below, held) };
            Some(Candidate { tilt, start, width, theta: [theta_top, theta_above, theta_below] })
        })
        .min_by(|a, b| a.width.total_cmp(&b.width))
        .unwrap_or(Candidate { tilt: saddle, start: 0.0, width: 1.0, theta: [1.0; 3] })
}
