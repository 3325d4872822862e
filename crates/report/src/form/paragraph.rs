//! Running text on a sheet: headings, labels with their texts, and wrapped paragraphs.

use std::io::{self, Write};

use becalm_units::printable;
use textwrap::WordSeparator;
use textwrap::core::Word;
use textwrap::wrap_algorithms::wrap_first_fit;

use crate::form::sheet::{Sheet, Style};

/// The largest width of running text.
const WIDTH: usize = 110;

/// The column of the text after a label.
pub const INDENT: usize = 11;

/// Writes the title of a part, after an empty line.
pub fn heading(out: &mut Sheet<'_>, title: &str) -> io::Result<()> {
    writeln!(out)?;
    title_line(out, title)
}

/// Writes the title of the first part.
pub(crate) fn title_line(out: &mut Sheet<'_>, title: &str) -> io::Result<()> {
    out.paint(Some(Style::Heading), &printable(title))?;
    writeln!(out)
}

/// A label and its text.
pub fn line(out: &mut Sheet<'_>, label: &str, text: &str) -> io::Result<()> {
    paragraph(out, &format!("  {label:<width$}", width = INDENT - 2), text)
}

/// A text after its first words, wrapped and indented to where it starts.
pub fn paragraph(out: &mut Sheet<'_>, first: &str, text: &str) -> io::Result<()> {
    let first = &*printable(first);
    let indent = first.chars().count();
    let limit = out.width().min(WIDTH);
    // First words that take half of a narrow page have their text below them.
    let below = indent > limit / 2;
    let indent = if below { INDENT.min(limit / 4) } else { indent };
    let begun = first.chars().count();
    let first_word = text.split_whitespace().next().map_or(0, |word| word.chars().count());
    if below && begun + 1 + first_word > limit {
        writeln!(out, "{}", first.trim_end())?;
        let blank = " ".repeat(indent);
        return broken(text, [limit - indent; 2]).iter().try_for_each(|line| writeln!(out, "{blank}{line}"));
    }
    let lines = broken(text, [limit.saturating_sub(begun), limit - indent]);
    let (head, rest) = lines.split_first().map_or(("", &[][..]), |(head, rest)| (head.as_str(), rest));
    if head.is_empty() {
        out.mark(first.trim_end())?;
        writeln!(out)?;
    } else {
        // Each part of a label may be a verdict.
        first.split_inclusive("  ").try_for_each(|part| out.mark(part))?;
        writeln!(out, "{head}")?;
    }
    let blank = " ".repeat(indent);
    rest.iter().try_for_each(|line| writeln!(out, "{blank}{line}"))
}

/// Breaks a text between words into lines of at most `width` characters; a longer word has its own line.
pub fn wrap(text: &str, width: usize) -> Vec<String> {
    broken(text, [width; 2])
}

/// Breaks a text into a first line and further lines of at most these widths.
fn broken(text: &str, widths: [usize; 2]) -> Vec<String> {
    let text = printable(text);
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let words: Vec<Word<'_>> = WordSeparator::AsciiSpace.find_words(&text).collect();
    if words.is_empty() {
        return Vec::new();
    }
    let lines = wrap_first_fit(&words, &widths.map(|width| width as f64));
    lines.iter().map(|line| line.iter().map(|word| word.word).collect::<Vec<_>>().join(" ")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::form::sheet::Form;

    fn printed(columns: usize, first: &str, text: &str) -> String {
        let mut out = Vec::new();
        paragraph(&mut Sheet::new(&mut out, Form::within(Some(columns))), first, text).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn further_lines_stand_below_the_beginning_of_the_text() {
        let text = "becalm was built with one thread that looks after all the others";
        assert_eq!(
            printed(40, "  ! ", text),
            "  ! becalm was built with one thread\n    that looks after all the others\n"
        );
        assert_eq!(printed(200, "  ! ", text), format!("  ! {text}\n"));
        assert_eq!(printed(40, "  ! ", ""), "  !\n");
    }

    #[test]
    fn what_follows_a_long_command_stands_below_it() {
        let command = "  becalm detours quiet.becalm --longest 10   ";
        assert_eq!(
            printed(48, command, "what happened in the longest detours"),
            "  becalm detours quiet.becalm --longest 10\n           what happened in the longest detours\n"
        );
    }

    #[test]
    fn long_words_stay_whole() {
        assert_eq!(
            wrap("a /sys/devices/virtual/workqueue/cpumask b", 8),
            ["a", "/sys/devices/virtual/workqueue/cpumask", "b"]
        );
        assert_eq!(wrap("a bb ccc dddd", 6), ["a bb", "ccc", "dddd"]);
        assert_eq!(wrap("verylongword x", 4), ["verylongword", "x"]);
        assert!(wrap("", 4).is_empty() && wrap(" ", 8).is_empty());
    }
}
