//! Recordings in summary form, one document per node; and sequential reading of the nodes of any recording.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use becalm_model::NodeDoc;
use becalm_model::digest::DigestDoc;

use super::contents::Contents;
use super::draft::Reserve;
use super::held::HeldFolder;
use super::nodes::LeftOut;
use super::place::{MadeFolders, make_bundle};
use super::{Bundle, BundleError, document, layout, nodes};

/// The space reserved for the closing document, in bytes per CPU: more than most CPUs need.
const RESERVED_A_CPU: usize = 64 << 10;

/// A bundle of recordings in summary form, with the documents of all its nodes.
#[derive(Debug)]
pub struct SummaryBundle {
    path: PathBuf,
    nodes: Vec<DigestDoc>,
    _held: Option<Arc<HeldFolder>>,
}

impl SummaryBundle {
    /// Reads the documents of the bundle at `path`, or at `path` with [`SUFFIX`](super::SUFFIX) if there is nothing at `path`. Fails if there is no
    /// bundle, if it has no node or other contents, or if a document is damaged or of another version.
    pub fn open(path: &Path) -> Result<Self, BundleError> {
        let (path, documents) = nodes::open(path)?;
        let nodes = documents.iter().map(|(node, path)| document::read(path, node)).collect::<Result<Vec<_>, _>>()?;
        Ok(Self { path, nodes, _held: None })
    }

    /// The same, but if a bundle has several nodes, unreadable ones are left out, each with the reason.
    pub fn open_readable(path: &Path) -> Result<(Self, LeftOut), BundleError> {
        let (path, documents) = nodes::open(path)?;
        let (nodes, left_out) = nodes::readable(documents, |node, path| document::read(path, node))?;
        Ok((Self { path, nodes, _held: None }, left_out))
    }

    /// Reads the bundle in an open directory, like [`Bundle::open_held`].
    pub fn open_held(held: Arc<HeldFolder>) -> Result<Self, BundleError> {
        let opened = Self::open(&held.own_path())?;
        Ok(Self { path: held.path().to_owned(), _held: Some(held), ..opened })
    }

    /// The bundle's directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The documents, sorted by node; at least one.
    pub fn nodes(&self) -> &[DigestDoc] {
        &self.nodes
    }
}

/// Writes one node's recording in summary form, the whole document each time.
pub struct SummaryWriter {
    held: Arc<HeldFolder>,
    target: PathBuf,
    reserve: Option<Reserve>,
    bytes_written: u64,
}

impl SummaryWriter {
    /// Creates the bundle, or joins that of other nodes, and writes the node's document at once.
    pub fn create(path: &Path, doc: &DigestDoc) -> Result<Self, BundleError> {
        let node = &doc.run.node;
        layout::check_node_name(node)?;
        let mut made = MadeFolders::new(path);
        make_bundle(path, Contents::Summary, &mut made)?;
        let held = Arc::new(HeldFolder::open(path).map_err(BundleError::io("open the directory", path))?);
        let target = layout::document(path, node);
        let reserve = Reserve::new(&held, &target, (doc.cpus.len() + 1) * RESERVED_A_CPU)?;
        let (draft, bytes_written) = document::write(&held, &target, doc)?;
        if !draft.publish_new()? {
            // The faster writer needs the directories, even if this one created them.
            made.keep();
            return Err(BundleError::recorded(path, node, &target));
        }
        made.keep();
        Ok(Self { held, target, reserve: Some(reserve), bytes_written })
    }

    /// Replaces the document of a running recording; the space reserved for the last one stays. Fails if the document is invalid, or the system
    /// refuses. The previous document then stays.
    pub fn note(&mut self, doc: &DigestDoc) -> Result<(), BundleError> {
        let (draft, size) = document::write(&self.held, &self.target, doc)?;
        draft.publish()?;
        self.bytes_written += size;
        Ok(())
    }

    /// Replaces the document for the last time, using the reserved space if the disk is full.
    pub fn close(&mut self, doc: &DigestDoc) -> Result<(), BundleError> {
        match self.note(doc) {
            Err(error) if error.is_full() && self.reserve.take().is_some() => self.note(doc),
            written => written,
        }
    }

    /// The bundle's open directory.
    pub fn held(&self) -> Arc<HeldFolder> {
        Arc::clone(&self.held)
    }

    /// The number of bytes written, including documents that were replaced since.
    pub const fn bytes_written(&self) -> u64 {
        self.bytes_written
    }
}

/// The nodes of a bundle of recordings in any form, read one after another: with thousands of nodes, not even all documents fit into memory.
#[derive(Debug)]
pub struct StoredNodes {
    path: PathBuf,
    documents: BTreeMap<String, PathBuf>,
}

/// A node's recording.
#[derive(Debug)]
pub enum StoredNode {
    /// A complete recording: a bundle with this node alone.
    Full(Bundle),
    /// A recording in summary form.
    Summary(Box<DigestDoc>),
}

impl StoredNode {
    /// The document of the recording.
    pub fn doc(&self) -> &NodeDoc {
        match self {
            Self::Full(bundle) => &bundle.nodes()[0],
            Self::Summary(digest) => &digest.run,
        }
    }
}

impl StoredNodes {
    /// Finds the nodes of the bundle at `path`, or at `path` with [`SUFFIX`](super::SUFFIX), without reading any document. Fails if there is no
    /// bundle, or it has no node.
    pub fn open(path: &Path) -> Result<Self, BundleError> {
        let (path, documents) = nodes::open(path)?;
        Ok(Self { path, documents })
    }

    /// The bundle's directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The names of the nodes, sorted; at least one.
    pub fn names(&self) -> impl ExactSizeIterator<Item = &str> {
        self.documents.keys().map(String::as_str)
    }

    /// Whether any of them is in summary form. Only reads the start of each document.
    pub fn has_summaries(&self) -> Result<bool, BundleError> {
        for path in self.documents.values() {
            if document::begins_as::<DigestDoc>(path)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Reads the document of a node. Fails if there is no such node, or if its document cannot be read, is damaged, of another version, or not of a
    /// recording.
    pub fn read(&self, node: &str) -> Result<StoredNode, BundleError> {
        let Some(path) = self.documents.get(node) else {
            return Err(BundleError::NoSuchNode {
                bundle: self.path.clone(),
                node: node.to_owned(),
                nodes: self.names().collect::<Vec<_>>().join(", "),
            });
        };
        let text = document::read_text(path)?;
        match document::contents_of(path, &text)? {
            Contents::Summary => Ok(StoredNode::Summary(Box::new(document::parse(path, node, &text)?))),
            _ => Ok(StoredNode::Full(Bundle::open_part(&self.path, node, path)?)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use becalm_model::digest::{SCHEMA, SLOT_NS};
    use becalm_model::node;

    use super::*;

    fn digest(node: &str) -> DigestDoc {
        let run = NodeDoc {
            schema: node::SCHEMA.to_owned(),
            node: node.to_owned(),
            program: "becalm 0.1.0".to_owned(),
            origin: Some("2026-01-01T00:00:00Z".parse().unwrap()),
            ended: None,
            machine: node::MachineDoc::default(),
            clock: node::ClockDoc::default(),
            settings: node::SettingsDoc::default(),
            rung: node::Rung::Loop,
            cpus: Vec::new(),
            tracing: None,
            stored: None,
            counters: Vec::new(),
            warnings: Vec::new(),
        };
        let (cpus, moments) = (Vec::new(), Vec::new());
        DigestDoc { schema: SCHEMA.to_owned(), run, slot_ns: SLOT_NS, first_slot: 0, slots: 0, cpus, moments }
    }

    #[test]
    fn what_is_written_is_read_again_and_not_as_anything_else() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("site.becalm");
        let mut writer = SummaryWriter::create(&path, &digest("n1")).unwrap();
        SummaryWriter::create(&path, &digest("n0")).unwrap();
        let mut ended = digest("n1");
        ended.run.ended = Some(node::Ended::Duration);
        writer.close(&ended).unwrap();
        assert!(SummaryWriter::create(&path, &digest("n1")).is_err_and(|error| error.to_string().contains("n1")));
        let bundle = SummaryBundle::open(&folder.path().join("site")).unwrap();
        assert_eq!(bundle.nodes(), [digest("n0"), ended.clone()]);
        let nodes = StoredNodes::open(&path).unwrap();
        assert_eq!(nodes.names().collect::<Vec<_>>(), ["n0", "n1"]);
        assert!(matches!(nodes.read("n1").unwrap(), StoredNode::Summary(read) if *read == ended));
        let error = Bundle::open(&path).unwrap_err().to_string();
        assert!(
            error.contains("holds a recording in summary form and not a recording with its single detours"),
            "{error}"
        );
        let error = super::super::BundleWriter::create(&path, &ended.run).err().unwrap().to_string();
        assert!(error.contains("summary form"), "{error}");
    }

    #[test]
    fn documents_that_cannot_be_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("site.becalm");
        drop(SummaryWriter::create(&path, &digest("n0")).unwrap());
        let file = path.join("runs/node=n0.json");
        let text = fs::read_to_string(&file).unwrap();
        for (old, new, why) in [
            ("becalm.run-summary/1", "becalm.run-summary/2", "becalm.run-summary/2"),
            ("\"slots\":0", "\"slots\":9000", "9000 slots"),
            ("\"slot_ns\":16777216", "\"slot_ns\":5", "5 ns"),
            ("\"first_slot\":0", "\"first_slot\":9223372036854775807", "outside of all time"),
        ] {
            fs::write(&file, text.replace(old, new)).unwrap();
            let error = SummaryBundle::open(&path).unwrap_err().to_string();
            assert!(error.contains(why), "{error}");
        }
    }
}
