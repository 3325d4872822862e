//! The costs of reading the time, as text and as `becalm.cost-clock/1`.

use becalm_report::form::field::{Object, fields};
use becalm_report::form::figure::{Picos, Share, Time};
use serde::Serialize;

use crate::analysis::{ClockCost, MeasuredCost};
use crate::documents::{ClockCosts, CostDoc, CostRun, InstrumentDoc, StepDoc, SuccessiveDoc};
use crate::report::events::{self, ProbeEvent};
use crate::report::header::{TimedFields, cut_short, instrument, timed_fields};
use crate::report::measured::measured;

/// The cost of every way to read the time.
pub struct ClockReport<'a> {
    pub(super) doc: &'a CostDoc,
    pub(super) costs: &'a ClockCosts,
    pub(super) instrument: &'a InstrumentDoc,
    pub(super) rows: Vec<ClockCost>,
}

impl<'a> ClockReport<'a> {
    /// The report of a stored measurement of clocks.
    pub fn new(run: &'a CostRun, costs: &'a ClockCosts) -> Self {
        let instrument = instrument(costs.instrument.as_ref());
        Self { doc: &run.doc, costs, instrument, rows: ClockCost::all(run, costs) }
    }

    pub(super) fn document(&self) -> ClockDocument<'a> {
        let events = events::rows(costs_by_name(self));
        ClockDocument {
            header: timed_fields(self.doc, self.instrument),
            path_found_by: if self.costs.not_counted.is_none() { "tracepoint" } else { "time" },
            not_counted: self.costs.not_counted.as_deref(),
            incomplete: cut_short(self.doc),
            rows: self.rows.iter().map(Object::new).collect(),
            events: events.iter().map(Object::new).collect(),
            successive: self.costs.successive.as_ref().map(|found| SuccessivePart {
                readings: found.readings,
                tick_ps: found.tick_ps,
                distinct: found.distinct,
                max_ticks: found.max_ticks,
                backwards: found.backwards,
                steps: steps(found).iter().map(Object::new).collect(),
            }),
        }
    }
}

fields! {
    /// The fields of a row.
    pub(super) ROW, row: ClockCost {
        NAME = "name", "clock", |row| row.way.name.clone();
        PATH = "path", "read by", |row| row.way.path.name();
        MEDIAN_PS = measured!(ClockCost, MEDIAN_PS);
        MEDIAN_LOW_PS = measured!(ClockCost, MEDIAN_LOW_PS);
        MEDIAN_HIGH_PS = measured!(ClockCost, MEDIAN_HIGH_PS);
        MEAN_PS = measured!(ClockCost, MEAN_PS);
        STDDEV_PS = measured!(ClockCost, STDDEV_PS);
        MIN_PS = measured!(ClockCost, MIN_PS);
        P5_PS = measured!(ClockCost, P5_PS);
        P95_PS = measured!(ClockCost, P95_PS);
        MAX_PS = measured!(ClockCost, MAX_PS);
        PROCESSES = measured!(ClockCost, PROCESSES);
        SAMPLES = measured!(ClockCost, SAMPLES);
        BATCH = measured!(ClockCost, BATCH);
        SLOW = measured!(ClockCost, SLOW);
        INTERRUPTED = measured!(ClockCost, INTERRUPTED);
        INTERRUPTS = measured!(ClockCost, INTERRUPTS);
        SYSCALL_MEDIAN_PS = measured!(ClockCost, MEDIAN_PS of by_syscall, "syscall_median_ps", "by syscall");
        SYSCALL_LOW_PS = measured!(ClockCost, MEDIAN_LOW_PS of by_syscall, "syscall_low_ps", "low");
        SYSCALL_HIGH_PS = measured!(ClockCost, MEDIAN_HIGH_PS of by_syscall, "syscall_high_ps", "high");
        SYSCALL_MIN_PS = measured!(ClockCost, MIN_PS of by_syscall, "syscall_min_ps", "min");
        SYSCALL_P5_PS = measured!(ClockCost, P5_PS of by_syscall, "syscall_p5_ps", "p5");
        SYSCALL_P95_PS = measured!(ClockCost, P95_PS of by_syscall, "syscall_p95_ps", "p95");
        SYSCALL_INTERRUPTED = measured!(ClockCost, INTERRUPTED of by_syscall, "syscall_interrupted", "interrupted");
        STATED_RESOLUTION_NS = "stated_resolution_ns", "stated",
            |row| row.way.stated_ns.map(|ns| Time(i64::try_from(ns).unwrap_or(i64::MAX)));
        SMALLEST_STEP_PS = "smallest_step_ps", "step", |row| row.way.smallest_step_ps.map(Picos);
        MEDIAN_STEP_PS = "median_step_ps", "median step", |row| row.way.median_step_ps.map(Picos);
        READINGS = "readings", "readings", |row| row.way.readings;
        BACKWARDS = "backwards", "backwards", |row| row.way.backwards;
        CROSS_COMPARED = "cross_compared", "compared", |row| row.way.cross.map(|cross| cross.compared);
        CROSS_BACKWARDS = "cross_backwards", "across CPUs", |row| row.way.cross.map(|cross| cross.backwards);
        CROSS_LARGEST_PS = "cross_largest_ps", "by up to", |row| row.way.cross.map(|cross| cross.largest_ps).map(Picos);
    }
}

fields! {
    /// A column only of tables.
    pub(super) clock_columns: ClockCost {
        INTERVAL = measured!(ClockCost, INTERVAL);
    }
}

/// Steps of one length between successive readings, with the total of all.
pub(super) struct SuccessiveStep {
    pub(super) step: StepDoc,
    pub(super) all: u64,
    tick_ps: i64,
}

fields! {
    /// The fields of such a step.
    pub(super) STEP, step: SuccessiveStep {
        TICKS = "ticks", "ticks", |row| row.step.ticks;
        STEP_PS = "step_ps", "step", |row| Picos(i64::try_from(row.step.ticks).unwrap_or(i64::MAX).saturating_mul(row.tick_ps));
        COUNT = "count", "count", |row| row.step.count;
        SHARE_RATIO = "share_ratio", "of all", |row| Share(row.step.count as f64 / row.all.max(1) as f64);
        RUNS = "runs", "runs", |row| row.step.runs;
        LONGEST_RUN = "longest_run", "longest run", |row| row.step.longest_run;
    }
}

pub(super) fn steps(found: &SuccessiveDoc) -> Vec<SuccessiveStep> {
    let all = found.readings.saturating_sub(1 + found.backwards);
    found.steps.iter().map(|step| SuccessiveStep { step: *step, all, tick_ps: found.tick_ps }).collect()
}

#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
struct SuccessivePart {
    readings: u64,
    tick_ps: i64,
    distinct: u64,
    max_ticks: u64,
    backwards: u64,
    steps: Vec<Object<SuccessiveStep>>,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub(crate) struct ClockDocument<'a> {
    #[serde(flatten)]
    header: TimedFields<'a>,
    path_found_by: &'static str,
    not_counted: Option<&'a str>,
    incomplete: Option<String>,
    rows: Vec<Object<ClockCost>>,
    events: Vec<Object<ProbeEvent>>,
    /// Readings of the counter back to back.
    successive: Option<SuccessivePart>,
}

pub(super) fn costs_by_name<'a>(
    report: &'a ClockReport<'_>,
) -> impl Iterator<Item = (&'a str, Option<&'a MeasuredCost>)> {
    report.rows.iter().map(|row| (row.way.name.as_str(), row.measured.as_ref()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::documents::{BY_SYSCALL, ClockWayDoc, Costs, CrossDoc, ProbeSamples, ReadBy};
    use crate::report::{CostRunReport, header};
    use becalm_report as report;
    use becalm_report::form::sheet::Form;

    fn run(not_counted: Option<String>) -> CostRun {
        let samples = |ps| ProbeSamples::new(64, vec![vec![ps; 3]; 20]);
        let (own, raw) = (samples(21_300), samples(180_000));
        let way = ClockWayDoc {
            name: "CLOCK_MONOTONIC".to_owned(),
            path: ReadBy::Vdso,
            series: own.series,
            by_syscall: Some(raw.series),
            stated_ns: Some(1),
            readings: 10_000,
            smallest_step_ps: Some(1_000),
            median_step_ps: None,
            backwards: 0,
            cross: Some(CrossDoc { compared: 1_000, backwards: 2, largest_ps: 7_000 }),
        };
        let samples =
            [("CLOCK_MONOTONIC".to_owned(), own.rounds), (format!("CLOCK_MONOTONIC{BY_SYSCALL}"), raw.rounds)];
        let costs = ClockCosts {
            instrument: Some(header::tests::instrument()),
            not_counted,
            clocks: vec![way],
            successive: None,
        };
        CostRun { doc: header::tests::doc(Costs::Clock(costs)), samples: samples.into() }
    }

    #[test]
    fn how_it_was_found_is_said() {
        for (why, in_text, in_json) in
            [(None, "the kernel counted", "tracepoint"), (Some("no tracefs"), "by its time", "time")]
        {
            let run = run(why.map(str::to_owned));
            let report = CostRunReport::new(&run);
            let text = report::text(&report, Form::default());
            assert!(text.contains(in_text), "{text}");
            assert!(text.contains("CLOCK_MONOTONIC  vdso     21.3ns  21.3ns to 21.3ns  21.3ns"), "{text}");
            assert!(text.contains("2 were smaller, by up to 7.00ns"), "{text}");
            let document: serde_json::Value = serde_json::from_str(&report::json(&report)).unwrap();
            assert_eq!(
                (&document["schema"], &document["path_found_by"]),
                (&"becalm.cost-clock/1".into(), &in_json.into())
            );
            let row = &document["rows"][0];
            assert_eq!((&row["syscall_median_ps"], &row["stated_resolution_ns"]), (&180_000.into(), &1.into()));
            assert!(row["median_step_ps"].is_null() && row["interrupts"].is_null());
            assert_eq!(row.as_object().unwrap().len(), ROW.len());
        }
    }
}
