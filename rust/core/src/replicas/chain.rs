//! The chain over the ages of m replicas, and the bound on Z_m that it gives.
//!
//! **The sum.** `f^m = Σ_{x¹…x^m} Π_r w_{x^r} e^{⟨Cx^r,y⟩ − ‖Cx^r‖²/2}`, and `E_R e^{⟨Σ_r Cx^r, y⟩} = e^{‖Σ_r Cx^r‖²/2}`, so
//!
//! `Z_m = Σ_{x¹…x^m} Π_r w_{x^r} · e^{Σ_{r<s} ⟨Cx^r, Cx^s⟩}`.
//!
//! For b-min-sep sampling a replica's future depends on its *age* alone: the number a < b of rounds since it took part, or *free*.
//! Replicas are exchangeable, so the state is the multiset of m ages, one of C(b + m − 1, m). If j of the F free replicas join round
//! i, the pairs that this makes add j(j−1)/2·r_i(0) among themselves and j·h with the busy ones, h = Σ_{busy ages a} r_i(a)
//! (r_i(k) of [`super::overlaps`]; columns that would begin before the run count as 0). Hence with β_{n+1} = 1
//!
//! `β_i(s) = Σ_{j ≤ F} C(F, j) p^j (1−p)^{F−j} · e^{j(j−1)r_i(0)/2 + jh} · β_{i+1}(s′)`, `Z_m = Σ_s start(s) β_1(s)`,
//!
//! where s′ has j replicas of age 1, all busy ones a round older, and the other F − j free; start(s) is the multinomial law of m
//! stationary ages, or the free state alone. This is exact if a record's own columns do not overlap (C ≥ 0, bands ≤ b: then
//! ‖Cx‖² = Σ‖c_i‖², which the law's f assumes).
//!
//! **One step for many rounds.** Between the first and the last rounds the step T is the same for every round. It is linear and
//! keeps order, so `Tv ≤ λ̄v` for a positive v implies T^k v ≤ λ̄^k v. Here v is β itself, once the largest and the
//! smallest ratio of Tv to v are so close that k rounds cost no more than [`GAP`] in ln Z_m, or after [`most_rounds`]; any v gives a
//! valid λ̄.
//!
//! **Rounding.** All terms are positive and all operations keep order, so everything is rounded up: inner products, exponentials and
//! weights when they are made, and every step's sum by more than its operations can have lost. Values below [`LEAST`] of the
//! largest one are raised to it, which never makes the bound smaller.

use rayon::prelude::*;

use crate::error::{Error, Result};
use crate::participation::renewal::Renewal;
use crate::replicas::multisets::{number_of, Multisets};
use crate::replicas::overlaps::Overlaps;
use crate::run::Run;
use crate::special::UNIT_ROUNDOFF;

/// States that one task of the pool computes.
pub(super) const CHUNK: usize = 1 << 13;
/// Rounds from one look at the ratios to the next.
pub(super) const LOOK: usize = 8;
/// How much of ln Z_m may be given up for not computing every round; after [`most_rounds`] it may be more.
pub const GAP: f64 = 1e-3;
/// Values are kept at least so large, where the largest is between 1 and 2.
pub const LEAST: f64 = 1e-250;

/// A round may change the largest value by so many powers of two: products of what is kept and this scale are normal numbers, and what
/// they lose to underflow is far below [`LEAST`]. Beyond, no bound is given.
pub(super) const MOST_CHANGE: i32 = 180;

/// An upper bound on ln Z_m.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LogMoment {
    /// ln Z_m is at most this; infinite where the chain leaves the range of doubles.
    pub upper: f64,
    /// How many rounds were computed; the others are bounded by λ̄.
    pub rounds: usize,
}

/// The number of states of the chain of `order` replicas; none if they cannot be numbered.
#[must_use]
pub fn states(law: &Renewal, order: usize) -> Option<usize> {
    number_of(law.min_separation, order)
}

/// The rounds after which λ̄ is taken as it is: the ratios settle within a few times the separation, if they do.
#[must_use]
pub fn most_rounds(law: &Renewal) -> usize {
    law.iterations().min(8 * law.min_separation + 256)
}

/// An upper bound on ln E_R f^m for b-min-sep sampling of single records, m = `order`, with the banded Toeplitz matrix of these
/// coefficients in units of σ.
///
/// * Memory: 16 bytes for each of [`states`]. Time: at most m²/4 operations for each of them and for each of [`most_rounds`], and of
///   the last and the first rounds, one operation where nearly all replicas are busy.
/// * Guarantee: an upper bound; see the head of this module.
/// * The answer does not depend on the number of threads.
///
/// # Errors
/// [`Error::Domain`] for an order below 2, more bands than the separation, negative coefficients, users with several records or random
/// phases; as [`Run::check`]; [`Error::Machine`] where the tables do not fit in memory.
pub fn log_moment(law: &Renewal, coefficients: &[f64], order: usize, run: &Run) -> Result<LogMoment> {
    let chain = Chain::new(law, coefficients, order)?;
    chain.log_moment(law, run)
}

/// The states, and how they follow one another.
#[derive(Debug)]
pub(super) struct Chain {
    pub multisets: Multisets,
    pub overlaps: Overlaps,
    /// b − 1: the kind that stands for a free replica; kind a − 1 is age a.
    pub free: usize,
    pub order: usize,
    /// What positions i + 1, …, m add to a state's number if they are free, for i = 0, …, m.
    pub free_after: Vec<usize>,
}

/// What a round's step multiplies by.
#[derive(Debug)]
pub(super) struct Factors {
    /// e^{r(a)} for kinds a − 1 = 0, …, b − 2.
    pub by_kind: Vec<f64>,
    /// C(F, j) p^j (1−p)^{F−j} e^{j(j−1)r(0)/2} at F·(m + 1) + j.
    joining: Vec<f64>,
    /// The largest size of the logarithms that some of these are made of: 0 where none is, infinite where a term is below all doubles
    /// and was raised.
    pub logarithms: f64,
}

/// What a step takes: β_{i+1}, the round's factors, what all is scaled by, and what ratios are wanted to, if any are.
pub(super) struct Step<'a> {
    pub next: &'a [f64],
    pub factors: &'a Factors,
    pub scale: f64,
    pub against: Option<&'a [f64]>,
}

/// One step's result beside the values themselves: the largest of them, and the largest and smallest ratio to those asked for.
#[derive(Clone, Copy)]
pub(super) struct Extremes {
    pub largest: f64,
    pub most: f64,
    pub least: f64,
}

impl Extremes {
    const NONE: Self = Self { largest: 0.0, most: 0.0, least: f64::INFINITY };

    fn with(self, other: Self) -> Self {
        Self {
            largest: self.largest.max(other.largest),
            most: self.most.max(other.most),
            least: self.least.min(other.least),
        }
    }
}

impl Factors {
    /// Those of j of so many free replicas that join, j = 0, 1, …
    pub(super) fn joining(&self, order: usize, free: usize) -> &[f64] {
        &self.joining[free * (order + 1)..][..=free]
    }
}

impl Chain {
    pub(super) fn new(law: &Renewal, coefficients: &[f64], order: usize) -> Result<Self> {
        #[allow(clippy::cast_precision_loss)] // reported only
        let domain = |name, value: usize, allowed| Err(Error::Domain { name, value: value as f64, allowed });
        let b = law.min_separation;
        if order < 2 {
            return domain("order", order, "at least 2");
        }
        if coefficients.len() > b {
            return domain(
                "bands",
                coefficients.len(),
                "at most the separation: a record's own columns must not overlap",
            );
        }
        if law.records() != 1 || law.phased {
            return domain("records", law.records() as usize, "single records, without random phases");
        }
        let multisets = Multisets::new(b, order)?;
        let mut free_after = vec![0; order + 1];
        for i in (0..order).rev() {
            free_after[i] = free_after[i + 1] + multisets.term(b - 1, i + 1);
        }
        Ok(Self { multisets, overlaps: Overlaps::toeplitz(coefficients)?, free: b - 1, order, free_after })
    }

    /// The factors of a round in which a column has so many rows, and columns begin in at most `earlier` rounds before it.
    pub(super) fn factors(&self, probability: f64, rows: usize, earlier: usize) -> Factors {
        let bands = self.overlaps.bands();
        let exponential = |x: f64| libm::exp(x) * (1.0 + 4.0 * UNIT_ROUNDOFF);
        let by_kind = (1..=self.free)
            .map(|age| if age < bands && age <= earlier { exponential(self.overlaps.product(rows, age)) } else { 1.0 })
            .collect();
        let width = self.order + 1;
        let (mut joining, mut logarithms) = (vec![0.0; width * width], 0.0_f64);
        // 1 − p is rounded by u of its size at most; p itself is given.
        let stay = (1.0 - probability) * (1.0 + 2.0 * UNIT_ROUNDOFF);
        let own = self.overlaps.product(rows, 0);
        for free in 0..=self.order {
            let mut ways = 1.0;
            for j in 0..=free {
                #[allow(clippy::cast_precision_loss)] // at most the order
                let (count, pairs) = (j as f64, (j * j.saturating_sub(1) / 2) as f64);
                // A power of a positive integer exponent by multiplication: at most `free` roundings each; the products, the exponent's
                // rounding (u of it) and the ways (2j roundings) come on top.
                #[allow(clippy::cast_possible_truncation, clippy::cast_possible_wrap)] // at most the order
                let powers = (0..j).map(|_| probability).chain((j..free).map(|_| stay)).product::<f64>();
                let exponent = pairs * own * (1.0 + 2.0 * UNIT_ROUNDOFF);
                #[allow(clippy::cast_precision_loss)] // at most the order
                let slack = 1.0 + 4.0 * (free as f64 + 2.0 * count + 6.0) * UNIT_ROUNDOFF;
                // Partial products only fall, so that none has lost digits where the last one has not. Where it may have, the term is made
                // of logarithms, which are off by a few u of their size.
                let possible = stay > 0.0 || j == free;
                let term = if powers > LEAST {
                    ways * powers * exponential(exponent) * slack
                } else {
                    #[allow(clippy::cast_precision_loss)] // at most the order
                    let absent = (free - j) as f64;
                    let logs =
                        [libm::log(ways), count * libm::log(probability), absent * libm::log1p(-probability), exponent];
                    let size: f64 = logs.iter().map(|log| log.abs()).sum();
                    let sum = logs.iter().sum::<f64>() + 16.0 * UNIT_ROUNDOFF * (1.0 + size);
                    if possible {
                        logarithms = if sum < -700.0 { f64::INFINITY } else { logarithms.max(1.0 + size) };
                    }
                    (exponential(sum) * slack).max(f64::MIN_POSITIVE)
                };
                joining[free * width + j] = if possible { term } else { 0.0 };
                #[allow(clippy::cast_precision_loss)] // at most the order
                let following = ways * (free - j) as f64 / (count + 1.0);
                ways = following;
            }
        }
        Factors { by_kind, joining, logarithms }
    }

    /// β_i of one state from β_{i+1}, rounded up but for the factor of [`Self::slack`].
    #[inline]
    fn value(&self, kinds: &[usize], factors: &Factors, next: &[f64]) -> f64 {
        let busy = kinds.partition_point(|&kind| kind < self.free);
        let free = self.order - busy;
        let busy = &kinds[..busy];
        let field: f64 = busy.iter().map(|&kind| factors.by_kind[kind]).product();
        let joining = factors.joining(self.order, free);
        let (mut total, mut power) = (0.0, 1.0);
        for (j, &weight) in joining.iter().enumerate() {
            if weight > 0.0 {
                total += weight * power * next[self.following(busy, j)];
            }
            power *= field;
        }
        total
    }

    /// The number of the state that follows if j of the free replicas join and these are busy.
    #[inline]
    pub(super) fn following(&self, busy: &[usize], j: usize) -> usize {
        let older: usize = busy.iter().zip(j + 1..).map(|(&kind, i)| self.multisets.term(kind + 1, i)).sum();
        older + self.free_after[j + busy.len()]
    }

    /// What a computed value is multiplied by to be no less than the exact one: the field has at most m factors, its powers as many
    /// times j, and j + 1 terms of three factors are added.
    pub(super) fn slack(&self) -> f64 {
        #[allow(clippy::cast_precision_loss)] // small
        let order = self.order as f64;
        1.0 + 4.0 * (order * order + 4.0 * order + 8.0) * UNIT_ROUNDOFF
    }

    /// One step of all states, scaled by `scale`, a power of two. Ratios are looked at if they are asked for.
    pub(super) fn step(&self, step: &Step, out: &mut [f64], run: &Run) -> Result<Extremes> {
        let factor = self.slack() * step.scale;
        out.par_chunks_mut(CHUNK)
            .enumerate()
            .map(|(chunk, values)| {
                run.check()?;
                let first = chunk * CHUNK;
                let mut kinds = vec![0; self.order];
                self.multisets.write(first, &mut kinds);
                let mut done = 0;
                while done < values.len() {
                    if kinds[self.order - 1] < self.free {
                        // Nobody can join. States that differ in their youngest replica alone follow one another, and so do those
                        // that they become.
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
                        let value = self.value(&kinds, step.factors, step.next) * factor;
                        // NaN comes from infinity alone, and `max` would pass it over.
                        values[done] = if value.is_finite() { value.max(LEAST) } else { f64::INFINITY };
                        done += 1;
                    }
                    self.multisets.advance(&mut kinds);
                }
                let largest = values.iter().copied().fold(0.0, f64::max);
                let mut extremes = Extremes { largest, ..Extremes::NONE };
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

    fn log_moment(&self, law: &Renewal, run: &Run) -> Result<LogMoment> {
        let (n, bands, p) = (law.iterations(), self.overlaps.bands(), law.sampling_probability);
        let count = self.multisets.count();
        let (mut values, mut next) = (table(count)?, table(count)?);
        next.fill(1.0);
        // Values stand for themselves times 2^exponent e^bulk.
        let (mut exponent, mut scale, mut bulk) = (0_i32, 1.0_f64, 0.0_f64);
        let (mut i, mut computed) = (n, 0);
        let inner = self.factors(p, bands, bands);
        while i >= 1 {
            let (rows, earlier) = ((n - i + 1).min(bands), i - 1);
            let same = rows == bands && earlier + 1 >= bands;
            let own = if same { None } else { Some(self.factors(p, rows, earlier)) };
            let ratios = same && computed % LOOK == 0;
            let against = ratios.then_some(&next[..]);
            let step = Step { next: &next, factors: own.as_ref().unwrap_or(&inner), scale, against };
            let extremes = self.step(&step, &mut values, run)?;
            let power = libm::ilogb(extremes.largest);
            if !extremes.largest.is_finite() || power.abs() > MOST_CHANGE {
                return Ok(LogMoment { upper: f64::INFINITY, rounds: computed });
            }
            std::mem::swap(&mut values, &mut next);
            computed += 1;
            exponent += power;
            scale = 2.0_f64.powi(-power);
            #[allow(clippy::cast_precision_loss)] // rounds
            let left = if ratios { (i - bands) as f64 } else { 0.0 };
            let growth = libm::log(extremes.most);
            let settled = left * (growth - libm::log(extremes.least)) <= GAP || computed >= most_rounds(law);
            if left > 0.0 && settled {
                // The ratio is rounded by 2u, the logarithm and the product by as much of their size.
                bulk = left * (growth + 4.0 * UNIT_ROUNDOFF * (1.0 + growth.abs())) * (1.0 + 4.0 * UNIT_ROUNDOFF);
                i = bands;
            }
            i -= 1;
        }
        let total = self.start(law, &next, run)?;
        let logs = [f64::from(exponent) * std::f64::consts::LN_2, libm::log(scale), bulk, libm::log(total)];
        let size: f64 = logs.iter().map(|x| x.abs()).sum();
        Ok(LogMoment { upper: logs.iter().sum::<f64>() + 16.0 * UNIT_ROUNDOFF * (1.0 + size), rounds: computed })
    }

    /// Σ_s start(s) v(s), rounded up.
    fn start(&self, law: &Renewal, values: &[f64], run: &Run) -> Result<f64> {
        if !law.warm {
            return Ok(values[values.len() - 1]);
        }
        let (busy, free) = self.stationary(law);
        let sums: Vec<f64> = values
            .par_chunks(CHUNK)
            .enumerate()
            .map(|(chunk, values)| {
                run.check()?;
                let mut kinds = vec![0; self.order];
                self.multisets.write(chunk * CHUNK, &mut kinds);
                let mut sum = 0.0;
                for &value in values {
                    sum += self.multinomial(&kinds, busy, free) * value;
                    self.multisets.advance(&mut kinds);
                }
                Ok(sum)
            })
            .collect::<Result<_>>()?;
        #[allow(clippy::cast_precision_loss)] // far below 2^53
        let operations = (CHUNK.min(values.len()) + sums.len() + 4 * self.order + 8) as f64;
        Ok(sums.iter().sum::<f64>() * (1.0 + 4.0 * operations * UNIT_ROUNDOFF))
    }

    /// The stationary probabilities of one busy age and of a free replica, rounded up.
    pub(super) fn stationary(&self, law: &Renewal) -> (f64, f64) {
        #[allow(clippy::cast_precision_loss)] // b is below 2^53
        let total = 1.0 + self.free as f64 * law.sampling_probability;
        // Three roundings of the total, one of the quotient.
        let up = 1.0 + 8.0 * UNIT_ROUNDOFF;
        (law.sampling_probability / total * up, 1.0 / total * up)
    }

    /// The probability of a multiset of independent kinds: m!/Π(counts!)·Π probabilities, one factor after another; each partial product
    /// that underflows is raised, so that the result is no smaller than without.
    pub(super) fn multinomial(&self, kinds: &[usize], busy: f64, free: f64) -> f64 {
        let (mut weight, mut alike, mut placed) = (1.0, 0.0, 0.0);
        let mut before = None;
        for &kind in kinds {
            alike = if before == Some(kind) { alike + 1.0 } else { 1.0 };
            placed += 1.0;
            weight =
                f64::max(weight * (placed / alike * if kind == self.free { free } else { busy }), f64::MIN_POSITIVE);
            before = Some(kind);
        }
        weight
    }
}

/// A table of zeros.
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

#[cfg(test)]
mod tests {
    use super::{log_moment, LogMoment};
    use crate::error::Error;
    use crate::participation::renewal::Renewal;
    use crate::replicas::enumeration::{mean, patterns};
    use crate::run::Run;

    fn law(b: usize, p: f64, warm: bool, n: usize) -> Renewal {
        Renewal::new(b, p, warm, vec![1.0; n]).expect("valid")
    }

    /// Z_m over all tuples of patterns.
    fn enumerated(coefficients: &[f64], b: usize, p: f64, warm: bool, n: usize, order: usize) -> f64 {
        let all: Vec<(Vec<f64>, f64)> =
            patterns(b, p, warm, n).into_iter().map(|(taken, q)| (mean(coefficients, &taken, n), q)).collect();
        let mut tuples: Vec<(Vec<f64>, f64)> = vec![(vec![0.0; n], 1.0)];
        for _ in 0..order {
            tuples = tuples
                .iter()
                .flat_map(|(sum, weight)| {
                    all.iter().map(move |(one, q)| {
                        let inner: f64 = sum.iter().zip(one).map(|(a, b)| a * b).sum();
                        (sum.iter().zip(one).map(|(a, b)| a + b).collect(), weight * q * inner.exp())
                    })
                })
                .collect();
        }
        compensated(tuples.iter().map(|(_, weight)| *weight))
    }

    /// A sum with its rounding errors carried along (Kahan).
    fn compensated(terms: impl Iterator<Item = f64>) -> f64 {
        let (mut sum, mut lost) = (0.0_f64, 0.0_f64);
        for term in terms {
            let next = sum + (term - lost);
            lost = (next - sum) - (term - lost);
            sum = next;
        }
        sum
    }

    fn close(found: LogMoment, exact: f64, gap: f64) {
        assert!(found.upper >= exact - 1e-14 * (1.0 + exact.abs()), "{found:?} is below {exact}");
        assert!(found.upper <= exact + gap, "{found:?} is far above {exact}");
    }

    #[test]
    fn moments_are_those_of_all_tuples() {
        let columns: [&[f64]; 4] = [&[0.7], &[0.5, 0.9], &[0.9, 0.0, 0.4], &[0.8, 0.3, 0.6, 0.1]];
        for (b, n, order) in [(1, 5, 3), (2, 6, 2), (2, 5, 4), (3, 7, 3), (3, 5, 4), (4, 8, 3), (4, 3, 5)] {
            for coefficients in columns.iter().filter(|c| c.len() <= b) {
                for (p, warm) in [(0.1, true), (0.6, true), (1.0, true), (0.3, false), (1.0, false)] {
                    let exact = enumerated(coefficients, b, p, warm, n, order).ln();
                    let found = log_moment(&law(b, p, warm, n), coefficients, order, &Run::default()).expect("valid");
                    close(found, exact, if found.rounds == n { 1e-12 } else { super::GAP });
                }
            }
        }
    }

    /// ln Z_2 by the pairs of ages as they are, none of them equal to another, over every round.
    #[allow(clippy::many_single_char_names)] // as in the formula
    fn of_pairs(coefficients: &[f64], b: usize, p: f64, n: usize) -> f64 {
        let (mut values, mut log) = (vec![1.0; b * b], 0.0);
        for i in (1..=n).rev() {
            let overlap = |age: usize| -> f64 {
                let rows = coefficients.len().min(n + 1 - i);
                (0..rows).filter_map(|l| coefficients.get(l + age).map(|c| c * coefficients[l])).sum()
            };
            let seen = |age: usize| if age < b && age < i { overlap(age).exp() } else { 1.0 };
            let older = |age: usize| (age + 1).min(b);
            let mut before = vec![0.0; b * b];
            for one in 1..=b {
                for other in 1..=b {
                    let after = |x: usize, y: usize| values[(x - 1) * b + y - 1];
                    let (x, y) = (older(one), older(other));
                    let stay = |age: usize| if age == b { 1.0 - p } else { 1.0 };
                    let mut sum = stay(one) * stay(other) * after(x, y);
                    if one == b {
                        sum += p * stay(other) * seen(other) * after(1, y);
                    }
                    if other == b {
                        sum += p * stay(one) * seen(one) * after(x, 1);
                    }
                    if one == b && other == b {
                        sum += p * p * overlap(0).exp() * after(1, 1);
                    }
                    before[(one - 1) * b + other - 1] = sum;
                }
            }
            let largest = before.iter().copied().fold(0.0, f64::max);
            log += largest.ln();
            values = before.iter().map(|value| value / largest).collect();
        }
        log + values[b * b - 1].ln()
    }

    #[test]
    fn rounds_that_are_not_computed_cost_no_more_than_the_gap() {
        for (b, p, coefficients) in [(4, 0.05, vec![0.6, 0.4, 0.3, 0.2]), (9, 0.2, vec![0.9, 0.5, 0.2])] {
            let n = 3000;
            let found = log_moment(&law(b, p, false, n), &coefficients, 2, &Run::default()).expect("valid");
            assert!(found.rounds < n / 2, "{found:?}");
            close(found, of_pairs(&coefficients, b, p, n), super::GAP + 1e-9);
        }
    }

    /// ln Z_m of a single round that everybody may join: a sum over how many do, in logarithms.
    fn of_one_round(p: f64, square: f64, order: u32) -> f64 {
        let mut ways = 0.0;
        let terms: Vec<f64> = (0..=order)
            .map(|j| {
                let count = f64::from(j);
                let joined = if j == 0 { 0.0 } else { count * p.ln() };
                let term = ways + joined + f64::from(order - j) * (-p).ln_1p() + 0.5 * count * (count - 1.0) * square;
                ways += (f64::from(order - j) / (count + 1.0)).ln();
                term
            })
            .collect();
        crate::special::log_sum_exp(terms.iter().copied())
    }

    #[test]
    fn probabilities_below_all_doubles_are_not_lost() {
        // p^m is below the least double, and e^{m(m−1)s/2} makes it count: s = 1/σ².
        for (p, sigma, orders) in
            [(1e-6, 1.39374, 2..=64), (1e-12, 0.6773, 2..=64), (1e-20, 1.0, 2..=64), (1e-3, 3.0, 2..=64)]
        {
            let coefficient = 1.0 / sigma;
            for order in orders {
                let run = Run::default();
                let exact = of_one_round(p, coefficient * coefficient, order);
                let found = log_moment(&law(1, p, false, 1), &[coefficient], order as usize, &run).expect("valid");
                assert!(found.upper >= exact - 1e-9 * (1.0 + exact.abs()), "{p} {order}: {found:?} is below {exact}");
                assert!(found.upper < exact + 1e-6 || exact > 100.0, "{p} {order}: {found:?} is far above {exact}");
                // From a warm start of many ages too, the more so.
                let warm = log_moment(&law(2, p, true, 1), &[coefficient], order as usize, &run).expect("valid");
                assert!(warm.upper > -1e-9 && (warm.upper <= found.upper + 1e-9 || found.upper > 100.0), "{warm:?}");
            }
        }
    }

    #[test]
    fn what_the_theorem_does_not_cover_is_refused() {
        let run = Run::default();
        let refused = |law: &Renewal, coefficients: &[f64], order| {
            matches!(log_moment(law, coefficients, order, &run), Err(Error::Domain { .. }))
        };
        // A record's own columns would overlap: Z_m may then lie below E f^m.
        assert!(refused(&law(1, 0.3, false, 2), &[1.0, 1.0], 3));
        assert!(refused(&law(2, 0.3, false, 2), &[1.0, -0.5], 3));
        assert!(refused(&law(2, 0.3, false, 2), &[1.0], 1));
        assert!(refused(&Renewal::of_users(2, 0.3, 2, false, vec![1.0; 4]).expect("valid"), &[1.0], 2));
        assert!(refused(&Renewal::with_phases(2, 0.3, vec![1.0; 4]).expect("valid"), &[1.0], 2));
    }

    #[test]
    #[allow(clippy::float_cmp)] // the same operations
    fn the_number_of_threads_changes_nothing() {
        let coefficients: Vec<f64> = (0..12).map(|k| 0.4 / f64::from(k + 1)).collect();
        let law = law(12, 0.02, true, 200);
        let of = |threads: usize| {
            let pool = crate::run::pool(threads).expect("threads");
            pool.install(|| log_moment(&law, &coefficients, 6, &Run::default())).expect("valid").upper
        };
        assert_eq!(of(1), of(3));
    }

    #[test]
    fn little_noise_gives_an_infinite_bound() {
        let found = log_moment(&law(2, 0.1, true, 50), &[100.0, 1.0], 5, &Run::default()).expect("valid");
        assert!(found.upper == f64::INFINITY || found.upper > 700.0, "{found:?}");
    }
}
