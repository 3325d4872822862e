//! The part of the Python package that is made of becalm's crates: `becalm._native`. The functions that people call are in
//! `python/becalm`, which gives them their arguments, their units and their documentation.
//!
//! Whatever computes or reads lets other Python threads run meanwhile. Columns of tables lie in memory of Rust's, and are
//! handed to Arrow and NumPy where they are.

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
mod table;
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
    use super::table::{Column, Table};

    use super::{Bound, PyModule, PyModuleMethods, PyResult, quiet_decoder};

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        quiet_decoder();
        module.add("VERSION", env!("CARGO_PKG_VERSION"))
    }
}

/// A panic in the decoder of damaged files is told as an error of the file, and not by the panic hook as well. The hook is that of
/// this module alone.
fn quiet_decoder() {
    let report = panic::take_hook();
    panic::set_hook(Box::new(move |panic| {
        if !becalm_bundle::is_decoding() {
            report(panic);
        }
    }));
}
