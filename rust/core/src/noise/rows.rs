//! Rows of C⁻¹Z: weighted sums of rows of Z and of the memory of earlier rounds.
//!
//! With w_t the rows of Z, each drawn from a key of its own, the row of a round is
//!
//! z_t = Σ_k weight_k·w_{t_k} + Σ_j coefficient_j·m_j,
//!
//! where the memory m is one of: nothing; the last rows themselves, m_j = z_{t−j}; running sums of them, m_j ←
//! decay_j·m_j + z_t after each round. Every element is summed separately in double precision, in the order written,
//! each step rounded once (products with w are fused), and rounded once more to the type that is asked for. The memory
//! keeps rows as they were returned, after that rounding: if C's substitution z_t = (w_t − Σ_j c_j z_{t−j})/c_0 is
//! asked for, then C applied to the returned rows is w but for the roundings of those rows, however large the entries
//! of C⁻¹ are.

use crate::special::real;
use std::collections::VecDeque;

use rayon::prelude::*;

use crate::error::{domain, Result};
use crate::noise::normals::{add, GROUP};
use crate::run::Run;
use crate::secret::SecretKey;
use crate::vector::{with_vectors, Vector, Vectored};

/// The number of elements that a thread computes at a time.
const BLOCK: usize = 2048;

/// The number of rows of the memory that are added in one pass.
const TOGETHER: usize = 4;

/// A floating-point type in which noise is returned.
pub trait Element: Copy + Default + Send + Sync + std::fmt::Debug + 'static {
    /// Returns the number of this type that is nearest to `value`.
    fn of(value: f64) -> Self;
    /// Returns this number as a double.
    fn wide(self) -> f64;
    /// Returns the quotient, rounded once.
    fn over(self, divisor: Self) -> Self;
}

impl Element for f64 {
    #[inline(always)]
    fn of(value: f64) -> Self {
        value
    }
    #[inline(always)]
    fn wide(self) -> f64 {
        self
    }
    #[inline(always)]
    fn over(self, divisor: Self) -> Self {
        self / divisor
    }
}

impl Element for f32 {
    #[inline(always)]
    #[allow(clippy::cast_possible_truncation)] // the one rounding
    fn of(value: f64) -> Self {
        value as f32
    }
    #[inline(always)]
    fn wide(self) -> f64 {
        f64::from(self)
    }
    #[inline(always)]
    fn over(self, divisor: Self) -> Self {
        self / divisor
    }
}

/// Returns whether the calling thread belongs to no pool and so must work alone: parallel work would start rayon's own
/// pool for it, whose threads do not survive a fork.
fn alone() -> bool {
    rayon::current_thread_index().is_none()
}

/// The memory that is kept from one round to the next.
#[derive(Clone)]
enum Memory<T> {
    /// The last rows, the newest first.
    Rows(VecDeque<Vec<T>>),
    /// Running sums with these decays.
    Sums(Vec<(f64, Vec<f64>)>),
}

/// A row or a running sum of the memory, to be read or to be restored.
#[derive(Debug)]
pub enum Kept<'a, T> {
    /// A row as it was returned.
    Row(&'a mut [T]),
    /// A running sum.
    Sum(&'a mut [f64]),
}

/// A row of Z: the stream that it is drawn from, and its weight in the sum.
#[derive(Clone)]
pub struct Fresh {
    /// The secret key.
    pub key: SecretKey,
    /// The number of the key's stream, which is the round.
    pub round: u64,
    /// The factor that the row is multiplied by.
    pub weight: f64,
}

impl std::fmt::Debug for Fresh {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Fresh")
            .field("round", &self.round)
            .field("weight", &self.weight)
            .finish_non_exhaustive()
    }
}

/// The noise of a range of elements, round by round. The rows are secret, so they are never shown.
#[derive(Clone)]
pub struct Rows<T> {
    first: u64,
    newest: Vec<T>,
    memory: Memory<T>,
}

impl<T> std::fmt::Debug for Rows<T> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Rows")
            .field("first", &self.first)
            .field("length", &self.newest.len())
            .finish_non_exhaustive()
    }
}

impl<T: Element> Rows<T> {
    /// Creates the rows of the elements `first` … `first + length − 1`; the memory holds the last `kept` rows.
    pub fn keeping_rows(first: u64, length: usize, kept: usize) -> Self {
        let memory = Memory::Rows((0..kept).map(|_| vec![T::default(); length]).collect());
        Self { first, newest: vec![T::default(); length], memory }
    }

    /// Creates the rows of the elements `first` … `first + length − 1`; the memory holds running sums with these
    /// decays.
    pub fn keeping_sums(first: u64, length: usize, decays: &[f64]) -> Self {
        let memory = Memory::Sums(decays.iter().map(|&decay| (decay, vec![0.0; length])).collect());
        Self { first, newest: vec![T::default(); length], memory }
    }

    /// Returns the number of rows or sums in the memory.
    pub fn kept(&self) -> usize {
        match &self.memory {
            Memory::Rows(rows) => rows.len(),
            Memory::Sums(sums) => sums.len(),
        }
    }

    /// Resets the memory to its state before the first round.
    pub fn clear(&mut self) {
        match &mut self.memory {
            Memory::Rows(rows) => rows.iter_mut().for_each(|row| row.fill(T::default())),
            Memory::Sums(sums) => sums.iter_mut().for_each(|(_, sum)| sum.fill(0.0)),
        }
    }

    /// Returns the row or sum at a position of the memory; the newest row is at 0.
    pub fn kept_at(&mut self, place: usize) -> Option<Kept<'_, T>> {
        match &mut self.memory {
            Memory::Rows(rows) => rows.get_mut(place).map(|row| Kept::Row(row)),
            Memory::Sums(sums) => sums.get_mut(place).map(|(_, sum)| Kept::Sum(sum)),
        }
    }

    /// Computes the row of a round from these rows of Z with their weights and these coefficients of the memory, and
    /// advances the memory by one round. If it returns an error, nothing has changed.
    ///
    /// # Errors
    /// [`Error::Domain`] if there are more coefficients than rows or sums in the memory; the errors of [`Run::check`].
    pub fn next(&mut self, fresh: &[Fresh], coefficients: &[f64], run: &Run) -> Result<&[T]> {
        if coefficients.len() > self.kept() {
            let value = real(coefficients.len());
            return domain("coefficients", value, "as many as rows or sums are kept");
        }
        let mut row = std::mem::take(&mut self.newest);
        let (first, memory) = (self.first, &self.memory);
        let draw = |(block, out): (usize, &mut [T])| {
            run.check()?;
            with_vectors(Block { first, start: block * BLOCK, fresh, coefficients, memory, out });
            Ok(())
        };
        let drawn = if alone() {
            row.chunks_mut(BLOCK).enumerate().try_for_each(draw)
        } else {
            row.par_chunks_mut(BLOCK).enumerate().try_for_each(draw)
        };
        self.newest = row;
        drawn?;
        self.keep();
        Ok(self.newest())
    }

    /// Returns the last row that [`Rows::next`] computed.
    pub fn newest(&self) -> &[T] {
        match &self.memory {
            Memory::Rows(rows) => rows.front().unwrap_or(&self.newest),
            Memory::Sums(_) => &self.newest,
        }
    }

    /// Moves the newest row into the memory.
    fn keep(&mut self) {
        match &mut self.memory {
            Memory::Rows(rows) => {
                if let Some(oldest) = rows.pop_back() {
                    rows.push_front(std::mem::replace(&mut self.newest, oldest));
                }
            }
            Memory::Sums(sums) => {
                for (decay, sum) in sums {
                    let add = |(sum, row): (&mut [f64], &[T])| {
                        for (sum, value) in sum.iter_mut().zip(row) {
                            *sum = *decay * *sum + value.wide();
                        }
                    };
                    if alone() {
                        add((sum, &self.newest));
                    } else {
                        sum.par_chunks_mut(BLOCK).zip(self.newest.par_chunks(BLOCK)).for_each(add);
                    }
                }
            }
        }
    }
}

/// The sums to which noise is added, as work for a copy of the kernel.
struct Added<'a, S> {
    noise: &'a [f64],
    step: f64,
    divisor: S,
    sums: &'a mut [S],
}

impl<S: Element> Vectored for Added<'_, S> {
    type Output = ();
    #[inline(always)]
    fn run<V: Vector>(self) {
        for (sum, noise) in self.sums.iter_mut().zip(self.noise) {
            let noisy = ((sum.wide() + noise) / self.step).round_ties_even() * self.step;
            *sum = S::of(noisy).over(self.divisor);
        }
    }
}

/// Replaces each sum by (sum + noise), rounded to a double, to the nearest multiple of `step` (ties to even), and to its
/// type, and divided by `divisor` in its type. Nothing else is rounded if `step` is a power of two.
///
/// # Panics
/// Panics unless there are as many sums as numbers of noise.
pub fn add_noise<S: Element>(noise: &[f64], step: f64, divisor: S, sums: &mut [S]) {
    assert_eq!(noise.len(), sums.len(), "each sum has its noise");
    with_vectors(Added { noise, step, divisor, sums });
}

/// A range of elements of a row.
struct Block<'a, T> {
    first: u64,
    start: usize,
    fresh: &'a [Fresh],
    coefficients: &'a [f64],
    memory: &'a Memory<T>,
    out: &'a mut [T],
}

impl<T: Element> Vectored for Block<'_, T> {
    type Output = ();
    #[inline(always)]
    fn run<V: Vector>(self) {
        let place = self.first + self.start as u64;
        // Whole groups are drawn; the numbers before and after the range are dropped.
        let group = place / GROUP as u64;
        #[allow(clippy::cast_possible_truncation)] // below GROUP
        let skipped = (place % GROUP as u64) as usize;
        let end = skipped + self.out.len();
        #[allow(clippy::large_stack_arrays)] // 16 KiB: the size of a first-level cache, half full
        let mut sums = [0.0; BLOCK + GROUP];
        for Fresh { key, round, weight } in self.fresh {
            add::<V>(key, *round, group, *weight, &mut sums[..end.next_multiple_of(GROUP)]);
        }
        let sums = &mut sums[skipped..end];
        let range = self.start..self.start + self.out.len();
        match self.memory {
            Memory::Rows(rows) => combine(sums, self.coefficients, |j| &rows[j][range.clone()]),
            Memory::Sums(kept) => combine(sums, self.coefficients, |j| &kept[j].1[range.clone()]),
        }
        for (out, sum) in self.out.iter_mut().zip(sums) {
            *out = T::of(*sum);
        }
    }
}

/// Adds the rows with their coefficients, in order. Nothing is fused here, so that every compilation rounds the same.
#[inline(always)]
fn combine<'a, T: Element>(sums: &mut [f64], coefficients: &[f64], row: impl Fn(usize) -> &'a [T]) {
    let (passes, rest) = coefficients.as_chunks::<TOGETHER>();
    for (pass, c) in passes.iter().enumerate() {
        let [a, b, d, e] = std::array::from_fn(|j| &row(pass * TOGETHER + j)[..sums.len()]);
        for (i, sum) in sums.iter_mut().enumerate() {
            let mut value = *sum;
            value += c[0] * a[i].wide();
            value += c[1] * b[i].wide();
            value += c[2] * d[i].wide();
            value += c[3] * e[i].wide();
            *sum = value;
        }
    }
    for (j, c) in rest.iter().enumerate() {
        for (sum, value) in sums.iter_mut().zip(row(passes.len() * TOGETHER + j)) {
            *sum += c * value.wide();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::noise::normals::groups;

    /// Returns the key of a round.
    fn key(round: u64) -> SecretKey {
        let mut bytes = [3; 32];
        bytes[..8].copy_from_slice(&round.to_le_bytes());
        SecretKey::new(bytes)
    }

    fn fresh(round: u64, weight: f64) -> [Fresh; 1] {
        [Fresh { key: key(round), round, weight }]
    }

    fn rows_of<T: Element>(mut rows: Rows<T>, rounds: u64, past: &[f64]) -> Vec<Vec<T>> {
        (0..rounds).map(|t| rows.next(&fresh(t, 0.5), past, &Run::default()).unwrap().to_vec()).collect()
    }

    #[test]
    fn rows_follow_the_recursion() {
        let past = [0.5, -0.25, 0.125, 1.5, -1.0];
        let length = 3 * BLOCK + 5;
        let found = rows_of::<f64>(Rows::keeping_rows(0, length, 5), 9, &past);
        for t in 0..9 {
            let fresh = groups(&key(t as u64), t as u64, 0, length.div_ceil(GROUP));
            for i in [0, 1, 17, BLOCK - 1, BLOCK, length - 1] {
                let mut expected = 0.5 * fresh[i];
                for (j, c) in (1..=t).zip(past) {
                    expected += c * found[t - j][i];
                }
                assert!((found[t][i] - expected).abs() <= 1e-13 * expected.abs().max(1.0));
            }
        }
    }

    #[test]
    fn sums_follow_their_decays() {
        let found = rows_of::<f64>(Rows::keeping_sums(40, 100, &[0.5, 0.9]), 6, &[-0.3, 0.2]);
        for i in [0, 50, 99] {
            let mut sums = [0.0, 0.0];
            for (t, found) in found.iter().enumerate() {
                let expected = 0.5 * groups(&key(t as u64), t as u64, 0, 9)[40 + i] - 0.3 * sums[0] + 0.2 * sums[1];
                assert!((found[i] - expected).abs() <= 1e-13);
                sums = [0.5 * sums[0] + found[i], 0.9 * sums[1] + found[i]];
            }
        }
    }

    #[test]
    fn a_part_is_a_part_of_the_whole() {
        let past = [0.5, -0.25, 0.125, 1.5, -1.0];
        let whole = rows_of::<f32>(Rows::keeping_rows(0, 5000, 5), 4, &past);
        for (first, length) in [(0, 1), (1, 4999), (15, 2), (2047, 3), (4096, 904)] {
            let found = rows_of::<f32>(Rows::keeping_rows(first, length, 5), 4, &past);
            #[allow(clippy::cast_possible_truncation)] // a place in a small row
            let first = first as usize;
            for (found, whole) in found.iter().zip(&whole) {
                assert_eq!(found[..], whole[first..first + length]);
            }
        }
    }

    #[test]
    fn numbers_do_not_depend_on_threads_or_copies() {
        use crate::vector::{instruction_sets, with_instruction_set};
        let past = [0.5, -0.25, 0.125, 1.5, -1.0];
        let of = |threads| {
            let pool = crate::run::pool(threads).unwrap();
            pool.install(|| rows_of::<f32>(Rows::keeping_rows(3, 9000, 5), 3, &past))
        };
        let found = of(1);
        assert_eq!(found, of(3));
        let memory = Memory::Rows([&found[1], &found[0]].into_iter().cloned().collect());
        for name in instruction_sets() {
            let mut out = vec![0.0f32; BLOCK];
            let block = Block {
                first: 3,
                start: 0,
                fresh: &fresh(2, 0.5),
                coefficients: &past[..2],
                memory: &memory,
                out: &mut out,
            };
            with_instruction_set(name, block).unwrap();
            assert_eq!(out, found[2][..BLOCK], "{name}");
        }
    }

    #[test]
    fn memory_is_restored_and_cleared() {
        let past = [0.5, -0.25];
        let start = Rows::<f32>::keeping_rows(0, 70, 2);
        let run = Run::default();
        let mut one = start.clone();
        for t in 0..3 {
            one.next(&fresh(t, 1.0), &past, &run).unwrap();
        }
        let mut other = start.clone();
        for place in 0..2 {
            let (Some(Kept::Row(from)), Some(Kept::Row(to))) = (one.kept_at(place), other.kept_at(place)) else {
                panic!("rows are kept");
            };
            to.copy_from_slice(from);
        }
        assert_eq!(one.next(&fresh(3, 1.0), &past, &run).unwrap(), other.next(&fresh(3, 1.0), &past, &run).unwrap());
        one.clear();
        assert_eq!(
            one.next(&fresh(0, 1.0), &past, &run).unwrap(),
            start.clone().next(&fresh(0, 1.0), &past, &run).unwrap()
        );
        assert!(one.kept_at(2).is_none());
        assert!(one.next(&fresh(0, 1.0), &[1.0; 3], &run).is_err());
        assert_eq!(format!("{one:?}"), "Rows { first: 0, length: 70, .. }");
    }

    #[test]
    fn noise_is_added_on_a_grid() {
        let noise = [0.3, -0.3, 1.25, 1.75, -7.0, 1e9, f64::from(f32::MAX)];
        let mut sums = [1.0f32, 0.0, 0.5, 0.5, 7.0, 0.5, f32::MAX];
        add_noise(&noise, 0.5, 3.0, &mut sums);
        assert_eq!(sums[..3], [1.5f32 / 3.0, -0.5 / 3.0, 2.0 / 3.0]);
        // 2.25 lies between 2 and 2.5, of which the former is an even multiple.
        assert_eq!(sums[3..], [2.0f32 / 3.0, 0.0, 1e9 / 3.0, f32::INFINITY]);
        let mut sums = [1.0f64, 1e280];
        add_noise(&[0.1, 1.0], 2f64.powi(-30), 1.0, &mut sums);
        assert!((sums[0] - 1.1).abs() <= 2f64.powi(-31) && (sums[0] * 2f64.powi(30)).fract().abs() <= 0.0);
        assert_eq!(sums[1].to_bits(), 1e280f64.to_bits());
    }

    #[test]
    fn a_cancelled_round_leaves_the_memory() {
        let mut rows = Rows::<f64>::keeping_sums(0, 4 * BLOCK, &[0.5]);
        let expected = rows.clone().next(&fresh(0, 1.0), &[0.25], &Run::default()).unwrap().to_vec();
        let cancelled = Run::default();
        cancelled.cancel();
        assert!(rows.next(&fresh(0, 1.0), &[0.25], &cancelled).is_err());
        assert_eq!(rows.next(&fresh(0, 1.0), &[0.25], &Run::default()).unwrap(), expected);
    }
}
