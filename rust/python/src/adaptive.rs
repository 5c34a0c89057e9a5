//! Batches of a fixed size over adaptive gradients: a curve with its errors.

use pyaccount_core::adaptive::{above, below, Effort, Phase, Target};
use pyaccount_core::pld::mesh::Side;
use pyaccount_core::run::Run;
use pyo3::prelude::*;

use crate::interruptible;

/// Phases as Python states them: data set, batch, noise multiplier and number of rounds.
pub type Phases = Vec<(u64, u64, f64, u64)>;

/// Returns the bounds of these phases from one side.
pub fn bounds(
    phases: &Phases,
    delta: f64,
    side: Side,
    run: &Run,
) -> pyaccount_core::Result<pyaccount_core::adaptive::DeltaBounds> {
    let phases = phases.iter().map(|&(n, b, sigma, count)| Phase::new(n, b, sigma, count));
    let phases = phases.collect::<pyaccount_core::Result<Vec<_>>>()?;
    let curve = if side == Side::Lower { below } else { above };
    curve(&phases, Target::Delta(delta), Effort::usual(&phases), run)
}

/// The curve (ε, δ); the errors at an ε, in units of δ (transforms, window, infinite losses, rounding); the spacing, the tilt,
/// the length of transforms and the number of laws of a round.
type Found = (Vec<(f64, f64)>, [f64; 4], (f64, f64, usize, usize));

/// Computes a curve from one side, around a δ.
#[pyfunction]
#[pyo3(signature = (phases, delta, *, below, epsilon, threads = 0, time_limit = None))]
pub fn fixed_size_curve(
    py: Python<'_>,
    phases: Phases,
    delta: f64,
    below: bool,
    epsilon: f64,
    threads: usize,
    time_limit: Option<f64>,
) -> PyResult<Found> {
    let side = if below { Side::Lower } else { Side::Upper };
    interruptible::call(py, threads, time_limit.or_else(interruptible::remaining), move |run| {
        let found = bounds(&phases, delta, side, run)?;
        let (lattice, errors) = (found.lattice, found.errors(epsilon));
        Ok((found.points, errors, (lattice.spacing, lattice.tilt, lattice.length, found.laws)))
    })
}
