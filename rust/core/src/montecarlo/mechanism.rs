//! A mechanism that can be sampled, whatever its family is.
//!
//! [`Mechanism`] holds a kernel of any family, [`Samples`] a kernel with one proposal, and [`Weighing`] one with the
//! proposals of a mixture. All three follow from [`Kernel`]; calls through them choose the kind of vectors by a value,
//! once for eight samples.

use std::any::Any;
use std::fmt::Debug;
use std::ops::Deref;
use std::sync::Arc;

use crate::error::{domain, Result};
use crate::montecarlo::family::{Draw, DrawTuples, Family, Kernel, Origin, Origins, Purpose, Ratios, Weighed};
use crate::montecarlo::stream::Stream;
use crate::montecarlo::tilt::TiltBase;
use crate::montecarlo::weight_bounds::{Direction, HolderSums};
use crate::run::Run;
use crate::vector::{Portable, Vector, Vectored, Vectors, LANES};

struct Weigh<'a, K: Kernel> {
    part: &'a Prepared<'a, K>,
    drawn: (usize, Direction),
    stream: &'a mut Stream,
    scratch: &'a mut K::Scratch,
    out: &'a mut Weighed,
}

impl<K: Kernel> Vectored for Weigh<'_, K> {
    type Output = ();

    #[inline(always)]
    fn run<V: Vector>(self) {
        self.part.kernel.weigh::<V>(&self.part.origins, self.drawn, self.stream, self.scratch, self.out);
    }
}

struct Replicate<'a, 'b, K: Kernel> {
    kernel: &'a K,
    tuples: &'a mut DrawTuples<'b>,
    mirrored: bool,
    stream: &'a mut Stream,
    scratch: &'a mut K::Scratch,
}

impl<K: Kernel> Vectored for Replicate<'_, '_, K> {
    type Output = Ratios;

    #[inline(always)]
    fn run<V: Vector>(self) -> Ratios {
        self.kernel.replicas::<V>(self.tuples, self.mirrored, self.stream, self.scratch)
    }
}

/// Buffers of one worker, for any mechanisms.
#[derive(Default)]
pub struct Buffers(Vec<Box<dyn Any + Send>>);

impl Buffers {
    /// Returns the buffers of this type.
    pub fn of<S: Default + Send + 'static>(&mut self) -> &mut S {
        let place = self.0.iter().position(|one| one.is::<S>()).unwrap_or_else(|| {
            self.0.push(Box::<S>::default());
            self.0.len() - 1
        });
        // Only the position of a buffer of this type was looked for.
        self.0[place].downcast_mut().unwrap_or_else(|| unreachable!("a buffer changed its type"))
    }
}

/// A component of a mixture: its parameter for this mechanism and its mean scale, or its tilt.
#[derive(Debug, Clone, Copy)]
pub enum Asked {
    /// θ.
    Tilted(f64),
    /// The parameter and κ.
    Scaled(f64, f64),
}

/// A mechanism with samples from one proposal.
pub trait Samples: Debug + Send + Sync {
    /// Returns the mechanism that is sampled.
    fn mechanism(&self) -> Mechanism;

    /// Returns κ; for samples of a power of f, the power.
    fn mean_scale(&self) -> f64;

    /// Returns the sums that bound these samples; see [`crate::montecarlo::weight_bounds`].
    fn sums(&self, direction: Direction) -> HolderSums;

    /// Returns whether their values are those of this hockey stick; for samples of a power, with a floor for replacement.
    fn serves(&self, _direction: Direction) -> bool {
        true
    }

    /// Returns a bound on the error of each log density from rounding.
    fn rounding(&self) -> f64 {
        self.mechanism().rounding(self.mean_scale())
    }

    /// Returns the Lipschitz bound Λ of the mechanism, the average distance of a coordinate of a drawn sample from an
    /// exact one, and the total variation between the law of its patterns and the drawn one.
    fn generator(&self) -> (f64, f64, f64);

    /// Prepares for drawing many samples.
    ///
    /// # Errors
    /// [`Error::Cancelled`] and [`Error::TimeLimit`].
    fn prepare(&self, _run: &Run) -> Result<()> {
        Ok(())
    }

    /// Returns an upper bound on the missing part of E V as a multiple of the weight bound.
    ///
    /// # Errors
    /// [`Error::Cancelled`] and [`Error::TimeLimit`].
    fn left_out(&self, _run: &Run) -> Result<f64> {
        Ok(0.0)
    }

    /// Draws eight samples and returns their log densities.
    fn draw(&self, vectors: Vectors, purpose: Purpose, stream: &mut Stream, buffers: &mut Buffers) -> Ratios;
}

/// A mechanism with the proposals of a mixture.
pub trait Weighing: Send + Sync {
    /// Draws eight samples from the component `drawn`, and adds loss and densities to `out`.
    fn weigh(
        &self,
        vectors: Vectors,
        drawn: (usize, Direction),
        stream: &mut Stream,
        buffers: &mut Buffers,
        out: &mut Weighed,
    );
}

/// A family whose type is not known: what follows from its [`Kernel`].
pub trait Sampled: Family {
    /// Returns the kernel for a conversion to its own type.
    fn any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync>;

    /// Returns this mechanism with samples from the proposal of a parameter and a mean scale.
    ///
    /// # Errors
    /// As [`Kernel::proposal`].
    fn proposed(self: Arc<Self>, parameter: f64, mean_scale: f64) -> Result<Arc<dyn Samples>>;

    /// Returns this mechanism with the components of a mixture; `add` where the record is added.
    ///
    /// # Errors
    /// As [`Kernel::scaled`]; [`Error::Domain`] for a tilt of a mechanism that has none.
    fn prepared(&self, components: &[Asked], add: bool) -> Result<Box<dyn Weighing + '_>>;

    /// Returns the log densities of up to eight outcomes, by the copy for any machine.
    fn densities(&self, direction: Direction, outcomes: &[Vec<f64>], sizes: &[Vec<u64>]) -> Ratios;

    /// Draws eight samples of tuples of replicas, and returns ln f, with `mirrored` also ln f⁻.
    fn replicate(
        &self,
        vectors: Vectors,
        tuples: &mut DrawTuples<'_>,
        mirrored: bool,
        stream: &mut Stream,
        buffers: &mut Buffers,
    ) -> Ratios;
}

impl<K: Kernel> Sampled for K {
    fn any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync> {
        self
    }

    fn proposed(self: Arc<Self>, parameter: f64, mean_scale: f64) -> Result<Arc<dyn Samples>> {
        let proposal = self.proposal(parameter, mean_scale)?;
        Ok(Arc::new(Proposal { kernel: self, proposal }))
    }

    fn prepared(&self, components: &[Asked], add: bool) -> Result<Box<dyn Weighing + '_>> {
        let base = self.tilt_base();
        let each = components.iter().map(|component| match (*component, &base) {
            (Asked::Tilted(theta), Some(base)) => Ok(Origin::Tilted(self.tilted(base, theta, add))),
            (Asked::Tilted(0.0), None) => Ok(Origin::Tilted(TiltBase::default().reference(0.0))),
            (Asked::Tilted(value), None) => domain("tilt", value, "0: truncated batches and allocations have none"),
            (Asked::Scaled(parameter, mean_scale), _) => self.scaled(parameter, mean_scale).map(Origin::Scaled),
        });
        let each = each.collect::<Result<_>>()?;
        Ok(Box::new(Prepared { kernel: self, origins: Origins { base: base.unwrap_or_default(), each } }))
    }

    fn densities(&self, direction: Direction, outcomes: &[Vec<f64>], sizes: &[Vec<u64>]) -> Ratios {
        self.given::<Portable>(direction, outcomes, sizes)
    }

    fn replicate(
        &self,
        vectors: Vectors,
        tuples: &mut DrawTuples<'_>,
        mirrored: bool,
        stream: &mut Stream,
        buffers: &mut Buffers,
    ) -> Ratios {
        vectors.run(Replicate { kernel: self, tuples, mirrored, stream, scratch: buffers.of::<K::Scratch>() })
    }
}

/// A kernel and one of its proposals.
#[derive(Debug)]
struct Proposal<K: Kernel> {
    kernel: Arc<K>,
    proposal: K::Proposal,
}

impl<K: Kernel> Samples for Proposal<K> {
    fn mechanism(&self) -> Mechanism {
        Mechanism(Arc::clone(&self.kernel) as Arc<dyn Sampled>)
    }

    fn mean_scale(&self) -> f64 {
        K::mean_scale(&self.proposal)
    }

    fn sums(&self, direction: Direction) -> HolderSums {
        self.kernel.sums(&self.proposal, direction)
    }

    fn generator(&self) -> (f64, f64, f64) {
        let mean_scale = self.mean_scale();
        let (drawn, decisions) = self.kernel.drawn(&self.proposal);
        let patterns = match self.kernel.truncation() {
            // No pattern is drawn, or none is added.
            None if mean_scale == 0.0 => 0.0,
            None => drawn,
            Some(variation) => drawn + variation + 2.0 * decisions * f64::EPSILON,
        };
        (self.kernel.lipschitz(), self.kernel.coordinate_error(mean_scale, 0.0), patterns)
    }

    fn draw(&self, vectors: Vectors, purpose: Purpose, stream: &mut Stream, buffers: &mut Buffers) -> Ratios {
        let (kernel, proposal) = (&*self.kernel, &self.proposal);
        vectors.run(Draw { kernel, proposal, purpose, stream, scratch: buffers.of::<K::Scratch>() })
    }
}

/// A kernel and its proposals in a mixture.
struct Prepared<'a, K: Kernel> {
    kernel: &'a K,
    origins: Origins<K::Scaled>,
}

impl<K: Kernel> Weighing for Prepared<'_, K> {
    fn weigh(
        &self,
        vectors: Vectors,
        drawn: (usize, Direction),
        stream: &mut Stream,
        buffers: &mut Buffers,
        out: &mut Weighed,
    ) {
        vectors.run(Weigh { part: self, drawn, stream, scratch: buffers.of::<K::Scratch>(), out });
    }
}

/// A mechanism that can be sampled. It shares its kernel, so copies of it are cheap.
#[derive(Debug, Clone)]
pub struct Mechanism(Arc<dyn Sampled>);

impl<K: Kernel> From<K> for Mechanism {
    fn from(kernel: K) -> Self {
        Self(Arc::new(kernel))
    }
}

impl<K: Kernel> From<Arc<K>> for Mechanism {
    fn from(kernel: Arc<K>) -> Self {
        Self(kernel)
    }
}

impl Deref for Mechanism {
    type Target = dyn Sampled;

    fn deref(&self) -> &Self::Target {
        &*self.0
    }
}

impl Mechanism {
    /// Returns the kernel if it is of this family; `None` otherwise.
    pub fn kernel<K: Kernel>(&self) -> Option<Arc<K>> {
        Arc::clone(&self.0).any().downcast().ok()
    }

    /// Returns this mechanism with samples from the proposal of a parameter and a mean scale; see [`Kernel::proposal`].
    ///
    /// # Errors
    /// As [`Kernel::proposal`].
    pub fn proposed(&self, parameter: f64, mean_scale: f64) -> Result<Arc<dyn Samples>> {
        Arc::clone(&self.0).proposed(parameter, mean_scale)
    }

    /// Returns ln dP/dR and ln dP⁻/dR for given outcomes y/σ (bins: the inner products ⟨m_t, y/σ⟩), from which the loss
    /// of this direction is computed.
    ///
    /// With truncated batches the second is ln dQ/dR, and `sizes` has the batch sizes of the other records for each
    /// outcome; if it is empty nothing is truncated.
    pub fn log_densities(&self, direction: Direction, outcomes: &[Vec<f64>], sizes: &[Vec<u64>]) -> Vec<(f64, f64)> {
        let mut sizes = sizes.chunks(LANES);
        outcomes
            .chunks(LANES)
            .flat_map(|chunk| {
                let ratios = self.densities(direction, chunk, sizes.next().unwrap_or(&[]));
                (0..chunk.len()).map(move |l| (ratios.mixture[l], ratios.mirrored[l]))
            })
            .collect()
    }
}
