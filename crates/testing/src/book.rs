//! The book's commands with the outputs that it shows, and holding these against what is printed.

use std::fs;
use std::path::{Path, PathBuf};

/// A command that the book shows, with what it prints.
#[derive(Debug)]
pub struct Shown {
    /// The page that shows it.
    pub page: String,
    /// The command, without the prompt and the remark behind it.
    pub command: String,
    /// What the page shows below the command.
    pub output: String,
}

/// All commands that the book shows with an output.
///
/// # Panics
/// If the book cannot be read.
pub fn book() -> Vec<Shown> {
    let mut folders: Vec<PathBuf> = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/src")];
    let mut shown = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("the book is there") {
            let path = entry.expect("the book is there").path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let page = fs::read_to_string(&path).expect("a page is text");
            shown.extend(commands(&path.display().to_string(), &page));
        }
    }
    shown
}

/// The commands of a page that are shown with an output.
fn commands(name: &str, page: &str) -> Vec<Shown> {
    let mut shown: Vec<Shown> = Vec::new();
    let mut inside = false;
    for line in page.lines() {
        if line.starts_with("```") {
            inside = line == "```console";
        } else if let Some(command) = line.strip_prefix("$ ").filter(|_| inside) {
            // What follows a # is the book's remark.
            let command = command.split(" #").next().unwrap_or_default().trim().to_owned();
            shown.push(Shown { page: name.to_owned(), command, output: String::new() });
        } else if let Some(shown) = shown.last_mut().filter(|_| inside) {
            shown.output.push_str(line);
            shown.output.push('\n');
        }
    }
    shown.retain(|shown| !shown.output.trim().is_empty());
    shown
}

/// Holds what the book shows, word for word, against the beginning of what was printed.
///
/// # Panics
/// If that is another text.
#[track_caller]
pub fn holds_exactly(shown: &Shown, printed: &str) {
    let Shown { page, command, output } = shown;
    assert!(text(printed).starts_with(&text(output)), "{page}: '{command}' prints\n{printed}\nand not\n{output}");
}

/// Without spaces at the ends of lines and of the text.
fn text(output: &str) -> String {
    output.trim_end().lines().map(|line| line.trim_end().to_owned() + "\n").collect()
}

/// Holds the structure of what the book shows against what a command printed: the tables with their columns, and the titles.
///
/// # Panics
/// If the book shows a table or a title that was not printed.
#[track_caller]
pub fn holds_structure(shown: &Shown, command: &str, printed: &str) {
    let lacks = |what: &str| -> ! {
        panic!("{}: '{}' shows {what}, which '{command}' does not print:\n{printed}", shown.page, shown.command)
    };
    let tables = tables_shown(printed);
    for columns in tables_shown(&shown.output) {
        // A column that says nothing is left out, on either side.
        let same = |other: &Vec<&str>| other[0] == columns[0] && (is_part(&columns, other) || is_part(other, &columns));
        if !tables.iter().any(same) {
            lacks(&format!("a table of {columns:?}"));
        }
    }
    let titles = titles_shown(printed);
    for title in titles_shown(&shown.output) {
        if !titles.contains(&title) {
            lacks(&format!("a title '{title}'"));
        }
    }
}

/// Whether all of `part` stand in `whole`, in this order.
fn is_part(part: &[&str], whole: &[&str]) -> bool {
    let mut rest = whole.iter();
    part.iter().all(|column| rest.any(|other| other == column))
}

/// The columns of the tables: what stands over a line.
fn tables_shown(text: &str) -> Vec<Vec<&str>> {
    let lines: Vec<&str> = text.lines().collect();
    let is_line = |line: &str| !line.trim().is_empty() && line.trim().chars().all(|sign| sign == '\u{2500}');
    let heads = lines.windows(2).filter(|pair| is_line(pair[1])).map(|pair| pair[0]);
    let columns = heads.map(|head| head.split("  ").map(str::trim).filter(|title| !title.is_empty()).collect());
    // A line may also part the rows of a table: what stands over that has numbers.
    columns.filter(|titles: &Vec<&str>| !titles.is_empty() && !titles.iter().any(|title| is_number(title))).collect()
}

fn is_number(text: &str) -> bool {
    text.replace(',', "").parse::<f64>().is_ok()
}

/// The titles: the first two words of the lines that begin at the left with a capital, without numbers and without the name
/// that stands before a colon.
fn titles_shown(text: &str) -> Vec<String> {
    let lines = text.lines().filter(|line| line.starts_with(|first: char| first.is_ascii_uppercase()));
    lines
        .map(|line| {
            let title = line.split_once(": ").map_or(line, |(_, title)| title);
            let words = title.split_whitespace().take_while(|word| !word.contains(|sign: char| sign.is_ascii_digit()));
            words.take(2).collect::<Vec<_>>().join(" ")
        })
        .collect()
}
