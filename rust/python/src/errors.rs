//! The one conversion from core errors to the package's exceptions.

use pyaccount_core::Error;
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::{import_exception, PyErr};

import_exception!(pyaccount.errors, DomainError);
import_exception!(pyaccount.errors, LimitError);
import_exception!(pyaccount.errors, NumericsError);

/// Returns the Python exception for a core error.
#[allow(clippy::needless_pass_by_value)] // called through `map_err`, which passes by value
pub fn raise(error: Error) -> PyErr {
    let message = error.to_string();
    match error {
        Error::Domain { .. } => DomainError::new_err(message),
        Error::Cancelled => PyKeyboardInterrupt::new_err(message),
        Error::TimeLimit | Error::Machine { .. } => LimitError::new_err(message),
        Error::Numerics { .. } | Error::Unresolved { .. } => NumericsError::new_err(message),
    }
}
