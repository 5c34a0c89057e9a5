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

use crate::error::{domain, Result};
use crate::montecarlo::family::{Weighed, OF_PRESENCE};
use crate::montecarlo::mechanism::{Asked, Buffers, Mechanism, Weighing};
use crate::montecarlo::stream::{Stream, SHARD};
use crate::montecarlo::weight_bounds::Direction;
use crate::vector::functions::exp;
use crate::vector::{splat, Lanes, Vector, LANES};

/// The number of groups of eight samples in a shard, which the shares of the components add up to.
#[allow(clippy::cast_possible_truncation)] // 128
pub const UNITS: u32 = (SHARD / LANES) as u32;

/// A proposal, for all mechanisms that are sampled together.
#[derive(Debug, Clone, PartialEq)]
pub enum Component {
    /// The mechanism (R where the record is added) tilted by θ; 0 is plain sampling.
    Tilted(f64),
    /// A law and mean scale of [`crate::montecarlo::weight_bounds`], with one parameter for each mechanism.
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

/// A mechanism with the proposals of a mixture, and its number of runs.
pub(in crate::montecarlo) type Prepared<'a> = (Box<dyn Weighing + 'a>, u32);

/// Buffers of one worker.
#[derive(Default)]
pub(in crate::montecarlo) struct Worker {
    pub buffers: Buffers,
    /// The last eight samples.
    pub weighed: Weighed,
    /// dM_k/dN of the last eight samples, each divided by the largest of its lane (or 1).
    pub densities: Vec<Lanes>,
}

impl Mixture {
    /// Returns what is asked of the mechanism at `place`.
    fn asked(&self, place: usize) -> Result<Vec<Asked>> {
        let one = |(component, _): &(Component, u32)| match component {
            Component::Tilted(theta) => Ok(Asked::Tilted(*theta)),
            Component::Scaled(parameters, mean_scale) => match parameters.get(place) {
                Some(&parameter) => Ok(Asked::Scaled(parameter, *mean_scale)),
                None => domain("parameters of a proposal", f64::NAN, "one for each mechanism"),
            },
        };
        self.components.iter().map(one).collect()
    }

    /// Returns the parts, each with its specialised proposals.
    ///
    /// # Errors
    /// [`Error::Domain`] for shares that do not add up, plain sampling that is missing, a tilt of truncated batches,
    /// and the errors of the mechanisms' proposals.
    pub(in crate::montecarlo) fn prepared(&self) -> Result<Vec<Prepared<'_>>> {
        let total: u32 = self.components.iter().map(|(_, share)| share).sum();
        let plain = matches!(self.components.first(), Some((Component::Tilted(theta), 1..)) if *theta == 0.0);
        if total != UNITS || !plain {
            let value = f64::from(total);
            return domain("shares", value, "128 in all, some of them of plain sampling");
        }
        for (component, _) in &self.components {
            if let Component::Tilted(value) = *component {
                if !value.is_finite() {
                    return domain("tilt", value, "finite");
                }
            }
        }
        for (mechanism, runs) in &self.parts {
            if *runs == 0 {
                return domain("runs", 0.0, "at least 1");
            }
            if mechanism.of_presence() && self.direction == Direction::Replace {
                return Err(OF_PRESENCE);
            }
        }
        let add = self.direction == Direction::Add;
        let mut parts = Vec::with_capacity(self.parts.len());
        for (place, (mechanism, runs)) in self.parts.iter().enumerate() {
            parts.push((mechanism.prepared(&self.asked(place)?, add)?, *runs));
        }
        Ok(parts)
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
        parts: &[Prepared<'_>],
        (component, least): (usize, f64),
        stream: &mut Stream,
        worker: &mut Worker,
    ) {
        worker.weighed.clear(self.components.len(), least);
        for (part, runs) in parts {
            for _ in 0..*runs {
                part.weigh(V::kind(), (component, self.direction), stream, &mut worker.buffers, &mut worker.weighed);
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
