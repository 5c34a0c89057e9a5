//! Values that sampling takes and gives, as objects of Python: composed curves, gradients of δ, histograms of losses.

use std::sync::Arc;

use pyaccount_core::montecarlo::claims::histogram::{Edges, Histogram, BINS};
use pyaccount_core::montecarlo::gradients::estimates::{Estimate, GradientEstimate};
use pyaccount_core::montecarlo::value::Curve;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::errors::raise;

/// The curve of the composed profile.
#[pyclass(frozen, module = "pyaccount._core")]
#[derive(Debug)]
pub struct ComposedCurve(pub(crate) Arc<Curve>);

#[pymethods]
impl ComposedCurve {
    #[new]
    #[allow(clippy::needless_pass_by_value)] // converted from Python
    fn new(first: f64, spacing: f64, upper: Vec<f64>, lower: Vec<(f64, f64)>) -> PyResult<Self> {
        Curve::new(first, spacing, &upper, &lower).map(|curve| Self(Arc::new(curve))).map_err(raise)
    }

    #[getter]
    fn tail_mass(&self) -> f64 {
        self.0.tail_mass()
    }

    #[getter]
    fn gap(&self) -> f64 {
        self.0.gap()
    }
}

/// Estimates of δ and its derivatives, each with its standard error.
#[pyclass(frozen, get_all, module = "pyaccount._core")]
#[derive(Debug)]
pub struct DeltaGradient {
    samples: u64,
    effective_samples: f64,
    delta: (f64, f64),
    log_noise: (f64, f64),
    derivatives: Vec<f64>,
    standard_errors: Vec<f64>,
    covariances: Vec<f64>,
}

#[pymethods]
impl DeltaGradient {
    #[new]
    fn new(
        samples: u64,
        effective_samples: f64,
        delta: (f64, f64),
        log_noise: (f64, f64),
        derivatives: Vec<f64>,
        standard_errors: Vec<f64>,
        covariances: Vec<f64>,
    ) -> Self {
        Self { samples, effective_samples, delta, log_noise, derivatives, standard_errors, covariances }
    }
}

impl From<GradientEstimate> for DeltaGradient {
    fn from(found: GradientEstimate) -> Self {
        let pair = |one: Estimate| (one.value, one.standard_error);
        let (derivatives, standard_errors) = found.derivatives.into_iter().map(pair).unzip();
        Self {
            samples: found.samples,
            effective_samples: found.effective_samples,
            delta: pair(found.delta),
            log_noise: pair(found.log_noise),
            derivatives,
            standard_errors,
            covariances: found.covariances,
        }
    }
}

/// A histogram of privacy losses.
#[pyclass(frozen, module = "pyaccount._core")]
#[derive(Debug)]
pub struct LossHistogram(pub(crate) Histogram);

/// The contents of a histogram: its edges, its number of samples, and for each bin that has any (bin, count, Σ w, Σ
/// w²).
type Bins = ((f64, f64), u64, Vec<(usize, u64, f64, f64)>);

#[pymethods]
impl LossHistogram {
    #[new]
    #[allow(clippy::needless_pass_by_value)] // converted from Python
    fn new(edges: (f64, f64), samples: u64, bins: Vec<(usize, u64, f64, f64)>) -> PyResult<Self> {
        let mut histogram = Histogram::new(Edges { lowest: edges.0, width: edges.1 });
        histogram.samples = samples;
        for (bin, count, weight, square) in bins {
            if bin >= BINS {
                return Err(PyValueError::new_err("a histogram has no such bin"));
            }
            histogram.counts[bin] = count;
            histogram.weights[bin] = weight;
            histogram.squares[bin] = square;
        }
        Ok(Self(histogram))
    }

    fn state(&self) -> Bins {
        let Histogram { edges, samples, counts, weights, squares } = &self.0;
        let bins = (0..BINS).filter(|&k| counts[k] > 0).map(|k| (k, counts[k], weights[k], squares[k])).collect();
        ((edges.lowest, edges.width), *samples, bins)
    }

    fn __getnewargs__(&self) -> Bins {
        self.state()
    }

    #[getter]
    fn samples(&self) -> u64 {
        self.0.samples
    }

    fn merged(&self, other: &Self) -> PyResult<Self> {
        if self.0.edges != other.0.edges {
            return Err(PyValueError::new_err("histograms with different bins cannot be merged"));
        }
        let mut merged = self.0.clone();
        merged.merge(&other.0);
        Ok(Self(merged))
    }

    #[pyo3(signature = (epsilon, curve = None))]
    fn moments(&self, epsilon: f64, curve: Option<&ComposedCurve>) -> (f64, f64, f64) {
        let moments = self.0.moments(epsilon, curve.map(|curve| &*curve.0));
        (moments.mean_below, moments.mean_above, moments.square_above)
    }
}
