//! Gaussian tails with a stated error.
//!
//! The error function itself is `libm`'s (the FreeBSD msun algorithm, error below one unit in the last place). This
//! room adds the error bounds: how far the returned number can be from the true one, including the rounding of its
//! argument.

/// Unit roundoff of binary64, 2⁻⁵³.
pub const UNIT_ROUNDOFF: f64 = f64::EPSILON / 2.0;

/// The absolute error that allows for underflow. Every δ that is reported to a user is far above it.
pub const UNDERFLOW: f64 = 1e-300;

/// A count that [`real`] converts.
pub trait Count {
    /// Returns it as a double, rounded to the nearest.
    fn real(self) -> f64;
}

macro_rules! counts {
    ($($count:ty),*) => {
        $(impl Count for $count {
            #[inline(always)]
            #[allow(clippy::cast_precision_loss, clippy::inline_always)] // see `real`; also in code for vectors
            fn real(self) -> f64 {
                self as f64
            }
        })*
    };
}

counts!(usize, u64, i64, u128);

/// Returns a count as a double: exactly below 2⁵³, as all counts of things in memory are; a larger one is rounded by u
/// of itself, for which callers that have such counts allow.
#[inline(always)]
#[allow(clippy::inline_always)] // also in code for vectors
pub fn real(count: impl Count) -> f64 {
    count.real()
}

/// A number known to lie within `error` of the exact value.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Approximation {
    /// The computed value.
    pub value: f64,
    /// An upper bound on |computed − exact|.
    pub error: f64,
}

impl std::ops::AddAssign for Approximation {
    fn add_assign(&mut self, other: Self) {
        self.value += other.value;
        // The rounding of this addition is at most u times the running sum; 2u leaves room for its own rounding.
        self.error += other.error + 2.0 * UNIT_ROUNDOFF * self.value.abs();
    }
}

impl Approximation {
    /// Multiplies by a factor known to a relative error of `relative`.
    pub fn scaled(self, factor: f64, relative: f64) -> Self {
        let value = self.value * factor;
        Self {
            value,
            error: (self.error * factor.abs() + value.abs() * (relative + 2.0 * UNIT_ROUNDOFF)) * (1.0 + 1e-9),
        }
    }
}

/// Returns `e^epsilon · Pr[Z > x]` for a standard normal Z.
///
/// * Domain: any finite `epsilon` and `x`; `x_error` bounds how far `x` may be from the exact argument.
/// * Guarantee: the exact value lies within the returned error, provided the product is below 2 (which holds wherever
///   it is the second term of a privacy profile, since it is then a probability).
/// * Precision: relative error about `(10 + 3x² + 2|ε|)·u`, plus the effect of `x_error`.
/// * Source: for x < 30 the definition through erfc; from there the alternating asymptotic series of the Mills ratio,
///   whose error is below the first omitted term, 2·10⁶/x¹⁶ < 5e-18 (Abramowitz & Stegun 7.1.23).
pub fn scaled_upper_tail(epsilon: f64, x: f64, x_error: f64) -> Approximation {
    let positive = x.max(0.0);
    // The logarithmic derivative of the tail is at most x + 1 in absolute value (for x > 0 the hazard rate is below
    // x + 1/x and below x + 0.8; for x <= 0 below 0.8).
    let argument = (positive + 1.0) * x_error;
    // Rounding: the scaling of x by 1/√2 moves erfc's argument by 2u relative, its value by 2u(x² + 1); erfc, the
    // exponential and the product add a few u.
    let relative = UNIT_ROUNDOFF * (10.0 + 3.0 * positive * positive + 2.0 * epsilon.abs()) + 2.0 * argument;
    if x > 1.0 && 0.5 * x * x - epsilon > 760.0 {
        // e^{ε − x²/2} bounds the product: below 10⁻³³⁰.
        return Approximation { value: 0.0, error: UNDERFLOW };
    }
    let value = if x < 30.0 {
        // Below −9 the tail differs from 1 by less than 2·10⁻¹⁹, a fraction of its rounding.
        let tail = if x < -9.0 { 1.0 } else { 0.5 * libm::erfc(x * std::f64::consts::FRAC_1_SQRT_2) };
        // Multiplying by two halves keeps a product in range even if e^ε overflows.
        let half = (0.5 * epsilon).exp();
        half * tail * half
    } else {
        (epsilon - 0.5 * x * x).exp() * mills_series(x)
    };
    Approximation { value, error: value * relative.exp_m1() + UNDERFLOW }
}

/// Returns `e^{x²/2} Pr[Z > x]` for a standard normal Z and x ≥ 30: the series of [`scaled_upper_tail`].
pub fn mills_series(x: f64) -> f64 {
    let r = 1.0 / (x * x);
    let series = 1.0
        - r * (1.0
            - 3.0 * r * (1.0 - 5.0 * r * (1.0 - 7.0 * r * (1.0 - 9.0 * r * (1.0 - 11.0 * r * (1.0 - 13.0 * r))))));
    series / (x * (2.0 * std::f64::consts::PI).sqrt())
}

/// Returns `Pr[Z > x]` for a standard normal Z: [`scaled_upper_tail`] at ε = 0.
pub fn upper_tail(x: f64, x_error: f64) -> Approximation {
    scaled_upper_tail(0.0, x, x_error)
}

/// Returns `ln Σ exp(terms)` without overflow; −∞ for an empty sum, +∞ if a term is, NaN if a term is.
pub fn log_sum_exp(terms: impl Iterator<Item = f64> + Clone) -> f64 {
    // `f64::max` would ignore a NaN, and so hide the error that it indicates.
    let largest = terms.clone().fold(f64::NEG_INFINITY, |a, b| if a.is_nan() || a > b { a } else { b });
    if !largest.is_finite() {
        return largest;
    }
    largest + terms.map(|t| (t - largest).exp()).sum::<f64>().ln()
}

#[cfg(test)]
mod tests {
    use super::log_sum_exp;

    #[test]
    #[allow(clippy::float_cmp)] // infinities
    fn log_sums_keep_what_is_not_finite() {
        let infinite = f64::INFINITY;
        assert_eq!(log_sum_exp([].into_iter()), -infinite);
        assert_eq!(log_sum_exp([-infinite, -infinite].into_iter()), -infinite);
        assert_eq!(log_sum_exp([infinite, 0.0].into_iter()), infinite);
        assert_eq!(log_sum_exp([infinite, infinite].into_iter()), infinite);
        for terms in [[f64::NAN, 0.0], [0.0, f64::NAN], [f64::NAN, f64::NAN], [f64::NAN, -infinite]] {
            assert!(log_sum_exp(terms.into_iter()).is_nan());
        }
        assert!((log_sum_exp([1e4, 1e4].into_iter()) - (1e4 + std::f64::consts::LN_2)).abs() < 1e-11);
    }
}
