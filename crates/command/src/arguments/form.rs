//! The form of a report: options of every command that prints one.

use std::path::PathBuf;

use becalm_units::fault;
use clap::Args;

use crate::output::Output;
use crate::rights::refuse_file_of_root;

/// The form of a report; a text unless another one is asked for.
#[derive(Args, Clone, Default, Debug)]
pub struct FormArgs {
    /// Print one JSON document, which always holds everything
    #[arg(long)]
    json: bool,

    /// Print Markdown, e.g. for the summary of a CI job
    #[arg(long, conflicts_with = "json")]
    markdown: bool,

    /// Write a page for a browser with everything; replaces FILE
    #[arg(long, value_name = "FILE", conflicts_with_all = ["json", "markdown"])]
    html: Option<PathBuf>,
}

impl FormArgs {
    /// The output of the report, with all rows instead of the most important ones if `all`. Created before anything is read, to fail early
    /// if the page cannot be written.
    ///
    /// # Errors
    /// If the file of the page cannot be created.
    pub fn output(&self, all: bool) -> fault::Result<Output> {
        match &self.html {
            Some(file) => Output::page(file),
            None if self.json => Ok(Output::Json),
            None if self.markdown => Ok(Output::Markdown { all }),
            None => Ok(Output::Text { all }),
        }
    }

    /// The same for a command that continues as the user behind `sudo` before it reports.
    ///
    /// # Errors
    /// If the file of the page cannot be created, or that user may not write in its directory.
    pub fn output_after_set_up(&self) -> fault::Result<Output> {
        self.html.as_deref().map_or(Ok(()), refuse_file_of_root)?;
        self.output(false)
    }

    /// Whether a form was requested.
    #[must_use]
    pub const fn is_given(&self) -> bool {
        self.takes_output() || self.writes_page()
    }

    /// Whether standard output is for a single document.
    #[must_use]
    pub const fn takes_output(&self) -> bool {
        self.json || self.markdown
    }

    /// Whether a page is written.
    #[must_use]
    pub const fn writes_page(&self) -> bool {
        self.html.is_some()
    }
}
