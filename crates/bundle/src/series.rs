//! Samples of named series in rounds, with a node's document: the measurements of `becalm cost`.
//!
//! ```text
//! NAME.becalm/
//!   runs/node=HOST.json             the document
//!   costs/node=HOST/0000.parquet    probe, round i64, time_ps i64
//! ```
//!
//! The rows of a series are consecutive, round by round, in the order of measurement. The series are in the order of the document, which gives the
//! number of samples of each.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use crate::decode::TableDecoder;
use crate::document::Stored;
use crate::names::SourcePool;
use crate::node_part::{NodePart, table_path};
use crate::nodes::open_node;
use crate::rows::{NameColumn, Rows};
use crate::schema::COSTS;
use crate::{BundleError, document, encode};

/// The longest sample, in picoseconds: a day.
pub const LONGEST_PS: i64 = 86_400_000_000_000_000;

/// The samples of series by name: the rounds of each, in picoseconds.
pub type Samples = BTreeMap<String, Vec<Vec<i64>>>;

/// A document stored with samples of series.
pub trait Sampled: Stored {
    /// The series in order. If there are none, there is no table.
    fn told_series(&self) -> Vec<ToldSeries>;
}

/// A series as described in a document.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ToldSeries {
    /// Its name.
    pub name: String,
    /// The number of its samples.
    pub samples: u64,
    /// The number of its rounds; `None` if the document does not say.
    pub rounds: Option<u64>,
}

/// A document with its samples.
#[derive(Clone, PartialEq, Debug)]
pub struct SampledRun<D> {
    /// The description of the measurement.
    pub doc: D,
    /// The samples of exactly the series in the document.
    pub samples: Samples,
}

impl<D> SampledRun<D> {
    /// The samples of a series. Panics if the document does not list it, which only a bug can cause.
    pub fn rounds(&self, name: &str) -> &[Vec<i64>] {
        self.samples.get(name).expect("every series of the document has samples")
    }
}

impl<D: Sampled> SampledRun<D> {
    /// Opens the bundle at `path`, or at `path` with [`SUFFIX`](crate::SUFFIX), and reads the measurement of `node`, or of its only node. Fails if
    /// there is no bundle, it has other contents, no such node or several, or if a file is damaged, of another version, or contradicts another.
    pub fn load(path: &Path, node: Option<&str>) -> Result<Self, BundleError> {
        let node = open_node(path, node)?;
        let doc: D = document::read(&node.document, &node.name)?;
        let told = doc.told_series();
        let samples =
            if told.is_empty() { Samples::new() } else { read(&table_path(&node.bundle, &COSTS, &node.name), &told)? };
        Ok(Self { doc, samples })
    }
}

/// Writes a node's measurement. If nothing was stored, dropping the writer leaves nothing behind.
pub struct SeriesWriter(NodePart);

impl SeriesWriter {
    /// Creates the bundle, or joins that of other nodes, and writes the document before any measurement. Fails if the place is taken, its parent is
    /// missing, the document is invalid, or the system refuses. The place is then unchanged.
    pub fn create<D: Sampled>(path: &Path, doc: &D) -> Result<Self, BundleError> {
        NodePart::create(path, doc).map(Self)
    }

    /// Stores the measurement so far, replacing the previous one. Fails if the document is invalid or does not match the samples, or if the system
    /// refuses. The stored series is then unchanged, unless it had other samples.
    pub fn store<D: Sampled>(&mut self, run: &SampledRun<D>) -> Result<(), BundleError> {
        let told = run.doc.told_series();
        if !told.is_empty() {
            let refuse = |why| BundleError::Table { path: self.0.table(&COSTS), table: COSTS.name, why };
            check_series(&run.samples, &told).map_err(refuse)?;
            let series = told.iter().map(|series| (series.name.as_str(), run.rounds(&series.name)));
            self.0.store_table(&COSTS, |draft| encode::costs(draft, series))?;
        }
        self.0.store_document(&run.doc)
    }
}

fn read(path: &Path, told_series: &[ToldSeries]) -> Result<Samples, BundleError> {
    let refuse = |why| BundleError::Table { path: path.to_owned(), table: COSTS.name, why };
    let mut decoder = TableDecoder::open(path, &COSTS, &SourcePool::default())?;
    let mut samples = Samples::new();
    let told: HashMap<&str, u64> = told_series.iter().map(|series| (series.name.as_str(), series.samples)).collect();
    let mut last: Option<String> = None;
    // The number of samples that may follow for this probe.
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
                refuse(format!("it has more samples of '{probe}' than the {told} in the document"))
            })?;
            let rounds: &mut Vec<Vec<i64>> = samples.get_mut(probe).expect("it was put there");
            // The next round, or the current one.
            if usize::try_from(round) == Ok(rounds.len()) {
                rounds.push(Vec::new());
            } else if usize::try_from(round) != Ok(rounds.len().wrapping_sub(1)) {
                return Err(refuse(format!("round {round} of '{probe}' comes after {} rounds", rounds.len())));
            }
            rounds.last_mut().expect("there is one now").push(time);
        }
    }
    check_series(&samples, told_series).map_err(refuse)?;
    Ok(samples)
}

/// Consecutive samples of probes.
struct CostRows {
    probes: NameColumn,
    rounds: Vec<i64>,
    times: Vec<i64>,
}

impl CostRows {
    /// Takes the columns, which already have the schema's types. The error names the column with an invalid value.
    fn take(mut rows: Rows) -> Result<Self, String> {
        Ok(Self { probes: rows.names("probe")?, rounds: rows.int64("round")?, times: rows.int64("time_ps")? })
    }

    fn len(&self) -> usize {
        self.rounds.len()
    }

    /// The probe's name, the number of the round, and the time of the sample in picoseconds.
    fn row(&self, row: usize) -> (&str, i64, i64) {
        (self.probes.name(row), self.rounds[row], self.times[row])
    }
}

/// Checks that the samples match the document.
fn check_series(samples: &Samples, told_series: &[ToldSeries]) -> Result<(), String> {
    for ToldSeries { name, samples: told, rounds: told_rounds } in told_series {
        let rounds = samples.get(name).ok_or_else(|| format!("it has no sample of '{name}'"))?;
        let count = rounds.iter().map(|round| round.len() as u64).sum::<u64>();
        if count != *told {
            return Err(format!("it has {count} samples of '{name}', and the document tells of {told}"));
        }
        let stored = rounds.len() as u64;
        if let Some(told) = told_rounds.filter(|told| *told != stored) {
            return Err(format!(
                "it has {stored} rounds of '{name}', and the document tells of {told} of its processes"
            ));
        }
        if let Some(time) = rounds.iter().flatten().find(|time| time.unsigned_abs() > LONGEST_PS.unsigned_abs()) {
            return Err(format!("a sample of '{name}' is {time} ps long"));
        }
    }
    match samples.keys().find(|name| !told_series.iter().any(|told| told.name == **name)) {
        Some(name) => Err(untold(name)),
        None => Ok(()),
    }
}

fn untold(probe: &str) -> String {
    format!("it has samples of '{probe}', which the document does not mention")
}
