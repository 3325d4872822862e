//! Costs are plausible: not by figures, which differ from machine to machine, but by what must cost more than what.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use becalm_cost::analysis::SampleFigures;
use becalm_cost::documents::{CostSamples, ProbeCosts, ReadBy};
use becalm_cost::measure::Site;
use becalm_cost::measure::clock::clocks;
use becalm_cost::measure::probe::{detours, traps};
use becalm_linux::sched::Policy;
use becalm_testing::attempts;

/// Two tests on one CPU would measure each other.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

fn alone() -> (MutexGuard<'static, ()>, Site) {
    let guard = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    (guard, Site::choose(Path::new("/"), None, Policy::Other).expect("some CPU can be used"))
}

/// The figures of each row that was measured.
fn figures(probed: &(ProbeCosts, CostSamples)) -> BTreeMap<String, SampleFigures> {
    let mut costs = BTreeMap::new();
    for probe in &probed.0.probes {
        let Some(series) = &probe.series else {
            eprintln!("{}: not measured: {:?}", probe.name, probe.not_measured);
            continue;
        };
        let cost = SampleFigures::new(&probed.1[&probe.name], &[], series.batch, series.interrupts)
            .expect("a series has samples");
        eprintln!("{}: {} ps, {:?}", probe.name, cost.median_ps, cost.interval_ps);
        costs.insert(probe.name.clone(), cost);
    }
    costs
}

/// Compares pairs of median costs in picoseconds. Lists the pairs where the first does not cost enough more than the second.
fn cheaper<'a>(costs: &BTreeMap<String, i64>, order: &[(&'a str, f64, &'a str)]) -> Vec<String> {
    let wrong = |(more, times, less): &(&str, f64, &str)| {
        let (high, low) = (*costs.get(*more)? as f64, *costs.get(*less)? as f64);
        (high <= low * times).then(|| format!("{more} ({high} ps) is not {times} times {less} ({low} ps)"))
    };
    order.iter().filter_map(wrong).collect()
}

/// Holds the costs against the order that they must have. On a shared machine a neighbor may take a cache for as long as one
/// row is measured, which only makes that row dearer: of each row the lowest median of all attempts until now counts.
fn costs_more(order: &[(&str, f64, &str)], measure: impl Fn() -> BTreeMap<String, SampleFigures>) {
    let mut lowest: BTreeMap<String, i64> = BTreeMap::new();
    attempts(3, || {
        for (name, cost) in measure() {
            let known = lowest.entry(name).or_insert(cost.median_ps);
            *known = cost.median_ps.min(*known);
        }
        let wrong = cheaper(&lowest, order);
        if wrong.is_empty() { Ok(()) } else { Err(wrong.join("; ")) }
    });
}

#[test]
fn traps_cost_what_they_must() {
    let (_guard, site) = alone();
    let several = site.other().is_some();
    let measure = || {
        let mut named = 0;
        let probed = traps(&site, &mut |_, _, _| {
            named += 1;
            true
        })
        .expect("the counter runs");
        assert_eq!(named, 12);
        let costs = figures(&probed);
        for name in [
            "syscall",
            "vdso",
            "signal",
            "fault_minor",
            "fault_zero",
            "fault_cow",
            "pipe",
            "switch_thread",
            "membarrier",
        ] {
            assert!(costs.contains_key(name), "{name} was not measured");
        }
        assert_eq!(costs.contains_key("futex_wake"), several);
        costs
    };
    let order = [
        ("signal", 2.0, "syscall"),
        ("fault_cow", 1.0, "syscall"),
        ("fault_minor", 1.0, "syscall"),
        ("fault_huge", 4.0, "fault_minor"),
        ("pipe", 1.0, "syscall"),
        ("switch_thread", 1.0, "pipe"),
        ("switch_process", 1.0, "pipe"),
        ("futex_switch", 2.0, "syscall"),
        ("futex_wake_runs", 1.0, "futex_wake"),
        ("ipi", 1.0, "membarrier"),
    ];
    costs_more(&order, measure);
}

#[test]
fn far_memory_costs_more_than_near_memory_and_a_lost_slice_more_than_an_interrupt() {
    let (_guard, site) = alone();
    let measure = || {
        let costs = figures(&detours(&site, &mut |_, _, _| true).expect("the counter runs"));
        for name in ["memory", "pte_miss", "fault_minor", "fault_cow", "preemption"] {
            assert!(costs.contains_key(name), "{name} was not measured");
        }
        costs
    };
    let order = [
        ("cache_l2", 1.2, "cache_l1"),
        ("cache_l3", 1.2, "cache_l2"),
        // No more of it and the last cache: others share that one, and may leave us nothing of it.
        ("memory", 1.5, "cache_l2"),
        ("memory", 5.0, "cache_l1"),
        // A walk through page tables that lie in the caches: more than a hit, less than a load from memory.
        ("tlb_miss", 0.5, "cache_l1"),
        ("memory", 1.0, "tlb_miss"),
        ("pte_miss", 1.0, "memory"),
        ("preemption", 10.0, "interrupt"),
        ("fault_cow", 1.0, "memory"),
        ("fault_minor", 1.0, "tlb_miss"),
    ];
    costs_more(&order, measure);
}

#[test]
fn clocks_are_read_where_they_are_and_do_not_run_backwards() {
    let (_guard, site) = alone();
    let several = site.other().is_some();
    let (clocks, samples) = clocks(&site, &mut |_, _, _| true).expect("the counter runs");
    let row = |name: &str| clocks.clocks.iter().find(|row| row.name == name).expect("every kernel has this clock");
    let median = |name: &str| {
        SampleFigures::new(&samples[name], &[], row(name).series.batch, None).expect("there are samples").median_ps
    };

    // Nothing but the kernel knows what a thread has used.
    assert_eq!(row("CLOCK_THREAD_CPUTIME_ID").path, ReadBy::Syscall);
    assert!(row("CLOCK_THREAD_CPUTIME_ID").cross.is_none());
    for name in ["CLOCK_MONOTONIC", "CLOCK_MONOTONIC_RAW", "CLOCK_MONOTONIC_COARSE", "CLOCK_BOOTTIME"] {
        let row = row(name);
        assert_eq!(row.backwards, 0, "{name}");
        assert!(row.stated_ns.is_some() && row.by_syscall.is_some(), "{name}");
        assert_eq!(row.cross.is_some(), several);
        assert!(row.cross.is_none_or(|cross| cross.backwards == 0), "{name}: {:?}", row.cross);
    }
    // A coarse clock moves with the tick, which comes 100 to 1,000 times a second.
    let coarse = row("CLOCK_MONOTONIC_COARSE");
    if let Some(step) = coarse.smallest_step_ps {
        let stated = coarse.stated_ns.expect("the kernel tells") as i64 * 1_000;
        assert!((900_000_000..=11_000_000_000).contains(&stated), "{coarse:?}");
        // Where others have the CPU at each tick, none is seen alone.
        let ticks = step as f64 / stated as f64;
        assert!(ticks > 0.8 && (ticks - ticks.round()).abs() < 0.2, "{coarse:?}");
    }
    if row("CLOCK_MONOTONIC").path == ReadBy::Vdso {
        assert!(median("CLOCK_MONOTONIC") < median("CLOCK_THREAD_CPUTIME_ID"));
        assert!(median("CLOCK_MONOTONIC_COARSE") <= median("CLOCK_MONOTONIC") * 2);
    }
    #[cfg(target_arch = "x86_64")]
    assert_eq!(row("rdtsc").path, ReadBy::Instruction);
}
