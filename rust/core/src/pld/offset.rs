//! Lattices with an offset, such that one point is the loss that most rounds nearly have.
//!
//! A record that rarely takes part loses ln(1 − p) in nearly every round, to within far less than a lattice's spacing.
//! Between two lattice points that loss is spread from above, by a variance of up to h²/4 for each round, and lowered
//! from below, by up to h. On a lattice with an offset it lies on a point, which costs neither; in the composition the
//! offsets are summed.

use crate::pair::Profile;
use crate::pld::masses::Masses;
use crate::special::{real, UNIT_ROUNDOFF};

/// A short range of losses that has much of a law's mass.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Concentration {
    /// The middle of the range.
    loss: f64,
    /// The width of the range that has half of its mass.
    width: f64,
}

/// Two neighbouring atoms of a sketch with less mass than this are not a concentration.
const MUCH: f64 = 0.1;
/// Losses as close together as this fraction of the spacing are one loss for the lattice.
const CLOSE: f64 = 0.01;
/// If losses reach less far, there is no plateau on which the choice of the offset matters, and certificates already
/// contain the last digits of results without it.
const FAR: f64 = 32.0;
/// The bits of a position on a lattice, and of the fractions of its spacing that an offset may be; the spacing takes
/// twelve more.
const BITS: i32 = 40;

impl Concentration {
    /// Returns where most of a law is, if it is concentrated; `sketch` is the law from above on a coarse mesh. This is
    /// a choice: no bound depends on it.
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

    /// Returns the offset of a lattice of this spacing, on which losses go up to `reach`, if an offset helps.
    ///
    /// Where losses reach far, the offset is where the supporting lines one spacing to the left and to the right meet,
    /// which is the mean of the losses in between: so the law from below has all of their mass in one atom, and the
    /// profile on a plateau beside it is not lowered because of the small mass next to the large one.
    ///
    /// It is a multiple of a fraction of the spacing, such that its sum with every position is exact: both are
    /// multiples of that fraction, which has twelve bits, by whole numbers below 2⁴⁰.
    pub fn offset(&self, profile: &dyn Profile, spacing: f64, reach: f64) -> f64 {
        #[allow(clippy::cast_possible_truncation)] // far below 2^31
        let bits = BITS - ((reach / spacing).log2().ceil() as i32).max(0) - 2;
        if bits < 1 || self.width > CLOSE * spacing {
            return 0.0;
        }
        let unit = spacing * f64::from(-bits).exp2();
        let at = if reach > FAR { meeting(profile, self.loss, spacing) } else { self.loss };
        let rest = (at / unit).round();
        rest * unit
    }
}

/// Returns where the supporting lines at this distance from a loss meet; the loss itself if rounding makes them
/// useless.
fn meeting(profile: &dyn Profile, loss: f64, distance: f64) -> f64 {
    let [left, right] = [loss - distance, loss + distance].map(|at| profile.at(at).or_trivial(at));
    let missed = left.delta - right.delta + right.slope * (-2.0 * distance).exp_m1();
    let change = left.slope - right.slope * (-2.0 * distance).exp();
    let at = loss - distance + (missed / change).ln_1p();
    if (at - loss).abs() < distance {
        at
    } else {
        loss
    }
}

/// Returns approximately the loss above which the law has this mass.
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

/// The loss at position 0 of a composed lattice: the sum of the rounds' offsets, each times its count.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct LatticeOrigin {
    /// The computed sum.
    pub loss: f64,
    /// The sum of the sizes of the terms, times the relative error of each term and of their sums.
    rounding: f64,
}

impl LatticeOrigin {
    /// Computes the origin for offsets and counts.
    pub fn new(terms: impl Iterator<Item = (f64, u64)>) -> Self {
        let (mut loss, mut size, mut count) = (0.0, 0.0, 0.0);
        for (offset, rounds) in terms {
            // covered by `rounding`
            let term = offset * real(rounds);
            loss += term;
            size += term.abs();
            count += 1.0;
        }
        Self { loss, rounding: UNIT_ROUNDOFF * size * (count + 4.0) }
    }

    /// Returns a bound on the distance of ε − `loss`, as computed, from ε minus the exact sum.
    pub fn error(&self, epsilon: f64) -> f64 {
        if self.rounding > 0.0 {
            self.rounding + 2.0 * UNIT_ROUNDOFF * epsilon.abs()
        } else {
            // Without offsets positions are losses.
            0.0
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pair::discrete::DiscretePair;
    use crate::pair::mixture::MixturePair;
    use crate::pld::cumulant::Groups;
    use crate::pld::mesh::Side;
    use crate::pld::mesh::{exact_spacing, Mesh};
    use crate::run::Run;

    /// Returns the laws from below and from above of a profile, on every point of a lattice with the offset that helps.
    fn sides(profile: &dyn Profile, spacing: f64, range: (f64, f64)) -> [Masses; 2] {
        let run = Run::default();
        let fine = exact_spacing((range.1 - range.0) * 2.0_f64.powi(-36));
        let ends = Mesh::around(profile, fine, 0.0, range);
        let mesh = ends.refined(profile, 4096, &run, |_, right, gap| gap <= 0.05 * right.point.delta).unwrap();
        let most = Concentration::of(profile, &Masses::new(Side::Upper, profile, &mesh).unwrap()).unwrap();
        let offset = most.offset(profile, spacing, range.1);
        assert!(offset < 0.0);
        let mesh = Mesh::around(profile, spacing, offset, range).refined(profile, 1 << 16, &run, |_, _, _| false);
        let mesh = mesh.unwrap();
        [Side::Lower, Side::Upper].map(|side| Masses::new(side, profile, &mesh).unwrap())
    }

    #[test]
    fn a_plateau_is_not_lowered_for_the_little_next_to_most() {
        // One record in a hundred takes part, and loses 28 ± 7 nats: from 0.01 to 15 nats the profile hardly falls.
        let pair = MixturePair::poisson(1, 0.01, 0.1329, false).unwrap();
        let mean = |masses: &Masses| Groups::new(std::iter::once((masses, 2000))).at(0.0).mean;
        let [coarse, fine] = [0.01, 0.005].map(|spacing| {
            let [lower, upper] = sides(&pair, exact_spacing(spacing), (-0.0101, 80.0));
            mean(&upper) - mean(&lower)
        });
        assert!(0.0 <= fine && fine < coarse && coarse < 1e-3, "{fine} {coarse}");
    }

    #[test]
    fn offsets_have_exact_sums_with_places() {
        let at = Concentration { loss: -0.010_050_335_853_501_45, width: 1e-9 };
        // Nearly all of the law is that loss.
        let pair = DiscretePair::new(vec![(0.99, 1.0), (0.01, 0.0)]).unwrap();
        for (spacing, reach) in [(exact_spacing(0.023), 120.0), (exact_spacing(1e-5), 3.0), (exact_spacing(0.3), 1e4)] {
            let offset = at.offset(&pair, spacing, reach);
            assert!((offset - at.loss).abs() < 1e-4 * spacing && offset != 0.0);
            for index in [-7.0, -1.0, 1.0, 3.0, (reach / spacing).floor()] {
                let (place, sum): (f64, f64) = (index * spacing, offset + index * spacing);
                // This is the remainder of a rounded sum (Knuth).
                let back = sum - place;
                assert!(((offset - back) + (place - (sum - back))).abs() < f64::MIN_POSITIVE);
            }
        }
        assert!(at.offset(&pair, exact_spacing(1e-9), 1.0).abs() < f64::MIN_POSITIVE);
        assert!(at.offset(&pair, exact_spacing(1e-12), 1.0).abs() < f64::MIN_POSITIVE);
    }
}
