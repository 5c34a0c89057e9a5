//! m replicas of a finite automaton: moments of the likelihood ratio, and tuples drawn from the law of f^m.
//!
//! **Tuples** are drawn as those of [`super::tuples`], whose head has the proof: from any positive v_i, v_{n+1} = 1,
//! and T̃_i ≥ T_i v_{i+1}, where T_i is the step of [`super::automaton_chain`]. Here v_i is a table, T_i v_{i+1}
//! rounded up, in the last steps, or in all of them where probabilities differ from step to step; before these it is
//! one table v with T̃ = λ̄v, λ̄ = max Tv/v. In the step between a table and v T̃ is T_i v_{i+1} itself, and ρ has the
//! factor (T_i v_{i+1})(s)/v(s), bounded by its maximum. From a start in which records may have taken part before the
//! run, tuples are drawn as if those columns reached into it, and ρ is divided by the factor that this adds. If v is
//! also used for steps near the end, whose columns have fewer rows, their T is no larger: λ̄ bounds it too.
//!
//! **Values** span more than the range of doubles where a record takes part often at little noise. Each table has its
//! own scale; values below 2⁻¹⁵⁰⁰ of the largest value are raised to that, which never makes a bound smaller: a tuple
//! that reaches such a state is given up more often than necessary.
//!
//! **Rounding.** The factors of a step are rounded up when they are computed, by more than their product can lose, and
//! the sum by [`Chain::slack`]. So the computed ρ is never too small, and [`AutomatonTuples::relative`] bounds by how
//! much it may be too large.

use rayon::prelude::*;

use crate::error::{domain, Error, Result};
use crate::replicas::automaton::Automaton;
use crate::replicas::automaton_chain::{fitting, power_of_two, Chain, Factors, StepTerms, LEAST, TOP};
use crate::replicas::chain::{table, LOOK};
use crate::replicas::stepwise::{Bounds, Stepwise};
use crate::replicas::weighted::Weighted;
use crate::run::Run;
use crate::special::{real, UNIT_ROUNDOFF};

/// A step may change the largest value by at most this many powers of two.
const MOST_CHANGE: i32 = 300;
/// How much of ln sup ρ may be given up by using one table for all steps between.
const GAP: f64 = 1e-2;
/// For at most this many states of all steps together, the probabilities that nobody takes part are precomputed.
const MOST_LOOKED: usize = 1 << 25;
/// The number of states in a block; within a block, the start is drawn by looking at each state.
const BLOCK: usize = 512;

/// v_i, and T̃_i/v_i.
#[derive(Debug)]
struct Table {
    values: Vec<f64>,
    growth: f64,
}

/// Tuples of m replicas of an automaton.
#[derive(Debug)]
pub struct AutomatonTuples {
    chain: Chain,
    /// The factors of the last steps, from the last one back, and of all steps before them.
    last: Vec<Factors>,
    inner: Option<Factors>,
    /// v_n, v_{n−1}, …; and v of all steps before them, unless the last of these tables is used for them, with its λ̄.
    ends: Vec<Table>,
    between: Option<Vec<f64>>,
    growth: f64,
    /// The law of the first state, if there are several.
    start: Option<Weighted>,
    /// For each step and state, a uniform number up to which nobody takes part, rounded down: for steps in which that
    /// does not change the state, if these are few.
    nobody: Vec<Vec<f32>>,
    /// ln ρ without the factor of the step between the tables, a bound on ln ρ, and the amount by which it was rounded
    /// up.
    log_weight: f64,
    log_bound: f64,
    rounded: f64,
}

/// The state of a tuple that is being drawn.
#[derive(Debug, Clone, Default)]
pub struct AutomatonTuple {
    number: usize,
    log_factor: f64,
    kinds: Vec<usize>,
    terms: StepTerms,
}

/// Returns the number of states of the chain of this many replicas, and approximately how many ways out of them are
/// computed; `None` if they are too many, or if the tables do not fit for probabilities that differ from step to step.
pub(super) fn price(automaton: &Automaton, order: usize, room: usize) -> Option<(usize, f64)> {
    let (count, ways) = fitting(automaton, order)?;
    let steps = if automaton.alike() { automaton.steps.min(most_steps(automaton)) } else { automaton.steps };
    let fits = automaton.alike() || count.saturating_mul(steps) <= room;
    fits.then_some((count, real(ways) * real(steps)))
}

/// Returns the number of steps after which one table is used for all steps before.
fn most_steps(automaton: &Automaton) -> usize {
    8 * automaton.moves.len() + 256
}

/// Returns a bound on ln E_R f^m, m = `order`, without keeping tables for drawing.
///
/// # Errors
/// As [`AutomatonTuples::new`].
pub(super) fn log_moment(automaton: Automaton, order: usize, run: &Run) -> Result<f64> {
    AutomatonTuples::made(automaton, order, None, run).map(|tuples| tuples.log_bound)
}

impl AutomatonTuples {
    /// Creates the tuples of m = `order` replicas, with tables that have at most `room` numbers in addition to those of
    /// the computation.
    ///
    /// * Memory: 8 bytes for each of these, about 40 for each state, and 4 for each way in which one may be left. Time:
    ///   an operation for each way and step.
    /// * Guarantee: see the head of this file. The result does not depend on the number of threads.
    ///
    /// # Errors
    /// [`Error::Domain`] for an order below 2; [`Error::Numerics`] for too many states, where tables that differ from
    /// step to step do not fit, and where a chain leaves the range of numbers; the errors of [`Run::check`].
    pub(super) fn new(automaton: Automaton, order: usize, room: usize, run: &Run) -> Result<Self> {
        Self::made(automaton, order, Some(room), run)
    }

    /// Computes the tuples; without `room` tables are not kept, and no tuple can be drawn.
    fn made(automaton: Automaton, order: usize, room: Option<usize>, run: &Run) -> Result<Self> {
        if order < 2 {
            return domain("order", real(order), "at least 2");
        }
        let (n, alike) = (automaton.steps, automaton.alike());
        let few = if alike { automaton.overlaps.bands().min(n + 1) - 1 } else { n };
        let chain = Chain::new(automaton, order, run)?;
        let count = chain.multisets.count();
        let fits = room.map_or(usize::MAX, |room| room / count);
        if !alike && fits < n {
            return Err(Error::Numerics { reason: "the tables of a chain of replicas do not fit in memory" });
        }
        let last: Vec<Factors> = (0..few).map(|back| chain.factors(n - back)).collect();
        let inner = if few < n { Some(chain.factors(1)) } else { None };
        let mut tuples = Self {
            chain,
            last,
            inner,
            ends: Vec::new(),
            between: None,
            growth: 1.0,
            start: None,
            nobody: Vec::new(),
            log_weight: 0.0,
            log_bound: 0.0,
            rounded: 0.0,
        };
        let first = tuples.backwards(fits, room.is_some(), run)?;
        tuples.settle(&first, run)?;
        if room.is_some() {
            tuples.look(run)?;
        }
        Ok(tuples)
    }

    fn factors(&self, i: usize) -> &Factors {
        let own = self.last.get(self.chain.automaton.steps - i);
        // If all steps have their own factors, there are no other ones.
        own.or(self.inner.as_ref()).unwrap_or_else(|| &self.last[0])
    }

    /// Computes the tables, and returns v_1.
    fn backwards(&mut self, fits: usize, kept: bool, run: &Run) -> Result<Vec<f64>> {
        let (n, count) = (self.chain.automaton.steps, self.chain.multisets.count());
        let most = most_steps(&self.chain.automaton);
        let (mut next, mut values) = (table(count)?, table(count)?);
        next.fill(power_of_two(TOP));
        for i in (1..=n).rev() {
            let (passed, same) = (n - i, n - i >= self.last.len());
            // If not all steps can have their own tables, one table must be used for several of them.
            let enough = passed >= most || (n > fits && i == 1);
            let looked = same && (enough || passed % LOOK == 0);
            let against = looked.then_some(&next[..]);
            let (largest, most, least) = self.chain.step(self.factors(i), &next, against, &mut values, run)?;
            let power = if largest.is_finite() { libm::ilogb(largest) - TOP } else { i32::MAX };
            if power.unsigned_abs() > MOST_CHANGE.unsigned_abs() {
                return Err(Error::Numerics { reason: "a chain of replicas leaves the range of numbers" });
            }
            if looked && (enough || real(i) * libm::log(most / least) <= GAP) {
                self.growth = most * (1.0 + 4.0 * UNIT_ROUNDOFF);
                if self.ends.len() < passed {
                    self.ends.truncate(fits.saturating_sub(1));
                    self.between = Some(next.clone());
                }
                return Ok(next);
            }
            let scale = power_of_two(-power);
            values.par_iter_mut().for_each(|value| *value = (*value * scale).max(power_of_two(LEAST)));
            std::mem::swap(&mut values, &mut next);
            if self.ends.len() == passed && passed < fits {
                let values = if kept { next.clone() } else { Vec::new() };
                self.ends.push(Table { values, growth: power_of_two(power) });
            }
        }
        if self.ends.len() < n {
            return Err(Error::Numerics { reason: "the tables of a chain of replicas do not fit in memory" });
        }
        Ok(next)
    }

    /// Computes the law of the first state, and the weights.
    fn settle(&mut self, first: &[f64], run: &Run) -> Result<()> {
        let (n, chain) = (self.chain.automaton.steps, &self.chain);
        let mut bridged = 1.0;
        if let Some(i) = self.bridge() {
            let mut values = table(first.len())?;
            let after =
                self.ends.last().map_or_else(|| vec![power_of_two(TOP); first.len()], |table| table.values.clone());
            let (_, most, _) = chain.step(self.factors(i), &after, self.between.as_deref(), &mut values, run)?;
            bridged = most * (1.0 + 4.0 * UNIT_ROUNDOFF);
        }
        let sure = chain.automaton.start.iter().position(|chance| *chance >= 1.0);
        let (total, start) = if let Some(kind) = sure {
            (first[chain.multisets.number(&vec![kind; chain.order])], None)
        } else {
            let blocks: Vec<f64> = (0..first.len().div_ceil(BLOCK))
                .into_par_iter()
                .map(|block| {
                    run.check()?;
                    Ok(sums(chain, block, |number| first[number]).last().copied().unwrap_or(0.0))
                })
                .collect::<Result<_>>()?;
            let weighted = Weighted::new(blocks, BLOCK, 4 * chain.order);
            (weighted.total(), Some(weighted))
        };
        let own: f64 = self.ends.iter().map(|table| table.growth.log2()).sum();
        let rest = n - self.ends.len() - usize::from(self.between.is_some());
        let rest = real(rest) * libm::log(self.growth);
        let own = (own - f64::from(TOP)) * std::f64::consts::LN_2;
        let (total, bridge) = (libm::log(total), libm::log(bridged));
        let size = total.abs() + own.abs() + rest.abs();
        // Both sums of logarithms have an error of a few units of rounding of their terms.
        self.rounded = 16.0 * UNIT_ROUNDOFF * (1.0 + size);
        self.log_weight = total + own + rest + self.rounded;
        self.log_bound = self.log_weight + bridge + 4.0 * UNIT_ROUNDOFF * (1.0 + size + bridge.abs());
        self.start = start;
        Ok(())
    }

    /// Precomputes, for most steps, the uniform numbers up to which nobody takes part.
    fn look(&mut self, run: &Run) -> Result<()> {
        let (chain, n) = (&self.chain, self.chain.automaton.steps);
        let count = chain.multisets.count();
        let still = chain.automaton.moves.iter().enumerate().all(|(state, moves)| moves[0].to == state);
        if !still || self.ends.len() < n || count * n > MOST_LOOKED {
            return Ok(());
        }
        let least = |i: usize| {
            run.check()?;
            let (factors, growth) = (self.factors(i), self.growth(i));
            let share = |number: usize| {
                let total = growth * self.value(i, number);
                let share = chain.nobody(number, factors) * self.value(i + 1, number) / total * (1.0 - 1e-6);
                #[allow(clippy::cast_possible_truncation)] // 1e-6 is more than that loses
                let share = share as f32;
                share
            };
            Ok((0..count).map(share).collect())
        };
        self.nobody = (1..=n).into_par_iter().map(least).collect::<Result<_>>()?;
        Ok(())
    }

    /// Returns the step between the tables of the last steps and another one.
    fn bridge(&self) -> Option<usize> {
        self.between.as_ref().map(|_| self.chain.automaton.steps - self.ends.len())
    }

    /// Returns v_i of a state.
    #[inline]
    fn value(&self, i: usize, number: usize) -> f64 {
        match self.chain.automaton.steps.checked_sub(i) {
            None => power_of_two(TOP),
            Some(back) => match self.ends.get(back) {
                Some(table) => table.values[number],
                None => match (&self.between, self.ends.last()) {
                    (Some(values), _) => values[number],
                    (None, Some(table)) => table.values[number],
                    (None, None) => power_of_two(TOP),
                },
            },
        }
    }

    /// Returns T̃_i/v_i.
    #[inline]
    fn growth(&self, i: usize) -> f64 {
        self.ends.get(self.chain.automaton.steps - i).map_or(self.growth, |table| table.growth)
    }

    #[inline(never)]
    fn choose(&self, i: usize, (uniform, bridge): (f64, bool), tuple: &mut AutomatonTuple) -> Option<usize> {
        let (chain, factors) = (&self.chain, self.factors(i));
        let following = chain.following.get(tuple.number);
        chain.multisets.write(tuple.number, &mut tuple.kinds);
        chain.terms((tuple.number, &tuple.kinds), factors, &mut tuple.terms);
        let each = || following.iter().zip(&tuple.terms.all);
        let before = self.value(i, tuple.number);
        let mut total = self.growth(i) * before;
        if bridge {
            total = each().map(|(&to, (term, _))| term * self.value(i + 1, to as usize)).sum();
            tuple.log_factor += libm::log(total / before);
        }
        let mut sum = 0.0;
        for (way, (&to, &(term, joined))) in each().enumerate() {
            let value = self.value(i + 1, to as usize);
            sum += term * value;
            if sum >= uniform * total {
                if joined > 0 && i < chain.automaton.overlaps.bands() {
                    tuple.log_factor -= self.missing(i, (tuple.number, &tuple.kinds), (way, joined));
                }
                tuple.number = to as usize;
                return Some(joined);
            }
        }
        None
    }

    /// Returns ln of the factor that columns from before the run added to a term: participations i or more steps ago
    /// were before it. A term has the pairs of different replicas alone, so what a replica that takes part now has with
    /// itself is taken off. The rounding of the result is less than the amount by which the term's factors were raised,
    /// one for each of these columns and each record that takes part.
    fn missing(&self, i: usize, (number, kinds): (usize, &[usize]), (way, joined): (usize, usize)) -> f64 {
        let (chain, rows) = (&self.chain, self.chain.automaton.rows(i));
        let field = |kind: usize| -> f64 {
            let before = chain.automaton.recent[kind].iter().filter(|(lag, _)| *lag >= i);
            before.map(|&(lag, count)| real(count) * chain.automaton.overlaps.product(rows, lag)).sum()
        };
        let all = real(joined) * kinds.iter().map(|&kind| field(kind)).sum::<f64>();
        let own: f64 = chain.joining(number, way).map(|(state, joined)| real(joined) * field(state)).sum();
        all - own
    }
}

impl Bounds for AutomatonTuples {
    fn log_bound(&self) -> f64 {
        self.log_bound
    }

    /// Returns an upper bound on the excess of the computed ln ρ over the exact one, which it never falls below: for
    /// each step [`Chain::raised`] and the slack of a sum, and the amount by which inner products are raised, 4u for
    /// each band, in exponents.
    fn relative(&self) -> f64 {
        let (n, bands) = (real(self.chain.automaton.steps), real(self.chain.automaton.overlaps.bands()));
        let largest = self.last.iter().chain(&self.inner).map(|factors| factors.largest).fold(0.0, f64::max);
        let inner = 8.0 * UNIT_ROUNDOFF * bands * largest;
        let step = self.chain.raised(largest) + 2.0 * (self.chain.slack() - 1.0) + inner;
        let start =
            self.start.as_ref().map_or(0.0, |start| start.raised(4 * self.chain.order)) + 40.0 * real(self.chain.order);
        (n * step + UNIT_ROUNDOFF * (8.0 * start + 64.0) + 2.0 * self.rounded) * (1.0 + 1e-6)
    }

    /// Returns an upper bound on the total variation between the law that tuples are drawn from and π: in each step
    /// partial sums of its terms, each with an error of a few units of rounding of the total, are compared with a
    /// multiple of 2⁻⁵² of it; in the first step those of the blocks and of the states of one.
    fn variation(&self) -> f64 {
        let terms = real(self.chain.longest);
        let (n, first) = (real(self.chain.automaton.steps), self.start.as_ref().map_or(0.0, Weighted::variation));
        UNIT_ROUNDOFF * (4.0 * n * terms * (terms + 4.0) + first) * (1.0 + 1e-6)
    }
}

impl Stepwise for AutomatonTuples {
    type Tuple = AutomatonTuple;
    type At<'a> = usize;

    fn at(&self, i: usize) -> usize {
        i
    }

    fn rounds(&self) -> usize {
        self.chain.automaton.steps
    }

    fn begin(&self, uniforms: (f64, f64), tuple: &mut AutomatonTuple) {
        let chain = &self.chain;
        tuple.log_factor = 0.0;
        tuple.kinds.resize(chain.order, 0);
        if let Some(start) = &self.start {
            tuple.number = start.draw(uniforms, |block| sums(chain, block, |number| self.value(1, number)));
        } else {
            let kind = chain.automaton.start.iter().position(|chance| *chance >= 1.0).unwrap_or(0);
            tuple.kinds.fill(kind);
            tuple.number = chain.multisets.number(&tuple.kinds);
        }
    }

    #[inline]
    fn step(&self, &i: &usize, uniform: f64, tuple: &mut AutomatonTuple) -> Option<usize> {
        if let Some(least) = self.nobody.get(i - 1) {
            return if uniform <= f64::from(least[tuple.number]) {
                Some(0)
            } else {
                self.choose(i, (uniform, false), tuple)
            };
        }
        let (chain, factors) = (&self.chain, self.factors(i));
        let following = chain.following.get(tuple.number);
        let bridge = self.bridge() == Some(i);
        if !bridge {
            let (to, total) = (following[0] as usize, self.growth(i) * self.value(i, tuple.number));
            let value = self.value(i + 1, to);
            let term =
                if chain.chosen.get(tuple.number).is_empty() { 1.0 } else { chain.nobody(tuple.number, factors) };
            if term * value >= uniform * total {
                tuple.number = to;
                return Some(0);
            }
        }
        self.choose(i, (uniform, bridge), tuple)
    }

    fn log_weight(&self, tuple: &AutomatonTuple) -> f64 {
        self.log_weight + tuple.log_factor
    }
}

/// Returns sums of start·v over the states of a block up to each of them.
fn sums(chain: &Chain, block: usize, value: impl Fn(usize) -> f64) -> Vec<f64> {
    let first = block * BLOCK;
    let mut kinds = vec![0; chain.order];
    chain.multisets.write(first, &mut kinds);
    let mut sum = 0.0;
    (first..chain.multisets.count().min(first + BLOCK))
        .map(|number| {
            sum += chain.started(&kinds) * value(number);
            chain.multisets.advance(&mut kinds);
            sum
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::{AutomatonTuple, AutomatonTuples};
    use crate::participation::renewal::Renewal;
    use crate::replicas::automaton::Automaton;
    use crate::replicas::enumeration::{
        after_one_another, agree, allocations, enumerated, group, independent, inner, mean_with_error, spaced,
        uniforms, waits_and_patterns, Patterns,
    };
    use crate::replicas::stepwise::{Bounds, Stepwise};
    use crate::run::Run;

    fn users(law: &Renewal) -> Patterns {
        let (n, b) = (law.iterations(), law.min_separation);
        let mut found: Vec<(Vec<usize>, f64)> = Vec::new();
        for (_, taken, weight) in waits_and_patterns(b, law.sampling_probability, law.warm, n) {
            let mut all = vec![(vec![0; n], weight)];
            for round in taken {
                all = all
                    .into_iter()
                    .flat_map(|(pattern, weight)| {
                        law.counts.iter().zip(1..).map(move |(chance, count)| {
                            let mut pattern = pattern.clone();
                            pattern[round] = count;
                            (pattern, weight * chance)
                        })
                    })
                    .collect();
            }
            for (pattern, weight) in all {
                match found.iter_mut().find(|(known, _)| *known == pattern) {
                    Some((_, sum)) => *sum += weight,
                    None => found.push((pattern, weight)),
                }
            }
        }
        found
    }

    /// Returns the participations of a tuple, and ln ρ; −∞ if it is given up.
    fn one_of(tuples: &AutomatonTuples, draw: &mut impl FnMut() -> f64) -> (Vec<usize>, f64) {
        let mut tuple = AutomatonTuple::default();
        tuples.begin((draw(), draw()), &mut tuple);
        let mut joined = vec![0; tuples.rounds()];
        for i in 1..=tuples.rounds() {
            match tuples.step(&i, draw(), &mut tuple) {
                Some(count) => joined[i - 1] = count,
                None => return (joined, f64::NEG_INFINITY),
            }
        }
        (joined, tuples.log_weight(&tuple))
    }

    fn check(automaton: &Automaton, patterns: &Patterns, coefficients: &[f64], order: usize, exact: bool) {
        let (log, expected) = enumerated(patterns, |one, other| inner(one, other, coefficients), order);
        let mut draw = uniforms(7);
        for room in [usize::MAX / 2, 300] {
            let Ok(tuples) = AutomatonTuples::new(automaton.clone(), order, room, &Run::default()) else {
                assert!(room == 300, "{order} {coefficients:?}");
                continue;
            };
            assert!(tuples.log_bound() >= log - 1e-13 * (1.0 + log.abs()), "{} {log}", tuples.log_bound());
            if exact && room > 300 {
                assert!(tuples.log_bound() <= log + 1e-9, "{} {log}", tuples.log_bound());
            }
            assert!(tuples.relative() < 1e-7 && tuples.variation() < 1e-8);
            agree(tuples.log_bound(), (log, &expected), || one_of(&tuples, &mut draw));
        }
    }

    #[test]
    fn allocations_are_those_of_all_tuples() {
        for (steps, taken, square, order) in
            [(4, 2, 1.2, 2), (5, 1, 2.0, 3), (5, 3, 0.7, 3), (3, 3, 0.5, 2), (6, 2, 0.4, 4), (4, 1, 3.0, 4)]
        {
            let automaton = Automaton::of_allocation(steps, (steps, taken), &[f64::sqrt(square)]).expect("valid");
            check(&automaton, &allocations(steps, taken), &[square.sqrt()], order, true);
        }
    }

    #[test]
    fn users_are_those_of_all_tuples() {
        let columns: [&[f64]; 4] = [&[0.6], &[0.5, 0.4], &[0.5, 0.0, 0.4], &[0.4, 0.3, 0.2]];
        for (b, n, records, warm, p, order) in [
            (1, 3, 2, false, 0.3, 3),
            (2, 4, 2, false, 0.2, 3),
            (3, 6, 2, true, 0.2, 2),
            (3, 5, 3, false, 0.1, 2),
            (3, 5, 1, true, 0.4, 3),
            (2, 5, 2, true, 0.3, 2),
        ] {
            let law = Renewal::of_users(b, p, records, warm, vec![1.0; n]).expect("valid");
            for coefficients in columns.iter().filter(|c| c.len() <= b) {
                let automaton = Automaton::of_renewal(&law, coefficients).expect("valid");
                check(&automaton, &users(&law), coefficients, order, !warm);
            }
        }
    }

    #[test]
    fn allocations_under_a_matrix_are_those_of_all_tuples() {
        let columns: [&[f64]; 3] = [&[0.5, 0.4], &[0.5, 0.0, 0.4], &[0.6, 0.3, 0.2]];
        for (coefficients, (steps, taken, order)) in columns.iter().zip([(5, 2, 2), (5, 3, 2), (4, 2, 3)]) {
            let automaton = Automaton::of_allocation(steps, (steps, taken), coefficients).expect("valid");
            check(&automaton, &allocations(steps, taken), coefficients, order, true);
        }
        // Two allocations of one run, whose columns meet.
        for (coefficients, (length, taken, order)) in columns.iter().zip([(3, 1, 2), (2, 1, 3), (3, 2, 2)]) {
            let automaton = Automaton::of_allocation(2 * length, (length, taken), coefficients).expect("valid");
            let one = allocations(length, taken);
            check(&automaton, &after_one_another(&one), coefficients, order, true);
        }
    }

    #[test]
    fn poisson_samples_under_a_matrix_are_those_of_all_tuples() {
        let columns: [&[f64]; 3] = [&[0.6], &[0.5, 0.4], &[0.4, 0.3, 0.2]];
        for coefficients in columns {
            for (p, n, records, order) in [(0.3, 4, 1, 3), (0.1, 5, 1, 2), (0.2, 3, 2, 2)] {
                let automaton = Automaton::of_poisson(n, records, p, coefficients).expect("valid");
                check(&automaton, &group(&independent(p, n), records), coefficients, order, true);
            }
        }
    }

    #[test]
    fn groups_of_spaced_records_are_those_of_all_tuples() {
        let columns: [&[f64]; 3] = [&[0.6], &[0.5, 0.4], &[0.4, 0.3, 0.2]];
        for coefficients in columns {
            for (b, n, warm, p, records, order) in
                [(3, 4, false, 0.2, 2, 2), (3, 4, true, 0.3, 2, 2), (3, 5, true, 0.3, 1, 3), (3, 4, true, 0.2, 3, 2)]
            {
                let automaton = Automaton::of_group((n, b, warm), records, p, coefficients).expect("valid");
                let all: f64 = automaton.start.iter().sum();
                assert!((all - 1.0).abs() < 1e-12, "{all}");
                check(&automaton, &group(&spaced(b, p, warm, n), records), coefficients, order, !warm);
            }
        }
    }

    #[test]
    fn one_table_for_many_steps_costs_little() {
        let law = Renewal::of_users(3, 0.02, 2, false, vec![1.0; 400]).expect("valid");
        let automaton = Automaton::of_renewal(&law, &[0.5, 0.3, 0.2]).expect("valid");
        let all = AutomatonTuples::new(automaton.clone(), 3, usize::MAX / 2, &Run::default()).expect("valid");
        let few = AutomatonTuples::new(automaton, 3, 200, &Run::default()).expect("valid");
        assert!(few.between.is_some() && few.log_bound() >= all.log_bound() - super::GAP);
        let mut draw = uniforms(5);
        let logs: Vec<f64> = (0..4000).map(|_| one_of(&few, &mut draw).1).collect();
        let (mean, error) = mean_with_error(&logs.iter().map(|log| (log - all.log_bound()).exp()).collect::<Vec<_>>());
        assert!((mean - 1.0).abs() < 4.0 * error + super::GAP, "{mean} {error}");
    }

    #[test]
    fn what_is_too_large_is_refused_before_it_is_made() {
        for (records, order) in [(1000, 2), (100, 4), (20, 12)] {
            let law = Renewal::of_users(1, 1e-3, records, false, vec![1e-6; 10]).expect("valid");
            let automaton = Automaton::of_renewal(&law, &[1e-3]).expect("valid");
            assert!(super::price(&automaton, order, 1 << 25).is_none(), "{records} {order}");
            assert!(AutomatonTuples::new(automaton, order, 1 << 25, &Run::default()).is_err());
        }
        // There are as many ways as there are multisets of three of five moves.
        let automaton = Automaton::of_allocation(9, (9, 2), &[1.0]).expect("valid");
        let tuples = AutomatonTuples::new(automaton.clone(), 3, 1 << 25, &Run::default()).expect("valid");
        assert_eq!(super::fitting(&automaton, 3), Some((10, tuples.chain.following.all.len())));
        assert_eq!(tuples.chain.longest, 6);
    }
}
