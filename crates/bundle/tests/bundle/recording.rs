//! Small recordings to be stored.

use std::path::Path;

use becalm_bundle::{Bundle, BundleError, BundleWriter};
use becalm_model::node::{ClockDoc, CpuDoc, Ended, MachineDoc, Rung, SCHEMA, SettingsDoc};
use becalm_model::{Activity, Detour, Kind, Labels, NodeDoc};
use becalm_units::{CpuId, Nanos};

pub fn doc(node: &str) -> NodeDoc {
    NodeDoc {
        schema: SCHEMA.to_owned(),
        node: node.to_owned(),
        program: "becalm 0.1.0".to_owned(),
        origin: Some(jiff::Timestamp::UNIX_EPOCH),
        ended: None,
        machine: MachineDoc::default(),
        clock: ClockDoc::default(),
        settings: SettingsDoc::default(),
        rung: Rung::Tracepoints,
        cpus: Vec::new(),
        tracing: None,
        stored: None,
        counters: Vec::new(),
        warnings: Vec::new(),
    }
}

pub fn cpu_doc(cpu: u32) -> CpuDoc {
    CpuDoc {
        start_ns: Nanos::new(-5),
        duration_ns: Nanos::from_secs(10),
        iterations: 1_000_000_000,
        t_min_ns: Nanos::new(10),
        max_ns: Nanos::from_micros(15),
        involuntary_switches: 1,
        ..CpuDoc::new(CpuId::new(cpu))
    }
}

pub fn ended(node: &str) -> NodeDoc {
    NodeDoc { ended: Some(Ended::Duration), cpus: vec![cpu_doc(0), cpu_doc(3)], ..doc(node) }
}

/// One segment's rows.
#[derive(Clone, Default, Debug)]
pub struct Rows {
    pub detours: Vec<Detour>,
    pub activities: Vec<Activity>,
}

/// A segment with `count` detours on each CPU, the first of them with the number `first`, each of two activities.
pub fn rows(cpus: &[u32], first: u64, count: u64, labels: &mut Labels) -> Rows {
    let mut rows = Rows::default();
    let timer = labels.intern("timer");
    for &cpu in cpus {
        let cpu = CpuId::new(cpu);
        for detour in first..first + count {
            let start = Nanos::new(detour as i64 * 1_000);
            rows.detours.push(Detour { cpu, start, duration: Nanos::new(300), incomplete: detour % 7 == 0 });
            let detail = labels.intern(&format!("vector {}", detour % 5));
            for (offset, length, kind) in [(0, 200, Kind::Irq), (200, 100, Kind::Edge)] {
                rows.activities.push(Activity {
                    cpu,
                    detour,
                    start: start + Nanos::new(offset),
                    self_time: Nanos::new(length),
                    kind,
                    source: timer,
                    detail,
                });
            }
        }
    }
    rows
}

/// An activity with its names, which unlike labels can be compared between tables.
pub type Named = (i32, i64, i64, i64, Kind, String, String);

pub fn named(activity: &Activity, labels: &Labels) -> Named {
    (
        i32::try_from(activity.cpu.get()).unwrap(),
        i64::try_from(activity.detour).unwrap(),
        activity.start.get(),
        activity.self_time.get(),
        activity.kind,
        labels.text(activity.source).to_owned(),
        labels.text(activity.detail).to_owned(),
    )
}

/// All detours of a node, with the segment of each.
pub fn read_detours(bundle: &Bundle, node: &str) -> Result<Vec<(u32, Detour)>, BundleError> {
    let mut detours = Vec::new();
    for batch in bundle.detours(node)? {
        let batch = batch?;
        for row in 0..batch.len() {
            let detour = Detour {
                cpu: CpuId::new(u32::try_from(batch.cpus()[row]).unwrap()),
                start: Nanos::new(batch.starts()[row]),
                duration: Nanos::new(batch.durations()[row]),
                incomplete: batch.incomplete(row),
            };
            detours.push((batch.segment(), detour));
        }
    }
    Ok(detours)
}

/// All activities of a node, through the names of each row and through the keys, which must agree.
pub fn read_activities(bundle: &Bundle, node: &str) -> Result<Vec<Named>, BundleError> {
    let mut activities = Vec::new();
    for batch in bundle.activities(node)? {
        let batch = batch?;
        let (sources, details) = (batch.source_values(), batch.detail_values());
        for row in 0..batch.len() {
            let (kind, source, detail) = (batch.kind(row), batch.source(row), batch.detail(row));
            assert_eq!(sources[batch.source_key(row)], source);
            assert_eq!(details[batch.detail_key(row)], detail);
            activities.push((
                batch.cpus()[row],
                batch.detours()[row],
                batch.starts()[row],
                batch.self_times()[row],
                kind,
                source.to_owned(),
                detail.to_owned(),
            ));
        }
    }
    Ok(activities)
}

/// Reads everything that a bundle holds, and counts the rows.
pub fn read_all(path: &Path) -> Result<usize, BundleError> {
    let bundle = Bundle::open(path)?;
    let mut rows = 0;
    for doc in bundle.nodes() {
        rows += read_detours(&bundle, &doc.node)?.len();
        rows += read_activities(&bundle, &doc.node)?.len();
    }
    Ok(rows)
}

/// A bundle of one node, `a`, with some segments of 40 detours and 80 activities each.
pub fn store(path: &Path, segments: u64) {
    let mut labels = Labels::new();
    let mut writer = BundleWriter::create(path, &doc("a")).unwrap();
    for segment in 0..segments {
        let rows = rows(&[0, 1], segment * 20, 20, &mut labels);
        writer.write_segment(&rows.detours, &rows.activities, &labels).unwrap();
    }
    writer.write_doc(&ended("a")).unwrap();
}

/// Takes from the document of the node `a` how many rows were stored, as of another program that does not say it.
pub fn uncount(path: &Path) {
    let file = path.join("runs/node=a.json");
    let mut doc: NodeDoc = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    doc.stored = None;
    std::fs::write(&file, serde_json::to_vec_pretty(&doc).unwrap()).unwrap();
}

/// The documents of a bundle without what the writer counted.
pub fn documents(bundle: &Bundle) -> Vec<NodeDoc> {
    bundle.nodes().iter().map(|doc| NodeDoc { stored: None, ..doc.clone() }).collect()
}
