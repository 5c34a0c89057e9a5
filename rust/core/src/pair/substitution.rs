//! Batches with a fixed number of draws: convex bounds that no single pair attains.
//!
//! The other records of such a batch depend on how often the sensitive one was drawn, so the pair `Σ p_j N(±j)` that is
//! commonly used is not an upper bound (two concrete data sets exceed it). Let ν be the law of the sum when the
//! sensitive record is not drawn, μ its law when it is (in P) and μ′ when its replacement is (in Q); p_j the
//! probability of j draws, η = 1 − p_0. For α′ ≥ 1, `α = 1 + (α′ − 1)/η`, `β = α′/α` (advanced joint convexity: Balle,
//! Barthe & Gaboardi 2018, Theorem 2)
//!
//! `H_{α′}((1−η)ν + ημ ‖ (1−η)ν + ημ′) = η H_α(μ ‖ (1−β)ν + βμ′)`,
//!
//! and the batches can be coupled so that, given j draws, j slots differ: μ and ν are then at most 2j apart, μ and μ′
//! at most 2j under replacement and j when a record is set to zero, ν and μ′ at most 2j or j. With G_s the profile of a
//! Gaussian mechanism of sensitivity s and F_s that of `Σ p_j N(sj)` against `N(0)`, all of the following are upper
//! bounds:
//!
//! | bound | replaced | set to zero, remove | set to zero, add |
//! |---|---|---|---|
//! | joint convexity | Σ_{j≥1} p_j G_{2j}(α) | Σ_{j≥1} (p_j/η) H_{α′}((1−η)N(0)+ηN(2j) ‖ (1−η)N(0)+ηN(j)) | Σ_{j≥1} p_j G_j(α) |
//! | blend | (1−β)F_2(α′) + βΣ p_j G_{2j}(α) | (1−β)F_2(α′) + βΣ p_j G_j(α) | (1−β)F_1(α′) + βΣ p_j G_j(α) |
//! | pair | Σ p_j N(2j) against Σ p_j N(−2j) | Σ p_j N(2j) against Σ p_j N(−j) | the same, other direction |
//!
//! The first row holds for every sampler of [`crate::pair::batch`]. The other two measure all sums from one without the
//! sensitive records, for a fixed outcome of the other draws, of which j must be independent: so it is without and with
//! replacement. For the two-stage samplers they are not proven, and not used; `Σ p_j N(2j)` against `N(0)` is even
//! false there. From that one sum P is at most 2j away and Q at most 2j or j, in opposite directions at worst: for any
//! set A with Gaussian measure Φ(u), the isoperimetric inequality gives Φ(u + ‖a‖) and Φ(u − ‖b‖) as the extremes,
//! which half-lines attain, in any dimension. Without replacement and with fewer other records than draws there is no
//! batch without the sensitive records (η = 1); the sum of all other records takes its place.
//!
//! **Couplings.** With replacement: keep the other draws and replace the sensitive ones by other records. Two stages,
//! [`Sampler::MustOw`]: the slot of the subset that holds the record holds another one instead; if the record is not in
//! the subset, one of the b members takes the role of that slot, its number of draws coupled to be at most j given
//! j ≥ 1. [`Sampler::MustWw`]: the number of slots given j = 0 is stochastically smaller than given j ≥ 1, and the
//! draws of the slots between them, Bin(m, (i′−i)/(b−i)), smaller than j given j ≥ 1. A record that is added to a data
//! set of N − 1 is compared with the same draw from the larger set in which it is replaced by a random other record
//! (without replacement: one that is not drawn already): batches again differ in exactly j slots, so the first row
//! covers that case too, wherever the smaller set can be drawn from.
//!
//! **Larger data sets.** If the true law is stochastically smaller than p (a larger data set, a smaller group), couple
//! j′ ≤ j and call j slots sensitive of which j′ hold the record and the rest any record: all distances above still
//! hold, so every bound made with p holds for the mechanism with the smaller law. Probability may therefore be moved to
//! larger j.
//!
//! Below 1 a profile follows from the reflection `H_{α′}(P‖Q) = 1 − α′ + α′ H_{1/α′}(Q‖P)`. Where several bounds hold,
//! so does the lower convex hull of their minimum ([`Hull`]).

use std::sync::Arc;

use crate::error::{domain, Result};
use crate::laws::Weights;
use crate::pair::batch::Sampler;
use crate::pair::hull::Hull;
use crate::pair::mixture::MixturePair;
use crate::pair::moments::rounded_shift;
use crate::pair::{Profile, ProfilePoint};
use crate::run::Run;
use crate::special::{real, scaled_upper_tail, upper_tail, Approximation, UNIT_ROUNDOFF};

/// How the sensitive records differ between neighbouring data sets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// They are replaced, or represent records that are added or removed: contributions change by at most 2.
    Replaced,
    /// Their contributions are set to zero.
    Zeroed,
}

/// `Σ_{j≥1} p_j G_{unit·j}(1 + (α′−1)/η)`.
#[derive(Debug, Clone, PartialEq)]
struct Joint {
    /// (p_j, unit·j/σ) for j ≥ 1, by increasing j, and Σ_{i>j} p_i.
    terms: Vec<(f64, f64, f64)>,
    eta: f64,
    /// 1 − η, with a relative error as small as η's.
    stay: f64,
    weight_error: f64,
}

impl Joint {
    fn new(weights: &Weights, unit: f64, noise_multiplier: f64) -> Self {
        let drawn = weights.count.iter().zip(&weights.log_probability).filter(|(&j, _)| j > 0);
        let mut terms: Vec<(f64, f64, f64)> =
            drawn.map(|(&j, l)| (l.exp(), unit * f64::from(j) / noise_multiplier, 0.0)).collect();
        let mut rest = 0.0;
        for term in terms.iter_mut().rev() {
            term.2 = rest;
            rest += term.0;
        }
        let stay = if weights.count.first() == Some(&0) { weights.log_probability[0].exp() } else { 0.0 };
        let summation = UNIT_ROUNDOFF * (real(terms.len()) + 4.0);
        Self { terms, eta: rest.min(1.0), stay, weight_error: 2.0 * weights.relative_error + summation }
    }

    /// Returns `1 − (1−η)e^{−ε}`, which is η·α/α′.
    fn spread(&self, epsilon: f64) -> f64 {
        self.eta - self.stay * (-epsilon).exp_m1()
    }

    /// Returns β = α′/α and 1 − β at ε ≥ 0, each to a relative error of [`Self::mixing_error`].
    fn mixing(&self, epsilon: f64) -> (f64, f64) {
        let spread = self.spread(epsilon);
        (self.eta / spread, -(-epsilon).exp_m1() * self.stay / spread)
    }

    fn mixing_error(&self) -> f64 {
        2.0 * self.weight_error + 8.0 * UNIT_ROUNDOFF
    }

    fn at(&self, epsilon: f64) -> ProfilePoint {
        // This is ln α without overflow and without cancellation near ε = 0.
        let log_alpha = if epsilon < 1.0 {
            (epsilon.exp_m1() / self.eta).ln_1p()
        } else {
            epsilon - self.eta.ln() + (-self.stay * (-epsilon).exp()).ln_1p()
        };
        // α is used in both terms of every G, so an error in it costs only the slope times that error.
        let log_alpha_error = UNIT_ROUNDOFF * (4.0 + 4.0 * log_alpha + 2.0 * epsilon) + self.weight_error;
        let (mut above, mut below, mut left_out) = (Approximation::default(), Approximation::default(), 0.0);
        for &(weight, shift, rest) in &self.terms {
            let center = log_alpha / shift;
            let x_error = UNIT_ROUNDOFF * (3.0 * center + 2.0 * shift);
            above += upper_tail(center - 0.5 * shift, x_error).scaled(weight, self.weight_error);
            below += scaled_upper_tail(log_alpha, center + 0.5 * shift, x_error).scaled(weight, self.weight_error);
            if rest <= NEGLIGIBLE * (above.value - below.value) {
                // Each G and its slope are at most 1.
                left_out = rest;
                break;
            }
        }
        let delta = above.value - below.value;
        // The chain rule gives the factor e^ε/(ηα).
        let chain = 1.0 / self.spread(epsilon);
        let slope = below.scaled(chain, self.weight_error + 2.0 * log_alpha_error + 8.0 * UNIT_ROUNDOFF);
        ProfilePoint {
            delta: delta.max(0.0),
            delta_error: above.error
                + below.error
                + below.value * log_alpha_error
                + UNIT_ROUNDOFF * delta.abs()
                + 2.0 * left_out,
            slope: slope.value,
            slope_error: slope.error + 2.0 * left_out * chain,
            threshold: f64::NAN,
        }
    }
}

/// Terms whose sum is below this fraction of the total are counted as its error.
const NEGLIGIBLE: f64 = 1e-18;

/// A bound on H_{e^ε}, for ε ≥ 0 only.
#[derive(Debug, Clone, PartialEq)]
enum Half {
    Joint(Joint),
    /// `(1−β)F(α′) + βΣ_{j≥1} p_j G_j(α)`, F the profile of the pair.
    Blend(MixturePair, Joint),
    /// `Σ_j (p_j/η) H_{α′}((1−η)N(0)+ηN(2j) ‖ (1−η)N(0)+ηN(j))`: p_j/η, the pair, and the sum of the weights after it.
    Opposed(Vec<(f64, MixturePair, f64)>, f64),
}

impl Half {
    fn opposed(weights: &Weights, noise_multiplier: f64) -> Result<Self> {
        let joint = Joint::new(weights, 1.0, noise_multiplier);
        let taken =
            Weights { count: vec![1], log_probability: vec![joint.eta.ln()], relative_error: joint.weight_error };
        let either = if joint.stay > 0.0 {
            Weights { count: vec![0, 1], log_probability: vec![joint.stay.ln(), joint.eta.ln()], ..taken }
        } else {
            Weights { log_probability: vec![0.0], ..taken }
        };
        let pairs = joint
            .terms
            .iter()
            .map(|&(p, shift, rest)| {
                Ok((p / joint.eta, MixturePair::opposed_zero_out(&either, 1.0 / shift)?, rest / joint.eta))
            })
            .collect::<Result<_>>()?;
        Ok(Self::Opposed(pairs, 2.0 * joint.weight_error + 2.0 * UNIT_ROUNDOFF))
    }

    /// Returns the shift of a Gaussian pair whose profile is nowhere smaller for ε ≥ 0.
    ///
    /// All are means of Gaussian profiles at α′ or at α ≥ α′, where profiles are smaller.
    fn dominating_shift(&self) -> Option<f64> {
        let of_joint = |joint: &Joint| joint.terms.last().map(|term| rounded_shift(term.1));
        match self {
            Self::Joint(joint) => of_joint(joint),
            Self::Blend(pair, joint) => Some(pair.dominating_shift()?.max(of_joint(joint)?)),
            Self::Opposed(pairs, _) => pairs.iter().filter_map(|(_, pair, _)| pair.dominating_shift()).reduce(f64::max),
        }
    }

    /// Returns the value and −d/dε at ε ≥ 0.
    fn at(&self, epsilon: f64, bracket: (f64, f64)) -> ProfilePoint {
        match self {
            Self::Joint(joint) => joint.at(epsilon),
            Self::Blend(pair, joint) => {
                let (whole, part) = (pair.at_within(epsilon, bracket), joint.at(epsilon));
                let (beta, rest) = joint.mixing(epsilon);
                let relative = joint.mixing_error();
                // −dβ/dε = β(1 − β)·(1−η)e^{−ε}/… = β·(1−η)e^{−ε}/(1 − (1−η)e^{−ε}).
                let turning = beta * joint.stay * (-epsilon).exp() / joint.spread(epsilon);
                let (whole_share, part_share) = (rest * whole.delta, beta * part.delta);
                let slope = rest * whole.slope + beta * part.slope + turning * (part.delta - whole.delta);
                ProfilePoint {
                    delta: whole_share + part_share,
                    delta_error: rest * whole.delta_error
                        + beta * part.delta_error
                        + relative * (whole_share + part_share),
                    slope: slope.max(0.0),
                    slope_error: rest * whole.slope_error
                        + beta * part.slope_error
                        + turning * (whole.delta_error + part.delta_error)
                        + relative * (slope.abs() + turning * (part.delta + whole.delta)),
                    threshold: whole.threshold,
                }
            }
            Self::Opposed(pairs, weight_error) => {
                let mut sum =
                    ProfilePoint { delta: 0.0, delta_error: 0.0, slope: 0.0, slope_error: 0.0, threshold: f64::NAN };
                let only = pairs.len() == 1;
                for (weight, pair, rest) in pairs {
                    let point = pair.at_within(epsilon, if only { bracket } else { OPEN });
                    sum.delta += weight * point.delta;
                    sum.delta_error += weight * (point.delta_error + (weight_error + UNIT_ROUNDOFF) * point.delta);
                    sum.slope += weight * point.slope;
                    sum.slope_error += weight * (point.slope_error + (weight_error + UNIT_ROUNDOFF) * point.slope);
                    if only {
                        sum.threshold = point.threshold;
                    }
                    if *rest <= NEGLIGIBLE * sum.delta {
                        sum.delta_error += rest;
                        sum.slope_error += rest;
                        break;
                    }
                }
                let summation = 2.0 * UNIT_ROUNDOFF * real(pairs.len());
                sum.delta_error += summation * sum.delta;
                sum.slope_error += summation * sum.slope;
                sum
            }
        }
    }
}

const OPEN: (f64, f64) = (f64::NEG_INFINITY, f64::INFINITY);

/// A profile bounded for ε ≥ 0 directly and for ε < 0 by reflecting the bound on the opposite direction.
#[derive(Debug, Clone, PartialEq)]
struct Reflected {
    forward: Half,
    backward: Half,
}

impl Reflected {
    /// Returns the bounds for both directions, (remove, add), from their halves.
    fn both(remove: Half, add: Half) -> (Self, Self) {
        (Self { forward: remove.clone(), backward: add.clone() }, Self { forward: add, backward: remove })
    }
}

impl Profile for Reflected {
    fn at_within(&self, epsilon: f64, bracket: (f64, f64)) -> ProfilePoint {
        if epsilon >= 0.0 {
            return self.forward.at(epsilon, bracket);
        }
        let mirrored = self.backward.at(-epsilon, OPEN);
        let alpha = epsilon.exp();
        let slope = alpha * (1.0 - mirrored.delta - mirrored.slope);
        ProfilePoint {
            delta: -epsilon.exp_m1() + alpha * mirrored.delta,
            delta_error: alpha * mirrored.delta_error + 6.0 * UNIT_ROUNDOFF,
            slope: slope.max(0.0),
            slope_error: alpha * (mirrored.delta_error + mirrored.slope_error) + 8.0 * UNIT_ROUNDOFF * alpha,
            threshold: f64::NAN,
        }
    }

    fn dominating_shift(&self) -> Option<f64> {
        self.forward.dominating_shift()
    }
}

/// Returns the tightest bounds of this module on one round whose batch has a fixed number of draws, for both directions
/// (remove, add): `group` of `dataset` records are changed, batches have `batch` draws.
///
/// * Guarantee: upper bounds on H_{e^ε} of the mechanism for every ε; composing them is valid. Without replacement and
///   for one record they are the exact suprema at each α; no single pair attains them at all α, so the composition is
///   not tight. `dataset` may be a lower bound on the number of records (of the larger data set where records are added
///   or removed).
/// * Convexity: joint convexity is convex on both sides of α = 1, and there for h the left slope `h + |h′| − 1` is at
///   most the right one `−|h′|` because `Σ(p_j/η)G_j′ ≤ ½`; for the zero-out pairs because
///   `(1−q)(Φ(−1/2σ) + Φ(−3/2σ) − 1) ≤ 0`. The minimum of several is made convex by [`Hull`].
///
/// # Errors
/// [`Error::Domain`] as in [`Sampler::copies`], and for a σ that is not positive and finite; the errors of
/// [`Run::check`].
pub fn displaced(
    change: Change,
    sampler: Sampler,
    group: u32,
    dataset: u64,
    batch: u64,
    noise_multiplier: f64,
    run: &Run,
) -> Result<(Arc<dyn Profile>, Arc<dyn Profile>)> {
    if !(noise_multiplier > 0.0 && noise_multiplier.is_finite()) {
        let allowed = "a positive finite number";
        return domain("noise_multiplier", noise_multiplier, allowed);
    }
    let weights = sampler.copies(group, dataset, batch, run)?;
    weights.whole()?;
    let joint = |unit| Joint::new(&weights, unit, noise_multiplier);
    let pair = |unit, other| MixturePair::counted(&weights, unit, other, noise_multiplier);
    let (remove, add) = match change {
        Change::Replaced => Reflected::both(Half::Joint(joint(2.0)), Half::Joint(joint(2.0))),
        Change::Zeroed => Reflected::both(Half::opposed(&weights, noise_multiplier)?, Half::Joint(joint(1.0))),
    };
    // If a sensitive record is drawn at most once, the first bound is the supremum.
    let single = weights.count.last().is_none_or(|&most| most <= 1);
    if single || matches!(sampler, Sampler::MustOw { .. } | Sampler::MustWw { .. }) {
        return Ok((Arc::new(remove), Arc::new(add)));
    }
    let (blends, third) = match change {
        Change::Replaced => {
            let blend = Half::Blend(pair(2.0, None)?, joint(2.0));
            (Reflected::both(blend.clone(), blend), pair(2.0, Some(2.0))?)
        }
        Change::Zeroed => {
            let (out, back) = (Half::Blend(pair(2.0, None)?, joint(1.0)), Half::Blend(pair(1.0, None)?, joint(1.0)));
            (Reflected::both(out, back), pair(2.0, Some(1.0))?)
        }
    };
    let backward = third.reversed();
    Ok((
        Arc::new(Hull::new(vec![Arc::new(remove), Arc::new(blends.0), Arc::new(third)])),
        Arc::new(Hull::new(vec![Arc::new(add), Arc::new(blends.1), Arc::new(backward)])),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gaussian_pair_dominates_every_bound() {
        for change in [Change::Replaced, Change::Zeroed] {
            for (sampler, group) in [(Sampler::FixedSize, 1), (Sampler::FixedSize, 2), (Sampler::WithReplacement, 1)] {
                let (remove, add) = displaced(change, sampler, group, 50, 3, 4.0, &Run::default()).unwrap();
                for profile in [remove, add] {
                    let gaussian = MixturePair::gaussian(profile.dominating_shift().unwrap(), 1.0).unwrap();
                    for epsilon in (0..80).map(|k| 0.05 * f64::from(k)) {
                        let (least, most) = (profile.bounds(epsilon).0, gaussian.bounds(epsilon).1);
                        assert!(least <= most, "{change:?} {sampler:?} {epsilon} {least} {most}");
                    }
                }
            }
        }
    }
}
