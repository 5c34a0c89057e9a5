//! Tests of several rooms together. They use only public items but are part of the crate: as a crate of their own they
//! would have all kernels compiled a second time, which takes minutes.

mod closed_forms;
mod gradient;
mod sampling;
