//! Errors as exceptions, with the text that the command line has for them.

use becalm_answer::AnswerError;
use becalm_bundle::BundleError;
use pyo3::exceptions::PyException;
use pyo3::{PyErr, create_exception};

create_exception!(becalm, BecalmError, PyException, "What was asked failed. The text is that of the command line.");
create_exception!(
    becalm,
    UsageError,
    BecalmError,
    "What was asked cannot be meant. The text names options of the command line."
);

/// The exception for an error.
pub fn of_answer(error: &AnswerError) -> PyErr {
    if error.is_usage() { UsageError::new_err(error.message()) } else { BecalmError::new_err(error.message()) }
}

/// The exception for a bundle that cannot be read.
pub fn of_bundle(error: BundleError) -> PyErr {
    of_answer(&AnswerError::from(error))
}

/// The exception for an argument that cannot be meant.
pub fn usage(text: impl std::fmt::Display) -> PyErr {
    UsageError::new_err(text.to_string())
}
