//! The native part of the Python package: `becalm._native`. The public functions are in `python/becalm`, with their arguments, units and
//! documentation.
//!
//! Computations and reads release the interpreter for other Python threads. Columns of tables stay in Rust memory and are shared with Arrow
//! and NumPy.

#![forbid(unsafe_code)]

mod caller;
mod compare;
mod detours;
mod error;
mod law;
mod predict;
mod record_batch;
mod report;
mod run;
mod sources;
mod spans;
mod table;
mod threads;
mod values;

use std::panic;

use pyo3::prelude::*;

/// The extension module.
#[pymodule]
mod _native {
    #[pymodule_export]
    use super::compare::compare;
    #[pymodule_export]
    use super::error::{BecalmError, UsageError};
    #[pymodule_export]
    use super::law::law;
    #[pymodule_export]
    use super::predict::predict;
    #[pymodule_export]
    use super::report::report;
    #[pymodule_export]
    use super::run::StoredRun;
    #[pymodule_export]
    use super::sources::sources;
    #[pymodule_export]
    use super::spans::{Span, flush_spans, forget_spans};
    #[pymodule_export]
    use super::table::{Column, Table};

    use super::{Bound, PyModule, PyModuleMethods, PyResult, quiet_decoder};

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        quiet_decoder();
        module.add("VERSION", env!("CARGO_PKG_VERSION"))
    }
}

/// Silences the panic hook for panics in the decoder of damaged files, which become errors of the file. The hook belongs to this module
/// alone.
fn quiet_decoder() {
    let report = panic::take_hook();
    panic::set_hook(Box::new(move |panic| {
        if !becalm_bundle::is_decoding() {
            report(panic);
        }
    }));
}
