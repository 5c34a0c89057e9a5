//! Moments of b-min-sep sampling of records, by chains over the ages of replicas: round by round, by blocks, or with
//! few busy replicas.

use crate::error::Result;
use crate::participation::renewal::Renewal;
use crate::replicas::{blocks, left_out, multisets, rounds, LogMoment, Replicas, ONE_OR_OTHER};
use crate::run::Run;
use crate::special::{log_sum_exp, UNIT_ROUNDOFF};

/// Returns the number of states of a chain of replicas; `None` if they cannot be numbered, or the law has no such
/// blocks.
pub fn states(law: &Renewal, replicas: Replicas) -> Option<usize> {
    let kinds = match replicas.block {
        None => law.min_separation,
        Some(_) if replicas.most_busy.is_some() => return None,
        Some(length) if blocks::possible(law, length) => blocks::kinds(law, length),
        Some(_) => return None,
    };
    match replicas.most_busy {
        Some(most) if (2..replicas.order).contains(&most) => multisets::number_of(kinds, most),
        Some(_) => None,
        None => multisets::number_of(kinds, replicas.order),
    }
}

/// Returns the maximum number of steps that are computed, apart from the first and the last ones.
pub fn most_steps(law: &Renewal, replicas: Replicas) -> usize {
    replicas.block.map_or_else(|| rounds::most(law), |length| blocks::most(law, length))
}

/// Returns bounds on ln E_R f^m for b-min-sep sampling of single records with the banded Toeplitz matrix of these
/// coefficients in units of σ.
///
/// * `gap`: how much of the upper bound may be given up by not computing every step, in nats.
/// * Memory: 16 bytes for each of [`states`]. Time: at most m²/4 operations for each of them and for each of
///   [`most_steps`], and of the last and the first rounds; round by round one operation where nearly all replicas are
///   busy.
/// * Guarantee: bounds, see the heads of [`super::rounds`], [`super::blocks`] and [`super::chain`]. By blocks the lower
///   bound is only 0.
/// * The result does not depend on the number of threads.
///
/// # Errors
/// [`crate::Error::Domain`] for an order below 2, more bands than the separation, negative coefficients, users with
/// several records or random phases, and blocks that the law does not have; [`crate::Error::Machine`] where the tables
/// do not fit in memory; the errors of [`Run::check`].
pub fn log_moment(law: &Renewal, coefficients: &[f64], replicas: Replicas, gap: f64, run: &Run) -> Result<LogMoment> {
    let steps = match replicas.block {
        Some(_) if replicas.most_busy.is_some() => return Err(ONE_OR_OTHER),
        None => rounds::steps(law, coefficients, replicas.order, replicas.most_busy)?.0,
        Some(length) => blocks::steps(law, coefficients, replicas.order, length)?.0,
    };
    let moment = steps.log_moment(gap, run)?;
    let Some(log) = log_left_out(law, coefficients, replicas, run)? else { return Ok(moment) };
    let sum = log_sum_exp([moment.upper, log].into_iter());
    if sum == f64::INFINITY {
        return Ok(LogMoment { upper: sum, left_out: sum, ..moment });
    }
    let upper = sum + 8.0 * UNIT_ROUNDOFF * (1.0 + sum.abs());
    Ok(LogMoment { upper, left_out: libm::log1p(libm::exp(log - moment.upper)), ..moment })
}

/// Returns an upper bound on ln Z_⊥, the part of Z_m that is left out where not all replicas may be busy at once;
/// `None` if all may.
///
/// * Memory: 32 bytes for each of [`states`]. Time: about twice that of [`log_moment`] without it.
/// * Guarantee: see the head of [`super::left_out`]. Infinite if there is no bound.
///
/// # Errors
/// As [`log_moment`].
pub fn log_left_out(law: &Renewal, coefficients: &[f64], replicas: Replicas, run: &Run) -> Result<Option<f64>> {
    let bound = |most| left_out::log_left_out(law, coefficients, (replicas.order, most), run);
    replicas.most_busy.map(bound).transpose()
}
