//! JUnit XML for Jenkins, GitLab and others: the elements and attributes of Jenkins' `junit-10.xsd`.

use std::fmt::Write;

use becalm_analyze::limits::{Answer, Limit, LimitCheck};
use becalm_units::printable;

use super::{CheckReport, words};

/// A test case for each limit on each CPU.
pub(super) fn document(report: &CheckReport<'_>) -> String {
    let counts = report.counts();
    let tests = report.rows.len();
    let seconds = |ns: Option<i64>| format!("{:.3}", ns.unwrap_or(0) as f64 / 1e9);
    let longest = seconds(report.rows.iter().filter_map(|row| row.duration_ns).max());
    let when = report.summary.nodes.iter().filter_map(|node| node.doc.origin).min();
    let when = when.map(|origin| format!(" timestamp=\"{}\"", origin.strftime("%Y-%m-%dT%H:%M:%S")));
    let mut xml = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    let totals = format!("tests=\"{tests}\" failures=\"{}\" errors=\"0\"", counts.exceeded);
    // Writing to a string cannot fail.
    let _ = writeln!(xml, "<testsuites name=\"becalm check\" {totals} time=\"{longest}\">");
    let _ = writeln!(
        xml,
        "  <testsuite name=\"becalm check\" {totals} skipped=\"{}\" time=\"{longest}\"{}>",
        counts.not_enough_data,
        when.unwrap_or_default()
    );
    for row in report.rows {
        let class = if report.has_nodes() { format!("becalm.{}", row.node) } else { "becalm".to_owned() };
        let _ = write!(
            xml,
            "    <testcase name=\"{}\" classname=\"{}\" time=\"{}\"",
            escaped(&name(row)),
            escaped(&class),
            seconds(row.duration_ns)
        );
        let text = escaped(&words::sentence(row));
        let _ = match row.answer {
            Answer::Holds => writeln!(xml, ">\n      <system-out>{text}</system-out>\n    </testcase>"),
            Answer::Exceeded => {
                writeln!(
                    xml,
                    ">\n      <failure message=\"{text}\" type=\"exceeded\">{text}</failure>\n    </testcase>"
                )
            }
            Answer::NotEnoughData(_) => {
                writeln!(xml, ">\n      <skipped message=\"{text}\" type=\"not_enough_data\"/>\n    </testcase>")
            }
        };
    }
    let warnings = report.warnings().collect::<Vec<_>>();
    if !warnings.is_empty() {
        let lines = warnings.iter().map(|text| escaped(text)).collect::<Vec<_>>().join("\n");
        let _ = writeln!(xml, "    <system-err>{lines}</system-err>");
    }
    xml + "  </testsuite>\n</testsuites>\n"
}

/// The name of a test. It contains no figures, so CI systems recognize it in later runs.
fn name(row: &LimitCheck) -> String {
    match row.limit {
        Limit::Noise(most) => format!("CPU {} loses at most {} of its time", row.cpu, words::percent(most)),
        Limit::Detour(most) => format!("CPU {} loses at most {most} at once", row.cpu),
    }
}

/// A text for an attribute or an element. Characters that XML cannot contain are replaced.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in printable(text).chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\u{fffe}' | '\u{ffff}' => escaped.push(char::REPLACEMENT_CHARACTER),
            c => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_others_are_text() {
        assert_eq!(
            escaped("a<b>&\"c\"\u{0}\u{ffff}]]>\n"),
            "a&lt;b&gt;&amp;&quot;c&quot;\u{fffd}\u{fffd}]]&gt;\u{fffd}"
        );
    }
}
