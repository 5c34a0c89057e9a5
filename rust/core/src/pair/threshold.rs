//! Where the likelihood ratio of two Gaussian mixtures has a given value: closed forms where these have two components
//! each.
//!
//! A search starts from them, and returns them or a point that it finds nearby; no guarantee depends on them.

use crate::pair::components::{NormalComponent, NormalMixture};

/// Returns a first guess of τ: the threshold itself, to rounding, where the numerator has two components and the
/// denominator no more; otherwise the threshold of the outermost components alone.
pub(super) fn guess(numerator: &NormalMixture, denominator: &NormalMixture, epsilon: f64) -> f64 {
    let middle = |first: &NormalComponent, last: &NormalComponent| 0.5 * (first.shift + last.shift);
    let (tau, middle) = match (&numerator.components[..], &denominator.components[..]) {
        // For (1−q)N(0) + qN(2c) against (1−q)N(0) + qN(c), the ratio is α at a root of
        // `q·e^{−c²}u² − αqu − (α − 1)(1 − q)`, u = e^{cτ − c²/2}.
        ([first, last], [stay, drawn]) if drawn.shift > 0.0 => {
            let c = drawn.shift;
            let rest = -(-epsilon).exp_m1() * (stay.log_weight - drawn.log_weight - epsilon - c * c).exp();
            ((epsilon + (0.5 + 0.5 * (1.0 + 4.0 * rest).sqrt()).ln()) / c + 1.5 * c, middle(first, last))
        }
        ([stay, drawn], [other, stays]) if other.shift < 0.0 && stay.shift.abs() + stays.shift.abs() == 0.0 => {
            (between_opposite(epsilon, stay.log_weight, drawn, other), middle(stay, drawn))
        }
        ([first, last], _) => {
            let tau =
                ((epsilon.exp_m1() * (-last.log_weight).exp()).ln_1p() + 0.5 * last.shift * last.shift) / last.shift;
            (tau, middle(first, last))
        }
        ([first, .., last], _) => return middle(first, last),
        _ => return 0.0,
    };
    if tau.is_finite() {
        tau
    } else {
        middle
    }
}

/// Returns where `s + w e^{ay − a²/2} = e^ε (s + v e^{−by − b²/2})`, with ln s = `stay`, for the ratios a/b of 1, 2 and
/// 1/2; a point near it for other ratios.
///
/// With A = we^{−a²/2}, B = e^ε ve^{−b²/2} and D = s(e^ε − 1) it is a root of `Ae^{ay} − Be^{−by} = D`. For a = b that
/// is `sinh(ay + ln(A/B)/2) = D/(2√(AB))`. For a = 2b and z = e^{by}(A/B)^{1/3} it is `z³ = kz + 1`, k =
/// D/(A^{1/3}B^{2/3}), and for b = 2a the same with A and B, and y and −y, exchanged, and −D.
fn between_opposite(epsilon: f64, stay: f64, drawn: &NormalComponent, other: &NormalComponent) -> f64 {
    let (a, b) = (drawn.shift, -other.shift);
    let (ahead, behind) = (drawn.log_weight - 0.5 * a * a, epsilon + other.log_weight - 0.5 * b * b);
    let size = stay + if epsilon > 1.0 { epsilon + (-(-epsilon).exp()).ln_1p() } else { epsilon.exp_m1().abs().ln() };
    let k = |log_scale: f64| (size - log_scale).exp().copysign(epsilon);
    if a > 1.5 * b {
        (log_root(k((ahead + 2.0 * behind) / 3.0)) + (behind - ahead) / 3.0) / b
    } else if b > 1.5 * a {
        -(log_root(-k((behind + 2.0 * ahead) / 3.0)) + (ahead - behind) / 3.0) / a
    } else {
        ((0.5 * k(0.5 * (ahead + behind))).asinh() + 0.5 * (behind - ahead)) / a
    }
}

/// Returns the logarithm of the positive root of `z³ = kz + 1`, by the trigonometric and hyperbolic formulas.
fn log_root(k: f64) -> f64 {
    let size = k.abs();
    if size < 1e-8 {
        // ln z = k/3 − k³/81 + …
        return k / 3.0;
    }
    // Beyond this size, rounding removes the 1 beside kz, or z³ beside both.
    if size > 1e100 {
        return if k > 0.0 { 0.5 * size.ln() } else { -size.ln() };
    }
    let (third, place) = (size / 3.0, 0.5 * (3.0 / size).powf(1.5));
    let root = if k < 0.0 {
        (place.asinh() / 3.0).sinh()
    } else if place > 1.0 {
        (place.acosh() / 3.0).cosh()
    } else {
        (place.acos() / 3.0).cos()
    };
    (2.0 * third.sqrt() * root).ln()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guesses_are_thresholds_to_rounding() {
        for (c, q) in [(1.0_f64 / 0.614, 1e-4_f64), (0.2, 0.3), (3.0, 0.99), (0.01, 1e-7), (1.0, 0.5)] {
            let single = || NormalMixture::new(std::iter::once((0.0, 0.0)));
            let drawn = |shift: f64| NormalMixture::new([((-q).ln_1p(), 0.0), (q.ln(), shift)].into_iter());
            let pairs = [
                (drawn(c), single()),
                (drawn(2.0 * c), drawn(c)),
                (drawn(c), drawn(-c)),
                (drawn(2.0 * c), drawn(-c)),
                (drawn(c), drawn(-2.0 * c)),
            ];
            for (k, (numerator, denominator)) in pairs.iter().enumerate() {
                for tau in [-9.0_f64, -1.0, 0.0, 0.4, 2.0, 30.0] {
                    // The ratio of the second pair increases only from there on.
                    let tau = if k == 1 { tau.abs() + 1.5 * c } else { tau };
                    let ((ahead, rise, one), (behind, fall, other)) =
                        (numerator.log_ratio(tau), denominator.log_ratio(tau));
                    // At an end of its range the loss does not determine the position.
                    if rise - fall > 1e-9 {
                        let found = guess(numerator, denominator, ahead - behind);
                        let loss = numerator.log_ratio(found).0 - denominator.log_ratio(found).0;
                        let missed = (loss - (ahead - behind)).abs();
                        assert!(missed <= 8.0 * (one + other), "{c} {q} {k} {tau}: {missed:e} {one:e}");
                    }
                }
            }
        }
    }

    #[test]
    fn roots_solve_their_equation() {
        for size in [1e-300, 1e-9, 1e-8, 1e-3, 1.0, 1.889, 1.8899, 3.0, 1e3, 1e12] {
            for k in [size, -size] {
                let root = log_root(k).exp();
                let terms = [root.powi(3), -k * root, -1.0];
                let largest = terms.iter().fold(0.0_f64, |a, b| a.max(b.abs()));
                assert!(terms.iter().sum::<f64>().abs() <= 1e-14 * largest, "{k}");
            }
        }
        for (k, expected) in [(1e110_f64, 55.0 * std::f64::consts::LN_10), (-1e110, -110.0 * std::f64::consts::LN_10)] {
            assert!((log_root(k) - expected).abs() < 1e-12);
        }
        assert!(log_root(f64::INFINITY).is_infinite() && log_root(0.0).abs() < f64::MIN_POSITIVE);
    }
}
