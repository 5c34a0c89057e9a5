//! Mixtures of proposals: a mechanism's samples are drawn from several proposals in fixed shares, and weighted relative
//! to the mixture.
//!
//! A shard takes its samples from the proposals M_1, …, M_K in fixed shares α_k, and each is weighted by dN/dM of the
//! mixture M = Σ α_k M_k (the balance heuristic: Veach & Guibas 1995; Owen & Zhou 2000), N = P, or Q where the record
//! is added:
//!
//! `V = (dN/dM)·(1 − e^{ε−L})_+`, or `(dN/dM)·D(ε − L)` with a composed profile, dN/dM = 1/Σ_k α_k dM_k/dN.
//!
//! The mean of V over a shard is δ(ε) whatever the proposals are. The first of them is the mechanism itself, so no
//! sample has a weight above 1/α_1. [`super::balanced`] computes estimates from such samples,
//! [`crate::montecarlo::claims::defensive`] tests.

use crate::error::{Error, Result};
use crate::montecarlo::kernels::allocation::AllocationKernel;
use crate::montecarlo::kernels::bins::BinsKernel;
use crate::montecarlo::kernels::kernel::Kernel;
use crate::montecarlo::kernels::overlapping::OverlappingKernel;
use crate::montecarlo::kernels::renewal::RenewalKernel;
use crate::montecarlo::mechanism::{Buffers, Mechanism};
use crate::montecarlo::proposals::tilt::Tilted;
use crate::montecarlo::proposals::weight_bounds::Direction;
use crate::montecarlo::simulate::SHARD;
use crate::montecarlo::stream::Stream;
use crate::montecarlo::truncation::truncated::TruncatedKernel;
use crate::montecarlo::truncation::truncated_bins::TruncatedBinsKernel;
use crate::vector::functions::exp;
use crate::vector::{splat, Lanes, Vector, Vectored, LANES};

/// The number of groups of eight samples in a shard, which the shares of the components add up to.
#[allow(clippy::cast_possible_truncation)] // 128
pub const UNITS: u32 = (SHARD / LANES) as u32;

/// The error for a replaced record where only presence and absence are compared.
pub const OF_PRESENCE: Error =
    Error::Numerics { reason: "truncated batches and allocations are compared with an empty record's" };

/// A proposal, for all mechanisms that are sampled together.
#[derive(Debug, Clone, PartialEq)]
pub enum Component {
    /// The mechanism (R where the record is added) tilted by θ; 0 is plain sampling.
    Tilted(f64),
    /// A law and mean scale of [`super::proposal`], with one parameter for each mechanism.
    Scaled(Vec<f64>, f64),
}

/// Mechanisms that are run in parallel, and the proposals that samples of them come from.
#[derive(Debug, Clone)]
pub struct Mixture {
    /// The mechanisms that are sampled, each with its number of independent runs.
    pub parts: Vec<(Mechanism, u32)>,
    /// The direction of the hockey stick.
    pub direction: Direction,
    /// The proposals with their shares of a shard in [`UNITS`]; the first is plain sampling.
    pub components: Vec<(Component, u32)>,
}

/// A proposal, specialised to one mechanism.
pub enum Origin<K: Balanced> {
    /// Tilted.
    Tilted(K::Tilt),
    /// Another law with scaled means.
    Scaled(K::Scaled),
}

/// The proposals, specialised to one mechanism.
pub struct Origins<K: Balanced> {
    /// The direction of the tilts.
    pub base: K::Base,
    /// One for each component.
    pub each: Vec<Origin<K>>,
}

/// Plain sampling: the only tilt of a mechanism that cannot be tilted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Plain;

impl Plain {
    /// Returns the tilt by θ = 0.
    ///
    /// # Errors
    /// [`Error::Domain`] for any other θ.
    #[allow(clippy::float_cmp)] // given as that very number
    pub fn of(theta: f64) -> Result<Self> {
        if theta == 0.0 {
            return Ok(Self);
        }
        Err(Error::Domain { name: "tilt", value: theta, allowed: "0: truncated batches and allocations have none" })
    }
}

/// Eight samples: the loss, and ln of each proposal's density relative to the numerator's. The values of mechanisms
/// that are run together are added.
#[derive(Debug, Clone, Default)]
pub struct Weighed {
    /// L.
    pub loss: Lanes,
    /// Samples whose losses are at most this have V = 0, so their weights are not needed; −∞ if all weights are needed.
    pub least: f64,
    /// ln dM_k/dN.
    pub relative: Vec<Lanes>,
}

impl Weighed {
    pub(super) fn clear(&mut self, components: usize, least: f64) {
        self.least = least;
        self.loss = splat(0.0);
        self.relative.clear();
        self.relative.resize(components, splat(0.0));
    }

    /// Adds the loss of a mechanism.
    #[inline(always)]
    pub fn add_loss<V: Vector>(&mut self, more: V) {
        V::load(&self.loss).add(more).store(&mut self.loss);
    }

    /// Returns whether V is 0 for all samples; a NaN loss counts as positive V.
    #[inline(always)]
    #[must_use]
    pub fn worthless(&self) -> bool {
        self.loss.0.iter().all(|loss| *loss <= self.least)
    }

    /// Adds a mechanism's log density for a component.
    #[inline(always)]
    pub fn add<V: Vector>(&mut self, component: usize, more: V) {
        V::load(&self.relative[component]).add(more).store(&mut self.relative[component]);
    }

    /// Adds the log densities of the tilted components: θt − norm.
    #[inline(always)]
    pub fn add_tilts<V: Vector, K: Balanced<Tilt = Tilted>>(&mut self, origins: &Origins<K>, statistic: V) {
        for (k, origin) in origins.each.iter().enumerate() {
            if let Origin::Tilted(tilted) = origin {
                self.add(k, statistic.mul_add(V::splat(tilted.theta), V::splat(-tilted.norm)));
            }
        }
    }
}

/// A mechanism of which eight samples can be drawn from any of its proposals, and weighted by all of them.
pub trait Balanced: Kernel + Sized {
    /// The type of the direction of its tilts.
    type Base;
    /// The type of a tilt of the mechanism, or of R where the record is added.
    type Tilt;
    /// The type of a law with a mean scale.
    type Scaled;
    /// Returns the direction of its tilts.
    fn base(&self) -> Self::Base;
    /// Returns the tilt by θ; of R where the record is added (`add`).
    ///
    /// # Errors
    /// [`Error::Domain`] for a tilt that the mechanism does not have.
    fn tilt(&self, base: &Self::Base, theta: f64, add: bool) -> Result<Self::Tilt>;
    /// Returns the proposal of a parameter and a mean scale.
    ///
    /// # Errors
    /// As [`Kernel::proposal`]; [`Error::Numerics`] where its density is not known.
    fn scaled(&self, parameter: f64, mean_scale: f64) -> Result<Self::Scaled>;
    /// Draws eight samples from the proposal `drawn`, and adds loss and densities. Must be `#[inline(always)]`.
    fn weigh<V: Vector>(
        &self,
        origins: &Origins<Self>,
        drawn: usize,
        direction: Direction,
        stream: &mut Stream,
        scratch: &mut Self::Scratch,
        out: &mut Weighed,
    );
}

/// A mechanism with its specialised proposals.
pub(in crate::montecarlo) enum Prepared<'a> {
    Renewal(&'a RenewalKernel, Origins<RenewalKernel>),
    Overlapping(&'a OverlappingKernel, Origins<OverlappingKernel>),
    Bins(&'a BinsKernel, Origins<BinsKernel>),
    Allocation(&'a AllocationKernel, Origins<AllocationKernel>),
    Truncated(&'a TruncatedKernel, Origins<TruncatedKernel>),
    TruncatedBins(&'a TruncatedBinsKernel, Origins<TruncatedBinsKernel>),
}

/// Buffers of one worker.
#[derive(Default)]
pub(in crate::montecarlo) struct Worker {
    pub buffers: Buffers,
    /// The last eight samples.
    pub weighed: Weighed,
    /// dM_k/dN of the last eight samples, each divided by the largest of its lane (or 1).
    pub densities: Vec<Lanes>,
}

struct Weigh<'a, K: Balanced> {
    kernel: &'a K,
    origins: &'a Origins<K>,
    drawn: usize,
    direction: Direction,
    stream: &'a mut Stream,
    scratch: &'a mut K::Scratch,
    out: &'a mut Weighed,
}

impl<K: Balanced> Vectored for Weigh<'_, K> {
    type Output = ();

    #[inline(always)]
    fn run<V: Vector>(self) {
        self.kernel.weigh::<V>(self.origins, self.drawn, self.direction, self.stream, self.scratch, self.out);
    }
}

impl Mixture {
    /// Specialises the components to the mechanism at `place`.
    fn origins<K: Balanced>(&self, kernel: &K, place: usize) -> Result<Origins<K>> {
        let base = kernel.base();
        let add = self.direction == Direction::Add;
        let each = self.components.iter().map(|(component, _)| match component {
            Component::Tilted(theta) => kernel.tilt(&base, *theta, add).map(Origin::Tilted),
            Component::Scaled(parameters, mean_scale) => {
                let parameter = *parameters.get(place).ok_or(Error::Domain {
                    name: "parameters of a proposal",
                    value: f64::NAN,
                    allowed: "one for each mechanism",
                })?;
                kernel.scaled(parameter, *mean_scale).map(Origin::Scaled)
            }
        });
        Ok(Origins { each: each.collect::<Result<_>>()?, base })
    }

    /// Returns the parts, each with its specialised proposals.
    ///
    /// # Errors
    /// [`Error::Domain`] for shares that do not add up, plain sampling that is missing, a tilt of truncated batches,
    /// and the errors of the mechanisms' proposals.
    pub(in crate::montecarlo) fn prepared(&self) -> Result<Vec<(Prepared<'_>, u32)>> {
        let total: u32 = self.components.iter().map(|(_, share)| share).sum();
        let plain = matches!(self.components.first(), Some((Component::Tilted(theta), 1..)) if *theta == 0.0);
        if total != UNITS || !plain {
            let value = f64::from(total);
            return Err(Error::Domain { name: "shares", value, allowed: "128 in all, some of them of plain sampling" });
        }
        for (component, _) in &self.components {
            if let Component::Tilted(value) = *component {
                if !value.is_finite() {
                    return Err(Error::Domain { name: "tilt", value, allowed: "finite" });
                }
            }
        }
        for (mechanism, runs) in &self.parts {
            if *runs == 0 {
                return Err(Error::Domain { name: "runs", value: 0.0, allowed: "at least 1" });
            }
            if mechanism.of_presence() && self.direction == Direction::Replace {
                return Err(OF_PRESENCE);
            }
        }
        self.parts
            .iter()
            .enumerate()
            .map(|(place, (mechanism, runs))| {
                let part = match mechanism {
                    Mechanism::Renewal(k) => Prepared::Renewal(k, self.origins(&**k, place)?),
                    Mechanism::Overlapping(k) => Prepared::Overlapping(k, self.origins(&**k, place)?),
                    Mechanism::Bins(k) => Prepared::Bins(k, self.origins(&**k, place)?),
                    Mechanism::Allocation(k) => Prepared::Allocation(k, self.origins(&**k, place)?),
                    Mechanism::Truncated(k) => Prepared::Truncated(k, self.origins(&**k, place)?),
                    Mechanism::TruncatedBins(k) => Prepared::TruncatedBins(k, self.origins(&**k, place)?),
                };
                Ok((part, *runs))
            })
            .collect()
    }

    /// Returns the loss up to which a sample of one of these mechanisms has V = 0, if for all mechanisms together this
    /// is `loss`: the losses of several mechanisms add up.
    pub(in crate::montecarlo) fn least(&self, loss: f64) -> f64 {
        match &self.parts[..] {
            [(_, 1)] => loss,
            _ => f64::NEG_INFINITY,
        }
    }

    /// Draws eight samples of all parts from a proposal, into `worker.weighed`; those whose loss is at most `least`
    /// ([`Self::least`]) need no weight.
    #[inline(always)]
    pub(in crate::montecarlo) fn draw<V: Vector>(
        &self,
        parts: &[(Prepared<'_>, u32)],
        (component, least): (usize, f64),
        stream: &mut Stream,
        worker: &mut Worker,
    ) {
        worker.weighed.clear(self.components.len(), least);
        for (part, runs) in parts {
            for _ in 0..*runs {
                part.weigh::<V>(component, self.direction, stream, worker);
            }
        }
    }

    /// Returns dN/dM of the eight samples in `worker`, and the sum of their densities: dM_k/dM is a density divided by
    /// it.
    #[inline(always)]
    pub(in crate::montecarlo) fn weight<V: Vector>(&self, worker: &mut Worker) -> (V, V) {
        let Worker { weighed, densities, .. } = worker;
        // This is Σ_k α_k e^{…} without the largest factor; the first exponent is 0, so the weight is at most 1/α_1.
        let mut largest = V::splat(0.0);
        for one in &weighed.relative {
            largest = largest.max(V::load(one));
        }
        densities.clear();
        let mut sum = V::splat(0.0);
        for (one, (_, share)) in weighed.relative.iter().zip(&self.components) {
            let density = exp(V::load(one).sub(largest));
            sum = density.mul_add(V::splat(f64::from(*share) / f64::from(UNITS)), sum);
            let mut kept = splat(0.0);
            density.store(&mut kept);
            densities.push(kept);
        }
        (exp(V::splat(0.0).sub(largest)).div(sum), sum)
    }
}

impl Prepared<'_> {
    #[inline(always)]
    fn weigh<V: Vector>(&self, drawn: usize, direction: Direction, stream: &mut Stream, worker: &mut Worker) {
        let out = &mut worker.weighed;
        match self {
            Self::Renewal(k, o) => apart::<V, _>(*k, o, (drawn, direction), stream, &mut worker.buffers.renewal, out),
            Self::Overlapping(k, o) => {
                apart::<V, _>(*k, o, (drawn, direction), stream, &mut worker.buffers.overlapping, out);
            }
            Self::Bins(k, o) => apart::<V, _>(*k, o, (drawn, direction), stream, &mut worker.buffers.bins, out),
            Self::Allocation(k, o) => {
                apart::<V, _>(*k, o, (drawn, direction), stream, &mut worker.buffers.allocation, out);
            }
            Self::Truncated(k, o) => {
                apart::<V, _>(*k, o, (drawn, direction), stream, &mut worker.buffers.truncated, out);
            }
            Self::TruncatedBins(k, o) => {
                apart::<V, _>(*k, o, (drawn, direction), stream, &mut worker.buffers.truncated_bins, out);
            }
        }
    }
}

/// Draws and weights samples in a separate function, so that a kernel is compiled once for each kind of vector.
#[inline(always)]
fn apart<V: Vector, K: Balanced>(
    kernel: &K,
    origins: &Origins<K>,
    (drawn, direction): (usize, Direction),
    stream: &mut Stream,
    scratch: &mut K::Scratch,
    out: &mut Weighed,
) {
    V::apart(Weigh { kernel, origins, drawn, direction, stream, scratch, out });
}
