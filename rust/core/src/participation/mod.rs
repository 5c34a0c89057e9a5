//! How one record takes part over the rounds, as a law on participation patterns.
//!
//! This room takes the parameters of a sampler and gives the sums over all patterns that bounds need. It draws no
//! samples and knows no matrix beyond the squared norm that a participation adds.
//!
//! One file each: [`renewal`] (b-min-sep sampling, cold or warm), [`bins`] (balls in bins); [`separated`] has the largest sums over
//! rounds that are kept apart, [`counts`] how many of the other records join, for batches that are truncated.

pub mod bins;
pub mod counts;
pub mod renewal;
pub mod separated;

/// ln of the sum over patterns of `Π weight^power · proposal^(1 − power) · Π_{participations i} e^{exponent·s_i}`, s_i
/// the squared norm (in units of σ²) that participation i adds.
///
/// These are the sums that Hölder's inequality leaves of a bound on likelihood ratios; see [`crate::montecarlo::proposal`].
pub trait PatternSum {
    /// The sum for a proposal of the same family.
    fn log_sum(&self, proposal: &Self, power: f64, exponent: f64) -> f64;
}
