//! The kernel's events in traces of Perfetto, which Android and `tracebox` record: bundles of a CPU, whose switches and wake-ups may be in columns.
//!
//! Not read: the events that say nothing of who had a CPU, and the trace's other parts, except for the names of threads, the kernel and the clocks.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use becalm_explain::perfetto::clocks::{BOOTTIME, MONOTONIC, REALTIME, TraceClocks};
use becalm_explain::perfetto::messages::{
    CompactSched, Expiry, Ftrace, FtraceEvent, FtraceEventBundle, Generic, ProcessTree, SchedWakeup, TracePacket,
};
use becalm_explain::perfetto::{each_packet, looks_so, text};
use becalm_measure::accounted_time;
use becalm_model::carried::Carrier;
use becalm_model::node::{ClockPair, Warning};
use becalm_model::{ThreadState, warning};
use becalm_units::{CpuId, Nanos};

use super::kernel_text::{CLONE_THREAD, TextEvent, TextHappening, VectorDetail};
use super::lines::Progress;
use super::{ReadError, Source};

/// Takes what a trace tells.
pub trait PerfettoTaker {
    /// An event; those of a CPU come in the order of its bundles, and by time within one.
    fn event(&mut self, event: &TextEvent<'_>);

    /// A thread, its process, and its name if that is known.
    fn thread(&mut self, tid: i32, process: i32, name: &str);

    /// A process, and whether it is a thread of the kernel.
    fn process(&mut self, pid: i32, is_kernel: bool);
}

/// The thread of the kernel that creates the others.
const KTHREADD: i32 = 2;

/// Facts that a trace holds besides its events.
#[derive(Clone, Debug, Default)]
pub struct PerfettoFacts {
    /// The name of the clock of the events.
    pub clock: &'static str,
    /// The release of the kernel.
    pub kernel: Option<String>,
    /// The architecture of the machine.
    pub architecture: Option<String>,
    /// Readings of the kernel's clocks, with the time of the events then as the instant.
    pub readings: Vec<ClockPair>,
    /// The events that becalm decodes, by system and name.
    pub seen: BTreeSet<(&'static str, String)>,
    /// Faults of the trace.
    pub warnings: Vec<Warning>,
}

/// True if a file is a trace of Perfetto.
pub fn is_perfetto(source: Source<'_>) -> bool {
    looks_so(source.bytes)
}

/// Reads a trace. Fails if it is damaged; one that only lacks its end is read up to there, with a warning.
pub fn read(
    source: Source<'_>,
    told: Progress<'_>,
    taker: &mut impl PerfettoTaker,
) -> Result<PerfettoFacts, ReadError> {
    let mut trace = PerfettoTrace {
        taker,
        facts: PerfettoFacts::default(),
        clocks: TraceClocks::default(),
        clock: None,
        from_boot: None,
        last: HashMap::new(),
        symbols: HashMap::new(),
    };
    let mut warnings = Vec::new();
    match each_packet(source.bytes, &mut |packet| trace.take(packet)) {
        Err(error) if error.is_cut && error.byte > 0 => {
            warnings.push(warning::imported_cut("its last packet is incomplete"))
        }
        outcome => outcome.map_err(|error| ReadError::byte(error.byte, error.why))?,
    }
    told(source.bytes.len() as u64);
    let mut facts = trace.facts();
    facts.warnings.extend(warnings);
    Ok(facts)
}

/// An event of a bundle before it is passed.
struct Timed<'a> {
    time: u64,
    thread: Option<i32>,
    what: TextHappening<'a>,
}

struct PerfettoTrace<'t, T> {
    taker: &'t mut T,
    facts: PerfettoFacts,
    clocks: TraceClocks,
    /// The number of the events' clock.
    clock: Option<u32>,
    /// The time of the events' clock minus that of boot time.
    from_boot: Option<i64>,
    /// The thread on each CPU after its last switch in columns.
    last: HashMap<u32, i32>,
    /// Names of functions, by sequence and number. Unknown ones have the number as text.
    symbols: HashMap<(u32, u64), String>,
}

impl<T: PerfettoTaker> PerfettoTrace<'_, T> {
    fn take(&mut self, packet: &TracePacket) -> Result<(), String> {
        self.clocks.time(packet)?;
        let sequence = packet.trusted_packet_sequence_id;
        if packet.clears_state() {
            self.symbols.retain(|(known, _), _| *known != sequence);
        }
        for symbol in packet.interned_data.iter().flat_map(|data| &data.kernel_symbols) {
            self.symbols.insert((sequence, symbol.iid), text(&symbol.name).to_owned());
        }
        if let Some(name) = packet.system_info.as_ref().and_then(|system| system.utsname.as_ref()) {
            let word = |bytes: &[u8]| Some(text(bytes).to_owned()).filter(|text| !text.is_empty());
            (self.facts.kernel, self.facts.architecture) = (word(&name.release), word(&name.machine));
        }
        if let Some(tree) = &packet.process_tree {
            self.tree(tree);
        }
        if let Some(thread) = packet.track_descriptor.as_ref().and_then(|track| track.thread.as_ref()) {
            let tid = i32::try_from(thread.tid).unwrap_or_default();
            self.taker.thread(tid, thread.pid, text(&thread.thread_name));
        }
        packet.ftrace_events.as_ref().map_or(Ok(()), |bundle| self.bundle(sequence, bundle))
    }

    fn tree(&mut self, tree: &ProcessTree) {
        for process in &tree.processes {
            self.taker.process(process.pid, [process.pid, process.ppid].contains(&KTHREADD));
        }
        for thread in &tree.threads {
            self.taker.thread(thread.tid, thread.tgid, text(&thread.name));
        }
    }

    fn bundle(&mut self, sequence: u32, bundle: &FtraceEventBundle) -> Result<(), String> {
        let known = *self.clock.get_or_insert(bundle.ftrace_clock);
        if known != bundle.ftrace_clock {
            return Err("its events are on more than one clock".to_owned());
        }
        if bundle.ftrace_timestamp != 0 && bundle.boot_timestamp != 0 {
            self.from_boot = bundle.ftrace_timestamp.checked_sub(bundle.boot_timestamp);
        }
        let number = bundle.cpu.ok_or("a bundle of events does not name its CPU")?;
        let cpu = Some(number).filter(|cpu| *cpu < CpuId::LIMIT).map(CpuId::new);
        let cpu = cpu.ok_or_else(|| format!("the CPU {number} is above the limit of {}", CpuId::LIMIT - 1))?;
        if bundle.lost_events {
            self.last.remove(&number);
        }
        for function in bundle.event.iter().filter_map(function_of) {
            self.symbols.entry((sequence, function)).or_insert_with(|| format!("{function:#x}"));
        }
        let symbol = |function: u64| self.symbols.get(&(sequence, function)).map_or("", String::as_str);
        let mut events: Vec<Timed<'_>> = Vec::new();
        for event in &bundle.event {
            let Some((system, name, what)) = happening(event, &symbol) else { continue };
            if !self.facts.seen.iter().any(|(known, seen)| *known == system && seen == name) {
                self.facts.seen.insert((system, name.to_owned()));
            }
            let thread = i32::try_from(event.pid).map_err(|_| format!("{} is no number of a thread", event.pid))?;
            events.push(Timed { time: event.timestamp, thread: Some(thread), what });
        }
        if let Some(columns) = &bundle.compact_sched {
            let before = self.last.get(&number).copied();
            if let Some(last) = columns_to_events(columns, before, &mut events)? {
                self.last.insert(number, last);
            }
            for (name, count) in
                [("sched_switch", &columns.switch_timestamp), ("sched_waking", &columns.waking_timestamp)]
            {
                if !count.is_empty() {
                    self.facts.seen.insert(("sched", name.to_owned()));
                }
            }
        }
        events.sort_by_key(|event| event.time);
        if let Some(first) = events.first().filter(|_| bundle.lost_events) {
            let lost = Timed { time: first.time, thread: first.thread, what: TextHappening::Lost { count: None } };
            events.insert(0, lost);
        }
        for Timed { time, thread, what } in events {
            let time = i64::try_from(time).ok().filter(|time| *time <= i64::MAX / 4);
            let time = Nanos::new(time.ok_or("an event is later than a trace can be")?);
            self.taker.event(&TextEvent { cpu, time, thread, process: None, name: "", what });
        }
        Ok(())
    }

    /// The facts, once all packets were read.
    fn facts(self) -> PerfettoFacts {
        const CLOCKS: [&str; 5] = ["boot", "unknown", "global", "local", "mono_raw"];
        let clock = self.clock.unwrap_or_default();
        let from_boot = if clock == 0 { Some(0) } else { self.from_boot };
        let reading = |at: &BTreeMap<u32, u64>| {
            let [monotonic_ns, realtime_ns, boottime_ns] =
                [MONOTONIC, REALTIME, BOOTTIME].map(|clock| at.get(&clock).copied());
            let boottime_ns = boottime_ns?;
            let at_ns = Nanos::new(i64::try_from(boottime_ns).ok()?.checked_add(from_boot?)?);
            // The trace does not say how long its readings took.
            Some(ClockPair {
                at_ns,
                monotonic_ns: monotonic_ns?,
                realtime_ns: realtime_ns?,
                boottime_ns,
                width_ns: Nanos::ZERO,
            })
        };
        let readings = self.clocks.snapshots().iter().filter_map(reading).collect();
        PerfettoFacts { clock: CLOCKS.get(clock as usize).copied().unwrap_or("unknown"), readings, ..self.facts }
    }
}

/// The number of the function that an event names.
fn function_of(event: &FtraceEvent) -> Option<u64> {
    match event.event.as_ref()? {
        Ftrace::WorkqueueExecuteStart(work) | Ftrace::WorkqueueExecuteEnd(work) => Some(work.function),
        Ftrace::HrtimerExpireEntry(Expiry { function }) | Ftrace::TimerExpireEntry(Expiry { function }) => {
            Some(*function)
        }
        _ => None,
    }
}

/// The system, the name and the meaning of an event that shows who had a CPU.
fn happening<'a>(
    event: &'a FtraceEvent,
    symbol: &impl Fn(u64) -> &'a str,
) -> Option<(&'static str, &'a str, TextHappening<'a>)> {
    let woken = |event: &'a SchedWakeup, is_new| TextHappening::Woken {
        thread: (event.pid, text(&event.comm)),
        cpu: u32::try_from(event.target_cpu).unwrap_or_default(),
        is_new,
    };
    let vector = |number: i32| VectorDetail::Number(number);
    Some(match event.event.as_ref()? {
        Ftrace::Print(_) => return None,
        Ftrace::SchedSwitch(switch) => {
            let what = TextHappening::Switch {
                prev: (switch.prev_pid, text(&switch.prev_comm)),
                prev_state: state(switch.prev_state),
                next: (switch.next_pid, text(&switch.next_comm)),
            };
            ("sched", "sched_switch", what)
        }
        Ftrace::SchedWaking(event) => {
            ("sched", "sched_waking", TextHappening::Waking { thread: (event.pid, text(&event.comm)) })
        }
        Ftrace::SchedWakeup(event) => ("sched", "sched_wakeup", woken(event, false)),
        Ftrace::SchedWakeupNew(event) => ("sched", "sched_wakeup_new", woken(event, true)),
        Ftrace::SchedMigrateTask(event) => {
            let what =
                TextHappening::Moved { thread: event.pid, cpu: u32::try_from(event.dest_cpu).unwrap_or_default() };
            ("sched", "sched_migrate_task", what)
        }
        Ftrace::SchedProcessFork(event) => {
            let what = TextHappening::Created { thread: (event.child_pid, text(&event.child_comm)), in_process: None };
            ("sched", "sched_process_fork", what)
        }
        Ftrace::TaskNewtask(event) => {
            let in_process = Some(event.clone_flags & CLONE_THREAD != 0);
            ("task", "task_newtask", TextHappening::Created { thread: (event.pid, text(&event.comm)), in_process })
        }
        Ftrace::TaskRename(event) => {
            ("task", "task_rename", TextHappening::Renamed { thread: (event.pid, text(&event.newcomm)) })
        }
        Ftrace::IrqHandlerEntry(event) => {
            ("irq", "irq_handler_entry", TextHappening::IrqEntry { irq: event.irq, name: text(&event.name) })
        }
        Ftrace::IrqHandlerExit(event) => ("irq", "irq_handler_exit", TextHappening::IrqExit { irq: event.irq }),
        Ftrace::SoftirqEntry(event) => ("irq", "softirq_entry", TextHappening::SoftirqEntry { vec: event.vec }),
        Ftrace::SoftirqExit(event) => ("irq", "softirq_exit", TextHappening::SoftirqExit { vec: event.vec }),
        Ftrace::IpiEntry(event) => {
            let detail = VectorDetail::Reason(text(&event.reason));
            ("ipi", "ipi_entry", TextHappening::VectorEntry { name: "ipi", detail })
        }
        Ftrace::IpiExit(event) => {
            let detail = VectorDetail::Reason(text(&event.reason));
            ("ipi", "ipi_exit", TextHappening::VectorExit { name: "ipi", detail })
        }
        Ftrace::LocalTimerEntry(event) => {
            let what = TextHappening::VectorEntry { name: "local_timer", detail: vector(event.vector) };
            ("irq_vectors", "local_timer_entry", what)
        }
        Ftrace::LocalTimerExit(event) => {
            let what = TextHappening::VectorExit { name: "local_timer", detail: vector(event.vector) };
            ("irq_vectors", "local_timer_exit", what)
        }
        Ftrace::WorkqueueExecuteStart(work) => {
            let what = TextHappening::WorkStart { work: work.work, function: symbol(work.function) };
            ("workqueue", "workqueue_execute_start", what)
        }
        Ftrace::WorkqueueExecuteEnd(work) => {
            let what = TextHappening::WorkEnd { work: work.work, function: Some(symbol(work.function)) };
            ("workqueue", "workqueue_execute_end", what)
        }
        Ftrace::HrtimerExpireEntry(event) => {
            let what = TextHappening::FunctionEntry { carrier: Carrier::Timer, function: symbol(event.function) };
            ("timer", "hrtimer_expire_entry", what)
        }
        Ftrace::HrtimerExpireExit(_) => {
            ("timer", "hrtimer_expire_exit", TextHappening::FunctionExit { carrier: Carrier::Timer })
        }
        Ftrace::TimerExpireEntry(event) => {
            let what = TextHappening::FunctionEntry { carrier: Carrier::Wheel, function: symbol(event.function) };
            ("timer", "timer_expire_entry", what)
        }
        Ftrace::Generic(event) => generic(event)?,
    })
}

/// An event for which Perfetto has no message: those of other interrupts, and accounted run time.
fn generic(event: &Generic) -> Option<(&'static str, &str, TextHappening<'_>)> {
    let name = text(&event.event_name);
    let field = |wanted: &str| {
        let field = event.field.iter().find(|field| text(&field.name) == wanted)?;
        field.int_value.or_else(|| field.uint_value.and_then(|value| i64::try_from(value).ok()))
    };
    if name == "sched_stat_runtime" {
        let thread = i32::try_from(field("pid")?).ok()?;
        let ran = accounted_time(u64::try_from(field("runtime")?).ok()?);
        return Some(("sched", name, TextHappening::Accounted { thread, ran }));
    }
    let detail = VectorDetail::Number(i32::try_from(field("vector")?).ok()?);
    let what = match (name.strip_suffix("_entry"), name.strip_suffix("_exit")) {
        (Some(name), _) => TextHappening::VectorEntry { name, detail },
        (_, Some(name)) => TextHappening::VectorExit { name, detail },
        _ => return None,
    };
    Some(("irq_vectors", name, what))
}

/// The state without the bits that only say how it is printed.
fn state(bits: i64) -> ThreadState {
    ThreadState(bits as u8)
}

/// Appends the switches and wake-ups of columns; `before` is the thread on the CPU. Returns the thread on the CPU after them. Fails if the columns
/// differ in length. A first switch from an unknown thread is left out.
fn columns_to_events<'a>(
    columns: &'a CompactSched,
    mut before: Option<i32>,
    into: &mut Vec<Timed<'a>>,
) -> Result<Option<i32>, String> {
    let CompactSched { switch_timestamp, switch_prev_state, switch_next_pid, switch_next_comm_index, .. } = columns;
    let lengths = [switch_prev_state.len(), switch_next_pid.len(), switch_next_comm_index.len()];
    let woken = [columns.waking_pid.len(), columns.waking_comm_index.len()];
    if lengths.iter().any(|length| *length != switch_timestamp.len())
        || woken.iter().any(|length| *length != columns.waking_timestamp.len())
    {
        return Err("the columns of its switches and wake-ups differ in length".to_owned());
    }
    let name = |index: u32| {
        let name = columns.intern_table.get(index as usize);
        name.map(|name| text(name)).ok_or_else(|| format!("no name has the number {index}"))
    };
    let too_late = || "a switch is later than a trace can be".to_owned();
    let mut time = 0_u64;
    for (index, step) in switch_timestamp.iter().enumerate() {
        time = time.checked_add(*step).ok_or_else(too_late)?;
        let (next, comm) = (switch_next_pid[index], name(switch_next_comm_index[index])?);
        if let Some(prev) = before.replace(next) {
            let what = TextHappening::Switch {
                // Its name may have changed since it got the CPU.
                prev: (prev, ""),
                prev_state: state(switch_prev_state[index]),
                next: (next, comm),
            };
            into.push(Timed { time, thread: Some(prev), what });
        }
    }
    time = 0;
    for (index, step) in columns.waking_timestamp.iter().enumerate() {
        time = time.checked_add(*step).ok_or_else(too_late)?;
        let thread = (columns.waking_pid[index], name(columns.waking_comm_index[index])?);
        into.push(Timed { time, thread: None, what: TextHappening::Waking { thread } });
    }
    Ok(before)
}
