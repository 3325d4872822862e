//! What must hold of every output, whatever was read.

use becalm_report::{Form, Report};
use becalm_units::printable_lines;

/// No page is larger, in bytes: what is small in comes out small.
const LARGEST_PAGE: usize = 16 << 20;

/// The text and the document of a report. Panics if the text could steer a terminal or has a line that a foreign name
/// began, or if the document is no JSON.
pub fn check_report(report: &impl Report) {
    let text = becalm_report::text(report, Form::within(None).with_all(true));
    check_text(&text);
    check_text(&becalm_report::text(report, Form::within(Some(80))));
    // Narrow texts are wrapped, which may put any word at the beginning of a line.
    assert!(!text.lines().any(|line| line.starts_with("FORGED")), "a name began a line:\n{text}");
    let document: serde_json::Value = serde_json::from_str(&becalm_report::json(report)).expect("a document is JSON");
    assert!(document.get("schema").is_some_and(serde_json::Value::is_string), "a document has no schema");
}

/// The page of a report, if it has one. Panics if the page is damaged, very large, or holds a foreign name as something
/// else than text.
pub fn check_page(report: &impl Report) {
    let Some(page) = report.page("becalm") else { return };
    let mut bytes = Vec::new();
    page.write(&mut bytes).expect("memory takes every page");
    assert!(bytes.len() < LARGEST_PAGE, "a page of {} bytes", bytes.len());
    let page = String::from_utf8(bytes).expect("a page is text");
    assert!(!page.contains("<becalm-fuzz"), "a name became a part of the page");
    assert!(page.trim_end().ends_with("</html>"), "the page does not end");
}

/// A text of lines for a terminal or a file. Panics if it holds what could steer a terminal.
pub fn check_text(text: &str) {
    assert_eq!(printable_lines(text), text, "a text could steer a terminal");
}

/// Something that is printed and read again. Panics if it is not the same then.
pub fn check_reads_back<T>(value: &T)
where
    T: std::fmt::Display + std::str::FromStr + PartialEq + std::fmt::Debug,
    T::Err: std::fmt::Debug,
{
    let text = value.to_string();
    let again = text.parse::<T>().unwrap_or_else(|error| panic!("'{text}' was printed, and is refused: {error:?}"));
    assert_eq!(&again, value, "'{text}' is something else when it is read again");
}
