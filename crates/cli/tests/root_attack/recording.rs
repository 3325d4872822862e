//! `becalm record` without its janitor, signalled several times, stopped, raced, and given odd values.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::Duration;

use becalm_testing::attack::{Random, Tries, attack};
use becalm_testing::machine::{Bench, Mounted};
use becalm_testing::program::{
    INSTANCES, Running, becalm, document, instances, instances_of, path, report, run, run_becalm, segments,
};
use becalm_testing::{Need, machine_has};
use serde_json::Value;
use tempfile::TempDir;

/// A recording with the kernel's trace, and `more`.
fn recording(bundle: &Path, more: &[&str]) -> Command {
    becalm(&[&["record", "--quiet", "-o", path(bundle)], more].concat())
}

fn folder() -> TempDir {
    tempfile::tempdir().unwrap()
}

/// The machine as it is, where it has what every test here needs.
fn bench() -> Option<Bench> {
    machine_has(&[Need::Tracefs]).then(Bench::new).flatten()
}

/// The janitor of a recording that has begun.
fn janitor(running: &Running) -> String {
    let pid = running.pid();
    let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap();
    let name = |child: &str| fs::read_to_string(format!("/proc/{child}/comm")).unwrap_or_default();
    let found = children.split_ascii_whitespace().find(|child| name(child).trim() == "becalm-janitor");
    found.expect("a recording has a janitor").to_owned()
}

fn kill(pid: &str) {
    assert!(Command::new("kill").args(["-KILL", pid]).status().unwrap().success());
}

#[test]
fn janitors_die_as_well() {
    let Some(bench) = bench() else { return };
    let started = |bundle: &Path, more: &[&str]| {
        let mut running = Running::start(recording(bundle, more));
        running.wait_for_start(bundle);
        running
    };
    attack(
        "janitor killed and then record: its instance is removed by the next one",
        Tries { all: 3, few: 1 },
        |_, _| {
            let folder = folder();
            let bundle = folder.path().join("run");
            let mut running = started(&bundle, &["--until-stopped"]);
            let left = instances_of(running.pid());
            assert_eq!(left.len(), 1);
            let switch = Path::new(INSTANCES).join(&left[0]).join("tracing_on");
            let records = || fs::read_to_string(&switch).unwrap() == "1\n";
            running.wait_until("its instance records", records);
            kill(&janitor(&running));
            running.signal("KILL");
            // Its end is not waited for as usual, as the instance stays.
            drop(running);
            assert!(records(), "nobody was left to switch the instance off");
            report(&bundle);
            run(recording(&folder.path().join("next"), &["--duration", "100ms"])).expect(0, &[]);
            assert!(!instances().contains(&left[0]));
            bench.is_untouched("after the next recording", &[]);
        },
    );
    attack("janitor killed, record ends by itself: nothing left", Tries { all: 3, few: 1 }, |_, _| {
        let folder = folder();
        let bundle = folder.path().join("run");
        let running = started(&bundle, &["--duration", "1s"]);
        kill(&janitor(&running));
        running.end().expect(0, &[]);
        assert_eq!(report(&bundle)["nodes"][0]["ended"], "duration");
        bench.is_untouched("after its end", &[]);
    });
}

/// The first that is obeyed decides how it ends; those behind it change nothing.
#[test]
fn several_signals_in_a_row() {
    let Some(bench) = bench() else { return };
    attack("TERM, INT and HUP in a row to record, at a random moment", Tries { all: 15, few: 3 }, |_, random| {
        let folder = folder();
        let bundle = folder.path().join("run");
        let delay = random.time(Duration::from_millis(1200));
        let line = "exec env --default-signal=INT,HUP \"$0\" \"$@\"";
        let inner = recording(&bundle, &["--duration", "1s"]);
        let mut command = Command::new("sh");
        command.args(["-c", line]).arg(inner.get_program()).args(inner.get_args());
        let running = Running::start(command);
        thread::sleep(delay);
        for signal in ["TERM", "INT", "HUP"] {
            running.signal(signal);
        }
        let ended = running.end();
        // Before it has blocked signals, or after it is done with them, they end it as they end any program.
        assert!([0, 128 + 15, 128 + 2, 128 + 1].contains(&ended.code), "after {delay:?}: {ended:#?}");
        assert!(!ended.stderr.contains("panicked"), "{ended:#?}");
        if bundle.join("runs").exists() {
            report(&bundle);
        }
        if ended.code == 0 {
            assert!(bundle.exists());
        }
        bench.is_untouched(&format!("signals after {delay:?}"), &[]);
    });
}

#[test]
fn stopped_for_a_while() {
    let Some(bench) = bench() else { return };
    attack("SIGSTOP and SIGCONT 1.5 s later: one detour, and the books close", Tries { all: 3, few: 1 }, |_, _| {
        let folder = folder();
        let bundle = folder.path().join("run");
        let mut running = Running::start(recording(&bundle, &["--cpus", "0", "--duration", "3s"]));
        running.wait_for_start(&bundle);
        thread::sleep(Duration::from_millis(500));
        running.signal("STOP");
        thread::sleep(Duration::from_millis(1500));
        running.signal("CONT");
        running.end().expect(0, &[]);
        let report = report(&bundle);
        assert_eq!(report["books"], "closed");
        // Others may have had the CPU meanwhile, which is then theirs.
        let longest = document(&bundle)["cpus"][0]["max_ns"].as_i64().unwrap();
        assert!(longest > 1_400_000_000, "{longest} ns: {report:#}");
        bench.is_untouched("after a stop", &[]);
    });
}

/// Two of them take turns on their CPUs; of two into one bundle one is refused.
#[test]
fn two_at_once() {
    let Some(bench) = bench() else { return };
    attack("two recordings at once, into two bundles and into one", Tries { all: 4, few: 2 }, |number, random| {
        let folder = folder();
        let bundles = [folder.path().join("0"), folder.path().join(["1", "0"][number as usize % 2])];
        let first = Running::start(recording(&bundles[0], &["--duration", "1s"]));
        thread::sleep(random.time(Duration::from_millis(200)));
        let second = Running::start(recording(&bundles[1], &["--duration", "1s"]));
        let ended = [first.end(), second.end()];
        let refused = ended.iter().filter(|ended| ended.code != 0).count();
        assert_eq!(refused, usize::from(bundles[0] == bundles[1]), "{ended:#?}");
        for ended in ended.iter().filter(|ended| ended.code != 0) {
            ended.expect(1, &["is there already"]);
        }
        bundles.iter().for_each(|bundle| assert_eq!(report(bundle)["books"], "closed"));
        bench.is_untouched("after both", &[]);
    });
}

/// Values at their limits and beyond: taken, or refused with the option's name.
#[test]
fn odd_values() {
    const VALUES: [(&str, &str, i32); 30] = [
        ("--cpus", "0", 0),
        ("--cpus", "0-0", 0),
        ("--cpus", "0,0,0", 0),
        ("--cpus", " 0", 0),
        ("--cpus", "", 2),
        ("--cpus", ",", 2),
        ("--cpus", "-", 2),
        ("--cpus", "-1", 2),
        ("--cpus", "1-0", 2),
        ("--cpus", "0-4294967295", 2),
        ("--cpus", "4294967296", 2),
        ("--cpus", "18446744073709551616", 2),
        ("--cpus", "0x1", 2),
        ("--cpus", "0-", 2),
        ("--cpus", "\u{661}", 2),
        ("--duration", "1ms", 0),
        ("--duration", "0.0015s", 0),
        ("--duration", "0", 2),
        ("--duration", "0ns", 2),
        ("--duration", "-1s", 2),
        ("--duration", "1e300s", 2),
        ("--duration", "NaNs", 2),
        ("--duration", "infs", 2),
        ("--duration", "1", 2),
        ("--duration", "9223372036854775808ns", 2),
        ("--threshold", "1h", 0),
        ("--threshold", "0ns", 2),
        ("--threshold", "1ns", 2),
        ("--threshold", "-1us", 2),
        ("--threshold", "9223372036854775808ns", 2),
    ];
    let Some(bench) = bench() else { return };
    attack("odd values of --cpus, --duration and --threshold", Tries { all: 30, few: 30 }, |number, _| {
        let (option, value, code) = VALUES[number as usize];
        let folder = folder();
        let bundle = folder.path().join("run");
        let mut words = vec![option, value];
        if option != "--duration" {
            words.extend(["--duration", "20ms"]);
        }
        let ended = run(recording(&bundle, &words));
        let words = [option.trim_start_matches('-')];
        ended.expect(code, if code == 0 { &[] } else { &words });
        assert_eq!(bundle.exists(), code == 0);
        bench.is_untouched(value, &[]);
    });
}

#[test]
fn places_that_cannot_be_written() {
    let Some(bench) = bench() else { return };
    attack("record into a read-only folder, and through a dangling link", Tries { all: 2, few: 2 }, |number, _| {
        if number == 0 {
            let disk = Mounted::tmpfs("ro");
            let bundle = disk.path().join("run");
            run(recording(&bundle, &["--duration", "1h"])).expect(1, &["nothing was recorded", "Read-only"]);
        } else {
            let folder = folder();
            let link = folder.path().join("run");
            symlink("/proc/no/such/place", &link).unwrap();
            run(recording(&link, &["--duration", "1h"])).expect(1, &[path(&link)]);
            assert!(link.is_symlink());
        }
        bench.is_untouched("after a refusal", &[]);
    });
}

/// Real-time loops on every CPU, and noise that leaves next to nothing: it ends in time, and the machine stays usable.
#[test]
fn every_cpu_is_taken() {
    let Some(bench) = bench() else { return };
    let row = "fifo:80, fifo:98 and rr:98 on all CPUs for 3 s; inject 93 % on all; 99 % and 100 % refused";
    attack(row, Tries { all: 6, few: 6 }, |number, _| {
        let folder = folder();
        // A few tries are shorter.
        let duration = if becalm_testing::attack::is_full() { "3s" } else { "300ms" };
        match number {
            0..=2 => {
                let bundle = folder.path().join("run");
                let class = ["fifo:80", "fifo:98", "rr:98"][number as usize];
                run(recording(&bundle, &["--sched", class, "--duration", duration])).expect(0, &[]);
                assert_eq!(report(&bundle)["nodes"][0]["ended"], "duration");
            }
            _ => {
                let (ratio, code) = [("93%", 0), ("99%", 2), ("100%", 2)][number as usize - 3];
                let ended = run_becalm(&["inject", "--ratio", ratio, "--detour", "9.3ms", "--duration", duration]);
                assert!(ended.code == code || (code == 2 && ended.code == 1), "{ended:#?}");
                ended.expect(ended.code, if code == 0 { &[] } else { &["becalm"] });
            }
        }
        bench.is_untouched("after it", &[]);
    });
}

/// A clock that is set meanwhile moves no detour: only on request, as the whole machine has that clock.
#[test]
fn the_clock_is_set() {
    if std::env::var_os("BECALM_ATTACK_CLOCK").is_none() {
        eprintln!("not tried: BECALM_ATTACK_CLOCK=1 sets this machine's clock for a second");
        return;
    }
    let Some(bench) = bench() else { return };
    attack("clock set forward by 30 s and back during a recording", Tries { all: 1, few: 1 }, |_, _| {
        let folder = folder();
        let bundle = folder.path().join("run");
        let mut running = Running::start(recording(&bundle, &["--duration", "2s"]));
        running.wait_for_start(&bundle);
        let set = |by: &str| assert!(Command::new("date").args(["-s", by]).output().unwrap().status.success());
        thread::sleep(Duration::from_millis(500));
        set("+30 seconds");
        thread::sleep(Duration::from_millis(500));
        set("-30 seconds");
        running.end().expect(0, &[]);
        let report = report(&bundle);
        let longest = |cpu: &Value| cpu["duration_ns"].as_i64().unwrap();
        assert!(report["cpus"].as_array().unwrap().iter().all(|cpu| longest(cpu) < 3_000_000_000), "{report:#}");
        bench.is_untouched("after the clock", &[]);
    });
}

/// Segments of a moment, ended at any moment: what is stored is whole.
#[test]
fn ended_between_segments() {
    let Some(bench) = bench() else { return };
    let signals = ["INT", "TERM"];
    attack(
        "one signal to record at a random moment between short segments",
        Tries { all: 25, few: 2 },
        |_, random: &mut Random| {
            let folder = folder();
            let bundle = folder.path().join("run");
            let mut running = Running::start(recording(&bundle, &["--until-stopped", "--segment", "100ms"]));
            running.wait_for_start(&bundle);
            thread::sleep(random.time(Duration::from_millis(500)));
            running.signal(signals[random.below(2)]);
            running.end().expect(0, &[]);
            assert_eq!(report(&bundle)["nodes"][0]["ended"], "signal");
            assert!(segments(&bundle) >= 1);
            bench.is_untouched("after a signal", &[]);
        },
    );
}
