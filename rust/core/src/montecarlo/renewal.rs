//! The kernel for b-min-sep sampling with a banded Toeplitz matrix: noise → correlation → recursion, eight samples side by side. It also
//! serves cyclic Poisson sampling with a random phase, where a record that does not join waits b rounds too: f_i = ((1 − p) + p
//! e^{a_i}) f_{i+b} and dP/dR = (1/b) Σ_{i≤b} f_i.
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
//! For a user with k records of which j take part at once with probability w_j, p e^{a_i} becomes Σ_j w_j e^{ju_i − j²s_i/2}, u_i = ⟨ĉ_i, ŷ⟩:
//! with t = e^{a_i} and d = e^{−s_i} its terms are T_1 = t, T_{j+1} = T_j·t·d^j.
//!
//! **Range.** f is kept in the linear domain with a power of two for each lane, adjusted whenever f leaves [2⁻³⁰⁰,
//! 2³⁰⁰] (for p = 1 and with phases, where the f_i of different residues mod b are unrelated, nothing is adjusted). Eight samples with an exponent beyond what a step can carry are computed again in logarithms, one by one
//! ([`logarithmic`]).
//!
//! **Rounding.** Every term is positive, so relative errors do not grow: each pattern's product carries at most n additions and
//! ⌈n/b⌉ factors; [`RenewalKernel::rounding`] adds them up.

use crate::error::{Error, Result};
use crate::montecarlo::correlate::Correlator;
use crate::montecarlo::lanes::{exp_in_range, ln};
use crate::montecarlo::stream::{Stream, LARGEST_NORMAL};
use crate::montecarlo::vector::{splat, Lanes, Vector, LANES};
use crate::participation::renewal::Renewal;
use crate::special::{log_sum_exp, UNIT_ROUNDOFF};

/// A step whose exponent is above this, or below −[`LOWEST`], leaves the linear domain.
const HIGHEST: f64 = 100.0;
const LOWEST: f64 = 600.0;
/// f is looked at once in so many rounds: in between it grows by less than e^{4·100}.
pub(super) const SETTLED: usize = 4;
/// f is brought back to 1 when it leaves [1/LARGE, LARGE].
const LARGE: f64 = 2.037_035_976_334_486e90; // 2³⁰⁰
const TINY: f64 = 1.183_052_186_166_774_7e-271; // 2⁻⁹⁰⁰

/// The three log densities of a sample relative to R: of P, of Q, and of the proposal.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ratios {
    /// ln dP/dR for each lane.
    pub mixture: Lanes,
    /// ln dP⁻/dR, the mirror image; 0 where it is not asked for.
    pub mirrored: Lanes,
    /// ln dM/dR of the proposal.
    pub proposal: Lanes,
}

/// What the kernel needs to know; shared by all threads.
#[derive(Debug, Clone)]
pub struct RenewalKernel {
    law: Renewal,
    /// ĉ: the coefficients in units of σ.
    pub(super) coefficients: Vec<f64>,
    correlator: Correlator,
}

/// Where samples come from: a law of the same family with another probability, and the stretch κ of the means.
#[derive(Debug, Clone, PartialEq)]
pub struct RenewalProposal {
    /// The law of the participation patterns drawn.
    pub law: Renewal,
    /// κ.
    pub stretch: f64,
}

/// Buffers of one worker, reused from block to block.
#[derive(Debug, Clone, Default)]
pub struct Scratch {
    pub(super) rows: Vec<Lanes>,
    pub(super) sums: Vec<Lanes>,
    pub(super) workspace: Vec<[Lanes; 2]>,
    pub(super) own: Ring,
    pub(super) mirror: Ring,
    pub(super) proposal: Ring,
    pub(super) patterns: Vec<Vec<(usize, f64)>>,
}

/// The last b values of a recursion, and a power of two for each lane.
#[derive(Debug, Clone, Default)]
pub(super) struct Ring {
    values: Vec<Lanes>,
    exponent: Lanes,
    mask: usize,
}

impl Ring {
    pub(super) fn reset(&mut self, separation: usize) {
        let length = (separation + 1).next_power_of_two();
        self.values.clear();
        self.values.resize(length, splat(1.0));
        self.exponent = splat(0.0);
        self.mask = length - 1;
    }

    /// Bring lanes that left the range back to it. False if the spread of a lane is too large for the linear domain.
    #[cold]
    fn rescale(&mut self, newest: usize, separation: usize) -> bool {
        for lane in 0..LANES {
            let live = (0..separation).map(|k| self.values[(newest + k) & self.mask][lane]);
            let (least, most) = live.fold((f64::INFINITY, 0.0f64), |(l, m), v| (l.min(v), m.max(v)));
            if !(most.is_finite() && most > 0.0) {
                return false;
            }
            // The power of two of the largest value.
            #[allow(clippy::cast_possible_wrap)] // an 11-bit exponent
            let power = ((most.to_bits() >> 52) & 0x7ff) as i64 - 1023;
            #[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation)] // |power| ≤ 1074
            let (factor, shift) = (2f64.powi(-(power as i32)), power as f64);
            if least * factor < TINY {
                return false;
            }
            for value in &mut self.values {
                value[lane] *= factor;
            }
            self.exponent[lane] += shift;
        }
        true
    }

    /// ln of the start-weighted sum, with f_1 at index 0.
    #[inline(always)]
    pub(super) fn total<V: Vector>(&self, law: &Renewal) -> Lanes {
        let mut sum = V::load(&self.values[0]);
        if law.phased {
            for k in 1..law.min_separation {
                sum = sum.add(V::load(&self.values[k & self.mask]));
            }
            #[allow(clippy::cast_precision_loss)] // b is at most the number of rounds
            let share = 1.0 / law.min_separation as f64;
            sum = sum.mul(V::splat(share));
        }
        if law.warm {
            let mut rest = V::splat(0.0);
            for k in 1..law.min_separation {
                rest = rest.add(V::load(&self.values[k & self.mask]));
            }
            #[allow(clippy::cast_precision_loss)] // b is at most the number of rounds
            let norm = 1.0 / (law.min_separation as f64 - 1.0).mul_add(law.sampling_probability, 1.0);
            sum = V::splat(law.sampling_probability).mul_add(rest, sum).mul(V::splat(norm));
        }
        let mut out = splat(0.0);
        V::load(&self.exponent).mul_add(V::splat(std::f64::consts::LN_2), ln(sum)).store(&mut out);
        out
    }
}

/// Where the rows of ŷ come from, in blocks from the last round to the first.
pub trait Source {
    /// Fill `rows` with ŷ of rounds `start`, `start + 1`, …; participations that no earlier block needs are taken out
    /// of `patterns`.
    fn fill<V: Vector>(
        &mut self,
        kernel: &RenewalKernel,
        start: usize,
        rows: &mut [Lanes],
        patterns: &mut [Vec<(usize, f64)>],
    );
    /// Draw what is drawn once for eight samples: the rounds of each lane's participations, and how many there are at once.
    fn begin<V: Vector>(&mut self, patterns: &mut Vec<Vec<(usize, f64)>>);
}

/// Samples from a proposal.
#[derive(Debug)]
pub struct Random<'a> {
    /// The shard's stream.
    pub stream: &'a mut Stream,
    /// The proposal.
    pub proposal: &'a RenewalProposal,
}

impl Source for Random<'_> {
    #[inline(always)]
    fn begin<V: Vector>(&mut self, patterns: &mut Vec<Vec<(usize, f64)>>) {
        patterns.resize(LANES, Vec::new());
        patterns.iter_mut().for_each(Vec::clear);
        if self.proposal.stretch != 0.0 {
            draw_patterns::<V>(self.stream, &self.proposal.law, patterns);
        }
    }

    #[inline(always)]
    fn fill<V: Vector>(
        &mut self,
        kernel: &RenewalKernel,
        start: usize,
        rows: &mut [Lanes],
        patterns: &mut [Vec<(usize, f64)>],
    ) {
        draw_noise::<V>(self.stream, rows);
        add_participations(&kernel.coefficients, self.proposal.stretch, start, rows, patterns);
    }
}

/// Participation patterns: geometric waiting times, ⌊ln u / ln(1 − p)⌋ rounds from when the record becomes available. Gives the round of
/// each lane's first chance.
#[inline(always)]
pub(super) fn draw_patterns<V: Vector>(
    stream: &mut Stream,
    law: &Renewal,
    patterns: &mut [Vec<(usize, f64)>],
) -> [usize; LANES] {
    let (n, b, p) = (law.iterations(), law.min_separation, law.sampling_probability);
    let rate = 1.0 / (-p).ln_1p();
    let mut available = [0usize; LANES];
    let mut drawn = splat(0.0);
    let mut drawing = stream.take::<V>();
    if law.warm {
        #[allow(clippy::cast_precision_loss)] // b is at most the number of rounds
        let total = (b as f64 - 1.0).mul_add(p, 1.0);
        drawing.uniform().store(&mut drawn);
        for (lane, u) in drawn.0.into_iter().enumerate() {
            let beyond = (u.mul_add(total, -1.0) / p).max(0.0).ceil();
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
            // between 0 and b − 1 by construction
            let waiting = beyond as usize;
            available[lane] = waiting.min(b - 1);
        }
    }
    if law.phased {
        // ⌊u·b⌋, u in (0, 1]: u = 1 has probability 2⁻⁵² and goes to the last phase.
        #[allow(clippy::cast_precision_loss)] // b is at most the number of rounds
        let phases = b as f64;
        drawing.uniform().store(&mut drawn);
        for (lane, u) in drawn.0.into_iter().enumerate() {
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // at most b
            let phase = (u * phases) as usize;
            available[lane] = phase.min(b - 1);
        }
    }
    let first = available;
    while available.iter().any(|&a| a < n) {
        ln(drawing.uniform()).mul(V::splat(rate)).store(&mut drawn);
        let mut several = splat(0.0);
        if law.log_counts.len() > 1 {
            drawing.uniform().store(&mut several);
        }
        for lane in 0..LANES {
            // Lanes that are done draw along with the others, to no effect. The minimum keeps the cast in range.
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
            let wait = drawn[lane].clamp(0.0, 1e15) as usize;
            if available[lane] < n {
                let round = available[lane].saturating_add(wait.saturating_mul(law.waiting()));
                if round < n {
                    patterns[lane].push((round, count_of(law, several[lane])));
                }
                available[lane] = round.saturating_add(b);
            }
        }
    }
    stream.put_back(drawing);
    first
}

/// Normal numbers in every entry.
#[inline(always)]
pub(super) fn draw_noise<V: Vector>(stream: &mut Stream, rows: &mut [Lanes]) {
    let mut drawing = stream.take::<V>();
    let mut pairs = rows.chunks_exact_mut(2);
    for pair in &mut pairs {
        let (first, second) = drawing.normals();
        first.store(&mut pair[0]);
        second.store(&mut pair[1]);
    }
    if let [last] = pairs.into_remainder() {
        drawing.normals().0.store(last);
    }
    stream.put_back(drawing);
}

/// Add `stretch` times each participation's number times its column to the rows from `start` on; participations that no earlier
/// block needs are taken out of `patterns`.
#[inline(always)]
pub(super) fn add_participations(
    coefficients: &[f64],
    stretch: f64,
    start: usize,
    rows: &mut [Lanes],
    patterns: &mut [Vec<(usize, f64)>],
) {
    let bands = coefficients.len();
    for (lane, pattern) in patterns.iter_mut().enumerate() {
        // Participations in [start − bands + 1, start + rows): the last ones of those that are left.
        while let Some(&(round, count)) = pattern.last() {
            let shift = stretch * count;
            if round + bands <= start {
                break;
            }
            let first = start.max(round);
            let last = (round + bands).min(start + rows.len());
            let column = &coefficients[first - round..last - round];
            for (row, c) in rows[first - start..last - start].iter_mut().zip(column) {
                // The remainder tells the compiler what is known: no lane is out of bounds.
                let entry = &mut row.0[lane % LANES];
                *entry = shift.mul_add(*c, *entry);
            }
            if round < start {
                // It reaches into the earlier block too, and no earlier participation reaches into this one.
                break;
            }
            pattern.pop();
        }
    }
}

/// Given outcomes, in units of σ: one vector of n numbers for each lane.
#[derive(Debug)]
pub struct Given<'a>(pub &'a [Vec<f64>]);

impl Source for Given<'_> {
    fn begin<V: Vector>(&mut self, patterns: &mut Vec<Vec<(usize, f64)>>) {
        patterns.clear();
    }

    fn fill<V: Vector>(&mut self, _: &RenewalKernel, start: usize, rows: &mut [Lanes], _: &mut [Vec<(usize, f64)>]) {
        for (offset, row) in rows.iter_mut().enumerate() {
            for (lane, outcome) in self.0.iter().enumerate() {
                row[lane] = outcome[start + offset];
            }
        }
    }
}

/// How many records take part at once, by the law's inverse; 1 for a single record.
fn count_of(law: &Renewal, uniform: f64) -> f64 {
    let (mut below, mut count) = (0.0, 0.0);
    for probability in &law.counts {
        count += 1.0;
        below += probability;
        if uniform <= below {
            break;
        }
    }
    count
}

impl RenewalKernel {
    /// The kernel for coefficients c_0, …, c_{bands−1} in units of σ (ĉ = c/σ) and `iterations` rounds.
    ///
    /// # Errors
    /// [`Error::Domain`] for coefficients that are not finite and non-negative or whose first is zero, for more bands than the
    /// minimum separation or than rounds, and for what [`Renewal::new`] refuses.
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

    /// The kernel for cyclic Poisson sampling with a random phase.
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

    /// The kernel for users with several records each.
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
        let domain = |name, value, allowed| Err(Error::Domain { name, value, allowed });
        if let Some(&wrong) = coefficients.iter().find(|c| !(c.is_finite() && **c >= 0.0)) {
            return domain("coefficient", wrong, "finite and at least 0");
        }
        if !(coefficients.first().is_some_and(|&first| first > 0.0)) {
            return domain("first coefficient", coefficients.first().copied().unwrap_or(0.0), "greater than 0");
        }
        #[allow(clippy::cast_precision_loss)] // reported only
        let bands = coefficients.len() as f64;
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

    /// How rows are correlated with the coefficients.
    #[must_use]
    pub fn correlator(&self) -> &Correlator {
        &self.correlator
    }

    /// The law of the participations.
    #[must_use]
    pub fn law(&self) -> &Renewal {
        &self.law
    }

    /// A bound on Σ_i sup |∂ ln f/∂ŷ_i| for any such mixture: n times the largest coefficient, since at most one participation (of all
    /// of a user's records) reaches each round.
    #[must_use]
    pub fn lipschitz(&self) -> f64 {
        #[allow(clippy::cast_precision_loss)] // far below 2^53
        let n = self.law.iterations() as f64;
        n * f64::from(self.law.records()) * self.coefficients.iter().copied().fold(0.0, f64::max) * (1.0 + 1e-9)
    }

    /// A bound on the error of each log density from rounding, for the given stretch.
    ///
    /// The correlation misses ⟨ĉ_i, ŷ⟩ by [`Correlator::rounding`] at |ŷ| ≤ 8.5 + |κ| max ĉ; s_i/2, the stretch, the
    /// exponential and its argument add a few u of their size; a step of the recursion adds 4u; a pattern passes n
    /// steps and at most ⌈n/b⌉ participations. Of k records at once the exponent's error counts k times, that of s_i k² times, and the
    /// sum of their terms adds 4k u.
    #[must_use]
    pub fn rounding(&self, stretch: f64) -> f64 {
        #[allow(clippy::cast_precision_loss)] // counts far below 2^53
        let (bands, n, most) =
            (self.coefficients.len() as f64, self.law.iterations() as f64, self.law.most_participations() as f64);
        let total: f64 = self.coefficients.iter().sum();
        let records = f64::from(self.law.records());
        let largest = LARGEST_NORMAL + stretch.abs() * records * self.coefficients.iter().copied().fold(0.0, f64::max);
        let scale = 1.0 + stretch.abs();
        let exponent = scale * (self.correlator.rounding(largest) + 8.0 * UNIT_ROUNDOFF * total * largest)
            + UNIT_ROUNDOFF * (bands + 8.0 * scale * scale) * self.law.squares[0] * records;
        let several = 4.0 * records * records * most;
        (UNIT_ROUNDOFF * (4.0 * n + 16.0 * most + several + 64.0) + records * most * exponent) * (1.0 + 1e-6)
    }

    /// Draw eight samples from a proposal: their log densities. The proposal's own is not computed where it is P or R itself.
    #[inline(always)]
    pub fn sample<V: Vector>(
        &self,
        proposal: &RenewalProposal,
        mirrored: bool,
        stream: &mut Stream,
        scratch: &mut Scratch,
    ) -> Ratios {
        let reference = proposal.stretch == 0.0;
        let plain = reference || (proposal.stretch.to_bits() == 1.0f64.to_bits() && self.law == proposal.law);
        let evaluated = (!plain).then_some(proposal);
        let before = stream.clone();
        let linear = self.ratios::<V, _>(evaluated, mirrored, &mut Random { stream, proposal }, scratch);
        let mut ratios = linear.unwrap_or_else(|| {
            *stream = before;
            self.logarithmic::<V, _>(evaluated, mirrored, &mut Random { stream, proposal }, scratch)
        });
        if reference {
            ratios.proposal = splat(0.0);
        }
        ratios
    }

    /// The log densities of eight samples.
    #[inline(always)]
    pub fn ratios<V: Vector, S: Source>(
        &self,
        proposal: Option<&RenewalProposal>,
        mirrored: bool,
        source: &mut S,
        scratch: &mut Scratch,
    ) -> Option<Ratios> {
        match (proposal, mirrored) {
            (None, false) => self.recursion::<V, S, false, false>(None, source, scratch),
            (None, true) => self.recursion::<V, S, false, true>(None, source, scratch),
            (Some(p), false) => self.recursion::<V, S, true, false>(Some(p), source, scratch),
            (Some(p), true) => self.recursion::<V, S, true, true>(Some(p), source, scratch),
        }
    }

    /// `None` if some exponent leaves the linear domain.
    #[allow(clippy::many_single_char_names)] // the letters of the formula
    #[inline(always)]
    fn recursion<V: Vector, S: Source, const TILTED: bool, const MIRRORED: bool>(
        &self,
        proposal: Option<&RenewalProposal>,
        source: &mut S,
        scratch: &mut Scratch,
    ) -> Option<Ratios> {
        let (n, b) = (self.law.iterations(), self.law.min_separation);
        let (p, (q, stretch)) =
            (self.law.sampling_probability, proposal.map_or((1.0, 1.0), |m| (m.law.sampling_probability, m.stretch)));
        let curvature = 0.5 * stretch * (stretch - 1.0);
        source.begin::<V>(&mut scratch.patterns);
        let (block, tail) = (self.correlator.block(), self.correlator.tail());
        scratch.rows.clear();
        scratch.rows.resize(block + tail, splat(0.0));
        scratch.sums.resize(block.next_multiple_of(SETTLED), splat(0.0));
        for ring in [&mut scratch.own, &mut scratch.mirror, &mut scratch.proposal] {
            ring.reset(b);
        }
        for start in (0..n.div_ceil(block)).rev().map(|k| k * block) {
            // What was the head of the later block becomes the tail of this one.
            scratch.rows.copy_within(0..tail, block);
            let length = block.min(n - start);
            source.fill::<V>(self, start, &mut scratch.rows[..length], &mut scratch.patterns);
            self.correlator.correlate::<V>(&scratch.rows, length, &mut scratch.sums, &mut scratch.workspace);
            for group in (0..length.div_ceil(SETTLED)).rev().map(|k| k * SETTLED) {
                let count = SETTLED.min(length - group);
                let sums = &scratch.sums[group..group + SETTLED];
                let first = start + group;
                // Closures are not certain to be inlined, and uninlined vector code is slow: plain loops.
                let mut squares = [0.0; SETTLED];
                let mut own = [V::splat(0.0); SETTLED];
                for k in 0..SETTLED {
                    squares[k] = self.law.squares[(first + k).min(n - 1)];
                    own[k] = V::load(&sums[k]).sub(V::splat(0.5 * squares[k]));
                }
                let mut inside = advance(&mut scratch.own, first, count, &self.law, p, own, (1.0, &squares));
                if MIRRORED {
                    let mut other = own;
                    for k in 0..SETTLED {
                        other[k] = V::splat(-squares[k]).sub(own[k]);
                    }
                    inside &= advance(&mut scratch.mirror, first, count, &self.law, p, other, (1.0, &squares));
                }
                if TILTED {
                    let mut tilted = own;
                    for k in 0..SETTLED {
                        tilted[k] = own[k].mul_add(V::splat(stretch), V::splat(-curvature * squares[k]));
                    }
                    let law = proposal.map_or(&self.law, |m| &m.law);
                    let scale = stretch * stretch;
                    inside &= advance(&mut scratch.proposal, first, count, law, q, tilted, (scale, &squares));
                }
                let newest = start + group;
                inside &= settle::<V>(&mut scratch.own, newest, b);
                if MIRRORED {
                    inside &= settle::<V>(&mut scratch.mirror, newest, b);
                }
                if TILTED {
                    inside &= settle::<V>(&mut scratch.proposal, newest, b);
                }
                if !inside {
                    // Whoever repeats this in logarithms draws the samples anew from where this began.
                    return None;
                }
            }
        }
        let mixture = scratch.own.total::<V>(&self.law);
        let mirrored = if MIRRORED { scratch.mirror.total::<V>(&self.law) } else { splat(0.0) };
        let proposal = match proposal {
            Some(m) if TILTED => scratch.proposal.total::<V>(&m.law),
            _ => mixture,
        };
        Some(Ratios { mixture, mirrored, proposal })
    }

    /// ŷ of all rounds.
    pub(super) fn all_rows<V: Vector, S: Source>(&self, source: &mut S, scratch: &mut Scratch) -> Vec<Lanes> {
        let n = self.law.iterations();
        source.begin::<V>(&mut scratch.patterns);
        let mut rows = vec![splat(0.0); n];
        let block = self.correlator.block();
        for start in (0..n.div_ceil(block)).rev().map(|k| k * block) {
            let end = (start + block).min(n);
            source.fill::<V>(self, start, &mut rows[start..end], &mut scratch.patterns);
        }
        rows
    }

    /// ⟨ĉ_i, ŷ⟩ of one lane, one by one.
    pub(super) fn products(&self, rows: &[Lanes], lane: usize) -> Vec<f64> {
        let n = rows.len();
        let reach = |i: usize| self.coefficients.len().min(n - i);
        (0..n).map(|i| (0..reach(i)).map(|j| self.coefficients[j] * rows[i + j][lane]).sum()).collect()
    }

    /// The log densities of eight samples by the recursion in logarithms: slower, for any range.
    pub fn logarithmic<V: Vector, S: Source>(
        &self,
        proposal: Option<&RenewalProposal>,
        mirrored: bool,
        source: &mut S,
        scratch: &mut Scratch,
    ) -> Ratios {
        let rows = self.all_rows::<V, S>(source, scratch);
        let mut out = Ratios { mixture: splat(0.0), mirrored: splat(0.0), proposal: splat(0.0) };
        for lane in 0..LANES {
            let products = self.products(&rows, lane);
            let own: Vec<f64> = products.iter().zip(&self.law.squares).map(|(u, s)| u - 0.5 * s).collect();
            out.mixture[lane] = log_ratio(&self.law, 1.0, |i| own[i]);
            if mirrored {
                out.mirrored[lane] = log_ratio(&self.law, 1.0, |i| -own[i] - self.law.squares[i]);
            }
            out.proposal[lane] = proposal.map_or(out.mixture[lane], |m| {
                let curvature = 0.5 * m.stretch * (m.stretch - 1.0);
                log_ratio(&m.law, m.stretch * m.stretch, |i| m.stretch * own[i] - curvature * self.law.squares[i])
            });
        }
        out
    }
}

/// Steps of the recursion at rounds `first + count − 1`, …, `first`; false if an exponent leaves the linear domain.
#[inline(always)]
pub(super) fn advance<V: Vector>(
    ring: &mut Ring,
    first: usize,
    count: usize,
    law: &Renewal,
    p: f64,
    exponents: [V; SETTLED],
    (scale, squares): (f64, &[f64; SETTLED]),
) -> bool {
    let growth = growths(law, exponents, (scale, squares));
    // Several records at once have several times the exponent.
    #[allow(clippy::cast_precision_loss)] // at most 1000
    let records = law.log_counts.len() as f64;
    step(ring, first, count, law, p, growth) & in_linear_domain(&exponents[..count], records)
}

/// What a participation multiplies f_{i+b} with: e^{a_i}, and for several records at once the sum over their numbers.
///
/// The exponentials of all [`SETTLED`] rounds are taken side by side; those beyond the last round are of no consequence.
#[inline(always)]
pub(super) fn growths<V: Vector>(
    law: &Renewal,
    exponents: [V; SETTLED],
    (scale, squares): (f64, &[f64; SETTLED]),
) -> [V; SETTLED] {
    let mut growth = exponents;
    for k in 0..SETTLED {
        growth[k] = exp_in_range(exponents[k]);
    }
    if law.log_counts.len() > 1 {
        // Nearly all rounds have the same squared norm.
        let usual = (-scale * squares[0]).exp();
        for k in 0..SETTLED {
            // T_1 = t, T_{j+1} = T_j·t·d^j.
            let same = squares[k].to_bits() == squares[0].to_bits();
            let decay = V::splat(if same { usual } else { (-scale * squares[k]).exp() });
            let (mut term, mut factor) = (growth[k], growth[k]);
            let mut sum = term.mul(V::splat(law.counts[0]));
            for probability in &law.counts[1..] {
                factor = factor.mul(decay);
                term = term.mul(factor);
                sum = term.mul_add(V::splat(*probability), sum);
            }
            growth[k] = sum;
        }
    }
    growth
}

/// f_i = (1 − p) f_{i+1} + p·growth·f_{i+b} for the rounds `first + count − 1`, …, `first`; false if f leaves its range where
/// [`settle`] would not see it.
#[inline(always)]
pub(super) fn step<V: Vector>(
    ring: &mut Ring,
    first: usize,
    count: usize,
    law: &Renewal,
    p: f64,
    mut growth: [V; SETTLED],
) -> bool {
    let b = law.min_separation;
    for k in 0..SETTLED {
        growth[k] = growth[k].mul(V::splat(p));
    }
    let (stay, mask) = (V::splat(1.0 - p), ring.mask);
    let mut value = V::load(&ring.values[(first + count) & mask]);
    let mut inside = true;
    for k in (0..count).rev() {
        let after = V::load(&ring.values[(first + k + b) & mask]);
        value = if law.phased { stay.add(growth[k]).mul(after) } else { value.mul_add(stay, growth[k].mul(after)) };
        value.store(&mut ring.values[(first + k) & mask]);
        if p >= 1.0 || law.phased {
            // Then f_i and f_{i+1} have nothing to do with each other, and `settle` would not see all of them.
            inside &= value.within(V::splat(1.0 / LARGE), V::splat(LARGE));
        }
    }
    inside
}

/// Whether exponents, each met `times` over, stay where a step can carry them.
#[inline(always)]
pub(super) fn in_linear_domain<V: Vector>(exponents: &[V], times: f64) -> bool {
    let (mut least, mut most) = (exponents[0], exponents[0]);
    for exponent in &exponents[1..] {
        least = least.min(*exponent);
        most = most.max(*exponent);
    }
    let (low, high) = (V::splat(-LOWEST), V::splat(HIGHEST / times));
    least.within(low, high) & most.within(low, high)
}

/// Keep the newest value in range; false if that is not possible.
#[inline(always)]
pub(super) fn settle<V: Vector>(ring: &mut Ring, newest: usize, separation: usize) -> bool {
    let value = V::load(&ring.values[newest & ring.mask]);
    value.within(V::splat(1.0 / LARGE), V::splat(LARGE)) || ring.rescale(newest, separation)
}

/// ln of the likelihood ratio by the recursion in logarithms; `exponent` is that of a single participation, and j at once have j
/// times it less (j² − j)/2 times the squared norm, scaled.
pub(super) fn log_ratio(law: &Renewal, scale: f64, exponent: impl Fn(usize) -> f64) -> f64 {
    let join = law.sampling_probability.ln();
    log_recursion(law, |i| {
        let (single, square) = (exponent(i), scale * law.squares[i]);
        (1u32..).zip(&law.log_counts).map(move |(j, log)| {
            let j = f64::from(j);
            join + log + j * single - 0.5 * (j * j - j) * square
        })
    })
}

/// ln of the start-weighted sum by the recursion in logarithms; `joining` are the logarithms of what f_{i+b} is multiplied with, to be summed.
pub(super) fn log_recursion<I>(law: &Renewal, joining: impl Fn(usize) -> I) -> f64
where
    I: Iterator<Item = f64> + Clone,
{
    let (n, b) = (law.iterations(), law.min_separation);
    let stay = (-law.sampling_probability).ln_1p();
    let mut sums = vec![0.0; n + b + 1];
    for i in (0..n).rev() {
        let after = sums[i + b];
        let joining = joining(i).map(|log| log + after);
        sums[i] = log_sum_exp(std::iter::once(stay + sums[i + law.waiting()]).chain(joining));
    }
    log_sum_exp(law.log_start().into_iter().zip(&sums).map(|(start, sum)| start + sum))
}
