//! What a trace holds of a CPU.

use becalm_model::{Event, Happening, Label, Pid};
use becalm_units::Nanos;

/// How many events there are, and from when to when.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CpuSpan {
    /// Events, the marks of lost ones not counted.
    pub events: u64,
    /// Events that were lost; of a gap that does not say how many, one.
    pub lost: u64,
    /// Gaps in which they were lost.
    pub gaps: u64,
    /// The time from the last event before each gap until the first behind it.
    pub gap_time: Nanos,
    /// Switches with one in front of them, and no gap between.
    pub switches: u64,
    /// Those that are away from another thread than the one in front of them went to.
    pub broken: u64,
    /// Entries and exits of interrupts.
    pub irqs: u64,
    /// Entries right behind an entry of the same interrupt, which never interrupts itself.
    pub entries: u64,
    /// Exits right behind an exit of the same interrupt.
    pub exits: u64,
    /// The last of them, and whether it was an entry.
    irq: Option<(Label, bool)>,
    /// To whom the last switch went.
    running: Option<Pid>,
    /// When the first event came; `None` if there was none.
    pub first: Option<Nanos>,
    /// When the last one came.
    pub last: Nanos,
}

impl CpuSpan {
    /// Takes note of the next event.
    pub fn take(&mut self, event: &Event) {
        if let Happening::Lost { count } = event.what {
            self.lost = self.lost.saturating_add(count.unwrap_or(1).max(1));
            self.gaps += 1;
            self.gap_time += self.first.map_or(Nanos::ZERO, |_| event.time - self.last);
            (self.running, self.irq) = (None, None);
        } else {
            match event.what {
                Happening::Switch { prev, next, .. } => {
                    let before = self.running.replace(next);
                    self.switches += u64::from(before.is_some());
                    self.broken += u64::from(before.is_some_and(|before| before != prev));
                }
                Happening::IrqEntry { source, .. } | Happening::IrqExit { source, .. } => {
                    let is_entry = matches!(event.what, Happening::IrqEntry { .. });
                    let repeated = u64::from(self.irq.replace((source, is_entry)) == Some((source, is_entry)));
                    self.irqs += 1;
                    *(if is_entry { &mut self.entries } else { &mut self.exits }) += repeated;
                }
                _ => {}
            }
            self.events += 1;
        }
        self.first.get_or_insert(event.time);
        self.last = event.time;
    }

    /// From the first event until the last.
    #[must_use]
    pub fn length(&self) -> Nanos {
        self.first.map_or(Nanos::ZERO, |first| self.last - first)
    }
}
