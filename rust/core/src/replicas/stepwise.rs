//! What the tuples of all kinds of participations have in common.

use crate::error::Result;
use crate::run::Run;

/// Tuples of replicas, and the bounds of their weights.
pub trait Bounds {
    /// Returns an upper bound on ln ρ of a tuple.
    fn log_bound(&self) -> f64;

    /// Returns an upper bound on the excess of the computed ln ρ over the exact one, which it never falls below.
    fn relative(&self) -> f64;

    /// Returns an upper bound on the total variation between the law that tuples are drawn from and π.
    fn variation(&self) -> f64;

    /// Prepares for drawing tuples fast. The tuples are the same without it.
    ///
    /// # Errors
    /// [`Error::Cancelled`](crate::error::Error::Cancelled); [`Error::TimeLimit`](crate::error::Error::TimeLimit).
    fn prepare(&self, _run: &Run) -> Result<()> {
        Ok(())
    }
}

/// Tuples that are drawn round by round.
pub trait Stepwise: Bounds {
    /// The state of a tuple that is being drawn.
    type Tuple: Default;
    /// The data of a round, for all tuples that pass it.
    type At<'a>
    where
        Self: 'a;

    /// Returns n, the number of rounds.
    fn rounds(&self) -> usize;

    /// Draws the first state of a tuple, from two uniform numbers in (0, 1].
    fn begin(&self, uniforms: (f64, f64), tuple: &mut Self::Tuple);

    /// Returns round i, from 1 on.
    fn at(&self, i: usize) -> Self::At<'_>;

    /// Returns how many replicas (records) take part in a round, by a uniform number in (0, 1]; `None` if the tuple is
    /// given up.
    fn step(&self, at: &Self::At<'_>, uniform: f64, tuple: &mut Self::Tuple) -> Option<usize>;

    /// Returns ln ρ of a tuple that has passed all rounds.
    fn log_weight(&self, tuple: &Self::Tuple) -> f64;
}
