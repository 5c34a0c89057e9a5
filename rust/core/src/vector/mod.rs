//! Eight numbers side by side, on the processor's widest vectors, and elementary functions of them.
//!
//! The room takes arithmetic that is written once, over any [`Vector`], and runs the copy of it that the processor
//! executes fastest; all copies give the same bits. It does not know what is computed. `registers` is the only module
//! with unsafe code.

pub mod functions;
mod registers;

pub use registers::{
    instruction_sets, splat, with_instruction_set, with_vectors, BitLanes, Lanes, Portable, Vector, Vectored, Vectors,
    LANES,
};
