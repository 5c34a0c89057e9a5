//! A mechanism that is run only sometimes, where the output may show whether it was run.
//!
//! With probability q the output has the law P (or Q), and otherwise a law R that is the same in both cases:
//! `qP + (1 − q)R` against `qQ + (1 − q)R`. The hockey-stick divergence is jointly convex, and H_α(R‖R) = (1 − α)₊, so
//! the profile is at most `h′(α) = q·h(α) + (1 − q)(1 − α)₊`, with equality if R has no outcome in common with P and Q.
//! h′ is convex as a sum of convex functions, and h′(0) = 1.

use std::sync::Arc;

use crate::error::{domain, Result};
use crate::exact::Enclosure;
use crate::pair::check::Checked;
use crate::pair::moments::{log_expm1, shifted, ABSOLUTE, RELATIVE};
use crate::pair::{LargestLoss, Profile, ProfilePoint, Reversal};
use crate::run::Run;
use crate::special::UNIT_ROUNDOFF;

/// The profile `q·h + (1 − q)(1 − α)₊` of a mechanism with the profile h that is run with probability q.
///
/// * Guarantee: exact within the stated error, for the upper bound of the module's documentation.
/// * Precision: that of the inner profile, and a few units of rounding.
/// * Source: the module's documentation.
#[derive(Debug, Clone)]
pub struct Sometimes {
    inner: Checked,
    probability: f64,
}

impl Sometimes {
    /// Creates the profile of a mechanism that is run with this probability.
    ///
    /// # Errors
    /// [`Error::Domain`] unless the probability is greater than 0 and at most 1.
    pub fn new(inner: Checked, probability: f64) -> Result<Self> {
        if !(probability > 0.0 && probability <= 1.0) {
            let allowed = "greater than 0 and at most 1";
            return domain("probability", probability, allowed);
        }
        Ok(Self { inner, probability })
    }
}

impl Profile for Sometimes {
    fn at_within(&self, epsilon: f64, bracket: (f64, f64)) -> ProfilePoint {
        let (q, point) = (self.probability, self.inner.at_within(epsilon, bracket).or_trivial(epsilon));
        let (rest, fall) = if epsilon < 0.0 { (-epsilon.exp_m1(), epsilon.exp()) } else { (0.0, 0.0) };
        let delta = q * point.delta + (1.0 - q) * rest;
        let slope = q * point.slope + (1.0 - q) * fall;
        let rounding = 8.0 * UNIT_ROUNDOFF;
        ProfilePoint {
            delta,
            delta_error: q * point.delta_error * (1.0 + rounding) + rounding * delta,
            slope,
            slope_error: q * point.slope_error * (1.0 + rounding) + rounding * slope,
            threshold: point.threshold,
        }
    }

    fn delta_at_infinity(&self) -> f64 {
        self.probability * self.inner.delta_at_infinity() * (1.0 - 4.0 * UNIT_ROUNDOFF)
    }

    /// Returns the inner mechanism's largest loss, or 0 if that is negative: the outcomes of R have the loss 0.
    fn largest_loss(&self) -> LargestLoss {
        let inner = self.inner.largest_loss();
        LargestLoss {
            at_least: inner.at_least,
            at_most: inner.at_most.max(0.0),
            // Below a loss of 0 the outcomes of R are among those above ε.
            mass: if inner.at_least > 0.0 { self.probability * inner.mass * (1.0 - 4.0 * UNIT_ROUNDOFF) } else { 0.0 },
        }
    }

    fn exact_largest_loss(&self) -> Option<Enclosure> {
        self.inner.exact_largest_loss()
    }

    /// `qQ + (1 − q)R` against `qP + (1 − q)R`.
    fn reversal(&self) -> Reversal {
        match self.inner.reversed() {
            Some(inner) => Reversal::Other(Arc::new(Self { inner, ..*self })),
            None => Reversal::Unknown,
        }
    }

    /// Returns ln[1 + q(E − 1)], E the inner moment: the moment of R is 1.
    fn log_moment(&self, order: f64, run: &Run) -> Result<Option<f64>> {
        let known = self.inner.log_moment(order, run)?;
        Ok(known.map(|moment| {
            let within = moment.max(0.0) * (1.0 + RELATIVE);
            let logarithm = shifted(self.probability.ln() + log_expm1(within));
            logarithm * (1.0 + RELATIVE + 8.0 * UNIT_ROUNDOFF * within) + ABSOLUTE * within.min(1.0)
        }))
    }

    /// Returns that of the inner mechanism, since qh(α) ≤ h(α).
    fn dominating_shift(&self) -> Option<f64> {
        self.inner.dominating_shift()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pair::discrete::DiscretePair;

    #[test]
    fn it_is_the_pair_with_an_outcome_more() {
        let q = 0.1;
        let inner = DiscretePair::new(vec![(0.7, 0.2), (0.2, 0.7), (0.1, 0.1)]).unwrap();
        let whole =
            DiscretePair::new(vec![(0.7 * q, 0.2 * q), (0.2 * q, 0.7 * q), (0.1 * q, 0.1 * q), (1.0 - q, 1.0 - q)])
                .unwrap();
        let profile = Sometimes::new(Checked::of(inner).unwrap(), q).unwrap();
        for step in -40..40 {
            let epsilon = 0.07 * f64::from(step);
            let (one, other) = (profile.at(epsilon), whole.at(epsilon));
            assert!((one.delta - other.delta).abs() <= one.delta_error + other.delta_error, "{epsilon}");
            assert!(one.delta_error < 1e-14, "{epsilon}");
        }
        let (one, other) = (profile.largest_loss(), whole.largest_loss());
        assert!((one.at_most - other.at_most).abs() < 1e-12 && (one.mass - other.mass).abs() < 1e-12);
        // For a record inside a client δ is q·δ(ε), not the amplified one.
        assert!((profile.at(0.3).delta - q * (0.7 - 0.3_f64.exp() * 0.2)).abs() < 1e-12);
    }

    #[test]
    fn a_probability_is_refused() {
        let inner = Checked::of(DiscretePair::new(vec![(1.0, 1.0)]).unwrap()).unwrap();
        for wrong in [0.0, -0.1, 1.1, f64::NAN] {
            assert!(Sometimes::new(inner.clone(), wrong).is_err());
        }
    }

    #[test]
    fn moments_are_those_of_the_pair_with_an_outcome_more() {
        let (q, run) = (0.1, Run::default());
        let inner = DiscretePair::new(vec![(0.7, 0.2), (0.2, 0.7), (0.1, 0.1)]).unwrap();
        for a in [1.1_f64, 2.0, 9.0, 300.0] {
            let within: f64 = [(0.7_f64, 0.2_f64), (0.2, 0.7), (0.1, 0.1)]
                .map(|(p, other)| (a * p.ln() + (1.0 - a) * other.ln()).exp())
                .iter()
                .sum();
            let exact = (q * (within - 1.0)).ln_1p();
            let profile = Sometimes::new(Checked::of(inner.clone()).unwrap(), q).unwrap();
            let found = profile.log_moment(a, &run).unwrap().unwrap();
            assert!(found >= exact * (1.0 - 1e-12) && found <= exact * (1.0 + 1e-10), "{a} {found} {exact}");
        }
    }
}
