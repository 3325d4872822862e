//! Files that are damaged, foreign or of another version: refused by name, never with a panic.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::{ArrayRef, BooleanArray, Int32Array, Int64Array, RecordBatch, StringArray};
use becalm_bundle::{Bundle, BundleError};
use becalm_model::Kind;
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{WriterProperties, WriterVersion};
use proptest::prelude::*;

use crate::recording::{doc, read_activities, read_all, read_detours, store, uncount};

fn segment(bundle: &Path, table: &str) -> PathBuf {
    bundle.join(table).join("node=a/0000.parquet")
}

fn store_one(folder: &tempfile::TempDir) -> PathBuf {
    let path = folder.path().join("run.becalm");
    store(&path, 1);
    uncount(&path);
    path
}

/// Columns, packed as some other program would.
fn foreign(path: &Path, columns: Vec<(&str, ArrayRef)>, packing: Option<WriterProperties>) {
    pack(path, &RecordBatch::try_from_iter(columns).unwrap(), packing.unwrap_or_default());
}

fn i64s(values: &[i64]) -> ArrayRef {
    Arc::new(Int64Array::from(values.to_vec()))
}

fn cpus(values: &[i32]) -> ArrayRef {
    Arc::new(Int32Array::from(values.to_vec()))
}

fn names(values: &[&str]) -> ArrayRef {
    Arc::new(StringArray::from(values.to_vec()))
}

/// The error of reading `file` as a table of the bundle.
fn refusal(bundle: &Path, file: &Path) -> String {
    let error = read_all(bundle).unwrap_err().to_string();
    assert!(error.contains(&file.display().to_string()), "{error} does not name {}", file.display());
    error
}

#[test]
fn tables_of_other_programs_are_read_if_their_columns_fit() {
    let folder = tempfile::tempdir().unwrap();
    let path = store_one(&folder);
    foreign(
        &segment(&path, "detours"),
        vec![
            ("extra", names(&["x", "y"])),
            ("duration_ns", i64s(&[20, 0])),
            ("start_ns", i64s(&[-7, (1 << 62) - 1])),
            ("cpu", cpus(&[5, 5])),
        ],
        None,
    );
    // Neither dictionaries nor compression, and names only as plain strings.
    let plain = WriterProperties::builder().set_dictionary_enabled(false).build();
    let activities = vec![
        ("cpu", cpus(&[5, 5])),
        ("detour", i64s(&[0, 1])),
        ("start_ns", i64s(&[-7, (1 << 62) - 1])),
        ("self_ns", i64s(&[20, 0])),
        ("kind", names(&["unseen", "self"])),
        ("source", names(&["unseen", ""])),
        ("detail", names(&["", "\u{1f980}"])),
    ];
    foreign(&segment(&path, "activities"), activities, Some(plain));

    let bundle = Bundle::open(&path).unwrap();
    let detours = read_detours(&bundle, "a").unwrap();
    assert_eq!(detours.len(), 2);
    assert!(detours.iter().all(|(_, detour)| !detour.incomplete));
    assert_eq!(detours[1].1.start.get(), (1 << 62) - 1);
    let activities = read_activities(&bundle, "a").unwrap();
    assert_eq!((activities[0].4, activities[0].5.as_str()), (Kind::Unseen, "unseen"));
    assert_eq!((activities[1].4, activities[1].6.as_str()), (Kind::Becalm, "\u{1f980}"));
}

/// Three detours in columns that could hold nothing but do not, as most writers declare theirs.
fn nullable() -> RecordBatch {
    let columns = [("cpu", cpus(&[5; 3])), ("start_ns", i64s(&[1, 2, 3])), ("duration_ns", i64s(&[1, 0, 1]))];
    RecordBatch::try_from_iter_with_nullable(columns.map(|(name, column)| (name, column, true))).unwrap()
}

fn pack(path: &Path, batch: &RecordBatch, packing: WriterProperties) {
    let mut writer = ArrowWriter::try_new(fs::File::create(path).unwrap(), batch.schema(), Some(packing)).unwrap();
    writer.write(batch).unwrap();
    writer.close().unwrap();
}

#[test]
fn usual_packings_are_read_and_others_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = store_one(&folder);
    let file = segment(&path, "detours");
    for version in [WriterVersion::PARQUET_1_0, WriterVersion::PARQUET_2_0] {
        for dictionary in [true, false] {
            for encoding in [Encoding::PLAIN, Encoding::DELTA_BINARY_PACKED, Encoding::BYTE_STREAM_SPLIT] {
                let packing = WriterProperties::builder()
                    .set_writer_version(version)
                    .set_dictionary_enabled(dictionary)
                    .set_encoding(encoding);
                pack(&file, &nullable(), packing.build());
                if dictionary || encoding != Encoding::BYTE_STREAM_SPLIT {
                    let detours = read_detours(&Bundle::open(&path).unwrap(), "a").unwrap();
                    let starts: Vec<i64> = detours.iter().map(|(_, detour)| detour.start.get()).collect();
                    assert_eq!(starts, [1, 2, 3], "{encoding}");
                } else {
                    let error = refusal(&path, &file);
                    assert!(error.contains("packed as BYTE_STREAM_SPLIT"), "{error}");
                }
            }
        }
    }
}

/// Names that could be missing, as most writers declare theirs, in every packing; and one that is.
#[test]
fn names_are_read_in_every_usual_packing() {
    let folder = tempfile::tempdir().unwrap();
    let path = store_one(&folder);
    foreign(
        &segment(&path, "detours"),
        vec![("cpu", cpus(&[5])), ("start_ns", i64s(&[0])), ("duration_ns", i64s(&[900]))],
        None,
    );
    let file = segment(&path, "activities");
    // Many names, so that a small dictionary is given up in the middle.
    let count = 600;
    let sources: Vec<Option<String>> = (0..count).map(|row| Some(format!("task:{}", row * row % 217))).collect();
    let table = |sources: &[Option<String>]| {
        let columns: [(&str, ArrayRef); 7] = [
            ("cpu", cpus(&vec![5; count])),
            ("detour", i64s(&vec![0; count])),
            ("start_ns", i64s(&vec![0; count])),
            ("self_ns", i64s(&vec![1; count])),
            ("kind", names(&vec!["irq"; count])),
            ("source", Arc::new(StringArray::from(sources.to_vec()))),
            ("detail", names(&vec![""; count])),
        ];
        RecordBatch::try_from_iter_with_nullable(columns.map(|(name, column)| (name, column, true))).unwrap()
    };
    for version in [WriterVersion::PARQUET_1_0, WriterVersion::PARQUET_2_0] {
        for limit in [None, Some(200), Some(1 << 20)] {
            let packing = WriterProperties::builder()
                .set_writer_version(version)
                .set_encoding(Encoding::PLAIN)
                .set_dictionary_enabled(limit.is_some())
                .set_dictionary_page_size_limit(limit.unwrap_or(1))
                .set_data_page_row_count_limit(50)
                .set_write_batch_size(10)
                .set_max_row_group_row_count(Some(250));
            let packing = packing.build();
            pack(&file, &table(&sources), packing.clone());
            let activities = read_activities(&Bundle::open(&path).unwrap(), "a").unwrap();
            let found: Vec<_> = activities.into_iter().map(|activity| Some(activity.5)).collect();
            assert!(found == sources, "{version:?} {limit:?}");
            let mut gaps = sources.clone();
            gaps[count - 7] = None;
            pack(&file, &table(&gaps), packing);
            let error = refusal(&path, &file);
            let said = ["has rows without a value", "does not hold a value for each row"];
            assert!(said.iter().any(|said| error.contains(said)), "{version:?} {limit:?}: {error}");
        }
    }
}

#[test]
fn tables_that_contradict_the_schema_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = store_one(&folder);
    let file = segment(&path, "detours");
    let none: ArrayRef = Arc::new(Int64Array::from(vec![Some(1), None]));
    let flags: ArrayRef = Arc::new(BooleanArray::from(vec![Some(true), None]));
    let base = || vec![("cpu", cpus(&[0, 0])), ("start_ns", i64s(&[0, 9])), ("duration_ns", i64s(&[1, 1]))];
    let replaced = |name: &'static str, column: ArrayRef| {
        let mut columns = base();
        columns.retain(|(other, _)| *other != name);
        columns.push((name, column));
        columns
    };
    for (columns, why) in [
        (base().into_iter().skip(1).collect(), "no column cpu"),
        (replaced("cpu", i64s(&[0, 0])), "column cpu is of type Int64 instead of Int32"),
        (replaced("start_ns", names(&["a", "b"])), "column start_ns is of type Utf8 instead of Int64"),
        (replaced("incomplete", i64s(&[0, 0])), "column incomplete is of type Int64 instead of Boolean"),
        (replaced("duration_ns", none), "column duration_ns has rows without a value"),
        (replaced("incomplete", flags), "column incomplete has rows without a value"),
        (replaced("duration_ns", i64s(&[1, -1])), "cannot be -1 ns long"),
        (replaced("start_ns", i64s(&[9, (1 << 62) - 1])), "cannot be 1 ns long"),
        (replaced("start_ns", i64s(&[9, 0])), "rows of CPU 0 are not in order"),
        (replaced("cpu", cpus(&[0, -1])), "CPU -1 is outside"),
        (replaced("cpu", cpus(&[0, 1 << 20])), "CPU 1048576 is outside"),
    ] {
        foreign(&file, columns, None);
        let error = refusal(&path, &file);
        assert!(error.contains(why), "{error}");
        assert!(error.contains("is not a table of detours"), "{error}");
    }
}

#[test]
fn unknown_kinds_and_negative_numbers_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = store_one(&folder);
    let file = segment(&path, "activities");
    for (detour, kind, why) in [(0, "gremlin", "'gremlin' is not a kind"), (-1, "irq", "no detour -1")] {
        let columns = vec![
            ("cpu", cpus(&[0])),
            ("detour", i64s(&[detour])),
            ("start_ns", i64s(&[0])),
            ("self_ns", i64s(&[1])),
            ("kind", names(&[kind])),
            ("source", names(&["timer"])),
            ("detail", names(&[""])),
        ];
        foreign(&file, columns, None);
        let error = refusal(&path, &file);
        assert!(error.contains(why), "{error}");
    }
}

/// Activities of the run's CPU with these sources.
fn activities(sources: Vec<String>) -> Vec<(&'static str, ArrayRef)> {
    let details = vec![""; sources.len()];
    with_details(sources, names(&details))
}

/// Activities of the run's CPU with these sources and details.
fn with_details(sources: Vec<String>, details: ArrayRef) -> Vec<(&'static str, ArrayRef)> {
    let count = sources.len();
    vec![
        ("cpu", cpus(&vec![0; count])),
        ("detour", i64s(&vec![0; count])),
        ("start_ns", i64s(&vec![0; count])),
        ("self_ns", i64s(&vec![1; count])),
        ("kind", names(&vec!["irq"; count])),
        ("source", Arc::new(StringArray::from(sources))),
        ("detail", details),
    ]
}

#[test]
fn names_and_pages_that_would_take_all_memory_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = store_one(&folder);
    let file = segment(&path, "activities");
    let zstd = || WriterProperties::builder().set_compression(Compression::ZSTD(ZstdLevel::default()));
    for dictionary in [true, false] {
        let packing = || zstd().set_dictionary_enabled(dictionary).set_max_row_group_row_count(Some(1 << 20));
        for (length, is_read) in [(4 << 10, true), ((4 << 10) + 1, false)] {
            foreign(&file, activities(vec!["x".repeat(length)]), Some(packing().build()));
            match read_activities(&Bundle::open(&path).unwrap(), "a") {
                Ok(found) => assert!(is_read && found[0].5.len() == length),
                Err(_) if is_read => panic!("a name of {length} bytes was not read"),
                Err(_) => assert!(refusal(&path, &file).contains("the column source has a name of 4097 bytes")),
            }
        }
        // More names than becalm's row groups have rows.
        let many: Vec<String> = (0..=1 << 18).map(|number| number.to_string()).collect();
        let details = Arc::new(StringArray::from(many.clone()));
        let packing = packing().set_dictionary_page_size_limit(1 << 24).build();
        foreign(&file, with_details(vec![String::new(); many.len()], details), Some(packing.clone()));
        let error = refusal(&path, &file);
        assert!(error.contains("has more than 262144 names in the column detail"), "{error}");
        // More sources than a run may have, however many rows they are in.
        foreign(&file, activities(many[..=1 << 17].to_vec()), Some(packing));
        let error = refusal(&path, &file);
        assert!(error.contains("the run has more than 131072 different sources"), "{error}");
    }
    // A page of 80 MB in a few kilobytes.
    let packing = zstd()
        .set_dictionary_enabled(false)
        .set_data_page_size_limit(1 << 30)
        .set_data_page_row_count_limit(1 << 30)
        .set_write_batch_size(1 << 30);
    foreign(&file, activities(vec!["x".repeat(4_000); 20_000]), Some(packing.build()));
    assert!(fs::metadata(&file).unwrap().len() < 1 << 20);
    let error = refusal(&path, &file);
    assert!(error.contains("a page claims to become 80080000 bytes, and 67108864 is the most"), "{error}");
}

#[test]
fn names_are_bounded_together() {
    let folder = tempfile::tempdir().unwrap();
    let path = store_one(&folder);
    let file = segment(&path, "activities");
    let long = |count: usize| -> Vec<String> { (0..count).map(|number| format!("{number:04000}")).collect() };
    for dictionary in [true, false] {
        let packing = WriterProperties::builder()
            .set_compression(Compression::ZSTD(ZstdLevel::default()))
            .set_dictionary_enabled(dictionary)
            .set_dictionary_page_size_limit(1 << 26);
        // 36 MB in one row group: a few of these would fill the memory with the names alone.
        let details = Arc::new(StringArray::from(long(9_000)));
        let columns = with_details(vec![String::new(); 9_000], details);
        foreign(&file, columns, Some(packing.clone().build()));
        assert!(fs::metadata(&file).unwrap().len() < 1 << 20);
        let error = refusal(&path, &file);
        assert!(error.contains("or more than 33554432 bytes of them; write smaller row groups"), "{error}");
        // Details come and go with their row groups; sources add up.
        let packing = packing.set_max_row_group_row_count(Some(3_000));
        let details = Arc::new(StringArray::from(long(9_000)));
        foreign(&file, with_details(vec![String::new(); 9_000], details), Some(packing.clone().build()));
        assert_eq!(read_activities(&Bundle::open(&path).unwrap(), "a").unwrap().len(), 9_000);
        foreign(&file, activities(long(9_000)), Some(packing.build()));
        let error = refusal(&path, &file);
        assert!(error.contains("or more than 33554432 bytes of their names"), "{error}");
        // The same ones again and again are kept once.
        let again = long(3_000).into_iter().cycle().take(12_000).collect();
        let packing = WriterProperties::builder().set_dictionary_enabled(dictionary);
        foreign(&file, activities(again), Some(packing.set_max_row_group_row_count(Some(3_000)).build()));
        assert_eq!(read_activities(&Bundle::open(&path).unwrap(), "a").unwrap().len(), 12_000);
    }
}

#[test]
fn another_version_is_refused_and_both_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = store_one(&folder);
    for table in ["detours", "activities"] {
        let file = segment(&path, table);
        let original = fs::read(&file).unwrap();
        let version = vec![KeyValue::new("becalm.schema".to_owned(), format!("becalm.{table}/2"))];
        let packing = WriterProperties::builder().set_key_value_metadata(Some(version)).build();
        foreign(&file, vec![("cpu", cpus(&[0]))], Some(packing));
        let error = refusal(&path, &file);
        assert!(error.contains(&format!("'becalm.{table}/2'")), "{error}");
        assert!(error.contains(&format!("'becalm.{table}/1'")), "{error}");
        fs::write(&file, original).unwrap();
    }

    let file = path.join("runs/node=a.json");
    fs::write(&file, r#"{"schema": "becalm.run/2", "all": ["else", "is", "new"]}"#).unwrap();
    let error = refusal(&path, &file);
    assert!(error.contains("'becalm.run/2'") && error.contains("'becalm.run/1'"), "{error}");
}

#[test]
fn damaged_documents_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = store_one(&folder);
    let file = path.join("runs/node=a.json");
    let good = fs::read_to_string(&file).unwrap();
    for (text, why) in [
        (String::new(), "EOF"),
        ("[]".to_owned(), "invalid length 0"),
        ("{}".to_owned(), "missing field `schema`"),
        (good[..good.len() / 2].to_owned(), "EOF"),
        (good.replace("\"node\": \"a\"", "\"node\": \"b\""), "it is of node 'b'"),
        (good.replace("\"duration_ns\": 1", "\"duration_ns\": -1"), "duration_ns of CPU 0 is negative"),
        (good.replace("\"start_ns\": -5", "\"start_ns\": -9223372036854775808"), "CPU 0 cannot have run from"),
        (good.replace("\"start_ns\": -5", "\"start_ns\": 9223372036854775807"), "CPU 0 cannot have run from"),
        (good.replace("\"cpu\": 0", "\"cpu\": 3"), "3 is followed by 3"),
        (good.replace("\"cpu\": 3", "\"cpu\": 1048576"), "above the limit"),
    ] {
        assert_ne!(text, good, "{why}");
        fs::write(&file, text).unwrap();
        let error = refusal(&path, &file);
        assert!(error.contains(why), "{error}");
    }
}

#[test]
fn foreign_and_empty_files_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = store_one(&folder);
    for table in ["detours", "activities"] {
        let file = segment(&path, table);
        let original = fs::read(&file).unwrap();
        for contents in [&b""[..], b"PAR1", b"PAR1PAR1", b"cpu,start_ns\n0,1\n", &[0; 4096]] {
            fs::write(&file, contents).unwrap();
            assert!(refusal(&path, &file).contains("as Parquet"));
        }
        fs::remove_file(&file).unwrap();
        fs::create_dir(&file).unwrap();
        refusal(&path, &file);
        fs::remove_dir(&file).unwrap();
        fs::write(&file, original).unwrap();
    }
    read_all(&path).unwrap();
}

#[test]
fn every_truncation_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = store_one(&folder);
    for table in ["detours", "activities"] {
        let file = segment(&path, table);
        let original = fs::read(&file).unwrap();
        for length in 0..original.len() {
            fs::write(&file, &original[..length]).unwrap();
            refusal(&path, &file);
        }
        fs::write(&file, original).unwrap();
    }
}

#[test]
fn what_is_no_bundle_is_not_opened() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    let empty = folder.path().join("empty.becalm");
    fs::create_dir_all(empty.join("runs")).unwrap();
    for (path, why) in [
        (folder.path().to_owned(), "without the subdirectory 'runs'"),
        (file, "it is a file"),
        (folder.path().join("missing"), "No such file"),
        (empty, "no node's document"),
    ] {
        let error = Bundle::open(&path).unwrap_err().to_string();
        assert!(error.contains(why) && error.contains(&path.display().to_string()), "{error}");
    }
}

#[test]
fn a_node_that_is_not_there_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let bundle = Bundle::open(&store_one(&folder)).unwrap();
    let error = bundle.detours("b").err().unwrap();
    assert!(matches!(error, BundleError::NoSuchNode { .. }));
    assert!(error.to_string().contains("no node 'b'; it holds a"), "{error}");
    assert!(bundle.activities("../a").is_err());
}

/// Writes the segment's contents again without compression, so that damage reaches every decoder instead of being
/// found by the decompressor.
fn unpack(bundle: &Path, table: &str, encoding: Encoding) -> Vec<u8> {
    use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
    let file = segment(bundle, table);
    let reader = ParquetRecordBatchReaderBuilder::try_new(fs::File::open(&file).unwrap()).unwrap();
    let schema = Arc::clone(reader.schema());
    let packing = WriterProperties::builder()
        .set_compression(Compression::UNCOMPRESSED)
        .set_dictionary_enabled(encoding == Encoding::RLE_DICTIONARY)
        .set_data_page_row_count_limit(16)
        .set_write_batch_size(8)
        .set_max_row_group_row_count(Some(48));
    let packing = if encoding == Encoding::RLE_DICTIONARY { packing } else { packing.set_encoding(encoding) };
    let mut bytes = Vec::new();
    let mut writer = ArrowWriter::try_new(&mut bytes, schema, Some(packing.build())).unwrap();
    for batch in reader.build().unwrap() {
        writer.write(&batch.unwrap()).unwrap();
    }
    writer.close().unwrap();
    bytes
}

/// A place of a file and what to put there.
fn damage() -> impl Strategy<Value = Vec<(prop::sample::Index, u8)>> {
    proptest::collection::vec((any::<prop::sample::Index>(), prop_oneof![any::<u8>(), Just(0), Just(0xff)]), 1..6)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn damage_never_panics(marks in proptest::collection::vec(damage(), 50..51), at_end: bool) {
        thread_local! {
            static CASES: (tempfile::TempDir, Vec<(PathBuf, Vec<u8>)>) = {
                let folder = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
                let path = store_one(&folder);
                let mut cases = Vec::new();
                for table in ["detours", "activities"] {
                    let file = segment(&path, table);
                    cases.push((file.clone(), fs::read(&file).unwrap()));
                    cases.push((file.clone(), unpack(&path, table, Encoding::RLE_DICTIONARY)));
                    cases.push((file.clone(), unpack(&path, table, Encoding::PLAIN)));
                }
                (folder, cases)
            };
        }
        CASES.with(|(folder, cases)| for (file, original) in cases {
            for marks in &marks {
                let mut bytes = original.clone();
                for (index, byte) in marks {
                    let span = if at_end { bytes.len().min(600) } else { bytes.len() };
                    let at = bytes.len() - 1 - index.index(span);
                    bytes[at] = *byte;
                }
                fs::write(file, &bytes).unwrap();
                if let Err(error) = read_all(&folder.path().join("run.becalm")) {
                    let error = error.to_string();
                    assert!(error.contains("node=a/0000.parquet"), "{error}");
                    // A panic that was caught: something that the checks of pages are to refuse before.
                    assert!(!error.contains("gave up"), "{error}");
                }
            }
            fs::write(file, original).unwrap();
        });
    }
}

#[test]
fn damage_in_a_document_never_panics() {
    let folder = tempfile::tempdir().unwrap();
    let path = store_one(&folder);
    let file = path.join("runs/node=a.json");
    let text = serde_json::to_vec(&doc("a")).unwrap();
    for at in 0..text.len() {
        for byte in [b'0', b'"', b'}', b'-', 0xff] {
            let mut text = text.clone();
            text[at] = byte;
            fs::write(&file, text).unwrap();
            if let Err(error) = Bundle::open(&path) {
                assert!(error.to_string().contains("node=a.json"), "{error}");
            }
        }
    }
}
