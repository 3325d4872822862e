//! Threads that wait for each other's CPU.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use becalm_linux::clock::thread_time;
use becalm_linux::sched;
use becalm_testing::cgroup::ControlGroup;
use becalm_testing::{attempts, skip};
use becalm_units::Nanos;

use super::planted::{self, Act};
use super::{first_cpu, number, spin};
use crate::robust::alone;

/// Spins on a CPU until told to stop.
fn burn_until<'a>(stop: &'a AtomicBool) -> Act<'a> {
    let cpu = first_cpu();
    Box::new(move || {
        sched::pin_current_thread(cpu).unwrap();
        while !stop.load(Ordering::Relaxed) {
            spin(Duration::from_micros(100));
        }
    })
}

#[test]
fn a_nice_thread_waits_for_the_one_that_is_not() {
    /// The CPU time that the nice thread needs.
    const WORK: Nanos = Nanos::from_millis(40);
    let Some(_alone) = alone() else { return };
    attempts(3, || {
        let stop = AtomicBool::new(false);
        let nice: Act<'_> = Box::new(|| {
            sched::pin_current_thread(first_cpu()).unwrap();
            let since = thread_time();
            while thread_time() - since < WORK {
                std::hint::spin_loop();
            }
            stop.store(true, Ordering::Relaxed);
        });
        let actors = vec![("ob-nice", nice), ("ob-burner", burn_until(&stop))];
        let observed = planted::observe(&["-q", "--comm", "ob-nice", "--comm", "ob-burner"], actors, |tids| {
            let renice = std::process::Command::new("renice").args(["-n", "19", "-p", &tids[0].to_string()]).output();
            assert!(renice.unwrap().status.success());
        });
        observed.compare(0)?;
        observed.compare(1)?;
        let thread = observed.thread(0);
        let takers = thread["takers"].as_array().unwrap();
        // Other work on this machine may have taken more.
        let burner = takers.iter().find(|taker| taker["source"] == "ob-burner" && taker["owner"] == "process");
        let burner = burner.unwrap_or_else(|| panic!("{thread:#}"));
        let queued = number(thread, "queued_ns");
        // By the kernel, the burner had the CPU for this long, which the nice thread wanted all the while.
        let (taken, burned) = (number(burner, "ns"), observed.accounts[1].1.ran.get());
        eprintln!("{taken} of {queued} ns, and the burner ran for {burned}");
        // Interrupts on top of the burner are not its own.
        let is_near = (taken - burned).abs() * 20 <= burned + 20 * 10_000_000;
        if is_near { Ok(()) } else { Err(format!("{taken} ns of {queued}, and the burner ran for {burned} ns")) }
    });
}

#[test]
fn groups_that_starve_each_other_are_victims_and_culprits() {
    let Some(_alone) = alone() else { return };
    let groups = [("one", 1_024), ("other", 256)].map(|(name, shares)| ControlGroup::with_shares(name, shares));
    let [Some(one), Some(other)] = groups else { return skip("there are no groups with shares") };
    attempts(3, || {
        let stop = AtomicBool::new(false);
        let timer: Act<'_> = Box::new(|| {
            thread::sleep(Duration::from_secs(3));
            stop.store(true, Ordering::Relaxed);
        });
        let actors = vec![("ob-one", burn_until(&stop)), ("ob-other", burn_until(&stop)), ("ob-timer", timer)];
        let words = ["--by", "cgroup", "--comm", "ob-one", "--comm", "ob-other"];
        let mut is_inside = true;
        let observed = planted::observe(&words, actors, |tids| {
            is_inside = one.take_thread(tids[0]).is_some() && other.take_thread(tids[1]).is_some();
        });
        assert!(is_inside, "threads can be moved into groups");
        let (doc, paths) = (&observed.doc, [one.path(), other.path()]);
        let pairs = doc["groups"].as_array().unwrap();
        let cell = |victim: &str, culprit: &str| -> i64 {
            let cells = pairs.iter().filter(|pair| pair["victim"] == victim && pair["culprit"] == culprit);
            cells.map(|pair| number(pair, "ns")).sum()
        };
        for (place, culprit) in [(0, 1), (1, 0)] {
            observed.compare(place)?;
            let thread = observed.thread(place);
            assert_eq!(thread["cgroup"], paths[place], "{thread:#}");
            // The rows of the matrix are the waits, to the nanosecond.
            let row: i64 =
                pairs.iter().filter(|pair| pair["victim"] == paths[place]).map(|pair| number(pair, "ns")).sum();
            assert_eq!(row, number(thread, "queued_ns") + number(thread, "quota_ns"), "{pairs:#?}");
            // Each wanted the CPU all the while: it lost what the kernel says that the other had.
            let (taken, ran) = (cell(&paths[place], &paths[culprit]), observed.accounts[culprit].1.ran.get());
            eprintln!("{} took {taken} ns, and ran for {ran} by the kernel", paths[culprit]);
            if (taken - ran).abs() * 20 > ran {
                return Err(format!("{} took {taken} ns, and ran for {ran} ns by the kernel", paths[culprit]));
            }
            let is_shown = observed.stdout.contains(paths[place].trim_start_matches('/'));
            assert!(is_shown, "no {} in {}", paths[place], observed.stdout);
        }
        Ok(())
    });
}
