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
//! with the posterior means of [`crate::montecarlo::kernels::posterior`]. ĉ is c/σ, so σ·∂δ/∂σ = −Σ_j ĉ_j ∂δ/∂ĉ_j.
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

use crate::special::real;
use std::sync::Arc;

use crate::error::{domain, Error, Result};
use crate::montecarlo::gradients::bins_gradient;
use crate::montecarlo::gradients::estimates::{
    estimate, in_order, merge, spread, stratified, sum, value, GradientEstimate, GradientJob, Moments,
};
use crate::montecarlo::kernels::bins::BinsKernel;
use crate::montecarlo::kernels::correlate::AdjointWorkspace;
use crate::montecarlo::kernels::posterior::Posterior;
use crate::montecarlo::kernels::renewal::{RenewalKernel, RenewalScratch};
use crate::montecarlo::proposals::components::{Mixture, Prepared, Worker};
use crate::montecarlo::stream::Stream;
use crate::montecarlo::weight_bounds::Direction;
use crate::run::Run;
use crate::vector::functions::exp;
use crate::vector::{splat, with_vectors, Lanes, Vector, Vectored, LANES};

/// Runs shards `first`, …, `first + count − 1`, on the pool of the caller; sums are added in the order of the shards.
///
/// # Errors
/// As [`Mixture::prepared`]; [`Error::Domain`] for an ε that is not finite, no shards, or mechanisms with different
/// numbers of rounds or bins; [`Error::Numerics`] for replaced records and mechanisms that have no gradient;
/// [`Error::Cancelled`]; [`Error::TimeLimit`].
pub fn simulate_gradient(job: &GradientJob, first: u64, count: u64, run: &Run) -> Result<GradientEstimate> {
    if !job.epsilon.is_finite() {
        return domain("epsilon", job.epsilon, "finite");
    }
    if job.direction == Direction::Replace {
        return Err(Error::Numerics { reason: "gradients are of the directions remove and add" });
    }
    if count == 0 {
        return domain("shards", 0.0, "at least 1");
    }
    let (own, other) = (job.mechanism.outcome_length(), job.origin.outcome_length());
    if own != other {
        let value = real(other);
        return domain("rounds (bins) of the samples", value, "those of the mechanism");
    }
    // This is used also for bins, whose components have the same form.
    let mixture =
        Mixture { parts: vec![(job.origin.clone(), 1)], direction: job.direction, components: job.components.clone() };
    let parts = mixture.prepared()?;
    if let (Some(kernel), Some(origin)) =
        (job.mechanism.kernel::<RenewalKernel>(), job.origin.kernel::<RenewalKernel>())
    {
        let at_origin = Arc::ptr_eq(&kernel, &origin) || kernel.same(&origin);
        let rounds = Rounds { job, kernel: &kernel, at_origin, mixture: &mixture, parts: &parts };
        let mut total = rounds.empty();
        let shard = |index, buffers: &mut Buffers| with_vectors(Shard { rounds, index, buffers, run });
        in_order(first, count, shard, |shard| merge(&mut total, &shard))?;
        return Ok(rounds.estimate(&total));
    }
    if let (Some(kernel), Some(origin)) = (job.mechanism.kernel::<BinsKernel>(), job.origin.kernel::<BinsKernel>()) {
        return bins_gradient::simulate(job, (&kernel, &origin), first, count, run);
    }
    Err(Error::Numerics { reason: "gradients are of b-min-sep sampling with banded matrices, and of bins" })
}

/// A job of rounds, as its shards use it.
#[derive(Clone, Copy)]
struct Rounds<'a> {
    job: &'a GradientJob,
    kernel: &'a RenewalKernel,
    /// Whether samples come from the mechanism's own proposals.
    at_origin: bool,
    mixture: &'a Mixture,
    parts: &'a [Prepared<'a>],
}

impl Rounds<'_> {
    fn empty(&self) -> Vec<Moments> {
        let none = Moments { coefficients: vec![[0.0; 3]; self.kernel.coefficients.len()], ..Moments::default() };
        vec![none; self.job.components.len()]
    }

    fn estimate(&self, components: &[Moments]) -> GradientEstimate {
        let gradient = estimate(components);
        let all = real(gradient.samples);
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
        let scratch: &mut RenewalScratch = worker.buffers.of();
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
