//! Geometric grids: node i is e^{hi}, h = h₀·2^{−r} after r refinements.

use crate::error::{domain, Result};
use crate::pair::allocation::Terms;
use crate::special::real;

/// The largest number of nodes that is summed: the pairs of more nodes would take minutes.
const MOST: f64 = 200_000.0;
/// The largest distance of logarithms of values from 0: within it the values, and products with their inverses, do not
/// overflow.
const FARTHEST: f64 = 650.0;

/// The grid, which all laws of an allocation have in common.
#[derive(Debug, Clone)]
pub struct GeometricGrid {
    first: f64,
    spacing: f64,
    /// How many standard deviations from the mean laws are followed: mass beyond this is negligible.
    reach: f64,
    negligible: f64,
    total: u64,
}

impl GeometricGrid {
    /// Creates the grid for these terms.
    pub fn new(terms: &[Terms], total: u64, spacing: f64, negligible: f64) -> Result<Self> {
        let least = terms.iter().fold(f64::INFINITY, |least, term| least.min(term.square));
        let most = terms.iter().fold(0.0_f64, |most, term| most.max(term.square));
        // Pr[Z > z] ≤ e^{−z²/2}.
        let reach = (-2.0 * (negligible / 64.0).ln()).sqrt();
        let this = Self { first: spacing * least.sqrt(), spacing, reach, negligible, total };
        if this.ends(most).1 > FARTHEST {
            return domain("square", most, "one with likelihood ratios below e^650");
        }
        if (most + 2.0 * reach * most.sqrt()) / this.first > MOST {
            return domain("spacing", spacing, "one that gives fewer nodes");
        }
        Ok(this)
    }

    /// Returns the distance between nodes, in logarithms.
    pub fn step(&self, refined: u32) -> f64 {
        self.first * 0.5_f64.powi(i32::try_from(refined).unwrap_or(i32::MAX))
    }

    /// Returns the distance between nodes that suits the sum of this many terms: a fraction of its standard deviation
    /// relative to its mean.
    pub fn wanted(&self, square: f64, terms: u64) -> f64 {
        self.spacing * square.sqrt().min((square.exp_m1() / real(terms)).sqrt())
    }

    /// Returns how many standard deviations from their means laws are followed.
    pub const fn reach(&self) -> f64 {
        self.reach
    }

    /// Returns the number of terms.
    pub fn total(&self) -> f64 {
        real(self.total)
    }

    /// Returns how far, in logarithms, a term is followed from its median on both sides.
    pub fn ends(&self, square: f64) -> (f64, f64) {
        let far = self.reach * square.sqrt();
        (-0.5 * square - far, 0.5 * square + far)
    }

    /// Returns how much may be lost at one end of the law of this many terms: over all its uses no more than a 64th of
    /// what is negligible.
    pub fn loss(&self, terms: u64) -> f64 {
        self.negligible / 64.0 * (real(terms) / real(self.total))
    }
}

/// Returns where e^{hi} + e^{h(i−d)} lies above node i, in steps of a grid that is `finer` times as fine: the whole
/// steps, and the fraction.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // nodes
pub fn offset(d: usize, step: f64, finer: usize) -> (usize, f64) {
    let above = (-step * real(d)).exp().ln_1p() / (step / real(finer));
    (above as usize, above - above.floor())
}
