//! Lattices that begin where most rounds lose nearly the same.
//!
//! A record that hardly ever takes part loses ln(1 − p) in nearly every round, to within far less than a lattice's spacing. Between
//! two lattice points that loss is spread from above, by a variance of up to h²/4 for each round, and given up from below, by up to
//! h. On a lattice with an offset it lies on a point, which costs neither; in the composition the offsets are a sum.

use crate::pair::Profile;
use crate::pld::masses::Masses;
use crate::special::UNIT_ROUNDOFF;

/// Where much of a law is on a short range of losses.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Concentration {
    /// The middle of it.
    loss: f64,
    /// The range of half of its mass.
    width: f64,
}

/// Two neighbouring atoms of a sketch with less mass than this say nothing.
const MUCH: f64 = 0.1;
/// Losses as close together as this share of the spacing are one loss to the lattice.
const CLOSE: f64 = 0.01;
/// Bits of a position on a lattice, and of the fractions of its spacing that an offset may be: twelve more are the spacing's.
const BITS: i32 = 40;

impl Concentration {
    /// Where most of a law is, if anywhere; `sketch` is the law from above on a coarse mesh. A choice: no bound depends on it.
    #[must_use]
    pub fn of(profile: &dyn Profile, sketch: &Masses) -> Option<Self> {
        let mass = &sketch.mass;
        let (at, most) =
            mass.windows(2).map(|pair| pair[0] + pair[1]).enumerate().max_by(|a, b| a.1.total_cmp(&b.1))?;
        if most < MUCH {
            return None;
        }
        let above: f64 = mass[at + 2..].iter().sum::<f64>() + sketch.at_infinity;
        let ends = (sketch.epsilon[at.saturating_sub(1)], sketch.epsilon[(at + 2).min(mass.len() - 1)]);
        let [high, loss, low] = [0.25, 0.5, 0.75].map(|share| quantile(profile, ends, above + share * most));
        Some(Self { loss, width: high - low })
    }

    /// The offset of a lattice of this spacing, on which losses go up to `reach`, if one helps.
    ///
    /// It is a multiple of a fraction of the spacing, such that its sum with every place is exact: both are multiples of that
    /// fraction, which has twelve bits, by whole numbers below 2⁴⁰.
    #[must_use]
    pub fn offset(&self, spacing: f64, reach: f64) -> f64 {
        #[allow(clippy::cast_possible_truncation)] // far below 2^31
        let bits = BITS - ((reach / spacing).log2().ceil() as i32).max(0) - 2;
        if bits < 1 || self.width > CLOSE * spacing {
            return 0.0;
        }
        let unit = spacing * f64::from(-bits).exp2();
        let rest = (self.loss / unit).round();
        rest * unit
    }
}

/// About where the law of losses has this mass above.
fn quantile(profile: &dyn Profile, (mut low, mut high): (f64, f64), mass: f64) -> f64 {
    for _ in 0..48 {
        let middle = 0.5 * (low + high);
        let point = profile.at(middle).or_trivial(middle);
        // P(L > ε) = δ + slope.
        if point.delta + point.slope > mass {
            low = middle;
        } else {
            high = middle;
        }
    }
    0.5 * (low + high)
}

/// The loss at place 0 of a composed lattice: the sum of the rounds' offsets, each times its count.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct LatticeOrigin {
    /// About that sum.
    pub loss: f64,
    /// The sum of the terms' sizes, times the relative error of each and of the sums of them.
    rounding: f64,
}

impl LatticeOrigin {
    /// For offsets and counts.
    #[must_use]
    pub fn new(terms: impl Iterator<Item = (f64, u64)>) -> Self {
        let (mut loss, mut size, mut count) = (0.0, 0.0, 0.0);
        for (offset, rounds) in terms {
            #[allow(clippy::cast_precision_loss)] // covered by `rounding`
            let term = offset * rounds as f64;
            loss += term;
            size += term.abs();
            count += 1.0;
        }
        Self { loss, rounding: UNIT_ROUNDOFF * size * (count + 4.0) }
    }

    /// How far ε − `loss`, as computed, may be from ε minus the sum itself.
    #[must_use]
    pub fn error(&self, epsilon: f64) -> f64 {
        if self.rounding > 0.0 {
            self.rounding + 2.0 * UNIT_ROUNDOFF * epsilon.abs()
        } else {
            // Without offsets places are losses.
            0.0
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pld::mesh::exact_spacing;

    #[test]
    fn offsets_have_exact_sums_with_places() {
        let at = Concentration { loss: -0.010_050_335_853_501_45, width: 1e-9 };
        for (spacing, reach) in [(exact_spacing(0.023), 120.0), (exact_spacing(1e-5), 3.0), (exact_spacing(0.3), 1e4)] {
            let offset = at.offset(spacing, reach);
            assert!((offset - at.loss).abs() < 1e-4 * spacing && offset != 0.0);
            for index in [-7.0, -1.0, 1.0, 3.0, (reach / spacing).floor()] {
                let (place, sum): (f64, f64) = (index * spacing, offset + index * spacing);
                // The remainder of a rounded sum (Knuth).
                let back = sum - place;
                assert!(((offset - back) + (place - (sum - back))).abs() < f64::MIN_POSITIVE);
            }
        }
        assert!(at.offset(exact_spacing(1e-9), 1.0).abs() < f64::MIN_POSITIVE);
        assert!(at.offset(exact_spacing(1e-12), 1.0).abs() < f64::MIN_POSITIVE);
    }
}
