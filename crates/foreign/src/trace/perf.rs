//! A file of `perf record`: its samples are the kernel's own records, decoded like those of its ring buffer.

use std::collections::BTreeMap;

use becalm_linux::ftrace::{EventPath, RawEvent, RawHappening};
use becalm_measure::Names;
use becalm_model::{Event, Pid};
use becalm_units::CpuId;

use super::clock::Axis;
use super::paged::{Taught, enter_names};
use super::{HeldTrace, ThreadLog};
use crate::read::perf_data::{PerfData, PerfRecord};
use crate::read::{Progress, ReadError};

/// The trace made from a file.
#[derive(Debug)]
pub struct PerfTrace {
    /// Its events, on an axis that starts with the first of them.
    pub trace: HeldTrace,
    /// The start of that axis by perf's clock, in nanoseconds.
    pub origin: u64,
    /// The recorded events that are decoded.
    pub events: Vec<EventPath>,
    /// True if the file names the kernel's functions.
    pub has_symbols: bool,
}

impl PerfTrace {
    /// Reads the records of a file. Fails if one is damaged, the file's event formats cannot be used, or it has no records.
    pub fn new(file: &PerfData<'_>, names: &mut Names, told: Progress<'_>) -> Result<Self, ReadError> {
        let mut taught = Taught::new(&file.formats, names)?;
        let events = taught.events(|id| file.recorded.contains(&id.into()));
        taught.leave_out_repeated_creations(&events);
        let mut log = ThreadLog::default();
        let mut cpus: BTreeMap<CpuId, Vec<RawEvent<'_>>> = BTreeMap::new();
        file.each(told, &mut |record| {
            match record {
                PerfRecord::Event { cpu, time, bytes, place } => {
                    let decoded = taught.decoder.record(bytes, time);
                    let decoded = decoded.map_err(|error| {
                        ReadError::byte(place, format!("the event here is not as it should be: {error}"))
                    })?;
                    if let Some(event) = decoded {
                        cpus.entry(cpu).or_default().push(event);
                    }
                }
                PerfRecord::Lost { cpu, time, count } => {
                    let what = RawHappening::Lost { count: Some(count) };
                    cpus.entry(cpu).or_default().push(RawEvent { time, pid: 0, in_interrupt: false, what });
                }
                PerfRecord::Name { tid, process, name } => {
                    log.set_process(Pid(tid), Pid(process));
                    names.see(Pid(tid), name);
                }
                PerfRecord::Thread { tid, process, is_kernel } => {
                    log.set_process(Pid(tid), Pid(process));
                    names.set_kernel(Pid(tid), is_kernel);
                }
            }
            Ok(())
        })?;
        cpus.values_mut().for_each(|raw| raw.retain(|event| taught.counts(&event.what)));
        let first = cpus.values().flatten().map(|event| event.time).min();
        let origin =
            first.ok_or_else(|| ReadError::new("it holds no interrupt, softirq, switch of threads or work item"))?;
        let mut events_by_cpu = Vec::with_capacity(cpus.len());
        for (cpu, mut raw) in cpus {
            // perf writes each buffer at once, and a CPU has several.
            raw.sort_by_key(|event| event.time);
            let mut axis = Axis::new(origin.into());
            let place = |raw: &RawEvent<'_>| -> Result<Event, ReadError> {
                let time = axis.place(raw.time.into(), 0)?;
                let mut event = taught.translator.translate(raw, time, names);
                log.settle(&mut event);
                enter_names(&mut log, cpu, time, raw, names);
                Ok(event)
            };
            events_by_cpu.push((cpu, raw.iter().map(place).collect::<Result<Vec<Event>, ReadError>>()?));
        }
        let trace = HeldTrace::new(events_by_cpu, 0).with_threads(log);
        Ok(Self { trace, origin, events, has_symbols: taught.has_symbols })
    }
}
