//! An integer released with Skellam noise: the difference of two independent Poisson variables of mean μ/2 each.
//!
//! The law is p(x) = e^{−μ} I_x(μ) on the integers, with variance μ; sums of independent Skellam variables are Skellam, with the
//! sum of the variances. A Poisson law is log-concave, so this one is, and [`LogConcave`](super::integers) has its profile.
//!
//! **The ratios** r(k) = p(k + 1)/p(k) follow backwards from I_{k−1} − I_{k+1} = (2k/μ) I_k (Abramowitz & Stegun 9.6.26):
//! `r(k − 1) = 1/(2k/μ + r(k))`, a sum of positive terms in which errors shrink by r(k)r(k − 1). Since ratios fall, r(k) ≤ r(k −
//! 1) = 1/(2k/μ + r(k)) and r(k) = 1/(2(k + 1)/μ + r(k + 1)) ≥ 1/(2(k + 1)/μ + r(k)): two quadratic inequalities, by which
//!
//! `asinh(k/μ) ≤ −ln r(k) ≤ asinh((k + 1)/μ)` (Amos 1974).
//!
//! The recursion begins between these two, so far out that nothing of their distance is left. For large μ the ratios are near 1,
//! and a relative error of each would add up over √μ steps and once more over √μ ratios. There the recursion follows s = 1 − r,
//! `s(k − 1) = (2k/μ − s(k))/(2k/μ + r(k))`, whose rounding is relative to 2k/μ.
//!
//! **Moments.** E_Q[(P/Q)^a] = Σ_x p(x − d)^a p(x)^{1−a} is summed over the table. Left of it the summands are at most p(x − d),
//! if its last x is beyond d/2. Right of it a summand divided by the one before is r(x − d)^a r(x)^{1−a}, whose logarithm is at
//! most −asinh((x − d)/μ) + (a − 1)(asinh((x + 1)/μ) − asinh((x − d)/μ)). That falls with x ≥ d, so the rest is at most a geometric
//! series from where it is negative; for large orders the table is made longer.

use crate::error::{domain, Result};
use crate::pair::integers::{LogConcave, RESOLVED};
use crate::pair::moments::{log_sum, ABSOLUTE};
use crate::pair::{Profile, ProfilePoint, Reversal};
use crate::run::Run;
use crate::special::{real, UNIT_ROUNDOFF};

/// The variances that are accepted, and the largest shift.
const VARIANCES: (f64, f64) = (1e-9, 1e8);
const MOST_SHIFT: u64 = 1_000_000;
/// The longest table of which moments are summed.
const LONGEST: u64 = 1 << 22;

/// The profile of Skellam noise moved by `shift` against the same noise, in both directions.
///
/// * Formula: at the head of this file and of `integers`.
/// * Units: shift in integers; the variance in their squares.
/// * Guarantee: [`Profile::at_within`] returns values within their stated errors.
/// * Precision: about 3 units of rounding for each integer between 0 and the outcomes that matter, relative to probabilities.
/// * Source: Valovich & Aldà 2015, arXiv:1507.08071, and Agarwal, Kairouz & Liu 2021, arXiv:2110.04995, for the mechanism; the
///   head of this file for the numbers.
#[derive(Debug, Clone)]
pub struct Skellam {
    shift: f64,
    variance: f64,
    /// The largest integer of the table.
    last: u64,
    law: LogConcave,
}

impl Skellam {
    /// Creates the profile for integers that differ by `shift` and noise of this variance.
    ///
    /// # Errors
    /// [`Error::Domain`] unless the shift is from 1 to 10⁶ and the variance from 10⁻⁹ to 10⁸.
    pub fn new(shift: u64, variance: f64) -> Result<Self> {
        // exact where it is accepted
        let d = real(shift);
        if shift == 0 || shift > MOST_SHIFT {
            return domain("shift", d, "an integer from 1 to 1000000");
        }
        if !(VARIANCES.0..=VARIANCES.1).contains(&variance) {
            return domain("variance", variance, "between 1e-9 and 100000000");
        }
        let reach = reach(variance);
        let last = shift + reach;
        Ok(Self { shift: d, variance, last, law: LogConcave::new(&logarithms(variance, last, 2 * reach + 16)) })
    }
}

/// Returns an integer at which p is about e^{−RESOLVED}·p(0), by the exponent of its Chernoff bound.
fn reach(variance: f64) -> u64 {
    let exponent = |k: f64| k * (k / variance).asinh() - k * k / (variance.hypot(k) + variance);
    let mut high = 1_u64;
    while exponent(real(high)) < RESOLVED {
        high *= 2;
    }
    let mut low = high / 2;
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if exponent(real(middle)) < RESOLVED {
            low = middle;
        } else {
            high = middle;
        }
    }
    high
}

/// Returns e^{−asinh(c)} and 1 − e^{−asinh(c)} for c > 0.
fn of_bound(c: f64) -> (f64, f64) {
    let root = c.hypot(1.0);
    (1.0 / (c + root), (c + c * (c / (root + 1.0))) / (c + root))
}

/// Returns ln p(k)/p(0) for k from 0 to `last`, each with a bound on its error; the recursion begins `before` integers further out.
fn logarithms(variance: f64, last: u64, before: u64) -> Vec<(f64, f64)> {
    let u = UNIT_ROUNDOFF;
    let start = last + before;
    let (low, high) = (of_bound(real(start + 1) / variance), of_bound(real(start) / variance));
    let (mut ratio, mut gap) = (0.5 * (low.0 + high.0), 0.5 * (low.1 + high.1));
    let mut ratio_error = 0.5 * (high.0 - low.0) + 16.0 * u * high.0;
    let mut gap_error = ratio_error + u;
    // ln r(k), with its error, from the last one to the first.
    let mut steps = Vec::new();
    for k in (1..=start).rev() {
        let twice = 2.0 * real(k) / variance;
        let next = 1.0 / (twice + ratio);
        // The derivative of both recursions is −1/(2k/μ + r)²; its own change over an interval as short as the errors is far below 1e-6.
        let shrunk = next * next * (1.0 + 1e-6);
        if next < 0.5 {
            ratio_error = shrunk * ratio_error + 5.0 * u * next;
            ratio = next;
            gap = 1.0 - next;
            gap_error = ratio_error + u;
        } else {
            let difference = twice - gap;
            // 2k/μ is off by 2u of itself, the difference by u; the denominator by 4u together.
            gap_error = shrunk * gap_error + u * (2.0 * twice + difference.abs()) * next;
            gap = difference / (twice + (1.0 - gap));
            gap_error = (gap_error + 6.0 * u * gap.abs()) * (1.0 + 1e-9);
            ratio = 1.0 - gap;
            ratio_error = gap_error + u;
        }
        if k <= last {
            let log = if ratio < 0.5 { ratio.ln() } else { (-gap).ln_1p() };
            let error = if ratio < 0.5 { ratio_error } else { gap_error };
            steps.push((log, error / ratio * (1.0 + 1e-6) + 2.0 * u * log.abs()));
        }
    }
    // A compensated sum of terms of one sign is off by 2u of itself, and by a square of u for each term.
    let (mut sum, mut carried, mut error) = (0.0_f64, 0.0_f64, 0.0_f64);
    let mut all = vec![(0.0, 0.0)];
    for (log, own) in steps.into_iter().rev() {
        let next = sum + log;
        carried += if sum.abs() >= log.abs() { (sum - next) + log } else { (log - next) + sum };
        sum = next;
        error = (error + own) * (1.0 + 2.0 * u);
        all.push((sum + carried, error + 4.0 * u * sum.abs()));
    }
    all
}

impl Profile for Skellam {
    fn at_within(&self, epsilon: f64, _bracket: (f64, f64)) -> ProfilePoint {
        self.law.point(self.shift, epsilon)
    }

    /// The two laws are mirror images.
    fn reversal(&self) -> Reversal {
        Reversal::Same
    }

    /// Returns the sum over the table, with what lies beyond it; `None` if that took a table of millions of outcomes.
    fn log_moment(&self, order: f64, run: &Run) -> Result<Option<f64>> {
        let (a, d) = (order, self.shift);
        // ln of the ratio of the summands at `last` + 1 and at `last` is below this; it is off by a few units of rounding.
        let ratio = |last: f64| {
            let (far, next) = (((last - d) / self.variance).asinh(), ((last + 1.0) / self.variance).asinh());
            -far + (a - 1.0) * (next - far) + 16.0 * UNIT_ROUNDOFF * a * (1.0 + next)
        };
        let mut last = self.last;
        while ratio(real(last)) >= 0.0 && last < LONGEST {
            last *= 2;
        }
        let (ratio, far) = (ratio(real(last)), real(last));
        if ratio >= 0.0 || far <= d {
            return Ok(None);
        }
        run.check()?;
        let longer = (last > self.last).then(|| LogConcave::new(&logarithms(self.variance, last, 2 * last + 16)));
        let law = longer.as_ref().unwrap_or(&self.law);
        let (mut terms, mut x) = (Vec::new(), d - far);
        while x <= far {
            if let (Some(p), Some(q)) = (law.log(x - d), law.log(x)) {
                let error = a * p.error + (a - 1.0) * q.error;
                let rounding = 4.0 * UNIT_ROUNDOFF * a * (p.value.abs() + q.value.abs());
                terms.push(a * p.value - (a - 1.0) * q.value + error + rounding);
            }
            x += 1.0;
        }
        let (end, whole) = (terms.last().copied().unwrap_or(f64::NEG_INFINITY), law.whole());
        terms.push(end + ratio - (-ratio.exp_m1()).ln());
        terms.push(law.tail(0.0, far + 1.0).error.ln() + whole.value.ln());
        let (sum, constant) = (log_sum(&terms), (whole.value - whole.error).max(f64::MIN_POSITIVE).ln());
        Ok(Some((sum - constant + ABSOLUTE * (2.0 + sum.abs() + constant.abs())).max(0.0)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns p(k) for k from 0 to `last` by I_k(μ) = Σ_j (μ/2)^{2j+k}/(j!(j + k)!), a sum of positive terms.
    fn direct(variance: f64, last: u32) -> Vec<f64> {
        let half = 0.5 * variance;
        let first = |k: u32| (1..=k).fold(1.0, |product, i| product * half / f64::from(i));
        let sum = |k: u32| {
            let (mut term, mut sum) = (first(k), 0.0);
            for j in 1..2000 {
                sum += term;
                term *= half * half / (f64::from(j) * f64::from(j + k));
            }
            sum
        };
        (0..=last).map(|k| (-variance).exp() * sum(k)).collect()
    }

    #[test]
    fn probabilities_are_those_of_bessel_functions() {
        for variance in [1e-6, 0.3, 1.0, 12.5, 90.0, 400.0] {
            let noise = Skellam::new(1, variance).unwrap();
            let whole = noise.law.whole();
            for (k, exact) in direct(variance, 60).into_iter().enumerate() {
                let log = noise.law.log(real(k)).unwrap();
                let found = log.value.exp() / whole.value;
                let error = log.error + whole.error / whole.value;
                if exact < 1e-290 {
                    break;
                }
                assert!((found / exact - 1.0).abs() <= error + 1e-12, "{variance} {k} {found} {exact}");
                assert!(error < 1e-12, "{variance} {k} {log:?}");
            }
        }
    }

    #[test]
    fn the_profile_is_that_of_all_outcomes() {
        for (shift, variance) in [(1_u64, 0.01), (1, 1.0), (3, 2.0), (2, 50.0), (20, 50.0)] {
            let (profile, law) = (Skellam::new(shift, variance).unwrap(), direct(variance, 150));
            // Shifts are small.
            #[allow(clippy::cast_possible_wrap)]
            let d = shift as i64;
            let at = |x: i64| usize::try_from(x.abs()).ok().and_then(|x| law.get(x)).copied().unwrap_or(0.0);
            for step in -20..40 {
                let epsilon = 0.173 * f64::from(step);
                let sum: f64 = (-140..=140 + d).map(|x| (at(x - d) - epsilon.exp() * at(x)).max(0.0)).sum();
                let point = profile.at(epsilon);
                assert!(
                    (point.delta - sum).abs() <= 1e-11 * sum + 1e-14 + point.delta_error,
                    "{shift} {variance} {point:?}"
                );
                assert!(point.delta_error <= 1e-10, "{point:?}");
            }
        }
    }

    #[test]
    fn moments_are_those_of_all_outcomes() {
        let run = Run::default();
        for (shift, variance) in [(1_i64, 0.5), (2, 3.0), (3, 20.0)] {
            let (profile, law) = (Skellam::new(shift.unsigned_abs(), variance).unwrap(), direct(variance, 150));
            let at = |x: i64| usize::try_from(x.abs()).ok().and_then(|x| law.get(x)).copied().unwrap_or(0.0);
            for a in [1.1, 2.0, 5.0, 12.0] {
                let terms = (-120..=120_i64)
                    .filter(|&x| at(x).min(at(x - shift)) > 1e-290)
                    .map(|x| (a * at(x - shift).ln() - (a - 1.0) * at(x).ln()).exp());
                let (exact, found) = (terms.sum::<f64>().ln(), profile.log_moment(a, &run).unwrap().unwrap());
                assert!(
                    found >= exact * (1.0 - 1e-11) - 1e-12 && found <= exact * (1.0 + 1e-9) + 1e-11,
                    "{a} {found} {exact}"
                );
            }
            // Far orders take a longer table, and divergences do not fall with the order.
            let divergence = |a: f64| profile.log_moment(a, &run).unwrap().unwrap() / (a - 1.0);
            assert!(divergence(300.0) <= divergence(2000.0) && divergence(12.0) <= divergence(300.0));
        }
    }

    #[test]
    fn wide_noise_is_near_the_gaussian_mechanism_and_other_noise_is_refused() {
        let gaussian = crate::pair::gaussian::GaussianPair::new(5000.0, 1e4).unwrap();
        let profile = Skellam::new(5000, 1e8).unwrap();
        for step in -20..40 {
            let epsilon = 0.1 * f64::from(step);
            let (one, two) = (profile.at(epsilon), gaussian.at(epsilon));
            assert!((one.delta - two.delta).abs() <= 1e-5 * two.delta, "{epsilon} {one:?} {two:?}");
        }
        for (shift, variance) in [(0, 1.0), (1, 1e-10), (1, 1e9), (1, f64::NAN), (2_000_000, 1.0)] {
            assert!(Skellam::new(shift, variance).is_err());
        }
    }
}
