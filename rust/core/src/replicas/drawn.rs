//! What replicas are known of: how participations come about, their moments, and how tuples are drawn.

use crate::error::{Error, Result};
use crate::participation::renewal::Renewal;
use crate::replicas::automaton::Automaton;
use crate::replicas::automaton_tuples::{self, AutomatonTuples};
use crate::replicas::block_tuples::BlockTuples;
use crate::replicas::phases::{self, Phases};
use crate::replicas::placed::{self, Placed};
use crate::replicas::steps::LogMoment;
use crate::replicas::tuples::Tuples;
use crate::replicas::{aged, Replicas, ONE_OR_OTHER};
use crate::run::Run;

/// How a record's participations come about, and what the columns of its rounds have in common.
#[derive(Debug, Clone, Copy)]
pub enum Participations<'a> {
    /// b-min-sep sampling of records or of users, or cyclic Poisson sampling with random phases, with a banded Toeplitz matrix of these
    /// coefficients in units of σ.
    Renewal(&'a Renewal, &'a [f64]),
    /// Random allocation of so many out of all rounds, without a matrix, columns of this squared norm in units of σ.
    Allocation {
        /// t.
        rounds: usize,
        /// k.
        taken: usize,
        /// ‖c‖².
        square: f64,
    },
    /// Balls in as many bins as rows, with these inner products of their modes, which are off by at most such a part of the largest.
    Bins {
        /// Row by row.
        gram: &'a [f64],
        /// T.
        bins: usize,
        /// See above.
        error: f64,
    },
}

/// Tuples of replicas, and how they are drawn.
#[derive(Debug)]
pub enum Drawn {
    /// Of records under b-min-sep sampling, round by round.
    Rounds(Tuples),
    /// The same by blocks of rounds.
    Blocks(BlockTuples),
    /// Of an automaton.
    Automaton(AutomatonTuples),
    /// Of random phases.
    Phases(Phases),
    /// Of bins.
    Placed(Placed),
}

/// Single-precision numbers of the tables of the tuples of one order, 256 MiB; of tables in doubles half as many fit.
pub const ROOM: usize = 1 << 26;
const DOUBLES: usize = 2;

impl Participations<'_> {
    /// Whether a replica's state is an age alone: then few may be busy, and rounds be taken in blocks.
    fn ages(&self) -> Option<&Renewal> {
        match self {
            Self::Renewal(law, _) if law.records() == 1 && !law.phased => Some(law),
            _ => None,
        }
    }

    /// The number of states of a chain of replicas, and about how many are computed; none where there is no such chain.
    #[must_use]
    pub fn price(&self, replicas: Replicas) -> Option<(usize, f64)> {
        if let Some(law) = self.ages() {
            let count = aged::states(law, replicas)?;
            #[allow(clippy::cast_precision_loss)] // a price
            return Some((count, count as f64 * aged::most_steps(law, replicas) as f64));
        }
        if replicas != Replicas::exact(replicas.order) {
            return None;
        }
        let order = replicas.order;
        match self {
            Self::Renewal(law, _) if law.phased => phases::price(law, order),
            #[allow(clippy::cast_precision_loss)] // a price
            Self::Bins { bins, .. } => {
                // Each takes some twenty operations of a chain's state at m = 6.
                let each = 4.0 + 0.5 * (order * order) as f64;
                placed::price(*bins, order).map(|count| (count, each * count as f64))
            }
            _ => automaton_tuples::price(&self.automaton().ok()??, order, ROOM / DOUBLES),
        }
    }

    /// About how many nanoseconds a tuple takes that is not drawn by ages, beside what its likelihood ratio does.
    #[must_use]
    #[allow(clippy::cast_precision_loss)] // a price
    pub fn tuple_price(&self, order: usize) -> f64 {
        let ways = (1_u64 << order.min(40)) as f64;
        match self {
            _ if self.ages().is_some() => 0.0,
            Self::Renewal(law, _) if law.phased => {
                let chances = law.iterations().div_ceil(law.min_separation).min(phases::EXPECTED) * order;
                6.0 * law.iterations() as f64 + 2.0 * chances as f64 * ways
            }
            Self::Renewal(law, _) => 8.0 * law.iterations() as f64,
            Self::Allocation { rounds, taken, .. } => 8.0 * *rounds as f64 + 4.0 * (taken * order) as f64 * ways,
            Self::Bins { .. } => 300.0 + placed::BLOCK as f64 * (8.0 + (order * order) as f64),
        }
    }

    /// The automaton, where that is how tuples are drawn.
    fn automaton(&self) -> Result<Option<Automaton>> {
        match *self {
            Self::Renewal(law, coefficients) if !law.phased => Automaton::of_renewal(law, coefficients).map(Some),
            Self::Allocation { rounds, taken, square } => Automaton::of_allocation(rounds, taken, square).map(Some),
            Self::Renewal(..) | Self::Bins { .. } => Ok(None),
        }
    }

    /// Bounds on ln E_R f^m; see [`aged::log_moment`] for `gap`. Of what has no ages nothing is known from below.
    ///
    /// # Errors
    /// As [`aged::log_moment`] and [`Drawn::new`].
    pub fn log_moment(&self, replicas: Replicas, gap: f64, run: &Run) -> Result<LogMoment> {
        if let (Self::Renewal(_, coefficients), Some(law)) = (self, self.ages()) {
            return aged::log_moment(law, coefficients, replicas, gap, run);
        }
        let found = match self.automaton()? {
            Some(automaton) if replicas == Replicas::exact(replicas.order) => {
                automaton_tuples::log_moment(automaton, replicas.order, run)
            }
            _ => Drawn::new(self, replicas, 0, run).map(|drawn| drawn.log_bound()),
        };
        let upper = match found {
            // A chain of that size leaves the range of numbers: there is no bound.
            Err(Error::Numerics { .. }) if self.price(replicas).is_some() => f64::INFINITY,
            other => other?,
        };
        Ok(LogMoment { lower: 0.0, upper, left_out: 0.0, steps: 0 })
    }

    /// An upper bound on ln of what is left out where few replicas may be busy at once; none where all may.
    ///
    /// # Errors
    /// As [`aged::log_left_out`].
    pub fn log_left_out(&self, replicas: Replicas, run: &Run) -> Result<Option<f64>> {
        match (self, self.ages()) {
            (Self::Renewal(_, coefficients), Some(law)) => aged::log_left_out(law, coefficients, replicas, run),
            _ => Ok(None),
        }
    }
}

impl Drawn {
    /// The tuples, with tables that have at most `room` single-precision numbers, or half as many in doubles, beside those that are computed with.
    ///
    /// # Errors
    /// As [`Tuples::new`], [`BlockTuples::new`] and those of the other modules; [`Error::Domain`] for replicas that are drawn in no
    /// such way.
    pub fn new(participations: &Participations, replicas: Replicas, room: usize, run: &Run) -> Result<Self> {
        let Replicas { order, most_busy, block } = replicas;
        if let (Participations::Renewal(_, coefficients), Some(law)) = (participations, participations.ages()) {
            return match block {
                None => Ok(Self::Rounds(Tuples::new(law, coefficients, (order, most_busy), room, run)?)),
                Some(_) if most_busy.is_some() => Err(ONE_OR_OTHER),
                Some(length) => Ok(Self::Blocks(BlockTuples::new(law, coefficients, (order, length), room, run)?)),
            };
        }
        if replicas != Replicas::exact(order) {
            return Err(ONE_OR_OTHER);
        }
        if let Some(automaton) = participations.automaton()? {
            return AutomatonTuples::new(automaton, order, room / DOUBLES, run).map(Self::Automaton);
        }
        match *participations {
            Participations::Bins { gram, error, .. } => {
                let error = error * gram.iter().copied().fold(0.0, f64::max);
                Placed::new(gram, error, order, run).map(Self::Placed)
            }
            Participations::Renewal(law, coefficients) => Phases::new(law, coefficients, order, run).map(Self::Phases),
            // It is an automaton.
            Participations::Allocation { .. } => Err(ONE_OR_OTHER),
        }
    }

    /// A bound on ln ρ.
    #[must_use]
    pub fn log_bound(&self) -> f64 {
        match self {
            Self::Rounds(tuples) => tuples.log_bound(),
            Self::Blocks(tuples) => tuples.log_bound(),
            Self::Automaton(tuples) => tuples.log_bound(),
            Self::Phases(phases) => phases.log_bound(),
            Self::Placed(placed) => placed.log_bound(),
        }
    }

    /// How much the ln ρ that is told exceeds the exact one at most.
    #[must_use]
    pub fn relative(&self) -> f64 {
        match self {
            Self::Rounds(tuples) => tuples.relative(),
            Self::Blocks(tuples) => tuples.relative(),
            Self::Automaton(tuples) => tuples.relative(),
            Self::Phases(phases) => phases.relative(),
            Self::Placed(placed) => placed.relative(),
        }
    }

    /// By how much the law of the tuples may be off, in total variation.
    #[must_use]
    pub fn variation(&self) -> f64 {
        match self {
            Self::Rounds(tuples) => tuples.variation(),
            Self::Blocks(tuples) => tuples.variation(),
            Self::Automaton(tuples) => tuples.variation(),
            Self::Phases(phases) => phases.variation(),
            Self::Placed(placed) => placed.variation(),
        }
    }

    /// Make ready for tuples to be drawn fast. They are the same without.
    ///
    /// # Errors
    /// As [`Tuples::prepare`].
    pub fn prepare(&self, run: &Run) -> Result<()> {
        match self {
            Self::Rounds(tuples) => tuples.prepare(run),
            Self::Blocks(tuples) => tuples.prepare(run),
            Self::Automaton(_) | Self::Phases(_) | Self::Placed(_) => Ok(()),
        }
    }
}
