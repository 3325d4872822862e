//! Reading a bundle of recordings: documents at once, rows in batches.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::batch::RowBatch;
use super::decode::TableDecoder;
use super::density::Density;
use super::held::HeldFolder;
use super::names::SourcePool;
use super::nodes::LeftOut;
use super::order::{LoopTimes, RowOrder};
use super::schema::{ACTIVITIES, DETOURS, SAMPLES, Table};
use super::{ActivityBatch, BundleError, DetourBatch, SampleBatch, layout, nodes, whole};
use becalm_model::NodeDoc;

/// An open run bundle. It contains the nodes' documents; tables are read on demand.
#[derive(Debug)]
pub struct Bundle {
    /// The user's path of the directory.
    path: PathBuf,
    /// The path used for reading: the user's, or that of the open directory.
    reached: PathBuf,
    /// Keeps the directory open, and `reached` valid.
    _held: Option<Arc<HeldFolder>>,
    nodes: Vec<NodeDoc>,
    progress: ReadProgress,
    sources: SourcePool,
}

/// Counts the bytes read from a bundle's tables; clones share the count.
#[derive(Clone, Debug, Default)]
pub struct ReadProgress(Arc<AtomicU64>);

impl ReadProgress {
    /// The bytes of all segments read to their end; those read twice count twice.
    pub fn bytes(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl Bundle {
    /// Opens the bundle at `path`, or at `path` with [`SUFFIX`](super::SUFFIX) if there is nothing at `path`, and reads the documents of all nodes.
    /// The document of a running or killed recording has no end. Fails if there is no bundle, if it has no node or other contents than a recording,
    /// if a document is damaged or of another version, or if there are fewer rows than a document counts.
    pub fn open(path: &Path) -> Result<Self, BundleError> {
        let (path, documents) = nodes::open(path)?;
        let read = |(node, document): (&String, &PathBuf)| whole::read(&path, node, document);
        let nodes = documents.iter().map(read).collect::<Result<Vec<_>, _>>()?;
        let (progress, sources) = (ReadProgress::default(), SourcePool::default());
        Ok(Self { reached: path.clone(), path, _held: None, nodes, progress, sources })
    }

    /// The same, but if a bundle has several nodes, unreadable ones are left out, each with the reason.
    pub fn open_readable(path: &Path) -> Result<(Self, LeftOut), BundleError> {
        let (path, documents) = nodes::open(path)?;
        let (nodes, left_out) = nodes::readable(documents, |node, document| whole::read(&path, node, document))?;
        let (progress, sources) = (ReadProgress::default(), SourcePool::default());
        Ok((Self { reached: path.clone(), path, _held: None, nodes, progress, sources }, left_out))
    }

    /// Opens the part of one node, whose document is at `document`.
    pub(super) fn open_part(path: &Path, node: &str, document: &Path) -> Result<Self, BundleError> {
        let (progress, sources) = (ReadProgress::default(), SourcePool::default());
        let nodes = vec![whole::read(path, node, document)?];
        Ok(Self { reached: path.to_owned(), path: path.to_owned(), _held: None, nodes, progress, sources })
    }

    /// Opens the bundle in an open directory, which this process may no longer be able to reach by its path.
    pub fn open_held(held: Arc<HeldFolder>) -> Result<Self, BundleError> {
        let opened = Self::open(&held.own_path())?;
        Ok(Self { path: held.path().to_owned(), _held: Some(held), ..opened })
    }

    /// The bundle's directory, possibly with a suffix that the given path lacked.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The documents of the nodes, sorted by name; at least one.
    pub fn nodes(&self) -> &[NodeDoc] {
        &self.nodes
    }

    /// The bytes read so far.
    pub fn progress(&self) -> ReadProgress {
        self.progress.clone()
    }

    /// The bytes of all tables whose size can be determined.
    pub fn bytes(&self) -> u64 {
        self.bytes_of(&DETOURS).saturating_add(self.bytes_of(&ACTIVITIES)).saturating_add(self.bytes_of(&SAMPLES))
    }

    /// The bytes of the tables of detours only.
    pub fn detour_bytes(&self) -> u64 {
        self.bytes_of(&DETOURS)
    }

    fn bytes_of(&self, table: &Table) -> u64 {
        let folders = self.nodes.iter().map(|doc| layout::table_folder(&self.reached, table.name, &doc.node));
        let files = folders.filter_map(|folder| fs::read_dir(folder).ok()).flatten().flatten();
        files.filter_map(|file| file.metadata().ok()).map(|metadata| metadata.len()).sum()
    }

    /// The detours of a node, in batches. For a running recording, only the current segments. Fails if there is no such node, or one of its segments
    /// is missing.
    pub fn detours(&self, node: &str) -> Result<DetourBatches, BundleError> {
        let segments = self.count_segments(node, &DETOURS)?;
        let folder = layout::table_folder(&self.reached, DETOURS.name, node);
        let loops = self.nodes.iter().find(|doc| doc.node == node).map(LoopTimes::from_document).unwrap_or_default();
        Ok(DetourBatches(Batches { loops, ..Batches::new(folder, segments, self) }))
    }

    /// The samples of a node, in batches; empty unless it is a run of work. For a running recording, only the current segments. Fails if there is no
    /// such node, or one of its segments is missing.
    pub fn samples(&self, node: &str) -> Result<SampleBatches, BundleError> {
        let segments = self.count_segments(node, &SAMPLES)?;
        let folder = layout::table_folder(&self.reached, SAMPLES.name, node);
        Ok(SampleBatches(Batches::new(folder, segments, self)))
    }

    /// The activities of a node, in batches, for the same segments as the detours (or samples). Fails if there is no such node, or one of its
    /// segments is missing.
    pub fn activities(&self, node: &str) -> Result<ActivityBatches, BundleError> {
        let table = self.nodes.iter().find(|doc| doc.node == node).map_or(&DETOURS, main_table);
        let segments = self.count_segments(node, table)?;
        whole::check_activities(&self.reached, node, table, segments)?;
        let folder = layout::table_folder(&self.reached, ACTIVITIES.name, node);
        Ok(ActivityBatches(Batches::new(folder, segments, self)))
    }

    /// A segment counts if its detours exist; activities without them are from a killed writer.
    fn count_segments(&self, node: &str, table: &Table) -> Result<u32, BundleError> {
        if !self.nodes.iter().any(|doc| doc.node == node) {
            let nodes: Vec<&str> = self.nodes.iter().map(|doc| doc.node.as_str()).collect();
            return Err(BundleError::NoSuchNode {
                bundle: self.path.clone(),
                node: node.to_owned(),
                nodes: nodes.join(", "),
            });
        }
        layout::count_segments(&layout::table_folder(&self.reached, table.name, node))
    }
}

/// The table that determines the segments: samples for work, otherwise detours.
pub(super) fn main_table(doc: &NodeDoc) -> &'static Table {
    if doc.settings.work.is_some() { &SAMPLES } else { &DETOURS }
}

/// The detours of a node in batches. Ends after an error.
pub struct DetourBatches(Batches<DetourBatch>);

impl Iterator for DetourBatches {
    type Item = Result<DetourBatch, BundleError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.0.next()
    }
}

/// The samples of a node in batches. Ends after an error.
pub struct SampleBatches(Batches<SampleBatch>);

impl Iterator for SampleBatches {
    type Item = Result<SampleBatch, BundleError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.0.next()
    }
}

/// The activities of a node in batches. Ends after an error.
pub struct ActivityBatches(Batches<ActivityBatch>);

impl Iterator for ActivityBatches {
    type Item = Result<ActivityBatch, BundleError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.0.next()
    }
}

/// The batches of a table's segments.
struct Batches<B> {
    folder: PathBuf,
    segments: std::ops::Range<u32>,
    open: Option<Segment>,
    order: RowOrder,
    loops: LoopTimes,
    progress: ReadProgress,
    sources: SourcePool,
    /// The density of the segments opened so far.
    density: Density,
    /// Ties the batches to their table.
    kind: std::marker::PhantomData<fn() -> B>,
}

/// The segment being read.
struct Segment {
    number: u32,
    path: PathBuf,
    decoder: TableDecoder,
}

impl<B: RowBatch> Batches<B> {
    fn new(folder: PathBuf, segments: u32, bundle: &Bundle) -> Self {
        let (order, kind) = (RowOrder::default(), std::marker::PhantomData);
        let (progress, sources) = (bundle.progress(), bundle.sources.clone());
        let (density, loops) = (Density::default(), LoopTimes::default());
        Self { folder, segments: 0..segments, open: None, order, loops, progress, sources, density, kind }
    }

    fn next(&mut self) -> Option<Result<B, BundleError>> {
        let batch = self.advance().transpose();
        if matches!(batch, Some(Err(_))) {
            self.open = None;
            self.segments = 0..0;
        }
        batch
    }

    fn advance(&mut self) -> Result<Option<B>, BundleError> {
        loop {
            let segment = match &mut self.open {
                Some(segment) => segment,
                None => {
                    let Some(number) = self.segments.next() else { return Ok(None) };
                    let path = self.folder.join(layout::segment(number));
                    let decoder = TableDecoder::open(&path, B::TABLE, &self.sources)?;
                    let refuse = |why| BundleError::Table { path: path.clone(), table: B::TABLE.name, why };
                    self.density.add(decoder.density()).map_err(refuse)?;
                    self.order.begin_segment();
                    self.open.insert(Segment { number, path, decoder })
                }
            };
            let record = segment.decoder.next();
            let record = record.map_err(|cause| BundleError::parquet(&segment.path, &cause))?;
            let Some(record) = record else {
                let read = fs::metadata(&segment.path).map_or(0, |metadata| metadata.len());
                self.progress.0.fetch_add(read, Ordering::Relaxed);
                self.open = None;
                continue;
            };
            let (order, loops) = (&mut self.order, &self.loops);
            let batch = B::take(segment.number, record).and_then(|batch| {
                let (cpus, keys) = batch.order();
                order.check(segment.number, cpus, keys)?;
                loops.check(cpus, keys)?;
                Ok(batch)
            });
            return match batch {
                Ok(batch) => Ok(Some(batch)),
                Err(why) => Err(BundleError::Table { path: segment.path.clone(), table: B::TABLE.name, why }),
            };
        }
    }
}
