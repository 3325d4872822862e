//! Traces of the kernel become a run of detours: what took the CPU from a thread, or would have taken it from any program.

use crate::read::{Format, ftrace_text, osnoise, perf_data, perf_script, trace_dat};
use crate::trace::{
    self, CpuSpan, DetourSearch, KernelTrace, NoiseNamer, NoiseTrace, PagedTrace, PerfTrace, StampClock, TextNamer,
    ThreadTimes, TraceFindings, TracerLoop, Whereabouts, Wholeness,
};
use becalm_command::Exit;
use becalm_command::progress::{Bar, Tail};
use becalm_linux::ftrace::{CARRIED, EventPath, MissingEvent, discover_among};
use becalm_measure::Names;
use becalm_model::node::{ClockDoc, Ended, NodeDoc, Rung, TracingDoc, Warning};
use becalm_model::{Event, Pid, warning};
use becalm_record::{DetourStore, Store};
use becalm_units::fault::{self, Context, UsageError};
use becalm_units::{CpuId, CpuList, Nanos};

use super::files::InputFile;
use super::{ImportArgs, document};

/// A trace that can be read, and what is known of it.
struct Opened<'a> {
    trace: Box<dyn KernelTrace + 'a>,
    /// The events that becalm decodes, of those that were recorded if the file says which, else of those that came.
    events: Vec<EventPath>,
    are_recorded_told: bool,
    /// How many other events came, as far as they were counted.
    others: u64,
    /// The name of the host.
    host: Option<String>,
    architecture: String,
    kernel: Option<String>,
    clock: ClockDoc,
    /// When it began, by the wall clock.
    began: Option<jiff::Timestamp>,
    warnings: Vec<Warning>,
    /// What the kernel counted as lost.
    counted_lost: u64,
    /// Of a trace of the kernel's noise tracers: the tracer's loop on each CPU.
    loops: Option<Vec<TracerLoop>>,
}

/// Whether one of the loops has a gap; timerlat has none.
fn have_gaps(loops: &[TracerLoop]) -> bool {
    loops.iter().any(|of| !of.steps.is_empty())
}

/// What a trace holds of a CPU: its number in the trace, which it is, and how much.
type OfCpu = (usize, CpuId, CpuSpan);

/// Reads the trace and writes the run.
///
/// # Errors
/// If the file is no whole trace, what is asked for is not in it, or the run cannot be written.
pub fn run(args: &ImportArgs, format: Format, files: &[InputFile]) -> fault::Result<Exit> {
    let [file] = files else {
        return Err(
            UsageError::new("a trace is one file with all CPUs; import one after another, with a --node each").into()
        );
    };
    if args.length.is_some() {
        return Err(UsageError::new("--length is not for traces, which say themselves how long they are").into());
    }
    let progress = &Bar::new("reading", file.size(), Tail::TimeLeft);
    let mut names = Names::for_file();
    let opened = match format {
        Format::PerfData => open_perf_data(file, &mut names, progress),
        Format::PerfScript | Format::Ftrace => open_text(format, file, &mut names, progress),
        Format::Osnoise => open_osnoise(args, file, &mut names, progress),
        _ => open_trace_dat(args, file, &mut names),
    };
    let cannot = || format!("cannot import {}", file.path.display());
    let mut opened = opened.with_context(cannot)?;
    let (mut times, mut whole) = (ThreadTimes::default(), Wholeness::default());
    let mut see = |cpu, event: &Event| {
        times.take(cpu, event);
        whole.take(cpu, event);
    };
    let spans = survey(&mut *opened.trace, &mut names, &mut see).with_context(cannot)?;
    if opened.loops.is_none() {
        whole.check(opened.trace.backwards()).with_context(cannot)?;
    }
    let wanted = wanted(args, &mut opened, &mut names, &spans).with_context(cannot)?;
    let mut node = describe(args, format, &opened, &wanted);
    progress.say("storing");
    let mut store = DetourStore::new(&args.output);
    let found = trace::store(&mut *opened.trace, &mut names, &wanted, &mut store, &mut node)?;
    if let DetourSearch::Gaps { loops, .. } = &wanted {
        enter_thresholds(&mut node, &opened.trace.cpus(), loops);
    }
    node.warnings.extend(warnings(&opened, &wanted, &names, &node, &found));
    let without_idle = if opened.loops.is_none() { whole.without_idle() } else { CpuList::default() };
    if !without_idle.is_empty() {
        node.warnings.push(warning::idle_not_in_trace(&without_idle));
    }
    let programs = times.programs(&names);
    if matches!(wanted, DetourSearch::Interruptions { .. }) && !programs.is_empty() {
        node.warnings.push(warning::taken_for_programs(&programs));
    }
    node.ended = Some(Ended::Unknown);
    store.close(&mut node)?;
    Ok(Exit::Done)
}

fn open_trace_dat<'a>(args: &ImportArgs, file: &'a InputFile, names: &mut Names) -> fault::Result<Opened<'a>> {
    let read = trace_dat::read(file.source())?;
    let clock_name = read.clock.clone().unwrap_or_else(|| "local".to_owned());
    let clock = stamp_clock(args, &clock_name, read.tsc)?;
    let mut warnings = Vec::new();
    if clock_name == "local" {
        warnings.push(warning::clock_of_each_cpu(&clock_name));
    }
    if !read.other_buffers.is_empty() {
        warnings.push(warning::buffers_left_out(&read.other_buffers));
    }
    let trace = PagedTrace::new(read, clock, names)?;
    if !trace.has_symbols() {
        warnings.push(no_symbols("record as root, so that trace-cmd can read /proc/kallsyms"));
    }
    // Linux, the host's name, the release, the architecture.
    let uname: Vec<&str> = trace.file().uname.as_deref().unwrap_or_default().split_whitespace().collect();
    let wall = trace.file().to_wall_clock.map(|offset| trace.origin() + i128::from(offset));
    let doc = ClockDoc {
        counter: clock_name,
        origin_ticks: u64::try_from(trace.origin()).unwrap_or(0),
        rate_hz: clock.hz(),
        resolution_ns: Nanos::new(1),
        ..ClockDoc::default()
    };
    Ok(Opened {
        events: trace.events().to_vec(),
        architecture: uname.get(3).map_or_else(|| architecture_of(trace.events()), |text| (*text).to_owned()),
        kernel: uname.get(2).map(|text| (*text).to_owned()),
        clock: doc,
        began: wall.and_then(|ns| jiff::Timestamp::from_nanosecond(ns).ok()),
        warnings,
        counted_lost: trace.file().counted_lost(),
        are_recorded_told: false,
        others: trace.others(),
        host: uname.get(1).map(|text| (*text).to_owned()),
        trace: Box::new(trace),
        loops: None,
    })
}

/// How the stamps of a trace with this clock count.
fn stamp_clock(args: &ImportArgs, clock: &str, tsc: Option<trace_dat::TscRate>) -> fault::Result<StampClock> {
    const NANOSECONDS: [&str; 8] = ["local", "global", "uptime", "perf", "mono", "mono_raw", "boot", "tai"];
    if NANOSECONDS.contains(&clock) {
        return Ok(StampClock::Nanos);
    }
    fault::ensure!(clock != "counter", "its clock only counts events, and tells no time; record with -C mono");
    match (args.rate, tsc) {
        (Some(hz), _) => Ok(StampClock::Rate(hz)),
        (None, Some(rate)) => Ok(StampClock::Scaled { mult: rate.mult, shift: rate.shift }),
        (None, None) => Err(UsageError::new(format!(
            "the trace counts ticks of the clock '{clock}', and does not say how long they are: give --rate, or record with -C mono \
             or, for the processor's own counter, with -C tsc2nsec"
        ))
        .into()),
    }
}

fn no_symbols(advice: &str) -> Warning {
    warning::no_symbols("the file holds no names of functions", advice)
}

fn open_perf_data<'a>(file: &'a InputFile, names: &mut Names, progress: &Bar) -> fault::Result<Opened<'a>> {
    let read = perf_data::read(file.source())?;
    let PerfTrace { trace, origin, events, has_symbols } =
        PerfTrace::new(&read, names, &mut |bytes| progress.advance(bytes))?;
    let calls_functions = |event: &EventPath| event.system == "workqueue" || event.system == "nmi";
    let has_functions = events.iter().any(calls_functions);
    let advice = "let perf script --ns print it where it was recorded, and import that";
    Ok(Opened {
        trace: Box::new(trace),
        architecture: read.architecture.unwrap_or_else(|| architecture_of(&events)),
        events,
        kernel: read.release,
        clock: ClockDoc {
            counter: "perf".to_owned(),
            origin_ticks: origin,
            rate_hz: 1e9,
            resolution_ns: Nanos::new(1),
            ..ClockDoc::default()
        },
        began: None,
        warnings: (has_functions && !has_symbols).then(|| no_symbols(advice)).into_iter().collect(),
        counted_lost: 0,
        are_recorded_told: true,
        others: 0,
        host: read.host,
        loops: None,
    })
}

/// Opens a text of perf, or of the kernel itself.
fn open_text<'a>(format: Format, file: &'a InputFile, names: &mut Names, progress: &Bar) -> fault::Result<Opened<'a>> {
    let mut namer = TextNamer::default();
    let mut told = |bytes| progress.advance(bytes);
    let (mut lines, clock) = if format == Format::PerfScript {
        (perf_script::read(file.source(), &mut told)?, "perf")
    } else {
        // Which one the kernel's trace is by, its text does not say.
        (ftrace_text::read(file.source(), &mut told)?, "the trace's")
    };
    for event in &mut lines {
        namer.take(&event?, names);
    }
    let seen = lines.seen().map(|(system, name)| EventPath { system: system.to_owned(), name: name.to_owned() });
    let events: Vec<EventPath> = seen.collect();
    let is_coarse = lines.is_coarse();
    let mut warnings = lines.warnings();
    warnings.extend(is_coarse.then(warning::coarse_stamps));
    let (trace, first) = namer.finish()?;
    let resolution_ns = if is_coarse { Nanos::from_micros(1) } else { Nanos::new(1) };
    Ok(Opened {
        trace: Box::new(trace),
        architecture: architecture_of(&events),
        events,
        kernel: None,
        clock: ClockDoc {
            counter: clock.to_owned(),
            origin_ticks: first.get() as u64,
            rate_hz: 1e9,
            resolution_ns,
            ..ClockDoc::default()
        },
        began: None,
        warnings,
        counted_lost: 0,
        are_recorded_told: false,
        others: 0,
        host: None,
        loops: None,
    })
}

fn open_osnoise<'a>(
    args: &ImportArgs,
    file: &'a InputFile,
    names: &mut Names,
    progress: &Bar,
) -> fault::Result<Opened<'a>> {
    if args.thread.is_some() {
        let why = "its thread is the tracer's own, of which all gaps are found without --thread";
        return Err(UsageError::new(format!("--thread is not for traces of osnoise and timerlat: {why}")).into());
    }
    let mut namer = NoiseNamer::default();
    let mut told = |bytes| progress.advance(bytes);
    let mut lines = osnoise::read(file.source(), &mut told)?;
    for event in &mut lines {
        namer.take(&event?, names)?;
    }
    let mut warnings = lines.warnings();
    if lines.is_tainted() {
        warnings.push(warning::tracer_tainted());
    }
    let NoiseTrace { trace, origin, loops, figures } = namer.finish()?;
    let lacking = figures.lacking();
    if have_gaps(&loops) && !lacking.is_empty() {
        warnings.push(warning::tracer_saw_more(figures.periods, &lacking));
    }
    Ok(Opened {
        trace: Box::new(trace),
        events: Vec::new(),
        architecture: String::new(),
        kernel: None,
        clock: ClockDoc {
            counter: "the tracer's".to_owned(),
            origin_ticks: u64::try_from(origin.get()).unwrap_or(0),
            rate_hz: 1e9,
            resolution_ns: Nanos::new(1),
            ..ClockDoc::default()
        },
        began: None,
        warnings,
        counted_lost: 0,
        are_recorded_told: false,
        others: 0,
        host: None,
        loops: Some(loops),
    })
}

/// The architecture of a machine whose kernel has these events, where nothing else tells it.
fn architecture_of(events: &[EventPath]) -> String {
    let is_arm = events.iter().any(|event| event.system == "ipi" && event.name == "ipi_entry");
    if is_arm { "aarch64" } else { "x86_64" }.to_owned()
}

/// The tracer does not say from which length on it kept gaps; none is shorter than the shortest.
fn enter_thresholds(node: &mut NodeDoc, cpus: &[CpuId], loops: &[TracerLoop]) {
    for doc in &mut node.cpus {
        let of = cpus.iter().zip(loops).find(|(cpu, _)| **cpu == doc.cpu).map(|(_, of)| of);
        let shortest = of.and_then(|of| of.steps.iter().map(|step| step.end - step.start).min());
        doc.threshold_ns = shortest.unwrap_or(Nanos::ZERO);
    }
}

/// Reads the whole trace once, so that nothing is stored of one that is damaged.
fn survey(
    trace: &mut dyn KernelTrace,
    names: &mut Names,
    see: &mut dyn FnMut(CpuId, &Event),
) -> Result<Vec<OfCpu>, trace::OfflineError> {
    let mut spans = Vec::new();
    for (index, cpu) in trace.cpus().into_iter().enumerate() {
        let mut span = CpuSpan::default();
        trace.each(index, names, &mut |event, _| {
            span.take(event);
            see(cpu, event);
            Ok(())
        })?;
        spans.push((index, cpu, span));
    }
    Ok(spans)
}

/// What is looked for, and on which CPUs.
fn wanted(
    args: &ImportArgs,
    opened: &mut Opened<'_>,
    names: &mut Names,
    spans: &[OfCpu],
) -> fault::Result<DetourSearch> {
    let there: CpuList = spans.iter().map(|(_, cpu, _)| *cpu).collect();
    if let Some(chosen) = &args.cpu
        && !chosen.without(&there).is_empty()
    {
        return Err(UsageError::new(format!(
            "the trace holds {}, and not all of --cpus {chosen}",
            becalm_units::cpus(&there)
        ))
        .into());
    }
    let is_chosen = |cpu: CpuId| args.cpu.as_ref().is_none_or(|chosen| chosen.contains(cpu));
    if let Some(loops) = opened.loops.as_ref().filter(|loops| have_gaps(loops)) {
        let with_gaps = spans.iter().filter(|(index, cpu, _)| is_chosen(*cpu) && !loops[*index].steps.is_empty());
        let cpus: Vec<usize> = with_gaps.map(|(index, ..)| *index).collect();
        fault::ensure!(!cpus.is_empty(), "the tracer's loop has a gap on none of the chosen CPUs");
        return Ok(DetourSearch::Gaps { cpus, loops: loops.clone() });
    }
    let has_switches = opened.loops.is_some()
        || opened.events.iter().any(|event| event.system == "sched" && event.name == "sched_switch");
    let Some(thread) = &args.thread else {
        let with_time = spans.iter().filter(|(_, cpu, span)| is_chosen(*cpu) && span.length() > Nanos::ZERO);
        let cpus: Vec<usize> = with_time.map(|(index, ..)| *index).collect();
        fault::ensure!(
            !cpus.is_empty(),
            "{}: record interrupts, softirqs and switches: irq, irq_vectors, nmi, sched:sched_switch and workqueue",
            if opened.others > 0 {
                format!("none of its {} events tells what had a CPU", opened.others)
            } else {
                "no CPU has two events that tell what had it".to_owned()
            }
        );
        return Ok(DetourSearch::Interruptions { cpus, has_switches });
    };
    fault::ensure!(
        has_switches,
        "the trace does not tell which thread ran: record it with sched:sched_switch, or leave --thread out"
    );
    let thread = find_thread(thread, names)?;
    let mut whereabouts = Whereabouts::default();
    survey(&mut *opened.trace, names, &mut |cpu, event| whereabouts.take(thread, cpu, event))?;
    let seen = whereabouts.cpus();
    let cpus: Vec<usize> = spans
        .iter()
        .filter(|(_, cpu, span)| seen.contains(cpu) && is_chosen(*cpu) && span.length() > Nanos::ZERO)
        .map(|(index, ..)| *index)
        .collect();
    if cpus.is_empty() {
        let seen: CpuList = seen.into_iter().collect();
        return Err(UsageError::new(if seen.is_empty() {
            format!("thread {} had no CPU while the trace was recorded", thread.0)
        } else {
            format!("thread {} was on {} only", thread.0, becalm_units::cpus(&seen))
        })
        .into());
    }
    Ok(DetourSearch::Thread { thread, cpus, whereabouts })
}

/// The thread of that number or name.
fn find_thread(text: &str, names: &Names) -> Result<Pid, UsageError> {
    if let Ok(number) = text.parse::<i32>() {
        return match number {
            0 => Err(UsageError::new("thread 0 is the idle thread, which nothing interrupts")),
            _ if number > 0 => Ok(Pid(number)),
            _ => Err(UsageError::new(format!("--thread {number} is no number of a thread"))),
        };
    }
    match names.called(text)[..] {
        [one] => Ok(one),
        [] => Err(UsageError::new(format!(
            "no thread of the trace is called '{text}' (names have 15 characters at most)"
        ))),
        ref several => {
            let shown: Vec<String> = several.iter().take(20).map(|pid| pid.0.to_string()).collect();
            let more = if several.len() > shown.len() { ", ..." } else { "" };
            Err(UsageError::new(format!(
                "{} threads of the trace are called '{text}': give the number of one: {}{more}",
                several.len(),
                shown.join(", ")
            )))
        }
    }
}

/// The document of the run, before anything is found.
fn describe(args: &ImportArgs, format: Format, opened: &Opened<'_>, wanted: &DetourSearch) -> NodeDoc {
    let mut node = document::of_recording(args, format, opened.host.as_deref(), Vec::new());
    node.ended = None;
    node.origin = opened.began;
    node.rung = Rung::Tracepoints;
    node.clock = opened.clock.clone();
    node.settings.threshold = match wanted {
        DetourSearch::Gaps { .. } => "the tracer's".to_owned(),
        _ => "none".to_owned(),
    };
    node.machine.online = opened.trace.cpus().into_iter().collect();
    if let Some(kernel) = &opened.kernel {
        node.machine.kernel.clone_from(kernel);
        node.machine.architecture.clone_from(&opened.architecture);
    }
    node.tracing = Some(TracingDoc {
        clock: opened.clock.counter.clone(),
        events: opened.events.iter().map(ToString::to_string).collect(),
        missing: missing(opened),
        ..TracingDoc::default()
    });
    node.warnings = match wanted {
        DetourSearch::Interruptions { .. } => vec![warning::no_loop()],
        // What is known of the thread's time is known at the end.
        DetourSearch::Thread { .. } => Vec::new(),
        DetourSearch::Gaps { .. } => vec![warning::imported()],
    };
    node
}

/// The events that are not in the trace, and what they would have told of.
fn missing(opened: &Opened<'_>) -> Vec<String> {
    if opened.loops.is_some() {
        return Vec::new();
    }
    let mut found = discover_among(&opened.events, &opened.architecture).missing;
    // Page faults count as the thread's own time. Several events show the same purpose of interrupts.
    found.retain(|missing| !missing.event.starts_with("exceptions/"));
    found.dedup_by(|missing, before| is_carried(before) && missing.unseen == before.unseen);
    found.iter().map(|missing| format!("{} ({}): {}", missing.event, missing.why, kind_of(missing.unseen))).collect()
}

/// Whether an event only shows the purpose of interrupts or softirqs. Without it, they are still in the detours.
fn is_carried(missing: &MissingEvent) -> bool {
    CARRIED.iter().any(|wanted| wanted.unseen == missing.unseen)
}

/// The kinds of noise that the trace has no events of.
fn missing_kinds(opened: &Opened<'_>) -> Vec<String> {
    let mut kinds: Vec<String> = Vec::new();
    // The noise tracers have no work items, and otherwise all.
    if opened.loops.is_some() {
        return kinds;
    }
    for missing in discover_among(&opened.events, &opened.architecture).missing {
        let kind = kind_of(missing.unseen).to_owned();
        if !missing.event.starts_with("exceptions/") && !is_carried(&missing) && !kinds.contains(&kind) {
            kinds.push(kind);
        }
    }
    kinds
}

/// The kind of noise that stays unseen, without what a recording of a loop would book it as.
fn kind_of(unseen: &str) -> &str {
    unseen.split(':').next().unwrap_or(unseen)
}

/// What the trace does not tell, and what was found to be wrong with it.
fn warnings(
    opened: &Opened<'_>,
    wanted: &DetourSearch,
    names: &Names,
    node: &NodeDoc,
    found: &TraceFindings,
) -> Vec<Warning> {
    let mut warnings = Vec::new();
    if let DetourSearch::Thread { thread, .. } = wanted {
        let name = names.name_of(*thread).map_or_else(String::new, |name| format!("{name}, "));
        let name = becalm_units::printable(&name).into_owned();
        let whole: Nanos = node.cpus.iter().map(|cpu| cpu.duration_ns).max().unwrap_or_default();
        let time = found.thread;
        warnings.push(warning::thread_of_trace(&format!("{name}thread {}", thread.0), time.had, time.waited, whole));
        if time.moved > 0 {
            let cpus: CpuList = node.cpus.iter().map(|cpu| cpu.cpu).collect();
            warnings.push(warning::thread_moved(time.moved, &cpus));
        }
    }
    warnings.extend(opened.warnings.iter().cloned());
    if let DetourSearch::Gaps { cpus, loops } = wanted {
        let spans = found.spans.iter().map(|(_, span)| span.length()).fold(Nanos::ZERO, Nanos::saturating_add);
        let runtime = cpus.iter().map(|index| loops[*index].runtime).fold(Nanos::ZERO, Nanos::saturating_add);
        // The last period of each CPU has not ended, so that a little is always missing.
        if runtime > Nanos::ZERO && runtime < Nanos::new(spans.get() / 5 * 4) {
            warnings.push(warning::tracer_paused(runtime, spans));
        }
    }
    let kinds = missing_kinds(opened);
    if !kinds.is_empty() {
        warnings.push(warning::not_in_trace(&kinds, opened.are_recorded_told));
    }
    let spans = || found.spans.iter().map(|(_, span)| span);
    // A file may hold any figures.
    let lost = spans().map(|span| span.lost).fold(0, u64::saturating_add);
    let gaps: u64 = spans().map(|span| span.gaps).sum();
    if gaps > 0 {
        let incomplete = node.cpus.iter().map(|cpu| cpu.incomplete).sum();
        let gap_time = spans().map(|span| span.gap_time).fold(Nanos::ZERO, Nanos::saturating_add);
        warnings.push(warning::lost_in_trace(lost, gaps, gap_time, incomplete));
    } else if opened.counted_lost > 0 {
        warnings.push(warning::lost_untold_in_trace(opened.counted_lost));
    }
    // One or two are what was under way when the trace began.
    warnings.extend(node.cpus.iter().filter(|cpu| cpu.unmatched_events > 2).map(warning::unmatched_events));
    if opened.trace.backwards() > 0 {
        warnings.push(warning::stamps_backwards(opened.trace.backwards()));
    }
    warnings
}
