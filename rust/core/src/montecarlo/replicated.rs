//! Samples of f^m: tuples of m replicas of a record's participations, drawn by [`crate::replicas::tuples`].
//!
//! A sample's outcome is y = Σ_r Cx^r + N(0, I), and with the ρ of its tuple dP/dM = ρ f^{1−m} is its weight: `V = ρ f^{1−m}·(1 −
//! e^{ε−L})₊`, or `ρ f^{1−m}·D(ε − L)` with a composed profile, L = ln f. The head of that module proves E V = δ_remove(ε), and the
//! bound: V ≤ sup ρ·sup_x f^{1−m}D(x) with f = e^{ε−x}, which is sup ρ·e^{−(m−1)ε}·sup_x e^{(m−1)x}D(x). That is what
//! [`super::proposal`] computes for a scale μ = m of the means, with sup ρ in the place of T^{μ−1}; and ln V moves by at most as much
//! when an outcome does. For several mechanisms with one m the products of ρ and of f stand there.
//!
//! A tuple that was given up is a sample with V = 0.

use std::sync::Arc;

use crate::error::Result;
use crate::montecarlo::kernel::Ratios;
use crate::montecarlo::proposal::{Direction, HolderSums};
use crate::montecarlo::renewal::{RenewalKernel, RenewalScratch};
use crate::montecarlo::source::{add_participations, draw_noise, Source};
use crate::montecarlo::stream::{Stream, NORMAL_ERROR};
use crate::replicas::tuples::{Tuple, Tuples};
use crate::run::Run;
use crate::special::{Approximation, UNIT_ROUNDOFF};
use crate::vector::{splat, Lanes, Vector, Vectored, LANES};

/// Numbers of the tables of the tuples of one order: 256 MiB.
const ROOM: usize = 1 << 26;
/// The loss of a sample that is worth nothing.
const WORTHLESS: f64 = -1e9;

/// A mechanism with the tuples that its samples come from.
#[derive(Debug)]
pub struct Replicated {
    kernel: Arc<RenewalKernel>,
    tuples: Tuples,
}

impl Replicated {
    /// The samples of f^m, m = `order`.
    ///
    /// # Errors
    /// As [`Tuples::new`].
    pub fn new(kernel: &Arc<RenewalKernel>, order: usize, run: &Run) -> Result<Self> {
        let tuples = Tuples::new(kernel.law(), &kernel.coefficients, order, ROOM, run)?;
        Ok(Self { kernel: Arc::clone(kernel), tuples })
    }

    /// What is sampled.
    #[must_use]
    pub fn kernel(&self) -> &Arc<RenewalKernel> {
        &self.kernel
    }

    /// m, the power of f.
    #[must_use]
    pub fn power(&self) -> f64 {
        #[allow(clippy::cast_precision_loss)] // at most 64 or so
        let power = self.tuples.order() as f64;
        power
    }

    /// A bound on ln ρ.
    #[must_use]
    pub fn log_bound(&self) -> f64 {
        self.tuples.log_bound()
    }

    /// What bounds the samples; see the head of this file.
    #[must_use]
    pub fn sums(&self, direction: Direction) -> HolderSums {
        if direction != Direction::Remove {
            return HolderSums::Nothing;
        }
        let excess = self.power() - 1.0;
        let value = self.tuples.log_bound() / excess;
        let sum = Approximation { value, error: 2.0 * UNIT_ROUNDOFF * value.abs() };
        HolderSums::Known { sum, overlap: Approximation::default() }
    }

    /// A bound on the errors of ln f and of m ln f − ln ρ.
    #[must_use]
    pub fn rounding(&self) -> f64 {
        let power = self.power();
        let (own, size) = (self.kernel.rounding_at(1.0, power), self.kernel.magnitude(power));
        let sum = 4.0 * UNIT_ROUNDOFF * (power * size + self.tuples.log_bound().abs());
        power * own + self.tuples.relative() + sum
    }

    /// How far a coordinate of a sample is from an exact one on average.
    ///
    /// At most m participations reach a row: adding each rounds by u of what is there then.
    #[must_use]
    pub fn coordinate_error(&self) -> f64 {
        let power = self.power();
        NORMAL_ERROR + UNIT_ROUNDOFF * power * (1.0 + power * self.kernel.largest_mean())
    }

    /// By how much the law of the tuples may be off, in total variation.
    #[must_use]
    pub fn variation(&self) -> f64 {
        self.tuples.variation()
    }

    /// The log densities of eight samples: ln f, and m ln f − ln ρ of where they come from.
    #[inline(always)]
    pub(super) fn draw<V: Vector>(&self, stream: &mut Stream, scratch: &mut ReplicatedScratch) -> Ratios {
        let ReplicatedScratch { renewal, states } = scratch;
        states.resize_with(LANES, Tuple::default);
        let before = stream.clone();
        let mut log_weights = splat(0.0);
        let source = &mut Drawn { tuples: &self.tuples, stream, states, log_weights: &mut log_weights };
        let linear = self.kernel.ratios::<V, _>(None, false, source, renewal);
        let mut ratios = linear.unwrap_or_else(|| {
            // Out of the linear domain: the samples are drawn anew.
            *stream = before;
            let source = &mut Drawn { tuples: &self.tuples, stream, states, log_weights: &mut log_weights };
            self.kernel.logarithmic::<V, _>(None, false, source, renewal)
        });
        for lane in 0..LANES {
            if log_weights[lane] == f64::NEG_INFINITY {
                ratios.mixture[lane] = WORTHLESS;
                ratios.proposal[lane] = 0.0;
            } else {
                ratios.proposal[lane] = ratios.mixture[lane].mul_add(self.power(), -log_weights[lane]);
            }
        }
        ratios
    }
}

/// Buffers of one worker.
#[derive(Debug, Default)]
pub struct ReplicatedScratch {
    renewal: RenewalScratch,
    states: Vec<Tuple>,
}

/// Outcomes of tuples that are drawn from a stream.
struct Drawn<'a> {
    tuples: &'a Tuples,
    stream: &'a mut Stream,
    states: &'a mut [Tuple],
    log_weights: &'a mut Lanes,
}

impl Source for Drawn<'_> {
    #[inline(always)]
    fn begin<V: Vector>(&mut self, patterns: &mut Vec<Vec<(usize, f64)>>) {
        patterns.resize(LANES, Vec::new());
        patterns.iter_mut().for_each(Vec::clear);
        let Self { tuples, stream, states, log_weights } = self;
        V::apart(Drawing { tuples, stream, states, log_weights, patterns });
    }

    #[inline(always)]
    fn fill<V: Vector>(
        &mut self,
        kernel: &RenewalKernel,
        start: usize,
        rows: &mut [Lanes],
        patterns: &mut [Vec<(usize, f64)>],
    ) {
        draw_noise::<V>(self.stream, rows);
        add_participations(&kernel.coefficients, 1.0, start, rows, patterns);
    }
}

struct Drawing<'a> {
    tuples: &'a Tuples,
    stream: &'a mut Stream,
    states: &'a mut [Tuple],
    log_weights: &'a mut Lanes,
    patterns: &'a mut [Vec<(usize, f64)>],
}

impl Vectored for Drawing<'_> {
    type Output = ();

    #[inline(always)]
    fn run<V: Vector>(self) {
        let Self { tuples, stream, states, log_weights, patterns } = self;
        let mut drawing = stream.take::<V>();
        let (mut one, mut other) = (splat(0.0), splat(0.0));
        drawing.uniform().store(&mut one);
        drawing.uniform().store(&mut other);
        for (lane, tuple) in states.iter_mut().enumerate() {
            tuples.begin((one[lane], other[lane]), tuple);
            log_weights[lane] = 0.0;
        }
        for round in 0..tuples.rounds() {
            drawing.uniform().store(&mut one);
            for (lane, tuple) in states.iter_mut().enumerate() {
                // Tuples that were given up draw along with the others, to no effect.
                if log_weights[lane] == f64::NEG_INFINITY {
                    continue;
                }
                match tuples.step(round + 1, one[lane], tuple) {
                    Some(0) => {}
                    #[allow(clippy::cast_precision_loss)] // at most the order
                    Some(joined) => patterns[lane].push((round, joined as f64)),
                    None => log_weights[lane] = f64::NEG_INFINITY,
                }
            }
        }
        for (lane, tuple) in states.iter().enumerate() {
            log_weights[lane] += tuples.log_weight(tuple);
        }
        stream.put_back(drawing);
    }
}
