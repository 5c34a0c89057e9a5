//! What can go wrong in the core, as data.

use thiserror::Error;

/// Every way a core call can end without an answer.
///
/// Each variant carries the numbers a caller needs to explain itself; the Python package maps each
/// to one exception and no variant is a catch-all.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum Error {
    /// An argument lies outside the domain on which the formula is defined.
    #[error("{name} = {value} is outside its domain: {allowed}")]
    Domain {
        /// Which argument.
        name: &'static str,
        /// The value received.
        value: f64,
        /// The values that would be accepted.
        allowed: &'static str,
    },
    /// The run was cancelled from outside; nothing of it may be reported.
    #[error("the run was cancelled")]
    Cancelled,
    /// The run passed the deadline it was given.
    #[error("the time limit was reached")]
    TimeLimit,
    /// The machine does not give what the run needs.
    #[error("the machine refused {what}: {cause}")]
    Machine {
        /// What was asked of it.
        what: &'static str,
        /// What it said.
        cause: String,
    },
    /// Nothing is wrong with any bound, and none is known: what the rounds lose is beyond all lattices.
    #[error("no bound could be established: {reason}")]
    Unresolved {
        /// What is beyond them.
        reason: &'static str,
    },
    /// No bound could be established although the arguments are in their domain.
    #[error("no bound could be established: {reason}")]
    Numerics {
        /// What stood in the way.
        reason: &'static str,
    },
}

/// The result of a fallible core call.
pub type Result<T> = std::result::Result<T, Error>;
