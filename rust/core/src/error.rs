//! The errors of the core, as data.

use thiserror::Error;

/// Every way a core call can end without an answer.
///
/// Each variant carries the numbers a caller needs to explain the error; the Python package maps each to one exception
/// and no variant is a catch-all.
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
    /// The run passed its deadline.
    #[error("the time limit was reached")]
    TimeLimit,
    /// The machine does not provide what the run needs.
    #[error("the machine refused {what}: {cause}")]
    Machine {
        /// What was requested of the machine.
        what: &'static str,
        /// The message of the operating system.
        cause: String,
    },
    /// No bound is known, although nothing is wrong: the losses of the rounds are too large for any lattice.
    #[error("no bound could be established: {reason}")]
    Unresolved {
        /// What exceeds the lattices.
        reason: &'static str,
    },
    /// No bound could be established although the arguments are in their domain.
    #[error("no bound could be established: {reason}")]
    Numerics {
        /// What prevented a bound.
        reason: &'static str,
    },
}

/// The result of a fallible core call.
pub type Result<T> = std::result::Result<T, Error>;

/// Returns the error for an argument outside of its domain.
///
/// # Errors
/// [`Error::Domain`], always.
pub fn domain<T>(name: &'static str, value: f64, allowed: &'static str) -> Result<T> {
    Err(Error::Domain { name, value, allowed })
}
