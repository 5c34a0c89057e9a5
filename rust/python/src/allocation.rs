//! Keeps the laws of allocations: four profiles are read off each law, and a search returns to a few of them.

use pyaccount_core::pair::allocation::{Allocation, Several, Terms};
use pyaccount_core::process::PerProcess;
use pyaccount_core::run::Run;
use pyaccount_core::Result;
use pyo3::prelude::*;

use crate::interruptible;

/// The number of laws that are kept.
const KEPT: usize = 4;

struct Made<L> {
    key: Key,
    law: L,
}

/// What a law depends on: terms, participations, spacing, and the mass that is negligible.
type Key = (Vec<Terms>, usize, f64, f64);

type Laws<L> = PerProcess<Vec<Made<L>>>;

static SINGLE: Laws<Allocation> = PerProcess::new();
static SEVERAL: Laws<Several> = PerProcess::new();

/// Returns the law of this key, and computes it if it is not among the last ones.
fn kept<L: Clone + Send + 'static>(
    py: Python<'_>,
    laws: &Laws<L>,
    key: Key,
    make: impl FnOnce(&Key, &Run) -> Result<L> + Send + 'static,
) -> PyResult<L> {
    let known = laws.with(|all| all.iter().find(|one| one.key == key).map(|one| one.law.clone()));
    if let Some(law) = known {
        return Ok(law);
    }
    let own = key.clone();
    let law = interruptible::call(py, 0, interruptible::remaining(), move |run| make(&own, run))?;
    laws.with(|all| {
        all.truncate(KEPT - 1);
        all.insert(0, Made { key, law: law.clone() });
    });
    Ok(law)
}

/// Returns the law of one of these terms, with both bounds.
pub fn single(py: Python<'_>, terms: Vec<Terms>, spacing: f64, negligible: f64) -> PyResult<Allocation> {
    kept(py, &SINGLE, (terms, 1, spacing, negligible), |(terms, _, spacing, negligible), run| {
        Allocation::new(terms, *spacing, *negligible, run)
    })
}

/// Returns the law of several of these terms, as a lower bound.
pub fn several(
    py: Python<'_>,
    terms: Vec<Terms>,
    participations: usize,
    spacing: f64,
    negligible: f64,
) -> PyResult<Several> {
    kept(py, &SEVERAL, (terms, participations, spacing, negligible), |(terms, count, spacing, negligible), run| {
        Several::new(terms, *count, *spacing, *negligible, run)
    })
}
