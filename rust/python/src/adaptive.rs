//! Batches of a fixed size over adaptive gradients: a curve with its errors.

use pyaccount_core::adaptive::{above, below, DeltaBounds, Effort, Phase, Target};
use pyaccount_core::pair::check::Checked;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::interruptible;

/// Bounds on δ from one side, and the profile of all rounds that follows from them.
#[pyclass(frozen, module = "pyaccount._core")]
#[derive(Debug)]
pub struct FixedSizeCurve {
    bounds: DeltaBounds,
    pub(crate) profile: Checked,
}

#[pymethods]
impl FixedSizeCurve {
    /// Computes the curve, around a δ or an ε; phases are (data set, batch, noise multiplier, number of rounds).
    #[new]
    #[pyo3(signature = (phases, *, below, delta = None, epsilon = None, threads = 0, time_limit = None))]
    #[allow(clippy::fn_params_excessive_bools)] // named in Python
    fn new(
        py: Python<'_>,
        phases: Vec<(u64, u64, f64, u64)>,
        below: bool,
        delta: Option<f64>,
        epsilon: Option<f64>,
        threads: usize,
        time_limit: Option<f64>,
    ) -> PyResult<Self> {
        let target = match (delta, epsilon) {
            (Some(delta), None) => Target::Delta(delta),
            (None, Some(epsilon)) => Target::Epsilon(epsilon),
            _ => return Err(PyValueError::new_err("give delta or epsilon")),
        };
        let side = if below { self::below } else { above };
        interruptible::call(py, threads, time_limit.or_else(interruptible::remaining), move |run| {
            let phases = phases.iter().map(|&(n, b, sigma, count)| Phase::new(n, b, sigma, count));
            let phases = phases.collect::<pyaccount_core::Result<Vec<_>>>()?;
            let bounds = side(&phases, target, Effort::usual(&phases), run)?;
            let profile = bounds.profile()?;
            Ok(Self { bounds, profile })
        })
    }

    /// (ε, δ) at increasing ε.
    #[getter]
    fn points(&self) -> Vec<(f64, f64)> {
        self.bounds.points.clone()
    }

    /// The spacing of the lattice, the tilt, the length of transforms, and the largest number of laws of a round.
    #[getter]
    fn lattice(&self) -> (f64, f64, usize, usize) {
        let lattice = self.bounds.lattice;
        (lattice.spacing, lattice.tilt, lattice.length, self.bounds.laws)
    }

    /// Returns the parts of the error at ε, in units of δ: transforms, window, infinite losses, rounding of masses.
    fn errors(&self, epsilon: f64) -> [f64; 4] {
        self.bounds.errors(epsilon)
    }
}
