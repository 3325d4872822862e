//! The same CPU as a program sees it under `becalm observe`, and as the loop of `becalm record` does.

use std::time::Duration;

use becalm_linux::sched;
use becalm_testing::attempts;
use becalm_testing::program::{becalm, path, run};
use serde_json::Value;

use super::planted::{self, Act, of_source};
use super::{first_cpu, number, spin};
use crate::robust::alone;

/// How long each of them looks.
const LENGTH: Duration = Duration::from_secs(4);
/// Sources that come this often are no accident.
const OFTEN: i64 = 100;

/// The count per second and the mean time of a source.
fn figures(ns: i64, count: i64, time: i64) -> (f64, f64) {
    (count as f64 / (time as f64 / 1e9), ns as f64 / count.max(1) as f64)
}

#[test]
fn what_interrupts_a_program_interrupts_the_loop_as_often() {
    let Some(_alone) = alone() else { return };
    let folder = tempfile::tempdir().unwrap();
    let cpu = first_cpu();
    let mut number_of_run = 0;
    attempts(3, || {
        number_of_run += 1;
        let program: Act<'_> = Box::new(|| {
            sched::pin_current_thread(first_cpu()).unwrap();
            spin(LENGTH);
        });
        let observed = planted::observe(&["-q", "--comm", "ob-both"], vec![("ob-both", program)], |_| {});
        let thread = observed.thread(0);
        let bundle = folder.path().join(format!("loop-{number_of_run}.becalm"));
        let (cpu, length) = (cpu.to_string(), format!("{}s", LENGTH.as_secs()));
        let ended = run(becalm(&["record", "--cpus", &cpu, "--duration", &length, "--json", "-o", path(&bundle)]));
        ended.expect(0, &[]);
        let doc: Value = serde_json::from_str(&ended.stdout).unwrap();
        let sources: Vec<&Value> = doc["sources"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|row| row["node"].is_null() && row["cpu"].is_null())
            .collect();
        let in_loop = |name: &str| {
            let row =
                sources.iter().find(|row| row["source"] == name && row["kind"] != "task" && row["kind"] != "kthread");
            row.map_or((0, 0), |row| (number(row, "total_ns"), number(row, "count")))
        };
        let times = (number(thread, "ran_ns"), number(&doc["total"], "duration_ns"));
        let (ns, count) = of_source(thread, "ran", "tick");
        let (rate, mean) = figures(ns, count, times.0);
        let (ns, count) = in_loop("tick");
        let (loop_rate, loop_mean) = figures(ns, count, times.1);
        eprintln!(
            "ticks: {rate:.1}/s of {mean:.0} ns on top of the program, {loop_rate:.1}/s of {loop_mean:.0} ns in the loop"
        );
        let is_near = |one: f64, other: f64, times: f64| one < other * times && other < one * times;
        if !is_near(rate, loop_rate, 1.1) || !is_near(mean, loop_mean, 2.0) {
            return Err(format!("{rate}/s of {mean} ns, and {loop_rate}/s of {loop_mean} ns"));
        }
        let on_top = thread["ran"].as_array().unwrap().iter().filter(|part| {
            let kind = part["kind"].as_str().unwrap_or_default();
            matches!(kind, "irq" | "softirq" | "vector") && number(part, "count") >= OFTEN
        });
        for part in on_top {
            let name = part["source"].as_str().unwrap();
            if in_loop(name).1 == 0 {
                return Err(format!("{name} interrupted the program {} times, and the loop never", part["count"]));
            }
        }
        Ok(())
    });
}
