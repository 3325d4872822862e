//! Occurrences of interrupts and softirqs in the trace, for comparison with the kernel's own counts.
//!
//! The kernel's counters are read shortly after the loops start and before they end, and a read takes a while. Events between the two reads were
//! certainly counted; events during a read may have been.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use becalm_linux::ftrace::{Decoder, RawHappening};
use becalm_linux::procfs::interrupts::InterruptLine;
use becalm_model::node::TracedCount;
use becalm_units::{Nanos, NumberMap};

use super::translate::SOFTIRQS;

/// The kernel counts an event slightly before or after it writes it.
const APART: Nanos = Nanos::from_micros(20);

/// Lines of `/proc/interrupts` that count no interrupt of their own: retries, polls from timers, and interrupts that another line counts too (`PMI`
/// in `NMI`, `TLB` in `CAL`).
const NO_INTERRUPTS: [&str; 4] = ["RTR", "MCP", "PMI", "TLB"];

/// The vectors, by their event stems, that each line of `/proc/interrupts` counts on x86 (`arch/x86/kernel/irq.c`).
const VECTORS: [(&str, &[&str]); 9] = [
    ("LOC", &["local_timer"]),
    ("RES", &["reschedule"]),
    ("CAL", &["call_function", "call_function_single"]),
    ("IWI", &["irq_work"]),
    ("SPU", &["spurious_apic"]),
    ("TRM", &["thermal_apic"]),
    ("THR", &["threshold_apic"]),
    ("DFR", &["deferred_error_apic"]),
    ("PLT", &["x86_platform_ipi"]),
];

/// The reads of a counter between which events are counted.
#[derive(Clone, Debug)]
pub struct Window {
    /// Start and end of the first read.
    pub first: RangeInclusive<Nanos>,
    /// Start and end of the last read; `None` until it is done.
    pub last: Option<RangeInclusive<Nanos>>,
}

impl Window {
    /// Whether an event at this instant is certainly between the reads, and whether it may be.
    fn holds(&self, at: Nanos) -> (bool, bool) {
        let (before, after) = (self.first.start(), self.first.end());
        let last = self.last.as_ref();
        let surely = at > *after + APART && last.is_none_or(|last| at < *last.start() - APART);
        let maybe = at >= *before - APART && last.is_none_or(|last| at <= *last.end() + APART);
        (surely, maybe)
    }
}

/// The windows of the two files with counts; `None` for one that could not be read.
#[derive(Clone, Debug, Default)]
pub struct Windows {
    /// For `/proc/interrupts`.
    pub interrupts: Option<Window>,
    /// For `/proc/softirqs`.
    pub softirqs: Option<Window>,
}

/// The counted thing.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Occurrence {
    /// A handler of a device interrupt, by the interrupt's number.
    Irq(i32),
    /// A local vector, by its name's number.
    Vector(becalm_linux::ftrace::VectorName),
    /// A softirq, by its number.
    Softirq(u32),
    /// A handler of non-maskable interrupts, by its address.
    Nmi(u64),
    /// An inter-processor interrupt of Arm, by the address of its name.
    Ipi(u64),
}

/// Occurrences of each interrupt and softirq on one CPU while the kernel counted.
#[derive(Clone, Debug, Default)]
pub struct Occurrences(NumberMap<Occurrence, TracedCount>);

impl Occurrences {
    /// Counts an event at this instant.
    pub fn add(&mut self, what: &RawHappening<'_>, at: Nanos, windows: &Windows) {
        let what = match *what {
            RawHappening::IrqHandlerEntry { irq, .. } => Occurrence::Irq(irq),
            RawHappening::VectorEntry { name, .. } => Occurrence::Vector(name),
            RawHappening::SoftirqEntry { vec } => Occurrence::Softirq(vec),
            RawHappening::NmiHandler { handler, .. } => Occurrence::Nmi(handler),
            RawHappening::IpiEntry { reason } => Occurrence::Ipi(reason),
            _ => return,
        };
        let window = if let Occurrence::Softirq(_) = what { &windows.softirqs } else { &windows.interrupts };
        let Some(window) = window else { return };
        let (surely, maybe) = window.holds(at);
        if maybe {
            let count = self.0.entry(what).or_default();
            count.least += u64::from(surely);
            count.most += 1;
        }
    }

    fn count(&self, what: Occurrence) -> TracedCount {
        self.0.get(&what).copied().unwrap_or_default()
    }

    /// Occurrences of a softirq, by its name in `/proc/softirqs` (`NET_RX`); `None` for an unknown name.
    pub fn softirq_count(&self, name: &str) -> Option<TracedCount> {
        let number = SOFTIRQS.iter().position(|known| known.eq_ignore_ascii_case(name))?;
        Some(self.count(Occurrence::Softirq(number as u32)))
    }

    /// Occurrences of the interrupt of a line of `/proc/interrupts`; `None` for lines that count no interrupts, or whose meaning is unknown. Zero if
    /// this kernel has no event for it.
    pub fn interrupt_count(&self, line: &InterruptLine, names: &EventNames<'_>) -> Option<TracedCount> {
        let id = line.id.as_str();
        if let Some(device) = &line.device {
            // Each of its handlers runs and has an event.
            let handlers = device.names.len().max(1) as u64;
            let TracedCount { least, most } = self.count(Occurrence::Irq(i32::try_from(device.irq).ok()?));
            return Some(TracedCount { least: least / handlers, most: most.div_ceil(handlers) });
        }
        if let Some((_, stems)) = VECTORS.iter().find(|(name, _)| *name == id) {
            let matching = names.decoder.vectors().filter(|(_, stem)| stems.contains(stem));
            let counts = matching.map(|(name, _)| self.count(Occurrence::Vector(name)));
            return Some(counts.fold(TracedCount::default(), TracedCount::plus));
        }
        match id {
            _ if NO_INTERRUPTS.contains(&id) => None,
            // Each NMI calls the handlers in turn, always starting with the first.
            "NMI" => {
                let handlers = self.0.iter().filter(|(what, _)| matches!(what, Occurrence::Nmi(_)));
                Some(handlers.map(|(_, count)| *count).max_by_key(|count| count.most).unwrap_or_default())
            }
            _ if id.starts_with("IPI") => {
                let matching = names.strings.iter().filter(|(_, text)| **text == line.description);
                let counts = matching.map(|(address, _)| self.count(Occurrence::Ipi(*address)));
                Some(counts.fold(TracedCount::default(), TracedCount::plus))
            }
            // Other lines are known to count interrupts only on x86.
            _ => matches!(std::env::consts::ARCH, "x86_64" | "x86").then(TracedCount::default),
        }
    }
}

/// The trace's names of interrupts.
#[derive(Clone, Copy, Debug)]
pub struct EventNames<'a> {
    /// Has the names of local vectors.
    pub decoder: &'a Decoder,
    /// The kernel's strings by address, which name inter-processor interrupts on Arm.
    pub strings: &'a BTreeMap<u64, String>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use becalm_linux::ftrace::synth::{Long, SynthKernel};
    use becalm_linux::procfs::interrupts::Interrupts;

    fn windows() -> Windows {
        let micros = |from, to| Nanos::from_micros(from)..=Nanos::from_micros(to);
        let window = || Some(Window { first: micros(1_000, 1_100), last: Some(micros(9_000, 9_200)) });
        Windows { interrupts: window(), softirqs: window() }
    }

    #[test]
    fn an_event_within_a_reading_may_have_been_counted() {
        let mut counts = Occurrences::default();
        for micros in [900, 1_050, 1_110, 1_121, 5_000, 8_979, 8_981, 9_100, 9_219, 9_221] {
            counts.add(&RawHappening::SoftirqEntry { vec: 3 }, Nanos::from_micros(micros), &windows());
        }
        assert_eq!(counts.softirq_count("NET_RX"), Some(TracedCount { least: 3, most: 8 }));
        assert_eq!(counts.softirq_count("TIMER"), Some(TracedCount::default()));
        assert_eq!(counts.softirq_count("FUTURE"), None);
        // Before the last read, every event counts.
        let mut window = windows().interrupts.unwrap();
        window.last = None;
        assert_eq!(window.holds(Nanos::from_secs(1_000)), (true, true));
    }

    #[test]
    fn a_file_that_cannot_be_read_leaves_the_other_ones_window() {
        let windows = Windows { interrupts: None, ..windows() };
        let mut counts = Occurrences::default();
        counts.add(&RawHappening::SoftirqEntry { vec: 3 }, Nanos::from_micros(5_000), &windows);
        counts.add(&RawHappening::IrqHandlerEntry { irq: 16, name: b"usb" }, Nanos::from_micros(5_000), &windows);
        assert_eq!(counts.softirq_count("NET_RX"), Some(TracedCount { least: 1, most: 1 }));
        assert_eq!(counts.count(Occurrence::Irq(16)), TracedCount::default());
    }

    #[test]
    fn lines_of_interrupts_are_held_against_their_events() {
        let kernel = SynthKernel::new(Long::Bits64, 4096);
        let strings = BTreeMap::from([(0x10, "Rescheduling interrupts".to_owned())]);
        let names = EventNames { decoder: kernel.decoder(), strings: &strings };
        let mut counts = Occurrences::default();
        let mut add = |what: RawHappening<'_>, times: u64| {
            (0..times).for_each(|_| counts.add(&what, Nanos::from_micros(5_000), &windows()));
        };
        let vector = |stem| kernel.decoder().vectors().find(|(_, name)| *name == stem).unwrap().0;
        add(RawHappening::VectorEntry { name: vector("local_timer"), vector: 236 }, 7);
        add(RawHappening::VectorExit { name: vector("local_timer"), vector: 236 }, 7);
        add(RawHappening::IrqHandlerEntry { irq: 16, name: b"usb" }, 4);
        add(RawHappening::IrqHandlerEntry { irq: 16, name: b"PME" }, 4);
        add(RawHappening::NmiHandler { handler: 1, delta_ns: 5 }, 3);
        add(RawHappening::NmiHandler { handler: 2, delta_ns: 5 }, 2);
        add(RawHappening::IpiEntry { reason: 0x10 }, 6);
        let text = "CPU0\n 16: 4 IO-APIC 16-fasteoi usb, PME\nNMI: 3 Non-maskable interrupts\nLOC: 7 Local timer\n\
                    RES: 1 Rescheduling interrupts\nHVS: 9 Hyper-V stimer0 interrupts\nRTR: 2 retries\nTLB: 2 TLB\n\
                    MCP: 2 polls\nIPI0: 6 Rescheduling interrupts\nIPI1: 2 Function call interrupts\nERR: 3\n";
        let found = |id: &str| {
            let it = Interrupts::parse(text).unwrap();
            counts.interrupt_count(it.lines.iter().find(|line| line.id == id).unwrap(), &names).map(|count| count.most)
        };
        assert_eq!(["16", "NMI", "LOC", "RES"].map(found), [Some(4), Some(3), Some(7), Some(0)]);
        assert_eq!(["IPI0", "IPI1"].map(found), [Some(6), Some(0)]);
        assert_eq!(["RTR", "TLB", "MCP"].map(found), [None; 3]);
        let untraced = if cfg!(any(target_arch = "x86_64", target_arch = "x86")) { Some(0) } else { None };
        assert_eq!(found("HVS"), untraced);
    }
}
