//! What can be sampled: one mechanism, and several that are run beside one another, with what is proven about their samples.
//!
//! Several mechanisms are sampled one after the other from the same stream, so their draws are independent, and their log densities
//! add: f = Πf_k, g = Πg_k, f⁻ = Πf⁻_k.

use crate::error::{Error, Result};
use crate::montecarlo::bins::{BinsKernel, BinsProposal};
use crate::montecarlo::kernel::Ratios;
use crate::montecarlo::overlapping::{OverlappingKernel, OverlappingScratch};
use crate::montecarlo::proposal::{caps, Caps, Comparison, Sums};
use crate::montecarlo::renewal::{RenewalKernel, RenewalProposal, Scratch};
use crate::montecarlo::source::Given;
use crate::montecarlo::stream::{Stream, StreamKey, LARGEST_NORMAL, NORMAL_ERROR};
use crate::montecarlo::tilt::{TiltBase, Tilted};
use crate::montecarlo::truncated::{largest_multiple, TruncatedKernel};
use crate::montecarlo::truncated_bins::TruncatedBinsKernel;
use crate::montecarlo::value::Curve;
use crate::montecarlo::vector::{with_vectors, Portable, Vector, Vectored, LANES};
use crate::participation::bins::Bins;
use crate::participation::renewal::Renewal;
use crate::special::UNIT_ROUNDOFF;

/// Proposals join with at most this probability, unless the sampler itself always does.
pub const MOST_LIKELY: f64 = 0.999;
/// A mechanism that can be sampled.
#[derive(Debug, Clone)]
pub enum Mechanism {
    /// b-min-sep sampling with a banded Toeplitz matrix.
    Renewal(RenewalKernel),
    /// Balls in bins with any non-negative matrix.
    Bins(BinsKernel),
    /// b-min-sep sampling with columns that meet.
    Overlapping(OverlappingKernel),
    /// b-min-sep sampling with truncated batches.
    Truncated(TruncatedKernel),
    /// Balls in bins with truncated batches.
    TruncatedBins(TruncatedBinsKernel),
}

/// The law that a mechanism's patterns have.
enum Law<'a> {
    Renewal(&'a Renewal),
    Bins(&'a Bins),
}

/// Where samples of a mechanism come from.
#[derive(Debug, Clone, PartialEq)]
pub enum Proposal {
    /// For [`Mechanism::Renewal`], [`Mechanism::Overlapping`] and [`Mechanism::Truncated`].
    Renewal(RenewalProposal),
    /// For [`Mechanism::Bins`] and [`Mechanism::TruncatedBins`].
    Bins(BinsProposal),
}

impl Proposal {
    /// κ.
    #[must_use]
    pub fn stretch(&self) -> f64 {
        match self {
            Self::Renewal(proposal) => proposal.stretch,
            Self::Bins(proposal) => proposal.stretch,
        }
    }
}

/// The linear statistic t of tilts: Σ_i |∂_i t| over the coordinates of the noise, a bound on |t| and one on its rounding.
#[derive(Debug, Clone, Copy)]
pub(super) struct Statistic {
    /// Σ_i |∂_i t|.
    pub slope: f64,
    /// |t| is at most this.
    pub size: f64,
    /// How far the computed t may be off.
    pub error: f64,
}

impl Mechanism {
    /// The proposal for a sampling probability (renewal) or an exponent of the bins' weights, and a stretch.
    ///
    /// For bins the weights are proportional to `e^{parameter·s_t}`; for renewal `parameter` is the probability itself.
    ///
    /// # Errors
    /// [`Error::Domain`] for a probability outside (0, 1] or a stretch that is not finite.
    pub fn proposal(&self, parameter: f64, stretch: f64) -> Result<Proposal> {
        if !(stretch.is_finite() && stretch.abs() <= 100.0) {
            return Err(Error::Domain { name: "stretch", value: stretch, allowed: "between -100 and 100" });
        }
        match self.law() {
            Law::Renewal(law) => {
                if !(parameter > 0.0 && parameter <= 1.0) {
                    let name = "proposal's sampling probability";
                    return Err(Error::Domain { name, value: parameter, allowed: "greater than 0 and at most 1" });
                }
                Ok(Proposal::Renewal(RenewalProposal { law: law.with_probability(parameter), stretch }))
            }
            Law::Bins(law) => Ok(Proposal::Bins(BinsProposal::new(law.tilted(parameter), stretch))),
        }
    }

    fn law(&self) -> Law<'_> {
        match self {
            Self::Renewal(kernel) => Law::Renewal(kernel.law()),
            Self::Bins(kernel) => Law::Bins(kernel.law()),
            Self::Overlapping(kernel) => Law::Renewal(kernel.law()),
            Self::Truncated(kernel) => Law::Renewal(kernel.renewal().law()),
            Self::TruncatedBins(kernel) => Law::Bins(kernel.bins().law()),
        }
    }

    /// Whether batches are truncated.
    #[must_use]
    pub fn truncated(&self) -> bool {
        matches!(self, Self::Truncated(_) | Self::TruncatedBins(_))
    }

    /// The parameter of plain sampling: the probability to join, or the exponent 0.
    #[must_use]
    pub fn plain_parameter(&self) -> f64 {
        match self.law() {
            Law::Renewal(law) => law.sampling_probability,
            Law::Bins(_) => 0.0,
        }
    }

    /// What bounds samples from a proposal of this mechanism; see [`super::proposal`]. With truncated batches plain samples are at most
    /// 1, and nothing is proven of others.
    #[allow(clippy::float_cmp)] // the plain stretch is given as that very number
    fn sums(&self, proposal: &Proposal, comparison: Comparison) -> Sums {
        let of_plain = |plain: bool| if plain { Sums::Plain } else { Sums::Nothing };
        match (self, proposal) {
            (Self::Truncated(kernel), Proposal::Renewal(p)) => {
                of_plain(p.stretch == comparison.plain_stretch() && &p.law == kernel.renewal().law())
            }
            (Self::TruncatedBins(kernel), Proposal::Bins(p)) => {
                of_plain(p.stretch == comparison.plain_stretch() && &p.law == kernel.bins().law())
            }
            (Self::Renewal(kernel), Proposal::Renewal(p)) => Sums::of(kernel.law(), &p.law, p.stretch, comparison),
            (Self::Overlapping(kernel), Proposal::Renewal(p)) => kernel.sums(&p.law, p.stretch, comparison),
            (Self::Bins(kernel), Proposal::Bins(p)) => Sums::of(kernel.law(), &p.law, p.stretch, comparison),
            _ => Sums::Nothing,
        }
    }

    /// The proposal's parameter that goes with stretch κ when weights are tilted by κ(κ − 1)s/2, which keeps the cap small.
    ///
    /// For renewal the odds p/(1 − p) are multiplied by e^{κ(κ−1)s/2}, s the largest squared column norm; for bins the
    /// exponent is returned.
    #[must_use]
    pub fn balanced_parameter(&self, stretch: f64) -> f64 {
        let exponent = 0.5 * stretch * (stretch - 1.0);
        let Law::Renewal(law) = self.law() else { return exponent };
        let p = law.sampling_probability;
        let odds = p * (exponent * law.squares[0]).exp();
        // A proposal that always joins would leave out the patterns that do not.
        let balanced = if odds.is_finite() { odds / (1.0 - p + odds) } else { 1.0 };
        if p < 1.0 {
            balanced.min(MOST_LIKELY).max(p)
        } else {
            1.0
        }
    }

    /// A bound on the error of each log density from rounding.
    #[must_use]
    pub fn rounding(&self, stretch: f64) -> f64 {
        self.rounding_at(stretch, stretch.abs())
    }

    /// The same for samples whose mean is at most `means` times what participations give. (Nothing else than stretched means is drawn where
    /// batches are truncated.)
    #[must_use]
    pub(super) fn rounding_at(&self, stretch: f64, means: f64) -> f64 {
        match self {
            Self::Renewal(kernel) => kernel.rounding_at(stretch, means),
            Self::Bins(kernel) => kernel.rounding_at(stretch, means),
            Self::Overlapping(kernel) => kernel.rounding_at(stretch, means),
            Self::Truncated(kernel) => kernel.rounding(stretch),
            Self::TruncatedBins(kernel) => kernel.rounding(stretch),
        }
    }

    /// A bound on Σ_i sup |∂_i ln f| over the coordinates of the noise, for any mixture of the family.
    pub(super) fn lipschitz(&self) -> f64 {
        match self {
            Self::Renewal(kernel) => kernel.lipschitz(),
            Self::Bins(kernel) => kernel.lipschitz(),
            Self::Overlapping(kernel) => kernel.lipschitz(),
            Self::Truncated(kernel) => kernel.lipschitz(),
            Self::TruncatedBins(kernel) => kernel.lipschitz(),
        }
    }

    /// How far a coordinate of a drawn sample is from an exact one on average: the normal number, and the means added to it, κĈx
    /// and (as multiples of the largest entry of Ĉx, `displaced`) θm̄.
    ///
    /// [`NORMAL_ERROR`] holds 6u more than it needs. Adding κĈx rounds by u of the sum, at most u(0.8 + |κ| max Ĉx) on average;
    /// θm̄ and adding it by as much again and u of twice θm̄; κ times how many records take part by u of itself. With truncation
    /// participations count 2κ or 2κ − 1 times. (Of bins the products are added to, and their rounding is that of the log
    /// densities.)
    pub(super) fn coordinate_error(&self, stretch: f64, displaced: f64) -> f64 {
        let added = |largest: f64| self.added(stretch.abs() * largest, displaced * largest);
        match self {
            Self::Renewal(kernel) => NORMAL_ERROR + added(kernel.largest_mean()),
            Self::Overlapping(kernel) => kernel.coordinate_error(stretch) + added(kernel.reach().1),
            Self::Truncated(kernel) => {
                let multiple = (2.0 * stretch).abs().max((2.0 * stretch - 1.0).abs());
                NORMAL_ERROR + self.added(multiple * kernel.renewal().largest_mean(), 0.0)
            }
            Self::Bins(_) | Self::TruncatedBins(_) => NORMAL_ERROR,
        }
    }

    /// What adding means of these sizes to a normal number may round by, beyond what [`NORMAL_ERROR`] has room for.
    fn added(&self, mean: f64, displaced: f64) -> f64 {
        let several = matches!(self.law(), Law::Renewal(law) if law.records() > 1);
        let first = if several { 2.0 * mean } else { mean };
        let sums = if displaced > 0.0 { 1.6 + mean + first + 2.0 * displaced } else { 0.8 + first };
        UNIT_ROUNDOFF * (sums - 6.0).max(0.0)
    }

    /// The direction of tilts; none where batches are truncated.
    pub(super) fn tilt_base(&self) -> Option<TiltBase> {
        match self {
            Self::Renewal(kernel) => Some(kernel.tilt_base()),
            Self::Overlapping(kernel) => Some(kernel.tilt_base()),
            Self::Bins(kernel) => Some(kernel.tilt_base()),
            Self::Truncated(_) | Self::TruncatedBins(_) => None,
        }
    }

    /// P (R for `add`) tilted by θ along the direction of [`Self::tilt_base`].
    pub(super) fn tilted(&self, base: &TiltBase, theta: f64, add: bool) -> Tilted {
        match self {
            Self::Renewal(kernel) if !add => kernel.tilted(base, theta),
            Self::Overlapping(kernel) if !add => kernel.tilted(base, theta),
            Self::Bins(kernel) if !add => kernel.tilted(base, theta),
            _ => base.reference(theta),
        }
    }

    /// The largest |θm̄_i|, as a multiple of the largest entry of Ĉx (bins: of the largest s_t).
    pub(super) fn displacement(&self, base: &TiltBase, theta: f64) -> f64 {
        let largest = |numbers: &[f64]| numbers.iter().copied().fold(0.0, f64::max);
        theta.abs()
            * match self {
                Self::Renewal(kernel) => base.sizes().1 / kernel.largest_mean(),
                Self::Overlapping(kernel) => base.sizes().1 / kernel.reach().1,
                Self::Bins(kernel) => largest(&base.overlap) / largest(&kernel.law().squares),
                Self::Truncated(_) | Self::TruncatedBins(_) => f64::INFINITY,
            }
    }

    /// What t = ⟨m̄, ŷ⟩ may be, for samples whose mean is at most `means` times what participations give.
    ///
    /// A sum of n products with |ŷ| ≤ 8.5 + `means`·max Ĉx. Of bins it is a mean of the products v, which have their own error,
    /// and its slope is a mean of theirs.
    pub(super) fn statistic(&self, base: &TiltBase, means: f64) -> Statistic {
        #[allow(clippy::cast_precision_loss)] // counts far below 2^53
        let terms = base.overlap.len() as f64;
        let rounds = |largest: f64| {
            let total = base.sizes().0 * (1.0 + 1e-9);
            let size = total * (LARGEST_NORMAL + means * largest);
            Statistic { slope: total, size, error: UNIT_ROUNDOFF * (terms + 4.0) * size * (1.0 + 1e-6) }
        };
        match self {
            Self::Bins(kernel) => {
                // Both the products' own error and that of T terms of their mean.
                let size = kernel.products(means);
                Statistic { slope: kernel.lipschitz(), size, error: 3.0 * UNIT_ROUNDOFF * size }
            }
            Self::Renewal(kernel) => rounds(kernel.largest_mean()),
            Self::Overlapping(kernel) => rounds(kernel.reach().1),
            Self::Truncated(_) | Self::TruncatedBins(_) => {
                Statistic { slope: f64::INFINITY, size: f64::INFINITY, error: f64::INFINITY }
            }
        }
    }

    /// The Lipschitz bound Λ of a mechanism, how far a coordinate of a drawn sample is from an exact one on average, and how much the law
    /// of its patterns differs from the generator's, in total variation.
    pub(super) fn generator(&self, proposal: &Proposal) -> (f64, f64, f64) {
        let (lipschitz, coordinate) = (self.lipschitz(), self.coordinate_error(proposal.stretch(), 0.0));
        let truncation = match self {
            Self::Truncated(kernel) if kernel.batch_sizes().can_truncate() => Some(kernel.batch_sizes().variation()),
            Self::TruncatedBins(kernel) if kernel.batch_sizes().can_truncate() => {
                Some(kernel.batch_sizes().variation())
            }
            _ => None,
        };
        let (drawn, decisions) = match (self.law(), proposal) {
            (Law::Renewal(law), Proposal::Renewal(m)) => {
                #[allow(clippy::cast_precision_loss)] // counts far below 2^53
                let (n, draws, b) =
                    (law.iterations() as f64, law.most_participations() as f64 + 1.0, law.min_separation as f64);
                let counts = if m.law.records() > 1 { (f64::from(m.law.records()) + 2.0) * f64::EPSILON } else { 0.0 };
                let waiting = n * f64::EPSILON + 8.0 * UNIT_ROUNDOFF / m.law.sampling_probability + counts;
                (draws * waiting + 16.0 * b * f64::EPSILON, draws)
            }
            (Law::Bins(law), Proposal::Bins(_)) => {
                #[allow(clippy::cast_precision_loss)] // at most a few thousand bins
                let bins = law.squares.len() as f64;
                (bins * (2.0 + bins) * f64::EPSILON, 1.0)
            }
            _ => return (f64::INFINITY, f64::INFINITY, f64::INFINITY),
        };
        let patterns = match truncation {
            // No pattern is drawn, or none that is added.
            None if proposal.stretch() == 0.0 => 0.0,
            None => drawn,
            Some(variation) => drawn + variation + 2.0 * decisions * f64::EPSILON,
        };
        (lipschitz, coordinate, patterns)
    }

    /// A bound on every |ln density| of a sample: it lies between the least and the largest ⟨Cx, y⟩ − ‖Cx‖²/2 over the patterns.
    pub(super) fn magnitude(&self, stretch: f64) -> f64 {
        let scale = 1.0 + stretch.abs();
        match self {
            Self::Renewal(kernel) => {
                #[allow(clippy::cast_precision_loss)] // counts far below 2^53
                let (n, most) = (kernel.law().iterations() as f64, kernel.law().most_participations() as f64);
                let (lipschitz, records) = (kernel.lipschitz(), f64::from(kernel.law().records()));
                let square = most * records * records * kernel.law().squares[0];
                scale * scale * (lipschitz * (LARGEST_NORMAL + stretch.abs() * lipschitz / n) + square)
            }
            Self::Truncated(kernel) => Self::Renewal(kernel.renewal().clone()).magnitude(largest_multiple(stretch)),
            Self::TruncatedBins(kernel) => Self::Bins(kernel.bins().clone()).magnitude(largest_multiple(stretch)),
            Self::Overlapping(kernel) => {
                let (lipschitz, mean, square) = kernel.reach();
                scale * scale * (lipschitz * (LARGEST_NORMAL + stretch.abs() * mean) + square)
            }
            Self::Bins(kernel) => {
                let square = kernel.law().squares.iter().copied().fold(0.0, f64::max);
                scale * scale * (LARGEST_NORMAL * kernel.lipschitz() + 2.0 * square)
            }
        }
    }

    /// How many numbers an outcome has: one for each round, or for each bin.
    #[must_use]
    pub fn outcome_length(&self) -> usize {
        match self.law() {
            Law::Renewal(law) => law.iterations(),
            Law::Bins(law) => law.squares.len(),
        }
    }

    /// ln dP/dR and ln dP⁻/dR for given outcomes y/σ (bins: the inner products ⟨m_t, y/σ⟩): what the loss of this comparison is made of.
    ///
    /// With truncated batches the second is ln dQ/dR, and `sizes` has the batch sizes of the others for each outcome; without any nothing is
    /// truncated.
    #[must_use]
    pub fn log_densities(&self, comparison: Comparison, outcomes: &[Vec<f64>], sizes: &[Vec<u64>]) -> Vec<(f64, f64)> {
        let mut sizes = sizes.chunks(LANES);
        outcomes
            .chunks(LANES)
            .flat_map(|chunk| {
                // Few outcomes: one copy for any machine spares compiling the kernels for every instruction set once more.
                let ratios = Evaluation(self, comparison, chunk, sizes.next().unwrap_or(&[])).run::<Portable>();
                (0..chunk.len()).map(move |l| (ratios.mixture[l], ratios.mirrored[l]))
            })
            .collect()
    }

    /// The other records' numbers in each batch that a shard's first eight samples begin with; none without truncation.
    #[must_use]
    pub fn batch_sizes(&self, key: StreamKey, shard: u64) -> Vec<Vec<u64>> {
        with_vectors(Shown(self, Stream::new(key, shard)))
    }
}

/// The batch sizes of eight samples.
struct Shown<'a>(&'a Mechanism, Stream);

impl Vectored for Shown<'_> {
    type Output = Vec<Vec<u64>>;

    #[inline(always)]
    fn run<V: Vector>(mut self) -> Self::Output {
        match self.0 {
            Mechanism::Truncated(kernel) => kernel.batch_sizes().show::<V>(&mut self.1),
            Mechanism::TruncatedBins(kernel) => kernel.batch_sizes().show::<V>(&mut self.1),
            _ => Vec::new(),
        }
    }
}

/// The densities of up to eight given outcomes.
struct Evaluation<'a>(&'a Mechanism, Comparison, &'a [Vec<f64>], &'a [Vec<u64>]);

impl Vectored for Evaluation<'_> {
    type Output = Ratios;

    #[inline(always)]
    fn run<V: Vector>(self) -> Ratios {
        let mut scratch = Scratch::default();
        match self.0 {
            Mechanism::Renewal(kernel) => kernel
                .ratios::<V, _>(None, true, &mut Given(self.2), &mut scratch)
                .unwrap_or_else(|| kernel.logarithmic::<V, _>(None, true, &mut Given(self.2), &mut scratch)),
            Mechanism::Bins(kernel) => kernel.given::<V>(self.2, true),
            Mechanism::Truncated(kernel) => kernel.given::<V>(self.2, self.3),
            Mechanism::TruncatedBins(kernel) => kernel.given::<V>(self.2, self.3),
            Mechanism::Overlapping(kernel) => kernel.given::<V>(self.1, self.2, &mut OverlappingScratch::default()),
        }
    }
}

/// One of the mechanisms that are sampled together, where its samples come from, and how often it is run.
#[derive(Debug, Clone)]
pub struct Part {
    /// What is sampled.
    pub mechanism: Mechanism,
    /// Where samples come from; all parts have the same stretch.
    pub proposal: Proposal,
    /// Independent runs.
    pub runs: u32,
}

/// What one sample of all parts can contribute at this ε; see [`super::proposal`].
#[must_use]
pub fn caps_of(parts: &[Part], comparison: Comparison, epsilon: f64, curve: Option<&Curve>) -> Caps {
    let Some(first) = parts.first() else { return Caps::NONE };
    let sums = parts.iter().map(|part| (part.mechanism.sums(&part.proposal, comparison), part.runs));
    caps(Sums::together(sums), first.proposal.stretch(), comparison, epsilon, curve)
}

/// A bound on the error of each log density of all parts from rounding: each part's own, and a u of each partial sum.
#[must_use]
pub fn rounding_of(parts: &[Part]) -> f64 {
    let runs: f64 = parts.iter().map(|part| f64::from(part.runs)).sum();
    let each = |part: &Part| {
        let stretch = part.proposal.stretch();
        let sums = if runs > 1.0 { 2.0 * UNIT_ROUNDOFF * runs * part.mechanism.magnitude(stretch) } else { 0.0 };
        f64::from(part.runs) * (part.mechanism.rounding(stretch) + sums)
    };
    parts.iter().map(each).sum()
}

/// A bound on |E V − δ(ε)| because normal numbers and participation patterns come from a finite generator.
///
/// * Normal numbers: V changes by at most (2 + |κ|)·factor·Λ_i for a unit change of noise coordinate i, Λ = Σ Λ_i the
///   Lipschitz bound of the mechanism, and each of the generator's numbers is within [`NORMAL_ERROR`] of an exact
///   one on average (and the mean added to it within [`Mechanism::coordinate_error`]). With
///   truncated batches V = (f − e^ε h)/g changes by at most factor times the sum of the slopes of f, of h and of g, in which columns
///   count 2, 1 and 2|κ| + 1 times: (4 + 2|κ|), and Λ there is twice that of the columns.
/// * Patterns: each waiting time is ⌊ln u/ln(1 − p)⌋ in floating point. The distribution functions differ at each
///   of at most n values by 2⁻⁵² (the grid of u) and by 8u·|u ln u|, which sums to 8u/p; a sample has a start and at
///   most 1 + ⌈n/b⌉ draws (and as many of how many of k records take part, each wrong by at most (k + 2)·2⁻⁵²), and differing
///   patterns change V by at most its cap. A bin is drawn with an error of at most 2⁻⁵² + T u for each of T bins.
/// * Sizes of truncated batches: their laws' total variation, and 2⁻⁵² for each decision whether the record survives.
#[must_use]
pub fn generator_error_of(parts: &[Part], limits: Caps) -> f64 {
    parts
        .iter()
        .map(|part| {
            let (lipschitz, coordinate, patterns) = part.mechanism.generator(&part.proposal);
            let normal = (2.0 + part.proposal.stretch().abs()) * limits.factor * lipschitz * coordinate;
            f64::from(part.runs) * (normal + 2.0 * limits.value * patterns)
        })
        .sum()
}
