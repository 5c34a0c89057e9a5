//! The parts that guarantees are made of: bets against claims about δ, loss histograms, and bounds where the record is
//! added.
//!
//! | file | what it holds |
//! | --- | --- |
//! | [`betting`], [`histogram`] | the statistics that are kept of the samples |
//! | [`defensive`] | tests with samples of a mixture, and the proof that their weights are bounded |
//! | [`linear`] | bounds where the record is added, which use that ln dP/dR is nearly linear |
//! | [`added_mean`] | samples of a mean that bounds δ there, and the proof |

pub mod added_mean;
pub mod betting;
pub mod defensive;
pub mod histogram;
pub mod linear;
