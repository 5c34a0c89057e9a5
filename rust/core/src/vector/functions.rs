//! Elementary functions on eight lanes, built from IEEE operations only, so that every instruction set gives the same
//! bits.

// Everything must be inlined into the copy for its instruction set.
#![allow(clippy::inline_always)]

use crate::vector::Vector;

/// 1.5·2⁵²: adding this number to x leaves x, rounded to an integer, in the low bits.
const MAGIC: f64 = 6_755_399_441_055_744.0;

/// ln 2 in two parts; the first has 32 significant bits, so that its product with an exponent is exact.
const LN2_HIGH: f64 = 0.693_147_180_369_123_8;
const LN2_LOW: f64 = 1.908_214_929_270_587_7e-10;

/// 1/k! for k = 12, 11, …, 2.
const FACTORIALS: [f64; 11] = [
    1.0 / 479_001_600.0,
    1.0 / 39_916_800.0,
    1.0 / 3_628_800.0,
    1.0 / 362_880.0,
    1.0 / 40_320.0,
    1.0 / 5_040.0,
    1.0 / 720.0,
    1.0 / 120.0,
    1.0 / 24.0,
    1.0 / 6.0,
    0.5,
];

/// The arguments of [`exp`] are clamped to ± this value; callers check for arguments near it.
pub const EXP_RANGE: f64 = 700.0;

/// Returns e^x for |x| ≤ [`EXP_RANGE`]; arguments outside are clamped.
///
/// * Precision: the relative error is at most 4u; the argument is taken as exact.
/// * Source: x = k·ln 2 + r with |r| ≤ 0.347; the Taylor polynomial of degree 12 misses e^r by at most
///   r¹³/13!·e^{|r|} < 2.4e-16 relative to e^r ≥ 0.707, and its evaluation adds about one rounding.
#[inline(always)]
pub fn exp<V: Vector>(x: V) -> V {
    exp_in_range(x.max(V::splat(-EXP_RANGE)).min(V::splat(EXP_RANGE)))
}

/// Returns [`exp`] of arguments that are known to be within ±[`EXP_RANGE`], or whose result does not matter.
#[inline(always)]
pub fn exp_in_range<V: Vector>(x: V) -> V {
    let magic = V::splat(MAGIC);
    let shifted = x.mul_add(V::splat(std::f64::consts::LOG2_E), magic);
    let k = shifted.sub(magic);
    let r = k.mul_add(V::splat(-LN2_LOW), k.mul_add(V::splat(-LN2_HIGH), x));
    let p = polynomial(r, &FACTORIALS);
    // The two leading terms of 1 + r + r²·(…) are added last.
    let value = V::splat(1.0).add(p.mul(r).mul_add(r, r));
    // The low bits of `shifted` are k; moved to the exponent they multiply by 2^k.
    V::from_bits(V::add_bits(value.bits(), V::shl::<52>(shifted.bits())))
}

/// Evaluates the polynomial with these coefficients, the highest first, by Horner's rule.
#[inline(always)]
fn polynomial<V: Vector>(x: V, coefficients: &[f64]) -> V {
    let mut value = V::splat(coefficients[0]);
    for &coefficient in &coefficients[1..] {
        value = value.mul_add(x, V::splat(coefficient));
    }
    value
}

/// 1/(2k + 1) for k = 11, …, 1.
const ODD: [f64; 11] = [
    1.0 / 23.0,
    1.0 / 21.0,
    1.0 / 19.0,
    1.0 / 17.0,
    1.0 / 15.0,
    1.0 / 13.0,
    1.0 / 11.0,
    1.0 / 9.0,
    1.0 / 7.0,
    1.0 / 5.0,
    1.0 / 3.0,
];

/// The bits of √½, rounded down to the exponent's neighbourhood: mantissas are taken from [√½, √2).
const HALF_ROOT: u64 = 0x3fe6_a09e_667f_3bcd;

/// Returns ln x for positive normal x.
///
/// * Precision: absolute error at most 2u·|ln x| + 2u·|ln m| with m the mantissa in [√½, √2): relative 4u for x away
///   from 1 and 4u near it.
/// * Source: x = 2^k·m, ln m = 2 artanh((m − 1)/(m + 1)); the odd series up to the 23rd power misses by less than 2e-17
///   relative.
#[inline(always)]
pub fn ln<V: Vector>(x: V) -> V {
    let bits = x.bits();
    // This is the exponent that leaves a mantissa in [√½, √2), by integer arithmetic on the ordered bit patterns.
    let exponent = V::and(V::sub_bits(bits, V::splat_bits(HALF_ROOT)), V::splat_bits(0xfff0_0000_0000_0000));
    let mantissa = V::from_bits(V::sub_bits(bits, exponent));
    // This gives k as a float without a conversion: |k| ≤ 1074, biased by 2048, in the low bits of 2⁵².
    let biased = V::and(V::add_bits(V::shr::<52>(exponent), V::splat_bits(2048)), V::splat_bits(0xfff));
    let k = V::from_bits(V::or(biased, V::splat_bits(0x4330_0000_0000_0000)));
    let k = k.sub(V::splat(4_503_599_627_370_496.0 + 2048.0));
    let one = V::splat(1.0);
    let s = mantissa.sub(one).div(mantissa.add(one));
    let square = s.mul(s);
    let p = polynomial(square, &ODD);
    let twice = s.add(s);
    let log = twice.mul(square).mul_add(p, twice);
    k.mul_add(V::splat(LN2_HIGH), k.mul_add(V::splat(LN2_LOW), log))
}

/// sin's Taylor coefficients, (−1)^k/(2k + 1)! for k = 7, …, 1.
const SINE: [f64; 7] = [
    -1.0 / 1_307_674_368_000.0,
    1.0 / 6_227_020_800.0,
    -1.0 / 39_916_800.0,
    1.0 / 362_880.0,
    -1.0 / 5_040.0,
    1.0 / 120.0,
    -1.0 / 6.0,
];

/// cos's Taylor coefficients, (−1)^k/(2k)! for k = 8, …, 1.
const COSINE: [f64; 8] = [
    1.0 / 20_922_789_888_000.0,
    -1.0 / 87_178_291_200.0,
    1.0 / 479_001_600.0,
    -1.0 / 3_628_800.0,
    1.0 / 40_320.0,
    -1.0 / 720.0,
    1.0 / 24.0,
    -0.5,
];

/// Returns (sin t, cos t) for |t| ≤ π/4.
///
/// * Precision: absolute error at most 3u each; the first omitted terms are below 5e-17.
#[inline(always)]
pub fn sin_cos<V: Vector>(t: V) -> (V, V) {
    let square = t.mul(t);
    let sine = polynomial(square, &SINE).mul(square).mul_add(t, t);
    let cosine = polynomial(square, &COSINE).mul_add(square, V::splat(1.0));
    (sine, cosine)
}

/// Returns a number in [1, 2) with the upper 52 of these bits.
#[inline(always)]
pub fn unit<V: Vector>(bits: V::Bits) -> V {
    V::from_bits(V::or(V::shr::<12>(bits), V::splat_bits(0x3ff0_0000_0000_0000)))
}

/// Returns the point (x, y) at this distance from the origin in a direction drawn from 64 random bits.
///
/// The angle is within an eighth of a turn on either side of 0, given by the upper 52 bits in steps of 2⁻⁵⁴ turns. The
/// lowest three bits swap the two coordinates and choose their signs, which makes the direction uniform on the circle.
#[inline(always)]
pub fn on_circle<V: Vector>(radius: V, bits: V::Bits) -> (V, V) {
    // `unit` − 1.5 is in [−½, ½); times π/2 it is in [−π/4, π/4).
    let angle = unit::<V>(bits).sub(V::splat(1.5)).mul(V::splat(std::f64::consts::FRAC_PI_2));
    let (sine, cosine) = sin_cos(angle);
    let (sine, cosine) = (radius.mul(sine), radius.mul(cosine));
    // The mask is all ones where the lowest bit is set.
    let swap = V::sub_bits(V::splat_bits(0), V::and(bits, V::splat_bits(1)));
    let (first, second) = (V::select(swap, sine, cosine), V::select(swap, cosine, sine));
    (signed(first, V::shl::<62>(bits)), signed(second, V::shl::<61>(bits)))
}

/// Returns `value` with its sign flipped where the highest bit is set.
#[inline(always)]
fn signed<V: Vector>(value: V, bits: V::Bits) -> V {
    V::from_bits(V::xor(value.bits(), V::and(bits, V::splat_bits(1 << 63))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vector::{Lanes, Portable, LANES};

    fn apply(f: impl Fn(Portable) -> Portable, x: &Lanes) -> [f64; LANES] {
        let mut out = Lanes::default();
        f(Portable::load(x)).store(&mut out);
        out.0
    }

    fn lanes(values: impl Iterator<Item = f64>) -> Vec<Lanes> {
        let all: Vec<f64> = values.collect();
        all.chunks_exact(LANES).map(|c| Lanes(c.try_into().unwrap())).collect()
    }

    #[test]
    fn exponential_is_within_four_roundings() {
        for x in lanes((0..80_000).map(|i| -690.0 + f64::from(i) * 0.01725)) {
            for (got, x) in apply(exp, &x).iter().zip(x.0) {
                let expected = libm::exp(x);
                assert!((got - expected).abs() <= 5.0 * f64::EPSILON / 2.0 * expected, "{x}: {got} {expected}");
            }
        }
    }

    #[test]
    fn logarithm_is_within_four_roundings() {
        let arguments = (1..80_000).map(|i| f64::from(i) * 0.25e-4).chain((-1000..1000).map(|i| 1.37 * 2f64.powi(i)));
        for x in lanes(arguments) {
            for (got, x) in apply(ln, &x).iter().zip(x.0) {
                let expected = libm::log(x);
                assert!(
                    (got - expected).abs() <= 3.0 * f64::EPSILON * expected.abs().max(1e-30),
                    "{x}: {got} {expected}"
                );
            }
        }
    }

    #[test]
    fn sine_and_cosine_are_within_three_roundings() {
        for t in lanes((-40_000..40_000).map(|i| f64::from(i) * std::f64::consts::FRAC_PI_4 / 40_000.0)) {
            let sine = apply(|t| sin_cos(t).0, &t);
            let cosine = apply(|t| sin_cos(t).1, &t);
            for l in 0..LANES {
                assert!((sine[l] - libm::sin(t[l])).abs() <= 1.5 * f64::EPSILON);
                assert!((cosine[l] - libm::cos(t[l])).abs() <= 1.5 * f64::EPSILON);
            }
        }
    }
}
