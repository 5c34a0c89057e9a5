//! The worst of several pairs, which of them a data set has not being known.
//!
//! If every pair of neighbours has one of the profiles h_1 … h_m at most, it has the profile h(α) = max_i h_i(α) at most. h is
//! convex and falls, as a maximum of such functions, h(0) = 1 and h(α) ≥ (1 − α)₊, so it is the profile of a pair of its own
//! (Zhu, Dong & Wang 2022, arXiv:2106.08567, Proposition 8). That pair may be composed with everything, also where the pairs of
//! later mechanisms depend on what earlier ones released (their Theorem 10), sampled and selected from.
//!
//! The reflection H_α(P‖Q) = 1 − α + α·H_{1/α}(Q‖P) is a rising function of the profile, so the profile of the other direction is
//! the maximum of those of the pairs there.

use std::sync::Arc;

use crate::error::{domain, Result};
use crate::pair::check::Checked;
use crate::pair::{LargestLoss, Profile, ProfilePoint, Reversal};
use crate::special::UNIT_ROUNDOFF;

/// The profile `max_i h_i(α)`.
///
/// * Guarantee: within the stated errors; at least each of the profiles, and the least profile that is.
/// * Precision: the worst one of those of the profiles.
/// * Source: the head of this file.
#[derive(Debug, Clone)]
pub struct Worst {
    profiles: Vec<Checked>,
}

impl Worst {
    /// Creates the profile of the worst of several pairs.
    ///
    /// # Errors
    /// [`crate::Error::Domain`] without any pair.
    pub fn new(profiles: Vec<Checked>) -> Result<Self> {
        if profiles.is_empty() {
            return domain("profiles", 0.0, "at least one");
        }
        Ok(Self { profiles })
    }

    /// Returns the largest of some numbers of the profiles.
    fn most(&self, number: impl Fn(&Checked) -> f64) -> f64 {
        self.profiles.iter().map(number).fold(f64::NEG_INFINITY, f64::max)
    }
}

/// Returns the larger of two points at one ε, with the error of their maximum: that of the larger one, unless the other may be
/// still larger.
fn worse(one: ProfilePoint, other: ProfilePoint) -> ProfilePoint {
    let (most, least) = if other.delta > one.delta { (other, one) } else { (one, other) };
    let end = (least.delta + least.delta_error) * (1.0 + 2.0 * UNIT_ROUNDOFF);
    let reaches = (end - most.delta) * (1.0 + 2.0 * UNIT_ROUNDOFF);
    ProfilePoint { delta_error: most.delta_error.max(reaches), ..most }
}

impl Profile for Worst {
    fn at_within(&self, epsilon: f64, _bracket: (f64, f64)) -> ProfilePoint {
        // Thresholds of different pairs have nothing to do with each other. A supporting line of one of the profiles at ε lies
        // below the maximum, and passes through its value within the error.
        let points = self.profiles.iter().map(|one| one.at(epsilon).or_trivial(epsilon));
        let most = points.reduce(worse).expect("there is at least one profile");
        ProfilePoint { threshold: f64::NAN, ..most }
    }

    fn delta_at_infinity(&self) -> f64 {
        self.most(|one| one.delta_at_infinity())
    }

    fn largest_loss(&self) -> LargestLoss {
        let each: Vec<LargestLoss> = self.profiles.iter().map(|one| one.largest_loss()).collect();
        let most = |of: fn(&LargestLoss) -> f64| each.iter().map(of).fold(f64::NEG_INFINITY, f64::max);
        // Where the values of two profiles are close, a point may be that of either, so no mass is claimed.
        LargestLoss { at_least: most(|one| one.at_least), at_most: most(|one| one.at_most), mass: 0.0 }
    }

    fn reversal(&self) -> Reversal {
        if self.profiles.iter().all(|one| matches!(one.reversal(), Reversal::Same)) {
            return Reversal::Same;
        }
        match self.profiles.iter().map(Checked::reversed).collect() {
            Some(profiles) => Reversal::Other(Arc::new(Self { profiles })),
            None => Reversal::Unknown,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pair::discrete::DiscretePair;
    use crate::pair::laplace::Laplace;

    fn pairs() -> (DiscretePair, Laplace) {
        (DiscretePair::new(vec![(0.02, 0.0), (0.98, 1.0)]).unwrap(), Laplace::new(1.0, 2.0).unwrap())
    }

    #[test]
    fn it_is_the_maximum_in_both_directions() {
        let (shown, moved) = pairs();
        let profile =
            Worst::new(vec![Checked::of(shown.clone()).unwrap(), Checked::of(moved.clone()).unwrap()]).unwrap();
        let Reversal::Other(reversed) = profile.reversal() else { panic!("both pairs have reversals") };
        let mut chosen = [0, 0];
        for step in -60..60 {
            let epsilon = 0.03 * f64::from(step);
            let alpha = epsilon.exp();
            // Closed forms: p + (1 − p − α)₊, and 1 − √α·e^{−1/4} for |ε| ≤ ½.
            let one = 0.02 + (0.98 - alpha).max(0.0);
            let other = if epsilon < -0.5 {
                1.0 - alpha
            } else if epsilon > 0.5 {
                0.0
            } else {
                1.0 - (0.5 * epsilon - 0.25).exp()
            };
            chosen[usize::from(one > other)] += 1;
            let point = profile.at(epsilon);
            assert!((point.delta - one.max(other)).abs() <= 1e-14, "{epsilon} {point:?}");
            assert!(point.delta_error < 1e-14, "{epsilon} {point:?}");
            // A supporting line: below the profile everywhere.
            for far in -60..60 {
                let at = 0.03 * f64::from(far);
                let line = point.delta - point.slope * ((at - epsilon).exp_m1());
                assert!(profile.at(at).delta >= line - 1e-13, "{epsilon} {at}");
            }
            let back = 1.0 - alpha + alpha * reversed.at(-epsilon).delta;
            assert!((back - point.delta).abs() <= 1e-14, "{epsilon}");
        }
        assert!(chosen[0] > 5 && chosen[1] > 5, "both profiles are the larger one somewhere");
    }

    #[test]
    fn facts_are_those_of_the_worst() {
        let (shown, moved) = pairs();
        let checked = |one: &DiscretePair| Checked::of(one.clone()).unwrap();
        let profile = Worst::new(vec![checked(&shown), Checked::of(moved.clone()).unwrap()]).unwrap();
        assert!((profile.delta_at_infinity() - 0.02).abs() < 1e-15);
        assert!(profile.largest_loss().at_most.is_infinite());
        assert!(profile.log_moment(2.0, &crate::run::Run::default()).unwrap().is_none());
        let bounded = Worst::new(vec![
            checked(&DiscretePair::new(vec![(0.6, 0.5), (0.4, 0.5)]).unwrap()),
            Checked::of(moved).unwrap(),
        ])
        .unwrap();
        let loss = bounded.largest_loss();
        assert!(loss.at_least <= 0.5 && loss.at_most >= 0.5 && loss.at_most < 0.5 + 1e-12 && loss.mass <= 0.0);
        assert!(Worst::new(vec![]).is_err());
    }

    #[test]
    fn a_smaller_profile_adds_no_error() {
        let exact = ProfilePoint { delta: 0.5, delta_error: 0.0, slope: 0.0, slope_error: 0.0, threshold: f64::NAN };
        let rough = |delta| ProfilePoint { delta, delta_error: 0.1, ..exact };
        assert!(worse(exact, rough(0.3)).delta_error <= 0.0 && worse(rough(0.3), exact).delta_error <= 0.0);
        let close = worse(exact, rough(0.45));
        assert!(close.delta_error >= 0.05 && close.delta_error < 0.051);
        assert!(worse(exact, rough(0.6)).delta_error >= 0.1);
    }
}
