//! Uniform whole numbers: single ones, and several different ones.

use std::collections::HashMap;

use rand_chacha::rand_core::Rng;

use crate::batches::fraction::low;

/// Draws a uniform number of 0..n, for n > 0.
///
/// Of the 2⁶⁴ values w of a word those are kept whose product wn = q·2⁶⁴ + r has r ≥ 2⁶⁴ mod n; then each quotient q
/// has exactly ⌊2⁶⁴/n⌋ of them, and nothing is biased (Lemire 2019, ACM TOMACS 29, 1).
pub fn below(generator: &mut impl Rng, n: u64) -> u64 {
    let mut wide = u128::from(generator.next_u64()) * u128::from(n);
    if low(wide) < n {
        let least = n.wrapping_neg() % n;
        while low(wide) < least {
            wide = u128::from(generator.next_u64()) * u128::from(n);
        }
    }
    low(wide >> 64)
}

/// Draws `count` ≤ n different numbers of 0..n in a uniformly random order, in O(count).
///
/// These are the first steps of the shuffle of Fisher and Yates (Durstenfeld 1964): position i is exchanged with a
/// uniform one of i..n. Positions that were never exchanged hold their own number, so only the exchanged ones are
/// stored.
pub fn distinct(generator: &mut impl Rng, n: u64, count: u64) -> Vec<u64> {
    debug_assert!(count <= n);
    let mut moved: HashMap<u64, u64> = HashMap::new();
    (0..count)
        .map(|i| {
            let j = i + below(generator, n - i);
            let (here, there) = (moved.remove(&i).unwrap_or(i), moved.get(&j).copied());
            if i == j {
                return here;
            }
            moved.insert(j, here);
            there.unwrap_or(j)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batches::tests::Words;
    use crate::batches::{Streams, Use};
    use crate::secret::SecretKey;
    use std::collections::BTreeMap;

    /// 2⁶⁴ mod 3 = 1: of all words only 0 is drawn again.
    #[test]
    fn biased_words_are_drawn_once_more() {
        assert_eq!(below(&mut Words::new(&[0, u64::MAX]), 3), 2);
        assert_eq!(below(&mut Words::new(&[1]), 3), 0);
        assert_eq!(below(&mut Words::new(&[0]), 4), 0);
        assert_eq!(below(&mut Words::new(&[17]), 1), 0);
        // 2⁶⁴ mod n for n = 2⁶³ + 1 is 2⁶³ − 1: nearly half of the words are drawn again.
        let n = (1 << 63) + 1;
        assert_eq!(below(&mut Words::new(&[2, u64::MAX]), n), 1 << 63);
    }

    #[test]
    fn every_order_is_as_likely() {
        let streams = Streams::new(SecretKey::new([2; 32]));
        let mut counts: BTreeMap<Vec<u64>, u32> = BTreeMap::new();
        for round in 0..24_000 {
            let mut generator = streams.of(Use::Draw, round);
            let drawn = distinct(&mut generator, 4, 3);
            let whole = distinct(&mut generator, 4, 4);
            assert_eq!(whole.iter().sum::<u64>(), 6);
            *counts.entry(drawn).or_default() += 1;
        }
        assert_eq!(counts.len(), 24);
        // Each is Bin(24000, 1/24): 1000 ± 31.
        assert!(counts.values().all(|&count| (850..1150).contains(&count)), "{counts:?}");
    }
}
