//! Real traces, compared with the counts of a script that shares nothing with becalm: see `tests/data/traces/count_events.py`.

use std::collections::{BTreeMap, BTreeSet};

use becalm_measure::Names;
use becalm_model::node::NodeDoc;
use becalm_model::{Happening, Kind, Pid, ThreadState};
use becalm_record::MemoryStore;
use becalm_units::Nanos;

use super::osnoise::TracerFigures;
use super::*;
use crate::document::recording;
use crate::read::kernel_text::KernelText;
use crate::read::osnoise::{OsnoiseHappening, Period};
use crate::read::{Format, Source, ftrace_text, osnoise, perf_data, perf_script, trace_dat};

const SAMPLES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/samples");

pub(super) fn sample(name: &str) -> Vec<u8> {
    std::fs::read(format!("{SAMPLES}/{name}")).unwrap()
}

fn document() -> NodeDoc {
    recording("imported".to_owned(), Format::TraceDat, Vec::new())
}

/// The interruptions of a trace, with its names.
fn find(trace: &mut dyn KernelTrace, names: &mut Names) -> (MemoryStore, NodeDoc, TraceFindings) {
    let cpus = (0..trace.cpus().len()).collect();
    let wanted = DetourSearch::Interruptions { cpus, has_switches: true };
    let (mut kept, mut node) = (MemoryStore::default(), document());
    let found = store(trace, names, &wanted, &mut kept, &mut node).unwrap();
    books_close(&kept);
    (kept, node, found)
}

fn books_close(kept: &MemoryStore) {
    for lane in &kept.lanes {
        let mut until = Nanos::ZERO;
        for (number, detour) in lane.detours.iter().enumerate() {
            assert!(detour.start >= until, "{detour:?} starts before {until}");
            until = detour.start + detour.duration;
            let rows = lane.activities.iter().filter(|row| row.detour == number as u64);
            assert_eq!(rows.map(|row| row.self_time).sum::<Nanos>(), detour.duration, "{detour:?}");
        }
    }
}

/// Lines as the script prints them: the count of each source, and the ticks.
fn counted(kept: &MemoryStore) -> Vec<String> {
    let (mut counts, mut ticks) = (BTreeMap::new(), Vec::new());
    for lane in &kept.lanes {
        let (mut number, mut total) = (0, Nanos::ZERO);
        for row in lane.activities.iter().filter(|row| matches!(row.kind, Kind::Irq | Kind::Softirq)) {
            let source = kept.labels.text(row.source);
            *counts.entry((lane.cpu.get(), row.kind.name(), source.to_owned())).or_insert(0) += 1;
            if source == "local_timer" {
                number += 1;
                total += row.self_time;
            }
        }
        ticks.push(format!("{} ticks {number} {}", lane.cpu, total.get()));
    }
    let lines = counts.into_iter().map(|((cpu, kind, source), count)| format!("{cpu} {kind} {source} {count}"));
    lines.chain(ticks).collect()
}

/// The lines of the script's output about a thread, or about all others.
pub(super) fn expected(name: &str, is_of_thread: bool) -> Vec<String> {
    let data = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/traces");
    let text = std::fs::read_to_string(format!("{data}/{name}.counts")).unwrap();
    text.lines().filter(|line| line.contains(" thread ") == is_of_thread).map(str::to_owned).collect()
}

fn paged<'a>(bytes: &'a [u8], names: &mut Names) -> PagedTrace<'a> {
    let file = trace_dat::read(Source { name: "", bytes }).unwrap();
    PagedTrace::new(file, StampClock::Nanos, names).unwrap()
}

fn text_trace(bytes: &[u8], names: &mut Names) -> HeldTrace {
    named(perf_script::read(Source { name: "", bytes }, &mut |_| {}).unwrap(), names)
}

fn kernel_trace(bytes: &[u8], names: &mut Names) -> HeldTrace {
    named(ftrace_text::read(Source { name: "", bytes }, &mut |_| {}).unwrap(), names)
}

fn named(events: KernelText<'_, '_>, names: &mut Names) -> HeldTrace {
    let mut namer = TextNamer::default();
    for event in events {
        namer.take(&event.unwrap(), names);
    }
    namer.finish().unwrap().0
}

#[test]
fn interrupts_and_softirqs_are_those_that_another_script_counts() {
    for name in ["v7-local", "v7-mono", "v6-mono"] {
        let bytes = sample(&format!("trace-dat/{name}.dat"));
        let names = &mut Names::for_file();
        let (kept, ..) = find(&mut paged(&bytes, names), names);
        assert_eq!(counted(&kept), expected(name, false), "{name}");
    }
    let names = &mut Names::for_file();
    let (kept, ..) = find(&mut text_trace(&sample("perf-script/nanoseconds.txt"), names), names);
    assert_eq!(counted(&kept), expected("nanoseconds", false));
}

/// trace-cmd's own text of a file gives the same result as the file.
#[test]
fn the_text_of_trace_cmd_comes_to_the_same_as_its_file() {
    let names = &mut Names::for_file();
    let (kept, node, _) = find(&mut kernel_trace(&sample("ftrace/report.txt"), names), names);
    assert_eq!(counted(&kept), expected("v7-mono", false));
    let bytes = sample("trace-dat/v7-mono.dat");
    let names = &mut Names::for_file();
    let (whole, node_of_file, _) = find(&mut paged(&bytes, names), names);
    let lengths = |kept: &MemoryStore| -> Vec<Vec<Nanos>> {
        kept.lanes.iter().map(|lane| lane.detours.iter().map(|detour| detour.duration).collect()).collect()
    };
    assert_eq!(lengths(&kept), lengths(&whole));
    let events = |node: &NodeDoc| node.cpus.iter().map(|cpu| cpu.events).collect::<Vec<_>>();
    assert_eq!(events(&node), events(&node_of_file));
}

/// One time span of one machine, printed by its kernel with three sets of options.
#[test]
fn the_text_of_the_kernel_is_the_same_with_all_options() {
    let find = |name: &str| {
        let names = &mut Names::for_file();
        find(&mut kernel_trace(&sample(name), names), names).0
    };
    let kept = ["flags", "group", "group-and-flags"].map(|name| find(&format!("ftrace/{name}.txt")));
    let counts = counted(&kept[0]);
    assert!(counts.iter().any(|line| line.contains("reschedule")), "{counts:?}");
    let detours = |kept: &MemoryStore| kept.lanes.iter().map(|lane| lane.detours.clone()).collect::<Vec<_>>();
    assert!(kept.iter().all(|other| counted(other) == counts && detours(other) == detours(&kept[0])));
}

/// The formats of events that were not recorded are in both files too.
#[test]
fn events_are_those_that_came_or_that_the_file_lists() {
    let bytes = sample("trace-dat/v7-mono.dat");
    let names = &mut Names::for_file();
    let came: BTreeSet<String> = paged(&bytes, names).events().iter().map(ToString::to_string).collect();
    let text = sample("ftrace/report.txt");
    let mut told = |_| {};
    let mut printed = ftrace_text::read(Source { name: "", bytes: &text }, &mut told).unwrap();
    printed.by_ref().for_each(drop);
    let printed: BTreeSet<String> = printed.seen().map(|(system, name)| format!("{system}/{name}")).collect();
    assert_eq!(came, printed);
    assert!(!came.contains("nmi/nmi_handler") && !came.contains("irq/irq_handler_entry"), "{came:?}");

    let bytes = sample("perf-data/tracepoints.data");
    let file = perf_data::read(Source { name: "", bytes: &bytes }).unwrap();
    assert_eq!(file.recorded.len(), 11, "perf was given eleven events");
    let events = PerfTrace::new(&file, &mut Names::for_file(), &mut |_| {}).unwrap().events;
    assert!(events.len() <= 11 && !events.iter().any(|event| event.system == "nmi"), "{events:?}");
}

/// Programs are listed with their time; threads known as the kernel's, or by their names, are not among them.
#[test]
fn threads_that_count_as_programs_are_told_with_their_time() {
    let names = &mut Names::for_file();
    for (pid, name) in [(10, "solver"), (20, "odd_kthread"), (30, "kworker/0:1"), (40, "known")] {
        names.see(Pid(pid), name.as_bytes());
    }
    names.set_kernel(Pid(40), true);
    assert_eq!(names.tasks.get(Pid(40)).unwrap().kind, Kind::Kthread);
    let mut times = ThreadTimes::default();
    let order = [10, 20, 10, 30, 10, 40, 10, 0];
    for (at, pair) in order.windows(2).enumerate() {
        let what = Happening::Switch { prev: Pid(pair[0]), prev_state: ThreadState::RUNNABLE, next: Pid(pair[1]) };
        times.take(
            CpuId::new(0),
            &Event { time: Nanos::new(at as i64 * 100), thread: Pid(pair[0]), in_interrupt: false, what },
        );
    }
    let told = [("solver".to_owned(), Nanos::new(300)), ("odd_kthread".to_owned(), Nanos::new(100))];
    assert_eq!(times.programs(names), told);
    names.set_kernel(Pid(10), false);
    assert_eq!(times.programs(names), told[1..]);
}

#[test]
fn microseconds_keep_the_order_and_nearly_the_lengths() {
    let find = |name| {
        let names = &mut Names::for_file();
        find(&mut text_trace(&sample(name), names), names).0
    };
    let (fine, coarse) = (find("perf-script/nanoseconds.txt"), find("perf-script/microseconds.txt"));
    for (fine, coarse) in fine.lanes.iter().zip(&coarse.lanes) {
        assert_eq!(fine.detours.len(), coarse.detours.len());
        for (fine, coarse) in fine.detours.iter().zip(&coarse.detours) {
            let off = (fine.duration.get() - coarse.duration.get()).abs();
            assert!(off < 1_100, "{fine:?} is {coarse:?} in microseconds");
        }
    }
}

#[test]
fn lost_events_are_a_gap_in_which_nothing_is_known() {
    let cpu = CpuId::new(0);
    let names = &mut Names::for_file();
    let (own, other) = (Pid(10), Pid(20));
    names.see(other, b"other");
    let source = names.labels.intern("local_timer");
    let switch = |prev, next| Happening::Switch { prev, prev_state: ThreadState::RUNNABLE, next };
    let irq = |enters| match enters {
        true => Happening::IrqEntry { source, detail: source },
        false => Happening::IrqExit { source, detail: source },
    };
    let at = |time, thread, what| Event { time: Nanos::new(time), thread, in_interrupt: false, what };
    let events = vec![
        at(0, own, irq(true)),
        at(10, own, irq(false)),
        at(100, own, switch(own, other)),
        at(150, other, irq(true)),
        at(900, Pid(0), Happening::Lost { count: Some(4) }),
        at(950, own, irq(true)),
        at(960, own, irq(false)),
        at(1_000, own, switch(own, other)),
        at(1_030, other, switch(other, own)),
        at(1_040, own, switch(own, other)),
    ];
    let mut trace = HeldTrace::new(vec![(cpu, events)], 0);
    let (kept, node, found) = find(&mut trace, names);
    let told: Vec<(i64, i64)> =
        kept.lanes[0].detours.iter().map(|detour| (detour.start.get(), detour.duration.get())).collect();
    // The interrupt before the gap has no end.
    assert_eq!(told, [(0, 10), (950, 10)]);
    assert_eq!((node.cpus[0].lost_events, found.spans[0].1.gap_time), (4, Nanos::new(750)));
}

/// A trace of the kernel's noise tracers.
fn tracers(bytes: &[u8], names: &mut Names) -> Result<NoiseTrace, ReadError> {
    let mut namer = NoiseNamer::default();
    for event in osnoise::read(Source { name: "", bytes }, &mut |_| {})? {
        namer.take(&event?, names)?;
    }
    namer.finish()
}

/// The detours of the tracer's loop.
fn gaps(bytes: &[u8], names: &mut Names) -> (MemoryStore, TracerFigures) {
    let NoiseTrace { mut trace, loops, figures, .. } = tracers(bytes, names).unwrap();
    let cpus = (0..trace.cpus().len()).collect();
    let (mut kept, mut node) = (MemoryStore::default(), document());
    store(&mut trace, names, &DetourSearch::Gaps { cpus, loops }, &mut kept, &mut node).unwrap();
    books_close(&kept);
    (kept, figures)
}

/// The kernel's tracer itself counts its gaps, and the events in each and in all of them.
#[test]
fn the_gaps_of_a_tracer_are_split_as_the_tracer_counted() {
    let bytes = sample("osnoise/rtla.txt");
    let names = &mut Names::for_file();
    let (kept, figures) = gaps(&bytes, names);
    let TracerFigures { periods, counted, found, .. } = figures;
    assert_eq!((periods, counted.hardware, counted.irqs, counted.threads), (7, 139, 40, 20));
    let whole = |time: Nanos| time.get() / 1_000;
    // Each period is cut off to whole microseconds.
    assert!((whole(counted.noise)..whole(counted.noise) + 7).contains(&whole(found.noise)), "{figures:?}");
    assert_eq!(whole(found.longest), whole(counted.longest));
    let counts = |period: Period| [period.hardware, period.nmis, period.irqs, period.softirqs, period.threads];
    assert_eq!((counts(found), figures.lacking()), (counts(counted), Vec::new()));

    let mut told = BTreeMap::new();
    for event in osnoise::read(Source { name: "", bytes: &bytes }, &mut |_| {}).unwrap() {
        let event = event.unwrap();
        if let OsnoiseHappening::Gap { duration, interference, .. } = event.what {
            told.entry(event.cpu).or_insert_with(Vec::new).push((duration, interference));
        }
    }
    let kinds = [Kind::Nmi, Kind::Irq, Kind::Softirq, Kind::Kthread, Kind::Task];
    for lane in &kept.lanes {
        let seen = lane.detours.iter().enumerate().map(|(number, detour)| {
            let rows = lane.activities.iter().filter(|row| row.detour == number as u64 && kinds.contains(&row.kind));
            (detour.duration, rows.count() as u64)
        });
        assert_eq!(seen.collect::<Vec<_>>(), told[&lane.cpu], "CPU {}", lane.cpu);
    }
}

#[test]
fn interruptions_of_a_tracer_of_wake_ups_are_found() {
    let bytes = sample("osnoise/timerlat.txt");
    let names = &mut Names::for_file();
    let NoiseTrace { mut trace, loops, figures, .. } = tracers(&bytes, names).unwrap();
    assert!(loops.iter().all(|one| one.steps.is_empty()) && figures == TracerFigures::default());
    let (kept, ..) = find(&mut trace, names);
    let text = String::from_utf8(bytes).unwrap();
    let lines = |what: &str| text.lines().filter(|line| line.contains(what)).count();
    let rows = || kept.lanes.iter().flat_map(|lane| &lane.activities);
    let irqs = rows().filter(|row| row.kind == Kind::Irq);
    assert_eq!(irqs.clone().count(), lines("irq_noise"));
    // Their lengths are those of the lines.
    let net = text.lines().filter(|line| line.contains("irq_noise")).filter_map(|line| line.rsplit(' ').nth(1));
    let net: i64 = net.map(|duration| duration.parse::<i64>().unwrap()).sum();
    let off = irqs.map(|row| row.self_time.get()).sum::<i64>() - net;
    assert!(off.abs() <= 4, "{off} ns: the end of one and the start of the next have readings of their own");
    assert!(rows().all(|row| !kept.labels.text(row.source).starts_with("swapper")), "idle time interrupts nothing");
}

#[test]
fn net_lengths_are_put_into_each_other_again() {
    let line = |thread: &str, what: &str| format!("{thread} [000] d... 9.000001: {what}\n");
    let text = [
        // A thread of 100 ns with a softirq of 20 ns in it, an interrupt of 10 ns in that, and 5 ns of an NMI in that.
        line("k-7", "nmi_noise: start 1.000000033 duration 5 ns"),
        line("k-7", "irq_noise: disk:30 start 1.000000030 duration 10 ns"),
        line("k-7", "softirq_noise: TIMER:1 start 1.000000020 duration 20 ns"),
        line("k-7", "irq_noise: disk:30 start 1.000000070 duration 6 ns"),
        line("k-7", "thread_noise: kworker/0:1:7 start 1.000000010 duration 100 ns"),
        line("osnoise/0-5", "sample_threshold: start 1.000000000 duration 160 ns interference 5"),
        line("osnoise/0-5", "sample_threshold: start 1.000000200 duration 30 ns interference 0"),
    ];
    let names = &mut Names::for_file();
    let (kept, _) = gaps(text.concat().as_bytes(), names);
    let lane = &kept.lanes[0];
    let rows = lane.activities.iter().map(|row| (row.detour, row.kind, row.start.get(), row.self_time.get()));
    assert_eq!(
        rows.collect::<Vec<_>>(),
        [
            (0, Kind::Edge, 0, 10),
            (0, Kind::Kthread, 10, 100),
            (0, Kind::Softirq, 20, 20),
            (0, Kind::Irq, 30, 10),
            (0, Kind::Nmi, 33, 5),
            (0, Kind::Irq, 70, 6),
            (0, Kind::Edge, 151, 9),
            (1, Kind::Unseen, 200, 30),
        ]
    );
}

#[test]
fn what_a_tracer_lost_is_told() {
    let bytes = sample("osnoise/lost.txt");
    let names = &mut Names::for_file();
    let NoiseTrace { mut trace, loops, .. } = tracers(&bytes, names).unwrap();
    let wanted = DetourSearch::Gaps { cpus: vec![0, 1], loops };
    let (mut kept, mut node) = (MemoryStore::default(), document());
    let found = store(&mut trace, names, &wanted, &mut kept, &mut node).unwrap();
    books_close(&kept);
    assert_eq!(node.cpus.iter().map(|cpu| cpu.lost_events).collect::<Vec<_>>(), [84, 82]);
    assert!(found.spans.iter().all(|(_, span)| span.gaps == 1));
    // Both CPUs start with the mark, and only the first gap of CPU 0 contained a lost event.
    let incomplete =
        |lane: &becalm_record::MemoryLane| lane.detours.iter().map(|detour| detour.incomplete).collect::<Vec<_>>();
    let [zero, one] = [0, 1].map(|lane| incomplete(&kept.lanes[lane]));
    assert!(zero[0] && !zero[1..].contains(&true) && !one.contains(&true), "{zero:?} {one:?}");
}

#[test]
fn a_tracer_file_that_is_cut_or_changed_is_refused_or_sound() {
    let whole = sample("osnoise/rtla.txt");
    let (mut seed, mut refused, mut sound) = (7, 0, 0);
    for round in 0..400 {
        let mut bytes = whole.clone();
        if round % 2 == 0 {
            bytes.truncate(random(&mut seed, whole.len()));
        } else {
            for _ in 0..=random(&mut seed, 20) {
                let at = random(&mut seed, bytes.len());
                bytes[at] = b"0123456789 :-[]\n#x"[random(&mut seed, 18)];
            }
        }
        let names = &mut Names::for_file();
        match tracers(&bytes, names) {
            Ok(_) => {
                sound += 1;
                gaps(&bytes, names);
            }
            Err(error) => {
                let error = error.to_string();
                assert!(
                    error.starts_with("line ") || error.contains("no event") || error.contains("73 years"),
                    "{error}"
                );
                refused += 1;
            }
        }
    }
    assert!(refused > 50 && sound > 50, "{refused} refused, {sound} sound");
}

fn perf_trace(bytes: &[u8], names: &mut Names) -> Result<PerfTrace, ReadError> {
    let file = perf_data::read(Source { name: "", bytes })?;
    PerfTrace::new(&file, names, &mut |_| {})
}

#[test]
fn a_file_of_perf_is_what_perf_prints_of_it() {
    let (names, others) = (&mut Names::for_file(), &mut Names::for_file());
    let binary = perf_trace(&sample("perf-data/tracepoints.data"), names).unwrap();
    assert_eq!((binary.origin, binary.events.len(), binary.has_symbols), (16_344_379_128_899, 11, false));
    let mut trace = binary.trace;
    let (ours, _, found) = find(&mut trace, names);
    let (theirs, _, wanted) = find(&mut text_trace(&sample("perf-script/tracepoints.txt"), others), others);
    assert_eq!(found.spans, wanted.spans);
    let rows = |kept: &MemoryStore| -> Vec<_> {
        let rows = kept.lanes.iter().flat_map(|lane| &lane.activities);
        let text = |label| kept.labels.text(label).to_owned();
        rows.map(|row| (row.cpu, row.detour, row.start, row.self_time, row.kind, text(row.source), text(row.detail)))
            .collect()
    };
    assert_eq!(rows(&ours), rows(&theirs));
    for (ours, theirs) in ours.lanes.iter().zip(&theirs.lanes) {
        assert_eq!((ours.cpu, &ours.detours), (theirs.cpu, &theirs.detours));
        assert!(!ours.detours.is_empty());
    }
}

#[test]
fn a_file_of_perf_that_is_cut_or_changed_is_refused_or_sound() {
    let whole = sample("perf-data/tracepoints.data");
    for length in (0..whole.len()).step_by(211).chain([1, 4].map(|cut| whole.len() - cut)) {
        let error = perf_trace(&whole[..length], &mut Names::for_file()).unwrap_err().to_string();
        assert!(error.starts_with("byte "), "{length}: {error}");
    }
    let change = |at: usize, byte: u8| {
        let mut bytes = whole.clone();
        bytes[at] = byte;
        perf_trace(&bytes, &mut Names::for_file()).unwrap_err().to_string()
    };
    // The size of the head, the feature that marks compression, and a first record that is compressed.
    assert!(change(8, 16).contains("pipe"), "{}", change(8, 16));
    assert!(change(7, b'1').contains("starts with PERFILE2"));
    let data = u64::from_le_bytes(whole[40..48].try_into().unwrap()) as usize;
    assert!(change(data, 81).ends_with("'perf script --ns' prints it, which is read as perf-script"));
    let (mut seed, mut sound, mut refused) = (3, 0, 0);
    for _ in 0..600 {
        let mut bytes = whole.clone();
        for _ in 0..=random(&mut seed, 8) {
            let at = random(&mut seed, bytes.len());
            bytes[at] = random(&mut seed, 256) as u8;
        }
        let names = &mut Names::for_file();
        match perf_trace(&bytes, names) {
            Ok(PerfTrace { mut trace, .. }) => {
                sound += 1;
                find(&mut trace, names);
            }
            Err(_) => refused += 1,
        }
    }
    assert!(sound > 50 && refused > 50, "{sound} sound, {refused} refused");
}

/// A file of samples or of single threads lacks events without a mark of it. Its first attribute is at byte 296, its first record at 2024.
#[test]
fn a_file_of_perf_without_all_events_is_refused() {
    let read = |changes: &[(usize, u8)]| {
        let mut bytes = sample("perf-data/tracepoints.data");
        changes.iter().for_each(|(at, byte)| bytes[*at] = *byte);
        perf_trace(&bytes, &mut Names::for_file()).map(|_| ()).map_err(|error| error.to_string())
    };
    let (period, flags, attribute, last) = (16, 41, 144, 11 * 144);
    for number in [0, 10] {
        let at = 296 + number * attribute;
        for (changes, option) in [
            (vec![(at + period, 7)], "(-c 7)"),
            (vec![(at + period, 99), (at + flags, 4)], "(-F 99)"),
            (vec![(at + period, 1), (at + flags, 4)], "(-F 1)"),
        ] {
            let error = read(&changes).unwrap_err();
            let place = format!("byte {at}: perf left out events {option}");
            assert!(error.starts_with(&place) && error.ends_with("'perf record -a -c 1'"), "{error}");
        }
    }
    // Events that are no tracepoints may be sampled.
    read(&[(296 + last + period, 99), (296 + last + flags, 4)]).unwrap();
    let threads = |count: u8, pid: [u8; 8]| {
        let count = [count, 0, 0, 0, 0, 0, 0, 0];
        let body = count.into_iter().chain(pid).enumerate().map(|(at, byte)| (2024 + 8 + at, byte));
        read(&[(2024, 73)].into_iter().chain(body).collect::<Vec<_>>())
    };
    threads(1, [255; 8]).unwrap();
    threads(0, [0; 8]).unwrap();
    let error = threads(1, [0xa9, 0x34, 0, 0, 0, 0, 0, 0]).unwrap_err();
    assert!(error.starts_with("byte 2032: it holds the events of single threads"), "{error}");
    assert!(error.ends_with("'perf record -a'"), "{error}");
}

#[test]
fn cut_and_damaged_files_are_refused_with_a_place() {
    let whole = sample("trace-dat/v7-mono.dat");
    // The last bytes are the names of sections, which are not needed.
    for length in (0..whole.len() - 118).step_by(97).chain([119, 116, 100, 4, 1].map(|cut| whole.len() - cut)) {
        let names = &mut Names::for_file();
        let cut = trace_dat::read(Source { name: "", bytes: &whole[..length] });
        let read = cut.and_then(|file| PagedTrace::new(file, StampClock::Nanos, names)).map_err(TraceError::from);
        let read = read.and_then(|mut trace| {
            (0..trace.cpus().len()).try_for_each(|index| trace.each(index, names, &mut |_, _| Ok(())))
        });
        let error = read.unwrap_err().to_string();
        assert!(error.starts_with("byte "), "{length}: {error}");
    }
    // One block fewer than there are: the trace of CPU 0 starts at its second page with their number.
    let mut fewer = whole.clone();
    assert_eq!(fewer[8_192..8_196], [1, 0, 0, 0]);
    fewer[8_192] = 0;
    let names = &mut Names::for_file();
    let file = trace_dat::read(Source { name: "", bytes: &fewer }).unwrap();
    let error = PagedTrace::new(file, StampClock::Nanos, names).unwrap_err().to_string();
    assert!(error.starts_with("byte 8196: the 0 blocks of CPU 0 end here, and its trace goes on"), "{error}");
    let mut other = whole.clone();
    other[b"\x17\x08\x44tracing".len()] = b'9';
    assert!(trace_dat::read(Source { name: "", bytes: &other }).unwrap_err().to_string().contains("version '9'"));
}

/// A reproducible stream of numbers.
pub(super) fn random(seed: &mut u64, limit: usize) -> usize {
    *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    (*seed >> 33) as usize % limit
}

#[test]
fn whatever_bytes_are_changed_books_close_or_the_file_is_refused() {
    let plain = sample("trace-dat/v6-mono.dat");
    let packed = sample("trace-dat/v7-mono.dat");
    // The pages of the plain one that contain events.
    let pages = trace_dat::read(Source { name: "", bytes: &plain })
        .unwrap()
        .cpus
        .iter()
        .map(trace_dat::CpuPages::size)
        .sum::<usize>();
    let (mut seed, mut read, mut refused) = (1, 0, 0);
    for round in 0..600 {
        let mut bytes = if round % 3 == 0 { packed.clone() } else { plain.clone() };
        let from = if round % 3 == 1 { bytes.len() - pages } else { 0 };
        for _ in 0..=random(&mut seed, 6) {
            let at = from + random(&mut seed, bytes.len() - from);
            bytes[at] = random(&mut seed, 256) as u8;
        }
        let names = &mut Names::for_file();
        let file = trace_dat::read(Source { name: "", bytes: &bytes });
        let Ok(mut trace) = file.and_then(|file| PagedTrace::new(file, StampClock::Nanos, names)) else {
            refused += 1;
            continue;
        };
        let all = 0..trace.cpus().len();
        if all.clone().any(|index| trace.each(index, names, &mut |_, _| Ok(())).is_err()) {
            refused += 1;
            continue;
        }
        read += 1;
        find(&mut trace, names);
    }
    assert!(read > 100 && refused > 50, "{read} files were read, {refused} refused");
}
