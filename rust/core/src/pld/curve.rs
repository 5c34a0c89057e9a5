//! δ at many ε of one composition: the curve that samples of other mechanisms are weighted with.
//!
//! A composed law can be read at any ε, and each reading is proven whatever ε the law was composed for. So the laws
//! composed for one ε are used for the values of ε to its right, as long as their bounds are narrow there; the next
//! composition is for the first ε where they are not.

use crate::error::{domain, Error, Result};
use crate::pld::answer::{check_arguments, single, total_variation, Query, Round};
use crate::pld::basic;
use crate::pld::largest::Largest;
use crate::pld::search::observed;
use crate::run::Run;

/// Proven bounds on δ at many ε.
#[derive(Debug, Clone, PartialEq)]
pub struct DeltaCurve {
    /// (lower, upper) for each ε.
    pub points: Vec<(f64, f64)>,
    /// The number of compositions.
    pub compositions: usize,
}

/// The maximum number of compositions, after which the bounds known so far are returned.
const MOST_COMPOSITIONS: usize = 64;
/// Each composition is requested to be narrower than the curve by this factor, so that it can be used for neighbouring
/// ε too; once it cannot, the factor becomes 1.
const SHARPER: f64 = 0.25;
/// Curves of this tolerance or a larger one are for pictures, in which δ spans many orders of magnitude. Rounds are
/// doubled for them only where transforms leave more than the second width.
const PICTURE: f64 = 0.01;
const PICTURED: f64 = 0.06;
/// If a composition stays wider than requested, it is also used for neighbouring ε where it is no wider than this times
/// its width at its own ε: other compositions would hardly be narrower there.
const ATTAINED: f64 = 1.5;
/// If a composition is wider than the first of these, its neighbours always get their own compositions; wider than the second, if
/// little work was left for it, because others would have even less.
const NARROW: [f64; 2] = [0.1, 0.5];
/// If only so much work is left, one composition may take this share of it, and none is made with less than so many cells.
const SHARES: u64 = 4;
const LEAST_SHARE: u64 = 1 << 14;

/// Returns δ(ε) of the composition of `rounds` in one direction at each of `epsilons`, ascending and at least 0.
///
/// * Guarantee: lower ≤ exact ≤ upper at each ε, and both bounds decrease with ε.
/// * Precision: the width is at most `tolerance` times the upper bound, except where that is at most `ignored`, after
///   [`MOST_COMPOSITIONS`], or where the work that the run may take did not suffice ([`Run::coarser`]). Where transforms do not attain it: up to [`PICTURED`] if the tolerance is at least
///   [`PICTURE`], and [`ATTAINED`] times the width that the composition for an ε further left attained there.
///
/// # Errors
/// As [`super::answer`]; [`Error::Domain`] also for ε that do not ascend.
pub fn curve(rounds: &[Round], epsilons: &[f64], tolerance: f64, ignored: f64, run: &Run) -> Result<DeltaCurve> {
    for &epsilon in epsilons {
        check_arguments(rounds, Query::Delta(epsilon), tolerance)?;
    }
    if let Some(pair) = epsilons.windows(2).find(|pair| pair[1] < pair[0]) {
        return domain("epsilon", pair[1], "at least the one before");
    }
    let mut curve = DeltaCurve { points: Vec::with_capacity(epsilons.len()), compositions: 0 };
    if let [only] = rounds {
        if only.count == 1 {
            for &epsilon in epsilons {
                let answer = single(only.profile.as_ref(), Query::Delta(epsilon))?;
                curve.points.push((answer.lower, answer.upper));
            }
            return ordered(curve);
        }
    }
    let (distance, largest) = (total_variation(rounds), Largest::of(rounds));
    let known = |&epsilon: &f64| {
        let (lower, upper) = largest.map_or((0.0, 1.0), |largest| largest.delta(epsilon));
        (lower, upper.min(distance))
    };
    curve.points = epsilons.iter().map(known).collect();
    let width = |(lower, upper): (f64, f64)| (upper - lower) / upper.max(f64::MIN_POSITIVE);
    let enough = if tolerance >= PICTURE { tolerance.max(PICTURED) } else { tolerance };
    let served = |point: (f64, f64)| width(point) <= tolerance || point.1 <= ignored;
    let (mut ordinary, mut sharper) = (None, SHARPER);
    let mut next = curve.points.iter().position(|point| !served(*point)).unwrap_or(epsilons.len());
    while next < epsilons.len() && curve.compositions < MOST_COMPOSITIONS {
        run.check()?;
        let share = run.left().map(|left| left / SHARES);
        if share.is_some_and(|share| share < LEAST_SHARE) {
            run.record_coarser();
            break;
        }
        let part = run.counted(share);
        let points = &mut curve.points;
        let answer =
            observed(rounds, epsilons[next], sharper * tolerance, enough, &part, &mut ordinary, &mut |bounds| {
                for (point, &epsilon) in points[next..].iter_mut().zip(&epsilons[next..]) {
                    let (lower, upper) = bounds(epsilon);
                    *point = (point.0.max(lower), point.1.min(upper));
                }
            });
        let answer = match answer {
            Err(Error::Unresolved { .. }) => basic::ends(rounds, Query::Delta(epsilons[next]))?,
            answer => answer?,
        };
        curve.compositions += 1;
        run.count(part.cells());
        let point = &mut curve.points[next];
        *point = (point.0.max(answer.lower), point.1.min(answer.upper));
        // This ε is done whatever the width is: another composition for it would give the same result.
        let attained = width(*point);
        let coarser = part.coarser() && attained > enough;
        if coarser {
            run.record_coarser();
        }
        let served =
            if attained <= NARROW[usize::from(coarser)] { tolerance.max(ATTAINED * attained) } else { tolerance };
        let own = next;
        next += 1;
        while next < epsilons.len() && (width(curve.points[next]) <= served || curve.points[next].1 <= ignored) {
            next += 1;
        }
        if next == own + 1 {
            // Further right δ falls faster, and neighbours are even less alike.
            sharper = 1.0;
        }
    }
    ordered(curve)
}

/// Uses that δ decreases with ε: an upper bound also holds further right, a lower bound further left.
fn ordered(mut found: DeltaCurve) -> Result<DeltaCurve> {
    let mut most = 1.0_f64;
    for point in &mut found.points {
        most = most.min(point.1);
        point.1 = most;
    }
    let mut least = 0.0_f64;
    for point in found.points.iter_mut().rev() {
        least = least.max(point.0);
        point.0 = least;
    }
    // Bounds that cross show a defect in one of them, which must not be hidden.
    if found.points.iter().any(|(lower, upper)| lower > upper) {
        return Err(Error::Numerics { reason: "the lower curve came out above the upper one" });
    }
    Ok(found)
}
