//! A mechanism that shows the record with some probability, and otherwise what another mechanism does.
//!
//! With the record something is released with probability r that is never released without it; otherwise, and without the record,
//! the output has the laws P and Q of another pair. With h the profile of that pair in the same direction, since P and Q have
//! no outcome in common with what is shown,
//!
//! * remove, `rS + (1 − r)P` against `Q`: `h′(α) = r + (1 − r)·h(α/(1 − r))`;
//! * add, `P` against `(1 − r)Q + rS`: `h′(α) = h(α(1 − r))`.
//!
//! Both rise with r, so an r that is rounded up or down gives a bound from that side.
//!
//! **Rounding.** The inner profile is evaluated at an x left of ln α ∓ ln(1 − r), by more than the rounding η of that place. It
//! falls, and is above its supporting line at x, so that the value there is too large by `slope·(e^{2η} − 1)` at most.

use std::sync::Arc;

use crate::error::{domain, Result};
use crate::pair::check::Checked;
use crate::pair::moments::{ABSOLUTE, RELATIVE};
use crate::pair::{LargestLoss, Profile, ProfilePoint, Reversal};
use crate::run::Run;
use crate::special::UNIT_ROUNDOFF;

/// The profile of a pair beside an outcome that shows the record with probability r.
///
/// * Guarantee: exact within the stated errors. The limit for large ε is r itself, without an error, if that of the inner profile
///   is 0.
/// * Precision: that of the inner profile, and a few units of rounding.
/// * Source: the head of this file.
#[derive(Debug, Clone)]
pub struct Shown {
    inner: Checked,
    probability: f64,
    /// Whether the record is in the second law: the direction add.
    reverse: bool,
    /// −ln(1 − r).
    finite: f64,
}

impl Shown {
    /// Creates the profile from that of the inner pair in the same direction.
    ///
    /// # Errors
    /// [`crate::Error::Domain`] unless the probability is between 0 and 1.
    pub fn new(inner: Checked, probability: f64, reverse: bool) -> Result<Self> {
        if !(probability > 0.0 && probability < 1.0) {
            return domain("probability", probability, "greater than 0 and less than 1");
        }
        Ok(Self { inner, probability, reverse, finite: -(-probability).ln_1p() })
    }

    /// Returns the inner profile at its place for ε, with the errors of that place.
    fn inner_at(&self, epsilon: f64) -> ProfilePoint {
        let moved = if self.reverse { -self.finite } else { self.finite };
        let error = 4.0 * UNIT_ROUNDOFF * (epsilon.abs() + self.finite);
        let place = epsilon + moved - error;
        let point = self.inner.at(place).or_trivial(place);
        let away = (2.0 * error).exp_m1();
        ProfilePoint {
            delta_error: point.delta_error + (point.slope + point.slope_error) * away * (1.0 + 4.0 * UNIT_ROUNDOFF),
            slope_error: point.slope_error + (point.slope + point.slope_error) * away * (1.0 + 4.0 * UNIT_ROUNDOFF),
            threshold: f64::NAN,
            ..point
        }
    }
}

impl Profile for Shown {
    fn at_within(&self, epsilon: f64, _bracket: (f64, f64)) -> ProfilePoint {
        let (inner, rest, rounding) = (self.inner_at(epsilon), 1.0 - self.probability, 4.0 * UNIT_ROUNDOFF);
        if self.reverse {
            return inner;
        }
        let delta = self.probability + rest * inner.delta;
        // Where nothing is added to r, nothing is rounded.
        let of_sum = if inner.delta > 0.0 { rounding * delta } else { 0.0 };
        ProfilePoint {
            delta,
            delta_error: rest * inner.delta_error * (1.0 + rounding) + of_sum,
            slope: rest * inner.slope,
            slope_error: rest * (inner.slope_error * (1.0 + rounding) + rounding * inner.slope),
            threshold: f64::NAN,
        }
    }

    fn delta_at_infinity(&self) -> f64 {
        let inner = self.inner.delta_at_infinity();
        if self.reverse {
            return inner;
        }
        let more = (1.0 - self.probability) * inner;
        if more > 0.0 {
            (self.probability + more) * (1.0 - 4.0 * UNIT_ROUNDOFF)
        } else {
            self.probability
        }
    }

    /// Returns, for add, that of the inner pair and −ln(1 − r): the other law has the share 1 − r on all outcomes of the first.
    fn largest_loss(&self) -> LargestLoss {
        if !self.reverse {
            return LargestLoss::UNBOUNDED;
        }
        let inner = self.inner.largest_loss();
        let rounding = |loss: f64| 4.0 * UNIT_ROUNDOFF * (loss.abs() + self.finite);
        LargestLoss {
            at_least: inner.at_least + self.finite
                - if inner.at_least.is_finite() { rounding(inner.at_least) } else { 0.0 },
            at_most: inner.at_most
                + self.finite
                + if inner.at_most.is_finite() { rounding(inner.at_most) } else { 0.0 },
            // The points are those of a set that begins a little further left.
            mass: 0.0,
        }
    }

    fn reversal(&self) -> Reversal {
        match self.inner.reversed() {
            Some(inner) => Reversal::Other(Arc::new(Self { inner, reverse: !self.reverse, ..*self })),
            None => Reversal::Unknown,
        }
    }

    /// Returns, for add, (a − 1)·(−ln(1 − r)) more than the inner moment; for remove the moment is infinite.
    fn log_moment(&self, order: f64, run: &Run) -> Result<Option<f64>> {
        if !self.reverse {
            return Ok(None);
        }
        let more = (order - 1.0) * self.finite;
        Ok(self.inner.log_moment(order, run)?.map(|moment| (moment + more) * (1.0 + RELATIVE) + ABSOLUTE))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pair::discrete::DiscretePair;
    use crate::pair::gaussian::GaussianPair;

    const INNER: [(f64, f64); 3] = [(0.7, 0.2), (0.2, 0.5), (0.1, 0.3)];

    /// The pair itself, with the outcome that shows the record.
    fn whole(r: f64, reverse: bool) -> DiscretePair {
        let mut outcomes: Vec<(f64, f64)> =
            INNER.map(|(p, q)| if reverse { (q, p * (1.0 - r)) } else { (p * (1.0 - r), q) }).to_vec();
        outcomes.push(if reverse { (0.0, r) } else { (r, 0.0) });
        DiscretePair::new(outcomes).unwrap()
    }

    fn profile(r: f64, reverse: bool) -> Shown {
        let outcomes = INNER.map(|(p, q)| if reverse { (q, p) } else { (p, q) }).to_vec();
        Shown::new(Checked::of(DiscretePair::new(outcomes).unwrap()).unwrap(), r, reverse).unwrap()
    }

    #[test]
    fn it_is_the_pair_with_the_outcome() {
        for reverse in [false, true] {
            for r in [1e-9, 0.01, 0.5, 0.99] {
                let (one, other) = (profile(r, reverse), whole(r, reverse));
                for step in -60..60 {
                    let epsilon = 0.07 * f64::from(step);
                    let (found, known) = (one.at(epsilon), other.at(epsilon));
                    let distance = (found.delta - known.delta).abs();
                    assert!(distance <= found.delta_error + known.delta_error, "{r} {reverse} {epsilon}");
                    assert!(found.delta_error < 1e-14 && found.slope_error < 1e-14, "{r} {reverse} {epsilon}");
                }
                let (found, known) = (one.largest_loss(), other.largest_loss());
                assert!(
                    (found.at_most - known.at_most).abs() < 1e-13 || found.at_most.to_bits() == known.at_most.to_bits()
                );
                let checked = Checked::of(one).unwrap();
                assert!(checked.reversed().is_some());
            }
        }
    }

    #[test]
    fn nothing_else_is_exactly_the_probability() {
        let nothing = || Checked::of(DiscretePair::new(vec![(1.0, 1.0)]).unwrap()).unwrap();
        let point = Shown::new(nothing(), 1e-5, false).unwrap().at(1.0);
        assert!((point.delta - 1e-5).abs() <= 0.0 && point.delta_error <= 0.0);
        let gaussian = Checked::of(GaussianPair::new(1.0, 1.0).unwrap()).unwrap();
        let beside = Shown::new(gaussian.clone(), 1e-5, false).unwrap();
        // As for a stated δ beside Gaussian noise, but with the loss ln(1 − r) of what is not shown.
        let exact = 1e-5 + (1.0 - 1e-5) * gaussian.at(1.0 - (-1e-5_f64).ln_1p()).delta;
        assert!((beside.at(1.0).delta / exact - 1.0).abs() < 1e-13);
        for wrong in [0.0, 1.0, -0.1, f64::NAN] {
            assert!(Shown::new(nothing(), wrong, false).is_err());
        }
    }

    #[test]
    fn moments_are_those_of_the_pair() {
        let run = Run::default();
        for a in [1.5_f64, 2.0, 30.0] {
            let exact = INNER.map(|(p, q)| q.powf(a) * (p * 0.9).powf(1.0 - a)).iter().sum::<f64>().ln();
            let found = profile(0.1, true).log_moment(a, &run).unwrap().unwrap();
            assert!(found >= exact * (1.0 - 1e-12) && found <= exact * (1.0 + 1e-10), "{a} {found} {exact}");
            assert!(profile(0.1, false).log_moment(a, &run).unwrap().is_none());
        }
    }
}
