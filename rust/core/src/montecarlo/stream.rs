//! Streams of random numbers: one for each shard, a pure function of (seed, purpose, candidate, direction, shard).
//!
//! A shard's eight lanes are eight xoshiro256++ generators (Blackman & Vigna 2021) whose states are consecutive output
//! of ChaCha20 keyed with the coordinates of the shard. Streams of different coordinates are therefore as independent
//! as ChaCha20 is a random function, whatever the number of threads, and a run can be continued at any shard.

use rand_chacha::rand_core::{Rng, SeedableRng};
use rand_chacha::ChaCha20Rng;

use crate::vector::functions::{ln, on_circle, unit};
use crate::vector::{BitLanes, Vector, LANES};

/// What a stream is for: all coordinates but the shard's index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StreamKey {
    /// The seed, from the operating system's entropy or the document.
    pub seed: u64,
    /// The number of what the samples are used for; no two uses have the same one.
    pub purpose: u32,
    /// The candidate that the samples test.
    pub candidate: u32,
    /// 0 for remove, 1 for add.
    pub direction: u32,
}

/// The number of samples in a shard, which has its own stream.
pub const SHARD: usize = 1024;

/// The largest |z| that a stream returns: √(2·52·ln 2) = 8.4905…, rounded up.
pub const LARGEST_NORMAL: f64 = 8.5;

/// A bound on E|z̃ − z| where z̃ is a number that the stream returns and z an exactly normal one that it is coupled
/// with.
///
/// Box–Muller takes R = √(−2 ln u) and an angle. With u on the grid of multiples of 2⁻⁵², coupled with an exact uniform
/// number in the cell below it, |R̃ − R| is at most the increase of R over the cell, and the expectation telescopes to
/// 2⁻⁵²·R(2⁻⁵²) plus the part of the last, infinite cell: below 2⁻⁵²·8.7 = 17.4u. It moves a coordinate by |cos θ| or
/// |sin θ| of that, the angle independent of it: by 2/π on average, 11.1u. The angle's grid of 2⁻⁵⁴ turns moves z by at
/// most R·2π·2⁻⁵⁴, E R < 1.26: 4u. Rounding of ln, √, sin, cos and the product is at most 12u·E|z| < 10u. Together less
/// than 26u, so that 6u of 2⁻⁴⁸ = 32u remain for callers that add a mean.
pub const NORMAL_ERROR: f64 = 1.0 / 281_474_976_710_656.0;

/// The generators of one shard, one for each lane.
#[derive(Debug, Clone)]
pub struct Stream {
    state: [BitLanes; 4],
}

impl Stream {
    /// Returns the stream of one shard.
    pub fn new(key: StreamKey, shard: u64) -> Self {
        let mut bytes = [0u8; 32];
        bytes[..8].copy_from_slice(&key.seed.to_le_bytes());
        bytes[8..12].copy_from_slice(&key.purpose.to_le_bytes());
        bytes[12..16].copy_from_slice(&key.candidate.to_le_bytes());
        bytes[16..20].copy_from_slice(&key.direction.to_le_bytes());
        bytes[20..].copy_from_slice(b"pyaccount v1");
        let mut generator = ChaCha20Rng::from_seed(bytes);
        generator.set_stream(shard);
        let mut state = [BitLanes::default(); 4];
        for lane in 0..LANES {
            for word in &mut state {
                word.0[lane] = generator.next_u64();
            }
        }
        Self { state }
    }

    /// Loads the generators into registers, for a while of work; [`Stream::put_back`] ends it.
    #[inline(always)]
    pub fn take<V: Vector>(&self) -> Drawing<V> {
        let [s0, s1, s2, s3] = &self.state;
        Drawing { state: [V::load_bits(s0), V::load_bits(s1), V::load_bits(s2), V::load_bits(s3)] }
    }

    /// Stores the state that `drawing` reached.
    #[allow(clippy::needless_pass_by_value)] // it ends here
    #[inline(always)]
    pub fn put_back<V: Vector>(&mut self, drawing: Drawing<V>) {
        for (word, to) in drawing.state.into_iter().zip(&mut self.state) {
            V::store_bits(word, to);
        }
    }
}

/// A stream's generators while numbers are drawn.
#[allow(missing_debug_implementations)] // registers
pub struct Drawing<V: Vector> {
    state: [V::Bits; 4],
}

impl<V: Vector> Drawing<V> {
    /// Returns 64 random bits for each lane: one step of xoshiro256++.
    #[inline(always)]
    pub fn bits(&mut self) -> V::Bits {
        let [mut s0, mut s1, mut s2, mut s3] = self.state;
        let out = V::add_bits(V::rotate::<23, 41>(V::add_bits(s0, s3)), s0);
        let t = V::shl::<17>(s1);
        s2 = V::xor(s2, s0);
        s3 = V::xor(s3, s1);
        s1 = V::xor(s1, s2);
        s0 = V::xor(s0, s3);
        s2 = V::xor(s2, t);
        s3 = V::rotate::<45, 19>(s3);
        self.state = [s0, s1, s2, s3];
        out
    }

    /// Returns a uniform number in (0, 1] for each lane: a multiple of 2⁻⁵².
    #[inline(always)]
    pub fn uniform(&mut self) -> V {
        V::splat(2.0).sub(unit(self.bits()))
    }

    /// Returns two standard normal numbers for each lane.
    ///
    /// Box–Muller: √(−2 ln u) at a uniform angle; see [`on_circle`].
    #[inline(always)]
    pub fn normals(&mut self) -> (V, V) {
        let log = ln(self.uniform());
        let radius = V::splat(-2.0).mul(log).sqrt();
        on_circle(radius, self.bits())
    }
}
