//! How many coins in a row show tails: geometric numbers, exactly.
//!
//! G, the number of tails before the first heads, has Pr[G ≥ j] = (1 − p)^j. For a uniform real U in [0, 1) that is the
//! law of
//!
//!   G = #{j ≥ 1 : U < (1 − p)^j},
//!
//! since the powers fall with j. U's binary digits are drawn 64 at a time, no more than needed to decide. Almost always
//! a logarithm of the first 64 digits determines G, within an error that is bounded below; where it does not, U is
//! compared with (1 − p)^j itself, which is a binary fraction, enclosed to more and more digits. So G is a function of
//! U's digits alone: it depends on no rounding and on no library's logarithm, and its law is exact.
//!
//! **The logarithm.** Let the first word be u ≥ 2¹⁰, so U = (u + θ)/2⁶⁴ with 0 ≤ θ < 1, λ = −ln(1 − p) and y =
//! −ln(U)/λ. Then G is the number of whole j with 1 ≤ j < y. The double x̂ next to u/2⁶⁴ has a relative error of 2⁻⁵³
//! at most, so L̂ = −ln x̂, which `libm` computes to less than one unit in the last place, as it does λ̂ (the FreeBSD
//! msun algorithms), has |L̂ + ln U| ≤ 2⁻⁵²·L̂ + 2⁻⁵² + 1/u; with the relative error 2⁻⁵² of λ̂ and those of a
//! quotient, a product and sums, |L̂/λ̂ − y| < (2⁻⁴⁹(L̂ + 1) + 2/u)/λ̂, with a factor of two to spare. Where no whole
//! number lies between the two bounds, G is their common floor.
//!
//! **The words drawn** do not depend on the precision either: a comparison draws a word only where (1 − p)^j lies
//! strictly inside of the interval that U is in by the digits so far. Whatever powers are compared with, digits are
//! drawn until U's interval lies between two neighbouring powers (or below the last one that matters), and no further.

use crate::special::real;
use rand_chacha::rand_core::Rng;

use crate::batches::fraction;
use crate::error::{domain, Result};

/// First words below this give too little information for a logarithm.
const LEAST: u64 = 1 << 10;

/// 2⁻⁶⁴, the last place of U's first word.
const UNIT: f64 = 1.0 / 18_446_744_073_709_551_616.0;

/// Checks that a probability is one that a coin can have.
///
/// # Errors
/// [`Error::Domain`] outside of (0, 1].
pub fn check(probability: f64) -> Result<()> {
    if probability > 0.0 && probability <= 1.0 {
        return Ok(());
    }
    domain("probability", probability, "greater than 0 and at most 1")
}

/// The gaps between heads of a coin.
#[derive(Debug, Clone)]
pub struct Gaps {
    /// 1 − p, exactly; `None` where p = 1.
    missed: Option<Vec<u64>>,
    /// λ = −ln(1 − p).
    rate: f64,
    /// The factor by which the bound on the logarithm's error is widened: 1 except in tests.
    widened: f64,
}

impl Gaps {
    /// Creates the gaps of a coin that shows heads with a probability in (0, 1].
    ///
    /// # Errors
    /// [`Error::Domain`] for other probabilities.
    pub fn new(probability: f64) -> Result<Self> {
        check(probability)?;
        let missed = (probability < 1.0).then(|| fraction::complement(&fraction::of(probability)));
        Ok(Self { missed, rate: -libm::log1p(-probability), widened: 1.0 })
    }

    /// Returns min(G, most): how many of the next `most` coins show tails before one shows heads. In O(1).
    pub fn draw(&self, generator: &mut impl Rng, most: u64) -> u64 {
        let Some(missed) = &self.missed else { return 0 };
        if most == 0 {
            return 0;
        }
        let word = generator.next_u64();
        let (low, high) = self.enclosed(word);
        if low >= most {
            return most;
        }
        if low == high {
            return low;
        }
        searched(missed, generator, word, low, high.min(most))
    }

    /// Returns whole numbers between which G lies, given U's first word.
    // Casts saturate, and the precision is that of the bound.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    fn enclosed(&self, word: u64) -> (u64, u64) {
        if word < LEAST {
            return (0, u64::MAX);
        }
        let logarithm = -libm::log(real(word) * UNIT);
        let error = (1.0 / 562_949_953_421_312.0 * (logarithm + 1.0) + 2.0 / real(word)) / self.rate * self.widened;
        let middle = logarithm / self.rate;
        ((middle - error) as u64, (middle + error) as u64)
    }
}

/// Returns the largest j from `low` to `high` with U < (1 − p)^j; `low` satisfies this.
fn searched(missed: &[u64], generator: &mut impl Rng, word: u64, mut low: u64, mut high: u64) -> u64 {
    let mut digits = vec![word];
    while low < high {
        let middle = low + (high - low).div_ceil(2);
        if below(missed, generator, &mut digits, middle) {
            low = middle;
        } else {
            high = middle - 1;
        }
    }
    low
}

/// Returns whether U < (1 − p)^j, and draws further digits of U where the digits so far do not decide.
///
/// The loop terminates: if (1 − p)^j = x is an end of U's interval, x has no more digits than U, and is exact once as
/// many are computed; otherwise an enclosure that is narrow enough decides on which side of both ends x lies.
fn below(missed: &[u64], generator: &mut impl Rng, digits: &mut Vec<u64>, j: u64) -> bool {
    let mut width = missed.len().max(digits.len());
    loop {
        let (least, largest) = (fraction::power(missed, j, width, false), fraction::power(missed, j, width, true));
        let mut next = digits.clone();
        let proper = fraction::successor(&mut next);
        if !fraction::less(digits, &largest) {
            return false;
        }
        if proper && !fraction::less(&least, &next) {
            return true;
        }
        if fraction::less(digits, &least) && (!proper || fraction::less(&largest, &next)) {
            digits.push(generator.next_u64());
            width = width.max(digits.len());
        } else {
            width *= 2;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batches::tests::Words;
    use crate::batches::{Streams, Use};
    use crate::secret::SecretKey;

    const PROBABILITIES: [f64; 8] = [1e-300, 1e-7, 1.356e-4, 0.01, 0.3, 0.5, 0.75, 1.0 - f64::EPSILON];

    fn coarse(probability: f64, widened: f64) -> Gaps {
        Gaps { widened, ..Gaps::new(probability).unwrap() }
    }

    /// The same words give the same gaps, whether the logarithm's error bound is as proven, much wider, or infinite.
    #[test]
    fn gaps_do_not_depend_on_the_precision() {
        let streams = Streams::new(SecretKey::new([5; 32]));
        for (round, p) in (0..).zip(PROBABILITIES) {
            for widened in [1e9, 1e13, f64::INFINITY] {
                let (mut once, mut twice) = (streams.of(Use::Draw, round), streams.of(Use::Draw, round));
                let (exact, slow) = (Gaps::new(p).unwrap(), coarse(p, widened));
                for k in 0..300 {
                    let most = [7, 1_000, 14_745_600, 1 << 50][k % 4];
                    assert_eq!(exact.draw(&mut once, most), slow.draw(&mut twice, most), "{p}, {k}");
                }
                assert_eq!(once.get_word_pos(), twice.get_word_pos());
            }
        }
    }

    /// Words next to powers: if one more word is needed to decide, exactly that word is drawn. One limb, with which
    /// comparisons begin, is too few for these powers.
    #[test]
    fn words_beside_a_power_are_continued() {
        let gaps = Gaps::new(0.01).unwrap();
        let missed = fraction::complement(&fraction::of(0.01));
        for j in [3, 500, 2000] {
            let power = fraction::power(&missed, j, 9, false);
            let inside = power[0];
            assert_eq!(gaps.draw(&mut Words::new(&[inside - 1]), u64::MAX), j);
            assert_eq!(gaps.draw(&mut Words::new(&[inside + 1]), u64::MAX), j - 1);
            assert_eq!(gaps.draw(&mut Words::new(&[inside, power[1] - 1]), u64::MAX), j);
            assert_eq!(gaps.draw(&mut Words::new(&[inside, power[1] + 1]), u64::MAX), j - 1);
            if power[2] > 0 {
                assert_eq!(gaps.draw(&mut Words::new(&[inside, power[1], power[2] - 1]), u64::MAX), j);
            }
            // Nothing is decided beyond the last coin.
            assert_eq!(gaps.draw(&mut Words::new(&[inside]), j - 1), j - 1);
        }
    }

    /// If the power is an end of U's interval, it is exact: one word decides between U ≥ 2^{−j} and U < 2^{−j}.
    #[test]
    fn powers_of_two_are_exact() {
        for widened in [1.0, f64::INFINITY] {
            let gaps = coarse(0.5, widened);
            for j in 1..60 {
                let word = 1_u64 << (64 - j);
                assert_eq!(gaps.draw(&mut Words::new(&[word]), 1000), j - 1);
                assert_eq!(gaps.draw(&mut Words::new(&[word - 1]), 1000), j);
            }
            assert_eq!(gaps.draw(&mut Words::new(&[0, 1 << 63]), 1000), 64);
            assert_eq!(gaps.draw(&mut Words::new(&[0]), 64), 64);
        }
        assert_eq!(Gaps::new(1.0).unwrap().draw(&mut Words::new(&[]), 9), 0);
        assert_eq!(Gaps::new(0.2).unwrap().draw(&mut Words::new(&[]), 0), 0);
        assert!(Gaps::new(0.0).is_err() && Gaps::new(f64::NAN).is_err() && Gaps::new(1.1).is_err());
    }
}
