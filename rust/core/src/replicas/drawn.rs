//! The kinds of participations that replicas are implemented for: their moments, and how tuples are drawn.

use crate::error::{Error, Result};
use crate::participation::renewal::Renewal;
use crate::replicas::automaton::Automaton;
use crate::replicas::automaton_tuples::{self, AutomatonTuples};
use crate::replicas::block_tuples::BlockTuples;
use crate::replicas::phases::{self, Phases};
use crate::replicas::placed::{self, Placed};
use crate::replicas::steps::LogMoment;
use crate::replicas::stepwise::Bounds;
use crate::replicas::tuples::Tuples;
use crate::replicas::{aged, Replicas, ONE_OR_OTHER};
use crate::run::Run;
use crate::special::real;

/// The law of a record's participations, with the inner products of the columns of its rounds.
#[derive(Debug, Clone, Copy)]
pub enum Participations<'a> {
    /// b-min-sep sampling of records or of users, or cyclic Poisson sampling with random phases, with a banded Toeplitz
    /// matrix of these coefficients in units of σ.
    Renewal(&'a Renewal, &'a [f64]),
    /// Random allocation of `taken` out of all rounds, without a matrix; columns have this squared norm in units of σ.
    Allocation {
        /// t, the number of rounds.
        rounds: usize,
        /// k, the number of rounds that a record takes part in.
        taken: usize,
        /// ‖c‖².
        square: f64,
    },
    /// Those of an automaton.
    Automaton(&'a Automaton),
    /// Balls in as many bins as rows, with these inner products of their modes; `error` bounds their error as a
    /// fraction of the largest.
    Bins {
        /// The inner products, row by row.
        gram: &'a [f64],
        /// T, the number of bins.
        bins: usize,
        /// The error of the inner products as a fraction of the largest.
        error: f64,
    },
}

/// Tuples of replicas, by the way in which they are drawn.
#[derive(Debug)]
pub enum Drawn {
    /// Tuples of records under b-min-sep sampling, drawn round by round.
    Rounds(Tuples),
    /// The same tuples, drawn by blocks of rounds.
    Blocks(BlockTuples),
    /// Tuples of an automaton.
    Automaton(AutomatonTuples),
    /// Tuples of random phases.
    Phases(Phases),
    /// Tuples of bins.
    Placed(Placed),
}

/// The number of single-precision numbers in the tables of the tuples of one order, 256 MiB; half as many doubles fit.
pub const ROOM: usize = 1 << 26;
const DOUBLES: usize = 2;

impl Participations<'_> {
    /// Returns the law if a replica's state is an age alone: then few may be busy, and rounds may be grouped in blocks.
    fn ages(&self) -> Option<&Renewal> {
        match self {
            Self::Renewal(law, _) if law.records() == 1 && !law.phased => Some(law),
            _ => None,
        }
    }

    /// Returns the number of states of a chain of replicas, and approximately how many are computed; `None` if there is
    /// no such chain.
    pub fn price(&self, replicas: Replicas) -> Option<(usize, f64)> {
        if let Some(law) = self.ages() {
            let count = aged::states(law, replicas)?;
            return Some((count, real(count) * real(aged::most_steps(law, replicas))));
        }
        if replicas != Replicas::exact(replicas.order) {
            return None;
        }
        let order = replicas.order;
        match self {
            Self::Renewal(law, _) if law.phased => phases::price(law, order),
            Self::Bins { bins, .. } => {
                // Each takes some twenty operations of a chain's state at m = 6.
                let each = 4.0 + 0.5 * real(order * order);
                placed::price(*bins, order).map(|count| (count, each * real(count)))
            }
            _ => automaton_tuples::price(&self.automaton().ok()??, order, ROOM / DOUBLES),
        }
    }

    /// Estimates the nanoseconds for a tuple that is not drawn by ages, without its likelihood ratio.
    pub fn tuple_price(&self, order: usize) -> f64 {
        let ways = real(1_u64 << order.min(40));
        match self {
            _ if self.ages().is_some() => 0.0,
            Self::Renewal(law, _) if law.phased => {
                let chances = law.iterations().div_ceil(law.min_separation).min(phases::EXPECTED) * order;
                6.0 * real(law.iterations()) + 2.0 * real(chances) * ways
            }
            Self::Renewal(law, _) => 8.0 * real(law.iterations()),
            Self::Allocation { rounds, taken, .. } => 8.0 * real(*rounds) + 4.0 * real(taken * order) * ways,
            Self::Automaton(automaton) => real(automaton.steps) * (8.0 + 4.0 * real(order)),
            Self::Bins { .. } => 300.0 + real(placed::BLOCK) * (8.0 + real(order * order)),
        }
    }

    /// Returns the automaton, if tuples are drawn with one.
    fn automaton(&self) -> Result<Option<Automaton>> {
        match *self {
            Self::Renewal(law, coefficients) if !law.phased => Automaton::of_renewal(law, coefficients).map(Some),
            Self::Allocation { rounds, taken, square } => {
                Automaton::of_allocation(rounds, (rounds, taken), &[square.sqrt().next_up()]).map(Some)
            }
            Self::Automaton(automaton) => Ok(Some(automaton.clone())),
            Self::Renewal(..) | Self::Bins { .. } => Ok(None),
        }
    }

    /// Returns bounds on ln E_R f^m; see [`aged::log_moment`] for `gap`. For participations without ages the lower
    /// bound is trivial.
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
            _ => Drawn::new(self, replicas, 0, run).map(|drawn| drawn.bounds().log_bound()),
        };
        let upper = match found {
            // If a chain of an allowed size leaves the range of numbers, there is no bound.
            Err(Error::Numerics { .. }) if self.price(replicas).is_some() => f64::INFINITY,
            other => other?,
        };
        Ok(LogMoment { lower: 0.0, upper, left_out: 0.0, steps: 0 })
    }

    /// Returns an upper bound on ln of the part that is left out where few replicas may be busy at once; `None` if all
    /// may.
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
    /// Creates the tuples, with tables that have at most `room` single-precision numbers, or half as many doubles, in
    /// addition to those of the computation.
    ///
    /// # Errors
    /// As [`Tuples::new`], [`BlockTuples::new`] and those of the other modules; [`Error::Domain`] for replicas that are
    /// drawn in no such way.
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
            // They are automata.
            Participations::Allocation { .. } | Participations::Automaton(_) => Err(ONE_OR_OTHER),
        }
    }

    /// Returns the bounds of the tuples' weights.
    pub fn bounds(&self) -> &dyn Bounds {
        match self {
            Self::Rounds(tuples) => tuples,
            Self::Blocks(tuples) => tuples,
            Self::Automaton(tuples) => tuples,
            Self::Phases(phases) => phases,
            Self::Placed(placed) => placed,
        }
    }
}
