//! Sources of outcomes: random participation patterns and noise, or given numbers; in blocks of time, from the last
//! round to the first.

use crate::error::{domain, Result};
use crate::montecarlo::stream::Stream;
use crate::participation::renewal::Renewal;
use crate::special::real;
use crate::vector::functions::ln;
use crate::vector::{splat, Lanes, Vector, Vectored, LANES};

/// A source of the rows of ŷ, in blocks from the last round to the first.
pub trait Source {
    /// Fills `rows` with ŷ (columns have these coefficients) of rounds `start`, `start + 1`, …; participations that no earlier block needs are removed
    /// from `patterns`.
    fn fill<V: Vector>(
        &mut self,
        coefficients: &[f64],
        start: usize,
        rows: &mut [Lanes],
        patterns: &mut [Vec<(usize, f64)>],
    );
    /// Draws the numbers that are drawn once for eight samples: the rounds of each lane's participations, and their
    /// number at once.
    fn begin<V: Vector>(&mut self, patterns: &mut Vec<Vec<(usize, f64)>>);
}

/// Checks that the means of a proposal can be scaled by this factor.
///
/// # Errors
/// [`Error::Domain`] for a mean scale that is not between −100 and 100.
pub fn check_mean_scale(mean_scale: f64) -> Result<()> {
    if mean_scale.is_finite() && mean_scale.abs() <= 100.0 {
        return Ok(());
    }
    domain("mean scale", mean_scale, "between -100 and 100")
}

/// A proposal: a law of the same family with another probability, and the scale κ of the means.
#[derive(Debug, Clone, PartialEq)]
pub struct RenewalProposal {
    /// The law of the participation patterns that are drawn.
    pub law: Renewal,
    /// κ.
    pub mean_scale: f64,
}

impl RenewalProposal {
    /// Creates the proposal whose patterns join with this probability.
    ///
    /// # Errors
    /// [`Error::Domain`] for a probability outside (0, 1], and as [`check_mean_scale`].
    pub fn new(law: &Renewal, probability: f64, mean_scale: f64) -> Result<Self> {
        check_mean_scale(mean_scale)?;
        if !(probability > 0.0 && probability <= 1.0) {
            let name = "proposal's sampling probability";
            return domain(name, probability, "greater than 0 and at most 1");
        }
        Ok(Self { law: law.with_probability(probability), mean_scale })
    }
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
        if self.proposal.mean_scale != 0.0 {
            draw_patterns::<V>(self.stream, &self.proposal.law, patterns);
        }
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
        add_participations(coefficients, self.proposal.mean_scale, start, rows, patterns);
    }
}

/// Draws participation patterns: geometric waiting times, ⌊ln u / ln(1 − p)⌋ rounds from when the record becomes
/// available. Returns the round of each lane's first chance.
#[inline(always)]
pub(super) fn draw_patterns<V: Vector>(
    stream: &mut Stream,
    law: &Renewal,
    patterns: &mut [Vec<(usize, f64)>],
) -> [usize; LANES] {
    V::apart(Participations { stream, law, patterns })
}

struct Participations<'a> {
    stream: &'a mut Stream,
    law: &'a Renewal,
    patterns: &'a mut [Vec<(usize, f64)>],
}

impl Vectored for Participations<'_> {
    type Output = [usize; LANES];

    #[inline(always)]
    fn run<V: Vector>(self) -> [usize; LANES] {
        let Self { stream, law, patterns } = self;
        let (n, b, p) = (law.iterations(), law.min_separation, law.sampling_probability);
        let rate = 1.0 / (-p).ln_1p();
        let mut available = [0usize; LANES];
        let mut drawn = splat(0.0);
        let mut drawing = stream.take::<V>();
        if law.warm {
            let total = (real(b) - 1.0).mul_add(p, 1.0);
            drawing.uniform().store(&mut drawn);
            for (lane, u) in drawn.0.into_iter().enumerate() {
                let beyond = (u.mul_add(total, -1.0) / p).max(0.0).ceil();
                #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
                // The value is between 0 and b − 1 by construction.
                let waiting = beyond as usize;
                available[lane] = waiting.min(b - 1);
            }
        }
        if law.phased {
            // This is ⌊u·b⌋, u in (0, 1]: u = 1 has probability 2⁻⁵² and goes to the last phase.
            let phases = real(b);
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
                // Lanes that are done draw along with the rest, but the numbers are not used. The minimum keeps the
                // cast in range.
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
}

/// Draws normal numbers for every entry.
#[inline(always)]
pub(super) fn draw_noise<V: Vector>(stream: &mut Stream, rows: &mut [Lanes]) {
    V::apart(Noise { stream, rows });
}

struct Noise<'a> {
    stream: &'a mut Stream,
    rows: &'a mut [Lanes],
}

impl Vectored for Noise<'_> {
    type Output = ();

    #[inline(always)]
    fn run<V: Vector>(self) {
        let Self { stream, rows } = self;
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
}

/// Adds `mean_scale` times each participation's number times its column to the rows from `start` on; participations
/// that no earlier block needs are removed from `patterns`.
#[inline(always)]
pub(super) fn add_participations(
    coefficients: &[f64],
    mean_scale: f64,
    start: usize,
    rows: &mut [Lanes],
    patterns: &mut [Vec<(usize, f64)>],
) {
    let bands = coefficients.len();
    for (lane, pattern) in patterns.iter_mut().enumerate() {
        // The relevant participations are in [start − bands + 1, start + rows): the last ones of those that remain.
        // Those of one record are at least `bands` apart; several records' participations may all reach into the
        // earlier block too.
        let mut left = pattern.len();
        for (k, &(round, count)) in pattern.iter().enumerate().rev() {
            let shift = mean_scale * count;
            if round + bands <= start {
                break;
            }
            let first = start.max(round);
            let last = (round + bands).min(start + rows.len());
            let column = &coefficients[first - round..last - round];
            for (row, c) in rows[first - start..last - start].iter_mut().zip(column) {
                // The remainder lets the compiler see that no lane is out of bounds.
                let entry = &mut row.0[lane % LANES];
                *entry = shift.mul_add(*c, *entry);
            }
            if round >= start {
                left = k;
            }
        }
        pattern.truncate(left);
    }
}

/// Given outcomes, in units of σ: one vector of n numbers for each lane.
#[derive(Debug)]
pub struct Given<'a>(pub &'a [Vec<f64>]);

impl Source for Given<'_> {
    fn begin<V: Vector>(&mut self, patterns: &mut Vec<Vec<(usize, f64)>>) {
        patterns.clear();
    }

    fn fill<V: Vector>(&mut self, _: &[f64], start: usize, rows: &mut [Lanes], _: &mut [Vec<(usize, f64)>]) {
        for (offset, row) in rows.iter_mut().enumerate() {
            for (lane, outcome) in self.0.iter().enumerate() {
                row[lane] = outcome[start + offset];
            }
        }
    }
}

/// Returns how many records take part at once, by the law's inverse; 1 for a single record.
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
