//! The noise of a training run: rows of C⁻¹Z, drawn from a secret key.
//!
//! The room takes a key, the round, a range of elements and the coefficients of a row, and returns the numbers. Element
//! i of row t of Z is a function of (key, t, i) alone: it does not depend on the range that is drawn, on threads or on
//! the processor. The room does not know which matrix the coefficients belong to, or what the numbers are added to.
//!
//! | file | what it holds |
//! | --- | --- |
//! | [`chacha`] | the words of a round's stream, sixteen blocks at a time |
//! | [`normals`] | standard normal numbers by their position |
//! | [`rows`] | sums of rows of Z and of the memory of earlier rounds |

// Everything in a kernel must be inlined into the copy for its instruction set.
#![allow(clippy::inline_always)]

mod chacha;
pub mod normals;
pub mod rows;
