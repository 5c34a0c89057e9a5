//! `pyaccount._core`: the arithmetic core as a Python extension module.
//!
//! This crate decides nothing. Each binding converts its arguments, calls the core (interruptibly if that can take
//! long), and converts the result back; `pyaccount/_core.pyi` documents it for Python.

use std::path::PathBuf;
use std::time::UNIX_EPOCH;

use pyaccount_core::gram::gram as core_gram;
use pyaccount_core::laws::binomial;
use pyaccount_core::laws::exact::upper_tail;
use pyaccount_core::pair::allocation::MOST_PARTICIPATIONS;
use pyaccount_core::pair::amplification::{amplified, Base};
use pyaccount_core::pair::exponential_runs;
use pyaccount_core::pair::public::MOST_WORK;
use pyaccount_core::participation::worst::worst_rounds as core_worst_rounds;
use pyaccount_core::pld::answer::Budget;
use pyaccount_core::pld::{answer, curve, Answer, Query, Round};
use pyaccount_core::run::Run;
use pyaccount_core::series::quotient;
use pyo3::buffer::PyBuffer;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{IntoPyDict, PyBytes};
use rayon::prelude::*;

mod adaptive;
mod added_mean;
mod allocation;
mod batches;
mod errors;
mod inspection;
mod interruptible;
mod kept;
mod noise;
mod profiles;
mod sampling;
mod values;

use errors::raise;
use profiles::{sampler_of, RoundProfile};

/// A proven interval with its error budget.
#[pyclass(frozen, get_all, module = "pyaccount._core")]
#[derive(Debug, Clone)]
struct ProvenInterval {
    lower: f64,
    upper: f64,
    within_tolerance: bool,
    spacing: f64,
    nodes: usize,
    transform_length: usize,
    tilt: f64,
    /// The work that it took, in cells, and whether it is wider because it was not allowed more.
    work: u64,
    coarser: bool,
    budget: std::collections::BTreeMap<&'static str, f64>,
}

#[pymethods]
impl ProvenInterval {
    /// Returns an interval that was proven without composing anything, so that its error budget is empty.
    #[staticmethod]
    fn proven(lower: f64, upper: f64) -> Self {
        Self::from(Answer { lower, upper, within_tolerance: true, ..Answer::default() })
    }

    /// Returns the same interval where its upper end is proven to be at most `upper` in another way.
    fn at_most(&self, upper: f64) -> Self {
        Self { upper: self.upper.min(upper), ..self.clone() }
    }
}

impl From<Answer> for ProvenInterval {
    fn from(answer: Answer) -> Self {
        // The fields are listed by name, so that a new source of error cannot be forgotten.
        let Budget {
            truncation,
            other_losses,
            window,
            aliasing,
            transform_rounding,
            mass_rounding,
            cells,
            profile_relative_error,
        } = answer.budget;
        Self {
            lower: answer.lower,
            upper: answer.upper,
            within_tolerance: answer.within_tolerance,
            spacing: answer.spacing,
            nodes: answer.nodes,
            transform_length: answer.transform_length,
            tilt: answer.tilt,
            work: 0,
            coarser: false,
            budget: [
                ("truncation", truncation),
                ("other_losses", other_losses),
                ("window", window),
                ("aliasing", aliasing),
                ("transform_rounding", transform_rounding),
                ("mass_rounding", mass_rounding),
                ("cells", cells),
                ("profile_relative_error", profile_relative_error),
            ]
            .into(),
        }
    }
}

/// One question to the composition engine: the rounds of one direction, ε or δ, and the relative tolerance.
type Question = (Vec<(RoundProfile, u64)>, Option<f64>, Option<f64>, f64);

fn convert(question: Question) -> PyResult<(Vec<Round>, Query, f64)> {
    let (rounds, epsilon, delta, tolerance) = question;
    let query = match (epsilon, delta) {
        (Some(epsilon), None) => Query::Delta(epsilon),
        (None, Some(delta)) => Query::Epsilon(delta),
        _ => return Err(errors::DomainError::new_err("a question gives exactly one of epsilon and delta")),
    };
    Ok((rounds_of(rounds), query, tolerance))
}

fn rounds_of(rounds: Vec<(RoundProfile, u64)>) -> Vec<Round> {
    rounds.into_iter().map(|(profile, count)| Round { profile: profile.0, count }).collect()
}

/// Returns the law of how often a group of records is drawn: (counts, log probabilities, relative error of the
/// probabilities).
#[pyfunction]
fn copies(
    sampler: &str,
    group_size: u32,
    dataset_size: u64,
    batch_size: u64,
    subset_size: u32,
) -> PyResult<(Vec<u32>, Vec<f64>, f64)> {
    let sampler = sampler_of(sampler, subset_size)?;
    let weights = sampler.copies(group_size, dataset_size, batch_size, &Run::default()).map_err(raise)?;
    Ok((weights.count, weights.log_probability, weights.relative_error))
}

/// Returns the largest number of runs that `RoundProfile.exponential_runs` takes for this range; at least 1.
#[pyfunction]
fn most_exponential_runs(range: f64) -> u64 {
    exponential_runs::most_runs(range)
}

/// Returns an upper bound on Pr[Bin(trials, probability) ≥ count].
#[pyfunction]
fn binomial_upper_tail(trials: u64, probability: f64, count: u64) -> PyResult<f64> {
    upper_tail(trials, probability, count).map_err(raise)
}

/// Returns how one draw by a sampler amplifies a base mechanism, for each ε: (δ_1, η, ε′, δ′), all upper bounds.
///
/// `draw` is (sampler, dataset, batch, subset), or a probability for Poisson sampling; `base` is a kind with its noise,
/// or stated values of δ.
#[pyfunction]
#[pyo3(signature = (epsilons, *, base, noise_multiplier = 0.0, deltas = vec![], probability = None, draw = None))]
fn amplify(
    epsilons: Vec<f64>,
    base: &str,
    noise_multiplier: f64,
    deltas: Vec<f64>,
    probability: Option<f64>,
    draw: Option<(String, u64, u64, u32)>,
) -> PyResult<Vec<(f64, f64, f64, f64)>> {
    let weights = match (probability, draw) {
        (Some(p), None) => binomial(1, p).map_err(raise)?,
        (None, Some((sampler, dataset, batch, subset))) => {
            sampler_of(&sampler, subset)?.copies(1, dataset, batch, &Run::default()).map_err(raise)?
        }
        _ => return Err(errors::DomainError::new_err("exactly one of probability and draw is given")),
    };
    let base = match base {
        "laplace" => Base::Laplace(noise_multiplier),
        "gaussian" => Base::Gaussian(noise_multiplier),
        "stated" => Base::Stated(deltas),
        _ => return Err(errors::DomainError::new_err("base: laplace, gaussian or stated")),
    };
    epsilons
        .into_iter()
        .map(|epsilon| {
            let row = amplified(&weights, &base, epsilon).map_err(raise)?;
            Ok((row.base_delta, row.eta, row.epsilon, row.delta))
        })
        .collect()
}

/// Answers several questions in parallel. Each may take `most_work` cells, if that is given.
#[pyfunction]
#[pyo3(signature = (questions, *, threads = 0, time_limit = None, most_work = None))]
fn answer_all(
    py: Python<'_>,
    questions: Vec<Question>,
    threads: usize,
    time_limit: Option<f64>,
    most_work: Option<u64>,
) -> PyResult<Vec<ProvenInterval>> {
    let questions: Vec<_> = questions.into_iter().map(convert).collect::<PyResult<_>>()?;
    let time_limit = time_limit.or_else(interruptible::remaining);
    interruptible::call(py, threads, time_limit, move |run| {
        let one = |(rounds, query, tolerance): &(Vec<Round>, Query, f64)| {
            let run = run.counted(most_work);
            let interval = ProvenInterval::from(answer(rounds, *query, *tolerance, &run)?);
            Ok(ProvenInterval { work: run.cells(), coarser: run.coarser() && !interval.within_tolerance, ..interval })
        };
        questions.par_iter().map(one).collect()
    })
}

/// One curve: the rounds of one direction, the values of ε, the relative tolerance, and the δ below which the tolerance
/// does not apply.
type CurveQuestion = (Vec<(RoundProfile, u64)>, Vec<f64>, f64, f64);

/// The (lower, upper) points of a curve, how many compositions and cells they took, and whether some are wider because they
/// were not allowed more.
type CurveAnswer = (Vec<(f64, f64)>, usize, u64, bool);

/// Computes several curves in parallel. Each may take `most_work` cells, if that is given.
#[pyfunction]
#[pyo3(signature = (questions, *, threads = 0, time_limit = None, most_work = None))]
fn curve_all(
    py: Python<'_>,
    questions: Vec<CurveQuestion>,
    threads: usize,
    time_limit: Option<f64>,
    most_work: Option<u64>,
) -> PyResult<Vec<CurveAnswer>> {
    let questions: Vec<_> = questions
        .into_iter()
        .map(|(rounds, epsilons, tolerance, ignored)| (rounds_of(rounds), epsilons, tolerance, ignored))
        .collect();
    let time_limit = time_limit.or_else(interruptible::remaining);
    interruptible::call(py, threads, time_limit, move |run| {
        let one = |(rounds, epsilons, tolerance, ignored): &(Vec<Round>, Vec<f64>, f64, f64)| {
            let run = run.counted(most_work);
            let curve = curve(rounds, epsilons, *tolerance, *ignored, &run)?;
            Ok((curve.points, curve.compositions, run.cells(), run.coarser()))
        };
        questions.par_iter().map(one).collect()
    })
}

/// Returns the Gram matrix of `rows` vectors of equal length, given as doubles one after the other; see
/// `pyaccount_core::gram`.
#[pyfunction]
#[allow(clippy::needless_pass_by_value)] // converted from Python
fn gram(py: Python<'_>, entries: PyBuffer<f64>, rows: usize) -> PyResult<Bound<'_, PyBytes>> {
    let entries = entries.to_vec(py)?;
    if rows == 0 || !entries.len().is_multiple_of(rows) {
        return Err(PyValueError::new_err("entries are those of so many rows of one length"));
    }
    let products = interruptible::call(py, 0, interruptible::remaining(), move |run| core_gram(&entries, rows, run))?;
    Ok(doubles(py, &products))
}

/// Returns bounds on the largest Σ `G_ij` over at most `participations` rounds that are at least `min_separation` apart,
/// where `G` is the Gram matrix: an upper bound, a lower bound, and the rounds that attain the lower bound; see
/// `pyaccount_core::participation::worst`.
#[pyfunction]
#[allow(clippy::needless_pass_by_value)] // converted from Python
fn worst_rounds(
    py: Python<'_>,
    gram: PyBuffer<f64>,
    rounds: usize,
    min_separation: usize,
    participations: usize,
    work: u64,
) -> PyResult<(f64, f64, Vec<usize>)> {
    let gram = gram.to_vec(py)?;
    if rounds == 0 || gram.len() != rounds * rounds || min_separation == 0 || participations == 0 {
        return Err(PyValueError::new_err("a square matrix, and rounds to take part in"));
    }
    let worst = interruptible::call(py, 0, interruptible::remaining(), move |run| {
        core_worst_rounds(&gram, rounds, min_separation, participations, work, run)
    })?;
    Ok((worst.upper, worst.lower, worst.rounds))
}

/// Returns the coefficients of a quotient of power series, as many as `series` has; see `pyaccount_core::series`.
#[pyfunction]
#[allow(clippy::needless_pass_by_value)] // converted from Python
fn series_quotient(py: Python<'_>, series: PyBuffer<f64>, divisor: PyBuffer<f64>) -> PyResult<Bound<'_, PyBytes>> {
    let (series, divisor) = (series.to_vec(py)?, divisor.to_vec(py)?);
    if divisor.first().is_none_or(|first| *first == 0.0) {
        return Err(PyValueError::new_err("the first coefficient of a divisor is not 0"));
    }
    let coefficients =
        interruptible::call(py, 0, interruptible::remaining(), move |run| quotient(&series, &divisor, run))?;
    Ok(doubles(py, &coefficients))
}

/// Returns the bytes of the numbers, one after the other.
fn doubles<'py>(py: Python<'py>, values: &[f64]) -> Bound<'py, PyBytes> {
    let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_ne_bytes()).collect();
    PyBytes::new(py, &bytes)
}

/// Returns when a file was created, in nanoseconds since 1970, where the file system records it: Python does not report
/// it on Linux.
#[pyfunction]
#[allow(clippy::needless_pass_by_value)] // converted from Python
fn created(path: PathBuf) -> Option<u64> {
    let time = std::fs::metadata(path).and_then(|found| found.created()).ok()?;
    u64::try_from(time.duration_since(UNIX_EPOCH).ok()?.as_nanos()).ok()
}

/// Python calls this in a process that it has forked.
#[pyfunction]
fn forked() {
    pyaccount_core::process::forked();
}

#[pymodule]
fn _core(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let os = module.py().import("os")?;
    if os.hasattr("register_at_fork")? {
        let hook = [("after_in_child", wrap_pyfunction!(forked, module)?)].into_py_dict(module.py())?;
        os.call_method("register_at_fork", (), Some(&hook))?;
    }
    module.add_class::<RoundProfile>()?;
    module.add_class::<adaptive::FixedSizeCurve>()?;
    module.add_class::<ProvenInterval>()?;
    module.add_function(wrap_pyfunction!(answer_all, module)?)?;
    module.add_function(wrap_pyfunction!(curve_all, module)?)?;
    module.add_function(wrap_pyfunction!(copies, module)?)?;
    module.add_function(wrap_pyfunction!(binomial_upper_tail, module)?)?;
    module.add_function(wrap_pyfunction!(most_exponential_runs, module)?)?;
    module.add_function(wrap_pyfunction!(amplify, module)?)?;
    module.add_function(wrap_pyfunction!(gram, module)?)?;
    module.add_function(wrap_pyfunction!(worst_rounds, module)?)?;
    module.add_function(wrap_pyfunction!(series_quotient, module)?)?;
    module.add_function(wrap_pyfunction!(created, module)?)?;
    module.add_class::<sampling::Columns>()?;
    module.add_class::<sampling::Sampled>()?;
    module.add_class::<added_mean::AddedMean>()?;
    module.add_class::<values::DeltaGradient>()?;
    module.add_class::<values::LossHistogram>()?;
    module.add_class::<interruptible::Cancellation>()?;
    module.add_class::<interruptible::Deadline>()?;
    module.add_class::<values::ComposedCurve>()?;
    module.add_class::<noise::NoiseRows>()?;
    module.add_class::<inspection::Inspection>()?;
    module.add_class::<batches::BatchStreams>()?;
    module.add_class::<batches::BatchCalendar>()?;
    module.add_class::<batches::DealtRecords>()?;
    let (shard_size, shard_units) = sampling::facts();
    module.add("SHARD_UNITS", shard_units)?;
    module.add("SHARD_SIZE", shard_size)?;
    module.add("MOST_LISTED", pyaccount_core::batches::MOST_LISTED)?;
    module.add("MOST_WORK", MOST_WORK)?;
    module.add("MOST_PARTICIPATIONS", MOST_PARTICIPATIONS)?;
    module.add("MOST_LIKELY", pyaccount_core::montecarlo::family::MOST_LIKELY)?;
    module.add("__version__", env!("CARGO_PKG_VERSION"))
}
