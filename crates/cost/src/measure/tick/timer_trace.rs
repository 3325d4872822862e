//! The kernel's own record of a CPU's timer interrupts: their number, and the time from the handler's entry to its exit.
//!
//! It excludes the work of processor and hypervisor before the entry and after the exit, and the softirqs that follow. It includes writing
//! the entry event, some 100 ns.

use std::path::Path;
use std::sync::Arc;

use becalm_linux::clock::{Counter, MonotonicRaw};
use becalm_linux::ftrace::{
    Faults, Instance, InstanceConfig, PageReader, RawEvent, RawHappening, TraceClock, Tracefs, VectorName, WANTED,
    remove_dead,
};
use becalm_linux::janitor::Janitor;
use becalm_model::warning::changed_files;
use becalm_units::CpuId;

use super::TickError;
use crate::documents::TicksDoc;

/// The buffer, in KiB: a minute of a busy CPU, or ten seconds at 20,000 interrupts a second.
const BUFFER_KB: u32 = 16 << 10;

/// Records a CPU's timer interrupts while `during` runs, which should take a few seconds at most. Creates a trace instance and removes it
/// afterwards, because its events cost time even while not recording. Fails if the kernel's trace is unavailable or unreadable, and if
/// `during` fails.
pub fn record_timer<T>(
    root: &Path,
    cpu: CpuId,
    janitor: Option<Arc<Janitor>>,
    during: impl FnOnce() -> Result<T, TickError>,
) -> Result<(T, TicksDoc), TickError> {
    let proc_root = root.join("proc");
    let tracefs = Tracefs::find_or_mount(root, Path::new(Tracefs::MOUNT_POINT), janitor.as_ref())?;
    remove_dead(&tracefs, &proc_root)?;
    let config = InstanceConfig {
        cpus: [cpu].into_iter().collect(),
        // The clock that also times the work, in nanoseconds.
        clock: TraceClock::MonoRaw,
        buffer_kb: BUFFER_KB,
        subbuf_kb: None,
        faults: Faults::All,
        events: &[WANTED],
        concerned: becalm_units::CpuList::default(),
        threads: None,
    };
    let mut instance = Instance::create(&tracefs, &proc_root, &config, janitor)?;
    let mut reader = instance.reader(cpu)?;
    instance.watch_changes(&config.cpus);
    instance.start()?;
    let start = MonotonicRaw::read();
    let result = during();
    let end = MonotonicRaw::read();
    instance.stop()?;
    let result = result?;
    let record = read_all(&instance, &mut reader, cpu, (start, end));
    // The change may be the reason why a trace cannot be read.
    let changed = instance.changed();
    if !changed.is_empty() {
        return Err(TickError::TraceChanged(changed_files(&changed)));
    }
    let record = record?;
    drop(reader);
    instance.remove()?;
    Ok((result, record))
}

fn read_all(
    instance: &Instance,
    reader: &mut PageReader,
    cpu: CpuId,
    (start, end): (u64, u64),
) -> Result<TicksDoc, TickError> {
    let decoder = instance.decoder();
    let timer = decoder.vectors().find(|(_, name)| *name == "local_timer").map(|(vector, _)| vector);
    let mut pairs = Pairs { timer, entered: None, record: TicksDoc::default() };
    let mut page = vec![0; reader.page_size()];
    loop {
        let read = reader.read_page(&mut page);
        let read = read.map_err(|source| TickError::System { action: "read the kernel's trace", source })?;
        let Some(length) = read else { break };
        let summary = decoder.page(&page[..length], &mut |raw| {
            if (start..=end).contains(&raw.time) {
                pairs.take(&raw);
            }
        });
        pairs.record.lost_events += summary.map_err(|source| TickError::Trace { cpu, source })?.lost_events;
    }
    pairs.record.window_ns = (end - start) as i64;
    Ok(pairs.record)
}

/// The entry of a timer interrupt.
#[derive(Clone, Copy)]
struct TimerEntry {
    time: u64,
    /// The number of a device's interrupt.
    irq: Option<i32>,
}

/// Joins the entry of each timer interrupt to its exit.
struct Pairs {
    timer: Option<VectorName>,
    /// The current timer interrupt.
    entered: Option<TimerEntry>,
    record: TicksDoc,
}

impl Pairs {
    fn take(&mut self, raw: &RawEvent<'_>) {
        match raw.what {
            RawHappening::VectorEntry { name, .. } if Some(name) == self.timer => {
                self.entered = Some(TimerEntry { time: raw.time, irq: None })
            }
            RawHappening::VectorExit { name, .. } if Some(name) == self.timer => self.left(raw.time, None),
            RawHappening::IrqHandlerEntry { irq, name } if self.timer.is_none() && is_timer(name) => {
                self.entered = Some(TimerEntry { time: raw.time, irq: Some(irq) });
            }
            RawHappening::IrqHandlerExit { irq } if self.timer.is_none() => self.left(raw.time, Some(irq)),
            RawHappening::SchedSwitch { .. } => self.record.switches += 1,
            // With events lost within an interrupt, its exit would be paired with another one's entry.
            RawHappening::Lost { .. } => self.entered = None,
            _ => {}
        }
    }

    fn left(&mut self, time: u64, irq: Option<i32>) {
        let Some(entered) = self.entered else { return };
        if entered.irq != irq {
            return;
        }
        self.entered = None;
        let took = time.saturating_sub(entered.time) as i64;
        self.record.interrupts += 1;
        self.record.handler_ns += took;
        self.record.handler_max_ns = self.record.handler_max_ns.max(took);
    }
}

/// Whether a handler is that of a CPU's timer, on architectures without a vector for it: `arch_timer`.
fn is_timer(name: &[u8]) -> bool {
    name.windows(5).any(|part| part == b"timer")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(events: &[(u64, RawHappening<'_>)]) -> TicksDoc {
        let mut pairs = Pairs { timer: None, entered: None, record: TicksDoc::default() };
        events
            .iter()
            .for_each(|(time, what)| pairs.take(&RawEvent { time: *time, pid: 1, in_interrupt: false, what: *what }));
        pairs.record
    }

    #[test]
    fn an_interrupt_lasts_from_its_entry_to_its_exit() {
        let entry = |irq, name| RawHappening::IrqHandlerEntry { irq, name };
        let exit = |irq| RawHappening::IrqHandlerExit { irq };
        let record = pairs(&[
            // Had begun before the record.
            (5, exit(11)),
            (10, entry(11, b"arch_timer")),
            (17, exit(11)),
            (20, entry(30, b"virtio0")),
            (29, exit(30)),
            (30, entry(11, b"arch_timer")),
            (31, RawHappening::Lost { count: Some(3) }),
            (39, exit(11)),
            (40, entry(11, b"arch_timer")),
            (60, exit(11)),
        ]);
        assert_eq!((record.interrupts, record.handler_ns, record.handler_max_ns), (2, 27, 20));
    }
}
