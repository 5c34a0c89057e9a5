//! Mixtures of proposals: a mechanism's samples drawn from several, in fixed shares, and weighed as if they came from all of them.
//!
//! A shard takes its samples from the proposals M_1, …, M_K in fixed shares α_k, and each is weighed by dN/dM of the mixture M =
//! Σ α_k M_k (the balance heuristic: Veach & Guibas 1995; Owen & Zhou 2000), N = P, or Q where the record is added:
//!
//! `V = (dN/dM)·(1 − e^{ε−L})_+`, or `(dN/dM)·D(ε − L)` with others composed, dN/dM = 1/Σ_k α_k dM_k/dN.
//!
//! The mean of V over a shard is δ(ε) whatever the proposals are. The first of them is the mechanism itself, so no sample weighs more than
//! 1/α_1. [`super::balanced`] makes estimates of such samples, [`super::defensive`] tests.

use crate::error::{Error, Result};
use crate::montecarlo::bins::{BinsKernel, BinsProposal, BinsScratch};
use crate::montecarlo::lanes::exp;
use crate::montecarlo::mechanism::{Mechanism, Proposal};
use crate::montecarlo::overlapping::{OverlappingKernel, OverlappingScratch};
use crate::montecarlo::proposal::Comparison;
use crate::montecarlo::renewal::{RenewalKernel, RenewalProposal, Scratch};
use crate::montecarlo::simulate::SHARD;
use crate::montecarlo::stream::Stream;
use crate::montecarlo::tilt::{TiltBase, Tilted};
use crate::montecarlo::truncated::{TruncatedKernel, TruncatedScratch};
use crate::montecarlo::truncated_bins::{TruncatedBinsKernel, TruncatedBinsScratch};
use crate::montecarlo::vector::{splat, Lanes, Vector, Vectored, LANES};

/// Groups of eight samples in a shard: what the shares of the components add up to.
#[allow(clippy::cast_possible_truncation)] // 128
pub const UNITS: u32 = (SHARD / LANES) as u32;

/// A proposal, for all mechanisms that are sampled together.
#[derive(Debug, Clone, PartialEq)]
pub enum Component {
    /// The mechanism (R where the record is added) tilted by θ; 0 is plain sampling.
    Tilted(f64),
    /// A law and stretch of [`super::proposal`]: one parameter for each mechanism.
    Stretched(Vec<f64>, f64),
}

/// Mechanisms that are run beside one another, and the proposals that samples of them come from.
#[derive(Debug, Clone)]
pub struct Mixture {
    /// What is sampled, each with its number of independent runs.
    pub parts: Vec<(Mechanism, u32)>,
    /// Which hockey stick.
    pub comparison: Comparison,
    /// The proposals with their shares of a shard in [`UNITS`]; the first is plain sampling.
    pub components: Vec<(Component, u32)>,
}

/// A proposal as one mechanism has it.
#[derive(Debug, Clone)]
pub enum Origin<P> {
    /// Tilted.
    Tilted(Tilted),
    /// Another law with stretched means.
    Stretched(P),
}

/// The proposals as one mechanism has them; `base` is absent where it cannot be tilted, and no θ but 0 is among them.
#[derive(Debug, Clone)]
pub struct Origins<P> {
    /// The direction of the tilts.
    pub base: Option<TiltBase>,
    /// One for each component.
    pub each: Vec<Origin<P>>,
}

/// Eight samples: the loss, and ln of each proposal's density relative to the numerator's. Mechanisms that are run together add.
#[derive(Debug, Clone, Default)]
pub struct Weighed {
    /// L.
    pub loss: Lanes,
    /// Samples whose losses are at most this are worth nothing, so what they weigh is not asked for; −∞ where all are.
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

    /// Count a mechanism's loss.
    #[inline(always)]
    pub fn add_loss<V: Vector>(&mut self, more: V) {
        V::load(&self.loss).add(more).store(&mut self.loss);
    }

    /// Whether none of the samples is worth anything; a loss that is no number counts.
    #[inline(always)]
    #[must_use]
    pub fn worthless(&self) -> bool {
        self.loss.0.iter().all(|loss| *loss <= self.least)
    }

    /// Count a mechanism's log density of a component.
    #[inline(always)]
    pub fn add<V: Vector>(&mut self, component: usize, more: V) {
        V::load(&self.relative[component]).add(more).store(&mut self.relative[component]);
    }

    /// Count the log densities of what is tilted: θt − norm.
    #[inline(always)]
    pub fn add_tilts<V: Vector, P>(&mut self, origins: &Origins<P>, statistic: V) {
        for (k, origin) in origins.each.iter().enumerate() {
            if let Origin::Tilted(tilted) = origin {
                self.add(k, statistic.mul_add(V::splat(tilted.theta), V::splat(-tilted.norm)));
            }
        }
    }
}

/// A mechanism of which eight samples can be drawn from any of its proposals, and weighed by all. Must be `#[inline(always)]`.
pub trait Balanced {
    /// A law and stretch.
    type Proposal;
    /// Buffers of one worker.
    type Scratch: Default;
    /// Draw eight samples from the proposal `drawn`, and count loss and densities.
    fn weigh<V: Vector>(
        &self,
        origins: &Origins<Self::Proposal>,
        drawn: usize,
        comparison: Comparison,
        stream: &mut Stream,
        scratch: &mut Self::Scratch,
        out: &mut Weighed,
    );
}

/// A mechanism with the proposals as it has them.
pub(super) enum Part<'a> {
    Renewal(&'a RenewalKernel, Origins<RenewalProposal>),
    Overlapping(&'a OverlappingKernel, Origins<RenewalProposal>),
    Bins(&'a BinsKernel, Origins<BinsProposal>),
    Truncated(&'a TruncatedKernel, Origins<RenewalProposal>),
    TruncatedBins(&'a TruncatedBinsKernel, Origins<BinsProposal>),
}

/// Buffers of one worker.
#[derive(Default)]
pub(super) struct Worker {
    renewal: Scratch,
    bins: BinsScratch,
    overlapping: OverlappingScratch,
    truncated: TruncatedScratch,
    truncated_bins: TruncatedBinsScratch,
    /// The last eight samples.
    pub weighed: Weighed,
    /// dM_k/dN of the last eight samples, each divided by the largest of its lane (or 1).
    pub densities: Vec<Lanes>,
}

struct Weigh<'a, K: Balanced> {
    kernel: &'a K,
    origins: &'a Origins<K::Proposal>,
    drawn: usize,
    comparison: Comparison,
    stream: &'a mut Stream,
    scratch: &'a mut K::Scratch,
    out: &'a mut Weighed,
}

impl<K: Balanced> Vectored for Weigh<'_, K> {
    type Output = ();

    #[inline(always)]
    fn run<V: Vector>(self) {
        self.kernel.weigh::<V>(self.origins, self.drawn, self.comparison, self.stream, self.scratch, self.out);
    }
}

/// What a mechanism makes of the components; `to` takes the proposals of its kind.
fn origins<P>(
    mechanism: &Mechanism,
    place: usize,
    mixture: &Mixture,
    to: impl Fn(Proposal) -> Option<P>,
) -> Result<Origins<P>> {
    let base = mechanism.tilt_base();
    let add = mixture.comparison == Comparison::Add;
    let each = mixture.components.iter().map(|(component, _)| match (component, &base) {
        (Component::Tilted(theta), Some(base)) => Ok(Origin::Tilted(mechanism.tilted(base, *theta, add))),
        (Component::Tilted(theta), None) => {
            if *theta != 0.0 {
                return Err(Error::Domain { name: "tilt", value: *theta, allowed: "0: truncated batches have none" });
            }
            Ok(Origin::Tilted(Tilted { theta: 0.0, norm: 0.0, law: None, relative: 0.0, variation: 0.0 }))
        }
        (Component::Stretched(parameters, stretch), _) => {
            let parameter = *parameters.get(place).ok_or(Error::Domain {
                name: "parameters of a proposal",
                value: f64::NAN,
                allowed: "one for each mechanism",
            })?;
            let proposal = mechanism.proposal(parameter, *stretch)?;
            to(proposal).map(Origin::Stretched).ok_or(Error::Numerics { reason: "a proposal of another mechanism" })
        }
    });
    Ok(Origins { each: each.collect::<Result<_>>()?, base })
}

impl Mixture {
    /// The parts with the proposals as each has them.
    ///
    /// # Errors
    /// [`Error::Domain`] for shares that do not add up, plain sampling that is missing, a tilt of truncated batches, and what a mechanism's
    /// proposals refuse.
    pub(super) fn prepared(&self) -> Result<Vec<(Part<'_>, u32)>> {
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
            if mechanism.truncated() && self.comparison == Comparison::Replace {
                return Err(Error::Numerics { reason: "truncated batches are compared with an empty record's" });
            }
        }
        let renewal = |proposal| if let Proposal::Renewal(found) = proposal { Some(found) } else { None };
        let bins = |proposal| if let Proposal::Bins(found) = proposal { Some(found) } else { None };
        self.parts
            .iter()
            .enumerate()
            .map(|(place, (mechanism, runs))| {
                let part = match mechanism {
                    Mechanism::Renewal(k) => Part::Renewal(k, origins(mechanism, place, self, renewal)?),
                    Mechanism::Overlapping(k) => Part::Overlapping(k, origins(mechanism, place, self, |_| None)?),
                    Mechanism::Bins(k) => Part::Bins(k, origins(mechanism, place, self, bins)?),
                    Mechanism::Truncated(k) => Part::Truncated(k, origins(mechanism, place, self, renewal)?),
                    Mechanism::TruncatedBins(k) => Part::TruncatedBins(k, origins(mechanism, place, self, bins)?),
                };
                Ok((part, *runs))
            })
            .collect()
    }

    /// The loss up to which a sample of these mechanisms is worth nothing, if of all together that is `loss`: with several the
    /// losses add up.
    pub(super) fn least(&self, loss: f64) -> f64 {
        match &self.parts[..] {
            [(_, 1)] => loss,
            _ => f64::NEG_INFINITY,
        }
    }

    /// Draw eight samples of all parts from a proposal, into `worker.weighed`; those whose loss is at most `least`
    /// ([`Self::least`]) need no weight.
    #[inline(always)]
    pub(super) fn draw<V: Vector>(
        &self,
        parts: &[(Part<'_>, u32)],
        (component, least): (usize, f64),
        stream: &mut Stream,
        worker: &mut Worker,
    ) {
        worker.weighed.clear(self.components.len(), least);
        for (part, runs) in parts {
            for _ in 0..*runs {
                part.weigh::<V>(component, self.comparison, stream, worker);
            }
        }
    }

    /// dN/dM of the eight samples in `worker`, and what their densities add up to: dM_k/dM is a density divided by it.
    #[inline(always)]
    pub(super) fn weight<V: Vector>(&self, worker: &mut Worker) -> (V, V) {
        let Worker { weighed, densities, .. } = worker;
        // Σ_k α_k e^{…} with the largest taken out; the first is 0, so the weight is at most 1/α_1.
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

impl Part<'_> {
    #[inline(always)]
    fn weigh<V: Vector>(&self, drawn: usize, comparison: Comparison, stream: &mut Stream, worker: &mut Worker) {
        let out = &mut worker.weighed;
        match self {
            Self::Renewal(k, o) => apart::<V, _>(*k, o, (drawn, comparison), stream, &mut worker.renewal, out),
            Self::Overlapping(k, o) => apart::<V, _>(*k, o, (drawn, comparison), stream, &mut worker.overlapping, out),
            Self::Bins(k, o) => apart::<V, _>(*k, o, (drawn, comparison), stream, &mut worker.bins, out),
            Self::Truncated(k, o) => apart::<V, _>(*k, o, (drawn, comparison), stream, &mut worker.truncated, out),
            Self::TruncatedBins(k, o) => {
                apart::<V, _>(*k, o, (drawn, comparison), stream, &mut worker.truncated_bins, out);
            }
        }
    }
}

/// Draw and weigh in a function of its own: a kernel is compiled once for each kind of vector.
#[inline(always)]
fn apart<V: Vector, K: Balanced>(
    kernel: &K,
    origins: &Origins<K::Proposal>,
    (drawn, comparison): (usize, Comparison),
    stream: &mut Stream,
    scratch: &mut K::Scratch,
    out: &mut Weighed,
) {
    V::apart(Weigh { kernel, origins, drawn, comparison, stream, scratch, out });
}
