//! The cumulant generating function of composed loss masses, with the tilts and tail bounds that follow from it.

use crate::pld::masses::Masses;
use crate::special::real;

/// `Σ_groups count · ln Σ_i p_i e^{λ ε_i}` and its first two derivatives.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Cumulant {
    /// The value K(λ).
    pub value: f64,
    /// K′(λ): the mean loss under the tilted law.
    pub mean: f64,
    /// K″(λ): its variance.
    pub variance: f64,
}

/// Several kinds of rounds, each with its masses and count.
#[derive(Debug)]
pub struct Groups<'a> {
    members: Vec<(&'a Masses, f64, Vec<f64>)>,
    /// The largest loss of all rounds together, or many of their standard deviations, in nats; 1 if it is more.
    span: f64,
}

impl<'a> Groups<'a> {
    /// Prepares the logarithms of the masses.
    pub fn new(groups: impl Iterator<Item = (&'a Masses, u64)>) -> Self {
        // counts are at most 1e18 and enter estimates and bounds with slack
        let members: Vec<(&Masses, f64, Vec<f64>)> =
            groups.map(|(masses, count)| (masses, real(count), masses.mass.iter().map(|m| m.ln()).collect())).collect();
        let furthest = |masses: &Masses| masses.epsilon.iter().fold(0.0_f64, |a, e| a.max(*e));
        let span: f64 = members.iter().map(|(masses, count, _)| count * furthest(masses)).sum();
        let groups = Self { members, span };
        let spread = DEVIATIONS * groups.at(0.0).variance.sqrt();
        // The variance is only accurate to a fraction of the squared mean.
        Self { span: span.min(spread.max(1e-8 * span)).clamp(SMALLEST_SPAN, 1.0), ..groups }
    }

    /// Returns the largest useful tilt: with larger ones δ falls below 1e-300 within a nat, or within a small fraction
    /// of the largest loss of all rounds.
    pub fn steepest(&self) -> f64 {
        LARGEST_TILT / self.span
    }

    /// Returns K, K′, K″ at λ.
    pub fn at(&self, lambda: f64) -> Cumulant {
        let mut total = Cumulant { value: 0.0, mean: 0.0, variance: 0.0 };
        for (masses, count, logs) in &self.members {
            let one = single(lambda, &masses.epsilon, logs);
            total.value += count * one.value;
            total.mean += count * one.mean;
            total.variance += count * one.variance;
        }
        total
    }

    /// Returns `ln Σ p e^{λε}` of each group separately.
    pub fn values(&self, lambda: f64) -> Vec<f64> {
        self.members.iter().map(|(masses, _, logs)| single(lambda, &masses.epsilon, logs).value).collect()
    }

    /// Returns the λ ≥ 0 with K′(λ) = ε, or the nearest end of `[0, steepest]`.
    pub fn tilt_for_epsilon(&self, epsilon: f64) -> f64 {
        root(self.steepest(), 1.0, 1e-3, |lambda| {
            let at = self.at(lambda);
            (at.mean - epsilon, at.variance)
        })
    }

    /// Returns the λ ≥ 0 at which the saddle-point approximation of δ at its own mean loss equals `delta`.
    ///
    /// This is an estimate: it determines the tilt, and no guarantee depends on it.
    pub fn tilt_for_delta(&self, delta: f64) -> f64 {
        let start = (-2.0 * delta.ln() / self.at(0.0).variance).sqrt();
        root(self.steepest(), start, 1e-3, |lambda| {
            let at = self.at(lambda);
            // This is the slope of the exponent; that of the logarithmic term is small in comparison.
            (delta.ln() - saddle_point(lambda, &at), lambda * at.variance)
        })
    }

    /// Returns `ln δ` at ε = K′(λ) by the saddle-point approximation.
    pub fn saddle_point_log_delta(&self, lambda: f64) -> f64 {
        saddle_point(lambda, &self.at(lambda))
    }

    /// Returns a point beyond which the tilted composed law has mass at most `e^{log_mass}`, on the side `sign` of its
    /// mean, and the θ that proves it.
    ///
    /// Markov's inequality: `Pr_λ[±(S − x) ≥ 0] ≤ exp(K(λ ± θ) − K(λ) ∓ θx)` for any θ > 0. The point is nearest when
    /// `±θK′(λ ± θ) = K(λ ± θ) − K(λ) − log_mass`; the difference of the two sides increases with θ.
    pub fn reach(&self, lambda: f64, at: &Cumulant, sign: f64, log_mass: f64) -> (f64, f64) {
        let needed = |shifted: &Cumulant| shifted.value - at.value - log_mass;
        let start = (-2.0 * log_mass / at.variance).sqrt();
        let theta = root(10.0 * self.steepest(), start, 0.03, |theta| {
            let shifted = self.at(lambda + sign * theta);
            (sign * theta * shifted.mean - needed(&shifted), theta * shifted.variance)
        });
        let theta = theta.max(1e-9);
        (sign * needed(&self.at(lambda + sign * theta)) / theta, theta)
    }

    /// Returns a bound on `ln Pr_λ[±(S − x) ≥ 0]` from the given θ ≥ 0: Markov's inequality as in [`Groups::reach`].
    ///
    /// The cumulants are sums of n rounded terms; `slack` must exceed n times their rounding.
    pub fn log_tail(&self, lambda: f64, at: &Cumulant, sign: f64, x: f64, theta: f64, slack: f64) -> f64 {
        (self.at(lambda + sign * theta).value - at.value - sign * theta * x + slack).min(0.0)
    }
}

/// Returns `ln δ` at ε = K′(λ) from the cumulants there.
fn saddle_point(lambda: f64, k: &Cumulant) -> f64 {
    // The factor λ(λ+1) comes from integrating 1 − e^{−x} against e^{−λx}; the 1/(1 + …) keeps it finite at λ = 0.
    let width = (2.0 * std::f64::consts::PI * k.variance).sqrt();
    k.value - lambda * k.mean - (1.0 + lambda * (lambda + 1.0) * width).ln()
}

fn single(lambda: f64, epsilon: &[f64], logs: &[f64]) -> Cumulant {
    let exponents = || epsilon.iter().zip(logs).map(|(e, l)| l + lambda * e);
    let largest = exponents().fold(f64::NEG_INFINITY, f64::max);
    let (mut sum, mut first, mut second) = (0.0, 0.0, 0.0);
    for (t, e) in exponents().zip(epsilon) {
        let w = (t - largest).exp();
        sum += w;
        first += w * e;
        second += w * e * e;
    }
    let mean = first / sum;
    Cumulant { value: largest + sum.ln(), mean, variance: (second / sum - mean * mean).max(0.0) }
}

/// If all rounds together lose less than this, tilts are computed as if they lost this much, so that they do not
/// overflow.
const SMALLEST_SPAN: f64 = 1e-290;
/// Rounds lose more than this many standard deviations only where a few large losses do.
const DEVIATIONS: f64 = 1e3;
/// See [`Groups::steepest`]. Markov parameters are searched for up to ten times this.
const LARGEST_TILT: f64 = 1e5;

/// Returns the root of an increasing function on `[0, limit]`, to the relative precision given, or the end of the
/// interval beyond which the root lies.
///
/// `f` returns the value and an approximate slope. The search takes Newton steps from `start` while they work, and
/// bisects when they do not; it ends only with a bracket as narrow as the precision, since a short Newton step alone
/// proves nothing where the slope varies.
fn root(limit: f64, start: f64, precision: f64, f: impl Fn(f64) -> (f64, f64)) -> f64 {
    let (mut low, mut high) = (0.0, f64::INFINITY);
    let mut x = if start > 0.0 { start.min(limit) } else { 1.0_f64.min(limit) };
    for step in 0..200 {
        let (value, slope) = f(x);
        if value < 0.0 {
            if x >= limit {
                return limit;
            }
            low = x;
        } else {
            high = x;
        }
        if high < 1e-9 || (high.is_finite() && high - low <= precision * high) {
            break;
        }
        // The step goes slightly past the root that Newton's method predicts, so that the other side of the bracket
        // moves too.
        let shift = -value / slope;
        let newton = x + shift - (0.4 * precision * x).copysign(value);
        let inside = newton > low.max(0.2 * x) && newton < high.min(5.0 * x);
        x = if inside && step < NEWTON_STEPS {
            newton
        } else if high.is_infinite() {
            (4.0 * x).min(limit)
        } else if low > 0.0 {
            0.5 * (low + high)
        } else {
            0.2 * high
        };
    }
    if low == 0.0 && f(0.0).0 >= 0.0 {
        return 0.0;
    }
    if high.is_finite() {
        0.5 * (low + high)
    } else {
        low
    }
}

/// Newton steps that have not converged after this many steps will not converge.
const NEWTON_STEPS: usize = 8;
