//! The form of a report: what every command that makes one takes.

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
    /// Where the report goes, with all rows instead of the most important ones if `all`. Made before anything is read, because a page that
    /// cannot be written is an error then.
    ///
    /// # Errors
    /// If no file can be made for the page.
    pub fn output(&self, all: bool) -> fault::Result<Output> {
        match &self.html {
            Some(file) => Output::page(file),
            None if self.json => Ok(Output::Json),
            None if self.markdown => Ok(Output::Markdown { all }),
            None => Ok(Output::Text { all }),
        }
    }

    /// The same for a command that goes on as the user behind `sudo` before it reports.
    ///
    /// # Errors
    /// If no file can be made for the page, or that user may not write in its directory.
    pub fn output_after_set_up(&self) -> fault::Result<Output> {
        self.html.as_deref().map_or(Ok(()), refuse_file_of_root)?;
        self.output(false)
    }

    /// Whether a form was named.
    #[must_use]
    pub const fn is_given(&self) -> bool {
        self.takes_output() || self.writes_page()
    }

    /// Whether standard output holds one document and nothing else.
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
