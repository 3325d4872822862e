//! Injected noise is found, each detour of it, with its length and its name. Needs root and two CPUs.

// A test says what it has measured.
#![allow(clippy::print_stderr)]

mod recording;

use std::path::Path;
use std::time::{Duration, Instant};

use becalm_inject::{Delivered, Injection, Plan as InjectPlan};
use becalm_linux::clock::Source;
use becalm_linux::procfs::kernel::rt_throttling;
use becalm_linux::sched::{Policy, allowed_cpus};
use becalm_measure::Plan;
use becalm_scale::NoiseTrace;
use becalm_scale::spec::NoiseSpec;
use becalm_trace::{Detour, Kind};
use becalm_units::{CpuId, Nanos};
use recording::{Recorded, possible, recorded};

fn last_cpu() -> CpuId {
    let allowed = allowed_cpus().expect("the kernel tells where we may run");
    allowed.iter().last().expect("we run somewhere")
}

fn trace(spec: &str) -> NoiseTrace {
    spec.parse::<NoiseSpec>().unwrap().trace(1).unwrap()
}

fn plan(cpus: Vec<(CpuId, NoiseTrace)>, synchronized: bool) -> InjectPlan {
    InjectPlan { cpus, synchronized, seed: 1, node: 0, policy: Policy::Fifo(51), exact: true, log: 1 << 16 }
}

fn start(plan: &InjectPlan) -> Injection {
    let throttling = rt_throttling(Path::new("/")).ok();
    Injection::start(plan, Source::Native, throttling).unwrap_or_else(|error| panic!("{error}"))
}

/// Records a CPU while noise is injected there.
fn injected(cpu: CpuId, spec: &str, seconds: i64) -> (Recorded, Delivered) {
    injected_trace(cpu, trace(spec), seconds)
}

fn injected_trace(cpu: CpuId, trace: NoiseTrace, seconds: i64) -> (Recorded, Delivered) {
    // Random detours meet; a recording's may have been cut.
    let injection = start(&InjectPlan { exact: trace.len() == 1, ..plan(vec![(cpu, trace)], false) });
    let mut plan = Plan::new();
    plan.cpus = Some([cpu].into_iter().collect());
    plan.duration = Some(Nanos::from_secs(seconds));
    let run = recorded(plan);
    let delivered = injection.stop().unwrap().remove(0);
    (run, delivered)
}

/// A hypervisor that takes the CPU away, or another thread of the kernel's, spoils a figure that is right: the best of some
/// attempts counts. What must never fail is asserted within.
fn best_of(attempts: usize, mut attempt: impl FnMut() -> Result<(), String>) {
    let mut failures = Vec::new();
    for _ in 0..attempts {
        match attempt() {
            Ok(()) => return,
            Err(failure) => {
                eprintln!("once more: {failure}");
                failures.push(failure);
            }
        }
    }
    panic!("{attempts} attempts failed: {}", failures.join("; "));
}

fn check(holds: bool, why: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(why()) }
}

/// The recorded detours that bear the injector's name, each once.
fn bearing(run: &Recorded, cpu: CpuId) -> Vec<Detour> {
    let (index, _) = run.cpu(cpu);
    let mut numbers: Vec<u64> = run.of(cpu, Kind::Task, "becalm-inject").iter().map(|row| row.detour).collect();
    numbers.dedup();
    numbers.into_iter().map(|number| run.memory.detours[index][number as usize]).collect()
}

/// Every injected detour lies in one that was recorded, of its length, and nothing else bears its name.
#[test]
fn every_injected_detour_is_found_with_its_length_and_name() {
    if !possible("every_injected_detour_is_found_with_its_length_and_name") {
        return;
    }
    let cpu = last_cpu();
    // The shortest that can be made here, where that is longer than 20 us.
    let short = shortest(cpu).max(Nanos::from_micros(20));
    for spec in [
        format!("periodic:interval=5ms,detour={short}"),
        "periodic:interval=5ms,detour=50us,jitter=1ms".to_owned(),
        "poisson:rate=100Hz,detour=200us".to_owned(),
    ] {
        best_of(4, || found(cpu, &spec, 4));
    }
}

/// The shortest detour, with room for what the cost of one varies by.
fn shortest(cpu: CpuId) -> Nanos {
    let injection = start(&plan(vec![(cpu, trace("periodic:interval=100ms,detour=10ms"))], false));
    let toll = injection.stop().unwrap().remove(0).toll;
    eprintln!("to take CPU {cpu} and give it back takes {}", toll.shortest());
    Nanos::new(toll.shortest().get() * 5 / 4)
}

fn found(cpu: CpuId, spec: &str, seconds: i64) -> Result<(), String> {
    let (run, delivered) = injected(cpu, spec, seconds);
    let (axis, (index, doc)) = (run.axis(), run.cpu(cpu));
    let detours = &run.memory.detours[index];
    let begin = doc.start_ns + Nanos::from_millis(1);
    let end = doc.start_ns + doc.duration_ns - Nanos::from_millis(1);
    let (mut within, mut exact) = (0, 0);
    let mut off = Vec::new();
    let mut holding = Vec::new();
    for injected in &delivered.log {
        let (first, last) = (axis.instant(injected.burned.0), axis.instant(injected.burned.1));
        if first < begin || last > end {
            continue;
        }
        within += 1;
        let before = detours.partition_point(|detour| detour.start <= first).checked_sub(1);
        let found = before.map(|before| detours[before]);
        let found = found.filter(|found| found.start + found.duration + doc.t_min_ns >= last);
        let found = found.unwrap_or_else(|| panic!("{spec}: the detour from {first} to {last} was not found"));
        holding.push(found);
        let difference = (found.duration - injected.asked).get();
        off.push(difference);
        // Other noise that meets it makes it longer.
        exact += u32::from(difference.abs() <= (injected.asked.get() / 20).max(3_000));
    }
    off.sort_unstable();
    let named = bearing(&run, cpu);
    let tally = &delivered.tally;
    let delivered_ratio = tally.delivered.sum_ns() / tally.due.sum_ns();
    eprintln!(
        "{spec}: {within} detours, all found; {exact} of them within 5 % or 3 us, by {} ns at the median; {} bear the name; \
         {delivered_ratio:.4} of what was due; toll {:?}; late by {} at the median, {} at the 99th percentile; {} missed, {} \
         joined",
        off[off.len() / 2],
        named.len(),
        delivered.toll,
        tally.late(0.5).unwrap(),
        tally.late(0.99).unwrap(),
        tally.missed,
        tally.joined,
    );
    // Where another thread kept the CPU for long, one recorded detour may hold several.
    holding.dedup();
    let unnamed = holding.iter().filter(|found| !named.contains(found)).count();
    assert_eq!(unnamed, 0, "{spec}: so many of {within} do not bear the name");
    // Those at either end of the recording may be there or not; one that was missed woke the thread all the same.
    let strange = named.iter().filter(|named| !holding.contains(named)).count();
    assert!(strange <= 4 + tally.missed as usize, "{spec}: {strange} bear the name, and nothing was injected there");
    check(within > 300, || format!("{spec}: only {within} in {seconds} s"))?;
    check(f64::from(exact) >= 0.8 * within as f64, || format!("{spec}: only {exact} of {within} have the length"))?;
    check((0.98..=1.02).contains(&delivered_ratio), || format!("{spec}: {delivered_ratio} of what was due"))
}

/// Over ten seconds the noise is what was asked for, by the injector's books and by the recording's.
#[test]
fn the_ratio_is_delivered_within_two_in_a_hundred() {
    if !possible("the_ratio_is_delivered_within_two_in_a_hundred") {
        return;
    }
    let cpu = last_cpu();
    best_of(3, || {
        let injection = start(&plan(vec![(cpu, trace("periodic:interval=2ms,detour=200us"))], false));
        let until = Instant::now() + Duration::from_secs(10);
        // A recording in the middle of it is as good as one of all.
        let mut recording = Plan::new();
        recording.cpus = Some([cpu].into_iter().collect());
        recording.duration = Some(Nanos::from_secs(4));
        let run = recorded(recording);
        std::thread::sleep(until.saturating_duration_since(Instant::now()));
        let delivered = injection.stop().unwrap().remove(0);
        let ratio = delivered.tally.delivered.sum_ns() / delivered.observed.get() as f64;
        let (_, doc) = run.cpu(cpu);
        let named = bearing(&run, cpu);
        // The median stands for the injected part of each: what else met some of them is not counted.
        let mut lengths: Vec<i64> = named.iter().map(|detour| detour.duration.get()).collect();
        lengths.sort_unstable();
        let recorded = lengths[lengths.len() / 2] as f64 * lengths.len() as f64 / doc.duration_ns.get() as f64;
        eprintln!("10 % asked for: {:.3} % by the injector, {:.3} % recorded", ratio * 100.0, recorded * 100.0);
        check((0.098..=0.102).contains(&ratio), || format!("{ratio} delivered"))?;
        check((0.098..=0.102).contains(&recorded), || format!("{recorded} recorded"))
    });
}

/// What was recorded of injected noise is injected once more and recorded again: the same share of time, and lengths that the
/// two-sample Kolmogorov-Smirnov test (Smirnov 1939) does not tell apart.
#[test]
fn a_replayed_recording_is_recorded_as_it_was() {
    if !possible("a_replayed_recording_is_recorded_as_it_was") {
        return;
    }
    let cpu = last_cpu();
    best_of(4, || {
        let seconds = 6;
        let (original, _) = injected_trace(cpu, various(), seconds);
        let (_, doc) = original.cpu(cpu);
        let recorded: Vec<Detour> = bearing(&original, cpu);
        let circle = NoiseTrace::from_window(
            doc.start_ns,
            doc.duration_ns,
            recorded.iter().map(|detour| (detour.start, detour.duration)),
        );
        let (again, delivered) = injected_trace(cpu, circle.map_err(|error| error.to_string())?, seconds);
        let over = |run: &Recorded| -> (Vec<i64>, f64) {
            let lengths = bearing(run, cpu).into_iter().map(|detour| detour.duration.get());
            let mut lengths: Vec<i64> = lengths.filter(|length| *length > 20_000).collect();
            lengths.sort_unstable();
            let ratio = lengths.iter().sum::<i64>() as f64 / run.cpu(cpu).1.duration_ns.get() as f64;
            (lengths, ratio)
        };
        let ((first, before), (second, after)) = (over(&original), over(&again));
        let (distance, limit) = smirnov(&first, &second);
        eprintln!(
            "{} detours of {:.3} % replayed: {} of {:.3} %; distance of the distributions {distance:.4}, limit {limit:.4}; left \
             out {:?}, merged {}",
            first.len(),
            before * 100.0,
            second.len(),
            after * 100.0,
            delivered.left_out,
            delivered.merged,
        );
        assert!(first.len() > 400, "{}", first.len());
        check((0.9..=1.1).contains(&(after / before)), || format!("{before} became {after}"))?;
        check(distance <= limit, || format!("{distance} is over {limit}"))
    });
}

/// Detours of 60 us to 560 us, each length once, in an order that looks random, 10 ms apart at the mean.
fn various() -> NoiseTrace {
    let detours = (0..500_i64).map(|turn| {
        let mixed = turn * 219 % 500;
        (Nanos::new(turn * 10_000_000 + mixed * 10_000), Nanos::new(60_000 + 1_000 * (turn * 321 % 500)))
    });
    NoiseTrace::new(Nanos::from_secs(5), detours).unwrap()
}

/// The greatest distance of two empirical distribution functions, and what it exceeds with a chance of 1 % if both samples,
/// which are sorted, are of one distribution: 1.628 sqrt((m + n) / (m n)).
fn smirnov(a: &[i64], b: &[i64]) -> (f64, f64) {
    let below =
        |sample: &[i64], value: i64| sample.partition_point(|length| *length <= value) as f64 / sample.len() as f64;
    let distances = a.iter().chain(b).map(|value| (below(a, *value) - below(b, *value)).abs());
    let (m, n) = (a.len() as f64, b.len() as f64);
    (distances.fold(0.0, f64::max), 1.628 * ((m + n) / (m * n)).sqrt())
}

/// Synchronized, two CPUs lose the same time; otherwise each its own.
#[test]
fn synchronized_detours_start_together() {
    if !possible("synchronized_detours_start_together") {
        return;
    }
    let cpus: Vec<_> =
        allowed_cpus().unwrap().iter().take(2).map(|cpu| (cpu, trace("periodic:interval=10ms,detour=100us"))).collect();
    let apart = |synchronized: bool| -> i64 {
        let injection = start(&plan(cpus.clone(), synchronized));
        std::thread::sleep(Duration::from_secs(2));
        let delivered = injection.stop().unwrap();
        let starts = |cpu: &Delivered| cpu.log.iter().map(|detour| detour.burned.0.get()).collect::<Vec<_>>();
        let (a, b) = (starts(&delivered[0]), starts(&delivered[1]));
        let nearest = |at: &u64| b.iter().map(|other| other.abs_diff(*at)).min().unwrap();
        let mut apart: Vec<u64> = a.iter().map(nearest).collect();
        apart.sort_unstable();
        assert!(apart.len() > 150, "{}", apart.len());
        apart[apart.len() / 2] as i64
    };
    let rate = becalm_linux::clock::calibrate::<becalm_linux::clock::Native>(Nanos::from_millis(50)).unwrap().rate;
    let us = |ticks: i64| ticks as f64 * rate.tick_ns() / 1e3;
    best_of(4, || {
        let (together, alone) = (us(apart(true)), us(apart(false)));
        eprintln!("detours on two CPUs start {together:.1} us apart at the median, {alone:.0} us if they need not be");
        assert!(alone > 100.0, "{alone} us");
        check(together < 20.0, || format!("{together} us"))
    });
}
