//! A measurement of costs as a bundle: the document of [`CostDoc`], and the samples of its probes as a table.
//!
//! ```text
//! NAME.becalm/
//!   runs/node=HOST.json             the document
//!   costs/node=HOST/0000.parquet    probe, round i64, time_ps i64
//! ```
//!
//! The rows of a probe stand together, round after round, in the order in which they were taken; the probes in that of the
//! document, which tells how many samples each has.

pub mod tick;

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use crate::decode::TableDecoder;
use crate::draft::Draft;
use crate::names::SourcePool;
use crate::nodes::open_node;
use crate::place::{self, MadeFolders};
use crate::rows::{NameColumn, Rows};
use crate::schema::COSTS;
use crate::{BundleError, document, draft, encode, layout};
use becalm_model::cost::{CostDoc, CostRun, CostSamples, LONGEST_PS, SeriesDoc};

/// Opens the bundle at `path`, or at `path` with [`SUFFIX`](crate::SUFFIX), and reads the costs that `node` measured, or
/// those of its only node.
///
/// # Errors
/// If there is no bundle, it holds something else than costs, no such node or several, and if a file of it is damaged,
/// of another version, or contradicts another.
pub fn load(path: &Path, node: Option<&str>) -> Result<CostRun, BundleError> {
    let node = open_node(path, node)?;
    let doc: CostDoc = document::read(&node.document, &node.name)?;
    let series = doc.series();
    let samples =
        if series.is_empty() { CostSamples::new() } else { read(&table_path(&node.bundle, &node.name), &series)? };
    Ok(CostRun { doc, samples })
}

/// Writes a node's measurement of costs. What was never stored leaves nothing behind when the writer is dropped.
pub struct CostWriter {
    path: PathBuf,
    node: String,
    /// Until something is stored.
    made: Option<MadeFolders>,
}

impl CostWriter {
    /// Makes the bundle, or joins the one of other nodes, and writes the document as it is before anything is measured.
    ///
    /// # Errors
    /// If the place is taken, its parent is missing, the document is not valid, and if the system refuses. The place is then
    /// left as it was.
    pub fn create(path: &Path, doc: &CostDoc) -> Result<Self, BundleError> {
        let made = place::create(path, doc)?;
        Ok(Self { path: path.to_owned(), node: doc.node.clone(), made: Some(made) })
    }

    /// Stores what was measured so far, in place of what was stored before.
    ///
    /// # Errors
    /// If the document is not valid or does not fit the samples, and if the system refuses. What was stored before stays
    /// then, unless that had other samples.
    pub fn store(&mut self, run: &CostRun) -> Result<(), BundleError> {
        let series = run.doc.series();
        if !series.is_empty() {
            let path = table_path(&self.path, &self.node);
            let mut made = MadeFolders::new(&self.path);
            made.make(&self.path.join(COSTS.name))?;
            made.make(&layout::table_folder(&self.path, COSTS.name, &self.node))?;
            check_series(&run.samples, &series).map_err(|why| BundleError::Table {
                path: path.clone(),
                table: COSTS.name,
                why,
            })?;
            let draft = Draft::for_bundle(&self.path, path)?;
            encode::costs(&draft, series.iter().map(|(name, _)| (name.as_str(), run.rounds(name))))?;
            draft.sync()?;
            draft.publish()?;
            made.keep();
        }
        document::replace(&self.path, &self.node, &run.doc)?;
        self.made.take().into_iter().for_each(MadeFolders::keep);
        Ok(())
    }
}

impl Drop for CostWriter {
    fn drop(&mut self) {
        if self.made.is_some() {
            // A document of nothing would keep others from the place. The folders go after it.
            draft::remove(&self.path, &layout::document(&self.path, &self.node));
        }
    }
}

fn table_path(bundle: &Path, node: &str) -> PathBuf {
    layout::table_folder(bundle, COSTS.name, node).join(layout::segment(0))
}

fn read(path: &Path, series: &[(String, SeriesDoc)]) -> Result<CostSamples, BundleError> {
    let refuse = |why| BundleError::Table { path: path.to_owned(), table: COSTS.name, why };
    let mut decoder = TableDecoder::open(path, &COSTS, &SourcePool::default())?;
    let mut samples = CostSamples::new();
    let told: HashMap<&str, u64> = series.iter().map(|(name, probe)| (name.as_str(), probe.samples)).collect();
    let mut last: Option<String> = None;
    // How many samples the probe may have yet.
    let mut left = 0;
    while let Some(rows) = decoder.next().map_err(|cause| BundleError::parquet(path, &cause))? {
        let rows = CostRows::take(rows).map_err(refuse)?;
        for row in 0..rows.len() {
            let (probe, round, time) = rows.row(row);
            if last.as_deref() != Some(probe) {
                if samples.contains_key(probe) {
                    return Err(refuse(format!("the samples of '{probe}' are not in consecutive rows")));
                }
                left = *told.get(probe).ok_or_else(|| refuse(untold(probe)))?;
                samples.insert(probe.to_owned(), Vec::new());
                last = Some(probe.to_owned());
            }
            left = left.checked_sub(1).ok_or_else(|| {
                let told = told[probe];
                refuse(format!("it has more samples of '{probe}' than the {told} of which the document tells"))
            })?;
            let rounds: &mut Vec<Vec<i64>> = samples.get_mut(probe).expect("it was put there");
            // A round after the last, or the last one.
            if usize::try_from(round) == Ok(rounds.len()) {
                rounds.push(Vec::new());
            } else if usize::try_from(round) != Ok(rounds.len().wrapping_sub(1)) {
                return Err(refuse(format!("round {round} of '{probe}' comes after {} rounds", rounds.len())));
            }
            rounds.last_mut().expect("there is one now").push(time);
        }
    }
    check_series(&samples, series).map_err(refuse)?;
    Ok(samples)
}

/// Consecutive samples of probes.
struct CostRows {
    probes: NameColumn,
    rounds: Vec<i64>,
    times: Vec<i64>,
}

impl CostRows {
    /// Takes the columns, which have the schema's types already.
    ///
    /// # Errors
    /// Says which column holds what it must not.
    fn take(mut rows: Rows) -> Result<Self, String> {
        Ok(Self { probes: rows.names("probe")?, rounds: rows.int64("round")?, times: rows.int64("time_ps")? })
    }

    fn len(&self) -> usize {
        self.rounds.len()
    }

    /// The probe's name, the number of the round, and the sample's time in picoseconds.
    fn row(&self, row: usize) -> (&str, i64, i64) {
        (self.probes.name(row), self.rounds[row], self.times[row])
    }
}

/// The samples are those that the document tells of.
fn check_series(samples: &CostSamples, series: &[(String, SeriesDoc)]) -> Result<(), String> {
    for (name, one) in series {
        let rounds = samples.get(name).ok_or_else(|| format!("it has no sample of '{name}'"))?;
        let count: usize = rounds.iter().map(Vec::len).sum();
        if u64::try_from(count) != Ok(one.samples) {
            return Err(format!("it has {count} samples of '{name}', and the document tells of {}", one.samples));
        }
        let told: u64 = one.rounds_by_process.iter().map(|rounds| u64::from(*rounds)).sum();
        if !one.rounds_by_process.is_empty() && u64::try_from(rounds.len()) != Ok(told) {
            let stored = rounds.len();
            return Err(format!(
                "it has {stored} rounds of '{name}', and the document tells of {told} of its processes"
            ));
        }
        if let Some(time) = rounds.iter().flatten().find(|time| time.unsigned_abs() > LONGEST_PS.unsigned_abs()) {
            return Err(format!("a sample of '{name}' is {time} ps long"));
        }
    }
    match samples.keys().find(|name| !series.iter().any(|(known, _)| known == *name)) {
        Some(name) => Err(untold(name)),
        None => Ok(()),
    }
}

fn untold(probe: &str) -> String {
    format!("it has samples of '{probe}', of which the document does not tell")
}
