//! The secret streams of a training run: ChaCha20 under 256-bit keys, which never mix with the seeded streams of
//! samples.
//!
//! A key is for one use (the batches of a phase, the noise of a parameter) and the caller derives it from the run's
//! key. Under it every round has its own stream, and every word of a stream can be accessed directly: what is drawn
//! depends on the coordinates (key, round, word) alone, not on earlier draws, on the caller, or on the number of
//! threads.

use rand_chacha::rand_core::SeedableRng;
use rand_chacha::ChaCha20Rng;

/// The 256 bits that one use of randomness is drawn from. They are never shown.
#[derive(Clone)]
pub struct SecretKey([u8; 32]);

impl std::fmt::Debug for SecretKey {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("SecretKey(…)")
    }
}

impl SecretKey {
    /// Creates a key of these bits.
    pub const fn new(bits: [u8; 32]) -> Self {
        Self(bits)
    }

    /// Returns the stream of one round from its `word`-th 32-bit word on: the output of ChaCha20 with `round` as its
    /// 64-bit nonce and a 64-bit counter of blocks of 16 words, read in little-endian order. A stream has 2⁶⁸ words.
    pub fn stream(&self, round: u64, word: u128) -> ChaCha20Rng {
        let mut generator = ChaCha20Rng::from_seed(self.0);
        generator.set_stream(round);
        generator.set_word_pos(word);
        generator
    }

    /// Returns the sixteen 32-bit words of ChaCha20's state for one block of a round: see [`crate::noise::chacha`].
    pub(crate) fn state(&self, round: u64, block: u64) -> [u32; 16] {
        let mut state = [0x6170_7865, 0x3320_646e, 0x7962_2d32, 0x6b20_6574, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        let (words, _) = self.0.as_chunks::<4>();
        for (place, word) in state[4..12].iter_mut().zip(words) {
            *place = u32::from_le_bytes(*word);
        }
        for (place, number) in [(12, block), (14, round)] {
            [state[place], state[place + 1]] = halves(number);
        }
        state
    }
}

/// Returns the lower and the upper 32 bits.
#[allow(clippy::cast_possible_truncation)] // the point of it
pub(crate) const fn halves(number: u64) -> [u32; 2] {
    [number as u32, (number >> 32) as u32]
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_chacha::rand_core::Rng;

    /// The expected words are the first block of ChaCha20 with a key and nonce of zeros
    /// (draft-strombergson-chacha-test-vectors-00, TC1, 256 bits, 20 rounds).
    #[test]
    fn the_cipher_is_chacha20() {
        let expected = [
            0x76, 0xb8, 0xe0, 0xad, 0xa0, 0xf1, 0x3d, 0x90, 0x40, 0x5d, 0x6a, 0xe5, 0x53, 0x86, 0xbd, 0x28, 0xbd, 0xd2,
            0x19, 0xb8, 0xa0, 0x8d, 0xed, 0x1a, 0xa8, 0x36, 0xef, 0xcc, 0x8b, 0x77, 0x0d, 0xc7,
        ];
        let mut found = [0u8; 32];
        SecretKey::new([0; 32]).stream(0, 0).fill_bytes(&mut found);
        assert_eq!(found, expected);
    }

    #[test]
    fn every_word_is_reached_directly() {
        let key = SecretKey::new([7; 32]);
        let mut whole = key.stream(3, 0);
        let words: Vec<u32> = (0..40).map(|_| whole.next_u32()).collect();
        for start in [0usize, 1, 15, 16, 17, 33] {
            assert_eq!(key.stream(3, start as u128).next_u32(), words[start]);
        }
        assert_ne!(key.stream(4, 0).next_u32(), words[0]);
    }

    #[test]
    fn a_key_is_not_shown() {
        assert_eq!(format!("{:?}", SecretKey::new([9; 32])), "SecretKey(…)");
    }
}
