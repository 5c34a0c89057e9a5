//! Tests of several rooms together. They use what is public alone, and stand here all the same: as a crate of their own they
//! would have all kernels compiled a second time, which takes minutes.

mod closed_forms;
mod gradient;
mod sampling;
