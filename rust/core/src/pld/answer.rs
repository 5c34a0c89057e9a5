//! The question and its answer: ε(δ) or δ(ε) of a composition, as an interval; and the answers that need no
//! composition.

use crate::error::{domain, Error, Result};
use crate::pair::check::Checked;
use crate::pair::Profile;
use crate::special::{real, UNIT_ROUNDOFF};

/// Rounds of one kind, in one direction.
#[derive(Debug, Clone)]
pub struct Round {
    /// The profile of one round.
    pub profile: Checked,
    /// The number of such rounds.
    pub count: u64,
}

/// The question about the composition.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Query {
    /// The δ at this ε ≥ 0.
    Delta(f64),
    /// The smallest ε ≥ 0 at this δ in (0, 1).
    Epsilon(f64),
}

/// How much each source of error may contribute to the upper bound, in units of δ at the ε reported.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Budget {
    /// Loss above the last lattice point of a round, which is counted as infinite loss in each round.
    pub truncation: f64,
    /// Losses that sum to ε without a single large loss, where this was counted separately.
    pub other_losses: f64,
    /// Composed loss above the transform's window.
    pub window: f64,
    /// Tilted mass that wrapped around the window.
    pub aliasing: f64,
    /// Rounding of the transforms and of the powers between them.
    pub transform_rounding: f64,
    /// Rounding of the masses, of the tilting and of the scale.
    pub mass_rounding: f64,
    /// How much the cells of laws that were composed without a lattice spread, and how much the rounds' meshes add: at
    /// most the distance of the law from above to the one from below. 0 if a lattice was used.
    pub cells: f64,
    /// The largest relative error of an evaluated profile value δ, over the nodes where it is above 1e-290. It is
    /// already included in the discretised profiles.
    pub profile_relative_error: f64,
}

/// A proven interval for the answer, and how it was computed.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Answer {
    /// A lower bound on the true answer.
    pub lower: f64,
    /// An upper bound on the true answer.
    pub upper: f64,
    /// Whether the interval is as narrow as requested.
    pub within_tolerance: bool,
    /// The error sources, line by line.
    pub budget: Budget,
    /// The lattice spacing in nats; 0 if no lattice was needed.
    pub spacing: f64,
    /// The number of profile evaluations.
    pub nodes: usize,
    /// The transform length; 0 if none was needed.
    pub transform_length: usize,
    /// The tilt λ.
    pub tilt: f64,
}

impl Answer {
    /// Returns the intersection with a later answer: both intervals are proven.
    ///
    /// # Errors
    /// [`Error::Numerics`] if they do not intersect, which shows a defect in a bound and must not be hidden.
    pub(super) fn and(self, found: Self) -> Result<Self> {
        let (lower, upper) = (found.lower.max(self.lower), found.upper.min(self.upper));
        if lower > upper {
            return Err(Error::Numerics { reason: "two proven intervals for one answer do not meet" });
        }
        Ok(Self { lower, upper, budget: if found.upper <= self.upper { found.budget } else { self.budget }, ..found })
    }
}

/// The smallest composed δ that is resolved.
pub(super) const SMALLEST_DELTA: f64 = 1e-290;

/// Returns an upper bound on δ(0) of the composition, 1 − Π(1 − δ_i(0))^{n_i}: outcomes of all rounds can be coupled to
/// agree with the probability that each of them can (Lindvall 2002, Theorem I.5.2). δ(ε) is at most this for every ε
/// ≥ 0.
pub(super) fn total_variation(rounds: &[Round]) -> f64 {
    // counts are at most 1e18; relative error 2^-53
    let log_agreement: f64 = rounds
        .iter()
        .map(|round| {
            let point = round.profile.at(0.0).or_trivial(0.0);
            real(round.count) * (-(point.delta + point.delta_error).min(1.0)).ln_1p()
        })
        .sum();
    (-log_agreement.exp_m1() * (1.0 + 1e-12)).min(1.0)
}

pub(super) fn check_arguments(rounds: &[Round], query: Query, tolerance: f64) -> Result<()> {
    if rounds.is_empty() || rounds.iter().any(|r| r.count == 0) {
        return domain("count", 0.0, "at least one round of each kind");
    }
    if !(tolerance > 0.0 && tolerance < 1.0) {
        return domain("tolerance", tolerance, "greater than 0 and less than 1");
    }
    match query {
        Query::Delta(epsilon) if !(epsilon >= 0.0 && epsilon.is_finite()) => {
            domain("epsilon", epsilon, "at least 0 and finite")
        }
        Query::Epsilon(delta) if !(1e-280..1.0).contains(&delta) => {
            domain("delta", delta, "at least 1e-280 and less than 1")
        }
        _ => Ok(()),
    }
}

/// Returns an upper bound on δ(ε) of a profile.
pub(super) fn at_most(profile: &dyn Profile, epsilon: f64) -> f64 {
    let point = profile.at(epsilon).or_trivial(epsilon);
    (point.delta + point.delta_error).min(1.0)
}

/// Returns a lower bound on δ(ε) of a profile.
pub(super) fn at_least(profile: &dyn Profile, epsilon: f64) -> f64 {
    let point = profile.at(epsilon).or_trivial(epsilon);
    // Rounding may give a law from above slightly more mass than 1.
    (point.delta - point.delta_error).clamp(0.0, 1.0)
}

/// Answers a question about one round, which needs no discretisation: its profile is read directly. The caller decides
/// whether the answer is narrow enough.
pub(super) fn single(profile: &dyn Profile, query: Query) -> Result<Answer> {
    let (lower, upper) = (|epsilon: f64| at_least(profile, epsilon), |epsilon: f64| at_most(profile, epsilon));
    let (low, high) = match query {
        Query::Delta(epsilon) => (lower(epsilon), upper(epsilon)),
        Query::Epsilon(delta) => (sign_change(|e| lower(e) > delta).0, sign_change(|e| upper(e) > delta).1),
    };
    let point = match query {
        Query::Delta(epsilon) => profile.at(epsilon),
        Query::Epsilon(_) => profile.at(high),
    };
    if low > high {
        return Err(Error::Numerics { reason: "the bounds of a single round cross; this is a defect" });
    }
    Ok(Answer {
        lower: low,
        upper: high,
        within_tolerance: false,
        budget: Budget {
            profile_relative_error: point.delta_error / point.delta.max(SMALLEST_DELTA),
            ..Budget::default()
        },
        spacing: 0.0,
        nodes: 1,
        transform_length: 0,
        tilt: 0.0,
    })
}

/// Returns neighbouring ε ≥ 0 between which `above` turns from true to false; (0, 0) if it is false at 0.
pub(super) fn sign_change(above: impl Fn(f64) -> bool) -> (f64, f64) {
    if !above(0.0) {
        return (0.0, 0.0);
    }
    let (mut low, mut high) = (0.0, 1e-3);
    while above(high) {
        low = high;
        high *= 2.0;
        if high > 1e300 {
            return (low, f64::INFINITY);
        }
    }
    while high - low > 4.0 * UNIT_ROUNDOFF * high && high > 1e-300 {
        let middle = 0.5 * (low + high);
        if middle <= low || middle >= high {
            break;
        }
        if above(middle) {
            low = middle;
        } else {
            high = middle;
        }
    }
    (low, high)
}
