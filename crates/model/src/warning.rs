//! The catalogue of all warnings: limits of a run's numbers, as values with their figures and the next step.
//!
//! Warnings are stored with a run, so their advice uses the terms of the program that made it: options are those of `becalm`.

mod code;

use std::path::Path;

use becalm_units::{Count, CpuId, CpuList, Nanos, counted, cpus, cpus_are, plural, printable};

use crate::node::{CpuDoc, TraceChange, Warning};

pub use code::{Bearing, Code, bearing_warnings};

/// The warnings of the catalogue: one function each, with the code, the message and the advice.
macro_rules! warnings {
    ($($(#[$doc:meta])+ $name:ident($($parameter:ident: $type:ty),*) $code:ident: $message:expr, $advice:expr;)+) => {
        $($(#[$doc])+ pub fn $name($($parameter: $type),*) -> Warning {
            Warning::new(Code::$code, $message, $advice)
        })+
    };
}

// Before and during a recording.

warnings! {
    /// The processor's own counter cannot be used, for this reason.
    slow_clock(why: &str) SlowClock:
        format!("the loops read CLOCK_MONOTONIC_RAW, which takes longer than a counter: {why}"),
        "nothing to do if this is a virtual machine without an invariant counter; short detours stay unseen";

    /// The host's name cannot be read, for this reason.
    no_host_name(why: &str) NoHostName:
        format!("the node is called localhost, because its name is not known: {why}"),
        "runs of several such nodes cannot go into one bundle; free a descriptor (ulimit -n) or mount /proc, and record again";

    /// The counters of the measured CPUs differ by at least this much.
    counters_differ(proven: Nanos) CountersDiffer:
        format!("the counters of the measured CPUs differ by at least {proven}"),
        "times on different CPUs cannot be compared to better than that; each CPU's own detours are right";

    /// A counter ran backwards this many times.
    backwards(count: u64) CounterBackwards:
        format!("the counter was seen to run backwards {}", counted(count, "time", "times")),
        "do not trust this recording: the machine's counter is broken; report it to its vendor";
}

/// These CPUs are online and were left out, because the process may not use them.
pub fn left_out(list: &CpuList) -> Warning {
    let (it, was) = if list.len() == 1 { ("it", "it was") } else { ("them", "they were") };
    Warning::new(
        Code::CpusLeftOut,
        format!("{} online, but this process may not use {it}, so {was} not measured", cpus_are(list)),
        "run becalm outside of the cgroup or container that forbids it",
    )
}

warnings! {
    /// The kernel cannot be traced, for this reason.
    no_tracing(why: &str) NoTracing:
        format!("the kernel cannot be traced, so causes are unknown: {why}"),
        "run becalm without arguments to see what is missing and how to get it";

    /// The requests of activities cannot be traced, for this reason.
    no_causes(why: &str) NoCauses:
        format!("the causes of activities were not recorded: {why}"),
        "record as root, and without another program that uses the kernel's trace";

    /// The stored detours are from kernel events only, before a window with a running loop.
    no_loop() NoLoop:
        "no loop ran: these are the stretches when interrupts, softirqs and kernel threads had the CPU, by the kernel's events \
         alone; what programs took, and what no event shows, is not in them",
        "compare with other recordings of this kind only";

    /// This kernel lacks these events.
    missing_events(missing: &[String]) MissingEvents:
        format!("some kernel events cannot be recorded: {}", missing.join("; ")),
        "what they would show counts as edge or unseen";

    /// The kernel's functions have no names, for this reason; `advice` says how to get them.
    no_symbols(why: &str, advice: &str) NoSymbols:
        format!("work items and handlers go by address: {why}"),
        advice;

    /// The loops' memory could not be locked; `advice` says how to get the privilege.
    not_locked(advice: &str) MemoryNotLocked:
        "the loops' memory could not be locked, so a page fault of their own may show as a detour".to_owned(),
        advice;

    /// Every CPU is measured, so collecting disturbs the loops.
    no_free_cpu() NoFreeCpu:
        "all CPUs that becalm may use are measured, so its collector runs on them; its time is kept out of the figures and said apart"
            .to_owned(),
        "leave one CPU out of --cpus to keep the collector off the measured ones";

    /// No guard process could be started, for this reason.
    no_janitor(why: &str) NoJanitor:
        format!(
            "no guard process could be started ({why}): after a kill -9 the trace instance stays until the next becalm \
             removes it"
        ),
        "nothing to do unless becalm is killed";

    /// This many pages of the trace could not be decoded, the first of them on this CPU, for this reason.
    broken_pages(pages: u64, cpu: CpuId, why: &str) BrokenPages:
        format!(
            "{} of the kernel's trace could not be decoded, the first on CPU {cpu}: {why}",
            counted(pages, "page", "pages")
        ),
        "the sources of the detours around them are wrong; report this with the kernel's version";
}

/// The recording failed, for this reason. `what` is a recording or a run, `next` what to do once the cause is gone.
fn failed(what: &str, why: &str, next: &str) -> Warning {
    let message = format!("the {what} failed: {why}; what is shown is what was stored until then");
    Warning::new(Code::Failed, message, format!("remove the cause and {next}"))
}

/// A recording of detours failed, for this reason.
pub fn recording_failed(why: &str) -> Warning {
    failed("recording", why, "record again")
}

/// A run of work failed, for this reason.
pub fn work_failed(why: &str) -> Warning {
    failed("run", why, "resume it")
}

// Findings about a finished recording.

/// Another program changed the trace.
pub fn trace_changed(change: &TraceChange) -> Warning {
    let until = change.traced_until_ns.max(Nanos::ZERO);
    Warning::new(
        Code::TraceChanged,
        format!(
            "another program changed becalm's trace ({}): sources are known of the first {until:.3}, later time is not_traced",
            changed_files(&change.files)
        ),
        "record again without that program; trace-cmd reset -a resets the tracing instances of all programs, trace-cmd reset only its own",
    )
}

/// A run that is compared or checked was only traced for a part of its time.
pub fn trace_changed_in(run: &str, change: &TraceChange) -> Warning {
    Warning::new(
        Code::TraceChanged,
        format!(
            "another program changed the trace of {run} ({}), so its sources are not compared",
            changed_files(&change.files)
        ),
        "record it again without that program",
    )
}

/// The changed files of a trace, the first few by name.
pub fn changed_files(files: &[String]) -> String {
    const NAMED: usize = 3;
    let named = files.iter().take(NAMED).map(|file| printable(file)).collect::<Vec<_>>().join(", ");
    match files.len().saturating_sub(NAMED) {
        0 => named,
        more => format!("{named} and {}", counted(more as u64, "more file", "more files")),
    }
}

warnings! {
    /// This many kernel events were lost, so the sources of `incomplete` detours are incomplete.
    lost_events(lost: u64, incomplete: u64) LostEvents:
        format!(
            "{} lost, which leaves {} with incomplete sources",
            counted(lost, "kernel event was", "kernel events were"),
            counted(incomplete, "detour", "detours")
        ),
        "give the trace more room with --trace-buffer";

    /// Kernel events were lost in a recording that was killed before it could report them.
    lost_events_untold(lost: u64) LostEvents:
        format!(
            "the kernel lost {}; the detours that this touches are counted as incomplete",
            counted(lost, "trace event", "trace events")
        ),
        "record fewer CPUs at once, or leave one CPU unmeasured";

    /// Kernel events were lost in this many detours of one of two compared runs.
    lost_events_in(run: &str, detours: u64) LostEvents:
        format!("detours of {run} with dropped kernel events: {detours}; their sources may be wrong"),
        "record fewer CPUs at once, or leave one CPU unmeasured";

    /// The trace of a CPU lacks events without reporting a loss.
    unmatched_events(cpu: &CpuDoc) UnmatchedEvents:
        format!(
            "on CPU {} the kernel's trace lacks {} among {}, without admitting to a loss{}",
            cpu.cpu,
            counted(cpu.unmatched_events, "switch, entry or exit", "switches, entries or exits"),
            counted(cpu.events, "event", "events"),
            missing_switch(cpu)
        ),
        "time that may be one thread's or another's is booked as not_traced: missing_switch; all books still close";
}

/// The time that may belong to either of two threads because a switch is missing, and the threads.
fn missing_switch(cpu: &CpuDoc) -> String {
    if cpu.missing_switch_ns == Nanos::ZERO {
        return String::new();
    }
    let threads = cpu.missing_switch_threads.join("; ");
    format!("; for {:.3} it is not known who ran: {threads}", cpu.missing_switch_ns)
}

warnings! {
    /// The loop on a CPU ended before the others.
    cut_short(cpu: &CpuDoc) CutShort:
        format!("the loop on CPU {} ended early, after {:.3}", cpu.cpu, cpu.duration_ns),
        "its CPU went offline or left the cpuset, or its buffer was full (--buffer)";

    /// The loop on a CPU started late, and only ran for a part of the intended time.
    began_late(cpu: &CpuDoc, intended: Nanos) BeganLate:
        format!(
            "the loop on CPU {} measured for {:.3} of {}: others had its CPU when it was to start",
            cpu.cpu, cpu.duration_ns, intended
        ),
        "record for longer, let nothing else run there, or give the loop a real-time class (--sched fifo:50)";
}

/// Interrupts of one kind that are missing in the trace.
#[derive(Clone, Copy, Debug)]
pub struct Untraced<'a> {
    /// Their line in `/proc/interrupts`.
    pub line: &'a str,
    /// The kernel's description of the line.
    pub description: &'a str,
    /// The CPUs on which they occurred.
    pub cpus: &'a CpuList,
    /// The kernel's own count.
    pub counted: u64,
    /// The number of those in the trace.
    pub found: u64,
    /// Whether the functions that they run give their name.
    pub named: bool,
}

/// The trace lacks interrupts that the kernel counted.
pub fn untraced_interrupts(untraced: &Untraced<'_>) -> Warning {
    let Untraced { line, description, cpus: list, counted, found, named } = *untraced;
    let name =
        if description.is_empty() || description == line { line.to_owned() } else { format!("{line} ({description})") };
    Warning::new(
        Code::UntracedInterrupts,
        format!(
            "the kernel counted {} of {name} on {}, and its trace holds {found} of them",
            becalm_units::counted(counted, "interrupt", "interrupts"),
            cpus(list)
        ),
        match named {
            true => {
                "the kernel has no tracepoint for them: they are known by the timers that they ran, and their way in and out is in \
                 entry and exit; one that ran none is unseen"
            }
            false => {
                "the kernel has no tracepoint for them that becalm reads, or handles them in a thread: their time is in unseen, \
                 entry and between; do not take that for the hypervisor or the hardware"
            }
        },
    )
}

warnings! {
    /// The trace could not be compared with the kernel's own counts of interrupts or softirqs, for this reason.
    not_compared(what: &str, why: &str) NotCompared:
        format!("{}: {why}", are_not_compared(what)),
        "see what the file holds; container runtimes mask it by an empty one: mount proc at /proc, unmasked";

    /// The steal time of a guest could not be read, for this reason.
    steal_unknown(why: &str) StealUnknown:
        format!("the steal time is unknown: {why}"),
        "container runtimes mask the file: mount proc at /proc, unmasked; until then stolen time is reported as unseen";
}

fn are_not_compared(what: &str) -> String {
    format!("the {what} in the trace are not compared with the kernel's own counts")
}

/// Whether a warning says that `interrupts` or `softirqs` were not compared.
pub fn says_not_compared(warning: &Warning, what: &str) -> bool {
    warning.code.parse() == Ok(Code::NotCompared) && warning.message.starts_with(&are_not_compared(what))
}

/// There was no room for all short detours of a CPU, so some were only counted.
pub fn unstored(cpu: &CpuDoc) -> Warning {
    let noise = cpu.noise_ns().get().max(1) as f64;
    let below = cpu.unstored_lengths.iter().map(|class| class.below_ns).max().unwrap_or_default();
    Warning::new(
        Code::Unstored,
        format!(
            "on CPU {} {} shorter than {below} came faster than they could be stored, and were only counted: {:.1} % of its noise, {:.3}",
            cpu.cpu,
            counted(cpu.unstored, "detour", "detours"),
            cpu.unstored_ns.get() as f64 / noise * 100.0,
            cpu.unstored_ns,
        ),
        "noise ratios hold their time; counts, rates, lengths and sources do not: take a higher --threshold, a larger --buffer, or \
         leave one CPU unmeasured",
    )
}

/// Loops ended before the others in a recording that was killed before it could report it.
pub fn cut_short_untold(list: &[CpuId]) -> Warning {
    let loops = plural(list.len() as u64, "loop", "loops");
    let cpus = cpus(&list.iter().copied().collect());
    Warning::new(
        Code::CutShort,
        format!("the {loops} on {cpus} ended before the others"),
        "raise --threshold if a buffer was full; see whether a CPU went offline",
    )
}

warnings! {
    /// The loop on a CPU disturbed itself.
    loop_disturbed(cpu: &CpuDoc) LoopDisturbed:
        format!(
            "becalm's own loop on CPU {} took {} and slept {} while it measured",
            cpu.cpu,
            counted(cpu.faults, "page fault", "page faults"),
            counted(cpu.voluntary_switches, "time", "times")
        ),
        "lock its memory (run as root or raise ulimit -l); such detours show as kind fault";

    /// The trace of a CPU shows an interruption that the loop cannot have missed.
    clocks_disagree(cpu: &CpuDoc) ClocksDisagree:
        format!(
            "on CPU {} the trace shows an interrupt of {} outside of every detour, above the threshold of {}",
            cpu.cpu, cpu.below_threshold_max_ns, cpu.threshold_ns
        ),
        "the trace and the loop disagree; do not trust the sources of this CPU, and report it to becalm's developers";

    /// Real-time loops may be throttled for this part of each period, unless that is disabled.
    rt_throttling(time: Nanos, period: Nanos, lift: &str) RtThrottling:
        format!("RT throttling may keep real-time loops from their CPU for up to {time} of every {period}"),
        format!("to measure without it: {lift}, and put it back afterward");

    /// Waiting threads may take this part of each period from real-time loops, unless that is disabled.
    fair_server(time: Nanos, period: Nanos, lift: &str) FairServer:
        format!(
            "real-time loops may lose up to {time} of every {period} to waiting threads, by the fair server of their CPU"
        ),
        format!("to measure without that: {lift}, for each CPU, and put it back afterward");
}

/// The size of the cache that determines a body's memory is unknown; `assumed_bytes` is used instead.
pub fn cache_unknown(body: &str, assumed_bytes: u64) -> Warning {
    let kib = assumed_bytes >> 10;
    Warning::new(
        Code::CacheUnknown,
        format!(
            "the kernel does not tell the size of the cache that the body {body} is made for; {kib} KiB were assumed"
        ),
        "read the results as those of an array of that size",
    )
}

warnings! {
    /// One iteration of a body of work takes longer than the intended length of a sample.
    grain_too_short(body: &str, iteration: Nanos, cpu: CpuId, grain: Nanos) GrainTooShort:
        format!("one iteration of the body {body} takes {iteration:.3} on CPU {cpu}, longer than the grain of {grain}"),
        "nothing to do: a sample is one iteration";

    /// Another program measured the imported data.
    imported() Imported:
        "another program measured this; becalm knows the detours and nothing of the machine, the loop, or what was too \
         short to be kept",
        "compare it with a recording of becalm's own";
}

/// A trace that another program recorded has no events of these kinds of noise.
pub fn not_in_trace(kinds: &[String], are_recorded_told: bool) -> Warning {
    let unknown =
        if are_recorded_told { "" } else { "; the file does not say whether they were recorded and did not happen" };
    Warning::new(
        Code::MissingEvents,
        format!(
            "the trace has no events of {}, which are therefore in none of the detours{unknown}",
            kinds.join(", nor of ")
        ),
        "record with more events: irq, irq_vectors, nmi, sched:sched_switch and workqueue",
    )
}

warnings! {
    /// Threads were chosen by the number of their process, and the trace does not name processes.
    no_processes_in_trace() MissingEvents:
        "the file does not show which threads belong to a process: a number stands for one thread, and for those that it creates in the trace",
        "choose threads by name (--comm), or record with perf, whose perf.data names the processes";
}

/// Threads were observed in a trace without some events. Each text names events and the consequence.
pub fn not_in_books(lacking: &[String]) -> Warning {
    Warning::new(
        Code::MissingEvents,
        format!("events that the trace lacks: {}", lacking.join("; ")),
        "record with more events: irq, irq_vectors, nmi, workqueue, and all of sched and task",
    )
}

/// A trace has no switch from the idle tasks of these CPUs.
pub fn idle_not_in_trace(cpus: &CpuList) -> Warning {
    Warning::new(
        Code::MissingEvents,
        format!(
            "the trace of {} has no switch away from the idle task: when threads got the CPU from it is not known, and interrupts of the idle CPU may \
             be missing",
            becalm_units::cpus(cpus)
        ),
        "some kernels leave these switches out once the CPU was offline: record after the next boot",
    )
}

/// Threads of a trace that were taken for programs by their names alone, those with the most time first.
pub fn taken_for_programs(programs: &[(String, Nanos)]) -> Warning {
    const SHOWN: usize = 10;
    let shown: Vec<String> =
        programs.iter().take(SHOWN).map(|(name, time)| format!("{} ({time:.3})", printable(name))).collect();
    let others = match programs.len().saturating_sub(SHOWN) as u64 {
        0 => String::new(),
        others => format!(" and {}", counted(others, "other", "others")),
    };
    Warning::new(
        Code::TakenForPrograms,
        format!(
            "the file does not say which threads are the kernel's, so becalm decided by their names: {}{others} count as programs, whose time \
             is in none of the interruptions",
            shown.join(", ")
        ),
        "if one of these is a thread of the kernel, record with 'perf record -a', whose file tells them apart",
    )
}

warnings! {
    /// A trace that another program recorded lost this many events, in this many gaps with this total time.
    lost_in_trace(lost: u64, gaps: u64, time: Nanos, incomplete: Option<u64>) LostEvents:
        format!(
            "{} lost in {}: nothing is known about these {time:.3}{}",
            counted(lost, "kernel event was", "kernel events were"),
            counted(gaps, "gap", "gaps"),
            incomplete.map_or_else(String::new, |count| format!("; {} incomplete", counted(count, "detour is", "detours are")))
        ),
        "record with more room: trace-cmd record -b, perf record -m";

    /// The kernel counted losses in a trace that the trace itself does not mark.
    lost_untold_in_trace(lost: u64) LostEvents:
        format!(
            "the kernel counted {} that the trace lost, and the trace does not tell where",
            counted(lost, "event", "events")
        ),
        "record with more room: trace-cmd record -b";

    /// The clock of a trace differs from CPU to CPU.
    clock_of_each_cpu(clock: &str) ClocksDiffer:
        format!(
            "the trace is stamped by the clock '{clock}'; each CPU has its own, and they may be milliseconds apart"
        ),
        "simultaneous detours of several CPUs cannot be recognized; record with a common clock: trace-cmd record -C mono";

    /// The stamps of a trace have whole microseconds.
    coarse_stamps() CoarseStamps:
        "the times of the trace are whole microseconds: a detour is right to one of them, and what is shorter has a nanosecond or one",
        "print the trace with nanoseconds: perf script --ns";

    /// The kernel reports that the figures of its noise tracer contradict each other.
    tracer_tainted() TracerTainted:
        "the kernel marked its trace as tainted: figures of the tracer contradicted each other, perhaps because a clock went backward".to_owned(),
        "trace again, and do not trust this one";
}

/// In this many periods, the kernel's noise tracer counted more than its trace contains: the kind, the count, and the number in the trace.
pub fn tracer_saw_more(periods: u64, lacking: &[(&str, u64, u64)]) -> Warning {
    let clause = |(what, counted, found): &(&str, u64, u64)| format!("{counted} {what} ({found} in the trace)");
    Warning::new(
        Code::MissingEvents,
        format!(
            "in {} the tracer counted more than its trace holds: {}",
            counted(periods, "period", "periods"),
            lacking.iter().map(clause).collect::<Vec<_>>().join("; ")
        ),
        "enable all of its events, and give the trace more room: echo 1 > events/osnoise/enable, buffer_size_kb in /sys/kernel/tracing",
    )
}

warnings! {
    /// The loops of the kernel's noise tracer only ran for a part of the time.
    tracer_paused(runtime: Nanos, whole: Nanos) TracerPaused:
        format!(
            "the tracer's loops say that they ran for {runtime:.3} of {whole:.3} of CPU time, and paused or had not finished for the rest; \
             ratios and rates are of all of that time, and so too low"
        ),
        "trace with runtime and period alike: rtla osnoise top -r 1000000 -p 1000000";

    /// This many time stamps of a trace were earlier than the previous one.
    stamps_backwards(count: u64) CounterBackwards:
        format!(
            "{} moved behind it",
            counted(
                count,
                "event of the trace is stamped before the one in front of it, and was",
                "events of the trace are stamped before one in front of them, and were"
            )
        ),
        "do not trust lengths around them; see whether the trace was sorted by time, and its clock";

    /// A trace contains other buffers besides the one that was read.
    buffers_left_out(names: &[String]) BuffersLeftOut:
        format!("the file holds further buffers, which are left out: {}", names.join(", ")),
        "record without -B, or each buffer into a file of its own";

    /// Imported samples have no start times.
    imported_end_to_end() ImportedEndToEnd:
        "the file does not say when samples started: they are placed end to end, as if no time had passed between them",
        "take periods and times for the least that they can be";

    /// Imported statistics only cover the first part of the measurement.
    imported_store_full(series: &str, after: Nanos) ImportedStoreFull:
        format!(
            "the store of {series} was full {after} after its start: what came later is counted, and in no quantile"
        ),
        "measure again for a shorter time, or with a higher threshold";

    /// An imported file ends before its program's last output: `what` is unknown.
    imported_cut(what: &str) ImportedCut:
        format!("the file ends too early: {what}"),
        "import the whole file: the longest and the latest values may be missing from this one";

    /// Nothing in an imported file shows whether it is complete.
    imported_end_unknown() ImportedEndUnknown:
        "nothing in a file of this format marks its end: if it was cut after a line, the rest is missing, and nothing shows that",
        "make sure that the program that wrote it ended by itself";

    /// Lines of an imported file were left out.
    imported_lines_left_out(count: u64, first: usize) ImportedLinesLeftOut:
        format!(
            "{} left out: becalm does not know lines of this form (the first is line {first})",
            counted(count, "line was", "lines were")
        ),
        "check that they hold no values";
}

/// An imported histogram does not specify the width of its buckets.
pub fn imported_width_unknown(at_most: Option<i64>) -> Warning {
    let known = at_most.map_or_else(
        || "no quantile can be computed".to_owned(),
        |ns| format!("they are taken to be as wide as they can be, {}", Nanos::new(ns)),
    );
    Warning::new(
        Code::ImportedWidthUnknown,
        format!("the file does not say how wide its buckets are, and its rows do not show it: {known}"),
        "measure for longer, or read the longest value",
    )
}

warnings! {
    /// The shortest or the longest of these series is not within the imported histogram.
    imported_rows_missing(series: &[&str]) ImportedRowsMissing:
        format!(
            "the rows of {} do not reach from its shortest to its longest value: rows are missing",
            series.join(", ")
        ),
        "import all rows: quantiles are of those that are there";

    /// Some imported values were not measured.
    imported_values_put_in() ImportedValuesPutIn:
        "jHiccup puts in values for what its thread slept through: counts are no counts of events, and sums no sums of time",
        "read quantiles and the longest";
}

// Findings of a reader of a run.

warnings! {
    /// A displayed run did not end.
    not_ended() NotEnded:
        "the recording did not end: it still runs, or was killed; what is shown is what was stored, and the observed time ends \
         where that does",
        "record again for exact noise ratios";

    /// A run whose noise is used did not end on this node.
    not_ended_on(node: &str) NotEnded:
        format!("the recording of node {node} did not end: it is used up to its last detour"),
        "record again for a prediction that matters";

    /// The summary form of a recording, which lacks many details.
    summary_form() SummaryForm:
        "this is the summary form of a recording: quantiles are rounded by up to 0.8 %, they and the cost at scale have no intervals, \
         and there is nothing of periods, the spectrum, the anatomy of an interrupt, and single detours",
        "record without --summary where these matter";

    /// The summary form was made from a recording with activities that did not add up to detours.
    summary_of_open_books() BooksOpen:
        "the activities of some detours did not add up to their length when the summary form was made",
        "becalm report of the full recording says which; do not rely on the sources";
}

/// A prediction uses the delays of a summary form, for `drawn` of the `recorded` time.
pub fn drawn_of_summary(drawn: Nanos, recorded: Nanos) -> Warning {
    let less = if drawn < recorded { format!(", {drawn:.1} of the {recorded:.1} recorded") } else { String::new() };
    Warning::new(
        Code::DrawnOfSummary,
        format!(
            "this is the summary form of a recording: the prediction draws{less} from how late the noise made work, in a new order, so it \
             has no interval. Of the noise that came to several CPUs at once, only the longest does so again"
        ),
        "predict from a full recording where that matters",
    )
}

/// The loops started later than requested.
pub fn late_start(late: Nanos) -> Warning {
    Warning::new(
        Code::LateStart,
        format!("the loops started {late:.3} after the given instant: setting up took longer"),
        "give a later instant with --at, or start becalm earlier",
    )
}

/// The wall clock is not synchronized, or not accurately enough for its use.
pub fn wall_clock_off(error: Option<Nanos>) -> Warning {
    let known = match error {
        Some(error) => format!("may be off by {error:.1}"),
        None => "is not synchronized by anything that the kernel knows".to_owned(),
    };
    Warning::new(
        Code::WallClockOff,
        format!(
            "the wall clock of this node {known}: its recording may have started at another instant than those of other nodes"
        ),
        "let chronyd, ntpd or ptp4l keep the clocks of all nodes",
    )
}

warnings! {
    /// One of two compared runs did not end.
    not_ended_in(run: &str) NotEnded:
        format!("{run} did not end: its time is taken to end with the last stored detour"),
        "record again for exact rates";

    /// The CPUs of a node were watched for different times: the longest for `longest`, all together for `common`.
    cut_to_common(node: &str, longest: Nanos, common: Nanos) CutToCommon:
        format!(
            "node {node}: its CPUs were watched for up to {longest}, but all of them together only for {common}, which is \
             used"
        ),
        "choose CPUs that were watched to the end with --cpus";

    /// Of `all` observed threads, these needed a CPU much more seldom than the busiest one.
    threads_left_out(left_out: u64, all: u64) ThreadsLeftOut:
        format!(
            "{} of {} observed threads could make progress for less than half as long as the busiest one, and are left out: \
             ranks compute all the time",
            Count::new(left_out),
            Count::new(all)
        ),
        "observe the ranks alone, with --comm or --pid";

    /// A phase of this grain takes more CPU time than was recorded, from `ranks` ranks on.
    short_recording(ranks: u64, grain: Nanos, recorded: Nanos) ShortRecording:
        format!(
            "from {} ranks on, a phase of {grain} takes more CPU time than the {recorded:.1} that were recorded: the longest \
             detours decide, and a longer recording may hold longer ones",
            Count::new(ranks)
        ),
        "record for longer, or on more CPUs or nodes";

    /// A phase needs more of a formula's noise than was drawn.
    short_formula(ranks: u64, grain: Nanos, drawn: Nanos) ShortFormula:
        format!(
            "from {} ranks on, a phase of {grain} takes more than a tenth of the {drawn:.1} for which detours of the formula are drawn: \
             longer ones, or more of them at once, are too seldom to be among them, and the slowdown is at least this",
            Count::new(ranks)
        ),
        "ask for fewer ranks or a shorter grain; for detours of one length becalm predict --law has closed forms";

    /// Computing the responsible sources for a page would take too long.
    no_blame(run: &Path) NoBlame:
        "which sources are to blame would take too much time or memory to find out here",
        format!("becalm predict {} --ranks 16Ki --grain 1ms --blame finds it out", run.display());
}

/// The tables contain other detours of a CPU than its loop counted.
pub fn rows_differ(cpu: &CpuDoc, rows: u64, rows_sum: Nanos) -> Warning {
    let CpuDoc { cpu, detours: kept, total_ns: kept_sum, .. } = cpu;
    Warning::new(
        Code::RowsDiffer,
        format!(
            "the tables hold {} of CPU {cpu}, {rows_sum} in all, but its loop counted {kept}, {kept_sum} in all",
            counted(rows, "detour", "detours")
        ),
        "copy the whole bundle; if it is whole, this is a fault of the program that wrote it",
    )
}

/// The tables contain detours of CPUs that the document does not list.
pub fn rows_unlisted(list: &CpuList) -> Warning {
    Warning::new(
        Code::RowsUnlisted,
        format!("the tables hold detours of {}, which the run's document does not list", cpus(list)),
        "they are left out here; this is a fault of the program that wrote the bundle",
    )
}

/// The activities of a detour of a CPU do not add up to its duration; `None` if there is no such detour. Both are in nanoseconds, because the
/// difference may be that small.
pub fn books_open(cpu: CpuId, detour: u64, duration_ns: Option<i64>, activities_ns: i64) -> Warning {
    let message = match duration_ns {
        Some(ns) => format!(
            "the books do not close: detour {detour} of CPU {cpu} lasts {ns} ns, but its activities add up to \
             {activities_ns} ns"
        ),
        None => format!(
            "the books do not close: activities of {activities_ns} ns name detour {detour} of CPU {cpu}, which is not there"
        ),
    };
    let advice = "do not believe the sources; this is a fault of the program that wrote the bundle, please report it";
    Warning::new(Code::BooksOpen, message, advice)
}

// Findings of the comparison of two runs, A and B.

warnings! {
    /// The CPUs of both runs are not the same.
    cpus_differ(a: &str, b: &str) CpusDiffer:
        format!("the CPUs of A ({a}) and of B ({b}) are not the same: they are compared as a whole, not one by one"),
        "name the same CPUs of both to see them one by one";

    /// Only one of the runs, `run`, measured these CPUs.
    cpus_left_out_of(run: &str, cpus: &str) CpusLeftOut:
        format!("{run} measured {cpus}, and not every run did: the comparison leaves that out"),
        "--cpus-a and --cpus-b compare different CPUs as a whole";

    /// The compared runs have this many CPUs over all nodes.
    cpus_together(cpus: usize) CpusTogether:
        format!("the nodes have {cpus} CPUs: each node is compared, and its CPUs only together"),
        "--node-a and --node-b compare the CPUs of one node";

    /// At least one of the compared runs is in summary form.
    compared_in_summary_form() SummaryForm:
        "the runs are compared in summary form, because not all of them are full recordings: quantiles are rounded by up to 0.8 %, \
         and quantiles and sources have no interval within a run, because only their sums are stored. Sums also take off detours \
         below the common threshold",
        "compare several runs a side, or record without --summary where these matter";

    /// A node of a compared run could not be read.
    node_left_out_of(run: &str, node: &str, why: &str) NodeLeftOut:
        format!("{node} of {run} is left out: {why}"),
        "record that node again";

    /// This many detours of a run, with this percentage of its noise, are shorter than the threshold of both runs.
    below_common_threshold(run: &str, dropped: u64, all: u64, percent: &str, shortest: Nanos) BelowCommonThreshold:
        format!(
            "{dropped} of {} of {run}, {percent}% of its noise, {} shorter than {shortest}, and not all loops kept such \
             ones; {} left out",
            counted(all, "detour", "detours"),
            plural(dropped, "is", "are"),
            plural(dropped, "it is", "they are")
        ),
        "record both with the same --threshold";

    /// The shortest steps of both runs are far apart.
    t_min_differs(a: Nanos, b: Nanos) TMinDiffers:
        format!("the shortest step, t_min, is {a} in A and {b} in B: the loops do not resolve alike"),
        "look at differences of detours near t_min with care";

    /// The loops of both runs ran in different scheduling classes.
    sched_differs(a: &str, b: &str) SchedDiffers:
        format!("the loops ran in different classes: {a} in A, {b} in B"),
        "record both with the same --sched";

    /// These runs were recorded without sources.
    sources_unknown(runs: &[&str]) SourcesUnknown:
        format!(
            "{} {} recorded without the kernel's trace: sources are not compared",
            runs.join(" and "),
            plural(runs.len() as u64, "was", "were")
        ),
        "record both as root";

    /// Only one of the runs, `run`, could not see these events.
    seen_differently(run: &str, missing: &[String]) SeenDifferently:
        format!("only {run} could not see all sources: {}", missing.join("; ")),
        "compare sources of the same kernel";
}
