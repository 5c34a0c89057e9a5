//! The records that take part in a round, drawn from a secret key by exactly the law that was analysed.
//!
//! This room takes a key, a round and the parameters of a sampler, and returns records in ascending order.
//! Probabilities are the same doubles that the analysis used, and nothing is rounded: integers are compared with
//! integers, and where the bits drawn so far do not decide, more are drawn. So the law is exact for bits that are
//! uniform and independent; nobody can distinguish ChaCha20's bits from those. The room does not know documents, or
//! what a batch is used for.
//!
//! | module | draws |
//! | --- | --- |
//! | [`coin`] | heads with a rational probability |
//! | [`gaps`] | how many records (or rounds) in a row do not join |
//! | [`uniform`] | whole numbers, and distinct ones |
//! | [`memoryless`] | rounds that depend on no other |
//! | [`dealt`] | records dealt into rounds, for the whole run or for a group of rounds |
//! | [`calendar`] | b-min-sep sampling, of records and of users |
//!
//! [`fraction`] has the arithmetic of binary fractions of any length, which the first two modules need.

use rand_chacha::ChaCha20Rng;

use crate::secret::SecretKey;

pub mod calendar;
pub mod coin;
pub mod dealt;
pub mod fraction;
pub mod gaps;
pub mod memoryless;
pub mod uniform;

/// What a stream is used for. Uses are 2⁶⁴ words apart in a round's stream. No round draws that many, so they never
/// overlap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Use {
    /// Which records take part in a round, and when these are available again.
    Draw = 0,
    /// Which records are kept of a batch that is too large.
    Keep = 1,
    /// The states before the first round.
    Start = 2,
    /// How the records are dealt for a group of rounds.
    Deal = 3,
}

/// The streams of one run's batches.
#[derive(Debug, Clone)]
pub struct Streams(SecretKey);

impl Streams {
    /// Creates the streams of a key.
    pub const fn new(key: SecretKey) -> Self {
        Self(key)
    }

    /// Returns the stream of one use in one round.
    pub fn of(&self, what: Use, round: u64) -> ChaCha20Rng {
        self.0.stream(round, (what as u128) << 64)
    }
}

/// The most units that lists of 32-bit numbers can hold; one number is reserved for "none".
pub const MOST_LISTED: u64 = (1 << 32) - 2;

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use rand_chacha::rand_core::{Infallible, Rng, TryRng};
    use std::collections::VecDeque;

    /// A generator that returns given words, and requires that exactly these are drawn.
    pub struct Words(VecDeque<u64>);

    impl Words {
        pub fn new(words: &[u64]) -> Self {
            Self(words.to_vec().into())
        }
    }

    impl Drop for Words {
        fn drop(&mut self) {
            assert!(std::thread::panicking() || self.0.is_empty(), "words are left");
        }
    }

    impl TryRng for Words {
        type Error = Infallible;

        fn try_next_u32(&mut self) -> Result<u32, Infallible> {
            unreachable!("words of 64 bits are drawn")
        }

        fn try_next_u64(&mut self) -> Result<u64, Infallible> {
            Ok(self.0.pop_front().expect("a further word"))
        }

        fn try_fill_bytes(&mut self, _: &mut [u8]) -> Result<(), Infallible> {
            unreachable!("words of 64 bits are drawn")
        }
    }

    #[test]
    fn uses_and_rounds_have_streams_of_their_own() {
        let streams = Streams::new(SecretKey::new([1; 32]));
        let mut seen: Vec<u64> = Vec::new();
        for what in [Use::Draw, Use::Keep, Use::Start, Use::Deal] {
            for round in 0..3 {
                seen.push(streams.of(what, round).next_u64());
            }
        }
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen.len(), 12);
    }
}
