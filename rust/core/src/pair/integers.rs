//! Noise on the integers whose law is symmetric and log-concave: the pair of the law and its shift.
//!
//! P is the law p moved by d ≥ 1, and Q is p. Where p is log-concave, p(x)² ≥ p(x − 1)p(x + 1), the loss ln p(x − d)/p(x)
//! rises with x. So the best outcomes are {x ≥ m} for the least m with a loss above ε, and `δ(ε) = S(m − d) − e^ε S(m)`, S(k)
//! = Pr[X ≥ k]. Both directions are mirror images, as p(−x) = p(x). Sums of independent variables with log-concave laws have
//! log-concave laws (Keilson & Gerber 1971), so this covers what several parties add.
//!
//! A law is a table of ln p(k)/p(0) for k = 0, …, K, each with a bound on its error. S(k) is p(k)R(k), R(k) = 1 + p(k +
//! 1)/p(k)·R(k + 1), and p(0) = 1/(2R(0) − 1). The ratios of neighbours fall, so beyond the table S(K + 1) ≤ p(K)·r/(1 − r),
//! r = p(K)/p(K − 1): the last R is between 1 and 1/(1 − r). What lies beyond counts towards the errors, from 0 to all of it.
//!
//! **The threshold.** The outcomes {x ≥ m} for any m give a line below the profile. If the loss of x = m − 1, computed with an
//! error η, is below ε by more than η, then so is the true loss of every outcome below m; and likewise from m on. Otherwise the
//! outcomes concerned have losses within 2η of ε, and change the difference by no more than 2η times their mass.

use crate::pair::ProfilePoint;
use crate::special::{Approximation, UNDERFLOW, UNIT_ROUNDOFF};

/// Losses are resolved for outcomes whose probability, beside the largest one, is not below e to the minus this.
pub(super) const RESOLVED: f64 = 745.0;
/// How many outcomes near a threshold are looked at; beyond them all mass counts as near.
const NEAR: u32 = 64;

/// What is known of one outcome.
#[derive(Debug, Clone, Copy)]
struct Entry {
    /// ln p(k)/p(0), and a bound on its error.
    log: f64,
    log_error: f64,
    /// R(k), and a bound on its error.
    sum: f64,
    sum_error: f64,
}

/// A symmetric log-concave law on the integers, as a table.
///
/// * Guarantee: probabilities and losses are returned with bounds on their errors, if those of the table are true.
/// * Precision: that of the table, and a few units of rounding for each outcome that matters.
/// * Source: the head of this file.
#[derive(Debug, Clone)]
pub(super) struct LogConcave {
    entries: Vec<Entry>,
    /// 1/p(0).
    whole: Approximation,
}

impl LogConcave {
    /// Creates the law from ln p(k)/p(0) for k = 0, …, K ≥ 1, each with a bound on its error.
    ///
    /// The constant may be off too, in which case the error of the first entry is not 0.
    pub(super) fn new(logs: &[(f64, f64)]) -> Self {
        let last = logs.len() - 1;
        let step = logs[last].0 - logs[last - 1].0 + logs[last].1 + logs[last - 1].1;
        let ratio = step.exp() * (1.0 + 8.0 * UNIT_ROUNDOFF);
        // The last sum is between 1 and 1/(1 − r).
        let beyond = if ratio < 1.0 { ratio / (1.0 - ratio) * (1.0 + 8.0 * UNIT_ROUNDOFF) } else { f64::INFINITY };
        let (mut sum, mut error) = (1.0, beyond + 2.0 * logs[last].1);
        let mut entries = vec![Entry { log: logs[last].0, log_error: logs[last].1, sum, sum_error: error }];
        for k in (0..last).rev() {
            let (log, log_error) = logs[k];
            let step = logs[k + 1].0 - log;
            let ratio = step.exp();
            // The exponential is off by 2u, its argument by u of itself, each product and sum by u; each term by its own error.
            let rounding = UNIT_ROUNDOFF * (4.0 + step.abs());
            error = ratio * (error + sum * rounding) + log_error.exp_m1();
            sum = 1.0 + ratio * sum;
            error = (error + UNIT_ROUNDOFF * sum) * (1.0 + 8.0 * UNIT_ROUNDOFF);
            entries.push(Entry { log, log_error, sum, sum_error: error });
        }
        entries.reverse();
        let first = entries[0];
        let whole = 2.0 * first.sum - 1.0;
        let error = 2.0 * first.sum_error + first.log_error.exp_m1() + 2.0 * UNIT_ROUNDOFF * whole;
        Self { entries, whole: Approximation { value: whole, error } }
    }

    /// Returns the entry of an integer of the table.
    fn entry(&self, k: f64) -> Option<&Entry> {
        let k = k.abs();
        // The index is an integer, and in range.
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let index = if k < 1e9 { Some(k as usize) } else { None };
        index.and_then(|index| self.entries.get(index))
    }

    /// Returns the largest integer of the table.
    pub(super) fn last(&self) -> f64 {
        crate::special::real(self.entries.len() - 1)
    }

    /// Returns ln p(k)/p(0) for an integer of the table, with a bound on its error.
    pub(super) fn log(&self, k: f64) -> Option<Approximation> {
        self.entry(k).map(|entry| Approximation { value: entry.log, error: entry.log_error })
    }

    /// Returns 1/p(0) with a bound on its error.
    pub(super) fn whole(&self) -> Approximation {
        self.whole
    }

    /// Returns the loss of an outcome x with a bound on its error; `None` if the table does not have both probabilities.
    fn loss(&self, shift: f64, x: f64) -> Option<Approximation> {
        let (p, q) = (self.entry(x - shift)?, self.entry(x)?);
        Some(Approximation {
            value: p.log - q.log,
            error: p.log_error + q.log_error + 2.0 * UNIT_ROUNDOFF * (p.log - q.log).abs(),
        })
    }

    /// Returns `e^ε Pr[X ≥ k]` for an integer k, where the product is at most 1.
    pub(super) fn tail(&self, epsilon: f64, k: f64) -> Approximation {
        if k >= 1.0 {
            return self.right(epsilon, k);
        }
        let (all, rest) = (epsilon.exp(), self.right(epsilon, 1.0 - k));
        Approximation {
            value: (all - rest.value).max(0.0),
            error: rest.error + 2.0 * UNIT_ROUNDOFF * (1.0 + epsilon.abs()) * all,
        }
    }

    /// Returns `e^ε Pr[X ≥ k]` for k ≥ 1.
    fn right(&self, epsilon: f64, k: f64) -> Approximation {
        let (found, last) = (self.entry(k), self.entries[self.entries.len() - 1]);
        let entry = found.unwrap_or(&last);
        let factor = (epsilon + entry.log).exp() / self.whole.value;
        let value = factor * entry.sum;
        let relative = UNIT_ROUNDOFF * (12.0 + 2.0 * entry.log.abs() + 2.0 * epsilon.abs())
            + entry.sum_error / entry.sum
            + self.whole.error / (self.whole.value - self.whole.error).max(f64::MIN_POSITIVE);
        let error = value * relative * (1.0 + 1e-9) + UNDERFLOW;
        if found.is_some() {
            return Approximation { value, error };
        }
        // Beyond the table there is what the error of its last sum allows for.
        Approximation { value: 0.0, error: if error.is_finite() { error } else { f64::INFINITY } }
    }

    /// Returns the profile of the law moved by `shift` against the law, at ε.
    pub(super) fn point(&self, shift: f64, epsilon: f64) -> ProfilePoint {
        let (first, last) = (shift - self.last(), self.last());
        // The least outcome of the table with a loss above ε, or the one after the table.
        let (mut m, mut high) = (first.min(last + 1.0), last + 1.0);
        while m < high {
            let middle = (0.5 * (m + high)).floor();
            match self.loss(shift, middle) {
                Some(loss) if loss.value > epsilon => high = middle,
                _ => m = middle + 1.0,
            }
        }
        let (above, below) = (self.tail(0.0, m - shift), self.tail(epsilon, m));
        // Outcomes left of the table; and, where no loss of the table is known to be above ε, those that may be anywhere.
        let outside = self.right(0.0, last + 1.0).error + if first > last { 1.0 } else { 0.0 };
        let near = self.near(shift, epsilon, m);
        if m > last {
            let most = above.value + above.error;
            let fewest = (above.value - above.error - below.error).max(0.0);
            let (half, steepest) = (0.5 * (most - fewest), below.error.min(most));
            return ProfilePoint {
                delta: fewest + half,
                delta_error: (half + outside + near) * (1.0 + 4.0 * UNIT_ROUNDOFF) + UNIT_ROUNDOFF * most,
                slope: 0.5 * steepest,
                slope_error: 0.5 * steepest,
                threshold: f64::NAN,
            };
        }
        let point = ProfilePoint::of(above, below);
        ProfilePoint { delta: point.delta.min(1.0), delta_error: point.delta_error + outside + near, ..point }
    }

    /// Returns what outcomes near ε may change: those that rounding may have put on the wrong side of the threshold m.
    fn near(&self, shift: f64, epsilon: f64, m: f64) -> f64 {
        let (mut lowest, mut most) = (m, 0.0_f64);
        let mut within = |x: f64, side: f64| {
            let loss = self.loss(shift, x).filter(|loss| side * (epsilon - loss.value) <= loss.error);
            most = most.max(loss.map_or(0.0, |loss| loss.error));
            loss.is_some()
        };
        for _ in 0..NEAR {
            if !within(lowest - 1.0, 1.0) {
                break;
            }
            lowest -= 1.0;
        }
        within(m, -1.0);
        if most <= 0.0 {
            return 0.0;
        }
        let all = m - lowest >= f64::from(NEAR);
        let mass = if all { Approximation { value: 1.0, error: 0.0 } } else { self.tail(0.0, lowest - shift) };
        most.exp_m1() * (mass.value + mass.error) * (1.0 + 1e-9)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::special::real;

    /// ln p(k)/p(0) of e^{−|x|/b}, which has no end.
    fn geometric(scale: f64, last: u64) -> Vec<(f64, f64)> {
        (0..=last).map(|k| (-real(k) / scale, 1e-15 * real(k) / scale)).collect()
    }

    #[test]
    #[allow(clippy::cast_precision_loss)] // small integers
    fn the_geometric_law_has_its_profile() {
        for (shift, scale) in [(1_u64, 0.5_f64), (3, 2.0), (7, 5.0)] {
            let law = LogConcave::new(&geometric(scale, 4000));
            let exact = crate::pair::discrete_laplace::DiscreteLaplace::new(shift, scale).unwrap();
            for step in -30..30 {
                let epsilon = 0.041 * f64::from(step) * real(shift) / scale;
                let (found, known) = (law.point(real(shift), epsilon), crate::pair::Profile::at(&exact, epsilon));
                let allowed = found.delta_error + known.delta_error;
                assert!((found.delta - known.delta).abs() <= allowed, "{shift} {scale} {epsilon} {found:?} {known:?}");
                assert!(found.delta_error < 1e-12, "{found:?}");
            }
        }
    }

    #[test]
    fn a_short_table_bounds_what_it_does_not_have() {
        let (whole, short) = (LogConcave::new(&geometric(1.0, 700)), LogConcave::new(&geometric(1.0, 9)));
        for shift in [1.0, 4.0, 12.0, 18.0, 19.0, 20.0, 60.0] {
            for epsilon in [-3.0, -0.5, 0.0, 0.7, 3.5, 11.5, 17.5, 18.5, 30.0] {
                let (wide, exact) = (short.point(shift, epsilon), whole.point(shift, epsilon));
                let distance = (wide.delta - exact.delta).abs();
                assert!(distance <= wide.delta_error + exact.delta_error, "{shift} {epsilon} {wide:?} {exact:?}");
            }
        }
    }
}
