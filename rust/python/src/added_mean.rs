//! Bindings for samples of a mean that bounds δ, or a second moment, where a record is added.

use std::sync::Arc;

use pyaccount_core::error::Error;
use pyaccount_core::montecarlo::claims::added_mean::{simulate, AddedMean as CoreMean, MeanTable, Moment};
use pyo3::prelude::*;

use crate::errors::raise;
use crate::interruptible::call;
use crate::sampling::{shards, stream_key, Bets, Sampled, Shards};

/// Samples of D around −sm̄; see `pyaccount_core::montecarlo::claims::added_mean`.
#[pyclass(frozen, module = "pyaccount._core")]
#[derive(Debug)]
pub struct AddedMean(Arc<CoreMean>);

#[pymethods]
impl AddedMean {
    #[staticmethod]
    fn of(mechanism: &Sampled, size: f64) -> PyResult<Option<Self>> {
        let Some(kernel) = mechanism.single() else { return Ok(None) };
        Ok(Some(Self(Arc::new(CoreMean::new(&kernel, size).map_err(raise)?))))
    }

    /// Returns ln of the factor of e^{E D}, the largest D, and the error of the mean.
    fn limits(&self, exponent: f64, moment: u32, epsilon: f64) -> PyResult<(f64, f64, f64)> {
        let limits = self.0.limits(exponent, bounded(moment)?, epsilon);
        Ok((limits.log_factor, limits.most, limits.error))
    }

    #[pyo3(signature = (tables, moment, *, key, first, count, threads, time_limit))]
    #[allow(clippy::too_many_arguments)] // a call of the engine's
    fn simulate(
        &self,
        py: Python<'_>,
        tables: Vec<Bets>,
        moment: u32,
        key: (u64, u32, u32, u32),
        first: u64,
        count: u64,
        threads: usize,
        time_limit: Option<f64>,
    ) -> PyResult<Shards> {
        let (mean, moment) = (Arc::clone(&self.0), bounded(moment)?);
        let table = |(exponent, most, bets): Bets| MeanTable { exponent, moment, most, bets };
        let tables: Vec<MeanTable> = tables.into_iter().map(table).collect();
        let key = stream_key(key);
        Ok(shards(call(py, threads, time_limit, move |run| simulate(&mean, &tables, key, first, count, run))?))
    }
}

/// Returns the quantity that the mean bounds, by the number of the moment.
fn bounded(moment: u32) -> PyResult<Moment> {
    match moment {
        1 => Ok(Moment::First),
        2 => Ok(Moment::Second),
        other => Err(raise(Error::Domain { name: "moment", value: f64::from(other), allowed: "1 or 2" })),
    }
}
