//! How one record takes part over the rounds, as a law on participation patterns.
//!
//! This room takes the parameters of a sampler and returns the sums over all patterns that bounds need. It draws no
//! samples, and all it knows of a matrix is the squared norm that a participation adds.
//!
//! One file each: [`renewal`] (b-min-sep sampling, cold or warm), [`bins`] (balls in bins); [`counts`] has the laws of
//! sums over a pattern, [`separated`] the largest sums over rounds with a minimum separation, [`worst`] the rounds in
//! which a record changes a run most.

use crate::special::{real, Approximation, UNIT_ROUNDOFF};

pub mod bins;
pub mod counts;
pub mod renewal;
pub mod separated;
pub mod worst;

/// Computes ln of the sum over patterns of
/// `Π weight^power · proposal^(1 − power) · Π_{participations i} e^{exponent·s_i}`, s_i the squared norm (in units of
/// σ²) that participation i adds.
///
/// Bounds on likelihood ratios by Hölder's inequality need these sums; see [`crate::montecarlo::proposals::weight_bounds`].
pub trait PatternSum {
    /// Returns the sum for a proposal of the same family, and a bound on its error; it allows for an error of the
    /// squared norms of [`square_error`] times the largest.
    fn log_sum(&self, proposal: &Self, power: f64, exponent: f64) -> Approximation;
}

/// Returns the relative error of squared norms that are sums over the rounds, each term rounded a few times.
pub fn square_error(rounds: usize) -> f64 {
    let rounds = real(rounds);
    16.0 * (rounds + 1.0) * UNIT_ROUNDOFF
}

/// Returns power·own + (1 − power)·other, the logarithm of a blended weight: −∞ for a pattern that the law itself
/// cannot have.
///
/// The error: each logarithm may have an error of 4u of its size, the power of 4u, 1 − power as much and a rounding
/// more, and the sum adds three roundings.
pub(crate) fn blend(power: f64, own: f64, other: f64) -> Approximation {
    if own == f64::NEG_INFINITY {
        return Approximation { value: own, error: 0.0 };
    }
    #[allow(clippy::float_cmp)] // given as that very number
    if power == 1.0 {
        return Approximation { value: own, error: 4.0 * UNIT_ROUNDOFF * own.abs() };
    }
    let value = power * own + (1.0 - power) * other;
    // For a pattern that the proposal leaves out, the weight is exactly 0 or infinite.
    let size = if value.is_finite() { (power.abs() + (1.0 - power).abs()) * (own.abs() + other.abs()) } else { 0.0 };
    Approximation { value, error: 16.0 * UNIT_ROUNDOFF * size }
}

/// Returns a bound on the error of the logarithm of a sum of this many exponentials, given its terms.
///
/// A term's distance d ≤ 0 to the largest is rounded by u|d|, which moves e^d by at most u/e; e^d, their sum and its
/// logarithm add 2u, (terms − 1)u and 2u of their size, and the largest is added with a rounding: at most u(4·terms +
/// 4 + |result|).
pub(crate) fn log_sum_error(terms: usize, result: f64) -> f64 {
    let terms = real(terms);
    UNIT_ROUNDOFF * (4.0 * terms + 4.0 + result.abs())
}
