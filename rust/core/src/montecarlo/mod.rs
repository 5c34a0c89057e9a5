//! Monte Carlo accounting: samples of the privacy loss, and guarantees from them.
//!
//! This room takes a mechanism given by its participation law and matrix, draws samples of its privacy loss, and keeps
//! what guarantees are made of: wealths of bets against claims about δ, and loss histograms. It does not know which
//! claims are worth testing; that is for its callers.
//!
//! | file | what it holds |
//! | --- | --- |
//! | [`correlate`] | correlation with the matrix |
//! | [`stream`] | random numbers as a function of seed and shard |
//! | [`source`] | drawn participation patterns and outcomes |
//! | `recursion`, `products` | the recursion over the rounds, and what it is handed |
//! | `ring`, `logarithms` | its steps in the linear domain, and for any range |
//! | [`kernel`] | what the kernels have in common |
//! | [`renewal`], [`bins`] | the kernels: a sample's log densities |
//! | [`columns`], [`overlapping`] | matrices with long columns, and the kernel that encloses their log densities |
//! | [`mechanism`] | what can be sampled |
//! | [`proposed`] | a mechanism and where its samples come from, alone or together, and what is proven about these |
//! | [`truncated`], [`truncated_bins`] | the same where batches are truncated |
//! | [`batch_sizes`] | how many of the other records join each batch |
//! | [`proposal`] | where samples of one proposal are drawn from, and the proof that their weights are bounded |
//! | [`linear`] | bounds where the record is added, from how nearly ln dP/dR is linear |
//! | [`added_mean`] | samples of a mean that bounds δ there, and the proof |
//! | [`components`], [`tilt`] | mixtures of several proposals, and what they are made of |
//! | `posterior`, [`gradient`], `bins_gradient` | who took part, given the outcome; estimates of how δ changes with the matrix |
//! | [`balanced`], [`defensive`] | estimates and tests from mixtures; in `defensive` the proof that their weights are bounded |
//! | [`value`] | what a sample is worth with other mechanisms composed |
//! | [`replicated`] | samples of a power of the likelihood ratio |
//! | [`betting`], [`histogram`] | what is kept of the samples |
//! | [`simulate`] | running shards in parallel |

// Casts and loops over lanes are each justified where they stand.
#![allow(clippy::inline_always, clippy::needless_range_loop)]

pub mod added_mean;
pub mod balanced;
pub mod batch_sizes;
pub mod betting;
pub mod bins;
mod bins_gradient;
pub mod columns;
pub mod components;
pub mod correlate;
pub mod defensive;
pub mod gradient;
pub mod histogram;
pub mod kernel;
pub mod linear;
mod logarithms;
pub mod mechanism;
pub mod overlapping;
mod posterior;
mod products;
pub mod proposal;
pub mod proposed;
mod recursion;
pub mod renewal;
pub mod replicated;
mod ring;
pub mod simulate;
pub mod source;
pub mod stream;
pub mod tilt;
pub mod truncated;
pub mod truncated_bins;
pub mod value;
