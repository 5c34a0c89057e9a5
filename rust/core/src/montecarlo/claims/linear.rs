//! Bounds on δ_add, and on the second moment of its samples, without any sample: ln f is nearly linear where the record
//! is added.
//!
//! f = dP/dR = Σ_x w_x e^{⟨Ĉx,y⟩ − ‖Ĉx‖²/2}, R = N(0, I). Samples of δ_add(ε) = E_R (1 − e^ε f)₊ come from M = N(−d,
//! I), d = θg, and are V = (1 − e^ε f)₊·dR/dM, dR/dM = e^{⟨d,y⟩ + ‖d‖²/2}. V has no bound; its second moment has one.
//!
//! **Log-Sobolev.** ln f is convex, so for λ ≥ 0 and any u the law ν ∝ e^{−F} R, F = λ ln f − ⟨u, y⟩, is more
//! log-concave than R and satisfies the logarithmic Sobolev inequality with constant 1 (Bakry & Émery 1985): KL(S‖ν) ≤
//! ½E_S‖∇ ln dS/dν‖². With S = M, for which ∇ ln dS/dR = −d and KL(S‖R) = ½‖d‖², and KL(S‖ν) = KL(S‖R) + E_S F + ln E_R
//! e^{−F},
//!
//! `ln E_R e^{−F} ≤ −E_S F − ½‖d‖² + ½E_S‖∇F − d‖²`.
//!
//! * u = d, λ = 2θ: E_S F = λE_S ln f + ‖d‖² and ∇F − d = λ(∇ln f − g). Since (1 − x)₊² ≤ k_λ x^{−λ}, k_λ =
//!   (2/(λ+2))²(λ/(λ+2))^λ, `E_M V² = E_R (1 − e^ε f)₊² dR/dM ≤ k_λ exp(−λε − ‖d‖² − λE_S ln f + ½λ²E_S‖∇ ln f − g‖²)`.
//! * u = 0, λ = θ: (1 − x)₊ ≤ x^{−λ}λ^λ/(1+λ)^{1+λ} gives
//!   `δ_add(ε) ≤ λ^λ/(1+λ)^{1+λ}·exp(−λε − ½‖d‖² − λE_S ln f + ½λ²E_S‖∇ ln f − g‖²)`.
//!
//! **Interpolation.** Let ŵ ∝ w e^{−(θ+1)⟨Ĉx,g⟩} with sum Ẑ, ξ = Ĉx − g, and h_t(z) = Σ ŵ_x e^{√t⟨ξ,z⟩ − t‖ξ‖²/2}. At y
//! = z − d, ln f = ½‖g‖² + ⟨g, z⟩ + ln Ẑ + ln h_1(z). Write ν_t for the mean over z ~ N(0, I) of the mean over
//! independent *replicas* of ŵ weighted by h_t, and R_{rs} = ⟨ξ^r, ξ^s⟩. Then E_S‖∇ ln f − g‖² = ν_1(R₁₂), (E ln h_t)′
//! = −½ν_t(R₁₂), and by integration by parts ν_t(φ(R₁₂))′ = ν_t(φ(R₁₂)(R₁₂ − 2R₁₃ − 2R₂₃ + 3R₃₄)) (Guerra; Talagrand
//! 2011, Lemma 1.3.7 in the case without a mean).
//!
//! * ν(R₁₂R₁₃) ≥ ν(R₁₂R₃₄) by Jensen's inequality and both are at least 0: ν_t(R₁₂)′ ≤ ν_t(R₁₂²).
//! * |R₁₂|, |R₁₃|, |R₂₃| and |R₃₄| have the same law, and φ(a)b with an increasing φ has the largest mean where both
//!   rise together: for φ_t = R²e^{8(τ−t)|R|} the terms add up to at most 8ν_t(φ|R₁₂|), so that ν_t(φ_t) decreases:
//!   ν_τ(R₁₂²) ≤ ν_0(R₁₂²e^{8τ|R₁₂|}).
//!
//! Integrated, with e₀ = ν_0(R₁₂) = ‖E_ŵ ξ‖² and the mean of two independent patterns of ŵ,
//!
//! `E_S‖∇ ln f − g‖² ≤ Γ = e₀ + E |R₁₂|(e^{8|R₁₂|} − 1)/8`,
//! `E_S ln f ≥ ½‖g‖² + ln Ẑ − ½e₀ − ½E[(e^{8|R₁₂|} − 1)/64 − |R₁₂|/8]`.
//!
//! **Computed.** Here g = a·m̄, m̄ the direction of [`crate::montecarlo::tilt`] exactly as it is stored, and
//! d = −(tilt)·m̄: samples are of R tilted. The functions of |R₁₂| are at most C(2/κ²)(cosh κR₁₂ − 1), κ > 8, with C
//! enclosed by [`constants`]; E e^{±κR₁₂} is a sum over pairs of patterns, by a recursion over both ages, since R₁₂ =
//! ⟨Ĉx, Ĉx′⟩ − ⟨Ĉx, g⟩ − ⟨Ĉx′, g⟩ + ‖g‖².

use std::sync::OnceLock;

use crate::montecarlo::family::Family;
use crate::montecarlo::kernels::renewal::RenewalKernel;
use crate::montecarlo::tilt::TiltBase;
use crate::replicas::overlaps::Overlaps;
use crate::special::{real, UNIT_ROUNDOFF};

/// The values of κ that are tried.
const RATES: [f64; 3] = [12.0, 16.0, 24.0];
/// The largest number of pairs of ages, in all rounds together, for one bound: some hundredths of a second.
const MOST_PAIRS: f64 = 4e6;
/// The number of steps towards the a with E_ŵ Ĉx near a·m̄; any a is valid.
const STEPS: usize = 8;

/// Upper bounds for a tilt of R at one ε: both are logarithms, and infinite where no finite bound is known.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AddedBounds {
    /// ln E_M V².
    pub log_square: f64,
    /// ln δ_add(ε).
    pub log_delta: f64,
}

/// Returns the bounds for samples of R tilted by `tilt` < 0, where a record is added, for each ε; see the head of this
/// file.
///
/// * Guarantee: upper bounds; infinite where ln f is not nearly linear, for mechanisms that
///   [`crate::montecarlo::family::Mechanism::of_single_records`] does not return, and beyond [`MOST_PAIRS`] = nb².
/// * Cost: some 50nb² operations, and very few for each ε.
pub fn added_bounds(kernel: &RenewalKernel, tilt: f64, epsilons: &[f64]) -> Vec<AddedBounds> {
    let none = vec![AddedBounds { log_square: f64::INFINITY, log_delta: f64::INFINITY }; epsilons.len()];
    let size = -tilt;
    let work = real(kernel.law().iterations()) * real(kernel.law().min_separation).powi(2);
    let single = kernel.law().records() == 1 && !kernel.law().phased;
    if !(size > 0.0 && size.is_finite() && single && work <= MOST_PAIRS) {
        return none;
    }
    let Ok(overlaps) = Overlaps::toeplitz(&kernel.coefficients) else { return none };
    let base = kernel.tilt_base().unwrap_or_default();
    let Some(linear) = Linear::new(kernel, &base, &overlaps, size) else { return none };
    epsilons.iter().map(|&epsilon| linear.bounds(&base, size, epsilon)).collect()
}

/// The values of a, Γ and the lower bound on E_S ln f.
struct Linear {
    scale: f64,
    variance: f64,
    log_mean: f64,
}

impl Linear {
    /// Returns both bounds at one ε.
    fn bounds(&self, base: &TiltBase, size: f64, epsilon: f64) -> AddedBounds {
        let (scale, square) = (self.scale, base.square);
        let theta = size / scale;
        // Each term includes its error; ‖d‖² = size²‖m̄‖² is rounded by a few u in addition to the sum of n squares.
        let squares = (real(base.mean.len()) + 8.0) * UNIT_ROUNDOFF;
        let total = |terms: &[f64]| {
            let sizes: f64 = terms.iter().map(|term| term.abs()).sum();
            terms.iter().sum::<f64>() + 32.0 * UNIT_ROUNDOFF * (1.0 + sizes)
        };
        let distance = size * size * square * (1.0 - 2.0 * squares);
        let power = |x: f64, exponent: f64| if exponent > 0.0 { exponent * libm::log(x) } else { 0.0 };
        let lambda = 2.0 * theta;
        let log_square = total(&[
            power(2.0 / (lambda + 2.0), 2.0),
            -lambda * libm::log1p(2.0 / lambda),
            -lambda * epsilon,
            -distance,
            -lambda * self.log_mean,
            0.5 * lambda * lambda * self.variance,
        ]);
        let log_delta = total(&[
            power(theta, theta),
            -power(1.0 + theta, 1.0 + theta),
            -theta * epsilon,
            -0.5 * distance,
            -theta * self.log_mean,
            0.5 * theta * theta * self.variance,
        ]);
        let bound = |log: f64| if log.is_nan() { f64::INFINITY } else { log };
        AddedBounds { log_square: bound(log_square), log_delta: bound(log_delta) }
    }

    fn new(kernel: &RenewalKernel, base: &TiltBase, overlaps: &Overlaps, size: f64) -> Option<Self> {
        let law = kernel.law();
        let (n, most, bands) =
            (real(law.iterations()), real(law.most_participations()), real(kernel.coefficients.len()));
        let largest = |numbers: &[f64]| numbers.iter().copied().fold(0.0, f64::max);
        // This finds the a at which the patterns' mean is as long as a·m̄.
        let mut scale = 1.0;
        for _ in 0..STEPS {
            let inner: f64 = base
                .tilted_mean(law, -(size + scale), &kernel.coefficients)
                .0
                .iter()
                .zip(&base.mean)
                .map(|(x, y)| x * y)
                .sum();
            scale = inner / base.square;
        }
        if !(scale > 0.0 && scale.is_finite()) {
            return None;
        }
        let (mean, log_sum, relative) = base.tilted_mean(law, -(size + scale), &kernel.coefficients);
        // `apart` is the distance of the computed vectors, and `entry` bounds the error of each of their entries.
        let apart: f64 = mean.iter().zip(&base.mean).map(|(x, y)| (x - scale * y).powi(2)).sum::<f64>().sqrt();
        let entry = largest(&kernel.coefficients) * (relative + 8.0 * n * UNIT_ROUNDOFF)
            + 4.0 * UNIT_ROUNDOFF * largest(&base.mean);
        let offset = (apart * (1.0 + n * UNIT_ROUNDOFF) + n.sqrt() * entry).powi(2) * (1.0 + 1e-12);
        let length = scale * scale * base.square;
        let length_error = 2.0 * (n + 8.0) * UNIT_ROUNDOFF * length;
        let mut best: Option<(f64, f64)> = None;
        for (rate, [first, second]) in RATES.into_iter().zip(*constants()) {
            let mut mean = 0.0;
            for sign in [1.0, -1.0] {
                let single = size + scale + sign * rate * scale;
                let exponents: Vec<f64> = base.overlap.iter().map(|h| -single * h).collect();
                let log = pairs(kernel, overlaps, &exponents, sign * rate);
                let own = single.abs() * base.overlap_error
                    + 6.0 * UNIT_ROUNDOFF * largest(&exponents.iter().map(|x| x.abs()).collect::<Vec<_>>());
                let both = rate * overlaps.product(overlaps.bands(), 0) * (4.0 * bands + 16.0) * UNIT_ROUNDOFF;
                let starts = if law.warm { 2.0 * real(law.min_separation).powi(2) } else { 0.0 };
                let rounding = (24.0 * n + starts) * UNIT_ROUNDOFF + 2.0 * most * (own + both) + 2.0 * relative;
                let terms = [log, -2.0 * log_sum, sign * rate * length];
                let sizes: f64 = terms.iter().map(|term| term.abs()).sum();
                let error = rounding + rate * length_error + 16.0 * UNIT_ROUNDOFF * (1.0 + sizes);
                mean += 0.5 * libm::exp(terms.iter().sum::<f64>() + error);
            }
            // This is E cosh κR − 1, from means whose average is at least 1.
            let excess =
                (mean * (1.0 + 8.0 * UNIT_ROUNDOFF) - 1.0) * (2.0 / (rate * rate)) * (1.0 + 8.0 * UNIT_ROUNDOFF);
            let bounds = (first * excess, second * excess);
            if excess.is_finite() && excess >= 0.0 && best.is_none_or(|least| bounds.0 < least.0) {
                best = Some(bounds);
            }
        }
        let (variance, deficit) = best?;
        let terms = [0.5 * length, log_sum, -0.5 * offset, -0.5 * deficit];
        let sizes: f64 = terms.iter().map(|term| term.abs()).sum();
        let log_mean = terms.iter().sum::<f64>() - relative - length_error - 16.0 * UNIT_ROUNDOFF * (1.0 + sizes);
        Some(Self { scale, variance: (offset + variance) * (1.0 + 8.0 * UNIT_ROUNDOFF), log_mean })
    }
}

/// Returns ln Σ w_x w_x′ e^{⟨s, x + x′⟩ + κ⟨Ĉx, Ĉx′⟩} over pairs of patterns, where s are the exponents, by a recursion
/// from the last round to the first over both ages, as in `crate::replicas::chain`. All terms are positive, and each
/// round multiplies by at most 12 roundings; for a warm start b² terms are added. The result is infinite if a number in
/// it is.
fn pairs(kernel: &RenewalKernel, overlaps: &Overlaps, exponents: &[f64], rate: f64) -> f64 {
    let law = kernel.law();
    let (n, b, bands, p) = (law.iterations(), law.min_separation, overlaps.bands(), law.sampling_probability);
    let free = b - 1;
    let stay = |age: usize| if age == free { 1.0 - p } else { 1.0 };
    let older = |age: usize| (age + 1).min(free);
    let (mut values, mut before) = (vec![1.0_f64; b * b], vec![0.0_f64; b * b]);
    let mut exponent = 0_i32;
    let mut near = vec![1.0; b];
    for i in (1..=n).rev() {
        let rows = bands.min(n - i + 1);
        for (age, factor) in near.iter_mut().enumerate().take(free) {
            let shared = age + 1 < bands && age + 1 < i;
            *factor = if shared { libm::exp(rate * overlaps.product(rows, age + 1)) } else { 1.0 };
        }
        let join = p * libm::exp(exponents[i - 1]);
        let both = join * join * libm::exp(rate * overlaps.product(rows, 0));
        let mut largest = 0.0_f64;
        for one in 0..b {
            for other in 0..b {
                let after = |x: usize, y: usize| values[x * b + y];
                let mut sum = stay(one) * stay(other) * after(older(one), older(other));
                if one == free {
                    sum += join * stay(other) * near[other] * after(0, older(other));
                }
                if other == free {
                    sum += join * stay(one) * near[one] * after(older(one), 0);
                }
                if one == free && other == free {
                    sum += both * after(0, 0);
                }
                // Zero times infinity is NaN, which `max` would ignore.
                if !sum.is_finite() {
                    return f64::INFINITY;
                }
                before[one * b + other] = sum;
                largest = largest.max(sum);
            }
        }
        if largest <= 0.0 {
            return f64::INFINITY;
        }
        let power = libm::ilogb(largest);
        let scale = 2.0_f64.powi(-power.clamp(-1000, 1000));
        exponent += power.clamp(-1000, 1000);
        for value in &mut before {
            // The value must not become 0: the increase is far below the rounding of the largest value.
            *value = (*value * scale).max(f64::MIN_POSITIVE);
        }
        std::mem::swap(&mut values, &mut before);
    }
    let sum = if law.warm {
        let total = 1.0 + real(free) * p;
        let start = |age: usize| if age == free { 1.0 / total } else { p / total };
        (0..b * b).map(|state| start(state / b) * start(state % b) * values[state]).sum::<f64>()
    } else {
        values[b * b - 1]
    };
    libm::log(sum) + f64::from(exponent) * std::f64::consts::LN_2
}

/// Returns, for each of [`RATES`], the least known C with |x|(e^{8|x|} − 1)/8 and (e^{8|x|} − 1)/64 − |x|/8 at most
/// C(2/κ²)(cosh κx − 1) for all x.
///
/// All three are increasing in x ≥ 0. Between x₀ and x₁ a quotient is at most that of the numerator at x₁ and the
/// denominator at x₀. Up to the first node the numerators are at most x²e^{8x} and x²e^{8x}/2, by (e^y − 1)/y ≤ e^y and
/// e^y − 1 − y ≤ y²e^y/2, and the denominator is at least x². From the last one on they are at most xe^{8x}/8 and
/// e^{8x}/64 and the denominator is (e^{κx} + e^{−κx} − 2)/κ², so that the quotients fall: e^{−(κ−8)x} times x, which
/// falls for x ≥ 1/(κ−8), times 1/(1 − 2e^{−κx}).
fn constants() -> &'static [[f64; 2]; 3] {
    static FOUND: OnceLock<[[f64; 2]; 3]> = OnceLock::new();
    FOUND.get_or_init(|| {
        const FIRST: f64 = 1e-4;
        const LAST: f64 = 4.0;
        const FACTOR: f64 = 1.0005;
        RATES.map(|rate| {
            // `up` covers the rounding; where the functions are differences of nearly equal numbers, series are used.
            let up = 1.0 + 1e-9;
            let first = |x: f64| 0.125 * x * libm::expm1(8.0 * x);
            let second = |x: f64| {
                let y = 8.0 * x;
                // This is the sum of y^k/k! from k = 2 on: the terms up to the 12th, and a geometric sum that bounds
                // the rest.
                if y < 0.5 {
                    let (mut term, mut sum) = (y, 0.0);
                    for k in 2..=12 {
                        term *= y / f64::from(k);
                        sum += term;
                    }
                    (sum + term) / 64.0
                } else {
                    (libm::expm1(y) - y) / 64.0
                }
            };
            // cosh κx − 1 = 2 sinh²(κx/2).
            let below = |x: f64| 4.0 / (rate * rate) * libm::sinh(0.5 * rate * x).powi(2);
            let mut quotients = [libm::exp(8.0 * FIRST), 0.5 * libm::exp(8.0 * FIRST)];
            let mut x = FIRST;
            while x < LAST {
                let next = x * FACTOR;
                quotients[0] = quotients[0].max(first(next) / below(x));
                quotients[1] = quotients[1].max(second(next) / below(x));
                x = next;
            }
            let tail = (rate * rate) * libm::exp(8.0 * x) / (libm::exp(rate * x) - 2.0);
            [quotients[0].max(tail * x / 8.0) * up, quotients[1].max(tail / 64.0) * up]
        })
    })
}

#[cfg(test)]
mod tests {
    use super::{added_bounds, constants, pairs, RATES};
    use crate::montecarlo::kernels::renewal::RenewalKernel;
    use crate::replicas::enumeration::{mean, patterns};
    use crate::replicas::overlaps::Overlaps;

    #[test]
    fn constants_are_upper_bounds_and_near() {
        for (rate, [first, second]) in RATES.into_iter().zip(*constants()) {
            let mut largest = [0.0_f64; 2];
            for k in 1..200_000 {
                let x = f64::from(k) * 5e-5;
                let below = 4.0 / (rate * rate) * (0.5 * rate * x).sinh().powi(2);
                largest[0] = largest[0].max(0.125 * x * (8.0 * x).exp_m1() / below);
                if x > 0.01 {
                    largest[1] = largest[1].max(((8.0 * x).exp_m1() - 8.0 * x) / 64.0 / below);
                }
            }
            for (bound, seen) in [first, second].into_iter().zip(largest) {
                assert!(seen <= bound && bound <= 1.02 * seen, "{rate}: {seen} {bound}");
            }
        }
    }

    #[test]
    fn what_leaves_the_range_of_numbers_bounds_nothing() {
        // e^{κ‖c‖²} is infinite, and its factor may be 0: no mass may be lost.
        for (coefficients, b, n, p, tilt, epsilon) in [
            (vec![1.913_316_821_462_695_7, 7.541_635_256_629_164], 2, 2, 1.0, -0.351_901_525_219_190_9, 8.237_8),
            (vec![6.650_171_188_751_593, 3.898_366_895_238_788_7], 4, 2, 0.5, -0.022_531_657_643_655_497, 5.0),
            (vec![3.168_550_359_373_993, 13.826_634_798_211_147], 2, 60, 1.0, -102.4, 0.0),
        ] {
            let kernel = RenewalKernel::new(coefficients, n, b, p, true).expect("valid");
            let found = added_bounds(&kernel, tilt, &[epsilon])[0];
            assert!(found.log_square > 100.0 && found.log_delta > 100.0, "{found:?}");
        }
    }

    #[test]
    fn pairs_are_those_of_all_patterns() {
        let exponents: Vec<f64> = (0..7).map(|i| -0.3 + 0.1 * f64::from(i)).collect();
        for (b, coefficients) in [(1, vec![0.9]), (3, vec![0.7, 0.2, 0.5]), (4, vec![0.3, 0.8])] {
            for (p, warm) in [(0.2, true), (0.7, false), (1.0, true)] {
                let kernel = RenewalKernel::new(coefficients.clone(), 7, b, p, warm).expect("valid");
                let overlaps = Overlaps::toeplitz(&coefficients).expect("valid");
                let all: Vec<(Vec<f64>, f64)> = patterns(b, p, warm, 7)
                    .into_iter()
                    .map(|(taken, q)| {
                        let weight = taken.iter().map(|&round| exponents[round]).sum::<f64>().exp();
                        (mean(&coefficients, &taken, 7), q * weight)
                    })
                    .collect();
                for rate in [3.0, -2.0] {
                    let inner = |x: &[f64], y: &[f64]| x.iter().zip(y).map(|(a, b)| a * b).sum::<f64>();
                    let sum: f64 = all
                        .iter()
                        .flat_map(|(x, q)| all.iter().map(move |(y, r)| q * r * (rate * inner(x, y)).exp()))
                        .sum();
                    let found = pairs(&kernel, &overlaps, &exponents, rate);
                    assert!(
                        (found - sum.ln()).abs() < 1e-11 * (1.0 + found.abs()),
                        "{b} {p} {rate}: {found} {}",
                        sum.ln()
                    );
                }
            }
        }
    }
}
