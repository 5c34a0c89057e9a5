//! Where samples are drawn from, and the proven bound on what one sample can contribute.
//!
//! Write R = N(0, I) for the reference (everything is in units of σ), P = Σ_x w_x N(Cx, I) and r_x(y) = dN(Cx,
//! I)/dR(y), so that f = dP/dR = Σ_x w_x r_x. Samples come from a *proposal* M = Σ_x v_x N(κCx, I), another mixture of
//! the same family: participation patterns x from a law v, means stretched by κ. Its density g = dM/dR is computed by
//! the same recursion as f, so the weight of a sample is exact: the patterns are summed out, never conditioned on. Each
//! sample yields
//!
//! * remove (P against R): `V = (f − e^ε)_+ / g`, drawn with κ = μ ≥ 1;
//! * add (R against P): `V = (1 − e^ε f)_+ / g`, drawn with κ = −τ ≤ 0;
//! * replacement (P against its mirror image, f⁻(y) = f(−y)): `V = (f − e^ε f⁻)_+ / g`, drawn with κ = μ ≥ 1,
//!
//! whose mean under M is δ(ε) in that direction, exactly. With v = w and κ = 1 (or 0 for add) this is plain sampling
//! and V ∈ [0, 1].
//!
//! **V is bounded.** Let S_x = ‖Cx‖² and r_x^κ e^{−κ(κ−1)S_x/2} = dN(κCx)/dR, so g = Σ_x v_x e^{−κ(κ−1)S_x/2} r_x^κ.
//!
//! *Remove*, κ = μ > 1. By Hölder's inequality with exponents μ and μ/(μ−1),
//! f = Σ (v_x e^{−μ(μ−1)S_x/2} r_x^μ)^{1/μ} · w_x (v_x e^{−μ(μ−1)S_x/2})^{−1/μ} ≤ g^{1/μ} T^{(μ−1)/μ}, where
//! T = Σ_x w_x^{μ/(μ−1)} v_x^{−1/(μ−1)} e^{μS_x/2}. Hence 1/g ≤ T^{μ−1} f^{−μ}, and with e^ε/f = u ∈ (0, 1):
//! V ≤ T^{μ−1} e^{−(μ−1)ε} u^{μ−1}(1 − u) ≤ **T^{μ−1} e^{−(μ−1)ε} (μ−1)^{μ−1}/μ^μ**.
//!
//! *Add*, κ = −τ < 0. By Hölder, A = Σ_x w_x^{τ/(1+τ)} v_x^{1/(1+τ)} e^{−τS_x/2} = Σ (w_x r_x)^{τ/(1+τ)} (v_x
//! e^{−τ(1+τ)S_x/2} r_x^{−τ})^{1/(1+τ)} ≤ f^{τ/(1+τ)} g^{1/(1+τ)}. Hence 1/g ≤ A^{−(1+τ)} f^τ, and with e^ε f = u: V ≤
//! **A^{−(1+τ)} e^{−τε} τ^τ/(1+τ)^{1+τ}**.
//!
//! *Replacement*. By Cauchy–Schwarz f(y) f(−y) ≥ ζ², ζ = Σ_x w_x e^{−S_x/2}, since r_x(y) r_x(−y) = e^{−S_x}. With 1/g
//! ≤ T^{μ−1} f^{−μ} and e^ε ζ²/f² = u, h = (μ−1)/2: V ≤ T^{μ−1} f^{1−μ}(1 − u) = T^{μ−1} (e^{ε/2}ζ)^{−2h} u^h (1 − u) ≤
//! **T^{μ−1} (e^{ε/2}ζ)^{−2h} h^h/(1+h)^{1+h}**.
//!
//! The bounds hold for any law v, so a proposal chosen from earlier samples is as good as any other; a poor one only makes the
//! bound useless. S_x is additive over participations because the sampler keeps them at least `bands` apart (or, for bins,
//! because a pattern is a bin), so T, A and ζ are [`PatternSum`]s.

use crate::participation::PatternSum;

/// Which of the two hockey sticks, and what the other distribution is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Comparison {
    /// P against R: samples from the mixture.
    Remove,
    /// R against P.
    Add,
    /// P against its mirror image; both directions are this one.
    Replace,
}

impl Comparison {
    /// The stretch κ of plain sampling.
    #[must_use]
    pub fn plain_stretch(self) -> f64 {
        if self == Self::Add {
            0.0
        } else {
            1.0
        }
    }
}

/// Proven caps for samples from a proposal at one ε.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Caps {
    /// V is at most this.
    pub value: f64,
    /// Where V > 0, its leading factor (f/g, or 1/g for add) is at most this.
    pub factor: f64,
}

impl Caps {
    /// Nothing is proven.
    pub const NONE: Self = Self { value: f64::INFINITY, factor: f64::INFINITY };
    /// Of plain samples: V is the positive part of 1 less something.
    pub const PLAIN: Self = Self { value: 1.0, factor: 1.0 };
}

/// The sums are evaluated in logarithms with an error of about n·u·|ln T|, far below this; the caps are moved up by it, relatively.
const SLACK: f64 = 1e-7;

/// The caps for sampling from the proposal (`law`, `stretch`) at this ε; see the head of this file for formula and proof.
///
/// Infinite where the proposal gives none: stretches between plain sampling's and the other side's, or a plain stretch
/// with another law.
#[must_use]
pub fn caps<S: PatternSum + PartialEq>(own: &S, law: &S, stretch: f64, comparison: Comparison, epsilon: f64) -> Caps {
    let unbounded = Caps::NONE;
    #[allow(clippy::float_cmp)] // the plain stretch is given as that very number
    let plain = stretch == comparison.plain_stretch();
    if plain {
        return if own == law || comparison == Comparison::Add { Caps::PLAIN } else { unbounded };
    }
    let power = |x: f64| if x > 0.0 { x * x.ln() } else { 0.0 };
    let (factor, shape) = match comparison {
        Comparison::Add => {
            let tau = -stretch;
            if tau < 0.0 {
                return unbounded;
            }
            let sum = own.log_sum(law, tau / (1.0 + tau), -0.5 * tau);
            (-(1.0 + tau) * sum - tau * epsilon, power(tau) - power(1.0 + tau))
        }
        Comparison::Remove | Comparison::Replace => {
            let excess = stretch - 1.0;
            if excess < 0.0 {
                return unbounded;
            }
            let sum = own.log_sum(law, stretch / excess, 0.5 * stretch);
            if comparison == Comparison::Remove {
                (excess * (sum - epsilon), power(excess) - power(stretch))
            } else {
                let half = 0.5 * excess;
                let overlap = own.log_sum(own, 1.0, -0.5);
                (excess * (sum - 0.5 * epsilon - overlap), power(half) - power(1.0 + half))
            }
        }
    };
    // A sum that is not finite bounds nothing: the proposal leaves out patterns that the law has.
    if !factor.is_finite() {
        return unbounded;
    }
    // Never 0: a cap that underflows is still one that something may reach.
    let above = |log: f64| (log.exp() * (1.0 + SLACK)).max(f64::MIN_POSITIVE);
    Caps { value: above(factor + shape), factor: above(factor) }
}
