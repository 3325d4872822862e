//! Reads the tables of observed threads.

use std::path::Path;

use becalm_model::observed::{LifePart, ObservedRows, OwnedActivity, Owner, Stay, ThreadDetour, ThreadId};
use becalm_model::{Label, Labels};
use becalm_units::{CpuId, Nanos};

use super::{ThreadRow, reason_from, thread};
use crate::BundleError;
use crate::node_tables::{NodeTables, by_key, interned, kind, length, named};
use crate::schema::{OWNED_ACTIVITIES, STAYS, THREAD_DETOURS, THREADS};

/// The most threads of a recording: the books of more would not fit into memory.
const MOST_THREADS: usize = 1 << 24;

/// The tables of a node's observed threads.
#[derive(Clone, Debug)]
pub struct ObservedTables {
    tables: NodeTables,
    rows: ObservedRows,
}

impl ObservedTables {
    /// The tables of a node of the bundle in this directory, with the rows that its document tells.
    pub fn new(bundle: &Path, node: &str, rows: ObservedRows) -> Self {
        Self { tables: NodeTables::new(bundle, node), rows }
    }

    /// The threads, by their numbers. Fails if the table is missing, damaged, of another version, or contradicts the document.
    pub fn threads(&self, labels: &mut Labels) -> Result<Vec<ThreadRow>, BundleError> {
        let mut threads: Vec<ThreadRow> = Vec::new();
        self.tables.read(&THREADS, self.rows.threads, &mut |mut rows| {
            let numbers = rows.int32("thread")?;
            let (tids, processes, parents) = (rows.int32("tid")?, rows.int32("process")?, rows.int32("parent")?);
            let mut texts =
                |name| -> Result<Vec<Label>, String> { Ok(interned(&rows.names(name)?, numbers.len(), labels)) };
            let (names, commands, groups) = (texts("name")?, texts("command")?, texts("cgroup")?);
            let (starts, ends) = (rows.int64("start_ns")?, rows.int64("end_ns")?);
            let mut flags = |name: &str| rows.flags(name)?.ok_or_else(|| format!("it has no column {name}"));
            let (chosen, kernel) = (flags("chosen")?, flags("kernel")?);
            for row in 0..numbers.len() {
                if usize::try_from(numbers[row]) != Ok(threads.len()) || threads.len() >= MOST_THREADS {
                    return Err(format!("thread {} is stored in row {}", numbers[row], threads.len()));
                }
                threads.push(ThreadRow {
                    thread: numbers[row],
                    tid: tids[row],
                    process: processes[row],
                    parent: parents[row],
                    name: names[row],
                    command: commands[row],
                    group: groups[row],
                    start_ns: starts[row],
                    end_ns: ends[row],
                    chosen: chosen[row],
                    kernel: kernel[row],
                });
            }
            Ok(numbers.len())
        })?;
        Ok(threads)
    }

    /// Calls `each` for every stay, in the order of their ends. Fails as [`Self::threads`], and with its errors.
    pub fn stays(&self, labels: &mut Labels, each: &mut dyn FnMut(&Stay, &Labels)) -> Result<(), BundleError> {
        self.tables.read(&STAYS, self.rows.stays, &mut |mut rows| {
            let (threads, cpus) = (rows.int32("thread")?, rows.int32("cpu")?);
            let (starts, lengths) = (rows.int64("start_ns")?, rows.int64("duration_ns")?);
            let (parts, reasons) = (rows.names("state")?, rows.names("why")?);
            let parts_by_key = by_key(&parts, named::<LifePart>);
            let reasons_by_key = by_key(&reasons, reason_from);
            let contexts = interned(&rows.names("context")?, threads.len(), labels);
            let wakers = rows.int32("waker")?;
            for row in 0..threads.len() {
                let known = parts_by_key[parts.key(row)].zip(reasons_by_key[reasons.key(row)]);
                let Some((part, reason)) = known else {
                    return Err(format!("a stay is '{}', '{}'", parts.name(row), reasons.name(row)));
                };
                let stay = Stay {
                    thread: self.known(threads[row])?,
                    cpu: CpuId::new(u32::try_from(cpus[row]).unwrap_or(0)),
                    start: Nanos::new(starts[row]),
                    duration: length(starts[row], lengths[row])?,
                    part,
                    reason,
                    context: contexts[row],
                    by: thread(wakers[row]).filter(|waker| u64::from(waker.0) < self.rows.threads),
                };
                each(&stay, labels);
            }
            Ok(threads.len())
        })
    }

    /// Calls `each` for every interruption with its activities, whose times add up to its duration, in the order of their ends. Fails as
    /// [`Self::threads`].
    pub fn detours(
        &self,
        labels: &mut Labels,
        each: &mut dyn FnMut(&ThreadDetour, &[OwnedActivity], &Labels),
    ) -> Result<(), BundleError> {
        let mut detours: Vec<ThreadDetour> = Vec::new();
        let mut first = 0_usize;
        let segments = self.tables.segments(&THREAD_DETOURS)?;
        let mut counted = ObservedRows::default();
        for segment in 0..segments {
            detours.clear();
            self.tables.read_segment(&THREAD_DETOURS, segment, &mut |mut rows| {
                let (threads, cpus) = (rows.int32("thread")?, rows.int32("cpu")?);
                let (starts, lengths) = (rows.int64("start_ns")?, rows.int64("duration_ns")?);
                for row in 0..threads.len() {
                    detours.push(ThreadDetour {
                        thread: self.known(threads[row])?,
                        cpu: CpuId::new(u32::try_from(cpus[row]).unwrap_or(0)),
                        start: Nanos::new(starts[row]),
                        duration: length(starts[row], lengths[row])?,
                    });
                }
                Ok(())
            })?;
            let mut open = Vec::new();
            let mut place = 0;
            let mut pass = |place: usize, open: &mut Vec<OwnedActivity>, labels: &Labels| -> Result<(), String> {
                let detour = detours.get(place).ok_or("it has activities of no detour")?;
                if open.iter().map(|row: &OwnedActivity| row.time).sum::<Nanos>() != detour.duration {
                    return Err(format!("the activities of detour {} do not add up to it", first + place));
                }
                each(detour, open, labels);
                open.clear();
                Ok(())
            };
            self.tables.read_segment(&OWNED_ACTIVITIES, segment, &mut |mut rows| {
                let (numbers, times, visits) = (rows.int64("detour")?, rows.int64("self_ns")?, rows.int64("visits")?);
                let (owners, kinds) = (rows.names("owner")?, rows.names("kind")?);
                let (owners_by_key, kinds_by_key) = (by_key(&owners, named::<Owner>), by_key(&kinds, kind));
                let sources = interned(&rows.names("source")?, numbers.len(), labels);
                let takers = rows.int32("taker")?;
                counted.activities += numbers.len() as u64;
                for row in 0..numbers.len() {
                    let wanted = usize::try_from(numbers[row]).ok().and_then(|number| number.checked_sub(first));
                    let wanted = wanted.filter(|wanted| *wanted >= place);
                    let wanted =
                        wanted.ok_or_else(|| format!("activities of detour {} are not in order", numbers[row]))?;
                    while place < wanted {
                        pass(place, &mut open, labels)?;
                        place += 1;
                    }
                    let known = owners_by_key[owners.key(row)].zip(kinds_by_key[kinds.key(row)]);
                    let Some((owner, kind)) = known else {
                        return Err(format!("an activity is of '{}', '{}'", owners.name(row), kinds.name(row)));
                    };
                    open.push(OwnedActivity {
                        owner,
                        kind,
                        source: sources[row],
                        thread: thread(takers[row]).filter(|taker| u64::from(taker.0) < self.rows.threads),
                        time: length(0, times[row])?,
                        visits: u64::try_from(visits[row]).unwrap_or(0),
                    });
                }
                Ok(())
            })?;
            let rest = |why| BundleError::Table {
                path: self.tables.file(&OWNED_ACTIVITIES, segment),
                table: OWNED_ACTIVITIES.name,
                why,
            };
            while place < detours.len() {
                pass(place, &mut open, labels).map_err(&rest)?;
                place += 1;
            }
            first += detours.len();
        }
        counted.detours = first as u64;
        self.tables.check_count(&THREAD_DETOURS, counted.detours, self.rows.detours)?;
        self.tables.check_count(&OWNED_ACTIVITIES, counted.activities, self.rows.activities)
    }

    /// A thread of the table of threads.
    fn known(&self, number: i32) -> Result<ThreadId, String> {
        let known = thread(number).filter(|thread| u64::from(thread.0) < self.rows.threads);
        known.ok_or_else(|| format!("thread {number} is not in the table of threads"))
    }
}
