//! Files as other people have them: each test stands for a kind of file that becalm once refused without a word or took for something else.
//! The inputs are made here, in the shape in which the programs print them, with counts and times that are planted.

use std::cell::Cell;
use std::fmt::Write as _;
use std::fs;

use becalm_testing::program::becalm;
use serde_json::Value;

/// What becalm says to a file: what it reports of it if it is imported (of a distribution, that of its only node), else its error.
fn import(text: &str, arguments: &[&str]) -> Result<Value, String> {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("file.txt"), text).unwrap();
    let run = |arguments: &[&str]| becalm(arguments).current_dir(folder.path()).output().unwrap();
    let imported = run(&[&["import", "file.txt", "-o", "run.becalm"], arguments].concat());
    if !imported.status.success() {
        assert!(!folder.path().join("run.becalm").exists(), "it left something");
        return Err(String::from_utf8(imported.stderr).unwrap());
    }
    let report = run(&["report", "run.becalm", "--json"]);
    assert!(report.status.success(), "{report:?}");
    let mut document: Value = serde_json::from_slice(&report.stdout).unwrap();
    let is_distribution = document["schema"].as_str().unwrap().contains("distribution");
    Ok(if is_distribution { document["nodes"][0].take() } else { document })
}

fn refused(text: &str, arguments: &[&str], words: &[&str]) {
    let error = import(text, arguments).unwrap_err();
    assert!(words.iter().all(|word| error.contains(word)), "{words:?}: {error}");
}

/// Kind, source, count and time of each source.
fn sources(document: &Value) -> Vec<(String, String, u64, u64)> {
    let row = |row: &Value| {
        let text = |name: &str| row[name].as_str().unwrap().to_owned();
        let number = |name: &str| row[name].as_u64().unwrap();
        (text("kind"), text("source"), number("count"), number("total_ns"))
    };
    let mut rows: Vec<_> = document["sources"].as_array().unwrap().iter().map(row).collect();
    rows.sort();
    rows
}

fn codes(document: &Value) -> Vec<&str> {
    document["warnings"].as_array().into_iter().flatten().filter_map(|warning| warning["code"].as_str()).collect()
}

/// Events of CPU 2: six times an interrupt of 12 us, and 8 us later another thread for 100 us. `event` writes one: who has the CPU (name and
/// number), microseconds, the event and its fields.
fn six_times(
    [own, other]: [(&str, i32); 2],
    other_state: char,
    event: impl Fn((&str, i32), u64, &str, &str) -> String,
) -> String {
    let switch = |(name, tid): (&str, i32), state: char, (next, next_tid): (&str, i32)| {
        format!(
            "prev_comm={name} prev_pid={tid} prev_prio=120 prev_state={state} ==> next_comm={next} next_pid={next_tid} next_prio=120"
        )
    };
    let mut text = String::new();
    for at in (0..6).map(|time| 237_604 + time * 10_000) {
        text += &event(own, at, "irq_handler_entry", "irq=41 name=nvme0q3");
        text += &event(own, at + 12, "irq_handler_exit", "irq=41 ret=handled");
        text += &event(own, at + 20, "sched_switch", &switch(own, 'R', other));
        text += &event(other, at + 120, "sched_switch", &switch(other, other_state, own));
    }
    text
}

/// The kernel's own text, with and without the options `record-tgid` and `irq-info`, of real-time kernels, and by trace-cmd.
#[test]
fn traces_as_text_are_read_in_every_dialect() {
    let threads = [("solver", 15_165), ("kworker/2:1", 417)];
    let title = "# tracer: nop\n#\n#           TASK-PID   CPU#  ||||    TIMESTAMP  FUNCTION\n";
    for (first, group, flags) in [
        (title, "", "d.h. "),
        (title, " (  15165)", "d.h1. "),
        (title, " (-------)", "d..h.1.. "),
        (title, "", "dNh..2.11 "),
        ("cpus=4\n", "", ""),
    ] {
        let text = six_times(threads, 'I', |(name, tid), micros, event, fields| {
            format!("{name:>16}-{tid:<7}{group} [002] {flags}4338.{micros:06}: {event}: {fields}\n")
        });
        let document = import(&format!("{first}{text}"), &[]).unwrap();
        let wanted = [("irq", "nvme0q3", 6, 72_000), ("kthread", "kworker", 6, 600_000)];
        assert_eq!(sources(&document), wanted.map(|(kind, name, count, ns)| (kind.into(), name.into(), count, ns)));
        refused(&format!("{first}{text}"), &["--from", "perf-script"], &["it looks like ftrace"]);
    }
}

/// perf's text with names over which parsers stumble, and with the process in front of the thread.
#[test]
fn names_of_perf_may_hold_anything() {
    for (own, other, process) in [
        ("[ET_NET 0]", "[ET_TASK 1]", ""),
        ("Hashed wheel ti", "a b c", ""),
        ("a) R 1 (b", "x ==> y", ""),
        ("作业-1", "tâche", ""),
        ("1234567", "512.004411:", ""),
        ("apply worker", "grpc-server-1", "15165/"),
    ] {
        let text = six_times([(own, 15_165), (other, 417)], 'S', |(name, tid), micros, event, fields| {
            let system = if event == "sched_switch" { "sched" } else { "irq" };
            format!("{name:>16} {process}{tid} [002]   512.{micros:06}: {system:>7}:{event}: {fields}\n")
        });
        let document = import(&text, &["--comm", own]).unwrap();
        let [thread, others] = [&document["threads"], &document["takers"]].map(|rows| rows.as_array().unwrap());
        assert_eq!((thread.len(), &thread[0]["name"], &thread[0]["queued_ns"]), (1, &own.into(), &600_000.into()));
        assert_eq!((others.len(), &others[0]["source"], &others[0]["count"]), (1, &other.into(), &6.into()));
        let interrupt = thread[0]["ran"].as_array().unwrap().iter().find(|part| part["kind"] == "irq").unwrap();
        assert_eq!((&interrupt["source"], &interrupt["ns"]), (&"nvme0q3".into(), &72_000.into()));
    }
    // Without -a, perf prints no CPU; other fields may be left out by -F.
    let without = six_times([("redis-server", 15_165), ("b", 417)], 'S', |(name, tid), micros, event, fields| {
        let system = if event == "sched_switch" { "sched" } else { "irq" };
        format!(
            "{name:>16} {tid:>7}   512.{micros:06}: {system:>7}:{event}: {fields}\n\t    7fff811a schedule ([kernel])\n\n"
        )
    });
    refused(&without, &[], &["without CPUs", "perf record -a", "perf script -F"]);
    refused(&without, &["--from", "perf-script"], &["without CPUs", "perf record -a"]);
}

/// An event of `six_times` as perf prints it, with a period.
fn of_perf((name, tid): (&str, i32), micros: u64, period: u64, event: &str, fields: &str) -> String {
    let system = if event == "sched_switch" { "sched" } else { "irq" };
    format!("{name:>16} {tid:>7} [002]   512.{micros:06}: {period:>10} {system:>7}:{event}: {fields}\n")
}

const SOLVER: [(&str, i32); 2] = [("solver", 15_165), ("kworker/2:1", 417)];

/// perf prints periods on request. Some events have lengths in that column, although the trace has all of them.
#[test]
fn samples_of_events_are_no_trace() {
    let whole = six_times(SOLVER, 'I', |thread, micros, event, fields| of_perf(thread, micros, 1, event, fields));
    let runtime = of_perf(SOLVER[0], 237_700, 46_000, "sched_stat_runtime", "comm=solver pid=15165 runtime=46000 [ns]");
    let document = import(&format!("{whole}{runtime}"), &[]).unwrap();
    assert_eq!(sources(&document).len(), 2);
    for event in ["irq_handler_exit", "sched_switch"] {
        let sampled = six_times(SOLVER, 'I', |thread, micros, which, fields| {
            of_perf(thread, micros, if which == event { 46 } else { 1 }, which, fields)
        });
        let line = if event == "sched_switch" { "line 3:" } else { "line 2:" };
        refused(&sampled, &[], &[line, "a period of 46", "'perf record -a -c 1'"]);
    }
    // Without periods, an entry follows an entry, or an exit an exit.
    let without = |missing: &dyn Fn(usize) -> bool| -> String {
        let interrupts = whole.lines().filter(|line| line.contains("irq_handler")).enumerate();
        interrupts.filter(|(number, _)| !missing(*number)).map(|(_, line)| format!("{line}\n")).collect()
    };
    refused(
        &without(&|number| [1, 3, 6, 8].contains(&number)),
        &[],
        &["in 4 of its 8 entries", "'perf record -a -c 1'"],
    );
    // As where entries were enabled after exits.
    import(&without(&|number| [0, 2, 4].contains(&number)), &[]).unwrap();
}

/// A recording of one process has the switches away from its threads, and none to them: what ran between is not known.
#[test]
fn traces_of_one_process_are_no_traces_of_cpus() {
    let kernels = |(name, tid): (&str, i32), micros: u64, event: &str, fields: &str| {
        format!("{name:>16}-{tid:<7} [002] d.h. 4338.{micros:06}: {event}: {fields}\n")
    };
    let perfs = |thread: (&str, i32), micros: u64, event: &str, fields: &str| of_perf(thread, micros, 1, event, fields);
    let title = "# tracer: nop\n#\n#           TASK-PID   CPU#  ||||    TIMESTAMP  FUNCTION\n";
    for text in [six_times(SOLVER, 'I', perfs), title.to_owned() + &six_times(SOLVER, 'I', kernels)] {
        import(&text, &[]).unwrap();
        let own = |text: &str| -> String {
            let is_own = |line: &&str| line.trim_start().starts_with("solver") || line.starts_with('#');
            text.lines().filter(is_own).map(|line| format!("{line}\n")).collect()
        };
        for arguments in [&[][..], &["--comm", "solver"]] {
            refused(&own(&text), arguments, &["5 of its 5 switches", "'perf record -a -c 1'", "'trace-cmd record'"]);
        }
    }
    // After lost events any thread may come next.
    let lossy = six_times(SOLVER, 'I', |thread, micros, event, fields| {
        let lost = if event == "irq_handler_entry" { "CPU:2 [LOST 3 EVENTS]\n" } else { "" };
        if thread == SOLVER[0] { lost.to_owned() + &kernels(thread, micros, event, fields) } else { String::new() }
    });
    assert!(codes(&import(&format!("{title}{lossy}"), &[]).unwrap()).contains(&"lost_events"));
}

/// What `perf script` printed of Linux 6.18 after CPU 1 had been offline: its idle task wrote no event.
#[test]
fn a_cpu_whose_idle_task_is_not_traced_is_named() {
    let switch = |cpu: u32, at: u32, (name, tid): (&str, i32), (next, next_tid): (&str, i32)| {
        format!(
            "{name:>16} {tid:>5} [{cpu:03}] 13478.{at:06}789: sched:sched_switch: prev_comm={name} prev_pid={tid} prev_prio=120 prev_state=S \
             ==> next_comm={next} next_pid={next_tid} next_prio=120\n"
        )
    };
    let (idle, worker, rcu) = (("swapper", 0), ("memfd:sealed-91", 11_880), ("rcu_preempt", 15));
    let of_first = switch(0, 362_862, idle, rcu) + &switch(0, 362_865, rcu, idle);
    let of_second: String = (0..10).map(|at| switch(1, 372_562 + 50_241 * at, worker, idle)).collect();
    let document = import(&(of_first.clone() + &of_second), &[]).unwrap();
    let of_all = ["lost_events", "unseen_ns", "iterations", "t_min_ns"].map(|name| &document["total"][name]);
    assert!(of_all.iter().all(|figure| figure.is_null()), "{of_all:?} of a file that does not say so");
    let warnings = document["warnings"].as_array().unwrap();
    let said = warnings.iter().filter(|warning| warning["code"] == "missing_events");
    let named = |warning: &Value| {
        warning["message"].as_str().unwrap().starts_with("the trace of CPU 1 has no switch away from the idle task")
    };
    assert_eq!(said.filter(|warning| named(warning)).count(), 1, "{warnings:#?}");
    // Without idle tasks of other CPUs, it may be a recording of one thread.
    refused(&of_second, &[], &["9 of its 9 switches", "'perf record -a -c 1'"]);
    // A missing thread is no missing idle task.
    let others = switch(1, 372_562, worker, rcu) + &switch(1, 472_562, worker, rcu) + &switch(1, 572_562, worker, rcu);
    refused(&(of_first + &others), &[], &["2 of its 3 switches"]);
}

/// `perf script --deltatime` prints the time since the event in front; a few events out of order only cause a warning.
#[test]
fn differences_are_no_times() {
    let whole = six_times(SOLVER, 'I', |thread, micros, event, fields| of_perf(thread, micros, 1, event, fields));
    let last = Cell::new(237_604);
    let deltas = six_times(SOLVER, 'I', |thread, micros, event, fields| {
        of_perf(thread, micros - last.replace(micros), 1, event, fields)
    });
    refused(&deltas, &[], &["16 of its 24 events", "no times of one clock", "without --deltatime"]);
    for (swaps, words) in [
        (1, "1 event of the trace is stamped before the one in front of it, and was moved behind it"),
        (2, "2 events of the trace are stamped before one in front of them, and were moved behind it"),
    ] {
        let mut lines: Vec<&str> = whole.lines().collect();
        (0..swaps).for_each(|round| lines.swap(4 * round, 4 * round + 1));
        let document = import(&(lines.join("\n") + "\n"), &[]).unwrap();
        let warnings = document["warnings"].as_array().unwrap();
        let said = warnings.iter().find(|warning| warning["code"] == "counter_backwards").unwrap();
        assert_eq!(said["message"], words);
    }
}

/// Threads of the kernel that drivers and file systems name, and one of a name that nobody can know.
#[test]
fn threads_of_the_kernel_count_as_such_or_are_named() {
    let names =
        ["sugov:0", "usb-storage", "ptlrpcd_00_01", "txg_sync", "nfsd", "iou-sqp-1200", "kworker/2:1", "mystery"];
    let mut text = String::new();
    for round in 0..6 {
        for (number, name) in names.iter().enumerate() {
            let at = 100_000 * round + 10_000 * number;
            let mut switch = |micros: usize, [(prev, prev_tid), (next, next_tid)]: [(&str, usize); 2]| {
                writeln!(
                    text,
                    "{prev} {prev_tid} [002] 512.{micros:06}: sched:sched_switch: {prev}:{prev_tid} [120] R ==> {next}:{next_tid} [120]"
                )
                .unwrap();
            };
            let (solver, thread) = (("solver", 15_165), (*name, 80 + number));
            switch(at, [solver, thread]);
            switch(at + 100, [thread, solver]);
        }
    }
    let document = import(&text, &[]).unwrap();
    let found = sources(&document);
    assert_eq!(found.len(), names.len() - 1, "{found:?}");
    assert!(
        found.iter().all(|(kind, _, count, ns)| (kind.as_str(), *count, *ns) == ("kthread", 6, 600_000)),
        "{found:?}"
    );
    let warning =
        document["warnings"].as_array().unwrap().iter().find(|it| it["code"] == "taken_for_programs").unwrap();
    let message = warning["message"].as_str().unwrap();
    assert!(message.contains("mystery (600.000us)") && message.contains("solver"), "{message}");
    // Nothing of interrupts was recorded.
    assert!(codes(&document).contains(&"missing_events"), "{:?}", codes(&document));
}

/// Rows of a histogram, as cyclictest prints them: latency, and a count for each thread.
fn histogram(separator: &str) -> String {
    let mut text = String::new();
    for latency in 0..40_u64 {
        let counts = [latency * 3 % 7, latency % 5, 40 - latency].map(|count| format!("{separator}{count:06}"));
        writeln!(text, "{latency:06}{}", counts.concat()).unwrap();
    }
    text
}

/// cyclictest's histogram as scripts leave it: without its title, with commas, or with a title of its own.
#[test]
fn histograms_without_a_title_are_no_detours() {
    let csv = format!("time,core1,core2,core3\n {}", histogram(","));
    // A script that keeps only what came, in nanoseconds.
    let sparse: String = (0..60).map(|row| format!("{:06}\t{:06}\n", 2_337 + row * row * 17, 1 + row % 3)).collect();
    for text in [histogram("\t"), histogram(" "), csv.clone(), sparse.clone()] {
        refused(&text, &[], &["without a title that says", "--from cyclictest", "--from selfish"]);
    }
    let wanted: u64 = (0..40).map(|latency| latency * 3 % 7).sum();
    for text in [histogram("\t"), csv] {
        let document = import(&text, &["--from", "cyclictest"]).unwrap();
        assert_eq!(document["series"][0]["count"], wanted, "{document:#}");
        assert!(codes(&document).contains(&"imported_cut"), "{:?}", codes(&document));
    }
    let document = import(&sparse, &["--from", "cyclictest", "--unit", "ns"]).unwrap();
    assert_eq!(document["series"][0]["count"], (0..60).map(|row| 1 + row % 3).sum::<u64>());
    // Editors of Windows put a mark in front of a text, and end lines otherwise.
    let marked = format!("\u{feff}# Histogram\r\n{}", histogram("\t").replace('\n', "\r\n"));
    assert_eq!(import(&marked, &[]).unwrap()["series"][0]["count"], wanted);
    // Where the command line ends without a line's end, the closing comments tell.
    let glued = format!(
        "cyclictest -S -h400 -q# /dev/cpu_dma_latency set to 0us\n{}# Total: {wanted:09} {:09} {:09}\n# Min Latencies: 00001 00001 00000\n\
         # Avg Latencies: 00018 00020 00013\n# Max Latencies: 00039 00039 00039\n# Histogram Overflows: 00000 00000 00000\n",
        histogram("\t"),
        (0..40).map(|latency| latency % 5).sum::<u64>(),
        (0..40).map(|latency| 40 - latency).sum::<u64>(),
    );
    assert_eq!(import(&glued, &[]).unwrap()["series"][0]["count"], wanted);
}

/// oslat in a container, whose log has the environment in front, or time stamps.
#[test]
fn logs_of_containers_are_read_or_named() {
    let plain = "oslat V 1.10\nTotal runtime: \t\t10 seconds\nCPU list: \t\t5,6\nTest completed.\n\n        Core:\t 5 6\n\
                 \x20   CPU Freq:\t 2493 2493 (Mhz)\n    001 (us):\t 426829052 426240622\n    002 (us):\t 143 4\n    003 (us):\t 0 12 (including overflows)\n\
                 \x20    Minimum:\t 1 1 (us)\n     Average:\t 1.000 1.000 (us)\n     Maximum:\t 2 17 (us)\n     Max-Min:\t 1 16 (us)\n    Duration:\t 10.040 10.040 (sec)\n";
    let pod = format!(
        "############# dumping env ###########\nHOSTNAME=pod1\nPRIO=1\n#####\nallowed cpu list: 4-11\ncmd to run: oslat -D 10\n{plain}"
    );
    for text in [plain, &pod] {
        let document = import(text, &[]).unwrap();
        let series = document["series"].as_array().unwrap();
        let of = |name: &str| series.iter().map(|series| series[name].as_i64().unwrap()).collect::<Vec<_>>();
        assert_eq!((of("count"), of("max_ns")), (vec![426_829_195, 426_240_638], vec![2_000, 17_000]));
    }
    let stamped: String = pod.lines().map(|line| format!("2026-03-03T10:11:12.123456789Z {line}\n")).collect();
    refused(&stamped, &[], &["1 word in front of each line", "oslat", "sed -E"]);
    refused(&stamped, &["--from", "oslat"], &["1 word in front of each line", "sed -E"]);
}

/// The table of `rtla timerlat top` is rtla's, and holds no distribution.
#[test]
fn the_table_of_timerlat_is_named() {
    for quiet in [
        "                                     Timer Latency                                              \n\
         \x20 0 00:01:00   |          IRQ Timer Latency (us)        |         Thread Timer Latency (us)\n\
         CPU COUNT      |      cur       min       avg       max |      cur       min       avg       max\n\
         \x20 0 #60010     |        0         0         0        17 |        2         1         2        71\n",
        "CPU COUNT      |      cur       min       avg       max |      cur       min       avg       max |      cur       min       avg       max\n\
         \x20 1 #59990     |        0         0         0        17 |        2         1         2       367 |        3         1         2       370\n\
         rtla timerlat hit stop tracing\n## CPU 1 hit stop tracing, analyzing it ##\n",
    ] {
        refused(quiet, &[], &["rtla timerlat top", "rtla timerlat hist"]);
        refused(quiet, &["--from", "rtla"], &["rtla timerlat top", "rtla timerlat hist"]);
    }
}

/// A damaged trace has one thread on eight CPUs for 73 years each, and as many lost events as a number holds: each figure is one that is
/// read, and their sums are more than integers hold.
#[test]
fn sums_over_cpus_that_no_machine_has_are_no_panic() {
    let switch = |cpu: usize, at: u64, prev: &str, next: &str| {
        let [prev_pid, next_pid] = [prev, next].map(|name| if name == "work" { 77 } else { 5 });
        format!(
            "            work-77      [{cpu:03}] d..2. {at}.000001: sched_switch: prev_comm={prev} prev_pid={prev_pid} prev_prio=120 \
             prev_state=S ==> next_comm={next} next_pid={next_pid} next_prio=120\n"
        )
    };
    for lost in ["LOST EVENTS", "LOST 18446744073709551615 EVENTS"] {
        let mut text = "# tracer: nop\n#\n".to_owned();
        for cpu in 0..8 {
            text += &switch(cpu, 1, "other", "work");
            text += &switch(cpu, 2_305_843_008, "work", "other");
            text += &format!("CPU:{cpu} [{lost}]\n");
            text += &switch(cpu, 2_305_843_009, "other", "work");
        }
        let document = import(&text, &[]).unwrap();
        assert!(codes(&document).contains(&"lost_events"), "{document}");
        refused(&text, &["--pid", "77"], &["its times are longer than any observation"]);
    }
}

/// rtla's histograms: with sentences behind them, of CPUs on which nothing came, and of a machine on which nothing came at all.
#[test]
fn a_quiet_histogram_of_rtla_is_a_result() {
    let head = "# RTLA osnoise histogram\n# Time unit is microseconds (us)\n# Duration:   0 00:01:00\n";
    for figures in ["over:\ncount:\nmin:\navg:\nmax:\n", "over: 0\ncount: 0\nmin: 0\navg: 0\nmax: 0\n"] {
        let document = import(&format!("{head}Index\n{figures}"), &[]).unwrap();
        assert_eq!((document["series"][0]["count"].as_u64(), codes(&document)), (Some(0), vec![]));
    }
    let one = format!(
        "{head}Index   CPU-000   CPU-003\n0 0 3\n10 0 1\n20 0 1\nover: 0 0\ncount: 0 5\nmin: 18446744073709551615 0\navg: 0 8\nmax: 0 20\n\
         rtla osnoise hit stop tracing\n## CPU 3 hit stop tracing, analyzing it ##\nno trace, 3 times in 10 s\n"
    );
    let document = import(&one, &[]).unwrap();
    let series = &document["series"];
    assert_eq!((&series[0]["count"], &series[0]["min_ns"]), (&0.into(), &Value::Null));
    assert_eq!((&series[1]["count"], &series[1]["max_ns"]), (&5.into(), &20_000.into()));
}

/// Binary files that are not read, with what prints them.
#[test]
fn traces_of_other_machines_are_named() {
    let samples = concat!(env!("CARGO_MANIFEST_DIR"), "/../foreign/samples");
    let folder = tempfile::tempdir().unwrap();
    for (name, at, with) in [
        ("trace-dat/v6-mono.dat", Some(12), "'trace-cmd report -t' prints it as text"),
        ("perf-data/tracepoints.data", None, "'perf script --ns' prints it as text"),
    ] {
        let mut bytes = fs::read(format!("{samples}/{name}")).unwrap();
        match at {
            Some(at) => bytes[at] = 1,
            None => bytes[..8].reverse(),
        }
        fs::write(folder.path().join("file"), bytes).unwrap();
        let ended = becalm(&["import", "file", "-o", "run.becalm"]).current_dir(folder.path()).output().unwrap();
        let error = String::from_utf8(ended.stderr).unwrap();
        assert!(
            error.contains("high byte first") && error.contains(with) && !error.contains("by what it holds"),
            "{error}"
        );
    }
}

/// Tables of percentiles of HdrHistogram and of others that print as it does.
#[test]
fn tables_of_percentiles_are_named() {
    for text in [
        "#[Histogram log]\n       Value     Percentile TotalCount 1/(1-Percentile)\n\n       0.512 0.000000000000          1           1.00\n#[Mean    =        0.7]\n",
        "  Latency Distribution (HdrHistogram - Recorded Latency)\n 50.000%  1.21ms\n\n  Detailed Percentile spectrum:\n       Value   Percentile   TotalCount 1/(1-Percentile)\n\n       0.255     0.000000            1         1.00\n",
        "\"Value\",\"Percentile\",\"TotalCount\",\"1/(1-Percentile)\"\n255.0,0.0,1,1.00\n",
    ] {
        refused(text, &[], &["HdrHistogram", ".hlog"]);
    }
}

/// Files of other programs, none of which is a list of detours.
#[test]
fn other_programs_are_not_taken_for_detours() {
    for text in [
        "1700000000 12\n1700000001 13\n1700000002 15\n",
        "time,latency\n1,5\n2,9\n3,4\n",
        "latency_us;count\n1;100\n2;20\n",
        "# latency(us) count\n1 2000\n2 300\n3 7\n",
        "# time value\n1 2\n2 3\n",
        "{\"results\": [{\"command\": \"sleep 0.1\", \"mean\": 0.1, \"times\": [0.1, 0.11]}]}\n",
        "{\n  \"fio version\" : \"fio-3.33\",\n  \"jobs\" : [ { \"jobname\" : \"a\" } ]\n}\n",
        "Running 30s test @ http://127.0.0.1:80/\n  Thread Stats   Avg      Stdev     Max   +/- Stdev\n    Latency   635.91us    0.89ms  12.92ms   93.69%\n",
        "Latency histogram (values are in milliseconds)\n       value  ------------- distribution ------------- count\n       0.240 |*****    10\n",
        "     usecs               : count     distribution\n         0 -> 1          : 12       |**      |\n",
        "stress-ng: metrc: [123] cpu              5000     10.00     19.9\n",
    ] {
        let error = import(text, &[]).unwrap_err();
        assert!(!error.contains("is read as"), "{text}: {error}");
    }
}

/// Reports that a shell appends to one file (`tool >> log`), with the line of the second one and what to do.
#[test]
fn two_reports_in_one_file_are_refused() {
    let sysjitter = "core_i: 2 3\nthreshold(ns): 300 300\nint_n: 61000 70000\nint_max(ns): 1900000 990000\nint_total(%): 0.174 0.210\n";
    refused(&sysjitter.repeat(2), &[], &["line 6: a second report starts here", "its own file", "--node"]);
    let rtla = "# RTLA osnoise histogram\n# Time unit is microseconds (us)\n# Duration:   0 00:01:00\nIndex   CPU-000\n0 5\n5 4\n10 1\n\
                over: 0\ncount: 10\nmin: 0\navg: 1\nmax: 10\n";
    refused(&rtla.repeat(2), &["--from", "rtla"], &["line 13: a second report starts here", "its own file"]);
    let json = "{\n\"cmdline:\": \"oslat -D 1\",\n\"rt_test_version:\": \"2.70\",\n\"thread\": {\"0\": {\"cpu\": 1, \"histogram\": {\"1\": 5}}}\n}\n";
    assert_eq!(import(json, &[]).unwrap()["series"][0]["count"], 5);
    refused(&json.repeat(2), &[], &["line 6: a second report starts here"]);
}

/// becalm says why it guessed a format. Other files need `--from`.
#[test]
fn detours_by_their_title_are_a_guess() {
    let folder = tempfile::tempdir().unwrap();
    let text = "# start length\n2048 2047\n4096 1048575\n1052672 30\n";
    fs::write(folder.path().join("file.txt"), text).unwrap();
    let ended = becalm(&["import", "file.txt", "-o", "run.becalm"]).current_dir(folder.path()).output().unwrap();
    let said = String::from_utf8(ended.stderr).unwrap();
    assert!(ended.status.success() && said.contains("read as selfish, because a comment"), "{said}");
    // Parts of a disk, which follow each other without a gap.
    let parts = text.replace("2047", "2048").replace("1048575", "1048576");
    refused(&parts, &[], &["without a title that says", "--from selfish"]);
    assert!(import(&parts, &["--from", "selfish"]).is_ok());
}
