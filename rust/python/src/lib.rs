//! `pyaccount._core`: the arithmetic core as a Python extension module.
//!
//! This crate decides nothing. Each binding converts its arguments, calls the core (interruptibly if that can take
//! long), and converts the result back; `pyaccount/_core.pyi` documents it for Python.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::UNIX_EPOCH;

use num_rational::BigRational;
use pyaccount_core::gram::gram as core_gram;
use pyaccount_core::laws::binomial;
use pyaccount_core::laws::exact::upper_tail;
use pyaccount_core::pair::allocation::{Terms, MOST_PARTICIPATIONS};
use pyaccount_core::pair::amplification::{amplified, Base};
use pyaccount_core::pair::batch::Sampler;
use pyaccount_core::pair::check::checked;
use pyaccount_core::pair::discrete::DiscretePair;
use pyaccount_core::pair::discrete_gaussian::DiscreteGaussian;
use pyaccount_core::pair::discrete_laplace::DiscreteLaplace;
use pyaccount_core::pair::exponential::Exponential;
use pyaccount_core::pair::exponential_runs;
use pyaccount_core::pair::gaussian::GaussianPair;
use pyaccount_core::pair::laplace::Laplace;
use pyaccount_core::pair::mixture::MixturePair;
use pyaccount_core::pair::opposed::Opposed;
use pyaccount_core::pair::public::{PublicParticipation, MOST_WORK};
use pyaccount_core::pair::rare::poisson;
use pyaccount_core::pair::renyi;
use pyaccount_core::pair::selection::{selection, Runs};
use pyaccount_core::pair::sometimes::Sometimes;
use pyaccount_core::pair::subsampled::subsampled;
use pyaccount_core::pair::substitution::{displaced, Change};
use pyaccount_core::pair::summed::SummedOutputs;
use pyaccount_core::pair::tabulated::Tabulated;
use pyaccount_core::pair::truncated::TruncatedPoisson;
use pyaccount_core::pair::{reversed, Profile as CoreProfile, Reversal};
use pyaccount_core::participation::renewal::Renewal;
use pyaccount_core::participation::worst::worst_rounds as core_worst_rounds;
use pyaccount_core::pld::answer::Budget;
use pyaccount_core::pld::composition::composition;
use pyaccount_core::pld::masses::Side;
use pyaccount_core::pld::{answer, curve, Answer, DeltaCurve, Query, Round};
use pyaccount_core::run::Run;
use pyaccount_core::series::quotient;
use pyo3::buffer::PyBuffer;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{IntoPyDict, PyBytes};
use rayon::prelude::*;

mod added_mean;
mod allocation;
mod batches;
mod errors;
mod inspection;
mod interruptible;
mod kept;
mod noise;
mod sampling;
mod values;

use errors::raise;
use kept::Kept;

/// The profile of one direction of one round.
#[pyclass(frozen, from_py_object, module = "pyaccount._core")]
#[derive(Debug, Clone)]
struct RoundProfile(Arc<dyn CoreProfile>);

impl RoundProfile {
    /// Returns a profile that has what every profile has. Every profile is made here.
    fn checked(profile: Arc<dyn CoreProfile>) -> PyResult<Self> {
        checked(profile).map(Self).map_err(raise)
    }

    fn of<P: CoreProfile + 'static>(profile: pyaccount_core::Result<P>) -> PyResult<Self> {
        Self::checked(Arc::new(profile.map_err(raise)?))
    }

    /// Returns a mixture pair in the direction asked for.
    fn directed(pair: pyaccount_core::Result<MixturePair>, reverse: bool) -> PyResult<Self> {
        Self::of(pair.map(|pair| if reverse { pair.reversed() } else { pair }))
    }
}

/// The last profiles of several mechanisms of bounded range, by the range and the number of runs.
static EXPONENTIAL_RUNS: Kept<(f64, u64), Arc<Tabulated>> = Kept::new();

fn sampler_of(name: &str, subset: u32) -> PyResult<Sampler> {
    match name {
        "fixed-size" => Ok(Sampler::FixedSize),
        "with-replacement" => Ok(Sampler::WithReplacement),
        "must-ow" => Ok(Sampler::MustOw { subset }),
        "must-ww" => Ok(Sampler::MustWw { subset }),
        _ => Err(errors::DomainError::new_err(format!("no sampler with batches of fixed size is called {name:?}"))),
    }
}

#[pymethods]
impl RoundProfile {
    #[staticmethod]
    fn gaussian(sensitivity: f64, noise_multiplier: f64) -> PyResult<Self> {
        Self::of(GaussianPair::new(sensitivity, noise_multiplier))
    }

    #[staticmethod]
    #[pyo3(signature = (group_size, sampling_probability, noise_multiplier, *, two_sided, reverse))]
    fn poisson(
        group_size: u32,
        sampling_probability: f64,
        noise_multiplier: f64,
        two_sided: bool,
        reverse: bool,
    ) -> PyResult<Self> {
        poisson(group_size, sampling_probability, noise_multiplier, two_sided, reverse)
            .map_err(raise)
            .and_then(Self::checked)
    }

    /// Returns Σ_j p_j N(shift·j, σ²) against N(0, σ²), where p is the law of how often a group is drawn.
    #[staticmethod]
    #[pyo3(signature = (sampler, group_size, dataset_size, batch_size, subset_size, shift, noise_multiplier, *, reverse))]
    #[allow(clippy::too_many_arguments)] // a sampler's parameters
    fn copies(
        py: Python<'_>,
        sampler: &str,
        group_size: u32,
        dataset_size: u64,
        batch_size: u64,
        subset_size: u32,
        shift: f64,
        noise_multiplier: f64,
        reverse: bool,
    ) -> PyResult<Self> {
        let sampler = sampler_of(sampler, subset_size)?;
        let weights = interruptible::call(py, 0, interruptible::remaining(), move |run| {
            sampler.copies(group_size, dataset_size, batch_size, run)
        })?;
        Self::directed(MixturePair::counted(&weights, shift, None, noise_multiplier), reverse)
    }

    /// Returns Σ_j w_j N(s_j, σ²) against N(0, σ²), where w is proportional to the probabilities.
    #[staticmethod]
    #[pyo3(signature = (probabilities, sensitivities, sigma, *, reverse))]
    #[allow(clippy::needless_pass_by_value)] // converted from sequences
    fn mixture(probabilities: Vec<f64>, sensitivities: Vec<f64>, sigma: f64, reverse: bool) -> PyResult<Self> {
        if probabilities.len() != sensitivities.len() {
            return Err(errors::DomainError::new_err("probabilities and sensitivities: the same number of them"));
        }
        let contributions: Vec<(f64, f64)> = probabilities.into_iter().zip(sensitivities).collect();
        Self::directed(MixturePair::weighted(&contributions, sigma), reverse)
    }

    #[staticmethod]
    #[pyo3(signature = (change, sampler, group_size, dataset_size, batch_size, subset_size, noise_multiplier, *, reverse))]
    #[allow(clippy::too_many_arguments)] // a sampler's parameters
    fn displaced(
        py: Python<'_>,
        change: &str,
        sampler: &str,
        group_size: u32,
        dataset_size: u64,
        batch_size: u64,
        subset_size: u32,
        noise_multiplier: f64,
        reverse: bool,
    ) -> PyResult<Self> {
        let change = match change {
            "replaced" => Change::Replaced,
            "zeroed" => Change::Zeroed,
            _ => return Err(errors::DomainError::new_err("change: replaced or zeroed")),
        };
        let sampler = sampler_of(sampler, subset_size)?;
        let (remove, add) = interruptible::call(py, 0, interruptible::remaining(), move |run| {
            displaced(change, sampler, group_size, dataset_size, batch_size, noise_multiplier, run)
        })?;
        Self::checked(if reverse { add } else { remove })
    }

    /// Returns (1−q)N(0, σ²) + qN(2, σ²) against (1−q)N(0, σ²) + qN(1, σ²): a lower bound from two concrete data sets.
    #[staticmethod]
    fn opposed(dataset_size: u64, batch_size: u64, noise_multiplier: f64) -> PyResult<Self> {
        let weights = Sampler::FixedSize.copies(1, dataset_size, batch_size, &Run::default()).map_err(raise)?;
        Self::of(Opposed::new(&weights, noise_multiplier))
    }

    /// Returns the pair of public participations in b-min-sep sampling of users: Σ_s Pr[S = s] G_{√s}, S the sum of the
    /// bounds on their norms.
    #[staticmethod]
    #[pyo3(signature = (norm_bounds, min_separation, record_probability, records, *, warm))]
    fn public_participation(
        norm_bounds: Vec<f64>,
        min_separation: usize,
        record_probability: f64,
        records: u32,
        warm: bool,
    ) -> PyResult<Self> {
        let law = Renewal::of_users(min_separation, record_probability, records, warm, norm_bounds);
        Self::of(law.and_then(|law| PublicParticipation::new(&law)))
    }

    /// Returns a lower bound: what the sums of the first rounds' outputs reveal about secret participations.
    #[staticmethod]
    #[pyo3(signature = (shifts, min_separation, record_probability, records, *, warm, reverse))]
    #[allow(clippy::needless_pass_by_value)] // converted from a sequence
    fn summed_outputs(
        shifts: Vec<Vec<f64>>,
        min_separation: usize,
        record_probability: f64,
        records: u32,
        warm: bool,
        reverse: bool,
    ) -> PyResult<Self> {
        Self::of(SummedOutputs::new(&shifts, min_separation, record_probability, records, warm, reverse))
    }

    #[staticmethod]
    #[pyo3(signature = (dataset_size, limit, sampling_probability, noise_multiplier, *, reverse))]
    fn truncated_poisson(
        dataset_size: u64,
        limit: u64,
        sampling_probability: f64,
        noise_multiplier: f64,
        reverse: bool,
    ) -> PyResult<Self> {
        Self::of(TruncatedPoisson::new(dataset_size, limit, sampling_probability, noise_multiplier, reverse))
    }

    /// Returns the profile of one of several rounds, chosen in secret; see `pair::allocation`. Both directions and both
    /// bounds come from laws that are kept.
    #[staticmethod]
    #[pyo3(signature = (squares, counts, spacing, negligible, *, reverse, below))]
    fn allocation(
        py: Python<'_>,
        squares: Vec<f64>,
        counts: Vec<u64>,
        spacing: f64,
        negligible: f64,
        reverse: bool,
        below: bool,
    ) -> PyResult<Self> {
        let terms: Vec<Terms> =
            squares.into_iter().zip(counts).map(|(square, count)| Terms { square, count }).collect();
        allocation::single(py, terms, spacing, negligible)
            .and_then(|law| Self::checked(Arc::new(law.profile(reverse, below))))
    }

    /// Returns a lower bound for `participations` of `count` equal rounds, chosen at random and in secret; see `pair::allocation`.
    #[staticmethod]
    #[pyo3(signature = (square, count, participations, spacing, negligible, *, reverse))]
    fn several_of(
        py: Python<'_>,
        square: f64,
        count: u64,
        participations: usize,
        spacing: f64,
        negligible: f64,
        reverse: bool,
    ) -> PyResult<Self> {
        let terms = vec![Terms { square, count }];
        allocation::several(py, terms, participations, spacing, negligible)
            .and_then(|law| Self::checked(Arc::new(law.profile(reverse))))
    }

    /// Returns the profile of the best of a random number of runs; see `pair::selection`.
    #[staticmethod]
    #[pyo3(signature = (inner_remove, inner_add, law, parameters, *, reverse))]
    #[allow(clippy::needless_pass_by_value)] // converted from a sequence
    fn selection(
        py: Python<'_>,
        inner_remove: Self,
        inner_add: Self,
        law: &str,
        parameters: Vec<f64>,
        reverse: bool,
    ) -> PyResult<Self> {
        let runs = Runs::new(law, &parameters).map_err(raise)?;
        let (forward, backward) = if reverse { (inner_add, inner_remove) } else { (inner_remove, inner_add) };
        let profile = interruptible::call(py, 0, interruptible::remaining(), move |run| {
            selection(&*forward.0, &*backward.0, &runs, run)
        })?;
        Self::checked(Arc::new(profile))
    }

    #[staticmethod]
    fn laplace(sensitivity: f64, scale: f64) -> PyResult<Self> {
        Self::of(Laplace::new(sensitivity, scale))
    }

    #[staticmethod]
    #[allow(clippy::needless_pass_by_value)] // converted from a sequence
    fn guarantees(points: Vec<(f64, f64)>) -> PyResult<Self> {
        Self::of(Tabulated::guarantees(&points))
    }

    #[staticmethod]
    fn tabulated(points: Vec<(f64, f64)>) -> PyResult<Self> {
        Self::of(Tabulated::new(points))
    }

    /// Returns a pair of laws on a finite set, whose probabilities may each be off by a relative error.
    #[staticmethod]
    #[pyo3(signature = (p, q, *, reverse, relative_error = 0.0))]
    #[allow(clippy::needless_pass_by_value)] // converted from sequences
    fn finite(p: Vec<f64>, q: Vec<f64>, reverse: bool, relative_error: f64) -> PyResult<Self> {
        if p.len() != q.len() {
            return Err(errors::DomainError::new_err("p and q: the same number of probabilities"));
        }
        let (first, second) = if reverse { (q, p) } else { (p, q) };
        let outcomes = first.into_iter().zip(second).collect();
        Self::of(DiscretePair::stated(outcomes, relative_error))
    }

    #[staticmethod]
    fn exponential(range: f64) -> PyResult<Self> {
        Self::of(Exponential::new(range))
    }

    /// Returns the profile of several mechanisms of one bounded range in a row; see `pair::exponential_runs`.
    #[staticmethod]
    fn exponential_runs(py: Python<'_>, range: f64, runs: u64) -> PyResult<Self> {
        EXPONENTIAL_RUNS
            .get(py, (range, runs), |(range, runs), run| exponential_runs::runs(*range, *runs, run).map(Arc::new))
            .and_then(|profile| Self::checked(profile))
    }

    #[staticmethod]
    fn discrete_laplace(shift: u64, scale: f64) -> PyResult<Self> {
        Self::of(DiscreteLaplace::new(shift, scale))
    }

    #[staticmethod]
    fn discrete_gaussian(shift: u64, sigma: f64) -> PyResult<Self> {
        Self::of(DiscreteGaussian::new(shift, sigma))
    }

    /// Returns Poisson sampling of a mechanism; `inner` is its profile in the same direction.
    #[staticmethod]
    #[pyo3(signature = (inner, probability, *, reverse))]
    fn subsampled(inner: &Self, probability: f64, reverse: bool) -> PyResult<Self> {
        subsampled(Arc::clone(&inner.0), probability, reverse).map_err(raise).and_then(Self::checked)
    }

    #[staticmethod]
    fn sometimes(inner: &Self, probability: f64) -> PyResult<Self> {
        Self::of(Sometimes::new(Arc::clone(&inner.0), probability))
    }

    #[staticmethod]
    #[allow(clippy::needless_pass_by_value)] // converted from sequences
    fn renyi(orders: Vec<f64>, bounds: Vec<f64>) -> PyResult<Self> {
        Self::of(renyi::renyi(&orders, &bounds))
    }

    #[staticmethod]
    fn zcdp(rho: f64) -> PyResult<Self> {
        Self::of(renyi::zcdp(rho))
    }

    /// Returns bounds on the composition of some rounds as the profile of one round.
    #[staticmethod]
    #[pyo3(signature = (rounds, *, below))]
    fn composed(py: Python<'_>, rounds: Vec<(Self, u64)>, below: bool) -> PyResult<Self> {
        let rounds = rounds_of(rounds);
        let side = if below { Side::Lower } else { Side::Upper };
        interruptible::call(py, 0, interruptible::remaining(), move |run| composition(&rounds, side, run))
            .and_then(Self::checked)
    }

    /// Returns (lower, upper) bounds on δ at one ε.
    fn delta(&self, epsilon: f64) -> PyResult<(f64, f64)> {
        if !epsilon.is_finite() {
            return Err(errors::DomainError::new_err(format!("epsilon = {epsilon} is outside its domain: finite")));
        }
        Ok(self.0.bounds(epsilon))
    }

    /// Returns lower and upper bounds on the largest loss as fractions; None if it is infinite or unknown.
    fn largest_loss(&self) -> Option<(BigRational, BigRational)> {
        self.0.exact_largest_loss().map(|loss| (loss.at_least, loss.at_most))
    }

    /// Returns the profile of the pair with both laws exchanged; None if it is not known.
    fn reversed(&self) -> Option<Self> {
        reversed(&self.0).map(Self)
    }

    /// Whether both directions of the pair have this profile.
    #[getter]
    fn symmetric(&self) -> bool {
        matches!(self.0.reversal(), Reversal::Same)
    }

    fn __repr__(&self) -> String {
        format!("{:?}", self.0)
    }
}

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

/// Answers several questions in parallel.
#[pyfunction]
#[pyo3(signature = (questions, *, threads = 0, time_limit = None))]
fn answer_all(
    py: Python<'_>,
    questions: Vec<Question>,
    threads: usize,
    time_limit: Option<f64>,
) -> PyResult<Vec<ProvenInterval>> {
    let questions: Vec<_> = questions.into_iter().map(convert).collect::<PyResult<_>>()?;
    let time_limit = time_limit.or_else(interruptible::remaining);
    let answers: Vec<Answer> = interruptible::call(py, threads, time_limit, move |run| {
        questions.par_iter().map(|(rounds, query, tolerance)| answer(rounds, *query, *tolerance, run)).collect()
    })?;
    Ok(answers.into_iter().map(ProvenInterval::from).collect())
}

/// One curve: the rounds of one direction, the values of ε, the relative tolerance, and the δ below which the tolerance
/// does not apply.
type CurveQuestion = (Vec<(RoundProfile, u64)>, Vec<f64>, f64, f64);

/// The (lower, upper) points of a curve, and how many compositions they took.
type CurveAnswer = (Vec<(f64, f64)>, usize);

/// Computes several curves in parallel: for each, its (lower, upper) points and how many compositions they took.
#[pyfunction]
#[pyo3(signature = (questions, *, threads = 0, time_limit = None))]
fn curve_all(
    py: Python<'_>,
    questions: Vec<CurveQuestion>,
    threads: usize,
    time_limit: Option<f64>,
) -> PyResult<Vec<CurveAnswer>> {
    let questions: Vec<_> = questions
        .into_iter()
        .map(|(rounds, epsilons, tolerance, ignored)| (rounds_of(rounds), epsilons, tolerance, ignored))
        .collect();
    let time_limit = time_limit.or_else(interruptible::remaining);
    let curves: Vec<DeltaCurve> = interruptible::call(py, threads, time_limit, move |run| {
        questions
            .par_iter()
            .map(|(rounds, epsilons, tolerance, ignored)| curve(rounds, epsilons, *tolerance, *ignored, run))
            .collect()
    })?;
    Ok(curves.into_iter().map(|curve| (curve.points, curve.compositions)).collect())
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
    module.add("MOST_LIKELY", pyaccount_core::montecarlo::mechanism::MOST_LIKELY)?;
    module.add("__version__", env!("CARGO_PKG_VERSION"))
}
