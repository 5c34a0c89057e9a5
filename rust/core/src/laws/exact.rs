//! The binomial law of how many of m records join, in whole units of 2⁻⁶³, so that the law of what is drawn is known
//! exactly.
//!
//! Monte Carlo draws thousands of these numbers for one sample, and a difference in any of them may decide whether a
//! batch is truncated. With probabilities of 53 bits, the total error would exceed a small δ. So the law is computed
//! with twice the digits of a double and rounded to whole units of 2⁻⁶³; drawing by these units adds no further error.

use crate::error::{domain, Result};
use crate::special::{real, UNIT_ROUNDOFF};

/// The number of units that make up a probability of 1: 2⁶³.
pub const UNITS: u64 = 1 << 63;
/// The widest law that is accepted: tables of wider laws would not fit into a processor's caches.
const WIDEST: f64 = 1e6;

/// An unevaluated sum of two doubles, the second below half a unit of the first: each operation here is within 2⁻¹⁰⁰
/// relatively.
///
/// Source: Dekker 1971; Knuth, TAOCP 2, 4.2.2, Theorem B (sums); products with one fused operation.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Double(f64, f64);

impl Double {
    fn sum(a: f64, b: f64) -> Self {
        let s = a + b;
        let c = s - a;
        Self(s, (a - (s - c)) + (b - c))
    }

    fn plus(self, other: Self) -> Self {
        let Self(high, low) = Self::sum(self.0, other.0);
        Self::sum(high, low + self.1 + other.1)
    }

    fn times(self, other: Self) -> Self {
        let product = self.0 * other.0;
        let rest = self.0.mul_add(other.0, -product) + (self.0 * other.1 + self.1 * other.0);
        Self::sum(product, rest)
    }

    fn over(self, other: Self) -> Self {
        let first = self.0 / other.0;
        let product = other.times(Self(first, 0.0));
        let rest = ((self.0 - product.0) - product.1) + self.1;
        Self::sum(first, rest / other.0)
    }
}

/// The odds that a record joins: the ratio of the probability to join to the probability to stay out.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Odds {
    join: Double,
    stay: Double,
}

impl Odds {
    /// Returns the odds p : 1 − p.
    pub fn of(probability: f64) -> Self {
        Self { join: Double(probability, 0.0), stay: Double::sum(1.0, -probability) }
    }

    /// Returns the odds a·factor : b, where the product keeps all its digits; the factor is 1 for plain ratios.
    pub fn ratio(a: f64, factor: f64, b: f64) -> Self {
        Self { join: Double(a, 0.0).times(Double(factor, 0.0)), stay: Double(b, 0.0) }
    }

    /// Returns whether every record joins with certainty.
    pub fn certain(&self) -> bool {
        self.stay.0 <= 0.0
    }

    /// Returns the probability to join, to the precision of a double.
    fn probability(&self) -> f64 {
        self.join.0 / (self.join.0 + self.stay.0)
    }
}

/// Returns half the width of the window that a law is tabulated on: Pr[|X − mean| > w] ≤ 2e^{−t²/(2(v + t/3))} ≤ 2e⁻⁴⁵
/// < 2⁻⁶³ for t = 10√v + 64 (Bernstein), since t² − 90v − 30t > 0; the mode is within 1 of the mean.
fn half_width(trials: u64, odds: &Odds) -> f64 {
    let p = odds.probability();
    let variance = real(trials) * p * (1.0 - p);
    (10.0 * variance.sqrt() * (1.0 + 1e-9) + 66.0).ceil()
}

/// Returns an upper bound on the total variation between Bin(trials, ·) and the law that [`units`] returns: one unit
/// for each value of the window (the mode compensates for what is rounded down), one for the tails, and one for the
/// arithmetic (2⁻⁹⁷ for each of a million steps).
pub fn variation(trials: u64, odds: &Odds) -> f64 {
    if odds.certain() {
        return 0.0;
    }
    (2.0 * half_width(trials, odds) + 3.0) * 2f64.powi(-63)
}

/// Checks that the law of this many records is narrow enough to be tabulated.
///
/// # Errors
/// [`Error::Domain`] if its window has more than a million values.
pub fn check_width(trials: u64, odds: &Odds) -> Result<()> {
    if odds.certain() || 2.0 * half_width(trials, odds) <= WIDEST {
        return Ok(());
    }
    let value = real(trials);
    let allowed = "fewer: batches vary by so much that their sizes cannot be tabulated";
    domain("records", value, allowed)
}

/// Returns the law relative to its mode: the first value, the position of the mode, and the values from `low` to
/// `high`; each side ends early where the law falls below `least`.
fn relative(trials: u64, odds: &Odds, (low, high): (f64, f64), least: f64) -> (f64, usize, Vec<Double>) {
    let m = real(trials);
    let mode = mode(m, odds);
    let ratio = odds.join.over(odds.stay);
    let step = |j: f64| Double(m - j, 0.0).over(Double(j + 1.0, 0.0)).times(ratio);
    let (mut above, mut below) = (vec![Double(1.0, 0.0)], Vec::new());
    let (mut value, mut j) = (Double(1.0, 0.0), mode);
    while j < high && value.0 >= least {
        value = value.times(step(j));
        j += 1.0;
        above.push(value);
    }
    (value, j) = (Double(1.0, 0.0), mode);
    while j > low && value.0 >= least {
        j -= 1.0;
        value = value.over(step(j));
        below.push(value);
    }
    let place = below.len();
    below.reverse();
    below.append(&mut above);
    (j, place, below)
}

fn mode(m: f64, odds: &Odds) -> f64 {
    ((m + 1.0) * odds.probability()).floor().clamp(0.0, m)
}

/// Returns Bin(trials, ·) as doubles: the first value, and the probabilities from there until they are below 1e-290.
///
/// * Domain: as [`units`].
/// * Guarantee: each probability is within 4u, relatively; what is left out is below 1e-280 in total.
///
/// # Errors
/// As [`check_width`].
pub fn probabilities(trials: u64, odds: &Odds) -> Result<(u64, Vec<f64>)> {
    check_width(trials, odds)?;
    let (low, _, law) = relative(trials, odds, (0.0, real(trials)), 1e-290);
    let total = law.iter().fold(Double(0.0, 0.0), |sum, v| sum.plus(*v));
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // a whole number below 2^53
    Ok((low as u64, law.iter().map(|v| v.over(total).0).collect()))
}

/// Returns an upper bound on Pr[X ≥ count], X ~ Bin(trials, probability).
///
/// * Domain: up to 2⁵³ trials and a probability in [0, 1], which is taken as exact.
/// * Guarantee: never below the tail; above it by at most (m + 16)u relatively, where m is the number of values that
///   the law is tabulated at, and by 2e-280.
/// * Source: the tail is Σ_{r ≥ count} Pr[X = r], summed from the least term on; a sum of m positive terms that are
///   each within 4u is within (m + 4)u, to first order.
///
/// # Errors
/// [`Error::Domain`] outside the domain, and as [`check_width`].
pub fn upper_tail(trials: u64, probability: f64, count: u64) -> Result<f64> {
    if !(0.0..=1.0).contains(&probability) {
        return domain("probability", probability, "from 0 to 1");
    }
    if trials > 1 << 53 {
        return domain("trials", real(trials), "at most 2^53");
    }
    if count == 0 {
        return Ok(1.0);
    }
    if count > trials || probability <= 0.0 {
        return Ok(0.0);
    }
    let odds = Odds::of(probability);
    if odds.certain() {
        return Ok(1.0);
    }
    let (first, law) = probabilities(trials, &odds)?;
    let skipped = usize::try_from(count.saturating_sub(first)).unwrap_or(usize::MAX).min(law.len());
    let tail: f64 = law[skipped..].iter().rev().sum();
    let rounding = UNIT_ROUNDOFF * (real(law.len()) + 16.0);
    Ok((tail * (1.0 + rounding) + 2e-280).min(1.0))
}

/// Returns Bin(trials, ·) in units of 2⁻⁶³: the first value of its window, and the units of each value from there,
/// which sum to 2⁶³.
///
/// * Domain: trials from 1 to 2⁵³, odds that are not [`Odds::certain`].
/// * Guarantee: within [`variation`] of the law in total variation.
pub fn units(trials: u64, odds: &Odds) -> (u64, Vec<u64>) {
    let m = real(trials);
    let (mode, width) = (mode(m, odds), half_width(trials, odds));
    let (low, place, below) = relative(trials, odds, ((mode - width).max(0.0), (mode + width).min(m)), 0.0);
    let total = below.iter().fold(Double(0.0, 0.0), |sum, v| sum.plus(*v));
    let scale = 2f64.powi(63);
    let mut law: Vec<u64> = below
        .iter()
        .map(|v| {
            let Double(high, low) = v.over(total);
            let (high, low) = (high * scale, low * scale);
            let whole = high.floor();
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // from 0 to 2⁶³
            let units = (whole as i128 + ((high - whole) + low).floor() as i128).max(0) as u64;
            units
        })
        .collect();
    law[place] = 0;
    law[place] = UNITS.saturating_sub(law.iter().sum());
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // a whole number below 2^53
    (low as u64, law)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns C(m, j)·a^j·c^(m−j) over (a + c)^m, exactly, in units of 2⁻⁶³ rounded down.
    fn exact(m: u32, a: u128, c: u128) -> Vec<u128> {
        let total = (a + c).pow(m);
        let mut ways = 1u128;
        (0..=m)
            .map(|j| {
                let found = ways * a.pow(j) * c.pow(m - j);
                ways = ways * u128::from(m - j) / u128::from(j + 1);
                // Long division gives 63 more bits.
                let (mut quotient, mut rest) = (0u128, found);
                for _ in 0..63 {
                    rest *= 2;
                    quotient = 2 * quotient + rest / total;
                    rest %= total;
                }
                quotient
            })
            .collect()
    }

    #[test]
    fn laws_are_exact_to_a_unit() {
        for (m, a, c) in [(1, 1, 3), (12, 1, 3), (30, 1, 7), (25, 5, 3), (40, 1, 1), (3, 15, 1), (20, 1, 31)] {
            let (numerator, denominator) = (real(a), real(c));
            for odds in [Odds::of(numerator / (numerator + denominator)), Odds::ratio(numerator, 1.0, denominator)] {
                let (first, law) = units(u64::from(m), &odds);
                assert_eq!((first, law.iter().sum::<u64>()), (0, UNITS));
                let expected = exact(m, a, c);
                assert_eq!(law.len(), expected.len());
                let mode = law.iter().enumerate().max_by_key(|(_, units)| **units).unwrap().0;
                for (j, (got, wanted)) in law.iter().zip(&expected).enumerate() {
                    let slack = if j == mode { law.len() as u128 } else { 1 };
                    assert!(u128::from(*got).abs_diff(*wanted) <= slack, "{m} {a}:{c} {j} {got} {wanted}");
                }
            }
        }
    }

    #[test]
    fn thirds_are_not_those_of_a_double() {
        // 1/3 as odds 1 : 2 keeps all its digits.
        let (_, law) = units(1, &Odds::ratio(1.0, 1.0, 2.0));
        assert_eq!(law[1], UNITS / 3);
    }

    #[test]
    fn wide_laws_have_their_moments() {
        for (m, p) in [(14_745_599u64, 1.254_865_402_912_93e-4), (1_000_000, 0.5), (65_536, 0.999), (1 << 40, 1e-9)] {
            let (first, law) = units(m, &Odds::of(p));
            let scale = 2f64.powi(-63);
            let mean: f64 = law.iter().zip(0u32..).map(|(u, j)| real(*u) * scale * f64::from(j)).sum::<f64>();
            let expected = real(m) * p - real(first);
            assert!((mean / expected - 1.0).abs() < 1e-12);
            let square: f64 =
                law.iter().zip(0u32..).map(|(u, j)| real(*u) * scale * (f64::from(j) - mean).powi(2)).sum();
            assert!((square / (real(m) * p * (1.0 - p)) - 1.0).abs() < 1e-11);
            assert_eq!(law.iter().sum::<u64>(), UNITS);
        }
    }

    /// Returns Pr[Bin(m, a/2^b) ≥ k] in exact whole numbers, over 2^(bm).
    fn tail(m: u32, a: u128, b: u32, k: u32) -> f64 {
        let stay = (1u128 << b) - a;
        let mut ways = 1u128;
        let mut sum = 0u128;
        for j in 0..=m {
            if j >= k {
                sum += ways * a.pow(j) * stay.pow(m - j);
            }
            ways = ways * u128::from(m - j) / u128::from(j + 1);
        }
        real(sum) / 2f64.powf(f64::from(b * m))
    }

    #[test]
    fn tails_are_those_of_the_law_from_above() {
        for (m, a, b) in [(1, 1, 2), (12, 1, 4), (30, 3, 4), (40, 1, 1), (25, 5, 3)] {
            let probability = real(a) / f64::from(1u32 << b);
            for k in 0..=m + 1 {
                let (expected, found) =
                    (tail(m, a, b, k), upper_tail(u64::from(m), probability, u64::from(k)).unwrap());
                assert!(found >= expected * (1.0 - 1e-15), "{m} {a}/2^{b} {k}: {found} {expected}");
                assert!(found <= expected * (1.0 + 1e-13) + 2e-280, "{m} {a}/2^{b} {k}: {found} {expected}");
            }
        }
        assert!(upper_tail(9, 0.0, 1).unwrap() <= 0.0 && upper_tail(9, 1.0, 9).unwrap() >= 1.0);
        assert!(upper_tail(9, 1.5, 1).is_err() && upper_tail(1 << 54, 0.5, 1).is_err());
        // So far out, all that remains is the allowance for what the table leaves out.
        assert!((upper_tail(1000, 1e-6, 900).unwrap() / 2e-280 - 1.0).abs() < 1e-12);
    }

    #[test]
    fn what_is_too_wide_is_refused() {
        assert!(check_width(1 << 50, &Odds::of(0.5)).is_err());
        assert!(check_width(1 << 50, &Odds::of(1.0)).is_ok());
        assert!(check_width(14_745_599, &Odds::of(1e-4)).is_ok());
    }
}
