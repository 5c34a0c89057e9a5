//! Vectors of eight lanes: what can be done with them, whatever registers they are in.

// Lanes are indexed together in several arrays; everything must be inlined into the copy for its instruction set.
#![allow(clippy::needless_range_loop, clippy::inline_always)]

/// The number of samples that are computed side by side.
pub const LANES: usize = 8;

/// One number for each of the samples that are computed side by side, as stored in memory.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
#[repr(C, align(64))]
pub struct Lanes(pub [f64; LANES]);

/// The raw bits of each lane, as stored in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(C, align(64))]
pub struct BitLanes(pub [u64; LANES]);

/// Returns lanes that all hold `value`.
pub const fn splat(value: f64) -> Lanes {
    Lanes([value; LANES])
}

impl std::ops::Index<usize> for Lanes {
    type Output = f64;
    #[inline(always)]
    fn index(&self, lane: usize) -> &f64 {
        &self.0[lane]
    }
}

impl std::ops::IndexMut<usize> for Lanes {
    #[inline(always)]
    fn index_mut(&mut self, lane: usize) -> &mut f64 {
        &mut self.0[lane]
    }
}

/// Eight numbers in registers. Every operation works lane by lane.
#[allow(missing_docs, clippy::return_self_not_must_use)] // the names say it; arithmetic is used
pub trait Vector: Copy {
    type Bits: Copy;
    /// Whether eight lanes fit into one register, so that more vectors can be held at once.
    const WIDE: bool;
    /// Whether words of 32 bits are added by one instruction for many of them.
    const WORDS: bool;
    /// Does the work in a separate function that is compiled for this kind of vector: long work is then compiled once
    /// for all its callers, and they stay short. (Compile time grows faster than the length of a function.)
    fn apart<W: Vectored>(work: W) -> W::Output;
    /// Returns this kind of vectors as a value.
    fn kind() -> Vectors;
    fn splat(value: f64) -> Self;
    fn load(from: &Lanes) -> Self;
    fn store(self, to: &mut Lanes);
    fn add(self, other: Self) -> Self;
    fn sub(self, other: Self) -> Self;
    fn mul(self, other: Self) -> Self;
    fn div(self, other: Self) -> Self;
    fn sqrt(self) -> Self;
    /// Returns `self·factor + term`, rounded once.
    fn mul_add(self, factor: Self, term: Self) -> Self;
    /// Returns the larger number; `other` where either is NaN.
    fn max(self, other: Self) -> Self;
    /// Returns the smaller number; `other` where either is NaN.
    fn min(self, other: Self) -> Self;
    /// Returns whether low < x < high in every lane.
    fn within(self, low: Self, high: Self) -> bool;
    fn bits(self) -> Self::Bits;
    fn from_bits(bits: Self::Bits) -> Self;
    fn splat_bits(bits: u64) -> Self::Bits;
    fn load_bits(from: &BitLanes) -> Self::Bits;
    fn store_bits(bits: Self::Bits, to: &mut BitLanes);
    fn add_bits(a: Self::Bits, b: Self::Bits) -> Self::Bits;
    fn sub_bits(a: Self::Bits, b: Self::Bits) -> Self::Bits;
    fn and(a: Self::Bits, b: Self::Bits) -> Self::Bits;
    fn or(a: Self::Bits, b: Self::Bits) -> Self::Bits;
    fn xor(a: Self::Bits, b: Self::Bits) -> Self::Bits;
    fn shl<const N: u32>(a: Self::Bits) -> Self::Bits;
    fn shr<const N: u32>(a: Self::Bits) -> Self::Bits;
    /// Adds the halves of each lane, which are words of 32 bits, without a carry from one to the other.
    fn add_words(a: Self::Bits, b: Self::Bits) -> Self::Bits;
    /// Rotates each word of 32 bits to the left by N bits; REST is 32 − N.
    fn rotate_words<const N: i32, const REST: i32>(a: Self::Bits) -> Self::Bits;
    /// Exchanges rows and columns: lane j of vector i becomes lane i of vector j.
    #[inline(always)]
    fn transposed(rows: [Self; LANES]) -> [Self; LANES] {
        let (mut lanes, mut columns) = ([Lanes::default(); LANES], rows);
        for i in 0..LANES {
            rows[i].store(&mut lanes[i]);
        }
        for j in 0..LANES {
            let mut column = Lanes::default();
            for i in 0..LANES {
                column[i] = lanes[i][j];
            }
            columns[j] = Self::load(&column);
        }
        columns
    }
    #[inline(always)]
    fn rotate<const N: u32, const REST: u32>(a: Self::Bits) -> Self::Bits {
        Self::or(Self::shl::<N>(a), Self::shr::<REST>(a))
    }
    /// Returns `a` where the mask's bits are set, `b` elsewhere.
    #[inline(always)]
    fn select(mask: Self::Bits, a: Self, b: Self) -> Self {
        let flipped = Self::xor(a.bits(), b.bits());
        Self::from_bits(Self::xor(b.bits(), Self::and(mask, flipped)))
    }
}

/// A kind of vectors that this processor has, as a value: for calls through `dyn`.
#[derive(Debug, Clone, Copy)]
pub struct Vectors(pub(super) Kind);

#[derive(Debug, Clone, Copy)]
pub(super) enum Kind {
    #[cfg(target_arch = "x86_64")]
    Wide,
    #[cfg(target_arch = "x86_64")]
    Pair,
    Portable,
}

/// Work that is worth compiling for each instruction set. `run` must be `#[inline(always)]`, and so must what it calls.
pub trait Vectored {
    /// The type of the result.
    type Output;
    /// Does the work with vectors of this kind.
    fn run<V: Vector>(self) -> Self::Output;
}
