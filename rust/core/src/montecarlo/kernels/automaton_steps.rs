//! The steps of an automaton: their ways, drawing paths along them, and summing over all paths.
//!
//! Part of [`super::automaton`], whose head has the formulas, the range and the rounding.

use std::sync::Arc;

use crate::error::Result;
use crate::montecarlo::family::LanePatterns;
use crate::montecarlo::stream::Stream;
use crate::replicas::automaton::Automaton;
use crate::special::real;
use crate::vector::functions::exp;
use crate::vector::{splat, Lanes, Vector, Vectored, LANES};

/// The largest exponent of a participation that is computed in the linear domain.
const MOST_EXPONENT: f64 = 300.0;
/// Powers of two: of the largest value after a step, of the least, and of the least factor; see the head of this file.
const HIGH: i32 = 60;
const LOW: i32 = 390;
const LEAST_FACTOR: i32 = 100;

/// A law of participations that an automaton emits.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Emitted {
    /// Each of several records joins each round with this probability.
    Poisson {
        /// The number of records.
        records: usize,
        /// p.
        probability: f64,
    },
    /// Several records under b-min-sep sampling, each on its own.
    Spaced {
        /// The number of records.
        records: usize,
        /// p, the probability to join while available.
        probability: f64,
        /// b.
        separation: usize,
        /// Whether each begins with the stationary law.
        warm: bool,
    },
    /// k of every t rounds, all choices equally likely.
    Allocation {
        /// t.
        length: usize,
        /// k.
        taken: usize,
    },
}

impl Emitted {
    pub(super) fn automaton(&self, steps: usize, coefficients: &[f64]) -> Result<Automaton> {
        match *self {
            Self::Poisson { records, probability } => Automaton::of_poisson(steps, records, probability, coefficients),
            Self::Spaced { records, probability, separation, warm } => {
                Automaton::of_group((steps, separation, warm), records, probability, coefficients)
            }
            Self::Allocation { length, taken } => Automaton::of_allocation(steps, (length, taken), coefficients),
        }
    }

    /// Returns p; 0 if there is none.
    pub(super) fn probability(&self) -> f64 {
        match *self {
            Self::Poisson { probability, .. } | Self::Spaced { probability, .. } => probability,
            Self::Allocation { .. } => 0.0,
        }
    }

    /// Returns the law with another p.
    pub(super) fn with_probability(self, probability: f64) -> Self {
        match self {
            Self::Poisson { records, .. } => Self::Poisson { records, probability },
            Self::Spaced { records, separation, warm, .. } => Self::Spaced { records, probability, separation, warm },
            Self::Allocation { .. } => self,
        }
    }
}

/// A way from one state to another.
#[derive(Debug, Clone, Copy)]
pub(super) struct Edge {
    pub(super) source: usize,
    /// The move's place among those of its state.
    pub(super) number: usize,
    pub(super) count: usize,
    /// Σ_k x_{i−k} r_i(k) of the source.
    pub(super) field: f64,
}

/// The edges that lead to one state with one count: those up to `end`, from the end of the bundle before.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bundle {
    pub(super) to: usize,
    pub(super) count: usize,
    pub(super) end: usize,
    /// Whether it is the first one of its state, or the last.
    pub(super) first: bool,
    pub(super) last: bool,
}

/// The ways of a step, by the state that they lead to and by their count; states that cannot be reached are left out.
#[derive(Debug, Clone)]
pub(super) struct Ways {
    pub(super) edges: Vec<Edge>,
    pub(super) bundles: Vec<Bundle>,
    /// r_i(0).
    pub(super) square: f64,
}

/// The ways of all steps: steps that are alike share them.
#[derive(Debug, Clone)]
pub(super) struct AutomatonSteps {
    pub(super) ways: Vec<Ways>,
    /// For each step its ways, and a step that has them.
    pub(super) of_step: Vec<(usize, usize)>,
    /// The largest number of edges that lead to a state, and the largest field.
    pub(super) widest: usize,
    pub(super) largest_field: f64,
}

impl AutomatonSteps {
    pub(super) fn new(automaton: &Automaton) -> Self {
        let (n, bands) = (automaton.steps, automaton.overlaps.bands());
        let mut reached: Vec<bool> = automaton.start.iter().map(|chance| *chance > 0.0).collect();
        let mut steps = Self { ways: Vec::new(), of_step: Vec::with_capacity(n), widest: 1, largest_field: 0.0 };
        let mut settled = false;
        for i in 1..=n {
            // Columns before the run and behind its end are cut off.
            let inner = automaton.alike() && i >= bands && automaton.rows(i) == bands;
            if settled && inner {
                steps.of_step.push(steps.of_step[i - 2]);
                continue;
            }
            let (ways, next) = Self::of_step(automaton, i, &reached);
            settled = inner && next == reached;
            steps.largest_field = ways.edges.iter().map(|edge| edge.field).fold(steps.largest_field, f64::max);
            let mut before = 0;
            for bundle in ways.bundles.iter().filter(|bundle| bundle.last) {
                steps.widest = steps.widest.max(bundle.end - before);
                before = bundle.end;
            }
            reached = next;
            steps.of_step.push((steps.ways.len(), i));
            steps.ways.push(ways);
        }
        steps
    }

    fn of_step(automaton: &Automaton, i: usize, reached: &[bool]) -> (Ways, Vec<bool>) {
        let rows = automaton.rows(i);
        let overlap = |lag: usize| automaton.overlaps.product(rows, lag);
        let mut found: Vec<(usize, Edge)> = Vec::new();
        for (source, moves) in automaton.moves.iter().enumerate().filter(|(source, _)| reached[*source]) {
            let inside = automaton.recent[source].iter().filter(|(lag, _)| *lag < i);
            let field: f64 = inside.map(|&(lag, count)| real(count) * overlap(lag)).sum();
            for (number, one) in moves.iter().enumerate() {
                if automaton.chance(i, source, number) > 0.0 {
                    let field = if one.count > 0 { field } else { 0.0 };
                    found.push((one.to, Edge { source, number, count: one.count, field }));
                }
            }
        }
        found.sort_by_key(|(to, edge)| (*to, edge.count));
        let mut next = vec![false; automaton.moves.len()];
        let mut bundles: Vec<Bundle> = Vec::new();
        for (end, (to, edge)) in (1..).zip(&found) {
            next[*to] = true;
            let before = bundles.last_mut().filter(|bundle| bundle.to == *to);
            if let Some(same) = before {
                if same.count == edge.count {
                    same.end = end;
                    continue;
                }
                same.last = false;
                bundles.push(Bundle { to: *to, count: edge.count, end, first: false, last: true });
            } else {
                bundles.push(Bundle { to: *to, count: edge.count, end, first: true, last: true });
            }
        }
        (Ways { edges: found.into_iter().map(|(_, edge)| edge).collect(), bundles, square: overlap(0) }, next)
    }
}

/// A law of patterns with scaled means.
#[derive(Debug, Clone)]
pub struct AutomatonProposal {
    pub(super) law: Emitted,
    pub(super) automaton: Arc<Automaton>,
    pub(super) mean_scale: f64,
    /// For each of the ways: the factors of its edges, and the least chance of the first move.
    pub(super) factors: Vec<Vec<f64>>,
    pub(super) silent: Vec<f64>,
    /// Whether some factor is so small that only logarithms are used.
    pub(super) narrow: bool,
}

impl AutomatonProposal {
    pub(super) fn new(law: Emitted, automaton: Arc<Automaton>, mean_scale: f64, steps: &AutomatonSteps) -> Self {
        let square = mean_scale * mean_scale;
        let factor = |i: usize, edge: &Edge| {
            automaton.chance(i, edge.source, edge.number) * libm::exp(-square * real(edge.count) * edge.field)
        };
        let mut factors: Vec<Vec<f64>> = vec![Vec::new(); steps.ways.len()];
        for &(place, step) in &steps.of_step {
            if factors[place].is_empty() {
                factors[place] = steps.ways[place].edges.iter().map(|edge| factor(step, edge)).collect();
            }
        }
        let mut silent = vec![1.0_f64; steps.ways.len()];
        for &(place, step) in &steps.of_step {
            for edge in &steps.ways[place].edges {
                silent[place] = silent[place].min(automaton.chance(step, edge.source, 0));
            }
        }
        let least = 2.0_f64.powi(-LEAST_FACTOR);
        let starts = automaton.start.iter().filter(|chance| **chance > 0.0);
        let narrow = factors.iter().flatten().chain(starts).any(|factor| *factor < least);
        Self { law, automaton, mean_scale, factors, silent, narrow }
    }
}

/// Eight paths through the states.
pub(super) struct Paths<'a> {
    pub(super) law: &'a AutomatonProposal,
    pub(super) steps: &'a AutomatonSteps,
    pub(super) stream: &'a mut Stream,
    pub(super) patterns: &'a mut LanePatterns,
}

impl Vectored for Paths<'_> {
    type Output = ();

    #[inline(always)]
    fn run<V: Vector>(self) {
        let Self { law: AutomatonProposal { automaton, silent, .. }, steps, stream, patterns } = self;
        patterns.resize(LANES, Vec::new());
        patterns.iter_mut().for_each(Vec::clear);
        let mut drawing = stream.take::<V>();
        let (mut uniform, mut states) = (splat(0.0), [0_usize; LANES]);
        if automaton.start[0] < 1.0 {
            drawing.uniform().store(&mut uniform);
            for lane in 0..LANES {
                states[lane] = chosen(uniform[lane], automaton.start.iter().copied());
            }
        }
        for (i, &(place, _)) in (1..).zip(&steps.of_step) {
            if silent[place] < 1.0 {
                let drawn = drawing.uniform();
                if drawn.within(V::splat(0.0), V::splat(silent[place])) {
                    // All lanes take their first move.
                    states = states.map(|state| automaton.moves[state][0].to);
                    continue;
                }
                drawn.store(&mut uniform);
            }
            for lane in 0..LANES {
                let (state, moves) = (states[lane], &automaton.moves[states[lane]]);
                let number = if moves.len() == 1 {
                    0
                } else {
                    chosen(uniform[lane], (0..moves.len()).map(|number| automaton.chance(i, state, number)))
                };
                let one = moves[number];
                if one.count > 0 {
                    patterns[lane].push((i - 1, real(one.count)));
                }
                states[lane] = one.to;
            }
        }
        stream.put_back(drawing);
    }
}

/// Returns the first place up to which the chances add up to a uniform number; the last one that is possible, if rounding
/// leaves none.
fn chosen(uniform: f64, chances: impl Iterator<Item = f64>) -> usize {
    let (mut sum, mut last) = (0.0, 0);
    for (place, chance) in chances.enumerate() {
        sum += chance;
        if chance > 0.0 {
            last = place;
            if uniform <= sum {
                break;
            }
        }
    }
    last
}

/// The recursion of eight samples in the linear domain; `None` if a number leaves it.
pub(super) struct Forwards<'a> {
    pub(super) steps: &'a AutomatonSteps,
    pub(super) proposal: &'a AutomatonProposal,
    pub(super) sign: f64,
    pub(super) sums: &'a [Lanes],
    pub(super) values: &'a mut [Vec<Lanes>; 2],
}

impl Vectored for Forwards<'_> {
    type Output = Option<Lanes>;

    #[inline(always)]
    fn run<V: Vector>(self) -> Option<Lanes> {
        let Self { steps, proposal, sign, sums, values: [now, next] } = self;
        if proposal.narrow {
            return None;
        }
        let start = &proposal.automaton.start;
        now.clear();
        now.extend(start.iter().map(|chance| splat(*chance)));
        next.clear();
        next.resize(start.len(), splat(0.0));
        let (slope, square) = (V::splat(sign * proposal.mean_scale), proposal.mean_scale * proposal.mean_scale);
        let (low, high) = (2.0_f64.powi(-LOW), 2.0_f64.powi(HIGH));
        let most = proposal.automaton.most();
        let mut growth = vec![splat(1.0); most + 1];
        let mut powers = [0_i32; LANES];
        for (&(place, _), product) in steps.of_step.iter().zip(sums) {
            let (ways, factors) = (&steps.ways[place], &proposal.factors[place]);
            let product = slope.mul(V::load(product));
            for (count, growth) in growth.iter_mut().enumerate().skip(1) {
                let count = real(count);
                let exponent = product.mul_add(V::splat(count), V::splat(-0.5 * square * count * count * ways.square));
                if !exponent.within(V::splat(-MOST_EXPONENT), V::splat(MOST_EXPONENT)) {
                    return None;
                }
                exp(exponent).store(growth);
            }
            let (mut least, mut largest) = (V::splat(f64::INFINITY), V::splat(0.0));
            let mut first = 0;
            for bundle in &ways.bundles {
                let mut sum = V::splat(0.0);
                for (edge, factor) in ways.edges[first..bundle.end].iter().zip(&factors[first..bundle.end]) {
                    sum = V::splat(*factor).mul_add(V::load(&now[edge.source]), sum);
                }
                first = bundle.end;
                if bundle.count > 0 {
                    sum = sum.mul(V::load(&growth[bundle.count]));
                }
                if !bundle.first {
                    sum = sum.add(V::load(&next[bundle.to]));
                }
                if bundle.last {
                    (least, largest) = (least.min(sum), largest.max(sum));
                }
                sum.store(&mut next[bundle.to]);
            }
            if !largest.within(V::splat(1.0 / high), V::splat(high)) {
                let mut sizes = splat(0.0);
                largest.store(&mut sizes);
                let mut scales = splat(1.0);
                for lane in 0..LANES {
                    if !(sizes[lane] > 0.0 && sizes[lane].is_finite()) {
                        return None;
                    }
                    let power = libm::ilogb(sizes[lane]);
                    powers[lane] += power;
                    scales[lane] = libm::ldexp(1.0, -power);
                }
                let scale = V::load(&scales);
                least = least.mul(scale);
                for bundle in ways.bundles.iter().filter(|bundle| bundle.last) {
                    scale.mul(V::load(&next[bundle.to])).store(&mut next[bundle.to]);
                }
            }
            if !least.within(V::splat(low), V::splat(f64::INFINITY)) {
                return None;
            }
            std::mem::swap(now, next);
        }
        let mut total = V::splat(0.0);
        if let Some(&(place, _)) = steps.of_step.last() {
            for bundle in steps.ways[place].bundles.iter().filter(|bundle| bundle.last) {
                total = total.add(V::load(&now[bundle.to]));
            }
        }
        let mut out = splat(0.0);
        total.store(&mut out);
        for lane in 0..LANES {
            out[lane] = f64::from(powers[lane]).mul_add(std::f64::consts::LN_2, libm::log(out[lane]));
        }
        Some(out)
    }
}
