//! One node's part of a bundle, while it is recorded.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::contents::Contents;
use super::draft::{Draft, Reserve};
use super::encode::{self, Counts, LabeledActivities, SegmentDetours};
use super::held::HeldFolder;
use super::order::RowOrder;
use super::place::{MadeFolders, make_bundle};
use super::reader::main_table;
use super::schema::{ACTIVITIES, DETOURS, SAMPLES, Table};
use super::{Bundle, BundleError, document, draft, layout, whole};
use becalm_model::node::StoredRows;
use becalm_model::{Activity, Detour, Labels, NodeDoc, Sample};

/// Writes one node's part of a bundle.
///
/// All that was written stays readable whatever happens to the writer. It holds some space on the disk for the
/// closing document until it is dropped or the process dies.
pub struct BundleWriter {
    held: Arc<HeldFolder>,
    node: String,
    /// The table whose segments count.
    main: &'static Table,
    next_segment: u32,
    /// How many detours (or samples) each CPU has in the segments written so far.
    counts: Counts,
    /// How many activities these hold.
    activities: u64,
    rows_order: RowOrder,
    activities_order: RowOrder,
    reserve: Option<Reserve>,
    bytes_written: u64,
}

impl BundleWriter {
    /// Makes the bundle, or joins the one that other nodes have made, and writes the node's document at once. Fails if
    /// `path` is a file or a folder of something else, if its parent is missing, if the bundle holds a recording of
    /// this node already, if the node's name or document is not valid, and if the system refuses: a disk that is
    /// read-only or full. The place is then left as it was.
    pub fn create(path: &Path, doc: &NodeDoc) -> Result<Self, BundleError> {
        layout::check_node_name(&doc.node)?;
        let mut made = MadeFolders::new(path);
        make_bundle(path, Contents::Recording, &mut made)?;
        let held = HeldFolder::open(path).map_err(BundleError::io("open the folder", path))?;
        let mut writer = Self {
            held: Arc::new(held),
            node: doc.node.clone(),
            main: main_table(doc),
            next_segment: 0,
            counts: Counts::default(),
            activities: 0,
            rows_order: RowOrder::default(),
            activities_order: RowOrder::default(),
            reserve: None,
            bytes_written: 0,
        };
        for table in [writer.main, &ACTIVITIES] {
            let folder = writer.folder(table);
            made.make(&path.join(table.name))?;
            made.make(&folder)?;
            if layout::count_segments(&folder)? > 0 {
                return Err(writer.recorded(&folder));
            }
        }
        let target = layout::document(path, &doc.node);
        writer.reserve = Some(Reserve::new(&writer.held, &target, reserved_bytes(doc))?);
        let (draft, size) = document::write(&writer.held, &target, &writer.counted(doc))?;
        if !draft.publish_new()? {
            // Whoever was faster needs the folders, whoever made them.
            made.keep();
            return Err(writer.recorded(&target));
        }
        writer.bytes_written = size;
        made.keep();
        Ok(writer)
    }

    /// Goes on with a run of work that this node recorded into the bundle before, whether it ended or was killed: what
    /// is written from now on comes behind its segments. `doc` replaces its document. Fails if there is no such run, or
    /// it cannot be read, and if the system refuses. An existing document stays unchanged.
    pub fn resume(path: &Path, doc: &NodeDoc) -> Result<Self, BundleError> {
        let bundle = Bundle::open(path)?;
        let main = main_table(doc);
        let (mut counts, mut rows_order) = (Counts::default(), RowOrder::default());
        let mut segment = None;
        for batch in bundle.samples(&doc.node)? {
            let batch = batch?;
            if segment != Some(batch.segment()) {
                rows_order.begin_segment();
                segment = Some(batch.segment());
            }
            rows_order.pass(batch.segment(), batch.cpus(), batch.starts());
            counts.add(batch.cpus());
        }
        let path = bundle.path();
        let target = layout::document(path, &doc.node);
        let held = Arc::new(HeldFolder::open(path).map_err(BundleError::io("open the folder", path))?);
        let next_segment = layout::count_segments(&layout::table_folder(path, main.name, &doc.node))?;
        let mut writer = Self {
            reserve: Some(Reserve::new(&held, &target, reserved_bytes(doc))?),
            held,
            node: doc.node.clone(),
            main,
            next_segment,
            counts,
            activities: whole::count(path, &doc.node, &ACTIVITIES, next_segment)?,
            rows_order,
            // That they go on behind those of the segments before follows from the numbers of their samples.
            activities_order: RowOrder::default(),
            bytes_written: 0,
        };
        writer.write_doc(doc)?;
        Ok(writer)
    }

    /// Writes a segment: detours, and the activities that they are split over.
    ///
    /// Within the segment the rows of one CPU stand together, in order of time, and go on where those of the segment
    /// before ended. Each activity belongs to a detour of the same segment. Fails if the rows are not as said here, and
    /// if the system refuses. Nothing of the segment remains then, those before stay as they are, and another attempt
    /// may follow. Panics on labels of another table than `labels`.
    pub fn write_segment(
        &mut self,
        detours: &[Detour],
        activities: &[Activity],
        labels: &Labels,
    ) -> Result<(), BundleError> {
        self.write_parts(&[detours], &[activities], labels, &mut || {})
    }

    /// The same of rows that stand in several places, one behind the other. `pause` is called after every small portion of the
    /// work, well below a millisecond apart, but for what the disk takes; it may sleep.
    pub fn write_parts(
        &mut self,
        detours: &[&[Detour]],
        activities: &[&[Activity]],
        labels: &Labels,
        pause: &mut dyn FnMut(),
    ) -> Result<(), BundleError> {
        self.write(
            &DETOURS,
            LabeledActivities { rows: activities, labels },
            pause,
            |draft, segment, order, counts, pause| encode::detours(draft, segment, detours, order, counts, pause),
        )
    }

    /// Writes a segment of a run of work: samples, and the activities that fell in them.
    ///
    /// Order, errors and panics are those of [`Self::write_segment`], with samples in the place of detours.
    pub fn write_samples(
        &mut self,
        samples: &[Sample],
        activities: &[Activity],
        labels: &Labels,
    ) -> Result<(), BundleError> {
        self.write_sample_parts(&[samples], &[activities], labels, &mut || {})
    }

    /// Writes samples as [`Self::write_parts`] writes detours.
    pub fn write_sample_parts(
        &mut self,
        samples: &[&[Sample]],
        activities: &[&[Activity]],
        labels: &Labels,
        pause: &mut dyn FnMut(),
    ) -> Result<(), BundleError> {
        self.write(
            &SAMPLES,
            LabeledActivities { rows: activities, labels },
            pause,
            |draft, segment, order, counts, pause| encode::samples(draft, segment, samples, order, counts, pause),
        )
    }

    fn write(
        &mut self,
        table: &'static Table,
        activities: LabeledActivities<'_>,
        pause: &mut dyn FnMut(),
        encode_rows: impl FnOnce(&Draft, u32, &mut RowOrder, &mut Counts, &mut dyn FnMut()) -> Result<(), BundleError>,
    ) -> Result<(), BundleError> {
        let segment = self.next_segment;
        let path = self.folder(table).join(layout::segment(segment));
        if table.name != self.main.name {
            let why = format!("this run is one of {}", self.main.name);
            return Err(BundleError::Table { path, table: table.name, why });
        }
        let mut counts = self.counts.clone();
        let mut rows_order = self.rows_order.clone();
        let mut activities_order = self.activities_order.clone();

        let rows_draft = Draft::for_held(&self.held, path)?;
        encode_rows(&rows_draft, segment, &mut rows_order, &mut counts, pause)?;
        let activities_path = self.folder(&ACTIVITIES).join(layout::segment(segment));
        let activities_draft = Draft::for_held(&self.held, activities_path.clone())?;
        let detours = SegmentDetours { before: &self.counts, after: &counts };
        encode::activities(&activities_draft, segment, activities, &mut activities_order, detours, pause)?;
        pause();
        let activity_bytes = activities_draft.sync()?;
        pause();
        let bytes = activity_bytes + rows_draft.sync()?;
        pause();

        activities_draft.publish()?;
        if let Err(error) = rows_draft.publish() {
            // They do not count without their detours, and the next attempt would replace them.
            draft::remove_below(&self.held, &activities_path);
            return Err(error);
        }

        self.next_segment += 1;
        self.counts = counts;
        self.activities += activities.rows.iter().map(|part| part.len() as u64).sum::<u64>();
        self.rows_order = rows_order;
        self.activities_order = activities_order;
        self.bytes_written += bytes;
        Ok(())
    }

    /// Replaces the node's document. On a full disk the space that was held for it is used. Fails if the document is
    /// not valid or of another node, and if the system refuses. The former document stays then.
    pub fn write_doc(&mut self, doc: &NodeDoc) -> Result<(), BundleError> {
        match self.note_doc(doc) {
            Err(error) if error.is_full() && self.reserve.take().is_some() => self.note_doc(doc),
            written => written,
        }
    }

    /// Likewise, of a recording that goes on: it leaves the room that is kept for the last document alone.
    pub fn note_doc(&mut self, doc: &NodeDoc) -> Result<(), BundleError> {
        let target = layout::document(self.path(), &self.node);
        if doc.node != self.node {
            let why = format!("it is of node '{}'", doc.node);
            return Err(BundleError::document(&target, why));
        }
        let (draft, size) = document::write(&self.held, &target, &self.counted(doc))?;
        draft.publish()?;
        self.bytes_written += size;
        Ok(())
    }

    /// The document with what was stored so far.
    fn counted(&self, doc: &NodeDoc) -> NodeDoc {
        let stored = StoredRows { rows: self.counts.rows(), activities: self.activities };
        NodeDoc { stored: Some(stored), ..doc.clone() }
    }

    /// The folder into which the bundle is written.
    pub fn path(&self) -> &Path {
        self.held.path()
    }

    /// The bundle's folder as it is held open, by which [`Bundle::open_held`] reads what was written.
    pub fn held(&self) -> Arc<HeldFolder> {
        Arc::clone(&self.held)
    }

    /// How many bytes were written, among them those of documents that were replaced since.
    pub const fn bytes_written(&self) -> u64 {
        self.bytes_written
    }

    fn folder(&self, table: &Table) -> PathBuf {
        layout::table_folder(self.path(), table.name, &self.node)
    }

    fn recorded(&self, existing: &Path) -> BundleError {
        BundleError::recorded(self.path(), &self.node, existing)
    }
}

/// How much space to hold for the closing document, which says more than the first one: 16 KiB a CPU is ten times
/// what a CPU with all of its counters takes.
fn reserved_bytes(doc: &NodeDoc) -> usize {
    (doc.cpus.len().max(doc.machine.online.len()) + 4) << 14
}
