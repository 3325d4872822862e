//! Sections as Markdown, for CI comments and summaries: the page's content without its charts.

use std::fmt::Write;

use becalm_units::printable;

use crate::form::section::{Block, Finding, Page, Section, sentence};
use crate::form::table::Table;

/// A report as Markdown, with all rows if `all`, else with the most important ones.
pub fn text(page: &Page, all: bool) -> String {
    let head = [format!("# {}", escaped(&page.title)), escaped(&page.subtitle)];
    let sections = page.sections.iter().flat_map(|section| section_parts(section, all));
    let foot = page.foot.iter().map(|text| escaped(text));
    let parts: Vec<String> = head.into_iter().chain(sections).chain(foot).filter(|part| !part.is_empty()).collect();
    parts.join("\n\n") + "\n"
}

/// The title and the blocks of a section; empty if it has only charts.
fn section_parts(section: &Section, all: bool) -> Vec<String> {
    let blocks = block_parts(&section.blocks, all);
    let title = (!blocks.is_empty()).then(|| format!("## {}", escaped(&section.title)));
    title.into_iter().chain(blocks).collect()
}

fn block_parts(blocks: &[Block], all: bool) -> Vec<String> {
    let parts = blocks.iter().flat_map(|block| match block {
        Block::OnPage(blocks) => block_parts(blocks, all),
        block => vec![block_text(block, all)],
    });
    parts.filter(|part| !part.is_empty()).collect()
}

fn block_text(block: &Block, all: bool) -> String {
    match block {
        Block::Verdict { text, basis, .. } => format!("{}\n\n{}", bold(text), escaped(basis)).trim_end().to_owned(),
        Block::Tiles(tiles) => list(tiles.iter().map(|tile| [bold(&tile.name), labeled(&tile.figure, &tile.detail)])),
        Block::Table(table) => table_text(table, all),
        Block::Heading(title) => format!("### {}", escaped(title)),
        Block::Lead(text) | Block::Text(text) | Block::Note(text) => paragraph(text),
        Block::Item(text) => format!("- {}", escaped(&sentence(text))),
        Block::Facts(facts) => list(facts.iter().map(|(name, text)| [bold(name), escaped(text)])),
        Block::Findings(findings) => {
            list(findings.iter().map(|Finding { name, verdict, text }| [bold(name), labeled(verdict, text)]))
        }
        Block::Commands(commands) => list(commands.iter().map(|step| [code(&step.command), escaped(&step.why)])),
        Block::Remark(name, text) => format!("{}: {}", bold(name), escaped(text)),
        Block::Entry(first, text) if first.trim().is_empty() => paragraph(text),
        Block::Entry(first, text) => format!("{} {}", bold(first.trim()), escaped(text)),
        Block::Warning { text, advice } => {
            let advice = if advice.is_empty() { String::new() } else { format!("\n>\n> {}", escaped(advice)) };
            format!("> [!WARNING]\n> {}{advice}", escaped(text))
        }
        Block::OnPage(_) | Block::OnTerminal(_) | Block::Plot(..) | Block::Lines(_) | Block::Charts(_) => String::new(),
        Block::Files(..) | Block::Detour => String::new(),
    }
}

fn table_text(table: &Table, all: bool) -> String {
    let row = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
    let mut text = String::new();
    if !table.caption.is_empty() {
        let _ = write!(text, "{}\n\n", bold(&table.caption));
    }
    text += &row(table.columns.iter().map(|column| escaped(&column.title)).collect());
    text += &row(table.columns.iter().map(|column| if column.is_text { "---" } else { "--:" }.to_owned()).collect());
    for shown in table.shown(all) {
        text += &row(shown.cells.iter().map(|cell| escaped(&cell.text)).collect());
    }
    for note in table.left_out(all).into_iter().chain([table.note.clone()]).filter(|note| !note.is_empty()) {
        let _ = write!(text, "\n{}\n", escaped(&sentence(&note)));
    }
    text.trim_end().to_owned()
}

/// A list of names with texts, both already marked up.
fn list(items: impl Iterator<Item = [String; 2]>) -> String {
    items.map(|[name, text]| format!("- {name}: {text}")).collect::<Vec<_>>().join("\n")
}

/// A text and its explanation.
fn labeled(text: &str, explained: &str) -> String {
    [text, explained].iter().filter(|part| !part.is_empty()).map(|part| escaped(part)).collect::<Vec<_>>().join(", ")
}

/// A paragraph that does not start a list.
fn paragraph(text: &str) -> String {
    let mark = if text.starts_with(['-', '+']) { "\\" } else { "" };
    format!("{mark}{}", escaped(&sentence(text)))
}

fn bold(text: &str) -> String {
    format!("**{}**", escaped(text))
}

/// A command between more backquotes than it has in a row.
fn code(command: &str) -> String {
    let command = printable(command);
    let longest = command.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest + 1);
    let blank = if longest > 0 { " " } else { "" };
    format!("{fence}{blank}{command}{blank}{fence}")
}

/// One line of text with all markup escaped.
fn escaped(text: &str) -> String {
    let text = printable(text);
    let mut escaped = String::with_capacity(text.len());
    for letter in text.trim().chars() {
        if "\\`*_[]<>|#~&$".contains(letter) {
            escaped.push('\\');
        }
        escaped.push(letter);
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::form::field::{Field, field};
    use becalm_testing::hostile;
    use proptest::prelude::*;

    const FIELDS: [&Field<String>; 2] =
        [&field!("name", "name", |row| row.clone()), &field!("length", "length", |row| row.len())];

    /// The cells of a table's line in Markdown.
    fn cells(line: &str) -> Vec<String> {
        let mut cells = vec![String::new()];
        let mut letters = line.chars();
        while let Some(letter) = letters.next() {
            match letter {
                '|' => cells.push(String::new()),
                '\\' => cells.last_mut().unwrap().extend(letters.next()),
                letter => cells.last_mut().unwrap().push(letter),
            }
        }
        cells.iter().map(|cell| cell.trim().to_owned()).collect()
    }

    fn lines(name: &str) -> Vec<String> {
        let table = Table::filled(&FIELDS, &[name.to_owned()]);
        table_text(&table, true).lines().map(str::to_owned).collect()
    }

    #[test]
    fn names_that_forge_lines_stay_in_their_cell() {
        for name in ["| a | b |", "`x`\n| 1 | 2 |", "<img src=x>", &hostile::forging("x\u{1b}[31m")] {
            let lines = lines(name);
            assert_eq!(lines.len(), 3, "{lines:?}");
            hostile::check_text(&lines.join("\n"));
        }
    }

    #[test]
    fn commands_keep_their_backquotes() {
        assert_eq!(code("becalm record"), "`becalm record`");
        assert_eq!(code("echo ``x`` | cat"), "``` echo ``x`` | cat ```");
    }

    proptest! {
        #[test]
        fn names_in_tables_read_back(name in "(\\PC|[|`<\\\\_*\n]){0,12}") {
            let lines = lines(&name);
            prop_assert_eq!(lines.len(), 3);
            let expected = printable(&name).trim().to_owned();
            prop_assert_eq!(cells(&lines[2]), ["".to_owned(), expected, name.len().to_string(), "".to_owned()]);
        }
    }
}
