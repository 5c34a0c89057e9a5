//! The interface of the kernels: eight samples of a mechanism are drawn from a proposal, with their log densities.

use std::fmt::Debug;

use crate::error::{Error, Result};
use crate::montecarlo::proposals::weight_bounds::Direction;
use crate::montecarlo::stream::Stream;
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
    #[must_use]
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
    #[must_use]
    pub fn unweighted(&self, ratios: Ratios) -> Ratios {
        let proposal = if self.direction == Direction::Add { splat(0.0) } else { ratios.mixture };
        Ratios { proposal, ..ratios }
    }
}

/// Checks that the means of a proposal can be scaled by this factor.
///
/// # Errors
/// [`Error::Domain`] for a mean scale that is not between −100 and 100.
pub fn check_mean_scale(mean_scale: f64) -> Result<()> {
    if mean_scale.is_finite() && mean_scale.abs() <= 100.0 {
        return Ok(());
    }
    Err(Error::Domain { name: "mean scale", value: mean_scale, allowed: "between -100 and 100" })
}

/// A mechanism of which eight samples can be drawn at once.
pub trait Kernel {
    /// The type of the proposals.
    type Proposal: Clone + Debug;
    /// Buffers of one worker.
    type Scratch: Default;
    /// Returns the proposal of a parameter and a scale κ of the means, based on this kernel's law.
    ///
    /// # Errors
    /// [`Error::Domain`] for a parameter that no law has, and as [`check_mean_scale`].
    fn proposal(&self, parameter: f64, mean_scale: f64) -> Result<Self::Proposal>;
    /// Draws eight samples from a proposal and returns their log densities. Must be `#[inline(always)]`; callers use
    /// [`draw`].
    fn sample<V: Vector>(
        &self,
        proposal: &Self::Proposal,
        purpose: Purpose,
        stream: &mut Stream,
        scratch: &mut Self::Scratch,
    ) -> Ratios;
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

struct Draw<'a, K: Kernel> {
    kernel: &'a K,
    proposal: &'a K::Proposal,
    purpose: Purpose,
    stream: &'a mut Stream,
    scratch: &'a mut K::Scratch,
}

impl<K: Kernel> Vectored for Draw<'_, K> {
    type Output = Ratios;

    #[inline(always)]
    fn run<V: Vector>(self) -> Ratios {
        self.kernel.sample::<V>(self.proposal, self.purpose, self.stream, self.scratch)
    }
}
