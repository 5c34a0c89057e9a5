//! The derivatives of δ in the matrix and in σ, estimated from the samples that estimate δ.
//!
//! In units of σ (ĉ = c/σ, ŷ ~ N(0, I) under R) let f = dP/dR, and let samples come from a fixed law M, with dM/dR = g.
//! Then
//!
//! `δ_remove = E_M[(f − e^ε)_+/g]`, `δ_add = E_M[(1 − e^ε f)_+/g]`,
//!
//! and ĉ is in f alone. (f − e^ε)_+ is Lipschitz in ĉ with a constant that is integrable, since f is a finite mixture
//! of exponentials, and it has a derivative wherever f ≠ e^ε, which is almost everywhere, since f is analytic in ŷ and
//! not constant. So by dominated convergence
//!
//! `∂δ_remove/∂ĉ_j = E_M[1{f > e^ε}·(f/g)·∂ln f/∂ĉ_j]`, `∂δ_add/∂ĉ_j = −E_M[1{e^ε f < 1}·(e^ε f/g)·∂ln f/∂ĉ_j]`:
//!
//! the boundary contributes nothing because the integrand vanishes there. With u_i = ⟨ĉ_i, ŷ⟩, s_i = ‖ĉ_i‖² and x the
//! record's participations, ln f = ln Σ_x w_x e^{Σ_i (x_i u_i − x_i² s_i/2)}, hence
//!
//! `∂ln f/∂ĉ_j = Σ_i (E[x_i | ŷ]·ŷ_{i+j} − E[x_i² | ŷ]·ĉ_j·1{i + j ≤ n})`
//!
//! with the posterior means of [`super::posterior`]. ĉ is c/σ, so σ·∂δ/∂σ = −Σ_j ĉ_j ∂δ/∂ĉ_j.
//!
//! **Samples that stay where they are.** The law M belongs to a matrix C₀ that need not be the C of f: samples ŷ and
//! their g are functions of C₀, the proposals and the stream alone. For fixed samples the estimate of δ is then a
//! continuous function of ĉ, differentiable wherever no sample lies on the boundary, and this module returns its exact
//! derivative. If the samples moved with C instead (ŷ = κĈx + z), g would have to be differentiated too, and its
//! patterns are drawn by a law that changes with C: a pattern would jump, or its frozen law would need a recursion and
//! a posterior for each proposal. The price is that weights f/g spread as C leaves C₀:
//! [`GradientEstimate::effective_samples`] is the number of samples that the estimate of δ is equivalent to.
//!
//! For bins this is different: all that their samples need of the matrix is the Gram matrix of the modes, and there the
//! samples do move with it; see [`super::bins_gradient`].
//!
//! None of these numbers is a bound: they are estimates with standard errors, for the search for a matrix. The matrix
//! that is found is certified with other samples.
//!
//! Source: likelihood-ratio (score function) derivatives are textbook (Glynn 1990; Asmussen & Glynn 2007, Section
//! VII.3).

use std::sync::Arc;

use rayon::prelude::*;

use crate::montecarlo::gradients::bins_gradient;

use crate::error::{Error, Result};
use crate::montecarlo::gradients::posterior::Posterior;
use crate::montecarlo::kernels::correlate::AdjointWorkspace;
use crate::montecarlo::kernels::renewal::{RenewalKernel, RenewalScratch};
use crate::montecarlo::mechanism::Mechanism;
use crate::montecarlo::proposals::components::{Component, Mixture, Prepared, Worker};
use crate::montecarlo::proposals::weight_bounds::Direction;
use crate::montecarlo::stream::{Stream, StreamKey};
use crate::run::Run;
use crate::vector::functions::exp;
use crate::vector::{splat, with_vectors, Lanes, Vector, Vectored, LANES};

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

/// Runs shards `first`, …, `first + count − 1`, on the pool of the caller; sums are added in the order of the shards.
///
/// # Errors
/// As [`Mixture::prepared`]; [`Error::Domain`] for an ε that is not finite, no shards, or mechanisms with different
/// numbers of rounds or bins; [`Error::Numerics`] for replaced records and mechanisms that have no gradient;
/// [`Error::Cancelled`]; [`Error::TimeLimit`].
pub fn simulate_gradient(job: &GradientJob, first: u64, count: u64, run: &Run) -> Result<GradientEstimate> {
    if !job.epsilon.is_finite() {
        return Err(Error::Domain { name: "epsilon", value: job.epsilon, allowed: "finite" });
    }
    if job.direction == Direction::Replace {
        return Err(Error::Numerics { reason: "gradients are of the directions remove and add" });
    }
    if count == 0 {
        return Err(Error::Domain { name: "shards", value: 0.0, allowed: "at least 1" });
    }
    let (own, other) = (job.mechanism.outcome_length(), job.origin.outcome_length());
    if own != other {
        #[allow(clippy::cast_precision_loss)] // reported only
        let value = other as f64;
        return Err(Error::Domain { name: "rounds (bins) of the samples", value, allowed: "those of the mechanism" });
    }
    // This is used also for bins, whose components have the same form.
    let mixture =
        Mixture { parts: vec![(job.origin.clone(), 1)], direction: job.direction, components: job.components.clone() };
    let parts = mixture.prepared()?;
    match (&job.mechanism, &job.origin) {
        (Mechanism::Renewal(kernel), Mechanism::Renewal(origin)) => {
            let at_origin = Arc::ptr_eq(kernel, origin) || kernel.same(origin);
            let rounds = Rounds { job, kernel, at_origin, mixture: &mixture, parts: &parts };
            let mut total = rounds.empty();
            in_order(
                first,
                count,
                |index, buffers| with_vectors(Shard { rounds, index, buffers, run }),
                |shard| {
                    merge(&mut total, &shard);
                },
            )?;
            Ok(rounds.estimate(&total))
        }
        (Mechanism::Bins(kernel), Mechanism::Bins(origin)) => {
            bins_gradient::simulate(job, (kernel, origin), first, count, run)
        }
        _ => Err(Error::Numerics { reason: "gradients are of b-min-sep sampling with banded matrices, and of bins" }),
    }
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
    value: [f64; 2],
    /// Σ N and Σ N², N = σ·∂V/∂σ.
    log_noise: [f64; 2],
    /// For each j with G = ∂V/∂ĉ_j: Σ G, Σ G², Σ G·N.
    coefficients: Vec<[f64; 3]>,
}

/// Returns the sum of a product over the lanes.
fn sum(one: &Lanes, other: &Lanes) -> f64 {
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
#[allow(clippy::cast_precision_loss)] // far below 2^53
pub(super) fn spread(n: u64, one: f64, other: f64, product: f64) -> f64 {
    let n = n as f64;
    if n > 1.0 {
        (product - one * other / n) * n / (n - 1.0)
    } else {
        f64::INFINITY
    }
}

/// Returns δ and σ·∂δ/∂σ, without derivatives: means over all samples, with fixed shares of each component, so that the
/// variance of a mean is Σ_k n_k var_k/n².
#[allow(clippy::cast_precision_loss)] // far below 2^53
pub(super) fn estimate(components: &[Moments]) -> GradientEstimate {
    let samples: u64 = components.iter().map(|one| one.drawn).sum();
    let all = samples as f64;
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

fn stratified(components: &[Moments], all: f64, sums: &dyn Fn(&Moments) -> [f64; 2]) -> Estimate {
    let (mut total, mut variance) = (0.0, 0.0);
    for one in components {
        let [sum, square] = sums(one);
        total += sum;
        variance += spread(one.drawn, sum, sum, square);
    }
    Estimate { value: total / all, standard_error: variance.max(0.0).sqrt() / all }
}

/// A job of rounds, as its shards use it.
#[derive(Clone, Copy)]
struct Rounds<'a> {
    job: &'a GradientJob,
    kernel: &'a RenewalKernel,
    /// Whether samples come from the mechanism's own proposals.
    at_origin: bool,
    mixture: &'a Mixture,
    parts: &'a [(Prepared<'a>, u32)],
}

impl Rounds<'_> {
    fn empty(&self) -> Vec<Moments> {
        let none = Moments { coefficients: vec![[0.0; 3]; self.kernel.coefficients.len()], ..Moments::default() };
        vec![none; self.job.components.len()]
    }

    #[allow(clippy::cast_precision_loss)] // far below 2^53
    fn estimate(&self, components: &[Moments]) -> GradientEstimate {
        let gradient = estimate(components);
        let all = gradient.samples as f64;
        let bands = 0..self.kernel.coefficients.len();
        let covariance = |j: usize| {
            let each =
                |one: &Moments| spread(one.drawn, one.coefficients[j][0], one.log_noise[0], one.coefficients[j][2]);
            components.iter().map(each).sum::<f64>() / (all * all)
        };
        let derivative =
            |j: usize| stratified(components, all, &|one| [one.coefficients[j][0], one.coefficients[j][1]]);
        GradientEstimate {
            derivatives: bands.clone().map(derivative).collect(),
            covariances: bands.map(covariance).collect(),
            ..gradient
        }
    }
}

/// V of eight samples and its derivatives.
#[derive(Debug, Default)]
struct Derivatives {
    value: Lanes,
    log_noise: Lanes,
    coefficients: Vec<Lanes>,
}

/// Buffers of one worker.
#[derive(Default)]
struct Buffers {
    worker: Worker,
    posterior: Posterior,
    workspace: AdjointWorkspace,
    derivatives: Derivatives,
}

struct Shard<'a> {
    rounds: Rounds<'a>,
    index: u64,
    buffers: &'a mut Buffers,
    run: &'a Run,
}

impl Vectored for Shard<'_> {
    type Output = Result<Vec<Moments>>;

    #[inline(always)]
    fn run<V: Vector>(self) -> Self::Output {
        let Self { rounds, index, buffers, run } = self;
        let Rounds { job, mixture, parts, at_origin, .. } = rounds;
        let mut stream = Stream::new(job.key, index);
        let mut moments = rounds.empty();
        // Under another matrix V may be positive for any sample.
        let least = if at_origin { job.epsilon - 1e-9 } else { f64::NEG_INFINITY };
        for (component, (_, share)) in job.components.iter().enumerate() {
            let moments = &mut moments[component];
            for _ in 0..*share {
                run.check()?;
                moments.drawn += LANES as u64;
                mixture.draw::<V>(parts, (component, least), &mut stream, &mut buffers.worker);
                if buffers.worker.weighed.worthless() {
                    continue;
                }
                let mut weight = splat(0.0);
                mixture.weight::<V>(&mut buffers.worker).0.store(&mut weight);
                if !V::apart(Score { rounds, weight, buffers }) {
                    continue;
                }
                let Derivatives { value, log_noise, coefficients } = &buffers.derivatives;
                moments.add(value, log_noise);
                for (to, one) in moments.coefficients.iter_mut().zip(coefficients) {
                    to[0] += sum(one, &splat(1.0));
                    to[1] += sum(one, one);
                    to[2] += sum(one, log_noise);
                }
            }
        }
        Ok(moments)
    }
}

/// Eight samples that were drawn and weighted, to be differentiated. Returns false if V is 0 for all of them.
struct Score<'a> {
    rounds: Rounds<'a>,
    /// dN/dM, N = P or R of the samples' origin.
    weight: Lanes,
    buffers: &'a mut Buffers,
}

impl Vectored for Score<'_> {
    type Output = bool;

    #[inline(always)]
    fn run<V: Vector>(self) -> bool {
        let Self { rounds: Rounds { job, kernel, at_origin, .. }, weight, buffers } = self;
        let Buffers { worker, posterior, workspace, derivatives } = buffers;
        let law = kernel.law();
        let scratch: &mut RenewalScratch = &mut worker.buffers.renewal;
        if !at_origin {
            kernel.correlate_rows::<V>(scratch);
        }
        let own = V::load(&posterior.backward::<V>(law, &scratch.all_sums));
        let mut worth = V::load(&weight);
        if job.direction == Direction::Remove {
            // The weight is relative to the origin's P.
            worth = worth.mul(exp(own.sub(V::load(&worker.weighed.loss))));
        }
        let Some((value, slopes)) = value::<V>(job, own, worth) else { return false };
        derivatives.value = value;

        let (means, squares) = posterior.forward::<V>(law);
        let coefficients = &kernel.coefficients;
        let (n, bands) = (law.iterations(), coefficients.len());
        derivatives.coefficients.resize(bands, splat(0.0));
        kernel.correlator().adjoint::<V>(means, &scratch.all_rows, &mut derivatives.coefficients, workspace);
        // This is Σ E[x_i² | ŷ] over the rounds i in which coefficient j has a row: all but the last j.
        let mut reaching = V::splat(0.0);
        for square in &squares[..=n - bands] {
            reaching = reaching.add(V::load(square));
        }
        let (slope, mut along) = (V::load(&slopes), V::splat(0.0));
        for j in (0..bands).rev() {
            if j + 1 < bands {
                reaching = reaching.add(V::load(&squares[n - 1 - j]));
            }
            let c = V::splat(coefficients[j]);
            let one = V::load(&derivatives.coefficients[j]).sub(c.mul(reaching)).mul(slope);
            one.store(&mut derivatives.coefficients[j]);
            along = one.mul_add(c, along);
        }
        V::splat(0.0).sub(along).store(&mut derivatives.log_noise);
        true
    }
}
