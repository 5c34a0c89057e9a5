//! The kernel for b-min-sep sampling with truncated batches: it draws the batch sizes of the other records, then runs
//! two recursions.
//!
//! A batch with more than B records keeps B of them at random; the dropped records wait for b rounds as well. The
//! numbers r_i of other records that were drawn do not depend on the sensitive record, so they are released first.
//! Given them, where r_i < B the sensitive record moves the sum by at most ĉ_i (x_i = 1 under P, 0 under Q). Where r_i
//! ≥ B it survives with probability s_i = B/(r_i + 1), in place of another record: relative to the sum without it, it
//! moves the sum by at most 2ĉ_i under P, and its empty stand-in by at most ĉ_i the other way under Q (Dong & Ganesh
//! 2026, Appendix D; their Lemma D.1 makes ±1 the worst). With R = N(0, I), u_i = ⟨ĉ_i, ŷ⟩ and e_i(m) = exp(m u_i −
//! m²‖ĉ_i‖²/2):
//!
//! `f_i = (1 − p) f_{i+1} + p φ_i f_{i+b}`; for P/R φ_i = e_i(1), or s_i e_i(2) + 1 − s_i; for Q/R φ_i = 1, or s_i
//! e_i(−1) + 1 − s_i;
//!
//! with a warm start each is averaged over the start separately. *Remove* samples y ~ P, *add* samples y ~ Q; given the
//! batch sizes, V = (P − e^ε Q)_+/M for any M, and the mean over the batch sizes is δ(ε) of the pair that releases them
//! too.
//!
//! A **proposal** with mean scale κ uses the multiple κ of ĉ_i where nothing is truncated, and 2κ (remove) or 2κ − 1
//! (add) where something is, with the same survival; its density obeys the same recursion. Plain sampling is κ = 1, or
//! κ = 0 for add: P and Q themselves.
//!
//! Eight samples without a truncated round are those of the plain kernel, and Q/R = 1. **Rounding**: as in
//! [`crate::montecarlo::kernels::renewal`], with multiples of up to max(2, 2|κ| + 1); s_i and 1 − s_i are each a
//! quotient with one rounding, all terms are positive, and so a truncated participation adds at most 8u to the error of
//! its exponent ([`Family::rounding`]).

use std::sync::Arc;

use crate::error::{domain, Result};
use crate::montecarlo::family::{draw, Family, Kernel, Origin, Origins, Purpose, Ratios, Weighed};
use crate::montecarlo::kernels::logarithms::log_recursion;
use crate::montecarlo::kernels::products::Streamed;
use crate::montecarlo::kernels::recursion::{backwards, near, sampled, Growth, Recursive};
use crate::montecarlo::kernels::renewal::{RenewalKernel, RenewalScratch};
use crate::montecarlo::kernels::ring::{growths, in_linear_domain, Track, SETTLED};
use crate::montecarlo::source::{add_participations, draw_noise, draw_patterns, Given, RenewalProposal, Source};
use crate::montecarlo::stream::{Stream, NORMAL_ERROR};
use crate::montecarlo::truncation::batch_sizes::{RoundSizes, SizeScratch, Truncation};
use crate::montecarlo::weight_bounds::{Direction, HolderSums};
use crate::participation::renewal::Renewal;
use crate::special::{real, UNIT_ROUNDOFF};
use crate::vector::functions::exp_in_range;
use crate::vector::{splat, with_vectors, Lanes, Vector, Vectored, LANES};

/// The data of the kernel; shared by all threads.
#[derive(Debug, Clone)]
pub struct TruncatedKernel {
    renewal: Arc<RenewalKernel>,
    sizes: Arc<RoundSizes>,
}

/// Buffers of one worker.
#[derive(Debug, Clone, Default)]
pub struct TruncatedScratch {
    sizes: SizeScratch,
    renewal: RenewalScratch,
}

/// Returns the multiple of a column at a truncated round, for a proposal with this mean scale.
pub fn displaced(mean_scale: f64, add: bool) -> f64 {
    2.0 * mean_scale - if add { 1.0 } else { 0.0 }
}

/// Returns the largest multiple of a column in P, Q or a proposal.
pub fn largest_multiple(mean_scale: f64) -> f64 {
    2f64.max(2.0 * mean_scale.abs() + 1.0)
}

/// One of the densities: a law of the patterns, and the multiples of a column at rounds that are not truncated and that
/// are.
#[derive(Debug, Clone, Copy)]
struct Density<'a> {
    law: &'a Renewal,
    usual: f64,
    displaced: f64,
}

impl Density<'_> {
    /// Computes φ of [`SETTLED`] rounds from u_i and the squared norms; returns false if an exponent leaves the linear
    /// domain.
    #[inline(always)]
    fn growth<V: Vector>(
        &self,
        products: &[V; SETTLED],
        squares: &[f64; SETTLED],
        count: usize,
        marks: &[Option<&Truncation>; SETTLED],
    ) -> ([V; SETTLED], bool) {
        let mut growth = [V::splat(1.0); SETTLED];
        let mut inside = true;
        if self.usual != 0.0 {
            let mut exponents = *products;
            for k in 0..SETTLED {
                let middle = -0.5 * self.usual * self.usual * squares[k];
                exponents[k] = products[k].mul_add(V::splat(self.usual), V::splat(middle));
            }
            growth = growths(self.law, exponents, (1.0, squares));
            inside = in_linear_domain(&exponents[..count], 1.0);
        }
        for k in 0..count {
            if let Some(mark) = marks[k] {
                let middle = -0.5 * self.displaced * self.displaced * squares[k];
                let exponent = products[k].mul_add(V::splat(self.displaced), V::splat(middle));
                let mask = V::load_bits(&mark.mask);
                let exponent = V::select(mask, exponent, V::splat(0.0));
                let blended = V::load(&mark.share).mul_add(exp_in_range(exponent), V::load(&mark.rest));
                growth[k] = V::select(mask, blended, growth[k]);
                inside &= in_linear_domain(&[exponent], 1.0);
            }
        }
        (growth, inside)
    }

    /// Returns the log density of one lane by the recursion in logarithms.
    fn logarithmic(&self, products: &[f64], squares: &[f64], truncations: &[Truncation], lane: usize) -> f64 {
        let join = self.law.sampling_probability.ln();
        let mut shares = vec![(0.0, 1.0); products.len()];
        for one in truncations.iter().filter(|one| one.mask.0[lane] != 0) {
            shares[one.place] = (one.share[lane], one.rest[lane]);
        }
        let exponent = |i: usize, m: f64| m * products[i] - 0.5 * m * m * squares[i];
        log_recursion(self.law, |i| {
            let terms = match shares[i] {
                (share, rest) if share > 0.0 => [share.ln() + exponent(i, self.displaced), rest.ln()],
                _ => [exponent(i, self.usual), f64::NEG_INFINITY],
            };
            terms.into_iter().map(move |term| join + term)
        })
    }
}

/// The growth of P, of Q and of a proposal.
struct TruncatedGrowth<'a> {
    pair: [Density<'a>; 2],
    proposal: Option<Density<'a>>,
    own: Track<'a>,
    absent: Track<'a>,
    drawn: Track<'a>,
    truncations: &'a [Truncation],
    /// The number of truncated rounds that have not been passed yet.
    left: usize,
}

impl Growth for TruncatedGrowth<'_> {
    #[inline(always)]
    fn advance<V: Vector>(&mut self, first: usize, count: usize, products: &[V; SETTLED]) -> bool {
        let squares = near(&self.own.law.squares, first);
        let [present, absent] = &self.pair;
        let truncations = self.truncations;
        let mut marks = [None; SETTLED];
        while self.left > 0 && truncations[self.left - 1].place >= first {
            self.left -= 1;
            marks[truncations[self.left].place - first] = Some(&truncations[self.left]);
        }
        let (growth, mut inside) = present.growth(products, &squares, count, &marks);
        inside &= self.own.advance(first, count, growth);
        if self.left < truncations.len() {
            // After the last truncated round Q is R: f = 1.
            let (growth, exponents) = absent.growth(products, &squares, count, &marks);
            inside &= exponents & self.absent.advance(first, count, growth);
        }
        if let Some(m) = &self.proposal {
            let (growth, exponents) = m.growth(products, &squares, count, &marks);
            inside &= exponents & self.drawn.advance(first, count, growth);
        }
        inside
    }
}

/// Samples from a proposal, given the truncated rounds: participations in them survive or are dropped.
struct Thinned<'a> {
    stream: &'a mut Stream,
    proposal: Density<'a>,
    truncations: &'a [Truncation],
}

impl Source for Thinned<'_> {
    #[inline(always)]
    fn begin<V: Vector>(&mut self, patterns: &mut Vec<Vec<(usize, f64)>>) {
        patterns.resize(LANES, Vec::new());
        patterns.iter_mut().for_each(Vec::clear);
        draw_patterns::<V>(self.stream, self.proposal.law, patterns);
        // The number of records is replaced by the multiple of the column.
        patterns.iter_mut().flatten().for_each(|(_, multiple)| *multiple = self.proposal.usual);
        let mut drawing = self.stream.take::<V>();
        let mut drawn = splat(0.0);
        for one in self.truncations {
            drawing.uniform().store(&mut drawn);
            for lane in (0..LANES).filter(|&lane| one.mask.0[lane] != 0) {
                if let Ok(at) = patterns[lane].binary_search_by_key(&one.place, |&(round, _)| round) {
                    let survives = drawn[lane] <= one.share[lane];
                    patterns[lane][at].1 = if survives { self.proposal.displaced } else { 0.0 };
                }
            }
        }
        self.stream.put_back(drawing);
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

impl TruncatedKernel {
    /// Creates the kernel for batches of the sampler that `renewal` describes, truncated to `limit` of `dataset_size`
    /// records.
    ///
    /// # Errors
    /// [`Error::Domain`] for users with several records and for random phases, which this analysis does not cover, and
    /// as [`RoundSizes::new`].
    pub fn new(renewal: Arc<RenewalKernel>, dataset_size: u64, limit: u64) -> Result<Self> {
        let law = renewal.law();
        if law.records() > 1 || law.phased {
            let value = f64::from(law.records());
            return domain("records", value, "1, available from round to round");
        }
        let (n, b, p, warm) = (law.iterations(), law.min_separation, law.sampling_probability, law.warm);
        let sizes = Arc::new(RoundSizes::new(dataset_size, limit, n, b, p, warm)?);
        Ok(Self { renewal, sizes })
    }

    fn pair(&self) -> [Density<'_>; 2] {
        let law = self.renewal.law();
        [Density { law, usual: 1.0, displaced: 2.0 }, Density { law, usual: 0.0, displaced: -1.0 }]
    }

    /// Returns the log densities in the linear domain; `None` if some exponent leaves it.
    #[inline(always)]
    fn linear<V: Vector, S: Source>(
        &self,
        proposal: Option<Density<'_>>,
        source: &mut S,
        truncations: &[Truncation],
        scratch: &mut RenewalScratch,
    ) -> Option<Ratios> {
        let law = self.renewal.law();
        let mut products =
            Streamed::begin::<V>((&self.renewal.coefficients, self.renewal.correlator()), source, &mut scratch.blocks);
        let mut growth = TruncatedGrowth {
            pair: self.pair(),
            proposal,
            own: Track::new(law, &mut scratch.own),
            absent: Track::new(law, &mut scratch.mirror),
            drawn: Track::new(proposal.map_or(law, |m| m.law), &mut scratch.proposal),
            truncations,
            left: truncations.len(),
        };
        if !backwards::<V, _, _>(law.iterations(), &mut products, &mut growth) {
            return None;
        }
        let mixture = growth.own.total::<V>();
        let mirrored = if truncations.is_empty() { splat(0.0) } else { growth.absent.total::<V>() };
        let proposal = if proposal.is_some() { growth.drawn.total::<V>() } else { mixture };
        Some(Ratios { mixture, mirrored, proposal })
    }

    /// Returns the same by recursions in logarithms: slower, for any range.
    fn logarithmic<V: Vector, S: Source>(
        &self,
        proposal: Option<Density<'_>>,
        source: &mut S,
        truncations: &[Truncation],
        scratch: &mut RenewalScratch,
    ) -> Ratios {
        let squares = &self.renewal.law().squares;
        let [present, absent] = self.pair();
        self.renewal.lane_by_lane::<V, S>(source, scratch, |lane, products| {
            let density = |one: Density<'_>| one.logarithmic(products, squares, truncations, lane);
            let mixture = density(present);
            [mixture, density(absent), proposal.map_or(mixture, density)]
        })
    }
}

/// Samples of a proposal, given the truncated rounds.
struct TruncatedSamples<'a> {
    kernel: &'a TruncatedKernel,
    proposal: Density<'a>,
    truncations: &'a [Truncation],
    add: bool,
}

impl<'a> Recursive for TruncatedSamples<'a> {
    type Density = Density<'a>;
    type Scratch = RenewalScratch;

    #[inline(always)]
    fn linear<V: Vector>(
        &self,
        asked: Option<Density<'a>>,
        stream: &mut Stream,
        scratch: &mut RenewalScratch,
    ) -> Option<Ratios> {
        let (proposal, truncations) = (self.proposal, self.truncations);
        self.kernel.linear::<V, _>(asked, &mut Thinned { stream, proposal, truncations }, truncations, scratch)
    }

    fn logarithmic<V: Vector>(
        &self,
        asked: Option<Density<'a>>,
        stream: &mut Stream,
        scratch: &mut RenewalScratch,
    ) -> Ratios {
        let (proposal, truncations) = (self.proposal, self.truncations);
        self.kernel.logarithmic::<V, _>(asked, &mut Thinned { stream, proposal, truncations }, truncations, scratch)
    }

    #[inline(always)]
    fn unweighted(&self, purpose: Purpose, ratios: &Ratios) -> Option<Ratios> {
        let proposal = if self.add { ratios.mirrored } else { ratios.mixture };
        worthless(ratios, self.add, purpose.least).then_some(Ratios { proposal, ..*ratios })
    }
}

/// There are no tilts: given the batch sizes, the law of a tilt would differ from sample to sample.
impl Family for TruncatedKernel {
    fn renewal_law(&self) -> Option<&Renewal> {
        Some(self.renewal.law())
    }

    fn outcome_length(&self) -> usize {
        self.renewal.outcome_length()
    }

    fn of_presence(&self) -> bool {
        true
    }

    /// See the head of this file.
    fn rounding_at(&self, mean_scale: f64, _: f64) -> f64 {
        let most = real(self.renewal.law().most_participations());
        let multiple = largest_multiple(mean_scale);
        // The error of ‖ĉ_i‖², bands·u relatively, counts multiple²/2 times.
        let bands = real(self.renewal.coefficients.len());
        let norms = multiple * multiple * bands * self.renewal.law().squares[0];
        self.renewal.rounding(multiple) + UNIT_ROUNDOFF * most * (norms + 8.0) * (1.0 + 1e-6)
    }

    /// Participations count at most twice.
    fn lipschitz(&self) -> f64 {
        2.0 * self.renewal.lipschitz()
    }

    fn largest_mean(&self) -> f64 {
        self.renewal.largest_mean()
    }

    fn magnitude(&self, mean_scale: f64) -> f64 {
        self.renewal.magnitude(largest_multiple(mean_scale))
    }

    fn coordinate_error(&self, mean_scale: f64, _: f64) -> f64 {
        let multiple = (2.0 * mean_scale).abs().max((2.0 * mean_scale - 1.0).abs());
        NORMAL_ERROR + self.added(multiple * self.largest_mean(), 0.0)
    }

    fn truncation(&self) -> Option<f64> {
        self.sizes.can_truncate().then(|| self.sizes.variation())
    }

    fn batch_sizes(&self, stream: Stream) -> Vec<Vec<u64>> {
        with_vectors(Shown(&self.sizes, stream))
    }
}

/// Draws the batch sizes of eight samples.
struct Shown<'a>(&'a RoundSizes, Stream);

impl Vectored for Shown<'_> {
    type Output = Vec<Vec<u64>>;

    #[inline(always)]
    fn run<V: Vector>(mut self) -> Self::Output {
        self.0.show::<V>(&mut self.1)
    }
}

impl Kernel for TruncatedKernel {
    type Proposal = RenewalProposal;
    type Scratch = TruncatedScratch;
    type Scaled = RenewalProposal;

    fn scaled(&self, parameter: f64, mean_scale: f64) -> Result<RenewalProposal> {
        self.proposal(parameter, mean_scale)
    }

    fn mean_scale(proposal: &RenewalProposal) -> f64 {
        proposal.mean_scale
    }

    fn sums(&self, proposal: &RenewalProposal, direction: Direction) -> HolderSums {
        HolderSums::of_plain(&proposal.law == self.renewal.law(), proposal.mean_scale, direction)
    }

    fn drawn(&self, proposal: &RenewalProposal) -> (f64, f64) {
        proposal.law.drawn()
    }

    /// This is the proposal of the sampler without truncation.
    fn proposal(&self, parameter: f64, mean_scale: f64) -> Result<RenewalProposal> {
        self.renewal.proposal(parameter, mean_scale)
    }

    /// ln dQ/dR takes the place of the mirror image, since truncated batches are never compared under replacement.
    #[inline(always)]
    fn sample<V: Vector>(
        &self,
        proposal: &RenewalProposal,
        purpose: Purpose,
        stream: &mut Stream,
        scratch: &mut TruncatedScratch,
    ) -> Ratios {
        let add = purpose.direction == Direction::Add;
        self.sizes.draw::<V>(stream, &mut scratch.sizes);
        let truncations = &scratch.sizes.truncations[..];
        if truncations.is_empty() {
            return draw::<V, _>(&*self.renewal, proposal, purpose, stream, &mut scratch.renewal);
        }
        let (usual, displaced) = (proposal.mean_scale, displaced(proposal.mean_scale, add));
        let density = Density { law: &proposal.law, usual, displaced };
        let plain =
            usual.to_bits() == (if add { 0.0f64 } else { 1.0 }).to_bits() && &proposal.law == self.renewal.law();
        let samples = TruncatedSamples { kernel: self, proposal: density, truncations, add };
        let evaluated = (!plain).then_some(density);
        let mut ratios = sampled::<V, _>(&samples, evaluated, purpose, stream, &mut scratch.renewal);
        if plain {
            ratios.proposal = if add { ratios.mirrored } else { ratios.mixture };
        }
        ratios
    }

    #[inline(always)]
    fn weigh<V: Vector>(
        &self,
        origins: &Origins<RenewalProposal>,
        (drawn, direction): (usize, Direction),
        stream: &mut Stream,
        scratch: &mut TruncatedScratch,
        out: &mut Weighed,
    ) {
        let add = direction == Direction::Add;
        self.sizes.draw::<V>(stream, &mut scratch.sizes);
        let truncations = &scratch.sizes.truncations[..];
        let of = |law, mean_scale| Density { law, usual: mean_scale, displaced: displaced(mean_scale, add) };
        let proposal = match &origins.each[drawn] {
            Origin::Scaled(m) => of(&m.law, m.mean_scale),
            Origin::Tilted(_) => of(self.renewal.law(), direction.plain_mean_scale()),
        };
        self.renewal.draw_rows::<V, _>(&mut Thinned { stream, proposal, truncations }, &mut scratch.renewal);
        let rows = std::mem::take(&mut scratch.renewal.all_rows);
        let mut evaluate = |density: Option<Density<'_>>| {
            let ratios = self.linear::<V, _>(density, &mut Rows(&rows), truncations, &mut scratch.renewal);
            ratios.unwrap_or_else(|| {
                self.logarithmic::<V, _>(density, &mut Rows(&rows), truncations, &mut scratch.renewal)
            })
        };
        let pair = evaluate(None);
        let (present, absent) = (V::load(&pair.mixture), V::load(&pair.mirrored));
        let (numerator, loss) = if add { (absent, absent.sub(present)) } else { (present, present.sub(absent)) };
        out.add_loss(loss);
        let weighed = if out.worthless() { &[][..] } else { &origins.each[..] };
        for (k, origin) in weighed.iter().enumerate() {
            if let Origin::Scaled(m) = origin {
                out.add(k, V::load(&evaluate(Some(of(&m.law, m.mean_scale))).proposal).sub(numerator));
            }
        }
        scratch.renewal.all_rows = rows;
    }

    #[inline(always)]
    fn given<V: Vector>(&self, _: Direction, outcomes: &[Vec<f64>], sizes: &[Vec<u64>]) -> Ratios {
        let truncations = self.sizes.given(sizes);
        let mut scratch = RenewalScratch::default();
        self.linear::<V, _>(None, &mut Given(outcomes), &truncations, &mut scratch)
            .unwrap_or_else(|| self.logarithmic::<V, _>(None, &mut Given(outcomes), &truncations, &mut scratch))
    }
}

/// Returns whether no loss of eight samples is above `least`; NaN counts as above.
fn worthless(ratios: &Ratios, add: bool, least: f64) -> bool {
    let sign = if add { -1.0 } else { 1.0 };
    (0..LANES).all(|l| sign * (ratios.mixture[l] - ratios.mirrored[l]) <= least)
}

/// Rows that were drawn before.
struct Rows<'a>(&'a [Lanes]);

impl Source for Rows<'_> {
    #[inline(always)]
    fn begin<V: Vector>(&mut self, patterns: &mut Vec<Vec<(usize, f64)>>) {
        patterns.clear();
    }

    #[inline(always)]
    fn fill<V: Vector>(&mut self, _: &[f64], start: usize, rows: &mut [Lanes], _: &mut [Vec<(usize, f64)>]) {
        rows.copy_from_slice(&self.0[start..start + rows.len()]);
    }
}
