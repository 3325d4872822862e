//! A damaged bundle: it must open and read, or be refused with an error.
//!
//! The input's first byte chooses a file of a valid bundle, and whether the rest replaces it or patches it: each four
//! bytes then are a place (16 bits), a byte to be added there, and how much of the end to cut off, in 64ths.
#![no_main]

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use becalm_bundle::{Bundle, BundleError, BundleWriter};
use becalm_model::node::{ClockDoc, MachineDoc, Rung, SCHEMA, SettingsDoc};
use becalm_model::{Activity, Detour, Kind, Labels, NodeDoc};
use becalm_units::{CpuId, Nanos};
use libfuzzer_sys::fuzz_target;

/// The bundle, and its files with their valid contents.
struct Valid {
    folder: tempfile::TempDir,
    files: Vec<(PathBuf, Vec<u8>)>,
}

static VALID: LazyLock<Valid> = LazyLock::new(|| {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("run.becalm");
    let doc = NodeDoc {
        schema: SCHEMA.to_owned(),
        node: "n".to_owned(),
        program: "becalm".to_owned(),
        origin: jiff::Timestamp::UNIX_EPOCH,
        ended: None,
        machine: MachineDoc::default(),
        clock: ClockDoc::default(),
        settings: SettingsDoc::default(),
        rung: Rung::Tracepoints,
        cpus: Vec::new(),
        tracing: None,
        counters: Vec::new(),
        warnings: Vec::new(),
    };
    let mut labels = Labels::new();
    let (source, detail) = (labels.intern("timer"), labels.intern("236"));
    let (mut detours, mut activities) = (Vec::new(), Vec::new());
    for detour in 0..20 {
        let (cpu, start, duration) = (CpuId::new(0), Nanos::new(detour as i64 * 1000), Nanos::new(300));
        detours.push(Detour { cpu, start, duration, incomplete: detour % 3 == 0 });
        activities.push(Activity { cpu, detour, start, self_time: duration, kind: Kind::Irq, source, detail });
    }
    let mut writer = BundleWriter::create(&path, &doc).expect("a new bundle");
    writer.write_segment(&detours, &activities, &labels).expect("a segment");
    drop(writer);
    let mut files = Vec::new();
    collect(&path, &mut files);
    files.sort();
    Valid { folder, files }
});

fn collect(folder: &Path, files: &mut Vec<(PathBuf, Vec<u8>)>) {
    for path in fs::read_dir(folder).expect("our own folder").map(|entry| entry.expect("our own folder").path()) {
        if path.is_dir() {
            collect(&path, files);
        } else {
            let content = fs::read(&path).expect("our own file");
            files.push((path, content));
        }
    }
}

/// Reads all there is, and each field of it.
fn read(path: &Path) -> Result<usize, BundleError> {
    let bundle = Bundle::open(path)?;
    let mut rows = 0;
    for node in bundle.nodes() {
        for batch in bundle.detours(&node.node)? {
            let batch = batch?;
            rows += (0..batch.len()).filter(|row| batch.incomplete(*row)).count();
            assert_eq!(batch.starts().len(), batch.durations().len());
        }
        for batch in bundle.activities(&node.node)? {
            let batch = batch?;
            for row in 0..batch.len() {
                rows += batch.source(row).len() + batch.detail(row).len() + batch.kind(row).name().len();
            }
        }
    }
    Ok(rows)
}

fuzz_target!(|input: &[u8]| {
    let Some((&choice, rest)) = input.split_first() else { return };
    let valid = &*VALID;
    let (path, content) = &valid.files[usize::from(choice >> 1) % valid.files.len()];
    let mut damaged = content.clone();
    if choice & 1 == 1 {
        damaged = rest.to_vec();
    } else {
        for patch in rest.chunks_exact(4) {
            let place = usize::from(u16::from_le_bytes([patch[0], patch[1]]));
            if !damaged.is_empty() {
                let place = place % damaged.len();
                damaged[place] = damaged[place].wrapping_add(patch[2]);
                damaged.truncate(damaged.len() - damaged.len() * usize::from(patch[3] % 64) / 64);
            }
        }
    }
    fs::write(path, damaged).expect("our own file");
    let _ = read(&valid.folder.path().join("run.becalm"));
    fs::write(path, content).expect("our own file");
});
