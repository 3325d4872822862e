//! Injected noise is found, each detour of it, with its length and its name. Needs root and two CPUs.

// A test says what it has measured.
#![allow(clippy::print_stderr)]

mod recording;

use std::path::Path;

use becalm_inject::{Delivered, Injection, Plan as InjectPlan};
use becalm_linux::clock::Source;
use becalm_linux::procfs::kernel::rt_throttling;
use becalm_linux::sched::{Policy, allowed_cpus};
use becalm_measure::Plan;
use becalm_scale::NoiseTrace;
use becalm_scale::spec::NoiseSpec;
use becalm_trace::Kind;
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
    let injection = start(&plan(vec![(cpu, trace(spec))], false));
    let mut plan = Plan::new();
    plan.cpus = Some([cpu].into_iter().collect());
    plan.duration = Some(Nanos::from_secs(seconds));
    let run = recorded(plan);
    let delivered = injection.stop().unwrap().remove(0);
    (run, delivered)
}

/// Every injected detour lies in one that was recorded, of its length, and nothing else bears its name.
#[test]
fn every_injected_detour_is_found_with_its_length_and_name() {
    if !possible("every_injected_detour_is_found_with_its_length_and_name") {
        return;
    }
    let cpu = last_cpu();
    for (spec, seconds) in [("periodic:interval=5ms,detour=50us,jitter=1ms", 4), ("poisson:rate=100Hz,detour=200us", 4)]
    {
        let (run, delivered) = injected(cpu, spec, seconds);
        let (axis, (index, doc)) = (run.axis(), run.cpu(cpu));
        let detours = &run.memory.detours[index];
        let begin = doc.start_ns + Nanos::from_millis(1);
        let end = doc.start_ns + doc.duration_ns - Nanos::from_millis(1);
        let (mut within, mut exact) = (0, 0);
        let mut off = Vec::new();
        for injected in &delivered.log {
            let (first, last) = (axis.instant(injected.burned.0), axis.instant(injected.burned.1));
            if first < begin || last > end {
                continue;
            }
            within += 1;
            let index = detours.partition_point(|detour| detour.start <= first);
            let found = index.checked_sub(1).map(|before| detours[before]);
            let found = found.filter(|found| found.start + found.duration + doc.t_min_ns >= last);
            let found = found.unwrap_or_else(|| panic!("{spec}: the detour from {first} to {last} was not found"));
            let difference = (found.duration - injected.asked).get();
            off.push(difference);
            // Other noise that meets it makes it longer.
            exact += u32::from(difference.abs() <= (injected.asked.get() / 20).max(3_000));
        }
        off.sort_unstable();
        let named = run.of(cpu, Kind::Task, "becalm-inject");
        let mut bearing: Vec<u64> = named.iter().map(|row| row.detour).collect();
        bearing.dedup();
        let tally = &delivered.tally;
        eprintln!(
            "{spec}: {within} detours, all found; {exact} of them within 5 % or 3 us, by {} ns at the median; {} rows named; \
             toll {:?}; late by {} at the median, {} at the 99th percentile; {} missed, {} joined",
            off[off.len() / 2],
            bearing.len(),
            delivered.toll,
            tally.late(0.5).unwrap(),
            tally.late(0.99).unwrap(),
            tally.missed,
            tally.joined,
        );
        assert!(within > 300, "{spec}: only {within} in {seconds} s");
        // Those at either end of the recording may be there or not.
        assert!((within..=within + 4).contains(&bearing.len()), "{spec}: {} of {within} bear the name", bearing.len());
        assert!(f64::from(exact) >= 0.8 * within as f64, "{spec}: only {exact} of {within} have the length");
        let delivered_ratio = tally.delivered.sum_ns() / tally.due.sum_ns();
        assert!((0.98..=1.02).contains(&delivered_ratio), "{spec}: {delivered_ratio} of what was due");
    }
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
        std::thread::sleep(std::time::Duration::from_secs(2));
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
    let (together, alone) = (us(apart(true)), us(apart(false)));
    eprintln!(
        "detours on two CPUs start {together:.1} us apart at the median, {alone:.0} us if they need not be together"
    );
    assert!(together < 20.0, "{together} us");
    assert!(alone > 100.0, "{alone} us");
}
