//! What every profile satisfies, checked where one is made.
//!
//! A profile is convex and falls with α = e^ε, is 1 at α = 0, and at least max(0, 1 − α). A pair of laws (P, Q) reflects:
//! H_α(P‖Q) = 1 − α + α·H_{1/α}(Q‖P), since ∫(p − αq)_+ − ∫(αq − p)_+ = 1 − α. Each evaluation comes with a supporting line
//! d − s(α′/α − 1), whose values at α′ = 0 and far right say that P and Q have no more mass than 1.
//!
//! A profile that breaks one of these by more than its stated errors belongs to no mechanism: a hypothesis of its proof does
//! not hold for its parameters, or a mass is missing. It is refused, whatever was made of it. The check sees a profile at
//! some losses only, so it finds such mistakes and proves nothing.

use std::sync::Arc;

use crate::error::{Error, Result};
use crate::pair::{reversed, Profile, ProfilePoint};
use crate::special::UNIT_ROUNDOFF;

/// The losses at which every profile is seen, and as many at the scale of its own losses.
const LOSSES: [f64; 6] = [0.05, 0.5, 2.0, 8.0, 40.0, 300.0];
/// The scale of its losses is δ(0), times these.
const SCALED: [f64; 4] = [0.3, 1.0, 4.0, 16.0];
/// What the statements themselves are computed with, relative to their terms.
const ROUNDING: f64 = 64.0 * UNIT_ROUNDOFF;

/// Returns a profile that satisfies what every profile does, at the losses at which it is seen.
///
/// # Errors
/// [`Error::Numerics`] for a profile that does not; the reason says which property it lacks.
pub fn checked(profile: Arc<dyn Profile>) -> Result<Arc<dyn Profile>> {
    let points = seen(profile.as_ref());
    // A bound from above may count an infinite loss on top of all finite ones.
    let whole = 1.0 + 1.001 * profile.delta_at_infinity() + ROUNDING;
    for &(epsilon, point) in &points {
        alone(epsilon, point, whole)?;
    }
    for &(epsilon, line) in &points {
        for &(other, point) in &points {
            supported(epsilon, line, other, point)?;
        }
    }
    if let Some(reversal) = reversed(&profile) {
        for &(epsilon, point) in &points {
            reflected(epsilon, point, reversal.at(-epsilon).or_trivial(-epsilon))?;
        }
    }
    Ok(profile)
}

/// Returns the points at the losses at which a profile is seen.
fn seen(profile: &dyn Profile) -> Vec<(f64, ProfilePoint)> {
    let middle = profile.at(0.0).or_trivial(0.0);
    let scale = middle.delta.clamp(1e-9, 1.0);
    let sizes = LOSSES.iter().copied().chain(SCALED.iter().map(|share| share * scale));
    let losses = sizes.flat_map(|size| [-size, size]);
    let points = losses.map(|epsilon| (epsilon, profile.at(epsilon).or_trivial(epsilon)));
    points.chain([(0.0, middle)]).collect()
}

fn refused(reason: &'static str) -> Result<()> {
    Err(Error::Numerics { reason })
}

/// Refuses a value that no profile has, and a line that no profile has as its support. All outcomes have the mass
/// `whole` at most.
fn alone(epsilon: f64, point: ProfilePoint, whole: f64) -> Result<()> {
    let least = (-epsilon.exp_m1()).max(0.0);
    if point.delta + point.delta_error < least * (1.0 - ROUNDING) {
        return refused("a profile is below 1 − e^ε, so that mass of its loss is missing");
    }
    if point.delta - point.delta_error > whole {
        return refused("a profile is above 1");
    }
    if point.slope + point.slope_error < -ROUNDING {
        return refused("a profile rises");
    }
    if point.delta - point.delta_error + point.slope - point.slope_error > whole {
        return refused("the losses above an ε have more mass than 1");
    }
    if point.slope - point.slope_error > epsilon.exp() * whole {
        return refused("the losses above an ε have more mass than 1 under the other law");
    }
    Ok(())
}

/// Refuses a profile that lies below one of its supporting lines: it is not convex, or it rises.
fn supported(epsilon: f64, line: ProfilePoint, other: f64, point: ProfilePoint) -> Result<()> {
    let change = (other - epsilon).exp_m1();
    if !change.is_finite() {
        return Ok(());
    }
    let slope = line.slope + line.slope_error * change.signum();
    let least = line.delta - line.delta_error - slope * change;
    // The exponent of α′/α is rounded, and so is the slope's e^ε.
    let rounding =
        (ROUNDING + UNIT_ROUNDOFF * (epsilon.abs() + 2.0 * other.abs())) * (line.delta + (slope * change).abs());
    if least > point.delta + point.delta_error + rounding {
        return refused("a profile is not convex");
    }
    Ok(())
}

/// Refuses two profiles that are not those of one pair in its two directions.
fn reflected(epsilon: f64, point: ProfilePoint, mirrored: ProfilePoint) -> Result<()> {
    if epsilon > 600.0 {
        return Ok(());
    }
    let alpha = epsilon.exp();
    let (expected, error) = (-epsilon.exp_m1() + alpha * mirrored.delta, alpha * mirrored.delta_error);
    let rounding = ROUNDING * (1.0 + alpha);
    if (point.delta - expected).abs() > point.delta_error + error + rounding {
        return refused("the profiles of the two directions are not those of one pair");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pair::discrete::DiscretePair;
    use crate::pair::Reversal;

    /// What a mistake makes of the true point at ε.
    type Mistake = fn(f64, ProfilePoint) -> ProfilePoint;

    /// A profile with one mistake.
    #[derive(Debug)]
    struct Wrong {
        inner: DiscretePair,
        mistake: Mistake,
        reversed: bool,
    }

    impl Profile for Wrong {
        fn at_within(&self, epsilon: f64, _bracket: (f64, f64)) -> ProfilePoint {
            (self.mistake)(epsilon, self.inner.at(epsilon))
        }

        fn reversal(&self) -> Reversal {
            if self.reversed {
                Reversal::Same
            } else {
                Reversal::Unknown
            }
        }
    }

    fn refusal(mistake: Mistake, reversed: bool) -> String {
        let inner = DiscretePair::new(vec![(0.7, 0.1), (0.3, 0.9)]).unwrap();
        match checked(Arc::new(Wrong { inner, mistake, reversed })) {
            Ok(_) => String::new(),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn what_no_profile_does_is_refused() {
        assert_eq!(refusal(|_, point| point, false), "");
        let wrong: [(Mistake, &str); 5] = [
            (|_, point| ProfilePoint { delta: 0.9 * point.delta, ..point }, "mass of its loss is missing"),
            (|_, point| ProfilePoint { delta: point.delta + 1.0, ..point }, "above 1"),
            (|_, point| ProfilePoint { slope: -0.1, ..point }, "rises"),
            (|_, point| ProfilePoint { slope: point.slope + 0.4, ..point }, "more mass than 1"),
            (
                |epsilon, point| {
                    let more = if epsilon > 10.0 { 0.05 } else { 0.0 };
                    ProfilePoint { delta: point.delta + more, ..point }
                },
                "not convex",
            ),
        ];
        for (mistake, reason) in wrong {
            let refusal = refusal(mistake, false);
            assert!(refusal.contains(reason), "{reason}: {refusal}");
        }
        // The pair is not its own reversal.
        assert!(refusal(|_, point| point, true).contains("two directions"));
    }
}
