//! Who takes part in a round, drawn from a secret key by exactly the law that was analysed.
//!
//! This room takes a key, a round and the numbers of a sampler, and gives records in ascending order. Probabilities are the very
//! doubles that the analysis used, and nothing is rounded: integers are compared with integers, and where the bits drawn so far
//! do not decide, more are drawn. So the law is exact for bits that are uniform and independent; of ChaCha20's nobody can tell
//! them. The room knows no documents, and not what a batch is for.
//!
//! | module | draws |
//! | --- | --- |
//! | [`coin`] | heads with a rational probability |
//! | [`gaps`] | how many records (or rounds) in a row do not join |
//! | [`uniform`] | whole numbers, and distinct ones |
//! | [`memoryless`] | rounds that depend on no other |
//! | [`dealt`] | records dealt into rounds, for good or for a stretch of rounds |
//! | [`calendar`] | b-min-sep sampling, of records and of users |
//!
//! [`fraction`] has the arithmetic of binary fractions of any length that the first two need.

use rand_chacha::ChaCha20Rng;

use crate::secret::SecretKey;

pub mod calendar;
pub mod coin;
pub mod dealt;
pub mod fraction;
pub mod gaps;
pub mod memoryless;
pub mod uniform;

/// What a stream is used for. Uses are 2⁶⁴ words apart in a round's stream, which no round draws: they never overlap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Use {
    /// Who takes part in a round, and when those are back.
    Draw = 0,
    /// Who is kept of a batch that is too large.
    Keep = 1,
    /// The states before the first round.
    Start = 2,
    /// The dealing of a stretch of rounds.
    Deal = 3,
}

/// The streams of one run's batches.
#[derive(Debug, Clone)]
pub struct Streams(SecretKey);

impl Streams {
    /// Those of a key.
    #[must_use]
    pub const fn new(key: SecretKey) -> Self {
        Self(key)
    }

    /// The stream of one use in one round.
    #[must_use]
    pub fn of(&self, what: Use, round: u64) -> ChaCha20Rng {
        self.0.stream(round, (what as u128) << 64)
    }
}

/// The most units that lists of 32-bit numbers hold; one number says that there is none.
pub const MOST_LISTED: u64 = (1 << 32) - 2;

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use rand_chacha::rand_core::{Infallible, Rng, TryRng};
    use std::collections::VecDeque;

    /// A generator of given words, which is asked for no more than these, and for all of them.
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
