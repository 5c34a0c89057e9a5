//! The chain over the ages of m replicas: its states, one step of it, and one factor for many steps.
//!
//! **States.** A replica's future depends on its *age* alone, the number of steps since it took part, or it is *free*.
//! Replicas are exchangeable, so the state is the multiset of m ages. From some age on a replica may join again, like a
//! free one. With F of them that may join, and the factors of [`Factors`], a step takes β_{i+1} to
//!
//! `β_i(s) = Σ_{j ≤ F} joining(F, j) · Π_{ages a} e^{j·r(a)} · near(s, j) · β_{i+1}(s′)`,
//!
//! where s′ has j replicas of age 1 and all others a step older. The factors, and how β_1 gives a moment, are described
//! in [`super::rounds`] and [`super::blocks`].
//!
//! **One step for many.** Between the first and the last steps all steps are the same map T. It is linear and keeps
//! order, so `Tv ≤ λ̄v` for a positive v implies T^k v ≤ λ̄^k v. Here v is β itself, once the largest and the smallest
//! ratio of Tv to v are so close that k steps lose little, or after a number of steps; any v gives a valid λ̄.
//!
//! **Rounding.** All terms are positive and all operations keep order, so everything is rounded up: inner products,
//! exponentials and weights when they are computed, and every step's sum by more than its operations can have lost.
//! Values below [`LEAST`] of the largest one are raised to it, which never makes the bound smaller.

use std::sync::Arc;

use rayon::prelude::*;

use crate::error::{Error, Result};
use crate::replicas::multisets::Multisets;
use crate::run::Run;
use crate::special::{real, UNIT_ROUNDOFF};

/// The number of states that one task of the pool computes.
pub(super) const CHUNK: usize = 1 << 13;
/// The number of steps between two checks of the ratios.
pub(super) const LOOK: usize = 8;
/// The minimum of the values, where the largest is between 1 and 2.
pub const LEAST: f64 = 1e-250;

/// A step may change the largest value by at most this many powers of two: products of values and this scale are then
/// normal numbers, and what they lose to underflow is far below [`LEAST`]. Beyond, no bound is returned.
pub(super) const MOST_CHANGE: i32 = 180;

/// The states, and the transitions between them.
#[derive(Debug)]
pub(super) struct Chain {
    pub multisets: Multisets,
    /// The kind of a free replica; kind a − 1 is age a.
    pub free: usize,
    /// From this kind on a replica may join: equal to [`Self::free`] if no age may join, or the oldest age too.
    pub available: usize,
    /// m.
    pub order: usize,
    /// K, the maximum number of replicas that are busy at once: a state's multiset has this many elements, and the m −
    /// K further replicas are free.
    pub most_busy: usize,
    /// The amount that positions i + 1, …, K add to a state's number if they are free, for i = 0, …, K.
    pub free_after: Vec<usize>,
}

/// The factors of a step.
#[derive(Debug, Clone)]
pub(super) struct Factors {
    /// e^{r(a)} for kinds a − 1 = 0, …
    pub by_kind: Vec<f64>,
    /// The factor of j joining replicas out of F, at F·(m + 1) + j.
    pub joining: Vec<f64>,
    /// The factor that depends on how many joined in the last two steps and on how many join now; `None` if it is 1.
    pub near: Option<Arc<Near>>,
    /// The largest size of the logarithms that some of these factors are computed from: 0 if none is, infinite if a
    /// term underflowed and was raised.
    pub logarithms: f64,
}

/// Factors by the numbers of replicas of age 1, of age 2, and of those that join, each at most m.
#[derive(Debug)]
pub(super) struct Near {
    /// The values at (n_1·(m + 1) + n_2)·(m + 1) + j.
    pub values: Vec<f64>,
    pub order: usize,
}

impl Near {
    /// Returns the factors for j = 0, 1, …, for these numbers of replicas of age 1 and of age 2.
    #[inline]
    pub(super) fn joining(&self, (first, second): (usize, usize)) -> &[f64] {
        let width = self.order + 1;
        &self.values[(first * width + second) * width..][..width]
    }
}

/// The input of a step: β_{i+1}, the round's factors, the common scale, and the values that ratios are computed to, if
/// any.
pub(super) struct Step<'a> {
    pub next: &'a [f64],
    pub factors: &'a Factors,
    pub scale: f64,
    pub against: Option<&'a [f64]>,
    /// The value of states with more busy replicas than allowed; `None` if there is none.
    pub beyond: Option<Beyond<'a>>,
}

/// The term that a step adds where more replicas join than may be busy.
#[derive(Clone, Copy)]
pub(super) struct Beyond<'a> {
    /// The weights by the number of replicas that may not join, without the factor e^{jh} of j = one more than may, and
    /// without the value.
    pub weights: &'a [f64],
    pub value: f64,
}

/// The result of a step apart from the values themselves: the largest and smallest of them, and the largest and
/// smallest ratio to the values requested.
#[derive(Clone, Copy)]
pub(super) struct Extremes {
    pub largest: f64,
    pub smallest: f64,
    pub most: f64,
    pub least: f64,
}

impl Extremes {
    const NONE: Self = Self { largest: 0.0, smallest: f64::INFINITY, most: 0.0, least: f64::INFINITY };

    fn with(self, other: Self) -> Self {
        Self {
            largest: self.largest.max(other.largest),
            smallest: self.smallest.min(other.smallest),
            most: self.most.max(other.most),
            least: self.least.min(other.least),
        }
    }
}

impl Chain {
    /// Creates the chain of `order` replicas, each of `kinds` kinds, where those from `available` on may join.
    pub(super) fn new(kinds: usize, available: usize, order: usize) -> Result<Self> {
        Self::of_few(kinds, available, order, order)
    }

    /// Creates the same chain where no more than `most_busy` of the replicas, at least 2, are busy at once: a step in
    /// which more would be has no next state, see [`super::left_out`].
    pub(super) fn of_few(kinds: usize, available: usize, order: usize, most_busy: usize) -> Result<Self> {
        let multisets = Multisets::new(kinds, most_busy)?;
        let mut free_after = vec![0; most_busy + 1];
        for i in (0..most_busy).rev() {
            free_after[i] = free_after[i + 1] + multisets.term(kinds - 1, i + 1);
        }
        Ok(Self { multisets, free: kinds - 1, available, order, most_busy, free_after })
    }

    /// Returns the factors of j joining replicas, j = 0, 1, …, if `waiting` replicas may not join.
    #[inline]
    pub(super) fn joining<'a>(&self, factors: &'a Factors, waiting: usize) -> &'a [f64] {
        &factors.joining[(self.order - waiting) * (self.order + 1)..][..=self.most_busy - waiting]
    }

    /// Returns β_i of one state from β_{i+1}, rounded up except for the factor of [`Self::slack`].
    #[inline]
    fn value(&self, kinds: &[usize], Step { factors, next, beyond, .. }: &Step) -> f64 {
        let busy = kinds.partition_point(|&kind| kind < self.free);
        let field: f64 = kinds[..busy].iter().map(|&kind| factors.by_kind[kind]).product();
        let waiting = &kinds[..self.waiting(kinds, busy)];
        let joining = self.joining(factors, waiting.len());
        let (mut total, mut power) = (0.0, 1.0);
        match &factors.near {
            None => {
                for (j, &weight) in joining.iter().enumerate() {
                    if weight > 0.0 {
                        total += weight * power * next[self.following(waiting, j)];
                    }
                    power *= field;
                }
            }
            Some(near) => {
                for (j, (&weight, factor)) in joining.iter().zip(near.joining(youngest(kinds))).enumerate() {
                    if weight > 0.0 {
                        total += weight * factor * power * next[self.following(waiting, j)];
                    }
                    power *= field;
                }
            }
        }
        // The power is that of one replica more than may join.
        beyond.map_or(total, |Beyond { weights, value }| total + weights[waiting.len()] * power * value)
    }

    /// Returns how many of the busy replicas, the first ones, may not join.
    #[inline]
    pub(super) fn waiting(&self, kinds: &[usize], busy: usize) -> usize {
        // Few of them, if any, are of the oldest age.
        busy - kinds[..busy].iter().rev().take_while(|&&kind| kind >= self.available).count()
    }

    /// Returns the number of the next state if j replicas join and `waiting` may not.
    #[inline]
    pub(super) fn following(&self, waiting: &[usize], j: usize) -> usize {
        let older: usize = waiting.iter().zip(j + 1..).map(|(&kind, i)| self.multisets.term(kind + 1, i)).sum();
        older + self.free_after[j + waiting.len()]
    }

    /// Returns the number of a state with these busy replicas.
    #[inline]
    pub(super) fn number(&self, busy: &[usize]) -> usize {
        self.multisets.number(busy) + self.free_after[busy.len()]
    }

    /// Returns the index in [`Self::nobody`] of the states with this number of replicas that may not join and with this
    /// kind of the youngest.
    #[inline]
    pub(super) fn class(&self, waiting: usize, youngest: usize) -> usize {
        waiting * (self.free + 1) + youngest
    }

    /// Returns for each class of states a lower bound on A/T̃ over all its states: A is the contribution of the step if
    /// nobody joins, from the values `after` it, and T̃ is `growth` times the value `before` it, both as they are
    /// computed when a tuple is drawn.
    pub(super) fn nobody(
        &self,
        factors: &Factors,
        growth: f64,
        (before, after): (impl Fn(usize) -> f64 + Sync, impl Fn(usize) -> f64 + Sync),
        run: &Run,
    ) -> Result<Vec<f64>> {
        let all = vec![f64::INFINITY; self.class(self.order + 1, 0)];
        let count = self.multisets.count();
        let least = (0..count.div_ceil(CHUNK))
            .into_par_iter()
            .map(|chunk| {
                run.check()?;
                let mut kinds = vec![0; self.most_busy];
                let (mut done, end) = (chunk * CHUNK, count.min((chunk + 1) * CHUNK));
                self.multisets.write(done, &mut kinds);
                let mut least = all.clone();
                while done < end {
                    let waiting = kinds.partition_point(|&kind| kind < self.available);
                    let weight = self.joining(factors, waiting)[0];
                    let near = factors.near.as_ref().map(|near| near.joining(youngest(&kinds))[0]);
                    // States that differ in their youngest replica alone are computed together, as in a step.
                    let alike = if waiting == 0 || near.is_some() && kinds[0] == 0 {
                        1
                    } else {
                        (kinds[1].min(self.available - 1) - kinds[0] + 1).min(end - done)
                    };
                    let weight = near.map_or(weight, |near| weight * near);
                    let following = self.following(&kinds[..waiting], 0);
                    let class = self.class(waiting, kinds[0]);
                    for (k, least) in least[class..class + alike].iter_mut().enumerate() {
                        *least = least.min(weight * after(following + k) / (growth * before(done + k)));
                    }
                    kinds[0] += alike - 1;
                    done += alike;
                    self.multisets.advance(&mut kinds);
                }
                Ok(least)
            })
            .try_reduce(
                || all.clone(),
                |mut one, other| {
                    one.iter_mut().zip(other).for_each(|(least, other)| *least = least.min(other));
                    Ok(one)
                },
            )?;
        // Each quotient is rounded by u of it.
        Ok(least.into_iter().map(|least| least * (1.0 - 4.0 * UNIT_ROUNDOFF)).collect())
    }

    /// Returns the factor that makes a computed value at least the exact one: the field has at most m factors, its
    /// powers as many times j, and j + 1 terms of three or four factors are added: fewer than m² + 4m + 8 roundings,
    /// each counted four times.
    pub(super) fn slack(&self) -> f64 {
        let order = real(self.order);
        1.0 + 4.0 * (order * order + 4.0 * order + 8.0) * UNIT_ROUNDOFF
    }

    /// Computes one step of all states, scaled by `scale`, a power of two. Ratios are computed if they are requested.
    pub(super) fn step(&self, step: &Step, out: &mut [f64], run: &Run) -> Result<Extremes> {
        let factor = self.slack() * step.scale;
        // If all replicas are busy there is no factor.
        let simple = step.factors.near.is_none() && self.most_busy == self.order;
        out.par_chunks_mut(CHUNK)
            .enumerate()
            .map(|(chunk, values)| {
                run.check()?;
                let first = chunk * CHUNK;
                let mut kinds = vec![0; self.most_busy];
                self.multisets.write(first, &mut kinds);
                let mut done = 0;
                while done < values.len() {
                    if simple && kinds[self.most_busy - 1] < self.available {
                        // Nobody can join. States that differ in their youngest replica alone have consecutive numbers,
                        // and so have their next states.
                        let length = (kinds[1] - kinds[0] + 1).min(values.len() - done);
                        let rest: usize =
                            kinds.iter().zip(1..).skip(1).map(|(&kind, i)| self.multisets.term(kind + 1, i)).sum();
                        let after = &step.next[rest + kinds[0] + 1..][..length];
                        for (value, after) in values[done..done + length].iter_mut().zip(after) {
                            *value = (after * factor).max(LEAST);
                        }
                        kinds[0] += length - 1;
                        done += length;
                    } else {
                        let value = self.value(&kinds, step) * factor;
                        // NaN comes from infinity alone, and `max` would ignore it.
                        values[done] = if value.is_finite() { value.max(LEAST) } else { f64::INFINITY };
                        done += 1;
                    }
                    self.multisets.advance(&mut kinds);
                }
                let mut extremes = Extremes::NONE;
                for &value in &*values {
                    extremes.largest = extremes.largest.max(value);
                    extremes.smallest = extremes.smallest.min(value);
                }
                if let Some(against) = step.against {
                    for (value, before) in values.iter().zip(&against[first..]) {
                        let ratio = value / (before * step.scale);
                        extremes.most = extremes.most.max(ratio);
                        extremes.least = extremes.least.min(ratio);
                    }
                }
                Ok(extremes)
            })
            .try_reduce(|| Extremes::NONE, |one, other| Ok(one.with(other)))
    }

    /// Returns the probability of a state of m independent kinds: m!/Π(counts!)·Π probabilities, one factor after
    /// another; each partial product that underflows is raised, so that the result is no smaller than without
    /// underflow.
    pub(super) fn multinomial(&self, kinds: &[usize], busy: f64, free: f64) -> f64 {
        let (mut weight, mut alike, mut placed) = (1.0, 0.0, 0.0);
        let mut before = None;
        let further = std::iter::repeat_n(&self.free, self.order - self.most_busy);
        for &kind in kinds.iter().chain(further) {
            alike = if before == Some(kind) { alike + 1.0 } else { 1.0 };
            placed += 1.0;
            weight =
                f64::max(weight * (placed / alike * if kind == self.free { free } else { busy }), f64::MIN_POSITIVE);
            before = Some(kind);
        }
        weight
    }
}

/// Returns how many replicas are of age 1, and of age 2, among these kinds in ascending order.
#[inline]
pub(super) fn youngest(kinds: &[usize]) -> (usize, usize) {
    // There are mostly one or two, so a binary search over all would take longer.
    let first = kinds.iter().take_while(|&&kind| kind == 0).count();
    (first, kinds[first..].iter().take_while(|&&kind| kind == 1).count())
}

/// Returns a table of zeros.
pub(super) fn table(count: usize) -> Result<Vec<f64>> {
    let mut table = Vec::new();
    let refused = |cause: std::collections::TryReserveError| Error::Machine {
        what: "memory for the chain's table",
        cause: cause.to_string(),
    };
    table.try_reserve_exact(count).map_err(refused)?;
    table.resize(count, 0.0);
    Ok(table)
}
