//! From a Parquet file to records whose columns have the schema's types.

use std::fs::File;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::{FieldRef, Fields, Schema};
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader};
use parquet::arrow::{ProjectionMask, parquet_to_arrow_field_levels};
use parquet::errors::{ParquetError, Result as ParquetResult};
use parquet::file::metadata::{PageIndexPolicy, ParquetMetaData, ParquetStatisticsPolicy};

use super::BundleError;
use super::pages::FilePages;
use super::schema::{BATCH_ROWS, Content, SCHEMA_KEY, Table};

/// An open segment of a table, read from front to back.
pub(super) struct Decoder {
    reader: ParquetRecordBatchReader,
    /// How many rows the footer tells that have not come yet.
    remaining: u64,
}

impl Decoder {
    /// Opens a file, and checks that it can be read as the table: its version, its columns, and that what the footer
    /// tells of the file's parts can be true.
    pub(super) fn open(path: &Path, table: &'static Table) -> Result<Self, BundleError> {
        let parquet = |cause| BundleError::parquet(path, &cause);
        let refuse = |why| BundleError::Table { path: path.to_owned(), table: table.name, why };
        let file = File::open(path).map_err(BundleError::io("read", path))?;
        let length = file.metadata().map_err(BundleError::io("read", path))?.len();

        // The Arrow schema that other writers put beside Parquet's own is of no use here, nor are the statistics: what
        // is not read can do no harm.
        let options = ArrowReaderOptions::new()
            .with_skip_arrow_metadata(true)
            .with_page_index_policy(PageIndexPolicy::Skip)
            .with_column_stats_policy(ParquetStatisticsPolicy::SkipAll)
            .with_size_stats_policy(ParquetStatisticsPolicy::SkipAll);
        let stored = fenced(|| ArrowReaderMetadata::load(&file, options)).map_err(parquet)?;
        let metadata = stored.metadata();
        check_version(path, table, metadata)?;
        let remaining = check_parts(metadata, length).map_err(refuse)?;
        let fields = typed_fields(stored.schema(), table).map_err(refuse)?;

        let reader = fenced(|| {
            let schema = metadata.file_metadata().schema_descr();
            let columns = ProjectionMask::columns(schema, table.columns.iter().map(|column| column.name));
            let levels = parquet_to_arrow_field_levels(schema, columns, Some(&fields))?;
            let pages = FilePages::new(file, Arc::clone(metadata));
            ParquetRecordBatchReader::try_new_with_row_groups(&levels, &pages, BATCH_ROWS, None)
        });
        Ok(Self { reader: reader.map_err(parquet)?, remaining })
    }

    /// The next rows, or nothing at the end.
    pub(super) fn next(&mut self) -> ParquetResult<Option<RecordBatch>> {
        let batch = fenced(|| Ok(self.reader.next().transpose()?))?;
        let rows = batch.as_ref().map_or(0, RecordBatch::num_rows);
        let remaining = self.remaining.checked_sub(u64::try_from(rows).expect("a batch is small"));
        match (remaining, &batch) {
            (Some(remaining), Some(_)) => self.remaining = remaining,
            (Some(0), None) => {}
            _ => return Err(ParquetError::General("its pages do not hold as many rows as its footer says".to_owned())),
        }
        Ok(batch)
    }
}

/// Runs the decoder of another's making on data of anyone's making. What is known to make it panic is refused before
/// (see [`super::pages`]); should there be more, a damaged file must still not end the program.
fn fenced<T>(decode: impl FnOnce() -> ParquetResult<T>) -> ParquetResult<T> {
    // What the decoder was working on is dropped after an error, so nobody sees it half done.
    catch_unwind(AssertUnwindSafe(decode))
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

/// Every row group's columns have the group's rows, and lie within the file. Returns the number of all rows.
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
                return Err(format!("the column {name} of row group {number} lies outside of the file"));
            }
        }
    }
    Ok(rows)
}

/// The file's columns with the names as dictionaries, whatever way of packing their writer chose.
fn typed_fields(stored: &Schema, table: &Table) -> Result<Fields, String> {
    let mut fields: Vec<FieldRef> = stored.fields().iter().cloned().collect();
    for column in table.columns {
        let mut same_name = fields.iter_mut().filter(|field| field.name() == column.name);
        let Some(field) = same_name.next() else {
            if column.optional {
                continue;
            }
            return Err(format!("it has no column {}", column.name));
        };
        if same_name.next().is_some() {
            return Err(format!("it has more than one column {}", column.name));
        }
        let (expected, found) = (column.content.stored_type(), field.data_type());
        if *found != expected {
            return Err(format!("its column {} is of type {found} instead of {expected}", column.name));
        }
        if column.content == Content::Name {
            let typed = field.as_ref().clone().with_data_type(column.content.data_type());
            *field = Arc::new(typed);
        }
    }
    Ok(fields.into())
}
