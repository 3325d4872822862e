//! What traps and detours cost, for a terminal and as `becalm.cost-trap/1` and `becalm.cost-detours/1`.

use std::io::{self, Write};

use becalm_report::Report;
use becalm_report::form::field::{Object, columns, fields};
use becalm_report::form::figure::Time;
use becalm_report::form::paragraph::paragraph;
use becalm_report::form::sheet::Sheet;
use becalm_report::form::table::Table;
use becalm_report::html::Page;
use serde::Serialize;

use crate::analysis::ProbeCost;
use crate::documents::{CostDoc, CostRun, InstrumentDoc, ProbeCosts};
use crate::report::events::{self, ProbeEvent};
use crate::report::header::{self, TimedFields, cut_short, timed_fields};
use crate::report::measured::measured;
use crate::report::view;

/// Which probes are reported.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Probes {
    /// The probes of `becalm cost trap`.
    Traps,
    /// The probes of `becalm cost detours`.
    Detours,
}

/// What traps or detours cost.
pub struct ProbeReport<'a> {
    pub(super) probes: Probes,
    pub(super) doc: &'a CostDoc,
    pub(super) instrument: InstrumentDoc,
    pub(super) rows: Vec<ProbeCost>,
}

impl<'a> ProbeReport<'a> {
    /// The report of a stored measurement of probes.
    #[must_use]
    pub fn new(run: &'a CostRun, costs: &ProbeCosts, probes: Probes) -> Self {
        let instrument = costs.instrument.clone().unwrap_or_default();
        Self { probes, doc: &run.doc, instrument, rows: ProbeCost::all(run, costs) }
    }
}

/// The order of magnitude that Beckman et al. 2007 give for a row of their catalogue of detours (section 2).
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

impl Report for ProbeReport<'_> {
    fn schema(&self) -> &'static str {
        match self.probes {
            Probes::Traps => "becalm.cost-trap/1",
            Probes::Detours => "becalm.cost-detours/1",
        }
    }

    fn document(&self) -> impl Serialize {
        document(self)
    }

    fn text(&self, out: &mut Sheet<'_>) -> io::Result<()> {
        render(self, out)
    }

    fn page(&self, program: &str) -> Option<Page> {
        Some(view::probe::page(self, program))
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

/// The fields of `becalm.cost-trap/1` or `becalm.cost-detours/1`.
fn document<'a>(report: &'a ProbeReport<'_>) -> ProbeDocument<'a> {
    let events = counted(report);
    ProbeDocument {
        header: timed_fields(report.doc, &report.instrument),
        incomplete: cut_short(report.doc),
        rows: report.rows.iter().map(Object::new).collect(),
        events: events.iter().map(Object::new).collect(),
    }
}

pub(super) fn counted(report: &ProbeReport<'_>) -> Vec<events::ProbeEvent> {
    events::rows(report.rows.iter().map(|row| (row.probe.name.as_str(), row.measured.as_ref())))
}

/// Writes the table, with what could not be measured and how the rest was measured below it.
fn render(report: &ProbeReport<'_>, out: &mut Sheet<'_>) -> io::Result<()> {
    header::timed(report.doc, &report.instrument, out)?;
    let names: &[&str] = match report.probes {
        Probes::Traps => &[
            "what",
            "median_ps",
            "median_low_ps",
            "median_high_ps",
            "mean_ps",
            "stddev_ps",
            "min_ps",
            "p5_ps",
            "p95_ps",
            "samples",
            "slow",
            "interrupted",
        ],
        Probes::Detours => &[
            "what",
            "published_ns",
            "median_ps",
            "median_low_ps",
            "median_high_ps",
            "min_ps",
            "p5_ps",
            "p95_ps",
            "samples",
            "slow",
            "interrupted",
        ],
    };
    let fields = columns(ROW, names);
    let mut table = Table::new(&fields);
    table.keep_names_long();
    report.rows.iter().for_each(|row| table.row(&fields, row));
    table.print(out)?;
    for row in &report.rows {
        if let Some(why) = row.not_measured() {
            paragraph(out, "  ! ", &format!("{}: not measured: {why}", row.probe.what))?;
        }
    }
    not_in_all(report).iter().try_for_each(|text| paragraph(out, "  ! ", text))?;
    events::print_probes(&counted(report), out)?;
    events::not_counted(&report.instrument.not_counted, out)?;
    cut_short(report.doc).iter().try_for_each(|text| paragraph(out, "  ! ", text))?;
    writeln!(out)?;
    for row in report.rows.iter().filter(|row| row.measured.is_some()) {
        paragraph(out, "  - ", &format!("{}: {}", row.probe.what, row.probe.method))?;
    }
    writeln!(out)?;
    explain(report.doc, out)?;
    if report.probes == Probes::Detours {
        paragraph(out, "  ", "B07: the magnitudes that Beckman et al. gave in 2007, on the machines of that time")?;
    }
    Ok(())
}

/// The probes that some processes could not measure, and why.
pub(super) fn not_in_all(report: &ProbeReport<'_>) -> Vec<String> {
    let processes = report.doc.spread.as_ref().map_or(1, |spread| spread.processes.len());
    let said = report.rows.iter().filter_map(|row| {
        let (why, measured) = (row.probe.not_in_all.as_ref()?, row.measured.as_ref()?.cost.processes);
        Some(format!("{}: measured by {measured} of {processes} processes; the others: {why}", row.probe.what))
    });
    said.collect()
}

/// What the columns mean that all cost tables have.
pub(crate) fn explain(doc: &CostDoc, out: &mut Sheet<'_>) -> io::Result<()> {
    let interval = doc.spread.as_ref().map_or_else(String::new, |spread| header::interval(spread) + ". ");
    paragraph(out, "  ", &format!("{interval}{SLOW}"))
}

/// What slow and interrupted samples are.
pub(super) const SLOW: &str = "slow: samples at least 1us beyond the others. interrupted: the slowest of those, as many as the kernel \
                               counted interrupts and pre-emptions; they are in the percentiles and not in the mean";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::documents::{CostSamples, Costs, Probe, ProbeSamples};
    use becalm_report as report;
    use becalm_report::form::sheet::Form;

    fn run() -> CostRun {
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
        CostRun { doc: header::tests::doc(Costs::Detours(costs)), samples }
    }

    fn report(run: &CostRun, probes: Probes) -> ProbeReport<'_> {
        let Costs::Detours(costs) = &run.doc.measured else { panic!("they are detours") };
        ProbeReport::new(run, costs, probes)
    }

    #[test]
    fn what_is_missing_is_said_and_what_is_there_has_its_method() {
        let text = report::text(&report(&run(), Probes::Detours), Form::default());
        assert!(text.contains("  the memory    100ns  1.14ns"), "{text}");
        assert!(text.contains("  the swap_in  10.0ms       -"), "{text}");
        assert!(text.contains("! the swap_in: not measured: this machine has no swap"), "{text}");
        assert!(text.contains("- the memory: by hand") && !text.contains("- the swap_in: by hand"), "{text}");
        assert!(text.contains("CPU 3 (as asked), class other; timed by tsc at 2500 MHz"), "{text}");
    }

    #[test]
    fn documents_hold_every_field_of_every_row() {
        for (probes, schema) in [(Probes::Traps, "becalm.cost-trap/1"), (Probes::Detours, "becalm.cost-detours/1")] {
            let run = run();
            let document: serde_json::Value = serde_json::from_str(&report::json(&report(&run, probes))).unwrap();
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
