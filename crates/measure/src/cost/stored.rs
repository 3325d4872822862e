//! What was measured, as it is stored in a bundle.

use becalm_bundle::{CostSamples, node_name};
use becalm_linux::procfs::kernel;
use becalm_linux::sched::Policy;
use becalm_model::cost::{
    BY_SYSCALL, ClockCosts, ClockWayDoc, CostDoc, CountedDoc, CountedPairDoc, CrossDoc, InstrumentDoc, Measured,
    PlaceDoc, Placed, PlacementDoc, ProbeCosts, ProbeDoc, ReadBy, SCHEMA, SchedulerDoc, SeriesDoc, TicksDoc, TimedDoc,
};

use super::Place;
use super::bench::{Instrument, Probed, Series};
use super::clock::{ClockRow, Clocks, Counting, Path};
use super::placement::{Place as Placement, PlacementRound, Places};
use super::probe::Probe;
use super::scheduler::SchedulerCost;
use super::tick::Timed;
use super::tick::events::CountedWork;
use crate::loops::event_count;
use crate::machine;

/// The document of a measurement at a place, before anything is measured. `policy` is the class of what is measured.
#[must_use]
pub fn document(place: &Place, policy: Policy, measured: Measured) -> CostDoc {
    let root = place.root();
    CostDoc {
        schema: SCHEMA.to_owned(),
        node: node_name(&kernel::hostname(root).unwrap_or_else(|_| "localhost".to_owned())),
        program: concat!("becalm ", env!("CARGO_PKG_VERSION")).to_owned(),
        begun: jiff::Timestamp::now(),
        ended: None,
        machine: machine::describe(root),
        cpu: place.cpu,
        cpu_reason: place.reason.text().to_owned(),
        other_cpu: place.other(),
        sched: policy.to_string(),
        measured,
    }
}

/// What timed the samples.
#[must_use]
pub fn instrument(of: Instrument) -> InstrumentDoc {
    InstrumentDoc {
        counter: of.counter.to_owned(),
        rate_hz: of.rate_hz,
        rate_error_ratio: of.rate_error_ratio,
        overhead_ps: of.overhead_ps,
        not_counted: of.not_counted,
    }
}

/// A series, its samples apart; nothing of no samples.
fn series(of: Series) -> Option<(SeriesDoc, Vec<Vec<i64>>)> {
    let samples: usize = of.rounds.iter().map(Vec::len).sum();
    let doc = SeriesDoc {
        batch: of.batch,
        samples: samples as u64,
        interrupts: of.interrupts,
        preempted: of.preempted,
        interruptions: false,
        counts: of.counts.iter().map(event_count).collect(),
        counted: of.counted,
    };
    // A round without samples says nothing, and could not be told from one that is missing.
    let rounds = of.rounds.into_iter().filter(|round| !round.is_empty()).collect();
    (samples > 0).then_some((doc, rounds))
}

/// What probes gave: their document, and their samples.
#[must_use]
pub fn probes(probed: Probed<Vec<Probe>>) -> (ProbeCosts, CostSamples) {
    let mut costs = ProbeCosts { instrument: Some(instrument(probed.instrument)), probes: Vec::new() };
    let mut samples = CostSamples::new();
    for Probe { name, what, method, outcome } in probed.result {
        let outcome = outcome.and_then(|of| series(of).ok_or_else(|| "the probe gave no sample".to_owned()));
        let (series, not_measured) = match outcome {
            Ok((series, rounds)) => {
                samples.insert(name.to_owned(), rounds);
                (Some(series), None)
            }
            Err(why) => (None, Some(why)),
        };
        costs.probes.push(ProbeDoc { name: name.to_owned(), what: what.to_owned(), method, series, not_measured });
    }
    (costs, samples)
}

/// What the ways to read the time gave: their document, and their samples.
#[must_use]
pub fn clocks(probed: Probed<Clocks>) -> (ClockCosts, CostSamples) {
    let mut samples = CostSamples::new();
    let mut way = |row: ClockRow| {
        let (cost, rounds) = series(row.cost)?;
        samples.insert(row.name.clone(), rounds);
        let by_syscall = row.raw.and_then(series).map(|(series, rounds)| {
            samples.insert(format!("{}{BY_SYSCALL}", row.name), rounds);
            series
        });
        Some(ClockWayDoc {
            name: row.name,
            path: match row.path {
                Path::Instruction => ReadBy::Instruction,
                Path::Vdso => ReadBy::Vdso,
                Path::SystemCall => ReadBy::Syscall,
            },
            series: cost,
            by_syscall,
            stated_ns: row.stated_ns,
            readings: row.steps.readings,
            smallest_step_ps: row.steps.smallest_ps,
            median_step_ps: row.steps.median_ps,
            backwards: row.steps.backwards,
            cross: row.cross.map(|cross| CrossDoc {
                compared: cross.compared,
                backwards: cross.backwards,
                largest_ps: cross.largest_ps,
            }),
        })
    };
    let costs = ClockCosts {
        instrument: Some(instrument(probed.instrument)),
        not_counted: match probed.result.counting {
            Counting::Counted => None,
            Counting::Timed(why) => Some(why),
        },
        clocks: probed.result.rows.into_iter().filter_map(&mut way).collect(),
    };
    (costs, samples)
}

/// A number of runnable threads.
#[must_use]
pub fn scheduler(cost: &SchedulerCost) -> SchedulerDoc {
    SchedulerDoc {
        runnable: cost.runnable,
        ticks: cost.ticks.map(|ticks| TicksDoc {
            interrupts: ticks.interrupts,
            handler_ns: ticks.handler.get(),
            handler_max_ns: ticks.handler_max.get(),
            switches: ticks.switches,
            window_ns: ticks.window.get(),
            lost_events: ticks.lost_events,
        }),
        yields: cost.yields,
        switches: cost.switches,
        elapsed_ns: cost.elapsed.get(),
        counts: cost.counted.as_ref().map_or_else(Vec::new, |counted| counted.counts.clone()),
        counted_yields: cost.counted.as_ref().map_or(0, |counted| counted.yields),
    }
}

const fn placed(place: Placement) -> Placed {
    match place {
        Placement::Same => Placed::Same,
        Placement::Sibling => Placed::Sibling,
        Placement::Other => Placed::Other,
    }
}

/// Where work runs.
#[must_use]
pub fn places(places: Places) -> Vec<PlaceDoc> {
    places.iter().map(|(place, cpu)| PlaceDoc { place: placed(place), cpu }).collect()
}

/// A quiet and a raised measurement. Times below the clock's step count as one nanosecond.
#[must_use]
pub fn placement(round: &PlacementRound) -> PlacementDoc {
    let timed = |timed: Timed| TimedDoc {
        elapsed_ns: timed.elapsed.get().max(1),
        interrupts: timed.interrupts,
        window_ns: timed.window.get().max(1),
    };
    let counted = |of: &CountedWork| CountedDoc { interrupts: of.interrupts, counts: of.counts.clone() };
    PlacementDoc {
        place: placed(round.place),
        body: round.body.to_string(),
        quiet: timed(round.quiet),
        raised: timed(round.raised),
        counted: round
            .counted
            .as_ref()
            .map(|[quiet, raised]| CountedPairDoc { quiet: counted(quiet), raised: counted(raised) }),
    }
}
