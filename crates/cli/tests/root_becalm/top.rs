//! `becalm top` in a real terminal, that of tmux: its screen is read as a user would see it, keys are typed, and afterwards
//! the terminal is as it was. Without root it works as well, on a lower rung.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use becalm_testing::program::{instances_of, path, report, run_becalm};
use becalm_testing::{Need, PATIENCE, machine_has, wait_until};
use tempfile::TempDir;

static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// The right to run alone, where there is tmux.
fn alone() -> Option<MutexGuard<'static, ()>> {
    machine_has(&[Need::Program("tmux")]).then(|| ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner))
}

/// A terminal with a shell in it, and a folder of its own.
struct Terminal {
    folder: TempDir,
}

impl Terminal {
    fn open(width: u32, height: u32) -> Self {
        let terminal = Self { folder: tempfile::tempdir().unwrap() };
        let (width, height) = (width.to_string(), height.to_string());
        let started = terminal.tmux(&[
            "-f",
            "/dev/null",
            "new-session",
            "-d",
            "-x",
            &width,
            "-y",
            &height,
            "env",
            "PS1=ready> ",
            "LC_ALL=C.UTF-8",
            "bash",
            "--norc",
            "--noprofile",
        ]);
        assert!(started.status.success(), "{}", String::from_utf8_lossy(&started.stderr));
        terminal.wait("ready>");
        terminal.types(&format!("cd {}", path(terminal.folder.path())));
        terminal
    }

    fn tmux(&self, arguments: &[&str]) -> Output {
        let socket = self.folder.path().join("tmux");
        let mut command = Command::new("tmux");
        command.arg("-u").arg("-S").arg(&socket).args(arguments).env_remove("TMUX").env("LC_ALL", "C.UTF-8");
        command.output().expect("tmux runs")
    }

    /// Types a text and the enter key.
    fn types(&self, line: &str) {
        self.tmux(&["send-keys", "-l", line]);
        self.keys(&["Enter"]);
    }

    fn keys(&self, keys: &[&str]) {
        self.tmux(&[&["send-keys"], keys].concat());
    }

    fn screen(&self) -> String {
        String::from_utf8_lossy(&self.tmux(&["capture-pane", "-p"]).stdout).into_owned()
    }

    /// Waits until the screen shows something; gives the screen.
    #[track_caller]
    fn wait(&self, text: &str) -> String {
        self.wait_until(text, |screen| screen.contains(text))
    }

    #[track_caller]
    fn wait_until(&self, what: &str, seen: impl Fn(&str) -> bool) -> String {
        let start = Instant::now();
        loop {
            let screen = self.screen();
            if seen(&screen) {
                return screen;
            }
            assert!(start.elapsed() < PATIENCE, "waited for too long for '{what}':\n{screen}");
            thread::sleep(Duration::from_millis(50));
        }
    }

    /// Starts the view of one CPU and waits for its first figures.
    fn top(&self, arguments: &str) -> String {
        let program = env!("CARGO_BIN_EXE_becalm");
        self.types(&format!("clear; {program} top --cpus {} -o run.becalm {arguments}; echo ended $?", last_cpu()));
        self.wait("becalm top");
        // Keys act on rows: before there are any, they have nothing to act on.
        let empty = ["nothing is measured yet", "no detour was seen"];
        self.wait_until("figures", |screen| {
            screen.contains("3 Longest detours") && !empty.iter().any(|text| screen.contains(text))
        })
    }

    /// The number of the program's process.
    fn pid(&self) -> u32 {
        let shell = self.tmux(&["display-message", "-p", "#{pane_pid}"]).stdout;
        let shell = String::from_utf8_lossy(&shell).trim().to_owned();
        let children = fs::read_to_string(format!("/proc/{shell}/task/{shell}/children")).expect("the shell lives");
        children.split_whitespace().next().expect("the view runs").parse().expect("it is a number")
    }

    /// The terminal is as a shell leaves it: lines are edited and echoed, the cursor shows, the former screen is back.
    #[track_caller]
    fn is_restored(&self) {
        // The sum is not on the line that is typed.
        self.types("clear; stty -a | tr '\\n' ' '; echo sum $((40 + 2))");
        let screen = self.wait("sum 42");
        let text = screen.replace('\n', "");
        for setting in [" icanon", " echo ", " isig"] {
            assert!(text.contains(setting), "no '{setting}' in {screen}");
        }
        let state = self.tmux(&["display-message", "-p", "#{alternate_on} #{cursor_flag}"]).stdout;
        assert_eq!(String::from_utf8_lossy(&state).trim(), "0 1");
    }

    fn files(&self) -> Vec<String> {
        let entries = fs::read_dir(self.folder.path()).unwrap().flatten();
        let mut names: Vec<String> = entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        names.retain(|name| name != "tmux");
        names.sort();
        names
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.tmux(&["kill-server"]);
    }
}

/// A CPU to measure that leaves another one free, where there are two.
fn last_cpu() -> usize {
    thread::available_parallelism().map_or(0, |count| count.get() - 1)
}

#[test]
fn root_a_session_at_the_terminal() {
    let Some(_alone) = alone() else { return };
    let terminal = Terminal::open(120, 40);
    let screen = terminal.top("");
    for word in ["1 CPUs", "2 ", "3 Longest detours", "cpu▾", "noise, 10s", "q quit", "? help"] {
        assert!(screen.contains(word), "no '{word}' in\n{screen}");
    }
    let pid = terminal.pid();

    // Sorted by the next column, the other way round.
    terminal.keys(&["Right"]);
    terminal.wait("noise▾");
    terminal.keys(&["r"]);
    terminal.wait("noise▴");

    // Only this CPU, and all again.
    terminal.keys(&["Enter"]);
    terminal.wait(&format!("Longest detours of CPU {}", last_cpu()));
    terminal.keys(&["Escape"]);
    terminal.wait_until("all CPUs", |screen| !screen.contains("Longest detours of CPU"));

    // What happened in the longest detour.
    terminal.keys(&["Tab"]);
    terminal.wait("━ 2 Sources");
    terminal.keys(&["Tab"]);
    terminal.wait("━ 3 Longest detours");
    terminal.keys(&["Enter"]);
    terminal.wait("Detour of ");
    terminal.keys(&["Escape"]);
    terminal.wait("1 CPUs");

    terminal.keys(&["?"]);
    terminal.wait("start all sums again from zero");
    terminal.keys(&["?"]);
    terminal.wait("1 CPUs");

    // The picture stands still, measuring goes on.
    terminal.keys(&["p"]);
    let paused = terminal.wait("PAUSED");
    thread::sleep(Duration::from_secs(2));
    assert_eq!(terminal.screen().lines().next(), paused.lines().next());
    terminal.keys(&["p"]);
    terminal.wait_until("going on", |screen| !screen.contains("PAUSED"));

    // Another size.
    terminal.tmux(&["resize-window", "-x", "80", "-y", "24"]);
    let small = terminal
        .wait_until("the new size", |screen| screen.lines().nth(23).is_some_and(|line| line.contains("q quit")));
    assert!(small.contains("3 Longest detours") && small.lines().all(|line| line.chars().count() <= 80), "{small}");
    terminal.tmux(&["resize-window", "-x", "40", "-y", "10"]);
    terminal.wait_until("a small size", |screen| screen.lines().nth(9).is_some_and(|line| line.contains("q quit")));

    // A save, after which it goes on; then another.
    terminal.tmux(&["resize-window", "-x", "100", "-y", "30"]);
    let save = |name: &str| {
        terminal.wait("s saves the last");
        terminal.keys(&["s"]);
        terminal.wait(&format!("saved: becalm report {name}"));
    };
    save("run.becalm");
    terminal.wait_until("it goes on", |screen| !screen.contains("saved:"));
    save("run-2.becalm");
    terminal.keys(&["q"]);
    let screen = terminal.wait("ended 0");
    assert!(screen.contains("stored in run.becalm"), "{screen}");
    terminal.is_restored();
    assert_eq!(terminal.files(), ["run-2.becalm", "run.becalm"]);
    assert!(instances_of(pid).is_empty());
    for name in ["run.becalm", "run-2.becalm"] {
        let report = report(&terminal.folder.path().join(name));
        assert_eq!(report["nodes"][0]["ended"], "user");
        assert!(report["cpus"][0]["iterations"].as_u64() > Some(1_000), "{report:#}");
        assert!(report["cpus"][0]["duration_ns"].as_u64() > Some(100_000_000), "{report:#}");
    }
}

#[test]
fn root_the_terminal_is_restored_whatever_happens() {
    let Some(_alone) = alone() else { return };
    let terminal = Terminal::open(80, 24);
    for signal in ["TERM", "INT", "HUP"] {
        terminal.top("");
        let pid = terminal.pid();
        let status = Command::new("kill").args(["-s", signal, &pid.to_string()]).status();
        assert!(status.unwrap().success());
        terminal.wait("ended 0");
        terminal.is_restored();
        assert!(instances_of(pid).is_empty());
        assert_eq!(terminal.files(), Vec::<String>::new(), "what was not saved goes");
    }
    terminal.top("");
    terminal.keys(&["C-c"]);
    terminal.wait("ended 0");
    terminal.is_restored();
}

#[test]
fn root_it_ends_with_its_terminal() {
    let Some(_alone) = alone() else { return };
    let terminal = Terminal::open(80, 24);
    terminal.top("");
    let pid = terminal.pid();
    terminal.tmux(&["kill-server"]);
    wait_until("it ends without its terminal", || !Path::new(&format!("/proc/{pid}")).exists());
    assert!(instances_of(pid).is_empty());
    assert_eq!(terminal.files(), Vec::<String>::new());
}

#[test]
fn root_ctrl_z_stops_it_and_fg_brings_it_back() {
    let Some(_alone) = alone() else { return };
    let terminal = Terminal::open(80, 24);
    terminal.types("set -m");
    terminal.top("--no-sources");
    terminal.keys(&["C-z"]);
    terminal.wait("Stopped");
    let state = terminal.tmux(&["display-message", "-p", "#{alternate_on}"]).stdout;
    assert_eq!(String::from_utf8_lossy(&state).trim(), "0");
    terminal.types("fg");
    terminal.wait("1 CPUs");
    terminal.keys(&["q"]);
    terminal.wait_until("the prompt", |screen| !screen.contains("1 CPUs"));
    terminal.is_restored();
}

#[test]
fn root_a_lower_rung_shows_the_kernels_counters() {
    let Some(_alone) = alone() else { return };
    let terminal = Terminal::open(120, 40);
    terminal.top("--no-sources");
    let screen = terminal.wait_until("counters", |screen| screen.contains("interrupts/") || screen.contains("stat/"));
    assert!(screen.contains("Kernel counters that grew"), "{screen}");
    terminal.keys(&["q"]);
    terminal.wait("ended 0");
}

#[test]
fn root_a_folder_that_cannot_be_written_keeps_the_view() {
    let Some(_alone) = alone() else { return };
    let terminal = Terminal::open(100, 30);
    let program = env!("CARGO_BIN_EXE_becalm");
    terminal.types(&format!("clear; {program} top --cpus {} -o missing/run.becalm; echo ended $?", last_cpu()));
    terminal.wait("nothing can be saved");
    terminal.wait("1 CPUs");
    terminal.keys(&["q"]);
    terminal.wait("ended 0");
}

#[test]
fn root_its_drawing_is_its_own_where_all_cpus_are_measured() {
    let Some(_alone) = alone() else { return };
    if !machine_has(&[Need::Tracefs]) {
        return;
    }
    let ended = run_becalm(&["top", "--iterations", "3", "--json"]);
    ended.expect(0, &[]);
    let document: serde_json::Value = serde_json::from_str(&ended.stdout).expect("it is one JSON document");
    assert_eq!(document["schema"], "becalm.top/1");
    let updates = document["updates"].as_array().expect("it has updates");
    assert_eq!(updates.len(), 3);
    let last = &updates[2];
    let own = last["sources"].as_array().into_iter().flatten().find(|source| source["kind"] == "self");
    assert!(own.is_none(), "{last:#}");
    // The figures add up: what the sources took is what the CPUs lost, and becalm's own is beside it.
    let sum = |rows: &serde_json::Value| -> i64 {
        rows.as_array().into_iter().flatten().filter_map(|row| row["total_ns"].as_i64()).sum()
    };
    assert_eq!(sum(&last["sources"]), sum(&last["cpus"]));
    assert!(last["own_ratio"].as_f64().is_some_and(|ratio| ratio > 0.0 && ratio < 0.5), "{last:#}");
}
