//! Moments of a mechanism's likelihood ratio, by a chain over m independent copies (*replicas*) of a record's participations.
//!
//! Takes a participation law and the columns of a matrix in units of σ; gives upper bounds on `Z_m = E_R f^m`, f = dP/dR = Σ_x w_x
//! e^{⟨Cx,y⟩ − ‖Cx‖²/2}, R = N(0, I). It knows no ε and no δ. [`multisets`] numbers the states, [`overlaps`] has the inner products of
//! columns, [`chain`] a step of the recursion and [`steps`] all of them, which [`rounds`] and [`blocks`] make; [`left_out`] bounds what is
//! missing where few replicas may be busy at once; [`tuples`] and [`block_tuples`] draw replicas that have the law of f^m.
//!
//! **Why a moment is a guarantee.** For x ≥ 0 and an integer m ≥ 2, `(x − e^ε)₊ ≤ c_m e^{−(m−1)ε} x^m` with c_m = (m−1)^{m−1}/m^m: the
//! quotient (x − e^ε)/x^m is largest at x = e^ε m/(m−1), where it is that constant. With x = f and the mean under R,
//!
//! `δ_remove(ε) = E_R (f − e^ε)₊ ≤ W_m(ε) = Z_m c_m e^{−(m−1)ε}`.
//!
//! This is Chernoff's bound on the Rényi divergence of order m (Mironov 2017, arXiv:1702.07476, Proposition 3, with the constant of
//! Canonne, Kamath & Steinke 2020, arXiv:2004.00010, Corollary 13); for balls in bins such moments are computed by a dynamic programme
//! by Schuchardt & Kalinin 2026 (arXiv:2601.21636). Independent mechanisms multiply their f, so their ln Z_m add up.

pub mod block_tuples;
mod blocks;
mod chain;
#[cfg(test)]
pub(crate) mod enumeration;
pub mod left_out;
pub mod multisets;
pub mod overlaps;
mod path;
mod rounds;
mod steps;
mod tables;
pub mod tuples;

use crate::error::{Error, Result};
use crate::participation::renewal::Renewal;
use crate::run::Run;
use crate::special::{log_sum_exp, UNIT_ROUNDOFF};
pub use steps::{LogMoment, GAP};

/// m replicas, and how their participations are followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Replicas {
    /// m.
    pub order: usize,
    /// K where no more than so many may be busy at once, at least 2 and below m, round by round; none where all may.
    pub most_busy: Option<usize>,
    /// The rounds of a block; none where every round is a step of its own.
    pub block: Option<usize>,
}

impl Replicas {
    /// m replicas, round by round.
    #[must_use]
    pub fn exact(order: usize) -> Self {
        Self { order, most_busy: None, block: None }
    }

    /// m replicas, round by round, of which no more than `most_busy` may be busy at once.
    #[must_use]
    pub fn of_few(order: usize, most_busy: usize) -> Self {
        Self { order, most_busy: Some(most_busy), block: None }
    }

    /// m replicas, by blocks of so many rounds.
    #[must_use]
    pub fn of_blocks(order: usize, length: usize) -> Self {
        Self { order, most_busy: None, block: Some(length) }
    }
}

/// Few busy replicas are known of round by round alone.
pub const ONE_OR_OTHER: Error = Error::Numerics { reason: "replicas of which few are busy are drawn round by round" };

/// The number of states of a chain of replicas; none if they cannot be numbered, or the law has no such blocks.
#[must_use]
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

/// The steps that are computed at most, but for the first and the last ones.
#[must_use]
pub fn most_steps(law: &Renewal, replicas: Replicas) -> usize {
    replicas.block.map_or_else(|| rounds::most(law), |length| blocks::most(law, length))
}

/// Bounds on ln E_R f^m for b-min-sep sampling of single records with the banded Toeplitz matrix of these coefficients in units of σ.
///
/// * `gap`: how much of the upper bound may be given up for not computing every step, in nats.
/// * Memory: 16 bytes for each of [`states`]. Time: at most m²/4 operations for each of them and for each of [`most_steps`], and of
///   the last and the first rounds; round by round one operation where nearly all replicas are busy.
/// * Guarantee: bounds, see the heads of [`rounds`], [`blocks`] and [`chain`]. By blocks nothing but 0 is known from below.
/// * The answer does not depend on the number of threads.
///
/// # Errors
/// [`crate::Error::Domain`] for an order below 2, more bands than the separation, negative coefficients, users with several records or
/// random phases, and blocks that the law does not have; as [`Run::check`]; [`crate::Error::Machine`] where the tables do not fit in
/// memory.
pub fn log_moment(law: &Renewal, coefficients: &[f64], replicas: Replicas, gap: f64, run: &Run) -> Result<LogMoment> {
    let steps = match replicas.block {
        Some(_) if replicas.most_busy.is_some() => return Err(ONE_OR_OTHER),
        None => rounds::steps(law, coefficients, replicas.order, replicas.most_busy)?.0,
        Some(length) => blocks::steps(law, coefficients, replicas.order, length)?.0,
    };
    let found = steps.log_moment(gap, run)?;
    let Some(log) = log_left_out(law, coefficients, replicas, run)? else { return Ok(found) };
    let sum = log_sum_exp([found.upper, log].into_iter());
    if sum == f64::INFINITY {
        return Ok(LogMoment { upper: sum, left_out: sum, ..found });
    }
    let upper = sum + 8.0 * UNIT_ROUNDOFF * (1.0 + sum.abs());
    Ok(LogMoment { upper, left_out: libm::log1p(libm::exp(log - found.upper)), ..found })
}

/// An upper bound on ln Z_⊥, the part of Z_m that is left out where not all replicas may be busy at once; none where all may.
///
/// * Memory: 32 bytes for each of [`states`]. Time: about twice that of [`log_moment`] without.
/// * Guarantee: see the head of [`left_out`]. Infinite where there is no bound.
///
/// # Errors
/// As [`log_moment`].
pub fn log_left_out(law: &Renewal, coefficients: &[f64], replicas: Replicas, run: &Run) -> Result<Option<f64>> {
    let found = |most| left_out::log_left_out(law, coefficients, (replicas.order, most), run);
    replicas.most_busy.map(found).transpose()
}
