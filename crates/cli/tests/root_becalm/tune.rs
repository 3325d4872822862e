//! `becalm tune` on this kernel: applied, restored, run inside, killed. Needs root and two CPUs.
//!
//! What was before is looked at without becalm's code, and compared byte by byte.

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::Duration;

use becalm_linux::sched::allowed_cpus;
use becalm_testing::machine::{Bench, Mounted, knobs};
use becalm_testing::program::{Ended, Running, becalm, path, run, run_becalm};
use becalm_testing::{Need, machine_has};
use serde_json::Value;

fn document(ended: &Ended) -> Value {
    serde_json::from_str(&ended.stdout).unwrap_or_else(|error| panic!("{error}: {ended:#?}"))
}

#[test]
fn every_profile_goes_and_comes_back() {
    let Some(bench) = Bench::new() else { return };
    for profile in ["hpc", "rt", "benchmark", "cloud-guest"] {
        let ended = run(bench.tune(&["apply", "--cpus", bench.cpu(), "--profile", profile, "--json"]));
        ended.expect(0, &[]);
        let applied = document(&ended);
        assert_eq!(applied["schema"], "becalm.tune-apply/1");
        let made = applied["knobs"].as_array().unwrap().iter().filter(|knob| knob["outcome"] == "changed").count();
        assert!(made > 10, "{applied:#}");
        assert_ne!(&knobs(), bench.originals());
        let status = document(run(bench.tune(&["status", "--json"])).expect(0, &[]));
        assert_eq!((&status["state"], &status["cpus"]), (&"tuned".into(), &bench.cpu().into()));
        run(bench.tune(&["apply", "--cpus", bench.cpu()])).expect(1, &["becalm tune restore", "--extend"]);
        run(bench.tune(&["apply", "--cpus", bench.cpu(), "--profile", "rt", "--extend"])).expect(0, &[]);
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
    run(bench.tune(&["apply", "--cpus", bench.cpu(), "--only", "vmstat,watchdog"])).expect(0, &[]);
    fs::write("/proc/sys/vm/stat_interval", "77").unwrap();
    let ended = run(bench.tune(&["restore"]));
    ended.expect(1, &[]);
    assert!(ended.stdout.contains("77") && ended.stdout.contains("foreign"), "{ended:#?}");
    assert_eq!(fs::read_to_string("/proc/sys/vm/stat_interval").unwrap(), "77\n");
    run(bench.tune(&["restore", "--force"])).expect(0, &[]);
    bench.is_as_before("forced");
}

/// Without --keep the journal stays, since what the line said is lost.
#[test]
fn a_damaged_line_is_named_and_the_rest_restored() {
    let Some(bench) = Bench::new() else { return };
    run(bench.tune(&["apply", "--cpus", bench.cpu(), "--only", "vmstat,watchdog"])).expect(0, &[]);
    let text = fs::read_to_string(bench.journal()).unwrap();
    let at = text.lines().position(|line| line.contains("\"record\":\"done\"")).unwrap() + 1;
    fs::write(bench.journal(), text.replacen("\"record\":\"done\"", "\"record\":\"d\u{fffd}\"", 1)).unwrap();
    let named = format!("line {at} of the journal is damaged");
    for _ in 0..2 {
        run(bench.tune(&["restore"])).expect(1, &[&named]);
        assert!(bench.journal().exists());
        assert_eq!(
            fs::read("/proc/sys/vm/stat_interval").unwrap(),
            bench.originals()[Path::new("/proc/sys/vm/stat_interval")]
        );
    }
    assert!(run(bench.tune(&["status"])).expect(0, &[]).stdout.contains(&named));
    run(bench.tune(&["apply", "--cpus", bench.cpu(), "--only", "vmstat"])).expect(1, &["--keep"]);
    run(bench.tune(&["restore", "--keep"])).expect(0, &[]);
    bench.is_as_before("after a damaged line");
}

/// A shell that is moved starts one program by taskset, on just the CPUs that it has itself, and the same program without.
#[test]
fn what_taskset_started_meanwhile_keeps_its_cpus() {
    let Some(bench) = Bench::new() else { return };
    if !machine_has(&[Need::Program("taskset"), Need::Program("bash")]) {
        return;
    }
    let cpus_of = |pid: &str| {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
        status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:\t")).unwrap().to_owned()
    };
    let before = cpus_of("self");
    let (script, go, pids) = (bench.place().join("script"), bench.place().join("go"), bench.place().join("pids"));
    // It ends by itself should the test fail. Its own command line does not name taskset.
    let lines = "until [ -e \"$1\" ]; do sleep 0.05; done\ncpus=$(taskset -pc $$); cpus=${cpus##*: }\n\
                 taskset -c $cpus sleep 300 & first=$!\nsleep 300 & second=$!\n\
                 until [ $(cat /proc/$first/comm)$(cat /proc/$second/comm) = sleepsleep ]; do sleep 0.05; done\n\
                 echo $first $second > \"$2.new\"; mv \"$2.new\" \"$2\"; wait\n";
    fs::write(&script, lines).unwrap();
    let mut shell = Command::new("bash");
    shell.args([path(&script), path(&go), path(&pids)]);
    let mut running = Running::start(shell);
    let mut tuned =
        Running::start(bench.tune(&["run", "--cpus", bench.cpu(), "--only", "affinity", "--", "sleep", "1000"]));
    let is_moved = || cpus_of(&running.pid().to_string()) != before;
    tuned.wait_until("the shell is moved", is_moved);
    tuned.wait_until("all changes are made", || {
        fs::read_to_string(bench.journal()).is_ok_and(|text| text.contains("\"applied\""))
    });
    fs::write(&go, "").unwrap();
    running.wait_until("both programs run", || pids.exists());
    let pids = fs::read_to_string(&pids).unwrap();
    let (chosen, ordinary) = pids.trim().split_once(' ').unwrap();
    let narrow = cpus_of(chosen);
    assert!(narrow != before && cpus_of(ordinary) == narrow);
    tuned.signal("TERM");
    let ended = tuned.end();
    let after = (cpus_of(chosen), cpus_of(ordinary));
    for pid in [chosen, ordinary] {
        assert!(Command::new("kill").args(["-KILL", pid]).status().unwrap().success());
    }
    running.end();
    assert_eq!(after, (narrow, before.clone()), "{ended:#?}");
    ended.expect(128 + 15, &[&format!("sleep ({chosen})"), &format!("taskset -pc {before} PID")]);
    for name in ["script", "go", "pids"] {
        fs::remove_file(bench.place().join(name)).unwrap();
    }
    bench.is_as_before("after taskset");
}

#[test]
fn a_command_runs_there_and_its_exit_code_comes_back() {
    let Some(bench) = Bench::new() else { return };
    let script = "grep Cpus_allowed_list /proc/self/status; cat /proc/sys/vm/stat_interval; exit 7";
    let ended = run(bench.tune(&["run", "--cpus", bench.cpu(), "--", "sh", "-c", script]));
    ended.expect(7, &[]);
    assert_eq!(ended.stdout, format!("Cpus_allowed_list:\t{}\n120\n", bench.cpu()));
    bench.is_as_before("after exit code 7");
    // A program that is not there, one that cannot be executed, and CPUs that cannot all be given.
    run(bench.tune(&["run", "--cpus", bench.cpu(), "--", "no-such-program"])).expect(1, &["no-such-program"]);
    let text = bench.place().join("text");
    fs::write(&text, "#!/no/such/interpreter\n").unwrap();
    fs::set_permissions(&text, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    run(bench.tune(&["run", "--cpus", bench.cpu(), "--", path(&text)])).expect(1, &["cannot start"]);
    let all = allowed_cpus().unwrap().to_string();
    run(bench.tune(&["run", "--cpus", &all, "--", "true"])).expect(2, &["no housekeeping CPU would be left"]);
    bench.is_as_before("after what could not run");
}

/// A machine that starts programs all the time: none of them stays where everything was moved to.
#[test]
fn what_is_started_while_everything_comes_back_is_not_left_behind() {
    let Some(bench) = Bench::new() else { return };
    let all = allowed_cpus().unwrap().to_string();
    // Two generations of processes all the time, each of which lasts longer than what follows.
    let script = "while :; do (sleep 30 & wait) & sleep 0.02; done";
    let mut storm = Command::new("sh");
    storm.args(["-c", script]).process_group(0);
    let mut storm = storm.spawn().unwrap();
    let ended = run(bench.tune(&["run", "--cpus", bench.cpu(), "--", "true"]));
    let group = storm.id().to_string();
    let narrow: Vec<String> = started_by(&group)
        .into_iter()
        .filter(|(_, cpus)| *cpus != all)
        .map(|(pid, cpus)| format!("{pid} on {cpus}"))
        .collect();
    let killed = Command::new("kill").args(["-KILL", "--", &format!("-{group}")]).status().unwrap();
    assert!(killed.success(), "{killed}");
    storm.wait().unwrap();
    ended.expect(0, &[]);
    assert!(narrow.is_empty(), "left where they were moved to: {narrow:?}");
}

/// The processes of a process group, and the CPUs on which each may run.
fn started_by(group: &str) -> Vec<(String, String)> {
    let listed = Command::new("ps").args(["-e", "-o", "pid=,pgid="]).output().unwrap();
    let listed = String::from_utf8(listed.stdout).unwrap();
    let members = listed.lines().filter_map(|line| {
        let (pid, of) = line.trim().split_once(char::is_whitespace)?;
        (of.trim() == group).then(|| pid.to_owned())
    });
    members
        .filter_map(|pid| {
            let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
            let cpus = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
            Some((pid, cpus.trim().to_owned()))
        })
        .collect()
}

#[test]
fn the_priority_is_the_commands() {
    let Some(bench) = Bench::new() else { return };
    // Policy and priority are the 41st and the 40th field of stat.
    let script = "cut -d' ' -f40,41 /proc/self/stat; cat /proc/sys/kernel/sched_rt_runtime_us";
    let ended = run(bench.tune(&["run", "--cpus", bench.cpu(), "--priority", "rr:80", "--", "sh", "-c", script]));
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
        let ready = bench.place().join(format!("ready-{signal}"));
        let script = format!("trap 'exit 9' USR1; : > {}; while :; do sleep 0.05; done", path(&ready));
        // Tests that were started in a shell's background inherit that SIGINT is ignored, and pass it on.
        let command = ["env", "--default-signal=INT", "sh", "-c", &script];
        let mut running = Running::start(bench.tune(&[&["run", "--cpus", bench.cpu(), "--"], &command[..]].concat()));
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
    let ready = bench.place().join("ready");
    // The command lives on; it is not becalm's to end.
    let script = format!(": > {}; sleep 2", path(&ready));
    let mut running = Running::start(bench.tune(&["run", "--cpus", bench.cpu(), "--", "sh", "-c", &script]));
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
        let running = Running::start(bench.tune(&["apply", "--cpus", bench.cpu(), "--profile", "rt"]));
        thread::sleep(Duration::from_millis(delay));
        running.signal("KILL");
        running.end();
        if bench.journal().exists() {
            let status = document(run(bench.tune(&["status", "--json"])).expect(0, &[]));
            unfinished += usize::from(status["state"] == "unfinished");
        }
        run(bench.tune(&["restore"])).expect(0, &[]);
        let _ = fs::remove_file(bench.place().join("restored.jsonl"));
        bench.is_as_before(&format!("killed after {delay} ms"));
    }
    eprintln!("{unfinished} of 10 were killed during their changes");
}

/// What one user applied is not undone by the refusal of another's run or study, and neither is told anything false.
#[test]
fn a_refused_run_leaves_what_others_applied() {
    let Some(bench) = Bench::new() else { return };
    run(bench.tune(&["apply", "--cpus", bench.cpu(), "--only", "vmstat"])).expect(0, &[]);
    let ended = run(bench.tune(&["run", "--cpus", bench.cpu(), "--only", "vmstat", "--", "echo", "ran"]));
    ended.expect(1, &["1 knob is changed", "becalm tune restore"]);
    assert_eq!((ended.stdout.as_str(), ended.stderr.lines().count()), ("", 1), "{ended:#?}");
    assert_eq!(fs::read_to_string("/proc/sys/vm/stat_interval").unwrap(), "120\n");
    assert_eq!(document(run(bench.tune(&["status", "--json"])).expect(0, &[]))["state"], "tuned");
    run(bench.tune(&["restore"])).expect(0, &[]);
    bench.is_as_before("after a refused run");
}

/// The line that a unit gets for its end, after a run that was refused, one that runs, and one of which nothing is left.
#[test]
fn the_end_of_a_service_restores_what_its_run_left_alone() {
    let Some(bench) = Bench::new() else { return };
    let at_the_end = || run(bench.tune(&["restore", "--left-by-run"]));
    let interval = || fs::read_to_string("/proc/sys/vm/stat_interval").unwrap();
    at_the_end().expect(0, &[]);
    run(bench.tune(&["apply", "--cpus", bench.cpu(), "--only", "vmstat"])).expect(0, &[]);
    run(bench.tune(&["run", "--cpus", bench.cpu(), "--only", "vmstat", "--", "true"])).expect(1, &[]);
    let ended = at_the_end();
    assert!(ended.expect(0, &[]).stdout.contains("no becalm tune run has left anything changed; 1 knob"), "{ended:#?}");
    assert_eq!(interval(), "120\n");
    run(bench.tune(&["restore"])).expect(0, &[]);
    let ready = bench.place().join("ready");
    let script = format!("echo $$ > {}; exec sleep 30", path(&ready));
    let mut running =
        Running::start(bench.tune(&["run", "--cpus", bench.cpu(), "--only", "vmstat", "--", "sh", "-c", &script]));
    let pid = || fs::read_to_string(&ready).unwrap_or_default().trim().to_owned();
    running.wait_until("the command runs", || !pid().is_empty());
    at_the_end().expect(0, &[]);
    assert_eq!(interval(), "120\n");
    // All at once, as by the kernel's cgroup.kill.
    let watchers = watchers(&bench);
    assert_eq!(watchers.len(), 1);
    assert!(Command::new("kill").args(["-KILL", &watchers[0]]).status().unwrap().success());
    running.signal("KILL");
    assert!(Command::new("kill").args(["-KILL", &pid()]).status().unwrap().success());
    running.end();
    assert_eq!(interval(), "120\n");
    at_the_end().expect(0, &[]);
    bench.is_as_before("after the end of a service");
}

/// The processes that watch for runs with this journal.
fn watchers(bench: &Bench) -> Vec<String> {
    let found = fs::read_dir("/proc").unwrap().flatten().filter(|process| {
        let line = fs::read(process.path().join("cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&line).contains(&format!("tune\0watch\0--journal\0{}", bench.folder()))
    });
    found.map(|process| process.file_name().to_string_lossy().into_owned()).collect()
}

/// Another becalm may hold the lock when the command ends: becalm tries again, and then its watcher.
#[test]
fn a_lock_that_others_hold_for_a_while_keeps_nothing_changed() {
    let Some(bench) = Bench::new() else { return };
    let lock = bench.place().join("lock");
    for (seconds, code, words) in
        [("1", 0, &[][..]), ("5", 1, &["another becalm", "the settings are as they were"][..])]
    {
        // The shell ends when the lock is held.
        let script = format!(
            "flock {0} sh -c ': > {0}.{seconds}; exec sleep {seconds}' >/dev/null 2>&1 & \
             while [ ! -e {0}.{seconds} ]; do sleep 0.02; done",
            path(&lock)
        );
        let ended = run(bench.tune(&["run", "--cpus", bench.cpu(), "--only", "vmstat", "--", "sh", "-c", &script]));
        ended.expect(code, words);
        bench.is_as_before(&format!("after a lock of {seconds} s"));
    }
}

/// A service manager sends SIGTERM to every process of a unit, and then SIGKILL to those that are left.
#[test]
fn the_watcher_outlives_what_everybody_is_sent() {
    let Some(bench) = Bench::new() else { return };
    let ready = bench.place().join("ready");
    let script = format!("trap '' TERM; : > {}; sleep 2", path(&ready));
    let mut running = Running::start(bench.tune(&["run", "--cpus", bench.cpu(), "--", "sh", "-c", &script]));
    running.wait_until("the command runs", || ready.exists());
    let watchers = watchers(&bench);
    assert_eq!(watchers.len(), 1);
    for signal in ["-TERM", "-INT", "-HUP"] {
        assert!(Command::new("kill").args([signal, &watchers[0]]).status().unwrap().success());
    }
    running.signal("KILL");
    running.end().expect(128 + 9, &["the settings are as they were"]);
    bench.is_as_before("after SIGTERM to all and SIGKILL");
}

#[test]
fn the_exit_code_is_the_commands_also_beside_what_others_changed() {
    let Some(bench) = Bench::new() else { return };
    let words = ["run", "--cpus", bench.cpu(), "--only", "vmstat", "--", "sh", "-c"];
    for (code, expected) in [(42, 42), (0, 1)] {
        let script = format!("echo 77 > /proc/sys/vm/stat_interval; exit {code}");
        let ended = run(bench.tune(&[&words[..], &[&script]].concat()));
        ended.expect(expected, &["--force", "--keep"]);
        // The watcher has nothing to try again, and nothing to say.
        assert!(!ended.stderr.contains("are not restored"), "{}", ended.stderr);
        assert_eq!(fs::read_to_string("/proc/sys/vm/stat_interval").unwrap(), "77\n");
        run(bench.tune(&["restore", "--force"])).expect(0, &[]);
        bench.is_as_before("after a foreign change");
    }
    run(bench.tune(&["apply", "--cpus", bench.cpu(), "--only", "vmstat"])).expect(0, &[]);
    fs::write("/proc/sys/vm/stat_interval", "77").unwrap();
    run(bench.tune(&["restore", "--keep"])).expect(0, &[]);
    assert!(!bench.journal().exists());
    assert_eq!(fs::read_to_string("/proc/sys/vm/stat_interval").unwrap(), "77\n");
    fs::write("/proc/sys/vm/stat_interval", &bench.originals()[Path::new("/proc/sys/vm/stat_interval")]).unwrap();
    bench.is_as_before("after keeping");
}

/// In a container /proc/sys cannot be written: a command that wants quiet CPUs is not run on loud ones.
#[test]
fn a_command_is_not_run_where_nothing_can_be_changed() {
    let Some(bench) = Bench::new() else { return };
    let line = "mount -o bind /proc/sys /proc/sys && mount -o remount,bind,ro /proc/sys && exec \"$@\"";
    let inner = bench.tune(&["run", "-q", "--cpus", bench.cpu(), "--only", "vmstat", "--", "echo", "ran"]);
    let mut command = Command::new("unshare");
    command.args(["-m", "sh", "-c", line, "sh"]).arg(inner.get_program()).args(inner.get_args());
    let ended = run(command);
    ended.expect(1, &["all changes were refused, so the command was not run", "stat_interval"]);
    assert_eq!(ended.stdout, "");
    bench.is_as_before("after nothing could be changed");
    // Where only some are refused, a quiet run says how many.
    let inner =
        bench.tune(&["run", "-q", "--cpus", bench.cpu(), "--only", "vmstat,watchdog,workqueue", "--", "echo", "ran"]);
    let mut command = Command::new("unshare");
    command.args(["-m", "sh", "-c", line, "sh"]).arg(inner.get_program()).args(inner.get_args());
    let ended = run(command);
    ended.expect(0, &[" changes were refused, so the CPUs may be noisier than planned"]);
    assert_eq!((ended.stdout.as_str(), ended.stderr.lines().count()), ("ran\n", 1), "{ended:#?}");
    bench.is_as_before("after some could not be changed");
}

/// A journal on a disk that fills when all is applied: what it still needs is held, and restoring does not wait for the rest.
#[test]
fn a_full_disk_keeps_nothing_from_being_restored() {
    let Some(bench) = Bench::new() else { return };
    let disk = Mounted::tmpfs("size=64k");
    fs::create_dir(disk.path().join("journal")).unwrap();
    fs::set_permissions(disk.path().join("journal"), std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
    let journal = disk.path().join("journal");
    let tune = |what: &str, rest: &[&str]| run(becalm(&[&["tune", what, "--journal", path(&journal)], rest].concat()));
    for reopened in [false, true] {
        tune("apply", &["--cpus", bench.cpu(), "--only", "vmstat,watchdog,workqueue,memory"]).expect(0, &[]);
        if reopened {
            // As one that held no space: its blocks behind the end are given back.
            let file = fs::OpenOptions::new().write(true).open(journal.join("journal.jsonl")).unwrap();
            file.set_len(file.metadata().unwrap().len()).unwrap();
        }
        let full = fs::write(disk.path().join("filler"), vec![0; 1 << 17]);
        assert!(full.is_err(), "64 KiB hold 128");
        tune("restore", &[]).expect(0, &[]);
        fs::remove_file(disk.path().join("filler")).unwrap();
        let last = fs::read_to_string(journal.join("restored.jsonl")).unwrap();
        let count = |record: &str| last.matches(&format!("\"record\":\"{record}\"")).count();
        assert!(count("original") > 3);
        // All that came back is noted where space was held; where it was not, it came back all the same.
        assert!(reopened || count("restored") == count("original"), "{last}");
        bench.is_as_before("after a full disk");
    }
}

/// Others can neither hold the lock nor put a journal there, whatever the umask of who tunes.
#[test]
fn the_journal_is_roots_alone() {
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    let Some(bench) = Bench::new() else { return };
    let folder = bench.place().join("made");
    let line = "umask 0; exec \"$@\"";
    let inner = becalm(&["tune", "apply", "--journal", path(&folder), "--cpus", bench.cpu(), "--only", "vmstat"]);
    let mut command = Command::new("sh");
    command.args(["-c", line, "sh"]).arg(inner.get_program()).args(inner.get_args());
    run(command).expect(0, &[]);
    let restore = || run(becalm(&["tune", "restore", "--journal", path(&folder)]));
    for (name, mode) in [("", 0o700), ("lock", 0o600), ("journal.jsonl", 0o600)] {
        let found = fs::metadata(folder.join(name)).unwrap();
        assert_eq!((found.permissions().mode() & 0o7777, found.uid()), (mode, 0), "{name}");
    }
    std::os::unix::fs::chown(folder.join("journal.jsonl"), Some(65534), None).unwrap();
    restore().expect(1, &["it belongs to user 65534"]);
    std::os::unix::fs::chown(folder.join("journal.jsonl"), Some(0), None).unwrap();
    // Who holds the lock is named.
    let lock = fs::File::open(folder.join("lock")).unwrap();
    lock.lock().unwrap();
    restore().expect(1, &[&format!("process {} ", std::process::id())]);
    lock.unlock().unwrap();
    restore().expect(0, &[]);
    bench.is_as_before("after a folder of its own");
}

#[test]
fn what_it_brought_is_shown() {
    let Some(bench) = Bench::new() else { return };
    let keep = bench.place().join("proof");
    let words = ["run", "--cpus", bench.cpu(), "--quiet", "--verify", "--verify-duration", "300ms", "--verify-output"];
    let ended = run(bench.tune(&[&words[..], &[path(&keep), "--", "echo", "inside"]].concat()));
    ended.expect(0, &["before-1.becalm", "inside-3.becalm", "becalm report "]);
    assert_eq!(ended.stdout, "inside\n");
    bench.is_as_before("after a proof");
    for run in
        ["before-1", "inside-1", "before-2", "inside-2", "before-3", "inside-3"].map(|name| format!("{name}.becalm"))
    {
        run_becalm(&["report", "--json", path(&keep.join(run))]).expect(0, &[]);
    }
    // Without a command the comparison is the result.
    let ended = run(bench.tune(&["run", "--cpus", bench.cpu(), "--verify", "--verify-duration", "300ms"]));
    ended.expect(0, &[]);
    assert!(ended.stdout.contains("before-2.becalm") && ended.stdout.contains("--verify-output"), "{ended:#?}");
    bench.is_as_before("after a proof without a command");
    assert!(!Path::new("before-1.becalm").exists());
}

#[test]
fn a_study_records_each_configuration_by_turns_and_leaves_nothing() {
    let Some(bench) = Bench::new() else { return };
    let study = bench.place().join("node.study");
    let size = ["--duration", "600ms", "--ranks", "64", "--phases", "100"];
    let ended = run(becalm(&[&["study", "--json", "-o", path(&study)], &size[..]].concat()));
    let study_json = document(ended.expect(0, &["the recordings are in"]));
    bench.is_as_before("after a study");
    let mut begun = Vec::new();
    for configuration in study_json["configurations"].as_array().expect("it has configurations") {
        let name = configuration["configuration"].as_str().expect("each has a name");
        if let Some(why) = configuration["skipped"].as_str() {
            // Nothing but the hardware is in the way of root with two CPUs.
            assert_eq!((name, why), ("sibling-idle", "no core of this machine runs two hardware threads"));
            continue;
        }
        let figure = |figure: &str| configuration[figure].as_f64().unwrap_or_else(|| panic!("{name} has no {figure}"));
        assert!((0.0..1.0).contains(&figure("noise_ratio")) && figure("slowdown_ratio") >= 1.0, "{name}");
        let against = &configuration["against_baseline"];
        assert_eq!(against.is_null(), name == "baseline", "{against:#}");
        if name != "baseline" {
            assert_eq!((&against["turns"], &against["basis"]), (&3.into(), &"between runs".into()), "{against:#}");
            // Noise was measured in every turn of both, so that there is a verdict on it.
            let noise = &against["rows"][0];
            assert!(noise["verdict"] != "not enough data" && noise["p_adjusted"].is_number(), "{noise:#}");
        }
        for turn in 1..=3 {
            let run = format!("{name}-{turn}.becalm");
            assert_eq!(configuration["runs"][turn - 1]["run"].as_str(), Some(run.as_str()));
            begun.push((self::begun(&study.join(&run)), turn, name.to_owned()));
        }
    }
    let isolated = &study_json["configurations"][2];
    assert_eq!((isolated["configuration"].as_str(), isolated["sched"].as_str()), (Some("isolated"), Some("other")));
    // Each turn goes through all of them, and the second goes backwards.
    begun.sort();
    let of_turn = |wanted: usize| -> Vec<&str> {
        begun.iter().filter(|(_, turn, _)| *turn == wanted).map(|(_, _, name)| name.as_str()).collect()
    };
    assert!(begun.is_sorted_by_key(|(_, turn, _)| *turn), "{begun:?}");
    let back: Vec<&str> = of_turn(2).into_iter().rev().collect();
    assert_eq!((of_turn(1), of_turn(3)), (back, of_turn(1)));
    // Shown again, it is the same.
    let again = run(becalm(&[&["study", "--json", "--from", path(&study)], &size[2..]].concat()));
    assert_eq!(document(again.expect(0, &[])), study_json);
}

/// When the recording in a bundle began.
fn begun(bundle: &Path) -> String {
    becalm_testing::program::document(bundle)["origin"].as_str().expect("it says when it began").to_owned()
}

/// In the second turn: the first is whole, and can be shown and compared.
#[test]
fn a_study_that_is_stopped_keeps_what_it_has_and_leaves_nothing() {
    let Some(bench) = Bench::new() else { return };
    let study = bench.place().join("node.study");
    let words = ["study", "--only", "baseline,isolated", "--duration", "3s", "--no-sources", "-o", path(&study)];
    let mut running = Running::start(becalm(&words));
    running.wait_until("the isolated CPU to be recorded again", || study.join("isolated-2.becalm/runs").is_dir());
    running.signal("TERM");
    let ended = running.end();
    ended.expect(1, &["interrupted at isolated, in turn 2 of 3"]);
    bench.is_as_before("after a study that was stopped");
    let show = |form: &[&str]| {
        let words = ["study", "--ranks", "64", "--phases", "100", "--from", path(&study)];
        run(becalm(&[&words[..], form].concat()))
    };
    let shown = document(show(&["--json"]).expect(0, &[]));
    let runs = |at: usize| shown["configurations"][at]["runs"].as_array().expect("a list").clone();
    assert_eq!((runs(0).len(), runs(1).len()), (1, 1), "{shown:#}");
    assert_eq!(runs(1)[0]["run"].as_str(), Some("isolated-1.becalm"));
    assert_eq!(shown["configurations"][1]["against_baseline"]["basis"].as_str(), Some("within runs"));
    let text = show(&[]).expect(0, &[]).stdout.clone();
    assert!(
        text.contains("isolated was recorded in only 1 of 3 turns") && text.contains("isolated: recorded once"),
        "{text}"
    );
}

/// Killed in its second turn without a word, and once more: what was recorded stays as it was, and the rest is recorded.
#[test]
fn a_study_that_was_killed_goes_on_where_it_was() {
    let Some(bench) = Bench::new() else { return };
    let study = bench.place().join("node.study");
    let words = ["--only", "baseline,priority", "--duration", "1500ms", "--no-sources", "-o", path(&study)];
    let mut running = Running::start(becalm(&[&["study"], &words[..]].concat()));
    running.wait_until("the second turn", || study.join("priority-2.becalm/runs").is_dir());
    running.signal("KILL");
    running.end();
    let begins = |run: &str| begun(&study.join(run));
    let (kept, broken) = (begins("baseline-1.becalm"), begins("priority-2.becalm"));
    let size = ["--ranks", "64", "--phases", "100", "--json"];
    let resume = || run(becalm(&[&["study", "--resume", path(&study)], &size[..]].concat()));
    let shown = document(resume().expect(0, &[]));
    for (at, name) in ["baseline", "priority"].into_iter().enumerate() {
        let runs = shown["configurations"][at]["runs"].as_array().expect("a list");
        let names: Vec<_> = runs.iter().map(|run| run["run"].as_str().unwrap_or_default()).collect();
        assert_eq!(names, [1, 2, 3].map(|turn| format!("{name}-{turn}.becalm")), "{shown:#}");
    }
    assert_eq!(begins("baseline-1.becalm"), kept, "what was recorded is not recorded again");
    assert!(begins("priority-2.becalm") > broken, "what was under way is");
    // Of a whole study nothing is left to do.
    let last = begins("baseline-3.becalm");
    assert_eq!(document(resume().expect(0, &[])), shown);
    assert_eq!(begins("baseline-3.becalm"), last);
    // Nothing of a document is run as it stands there.
    let file = study.join("study.json");
    let text = std::fs::read_to_string(&file).unwrap().replacen("\"--quiet\"", "\"--from-elsewhere\"", 1);
    std::fs::write(&file, text).unwrap();
    resume().expect(2, &["cannot go on with the study", "is none that this becalm would record it by"]);
    bench.is_as_before("after a study that was killed");
}
