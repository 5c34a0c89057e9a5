//! ChaCha20 of sixteen blocks side by side: lane j holds blocks 2j and 2j + 1, a word of each in its halves.
//!
//! Source: D. J. Bernstein, *ChaCha, a variant of Salsa20* (2008): 20 rounds, a counter of 64 bits in words 12 and 13.

// Everything must be inlined into the copy for its instruction set.
#![allow(clippy::inline_always)]

use rand_chacha::rand_core::Rng;

use crate::secret::{halves, SecretKey};
use crate::vector::{BitLanes, Vector, LANES};

/// The number of blocks that are computed together.
pub const BLOCKS: usize = 2 * LANES;

/// The number of 32-bit words of a block.
const WORDS: usize = 16;

/// The number of double rounds.
const DOUBLE_ROUNDS: usize = 10;

/// Returns the words of the blocks `block` … `block + 15` of a round's stream. Number l < 8 of block 2j + k, read as
/// 64-bit words in little-endian order, is in lane j of the result's entry l of array k.
///
/// The counter wraps around after 2⁶⁴ blocks, as in ChaCha20.
#[inline(always)]
pub fn sixteen_blocks<V: Vector>(key: &SecretKey, round: u64, block: u64) -> [[V::Bits; LANES]; 2] {
    if V::WORDS {
        side_by_side::<V>(key, round, block)
    } else {
        one_by_one::<V>(key, round, block)
    }
}

/// Computes the blocks by another implementation, which is faster without vectors.
#[inline(always)]
fn one_by_one<V: Vector>(key: &SecretKey, round: u64, block: u64) -> [[V::Bits; LANES]; 2] {
    let mut bytes = [[0u8; 8]; BLOCKS * LANES];
    key.stream(round, u128::from(block) * WORDS as u128).fill_bytes(bytes.as_flattened_mut());
    let mut numbers = [[V::splat_bits(0); LANES]; 2];
    for (k, numbers) in numbers.iter_mut().enumerate() {
        for (l, numbers) in numbers.iter_mut().enumerate() {
            let mut lanes = BitLanes::default();
            for (j, lane) in lanes.0.iter_mut().enumerate() {
                *lane = u64::from_le_bytes(bytes[LANES * (2 * j + k) + l]);
            }
            *numbers = V::load_bits(&lanes);
        }
    }
    numbers
}

#[inline(always)]
fn side_by_side<V: Vector>(key: &SecretKey, round: u64, block: u64) -> [[V::Bits; LANES]; 2] {
    let mut begin = [V::splat_bits(0); WORDS];
    for (words, word) in begin.iter_mut().zip(key.state(round, block)) {
        *words = V::splat_bits(u64::from(word) << 32 | u64::from(word));
    }
    let mut counters = [BitLanes::default(); 2];
    for number in 0..BLOCKS {
        let [lower, upper] = halves(block.wrapping_add(number as u64));
        let shift = 32 * (number % 2);
        counters[0].0[number / 2] |= u64::from(lower) << shift;
        counters[1].0[number / 2] |= u64::from(upper) << shift;
    }
    begin[12] = V::load_bits(&counters[0]);
    begin[13] = V::load_bits(&counters[1]);
    let mut x = begin;
    for _ in 0..DOUBLE_ROUNDS {
        quarter::<V, 0, 4, 8, 12>(&mut x);
        quarter::<V, 1, 5, 9, 13>(&mut x);
        quarter::<V, 2, 6, 10, 14>(&mut x);
        quarter::<V, 3, 7, 11, 15>(&mut x);
        quarter::<V, 0, 5, 10, 15>(&mut x);
        quarter::<V, 1, 6, 11, 12>(&mut x);
        quarter::<V, 2, 7, 8, 13>(&mut x);
        quarter::<V, 3, 4, 9, 14>(&mut x);
    }
    let low = V::splat_bits(0xffff_ffff);
    let high = V::splat_bits(0xffff_ffff_0000_0000);
    let mut numbers = [[low; LANES]; 2];
    for l in 0..LANES {
        let first = V::add_words(x[2 * l], begin[2 * l]);
        let second = V::add_words(x[2 * l + 1], begin[2 * l + 1]);
        numbers[0][l] = V::or(V::and(first, low), V::shl::<32>(second));
        numbers[1][l] = V::or(V::shr::<32>(first), V::and(second, high));
    }
    numbers
}

/// Does a quarter round on these words.
#[inline(always)]
fn quarter<V: Vector, const A: usize, const B: usize, const C: usize, const D: usize>(x: &mut [V::Bits; WORDS]) {
    x[A] = V::add_words(x[A], x[B]);
    x[D] = V::rotate_words::<16, 16>(V::xor(x[D], x[A]));
    x[C] = V::add_words(x[C], x[D]);
    x[B] = V::rotate_words::<12, 20>(V::xor(x[B], x[C]));
    x[A] = V::add_words(x[A], x[B]);
    x[D] = V::rotate_words::<8, 24>(V::xor(x[D], x[A]));
    x[C] = V::add_words(x[C], x[D]);
    x[B] = V::rotate_words::<7, 25>(V::xor(x[B], x[C]));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vector::{instruction_sets, with_instruction_set, Vectored};

    struct Drawn<'a>(&'a SecretKey, u64, u64, bool);

    impl Vectored for Drawn<'_> {
        type Output = Vec<u64>;
        #[inline(always)]
        fn run<V: Vector>(self) -> Vec<u64> {
            let found = if self.3 {
                side_by_side::<V>(self.0, self.1, self.2)
            } else {
                sixteen_blocks::<V>(self.0, self.1, self.2)
            };
            let lanes = found.map(|numbers| {
                numbers.map(|bits| {
                    let mut lanes = BitLanes::default();
                    V::store_bits(bits, &mut lanes);
                    lanes.0
                })
            });
            let numbers = (0..BLOCKS).flat_map(|block| (0..LANES).map(move |l| (block, l)));
            numbers.map(|(block, l)| lanes[block % 2][l][block / 2]).collect()
        }
    }

    /// The oracle is another implementation of ChaCha20; it too is compared with published words, in `secret`.
    #[test]
    fn the_words_are_those_of_another_implementation() {
        let key = SecretKey::new(std::array::from_fn(|i| u8::try_from(7 * i + 3).unwrap()));
        for round in [0, 1, 1 << 32, u64::MAX] {
            // Counters that carry into the upper half, within a group and at its end.
            for block in [0, 1, 2, (1 << 32) - 16, (1 << 32) - 15, (1 << 32) - 1, 1 << 40, u64::MAX - 15] {
                let mut stream = key.stream(round, u128::from(block) * WORDS as u128);
                let expected: Vec<u64> = (0..BLOCKS * LANES).map(|_| stream.next_u64()).collect();
                for name in instruction_sets() {
                    for vectors in [false, true] {
                        let found = with_instruction_set(name, Drawn(&key, round, block, vectors));
                        assert_eq!(found.as_ref(), Some(&expected), "{name}: {round}, {block}");
                    }
                }
            }
        }
    }
}
