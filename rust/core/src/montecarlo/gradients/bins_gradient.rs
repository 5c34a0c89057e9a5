//! The derivatives of δ in the Gram matrix of the modes, for bins, estimated from the samples that estimate δ.
//!
//! All that a sample needs of the matrix is Γ, the Gram matrix of the modes in units of σ
//! ([`crate::montecarlo::kernels::bins`]), so δ is a function of Γ, and derivatives in the parameters of C follow by
//! the chain rule: Γ_st = ⟨m_s, m_t⟩/σ² gives ∂δ/∂m_s = 2σ⁻² Σ_t (∂δ/∂Γ)_st m_t, and σ·∂δ/∂σ = −2⟨Γ, ∂δ/∂Γ⟩.
//!
//! **Samples that move.** With Γ = LLᵀ a sample is v = Lw + κΓ_s + θh, h = Γπ and π the bins' probabilities. Normal
//! numbers w and bins s are functions of the stream, and of the laws of the bins; these laws are the ones that the
//! proposals have at the Gram matrix Γ₀ of the samples' origin, and do not change with Γ. The density of a component
//! relative to R,
//!
//! `g_k = e^{θt − θ²q/2} Σ_t ω_t e^{κ(v_t − θh_t) − κ²Γ_tt/2}`, t = ⟨π, v⟩, q = ⟨π, Γπ⟩, ω the law its bins are drawn
//! from
//!
//! (κ = 1 for tilts of P, without the sum for tilts of R), is a smooth function of Γ and v, and so is ln f. V = (f −
//! e^ε)_+/g or (1 − e^ε f)_+/g is therefore a continuous function of Γ for fixed w and s, its mean is δ for every Γ,
//! and this module returns the exact derivative of the estimate wherever no sample lies on the boundary:
//!
//! `dV = S d ln f − V d ln g`, S = 1{V > 0}·f/g, or −1{V > 0}·e^ε f/g where the record is added,
//!
//! with d ln f = Σ_t γ_t (dv_t − dΓ_tt/2), γ the posterior law of the bin, and likewise for each g_k. The proposals
//! move along with Γ: weights do not spread, and only the laws of the bins become outdated. (Outcomes that do not move,
//! as for rounds, would have to be drawn whole, n numbers in place of T.)
//!
//! **The factor.** dv contains dL·w, L = chol(Γ): from L̄ = ∂δ/∂L follows Γ̄ = L⁻ᵀ Φ(LᵀL̄) L⁻¹, made symmetric, Φ the
//! lower triangle with half the diagonal (Murray 2016, arXiv:1602.07527). The amount that the factorisation adds to the
//! diagonal is treated as constant: some 1e-12 of the derivative.
//!
//! None of these numbers is a bound. Derivatives have no values for single samples: their standard errors come from the
//! spread between shards, which are identically distributed.

use crate::error::{domain, Result};
use crate::montecarlo::family::{Family, Kernel};
use crate::montecarlo::gradients::estimates::{
    estimate, in_order, merge, spread, value, Estimate, GradientEstimate, GradientJob, Moments,
};
use crate::montecarlo::kernels::bins::{BinsKernel, BinsScratch};
use crate::montecarlo::proposals::components::{Component, UNITS};
use crate::montecarlo::stream::Stream;
use crate::montecarlo::tilt::{cumulative, shift};
use crate::montecarlo::weight_bounds::Direction;
use crate::run::Run;
use crate::special::{log_sum_exp, real};
use crate::vector::functions::{exp, ln};
use crate::vector::{splat, with_vectors, Lanes, Vector, Vectored, LANES};

/// A component: its tilt and mean scale, and the law of the bins that are drawn for it.
struct Frozen {
    theta: f64,
    /// κ; 0 where R is tilted.
    mean_scale: f64,
    share: f64,
    /// ω, cumulative; empty where no bin is drawn.
    cumulative: Vec<f64>,
    /// The exponents' constants: ln ω_t − κ²Γ_tt/2 − κθh_t.
    constants: Vec<f64>,
    /// e^{constant − that of ln f}, each divided by the largest, and the logarithm of the largest: where κ = 1 and
    /// these numbers are of ordinary size, the component's terms are those of ln f times these.
    ratios: Option<(Vec<f64>, f64)>,
    /// −θ²q/2.
    norm: f64,
}

/// Ratios of terms whose logarithms differ by no more than this are of ordinary size: terms themselves are at least
/// e^−700.
const ORDINARY: f64 = 200.0;

/// The data that all shards share.
struct Setting<'a> {
    job: &'a GradientJob,
    kernel: &'a BinsKernel,
    components: Vec<Frozen>,
    /// π, h = Γπ and q.
    weights: Vec<f64>,
    overlap: Vec<f64>,
    square: f64,
}

/// The result of a shard: moments of each component, and Σ ∂V/∂Γ row by row.
type Left = (Vec<Moments>, Vec<f64>);

/// Returns estimates for a job whose mechanism and origin have these kernels.
///
/// # Errors
/// [`Error::Domain`] for proposals that the origin refuses; [`Error::Cancelled`]; [`Error::TimeLimit`].
pub(super) fn simulate(
    job: &GradientJob,
    (kernel, origin): (&BinsKernel, &BinsKernel),
    first: u64,
    count: u64,
    run: &Run,
) -> Result<GradientEstimate> {
    let setting = Setting::new(job, kernel, origin)?;
    let entries = kernel.law().squares.len().pow(2);
    let mut moments = vec![Moments::default(); job.components.len()];
    // These are, for each entry, Σ D, Σ D² and Σ D·N over the shards, where N is the shard's value of σ·∂δ/∂σ: −2⟨Γ,
    // D⟩.
    let (mut sums, mut along) = (vec![[0.0; 3]; entries], 0.0);
    let shard = |index, buffers: &mut Buffers| with_vectors(Shard { setting: &setting, index, buffers, run });
    in_order(first, count, shard, |(more, derivatives): Left| {
        merge(&mut moments, &more);
        let own = -2.0 * kernel.gram().iter().zip(&derivatives).map(|(g, d)| g * d).sum::<f64>();
        along += own;
        for (sum, one) in sums.iter_mut().zip(&derivatives) {
            sum[0] += one;
            sum[1] += one * one;
            sum[2] += one * own;
        }
    })?;
    let gradient = estimate(&moments);
    let all = real(gradient.samples);
    let derivative = |[sum, square, _]: &[f64; 3]| Estimate {
        value: sum / all,
        standard_error: spread(count, *sum, *sum, *square).max(0.0).sqrt() / all,
    };
    Ok(GradientEstimate {
        derivatives: sums.iter().map(derivative).collect(),
        covariances: sums.iter().map(|sum| spread(count, sum[0], along, sum[2]) / (all * all)).collect(),
        ..gradient
    })
}

impl<'a> Setting<'a> {
    fn new(job: &'a GradientJob, kernel: &'a BinsKernel, origin: &BinsKernel) -> Result<Self> {
        let weights: Vec<f64> = kernel.law().log_weights.iter().map(|log| log.exp()).collect();
        let base = kernel.tilt_base().unwrap_or_default();
        let mut components = Vec::new();
        for (component, share) in &job.components {
            let (theta, mean_scale, logs) = match component {
                Component::Tilted(theta) if job.direction == Direction::Add => (*theta, 0.0, Vec::new()),
                Component::Tilted(theta) => {
                    let law = origin.law();
                    let overlap = origin.tilt_base().unwrap_or_default().overlap;
                    let logs: Vec<f64> = law.log_weights.iter().zip(&overlap).map(|(w, h)| w + theta * h).collect();
                    let total = log_sum_exp(logs.iter().copied());
                    (*theta, 1.0, logs.iter().map(|log| log - total).collect())
                }
                Component::Scaled(parameters, mean_scale) => {
                    let [only] = parameters[..] else {
                        let name = "parameters of a proposal";
                        return domain(name, f64::NAN, "one for the only mechanism");
                    };
                    (0.0, *mean_scale, origin.proposal(only, *mean_scale)?.law.log_weights)
                }
            };
            let constants: Vec<f64> = logs
                .iter()
                .zip(kernel.law().squares.iter().zip(&base.overlap))
                .map(|(log, (s, h))| log - mean_scale * (0.5 * mean_scale * s + theta * h))
                .collect();
            components.push(Frozen {
                theta,
                mean_scale,
                ratios: ratios(mean_scale, &constants, kernel.constants()),
                share: f64::from(*share) / f64::from(UNITS),
                cumulative: cumulative(logs.iter().map(|log| log.exp())),
                constants,
                norm: -0.5 * theta * theta * base.square,
            });
        }
        Ok(Self { job, kernel, components, weights, overlap: base.overlap, square: base.square })
    }
}

#[allow(clippy::float_cmp)] // given as that very number
fn ratios(mean_scale: f64, constants: &[f64], own: &[f64]) -> Option<(Vec<f64>, f64)> {
    let logs: Vec<f64> = constants.iter().zip(own).map(|(one, own)| one - own).collect();
    let largest = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let least = logs.iter().copied().fold(f64::INFINITY, f64::min);
    let shared = mean_scale == 1.0 && largest - least < ORDINARY;
    shared.then(|| (logs.iter().map(|log| (log - largest).exp()).collect(), largest))
}

/// Buffers of one worker.
#[derive(Default)]
struct Buffers {
    products: BinsScratch,
    /// The exponentials of ln f, and of the sum of each component; their sums and largest exponents.
    own: Sum,
    each: Vec<Sum>,
    /// ln g_k.
    logs: Vec<Lanes>,
    /// ∂V/∂v_t.
    slopes: Vec<Lanes>,
    derivatives: Derivatives,
}

/// Sums over the samples of a shard.
#[derive(Default)]
struct Derivatives {
    /// Σ (∂V/∂v) wᵀ by rows up to the diagonal, eight columns together.
    factor: Vec<Vec<Lanes>>,
    /// Σ κ ∂V/∂v_t of the samples drawn in bin s: row s.
    drawn: Vec<f64>,
    /// Σ ∂V/∂Γ_tt, ∂V/∂h_t and ∂V/∂q, where these occur directly in the densities.
    diagonal: Vec<Lanes>,
    overlap: Vec<Lanes>,
    square: f64,
    /// Eight consecutive numbers of each lane's noise.
    turned: Vec<Lanes>,
}

/// Σ_t e^{κv_t + constant_t}: the terms without the largest exponent, and their sum.
#[derive(Default)]
struct Sum {
    terms: Vec<Lanes>,
    total: Lanes,
    log: Lanes,
    /// The largest exponent.
    largest: Lanes,
}

impl Sum {
    #[inline(always)]
    fn take<V: Vector>(&mut self, products: &[Lanes], slope: f64, constants: &[f64]) {
        let factor = V::splat(slope);
        let mut largest = V::splat(f64::NEG_INFINITY);
        self.terms.resize(constants.len(), splat(0.0));
        for ((constant, row), term) in constants.iter().zip(products).zip(&mut self.terms) {
            let exponent = V::load(row).mul_add(factor, V::splat(*constant));
            largest = largest.max(exponent);
            exponent.store(term);
        }
        let mut total = V::splat(0.0);
        for term in &mut self.terms {
            let value = exp(V::load(term).sub(largest));
            total = total.add(value);
            value.store(term);
        }
        total.store(&mut self.total);
        largest.store(&mut self.largest);
        largest.add(ln(total)).store(&mut self.log);
    }

    /// Computes the same from the terms of another sum, each times its ratio.
    #[inline(always)]
    fn share<V: Vector>(&mut self, other: &Self, (ratios, log): &(Vec<f64>, f64)) {
        self.terms.resize(ratios.len(), splat(0.0));
        let mut total = V::splat(0.0);
        for ((ratio, own), term) in ratios.iter().zip(&other.terms).zip(&mut self.terms) {
            let value = V::load(own).mul(V::splat(*ratio));
            total = total.add(value);
            value.store(term);
        }
        total.store(&mut self.total);
        V::load(&other.largest).add(V::splat(*log)).add(ln(total)).store(&mut self.log);
    }
}

struct Shard<'a> {
    setting: &'a Setting<'a>,
    index: u64,
    buffers: &'a mut Buffers,
    run: &'a Run,
}

impl Vectored for Shard<'_> {
    type Output = Result<Left>;

    #[inline(always)]
    fn run<V: Vector>(self) -> Self::Output {
        let Self { setting, index, buffers, run } = self;
        let mut stream = Stream::new(setting.job.key, index);
        let mut moments = vec![Moments::default(); setting.components.len()];
        buffers.derivatives.clear(setting.weights.len());
        for (drawn, (_, share)) in setting.job.components.iter().enumerate() {
            for _ in 0..*share {
                run.check()?;
                moments[drawn].drawn += LANES as u64;
                let eight = Eight { setting, drawn, stream: &mut stream, buffers };
                if let Some((value, log_noise)) = V::apart(eight) {
                    moments[drawn].add(&value, &log_noise);
                }
            }
        }
        Ok((moments, buffers.derivatives.of_gram(setting)))
    }
}

/// Eight samples of a component: returns V and σ·∂V/∂σ and adds the derivatives; `None` if V is 0 for all samples.
struct Eight<'a> {
    setting: &'a Setting<'a>,
    drawn: usize,
    stream: &'a mut Stream,
    buffers: &'a mut Buffers,
}

impl Vectored for Eight<'_> {
    type Output = Option<(Lanes, Lanes)>;

    #[inline(always)]
    fn run<V: Vector>(self) -> Self::Output {
        let Self { setting, drawn, stream, buffers } = self;
        let from = &setting.components[drawn];
        let bins = setting.draw::<V>(from, stream, &mut buffers.products);
        let (mixture, proposal, density) = setting.densities::<V>(buffers);
        let numerator = if setting.job.direction == Direction::Add { V::splat(0.0) } else { mixture };
        let (values, scores) = value::<V>(setting.job, mixture, exp(numerator.sub(proposal)))?;
        let along = setting.slopes::<V>(V::load(&values), V::load(&scores), density, buffers);
        let path = setting.path::<V>(from, bins, buffers);
        buffers.derivatives.multiply::<V>(&buffers.slopes, buffers.products.noise());
        // A factor 1 + η on σ changes Γ, h and q by −2η of themselves, and Lw by −η.
        let mut log_noise = splat(0.0);
        V::splat(-2.0).mul(along).sub(path).store(&mut log_noise);
        Some((values, log_noise))
    }
}

impl Setting<'_> {
    /// Draws v of eight samples of a component; returns the bins that they are drawn in, if any.
    #[inline(always)]
    fn draw<V: Vector>(&self, from: &Frozen, stream: &mut Stream, scratch: &mut BinsScratch) -> [usize; LANES] {
        self.kernel.draw_noise::<V>(stream, scratch);
        let mut bins = [0; LANES];
        if from.mean_scale != 0.0 {
            bins = self.kernel.draw_from::<V>(&from.cumulative, stream);
            for (lane, bin) in bins.into_iter().enumerate() {
                self.kernel.shift(scratch, lane, bin, from.mean_scale);
            }
        }
        shift::<V>(&mut scratch.products, &self.overlap, from.theta);
        bins
    }

    /// Returns ln f, ln g and the sum of `buffers.logs`, which then holds α_k g_k up to a common factor.
    #[inline(always)]
    fn densities<V: Vector>(&self, buffers: &mut Buffers) -> (V, V, V) {
        let Buffers { products: scratch, own, each, logs, .. } = buffers;
        let products = &scratch.products[..self.weights.len()];
        own.take::<V>(products, 1.0, self.kernel.constants());
        each.resize_with(self.components.len(), Sum::default);
        logs.resize(self.components.len(), splat(0.0));
        let mut statistic = V::splat(0.0);
        for (row, weight) in products.iter().zip(&self.weights) {
            statistic = V::load(row).mul_add(V::splat(*weight), statistic);
        }
        let mut largest = V::splat(f64::NEG_INFINITY);
        for ((component, sum), log) in self.components.iter().zip(each.iter_mut()).zip(logs.iter_mut()) {
            let mut total = statistic.mul_add(V::splat(component.theta), V::splat(component.norm));
            if !component.constants.is_empty() {
                match &component.ratios {
                    Some(ratios) => sum.share::<V>(own, ratios),
                    None => sum.take::<V>(products, component.mean_scale, &component.constants),
                }
                total = total.add(V::load(&sum.log));
            }
            largest = largest.max(total);
            total.store(log);
        }
        let mut density = V::splat(0.0);
        for (component, log) in self.components.iter().zip(logs.iter_mut()) {
            let one = exp(V::load(log).sub(largest)).mul(V::splat(component.share));
            density = density.add(one);
            one.store(log);
        }
        (V::load(&own.log), largest.add(ln(density)), density)
    }

    /// Computes dV = S d ln f − Σ_k V·(α_k g_k/g) d ln g_k: derivatives in v go into `buffers.slopes`, those in the
    /// diagonal of Γ, h and q are added. Returns the sum of the latter, each times its variable.
    #[inline(always)]
    fn slopes<V: Vector>(&self, value: V, score: V, density: V, buffers: &mut Buffers) -> V {
        let Buffers { own, each, logs, slopes, derivatives, .. } = buffers;
        let (squares, half, zero) = (&self.kernel.law().squares, V::splat(-0.5), V::splat(0.0));
        slopes.resize(self.weights.len(), splat(0.0));
        let (mut along, mut everywhere, mut curved) = (zero, zero, zero);
        let lead = score.div(V::load(&own.total));
        for (t, term) in own.terms.iter().enumerate() {
            let by = lead.mul(V::load(term));
            by.store(&mut slopes[t]);
            along = count(by.mul(half), squares[t], &mut derivatives.diagonal[t], along);
        }
        for ((component, sum), log) in self.components.iter().zip(&*each).zip(&*logs) {
            let part = zero.sub(value.mul(V::load(log).div(density)));
            let (theta, scale) = (V::splat(component.theta), V::splat(component.mean_scale));
            everywhere = part.mul_add(theta, everywhere);
            curved = part.mul(half).mul(theta).mul_add(theta, curved);
            if component.constants.is_empty() {
                continue;
            }
            let lead = part.div(V::load(&sum.total)).mul(scale);
            for (t, term) in sum.terms.iter().enumerate() {
                let by = lead.mul(V::load(term));
                V::load(&slopes[t]).add(by).store(&mut slopes[t]);
                along = count(by.mul(scale).mul(half), squares[t], &mut derivatives.diagonal[t], along);
                if component.theta != 0.0 {
                    along = count(zero.sub(by.mul(theta)), self.overlap[t], &mut derivatives.overlap[t], along);
                }
            }
        }
        let mut lanes = splat(0.0);
        curved.store(&mut lanes);
        derivatives.square += lanes.0.iter().sum::<f64>();
        for (slope, weight) in slopes.iter_mut().zip(&self.weights) {
            everywhere.mul_add(V::splat(*weight), V::load(slope)).store(slope);
        }
        curved.mul_add(V::splat(self.square), along)
    }

    /// Adds the derivatives through the mean of the sample's path, v = Lw + κΓ_s + θh. Returns ⟨∂V/∂v, v⟩ with the mean
    /// counted twice.
    #[inline(always)]
    fn path<V: Vector>(&self, from: &Frozen, bins: [usize; LANES], buffers: &mut Buffers) -> V {
        let Buffers { products, slopes, derivatives, .. } = buffers;
        let mut path = V::splat(0.0);
        for (slope, row) in slopes.iter().zip(&products.products) {
            path = V::load(slope).mul_add(V::load(row), path);
        }
        if from.theta != 0.0 {
            for ((slope, kept), h) in slopes.iter().zip(&mut derivatives.overlap).zip(&self.overlap) {
                path = count(V::load(slope).mul(V::splat(from.theta)), *h, kept, path);
            }
        }
        let mut means = splat(0.0);
        if from.mean_scale != 0.0 {
            for (lane, bin) in bins.into_iter().enumerate() {
                means[lane] = derivatives.draw(self.kernel, bin, from.mean_scale, slopes, lane);
            }
        }
        path.add(V::load(&means))
    }
}

/// Adds a derivative to `total`, and its product with its variable to `along`.
#[inline(always)]
fn count<V: Vector>(by: V, of: f64, total: &mut Lanes, along: V) -> V {
    V::load(total).add(by).store(total);
    by.mul_add(V::splat(of), along)
}

impl Derivatives {
    fn clear(&mut self, bins: usize) {
        self.factor = (0..bins).map(|t| vec![splat(0.0); t / LANES + 1]).collect();
        self.drawn = vec![0.0; bins * bins];
        self.diagonal = vec![splat(0.0); bins];
        self.overlap = vec![splat(0.0); bins];
        self.square = 0.0;
    }

    /// Adds a sample's derivative in the mean of the bin that it was drawn in; returns its product with that mean.
    #[inline(always)]
    fn draw(&mut self, kernel: &BinsKernel, bin: usize, mean_scale: f64, slopes: &[Lanes], lane: usize) -> f64 {
        let bins = slopes.len();
        let mut total = 0.0;
        let means = &kernel.gram()[bin * bins..(bin + 1) * bins];
        for ((to, slope), mean) in self.drawn[bin * bins..(bin + 1) * bins].iter_mut().zip(slopes).zip(means) {
            let by = mean_scale * slope.0[lane % LANES];
            *to += by;
            total += by * mean;
        }
        total
    }

    /// Adds slopes·noiseᵀ of all lanes, up to the diagonal.
    #[inline(always)]
    fn multiply<V: Vector>(&mut self, slopes: &[Lanes], noise: &[Lanes]) {
        // Here a vector holds columns, not samples.
        let turned = &mut self.turned;
        turned.resize(noise.len().next_multiple_of(LANES), splat(0.0));
        for (k, numbers) in noise.iter().enumerate() {
            for lane in 0..LANES {
                turned[k / LANES * LANES + lane][k % LANES] = numbers[lane];
            }
        }
        for (slope, row) in slopes.iter().zip(&mut self.factor) {
            for (sum, turned) in row.iter_mut().zip(turned.chunks_exact(LANES)) {
                let mut total = V::load(sum);
                for lane in 0..LANES {
                    total = V::splat(slope[lane]).mul_add(V::load(&turned[lane]), total);
                }
                total.store(sum);
            }
        }
    }

    /// Returns Σ ∂V/∂Γ, symmetric, row by row.
    fn of_gram(&self, setting: &Setting<'_>) -> Vec<f64> {
        let bins = self.diagonal.len();
        let total = |lanes: &Lanes| lanes.0.iter().sum::<f64>();
        let lower = setting.kernel.factor();
        let mut derivative =
            through_factor(&lower, |row, column| self.factor[row][column / LANES][column % LANES], bins);
        for s in 0..bins {
            for t in 0..bins {
                let by_mean = self.drawn[s * bins + t]
                    + total(&self.overlap[t]) * setting.weights[s]
                    + self.square * setting.weights[s] * setting.weights[t];
                derivative[s * bins + t] += 0.5 * by_mean;
                derivative[t * bins + s] += 0.5 * by_mean;
            }
            derivative[s * bins + s] += total(&self.diagonal[s]);
        }
        derivative
    }
}

/// Returns the derivative in Γ = LLᵀ from the derivative in L: see the head of this file.
fn through_factor(lower: &[f64], by_factor: impl Fn(usize, usize) -> f64, bins: usize) -> Vec<f64> {
    let mut inner = vec![0.0; bins * bins];
    for k in 0..bins {
        let row: Vec<f64> = (0..=k).map(|column| by_factor(k, column)).collect();
        for i in 0..=k {
            add_multiple(&mut inner[i * bins..][..=i], lower[k * bins + i], &row);
        }
    }
    for i in 0..bins {
        inner[i * bins + i] *= 0.5;
    }
    // Here X = L⁻ᵀ·inner; the transpose of X·L⁻¹ is L⁻ᵀ·Xᵀ.
    solve(lower, bins, &mut inner);
    let mut inner = transposed(&inner, bins);
    solve(lower, bins, &mut inner);
    let other = transposed(&inner, bins);
    inner.iter().zip(&other).map(|(a, b)| 0.5 * (a + b)).collect()
}

fn add_multiple(to: &mut [f64], factor: f64, more: &[f64]) {
    to.iter_mut().zip(more).for_each(|(to, more)| *to += factor * more);
}

fn transposed(matrix: &[f64], bins: usize) -> Vec<f64> {
    (0..bins * bins).map(|k| matrix[k % bins * bins + k / bins]).collect()
}

/// Solves LᵀX = Y in place, for all columns of Y at once.
fn solve(lower: &[f64], bins: usize, numbers: &mut [f64]) {
    for i in (0..bins).rev() {
        let (above, below) = numbers.split_at_mut((i + 1) * bins);
        let row = &mut above[i * bins..];
        for (k, known) in (i + 1..bins).zip(below.chunks_exact(bins)) {
            add_multiple(row, -lower[k * bins + i], known);
        }
        for number in row {
            *number /= lower[i * bins + i];
        }
    }
}
