//! The families of mechanisms that can be sampled: what is known of each, and how eight of its samples are drawn.
//!
//! A family is one kernel: a participation law with a matrix. [`Family`] has its facts, mostly bounds on errors;
//! [`Kernel`] draws from its proposals and computes log densities, for vectors of any kind. A kernel implements both in
//! its own file. Everything that takes samples (proposals, claims, gradients) holds a
//! [`Mechanism`](crate::montecarlo::mechanism::Mechanism), and does not know which families there are.
//!
//! A proposal is valid only for its own mechanism: evaluated by another kernel it would give wrong weights. So a proposal
//! is made by its kernel ([`Kernel::proposal`]) and kept together with it.

use std::any::Any;
use std::fmt::Debug;

use crate::error::{Error, Result};
use crate::montecarlo::stream::{Stream, LARGEST_NORMAL, NORMAL_ERROR};
use crate::montecarlo::tilt::{TiltBase, Tilted};
use crate::montecarlo::weight_bounds::{Direction, HolderSums};
use crate::participation::renewal::Renewal;
use crate::replicas::drawn::Participations;
use crate::special::{real, UNIT_ROUNDOFF};
use crate::vector::{splat, Lanes, Vector, Vectored, LANES};

/// The three log densities of a sample relative to R: of P, of Q, and of the proposal.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ratios {
    /// ln dP/dR for each lane.
    pub mixture: Lanes,
    /// ln dP⁻/dR, the mirror image; 0 where it is not needed.
    pub mirrored: Lanes,
    /// ln dM/dR of the proposal.
    pub proposal: Lanes,
}

impl Ratios {
    /// The log densities of no mechanism at all: P = Q = R.
    pub const NONE: Self = Self { mixture: splat(0.0), mirrored: splat(0.0), proposal: splat(0.0) };
}

/// What samples are used for.
#[derive(Debug, Clone, Copy)]
pub struct Purpose {
    /// The direction of the hockey stick.
    pub direction: Direction,
    /// Whether bounds may be computed from the samples, or only estimates.
    pub binding: bool,
    /// Samples whose losses are at most this have V = 0, so their weights are not needed; −∞ if all weights are needed.
    pub least: f64,
}

impl Purpose {
    /// Returns whether V is 0 for all eight samples with these densities; they can then count as samples of their own
    /// proposal.
    #[inline(always)]
    pub fn worthless(&self, ratios: &Ratios) -> bool {
        let loss = |l: usize| match self.direction {
            Direction::Remove => ratios.mixture[l],
            Direction::Add => -ratios.mixture[l],
            Direction::Replace => ratios.mixture[l] - ratios.mirrored[l],
        };
        // The condition is written so that a NaN loss counts as relevant.
        (0..LANES).all(|l| loss(l) <= self.least)
    }

    /// Returns the densities of samples with V = 0, with weights of 1.
    #[inline(always)]
    pub fn unweighted(&self, ratios: Ratios) -> Ratios {
        let proposal = if self.direction == Direction::Add { splat(0.0) } else { ratios.mixture };
        Ratios { proposal, ..ratios }
    }
}

/// The error for a replaced record where only presence and absence are compared.
pub const OF_PRESENCE: Error = Error::Numerics { reason: "truncated batches are compared with an empty record's" };

/// The largest probability to join that a proposal may have, unless the sampler itself always joins.
pub const MOST_LIKELY: f64 = 0.999;

/// The linear statistic t of tilts: Σ_i |∂_i t| over the coordinates of the noise, and bounds on |t| and on its
/// rounding.
#[derive(Debug, Clone, Copy)]
pub struct Statistic {
    /// Σ_i |∂_i t|.
    pub slope: f64,
    /// A bound on |t|.
    pub size: f64,
    /// A bound on the error of the computed t.
    pub error: f64,
}

/// The rounds (or bins) in which the records of each lane's sample take part, and the number of records.
pub type LanePatterns = Vec<Vec<(usize, f64)>>;

/// Draws the participations of a tuple of replicas for each lane.
pub type DrawTuples<'a> = dyn FnMut(&mut Stream, &mut LanePatterns) + 'a;

/// What is known of a family of mechanisms, apart from samples.
///
/// Facts about tilts are asked only where there is a [`Family::tilt_base`]; their usual answers are those of rounds.
pub trait Family: Any + Debug + Send + Sync {
    /// Returns the law of the rounds in which a record takes part, if that is a renewal law.
    fn renewal_law(&self) -> Option<&Renewal> {
        None
    }

    /// Returns the participations if [`crate::replicas`] has a chain for them; `None` otherwise.
    fn participations(&self) -> Option<Participations<'_>> {
        None
    }

    /// Returns how many numbers an outcome has: one for each round, or for each bin.
    fn outcome_length(&self) -> usize;

    /// Returns whether only the directions remove and add are known, and not replacement.
    fn of_presence(&self) -> bool {
        false
    }

    /// Returns the parameter of plain sampling: the probability to join, or the exponent 0.
    fn plain_parameter(&self) -> f64 {
        self.renewal_law().map_or(0.0, |law| law.sampling_probability)
    }

    /// Returns the proposal's parameter that matches mean scale κ when weights are tilted by κ(κ − 1)s/2, which keeps
    /// the weight bound small.
    ///
    /// For renewal the odds p/(1 − p) are multiplied by e^{κ(κ−1)s/2}, s the largest squared column norm; for bins the
    /// exponent is returned.
    fn balanced_parameter(&self, mean_scale: f64) -> f64 {
        let exponent = 0.5 * mean_scale * (mean_scale - 1.0);
        let Some(law) = self.renewal_law() else { return exponent };
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

    /// Returns a bound on the error of each log density from rounding, for the given mean scale.
    fn rounding(&self, mean_scale: f64) -> f64 {
        self.rounding_at(mean_scale, mean_scale.abs())
    }

    /// Returns the same bound for samples whose mean is at most `means` times that of participations. (Where batches
    /// are truncated, all proposals have scaled means.)
    fn rounding_at(&self, mean_scale: f64, means: f64) -> f64;

    /// Returns a bound on Σ_i sup |∂_i ln f| over the coordinates of the noise, for any mixture of the family.
    fn lipschitz(&self) -> f64;

    /// Returns the largest entry that Ĉx can have; of bins, the largest s_t.
    fn largest_mean(&self) -> f64;

    /// Returns a bound on every |ln density| of a sample: it lies between the least and the largest ⟨Cx, y⟩ − ‖Cx‖²/2
    /// over the patterns.
    fn magnitude(&self, mean_scale: f64) -> f64;

    /// Returns the average distance of a coordinate of a drawn sample from an exact one: of the normal number, and of
    /// the means added to it, κĈx and (as multiples of the largest entry of Ĉx, `displaced`) θm̄.
    ///
    /// [`NORMAL_ERROR`] has 6u to spare. Adding κĈx rounds by u of the sum, at most u(0.8 + |κ| max Ĉx) on average; θm̄
    /// and adding it by as much again and u of twice θm̄; κ times the number of records that take part by u of itself.
    /// With truncation participations count 2κ or 2κ − 1 times. (For bins the mean is added to the products, and their
    /// rounding is that of the log densities.)
    fn coordinate_error(&self, mean_scale: f64, displaced: f64) -> f64 {
        let largest = self.largest_mean();
        NORMAL_ERROR + self.added(mean_scale.abs() * largest, displaced * largest)
    }

    /// Returns how much adding means of these sizes to a normal number may round by, beyond the margin of
    /// [`NORMAL_ERROR`].
    fn added(&self, mean: f64, displaced: f64) -> f64 {
        let several = self.renewal_law().is_some_and(|law| law.records() > 1);
        let first = if several { 2.0 * mean } else { mean };
        let sums = if displaced > 0.0 { 1.6 + mean + first + 2.0 * displaced } else { 0.8 + first };
        UNIT_ROUNDOFF * (sums - 6.0).max(0.0)
    }

    /// Returns the direction of tilts; `None` where there are none.
    fn tilt_base(&self) -> Option<TiltBase> {
        None
    }

    /// Returns P (R for `add`) tilted by θ along the direction of [`Self::tilt_base`].
    fn tilted(&self, base: &TiltBase, theta: f64, add: bool) -> Tilted {
        match self.renewal_law() {
            Some(law) if !add => base.rounds(law, theta),
            _ => base.reference(theta),
        }
    }

    /// Returns the largest |θm̄_i|, as a multiple of the largest entry of Ĉx (bins: of the largest s_t).
    fn displacement(&self, base: &TiltBase, theta: f64) -> f64 {
        theta.abs() * (base.sizes().1 / self.largest_mean())
    }

    /// Returns bounds on t = ⟨m̄, ŷ⟩, for samples whose mean is at most `means` times that of participations: a sum of n
    /// products with |ŷ| ≤ 8.5 + `means`·max Ĉx.
    fn statistic(&self, base: &TiltBase, means: f64) -> Statistic {
        let terms = real(base.overlap.len());
        let total = base.sizes().0 * (1.0 + 1e-9);
        let size = total * (LARGEST_NORMAL + means * self.largest_mean());
        Statistic { slope: total, size, error: UNIT_ROUNDOFF * (terms + 4.0) * size * (1.0 + 1e-6) }
    }

    /// Returns by how much more than [`Self::rounding_at`] a log density of a sample of m replicas may be rounded.
    fn replicas_rounding(&self, _power: f64) -> f64 {
        1.0
    }

    /// Returns the average distance of a coordinate of a sample of m replicas from an exact one.
    ///
    /// At most m participations reach a row: adding each rounds by u of the sum so far. (For bins they are added to the
    /// products.)
    fn replicas_coordinate_error(&self, power: f64) -> f64 {
        NORMAL_ERROR + UNIT_ROUNDOFF * power * (1.0 + power * self.largest_mean())
    }

    /// Returns, where batches may be truncated, the total variation between the law of all batch sizes of a sample and
    /// the drawn one.
    fn truncation(&self) -> Option<f64> {
        None
    }

    /// Returns the numbers of other records in each batch of eight samples; empty without truncation.
    fn batch_sizes(&self, _stream: Stream) -> Vec<Vec<u64>> {
        Vec::new()
    }
}

/// A proposal in a mixture of several.
#[derive(Debug)]
pub enum Origin<S> {
    /// Tilted; plain sampling where there are no other tilts.
    Tilted(Tilted),
    /// Another law with scaled means.
    Scaled(S),
}

/// The proposals of a mixture, for one mechanism.
#[derive(Debug)]
pub struct Origins<S> {
    /// The direction of the tilts; empty where there are none.
    pub base: TiltBase,
    /// One for each component.
    pub each: Vec<Origin<S>>,
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
    pub fn add_tilts<V: Vector, S>(&mut self, origins: &Origins<S>, statistic: V) {
        for (k, origin) in origins.each.iter().enumerate() {
            if let Origin::Tilted(tilted) = origin {
                self.add(k, statistic.mul_add(V::splat(tilted.theta), V::splat(-tilted.norm)));
            }
        }
    }
}

/// A family of which eight samples can be drawn at once, from its proposals.
///
/// Functions of a kind of vectors must be `#[inline(always)]`: [`crate::montecarlo::mechanism`] compiles each once for each kind.
pub trait Kernel: Family + Sized {
    /// The type of the proposals.
    type Proposal: Clone + Debug + Send + Sync;
    /// The type of a law with a mean scale whose density is known, so that mixtures may contain it.
    type Scaled: Send + Sync;
    /// Buffers of one worker.
    type Scratch: Default + Send + 'static;

    /// Returns the proposal of a parameter and a scale κ of the means, based on this kernel's law.
    ///
    /// # Errors
    /// [`Error::Domain`] for a parameter that no law has, and as [`crate::montecarlo::source::check_mean_scale`].
    fn proposal(&self, parameter: f64, mean_scale: f64) -> Result<Self::Proposal>;

    /// Returns the same for a mixture.
    ///
    /// # Errors
    /// As [`Self::proposal`]; [`Error::Numerics`] where its density is not known.
    fn scaled(&self, parameter: f64, mean_scale: f64) -> Result<Self::Scaled>;

    /// Returns κ of a proposal.
    fn mean_scale(proposal: &Self::Proposal) -> f64;

    /// Returns the sums that bound samples from a proposal; see [`crate::montecarlo::weight_bounds`].
    fn sums(&self, proposal: &Self::Proposal, direction: Direction) -> HolderSums;

    /// Returns a bound on the total variation of a drawn pattern's law, and on the number of decisions whether a record
    /// survives truncation.
    fn drawn(&self, proposal: &Self::Proposal) -> (f64, f64);

    /// Draws eight samples from a proposal and returns their log densities.
    fn sample<V: Vector>(
        &self,
        proposal: &Self::Proposal,
        purpose: Purpose,
        stream: &mut Stream,
        scratch: &mut Self::Scratch,
    ) -> Ratios;

    /// Draws eight samples from the component `drawn` of a mixture, and adds loss and densities.
    fn weigh<V: Vector>(
        &self,
        origins: &Origins<Self::Scaled>,
        drawn: (usize, Direction),
        stream: &mut Stream,
        scratch: &mut Self::Scratch,
        out: &mut Weighed,
    );

    /// Returns the log densities of up to eight outcomes; see [`crate::montecarlo::mechanism::Mechanism::log_densities`].
    fn given<V: Vector>(&self, direction: Direction, outcomes: &[Vec<f64>], sizes: &[Vec<u64>]) -> Ratios;

    /// Draws eight samples of tuples of replicas, and returns ln f, with `mirrored` also ln f⁻. Asked only of families
    /// with [`Family::participations`].
    fn replicas<V: Vector>(
        &self,
        _: &mut DrawTuples<'_>,
        _mirrored: bool,
        _: &mut Stream,
        _: &mut Self::Scratch,
    ) -> Ratios {
        Ratios::NONE
    }
}

/// Draws eight samples in a separate function, so that a kernel is compiled once for each kind of vector.
#[inline(always)]
pub fn draw<V: Vector, K: Kernel>(
    kernel: &K,
    proposal: &K::Proposal,
    purpose: Purpose,
    stream: &mut Stream,
    scratch: &mut K::Scratch,
) -> Ratios {
    V::apart(Draw { kernel, proposal, purpose, stream, scratch })
}

/// Eight samples to be drawn from a proposal.
pub(super) struct Draw<'a, K: Kernel> {
    pub kernel: &'a K,
    pub proposal: &'a K::Proposal,
    pub purpose: Purpose,
    pub stream: &'a mut Stream,
    pub scratch: &'a mut K::Scratch,
}

impl<K: Kernel> Vectored for Draw<'_, K> {
    type Output = Ratios;

    #[inline(always)]
    fn run<V: Vector>(self) -> Ratios {
        self.kernel.sample::<V>(self.proposal, self.purpose, self.stream, self.scratch)
    }
}
