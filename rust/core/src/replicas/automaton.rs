//! Finite automata that emit a record's participations, one step after another.
//!
//! A record, a user with several records, or a group of records is in one of finitely many states. In step i it takes
//! one of the moves of its state, with a probability that may depend on i: the move determines how many records take
//! part, and the next state. This describes b-min-sep sampling of users and of groups, random allocation and Poisson
//! sampling. The inner product of the columns of two steps is zero from some distance B on, the number of bands; a state
//! must determine who took part in the B − 1 steps before it.
//!
//! | sampler | state | number of states |
//! | --- | --- | --- |
//! | users, b-min-sep | steps since they took part; how many records did, while columns reach | (B−1)k + b − B + 1 |
//! | g records, b-min-sep | for each record the steps since it took part, in any order | C(b+g−1, g) |
//! | g records, Poisson | how many took part in each of the last B − 1 steps | (g+1)^(B−1) |
//! | random allocation, k of t | how often the record took part; in which of the last B − 1 steps | at most (k+1)·2^(B−1) |
//!
//! The records of a group are drawn independently of one another, and all of them contribute with the same sign.

use std::collections::HashMap;

use crate::error::{domain, Result};
use crate::participation::renewal::Renewal;
use crate::replicas::overlaps::Overlaps;
use crate::special::{real, UNIT_ROUNDOFF};

/// The largest number of moves of all states together.
const MOST_MOVES: usize = 1 << 16;

/// The least probability of how many records join: smaller ones would lose precision.
const LEAST_CHANCE: f64 = 1e-280;

/// A possible event of a step: how many records take part, and the next state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Move {
    /// The number of records that take part.
    pub count: usize,
    /// The next state.
    pub to: usize,
}

/// The probabilities of the moves of a state.
#[derive(Debug, Clone)]
enum Chances {
    /// The probabilities for each state, the same in all steps.
    Alike(Vec<Vec<f64>>),
    /// A state that has L participations left takes part in the next of N steps of an allocation with probability L/N.
    Left {
        /// L for each state.
        left: Vec<usize>,
        /// The number of steps of an allocation, and of those that are taken.
        length: usize,
        taken: usize,
    },
}

/// An automaton, and the inner products of the columns of its steps.
#[derive(Debug, Clone)]
pub struct Automaton {
    /// n, the number of steps.
    pub steps: usize,
    /// The moves of each state; if there are several, nobody takes part in the first one.
    pub moves: Vec<Vec<Move>>,
    /// For each state the participations less than B steps ago: (how many steps ago, how many records).
    pub recent: Vec<Vec<(usize, usize)>>,
    /// The law of the first state.
    pub start: Vec<f64>,
    chances: Chances,
    /// A bound on the relative error of a probability, and of one of the start: a sum, a product and a quotient, and
    /// the law of how many records are drawn.
    pub chance_error: f64,
    /// The inner products of the columns.
    pub overlaps: Overlaps,
}

impl Automaton {
    /// Creates the automaton of users with several records each under b-min-sep sampling, or of single records, with a
    /// banded Toeplitz matrix of these coefficients in units of σ.
    ///
    /// # Errors
    /// [`Error::Domain`] for more bands than the separation, random phases, and as [`Overlaps::toeplitz`].
    pub(super) fn of_renewal(law: &Renewal, coefficients: &[f64]) -> Result<Self> {
        let overlaps = Overlaps::toeplitz(coefficients)?;
        let (b, bands, p) = (law.min_separation, coefficients.len(), law.sampling_probability);
        if bands > b {
            let allowed = "at most the separation: a record's own columns must not overlap";
            return domain("bands", real(bands), allowed);
        }
        if law.phased {
            return domain("phases", 1.0, "none that are random");
        }
        let records = law.records() as usize;
        // States are ordered by age: one state for each number of records while that matters, then one; in the last
        // state the record may join.
        let kinds = |age: usize| if age < bands { records } else { 1 };
        let first: Vec<usize> = (1..=b).scan(0, |sum, age| Some(std::mem::replace(sum, *sum + kinds(age)))).collect();
        let free = first[b - 1];
        let state = |age: usize, count: usize| if age >= b { free } else { first[age - 1] + (count - 1) % kinds(age) };
        let (mut moves, mut recent, mut start) = (Vec::new(), Vec::new(), Vec::new());
        let total = 1.0 + (real(b) - 1.0) * p;
        for age in 1..b {
            for count in 1..=kinds(age) {
                moves.push(vec![Move { count: 0, to: state(age + 1, count) }]);
                recent.push(if age < bands { vec![(age, count)] } else { Vec::new() });
                let counted = if age < bands { law.counts[count - 1] } else { 1.0 };
                start.push(if law.warm { p * counted / total } else { 0.0 });
            }
        }
        let joins = (1..=records).map(|count| Move { count, to: state(1, count) });
        moves.push(std::iter::once(Move { count: 0, to: free }).chain(joins).collect());
        recent.push(Vec::new());
        start.push(if law.warm { 1.0 / total } else { 1.0 });
        let mut chances = vec![vec![1.0]; free];
        chances.push(std::iter::once(1.0 - p).chain(law.counts.iter().map(|count| p * count)).collect());
        let chance_error = 4.0 * UNIT_ROUNDOFF + law.counts_error;
        Ok(Self {
            steps: law.iterations(),
            moves,
            recent,
            start,
            chances: Chances::Alike(chances),
            chance_error,
            overlaps,
        })
    }

    /// Creates the automaton of random allocation of `taken` steps out of every `length`, with a banded Toeplitz matrix of
    /// these coefficients in units of σ.
    ///
    /// # Errors
    /// [`Error::Domain`] for no step that is taken, or more than there are, for steps that are no multiple of `length`, for
    /// too many moves, and as [`Overlaps::toeplitz`].
    pub fn of_allocation(steps: usize, (length, taken): (usize, usize), coefficients: &[f64]) -> Result<Self> {
        if taken == 0 || taken > length {
            let allowed = "at least 1, and no more than there are steps";
            return domain("participations", real(taken), allowed);
        }
        if length == 0 || !steps.is_multiple_of(length) {
            return domain("iterations", real(steps), "a multiple of those of an allocation");
        }
        let (bands, followed) = (coefficients.len(), steps > length);
        // A state is how many steps are left to be taken, and for each of the last B − 1 steps whether it was taken. Where
        // another allocation follows, none is left at its start, and the last two of three moves begin it.
        let first = (taken, vec![0_usize; bands.saturating_sub(1)]);
        let (states, moves) = explored(vec![first], |(left, window)| {
            let after = |left: usize, joined: usize| (joined, (left, shifted(window, joined)));
            match *left {
                0 if followed => vec![after(0, 0), after(taken, 0), after(taken - 1, 1)],
                0 => vec![after(0, 0)],
                left => vec![after(left, 0), after(left - 1, 1)],
            }
        })?;
        let left = states.iter().map(|(left, _)| *left).collect();
        Ok(Self {
            steps,
            moves,
            recent: states.iter().map(|(_, window)| lags(window)).collect(),
            start: (0..states.len()).map(|state| if state == 0 { 1.0 } else { 0.0 }).collect(),
            chances: Chances::Left { left, length, taken },
            chance_error: 4.0 * UNIT_ROUNDOFF,
            overlaps: Overlaps::toeplitz(coefficients)?,
        })
    }

    /// Creates the automaton of a group of records under Poisson sampling, with a banded Toeplitz matrix of these
    /// coefficients in units of σ.
    ///
    /// # Errors
    /// [`Error::Domain`] for no records, a probability outside (0, 1], too many moves, and as [`Overlaps::toeplitz`].
    pub fn of_poisson(steps: usize, records: usize, probability: f64, coefficients: &[f64]) -> Result<Self> {
        let law = Joint::new(records, probability)?;
        let first = vec![0_usize; coefficients.len().saturating_sub(1)];
        let (states, moves) =
            explored(vec![first], |window| (0..=records).map(|joined| (joined, shifted(window, joined))).collect())?;
        Ok(Self {
            steps,
            recent: states.iter().map(|window| lags(window)).collect(),
            start: (0..states.len()).map(|state| if state == 0 { 1.0 } else { 0.0 }).collect(),
            chances: Chances::Alike(vec![law.chances(records); moves.len()]),
            chance_error: law.error(),
            overlaps: Overlaps::toeplitz(coefficients)?,
            moves,
        })
    }

    /// Creates the automaton of a group of records under b-min-sep sampling, with a banded Toeplitz matrix of these
    /// coefficients in units of σ. With a warm start each record begins with the stationary law; participations before
    /// the run have no columns in it.
    ///
    /// # Errors
    /// As [`Self::of_poisson`]; for more bands than the separation.
    pub fn of_group(
        (steps, separation, warm): (usize, usize, bool),
        records: usize,
        probability: f64,
        coefficients: &[f64],
    ) -> Result<Self> {
        let law = Joint::new(records, probability)?;
        let (b, bands) = (separation, coefficients.len());
        if bands > b || b == 0 {
            return domain("bands", real(bands), "at most the separation: a record's own columns must not overlap");
        }
        // The ages of the records, in order; a record of age b may join.
        let mut ages = vec![vec![b; records]];
        if warm {
            ages.extend(multisets(b, records).filter(|one| one.iter().any(|&age| age < b)));
        }
        let (states, moves) = explored(ages, |ages| {
            let free = ages.iter().filter(|&&age| age == b).count();
            let joined = |count: usize| {
                let mut next: Vec<usize> = ages[..records - free].iter().map(|age| age + 1).collect();
                next.extend(std::iter::repeat_n(b, free - count));
                next.extend(std::iter::repeat_n(b.min(1), count));
                next.sort_unstable();
                (count, next)
            };
            (0..=free).map(joined).collect()
        })?;
        let free = |ages: &Vec<usize>| ages.iter().filter(|&&age| age == b).count();
        let total = 1.0 + (real(b) - 1.0) * probability;
        let start = |(state, ages): (usize, &Vec<usize>)| -> f64 {
            if !warm {
                return if state == 0 { 1.0 } else { 0.0 };
            }
            let single = |age: usize| if age == b { 1.0 / total } else { probability / total };
            let (mut weight, mut alike, mut before) = (1.0, 0.0, 0);
            for (placed, &age) in ages.iter().enumerate() {
                alike = if before == age { alike + 1.0 } else { 1.0 };
                weight *= real(placed + 1) / alike * single(age);
                before = age;
            }
            weight
        };
        let recent = |ages: &Vec<usize>| -> Vec<(usize, usize)> {
            let counted = ages.chunk_by(|one, other| one == other).map(|same| (same[0], same.len()));
            counted.filter(|&(age, _)| age < bands).collect()
        };
        Ok(Self {
            steps,
            recent: states.iter().map(recent).collect(),
            start: states.iter().enumerate().map(start).collect(),
            chances: Chances::Alike(states.iter().map(|ages| law.chances(free(ages))).collect()),
            chance_error: law.error() + 8.0 * real(records) * UNIT_ROUNDOFF,
            overlaps: Overlaps::toeplitz(coefficients)?,
            moves,
        })
    }

    /// Returns the probability of a move of a state in step i, from 1 on; its relative error is at most
    /// [`Self::chance_error`].
    pub fn chance(&self, i: usize, state: usize, number: usize) -> f64 {
        match &self.chances {
            Chances::Alike(all) => all[state][number],
            Chances::Left { left, length, taken } => {
                let (done, left) = ((i - 1) % length, left[state]);
                let steps = length - done;
                let share = |part: usize| real(part) / real(steps);
                match (left, number) {
                    (0, _) if self.moves[state].len() == 1 => 1.0,
                    (0, 0) => f64::from(u8::from(done > 0)),
                    (0, _) if done > 0 => 0.0,
                    (0, 1) => share(length - taken),
                    (0, _) => share(*taken),
                    (_, 0) => share(steps.saturating_sub(left)),
                    // A state with more participations left than steps cannot be reached.
                    _ => share(left.min(steps)),
                }
            }
        }
    }

    /// Returns whether all steps have the same probabilities.
    pub fn alike(&self) -> bool {
        matches!(self.chances, Chances::Alike(_))
    }

    /// Returns the number of rows of the column of step i that are inside the run.
    pub fn rows(&self, i: usize) -> usize {
        self.overlaps.bands().min(self.steps - i + 1)
    }

    /// Returns an upper bound on the exponent of a step of this many replicas.
    pub(super) fn largest_exponent(&self, order: usize) -> f64 {
        let overlap = |lag: usize| self.overlaps.product(self.overlaps.bands(), lag);
        let field = |recent: &Vec<(usize, usize)>| -> f64 {
            recent.iter().map(|&(lag, count)| real(count) * overlap(lag)).sum()
        };
        let widest = self.recent.iter().map(field).fold(0.0, f64::max);
        let (order, most) = (real(order), real(self.most()));
        0.5 * (order * most) * (order * most) * overlap(0) + most * order * order * widest
    }

    /// Returns the largest number of records that take part in a step.
    pub fn most(&self) -> usize {
        self.moves.iter().flatten().map(|one| one.count).max().unwrap_or(0)
    }
}

/// How many of several records join, each with the same probability.
struct Joint {
    records: usize,
    probability: f64,
}

impl Joint {
    fn new(records: usize, probability: f64) -> Result<Self> {
        if !(1..=64).contains(&records) {
            return domain("records", real(records), "between 1 and 64");
        }
        if !(probability > 0.0 && probability <= 1.0) {
            return domain("sampling_probability", probability, "greater than 0 and at most 1");
        }
        let power = |chance: f64| std::iter::repeat_n(chance, records).product::<f64>();
        let least = power(probability).min(if probability < 1.0 { power(1.0 - probability) } else { 1.0 });
        if least < LEAST_CHANCE {
            return domain("sampling_probability", probability, "so large that all records may join: not below 1e-280");
        }
        Ok(Self { records, probability })
    }

    /// Returns C(free, j) p^j (1 − p)^(free − j) for each j.
    fn chances(&self, free: usize) -> Vec<f64> {
        let (p, rest) = (self.probability, 1.0 - self.probability);
        let mut ways = 1.0;
        let chance = |joined: usize| {
            let found = ways
                * std::iter::repeat_n(p, joined).product::<f64>()
                * std::iter::repeat_n(rest, free - joined).product::<f64>();
            ways *= real(free - joined) / real(joined + 1);
            found
        };
        (0..=free).map(chance).collect()
    }

    /// Returns a bound on their relative error: of the coefficient, a product and a quotient for each record; of 1 − p
    /// and of the powers, two for each; and of the products. None is below [`LEAST_CHANCE`].
    fn error(&self) -> f64 {
        (5.0 * real(self.records) + 8.0) * UNIT_ROUNDOFF
    }
}

/// Returns the states that are reached from the first ones, with the moves of each.
///
/// # Errors
/// [`Error::Domain`] for more than [`MOST_MOVES`] moves.
fn explored<S: Clone + Eq + std::hash::Hash>(
    first: Vec<S>,
    next: impl Fn(&S) -> Vec<(usize, S)>,
) -> Result<(Vec<S>, Vec<Vec<Move>>)> {
    let mut states = first;
    let mut places: HashMap<S, usize> = states.iter().cloned().zip(0..).collect();
    let (mut moves, mut total) = (Vec::new(), 0);
    while moves.len() < states.len() {
        let after = next(&states[moves.len()]);
        total += after.len();
        if total > MOST_MOVES {
            return domain("moves", real(total), "at most 65536: fewer bands, or a smaller group");
        }
        let mut own = Vec::with_capacity(after.len());
        for (count, state) in after {
            let to = *places.entry(state.clone()).or_insert_with(|| {
                states.push(state);
                states.len() - 1
            });
            own.push(Move { count, to });
        }
        moves.push(own);
    }
    Ok((states, moves))
}

/// Returns a window of the last steps one step later.
fn shifted(window: &[usize], joined: usize) -> Vec<usize> {
    let mut next = window.to_vec();
    next.rotate_right(1.min(window.len()));
    if let Some(newest) = next.first_mut() {
        *newest = joined;
    }
    next
}

/// Returns the participations of a window: (how many steps ago, how many records).
fn lags(window: &[usize]) -> Vec<(usize, usize)> {
    (1..).zip(window.iter().copied()).filter(|&(_, count)| count > 0).collect()
}

/// Returns the multisets of this many numbers from 1 to `largest`, each in order.
fn multisets(largest: usize, size: usize) -> impl Iterator<Item = Vec<usize>> {
    std::iter::successors(Some(vec![1; size]), move |before| {
        let mut after = before.clone();
        let place = after.iter().rposition(|&one| one < largest)?;
        let next = after[place] + 1;
        after[place..].fill(next);
        Some(after)
    })
}
