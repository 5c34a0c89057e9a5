//! The mechanisms that can be sampled, independently of the proposals. A mechanism shares its kernel, so copies of it
//! are cheap.

use std::sync::Arc;

use crate::montecarlo::kernels::allocation::{AllocationKernel, AllocationScratch};
use crate::montecarlo::kernels::bins::{BinsKernel, BinsScratch};
use crate::montecarlo::kernels::kernel::Ratios;
use crate::montecarlo::kernels::overlapping::{OverlappingKernel, OverlappingScratch};
use crate::montecarlo::kernels::renewal::{RenewalKernel, RenewalScratch};
use crate::montecarlo::proposals::replicated::ReplicatedScratch;
use crate::montecarlo::proposals::tilt::{TiltBase, Tilted};
use crate::montecarlo::proposals::weight_bounds::Direction;
use crate::montecarlo::source::Given;
use crate::montecarlo::stream::{Stream, StreamKey, LARGEST_NORMAL, NORMAL_ERROR};
use crate::montecarlo::truncation::truncated::{largest_multiple, TruncatedKernel, TruncatedScratch};
use crate::montecarlo::truncation::truncated_bins::{TruncatedBinsKernel, TruncatedBinsScratch};
use crate::participation::bins::Bins;
use crate::participation::renewal::Renewal;
use crate::replicas::drawn::Participations;
use crate::special::UNIT_ROUNDOFF;
use crate::vector::{with_vectors, Portable, Vector, Vectored, LANES};

/// The largest probability to join that a proposal may have, unless the sampler itself always joins.
pub const MOST_LIKELY: f64 = 0.999;

/// A mechanism that can be sampled.
#[derive(Debug, Clone)]
pub enum Mechanism {
    /// b-min-sep sampling with a banded Toeplitz matrix.
    Renewal(Arc<RenewalKernel>),
    /// Balls in bins with any non-negative matrix.
    Bins(Arc<BinsKernel>),
    /// Random allocation without a matrix.
    Allocation(Arc<AllocationKernel>),
    /// b-min-sep sampling with columns that overlap.
    Overlapping(Arc<OverlappingKernel>),
    /// b-min-sep sampling with truncated batches.
    Truncated(Arc<TruncatedKernel>),
    /// Balls in bins with truncated batches.
    TruncatedBins(Arc<TruncatedBinsKernel>),
}

/// Implements the conversion of a kernel to a mechanism, which shares it.
macro_rules! of_kernel {
    ($($kind:ident($kernel:ty)),*) => {
        $(impl From<$kernel> for Mechanism {
            fn from(kernel: $kernel) -> Self {
                Self::$kind(Arc::new(kernel))
            }
        })*
    };
}

of_kernel!(
    Renewal(RenewalKernel),
    Bins(BinsKernel),
    Allocation(AllocationKernel),
    Overlapping(OverlappingKernel),
    Truncated(TruncatedKernel),
    TruncatedBins(TruncatedBinsKernel)
);

/// Buffers of one worker, for any mechanism.
#[derive(Debug, Default)]
pub(super) struct Buffers {
    pub renewal: RenewalScratch,
    pub bins: BinsScratch,
    pub allocation: AllocationScratch,
    pub overlapping: OverlappingScratch,
    pub truncated: TruncatedScratch,
    pub truncated_bins: TruncatedBinsScratch,
    pub replicated: ReplicatedScratch,
}

/// The law of a mechanism's patterns.
enum Law<'a> {
    Renewal(&'a Renewal),
    Bins(&'a Bins),
    Allocation(&'a AllocationKernel),
}

/// The linear statistic t of tilts: Σ_i |∂_i t| over the coordinates of the noise, and bounds on |t| and on its
/// rounding.
#[derive(Debug, Clone, Copy)]
pub(super) struct Statistic {
    /// Σ_i |∂_i t|.
    pub slope: f64,
    /// A bound on |t|.
    pub size: f64,
    /// A bound on the error of the computed t.
    pub error: f64,
}

impl Mechanism {
    fn law(&self) -> Law<'_> {
        match self {
            Self::Renewal(kernel) => Law::Renewal(kernel.law()),
            Self::Bins(kernel) => Law::Bins(kernel.law()),
            Self::Allocation(kernel) => Law::Allocation(kernel),
            Self::Overlapping(kernel) => Law::Renewal(kernel.law()),
            Self::Truncated(kernel) => Law::Renewal(kernel.renewal().law()),
            Self::TruncatedBins(kernel) => Law::Bins(kernel.bins().law()),
        }
    }

    /// Returns the participations if [`crate::replicas`] has a chain for them; `None` otherwise.
    #[must_use]
    pub fn participations(&self) -> Option<Participations<'_>> {
        match self {
            Self::Renewal(kernel) => Some(Participations::Renewal(kernel.law(), &kernel.coefficients)),
            Self::Bins(kernel) => {
                let bins = kernel.law().squares.len();
                // The error is of sums of T products, none larger than the largest square.
                #[allow(clippy::cast_precision_loss)] // at most a few thousand bins
                let error = 2.0 * UNIT_ROUNDOFF * (bins as f64 + 8.0);
                Some(Participations::Bins { gram: kernel.gram(), bins, error })
            }
            Self::Allocation(kernel) => {
                let (rounds, taken, square) = kernel.law();
                Some(Participations::Allocation { rounds, taken, square })
            }
            _ => None,
        }
    }

    /// Returns the kernel of single records in rounds, under b-min-sep sampling or from a random part; `None` for other
    /// mechanisms.
    #[must_use]
    pub fn of_rounds(&self) -> Option<&Arc<RenewalKernel>> {
        match self {
            Self::Renewal(kernel) if kernel.law().records() == 1 => Some(kernel),
            _ => None,
        }
    }

    /// Returns the kernel of single records under b-min-sep sampling; `None` for other mechanisms.
    #[must_use]
    pub fn of_single_records(&self) -> Option<&Arc<RenewalKernel>> {
        match self {
            Self::Renewal(kernel) if kernel.law().records() == 1 && !kernel.law().phased => Some(kernel),
            _ => None,
        }
    }

    /// Returns whether batches are truncated.
    #[must_use]
    pub fn truncated(&self) -> bool {
        matches!(self, Self::Truncated(_) | Self::TruncatedBins(_))
    }

    /// Returns the parameter of plain sampling: the probability to join, or the exponent 0.
    #[must_use]
    pub fn plain_parameter(&self) -> f64 {
        match self.law() {
            Law::Renewal(law) => law.sampling_probability,
            Law::Bins(_) | Law::Allocation(_) => 0.0,
        }
    }

    /// Returns the proposal's parameter that matches mean scale κ when weights are tilted by κ(κ − 1)s/2, which keeps
    /// the weight bound small.
    ///
    /// For renewal the odds p/(1 − p) are multiplied by e^{κ(κ−1)s/2}, s the largest squared column norm; for bins the
    /// exponent is returned.
    #[must_use]
    pub fn balanced_parameter(&self, mean_scale: f64) -> f64 {
        let exponent = 0.5 * mean_scale * (mean_scale - 1.0);
        let Law::Renewal(law) = self.law() else { return exponent };
        let p = law.sampling_probability;
        let odds = p * (exponent * law.squares[0]).exp();
        // A proposal that always joins would leave out the patterns that do not join.
        let balanced = if odds.is_finite() { odds / (1.0 - p + odds) } else { 1.0 };
        if p < 1.0 {
            balanced.min(MOST_LIKELY).max(p)
        } else {
            1.0
        }
    }

    /// Returns a bound on the error of each log density from rounding.
    #[must_use]
    pub fn rounding(&self, mean_scale: f64) -> f64 {
        self.rounding_at(mean_scale, mean_scale.abs())
    }

    /// Returns the same bound for samples whose mean is at most `means` times that of participations. (Where batches
    /// are truncated, all proposals have scaled means.)
    #[must_use]
    pub(super) fn rounding_at(&self, mean_scale: f64, means: f64) -> f64 {
        match self {
            Self::Renewal(kernel) => kernel.rounding_at(mean_scale, means),
            Self::Bins(kernel) => kernel.rounding_at(mean_scale, means),
            Self::Allocation(kernel) => kernel.rounding_at(mean_scale, means),
            Self::Overlapping(kernel) => kernel.rounding_at(mean_scale, means),
            Self::Truncated(kernel) => kernel.rounding(mean_scale),
            Self::TruncatedBins(kernel) => kernel.rounding(mean_scale),
        }
    }

    /// Returns a bound on Σ_i sup |∂_i ln f| over the coordinates of the noise, for any mixture of the family.
    pub(super) fn lipschitz(&self) -> f64 {
        match self {
            Self::Renewal(kernel) => kernel.lipschitz(),
            Self::Bins(kernel) => kernel.lipschitz(),
            Self::Allocation(kernel) => kernel.lipschitz(),
            Self::Overlapping(kernel) => kernel.lipschitz(),
            Self::Truncated(kernel) => kernel.lipschitz(),
            Self::TruncatedBins(kernel) => kernel.lipschitz(),
        }
    }

    /// Returns the average distance of a coordinate of a drawn sample from an exact one: of the normal number, and of
    /// the means added to it, κĈx and (as multiples of the largest entry of Ĉx, `displaced`) θm̄.
    ///
    /// [`NORMAL_ERROR`] has 6u to spare. Adding κĈx rounds by u of the sum, at most u(0.8 + |κ| max Ĉx) on average; θm̄
    /// and adding it by as much again and u of twice θm̄; κ times the number of records that take part by u of itself.
    /// With truncation participations count 2κ or 2κ − 1 times. (For bins the mean is added to the products, and their
    /// rounding is that of the log densities.)
    pub(super) fn coordinate_error(&self, mean_scale: f64, displaced: f64) -> f64 {
        let added = |largest: f64| self.added(mean_scale.abs() * largest, displaced * largest);
        match self {
            Self::Renewal(kernel) => NORMAL_ERROR + added(kernel.largest_mean()),
            Self::Allocation(kernel) => NORMAL_ERROR + added(kernel.largest_mean()),
            Self::Overlapping(kernel) => kernel.coordinate_error(mean_scale) + added(kernel.reach().1),
            Self::Truncated(kernel) => {
                let multiple = (2.0 * mean_scale).abs().max((2.0 * mean_scale - 1.0).abs());
                NORMAL_ERROR + self.added(multiple * kernel.renewal().largest_mean(), 0.0)
            }
            Self::Bins(_) | Self::TruncatedBins(_) => NORMAL_ERROR,
        }
    }

    /// Returns how much adding means of these sizes to a normal number may round by, beyond the margin of
    /// [`NORMAL_ERROR`].
    fn added(&self, mean: f64, displaced: f64) -> f64 {
        let several = matches!(self.law(), Law::Renewal(law) if law.records() > 1);
        let first = if several { 2.0 * mean } else { mean };
        let sums = if displaced > 0.0 { 1.6 + mean + first + 2.0 * displaced } else { 0.8 + first };
        UNIT_ROUNDOFF * (sums - 6.0).max(0.0)
    }

    /// Returns whether only the directions remove and add are known, and not replacement: truncated batches,
    /// allocations.
    #[must_use]
    pub fn of_presence(&self) -> bool {
        self.truncated() || matches!(self, Self::Allocation(_))
    }

    /// Returns the direction of tilts; `None` for truncated batches and allocations.
    pub(super) fn tilt_base(&self) -> Option<TiltBase> {
        match self {
            Self::Renewal(kernel) => Some(kernel.tilt_base()),
            Self::Overlapping(kernel) => Some(kernel.tilt_base()),
            Self::Bins(kernel) => Some(kernel.tilt_base()),
            Self::Allocation(_) | Self::Truncated(_) | Self::TruncatedBins(_) => None,
        }
    }

    /// Returns P (R for `add`) tilted by θ along the direction of [`Self::tilt_base`].
    pub(super) fn tilted(&self, base: &TiltBase, theta: f64, add: bool) -> Tilted {
        match self {
            Self::Renewal(kernel) if !add => kernel.tilted(base, theta),
            Self::Overlapping(kernel) if !add => kernel.tilted(base, theta),
            Self::Bins(kernel) if !add => kernel.tilted(base, theta),
            _ => base.reference(theta),
        }
    }

    /// Returns the largest |θm̄_i|, as a multiple of the largest entry of Ĉx (bins: of the largest s_t).
    pub(super) fn displacement(&self, base: &TiltBase, theta: f64) -> f64 {
        let largest = |numbers: &[f64]| numbers.iter().copied().fold(0.0, f64::max);
        theta.abs()
            * match self {
                Self::Renewal(kernel) => base.sizes().1 / kernel.largest_mean(),
                Self::Overlapping(kernel) => base.sizes().1 / kernel.reach().1,
                Self::Bins(kernel) => largest(&base.overlap) / largest(&kernel.law().squares),
                Self::Allocation(_) | Self::Truncated(_) | Self::TruncatedBins(_) => f64::INFINITY,
            }
    }

    /// Returns bounds on t = ⟨m̄, ŷ⟩, for samples whose mean is at most `means` times that of participations.
    ///
    /// t is a sum of n products with |ŷ| ≤ 8.5 + `means`·max Ĉx. For bins it is a mean of the products v, which have
    /// their own error, and its slope is a mean of theirs.
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
                // The error includes that of the products and that of the T terms of their mean.
                let size = kernel.products(means);
                Statistic { slope: kernel.lipschitz(), size, error: 3.0 * UNIT_ROUNDOFF * size }
            }
            Self::Renewal(kernel) => rounds(kernel.largest_mean()),
            Self::Overlapping(kernel) => rounds(kernel.reach().1),
            Self::Allocation(_) | Self::Truncated(_) | Self::TruncatedBins(_) => {
                Statistic { slope: f64::INFINITY, size: f64::INFINITY, error: f64::INFINITY }
            }
        }
    }

    /// Returns a bound on every |ln density| of a sample: it lies between the least and the largest ⟨Cx, y⟩ − ‖Cx‖²/2
    /// over the patterns.
    pub(super) fn magnitude(&self, mean_scale: f64) -> f64 {
        match self {
            Self::Renewal(kernel) => kernel.magnitude(mean_scale),
            Self::Truncated(kernel) => kernel.renewal().magnitude(largest_multiple(mean_scale)),
            Self::Overlapping(kernel) => kernel.magnitude(mean_scale),
            Self::Bins(kernel) => kernel.magnitude(mean_scale),
            Self::Allocation(kernel) => kernel.magnitude(mean_scale),
            Self::TruncatedBins(kernel) => kernel.bins().magnitude(largest_multiple(mean_scale)),
        }
    }

    /// Returns how many numbers an outcome has: one for each round, or for each bin.
    #[must_use]
    pub fn outcome_length(&self) -> usize {
        match self.law() {
            Law::Renewal(law) => law.iterations(),
            Law::Bins(law) => law.squares.len(),
            Law::Allocation(kernel) => kernel.law().0,
        }
    }

    /// Returns ln dP/dR and ln dP⁻/dR for given outcomes y/σ (bins: the inner products ⟨m_t, y/σ⟩), from which the loss
    /// of this direction is computed.
    ///
    /// With truncated batches the second is ln dQ/dR, and `sizes` has the batch sizes of the other records for each
    /// outcome; if it is empty nothing is truncated.
    #[must_use]
    pub fn log_densities(&self, direction: Direction, outcomes: &[Vec<f64>], sizes: &[Vec<u64>]) -> Vec<(f64, f64)> {
        let mut sizes = sizes.chunks(LANES);
        outcomes
            .chunks(LANES)
            .flat_map(|chunk| {
                // There are few outcomes: the copy for any machine is enough, so the kernels are not compiled for every
                // instruction set again.
                let ratios = Evaluation(self, direction, chunk, sizes.next().unwrap_or(&[])).run::<Portable>();
                (0..chunk.len()).map(move |l| (ratios.mixture[l], ratios.mirrored[l]))
            })
            .collect()
    }

    /// Returns the numbers of other records in each batch of a shard's first eight samples; empty without truncation.
    #[must_use]
    pub fn batch_sizes(&self, key: StreamKey, shard: u64) -> Vec<Vec<u64>> {
        with_vectors(Shown(self, Stream::new(key, shard)))
    }
}

/// Draws the batch sizes of eight samples.
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

/// Computes the densities of up to eight given outcomes.
struct Evaluation<'a>(&'a Mechanism, Direction, &'a [Vec<f64>], &'a [Vec<u64>]);

impl Vectored for Evaluation<'_> {
    type Output = Ratios;

    #[inline(always)]
    fn run<V: Vector>(self) -> Ratios {
        let mut scratch = RenewalScratch::default();
        match self.0 {
            Mechanism::Renewal(kernel) => kernel
                .ratios::<V, _>(None, true, &mut Given(self.2), &mut scratch)
                .unwrap_or_else(|| kernel.logarithmic::<V, _>(None, true, &mut Given(self.2), &mut scratch)),
            Mechanism::Bins(kernel) => kernel.given::<V>(self.2, true),
            Mechanism::Allocation(kernel) => kernel.given::<V>(self.2),
            Mechanism::Truncated(kernel) => kernel.given::<V>(self.2, self.3),
            Mechanism::TruncatedBins(kernel) => kernel.given::<V>(self.2, self.3),
            Mechanism::Overlapping(kernel) => kernel.given::<V>(self.1, self.2, &mut OverlappingScratch::default()),
        }
    }
}
