//! Work of the kernel on a thread's behalf, and interrupts on top of it.

use std::fs::{self, File};
use std::io::Write;
use std::net::UdpSocket;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::Command;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use becalm_linux::sched;
use becalm_testing::cgroup::ControlGroup;
use becalm_testing::machine::ChangedSetting;
use becalm_testing::program::{becalm, document, path, run};
use becalm_testing::{attempts, skip};
use serde_json::Value;

use super::planted::{self, Act, of_source};
use super::{first_cpu, number, threads};
use crate::robust::alone;

/// Writes a file of this many MiB that no group has in its cache.
fn write_uncached(path: &Path, mebibytes: i64) {
    let mut file = File::create(path).unwrap();
    for _ in 0..mebibytes {
        file.write_all(&[1; 1 << 20]).unwrap();
    }
    file.sync_all().unwrap();
    drop(file);
    // A page in the cache would belong to the group that read it first.
    let drop_cache = Command::new("dd")
        .arg(format!("of={}", path.display()))
        .args(["oflag=nocache", "conv=notrunc,fdatasync", "count=0", "status=none"])
        .status();
    assert!(drop_cache.unwrap().success());
}

/// Runs an act, and adds the time that it took to a log.
fn logged<T>(log: &Mutex<Duration>, act: impl FnOnce() -> T) -> T {
    let since = Instant::now();
    let done = act();
    *log.lock().unwrap() += since.elapsed();
    done
}

#[test]
fn reclaim_in_a_small_group_is_own_work() {
    const LIMIT: u32 = 64;
    const FILE: i64 = 256;
    let Some(_alone) = alone() else { return };
    let Some(group) = ControlGroup::with_memory(LIMIT) else { return skip("there is no group with a limit on memory") };
    let folder = tempfile::tempdir().unwrap();
    let (file, bundle) = (folder.path().join("file"), folder.path().join("reclaim.becalm"));
    write_uncached(&file, FILE);
    // Memory is charged to the group of a process, not to that of a thread.
    let mut reader = Command::new("cat");
    reader.arg(&file);
    let reader = group.inside(&reader);
    let mut command = becalm(&["observe", "-q", "-o", path(&bundle), "--"]);
    command.arg(reader.get_program()).args(reader.get_args());
    run(command).expect(0, &[]);
    let doc = document(&bundle);
    let thread = threads(&doc).iter().find(|thread| thread["name"] == "cat").expect("it is observed");
    let ((ns, count), failures) = (of_source(thread, "ran", "group_reclaim"), group.memory_failures() as i64);
    eprintln!("{count} times, {ns} ns; the limit was reached {failures} times");
    // The kernel counts each attempt to get memory, also the second one of a pair for fewer pages, and reclaims after at least half of them.
    assert!(
        failures > 20 && count <= failures && count * 3 >= failures,
        "{count} times, {failures} failures: {thread:#}"
    );
    // A page that does not fit takes some nanoseconds at least.
    let beyond = ((FILE - i64::from(LIMIT)) << 20) / 4_096;
    assert!(ns > 5 * beyond && ns < number(thread, "ran_ns"), "{ns} ns for {beyond} pages: {thread:#}");
    assert!(planted::parts(thread, "ran", "own").any(|part| part["source"] == "group_reclaim"), "{thread:#}");
}

#[test]
fn sleeps_for_a_device_are_those_of_their_call() {
    const WRITES: i64 = 100;
    let Some(_alone) = alone() else { return };
    let folder = tempfile::tempdir().unwrap();
    let file = File::create(folder.path().join("file")).unwrap();
    attempts(3, || {
        let log = Mutex::new(Duration::ZERO);
        let writer: Act<'_> = Box::new(|| {
            for number in 0..WRITES {
                file.write_all_at(&[number as u8; 4_096], 4_096 * number as u64).unwrap();
                logged(&log, || file.sync_data()).unwrap();
            }
        });
        let words = ["-q", "--syscalls", "--comm", "ob-writer"];
        let observed = planted::observe(&words, vec![("ob-writer", writer)], |_| ());
        let thread = observed.thread(0);
        let ((ran, calls), (slept, sleeps)) =
            (of_source(thread, "ran", "fdatasync"), of_source(thread, "asleep", "fdatasync"));
        let (logged, waited) = (log.lock().unwrap().as_nanos() as i64, number(thread, "waited_ns"));
        eprintln!(
            "{calls} calls ran for {ran} ns and slept {sleeps} times for {slept} ns, {waited} ns waited; logged {logged} ns"
        );
        assert_eq!(calls, WRITES, "{thread:#}");
        assert!(planted::parts(thread, "asleep", "D").any(|part| part["source"] == "fdatasync"), "{thread:#}");
        // Interrupts on top of a call are not its own time.
        let most = logged * 102 / 100;
        let is_right = ran + slept <= most && (ran + slept + waited) * 100 >= logged * 90;
        if is_right { Ok(()) } else { Err(format!("{ran} + {slept} + {waited} ns of {logged} ns")) }
    });
}

/// Sets a limit of unwritten data until dropped; `None` if it cannot be set.
fn limit_unwritten(name: &str, bytes: u64) -> Option<ChangedSetting> {
    let [ratio, limit] = ["ratio", "bytes"].map(|kind| format!("/proc/sys/vm/{name}_{kind}"));
    // Either a ratio is set or a number of bytes; the other is 0 then.
    let value = |file: &str| Some(fs::read_to_string(file).ok()?.trim().to_owned());
    let file = if value(&ratio)? == "0" { &limit } else { &ratio };
    let before = ChangedSetting::new(file, &value(file)?)?;
    fs::write(&limit, bytes.to_string()).ok()?;
    Some(before)
}

#[test]
fn a_thread_that_writes_too_much_sleeps_because_of_it() {
    const BYTES: u64 = 96 << 20;
    let Some(_alone) = alone() else { return };
    let limits = [("dirty_background", 4 << 20), ("dirty", 8 << 20)].map(|(name, bytes)| limit_unwritten(name, bytes));
    if limits.iter().any(Option::is_none) {
        return skip("the limits of unwritten data cannot be set");
    }
    let folder = tempfile::tempdir().unwrap();
    let file = File::create(folder.path().join("file")).unwrap();
    let log = Mutex::new(Duration::ZERO);
    let writer: Act<'_> = Box::new(|| {
        for number in 0..BYTES >> 16 {
            logged(&log, || file.write_all_at(&[1; 1 << 16], number << 16)).unwrap();
        }
    });
    let observed = planted::observe(&["-q", "--comm", "ob-writer"], vec![("ob-writer", writer)], |_| ());
    drop(limits);
    let thread = observed.thread(0);
    let (slept, count) = of_source(thread, "asleep", "dirty_throttling");
    let logged = log.into_inner().unwrap().as_nanos() as i64;
    eprintln!("{count} sleeps, {slept} ns of {logged} ns in writes");
    assert!(count > 0 && slept <= logged, "{slept} ns of {logged} ns: {thread:#}");
    // Without other sleeps in its writes, most of their time is this.
    let others = number(thread, "asleep_ns") - slept;
    let rest = logged - number(thread, "ran_ns") - number(thread, "waited_ns") - others;
    assert!(slept >= rest, "{slept} ns, and at least {rest} ns: {thread:#}");
}

#[test]
fn waits_for_locks_of_the_kernel_are_own_work() {
    const THREADS: usize = 4;
    const ROUNDS: usize = 3_000;
    let Some(_alone) = alone() else { return };
    let folder = tempfile::tempdir().unwrap();
    let [from, to] = ["from", "to"].map(|name| folder.path().join(name));
    fs::create_dir(&from).unwrap();
    fs::create_dir(&to).unwrap();
    let run = |count: usize| {
        let logs: Vec<Mutex<Duration>> = (0..count).map(|_| Mutex::new(Duration::ZERO)).collect();
        // A file that changes its directory needs the lock of its file system.
        let actors = logs.iter().enumerate().map(|(number, log)| {
            let own = from.join(format!("{number}"));
            fs::write(&own, "").unwrap();
            let other = to.join(format!("{number}"));
            let act: Act<'_> = Box::new(move || {
                for _ in 0..ROUNDS {
                    logged(log, || {
                        fs::rename(&own, &other).unwrap();
                        fs::rename(&other, &own).unwrap();
                    });
                }
            });
            ("ob-locker", act)
        });
        let observed = planted::observe(&["-q", "--comm", "ob-locker"], actors.collect(), |_| ());
        let mut sum = (0, 0);
        for (place, log) in logs.iter().enumerate() {
            let thread = observed.thread(place);
            let ((ran, count), (slept, _)) =
                (of_source(thread, "ran", "kernel_lock"), of_source(thread, "asleep", "kernel_lock"));
            let logged = log.lock().unwrap().as_nanos() as i64;
            assert!(ran + slept <= logged, "{ran} + {slept} of {logged} ns: {thread:#}");
            sum = (sum.0 + ran + slept, sum.1 + count);
        }
        eprintln!("{count} threads: {} ns, {} times", sum.0, sum.1);
        sum
    };
    let (alone, together) = (run(1), run(THREADS));
    assert!(together.1 > 100 && together.1 > 5 * alone.1, "{} times alone, {} together", alone.1, together.1);
    assert!(together.0 > alone.0, "{} ns alone, {} ns together", alone.0, together.0);
}

/// How many softirqs of this name a CPU had.
fn softirqs(name: &str, cpu: usize) -> i64 {
    let text = fs::read_to_string("/proc/softirqs").unwrap();
    let line =
        text.lines().find_map(|line| line.trim_start().strip_prefix(name)?.strip_prefix(':')).expect("a softirq");
    line.split_whitespace().nth(cpu).unwrap().parse().unwrap()
}

#[test]
fn a_flood_of_softirqs_is_on_top_of_the_thread_that_makes_it() {
    const DATAGRAMS: i64 = 50_000;
    let Some(_alone) = alone() else { return };
    let cpu = first_cpu();
    attempts(3, || {
        let receiver = UdpSocket::bind("127.0.0.1:0").unwrap();
        let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
        let address = receiver.local_addr().unwrap();
        let grown = Mutex::new(0);
        let flood: Act<'_> = Box::new(|| {
            sched::pin_current_thread(cpu).unwrap();
            let before = softirqs("NET_RX", cpu.get() as usize);
            for _ in 0..DATAGRAMS {
                // A full buffer of the receiver drops datagrams after the softirq.
                let _ = sender.send_to(&[1; 64], address);
            }
            *grown.lock().unwrap() = softirqs("NET_RX", cpu.get() as usize) - before;
        });
        let observed = planted::observe(&["-q", "--comm", "ob-flood"], vec![("ob-flood", flood)], |_| ());
        observed.compare(0)?;
        let thread = observed.thread(0);
        let (ns, count) = of_source(thread, "ran", "net_rx");
        let grown = *grown.lock().unwrap();
        eprintln!("{count} on top for {ns} ns; the kernel counts {grown}");
        assert!(grown * 10 > DATAGRAMS * 9, "the kernel counts {grown} softirqs for {DATAGRAMS} datagrams");
        let part = thread["ran"].as_array().unwrap().iter().find(|part| part["source"] == "net_rx");
        assert_eq!(part.map(|part| &part["kind"]), Some(&Value::from("softirq")), "{thread:#}");
        assert!(ns > count * 100 && ns < number(thread, "ran_ns"), "{thread:#}");
        // The kernel counts those of other threads on that CPU as well, such as ksoftirqd.
        let is_near = count <= grown + 10 && count * 100 > grown * 95;
        if is_near { Ok(()) } else { Err(format!("{count} on top of it, and the kernel counts {grown}")) }
    });
}
