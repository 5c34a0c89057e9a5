//! The proposal that samples are drawn from, and the proven bound on the contribution of one sample.
//!
//! Write R = N(0, I) for the reference (everything is in units of σ), P = Σ_x w_x N(Cx, I) and r_x(y) = dN(Cx,
//! I)/dR(y), so that f = dP/dR = Σ_x w_x r_x. Samples come from a *proposal* M = Σ_x v_x N(κCx, I), another mixture of
//! the same family: participation patterns x from a law v, means scaled by κ. Its density g = dM/dR is computed by the
//! same recursion as f, so the weight of a sample is exact: the patterns are summed out, never conditioned on. The
//! value of a sample is
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
//! *With a composed profile* (see [`crate::montecarlo::value`]) V is (f/g)·D°(x), x = ε − ln f; (1/g)·D°(x), x = ε + ln
//! f; (f/g)·D°(x), x = ε − ln f/f⁻, where D° replaces (1 − e^x)₊. The same inequalities, f = e^{ε − x} for remove, f =
//! e^{x − ε} for add and f ≥ ζe^{(ε − x)/2} for replacement, give V ≤ prefix·sup_x e^{cx} D°(x) with the prefixes
//! T^{μ−1}e^{−(μ−1)ε}, A^{−(1+τ)}e^{−τε} and T^{μ−1}(e^{ε/2}ζ)^{−2h} and c = μ − 1, τ, h. (For D = (1 − e^x)₊ the
//! supremum is c^c/(1+c)^{1+c}: the bounds above.) It is finite because D° ends at the last node; beyond it D is at
//! most a constant, its tail mass, and since E_M f/g = 1 (add: E_M 1/g = 1) that is added to the mean whatever is
//! drawn.
//!
//! *Several mechanisms* with independent streams have f = Πf_k, g = Πg_k, f⁻ = Πf⁻_k. Each factor obeys its own
//! inequality, and with one κ for all of them so do the products, with T = ΠT_k, A = ΠA_k, ζ = Πζ_k.
//!
//! The bounds hold for any law v, so a proposal may be chosen from earlier samples; a poor one only makes the bound
//! useless. S_x is additive over participations because the sampler keeps them at least `bands` apart (or, for bins,
//! because a pattern is a bin), so T, A and ζ are [`PatternSum`]s. Where participations meet
//! ([`crate::montecarlo::kernels::automaton`]) they are sums over paths, with all inner products in S_x; Hölder's
//! inequality holds for paths as it does for patterns.

use crate::montecarlo::value::Curve;
use crate::participation::PatternSum;
use crate::special::{Approximation, UNIT_ROUNDOFF};

/// The direction of the hockey stick: one of the two directions of a pair, or replacement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// P against R: samples from the mixture.
    Remove,
    /// R against P.
    Add,
    /// P against its mirror image; removing and adding give the same.
    Replace,
}

impl Direction {
    /// Returns the mean scale κ of plain sampling.
    pub fn plain_mean_scale(self) -> f64 {
        if self == Self::Add {
            0.0
        } else {
            1.0
        }
    }
}

/// Proven bounds on the weight for samples from a proposal at one ε.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct WeightBounds {
    /// An upper bound on V.
    pub value: f64,
    /// An upper bound on the leading factor of V (f/g, or 1/g for add) where V > 0. With a composed profile, an upper
    /// bound on the sum of the two terms that contain the factor, with V's own value and slope: sup factor·D° + sup
    /// factor·|dD°/dx|.
    pub factor: f64,
}

impl WeightBounds {
    /// The bounds where nothing is known.
    pub const NONE: Self = Self { value: f64::INFINITY, factor: f64::INFINITY };
}

/// The sums over patterns in Hölder's bounds for a proposal: of one mechanism, or of several.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum HolderSums {
    /// Plain sampling: the weight is 1.
    Plain,
    /// No bound: a mean scale between plain sampling's and the other side's, or the plain one with another law.
    Nothing,
    /// ln T or ln A, and ln ζ where it is needed.
    Known {
        /// ln T (remove, replacement) or ln A (add).
        sum: Approximation,
        /// ln ζ (replacement), else 0.
        overlap: Approximation,
    },
}

impl HolderSums {
    /// Returns the sums of one mechanism.
    pub fn of<S: PatternSum + PartialEq>(own: &S, law: &S, mean_scale: f64, direction: Direction) -> Self {
        let sums = |power, exponent| own.log_sum(law, power, exponent);
        Self::from_patterns(own == law, mean_scale, direction, sums, || own.log_sum(own, 1.0, -0.5))
    }

    /// Returns the sums by way of the sums over patterns: `sums(power, exponent)` is ln T or ln A, `overlap` ln ζ;
    /// `same` states whether the law of the patterns is the sampler's own.
    pub fn from_patterns(
        same: bool,
        mean_scale: f64,
        direction: Direction,
        sums: impl Fn(f64, f64) -> Approximation,
        overlap: impl Fn() -> Approximation,
    ) -> Self {
        #[allow(clippy::float_cmp)] // the plain mean scale is given as that very number
        let plain = mean_scale == direction.plain_mean_scale();
        if plain {
            return if same || direction == Direction::Add { Self::Plain } else { Self::Nothing };
        }
        if direction == Direction::Add {
            let tau = -mean_scale;
            if tau < 0.0 {
                return Self::Nothing;
            }
            return Self::Known { sum: sums(tau / (1.0 + tau), -0.5 * tau), overlap: Approximation::default() };
        }
        let excess = mean_scale - 1.0;
        if excess < 0.0 {
            return Self::Nothing;
        }
        let overlap = if direction == Direction::Replace { overlap() } else { Approximation::default() };
        Self::Known { sum: sums(mean_scale / excess, 0.5 * mean_scale), overlap }
    }

    /// Returns the sums where only plain samples are known to be bounded, by 1.
    pub fn of_plain(same: bool, mean_scale: f64, direction: Direction) -> Self {
        #[allow(clippy::float_cmp)] // the plain mean scale is given as that very number
        let plain = mean_scale == direction.plain_mean_scale();
        if same && plain {
            Self::Plain
        } else {
            Self::Nothing
        }
    }

    /// Returns the sums of several mechanisms, each with its number of runs, with the same mean scale for all.
    pub fn together(parts: impl IntoIterator<Item = (Self, u32)>) -> Self {
        let mut all: Option<Self> = None;
        for (part, runs) in parts {
            let times = |one: Approximation| one.scaled(f64::from(runs), 0.0);
            all = Some(match (part, all) {
                (Self::Plain, None | Some(Self::Plain)) => Self::Plain,
                (Self::Known { sum, overlap }, None) => Self::Known { sum: times(sum), overlap: times(overlap) },
                (Self::Known { sum, overlap }, Some(Self::Known { sum: mut rest, overlap: mut other })) => {
                    rest += times(sum);
                    other += times(overlap);
                    Self::Known { sum: rest, overlap: other }
                }
                _ => Self::Nothing,
            });
        }
        all.unwrap_or(Self::Nothing)
    }
}

/// Returns the weight bounds for sampling with this mean scale at this ε, and with the composed profile `curve`; see
/// the head of this file for formula and proof.
///
/// They are infinite where the proposal gives no bound. Each bound is raised by the errors of the sums, multiplied as
/// the sums are, and by a few roundings of the terms of its logarithm.
pub fn weight_bounds(
    sums: HolderSums,
    mean_scale: f64,
    direction: Direction,
    epsilon: f64,
    curve: Option<&Curve>,
) -> WeightBounds {
    let (sum, overlap) = match sums {
        // The tables' slopes are at most 1 up to rounding and the width of their bounds.
        HolderSums::Plain => {
            return WeightBounds {
                value: 1.0,
                factor: curve.map_or(1.0, |curve| curve.log_steepness(0.0).exp().max(1.0)),
            }
        }
        HolderSums::Nothing => return WeightBounds::NONE,
        HolderSums::Known { sum, overlap } => (sum, overlap),
    };
    // This is x ln x, where x may have an error of 2u: its derivative is ln x + 1.
    let power = |x: f64| {
        let value = if x > 0.0 { x * x.ln() } else { 0.0 };
        Approximation { value, error: UNIT_ROUNDOFF * (6.0 * value.abs() + 2.0 * x) }
    };
    // The rounding is u for each of the factors, of the products and of their sum.
    let term = |factor: f64, one: Approximation| one.scaled(factor, 4.0 * UNIT_ROUNDOFF);
    let given = Approximation { value: epsilon, error: 0.0 };
    let (terms, shape, slope) = match direction {
        Direction::Add => {
            let tau = -mean_scale;
            ([term(-(1.0 + tau), sum), term(-tau, given), overlap], [power(tau), power(1.0 + tau)], tau)
        }
        Direction::Remove => {
            let excess = mean_scale - 1.0;
            ([term(excess, sum), term(-excess, given), overlap], [power(excess), power(mean_scale)], excess)
        }
        Direction::Replace => {
            let (excess, half) = (mean_scale - 1.0, 0.5 * (mean_scale - 1.0));
            ([term(excess, sum), term(-half, given), term(-excess, overlap)], [power(half), power(1.0 + half)], half)
        }
    };
    let mut prefix = Approximation::default();
    for one in terms {
        prefix += one;
    }
    // A sum that is not finite gives no bound: the proposal leaves out patterns that the law has.
    if !(prefix.value + prefix.error).is_finite() {
        return WeightBounds::NONE;
    }
    // This is e^{prefix + log}, with another rounding of the exponent. It must not be 0: if the bound underflows, V may
    // still be positive.
    let above = |log: f64| {
        let exponent = prefix.value + log;
        let error = prefix.error + 4.0 * UNIT_ROUNDOFF * (prefix.value.abs() + log.abs() + 2.0);
        (exponent + error).exp().max(f64::MIN_POSITIVE)
    };
    match curve {
        None => {
            let peak = shape[0].value - shape[1].value;
            WeightBounds { value: above(peak + shape[0].error + shape[1].error), factor: above(0.0) }
        }
        Some(curve) => {
            let value = above(curve.log_peak(slope));
            WeightBounds { value, factor: value + above(curve.log_steepness(slope)) }
        }
    }
}
