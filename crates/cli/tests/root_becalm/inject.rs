//! `becalm inject` on CPUs, from the outside: nothing of it is left, however it ends. Needs root.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::Duration;

use becalm_linux::sched::{self, Policy};
use becalm_testing::program::{Running, becalm, path, run};
use becalm_testing::{Need, attempts, machine_has};
use becalm_units::CpuId;
use serde_json::Value;

const NOISE: [&str; 7] = ["inject", "--interval", "20ms", "--detour", "1ms", "--cpus", "0"];

/// The real-time threads of a process that inject.
fn injecting(pid: u32) -> usize {
    let names = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let names = names.filter_map(|task| fs::read_to_string(task.path().join("comm")).ok());
    names.filter(|name| name.trim() == "becalm-inject").count()
}

fn started(command: Command) -> Running {
    let mut running = Running::start(command);
    let pid = running.pid();
    running.wait_until("it injects", || injecting(pid) == 1);
    running
}

#[test]
fn nothing_is_left_of_an_injector_that_is_killed() {
    if !machine_has(&[Need::Root]) {
        return;
    }
    let running = started(becalm(&NOISE));
    let pid = running.pid();
    running.signal("KILL");
    assert_eq!(running.end().code, 128 + 9);
    assert_eq!(injecting(pid), 0);
}

/// Asked to end, it says what was delivered, and takes its command with it.
#[test]
fn an_injector_that_is_asked_to_end_ends_its_command() {
    if !machine_has(&[Need::Root]) {
        return;
    }
    let running = started(becalm(&[&NOISE[..], &["--", "sleep", "1000"]].concat()));
    running.signal("TERM");
    let ended = running.end();
    ended.expect(0, &[]);
    assert!(ended.stdout.contains("delivered"), "{ended:?}");
}

/// The parent cannot tell it to, being killed itself.
#[test]
fn an_injector_ends_with_its_parent() {
    if !machine_has(&[Need::Root]) {
        return;
    }
    let mut shell = Command::new("sh");
    shell.args(["-c", "\"$0\" \"$@\" & wait", env!("CARGO_BIN_EXE_becalm")]).args(NOISE);
    let mut running = Running::start(shell);
    let parent = running.pid();
    let child = move || {
        let children = fs::read_to_string(format!("/proc/{parent}/task/{parent}/children")).unwrap_or_default();
        children.split_ascii_whitespace().next().and_then(|pid| pid.parse::<u32>().ok())
    };
    running.wait_until("it injects", || child().is_some_and(|pid| injecting(pid) == 1));
    running.signal("KILL");
    // Looks for processes of the same start, and finds none soon.
    assert_eq!(running.end().code, 128 + 9);
}

/// A program that says what it lost in the first half and in the second half of its time.
fn spin(folder: &Path) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../inject/tests/programs/spin.c");
    let program = folder.join("spin");
    assert!(Command::new("cc").args(["-O1", "-o"]).arg(&program).arg(source).status().unwrap().success());
    program
}

/// Killed, becalm leaves a program under noise by signals that goes on without noise. That needs no root, but an idle machine.
#[test]
fn the_noise_by_signals_ends_when_becalm_is_killed() {
    let folder = tempfile::tempdir().unwrap();
    let program = spin(folder.path());
    // Others who take the CPU meanwhile seldom keep it for as long as a detour is.
    attempts(3, || {
        let noise =
            ["inject", "--signal", "--interval", "40ms", "--detour", "20ms", "--", path(&program), "3", "15000"];
        let running = Running::start(becalm(&noise));
        thread::sleep(Duration::from_millis(1_200));
        running.signal("KILL");
        let ended = running.end();
        assert_eq!(ended.code, 128 + 9);
        let seen: Vec<f64> = ended.stdout.split_ascii_whitespace().map(|word| word.parse().unwrap()).collect();
        let [before, median_ns, after, _] = seen[..] else { panic!("{ended:?}") };
        let said = format!("{before} detours of {median_ns} ns before, {after} after");
        if before > 20.0 && after < before / 4.0 { Ok(()) } else { Err(said) }
    });
}

/// Killed, becalm leaves the library behind. What the program starts then loads it, but has neither noise nor the library in its
/// own environment, and says nothing of it. The next becalm removes what is left.
#[test]
fn what_becalm_leaves_when_it_is_killed_is_removed_by_the_next() {
    // A process has files, and locks on them, until it is gone for its parent.
    let script = "env; while kill -0 $PPID 2>/dev/null; do sleep 0.05; done; echo; env";
    let noise = ["inject", "--signal", "--interval", "10ms", "--detour", "100us", "--"];
    let mut running = Running::start(becalm(&[&noise[..], &["sh", "-c", script]].concat()));
    let pid = running.pid();
    let children = move || fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    running.wait_until("the program runs", || !children().is_empty());
    // It has printed its environment by then.
    thread::sleep(Duration::from_millis(500));
    running.signal("KILL");
    let ended = running.end();
    assert_eq!(ended.code, 128 + 9);
    let (before, after) = ended.stdout.split_once("\n\n").unwrap_or_else(|| panic!("{ended:?}"));
    let value = |name: &str| before.lines().find_map(|line| line.strip_prefix(name)).unwrap().to_owned();
    let paths = [value("LD_PRELOAD="), value("BECALM_INJECT=")];
    assert!(paths.iter().all(|path| Path::new(path).is_file()), "{paths:?}");
    assert!(!after.contains("becalm-preload") && !after.contains("BECALM_INJECT"), "{after}");
    assert_eq!(ended.stderr, "");
    Running::start(becalm(&[&noise[..], &["true"]].concat())).end().expect(0, &[]);
    assert!(!paths.iter().any(|path| Path::new(path).exists()), "{paths:?}");
}

/// How often a CPU ran the network's receiving softirq, by the kernel's own count.
fn net_rx(cpu: usize) -> u64 {
    let text = fs::read_to_string("/proc/softirqs").unwrap();
    let (heads, lines) = text.split_once('\n').unwrap();
    let column = heads.split_whitespace().position(|head| head == format!("CPU{cpu}")).unwrap();
    let line = lines.lines().find_map(|line| line.trim_start().strip_prefix("NET_RX:")).unwrap();
    line.split_whitespace().nth(column).unwrap().parse().unwrap()
}

#[test]
fn a_detour_of_packets_is_the_network_s() {
    if !machine_has(&[Need::Root]) {
        return;
    }
    let before = net_rx(0);
    let words =
        ["inject", "--packets", "--interval", "10ms", "--detour", "500us", "--cpus", "0", "--duration", "1s", "--json"];
    let ended = run(becalm(&words));
    ended.expect(0, &[]);
    let received = net_rx(0) - before;
    let document: Value = serde_json::from_str(&ended.stdout).unwrap();
    let of = |name: &str| document["delivered"][name].as_u64().unwrap();
    let packets = document["packets"].as_u64().unwrap();
    assert_eq!(document["way"], "packets", "{document:#}");
    // One a detour at least, and each was received by the CPU that lost the time.
    assert!(of("count") >= 50 && packets >= of("count") * 5, "{document:#}");
    assert!(received >= packets * 9 / 10, "{received} received, {packets} sent");
    // They make no detour longer than those of the clock are but by a part of a packet.
    let mean = document["delivered"]["length_ns"].as_f64().unwrap();
    assert!((490_000.0..700_000.0).contains(&mean), "{document:#}");
}

/// Where in windows of the wall clock this thread loses time on a CPU, as it sees itself: the gaps of at least 100 us between two readings,
/// and less than 10 ms, each as when in its window it began, and how long it was.
fn gaps(cpu: u32, window: Duration, lasts: Duration) -> Vec<(Duration, Duration)> {
    sched::pin_current_thread(CpuId::new(cpu)).unwrap();
    // Below the class of the noise, and above everything else that runs here.
    sched::set_policy(Policy::Fifo(40)).unwrap();
    let now = || std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    let (begun, mut last) = (now(), now());
    let mut gaps = Vec::new();
    while last - begun < lasts {
        let next = now();
        // Longer than any noise here is what the kernel keeps back from real-time threads.
        if (Duration::from_micros(100)..Duration::from_millis(10)).contains(&next.saturating_sub(last)) {
            gaps.push((Duration::from_nanos((last.as_nanos() % window.as_nanos()) as u64), next - last));
        }
        last = next;
    }
    gaps
}

/// On both CPUs, each with random noise of its own, time is lost where windows of the wall clock end. Beside what else runs here.
#[test]
fn coalesced_noise_comes_where_windows_of_the_wall_clock_end() {
    if !machine_has(&[Need::Root, Need::TwoCpus]) {
        return;
    }
    let window = Duration::from_millis(20);
    let share = |more: &[&str]| {
        let folder = tempfile::tempdir().unwrap();
        let begun = folder.path().join("begun");
        let noise = ["inject", "--rate", "200Hz", "--detour", "300us", "--cpus", "0-1", "--json"];
        let command = ["--", "sh", "-c", "touch \"$0\"; sleep 1", path(&begun)];
        let injecting = Running::start(becalm(&[&noise[..], more, &command].concat()));
        // The threads that look are above everything else, also above what sets the noise up.
        while !begun.exists() {
            thread::sleep(Duration::from_millis(10));
        }
        let both = [0, 1].map(|cpu| thread::spawn(move || gaps(cpu, window, Duration::from_millis(600))));
        let gaps = both.map(|thread| thread.join().unwrap());
        let ended = injecting.end();
        let document: Value = serde_json::from_str(&ended.expect(0, &[]).stdout).unwrap();
        assert_eq!(document["coalesced_ns"].as_u64(), (!more.is_empty()).then_some(20_000_000), "{document:#}");
        gaps.map(|gaps| {
            let sum = |gaps: &mut dyn Iterator<Item = &(Duration, Duration)>| {
                gaps.map(|gap| gap.1.as_secs_f64()).sum::<f64>()
            };
            let at_end = |gap: &&(Duration, Duration)| gap.0 < window / 10 || gap.0 > window - window / 50;
            sum(&mut gaps.iter().filter(at_end)) / sum(&mut gaps.iter()).max(1e-9)
        })
    };
    attempts(3, || {
        let (apart, together) = (share(&[]), share(&["--coalesce", "20ms"]));
        eprintln!("of the time lost, at the ends of windows: {apart:?} as it comes, {together:?} coalesced");
        let holds = (0..2).all(|cpu| together[cpu] > 0.5 && together[cpu] > 2.0 * apart[cpu]);
        if holds { Ok(()) } else { Err(format!("{apart:?} as it comes, {together:?} coalesced")) }
    });
}
