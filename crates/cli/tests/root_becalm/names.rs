//! Threads whose names are made to steer the terminal of whoever looks: any local user can have such.

use std::fs;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use becalm_linux::sched;
use becalm_testing::program::{becalm, path, run};
use becalm_testing::{Need, machine_has};

/// A thread's name has 15 bytes.
const NAMES: [&[u8]; 4] =
    [b"\x1b[2J\x1b]0;PWN\x07", b"a\nFAKE  99%", b"\xff\xfe\x80bad\x9b1m", b"\xe2\x80\xaefdp\r\tFAKE"];

#[test]
fn root_no_thread_steers_the_terminal_by_its_name() {
    if !machine_has(&[Need::Root, Need::Tracefs]) {
        return;
    }
    let cpu = sched::allowed_cpus().unwrap().iter().last().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let (bundle, other) = (folder.path().join("run"), folder.path().join("other"));
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        for name in NAMES {
            let over = &over;
            scope.spawn(move || {
                fs::write("/proc/thread-self/comm", name).unwrap();
                sched::pin_current_thread(cpu).unwrap();
                while !over.load(Ordering::Relaxed) {
                    thread::sleep(Duration::from_millis(2));
                }
            });
        }
        let checked = std::panic::catch_unwind(|| {
            let cpu = cpu.to_string();
            check(becalm(&["record", "--cpus", &cpu, "--duration", "1s", "-o", path(&bundle)]));
            let shown = check(becalm(&["report", path(&bundle), "--full"]));
            assert!(shown.contains('\u{fffd}'), "no such thread was seen:\n{shown}");
            check(becalm(&["record", "--cpus", &cpu, "--duration", "1s", "-o", path(&other)]));
            let views: [&[&str]; 6] = [
                &["report", path(&bundle)],
                &["report", "--sources", path(&bundle)],
                &["report", "--sources", path(&bundle), "--per-cpu"],
                &["detours", path(&bundle), "--longest", "10"],
                &["compare", path(&bundle), path(&other)],
                &["top", "--cpus", &cpu, "--interval", "500ms", "--iterations", "2"],
            ];
            for view in views {
                check(becalm(view));
            }
            check(becalm(&["tune", "plan", "--cpus", &cpu, "--full"]));
        });
        over.store(true, Ordering::Relaxed);
        if let Err(panic) = checked {
            std::panic::resume_unwind(panic);
        }
    });
    // What is stored is raw: scripts see the names that there were.
    let json = run(becalm(&["report", "--sources", path(&bundle), "--json"])).stdout;
    assert!(json.contains("\\u001b[2J") && json.contains("a\\nFAKE"), "{json}");
}

/// Runs a command, whose output must be harmless.
fn check(command: Command) -> String {
    let shown = format!("{command:?}");
    let ended = run(command);
    for text in [&ended.stdout, &ended.stderr] {
        assert_eq!(becalm_units::printable_lines(text), text.as_str(), "{shown}");
        assert!(!text.lines().any(|line| line.starts_with("FAKE")), "{shown}: {text}");
    }
    assert_eq!(ended.code, 0, "{ended:?}");
    ended.stdout
}
