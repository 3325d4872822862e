//! Processes of becalm that are stopped, or in a frozen control group: those that wait for them end, and say what lets them go on.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use becalm_testing::attack::{Tries, attack};
use becalm_testing::machine::Bench;
use becalm_testing::program::{Running, becalm, instances_of, path, run};
use becalm_testing::{Need, machine_has, wait_until};

/// A process that is kept from going on, until this is dropped.
enum Held {
    Stopped(String),
    Frozen { group: PathBuf, pid: String },
}

impl Held {
    /// Stops a process, or freezes it in a group of its own, where there is such a thing.
    fn new(pid: &str, in_group: bool) -> Self {
        let Some(group) = in_group.then(freezer).flatten() else {
            signal("-STOP", pid);
            wait_until("it is stopped", || state(pid) == 'T');
            return Self::Stopped(pid.to_owned());
        };
        let group = group.join(format!("test-{pid}"));
        fs::create_dir(&group).unwrap();
        fs::write(group.join("cgroup.procs"), pid).unwrap();
        freeze(&group, true);
        Self::Frozen { group, pid: pid.to_owned() }
    }

    /// What becalm says has to be done.
    fn remedy(&self) -> String {
        match self {
            Self::Stopped(pid) => format!("kill -CONT {pid}"),
            Self::Frozen { group, .. } => format!(" > {}", group.display()),
        }
    }

    fn pid(&self) -> &str {
        match self {
            Self::Stopped(pid) | Self::Frozen { pid, .. } => pid,
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        match self {
            Self::Stopped(pid) => signal("-CONT", pid),
            Self::Frozen { group, pid } => {
                freeze(group, false);
                let _ = fs::write(group.parent().unwrap().join("cgroup.procs"), pid);
                wait_until("the group is empty", || fs::remove_dir(&group).is_ok());
            }
        }
    }
}

/// The folder in which groups can be frozen.
fn freezer() -> Option<PathBuf> {
    ["/sys/fs/cgroup/freezer", "/sys/fs/cgroup"].map(PathBuf::from).into_iter().find(|folder| {
        folder.ends_with("freezer") && folder.join("cgroup.procs").exists()
            || folder.join("cgroup.controllers").exists()
    })
}

fn freeze(group: &Path, yes: bool) {
    let second = group.join("cgroup.freeze");
    let (file, text) = match (second.exists(), yes) {
        (true, _) => (second, if yes { "1" } else { "0" }),
        (false, true) => (group.join("freezer.state"), "FROZEN"),
        (false, false) => (group.join("freezer.state"), "THAWED"),
    };
    fs::write(file, text).unwrap();
}

fn signal(name: &str, pid: &str) {
    // One that has ended needs none.
    let _ = Command::new("kill").args([name, pid]).output();
}

/// The letter of a process's state; `Z` once it has ended.
pub fn state(pid: &str) -> char {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next()).unwrap_or('-')
}

/// The child of a process whose name begins so.
fn child(of: &Running, name: &str) -> String {
    let pid = of.pid();
    let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap();
    let named = |child: &&str| {
        let words = fs::read_to_string(format!("/proc/{child}/cmdline")).unwrap_or_default().replace('\0', " ");
        let own = fs::read_to_string(format!("/proc/{child}/comm")).unwrap_or_default();
        own.starts_with(name) || words.contains(name)
    };
    children.split_ascii_whitespace().find(named).expect("it has such a child").to_owned()
}

/// becalm itself has ended, though not what it is waiting for.
fn wait_for_end(running: &Running) {
    let pid = running.pid().to_string();
    wait_until("becalm has ended, although what it waits for does not go on", || state(&pid) == 'Z');
}

#[test]
fn janitors() {
    let Some(bench) = machine_has(&[Need::Tracefs]).then(Bench::new).flatten() else { return };
    attack(
        "janitor stopped, frozen: record ends with exit code 1 and names it",
        Tries { all: 6, few: 2 },
        |number, _| {
            let folder = tempfile::tempdir().unwrap();
            let bundle = folder.path().join("run");
            let mut running = Running::start(becalm(&["record", "--quiet", "--until-stopped", "-o", path(&bundle)]));
            running.wait_for_start(&bundle);
            let held = Held::new(&child(&running, "becalm-janitor"), number % 2 == 1);
            running.signal("INT");
            wait_for_end(&running);
            let remedy = held.remedy();
            // Once it goes on it removes what it guards.
            drop(held);
            running.end().expect(1, &["(becalm-janitor)", &remedy]);
            bench.is_untouched("after the janitor went on", &[]);
        },
    );
}

#[test]
fn watchers() {
    let Some(mut bench) = Bench::new() else { return };
    attack(
        "watcher of tune run stopped, frozen: all restored, and it is named",
        Tries { all: 6, few: 2 },
        |number, _| {
            bench.see_threads();
            let ready = bench.place().join("ready");
            let line = format!(": > {}; sleep 1", path(&ready));
            let mut running =
                Running::start(bench.tune(&["run", "--cpus", bench.cpu(), "--quiet", "--", "sh", "-c", &line]));
            running.wait_until("the command runs", || ready.exists());
            let held = Held::new(&child(&running, "tune watch"), number % 2 == 1);
            wait_for_end(&running);
            let remedy = held.remedy();
            drop(held);
            running.end().expect(0, &["the settings are restored", &remedy]);
            fs::remove_file(&ready).unwrap();
            bench.is_untouched("after the watcher went on", &[]);
        },
    );
}

/// Each lock that becalm waits for, held by a program that is stopped.
#[test]
fn locks() {
    let Some(mut bench) = machine_has(&[Need::Program("flock")]).then(Bench::new).flatten() else { return };
    attack(
        "lock of a journal, of the folder of noise held by a stopped program: named",
        Tries { all: 4, few: 2 },
        |number, _| {
            bench.see_threads();
            let hold = |file: &Path| {
                let mut program = Command::new("flock");
                let running = Running::start({
                    program.args(["--no-fork", path(file), "sleep", "1000"]);
                    program
                });
                let is_locked = || File::open(file).unwrap().try_lock().is_err();
                wait_until("it is locked", is_locked);
                let held = Held::new(&running.pid().to_string(), number >= 2);
                (running, held)
            };
            if number % 2 == 0 {
                run(bench.tune(&["apply", "--cpus", bench.cpu(), "--only", "vmstat"])).expect(0, &[]);
                let (holder, held) = hold(&bench.place().join("lock"));
                run(bench.tune(&["restore"])).expect(1, &[&format!("process {}", held.pid()), &held.remedy()]);
                drop(held);
                holder.signal("KILL");
                holder.end();
                run(bench.tune(&["restore"])).expect(0, &[]);
            } else {
                let home = tempfile::tempdir().unwrap();
                // Where else there is room for it, it goes on there.
                let folders: Vec<PathBuf> = ["/run/becalm/inject", "/var/lib/becalm/inject"]
                    .map(PathBuf::from)
                    .into_iter()
                    .filter(|folder| folder.is_dir())
                    .collect();
                let holders: Vec<_> = folders.iter().map(|folder| hold(folder)).collect();
                let mut command = becalm(&[
                    "inject",
                    "--signal",
                    "--quiet",
                    "--interval",
                    "20ms",
                    "--detour",
                    "100us",
                    "--",
                    "sleep",
                    "0.2",
                ]);
                command.env("HOME", home.path());
                let ended = run(command);
                assert!(
                    ended.code == 0 || holders.iter().any(|(_, held)| ended.stderr.contains(&held.remedy())),
                    "{ended:#?}"
                );
                for (holder, held) in holders {
                    drop(held);
                    holder.signal("KILL");
                    holder.end();
                }
            }
            assert_eq!(instances_of(std::process::id()), Vec::<String>::new());
            bench.is_untouched("after the lock was free", &[]);
        },
    );
}
