//! Pages that no writer makes, put into files by hand: each is refused for what is wrong with it, by the check that is there for it.
//! [`super::hostile`] damages what writers make.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use becalm_bundle::Bundle;
use bytes::Bytes;
use parquet::basic::Encoding;
use parquet::column::page::{CompressedPage, Page, PageWriter};
use parquet::column::writer::ColumnCloseResult;
use parquet::data_type::ByteArray;
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::properties::WriterProperties;
use parquet::file::statistics::Statistics;
use parquet::file::writer::{SerializedFileWriter, SerializedPageWriter, TrackedWrite};
use parquet::schema::parser::parse_message_type;

use crate::recording::{read_all, store, uncount};

/// A column as the file's schema declares it, and its pages.
type Column = (&'static str, Vec<Page>);

/// A page of the first version.
fn data(encoding: Encoding, count: u32, values: impl Into<Bytes>) -> Page {
    Page::DataPage {
        buf: values.into(),
        num_values: count,
        encoding,
        def_level_encoding: Encoding::RLE,
        rep_level_encoding: Encoding::RLE,
        statistics: None,
    }
}

fn plain(count: u32, values: impl Into<Bytes>) -> Page {
    data(Encoding::PLAIN, count, values)
}

fn keys(count: u32, values: impl Into<Bytes>) -> Page {
    data(Encoding::RLE_DICTIONARY, count, values)
}

fn dictionary(count: u32, values: impl Into<Bytes>) -> Page {
    Page::DictionaryPage { buf: values.into(), num_values: count, encoding: Encoding::PLAIN, is_sorted: false }
}

fn i32s(values: &[i32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

fn i64s(values: &[i64]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

/// Texts behind their lengths.
fn texts(values: &[&str]) -> Vec<u8> {
    values
        .iter()
        .flat_map(|text| [&u32::try_from(text.len()).unwrap().to_le_bytes(), text.as_bytes()].concat())
        .collect()
}

/// A number as Parquet writes it: seven bits a byte, the lowest first.
fn varint(mut value: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while value > 0x7f {
        bytes.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
    bytes
}

/// The same key for so many rows, of 8 bits.
fn one_key(key: u8, count: u32) -> Vec<u8> {
    [vec![8], varint(u64::from(count) << 1), vec![key]].concat()
}

/// So many zeros, packed as differences in one block.
fn zeros(count: u32) -> Vec<u8> {
    let block = u64::from(count).next_multiple_of(128);
    // A block of one part; the count; the first number; the least difference; bits of a difference.
    [varint(block), vec![1], varint(count.into()), vec![0], vec![0], vec![0]].concat()
}

/// Two detours.
fn detours() -> Vec<Column> {
    vec![
        ("required int32 cpu", vec![plain(2, i32s(&[5, 5]))]),
        ("required int64 start_ns", vec![plain(2, i64s(&[1, 9]))]),
        ("required int64 duration_ns", vec![plain(2, i64s(&[1, 1]))]),
        ("required boolean incomplete", vec![plain(2, vec![0])]),
    ]
}

/// Two activities.
fn activities() -> Vec<Column> {
    vec![
        ("required int32 cpu", vec![plain(2, i32s(&[5, 5]))]),
        ("required int64 detour", vec![plain(2, i64s(&[0, 1]))]),
        ("required int64 start_ns", vec![plain(2, i64s(&[1, 9]))]),
        ("required int64 self_ns", vec![plain(2, i64s(&[1, 1]))]),
        ("required binary kind (STRING)", vec![plain(2, texts(&["irq", "irq"]))]),
        ("required binary source (STRING)", vec![plain(2, texts(&["timer", "timer"]))]),
        ("required binary detail (STRING)", vec![plain(2, texts(&["", ""]))]),
    ]
}

/// Writes a file of one row group, whose footer claims so many rows.
pub fn write(path: &Path, rows: u32, columns: Vec<Column>) {
    let declared: String = columns.iter().map(|(declared, _)| format!("{declared}; ")).collect();
    let schema = parse_message_type(&format!("message arrow_schema {{ {declared} }}")).unwrap();
    let properties = Arc::new(WriterProperties::builder().build());
    let mut writer = SerializedFileWriter::new(fs::File::create(path).unwrap(), Arc::new(schema), properties).unwrap();
    let descriptors = writer.schema_descr().columns().to_vec();
    let mut group = writer.next_row_group().unwrap();
    for ((_, pages), descriptor) in columns.into_iter().zip(descriptors) {
        let mut sink = TrackedWrite::new(Vec::new());
        for page in pages {
            // Large enough for whatever the page claims of its levels.
            let size = page.buffer().len().max(1_000);
            SerializedPageWriter::new(&mut sink).write_page(CompressedPage::new(page, size)).unwrap();
        }
        let bytes = Bytes::from(sink.into_inner().unwrap());
        // A dictionary may stand where data is said to begin, as older writers have it.
        let metadata = ColumnChunkMetaData::builder(descriptor)
            .set_num_values(rows.into())
            .set_total_compressed_size(bytes.len() as i64)
            .set_total_uncompressed_size(bytes.len() as i64)
            .set_data_page_offset(0)
            .build()
            .unwrap();
        let close = ColumnCloseResult {
            bytes_written: bytes.len() as u64,
            rows_written: rows.into(),
            metadata,
            bloom_filter: None,
            column_index: None,
            offset_index: None,
        };
        group.append_column(&bytes, close).unwrap();
    }
    group.close().unwrap();
    writer.close().unwrap();
}

/// A bundle in which one file at a time is replaced.
struct Crafted {
    bundle: PathBuf,
    /// Holds the bundle.
    _folder: tempfile::TempDir,
}

impl Crafted {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let bundle = folder.path().join("run.becalm");
        store(&bundle, 1);
        uncount(&bundle);
        Self { bundle, _folder: folder }
    }

    /// What reading says of one of the tables, in which a column has other pages; it takes the place of its namesake.
    fn answer(&self, table: &str, rows: u32, declared: &'static str, pages: Vec<Page>) -> Result<usize, String> {
        let mut columns = if table == "detours" { detours() } else { activities() };
        let name = |declared: &str| declared.split(' ').nth(2).unwrap().to_owned();
        let place = columns.iter().position(|(other, _)| name(other) == name(declared)).unwrap();
        columns[place] = (declared, pages);
        self.read(table, rows, columns)
    }

    fn read(&self, table: &str, rows: u32, columns: Vec<Column>) -> Result<usize, String> {
        let file = self.bundle.join(table).join("node=a/0000.parquet");
        let before = fs::read(&file).unwrap();
        write(&file, rows, columns);
        let read = read_all(&self.bundle).map_err(|error| error.to_string());
        if let Err(error) = &read {
            assert!(error.contains(&file.display().to_string()), "{error} does not name {}", file.display());
        }
        fs::write(&file, before).unwrap();
        read
    }

    /// The table is refused for this reason.
    fn refused(&self, table: &str, declared: &'static str, pages: impl Into<Vec<Page>>, why: &str) {
        let error = self.answer(table, 2, declared, pages.into()).expect_err(why);
        assert!(error.contains(why), "{error:?} does not say {why:?}");
    }

    /// The table is read.
    fn accepted(&self, table: &str, declared: &'static str, pages: impl Into<Vec<Page>>) {
        self.answer(table, 2, declared, pages.into()).unwrap();
    }
}

const CPU: &str = "required int32 cpu";
const START: &str = "required int64 start_ns";
const FLAG: &str = "required boolean incomplete";
const SOURCE: &str = "required binary source (STRING)";

#[test]
fn a_dictionary_holds_as_many_numbers_as_it_says() {
    let crafted = Crafted::new();
    let why = |count: u32, bytes: usize| format!("says that it holds {count} values, and has {bytes} bytes");
    // A regression would take some hundred megabytes here, and all memory with the largest count that a header can tell.
    for count in [3, 1 << 26] {
        let refused = |declared, values: Vec<u8>, key| {
            let why = why(count, values.len());
            crafted.refused("detours", declared, [dictionary(count, values), keys(2, one_key(key, 2))], &why);
        };
        refused(CPU, i32s(&[5, 5]), 0);
        refused(CPU, Vec::new(), 0);
        refused(START, i64s(&[1, 9]), 0);
    }
    crafted.refused("detours", FLAG, [dictionary(9, vec![0]), keys(2, one_key(0, 2))], &why(9, 1));
    crafted.accepted("detours", CPU, [dictionary(2, i32s(&[4, 5])), keys(2, one_key(1, 2))]);
    crafted.accepted("detours", START, [dictionary(2, i64s(&[1, 9])), keys(2, one_key(1, 2))]);
    crafted.accepted("detours", FLAG, [dictionary(8, vec![0]), keys(2, one_key(7, 2))]);
}

#[test]
fn numbers_whose_page_lacks_what_it_promises_are_refused() {
    let crafted = Crafted::new();
    let delta = |values: Vec<u8>| data(Encoding::DELTA_BINARY_PACKED, 2, values);
    for (pages, why) in [
        (vec![keys(2, one_key(0, 2))], "a page of the column start_ns has no dictionary before it"),
        (vec![data(Encoding::PLAIN_DICTIONARY, 2, one_key(0, 2))], "has no dictionary before it"),
        (vec![dictionary(1, i64s(&[1])), keys(2, one_key(1, 2))], "index"),
        (
            vec![dictionary(1, i64s(&[1])), dictionary(1, i64s(&[1])), keys(2, one_key(0, 2))],
            "more than one dictionary",
        ),
        (vec![delta(vec![0x80, 1, 4])], "does not say how many values it holds"),
        (vec![delta(vec![0x80, 1, 4, 0, 0])], "does not say how many values it holds"),
        (vec![delta(zeros(1))], "insufficient values"),
        (vec![delta([varint(1 << 60), vec![1, 2, 0, 0, 0xff]].concat())], "packs 1152921504606846976 values a block"),
        (vec![plain(2, i64s(&[1]))], "Not enough bytes"),
        (vec![plain(1, i64s(&[1]))], "its pages do not hold as many rows as its footer says"),
        (vec![plain(2, i64s(&[1, 9])), plain(1, i64s(&[10]))], "its pages do not hold as many rows as its footer says"),
        (vec![data(Encoding::DELTA_BYTE_ARRAY, 2, vec![0; 8])], "packed as DELTA_BYTE_ARRAY, which is not read here"),
    ] {
        crafted.refused("detours", START, pages, why);
    }
    crafted.accepted("detours", START, [delta(zeros(2))]);
    crafted.accepted("detours", START, [plain(0, Vec::new()), plain(2, i64s(&[1, 9]))]);
}

#[test]
fn names_whose_page_lacks_what_it_promises_are_refused() {
    let crafted = Crafted::new();
    let two = || dictionary(2, texts(&["timer", "tick"]));
    let long = [&4_097_u32.to_le_bytes()[..], &[b'x'; 4_097]].concat();
    for (pages, why) in [
        (vec![keys(2, one_key(0, 2))], "a page of the column source has no dictionary before it"),
        (vec![two(), keys(2, one_key(2, 2))], "has rows outside of its dictionary"),
        (vec![two(), keys(2, vec![33, 4, 0])], "does not say how its keys are packed"),
        (vec![two(), keys(2, Vec::new())], "does not say how its keys are packed"),
        (vec![two(), keys(2, one_key(0, 1))], "does not hold a value for each row"),
        (vec![two(), two(), keys(2, one_key(0, 2))], "is a dictionary behind other values"),
        (vec![plain(1, texts(&["timer"])), two(), keys(1, one_key(0, 1))], "is a dictionary behind other values"),
        (vec![dictionary(1, texts(&["timer", "tick"])), keys(2, one_key(0, 2))], "holds more values than it says"),
        (vec![dictionary(3, texts(&["timer", "tick"])), keys(2, one_key(0, 2))], "does not hold a value for each row"),
        (vec![plain(2, texts(&["timer"]))], "does not hold a value for each row"),
        (vec![plain(2, texts(&["timer", "tick", ""]))], "holds more values than it says"),
        (vec![plain(2, [texts(&["timer"]), vec![9, 0, 0, 0, b'x']].concat())], "does not hold a value for each row"),
        (vec![plain(2, [texts(&["timer"]), vec![1, 0, 0, 0, 0xff]].concat())], "has a text that is not UTF-8"),
        (vec![plain(2, [texts(&["timer"]), long].concat())], "has a name of 4097 bytes"),
        (vec![data(Encoding::RLE, 2, one_key(0, 2))], "is packed as RLE, which is not read here"),
        (vec![data(Encoding::DELTA_BINARY_PACKED, 2, zeros(2))], "packed as DELTA_BINARY_PACKED, which is not read"),
    ] {
        crafted.refused("activities", SOURCE, pages, why);
    }
    crafted.accepted("activities", SOURCE, [two(), keys(2, one_key(1, 2))]);
    crafted.accepted("activities", SOURCE, [two(), plain(1, texts(&["other"])), keys(1, one_key(1, 1))]);
}

/// Statistics tell the least and the greatest name whole, twice in old files.
#[test]
fn headers_with_the_longest_names_are_read() {
    let crafted = Crafted::new();
    let [least, greatest] = ["a", "b"].map(|letter| letter.repeat(4 << 10));
    let told = |text: &str| Some(ByteArray::from(text));
    for is_old in [false, true] {
        let statistics = Statistics::byte_array(told(&least), told(&greatest), None, Some(0), is_old);
        let page = Page::DataPage {
            buf: texts(&[&least, &greatest]).into(),
            num_values: 2,
            encoding: Encoding::PLAIN,
            def_level_encoding: Encoding::RLE,
            rep_level_encoding: Encoding::RLE,
            statistics: Some(statistics),
        };
        crafted.accepted("activities", SOURCE, [page]);
    }
}

#[test]
fn keys_mean_names_of_the_dictionary_and_not_plain_texts_behind_it() {
    let crafted = Crafted::new();
    let pages = [dictionary(1, texts(&["timer"])), plain(1, texts(&["tick"])), keys(1, one_key(1, 1))];
    crafted.refused("activities", SOURCE, pages, "the column source has rows outside of its dictionary");
}

/// Values behind levels of which each is 1: there is a value.
fn leveled(levels: &[u8], values: &[u8]) -> Vec<u8> {
    [&u32::try_from(levels.len()).unwrap().to_le_bytes(), levels, values].concat()
}

#[test]
fn levels_that_do_not_fit_their_page_are_refused() {
    const NULLABLE: &str = "optional int64 start_ns";
    let crafted = Crafted::new();
    let two = i64s(&[1, 9]);
    let mut endless = leveled(&[4, 1], &two);
    endless[..4].copy_from_slice(&[0xff; 4]);
    let second = |def_levels_byte_len, num_nulls, buf: Vec<u8>| Page::DataPageV2 {
        buf: buf.into(),
        num_values: 2,
        encoding: Encoding::PLAIN,
        num_nulls,
        num_rows: 2,
        def_levels_byte_len,
        rep_levels_byte_len: 0,
        is_compressed: false,
        statistics: None,
    };
    for (page, why) in [
        (plain(2, vec![0; 3]), "is cut off"),
        (plain(2, endless), "has levels longer than itself"),
        (second(500, 0, [vec![4, 1], two.clone()].concat()), "has levels longer than itself"),
        (second(2, 1, [vec![4, 1], two.clone()].concat()), "has rows without a value"),
        (plain(2, leveled(&[2, 1], &two)), "insufficient definition levels"),
        (plain(2, leveled(&[4, 0], &[])), "has rows without a value"),
    ] {
        crafted.refused("detours", NULLABLE, [page], why);
    }
    for page in [plain(2, leveled(&[4, 1], &two)), second(2, 0, [vec![4, 1], two.clone()].concat())] {
        crafted.accepted("detours", NULLABLE, [page]);
    }
    const NAMES: &str = "optional binary source (STRING)";
    let names = texts(&["timer", "tick"]);
    crafted.refused("activities", NAMES, [plain(2, leveled(&[2, 1], &names))], "does not hold a level for each row");
    crafted.refused("activities", NAMES, [plain(2, leveled(&[4, 0], &names))], "has rows without a value");
    crafted.accepted("activities", NAMES, [plain(2, leveled(&[4, 1], &names))]);
}

/// The first kind of levels that Parquet had: a bit for each row, without a length before them.
#[test]
#[expect(deprecated, reason = "readers must know what they refuse")]
fn levels_of_the_first_kind_are_refused_as_what_they_are() {
    let crafted = Crafted::new();
    let packed = |count, buf: Vec<u8>| Page::DataPage {
        buf: buf.into(),
        num_values: count,
        encoding: Encoding::PLAIN,
        def_level_encoding: Encoding::BIT_PACKED,
        rep_level_encoding: Encoding::RLE,
        statistics: None,
    };
    let why = "has levels that are packed as BIT_PACKED, which is not read here";
    let two = [vec![0b11], i64s(&[1, 9])].concat();
    crafted.refused("detours", "optional int64 start_ns", [packed(2, two)], why);
    // As many bits as there are rows would not fit the page.
    crafted.refused("detours", "optional int64 start_ns", [packed(1_000, vec![0; 4])], why);
    let two = [vec![0b11], texts(&["timer", "tick"])].concat();
    crafted.refused("activities", "optional binary source (STRING)", [packed(2, two)], why);
    // Where every row has a value there are no levels, and it does not matter how they would be packed.
    crafted.accepted("detours", START, [packed(2, i64s(&[1, 9]))]);
}

#[test]
fn few_bytes_do_not_become_rows_without_end() {
    let crafted = Crafted::new();
    let table = |count: u32| -> Vec<Column> {
        vec![
            (CPU, vec![dictionary(1, i32s(&[5])), keys(count, one_key(0, count))]),
            (START, vec![data(Encoding::DELTA_BINARY_PACKED, count, zeros(count))]),
            ("required int64 duration_ns", vec![data(Encoding::DELTA_BINARY_PACKED, count, zeros(count))]),
        ]
    };
    let file = crafted.bundle.join("detours/node=a/0000.parquet");
    let first = |count: u32| {
        write(&file, count, table(count));
        Bundle::open(&crafted.bundle).unwrap().detours("a").unwrap().next().unwrap()
    };
    assert!(!first(100_000).unwrap().is_empty());
    let error = first((1 << 24) + 1).unwrap_err().to_string();
    assert!(error.contains("is not a table of detours: it claims 16777217 rows in "), "{error}");
    assert!(error.contains(" bytes; no recording is so regular"), "{error}");
}
