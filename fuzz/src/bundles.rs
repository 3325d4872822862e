//! Small valid bundles of every kind as JSON values, for inputs to edit, and their conversion to a directory:
//!
//! - `files`: the documents by their names in the bundle. A text is written unchanged, anything else as JSON.
//! - `rows`: the rows of its tables, one list per row, for becalm's own writers. So edited rows give valid tables.
//! - `bytes`: changes to packed tables: `{"file": NAME, "at": N, "add": N}`, `{"file": NAME, "keep": N}` bytes, or
//!   `{"file": NAME, "deflated": BYTES}` for a new file, compressed as raw zlib data in base 64.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::LazyLock;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use becalm_bundle::series::SeriesWriter;
use becalm_bundle::{Bundle, BundleWriter, Phase, PhaseRun, PhaseWriter, SummaryWriter};
use becalm_cost::documents::CostRun;
use becalm_model::node::StoredRows;
use becalm_model::phases::PhasesDoc;
use becalm_model::{Activity, Detour, Labels, NodeDoc, Sample};
use becalm_research::study::{self, BASELINE, ConfigurationOutcome};
use becalm_units::{CpuId, Nanos};
use miniz_oxide::inflate::decompress_to_vec_with_limit;
use serde_json::{Value, json};

use crate::tree;

/// The number of detours per CPU kept from bundles shared with other tests: each input writes and reads them.
const KEPT: u64 = 45;
/// The number of phases per rank.
const PHASES: u64 = 12;

/// The maximum size of a file in an input, in bytes.
const LARGEST: usize = 1 << 20;

/// A valid bundle.
pub struct Valid {
    /// The value that inputs edit.
    pub value: Value,
    /// The tables not made of rows, by their names in the bundle.
    tables: BTreeMap<String, Vec<u8>>,
    maker: Maker,
}

/// The writer of the rows, with the document that describes them.
enum Maker {
    Nobody,
    Recording(Box<NodeDoc>),
    Costs(Box<CostRun>),
    Phases(Box<PhasesDoc>),
}

/// The bundle of this name.
pub fn valid(name: &str) -> Option<&'static Valid> {
    static ALL: LazyLock<BTreeMap<&str, Valid>> = LazyLock::new(all);
    ALL.get(name)
}

fn all() -> BTreeMap<&'static str, Valid> {
    let made = tempfile::tempdir().expect("a temporary directory");
    let at = |group: &str, name: &str| made.path().join(group).join(format!("{name}.becalm"));
    type Group = (&'static str, fn(&Path));
    let makers: [Group; 4] = [
        ("runs", becalm_fixtures::write_all),
        ("work", becalm_fixtures::work::write_all),
        ("costs", becalm_fixtures::costs::write_costs),
        ("phases", becalm_fixtures::phases::write_phases),
    ];
    for (group, write) in makers {
        let folder = made.path().join(group);
        fs::create_dir(&folder).expect("a new directory");
        write(&folder);
    }
    let mut all = BTreeMap::new();
    for name in ["busy", "plain", "quiet"] {
        all.insert(name, recording(&at("runs", name)));
    }
    for name in ["brief", "untraced", "quanta"] {
        all.insert(name, recording(&at("work", name)));
    }
    for name in ["trap", "clock", "catalogue", "scheduler", "placement"] {
        all.insert(name, costs(&at("costs", name)));
    }
    all.insert("tick", as_it_is(&at("costs", "tick")));
    all.insert("job", phases(&at("phases", "job")));
    let pair = made.path().join("both.becalm");
    for node in ["node1", "node2"] {
        let Valid { maker: Maker::Recording(doc), value, .. } = &all["busy"] else { unreachable!("it is a recording") };
        let doc = NodeDoc { node: node.to_owned(), ..(**doc).clone() };
        store_recording(&pair, &doc, &value["rows"]).expect("rows that were stored before");
    }
    all.insert("pair", as_it_is(&pair));
    let short = made.path().join("short.becalm");
    let bundle = Bundle::open(&pair).expect("our own bundle");
    for doc in bundle.nodes() {
        let digest = becalm_analyze::condense::condense(&bundle, &doc.node).expect("our own bundle");
        drop(SummaryWriter::create(&short, &digest).expect("a new bundle"));
    }
    all.insert("short", as_it_is(&short));
    let study = made.path().join("study");
    becalm_fixtures::write_study(&study);
    let mut doc = study::load(&study).expect("our own document");
    for configuration in &mut doc.configurations {
        let ConfigurationOutcome::Recorded { runs, .. } = &mut configuration.outcome else { continue };
        // Two turns suffice for a comparison.
        for run in runs.iter().skip(2) {
            fs::remove_dir_all(study.join(run)).expect("our own directory");
        }
        runs.truncate(2);
        for run in runs {
            fs::remove_dir_all(study.join(&*run)).expect("our own directory");
            let name = if configuration.name == BASELINE { "busy" } else { "quiet" };
            all[name].write(&study.join(&*run)).expect("a valid bundle");
        }
    }
    study::store(&doc, &study).expect("a valid document");
    all.insert("study", as_it_is(&study));
    all
}

/// A bundle with unchanged tables.
fn as_it_is(folder: &Path) -> Valid {
    let (documents, tables): (Vec<_>, Vec<_>) =
        tree::files(folder).into_iter().partition(|(name, _)| name.ends_with(".json"));
    let files: serde_json::Map<String, Value> = documents
        .into_iter()
        .map(|(name, bytes)| (name, serde_json::from_slice(&bytes).expect("our own document")))
        .collect();
    let mut bytes = Vec::new();
    for (name, table) in &tables {
        bytes.push(json!({"file": name, "at": 4, "add": 0}));
        bytes.push(json!({"file": name, "keep": table.len()}));
    }
    let value = json!({"files": files, "bytes": bytes});
    Valid { value, tables: tables.into_iter().collect(), maker: Maker::Nobody }
}

/// A bundle of one node with tables made of rows.
fn with_rows(folder: &Path, rows: Value, maker: Maker) -> Valid {
    let mut valid = Valid { maker, ..as_it_is(folder) };
    valid.value["rows"] = rows;
    valid.tables.clear();
    valid
}

/// A recording reduced to the first rows of its tables.
fn recording(path: &Path) -> Valid {
    let bundle = Bundle::open(path).expect("our own bundle");
    let mut doc = bundle.nodes()[0].clone();
    let (mut rows, mut counts) = (serde_json::Map::new(), BTreeMap::<i32, u64>::new());
    let mut is_kept = |cpu: i32| {
        let count = counts.entry(cpu).or_default();
        *count += 1;
        *count <= KEPT
    };
    let (mut detours, mut samples, mut activities) = (Vec::new(), Vec::new(), Vec::new());
    if doc.settings.work.is_some() {
        for batch in bundle.samples(&doc.node).expect("our own table") {
            let batch = batch.expect("our own table");
            for at in (0..batch.len()).filter(|at| is_kept(batch.cpus()[*at])) {
                let (start, duration) = (batch.starts()[at], batch.durations()[at]);
                samples.push(json!([batch.cpus()[at], start, duration, batch.work()[at], batch.incomplete(at)]));
            }
        }
    } else {
        for batch in bundle.detours(&doc.node).expect("our own table") {
            let batch = batch.expect("our own table");
            for at in (0..batch.len()).filter(|at| is_kept(batch.cpus()[*at])) {
                detours.push(json!([
                    batch.cpus()[at],
                    batch.starts()[at],
                    batch.durations()[at],
                    batch.incomplete(at)
                ]));
            }
        }
        // Shorten the recording to these rows, to reduce the computation.
        let last = detours.iter().filter_map(|row| row[1].as_i64()).max().unwrap_or(0);
        for cpu in doc.cpus.iter_mut().filter(|cpu| cpu.detours > KEPT) {
            (cpu.detours, cpu.duration_ns) = (KEPT, Nanos::new(last) + Nanos::from_millis(1));
        }
    }
    for batch in bundle.activities(&doc.node).expect("our own table") {
        let batch = batch.expect("our own table");
        for at in (0..batch.len()).filter(|at| batch.detours()[*at] < KEPT as i64) {
            let (cpu, detour, start) = (batch.cpus()[at], batch.detours()[at], batch.starts()[at]);
            let (kind, source, detail) = (batch.kind(at).name(), batch.source(at), batch.detail(at));
            activities.push(json!([cpu, detour, start, batch.self_times()[at], kind, source, detail]));
        }
    }
    let kept = detours.len() + samples.len();
    doc.stored = Some(StoredRows { rows: kept as u64, activities: activities.len() as u64 });
    let table = if doc.settings.work.is_some() { ("samples", samples) } else { ("detours", detours) };
    for (name, table) in [table, ("activities", activities)] {
        rows.insert(name.to_owned(), table.into());
    }
    let mut valid = with_rows(path, rows.into(), Maker::Recording(Box::new(doc.clone())));
    let name = format!("runs/node={}.json", doc.node);
    valid.value["files"][&name] = serde_json::to_value(&doc).expect("a document is JSON");
    valid
}

fn costs(path: &Path) -> Valid {
    let run = CostRun::load(path, None).expect("our own bundle");
    let rows = json!({"costs": run.samples});
    with_rows(path, rows, Maker::Costs(Box::new(run)))
}

/// The first node of a parallel benchmark, reduced to its first phases.
fn phases(path: &Path) -> Valid {
    let run = PhaseRun::open(path).expect("our own bundle");
    let mut doc = run.nodes[0].clone();
    doc.job.phases = PHASES;
    (doc.job.nodes, doc.job.ranks) = (1, doc.ranks.len() as u32);
    let mut ranks = vec![Vec::new(); doc.ranks.len()];
    let gathered = run.for_each(|node, rank, number, phase| {
        let at = doc.ranks.iter().position(|doc| doc.rank == rank);
        if let Some(at) = at.filter(|_| node == 0 && number < PHASES) {
            ranks[at].push(json!([phase.start_ns, phase.compute_ns, phase.collective_ns]));
        }
    });
    gathered.expect("our own table");
    let name = format!("runs/node={}.json", doc.node);
    let mut valid = with_rows(path, json!({"phases": ranks}), Maker::Phases(Box::new(doc.clone())));
    valid.value["files"] = json!({ name: doc });
    valid
}

impl Valid {
    /// Writes it unchanged.
    pub fn write(&self, folder: &Path) -> anyhow::Result<()> {
        self.write_edited(&self.value, folder)
    }

    /// Writes the edited bundle. Fails if becalm's own writers refuse the rows.
    pub fn write_edited(&self, edited: &Value, folder: &Path) -> anyhow::Result<()> {
        let rows = &edited["rows"];
        match &self.maker {
            Maker::Nobody => {}
            Maker::Recording(doc) => store_recording(folder, doc, rows)?,
            Maker::Costs(run) => {
                let samples = serde_json::from_value(rows["costs"].clone())?;
                SeriesWriter::create(folder, &run.doc)?.store(&CostRun { doc: run.doc.clone(), samples })?;
            }
            Maker::Phases(doc) => {
                let ranks: Vec<Vec<[i64; 3]>> = serde_json::from_value(rows["phases"].clone())?;
                let phase =
                    |[start_ns, compute_ns, collective_ns]: [i64; 3]| Phase { start_ns, compute_ns, collective_ns };
                let ranks: Vec<Vec<Phase>> =
                    ranks.into_iter().map(|rank| rank.into_iter().map(phase).collect()).collect();
                PhaseWriter::create(folder, doc)?.store(doc, &ranks)?;
            }
        }
        for (name, bytes) in &self.tables {
            tree::write(folder, name, bytes);
        }
        for (name, value) in edited["files"].as_object().into_iter().flatten() {
            tree::write(folder, name, &tree::contents(value));
        }
        for change in edited["bytes"].as_array().into_iter().flatten() {
            change_bytes(folder, change);
        }
        Ok(())
    }
}

/// Applies one of the changes to packed tables.
fn change_bytes(folder: &Path, change: &Value) {
    let Some(path) = change["file"].as_str().and_then(|name| tree::place(folder, name)) else { return };
    let Ok(mut bytes) = fs::read(&path) else { return };
    if let Some(other) = change["deflated"].as_str() {
        let deflated = BASE64_STANDARD.decode(other).unwrap_or_default();
        bytes = decompress_to_vec_with_limit(&deflated, LARGEST).unwrap_or_default();
    }
    let keep = change["keep"].as_u64().map_or(bytes.len(), |keep| bytes.len().min(keep as usize));
    bytes.truncate(keep);
    if let (Some(at), Some(add)) = (change["at"].as_u64(), change["add"].as_i64()) {
        let length = bytes.len().max(1) as u64;
        if let Some(byte) = bytes.get_mut((at % length) as usize) {
            *byte = byte.wrapping_add(add as u8);
        }
    }
    let _ = fs::write(path, bytes);
}

/// Stores the rows of a recording as a single segment.
fn store_recording(folder: &Path, doc: &NodeDoc, rows: &Value) -> anyhow::Result<()> {
    let list = |name: &str| rows[name].as_array().map_or(&[][..], Vec::as_slice);
    let number = |row: &Value, at: usize| row[at].as_i64();
    let cpu = |row: &Value| number(row, 0).and_then(|cpu| u32::try_from(cpu).ok()).map(CpuId::new);
    let ns = |row: &Value, at: usize| number(row, at).map(Nanos::new);
    let mut labels = Labels::new();
    let activities = list("activities").iter().map(|row| {
        Some(Activity {
            cpu: cpu(row)?,
            detour: row[1].as_u64()?,
            start: ns(row, 2)?,
            self_time: ns(row, 3)?,
            kind: row[4].as_str()?.parse().ok()?,
            source: labels.intern(row[5].as_str()?),
            detail: labels.intern(row[6].as_str()?),
        })
    });
    let bad_row = || anyhow::anyhow!("a row is none");
    let activities: Vec<Activity> = activities.collect::<Option<_>>().ok_or_else(bad_row)?;
    let mut writer = BundleWriter::create(folder, doc)?;
    if doc.settings.work.is_some() {
        let samples = list("samples").iter().map(|row| {
            let (start, duration, work) = (ns(row, 1)?, ns(row, 2)?, row[3].as_u64()?);
            Some(Sample { cpu: cpu(row)?, start, duration, work, incomplete: row[4].as_bool()? })
        });
        let samples: Vec<Sample> = samples.collect::<Option<_>>().ok_or_else(bad_row)?;
        writer.write_samples(&samples, &activities, &labels)?;
    } else {
        let detours = list("detours").iter().map(|row| {
            Some(Detour { cpu: cpu(row)?, start: ns(row, 1)?, duration: ns(row, 2)?, incomplete: row[3].as_bool()? })
        });
        let detours: Vec<Detour> = detours.collect::<Option<_>>().ok_or_else(bad_row)?;
        writer.write_segment(&detours, &activities, &labels)?;
    }
    Ok(writer.write_doc(doc)?)
}
