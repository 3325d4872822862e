//! Checks that a trace holds every event of its CPUs, stamped by one clock. Otherwise time would go to the wrong threads.

use std::collections::BTreeMap;

use becalm_model::{Event, Happening, Label, Pid};
use becalm_units::{CpuId, CpuList};

use crate::read::ReadError;

/// How to record a complete trace.
const EVERY_EVENT: &str =
    "record all threads and every event, with 'perf record -a -c 1', or 'trace-cmd record' without -P and -F";

/// Counts the events that cannot follow the ones before them.
#[derive(Debug, Default)]
pub struct Wholeness {
    cpus: BTreeMap<CpuId, CpuState>,
    events: u64,
    switches: u64,
    /// Entries and exits of interrupts.
    irqs: u64,
    /// Entries right after an entry of the same interrupt, which never interrupts itself.
    entries: u64,
    /// Exits right after an exit of the same interrupt.
    exits: u64,
}

/// The state of a CPU, and its counts.
#[derive(Debug, Default)]
struct CpuState {
    /// The thread of the last switch.
    running: Option<Pid>,
    /// The last interrupt, and whether that was its entry.
    irq: Option<(Label, bool)>,
    /// True if any switch leaves the idle task.
    leaves_idle: bool,
    /// Switches away from another thread although the one before went to the idle task.
    after_idle: u64,
    /// Switches that leave another thread than the one before went to, if that was not the idle task.
    broken: u64,
}

impl Wholeness {
    pub fn take(&mut self, cpu: CpuId, event: &Event) {
        let state = self.cpus.entry(cpu).or_default();
        self.events += 1;
        match event.what {
            Happening::Switch { prev, next, .. } => {
                state.leaves_idle |= prev == Pid::IDLE;
                if let Some(before) = state.running.replace(next) {
                    self.switches += 1;
                    let counter = if before == Pid::IDLE { &mut state.after_idle } else { &mut state.broken };
                    *counter += u64::from(before != prev);
                }
            }
            Happening::IrqEntry { source, .. } | Happening::IrqExit { source, .. } => {
                let is_entry = matches!(event.what, Happening::IrqEntry { .. });
                let irq = Some((source, is_entry));
                let repeated = u64::from(state.irq == irq);
                state.irq = irq;
                self.irqs += 1;
                *(if is_entry { &mut self.entries } else { &mut self.exits }) += repeated;
            }
            // Anything may follow a gap.
            Happening::Lost { .. } => (state.running, state.irq) = (None, None),
            _ => {}
        }
    }

    /// The CPUs whose trace lacks every switch away from the idle task: some kernels omit them after the CPU was offline, until the next
    /// boot. None if no CPU has such a switch, because then the trace is of single threads.
    pub fn without_idle(&self) -> CpuList {
        if !self.cpus.values().any(|state| state.leaves_idle) {
            return CpuList::default();
        }
        self.cpus.iter().filter(|(_, state)| !state.leaves_idle && state.after_idle > 0).map(|(cpu, _)| *cpu).collect()
    }

    /// Checks the trace, given the number of stamps earlier than the one before. Fails if those are more than half of its events, or if
    /// events are missing.
    pub fn check(&self, backwards: u64) -> Result<(), ReadError> {
        let &Self { events, switches, irqs, entries, exits, .. } = self;
        let repeated = entries + exits;
        let without_idle = self.without_idle();
        let broken_at_idle =
            |cpu: &CpuId, state: &CpuState| if without_idle.contains(*cpu) { 0 } else { state.after_idle };
        let broken: u64 = self.cpus.iter().map(|(cpu, state)| state.broken + broken_at_idle(cpu, state)).sum();
        Err(ReadError::new(if backwards > events / 2 {
            format!(
                "{backwards} of its {events} events are stamped before one in front of them, so these are no times of one clock: print it without \
                 --deltatime (perf script), or sort it by time"
            )
        } else if broken >= 2 && broken > switches / 4 {
            // Complete traces have some: threads take the number of a process that they replace, and trace-cmd hides threads.
            format!(
                "in {broken} of its {switches} switches another thread leaves the CPU than the one that got it before, so others are missing: \
                 {EVERY_EVENT}"
            )
        } else if entries.min(exits) >= 2 && repeated > irqs / 50 {
            // Events are enabled one after another, so some of either kind may come before any of the other.
            format!(
                "in {repeated} of its {irqs} entries and exits of interrupts, one follows another of its kind, so others are missing: {EVERY_EVENT}"
            )
        } else {
            return Ok(());
        }))
    }
}
