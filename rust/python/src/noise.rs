//! Bindings of the noise room.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pyaccount_core::noise::rows::{add_noise, Element, Fresh, Kept, Rows};
use pyaccount_core::run::Run;
use pyaccount_core::secret::SecretKey;
use pyo3::buffer::PyBuffer;
use pyo3::prelude::*;

use crate::errors::{raise, DomainError};
use crate::interruptible::call;

/// The number of products that take less time than handing them to the pool may take while other work keeps all cores
/// busy: about a millisecond.
const FEW: usize = 1 << 18;

/// Rows of one type of numbers. The lock is held during all work on them, so that no round is drawn twice.
#[derive(Debug, Clone)]
struct Shared<T>(Arc<Mutex<Rows<T>>>);

impl<T: Element> Shared<T> {
    fn new(rows: Rows<T>) -> Self {
        Self(Arc::new(Mutex::new(rows)))
    }

    /// Locks the rows. Work either ends with an error or leaves the rows whole, so a panic elsewhere does not spoil
    /// them.
    fn lock(&self) -> MutexGuard<'_, Rows<T>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Rows of either type.
#[derive(Debug)]
enum Typed {
    Single(Shared<f32>),
    Double(Shared<f64>),
}

/// Noise for a range of elements, round by round.
// The class is not frozen: `next` borrows it mutably while it works, so that no other thread intervenes between a row
// and its copy.
#[pyclass(module = "pyaccount._core")]
#[derive(Debug)]
pub struct NoiseRows {
    rows: Typed,
    length: usize,
}

/// Runs the same lines for both types of numbers.
macro_rules! with_rows {
    ($typed:expr, $rows:ident => $body:expr) => {
        match $typed {
            Typed::Single($rows) => $body,
            Typed::Double($rows) => $body,
        }
    };
}

#[pymethods]
impl NoiseRows {
    #[new]
    #[pyo3(signature = (first, length, *, single, kept = 0, decays = None))]
    #[allow(clippy::needless_pass_by_value)] // converted from a sequence
    fn new(first: u64, length: usize, single: bool, kept: usize, decays: Option<Vec<f64>>) -> PyResult<Self> {
        // The words of a position are counted in 64 bits.
        if u64::try_from(length).ok().and_then(|length| first.checked_add(length)).is_none_or(|end| end > 1 << 60) {
            return Err(DomainError::new_err("a row has at most 2^60 elements"));
        }
        let rows = match (single, decays) {
            (true, None) => Typed::Single(Shared::new(Rows::keeping_rows(first, length, kept))),
            (false, None) => Typed::Double(Shared::new(Rows::keeping_rows(first, length, kept))),
            (true, Some(decays)) => Typed::Single(Shared::new(Rows::keeping_sums(first, length, &decays))),
            (false, Some(decays)) => Typed::Double(Shared::new(Rows::keeping_sums(first, length, &decays))),
        };
        Ok(Self { rows, length })
    }

    /// Draws the row of a round, from rows of Z that are each (key, round, weight), and writes it into `out` if that is
    /// given; see `pyaccount_core::noise::rows`.
    #[pyo3(signature = (fresh, coefficients, out = None))]
    #[allow(clippy::needless_pass_by_value)] // converted from Python
    fn next(
        &mut self,
        py: Python<'_>,
        fresh: Vec<([u8; 32], u64, f64)>,
        coefficients: Vec<f64>,
        out: Option<Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let fresh: Vec<_> =
            fresh.into_iter().map(|(key, round, weight)| Fresh { key: SecretKey::new(key), round, weight }).collect();
        let few = self.length.saturating_mul(fresh.len() + coefficients.len()) <= FEW;
        match &self.rows {
            Typed::Single(rows) => next(py, rows, few, fresh, coefficients, out.as_ref()),
            Typed::Double(rows) => next(py, rows, few, fresh, coefficients, out.as_ref()),
        }
    }

    /// Adds the row that was drawn last, from element `start` of the range on, to `sums`; see
    /// `pyaccount_core::noise::rows::add_noise`. Sums are copied on the way, so give parts that a cache can hold.
    fn add(
        &mut self,
        py: Python<'_>,
        start: usize,
        length: usize,
        sums: &Bound<'_, PyAny>,
        step: f64,
        divisor: f64,
    ) -> PyResult<()> {
        let Typed::Double(rows) = &self.rows else {
            return Err(DomainError::new_err("noise is added in double precision: draw rows of doubles"));
        };
        let rows = rows.lock();
        let Some(noise) = start.checked_add(length).and_then(|end| rows.newest().get(start..end)) else {
            return Err(DomainError::new_err("the part is within the range"));
        };
        match writable::<f64>(sums, length) {
            Ok(sums) => add(py, noise, step, divisor, &sums),
            Err(_) => add(py, noise, step, divisor, &writable::<f32>(sums, length)?),
        }
    }

    /// Resets the memory to its state before the first round.
    fn clear(&self) {
        with_rows!(&self.rows, rows => rows.lock().clear());
    }

    /// Writes the row or sum at a position of the memory into `out`.
    #[allow(clippy::needless_pass_by_value)] // converted from Python
    fn kept(&mut self, py: Python<'_>, place: usize, out: Bound<'_, PyAny>) -> PyResult<()> {
        with_rows!(&self.rows, rows => match rows.lock().kept_at(place) {
            Some(Kept::Row(row)) => PyBuffer::get(&out)?.copy_from_slice(py, row),
            Some(Kept::Sum(sum)) => PyBuffer::get(&out)?.copy_from_slice(py, sum),
            None => Err(no_such_place()),
        })
    }

    /// Restores what `kept` wrote.
    #[allow(clippy::needless_pass_by_value)] // converted from Python
    fn restore(&mut self, py: Python<'_>, place: usize, values: Bound<'_, PyAny>) -> PyResult<()> {
        with_rows!(&self.rows, rows => match rows.lock().kept_at(place) {
            Some(Kept::Row(row)) => PyBuffer::get(&values)?.copy_to_slice(py, row),
            Some(Kept::Sum(sum)) => PyBuffer::get(&values)?.copy_to_slice(py, sum),
            None => Err(no_such_place()),
        })
    }
}

fn no_such_place() -> PyErr {
    DomainError::new_err("no row or sum is kept at this place")
}

fn next<T: Element + pyo3::buffer::Element>(
    py: Python<'_>,
    rows: &Shared<T>,
    few: bool,
    fresh: Vec<Fresh>,
    coefficients: Vec<f64>,
    out: Option<&Bound<'_, PyAny>>,
) -> PyResult<()> {
    // This is checked before the memory advances by a round.
    let out = out.map(|out| writable::<T>(out, rows.lock().newest().len())).transpose()?;
    let working = rows.clone();
    let work = move |run: &Run| working.lock().next(&fresh, &coefficients, run).map(|_| ());
    if few {
        work(&Run::default()).map_err(raise)?;
    } else {
        call(py, 0, None, work)?;
    }
    match out {
        Some(out) => out.copy_from_slice(py, rows.lock().newest()),
        None => Ok(()),
    }
}

/// Returns the array as a buffer, if it can be written and has this length.
fn writable<T: pyo3::buffer::Element>(array: &Bound<'_, PyAny>, length: usize) -> PyResult<PyBuffer<T>> {
    let buffer = PyBuffer::<T>::get(array)?;
    if buffer.readonly() || !buffer.is_c_contiguous() || buffer.item_count() != length {
        return Err(DomainError::new_err("out is a writable array in C order, as long as the range"));
    }
    Ok(buffer)
}

fn add<T: Element + pyo3::buffer::Element>(
    py: Python<'_>,
    noise: &[f64],
    step: f64,
    divisor: f64,
    sums: &PyBuffer<T>,
) -> PyResult<()> {
    let mut values = vec![T::default(); noise.len()];
    sums.copy_to_slice(py, &mut values)?;
    add_noise(noise, step, T::of(divisor), &mut values);
    sums.copy_from_slice(py, &values)
}
