//! The kernel for b-min-sep sampling with a banded Toeplitz matrix: noise → correlation → recursion, eight samples side
//! by side. It also serves cyclic Poisson sampling with a random phase, where a record that does not join waits b
//! rounds too: f_i = ((1 − p) + p e^{a_i}) f_{i+b} and dP/dR = (1/b) Σ_{i≤b} f_i.
//!
//! With ĉ = c/σ and ŷ = κĈx + z, the log ratio of taking part in round i is a_i = ⟨ĉ_i, ŷ⟩ − s_i/2, s_i = ‖ĉ_i‖² (the
//! in-range part of column i), and
//!
//! `f_i = (1 − p) f_{i+1} + p e^{a_i} f_{i+b}`, f_i = 1 for i > n; `dP/dR = (f_1 + p Σ_{i=2}^b f_i)/(1 + (b−1)p)` for a
//! warm start, f_1 for a cold one (Dong & Ganesh 2026, Section 5). The proposal's density g obeys the same recursion
//! with its own probability and e^{κa_i − κ(κ−1)s_i/2}, the mirrored f⁻ with e^{−a_i − s_i}. The recursions run
//! backwards in time, so time is cut into blocks from the end and only `bands` rows of ŷ and b rows of f are kept:
//! memory does not depend on n.
//!
//! For a user with k records of which j take part at once with probability w_j, p e^{a_i} becomes Σ_j w_j e^{ju_i −
//! j²s_i/2}, u_i = ⟨ĉ_i, ŷ⟩: with t = e^{a_i} and d = e^{−s_i} its terms are T_1 = t, T_{j+1} = T_j·t·d^j.
//!
//! **Range.** The recursions are those of [`super::recursion`]; eight samples whose exponents leave the linear domain
//! are recomputed in logarithms ([`RenewalKernel::logarithmic`]).
//!
//! **Rounding.** Every term is positive, so relative errors do not grow: each pattern's product includes at most n
//! additions and ⌈n/b⌉ factors; [`Family::rounding`] adds them up.

use crate::error::{domain, Result};
use crate::montecarlo::family::{DrawTuples, Family, Kernel, LanePatterns, Origin, Origins, Purpose, Ratios, Weighed};
use crate::montecarlo::kernels::correlate::Correlator;
use crate::montecarlo::kernels::logarithms::log_ratio;
use crate::montecarlo::kernels::products::{Blocks, Streamed};
use crate::montecarlo::kernels::recursion::{backwards, log_density, near, sampled, Growth, Recursive};
use crate::montecarlo::kernels::ring::{Ring, Track, SETTLED};
use crate::montecarlo::source::{add_participations, draw_noise, Given, Random, RenewalProposal, Source};
use crate::montecarlo::stream::{Stream, LARGEST_NORMAL};
use crate::montecarlo::tilt::{mean_participations, statistic, TiltBase, TiltedSource};
use crate::montecarlo::weight_bounds::{Direction, HolderSums};
use crate::participation::renewal::Renewal;
use crate::replicas::drawn::Participations;
use crate::special::{real, UNIT_ROUNDOFF};
use crate::vector::{splat, Lanes, Vector, Vectored, LANES};

/// The data of the kernel; shared by all threads.
#[derive(Debug, Clone)]
pub struct RenewalKernel {
    law: Renewal,
    /// ĉ: the coefficients in units of σ.
    pub coefficients: Vec<f64>,
    correlator: Correlator,
}

/// Buffers of one worker, reused from block to block.
#[derive(Debug, Clone, Default)]
pub struct RenewalScratch {
    pub(in crate::montecarlo) blocks: Blocks,
    pub(in crate::montecarlo) own: Ring,
    pub(in crate::montecarlo) mirror: Ring,
    pub(in crate::montecarlo) proposal: Ring,
    /// ŷ and ⟨ĉ_i, ŷ⟩ of all rounds, where samples are weighted by several proposals.
    pub(in crate::montecarlo) all_rows: Vec<Lanes>,
    pub(in crate::montecarlo) all_sums: Vec<Lanes>,
}

/// The growth of P, of its mirror image and of a proposal, all from the exponents of P.
struct RenewalGrowth<'a, const TILTED: bool, const MIRRORED: bool> {
    own: Track<'a>,
    mirror: Track<'a>,
    proposal: Track<'a>,
    mean_scale: f64,
}

impl<const TILTED: bool, const MIRRORED: bool> Growth for RenewalGrowth<'_, TILTED, MIRRORED> {
    #[inline(always)]
    fn advance<V: Vector>(&mut self, first: usize, count: usize, products: &[V; SETTLED]) -> bool {
        let squares = near(&self.own.law.squares, first);
        let mut own = *products;
        for k in 0..SETTLED {
            own[k] = products[k].sub(V::splat(0.5 * squares[k]));
        }
        let mut inside = self.own.participate(first, count, own, (1.0, &squares));
        if MIRRORED {
            let mut other = own;
            for k in 0..SETTLED {
                other[k] = V::splat(-squares[k]).sub(own[k]);
            }
            inside &= self.mirror.participate(first, count, other, (1.0, &squares));
        }
        if TILTED {
            let (mean_scale, curvature) = (self.mean_scale, 0.5 * self.mean_scale * (self.mean_scale - 1.0));
            let mut tilted = own;
            for k in 0..SETTLED {
                tilted[k] = own[k].mul_add(V::splat(mean_scale), V::splat(-curvature * squares[k]));
            }
            inside &= self.proposal.participate(first, count, tilted, (mean_scale * mean_scale, &squares));
        }
        inside
    }
}

impl RenewalKernel {
    /// Creates the kernel for coefficients c_0, …, c_{bands−1} in units of σ (ĉ = c/σ) and `iterations` rounds.
    ///
    /// # Errors
    /// [`Error::Domain`] for coefficients that are not finite and non-negative or whose first is zero, for more bands
    /// than the minimum separation or than rounds, and as [`Renewal::new`].
    pub fn new(
        coefficients: Vec<f64>,
        iterations: usize,
        min_separation: usize,
        sampling_probability: f64,
        warm: bool,
    ) -> Result<Self> {
        Self::build(coefficients, iterations, min_separation, |squares| {
            Renewal::new(min_separation, sampling_probability, warm, squares)
        })
    }

    /// Creates the kernel for cyclic Poisson sampling with a random phase.
    ///
    /// # Errors
    /// As [`Self::new`], and for more phases than rounds.
    pub fn with_phases(
        coefficients: Vec<f64>,
        iterations: usize,
        phases: usize,
        sampling_probability: f64,
    ) -> Result<Self> {
        Self::build(coefficients, iterations, phases, |squares| {
            Renewal::with_phases(phases, sampling_probability, squares)
        })
    }

    /// Creates the kernel for users with several records each.
    ///
    /// # Errors
    /// As [`Self::new`], and as [`Renewal::of_users`].
    pub fn of_users(
        coefficients: Vec<f64>,
        iterations: usize,
        min_separation: usize,
        record_probability: f64,
        records: u32,
        warm: bool,
    ) -> Result<Self> {
        Self::build(coefficients, iterations, min_separation, |squares| {
            Renewal::of_users(min_separation, record_probability, records, warm, squares)
        })
    }

    fn build(
        coefficients: Vec<f64>,
        iterations: usize,
        min_separation: usize,
        law: impl FnOnce(Vec<f64>) -> Result<Renewal>,
    ) -> Result<Self> {
        if let Some(&wrong) = coefficients.iter().find(|c| !(c.is_finite() && **c >= 0.0)) {
            return domain("coefficient", wrong, "finite and at least 0");
        }
        if !(coefficients.first().is_some_and(|&first| first > 0.0)) {
            return domain("first coefficient", coefficients.first().copied().unwrap_or(0.0), "greater than 0");
        }
        let bands = real(coefficients.len());
        if coefficients.len() > min_separation {
            return domain("bands", bands, "at most the minimum separation");
        }
        if coefficients.len() > iterations {
            return domain("bands", bands, "at most the number of iterations");
        }
        let mut squares = vec![0.0; iterations];
        let mut sum = 0.0;
        for (k, square) in squares.iter_mut().rev().enumerate() {
            if let Some(c) = coefficients.get(k) {
                sum += c * c;
            }
            *square = sum;
        }
        let law = law(squares)?;
        let correlator = Correlator::new(&coefficients, None);
        Ok(Self { law, coefficients, correlator })
    }

    /// Returns the correlator of rows with the coefficients.
    pub fn correlator(&self) -> &Correlator {
        &self.correlator
    }

    /// Returns the law of the participations.
    pub fn law(&self) -> &Renewal {
        &self.law
    }

    /// Returns whether this kernel has the same law and coefficients.
    pub(in crate::montecarlo) fn same(&self, other: &Self) -> bool {
        self.coefficients == other.coefficients && self.law == other.law
    }

    /// Returns the log densities of eight samples; `None` if some exponent leaves the linear domain.
    #[inline(always)]
    pub fn ratios<V: Vector, S: Source>(
        &self,
        proposal: Option<&RenewalProposal>,
        mirrored: bool,
        source: &mut S,
        scratch: &mut RenewalScratch,
    ) -> Option<Ratios> {
        let kernel = self;
        match (proposal, mirrored) {
            (None, false) => V::apart(Recursion::<_, false, false> { kernel, proposal, source, scratch }),
            (None, true) => V::apart(Recursion::<_, false, true> { kernel, proposal, source, scratch }),
            (Some(_), false) => V::apart(Recursion::<_, true, false> { kernel, proposal, source, scratch }),
            (Some(_), true) => V::apart(Recursion::<_, true, true> { kernel, proposal, source, scratch }),
        }
    }

    /// Draws ŷ of all rounds, into `scratch.all_rows`.
    #[inline(always)]
    pub(in crate::montecarlo) fn draw_rows<V: Vector, S: Source>(&self, source: &mut S, scratch: &mut RenewalScratch) {
        let n = self.law.iterations();
        source.begin::<V>(&mut scratch.blocks.patterns);
        scratch.all_rows.resize(n, splat(0.0));
        let block = self.correlator.block();
        for start in (0..n.div_ceil(block)).rev().map(|k| k * block) {
            let end = (start + block).min(n);
            source.fill::<V>(
                &self.coefficients,
                start,
                &mut scratch.all_rows[start..end],
                &mut scratch.blocks.patterns,
            );
        }
    }

    /// Computes ⟨ĉ_i, ŷ⟩ of all rounds, from `scratch.all_rows` into `scratch.all_sums`.
    #[inline(always)]
    pub(in crate::montecarlo) fn correlate_rows<V: Vector>(&self, scratch: &mut RenewalScratch) {
        let (n, block, tail) = (self.law.iterations(), self.correlator.block(), self.correlator.tail());
        scratch.all_sums.resize(n.next_multiple_of(SETTLED), splat(0.0));
        let RenewalScratch { blocks: Blocks { rows, sums, workspace, .. }, all_rows, all_sums, .. } = scratch;
        rows.resize(block + tail, splat(0.0));
        sums.resize(block.next_multiple_of(SETTLED), splat(0.0));
        for start in (0..n.div_ceil(block)).map(|k| k * block) {
            let end = (start + block + tail).min(n);
            rows.fill(splat(0.0));
            rows[..end - start].copy_from_slice(&all_rows[start..end]);
            let length = block.min(n - start);
            self.correlator.correlate::<V>(rows, length, sums, workspace);
            all_sums[start..start + length].copy_from_slice(&sums[..length]);
        }
    }

    /// Returns ⟨ĉ_i, ŷ⟩ of one lane for all rounds.
    pub(super) fn products(&self, rows: &[Lanes], lane: usize) -> Vec<f64> {
        let n = rows.len();
        let reach = |i: usize| self.coefficients.len().min(n - i);
        (0..n).map(|i| (0..reach(i)).map(|j| self.coefficients[j] * rows[i + j][lane]).sum()).collect()
    }

    /// Returns the log densities of eight samples by the recursion in logarithms: slower, for any range.
    pub fn logarithmic<V: Vector, S: Source>(
        &self,
        proposal: Option<&RenewalProposal>,
        mirrored: bool,
        source: &mut S,
        scratch: &mut RenewalScratch,
    ) -> Ratios {
        self.lane_by_lane::<V, S>(source, scratch, |_, products| {
            let squares = &self.law.squares;
            let own: Vec<f64> = products.iter().zip(squares).map(|(u, s)| u - 0.5 * s).collect();
            let mixture = log_ratio(&self.law, squares, 1.0, |i| own[i]);
            let reflected = if mirrored { log_ratio(&self.law, squares, 1.0, |i| -own[i] - squares[i]) } else { 0.0 };
            let proposal = proposal.map_or(mixture, |m| {
                let curvature = 0.5 * m.mean_scale * (m.mean_scale - 1.0);
                let exponent = |i: usize| m.mean_scale * own[i] - curvature * squares[i];
                log_ratio(&m.law, squares, m.mean_scale * m.mean_scale, exponent)
            });
            [mixture, reflected, proposal]
        })
    }

    /// Returns the three log densities of each lane, computed from its number and its products.
    pub(in crate::montecarlo) fn lane_by_lane<V: Vector, S: Source>(
        &self,
        source: &mut S,
        scratch: &mut RenewalScratch,
        densities: impl Fn(usize, &[f64]) -> [f64; 3],
    ) -> Ratios {
        self.draw_rows::<V, S>(source, scratch);
        let mut out = Ratios::NONE;
        for lane in 0..LANES {
            let logs = densities(lane, &self.products(&scratch.all_rows, lane));
            [out.mixture[lane], out.mirrored[lane], out.proposal[lane]] = logs;
        }
        out
    }
}

/// The recursions that some of the densities need, as a separate function for each choice of densities.
struct Recursion<'a, S, const TILTED: bool, const MIRRORED: bool> {
    kernel: &'a RenewalKernel,
    proposal: Option<&'a RenewalProposal>,
    source: &'a mut S,
    scratch: &'a mut RenewalScratch,
}

impl<S: Source, const TILTED: bool, const MIRRORED: bool> Vectored for Recursion<'_, S, TILTED, MIRRORED> {
    type Output = Option<Ratios>;

    #[inline(always)]
    fn run<V: Vector>(self) -> Option<Ratios> {
        let Self { kernel, proposal, source, scratch } = self;
        let mut products =
            Streamed::begin::<V>((&kernel.coefficients, &kernel.correlator), source, &mut scratch.blocks);
        let mut growth = RenewalGrowth::<'_, TILTED, MIRRORED> {
            own: Track::new(&kernel.law, &mut scratch.own),
            mirror: Track::new(&kernel.law, &mut scratch.mirror),
            proposal: Track::new(proposal.map_or(&kernel.law, |m| &m.law), &mut scratch.proposal),
            mean_scale: proposal.map_or(1.0, |m| m.mean_scale),
        };
        // If this fails, the caller draws the samples again from the same state of the stream, for the recursion in
        // logarithms.
        if !backwards::<V, _, _>(kernel.law.iterations(), &mut products, &mut growth) {
            return None;
        }
        let mixture = growth.own.total::<V>();
        let mirrored = if MIRRORED { growth.mirror.total::<V>() } else { splat(0.0) };
        let proposal = if TILTED { growth.proposal.total::<V>() } else { mixture };
        Some(Ratios { mixture, mirrored, proposal })
    }
}

/// Samples of a proposal.
struct RenewalSamples<'a> {
    kernel: &'a RenewalKernel,
    proposal: &'a RenewalProposal,
    mirrored: bool,
}

impl<'a> Recursive for RenewalSamples<'a> {
    type Density = &'a RenewalProposal;
    type Scratch = RenewalScratch;

    #[inline(always)]
    fn linear<V: Vector>(
        &self,
        asked: Option<&'a RenewalProposal>,
        stream: &mut Stream,
        scratch: &mut RenewalScratch,
    ) -> Option<Ratios> {
        let source = &mut Random { stream, proposal: self.proposal };
        self.kernel.ratios::<V, _>(asked, self.mirrored, source, scratch)
    }

    fn logarithmic<V: Vector>(
        &self,
        asked: Option<&'a RenewalProposal>,
        stream: &mut Stream,
        scratch: &mut RenewalScratch,
    ) -> Ratios {
        let source = &mut Random { stream, proposal: self.proposal };
        self.kernel.logarithmic::<V, _>(asked, self.mirrored, source, scratch)
    }

    #[inline(always)]
    fn unweighted(&self, purpose: Purpose, ratios: &Ratios) -> Option<Ratios> {
        purpose.worthless(ratios).then(|| purpose.unweighted(*ratios))
    }
}

impl Family for RenewalKernel {
    fn renewal_law(&self) -> Option<&Renewal> {
        Some(&self.law)
    }

    fn participations(&self) -> Option<Participations<'_>> {
        Some(Participations::Renewal(&self.law, &self.coefficients))
    }

    fn outcome_length(&self) -> usize {
        self.law.iterations()
    }

    /// The correlation's error of ⟨ĉ_i, ŷ⟩ is [`Correlator::rounding`] at |ŷ| ≤ 8.5 + |κ| max ĉ; s_i/2, the mean scale,
    /// the exponential and its argument add a few u of their size; a step of the recursion adds 4u; a pattern passes n
    /// steps and at most ⌈n/b⌉ participations. For k records at once the exponent's error counts k times, that of s_i
    /// k² times, and the sum of their terms adds 4k u.
    fn rounding_at(&self, mean_scale: f64, means: f64) -> f64 {
        let (bands, n, most) =
            (real(self.coefficients.len()), real(self.law.iterations()), real(self.law.most_participations()));
        let total: f64 = self.coefficients.iter().sum();
        let records = f64::from(self.law.records());
        let largest = LARGEST_NORMAL + means * self.largest_mean();
        let scale = 1.0 + mean_scale.abs();
        let exponent = scale * (self.correlator.rounding(largest) + 8.0 * UNIT_ROUNDOFF * total * largest)
            + UNIT_ROUNDOFF * (bands + 8.0 * scale * scale) * self.law.squares[0] * records;
        let several = 4.0 * records * records * most;
        (UNIT_ROUNDOFF * (4.0 * n + 16.0 * most + several + 64.0)
            + records * most * exponent
            + most * self.law.counts_error)
            * (1.0 + 1e-6)
    }

    /// n times the largest coefficient, since at most one participation (of all of a user's records) reaches each round.
    fn lipschitz(&self) -> f64 {
        let n = real(self.law.iterations());
        n * f64::from(self.law.records()) * self.coefficients.iter().copied().fold(0.0, f64::max) * (1.0 + 1e-9)
    }

    fn largest_mean(&self) -> f64 {
        f64::from(self.law.records()) * self.coefficients.iter().copied().fold(0.0, f64::max)
    }

    fn magnitude(&self, mean_scale: f64) -> f64 {
        let scale = 1.0 + mean_scale.abs();
        let (n, most) = (real(self.law.iterations()), real(self.law.most_participations()));
        let (lipschitz, records) = (self.lipschitz(), f64::from(self.law.records()));
        let square = most * records * records * self.law.squares[0];
        scale * scale * (lipschitz * (LARGEST_NORMAL + mean_scale.abs() * lipschitz / n) + square)
    }

    fn tilt_base(&self) -> Option<TiltBase> {
        let n = self.law.iterations();
        let taken = mean_participations(&self.law);
        let mut mean = vec![0.0; n];
        for (i, x) in taken.iter().enumerate() {
            for (m, c) in mean[i..].iter_mut().zip(&self.coefficients) {
                *m += c * x;
            }
        }
        let overlap: Vec<f64> =
            (0..n).map(|i| self.coefficients.iter().zip(&mean[i..]).map(|(c, m)| c * m).sum()).collect();
        // Each entry is a sum of at most `bands` products of non-negative numbers.
        let relative = UNIT_ROUNDOFF * (real(self.coefficients.len()) + 2.0);
        let error = relative * overlap.iter().copied().fold(0.0, f64::max);
        Some(TiltBase::of_rounds(&self.law, mean, overlap, error))
    }
}

/// The rows of outcomes of tuples of replicas.
struct Tuples<'a, 'b> {
    draw: &'a mut DrawTuples<'b>,
    stream: &'a mut Stream,
}

impl Source for Tuples<'_, '_> {
    #[inline(always)]
    fn begin<V: Vector>(&mut self, patterns: &mut LanePatterns) {
        (self.draw)(self.stream, patterns);
    }

    #[inline(always)]
    fn fill<V: Vector>(
        &mut self,
        coefficients: &[f64],
        start: usize,
        rows: &mut [Lanes],
        patterns: &mut [Vec<(usize, f64)>],
    ) {
        draw_noise::<V>(self.stream, rows);
        add_participations(coefficients, 1.0, start, rows, patterns);
    }
}

impl Kernel for RenewalKernel {
    type Proposal = RenewalProposal;
    type Scratch = RenewalScratch;
    type Scaled = RenewalProposal;

    fn scaled(&self, parameter: f64, mean_scale: f64) -> Result<RenewalProposal> {
        self.proposal(parameter, mean_scale)
    }

    fn mean_scale(proposal: &RenewalProposal) -> f64 {
        proposal.mean_scale
    }

    fn sums(&self, proposal: &RenewalProposal, direction: Direction) -> HolderSums {
        HolderSums::of(&self.law, &proposal.law, proposal.mean_scale, direction)
    }

    fn drawn(&self, proposal: &RenewalProposal) -> (f64, f64) {
        proposal.law.drawn()
    }

    /// The parameter is the probability to join.
    fn proposal(&self, parameter: f64, mean_scale: f64) -> Result<RenewalProposal> {
        RenewalProposal::new(&self.law, parameter, mean_scale)
    }

    /// The proposal's own density is computed only if the proposal is neither P nor R.
    #[inline(always)]
    fn sample<V: Vector>(
        &self,
        proposal: &RenewalProposal,
        purpose: Purpose,
        stream: &mut Stream,
        scratch: &mut RenewalScratch,
    ) -> Ratios {
        let mirrored = purpose.direction == Direction::Replace;
        let reference = proposal.mean_scale == 0.0;
        let plain = reference || (proposal.mean_scale.to_bits() == 1.0f64.to_bits() && self.law == proposal.law);
        let samples = RenewalSamples { kernel: self, proposal, mirrored };
        let mut ratios = sampled::<V, _>(&samples, (!plain).then_some(proposal), purpose, stream, scratch);
        if reference {
            ratios.proposal = splat(0.0);
        }
        ratios
    }

    #[inline(always)]
    fn weigh<V: Vector>(
        &self,
        origins: &Origins<RenewalProposal>,
        (drawn, direction): (usize, Direction),
        stream: &mut Stream,
        scratch: &mut RenewalScratch,
        out: &mut Weighed,
    ) {
        let base = &origins.base;
        match &origins.each[drawn] {
            Origin::Tilted(tilted) => self.draw_rows::<V, _>(&mut TiltedSource { stream, tilted, base }, scratch),
            Origin::Scaled(proposal) => self.draw_rows::<V, _>(&mut Random { stream, proposal }, scratch),
        }
        out.add_tilts::<V, _>(origins, statistic::<V>(&scratch.all_rows, &base.mean));
        self.correlate_rows::<V>(scratch);
        let RenewalScratch { all_sums: sums, own: ring, .. } = scratch;
        let squares = &self.law.squares;
        let own = V::load(&log_density::<V>(&self.law, (1.0, 1.0), squares, sums, ring));
        let zero = V::splat(0.0);
        let (loss, numerator) = match direction {
            Direction::Remove => (own, own),
            Direction::Add => (zero.sub(own), zero),
            Direction::Replace => {
                let mirrored = log_density::<V>(&self.law, (-1.0, 1.0), squares, sums, ring);
                (own.sub(V::load(&mirrored)), own)
            }
        };
        out.add_loss(loss);
        if out.worthless() {
            return;
        }
        for (k, origin) in origins.each.iter().enumerate() {
            if let Origin::Scaled(m) = origin {
                let density = log_density::<V>(&m.law, (m.mean_scale, m.mean_scale), squares, sums, ring);
                out.add(k, V::load(&density).sub(numerator));
            }
        }
    }

    #[inline(always)]
    fn given<V: Vector>(&self, _: Direction, outcomes: &[Vec<f64>], _: &[Vec<u64>]) -> Ratios {
        let mut scratch = RenewalScratch::default();
        self.ratios::<V, _>(None, true, &mut Given(outcomes), &mut scratch)
            .unwrap_or_else(|| self.logarithmic::<V, _>(None, true, &mut Given(outcomes), &mut scratch))
    }

    #[inline(always)]
    fn replicas<V: Vector>(
        &self,
        draw: &mut DrawTuples<'_>,
        mirrored: bool,
        stream: &mut Stream,
        scratch: &mut RenewalScratch,
    ) -> Ratios {
        let before = stream.clone();
        let linear = self.ratios::<V, _>(None, mirrored, &mut Tuples { draw, stream }, scratch);
        linear.unwrap_or_else(|| {
            // The samples left the linear domain: they are drawn again from the saved state.
            *stream = before;
            self.logarithmic::<V, _>(None, mirrored, &mut Tuples { draw, stream }, scratch)
        })
    }
}
