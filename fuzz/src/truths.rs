//! Properties of every output, whatever was read.

use becalm_report::{Form, Report};
use becalm_units::printable_lines;

/// The maximum size of a page, in bytes: small inputs give small pages.
const LARGEST_PAGE: usize = 16 << 20;

/// Checks the text and the document of a report. Panics if the text contains control characters or a line forged by a foreign name, or the
/// document is not JSON.
pub fn check_report(report: &impl Report) {
    let text = becalm_report::text(report, Form::within(None).with_all(true));
    check_text(&text);
    check_text(&becalm_report::text(report, Form::within(Some(80))));
    // Narrow texts are wrapped, which may put any word at the start of a line.
    assert!(!text.lines().any(|line| line.starts_with("FORGED")), "a name started a line:\n{text}");
    let document: serde_json::Value = serde_json::from_str(&becalm_report::json(report)).expect("a document is JSON");
    assert!(document.get("schema").is_some_and(serde_json::Value::is_string), "a document has no schema");
}

/// Checks the page of a report, if it has one. Panics if the page is damaged, very large, or contains a foreign name as something other
/// than text.
pub fn check_page(report: &impl Report) {
    let Some(page) = report.page("becalm") else { return };
    let mut bytes = Vec::new();
    page.write(&mut bytes).expect("memory takes every page");
    assert!(bytes.len() < LARGEST_PAGE, "a page of {} bytes", bytes.len());
    let page = String::from_utf8(bytes).expect("a page is text");
    assert!(!page.contains("<becalm-fuzz"), "a name became a part of the page");
    assert!(page.trim_end().ends_with("</html>"), "the page does not end");
}

/// Checks lines of text for a terminal or a file. Panics if they contain control characters.
pub fn check_text(text: &str) {
    assert_eq!(printable_lines(text), text, "a text could steer a terminal");
}

/// Prints and parses a value. Panics if the result differs.
pub fn check_reads_back<T>(value: &T)
where
    T: std::fmt::Display + std::str::FromStr + PartialEq + std::fmt::Debug,
    T::Err: std::fmt::Debug,
{
    let text = value.to_string();
    let again = text.parse::<T>().unwrap_or_else(|error| panic!("'{text}' was printed, and is refused: {error:?}"));
    assert_eq!(&again, value, "'{text}' is something else when it is read again");
}
