//! The kernel for b-min-sep sampling with columns longer than b: participations overlap, and the likelihood ratio is
//! enclosed.
//!
//! With ĉ = c/σ, u_i = ⟨ĉ_i, ŷ⟩ and s_i = ‖ĉ_i‖², the ratio is dP/dR = Σ_x w_x exp(Σ_i x_i u_i − ‖Ĉx‖²/2), and for
//! non-negative C
//!
//! `Σ_i x_i² s_i ≤ ‖Ĉx‖² = Σ_i x_i² s_i + Σ_{i≠j} x_i x_j ⟨ĉ_i, ĉ_j⟩ ≤ Σ_i x_i² (s_i + Γ_i)`,
//!
//! Γ_i the largest sum of inner products of column i with the other columns of a pattern
//! ([`crate::participation::separated`]), since x_i x_j ≤ (x_i² + x_j²)/2. With either bound the weight of a pattern is
//! a product over its rounds, so the recursion of [`super::recursion`] sums it: with s_i it gives f↑ ≥ dP/dR, with
//! s_i + Γ_i it gives f↓ ≤ dP/dR (Dong & Ganesh 2026, Appendix B; counting a cross term with both its members gives the
//! lower bound). The two are equal where columns do not overlap.
//!
//! **From above** (for guarantees) the loss is replaced by one that is never smaller: f↑ where the record is removed,
//! f↓ where it is added, f↑(y) against f↓(−y) under replacement. **From below** (for lower bounds) the other way round.
//! Samples are drawn from the true P.
//!
//! **Weights.** The density of a proposal M = Σ_x v_x N(κĈx, I) is enclosed by the same two recursions, κu_i and κ²s_i
//! in place of u_i and s_i. For a guarantee a sample counts V = (f↑ − e^ε)_+/g↓ ≥ (dP/dR − e^ε)_+/g: its mean is at
//! least δ(ε), and it is bounded by the proof of [`crate::montecarlo::weight_bounds`] with e^{κ²‖Ĉx‖²/2} ≤
//! e^{κ²Σ(s+Γ)/2}. That costs the gap of the two recursions. An *estimate* needs no bound and is weighted by the drawn
//! pattern itself: w_x r_x(y)/(v_x r_x^κ(y) e^{−κ(κ−1)‖Ĉx‖²/2}) for remove, one over the ratio of the normal densities
//! for add, exact for the enclosed loss.

use crate::error::{domain, Error, Result};
use crate::montecarlo::family::{Family, Kernel, LanePatterns, Origin, Origins, Purpose, Ratios, Weighed};
use crate::montecarlo::kernels::columns::{ColumnScratch, Columns};
use crate::montecarlo::kernels::recursion::log_density;
use crate::montecarlo::kernels::ring::Ring;
use crate::montecarlo::source::{draw_patterns, RenewalProposal};
use crate::montecarlo::stream::{Stream, LARGEST_NORMAL, NORMAL_ERROR};
use crate::montecarlo::tilt::{draw_tilted, mean_participations, shift, statistic, TiltBase};
use crate::montecarlo::weight_bounds::{Direction, HolderSums};
use crate::participation::renewal::Renewal;
use crate::participation::{square_error, PatternSum};
use crate::special::{real, UNIT_ROUNDOFF};
use crate::vector::{splat, Lanes, Portable, Vector, LANES};
use std::convert::Infallible;
use std::sync::Arc;

/// The data of the kernel; shared by all threads.
#[derive(Debug, Clone)]
pub struct OverlappingKernel {
    columns: Arc<Columns>,
    /// 1/σ.
    unit: f64,
    /// The law with s_i, for f↑.
    upper: Renewal,
    /// The law with s_i + Γ_i, for f↓.
    lower: Renewal,
    /// Whether losses are replaced by lower bounds.
    below: bool,
}

/// Buffers of one worker.
#[derive(Debug, Clone, Default)]
pub struct OverlappingScratch {
    patterns: LanePatterns,
    rows: Vec<Lanes>,
    sums: Vec<Lanes>,
    ring: Ring,
    columns: ColumnScratch,
}

/// The result of a draw: the law and mean scale, and for each lane ln of the weights of the patterns, Σ x_i u_i and
/// ‖Ĉx‖².
struct Drawn {
    patterns: Lanes,
    norms: Lanes,
}

impl OverlappingKernel {
    /// Creates the kernel for a matrix, noise multiplier σ, sampling probability and start; a user has `records`
    /// records.
    ///
    /// # Errors
    /// [`Error::Domain`] for σ that is not finite and positive; and as [`Renewal::of_users`].
    pub fn new(
        columns: Arc<Columns>,
        noise_multiplier: f64,
        record_probability: f64,
        records: u32,
        warm: bool,
        below: bool,
    ) -> Result<Self> {
        if !(noise_multiplier.is_finite() && noise_multiplier > 0.0) {
            let name = "noise_multiplier";
            return domain(name, noise_multiplier, "finite and greater than 0");
        }
        let unit = 1.0 / noise_multiplier;
        let gram = columns.gram();
        // These are sums of non-negative terms, each rounded a few times. f↓ is moved to the safe side; the rounding of
        // f↑ is in the error budget.
        let slack = 1.0 + 16.0 * UNIT_ROUNDOFF * real(columns.iterations());
        let squares: Vec<f64> = gram.squares.iter().map(|s| s * unit * unit).collect();
        let norm_bounds = gram
            .squares
            .iter()
            .zip(&gram.off_diagonals)
            .map(|(s, c)| (s + c * slack) * unit * unit)
            .collect::<Vec<_>>();
        let law = |squares| Renewal::of_users(columns.min_separation(), record_probability, records, warm, squares);
        let (upper, lower) = (law(squares)?, law(norm_bounds)?);
        Ok(Self { columns, unit, upper, lower, below })
    }

    /// Returns the law whose recursion replaces P where a large ratio is a large loss, and the law for the other role.
    fn laws(&self) -> (&Renewal, &Renewal) {
        if self.below {
            (&self.lower, &self.upper)
        } else {
            (&self.upper, &self.lower)
        }
    }

    #[inline(always)]
    fn densities<V: Vector>(
        &self,
        direction: Direction,
        drawn: Option<(&RenewalProposal, Purpose, &Drawn)>,
        scratch: &mut OverlappingScratch,
    ) -> Ratios {
        let OverlappingScratch { patterns, rows, sums, ring, columns } = scratch;
        self.columns.correlate::<V>(rows, sums, columns);
        let (large, small) = self.laws();
        let unit = self.unit;
        let own = if direction == Direction::Add { small } else { large };
        let mixture = log_density::<V>(own, (unit, 1.0), &own.squares, sums, ring);
        let mirrored = if direction == Direction::Replace {
            log_density::<V>(small, (-unit, 1.0), &small.squares, sums, ring)
        } else {
            splat(0.0)
        };
        let mut out = Ratios { mixture, mirrored, proposal: mixture };
        let Some((proposal, purpose, drawn)) = drawn else { return out };
        if purpose.worthless(&out) {
            return purpose.unweighted(out);
        }
        let (law, mean_scale) = (&proposal.law, proposal.mean_scale);
        let plain_mean_scale = direction.plain_mean_scale();
        #[allow(clippy::float_cmp)] // the plain mean scale is given as that very number
        let plain = mean_scale == plain_mean_scale;
        if plain && (mean_scale == 0.0 || same_law(&self.upper, law)) {
            // These densities make V = (1 − e^{ε−L})_+ itself.
            out.proposal = if direction == Direction::Add { splat(0.0) } else { mixture };
        } else if purpose.binding {
            out.proposal = log_density::<V>(law, (mean_scale * unit, mean_scale), &small.squares, sums, ring);
        } else {
            let numerator = if direction == Direction::Add { splat(0.0) } else { mixture };
            for lane in 0..LANES {
                let inner: f64 =
                    patterns[lane].iter().map(|&(round, count)| count * sums[round][lane]).sum::<f64>() * unit;
                let norm = drawn.norms[lane];
                let own = if direction == Direction::Add { 0.0 } else { drawn.patterns[lane] + inner - 0.5 * norm };
                let theirs = mean_scale * inner - 0.5 * mean_scale * mean_scale * norm;
                out.proposal[lane] = numerator[lane] - (own - theirs);
            }
        }
        out
    }
}

impl Family for OverlappingKernel {
    /// This has the squared norms of single columns.
    fn renewal_law(&self) -> Option<&Renewal> {
        Some(&self.upper)
    }

    fn outcome_length(&self) -> usize {
        self.upper.iterations()
    }

    /// Compare [`super::renewal`]. The error of u_i is [`Columns::rounding`] at |ŷ| ≤ 8.5 + |κ| max (Ĉx)_k and a few u
    /// of its size; that of s_i + Γ_i is a few n·u of its size; a step of the recursion adds 4u; a pattern passes n
    /// steps and at most ⌈n/b⌉ participations, of up to k records.
    fn rounding_at(&self, mean_scale: f64, means: f64) -> f64 {
        let (n, most, records) =
            (real(self.upper.iterations()), real(self.upper.most_participations()), f64::from(self.upper.records()));
        let scale = 1.0 + mean_scale.abs();
        let largest = LARGEST_NORMAL + means * self.largest_mean();
        let sums = (self.columns.rounding(largest) + 8.0 * UNIT_ROUNDOFF * self.columns.total() * largest) * self.unit;
        let exponent = scale * sums
            + UNIT_ROUNDOFF
                * (16.0 * n + 8.0 * scale * scale)
                * self.lower.squares.iter().copied().fold(0.0, f64::max)
                * records;
        let several = 4.0 * records * records * most;
        (UNIT_ROUNDOFF * (4.0 * n + 16.0 * most + several + 64.0)
            + records * most * exponent
            + most * self.upper.counts_error)
            * (1.0 + 1e-6)
    }

    /// Σ_k of the largest (Ĉx)_k.
    fn lipschitz(&self) -> f64 {
        self.columns.reach().0 * self.unit * f64::from(self.upper.records()) * (1.0 + 1e-9)
    }

    fn largest_mean(&self) -> f64 {
        self.columns.reach().1 * self.unit * f64::from(self.upper.records())
    }

    /// The last term is the largest Σ x_i²(s_i + Γ_i).
    fn magnitude(&self, mean_scale: f64) -> f64 {
        let (scale, records) = (1.0 + mean_scale.abs(), f64::from(self.upper.records()));
        let square = self.lower.squares.iter().copied().fold(0.0, f64::max);
        let most = real(self.upper.most_participations()) * records * records * square;
        scale * scale * (self.lipschitz() * (LARGEST_NORMAL + mean_scale.abs() * self.largest_mean()) + most)
    }

    /// The error of κĈx is that of its sums.
    fn coordinate_error(&self, mean_scale: f64, displaced: f64) -> f64 {
        let largest = self.largest_mean();
        let sums = mean_scale.abs() * self.unit * self.columns.rounding(f64::from(self.upper.records()));
        NORMAL_ERROR + sums + self.added(mean_scale.abs() * largest, displaced * largest)
    }

    /// m̄ is the matrix applied to the mean participations, and h its transpose applied to the result.
    fn tilt_base(&self) -> Option<TiltBase> {
        let OverlappingScratch { rows, sums, columns, .. } = &mut OverlappingScratch::default();
        let mut patterns = vec![Vec::new(); LANES];
        patterns[0] = mean_participations(&self.upper).into_iter().enumerate().collect();
        self.columns.spread::<Portable>(&patterns, rows, columns);
        for row in rows.iter_mut() {
            row[0] *= self.unit;
        }
        let mean: Vec<f64> = rows.iter().map(|row| row[0]).collect();
        self.columns.correlate::<Portable>(rows, sums, columns);
        let overlap: Vec<f64> = sums.iter().take(self.columns.iterations()).map(|sum| sum[0] * self.unit).collect();
        let largest = mean.iter().copied().fold(0.0, f64::max);
        let error = self.columns.rounding(largest) * self.unit
            + 2.0 * UNIT_ROUNDOFF * overlap.iter().copied().fold(0.0, f64::max);
        Some(TiltBase::of_rounds(&self.upper, mean, overlap, error))
    }
}

impl Kernel for OverlappingKernel {
    type Proposal = RenewalProposal;
    type Scratch = OverlappingScratch;
    /// Only bounds on the density of a scaled proposal are known, so a mixture cannot contain one.
    type Scaled = Infallible;

    fn scaled(&self, _: f64, _: f64) -> Result<Infallible> {
        Err(Error::Numerics { reason: "mixtures have no scaled proposals where columns overlap" })
    }

    fn mean_scale(proposal: &RenewalProposal) -> f64 {
        proposal.mean_scale
    }

    /// The squared norms are those that the proof at the head of this file needs.
    ///
    /// Remove: T has e^{(κ/(κ−1))(κG − U)/2} for e^{κS/2}, with G_x = Σ x_i²(s_i + Γ_i) and U_x = Σ x_i² s_i: f↑ = Σ
    /// w_x e_x e^{−U/2}, g↓ = Σ v_x e_x^κ e^{−κ²G/2}. Add: A with G for S. Replacement: ζ with (U + G)/2 for S, since
    /// f↑(y) f↓(−y) ≥ ζ².
    fn sums(&self, proposal: &RenewalProposal, direction: Direction) -> HolderSums {
        let RenewalProposal { law: proposal, mean_scale } = proposal;
        let mean_scale = *mean_scale;
        let pairs = || self.lower.squares.iter().zip(&self.upper.squares);
        // This gives a law with these multiples of G and U, and a bound on the error of its squared norms, which are
        // differences of larger ones.
        let blended = |factor: (f64, f64)| {
            let squares = pairs().map(|(g, u)| factor.0 * g + factor.1 * u).collect();
            let widest = pairs().map(|(g, u)| factor.0.abs() * g + factor.1.abs() * u).fold(0.0, f64::max);
            (Renewal { squares, ..self.upper.clone() }, square_error(self.columns.iterations()) * widest)
        };
        let sums = |power: f64, exponent: f64| {
            if direction == Direction::Add {
                return self.lower.log_sum(proposal, power, exponent);
            }
            // (κG − U)/(κ − 1)
            let (law, error) = blended((mean_scale / (mean_scale - 1.0), -1.0 / (mean_scale - 1.0)));
            law.log_sum_within(proposal, power, exponent, error)
        };
        let overlap = || {
            let (law, error) = blended((0.5, 0.5));
            law.log_sum_within(&law, 1.0, -0.5, error)
        };
        let same = same_law(&self.upper, proposal);
        HolderSums::from_patterns(same, mean_scale, direction, sums, overlap)
    }

    fn drawn(&self, proposal: &RenewalProposal) -> (f64, f64) {
        proposal.law.drawn()
    }

    /// The parameter is the probability to join.
    fn proposal(&self, parameter: f64, mean_scale: f64) -> Result<RenewalProposal> {
        RenewalProposal::new(&self.upper, parameter, mean_scale)
    }

    /// Where V need not be bounded, weights are those of the drawn pattern.
    #[inline(always)]
    fn sample<V: Vector>(
        &self,
        proposal: &RenewalProposal,
        purpose: Purpose,
        stream: &mut Stream,
        scratch: &mut OverlappingScratch,
    ) -> Ratios {
        scratch.patterns.resize(LANES, Vec::new());
        scratch.patterns.iter_mut().for_each(Vec::clear);
        let first = if proposal.mean_scale == 0.0 {
            [0; LANES]
        } else {
            draw_patterns::<V>(stream, &proposal.law, &mut scratch.patterns)
        };
        self.columns.spread::<V>(&scratch.patterns, &mut scratch.rows, &mut scratch.columns);
        let (mut norms, shift) = (V::splat(0.0), V::splat(proposal.mean_scale * self.unit));
        let mut drawing = stream.take::<V>();
        for pair in scratch.rows.chunks_mut(2) {
            let (first, second) = drawing.normals();
            for (row, noise) in pair.iter_mut().zip([first, second]) {
                let mean = V::load(row);
                norms = mean.mul_add(mean, norms);
                shift.mul_add(mean, noise).store(row);
            }
        }
        stream.put_back(drawing);
        let mut drawn = Drawn { patterns: splat(0.0), norms: splat(0.0) };
        norms.mul(V::splat(self.unit * self.unit)).store(&mut drawn.norms);
        for lane in 0..LANES {
            drawn.patterns[lane] = log_weight(&self.upper, &proposal.law, first[lane], &scratch.patterns[lane]);
        }
        self.densities::<V>(purpose.direction, Some((proposal, purpose, &drawn)), scratch)
    }

    /// Densities of tilts are relative to the true P, which need not be known; the loss is the enclosed one.
    #[inline(always)]
    fn weigh<V: Vector>(
        &self,
        origins: &Origins<Infallible>,
        (drawn, direction): (usize, Direction),
        stream: &mut Stream,
        scratch: &mut OverlappingScratch,
        out: &mut Weighed,
    ) {
        let base = &origins.base;
        let tilted = match &origins.each[drawn] {
            Origin::Tilted(tilted) => tilted,
            Origin::Scaled(never) => match *never {},
        };
        draw_tilted::<V>(tilted, stream, &mut scratch.patterns);
        self.columns.spread::<V>(&scratch.patterns, &mut scratch.rows, &mut scratch.columns);
        let unit = V::splat(self.unit);
        let mut drawing = stream.take::<V>();
        for pair in scratch.rows.chunks_mut(2) {
            let (first, second) = drawing.normals();
            for (row, noise) in pair.iter_mut().zip([first, second]) {
                unit.mul_add(V::load(row), noise).store(row);
            }
        }
        stream.put_back(drawing);
        shift::<V>(&mut scratch.rows, &base.mean, tilted.theta);
        out.add_tilts::<V, _>(origins, statistic::<V>(&scratch.rows, &base.mean));
        let densities = self.densities::<V>(direction, None, scratch);
        let own = V::load(&densities.mixture);
        out.add_loss(match direction {
            Direction::Remove => own,
            Direction::Add => V::splat(0.0).sub(own),
            Direction::Replace => own.sub(V::load(&densities.mirrored)),
        });
    }

    #[inline(always)]
    fn given<V: Vector>(&self, direction: Direction, outcomes: &[Vec<f64>], _: &[Vec<u64>]) -> Ratios {
        let rows = vec![splat(0.0); self.columns.iterations()];
        let mut scratch = OverlappingScratch { rows, ..OverlappingScratch::default() };
        for (lane, outcome) in outcomes.iter().enumerate() {
            for (row, value) in scratch.rows.iter_mut().zip(outcome) {
                row[lane] = *value;
            }
        }
        self.densities::<V>(direction, None, &mut scratch)
    }
}

/// Returns whether two laws draw the same patterns.
fn same_law(own: &Renewal, other: &Renewal) -> bool {
    #[allow(clippy::float_cmp)] // given as that very number
    let same = own.sampling_probability == other.sampling_probability;
    same
}

/// Returns ln of the ratio of a pattern's probabilities under two laws of the same family; its first chance was round
/// `first`.
fn log_weight(own: &Renewal, other: &Renewal, first: usize, pattern: &[(usize, f64)]) -> f64 {
    if same_law(own, other) {
        return 0.0;
    }
    let (mine, theirs) = (own.log_start(), other.log_start());
    let mut sum = if mine.len() > 1 { mine[first] - theirs[first] } else { 0.0 };
    let (p, q) = (own.sampling_probability, other.sampling_probability);
    let (join, stay) = ((p / q).ln(), if q < 1.0 { (-p).ln_1p() - (-q).ln_1p() } else { 0.0 });
    let (n, b) = (own.iterations(), own.min_separation);
    let mut available = first;
    for &(round, count) in pattern {
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // a small whole number
        let at = count as usize - 1;
        sum += join + own.log_counts[at] - other.log_counts[at];
        sum += stay * real((round - available) / own.waiting());
        available = round + b;
    }
    sum + stay * real(n.saturating_sub(available).div_ceil(own.waiting()))
}
