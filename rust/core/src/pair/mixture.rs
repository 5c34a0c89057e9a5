//! Pairs of Gaussian mixtures on the line whose likelihood ratio increases.
//!
//! `P = Σ w_i N(a_i, 1)` against `Q = Σ v_j N(b_j, 1)`, shifts in units of the noise. The pairs built here have an
//! increasing likelihood ratio, so `{L > ε}` is a half-line `y > τ(ε)` and both tails are sums of normal tails:
//! `δ(ε) = Σ w_i Φ(a_i − τ) − e^ε Σ v_j Φ(b_j − τ)`.
//!
//! For every half-line, this difference is at most the true δ (which is its maximum over all sets), so an error in τ
//! costs only the likelihood-ratio defect between the two thresholds; that term is in the returned error.

use std::sync::Arc;

use crate::error::{domain, Result};
use crate::exact::{decimal, Rational};
use crate::laws::{binomial, Weights};
use crate::pair::components::{NormalComponent, NormalMixture};
use crate::pair::moments::rounded_shift;
use crate::pair::threshold::guess;
use crate::pair::{LargestLoss, Profile, ProfilePoint, Reversal};
use crate::special::{real, Approximation, UNIT_ROUNDOFF};

/// The profile H_{e^ε}(P‖Q) of a pair of Gaussian mixtures with increasing likelihood ratio.
///
/// * Units: shifts divided by σ; ε in nats.
/// * Guarantee: [`Profile::at`] returns values within their stated errors.
/// * Precision: relative error about 10⁻¹⁵ of P(L > ε), growing with the square of the tail's standardised distance.
/// * Source: mathematics of one round, mixtures of Gaussians (Choquette-Choo et al. 2023, Lemma 4.6; group-level
///   accounting arXiv:2401.10294, Theorems 3.1 and 3.3).
#[derive(Debug, Clone, PartialEq)]
pub struct MixturePair {
    numerator: NormalMixture,
    denominator: NormalMixture,
    /// The relative error of every weight.
    weight_error: f64,
    /// The likelihood ratio increases on `[start, ∞)`; only such thresholds are used.
    start: f64,
    /// Infimum and supremum of the loss on that half-line.
    range: (f64, f64),
    /// μ² of the largest contribution, for contributions whose probabilities are part of the mechanism.
    square: Option<Rational>,
}

fn check_positive(name: &'static str, value: f64) -> Result<()> {
    if value > 0.0 && value.is_finite() {
        Ok(())
    } else {
        domain(name, value, "a positive finite number")
    }
}

impl MixturePair {
    fn monotone(numerator: NormalMixture, denominator: NormalMixture, weight_error: f64) -> Self {
        let ends = |pick: fn(&NormalMixture) -> Option<&NormalComponent>, outside: f64| match (
            pick(&numerator),
            pick(&denominator),
        ) {
            (Some(p), Some(q)) if (p.shift - q.shift).abs() == 0.0 => p.log_weight - q.log_weight,
            _ => outside,
        };
        let range = (ends(|m| m.components.first(), f64::NEG_INFINITY), ends(|m| m.components.last(), f64::INFINITY));
        Self { numerator, denominator, weight_error, start: f64::NEG_INFINITY, range, square: None }
    }

    /// Creates `N(sensitivity, σ²)` against `N(0, σ²)`: the Gaussian mechanism, whose two directions have the same
    /// profile.
    ///
    /// # Errors
    /// [`Error::Domain`] unless both arguments are positive and finite.
    pub fn gaussian(sensitivity: f64, noise_multiplier: f64) -> Result<Self> {
        check_positive("sensitivity", sensitivity)?;
        check_positive("noise_multiplier", noise_multiplier)?;
        let numerator = NormalMixture::new(std::iter::once((0.0, sensitivity / noise_multiplier)));
        Ok(Self::monotone(numerator, NormalMixture::new(std::iter::once((0.0, 0.0))), 0.0))
    }

    /// Creates `Σ_j p_j N(unit·j, σ²)` against `N(0, σ²)` or, with another unit, against `Σ_j p_j N(−other·j, σ²)`.
    ///
    /// This is the *remove* direction. It dominates a round whose sum differs, relative to one without the sensitive
    /// records, by at most `unit·j` with and `other·j` without them when they are drawn j times, whatever the rest of
    /// the batch (joint convexity over the rest, and Choquette-Choo et al. 2023, Lemma 4.6).
    ///
    /// # Errors
    /// [`Error::Domain`].
    pub fn counted(weights: &Weights, unit: f64, other: Option<f64>, noise_multiplier: f64) -> Result<Self> {
        check_positive("noise_multiplier", noise_multiplier)?;
        check_positive("shift", unit)?;
        weights.whole()?;
        let shifted = |unit: f64| {
            NormalMixture::new(
                weights
                    .count
                    .iter()
                    .zip(&weights.log_probability)
                    .map(|(&j, &l)| (l, unit * f64::from(j) / noise_multiplier)),
            )
        };
        let denominator = match other {
            Some(other) => shifted(-other),
            None => NormalMixture::new(std::iter::once((0.0, 0.0))),
        };
        Ok(Self::monotone(shifted(unit), denominator, weights.relative_error))
    }

    /// Creates the pair of Poisson sampling with probability p and `group_size` records that take part independently:
    /// `Σ_j Bin(j; k, p) N(j, σ²)` against `N(0, σ²)` (add-remove, zero-out) or, `two_sided`, against
    /// `Σ_j Bin(j; k, p) N(−j, σ²)` (replace-one). This is the *remove* direction.
    ///
    /// Tight for every α in both directions (arXiv:2401.10294, Theorem 3.1; replace-one: gradients ±1).
    ///
    /// # Errors
    /// [`Error::Domain`] for a group size or probability outside the domain of [`binomial`], or a σ that is not
    /// positive and finite.
    pub fn poisson(group_size: u32, probability: f64, noise_multiplier: f64, two_sided: bool) -> Result<Self> {
        let weights = binomial(group_size, probability)?;
        Self::counted(&weights, 1.0, two_sided.then_some(1.0), noise_multiplier)
    }

    /// Creates `Σ_j w_j N(s_j, σ²)` against `N(0, σ²)` with `w_j = p_j / Σp`, `s_j ≥ 0`: a record contributes a vector of norm
    /// s_j or less with probability `w_j`. This is the *remove* direction.
    ///
    /// The ratio `Σ_j w_j exp(s_j y/σ² − s_j²/2σ²)` increases in y. The pair dominates vectors of norms at most s_j
    /// (Choquette-Choo et al. 2023, Lemma 4.6), and vectors of norm s_j in one direction attain it.
    ///
    /// # Errors
    /// [`Error::Domain`] unless σ is positive and finite, every p is in (0, 1] and every s is finite and at least 0.
    pub fn weighted(contributions: &[(f64, f64)], noise_multiplier: f64) -> Result<Self> {
        check_positive("noise_multiplier", noise_multiplier)?;
        for &(probability, shift) in contributions {
            if !(probability > 0.0 && probability <= 1.0) {
                return domain("probability", probability, "greater than 0, at most 1");
            }
            if !(shift >= 0.0 && shift.is_finite()) {
                return domain("shift", shift, "finite, at least 0");
            }
        }
        let total = contributions.iter().map(|(probability, _)| probability).sum::<f64>().ln();
        let weighted =
            contributions.iter().map(|&(probability, shift)| (probability.ln() - total, shift / noise_multiplier));
        let numerator = NormalMixture::new(weighted);
        if numerator.components.iter().all(|component| component.shift <= 0.0) {
            return domain("shift", 0.0, "positive for some weight");
        }
        // The sum of n terms errs by (n − 1)u, each logarithm by u times its size, and an exponential by as much again.
        let largest = numerator.components.iter().map(|c| c.log_weight.abs()).fold(total.abs(), f64::max);
        let count = real(contributions.len());
        let weight_error = UNIT_ROUNDOFF * (2.0 * count + 4.0 * largest + 8.0);
        let pair = Self::monotone(numerator, NormalMixture::new(std::iter::once((0.0, 0.0))), weight_error);
        let largest = contributions.iter().fold(0.0_f64, |most, contribution| most.max(contribution.1));
        let ratio = decimal(largest) / decimal(noise_multiplier);
        Ok(Self { square: Some(&ratio * &ratio), ..pair })
    }

    /// Creates `(1−q)N(0) + qN(2)` against `(1−q)N(0) + qN(1)`, for ε ≥ 0 only: one record of a fixed-size batch is set
    /// to zero while every other record opposes it. `weights` is the law (1 − q, q) on {0, 1}.
    ///
    /// The ratio `(1−q+q·e^{2ct−2c²})/(1−q+q·e^{ct−c²/2})`, c = 1/σ, crosses 1 once, at t = 3c/2, and increases from
    /// there: with `u = e^{ct−c²/2}` the sign of its derivative is that of `2(1−q)u·e^{−c²} + qu²e^{−c²} − (1−q)`,
    /// increasing in u and positive at the sign change `u = e^{c²}`. So for ε ≥ 0 the set {L > ε} is a half-line beyond
    /// 3c/2.
    pub(crate) fn opposed_zero_out(weights: &Weights, noise_multiplier: f64) -> Result<Self> {
        check_positive("noise_multiplier", noise_multiplier)?;
        weights.whole()?;
        let at = |shift: f64| {
            NormalMixture::new(
                weights.count.iter().zip(&weights.log_probability).map(|(&j, &l)| (l, f64::from(j) * shift)),
            )
        };
        let c = 1.0 / noise_multiplier;
        let mut pair = Self::monotone(at(2.0 * c), at(c), weights.relative_error);
        pair.start = 1.5 * c;
        pair.range = (0.0, f64::INFINITY);
        Ok(pair)
    }

    /// Returns the same pair for thresholds from `start` on.
    pub(crate) fn rising_from(self, start: f64) -> Self {
        Self { start, ..self }
    }

    /// Returns the relative error of a ratio of two weights.
    pub(crate) fn weight_error(&self) -> f64 {
        2.0 * self.weight_error
    }

    /// Returns Q(low < y < high) and e^ε·P(low < y < high).
    pub(crate) fn masses_between(&self, low: f64, high: f64, epsilon: f64) -> (Approximation, Approximation) {
        let between = |mixture: &NormalMixture, epsilon: f64| {
            if low == f64::NEG_INFINITY {
                return mixture.mirrored().scaled_tail(epsilon, -high, self.weight_error);
            }
            let tails = [low, high].map(|end| mixture.scaled_tail(epsilon, end, self.weight_error));
            Approximation { value: tails[0].value - tails[1].value, error: tails[0].error + tails[1].error }
        };
        (between(&self.denominator, 0.0), between(&self.numerator, epsilon))
    }

    /// Returns the other direction of the same pair, H(Q‖P): both mixtures are mirrored so that the ratio increases
    /// again.
    pub fn reversed(&self) -> Self {
        let pair = Self::monotone(self.denominator.mirrored(), self.numerator.mirrored(), self.weight_error);
        Self { square: self.square.clone(), ..pair }
    }

    /// Returns `L(y)`, `L'(y)` and a bound on the rounding of the former.
    pub(crate) fn loss(&self, y: f64) -> (f64, f64, f64) {
        let (p, dp, ep) = self.numerator.log_ratio(y);
        let (q, dq, eq) = self.denominator.log_ratio(y);
        (p - q, dp - dq, ep + eq + UNIT_ROUNDOFF * (p.abs() + q.abs()))
    }

    /// Returns a τ just below the threshold, a bound on |ε − L(τ)|, and whether τ was shown to lie below.
    fn threshold_from_below(&self, epsilon: f64, bracket: (f64, f64)) -> (f64, f64, bool) {
        let (tau, residual, slope) = self.threshold(epsilon, bracket);
        let mut step = 2.0 * residual / slope.abs() + 4.0 * UNIT_ROUNDOFF * tau.abs();
        for _ in 0..4 {
            let mut lower = (tau - step).max(self.start);
            let (mut value, _, mut rounding) = self.loss(lower);
            if value + rounding > epsilon {
                step *= 8.0;
                continue;
            }
            // Where the loss is flat the step is far too long: it is halved while the point still lies below.
            for _ in 0..60 {
                if epsilon - value <= 8.0 * (residual + rounding) {
                    break;
                }
                let nearer = 0.5 * (lower + tau);
                let (above, _, error) = self.loss(nearer);
                if above + error > epsilon {
                    break;
                }
                (lower, value, rounding) = (nearer, above, error);
            }
            return (lower, epsilon - value + rounding, true);
        }
        (tau, residual, false)
    }

    /// Solves `L(τ) = ε` for ε inside the loss range by Newton steps that are kept inside a bracket. Returns τ, a bound
    /// on |L(τ) − ε|, and L'(τ).
    fn threshold(&self, epsilon: f64, bracket: (f64, f64)) -> (f64, f64, f64) {
        let mut low = bracket.0.max(self.start);
        let mut high = bracket.1;
        let mut y = match (low.is_finite(), high.is_finite()) {
            (true, true) => 0.5 * (low + high),
            _ => guess(&self.numerator, &self.denominator, epsilon).max(low),
        };
        let mut stride = 1.0;
        let mut best = (y, f64::INFINITY, 0.0);
        for _ in 0..200 {
            let (value, slope, rounding) = self.loss(y);
            let residual = value - epsilon;
            if residual.abs() + rounding < best.1 {
                best = (y, residual.abs() + rounding, slope);
            }
            if residual.abs() <= 2.0 * rounding {
                break;
            }
            if residual > 0.0 {
                high = high.min(y);
            } else {
                low = low.max(y);
            }
            let newton = y - residual / slope;
            let inside = newton > low && newton < high;
            let next = match (low.is_finite(), high.is_finite()) {
                // A stale bracket (from a hint that does not hold) collapses; the search then restarts with the widest
                // bracket.
                _ if low >= high => {
                    (low, high) = (self.start, f64::INFINITY);
                    y - residual.signum() * stride
                }
                (true, true) if inside => newton,
                (true, true) => 0.5 * (low + high),
                _ if inside && (newton - y).abs() <= 64.0 * stride => newton,
                (_, false) if residual < 0.0 => y + stride,
                (false, _) if residual > 0.0 => y - stride,
                _ => newton.clamp(low, high),
            };
            stride *= 2.0;
            if (next - y).abs() <= UNIT_ROUNDOFF * y.abs() {
                break;
            }
            y = next;
        }
        best
    }
}

impl Profile for MixturePair {
    fn at_within(&self, epsilon: f64, bracket: (f64, f64)) -> ProfilePoint {
        // The ends of the loss range are known to the weights' error (and the rounding of two logarithms).
        let outside = 4.0 * self.weight_error + 8.0 * UNIT_ROUNDOFF;
        if epsilon >= self.range.1 {
            let outside = if epsilon > self.range.1 + outside { 0.0 } else { outside };
            return ProfilePoint {
                delta: 0.0,
                delta_error: outside,
                slope: 0.0,
                slope_error: outside,
                threshold: f64::NAN,
            };
        }
        if epsilon <= self.range.0 && self.start.is_infinite() {
            let slope = epsilon.exp();
            let delta = -epsilon.exp_m1();
            return ProfilePoint {
                delta,
                delta_error: outside * slope + 4.0 * UNIT_ROUNDOFF * delta.abs(),
                slope,
                slope_error: slope * (outside + 4.0 * UNIT_ROUNDOFF),
                threshold: f64::NAN,
            };
        }
        let (tau, residual, is_below) = self.threshold_from_below(epsilon, bracket);
        let above = self.numerator.scaled_tail(0.0, tau, self.weight_error);
        let below = self.denominator.scaled_tail(epsilon, tau, self.weight_error);
        let delta = above.value - below.value;
        // If the exact threshold lies above τ, P's mass between the two is at most P(y > τ), and never more than 1;
        // there the density of P − e^ε Q is at most P's times the defect of the ratio, which the weights' error may add
        // to.
        let between = if is_below { (above.value + above.error).min(1.0) } else { 1.0 };
        let defect = residual + 2.0 * self.weight_error;
        ProfilePoint {
            delta: delta.max(0.0),
            delta_error: above.error + below.error + UNIT_ROUNDOFF * delta.abs() + defect.exp_m1() * between,
            // Any half-line gives a supporting line of the profile; this is the one that `above` was computed for.
            slope: below.value,
            slope_error: below.error,
            threshold: tau,
        }
    }

    /// Returns the supremum of the losses, where the last components of both mixtures have the same shift. No outcome
    /// attains it.
    fn largest_loss(&self) -> LargestLoss {
        let end = self.range.1;
        if !end.is_finite() {
            return LargestLoss::UNBOUNDED;
        }
        let rounding = 4.0 * self.weight_error + UNIT_ROUNDOFF * (8.0 + 4.0 * end.abs());
        LargestLoss { at_least: end - rounding, at_most: end + rounding, mass: 0.0 }
    }

    /// A pair that is used from some threshold on stands for one of its halves, which has no reversal.
    fn reversal(&self) -> Reversal {
        if self.start.is_infinite() {
            Reversal::Other(Arc::new(self.reversed()))
        } else {
            Reversal::Unknown
        }
    }

    /// Returns the largest distance of two components, drawn independently of each other.
    fn dominating_shift(&self) -> Option<f64> {
        let (p, q) = (&self.numerator.components, &self.denominator.components);
        let [first, last, other_first, other_last] = [p.first()?, p.last()?, q.first()?, q.last()?];
        let largest = (last.shift - other_first.shift).abs().max((other_last.shift - first.shift).abs());
        Some(rounded_shift(largest))
    }

    /// Returns (s/σ)² for random contributions of at most s. *Proof.* H_α is jointly convex in the pair, so that of the mixture
    /// is at most the mean of those of its parts N(s_j, σ²) against N(0, σ²), for every α and in both directions, and these grow
    /// with s_j. ∎ No smaller μ dominates: for large α, δ is at least the probability of the largest contribution times its δ.
    ///
    /// A sampled round is such a mixture too, but of that its filter would only learn that the record may take part.
    fn gaussian_square(&self) -> Option<Rational> {
        self.square.clone()
    }

    /// Returns half of that square: D_a is jointly quasi-convex, and a(s/σ)²/2 for the largest contribution.
    fn concentration(&self) -> Option<Rational> {
        self.square.as_ref().map(|square| square / Rational::from_integer(2.into()))
    }
}
