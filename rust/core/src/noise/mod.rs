//! The noise of a training run: rows of C⁻¹Z, drawn from a secret key.
//!
//! The room takes a key, the round, a range of elements and the coefficients of a row, and gives numbers. Element i of row t of Z
//! is a function of (key, t, i) alone: not of the range that it is drawn with, nor of threads, nor of the processor. The room does
//! not know which matrix the coefficients are of, nor what the numbers are added to.
//!
//! | file | what it holds |
//! | --- | --- |
//! | [`normals`] | standard normal numbers by their place |
//! | [`rows`] | sums of rows of Z and of what is kept of earlier rounds |

// Everything in a kernel must be inlined into the copy for its instruction set.
#![allow(clippy::inline_always)]

pub mod normals;
pub mod rows;
