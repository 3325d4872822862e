//! `becalm inject`: it ends with its parent, and programs under noise by signals notice nothing of it.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::Duration;

use becalm_testing::attack::{Tries, attack};
use becalm_testing::machine::Bench;
use becalm_testing::program::{Running, becalm, executable, path, run};
use becalm_testing::{Need, machine_has};
use tempfile::TempDir;

#[test]
fn it_ends_with_its_parent() {
    let Some(bench) = Bench::new() else { return };
    attack("inject ends with its parent, killed after 0.1, 0.4, 1, 2 s", Tries { all: 4, few: 2 }, |number, _| {
        let delay = Duration::from_millis([100, 400, 1000, 2000][number as usize]);
        let mut shell = Command::new("sh");
        shell.args(["-c", "\"$0\" \"$@\" & wait"]).arg(executable());
        shell.args(["inject", "--interval", "20ms", "--detour", "1ms", "--cpus", "0"]);
        let running = Running::start(shell);
        thread::sleep(delay);
        running.signal("KILL");
        // Looks for processes of the same start, and finds none soon.
        assert_eq!(running.end().code, 128 + 9);
        bench.is_untouched(&format!("parent killed after {delay:?}"), &[]);
    });
}

/// A program that starts others from many threads in each way there is, with small stacks, and uses every real-time signal.
pub fn threads(folder: &Path) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/root_attack/threads.c");
    let program = folder.join("threads");
    let mut compiler = Command::new("cc");
    compiler.args(["-O1", "-Wall", "-Werror", "-pthread", "-o"]).arg(&program).arg(source);
    assert!(compiler.status().expect("there is a C compiler").success());
    program
}

#[test]
fn threads_that_start_programs() {
    if !machine_has(&[Need::Program("cc")]) {
        return;
    }
    let Some(bench) = Bench::new() else { return };
    let folder = TempDir::new().unwrap();
    let program = threads(folder.path());
    let row =
        "1, 16, 300 threads under inject --signal x fork, vfork, posix_spawn, system, stacks of 16 KiB, all signals";
    attack(row, Tries { all: 12, few: 4 }, |number, _| {
        let way = ["fork", "vfork", "posix_spawn", "system"][number as usize % 4];
        // A few tries are of few threads.
        let count = [16, 1, 300][number as usize / 4];
        let noise = ["inject", "--signal", "--quiet", "--interval", "2ms", "--detour", "100us", "--"];
        let ended = run(becalm(&[&noise[..], &[path(&program), way, &count.to_string()]].concat()));
        ended.expect(0, &[]);
        assert_eq!(ended.stdout, format!("{count} threads, {count} programs, 0 wrong\n"), "{ended:#?}");
        assert_eq!(ended.stderr, "");
        bench.is_untouched(way, &[]);
    });
}

/// A program that is handed over to a signal that nobody handles ends as it does without noise.
#[test]
fn signals_that_nobody_handles() {
    let Some(bench) = Bench::new() else { return };
    attack(
        "INT TERM USR1 SEGV, and real-time signals to a program under inject --signal",
        Tries { all: 40, few: 4 },
        |number, random| {
            let signal = ["15", "2", "10", "11", "34", "40", "63", "64"][number as usize % 8];
            let line = format!("ulimit -c 0; kill -{signal} $$; sleep 5");
            // A shell in the background has SIGINT ignored.
            let shell = ["env", "--default-signal", "sh", "-c", &line];
            let alone = {
                let mut command = Command::new(shell[0]);
                command.args(&shell[1..]);
                run(command).code
            };
            let interval = format!("{}us", 500 + random.below(3_000));
            let noise = ["inject", "--signal", "--quiet", "--interval", &interval, "--detour", "50us", "--"];
            let ended = run(becalm(&[&noise[..], &shell].concat()));
            ended.expect(1, &[&format!("ended with signal: {}", alone - 128)]);
            bench.is_untouched(signal, &[]);
        },
    );
}
