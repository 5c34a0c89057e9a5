//! Coins that show heads with a rational probability, exactly.

use rand_chacha::rand_core::Rng;

use crate::batches::{fraction, gaps};
use crate::error::Result;

/// A coin that shows heads with probability `numerator/denominator`.
///
/// Heads is U < t for a uniform real number U, whose binary digits are drawn 64 at a time, and the threshold t, whose
/// digits come from long division, 64 at a time. The first limbs that differ decide; while they are equal both are
/// continued. If the remainder of the division is 0, all further digits of t are 0, and U ≥ t. So Pr[heads] = t
/// exactly, and 1 + 2⁻⁶⁴ + … words are drawn on average. With a uniform number of 24 bits instead, such as a 32-bit
/// floating-point number, p = 1e-7 would become 2·2⁻²⁴, which is 19 % larger.
#[derive(Debug, Clone)]
pub struct Coin {
    /// The threshold's first limb, and the rest of the division; `None` for a coin that always shows heads.
    threshold: Option<(u64, Division)>,
}

/// A long division that can be continued: the remainder, which is smaller than the denominator. Both begin with a limb
/// of 0.
#[derive(Debug, Clone)]
struct Division {
    rest: Vec<u64>,
    denominator: Vec<u64>,
}

impl Division {
    fn exhausted(&self) -> bool {
        self.rest.iter().all(|&limb| limb == 0)
    }

    /// Returns the next 64 binary digits of the quotient.
    fn limb(&mut self) -> u64 {
        let mut digits = 0;
        for _ in 0..64 {
            let mut carry = 0;
            for limb in self.rest.iter_mut().rev() {
                let shifted = (*limb << 1) | carry;
                carry = *limb >> 63;
                *limb = shifted;
            }
            digits <<= 1;
            if !fraction::less(&self.rest, &self.denominator) {
                subtract(&mut self.rest, &self.denominator);
                digits |= 1;
            }
        }
        digits
    }
}

/// Computes x −= y for x ≥ y of the same length.
fn subtract(x: &mut [u64], y: &[u64]) {
    let mut borrow = false;
    for (a, b) in x.iter_mut().zip(y).rev() {
        let (once, first) = a.overflowing_sub(*b);
        let (twice, second) = once.overflowing_sub(u64::from(borrow));
        *a = twice;
        borrow = first || second;
    }
}

impl Coin {
    /// Creates a coin that shows heads with the probability of a double in (0, 1].
    ///
    /// # Errors
    /// [`crate::Error::Domain`] for other probabilities.
    pub fn new(probability: f64) -> Result<Self> {
        gaps::check(probability)?;
        if probability >= 1.0 {
            return Ok(Self { threshold: None });
        }
        let limbs = fraction::of(probability);
        let one = [vec![1], vec![0; limbs.len()]].concat();
        Ok(Self::ratio([vec![0], limbs].concat(), one))
    }

    /// Creates a coin that shows heads with the probability that a renewal process in its stationary state is
    /// available: 1/(1 + (b − 1)q), where q = 1 − (1 − p)^k is the probability to be drawn in a round while available,
    /// after which the process waits for b − 1 rounds.
    ///
    /// The state is s = 0 (available) or s = j (waiting for j more rounds); s = j leads to s = j − 1, and s = 0 to s =
    /// b − 1 with probability q. So Pr[s = j] = q·Pr[s = 0] for 0 < j < b (for k = 1: Dong & Ganesh 2026,
    /// arXiv:2602.09338, Algorithm 2). (1 − p)^k is a binary fraction of at most k times the limbs of p, so the ratio
    /// is one of whole numbers, and exact.
    ///
    /// # Errors
    /// [`crate::Error::Domain`] for a probability outside of (0, 1].
    pub fn available(probability: f64, records: u32, separation: u64) -> Result<Self> {
        gaps::check(probability)?;
        // The numbers are in units of 2^{−64w}: 2^{64w} stands for 1, and q is a whole number of units.
        let drawn = if probability >= 1.0 {
            vec![0, 1, 0]
        } else {
            let missed = fraction::complement(&fraction::of(probability));
            let width = missed.len() * records as usize;
            let power = fraction::power(&missed, u64::from(records), width, false);
            [vec![0, 0], fraction::complement(&power)].concat()
        };
        let mut one = vec![0; drawn.len()];
        one[1] = 1;
        let (mut sum, mut carry) = (one.clone(), 0_u128);
        for (total, limb) in sum.iter_mut().zip(&drawn).rev() {
            let wide = u128::from(*limb) * u128::from(separation - 1) + u128::from(*total) + carry;
            *total = fraction::low(wide);
            carry = wide >> 64;
        }
        Ok(if separation == 1 { Self { threshold: None } } else { Self::ratio(one, sum) })
    }

    /// Creates a coin with probability numerator/denominator < 1: whole numbers of equally many limbs, whose first limb
    /// has a bit to spare.
    fn ratio(numerator: Vec<u64>, denominator: Vec<u64>) -> Self {
        let mut division = Division { rest: numerator, denominator };
        let first = division.limb();
        Self { threshold: Some((first, division)) }
    }

    /// Flips the coin and returns whether it shows heads.
    pub fn heads(&self, generator: &mut impl Rng) -> bool {
        let Some((first, division)) = &self.threshold else { return true };
        let word = generator.next_u64();
        if word != *first {
            return word < *first;
        }
        let mut division = division.clone();
        while !division.exhausted() {
            let (digits, word) = (division.limb(), generator.next_u64());
            if word != digits {
                return word < digits;
            }
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batches::tests::Words;

    /// Returns the first limbs of a coin's threshold.
    fn digits(coin: &Coin, count: usize) -> Vec<u64> {
        let (first, mut division) = coin.threshold.clone().expect("a threshold");
        std::iter::once(first).chain((1..count).map(|_| division.limb())).collect()
    }

    #[test]
    fn a_doubles_digits_are_its_own() {
        for p in [0.5, 0.1, 1e-7, 0.999, 1e-300, f64::from_bits(1)] {
            let limbs = fraction::of(p);
            let coin = Coin::new(p).unwrap();
            assert_eq!(digits(&coin, limbs.len()), limbs, "{p}");
            assert_eq!(digits(&coin, limbs.len() + 1)[limbs.len()], 0);
        }
    }

    /// 1/(1 + 2·3/4) = 2/5 = 0.0110 0110 …, and 1/(1 + 3·1) = 1/4.
    #[test]
    fn stationary_states_have_exact_ratios() {
        let coin = Coin::available(0.5, 2, 3).unwrap();
        assert_eq!(digits(&coin, 3), [0x6666_6666_6666_6666; 3]);
        assert_eq!(digits(&Coin::available(1.0, 5, 4).unwrap(), 2), [1 << 62, 0]);
        assert!(Coin::available(0.3, 4, 1).unwrap().threshold.is_none());
        // 1/(1 + 10·2⁻⁷⁰) = 1 − 10·2⁻⁷⁰ + 100·2⁻¹⁴⁰ − …
        let near = digits(&Coin::available(2.0_f64.powi(-70), 1, 11).unwrap(), 2);
        assert_eq!(near, [u64::MAX, u64::MAX - (10 << 58) + 1]);
    }

    #[test]
    fn equal_words_are_continued() {
        let coin = Coin::new(0.1).unwrap();
        let first = fraction::of(0.1)[0];
        assert!(coin.heads(&mut Words::new(&[first - 1])));
        assert!(!coin.heads(&mut Words::new(&[first + 1])));
        // If all digits are equal, U ≥ t, and no further word is drawn.
        assert!(!coin.heads(&mut Words::new(&[first])));
        let fifth = Coin::available(0.5, 2, 3).unwrap();
        let same = 0x6666_6666_6666_6666;
        assert!(fifth.heads(&mut Words::new(&[same, same, same - 1])));
        assert!(!fifth.heads(&mut Words::new(&[same, same, same + 1])));
        assert!(Coin::new(1.0).unwrap().heads(&mut Words::new(&[])));
        assert!(Coin::new(0.0).is_err() && Coin::new(1.5).is_err() && Coin::new(f64::NAN).is_err());
    }
}
