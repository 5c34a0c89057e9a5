//! Vectors of eight lanes in arrays, on any machine.

// Everything must be inlined into the copy for its instruction set.
#![allow(clippy::inline_always)]

use super::lanes::{BitLanes, Kind, Lanes, Vector, Vectored, Vectors, LANES};

/// Eight numbers in an array: the copy that runs on any machine.
#[derive(Debug, Clone, Copy)]
pub struct Portable([f64; LANES]);

impl Portable {
    #[inline(always)]
    fn zip(self, other: Self, f: impl Fn(f64, f64) -> f64) -> Self {
        Self(std::array::from_fn(|l| f(self.0[l], other.0[l])))
    }
}

#[inline(always)]
fn zip_bits(a: [u64; LANES], b: [u64; LANES], f: impl Fn(u64, u64) -> u64) -> [u64; LANES] {
    std::array::from_fn(|l| f(a[l], b[l]))
}

impl Vector for Portable {
    type Bits = [u64; LANES];
    const WIDE: bool = false;
    const WORDS: bool = false;
    #[inline(always)]
    fn apart<W: Vectored>(work: W) -> W::Output {
        portable(work)
    }
    fn kind() -> Vectors {
        Vectors(Kind::Portable)
    }
    #[inline(always)]
    fn splat(value: f64) -> Self {
        Self([value; LANES])
    }
    #[inline(always)]
    fn load(from: &Lanes) -> Self {
        Self(from.0)
    }
    #[inline(always)]
    fn store(self, to: &mut Lanes) {
        to.0 = self.0;
    }
    #[inline(always)]
    fn add(self, other: Self) -> Self {
        self.zip(other, |a, b| a + b)
    }
    #[inline(always)]
    fn sub(self, other: Self) -> Self {
        self.zip(other, |a, b| a - b)
    }
    #[inline(always)]
    fn mul(self, other: Self) -> Self {
        self.zip(other, |a, b| a * b)
    }
    #[inline(always)]
    fn div(self, other: Self) -> Self {
        self.zip(other, |a, b| a / b)
    }
    #[inline(always)]
    fn sqrt(self) -> Self {
        Self(self.0.map(f64::sqrt))
    }
    #[inline(always)]
    fn mul_add(self, factor: Self, term: Self) -> Self {
        Self(std::array::from_fn(|l| self.0[l].mul_add(factor.0[l], term.0[l])))
    }
    #[inline(always)]
    fn max(self, other: Self) -> Self {
        self.zip(other, |a, b| if a > b { a } else { b })
    }
    #[inline(always)]
    fn min(self, other: Self) -> Self {
        self.zip(other, |a, b| if a < b { a } else { b })
    }
    #[inline(always)]
    fn within(self, low: Self, high: Self) -> bool {
        (0..LANES).all(|l| low.0[l] < self.0[l] && self.0[l] < high.0[l])
    }
    #[inline(always)]
    fn bits(self) -> Self::Bits {
        self.0.map(f64::to_bits)
    }
    #[inline(always)]
    fn from_bits(bits: Self::Bits) -> Self {
        Self(bits.map(f64::from_bits))
    }
    #[inline(always)]
    fn splat_bits(bits: u64) -> Self::Bits {
        [bits; LANES]
    }
    #[inline(always)]
    fn load_bits(from: &BitLanes) -> Self::Bits {
        from.0
    }
    #[inline(always)]
    fn store_bits(bits: Self::Bits, to: &mut BitLanes) {
        to.0 = bits;
    }
    #[inline(always)]
    fn add_bits(a: Self::Bits, b: Self::Bits) -> Self::Bits {
        zip_bits(a, b, u64::wrapping_add)
    }
    #[inline(always)]
    fn sub_bits(a: Self::Bits, b: Self::Bits) -> Self::Bits {
        zip_bits(a, b, u64::wrapping_sub)
    }
    #[inline(always)]
    fn and(a: Self::Bits, b: Self::Bits) -> Self::Bits {
        zip_bits(a, b, |a, b| a & b)
    }
    #[inline(always)]
    fn or(a: Self::Bits, b: Self::Bits) -> Self::Bits {
        zip_bits(a, b, |a, b| a | b)
    }
    #[inline(always)]
    fn xor(a: Self::Bits, b: Self::Bits) -> Self::Bits {
        zip_bits(a, b, |a, b| a ^ b)
    }
    #[inline(always)]
    fn shl<const N: u32>(a: Self::Bits) -> Self::Bits {
        a.map(|x| x << N)
    }
    #[inline(always)]
    fn shr<const N: u32>(a: Self::Bits) -> Self::Bits {
        a.map(|x| x >> N)
    }
    #[inline(always)]
    fn add_words(a: Self::Bits, b: Self::Bits) -> Self::Bits {
        zip_words(a, b, u32::wrapping_add)
    }
    #[inline(always)]
    fn rotate_words<const N: i32, const REST: i32>(a: Self::Bits) -> Self::Bits {
        zip_words(a, a, |word, _| word << N | word >> REST)
    }
}

#[inline(always)]
#[allow(clippy::cast_possible_truncation)] // the halves
fn zip_words(a: [u64; LANES], b: [u64; LANES], f: impl Fn(u32, u32) -> u32) -> [u64; LANES] {
    zip_bits(a, b, |a, b| u64::from(f(a as u32, b as u32)) | u64::from(f((a >> 32) as u32, (b >> 32) as u32)) << 32)
}

/// Runs `work` on this copy.
#[inline(never)]
pub(super) fn portable<W: Vectored>(work: W) -> W::Output {
    work.run::<Portable>()
}
