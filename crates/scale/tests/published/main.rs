//! What papers have published, found again or not: one table, which is also a page of the book.
//!
//! `PUBLISHED=overwrite cargo test -p becalm-scale --test published` writes the page's tables again, with what takes a minute;
//! otherwise `make bench` has that.

mod blue_gene;
mod figures;
mod jitter;
mod replays;

use std::path::Path;
use std::{env, fs};

use figures::page::{BEGIN, END, Page, Row};
use figures::{Answers, Figure};

/// Every figure is as the page says, and where it was when its line was written. What takes too long is taken from the page.
#[test]
fn figures_are_those_of_the_page() {
    let overwrite = env::var_os("PUBLISHED").is_some_and(|what| what == "overwrite");
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/src/papers/figures.md");
    let page = Page::new(fs::read_to_string(&path).unwrap());
    let mut answers = Answers::default();
    let row = |(number, figure): (String, Figure)| {
        let known = page.number(&number).filter(|_| figure.long && !overwrite);
        let ours = known.unwrap_or_else(|| figure.find(&mut answers));
        Row::new(figure, number, ours)
    };
    let rows: Vec<Row> = figures::numbered().into_iter().map(row).collect();
    let text = page.with(&rows);
    if overwrite {
        fs::write(&path, &text).unwrap();
    }
    let moved: Vec<String> = rows.iter().filter(|row| !row.is_in_band()).map(Row::moved).collect();
    assert!(moved.is_empty(), "these moved:\n{}", moved.join("\n"));
    let same = |(now, was): &(&str, &str)| now == was;
    let other = text.lines().zip(page.text().lines()).find(|pair| !same(pair));
    assert!(overwrite || text == page.text(), "the page differs (now, page): {other:#?}");
}

/// A page says what it was written from, and nothing else.
#[test]
fn pages_are_read_as_they_are_written() {
    let empty = Page::new(format!("Before.\n\n{}\n{}\n\nAfter.\n", BEGIN, END));
    let ours = [0.0, 0.001_234, 0.5, 1.23, 39.46, 261.54, 1_078.4, 1e6, 12.0];
    let figures = figures::numbered();
    let rows: Vec<Row> =
        figures.into_iter().zip(ours).map(|((number, figure), ours)| Row::new(figure, number, ours)).collect();
    let page = Page::new(empty.with(&rows));
    for row in &rows {
        assert_eq!(page.number(&row.number), Some(row.ours), "{}", row.number);
    }
    assert_eq!(page.with(&rows), page.text());
    assert!(page.text().starts_with("Before.\n\n") && page.text().ends_with("\n\nAfter.\n"));
    assert_eq!(page.number("X1"), None);
}
