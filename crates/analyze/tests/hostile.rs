//! Bundles that are made to take all memory.

use std::fs::{self, File};
use std::path::Path;
use std::sync::Arc;

use becalm_analyze::compare::compare;
use becalm_analyze::noise::NoiseInput;
use becalm_analyze::summary::{Selection, summarize};
use becalm_bundle::Bundle;
use parquet::data_type::{ByteArray, ByteArrayType, Int32Type, Int64Type};
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;

const SCHEMA: &str =
    "message m { required int32 cpu; required int64 detour; required int64 start_ns; required int64 self_ns;
    required binary kind (UTF8); required binary source (UTF8); required binary detail (UTF8); }";

/// A text of three letters for each number.
fn three_letters(number: usize) -> String {
    let digits = [number / 8_100, number / 90 % 90, number % 90];
    digits.map(|digit| char::from(b'!' + digit as u8)).iter().collect()
}

/// Has the document count so many activities instead.
fn count_activities(bundle: &Path, before: usize, now: usize) {
    let document = bundle.join("runs/node=node1.json");
    let text = fs::read_to_string(&document).unwrap();
    let changed = text.replace(&format!("\"activities\": {before}"), &format!("\"activities\": {now}"));
    assert_ne!(changed, text);
    fs::write(&document, changed).unwrap();
}

/// Writes activities whose dictionary of kinds has one of them so many times, and as many sources.
fn write_many_kinds(path: &Path, count: usize) {
    let packing = WriterProperties::builder()
        .set_dictionary_page_size_limit(1 << 24)
        .set_statistics_enabled(EnabledStatistics::None)
        .build();
    let schema = Arc::new(parse_message_type(SCHEMA).unwrap());
    let mut writer = SerializedFileWriter::new(File::create(path).unwrap(), schema, Arc::new(packing)).unwrap();
    let mut group = writer.next_row_group().unwrap();
    let mut number = 0;
    while let Some(mut column) = group.next_column().unwrap() {
        let texts: Vec<ByteArray> = match number {
            4 => (0..count).map(|row| three_letters(row).as_str().into()).collect(),
            5 => (0..count).map(|row| format!("source {row}").as_str().into()).collect(),
            _ => vec!["".into(); count],
        };
        match number {
            0 => column.typed::<Int32Type>().write_batch(&vec![0; count], None, None).unwrap(),
            1..=3 => column.typed::<Int64Type>().write_batch(&vec![0; count], None, None).unwrap(),
            _ => column.typed::<ByteArrayType>().write_batch(&texts, None, None).unwrap(),
        };
        column.close().unwrap();
        number += 1;
    }
    group.close().unwrap();
    writer.close().unwrap();
    // No writer puts a name into a dictionary twice; so this is done behind its back.
    let mut bytes = fs::read(path).unwrap();
    let entry = |row| [&3_u32.to_le_bytes()[..], three_letters(row).as_bytes()].concat();
    let first = [entry(0), entry(1)].concat();
    let mut at = bytes.windows(first.len()).position(|window| window == first).unwrap();
    for row in 0..count {
        assert_eq!(bytes[at..at + 7], entry(row));
        bytes[at + 4..at + 7].copy_from_slice(b"irq");
        at += 7;
    }
    fs::write(path, bytes).unwrap();
}

#[test]
fn kinds_and_sources_take_memory_by_their_number_and_not_by_their_product() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.becalm");
    becalm_fixtures::write_named(&path, "x");
    // 60,000 times 60,000 would be 14 GB and more.
    write_many_kinds(&path.join("activities/node=node1/0000.parquet"), 60_000);
    count_activities(&path, 400, 60_000);
    let bundle = Bundle::open(&path).unwrap();
    let everything = Selection { node: None, cpus: None, with_self: false };
    let summary = summarize(&bundle, &everything).unwrap();
    assert_eq!(summary.sources.len(), 60_000);
    NoiseInput::from_run(&bundle, &everything, true).unwrap();
    // Each of these is resampled, which takes longer than to read them.
    write_many_kinds(&path.join("activities/node=node1/0000.parquet"), 20_000);
    count_activities(&path, 60_000, 20_000);
    let bundle = Bundle::open(&path).unwrap();
    compare((&bundle, &everything), (&bundle, &everything)).unwrap();
}
