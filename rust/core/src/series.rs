//! Quotients of power series, which are the columns of inverses of Toeplitz matrices.

use crate::error::Result;
use crate::run::Run;

/// The number of coefficients between two checks whether the work was cancelled.
const STRIDE: usize = 1024;

/// Returns the first n coefficients q of a(x)/c(x), n the length of `series` a, `divisor` c with c_0 ≠ 0.
///
/// Formula: `q_i` = (a_i − Σ_{0 < j < b} `c_j·q_{i−j}`)/c_0, each sum from its oldest term to its newest, with 1/c_0
/// and the c_j/c_0 rounded first, without fused multiplications: the same bits on every processor (and those of scipy's
/// `lfilter`, whose transposed form this is). Error: where a ≥ 0, c_0 > 0 and no other `c_j` is positive, all terms
/// have one sign, and `q_i` is off by at most about 3(i + 1)(b + 1)u of itself; in general no bound is given. Time
/// O(n·b). Overflow shows as ∞ or NaN.
///
/// # Errors
///
/// The errors of [`Run::check`].
///
/// # Panics
///
/// Panics if the divisor is empty.
pub fn quotient(series: &[f64], divisor: &[f64], run: &Run) -> Result<Vec<f64>> {
    let (first, rest) = divisor.split_first().expect("a divisor has coefficients");
    let scale = 1.0 / first;
    let rest: Vec<f64> = rest.iter().map(|c| c / first).collect();
    let mut quotients = Vec::with_capacity(series.len());
    // `owed` holds the contributions of known coefficients to later ones, with one entry that stays empty.
    let mut owed = vec![0.0; rest.len() + 1];
    for (i, a) in series.iter().enumerate() {
        if i % STRIDE == 0 {
            run.check()?;
        }
        let q = owed[0] + scale * a;
        for (j, c) in rest.iter().enumerate() {
            owed[j] = owed[j + 1] - q * c;
        }
        quotients.push(q);
    }
    Ok(quotients)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_give_the_series_back() {
        let run = Run::default();
        let divisor = [2.0, -0.5, 0.25, -1.0];
        let series: Vec<f64> = (0..40).map(|i| f64::from(i % 7) - 2.0).collect();
        let found = quotient(&series, &divisor, &run).unwrap();
        for (i, a) in series.iter().enumerate() {
            let product: f64 = divisor.iter().take(i + 1).enumerate().map(|(j, c)| c * found[i - j]).sum();
            let size: f64 = divisor.iter().take(i + 1).enumerate().map(|(j, c)| (c * found[i - j]).abs()).sum();
            assert!((product - a).abs() <= 1e-14 * (size + a.abs()), "{i}");
        }
    }

    #[test]
    fn small_ones_are_exact() {
        let run = Run::default();
        // 1/(1 − 2x) and 3/2.
        let powers = quotient(&[1.0, 0.0, 0.0, 0.0], &[1.0, -2.0], &run).unwrap();
        assert_eq!(powers, [1.0, 2.0, 4.0, 8.0]);
        assert_eq!(quotient(&[3.0, 1.0], &[2.0], &run).unwrap(), [1.5, 0.5]);
        assert!(quotient(&[], &[1.0, 1.0], &run).unwrap().is_empty());
    }
}
