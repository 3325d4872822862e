//! The site, the instrument and the gaps of a measurement, for all reports of costs.

use becalm_model::node::Ended;
use becalm_report::form::value::time;
use becalm_units::{CpuId, counted};
use serde::Serialize;

use crate::documents::{CostDoc, InstrumentDoc, SpreadDoc};

/// The minimum number of processes for a 95 % interval.
const FEWEST: usize = 6;

/// The site fields of every document.
#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
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

/// The fields of documents with timed samples.
#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub(super) struct TimedFields<'a> {
    #[serde(flatten)]
    site: SiteFields<'a>,
    counter: &'a str,
    rate_hz: f64,
    rate_error_ratio: f64,
    overhead_ps: i64,
    events_not_counted: &'a [String],
    /// Processes that measured, one after another.
    processes: usize,
    /// Processes that were to measure.
    processes_planned: u32,
    /// Time from the start of the first process to the end of the last; null in measurements that were not spread.
    processes_ns: Option<i64>,
}

/// The instrument of a measurement, or one without figures if the measurement ended earlier.
pub(super) fn instrument(known: Option<&InstrumentDoc>) -> &InstrumentDoc {
    static UNKNOWN: InstrumentDoc = InstrumentDoc {
        counter: String::new(),
        rate_hz: 0.0,
        rate_error_ratio: 0.0,
        overhead_ps: 0,
        not_counted: Vec::new(),
    };
    known.unwrap_or(&UNKNOWN)
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
        processes: doc.spread.as_ref().map_or(1, |spread| spread.processes.len()),
        processes_planned: doc.spread.as_ref().map_or(1, |spread| spread.planned),
        processes_ns: doc.spread.as_ref().map(SpreadDoc::length_ns),
    }
}

/// The gap of a measurement that ended early; `None` if it is complete.
pub(super) fn cut_short(doc: &CostDoc) -> Option<String> {
    if doc.ended == Some(Ended::Duration) {
        return None;
    }
    let Some(SpreadDoc { planned, processes, .. }) = &doc.spread else {
        return Some("it was interrupted: the probes after these are missing".to_owned());
    };
    let first = if processes.len() < 2 { "; probes that it did not reach are missing" } else { "" };
    Some(format!(
        "{}: {} of {} measured{first}",
        ending(doc),
        processes.len(),
        counted((*planned).into(), "process", "processes")
    ))
}

/// Explains the interval of a median over processes.
pub(super) fn interval(spread: &SpreadDoc) -> String {
    let (count, length) = (spread.processes.len(), time(spread.length_ns()));
    let over = counted(count as u64, "process", "processes");
    if count < FEWEST {
        return format!("median: over {over} within {length}; a 95 % CI needs at least {FEWEST}");
    }
    format!(
        "95 % CI: of the median over {over} within {length}, each with its own address space and pages; widened by the drift between \
         their first and second half"
    )
}

/// The gap of a measurement with `done` of `planned` parts; `None` if it is complete.
pub(super) fn incomplete(doc: &CostDoc, done: usize, planned: usize, parts: &str) -> Option<String> {
    (done < planned).then(|| format!("{}: only {done} of {planned} {parts} are complete", ending(doc)))
}

/// The end of an incomplete measurement.
const fn ending(doc: &CostDoc) -> &'static str {
    match doc.ended {
        Some(Ended::Signal) => "a signal ended it",
        Some(_) => "it ended early",
        None => "it did not end by itself",
    }
}

#[cfg(test)]
pub(super) mod tests {
    use crate::documents::{Costs, ProbeCosts, ProcessDoc, SCHEMA};
    use becalm_model::node::MachineDoc;

    use super::*;

    /// A document of so many of eight processes.
    fn spread_doc(processes: i64, ended: Option<Ended>) -> CostDoc {
        let process = |n: i64| ProcessDoc { begun_ns: n * 1_000_000_000, ended_ns: n * 1_000_000_000 + 500_000_000 };
        let spread = SpreadDoc { planned: 8, over_ns: 8_000_000_000, processes: (0..processes).map(process).collect() };
        CostDoc { ended, spread: Some(spread), ..doc(Costs::Trap(ProbeCosts::default())) }
    }

    #[test]
    fn what_an_interval_is_of_is_said() {
        let interval = |processes| super::interval(&spread_doc(processes, Some(Ended::Duration)).spread.unwrap());
        let whole = interval(8);
        assert!(whole.contains("95 % CI: of the median over 8 processes within 7.50s"), "{whole}");
        let few = interval(1);
        assert_eq!(few, "median: over 1 process within 500ms; a 95 % CI needs at least 6");
    }

    #[test]
    fn processes_that_are_missing_are_said() {
        let said = |processes, ended| cut_short(&spread_doc(processes, ended));
        assert_eq!(said(8, Some(Ended::Duration)), None);
        assert_eq!(said(3, Some(Ended::Signal)).unwrap(), "a signal ended it: 3 of 8 processes measured");
        assert_eq!(
            said(1, Some(Ended::Signal)).unwrap(),
            "a signal ended it: 1 of 8 processes measured; probes that it did not reach are missing"
        );
        assert_eq!(said(7, None).unwrap(), "it did not end by itself: 7 of 8 processes measured");
    }

    /// The instrument of tests.
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
            cpu_reason: "requested".to_owned(),
            other_cpu: None,
            sched: "other".to_owned(),
            spread: None,
            measured,
        }
    }
}
