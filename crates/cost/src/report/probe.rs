//! The costs of traps and detours, as text and as `becalm.cost-trap/1` and `becalm.cost-detours/1`.

use becalm_report::form::field::{Object, fields};
use becalm_report::form::figure::Time;
use serde::Serialize;

use crate::analysis::{MeasuredCost, ProbeCost};
use crate::documents::{CostDoc, CostRun, InstrumentDoc, ProbeCosts};
use crate::report::events::{self, ProbeEvent};
use crate::report::header::{TimedFields, cut_short, instrument, timed_fields};
use crate::report::measured::measured;

/// The probes of a report.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Probes {
    /// The probes of `becalm cost trap`.
    Traps,
    /// The probes of `becalm cost detours`.
    Detours,
}

/// The costs of traps or detours.
pub struct ProbeReport<'a> {
    pub(super) probes: Probes,
    pub(super) doc: &'a CostDoc,
    pub(super) instrument: &'a InstrumentDoc,
    pub(super) rows: Vec<ProbeCost>,
}

impl<'a> ProbeReport<'a> {
    /// The report of a stored measurement of probes.
    pub fn new(run: &'a CostRun, costs: &'a ProbeCosts, probes: Probes) -> Self {
        let instrument = instrument(costs.instrument.as_ref());
        Self { probes, doc: &run.doc, instrument, rows: ProbeCost::all(run, costs) }
    }

    pub(super) fn document(&self) -> ProbeDocument<'a> {
        let events = events::rows(costs_by_name(self));
        ProbeDocument {
            header: timed_fields(self.doc, self.instrument),
            incomplete: cut_short(self.doc),
            rows: self.rows.iter().map(Object::new).collect(),
            events: events.iter().map(Object::new).collect(),
        }
    }
}

/// The magnitude in the catalogue of detours of Beckman et al. 2007 (section 2).
pub(super) fn published_ns(name: &str) -> Option<i64> {
    match name {
        "memory" | "tlb_miss" => Some(100),
        "interrupt" | "pte_miss" | "tick" => Some(1_000),
        "fault_minor" | "fault_cow" => Some(10_000),
        "swap_in" | "preemption" => Some(10_000_000),
        _ => None,
    }
}

fields! {
    /// The fields of a row.
    pub(super) ROW, row: ProbeCost {
        NAME = "name", "name", |row| row.probe.name.clone();
        WHAT = "what", "what", |row| row.probe.what.clone();
        MEDIAN_PS = measured!(ProbeCost, MEDIAN_PS);
        MEDIAN_LOW_PS = measured!(ProbeCost, MEDIAN_LOW_PS);
        MEDIAN_HIGH_PS = measured!(ProbeCost, MEDIAN_HIGH_PS);
        MEAN_PS = measured!(ProbeCost, MEAN_PS);
        STDDEV_PS = measured!(ProbeCost, STDDEV_PS);
        MIN_PS = measured!(ProbeCost, MIN_PS);
        P5_PS = measured!(ProbeCost, P5_PS);
        P95_PS = measured!(ProbeCost, P95_PS);
        MAX_PS = measured!(ProbeCost, MAX_PS);
        PROCESSES = measured!(ProbeCost, PROCESSES);
        SAMPLES = measured!(ProbeCost, SAMPLES);
        BATCH = measured!(ProbeCost, BATCH);
        SLOW = measured!(ProbeCost, SLOW);
        INTERRUPTED = measured!(ProbeCost, INTERRUPTED);
        INTERRUPTED_EXCESS_PS = measured!(ProbeCost, INTERRUPTED_EXCESS_PS);
        INTERRUPTS = measured!(ProbeCost, INTERRUPTS);
        PREEMPTED = measured!(ProbeCost, PREEMPTED);
        PUBLISHED_NS = "published_ns", "B07", |row| published_ns(&row.probe.name).map(Time);
        METHOD = "method", "method", |row| row.probe.method.clone();
        NOT_MEASURED = "not_measured", "why not", |row| row.not_measured().map(|why| why.to_owned());
    }
}

fields! {
    /// A column only of tables.
    pub(super) probe_columns: ProbeCost {
        INTERVAL = measured!(ProbeCost, INTERVAL);
    }
}

#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub(crate) struct ProbeDocument<'a> {
    #[serde(flatten)]
    header: TimedFields<'a>,
    incomplete: Option<String>,
    rows: Vec<Object<ProbeCost>>,
    events: Vec<Object<ProbeEvent>>,
}

pub(super) fn costs_by_name<'a>(
    report: &'a ProbeReport<'_>,
) -> impl Iterator<Item = (&'a str, Option<&'a MeasuredCost>)> {
    report.rows.iter().map(|row| (row.probe.name.as_str(), row.measured.as_ref()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::documents::{CostSamples, Costs, Probe, ProbeSamples};
    use crate::report::{CostRunReport, header};
    use becalm_report as report;
    use becalm_report::form::sheet::Form;

    /// The command that measured.
    type Command = fn(ProbeCosts) -> Costs;

    fn run(measured: Command) -> CostRun {
        let rounds: Vec<Vec<i64>> = (0..20).map(|round| vec![1_130 + round, 1_140, 9_000_000]).collect();
        let mut memory = ProbeSamples::new(1, rounds);
        memory.series.interrupts = Some(21);
        let (mut costs, mut samples) = (ProbeCosts::default(), CostSamples::new());
        let probe = |name: &str, outcome| Probe::new(name, &format!("the {name}"), "by hand", outcome);
        costs.add(
            [probe("memory", Ok(memory)), probe("swap_in", Err("this machine has no swap".to_owned()))],
            &mut samples,
        );
        costs.instrument = Some(header::tests::instrument());
        CostRun { doc: header::tests::doc(measured(costs)), samples }
    }

    #[test]
    fn what_is_missing_is_said_and_what_is_there_has_its_method() {
        let text = report::text(&CostRunReport::new(&run(Costs::Detours)), Form::default());
        assert!(text.contains("  the memory    100ns  1.14ns"), "{text}");
        assert!(text.contains("  the swap_in  10.0ms       -"), "{text}");
        assert!(text.contains("! the swap_in: not measured: this machine has no swap"), "{text}");
        assert!(text.contains("- the memory: by hand") && !text.contains("- the swap_in: by hand"), "{text}");
        assert!(text.contains("CPU 3 (requested), class other; timed by tsc at 2500 MHz"), "{text}");
    }

    #[test]
    fn documents_hold_every_field_of_every_row() {
        let commands: [(Command, &str); 2] =
            [(Costs::Trap, "becalm.cost-trap/1"), (Costs::Detours, "becalm.cost-detours/1")];
        for (measured, schema) in commands {
            let run = run(measured);
            let document: serde_json::Value = serde_json::from_str(&report::json(&CostRunReport::new(&run))).unwrap();
            assert_eq!(document["schema"], schema);
            assert_eq!((&document["cpu"], &document["overhead_ps"]), (&3.into(), &20_400.into()));
            let [memory, swap] = document["rows"].as_array().unwrap().as_slice() else { panic!("{document}") };
            assert_eq!((&memory["published_ns"], &memory["interrupts"]), (&100.into(), &21.into()));
            assert_eq!(memory["median_ps"], 1_140);
            assert!(memory["not_measured"].is_null() && swap["median_ps"].is_null());
            assert_eq!(swap["not_measured"], "this machine has no swap");
            assert_eq!(memory.as_object().unwrap().len(), ROW.len());
        }
    }
}
