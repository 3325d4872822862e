//! The trace of requests, for the causes of activities. Its pages are only kept while the loops run.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::Arc;

use becalm_linux::ftrace::{Decoder, Faults, PageReader, REQUESTERS, REQUESTS, TracefsError};
use becalm_linux::janitor::Janitor;
use becalm_linux::procfs::kallsyms::Kallsyms;
use becalm_linux::procfs::task::{processes, threads_of};
use becalm_model::node::{CausesDoc, Warning};
use becalm_model::{Event, Labels, Pid, warning};
use becalm_units::CpuId;

use super::{EventClock, Names, TraceRequest, Tracing, Translator};
use crate::machine;
use crate::spool::Spool;

/// The buffer of each CPU for requests, in bytes: room for about 100,000.
const BUFFER: usize = 8 << 20;

/// The running trace of requests, on all CPUs.
pub struct RequestTrace {
    /// Closed before the instance is removed.
    readers: Vec<PageReader>,
    tracing: Tracing,
    spool: Spool,
}

impl RequestTrace {
    /// Sets up the trace of what is requested of the CPUs of the trace `main`, and leaves it off. `directory` is that of the raw pages. If it is not
    /// possible, this warns and returns `None`.
    pub fn set_up(
        main: &TraceRequest<'_>,
        directory: &Path,
        guard: &Result<Arc<Janitor>, String>,
        warnings: &mut Vec<Warning>,
    ) -> Option<Self> {
        let online = machine::cpu_list(main.root, "online");
        let request = TraceRequest {
            cpus: &online,
            buffer_bytes: BUFFER.min(main.buffer_bytes),
            events: &[REQUESTS, REQUESTERS],
            faults: Faults::None,
            concerned: Some(main.cpus),
            ..main.clone()
        };
        let mut tracing = Tracing::for_requests(&request, guard, warnings)?;
        let open = || -> Result<_, String> {
            let readers: Result<Vec<_>, _> = online.iter().map(|cpu| tracing.instance.reader(cpu)).collect();
            let readers = readers.map_err(|error| error.to_string())?;
            let spool = Spool::new(directory, readers.len(), tracing.instance.page_size())
                .map_err(|error| format!("cannot keep its pages in {}: {error}", directory.display()))?;
            Ok((readers, spool))
        };
        let (readers, spool) = open().map_err(|why| warnings.push(warning::no_causes(&why))).ok()?;
        tracing.instance.watch_changes(&online);
        Some(Self { readers, tracing, spool })
    }

    /// Its part of the document at the start.
    pub fn doc(&self) -> CausesDoc {
        CausesDoc {
            events: self.tracing.doc.events.clone(),
            missing: self.tracing.doc.missing.clone(),
            ..CausesDoc::default()
        }
    }

    /// Switches it on or off. Fails if the kernel refuses.
    pub fn turn(&self, is_on: bool) -> Result<(), TracefsError> {
        if is_on { self.tracing.instance.start() } else { self.tracing.instance.stop() }
    }

    /// Takes the pages of all CPUs; with `everything` until the buffers are empty, once it is off. Fails if they cannot be read or kept.
    pub fn take(&mut self, everything: bool) -> io::Result<()> {
        for (buffer, reader) in self.readers.iter_mut().enumerate() {
            self.spool.take(buffer, reader, self.tracing.instance.decoder(), everything)?;
        }
        Ok(())
    }

    /// The files that another program used to change the trace; empty if it is unchanged.
    pub fn changed(&self) -> Vec<String> {
        self.tracing.instance.changed()
    }

    /// Ends the trace. Fails if it cannot be removed.
    pub fn finish(self, clock: EventClock) -> Result<RawTrace, TracefsError> {
        let Self { readers, tracing, spool } = self;
        let cpus = readers.iter().map(PageReader::cpu).collect();
        drop(readers);
        let Tracing { instance, symbols, strings, untraced_timer, .. } = tracing;
        let decoder = instance.decoder().clone();
        instance.remove()?;
        Ok(RawTrace { spool, cpus, decoder, clock, symbols, strings, untraced_timer })
    }
}

/// Names the threads of this machine, because the trace of requests may not.
pub fn name_all_threads(root: &Path, names: &mut Names) {
    for process in processes(root).unwrap_or_default() {
        threads_of(root, process).unwrap_or_default().into_iter().for_each(|tid| names.meet(Pid(tid)));
    }
}

/// The pages of a trace of several CPUs, and what interprets them.
#[derive(Debug)]
pub struct RawTrace {
    pub(crate) spool: Spool,
    pub(crate) cpus: Vec<CpuId>,
    pub(crate) decoder: Decoder,
    pub(crate) clock: EventClock,
    pub(crate) symbols: Option<Arc<Kallsyms>>,
    pub(crate) strings: BTreeMap<u64, String>,
    pub(crate) untraced_timer: &'static str,
}

impl RawTrace {
    /// The CPUs of its buffers, in order.
    pub fn cpus(&self) -> &[CpuId] {
        &self.cpus
    }

    /// A translator of its events.
    pub fn translator(&self, labels: &mut Labels) -> Translator {
        Translator::new(&self.decoder, self.symbols.clone(), &self.strings, self.untraced_timer, labels)
    }

    /// Decodes a page of a buffer by its number, using `page` as memory, and passes its events in order of time. Returns the number of events that were
    /// lost before it; `None` if there is no such page. A damaged page passes the events before the damage. Fails if the pages cannot be read again.
    pub fn decode(
        &self,
        (buffer, number): (usize, usize),
        page: &mut Vec<u8>,
        translator: &mut Translator,
        names: &mut Names,
        pass: &mut impl FnMut(Event),
    ) -> io::Result<Option<u64>> {
        if !self.spool.read(buffer, number, page)? {
            return Ok(None);
        }
        let decoded = self.decoder.page(page, &mut |raw| {
            pass(translator.translate(&raw, self.clock.instant(raw.time), names));
        });
        Ok(Some(decoded.map_or(0, |summary| summary.lost_events)))
    }
}

/// The traces from which the causes of activities follow.
#[derive(Debug)]
pub struct RawCauses {
    /// That of the measured CPUs: the activities.
    pub activities: RawTrace,
    /// That of all CPUs: the requests.
    pub requests: RawTrace,
    /// The threads of becalm.
    pub own: Vec<Pid>,
}
