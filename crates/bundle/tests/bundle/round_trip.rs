//! What is written reads back: rows, names, documents, of several nodes and segments.

use std::path::Path;

use becalm_bundle::{Bundle, BundleWriter};
use becalm_model::{Activity, Detour, Kind, Labels, NodeDoc};
use becalm_units::{CpuId, Nanos};
use proptest::prelude::*;

use crate::recording::{Named, Rows, doc, documents, ended, named, read_activities, read_detours, rows};

/// The rows of one CPU in one segment: for each detour the gap before it, its length, whether it is incomplete, and
/// its activities as self time, kind, source and detail.
type CpuRows = Vec<(i64, i64, bool, Vec<(i64, Kind, String, String)>)>;

fn cpu_rows() -> impl Strategy<Value = CpuRows> {
    let kind = prop::sample::select(Kind::ALL);
    let activity = (0_i64..1 << 40, kind, "[a-z\u{e4}\u{1f980}:.]{0,3}", "[0-9]{0,2}");
    let detour = (0_i64..1 << 40, 0_i64..1 << 40, any::<bool>(), proptest::collection::vec(activity, 0..3));
    proptest::collection::vec(detour, 0..30)
}

/// Some nodes, each with segments, each with the rows of four CPUs.
fn recordings() -> impl Strategy<Value = Vec<Vec<[CpuRows; 4]>>> {
    let segment = [cpu_rows(), cpu_rows(), cpu_rows(), cpu_rows()];
    proptest::collection::vec(proptest::collection::vec(segment, 0..4), 1..3)
}

/// Lays the rows of a node out as a recorder would, CPU numbers above 1,023 included.
fn lay_out(segments: &[[CpuRows; 4]], labels: &mut Labels) -> Vec<Rows> {
    let (mut clocks, mut numbers) = ([0_i64; 4], [0_u64; 4]);
    let lay_out_one = |segment: &[CpuRows; 4]| {
        let mut rows = Rows::default();
        for (index, cpu_rows) in segment.iter().enumerate() {
            let cpu = CpuId::new([0, 1, 7, 5_000][index]);
            for (gap, length, incomplete, activities) in cpu_rows {
                clocks[index] += gap;
                let start = Nanos::new(clocks[index]);
                rows.detours.push(Detour { cpu, start, duration: Nanos::new(*length), incomplete: *incomplete });
                for (self_time, kind, source, detail) in activities {
                    rows.activities.push(Activity {
                        cpu,
                        detour: numbers[index],
                        start,
                        self_time: Nanos::new(*self_time),
                        kind: *kind,
                        source: labels.intern(source),
                        detail: labels.intern(detail),
                    });
                }
                numbers[index] += 1;
            }
        }
        rows
    };
    segments.iter().map(lay_out_one).collect()
}

/// The document of a node whose loops ran for longer than any of these rows take.
fn long(node: &str) -> NodeDoc {
    let mut doc = ended(node);
    doc.cpus.iter_mut().for_each(|cpu| cpu.duration_ns = Nanos::from_secs(1_000_000));
    doc
}

fn check_round_trip(path: &Path, recordings: &[Vec<[CpuRows; 4]>]) {
    let nodes: Vec<String> = (0..recordings.len()).rev().map(|index| format!("node-{index}.cluster")).collect();
    let mut expected = Vec::new();
    for (node, segments) in nodes.iter().zip(recordings) {
        let mut labels = Labels::new();
        let mut writer = BundleWriter::create(path, &doc(node)).unwrap();
        let (mut detours, mut activities) = (Vec::new(), Vec::new());
        for (number, rows) in (0..).zip(lay_out(segments, &mut labels)) {
            writer.write_segment(&rows.detours, &rows.activities, &labels).unwrap();
            detours.extend(rows.detours.iter().map(|detour| (number, *detour)));
            activities.extend(rows.activities.iter().map(|activity| named(activity, &labels)));
        }
        writer.write_doc(&long(node)).unwrap();
        expected.push((detours, activities));
    }

    let bundle = Bundle::open(path).unwrap();
    let mut sorted = nodes.clone();
    sorted.sort();
    assert_eq!(bundle.nodes().iter().map(|doc| &doc.node).collect::<Vec<_>>(), sorted.iter().collect::<Vec<_>>());
    for (node, (detours, activities)) in nodes.iter().zip(expected) {
        assert_eq!(read_detours(&bundle, node).unwrap(), detours);
        assert_eq!(read_activities(&bundle, node).unwrap(), activities);
        assert!(documents(&bundle).contains(&long(node)));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn what_is_written_reads_back(recordings in recordings()) {
        let folder = tempfile::tempdir().unwrap();
        check_round_trip(&folder.path().join("run.becalm"), &recordings);
    }
}

#[test]
fn long_segments_read_back_in_small_batches() {
    const COUNT: u64 = 150_000;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.becalm");
    let mut labels = Labels::new();
    let mut writer = BundleWriter::create(&path, &doc("a")).unwrap();
    let written = rows(&[0, 1], 0, COUNT, &mut labels);
    writer.write_segment(&written.detours, &written.activities, &labels).unwrap();

    let bundle = Bundle::open(&path).unwrap();
    let batches: Vec<_> = bundle.detours("a").unwrap().map(Result::unwrap).collect();
    assert!(batches.len() > 4 && batches.iter().all(|batch| batch.len() <= 1 << 16 && !batch.is_empty()));
    let detours: Vec<Detour> = read_detours(&bundle, "a").unwrap().into_iter().map(|(_, detour)| detour).collect();
    assert_eq!(detours, written.detours);
    let activities: Vec<Named> = written.activities.iter().map(|activity| named(activity, &labels)).collect();
    assert!(read_activities(&bundle, "a").unwrap() == activities);
}

#[test]
fn names_outside_a_small_dictionary_read_back() {
    // A million bytes of different names do not fit the dictionary of a column, which is then packed in two ways.
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.becalm");
    let mut labels = Labels::new();
    let mut written = rows(&[0], 0, 15_000, &mut labels);
    for (number, activity) in written.activities.iter_mut().enumerate() {
        activity.detail = labels.intern(&format!("{number:0100}"));
    }
    let mut writer = BundleWriter::create(&path, &doc("a")).unwrap();
    writer.write_segment(&written.detours, &written.activities, &labels).unwrap();
    let activities: Vec<Named> = written.activities.iter().map(|activity| named(activity, &labels)).collect();
    assert!(read_activities(&Bundle::open(&path).unwrap(), "a").unwrap() == activities);
}

#[test]
fn the_ending_of_the_name_can_be_left_out() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.becalm");
    let writer = BundleWriter::create(&path, &doc("a")).unwrap();
    assert_eq!(writer.path(), path);
    for given in ["run", "run.becalm", "run.becalm/"] {
        let bundle = Bundle::open(&folder.path().join(given)).unwrap();
        assert_eq!(bundle.path(), path);
    }
}

#[test]
fn the_bytes_written_are_those_of_the_files() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.becalm");
    let mut labels = Labels::new();
    let mut writer = BundleWriter::create(&path, &doc("a")).unwrap();
    for segment in 0..3 {
        let rows = rows(&[0], segment * 9, 9, &mut labels);
        writer.write_segment(&rows.detours, &rows.activities, &labels).unwrap();
    }
    let mut bytes = 0;
    for table in ["runs", "detours/node=a", "activities/node=a"] {
        for entry in std::fs::read_dir(path.join(table)).unwrap() {
            bytes += entry.unwrap().metadata().unwrap().len();
        }
    }
    assert_eq!(writer.bytes_written(), bytes);
}
