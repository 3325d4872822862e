//! What papers have published, found again or not: one table, which is also a page of the book.
//!
//! `PUBLISHED=overwrite cargo test -p becalm-scale --test published` writes the page's tables again, with what takes minutes;
//! `PUBLISHED=short` leaves that as it is. Otherwise `make bench` has it.

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
    let wanted = env::var("PUBLISHED").unwrap_or_default();
    let (overwrite, all) = (["overwrite", "short"].contains(&wanted.as_str()), wanted == "overwrite");
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/src/papers/figures.md");
    let page = Page::new(fs::read_to_string(&path).unwrap());
    let mut answers = Answers::default();
    let row = |(number, figure): (String, Figure)| {
        let known = page.number(&number).filter(|_| figure.long && !all);
        let ours = known.unwrap_or_else(|| figure.find(&mut answers));
        Row::new(figure, number, ours)
    };
    let rows: Vec<Row> = figures::numbered().into_iter().map(row).collect();
    let text = page.filled(&rows);
    if overwrite {
        fs::write(&path, &text).unwrap();
    }
    let moved: Vec<String> = rows.iter().filter(|row| !row.is_in_band()).map(Row::moved).collect();
    assert!(moved.is_empty(), "these moved:\n{}", moved.join("\n"));
    let same = |(now, was): &(&str, &str)| now == was;
    let other = text.lines().zip(page.text().lines()).find(|pair| !same(pair));
    assert!(overwrite || text == page.text(), "the page differs (now, page): {other:#?}");
}

/// B29, the time without noise of the largest alltoall, which is too long to be replayed here: by arithmetic it is what the torus takes. Half
/// of all messages, of two packets each, cross the 2 k^2 links between the halves of k^3 nodes. k is no whole number for 16,384 nodes; the
/// replay rounds it.
#[test]
fn the_largest_alltoall_takes_what_its_links_take() {
    let (processes, nodes): (f64, f64) = (32_768.0, 16_384.0);
    let (message_bytes, link_bytes_a_second) = (64.0, 175e6);
    let crossing = processes * processes / 2.0;
    let links = 2.0 * nodes.powf(2.0 / 3.0);
    let seconds = crossing / links * message_bytes / link_bytes_a_second;
    let page = Page::new(include_str!("../../../../docs/src/papers/figures.md").to_owned());
    let ours = page.number("B29").expect("it is on the page");
    assert!((ours / (seconds * 1e3) - 1.0).abs() < 0.02, "{ours} ms on the page, {} ms by arithmetic", seconds * 1e3);
}

/// A page says what it was written from, and nothing else.
#[test]
fn pages_are_read_as_they_are_written() {
    let empty = Page::new(format!("Before.\n\n{}\n{}\n\nAfter.\n", BEGIN, END));
    let ours = [0.0, 0.001_234, 0.5, 1.23, 39.46, 261.54, 1_078.4, 1e6, 12.0];
    let figures = figures::numbered();
    let rows: Vec<Row> =
        figures.into_iter().zip(ours).map(|((number, figure), ours)| Row::new(figure, number, ours)).collect();
    let page = Page::new(empty.filled(&rows));
    for row in &rows {
        assert_eq!(page.number(&row.number), Some(row.ours), "{}", row.number);
    }
    assert_eq!(page.filled(&rows), page.text());
    assert!(page.text().starts_with("Before.\n\n") && page.text().ends_with("\n\nAfter.\n"));
    assert_eq!(page.number("X1"), None);
}
