//! Observed threads as a bundle: the document of the crate `observe`, and tables.
//!
//! ```text
//! NAME.becalm/
//!   runs/node=HOST.json                the document
//!   threads/node=HOST/0000.parquet     thread i32, tid i32, process i32, parent i32, name, command, cgroup, start_ns i64, end_ns i64, chosen bool,
//!                                      kernel bool
//!   stays/node=HOST/0000.parquet       thread i32, cpu i32, start_ns i64, duration_ns i64, state, why, context, waker i32
//!   detours/node=HOST/0000.parquet     thread i32, cpu i32, start_ns i64, duration_ns i64
//!   activities/node=HOST/0000.parquet  detour i64, self_ns i64, visits i64, owner, kind, source, taker i32
//! ```
//!
//! `thread`, `parent`, `waker` and `taker` are numbers of the recording, -1 for none. The stays of a thread follow each other without gap or overlap. The rows of
//! each table are in the order of their ends.

use std::path::{Path, PathBuf};

use becalm_model::observed::{LifePart, OwnedActivity, Owner, Stay, ThreadDetour, ThreadId};
use becalm_model::{Kind, Label, Labels};
use becalm_units::Named;

use super::document::Stored;
use super::draft::Draft;
use super::encode::{self, Accessor, stored_cpu};
use super::place::{self, MadeFolders};
use super::schema::{OWNED_ACTIVITIES, STAYS, THREAD_DETOURS, THREADS, Table};
use super::{BundleError, document, draft, layout};

/// A row of the table of threads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ThreadRow {
    /// Its number in the recording.
    pub thread: i32,
    /// The kernel's number.
    pub tid: i32,
    /// The number of its process.
    pub process: i32,
    /// The thread that created it; -1 if that was not observed.
    pub parent: i32,
    /// Its name.
    pub name: Label,
    /// The command line of its process.
    pub command: Label,
    /// The path of its control group.
    pub group: Label,
    /// The start of its books or of its life, since the run's origin.
    pub start_ns: i64,
    /// The end.
    pub end_ns: i64,
    /// Whether it was observed; the others had the CPU meanwhile.
    pub chosen: bool,
    /// Whether it is a kernel thread.
    pub kernel: bool,
}

/// Writes a node's observed threads. If nothing was stored, dropping the writer leaves nothing behind.
#[derive(Debug)]
pub struct ObservedWriter {
    bundle: PathBuf,
    node: String,
    next_segment: u32,
    detours: u64,
    /// `None` once something is stored.
    made: Option<MadeFolders>,
}

/// The parts of a segment.
#[derive(Clone, Debug, Default)]
pub struct ObservedSegment {
    /// The stays that ended.
    pub stays: Vec<Stay>,
    /// The interruptions that ended.
    pub detours: Vec<ThreadDetour>,
    /// The activities of each interruption, in the same order, with its place in `detours`.
    pub activities: Vec<(usize, OwnedActivity)>,
}

impl ObservedSegment {
    /// The number of rows.
    pub const fn len(&self) -> usize {
        self.stays.len() + self.detours.len() + self.activities.len()
    }

    /// Whether there are no rows.
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl ObservedWriter {
    /// Creates the bundle, or joins that of other nodes, and writes the first document. Fails if the place is taken, its parent is missing, the
    /// document is invalid, or the system refuses. The place is then unchanged.
    pub fn create<D: Stored>(bundle: &Path, doc: &D) -> Result<Self, BundleError> {
        let made = place::create(bundle, doc)?;
        Ok(Self {
            bundle: bundle.to_owned(),
            node: doc.node().to_owned(),
            next_segment: 0,
            detours: 0,
            made: Some(made),
        })
    }

    /// The bundle's directory.
    pub fn path(&self) -> &Path {
        &self.bundle
    }

    /// Writes a segment. Fails if the system refuses. Panics on labels of another table than `labels`.
    pub fn write_segment(&mut self, segment: &ObservedSegment, labels: &Labels) -> Result<(), BundleError> {
        let ObservedSegment { stays, detours, activities } = segment;
        let texts = encode::stored_names(labels.iter());
        self.store(&STAYS, |draft| {
            let parts = encode::stored_names(LifePart::ALL.iter().map(|part| part.name()));
            let reasons = encode::stored_names(REASONS);
            let columns = [
                Accessor::Int32(|row: &Stay| number(Some(row.thread))),
                Accessor::Int32(|row| stored_cpu(row.cpu)),
                Accessor::Int64(|row| row.start.get()),
                Accessor::Int64(|row| row.duration.get()),
                Accessor::Names(|row| row.part as usize, &parts),
                Accessor::Names(|row| reason(row.reason.name()), &reasons),
                Accessor::Names(|row| row.context.index(), &texts),
                Accessor::Int32(|row| number(row.by)),
            ];
            encode::rows(draft, &STAYS, stays, &columns)
        })?;
        self.store(&THREAD_DETOURS, |draft| {
            let columns = [
                Accessor::Int32(|row: &ThreadDetour| number(Some(row.thread))),
                Accessor::Int32(|row| stored_cpu(row.cpu)),
                Accessor::Int64(|row| row.start.get()),
                Accessor::Int64(|row| row.duration.get()),
            ];
            encode::rows(draft, &THREAD_DETOURS, detours, &columns)
        })?;
        let before = self.detours;
        let numbered: Vec<(i64, OwnedActivity)> = activities
            .iter()
            .map(|(place, row)| (i64::try_from(before + *place as u64).unwrap_or(i64::MAX), *row))
            .collect();
        self.store(&OWNED_ACTIVITIES, |draft| {
            let owners = encode::stored_names(Owner::ALL.iter().map(|owner| owner.name()));
            let kinds = encode::stored_names(Kind::ALL.iter().map(|kind| kind.name()));
            let columns = [
                Accessor::Int64(|row: &(i64, OwnedActivity)| row.0),
                Accessor::Int64(|row| row.1.time.get()),
                Accessor::Int64(|row| i64::try_from(row.1.visits).unwrap_or(i64::MAX)),
                Accessor::Names(|row| row.1.owner as usize, &owners),
                Accessor::Names(|row| row.1.kind as usize, &kinds),
                Accessor::Names(|row| row.1.source.index(), &texts),
                Accessor::Int32(|row| number(row.1.thread)),
            ];
            encode::rows(draft, &OWNED_ACTIVITIES, &numbered, &columns)
        })?;
        self.detours += detours.len() as u64;
        self.next_segment += 1;
        Ok(())
    }

    /// Writes the threads, and the document for the last time. Fails if the document is invalid, or the system refuses.
    pub fn finish<D: Stored>(&mut self, doc: &D, threads: &[ThreadRow], labels: &Labels) -> Result<(), BundleError> {
        let texts = encode::stored_names(labels.iter());
        self.next_segment = 0;
        self.store(&THREADS, |draft| {
            let columns = [
                Accessor::Int32(|row: &ThreadRow| row.thread),
                Accessor::Int32(|row| row.tid),
                Accessor::Int32(|row| row.process),
                Accessor::Int32(|row| row.parent),
                Accessor::Names(|row| row.name.index(), &texts),
                Accessor::Names(|row| row.command.index(), &texts),
                Accessor::Names(|row| row.group.index(), &texts),
                Accessor::Int64(|row| row.start_ns),
                Accessor::Int64(|row| row.end_ns),
                Accessor::Flags(|row| row.chosen),
                Accessor::Flags(|row| row.kernel),
            ];
            encode::rows(draft, &THREADS, threads, &columns)
        })?;
        document::replace(&self.bundle, &self.node, doc)?;
        self.made.take().into_iter().for_each(MadeFolders::keep);
        Ok(())
    }

    fn store(&self, table: &Table, encode: impl FnOnce(&Draft) -> Result<(), BundleError>) -> Result<(), BundleError> {
        let folder = layout::table_folder(&self.bundle, table.name, &self.node);
        let mut made = MadeFolders::new(&self.bundle);
        made.make(&self.bundle.join(table.name))?;
        made.make(&folder)?;
        let draft = Draft::for_bundle(&self.bundle, folder.join(layout::segment(self.next_segment)))?;
        encode(&draft)?;
        draft.sync()?;
        draft.publish()?;
        made.keep();
        Ok(())
    }
}

/// A thread's number as stored.
fn number(thread: Option<ThreadId>) -> i32 {
    thread.and_then(|thread| i32::try_from(thread.0).ok()).unwrap_or(-1)
}

/// The names of reasons, in the order of [`reason`].
const REASONS: [&str; 12] = ["", "preempted", "woken", "new", "?", "S", "D", "T", "t", "I", "P", "X"];

fn reason(name: &str) -> usize {
    REASONS.iter().position(|known| *known == name).unwrap_or(0)
}

impl Drop for ObservedWriter {
    fn drop(&mut self) {
        if self.made.is_some() {
            for table in [&THREADS, &STAYS, &THREAD_DETOURS, &OWNED_ACTIVITIES] {
                let folder = layout::table_folder(&self.bundle, table.name, &self.node);
                for segment in 0..=self.next_segment {
                    draft::remove(&self.bundle, &folder.join(layout::segment(segment)));
                }
                let _ = std::fs::remove_dir(&folder);
                let _ = std::fs::remove_dir(self.bundle.join(table.name));
            }
            // A leftover document would block the place for others.
            draft::remove(&self.bundle, &layout::document(&self.bundle, &self.node));
        }
    }
}
