//! The kernel matrix, a part of it; and the CPU without a tick, beside what the model says of no ticks.

use becalm_lab::{Kernel, LIMITS, MATRIX, Matrix, Row, SETTINGS};
use serde_json::Value;

use crate::guests::{Lab, named, number, tell, text};

fn row(lab: &Lab, name: &str) -> Row {
    let setting = SETTINGS.into_iter().find(|setting| setting.name == name).expect("the matrix has it");
    let outcome = lab.run_scenario(&setting.apply(&named(MATRIX)));
    for parameter in setting.parameters.split_whitespace() {
        assert!(text(&outcome, "cmdline").contains(parameter), "{name} was booted without {parameter}");
    }
    let kernel = Kernel::debian(setting.flavor, lab.cache()).unwrap_or_else(|error| panic!("{error}"));
    let config = kernel.config().unwrap_or_else(|error| panic!("{error}"));
    Row::from_outcome(name, &config, &outcome, lab.becalm()).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn a_setting_of_the_matrix_has_the_kernels_own_counts() {
    let Some(lab) = Lab::open() else { return };
    let full = row(&lab, "preempt=full");
    tell(&format!("{}{LIMITS}", Matrix::new(vec![full.clone()]).table()));
    assert!(full.preempt.contains("(full)"), "the kernel says of its preemption: {}", full.preempt);
    assert_eq!(full.config_hz, Some(250), "Debian builds with another tick rate; the README says which");
    // What lies outside of the recording's time, its start and end, is counted by the kernel alone.
    let (found, counted) = (full.timer_interrupts, full.kernel_timer_interrupts);
    assert!(found > 100 && found <= counted, "{found} found, {counted} counted");
    assert!(full.softirqs > 0 && full.detours >= found, "{full:?}");
    assert!(full.slowdown_16k_ratio.is_some_and(|ratio| ratio > 1.0), "{full:?}");
}

#[test]
fn a_cpu_without_a_tick_does_the_sort_beside_the_model() {
    let Some(lab) = Lab::open() else { return };
    let outcome = lab.run("tickless");
    let [ticking, tickless] = [0, 1].map(|cpu| number(&outcome, &format!("timer_interrupts{cpu}")));
    // The model says what the sort would take without ticks; what that is in an emulator nobody knows, but it must say less.
    let bundle = outcome.path("tick.becalm");
    let model = lab.ask(&["report".as_ref(), bundle.as_ref()]);
    let rows = model["processors"][0]["model"].as_array().unwrap_or_else(|| panic!("no model: {model}"));
    let ns = |row: &Value, field: &str| row[field].as_f64().unwrap_or(f64::NAN);
    for row in rows {
        let line = format!(
            "tickless: at {:.0} interrupts a second the sort took {:.2} ms, by the model {:.2} ms without",
            ns(row, "rate_hz"),
            ns(row, "observed_ns") / 1e6,
            ns(row, "tickless_ns") / 1e6
        );
        tell(&line);
    }
    let median = |cpu: u32| {
        let bundle = outcome.path(&format!("sort{cpu}.becalm"));
        let report = lab.ask(&["report".as_ref(), bundle.as_ref()]);
        report["runs"][0]["cpus"][0]["median_ns"].as_f64().expect("a median")
    };
    let line = format!(
        "tickless: {ticking} timer interrupts during sorts and loops with the tick, {tickless} without; medians of the sort \
         {:.2} and {:.2} ms, times of the emulator",
        median(0) / 1e6,
        median(1) / 1e6
    );
    tell(&line);
    // Between the loops the shell runs there, and others with it; within them hardly an interrupt comes.
    assert!(ticking > 10 * tickless.max(10), "{line}");
}
