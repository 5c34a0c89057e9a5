//! The arithmetic of pyaccount: privacy profiles, loss distributions and their composition.
//!
//! The crate takes plain numbers and returns bounds. It knows no documents, no policy (which theorem applies, what to
//! refuse) and no Python. Each public item states its formula, units, guarantee and source.
//!
//! | room | takes | gives |
//! | --- | --- | --- |
//! | [`exact`] | numbers as they are written | rational numbers |
//! | [`gram`] | vectors | their inner products, in the same order on every processor |
//! | [`series`] | coefficients of two power series | those of their quotient |
//! | [`laws`] | trials, or a population and a draw | binomial and hypergeometric laws |
//! | [`pair`] | the parameters of one round | its privacy profile, with the error of every evaluation |
//! | [`pld`] | profiles, counts and a question | a proven interval for ε(δ) or δ(ε) |
//! | [`adaptive`] | batches of a fixed size, round by round | the largest δ of adaptive gradients, from both sides |
//! | [`participation`] | the parameters of a sampler | sums over participation patterns |
//! | [`replicas`] | a participation law and a matrix | bounds on moments of the likelihood ratio |
//! | [`vector`] | eight numbers side by side | functions of them, the same bits on every processor |
//! | [`montecarlo`] | a participation law and a matrix | wealths of bets and loss histograms |
//! | [`secret`] | a key, a round and a position | the words drawn there |
//! | [`batches`] | a key, a round and a sampler | the records that take part |
//! | [`noise`] | a key, a round and coefficients | rows of noise |
//! | [`run`] | long work | the same work, on a pool, cancellable |
//! | [`process`] | nothing | values that belong to one process and are not inherited by its children |
//!
//! No room uses one later in this list: [`error`], [`exact`], [`process`], [`run`], [`secret`], [`special`], [`gram`],
//! [`series`], [`laws`], [`participation`], [`replicas`], [`pair`], [`pld`], [`adaptive`], [`vector`], [`noise`], [`montecarlo`], [`batches`].
//!
//! Throughout, `u = 2⁻⁵³` is the unit roundoff of binary64 ([`special::UNIT_ROUNDOFF`]).

#![deny(unsafe_code)]

pub mod adaptive;
pub mod batches;
pub mod error;
pub mod exact;
pub mod gram;
pub mod laws;
pub mod montecarlo;
pub mod noise;
pub mod pair;
pub mod participation;
pub mod pld;
pub mod process;
pub mod replicas;
pub mod run;
pub mod secret;
pub mod series;
pub mod special;
pub mod vector;

#[cfg(test)]
mod tests;

pub use error::{Error, Result};
