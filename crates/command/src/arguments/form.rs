//! The form of a report: options of every command that prints one.

use std::path::PathBuf;
use std::{env, process};

use becalm_units::fault;
use clap::Args;
use jiff::Timestamp;

use crate::output::Output;
use crate::rights::refuse_file_of_root;

/// The form of a report; a text unless another one is asked for.
#[derive(Args, Clone, Default, Debug)]
pub struct FormArgs {
    /// Print one complete JSON document
    #[arg(long)]
    json: bool,

    /// Print Markdown, such as for a CI job summary
    #[arg(long, conflicts_with = "json")]
    markdown: bool,

    /// Write a page with the complete report; replaces FILE
    #[arg(long, value_name = "FILE", conflicts_with_all = ["json", "markdown"])]
    html: Option<PathBuf>,

    /// Open the page in your browser; without --html, a temporary file
    #[arg(long, conflicts_with_all = ["json", "markdown"])]
    open: bool,
}

impl FormArgs {
    /// The output of the report, with all rows instead of the most important ones if `all`. Created before anything is read, to fail early
    /// if the page cannot be written.
    ///
    /// # Errors
    /// If the file of the page cannot be created.
    pub fn output(&self, all: bool) -> fault::Result<Output> {
        match &self.html {
            Some(file) if self.open => Ok(Output::page(file)?.opened()),
            Some(file) => Output::page(file),
            None if self.open => Ok(Output::page(&new_page())?.opened()),
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
        self.html.is_some() || self.open
    }
}

/// A new file in the temporary directory.
fn new_page() -> PathBuf {
    env::temp_dir().join(format!("becalm-{}-{}.html", Timestamp::now().as_millisecond(), process::id()))
}
