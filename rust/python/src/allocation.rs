//! Keeps the laws of allocations: four profiles are read off each law.

use pyaccount_core::pair::allocation::{Allocation, Several, Terms};
use pyo3::prelude::*;

use crate::kept::Kept;

/// What a law depends on: terms, participations, spacing, and the mass that is negligible.
type Key = (Vec<Terms>, usize, f64, f64);

static SINGLE: Kept<Key, Allocation> = Kept::new();
static SEVERAL: Kept<Key, Several> = Kept::new();

/// Returns the law of one of these terms, with both bounds.
pub fn single(py: Python<'_>, terms: Vec<Terms>, spacing: f64, negligible: f64) -> PyResult<Allocation> {
    SINGLE.get(py, (terms, 1, spacing, negligible), |(terms, _, spacing, negligible), run| {
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
    SEVERAL.get(py, (terms, participations, spacing, negligible), |(terms, count, spacing, negligible), run| {
        Several::new(terms, *count, *spacing, *negligible, run)
    })
}
