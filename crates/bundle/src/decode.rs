//! Decoding of a Parquet file into rows with the schema's column types.

use std::cell::Cell;
use std::fs::File;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;

use becalm_linux::file::open_regular;
use parquet::basic::{ConvertedType, LogicalType, Repetition, Type as Physical};
use parquet::column::page::PageReader;
use parquet::column::reader::{ColumnReaderImpl, get_column_reader, get_typed_column_reader};
use parquet::data_type::{BoolType, DataType, Int32Type, Int64Type};
use parquet::errors::{ParquetError, Result as ParquetResult};
use parquet::file::metadata::{
    PageIndexPolicy, ParquetMetaData, ParquetMetaDataOptions, ParquetMetaDataReader, ParquetStatisticsPolicy,
};
use parquet::schema::types::{ColumnDescPtr, SchemaDescriptor, Type};

use super::BundleError;
use super::bounded::Bounded;
use super::density::Density;
use super::names::{NameReader, SourcePool};
use super::pages::CheckedPages;
use super::rows::{ReadColumn, Rows, Values};
use super::schema::{BATCH_ROWS, Content, SCHEMA_KEY, SOURCE, Table};

/// An open segment of a table, read from front to back.
pub(super) struct TableDecoder {
    file: Arc<Bounded<File>>,
    metadata: Arc<ParquetMetaData>,
    columns: Vec<Located>,
    /// The number of the next row group.
    next: usize,
    group: Option<ReadGroup>,
    sources: SourcePool,
    density: Density,
}

/// A column of the table and its position in the file.
struct Located {
    name: &'static str,
    content: Content,
    /// Its index among the file's leaf columns.
    leaf: usize,
}

struct ReadGroup {
    columns: Vec<ColumnDecoder>,
    /// The number of rows still to come, according to the footer.
    left: usize,
}

impl TableDecoder {
    /// Opens a file and checks that it can be read as the table: its version, its columns, and the plausibility of the footer. All segments of a run
    /// share `sources`.
    pub(super) fn open(path: &Path, table: &'static Table, sources: &SourcePool) -> Result<Self, BundleError> {
        let parquet = |cause| BundleError::parquet(path, &cause);
        let refuse = |why| BundleError::Table { path: path.to_owned(), table: table.name, why };
        let file = open_regular(path).map_err(BundleError::io("read", path))?;
        let length = file.metadata().map_err(BundleError::io("read", path))?.len();

        // The statistics are not needed, and skipping them avoids damaged ones.
        let options = ParquetMetaDataOptions::new()
            .with_column_stats_policy(ParquetStatisticsPolicy::SkipAll)
            .with_size_stats_policy(ParquetStatisticsPolicy::SkipAll);
        let footer = ParquetMetaDataReader::new()
            .with_page_index_policy(PageIndexPolicy::Skip)
            .with_metadata_options(Some(options));
        let metadata = fenced(|| footer.parse_and_finish(&file)).map_err(parquet)?;
        check_version(path, table, &metadata)?;
        let rows = check_parts(&metadata, length).map_err(refuse)?;
        let density = Density::for_file(rows, length).map_err(refuse)?;
        let columns = located(metadata.file_metadata().schema_descr(), table).map_err(refuse)?;
        let (file, metadata) = (Arc::new(Bounded::new(file)), Arc::new(metadata));
        Ok(Self { file, metadata, columns, next: 0, group: None, sources: sources.clone(), density })
    }

    /// The file's number of rows and bytes.
    pub(super) const fn density(&self) -> Density {
        self.density
    }

    /// The next rows, all of one row group; `None` at the end.
    pub(super) fn next(&mut self) -> ParquetResult<Option<Rows>> {
        fenced(|| {
            loop {
                let group = match &mut self.group {
                    Some(group) => group,
                    None if self.next == self.metadata.num_row_groups() => return Ok(None),
                    None => {
                        let group = self.open_group(self.next)?;
                        self.next += 1;
                        self.group.insert(group)
                    }
                };
                match group.read(&self.columns)? {
                    Some(rows) => return Ok(Some(rows)),
                    None => self.group = None,
                }
            }
        })
    }

    fn open_group(&self, number: usize) -> ParquetResult<ReadGroup> {
        let group = self.metadata.row_group(number);
        let open = |column: &Located| {
            let pages = CheckedPages::new(&self.file, group, column.leaf)?;
            let pool = (column.name == SOURCE).then(|| self.sources.clone());
            Ok(ColumnDecoder::new(column.content, group.column(column.leaf).column_descr_ptr(), pages, pool))
        };
        let columns = self.columns.iter().map(open).collect::<ParquetResult<_>>()?;
        Ok(ReadGroup { columns, left: usize::try_from(group.num_rows()).unwrap_or(usize::MAX) })
    }
}

impl ReadGroup {
    /// The next rows; `None` at the end.
    fn read(&mut self, located: &[Located]) -> ParquetResult<Option<Rows>> {
        // At the end, ask for one more row, which must not exist.
        let expected = self.left.min(BATCH_ROWS);
        let mut columns = Vec::with_capacity(located.len());
        for (decoder, at) in self.columns.iter_mut().zip(located) {
            let ColumnPart { count, values, has_gaps } = decoder.read(expected.max(1))?;
            if count != expected {
                let why = "its pages do not hold as many rows as its footer says";
                return Err(ParquetError::General(why.to_owned()));
            }
            columns.push(ReadColumn { name: at.name, values, has_gaps });
        }
        self.left -= expected;
        Ok((expected > 0).then_some(Rows::new(columns)))
    }
}

/// The next rows of a column.
struct ColumnPart<V> {
    count: usize,
    values: V,
    /// Whether any row lacks a value.
    has_gaps: bool,
}

enum ColumnDecoder {
    Int32(Numbers<Int32Type>),
    Int64(Numbers<Int64Type>),
    Flag(Numbers<BoolType>),
    Name(NameReader),
}

impl ColumnDecoder {
    fn new(content: Content, descriptor: ColumnDescPtr, pages: CheckedPages, pool: Option<SourcePool>) -> Self {
        let optional = descriptor.max_def_level() > 0;
        let reader = |pages| get_column_reader(Arc::clone(&descriptor), Box::new(pages) as Box<dyn PageReader>);
        match content {
            Content::Cpu | Content::Rank => {
                Self::Int32(Numbers { reader: get_typed_column_reader(reader(pages)), optional })
            }
            Content::Rising | Content::Length | Content::Amount => {
                Self::Int64(Numbers { reader: get_typed_column_reader(reader(pages)), optional })
            }
            Content::Flag => Self::Flag(Numbers { reader: get_typed_column_reader(reader(pages)), optional }),
            Content::Name => Self::Name(NameReader::new(pages, pool)),
        }
    }

    /// Reads up to `rows` rows.
    fn read(&mut self, rows: usize) -> ParquetResult<ColumnPart<Values>> {
        Ok(match self {
            Self::Int32(numbers) => {
                let ColumnPart { count, values, has_gaps } = numbers.read(rows)?;
                ColumnPart { count, values: Values::Int32(values), has_gaps }
            }
            Self::Int64(numbers) => {
                let ColumnPart { count, values, has_gaps } = numbers.read(rows)?;
                ColumnPart { count, values: Values::Int64(values), has_gaps }
            }
            Self::Flag(numbers) => {
                let ColumnPart { count, values, has_gaps } = numbers.read(rows)?;
                ColumnPart { count, values: Values::Flags(values), has_gaps }
            }
            Self::Name(names) => {
                let mut keys = Vec::with_capacity(rows);
                let count = names.read(rows, &mut keys)?;
                ColumnPart { count, values: Values::Names { keys, table: names.table() }, has_gaps: names.has_gaps() }
            }
        })
    }
}

struct Numbers<T: DataType> {
    reader: ColumnReaderImpl<T>,
    /// Whether rows may lack a value, according to definition levels.
    optional: bool,
}

impl<T: DataType> Numbers<T> {
    fn read(&mut self, rows: usize) -> ParquetResult<ColumnPart<Vec<T::T>>> {
        let (mut values, mut levels) = (Vec::with_capacity(rows), Vec::new());
        let mut count = 0;
        let mut present = 0;
        // A call may stop at the end of a page.
        while count < rows {
            let levels = self.optional.then_some(&mut levels);
            let (records, some, _) = self.reader.read_records(rows - count, levels, None, &mut values)?;
            if records == 0 {
                break;
            }
            count += records;
            present += some;
        }
        Ok(ColumnPart { count, values, has_gaps: present < count })
    }
}

thread_local! {
    static IS_FENCED: Cell<bool> = const { Cell::new(false) };
}

/// Whether this thread is in the Parquet decoder. A panic there is reported as an error of the file, so a panic hook need not report it.
pub fn is_decoding() -> bool {
    IS_FENCED.get()
}

/// Runs the third-party decoder on untrusted data. Known causes of panics are rejected earlier (see `pages`); if there are others, a damaged
/// file must still not end the program.
pub fn fenced<T>(decode: impl FnOnce() -> ParquetResult<T>) -> ParquetResult<T> {
    IS_FENCED.set(true);
    // The decoder's state is dropped after an error, so no code sees it half done.
    let decoded = catch_unwind(AssertUnwindSafe(decode));
    IS_FENCED.set(false);
    decoded
        .unwrap_or_else(|_| Err(ParquetError::General("its contents are damaged, and the decoder gave up".to_owned())))
}

fn check_version(path: &Path, table: &'static Table, metadata: &ParquetMetaData) -> Result<(), BundleError> {
    let mut entries = metadata.file_metadata().key_value_metadata().into_iter().flatten();
    let Some(entry) = entries.find(|entry| entry.key == SCHEMA_KEY) else { return Ok(()) };
    let found = entry.value.clone().unwrap_or_default();
    if found == table.schema {
        return Ok(());
    }
    Err(BundleError::Version { path: path.to_owned(), found, known: table.schema })
}

/// Checks that every row group's columns have the group's rows and are within the file. Returns the total number of rows.
fn check_parts(metadata: &ParquetMetaData, length: u64) -> Result<u64, String> {
    let mut rows = 0_u64;
    for (number, group) in metadata.row_groups().iter().enumerate() {
        let total = u64::try_from(group.num_rows()).ok().and_then(|more| rows.checked_add(more));
        rows = total.ok_or_else(|| format!("row group {number} claims {} rows", group.num_rows()))?;
        for column in group.columns() {
            let name = column.column_path();
            if column.num_values() != group.num_rows() && column.column_descr().max_rep_level() == 0 {
                return Err(format!(
                    "row group {number} claims {} rows, but {} in its column {name}",
                    group.num_rows(),
                    column.num_values()
                ));
            }
            let start = column.dictionary_page_offset().unwrap_or(column.data_page_offset());
            let end = u64::try_from(start).ok().zip(u64::try_from(column.compressed_size()).ok());
            if end.and_then(|(start, size)| start.checked_add(size)).is_none_or(|end| end > length) {
                return Err(format!("the column {name} of row group {number} is outside of the file"));
            }
        }
    }
    Ok(rows)
}

/// Finds the table's columns among the file's.
fn located(stored: &SchemaDescriptor, table: &Table) -> Result<Vec<Located>, String> {
    let mut found = Vec::with_capacity(table.columns.len());
    for column in table.columns {
        let mut same_name = stored.root_schema().get_fields().iter().filter(|field| field.name() == column.name);
        let Some(field) = same_name.next() else {
            if column.optional {
                continue;
            }
            return Err(format!("it has no column {}", column.name));
        };
        if same_name.next().is_some() {
            return Err(format!("it has more than one column {}", column.name));
        }
        if !holds(field, column.content) {
            let expected = column.content.type_name();
            return Err(format!("its column {} is of type {} instead of {expected}", column.name, described(field)));
        }
        // A leaf column, not a group, so its path is its name.
        let is_it = |descriptor: &ColumnDescPtr| descriptor.path().parts() == [column.name];
        let leaf = stored.columns().iter().position(is_it);
        let leaf = leaf.ok_or_else(|| format!("it has no column {}", column.name))?;
        found.push(Located { name: column.name, content: column.content, leaf });
    }
    Ok(found)
}

/// Whether a column of a file contains single values of the expected type.
fn holds(field: &Type, content: Content) -> bool {
    let info = field.get_basic_info();
    if !field.is_primitive() || (info.has_repetition() && info.repetition() == Repetition::REPEATED) {
        return false;
    }
    let physical = content.physical();
    let is_signed = |width: i8| match (info.logical_type_ref(), info.converted_type()) {
        (None, ConvertedType::NONE) => true,
        (Some(LogicalType::Integer(integer)), _) => integer.is_signed && integer.bit_width == width,
        (None, ConvertedType::INT_32) => width == 32,
        (None, ConvertedType::INT_64) => width == 64,
        _ => false,
    };
    field.get_physical_type() == physical
        && match physical {
            Physical::INT32 => is_signed(32),
            Physical::INT64 => is_signed(64),
            Physical::BYTE_ARRAY => {
                matches!(info.logical_type_ref(), Some(LogicalType::String))
                    || info.converted_type() == ConvertedType::UTF8
            }
            _ => true,
        }
}

/// The type of a column, in the terms used for expected types.
fn described(field: &Type) -> String {
    let info = field.get_basic_info();
    if info.has_repetition() && info.repetition() == Repetition::REPEATED {
        return "List".to_owned();
    }
    if !field.is_primitive() {
        return "Struct".to_owned();
    }
    let known = [Content::Cpu, Content::Rising, Content::Flag, Content::Name];
    if let Some(known) = known.into_iter().find(|content| holds(field, *content)) {
        return known.type_name().to_owned();
    }
    let physical = field.get_physical_type();
    info.logical_type_ref().map_or_else(|| physical.to_string(), |logical| format!("{physical} ({logical:?})"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_of_the_decoder_is_an_error_and_known_as_one() {
        let error = fenced::<()>(|| {
            assert!(is_decoding());
            panic!("as of a damaged file")
        });
        assert!(error.unwrap_err().to_string().contains("damaged") && !is_decoding());
        assert!(fenced(|| Ok(is_decoding())).unwrap() && !is_decoding());
    }
}
