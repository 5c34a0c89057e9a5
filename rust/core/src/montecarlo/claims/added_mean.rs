//! Bounds δ, or a second moment, by one mean where the record is added: samples show how far ln f is from linear.
//!
//! f = dP/dR = Σ_x w_x e^{⟨Ĉx,y⟩ − ‖Ĉx‖²/2}, R = N(0, I). With (1 − x)₊ ≤ x^{−λ}λ^λ/(1+λ)^{1+λ} for λ > 0,
//!
//! `δ_add(ε) = E_R (1 − e^ε f)₊ ≤ λ^λ/(1+λ)^{1+λ}·e^{−λε}·E_R f^{−λ}`.
//!
//! Let S = N(−d, I), y = z − d. Then dR/dS = e^{⟨y,d⟩ + ‖d‖²/2}, and E_R f^{−λ} = E_S e^ψ, ψ = −λ ln f + ⟨y, d⟩ +
//! ‖d‖²/2. ln f is convex, so ψ is concave, ν ∝ e^ψ S is more log-concave than S and satisfies the logarithmic Sobolev
//! inequality with constant 1 (Bakry & Émery 1985): KL(S‖ν) ≤ ½E_S‖∇ψ‖². But KL(S‖ν) = ln E_S e^ψ − E_S ψ, so
//! `ln E_S e^ψ ≤ E_S ψ + ½E_S‖∇ψ‖²`. E_S⟨y, d⟩ = −‖d‖²; altogether
//!
//! `δ_add(ε) ≤ λ^λ/(1+λ)^{1+λ}·exp(−λε − ½‖d‖² + E_S D)`, `D = −λ(ln f − ⟨g, z⟩) + ½‖λ∇ ln f − d‖²`,
//!
//! for any d and g. The only property of the sampler that is used is that f is a mixture: b-min-sep sampling, and
//! cyclic Poisson sampling from a random part, whose participations are a renewal process from a random start.
//!
//! **The second moment** of V = (1 − e^ε f)₊ dR/dS, whose mean under S is δ_add(ε): since dR/dS = e^{⟨y,d⟩ + ‖d‖²/2}
//! and (1 − x)₊² ≤ k x^{−λ}, k = (2/(λ+2))²(λ/(λ+2))^λ (the maximum of (1 − x)²x^λ),
//!
//! `E_S V² ≤ k e^{−λε}·E_S e^ψ`, ψ = −λ ln f + 2⟨y, d⟩ + ‖d‖²,
//!
//! and as above, ∇ψ = −λ∇ ln f + 2d and E_S⟨y, d⟩ = −‖d‖²,
//!
//! `E_S V² ≤ (2/(λ+2))²(λ/(λ+2))^λ·exp(−λε − ‖d‖² + E_S D₂)`, `D₂ = −λ(ln f − ⟨g, z⟩) + ½‖λ∇ ln f − 2d‖²`.
//!
//! **Bets.** With g = ∇ ln f(−d) (computed to within an error that is included below, on |z| ≤ 8.5), ln f − ⟨g, z⟩ ≥ ln
//! f(−d) by convexity. ∇ ln f is a mean of Ĉx, which has no negative entries, and neither has d, so that, D = D₁,
//!
//! `D_k ≤ −λ ln f(−d) + ½(λ² max‖Ĉx‖² + k²‖d‖²)`:
//!
//! bets against "E_S D_k is at least this" need no more (see [`super::betting`]). Here d = sm̄, m̄ the mean of Ĉx (see
//! [`crate::montecarlo::tilt`]).
//!
//! **Errors**, all of D_k. The generator: a unit change of coordinate i of z changes D_k by at most λ|∂_i ln f| +
//! λ|g_i| + λΣ_j |H_ij||v_j|, v = λ∇ ln f − kd, and H the covariance of Ĉx, whose entries are at most ĉ²/4 for means in
//! [0, ĉ]: together λ(2Λ + nĉ²‖v‖₁/4), Λ [`Family::lipschitz`]. Rounding: an error of e in ln f changes each
//! posterior probability by 2e of itself, the passes by 8nu, sums over the bands by a few u more.

use std::sync::Arc;

use rayon::prelude::*;

use crate::error::{domain, Result};
use crate::montecarlo::claims::betting::ShardSums;
use crate::montecarlo::family::Family;
use crate::montecarlo::kernels::posterior::Posterior;
use crate::montecarlo::kernels::renewal::{RenewalKernel, RenewalScratch};
use crate::montecarlo::source::{Random, RenewalProposal};
use crate::montecarlo::stream::{Stream, StreamKey, LARGEST_NORMAL, NORMAL_ERROR, SHARD};
use crate::montecarlo::tilt::{shift, statistic};
use crate::run::Run;
use crate::special::{real, UNIT_ROUNDOFF};
use crate::vector::functions::ln;
use crate::vector::{splat, with_vectors, Lanes, Vector, Vectored, LANES};

/// Samples of D for one d.
#[derive(Debug)]
pub struct AddedMean {
    kernel: Arc<RenewalKernel>,
    plain: RenewalProposal,
    /// The entries of d and g, one for each round.
    shift: Vec<f64>,
    tangent: Vec<f64>,
    /// ln f(−d), and ‖d‖².
    log_ratio: f64,
    square: f64,
    /// A bound on the rounding of ln f at y.
    rounding: f64,
}

/// The quantity that a mean bounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moment {
    /// δ_add(ε), by D₁.
    First,
    /// E V² of samples around −d, by D₂.
    Second,
}

impl Moment {
    /// Returns k.
    fn number(self) -> f64 {
        match self {
            Self::First => 1.0,
            Self::Second => 2.0,
        }
    }
}

/// Limits of D for one λ, and of the bound at one ε.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Limits {
    /// The bound is the exponential of this plus E_S D; rounded up.
    pub log_factor: f64,
    /// An upper bound on D.
    pub most: f64,
    /// A bound on the distance of the mean of computed samples of D from E_S D.
    pub error: f64,
}

/// Bets on D for one λ.
#[derive(Debug, Clone, PartialEq)]
pub struct MeanTable {
    /// λ.
    pub exponent: f64,
    /// The quantity that is bounded.
    pub moment: Moment,
    /// Samples of D are cut off at this, which is at least [`Limits::most`] if there are bets: a lower cut-off would
    /// change the mean.
    pub most: f64,
    /// (t, fraction) of each bet against "E D ≥ t".
    pub bets: Vec<(f64, f64)>,
}

/// ln f − ⟨g, z⟩, ‖∇ ln f‖² and ⟨∇ ln f, d⟩ of eight samples.
struct Statistics<V> {
    log: V,
    square: V,
    inner: V,
}

#[derive(Debug, Default)]
struct Buffers {
    scratch: RenewalScratch,
    posterior: Posterior,
    gradient: Vec<Lanes>,
}

impl AddedMean {
    /// Prepares samples around −sm̄, s = `size`.
    ///
    /// # Errors
    /// [`Error::Domain`] for a size that is not positive and finite, and for users with several records.
    pub fn new(kernel: &Arc<RenewalKernel>, size: f64) -> Result<Self> {
        let law = kernel.law();
        if !(size > 0.0 && size < 1e6) || law.records() != 1 {
            return domain("tilt", -size, "negative, of single records");
        }
        let shift: Vec<f64> = kernel.tilt_base().unwrap_or_default().mean.iter().map(|m| size * m).collect();
        let square = shift.iter().map(|x| x * x).sum();
        let furthest = shift.iter().copied().fold(0.0, f64::max) / kernel.largest_mean();
        let rounding = kernel.rounding_at(0.0, furthest);
        let mut samples = Self {
            kernel: Arc::clone(kernel),
            plain: RenewalProposal { law: law.clone(), mean_scale: 0.0 },
            tangent: vec![0.0; shift.len()],
            shift,
            log_ratio: 0.0,
            square,
            rounding,
        };
        let mut buffers = Buffers::default();
        buffers.scratch.all_rows = samples.shift.iter().map(|x| splat(-x)).collect();
        (samples.log_ratio, samples.tangent) = with_vectors(Centre { mean: &samples, buffers: &mut buffers });
        Ok(samples)
    }

    /// Returns the limits for this λ > 0 and this moment at this ε.
    pub fn limits(&self, exponent: f64, moment: Moment, epsilon: f64) -> Limits {
        let (kernel, lambda, k) = (&self.kernel, exponent, moment.number());
        let (n, bands) = (real(self.shift.len()), real(kernel.coefficients.len()));
        let (largest, lipschitz) = (kernel.largest_mean(), kernel.lipschitz());
        let squares = (n + 8.0) * UNIT_ROUNDOFF;
        let longest = (real(kernel.law().most_participations()) * kernel.law().squares[0]).sqrt() * (1.0 + 1e-9);
        let length = k * self.square.sqrt() * (1.0 + 2.0 * squares);
        let half = 0.5 * ((lambda * longest).powi(2) + length * length) * (1.0 + 1e-9);
        let sum = lambda * lipschitz + k * self.shift.iter().sum::<f64>() * (1.0 + 2.0 * squares);
        let entry = largest * (2.0 * self.rounding + 8.0 * bands * (n + 16.0) * UNIT_ROUNDOFF);
        let rounding = lambda * (self.rounding + 2.0 * squares * lipschitz * (LARGEST_NORMAL + length))
            + 2.0 * lambda * sum * entry
            + lambda * n * entry * LARGEST_NORMAL
            + 8.0 * squares * (half + lambda * self.log_ratio.abs() + 1.0);
        let slope = lambda * (2.0 * lipschitz + 0.25 * n * largest * largest * sum);
        let coordinate = NORMAL_ERROR + 8.0 * UNIT_ROUNDOFF * self.shift.iter().copied().fold(0.0, f64::max);
        let error = (rounding + slope * coordinate) * (1.0 + 1e-6);
        let [one, other] = match moment {
            Moment::First => [lambda * libm::log(lambda), -(1.0 + lambda) * libm::log1p(lambda)],
            Moment::Second => {
                [lambda * libm::log(lambda) + 2.0 * std::f64::consts::LN_2, -(2.0 + lambda) * libm::log(2.0 + lambda)]
            }
        };
        let terms = [one, other, -lambda * epsilon, -0.5 * k * self.square * (1.0 - 2.0 * squares)];
        let sizes: f64 = terms.iter().map(|term| term.abs()).sum();
        let log_factor = terms.iter().sum::<f64>() + 16.0 * UNIT_ROUNDOFF * (1.0 + sizes);
        // The error of the computed g, on |z| ≤ 8.5, is included in the rounding. A logarithm of two terms is within 2u
        // of its larger one.
        Limits { log_factor, most: half - lambda * self.log_ratio + error, error }
    }

    /// Computes the statistics of eight samples whose rows are drawn.
    #[inline(always)]
    fn statistics<V: Vector>(&self, inner: V, buffers: &mut Buffers) -> Statistics<V> {
        let (n, coefficients) = (self.shift.len(), &self.kernel.coefficients);
        self.kernel.correlate_rows::<V>(&mut buffers.scratch);
        let log = buffers.posterior.backward::<V>(self.kernel.law(), &buffers.scratch.all_sums);
        let (means, _) = buffers.posterior.forward::<V>(self.kernel.law());
        buffers.gradient.resize(n, splat(0.0));
        let (mut square, mut along) = (V::splat(0.0), V::splat(0.0));
        for (j, row) in buffers.gradient.iter_mut().enumerate() {
            let reach = coefficients.len().min(j + 1);
            let mut sum = V::splat(0.0);
            for (c, mean) in coefficients[..reach].iter().zip(means[j + 1 - reach..=j].iter().rev()) {
                sum = V::splat(*c).mul_add(V::load(mean), sum);
            }
            square = sum.mul_add(sum, square);
            along = sum.mul_add(V::splat(self.shift[j]), along);
            sum.store(row);
        }
        Statistics { log: V::load(&log).sub(inner), square, inner: along }
    }
}

/// Computes ln f(−d) and ∇ ln f there.
struct Centre<'a> {
    mean: &'a AddedMean,
    buffers: &'a mut Buffers,
}

impl Vectored for Centre<'_> {
    type Output = (f64, Vec<f64>);

    #[inline(always)]
    fn run<V: Vector>(self) -> Self::Output {
        let statistics = self.mean.statistics::<V>(V::splat(0.0), self.buffers);
        let mut log = splat(0.0);
        statistics.log.store(&mut log);
        (log[0], self.buffers.gradient.iter().map(|row| row[0]).collect())
    }
}

struct Shard<'a> {
    mean: &'a AddedMean,
    tables: &'a [MeanTable],
    key: StreamKey,
    index: u64,
    buffers: &'a mut Buffers,
    run: &'a Run,
}

impl Vectored for Shard<'_> {
    type Output = Result<Vec<ShardSums>>;

    #[inline(always)]
    fn run<V: Vector>(self) -> Self::Output {
        let Self { mean, tables, key, index, buffers, run } = self;
        let mut stream = Stream::new(key, index);
        let mut wealth: Vec<Vec<Lanes>> = tables.iter().map(|table| vec![splat(0.0); table.bets.len()]).collect();
        let mut sums = vec![(splat(0.0), splat(0.0)); tables.len()];
        for _ in 0..SHARD / LANES {
            run.check()?;
            let mut source = Random { stream: &mut stream, proposal: &mean.plain };
            mean.kernel.draw_rows::<V, _>(&mut source, &mut buffers.scratch);
            let inner = statistic::<V>(&buffers.scratch.all_rows, &mean.tangent);
            shift::<V>(&mut buffers.scratch.all_rows, &mean.shift, -1.0);
            let statistics = mean.statistics::<V>(inner, buffers);
            for ((table, wealth), (value, square)) in tables.iter().zip(&mut wealth).zip(&mut sums) {
                let (lambda, k) = (V::splat(table.exponent), table.moment.number());
                let inner = V::splat(k).mul(statistics.inner);
                let half = lambda.mul(statistics.square).mul(V::splat(0.5)).sub(inner).sub(statistics.log);
                let d = lambda.mul_add(half, V::splat(0.5 * k * k * mean.square)).min(V::splat(table.most));
                V::load(value).add(d).store(value);
                d.mul_add(d, V::load(square)).store(square);
                for (&(threshold, fraction), wealth) in table.bets.iter().zip(wealth) {
                    let growth = ln(V::splat(fraction).mul_add(V::splat(threshold).sub(d), V::splat(1.0)));
                    V::load(wealth).add(growth).store(wealth);
                }
            }
        }
        let total = |lanes: &Lanes| lanes.0.iter().sum::<f64>();
        let finished = wealth.iter().zip(&sums).map(|(wealth, (value, square))| ShardSums {
            log_wealth: wealth.iter().map(total).collect(),
            value: total(value),
            square: total(square),
        });
        Ok(finished.collect())
    }
}

/// Runs shards `first`, …, `first + count − 1` and returns, for each in order, the sums of D for each table.
///
/// # Errors
/// [`Error::Domain`] for a λ that is not positive and finite, and for a bet that could lose more than its wealth;
/// [`Error::Cancelled`]; [`Error::TimeLimit`].
pub fn simulate(
    mean: &AddedMean,
    tables: &[MeanTable],
    key: StreamKey,
    first: u64,
    count: u64,
    run: &Run,
) -> Result<Vec<Vec<ShardSums>>> {
    for table in tables {
        if !(table.exponent > 0.0 && table.exponent.is_finite()) {
            return domain("exponent", table.exponent, "positive");
        }
        if !table.bets.is_empty() && table.most < mean.limits(table.exponent, table.moment, 0.0).most {
            return domain("largest value", table.most, "at least what D may be");
        }
        for &(threshold, fraction) in &table.bets {
            if !(fraction >= 0.0 && fraction * (table.most - threshold) < 1.0 && threshold.is_finite()) {
                let allowed = "at least 0, and less than 1/(largest value − threshold)";
                return domain("betting fraction", fraction, allowed);
            }
        }
    }
    (first..first + count)
        .into_par_iter()
        .map_init(Buffers::default, |buffers, index| with_vectors(Shard { mean, tables, key, index, buffers, run }))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::replicas::enumeration::{from_random_parts, mean as mean_of, patterns};

    fn kernel(coefficients: &[f64], n: usize, b: usize, p: f64, warm: bool) -> Arc<RenewalKernel> {
        Arc::new(RenewalKernel::new(coefficients.to_vec(), n, b, p, warm).expect("valid"))
    }

    /// Returns ln f and ∇ ln f at y, by enumerating all patterns.
    fn enumerated(kernel: &RenewalKernel, y: &[f64]) -> (f64, Vec<f64>) {
        let law = kernel.law();
        let n = law.iterations();
        let (mut total, mut gradient) = (0.0, vec![0.0; n]);
        let (b, p) = (law.min_separation, law.sampling_probability);
        let rounds = |pattern: &[usize]| (0..n).filter(|&i| pattern[i] == 1).collect();
        let all: Vec<(Vec<usize>, f64)> = if law.phased {
            from_random_parts(b, p, n).iter().map(|(pattern, q)| (rounds(pattern), *q)).collect()
        } else {
            patterns(b, p, law.warm, n)
        };
        for (taken, q) in all {
            let mean = mean_of(&kernel.coefficients, &taken, n);
            let exponent: f64 = mean.iter().zip(y).map(|(m, y)| m * y - 0.5 * m * m).sum();
            let weight = q * exponent.exp();
            total += weight;
            gradient.iter_mut().zip(&mean).for_each(|(g, m)| *g += weight * m);
        }
        (total.ln(), gradient.iter().map(|g| g / total).collect())
    }

    #[test]
    fn statistics_are_those_of_all_patterns() {
        let phased = Arc::new(RenewalKernel::with_phases(vec![0.8, 0.5], 7, 3, 0.4).expect("valid"));
        let renewals = [(2, true), (3, false)].map(|(b, warm)| kernel(&[0.8, 0.5], 7, b, 0.3, warm));
        for kernel in renewals.into_iter().chain([phased]) {
            let mean = AddedMean::new(&kernel, 2.0).expect("valid");
            let (log, gradient) = enumerated(&kernel, &mean.shift.iter().map(|x| -x).collect::<Vec<_>>());
            assert!((mean.log_ratio - log).abs() < 1e-13);
            assert!(mean.tangent.iter().zip(&gradient).all(|(x, y)| (x - y).abs() < 1e-13));
            let y: Vec<f64> = (0..7u32).map(|i| f64::from((i * 5) % 7) / 2.0 - 1.5).collect();
            let (log, gradient) = enumerated(&kernel, &y);
            let mut buffers = Buffers::default();
            buffers.scratch.all_rows = y.iter().map(|x| splat(*x)).collect();
            let found = mean.statistics::<crate::vector::Portable>(Vector::splat(0.0), &mut buffers);
            let lane = |v: crate::vector::Portable| {
                let mut lanes = splat(0.0);
                v.store(&mut lanes);
                lanes[3]
            };
            assert!((lane(found.log) - log).abs() < 1e-13);
            assert!((lane(found.square) - gradient.iter().map(|g| g * g).sum::<f64>()).abs() < 1e-13);
            let along: f64 = gradient.iter().zip(&mean.shift).map(|(g, d)| g * d).sum();
            assert!((lane(found.inner) - along).abs() < 1e-13);
        }
    }

    /// Returns δ_add(ε) of one round by a trapezoidal sum.
    fn exact(c: f64, p: f64, epsilon: f64) -> f64 {
        let step = 1e-3;
        let values = (-12_000..12_000).map(|k| {
            let y = f64::from(k) * step;
            let f = 1.0 - p + p * (c * y - 0.5 * c * c).exp();
            (1.0 - epsilon.exp() * f).max(0.0) * (-0.5 * y * y).exp()
        });
        values.sum::<f64>() * step / (2.0 * std::f64::consts::PI).sqrt()
    }

    #[test]
    fn the_bound_is_above_delta_and_no_sample_is_above_the_largest() {
        let key = StreamKey { seed: 5, purpose: 1, candidate: 1, direction: 1 };
        for (c, p, epsilon) in [(0.7, 0.5, 0.2), (1.2, 0.8, 0.8), (0.3, 0.9, 0.1)] {
            let kernel = kernel(&[c], 1, 1, p, false);
            let delta = exact(c, p, epsilon);
            let mut nearest = f64::INFINITY;
            for size in [0.5, 1.5, 3.0, 6.0] {
                let mean = AddedMean::new(&kernel, size).expect("valid");
                for exponent in [0.5, 1.0, 3.0, 6.0] {
                    let limits = mean.limits(exponent, Moment::First, epsilon);
                    let table = MeanTable { exponent, moment: Moment::First, most: f64::INFINITY, bets: vec![] };
                    let held = MeanTable { exponent, moment: Moment::First, most: limits.most, bets: vec![] };
                    let sums = simulate(&mean, &[table, held], key, 0, 16, &Run::default()).expect("valid");
                    // The limits cut off no sample.
                    assert!(sums.iter().all(|shard| shard[0] == shard[1]));
                    let count = real(16 * SHARD);
                    let value = sums.iter().map(|shard| shard[0].value).sum::<f64>() / count;
                    let square = sums.iter().map(|shard| shard[0].square).sum::<f64>() / count;
                    let spread = ((square - value * value).max(0.0) / count).sqrt();
                    let bound = (limits.log_factor + value + 5.0 * spread).exp();
                    assert!(bound >= delta, "{c} {p} {size} {exponent}: {bound} is below {delta}");
                    assert!(limits.error < 1e-9, "{limits:?}");
                    nearest = nearest.min(bound / delta);
                }
            }
            assert!(nearest < 12.0, "{nearest}");
        }
    }

    /// Returns E V² of samples around −d, d = s·cp, for one round, by a trapezoidal sum.
    fn exact_square(c: f64, p: f64, epsilon: f64, shift: f64) -> f64 {
        let step = 1e-3;
        let values = (-12_000..12_000).map(|k| {
            let normal = f64::from(k) * step;
            let y = normal - shift;
            let ratio = 1.0 - p + p * (c * y - 0.5 * c * c).exp();
            let weight = (y * shift + 0.5 * shift * shift).exp();
            ((1.0 - epsilon.exp() * ratio).max(0.0) * weight).powi(2) * (-0.5 * normal * normal).exp()
        });
        values.sum::<f64>() * step / (2.0 * std::f64::consts::PI).sqrt()
    }

    #[test]
    fn the_bound_on_the_second_moment_is_above_it() {
        let key = StreamKey { seed: 5, purpose: 1, candidate: 1, direction: 1 };
        for (c, p, epsilon) in [(0.7, 0.5, 0.2), (1.2, 0.8, 0.8), (0.3, 0.9, 0.1)] {
            let kernel = kernel(&[c], 1, 1, p, false);
            let mut nearest = f64::INFINITY;
            for size in [0.5, 1.5, 3.0, 6.0] {
                let mean = AddedMean::new(&kernel, size).expect("valid");
                let square = exact_square(c, p, epsilon, mean.shift[0]);
                for exponent in [0.5, 1.0, 3.0, 6.0, 12.0] {
                    let limits = mean.limits(exponent, Moment::Second, epsilon);
                    let table = |most| MeanTable { exponent, moment: Moment::Second, most, bets: vec![] };
                    let tables = [table(f64::INFINITY), table(limits.most)];
                    let sums = simulate(&mean, &tables, key, 0, 16, &Run::default()).expect("valid");
                    assert!(sums.iter().all(|shard| shard[0] == shard[1]));
                    let count = real(16 * SHARD);
                    let value = sums.iter().map(|shard| shard[0].value).sum::<f64>() / count;
                    let second = sums.iter().map(|shard| shard[0].square).sum::<f64>() / count;
                    let spread = ((second - value * value).max(0.0) / count).sqrt();
                    let bound = (limits.log_factor + value + 5.0 * spread).exp();
                    assert!(bound >= square, "{c} {p} {size} {exponent}: {bound} is below {square}");
                    nearest = nearest.min(bound / square);
                }
            }
            assert!(nearest < 12.0, "{nearest}");
        }
    }

    #[test]
    fn what_it_is_not_about_is_refused() {
        let own = kernel(&[0.8, 0.5], 7, 2, 0.3, true);
        assert!(AddedMean::new(&own, 0.0).is_err());
        assert!(AddedMean::new(&own, f64::NAN).is_err());
        let users = Arc::new(RenewalKernel::of_users(vec![0.8], 6, 3, 0.3, 2, true).expect("valid"));
        assert!(AddedMean::new(&users, 1.0).is_err());
        let mean = AddedMean::new(&own, 1.0).expect("valid");
        let key = StreamKey { seed: 5, purpose: 1, candidate: 1, direction: 1 };
        let run = |exponent, fraction| {
            let table = MeanTable { exponent, moment: Moment::First, most: 30.0, bets: vec![(28.0, fraction)] };
            simulate(&mean, &[table], key, 0, 1, &Run::default())
        };
        assert!(mean.limits(1.0, Moment::First, 0.0).most < 30.0);
        assert!(run(1.0, 0.49).is_ok());
        assert!(run(1.0, 0.5).is_err());
        assert!(run(0.0, 0.1).is_err());
        assert!(run(f64::NAN, 0.1).is_err());
        // A lower cut-off would give a lower mean.
        let low = MeanTable {
            exponent: 1.0,
            moment: Moment::First,
            most: 0.9 * mean.limits(1.0, Moment::First, 0.0).most,
            bets: vec![(0.0, 0.1)],
        };
        assert!(simulate(&mean, &[low], key, 0, 1, &Run::default()).is_err());
    }
}
