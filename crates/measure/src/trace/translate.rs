//! Conversion of raw kernel events to named ones on the run's axis.

use std::collections::BTreeMap;
use std::sync::Arc;

use becalm_linux::ftrace::{Callback, Decoder, OwnWork, RawEvent, RawHappening, VectorName};
use becalm_linux::procfs::kallsyms::Kallsyms;
use becalm_linux::syscalls::syscall_name;
use becalm_model::carried::Carrier;
use becalm_model::{Event, Happening, Label, Labels, Life, Pid, ThreadState, carried, root};
use becalm_units::{CpuId, Named, Nanos, NumberMap};

use super::names::Names;

/// The kernel's softirqs in the order of their numbers (`include/linux/interrupt.h`), unchanged since 2.6.
pub const SOFTIRQS: [&str; 10] =
    ["hi", "timer", "net_tx", "net_rx", "block", "irq_poll", "tasklet", "sched", "hrtimer", "rcu"];

/// A device interrupt, by the last handler that ran: a shared one has several.
#[derive(Debug)]
struct Irq {
    name: Box<[u8]>,
    source: Label,
    detail: Label,
}

/// The name of a timer interrupt without events, unless the trace shows another one.
pub const UNTRACED_TIMER: &str = "untraced_timer";

/// The source of a function and its fixed root; both are empty if the function has no name.
#[must_use]
pub fn function_source(carrier: Carrier, function: Option<&str>, labels: &mut Labels) -> (Label, Label) {
    let Some(function) = function else { return (Label::EMPTY, Label::EMPTY) };
    let source = carried::source(carrier, function);
    let root = carried::root(&source).map(|(kind, source)| labels.intern(&root::text(kind, source)));
    (labels.intern(&source), root.unwrap_or(Label::EMPTY))
}

/// The run time in an account, at most a minute: sums of a damaged file's accounts fit.
#[must_use]
pub fn accounted_time(nanos: u64) -> Nanos {
    Nanos::new(i64::try_from(nanos).unwrap_or(i64::MAX)).min(Nanos::from_secs(60))
}

const fn carrier(callback: Callback) -> Carrier {
    match callback {
        Callback::HighResolutionTimer => Carrier::Timer,
        Callback::Call => Carrier::Call,
        Callback::Timer => Carrier::Wheel,
        Callback::Tasklet => Carrier::Tasklet,
    }
}

/// Names raw events. Caches names, so an event costs a lookup and no formatting.
#[derive(Debug)]
pub struct Translator {
    symbols: Option<Arc<Kallsyms>>,
    vectors: NumberMap<VectorName, (Label, Option<Label>)>,
    irqs: NumberMap<i32, Irq>,
    softirqs: [Label; SOFTIRQS.len()],
    works: NumberMap<u64, Label>,
    nmis: NumberMap<u64, Label>,
    ips: NumberMap<u64, Label>,
    sites: NumberMap<u64, Label>,
    ipis: NumberMap<u64, Label>,
    functions: NumberMap<(Callback, u64), (Label, Label)>,
    calls: NumberMap<i64, Label>,
    own_work: NumberMap<OwnWork, Label>,
    untraced_timer: Label,
    ipi: Label,
    unknown_irq: Label,
    user_fault: Label,
    kernel_fault: Label,
}

impl Translator {
    /// For events of this decoder. `symbols` are the names of kernel functions, if the kernel shows them; `strings` are the kernel's own by address
    /// (`printk_formats`), which name the reasons of Arm's inter-processor interrupts. `untraced_timer` names the CPUs' timer interrupt if it has no
    /// event of its own, only those of the functions that it runs.
    #[must_use]
    pub fn new(
        decoder: &Decoder,
        symbols: Option<Arc<Kallsyms>>,
        strings: &BTreeMap<u64, String>,
        untraced_timer: &str,
        labels: &mut Labels,
    ) -> Self {
        Self {
            symbols,
            vectors: decoder.vectors().map(|(name, text)| (name, (labels.intern(text), None))).collect(),
            irqs: NumberMap::default(),
            softirqs: SOFTIRQS.map(|name| labels.intern(name)),
            works: NumberMap::default(),
            nmis: NumberMap::default(),
            ips: NumberMap::default(),
            sites: NumberMap::default(),
            ipis: strings.iter().map(|(address, text)| (*address, labels.intern(text))).collect(),
            functions: NumberMap::default(),
            calls: NumberMap::default(),
            own_work: NumberMap::default(),
            untraced_timer: labels.intern(untraced_timer),
            ipi: labels.intern("ipi"),
            unknown_irq: labels.intern("irq"),
            user_fault: labels.intern("page_fault_user"),
            kernel_fault: labels.intern("page_fault_kernel"),
        }
    }

    fn function(symbols: Option<&Kallsyms>, address: u64) -> String {
        match symbols.and_then(|symbols| symbols.symbol(address)) {
            Some(symbol) => symbol.name.to_owned(),
            // Without symbols, events of the same function still share a name.
            None => format!("0x{address:x}"),
        }
    }

    /// The named event at this instant.
    pub fn translate(&mut self, raw: &RawEvent<'_>, time: Nanos, names: &mut Names) -> Event {
        let symbols = self.symbols.as_deref();
        let what = match raw.what {
            RawHappening::Lost { count } => Happening::Lost { count },
            RawHappening::IrqHandlerEntry { irq, name } => {
                let (source, detail) = self.irq(irq, name, &mut names.labels);
                Happening::IrqEntry { source, detail }
            }
            RawHappening::IrqHandlerExit { irq } => {
                let unknown = (self.unknown_irq, self.unknown_irq);
                let (source, detail) = self.irqs.get(&irq).map_or(unknown, |irq| (irq.source, irq.detail));
                Happening::IrqExit { source, detail }
            }
            RawHappening::VectorEntry { name, vector } => self.vector(name, vector, &mut names.labels, true),
            RawHappening::VectorExit { name, vector } => self.vector(name, vector, &mut names.labels, false),
            RawHappening::SoftirqEntry { vec } => Happening::SoftirqEntry { source: self.softirq(vec, names) },
            RawHappening::SoftirqExit { vec } => Happening::SoftirqExit { source: self.softirq(vec, names) },
            RawHappening::NmiHandler { handler, delta_ns } => {
                let source =
                    *self.nmis.entry(handler).or_insert_with(|| names.labels.intern(&Self::function(symbols, handler)));
                Happening::Nmi { source, delta: Nanos::new(delta_ns.max(0)) }
            }
            RawHappening::IpiEntry { reason } | RawHappening::IpiExit { reason } => {
                let detail =
                    *self.ipis.entry(reason).or_insert_with(|| names.labels.intern(&format!("reason 0x{reason:x}")));
                match raw.what {
                    RawHappening::IpiEntry { .. } => Happening::IrqEntry { source: self.ipi, detail },
                    _ => Happening::IrqExit { source: self.ipi, detail },
                }
            }
            RawHappening::SchedSwitch { prev_comm, prev_pid, prev_state, next_comm, next_pid, .. } => {
                if prev_pid != 0 {
                    names.see(Pid(prev_pid), prev_comm);
                }
                if next_pid != 0 {
                    names.see(Pid(next_pid), next_comm);
                }
                // Higher bits tell how a runnable thread was switched out (`TASK_STATE_MAX`, "R+").
                let prev_state = ThreadState((prev_state & 0xff) as u8);
                Happening::Switch { prev: Pid(prev_pid), prev_state, next: Pid(next_pid) }
            }
            RawHappening::WorkStart { work, function } => {
                Happening::WorkStart { source: self.work(function, names), work }
            }
            RawHappening::WorkEnd { work, function } => {
                let source = function.map_or(Label::EMPTY, |function| self.work(function, names));
                Happening::WorkEnd { source, work }
            }
            RawHappening::FunctionEntry { callback, function, request } => {
                let (source, root) = self.carried(callback, function, &mut names.labels);
                let interrupt = self.untraced_timer;
                Happening::FunctionEntry { source, root, carrier: carrier(callback), interrupt, request }
            }
            RawHappening::CallQueued { cpu, site, function, request } => {
                let function = self.carried(Callback::Call, function, &mut names.labels).0;
                let site = self.site(site, &mut names.labels);
                Happening::CallQueued { cpu: CpuId::new(cpu), function, site, request }
            }
            RawHappening::InterruptSent { callback, cpu, site } => {
                let site = self.site(site, &mut names.labels);
                Happening::InterruptSent { cpu: CpuId::new(cpu), site, is_call: callback != 0 }
            }
            RawHappening::WorkQueued { work, function } => {
                Happening::WorkQueued { source: self.work(function, names), work }
            }
            RawHappening::SoftirqRaised { vec } => Happening::SoftirqRaised { source: self.softirq(vec, names) },
            RawHappening::FunctionExit { callback } => {
                Happening::FunctionExit { carrier: carrier(callback), interrupt: self.untraced_timer }
            }
            RawHappening::Waking { comm, pid } => {
                names.see(Pid(pid), comm);
                Happening::Waking { thread: Pid(pid) }
            }
            RawHappening::Woken { comm, pid, cpu, is_new } => {
                names.see(Pid(pid), comm);
                Happening::Woken { thread: Pid(pid), cpu: CpuId::new(cpu as u32), is_new }
            }
            RawHappening::Moved { pid, cpu } => {
                Happening::Life(Life::Moved { thread: Pid(pid), cpu: CpuId::new(cpu as u32) })
            }
            RawHappening::Created { comm, pid, .. } | RawHappening::Forked { comm, pid } => {
                names.see(Pid(pid), comm);
                let in_process = matches!(raw.what, RawHappening::Created { in_process: true, .. });
                Happening::Life(Life::Created { thread: Pid(pid), name: label(comm, names), in_process })
            }
            RawHappening::Renamed { comm, pid } => {
                names.see(Pid(pid), comm);
                Happening::Life(Life::Renamed { thread: Pid(pid), name: label(comm, names) })
            }
            RawHappening::Accounted { pid, runtime_ns } => {
                Happening::Life(Life::Accounted { thread: Pid(pid), ran: accounted_time(runtime_ns) })
            }
            RawHappening::WorkBegan(work) => {
                Happening::Life(Life::WorkBegan { work: self.own_work(work, &mut names.labels) })
            }
            RawHappening::WorkEnded(work) => {
                Happening::Life(Life::WorkEnded { work: self.own_work(work, &mut names.labels) })
            }
            RawHappening::CallBegan { number } => {
                Happening::Life(Life::CallBegan { call: self.call(number, &mut names.labels) })
            }
            RawHappening::CallEnded => Happening::Life(Life::CallEnded),
            RawHappening::Dirtied { pause } => Happening::Life(Life::Dirtied { is_paused: pause > 0 }),
            RawHappening::PageFault { user, ip, .. } => {
                let source = if user { self.user_fault } else { self.kernel_fault };
                // The instruction is more specific than the address, and there are few of them; in the kernel it has a name.
                let detail = if user { Label::EMPTY } else { self.instruction(ip, names) };
                Happening::Fault { source, detail }
            }
        };
        let thread = Pid(raw.pid);
        names.meet(thread);
        Event { time, thread, in_interrupt: raw.in_interrupt, what }
    }

    /// The source of a function by its address, and its fixed root.
    fn carried(&mut self, callback: Callback, function: u64, labels: &mut Labels) -> (Label, Label) {
        let symbols = self.symbols.as_deref();
        *self.functions.entry((callback, function)).or_insert_with(|| {
            let symbol = symbols.and_then(|symbols| symbols.symbol(function));
            function_source(carrier(callback), symbol.map(|symbol| symbol.name), labels)
        })
    }

    fn own_work(&mut self, work: OwnWork, labels: &mut Labels) -> Label {
        *self.own_work.entry(work).or_insert_with(|| labels.intern(work.name()))
    }

    fn call(&mut self, number: i64, labels: &mut Labels) -> Label {
        *self.calls.entry(number).or_insert_with(|| match syscall_name(number) {
            Some(name) => labels.intern(name),
            None => labels.intern(&format!("system call {number}")),
        })
    }

    fn irq(&mut self, irq: i32, name: &[u8], labels: &mut Labels) -> (Label, Label) {
        if let Some(known) = self.irqs.get(&irq)
            && *known.name == *name
        {
            return (known.source, known.detail);
        }
        let detail = labels.intern(&format!("irq {irq}"));
        let source = if name.is_empty() { detail } else { labels.intern(&String::from_utf8_lossy(name)) };
        self.irqs.insert(irq, Irq { name: name.into(), source, detail });
        (source, detail)
    }

    fn vector(&mut self, name: VectorName, vector: i32, labels: &mut Labels, entry: bool) -> Happening {
        let (source, detail) = self.vectors.entry(name).or_insert((self.unknown_irq, None));
        // The architecture has one fixed number per vector.
        let detail = *detail.get_or_insert_with(|| labels.intern(&format!("vector {vector}")));
        let source = *source;
        if entry { Happening::IrqEntry { source, detail } } else { Happening::IrqExit { source, detail } }
    }

    fn softirq(&self, vec: u32, names: &mut Names) -> Label {
        match self.softirqs.get(vec as usize) {
            Some(label) => *label,
            None => names.labels.intern(&format!("softirq {vec}")),
        }
    }

    fn work(&mut self, function: u64, names: &mut Names) -> Label {
        let symbols = self.symbols.as_deref();
        *self
            .works
            .entry(function)
            .or_insert_with(|| names.labels.intern(&carried::source(Carrier::Work, &Self::function(symbols, function))))
    }

    /// The function that contains the code that requests something.
    fn site(&mut self, address: u64, labels: &mut Labels) -> Label {
        let symbols = self.symbols.as_deref();
        *self.sites.entry(address).or_insert_with(|| labels.intern(&Self::function(symbols, address)))
    }

    fn instruction(&mut self, address: u64, names: &mut Names) -> Label {
        let symbols = self.symbols.as_deref();
        *self.ips.entry(address).or_insert_with(|| names.labels.intern(&Self::function(symbols, address)))
    }
}

/// The label of a thread's name.
fn label(comm: &[u8], names: &mut Names) -> Label {
    names.labels.intern(&String::from_utf8_lossy(comm))
}
