//! Several mechanisms with the proposals that their samples come from, run in parallel.
//!
//! Several mechanisms are sampled one after the other from the same stream, so their draws are independent, and their
//! log densities add: f = Πf_k, g = Πg_k, f⁻ = Πf⁻_k.

use std::sync::Arc;

use crate::error::Result;
use crate::montecarlo::mechanism::Samples;
use crate::montecarlo::value::Curve;
use crate::montecarlo::weight_bounds::{weight_bounds, Direction, HolderSums, WeightBounds};
use crate::run::Run;
use crate::special::UNIT_ROUNDOFF;

/// One of the mechanisms that are sampled together, with its proposal and its number of runs.
#[derive(Debug, Clone)]
pub struct Part {
    /// The mechanism and its proposal; all parts have the same mean scale.
    pub proposed: Arc<dyn Samples>,
    /// The number of independent runs.
    pub runs: u32,
}

/// Returns bounds on the contribution of one sample of all parts at this ε; see [`crate::montecarlo::weight_bounds`].
///
/// Those of a replaced record with a floor a are the bounds for a removed one at a (see
/// [`crate::montecarlo::proposals::replicated`]): the factor is at most sup ρ·e^{−(m−1)a}.
pub fn weight_bounds_of(parts: &[Part], direction: Direction, epsilon: f64, curve: Option<&Curve>) -> WeightBounds {
    let Some(first) = parts.first() else { return WeightBounds::NONE };
    let sums = parts.iter().map(|part| (part.proposed.sums(direction), part.runs));
    weight_bounds(HolderSums::together(sums), first.proposed.mean_scale(), direction, epsilon, curve)
}

/// Returns an upper bound on how far E V is below δ(ε) apart from rounding: the part that samples of a power leave out
/// where few replicas may be busy at once.
///
/// With W_1·Z_⊥ for each of several parts, the missing part is the product of all Z_T + Z_⊥ minus that of all Z_T; it
/// grows with Z_T, which the bounds on ρ bound.
///
/// # Errors
/// As [`Samples::left_out`].
pub fn left_out_of(parts: &[Part], limits: WeightBounds, run: &Run) -> Result<f64> {
    let mut logs = 0.0;
    for part in parts {
        logs += f64::from(part.runs) * libm::log1p(part.proposed.left_out(run)?);
    }
    // Each logarithm, product and sum is rounded by u of its size, and all are positive.
    Ok(if logs > 0.0 { limits.value * libm::expm1(logs * (1.0 + 1e-12)) * (1.0 + 1e-12) } else { 0.0 })
}

/// Returns a bound on the error of each log density of all parts from rounding: each part's own, and one u of each
/// partial sum.
pub fn rounding_of(parts: &[Part]) -> f64 {
    let runs: f64 = parts.iter().map(|part| f64::from(part.runs)).sum();
    let each = |part: &Part| {
        let (mechanism, mean_scale) = (part.proposed.mechanism(), part.proposed.mean_scale());
        let sums = if runs > 1.0 { 2.0 * UNIT_ROUNDOFF * runs * mechanism.magnitude(mean_scale) } else { 0.0 };
        f64::from(part.runs) * (part.proposed.rounding() + sums)
    };
    parts.iter().map(each).sum()
}

/// Returns a bound on what a floor adds to the error of the proposal's log density: two roundings of (m − 1)(a − ln f)₊.
pub fn floored_rounding_of(parts: &[Part], floor: f64) -> f64 {
    let size = |part: &Part| f64::from(part.runs) * part.proposed.mechanism().magnitude(part.proposed.mean_scale());
    let excess = parts.first().map_or(0.0, |part| part.proposed.mean_scale() - 1.0);
    4.0 * UNIT_ROUNDOFF * excess * (floor.abs() + parts.iter().map(size).sum::<f64>())
}

/// Returns a bound on |E V − δ(ε)| due to the finite generator of normal numbers and participation patterns.
///
/// * Normal numbers: V changes by at most (2 + |κ|)·factor·Λ_i for a unit change of noise coordinate i, Λ = Σ Λ_i the
///   Lipschitz bound of the mechanism, and each of the generator's numbers is within
///   [`crate::montecarlo::stream::NORMAL_ERROR`] of an exact one on average (and the mean added to it within
///   `Family::coordinate_error`). With truncated batches V = (f − e^ε h)/g changes by at most factor times the sum
///   of the slopes of f, of h and of g, in which columns count 2, 1 and 2|κ| + 1 times: (4 + 2|κ|), and Λ there is
///   twice that of the columns.
/// * Patterns: each waiting time is ⌊ln u/ln(1 − p)⌋ in floating point. The distribution functions differ at each of at
///   most n values by 2⁻⁵² (the grid of u) and by 8u·|u ln u|, which sums to 8u/p; a sample has a start and at most 1 +
///   ⌈n/b⌉ draws (and as many of how many of k records take part, each wrong by at most (k + 2)·2⁻⁵²), and differing
///   patterns change V by at most its bound. A bin is drawn with an error of at most 2⁻⁵² + T u for each of T bins.
/// * Sizes of truncated batches: their laws' total variation, and 2⁻⁵² for each decision whether the record survives.
pub fn generator_error_of(parts: &[Part], limits: WeightBounds) -> f64 {
    parts
        .iter()
        .map(|part| {
            let (lipschitz, coordinate, patterns) = part.proposed.generator();
            let normal = (2.0 + part.proposed.mean_scale().abs()) * limits.factor * lipschitz * coordinate;
            f64::from(part.runs) * (normal + 2.0 * limits.value * patterns)
        })
        .sum()
}
