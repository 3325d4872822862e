//! SARIF 2.1.0, the format of findings that code hosts show: a result for each exceeded limit. A limit without enough data is not a result but a
//! notification of the run.

use becalm_analyze::limits::{Answer, Limit, LimitCheck};
use becalm_units::printable;
use serde_json::{Value, json};

use super::{CheckReport, words};

const SCHEMA: &str = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json";

/// The rules, in the order of their indices.
const RULES: [(&str, &str, &str); 2] = [
    (
        "max-noise",
        "A CPU loses a larger share of its time than is allowed",
        "becalm report RUN --sources ranks what took the time, and becalm tune audit says what removes it.",
    ),
    (
        "max-detour",
        "A CPU loses more time at once than is allowed",
        "becalm detours RUN --longest 10 shows what happened in the longest detours, and becalm tune audit says what removes it.",
    ),
];

const fn rule(row: &LimitCheck) -> usize {
    match row.limit {
        Limit::Noise(_) => 0,
        Limit::Detour(_) => 1,
    }
}

/// The whole file.
pub(super) fn document(report: &CheckReport<'_>, program: &str) -> String {
    let (name, version) = program.split_once(' ').unwrap_or((program, ""));
    let rules: Vec<Value> = RULES
        .iter()
        .map(|(id, short, help)| {
            json!({
                "id": id,
                "shortDescription": { "text": short },
                "help": { "text": help },
                "defaultConfiguration": { "level": "error" },
            })
        })
        .collect();
    let exceeded = report.rows.iter().filter(|row| row.answer == Answer::Exceeded);
    let lacking = report.rows.iter().filter(|row| matches!(row.answer, Answer::NotEnoughData(_)));
    let notifications: Vec<Value> = lacking
        .map(|row| json!({ "level": "warning", "message": { "text": said(report, row) }, "descriptor": { "id": "not-enough-data" } }))
        .chain(report.warnings().map(|text| {
            json!({ "level": "note", "message": { "text": printable(&text) }, "descriptor": { "id": "warning" } })
        }))
        .collect();
    let document = json!({
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": {
                "name": name,
                "version": version,
                "rules": rules,
                "notifications": [
                    { "id": "not-enough-data", "shortDescription": { "text": "The recording does not say whether a limit holds" } },
                    { "id": "warning", "shortDescription": { "text": "A warning of the recording that bears on the answers" } },
                ],
            } },
            "invocations": [{ "executionSuccessful": true, "toolExecutionNotifications": notifications }],
            "results": exceeded.map(|row| result(report, row)).collect::<Vec<_>>(),
        }],
    });
    let text = serde_json::to_string_pretty(&document).expect("the keys are texts and numbers are finite or null");
    text + "\n"
}

fn said(report: &CheckReport<'_>, row: &LimitCheck) -> String {
    let node = if report.has_nodes() { format!("{}: ", row.node) } else { String::new() };
    printable(&format!("{node}{}", words::sentence(row))).into_owned()
}

fn result(report: &CheckReport<'_>, row: &LimitCheck) -> Value {
    let (id, ..) = RULES[rule(row)];
    let place = report.place(row);
    json!({
        "ruleId": id,
        "ruleIndex": rule(row),
        "kind": "fail",
        "level": "error",
        "message": { "text": said(report, row) },
        // Code hosts ignore findings without a file, so it is the recording.
        "locations": [{
            "physicalLocation": { "artifactLocation": { "uri": uri(&report.summary.path.to_string_lossy()) } },
            "logicalLocations": [{ "name": printable(&place), "kind": "resource" }],
        }],
        // Identifies the finding in later runs, on any machine.
        "partialFingerprints": { "becalmLimit/v1": format!("{id}, {}", printable(&place)) },
    })
}

/// A path as a URI reference (RFC 3986).
fn uri(path: &str) -> String {
    let mut uri = String::new();
    for byte in path.bytes() {
        if byte.is_ascii_alphanumeric() || b"/._-~".contains(&byte) {
            uri.push(byte.into());
        } else {
            uri += &format!("%{byte:02X}");
        }
    }
    uri
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_references() {
        assert_eq!(uri("a b/c:1%.becalm"), "a%20b/c%3A1%25.becalm");
        assert_eq!(uri("n\u{e4}chtlich"), "n%C3%A4chtlich");
    }
}
