//! Bindings of the batches room. Records are given as the bytes of 64-bit integers, for `numpy.frombuffer`.

use std::sync::{Arc, Mutex, PoisonError};

use pyaccount_core::batches::calendar::{Calendar, Rule, Units};
use pyaccount_core::batches::dealt::Dealt;
use pyaccount_core::batches::{memoryless, Streams, Use};
use pyaccount_core::run::Run;
use pyaccount_core::secret::SecretKey;
use pyaccount_core::Result;
use pyo3::buffer::PyBuffer;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::errors::raise;
use crate::interruptible::call;

/// The streams of one run's batches. Their key is never shown, and they cannot be pickled.
#[pyclass(frozen, module = "pyaccount._core")]
#[derive(Debug)]
pub struct BatchStreams(Streams);

/// The rounds of b-min-sep sampling.
#[pyclass(frozen, module = "pyaccount._core")]
#[derive(Debug)]
pub struct BatchCalendar(Arc<Mutex<Calendar>>);

/// Records that are dealt into slots.
#[pyclass(frozen, module = "pyaccount._core")]
#[derive(Debug)]
pub struct DealtRecords(Dealt);

/// The number of steps that take less time than waiting for a thread.
const LITTLE: u64 = 1 << 12;

/// Runs work of `steps` steps: interruptibly, unless there are few.
fn run<T, W>(py: Python<'_>, steps: u64, work: W) -> PyResult<T>
where
    T: Send + 'static,
    W: FnOnce(&Run) -> Result<T> + Send + 'static,
{
    if steps < LITTLE {
        return work(&Run::default()).map_err(raise);
    }
    call(py, 1, None, work)
}

fn listed(py: Python<'_>, records: impl IntoIterator<Item = u64>) -> Bound<'_, PyBytes> {
    let bytes: Vec<u8> = records.into_iter().flat_map(u64::to_ne_bytes).collect();
    PyBytes::new(py, &bytes)
}

#[pymethods]
impl BatchStreams {
    #[new]
    const fn new(key: [u8; 32]) -> Self {
        Self(Streams::new(SecretKey::new(key)))
    }

    #[pyo3(signature = (round, records, probability, draws, *, before_first=false))]
    fn poisson<'py>(
        &self,
        py: Python<'py>,
        round: u64,
        records: u64,
        probability: f64,
        draws: u32,
        before_first: bool,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let purpose = if before_first { Use::Start } else { Use::Draw };
        let batch = memoryless::poisson(&self.0, purpose, round, records, probability, draws);
        Ok(listed(py, batch.map_err(raise)?))
    }

    fn without_replacement<'py>(
        &self,
        py: Python<'py>,
        round: u64,
        records: u64,
        count: u64,
    ) -> PyResult<Bound<'py, PyBytes>> {
        Ok(listed(py, memoryless::without_replacement(&self.0, round, records, count).map_err(raise)?))
    }

    fn with_replacement<'py>(
        &self,
        py: Python<'py>,
        round: u64,
        records: u64,
        count: u64,
    ) -> PyResult<Bound<'py, PyBytes>> {
        Ok(listed(py, memoryless::with_replacement(&self.0, round, records, count).map_err(raise)?))
    }

    #[pyo3(signature = (round, records, subset, count, *, different))]
    fn two_stages<'py>(
        &self,
        py: Python<'py>,
        round: u64,
        records: u64,
        subset: u64,
        count: u64,
        different: bool,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let batch = memoryless::two_stages(&self.0, round, records, subset, count, different);
        Ok(listed(py, batch.map_err(raise)?))
    }

    fn kept<'py>(&self, py: Python<'py>, round: u64, drawn: u64, limit: u64) -> Bound<'py, PyBytes> {
        listed(py, memoryless::kept(&self.0, round, drawn, limit))
    }

    #[pyo3(signature = (records, rounds, min_separation, probability, *, warm))]
    fn calendar(
        &self,
        py: Python<'_>,
        records: u64,
        rounds: u64,
        min_separation: u64,
        probability: f64,
        warm: bool,
    ) -> PyResult<BatchCalendar> {
        let rule = Rule { rounds, separation: min_separation, probability, warm };
        BatchCalendar::build(py, self.0.clone(), Units::Records(records), rule)
    }

    #[pyo3(signature = (starts, records, rounds, min_separation, probability, *, warm))]
    #[allow(clippy::too_many_arguments, clippy::needless_pass_by_value)] // a sampler's, converted from Python
    fn users_calendar(
        &self,
        py: Python<'_>,
        starts: PyBuffer<u32>,
        records: PyBuffer<u32>,
        rounds: u64,
        min_separation: u64,
        probability: f64,
        warm: bool,
    ) -> PyResult<BatchCalendar> {
        let rule = Rule { rounds, separation: min_separation, probability, warm };
        let units = Units::users(starts.to_vec(py)?, records.to_vec(py)?).map_err(raise)?;
        BatchCalendar::build(py, self.0.clone(), units, rule)
    }

    fn dealt(&self, py: Python<'_>, deal: u64, records: u64, slots: u64, taken: u64) -> PyResult<DealtRecords> {
        let streams = self.0.clone();
        let work = records.saturating_mul(taken);
        run(py, work, move |run| Dealt::new(&streams, deal, records, slots, taken, run).map(DealtRecords))
    }
}

impl BatchCalendar {
    fn build(py: Python<'_>, streams: Streams, units: Units, rule: Rule) -> PyResult<Self> {
        let work = units.count();
        run(py, work, move |run| Calendar::new(streams, units, rule, run))
            .map(|built| Self(Arc::new(Mutex::new(built))))
    }
}

#[pymethods]
impl BatchCalendar {
    fn batch<'py>(&self, py: Python<'py>, round: u64) -> PyResult<Bound<'py, PyBytes>> {
        let calendar = Arc::clone(&self.0);
        let drawn = move |run: &Run| {
            let mut held = calendar.lock().unwrap_or_else(PoisonError::into_inner);
            held.batch(round, run).map(<[u64]>::to_vec)
        };
        let near = self.0.lock().unwrap_or_else(PoisonError::into_inner).near(round);
        Ok(listed(py, run(py, if near { 0 } else { LITTLE }, drawn)?))
    }
}

#[pymethods]
impl DealtRecords {
    fn slot<'py>(&self, py: Python<'py>, slot: usize) -> PyResult<Bound<'py, PyBytes>> {
        Ok(listed(py, self.0.slot(slot).map_err(raise)?.iter().map(|&record| u64::from(record))))
    }

    fn sampled<'py>(
        &self,
        py: Python<'py>,
        streams: &BatchStreams,
        round: u64,
        slot: usize,
        probability: f64,
    ) -> PyResult<Bound<'py, PyBytes>> {
        Ok(listed(py, self.0.sampled(&streams.0, round, slot, probability).map_err(raise)?))
    }
}
