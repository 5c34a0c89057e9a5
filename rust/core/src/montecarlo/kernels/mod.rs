//! Kernels: eight samples of a mechanism's outcome, and their log densities.
//!
//! This room takes a participation law, a matrix in units of σ, and a source of patterns and noise; it returns ln dP/dR
//! at each outcome and the log density of the proposal that the outcome was drawn from, with a bound on the error of
//! both. A kernel does not know about claims.
//!
//! | file | what it holds |
//! | --- | --- |
//! | [`correlate`], [`products`] | correlation with the matrix, block by block |
//! | [`recursion`] | the recursion over the rounds; [`ring`], [`logarithms`]: its steps in the linear domain, and for any range |
//! | [`renewal`], [`bins`] | b-min-sep sampling with a banded matrix, and balls in bins |
//! | [`allocation`] | random allocation without a matrix |
//! | [`automaton`], `automaton_steps` | any automaton with a banded matrix: Poisson sampling, allocations, and groups of records |
//! | [`posterior`] | the posterior means of participations |
//! | [`columns`], [`overlapping`] | matrices with long columns, and the kernel that encloses their log densities |

pub mod allocation;
pub mod automaton;
mod automaton_steps;
pub mod bins;
pub mod columns;
pub mod correlate;
pub(super) mod logarithms;
pub mod overlapping;
pub(super) mod posterior;
pub(super) mod products;
pub(super) mod recursion;
pub mod renewal;
pub(super) mod ring;
