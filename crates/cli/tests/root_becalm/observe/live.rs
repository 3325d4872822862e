//! `becalm top --observe` beside a planted neighbor.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use becalm_linux::procfs::task::Schedstat;
use becalm_testing::program::{becalm, path, run};
use becalm_testing::{attempts, skip};

use super::first_cpu;
use crate::robust::alone;

/// A program on the first CPU, ended when the test ends.
struct Program(Child);

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Program {
    /// Starts a shell under this name with a script, as a real-time program if `is_urgent`; `None` if that is not allowed.
    fn start(folder: &Path, name: &str, script: &str, is_urgent: bool) -> Option<Self> {
        let program = folder.join(name);
        fs::copy("/bin/bash", &program).unwrap();
        let policy = if is_urgent { ["-f", "50"] } else { ["-o", "0"] };
        let mut command = Command::new("chrt");
        command.args(policy).args(["taskset", "-c", &first_cpu().to_string(), path(&program), "-c", script]);
        let mut child = Self(command.current_dir(folder).stdin(Stdio::null()).spawn().ok()?);
        thread::sleep(Duration::from_millis(100));
        child.0.try_wait().unwrap().is_none().then_some(child)
    }

    fn ran(&self) -> i64 {
        Schedstat::read(Path::new("/"), self.0.id() as i32).unwrap().ran.get()
    }
}

/// A time as printed, in nanoseconds.
fn time(cell: &str) -> Option<f64> {
    let digits = cell.trim_end_matches(char::is_alphabetic);
    let unit = match &cell[digits.len()..] {
        "s" => 1e9,
        "ms" => 1e6,
        "us" => 1e3,
        "ns" => 1.0,
        _ => return None,
    };
    Some(digits.parse::<f64>().ok()? * unit)
}

#[test]
fn a_busy_neighbor_is_the_first_taker_of_each_update() {
    let Some(_alone) = alone() else { return };
    let folder = tempfile::tempdir().unwrap();
    let Some(victim) = Program::start(folder.path(), "spinner", "while :; do :; done", false) else {
        panic!("no spinner")
    };
    // Reading with a limit on time sleeps without another process.
    let bursts =
        "mkfifo p; exec 3<>p; while :; do i=0; while [ $i -lt 3000 ]; do i=$((i+1)); done; read -t 0.02 -u 3; done";
    let Some(neighbor) = Program::start(folder.path(), "grem1", bursts, true) else {
        return skip("real-time programs are not allowed");
    };
    let pid = victim.0.id().to_string();
    attempts(3, || {
        let (since, before) = (Instant::now(), neighbor.ran());
        let ended = run(becalm(&["top", "--observe", "--plain", "--iterations", "3", "--pid", &pid]));
        let share = (neighbor.ran() - before) as f64 / since.elapsed().as_nanos() as f64;
        ended.expect(0, &[]);
        let text = &ended.stdout;
        let answers = text.lines().filter(|line| line.starts_with("becalm top: spinner (1 thread) could have run"));
        let answers: Vec<&str> = answers.collect();
        assert_eq!(answers.len(), 3, "{text}");
        let takers: Vec<&str> = text.split("Takers of the CPU during waits").skip(1).collect();
        let first: Vec<Vec<&str>> =
            takers.iter().map(|block| block.lines().nth(2).unwrap().split_whitespace().collect()).collect();
        let mut observed = text.lines().filter_map(|line| line.split_once("observed ")?.1.split([',', ';']).next());
        let observed = observed.next_back().and_then(time).expect("the length of the observation");
        // Its times: in the update, the longest visit, the sum since the start, the longest since then.
        let times: Vec<f64> = first[2].iter().filter_map(|cell| time(cell)).collect();
        eprintln!("{share:.3} of the time by the kernel's account; {times:?} of {observed}");
        let is_first =
            first.iter().all(|cells| cells[0] == "grem1") && answers.iter().all(|line| line.contains("grem1 had"));
        let is_near = (times[2] / observed - share).abs() < share / 4.0 && (observed / 1e9 - 3.0).abs() < 0.5;
        if is_first && is_near { Ok(()) } else { Err(format!("{share} {times:?} {observed}\n{text}")) }
    });
}

#[test]
fn a_choice_without_threads_is_refused() {
    run(becalm(&["top", "--observe", "--plain"])).expect(2, &["nothing to observe: give --pid, --comm or --cgroup"]);
    run(becalm(&["top", "--observe", "--plain", "--pid", "99999999"])).expect(2, &["there is no process 99999999"]);
    run(becalm(&["top", "--plain", "--comm", "x"])).expect(2, &["give --observe as well"]);
    let often = ["top", "--observe", "--plain", "--comm", "x", "--interval", "100ms"];
    run(becalm(&often)).expect(2, &["--interval is below 500ms"]);
}
