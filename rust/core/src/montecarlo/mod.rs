//! Monte Carlo accounting: samples of the privacy loss, and guarantees from them.
//!
//! This room takes a mechanism given by its participation law and matrix, draws samples of its privacy loss, and keeps
//! the statistics that guarantees need: wealths of bets against claims about δ, and loss histograms. It does not know
//! which claims are worth testing; its callers decide that.
//!
//! From the bottom up; a room uses only those above it in this list:
//!
//! | room | what it holds |
//! | --- | --- |
//! | [`stream`] | random numbers as a function of seed and shard |
//! | [`value`] | the value of a sample where other mechanisms are composed |
//! | [`weight_bounds`] | the proof that samples of a scaled law are bounded |
//! | [`source`] | drawn participation patterns and outcomes |
//! | [`tilt`] | mechanisms tilted along their mean participation |
//! | [`family`] | the one trait of all mechanisms that can be sampled |
//! | [`mechanism`] | a mechanism of any family |
//! | [`kernels`] | the families: log densities of their samples |
//! | [`truncation`] | the same for truncated batches |
//! | [`proposals`] | the laws that samples come from: scaled laws, powers of the likelihood ratio, and mixtures |
//! | [`claims`] | the statistics that guarantees are made of |
//! | [`gradients`] | the derivatives of δ in the matrix |
//! | [`simulate`] | running shards in parallel |

// Casts and loops over lanes are each justified at their line.
#![allow(clippy::inline_always, clippy::needless_range_loop)]

pub mod claims;
pub mod family;
pub mod gradients;
pub mod kernels;
pub mod mechanism;
pub mod proposals;
pub mod simulate;
pub mod source;
pub mod stream;
pub mod tilt;
pub mod truncation;
pub mod value;
pub mod weight_bounds;
