//! AVX-512 and AVX2 with FMA.
//!
//! The methods are inlined into [`avx512`] and [`avx2`], which are compiled for the features; no other module can
//! name the types.

#![allow(unsafe_code)]
// Lanes are indexed together in several arrays; everything must be inlined into the copy for its instruction set.
#![allow(clippy::needless_range_loop, clippy::inline_always)]

use super::lanes::{BitLanes, Kind, Lanes, Vector, Vectored, Vectors};
#[allow(clippy::wildcard_imports)] // some fifty intrinsics
use std::arch::x86_64::*;

pub fn has_avx512() -> bool {
    std::arch::is_x86_feature_detected!("avx512f")
        && std::arch::is_x86_feature_detected!("avx512dq")
        && std::arch::is_x86_feature_detected!("avx512vl")
        && has_avx2()
}

pub fn has_avx2() -> bool {
    std::arch::is_x86_feature_detected!("avx2") && std::arch::is_x86_feature_detected!("fma")
}

#[inline(never)]
#[target_feature(enable = "avx512f,avx512dq,avx512vl,avx2,fma")]
pub fn avx512<W: Vectored>(work: W) -> W::Output {
    work.run::<Wide>()
}

#[inline(never)]
#[target_feature(enable = "avx2,fma")]
pub fn avx2<W: Vectored>(work: W) -> W::Output {
    work.run::<Pair>()
}

/// One 512-bit register.
#[derive(Clone, Copy)]
struct Wide(__m512d);

/// Two 256-bit registers.
#[derive(Clone, Copy)]
struct Pair(__m256d, __m256d);

/// Bits of two 256-bit registers.
#[derive(Clone, Copy)]
struct PairBits(__m256i, __m256i);

// SAFETY of this block and the next: the types are private to this module and used only inside `avx512` and `avx2`,
// whose callers have checked the features; loads and stores go through references to 64-byte aligned memory of the
// right size.
macro_rules! native {
    ($e:expr) => {
        unsafe { $e }
    };
}

#[allow(clippy::cast_possible_wrap, clippy::cast_possible_truncation)] // bit patterns and shift counts
impl Vector for Wide {
    type Bits = __m512i;
    const WIDE: bool = true;
    const WORDS: bool = true;
    #[inline(always)]
    fn apart<W: Vectored>(work: W) -> W::Output {
        native!(avx512(work))
    }
    fn kind() -> Vectors {
        Vectors(Kind::Wide)
    }
    #[inline(always)]
    fn splat(value: f64) -> Self {
        Self(native!(_mm512_set1_pd(value)))
    }
    #[inline(always)]
    fn load(from: &Lanes) -> Self {
        Self(native!(_mm512_load_pd(from.0.as_ptr())))
    }
    #[inline(always)]
    fn store(self, to: &mut Lanes) {
        native!(_mm512_store_pd(to.0.as_mut_ptr(), self.0));
    }
    #[inline(always)]
    fn add(self, other: Self) -> Self {
        Self(native!(_mm512_add_pd(self.0, other.0)))
    }
    #[inline(always)]
    fn sub(self, other: Self) -> Self {
        Self(native!(_mm512_sub_pd(self.0, other.0)))
    }
    #[inline(always)]
    fn mul(self, other: Self) -> Self {
        Self(native!(_mm512_mul_pd(self.0, other.0)))
    }
    #[inline(always)]
    fn div(self, other: Self) -> Self {
        Self(native!(_mm512_div_pd(self.0, other.0)))
    }
    #[inline(always)]
    fn sqrt(self) -> Self {
        Self(native!(_mm512_sqrt_pd(self.0)))
    }
    #[inline(always)]
    fn mul_add(self, factor: Self, term: Self) -> Self {
        Self(native!(_mm512_fmadd_pd(self.0, factor.0, term.0)))
    }
    #[inline(always)]
    fn max(self, other: Self) -> Self {
        Self(native!(_mm512_max_pd(self.0, other.0)))
    }
    #[inline(always)]
    fn min(self, other: Self) -> Self {
        Self(native!(_mm512_min_pd(self.0, other.0)))
    }
    #[inline(always)]
    fn within(self, low: Self, high: Self) -> bool {
        native!({
            let above = _mm512_cmp_pd_mask::<_CMP_LT_OQ>(low.0, self.0);
            let below = _mm512_cmp_pd_mask::<_CMP_LT_OQ>(self.0, high.0);
            above & below == 0xff
        })
    }
    #[inline(always)]
    fn bits(self) -> Self::Bits {
        native!(_mm512_castpd_si512(self.0))
    }
    #[inline(always)]
    fn from_bits(bits: Self::Bits) -> Self {
        Self(native!(_mm512_castsi512_pd(bits)))
    }
    #[inline(always)]
    fn splat_bits(bits: u64) -> Self::Bits {
        native!(_mm512_set1_epi64(bits as i64))
    }
    #[inline(always)]
    fn load_bits(from: &BitLanes) -> Self::Bits {
        native!(_mm512_load_si512(from.0.as_ptr().cast()))
    }
    #[inline(always)]
    fn store_bits(bits: Self::Bits, to: &mut BitLanes) {
        native!(_mm512_store_si512(to.0.as_mut_ptr().cast(), bits));
    }
    #[inline(always)]
    fn add_bits(a: Self::Bits, b: Self::Bits) -> Self::Bits {
        native!(_mm512_add_epi64(a, b))
    }
    #[inline(always)]
    fn sub_bits(a: Self::Bits, b: Self::Bits) -> Self::Bits {
        native!(_mm512_sub_epi64(a, b))
    }
    #[inline(always)]
    fn and(a: Self::Bits, b: Self::Bits) -> Self::Bits {
        native!(_mm512_and_si512(a, b))
    }
    #[inline(always)]
    fn or(a: Self::Bits, b: Self::Bits) -> Self::Bits {
        native!(_mm512_or_si512(a, b))
    }
    #[inline(always)]
    fn xor(a: Self::Bits, b: Self::Bits) -> Self::Bits {
        native!(_mm512_xor_si512(a, b))
    }
    #[inline(always)]
    fn shl<const N: u32>(a: Self::Bits) -> Self::Bits {
        native!(_mm512_slli_epi64::<N>(a))
    }
    #[inline(always)]
    fn shr<const N: u32>(a: Self::Bits) -> Self::Bits {
        native!(_mm512_srli_epi64::<N>(a))
    }
    #[inline(always)]
    fn add_words(a: Self::Bits, b: Self::Bits) -> Self::Bits {
        native!(_mm512_add_epi32(a, b))
    }
    #[inline(always)]
    fn rotate_words<const N: i32, const REST: i32>(a: Self::Bits) -> Self::Bits {
        native!(_mm512_rol_epi32::<N>(a))
    }
    #[inline(always)]
    fn transposed(rows: [Self; super::lanes::LANES]) -> [Self; super::lanes::LANES] {
        // Lanes 2k and 2k + 1 of two rows at a time, then squares of four lanes, then the halves.
        native!({
            let (e0, o0) = (_mm512_unpacklo_pd(rows[0].0, rows[1].0), _mm512_unpackhi_pd(rows[0].0, rows[1].0));
            let (e1, o1) = (_mm512_unpacklo_pd(rows[2].0, rows[3].0), _mm512_unpackhi_pd(rows[2].0, rows[3].0));
            let (e2, o2) = (_mm512_unpacklo_pd(rows[4].0, rows[5].0), _mm512_unpackhi_pd(rows[4].0, rows[5].0));
            let (e3, o3) = (_mm512_unpacklo_pd(rows[6].0, rows[7].0), _mm512_unpackhi_pd(rows[6].0, rows[7].0));
            let [c0, c2, c4, c6] = blocks(e0, e1, e2, e3);
            let [c1, c3, c5, c7] = blocks(o0, o1, o2, o3);
            [Self(c0), Self(c1), Self(c2), Self(c3), Self(c4), Self(c5), Self(c6), Self(c7)]
        })
    }
}

/// Exchanges rows and columns of four rows of four blocks, which are two lanes each.
#[inline(always)]
fn blocks(a: __m512d, b: __m512d, c: __m512d, d: __m512d) -> [__m512d; 4] {
    native!({
        let (even, odd) = (_mm512_shuffle_f64x2::<0x88>(a, b), _mm512_shuffle_f64x2::<0xdd>(a, b));
        let (more_even, more_odd) = (_mm512_shuffle_f64x2::<0x88>(c, d), _mm512_shuffle_f64x2::<0xdd>(c, d));
        [
            _mm512_shuffle_f64x2::<0x88>(even, more_even),
            _mm512_shuffle_f64x2::<0x88>(odd, more_odd),
            _mm512_shuffle_f64x2::<0xdd>(even, more_even),
            _mm512_shuffle_f64x2::<0xdd>(odd, more_odd),
        ]
    })
}

/// Exchanges rows and columns of four rows of four lanes.
#[inline(always)]
fn square(a: __m256d, b: __m256d, c: __m256d, d: __m256d) -> [__m256d; 4] {
    native!({
        let (ab, cd) = (_mm256_unpacklo_pd(a, b), _mm256_unpacklo_pd(c, d));
        let (upper_ab, upper_cd) = (_mm256_unpackhi_pd(a, b), _mm256_unpackhi_pd(c, d));
        [
            _mm256_permute2f128_pd::<0x20>(ab, cd),
            _mm256_permute2f128_pd::<0x20>(upper_ab, upper_cd),
            _mm256_permute2f128_pd::<0x31>(ab, cd),
            _mm256_permute2f128_pd::<0x31>(upper_ab, upper_cd),
        ]
    })
}

#[allow(clippy::cast_possible_wrap)] // bit patterns and shift counts
impl Vector for Pair {
    type Bits = PairBits;
    const WIDE: bool = false;
    const WORDS: bool = true;
    #[inline(always)]
    fn apart<W: Vectored>(work: W) -> W::Output {
        native!(avx2(work))
    }
    fn kind() -> Vectors {
        Vectors(Kind::Pair)
    }
    #[inline(always)]
    fn splat(value: f64) -> Self {
        let half = native!(_mm256_set1_pd(value));
        Self(half, half)
    }
    #[inline(always)]
    fn load(from: &Lanes) -> Self {
        native!(Self(_mm256_load_pd(from.0.as_ptr()), _mm256_load_pd(from.0.as_ptr().add(4))))
    }
    #[inline(always)]
    fn store(self, to: &mut Lanes) {
        native!({
            _mm256_store_pd(to.0.as_mut_ptr(), self.0);
            _mm256_store_pd(to.0.as_mut_ptr().add(4), self.1);
        });
    }
    #[inline(always)]
    fn add(self, other: Self) -> Self {
        native!(Self(_mm256_add_pd(self.0, other.0), _mm256_add_pd(self.1, other.1)))
    }
    #[inline(always)]
    fn sub(self, other: Self) -> Self {
        native!(Self(_mm256_sub_pd(self.0, other.0), _mm256_sub_pd(self.1, other.1)))
    }
    #[inline(always)]
    fn mul(self, other: Self) -> Self {
        native!(Self(_mm256_mul_pd(self.0, other.0), _mm256_mul_pd(self.1, other.1)))
    }
    #[inline(always)]
    fn div(self, other: Self) -> Self {
        native!(Self(_mm256_div_pd(self.0, other.0), _mm256_div_pd(self.1, other.1)))
    }
    #[inline(always)]
    fn sqrt(self) -> Self {
        native!(Self(_mm256_sqrt_pd(self.0), _mm256_sqrt_pd(self.1)))
    }
    #[inline(always)]
    fn mul_add(self, factor: Self, term: Self) -> Self {
        native!(Self(_mm256_fmadd_pd(self.0, factor.0, term.0), _mm256_fmadd_pd(self.1, factor.1, term.1)))
    }
    #[inline(always)]
    fn max(self, other: Self) -> Self {
        native!(Self(_mm256_max_pd(self.0, other.0), _mm256_max_pd(self.1, other.1)))
    }
    #[inline(always)]
    fn min(self, other: Self) -> Self {
        native!(Self(_mm256_min_pd(self.0, other.0), _mm256_min_pd(self.1, other.1)))
    }
    #[inline(always)]
    fn within(self, low: Self, high: Self) -> bool {
        native!({
            let first =
                _mm256_and_pd(_mm256_cmp_pd::<_CMP_LT_OQ>(low.0, self.0), _mm256_cmp_pd::<_CMP_LT_OQ>(self.0, high.0));
            let second =
                _mm256_and_pd(_mm256_cmp_pd::<_CMP_LT_OQ>(low.1, self.1), _mm256_cmp_pd::<_CMP_LT_OQ>(self.1, high.1));
            _mm256_movemask_pd(_mm256_and_pd(first, second)) == 0xf
        })
    }
    #[inline(always)]
    fn bits(self) -> Self::Bits {
        native!(PairBits(_mm256_castpd_si256(self.0), _mm256_castpd_si256(self.1)))
    }
    #[inline(always)]
    fn from_bits(bits: Self::Bits) -> Self {
        native!(Self(_mm256_castsi256_pd(bits.0), _mm256_castsi256_pd(bits.1)))
    }
    #[inline(always)]
    fn splat_bits(bits: u64) -> Self::Bits {
        let half = native!(_mm256_set1_epi64x(bits as i64));
        PairBits(half, half)
    }
    #[inline(always)]
    fn load_bits(from: &BitLanes) -> Self::Bits {
        native!(PairBits(_mm256_load_si256(from.0.as_ptr().cast()), _mm256_load_si256(from.0.as_ptr().add(4).cast())))
    }
    #[inline(always)]
    fn store_bits(bits: Self::Bits, to: &mut BitLanes) {
        native!({
            _mm256_store_si256(to.0.as_mut_ptr().cast(), bits.0);
            _mm256_store_si256(to.0.as_mut_ptr().add(4).cast(), bits.1);
        });
    }
    #[inline(always)]
    fn add_bits(a: Self::Bits, b: Self::Bits) -> Self::Bits {
        native!(PairBits(_mm256_add_epi64(a.0, b.0), _mm256_add_epi64(a.1, b.1)))
    }
    #[inline(always)]
    fn sub_bits(a: Self::Bits, b: Self::Bits) -> Self::Bits {
        native!(PairBits(_mm256_sub_epi64(a.0, b.0), _mm256_sub_epi64(a.1, b.1)))
    }
    #[inline(always)]
    fn and(a: Self::Bits, b: Self::Bits) -> Self::Bits {
        native!(PairBits(_mm256_and_si256(a.0, b.0), _mm256_and_si256(a.1, b.1)))
    }
    #[inline(always)]
    fn or(a: Self::Bits, b: Self::Bits) -> Self::Bits {
        native!(PairBits(_mm256_or_si256(a.0, b.0), _mm256_or_si256(a.1, b.1)))
    }
    #[inline(always)]
    fn xor(a: Self::Bits, b: Self::Bits) -> Self::Bits {
        native!(PairBits(_mm256_xor_si256(a.0, b.0), _mm256_xor_si256(a.1, b.1)))
    }
    #[inline(always)]
    fn shl<const N: u32>(a: Self::Bits) -> Self::Bits {
        native!({
            let count = _mm_cvtsi32_si128(N as i32);
            PairBits(_mm256_sll_epi64(a.0, count), _mm256_sll_epi64(a.1, count))
        })
    }
    #[inline(always)]
    fn shr<const N: u32>(a: Self::Bits) -> Self::Bits {
        native!({
            let count = _mm_cvtsi32_si128(N as i32);
            PairBits(_mm256_srl_epi64(a.0, count), _mm256_srl_epi64(a.1, count))
        })
    }
    #[inline(always)]
    fn add_words(a: Self::Bits, b: Self::Bits) -> Self::Bits {
        native!(PairBits(_mm256_add_epi32(a.0, b.0), _mm256_add_epi32(a.1, b.1)))
    }
    #[inline(always)]
    fn rotate_words<const N: i32, const REST: i32>(a: Self::Bits) -> Self::Bits {
        native!(PairBits(
            _mm256_or_si256(_mm256_slli_epi32::<N>(a.0), _mm256_srli_epi32::<REST>(a.0)),
            _mm256_or_si256(_mm256_slli_epi32::<N>(a.1), _mm256_srli_epi32::<REST>(a.1))
        ))
    }
    #[inline(always)]
    fn transposed(rows: [Self; super::lanes::LANES]) -> [Self; super::lanes::LANES] {
        let [r0, r1, r2, r3, r4, r5, r6, r7] = rows;
        let (low, high) = (square(r0.0, r1.0, r2.0, r3.0), square(r4.0, r5.0, r6.0, r7.0));
        let (low_rest, high_rest) = (square(r0.1, r1.1, r2.1, r3.1), square(r4.1, r5.1, r6.1, r7.1));
        let mut columns = rows;
        for j in 0..4 {
            columns[j] = Self(low[j], high[j]);
            columns[4 + j] = Self(low_rest[j], high_rest[j]);
        }
        columns
    }
}
