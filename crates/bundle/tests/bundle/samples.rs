//! Runs of work: samples read back, a run is resumed, and what is not a sample is refused.

use std::path::Path;

use becalm_bundle::{Bundle, BundleError, BundleWriter};
use becalm_model::node::{Fixed, SettingsDoc, WorkDoc};
use becalm_model::{Activity, Kind, Labels, NodeDoc, Sample};
use becalm_units::{CpuId, Nanos};
use proptest::prelude::*;

use crate::recording::{doc, named, read_activities, rows};

fn work_doc(node: &str) -> NodeDoc {
    let work = WorkDoc {
        body: "sum".to_owned(),
        iteration: "add".to_owned(),
        bodies: Vec::new(),
        fixed: Fixed::Work,
        grain_ns: Nanos::from_millis(1),
        copies: 1,
        added_hz: 0,
        samples: Some(100),
        memory_bytes: 0,
        cache_bytes: None,
        cache_known: true,
        loops: Vec::new(),
        counts: Vec::new(),
        not_counted: Vec::new(),
        sessions: Vec::new(),
    };
    NodeDoc { settings: SettingsDoc { work: Some(work), ..SettingsDoc::default() }, ..doc(node) }
}

fn read_samples(path: &Path) -> Result<Vec<Sample>, BundleError> {
    let bundle = Bundle::open(path)?;
    let mut samples = Vec::new();
    for batch in bundle.samples("a")? {
        let batch = batch?;
        samples.extend((0..batch.len()).map(|row| Sample {
            cpu: CpuId::new(u32::try_from(batch.cpus()[row]).unwrap()),
            start: Nanos::new(batch.starts()[row]),
            duration: Nanos::new(batch.durations()[row]),
            work: u64::try_from(batch.work()[row]).unwrap(),
            incomplete: batch.incomplete(row),
        }));
    }
    Ok(samples)
}

/// Samples of a CPU end to end from `start`, and an activity in every third.
fn segment(lengths: &[(i64, u64)], start: i64, first: u64, labels: &mut Labels) -> (Vec<Sample>, Vec<Activity>) {
    let cpu = CpuId::new(5_000);
    let timer = labels.intern("timer");
    let (mut at, mut samples, mut activities) = (start, Vec::new(), Vec::new());
    for (number, (length, work)) in (first..).zip(lengths) {
        let start = Nanos::new(at);
        samples.push(Sample { cpu, start, duration: Nanos::new(*length), work: *work, incomplete: number % 5 == 0 });
        if number % 3 == 0 {
            let (kind, self_time) = (Kind::Irq, Nanos::new(*length / 2));
            activities.push(Activity { cpu, detour: number, start, self_time, kind, source: timer, detail: timer });
        }
        at += length;
    }
    (samples, activities)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn what_is_written_and_resumed_reads_back(
        parts in proptest::collection::vec(proptest::collection::vec((0_i64..1 << 40, 0_u64..1 << 60), 0..40), 1..4),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run.becalm");
        let mut labels = Labels::new();
        let (mut samples, mut activities) = (Vec::new(), Vec::new());
        for (number, part) in parts.iter().enumerate() {
            // Each part is recorded by another writer, as after an interruption.
            let mut writer = match number {
                0 => BundleWriter::create(&path, &work_doc("a")).unwrap(),
                _ => BundleWriter::resume(&path, &work_doc("a")).unwrap(),
            };
            let (rows, parts) = segment(part, (number as i64) << 50, samples.len() as u64, &mut labels);
            writer.write_samples(&rows, &parts, &labels).unwrap();
            samples.extend(rows);
            activities.extend(parts.iter().map(|activity| named(activity, &labels)));
        }
        prop_assert_eq!(read_samples(&path).unwrap(), samples);
        prop_assert_eq!(read_activities(&Bundle::open(&path).unwrap(), "a").unwrap(), activities);
    }
}

#[test]
fn what_does_not_go_on_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.becalm");
    let mut labels = Labels::new();
    let (samples, activities) = segment(&[(10, 1), (10, 1), (10, 1), (10, 1)], 100, 0, &mut labels);
    let mut writer = BundleWriter::create(&path, &work_doc("a")).unwrap();
    writer.write_samples(&samples, &activities, &labels).unwrap();
    drop(writer);

    let mut writer = BundleWriter::resume(&path, &work_doc("a")).unwrap();
    let back_in_time = segment(&[(10, 1)], 90, 4, &mut labels).0;
    let error = writer.write_samples(&back_in_time, &[], &labels).unwrap_err().to_string();
    assert!(error.contains("not in order"), "{error}");
    let (later, _) = segment(&[(10, 1)], 200, 4, &mut labels);
    let error = writer.write_samples(&later, &activities, &labels).unwrap_err().to_string();
    assert!(error.contains("the segment holds its detours 4 until 5"), "{error}");
    writer.write_samples(&later, &[], &labels).unwrap();
    assert_eq!(read_samples(&path).unwrap().len(), 5);

    // Neither kind of run takes the rows of the other.
    let error = writer.write_segment(&rows(&[0], 0, 1, &mut labels).detours, &[], &labels).unwrap_err().to_string();
    assert!(error.contains("this run is one of samples"), "{error}");
    let mut writer = BundleWriter::create(&folder.path().join("other.becalm"), &doc("a")).unwrap();
    let error = writer.write_samples(&samples, &[], &labels).unwrap_err().to_string();
    assert!(error.contains("this run is one of detours"), "{error}");
    // Nothing to resume.
    assert!(BundleWriter::resume(&folder.path().join("none.becalm"), &work_doc("a")).is_err());
    assert!(BundleWriter::resume(&path, &work_doc("b")).is_err());
}

#[test]
fn a_damaged_table_is_refused_and_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.becalm");
    let mut labels = Labels::new();
    let (samples, activities) = segment(&[(1_000, 7); 200], 0, 0, &mut labels);
    BundleWriter::create(&path, &work_doc("a")).unwrap().write_samples(&samples, &activities, &labels).unwrap();
    let file = path.join("samples/node=a/0000.parquet");
    let whole = std::fs::read(&file).unwrap();
    // Whatever byte is wrong, and wherever the file is cut: an error that names the file, or samples; never a panic.
    for at in (0..whole.len()).step_by(7) {
        let mut damaged = whole.clone();
        damaged[at] ^= 0x55;
        std::fs::write(&file, &damaged).unwrap();
        if let Err(error) = read_samples(&path) {
            assert!(error.to_string().contains("0000.parquet"), "{error}");
        }
        std::fs::write(&file, &whole[..at]).unwrap();
        assert!(read_samples(&path).unwrap_err().to_string().contains("0000.parquet"));
    }
    // The samples of another table are none.
    std::fs::copy(path.join("activities/node=a/0000.parquet"), &file).unwrap();
    let error = read_samples(&path).unwrap_err().to_string();
    assert!(error.contains("becalm.activities/1"), "{error}");
}
