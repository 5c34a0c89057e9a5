//! Monte Carlo accounting: samples of the privacy loss, and guarantees from them.
//!
//! This room takes a mechanism given by its participation law and matrix, draws samples of its privacy loss, and keeps
//! what guarantees are made of: wealths of bets against claims about δ, and loss histograms. It does not know which
//! claims are worth testing; that is for its callers.
//!
//! | room | what it holds |
//! | --- | --- |
//! | [`stream`], [`source`] | random numbers as a function of seed and shard; drawn participation patterns and outcomes |
//! | [`kernels`] | a sample's log densities |
//! | [`truncation`] | the same where batches are truncated |
//! | [`mechanism`] | what can be sampled |
//! | [`proposals`] | where samples come from, and what is proven about them |
//! | [`value`] | what a sample is worth with other mechanisms composed |
//! | [`claims`] | what guarantees are made of |
//! | [`gradients`] | how δ changes with the matrix |
//! | [`simulate`] | running shards in parallel |

// Casts and loops over lanes are each justified where they stand.
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
