//! Pairs of nodes of two laws on one geometric grid, by their distance, which alone determines where their sum lies.

use rayon::prelude::*;

use crate::error::Result;
use crate::pair::allocation::grid::offset;
use crate::run::Run;

/// The number of nodes whose sums one task computes.
const TILE: usize = 1024;

/// The pairs in which the node of the first law is at least as high as the node of the second, or strictly higher.
#[derive(Debug, Clone, Copy)]
pub struct Pairs {
    late: Nodes,
    early: Nodes,
    /// The least and the largest distance.
    nearest: usize,
    farthest: usize,
    step: f64,
    finer: usize,
}

/// The nodes of one law, by the first and their number. After the grid was refined only every `stride`-th one has mass,
/// from `phase` on.
#[derive(Debug, Clone, Copy)]
pub struct Nodes {
    pub first: i64,
    pub count: usize,
    pub phase: usize,
    pub stride: usize,
}

/// Pairs of one distance whose higher node is in one tile.
#[derive(Debug, Clone)]
pub struct Row {
    /// How far the higher node is above the lower one.
    pub distance: usize,
    /// The ranges of nodes of the first law, and of the second.
    pub late: std::ops::Range<usize>,
    pub early: std::ops::Range<usize>,
    /// The position of the first sum: which node modulo the fineness, and its index among those.
    pub place: usize,
    /// Every `stride`-th of these nodes has mass, from the first on.
    pub stride: usize,
}

impl Pairs {
    /// Creates the pairs of two laws whose nodes are `step` apart, with sums on a grid that is `finer` times as fine;
    /// `None` if there are no pairs.
    pub fn new(late: Nodes, early: Nodes, strict: bool, step: f64, finer: usize) -> Option<Self> {
        let distance = |late: i64, early: i64| late - early;
        let nodes = |count: usize| i64::try_from(count).expect("nodes");
        let nearest = distance(late.first, early.first + nodes(early.count) - 1).max(i64::from(strict));
        let farthest = distance(late.first + nodes(late.count) - 1, early.first);
        let natural = |distance: i64| usize::try_from(distance).ok();
        (farthest >= nearest).then(|| Self {
            late,
            early,
            nearest: natural(nearest).expect("at least 0"),
            farthest: natural(farthest).expect("at least the nearest"),
            step,
            finer,
        })
    }

    /// Returns how far sums of this distance are above the higher node, in nodes of the finer grid: the whole nodes and
    /// the fraction.
    pub fn above(&self, distance: usize) -> (usize, f64) {
        offset(distance, self.step, self.finer)
    }

    /// Returns the distance between nodes of the finer grid.
    pub fn fine(&self) -> f64 {
        self.step / f64::from(u32::try_from(self.finer).expect("1 or 2"))
    }

    /// Returns the distances that occur.
    pub const fn distances(&self) -> std::ops::RangeInclusive<usize> {
        self.nearest..=self.farthest
    }

    /// Returns the first node of the finer grid that sums are stored for: `least` above the first law's first node.
    pub fn base(&self) -> i64 {
        let fine = i64::try_from(self.finer).expect("1 or 2");
        self.late.first * fine + i64::try_from(self.above(self.farthest).0).expect("nodes")
    }

    /// Returns the number of nodes that sums are stored for, with `beyond` more than the largest offset.
    fn length(&self, late: usize, beyond: usize) -> usize {
        (late - 1) * self.finer + self.above(self.nearest).0 - self.above(self.farthest).0 + beyond + 1
    }

    /// Computes sums for all nodes of the finer grid from [`Pairs::base`] on, K of them side by side.
    ///
    /// `lifted` returns how many nodes above its lower end a distance's sum lies (as `above`, or rounded), at most
    /// `beyond` more than that. `work` adds the products of a row to the accumulators of that row, which have its
    /// length.
    pub fn sums<const K: usize>(
        &self,
        lifted: impl Fn(usize) -> usize + Sync,
        beyond: usize,
        run: &Run,
        work: impl Fn(&Row, [&mut [f64]; K]) + Sync,
    ) -> Result<[Vec<f64>; K]> {
        let least = self.above(self.farthest).0;
        let tiles: Vec<usize> = (0..self.late.count).step_by(TILE).collect();
        let parts: Vec<[Vec<f64>; K]> = tiles
            .par_iter()
            .map(|&from| {
                run.check()?;
                let to = (from + TILE).min(self.late.count);
                let length = self.length(to - from, beyond);
                // Nodes that are equal modulo the fineness are stored side by side, so that neighbours in the laws are
                // neighbours here.
                let rows = length.div_ceil(self.finer);
                let mut sums: [Vec<Vec<f64>>; K] = std::array::from_fn(|_| vec![vec![0.0; rows]; self.finer]);
                for row in self.rows(from, to) {
                    let lift = lifted(row.distance) - least;
                    let place = row.place + lift / self.finer;
                    let count = row.late.len();
                    let accumulators = sums.each_mut().map(|sums| &mut sums[lift % self.finer][place..place + count]);
                    work(&row, accumulators);
                }
                Ok(sums.map(|sums| (0..length).map(|k| sums[k % self.finer][k / self.finer]).collect()))
            })
            .collect::<Result<_>>()?;
        let mut results: [Vec<f64>; K] = std::array::from_fn(|_| vec![0.0; self.length(self.late.count, beyond)]);
        for (from, part) in tiles.iter().zip(&parts) {
            for (sums, more) in results.iter_mut().zip(part) {
                for (sum, one) in sums[from * self.finer..].iter_mut().zip(more) {
                    *sum += one;
                }
            }
        }
        Ok(results)
    }

    /// Returns the pairs whose higher node is one of the first law's in [`from`, `to`), by distance.
    fn rows(self, from: usize, to: usize) -> impl Iterator<Item = Row> {
        // `shift` is the index in the second law of the node that is as high as the first law's first node.
        let shift = self.late.first - self.early.first;
        let (early, at) =
            (i64::try_from(self.early.count).expect("nodes"), |place: usize| i64::try_from(place).expect("nodes"));
        self.distances().filter_map(move |distance| {
            let below = shift - at(distance);
            let begin = at(from).max(-below);
            let end = at(to).min(early - below);
            // The first pair of nodes with mass is at `phase`, and then every `stride`-th pair has mass.
            let (phase, stride) = if self.late.stride > 1 {
                (at(self.late.phase), self.late.stride)
            } else {
                (at(self.early.phase) - below, self.early.stride)
            };
            let begin = begin + (phase - begin).rem_euclid(at(stride));
            (begin < end).then(|| {
                let natural = |place: i64| usize::try_from(place).expect("inside");
                Row {
                    distance,
                    late: natural(begin)..natural(end),
                    early: natural(begin + below)..natural(end + below),
                    place: natural(begin) - from,
                    stride,
                }
            })
        })
    }
}
