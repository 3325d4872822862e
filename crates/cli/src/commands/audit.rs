//! The plain `becalm`: what can be seen on this machine, what not and why, and what to run first.

use std::io::Write;
use std::path::Path;

use anyhow::Context;
use becalm_model::audit::{Access, Audit};
use becalm_model::node::Rung;
use becalm_tune::see;
use becalm_units::Named;
use serde_json::json;

use crate::messages;

/// Columns of a line, as on the smallest terminal.
const WIDTH: usize = 100;
/// Where the text of a finding begins.
const INDENT: usize = 24;

/// Looks at this machine and says what it found, as text or as the document `becalm.audit/1`.
///
/// # Errors
/// If the output cannot be written. What cannot be read on the machine is a finding, not an error.
pub fn run(json: bool, out: &mut dyn Write) -> anyhow::Result<()> {
    let audit = see::look(Path::new("/"));
    let written = if json { document(&audit, out) } else { text(&audit, out) };
    written.context("cannot write the audit")
}

fn document(audit: &Audit, out: &mut dyn Write) -> anyhow::Result<()> {
    let document = json!({
        "schema": "becalm.audit/1",
        "node": audit.node,
        "kernel": audit.kernel,
        "processor": audit.processor,
        "rung": audit.rung(),
        "measurable": audit.measurable,
        "isolated": audit.isolated,
        "findings": audit.answers,
        "first_steps": audit.first_steps,
    });
    serde_json::to_writer_pretty(&mut *out, &document)?;
    Ok(writeln!(out)?)
}

const fn ladder(rung: Rung) -> &'static str {
    match rung {
        Rung::Loop => "loop only: detours, without names",
        Rung::Proc => "loop and /proc: detours, and counters that bound their sources",
        Rung::Tracepoints => "loop and tracepoints: detours, and who took the time",
    }
}

fn text(audit: &Audit, out: &mut dyn Write) -> anyhow::Result<()> {
    let page = messages::page_width();
    let width = page.unwrap_or(WIDTH).clamp(INDENT + 20, WIDTH);
    for line in
        becalm_report::wrap(&format!("becalm on {}: Linux {}, {}", audit.node, audit.kernel, audit.processor), width)
    {
        writeln!(out, "{line}")?;
    }
    for line in becalm_report::wrap(ladder(audit.rung()), width) {
        writeln!(out, "{line}")?;
    }
    writeln!(out)?;
    for answer in &audit.answers {
        let mark = match answer.access {
            Access::Available => "yes",
            Access::Limited => "in part",
            Access::Missing => "no",
        };
        let mut said = answer.what.clone();
        if !answer.consequence.is_empty() {
            said += &format!("; so {}", answer.consequence);
        }
        if !answer.advice.is_empty() {
            said += &format!(". To change that: {}", answer.advice);
        }
        let mut head = format!("  {:<12} {mark:<9}", answer.ability.name().replace('_', " "));
        for line in becalm_report::wrap(&said, width - INDENT) {
            writeln!(out, "{head:INDENT$}{line}")?;
            head.clear();
        }
    }
    if !audit.first_steps.is_empty() {
        writeln!(out, "\nTo begin with:")?;
    }
    let steps: Vec<(&str, &str)> =
        audit.first_steps.iter().map(|step| (step.command.as_str(), step.why.as_str())).collect();
    for (command, why) in steps.into_iter().chain([("becalm --help", "everything else")]) {
        let line = format!("  {command:<48}  {why}");
        if page.is_none_or(|page| line.chars().count() <= page) {
            writeln!(out, "{line}")?;
            continue;
        }
        // A command is never cut; what it is for stands below.
        writeln!(out, "  {command}")?;
        for line in becalm_report::wrap(why, width - 6) {
            writeln!(out, "      {line}")?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_document_and_the_text_agree() {
        let mut bytes = Vec::new();
        run(true, &mut bytes).unwrap();
        let document: serde_json::Value = serde_json::from_slice(&bytes).unwrap();
        assert_eq!(document["schema"], "becalm.audit/1");
        let mut bytes = Vec::new();
        run(false, &mut bytes).unwrap();
        let text = String::from_utf8(bytes).unwrap();
        let findings = document["findings"].as_array().unwrap();
        assert!(!findings.is_empty());
        let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        for finding in findings {
            assert!(words(&text).contains(&words(finding["what"].as_str().unwrap())), "{finding}");
        }
        assert!(text.lines().all(|line| line.chars().count() <= WIDTH + 40), "{text}");
    }

    #[test]
    fn wrapping_loses_nothing() {
        assert_eq!(becalm_report::wrap("a bb ccc dddd", 6), ["a bb", "ccc", "dddd"]);
        assert_eq!(becalm_report::wrap("verylongword x", 4), ["verylongword", "x"]);
        assert!(becalm_report::wrap("", 4).is_empty());
    }
}
