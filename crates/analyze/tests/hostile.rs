//! Bundles that are made to take all memory, or to end the program.

use std::fs::{self, File};
use std::path::Path;
use std::sync::Arc;

use becalm_analyze::compare::compare;
use becalm_analyze::noise::NoiseInput;
use becalm_analyze::summary::{Selection, summarize};
use becalm_analyze::work::summarize_work;
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

enum Column {
    Cpus(Vec<i32>),
    Numbers(Vec<i64>),
    Texts(Vec<String>),
}

/// Writes a table as no becalm would.
fn write_table(path: &Path, schema: &str, columns: &[Column]) {
    let packing = WriterProperties::builder()
        .set_dictionary_page_size_limit(1 << 24)
        .set_statistics_enabled(EnabledStatistics::None)
        .build();
    let schema = Arc::new(parse_message_type(schema).unwrap());
    let mut writer = SerializedFileWriter::new(File::create(path).unwrap(), schema, Arc::new(packing)).unwrap();
    let mut group = writer.next_row_group().unwrap();
    for values in columns {
        let mut column = group.next_column().unwrap().unwrap();
        match values {
            Column::Cpus(cpus) => column.typed::<Int32Type>().write_batch(cpus, None, None).unwrap(),
            Column::Numbers(numbers) => column.typed::<Int64Type>().write_batch(numbers, None, None).unwrap(),
            Column::Texts(texts) => {
                let texts: Vec<ByteArray> = texts.iter().map(|text| text.as_str().into()).collect();
                column.typed::<ByteArrayType>().write_batch(&texts, None, None).unwrap()
            }
        };
        column.close().unwrap();
    }
    group.close().unwrap();
    writer.close().unwrap();
}

/// Writes activities whose dictionary of kinds has one of them so many times, and as many sources.
fn write_many_kinds(path: &Path, count: usize) {
    let zeros = || Column::Numbers(vec![0; count]);
    let kinds = (0..count).map(three_letters).collect();
    let sources = (0..count).map(|row| format!("source {row}")).collect();
    let texts = [kinds, sources, vec![String::new(); count]].map(Column::Texts);
    let columns = [Column::Cpus(vec![0; count]), zeros(), zeros(), zeros()];
    write_table(path, SCHEMA, &columns.into_iter().chain(texts).collect::<Vec<_>>());
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
    let everything = Selection::default();
    let summary = summarize(&bundle, &everything).unwrap();
    assert_eq!(summary.sources.len(), 60_000);
    NoiseInput::from_run(&bundle, &everything, true).unwrap();
    // Each of these is resampled, which takes longer than to read them.
    write_many_kinds(&path.join("activities/node=node1/0000.parquet"), 20_000);
    count_activities(&path, 60_000, 20_000);
    let bundle = Bundle::open(&path).unwrap();
    compare((&bundle, &everything), (&bundle, &everything)).unwrap();
}

/// Each time is one that can be, and the sums are more than integers hold.
#[test]
fn sums_of_a_damaged_table_are_no_panic() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.becalm");
    becalm_fixtures::write_named(&path, "x");
    let (numbers, times) = (Column::Numbers((0..8).collect()), |ns| Column::Numbers(vec![ns; 8]));
    let texts = |text: &dyn Fn(usize) -> &'static str| Column::Texts((0..8).map(|row| text(row).to_owned()).collect());
    let sources = texts(&|row| if row % 2 == 0 { "one" } else { "other" });
    let columns =
        [Column::Cpus(vec![0; 8]), numbers, times(0), times(1 << 61), texts(&|_| "unseen"), sources, texts(&|_| "")];
    write_table(&path.join("activities/node=node1/0000.parquet"), SCHEMA, &columns);
    count_activities(&path, 400, 8);
    let everything = Selection::default();
    let summary = summarize(&Bundle::open(&path).unwrap(), &everything).unwrap();
    assert_eq!(summary.cpus[0].figures.unseen_ns, Some(i64::MAX));
}

/// Samples are taken one after the other, and of a loop of fixed time each is worth what its iterations take.
#[test]
fn samples_that_no_loop_takes_are_refused_or_counted() {
    const SAMPLES: &str = "message m { required int32 cpu; required int64 start_ns; required int64 duration_ns; \
                           required int64 work; }";
    let folder = tempfile::tempdir().unwrap();
    becalm_fixtures::work::write_all(folder.path());
    let summary = |name: &str, cpu: i32, [starts, durations, work]: [Vec<i64>; 3]| {
        let path = folder.path().join(name);
        let columns = [Column::Cpus(vec![cpu; starts.len()]), Column::Numbers(starts), Column::Numbers(durations)];
        let columns: Vec<Column> = columns.into_iter().chain([Column::Numbers(work)]).collect();
        write_table(&path.join("samples/node=node1/0000.parquet"), SAMPLES, &columns);
        let everything = Selection::default();
        summarize_work(&Bundle::open(&path).unwrap(), &everything, None).map_err(|error| error.to_string())
    };
    let overlapping = summary("brief.becalm", 1, [vec![0; 40], vec![1 << 61; 40], vec![1; 40]]).unwrap_err();
    assert!(overlapping.contains("starts at 0 ns, before the end of the previous one"), "{overlapping}");
    let work = (0..12_000).map(|row| if row % 4 == 0 { i64::MAX } else { 1 }).collect();
    summary("quanta.becalm", 0, [(0..12_000).map(|at| at << 48).collect(), vec![1 << 48; 12_000], work]).unwrap();
}
