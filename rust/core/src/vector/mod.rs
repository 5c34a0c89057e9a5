//! Eight numbers side by side, on the processor's widest vectors, and elementary functions of them.
//!
//! The room takes arithmetic that is written once, over any [`Vector`], and runs the copy of it that the processor
//! executes fastest; all copies give the same bits. It does not know what is computed. `registers` and `x86` are the
//! only modules with unsafe code.

pub mod functions;
mod lanes;
mod portable;
mod registers;
#[cfg(target_arch = "x86_64")]
mod x86;

pub use lanes::{splat, BitLanes, Lanes, Vector, Vectored, Vectors, LANES};
pub use portable::Portable;
pub use registers::{instruction_sets, with_instruction_set, with_vectors};
