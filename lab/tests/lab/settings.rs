//! Settings of the kernel that becalm's recordings must show: interrupts that were moved, throttling, cpuset partitions.

use crate::guests::{Lab, number, text};
use crate::recording::{assert_better, each, rate};

#[test]
fn an_interrupt_that_was_moved_away_is_gone() {
    let Some(lab) = Lab::open() else { return };
    let outcome = lab.run("affinity");
    for cpu in [0, 1] {
        assert_eq!(number(&outcome, &format!("effective_on_{cpu}")), cpu);
    }
    let (here, away) = (lab.recorded(&outcome, "on_1.becalm"), lab.recorded(&outcome, "on_0.becalm"));
    here.assert_whole();
    away.assert_whole();
    // It comes up to 100 times a second, as the kernel's own counter says; before and after the loops, too.
    let traced = here.count("irq", "ttyS1");
    assert!(traced >= 30, "{traced} interrupts of a port that was written to for 3 s");
    assert!(traced.abs_diff(here.growth("interrupts/ttyS1")) <= 3 + traced / 50, "{traced}: {}", here.node["counters"]);
    assert!(traced <= number(&outcome, "counted_on_1"));
    assert_eq!((away.count("irq", "ttyS1"), number(&outcome, "counted_on_0")), (0, 0));

    let (a, b) = (outcome.path("on_1.becalm"), outcome.path("on_0.becalm"));
    let comparison = lab.ask(&["compare".as_ref(), a.as_ref(), b.as_ref()]);
    assert_better(rate(&comparison, "irq", "ttyS1"));
    assert!(text(&outcome, "managed").contains("Input/output error"), "a managed interrupt could be moved");
}

#[test]
fn throttling_is_told_from_other_noise() {
    let Some(lab) = Lab::open() else { return };
    let outcome = lab.run("throttling");
    // What real-time threads may use of a period, and the period, in microseconds.
    assert_eq!(text(&outcome, "throttling"), "950000\n1000000");
    let (throttled, free) = (lab.recorded(&outcome, "throttled.becalm"), lab.recorded(&outcome, "unthrottled.becalm"));
    throttled.assert_whole();
    free.assert_whole();

    let entry = each(&throttled.report, "sources").find(|entry| entry["kind"] == "throttling");
    let entry = entry.unwrap_or_else(|| panic!("no throttling: {}", throttled.report["sources"]));
    assert_eq!(entry["source"], "rt_throttling");
    // Every second once, for 50 ms, in the 4 s; the kernel notices at a tick, which an emulated CPU gets late, and a thread
    // that runs meanwhile parts the gap.
    let milliseconds = |field: &str| entry[field].as_f64().expect("a source has times") / 1e6;
    let (longest, total) = (milliseconds("max_ns"), milliseconds("total_ns"));
    assert!((20.0..100.0).contains(&longest) && (60.0..400.0).contains(&total), "{entry}");
    assert!(throttled.warnings().contains("throttling"), "{}", throttled.warnings());

    assert!(!free.kinds().contains("throttling"), "{:?}", free.kinds());
    assert!(!free.warnings().contains("throttling"), "{}", free.warnings());
}

#[test]
fn real_time_loops_on_every_cpu_end_without_throttling() {
    let Some(lab) = Lab::open() else { return };
    let outcome = lab.run("unthrottled");
    assert_eq!((number(&outcome, "stopped"), number(&outcome, "ended")), (0, 0), "loops on both CPUs did not end");
    let how = |run: &str| lab.recorded(&outcome, run).node["ended"].as_str().map(str::to_owned);
    assert_eq!(how("stopped.becalm").as_deref(), Some("signal"));
    assert_eq!(how("ended.becalm").as_deref(), Some("duration"));
    assert_eq!(number(&outcome, "refused"), 2);
    assert!(text(&outcome, "refusal").contains("98 is the highest"), "{}", text(&outcome, "refusal"));
}

#[test]
fn becalm_records_inside_an_isolated_partition() {
    let Some(lab) = Lab::open() else { return };
    let outcome = lab.run("partition");
    assert_eq!(text(&outcome, "fresh"), "member");
    let invalid = text(&outcome, "without_cpus");
    assert!(invalid.starts_with("isolated invalid (") && invalid.contains("cpuset.cpus"), "{invalid}");
    let rival = text(&outcome, "with_rival");
    assert!(rival.starts_with("isolated invalid (") && rival.contains("exclusive"), "{rival}");
    assert_eq!(text(&outcome, "made"), "isolated");
    assert_eq!(text(&outcome, "undone"), "member");
    // The partition took the CPU from everybody else, and gave it back.
    assert_eq!(text(&outcome, "effective_before"), "0-1");
    assert_eq!(text(&outcome, "effective_meanwhile"), "0");
    assert_eq!(text(&outcome, "effective_after"), "0-1");
    assert_eq!(text(&outcome, "allowed_outside"), "Cpus_allowed_list:\t0");
    assert_eq!(text(&outcome, "allowed_inside"), "Cpus_allowed_list:\t1");

    let run = lab.recorded(&outcome, "inside.becalm");
    assert_eq!(run.cpus(), [1]);
    run.assert_whole();
    run.assert_timer_interrupts_agree();
    // All of becalm is inside, on the one CPU, and says that its own work shows.
    assert!(run.own_ns() > 0, "{}", run.report["total"]);
    assert!(run.warnings().contains("collector"), "{}", run.warnings());
}
