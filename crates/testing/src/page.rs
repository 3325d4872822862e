//! Pages in a form for comparison.

use std::collections::BTreeMap;

/// The marked-up contents of a page, followed by a line for each chart.
///
/// # Panics
/// If a part of the page is missing, or two charts have the same name.
#[must_use]
pub fn contents(page: &str) -> String {
    let between = |begin: &str, end: &str| {
        let (_, rest) = page.split_once(begin).expect(begin);
        rest.split_once(end).expect(end).0
    };
    let charts: BTreeMap<String, serde_json::Value> =
        serde_json::from_str(between("id=\"data\">", "</script>")).expect("the charts are JSON");
    assert_eq!(charts.len(), page.matches("class=\"chart\"").count(), "two charts have one name");
    let charts: Vec<String> = charts.iter().map(|(id, chart)| format!("{id}: {chart}")).collect();
    format!("{}\n{}", between("<main id=\"main\">", "</main>").trim(), charts.join("\n"))
}
