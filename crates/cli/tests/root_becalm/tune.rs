//! `becalm tune` on this kernel: applied, restored, run inside, killed. Needs root and two CPUs.
//!
//! What was before is looked at without becalm's code, and compared byte by byte.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use becalm_linux::sched::allowed_cpus;
use becalm_testing::program::{Ended, Running, becalm, path, run, run_becalm};
use becalm_testing::{Need, machine_has};
use serde_json::Value;

/// One machine can be tuned once at a time.
static MACHINE: Mutex<()> = Mutex::new(());

/// A folder for the journal, and the machine as it was. However a test ends, the machine is that again.
struct Bench {
    journal: tempfile::TempDir,
    cpu: String,
    before: BTreeMap<PathBuf, Vec<u8>>,
    threads: BTreeMap<(i32, u64), String>,
    _machine: MutexGuard<'static, ()>,
}

impl Bench {
    fn new() -> Option<Self> {
        let machine = MACHINE.lock().unwrap_or_else(PoisonError::into_inner);
        if !machine_has(&[Need::Root, Need::TwoCpus]) {
            return None;
        }
        let cpu = allowed_cpus().expect("the kernel tells where we may run").iter().last()?;
        let journal = tempfile::tempdir().expect("a folder can be made");
        let cpu = cpu.to_string();
        Some(Self { journal, cpu, before: files(), threads: threads(), _machine: machine })
    }

    fn folder(&self) -> &str {
        path(self.journal.path())
    }

    /// A command line of `becalm tune`, with the journal.
    fn tune(&self, words: &[&str]) -> Command {
        let (what, rest) = words.split_first().expect("a subcommand is given");
        becalm(&[&["tune", what, "--journal", self.folder()], rest].concat())
    }

    fn journal(&self) -> PathBuf {
        self.journal.path().join("journal.jsonl")
    }

    /// Everything is as it was.
    #[track_caller]
    fn is_as_before(&self, when: &str) {
        assert!(!self.journal().exists(), "{when}: the journal is still there");
        let now = files();
        for (path, text) in &self.before {
            let text_of = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            let now = now.get(path).map(|bytes| text_of(bytes));
            assert_eq!(now, Some(text_of(text)), "{when}: {}", path.display());
        }
        assert_eq!(now.len(), self.before.len(), "{when}: files came");
        let now = threads();
        let changed: Vec<_> = self
            .threads
            .iter()
            .filter_map(|(thread, cpus)| Some((thread, cpus, now.get(thread)?)))
            .filter(|(_, cpus, now)| cpus != now)
            .collect();
        assert!(changed.is_empty(), "{when}: {changed:?}");
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        if self.journal().exists() {
            let ended = run(self.tune(&["restore", "--force"]));
            eprintln!("restored after a failure: {ended:#?}");
        }
    }
}

/// All files that a plan may touch, with what is in them.
fn files() -> BTreeMap<PathBuf, Vec<u8>> {
    let mut paths: Vec<PathBuf> = [
        "/proc/irq/default_smp_affinity",
        "/proc/sys/kernel/watchdog_cpumask",
        "/proc/sys/kernel/nmi_watchdog",
        "/proc/sys/kernel/timer_migration",
        "/proc/sys/kernel/numa_balancing",
        "/proc/sys/kernel/sched_rt_runtime_us",
        "/proc/sys/vm/stat_interval",
        "/sys/kernel/mm/ksm/run",
        "/sys/kernel/mm/transparent_hugepage/enabled",
        "/sys/kernel/mm/transparent_hugepage/khugepaged/defrag",
        "/sys/module/haltpoll/parameters/guest_halt_poll_ns",
        "/sys/devices/virtual/workqueue/cpumask",
        "/sys/devices/system/cpu/online",
        "/sys/fs/cgroup/cgroup.subtree_control",
        "/sys/fs/cgroup/cpuset/cpuset.sched_load_balance",
        "/sys/fs/cgroup/cpuset/cpuset.cpus",
        "/sys/fs/cgroup/cpuset/cpuset.mems",
    ]
    .map(PathBuf::from)
    .to_vec();
    let inside = |folder: &str, name: &str| {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        entries.map(|entry| entry.path().join(name)).collect::<Vec<_>>()
    };
    paths.extend(inside("/proc/irq", "smp_affinity_list"));
    paths.extend(inside("/sys/devices/virtual/workqueue", "cpumask"));
    paths.extend(inside("/sys/fs/cgroup", "cpuset.cpus.partition"));
    paths.extend(inside("/sys/fs/cgroup/cpuset", "cpuset.cpus"));
    for cpu in inside("/sys/devices/system/cpu", "") {
        paths.push(cpu.join("online"));
        paths.push(cpu.join("cpufreq/scaling_governor"));
        paths.extend(inside(path(&cpu.join("cpuidle")), "disable"));
    }
    for device in inside("/sys/class/net", "queues") {
        paths.extend(inside(path(&device), "rps_cpus"));
    }
    paths.into_iter().filter_map(|path| Some((path.clone(), fs::read(&path).ok()?))).collect()
}

/// Where every thread may run, by its number and its start.
fn threads() -> BTreeMap<(i32, u64), String> {
    let mut found = BTreeMap::new();
    for process in fs::read_dir("/proc").expect("proc can be listed").flatten() {
        for thread in fs::read_dir(process.path().join("task")).into_iter().flatten().flatten() {
            let text = |name: &str| fs::read_to_string(thread.path().join(name)).unwrap_or_default();
            let (stat, status) = (text("stat"), text("status"));
            let start = stat.rsplit_once(") ").and_then(|(_, rest)| rest.split(' ').nth(19)?.parse().ok());
            let cpus = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:\t"));
            let tid = thread.file_name().to_string_lossy().parse().ok();
            if let (Some(start), Some(cpus), Some(tid)) = (start, cpus, tid) {
                found.insert((tid, start), cpus.to_owned());
            }
        }
    }
    found
}

fn document(ended: &Ended) -> Value {
    serde_json::from_str(&ended.stdout).unwrap_or_else(|error| panic!("{error}: {ended:#?}"))
}

#[test]
fn every_profile_goes_and_comes_back() {
    let Some(bench) = Bench::new() else { return };
    for profile in ["hpc", "rt", "benchmark", "cloud-guest"] {
        let ended = run(bench.tune(&["apply", "--cpus", &bench.cpu, "--profile", profile, "--json"]));
        ended.expect(0, &[]);
        let applied = document(&ended);
        assert_eq!(applied["schema"], "becalm.tune-apply/1");
        let made = applied["knobs"].as_array().unwrap().iter().filter(|knob| knob["outcome"] == "changed").count();
        assert!(made > 10, "{applied:#}");
        assert_ne!(files(), bench.before);
        let status = document(run(bench.tune(&["status", "--json"])).expect(0, &[]));
        assert_eq!((&status["state"], &status["cpus"]), (&"tuned".into(), &bench.cpu.as_str().into()));
        run(bench.tune(&["apply", "--cpus", &bench.cpu])).expect(1, &["becalm tune restore", "--extend"]);
        run(bench.tune(&["apply", "--cpus", &bench.cpu, "--profile", "rt", "--extend"])).expect(0, &[]);
        let restored = document(run(bench.tune(&["restore", "--json"])).expect(0, &[]));
        assert_eq!(restored["state"], "restored");
        bench.is_as_before(profile);
    }
    run(bench.tune(&["restore"])).expect(0, &[]);
    assert_eq!(document(run(bench.tune(&["status", "--json"])).expect(0, &[]))["state"], "untuned");
}

#[test]
fn what_others_change_meanwhile_is_theirs() {
    let Some(bench) = Bench::new() else { return };
    run(bench.tune(&["apply", "--cpus", &bench.cpu, "--only", "vmstat,watchdog"])).expect(0, &[]);
    fs::write("/proc/sys/vm/stat_interval", "77").unwrap();
    let ended = run(bench.tune(&["restore"]));
    ended.expect(1, &[]);
    assert!(ended.stdout.contains("77") && ended.stdout.contains("foreign"), "{ended:#?}");
    assert_eq!(fs::read_to_string("/proc/sys/vm/stat_interval").unwrap(), "77\n");
    run(bench.tune(&["restore", "--force"])).expect(0, &[]);
    bench.is_as_before("forced");
}

#[test]
fn a_command_runs_there_and_its_exit_code_comes_back() {
    let Some(bench) = Bench::new() else { return };
    let script = "grep Cpus_allowed_list /proc/self/status; cat /proc/sys/vm/stat_interval; exit 7";
    let ended = run(bench.tune(&["run", "--cpus", &bench.cpu, "--", "sh", "-c", script]));
    ended.expect(7, &[]);
    assert_eq!(ended.stdout, format!("Cpus_allowed_list:\t{}\n120\n", bench.cpu));
    bench.is_as_before("after exit code 7");
    // A program that is not there, one that cannot be executed, and CPUs that cannot all be given.
    run(bench.tune(&["run", "--cpus", &bench.cpu, "--", "no-such-program"])).expect(1, &["no-such-program"]);
    let text = bench.journal.path().join("text");
    fs::write(&text, "#!/no/such/interpreter\n").unwrap();
    fs::set_permissions(&text, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    run(bench.tune(&["run", "--cpus", &bench.cpu, "--", path(&text)])).expect(1, &["cannot start"]);
    let all = allowed_cpus().unwrap().to_string();
    run(bench.tune(&["run", "--cpus", &all, "--", "true"])).expect(2, &["no CPU would be left"]);
    bench.is_as_before("after what could not run");
}

#[test]
fn the_priority_is_the_commands() {
    let Some(bench) = Bench::new() else { return };
    // Policy and priority are the 41st and the 40th field of stat.
    let script = "cut -d' ' -f40,41 /proc/self/stat; cat /proc/sys/kernel/sched_rt_runtime_us";
    let ended = run(bench.tune(&["run", "--cpus", &bench.cpu, "--priority", "rr:80", "--", "sh", "-c", script]));
    if ended.code != 0 {
        // In a cgroup v1 without a budget for it no process may be real-time.
        ended.expect(1, &["cannot start"]);
        eprintln!("real-time classes are not to be had here: {}", ended.stderr);
    } else {
        assert_eq!(ended.stdout, "80 2\n-1\n");
    }
    bench.is_as_before("after a priority");
}

#[test]
fn signals_are_passed_on() {
    let Some(bench) = Bench::new() else { return };
    for (signal, code) in [("TERM", 128 + 15), ("USR1", 9), ("INT", 128 + 2)] {
        let ready = bench.journal.path().join(format!("ready-{signal}"));
        let script = format!("trap 'exit 9' USR1; : > {}; while :; do sleep 0.05; done", path(&ready));
        let mut running = Running::start(bench.tune(&["run", "--cpus", &bench.cpu, "--", "sh", "-c", &script]));
        running.wait_until("the command runs", || ready.exists());
        running.signal(signal);
        let ended = running.end();
        assert_eq!(ended.code, code, "{signal}: {ended:#?}");
        bench.is_as_before(signal);
    }
}

#[test]
fn killed_while_its_command_runs_everything_comes_back() {
    let Some(bench) = Bench::new() else { return };
    let ready = bench.journal.path().join("ready");
    // The command lives on; it is not becalm's to end.
    let script = format!(": > {}; sleep 2", path(&ready));
    let mut running = Running::start(bench.tune(&["run", "--cpus", &bench.cpu, "--", "sh", "-c", &script]));
    running.wait_until("the command runs", || ready.exists());
    let status = document(run(bench.tune(&["status", "--json"])).expect(0, &[]));
    assert_eq!(status["state"], "running");
    run(bench.tune(&["restore"])).expect(1, &["--force"]);
    running.signal("KILL");
    running.end().expect(128 + 9, &["the settings are as they were"]);
    bench.is_as_before("after SIGKILL");
}

#[test]
fn killed_while_applying_everything_comes_back() {
    let Some(bench) = Bench::new() else { return };
    let mut unfinished = 0;
    for delay in (0..300).step_by(30) {
        let running = Running::start(bench.tune(&["apply", "--cpus", &bench.cpu, "--profile", "rt"]));
        thread::sleep(Duration::from_millis(delay));
        running.signal("KILL");
        running.end();
        if bench.journal().exists() {
            let status = document(run(bench.tune(&["status", "--json"])).expect(0, &[]));
            unfinished += usize::from(status["state"] == "unfinished");
        }
        run(bench.tune(&["restore"])).expect(0, &[]);
        let _ = fs::remove_file(bench.journal.path().join("restored.jsonl"));
        bench.is_as_before(&format!("killed after {delay} ms"));
    }
    eprintln!("{unfinished} of 10 were killed during their changes");
}

#[test]
fn what_it_brought_is_shown() {
    let Some(bench) = Bench::new() else { return };
    let keep = bench.journal.path().join("proof");
    let words = ["run", "--cpus", &bench.cpu, "--quiet", "--verify", "--verify-duration", "300ms", "--verify-output"];
    let ended = run(bench.tune(&[&words[..], &[path(&keep), "--", "echo", "inside"]].concat()));
    ended.expect(0, &["before.becalm", "inside.becalm"]);
    assert_eq!(ended.stdout, "inside\n");
    bench.is_as_before("after a proof");
    for run in ["before.becalm", "inside.becalm"] {
        run_becalm(&["report", "--json", path(&keep.join(run))]).expect(0, &[]);
    }
    // Without a command the comparison is the result.
    let ended = run(bench.tune(&["run", "--cpus", &bench.cpu, "--verify", "--verify-duration", "300ms"]));
    ended.expect(0, &[]);
    assert!(ended.stdout.contains("before.becalm"), "{ended:#?}");
    bench.is_as_before("after a proof without a command");
    assert!(!Path::new("before.becalm").exists());
}

#[test]
fn a_study_records_each_configuration_and_leaves_nothing() {
    let Some(bench) = Bench::new() else { return };
    let study = bench.journal.path().join("node.study");
    let size = ["--duration", "500ms", "--ranks", "64", "--phases", "100"];
    let ended = run(becalm(&[&["tune", "study", "--json", "-o", path(&study)], &size[..]].concat()));
    let study_json = document(ended.expect(0, &["the recordings are in"]));
    bench.is_as_before("after a study");
    for configuration in study_json["configurations"].as_array().expect("it has configurations") {
        let name = configuration["configuration"].as_str().expect("each has a name");
        if let Some(why) = configuration["skipped"].as_str() {
            // Nothing but the hardware is in the way of root with two CPUs.
            assert_eq!((name, why), ("sibling-idle", "no core here runs two hardware threads"));
            continue;
        }
        let figure = |figure: &str| configuration[figure].as_f64().unwrap_or_else(|| panic!("{name} has no {figure}"));
        assert!((0.0..1.0).contains(&figure("noise_ratio")) && figure("slowdown_ratio") >= 1.0, "{name}");
        assert!(study.join(format!("{name}.becalm")).is_dir(), "{name}");
    }
    let isolated = &study_json["configurations"][2];
    assert_eq!((isolated["configuration"].as_str(), isolated["sched"].as_str()), (Some("isolated"), Some("other")));
    // Shown again, it is the same.
    let again = run(becalm(&[&["tune", "study", "--json", "--from", path(&study)], &size[2..]].concat()));
    assert_eq!(document(again.expect(0, &[])), study_json);
}

#[test]
fn a_study_that_is_stopped_keeps_what_it_has_and_leaves_nothing() {
    let Some(bench) = Bench::new() else { return };
    let study = bench.journal.path().join("node.study");
    let words =
        ["tune", "study", "--only", "baseline,isolated", "--duration", "2s", "--no-sources", "-o", path(&study)];
    let mut running = Running::start(becalm(&words));
    running.wait_until("the isolated CPU to be recorded", || study.join("isolated.becalm/runs").is_dir());
    running.signal("TERM");
    let ended = running.end();
    ended.expect(1, &["interrupted at isolated"]);
    bench.is_as_before("after a study that was stopped");
    let again = run(becalm(&["tune", "study", "--json", "--ranks", "64", "--phases", "100", "--from", path(&study)]));
    let shown = document(again.expect(0, &[]));
    assert_eq!(shown["configurations"][0]["run"].as_str(), Some("baseline.becalm"));
    assert_eq!(shown["configurations"][1]["run"].as_str(), None);
}
