//! The choice of the processor's instructions at run time.
//!
//! A kernel is written once, over any [`super::Vector`], and compiled for AVX-512, for AVX2 with FMA and for any machine;
//! [`with_vectors`] runs the copy that the processor can execute. Every operation here rounds as IEEE 754 says and
//! nothing is reordered, so all copies give the same bits. (Without FMA instructions the fused operations are emulated:
//! the same numbers, slowly.)

#![allow(unsafe_code)]

use super::lanes::{Kind, Vectored, Vectors};
use super::portable::portable;
#[cfg(target_arch = "x86_64")]
use super::x86;

impl Vectors {
    /// Runs `work` with these vectors.
    pub fn run<W: Vectored>(self, work: W) -> W::Output {
        match self.0 {
            // SAFETY: vectors are used only where the processor was found to have them, and only they give this value.
            #[cfg(target_arch = "x86_64")]
            Kind::Wide => unsafe { x86::avx512(work) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            Kind::Pair => unsafe { x86::avx2(work) },
            Kind::Portable => portable(work),
        }
    }
}

/// Runs `work` with the widest vectors that the processor has.
pub fn with_vectors<W: Vectored>(work: W) -> W::Output {
    #[cfg(target_arch = "x86_64")]
    {
        if x86::has_avx512() {
            // SAFETY: the processor was just found to support every feature that the function is compiled for.
            return unsafe { x86::avx512(work) };
        }
        if x86::has_avx2() {
            // SAFETY: as above, for AVX2.
            return unsafe { x86::avx2(work) };
        }
    }
    portable(work)
}

/// Runs `work` on the named copy (see [`instruction_sets`]); `None` where this processor cannot run it.
pub fn with_instruction_set<W: Vectored>(name: &str, work: W) -> Option<W::Output> {
    match name {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the guard of this arm has checked the features.
        "AVX-512" if x86::has_avx512() => Some(unsafe { x86::avx512(work) }),
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the guard of this arm has checked the features.
        "AVX2" if x86::has_avx2() => Some(unsafe { x86::avx2(work) }),
        "portable" => Some(portable(work)),
        _ => None,
    }
}

/// Returns the names of the copies that this processor can run; the first one is the default.
pub fn instruction_sets() -> Vec<&'static str> {
    let mut names = Vec::new();
    #[cfg(target_arch = "x86_64")]
    {
        if x86::has_avx512() {
            names.push("AVX-512");
        }
        if x86::has_avx2() {
            names.push("AVX2");
        }
    }
    names.push("portable");
    names
}

#[cfg(test)]
#[allow(clippy::needless_range_loop, clippy::inline_always)] // a matrix, and a kernel
mod tests {
    use super::{instruction_sets, with_instruction_set, Vectored};
    use crate::vector::{Lanes, Vector, LANES};

    struct Transposed([Lanes; LANES]);

    impl Vectored for Transposed {
        type Output = [Lanes; LANES];
        #[inline(always)]
        fn run<V: Vector>(self) -> [Lanes; LANES] {
            let mut rows = [V::splat(0.0); LANES];
            for i in 0..LANES {
                rows[i] = V::load(&self.0[i]);
            }
            let mut columns = self.0;
            for (vector, column) in V::transposed(rows).into_iter().zip(&mut columns) {
                vector.store(column);
            }
            columns
        }
    }

    #[test]
    fn rows_and_columns_are_exchanged() {
        let number = |i: usize, j: usize| f64::from(u8::try_from(10 * i + j).unwrap());
        let rows = std::array::from_fn(|i| Lanes(std::array::from_fn(|j| number(i, j))));
        for name in instruction_sets() {
            let columns = with_instruction_set(name, Transposed(rows)).unwrap();
            for i in 0..LANES {
                for j in 0..LANES {
                    assert!(columns[j][i].to_bits() == rows[i][j].to_bits(), "{name}: {i}, {j}");
                }
            }
        }
    }
}
