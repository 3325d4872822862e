//! The abilities of a machine and the commands to run first: `becalm.audit/1`, and the output of `becalm` without a command.

use becalm_model::audit::{Answer, Audit, FirstStep};
use becalm_model::node::Rung;
use becalm_units::CpuList;
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

    fn view(&self, _: Form) -> Page {
        Page {
            title: "What becalm can see here".to_owned(),
            subtitle: self.node.clone(),
            sections: vec![findings(self), first_steps(self)],
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
        Rung::Loop => "loop only: detours, without names",
        Rung::Proc => "loop and /proc: detours, and counters that bound their sources",
        Rung::Tracepoints => "loop and tracepoints: detours, and who took the time",
    }
}

/// The machine, the access level that a recording can reach, and all answers.
fn findings(audit: &Audit) -> Section {
    let node = if audit.node.is_empty() { "a machine whose name is not known" } else { &audit.node };
    let machine = format!("becalm on {node}: {}", system(&audit.kernel, &audit.processor));
    let blocks = vec![
        Block::Lead(machine),
        Block::Lead(ladder(audit.rung()).to_owned()),
        Block::Lines(vec![String::new()]),
        Block::Findings(audit.answers.iter().map(finding).collect()),
    ];
    Section::new("findings", "Findings", "What can be seen here", blocks)
}

/// The availability of an ability: what was seen, the consequence, and the fix.
fn finding(answer: &Answer) -> Finding {
    let mut said = answer.what.clone();
    if !answer.consequence.is_empty() {
        said += &format!("; so {}", answer.consequence);
    }
    if !answer.advice.is_empty() {
        said += &format!(". To change that: {}", answer.advice);
    }
    Finding::from_answer(answer, said)
}

/// The commands to start with.
fn first_steps(audit: &Audit) -> Section {
    let help = FirstStep { command: "becalm --help".to_owned(), why: "everything else".to_owned() };
    let opening =
        if audit.first_steps.is_empty() { Opening::None } else { Opening::Title("To begin with:".to_owned()) };
    let steps = audit.first_steps.iter().cloned().chain([help]).collect();
    Section::new("first-steps", "First steps", "To begin with", vec![Block::Commands(steps)]).opened(opening)
}
