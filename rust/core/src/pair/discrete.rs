//! Pairs of laws on a finite set, such as randomised response.

use std::sync::Arc;

use crate::error::{domain, Result};
use crate::pair::moments::{log_sum, ABSOLUTE};
use crate::pair::{LargestLoss, Profile, ProfilePoint, Reversal};
use crate::run::Run;
use crate::special::{real, UNIT_ROUNDOFF};

/// Two laws on the same finite set: δ(ε) = Σ_i (p_i − e^ε q_i)_+.
#[derive(Debug, Clone, PartialEq)]
pub struct DiscretePair {
    outcomes: Vec<(f64, f64)>,
    /// A bound on the relative error of each probability, apart from rounding here.
    relative_error: f64,
}

/// The largest relative error of a stated probability.
const MOST_ERROR: f64 = 1e-3;

impl DiscretePair {
    /// Creates the pair from the probabilities `outcomes` under P and Q; each list must sum to 1 within 1e-12 and is
    /// normalised.
    ///
    /// # Errors
    /// [`Error::Domain`] for negative or NaN entries, or sums away from 1.
    pub fn new(outcomes: Vec<(f64, f64)>) -> Result<Self> {
        Self::stated(outcomes, 0.0)
    }

    /// Creates the pair from probabilities that are each within the factor 1 ± `relative_error` of the exact ones, which
    /// sum to 1: the errors of all values include it.
    ///
    /// The sum of the given ones is within the same factor of 1, so that normalised they are off by no more than twice
    /// the error, and 1.1 times that together with its square.
    ///
    /// # Errors
    /// [`Error::Domain`] for negative or NaN entries, sums that are away from 1 by more than this error and 1e-12, and an
    /// error that is not between 0 and 1e-3.
    pub fn stated(outcomes: Vec<(f64, f64)>, relative_error: f64) -> Result<Self> {
        if !(0.0..=MOST_ERROR).contains(&relative_error) {
            return domain("relative_error", relative_error, "between 0 and 0.001");
        }
        for sum in [outcomes.iter().map(|o| o.0).sum::<f64>(), outcomes.iter().map(|o| o.1).sum::<f64>()] {
            let normalised = (sum - 1.0).abs() < 1e-12 + relative_error;
            if !normalised {
                return domain("sum of probabilities", sum, "1");
            }
        }
        if let Some(&(p, q)) = outcomes.iter().find(|(p, q)| *p < 0.0 || *q < 0.0) {
            return domain("probability", p.min(q), "at least 0");
        }
        let (above, below): (f64, f64) = outcomes.iter().fold((0.0, 0.0), |(p, q), o| (p + o.0, q + o.1));
        let outcomes = outcomes.into_iter().map(|(p, q)| (p / above, q / below)).collect();
        Ok(Self { outcomes, relative_error: 2.2 * relative_error })
    }

    /// Returns the same pair in the other direction, H(Q‖P).
    pub fn reversed(&self) -> Self {
        Self { outcomes: self.outcomes.iter().map(|&(p, q)| (q, p)).collect(), ..*self }
    }
}

impl Profile for DiscretePair {
    fn at_within(&self, epsilon: f64, _bracket: (f64, f64)) -> ProfilePoint {
        let alpha = epsilon.exp();
        let (mut delta, mut slope, mut magnitude) = (0.0, 0.0, 0.0);
        let relative = UNIT_ROUNDOFF * (8.0 + real(self.outcomes.len()) + 4.0 * epsilon.abs()) + self.relative_error;
        for &(p, q) in &self.outcomes {
            // This computes e^ε q without the overflow of e^ε; it is 0 for q = 0, whatever ε is.
            let scaled = if q == 0.0 {
                0.0
            } else if epsilon < 700.0 {
                alpha * q
            } else {
                (epsilon + q.ln()).exp()
            };
            if p > scaled {
                delta += p - scaled;
                slope += scaled;
            }
            // If rounding alone may have put an outcome on the wrong side, it counts towards the error.
            if p * (1.0 + 4.0 * relative) > scaled {
                magnitude += p + scaled;
            }
        }
        // At a tie p = αq rounding decides whether the outcome counts: δ does not change, the slope may take either
        // value, and both are slopes of supporting lines there.
        ProfilePoint {
            delta,
            delta_error: relative * magnitude,
            slope,
            slope_error: relative * magnitude,
            threshold: f64::NAN,
        }
    }

    fn delta_at_infinity(&self) -> f64 {
        let rounding = 1.0 - UNIT_ROUNDOFF * (2.0 + real(self.outcomes.len())) - self.relative_error;
        rounding * self.outcomes.iter().filter(|o| o.1 == 0.0).map(|o| o.0).sum::<f64>()
    }

    fn largest_loss(&self) -> LargestLoss {
        let mut largest = LargestLoss { at_least: f64::NEG_INFINITY, at_most: f64::NEG_INFINITY, mass: 0.0 };
        for &(p, q) in self.outcomes.iter().filter(|o| o.0 > 0.0) {
            if q == 0.0 {
                return LargestLoss::UNBOUNDED;
            }
            // The error of each probability is as many units of rounding as there are outcomes: it was divided by their
            // sum.
            let relative = UNIT_ROUNDOFF * (8.0 + real(self.outcomes.len())) + self.relative_error;
            let loss = (p / q).ln();
            let rounding = 2.0 * relative + 4.0 * UNIT_ROUNDOFF * loss.abs();
            largest.at_most = largest.at_most.max(loss + rounding);
            if loss - rounding > largest.at_least {
                (largest.at_least, largest.mass) = (loss - rounding, p * (1.0 - relative));
            }
        }
        if self.relative_error > 0.0 {
            // Which outcomes have losses above an ε is not known exactly, so the points are not those of {L > ε}.
            largest.mass = 0.0;
        }
        largest
    }

    fn reversal(&self) -> Reversal {
        Reversal::Other(Arc::new(self.reversed()))
    }

    /// Returns ln Σ p^a q^{1−a}; `None` where P has mass that Q does not have, which makes it infinite.
    fn log_moment(&self, order: f64, _run: &Run) -> Result<Option<f64>> {
        let (mut terms, mut size) = (Vec::with_capacity(self.outcomes.len()), 0.0_f64);
        for &(p, q) in self.outcomes.iter().filter(|outcome| outcome.0 > 0.0) {
            if q == 0.0 {
                return Ok(None);
            }
            size = size.max(p.ln().abs() + q.ln().abs());
            terms.push(order * p.ln() + (1.0 - order) * q.ln());
        }
        // The error of each probability is as many units of rounding as there are outcomes: it was divided by their sum.
        let relative = UNIT_ROUNDOFF * (8.0 + real(self.outcomes.len())) + self.relative_error;
        let error = 2.0 * order * (1.01 * relative + 8.0 * UNIT_ROUNDOFF * (1.0 + size));
        Ok(Some((log_sum(&terms) + error + ABSOLUTE).max(0.0)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stated_errors_are_covered() {
        let exact = [(0.5, 0.1), (0.3, 0.3), (0.15, 0.2), (0.05, 0.4)];
        let error = 1e-4;
        for signs in 0..256_u32 {
            let off = |x: f64, bit: u32| x * (1.0 + if signs >> bit & 1 == 1 { error } else { -error });
            let moved = (0_u32..).step_by(2).zip(exact).map(|(k, (p, q))| (off(p, k), off(q, k + 1))).collect();
            let (pair, truth) =
                (DiscretePair::stated(moved, error).unwrap(), DiscretePair::new(exact.to_vec()).unwrap());
            let (found, known) = (pair.largest_loss(), truth.largest_loss());
            assert!(found.at_least <= known.at_least && known.at_most <= found.at_most && found.mass <= 0.0);
            for epsilon in [-3.0, -1.0, 0.0, 0.3, 1.0, 1.609, 1.61, 2.0] {
                let (found, known) = (pair.at(epsilon), truth.at(epsilon));
                let distance = (found.delta - known.delta).abs();
                assert!(distance <= found.delta_error && found.delta_error < 1e-3, "{epsilon} {found:?} {known:?}");
            }
        }
        assert!(
            DiscretePair::stated(exact.to_vec(), 0.1).is_err() && DiscretePair::stated(exact.to_vec(), -0.1).is_err()
        );
    }
}
