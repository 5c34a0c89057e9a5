//! Fixed-size batches in which a record is replaced or set to zero: convex bounds that no single pair attains.
//!
//! The other records of a fixed-size batch depend on whether the sensitive one was drawn, so the pair `Σ p_j N(±j)` in
//! circulation is not an upper bound (two concrete data sets beat it). What holds, for α′ ≥ 1 and in both directions, is
//!
//! `h(α′) = Σ_{j≥1} p_j G_{2j}(α)`, `α = 1 + (α′ − 1)/η`, `η = 1 − p_0`,
//!
//! by advanced joint convexity (Balle, Barthe & Gaboardi 2018, Theorem 2) and a coupling of the two batches that differ in
//! exactly j slots, each of which moves the sum by at most 2. Below 1 a profile follows from the reflection
//! `H_{α′}(P‖Q) = 1 − α′ + α′ H_{1/α′}(Q‖P)`.

use crate::error::{Error, Result};
use crate::pair::mixture::MixturePair;
use crate::pair::weights::{binomial, hypergeometric, Weights};
use crate::pair::{Profile, ProfilePoint};
use crate::special::{scaled_upper_tail, upper_tail, Approximation, UNIT_ROUNDOFF};

/// A bound on H_{e^ε}, for ε ≥ 0 only.
#[derive(Debug, Clone, PartialEq)]
enum Half {
    /// `Σ_{j≥1} p_j G_{2j}(1 + (α′−1)/η)`.
    JointConvexity {
        /// (p_j, 2j/σ) for j ≥ 1.
        terms: Vec<(f64, f64)>,
        eta: f64,
        weight_error: f64,
    },
    Pair(MixturePair),
}

impl Half {
    fn joint_convexity(weights: &Weights, noise_multiplier: f64) -> Self {
        let terms: Vec<(f64, f64)> = weights
            .count
            .iter()
            .zip(&weights.log_probability)
            .filter(|(&j, _)| j > 0)
            .map(|(&j, l)| (l.exp(), 2.0 * f64::from(j) / noise_multiplier))
            .collect();
        let eta = terms.iter().map(|t| t.0).sum::<f64>().min(1.0);
        #[allow(clippy::cast_precision_loss)] // a count of terms
        let summation = UNIT_ROUNDOFF * (terms.len() as f64 + 4.0);
        Self::JointConvexity { terms, eta, weight_error: 2.0 * weights.relative_error + summation }
    }

    /// Value and −d/dε at ε ≥ 0.
    fn at(&self, epsilon: f64, bracket: (f64, f64)) -> ProfilePoint {
        match self {
            Self::Pair(pair) => pair.at_within(epsilon, bracket),
            Self::JointConvexity { terms, eta, weight_error } => {
                // ln α without overflow and without cancellation near ε = 0.
                let log_alpha = if epsilon < 1.0 {
                    (epsilon.exp_m1() / eta).ln_1p()
                } else {
                    epsilon - eta.ln() + (-(1.0 - eta) * (-epsilon).exp()).ln_1p()
                };
                // α is used in both terms of every G, so an error in it costs only the slope times that error.
                let log_alpha_error = UNIT_ROUNDOFF * (4.0 + 4.0 * log_alpha + 2.0 * epsilon) + weight_error;
                let (mut above, mut below) = (Approximation::default(), Approximation::default());
                for &(weight, shift) in terms {
                    let center = log_alpha / shift;
                    let x_error = UNIT_ROUNDOFF * (3.0 * center + 2.0 * shift);
                    above += upper_tail(center - 0.5 * shift, x_error).scaled(weight, *weight_error);
                    below += scaled_upper_tail(log_alpha, center + 0.5 * shift, x_error).scaled(weight, *weight_error);
                }
                let delta = above.value - below.value;
                // e^ε/(ηα) = 1/(1 − (1−η)e^{−ε})
                let chain = 1.0 / (eta - (1.0 - eta) * (-epsilon).exp_m1());
                let slope = below.scaled(chain, weight_error + 2.0 * log_alpha_error + 8.0 * UNIT_ROUNDOFF);
                ProfilePoint {
                    delta: delta.max(0.0),
                    delta_error: above.error
                        + below.error
                        + below.value * log_alpha_error
                        + UNIT_ROUNDOFF * delta.abs(),
                    slope: slope.value,
                    slope_error: slope.error,
                    threshold: f64::NAN,
                }
            }
        }
    }
}

/// A profile bounded for ε ≥ 0 directly and for ε < 0 by reflecting the bound on the opposite direction.
///
/// * Guarantee: an upper bound on H_{e^ε} of the mechanism for every ε, convex in α = e^ε; composing it is valid. It is
///   the exact supremum at each α for group size 1, but no single pair attains it at all α: the composition is not tight.
/// * Convexity at α = 1, where the halves meet: for h the left slope `h + |h′| − 1` is at most the right one `−|h′|` because
///   `Σ(p_j/η)q_j ≤ ½`; for the zero-out pairs because `(1−q)(Φ(−1/2σ) + Φ(−3/2σ) − 1) ≤ 0`.
#[derive(Debug, Clone, PartialEq)]
pub struct Substitution {
    forward: Half,
    backward: Half,
}

impl Substitution {
    /// `group_size` of `dataset_size` records replaced, batches of `batch_size` drawn without replacement: h on both
    /// sides. Valid for replace-one and zero-out; both directions are this same profile.
    ///
    /// # Errors
    /// [`Error::Domain`].
    pub fn replaced(group_size: u32, dataset_size: u64, batch_size: u64, noise_multiplier: f64) -> Result<Self> {
        let weights = checked_hypergeometric(group_size, dataset_size, batch_size, noise_multiplier)?;
        let half = Half::joint_convexity(&weights, noise_multiplier);
        Ok(Self { forward: half.clone(), backward: half })
    }

    /// One record set to zero, q = B/N. *Remove* for ε ≥ 0: `(1−q)N(0)+qN(2)` against `(1−q)N(0)+qN(1)` (every other
    /// record opposes the sensitive one); *add* for ε ≥ 0: `(1−q)N(0)+qN(1)` against `N(0)`. Returns (remove, add).
    ///
    /// # Errors
    /// [`Error::Domain`].
    pub fn zeroed(dataset_size: u64, batch_size: u64, noise_multiplier: f64) -> Result<(Self, Self)> {
        checked_hypergeometric(1, dataset_size, batch_size, noise_multiplier)?;
        #[allow(clippy::cast_precision_loss)] // both are exact: below 2^53
        let probability = batch_size as f64 / dataset_size as f64;
        // A record that is in every batch opposes and aligns alike: both pairs need a law with two outcomes.
        binomial(1, probability)?;
        let opposed = Half::Pair(MixturePair::opposed_zero_out(probability, noise_multiplier)?);
        let aligned = Half::Pair(MixturePair::poisson(1, probability, noise_multiplier, false)?);
        Ok((Self { forward: opposed.clone(), backward: aligned.clone() }, Self { forward: aligned, backward: opposed }))
    }
}

fn checked_hypergeometric(group: u32, dataset: u64, batch: u64, noise_multiplier: f64) -> Result<Weights> {
    if !(noise_multiplier > 0.0 && noise_multiplier.is_finite()) {
        return Err(Error::Domain {
            name: "noise_multiplier",
            value: noise_multiplier,
            allowed: "a positive finite number",
        });
    }
    let others = dataset.checked_sub(u64::from(group)).ok_or(Error::Domain {
        name: "group_size",
        value: f64::from(group),
        allowed: "at most the dataset size",
    })?;
    hypergeometric(group, others, batch)
}

impl Profile for Substitution {
    fn at_within(&self, epsilon: f64, bracket: (f64, f64)) -> ProfilePoint {
        if epsilon >= 0.0 {
            return self.forward.at(epsilon, bracket);
        }
        let mirrored = self.backward.at(-epsilon, (f64::NEG_INFINITY, f64::INFINITY));
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
}
