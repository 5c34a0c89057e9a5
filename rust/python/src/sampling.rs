//! Bindings of the Monte Carlo room.

use pyaccount_core::montecarlo::bins::BinsKernel;
use pyaccount_core::montecarlo::histogram::{Edges, Histogram};
use pyaccount_core::montecarlo::proposal::Comparison;
use pyaccount_core::montecarlo::renewal::RenewalKernel;
use pyaccount_core::montecarlo::simulate::{probe, simulate, Job, Mechanism, SHARD};
use pyaccount_core::montecarlo::stream::StreamKey;
use pyaccount_core::montecarlo::truncated::TruncatedKernel;
use pyaccount_core::montecarlo::truncated_bins::TruncatedBinsKernel;
use pyaccount_core::montecarlo::vector::instruction_sets;
use pyaccount_core::montecarlo::wager::Table;
use pyaccount_core::Error;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::door::enter;
use crate::errors::raise;

/// A mechanism that can be sampled.
#[pyclass(frozen, module = "pyaccount._core")]
#[derive(Debug)]
pub struct Sampled(Mechanism);

/// What a run of shards leaves: for each shard and table (log capitals, Σ V, Σ V²).
type Shards = Vec<Vec<(Vec<f64>, f64, f64)>>;

/// ln dP/dR, ln dP⁻/dR and ln dM/dR of eight samples.
type Densities = ([f64; 8], [f64; 8], [f64; 8]);

/// A table of wagers: (ε, cap, [(threshold, stake), …]).
type Wagers = (f64, f64, Vec<(f64, f64)>);

fn comparison(name: &str) -> PyResult<Comparison> {
    match name {
        "remove" => Ok(Comparison::Remove),
        "add" => Ok(Comparison::Add),
        "replace" => Ok(Comparison::Replace),
        _ => Err(PyValueError::new_err("comparison must be remove, add or replace")),
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
            .map(|kernel| Self(Mechanism::Renewal(kernel)))
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
            .map(|kernel| Self(Mechanism::Renewal(kernel)))
            .map_err(raise)
    }

    #[staticmethod]
    fn phases(coefficients: Vec<f64>, iterations: usize, phases: usize, sampling_probability: f64) -> PyResult<Self> {
        RenewalKernel::with_phases(coefficients, iterations, phases, sampling_probability)
            .map(|kernel| Self(Mechanism::Renewal(kernel)))
            .map_err(raise)
    }

    #[staticmethod]
    #[allow(clippy::needless_pass_by_value)] // converted from Python
    fn bins(gram: Vec<f64>, inner: usize) -> PyResult<Self> {
        BinsKernel::new(&gram, inner).map(|kernel| Self(Mechanism::Bins(kernel))).map_err(raise)
    }

    #[allow(clippy::needless_pass_by_value)] // converted from Python
    #[pyo3(signature = (outcomes, counts = Vec::new()))]
    fn log_densities(&self, outcomes: Vec<Vec<f64>>, counts: Vec<Vec<u64>>) -> PyResult<Vec<(f64, f64)>> {
        let expected = match &self.0 {
            Mechanism::Renewal(kernel) => kernel.law().iterations(),
            Mechanism::Bins(kernel) => kernel.law().squares.len(),
            Mechanism::Truncated(kernel) => kernel.renewal().law().iterations(),
            Mechanism::TruncatedBins(kernel) => kernel.bins().law().squares.len(),
        };
        let lengths = outcomes.iter().map(Vec::len).chain(counts.iter().map(Vec::len));
        let missing = (!counts.is_empty() && counts.len() != outcomes.len()).then_some(counts.len());
        if let Some(wrong) = lengths.filter(|length| *length != expected).chain(missing).next() {
            #[allow(clippy::cast_precision_loss)] // reported only
            let value = wrong as f64;
            return Err(raise(Error::Domain {
                name: "outcome length",
                value,
                allowed: "one number for each round, or for each bin",
            }));
        }
        Ok(self.0.log_densities(&outcomes, &counts))
    }

    fn truncated(&self, dataset_size: u64, limit: u64) -> PyResult<Self> {
        let truncated = match self.0.clone() {
            Mechanism::Renewal(kernel) => TruncatedKernel::new(kernel, dataset_size, limit).map(Mechanism::Truncated),
            Mechanism::Bins(kernel) => {
                TruncatedBinsKernel::new(kernel, dataset_size, limit).map(Mechanism::TruncatedBins)
            }
            _ => return Err(PyValueError::new_err("batches are truncated once")),
        };
        truncated.map(Self).map_err(raise)
    }

    #[pyo3(signature = (*, key, shard))]
    fn counts(&self, key: (u64, u32, u32, u32), shard: u64) -> Vec<Vec<u64>> {
        let (seed, purpose, candidate, direction) = key;
        self.0.counts(StreamKey { seed, purpose, candidate, direction }, shard)
    }

    #[getter]
    fn plain_parameter(&self) -> f64 {
        self.0.plain_parameter()
    }

    fn balanced_parameter(&self, stretch: f64) -> f64 {
        self.0.balanced_parameter(stretch)
    }

    fn bounds(&self, direction: &str, parameter: f64, stretch: f64, epsilon: f64) -> PyResult<(f64, f64, f64)> {
        let proposal = self.0.proposal(parameter, stretch).map_err(raise)?;
        let limits = self.0.caps(&proposal, comparison(direction)?, epsilon);
        Ok((limits.value, self.0.generator_error(&proposal, limits), self.0.rounding(stretch)))
    }

    #[pyo3(signature = (direction, parameter, stretch, tables, *, edges, key, first, count, threads, time_limit))]
    #[allow(clippy::too_many_arguments)] // a call of the engine's
    fn simulate(
        &self,
        py: Python<'_>,
        direction: &str,
        parameter: f64,
        stretch: f64,
        tables: Vec<Wagers>,
        edges: Option<(f64, f64)>,
        key: (u64, u32, u32, u32),
        first: u64,
        count: u64,
        threads: usize,
        time_limit: Option<f64>,
    ) -> PyResult<(Shards, Option<LossHistogram>)> {
        let job = self.job(direction, parameter, stretch, tables, edges, key)?;
        let outcome = enter(py, threads, time_limit, move |run| simulate(&job, first, count, run))?;
        let shards = outcome
            .shards
            .into_iter()
            .map(|tables| tables.into_iter().map(|sums| (sums.log_capital, sums.value, sums.square)).collect())
            .collect();
        Ok((shards, outcome.histogram.map(LossHistogram)))
    }

    #[pyo3(signature = (direction, parameter, stretch, *, key, shard, instruction_set))]
    fn probe(
        &self,
        direction: &str,
        parameter: f64,
        stretch: f64,
        key: (u64, u32, u32, u32),
        shard: u64,
        instruction_set: &str,
    ) -> PyResult<Option<Densities>> {
        let job = self.job(direction, parameter, stretch, Vec::new(), None, key)?;
        let ratios = probe(&job, shard, instruction_set);
        Ok(ratios.map(|r| (r.mixture.0, r.mirrored.0, r.proposal.0)))
    }
}

impl Sampled {
    fn job(
        &self,
        direction: &str,
        parameter: f64,
        stretch: f64,
        tables: Vec<Wagers>,
        edges: Option<(f64, f64)>,
        (seed, purpose, candidate, side): (u64, u32, u32, u32),
    ) -> PyResult<Job> {
        let proposal = self.0.proposal(parameter, stretch).map_err(raise)?;
        Ok(Job {
            mechanism: self.0.clone(),
            comparison: comparison(direction)?,
            proposal,
            tables: tables.into_iter().map(|(epsilon, cap, wagers)| Table { epsilon, cap, wagers }).collect(),
            edges: edges.map(|(lowest, width)| Edges { lowest, width }),
            key: StreamKey { seed, purpose, candidate, direction: side },
        })
    }
}

/// A histogram of privacy losses.
#[pyclass(frozen, module = "pyaccount._core")]
#[derive(Debug)]
pub struct LossHistogram(Histogram);

#[pymethods]
impl LossHistogram {
    #[getter]
    fn samples(&self) -> u64 {
        self.0.samples
    }

    #[getter]
    fn edges(&self) -> (f64, f64) {
        (self.0.edges.lowest, self.0.edges.width)
    }

    #[getter]
    fn counts(&self) -> Vec<u64> {
        self.0.counts.clone()
    }

    #[getter]
    fn weights(&self) -> Vec<f64> {
        self.0.weights.clone()
    }

    fn merged(&self, other: &Self) -> PyResult<Self> {
        if self.0.edges != other.0.edges {
            return Err(PyValueError::new_err("histograms with different bins cannot be merged"));
        }
        let mut merged = self.0.clone();
        merged.merge(&other.0);
        Ok(Self(merged))
    }

    fn moments(&self, epsilon: f64) -> (f64, f64, f64) {
        let moments = self.0.moments(epsilon);
        (moments.mean_below, moments.mean_above, moments.square_above)
    }
}

/// The instruction sets that sampling can use here, best first, and the number of samples in a shard.
pub fn facts() -> (Vec<&'static str>, usize) {
    (instruction_sets(), SHARD)
}
