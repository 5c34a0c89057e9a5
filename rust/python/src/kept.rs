//! Keeps the results of long computations: several profiles are read off one of them, and a search returns to a few.

use pyaccount_core::process::PerProcess;
use pyaccount_core::run::Run;
use pyaccount_core::Result;
use pyo3::prelude::*;

use crate::interruptible;

/// The number of results that are kept.
const KEPT: usize = 4;

/// The last results of one computation, by what they depend on.
pub struct Kept<K, L>(PerProcess<Vec<(K, L)>>);

impl<K: Clone + PartialEq + Send + 'static, L: Clone + Send + 'static> Kept<K, L> {
    pub const fn new() -> Self {
        Self(PerProcess::new())
    }

    /// Returns the result for this key, and computes it if it is not among the last ones.
    pub fn get(
        &self,
        py: Python<'_>,
        key: K,
        make: impl FnOnce(&K, &Run) -> Result<L> + Send + 'static,
    ) -> PyResult<L> {
        let known = self.0.with(|all| all.iter().find(|one| one.0 == key).map(|one| one.1.clone()));
        if let Some(result) = known {
            return Ok(result);
        }
        let own = key.clone();
        let result = interruptible::call(py, 0, interruptible::remaining(), move |run| make(&own, run))?;
        self.0.with(|all| {
            all.truncate(KEPT - 1);
            all.insert(0, (key, result.clone()));
        });
        Ok(result)
    }
}
