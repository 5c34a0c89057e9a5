//! Monte Carlo accounting: samples of the privacy loss, and guarantees from them.
//!
//! This room takes a mechanism given by its participation law and matrix, draws samples of its privacy loss, and keeps
//! the statistics that guarantees need: wealths of bets against claims about δ, and loss histograms. It does not know
//! which claims are worth testing; its callers decide that.
//!
//! | room | what it holds |
//! | --- | --- |
//! | [`stream`], [`source`] | random numbers as a function of seed and shard; drawn participation patterns and outcomes |
//! | [`kernels`] | the log densities of a sample |
//! | [`truncation`] | the same for truncated batches |
//! | [`mechanism`] | the mechanisms that can be sampled |
//! | [`proposals`] | the laws that samples come from, and their proven properties |
//! | [`value`] | the value of a sample where other mechanisms are composed |
//! | [`claims`] | the statistics that guarantees are made of |
//! | [`gradients`] | the derivatives of δ in the matrix |
//! | [`simulate`] | running shards in parallel |

// Casts and loops over lanes are each justified at their line.
#![allow(clippy::inline_always, clippy::needless_range_loop)]

pub mod claims;
pub mod gradients;
pub mod kernels;
pub mod mechanism;
pub mod proposals;
pub mod simulate;
pub mod source;
pub mod stream;
pub mod truncation;
pub mod value;
