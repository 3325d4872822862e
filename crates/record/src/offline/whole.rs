//! Whether a trace holds every event of its CPUs, by one clock: of one that does not, others would seem to have had the time.

use std::collections::BTreeMap;

use becalm_exchange::read::ReadError;
use becalm_model::{Event, Happening, Label, Pid};
use becalm_units::CpuId;

/// How all that is read here is recorded.
const EVERY_EVENT: &str =
    "record all threads and every event, with 'perf record -a -c 1', or 'trace-cmd record' without -P and -F";

/// Counts the events that cannot follow the ones in front of them.
#[derive(Debug, Default)]
pub struct Wholeness {
    cpus: BTreeMap<CpuId, OfCpu>,
    events: u64,
    switches: u64,
    /// Switches away from another thread than the one in front of them went to.
    broken: u64,
    /// Entries and exits of interrupts.
    irqs: u64,
    /// Entries right behind an entry of the same interrupt, which never interrupts itself.
    entries: u64,
    /// Exits right behind an exit of the same interrupt.
    exits: u64,
}

/// What came last on a CPU.
#[derive(Debug, Default)]
struct OfCpu {
    /// To whom the last switch went.
    running: Option<Pid>,
    /// The last interrupt, and whether that was its entry.
    irq: Option<(Label, bool)>,
}

impl Wholeness {
    /// Takes the next event of a CPU.
    pub fn take(&mut self, cpu: CpuId, event: &Event) {
        let of_cpu = self.cpus.entry(cpu).or_default();
        self.events += 1;
        match event.what {
            Happening::Switch { prev, next, .. } => {
                let before = of_cpu.running.replace(next);
                self.switches += u64::from(before.is_some());
                self.broken += u64::from(before.is_some_and(|before| before != prev));
            }
            Happening::IrqEntry { source, .. } | Happening::IrqExit { source, .. } => {
                let is_entry = matches!(event.what, Happening::IrqEntry { .. });
                let irq = Some((source, is_entry));
                let repeated = u64::from(of_cpu.irq == irq);
                of_cpu.irq = irq;
                self.irqs += 1;
                *(if is_entry { &mut self.entries } else { &mut self.exits }) += repeated;
            }
            // Behind a gap, anything may come.
            Happening::Lost { .. } => *of_cpu = OfCpu::default(),
            _ => {}
        }
    }

    /// Refuses a trace in which so many stamps lay before one in front of them, or that lacks events.
    ///
    /// # Errors
    /// If it is not whole.
    pub fn check(&self, backwards: u64) -> Result<(), ReadError> {
        let &Self { events, switches, broken, irqs, entries, exits, .. } = self;
        let repeated = entries + exits;
        Err(ReadError::new(if backwards > events / 2 {
            format!(
                "{backwards} of its {events} events are stamped before one in front of them, so these are no times of one clock: print it without \
                 --deltatime (perf script), or sort it by time"
            )
        } else if broken >= 2 && broken > switches / 4 {
            // Whole traces have some: threads take over the number of a process that they replace, and trace-cmd hides threads.
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
