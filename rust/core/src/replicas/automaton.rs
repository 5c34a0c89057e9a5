//! Finite automata that emit a record's participations, one step after another.
//!
//! A record, or a user with several records, is in one of finitely many states. In step i it takes one of the moves of
//! its state, with a probability that may depend on i: the move determines how many records take part, and the next
//! state. This describes b-min-sep sampling of users, random allocation and Poisson sampling. The inner product of the
//! columns of two steps is zero from some distance B on, the number of bands; a state must determine who took part in
//! the B − 1 steps before it.
//!
//! | sampler | state | number of states |
//! | --- | --- | --- |
//! | users, b-min-sep | steps since they took part; how many records did, while columns reach | (B−1)k + b − B + 1 |
//! | random allocation, k of t | how often the record took part | k + 1 |

use crate::error::{domain, Result};
use crate::participation::renewal::Renewal;
use crate::replicas::overlaps::Overlaps;
use crate::special::{real, UNIT_ROUNDOFF};

/// A possible event of a step: how many records take part, and the next state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Move {
    pub count: usize,
    pub to: usize,
}

/// The probabilities of the moves of a state.
#[derive(Debug, Clone)]
enum Chances {
    /// The probabilities for each state, the same in all steps.
    Alike(Vec<Vec<f64>>),
    /// A state that has L participations left takes part in step i of n with probability L/(n − i + 1).
    Left(Vec<usize>),
}

/// An automaton, and the inner products of the columns of its steps.
#[derive(Debug, Clone)]
pub(super) struct Automaton {
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

    /// Creates the automaton of random allocation of `taken` steps out of all, without a matrix: columns have this
    /// squared norm, in units of σ.
    ///
    /// # Errors
    /// [`Error::Domain`] for no step that is taken, or more than there are, and as [`Overlaps::toeplitz`].
    pub(super) fn of_allocation(steps: usize, taken: usize, square: f64) -> Result<Self> {
        if taken == 0 || taken > steps {
            let allowed = "at least 1, and no more than there are steps";
            return domain("participations", real(taken), allowed);
        }
        let overlaps = Overlaps::toeplitz(&[square.sqrt().next_up()])?;
        let moves = |left: usize, kind: usize| {
            let silent = Move { count: 0, to: kind };
            if left == 0 {
                vec![silent]
            } else {
                vec![silent, Move { count: 1, to: kind + 1 }]
            }
        };
        let left: Vec<usize> = (0..=taken).rev().collect();
        Ok(Self {
            steps,
            moves: left.iter().enumerate().map(|(kind, &left)| moves(left, kind)).collect(),
            recent: vec![Vec::new(); taken + 1],
            start: (0..=taken).map(|kind| if kind == 0 { 1.0 } else { 0.0 }).collect(),
            chances: Chances::Left(left),
            chance_error: 4.0 * UNIT_ROUNDOFF,
            overlaps,
        })
    }

    /// Returns the probability of a move of a state in step i, from 1 on; its relative error is at most
    /// [`Self::chance_error`].
    pub(super) fn chance(&self, i: usize, state: usize, number: usize) -> f64 {
        match &self.chances {
            Chances::Alike(all) => all[state][number],
            Chances::Left(left) => {
                let (left, steps) = (left[state], self.steps - i + 1);
                let share = |part: usize| real(part) / real(steps);
                match number {
                    _ if left == 0 => 1.0,
                    0 => share(steps.saturating_sub(left)),
                    // A state with more participations left than steps cannot be reached.
                    _ => share(left.min(steps)),
                }
            }
        }
    }

    /// Returns whether all steps have the same probabilities.
    pub(super) fn alike(&self) -> bool {
        matches!(self.chances, Chances::Alike(_))
    }

    /// Returns the number of rows of the column of step i that are inside the run.
    pub(super) fn rows(&self, i: usize) -> usize {
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
    pub(super) fn most(&self) -> usize {
        self.moves.iter().flatten().map(|one| one.count).max().unwrap_or(0)
    }
}
