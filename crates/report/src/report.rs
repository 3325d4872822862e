//! The output of every command: one document for scripts, one text for people, and for some a page.

use std::io::{self, BufWriter, Write};

use serde::Serialize;

use crate::form::markdown;
use crate::form::section::{Page, foot};
use crate::form::sheet::{Form, Sheet};
use crate::form::terminal;

/// The output of a command.
pub trait Report {
    /// The name and version of the document for scripts, like `becalm.law/1`.
    fn schema(&self) -> &'static str;

    /// The fields of the document for scripts, without `schema`.
    fn document(&self) -> impl Serialize;

    /// The document for scripts with its `schema`, by default in front.
    fn named_document(&self) -> impl Serialize {
        NamedDocument { schema: self.schema(), document: self.document() }
    }

    /// The report for people, for a terminal of this form: the sections of terminal and page, and the rest of the page's footer. A report without
    /// sections implements `text` and `page` itself.
    fn view(&self, _form: Form) -> Page {
        Page::default()
    }

    /// The answer in one line, repeated below a text that is higher than the terminal.
    fn answer(&self) -> Option<String> {
        None
    }

    /// Writes the text for people. Fails if `out` cannot be written.
    fn text(&self, out: &mut Sheet<'_>) -> io::Result<()> {
        terminal::write(&self.view(out.form()).sections, out)
    }

    /// The page, made by `program`, like `becalm 0.1.0`; `None` if there is none.
    fn page(&self, program: &str) -> Option<Page> {
        let view = self.view(Form::default().with_all(true));
        if view.sections.is_empty() {
            return None;
        }
        let made = [format!("Made by {program}.")].into_iter().chain(view.foot).collect::<Vec<_>>().join(" ");
        Some(Page { foot: foot(made), ..view })
    }
}

/// A document with its schema's name in front.
#[derive(Serialize)]
struct NamedDocument<T> {
    schema: &'static str,
    #[serde(flatten)]
    document: T,
}

/// The printed document for scripts: JSON of several lines with a final line break.
pub fn json(report: &impl Report) -> String {
    let document = serde_json::to_string_pretty(&report.named_document());
    let mut text = document.expect("the keys are texts and numbers are finite or null");
    text.push('\n');
    text
}

/// Prints a report: its document if `as_json`, else its text. Fails if `out` cannot be written.
pub fn print(report: &impl Report, as_json: bool, form: Form, out: &mut dyn Write) -> io::Result<()> {
    let mut out = BufWriter::new(out);
    if as_json {
        out.write_all(json(report).as_bytes())?;
    } else {
        report.text(&mut Sheet::new(&mut out, form))?;
    }
    out.flush()
}

/// The report as Markdown, with all rows if `all`, else with the most important ones; `None` if it is only a text.
pub fn markdown(report: &impl Report, all: bool) -> Option<String> {
    let view = report.view(Form::default().with_all(all));
    (!view.sections.is_empty()).then(|| markdown::text(&view, all))
}

/// The text for people.
pub fn text(report: &impl Report, form: Form) -> String {
    let mut text = Vec::new();
    report.text(&mut Sheet::new(&mut text, form)).expect("memory takes every text");
    String::from_utf8(text).expect("texts are made of strings")
}
