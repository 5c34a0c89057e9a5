//! Profiles that are stated as values at some ε: guarantees of other libraries, tables, and finite pairs.
//!
//! Let h be a profile that is at most δ_i at α_i = e^{ε_i}. Since h is convex in α, 1 at α = 0, and falls with α, it is
//! at most the largest convex function with these properties: the lower convex hull of (0, 1) and the points (α_i, δ_i),
//! with chords in α (a chord in ε would lie below it), constant right of the last vertex. That function is convex and
//! at least (1 − α)_+ if every δ_i is, so it is the profile of a pair of its own (Zhu, Dong & Wang 2022, Proposition
//! 8): no smaller bound follows from the points.
//!
//! **Guarantees in both directions.** Let the profiles h of both directions be at most δ at e^ε. The profile of the
//! other direction is 1 − α + α·h(1/α), so h is also at most 1 − e^{−ε}(1 − δ) at e^{−ε}. With one point this gives the
//! pair of Kairouz, Oh & Viswanath 2015, Theorem 3.4: P has δ at the loss ∞, (1−δ)e^ε/(1+e^ε) at ε and (1−δ)/(1+e^ε) at
//! −ε.
//!
//! **Rounding.** The vertices are exact: they define the function. A point becomes a vertex only if the chords on both
//! sides of it differ in steepness by more than the rounding of that comparison, so the function with these vertices is
//! convex without any error. A point that is left out was on the chord of its neighbours to rounding, or above it; that
//! chord joins points that h is below, and h is convex, so the function is an upper bound on h in every case.

use crate::error::{domain, Result};
use crate::exact::{decimal, Enclosure, Rational};
use crate::pair::moments::integrated;
use crate::pair::{pure, LargestLoss, Profile, ProfilePoint, Reversal};
use crate::run::Run;
use crate::special::{UNDERFLOW, UNIT_ROUNDOFF};

/// How far a stated δ may lie below 1 − e^ε because of its rounding; it is raised to that value.
const ROUNDED: f64 = 1e-9;
/// The relative error of a difference of two values divided by a width in α.
const STEEPNESS: f64 = 16.0 * UNIT_ROUNDOFF;

/// The largest profile that is at most these values at these points.
///
/// * Formula: the lower convex hull of (0, 1) and the points (e^ε, δ), constant right of the last one.
/// * Units: ε in nats, δ a probability.
/// * Guarantee: [`Profile::at_within`] returns values of this function within their stated errors; it is at least every
///   profile that the points hold for.
/// * Source: the head of this file.
#[derive(Debug, Clone, PartialEq)]
pub struct Tabulated {
    /// The vertices (ε, δ), with increasing ε and falling δ, convex in e^ε.
    vertices: Vec<(f64, f64)>,
    /// Whether the points hold for both directions, so that the profile is its own reversal.
    symmetric: bool,
    /// The loss from which on δ is 0, if there is one and it is known better than as the decimal of the last vertex.
    end: Option<Rational>,
}

impl Tabulated {
    /// Creates the profile from points (ε, δ), in any order; ε may be negative.
    ///
    /// # Errors
    /// [`Error::Domain`] without points, for an ε that is not finite, and for a δ that no profile has there: outside
    /// [0, 1], or below 1 − e^ε.
    pub fn new(mut points: Vec<(f64, f64)>) -> Result<Self> {
        if points.is_empty() {
            return domain("number of points", 0.0, "at least 1");
        }
        for (epsilon, delta) in &mut points {
            if !epsilon.is_finite() {
                return domain("epsilon", *epsilon, "a finite number");
            }
            if !(0.0..=1.0).contains(delta) {
                return domain("delta", *delta, "between 0 and 1");
            }
            // The result is rounded up, so that the hull is at least (1 − α)_+.
            let least = (-epsilon.exp_m1()).max(0.0) * (1.0 + 4.0 * UNIT_ROUNDOFF);
            if *delta < least - ROUNDED {
                return domain("delta", *delta, "at least 1 − e^epsilon");
            }
            *delta = delta.max(least).min(1.0);
        }
        points.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)));
        points.dedup_by(|next, kept| next.0 <= kept.0);
        Ok(Self { vertices: vertices(&points), symmetric: false, end: None })
    }

    /// Creates the profile of both directions from guarantees (ε, δ) with ε ≥ 0 that hold in both directions.
    ///
    /// # Errors
    /// [`Error::Domain`] without guarantees, for an ε that is negative or not finite, and for a δ outside [0, 1].
    pub fn guarantees(points: &[(f64, f64)]) -> Result<Self> {
        Ok(Self { symmetric: true, ..Self::directed(points, points)? })
    }

    /// Creates the profile of one direction from guarantees (ε, δ) with ε ≥ 0 that hold in it, and from those of the other direction.
    ///
    /// # Errors
    /// As [`Tabulated::guarantees`].
    pub fn directed(points: &[(f64, f64)], reversed: &[(f64, f64)]) -> Result<Self> {
        if let Some(&(epsilon, _)) = points.iter().chain(reversed).find(|point| point.0.is_nan() || point.0 < 0.0) {
            return domain("epsilon", epsilon, "at least 0 and finite");
        }
        // 1 − e^{−ε}(1 − δ), rounded up: two positive terms.
        let reflected = |&(epsilon, delta): &(f64, f64)| {
            let value = -(-epsilon).exp_m1() + (-epsilon).exp() * delta;
            (
                -epsilon,
                if (0.0..=1.0).contains(&delta) { (value * (1.0 + 8.0 * UNIT_ROUNDOFF)).min(1.0) } else { delta },
            )
        };
        // At ε = 0 the point and its reflection are the same.
        let other = reversed.iter().filter(|point| point.0 > 0.0).map(reflected);
        Self::new(other.chain(points.iter().copied()).collect())
    }

    /// Returns the profile, whose δ is 0 from this loss on; the last vertex is that number, rounded up.
    pub fn ending_at(self, end: Rational) -> Self {
        Self { end: Some(end), ..self }
    }

    /// Returns the value at the vertex before this one, and the part of α = e^{ε_i} that lies between the two.
    fn before(&self, i: usize) -> (f64, f64) {
        match i.checked_sub(1) {
            Some(j) => (self.vertices[j].1, -(self.vertices[j].0 - self.vertices[i].0).exp_m1()),
            None => (1.0, 1.0),
        }
    }
}

/// Returns the vertices of the lower convex hull of (0, 1) and these points, which have increasing ε.
fn vertices(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let mut kept: Vec<(f64, f64)> = Vec::with_capacity(points.len());
    for &point in points {
        // The function falls, so a point that is no lower than one left of it is above it.
        if kept.last().is_some_and(|last| point.1 >= last.1) {
            continue;
        }
        while let Some(&middle) = kept.last() {
            // Both slopes are in units of 1/α at the middle.
            let left = match kept.len().checked_sub(2).map(|before| kept[before]) {
                Some(before) => (before.1 - middle.1) / -(before.0 - middle.0).exp_m1(),
                None => 1.0 - middle.1,
            };
            let right = (middle.1 - point.1) / (point.0 - middle.0).exp_m1();
            if left > right + STEEPNESS * (left + right) {
                break;
            }
            kept.pop();
        }
        // A value of 1 is on the level line through (0, 1), whose slope is 0.
        if point.1 < 1.0 || points.len() == 1 {
            kept.push(point);
        }
    }
    if kept.is_empty() {
        // No point says anything: δ is 1 everywhere.
        kept.push((points[points.len() - 1].0, 1.0));
    }
    kept
}

impl Profile for Tabulated {
    fn at_within(&self, epsilon: f64, _bracket: (f64, f64)) -> ProfilePoint {
        let i = self.vertices.partition_point(|vertex| vertex.0 <= epsilon);
        let Some(&(right, value)) = self.vertices.get(i) else {
            let delta = self.vertices[i - 1].1;
            return ProfilePoint { delta, delta_error: 0.0, slope: 0.0, slope_error: 0.0, threshold: f64::NAN };
        };
        // Widths in α are relative to the right end, and exact to a few units, since x e^{−x} ≤ 1 − e^{−x}.
        let (before, whole) = self.before(i);
        let (drop, rest) = (before - value, -(epsilon - right).exp_m1());
        let delta = value + drop * (rest / whole);
        let distance = right - epsilon;
        let slope = drop * ((-distance).exp() / whole);
        ProfilePoint {
            delta: delta.min(1.0),
            delta_error: STEEPNESS * delta + UNDERFLOW,
            slope,
            slope_error: UNIT_ROUNDOFF * (16.0 + distance.min(800.0)) * slope + UNDERFLOW,
            threshold: f64::NAN,
        }
    }

    fn delta_at_infinity(&self) -> f64 {
        self.vertices[self.vertices.len() - 1].1
    }

    /// Returns the last vertex if δ is 0 there, with its mass: the decrease of δ on its left, divided by the part of α.
    ///
    /// Whether a vertex is above ε is decided exactly, so every point is that of the outcomes {L > ε}.
    fn largest_loss(&self) -> LargestLoss {
        let last = self.vertices.len() - 1;
        let (end, value) = self.vertices[last];
        if value > 0.0 {
            return LargestLoss::UNBOUNDED;
        }
        let (before, whole) = self.before(last);
        LargestLoss { at_least: end, at_most: end, mass: before / whole * (1.0 - STEEPNESS) }
    }

    /// Returns the loss of the last vertex as a decimal, or the exact one that was stated with the points.
    fn exact_largest_loss(&self) -> Option<Enclosure> {
        let &(loss, value) = self.vertices.last()?;
        (value <= 0.0).then(|| Enclosure::exactly(self.end.clone().unwrap_or_else(|| decimal(loss))))
    }

    /// With each point its reflection is one, so that the hull is its own reflection.
    fn reversal(&self) -> Reversal {
        if self.symmetric {
            Reversal::Same
        } else {
            Reversal::Unknown
        }
    }

    /// Returns the moment of pure ε if the largest loss holds in both directions; otherwise the profile is integrated.
    fn log_moment(&self, order: f64, run: &Run) -> Result<Option<f64>> {
        match self.exact_largest_loss() {
            Some(largest) if self.symmetric => Ok(Some(pure::log_moment(largest.doubles().1, order))),
            _ => integrated(self, order, run),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns Σ p (1 − α e^{−ℓ})_+ plus the mass of infinite loss.
    fn of_atoms(atoms: &[(f64, f64)], infinite: f64, epsilon: f64) -> f64 {
        infinite + atoms.iter().map(|(loss, mass)| mass * (-(epsilon - loss).exp_m1()).max(0.0)).sum::<f64>()
    }

    #[test]
    fn one_guarantee_is_the_pair_of_kairouz_oh_and_viswanath() {
        for (e, d) in [(1.0, 0.0), (0.3, 1e-5), (1e-7, 1e-12), (5.0, 0.3), (30.0, 0.0)] {
            let profile = Tabulated::guarantees(&[(e, d)]).unwrap();
            let atoms = [(e, (1.0 - d) / (1.0 + (-e).exp())), (-e, (1.0 - d) / (1.0 + e.exp()))];
            for share in [-3.0, -1.0, -0.99, -0.2, 0.0, 0.7, 0.999, 1.0, 1.5, 40.0] {
                let (point, exact) = (profile.at(share * e), of_atoms(&atoms, d, share * e));
                assert!((point.delta - exact).abs() <= 1e-14 * exact + point.delta_error, "{e} {d} {share} {point:?}");
            }
            let largest = profile.largest_loss();
            if d > 0.0 {
                assert_eq!(largest, LargestLoss::UNBOUNDED);
                assert!((profile.delta_at_infinity() - d).abs() < 1e-300);
            } else {
                assert!((largest.at_most - e).abs() < 1e-300 && (largest.mass / atoms[0].1 - 1.0).abs() < 1e-14);
                assert!(largest.mass <= atoms[0].1);
            }
        }
    }

    #[test]
    fn the_hull_of_a_finite_pair_is_its_profile() {
        let atoms = [(-1.5, 0.05), (-0.1, 0.3), (0.4, 0.44), (2.0, 0.2)];
        let infinite = 0.01;
        let exact = |epsilon: f64| of_atoms(&atoms, infinite, epsilon);
        // Further points of the profile, and one above it, change nothing.
        let mut points: Vec<(f64, f64)> = [-1.5, -0.1, 0.4, 2.0, -0.8, 1.1, 3.0].map(|e| (e, exact(e))).to_vec();
        points.push((1.0, exact(1.0) + 0.05));
        let profile = Tabulated::new(points).unwrap();
        assert_eq!(profile.vertices.len(), 4);
        for step in -40..80 {
            let epsilon = 0.07 * f64::from(step);
            let point = profile.at(epsilon);
            // Losses have masses 1 − e^{…}: below the smallest loss, the total is not 1 here, so it is not compared.
            if epsilon >= -1.5 {
                assert!((point.delta - exact(epsilon)).abs() < 1e-14, "{epsilon} {point:?}");
                let above: f64 = atoms.iter().filter(|a| a.0 > epsilon).map(|a| a.1).sum::<f64>() + infinite;
                assert!((point.delta + point.slope - above).abs() < 1e-13, "{epsilon} {point:?} {above}");
            }
        }
    }

    #[test]
    fn chords_are_in_alpha() {
        // Binary response at ε = 1, seen at 0 and 1: half-way, in ε, the chord in ε would be too low.
        let profile = Tabulated::guarantees(&[(0.0, 0.462_117_157_260_009_76), (1.0, 0.0)]).unwrap();
        let exact = (1.0_f64.exp() - 0.5_f64.exp()) / (1.0 + 1.0_f64.exp());
        assert!((profile.at(0.5).delta - exact).abs() < 1e-14);
    }

    #[test]
    fn what_no_profile_can_be_is_refused() {
        assert!(Tabulated::new(vec![]).is_err());
        assert!(Tabulated::new(vec![(f64::NAN, 0.1)]).is_err());
        assert!(Tabulated::new(vec![(1.0, -0.1)]).is_err() && Tabulated::new(vec![(1.0, f64::NAN)]).is_err());
        assert!(Tabulated::new(vec![(-1.0, 0.5)]).is_err());
        assert!(Tabulated::guarantees(&[(-0.1, 0.5)]).is_err() && Tabulated::guarantees(&[(0.1, 1.5)]).is_err());
        assert!(Tabulated::guarantees(&[(f64::INFINITY, 0.5)]).is_err());
        // A claim of 1 says nothing.
        let nothing = Tabulated::guarantees(&[(2.0, 1.0)]).unwrap();
        assert!((nothing.at(-5.0).delta - 1.0).abs() < 1e-15 && (nothing.at(9.0).delta - 1.0).abs() < 1e-15);
    }
}
