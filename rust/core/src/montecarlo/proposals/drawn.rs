//! A mechanism and the proposal that its samples come from, as one value; and several of them, run in parallel.
//!
//! A proposal is valid only for its own mechanism: evaluated by another kernel it would give wrong weights. So a
//! [`Proposed`] is a kernel with a proposal of that kernel's kind, and [`Mechanism::proposed`], which derives the
//! proposal from the kernel's own law, is the only place where one is created.
//!
//! Several mechanisms are sampled one after the other from the same stream, so their draws are independent, and their
//! log densities add: f = Πf_k, g = Πg_k, f⁻ = Πf⁻_k.

use std::sync::Arc;

use crate::error::Result;
use crate::montecarlo::kernels::allocation::AllocationKernel;
use crate::montecarlo::kernels::bins::BinsKernel;
use crate::montecarlo::kernels::kernel::{draw, Kernel, Purpose, Ratios};
use crate::montecarlo::kernels::overlapping::OverlappingKernel;
use crate::montecarlo::kernels::renewal::RenewalKernel;
use crate::montecarlo::mechanism::{Buffers, Mechanism};
use crate::montecarlo::proposals::replicated::Replicated;
use crate::montecarlo::proposals::weight_bounds::{weight_bounds, Direction, HolderSums, WeightBounds};
use crate::montecarlo::stream::Stream;
use crate::montecarlo::truncation::truncated::TruncatedKernel;
use crate::montecarlo::truncation::truncated_bins::TruncatedBinsKernel;
use crate::montecarlo::value::Curve;
use crate::participation::bins::Bins;
use crate::participation::renewal::Renewal;
use crate::run::Run;
use crate::special::UNIT_ROUNDOFF;
use crate::vector::Vector;

/// A kernel and one of its proposals.
#[derive(Debug)]
struct Pair<K: Kernel> {
    kernel: Arc<K>,
    proposal: K::Proposal,
}

/// A mechanism and the proposal of its samples.
#[derive(Debug, Clone)]
pub struct Proposed(Kind);

#[derive(Debug, Clone)]
enum Kind {
    Renewal(Pair<RenewalKernel>),
    Bins(Pair<BinsKernel>),
    Allocation(Pair<AllocationKernel>),
    Overlapping(Pair<OverlappingKernel>),
    Truncated(Pair<TruncatedKernel>),
    TruncatedBins(Pair<TruncatedBinsKernel>),
    Replicated(Arc<Replicated>),
}

/// The kernel is shared.
impl<K: Kernel> Clone for Pair<K> {
    fn clone(&self) -> Self {
        Self { kernel: Arc::clone(&self.kernel), proposal: self.proposal.clone() }
    }
}

impl<K: Kernel> Pair<K> {
    fn new(kernel: &Arc<K>, parameter: f64, mean_scale: f64) -> Result<Self> {
        Ok(Self { kernel: Arc::clone(kernel), proposal: kernel.proposal(parameter, mean_scale)? })
    }
}

impl Mechanism {
    /// Returns this mechanism with samples from the proposal of a parameter and a mean scale; see [`Kernel::proposal`].
    ///
    /// # Errors
    /// As [`Kernel::proposal`].
    pub fn proposed(&self, parameter: f64, mean_scale: f64) -> Result<Proposed> {
        Ok(Proposed(match self {
            Self::Renewal(kernel) => Kind::Renewal(Pair::new(kernel, parameter, mean_scale)?),
            Self::Bins(kernel) => Kind::Bins(Pair::new(kernel, parameter, mean_scale)?),
            Self::Allocation(kernel) => Kind::Allocation(Pair::new(kernel, parameter, mean_scale)?),
            Self::Overlapping(kernel) => Kind::Overlapping(Pair::new(kernel, parameter, mean_scale)?),
            Self::Truncated(kernel) => Kind::Truncated(Pair::new(kernel, parameter, mean_scale)?),
            Self::TruncatedBins(kernel) => Kind::TruncatedBins(Pair::new(kernel, parameter, mean_scale)?),
        }))
    }
}

impl From<Arc<Replicated>> for Proposed {
    fn from(samples: Arc<Replicated>) -> Self {
        Self(Kind::Replicated(samples))
    }
}

impl Proposed {
    /// Returns the mechanism that is sampled.
    #[must_use]
    pub fn mechanism(&self) -> Mechanism {
        match &self.0 {
            Kind::Renewal(pair) => Mechanism::Renewal(Arc::clone(&pair.kernel)),
            Kind::Bins(pair) => Mechanism::Bins(Arc::clone(&pair.kernel)),
            Kind::Allocation(pair) => Mechanism::Allocation(Arc::clone(&pair.kernel)),
            Kind::Overlapping(pair) => Mechanism::Overlapping(Arc::clone(&pair.kernel)),
            Kind::Truncated(pair) => Mechanism::Truncated(Arc::clone(&pair.kernel)),
            Kind::TruncatedBins(pair) => Mechanism::TruncatedBins(Arc::clone(&pair.kernel)),
            Kind::Replicated(samples) => samples.mechanism(),
        }
    }

    /// Returns κ; for samples of a power of f, the power.
    #[must_use]
    pub fn mean_scale(&self) -> f64 {
        match &self.0 {
            Kind::Renewal(Pair { proposal, .. })
            | Kind::Overlapping(Pair { proposal, .. })
            | Kind::Truncated(Pair { proposal, .. }) => proposal.mean_scale,
            Kind::Bins(Pair { proposal, .. }) | Kind::TruncatedBins(Pair { proposal, .. }) => proposal.mean_scale,
            Kind::Allocation(Pair { proposal, .. }) => proposal.mean_scale,
            Kind::Replicated(samples) => samples.power(),
        }
    }

    /// Prepares for drawing many samples.
    ///
    /// # Errors
    /// As [`Replicated::prepare`].
    pub(in crate::montecarlo) fn prepare(&self, run: &Run) -> Result<()> {
        match &self.0 {
            Kind::Replicated(samples) => samples.prepare(run),
            _ => Ok(()),
        }
    }

    /// Draws eight samples and returns their log densities.
    #[inline(always)]
    pub(in crate::montecarlo) fn draw<V: Vector>(
        &self,
        purpose: Purpose,
        stream: &mut Stream,
        buffers: &mut Buffers,
    ) -> Ratios {
        match &self.0 {
            Kind::Renewal(p) => draw::<V, _>(&*p.kernel, &p.proposal, purpose, stream, &mut buffers.renewal),
            Kind::Overlapping(p) => draw::<V, _>(&*p.kernel, &p.proposal, purpose, stream, &mut buffers.overlapping),
            Kind::Bins(p) => draw::<V, _>(&*p.kernel, &p.proposal, purpose, stream, &mut buffers.bins),
            Kind::Allocation(p) => draw::<V, _>(&*p.kernel, &p.proposal, purpose, stream, &mut buffers.allocation),
            Kind::Truncated(p) => draw::<V, _>(&*p.kernel, &p.proposal, purpose, stream, &mut buffers.truncated),
            Kind::TruncatedBins(p) => {
                draw::<V, _>(&*p.kernel, &p.proposal, purpose, stream, &mut buffers.truncated_bins)
            }
            Kind::Replicated(samples) => samples.draw::<V>(stream, &mut buffers.replicated),
        }
    }

    /// Returns the sums that bound these samples; see [`super::proposal`]. With truncated batches plain samples are at
    /// most 1, and nothing is proven about other proposals.
    #[must_use]
    #[allow(clippy::float_cmp)] // the plain mean scale is given as that very number
    pub fn sums(&self, direction: Direction) -> HolderSums {
        let plain_only = |same: bool, mean_scale: f64| {
            if same && mean_scale == direction.plain_mean_scale() {
                HolderSums::Plain
            } else {
                HolderSums::Nothing
            }
        };
        match &self.0 {
            Kind::Renewal(Pair { kernel, proposal: m }) => {
                HolderSums::of(kernel.law(), &m.law, m.mean_scale, direction)
            }
            Kind::Bins(Pair { kernel, proposal: m }) => HolderSums::of(kernel.law(), &m.law, m.mean_scale, direction),
            Kind::Allocation(Pair { kernel, proposal: m }) => kernel.sums(m.mean_scale, direction),
            Kind::Overlapping(Pair { kernel, proposal: m }) => kernel.sums(&m.law, m.mean_scale, direction),
            Kind::Truncated(Pair { kernel, proposal: m }) => plain_only(&m.law == kernel.renewal().law(), m.mean_scale),
            Kind::TruncatedBins(Pair { kernel, proposal: m }) => {
                plain_only(&m.law == kernel.bins().law(), m.mean_scale)
            }
            Kind::Replicated(samples) => samples.sums(direction),
        }
    }

    /// Returns whether samples give information about this hockey stick: those of a power of f are of a removed record.
    pub(in crate::montecarlo) fn serves(&self, direction: Direction) -> bool {
        direction == Direction::Remove || !matches!(self.0, Kind::Replicated(_))
    }

    /// Returns a bound on the error of each log density from rounding.
    fn rounding(&self) -> f64 {
        match &self.0 {
            Kind::Replicated(samples) => samples.rounding(),
            _ => self.mechanism().rounding(self.mean_scale()),
        }
    }

    /// Returns the Lipschitz bound Λ of the mechanism, the average distance of a coordinate of a drawn sample from an
    /// exact one, and the total variation between the law of its patterns and the drawn one.
    pub(in crate::montecarlo) fn generator(&self) -> (f64, f64, f64) {
        let (mechanism, mean_scale) = (self.mechanism(), self.mean_scale());
        let (drawn, decisions) = match &self.0 {
            Kind::Renewal(Pair { proposal, .. })
            | Kind::Overlapping(Pair { proposal, .. })
            | Kind::Truncated(Pair { proposal, .. }) => rounds_drawn(&proposal.law),
            Kind::Bins(Pair { proposal, .. }) | Kind::TruncatedBins(Pair { proposal, .. }) => bin_drawn(&proposal.law),
            Kind::Allocation(Pair { kernel, .. }) => (kernel.variation(), 1.0),
            Kind::Replicated(samples) => (samples.variation(), 0.0),
        };
        let truncation = match &self.0 {
            Kind::Truncated(p) if p.kernel.batch_sizes().can_truncate() => Some(p.kernel.batch_sizes().variation()),
            Kind::TruncatedBins(p) if p.kernel.batch_sizes().can_truncate() => Some(p.kernel.batch_sizes().variation()),
            _ => None,
        };
        let patterns = match truncation {
            // No pattern is drawn, or none is added.
            None if mean_scale == 0.0 => 0.0,
            None => drawn,
            Some(variation) => drawn + variation + 2.0 * decisions * f64::EPSILON,
        };
        let coordinate = match &self.0 {
            Kind::Replicated(samples) => samples.coordinate_error(),
            _ => mechanism.coordinate_error(mean_scale, 0.0),
        };
        (mechanism.lipschitz(), coordinate, patterns)
    }
}

/// Returns a bound on the total variation of a drawn pattern's law, and the largest number of its participations plus
/// one.
fn rounds_drawn(law: &Renewal) -> (f64, f64) {
    #[allow(clippy::cast_precision_loss)] // far below 2^53
    let (n, draws, b) = (law.iterations() as f64, law.most_participations() as f64 + 1.0, law.min_separation as f64);
    let counts = if law.records() > 1 { (f64::from(law.records()) + 2.0) * f64::EPSILON } else { 0.0 };
    let waiting = n * f64::EPSILON + 8.0 * UNIT_ROUNDOFF / law.sampling_probability + counts;
    (draws * waiting + 16.0 * b * f64::EPSILON, draws)
}

/// Returns the same for a bin, which is drawn once.
fn bin_drawn(law: &Bins) -> (f64, f64) {
    #[allow(clippy::cast_precision_loss)] // at most a few thousand bins
    let bins = law.squares.len() as f64;
    (bins * (2.0 + bins) * f64::EPSILON, 1.0)
}

/// One of the mechanisms that are sampled together, with its proposal and its number of runs.
#[derive(Debug, Clone)]
pub struct Part {
    /// The mechanism and its proposal; all parts have the same mean scale.
    pub proposed: Proposed,
    /// The number of independent runs.
    pub runs: u32,
}

/// Returns bounds on the contribution of one sample of all parts at this ε; see [`super::proposal`].
#[must_use]
pub fn weight_bounds_of(parts: &[Part], direction: Direction, epsilon: f64, curve: Option<&Curve>) -> WeightBounds {
    let Some(first) = parts.first() else { return WeightBounds::NONE };
    let sums = parts.iter().map(|part| (part.proposed.sums(direction), part.runs));
    weight_bounds(HolderSums::together(sums), first.proposed.mean_scale(), direction, epsilon, curve)
}

/// Returns an upper bound on how far E V is below δ(ε) apart from rounding: the part that samples of a power leave out
/// where few replicas may be busy at once.
///
/// With W_1·Z_⊥ for each of several parts, the missing part is the product of all Z_T + Z_⊥ minus that of all Z_T; it
/// grows with Z_T, which the bounds on ρ bound.
///
/// # Errors
/// As [`Replicated::left_out`].
pub fn left_out_of(parts: &[Part], limits: WeightBounds, run: &Run) -> Result<f64> {
    let mut logs = 0.0;
    for part in parts {
        if let Kind::Replicated(samples) = &part.proposed.0 {
            logs += f64::from(part.runs) * libm::log1p(samples.left_out(run)?);
        }
    }
    // Each logarithm, product and sum is rounded by u of its size, and all are positive.
    Ok(if logs > 0.0 { limits.value * libm::expm1(logs * (1.0 + 1e-12)) * (1.0 + 1e-12) } else { 0.0 })
}

/// Returns a bound on the error of each log density of all parts from rounding: each part's own, and one u of each
/// partial sum.
#[must_use]
pub fn rounding_of(parts: &[Part]) -> f64 {
    let runs: f64 = parts.iter().map(|part| f64::from(part.runs)).sum();
    let each = |part: &Part| {
        let (mechanism, mean_scale) = (part.proposed.mechanism(), part.proposed.mean_scale());
        let sums = if runs > 1.0 { 2.0 * UNIT_ROUNDOFF * runs * mechanism.magnitude(mean_scale) } else { 0.0 };
        f64::from(part.runs) * (part.proposed.rounding() + sums)
    };
    parts.iter().map(each).sum()
}

/// Returns a bound on |E V − δ(ε)| due to the finite generator of normal numbers and participation patterns.
///
/// * Normal numbers: V changes by at most (2 + |κ|)·factor·Λ_i for a unit change of noise coordinate i, Λ = Σ Λ_i the
///   Lipschitz bound of the mechanism, and each of the generator's numbers is within
///   [`crate::montecarlo::stream::NORMAL_ERROR`] of an exact one on average (and the mean added to it within
///   `Mechanism::coordinate_error`). With truncated batches V = (f − e^ε h)/g changes by at most factor times the sum
///   of the slopes of f, of h and of g, in which columns count 2, 1 and 2|κ| + 1 times: (4 + 2|κ|), and Λ there is
///   twice that of the columns.
/// * Patterns: each waiting time is ⌊ln u/ln(1 − p)⌋ in floating point. The distribution functions differ at each of at
///   most n values by 2⁻⁵² (the grid of u) and by 8u·|u ln u|, which sums to 8u/p; a sample has a start and at most 1 +
///   ⌈n/b⌉ draws (and as many of how many of k records take part, each wrong by at most (k + 2)·2⁻⁵²), and differing
///   patterns change V by at most its bound. A bin is drawn with an error of at most 2⁻⁵² + T u for each of T bins.
/// * Sizes of truncated batches: their laws' total variation, and 2⁻⁵² for each decision whether the record survives.
#[must_use]
pub fn generator_error_of(parts: &[Part], limits: WeightBounds) -> f64 {
    parts
        .iter()
        .map(|part| {
            let (lipschitz, coordinate, patterns) = part.proposed.generator();
            let normal = (2.0 + part.proposed.mean_scale().abs()) * limits.factor * lipschitz * coordinate;
            f64::from(part.runs) * (normal + 2.0 * limits.value * patterns)
        })
        .sum()
}
