//! Estimates of δ from several proposals at once, by the balance heuristic of [`super::components`].
//!
//! Where the other proposals draw too rarely, the estimate is as good as plain sampling, which is among them, and the
//! standard error shows it.
//!
//! For each proposal and ε the sums also give: its *responsibility* E[V·α_k dM_k/dM], whose share of the total is what
//! α_k should be in order to draw where V lies (the step of a cross-entropy or EM iteration: Cappé, Douc, Guillin,
//! Marin & Robert 2008), and the second moment E[V²·dM/dM_k] that samples of this proposal *alone* would have. None of
//! these numbers is a bound.

use std::sync::Arc;

use rayon::prelude::*;

use crate::error::{domain, Result};
use crate::montecarlo::mechanism::Mechanism;
use crate::montecarlo::proposals::components::{Mixture, Prepared, Worker, UNITS};
use crate::montecarlo::stream::{Stream, StreamKey};
use crate::montecarlo::value::{Bound, Curve};
use crate::run::Run;
use crate::vector::functions::exp;
use crate::vector::{splat, with_vectors, Vector, Vectored, LANES};

/// Estimates to be made.
#[derive(Debug, Clone)]
pub struct BalancedJob {
    /// The mechanisms that are sampled, and the mixture that samples come from.
    pub mixture: Mixture,
    /// The curve of the composed profile, if there is one.
    pub curve: Option<Arc<Curve>>,
    /// The values of ε at which δ is estimated.
    pub epsilons: Vec<f64>,
    /// The coordinates of the streams.
    pub key: StreamKey,
}

/// Sums over samples; those of a component are over the samples drawn from it, unless stated otherwise.
#[derive(Debug, Clone, PartialEq)]
pub struct BalancedSums {
    /// The number of samples drawn from each component.
    pub drawn: Vec<u64>,
    /// Σ L and Σ L².
    pub losses: Vec<(f64, f64)>,
    /// For each ε: (Σ V, Σ V²) of each component's samples.
    pub values: Vec<Vec<(f64, f64)>>,
    /// For each ε and component, over all samples: Σ V·α_k dM_k/dM and Σ V²·dM/dM_k.
    pub merits: Vec<Vec<(f64, f64)>>,
    /// For each ε the largest V of all samples: if its square is much of Σ V², the samples do not determine how V is
    /// spread.
    pub largest: Vec<f64>,
}

impl BalancedJob {
    fn empty(&self) -> BalancedSums {
        let (components, epsilons) = (self.mixture.components.len(), self.epsilons.len());
        BalancedSums {
            drawn: vec![0; components],
            losses: vec![(0.0, 0.0); components],
            values: vec![vec![(0.0, 0.0); components]; epsilons],
            merits: vec![vec![(0.0, 0.0); components]; epsilons],
            largest: vec![0.0; epsilons],
        }
    }
}

/// Runs shards `first`, …, `first + count − 1`, on the pool of the caller, and returns the sums of all, added in the
/// order of the shards.
///
/// # Errors
/// As [`Mixture::prepared`]; [`Error::Domain`] for an ε that is not finite; [`Error::Cancelled`]; [`Error::TimeLimit`].
pub fn simulate_balanced(job: &BalancedJob, first: u64, count: u64, run: &Run) -> Result<BalancedSums> {
    if let Some(&value) = job.epsilons.iter().find(|epsilon| !epsilon.is_finite()) {
        return domain("epsilon", value, "finite");
    }
    let parts = job.mixture.prepared()?;
    let results: Vec<Result<BalancedSums>> = (first..first + count)
        .into_par_iter()
        .map_init(Worker::default, |worker, index| with_vectors(Shard { job, parts: &parts, index, worker, run }))
        .collect();
    let mut total = job.empty();
    for result in results {
        total.merge(&result?);
    }
    Ok(total)
}

struct Shard<'a> {
    job: &'a BalancedJob,
    parts: &'a [Prepared<'a>],
    index: u64,
    worker: &'a mut Worker,
    run: &'a Run,
}

impl Vectored for Shard<'_> {
    type Output = Result<BalancedSums>;

    #[inline(always)]
    fn run<V: Vector>(self) -> Self::Output {
        let Self { job, parts, index, worker, run } = self;
        let mut stream = Stream::new(job.key, index);
        let mut sums = job.empty();
        // With a composed profile V is positive for any sample.
        let smallest = job.epsilons.iter().copied().fold(f64::INFINITY, f64::min);
        let least = job.mixture.least(if job.curve.is_some() { f64::NEG_INFINITY } else { smallest - 1e-9 });
        for (component, (_, share)) in job.mixture.components.iter().enumerate() {
            for _ in 0..*share {
                run.check()?;
                job.mixture.draw::<V>(parts, (component, least), &mut stream, worker);
                sums.add::<V>(job, component, worker);
            }
        }
        Ok(sums)
    }
}

impl BalancedSums {
    /// Adds eight samples of a component.
    #[inline(always)]
    fn add<V: Vector>(&mut self, job: &BalancedJob, drawn: usize, worker: &mut Worker) {
        let (weight, sum) = job.mixture.weight::<V>(worker);
        let loss = V::load(&worker.weighed.loss);
        self.drawn[drawn] += LANES as u64;
        let total = |value: V| {
            let mut lanes = splat(0.0);
            value.store(&mut lanes);
            lanes.0.iter().sum::<f64>()
        };
        self.losses[drawn].0 += total(loss);
        self.losses[drawn].1 += total(loss.mul(loss));
        for (k, epsilon) in job.epsilons.iter().enumerate() {
            let argument = V::splat(*epsilon).sub(loss);
            let part = match job.curve.as_deref() {
                Some(curve) => curve.at(Bound::Above, argument),
                None => V::splat(1.0).sub(exp(argument)).max(V::splat(0.0)),
            };
            let value = weight.mul(part);
            let (first, square) = (total(value), total(value.mul(value)));
            if first == 0.0 {
                continue;
            }
            self.values[k][drawn].0 += first;
            self.values[k][drawn].1 += square;
            let mut lanes = splat(0.0);
            value.store(&mut lanes);
            self.largest[k] = lanes.0.iter().copied().fold(self.largest[k], f64::max);
            for (j, (density, (_, share))) in worker.densities.iter().zip(&job.mixture.components).enumerate() {
                // dM_k/dM = density/sum; where the density vanishes, this component alone would not draw this sample.
                let ratio = V::load(density).div(sum);
                let alone = value.mul(value).div(ratio.max(V::splat(1e-290)));
                self.merits[k][j].0 += total(value.mul(ratio)) * f64::from(*share) / f64::from(UNITS);
                self.merits[k][j].1 += total(alone);
            }
        }
    }

    fn merge(&mut self, other: &Self) {
        let add = |to: &mut (f64, f64), more: &(f64, f64)| {
            to.0 += more.0;
            to.1 += more.1;
        };
        self.drawn.iter_mut().zip(&other.drawn).for_each(|(to, more)| *to += more);
        self.losses.iter_mut().zip(&other.losses).for_each(|(to, more)| add(to, more));
        let tables = [(&mut self.values, &other.values), (&mut self.merits, &other.merits)];
        for (to, from) in tables {
            to.iter_mut().flatten().zip(from.iter().flatten()).for_each(|(to, more)| add(to, more));
        }
        self.largest.iter_mut().zip(&other.largest).for_each(|(to, more)| *to = to.max(*more));
    }
}

/// Returns, for choosing tilts, ‖m̄‖², E‖Ĉx‖²/2 and ln Z(θ) of all mechanisms together; `None` if one cannot be tilted.
pub fn tilt_facts(parts: &[(Mechanism, u32)], theta: f64) -> Option<(f64, f64, f64)> {
    let mut all = (0.0, 0.0, 0.0);
    for (mechanism, runs) in parts {
        let base = mechanism.tilt_base()?;
        let tilted = mechanism.tilted(&base, theta, false);
        let runs = f64::from(*runs);
        all.0 += runs * base.square;
        all.1 += runs * base.offset;
        all.2 += runs * (tilted.norm - 0.5 * theta * theta * base.square);
    }
    Some(all)
}
