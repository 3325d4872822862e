//! The abilities of a machine and the commands to run first: `becalm.audit/1`, and the output of `becalm` without a command.

use becalm_model::audit::{Answer, Audit, Availability, FirstStep};
use becalm_model::node::Rung;
use becalm_units::{CpuList, counted};
use serde::Serialize;

use crate::form::known::system;
use crate::form::section::{Block, Finding, Opening, Page, Section};
use crate::form::sheet::Form;
use crate::report::Report;

impl Report for Audit {
    fn schema(&self) -> &'static str {
        "becalm.audit/1"
    }

    fn document(&self) -> impl Serialize {
        document(self)
    }

    /// `schema` is among the other keys, in alphabetical order.
    fn named_document(&self) -> impl Serialize {
        document(self)
    }

    fn view(&self, form: Form) -> Page {
        Page {
            title: "What becalm can see here".to_owned(),
            subtitle: self.node.clone(),
            sections: vec![findings(self, form.all()), first_steps(self)],
            foot: Vec::new(),
        }
    }
}

#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub(crate) struct AuditDocument<'a> {
    findings: &'a [Answer],
    first_steps: &'a [FirstStep],
    isolated: &'a CpuList,
    kernel: &'a str,
    measurable: &'a CpuList,
    node: &'a str,
    processor: &'a str,
    rung: Rung,
    schema: &'static str,
}

fn document(audit: &Audit) -> AuditDocument<'_> {
    AuditDocument {
        findings: &audit.answers,
        first_steps: &audit.first_steps,
        isolated: &audit.isolated,
        kernel: &audit.kernel,
        measurable: &audit.measurable,
        node: &audit.node,
        processor: &audit.processor,
        rung: audit.rung(),
        schema: audit.schema(),
    }
}

const fn ladder(rung: Rung) -> &'static str {
    match rung {
        Rung::Loop => "Interruptions can be measured, but their sources cannot be named.",
        Rung::Proc => "Interruptions can be measured. Their sources cannot be named, only counted.",
        Rung::Tracepoints => "Ready: interruptions can be measured and their sources named.",
    }
}

/// The machine, the possible access level of a recording, and what is missing or limited; with `all`, also what is fine.
fn findings(audit: &Audit, all: bool) -> Section {
    let node = if audit.node.is_empty() { "a machine whose name is not known" } else { &audit.node };
    let is_shown = |answer: &&Answer| all || answer.access > Availability::Available;
    let shown: Vec<Finding> = audit.answers.iter().filter(is_shown).map(finding).collect();
    let fine = audit.answers.len() - shown.len();
    let mut blocks = vec![
        Block::Lead(format!("becalm on {node}: {}", system(&audit.kernel, &audit.processor))),
        Block::Lead(ladder(audit.rung()).to_owned()),
        Block::gap(),
        Block::Findings(shown),
    ];
    if fine > 0 {
        let text = format!(
            "{} fine; becalm doctor lists everything",
            counted(fine as u64, "more check is", "more checks are")
        );
        blocks.push(Block::Text(text));
    }
    Section::new("findings", "Findings", "Abilities on this machine", blocks)
}

/// The availability of an ability: what was seen, the consequence, and the fix.
pub(crate) fn finding(answer: &Answer) -> Finding {
    let mut text = answer.what.clone();
    if !answer.consequence.is_empty() {
        text += &format!("; so {}", answer.consequence);
    }
    if !answer.advice.is_empty() {
        text += &format!(". To change that: {}", answer.advice);
    }
    Finding::from_answer(answer, text)
}

/// The commands to start with.
fn first_steps(audit: &Audit) -> Section {
    let help = FirstStep { command: "becalm help".to_owned(), why: "all commands".to_owned() };
    let opening = if audit.first_steps.is_empty() { Opening::Gap } else { Opening::Title("Start here".to_owned()) };
    let steps = audit.first_steps.iter().cloned().chain([help]).collect();
    Section::new("first-steps", "First steps", "Start here", vec![Block::Commands(steps)]).opened(opening)
}
