//! How δ changes with the matrix and with σ: estimates from the samples that estimate δ, by the posterior of who took part.

mod bins_gradient;
pub mod gradient;
pub(super) mod posterior;
