//! Truncated batches: the kernels of runs whose batches are cut down to a size, and how many of the other records join each.

pub mod batch_sizes;
pub mod truncated;
pub mod truncated_bins;
