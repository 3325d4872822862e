//! What can be seen on a machine and what to run first: `becalm.audit/1`, and as the text of the plain `becalm`.

use std::io::{self, Write};

use becalm_model::audit::{Answer, Audit, Availability, FirstStep};
use becalm_model::node::Rung;
use becalm_units::{CpuList, Named, printable};
use serde::Serialize;

use crate::form::known::system;
use crate::form::paragraph::{heading, wrap};
use crate::form::sheet::Sheet;
use crate::report::Report;

/// How wide lines may become, in characters.
const WIDTH: usize = 100;
/// Where the text of an answer begins.
const INDENT: usize = 24;
/// The fewest characters that the text of an answer gets, also on a page that is narrower.
const ROOM: usize = 20;
/// Where that begins which a command is for, if it stands below the command.
const BELOW: usize = 6;

impl Report for Audit {
    fn schema(&self) -> &'static str {
        "becalm.audit/1"
    }

    fn document(&self) -> impl Serialize {
        document(self)
    }

    /// Its name stands among its other keys, in the order of the alphabet.
    fn named_document(&self) -> impl Serialize {
        document(self)
    }

    fn text(&self, out: &mut Sheet<'_>) -> io::Result<()> {
        render(self, out)
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

/// The machine, how far up the ladder it lets a recording go, every answer, and the commands to begin with.
fn render(audit: &Audit, out: &mut Sheet<'_>) -> io::Result<()> {
    let width = out.width().clamp(INDENT + ROOM, WIDTH);
    let node = if audit.node.is_empty() { "a machine whose name is not known" } else { &audit.node };
    let machine = format!("becalm on {node}: {}", system(&audit.kernel, &audit.processor));
    for line in wrap(&machine, width).iter().chain(&wrap(ladder(audit.rung()), width)) {
        writeln!(out, "{line}")?;
    }
    writeln!(out)?;
    for answer in &audit.answers {
        print_answer(answer, width, out)?;
    }
    if !audit.first_steps.is_empty() {
        heading(out, "To begin with:")?;
    }
    let steps = audit.first_steps.iter().map(|step| (step.command.as_str(), step.why.as_str()));
    for (command, why) in steps.chain([("becalm --help", "everything else")]) {
        print_step(command, why, width, out)?;
    }
    Ok(())
}

/// How well an ability can be had, beside what was seen, what follows, and what can be done.
fn print_answer(answer: &Answer, width: usize, out: &mut Sheet<'_>) -> io::Result<()> {
    let mark = match answer.access {
        Availability::Available => "yes",
        Availability::Limited => "in part",
        Availability::Missing => "no",
    };
    let mut said = answer.what.clone();
    if !answer.consequence.is_empty() {
        said += &format!("; so {}", answer.consequence);
    }
    if !answer.advice.is_empty() {
        said += &format!(". To change that: {}", answer.advice);
    }
    for (at, line) in wrap(&said, width - INDENT).iter().enumerate() {
        if at == 0 {
            write!(out, "  {:<12}", answer.ability.name().replace('_', " "))?;
            out.mark(&format!(" {mark:<9}"))?;
            writeln!(out, "{line}")?;
        } else {
            writeln!(out, "{:INDENT$}{line}", "")?;
        }
    }
    Ok(())
}

/// A command and what it is for. A command is never cut: on a narrow page, what it is for stands below.
fn print_step(command: &str, why: &str, width: usize, out: &mut Sheet<'_>) -> io::Result<()> {
    let (command, why) = (printable(command), printable(why));
    let line = format!("  {command:<48}  {why}");
    if line.chars().count() <= out.width() {
        return writeln!(out, "{line}");
    }
    writeln!(out, "  {command}")?;
    wrap(&why, width - BELOW).iter().try_for_each(|line| writeln!(out, "{:BELOW$}{line}", ""))
}
