//! Writer of one node's part of a bundle during a recording.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::contents::Contents;
use super::draft::{Draft, Reserve};
use super::encode::{self, Counts, LabeledActivities, SegmentDetours};
use super::held::HeldFolder;
use super::order::RowOrder;
use super::place::{MadeFolders, make_bundle};
use super::reader::main_table;
use super::schema::{ACTIVITIES, CAUSES, DETOURS, SAMPLES, Table};
use super::{Bundle, BundleError, document, draft, layout, whole};
use becalm_model::cause::Cause;
use becalm_model::node::StoredRows;
use becalm_model::{Activity, Detour, Labels, NodeDoc, Sample};

/// Writes one node's part of a bundle.
///
/// Everything written stays readable whatever happens to the writer. It reserves disk space for the closing document until it is dropped or the
/// process dies.
pub struct BundleWriter {
    held: Arc<HeldFolder>,
    node: String,
    /// The table that determines the segments.
    main: &'static Table,
    next_segment: u32,
    /// The number of detours (or samples) of each CPU in the segments written so far.
    counts: Counts,
    /// The number of activities in these segments.
    activities: u64,
    rows_order: RowOrder,
    activities_order: RowOrder,
    cause_segments: u32,
    reserve: Option<Reserve>,
    bytes_written: u64,
}

impl BundleWriter {
    /// Creates the bundle, or joins that of other nodes, and writes the node's document at once. Fails if `path` is a file or a directory of
    /// something else, if its parent is missing, if the bundle already has a recording of this node, if the node's name or document is invalid, or if
    /// the system refuses: a disk that is read-only or full. The place is then unchanged.
    pub fn create(path: &Path, doc: &NodeDoc) -> Result<Self, BundleError> {
        layout::check_node_name(&doc.node)?;
        let mut made = MadeFolders::new(path);
        make_bundle(path, Contents::Recording, &mut made)?;
        let held = HeldFolder::open(path).map_err(BundleError::io("open the directory", path))?;
        let mut writer = Self {
            held: Arc::new(held),
            node: doc.node.clone(),
            main: main_table(doc),
            next_segment: 0,
            counts: Counts::default(),
            activities: 0,
            rows_order: RowOrder::default(),
            activities_order: RowOrder::default(),
            cause_segments: 0,
            reserve: None,
            bytes_written: 0,
        };
        let causes = doc.tracing.as_ref().and_then(|tracing| tracing.causes.as_ref()).map(|_| &CAUSES);
        for table in [Some(writer.main), Some(&ACTIVITIES), causes].into_iter().flatten() {
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
            // The faster writer needs the directories, even if this one created them.
            made.keep();
            return Err(writer.recorded(&target));
        }
        writer.bytes_written = size;
        made.keep();
        Ok(writer)
    }

    /// Continues a run of work that this node recorded into the bundle, whether it ended or was killed: new segments follow the existing ones. `doc`
    /// replaces its document. Fails if there is no such run, it cannot be read, or the system refuses. An existing document is then unchanged.
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
        let held = Arc::new(HeldFolder::open(path).map_err(BundleError::io("open the directory", path))?);
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
            // The numbers of their samples imply that they follow the earlier segments.
            activities_order: RowOrder::default(),
            cause_segments: 0,
            bytes_written: 0,
        };
        writer.write_doc(doc)?;
        Ok(writer)
    }

    /// Writes a segment: detours and the activities in them.
    ///
    /// Within the segment, the rows of one CPU are consecutive and in order of time, after those of the previous segment. Each activity belongs to a
    /// detour of the same segment. Fails if the rows violate this, or if the system refuses. Nothing of the segment remains then, earlier ones are
    /// unchanged, and the caller may retry. Panics on labels of another table than `labels`.
    pub fn write_segment(
        &mut self,
        detours: &[Detour],
        activities: &[Activity],
        labels: &Labels,
    ) -> Result<(), BundleError> {
        self.write_parts(&[detours], &[activities], labels, &mut || {})
    }

    /// The same for rows in several slices. `pause` is called after every small portion of the work, well below a millisecond apart except for disk
    /// time; it may sleep.
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

    /// Writes a segment of a run of work: samples and the activities in them.
    ///
    /// Order, errors and panics are those of [`Self::write_segment`], with samples instead of detours.
    pub fn write_samples(
        &mut self,
        samples: &[Sample],
        activities: &[Activity],
        labels: &Labels,
    ) -> Result<(), BundleError> {
        self.write_sample_parts(&[samples], &[activities], labels, &mut || {})
    }

    /// Writes samples like [`Self::write_parts`] writes detours.
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

    /// Writes a segment of the table of causes, which the first document must have announced. Fails if the system refuses. Panics on labels of another
    /// table than `labels`.
    pub fn write_causes(&mut self, causes: &[Cause], labels: &Labels) -> Result<(), BundleError> {
        let path = self.folder(&CAUSES).join(layout::segment(self.cause_segments));
        let draft = Draft::for_held(&self.held, path)?;
        encode::causes(&draft, causes, labels)?;
        self.bytes_written += draft.sync()?;
        draft.publish()?;
        self.cause_segments += 1;
        Ok(())
    }

    /// Replaces the node's document, using the reserved space if the disk is full. Fails if the document is invalid or of another node, or if the
    /// system refuses. The previous document then stays.
    pub fn write_doc(&mut self, doc: &NodeDoc) -> Result<(), BundleError> {
        match self.note_doc(doc) {
            Err(error) if error.is_full() && self.reserve.take().is_some() => self.note_doc(doc),
            written => written,
        }
    }

    /// The same for a running recording: keeps the space reserved for the last document.
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

    /// The document with the counts of stored rows.
    fn counted(&self, doc: &NodeDoc) -> NodeDoc {
        let stored = StoredRows { rows: self.counts.rows(), activities: self.activities };
        NodeDoc { stored: Some(stored), ..doc.clone() }
    }

    /// The bundle's directory.
    pub fn path(&self) -> &Path {
        self.held.path()
    }

    /// The bundle's open directory; [`Bundle::open_held`] uses it to read the written data.
    pub fn held(&self) -> Arc<HeldFolder> {
        Arc::clone(&self.held)
    }

    /// The number of bytes written, including documents that were replaced since.
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

/// The space to reserve for the closing document, which is longer than the first one: 16 KiB per CPU is ten times what a CPU with all of its counters
/// takes.
fn reserved_bytes(doc: &NodeDoc) -> usize {
    (doc.cpus.len().max(doc.machine.online.len()) + 4) << 14
}
