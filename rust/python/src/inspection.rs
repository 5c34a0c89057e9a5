//! What only tests ask of the core: single evaluations and intermediate draws, kept apart from what the package uses.

use pyaccount_core::montecarlo::simulate::probe;
use pyaccount_core::montecarlo::stream::Stream;
use pyaccount_core::montecarlo::value::Bound;
use pyaccount_core::noise::normals::groups_with;
use pyaccount_core::pair::discrete::DiscretePair;
use pyaccount_core::secret::SecretKey;
use pyaccount_core::vector::instruction_sets;
use pyaccount_core::Error;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::errors::raise;
use crate::profiles::RoundProfile;
use crate::sampling::{direction_of, stream_key, Parameters, Sampled};
use crate::values::{ComposedCurve, LossHistogram};

/// A namespace, which is never instantiated.
#[pyclass(frozen, module = "pyaccount._core")]
#[derive(Debug)]
pub struct Inspection;

/// The logarithms of dP/dR, dP⁻/dR and dM/dR of eight samples.
type Densities = ([f64; 8], [f64; 8], [f64; 8]);

#[pymethods]
impl Inspection {
    #[classattr]
    #[pyo3(name = "INSTRUCTION_SETS")]
    fn instruction_sets() -> Vec<&'static str> {
        instruction_sets()
    }

    #[staticmethod]
    fn normals(key: [u8; 32], round: u64, group: u64, count: usize, instruction_set: &str) -> Option<Vec<f64>> {
        groups_with(instruction_set, &SecretKey::new(key), round, group, count)
    }

    #[staticmethod]
    fn discrete(outcomes: Vec<(f64, f64)>) -> PyResult<RoundProfile> {
        RoundProfile::of(DiscretePair::new(outcomes))
    }

    #[staticmethod]
    fn profile(profile: &RoundProfile, epsilon: f64) -> (f64, f64, f64, f64) {
        let point = profile.0.at(epsilon);
        (point.delta, point.delta_error, point.slope, point.slope_error)
    }

    #[staticmethod]
    fn curve(curve: &ComposedCurve, x: f64) -> (f64, f64) {
        (curve.0.single(Bound::Below, x), curve.0.single(Bound::Above, x))
    }

    #[staticmethod]
    fn bins(histogram: &LossHistogram) -> (Vec<u64>, Vec<f64>) {
        (histogram.0.counts.clone(), histogram.0.weights.clone())
    }

    #[staticmethod]
    #[allow(clippy::needless_pass_by_value)] // converted from Python
    #[pyo3(signature = (sampled, outcomes, direction = "replace", batch_sizes = Vec::new()))]
    fn log_densities(
        sampled: &Sampled,
        outcomes: Vec<Vec<f64>>,
        direction: &str,
        batch_sizes: Vec<Vec<u64>>,
    ) -> PyResult<Vec<(f64, f64)>> {
        let [(mechanism, 1)] = &sampled.parts[..] else {
            return Err(PyValueError::new_err("outcomes are of one run of one mechanism"));
        };
        let expected = mechanism.outcome_length();
        let lengths = outcomes.iter().map(Vec::len).chain(batch_sizes.iter().map(Vec::len));
        let missing = (!batch_sizes.is_empty() && batch_sizes.len() != outcomes.len()).then_some(batch_sizes.len());
        if let Some(wrong) = lengths.filter(|length| *length != expected).chain(missing).next() {
            #[allow(clippy::cast_precision_loss)] // reported only
            let value = wrong as f64;
            return Err(raise(Error::Domain {
                name: "outcome length",
                value,
                allowed: "one number for each round, or for each bin",
            }));
        }
        Ok(mechanism.log_densities(direction_of(direction)?, &outcomes, &batch_sizes))
    }

    #[staticmethod]
    #[pyo3(signature = (sampled, *, key, shard))]
    fn batch_sizes(sampled: &Sampled, key: (u64, u32, u32, u32), shard: u64) -> PyResult<Vec<Vec<u64>>> {
        let [(mechanism, 1)] = &sampled.parts[..] else {
            return Err(PyValueError::new_err("batch sizes are of one run of one mechanism"));
        };
        Ok(mechanism.batch_sizes(Stream::new(stream_key(key), shard)))
    }

    #[staticmethod]
    #[pyo3(signature = (sampled, direction, parameter, mean_scale, *, key, shard, instruction_set))]
    fn probe(
        sampled: &Sampled,
        direction: &str,
        parameter: Parameters,
        mean_scale: f64,
        key: (u64, u32, u32, u32),
        shard: u64,
        instruction_set: &str,
    ) -> PyResult<Option<Densities>> {
        let job = sampled.job(direction, parameter, mean_scale, Vec::new(), None, key)?;
        let ratios = probe(&job, shard, instruction_set);
        Ok(ratios.map(|r| (r.mixture.0, r.mirrored.0, r.proposal.0)))
    }
}
