//! Samples of f^m: tuples of m replicas of a record's participations, drawn by [`crate::replicas::drawn`].
//!
//! A sample's outcome is y = Σ_r Cx^r + N(0, I), and with the ρ of its tuple dP/dM = ρ f^{1−m} is its weight:
//! `V = ρ f^{1−m}·(1 − e^{ε−L})₊`, or `ρ f^{1−m}·D(ε − L)` with a composed profile, L = ln f. The head of
//! [`crate::replicas::tuples`] proves E V = δ_remove(ε), if all replicas may be busy at once, and the bound: V ≤ sup
//! ρ·sup_x f^{1−m}D(x) with f = e^{ε−x}, which is sup ρ·e^{−(m−1)ε}·sup_x e^{(m−1)x}D(x). That is what
//! [`super::proposal`] computes for a scale μ = m of the means, with sup ρ in place of T^{μ−1}; and ln V changes by at
//! most as much when an outcome does. For several mechanisms with one m these are the products of ρ and of f.
//!
//! A tuple that was given up is a sample with V = 0. If at most K replicas may be busy at once, E V is below
//! δ_remove(ε) by at most sup_x f^{1−m}D(x)·Z_⊥, which [`crate::replicas::left_out`] proves and bounds.

use std::sync::{Arc, OnceLock};

use crate::error::{Error, Result};
use crate::montecarlo::kernels::allocation::{AllocationKernel, AllocationScratch};
use crate::montecarlo::kernels::bins::{BinsKernel, BinsScratch};
use crate::montecarlo::kernels::kernel::Ratios;
use crate::montecarlo::kernels::renewal::{RenewalKernel, RenewalScratch};
use crate::montecarlo::mechanism::Mechanism;
use crate::montecarlo::proposals::weight_bounds::{Direction, HolderSums};
use crate::montecarlo::source::{add_participations, draw_noise, Source};
use crate::montecarlo::stream::{Stream, NORMAL_ERROR};
use crate::replicas::automaton_tuples::{AutomatonTuple, AutomatonTuples};
use crate::replicas::block_tuples::{BlockTuple, BlockTuples};
use crate::replicas::drawn::{Drawn, ROOM};
use crate::replicas::phases::{PhasedTuple, Phases};
use crate::replicas::placed::Placed;
use crate::replicas::tuples::{RoundStep, Tuple, Tuples};
use crate::replicas::Replicas;
use crate::run::Run;
use crate::special::{Approximation, UNIT_ROUNDOFF};
use crate::vector::{splat, Lanes, Vector, Vectored, LANES};

/// The loss of a sample with V = 0.
const WORTHLESS: f64 = -1e9;

/// A mechanism with the tuples that its samples come from.
#[derive(Debug)]
pub struct Replicated {
    kernel: Outcomes,
    tuples: Drawn,
    replicas: Replicas,
    /// Z_⊥ divided by the bound on ρ.
    left_out: OnceLock<f64>,
}

/// The kernel that computes f.
#[derive(Debug, Clone)]
enum Outcomes {
    Renewal(Arc<RenewalKernel>),
    Bins(Arc<BinsKernel>),
    Allocation(Arc<AllocationKernel>),
}

/// The error for a mechanism without a chain of replicas.
pub const NO_CHAIN: Error = Error::Numerics { reason: "no chain of replicas is known for this sampler" };

impl Replicated {
    /// Creates the samples of f^m.
    ///
    /// # Errors
    /// As [`Drawn::new`]; [`NO_CHAIN`].
    pub fn new(mechanism: &Mechanism, replicas: Replicas, run: &Run) -> Result<Self> {
        let kernel = match mechanism {
            Mechanism::Renewal(kernel) => Outcomes::Renewal(Arc::clone(kernel)),
            Mechanism::Bins(kernel) => Outcomes::Bins(Arc::clone(kernel)),
            Mechanism::Allocation(kernel) => Outcomes::Allocation(Arc::clone(kernel)),
            _ => return Err(NO_CHAIN),
        };
        let participations = mechanism.participations().ok_or(NO_CHAIN)?;
        let tuples = Drawn::new(&participations, replicas, ROOM, run)?;
        Ok(Self { kernel, tuples, replicas, left_out: OnceLock::new() })
    }

    /// Prepares for drawing samples fast. The samples are the same without it.
    ///
    /// # Errors
    /// As [`Drawn::prepare`].
    pub fn prepare(&self, run: &Run) -> Result<()> {
        self.tuples.prepare(run)
    }

    /// Returns the mechanism that is sampled.
    #[must_use]
    pub fn mechanism(&self) -> Mechanism {
        match &self.kernel {
            Outcomes::Renewal(kernel) => Mechanism::Renewal(Arc::clone(kernel)),
            Outcomes::Bins(kernel) => Mechanism::Bins(Arc::clone(kernel)),
            Outcomes::Allocation(kernel) => Mechanism::Allocation(Arc::clone(kernel)),
        }
    }

    /// Returns m, the power of f.
    #[must_use]
    pub fn power(&self) -> f64 {
        #[allow(clippy::cast_precision_loss)] // at most 64 or so
        let power = self.replicas.order as f64;
        power
    }

    /// Returns a bound on ln ρ.
    #[must_use]
    pub fn log_bound(&self) -> f64 {
        self.tuples.log_bound()
    }

    /// Returns an upper bound on the missing part of E V, where only some replicas may be busy at once, as a multiple
    /// of the weight bound.
    ///
    /// # Errors
    /// As [`crate::replicas::drawn::Participations::log_left_out`].
    pub fn left_out(&self, run: &Run) -> Result<f64> {
        if let Some(known) = self.left_out.get() {
            return Ok(*known);
        }
        let mechanism = self.mechanism();
        let log = mechanism.participations().ok_or(NO_CHAIN)?.log_left_out(self.replicas, run)?;
        let ratio = log.map_or(0.0, |log| (libm::exp(log - self.log_bound()) * (1.0 + 1e-12)).max(f64::MIN_POSITIVE));
        Ok(*self.left_out.get_or_init(|| ratio))
    }

    /// Returns the sums that bound the samples; see the head of this file.
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

    /// Returns a bound on the errors of ln f and of m ln f − ln ρ.
    #[must_use]
    pub fn rounding(&self) -> f64 {
        let (power, mechanism) = (self.power(), self.mechanism());
        let more = match &self.kernel {
            Outcomes::Renewal(_) | Outcomes::Allocation(_) => 1.0,
            // Of T + 16 additions, 16 allow for one mean; each replica adds one mean.
            Outcomes::Bins(_) => 1.0 + power / 16.0,
        };
        let (own, size) = (more * mechanism.rounding_at(1.0, power), mechanism.magnitude(power));
        let sum = 4.0 * UNIT_ROUNDOFF * (power * size + self.log_bound().abs());
        power * own + self.tuples.relative() + sum
    }

    /// Returns the average distance of a coordinate of a sample from an exact one.
    ///
    /// At most m participations reach a row: adding each rounds by u of the sum so far. (For bins they are added to the
    /// products.)
    #[must_use]
    pub fn coordinate_error(&self) -> f64 {
        let (power, largest) = match &self.kernel {
            Outcomes::Renewal(kernel) => (self.power(), kernel.largest_mean()),
            Outcomes::Allocation(kernel) => (self.power(), kernel.largest_mean()),
            Outcomes::Bins(_) => return NORMAL_ERROR,
        };
        NORMAL_ERROR + UNIT_ROUNDOFF * power * (1.0 + power * largest)
    }

    /// Returns a bound on the total variation of the law of the tuples.
    #[must_use]
    pub fn variation(&self) -> f64 {
        self.tuples.variation()
    }

    /// Draws eight samples and returns their log densities: ln f, and m ln f − ln ρ of the proposal.
    #[inline(always)]
    pub(super) fn draw<V: Vector>(&self, stream: &mut Stream, scratch: &mut ReplicatedScratch) -> Ratios {
        let mut log_weights = splat(0.0);
        let mut ratios = match &self.kernel {
            Outcomes::Renewal(kernel) => self.of_rounds::<V>(kernel, stream, scratch, &mut log_weights),
            Outcomes::Bins(kernel) => self.of_bins::<V>(kernel, stream, scratch, &mut log_weights),
            Outcomes::Allocation(kernel) => self.of_allocation::<V>(kernel, stream, scratch, &mut log_weights),
        };
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

    #[inline(always)]
    fn of_rounds<V: Vector>(
        &self,
        kernel: &RenewalKernel,
        stream: &mut Stream,
        scratch: &mut ReplicatedScratch,
        log_weights: &mut Lanes,
    ) -> Ratios {
        let ReplicatedScratch { renewal, states, .. } = scratch;
        let before = stream.clone();
        let source = &mut Rows { tuples: &self.tuples, stream, states, log_weights };
        let linear = kernel.ratios::<V, _>(None, false, source, renewal);
        linear.unwrap_or_else(|| {
            // The samples left the linear domain: they are drawn again from the saved state.
            *stream = before;
            let source = &mut Rows { tuples: &self.tuples, stream, states, log_weights };
            kernel.logarithmic::<V, _>(None, false, source, renewal)
        })
    }

    #[inline(always)]
    fn of_bins<V: Vector>(
        &self,
        kernel: &BinsKernel,
        stream: &mut Stream,
        scratch: &mut ReplicatedScratch,
        log_weights: &mut Lanes,
    ) -> Ratios {
        let ReplicatedScratch { bins: scratch, states, .. } = scratch;
        let Drawn::Placed(placed) = &self.tuples else { return Ratios::NONE };
        kernel.draw_noise::<V>(stream, scratch);
        place::<V>(placed, stream, &mut states.bins, |lane, bin| kernel.shift(scratch, lane, bin, 1.0));
        *log_weights = splat(placed.log_bound());
        kernel.ratios::<V>(false, scratch)
    }
}

impl Replicated {
    #[inline(always)]
    fn of_allocation<V: Vector>(
        &self,
        kernel: &AllocationKernel,
        stream: &mut Stream,
        scratch: &mut ReplicatedScratch,
        log_weights: &mut Lanes,
    ) -> Ratios {
        let ReplicatedScratch { allocation, patterns, states, .. } = scratch;
        begin::<V>(&self.tuples, stream, states, log_weights, patterns);
        kernel.fill::<V>(patterns, stream, allocation);
        kernel.ratios::<V>(allocation)
    }
}

/// Draws a tuple for each lane, and passes its bins to `put`.
#[inline(always)]
fn place<V: Vector>(placed: &Placed, stream: &mut Stream, bins: &mut Vec<usize>, mut put: impl FnMut(usize, usize)) {
    let mut drawing = stream.take::<V>();
    let (mut one, mut other) = (splat(0.0), splat(0.0));
    drawing.uniform().store(&mut one);
    drawing.uniform().store(&mut other);
    stream.put_back(drawing);
    for lane in 0..LANES {
        placed.draw((one[lane], other[lane]), bins);
        for &bin in bins.iter() {
            put(lane, bin);
        }
    }
}

/// Buffers of one worker.
#[derive(Debug, Default)]
pub struct ReplicatedScratch {
    renewal: RenewalScratch,
    bins: BinsScratch,
    allocation: AllocationScratch,
    patterns: Vec<Vec<(usize, f64)>>,
    states: States,
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

/// Draws a tuple for each lane: the rounds in which its replicas take part and their number, and ln ρ, −∞ where it is
/// given up.
#[inline(always)]
fn begin<V: Vector>(
    tuples: &Drawn,
    stream: &mut Stream,
    states: &mut States,
    log_weights: &mut Lanes,
    patterns: &mut Vec<Vec<(usize, f64)>>,
) {
    patterns.resize(LANES, Vec::new());
    patterns.iter_mut().for_each(Vec::clear);
    let States { rounds, blocks, further, automata, phases, .. } = states;
    match tuples {
        Drawn::Rounds(tuples) => V::apart(ByRounds { tuples, stream, states: rounds, log_weights, patterns }),
        Drawn::Blocks(tuples) => {
            V::apart(ByBlocks { tuples, stream, states: blocks, further, log_weights, patterns });
        }
        Drawn::Automaton(tuples) => V::apart(ByRounds { tuples, stream, states: automata, log_weights, patterns }),
        Drawn::Phases(tuples) => V::apart(ByRounds { tuples, stream, states: phases, log_weights, patterns }),
        // Bins have no rounds: they are drawn by [`place`].
        Drawn::Placed(_) => {}
    }
}

/// The rows of outcomes of tuples that are drawn from a stream.
struct Rows<'a> {
    tuples: &'a Drawn,
    stream: &'a mut Stream,
    states: &'a mut States,
    log_weights: &'a mut Lanes,
}

impl Source for Rows<'_> {
    #[inline(always)]
    fn begin<V: Vector>(&mut self, patterns: &mut Vec<Vec<(usize, f64)>>) {
        begin::<V>(self.tuples, self.stream, self.states, self.log_weights, patterns);
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

/// Tuples that are drawn round by round.
trait Stepwise {
    type Tuple: Default;
    /// The data of a round, for all tuples that pass it.
    type At<'a>
    where
        Self: 'a;

    fn rounds(&self) -> usize;
    fn begin(&self, uniforms: (f64, f64), tuple: &mut Self::Tuple);
    fn at(&self, i: usize) -> Self::At<'_>;
    /// Returns how many replicas take part; `None` if the tuple is given up.
    fn step(&self, at: &Self::At<'_>, uniform: f64, tuple: &mut Self::Tuple) -> Option<usize>;
    fn log_weight(&self, tuple: &Self::Tuple) -> f64;
}

impl Stepwise for Tuples {
    type Tuple = Tuple;
    type At<'a> = RoundStep<'a>;

    fn rounds(&self) -> usize {
        self.rounds()
    }

    fn begin(&self, uniforms: (f64, f64), tuple: &mut Tuple) {
        self.begin(uniforms, tuple);
    }

    fn at(&self, i: usize) -> RoundStep<'_> {
        self.at(i)
    }

    #[inline]
    fn step(&self, at: &RoundStep<'_>, uniform: f64, tuple: &mut Tuple) -> Option<usize> {
        self.step(at, uniform, tuple)
    }

    fn log_weight(&self, tuple: &Tuple) -> f64 {
        self.log_weight(tuple)
    }
}

impl Stepwise for AutomatonTuples {
    type Tuple = AutomatonTuple;
    type At<'a> = usize;

    fn rounds(&self) -> usize {
        self.steps()
    }

    fn begin(&self, uniforms: (f64, f64), tuple: &mut AutomatonTuple) {
        self.begin(uniforms, tuple);
    }

    fn at(&self, i: usize) -> usize {
        i
    }

    #[inline]
    fn step(&self, at: &usize, uniform: f64, tuple: &mut AutomatonTuple) -> Option<usize> {
        self.step(*at, uniform, tuple)
    }

    fn log_weight(&self, tuple: &AutomatonTuple) -> f64 {
        self.log_weight(tuple)
    }
}

impl Stepwise for Phases {
    type Tuple = PhasedTuple;
    type At<'a> = usize;

    fn rounds(&self) -> usize {
        self.rounds()
    }

    fn begin(&self, uniforms: (f64, f64), tuple: &mut PhasedTuple) {
        self.begin(uniforms, tuple);
    }

    fn at(&self, i: usize) -> usize {
        i
    }

    #[inline]
    fn step(&self, at: &usize, uniform: f64, tuple: &mut PhasedTuple) -> Option<usize> {
        self.step(*at, uniform, tuple)
    }

    fn log_weight(&self, _: &PhasedTuple) -> f64 {
        self.log_bound()
    }
}

struct ByRounds<'a, T: Stepwise> {
    tuples: &'a T,
    stream: &'a mut Stream,
    states: &'a mut Vec<T::Tuple>,
    log_weights: &'a mut Lanes,
    patterns: &'a mut [Vec<(usize, f64)>],
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
                    #[allow(clippy::cast_precision_loss)] // at most the order, times a user's records
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
    states: &'a mut Vec<BlockTuple>,
    further: &'a mut Vec<Lanes>,
    log_weights: &'a mut Lanes,
    patterns: &'a mut [Vec<(usize, f64)>],
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
