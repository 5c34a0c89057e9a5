//! Estimates of δ from several proposals at once, by the balance heuristic.
//!
//! Samples come from the proposals M_1, …, M_K in fixed shares α_k, and each is weighed as if it came from the mixture M = Σ α_k M_k
//! (Veach & Guibas 1995; Owen & Zhou 2000): with numerator N (P, or Q where the record is added) and loss L,
//!
//! `V = (dN/dM)·(1 − e^{ε−L})_+`, or `(dN/dM)·D(ε − L)` with others composed, dN/dM = 1/Σ_k α_k dM_k/dN.
//!
//! The mean of V is δ(ε) whatever the proposals are. The first of them is the mechanism itself, so no sample weighs more than 1/α_1: what the
//! other proposals miss is seen as well as by plain sampling, and the standard error tells it.
//!
//! For each proposal and ε the sums also give: its *responsibility* E[V·α_k dM_k/dM], whose share of the whole is what α_k ought to be to
//! draw where V lies (the step of a cross-entropy or EM iteration: Cappé, Douc, Guillin, Marin & Robert 2008), and the second moment
//! E[V²·dM/dM_k] that samples of this proposal *alone* would have. Nothing here is a bound.

use std::sync::Arc;

use rayon::prelude::*;

use crate::error::{Error, Result};
use crate::montecarlo::bins::{BinsKernel, BinsProposal, BinsScratch};
use crate::montecarlo::lanes::exp;
use crate::montecarlo::mechanism::{Mechanism, Proposal};
use crate::montecarlo::overlapping::{OverlappingKernel, OverlappingScratch};
use crate::montecarlo::proposal::Comparison;
use crate::montecarlo::renewal::{RenewalKernel, RenewalProposal, Scratch};
use crate::montecarlo::simulate::SHARD;
use crate::montecarlo::stream::{Stream, StreamKey};
use crate::montecarlo::tilt::{TiltBase, Tilted};
use crate::montecarlo::truncated::{TruncatedKernel, TruncatedScratch};
use crate::montecarlo::truncated_bins::{TruncatedBinsKernel, TruncatedBinsScratch};
use crate::montecarlo::value::{Bound, Curve};
use crate::montecarlo::vector::{splat, with_vectors, Lanes, Vector, Vectored, LANES};
use crate::run::Run;

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

/// What is to be estimated.
#[derive(Debug, Clone)]
pub struct BalancedJob {
    /// What is sampled, each with its number of independent runs.
    pub parts: Vec<(Mechanism, u32)>,
    /// Which hockey stick.
    pub comparison: Comparison,
    /// The curve of what else is composed, if there is anything.
    pub curve: Option<Arc<Curve>>,
    /// The proposals with their shares of a shard in [`UNITS`]; the first is plain sampling.
    pub components: Vec<(Component, u32)>,
    /// Where δ is estimated.
    pub epsilons: Vec<f64>,
    /// The coordinates of the streams.
    pub key: StreamKey,
}

/// Sums over samples, for each component those that were drawn from it unless said otherwise.
#[derive(Debug, Clone, PartialEq)]
pub struct BalancedSums {
    /// How many samples were drawn from each.
    pub drawn: Vec<u64>,
    /// Σ L and Σ L².
    pub losses: Vec<(f64, f64)>,
    /// For each ε: (Σ V, Σ V²) of each component's samples.
    pub values: Vec<Vec<(f64, f64)>>,
    /// For each ε and component, over all samples: Σ V·α_k dM_k/dM and Σ V²·dM/dM_k.
    pub merits: Vec<Vec<(f64, f64)>>,
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
    /// ln dM_k/dN.
    pub relative: Vec<Lanes>,
}

impl Weighed {
    fn clear(&mut self, components: usize) {
        self.loss = splat(0.0);
        self.relative.clear();
        self.relative.resize(components, splat(0.0));
    }

    /// Count a mechanism's loss.
    #[inline(always)]
    pub fn add_loss<V: Vector>(&mut self, more: V) {
        V::load(&self.loss).add(more).store(&mut self.loss);
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
    /// The direction of the tilts; none where nothing is tilted.
    fn tilt_base(&self) -> Option<TiltBase>;
    /// P tilted by θ; only called where there is a base.
    fn tilted(&self, base: &TiltBase, theta: f64) -> Tilted;
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

enum Part<'a> {
    Renewal(&'a RenewalKernel, Origins<RenewalProposal>),
    Overlapping(&'a OverlappingKernel, Origins<RenewalProposal>),
    Bins(&'a BinsKernel, Origins<BinsProposal>),
    Truncated(&'a TruncatedKernel, Origins<RenewalProposal>),
    TruncatedBins(&'a TruncatedBinsKernel, Origins<BinsProposal>),
}

#[derive(Default)]
struct Worker {
    renewal: Scratch,
    bins: BinsScratch,
    overlapping: OverlappingScratch,
    truncated: TruncatedScratch,
    truncated_bins: TruncatedBinsScratch,
    weighed: Weighed,
    densities: Vec<Lanes>,
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
fn origins<K: Balanced>(
    kernel: &K,
    mechanism: &Mechanism,
    place: usize,
    job: &BalancedJob,
    to: impl Fn(Proposal) -> Option<K::Proposal>,
) -> Result<Origins<K::Proposal>> {
    let base = kernel.tilt_base();
    let add = job.comparison == Comparison::Add;
    let each = job.components.iter().map(|(component, _)| match (component, &base) {
        (Component::Tilted(theta), Some(base)) => {
            Ok(Origin::Tilted(if add { base.reference(*theta) } else { kernel.tilted(base, *theta) }))
        }
        (Component::Tilted(theta), None) => {
            if *theta != 0.0 {
                return Err(Error::Domain { name: "tilt", value: *theta, allowed: "0: truncated batches have none" });
            }
            Ok(Origin::Tilted(Tilted { theta: 0.0, norm: 0.0, law: None }))
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

impl BalancedJob {
    fn parts(&self) -> Result<Vec<(Part<'_>, u32)>> {
        let renewal = |proposal| if let Proposal::Renewal(found) = proposal { Some(found) } else { None };
        let bins = |proposal| if let Proposal::Bins(found) = proposal { Some(found) } else { None };
        self.parts
            .iter()
            .enumerate()
            .map(|(place, (mechanism, runs))| {
                let part = match mechanism {
                    Mechanism::Renewal(k) => Part::Renewal(k, origins(k, mechanism, place, self, renewal)?),
                    Mechanism::Overlapping(k) => Part::Overlapping(k, origins(k, mechanism, place, self, |_| None)?),
                    Mechanism::Bins(k) => Part::Bins(k, origins(k, mechanism, place, self, bins)?),
                    Mechanism::Truncated(k) => Part::Truncated(k, origins(k, mechanism, place, self, renewal)?),
                    Mechanism::TruncatedBins(k) => Part::TruncatedBins(k, origins(k, mechanism, place, self, bins)?),
                };
                Ok((part, *runs))
            })
            .collect()
    }

    fn check(&self) -> Result<()> {
        let total: u32 = self.components.iter().map(|(_, share)| share).sum();
        let plain = matches!(self.components.first(), Some((Component::Tilted(theta), 1..)) if *theta == 0.0);
        if total != UNITS || !plain {
            let value = f64::from(total);
            return Err(Error::Domain { name: "shares", value, allowed: "128 in all, some of them of plain sampling" });
        }
        match self.epsilons.iter().find(|epsilon| !epsilon.is_finite()) {
            Some(&value) => Err(Error::Domain { name: "epsilon", value, allowed: "finite" }),
            None => Ok(()),
        }
    }

    fn empty(&self) -> BalancedSums {
        let (components, epsilons) = (self.components.len(), self.epsilons.len());
        BalancedSums {
            drawn: vec![0; components],
            losses: vec![(0.0, 0.0); components],
            values: vec![vec![(0.0, 0.0); components]; epsilons],
            merits: vec![vec![(0.0, 0.0); components]; epsilons],
        }
    }
}

/// Run shards `first`, …, `first + count − 1`, on the pool this is called in; the sums of all, added in the order of the shards.
///
/// # Errors
/// [`Error::Domain`] for shares that do not add up, plain sampling that is missing, a tilt of truncated batches, an ε that is not finite,
/// and what a mechanism's proposals refuse; [`Error::Cancelled`]; [`Error::TimeLimit`].
pub fn simulate_balanced(job: &BalancedJob, first: u64, count: u64, run: &Run) -> Result<BalancedSums> {
    job.check()?;
    let parts = job.parts()?;
    let indices: Vec<u64> = (first..first + count).collect();
    let results: Vec<Result<BalancedSums>> = indices
        .par_chunks(2)
        .flat_map_iter(|pair| {
            let mut worker = Worker::default();
            let one = |&index| with_vectors(Shard { job, parts: &parts, index, worker: &mut worker, run });
            pair.iter().map(one).collect::<Vec<_>>()
        })
        .collect();
    let mut total = job.empty();
    for result in results {
        total.merge(&result?);
    }
    Ok(total)
}

struct Shard<'a> {
    job: &'a BalancedJob,
    parts: &'a [(Part<'a>, u32)],
    index: u64,
    worker: &'a mut Worker,
    run: &'a Run,
}

impl Vectored for Shard<'_> {
    type Output = Result<BalancedSums>;

    #[inline(always)]
    fn run<V: Vector>(self) -> Self::Output {
        let Self { job, parts, index, worker, run } = self;
        let mut stream = Stream::new(job.key, index);
        let mut sums = job.empty();
        for (component, (_, share)) in job.components.iter().enumerate() {
            for _ in 0..*share {
                run.check()?;
                worker.weighed.clear(job.components.len());
                for (part, runs) in parts {
                    for _ in 0..*runs {
                        part.weigh::<V>(component, job.comparison, &mut stream, worker);
                    }
                }
                sums.add::<V>(job, component, &worker.weighed, &mut worker.densities);
            }
        }
        Ok(sums)
    }
}

impl Part<'_> {
    #[inline(always)]
    fn weigh<V: Vector>(&self, drawn: usize, comparison: Comparison, stream: &mut Stream, worker: &mut Worker) {
        let out = &mut worker.weighed;
        match self {
            Self::Renewal(kernel, origins) => {
                V::apart(Weigh {
                    kernel: *kernel,
                    origins,
                    drawn,
                    comparison,
                    stream,
                    scratch: &mut worker.renewal,
                    out,
                });
            }
            Self::Overlapping(kernel, origins) => {
                V::apart(Weigh {
                    kernel: *kernel,
                    origins,
                    drawn,
                    comparison,
                    stream,
                    scratch: &mut worker.overlapping,
                    out,
                });
            }
            Self::Bins(kernel, origins) => {
                V::apart(Weigh { kernel: *kernel, origins, drawn, comparison, stream, scratch: &mut worker.bins, out });
            }
            Self::Truncated(kernel, origins) => {
                V::apart(Weigh {
                    kernel: *kernel,
                    origins,
                    drawn,
                    comparison,
                    stream,
                    scratch: &mut worker.truncated,
                    out,
                });
            }
            Self::TruncatedBins(kernel, origins) => {
                let scratch = &mut worker.truncated_bins;
                V::apart(Weigh { kernel: *kernel, origins, drawn, comparison, stream, scratch, out });
            }
        }
    }
}

impl BalancedSums {
    /// Count eight samples of a component.
    #[inline(always)]
    fn add<V: Vector>(&mut self, job: &BalancedJob, drawn: usize, sample: &Weighed, densities: &mut Vec<Lanes>) {
        let loss = V::load(&sample.loss);
        self.drawn[drawn] += LANES as u64;
        let total = |value: V| {
            let mut lanes = splat(0.0);
            value.store(&mut lanes);
            lanes.0.iter().sum::<f64>()
        };
        self.losses[drawn].0 += total(loss);
        self.losses[drawn].1 += total(loss.mul(loss));
        // ln dM/dN = ln Σ α_k e^{relative_k}, with the largest taken out; the first is 0, so the weight is at most 1/α_1.
        let mut largest = V::splat(0.0);
        for one in &sample.relative {
            largest = largest.max(V::load(one));
        }
        densities.clear();
        let mut sum = V::splat(0.0);
        for (one, (_, share)) in sample.relative.iter().zip(&job.components) {
            let density = exp(V::load(one).sub(largest));
            sum = density.mul_add(V::splat(f64::from(*share) / f64::from(UNITS)), sum);
            let mut kept = splat(0.0);
            density.store(&mut kept);
            densities.push(kept);
        }
        let weight = exp(V::splat(0.0).sub(largest)).div(sum);
        for (k, epsilon) in job.epsilons.iter().enumerate() {
            let argument = V::splat(*epsilon).sub(loss);
            let part = match job.curve.as_deref() {
                Some(curve) => curve.at(Bound::Above, argument),
                None => V::splat(1.0).sub(exp(argument)).max(V::splat(0.0)),
            };
            let value = weight.mul(part);
            let (first, square) = (total(value), total(value.mul(value)));
            if first == 0.0 {
                continue;
            }
            self.values[k][drawn].0 += first;
            self.values[k][drawn].1 += square;
            for (j, (density, (_, share))) in densities.iter().zip(&job.components).enumerate() {
                // dM_k/dM = density/sum; where the density vanishes, samples of it alone would miss this one.
                let ratio = V::load(density).div(sum);
                let alone = value.mul(value).div(ratio.max(V::splat(1e-290)));
                self.merits[k][j].0 += total(value.mul(ratio)) * f64::from(*share) / f64::from(UNITS);
                self.merits[k][j].1 += total(alone);
            }
        }
    }

    fn merge(&mut self, other: &Self) {
        let add = |to: &mut (f64, f64), more: &(f64, f64)| {
            to.0 += more.0;
            to.1 += more.1;
        };
        self.drawn.iter_mut().zip(&other.drawn).for_each(|(to, more)| *to += more);
        self.losses.iter_mut().zip(&other.losses).for_each(|(to, more)| add(to, more));
        let tables = [(&mut self.values, &other.values), (&mut self.merits, &other.merits)];
        for (to, from) in tables {
            to.iter_mut().flatten().zip(from.iter().flatten()).for_each(|(to, more)| add(to, more));
        }
    }
}

/// For choosing tilts: ‖m̄‖², E‖Ĉx‖²/2 and ln Z(θ) of all mechanisms together; none if one cannot be tilted.
#[must_use]
pub fn tilt_facts(parts: &[(Mechanism, u32)], theta: f64) -> Option<(f64, f64, f64)> {
    let mut all = (0.0, 0.0, 0.0);
    for (mechanism, runs) in parts {
        let (base, tilted) = match mechanism {
            Mechanism::Renewal(kernel) => facts_of(kernel, theta)?,
            Mechanism::Overlapping(kernel) => facts_of(kernel, theta)?,
            Mechanism::Bins(kernel) => facts_of(kernel, theta)?,
            Mechanism::Truncated(_) | Mechanism::TruncatedBins(_) => return None,
        };
        let runs = f64::from(*runs);
        all.0 += runs * base.square;
        all.1 += runs * base.offset;
        all.2 += runs * (tilted.norm - 0.5 * theta * theta * base.square);
    }
    Some(all)
}

fn facts_of<K: Balanced>(kernel: &K, theta: f64) -> Option<(TiltBase, Tilted)> {
    let base = kernel.tilt_base()?;
    let tilted = kernel.tilted(&base, theta);
    Some((base, tilted))
}
