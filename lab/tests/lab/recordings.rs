//! What becalm records on each kernel.

use std::ffi::OsStr;

use crate::guests::{Lab, number, tell, text};
use crate::osnoise::Osnoise;
use crate::recording::{Run, assert_better, assert_events_are_the_kernels, rate};

#[test]
fn an_isolated_cpu_is_measured_and_is_quiet() {
    let Some(lab) = Lab::open() else { return };
    let outcome = lab.run("isolated");
    let run = lab.recorded(&outcome, "run.becalm");

    assert_eq!(run.cpus(), [1]);
    assert_eq!(run.node["machine"]["isolated"], "1");
    assert_eq!(run.node["machine"]["nohz_full"], "1");
    run.assert_whole();
    run.assert_timer_interrupts_agree();

    // With its tick, 250 times a second, the CPU would take 1,250 in the 5 s of the recording alone.
    let counted = number(&outcome, "timer_interrupts");
    assert!(counted < 250, "{counted} timer interrupts on a CPU without a tick");
    assert!(run.growth("interrupts/LOC") <= counted);
    // Beside the CPU that kept its tick, which under emulation comes late, but not less than a tenth as often.
    let bundles = [outcome.path("housekeeping.becalm"), outcome.path("run.becalm")];
    let [housekeeping, isolated] = bundles.each_ref().map(|bundle| bundle.as_os_str());
    let sides = ["--cpus-a", "0", "--cpus-b", "1"].map(OsStr::new);
    let comparison = lab.ask(&[&["compare".as_ref(), housekeeping, isolated][..], &sides[..]].concat());
    let tick = rate(&comparison, "irq", "tick");
    let (kept, gone) = (tick["a"].as_f64().expect("a rate"), tick["b"].as_f64().expect("a rate"));
    tell(&format!("isolated: {kept:.0} ticks a second on CPU 0, {gone:.1} on CPU 1"));
    assert!(kept > 10.0 * gone, "{tick}");
    assert_better(tick);
    assert_eq!(text(&outcome, "instances"), "", "a trace instance was left behind");
}

#[test]
fn a_realtime_kernel_is_explained() {
    let Some(lab) = Lab::open() else { return };
    let outcome = lab.run("realtime");
    let run = lab.recorded(&outcome, "run.becalm");

    assert_eq!(run.cpus(), [0, 1]);
    run.assert_whole();
    run.assert_timer_interrupts_agree();
    // On PREEMPT_RT softirqs run in threads; they must still be found by name.
    assert!(run.kinds().contains("softirq"), "{:?}", run.kinds());
    let counted = number(&outcome, "timer_interrupts");
    assert!(counted >= 1_000, "{counted} timer interrupts on a CPU with a tick");
    assert_eq!(text(&outcome, "instances"), "", "a trace instance was left behind");
    assert_events_are_the_kernels(&outcome, &run);

    let recording = lab.recorded(&outcome, "beside.becalm");
    recording.assert_whole();
    let osnoise = Osnoise::from_outcome(&outcome);
    osnoise.assert_same_sources(&recording);
    osnoise.assert_same_rates(&recording);
}

#[test]
fn the_stock_kernel_is_explained_to_root_and_measured_for_a_user() {
    let Some(lab) = Lab::open() else { return };
    let outcome = lab.run("stock");

    // What becalm says of them there; elsewhere runs are brought here, where a report takes no seconds.
    let root = Run::in_folder(&outcome.path(""));
    assert_eq!(root.cpus(), [0, 1]);
    root.assert_whole();
    root.assert_timer_interrupts_agree();
    assert_events_are_the_kernels(&outcome, &root);

    let user = Run::in_folder(&outcome.path("user"));
    assert_eq!(number(&outcome, "user/status"), 0);
    assert_eq!(user.cpus(), [0, 1]);
    user.assert_nothing_is_made_up();
    assert!(!user.warnings().is_empty(), "what a user cannot see must be said");
    assert_eq!(text(&outcome, "instances"), "", "a trace instance was left behind");
}

#[test]
fn a_locked_down_kernel_is_measured_without_its_trace() {
    let Some(lab) = Lab::open() else { return };
    let outcome = lab.run("lockdown");
    assert!(text(&outcome, "lockdown").contains("[confidentiality]"), "{}", text(&outcome, "lockdown"));

    let run = lab.recorded(&outcome, "run.becalm");
    assert_eq!(run.cpus(), [0, 1]);
    run.assert_nothing_is_made_up();
    assert!(run.warnings().contains("lockdown"), "the reason must be named: {}", run.warnings());
    assert!(text(&outcome, "audit").contains("lockdown"), "{}", text(&outcome, "audit"));
}

#[test]
fn a_cpu_that_goes_away_ends_its_recording_and_no_more() {
    let Some(lab) = Lab::open() else { return };
    let outcome = lab.run("hotplug");
    assert_eq!(text(&outcome, "online"), "0");

    let run = lab.recorded(&outcome, "run.becalm");
    assert_eq!(run.cpus(), [1]);
    run.assert_books_close();
    let cpu = &run.node["cpus"][0];
    assert_eq!(cpu["cut_short"], true, "{cpu}");
    let recorded = cpu["duration_ns"].as_u64().expect("a CPU has a duration");
    // It was asked for 8 s. After 2 s the CPU was told to go; a busy host may take long to let the guest do so.
    assert!((1_000_000_000..7_900_000_000).contains(&recorded), "{recorded} ns before the CPU went away");
    assert_ne!(run.node["ended"], "buffer_full", "the CPU went away, and its buffer was not the reason");
    assert!(run.warnings().contains("offline"), "the reason must be named: {}", run.warnings());
    assert_eq!(text(&outcome, "instances"), "", "a trace instance was left behind");
}
