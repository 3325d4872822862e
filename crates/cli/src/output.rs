//! How results reach their reader: on standard output as text or as JSON, or in a file as a page for a browser.

use std::io::{BufWriter, IntoInnerError, Write};
use std::path::{Path, PathBuf};

use anyhow::Context;
use becalm_bundle::Draft;
use becalm_report::{Form, Report};

use crate::messages::{page_width, say};

/// The program and version that a page names as its maker.
const PROGRAM: &str = concat!("becalm ", env!("CARGO_PKG_VERSION"));

/// Where a result goes, and as what.
pub enum Output {
    /// One JSON document on standard output, which always holds everything.
    Json,
    /// A text on standard output.
    Text {
        /// Whether it shows all rows instead of the most important ones.
        all: bool,
    },
    /// A page for a browser in a file.
    Page {
        /// The file while it is written.
        draft: Draft,
        /// The name that the user gave it.
        file: PathBuf,
    },
}

impl Output {
    /// JSON if `json`, else a text that shows all rows if `all`.
    #[must_use]
    pub const fn new(json: bool, all: bool) -> Self {
        if json { Self::Json } else { Self::Text { all } }
    }

    /// A page in `file`. Whether it can be written is found out here, before anything is read or measured.
    ///
    /// # Errors
    /// If no file can be made there.
    pub fn page(file: &Path) -> anyhow::Result<Self> {
        Ok(Self::Page { draft: Draft::replace(file)?, file: file.to_owned() })
    }
}

/// Shows a result; texts are as wide as the terminal.
///
/// # Errors
/// If `out` or the file cannot be written.
pub fn emit(report: &impl Report, output: Output, out: &mut dyn Write) -> anyhow::Result<()> {
    let form = |all| Form::within(page_width()).with_all(all);
    match output {
        Output::Json => Ok(becalm_report::print(report, true, form(true), out)?),
        Output::Text { all } => Ok(becalm_report::print(report, false, form(all), out)?),
        Output::Page { draft, file } => {
            let page = report.page(PROGRAM).context("there is no page for a browser of this")?;
            let failed = || format!("cannot write {}", file.display());
            let mut out = BufWriter::new(draft);
            page.write(&mut out).with_context(failed)?;
            out.into_inner().map_err(IntoInnerError::into_error).with_context(failed)?.finish()?;
            say(format_args!("the page is {}", file.display()));
            Ok(())
        }
    }
}
