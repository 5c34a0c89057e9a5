//! The kernel for balls in bins: T inner products drawn directly, eight samples side by side.
//!
//! With modes m_t (the sum of the columns of bin t, in units of σ) only v_t = ⟨m_t, ŷ⟩ matters: dP/dR = (1/T) Σ_t
//! e^{v_t − ‖m_t‖²/2}. Under N(κm_s, I) the vector v is normal with mean κΓ_s and covariance Γ, the Gram matrix of the
//! modes. So v = κΓ_s + Lw with LLᵀ = Γ and T normal numbers w: T numbers and T²/2 products a sample, whatever n is
//! (Choquette-Choo, Ganesh, Haque, Steinke & Thakurta 2025, Section 4.1, computes v from ŷ).
//!
//! **Rounding of L.** The factor is that of Γ + eI with e above the backward error of the factorisation and of Γ itself
//! (Higham 2002, Theorem 10.3), so that LLᵀ − Γ is positive semidefinite: the modes analysed are the true ones with
//! further coordinates appended, and releasing more coordinates cannot lower a hockey stick. Everything else is
//! computed from L.

use crate::error::{Error, Result};
use crate::montecarlo::kernels::kernel::{check_mean_scale, Kernel, Purpose, Ratios};
use crate::montecarlo::proposals::components::{Balanced, Origin, Origins, Weighed};
use crate::montecarlo::proposals::tilt::{shift, TiltBase, Tilted, TiltedLaw};
use crate::montecarlo::proposals::weight_bounds::Direction;
use crate::montecarlo::stream::{Stream, LARGEST_NORMAL};
use crate::participation::bins::Bins;
use crate::special::UNIT_ROUNDOFF;
use crate::vector::functions::{exp, ln};
use crate::vector::{splat, Lanes, Vector, LANES};

/// The number of rows that are multiplied together.
const TILE: usize = 8;

/// The data of the kernel; shared by all threads.
#[derive(Debug, Clone)]
pub struct BinsKernel {
    law: Bins,
    /// L by tiles of rows: for each tile its columns, one number for each row, up to the tile of the diagonal.
    tiles: Vec<Vec<[f64; TILE]>>,
    /// LLᵀ, row by row.
    gram: Vec<f64>,
    lipschitz: f64,
    rounding_scale: f64,
    /// ln w_t − s_t/2.
    constants: Vec<f64>,
}

/// A proposal: bins with other probabilities, and the scale κ of the means.
#[derive(Debug, Clone, PartialEq)]
pub struct BinsProposal {
    /// The law of the bin drawn.
    pub law: Bins,
    /// κ.
    pub mean_scale: f64,
    /// Cumulative probabilities of the bins.
    cumulative: Vec<f64>,
    /// ln v_t − κ²s_t/2.
    constants: Vec<f64>,
}

impl BinsProposal {
    /// Creates a proposal.
    #[must_use]
    pub fn new(law: Bins, mean_scale: f64) -> Self {
        let mut sum = 0.0;
        let cumulative = law
            .log_weights
            .iter()
            .map(|w| {
                sum += w.exp();
                sum
            })
            .collect();
        let constants =
            law.log_weights.iter().zip(&law.squares).map(|(w, s)| w - 0.5 * mean_scale * mean_scale * s).collect();
        Self { law, mean_scale, cumulative, constants }
    }
}

/// Buffers of one worker.
#[derive(Debug, Clone, Default)]
pub struct BinsScratch {
    noise: Vec<Lanes>,
    pub(in crate::montecarlo) products: Vec<Lanes>,
}

impl BinsScratch {
    /// Returns the normal numbers of the last eight samples; numbers beyond the number of bins are not used.
    pub(in crate::montecarlo) fn noise(&self) -> &[Lanes] {
        &self.noise
    }
}

impl BinsKernel {
    /// Creates the kernel for the Gram matrix of the modes in units of σ, row by row; `inner` is the length of the
    /// modes, whose products were summed in floating point.
    ///
    /// # Errors
    /// [`Error::Domain`] for a matrix that is not square, finite, symmetric and positive semidefinite up to rounding.
    pub fn new(gram: &[f64], inner: usize) -> Result<Self> {
        let domain = |name, value, allowed| Err(Error::Domain { name, value, allowed });
        #[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        // at most a few thousand bins
        let bins = (gram.len() as f64).sqrt() as usize;
        #[allow(clippy::cast_precision_loss)] // reported, and far below 2^53
        let (entries, size, inner) = (gram.len() as f64, bins as f64, inner as f64);
        if bins == 0 || bins * bins != gram.len() {
            return domain("entries of the Gram matrix", entries, "a square number");
        }
        if let Some(&wrong) = gram.iter().find(|g| !(g.is_finite() && **g >= 0.0)) {
            return domain("entry of the Gram matrix", wrong, "finite and at least 0");
        }
        let trace: f64 = (0..bins).map(|t| gram[t * bins + t]).sum();
        let lift = 4.0 * (size + inner + 16.0) * UNIT_ROUNDOFF * trace;
        let mut factor = vec![0.0; bins * bins];
        for i in 0..bins {
            for j in 0..=i {
                let dot: f64 = (0..j).map(|k| factor[i * bins + k] * factor[j * bins + k]).sum();
                let rest = gram[i * bins + j] + if i == j { lift } else { 0.0 } - dot;
                factor[i * bins + j] = if i == j {
                    if rest <= 0.0 {
                        return domain("pivot of the Gram matrix", rest, "greater than 0");
                    }
                    rest.sqrt()
                } else {
                    rest / factor[j * bins + j]
                };
            }
        }
        let mut lifted = vec![0.0; bins * bins];
        for i in 0..bins {
            for j in 0..=i {
                let dot: f64 = (0..=j).map(|k| factor[i * bins + k] * factor[j * bins + k]).sum();
                lifted[i * bins + j] = dot;
                lifted[j * bins + i] = dot;
            }
        }
        let tiles = (0..bins.div_ceil(TILE))
            .map(|tile| {
                let columns = ((tile + 1) * TILE).min(bins);
                let entry = |row: usize, column| if row < bins { factor[row * bins + column] } else { 0.0 };
                (0..columns).map(|column| std::array::from_fn(|k| entry(tile * TILE + k, column))).collect()
            })
            .collect();
        let largest_of = |column: usize| (0..bins).map(|row| factor[row * bins + column].abs()).fold(0.0, f64::max);
        let lipschitz = (0..bins).map(largest_of).sum::<f64>() * (1.0 + 1e-9);
        let squares: Vec<f64> = (0..bins).map(|t| lifted[t * bins + t]).collect();
        let widest = (0..bins)
            .map(|row| (0..bins).map(|column| factor[row * bins + column].abs()).sum::<f64>())
            .fold(0.0, f64::max);
        let largest = squares.iter().copied().fold(0.0, f64::max);
        let rounding_scale = (size + 16.0) * (widest * LARGEST_NORMAL + 2.0 * largest);
        let law = Bins::uniform(squares);
        let constants = law.log_weights.iter().zip(&law.squares).map(|(w, s)| w - 0.5 * s).collect();
        Ok(Self { law, tiles, gram: lifted, lipschitz, rounding_scale, constants })
    }

    /// Returns L, row by row.
    pub(in crate::montecarlo) fn factor(&self) -> Vec<f64> {
        let bins = self.law.squares.len();
        let mut factor = vec![0.0; bins * bins];
        for (tile, columns) in self.tiles.iter().enumerate() {
            for (column, entries) in columns.iter().enumerate() {
                for (row, entry) in (tile * TILE..bins).zip(entries) {
                    factor[row * bins + column] = *entry;
                }
            }
        }
        factor
    }

    /// Returns LLᵀ, row by row.
    pub(in crate::montecarlo) fn gram(&self) -> &[f64] {
        &self.gram
    }

    /// Returns ln w_t − s_t/2 for each bin.
    pub(in crate::montecarlo) fn constants(&self) -> &[f64] {
        &self.constants
    }

    /// Returns the law of the bins.
    #[must_use]
    pub fn law(&self) -> &Bins {
        &self.law
    }

    /// Returns a bound on Σ_j |∂ ln f/∂w_j| for any mixture of the modes.
    #[must_use]
    pub fn lipschitz(&self) -> f64 {
        self.lipschitz
    }

    /// Returns a bound on the error of each log density from rounding: (T + 16)·u times the sizes of the products, for
    /// the scaled exponents, and 2T u for the sum.
    #[must_use]
    pub fn rounding(&self, mean_scale: f64) -> f64 {
        self.rounding_at(mean_scale, mean_scale.abs())
    }

    /// Returns the same bound for samples whose mean is at most `means` times the largest s_t.
    #[must_use]
    pub fn rounding_at(&self, mean_scale: f64, means: f64) -> f64 {
        #[allow(clippy::cast_precision_loss)] // at most a few thousand bins
        let bins = self.law.squares.len() as f64;
        let scale = 1.0 + mean_scale.abs();
        UNIT_ROUNDOFF * (self.rounding_scale * scale * (1.0 + means) + 4.0 * bins + 64.0)
    }

    /// Returns a bound on every |ln density| of a sample.
    #[must_use]
    pub fn magnitude(&self, mean_scale: f64) -> f64 {
        let scale = 1.0 + mean_scale.abs();
        let square = self.law.squares.iter().copied().fold(0.0, f64::max);
        scale * scale * (LARGEST_NORMAL * self.lipschitz() + 2.0 * square)
    }

    /// Returns T + 16 times a bound on |v_t| for such samples; u times the result bounds the error of v_t.
    #[must_use]
    pub fn products(&self, means: f64) -> f64 {
        self.rounding_scale * (1.0 + means)
    }

    /// Draws v for eight samples.
    #[inline(always)]
    fn draw<V: Vector>(&self, proposal: &BinsProposal, stream: &mut Stream, scratch: &mut BinsScratch) {
        self.draw_noise::<V>(stream, scratch);
        if proposal.mean_scale != 0.0 {
            for (lane, bin) in self.draw_bins::<V>(proposal, stream).into_iter().enumerate() {
                self.shift(scratch, lane, bin, proposal.mean_scale);
            }
        }
    }

    /// Computes Lw, for normal numbers w.
    #[inline(always)]
    pub(in crate::montecarlo) fn draw_noise<V: Vector>(&self, stream: &mut Stream, scratch: &mut BinsScratch) {
        let bins = self.law.squares.len();
        scratch.noise.resize(bins.next_multiple_of(2), splat(0.0));
        scratch.products.resize(bins.next_multiple_of(TILE), splat(0.0));
        let mut drawing = stream.take::<V>();
        for pair in scratch.noise.chunks_exact_mut(2) {
            let (first, second) = drawing.normals();
            first.store(&mut pair[0]);
            second.store(&mut pair[1]);
        }
        for (columns, out) in self.tiles.iter().zip(scratch.products.chunks_exact_mut(TILE)) {
            let mut sums = [V::splat(0.0); TILE];
            for (column, noise) in columns.iter().zip(&scratch.noise) {
                let noise = V::load(noise);
                for k in 0..TILE {
                    sums[k] = V::splat(column[k]).mul_add(noise, sums[k]);
                }
            }
            for k in 0..TILE {
                sums[k].store(&mut out[k]);
            }
        }
        stream.put_back(drawing);
    }

    /// Draws a bin for each lane.
    #[inline(always)]
    pub(in crate::montecarlo) fn draw_bins<V: Vector>(
        &self,
        proposal: &BinsProposal,
        stream: &mut Stream,
    ) -> [usize; LANES] {
        self.draw_from::<V>(&proposal.cumulative, stream)
    }

    /// Draws a bin for each lane from cumulative probabilities.
    #[inline(always)]
    pub(in crate::montecarlo) fn draw_from<V: Vector>(
        &self,
        cumulative: &[f64],
        stream: &mut Stream,
    ) -> [usize; LANES] {
        let mut drawn = splat(0.0);
        let mut drawing = stream.take::<V>();
        drawing.uniform().store(&mut drawn);
        stream.put_back(drawing);
        let last = self.law.squares.len() - 1;
        // u is in (0, 1]; the bin is the first one whose cumulative probability reaches u, or the last bin.
        drawn.0.map(|u| cumulative.partition_point(|&c| c < u).min(last))
    }

    /// Adds a multiple of the mean of a bin.
    #[inline(always)]
    pub(in crate::montecarlo) fn shift(&self, scratch: &mut BinsScratch, lane: usize, bin: usize, multiple: f64) {
        let bins = self.law.squares.len();
        for (product, shift) in scratch.products.iter_mut().zip(&self.gram[bin * bins..(bin + 1) * bins]) {
            product[lane] = multiple.mul_add(*shift, product[lane]);
        }
    }

    /// Returns buffers with given v, in units of σ, one vector for each lane.
    pub(in crate::montecarlo) fn given_products(&self, products: &[Vec<f64>]) -> BinsScratch {
        let bins = self.law.squares.len();
        let mut scratch = BinsScratch { noise: Vec::new(), products: vec![splat(0.0); bins] };
        for (lane, vector) in products.iter().enumerate() {
            for t in 0..bins {
                scratch.products[t][lane] = vector[t];
            }
        }
        scratch
    }

    /// Returns the log densities of eight samples whose v is in `scratch`; the proposal's is that of plain sampling.
    #[inline(always)]
    #[must_use]
    pub fn ratios<V: Vector>(&self, mirrored: bool, scratch: &BinsScratch) -> Ratios {
        let mixture = log_sum::<V>(scratch, 1.0, &self.constants);
        let mirrored = if mirrored { log_sum::<V>(scratch, -1.0, &self.constants) } else { splat(0.0) };
        Ratios { mixture, mirrored, proposal: mixture }
    }

    /// Returns the log densities for given v in units of σ, one vector for each lane.
    #[inline(always)]
    #[must_use]
    pub fn given<V: Vector>(&self, products: &[Vec<f64>], mirrored: bool) -> Ratios {
        let scratch = self.given_products(products);
        self.ratios::<V>(mirrored, &scratch)
    }
}

impl Kernel for BinsKernel {
    type Proposal = BinsProposal;
    type Scratch = BinsScratch;

    /// The weights of the bins are proportional to `e^{parameter·s_t}`.
    fn proposal(&self, parameter: f64, mean_scale: f64) -> Result<BinsProposal> {
        check_mean_scale(mean_scale)?;
        Ok(BinsProposal::new(self.law.tilted(parameter), mean_scale))
    }

    /// The proposal's own density is computed only if the proposal is neither P nor R.
    #[inline(always)]
    fn sample<V: Vector>(
        &self,
        proposal: &BinsProposal,
        purpose: Purpose,
        stream: &mut Stream,
        scratch: &mut BinsScratch,
    ) -> Ratios {
        let mirrored = purpose.direction == Direction::Replace;
        let reference = proposal.mean_scale == 0.0;
        let plain = reference || (proposal.mean_scale.to_bits() == 1.0f64.to_bits() && self.law == proposal.law);
        self.draw::<V>(proposal, stream, scratch);
        let own = self.ratios::<V>(mirrored, scratch);
        let mut ratios = if purpose.worthless(&own) {
            purpose.unweighted(own)
        } else if plain {
            own
        } else {
            Ratios { proposal: log_sum::<V>(scratch, proposal.mean_scale, &proposal.constants), ..own }
        };
        if reference {
            ratios.proposal = splat(0.0);
        }
        ratios
    }
}

/// Returns ln Σ_t e^{slope·v_t + constant_t}, where the largest exponent of each lane is factored out.
#[inline(always)]
fn log_sum<V: Vector>(scratch: &BinsScratch, slope: f64, constants: &[f64]) -> Lanes {
    let slope = V::splat(slope);
    let mut largest = V::splat(f64::NEG_INFINITY);
    for (constant, row) in constants.iter().zip(&scratch.products) {
        largest = largest.max(V::load(row).mul_add(slope, V::splat(*constant)));
    }
    let mut sum = V::splat(0.0);
    for (constant, row) in constants.iter().zip(&scratch.products) {
        sum = sum.add(exp(V::load(row).mul_add(slope, V::splat(*constant)).sub(largest)));
    }
    let mut out = splat(0.0);
    largest.add(ln(sum)).store(&mut out);
    out
}

impl BinsKernel {
    /// Returns the direction of the tilts.
    pub(in crate::montecarlo) fn tilt_base(&self) -> TiltBase {
        TiltBase::of_bins(&self.law, &self.gram)
    }

    /// Returns P tilted by θ.
    pub(in crate::montecarlo) fn tilted(&self, base: &TiltBase, theta: f64) -> Tilted {
        base.bins(&self.law, theta)
    }
}

impl Balanced for BinsKernel {
    type Base = TiltBase;
    type Tilt = Tilted;
    type Scaled = BinsProposal;

    fn base(&self) -> TiltBase {
        self.tilt_base()
    }

    fn tilt(&self, base: &TiltBase, theta: f64, add: bool) -> Result<Tilted> {
        Ok(if add { base.reference(theta) } else { self.tilted(base, theta) })
    }

    fn scaled(&self, parameter: f64, mean_scale: f64) -> Result<BinsProposal> {
        self.proposal(parameter, mean_scale)
    }

    #[inline(always)]
    fn weigh<V: Vector>(
        &self,
        origins: &Origins<Self>,
        drawn: usize,
        direction: Direction,
        stream: &mut Stream,
        scratch: &mut BinsScratch,
        out: &mut Weighed,
    ) {
        let base = &origins.base;
        match &origins.each[drawn] {
            Origin::Scaled(proposal) => self.draw::<V>(proposal, stream, scratch),
            Origin::Tilted(tilted) => {
                self.draw_noise::<V>(stream, scratch);
                if let Some(TiltedLaw::Bins(cumulative)) = &tilted.law {
                    for (lane, bin) in self.draw_from::<V>(cumulative, stream).into_iter().enumerate() {
                        self.shift(scratch, lane, bin, 1.0);
                    }
                }
                shift::<V>(&mut scratch.products, &base.overlap, tilted.theta);
            }
        }
        // m̄ is the mean of the modes, so ⟨m̄, ŷ⟩ is the mean of their products.
        let mut statistic = V::splat(0.0);
        for (row, log_weight) in scratch.products.iter().zip(&self.law.log_weights) {
            statistic = V::load(row).mul_add(V::splat(log_weight.exp()), statistic);
        }
        out.add_tilts::<V, _>(origins, statistic);
        let own = V::load(&log_sum::<V>(scratch, 1.0, &self.constants));
        let zero = V::splat(0.0);
        let (loss, numerator) = match direction {
            Direction::Remove => (own, own),
            Direction::Add => (zero.sub(own), zero),
            Direction::Replace => (own.sub(V::load(&log_sum::<V>(scratch, -1.0, &self.constants))), own),
        };
        out.add_loss(loss);
        if out.worthless() {
            return;
        }
        for (k, origin) in origins.each.iter().enumerate() {
            if let Origin::Scaled(m) = origin {
                out.add(k, V::load(&log_sum::<V>(scratch, m.mean_scale, &m.constants)).sub(numerator));
            }
        }
    }
}
