//! Standard normal numbers, each a function of (key, round, position).
//!
//! Positions come in groups of sixteen. A group takes two blocks of the round's stream, sixteen 64-bit words in
//! little-endian order: word l < 8 gives the radius and word 8 + l the angle of a point in the plane, whose coordinates
//! are the numbers at l and 8 + l.
//!
//! **Law.** Box–Muller: (√(−2 ln u) cos θ, √(−2 ln u) sin θ) with u uniform on (0, 1) and θ on the circle is a pair of
//! independent standard normal numbers. Here u = (k + ½)·2⁻⁶⁴, k the 64-bit word, rounded to 53 bits wherever it is in
//! (0, 1), and θ is one of 2⁵⁴ angles ([`on_circle`]).
//!
//! * Tails: no number is beyond √(2·65·ln 2) < 9.5. Pr[R > r] is a whole multiple of 2⁻⁶⁴ but for the rounding of u and
//!   ln, so it is right to a relative 2⁻⁶⁴·e^{r²/2} + (1 + r²)·2⁻⁵¹: 5e-6 at r = 8, 2e-2 at r = 9.
//! * Elsewhere: coupled with exact normal numbers through the same u and θ, a number is off by at most R·(2π·2⁻⁵⁴) from
//!   the angle, 1.3u/R from the rounding of u where R is small (below 2⁻²⁶ for the one u in 2⁵³ that rounds to 1), and
//!   some 12u·R from the functions, u = 2⁻⁵³.
//!
//! These numbers approximate real numbers; the caller accounts for the effect of this approximation on privacy.

use crate::noise::chacha::{sixteen_blocks, BLOCKS};
use crate::secret::SecretKey;
use crate::vector::functions::{ln, on_circle};
use crate::vector::{with_instruction_set, with_vectors, Lanes, Vector, Vectored, LANES};

/// The numbers whose words are drawn together.
pub const GROUP: usize = 2 * LANES;

/// The number of groups that are computed at a time, one in each lane.
const BATCH: usize = BLOCKS / 2;

/// The spacing of the uniform numbers, 2⁻⁶⁴.
const CELL: f64 = 1.0 / 18_446_744_073_709_551_616.0;

/// Adds `weight` times the numbers of one round to `sums`, from position `group` times [`GROUP`] on; each sum is rounded
/// once.
///
/// # Panics
/// Panics unless the length of `sums` is a multiple of [`GROUP`].
#[inline(always)]
pub(super) fn add<V: Vector>(key: &SecretKey, round: u64, group: u64, weight: f64, sums: &mut [f64]) {
    let (groups, rest) = sums.as_chunks_mut::<GROUP>();
    assert!(rest.is_empty(), "sums are whole groups");
    let weight = V::splat(weight);
    // Each group takes two blocks.
    let mut block = 2 * group;
    for batch in groups.chunks_mut(BATCH) {
        let [radii, angles] = sixteen_blocks::<V>(key, round, block);
        let mut first = [weight; LANES];
        let mut second = first;
        for place in 0..LANES {
            (first[place], second[place]) = normals::<V>(radii[place], angles[place]);
        }
        let numbers = V::transposed(first).into_iter().zip(V::transposed(second));
        for (sums, (first, second)) in batch.iter_mut().zip(numbers) {
            let (lower, upper) = sums.split_at_mut(LANES);
            add_to(first, weight, lower);
            add_to(second, weight, upper);
        }
        block += BLOCKS as u64;
    }
}

/// Returns two standard normal numbers in each lane, made from these words.
#[inline(always)]
fn normals<V: Vector>(radii: V::Bits, angles: V::Bits) -> (V, V) {
    let log = ln(uniform::<V>(radii));
    on_circle(V::splat(-2.0).mul(log).sqrt(), angles)
}

/// Returns (k + ½)·2⁻⁶⁴, rounded to a double: at least 2⁻⁶⁵, at most 1.
#[inline(always)]
fn uniform<V: Vector>(bits: V::Bits) -> V {
    // The upper half of k as 2⁸⁴ + upper·2³², the lower one as 2⁵² + lower; only their sum is rounded.
    let upper = V::from_bits(V::or(V::shr::<32>(bits), V::splat_bits(0x4530_0000_0000_0000)));
    let lower = V::and(bits, V::splat_bits(0xffff_ffff));
    let lower = V::from_bits(V::or(lower, V::splat_bits(0x4330_0000_0000_0000)));
    // The constant is 2⁸⁴ + 2⁵².
    let offset = V::splat(f64::from_bits(0x4530_0000_0010_0000));
    let word = upper.sub(offset).add(lower);
    word.add(V::splat(0.5)).mul(V::splat(CELL))
}

#[inline(always)]
fn add_to<V: Vector>(value: V, weight: V, sums: &mut [f64]) {
    let (sums, _) = sums.as_chunks_mut::<LANES>();
    for sum in sums {
        let mut lanes = Lanes(*sum);
        value.mul_add(weight, V::load(&lanes)).store(&mut lanes);
        *sum = lanes.0;
    }
}

/// The arguments of [`add`], as work for a copy of the kernel.
struct Drawn<'a> {
    key: &'a SecretKey,
    round: u64,
    group: u64,
    sums: &'a mut [f64],
}

impl Vectored for Drawn<'_> {
    type Output = ();
    #[inline(always)]
    fn run<V: Vector>(self) {
        add::<V>(self.key, self.round, self.group, 1.0, self.sums);
    }
}

/// Returns the numbers of `count` groups of one round, from group `group` on.
pub fn groups(key: &SecretKey, round: u64, group: u64, count: usize) -> Vec<f64> {
    let mut sums = vec![0.0; count * GROUP];
    with_vectors(Drawn { key, round, group, sums: &mut sums });
    sums
}

/// Returns the same as [`groups`] from the named copy of the kernel; `None` where this processor cannot run it.
pub fn groups_with(name: &str, key: &SecretKey, round: u64, group: u64, count: usize) -> Option<Vec<f64>> {
    let mut sums = vec![0.0; count * GROUP];
    with_instruction_set(name, Drawn { key, round, group, sums: &mut sums }).map(|()| sums)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::special::real;
    use rand_chacha::rand_core::Rng;

    use crate::vector::{instruction_sets, Portable};

    /// Computes the numbers of a group with scalar functions of another library, from the words of the stream.
    fn expected(words: &[u64]) -> Vec<f64> {
        let mut numbers = vec![0.0; GROUP];
        for lane in 0..LANES {
            // rounded as the kernel rounds
            let u = (real(words[lane]) + 0.5) / 2f64.powi(64);
            let radius = (-2.0 * libm::log(u)).sqrt();
            let bits = words[LANES + lane];
            let angle = (real(bits >> 12) / 2f64.powi(52) - 0.5) * std::f64::consts::FRAC_PI_2;
            let (mut x, mut y) = (radius * libm::cos(angle), radius * libm::sin(angle));
            if bits & 1 == 1 {
                std::mem::swap(&mut x, &mut y);
            }
            numbers[lane] = if bits & 2 == 2 { -x } else { x };
            numbers[LANES + lane] = if bits & 4 == 4 { -y } else { y };
        }
        numbers
    }

    #[test]
    fn numbers_are_those_of_box_and_muller() {
        let key = SecretKey::new([5; 32]);
        let found = groups(&key, 9, 3, 200);
        let mut stream = key.stream(9, 3 * 32);
        for (group, found) in found.chunks(GROUP).enumerate() {
            let words: Vec<u64> = (0..GROUP).map(|_| stream.next_u64()).collect();
            for (place, (found, expected)) in found.iter().zip(expected(&words)).enumerate() {
                assert!((found - expected).abs() <= 1e-14, "{group}/{place}: {found} {expected}");
            }
        }
    }

    #[test]
    fn the_ends_of_the_uniform_numbers() {
        let found = |word: u64| {
            let mut lanes = Lanes::default();
            uniform::<Portable>([word; LANES]).store(&mut lanes);
            lanes.0[0]
        };
        assert_eq!(found(0).to_bits(), 2f64.powi(-65).to_bits());
        assert_eq!(found(1).to_bits(), (1.5 * 2f64.powi(-64)).to_bits());
        assert_eq!(found(1 << 63).to_bits(), 0.5f64.to_bits());
        assert_eq!(found(u64::MAX).to_bits(), 1f64.to_bits());
        // The smallest word gives the largest number, and every word gives a number.
        let radius = |word: u64| (-2.0 * libm::log(found(word))).sqrt();
        assert!(radius(0) < 9.5 && radius(0) > 9.49);
        assert!(radius(u64::MAX).abs() <= 0.0);
    }

    #[test]
    fn every_group_is_reached_directly_and_every_copy_gives_the_same() {
        let key = SecretKey::new([6; 32]);
        let whole = groups(&key, 2, 0, 300);
        for first in [0usize, 1, 63, 64, 65, 299] {
            let found = groups(&key, 2, first as u64, 300 - first);
            assert_eq!(found, whole[first * GROUP..]);
        }
        for name in instruction_sets() {
            assert_eq!(groups_with(name, &key, 2, 0, 300).as_ref(), Some(&whole), "{name}");
        }
        assert_eq!(groups_with("abacus", &key, 2, 0, 1), None);
        assert_ne!(groups(&key, 3, 0, 300), whole);
        assert_ne!(groups(&SecretKey::new([7; 32]), 2, 0, 300), whole);
    }

    /// The numbers are pinned, so that any later version continues a run with the same noise.
    #[test]
    fn the_first_numbers_stay_what_they_are() {
        let found = groups(&SecretKey::new([0; 32]), 0, 0, 1);
        let pinned = [0x3fa3_7247_1e5d_332c, 0x3ff7_5ad1_f816_7e68, 0xbff1_20af_d987_1b40, 0x3fbd_b90d_d853_2549];
        assert_eq!([found[0], found[1], found[8], found[15]].map(f64::to_bits), pinned);
    }
}
