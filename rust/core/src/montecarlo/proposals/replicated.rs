//! Samples of f^m: tuples of m replicas of a record's participations, drawn by [`crate::replicas::tuples`], or by
//! [`crate::replicas::block_tuples`].
//!
//! A sample's outcome is y = Σ_r Cx^r + N(0, I), and with the ρ of its tuple dP/dM = ρ f^{1−m} is its weight: `V = ρ f^{1−m}·(1 −
//! e^{ε−L})₊`, or `ρ f^{1−m}·D(ε − L)` with a composed profile, L = ln f. The head of that module proves E V = δ_remove(ε), if all
//! replicas may be busy at once, and the bound: V ≤ sup ρ·sup_x f^{1−m}D(x) with f = e^{ε−x}, which is sup ρ·e^{−(m−1)ε}·sup_x e^{(m−1)x}D(x). That is what
//! [`super::proposal`] computes for a scale μ = m of the means, with sup ρ in the place of T^{μ−1}; and ln V moves by at most as much
//! when an outcome does. For several mechanisms with one m the products of ρ and of f stand there.
//!
//! A tuple that was given up is a sample with V = 0. Where no more than K replicas may be busy at once, E V falls short of δ_remove(ε)
//! by at most sup_x f^{1−m}D(x)·Z_⊥, which [`crate::replicas::left_out`] proves and bounds.

use std::sync::{Arc, OnceLock};

use crate::error::Result;
use crate::montecarlo::kernels::kernel::Ratios;
use crate::montecarlo::kernels::renewal::{RenewalKernel, RenewalScratch};
use crate::montecarlo::proposals::proposal::{Direction, HolderSums};
use crate::montecarlo::source::{add_participations, draw_noise, Source};
use crate::montecarlo::stream::{Stream, NORMAL_ERROR};
use crate::replicas::block_tuples::{BlockTuple, BlockTuples};
use crate::replicas::tuples::{Tuple, Tuples};
use crate::replicas::{log_left_out, Replicas, ONE_OR_OTHER};
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
    tuples: Drawn,
    replicas: Replicas,
    /// Z_⊥ over the bound on ρ.
    left_out: OnceLock<f64>,
}

/// How tuples are drawn.
#[derive(Debug)]
enum Drawn {
    Rounds(Tuples),
    Blocks(BlockTuples),
}

impl Replicated {
    /// The samples of f^m.
    ///
    /// # Errors
    /// As [`Tuples::new`] and [`BlockTuples::new`].
    pub fn new(kernel: &Arc<RenewalKernel>, replicas: Replicas, run: &Run) -> Result<Self> {
        let Replicas { order, most_busy, block } = replicas;
        let (law, coefficients) = (kernel.law(), &kernel.coefficients);
        let tuples = match block {
            None => Drawn::Rounds(Tuples::new(law, coefficients, (order, most_busy), ROOM, run)?),
            Some(_) if most_busy.is_some() => return Err(ONE_OR_OTHER),
            Some(length) => Drawn::Blocks(BlockTuples::new(law, coefficients, (order, length), ROOM, run)?),
        };
        Ok(Self { kernel: Arc::clone(kernel), tuples, replicas, left_out: OnceLock::new() })
    }

    /// Make ready for samples to be drawn fast. They are the same without.
    ///
    /// # Errors
    /// As [`Tuples::prepare`].
    pub fn prepare(&self, run: &Run) -> Result<()> {
        match &self.tuples {
            Drawn::Rounds(tuples) => tuples.prepare(run),
            Drawn::Blocks(tuples) => tuples.prepare(run),
        }
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
        let power = self.replicas.order as f64;
        power
    }

    /// A bound on ln ρ.
    #[must_use]
    pub fn log_bound(&self) -> f64 {
        match &self.tuples {
            Drawn::Rounds(tuples) => tuples.log_bound(),
            Drawn::Blocks(tuples) => tuples.log_bound(),
        }
    }

    /// What of E V is missing at most, where no more than some replicas are busy at once, as a multiple of the weight bound.
    ///
    /// # Errors
    /// As [`log_left_out`].
    pub fn left_out(&self, run: &Run) -> Result<f64> {
        if let Some(known) = self.left_out.get() {
            return Ok(*known);
        }
        let log = log_left_out(self.kernel.law(), &self.kernel.coefficients, self.replicas, run)?;
        let found = log.map_or(0.0, |log| (libm::exp(log - self.log_bound()) * (1.0 + 1e-12)).max(f64::MIN_POSITIVE));
        Ok(*self.left_out.get_or_init(|| found))
    }

    /// How much the ln ρ that is told exceeds the exact one at most.
    fn relative(&self) -> f64 {
        match &self.tuples {
            Drawn::Rounds(tuples) => tuples.relative(),
            Drawn::Blocks(tuples) => tuples.relative(),
        }
    }

    /// What bounds the samples; see the head of this file.
    #[must_use]
    pub fn sums(&self, direction: Direction) -> HolderSums {
        if direction != Direction::Remove {
            return HolderSums::Nothing;
        }
        let excess = self.power() - 1.0;
        let value = self.log_bound() / excess;
        let sum = Approximation { value, error: 2.0 * UNIT_ROUNDOFF * value.abs() };
        HolderSums::Known { sum, overlap: Approximation::default() }
    }

    /// A bound on the errors of ln f and of m ln f − ln ρ.
    #[must_use]
    pub fn rounding(&self) -> f64 {
        let power = self.power();
        let (own, size) = (self.kernel.rounding_at(1.0, power), self.kernel.magnitude(power));
        let sum = 4.0 * UNIT_ROUNDOFF * (power * size + self.log_bound().abs());
        power * own + self.relative() + sum
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
        match &self.tuples {
            Drawn::Rounds(tuples) => tuples.variation(),
            Drawn::Blocks(tuples) => tuples.variation(),
        }
    }

    /// The log densities of eight samples: ln f, and m ln f − ln ρ of where they come from.
    #[inline(always)]
    pub(super) fn draw<V: Vector>(&self, stream: &mut Stream, scratch: &mut ReplicatedScratch) -> Ratios {
        let ReplicatedScratch { renewal, states } = scratch;
        let before = stream.clone();
        let mut log_weights = splat(0.0);
        let source = &mut Outcomes { tuples: &self.tuples, stream, states, log_weights: &mut log_weights };
        let linear = self.kernel.ratios::<V, _>(None, false, source, renewal);
        let mut ratios = linear.unwrap_or_else(|| {
            // Out of the linear domain: the samples are drawn anew.
            *stream = before;
            let source = &mut Outcomes { tuples: &self.tuples, stream, states, log_weights: &mut log_weights };
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
    states: States,
}

/// Tuples on their way.
#[derive(Debug, Default)]
struct States {
    rounds: Vec<Tuple>,
    blocks: Vec<BlockTuple>,
    /// Numbers that some of the tuples take in a step.
    further: Vec<Lanes>,
}

/// Outcomes of tuples that are drawn from a stream.
struct Outcomes<'a> {
    tuples: &'a Drawn,
    stream: &'a mut Stream,
    states: &'a mut States,
    log_weights: &'a mut Lanes,
}

impl Source for Outcomes<'_> {
    #[inline(always)]
    fn begin<V: Vector>(&mut self, patterns: &mut Vec<Vec<(usize, f64)>>) {
        patterns.resize(LANES, Vec::new());
        patterns.iter_mut().for_each(Vec::clear);
        let Self { tuples, stream, states, log_weights } = self;
        match tuples {
            Drawn::Rounds(tuples) => V::apart(ByRounds { tuples, stream, states, log_weights, patterns }),
            Drawn::Blocks(tuples) => V::apart(ByBlocks { tuples, stream, states, log_weights, patterns }),
        }
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

struct ByRounds<'a> {
    tuples: &'a Tuples,
    stream: &'a mut Stream,
    states: &'a mut States,
    log_weights: &'a mut Lanes,
    patterns: &'a mut [Vec<(usize, f64)>],
}

impl Vectored for ByRounds<'_> {
    type Output = ();

    #[inline(always)]
    fn run<V: Vector>(self) {
        let Self { tuples, stream, states: States { rounds: states, .. }, log_weights, patterns } = self;
        states.resize_with(LANES, Tuple::default);
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
            let at = tuples.at(round + 1);
            for (lane, tuple) in states.iter_mut().enumerate() {
                // Tuples that were given up draw along with the others, to no effect.
                if log_weights[lane] == f64::NEG_INFINITY {
                    continue;
                }
                match tuples.step(&at, one[lane], tuple) {
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

struct ByBlocks<'a> {
    tuples: &'a BlockTuples,
    stream: &'a mut Stream,
    states: &'a mut States,
    log_weights: &'a mut Lanes,
    patterns: &'a mut [Vec<(usize, f64)>],
}

impl Vectored for ByBlocks<'_> {
    type Output = ();

    #[inline(always)]
    fn run<V: Vector>(self) {
        let Self { tuples, stream, states: States { blocks: states, further, .. }, log_weights, patterns } = self;
        states.resize_with(LANES, BlockTuple::default);
        let mut drawing = stream.take::<V>();
        for (lane, tuple) in states.iter_mut().enumerate() {
            tuples.begin(tuple);
            log_weights[lane] = 0.0;
        }
        let mut one = splat(0.0);
        for step in 1..=tuples.steps() {
            let stage = tuples.at(step);
            drawing.uniform().store(&mut one);
            let (mut chosen, mut needed) = ([None; LANES], 0);
            for (lane, tuple) in states.iter_mut().enumerate() {
                if log_weights[lane] == f64::NEG_INFINITY || tuples.pass(&stage, one[lane], tuple) {
                    continue;
                }
                match tuples.choose(&stage, one[lane], tuple) {
                    Some(found) => {
                        needed = needed.max(tuples.needed(tuple, found));
                        chosen[lane] = Some(found);
                    }
                    None => log_weights[lane] = f64::NEG_INFINITY,
                }
            }
            // As many as any tuple takes; the others' are not looked at.
            further.resize(further.len().max(needed), splat(0.0));
            further[..needed].iter_mut().for_each(|lanes| drawing.uniform().store(lanes));
            for (lane, tuple) in states.iter_mut().enumerate() {
                let Some(chosen) = chosen[lane] else { continue };
                let pattern = &mut patterns[lane];
                #[allow(clippy::cast_precision_loss)] // at most the order
                let placed = |round, count| pattern.push((round, count as f64));
                if !tuples.step(&stage, chosen, tuple, |k| further[k][lane], placed) {
                    log_weights[lane] = f64::NEG_INFINITY;
                }
            }
        }
        for (lane, tuple) in states.iter().enumerate() {
            log_weights[lane] += tuples.log_weight(tuple);
        }
        stream.put_back(drawing);
    }
}
