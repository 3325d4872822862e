//! Writes the tables of observed threads.

use std::path::{Path, PathBuf};

use becalm_model::cause::Cause;
use becalm_model::observed::{LifePart, ObservedRows, OwnedActivity, Owner, Stay, ThreadDetour};
use becalm_model::{Kind, Labels};
use becalm_units::Named;

use super::{ObservedSegment, REASONS, ThreadRow, number, reason};
use crate::document::Stored;
use crate::draft::Draft;
use crate::encode::{self, Accessor, stored_cpu};
use crate::place::{self, MadeFolders};
use crate::schema::{CAUSES, OWNED_ACTIVITIES, STAYS, THREAD_DETOURS, THREADS, Table};
use crate::{BundleError, document, draft, layout};

/// Writes a node's observed threads. If nothing was stored, dropping the writer leaves nothing behind.
#[derive(Debug)]
pub struct ObservedWriter {
    bundle: PathBuf,
    node: String,
    next_segment: u32,
    cause_segments: u32,
    rows: ObservedRows,
    /// `None` once something is stored.
    made: Option<MadeFolders>,
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
            cause_segments: 0,
            rows: ObservedRows::default(),
            made: Some(made),
        })
    }

    /// The bundle's directory.
    pub fn path(&self) -> &Path {
        &self.bundle
    }

    /// The rows written so far.
    pub const fn rows(&self) -> ObservedRows {
        self.rows
    }

    /// Writes a segment. Fails if the system refuses. Panics on labels of another table than `labels`.
    pub fn write_segment(&mut self, segment: &ObservedSegment, labels: &Labels) -> Result<(), BundleError> {
        let ObservedSegment { stays, detours, activities } = segment;
        let texts = encode::stored_names(labels.iter());
        self.store(&STAYS, self.next_segment, |draft| {
            let parts = encode::stored_names(LifePart::ALL.iter().map(|part| part.name()));
            let reasons = encode::stored_names(REASONS);
            let columns = [
                Accessor::Int32(|row: &Stay| number(Some(row.thread))),
                Accessor::Int32(|row| stored_cpu(row.cpu)),
                Accessor::Int64(|row| row.start.get()),
                Accessor::Int64(|row| row.duration.get()),
                Accessor::Names(|row| row.part as usize, &parts),
                Accessor::Names(|row| reason(row.reason), &reasons),
                Accessor::Names(|row| row.context.index(), &texts),
                Accessor::Int32(|row| number(row.by)),
            ];
            encode::rows(draft, &STAYS, stays, &columns)
        })?;
        self.store(&THREAD_DETOURS, self.next_segment, |draft| {
            let columns = [
                Accessor::Int32(|row: &ThreadDetour| number(Some(row.thread))),
                Accessor::Int32(|row| stored_cpu(row.cpu)),
                Accessor::Int64(|row| row.start.get()),
                Accessor::Int64(|row| row.duration.get()),
            ];
            encode::rows(draft, &THREAD_DETOURS, detours, &columns)
        })?;
        let before = self.rows.detours;
        let numbered: Vec<(i64, OwnedActivity)> = activities
            .iter()
            .map(|(place, row)| (i64::try_from(before + *place as u64).unwrap_or(i64::MAX), *row))
            .collect();
        self.store(&OWNED_ACTIVITIES, self.next_segment, |draft| {
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
        self.rows.stays += stays.len() as u64;
        self.rows.detours += detours.len() as u64;
        self.rows.activities += activities.len() as u64;
        self.next_segment += 1;
        Ok(())
    }

    /// Writes a segment of the table of causes. Fails if the system refuses. Panics on labels of another table than `labels`.
    pub fn write_causes(&mut self, causes: &[Cause], labels: &Labels) -> Result<(), BundleError> {
        self.store(&CAUSES, self.cause_segments, |draft| encode::causes(draft, causes, labels))?;
        self.cause_segments += 1;
        Ok(())
    }

    /// Writes the threads, and the document for the last time, which tells the rows of all tables. Fails if the document is invalid, or the system
    /// refuses.
    pub fn finish<D: Stored>(&mut self, doc: &D, threads: &[ThreadRow], labels: &Labels) -> Result<(), BundleError> {
        let texts = encode::stored_names(labels.iter());
        self.store(&THREADS, 0, |draft| {
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

    fn store(
        &self,
        table: &Table,
        segment: u32,
        encode: impl FnOnce(&Draft) -> Result<(), BundleError>,
    ) -> Result<(), BundleError> {
        let folder = layout::table_folder(&self.bundle, table.name, &self.node);
        let mut made = MadeFolders::new(&self.bundle);
        made.make(&self.bundle.join(table.name))?;
        made.make(&folder)?;
        let draft = Draft::for_bundle(&self.bundle, folder.join(layout::segment(segment)))?;
        encode(&draft)?;
        draft.sync()?;
        draft.publish()?;
        made.keep();
        Ok(())
    }
}

impl Drop for ObservedWriter {
    fn drop(&mut self) {
        if self.made.is_some() {
            for table in [&THREADS, &STAYS, &THREAD_DETOURS, &OWNED_ACTIVITIES, &CAUSES] {
                let folder = layout::table_folder(&self.bundle, table.name, &self.node);
                for segment in 0..=self.next_segment.max(self.cause_segments) {
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
