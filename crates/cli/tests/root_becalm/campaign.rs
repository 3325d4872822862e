//! Campaigns of `becalm cost` that are interrupted or killed, and go on. Needs root and two CPUs.

use std::fs;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use becalm_linux::procfs::interrupts::Interrupts;
use becalm_linux::sched::allowed_cpus;
use becalm_testing::program::{Running, becalm, document_path, path, run, run_becalm};
use becalm_testing::{Need, attempts, machine_has, wait_until};
use becalm_units::CpuId;
use serde_json::Value;

/// The CPU to measure, where the machine allows it.
fn cpu() -> Option<CpuId> {
    if !machine_has(&[Need::Root, Need::TwoCpus]) {
        return None;
    }
    allowed_cpus().expect("the kernel tells where we may run").iter().last()
}

/// Interrupts a second that the campaigns add: far more than any tick.
const ADDED: u64 = 10_000;

/// The timer interrupts that a CPU takes in a second, by a third of one.
fn timer_rate(cpu: CpuId) -> f64 {
    let count = || Interrupts::read(Path::new("/")).ok().and_then(|all| all.count("LOC", cpu)).unwrap_or(0);
    let (start, before) = (Instant::now(), count());
    thread::sleep(Duration::from_millis(300));
    (count() - before) as f64 / start.elapsed().as_secs_f64()
}

fn sample_limit() -> String {
    fs::read_to_string("/proc/sys/kernel/perf_event_max_sample_rate").expect("this kernel has perf events")
}

/// What is stored in the bundle's only document under a key; nothing before there is one.
fn stored(bundle: &Path, key: fn(&Value) -> &Value) -> Vec<Value> {
    let text = document_path(bundle).and_then(|path| fs::read_to_string(path).ok());
    let document: Option<Value> = text.map(|text| serde_json::from_str(&text).expect("what is stored is whole"));
    document.as_ref().and_then(|document| key(document).as_array().cloned()).unwrap_or_default()
}

fn cells(bundle: &Path) -> Vec<Value> {
    stored(bundle, |document| &document["cells"])
}

/// The processes whose command line has this word.
fn processes_of(word: &str) -> Vec<String> {
    let all = fs::read_dir("/proc").expect("there is a /proc").flatten();
    let command = |entry: fs::DirEntry| fs::read_to_string(entry.path().join("cmdline")).ok();
    all.filter_map(command).filter(|command| command.split('\0').any(|part| part == word)).collect()
}

fn tick(arguments: &[&str]) -> Running {
    Running::start(becalm(&[&["cost", "tick"], arguments].concat()))
}

/// Killed, then interrupted, then terminated, each time in its midst, and each time it goes on: nothing is lost, nothing is
/// measured twice, and the machine is left as it was found.
#[test]
fn a_campaign_survives_whatever_ends_it() {
    let Some(cpu) = cpu() else { return };
    let folder = tempfile::tempdir().unwrap();
    let bundle = folder.path().join("tick.becalm");
    let limit = sample_limit();
    let (cpu_text, rates) = (cpu.to_string(), format!("idle,{ADDED}"));
    let begin = [
        "--cpu",
        &cpu_text,
        "--rates",
        &rates,
        "--copies",
        "1,2",
        "--rounds",
        "4",
        "--cell",
        "80ms",
        "-o",
        path(&bundle),
    ];
    let planned = 4 * (2 * 3 + 1);
    let resume = ["--resume", path(&bundle)];
    let mut before: Vec<Value> = Vec::new();
    for (session, signal) in ["KILL", "INT", "TERM"].into_iter().enumerate() {
        let mut running = tick(if session == 0 { &begin } else { &resume });
        let known = before.len();
        running.wait_until("some cells are measured", || cells(&bundle).len() > known + 3);
        running.signal(signal);
        let ended = running.end();
        let now = cells(&bundle);
        assert!(now.len() > known && now.len() < planned, "{} cells after {signal}", now.len());
        assert_eq!(now[..known], before, "what was measured stays as it was");
        before = now;
        match signal {
            "KILL" => assert_eq!((ended.code, ended.stdout.as_str()), (128 + 9, "")),
            _ => {
                let said = format!(
                    "interrupted after {} of {planned} measurements; go on with: becalm cost tick --resume {}",
                    before.len(),
                    path(&bundle)
                );
                ended.expect(1, &[&said]);
                assert_eq!(ended.stdout, "", "no figures of a campaign that is not complete");
            }
        }
        // So do the copies, which are processes of their own with the same command line.
        wait_until("the copies have ended", || processes_of(path(&bundle)).is_empty());
        // The interrupts end with the process, however it ends; other processes' ticks are far fewer.
        let rate = timer_rate(cpu);
        assert!(rate < ADDED as f64 / 2.0, "{rate} interrupts a second after {signal}");
        assert_eq!(sample_limit(), limit);
    }
    let ended = tick(&[&resume[..], &["--json"]].concat()).end();
    ended.expect(0, &["stored in"]);
    let all = cells(&bundle);
    assert_eq!((all.len(), &all[..before.len()]), (planned, &before[..]));
    assert_eq!(sample_limit(), limit);
    let report: Value = serde_json::from_str(&ended.stdout).expect("standard output is one document");
    assert_eq!((&report["schema"], &report["campaign"]["rounds_complete"]), (&"becalm.cost-tick/1".into(), &4.into()));
    assert_eq!(report["processors"][0]["pairs"], 2);
    // Now that it is complete, going on measures nothing more, and the stored figures are these.
    assert_eq!(tick(&[&resume[..], &["--json"]].concat()).end().stdout, ended.stdout);
    assert_eq!(cells(&bundle), all);
    assert_eq!(run_becalm(&["report", "--json", path(&bundle)]).expect(0, &[]).stdout, ended.stdout);
    assert_eq!(run_becalm(&["cost", "tick", "--json", "--from", path(&bundle)]).expect(0, &[]).stdout, ended.stdout);
    run(becalm(&["cost", "tick", "--cpu", &cpu_text, "-o", path(&bundle)])).expect(1, &["is there already"]);
}

/// A paper's campaign that is stopped in such a step goes on with what the step has, and not anew.
#[test]
fn a_paper_goes_on_in_the_midst_of_a_step() {
    if cpu().is_none() {
        return;
    }
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("campaign");
    let campaign =
        || Running::start(becalm(&["paper", "tsafrir2007", "--table", "1", "--quick", "--json", "-o", path(&folder)]));
    let bundle = folder.join("tick.becalm");
    let mut running = campaign();
    running.wait_until("some cells are measured", || cells(&bundle).len() > 3);
    running.signal("TERM");
    running.end().expect(128 + 15, &["it goes on from here"]);
    let before = cells(&bundle);
    let ended = campaign().end();
    ended.expect(0, &["step 1 of 1: becalm cost tick --resume tick.becalm"]);
    assert_eq!(cells(&bundle)[..before.len()], before);
    let found: Value = serde_json::from_str(&ended.stdout).expect("standard output is one document");
    assert_eq!(found["counts"]["other_machine"], found["counts"]["figures"], "{found:#}");
    let stored: Value = serde_json::from_slice(&fs::read(folder.join("steps/tick.json")).unwrap()).unwrap();
    assert!(stored["command"].as_str().is_some_and(|command| command.starts_with("becalm cost tick --rates")));
    assert!(!folder.join("steps/tick.begun").exists());
}

/// What was measured before a signal is stored, shown, and said to be a part.
#[test]
fn an_interrupted_measurement_keeps_what_it_has() {
    let Some(cpu) = cpu() else { return };
    let folder = tempfile::tempdir().unwrap();
    let cpu = cpu.to_string();

    let bundle = folder.path().join("scheduler.becalm");
    let arguments = ["cost", "scheduler", "--cpu", &cpu, "--runnable", "1,2,4,8,16,32", "--window", "400ms", "--json"];
    let mut running = Running::start(becalm(&[&arguments[..], &["-o", path(&bundle)]].concat()));
    running
        .wait_until("a number is measured", || !stored(&bundle, |document| &document["measured"]["rows"]).is_empty());
    running.signal("INT");
    let ended = running.end();
    ended.expect(1, &["interrupted before", "stored in"]);
    let report: Value = serde_json::from_str(&ended.stdout).expect("standard output is one document");
    let rows = report["rows"].as_array().expect("rows").len();
    assert!((1..6).contains(&rows), "{report:#}");
    assert_eq!(
        report["incomplete"],
        format!("a signal ended it: only {rows} of 6 numbers of runnable processes are complete")
    );
    assert_eq!(run_becalm(&["report", "--json", path(&bundle)]).expect(0, &[]).stdout, ended.stdout);

    // Killed while it measured, it leaves a bundle that says so.
    let bundle = folder.path().join("trap.becalm");
    let mut running = Running::start(becalm(&["cost", "trap", "--cpu", &cpu, "-o", path(&bundle)]));
    running.wait_for_start(&bundle);
    running.signal("KILL");
    assert_eq!(running.end().code, 128 + 9);
    run_becalm(&["report", path(&bundle)]).expect(1, &["becalm cost trap ended before it had measured anything"]);

    // Interrupted, it has the probes until then. How long all of them take depends on the machine, so that is measured.
    let clock = |name: &str| {
        let bundle = folder.path().join(name);
        let mut running =
            Running::start(becalm(&["cost", "clock", "--cpu", &cpu, "--json", "--over", "1s", "-o", path(&bundle)]));
        running.wait_for_start(&bundle);
        running
    };
    let running = clock("whole.becalm");
    let begun = Instant::now();
    running.end().expect(0, &[]);
    let mut wait = begun.elapsed();
    let report = attempts(3, || {
        wait /= 2;
        let running = clock(&format!("clock-{}.becalm", wait.as_nanos()));
        thread::sleep(wait);
        running.signal("INT");
        let ended = running.end();
        if ended.code == 0 {
            return Err(format!("the signal came too late, after {wait:?}"));
        }
        ended.expect(1, &["stored in"]);
        Ok(serde_json::from_str::<Value>(&ended.stdout).expect("standard output is one document"))
    });
    assert!(report["incomplete"].as_str().is_some_and(|said| said.starts_with("a signal ended it: ")), "{report:#}");
}

/// The cost by placement, stored and shown again; without a sibling it says so.
#[test]
fn placement_is_stored_and_says_what_is_missing() {
    let Some(cpu) = cpu() else { return };
    let folder = tempfile::tempdir().unwrap();
    let bundle = folder.path().join("placement.becalm");
    let cpu = cpu.to_string();
    let arguments =
        ["cost", "placement", "--cpu", &cpu, "--rounds", "6", "--cell", "60ms", "--rate", "10000", "--json"];
    // The hypervisor takes CPUs away at times, which hits single cells. So the median of all kinds of work counts, over all
    // attempts until now.
    let (mut same, mut other) = (Vec::new(), Vec::new());
    attempts(3, || {
        let ended = run_becalm(&[&arguments[..], &["-o", path(&bundle)]].concat());
        ended.expect(0, &["stored in"]);
        assert_eq!(run_becalm(&["report", "--json", path(&bundle)]).expect(0, &[]).stdout, ended.stdout);
        fs::remove_dir_all(&bundle).unwrap();
        let report: Value = serde_json::from_str(&ended.stdout).expect("standard output is one document");
        let rows = report["rows"].as_array().expect("rows");
        let costs = |place: &str| -> Vec<f64> {
            rows.iter().filter(|row| row["place"] == place).filter_map(|row| row["cost_ns"].as_f64()).collect()
        };
        let siblings = !costs("sibling").is_empty();
        let missing = report["missing"].as_array().expect("a list");
        let no_sibling = |text: &Value| text.as_str().is_some_and(|text| text.contains("sibling"));
        assert_eq!(missing.iter().any(no_sibling), !siblings, "{report:#}");
        assert_eq!(costs("same").len(), 3, "{report:#}");
        same.extend(costs("same"));
        other.extend(costs("other"));
        let said = format!("same {same:?}, other {other:?}");
        eprintln!("{said}");
        let here = median(&same).expect("there are three");
        if here > 500.0 && median(&other).is_none_or(|other| other < here / 2.0) {
            Ok(())
        } else {
            Err(format!("an interrupt must cost work where it comes, and not elsewhere: {said}"))
        }
    });
}

/// The median, or the upper of the two in the middle; `None` for no values.
fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied()
}

/// Loops at two interrupt rates do the same work; the trace counts the interrupts that were added, and they cost time.
#[test]
fn loops_at_several_interrupt_rates_are_held_beside_each_other() {
    let Some(cpu) = cpu() else { return };
    let cpu = cpu.to_string();
    let limit = sample_limit();
    attempts(3, || {
        let folder = tempfile::tempdir().unwrap();
        let bundle = folder.path().join("loops.becalm");
        let rates = format!("{ADDED},idle");
        let words = [
            "work",
            "--cpus",
            &cpu,
            "--rates",
            &rates,
            "--samples",
            "600",
            "--no-counters",
            "--json",
            "-o",
            path(&bundle),
        ];
        let report: Value = serde_json::from_str(&run_becalm(&words).expect(0, &[]).stdout).unwrap();
        for name in ["loops-idle.becalm", &format!("loops-{ADDED}hz.becalm")] {
            assert!(folder.path().join(name).is_dir(), "{name}");
        }
        let [idle, raised] = report["comparison"].as_array().unwrap().as_slice() else { panic!("{report}") };
        let iterations = |run: usize| &report["runs"][run]["cpus"][0]["iterations"];
        assert_eq!(iterations(0), iterations(1), "both do the same");
        assert_eq!((&idle["added_hz"], &raised["added_hz"]), (&0.0.into(), &(ADDED as f64).into()));
        assert_eq!(sample_limit(), limit);
        let figure = |row: &Value, name: &str| row[name].as_f64().unwrap_or(f64::NAN);
        let added = figure(raised, "interrupts_hz") - figure(idle, "interrupts_hz");
        let slower = figure(raised, "mean_ns") / figure(idle, "mean_ns");
        let fits = (0.8..1.2).contains(&(added / ADDED as f64)) && slower > 1.005;
        if fits { Ok(()) } else { Err(format!("{added} interrupts a second more, {slower} times as long")) }
    });
}

/// Several bodies are one table and one document; a run of each is stored.
#[test]
fn several_bodies_are_held_beside_each_other() {
    let Some(cpu) = cpu() else { return };
    let cpu = cpu.to_string();
    let folder = tempfile::tempdir().unwrap();
    let bundle = folder.path().join("bodies.becalm");
    let words = ["work", "--cpus", &cpu, "--body", "sum,call,empty", "--samples", "100", "--json", "-o", path(&bundle)];
    let report: Value = serde_json::from_str(&run_becalm(&words).expect(0, &[]).stdout).unwrap();
    let bodies: Vec<&str> =
        report["comparison"].as_array().unwrap().iter().map(|row| row["body"].as_str().unwrap()).collect();
    assert_eq!(bodies, ["sum", "call", "empty"]);
    assert!(folder.path().join("bodies-call.becalm").is_dir());
}

/// Several bodies work at once, each on a CPU of its own, until the means of all have settled; resumed, they do the same again.
#[test]
fn several_bodies_work_at_once() {
    let allowed: Vec<CpuId> = allowed_cpus().unwrap().iter().collect();
    let [.., first, second] = allowed[..] else { return eprintln!("skipped: two bodies at once need two CPUs") };
    let folder = tempfile::tempdir().unwrap();
    let bundle = folder.path().join("at-once.becalm");
    let bodies = |report: &str| -> Vec<(u64, String, u64)> {
        let report: Value = serde_json::from_str(report).unwrap();
        let of = |cpu: &Value| {
            let text = cpu["loop_body"].as_str().unwrap().to_owned();
            (cpu["cpu"].as_u64().unwrap(), text, cpu["samples"].as_u64().unwrap())
        };
        report["runs"][0]["cpus"].as_array().unwrap().iter().map(of).collect()
    };
    let words =
        ["--body", "call,sum", "--at-once", "--grain", "200us", "--maiv", "20%", "--no-sources", "--json", "-o"];
    let ended = run_becalm(&[&["work"], &words[..], &[path(&bundle)]].concat());
    let found = bodies(&ended.expect(0, &[]).stdout);
    let named: Vec<(u64, &str)> = found.iter().map(|(cpu, body, _)| (*cpu, body.as_str())).collect();
    assert_eq!(named, [(first.get().into(), "call"), (second.get().into(), "sum")]);
    assert!(found.iter().all(|(_, _, samples)| *samples >= 5), "{found:?}");
    let again = run_becalm(&["work", "--resume", path(&bundle), "--maiv", "20%", "--no-sources", "--json"]);
    let resumed = bodies(&again.expect(0, &[]).stdout);
    for ((cpu, body, before), (same_cpu, same_body, after)) in found.iter().zip(&resumed) {
        assert!((cpu, body) == (same_cpu, same_body) && after > before, "{found:?} {resumed:?}");
    }
}
