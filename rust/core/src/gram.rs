//! Inner products that are summed in a fixed order: the same bits on every processor, for any vector width and number
//! of threads.
//!
//! Linear algebra libraries choose their kernels, and so the order of their sums, by the processor. What is sampled
//! must not depend on it, because a certificate's numbers are compared bit by bit.

use rayon::prelude::*;

use crate::error::Result;
use crate::run::Run;

/// The number of terms that are summed side by side. The partial sums are then added from the first to the last.
const LANES: usize = 8;

/// Returns the Gram matrix G_ij = Σ_k `a_ik·a_jk` of `rows` vectors of equal length, row by row: symmetric, bit for
/// bit.
///
/// Formula: each entry is the sum of its products in a fixed order, without fused multiplications. Error: where no
/// entry is negative, each entry of G has an error of at most (m + 1)u of itself, m the length of a vector (Higham
/// 2002, Section 3.1); in general of at most that factor times Σ |a_ik·a_jk|. Entries before the later of both vectors'
/// first non-zero ones are skipped, so a triangular matrix costs only its non-zero entries.
///
/// # Errors
///
/// The errors of [`Run::check`].
///
/// # Panics
///
/// Panics if `entries` cannot be divided into `rows` vectors of equal length.
pub fn gram(entries: &[f64], rows: usize, run: &Run) -> Result<Vec<f64>> {
    assert!(rows > 0 && entries.len().is_multiple_of(rows), "rows of one length");
    let vectors: Vec<&[f64]> = entries.chunks_exact(entries.len() / rows).collect();
    let starts: Vec<usize> =
        vectors.iter().map(|row| row.iter().position(|entry| *entry != 0.0).unwrap_or(row.len())).collect();
    let mut products = vec![0.0; rows * rows];
    products.par_chunks_exact_mut(rows).enumerate().try_for_each(|(i, out)| {
        run.check()?;
        for (j, product) in out[..=i].iter_mut().enumerate() {
            // A term's lane is its index in the whole vectors, wherever the sum begins.
            let from = starts[i].max(starts[j]) / LANES * LANES;
            *product = inner(&vectors[i][from..], &vectors[j][from..]);
        }
        Ok(())
    })?;
    for i in 0..rows {
        for j in 0..i {
            products[j * rows + i] = products[i * rows + j];
        }
    }
    Ok(products)
}

/// Returns Σ_k `a_k·b_k`: each lane is summed separately, then the lanes from the first to the last.
fn inner(a: &[f64], b: &[f64]) -> f64 {
    let mut sums = [0.0; LANES];
    let (mut left, mut right) = (a.chunks_exact(LANES), b.chunks_exact(LANES));
    for (x, y) in left.by_ref().zip(right.by_ref()) {
        for lane in 0..LANES {
            sums[lane] += x[lane] * y[lane];
        }
    }
    for ((x, y), sum) in left.remainder().iter().zip(right.remainder()).zip(&mut sums) {
        *sum += x * y;
    }
    sums.iter().sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_are_those_of_the_definition() {
        for (rows, length) in [(1, 1), (3, 7), (5, 64), (20, 33)] {
            // The vectors are triangular, so that sums begin late: entries are small whole numbers, whose sums are
            // exact in any order.
            let entry =
                |i: usize, k: usize| if k < i { 0.0 } else { f64::from(u32::try_from((7 * i + 3 * k) % 11).unwrap()) };
            let entries: Vec<f64> = (0..rows).flat_map(|i| (0..length).map(move |k| entry(i, k))).collect();
            let found = gram(&entries, rows, &Run::default()).unwrap();
            for i in 0..rows {
                for j in 0..rows {
                    let exact: f64 = (0..length).map(|k| entry(i, k) * entry(j, k)).sum();
                    assert!((found[i * rows + j] - exact).abs() < 0.5, "{rows}, {length}: {i}, {j}");
                }
            }
        }
    }

    #[test]
    fn a_cancelled_run_ends() {
        let run = Run::default();
        run.cancel();
        assert!(gram(&[1.0; 4], 2, &run).is_err());
    }
}
