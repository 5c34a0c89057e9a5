//! The derivatives of δ in the matrix and in σ: estimates from the samples that estimate δ, by the posterior of
//! participations.

mod bins_gradient;
pub mod estimates;
pub mod gradient;
