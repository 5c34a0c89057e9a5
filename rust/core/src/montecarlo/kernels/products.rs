//! The products u_i = ⟨ĉ_i, ŷ⟩ of the rounds, in blocks from the last round to the first: drawn block by block, or
//! given for all rounds.

use crate::montecarlo::kernels::correlate::Correlator;
use crate::montecarlo::kernels::ring::SETTLED;
use crate::montecarlo::source::Source;
use crate::vector::{splat, Lanes, Vector};

/// A source of the products.
pub(in crate::montecarlo) trait Products {
    /// Returns the number of rounds of a block.
    fn block(&self) -> usize;
    /// Returns the products of the rounds `start`, …, `start + length − 1`, and up to [`SETTLED`] − 1 further numbers
    /// that are not used; blocks are taken from the last to the first, each once. Must be `#[inline(always)]`.
    fn take<V: Vector>(&mut self, start: usize, length: usize) -> &[Lanes];
}

/// The products of all rounds, their number rounded up to [`SETTLED`].
pub(in crate::montecarlo) struct AtHand<'a>(pub &'a [Lanes]);

impl Products for AtHand<'_> {
    #[inline(always)]
    fn block(&self) -> usize {
        self.0.len()
    }

    #[inline(always)]
    fn take<V: Vector>(&mut self, _: usize, _: usize) -> &[Lanes] {
        self.0
    }
}

/// Rows from a source, correlated with the coefficients of columns: memory does not depend on the number of rounds.
pub(in crate::montecarlo) struct Streamed<'a, S> {
    coefficients: &'a [f64],
    correlator: &'a Correlator,
    source: &'a mut S,
    blocks: &'a mut Blocks,
}

/// Buffers of one worker, reused from block to block.
#[derive(Debug, Clone, Default)]
pub(in crate::montecarlo) struct Blocks {
    pub rows: Vec<Lanes>,
    pub sums: Vec<Lanes>,
    pub workspace: Vec<[Lanes; 2]>,
    pub patterns: Vec<Vec<(usize, f64)>>,
}

impl<'a, S: Source> Streamed<'a, S> {
    /// Begins eight samples of the source, before their last round.
    #[inline(always)]
    pub(in crate::montecarlo) fn begin<V: Vector>(
        (coefficients, correlator): (&'a [f64], &'a Correlator),
        source: &'a mut S,
        blocks: &'a mut Blocks,
    ) -> Self {
        source.begin::<V>(&mut blocks.patterns);
        let (block, tail) = (correlator.block(), correlator.tail());
        blocks.rows.clear();
        blocks.rows.resize(block + tail, splat(0.0));
        blocks.sums.resize(block.next_multiple_of(SETTLED), splat(0.0));
        Self { coefficients, correlator, source, blocks }
    }
}

impl<S: Source> Products for Streamed<'_, S> {
    #[inline(always)]
    fn block(&self) -> usize {
        self.correlator.block()
    }

    #[inline(always)]
    fn take<V: Vector>(&mut self, start: usize, length: usize) -> &[Lanes] {
        let Blocks { rows, sums, workspace, patterns } = &mut *self.blocks;
        let correlator = self.correlator;
        // The head of the later block becomes the tail of this one.
        rows.copy_within(0..correlator.tail(), correlator.block());
        self.source.fill::<V>(self.coefficients, start, &mut rows[..length], patterns);
        correlator.correlate::<V>(rows, length, sums, workspace);
        sums
    }
}
