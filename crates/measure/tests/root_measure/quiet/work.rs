//! Work is what it claims to be, on an optimized build: no body is left out by the compiler, the calibration meets its
//! grain, and what is planted beside the work is found in its samples. What measures on one CPU while another makes noise
//! needs root and two CPUs.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use becalm_analyze::work::{MainBody, SourceTimes, WorkSamples, subtract, tones};
use becalm_linux::clock::{Anchor, Calibration, Native};
use becalm_linux::sched::{Policy, allowed_cpus, pin_current_thread, set_policy};
use becalm_measure::loops::sampling::{Stop, fixed_work};
use becalm_measure::work::{Body, Work, calibrate, third_decile_mean};
use becalm_measure::{LoopTask, RecordPlan, WorkPlan};
use becalm_model::node::{Fixed, NodeDoc};
use becalm_model::{Activity, Kind};
use becalm_record::{MemoryStore, Session};
use becalm_testing::{Need, attempts, machine_has};
use becalm_units::{CpuId, Nanos, TickRate};

use super::AHEAD_OF_PROGRAMS;
use crate::makers::{Maker, burn_until, now};

fn last_cpu() -> CpuId {
    allowed_cpus().expect("the kernel tells where we may run").iter().last().expect("we run somewhere")
}

fn pin_ahead_of_programs() {
    pin_current_thread(last_cpu()).expect("a test can be pinned");
    set_policy(AHEAD_OF_PROGRAMS).expect("root can take a real-time priority");
}

fn rate() -> TickRate {
    let start = Anchor::take::<Native>();
    std::thread::sleep(Duration::from_millis(100));
    Calibration::from_anchors::<Native>(&start, &Anchor::take::<Native>()).expect("the counter runs").rate
}

/// The durations of some samples, in ticks.
fn durations(work: &mut Work, iterations: u64, samples: u64) -> Vec<u64> {
    let mut durations = Vec::with_capacity(samples as usize);
    let mut keep = |before: u64, after: u64, _| {
        durations.push(after - before);
        true
    };
    fixed_work::<Native>(work, iterations, 0, Stop { samples, deadline: u64::MAX }, &mut keep);
    durations
}

/// The shortest sample of each amount of work. What takes the CPU away only makes samples longer, and the amounts take turns,
/// so that the processor runs at one speed for all of them.
fn shortest<const N: usize>(work: &mut Work, iterations: [u64; N], rounds: usize) -> [u64; N] {
    let mut shortest = [u64::MAX; N];
    for _ in 0..rounds {
        for (shortest, iterations) in shortest.iter_mut().zip(iterations) {
            *shortest = durations(work, iterations, 2).into_iter().fold(*shortest, u64::min);
        }
    }
    shortest
}

#[test]
fn no_body_is_optimized_away() {
    if !machine_has(&[Need::Root]) {
        return;
    }
    pin_ahead_of_programs();
    let rate = rate();
    for body in Body::ALL {
        let mut work = Work::new(*body, Path::new("/"), last_cpu()).expect("this architecture has them");
        attempts(2, || {
            let found = calibrate::<Native>(&mut work, Nanos::from_micros(200), rate);
            // Three times the work takes three times the time.
            let [once, thrice] = shortest(&mut work, [found.iterations, 3 * found.iterations], 40);
            let ratio = thrice as f64 / once as f64;
            let each = once as f64 * rate.tick_ns() / found.iterations as f64;
            let said = format!("{body}: {each:.3} ns an iteration, three times as many take {ratio:.3} times as long");
            eprintln!("{said}");
            // Nothing that does something takes less than a tenth of a nanosecond.
            if (2.7..3.3).contains(&ratio) && each > 0.1 { Ok(()) } else { Err(said) }
        });
    }
}

/// Calibrating and measuring take turns, and the median of the rounds counts: neither a round in which the hypervisor took
/// the CPU away nor one between two speeds of the processor decides.
#[test]
fn the_calibration_meets_the_grain() {
    if !machine_has(&[Need::Root]) {
        return;
    }
    pin_ahead_of_programs();
    let rate = rate();
    for (body, grain) in [
        (Body::Empty, Nanos::from_millis(1)),
        (Body::Add, Nanos::from_micros(100)),
        (Body::Div, Nanos::from_millis(1)),
        (Body::Lcg, Nanos::from_millis(5)),
    ] {
        let mut work = Work::new(body, Path::new("/"), last_cpu()).expect("this architecture has them");
        attempts(2, || {
            let mut off: Vec<f64> = (0..5)
                .map(|_| {
                    let found = calibrate::<Native>(&mut work, grain, rate);
                    let third = third_decile_mean(&mut durations(&mut work, found.iterations, 50)).unwrap_or(0.0);
                    third * rate.tick_ns() / grain.get() as f64 - 1.0
                })
                .collect();
            off.sort_by(f64::total_cmp);
            let median = off[off.len() / 2];
            let said = format!("{body} of {grain}: off by {:.2} % at the median of {off:.4?}", median * 100.0);
            eprintln!("{said}");
            if median.abs() < 0.02 { Ok(()) } else { Err(said) }
        });
    }
}

/// What the recording warns of.
fn warnings_of(node: &NodeDoc) -> String {
    node.warnings.iter().map(|warning| format!("warning {}: {}\n", warning.code, warning.message)).collect()
}

/// Records `seconds` of samples of 1 ms.
fn samples(cpu: CpuId, fixed: Fixed, seconds: u64) -> WorkSamples {
    let mut plan = RecordPlan::new();
    plan.cpus = Some([cpu].into_iter().collect());
    (plan.duration, plan.policy) = (None, AHEAD_OF_PROGRAMS);
    let grain = Nanos::from_millis(1);
    plan.task = LoopTask::Work(WorkPlan {
        body: Body::Lcg,
        bodies: std::collections::BTreeMap::new(),
        grain,
        fixed,
        samples: Some(seconds * 1_000),
        maiv: None,
        copies: 1,
        added_hz: 0,
        counters: Vec::new(),
        iterations: std::collections::BTreeMap::new(),
    });
    let session = Session::begin(Path::new("/"), false).expect("signals can be blocked");
    let recorded = session
        .record(plan, MemoryStore::default(), &mut |_| {})
        .unwrap_or_else(|failure| panic!("the recording failed: {}", failure.error));
    eprintln!("{}", warnings_of(&recorded.node));
    let memory = recorded.store;
    let lane = &memory.lanes[0];
    let steps: Vec<(i64, i64)> =
        lane.steps.iter().map(|step| (step.start.get(), (step.end - step.start).get())).collect();
    assert_eq!(steps.len() as u64, seconds * 1_000, "every sample that was asked for");
    assert!(steps.windows(2).all(|pair| (pair[0].0 + pair[0].1 - pair[1].0).abs() <= 1), "end to end");
    let calibrated = recorded.node.settings.work.expect("the document tells of the work").loops[0];
    let mut cost: Vec<f64> = steps.iter().zip(&lane.work).map(|((_, ns), work)| *ns as f64 / *work as f64).collect();
    cost.sort_by(f64::total_cmp);
    let cost = cost[cost.len() / 2];
    let values = steps.iter().zip(&lane.work).map(|((_, ns), work)| match fixed {
        Fixed::Work => *ns,
        Fixed::Time => grain.get() + ns - (*work as f64 * cost).round() as i64,
    });
    let values = values.collect();
    let mut sources: Vec<SourceTimes> = Vec::new();
    let ours = |row: &&Activity| matches!(row.kind, Kind::Edge | Kind::Unseen | Kind::Fault);
    for row in lane.activities.iter().filter(|row| !ours(row)) {
        let (kind, source) = (row.kind, memory.labels.text(row.source));
        let time = (row.detour as usize, row.self_time.get());
        match sources.iter_mut().find(|known| known.kind == kind && known.source == source) {
            Some(known) => known.times.push(time),
            None => sources.push(SourceTimes { kind, source: source.to_owned(), times: vec![time] }),
        }
    }
    WorkSamples {
        cpu,
        body: "lcg".to_owned(),
        fixed,
        grain_ns: grain.get(),
        iterations: calibrated.iterations,
        calibrated_ns: calibrated.calibrated_ns.get(),
        others_iterations: 0,
        starts: steps.iter().map(|(start, _)| *start).collect(),
        durations: steps.iter().map(|(_, ns)| *ns).collect(),
        work: lane.work.clone(),
        values,
        incomplete: 0,
        sources,
    }
}

/// How long a planted source takes each time.
const BURST: Nanos = Nanos::from_micros(300);

/// A real-time thread that burns 300 us at a fixed rate.
fn planted(cpu: CpuId, hz: u32) -> Maker<u64> {
    let rate = rate();
    let (burst, interval) = (rate.ticks_in(BURST).get(), (rate.hz() / f64::from(hz)) as u64);
    Maker::start("planted", cpu, move |stop: &AtomicBool| {
        set_policy(Policy::Fifo(50)).expect("root can take a real-time priority");
        let (mut bursts, mut next) = (0, now().get());
        while !stop.load(Ordering::Relaxed) {
            burn_until(now().get() + burst);
            bursts += 1;
            next += interval;
            let ahead = next.saturating_sub(now().get());
            std::thread::sleep(Duration::from_secs_f64(ahead as f64 / rate.hz()));
        }
        bursts
    })
}

#[test]
fn planted_sources_are_found_in_the_spectrum_and_subtracted() {
    if !machine_has(&[Need::Root, Need::TwoCpus]) {
        return;
    }
    let cpu = last_cpu();
    let cases = [(Fixed::Work, 100, 2), (Fixed::Work, 10, 8), (Fixed::Time, 100, 2), (Fixed::Time, 10, 8)];
    for (fixed, hz, seconds) in cases {
        attempts(3, || {
            let maker = planted(cpu, hz);
            let samples = samples(cpu, fixed, seconds);
            let bursts = maker.stop();
            let body = MainBody::from_values(&samples.values);
            let found = tones(&samples, &body).expect("there are enough samples").tones;
            let hit = found.iter().find(|tone| (tone.hz / f64::from(hz) - 1.0).abs() < 0.01);
            let named = hit.is_some_and(|tone| tone.source.as_deref() == Some("planted"));
            let source = samples.sources.iter().find(|source| source.source == "planted");
            let Some(source) = source else {
                let seen: Vec<&str> = samples.sources.iter().map(|source| source.source.as_str()).collect();
                return Err(format!("{bursts} bursts have no name beside {seen:?}"));
            };
            // Not what else ran in the same samples.
            let all = subtract(&samples, &body);
            let alone: Vec<i64> = source
                .times
                .iter()
                .map(|(number, _)| *number)
                .collect::<std::collections::BTreeSet<_>>()
                .into_iter()
                .map(|number| samples.values[number])
                .collect();
            let slow = body.outside(&alone).1 as f64 / alone.len() as f64;
            let Some(step) = all.last() else { return Err("nothing was subtracted".to_owned()) };
            let mut left = samples.values.clone();
            samples.sources.iter().flat_map(|source| &source.times).for_each(|(number, ns)| left[*number] -= ns);
            let touched: std::collections::BTreeSet<usize> = source.times.iter().map(|(number, _)| *number).collect();
            let spread = f64::max((body.high_ns - body.middle_ns) as f64, 30_000.0);
            // Against the samples around it that were not hit, as the processor's speed may change within seconds; and how often that
            // holds of those.
            let is_like_neighbors = |number: usize| {
                let around = number.saturating_sub(8)..(number + 9).min(left.len());
                let mut near: Vec<i64> =
                    around.filter(|at| *at != number && !touched.contains(at)).map(|at| left[at]).collect();
                near.sort_unstable();
                near.get(near.len() / 2).is_some_and(|middle| ((left[number] - middle) as f64).abs() <= spread)
            };
            let share = |numbers: &[usize]| {
                numbers.iter().filter(|number| is_like_neighbors(**number)).count() as f64 / numbers.len().max(1) as f64
            };
            let hits: Vec<usize> = touched.iter().copied().collect();
            let others: Vec<usize> = (0..left.len()).filter(|number| !touched.contains(number)).collect();
            let (back, usual) = (share(&hits), share(&others));
            let text = format!(
                "fixed {} beside {hz} Hz: found {:?} Hz; of {} samples hit {:.0} % were slow, and {:.0} % are like those around them (give or take {:.1} us) after the subtraction, as are {:.0} % of the others; {} slowies left",
                fixed.name(),
                found.iter().map(|tone| ((tone.hz * 10.0).round() / 10.0, tone.source.as_deref())).collect::<Vec<_>>(),
                touched.len(),
                slow * 100.0,
                back * 100.0,
                spread / 1e3,
                usual * 100.0,
                step.left.slowies,
            );
            eprintln!("{text}");
            // On a busy host samples without a burst may differ by more than a burst takes; then none is slow.
            let visible = body.high_ns - body.middle_ns < BURST.get() / 2;
            if named && (slow > 0.9 || !visible) && usual > 0.3 && back > 0.9 * usual { Ok(()) } else { Err(text) }
        });
    }
}
