//! Batches of a fixed size over adaptive gradients: a curve with its errors.

use pyaccount_core::adaptive::{above, below, DeltaBounds, Effort, Phase, Target};
use pyaccount_core::pair::check::Checked;
use pyaccount_core::pair::substitution::Change;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::interruptible;
use crate::profiles::sampler_of;

/// Bounds on δ from one side, and the profiles of all rounds that follow from them.
#[pyclass(frozen, module = "pyaccount._core")]
#[derive(Debug)]
pub struct FixedSizeCurve {
    bounds: DeltaBounds,
    /// Of a removed record, and of an added one.
    pub(crate) profiles: [Checked; 2],
}

#[pymethods]
impl FixedSizeCurve {
    /// Computes the curve, around a δ or an ε; phases are (sampler, group, data set, batch, subset, noise multiplier, number of
    /// rounds). Records are replaced, or `zeroed`.
    #[new]
    #[pyo3(signature = (phases, *, zeroed, below, delta = None, epsilon = None, threads = 0, time_limit = None))]
    #[allow(clippy::too_many_arguments)] // named in Python
    fn new(
        py: Python<'_>,
        phases: Vec<(String, u32, u64, u64, u32, f64, u64)>,
        zeroed: bool,
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
        let samplers = phases.iter().map(|phase| sampler_of(&phase.0, phase.4)).collect::<PyResult<Vec<_>>>()?;
        interruptible::call(py, threads, time_limit.or_else(interruptible::remaining), move |run| {
            let made = phases.iter().zip(samplers).map(|(&(_, group, dataset, batch, _, sigma, count), sampler)| {
                Phase::new(sampler.copies(group, dataset, batch, run)?, sigma, count)
            });
            let phases = made.collect::<pyaccount_core::Result<Vec<_>>>()?;
            let change = if zeroed { Change::Zeroed } else { Change::Replaced };
            let bounds = side(change, &phases, target, Effort::usual(&phases), run)?;
            let profiles = bounds.profiles()?;
            Ok(Self { bounds, profiles })
        })
    }

    /// (ε, δ) at increasing ε, of a removed record and of an added one, or of both.
    #[getter]
    fn points(&self) -> Vec<Vec<(f64, f64)>> {
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
