//! The kernel for balls in bins with truncated batches: it draws the batch sizes of the other records, then sums over
//! the bins.
//!
//! A bin with more than B records keeps B of them, drawn once at random; the same records are used whenever it is the
//! bin's turn. The numbers r_t of other records in the bins do not depend on the sensitive record and are released
//! first. Given them, a bin with r_t < B has the pair of modes (m_t | 0). In one with r_t ≥ B the sensitive record
//! survives with probability s_t = B/(r_t + 1), in place of another record: (2m_t | −m_t), as for rounds
//! ([`super::truncated`]). With v_t = ⟨m_t, ŷ⟩ and e_t(m) = exp(m v_t − m²‖m_t‖²/2) the densities relative to N(0, I)
//! are
//!
//! `P/R = (1/T) Σ_t e_t(1)`, or `s_t e_t(2) + 1 − s_t` for the truncated; `Q/R = (1/T) Σ_t 1`, or
//! `s_t e_t(−1) + 1 − s_t`.
//!
//! The published statement that truncation leaves the analysis unchanged (Choquette-Choo et al. 2025, Section 5.2.1)
//! does not account for the displaced record. Everything else is as in [`crate::montecarlo::kernels::bins`].

use std::sync::Arc;

use crate::error::Result;
use crate::montecarlo::family::{draw, Family, Kernel, Origin, Origins, Purpose, Ratios, Weighed};
use crate::montecarlo::kernels::bins::{BinsKernel, BinsProposal, BinsScratch};
use crate::montecarlo::stream::{Stream, NORMAL_ERROR};
use crate::montecarlo::truncation::batch_sizes::{BinSizes, SizeScratch, Truncation};
use crate::montecarlo::truncation::truncated::{displaced, largest_multiple};
use crate::montecarlo::weight_bounds::{Direction, HolderSums};
use crate::special::UNIT_ROUNDOFF;
use crate::vector::functions::{exp, ln};
use crate::vector::{splat, with_vectors, Lanes, Vector, Vectored, LANES};

/// The data of the kernel; shared by all threads.
#[derive(Debug, Clone)]
pub struct TruncatedBinsKernel {
    bins: Arc<BinsKernel>,
    sizes: Arc<BinSizes>,
}

/// Buffers of one worker.
#[derive(Debug, Clone, Default)]
pub struct TruncatedBinsScratch {
    sizes: SizeScratch,
    bins: BinsScratch,
    exponents: Vec<Lanes>,
}

impl TruncatedBinsKernel {
    /// Creates the kernel for bins of `dataset_size` records in total, each bin truncated to `limit` records.
    ///
    /// # Errors
    /// As [`BinSizes::new`].
    pub fn new(bins: Arc<BinsKernel>, dataset_size: u64, limit: u64) -> Result<Self> {
        let sizes = Arc::new(BinSizes::new(dataset_size, limit, bins.law().squares.len())?);
        Ok(Self { bins, sizes })
    }

    /// Draws v from a proposal, given the batch sizes in `scratch`.
    #[inline(always)]
    fn draw<V: Vector>(
        &self,
        proposal: &BinsProposal,
        add: bool,
        stream: &mut Stream,
        scratch: &mut TruncatedBinsScratch,
    ) {
        self.bins.draw_noise::<V>(stream, &mut scratch.bins);
        let drawn = self.bins.draw_bins::<V>(proposal, stream);
        let mut survival = splat(0.0);
        let mut drawing = stream.take::<V>();
        drawing.uniform().store(&mut survival);
        stream.put_back(drawing);
        let truncations = &scratch.sizes.truncations[..];
        for lane in 0..LANES {
            let position = truncations.binary_search_by_key(&drawn[lane], |one| one.place).ok();
            let multiple = match position.map(|at| &truncations[at]).filter(|one| one.mask.0[lane] != 0) {
                None => proposal.mean_scale,
                Some(one) if survival[lane] <= one.share[lane] => displaced(proposal.mean_scale, add),
                Some(_) => 0.0,
            };
            self.bins.shift(&mut scratch.bins, lane, drawn[lane], multiple);
        }
    }

    #[inline(always)]
    fn pair<V: Vector>(&self, scratch: &BinsScratch, truncations: &[Truncation], exponents: &mut Vec<Lanes>) -> Ratios {
        let weights = &self.bins.law().log_weights;
        let mixture = self.density::<V>(weights, (1.0, 2.0), scratch, truncations, exponents);
        let mirrored = self.density::<V>(weights, (0.0, -1.0), scratch, truncations, exponents);
        Ratios { mixture, mirrored, proposal: mixture }
    }

    /// Returns ln Σ_t w_t e_t, with the multiples of a mode in bins that are not truncated and that are; the largest
    /// exponent is factored out.
    #[inline(always)]
    fn density<V: Vector>(
        &self,
        log_weights: &[f64],
        (usual, displaced): (f64, f64),
        scratch: &BinsScratch,
        truncations: &[Truncation],
        exponents: &mut Vec<Lanes>,
    ) -> Lanes {
        let squares = &self.bins.law().squares;
        exponents.clear();
        for (t, (row, log_weight)) in scratch.products.iter().zip(log_weights).enumerate() {
            let mut exponent = splat(0.0);
            let constant = V::splat(log_weight - 0.5 * usual * usual * squares[t]);
            V::load(row).mul_add(V::splat(usual), constant).store(&mut exponent);
            exponents.push(exponent);
        }
        for one in truncations {
            let (t, mask) = (one.place, V::load_bits(&one.mask));
            let constant = V::splat(log_weights[t] - 0.5 * displaced * displaced * squares[t]);
            // Logarithms of lanes without truncation have no meaning, but they are not selected.
            let (share, rest) = (ln(V::load(&one.share)), ln(V::load(&one.rest)));
            let moved = V::load(&scratch.products[t]).mul_add(V::splat(displaced), constant.add(share));
            let (mut first, mut second) = (splat(0.0), splat(0.0));
            V::select(mask, moved, V::load(&exponents[t])).store(&mut first);
            let kept = V::splat(log_weights[t]).add(rest);
            V::select(mask, kept, V::splat(f64::NEG_INFINITY)).store(&mut second);
            exponents[t] = first;
            exponents.push(second);
        }
        let mut largest = V::splat(f64::NEG_INFINITY);
        for row in &*exponents {
            largest = largest.max(V::load(row));
        }
        let mut sum = V::splat(0.0);
        for row in &*exponents {
            sum = sum.add(exp(V::load(row).sub(largest)));
        }
        let mut out = splat(0.0);
        largest.add(ln(sum)).store(&mut out);
        out
    }
}

/// There are no tilts: given the batch sizes, the law of a tilt would differ from sample to sample.
impl Family for TruncatedBinsKernel {
    fn outcome_length(&self) -> usize {
        self.bins.outcome_length()
    }

    fn of_presence(&self) -> bool {
        true
    }

    /// That of the exponents with the largest multiple, and of the logarithms of s_t and 1 − s_t, which are at most 40
    /// in size.
    fn rounding_at(&self, mean_scale: f64, _: f64) -> f64 {
        self.bins.rounding(largest_multiple(mean_scale)) + 256.0 * UNIT_ROUNDOFF
    }

    /// A mode counts at most twice.
    fn lipschitz(&self) -> f64 {
        2.0 * self.bins.lipschitz()
    }

    fn largest_mean(&self) -> f64 {
        self.bins.largest_mean()
    }

    fn magnitude(&self, mean_scale: f64) -> f64 {
        self.bins.magnitude(largest_multiple(mean_scale))
    }

    fn coordinate_error(&self, _: f64, _: f64) -> f64 {
        NORMAL_ERROR
    }

    fn truncation(&self) -> Option<f64> {
        self.sizes.can_truncate().then(|| self.sizes.variation())
    }

    fn batch_sizes(&self, stream: Stream) -> Vec<Vec<u64>> {
        with_vectors(Shown(&self.sizes, stream))
    }
}

/// Draws the batch sizes of eight samples.
struct Shown<'a>(&'a BinSizes, Stream);

impl Vectored for Shown<'_> {
    type Output = Vec<Vec<u64>>;

    #[inline(always)]
    fn run<V: Vector>(mut self) -> Self::Output {
        self.0.show::<V>(&mut self.1)
    }
}

impl Kernel for TruncatedBinsKernel {
    type Proposal = BinsProposal;
    type Scratch = TruncatedBinsScratch;
    type Scaled = BinsProposal;

    fn scaled(&self, parameter: f64, mean_scale: f64) -> Result<BinsProposal> {
        self.proposal(parameter, mean_scale)
    }

    fn mean_scale(proposal: &BinsProposal) -> f64 {
        proposal.mean_scale
    }

    fn sums(&self, proposal: &BinsProposal, direction: Direction) -> HolderSums {
        HolderSums::of_plain(&proposal.law == self.bins.law(), proposal.mean_scale, direction)
    }

    fn drawn(&self, proposal: &BinsProposal) -> (f64, f64) {
        proposal.law.drawn()
    }

    /// This is the proposal of the sampler without truncation.
    fn proposal(&self, parameter: f64, mean_scale: f64) -> Result<BinsProposal> {
        self.bins.proposal(parameter, mean_scale)
    }

    /// ln dQ/dR takes the place of the mirror image, since truncated batches are never compared under replacement.
    #[inline(always)]
    fn sample<V: Vector>(
        &self,
        proposal: &BinsProposal,
        purpose: Purpose,
        stream: &mut Stream,
        scratch: &mut TruncatedBinsScratch,
    ) -> Ratios {
        let add = purpose.direction == Direction::Add;
        self.sizes.draw::<V>(stream, &mut scratch.sizes);
        let mean_scale = proposal.mean_scale;
        let same = self.bins.law() == &proposal.law;
        let truncations = &scratch.sizes.truncations[..];
        if truncations.is_empty() {
            return draw::<V, _>(&*self.bins, proposal, purpose, stream, &mut scratch.bins);
        }
        self.draw::<V>(proposal, add, stream, scratch);
        let TruncatedBinsScratch { sizes, bins, exponents } = scratch;
        let mut ratios = self.pair::<V>(bins, &sizes.truncations, exponents);
        let plain = mean_scale.to_bits() == (if add { 0.0f64 } else { 1.0 }).to_bits() && same;
        ratios.proposal = match (plain, add) {
            (true, true) => ratios.mirrored,
            (true, false) => ratios.mixture,
            (false, _) => self.density::<V>(
                &proposal.law.log_weights,
                (mean_scale, displaced(mean_scale, add)),
                bins,
                &sizes.truncations,
                exponents,
            ),
        };
        ratios
    }

    #[inline(always)]
    fn weigh<V: Vector>(
        &self,
        origins: &Origins<BinsProposal>,
        (drawn, direction): (usize, Direction),
        stream: &mut Stream,
        scratch: &mut TruncatedBinsScratch,
        out: &mut Weighed,
    ) {
        let add = direction == Direction::Add;
        self.sizes.draw::<V>(stream, &mut scratch.sizes);
        let plain = BinsProposal::new(self.bins.law().clone(), direction.plain_mean_scale());
        let proposal = if let Origin::Scaled(proposal) = &origins.each[drawn] { proposal } else { &plain };
        self.draw::<V>(proposal, add, stream, scratch);
        let TruncatedBinsScratch { sizes, bins, exponents } = scratch;
        let pair = self.pair::<V>(bins, &sizes.truncations, exponents);
        let (present, absent) = (V::load(&pair.mixture), V::load(&pair.mirrored));
        let (numerator, loss) = if add { (absent, absent.sub(present)) } else { (present, present.sub(absent)) };
        out.add_loss(loss);
        let weighed = if out.worthless() { &[][..] } else { &origins.each[..] };
        for (k, origin) in weighed.iter().enumerate() {
            if let Origin::Scaled(m) = origin {
                let multiples = (m.mean_scale, displaced(m.mean_scale, add));
                let density = self.density::<V>(&m.law.log_weights, multiples, bins, &sizes.truncations, exponents);
                out.add(k, V::load(&density).sub(numerator));
            }
        }
    }

    #[inline(always)]
    fn given<V: Vector>(&self, _: Direction, products: &[Vec<f64>], sizes: &[Vec<u64>]) -> Ratios {
        self.pair::<V>(&self.bins.given_products(products), &self.sizes.given(sizes), &mut Vec::new())
    }
}
