//! The rounds in which one record changes a run the most: max ‖Σ_{i ∈ S} c_i‖² over sets S of at most k rounds, at
//! least b apart.
//!
//! Write G = CᵀC ≥ 0, so that ‖Σ_{i ∈ S} c_i‖² = Σ_{i, j ∈ S} `G_ij`. There are three upper bounds, of which the
//! smallest is used:
//!
//! * Σ_{i ∈ S} (`G_ii` + Γ_i), Γ_i the largest sum of `G_ij` over at most k − 1 other rounds, at least b from i and
//!   from one another: the entries of row i that belong to S have one of these sums. The best S for such weights is
//!   found by a recursion over its last round. The bound is at most k times the largest weight.
//! * k max `G_ii` + 2 Σ_{m < k} (k − m) E(m b), E(d) the largest `G_ij` with |i − j| ≥ d: of the pairs of S, k − m are
//!   m positions apart in S, and so at least m b rounds.
//! * The maximum itself, if a search by branch and bound ends within the work allowed.
//!
//! The lower bound is the best set that a greedy choice with exchanges, or the search, found. All sums that bounds are
//! read off are of non-negative terms, at most 2n + 4k of them one after the other, so that the relative error of each
//! is at most that many units of rounding; when the search has ended, the maximum may exceed the reported set by the
//! fraction `NEAR`.

use crate::special::real;
use rayon::prelude::*;

use crate::error::Result;
use crate::run::Run;

/// The number of entries of G that the first bound may read with a limit on the number of other rounds; without a limit
/// it reads n² entries.
const BOUND_WORK: usize = 1 << 32;
/// The number of sets that the greedy choice starts from, the number of times that it exchanges all rounds of one, and
/// the work it may take.
const STARTS: usize = 16;
const PASSES: usize = 4;
const GREEDY_WORK: usize = 1 << 26;
/// Sets that are better by less than the fraction `NEAR` are not searched for, and at most `MOST_CHOSEN` rounds are
/// chosen one by one.
const NEAR: f64 = 1e-12;
const MOST_CHOSEN: usize = 64;
/// The number of sets of rounds after which the search checks whether its run was cancelled.
const CHECKED: u64 = 1 << 12;

/// Bounds on the maximum, and the rounds that attain the lower one.
#[derive(Debug, Clone, PartialEq)]
pub struct WorstRounds {
    /// An upper bound on the maximum.
    pub upper: f64,
    /// A lower bound on the maximum, the value of `rounds`; equal to `upper` if nothing better is left, up to the
    /// fraction 1e-12.
    pub lower: f64,
    /// The best rounds found, ascending.
    pub rounds: Vec<usize>,
}

/// Returns bounds on the maximum for the Gram matrix of n columns, row by row; `work` is the number of its entries that
/// the search may read.
///
/// # Errors
///
/// The errors of [`Run::check`].
///
/// # Panics
///
/// Panics if `gram` is not square, or if b or k is 0.
pub fn worst_rounds(gram: &[f64], n: usize, b: usize, most: usize, work: u64, run: &Run) -> Result<WorstRounds> {
    assert!(n > 0 && gram.len() == n * n && b > 0 && most > 0, "a square matrix, and rounds to take part in");
    let k = most.min(n.div_ceil(b));
    let rows = Rows { gram, n, b };
    let shared = rows.shared(k, run)?;
    let weights: Vec<f64> = (0..n).map(|i| rows.at(i, i) + shared[i].last().copied().unwrap_or(0.0)).collect();
    let upper = limited(&weights, b, k).last().copied().unwrap_or(0.0).min(rows.by_distance(k));
    let mut search = Search { rows, shared: &shared, best: rows.greedy(k), chosen: Vec::new(), work, nodes: 0, run };
    let exact = upper <= search.best.0 * (1.0 + NEAR) || k <= MOST_CHOSEN && search.within(0, 0.0, &vec![0.0; n], k)?;
    let (_, mut rounds) = search.best;
    rounds.sort_unstable();
    let lower = rows.value(&rounds);
    Ok(WorstRounds { upper: if exact { lower } else { upper.max(lower) }, lower, rounds })
}

/// The Gram matrix, and the minimum distance between rounds.
#[derive(Clone, Copy)]
struct Rows<'a> {
    gram: &'a [f64],
    n: usize,
    b: usize,
}

impl<'a> Rows<'a> {
    fn at(self, i: usize, j: usize) -> f64 {
        self.gram[i * self.n + j]
    }

    fn row(self, i: usize) -> &'a [f64] {
        &self.gram[i * self.n..(i + 1) * self.n]
    }

    /// Returns for each row the largest sums of its entries with at most 0, 1, …, k − 1 other rounds. If that is too
    /// much work (for large k), or if k is no restriction, it returns only the sums with no other round and with any
    /// number of them.
    fn shared(self, k: usize, run: &Run) -> Result<Vec<Vec<f64>>> {
        let counted = k == 1 || k < self.n.div_ceil(self.b) && self.n * self.n * (k - 1) <= BOUND_WORK;
        (0..self.n)
            .into_par_iter()
            .map(|i| {
                run.check()?;
                // Rounds nearer than b cannot be in a set with i, so their weight is 0.
                let shareable: Vec<f64> = self
                    .row(i)
                    .iter()
                    .enumerate()
                    .map(|(j, g)| if i.abs_diff(j) < self.b { 0.0 } else { *g })
                    .collect();
                if counted {
                    return Ok(limited(&shareable, self.b, k - 1));
                }
                let most = super::separated::best_sum(&shareable, self.b).last().copied().unwrap_or(0.0);
                Ok(vec![0.0, most])
            })
            .collect()
    }

    /// Returns the second bound.
    fn by_distance(self, k: usize) -> f64 {
        let mut largest = vec![0.0f64; self.n];
        for i in 0..self.n {
            for (d, g) in self.row(i)[i..].iter().enumerate() {
                largest[d] = largest[d].max(*g);
            }
        }
        let mut most = real(k) * largest[0];
        for d in (0..self.n - 1).rev() {
            largest[d] = largest[d].max(largest[d + 1]);
        }
        for m in 1..k {
            most += 2.0 * real(k - m) * largest.get(m * self.b).copied().unwrap_or(0.0);
        }
        most
    }

    /// Returns a good set: the best of the evenly spaced one, and of sets that grow from one round by the best
    /// addition, improved by exchanges.
    fn greedy(self, k: usize) -> (f64, Vec<usize>) {
        let mut spaced = Growing::new(self);
        (0..k).for_each(|m| spaced.add(m * self.b));
        let mut best = spaced.exchanged(k);
        let starts = STARTS.min(self.n).min(1 + GREEDY_WORK / (self.n * k));
        for start in 0..starts {
            let mut set = Growing::new(self);
            set.add(start * (self.n - 1) / starts.max(2).saturating_sub(1));
            let candidate = set.exchanged(k);
            if candidate.0 > best.0 {
                best = candidate;
            }
        }
        best
    }

    /// Returns Σ `G_ij` over a set.
    fn value(self, set: &[usize]) -> f64 {
        set.iter().map(|&i| set.iter().map(|&j| self.at(i, j)).sum::<f64>()).sum()
    }
}

/// A set of rounds that is being chosen.
struct Growing<'a> {
    rows: Rows<'a>,
    set: Vec<usize>,
    /// The sum of each round's entries with the set, up to rounding: it guides the choice of rounds, and no bound is
    /// computed from it.
    cross: Vec<f64>,
    /// The number of rounds of the set that are too near to each round.
    near: Vec<usize>,
}

impl<'a> Growing<'a> {
    fn new(rows: Rows<'a>) -> Self {
        Self { rows, set: Vec::new(), cross: vec![0.0; rows.n], near: vec![0; rows.n] }
    }

    fn add(&mut self, round: usize) {
        self.cross.iter_mut().zip(self.rows.row(round)).for_each(|(sum, g)| *sum += g);
        self.reach(round).for_each(|j| self.near[j] += 1);
        self.set.push(round);
    }

    /// Removes the round at this position of the set.
    fn remove(&mut self, place: usize) -> usize {
        let round = self.set.remove(place);
        self.cross.iter_mut().zip(self.rows.row(round)).for_each(|(sum, g)| *sum -= g);
        self.reach(round).for_each(|j| self.near[j] -= 1);
        round
    }

    fn reach(&self, round: usize) -> std::ops::Range<usize> {
        (round + 1).saturating_sub(self.rows.b)..(round + self.rows.b).min(self.rows.n)
    }

    /// Returns the round that adds most; `None` if no round fits.
    fn next(&self) -> Option<usize> {
        let gain = |j: usize| 2.0 * self.cross[j] + self.rows.at(j, j);
        (0..self.rows.n).filter(|j| self.near[*j] == 0).max_by(|one, other| gain(*one).total_cmp(&gain(*other)))
    }

    fn fill(&mut self, k: usize) {
        while self.set.len() < k {
            let Some(next) = self.next() else { break };
            self.add(next);
        }
    }

    /// Fills the set up to k rounds, then exchanges one round for the one that adds most without it, while that changes
    /// anything.
    fn exchanged(mut self, k: usize) -> (f64, Vec<usize>) {
        self.fill(k);
        let mut best = (self.rows.value(&self.set), self.set.clone());
        for _ in 0..PASSES {
            for _ in 0..self.set.len() {
                // The first round is removed and the new one is appended, so each round has its turn.
                self.remove(0);
                self.fill(k);
            }
            let value = self.rows.value(&self.set);
            if value <= best.0 {
                break;
            }
            best = (value, self.set.clone());
        }
        best
    }
}

/// Returns the largest sums of at most 0, 1, …, `most` non-negative weights at least b apart.
fn limited(weights: &[f64], b: usize, most: usize) -> Vec<f64> {
    let n = weights.len();
    // best[d]: of the weights before d; fewer than that are none.
    let (mut best, mut next) = (vec![0.0f64; n + 1], vec![0.0f64; n + 1]);
    let mut largest = vec![0.0];
    for _ in 0..most {
        for (d, weight) in weights.iter().enumerate() {
            next[d + 1] = next[d].max(weight + best[(d + 1).saturating_sub(b)]);
        }
        std::mem::swap(&mut best, &mut next);
        largest.push(best[n]);
    }
    largest
}

/// Branch and bound over sets of rounds in ascending order.
struct Search<'a> {
    rows: Rows<'a>,
    shared: &'a [Vec<f64>],
    /// The value of the best set so far, and the set.
    best: (f64, Vec<usize>),
    chosen: Vec<usize>,
    /// The number of entries that may still be read.
    work: u64,
    nodes: u64,
    run: &'a Run,
}

impl Search<'_> {
    /// Searches all sets that add at most `left` rounds from `first` on to the chosen ones, which have the value
    /// `value` and the sums `cross` with each round. Returns whether the search ended within the work allowed.
    ///
    /// A set T of r ≥ 1 more adds Σ_{j ∈ T} (2 cross_j + Σ_{i ∈ T} `G_ij`), which is at most r times the largest term,
    /// with Σ_{i ∈ T} `G_ij` ≤ `G_jj` + the largest sum of j's entries with r − 1 other rounds.
    fn within(&mut self, first: usize, value: f64, cross: &[f64], left: usize) -> Result<bool> {
        let (n, b) = (self.rows.n, self.rows.b);
        if first >= n || left == 0 {
            return Ok(true);
        }
        self.nodes += 1;
        if self.nodes.is_multiple_of(CHECKED) {
            self.run.check()?;
        }
        let cost = n as u64;
        if self.work < cost {
            return Ok(false);
        }
        self.work -= cost;
        let left = left.min((n - first).div_ceil(b));
        for (j, shared) in cross.iter().enumerate().skip(first) {
            let alone = value + 2.0 * shared + self.rows.at(j, j);
            if alone > self.best.0 {
                let mut set = self.chosen.clone();
                set.push(j);
                self.best = (alone, set);
            }
        }
        if left == 1 {
            return Ok(true);
        }
        // Going back from the last round, `most` bounds the value of a set that begins with round j or later.
        let mut most = vec![0.0f64; n - first + 1];
        for j in (first..n).rev() {
            let shared = &self.shared[j];
            let term = 2.0 * cross[j] + self.rows.at(j, j) + shared[(left - 1).min(shared.len() - 1)];
            most[j - first] = most[j - first + 1].max(term);
        }
        let mut following = vec![0.0; n];
        for j in first..n {
            if value + real(left) * most[j - first] <= self.best.0 * (1.0 + NEAR) {
                break;
            }
            let alone = value + 2.0 * cross[j] + self.rows.at(j, j);
            following.iter_mut().zip(cross).zip(self.rows.row(j)).for_each(|((sum, old), g)| *sum = old + g);
            self.chosen.push(j);
            let ended = self.within(j + b, alone, &following, left - 1)?;
            self.chosen.pop();
            if !ended {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns every set of at most `most` rounds at least b apart.
    fn sets(n: usize, b: usize, most: usize) -> impl Iterator<Item = Vec<usize>> {
        (1u32..1 << n)
            .map(move |mask| (0..n).filter(|i| mask >> i & 1 == 1).collect::<Vec<_>>())
            .filter(move |set| set.len() <= most && set.windows(2).all(|pair| pair[1] - pair[0] >= b))
    }

    /// Returns the Gram matrix of columns with small pseudo-random entries below the diagonal.
    fn products(n: usize, seed: u64) -> Vec<f64> {
        let mut state = seed;
        let mut entry = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            f64::from(u32::try_from(state >> 40).unwrap() % 7) / 7.0
        };
        let columns: Vec<Vec<f64>> = (0..n)
            .map(|i| (0..n).map(|row| if row < i { 0.0 } else { entry() + f64::from(u8::from(row == i)) }).collect())
            .collect();
        let dot = |i: usize, j: usize| columns[i].iter().zip(&columns[j]).map(|(a, b)| a * b).sum();
        (0..n * n).map(|at| dot(at / n, at % n)).collect()
    }

    #[test]
    fn bounds_enclose_what_enumeration_finds_and_the_search_finds_it() {
        let n = 10;
        for seed in 0..12 {
            let gram = products(n, seed);
            for (b, most) in [(1, 1), (1, 2), (1, 3), (1, 7), (1, 10), (2, 2), (2, 4), (3, 2), (3, 4), (10, 1), (4, 9)]
            {
                let truth = sets(n, b, most)
                    .map(|set| set.iter().map(|i| set.iter().map(|j| gram[i * n + j]).sum::<f64>()).sum::<f64>())
                    .fold(0.0, f64::max);
                let run = Run::default();
                let exact = worst_rounds(&gram, n, b, most, 1 << 20, &run).unwrap();
                assert!((exact.upper - truth).abs() < 1e-9, "{seed} {b} {most}: {exact:?}, {truth}");
                assert!((exact.lower - truth).abs() < 1e-9);
                let bounded = worst_rounds(&gram, n, b, most, 0, &run).unwrap();
                assert!(bounded.upper >= truth - 1e-9 && bounded.lower <= truth + 1e-9);
                for found in [exact, bounded] {
                    assert!(found.rounds.len() <= most && found.rounds.windows(2).all(|pair| pair[1] - pair[0] >= b));
                    let value: f64 =
                        found.rounds.iter().map(|i| found.rounds.iter().map(|j| gram[i * n + j]).sum::<f64>()).sum();
                    assert!((value - found.lower).abs() < 1e-9);
                }
            }
        }
    }

    #[test]
    fn one_round_is_the_longest_column_without_a_search() {
        let gram = products(9, 3);
        let longest = (0..9).map(|i| gram[i * 10]).fold(0.0, f64::max);
        let found = worst_rounds(&gram, 9, 1, 1, 0, &Run::default()).unwrap();
        assert!((found.upper - longest).abs() < 1e-12 && (found.lower - longest).abs() < 1e-12);
    }

    #[test]
    fn a_cancelled_run_ends() {
        let run = Run::default();
        run.cancel();
        assert!(worst_rounds(&products(4, 1), 4, 1, 2, 1 << 20, &run).is_err());
    }
}
