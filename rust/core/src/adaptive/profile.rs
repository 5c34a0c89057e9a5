//! The bounds on all rounds as the profile of one round.
//!
//! **From above** the points are guarantees, so the profile is the least convex curve that follows from those of both directions
//! ([`Tabulated`]). It may be composed with other rounds.
//!
//! **From below** V is at least the value at the next point of the lattice. So the value is moved to the point before, and the chords
//! between the moved points are below V, since V falls; so is their lower convex hull, with the reflections that V has. The curve ends with 0.
//! It bounds all rounds by themselves: for every ε the adversary plays for this ε, so it is no lower bound of a composition in which
//! other rounds come later.

use crate::adaptive::run::DeltaBounds;
use crate::error::Result;
use crate::pair::check::Checked;
use crate::pair::tabulated::Tabulated;
use crate::pair::{Profile, ProfilePoint, Reversal};
use crate::pld::mesh::Side;

/// More than what rounding in the hull may raise a value by.
const LOWERED: f64 = 1e-12;

impl DeltaBounds {
    /// Returns the profiles of a removed record and of an added one.
    ///
    /// # Errors
    /// As [`Checked::of`].
    pub fn profiles(&self) -> Result<[Checked; 2]> {
        if self.points.len() == 1 {
            let both = self.profile(Tabulated::guarantees(&self.vertices(0))?)?;
            return Ok([both.clone(), both]);
        }
        let (remove, add) = (self.vertices(0), self.vertices(1));
        Ok([self.profile(Tabulated::directed(&remove, &add)?)?, self.profile(Tabulated::directed(&add, &remove)?)?])
    }

    /// Returns the points of a direction that the chords may join.
    fn vertices(&self, direction: usize) -> Vec<(f64, f64)> {
        let points = &self.points[direction];
        match self.side {
            Side::Upper => points.clone(),
            Side::Lower => {
                let moved = points.windows(2).map(|pair| (pair[0].0, pair[1].1 * (1.0 - LOWERED)));
                moved.chain(std::iter::once((points[points.len() - 1].0, 0.0))).collect()
            }
        }
    }

    fn profile(&self, curve: Tabulated) -> Result<Checked> {
        match self.side {
            Side::Upper => Checked::of(curve),
            Side::Lower => Checked::of(Below(curve)),
        }
    }
}

/// A curve from below, which says nothing of the largest loss.
#[derive(Debug)]
struct Below(Tabulated);

impl Profile for Below {
    fn at_within(&self, epsilon: f64, bracket: (f64, f64)) -> ProfilePoint {
        self.0.at_within(epsilon, bracket)
    }

    fn reversal(&self) -> Reversal {
        Reversal::Unknown
    }
}
