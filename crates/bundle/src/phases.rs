//! A parallel benchmark as a bundle: the document of [`PhasesDoc`], and the phases of the node's ranks as a table.
//!
//! ```text
//! NAME.becalm/
//!   runs/node=HOST.json             the document
//!   phases/node=HOST/0000.parquet   rank i32, start_ns i64, compute_ns i64, collective_ns i64
//! ```
//!
//! The rows of a rank are consecutive, phase by phase, with ranks in ascending order; every rank has the number of phases given in the document.
//! Times are from the node's own clock.

use std::path::{Path, PathBuf};

use super::decode::TableDecoder;
use super::names::SourcePool;
use super::node_part::{NodePart, table_path};
use super::nodes::open;
use super::phase::Phase;
use super::schema::PHASES;
use super::{BundleError, document, encode};
use becalm_model::phases::{LONGEST_NS, PhasesDoc};

/// A parallel benchmark, from the documents of its nodes.
#[derive(Clone, PartialEq, Debug)]
pub struct PhaseRun {
    bundle: PathBuf,
    /// The documents, by the name of the node.
    pub nodes: Vec<PhasesDoc>,
}

impl PhaseRun {
    /// Opens the bundle at `path`, or at `path` with [`SUFFIX`](super::SUFFIX). Fails if there is no bundle, it has other contents, its nodes belong
    /// to different jobs, or a document is damaged or of another version.
    pub fn open(path: &Path) -> Result<Self, BundleError> {
        let (bundle, documents) = open(path)?;
        let mut nodes: Vec<PhasesDoc> = Vec::with_capacity(documents.len());
        for (node, path) in &documents {
            let doc: PhasesDoc = document::read(path, node)?;
            let other = nodes.first().filter(|first| first.job != doc.job);
            if let Some(other) = other {
                let why = format!("it is not of the job of node '{}'", other.node);
                return Err(BundleError::document(path, why));
            }
            nodes.push(doc);
        }
        Ok(Self { bundle, nodes })
    }

    /// Calls `each` for every phase of every rank of the nodes that finished, with the node's index in [`Self::nodes`], the rank and the phase's
    /// number, in this order. Fails if a table is missing, damaged, of another version, or contradicts its document.
    pub fn for_each(&self, mut each: impl FnMut(usize, u32, u64, Phase)) -> Result<(), BundleError> {
        for (at, doc) in self.nodes.iter().enumerate().filter(|(_, doc)| doc.complete) {
            read(&table_path(&self.bundle, &PHASES, &doc.node), doc, |rank, number, phase| {
                each(at, rank, number, phase)
            })?;
        }
        Ok(())
    }
}

/// Writes a node's part of a parallel benchmark. If nothing was stored, dropping the writer leaves nothing behind.
#[derive(Debug)]
pub struct PhaseWriter(NodePart);

impl PhaseWriter {
    /// Creates the bundle, or joins that of other nodes, and writes the document before the first phase. Fails if the place is taken, its parent is
    /// missing, the document is invalid, or the system refuses. The place is then unchanged.
    pub fn create(path: &Path, doc: &PhasesDoc) -> Result<Self, BundleError> {
        NodePart::create(path, doc).map(Self)
    }

    /// Stores the phases of each rank of the document, in the same order. Fails if the document is invalid or does not match the phases, or if the
    /// system refuses.
    pub fn store(&mut self, doc: &PhasesDoc, ranks: &[Vec<Phase>]) -> Result<(), BundleError> {
        let refuse = |why| BundleError::Table { path: self.0.table(&PHASES), table: PHASES.name, why };
        if ranks.len() != doc.ranks.len() {
            return Err(refuse(format!("it has {} ranks, and the document {}", ranks.len(), doc.ranks.len())));
        }
        for (rank, phases) in doc.ranks.iter().zip(ranks) {
            if phases.len() as u64 != doc.job.phases {
                return Err(refuse(wrong_count(rank.rank, phases.len() as u64, doc)));
            }
            phases.iter().try_for_each(|phase| check(rank.rank, *phase)).map_err(refuse)?;
        }
        let phases = doc.ranks.iter().map(|doc| doc.rank).zip(ranks.iter().map(Vec::as_slice));
        self.0.store_table(&PHASES, |draft| encode::phases(draft, phases))?;
        self.0.store_document(doc)
    }
}

fn wrong_count(rank: u32, found: u64, doc: &PhasesDoc) -> String {
    format!("it has {found} phases of rank {rank}, and the document tells of {}", doc.job.phases)
}

fn check(rank: u32, phase: Phase) -> Result<(), String> {
    let Phase { start_ns, compute_ns, collective_ns } = phase;
    let lengths = (0..=LONGEST_NS).contains(&compute_ns) && (0..=LONGEST_NS).contains(&collective_ns);
    if lengths && start_ns.unsigned_abs() <= 2 * LONGEST_NS as u64 {
        return Ok(());
    }
    Err(format!("a phase of rank {rank} starts at {start_ns} ns and takes {compute_ns} and {collective_ns} ns"))
}

fn read(path: &Path, doc: &PhasesDoc, mut each: impl FnMut(u32, u64, Phase)) -> Result<(), BundleError> {
    let refuse = |why| BundleError::Table { path: path.to_owned(), table: PHASES.name, why };
    let mut decoder = TableDecoder::open(path, &PHASES, &SourcePool::default())?;
    let mut ranks = doc.ranks.iter().map(|doc| doc.rank);
    let mut rank = ranks.next().expect("a document that was read has ranks");
    let mut number = 0;
    while let Some(mut rows) = decoder.next().map_err(|cause| BundleError::parquet(path, &cause))? {
        let found_ranks = rows.int32("rank").map_err(refuse)?;
        let mut times = |name| rows.int64(name).map_err(refuse);
        let (starts, computes, collectives) = (times("start_ns")?, times("compute_ns")?, times("collective_ns")?);
        for (row, &found) in found_ranks.iter().enumerate() {
            if number == doc.job.phases {
                number = 0;
                rank = ranks.next().ok_or_else(|| refuse("it has more phases than its document".to_owned()))?;
            }
            if i64::from(found) != i64::from(rank) {
                return Err(refuse(format!("phase {number} of rank {rank} is stored as one of rank {found}")));
            }
            let phase = Phase { start_ns: starts[row], compute_ns: computes[row], collective_ns: collectives[row] };
            check(rank, phase).map_err(refuse)?;
            each(rank, number, phase);
            number += 1;
        }
    }
    if number != doc.job.phases {
        return Err(refuse(wrong_count(rank, number, doc)));
    }
    match ranks.next() {
        Some(missing) => Err(refuse(wrong_count(missing, 0, doc))),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use becalm_model::Document;
    use becalm_model::node::{ClockDoc, MachineDoc};
    use becalm_model::phases::{ClockRelationDoc, CollectiveCall, JobDoc, RankDoc, SCHEMA};
    use becalm_units::{CpuId, Nanos};

    fn doc(node: &str, ranks: &[u32], phases: u64) -> PhasesDoc {
        let rank = |rank: &u32| RankDoc {
            rank: *rank,
            cpu: CpuId::new(*rank),
            iterations: 10,
            calibrated_ns: Nanos::from_millis(1),
        };
        PhasesDoc {
            schema: SCHEMA.to_owned(),
            node: node.to_owned(),
            program: "becalm-mpi".to_owned(),
            origin: jiff::Timestamp::UNIX_EPOCH,
            complete: true,
            machine: MachineDoc::default(),
            clock: ClockDoc::default(),
            relation: ClockRelationDoc::default(),
            job: JobDoc {
                library: "MPI".to_owned(),
                ranks: 4,
                nodes: 2,
                grain_ns: Nanos::from_millis(1),
                phases,
                collective: CollectiveCall::Barrier,
                bytes: 8,
                sched: "other".to_owned(),
            },
            ranks: ranks.iter().map(rank).collect(),
            warnings: Vec::new(),
        }
    }

    fn phases(rank: u32, count: u64) -> Vec<Phase> {
        let phase = |number: u64| Phase {
            start_ns: number as i64 * 1_000,
            compute_ns: 900 + i64::from(rank),
            collective_ns: 100 - i64::from(rank),
        };
        (0..count).map(phase).collect()
    }

    #[test]
    fn nodes_write_side_by_side_and_all_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("job.becalm");
        // More rows than one batch.
        let count = 70_000;
        for (node, ranks) in [("b", [2, 3]), ("a", [0, 1])] {
            let doc = doc(node, &ranks, count);
            let mut writer = PhaseWriter::create(&path, &doc).unwrap();
            writer.store(&doc, &ranks.map(|rank| phases(rank, count))).unwrap();
        }
        assert_eq!(crate::Contents::read(&path).unwrap(), crate::Contents::Phases);
        let run = PhaseRun::open(&folder.path().join("job")).unwrap();
        let mut read: Vec<Vec<Phase>> = vec![Vec::new(); 4];
        run.for_each(|node, rank, number, phase| {
            assert_eq!(run.nodes[node].node, if rank < 2 { "a" } else { "b" });
            assert_eq!(number, read[rank as usize].len() as u64);
            read[rank as usize].push(phase);
        })
        .unwrap();
        for (rank, read) in read.iter().enumerate() {
            assert_eq!(*read, phases(rank as u32, count));
        }
    }

    #[test]
    fn what_was_not_stored_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("job.becalm");
        drop(PhaseWriter::create(&path, &doc("a", &[0], 1)).unwrap());
        assert!(!path.exists());
    }

    #[test]
    fn what_contradicts_itself_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("job.becalm");
        let good = doc("a", &[0, 1], 3);
        let mut writer = PhaseWriter::create(&path, &good).unwrap();
        let mut store = |ranks: &[Vec<Phase>]| writer.store(&good, ranks).unwrap_err().to_string();
        assert!(store(&[phases(0, 3)]).contains("1 ranks, and the document 2"));
        assert!(store(&[phases(0, 3), phases(1, 2)]).contains("2 phases of rank 1, and the document tells of 3"));
        let mut negative = phases(1, 3);
        negative[1].collective_ns = -1;
        assert!(store(&[phases(0, 3), negative]).contains("takes 901 and -1 ns"));
        writer.store(&good, &[phases(0, 3), phases(1, 3)]).unwrap();
        // Now the document claims more or fewer phases, or other ranks.
        for (wrong, why) in [
            (doc("a", &[0, 1], 2), "stored as one of rank 0"),
            (doc("a", &[0, 1], 4), "phase 3 of rank 0 is stored as one of rank 1"),
            (doc("a", &[0, 1, 2], 3), "0 phases of rank 2"),
            (doc("a", &[0], 3), "more phases"),
            (doc("a", &[1, 2], 3), "stored as one of rank 0"),
        ] {
            document::replace(&path, "a", &wrong).unwrap();
            let error = PhaseRun::open(&path).unwrap().for_each(|_, _, _, _| {}).unwrap_err().to_string();
            assert!(error.contains(why), "{error}");
        }
        let mut other = doc("b", &[3], 3);
        other.job.grain_ns = Nanos::ZERO;
        PhaseWriter::create(&path, &other).unwrap().store(&other, &[phases(3, 3)]).unwrap();
        assert!(PhaseRun::open(&path).unwrap_err().to_string().contains("not of the job of node 'a'"));
    }

    #[test]
    fn documents_that_cannot_be_are_refused() {
        let wrong = |spoil: &dyn Fn(&mut PhasesDoc)| {
            let mut doc = doc("a", &[0, 1], 3);
            spoil(&mut doc);
            doc.check().unwrap_err()
        };
        assert!(wrong(&|doc| doc.job.phases = 0).contains("0 phases"));
        assert!(wrong(&|doc| doc.job.grain_ns = Nanos::new(-1)).contains("grain_ns"));
        assert!(wrong(&|doc| doc.job.nodes = 5).contains("4 ranks cannot be on 5 nodes"));
        assert!(wrong(&|doc| doc.ranks.clear()).contains("no ranks"));
        assert!(wrong(&|doc| doc.ranks.reverse()).contains("rising"));
        assert!(wrong(&|doc| doc.ranks[1].rank = 4).contains("rank 4, and the job has the ranks 0 to 3"));
        assert!(wrong(&|doc| doc.ranks[1].cpu = CpuId::new(1 << 30)).contains("above the limit"));
        assert!(wrong(&|doc| doc.ranks[1].calibrated_ns = Nanos::new(-1)).contains("calibrated_ns"));
        assert!(wrong(&|doc| doc.relation.offset_ns = f64::NAN).contains("its clock cannot be NaN ns off"));
    }
}
