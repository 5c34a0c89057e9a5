//! Profiles of rounds: how each is made, and what it says of itself.

use std::sync::Arc;

use num_rational::BigRational;
use pyaccount_core::pair::allocation::Terms;
use pyaccount_core::pair::batch::Sampler;
use pyaccount_core::pair::check::{checked, Checked};
use pyaccount_core::pair::discrete::DiscretePair;
use pyaccount_core::pair::discrete_gaussian::DiscreteGaussian;
use pyaccount_core::pair::discrete_laplace::DiscreteLaplace;
use pyaccount_core::pair::exponential::Exponential;
use pyaccount_core::pair::exponential_runs::{self, ExponentialRuns};
use pyaccount_core::pair::gaussian::GaussianPair;
use pyaccount_core::pair::laplace::Laplace;
use pyaccount_core::pair::mixture::MixturePair;
use pyaccount_core::pair::moments::divergence;
use pyaccount_core::pair::opposed::Opposed;
use pyaccount_core::pair::parties::Parties;
use pyaccount_core::pair::poisson::PoissonPair;
use pyaccount_core::pair::public::PublicParticipation;
use pyaccount_core::pair::renyi;
use pyaccount_core::pair::selection::{selection, Runs};
use pyaccount_core::pair::shown::Shown;
use pyaccount_core::pair::skellam::Skellam;
use pyaccount_core::pair::sometimes::Sometimes;
use pyaccount_core::pair::subsampled::subsampled;
use pyaccount_core::pair::substitution::{displaced, Change};
use pyaccount_core::pair::summed::SummedOutputs;
use pyaccount_core::pair::tabulated::Tabulated;
use pyaccount_core::pair::truncated::TruncatedPoisson;
use pyaccount_core::pair::worst::Worst;
use pyaccount_core::pair::{Profile as CoreProfile, Reversal};
use pyaccount_core::participation::renewal::Renewal;
use pyaccount_core::pld::composition::composition;
use pyaccount_core::pld::mesh::Side;
use pyaccount_core::run::Run;
use pyo3::prelude::*;

use crate::adaptive::FixedSizeCurve;
use crate::errors::{self, raise};
use crate::kept::Kept;
use crate::{allocation, interruptible, rounds_of};

/// The profile of one direction of one round.
#[pyclass(frozen, from_py_object, module = "pyaccount._core")]
#[derive(Debug, Clone)]
pub struct RoundProfile(pub Checked);

impl RoundProfile {
    fn checked(profile: Arc<dyn CoreProfile>) -> PyResult<Self> {
        checked(profile).map(Self).map_err(raise)
    }

    pub fn of<P: CoreProfile + 'static>(profile: pyaccount_core::Result<P>) -> PyResult<Self> {
        Self::checked(Arc::new(profile.map_err(raise)?))
    }

    /// Returns a mixture pair in the direction asked for.
    fn directed(pair: pyaccount_core::Result<MixturePair>, reverse: bool) -> PyResult<Self> {
        Self::of(pair.map(|pair| if reverse { pair.reversed() } else { pair }))
    }
}

/// The last profiles of several mechanisms of bounded range, by the range and the number of runs.
static EXPONENTIAL_RUNS: Kept<(f64, u64), Arc<ExponentialRuns>> = Kept::new();

pub fn sampler_of(name: &str, subset: u32) -> PyResult<Sampler> {
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
        Self::of(PoissonPair::new(group_size, sampling_probability, noise_multiplier, two_sided, reverse))
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

    /// Returns all rounds of batches of a fixed size, in their order, as one: the largest δ over adaptive gradients.
    #[staticmethod]
    #[pyo3(signature = (curve, *, add))]
    fn fixed_size_run(curve: &FixedSizeCurve, add: bool) -> Self {
        Self(curve.profiles[usize::from(add)].clone())
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
            selection(&forward.0, &backward.0, &runs, run)
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

    #[staticmethod]
    fn skellam(shift: u64, variance: f64) -> PyResult<Self> {
        Self::of(Skellam::new(shift, variance))
    }

    #[staticmethod]
    fn parties(shift: u64, sigma: f64, parties: u64) -> PyResult<Self> {
        Self::of(Parties::new(shift, sigma, parties))
    }

    /// Returns Poisson sampling of a mechanism; `inner` is its profile in the same direction.
    #[staticmethod]
    #[pyo3(signature = (inner, probability, *, reverse))]
    fn subsampled(inner: &Self, probability: f64, reverse: bool) -> PyResult<Self> {
        subsampled(inner.0.clone(), probability, reverse).map(Self).map_err(raise)
    }

    #[staticmethod]
    fn sometimes(inner: &Self, probability: f64) -> PyResult<Self> {
        Self::of(Sometimes::new(inner.0.clone(), probability))
    }

    #[staticmethod]
    #[pyo3(signature = (inner, probability, *, reverse))]
    fn shown(inner: &Self, probability: f64, reverse: bool) -> PyResult<Self> {
        Self::of(Shown::new(inner.0.clone(), probability, reverse))
    }

    #[staticmethod]
    fn worst(profiles: Vec<Self>) -> PyResult<Self> {
        Self::of(Worst::new(profiles.into_iter().map(|one| one.0).collect()))
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
        interruptible::call(py, 0, interruptible::remaining(), move |run| composition(&rounds, side, run)).map(Self)
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

    /// Returns an upper bound on the Rényi divergence of an order as a fraction, in nats; None if none is known.
    fn divergence(&self, py: Python<'_>, order: f64) -> PyResult<Option<BigRational>> {
        let profile = self.0.clone();
        interruptible::call(py, 0, interruptible::remaining(), move |run| divergence(profile.as_ref(), order, run))
    }

    /// Returns a ρ as a fraction such that the divergence of every order a is at most aρ; None if none is known.
    fn concentration(&self) -> Option<BigRational> {
        self.0.concentration()
    }

    /// Returns μ² as a fraction for a μ whose Gaussian pair dominates this one; None if none is known.
    fn gaussian_square(&self) -> Option<BigRational> {
        self.0.gaussian_square()
    }

    /// Returns a lower bound on the probability of an infinite loss, the limit of δ(ε) for large ε.
    fn mass_at_infinity(&self) -> f64 {
        self.0.delta_at_infinity()
    }

    /// Returns the profile of the pair with both laws exchanged; None if it is not known.
    fn reversed(&self) -> Option<Self> {
        self.0.reversed().map(Self)
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
