//! Bundles of Perfetto that the samples do not have: what was lost, names of functions, other clocks, and columns that contradict themselves.

use becalm_explain::perfetto::messages::{
    Clock, ClockSnapshot, CompactSched, Ftrace, FtraceEvent, FtraceEventBundle, InternedData, InternedName, Process,
    ProcessTree, SchedSwitch, Thread, TracePacket, Work,
};
use becalm_units::Nanos;

use super::super::kernel_text::{TextEvent, TextHappening};
use super::super::perfetto::{PerfettoFacts, PerfettoTaker, read};
use super::super::{ReadError, Source};

/// What a trace tells, in words.
#[derive(Default)]
struct Told {
    events: Vec<String>,
    threads: Vec<(i32, i32, String)>,
    kernel: Vec<(i32, bool)>,
}

impl PerfettoTaker for Told {
    fn event(&mut self, event: &TextEvent<'_>) {
        let what = match event.what {
            TextHappening::Switch { prev, prev_state, next } => {
                format!("{} {} -> {} {}", prev.0, prev_state.letter(), next.0, next.1)
            }
            TextHappening::Waking { thread } => format!("waking {} {}", thread.0, thread.1),
            TextHappening::WorkStart { function, .. } => format!("work {function}"),
            TextHappening::Lost { .. } => "lost".to_owned(),
            other => format!("{other:?}"),
        };
        self.events.push(format!("{} {}: {what}", event.time.get(), event.cpu.get()));
    }

    fn thread(&mut self, tid: i32, process: i32, name: &str) {
        self.threads.push((tid, process, name.to_owned()));
    }

    fn process(&mut self, pid: i32, is_kernel: bool) {
        self.kernel.push((pid, is_kernel));
    }
}

/// The bytes of a trace.
fn write(packets: &[TracePacket]) -> Vec<u8> {
    let mut bytes = Vec::new();
    packets.iter().for_each(|packet| prost::encoding::message::encode(1, packet, &mut bytes));
    bytes
}

fn told(packets: &[TracePacket]) -> Result<(Told, PerfettoFacts), ReadError> {
    let mut told = Told::default();
    let bytes = write(packets);
    let facts = read(Source { name: "", bytes: &bytes }, &mut |_| {}, &mut told)?;
    Ok((told, facts))
}

fn bundle(bundle: FtraceEventBundle) -> TracePacket {
    TracePacket { ftrace_events: Some(bundle), trusted_packet_sequence_id: 3, ..TracePacket::default() }
}

fn event(timestamp: u64, event: Ftrace) -> FtraceEvent {
    FtraceEvent { timestamp, pid: 9, event: Some(event) }
}

fn switch(prev_pid: i32, next_pid: i32) -> Ftrace {
    Ftrace::SchedSwitch(SchedSwitch { prev_pid, prev_state: 0x100, next_pid, ..SchedSwitch::default() })
}

fn columns() -> CompactSched {
    CompactSched {
        switch_timestamp: vec![1_000, 100, 300],
        switch_prev_state: vec![0, 1, 0x102],
        switch_next_pid: vec![5, 6, 5],
        intern_table: vec![b"app".to_vec(), b"other".to_vec()],
        switch_next_comm_index: vec![0, 1, 0],
        waking_timestamp: vec![1_050, 200],
        waking_pid: vec![6, 5],
        waking_comm_index: vec![1, 0],
    }
}

#[test]
fn columns_are_events_in_the_order_of_their_times() {
    let interrupt = event(1_200, Ftrace::SoftirqEntry(Default::default()));
    let of_cpu = |compact_sched, event| FtraceEventBundle {
        cpu: Some(2),
        event,
        compact_sched: Some(compact_sched),
        ..FtraceEventBundle::default()
    };
    let later = CompactSched {
        switch_timestamp: vec![2_000],
        switch_prev_state: vec![0x10],
        switch_next_pid: vec![0],
        intern_table: vec![b"swapper/2".to_vec()],
        switch_next_comm_index: vec![0],
        ..CompactSched::default()
    };
    let packets = [bundle(of_cpu(columns(), vec![interrupt])), bundle(of_cpu(later, Vec::new()))];
    let (told, facts) = told(&packets).unwrap();
    // No column has the thread before the first switch.
    let expected = [
        "1050 2: waking 6 other",
        "1100 2: 5 S -> 6 other",
        "1200 2: SoftirqEntry { vec: 0 }",
        "1250 2: waking 5 app",
        "1400 2: 6 D -> 5 app",
        "2000 2: 5 X -> 0 swapper/2",
    ];
    assert_eq!(told.events, expected);
    let seen: Vec<&str> = facts.seen.iter().map(|(_, name)| name.as_str()).collect();
    assert_eq!(seen, ["softirq_entry", "sched_switch", "sched_waking"]);
    assert_eq!(facts.clock, "boot");
}

#[test]
fn after_a_gap_the_thread_on_the_cpu_is_not_known() {
    let first = FtraceEventBundle { cpu: Some(0), compact_sched: Some(columns()), ..FtraceEventBundle::default() };
    let gap = FtraceEventBundle { lost_events: true, ..first.clone() };
    let told = told(&[bundle(first), bundle(gap)]).unwrap().0;
    assert_eq!(told.events.len(), 4 + 1 + 4);
    assert_eq!(told.events[4], "1050 0: lost");
}

#[test]
fn functions_have_names_where_their_sequence_has_them() {
    let work = |function| event(7, Ftrace::WorkqueueExecuteStart(Work { work: 1, function }));
    let named = TracePacket {
        interned_data: Some(InternedData {
            kernel_symbols: vec![InternedName { iid: 4, name: b"vmstat_update".to_vec() }],
            ..InternedData::default()
        }),
        ..bundle(FtraceEventBundle { cpu: Some(0), event: vec![work(4), work(0xabc)], ..Default::default() })
    };
    let cleared = TracePacket {
        incremental_state_cleared: true,
        ..bundle(FtraceEventBundle { cpu: Some(0), event: vec![work(4)], ..Default::default() })
    };
    let told = told(&[named, cleared]).unwrap().0;
    assert_eq!(told.events, ["7 0: work vmstat_update", "7 0: work 0xabc", "7 0: work 0x4"]);
}

#[test]
fn threads_processes_and_other_clocks_are_told() {
    let tree = ProcessTree {
        processes: vec![Process { pid: 10, ppid: 2 }, Process { pid: 11, ppid: 1 }],
        threads: vec![Thread { tid: 12, name: b"worker\xff".to_vec(), tgid: 11 }],
    };
    let clock = |clock_id, timestamp| Clock { clock_id, timestamp, ..Clock::default() };
    let snapshot = ClockSnapshot {
        clocks: vec![clock(6, 5_000), clock(3, 4_000), clock(1, 1_000_000)],
        ..ClockSnapshot::default()
    };
    let switched = FtraceEventBundle {
        cpu: Some(1),
        event: vec![event(70, switch(5, 6))],
        ftrace_clock: 3,
        ftrace_timestamp: 100,
        boot_timestamp: 5_100,
        ..FtraceEventBundle::default()
    };
    let packets = [
        TracePacket { process_tree: Some(tree), ..TracePacket::default() },
        TracePacket { clock_snapshot: Some(snapshot), ..TracePacket::default() },
        bundle(switched),
    ];
    let (told, facts) = told(&packets).unwrap();
    assert_eq!(told.kernel, [(10, true), (11, false)]);
    assert_eq!(told.threads, [(12, 11, "worker".to_owned())]);
    assert_eq!(told.events, ["70 1: 5 R -> 6 "]);
    assert_eq!(facts.clock, "local");
    let [reading] = facts.readings[..] else { panic!("{:?}", facts.readings) };
    // The clock of the events was 5,000 ns behind that of boot time.
    assert_eq!((reading.at_ns, reading.boottime_ns, reading.monotonic_ns), (Nanos::ZERO, 5_000, 4_000));
}

#[test]
fn contradictions_are_refused_with_the_byte() {
    let empty = FtraceEventBundle::default();
    let of_cpu = |cpu| FtraceEventBundle { cpu: Some(cpu), ..empty.clone() };
    let short = CompactSched { switch_next_pid: vec![5], ..columns() };
    let nameless = CompactSched { intern_table: Vec::new(), ..columns() };
    let late = CompactSched { switch_timestamp: vec![u64::MAX, 1, 1], ..columns() };
    let with = |compact_sched| FtraceEventBundle { compact_sched: Some(compact_sched), ..of_cpu(0) };
    let far = FtraceEventBundle { event: vec![event(u64::MAX, switch(1, 2))], ..of_cpu(0) };
    for (second, why) in [
        (empty.clone(), "a bundle of events does not name its CPU"),
        (of_cpu(u32::MAX), "the CPU 4294967295 is above the limit"),
        (FtraceEventBundle { ftrace_clock: 3, ..of_cpu(0) }, "its events are on more than one clock"),
        (with(short), "differ in length"),
        (with(nameless), "no name has the number 0"),
        (with(late), "later than a trace can be"),
        (far, "later than a trace can be"),
    ] {
        let first = bundle(of_cpu(0));
        let byte = write(std::slice::from_ref(&first)).len();
        let error = told(&[first, bundle(second)]).err().unwrap().to_string();
        assert!(error.starts_with(&format!("byte {byte}: ")) && error.contains(why), "{error}");
    }
}
