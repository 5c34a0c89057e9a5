//! The laws of allocations, kept: four profiles are read off each, and a search comes back to few.

use std::sync::Mutex;

use pyaccount_core::pair::allocation::{Allocation, Terms};
use pyo3::prelude::*;

use crate::interruptible;

/// How many are kept.
const KEPT: usize = 4;

struct Made {
    terms: Vec<Terms>,
    spacing: f64,
    negligible: f64,
    law: Allocation,
}

static LAWS: Mutex<Vec<Made>> = Mutex::new(Vec::new());

fn laws() -> std::sync::MutexGuard<'static, Vec<Made>> {
    LAWS.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// The law of these terms; made if it is not one of the last.
#[allow(clippy::float_cmp)] // the same argument
pub fn kept(py: Python<'_>, terms: &[Terms], spacing: f64, negligible: f64) -> PyResult<Allocation> {
    let found = laws()
        .iter()
        .find(|one| one.terms == terms && one.spacing == spacing && one.negligible == negligible)
        .map(|one| one.law.clone());
    if let Some(law) = found {
        return Ok(law);
    }
    let own = terms.to_vec();
    let law = interruptible::call(py, 0, None, move |run| Allocation::new(&own, spacing, negligible, run))?;
    let mut all = laws();
    all.truncate(KEPT - 1);
    all.insert(0, Made { terms: terms.to_vec(), spacing, negligible, law: law.clone() });
    Ok(law)
}
