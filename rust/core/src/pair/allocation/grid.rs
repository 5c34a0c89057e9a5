//! Geometric grids: node i is e^{hi}, h = h₀·2^{−r} after r refinements.

use crate::error::{Error, Result};
use crate::pair::allocation::Terms;

/// More nodes than these are not summed: their pairs would take minutes.
const MOST: f64 = 200_000.0;
/// Logarithms of values are at most this far from 0, so that the values, and products with their inverses, are numbers.
const FARTHEST: f64 = 650.0;

/// What all laws of an allocation have in common.
#[derive(Debug, Clone)]
pub struct GeometricGrid {
    first: f64,
    spacing: f64,
    /// How many standard deviations from the mean masses are told from nothing.
    reach: f64,
    negligible: f64,
    total: u64,
}

impl GeometricGrid {
    /// For these terms.
    pub fn new(terms: &[Terms], total: u64, spacing: f64, negligible: f64) -> Result<Self> {
        let least = terms.iter().fold(f64::INFINITY, |least, term| least.min(term.square));
        let most = terms.iter().fold(0.0_f64, |most, term| most.max(term.square));
        // Pr[Z > z] ≤ e^{−z²/2}.
        let reach = (-2.0 * (negligible / 64.0).ln()).sqrt();
        let this = Self { first: spacing * least.sqrt(), spacing, reach, negligible, total };
        if this.ends(most).1 > FARTHEST {
            return Err(Error::Domain {
                name: "square",
                value: most,
                allowed: "one with likelihood ratios below e^650",
            });
        }
        if (most + 2.0 * reach * most.sqrt()) / this.first > MOST {
            return Err(Error::Domain { name: "spacing", value: spacing, allowed: "one that gives fewer nodes" });
        }
        Ok(this)
    }

    /// The distance of nodes, in logarithms.
    pub fn step(&self, refined: u32) -> f64 {
        self.first * 0.5_f64.powi(i32::try_from(refined).unwrap_or(i32::MAX))
    }

    /// The distance of nodes that suits the sum of so many terms: a share of its standard deviation relative to its mean.
    #[allow(clippy::cast_precision_loss)] // a count
    pub fn wanted(&self, square: f64, terms: u64) -> f64 {
        self.spacing * square.sqrt().min((square.exp_m1() / terms as f64).sqrt())
    }

    /// How many standard deviations from their means laws are followed.
    pub const fn reach(&self) -> f64 {
        self.reach
    }

    /// How many terms there are.
    #[allow(clippy::cast_precision_loss)] // a count
    pub fn total(&self) -> f64 {
        self.total as f64
    }

    /// How far, in logarithms, a term is followed from its median to both sides.
    pub fn ends(&self, square: f64) -> (f64, f64) {
        let far = self.reach * square.sqrt();
        (-0.5 * square - far, 0.5 * square + far)
    }

    /// What may be lost at an end of the law of so many terms: in all uses of it no more than a 64th of what is negligible.
    #[allow(clippy::cast_precision_loss)] // counts
    pub fn loss(&self, terms: u64) -> f64 {
        self.negligible / 64.0 * (terms as f64 / self.total as f64)
    }
}

/// Where e^{hi} + e^{h(i−d)} lies above node i, in steps of a grid that is `finer` times as fine: whole ones, and the rest.
#[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss)] // nodes
pub fn offset(d: usize, step: f64, finer: usize) -> (usize, f64) {
    let above = (-step * d as f64).exp().ln_1p() / (step / finer as f64);
    (above as usize, above - above.floor())
}
