//! What every profile satisfies, checked where one is made.
//!
//! A profile is convex and falls with α = e^ε, is 1 at α = 0, and at least max(0, 1 − α). A pair of laws (P, Q) reflects:
//! H_α(P‖Q) = 1 − α + α·H_{1/α}(Q‖P), since ∫(p − αq)_+ − ∫(αq − p)_+ = 1 − α. Each evaluation comes with a supporting line
//! d − s(α′/α − 1), whose values at α′ = 0 and far right say that P and Q have no more mass than 1.
//!
//! A profile that breaks one of these by more than its stated errors belongs to no mechanism: a hypothesis of its proof does
//! not hold for its parameters, or a mass is missing. It is refused, whatever was made of it. The check sees a profile at
//! some losses only, so it finds such mistakes and proves nothing.
//!
//! What is composed, or made into another profile, is [`Checked`], which nothing but the check makes. So no profile is
//! composed, sampled or selected from before it was seen, wherever it comes from. The bounds of which a hull is the least
//! are not: they need not be convex where the hull does not follow them. The hull is.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::pair::{Profile, ProfilePoint, Reversal};
use crate::special::UNIT_ROUNDOFF;

/// The losses at which every profile is seen, and as many at the scale of its own losses.
const LOSSES: [f64; 6] = [0.05, 0.5, 2.0, 8.0, 40.0, 300.0];
/// The scale of its losses is δ(0), times these.
const SCALED: [f64; 4] = [0.3, 1.0, 4.0, 16.0];
/// What the statements themselves are computed with, relative to their terms.
const ROUNDING: f64 = 64.0 * UNIT_ROUNDOFF;

/// A profile that satisfies what every profile does, at the losses at which it was seen.
#[derive(Clone)]
pub struct Checked {
    profile: Arc<dyn Profile>,
    /// The profile of the pair with both laws exchanged, where it is known: it satisfies the same.
    reversal: Option<Arc<dyn Profile>>,
}

/// Returns a profile that satisfies what every profile does, at the losses at which it is seen.
///
/// # Errors
/// [`Error::Numerics`] for a profile that does not; the reason says which property it, or its reversal, lacks.
pub fn checked(profile: Arc<dyn Profile>) -> Result<Checked> {
    let points = seen(profile.as_ref());
    properties(profile.as_ref(), &points)?;
    let reversal = match profile.reversal() {
        Reversal::Same => Some(Arc::clone(&profile)),
        Reversal::Other(other) => {
            properties(other.as_ref(), &seen(other.as_ref()))?;
            Some(other)
        }
        Reversal::Unknown => None,
    };
    if let Some(reversal) = &reversal {
        let reflects = |&(epsilon, point): &Seen| reflected(epsilon, point, reversal.at(-epsilon).or_trivial(-epsilon));
        if !points.iter().all(reflects) {
            return refused("the profiles of the two directions are not those of one pair");
        }
    }
    Ok(Checked { profile, reversal })
}

impl Checked {
    /// Returns [`checked`] for a profile that is not shared yet.
    ///
    /// # Errors
    /// As [`checked`].
    pub fn of(profile: impl Profile + 'static) -> Result<Self> {
        checked(Arc::new(profile))
    }

    /// Returns the profile of the pair (Q, P) for that of (P, Q); `None` if it is not known.
    pub fn reversed(&self) -> Option<Self> {
        let profile = Arc::clone(self.reversal.as_ref()?);
        Some(Self { profile, reversal: Some(Arc::clone(&self.profile)) })
    }
}

impl Deref for Checked {
    type Target = dyn Profile;

    fn deref(&self) -> &Self::Target {
        self.profile.as_ref()
    }
}

impl AsRef<dyn Profile> for Checked {
    fn as_ref(&self) -> &(dyn Profile + 'static) {
        self.profile.as_ref()
    }
}

impl fmt::Debug for Checked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.profile.fmt(f)
    }
}

/// A loss, and the profile there.
type Seen = (f64, ProfilePoint);

/// Returns the points at the losses at which a profile is seen.
fn seen(profile: &dyn Profile) -> Vec<Seen> {
    let middle = profile.at(0.0).or_trivial(0.0);
    let scale = middle.delta.clamp(1e-9, 1.0);
    let sizes = LOSSES.iter().copied().chain(SCALED.iter().map(|share| share * scale));
    let losses = sizes.flat_map(|size| [-size, size]);
    let points = losses.map(|epsilon| (epsilon, profile.at(epsilon).or_trivial(epsilon)));
    points.chain([(0.0, middle)]).collect()
}

fn refused<T>(reason: &'static str) -> Result<T> {
    Err(Error::Numerics { reason })
}

/// What is wrong with one point of a profile, if all outcomes have the mass `whole` at most.
type Wrong = fn(&Seen, whole: f64) -> bool;

/// What no profile does anywhere.
const WRONG: [(Wrong, &str); 5] = [
    (
        |(epsilon, point), _| point.delta + point.delta_error < (-epsilon.exp_m1()).max(0.0) * (1.0 - ROUNDING),
        "a profile is below 1 − e^ε, so that mass of its loss is missing",
    ),
    (|(_, point), whole| point.delta - point.delta_error > whole, "a profile is above 1"),
    (|(_, point), _| point.slope + point.slope_error < -ROUNDING, "a profile rises"),
    (
        |(_, point), whole| point.delta - point.delta_error + point.slope - point.slope_error > whole,
        "the losses above an ε have more mass than 1",
    ),
    (
        |(epsilon, point), whole| point.slope - point.slope_error > epsilon.exp() * whole,
        "the losses above an ε have more mass than 1 under the other law",
    ),
];

/// Refuses a profile whose points no profile has; the reason does not depend on the order of the points.
fn properties(profile: &dyn Profile, points: &[Seen]) -> Result<()> {
    // A bound from above may count an infinite loss on top of all finite ones.
    let whole = 1.0 + 1.001 * profile.delta_at_infinity() + ROUNDING;
    for (wrong, reason) in WRONG {
        if points.iter().any(|point| wrong(point, whole)) {
            return refused(reason);
        }
    }
    let below = |line: &Seen| points.iter().any(|point| !supported(line, point));
    if points.iter().any(below) {
        return refused("a profile is not convex");
    }
    Ok(())
}

/// Returns whether a point of a profile lies above one of its supporting lines: otherwise it is not convex, or it rises.
fn supported(&(epsilon, line): &Seen, &(other, point): &Seen) -> bool {
    let change = (other - epsilon).exp_m1();
    if !change.is_finite() {
        return true;
    }
    let slope = line.slope + line.slope_error * change.signum();
    let least = line.delta - line.delta_error - slope * change;
    // The exponent of α′/α is rounded, and so is the slope's e^ε.
    let rounding =
        (ROUNDING + UNIT_ROUNDOFF * (epsilon.abs() + 2.0 * other.abs())) * (line.delta + (slope * change).abs());
    least <= point.delta + point.delta_error + rounding
}

/// Returns whether two profiles may be those of one pair in its two directions.
fn reflected(epsilon: f64, point: ProfilePoint, mirrored: ProfilePoint) -> bool {
    if epsilon > 600.0 {
        return true;
    }
    let alpha = epsilon.exp();
    let (expected, error) = (-epsilon.exp_m1() + alpha * mirrored.delta, alpha * mirrored.delta_error);
    let rounding = ROUNDING * (1.0 + alpha);
    (point.delta - expected).abs() <= point.delta_error + error + rounding
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pair::discrete::DiscretePair;

    /// What a mistake makes of the true point at ε.
    type Mistake = fn(f64, ProfilePoint) -> ProfilePoint;

    /// A profile with one mistake.
    #[derive(Debug, Clone)]
    struct Mistaken {
        inner: DiscretePair,
        mistake: Mistake,
        reversal: Reversal,
    }

    impl Profile for Mistaken {
        fn at_within(&self, epsilon: f64, _bracket: (f64, f64)) -> ProfilePoint {
            (self.mistake)(epsilon, self.inner.at(epsilon))
        }

        fn reversal(&self) -> Reversal {
            self.reversal.clone()
        }
    }

    fn mistaken(mistake: Mistake, reversal: Reversal) -> Mistaken {
        let inner = DiscretePair::new(vec![(0.7, 0.1), (0.3, 0.9)]).unwrap();
        Mistaken { inner, mistake, reversal }
    }

    fn refusal<T>(found: Result<T>) -> String {
        found.map_or_else(|error| error.to_string(), |_| String::new())
    }

    const MISTAKES: [(Mistake, &str); 6] = [
        (|_, point| ProfilePoint { delta: 0.9 * point.delta, ..point }, "mass of its loss is missing"),
        (|_, point| ProfilePoint { delta: point.delta + 1.0, ..point }, "above 1"),
        (|_, point| ProfilePoint { slope: -0.1, ..point }, "rises"),
        (|_, point| ProfilePoint { slope: 1.4 * point.slope, ..point }, "an ε have more mass than 1"),
        (
            // Under P this changes nothing that doubles resolve.
            |epsilon, point| {
                if epsilon < -39.0 {
                    ProfilePoint { slope: 3.0 * epsilon.exp(), slope_error: 0.0, ..point }
                } else {
                    point
                }
            },
            "under the other law",
        ),
        (
            |epsilon, point| {
                let more = if epsilon > 10.0 { 0.05 } else { 0.0 };
                ProfilePoint { delta: point.delta + more, ..point }
            },
            "not convex",
        ),
    ];

    #[test]
    fn what_no_profile_does_is_refused() {
        assert_eq!(refusal(Checked::of(mistaken(|_, point| point, Reversal::Unknown))), "");
        for (mistake, reason) in MISTAKES {
            let refusal = refusal(Checked::of(mistaken(mistake, Reversal::Unknown)));
            assert!(refusal.ends_with(reason), "{reason}: {refusal}");
        }
    }

    #[test]
    fn the_reason_is_the_same_whatever_loss_is_seen_first() {
        for (mistake, reason) in MISTAKES {
            let profile = mistaken(mistake, Reversal::Unknown);
            let mut points = seen(&profile);
            for _ in 0..points.len() {
                points.rotate_left(1);
                for _ in 0..2 {
                    points.reverse();
                    let refusal = refusal(properties(&profile, &points));
                    assert!(refusal.ends_with(reason), "{reason}: {refusal}");
                }
            }
        }
    }

    #[test]
    fn a_reversal_is_that_of_the_pair_and_is_checked_too() {
        let right: Mistake = |_, point| point;
        let reversed = |mistake| {
            let inner = mistaken(right, Reversal::Unknown).inner.reversed();
            Reversal::Other(Arc::new(Mistaken { inner, mistake, reversal: Reversal::Unknown }))
        };
        let pair = Checked::of(mistaken(right, reversed(right))).unwrap();
        let back = pair.reversed().and_then(|reversed| reversed.reversed()).unwrap();
        assert_eq!(back.bounds(0.3), pair.bounds(0.3));
        assert!(pair.reversed().unwrap().bounds(0.3) != pair.bounds(0.3));
        // The pair is not its own reversal.
        let same = refusal(Checked::of(mistaken(right, Reversal::Same)));
        assert!(same.ends_with("two directions are not those of one pair"), "{same}");
        for (mistake, reason) in MISTAKES {
            let refusal = refusal(Checked::of(mistaken(right, reversed(mistake))));
            assert!(refusal.ends_with(reason), "{reason}: {refusal}");
        }
    }
}
