//! Which rights becalm keeps, and as whom the user's COMMAND runs: under `sudo`, as plain root, and with single capabilities. What
//! is said here of a process is what the kernel says of every thread of it.

use std::fs;
use std::io::Write;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::Command;

use becalm_linux::procfs::status::{Capabilities, Capability};
use becalm_linux::rights::Need as Right;
use becalm_testing::program::{Ended, Running, becalm, document, path, public_program, report, run, warning_codes};
use becalm_testing::{Need, machine_has};
use serde_json::Value;
use tempfile::TempDir;

use crate::robust::alone;
use becalm_testing::machine::Bench;

/// Whom the tests call `sudo` as: nobody, so to say.
const USER: u32 = 65_534;

/// As `sudo` would start it, called by [`USER`].
fn sudo(mut command: Command) -> Command {
    command.env("SUDO_UID", USER.to_string()).env("SUDO_GID", USER.to_string()).env("SUDO_USER", "nobody");
    command.env("SUDO_COMMAND", "becalm");
    command
}

/// As plain root starts it.
fn plain(mut command: Command) -> Command {
    for name in ["SUDO_UID", "SUDO_GID", "SUDO_USER", "SUDO_COMMAND"] {
        command.env_remove(name);
    }
    command
}

/// What the kernel says of a thread.
#[derive(Debug)]
struct Task {
    name: String,
    /// The real, effective, saved and file system user.
    users: Vec<u32>,
    groups: Vec<u32>,
    effective: u64,
    permitted: u64,
}

impl Task {
    fn read(status: &Path) -> Option<Self> {
        let text = fs::read_to_string(status).ok()?;
        let field = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(":\t"));
            line.unwrap_or_default().trim().to_owned()
        };
        let numbers = |name| field(name).split_whitespace().filter_map(|word| word.parse().ok()).collect();
        let mask = |name| u64::from_str_radix(&field(name), 16).unwrap_or(u64::MAX);
        Some(Self {
            name: field("Name"),
            users: numbers("Uid"),
            groups: numbers("Groups"),
            effective: mask("CapEff"),
            permitted: mask("CapPrm"),
        })
    }

    /// Every thread of a process.
    fn all(pid: u32) -> Vec<Self> {
        let tasks = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
        tasks.filter_map(|task| Self::read(&task.path().join("status"))).collect()
    }

    fn has_nothing(&self) -> bool {
        self.effective == 0 && self.permitted == 0
    }
}

/// The processes that a process has started and that live.
fn children(pid: u32) -> Vec<u32> {
    let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    children.split_whitespace().filter_map(|word| word.parse().ok()).collect()
}

/// A recorder has given up what it had: all of its threads, the measuring ones among them, are of this user and without a capability.
/// Its janitor alone keeps what it takes to remove the trace instance.
fn wait_until_left(running: &mut Running, user: u32) {
    let pid = running.pid();
    running.wait_until("no thread has a capability", || {
        let tasks = Task::all(pid);
        let measures = tasks.iter().any(|task| task.name.starts_with("becalm/"));
        measures && tasks.iter().all(|task| task.has_nothing() && task.users == [user; 4])
    });
    let janitor = children(pid).into_iter().flat_map(Task::all).find(|task| task.name == "becalm-janitor");
    let janitor = janitor.expect("there is a janitor");
    let kept = Capabilities::from_list(&[Capability::DacOverride, Capability::SysAdmin]).0;
    assert!(janitor.users == [0; 4] && janitor.permitted & !kept == 0, "{janitor:?}");
}

/// A folder of the user's own.
fn users_folder() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    chown(folder.path(), Some(USER), Some(USER)).unwrap();
    folder
}

/// All files and folders below one belong to the user, and to nobody else.
#[track_caller]
fn belongs_to_user(folder: &Path) {
    let found = fs::symlink_metadata(folder).unwrap();
    let closed = if found.is_dir() { 0o700 } else { 0o600 };
    assert_eq!((found.uid(), found.gid(), found.mode() & 0o777), (USER, USER, closed), "{}", folder.display());
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        belongs_to_user(&entry.path());
    }
}

const RECORD: [&str; 6] = ["record", "--quiet", "--until-stopped", "--segment", "300ms", "-o"];

#[test]
fn a_recording_behind_sudo_goes_on_as_the_user_and_is_whole() {
    let Some(_alone) = alone() else { return };
    // In a folder of the user's, and in one of root's that the user cannot even enter.
    for folder in [users_folder(), tempfile::tempdir().unwrap()] {
        let bundle = folder.path().join("run.becalm");
        // Real-time loops on one CPU, so that the recorder has the others to itself and this test.
        let loops = [path(&bundle), "--sched", "fifo:10", "--cpus", "0"];
        let mut running = Running::start(sudo(becalm(&[&RECORD[..], &loops].concat())));
        running.wait_for_start(&bundle);
        wait_until_left(&mut running, USER);
        // The first thread's stack must be free to grow, for which nobody has the right any more.
        let maps = fs::read_to_string(format!("/proc/{}/smaps", running.pid())).unwrap();
        let stack = maps.split_once("[stack]").unwrap().1;
        let locked = stack.lines().find_map(|line| line.strip_prefix("Locked:")).unwrap();
        assert_eq!(locked.trim(), "0 kB");
        running.wait_until("it stores", || becalm_testing::program::segments(&bundle) >= 2);
        running.signal("TERM");
        // The end checks that no trace instance remains.
        running.end().expect(0, &[]);
        belongs_to_user(&bundle);
        let report = report(&bundle);
        assert_eq!((&report["rung"], &report["nodes"][0]["ended"]), (&"tracepoints".into(), &"signal".into()));
        let codes = warning_codes(&report);
        assert!(!codes.contains(&"no_symbols") && !codes.contains(&"memory_not_locked"), "{codes:?}");
    }
}

#[test]
fn the_report_is_printed_although_the_user_cannot_reach_the_folder() {
    let Some(_alone) = alone() else { return };
    let folder = tempfile::tempdir().unwrap();
    let bundle = folder.path().join("run.becalm");
    let ended = run(sudo(becalm(&["record", "--duration", "300ms", "--json", "-o", path(&bundle)])));
    ended.expect(0, &[&format!("stored in {}", bundle.display())]);
    let printed: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(printed["rung"], "tracepoints");
    assert!(!ended.stdout.contains("/proc/self/fd"));
    let bundle = folder.path().join("work.becalm");
    let words = ["work", "--samples", "50", "--copies", "1,2", "--cpus", "0", "--json", "-o", path(&bundle)];
    run(sudo(becalm(&words))).expect(0, &["work-1.becalm", "work-2.becalm"]);
    belongs_to_user(&folder.path().join("work-2.becalm"));
}

#[test]
fn killed_a_recording_behind_sudo_leaves_no_instance() {
    let Some(_alone) = alone() else { return };
    let folder = users_folder();
    let bundle = folder.path().join("run.becalm");
    let mut running = Running::start(sudo(becalm(&[&RECORD[..], &[path(&bundle)]].concat())));
    running.wait_for_start(&bundle);
    wait_until_left(&mut running, USER);
    running.wait_until("it stores", || becalm_testing::program::segments(&bundle) >= 1);
    running.signal("KILL");
    assert_eq!(running.end().code, 128 + 9);
    assert_eq!(report(&bundle)["books"], "closed");
}

#[test]
fn a_recording_by_plain_root_keeps_no_capability() {
    let Some(_alone) = alone() else { return };
    let folder = tempfile::tempdir().unwrap();
    let bundle = folder.path().join("run.becalm");
    let mut running = Running::start(plain(becalm(&[&RECORD[..], &[path(&bundle)]].concat())));
    running.wait_for_start(&bundle);
    wait_until_left(&mut running, 0);
    running.signal("INT");
    running.end().expect(0, &[]);
    assert_eq!(report(&bundle)["rung"], "tracepoints");
}

/// Between two recordings `top` needs its rights again, so it keeps them where they do nothing by mistake.
#[test]
fn top_puts_its_rights_down_while_it_records() {
    let Some(_alone) = alone() else { return };
    let mut running = Running::start(sudo(becalm(&["top", "--iterations", "6", "--interval", "500ms"])));
    let pid = running.pid();
    running.wait_until("all is put down", || {
        let tasks = Task::all(pid);
        let recorder = Task::read(Path::new(&format!("/proc/{pid}/status")));
        let acts = recorder.is_some_and(|task| task.users[1] == USER && task.users[3] == USER && task.groups == [USER]);
        acts && tasks.len() > 2 && tasks.iter().all(|task| task.effective == 0)
    });
    // Whoever draws and whoever measures have nothing to take up again.
    let tasks = Task::all(pid);
    assert!(tasks.iter().filter(|task| task.permitted != 0).count() <= 1, "{tasks:#?}");
    running.end().expect(0, &[]);
}

/// What a command says of itself.
const SAY: &str = "echo uid $(id -u) gid $(id -g) groups $(id -G); grep -E '^(Cap|NoNewPrivs)' /proc/self/status; \
                   echo class $(awk '{print $41}' /proc/self/stat); echo HOME=$HOME USER=$USER SHELL=$SHELL; env | grep SUDO; true";

/// Whether the command ran as nobody, with nobody's environment and rights.
#[track_caller]
fn ran_as_user(ended: &Ended) {
    let said = &ended.stdout;
    assert!(said.contains(&format!("uid {USER} gid {USER} groups {USER}\n")), "{ended:?}");
    for set in ["CapInh", "CapPrm", "CapEff", "CapAmb"] {
        assert!(said.contains(&format!("{set}:\t{:016x}\n", 0)), "{set}: {ended:?}");
    }
    // It may call sudo itself.
    assert!(said.contains("NoNewPrivs:\t0\n") && !said.contains(&format!("CapBnd:\t{:016x}\n", 0)), "{ended:?}");
    assert!(said.contains("USER=nobody") && !said.contains("HOME=/root") && !said.contains("SUDO"), "{ended:?}");
}

/// Whether it ran as root, with all that this test has.
#[track_caller]
fn ran_as_root(ended: &Ended) {
    let own = Task::read(Path::new("/proc/self/status")).unwrap();
    let said = &ended.stdout;
    assert!(said.contains("uid 0 gid 0"), "{ended:?}");
    assert!(said.contains(&format!("CapEff:\t{:016x}\n", own.effective)), "{ended:?}");
}

/// Runs a command of becalm's with a COMMAND, as the user, as root by choice, and as root without `sudo`.
fn three_times(words: &[&str]) {
    // Nobody has no home; a folder that may hold code lies where nobody else makes folders.
    let cache = tempfile::tempdir_in("/var/lib").unwrap();
    chown(cache.path(), Some(USER), Some(USER)).unwrap();
    let command = |more: &[&str]| {
        let mut command = becalm(&[words, more, &["--", "sh", "-c", SAY]].concat());
        command.env("XDG_CACHE_HOME", cache.path());
        command
    };
    let ended = run(sudo(command(&[])));
    ended.expect(0, &[]);
    ran_as_user(&ended);
    for command in [sudo(command(&["--as-root"])), plain(command(&[]))] {
        let ended = run(command);
        ended.expect(0, &[]);
        ran_as_root(&ended);
    }
}

#[test]
fn the_command_of_a_recording_runs_as_the_user() {
    let Some(_alone) = alone() else { return };
    for (number, sources) in [&["--no-sources"][..], &["--sched", "fifo:5"]].into_iter().enumerate() {
        let folder = users_folder();
        let bundle = folder.path().join(format!("run-{number}.becalm"));
        let words = [&["record", "--quiet", "-o", path(&bundle)], sources].concat();
        let run = |start: fn(Command) -> Command, more: &[&str]| {
            let ended = run(start(becalm(&[&words, more, &["--", "sh", "-c", SAY]].concat())));
            ended.expect(0, &[]);
            ended
        };
        let ended = run(sudo, &[]);
        ran_as_user(&ended);
        // The class of the loops is not that of the command.
        assert!(ended.stdout.contains("class 0\n"), "{ended:?}");
        belongs_to_user(&bundle);
        for (start, more) in [(sudo as fn(Command) -> Command, &["--as-root"][..]), (plain, &[])] {
            fs::remove_dir_all(&bundle).unwrap();
            ran_as_root(&run(start, more));
        }
    }
}

/// It is ended with the recording, also where it has rights that the recorder has not.
#[test]
fn a_recorder_ends_its_command_whoever_that_is() {
    let Some(_alone) = alone() else { return };
    for more in [&[][..], &["--as-root"]] {
        let folder = users_folder();
        let bundle = folder.path().join("run.becalm");
        let words = [&["record", "--quiet", "-o", path(&bundle)], more, &["--", "sleep", "1000"]].concat();
        let mut running = Running::start(sudo(becalm(&words)));
        running.wait_for_start(&bundle);
        let pid = running.pid();
        running.wait_until("the command runs", || {
            children(pid).into_iter().flat_map(Task::all).any(|it| it.name == "sleep")
        });
        running.signal("TERM");
        running.end().expect(0, &[]);
        belongs_to_user(&bundle);
    }
}

#[test]
fn the_command_of_an_injector_runs_as_the_user() {
    if !machine_has(&[Need::Root]) {
        return;
    }
    three_times(&["inject", "--quiet", "--interval", "20ms", "--detour", "1ms", "--cpus", "0"]);
    three_times(&["inject", "--quiet", "--signal", "--interval", "20ms", "--detour", "200us"]);
}

#[test]
fn an_injector_keeps_no_right() {
    if !machine_has(&[Need::Root]) {
        return;
    }
    for (start, user) in [(sudo as fn(Command) -> Command, USER), (plain, 0)] {
        let words = ["inject", "--quiet", "--interval", "20ms", "--detour", "1ms", "--cpus", "0"];
        let mut running = Running::start(start(becalm(&words)));
        let pid = running.pid();
        running.wait_until("no thread has a capability", || {
            let tasks = Task::all(pid);
            let injects = tasks.iter().any(|task| task.name == "becalm-inject");
            injects && tasks.iter().all(|task| task.has_nothing() && task.users == [user; 4])
        });
        running.signal("TERM");
        running.end().expect(0, &[]);
    }
}

/// It is still asked to end when its parent does, which the kernel forgets when a process becomes another user's.
#[test]
fn an_injector_behind_sudo_ends_with_its_parent() {
    if !machine_has(&[Need::Root]) {
        return;
    }
    let mut shell = Command::new("sh");
    shell.args(["-c", "\"$0\" \"$@\" & wait", env!("CARGO_BIN_EXE_becalm")]);
    shell.args(["inject", "--quiet", "--interval", "20ms", "--detour", "1ms", "--cpus", "0"]);
    let mut running = Running::start(sudo(shell));
    let parent = running.pid();
    running.wait_until("it injects", || {
        children(parent).into_iter().flat_map(Task::all).any(|task| task.name == "becalm-inject" && task.has_nothing())
    });
    running.signal("KILL");
    // Looks for processes of the same start, and finds none soon.
    assert_eq!(running.end().code, 128 + 9);
}

/// What was set for the command with root's rights stays: its CPUs and its class. What was changed is put back by root.
#[test]
fn the_command_of_tune_run_runs_as_the_user_in_its_place() {
    let Some(bench) = Bench::new() else { return };
    let script = format!("{SAY}; grep Cpus_allowed_list /proc/self/status; cat /proc/self/cgroup");
    for (more, as_user) in [(&[][..], true), (&["--as-root"], false)] {
        let words =
            [&["run", "--quiet", "--cpus", bench.cpu(), "--priority", "rr:5"], more, &["--", "sh", "-c", &script]];
        let ended = run(sudo(bench.tune(&words.concat())));
        ended.expect(0, &[]);
        if as_user {
            ran_as_user(&ended)
        } else {
            ran_as_root(&ended)
        }
        let place = format!("Cpus_allowed_list:\t{}\n", bench.cpu());
        // SCHED_RR is 2.
        assert!(ended.stdout.contains(&place) && ended.stdout.contains("class 2\n"), "{ended:?}");
        bench.is_as_before("after the command of a user");
    }
}

/// The recordings before and inside are read by another process, as the user.
#[test]
fn a_verified_tune_run_behind_sudo_shows_what_changed() {
    let Some(bench) = Bench::new() else { return };
    let words = ["run", "--quiet", "--verify", "--verify-duration", "500ms", "--cpus", bench.cpu(), "--", "true"];
    let ended = run(sudo(bench.tune(&words)));
    ended.expect(0, &["before-1.becalm", "inside-3.becalm", "Sources, share of time"]);
    bench.is_as_before("after a verified run");
}

/// A reader has the right to read, nothing else, and cannot get more.
#[test]
fn a_reader_behind_sudo_can_only_read() {
    if !machine_has(&[Need::Root]) {
        return;
    }
    let words = [
        "predict",
        "poisson:rate=1000Hz,detour=50us",
        "--grain",
        "1ms",
        "--phases",
        "100k",
        "--ranks",
        "16Ki",
        "--replicas",
        "40",
    ];
    let mut running = Running::start(sudo(becalm(&words)));
    let pid = running.pid();
    let kept = Capabilities::from_list(&[Capability::DacReadSearch]).0;
    running.wait_until("only the right to read is left", || {
        let tasks = Task::all(pid);
        !tasks.is_empty()
            && tasks.iter().all(|task| task.permitted == kept && task.users == [USER; 4] && task.groups == [USER])
    });
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    assert!(status.contains("NoNewPrivs:\t1\n") && status.contains(&format!("CapBnd:\t{:016x}\n", 0)), "{status}");
    running.signal("KILL");
    running.end();
}

/// Measuring costs needs rights again and again, until all is measured. The commands are looked at while they print.
#[test]
fn costs_are_shown_without_the_rights_to_measure() {
    let Some(_alone) = alone() else { return };
    let folder = tempfile::tempdir().unwrap();
    let files = [Capability::Chown, Capability::DacOverride, Capability::FileOwner];
    let clock = (&["cost", "clock", "--over", "1s"][..], &files[..]);
    let tick = &["cost", "tick", "--rates", "1000Hz,idle", "--copies", "1", "--rounds", "1", "--cell", "10ms"][..];
    for (number, (words, kept)) in [clock, (tick, &[Capability::DacReadSearch])].into_iter().enumerate() {
        let bundle = folder.path().join(format!("{number}.becalm"));
        // It waits for a reader, as the pipe is full.
        let (mut reader, mut writer) = std::io::pipe().unwrap();
        writer.write_all(&[b'.'; 1 << 16]).unwrap();
        let command = plain(becalm(&[words, &["-o", path(&bundle)]].concat()));
        let mut running = Running::start_into(command, writer);
        let pid = running.pid();
        // The call in which it waits, and its first argument.
        let write = if cfg!(target_arch = "x86_64") { "1 0x1 " } else { "64 0x1 " };
        running.wait_until("the result is written", || {
            fs::read_to_string(format!("/proc/{pid}/syscall")).is_ok_and(|call| call.starts_with(write))
        });
        let kept = Capabilities::from_list(kept).0;
        let tasks = Task::all(pid);
        assert!(tasks.iter().all(|task| task.permitted & !kept == 0), "{words:?}: {tasks:#?}");
        let result = std::thread::spawn(move || std::io::read_to_string(&mut reader).unwrap());
        running.end().expect(0, &[]);
        assert!(result.join().unwrap().trim_start_matches('.').lines().count() > 5, "{words:?}");
    }
}

/// Whoever may call becalm alone by `sudo` gets no folder of any name in folders of root's.
#[test]
fn what_is_given_away_in_folders_of_root_is_named_a_bundle() {
    let Some(_alone) = alone() else { return };
    let folder = tempfile::tempdir().unwrap();
    for words in [&["record", "--duration", "300ms"][..], &["work", "--samples", "50", "--cpus", "0"]] {
        let bundle = folder.path().join("settings.d");
        let ended = run(sudo(becalm(&[words, &["-o", path(&bundle)]].concat())));
        ended.expect(1, &["continues as user 65534", "a new name that ends in .becalm"]);
        assert!(!bundle.exists());
    }
    let text = folder.path().join("selfish");
    fs::write(&text, "100 2000\n5000 3000\n").unwrap();
    let imported = folder.path().join("settings.d");
    run(sudo(becalm(&["import", "--from", "selfish", path(&text), "-o", path(&imported)]))).expect(0, &[]);
    assert_eq!(fs::metadata(&imported).unwrap().uid(), 0);
}

#[test]
fn readers_behind_sudo_read_and_write_where_root_may() {
    let Some(_alone) = alone() else { return };
    let (roots, users) = (tempfile::tempdir().unwrap(), users_folder());
    let bundle = roots.path().join("run.becalm");
    run(plain(becalm(&["record", "--quiet", "--duration", "300ms", "-o", path(&bundle)]))).expect(0, &[]);
    assert_eq!(fs::metadata(&bundle).unwrap().mode() & 0o777, 0o700);
    run(sudo(becalm(&["report", path(&bundle)]))).expect(0, &[]);
    for folder in [&roots, &users] {
        let page = folder.path().join("page.html");
        run(sudo(becalm(&["report", path(&bundle), "--html", path(&page)]))).expect(0, &[]);
        assert!(page.exists());
        let noise = folder.path().join("noise.txt");
        let words = ["export", "--to", "loggopsim", path(&bundle), "--cpus", "0", "-o", path(&noise)];
        run(sudo(becalm(&words))).expect(0, &[]);
        let text = folder.path().join("selfish");
        fs::write(&text, "100 2000\n5000 3000\n").unwrap();
        let imported = folder.path().join("imported.becalm");
        let words = ["import", "--from", "selfish", path(&text), "-o", path(&imported)];
        run(sudo(becalm(&words))).expect(0, &[]);
        belongs_to_user(&imported);
    }
}

/// becalm in a folder for everybody, run by a user with these capabilities and nothing else.
fn with(program: &Path, capabilities: &[Capability], groups: &str, words: &[&str]) -> Ended {
    let name = |capability: &Capability| {
        let name: &'static str = capability.into();
        format!(",+{}", name.trim_start_matches("CAP_").to_lowercase())
    };
    let set = format!("-all{}", capabilities.iter().map(name).collect::<String>());
    let mut command = Command::new("setpriv");
    command.args(["--reuid=65534", "--regid=65534", groups]);
    command.args([format!("--inh-caps={set}"), format!("--ambient-caps={set}"), format!("--bounding-set={set}")]);
    command.arg("--").arg(program).args(words);
    run(plain(command))
}

/// What a recording in a real-time class is without: the codes of its warnings, or that it was refused.
fn lacks(program: &Path, capabilities: &[Capability], groups: &str) -> Vec<&'static str> {
    let bundle = program.with_file_name("smallest.becalm");
    let record = ["record", "--quiet", "--duration", "200ms", "--sched", "fifo:10", "-o", path(&bundle)];
    let ended = with(program, capabilities, groups, &record);
    if ended.code != 0 {
        assert!(ended.stderr.contains("cannot set the scheduling class"), "{ended:?}");
        return vec!["realtime"];
    }
    let document = document(&bundle);
    fs::remove_dir_all(&bundle).unwrap();
    let codes = warning_codes(&document);
    let lacking = ["no_tracing", "no_symbols", "memory_not_locked"].into_iter().filter(|code| codes.contains(code));
    assert_eq!(document["rung"] == "tracepoints", !codes.contains(&"no_tracing"));
    lacking.collect()
}

fn public() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let program = public_program(folder.path());
    (folder, program)
}

/// The capabilities that the book names are enough for everything, and each is needed for what it stands for and nothing else.
#[test]
fn the_smallest_set_of_capabilities() {
    let Some(_alone) = alone() else { return };
    if !machine_has(&[Need::Program("setpriv")]) || shows_symbols_to_everybody() {
        return;
    }
    let (_folder, program) = public();
    let parts = [
        (Right::Trace, vec!["no_tracing"]),
        (Right::Symbols, vec!["no_symbols"]),
        (Right::Realtime, vec!["realtime"]),
        (Right::LockedMemory, vec!["memory_not_locked"]),
    ];
    let all: Vec<Capability> = parts.iter().map(|(right, _)| right.capability()).collect();
    assert_eq!(lacks(&program, &all, "--clear-groups"), Vec::<&str>::new());
    for (right, lacking) in &parts {
        let others: Vec<Capability> = all.iter().copied().filter(|it| *it != right.capability()).collect();
        assert_eq!(&lacks(&program, &others, "--clear-groups"), lacking, "without {right:?}");
    }
}

/// Where the kernel shows its addresses to whoever may use perf, and everybody may.
fn shows_symbols_to_everybody() -> bool {
    let setting = |name: &str| fs::read_to_string(format!("/proc/sys/kernel/{name}")).unwrap_or_default();
    let paranoid: i32 = setting("perf_event_paranoid").trim().parse().unwrap_or(2);
    setting("kptr_restrict").trim() == "0" && paranoid <= 1
}

/// Perf events of a whole CPU, by which `becalm cost` raises the rate of interrupts.
#[test]
fn the_smallest_set_for_interrupts() {
    let Some(_alone) = alone() else { return };
    if !machine_has(&[Need::Program("setpriv")]) {
        return;
    }
    let (folder, program) = public();
    let output = folder.path().join("cost.becalm");
    let words =
        ["cost", "placement", "--rounds", "1", "--cell", "10ms", "--bodies", "add", "--sched", "other", "--cpu", "0"];
    let words = [&words[..], &["-o", path(&output)]].concat();
    with(&program, &[], "--clear-groups", &words).expect(1, &["perf event", "CAP_PERFMON"]);
    let _ = fs::remove_dir_all(&output);
    with(&program, &[Right::CpuEvents.capability()], "--clear-groups", &words).expect(0, &[]);
}

/// A tracefs that is open to a group, whose user owns the folder of instances. It is as it was afterwards.
struct OpenTracefs;

const TRACEFS: &str = "/sys/kernel/tracing";
const GROUP: u32 = 54_321;

impl OpenTracefs {
    fn mount(options: &str) {
        let status = Command::new("mount").args(["-o", &format!("remount,{options}"), TRACEFS]).status();
        assert!(status.unwrap().success());
    }

    /// To the group, and the folder of instances to a user.
    fn open(group: u32, owner: u32) -> Self {
        let guard = Self;
        Self::mount(&format!("gid={group},mode=750"));
        chown(Path::new(TRACEFS).join("instances"), Some(owner), None).unwrap();
        guard
    }
}

impl Drop for OpenTracefs {
    fn drop(&mut self) {
        Self::mount("gid=0,mode=700");
        chown(Path::new(TRACEFS).join("instances"), Some(0), Some(0)).unwrap();
    }
}

/// Without any capability: a tracefs for a group, and the folder of instances for the user. Neither is enough alone, since the files
/// of a new instance are its owner's to write, and the group's to read.
#[test]
fn the_smallest_opening_of_tracefs() {
    let Some(_alone) = alone() else { return };
    if !machine_has(&[Need::Program("setpriv")]) {
        return;
    }
    let before = |name: &str| {
        let found = fs::metadata(Path::new(TRACEFS).join(name)).unwrap();
        (found.uid(), found.gid(), found.permissions().mode())
    };
    if (before(""), before("instances")) != ((0, 0, 0o40_700), (0, 0, 0o40_750)) {
        // An administrator has opened it already, and what was there before could not be brought back.
        return;
    }
    let (_folder, program) = public();
    let group = format!("--groups={GROUP}");
    let realtime = [Right::Realtime.capability()];
    for (opened, owner, traces) in [(GROUP, USER, true), (GROUP, 0, false), (GROUP + 1, USER, false)] {
        let _open = OpenTracefs::open(opened, owner);
        let lacking = lacks(&program, &realtime, &group);
        assert_eq!(!lacking.contains(&"no_tracing"), traces, "group {opened}, owner {owner}: {lacking:?}");
    }
    assert_eq!((before(""), before("instances")), ((0, 0, 0o40_700), (0, 0, 0o40_750)));
}
