//! Running text on a sheet: headings, labels with their texts, and wrapped paragraphs.

use std::io::{self, Write};

use crate::form::sheet::Sheet;

/// How wide running text may become.
const WIDTH: usize = 110;

/// Where the text after a label begins.
const INDENT: usize = 11;

/// Writes the title of a part, after an empty line.
pub(crate) fn heading(out: &mut Sheet<'_>, title: &str) -> io::Result<()> {
    writeln!(out, "\n{title}")
}

/// A label and its text.
pub(crate) fn line(out: &mut Sheet<'_>, label: &str, text: &str) -> io::Result<()> {
    paragraph(out, &format!("  {label:<width$}", width = INDENT - 2), text)
}

/// A text after its first words, wrapped, its further lines below its beginning.
pub(crate) fn paragraph(out: &mut Sheet<'_>, first: &str, text: &str) -> io::Result<()> {
    let indent = first.chars().count();
    let limit = out.width().min(WIDTH);
    // What takes half of a narrow page has its text below it, not beside.
    let below = indent > limit / 2;
    let indent = if below { INDENT.min(limit / 4) } else { indent };
    let mut line = first.to_owned();
    let mut width = first.chars().count();
    // Begins a new line with the first word, if that does not fit.
    let mut empty = !below;
    for word in text.split_whitespace() {
        let length = word.chars().count();
        if !empty && width + 1 + length > limit {
            writeln!(out, "{}", line.trim_end())?;
            line = " ".repeat(indent);
            width = indent;
            empty = true;
        }
        if !empty && !line.ends_with(' ') {
            line.push(' ');
            width += 1;
        }
        line.push_str(word);
        width += length;
        empty = false;
    }
    writeln!(out, "{}", line.trim_end())
}
