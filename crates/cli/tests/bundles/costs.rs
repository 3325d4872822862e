//! Bundles of costs and of a tick campaign, with known contents.

use std::path::Path;

use becalm_bundle::cost::CostWriter;
use becalm_model::cost::tick::{self, Campaign, CampaignPlan, Cell};
use becalm_model::cost::{
    BY_SYSCALL, ClockCosts, ClockWayDoc, CostDoc, CostRun, CostSamples, CountedDoc, CountedPairDoc, CrossDoc,
    InstrumentDoc, Measured, PlaceDoc, Placed, PlacementCosts, PlacementDoc, ProbeCosts, ProbeDoc, ReadBy, SCHEMA,
    SchedulerCosts, SchedulerDoc, SeriesDoc, TicksDoc, TimedDoc,
};
use becalm_model::event_count::EventCount;
use becalm_model::node::{Ended, Machine};
use becalm_units::CpuId;

/// What the processor of these bundles cannot do.
const NOT_COUNTED: &str = "instructions, l1d_read_misses: the processor has too few counters for it";

/// Writes all of them into a folder.
pub fn write_costs(folder: &Path) {
    let write = |name: &str, (measured, samples): (Measured, CostSamples), ended| {
        let doc = CostDoc { ended, ..doc("node1", measured) };
        let path = folder.join(format!("{name}.becalm"));
        CostWriter::create(&path, &doc).unwrap().store(&CostRun { doc, samples }).unwrap();
    };
    let done = Some(Ended::Duration);
    write("trap", traps(), done);
    write("clock", clocks(), done);
    write("catalogue", detours(), done);
    write("scheduler", (Measured::Scheduler(scheduler(3)), CostSamples::new()), done);
    write("interrupted", (Measured::Scheduler(scheduler(2)), CostSamples::new()), Some(Ended::Signal));
    write("placement", (Measured::Placement(placement()), CostSamples::new()), done);
    write("dead", (Measured::Trap(ProbeCosts::default()), CostSamples::new()), None);
    becalm_bundle::cost::tick::create(&campaign(4), &folder.join("tick.becalm")).unwrap();
    let mut half = campaign(2);
    half.cells.truncate(3);
    becalm_bundle::cost::tick::create(&half, &folder.join("begun.becalm")).unwrap();

    let several = folder.join("several.becalm");
    for node in ["node1", "node2"] {
        let (measured, samples) = traps();
        let doc = doc(node, measured);
        CostWriter::create(&several, &doc).unwrap().store(&CostRun { doc, samples }).unwrap();
    }
    let torn = folder.join("torn.becalm");
    let (measured, samples) = traps();
    let doc = doc("node1", measured);
    CostWriter::create(&torn, &doc).unwrap().store(&CostRun { doc, samples }).unwrap();
    let path = torn.join("costs/node=node1/0000.parquet");
    let bytes = std::fs::read(&path).unwrap();
    std::fs::write(&path, &bytes[..bytes.len() / 2]).unwrap();
}

fn machine() -> Machine {
    Machine {
        kernel: "6.12.9".to_owned(),
        processor: "Example CPU at 2.6 GHz".to_owned(),
        hypervisor: Some("kvm".to_owned()),
        architecture: "x86_64".to_owned(),
        online: "0-1".parse().unwrap(),
        ..Machine::default()
    }
}

fn doc(node: &str, measured: Measured) -> CostDoc {
    CostDoc {
        schema: SCHEMA.to_owned(),
        node: node.to_owned(),
        program: "becalm 0.1.0".to_owned(),
        begun: "2026-03-04T05:06:07Z".parse().unwrap(),
        ended: None,
        machine: machine(),
        cpu: CpuId::new(0),
        cpu_reason: "the one with the fewest interrupts since boot".to_owned(),
        other_cpu: Some(CpuId::new(1)),
        sched: "other".to_owned(),
        measured,
    }
}

fn instrument() -> Option<InstrumentDoc> {
    let counter = "tsc".to_owned();
    Some(InstrumentDoc {
        counter,
        rate_hz: 2.6e9,
        rate_error_ratio: 2.5e-7,
        overhead_ps: 20_000,
        not_counted: vec![NOT_COUNTED.to_owned()],
    })
}

/// Twenty rounds of ten samples around a time, a slow one in every fifth round.
fn rounds(around_ps: i64) -> Vec<Vec<i64>> {
    let sample = |round: i64, n: i64| {
        let slow = if round % 5 == 4 && n == 7 { around_ps + 3_000_000 } else { 0 };
        around_ps + (round * 7 + n * 3) % 11 * around_ps / 400 + slow
    };
    (0..20).map(|round| (0..10).map(|n| sample(round, n)).collect()).collect()
}

fn event(event: &str, space: &str, value: u64, [enabled_ns, running_ns]: [i64; 2]) -> EventCount {
    EventCount { event: event.to_owned(), space: space.to_owned(), value, enabled_ns, running_ns }
}

fn series(batch: u32) -> SeriesDoc {
    let count = |space: &str, value| event("cycles", space, value, [4_000_000, 3_000_000]);
    SeriesDoc {
        batch,
        samples: 200,
        interrupts: Some(3),
        preempted: 0,
        interruptions: false,
        counts: vec![count("user", 12_000), count("kernel", 60_000)],
        counted: 50,
    }
}

fn probes(of: &[(&str, &str, i64)], missing: &[(&str, &str, &str)]) -> (ProbeCosts, CostSamples) {
    let mut samples = CostSamples::new();
    let mut costs = ProbeCosts { instrument: instrument(), probes: Vec::new() };
    for (name, what, ps) in of {
        samples.insert((*name).to_owned(), rounds(*ps));
        costs.probes.push(ProbeDoc {
            name: (*name).to_owned(),
            what: (*what).to_owned(),
            method: format!("how {name} is measured"),
            series: Some(series(1)),
            not_measured: None,
        });
    }
    for (name, what, why) in missing {
        costs.probes.push(ProbeDoc {
            name: (*name).to_owned(),
            what: (*what).to_owned(),
            method: String::new(),
            series: None,
            not_measured: Some((*why).to_owned()),
        });
    }
    (costs, samples)
}

fn traps() -> (Measured, CostSamples) {
    let (costs, samples) = probes(
        &[
            ("syscall", "system call: getpid", 100_000),
            ("futex_wake", "futex wake, other CPU: the call", 6_600_000),
            ("futex_wake_runs", "futex wake, other CPU: until it runs", 12_400_000),
        ],
        &[("fault_huge", "minor fault: first write to a huge page", "this kernel has no transparent huge pages")],
    );
    (Measured::Trap(costs), samples)
}

fn detours() -> (Measured, CostSamples) {
    let (costs, samples) = probes(
        &[
            ("cache_l1", "L1 hit, for comparison", 1_180),
            ("memory", "cache miss: all levels, from memory", 155_000),
            ("preemption", "pre-emption by a competitor", 15_800_000_000),
        ],
        &[("swap_in", "swap in", "no swap here")],
    );
    (Measured::Detours(costs), samples)
}

fn clocks() -> (Measured, CostSamples) {
    let way = |name: &str, path, raw: bool| ClockWayDoc {
        name: name.to_owned(),
        path,
        series: series(64),
        by_syscall: raw.then(|| series(64)),
        stated_ns: raw.then_some(1),
        readings: 10_000,
        smallest_step_ps: Some(385),
        median_step_ps: Some(10_000),
        backwards: 0,
        cross: Some(CrossDoc { compared: 1_000, backwards: u64::from(!raw), largest_ps: if raw { 0 } else { 7_000 } }),
    };
    let monotonic = "CLOCK_MONOTONIC";
    let samples = CostSamples::from([
        ("rdtsc".to_owned(), rounds(9_080)),
        (monotonic.to_owned(), rounds(21_300)),
        (format!("{monotonic}{BY_SYSCALL}"), rounds(152_000)),
    ]);
    let clocks = vec![way("rdtsc", ReadBy::Instruction, false), way(monotonic, ReadBy::Vdso, true)];
    (Measured::Clock(ClockCosts { instrument: instrument(), not_counted: None, clocks }), samples)
}

fn scheduler(rows: u32) -> SchedulerCosts {
    let row = |n: u32| SchedulerDoc {
        runnable: 1 << n,
        ticks: Some(TicksDoc {
            interrupts: 500,
            handler_ns: 1_500_000 + i64::from(n) * 100_000,
            handler_max_ns: 30_000,
            switches: 600,
            window_ns: 2_000_000_000,
            lost_events: 0,
        }),
        yields: 1_000_000,
        switches: if n == 0 { 3 } else { 1_000_000 },
        elapsed_ns: 2_000_000_000,
        // The more threads, the more misses.
        counts: vec![
            event("instructions", "user", 2_000_000, [200_000_000; 2]),
            event("instructions", "kernel", 90_000_000, [200_000_000; 2]),
            event("l1d_read_misses", "user", 100_000 << n, [200_000_000; 2]),
            event("l1d_read_misses", "kernel", 400_000 << n, [200_000_000; 2]),
        ],
        counted_yields: 100_000,
    };
    let rows = (0..rows).map(row).collect();
    SchedulerCosts { window_ns: 2_000_000_000, runnable: vec![1, 2, 4], rows, ..SchedulerCosts::default() }
}

/// Interrupts that cost 20 us on the same hardware thread, 5 us on the sibling, and nothing on another core.
fn placement() -> PlacementCosts {
    let places = [(Placed::Same, 0, 20e-6), (Placed::Sibling, 2, 5e-6), (Placed::Other, 1, 0.0)];
    let bodies = ["add", "div"];
    let mut results = Vec::new();
    for round in 0..5_i64 {
        for (place, _, cost) in places {
            for body in bodies {
                let quiet_ns = 250_000_000 + round * 10_000;
                let raised_ns = (quiet_ns as f64 / (1.0 - 10_000.0 * cost)).round() as i64;
                let timed = |elapsed_ns: i64, hz: i64| TimedDoc {
                    elapsed_ns,
                    interrupts: u64::try_from(elapsed_ns / 1_000_000 * hz / 1_000).unwrap(),
                    window_ns: elapsed_ns,
                };
                let (quiet, raised) = (timed(quiet_ns, 250), timed(raised_ns, 10_250));
                // Each interrupt costs the work on its own core 40 misses, and the kernel 900 instructions there.
                let counted = |of: &TimedDoc, misses: u64, instructions: u64| CountedDoc {
                    interrupts: of.interrupts,
                    counts: vec![
                        event("l1d_read_misses", "user", 5_000 + of.interrupts * misses, [of.elapsed_ns; 2]),
                        event("instructions", "kernel", of.interrupts * instructions, [of.elapsed_ns; 2]),
                    ],
                };
                let (misses, instructions) = if place == Placed::Same { (40, 900) } else { (0, 0) };
                let pair = CountedPairDoc {
                    quiet: counted(&quiet, misses, instructions),
                    raised: counted(&raised, misses, instructions),
                };
                results.push(PlacementDoc { place, body: body.to_owned(), quiet, raised, counted: Some(pair) });
            }
        }
    }
    PlacementCosts {
        added_hz: 10_000,
        cell_ns: 250_000_000,
        rounds: 5,
        seed: 1,
        bodies: bodies.map(str::to_owned).to_vec(),
        places: places.map(|(place, cpu, _)| PlaceDoc { place, cpu: CpuId::new(cpu) }).to_vec(),
        missing: Vec::new(),
        not_counted: vec!["llc_read_misses: this machine has no such counter".to_owned()],
        results,
    }
}

/// A campaign whose handler takes 1 us, whose trap takes 100 ns, and whose interrupts take 5 us in all, on a CPU with a
/// tick of 250 Hz.
fn campaign(rounds: u32) -> Campaign {
    let plan = CampaignPlan {
        cpu: CpuId::new(0),
        rates_hz: vec![0, 1_000, 10_000],
        copies: vec![1, 4],
        rounds,
        sched: "rr:1".into(),
        cell_ns: 1_000_000_000,
        seed: 1,
        events: vec!["cycles".into(), "cache_misses".into()],
    };
    let mut cells = Vec::new();
    for round in 0..rounds {
        for added_hz in plan.rates_hz.clone() {
            let rate_hz = f64::from(added_hz + 250);
            let mut push = |measured| cells.push(Cell { round, added_hz, measured });
            for copies in plan.copies.clone() {
                let drift = 1.0 + f64::from(round) * 1e-3;
                let elapsed_ns = (1e9 * drift / (1.0 - rate_hz * 5e-6)).round();
                let interrupts = (elapsed_ns * rate_hz / 1e9).round() as u64;
                let elapsed_ns = elapsed_ns as i64;
                push(tick::Measured::Sorts { copies, sorts: 100, elapsed_ns, interrupts, window_ns: elapsed_ns });
            }
            let interrupts = rate_hz as u64;
            let handler_ns = i64::try_from(interrupts).unwrap() * 1_000;
            push(tick::Measured::Handler { interrupts, handler_ns, window_ns: 1_000_000_000, lost_events: 0 });
            let of = |name: &str, space: &str, value| event(name, space, value, [1_000_000_000, 500_000_000]);
            let counts = vec![
                of("cycles", "user", 1_200_000_000),
                of("cycles", "kernel", interrupts * 9_000),
                of("cache_misses", "user", 40_000 + interrupts * 12),
                of("cache_misses", "kernel", interrupts * 30),
            ];
            push(tick::Measured::Events { sorts: 100, interrupts, window_ns: 1_000_000_000, counts });
        }
        cells.push(Cell { round, added_hz: 0, measured: tick::Measured::Trap { calls: 1, call_ns: 100.0 } });
    }
    Campaign {
        schema: tick::SCHEMA.into(),
        program: "becalm 0.1.0".into(),
        node: "node1".into(),
        machine: machine(),
        plan,
        array_bytes: 512 << 10,
        sorts: 100,
        max_sample_rate_hz: 100_000,
        cpu_time_max_percent: Some(25),
        not_counted: vec![NOT_COUNTED.to_owned()],
        cells,
        warnings: Vec::new(),
    }
}
