//! Tests whose samples come from several proposals at once: a defensive mixture.
//!
//! Samples that vary little (tilts, [`crate::montecarlo::tilt`]) have no bound, and a proposal whose samples
//! are bounded may vary much. A mixture M = Σ α_k M_k of both has the bound of the latter, divided by its share, and
//! nearly the variance of the former (Hesterberg 1995; Owen & Zhou 2000). With V of
//! [`crate::montecarlo::proposals::components`]:
//!
//! **V is bounded.** V = X/m, where m = dM/dR and X does not depend on where samples come from. If a component alone
//! has V ≤ c_k, then m_k ≥ X/c_k, so m ≥ X Σ α_k/c_k and **V ≤ 1/Σ_k α_k/c_k**, over the components for which a bound
//! is known; plain sampling, with c = 1, is always among them. The same holds for the leading factor of V (and its
//! slope with a composed profile), [`WeightBounds::factor`].
//!
//! **Bets on shards.** A shard draws α_k of its samples from M_k, so that the mean of a single V depends on its
//! component, and only the mean over a shard is E_M V. Let μ_k = E_{M_k} V. If Σ α_k μ_k ≥ t, the wealth of a bet with
//! betting fraction λ > 0 grows over a shard of N samples by an expected factor Π_k (1 + λ(t − μ_k))^{α_k N} ≤ (Σ_k
//! α_k(1 + λ(t − μ_k)))^N ≤ 1, by the inequality of arithmetic and geometric means (every factor is positive, since λ(V
//! − t) < 1). So the wealth after each shard is a non-negative supermartingale, which is all that [`super::betting`]
//! needs if the wealth is read only after whole shards. For λ < 0 and Σ α_k μ_k ≤ t the same holds.
//!
//! **The generator.** Let a coordinate of the noise change by a unit. X/m changes by at most 2·factor·Λ_i for its
//! numerator, as with one proposal ([`crate::montecarlo::proposals::drawn`]), and by V|∂_i ln m| for its denominator. ∂ ln m
//! is a mean of the ∂ ln m_k with weights α_k m_k/m, which depend on the outcome, so it is at most the largest of them,
//! coordinate by coordinate: |κ|Λ_i where means are scaled, and Λ_i + |θ|m̄_i for a tilt of P, |θ|m̄_i for one of R;
//! over the coordinates max(1, |κ|)Λ + |θ|Σm̄_i, without the 1 where R is sampled, with the largest |κ| and |θ|. A
//! sample of M_k is drawn with the error of its own coordinates and patterns, and counts α_k times.
//!
//! **Rounding.** ln dM_θ/dN = θt − norm has an error of |θ| times the error of t, plus the errors of norm and of the
//! sum, and the relative difference between the law of the drawn patterns and that of the tilt ([`Tilted::relative`]):
//! samples come from M̃ with e^{−relative}m ≤ m̃, so that the mean of X/m is at least e^{−relative}δ(ε); rounding V up
//! compensates for this. V is cut off at its bound after that, so the bound is raised by as much. Plain sampling is the
//! tilt θ = 0. Densities are evaluated at samples of all components: their rounding is bounded at the farthest of
//! these. For the density of the mixture, the logarithm of a sum, the exponentials and their sum add less than
//! (4K + 32)u.
//!
//! [`Tilted::relative`]: crate::montecarlo::tilt::Tilted::relative

use std::sync::Arc;

use rayon::prelude::*;

use crate::error::{Error, Result};
use crate::montecarlo::claims::betting::{BetTable, Running, ShardSums};
use crate::montecarlo::family::Statistic;
use crate::montecarlo::mechanism::Mechanism;
use crate::montecarlo::proposals::components::{Component, Mixture, Prepared, Worker, UNITS};
use crate::montecarlo::proposals::drawn::{weight_bounds_of, Part};
use crate::montecarlo::stream::{Stream, StreamKey};
use crate::montecarlo::tilt::TiltBase;
use crate::montecarlo::value::Curve;
use crate::montecarlo::weight_bounds::{Direction, WeightBounds};
use crate::run::Run;
use crate::special::{real, UNIT_ROUNDOFF};
use crate::vector::{with_vectors, Vector, Vectored};

/// Bets to compute on samples of a mixture.
#[derive(Debug, Clone)]
pub struct DefensiveJob {
    /// The mechanisms that are sampled, and the mixture that samples come from.
    pub mixture: Mixture,
    /// The curve of the composed profile, if there is one.
    pub curve: Option<Arc<Curve>>,
    /// The bets.
    pub tables: Vec<BetTable>,
    /// The coordinates of the streams.
    pub key: StreamKey,
}

/// Proven limits for samples of a mixture at one ε.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Limits {
    /// An upper bound on V.
    pub weight_bound: f64,
    /// A bound on |E V − δ(ε)| due to the finite generator.
    pub generator: f64,
    /// A bound on the error of each log density, in the sense of [`Running::add`].
    pub rounding: f64,
}

/// The limits of one mechanism.
struct Share {
    /// Σ_i sup |∂_i ln dP/dR|, and the same of ln m.
    lipschitz: f64,
    slope: f64,
    /// Means over the components: the error of a coordinate, and the error of the patterns in total variation.
    coordinate: f64,
    patterns: f64,
    rounding: f64,
}

impl Mixture {
    /// Returns the limits of the mixture's samples at this ε, with the composed profile `curve`.
    ///
    /// # Errors
    /// As [`Mixture::prepared`].
    pub fn limits(&self, epsilon: f64, curve: Option<&Curve>) -> Result<Limits> {
        self.prepared()?;
        let mut known = WeightBounds { value: 0.0, factor: 0.0 };
        for (place, (component, _)) in self.components.iter().enumerate() {
            if let Some(alone) = self.alone(component)? {
                let bounds = weight_bounds_of(&alone, self.direction, epsilon, curve);
                known.value += self.share(place) / bounds.value;
                known.factor += self.share(place) / bounds.factor;
            }
        }
        // This is a sum of K positive terms, where the terms and the inverse are rounded a few times.
        let terms = real(self.components.len());
        let rounding = self.rounding()?;
        let up = (1.0 + UNIT_ROUNDOFF * (terms + 8.0)) * (1.0 + 4.0 * rounding);
        let (weight_bound, factor) = (up / known.value, up / known.factor);
        let mut generator = 0.0;
        for (share, runs) in self.shares()? {
            let normal = (2.0 * factor * share.lipschitz + weight_bound * share.slope) * share.coordinate;
            generator += runs * (normal + 2.0 * weight_bound * share.patterns);
        }
        Ok(Limits { weight_bound, generator: generator * (1.0 + 1e-9), rounding })
    }

    /// Returns a bound on the error of each log density, in the sense of [`Running::add`]; see the head of this file.
    ///
    /// # Errors
    /// As [`Mixture::prepared`].
    pub fn rounding(&self) -> Result<f64> {
        let weight = UNIT_ROUNDOFF * (4.0 * real(self.components.len()) + 32.0);
        let parts: f64 = self.shares()?.into_iter().map(|(share, runs)| runs * share.rounding).sum();
        Ok((weight + parts) * (1.0 + 1e-9))
    }

    /// Returns the limits of each mechanism, and its number of runs.
    fn shares(&self) -> Result<Vec<(Share, f64)>> {
        let each = self.parts.iter().enumerate();
        each.map(|(place, (mechanism, runs))| Ok((self.part(place, mechanism)?, f64::from(*runs)))).collect()
    }

    fn share(&self, component: usize) -> f64 {
        f64::from(self.components[component].1) / f64::from(UNITS)
    }

    /// Returns the component as a separate proposal, which may bound its samples; `None` for a tilt.
    fn alone(&self, component: &Component) -> Result<Option<Vec<Part>>> {
        let (parameters, mean_scale) = match component {
            Component::Tilted(theta) if *theta != 0.0 => return Ok(None),
            Component::Tilted(_) => {
                let plain = self.parts.iter().map(|(mechanism, _)| mechanism.plain_parameter()).collect();
                (plain, self.direction.plain_mean_scale())
            }
            Component::Scaled(parameters, mean_scale) => (parameters.clone(), *mean_scale),
        };
        let part = |((mechanism, runs), parameter): (&(Mechanism, u32), &f64)| {
            Ok(Part { proposed: mechanism.proposed(*parameter, mean_scale)?, runs: *runs })
        };
        self.parts.iter().zip(&parameters).map(part).collect::<Result<_>>().map(Some)
    }

    /// Returns the limits of one mechanism's samples.
    fn part(&self, place: usize, mechanism: &Mechanism) -> Result<Share> {
        let add = self.direction == Direction::Add;
        let base = mechanism.tilt_base();
        // These are the largest distance from the origin, and the largest slopes of the densities.
        let (mut mean_scale, mut theta, mut means) = (self.direction.plain_mean_scale(), 0.0_f64, 1.0_f64);
        for (component, _) in &self.components {
            match (component, &base) {
                (Component::Scaled(_, number), _) => mean_scale = mean_scale.max(number.abs()),
                (Component::Tilted(number), Some(base)) => {
                    theta = theta.max(number.abs());
                    means = worst(means, 1.0 + mechanism.displacement(base, *number));
                }
                (Component::Tilted(_), None) => {}
            }
        }
        let (steepest, means) = (mean_scale.max(1.0), worst(means, mean_scale));
        let runs: f64 = self.parts.iter().map(|(_, runs)| f64::from(*runs)).sum();
        let lipschitz = mechanism.lipschitz();
        let statistic = base.as_ref().map(|base| mechanism.statistic(base, means));
        let slope =
            mean_scale * lipschitz + statistic.map_or(0.0, |t| if theta == 0.0 { 0.0 } else { theta * t.slope });
        let mut rounding = mechanism.rounding_at(steepest, means);
        if runs > 1.0 {
            // This covers partial sums of several mechanisms' log densities.
            rounding += 2.0 * UNIT_ROUNDOFF * runs * mechanism.magnitude(worst(steepest, means));
        }
        let (mut coordinate, mut patterns) = (0.0, 0.0);
        for (component, (kind, _)) in self.components.iter().enumerate() {
            let share = self.share(component);
            let (error, variation) =
                if let (Component::Tilted(number), Some(base), Some(statistic)) = (kind, &base, statistic) {
                    let (error, variation, relative) = tilt(mechanism, base, *number, (add, runs, statistic));
                    rounding = worst(rounding, relative);
                    (error, variation)
                } else {
                    let Some(alone) = self.alone(kind)? else {
                        return Err(Error::Numerics { reason: "a tilt of what has none" });
                    };
                    let (_, error, variation) = alone[place].proposed.generator();
                    (error, variation)
                };
            coordinate += share * error;
            patterns += share * variation;
        }
        Ok(Share { lipschitz, slope, coordinate, patterns, rounding })
    }
}

/// Returns the larger of two numbers; NaN counts as larger than all numbers.
fn worst(one: f64, other: f64) -> f64 {
    if one > other || one.is_nan() {
        one
    } else {
        other
    }
}

/// Returns the errors of a coordinate and of the patterns of a tilt's samples, and the error of ln dM_θ/dN.
fn tilt(
    mechanism: &Mechanism,
    base: &TiltBase,
    theta: f64,
    (add, runs, statistic): (bool, f64, Statistic),
) -> (f64, f64, f64) {
    let tilted = mechanism.tilted(base, theta, add);
    let coordinate = mechanism.coordinate_error(if add { 0.0 } else { 1.0 }, mechanism.displacement(base, theta));
    let terms = real(base.overlap.len()) + 8.0;
    let size = theta.abs() * statistic.size + tilted.norm.abs();
    let rounding = theta.abs() * statistic.error
        + 2.0 * UNIT_ROUNDOFF * terms * theta * theta * base.square
        + 4.0 * UNIT_ROUNDOFF * runs * size
        + tilted.relative;
    (coordinate, tilted.variation, rounding)
}

/// Runs shards `first`, …, `first + count − 1`, on the pool of the caller, and returns the sums of each for each table,
/// in order.
///
/// # Errors
/// As [`Mixture::prepared`] and [`BetTable::check`]; [`Error::Numerics`] if rounding could change a loss by more than
/// 1e-6; [`Error::Cancelled`]; [`Error::TimeLimit`].
pub fn simulate_defensive(job: &DefensiveJob, first: u64, count: u64, run: &Run) -> Result<Vec<Vec<ShardSums>>> {
    for table in &job.tables {
        table.check()?;
    }
    let parts = job.mixture.prepared()?;
    let error = job.mixture.rounding()?;
    if error.is_nan() || error > 1e-6 {
        return Err(Error::Numerics { reason: "rounding could change a privacy loss by more than 1e-6" });
    }
    let results: Vec<Result<Vec<ShardSums>>> = (first..first + count)
        .into_par_iter()
        .map_init(Worker::default, |worker, index| {
            with_vectors(Shard { job, parts: &parts, index, error, worker, run })
        })
        .collect();
    results.into_iter().collect()
}

struct Shard<'a> {
    job: &'a DefensiveJob,
    parts: &'a [Prepared<'a>],
    index: u64,
    error: f64,
    worker: &'a mut Worker,
    run: &'a Run,
}

impl Vectored for Shard<'_> {
    type Output = Result<Vec<ShardSums>>;

    #[inline(always)]
    fn run<V: Vector>(self) -> Self::Output {
        let Self { job, parts, index, error, worker, run } = self;
        let mut stream = Stream::new(job.key, index);
        let mut running: Vec<Running> = job.tables.iter().map(Running::new).collect();
        let least = job.mixture.least(BetTable::least(&job.tables, error, job.curve.as_deref()));
        for (component, (_, share)) in job.mixture.components.iter().enumerate() {
            for _ in 0..*share {
                run.check()?;
                job.mixture.draw::<V>(parts, (component, least), &mut stream, worker);
                let (weight, _) = job.mixture.weight::<V>(worker);
                let loss = V::load(&worker.weighed.loss);
                for (table, running) in job.tables.iter().zip(&mut running) {
                    running.add::<V>(table, (weight, loss), error, job.curve.as_deref());
                }
            }
        }
        Ok(running.iter().map(Running::finish).collect())
    }
}
