//! Binary fractions in [0, 1) of any length, as 64-bit limbs, the first one the most significant.
//!
//! A double p in (0, 1) is exactly such a fraction; so are 1 − p and its powers. Where a power would be too long it is
//! enclosed between two shorter fractions.

/// Returns the limbs of a double in (0, 1), as few as represent it exactly: 17 at most.
///
/// p = m·2^{−e} with an odd m < 2⁵³ and e ≤ 1074, so m·2^{64w−e} is a whole number for w = ⌈e/64⌉ limbs, shifted by
/// less than 64.
pub fn of(p: f64) -> Vec<u64> {
    debug_assert!(p > 0.0 && p < 1.0);
    let bits = p.to_bits();
    let (exponent, stored) = (bits >> 52, bits & ((1 << 52) - 1));
    let (significand, power) = if exponent == 0 { (stored, 1074) } else { (stored | (1 << 52), 1075 - exponent) };
    let zeros = u64::from(significand.trailing_zeros());
    let (odd, e) = (u128::from(significand >> zeros), power - zeros);
    let width = e.div_ceil(64);
    let shifted = odd << (64 * width - e);
    let mut limbs: Vec<u64> = (0..width).map(|_| 0).collect();
    if let Some(last) = limbs.last_mut() {
        *last = low(shifted);
    }
    if let Some(second) = limbs.iter_mut().rev().nth(1) {
        *second = low(shifted >> 64);
    }
    limbs
}

/// Returns the low half of a product or a sum.
#[allow(clippy::cast_possible_truncation)] // that is asked for
pub const fn low(wide: u128) -> u64 {
    wide as u64
}

/// Returns 1 − x for x > 0.
pub fn complement(x: &[u64]) -> Vec<u64> {
    let mut limbs: Vec<u64> = x.iter().map(|limb| !limb).collect();
    successor(&mut limbs);
    limbs
}

/// Adds one unit in the last place. Returns false if the sum is 1; the limbs are then 0.
pub fn successor(x: &mut [u64]) -> bool {
    for limb in x.iter_mut().rev() {
        *limb = limb.wrapping_add(1);
        if *limb != 0 {
            return true;
        }
    }
    false
}

/// Returns xy to `width` limbs, rounded down or up.
///
/// The result stays below 1 when rounded up: for x and y of no more than `width` limbs xy ≤ x, which needs no rounding.
pub fn product(x: &[u64], y: &[u64], width: usize, up: bool) -> Vec<u64> {
    let mut limbs = vec![0; x.len() + y.len()];
    for i in (0..x.len()).rev() {
        let mut carry = 0;
        for j in (0..y.len()).rev() {
            let sum = u128::from(x[i]) * u128::from(y[j]) + u128::from(limbs[i + j + 1]) + u128::from(carry);
            limbs[i + j + 1] = low(sum);
            carry = low(sum >> 64);
        }
        limbs[i] = carry;
    }
    let lost = limbs.iter().skip(width).any(|&limb| limb != 0);
    limbs.resize(width, 0);
    if up && lost {
        successor(&mut limbs);
    }
    limbs
}

/// Returns x^power to `width` limbs, where x has no more limbs than that: a lower bound, or with `up` an upper bound.
/// The result is exact where the true value has no more limbs.
///
/// Every partial product errs to the same side, and products of non-negative numbers preserve the side.
pub fn power(x: &[u64], power: u64, width: usize, up: bool) -> Vec<u64> {
    debug_assert!(power > 0 && x.len() <= width);
    let mut square = x.to_vec();
    square.resize(width, 0);
    let (mut left, mut found) = (power - 1, square.clone());
    while left > 0 {
        if left & 1 == 1 {
            found = product(&found, &square, width, up);
        }
        left >>= 1;
        if left > 0 {
            square = product(&square, &square, width, up);
        }
    }
    found
}

/// Returns whether x < y; their lengths may differ.
pub fn less(x: &[u64], y: &[u64]) -> bool {
    let length = x.len().max(y.len());
    let limb = |z: &[u64], i: usize| z.get(i).copied().unwrap_or(0);
    (0..length).map(|i| (limb(x, i), limb(y, i))).find(|(a, b)| a != b).is_some_and(|(a, b)| a < b)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubles_are_exact() {
        assert_eq!(of(0.5), [1 << 63]);
        assert_eq!(of(0.75), [3 << 62]);
        // 0.1 = 0x1.999999999999ap-4: a significand of 52 bits and e = 55.
        assert_eq!(of(0.1), [0x1999_9999_9999_9a00]);
        // 0.01 = 0x1.47ae147ae147bp-7, e = 59.
        assert_eq!(of(0.01), [0x028f_5c28_f5c2_8f60]);
        // The significand crosses the edge of a limb: 0x1.0000000000001p-15 has e = 67.
        let edge = f64::from_bits(((1023 - 15) << 52) | 1);
        assert_eq!(of(edge), [1 << 49, 1 << 61]);
        let least = of(f64::from_bits(1));
        assert_eq!((least.len(), least[16]), (17, 1 << (17 * 64 - 1074)));
        assert!(least[..16].iter().all(|&limb| limb == 0));
        assert_eq!(of(1.0 - f64::EPSILON / 2.0), [0xffff_ffff_ffff_f800]);
    }

    #[test]
    fn complements_and_products() {
        assert_eq!(complement(&of(0.25)), of(0.75));
        assert_eq!(complement(&[0, 1]), [u64::MAX, u64::MAX]);
        // (2⁻⁶⁴(2⁶⁴ − 1))² = 1 − 2⁻⁶³ + 2⁻¹²⁸.
        assert_eq!(product(&[u64::MAX], &[u64::MAX], 2, false), [u64::MAX - 1, 1]);
        assert_eq!(product(&[u64::MAX], &[u64::MAX], 1, false), [u64::MAX - 1]);
        assert_eq!(product(&[u64::MAX], &[u64::MAX], 1, true), [u64::MAX]);
        assert!(less(&[1], &[1, 1]) && !less(&[1, 0], &[1]) && !less(&[2], &[1, 5]));
    }

    #[test]
    fn powers_are_enclosed_and_exact_where_they_fit() {
        assert_eq!(power(&of(0.5), 64, 1, false), [1]);
        assert_eq!(power(&of(0.5), 64, 1, true), [1]);
        assert_eq!(power(&of(0.5), 65, 1, false), [0]);
        assert_eq!(power(&of(0.5), 65, 1, true), [1]);
        // 0.75³ = 27/64.
        assert_eq!(power(&of(0.75), 3, 1, true), [27 << 58]);
        let x = complement(&of(1e-3));
        for exponent in [2, 3, 77, 5000] {
            let mut exact = x.clone();
            for _ in 1..exponent.min(77) {
                exact = product(&exact, &x, exact.len() + x.len(), false);
            }
            let (below, above) = (power(&x, exponent, 2, false), power(&x, exponent, 2, true));
            // 1 − 1e-3 has 62 digits, so only its square fits.
            assert!(!less(&above, &below) && less(&below, &above) == (exponent > 2));
            if exponent <= 77 {
                assert!(!less(&exact, &below) && !less(&above, &exact));
            }
        }
    }
}
