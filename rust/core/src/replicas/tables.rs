//! The functions v_i of the states that tuples are drawn with, and bounds on the growth in each step.
//!
//! [`super::tuples`] explains their use: any positive v_1, …, v_n are valid, v_{n+1} = 1, and any T̃_i ≥ T_i v_{i+1}.
//! Here v_i is a table, T_i v_{i+1} rounded up, in the last rounds, and in the first ones of a warm start if these
//! tables fit; in all rounds between it is one table v, and T̃ = λ̄v.

use std::sync::OnceLock;

use rayon::prelude::*;

use crate::error::{Error, Result};
use crate::replicas::chain::{table, Extremes, Factors, Step, CHUNK, LOOK, MOST_CHANGE};
use crate::replicas::steps::Steps;
use crate::run::Run;
use crate::special::{real, UNIT_ROUNDOFF};

/// How much of ln sup ρ may be given up by using one table for all rounds between.
pub(super) const GAP: f64 = 1e-2;
/// The largest value of a table is between this power of two and the next one.
const TOP: i32 = 120;
/// The least value of a table: the least normal single-precision number.
#[allow(clippy::cast_lossless)] // `From` is not const
const LEAST: f64 = f32::MIN_POSITIVE as f64;
/// The tables of all rounds.
#[derive(Debug)]
pub(super) struct Tables {
    pub steps: Steps,
    /// v_1, v_2, … of the first rounds; v_n, v_{n−1}, … of the last ones; v of all between, unless the last of these
    /// tables is used for them.
    starts: Vec<Table>,
    ends: Vec<Table>,
    between: Option<Vec<f32>>,
    /// λ̄ of the rounds between.
    growth: f64,
    /// [`super::chain::Chain::nobody`] of each step: computed when tuples are drawn, since bounds do not need it.
    nobody: OnceLock<Nobody>,
    /// The largest (T_i v_{i+1})(s)/v(s) of the round between the tables of the last rounds and v; 1 if there is none.
    pub most_bridged: f64,
}

/// v_i, and T̃_i/v_i.
#[derive(Debug)]
struct Table {
    values: Vec<f32>,
    growth: f64,
}

/// [`super::chain::Chain::nobody`] of the first rounds, of the last ones from the last one back, and of all between.
#[derive(Debug)]
struct Nobody {
    starts: Vec<Vec<f64>>,
    ends: Vec<Vec<f64>>,
    between: Vec<f64>,
}

/// Step i, for all tuples that take it.
#[derive(Debug, Clone, Copy)]
pub(super) struct At<'a> {
    pub factors: &'a Factors,
    /// The tables of v_i and v_{i+1}; `None` if all values are equal.
    pub before: Option<&'a [f32]>,
    pub after: Option<&'a [f32]>,
    /// T̃_i/v_i.
    pub growth: f64,
    /// For each class of states a number such that nobody joins if the uniform number is at most this, for every state
    /// of the class: see [`super::chain::Chain::nobody`]. Empty if not prepared.
    pub nobody: &'a [f64],
    /// Whether it is the step between the tables of the last rounds and another one.
    pub bridge: bool,
}

impl At<'_> {
    /// Returns v_{i+1} of a state.
    #[inline]
    pub(super) fn value(&self, number: usize) -> f64 {
        entry(self.after, number)
    }

    /// Returns v_i of a state.
    #[inline]
    pub(super) fn value_before(&self, number: usize) -> f64 {
        entry(self.before, number)
    }
}

/// Returns the value of a state, from a table or without one.
#[inline]
fn entry(table: Option<&[f32]>, number: usize) -> f64 {
    table.map_or(2.0_f64.powi(TOP), |table| f64::from(table[number]))
}

/// v_{i+1}, from which v_i is computed.
struct Backwards<'a> {
    next: Vec<f64>,
    values: Vec<f64>,
    run: &'a Run,
}

/// The values that T_i v_{i+1} is compared with.
enum Against<'a> {
    Nothing,
    Next,
    Other(&'a [f64]),
}

impl Backwards<'_> {
    /// Computes T_i v_{i+1}, rounded up.
    fn step(&mut self, steps: &Steps, i: usize, against: &Against) -> Result<Extremes> {
        let against = match against {
            Against::Nothing => None,
            Against::Next => Some(&self.next[..]),
            Against::Other(other) => Some(*other),
        };
        let step = Step { next: &self.next, factors: steps.factors(i), scale: 1.0, against, beyond: None };
        steps.chain.step(&step, &mut self.values, self.run)
    }

    /// Uses the result of [`Self::step`], rounded up to single precision, as v_i; returns T̃_i/v_i.
    fn accept(&mut self, largest: f64) -> Result<f64> {
        if !largest.is_finite() || (libm::ilogb(largest) - TOP).abs() > MOST_CHANGE {
            return Err(Error::Numerics { reason: "a chain of replicas leaves the range of numbers" });
        }
        let power = libm::ilogb(largest) - TOP;
        let scale = 2.0_f64.powi(-power);
        self.values.par_chunks_mut(CHUNK).for_each(|values| {
            for value in values {
                *value = f64::from(upwards(*value * scale));
            }
        });
        std::mem::swap(&mut self.values, &mut self.next);
        Ok(2.0_f64.powi(power))
    }

    /// Returns v_i, which consists of single-precision numbers since [`Self::accept`].
    fn kept(&self) -> Result<Vec<f32>> {
        let mut kept = Vec::new();
        kept.try_reserve_exact(self.next.len()).map_err(|cause| no_memory(cause.to_string()))?;
        #[allow(clippy::cast_possible_truncation)] // nothing is lost
        kept.extend(self.next.iter().map(|value| *value as f32));
        Ok(kept)
    }
}

/// Returns the least single-precision number that is no smaller and at least [`LEAST`].
#[allow(clippy::cast_possible_truncation)] // what it is for
fn upwards(value: f64) -> f32 {
    let near = value.max(LEAST) as f32;
    if f64::from(near) < value {
        near.next_up()
    } else {
        near
    }
}

fn no_memory(cause: String) -> Error {
    Error::Machine { what: "memory for the chain's tables", cause }
}

impl Tables {
    /// Computes the tables with at most `room` numbers, and returns v_1 too; see [`super::tuples::Tuples::new`].
    pub(super) fn new(mut steps: Steps, room: usize, run: &Run) -> Result<(Self, Vec<f64>)> {
        if steps.start.is_none() {
            // If all replicas are free at first, no tuple has columns from before the run: the first steps are like all
            // others.
            steps.first.clear();
        }
        let count = steps.chain.multisets.count();
        let mut back = Backwards { next: table(count)?, values: table(count)?, run };
        back.next.fill(2.0_f64.powi(TOP));
        let (starts, ends) = (Vec::new(), Vec::new());
        let mut tables =
            Self { steps, starts, ends, between: None, growth: 1.0, nobody: OnceLock::new(), most_bridged: 1.0 };
        let (fits, most) = (room / count, tables.steps.most);
        let between = tables.last_rounds(&mut back, fits, most)?;
        if let Some(i) = tables.bridge() {
            tables.most_bridged = tables.cross(&mut back, i)?;
        }
        if between > 0 {
            let left = fits.saturating_sub(tables.ends.len() + usize::from(tables.between.is_some()));
            tables.first_rounds(&mut back, left)?;
        }
        Ok((tables, back.next))
    }

    /// Returns ln Π T̃_i/v_i over all rounds except the one between the tables, minus ln of the number that represents
    /// v_{n+1} = 1, as two terms.
    pub(super) fn log_growth(&self) -> [f64; 2] {
        let own: f64 = self.ends.iter().chain(&self.starts).map(|table| table.growth.log2()).sum();
        let rest = self.steps.count - self.ends.len() - self.starts.len() - usize::from(self.bridge().is_some());
        let rest = real(rest) * libm::log(self.growth);
        [(own - f64::from(TOP)) * std::f64::consts::LN_2, rest]
    }

    /// Returns the table of v_i; `None` if all values are equal.
    fn table(&self, i: usize) -> Option<&[f32]> {
        let last = || self.ends.last().map(|table| &table.values[..]);
        match self.steps.count.checked_sub(i) {
            None => None,
            Some(back) if back < self.ends.len() => Some(&self.ends[back].values),
            Some(_) => match self.starts.get(i - 1) {
                Some(table) => Some(&table.values),
                None => self.between.as_deref().or_else(last),
            },
        }
    }

    /// Returns v_i of a state.
    #[inline]
    pub(super) fn value(&self, i: usize, number: usize) -> f64 {
        entry(self.table(i), number)
    }

    /// Returns the data that tuples need in step i.
    pub(super) fn at(&self, i: usize) -> At<'_> {
        let (factors, bridge) = (self.steps.factors(i), self.bridge() == Some(i));
        let growth = self.own(i).map_or(self.growth, |table| table.growth);
        // Some of the last rounds may have their own factors and no table.
        let inner = !bridge && std::ptr::eq(factors, &raw const self.steps.inner);
        let nobody = self.nobody.get().and_then(|all| {
            let own = all.ends.get(self.steps.count - i).or_else(|| all.starts.get(i - 1));
            own.or_else(|| inner.then_some(&all.between))
        });
        let nobody = nobody.map_or(&[][..], |least| least);
        At { factors, before: self.table(i), after: self.table(i + 1), growth, nobody, bridge }
    }

    /// Returns the table that belongs to round i alone.
    fn own(&self, i: usize) -> Option<&Table> {
        self.ends.get(self.steps.count - i).or_else(|| self.starts.get(i - 1))
    }

    /// Prepares for drawing tuples fast, by computing when, in most steps, nobody joins.
    pub(super) fn prepare(&self, run: &Run) -> Result<()> {
        if self.nobody.get().is_some() {
            return Ok(());
        }
        let least = |i: usize| {
            let at = self.at(i);
            let (before, after) = (|number| at.value_before(number), |number| at.value(number));
            self.steps.chain.nobody(at.factors, at.growth, (before, after), run)
        };
        let count = self.steps.count;
        let from = count - self.ends.len();
        let inner = (self.starts.len() + 1..=from)
            .find(|&i| self.bridge() != Some(i) && std::ptr::eq(self.steps.factors(i), &raw const self.steps.inner));
        let nobody = Nobody {
            starts: (1..=self.starts.len()).map(least).collect::<Result<_>>()?,
            ends: (from + 1..=count).rev().map(least).collect::<Result<_>>()?,
            between: inner.map_or(Ok(Vec::new()), least)?,
        };
        // If another thread was faster, it computed the same.
        let _ = self.nobody.set(nobody);
        Ok(())
    }

    /// Returns the round between the tables of the last rounds and another one.
    pub(super) fn bridge(&self) -> Option<usize> {
        self.between.as_ref().map(|_| self.steps.count - self.ends.len())
    }

    /// Computes the tables of the last rounds, until one can be used for all before them; returns the last round that
    /// it is used for, or 0; `back` has v then.
    fn last_rounds(&mut self, back: &mut Backwards, fits: usize, most: usize) -> Result<usize> {
        let (n, steps) = (self.steps.count, &self.steps);
        for i in (1..=n).rev() {
            let passed = n - i;
            // If not all rounds can have their own tables, one table must be used for several of them.
            let last_chance = n > fits && steps.same(i) && !steps.same(i - 1);
            let enough = last_chance || passed >= most;
            let looked = steps.same(i) && (enough || passed % LOOK == 0);
            let extremes = back.step(steps, i, if looked { &Against::Next } else { &Against::Nothing })?;
            let near = looked && (real(i)) * libm::log(extremes.most / extremes.least) <= GAP;
            if looked && extremes.most.is_finite() && (enough || near) {
                self.growth = extremes.most * (1.0 + 4.0 * UNIT_ROUNDOFF);
                if self.ends.len() < passed {
                    self.ends.truncate(fits.saturating_sub(1));
                    self.between = Some(back.kept()?);
                }
                return Ok(i);
            }
            let growth = back.accept(extremes.largest)?;
            if self.ends.len() == passed && passed < fits {
                self.ends.push(Table { values: back.kept()?, growth });
            }
        }
        if self.ends.len() < n {
            return Err(Error::Numerics {
                reason: "the tables of a short run's chain of replicas do not fit in memory",
            });
        }
        Ok(0)
    }

    /// Returns the largest (T_i v_{i+1})(s)/v(s) of the round between the tables; v is in `back`, before and after.
    fn cross(&self, back: &mut Backwards, i: usize) -> Result<f64> {
        let mut after = table(back.next.len())?;
        match self.ends.last() {
            Some(table) => after.iter_mut().zip(&table.values).for_each(|(to, from)| *to = f64::from(*from)),
            None => after.fill(2.0_f64.powi(TOP)),
        }
        let between = std::mem::replace(&mut back.next, after);
        let extremes = back.step(&self.steps, i, &Against::Other(&between))?;
        back.next = between;
        Ok(extremes.most * (1.0 + 4.0 * UNIT_ROUNDOFF))
    }

    /// Computes the tables of the first rounds of a warm start, if so many fit; v is in `back`, and v_1 after that.
    fn first_rounds(&mut self, back: &mut Backwards, fits: usize) -> Result<()> {
        let few = self.steps.first.len();
        self.steps.extended = few > fits;
        if self.steps.extended {
            return Ok(());
        }
        for i in (1..=few).rev() {
            let extremes = back.step(&self.steps, i, &Against::Nothing)?;
            let growth = back.accept(extremes.largest)?;
            self.starts.push(Table { values: back.kept()?, growth });
        }
        self.starts.reverse();
        Ok(())
    }
}
