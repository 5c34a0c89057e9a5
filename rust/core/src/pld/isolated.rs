//! Rounds with isolated losses: which they are, and the bound from below in which only these are split.
//!
//! The law from below loses in the first order of the lattice where losses are isolated, and the bound of
//! [`super::from_upper`] loses where cells are wide, as they are for smooth laws. So rounds whose law from below costs much
//! are composed as they are from above, and all others as they are from below: that is a law from above of rounds that are
//! at most the true ones. The choice decides only how close the bound is.

use crate::pld::answer::{Answer, Query, SMALLEST_DELTA};
use crate::pld::cumulant::Groups;
use crate::pld::from_upper::{FromUpper, Splits};
use crate::pld::masses::Masses;
use crate::pld::mesh::Mesh;
use crate::pld::question::{scale, wanted, Search};
use crate::pld::readoff::Readoff;
use crate::special::real;

/// The room left of the window that the bound needs on a lattice, in steps for each √n of n rounds.
const ROOM: f64 = 6.0;
/// A part of the wanted width that no answer shows.
const UNNOTICED: f64 = 0.01;
/// The part of the wanted width that the law from below may cost a kind of rounds, and that it may cost in
/// units of n(λ+1)h²: for n smooth rounds on a lattice of spacing h it costs a quarter of this.
const CHEAP: f64 = 0.5;
const SECOND_ORDER: f64 = 2.0;
/// Answers of a larger tolerance do without the bound: on their coarse lattices even smooth losses look isolated.
const ROUGH: f64 = 1e-3;
/// Meshes of rounds with isolated losses may add only this part of the usual budget, because the bound counts a cell by its
/// width.
const FINER: f64 = 0.01;

/// What an attempt learns for the next one.
#[derive(Debug, Default)]
pub(super) struct Focus {
    /// The number of entries left of the window.
    pub room: f64,
    /// Whether each kind of rounds has isolated losses.
    pub isolated: Vec<bool>,
}

impl Focus {
    /// Returns the part of the usual budget that the mesh of a kind of rounds has.
    pub fn share(&self, group: usize) -> f64 {
        if self.isolated.get(group).is_some_and(|isolated| *isolated) {
            FINER
        } else {
            1.0
        }
    }
}

/// The laws of all rounds from above and from below, on the same meshes, and the tilt under which they are compared.
pub(super) struct BothSides<'a> {
    pub meshes: &'a [Mesh],
    pub above: &'a [Masses],
    pub below: &'a [Masses],
    pub tilt: f64,
}

impl BothSides<'_> {
    /// Returns the laws from above of isolated losses, and those from below of all others.
    pub fn mixed(&self, isolated: &[bool]) -> Vec<&Masses> {
        let sides = self.above.iter().zip(self.below).zip(isolated);
        sides.map(|((above, below), isolated)| if *isolated { above } else { below }).collect()
    }
}

impl Search<'_> {
    /// Returns for which rounds the law from below costs much, if the interval is wider than wanted, and the room that
    /// the bound needs then; otherwise nothing.
    pub(super) fn focus(&self, sides: &BothSides<'_>, (low, high): (f64, f64)) -> Focus {
        let delta = self.delta(high);
        let wanted = wanted(&Answer { upper: high, ..Answer::default() }, self.query, self.tolerance);
        if self.tolerance > ROUGH || !high.is_finite() || high - low <= wanted || delta <= SMALLEST_DELTA {
            return Focus::default();
        }
        let width = match self.query {
            Query::Delta(_) => self.tolerance / sides.tilt.max(1.0),
            Query::Epsilon(_) => wanted,
        };
        let isolated = sides.above.iter().zip(sides.below).zip(self.rounds).map(|((above, below), round)| {
            let [above, below] =
                [above, below].map(|law| Groups::new(std::iter::once((law, round.count))).at(sides.tilt));
            let by_value = if sides.tilt > 0.0 { (above.value - below.value) / sides.tilt } else { 0.0 };
            let cost = by_value.max(above.mean - below.mean);
            let smooth = real(round.count) * (sides.tilt + 1.0) * sides.meshes[0].spacing.powi(2);
            // A law from below without mass has no mean.
            cost.is_nan() || below.mean.is_nan() || cost > SECOND_ORDER * smooth + CHEAP * width
        });
        let isolated: Vec<bool> = isolated.collect();
        // Where no losses are isolated, the next attempt has the usual window.
        let room = if isolated.contains(&true) { ROOM * self.total.sqrt() } else { 0.0 };
        Focus { room, isolated }
    }

    /// Returns how the laws of isolated losses were split; None if rounding hides it. `high` is the upper end of the answer.
    pub(super) fn splits(&self, sides: &BothSides<'_>, isolated: &[bool], high: f64) -> Option<Splits> {
        let delta = self.delta(high);
        let (mut laws, mut rest) = (Vec::new(), Vec::new());
        for (group, round) in self.rounds.iter().enumerate() {
            let at_infinity = round.profile.delta_at_infinity();
            if isolated[group] {
                laws.push((&sides.meshes[group], &sides.above[group], round.count, at_infinity));
            } else {
                rest.push((at_infinity, round.count));
            }
        }
        Splits::of(&laws, &rest, sides.tilt, delta * self.tolerance * UNNOTICED / self.total)
    }

    /// Returns the bound from below that a law gives near the answer, whose upper end is `high`.
    pub(super) fn split_bound<'b>(&self, splits: &'b Splits, law: &'b Readoff, high: f64) -> Option<FromUpper<'b>> {
        let (epsilon, width) = match self.query {
            Query::Delta(epsilon) => (epsilon, self.tolerance),
            Query::Epsilon(delta) => (high, self.tolerance * scale(high, delta)),
        };
        splits.bound(law, epsilon, UNNOTICED * width)
    }
}
