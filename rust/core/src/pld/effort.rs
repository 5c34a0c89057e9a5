//! How fine lattices, meshes and cells may be if a question may take only so much work.
//!
//! [`crate::run::Run`] counts work in cells, and a question may have a largest number of them. Nothing here affects a bound:
//! with less work an interval is wider. What is left is read only where no other thread works for the same question, so that the
//! answer is the same on every machine and with any number of threads.

use crate::pld::question::Search;
use crate::run::EVALUATION;

/// The maximum length of a transform: 2²² entries, about 130 MB for one side of one direction.
pub(super) const LONGEST: usize = 1 << 22;
/// The length of a transform, the number of nodes of a mesh and the number of cells that any amount of work allows.
const SHORTEST: u64 = 1 << 10;
const FEWEST_NODES: u64 = 1 << 9;
const FEWEST_CELLS: u32 = 1 << 6;

impl Search<'_> {
    /// Returns the maximum length of a transform: one with which both sides together take at most half of the remaining work,
    /// so that something is left for another attempt, or another way.
    pub(super) fn longest(&self) -> usize {
        let Some(left) = self.run.left() else { return LONGEST };
        // On each side every kind of rounds is transformed, and their product is transformed back.
        let transforms = 2 * (self.rounds.len() as u64 + 1);
        let length = (left / (2 * transforms)).clamp(SHORTEST, LONGEST as u64);
        1 << length.ilog2()
    }

    /// Returns whether too little work is left for any transform, and records that if so.
    pub(super) fn no_transform_left(&self) -> bool {
        let transforms = 2 * (self.rounds.len() as u64 + 1);
        let none = self.run.left().is_some_and(|left| left < transforms * SHORTEST);
        if none {
            self.run.record_coarser();
        }
        none
    }

    /// Returns the maximum number of nodes of a round's mesh, at most `limit`: the meshes of all rounds take at most half of the
    /// remaining work.
    pub(super) fn most_nodes(&self, limit: usize) -> usize {
        let Some(left) = self.run.left() else { return limit };
        let nodes = (left / (2 * EVALUATION * self.rounds.len() as u64)).max(FEWEST_NODES);
        usize::try_from(nodes).map_or(limit, |nodes| nodes.min(limit))
    }

    /// Returns the minimum and the maximum number of cells of a product, at most `cells`, with which doubling both sides takes at most
    /// the remaining work; `None` if there is no such number. `atoms` has the number of atoms of the law of one round of each kind.
    pub(super) fn affordable(&self, atoms: &[usize], cells: (u32, u32)) -> Option<(u32, u32)> {
        let Some(left) = self.run.left() else { return Some(cells) };
        let mut most = cells.1;
        while self.pairs(atoms, u64::from(most)) > left {
            self.run.record_coarser();
            most /= 2;
            if most < FEWEST_CELLS {
                return None;
            }
        }
        Some((cells.0.min(most), most))
    }

    /// Returns the maximum number of pairs of atoms in all products of both sides, if a product has at most this many atoms.
    fn pairs(&self, atoms: &[usize], most: u64) -> u64 {
        let (mut pairs, mut product) = (0_u64, None::<u64>);
        for (&atoms, round) in atoms.iter().zip(self.rounds) {
            let (atoms, doublings) = (atoms as u64, u64::from(round.count.ilog2()));
            let added = u64::from(round.count.count_ones()) - 1;
            let power = if round.count == 1 { atoms } else { most };
            // The first doubling is that of the law itself, and each pair of equal laws is computed once.
            let doubled = if doublings > 0 { atoms * atoms / 2 + (doublings - 1) * (most * most / 2) } else { 0 };
            pairs = pairs.saturating_add(doubled).saturating_add(added * most * atoms);
            pairs = pairs.saturating_add(product.map_or(0, |product| product * power));
            product = Some(product.map_or(power, |_| most));
        }
        pairs.saturating_mul(2)
    }
}

#[cfg(test)]
mod tests {
    use crate::pair::check::Checked;
    use crate::pair::gaussian::GaussianPair;
    use crate::pld::answer::single;
    use crate::pld::{answer, curve, Query, Round};
    use crate::run::Run;

    #[test]
    fn a_question_of_little_work_takes_no_more_and_encloses_the_truth() {
        let rounds = [
            Round { profile: Checked::of(GaussianPair::new(0.3, 1.0).unwrap()).unwrap(), count: 40 },
            Round { profile: Checked::of(GaussianPair::new(1.0, 1.0).unwrap()).unwrap(), count: 1 },
        ];
        let exact = GaussianPair::new((40.0 * 0.09 + 1.0_f64).sqrt(), 1.0).unwrap();
        let epsilons = [0.5, 2.0, 6.0, 12.0];
        let mut widths = Vec::new();
        for most in [1 << 18, 1 << 20, 1 << 26] {
            let mut width = 0.0;
            for epsilon in epsilons {
                let (run, query) = (Run::default().counted(Some(most)), Query::Delta(epsilon));
                let (found, truth) = (answer(&rounds, query, 1e-6, &run).unwrap(), single(&exact, query).unwrap());
                assert!(found.lower <= truth.upper && truth.lower <= found.upper, "{most} {epsilon} {found:?}");
                assert!(0 < run.cells() && run.cells() <= most, "{most} {epsilon} {}", run.cells());
                assert!(found.within_tolerance || run.coarser() || most == 1 << 26, "{most} {epsilon} {found:?}");
                width += (found.upper - found.lower) / found.upper;
            }
            widths.push(width);
            let run = Run::default().counted(Some(most));
            let points = curve(&rounds, &epsilons, 1e-4, 1e-300, &run).unwrap().points;
            for (epsilon, (lower, upper)) in epsilons.iter().zip(points) {
                let truth = single(&exact, Query::Delta(*epsilon)).unwrap();
                assert!(lower <= truth.upper && truth.lower <= upper, "{most} {epsilon} {lower} {upper}");
            }
            assert!(run.cells() <= most, "{most} {}", run.cells());
        }
        assert!(widths[0] > 2.0 * widths[2], "{widths:?}");
    }
}
