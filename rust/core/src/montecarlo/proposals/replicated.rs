//! Samples of f^m: tuples of m replicas of a record's participations, drawn by [`crate::replicas::drawn`].
//!
//! A sample's outcome is y = Σ_r Cx^r + N(0, I), and with the ρ of its tuple dP/dM = ρ f^{1−m} is its weight:
//! `V = ρ f^{1−m}·(1 − e^{ε−L})₊`, or `ρ f^{1−m}·D(ε − L)` with a composed profile, L = ln f. The head of
//! [`crate::replicas::tuples`] proves E V = δ_remove(ε), if all replicas may be busy at once, and the bound: V ≤ sup
//! ρ·sup_x f^{1−m}D(x) with f = e^{ε−x}, which is sup ρ·e^{−(m−1)ε}·sup_x e^{(m−1)x}D(x). That is what
//! [`crate::montecarlo::weight_bounds`] computes for a scale μ = m of the means, with sup ρ in place of T^{μ−1}; and ln V changes by at
//! most as much when an outcome does. For several mechanisms with one m these are the products of ρ and of f.
//!
//! A tuple that was given up is a sample with V = 0. If at most K replicas may be busy at once, E V is below
//! δ_remove(ε) by at most sup_x f^{1−m}D(x)·Z_⊥, which [`crate::replicas::left_out`] proves and bounds.
//!
//! **A replaced record, with a floor a.** P is compared with its mirror image, so f where the value is positive has no
//! useful lower bound, and f^{1−m} none from above. Samples are of V = ρ e^{−(m−1)max(L, a)}·(1 − e^ε f⁻/f)₊, cut off at
//! W, the bound on V of a *removed* record at a: W = sup ρ·w, w = e^{−(m−1)a}(m−1)^{m−1}/m^m. Then
//!
//! δ_replace(ε) = E_R (f − e^ε f⁻)₊ ≤ E min(V, W) + e^a·δ_add(ε − a).
//!
//! Proof. Given y, the mean of ρ over the tuples is f^m as a density relative to R. Where L ≥ a, ρ ≤ sup ρ gives min(V, W)
//! ≥ (ρ/sup ρ)·min(sup ρ·h, W) with V = ρh, so the mean given y is at least min(f^m h, f^m w), with f^m h = (f − e^ε f⁻)₊,
//! and f^m w ≥ f − e^a for all f ≥ 0: the tangent of f^m w at f = e^a m/(m−1). So at most (e^a − e^ε f⁻)₊ is lost. Where L < a,
//! no more can be lost, since f < e^a. And E_R (e^a − e^ε f⁻)₊ = e^a E_R (1 − e^{ε−a} f)₊ by the symmetry of R. If not all
//! replicas may be busy, the mean of ρ is f^m − f_⊥, and what else is lost is at most f_⊥ w: as for a removed record at a. The
//! slopes of ln V are smaller than without a floor, where L < a. All of this holds for products over several mechanisms.

use std::sync::OnceLock;

use crate::error::{Error, Result};
use crate::montecarlo::family::{LanePatterns, Purpose, Ratios};
use crate::montecarlo::mechanism::{Buffers, Mechanism, Samples};
use crate::montecarlo::stream::Stream;
use crate::montecarlo::weight_bounds::{Direction, HolderSums};
use crate::replicas::automaton_tuples::AutomatonTuple;
use crate::replicas::block_tuples::{BlockTuple, BlockTuples};
use crate::replicas::drawn::{Drawn, ROOM};
use crate::replicas::phases::PhasedTuple;
use crate::replicas::placed::Placed;
use crate::replicas::stepwise::{Bounds, Stepwise};
use crate::replicas::tuples::Tuple;
use crate::replicas::Replicas;
use crate::run::Run;
use crate::special::{real, Approximation, UNIT_ROUNDOFF};
use crate::vector::{splat, Lanes, Vector, Vectored, Vectors, LANES};

/// The loss of a sample with V = 0.
const WORTHLESS: f64 = -1e9;

/// A mechanism with the tuples that its samples come from.
#[derive(Debug)]
pub struct Replicated {
    mechanism: Mechanism,
    tuples: Drawn,
    replicas: Replicas,
    /// Z_⊥ divided by the bound on ρ.
    left_out: OnceLock<f64>,
}

/// The error for a mechanism without a chain of replicas.
pub const NO_CHAIN: Error = Error::Numerics { reason: "no chain of replicas is known for this sampler" };

impl Replicated {
    /// Creates the samples of f^m.
    ///
    /// # Errors
    /// As [`Drawn::new`]; [`NO_CHAIN`].
    pub fn new(mechanism: &Mechanism, replicas: Replicas, run: &Run) -> Result<Self> {
        let participations = mechanism.participations().ok_or(NO_CHAIN)?;
        let tuples = Drawn::new(&participations, replicas, ROOM, run)?;
        Ok(Self { mechanism: mechanism.clone(), tuples, replicas, left_out: OnceLock::new() })
    }

    /// Returns m, the power of f.
    pub fn power(&self) -> f64 {
        real(self.replicas.order)
    }

    /// Returns a bound on ln ρ.
    pub fn log_bound(&self) -> f64 {
        self.tuples.bounds().log_bound()
    }
}

impl Samples for Replicated {
    fn mechanism(&self) -> Mechanism {
        self.mechanism.clone()
    }

    fn mean_scale(&self) -> f64 {
        self.power()
    }

    /// See the head of this file.
    fn sums(&self, direction: Direction) -> HolderSums {
        if direction != Direction::Remove {
            return HolderSums::Nothing;
        }
        let excess = self.power() - 1.0;
        let value = self.log_bound() / excess;
        let sum = Approximation { value, error: 2.0 * UNIT_ROUNDOFF * value.abs() };
        HolderSums::Known { sum, overlap: Approximation::default() }
    }

    /// Samples of a power of f are of a removed record, or have a floor.
    fn serves(&self, direction: Direction) -> bool {
        direction == Direction::Remove
    }

    /// This bounds the errors of ln f and of m ln f − ln ρ.
    fn rounding(&self) -> f64 {
        let (power, mechanism) = (self.power(), &self.mechanism);
        let more = mechanism.replicas_rounding(power);
        let (own, size) = (more * mechanism.rounding_at(1.0, power), mechanism.magnitude(power));
        let sum = 4.0 * UNIT_ROUNDOFF * (power * size + self.log_bound().abs());
        power * own + self.tuples.bounds().relative() + sum
    }

    fn generator(&self) -> (f64, f64, f64) {
        let coordinate = self.mechanism.replicas_coordinate_error(self.power());
        (self.mechanism.lipschitz(), coordinate, self.tuples.bounds().variation())
    }

    /// The samples are the same without it.
    fn prepare(&self, run: &Run) -> Result<()> {
        self.tuples.bounds().prepare(run)
    }

    /// This is not 0 where only some replicas may be busy at once.
    fn left_out(&self, run: &Run) -> Result<f64> {
        if let Some(known) = self.left_out.get() {
            return Ok(*known);
        }
        let log = self.mechanism.participations().ok_or(NO_CHAIN)?.log_left_out(self.replicas, run)?;
        let ratio = log.map_or(0.0, |log| (libm::exp(log - self.log_bound()) * (1.0 + 1e-12)).max(f64::MIN_POSITIVE));
        Ok(*self.left_out.get_or_init(|| ratio))
    }

    /// The log densities are ln f, and m ln f − ln ρ of the proposal.
    fn draw(&self, vectors: Vectors, purpose: Purpose, stream: &mut Stream, buffers: &mut Buffers) -> Ratios {
        let mirrored = purpose.direction == Direction::Replace;
        let mut log_weights = splat(0.0);
        let mut states = std::mem::take(buffers.of::<States>());
        let mut tuples = |stream: &mut Stream, patterns: &mut LanePatterns| {
            patterns.resize(LANES, Vec::new());
            patterns.iter_mut().for_each(Vec::clear);
            let States { rounds, blocks, further, automata, phases, bins } = &mut states;
            let log_weights = &mut log_weights;
            match &self.tuples {
                Drawn::Rounds(tuples) => {
                    vectors.run(ByRounds { tuples, stream, states: rounds, log_weights, patterns });
                }
                Drawn::Blocks(tuples) => {
                    vectors.run(ByBlocks { tuples, stream, states: blocks, further, log_weights, patterns });
                }
                Drawn::Automaton(tuples) => {
                    vectors.run(ByRounds { tuples, stream, states: automata, log_weights, patterns });
                }
                Drawn::Phases(tuples) => {
                    vectors.run(ByRounds { tuples, stream, states: phases, log_weights, patterns });
                }
                Drawn::Placed(placed) => vectors.run(Place { placed, stream, bins, log_weights, patterns }),
            }
        };
        let mut ratios = self.mechanism.replicate(vectors, &mut tuples, mirrored, stream, buffers);
        *buffers.of::<States>() = states;
        for lane in 0..LANES {
            if log_weights[lane] == f64::NEG_INFINITY {
                (ratios.mixture[lane], ratios.mirrored[lane]) = (WORTHLESS, 0.0);
                ratios.proposal[lane] = 0.0;
            } else {
                ratios.proposal[lane] = ratios.mixture[lane].mul_add(self.power(), -log_weights[lane]);
            }
        }
        ratios
    }
}

/// Draws a tuple of bins for each lane.
struct Place<'a> {
    placed: &'a Placed,
    stream: &'a mut Stream,
    bins: &'a mut Vec<usize>,
    log_weights: &'a mut Lanes,
    patterns: &'a mut LanePatterns,
}

impl Vectored for Place<'_> {
    type Output = ();

    #[inline(always)]
    fn run<V: Vector>(self) {
        let Self { placed, stream, bins, log_weights, patterns } = self;
        let mut drawing = stream.take::<V>();
        let (mut one, mut other) = (splat(0.0), splat(0.0));
        drawing.uniform().store(&mut one);
        drawing.uniform().store(&mut other);
        stream.put_back(drawing);
        for (lane, pattern) in patterns.iter_mut().enumerate() {
            placed.draw((one[lane], other[lane]), bins);
            pattern.extend(bins.iter().map(|&bin| (bin, 1.0)));
        }
        *log_weights = splat(placed.log_bound());
    }
}

/// The states of tuples that are being drawn.
#[derive(Debug, Default)]
struct States {
    rounds: Vec<Tuple>,
    blocks: Vec<BlockTuple>,
    automata: Vec<AutomatonTuple>,
    phases: Vec<PhasedTuple>,
    bins: Vec<usize>,
    /// The further random numbers that some of the tuples use in a step.
    further: Vec<Lanes>,
}

struct ByRounds<'a, T: Stepwise> {
    tuples: &'a T,
    stream: &'a mut Stream,
    states: &'a mut Vec<T::Tuple>,
    log_weights: &'a mut Lanes,
    patterns: &'a mut LanePatterns,
}

impl<T: Stepwise> Vectored for ByRounds<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<V: Vector>(self) {
        let Self { tuples, stream, states, log_weights, patterns } = self;
        states.resize_with(LANES, T::Tuple::default);
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
                // Tuples that were given up draw along with the rest, but the numbers are not used.
                if log_weights[lane] == f64::NEG_INFINITY {
                    continue;
                }
                match tuples.step(&at, one[lane], tuple) {
                    Some(0) => {}
                    Some(joined) => patterns[lane].push((round, real(joined))),
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
    states: &'a mut Vec<BlockTuple>,
    further: &'a mut Vec<Lanes>,
    log_weights: &'a mut Lanes,
    patterns: &'a mut LanePatterns,
}

impl Vectored for ByBlocks<'_> {
    type Output = ();

    #[inline(always)]
    fn run<V: Vector>(self) {
        let Self { tuples, stream, states, further, log_weights, patterns } = self;
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
            // As many numbers are drawn as any tuple uses; the remaining ones are ignored.
            further.resize(further.len().max(needed), splat(0.0));
            further[..needed].iter_mut().for_each(|lanes| drawing.uniform().store(lanes));
            for (lane, tuple) in states.iter_mut().enumerate() {
                let Some(chosen) = chosen[lane] else { continue };
                let pattern = &mut patterns[lane];
                let placed = |round, count| pattern.push((round, real(count)));
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
