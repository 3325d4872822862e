//! Works out the causes of activities after a recording, from the pages of its traces.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::io;

use becalm_attribute::causes::CauseFinder;
use becalm_measure::{Names, RawCauses, RawTrace, Translator};
use becalm_model::cause::Cause;
use becalm_model::node::CausesDoc;
use becalm_model::{Event, Happening, Labels};
use becalm_units::CpuId;

/// The rows of a segment of the table.
const SEGMENT_ROWS: usize = 1 << 18;

/// Why the causes are not known.
#[derive(Debug)]
pub enum CauseError<E> {
    /// The pages cannot be read again.
    Pages(io::Error),
    /// The rows cannot be stored.
    Store(E),
}

/// The events of one CPU in one of the traces.
struct Stream<'a> {
    trace: &'a RawTrace,
    /// Which of the two translators.
    which: usize,
    buffer: usize,
    cpu: CpuId,
    /// Whether the other trace has what runs on this CPU.
    is_doubled: bool,
    next_page: usize,
    events: VecDeque<Event>,
}

impl Stream<'_> {
    /// Decodes pages until there are events, or no more pages. Returns the number of events that were lost.
    fn fill(&mut self, translators: &mut [Translator; 2], names: &mut Names, page: &mut Vec<u8>) -> io::Result<u64> {
        let mut lost = 0;
        while self.events.is_empty() {
            let Self { events, is_doubled, .. } = self;
            let mut pass = |event: Event| {
                if !(*is_doubled && is_activity(&event.what)) {
                    events.push_back(event);
                }
            };
            let place = (self.buffer, self.next_page);
            match self.trace.decode(place, page, &mut translators[self.which], names, &mut pass)? {
                None => break,
                Some(before) => lost += before,
            }
            self.next_page += 1;
        }
        Ok(lost)
    }
}

/// Whether an event is part of what runs on its CPU. An old kernel cannot leave out those of measured CPUs in the trace of requests.
const fn is_activity(what: &Happening) -> bool {
    matches!(
        what,
        Happening::IrqEntry { .. }
            | Happening::IrqExit { .. }
            | Happening::SoftirqEntry { .. }
            | Happening::SoftirqExit { .. }
            | Happening::FunctionEntry { .. }
            | Happening::FunctionExit { .. }
            | Happening::WorkStart { .. }
            | Happening::WorkEnd { .. }
            | Happening::Switch { .. }
    )
}

/// Works out the causes of the activities on the measured CPUs, passes them to `store` in segments, and adds the counts to the document. The number of
/// rows is set last.
pub fn work_out<E>(
    raw: &RawCauses,
    names: &mut Names,
    doc: &mut CausesDoc,
    mut store: impl FnMut(&[Cause], &Labels) -> Result<(), E>,
) -> Result<(), CauseError<E>> {
    let RawCauses { activities, requests, own } = raw;
    let mut translators = [activities, requests].map(|trace| trace.translator(&mut names.labels));
    let measured = activities.cpus().iter().copied().collect();
    let mut streams: Vec<Stream<'_>> = [activities, requests]
        .into_iter()
        .enumerate()
        .flat_map(|(which, trace)| {
            trace.cpus().iter().enumerate().map(move |(buffer, cpu)| (which, trace, buffer, *cpu))
        })
        .map(|(which, trace, buffer, cpu)| {
            let is_doubled = which == 1 && activities.cpus().contains(&cpu);
            Stream { trace, which, buffer, cpu, is_doubled, next_page: 0, events: VecDeque::new() }
        })
        .collect();
    let mut finder = CauseFinder::new(Some(measured), own, &mut names.labels);
    let (mut page, mut rows, mut stored) = (Vec::new(), Vec::new(), 0);
    let mut heads = BinaryHeap::new();
    for (number, stream) in streams.iter_mut().enumerate() {
        doc.lost += stream.fill(&mut translators, names, &mut page).map_err(CauseError::Pages)?;
        heads.extend(stream.events.front().map(|event| Reverse((event.time, number))));
    }
    while let Some(Reverse((_, number))) = heads.pop() {
        let stream = &mut streams[number];
        if let Some(event) = stream.events.pop_front() {
            doc.taken += u64::from(stream.which == 1);
            let Names { tasks, labels, .. } = names;
            finder.take(stream.cpu, &event, tasks, labels, &mut |cause| rows.push(cause));
        }
        if stream.events.is_empty() {
            doc.lost += stream.fill(&mut translators, names, &mut page).map_err(CauseError::Pages)?;
        }
        heads.extend(stream.events.front().map(|event| Reverse((event.time, number))));
        if rows.len() >= SEGMENT_ROWS {
            store(&rows, &names.labels).map_err(CauseError::Store)?;
            stored += rows.len();
            rows.clear();
        }
    }
    if !rows.is_empty() {
        store(&rows, &names.labels).map_err(CauseError::Store)?;
    }
    doc.rows = Some((stored + rows.len()) as u64);
    Ok(())
}
