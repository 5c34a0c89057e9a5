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

use crate::error::{domain, Result};
use crate::montecarlo::family::{
    DrawTuples, Family, Kernel, LanePatterns, Origin, Origins, Purpose, Ratios, Statistic, Weighed,
};
use crate::montecarlo::source::check_mean_scale;
use crate::montecarlo::stream::{Stream, LARGEST_NORMAL, NORMAL_ERROR};
use crate::montecarlo::tilt::{shift, TiltBase, Tilted, TiltedLaw};
use crate::montecarlo::weight_bounds::{Direction, HolderSums};
use crate::participation::bins::Bins;
use crate::replicas::drawn::Participations;
use crate::special::{real, UNIT_ROUNDOFF};
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
    patterns: LanePatterns,
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
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        // at most a few thousand bins
        let bins = real(gram.len()).sqrt() as usize;
        let (entries, size, inner) = (real(gram.len()), real(bins), real(inner));
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
    pub fn law(&self) -> &Bins {
        &self.law
    }

    /// Returns T + 16 times a bound on |v_t| for such samples; u times the result bounds the error of v_t.
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
        let mut scratch = BinsScratch { products: vec![splat(0.0); bins], ..BinsScratch::default() };
        for (lane, vector) in products.iter().enumerate() {
            for t in 0..bins {
                scratch.products[t][lane] = vector[t];
            }
        }
        scratch
    }

    /// Returns the log densities of eight samples whose v is in `scratch`; the proposal's is that of plain sampling.
    #[inline(always)]
    pub fn ratios<V: Vector>(&self, mirrored: bool, scratch: &BinsScratch) -> Ratios {
        let mixture = log_sum::<V>(scratch, 1.0, &self.constants);
        let mirrored = if mirrored { log_sum::<V>(scratch, -1.0, &self.constants) } else { splat(0.0) };
        Ratios { mixture, mirrored, proposal: mixture }
    }
}

impl Family for BinsKernel {
    fn participations(&self) -> Option<Participations<'_>> {
        let bins = self.law.squares.len();
        // The error is of sums of T products, none larger than the largest square.
        let error = 2.0 * UNIT_ROUNDOFF * (real(bins) + 8.0);
        Some(Participations::Bins { gram: &self.gram, bins, error })
    }

    fn outcome_length(&self) -> usize {
        self.law.squares.len()
    }

    /// (T + 16)·u times the sizes of the products, for the scaled exponents, and 2T u for the sum.
    fn rounding_at(&self, mean_scale: f64, means: f64) -> f64 {
        let bins = real(self.law.squares.len());
        let scale = 1.0 + mean_scale.abs();
        UNIT_ROUNDOFF * (self.rounding_scale * scale * (1.0 + means) + 4.0 * bins + 64.0)
    }

    fn lipschitz(&self) -> f64 {
        self.lipschitz
    }

    fn largest_mean(&self) -> f64 {
        self.law.squares.iter().copied().fold(0.0, f64::max)
    }

    fn magnitude(&self, mean_scale: f64) -> f64 {
        let scale = 1.0 + mean_scale.abs();
        scale * scale * (LARGEST_NORMAL * self.lipschitz + 2.0 * self.largest_mean())
    }

    fn coordinate_error(&self, _: f64, _: f64) -> f64 {
        NORMAL_ERROR
    }

    fn tilt_base(&self) -> Option<TiltBase> {
        Some(TiltBase::of_bins(&self.law, &self.gram))
    }

    fn tilted(&self, base: &TiltBase, theta: f64, add: bool) -> Tilted {
        if add {
            base.reference(theta)
        } else {
            base.bins(&self.law, theta)
        }
    }

    fn displacement(&self, base: &TiltBase, theta: f64) -> f64 {
        theta.abs() * (base.overlap.iter().copied().fold(0.0, f64::max) / self.largest_mean())
    }

    /// t is a mean of the products v, which have their own error, and its slope is a mean of theirs.
    fn statistic(&self, _: &TiltBase, means: f64) -> Statistic {
        // The error includes that of the products and that of the T terms of their mean.
        let size = self.products(means);
        Statistic { slope: self.lipschitz, size, error: 3.0 * UNIT_ROUNDOFF * size }
    }

    /// Of T + 16 additions, 16 allow for one mean; each replica adds one mean.
    fn replicas_rounding(&self, power: f64) -> f64 {
        1.0 + power / 16.0
    }

    fn replicas_coordinate_error(&self, _: f64) -> f64 {
        NORMAL_ERROR
    }
}

impl Kernel for BinsKernel {
    type Proposal = BinsProposal;
    type Scratch = BinsScratch;
    type Scaled = BinsProposal;

    fn scaled(&self, parameter: f64, mean_scale: f64) -> Result<BinsProposal> {
        self.proposal(parameter, mean_scale)
    }

    fn mean_scale(proposal: &BinsProposal) -> f64 {
        proposal.mean_scale
    }

    fn sums(&self, proposal: &BinsProposal, direction: Direction) -> HolderSums {
        HolderSums::of(&self.law, &proposal.law, proposal.mean_scale, direction)
    }

    fn drawn(&self, proposal: &BinsProposal) -> (f64, f64) {
        proposal.law.drawn()
    }

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

    #[inline(always)]
    fn weigh<V: Vector>(
        &self,
        origins: &Origins<BinsProposal>,
        (drawn, direction): (usize, Direction),
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

    #[inline(always)]
    fn given<V: Vector>(&self, _: Direction, products: &[Vec<f64>], _: &[Vec<u64>]) -> Ratios {
        self.ratios::<V>(true, &self.given_products(products))
    }

    #[inline(always)]
    fn replicas<V: Vector>(
        &self,
        tuples: &mut DrawTuples<'_>,
        mirrored: bool,
        stream: &mut Stream,
        scratch: &mut BinsScratch,
    ) -> Ratios {
        self.draw_noise::<V>(stream, scratch);
        let mut patterns = std::mem::take(&mut scratch.patterns);
        tuples(stream, &mut patterns);
        for (lane, bins) in patterns.iter().enumerate() {
            for &(bin, _) in bins {
                self.shift(scratch, lane, bin, 1.0);
            }
        }
        scratch.patterns = patterns;
        self.ratios::<V>(mirrored, scratch)
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
