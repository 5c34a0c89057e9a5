//! How many sensitive records a batch holds: binomial and hypergeometric laws, kept in log space.
//!
//! This room takes a number of trials, or a population and the number of draws, and returns the probability of every
//! count with a bound on its error. It does not know about samplers. [`exact`] has the binomial law a second time, in
//! whole units, for numbers that are drawn by the thousand.
//!
//! Weights are built from the mode outwards by their ratios, so each has a relative error of a few u for every step
//! away from the mode, also where the weight itself underflows.

use crate::error::{domain, Error, Result};
use crate::special::{real, UNIT_ROUNDOFF};

pub mod exact;

/// The largest group that is accepted: laws of larger groups have too many components to be of use.
const MOST_TRIALS: u32 = 1_000_000;

/// A law on whole numbers with its relative error.
#[derive(Debug, Clone, PartialEq)]
pub struct Weights {
    /// The values that have positive probability, increasing.
    pub count: Vec<u32>,
    /// Their log probabilities.
    pub log_probability: Vec<f64>,
    /// Upper bound on the relative error of every probability.
    pub relative_error: f64,
}

impl Weights {
    /// Refuses a law whose probabilities do not sum to 1 within their errors: what is missing would be losses that nobody
    /// counts.
    ///
    /// # Errors
    /// [`Error::Numerics`].
    pub fn whole(&self) -> Result<()> {
        let sum: f64 = self.log_probability.iter().map(|log| log.exp()).sum();
        let rounding = 4.0 * UNIT_ROUNDOFF * (real(self.count.len()) + 16.0);
        if (sum - 1.0).abs() <= self.relative_error + rounding {
            return Ok(());
        }
        Err(Error::Numerics { reason: "the probabilities of a law of draws do not sum to 1" })
    }
}

/// Builds a law on `low..=high` from its ratios `p(j+1)/p(j)`, each known to `ratio_error` relatively.
fn from_ratios(low: u32, high: u32, mode: u32, ratio_error: f64, ratio: impl Fn(f64) -> f64) -> Weights {
    let mut log_relative = vec![0.0; (high - low + 1) as usize];
    // Linear products are more accurate than sums of logarithms; they are rescaled before they leave the normal range.
    let mut accumulate = |indices: &mut dyn Iterator<Item = u32>, step: &dyn Fn(u32) -> f64| {
        let (mut value, mut offset) = (1.0_f64, 0.0_f64);
        for j in indices {
            value *= step(j);
            if value < 1e-200 {
                value *= 1e200;
                offset -= 200.0 * std::f64::consts::LN_10;
            }
            log_relative[(j - low) as usize] = value.ln() + offset;
        }
    };
    accumulate(&mut (mode + 1..=high), &|j| ratio(f64::from(j - 1)));
    accumulate(&mut (low..mode).rev(), &|j| 1.0 / ratio(f64::from(j)));
    let total = log_relative.iter().map(|l| l.exp()).sum::<f64>().ln();
    let steps = f64::from(high - low) + 1.0;
    // Each step adds the ratio's own error, a product and a rescaling (3u). The logarithm of a number as small as e^-l
    // has an absolute error of u·l; the normalising sum adds at most u for each term.
    let span = log_relative.iter().fold(0.0_f64, |a, l| a.max(l.abs()));
    Weights {
        count: (low..=high).collect(),
        log_probability: log_relative.iter().map(|l| l - total).collect(),
        relative_error: 2.0 * steps * (ratio_error + 4.0 * UNIT_ROUNDOFF) + 8.0 * UNIT_ROUNDOFF * (span + 4.0),
    }
}

/// Returns the law of the number of successes in `trials` independent trials: Binomial(trials, probability).
///
/// * Domain: `trials` ≥ 1, 0 < `probability` ≤ 1, where `probability` may carry a relative error of 2u (a quotient).
///
/// # Errors
/// [`Error::Domain`] outside that domain.
pub fn binomial(trials: u32, probability: f64) -> Result<Weights> {
    if !(1..=MOST_TRIALS).contains(&trials) {
        return domain("trials", f64::from(trials), "between 1 and 1,000,000");
    }
    if !(probability > 0.0 && probability <= 1.0) {
        return domain("probability", probability, "greater than 0, at most 1");
    }
    if probability >= 1.0 {
        return Ok(Weights { count: vec![trials], log_probability: vec![0.0], relative_error: 0.0 });
    }
    let n = f64::from(trials);
    let odds = probability / (1.0 - probability);
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // between 0 and trials by construction
    let mode = ((n + 1.0) * probability).floor().clamp(0.0, n) as u32;
    // The odds magnify the relative error of the probability by 1/(1 − p).
    let ratio_error = UNIT_ROUNDOFF * (6.0 + 4.0 / (1.0 - probability));
    Ok(from_ratios(0, trials, mode, ratio_error, |j| (n - j) / (j + 1.0) * odds))
}

/// Returns the law of the number of marked records among `draws` drawn without replacement from `marked` marked and
/// `unmarked` other records: Hypergeometric.
///
/// * Domain: 1 ≤ `draws` ≤ `marked + unmarked`, all below 2⁵³.
///
/// # Errors
/// [`Error::Domain`] outside that domain.
pub fn hypergeometric(marked: u32, unmarked: u64, draws: u64) -> Result<Weights> {
    const EXACT: u64 = 1 << 53;
    let total = u64::from(marked) + unmarked.min(EXACT);
    if marked == 0 || unmarked >= EXACT || draws == 0 || draws > total {
        return domain("draws", real(draws), "between 1 and the number of records, with at least one marked record");
    }
    #[allow(clippy::cast_possible_truncation)] // both are at most `marked`, a u32
    let (low, high) = (draws.saturating_sub(unmarked) as u32, draws.min(u64::from(marked)) as u32);
    // exact: below 2^53
    let (k, w, b) = (f64::from(marked), real(unmarked), real(draws));
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // clamped to the support
    let mode = ((b + 1.0) * (k + 1.0) / (k + w + 2.0)).floor().clamp(f64::from(low), f64::from(high)) as u32;
    Ok(from_ratios(low, high, mode, 8.0 * UNIT_ROUNDOFF, |j| (k - j) * (b - j) / ((j + 1.0) * (w - b + j + 1.0))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn probabilities(weights: &Weights) -> Vec<f64> {
        weights.log_probability.iter().map(|l| l.exp()).collect()
    }

    #[test]
    fn binomial_matches_its_definition() {
        // Exact rationals: C(4, j) 3^(4−j) / 4^4 at p = 1/4.
        let exact = [81.0, 108.0, 54.0, 12.0, 1.0].map(|c| c / 256.0);
        let weights = binomial(4, 0.25).unwrap();
        for (computed, exact) in probabilities(&weights).iter().zip(exact) {
            assert!((computed / exact - 1.0).abs() <= weights.relative_error);
        }
        assert!(weights.relative_error < 1e-13);
    }

    #[test]
    fn binomial_keeps_weights_below_the_normal_range() {
        let weights = binomial(200, 1e-3).unwrap();
        let exact = 200.0 * 1e-3_f64.ln(); // p^200 = 1e-600
        let last = *weights.log_probability.last().unwrap();
        assert!((last - exact).abs() < 1e-10, "{last} {exact}");
    }

    #[test]
    fn hypergeometric_matches_counting() {
        // 3 draws from 2 marked and 4 others: C(2,j)·C(4,3−j)/C(6,3).
        let exact = [4.0, 12.0, 4.0].map(|c| c / 20.0);
        let weights = hypergeometric(2, 4, 3).unwrap();
        for (computed, exact) in probabilities(&weights).iter().zip(exact) {
            assert!((computed / exact - 1.0).abs() <= weights.relative_error);
        }
        // With one other record, 2 of 3 draws must be marked at least once.
        assert_eq!(hypergeometric(2, 1, 2).unwrap().count, vec![1, 2]);
    }

    #[test]
    fn refuses_what_has_no_law() {
        assert!(binomial(0, 0.5).is_err());
        assert!(binomial(1, 0.0).is_err());
        assert!(binomial(1, f64::NAN).is_err());
        assert!(hypergeometric(1, 4, 6).is_err());
        assert!(hypergeometric(0, 4, 2).is_err());
    }

    #[test]
    fn a_law_that_lacks_a_value_is_refused() {
        for whole in [binomial(7, 0.3).unwrap(), hypergeometric(6, 20, 9).unwrap(), binomial(40, 1e-9).unwrap()] {
            assert!(whole.whole().is_ok());
            let mut wrong = whole.clone();
            wrong.log_probability[0] += 1e-9;
            assert!(wrong.whole().is_err());
            wrong.log_probability.pop();
            wrong.log_probability[0] = f64::NAN;
            assert!(wrong.whole().is_err());
        }
    }
}
