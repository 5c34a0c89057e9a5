//! Runs shards of samples on many workers, with one reproducible result.
//!
//! A shard is [`SHARD`] samples from its own stream. Shards run on all threads of the pool; their results are returned
//! in the order of their indices, so sums never depend on the number of threads. A worker holds one set of buffers:
//! memory does not depend on the number of samples.

use std::sync::Arc;

use rayon::prelude::*;

use crate::error::{domain, Error, Result};
use crate::montecarlo::claims::betting::{BetTable, Running, ShardSums, Sides};
use crate::montecarlo::claims::histogram::{Edges, Histogram};
use crate::montecarlo::family::{Purpose, Ratios, OF_PRESENCE};
use crate::montecarlo::mechanism::Buffers;
use crate::montecarlo::proposals::drawn::{floored_rounding_of, rounding_of, Part};
use crate::montecarlo::stream::{Stream, StreamKey, SHARD};
use crate::montecarlo::value::Curve;
use crate::montecarlo::weight_bounds::Direction;
use crate::run::Run;
use crate::vector::{with_instruction_set, with_vectors, Lanes, Vector, Vectored, LANES};

/// One kind of sampling, requested by the caller.
#[derive(Debug, Clone)]
pub struct Job {
    /// The mechanisms that are sampled, with their proposals.
    pub parts: Vec<Part>,
    /// The direction of the hockey stick.
    pub direction: Direction,
    /// The curve of the composed profile, if there is one.
    pub curve: Option<Arc<Curve>>,
    /// The floor of samples of a power for a replaced record; see [`crate::montecarlo::proposals::replicated`].
    pub floor: Option<f64>,
    /// The bets to compute.
    pub tables: Vec<BetTable>,
    /// The bins of a histogram, if one is requested.
    pub edges: Option<Edges>,
    /// The coordinates of the streams.
    pub key: StreamKey,
}

/// The result of a range of shards.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// For each shard, in order, the sums of each table.
    pub shards: Vec<Vec<ShardSums>>,
    /// The histogram of all of them.
    pub histogram: Option<Histogram>,
}

/// A shard, to be run with the widest vectors.
struct Shard<'a> {
    job: &'a Job,
    index: u64,
    error: f64,
    buffers: &'a mut Buffers,
    run: &'a Run,
    /// Receives the first eight samples' log densities, if nothing else is requested.
    probe: Option<&'a mut Option<Ratios>>,
}

impl Vectored for Shard<'_> {
    type Output = Result<(Vec<ShardSums>, Option<Histogram>)>;

    #[inline(always)]
    fn run<V: Vector>(self) -> Self::Output {
        let mut stream = Stream::new(self.job.key, self.index);
        let mut running: Vec<Running> = self.job.tables.iter().map(Running::new).collect();
        let mut histogram = self.job.edges.map(Histogram::new);
        let least = self.job.least(self.error);
        let mut worth = 0;
        for group in 0..SHARD / LANES {
            self.run.check()?;
            // If many samples have a positive V, checking first costs more than it saves; the numbers are the same.
            let rare = group < 8 || 4 * worth < group;
            let purpose = self.job.purpose(if rare { least } else { f64::NEG_INFINITY });
            let ratios = self.job.ratios::<V>(purpose, &mut stream, self.buffers);
            worth += usize::from(!self.job.purpose(least).worthless(&ratios));
            if let Some(place) = self.probe {
                *place = Some(ratios);
                return Ok((Vec::new(), None));
            }
            let sides = Sides::of(&ratios, self.job.direction == Direction::Add);
            let weighed = sides.weighed::<V>();
            for (table, running) in self.job.tables.iter().zip(&mut running) {
                running.add::<V>(table, weighed, self.error, self.job.curve.as_deref());
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
    /// Returns the log densities of the stream's next eight samples: sums over the parts, each drawn after the other.
    #[inline(always)]
    fn ratios<V: Vector>(&self, purpose: Purpose, stream: &mut Stream, buffers: &mut Buffers) -> Ratios {
        let mut all: Option<Ratios> = None;
        let add = |sum: &mut Lanes, more: &Lanes| V::load(sum).add(V::load(more)).store(sum);
        for part in &self.parts {
            for _ in 0..part.runs {
                let one = part.proposed.draw(V::kind(), purpose, stream, buffers);
                match &mut all {
                    None => all = Some(one),
                    Some(sum) => {
                        add(&mut sum.mixture, &one.mixture);
                        add(&mut sum.mirrored, &one.mirrored);
                        add(&mut sum.proposal, &one.proposal);
                    }
                }
            }
        }
        let mut all = all.unwrap_or(Ratios::NONE);
        if let (Some(floor), Some(part)) = (self.floor, self.parts.first()) {
            let excess = V::splat(part.proposed.mean_scale() - 1.0);
            let below = V::splat(floor).sub(V::load(&all.mixture)).max(V::splat(0.0));
            below.mul_add(excess, V::load(&all.proposal)).store(&mut all.proposal);
        }
        all
    }
}

/// Runs shards `first`, …, `first + count − 1`, on the pool of the caller.
///
/// # Errors
/// [`Error::Domain`] for proposals with different mean scales or a bet that could lose more than its wealth;
/// [`Error::Numerics`] if rounding could change a loss by more than 1e-6; [`Error::Cancelled`]; [`Error::TimeLimit`].
pub fn simulate(job: &Job, first: u64, count: u64, run: &Run) -> Result<Outcome> {
    let error = job.check()?;
    job.parts.iter().try_for_each(|part| part.proposed.prepare(run))?;
    let results: Vec<Result<(Vec<ShardSums>, Option<Histogram>)>> = (first..first + count)
        .into_par_iter()
        .map_init(Buffers::default, |buffers, index| {
            with_vectors(Shard { job, index, error, buffers, run, probe: None })
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
    /// Returns the purpose of the samples; see [`Purpose::least`].
    fn purpose(&self, least: f64) -> Purpose {
        Purpose { direction: self.direction, binding: self.binding(), least }
    }

    /// Returns the loss up to which a sample has V = 0: −∞ for several mechanisms, whose losses add up, and for a
    /// histogram, which needs all losses.
    fn least(&self, error: f64) -> f64 {
        match &self.parts[..] {
            [Part { runs: 1, .. }] if self.edges.is_none() && !self.tables.is_empty() => {
                BetTable::least(&self.tables, error, self.curve.as_deref())
            }
            _ => f64::NEG_INFINITY,
        }
    }

    /// Returns whether bounds may be computed from the samples: without bets or a histogram they are used for estimates
    /// only.
    fn binding(&self) -> bool {
        self.edges.is_some() || self.tables.iter().any(|table| !table.bets.is_empty())
    }

    /// Returns whether samples are neither composed with a curve nor counted in a histogram.
    fn alone(&self) -> bool {
        self.curve.is_none() && self.edges.is_none()
    }

    /// Returns the rounding bound, if the job is valid.
    fn check(&self) -> Result<f64> {
        let mean_scale = self.parts.first().map_or(f64::NAN, |part| part.proposed.mean_scale());
        for part in &self.parts {
            if part.runs == 0 {
                return domain("runs", 0.0, "at least 1");
            }
            if part.proposed.mean_scale().to_bits() != mean_scale.to_bits() {
                let value = part.proposed.mean_scale();
                return domain("mean scale", value, "the same for all mechanisms");
            }
            if part.proposed.mechanism().of_presence() && self.direction == Direction::Replace {
                return Err(OF_PRESENCE);
            }
            let floored = self.floor.is_some() && self.direction == Direction::Replace && self.alone();
            let serves = part.proposed.serves(self.direction);
            if serves == self.floor.is_some() || !(serves || floored && part.proposed.serves(Direction::Remove)) {
                return Err(Error::Numerics {
                    reason: "samples of a power of the likelihood ratio are of a removed record, or of a replaced one with a \
                             floor",
                });
            }
        }
        for table in &self.tables {
            table.check()?;
        }
        let error = rounding_of(&self.parts) + self.floor.map_or(0.0, |floor| floored_rounding_of(&self.parts, floor));
        if error.is_nan() || error > if self.binding() { 1e-6 } else { 1e-2 } {
            return Err(Error::Numerics { reason: "rounding could change a privacy loss by more than 1e-6" });
        }
        Ok(error)
    }
}

/// Returns the log densities of a shard's first eight samples by the copy for one instruction set; `None` where this
/// processor lacks it.
pub fn probe(job: &Job, shard: u64, instruction_set: &str) -> Option<Ratios> {
    let (mut buffers, mut seen, run) = (Buffers::default(), None, Run::default());
    let first = Shard { job, index: shard, error: 0.0, buffers: &mut buffers, run: &run, probe: Some(&mut seen) };
    with_instruction_set(instruction_set, first)?.ok()?;
    seen
}
