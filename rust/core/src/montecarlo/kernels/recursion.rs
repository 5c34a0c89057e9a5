//! The recursion f_i = (1 − p) f_{i+1} + φ_i f_{i+b} over all rounds, from the last to the first.
//!
//! The kernels for rounds share it: [`backwards`] goes through the rounds, block by block and [`SETTLED`] at a time,
//! with the products u_i = ⟨ĉ_i, ŷ⟩ of [`Products`]. The kernels differ in how a round makes the likelihood grow, which
//! is their [`Growth`]: by a participation's exponent for several densities of one mechanism ([`super::renewal`]), by
//! one whose squared norm is a bound ([`EnclosedGrowth`], for [`super::overlapping`]), or by the exponent after
//! truncation ([`crate::montecarlo::truncation::truncated`]).
//!
//! Eight samples run side by side in the linear domain ([`super::ring`]). If the numbers of one of them leave this
//! domain, all are recomputed in logarithms ([`super::logarithms`]); [`sampled`] draws them again for that.

use crate::montecarlo::family::{Purpose, Ratios};
use crate::montecarlo::kernels::logarithms::log_ratio;
use crate::montecarlo::kernels::products::{AtHand, Products};
use crate::montecarlo::kernels::ring::{Ring, Track, SETTLED};
use crate::montecarlo::stream::Stream;
use crate::participation::renewal::Renewal;
use crate::vector::{splat, Lanes, Vector, Vectored, LANES};

/// How the rounds make the likelihood grow, for one density or several.
pub(in crate::montecarlo) trait Growth {
    /// Advances by the rounds `first + count − 1`, …, `first`, whose products are given; further products are not used.
    /// Returns false if a number leaves the linear domain. Must be `#[inline(always)]`.
    fn advance<V: Vector>(&mut self, first: usize, count: usize, products: &[V; SETTLED]) -> bool;
}

/// Goes through n rounds, the last first; returns false, without finishing, if a number leaves the linear domain.
#[inline(always)]
pub(in crate::montecarlo) fn backwards<V: Vector, P: Products, G: Growth>(
    n: usize,
    products: &mut P,
    growth: &mut G,
) -> bool {
    let block = products.block();
    for start in (0..n.div_ceil(block)).rev().map(|k| k * block) {
        let length = block.min(n - start);
        let sums = products.take::<V>(start, length);
        for group in (0..length.div_ceil(SETTLED)).rev().map(|k| k * SETTLED) {
            // These are plain loops because closures are not certain to be inlined, and uninlined vector code is slow.
            let near = &sums[group..group + SETTLED];
            let mut products = [V::splat(0.0); SETTLED];
            for k in 0..SETTLED {
                products[k] = V::load(&near[k]);
            }
            if !growth.advance::<V>(start + group, SETTLED.min(length - group), &products) {
                return false;
            }
        }
    }
    true
}

/// Returns the squared norms of [`SETTLED`] rounds; beyond the last round its norm is repeated.
#[inline(always)]
pub(in crate::montecarlo) fn near(squares: &[f64], first: usize) -> [f64; SETTLED] {
    let mut norms = [0.0; SETTLED];
    for k in 0..SETTLED {
        norms[k] = squares[(first + k).min(squares.len() - 1)];
    }
    norms
}

/// A density with separate squared norms: e^{κu_i − κ²s_i/2}, `factor`·product = κu_i.
struct EnclosedGrowth<'a> {
    track: Track<'a>,
    factor: f64,
    scale: f64,
    squares: &'a [f64],
}

impl Growth for EnclosedGrowth<'_> {
    #[inline(always)]
    fn advance<V: Vector>(&mut self, first: usize, count: usize, products: &[V; SETTLED]) -> bool {
        let squares = near(self.squares, first);
        let mut own = *products;
        for k in 0..SETTLED {
            own[k] = products[k].mul_add(V::splat(self.factor), V::splat(-0.5 * self.scale * squares[k]));
        }
        self.track.participate(first, count, own, (self.scale, &squares))
    }
}

/// Returns ln Σ_x w_x exp(κΣ x_i u_i − κ²Σ x_i² s_i/2) of eight samples whose products are all given: w and whether it
/// starts warm from `law`, s from `squares`, (factor, κ) with factor·`sums`_i = κu_i. `sums` is as long as the rounds,
/// rounded up to [`SETTLED`].
#[inline(always)]
pub(super) fn log_density<V: Vector>(
    law: &Renewal,
    (factor, mean_scale): (f64, f64),
    squares: &[f64],
    sums: &[Lanes],
    ring: &mut Ring,
) -> Lanes {
    V::apart(LogDensity { law, factor, mean_scale, squares, sums, ring })
}

struct LogDensity<'a> {
    law: &'a Renewal,
    factor: f64,
    mean_scale: f64,
    squares: &'a [f64],
    sums: &'a [Lanes],
    ring: &'a mut Ring,
}

impl Vectored for LogDensity<'_> {
    type Output = Lanes;

    #[inline(always)]
    fn run<V: Vector>(self) -> Lanes {
        let Self { law, factor, mean_scale, squares, sums, ring } = self;
        let scale = mean_scale * mean_scale;
        let mut growth = EnclosedGrowth { track: Track::new(law, ring), factor, scale, squares };
        if backwards::<V, _, _>(law.iterations(), &mut AtHand(sums), &mut growth) {
            return growth.track.total::<V>();
        }
        let mut out = splat(0.0);
        for lane in 0..LANES {
            out[lane] = log_ratio(law, squares, scale, |i| sums[i][lane].mul_add(factor, -0.5 * scale * squares[i]));
        }
        out
    }
}

/// Samples whose log densities are computed by [`backwards`]: drawn from a stream, repeatedly if needed.
pub(in crate::montecarlo) trait Recursive {
    /// The type of the proposal's density.
    type Density: Copy;
    /// Buffers of one worker.
    type Scratch;
    /// Returns the log densities of the stream's next eight samples, with the proposal's if requested; `None` if a
    /// number leaves the linear domain. Must be `#[inline(always)]`.
    fn linear<V: Vector>(
        &self,
        asked: Option<Self::Density>,
        stream: &mut Stream,
        scratch: &mut Self::Scratch,
    ) -> Option<Ratios>;
    /// Returns the same for any range.
    fn logarithmic<V: Vector>(
        &self,
        asked: Option<Self::Density>,
        stream: &mut Stream,
        scratch: &mut Self::Scratch,
    ) -> Ratios;
    /// Returns these samples with weights of 1, if V is 0 for all of them.
    fn unweighted(&self, purpose: Purpose, ratios: &Ratios) -> Option<Ratios>;
}

/// Draws eight samples, with the density of the proposal where it is `evaluated`.
///
/// The proposal's recursion is as long as the mechanism's: it is left out first, and samples with a positive V are
/// drawn again.
#[inline(always)]
pub(in crate::montecarlo) fn sampled<V: Vector, R: Recursive>(
    samples: &R,
    evaluated: Option<R::Density>,
    purpose: Purpose,
    stream: &mut Stream,
    scratch: &mut R::Scratch,
) -> Ratios {
    let mut asked = evaluated.filter(|_| purpose.least == f64::NEG_INFINITY);
    loop {
        let before = stream.clone();
        match samples.linear::<V>(asked, stream, scratch) {
            Some(own) if asked.is_none() && evaluated.is_some() => {
                if let Some(worthless) = samples.unweighted(purpose, &own) {
                    return worthless;
                }
                (*stream, asked) = (before, evaluated);
            }
            Some(found) => return found,
            None => {
                *stream = before;
                return samples.logarithmic::<V>(evaluated, stream, scratch);
            }
        }
    }
}
