//! Truncated batches: the kernels of runs whose batches are truncated to a maximum size, and the numbers of other
//! records in each batch.

pub mod batch_sizes;
pub mod truncated;
pub mod truncated_bins;
