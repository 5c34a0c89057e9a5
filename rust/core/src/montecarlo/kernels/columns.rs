//! Matrices with long columns: the numbers that the kernel for overlapping participations needs of them.
//!
//! C is lower-triangular and non-negative, given by its whole first column (Toeplitz), by a few running sums (BLT), or
//! entry by entry. Two products are computed for eight samples side by side: Cx for participation patterns x, and Cᵀy.

use crate::error::{domain, Result};
use crate::montecarlo::kernels::correlate::Correlator;
use crate::participation::separated::{best_sum, dense_gram, toeplitz_gram, GramBounds};
use crate::special::{real, UNIT_ROUNDOFF};
use crate::vector::{splat, Lanes, Vector, LANES};

/// The largest number of buffers of a BLT.
pub const MOST_BUFFERS: usize = 64;

/// The form that C is given in.
#[derive(Debug, Clone)]
enum Form {
    /// By its first column.
    Toeplitz(Correlator),
    /// c_0 and, for each buffer, ω and θ: c_i = c_0 Σ_j ω_j θ_j^{i−1}.
    Buffers(f64, Vec<(f64, f64)>),
    /// By its columns, from the diagonal down, one after another.
    Dense(Vec<f64>),
}

/// A matrix with long columns, and bounds on how much columns at least b rounds apart overlap.
#[derive(Debug, Clone)]
pub struct Columns {
    form: Form,
    iterations: usize,
    min_separation: usize,
    gram: GramBounds,
    /// The sum over rows of the largest sum of entries that a pattern can have there, and the largest of these.
    reach: (f64, f64),
    /// The largest sum of a column.
    total: f64,
}

/// Buffers that are reused from call to call.
#[derive(Debug, Clone, Default)]
pub struct ColumnScratch {
    workspace: Vec<[Lanes; 2]>,
    reversed: Vec<Lanes>,
    sums: Vec<Lanes>,
}

impl Columns {
    /// Creates a Toeplitz matrix from its first column, all n entries of it.
    ///
    /// # Errors
    /// [`Error::Domain`] for entries that are negative or not finite, a first one that is 0, or a separation of 0.
    pub fn toeplitz(coefficients: &[f64], min_separation: usize) -> Result<Self> {
        let form = Form::Toeplitz(Correlator::new(coefficients, None));
        Self::of_first_column(form, coefficients, min_separation)
    }

    /// Creates a BLT: c_0 = `first`, c_i = `first`·Σ_j ω_j θ_j^{i−1}; it is applied with its buffers in O(n·buffers).
    ///
    /// # Errors
    /// As [`Self::toeplitz`]; also for decays outside [0, 1] or more than [`MOST_BUFFERS`] buffers.
    pub fn buffers(
        first: f64,
        scales: &[f64],
        decays: &[f64],
        iterations: usize,
        min_separation: usize,
    ) -> Result<Self> {
        if scales.len() != decays.len() || scales.len() > MOST_BUFFERS {
            return domain("buffers", real(scales.len()), "at most 64, a scale and a decay for each");
        }
        if let Some(&wrong) = scales.iter().find(|w| !(w.is_finite() && **w >= 0.0)) {
            return domain("scale", wrong, "finite and at least 0");
        }
        if let Some(&wrong) = decays.iter().find(|t| !(**t >= 0.0 && **t <= 1.0)) {
            return domain("decay", wrong, "between 0 and 1");
        }
        let pairs: Vec<(f64, f64)> = scales.iter().copied().zip(decays.iter().copied()).collect();
        let mut powers = vec![1.0; pairs.len()];
        let mut coefficients = vec![first; iterations];
        for coefficient in coefficients.iter_mut().skip(1) {
            let mut sum = 0.0;
            for ((omega, theta), power) in pairs.iter().zip(&mut powers) {
                sum += omega * *power;
                *power *= theta;
            }
            *coefficient = first * sum;
        }
        Self::of_first_column(Form::Buffers(first, pairs), &coefficients, min_separation)
    }

    fn of_first_column(form: Form, coefficients: &[f64], min_separation: usize) -> Result<Self> {
        check(coefficients, min_separation)?;
        if coefficients[0] <= 0.0 {
            return domain("first coefficient", coefficients[0], "greater than 0");
        }
        let reach = best_sum(coefficients, min_separation);
        Ok(Self {
            form,
            iterations: coefficients.len(),
            min_separation,
            gram: toeplitz_gram(coefficients, min_separation),
            reach: (reach.iter().sum(), reach.iter().copied().fold(0.0, f64::max)),
            total: coefficients.iter().sum(),
        })
    }

    /// Creates any lower-triangular non-negative matrix from its columns, each from the diagonal down, one after
    /// another.
    ///
    /// # Errors
    /// [`Error::Domain`] for entries that are negative or not finite, for a number of entries that is not n(n + 1)/2,
    /// or a separation of 0.
    pub fn dense(entries: Vec<f64>, iterations: usize, min_separation: usize) -> Result<Self> {
        if iterations.checked_mul(iterations + 1).map(|twice| twice / 2) != Some(entries.len()) {
            let value = real(entries.len());
            return domain("entries", value, "n(n + 1)/2 of them");
        }
        check(&entries, min_separation)?;
        let columns: Vec<&[f64]> = split(&entries, iterations).collect();
        let mut rows = (0.0, 0.0f64);
        for k in 0..iterations {
            // `most` is the largest sum of entries of row k at least b apart.
            let row: Vec<f64> = (0..=k).map(|i| columns[k - i][i]).collect();
            let most = best_sum(&row, min_separation).last().copied().unwrap_or(0.0);
            rows = (rows.0 + most, rows.1.max(most));
        }
        let total = columns.iter().map(|column| column.iter().sum::<f64>()).fold(0.0, f64::max);
        let gram = dense_gram(&columns, min_separation);
        Ok(Self { form: Form::Dense(entries), iterations, min_separation, gram, reach: rows, total })
    }

    /// Returns n, the number of rounds.
    pub fn iterations(&self) -> usize {
        self.iterations
    }

    /// Returns b, the minimum distance of two participations for which [`Self::gram`] was computed.
    pub fn min_separation(&self) -> usize {
        self.min_separation
    }

    /// Returns the squared norms of the columns, and bounds on their inner products with other columns.
    pub fn gram(&self) -> &GramBounds {
        &self.gram
    }

    /// Returns Σ_k max_x (Cx)_k and max_k max_x (Cx)_k over patterns x of single participations at least b apart.
    pub fn reach(&self) -> (f64, f64) {
        self.reach
    }

    /// Returns the largest sum of a column.
    pub fn total(&self) -> f64 {
        self.total
    }

    /// Returns a bound on the error of each entry of Cᵀy for |y_k| ≤ `largest`, and of each entry of Cx for |x_i| ≤
    /// `largest`.
    ///
    /// Toeplitz: [`Correlator::rounding`]. Buffers: B(i) = y_i + θB(i+1) has |B| ≤ g·`largest`, g = min(n, 1/(1 − θ)),
    /// a step adds 2u|B| to its error, which decays like B itself: 2u g² `largest`; their sum adds (buffers + 3)u of
    /// its size, Σ c. Dense: dot products of at most n terms, (n + 2)u Σ c (Higham 2002, Section 3.1). All sums have
    /// terms of |y| with non-negative factors.
    pub fn rounding(&self, largest: f64) -> f64 {
        let n = real(self.iterations);
        let error = match &self.form {
            Form::Toeplitz(correlator) => correlator.rounding(largest),
            Form::Buffers(first, pairs) => {
                let terms = real(pairs.len()) + 3.0;
                let kept: f64 = pairs
                    .iter()
                    .map(|(omega, theta)| {
                        let gain = if *theta < 1.0 { (1.0 / (1.0 - theta)).min(n) } else { n };
                        omega * (2.0 * gain * gain + 2.0 * gain)
                    })
                    .sum();
                UNIT_ROUNDOFF * largest * (first * kept + terms * self.total)
            }
            Form::Dense(_) => (n + 2.0) * UNIT_ROUNDOFF * self.total.max(self.reach.1) * largest,
        };
        error * (1.0 + 1e-6)
    }

    /// Computes `rows` = Cx, where x is given as the rounds and counts of each lane's participations.
    #[inline(always)]
    pub fn spread<V: Vector>(
        &self,
        patterns: &[Vec<(usize, f64)>],
        rows: &mut Vec<Lanes>,
        scratch: &mut ColumnScratch,
    ) {
        let n = self.iterations;
        rows.clear();
        rows.resize(n, splat(0.0));
        match &self.form {
            Form::Buffers(first, pairs) => {
                mark(patterns, |round, lane, count| rows[round][lane] += count);
                let mut kept = [V::splat(0.0); MOST_BUFFERS];
                for row in rows.iter_mut() {
                    let x = V::load(row);
                    let mut sum = x;
                    for ((omega, theta), kept) in pairs.iter().zip(&mut kept) {
                        sum = V::splat(*omega).mul_add(*kept, sum);
                        *kept = V::splat(*theta).mul_add(*kept, x);
                    }
                    sum.mul(V::splat(*first)).store(row);
                }
            }
            Form::Toeplitz(correlator) => {
                // With time reversed, Cx is a correlation.
                let (block, tail) = (correlator.block(), correlator.tail());
                let reversed = &mut scratch.reversed;
                reversed.clear();
                reversed.resize(n.next_multiple_of(block) + tail, splat(0.0));
                mark(patterns, |round, lane, count| reversed[n - 1 - round][lane] += count);
                correlate_all::<V>(correlator, n, &scratch.reversed, &mut scratch.sums, &mut scratch.workspace);
                for (row, sum) in rows.iter_mut().zip(scratch.sums[..n].iter().rev()) {
                    *row = *sum;
                }
            }
            Form::Dense(entries) => {
                let starts = |i: usize| i * n - i * i.saturating_sub(1) / 2;
                mark(patterns, |round, lane, count| {
                    let column = &entries[starts(round)..starts(round) + n - round];
                    for (row, entry) in rows[round..].iter_mut().zip(column) {
                        let place = &mut row.0[lane % LANES];
                        *place = count.mul_add(*entry, *place);
                    }
                });
            }
        }
    }

    /// Computes `sums` = Cᵀy. It is longer by up to three entries that are not used.
    #[inline(always)]
    pub fn correlate<V: Vector>(&self, rows: &mut Vec<Lanes>, sums: &mut Vec<Lanes>, scratch: &mut ColumnScratch) {
        let n = self.iterations;
        sums.clear();
        sums.resize(n.next_multiple_of(4), splat(0.0));
        match &self.form {
            Form::Buffers(first, pairs) => {
                let mut kept = [V::splat(0.0); MOST_BUFFERS];
                for (row, out) in rows.iter().zip(sums.iter_mut()).rev() {
                    let y = V::load(row);
                    let mut sum = y;
                    for ((omega, theta), kept) in pairs.iter().zip(&mut kept) {
                        sum = V::splat(*omega).mul_add(*kept, sum);
                        *kept = V::splat(*theta).mul_add(*kept, y);
                    }
                    sum.mul(V::splat(*first)).store(out);
                }
            }
            Form::Toeplitz(correlator) => {
                rows.resize(n.next_multiple_of(correlator.block()) + correlator.tail(), splat(0.0));
                correlate_all::<V>(correlator, n, rows, &mut scratch.sums, &mut scratch.workspace);
                sums[..n].copy_from_slice(&scratch.sums[..n]);
                rows.truncate(n);
            }
            Form::Dense(entries) => {
                for ((i, column), out) in split(entries, n).enumerate().zip(sums.iter_mut()) {
                    // Four sums are computed at a time, so that none waits for the one before.
                    let mut partial = [V::splat(0.0); 4];
                    for (entries, rows) in column.chunks(4).zip(rows[i..].chunks(4)) {
                        for (k, (entry, row)) in entries.iter().zip(rows).enumerate() {
                            partial[k % 4] = V::splat(*entry).mul_add(V::load(row), partial[k % 4]);
                        }
                    }
                    partial[0].add(partial[1]).add(partial[2].add(partial[3])).store(out);
                }
            }
        }
    }
}

/// Returns the columns of a packed lower-triangular matrix.
fn split(entries: &[f64], iterations: usize) -> impl Iterator<Item = &[f64]> {
    let mut rest = entries;
    (0..iterations).map(move |i| {
        let (column, behind) = rest.split_at(iterations - i);
        rest = behind;
        column
    })
}

fn check(entries: &[f64], min_separation: usize) -> Result<()> {
    if entries.is_empty() {
        return domain("iterations", 0.0, "at least 1");
    }
    if min_separation == 0 {
        return domain("min_separation", 0.0, "at least 1");
    }
    match entries.iter().find(|c| !(c.is_finite() && **c >= 0.0)) {
        Some(&wrong) => domain("coefficient", wrong, "finite and at least 0"),
        None => Ok(()),
    }
}

#[inline(always)]
fn mark(patterns: &[Vec<(usize, f64)>], mut at: impl FnMut(usize, usize, f64)) {
    for (lane, pattern) in patterns.iter().enumerate() {
        for &(round, count) in pattern {
            at(round, lane, count);
        }
    }
}

/// Computes all n outputs, block by block; `rows` holds whole blocks and a tail of zeros.
#[inline(always)]
pub(super) fn correlate_all<V: Vector>(
    correlator: &Correlator,
    n: usize,
    rows: &[Lanes],
    sums: &mut Vec<Lanes>,
    workspace: &mut Vec<[Lanes; 2]>,
) {
    let (block, tail) = (correlator.block(), correlator.tail());
    sums.clear();
    sums.resize(n.next_multiple_of(block), splat(0.0));
    for start in (0..n).step_by(block) {
        let length = block.min(n - start);
        correlator.correlate::<V>(
            &rows[start..start + block + tail],
            length,
            &mut sums[start..start + block],
            workspace,
        );
    }
}
