//! Where and with what costs were measured, and what is missing of them: what all reports of costs have in common.

use std::io::{self, Write};

use becalm_model::cost::{CostDoc, InstrumentDoc};
use becalm_model::node::Ended;
use becalm_units::CpuId;
use serde::Serialize;

use crate::form::known::system;
use crate::form::paragraph::paragraph;
use crate::form::sheet::Sheet;
use crate::form::value::{picos, three_digits};

/// The fields of every document that say where costs were measured.
#[derive(Serialize)]
pub(super) struct SiteFields<'a> {
    node: &'a str,
    kernel: &'a str,
    hypervisor: Option<&'a str>,
    processor: &'a str,
    cpu: CpuId,
    cpu_reason: &'a str,
    other_cpu: Option<CpuId>,
    class: &'a str,
}

/// The fields that say as well what timed the samples.
#[derive(Serialize)]
pub(super) struct TimedFields<'a> {
    #[serde(flatten)]
    site: SiteFields<'a>,
    counter: &'a str,
    rate_hz: f64,
    rate_error_ratio: f64,
    overhead_ps: i64,
    events_not_counted: &'a [String],
}

pub(super) fn site_fields(doc: &CostDoc) -> SiteFields<'_> {
    SiteFields {
        node: &doc.node,
        kernel: &doc.machine.kernel,
        hypervisor: doc.machine.hypervisor.as_deref(),
        processor: &doc.machine.processor,
        cpu: doc.cpu,
        cpu_reason: &doc.cpu_reason,
        other_cpu: doc.other_cpu,
        class: &doc.sched,
    }
}

pub(super) fn timed_fields<'a>(doc: &'a CostDoc, instrument: &'a InstrumentDoc) -> TimedFields<'a> {
    TimedFields {
        site: site_fields(doc),
        counter: &instrument.counter,
        rate_hz: instrument.rate_hz,
        rate_error_ratio: instrument.rate_error_ratio,
        overhead_ps: instrument.overhead_ps,
        events_not_counted: &instrument.not_counted,
    }
}

/// Prints the machine, and then the CPU and the scheduling class, with `then` behind them.
pub(super) fn site(doc: &CostDoc, then: &str, out: &mut Sheet<'_>) -> io::Result<()> {
    let CostDoc { node, machine, cpu, cpu_reason, sched, .. } = doc;
    let on = machine.hypervisor.as_ref().map_or_else(String::new, |name| format!(", a virtual machine of {name}"));
    paragraph(out, "  ", &format!("{node}: {}{on}", system(&machine.kernel, &machine.processor)))?;
    paragraph(out, "  ", &format!("CPU {cpu} ({cpu_reason}), class {sched}{then}"))?;
    writeln!(out)
}

/// Prints the same, and what timed the samples.
pub(super) fn timed(doc: &CostDoc, instrument: &InstrumentDoc, out: &mut Sheet<'_>) -> io::Result<()> {
    let clock = format!(
        "; timed by {} at {} MHz, known to {}%; the {} of reading it around a sample are taken off",
        instrument.counter,
        three_digits(instrument.rate_hz / 1e6),
        three_digits(instrument.rate_error_ratio * 100.0),
        picos(instrument.overhead_ps),
    );
    site(doc, &clock, out)
}

/// What is to be said of probes after which others were to come; `None` if all came.
pub(super) fn cut_short(doc: &CostDoc) -> Option<&'static str> {
    (doc.ended != Some(Ended::Duration)).then_some("it was interrupted: the probes after these are missing")
}

/// What is to be said of a measurement that did not come to its end, of which `done` of `planned` parts are there; `None` if
/// all are.
pub(super) fn incomplete(doc: &CostDoc, done: usize, planned: usize, parts: &str) -> Option<String> {
    let why = match doc.ended {
        _ if done >= planned => return None,
        Some(Ended::Signal) => "a signal ended it",
        Some(_) => "it ended early",
        None => "it did not end by itself",
    };
    Some(format!("{why}: {done} of {planned} {parts} are there"))
}

#[cfg(test)]
pub(super) mod tests {
    use becalm_model::cost::{Costs, SCHEMA};
    use becalm_model::node::MachineDoc;

    use super::*;

    /// What timed the samples of tests.
    pub fn instrument() -> InstrumentDoc {
        InstrumentDoc {
            counter: "tsc".to_owned(),
            rate_hz: 2.5e9,
            rate_error_ratio: 1e-6,
            overhead_ps: 20_400,
            not_counted: Vec::new(),
        }
    }

    /// The document of a measurement on CPU 3 of node1.
    pub fn doc(measured: Costs) -> CostDoc {
        CostDoc {
            schema: SCHEMA.to_owned(),
            node: "node1".to_owned(),
            program: "becalm".to_owned(),
            begun: "2026-01-01T00:00:00Z".parse().expect("it is an instant"),
            ended: Some(Ended::Duration),
            machine: MachineDoc {
                kernel: "6.1.0".to_owned(),
                processor: "a processor".to_owned(),
                ..MachineDoc::default()
            },
            cpu: CpuId::new(3),
            cpu_reason: "as asked".to_owned(),
            other_cpu: None,
            sched: "other".to_owned(),
            measured,
        }
    }
}
