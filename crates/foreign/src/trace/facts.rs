//! Opens a trace in each of its formats, with the facts about the recording in its file.

use becalm_linux::ftrace::{CARRIED, EventPath, MissingEvent, discover_among};
use becalm_measure::Names;
use becalm_model::node::{ClockDoc, ClockPair, MachineDoc, TracingDoc, Warning};
use becalm_model::warning;
use becalm_units::fault::{self, UsageError, Wording};
use becalm_units::{CpuId, Nanos};

use super::{KernelTrace, NoiseNamer, NoiseTrace, PagedTrace, PerfTrace, StampClock, TextNamer, TracerLoop};
use crate::read::{Format, Progress, Source, ftrace_text, osnoise, perf_data, perf_script, perfetto, trace_dat};

/// A trace, and the facts about the recording in its file.
pub(super) struct OpenTrace<'a> {
    pub events: Box<dyn KernelTrace + 'a>,
    pub facts: TraceFacts,
}

/// Facts about a recording.
#[derive(Default)]
pub(super) struct TraceFacts {
    /// The events that becalm decodes: the recorded ones if the file lists them, else those that it contains.
    pub paths: Vec<EventPath>,
    /// True if the file lists the recorded ones.
    pub lists_recorded: bool,
    /// Events of other kinds, if they were counted.
    pub others: u64,
    pub host: Option<String>,
    architecture: Option<String>,
    /// The kernel's release.
    pub kernel: Option<String>,
    pub clock: ClockDoc,
    /// The start by the wall clock.
    pub began: Option<jiff::Timestamp>,
    pub warnings: Vec<Warning>,
    /// Events that the kernel counted as dropped.
    pub counted_lost: u64,
    /// The tracer's loop on each CPU, in a trace of the kernel's noise tracers.
    pub loops: Option<Vec<TracerLoop>>,
}

impl TraceFacts {
    /// The loops of the tracer if one has a gap; timerlat's have none.
    pub fn loops_with_gaps(&self) -> Option<&[TracerLoop]> {
        self.loops.as_deref().filter(|loops| loops.iter().any(|tracer| !tracer.steps.is_empty()))
    }

    /// True if the trace shows which thread ran.
    pub fn has_switches(&self) -> bool {
        self.loops.is_some() || self.has("sched", "sched_switch")
    }

    /// True if the trace has this event.
    pub fn has(&self, system: &str, name: &str) -> bool {
        self.paths.iter().any(|event| event.system == system && event.name == name)
    }

    /// Enters what the file says about the machine, which has these CPUs.
    pub fn describe(&self, machine: &mut MachineDoc, cpus: Vec<CpuId>) {
        machine.online = cpus.into_iter().collect();
        if let Some(kernel) = &self.kernel {
            machine.kernel.clone_from(kernel);
            machine.architecture = self.architecture();
        }
    }

    /// The trace's part of the document.
    pub fn tracing(&self) -> TracingDoc {
        let mut found = self.missing();
        // Several events show the same purpose of interrupts.
        found.dedup_by(|missing, before| is_carried(before) && missing.unseen == before.unseen);
        let missing = |missing: &MissingEvent| format!("{} ({}): {}", missing.event, missing.why, kind(missing.unseen));
        TracingDoc {
            clock: self.clock.counter.clone(),
            events: self.paths.iter().map(ToString::to_string).collect(),
            missing: found.iter().map(missing).collect(),
            ..TracingDoc::default()
        }
    }

    /// The kinds of noise whose events the trace lacks.
    pub fn missing_kinds(&self) -> Vec<String> {
        let mut kinds: Vec<String> = Vec::new();
        for missing in self.missing().iter().filter(|missing| !is_carried(missing)) {
            let kind = kind(missing.unseen).to_owned();
            if !kinds.contains(&kind) {
                kinds.push(kind);
            }
        }
        kinds
    }

    /// The machine's architecture. If the file does not name it, its kernel events show it.
    pub fn architecture(&self) -> String {
        let is_arm = || self.paths.iter().any(|event| event.system == "ipi" && event.name == "ipi_entry");
        self.architecture.clone().unwrap_or_else(|| if is_arm() { "aarch64" } else { "x86_64" }.to_owned())
    }

    /// The events that the trace lacks. The noise tracers lack work items alone; page faults count as the thread's own time.
    pub fn missing(&self) -> Vec<MissingEvent> {
        if self.loops.is_some() {
            return Vec::new();
        }
        let mut missing = discover_among(&self.paths, &self.architecture()).missing;
        missing.retain(|missing| !missing.event.starts_with("exceptions/"));
        missing
    }
}

/// The kind of noise that stays unseen, without the kind that a recording of a loop would charge it to.
fn kind(unseen: &str) -> &str {
    unseen.split(':').next().unwrap_or(unseen)
}

/// True for events that only show the purpose of interrupts or softirqs. Detours contain these without them.
fn is_carried(missing: &MissingEvent) -> bool {
    CARRIED.iter().any(|wanted| wanted.unseen == missing.unseen)
}

/// Opens the trace of a file; `rate_hz` is that of its clock, if the file does not contain it. Fails if the file is damaged or its clock
/// unknown.
pub(super) fn open<'a>(
    format: Format,
    source: Source<'a>,
    rate_hz: Option<f64>,
    names: &mut Names,
    told: Progress<'_>,
) -> fault::Result<OpenTrace<'a>> {
    match format {
        Format::PerfData => open_perf_data(source, names, told),
        Format::PerfScript | Format::Ftrace => open_text(format, source, names, told),
        Format::Perfetto => open_perfetto(source, names, told),
        Format::Osnoise => open_osnoise(source, names, told),
        _ => open_trace_dat(source, rate_hz, names),
    }
}

/// A clock that counts nanoseconds, and its value at the run's origin.
fn nanosecond_clock(counter: &str, origin: i128) -> ClockDoc {
    ClockDoc {
        counter: counter.to_owned(),
        origin_ticks: u64::try_from(origin).unwrap_or(0),
        rate_hz: 1e9,
        resolution_ns: Nanos::new(1),
        ..ClockDoc::default()
    }
}

fn no_symbols(advice: &str) -> Warning {
    warning::no_symbols("the file holds no names of functions", advice)
}

fn open_trace_dat<'a>(source: Source<'a>, rate_hz: Option<f64>, names: &mut Names) -> fault::Result<OpenTrace<'a>> {
    let read = trace_dat::read(source)?;
    let counter = read.clock.clone().unwrap_or_else(|| "local".to_owned());
    let clock = stamp_clock(&counter, rate_hz, read.tsc)?;
    let mut warnings = Vec::new();
    if counter == "local" {
        warnings.push(warning::clock_of_each_cpu(&counter));
    }
    if !read.other_buffers.is_empty() {
        warnings.push(warning::buffers_left_out(&read.other_buffers));
    }
    let trace = PagedTrace::new(read, clock, names)?;
    if !trace.has_symbols() {
        warnings.push(no_symbols("record as root, to let trace-cmd read /proc/kallsyms"));
    }
    let file = trace.file();
    // Linux, host name, release, architecture.
    let uname: Vec<&str> = file.uname.as_deref().unwrap_or_default().split_whitespace().collect();
    let word = |place: usize| uname.get(place).map(|text| (*text).to_owned());
    let wall = file.to_wall_clock.map(|offset| trace.origin() + i128::from(offset));
    let facts = TraceFacts {
        paths: trace.events().to_vec(),
        others: trace.others(),
        host: word(1),
        kernel: word(2),
        architecture: word(3),
        clock: ClockDoc { rate_hz: clock.hz(), ..nanosecond_clock(&counter, trace.origin()) },
        began: wall.and_then(|ns| jiff::Timestamp::from_nanosecond(ns).ok()),
        warnings,
        counted_lost: file.counted_lost(),
        ..TraceFacts::default()
    };
    Ok(OpenTrace { facts, events: Box::new(trace) })
}

fn stamp_clock(clock: &str, rate_hz: Option<f64>, tsc: Option<trace_dat::TscRate>) -> fault::Result<StampClock> {
    const NANOSECONDS: [&str; 8] = ["local", "global", "uptime", "perf", "mono", "mono_raw", "boot", "tai"];
    if NANOSECONDS.contains(&clock) {
        return Ok(StampClock::Nanos);
    }
    fault::ensure!(clock != "counter", "its clock only counts events, and tells no time; record with -C mono");
    match (rate_hz, tsc) {
        (Some(hz), _) => Ok(StampClock::Rate(hz)),
        (None, Some(rate)) => Ok(StampClock::Scaled { mult: rate.mult, shift: rate.shift }),
        (None, None) => {
            let text = Wording::new(
                "the trace counts ticks of the clock '{}', and does not say how long they are: give {rate}, or record with -C mono \
                 or, for the processor's own counter, with -C tsc2nsec",
            );
            Err(UsageError::new(text.with(clock)).into())
        }
    }
}

fn open_perf_data<'a>(source: Source<'a>, names: &mut Names, told: Progress<'_>) -> fault::Result<OpenTrace<'a>> {
    let read = perf_data::read(source)?;
    let PerfTrace { trace, origin, events, has_symbols } = PerfTrace::new(&read, names, told)?;
    let has_functions = events.iter().any(|event| event.system == "workqueue" || event.system == "nmi");
    let advice = "let perf script --ns print it where it was recorded, and import that";
    let facts = TraceFacts {
        paths: events,
        lists_recorded: true,
        host: read.host,
        architecture: read.architecture,
        kernel: read.release,
        clock: nanosecond_clock("perf", origin.into()),
        warnings: (has_functions && !has_symbols).then(|| no_symbols(advice)).into_iter().collect(),
        ..TraceFacts::default()
    };
    Ok(OpenTrace { facts, events: Box::new(trace) })
}

/// Opens a text of perf or of the kernel.
fn open_text<'a>(
    format: Format,
    source: Source<'a>,
    names: &mut Names,
    told: Progress<'_>,
) -> fault::Result<OpenTrace<'a>> {
    let mut namer = TextNamer::default();
    let (mut lines, counter) = if format == Format::PerfScript {
        (perf_script::read(source, told)?, "perf")
    } else {
        // The kernel's text does not name the clock.
        (ftrace_text::read(source, told)?, "the trace's")
    };
    for event in &mut lines {
        namer.take(&event?, names);
    }
    let is_coarse = lines.is_coarse();
    let mut warnings = lines.warnings();
    warnings.extend(is_coarse.then(warning::coarse_stamps));
    let seen = lines.seen().map(|(system, name)| EventPath { system: system.to_owned(), name: name.to_owned() });
    let paths = seen.collect();
    let (trace, first) = namer.finish()?;
    let resolution_ns = if is_coarse { Nanos::from_micros(1) } else { Nanos::new(1) };
    let clock = ClockDoc { resolution_ns, ..nanosecond_clock(counter, first.get().into()) };
    Ok(OpenTrace { facts: TraceFacts { paths, clock, warnings, ..TraceFacts::default() }, events: Box::new(trace) })
}

fn open_perfetto<'a>(source: Source<'a>, names: &mut Names, told: Progress<'_>) -> fault::Result<OpenTrace<'a>> {
    let mut namer = TextNamer::default();
    let found = perfetto::read(source, told, &mut (&mut namer, names))?;
    let (trace, first) = namer.finish()?;
    let placed = |pair: ClockPair| ClockPair { at_ns: pair.at_ns - first, ..pair };
    let pairs: Vec<ClockPair> = found.readings.into_iter().map(placed).collect();
    let began = pairs.first().map(|pair| i128::from(pair.realtime_ns) - i128::from(pair.at_ns.get()));
    let path = |(system, name): (&str, String)| EventPath { system: system.to_owned(), name };
    let facts = TraceFacts {
        paths: found.seen.into_iter().map(path).collect(),
        kernel: found.kernel,
        architecture: found.architecture,
        clock: ClockDoc { pairs, ..nanosecond_clock(found.clock, first.get().into()) },
        began: began.and_then(|ns| jiff::Timestamp::from_nanosecond(ns).ok()),
        warnings: found.warnings,
        ..TraceFacts::default()
    };
    Ok(OpenTrace { facts, events: Box::new(trace) })
}

fn open_osnoise<'a>(source: Source<'a>, names: &mut Names, told: Progress<'_>) -> fault::Result<OpenTrace<'a>> {
    let mut namer = NoiseNamer::default();
    let mut lines = osnoise::read(source, told)?;
    for event in &mut lines {
        namer.take(&event?, names)?;
    }
    let mut warnings = lines.warnings();
    if lines.is_tainted() {
        warnings.push(warning::tracer_tainted());
    }
    let NoiseTrace { trace, origin, loops, figures } = namer.finish()?;
    let clock = nanosecond_clock("the tracer's", origin.get().into());
    let mut facts = TraceFacts { clock, warnings, loops: Some(loops), ..TraceFacts::default() };
    let lacking = figures.lacking();
    if facts.loops_with_gaps().is_some() && !lacking.is_empty() {
        facts.warnings.push(warning::tracer_saw_more(figures.periods, &lacking));
    }
    Ok(OpenTrace { facts, events: Box::new(trace) })
}
