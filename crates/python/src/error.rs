//! Errors as exceptions, with the names of arguments in Python.

use becalm_units::fault::{self, Param, Setting};
use pyo3::exceptions::PyException;
use pyo3::{PyErr, create_exception};

create_exception!(becalm, BecalmError, PyException, "Raised if an operation fails.");
create_exception!(becalm, UsageError, BecalmError, "Raised for arguments that are invalid or contradict each other.");

/// The exception for an error.
pub fn exception(error: impl Into<fault::Error>) -> PyErr {
    let error = error.into();
    let text = error.message(argument);
    if error.is_usage() { UsageError::new_err(text) } else { BecalmError::new_err(text) }
}

/// The exception for arguments that are invalid or contradict each other.
pub fn usage(text: impl std::fmt::Display) -> PyErr {
    UsageError::new_err(text.to_string())
}

/// A parameter as an argument.
fn argument(param: Param<'_>) -> String {
    let name = match param.name {
        // `becalm.record` takes command-line options.
        "summary" => return fault::option(param),
        "coalesce" => "coalesce_ns",
        "together" => "together_within_ns",
        name => name,
    };
    match param.setting {
        Setting::Any => format!("{name}="),
        Setting::On => format!("{name}=True"),
        Setting::To(value) => format!("{name}={}", literal(value)),
    }
}

/// A value as a Python literal: a number, a pair of numbers, or a text.
fn literal(value: &str) -> String {
    let is_number = |text: &str| text.parse::<u64>().is_ok();
    match value.split_once(':') {
        Some((first, second)) if is_number(first) && is_number(second) => format!("({first}, {second})"),
        _ if is_number(value) => value.to_owned(),
        _ => format!("'{value}'"),
    }
}
