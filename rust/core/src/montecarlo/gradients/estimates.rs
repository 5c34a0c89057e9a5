//! Estimates of δ and its derivatives from shards: what those of rounds and of bins have in common.

use crate::special::real;
use rayon::prelude::*;

use crate::error::Result;
use crate::montecarlo::mechanism::Mechanism;
use crate::montecarlo::proposals::components::Component;
use crate::montecarlo::stream::StreamKey;
use crate::montecarlo::weight_bounds::Direction;
use crate::vector::functions::exp;
use crate::vector::{splat, Lanes, Vector, LANES};

/// A gradient to be estimated.
#[derive(Debug, Clone)]
pub struct GradientJob {
    /// The mechanism whose δ is estimated: of rounds without overlaps, or of bins.
    pub mechanism: Mechanism,
    /// The mechanism whose proposals the samples come from: the same, or one with another matrix on as many rounds
    /// (bins).
    pub origin: Mechanism,
    /// The direction of the hockey stick: remove or add.
    pub direction: Direction,
    /// The proposals with their shares; see [`crate::montecarlo::proposals::components`].
    pub components: Vec<(Component, u32)>,
    /// The ε at which δ is estimated.
    pub epsilon: f64,
    /// The coordinates of the streams.
    pub key: StreamKey,
}

/// An estimate and its standard error.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    /// The estimate.
    pub value: f64,
    /// Its standard error, from the spread of the samples.
    pub standard_error: f64,
}

/// Estimates of δ(ε) and its derivatives.
#[derive(Debug, Clone, PartialEq)]
pub struct GradientEstimate {
    /// The number of samples that were drawn.
    pub samples: u64,
    /// δ(ε).
    pub delta: Estimate,
    /// σ·∂δ/∂σ.
    pub log_noise: Estimate,
    /// ∂δ/∂ĉ_j; of bins ∂δ/∂Γ_st, row by row.
    pub derivatives: Vec<Estimate>,
    /// The covariance of each of these estimates with that of σ·∂δ/∂σ.
    pub covariances: Vec<f64>,
    /// (Σ V)²/Σ V²: the number of equally weighted samples that would estimate δ equally well (Kish).
    pub effective_samples: f64,
}

/// Runs shards in parallel and takes their results in the order of their indices; only a few are kept at a time.
pub(super) fn in_order<T: Send, B: Default + Send>(
    first: u64,
    count: u64,
    shard: impl Fn(u64, &mut B) -> Result<T> + Sync,
    mut take: impl FnMut(T),
) -> Result<()> {
    let batch = 4 * rayon::current_num_threads();
    let indices: Vec<u64> = (first..first + count).collect();
    for some in indices.chunks(batch) {
        let results: Vec<Result<T>> = some.par_iter().map_init(B::default, |buffers, &i| shard(i, buffers)).collect();
        for one in results {
            take(one?);
        }
    }
    Ok(())
}

/// Returns V of eight samples, and the factor of ∂ ln f in ∂V for a fixed g; `None` if V is 0 for all samples.
///
/// `own` is ln f, `worth` the numerator's density relative to the samples': f/g (1/g where the record is added).
#[inline(always)]
pub(super) fn value<V: Vector>(job: &GradientJob, own: V, worth: V) -> Option<(Lanes, Lanes)> {
    let (epsilon, one, zero) = (V::splat(job.epsilon), V::splat(1.0), V::splat(0.0));
    let (part, slope) = if job.direction == Direction::Add {
        let held = exp(epsilon.add(own));
        (one.sub(held), zero.sub(worth.mul(held)))
    } else {
        (one.sub(exp(epsilon.sub(own))), worth)
    };
    let (mut values, mut slopes, mut parts) = (splat(0.0), splat(0.0), splat(0.0));
    worth.mul(part.max(zero)).store(&mut values);
    slope.store(&mut slopes);
    part.store(&mut parts);
    for lane in 0..LANES {
        if parts[lane] <= 0.0 {
            slopes[lane] = 0.0;
        }
    }
    parts.0.iter().any(|part| *part > 0.0).then_some((values, slopes))
}

/// Sums over the samples of one component.
#[derive(Debug, Clone, Default)]
pub(super) struct Moments {
    pub drawn: u64,
    /// Σ V and Σ V².
    pub value: [f64; 2],
    /// Σ N and Σ N², N = σ·∂V/∂σ.
    pub log_noise: [f64; 2],
    /// For each j with G = ∂V/∂ĉ_j: Σ G, Σ G², Σ G·N.
    pub coefficients: Vec<[f64; 3]>,
}

/// Returns the sum of a product over the lanes.
pub(super) fn sum(one: &Lanes, other: &Lanes) -> f64 {
    one.0.iter().zip(&other.0).map(|(a, b)| a * b).sum()
}

impl Moments {
    /// Adds eight samples' V and N.
    pub(super) fn add(&mut self, value: &Lanes, log_noise: &Lanes) {
        let all = splat(1.0);
        for (to, one) in [(&mut self.value, value), (&mut self.log_noise, log_noise)] {
            to[0] += sum(one, &all);
            to[1] += sum(one, one);
        }
    }
}

/// Adds the moments of another shard.
pub(super) fn merge(components: &mut [Moments], shard: &[Moments]) {
    fn add<const K: usize>(to: &mut [f64; K], more: &[f64; K]) {
        to.iter_mut().zip(more).for_each(|(to, more)| *to += more);
    }
    for (one, other) in components.iter_mut().zip(shard) {
        one.drawn += other.drawn;
        add(&mut one.value, &other.value);
        add(&mut one.log_noise, &other.log_noise);
        one.coefficients.iter_mut().zip(&other.coefficients).for_each(|(to, more)| add(to, more));
    }
}

/// Returns n/(n − 1) times Σ (a − ā)(b − b̄) of n pairs, from their sums: n times their covariance.
pub(super) fn spread(n: u64, one: f64, other: f64, product: f64) -> f64 {
    let n = real(n);
    if n > 1.0 {
        (product - one * other / n) * n / (n - 1.0)
    } else {
        f64::INFINITY
    }
}

/// Returns δ and σ·∂δ/∂σ, without derivatives: means over all samples, with fixed shares of each component, so that the
/// variance of a mean is Σ_k n_k var_k/n².
pub(super) fn estimate(components: &[Moments]) -> GradientEstimate {
    let samples: u64 = components.iter().map(|one| one.drawn).sum();
    let all = real(samples);
    let of = |sums: &dyn Fn(&Moments) -> [f64; 2]| stratified(components, all, sums);
    let [value, square] = components.iter().fold([0.0; 2], |sum, one| [sum[0] + one.value[0], sum[1] + one.value[1]]);
    GradientEstimate {
        samples,
        delta: of(&|one| one.value),
        log_noise: of(&|one| one.log_noise),
        derivatives: Vec::new(),
        covariances: Vec::new(),
        effective_samples: if square > 0.0 { value * value / square } else { 0.0 },
    }
}

/// Returns the mean over all samples, and its standard error, from the sums of each component.
pub(super) fn stratified(components: &[Moments], all: f64, sums: &dyn Fn(&Moments) -> [f64; 2]) -> Estimate {
    let (mut total, mut variance) = (0.0, 0.0);
    for one in components {
        let [sum, square] = sums(one);
        total += sum;
        variance += spread(one.drawn, sum, sum, square);
    }
    Estimate { value: total / all, standard_error: variance.max(0.0).sqrt() / all }
}
