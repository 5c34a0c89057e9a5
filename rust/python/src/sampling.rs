//! Bindings of the Monte Carlo room.

use std::sync::{Arc, Mutex, PoisonError};

use pyaccount_core::montecarlo::claims::betting::{BetTable, ShardSums};
use pyaccount_core::montecarlo::claims::defensive::{simulate_defensive, DefensiveJob};
use pyaccount_core::montecarlo::claims::histogram::Edges;
use pyaccount_core::montecarlo::claims::linear::{added_bounds, AddedBounds};
use pyaccount_core::montecarlo::gradients::estimates::GradientJob;
use pyaccount_core::montecarlo::gradients::gradient::simulate_gradient;
use pyaccount_core::montecarlo::kernels::allocation::AllocationKernel;
use pyaccount_core::montecarlo::kernels::automaton::{AutomatonKernel, Emitted};
use pyaccount_core::montecarlo::kernels::bins::BinsKernel;
use pyaccount_core::montecarlo::kernels::columns::Columns as CoreColumns;
use pyaccount_core::montecarlo::kernels::overlapping::OverlappingKernel;
use pyaccount_core::montecarlo::kernels::renewal::RenewalKernel;
use pyaccount_core::montecarlo::mechanism::Mechanism;
use pyaccount_core::montecarlo::proposals::balanced::{simulate_balanced, tilt_facts, BalancedJob};
use pyaccount_core::montecarlo::proposals::components::{Component, Mixture, UNITS};
use pyaccount_core::montecarlo::proposals::drawn::{
    floored_rounding_of, generator_error_of, left_out_of, rounding_of, weight_bounds_of, Part,
};
use pyaccount_core::montecarlo::proposals::replicated::{Replicated, NO_CHAIN};
use pyaccount_core::montecarlo::simulate::{simulate, Job};
use pyaccount_core::montecarlo::stream::{StreamKey, SHARD};
use pyaccount_core::montecarlo::truncation::truncated::TruncatedKernel;
use pyaccount_core::montecarlo::truncation::truncated_bins::TruncatedBinsKernel;
use pyaccount_core::montecarlo::weight_bounds::Direction;
use pyaccount_core::replicas::{Replicas, GAP};
use pyaccount_core::Error;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::errors::raise;
use crate::interruptible::call;
use crate::values::{ComposedCurve, DeltaGradient, LossHistogram};

/// Mechanisms that can be sampled together, each with its number of runs.
#[pyclass(frozen, module = "pyaccount._core")]
#[derive(Debug)]
pub struct Sampled {
    pub(crate) parts: Vec<(Mechanism, u32)>,
    /// The replicas for which samples of a power of the likelihood ratio were last asked for, and the samples of each
    /// mechanism.
    power: Mutex<Option<(Replicas, Vec<Part>)>>,
}

impl From<Vec<(Mechanism, u32)>> for Sampled {
    fn from(parts: Vec<(Mechanism, u32)>) -> Self {
        Self { parts, power: Mutex::new(None) }
    }
}

/// The parameter of the proposal: one for each mechanism, or a single number if there is one mechanism.
#[derive(FromPyObject)]
pub enum Parameters {
    One(f64),
    Each(Vec<f64>),
}

/// A matrix with long columns, and the Gram off-diagonals of rounds at least b apart.
#[pyclass(frozen, module = "pyaccount._core")]
#[derive(Debug)]
pub struct Columns(Arc<CoreColumns>);

#[pymethods]
impl Columns {
    #[staticmethod]
    #[allow(clippy::needless_pass_by_value)] // converted from Python
    fn toeplitz(coefficients: Vec<f64>, min_separation: usize) -> PyResult<Self> {
        CoreColumns::toeplitz(&coefficients, min_separation).map(|columns| Self(Arc::new(columns))).map_err(raise)
    }

    #[staticmethod]
    #[allow(clippy::needless_pass_by_value)] // converted from Python
    fn buffers(
        first: f64,
        scales: Vec<f64>,
        decays: Vec<f64>,
        iterations: usize,
        min_separation: usize,
    ) -> PyResult<Self> {
        CoreColumns::buffers(first, &scales, &decays, iterations, min_separation)
            .map(|columns| Self(Arc::new(columns)))
            .map_err(raise)
    }

    #[staticmethod]
    fn dense(entries: Vec<f64>, iterations: usize, min_separation: usize) -> PyResult<Self> {
        CoreColumns::dense(entries, iterations, min_separation).map(|columns| Self(Arc::new(columns))).map_err(raise)
    }

    /// Returns how far ln of the upper recursion may be above that of the lower one, at σ = 1.
    #[getter]
    fn gap(&self) -> f64 {
        self.0.gram().gap(self.0.min_separation())
    }

    /// Returns ‖c_i‖² + Γ_i for each column: over participations at least b apart these sum to at least ‖Cx‖².
    #[getter]
    fn norm_bounds(&self) -> Vec<f64> {
        let gram = self.0.gram();
        gram.squares.iter().zip(&gram.off_diagonals).map(|(square, shared)| square + shared).collect()
    }
}

/// The results of a range of shards: for each shard and table (log wealths, Σ V, Σ V²).
pub type Shards = Vec<Vec<(Vec<f64>, f64, f64)>>;

/// Sums of samples from several proposals: the number of samples of each, (Σ L, Σ L²), and for each ε (Σ V, Σ V²),
/// merits and the largest V.
type Balanced = (Vec<u64>, Vec<(f64, f64)>, Vec<Vec<(f64, f64)>>, Vec<Vec<(f64, f64)>>, Vec<f64>);

/// A table of bets: (ε, weight bound, [(threshold, betting fraction), …]).
pub type Bets = (f64, f64, Vec<(f64, f64)>);

/// A component of a mixture: its share, and either the parameters and mean scale of a proposal, or no parameters and θ.
type Shared = (u32, Vec<f64>, f64);

/// Returns the key of a stream from its seed, purpose, candidate and direction.
pub fn stream_key((seed, purpose, candidate, direction): (u64, u32, u32, u32)) -> StreamKey {
    StreamKey { seed, purpose, candidate, direction }
}

/// Returns the kernel of single records in rounds, under b-min-sep sampling or from a random part.
fn of_rounds(mechanism: &Mechanism) -> Option<Arc<RenewalKernel>> {
    mechanism.kernel::<RenewalKernel>().filter(|kernel| kernel.law().records() == 1)
}

/// Returns the kernel of single records under b-min-sep sampling.
fn single_records(mechanism: &Mechanism) -> Option<Arc<RenewalKernel>> {
    of_rounds(mechanism).filter(|kernel| !kernel.law().phased)
}

fn emitted(law: Emitted, coefficients: Vec<f64>, iterations: usize) -> PyResult<Sampled> {
    AutomatonKernel::new(law, coefficients, iterations).map(|kernel| vec![(kernel.into(), 1)].into()).map_err(raise)
}

fn table((epsilon, weight_bound, bets): Bets) -> BetTable {
    BetTable { epsilon, weight_bound, bets }
}

pub fn shards(found: Vec<Vec<ShardSums>>) -> Shards {
    let one = |sums: ShardSums| (sums.log_wealth, sums.value, sums.square);
    found.into_iter().map(|tables| tables.into_iter().map(one).collect()).collect()
}

pub fn direction_of(name: &str) -> PyResult<Direction> {
    match name {
        "remove" => Ok(Direction::Remove),
        "add" => Ok(Direction::Add),
        "replace" => Ok(Direction::Replace),
        _ => Err(PyValueError::new_err("direction must be remove, add or replace")),
    }
}

#[pymethods]
impl Sampled {
    #[staticmethod]
    fn renewal(
        coefficients: Vec<f64>,
        iterations: usize,
        min_separation: usize,
        sampling_probability: f64,
        warm: bool,
    ) -> PyResult<Self> {
        RenewalKernel::new(coefficients, iterations, min_separation, sampling_probability, warm)
            .map(|kernel| vec![(kernel.into(), 1)].into())
            .map_err(raise)
    }

    #[staticmethod]
    fn users(
        coefficients: Vec<f64>,
        iterations: usize,
        min_separation: usize,
        record_probability: f64,
        records: u32,
        warm: bool,
    ) -> PyResult<Self> {
        RenewalKernel::of_users(coefficients, iterations, min_separation, record_probability, records, warm)
            .map(|kernel| vec![(kernel.into(), 1)].into())
            .map_err(raise)
    }

    #[staticmethod]
    fn phases(coefficients: Vec<f64>, iterations: usize, phases: usize, sampling_probability: f64) -> PyResult<Self> {
        RenewalKernel::with_phases(coefficients, iterations, phases, sampling_probability)
            .map(|kernel| vec![(kernel.into(), 1)].into())
            .map_err(raise)
    }

    #[staticmethod]
    fn overlapping(
        columns: &Columns,
        noise_multiplier: f64,
        record_probability: f64,
        records: u32,
        warm: bool,
        below: bool,
    ) -> PyResult<Self> {
        OverlappingKernel::new(columns.0.clone(), noise_multiplier, record_probability, records, warm, below)
            .map(|kernel| vec![(kernel.into(), 1)].into())
            .map_err(raise)
    }

    #[staticmethod]
    #[allow(clippy::needless_pass_by_value)] // converted from Python
    fn bins(gram: Vec<f64>, inner: usize) -> PyResult<Self> {
        BinsKernel::new(&gram, inner).map(|kernel| vec![(kernel.into(), 1)].into()).map_err(raise)
    }

    #[staticmethod]
    fn allocation(rounds: usize, taken: usize, unit: f64) -> PyResult<Self> {
        AllocationKernel::new(rounds, taken, unit).map(|kernel| vec![(kernel.into(), 1)].into()).map_err(raise)
    }

    /// Poisson sampling of a group of records under a matrix.
    #[staticmethod]
    fn windows(coefficients: Vec<f64>, iterations: usize, sampling_probability: f64, records: usize) -> PyResult<Self> {
        let law = Emitted::Poisson { records, probability: sampling_probability };
        emitted(law, coefficients, iterations)
    }

    /// A group of records under b-min-sep sampling.
    #[staticmethod]
    fn group(
        coefficients: Vec<f64>,
        iterations: usize,
        min_separation: usize,
        sampling_probability: f64,
        warm: bool,
        records: usize,
    ) -> PyResult<Self> {
        let probability = sampling_probability;
        emitted(Emitted::Spaced { records, probability, separation: min_separation, warm }, coefficients, iterations)
    }

    /// Allocations under a matrix.
    #[staticmethod]
    fn allocated(coefficients: Vec<f64>, iterations: usize, length: usize, taken: usize) -> PyResult<Self> {
        emitted(Emitted::Allocation { length, taken }, coefficients, iterations)
    }

    #[staticmethod]
    #[allow(clippy::needless_pass_by_value)] // converted from Python
    fn together(parts: Vec<(Bound<'_, Self>, u32)>) -> PyResult<Self> {
        if parts.is_empty() || parts.iter().any(|(_, runs)| *runs == 0) {
            return Err(raise(Error::Domain {
                name: "runs",
                value: 0.0,
                allowed: "at least one run of one mechanism",
            }));
        }
        let mut all = Vec::new();
        for (sampled, runs) in parts {
            for (mechanism, own) in &sampled.get().parts {
                let runs = own.checked_mul(runs).ok_or_else(|| PyValueError::new_err("too many runs"))?;
                all.push((mechanism.clone(), runs));
            }
        }
        Ok(all.into())
    }

    fn truncated(&self, dataset_size: u64, limit: u64) -> PyResult<Self> {
        let refused = PyValueError::new_err("only one run of one sampler of records has truncated batches");
        let [(mechanism, 1)] = &self.parts[..] else { return Err(refused) };
        let truncated = if let Some(kernel) = mechanism.kernel::<RenewalKernel>() {
            TruncatedKernel::new(kernel, dataset_size, limit).map(Mechanism::from)
        } else if let Some(kernel) = mechanism.kernel::<BinsKernel>() {
            TruncatedBinsKernel::new(kernel, dataset_size, limit).map(Mechanism::from)
        } else {
            return Err(refused);
        };
        truncated.map(|mechanism| vec![(mechanism, 1)].into()).map_err(raise)
    }

    #[getter]
    fn of_single_records(&self) -> bool {
        self.parts.iter().all(|(mechanism, _)| single_records(mechanism).is_some())
    }

    #[getter]
    fn plain_parameter(&self) -> f64 {
        self.parts[0].0.plain_parameter()
    }

    #[getter]
    fn plain_parameters(&self) -> Vec<f64> {
        self.parts.iter().map(|(mechanism, _)| mechanism.plain_parameter()).collect()
    }

    fn balanced_parameters(&self, mean_scale: f64) -> Vec<f64> {
        self.parts.iter().map(|(mechanism, _)| mechanism.balanced_parameter(mean_scale)).collect()
    }

    /// Returns bounds of the proposal. With an `order`, they are of samples of that power of the likelihood ratio of a
    /// removed record, whatever the proposal is; with a `block` too, these are drawn in blocks of that many rounds;
    /// with `most_busy`, no more than that many replicas are busy at once; with a `floor`, they are of a replaced record.
    #[pyo3(signature = (direction, parameter, mean_scale, epsilon, curve = None, *, order = None, block = None, most_busy = None, floor = None, threads = 1, time_limit = None))]
    #[allow(clippy::too_many_arguments)] // a call of the engine's
    fn bounds(
        &self,
        py: Python<'_>,
        direction: &str,
        parameter: Parameters,
        mean_scale: f64,
        epsilon: f64,
        curve: Option<&ComposedCurve>,
        order: Option<usize>,
        block: Option<usize>,
        most_busy: Option<usize>,
        floor: Option<f64>,
        threads: usize,
        time_limit: Option<f64>,
    ) -> PyResult<(f64, f64, f64)> {
        let parts = match order {
            None => self.parts(parameter, mean_scale)?,
            Some(order) => self.replicated(py, Replicas { order, most_busy, block }, threads, time_limit)?,
        };
        let curve = curve.map(|curve| &*curve.0);
        let (direction, epsilon, read) = match floor {
            // With a curve, or without a power, nothing is drawn.
            Some(floor) => (Direction::Remove, floor, floored_rounding_of(&parts, floor)),
            None => (direction_of(direction)?, epsilon, curve.map_or(0.0, |curve| curve.argument_error(epsilon))),
        };
        let limits = weight_bounds_of(&parts, direction, epsilon, curve);
        Ok((limits.value, generator_error_of(&parts, limits), rounding_of(&parts) + read))
    }

    /// Returns an upper bound on how much of δ(ε) of a removed record is left out by samples of a power that allow no
    /// more than `most_busy` busy replicas at once.
    #[pyo3(signature = (order, most_busy, epsilon, curve = None, *, threads, time_limit))]
    #[allow(clippy::too_many_arguments)] // a call of the engine's
    fn left_out(
        &self,
        py: Python<'_>,
        order: usize,
        most_busy: usize,
        epsilon: f64,
        curve: Option<&ComposedCurve>,
        threads: usize,
        time_limit: Option<f64>,
    ) -> PyResult<f64> {
        let parts = self.replicated(py, Replicas::of_few(order, most_busy), threads, time_limit)?;
        let limits = weight_bounds_of(&parts, Direction::Remove, epsilon, curve.map(|curve| &*curve.0));
        call(py, threads, time_limit, move |run| left_out_of(&parts, limits, run))
    }

    /// Runs shards of samples; the arguments are those of `bounds` with an `order`.
    #[pyo3(signature = (direction, parameter, mean_scale, tables, *, edges, key, first, count, threads, time_limit, curve = None, order = None, block = None, most_busy = None, floor = None))]
    #[allow(clippy::too_many_arguments)] // a call of the engine's
    fn simulate(
        &self,
        py: Python<'_>,
        direction: &str,
        parameter: Parameters,
        mean_scale: f64,
        tables: Vec<Bets>,
        edges: Option<(f64, f64)>,
        key: (u64, u32, u32, u32),
        first: u64,
        count: u64,
        threads: usize,
        time_limit: Option<f64>,
        curve: Option<&ComposedCurve>,
        order: Option<usize>,
        block: Option<usize>,
        most_busy: Option<usize>,
        floor: Option<f64>,
    ) -> PyResult<(Shards, Option<LossHistogram>)> {
        let mut job = self.job(direction, parameter, mean_scale, tables, edges, key)?;
        (job.curve, job.floor) = (curve.map(|curve| Arc::clone(&curve.0)), floor);
        if let Some(order) = order {
            job.parts = self.replicated(py, Replicas { order, most_busy, block }, threads, time_limit)?;
        }
        let outcome = call(py, threads, time_limit, move |run| simulate(&job, first, count, run))?;
        Ok((shards(outcome.shards), outcome.histogram.map(LossHistogram)))
    }

    #[allow(clippy::needless_pass_by_value)] // converted from Python
    #[pyo3(signature = (direction, components, epsilons, *, key, first, count, threads, time_limit, curve = None))]
    #[allow(clippy::too_many_arguments)] // a call of the engine's
    fn balanced(
        &self,
        py: Python<'_>,
        direction: &str,
        components: Vec<Shared>,
        epsilons: Vec<f64>,
        key: (u64, u32, u32, u32),
        first: u64,
        count: u64,
        threads: usize,
        time_limit: Option<f64>,
        curve: Option<&ComposedCurve>,
    ) -> PyResult<Balanced> {
        let job = BalancedJob {
            mixture: self.mixture(direction, components)?,
            curve: curve.map(|curve| Arc::clone(&curve.0)),
            epsilons,
            key: stream_key(key),
        };
        let sums = call(py, threads, time_limit, move |run| simulate_balanced(&job, first, count, run))?;
        Ok((sums.drawn, sums.losses, sums.values, sums.merits, sums.largest))
    }

    #[pyo3(signature = (direction, components, epsilon, curve = None))]
    fn defensive_bounds(
        &self,
        direction: &str,
        components: Vec<Shared>,
        epsilon: f64,
        curve: Option<&ComposedCurve>,
    ) -> PyResult<(f64, f64, f64)> {
        let curve = curve.map(|curve| &*curve.0);
        let limits = self.mixture(direction, components)?.limits(epsilon, curve).map_err(raise)?;
        let read = curve.map_or(0.0, |curve| curve.argument_error(epsilon));
        Ok((limits.weight_bound, limits.generator, limits.rounding + read))
    }

    #[pyo3(signature = (direction, components, tables, *, key, first, count, threads, time_limit, curve = None))]
    #[allow(clippy::too_many_arguments)] // a call of the engine's
    fn defensive(
        &self,
        py: Python<'_>,
        direction: &str,
        components: Vec<Shared>,
        tables: Vec<Bets>,
        key: (u64, u32, u32, u32),
        first: u64,
        count: u64,
        threads: usize,
        time_limit: Option<f64>,
        curve: Option<&ComposedCurve>,
    ) -> PyResult<Shards> {
        let job = DefensiveJob {
            mixture: self.mixture(direction, components)?,
            curve: curve.map(|curve| Arc::clone(&curve.0)),
            tables: tables.into_iter().map(table).collect(),
            key: stream_key(key),
        };
        Ok(shards(call(py, threads, time_limit, move |run| simulate_defensive(&job, first, count, run))?))
    }

    #[pyo3(signature = (direction, components, epsilon, *, origin, key, first, count, threads, time_limit))]
    #[allow(clippy::too_many_arguments)] // a call of the engine's
    fn gradient(
        &self,
        py: Python<'_>,
        direction: &str,
        components: Vec<Shared>,
        epsilon: f64,
        origin: Option<&Self>,
        key: (u64, u32, u32, u32),
        first: u64,
        count: u64,
        threads: usize,
        time_limit: Option<f64>,
    ) -> PyResult<DeltaGradient> {
        let origin = origin.unwrap_or(self);
        let ([(mechanism, 1)], [(from, 1)]) = (&self.parts[..], &origin.parts[..]) else {
            return Err(PyValueError::new_err("gradients are of one run of one mechanism"));
        };
        let Mixture { direction, components, .. } = origin.mixture(direction, components)?;
        let (mechanism, origin) = (mechanism.clone(), from.clone());
        let job = GradientJob { mechanism, origin, direction, components, epsilon, key: stream_key(key) };
        call(py, threads, time_limit, move |run| simulate_gradient(&job, first, count, run)).map(DeltaGradient::from)
    }

    /// Returns the number of states of the largest chain of this many replicas, and the largest number of states that
    /// are computed for all chains in all rounds together; None if a mechanism has no chain, or one that is too large.
    #[pyo3(signature = (order, block = None, most_busy = None))]
    fn replicas(&self, order: usize, block: Option<usize>, most_busy: Option<usize>) -> Option<(usize, f64)> {
        let (mut most, replicas) = ((0, 0.0), Replicas { order, most_busy, block });
        for (mechanism, _) in &self.parts {
            let (count, work) = mechanism.participations()?.price(replicas)?;
            most = (most.0.max(count), most.1 + work);
        }
        Some(most)
    }

    /// Estimates the nanoseconds that the tuples of a sample take where they are not drawn by ages.
    fn tuple_price(&self, order: usize) -> f64 {
        let price = |(mechanism, runs): &(Mechanism, u32)| {
            f64::from(*runs) * mechanism.participations().map_or(0.0, |all| all.tuple_price(order))
        };
        self.parts.iter().map(price).sum()
    }

    /// Returns bounds on ln E_R f^order of all mechanisms and runs together (their sum), f = dP/dR, and how much of the
    /// upper bound allows for what few busy replicas leave out. For `gap` see the core.
    #[pyo3(signature = (order, *, block = None, most_busy = None, gap = GAP, threads, time_limit))]
    #[allow(clippy::too_many_arguments)] // a call of the engine's
    fn log_moment(
        &self,
        py: Python<'_>,
        order: usize,
        block: Option<usize>,
        most_busy: Option<usize>,
        gap: f64,
        threads: usize,
        time_limit: Option<f64>,
    ) -> PyResult<(f64, f64, f64)> {
        let (all, replicas) = (self.parts.clone(), Replicas { order, most_busy, block });
        call(py, threads, time_limit, move |run| {
            let (mut lower, mut upper, mut left_out) = (0.0_f64, 0.0_f64, 0.0_f64);
            for (mechanism, runs) in &all {
                let moment = mechanism.participations().ok_or(NO_CHAIN)?.log_moment(replicas, gap, run)?;
                // Results are rounded outward: the product and the sum are each off by at most u, relatively.
                let runs = f64::from(*runs);
                lower = (lower + (runs * moment.lower).next_down().max(0.0)).next_down().max(0.0);
                upper = (upper + (runs * moment.upper).next_up()).next_up();
                left_out += runs * moment.left_out;
            }
            Ok((lower, upper, left_out))
        })
    }

    /// Returns ln of upper bounds on the second moment of samples of R tilted, and on δ, where a record is added; None
    /// for several mechanisms and for mechanisms without such a bound.
    #[allow(clippy::needless_pass_by_value)] // as it comes from Python
    fn added_bounds(&self, tilt: f64, epsilons: Vec<f64>) -> Option<Vec<(f64, f64)>> {
        let [(mechanism, 1)] = &self.parts[..] else { return None };
        let bounds = added_bounds(&*single_records(mechanism)?, tilt, &epsilons);
        Some(bounds.into_iter().map(|AddedBounds { log_square, log_delta }| (log_square, log_delta)).collect())
    }

    fn tilt(&self, theta: f64) -> Option<(f64, f64, f64)> {
        tilt_facts(&self.parts, theta)
    }
}

impl Sampled {
    fn parts(&self, parameter: Parameters, mean_scale: f64) -> PyResult<Vec<Part>> {
        let parameters = match parameter {
            Parameters::One(only) => vec![only],
            Parameters::Each(all) => all,
        };
        if parameters.len() != self.parts.len() {
            return Err(PyValueError::new_err("a proposal has one parameter for each mechanism"));
        }
        let part = |((mechanism, runs), parameter): (&(Mechanism, u32), f64)| {
            Ok(Part { proposed: mechanism.proposed(parameter, mean_scale).map_err(raise)?, runs: *runs })
        };
        self.parts.iter().zip(parameters).map(part).collect()
    }

    fn mixture(&self, direction: &str, components: Vec<Shared>) -> PyResult<Mixture> {
        let component = |(share, parameters, number): Shared| {
            let component =
                if parameters.is_empty() { Component::Tilted(number) } else { Component::Scaled(parameters, number) };
            (component, share)
        };
        Ok(Mixture {
            parts: self.parts.clone(),
            direction: direction_of(direction)?,
            components: components.into_iter().map(component).collect(),
        })
    }

    pub fn job(
        &self,
        direction: &str,
        parameter: Parameters,
        mean_scale: f64,
        tables: Vec<Bets>,
        edges: Option<(f64, f64)>,
        key: (u64, u32, u32, u32),
    ) -> PyResult<Job> {
        Ok(Job {
            parts: self.parts(parameter, mean_scale)?,
            direction: direction_of(direction)?,
            curve: None,
            floor: None,
            tables: tables.into_iter().map(table).collect(),
            edges: edges.map(|(lowest, width)| Edges { lowest, width }),
            key: stream_key(key),
        })
    }

    /// Returns the kernel if there is one mechanism of single records, run once.
    pub fn single(&self) -> Option<Arc<RenewalKernel>> {
        match &self.parts[..] {
            [(mechanism, 1)] => of_rounds(mechanism),
            _ => None,
        }
    }

    /// Returns the mechanisms with samples of a power of their likelihood ratios; they are kept until other replicas
    /// are asked for.
    fn replicated(
        &self,
        py: Python<'_>,
        replicas: Replicas,
        threads: usize,
        time_limit: Option<f64>,
    ) -> PyResult<Vec<Part>> {
        // The lock is held only briefly and together with the interpreter's lock, so that no process is forked
        // meanwhile.
        let kept = || self.power.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((known, parts)) = &*kept() {
            if *known == replicas {
                return Ok(parts.clone());
            }
        }
        // The old tables are dropped first, because two sets of tables would take twice the memory.
        *kept() = None;
        let all = self.parts.clone();
        let parts: Vec<Part> = call(py, threads, time_limit, move |run| {
            let part = |(mechanism, runs): &(Mechanism, u32)| {
                let samples = Replicated::new(mechanism, replicas, run)?;
                Ok(Part { proposed: Arc::new(samples), runs: *runs })
            };
            all.iter().map(part).collect()
        })?;
        *kept() = Some((replicas, parts.clone()));
        Ok(parts)
    }
}

/// Returns the number of samples in a shard, and the number that shares of it add up to.
pub fn facts() -> (usize, u32) {
    (SHARD, UNITS)
}
