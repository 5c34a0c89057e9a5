//! Amplification: what one draw by a sampler does to a mechanism that is (ε, δ_j)-private for groups of j.
//!
//! Advanced joint convexity with the coupling of [`super::substitution`] needs no Gaussian: for any mechanism with
//! H_{e^ε} ≤ δ_j between multisets that differ in j places, the sampled one is (ε′, δ′)-private with
//! `ε′ = ln(1 + η(e^ε − 1))`, `δ′ = Σ_{j≥1} p_j δ_j(ε)` (Balle, Barthe & Gaboardi 2018, Theorems 8 to 10; the two-stage
//! samplers in arXiv:2312.13389, Theorem 5).

use crate::error::{domain, Result};
use crate::laws::Weights;
use crate::pair::gaussian::GaussianPair;
use crate::pair::laplace::Laplace;
use crate::pair::Profile;
use crate::special::{real, UNIT_ROUNDOFF};

/// A base mechanism, described by its δ for groups of each size.
#[derive(Debug, Clone, PartialEq)]
pub enum Base {
    /// Laplace noise of this scale, relative to the sensitivity to one substitution.
    Laplace(f64),
    /// Gaussian noise of this standard deviation, relative to the sensitivity to one substitution.
    Gaussian(f64),
    /// δ_1, δ_2, … at the ε asked for; δ of larger groups is taken as 1.
    Stated(Vec<f64>),
}

/// The guarantee of the sampled mechanism; all fields are upper bounds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Amplified {
    /// δ_1(ε) of the base mechanism.
    pub base_delta: f64,
    /// η = 1 − p_0: the probability that the record is drawn at all.
    pub eta: f64,
    /// ε′.
    pub epsilon: f64,
    /// δ′.
    pub delta: f64,
}

impl Base {
    /// Returns an upper bound on δ_j(ε), exact to rounding.
    fn delta(&self, group: u32, epsilon: f64) -> Result<f64> {
        let point = match self {
            Self::Laplace(scale) => Laplace::new(f64::from(group), *scale)?.at(epsilon),
            Self::Gaussian(sigma) => GaussianPair::new(f64::from(group), *sigma)?.at(epsilon),
            Self::Stated(deltas) => return Ok(deltas.get(group as usize - 1).copied().unwrap_or(1.0)),
        };
        let point = point.or_trivial(epsilon);
        Ok((point.delta + point.delta_error).min(1.0))
    }
}

/// Returns the guarantee that the sampled mechanism has if the base mechanism has its guarantee at ε ≥ 0; `weights` is
/// the law of the number of draws.
///
/// # Errors
/// [`Error::Domain`] for an ε that is negative or not finite, a stated δ outside [0, 1], and noise that is not
/// positive.
pub fn amplified(weights: &Weights, base: &Base, epsilon: f64) -> Result<Amplified> {
    if !(epsilon >= 0.0 && epsilon.is_finite()) {
        return domain("epsilon", epsilon, "at least 0 and finite");
    }
    if let Base::Stated(deltas) = base {
        if let Some(&wrong) = deltas.iter().find(|d| !(0.0..=1.0).contains(*d)) {
            return domain("delta", wrong, "between 0 and 1");
        }
    }
    weights.whole()?;
    let (mut eta, mut delta) = (0.0, 0.0);
    for (&count, log) in weights.count.iter().zip(&weights.log_probability) {
        if count > 0 {
            let probability = log.exp();
            eta += probability;
            delta += probability * base.delta(count, epsilon)?;
        }
    }
    // The error of each probability, and of the sums of as many terms.
    let relative = 1.0 + 2.0 * weights.relative_error + UNIT_ROUNDOFF * (real(weights.count.len()) + 8.0);
    let eta = (eta * relative).min(1.0);
    // Exponentials and logarithms are off by 2u of their size, all else by u. Below 1: the argument of ln_1p by 3u,
    // which moves it by no more, as x/(1 + x) ≤ ln(1 + x); so ε′ is off by 5u. From 1 on: the argument of ln is a sum
    // of non-negative terms, off by 5u, and the logarithm lies between −ε and 0; so ε′ is off by u(5 + 2ε), and by
    // another 2ε u for the sum.
    let amplified = if epsilon < 1.0 {
        (eta * epsilon.exp_m1()).ln_1p()
    } else {
        // ln(e^ε(η + (1 − η)e^{−ε}))
        epsilon + (eta + (1.0 - eta) * (-epsilon).exp()).ln()
    };
    let rounding = UNIT_ROUNDOFF * (4.0 + 8.0 * epsilon);
    Ok(Amplified {
        base_delta: base.delta(1, epsilon)?,
        eta,
        epsilon: if epsilon < 1.0 { amplified * (1.0 + 8.0 * UNIT_ROUNDOFF) } else { amplified + rounding }
            .min(epsilon),
        delta: (delta * relative).min(1.0),
    })
}
