//! The cost of a tick on the running kernel. Needs root, and two CPUs: the last online CPU is measured.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use becalm_bundle::node_document;
use becalm_cost::analysis::tick::CampaignAnalysis;
use becalm_cost::documents::CountedPairDoc;
use becalm_cost::documents::tick::{Campaign, CampaignPlan};
use becalm_cost::measure::placement::{self, PlacementPlan, WorkPlaces};
use becalm_cost::measure::scheduler::{self, SchedulerPlan, TraceUse};
use becalm_cost::measure::tick::campaign::{CampaignEnd, begin, go_on};
use becalm_cost::measure::tick::{record_timer, timer_interrupts};
use becalm_linux::janitor::Janitor;
use becalm_linux::perf::{CpuClock, PerfEvent};
use becalm_linux::sched::{Policy, allowed_cpus};
use becalm_linux::signals::StopSignals;
use becalm_measure::work::Body;
use becalm_model::event_count::CountedIn;
use becalm_testing::{Need, attempts, machine_has};
use becalm_units::{CpuId, Named, Nanos};

const ROOT: &str = "/";

/// The CPU to measure, where the machine allows it.
fn cpu() -> Option<CpuId> {
    if !machine_has(&[Need::Root, Need::TwoCpus]) {
        return None;
    }
    allowed_cpus().expect("the kernel tells where we may run").iter().last()
}

#[test]
fn the_raised_rate_is_counted_and_recorded_alike() {
    let Some(cpu) = cpu() else { return };
    let root = Path::new(ROOT);
    let rate = |seconds: f64, count: u64| count as f64 / seconds;
    let window = Duration::from_secs(1);
    // A host that takes the CPU away holds up interrupts, which then come once instead of several times.
    attempts(3, || {
        let clock = CpuClock::start(cpu, 5_000).unwrap();
        let (counted, record) = record_timer(root, cpu, None, || {
            let (start, before) = (Instant::now(), timer_interrupts(root, cpu)?);
            std::thread::sleep(window);
            let after = timer_interrupts(root, cpu)?;
            Ok(rate(start.elapsed().as_secs_f64(), after - before))
        })
        .unwrap();
        let ran = clock.stop().unwrap();
        let recorded = rate(Nanos::new(record.window_ns).as_secs_f64(), record.interrupts);
        let mean_ns = record.handler_ns as f64 / record.interrupts.max(1) as f64;
        eprintln!("asked for 5000/s: counted {counted:.0}/s, recorded {recorded:.0}/s, mean handler {mean_ns:.0} ns");
        assert!(ran >= Nanos::from_millis(900), "{ran}");
        assert_eq!(record.lost_events, 0);
        assert!(record.handler_max_ns < 100_000_000 && record.handler_ns > 0);
        assert!((recorded / counted - 1.0).abs() < 0.02, "{recorded} recorded, {counted} counted");
        if (4_500.0..7_000.0).contains(&counted) { Ok(()) } else { Err(format!("{counted} a second")) }
    });
}

/// The fit of the line that is asked for. On a quiet machine it is above 0.99. Where a hypervisor gives the CPU to others at times, the best of
/// three campaigns in a row had 0.87, as cells of 150 ms take a third more or less then.
const R2: f64 = 0.8;

/// How far the recorded direct part of a rate may be from what the model says: on a quiet machine it is within 15 %, and where the handlers' mean
/// was taken in another second of a hypervisor's doings, up to 38 % were seen.
const OFF: f64 = 0.5;

#[test]
fn the_linear_model_explains_the_rates_and_the_direct_part_agrees_with_the_record() {
    let Some(cpu) = cpu() else { return };
    let signals = StopSignals::block().unwrap();
    // Others compete for the machine while tests run, so of a few short campaigns one must do.
    let mut seed = 0;
    attempts(5, || {
        seed += 1;
        let plan = CampaignPlan {
            cpu,
            rates_hz: vec![0, 10_000, 20_000, 40_000],
            copies: vec![1, 2],
            processes: true,
            // More than a campaign needs on an idle machine: the median of each rate is over them.
            rounds: 5,
            // So that what else runs on this machine does not take the CPU.
            sched: "rr:1".to_owned(),
            cell_ns: 150_000_000,
            seed,
            // The kernel counts it, on machines without counters too.
            events: vec![PerfEvent::TaskClock.name().to_owned()],
        };
        let mut campaign = begin(Path::new(ROOT), plan).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tick.becalm");
        node_document::create(&path, &campaign).unwrap();
        let mut store = |campaign: &Campaign| Ok(node_document::replace(&path, campaign)?);
        let end = go_on(&mut campaign, Path::new(ROOT), &unguarded(), &signals, &mut store, &mut |_| {}).unwrap();
        assert_eq!(end, CampaignEnd::Complete);
        assert_eq!(campaign.cells.len(), campaign.cells_planned());
        assert_eq!(node_document::load::<Campaign>(&path, None).unwrap().doc, campaign);
        let live = CampaignAnalysis::new(&campaign).map_err(|error| error.to_string())?;
        assert_eq!(live.events.len(), 4, "an event at each rate: {:?}", campaign.not_counted);
        assert!(live.events.iter().all(|row| row.rate.user > Some(0.0)), "{:?}", live.events);
        // A host that takes the CPU keeps the timer below its rate.
        if let Some(row) = live.events.iter().find(|row| row.rate_hz < f64::from(row.added_hz) * 0.9) {
            return Err(format!("{:.0} interrupts per second instead of {}", row.rate_hz, row.added_hz));
        }
        let line = live.rounds.analysis.line;
        let off = live.handlers.iter().filter(|row| row.added_hz >= 5_000);
        let off = off.map(|row| (row.recorded_ratio / row.model_ratio - 1.0).abs()).fold(0.0, f64::max);
        let said = format!(
            "seed {seed}: {:.3} % per 1,000 interrupts by the line, R2 {:?}; trap {:.0} ns, handler {:.0} ns, record {:.1} % off",
            line.sum_percent,
            line.r2_ratio,
            live.direct.trap_ns,
            live.direct.handler_ns,
            off * 100.0
        );
        eprintln!("{said}");
        // The direct part cannot be more than all of it.
        let direct = live.rounds.analysis.trap_percent + live.rounds.analysis.handler_percent;
        let explained = line.r2_ratio.is_some_and(|r2| r2 > R2) && off < OFF && line.sum_percent > direct * 0.7;
        if explained { Ok(()) } else { Err(said) }
    });
}

/// Why there is no guard process here.
fn unguarded() -> Result<Arc<Janitor>, String> {
    Err("tests run in threads".to_owned())
}

#[test]
fn a_campaign_that_is_interrupted_goes_on_where_it_was() {
    let Some(cpu) = cpu() else { return };
    let signals = StopSignals::block().unwrap();
    let plan = CampaignPlan {
        cpu,
        rates_hz: vec![0, 2_000],
        copies: vec![1],
        processes: true,
        rounds: 2,
        sched: "other".to_owned(),
        cell_ns: 20_000_000,
        seed: 3,
        events: Vec::new(),
    };
    let mut campaign = begin(Path::new(ROOT), plan).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tick.becalm");
    node_document::create(&path, &campaign).unwrap();
    // Storing fails after the fourth cell, as on a full disk.
    let mut stored = 0;
    let mut store = |campaign: &Campaign| {
        stored += 1;
        let gone = folder.path().join("gone");
        Ok(node_document::replace(if stored <= 4 { &path } else { &gone }, campaign)?)
    };
    let failed = go_on(&mut campaign, Path::new(ROOT), &unguarded(), &signals, &mut store, &mut |_| {});
    assert!(failed.unwrap_err().to_string().contains("gone"));
    let mut resumed = node_document::load::<Campaign>(&path, None).unwrap().doc;
    assert_eq!(resumed.cells.len(), 4);
    let before = resumed.cells.clone();
    let mut progress = Vec::new();
    let mut store = |campaign: &Campaign| Ok(node_document::replace(&path, campaign)?);
    go_on(&mut resumed, Path::new(ROOT), &unguarded(), &signals, &mut store, &mut |at| progress.push(at.done)).unwrap();
    assert_eq!(progress, (4..resumed.cells_planned()).collect::<Vec<_>>());
    assert_eq!(resumed.cells[..4], before);
    // Both parts had no guard process.
    assert_eq!(resumed.warnings.iter().filter(|warning| warning.contains("tests run in threads")).count(), 1);
    let stored = node_document::load::<Campaign>(&path, None).unwrap().doc;
    assert_eq!(stored.cells.len(), resumed.cells_planned());
}

fn names(events: &[PerfEvent]) -> Vec<String> {
    events.iter().map(|event| event.name().to_owned()).collect()
}

#[test]
fn what_interrupts_add_is_counted_beside_the_work_at_each_place() {
    let Some(cpu) = cpu() else { return };
    let places = WorkPlaces::find(Path::new(ROOT), cpu, &allowed_cpus().unwrap()).unwrap();
    let plan = PlacementPlan {
        places,
        unbound: None,
        bodies: vec![Body::Add],
        policy: Policy::RoundRobin(1),
        added_hz: 5_000,
        cell: Nanos::from_millis(500),
        rounds: 1,
        seed: 1,
        events: names(&[PerfEvent::TaskClock]),
    };
    let mut rounds = Vec::new();
    placement::measure(Path::new(ROOT), &plan, &mut |_| true, &mut |round| {
        rounds.push(round);
        Ok(())
    })
    .unwrap();
    assert_eq!(rounds.len(), places.iter().count());
    for round in rounds {
        let CountedPairDoc { quiet, raised } = round.counted.expect("events were asked for");
        // A tenth of the work, under thousands of interrupts a second and without.
        assert!(raised.interrupts > 2 * quiet.interrupts, "{} and {}", raised.interrupts, quiet.interrupts);
        for counts in [&quiet.counts, &raised.counts] {
            assert!(
                counts.iter().any(|count| count.event == "task_clock_ns" && count.value >= 20_000_000),
                "{counts:?}"
            );
        }
    }
}

#[test]
fn more_runnable_threads_make_longer_waits_not_fewer_ticks() {
    let Some(cpu) = cpu() else { return };
    for runnable in [1, 16] {
        let window = Nanos::from_millis(500);
        let events = names(&[PerfEvent::TaskClock, PerfEvent::ContextSwitches]);
        let plan = SchedulerPlan { cpu, processes: true, window, events };
        let cost = scheduler::measure(Path::new(ROOT), &plan, runnable, &TraceUse::On(None)).unwrap();
        let switched =
            cost.counts.iter().find(|count| count.event == "context_switches" && count.space == CountedIn::Kernel);
        // Nearly every call gives the CPU to another one.
        let each = switched.map_or(0.0, |count| count.value as f64 / cost.counted_yields.max(1) as f64);
        assert!(runnable == 1 || (0.2..1.1).contains(&each), "{each} of {} calls", cost.counted_yields);
        let ticks = cost.ticks.expect("tracing is on");
        let tick_ns = ticks.handler_ns as f64 / ticks.interrupts.max(1) as f64;
        let switch_ns = cost.elapsed_ns as f64 / cost.switches.max(1) as f64;
        eprintln!(
            "{runnable} runnable: {} ticks of {tick_ns:.0} ns, a switch every {switch_ns:.0} ns",
            ticks.interrupts
        );
        assert!(ticks.interrupts > 20, "{}", ticks.interrupts);
        assert!((100.0..1_000_000.0).contains(&tick_ns), "{tick_ns}");
        if runnable > 1 {
            assert!(cost.switches > 1_000 && (100.0..1_000_000.0).contains(&switch_ns), "{switch_ns}");
        }
    }
}
