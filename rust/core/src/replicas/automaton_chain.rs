//! The chain over multisets of m states of an automaton: its states, and the transitions between them.
//!
//! Replicas are exchangeable, so only the number of replicas in each state matters: a multiset of m states of the
//! automaton. If replica r takes part x_r times in step i, the new pairs of replicas add to Σ_{r<s} ⟨Cx^r, Cx^s⟩
//!
//! `½(J² − Σ_r x_r²)·r_i(0) + Σ_r x_r Σ_{s≠r} h_s`, J = Σ_r x_r,
//!
//! h_s = Σ r_i(a)·(how often replica s took part a steps ago), r_i(a) of [`super::overlaps`], which is ½J²r_i(0) +
//! J·Σ_s h_s minus
//! ½x²r_i(0) + x·h for each move that is made. So with β_{n+1} = 1
//!
//! `β_i(s) = Σ_moves Π chances · e^{½(J² − Σx²)r_i(0) + J·Σh − Σxh} · β_{i+1}(s′)`, `Z_m = Σ_s start(s) β_1(s)`,
//!
//! a sum over the ways in which the replicas of s may move. Pairs of a replica with itself are never counted: f has
//! ‖Cx‖² of a pattern with all its inner products, as far as the state determines them. Columns are not negative, so
//! that every exponent is at least 0.
//!
//! **Rounding.** The factors of a step are rounded up when they are computed, by more than their product can lose, and
//! the sum by [`Chain::slack`].

use rayon::prelude::*;

use crate::error::{Error, Result};
use crate::replicas::automaton::Automaton;
use crate::replicas::chain::CHUNK;
use crate::replicas::multisets::{number_of, Multisets};
use crate::run::Run;
use crate::special::{real, UNIT_ROUNDOFF};

/// The largest value of a table is between 2^`TOP` and the next power of two, and the least is at least 2^`LEAST`.
pub(super) const TOP: i32 = 600;
pub(super) const LEAST: i32 = -900;
/// The largest exponent of the terms of a step.
const MOST_EXPONENT: f64 = 200.0;
/// The maximum number of ways to move, of all states together.
const MOST_WAYS: usize = 1 << 26;
/// The maximum number of stored counts of how replicas in one state may move, of all groups together.
const MOST_KEPT: usize = 1 << 24;

/// A number of replicas in one state that has a choice, and the ways in which they may move.
#[derive(Debug)]
pub(super) struct Group {
    state: usize,
    ways: Vec<Way>,
    /// The index of the first of these ways among those of all groups.
    first: usize,
}

/// How many replicas of a group make each move.
#[derive(Debug)]
pub(super) struct Way {
    counts: Vec<usize>,
    /// The number of records that take part.
    joined: usize,
    /// The number of orders of the replicas.
    orders: f64,
}

/// The chain: its states, and the transitions between them.
#[derive(Debug)]
pub(super) struct Chain {
    pub automaton: Automaton,
    pub multisets: Multisets,
    pub order: usize,
    groups: Vec<Group>,
    /// The groups of each state, and the next states for each combination of their ways, where the first group varies
    /// slowest.
    pub chosen: Lists,
    pub following: Lists,
    /// The maximum number of next states of a state.
    pub longest: usize,
}

/// Lists of numbers, stored one after the other.
#[derive(Debug, Default)]
pub(super) struct Lists {
    ends: Vec<u32>,
    pub all: Vec<u32>,
}

impl Lists {
    pub(super) fn get(&self, number: usize) -> &[u32] {
        let first = if number == 0 { 0 } else { self.ends[number - 1] };
        &self.all[first as usize..self.ends[number] as usize]
    }

    #[allow(clippy::cast_possible_truncation)] // at most MOST_WAYS
    fn push(&mut self, list: impl Iterator<Item = usize>) {
        self.all.extend(list.map(|one| one as u32));
        self.ends.push(self.all.len() as u32);
    }
}

/// The factors of a step.
#[derive(Debug, Clone)]
pub(super) struct Factors {
    /// The factor of each way of each group.
    ways: Vec<f64>,
    /// e^{½J²r(0)} for each J.
    pairs: Vec<f64>,
    /// e^h of each state of the automaton; empty if all are 1.
    fields: Vec<f64>,
    /// The largest exponent of a term.
    pub largest: f64,
}

/// The terms of one state's step, without the value of the next state: buffers.
#[derive(Debug, Clone, Default)]
pub(super) struct StepTerms {
    /// For each combination of ways: the product of their factors, and J.
    pub all: Vec<(f64, usize)>,
    before: Vec<(f64, usize)>,
    powers: Vec<f64>,
}

impl Chain {
    pub(super) fn new(automaton: Automaton, order: usize, run: &Run) -> Result<Self> {
        if fitting(&automaton, order).is_none() {
            return Err(TOO_MANY);
        }
        let largest = automaton.largest_exponent(order);
        if largest.is_nan() || largest > MOST_EXPONENT {
            return Err(Error::Numerics { reason: "a chain of replicas leaves the range of numbers" });
        }
        let kinds = automaton.moves.len();
        let multisets = Multisets::new(kinds, order)?;
        let count = multisets.count();
        // There is a group for each state with a choice, and each number of replicas.
        let mut groups = Vec::new();
        let mut group = vec![vec![0; order + 1]; kinds];
        let mut first = 0;
        for (state, moves) in automaton.moves.iter().enumerate().filter(|(_, moves)| moves.len() > 1) {
            for (size, place) in group[state].iter_mut().enumerate().skip(1) {
                *place = groups.len();
                let ways = ways(size, moves.len()).map(|counts| Way {
                    joined: counts.iter().zip(moves).map(|(count, one)| count * one.count).sum(),
                    orders: orders(&counts),
                    counts,
                });
                let ways: Vec<Way> = ways.collect();
                let length = ways.len();
                groups.push(Group { state, ways, first });
                first += length;
            }
        }
        let mut chain = Self {
            automaton,
            multisets,
            order,
            groups,
            chosen: Lists::default(),
            following: Lists::default(),
            longest: 1,
        };
        let (mut kinds, mut target) = (vec![0; order], vec![0; order]);
        for number in 0..count {
            if number % CHUNK == 0 {
                run.check()?;
            }
            let mut next_states: Vec<usize> = Vec::new();
            // `sure` are the replicas whose move is determined, `parts` those of each group.
            let (mut sure, mut parts): (Vec<usize>, Vec<(usize, usize)>) = (Vec::new(), Vec::new());
            for part in kinds.chunk_by(|one, other| one == other) {
                match &chain.automaton.moves[part[0]][..] {
                    [only] => sure.extend(part.iter().map(|_| only.to)),
                    _ => parts.push((part[0], group[part[0]][part.len()])),
                }
            }
            chain.chosen.push(parts.iter().map(|(_, group)| *group));
            let lengths: Vec<usize> = parts.iter().map(|(_, group)| chain.groups[*group].ways.len()).collect();
            for mut number in 0..lengths.iter().product() {
                target.clear();
                target.extend_from_slice(&sure);
                for ((state, group), length) in parts.iter().zip(&lengths).rev() {
                    let way = &chain.groups[*group].ways[number % length];
                    number /= length;
                    for (count, one) in way.counts.iter().zip(&chain.automaton.moves[*state]) {
                        target.extend(std::iter::repeat_n(one.to, *count));
                    }
                }
                target.sort_unstable();
                next_states.push(chain.multisets.number(&target));
            }
            chain.longest = chain.longest.max(next_states.len());
            chain.following.push(next_states.into_iter());
            chain.multisets.advance(&mut kinds);
        }
        Ok(chain)
    }

    /// Returns an upper bound on the number of operations that compute a term from its factors, and a value from its
    /// terms.
    fn operations(&self) -> f64 {
        let (order, most) = (real(self.order), real(self.automaton.most()));
        (order * most + 4.0) * (order + 2.0) + order + 8.0
    }

    /// Returns the factor that makes a computed value at least the exact one.
    pub(super) fn slack(&self) -> f64 {
        let terms = real(self.longest);
        1.0 + 4.0 * (self.operations() + terms) * UNIT_ROUNDOFF
    }

    /// Returns the factors of step i; before its first steps columns are assumed to exist.
    pub(super) fn factors(&self, i: usize) -> Factors {
        let (automaton, rows) = (&self.automaton, self.automaton.rows(i));
        let overlap = |lag: usize| automaton.overlaps.product(rows, lag);
        let most = self.order * automaton.most();
        let exponent = |joined: usize| 0.5 * real(joined * joined) * overlap(0);
        let field = |state: usize| -> f64 {
            automaton.recent[state].iter().map(|&(lag, count)| real(count) * overlap(lag)).sum()
        };
        let fields: Vec<f64> = (0..automaton.moves.len()).map(field).collect();
        let widest = fields.iter().copied().fold(0.0, f64::max);
        let largest = exponent(most) + real(most) * real(self.order) * widest;
        // An exponential has an error of 4u plus that of its exponent, which is a sum of few terms.
        let terms = real(automaton.overlaps.bands()) + 8.0;
        let up = 1.0 + 4.0 * UNIT_ROUNDOFF * (4.0 + terms * (1.0 + largest));
        let mut factors = Vec::new();
        for group in &self.groups {
            let own = |number: usize, count: usize| {
                let records = real(automaton.moves[group.state][number].count);
                let shared = 0.5 * records * records * overlap(0) + records * fields[group.state];
                let factor = automaton.chance(i, group.state, number) * (1.0 + 2.0 * automaton.chance_error);
                let one = factor * libm::exp(-shared) * up;
                std::iter::repeat_n(one, count).product::<f64>()
            };
            for way in &group.ways {
                let product: f64 = way.counts.iter().enumerate().map(|(number, &count)| own(number, count)).product();
                let possible =
                    |(number, count): (usize, &usize)| *count == 0 || automaton.chance(i, group.state, number) > 0.0;
                // A product that underflows is raised.
                let product =
                    if way.counts.iter().enumerate().all(possible) { product.max(f64::MIN_POSITIVE) } else { 0.0 };
                // This includes room for the operations that compute a term from it.
                factors.push(way.orders * product * (1.0 + 4.0 * UNIT_ROUNDOFF * (2.0 * self.operations() + 8.0)));
            }
        }
        let fields =
            if widest > 0.0 { fields.iter().map(|field| libm::exp(*field) * up).collect() } else { Vec::new() };
        let pairs = (0..=most).map(|joined| libm::exp(exponent(joined)) * up).collect();
        Factors { ways: factors, pairs, fields, largest }
    }

    /// Returns a bound on the relative excess of a step's computed factor of a term over the exact one, with exponents
    /// of at most this size.
    pub(super) fn raised(&self, largest: f64) -> f64 {
        let (order, most, bands) =
            (real(self.order), real(self.automaton.most()), real(self.automaton.overlaps.bands()));
        let each = 4.0 * (4.0 + (bands + 8.0) * (1.0 + largest)) + 16.0;
        UNIT_ROUNDOFF * ((2.0 + order * (1.0 + most * order)) * each + 16.0 * order * (self.operations() + 8.0))
            + 4.0 * order * self.automaton.chance_error
    }

    /// Computes the terms of a state without the next values, in the order of [`Self::following`].
    #[inline]
    pub(super) fn terms(&self, (number, kinds): (usize, &[usize]), factors: &Factors, terms: &mut StepTerms) {
        terms.all.clear();
        terms.all.push((1.0, 0));
        let mut most = 0;
        for &group in self.chosen.get(number) {
            let group = &self.groups[group as usize];
            std::mem::swap(&mut terms.all, &mut terms.before);
            terms.all.clear();
            let ways = &factors.ways[group.first..][..group.ways.len()];
            for (product, joined) in &terms.before {
                terms
                    .all
                    .extend(group.ways.iter().zip(ways).map(|(way, factor)| (product * factor, joined + way.joined)));
            }
            most += group.ways.iter().map(|way| way.joined).max().unwrap_or(0);
        }
        terms.powers.clear();
        terms.powers.extend_from_slice(&factors.pairs[..=most]);
        if !factors.fields.is_empty() {
            let field: f64 = kinds.iter().map(|&kind| factors.fields[kind]).product();
            let mut power = 1.0;
            for pair in &mut terms.powers {
                *pair *= power;
                power *= field;
            }
        }
        for (product, joined) in &mut terms.all {
            *product *= terms.powers[*joined];
        }
    }

    /// Returns how many records of each group of replicas take part in a term of a state, given by its place: (the
    /// group's state, the number of records).
    pub(super) fn joining(&self, number: usize, mut way: usize) -> impl Iterator<Item = (usize, usize)> + '_ {
        // The first group varies slowest.
        self.chosen.get(number).iter().rev().map(move |&group| {
            let group = &self.groups[group as usize];
            let own = way % group.ways.len();
            way /= group.ways.len();
            (group.state, group.ways[own].joined)
        })
    }

    /// Returns the first of these terms, in which nobody takes part.
    #[inline]
    pub(super) fn nobody(&self, number: usize, factors: &Factors) -> f64 {
        let first = |&group: &u32| factors.ways[self.groups[group as usize].first];
        self.chosen.get(number).iter().map(first).product::<f64>() * factors.pairs[0]
    }

    /// Computes T v of all states, rounded up, into `out`; returns the largest value, and the largest and least ratio
    /// to `against`.
    pub(super) fn step(
        &self,
        factors: &Factors,
        next: &[f64],
        against: Option<&[f64]>,
        out: &mut [f64],
        run: &Run,
    ) -> Result<(f64, f64, f64)> {
        let slack = self.slack();
        let parts = out.par_chunks_mut(CHUNK).enumerate().map(|(chunk, values)| {
            run.check()?;
            let first = chunk * CHUNK;
            let (mut kinds, mut terms) = (vec![0; self.order], StepTerms::default());
            self.multisets.write(first, &mut kinds);
            let (mut largest, mut most, mut least) = (0.0_f64, 0.0_f64, f64::INFINITY);
            for (number, value) in (first..).zip(values) {
                let following = self.following.get(number);
                let sum = if self.chosen.get(number).is_empty() {
                    next[following[0] as usize]
                } else {
                    self.terms((number, &kinds), factors, &mut terms);
                    following.iter().zip(&terms.all).map(|(&to, (term, _))| term * next[to as usize]).sum::<f64>()
                        * slack
                };
                *value = if sum.is_finite() { sum.max(power_of_two(LEAST)) } else { f64::INFINITY };
                largest = largest.max(*value);
                if let Some(against) = against {
                    most = most.max(*value / against[number]);
                    least = least.min(*value / against[number]);
                }
                self.multisets.advance(&mut kinds);
            }
            Ok((largest, most, least))
        });
        parts.try_reduce(
            || (0.0, 0.0, f64::INFINITY),
            |one, other| Ok((one.0.max(other.0), one.1.max(other.1), one.2.min(other.2))),
        )
    }

    /// Returns the probability of a multiset of independent states, rounded up.
    pub(super) fn started(&self, kinds: &[usize]) -> f64 {
        let (mut weight, mut alike, mut before) = (1.0, 0.0, None);
        for (placed, &kind) in kinds.iter().enumerate() {
            alike = if before == Some(kind) { alike + 1.0 } else { 1.0 };
            let ways = real(placed + 1) / alike;
            weight *=
                ways * self.automaton.start[kind] * (1.0 + 4.0 * self.automaton.chance_error + 16.0 * UNIT_ROUNDOFF);
            before = Some(kind);
        }
        weight
    }
}

const TOO_MANY: Error = Error::Numerics { reason: "a chain of replicas has too many states" };

/// Enumerates the ways to distribute `size` among `moves`, starting with all in the first one.
fn ways(size: usize, moves: usize) -> impl Iterator<Item = Vec<usize>> {
    let mut now = vec![0; moves];
    now[0] = size;
    std::iter::successors(Some(now), move |before| {
        // One is taken from the first move that has some, and given to the next, together with all that lies before
        // that.
        let mut after = before.clone();
        let place = after.iter().position(|&count| count > 0)?;
        if place + 1 == moves {
            return None;
        }
        let count = std::mem::replace(&mut after[place], 0);
        after[place + 1] += 1;
        after[0] = count - 1;
        Some(after)
    })
}

/// Returns size!/Π counts!, for small numbers, to within a few units of rounding.
fn orders(counts: &[usize]) -> f64 {
    let (mut product, mut placed) = (1.0, 0.0);
    for &count in counts {
        let mut alike = 0.0;
        for _ in 0..count {
            placed += 1.0;
            alike += 1.0;
            product *= placed / alike;
        }
    }
    product
}

pub(super) fn power_of_two(power: i32) -> f64 {
    2.0_f64.powi(power)
}

/// Returns the numbers of states and of all ways out of them, if these are few enough to be listed.
///
/// Replicas in a state with o moves have C(size + o − 1, size) ways, the coefficient of x^size in (1 − x)^{−o}. So all
/// multisets of m together have as many ways as there are multisets of m moves.
pub(super) fn fitting(automaton: &Automaton, order: usize) -> Option<(usize, usize)> {
    let count = number_of(automaton.moves.len(), order)?;
    let ways = number_of(automaton.moves.iter().map(Vec::len).sum(), order)?;
    let widest = automaton.moves.iter().map(Vec::len).max().unwrap_or(1);
    let kept = number_of(widest, order)?.saturating_mul(widest * order * automaton.moves.len());
    (ways <= MOST_WAYS && (widest < 2 || kept <= MOST_KEPT)).then_some((count, ways))
}

#[cfg(test)]
mod tests {
    use super::ways;

    #[test]
    fn ways_are_all_and_nobody_is_first() {
        let all: Vec<Vec<usize>> = ways(3, 3).collect();
        assert_eq!(all[0], [3, 0, 0]);
        let mut sorted = all.clone();
        sorted.sort_unstable();
        sorted.dedup();
        assert_eq!((all.len(), sorted.len()), (10, 10));
        assert!(all.iter().all(|counts| counts.iter().sum::<usize>() == 3));
    }
}
