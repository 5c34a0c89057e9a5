//! Running shards: many workers, one answer.
//!
//! A shard is [`SHARD`] samples from its own stream. Shards run on whatever threads there are; what they leave is handed back in
//! the order of their indices, so sums never depend on the number of threads. A worker holds one set of buffers: memory
//! does not depend on the number of samples.

use rayon::prelude::*;

use crate::error::{Error, Result};
use crate::montecarlo::bins::{BinsKernel, BinsProposal, BinsScratch};
use crate::montecarlo::histogram::{Edges, Histogram};
use crate::montecarlo::proposal::{caps, Caps, Comparison};
use crate::montecarlo::renewal::{Given, Ratios, RenewalKernel, RenewalProposal, Scratch};
use crate::montecarlo::stream::{Stream, StreamKey, NORMAL_ERROR};
use crate::montecarlo::truncated::{TruncatedKernel, TruncatedScratch};
use crate::montecarlo::truncated_bins::{TruncatedBinsKernel, TruncatedBinsScratch};
use crate::montecarlo::vector::{splat, with_instruction_set, with_vectors, Vector, Vectored, LANES};
use crate::montecarlo::wager::{Running, Sides, Sums, Table};
use crate::participation::bins::Bins;
use crate::participation::renewal::Renewal;
use crate::run::Run;
use crate::special::UNIT_ROUNDOFF;

/// Proposals join with at most this probability, unless the sampler itself always does.
pub const MOST_LIKELY: f64 = 0.999;
/// Samples in a shard.
pub const SHARD: usize = 1024;

/// A mechanism that can be sampled.
#[derive(Debug, Clone)]
pub enum Mechanism {
    /// b-min-sep sampling with a banded Toeplitz matrix.
    Renewal(RenewalKernel),
    /// Balls in bins with any non-negative matrix.
    Bins(BinsKernel),
    /// b-min-sep sampling with truncated batches.
    Truncated(TruncatedKernel),
    /// Balls in bins with truncated batches.
    TruncatedBins(TruncatedBinsKernel),
}

/// Where samples of a mechanism come from.
#[derive(Debug, Clone, PartialEq)]
pub enum Proposal {
    /// For [`Mechanism::Renewal`] and [`Mechanism::Truncated`].
    Renewal(RenewalProposal),
    /// For [`Mechanism::Bins`] and [`Mechanism::TruncatedBins`].
    Bins(BinsProposal),
}

impl Proposal {
    fn stretch(&self) -> f64 {
        match self {
            Self::Renewal(proposal) => proposal.stretch,
            Self::Bins(proposal) => proposal.stretch,
        }
    }
}

/// One kind of sampling, asked for by the caller.
#[derive(Debug, Clone)]
pub struct Job {
    /// What is sampled.
    pub mechanism: Mechanism,
    /// Which hockey stick.
    pub comparison: Comparison,
    /// Where samples come from.
    pub proposal: Proposal,
    /// The wagers to keep.
    pub tables: Vec<Table>,
    /// The bins of a histogram, if one is wanted.
    pub edges: Option<Edges>,
    /// The coordinates of the streams.
    pub key: StreamKey,
}

/// What a run of shards leaves.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// For each shard, in order, the sums of each table.
    pub shards: Vec<Vec<Sums>>,
    /// The histogram of all of them.
    pub histogram: Option<Histogram>,
}

impl Mechanism {
    /// The proposal for a sampling probability (renewal) or an exponent of the bins' weights, and a stretch.
    ///
    /// For bins the weights are proportional to `e^{parameter·s_t}`; for renewal `parameter` is the probability itself.
    ///
    /// # Errors
    /// [`Error::Domain`] for a probability outside (0, 1] or a stretch that is not finite.
    pub fn proposal(&self, parameter: f64, stretch: f64) -> Result<Proposal> {
        if !(stretch.is_finite() && stretch.abs() <= 100.0) {
            return Err(Error::Domain { name: "stretch", value: stretch, allowed: "between -100 and 100" });
        }
        match self.law() {
            Law::Renewal(law) => {
                if !(parameter > 0.0 && parameter <= 1.0) {
                    let name = "proposal's sampling probability";
                    return Err(Error::Domain { name, value: parameter, allowed: "greater than 0 and at most 1" });
                }
                Ok(Proposal::Renewal(RenewalProposal { law: law.with_probability(parameter), stretch }))
            }
            Law::Bins(law) => Ok(Proposal::Bins(BinsProposal::new(law.tilted(parameter), stretch))),
        }
    }

    /// The parameter of plain sampling: the probability to join, or the exponent 0.
    #[must_use]
    pub fn plain_parameter(&self) -> f64 {
        match self.law() {
            Law::Renewal(law) => law.sampling_probability,
            Law::Bins(_) => 0.0,
        }
    }

    fn law(&self) -> Law<'_> {
        match self {
            Self::Renewal(kernel) => Law::Renewal(kernel.law()),
            Self::Bins(kernel) => Law::Bins(kernel.law()),
            Self::Truncated(kernel) => Law::Renewal(kernel.renewal().law()),
            Self::TruncatedBins(kernel) => Law::Bins(kernel.bins().law()),
        }
    }

    /// What one sample can contribute at this ε; see [`super::proposal`]. With truncated batches plain samples are at most 1, and nothing
    /// is proven of others.
    #[allow(clippy::float_cmp)] // the plain stretch is given as that very number
    #[must_use]
    pub fn caps(&self, proposal: &Proposal, comparison: Comparison, epsilon: f64) -> Caps {
        let of_plain = |plain: bool| if plain { Caps::PLAIN } else { Caps::NONE };
        match (self, proposal) {
            (Self::Renewal(kernel), Proposal::Renewal(p)) => caps(kernel.law(), &p.law, p.stretch, comparison, epsilon),
            (Self::Bins(kernel), Proposal::Bins(p)) => caps(kernel.law(), &p.law, p.stretch, comparison, epsilon),
            (Self::Truncated(kernel), Proposal::Renewal(p)) => {
                of_plain(p.stretch == comparison.plain_stretch() && &p.law == kernel.renewal().law())
            }
            (Self::TruncatedBins(kernel), Proposal::Bins(p)) => {
                of_plain(p.stretch == comparison.plain_stretch() && &p.law == kernel.bins().law())
            }
            _ => Caps::NONE,
        }
    }

    /// The proposal's parameter that goes with stretch κ when weights are tilted by κ(κ − 1)s/2, which keeps the cap small.
    ///
    /// For renewal the odds p/(1 − p) are multiplied by e^{κ(κ−1)s/2}, s the largest squared column norm; for bins the
    /// exponent is returned.
    #[must_use]
    pub fn balanced_parameter(&self, stretch: f64) -> f64 {
        let exponent = 0.5 * stretch * (stretch - 1.0);
        match self.law() {
            Law::Renewal(law) => {
                let p = law.sampling_probability;
                let odds = p * (exponent * law.squares[0]).exp();
                // A proposal that always joins would leave out the patterns that do not.
                let balanced = if odds.is_finite() { odds / (1.0 - p + odds) } else { 1.0 };
                if p < 1.0 {
                    balanced.min(MOST_LIKELY).max(p)
                } else {
                    1.0
                }
            }
            Law::Bins(_) => exponent,
        }
    }

    /// A bound on the error of each log density from rounding.
    #[must_use]
    pub fn rounding(&self, stretch: f64) -> f64 {
        match self {
            Self::Renewal(kernel) => kernel.rounding(stretch),
            Self::Bins(kernel) => kernel.rounding(stretch),
            Self::Truncated(kernel) => kernel.rounding(stretch),
            Self::TruncatedBins(kernel) => kernel.rounding(stretch),
        }
    }

    /// A bound on |E V − δ(ε)| because normal numbers and participation patterns come from a finite generator.
    ///
    /// * Normal numbers: V changes by at most (2 + |κ|)·factor·Λ_i for a unit change of noise coordinate i, Λ = Σ Λ_i the
    ///   Lipschitz bound of the mechanism, and each of the generator's numbers is within [`NORMAL_ERROR`] of an exact
    ///   one on average. (With truncated batches V = (f − e^ε h)/g changes by at most factor times the sum of the slopes of f, of h
    ///   and of g, in which columns count 2, 1 and 2|κ| + 1 times: (4 + 2|κ|), and Λ there is twice that of the columns.)
    /// * Patterns: each waiting time is ⌊ln u/ln(1 − p)⌋ in floating point. The distribution functions differ at each
    ///   of at most n values by 2⁻⁵² (the grid of u) and by 8u·|u ln u|, which sums to 8u/p; a sample has a start and at
    ///   most 1 + ⌈n/b⌉ draws (and as many of how many of k records take part, each wrong by at most (k + 2)·2⁻⁵²), and differing patterns change V by at most its cap. A bin is drawn with an error of at
    ///   most 2⁻⁵² + T u for each of T bins.
    /// * Counts of truncated batches: their laws' total variation, and 2⁻⁵² for each decision whether the record survives.
    #[must_use]
    pub fn generator_error(&self, proposal: &Proposal, limits: Caps) -> f64 {
        let lipschitz = match self {
            Self::Renewal(kernel) => kernel.lipschitz(),
            Self::Bins(kernel) => kernel.lipschitz(),
            Self::Truncated(kernel) => kernel.lipschitz(),
            Self::TruncatedBins(kernel) => kernel.lipschitz(),
        };
        let truncation = match self {
            Self::Truncated(kernel) if kernel.counts().can_truncate() => Some(kernel.counts().variation()),
            Self::TruncatedBins(kernel) if kernel.counts().can_truncate() => Some(kernel.counts().variation()),
            _ => None,
        };
        let (drawn, decisions) = match (self.law(), proposal) {
            (Law::Renewal(law), Proposal::Renewal(m)) => {
                #[allow(clippy::cast_precision_loss)] // counts far below 2^53
                let (n, draws, b) =
                    (law.iterations() as f64, law.most_participations() as f64 + 1.0, law.min_separation as f64);
                let counts = if m.law.records() > 1 { (f64::from(m.law.records()) + 2.0) * f64::EPSILON } else { 0.0 };
                let waiting = n * f64::EPSILON + 8.0 * UNIT_ROUNDOFF / m.law.sampling_probability + counts;
                (draws * waiting + 16.0 * b * f64::EPSILON, draws)
            }
            (Law::Bins(law), Proposal::Bins(_)) => {
                #[allow(clippy::cast_precision_loss)] // at most a few thousand bins
                let bins = law.squares.len() as f64;
                (bins * (2.0 + bins) * f64::EPSILON, 1.0)
            }
            _ => return f64::INFINITY,
        };
        let patterns = match truncation {
            // No pattern is drawn.
            None if proposal.stretch() == 0.0 => 0.0,
            None => drawn,
            Some(variation) => drawn + variation + 2.0 * decisions * f64::EPSILON,
        };
        (2.0 + proposal.stretch().abs()) * limits.factor * lipschitz * NORMAL_ERROR + 2.0 * limits.value * patterns
    }

    /// ln dP/dR and ln dP⁻/dR for given outcomes y/σ (bins: the inner products ⟨m_t, y/σ⟩): what the loss is made of. With truncated
    /// batches the second is ln dQ/dR, and `counts` has the other records' counts of each outcome; without any nothing is truncated.
    #[must_use]
    pub fn log_densities(&self, outcomes: &[Vec<f64>], counts: &[Vec<u64>]) -> Vec<(f64, f64)> {
        let mut counts = counts.chunks(LANES);
        outcomes
            .chunks(LANES)
            .flat_map(|chunk| {
                let ratios = with_vectors(Evaluation(self, chunk, counts.next().unwrap_or(&[])));
                (0..chunk.len()).map(move |l| (ratios.mixture[l], ratios.mirrored[l]))
            })
            .collect()
    }

    /// The other records' counts that a shard's first eight samples begin with; none without truncation.
    #[must_use]
    pub fn counts(&self, key: StreamKey, shard: u64) -> Vec<Vec<u64>> {
        with_vectors(Shown(self, Stream::new(key, shard)))
    }
}

/// The law that a mechanism's patterns have.
enum Law<'a> {
    Renewal(&'a Renewal),
    Bins(&'a Bins),
}

/// The counts of eight samples.
struct Shown<'a>(&'a Mechanism, Stream);

impl Vectored for Shown<'_> {
    type Output = Vec<Vec<u64>>;

    #[inline(always)]
    fn run<V: Vector>(mut self) -> Self::Output {
        match self.0 {
            Mechanism::Truncated(kernel) => kernel.counts().show::<V>(&mut self.1),
            Mechanism::TruncatedBins(kernel) => kernel.counts().show::<V>(&mut self.1),
            Mechanism::Renewal(_) | Mechanism::Bins(_) => Vec::new(),
        }
    }
}

/// The densities of up to eight given outcomes.
struct Evaluation<'a>(&'a Mechanism, &'a [Vec<f64>], &'a [Vec<u64>]);

impl Vectored for Evaluation<'_> {
    type Output = Ratios;

    #[inline(always)]
    fn run<V: Vector>(self) -> Ratios {
        let mut scratch = Scratch::default();
        match self.0 {
            Mechanism::Renewal(kernel) => kernel
                .ratios::<V, _>(None, true, &mut Given(self.1), &mut scratch)
                .unwrap_or_else(|| kernel.logarithmic::<V, _>(None, true, &mut Given(self.1), &mut scratch)),
            Mechanism::Bins(kernel) => kernel.given::<V>(self.1, true),
            Mechanism::Truncated(kernel) => kernel.given::<V>(self.1, self.2),
            Mechanism::TruncatedBins(kernel) => kernel.given::<V>(self.1, self.2),
        }
    }
}

/// Buffers of one worker.
#[derive(Default)]
struct Worker {
    renewal: Scratch,
    bins: BinsScratch,
    truncated: TruncatedScratch,
    truncated_bins: TruncatedBinsScratch,
}

/// A shard, to be run with the widest vectors.
struct Shard<'a> {
    job: &'a Job,
    index: u64,
    error: f64,
    worker: &'a mut Worker,
    run: &'a Run,
}

impl Vectored for Shard<'_> {
    type Output = Result<(Vec<Sums>, Option<Histogram>)>;

    #[inline(always)]
    fn run<V: Vector>(self) -> Self::Output {
        let mut stream = Stream::new(self.job.key, self.index);
        let mut running: Vec<Running> = self.job.tables.iter().map(Running::new).collect();
        let mut histogram = self.job.edges.map(Histogram::new);
        for _ in 0..SHARD / LANES {
            self.run.check()?;
            let ratios = self.job.ratios::<V>(&mut stream, self.worker);
            let sides = Sides::of(&ratios, self.job.comparison == Comparison::Add);
            for (table, running) in self.job.tables.iter().zip(&mut running) {
                running.add::<V>(table, &sides, self.error);
            }
            if let Some(histogram) = &mut histogram {
                for l in 0..LANES {
                    let loss = sides.numerator[l] - sides.denominator[l];
                    histogram.add(loss, libm::exp(sides.numerator[l] - sides.proposal[l]));
                }
            }
        }
        Ok((running.iter().map(Running::finish).collect(), histogram))
    }
}

impl Job {
    /// The log densities of the stream's next eight samples.
    #[inline(always)]
    fn ratios<V: Vector>(&self, stream: &mut Stream, worker: &mut Worker) -> Ratios {
        let mirrored = self.comparison == Comparison::Replace;
        let add = self.comparison == Comparison::Add;
        match (&self.mechanism, &self.proposal) {
            (Mechanism::Renewal(kernel), Proposal::Renewal(proposal)) => {
                kernel.sample::<V>(proposal, mirrored, stream, &mut worker.renewal)
            }
            (Mechanism::Bins(kernel), Proposal::Bins(proposal)) => {
                kernel.sample::<V>(proposal, mirrored, stream, &mut worker.bins)
            }
            (Mechanism::Truncated(kernel), Proposal::Renewal(proposal)) => {
                kernel.sample::<V>(proposal, add, stream, &mut worker.truncated)
            }
            (Mechanism::TruncatedBins(kernel), Proposal::Bins(proposal)) => {
                kernel.sample::<V>(proposal, add, stream, &mut worker.truncated_bins)
            }
            // Refused by `simulate`.
            _ => Ratios { mixture: splat(0.0), mirrored: splat(0.0), proposal: splat(0.0) },
        }
    }
}

/// Run shards `first`, …, `first + count − 1`, on the pool this is called in.
///
/// # Errors
/// [`Error::Domain`] for a proposal of another mechanism or a wager that could lose more than its capital; [`Error::Numerics`] if
/// rounding could change a loss by more than 1e-6; [`Error::Cancelled`]; [`Error::TimeLimit`].
pub fn simulate(job: &Job, first: u64, count: u64, run: &Run) -> Result<Outcome> {
    let error = job.check()?;
    let indices: Vec<u64> = (first..first + count).collect();
    let results: Vec<Result<(Vec<Sums>, Option<Histogram>)>> = indices
        .par_chunks(2)
        .flat_map_iter(|pair| {
            let mut worker = Worker::default();
            let run_one = |&index| with_vectors(Shard { job, index, error, worker: &mut worker, run });
            pair.iter().map(run_one).collect::<Vec<_>>()
        })
        .collect();
    let mut outcome = Outcome { shards: Vec::with_capacity(results.len()), histogram: job.edges.map(Histogram::new) };
    for result in results {
        let (sums, histogram) = result?;
        outcome.shards.push(sums);
        if let (Some(total), Some(part)) = (&mut outcome.histogram, &histogram) {
            total.merge(part);
        }
    }
    Ok(outcome)
}

impl Job {
    /// The rounding bound, if the job makes sense.
    fn check(&self) -> Result<f64> {
        let matched = matches!(
            (&self.mechanism, &self.proposal),
            (Mechanism::Renewal(_) | Mechanism::Truncated(_), Proposal::Renewal(_))
                | (Mechanism::Bins(_) | Mechanism::TruncatedBins(_), Proposal::Bins(_))
        );
        if !matched {
            return Err(Error::Numerics { reason: "the proposal belongs to another kind of mechanism" });
        }
        let truncated = matches!(self.mechanism, Mechanism::Truncated(_) | Mechanism::TruncatedBins(_));
        if truncated && self.comparison == Comparison::Replace {
            return Err(Error::Numerics { reason: "truncated batches are compared with an empty record's" });
        }
        for table in &self.tables {
            if !table.epsilon.is_finite() {
                return Err(Error::Domain { name: "epsilon", value: table.epsilon, allowed: "finite" });
            }
            for &(threshold, stake) in &table.wagers {
                let safe = if stake >= 0.0 { stake * (table.cap - threshold) < 1.0 } else { -stake * threshold < 1.0 };
                // λ(t − V) must stay above −1: for λ > 0 at V = cap, for λ < 0 at V = 0, where λ(t − V) = λt.
                if !(safe && stake.is_finite() && threshold.is_finite() && threshold >= 0.0) {
                    let allowed = "less than 1/(cap − threshold), and greater than −1/threshold";
                    return Err(Error::Domain { name: "stake", value: stake, allowed });
                }
            }
        }
        let error = self.mechanism.rounding(self.proposal.stretch());
        // Without wagers or a histogram the samples serve estimates only.
        let binding = self.edges.is_some() || self.tables.iter().any(|table| !table.wagers.is_empty());
        if error.is_nan() || error > if binding { 1e-6 } else { 1e-2 } {
            return Err(Error::Numerics { reason: "rounding could change a privacy loss by more than 1e-6" });
        }
        Ok(error)
    }
}

/// The log densities of a shard's first eight samples by the copy for one instruction set; `None` where this processor lacks it.
#[must_use]
pub fn probe(job: &Job, shard: u64, instruction_set: &str) -> Option<Ratios> {
    struct Once<'a>(&'a Job, Stream, Worker);
    impl Vectored for Once<'_> {
        type Output = Ratios;
        #[inline(always)]
        fn run<V: Vector>(mut self) -> Ratios {
            self.0.ratios::<V>(&mut self.1, &mut self.2)
        }
    }
    with_instruction_set(instruction_set, Once(job, Stream::new(job.key, shard), Worker::default()))
}
