//! Observed threads in small texts whose books were worked out by hand, and in real traces.

use becalm_explain::perfetto::messages::{
    Ftrace, FtraceEvent, FtraceEventBundle, Process, ProcessTree, SchedSwitch, TracePacket,
};
use becalm_model::observed::Owner;
use becalm_observe::document::{PartDoc, ThreadDoc};

use super::super::tests::{expected, random, sample};
use super::*;
use crate::document::observation;

/// 910 us of two CPUs: `app` is woken, preempted, moved to the other CPU, and starts `child`.
const TRACE: &str = "\
# tracer: nop
#
 other-60 [001] d..2. 0.999990: sched_switch: prev_comm=other prev_pid=60 prev_prio=120 prev_state=S ==> next_comm=kworker/1:1 next_pid=70 next_prio=120
 <idle>-0 [000] d.h4. 1.000000: sched_waking: comm=app pid=50 prio=120 target_cpu=000
 <idle>-0 [000] dNh4. 1.000004: sched_wakeup: comm=app pid=50 prio=120 target_cpu=000
 <idle>-0 [000] d..2. 1.000010: sched_switch: prev_comm=swapper/0 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=app next_pid=50 next_prio=120
 app-50 [000] d.h1. 1.000100: irq_handler_entry: irq=41 name=disk
 app-50 [000] d.h1. 1.000110: irq_handler_exit: irq=41 ret=handled
 app-50 [000] d.h4. 1.000200: sched_waking: comm=other pid=60 prio=120 target_cpu=000
 app-50 [000] dNh4. 1.000201: sched_wakeup: comm=other pid=60 prio=120 target_cpu=000
 app-50 [000] d..2. 1.000205: sched_switch: prev_comm=app prev_pid=50 prev_prio=120 prev_state=R ==> next_comm=other next_pid=60 next_prio=120
 other-60 [000] d..2. 1.000305: sched_switch: prev_comm=other prev_pid=60 prev_prio=120 prev_state=S ==> next_comm=app next_pid=50 next_prio=120
 app-50 [000] d..2. 1.000400: sched_switch: prev_comm=app prev_pid=50 prev_prio=120 prev_state=S ==> next_comm=swapper/0 next_pid=0 next_prio=120
 kworker/1:1-70 [001] d..4. 1.000500: sched_waking: comm=app pid=50 prio=120 target_cpu=001
 kworker/1:1-70 [001] dN.4. 1.000503: sched_wakeup: comm=app pid=50 prio=120 target_cpu=001
 kworker/1:1-70 [001] d..2. 1.000510: sched_switch: prev_comm=kworker/1:1 prev_pid=70 prev_prio=120 prev_state=R ==> next_comm=app next_pid=50 next_prio=120
 app-50 [001] ..... 1.000600: sched_process_fork: comm=app pid=50 child_comm=app child_pid=51
 app-50 [001] d..4. 1.000602: sched_wakeup_new: comm=app pid=51 prio=120 target_cpu=000
 <idle>-0 [000] d..2. 1.000620: sched_switch: prev_comm=swapper/0 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=app next_pid=51 next_prio=120
 app-51 [000] ..... 1.000700: task_rename: pid=51 oldcomm=app newcomm=child oom_score_adj=0
 child-51 [000] d..2. 1.000720: sched_switch: prev_comm=child prev_pid=51 prev_prio=120 prev_state=X ==> next_comm=swapper/0 next_pid=0 next_prio=120
 app-50 [001] d..2. 1.000800: sched_switch: prev_comm=app prev_pid=50 prev_prio=120 prev_state=R ==> next_comm=kworker/1:1 next_pid=70 next_prio=120
 kworker/1:1-70 [001] d..2. 1.000900: sched_switch: prev_comm=kworker/1:1 prev_pid=70 prev_prio=120 prev_state=R ==> next_comm=swapper/1 next_pid=0 next_prio=120
";

fn named(names: &[&str]) -> Choice {
    Choice { names: names.iter().map(|name| (*name).to_owned()).collect(), ..Choice::default() }
}

fn numbered(number: i32) -> Choice {
    Choice { processes: vec![number], ..Choice::default() }
}

fn found<'a>(format: Format, bytes: &'a [u8], choice: Choice) -> fault::Result<FoundThreads<'a>> {
    let source = Source { name: "", bytes };
    observe(format, source, &TraceRequest::default(), choice, &mut |_| {})
}

/// The stored document.
fn stored(format: Format, bytes: &[u8], choice: Choice) -> ObservedDoc {
    let folder = tempfile::tempdir().unwrap();
    let doc = observation("node1".to_owned(), format);
    let doc = found(format, bytes, choice).unwrap().store(doc, &folder.path().join("run.becalm")).unwrap();
    for thread in &doc.threads {
        add_up(thread);
    }
    doc
}

fn add_up(thread: &ThreadDoc) {
    let parts = [thread.ran_ns, thread.waited_ns, thread.asleep_ns, thread.unknown_ns];
    assert_eq!((parts.into_iter().sum::<Nanos>(), thread.imbalance_ns), (thread.wall_ns, Nanos::ZERO), "{thread:?}");
}

fn thread<'d>(doc: &'d ObservedDoc, name: &str) -> &'d ThreadDoc {
    doc.threads.iter().find(|thread| thread.name == name).unwrap_or_else(|| panic!("{name} is in {doc:?}"))
}

/// Unknown, on the way, queued, ran and asleep, in microseconds.
fn parts(thread: &ThreadDoc) -> [i64; 5] {
    let ThreadDoc { unknown_ns, on_the_way_ns, queued_ns, ran_ns, asleep_ns, .. } = thread;
    [unknown_ns, on_the_way_ns, queued_ns, ran_ns, asleep_ns].map(|ns| ns.get() / 1_000)
}

fn takers(thread: &ThreadDoc) -> Vec<(Owner, &str, i64, u64)> {
    let rows = thread.takers.iter();
    rows.map(|taker| (taker.owner, taker.source.as_str(), taker.ns.get() / 1_000, taker.count)).collect()
}

fn codes(doc: &ObservedDoc) -> Vec<&str> {
    doc.warnings.iter().map(|warning| warning.code.as_str()).collect()
}

#[test]
fn the_books_of_a_text_are_those_worked_out_by_hand() {
    for choice in [named(&["app"]), numbered(50)] {
        let doc = stored(Format::Ftrace, TRACE.as_bytes(), choice.clone());
        assert_eq!((doc.start_ns, doc.duration_ns, doc.events), (Nanos::ZERO, Nanos::from_micros(910), 21));
        let app = thread(&doc, "app");
        assert_eq!((app.tid, app.switches, parts(app)), (50, 3, [10, 7, 213, 580, 100]));
        let of_app =
            [(Owner::Kernel, "kworker", 107, 2), (Owner::Others, "other", 100, 1), (Owner::Kernel, "idle_exit", 6, 1)];
        assert_eq!(takers(app), of_app);
        let ran = |kind: &str, source: &str, micros, count| PartDoc {
            kind: kind.to_owned(),
            source: source.to_owned(),
            ns: Nanos::from_micros(micros),
            count,
        };
        assert_eq!(app.ran[1], ran(Kind::Irq.name(), "disk", 10, 1), "{:?}", app.ran);
        let child = thread(&doc, "child");
        assert_eq!((child.tid, child.switches, parts(child)), (51, 1, [0, 0, 18, 100, 0]));
        assert_eq!(takers(child), [(Owner::Kernel, "idle_exit", 18, 1)]);
        assert_eq!(doc.threads.len(), 2, "{doc:?}");
        let warned = doc.warnings.iter().map(|warning| &*warning.message).collect::<Vec<_>>().join("\n");
        assert!(warned.contains("sched_stat_runtime (time of a hypervisor"), "{warned}");
        assert!(!warned.contains("sched_waking"), "{warned}");
        // A text without process numbers cannot say which threads belong to one.
        assert_eq!(warned.contains("which threads belong to a process"), !choice.processes.is_empty(), "{warned}");
    }
}

#[test]
fn without_wake_ups_a_thread_counts_as_asleep_until_it_runs() {
    let text: Vec<&str> = TRACE.lines().filter(|line| !line.contains("sched_wak")).collect();
    let doc = stored(Format::Ftrace, text.join("\n").as_bytes(), named(&["app"]));
    assert_eq!(parts(thread(&doc, "app")), [20, 0, 200, 580, 110]);
    let warned = doc.warnings.iter().map(|warning| &*warning.message).collect::<Vec<_>>().join("\n");
    assert!(
        warned.contains("sched_waking and sched_wakeup (a woken thread counts as asleep until it runs"),
        "{warned}"
    );
    // With one of the two, the wait starts with it.
    for (left_out, on_the_way, queued) in [("sched_wakeup:", 0, 220), ("sched_waking:", 0, 213)] {
        let text: Vec<&str> = TRACE.lines().filter(|line| !line.contains(left_out)).collect();
        let doc = stored(Format::Ftrace, text.join("\n").as_bytes(), named(&["app"]));
        let [_, way, waited, ..] = parts(thread(&doc, "app"));
        assert_eq!((way, waited), (on_the_way, queued), "without {left_out}");
    }
}

#[test]
fn nothing_is_known_of_a_wait_in_a_gap() {
    let line = " other-60 [000] d..2. 1.000305:";
    let text = TRACE.replace(line, &format!("CPU:0 [LOST 3 EVENTS]\n{line}"));
    let doc = stored(Format::Ftrace, text.as_bytes(), named(&["app"]));
    let app = thread(&doc, "app");
    assert_eq!((parts(app), doc.lost_events), ([110, 7, 113, 579, 100], 3));
    let lost: Vec<&str> =
        doc.warnings.iter().filter(|one| one.code == "lost_events").map(|one| &*one.message).collect();
    assert_eq!(lost, ["3 kernel events were lost in 1 gap: nothing is known about these 100.000us"]);
}

/// The option `record-tgid` prints the process of each thread.
#[test]
fn a_process_has_all_threads_of_which_the_trace_tells_it() {
    let with_groups: Vec<String> = TRACE
        .lines()
        .map(|line| match line.split_once(" [00") {
            Some((thread, rest)) => {
                let group = match thread.rsplit('-').next().unwrap() {
                    "50" | "51" | "60" => "(     50)",
                    _ => "(-------)",
                };
                format!("{thread} {group} [00{rest}")
            }
            None => line.to_owned(),
        })
        .collect();
    let doc = stored(Format::Ftrace, with_groups.join("\n").as_bytes(), numbered(50));
    let mut tids: Vec<i32> = doc.threads.iter().map(|thread| thread.tid).collect();
    tids.sort_unstable();
    assert_eq!(tids, [50, 51, 60]);
    assert!(doc.threads.iter().all(|thread| thread.process == 50), "{:?}", doc.threads);
    assert_eq!(takers(thread(&doc, "app"))[1], (Owner::Process, "other", 100, 1));
    assert!(
        !codes(&doc).is_empty() && !doc.warnings.iter().any(|warning| warning.message.contains("belong to a process"))
    );
}

/// Why a trace is refused.
fn refused(format: Format, bytes: &[u8], choice: Choice) -> String {
    match found(format, bytes, choice) {
        Ok(_) => panic!("it was taken"),
        Err(error) => error.message(fault::option),
    }
}

#[test]
fn threads_that_are_not_in_the_trace_are_refused() {
    let text = TRACE.as_bytes();
    assert_eq!(
        refused(Format::Ftrace, text, named(&["app", "none"])),
        "no thread of the trace is called 'none' (names have 15 characters at most)"
    );
    assert_eq!(refused(Format::Ftrace, text, numbered(52)), "no thread or process of the trace has the number 52");
    let without: Vec<&str> = TRACE.lines().filter(|line| !line.contains("sched_switch")).collect();
    assert_eq!(
        refused(Format::Ftrace, without.join("\n").as_bytes(), numbered(50)),
        "the trace does not tell which thread ran: record it with sched:sched_switch, or leave --pid and --comm out"
    );
    let osnoise = refused(Format::Osnoise, &sample("osnoise/rtla.txt"), numbered(1));
    assert!(osnoise.starts_with("--pid and --comm are not for traces of osnoise"), "{osnoise}");
}

/// The script shares nothing with becalm; its traces have no wake-ups.
#[test]
fn the_time_of_a_thread_is_that_which_another_script_finds() {
    for (name, tid) in [("v7-local", 17_878), ("v6-mono", 17_734)] {
        let doc = stored(Format::TraceDat, &sample(&format!("trace-dat/{name}.dat")), numbered(tid));
        let ThreadDoc { ran_ns, queued_ns, .. } = doc.threads[0];
        let line = &expected(name, true)[0];
        let wanted: Vec<&str> = line.split(' ').collect();
        assert_eq!([ran_ns, queued_ns].map(|ns| ns.get().to_string()), wanted[3..5], "{name}: {line}");
    }
}

/// Every thread with a name, in the traces of all programs.
#[test]
fn the_books_of_all_threads_of_all_samples_add_up() {
    for (format, name) in [
        (Format::TraceDat, "trace-dat/v7-mono.dat"),
        (Format::TraceDat, "trace-dat/v7-local.dat"),
        (Format::TraceDat, "trace-dat/v6-mono.dat"),
        (Format::PerfData, "perf-data/tracepoints.data"),
        (Format::PerfScript, "perf-script/tracepoints.txt"),
        (Format::PerfScript, "perf-script/microseconds.txt"),
        (Format::Ftrace, "ftrace/report.txt"),
        (Format::Perfetto, "perfetto/events.pftrace"),
        (Format::Perfetto, "perfetto/columns.pftrace"),
    ] {
        let bytes = sample(name);
        let threads = everyone(format, &bytes).unwrap_or_else(|why| panic!("{name}: {why}"));
        assert!(threads > 3, "{name}: {threads} threads");
    }
}

/// Observes all threads of a trace; returns their number, or why it is refused.
fn everyone(format: Format, bytes: &[u8]) -> Result<usize, String> {
    let text = |error: fault::Error| error.message(fault::option);
    let source = Source { name: "", bytes };
    let mut whole = WholeTrace::read(format, source, None, &mut |_| {}).map_err(text)?;
    let log = whole.trace.events.threads(&mut whole.names).map_err(|error| error.to_string())?;
    let choice = Choice { processes: log.threads().map(|(pid, _)| pid.0).collect(), ..Choice::default() };
    let mut found = FoundThreads { whole, choice, log };
    let worked = found.work_out(None).map_err(text)?;
    let mut doc = observation("node1".to_owned(), format);
    summing::enter(&mut doc, &worked);
    doc.threads.iter().for_each(add_up);
    Ok(doc.threads.len())
}

#[test]
fn whatever_bytes_are_changed_the_books_add_up_or_the_file_is_refused() {
    let text = TRACE.as_bytes().to_vec();
    for (format, whole, rounds, least) in [
        (Format::TraceDat, sample("trace-dat/v6-mono.dat"), 300, 30),
        (Format::PerfData, sample("perf-data/tracepoints.data"), 300, 30),
        (Format::Ftrace, text, 1000, 100),
        (Format::Perfetto, sample("perfetto/events.pftrace"), 300, 30),
    ] {
        let (mut seed, mut read, mut refused) = (5, 0, 0);
        for _ in 0..rounds {
            let mut bytes = whole.clone();
            for _ in 0..=random(&mut seed, 5) {
                let at = random(&mut seed, bytes.len());
                let byte = random(&mut seed, 256) as u8;
                bytes[at] =
                    if format == Format::Ftrace { b"0123456789 :-[]=>\nRSX"[usize::from(byte) % 21] } else { byte };
            }
            match everyone(format, &bytes) {
                Ok(_) => read += 1,
                Err(_) => refused += 1,
            }
        }
        assert!(read > least && refused > least / 2, "{format}: {read} files were read, {refused} refused");
    }
}

/// Perfetto's own library wrote the same events.
#[test]
fn the_books_of_perfettos_traces_are_those_of_the_kernels_text() {
    let choice = named(&["bash", "sh", "sleep", "true", "rcu_preempt"]);
    let text = stored(Format::Ftrace, &sample("ftrace/threads.txt"), choice.clone());
    assert_eq!(text.threads.len(), 10);
    for name in ["perfetto/events.pftrace", "perfetto/columns.pftrace"] {
        let doc = stored(Format::Perfetto, &sample(name), choice.clone());
        // No column has the thread that the first switch of CPU 0 left, so the shell's wait for that switch is lost.
        let is_first = |thread: &ThreadDoc| name.contains("columns") && thread.tid == 10_929;
        for (found, expected) in doc.threads.iter().zip(&text.threads).filter(|(found, _)| !is_first(found)) {
            assert_eq!(found, expected, "{name}");
        }
        assert_eq!((doc.clock.counter.as_str(), doc.clock.origin_ticks), ("boot", text.clock.origin_ticks), "{name}");
        assert_eq!((doc.machine.kernel.as_str(), doc.machine.architecture.as_str()), ("6.18.0", "x86_64"), "{name}");
        // The only snapshot was taken 1 ms before the first event.
        let [pair] = doc.clock.pairs[..] else { panic!("{:?}", doc.clock) };
        assert_eq!(pair.at_ns, Nanos::from_millis(-1), "{name}");
        assert_eq!(pair.boottime_ns, doc.clock.origin_ticks - 1_000_000, "{name}");
        let began = doc.origin.unwrap().as_nanosecond();
        assert_eq!(began, i128::from(pair.realtime_ns) + 1_000_000, "{name}");
        assert!(!codes(&doc).contains(&"imported_cut"), "{name}");
    }
}

/// No rule about names knows this one: the tree of processes says that it is the kernel's.
#[test]
fn perfettos_tree_of_processes_says_which_threads_are_the_kernels() {
    let process = |pid, ppid| Process { pid, ppid };
    let switch = |timestamp, from: (i32, &str), to: (i32, &str)| {
        let (prev_comm, next_comm) = (from.1.into(), to.1.into());
        let switch = SchedSwitch { prev_pid: from.0, prev_comm, next_pid: to.0, next_comm, ..SchedSwitch::default() };
        FtraceEvent { timestamp, pid: from.0.unsigned_abs(), event: Some(Ftrace::SchedSwitch(switch)) }
    };
    let (app, driver, other) = ((50, "app"), (60, "driver"), (70, "other"));
    let event = vec![
        switch(1_000, app, driver),
        switch(3_000, driver, app),
        switch(4_000, app, other),
        switch(9_000, other, app),
    ];
    let packets = [
        TracePacket {
            process_tree: Some(ProcessTree {
                processes: vec![process(2, 0), process(60, 2), process(70, 1), process(50, 1)],
                threads: Vec::new(),
            }),
            ..TracePacket::default()
        },
        TracePacket {
            ftrace_events: Some(FtraceEventBundle { cpu: Some(0), event, ..FtraceEventBundle::default() }),
            trusted_packet_sequence_id: 1,
            ..TracePacket::default()
        },
    ];
    let mut bytes = Vec::new();
    packets.iter().for_each(|packet| prost::encoding::message::encode(1, packet, &mut bytes));
    let doc = stored(Format::Perfetto, &bytes, named(&["app"]));
    let takers = doc.takers.iter().map(|taker| (taker.source.as_str(), taker.owner, taker.ns.get()));
    assert_eq!(takers.collect::<Vec<_>>(), [("other", Owner::Others, 5_000), ("driver", Owner::Kernel, 2_000)]);
}

#[test]
fn a_trace_of_perfetto_that_is_cut_is_read_up_to_there() {
    let whole = sample("perfetto/events.pftrace");
    let choice = named(&["bash"]);
    let doc = stored(Format::Perfetto, &whole[..whole.len() - 5], choice.clone());
    assert_eq!(codes(&doc)[0], "imported_cut", "{:?}", codes(&doc));
    assert!(doc.events < stored(Format::Perfetto, &whole, choice.clone()).events);
    // The name of a thread is longer than its packet.
    let mut damaged = whole.clone();
    let name = damaged.windows(4).position(|bytes| bytes == b"bash").unwrap();
    damaged[name - 1] = 0x7f;
    let error = refused(Format::Perfetto, &damaged, choice.clone());
    assert!(error.starts_with("byte ") && error.contains("the packet is damaged"), "{error}");
    // The checksum of packed packets shows the change.
    let mut packed = sample("perfetto/columns.pftrace");
    let last = packed.len() - 20;
    packed[last] ^= 0xff;
    let error = refused(Format::Perfetto, &packed, choice);
    assert!(error.contains("the packed packets are damaged"), "{error}");
}
