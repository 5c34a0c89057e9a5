//! Moments of the likelihood ratio under Poisson sampling, for records that are removed.
//!
//! With w = Bin(k, q), the law of how many records of a group are drawn, and whole a:
//!
//! * Any pair (P, Q), k = 1: the sampled ratio is 1 − q + q·P/Q, so E_Q[(1 − q + q·P/Q)^a] = Σ_j C(a, j)(1 − q)^{a−j} q^j
//!   e^{(j−1)D_j}, where (j − 1)D_j is 0 for j ≤ 1. As the binomial weights sum to 1, it is 1 + Σ_{j≥2} C(a, j)(1 − q)^{a−j} q^j
//!   (e^{(j−1)D_j} − 1): positive terms.
//! * Gaussian noise, any k: E_Q[(Σ_j w_j e^{(jy − j²/2)/σ²})^a] is a sum over a-tuples of Πw_j·exp(Σ_{r<s} j_r j_s/σ²), and
//!   2Σ_{r<s} j_r j_s = J² − Σ j_r² with J = Σ j_r. So it is Σ_J c_J e^{J²/2σ²}, c the a-fold convolution of w_j e^{−j²/2σ²}.
//!
//! For orders between whole ones, the chord of ln E between them is a bound (`moments`).
//!
//! Rounding: the binomial law states its error, and sums are raised by more than the rounding of their exponents.

use crate::error::Result;
use crate::laws::binomial;
use crate::pair::moments::{log_expm1, log_sum, shifted, RELATIVE};
use crate::run::Run;
use crate::special::UNIT_ROUNDOFF;

/// The largest order for which these sums are used.
pub(super) const MOST_TERMS: f64 = 4096.0;
/// The most products in a convolution.
const MOST_WORK: f64 = 6e7;
/// The rounding of an exponent, relatively.
const OF_EXPONENTS: f64 = 16.0 * UNIT_ROUNDOFF;

/// Returns the smaller one of two bounds: by chords between whole orders, and the integral of the profile.
///
/// `None` for orders beyond [`MOST_TERMS`], and if neither is known.
///
/// # Errors
/// Those of both bounds.
pub(super) fn bounded(
    order: f64,
    whole: impl Fn(u32) -> Result<Option<f64>>,
    integrated: impl FnOnce() -> Result<Option<f64>>,
) -> Result<Option<f64>> {
    if order.ceil() > MOST_TERMS {
        return Ok(None);
    }
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // from 1 to 4096
    let (low, high) = (order.floor() as u32, order.ceil() as u32);
    let top = whole(high)?;
    if low == high && top.is_some() {
        return Ok(top);
    }
    let bottom = if low == 1 { Some(0.0) } else { whole(low)? };
    let share = order - f64::from(low);
    let chord = top.zip(bottom).map(|(top, bottom)| ((1.0 - share) * bottom + share * top) * (1.0 + RELATIVE));
    let integrated = integrated()?;
    Ok(match (chord, integrated) {
        (Some(chord), Some(integrated)) => Some(chord.min(integrated)),
        (one, other) => one.or(other),
    })
}

/// Returns ln E for one record that is drawn with probability q < 1, from (j − 1)D_j for j = 2, …, a.
///
/// # Errors
/// Those of [`binomial`].
pub(super) fn of_one(probability: f64, moments: &[f64]) -> Result<f64> {
    let order = u32::try_from(moments.len() + 1).unwrap_or(u32::MAX);
    let weights = binomial(order, probability)?;
    let (mut terms, mut size) = (Vec::with_capacity(moments.len()), 0.0_f64);
    for (log, moment) in weights.log_probability.iter().skip(2).zip(moments) {
        size = size.max(log.abs() + moment);
        terms.push(log + log_expm1(moment * (1.0 + RELATIVE)));
    }
    let error = weights.relative_error + OF_EXPONENTS * (64.0 + size);
    Ok(shifted(log_sum(&terms) + error) * (1.0 + RELATIVE))
}

/// Returns ln E for Gaussian noise and a group of k records of which each is drawn with probability q; `None` if the sum would
/// be too long.
///
/// # Errors
/// Those of [`binomial`]; as [`Run::check`].
pub(super) fn of_group(group: u32, probability: f64, noise: f64, order: u32, run: &Run) -> Result<Option<f64>> {
    let (a, k, spread) = (f64::from(order), f64::from(group), 2.0 * noise * noise);
    if 0.5 * a * a * k * k > MOST_WORK {
        return Ok(None);
    }
    let law = binomial(group, probability)?;
    let drawn = law.count.iter().zip(&law.log_probability);
    let weights: Vec<f64> = drawn.map(|(&j, log)| log - f64::from(j) * f64::from(j) / spread).collect();
    // `binomial` leaves out what cannot occur: all counts but k where q is 1.
    let first = law.count[0];
    let mut sums = vec![0.0];
    let mut terms = Vec::with_capacity(weights.len());
    for _ in 0..order {
        run.check()?;
        let mut next = Vec::with_capacity(sums.len() + weights.len());
        for j in 0..sums.len() + weights.len() - 1 {
            terms.clear();
            let from = (j + 1).saturating_sub(weights.len());
            terms.extend((from..=j.min(sums.len() - 1)).map(|i| sums[i] + weights[j - i]));
            next.push(log_sum(&terms));
        }
        sums = next;
    }
    let last = f64::from(order) * f64::from(first);
    let terms: Vec<f64> = (0_u32..).zip(&sums).map(|(j, sum)| sum + (last + f64::from(j)).powi(2) / spread).collect();
    let largest = weights.iter().fold(0.0_f64, |most, weight| most.max(weight.abs()));
    let size = a * (largest + k) + (a * k) * (a * k) / spread;
    Ok(Some(log_sum(&terms).max(0.0) + a * law.relative_error + OF_EXPONENTS * (64.0 + size)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns ln E_Q[(Σ_j w_j e^{(jy − j²/2)/σ²})^a] by quadrature of the densities.
    fn quadrature(group: u32, q: f64, noise: f64, a: f64) -> f64 {
        let weight = |j: u32| {
            let choices = (0..j).map(|i| f64::from(group - i) / f64::from(i + 1)).product::<f64>();
            choices * q.powi(j.cast_signed()) * (1.0 - q).powi((group - j).cast_signed())
        };
        let step = 0.01;
        let sum: f64 = (-2000..4000)
            .map(|k| f64::from(k) * step)
            .map(|y| {
                let ratio = |j: f64| (j * y / noise - j * j / (2.0 * noise * noise)).exp();
                let mixed: f64 = (0..=group).map(|j| weight(j) * ratio(f64::from(j))).sum();
                mixed.powf(a) * (-y * y / 2.0).exp()
            })
            .sum();
        (sum * step / (2.0 * std::f64::consts::PI).sqrt()).ln()
    }

    #[test]
    fn groups_and_single_records_are_those_of_the_densities() {
        let run = Run::default();
        for (q, noise) in [(0.01, 1.0), (0.1, 2.0), (0.5, 2.0), (0.9, 5.0)] {
            for a in [2_u32, 3, 5] {
                let moments: Vec<f64> =
                    (2..=a).map(|j| f64::from(j) * f64::from(j - 1) / (2.0 * noise * noise)).collect();
                let truth = quadrature(1, q, noise, f64::from(a));
                for found in [of_one(q, &moments).unwrap(), of_group(1, q, noise, a, &run).unwrap().unwrap()] {
                    assert!(found >= truth * (1.0 - 1e-9) - 1e-12, "{q} {noise} {a} {found} {truth}");
                    assert!(found <= truth * (1.0 + 1e-7) + 1e-12, "{q} {noise} {a} {found} {truth}");
                }
                let (found, truth) =
                    (of_group(3, q, noise, a, &run).unwrap().unwrap(), quadrature(3, q, noise, f64::from(a)));
                assert!(found >= truth * (1.0 - 1e-9) && found <= truth * (1.0 + 1e-7), "{q} {noise} {a}");
            }
        }
    }

    #[test]
    fn a_group_that_is_always_drawn_is_gaussian_and_long_sums_are_not_begun() {
        let found = of_group(3, 1.0, 2.0, 4, &Run::default()).unwrap().unwrap();
        let exact = 4.0 * 3.0 * 9.0 / 8.0;
        assert!(found >= exact && found <= exact * (1.0 + 1e-11), "{found}");
        assert!(of_group(1000, 0.5, 2.0, 4096, &Run::default()).unwrap().is_none());
    }
}
