//! Draws numbers with given weights, of which there may be millions: a block first, and then a number within it.

use crate::special::{real, UNIT_ROUNDOFF};

/// The cumulative sums of the blocks' weights.
#[derive(Debug)]
pub(super) struct Weighted {
    cumulative: Vec<f64>,
    /// The number of weights in a block.
    block: usize,
}

impl Weighted {
    /// Creates the sums from the sum of each block of `block` weights, each with an error of at most a unit of rounding
    /// for each of these and of `operations`. The rounding errors are accumulated separately (Kahan), so that every sum
    /// has an error of less than 4u of the total.
    pub(super) fn new(sums: Vec<f64>, block: usize, operations: usize) -> Self {
        let up = 1.0 + 4.0 * UNIT_ROUNDOFF * real(block + operations + 16);
        let (mut sum, mut lost) = (0.0_f64, 0.0_f64);
        let cumulative = sums.into_iter().map(|own| {
            let more = own * up - lost;
            let next = sum + more;
            lost = (next - sum) - more;
            sum = next;
            next
        });
        Self { cumulative: cumulative.collect(), block }
    }

    /// Returns the sum of all weights, rounded up.
    pub(super) fn total(&self) -> f64 {
        self.cumulative.last().copied().unwrap_or(0.0)
    }

    /// Returns, in units of rounding, how much the total may be above the exact one.
    pub(super) fn raised(&self, operations: usize) -> f64 {
        let terms = real(self.block + operations + 16);
        8.0 * terms
    }

    /// Draws a number, by two uniform ones in (0, 1]; `sums` returns a block's sums up to each of its numbers.
    pub(super) fn draw(&self, (block, within): (f64, f64), sums: impl FnOnce(usize) -> Vec<f64>) -> usize {
        let total = self.total();
        let chosen = self.cumulative.partition_point(|sum| *sum < block * total).min(self.cumulative.len() - 1);
        let sums = sums(chosen);
        let target = within * sums[sums.len() - 1];
        chosen * self.block + sums.partition_point(|sum| *sum < target).min(sums.len() - 1)
    }

    /// Returns a bound on the total variation of the drawn law, in units of rounding: at each block the errors of a
    /// sum, a product and the grid of a uniform number, and at each number of one as many roundings as a sum has terms.
    pub(super) fn variation(&self) -> f64 {
        let (blocks, block) = (real(self.cumulative.len()), real(self.block));
        16.0 * blocks + 4.0 * block * (block + 8.0)
    }
}
