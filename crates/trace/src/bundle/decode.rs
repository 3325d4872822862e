//! From a Parquet file to records whose columns have the schema's types.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::{FieldRef, Schema, SchemaRef};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder,
};
use parquet::errors::ParquetError;
use parquet::file::metadata::{PageIndexPolicy, ParquetMetaData, ParquetStatisticsPolicy};

use super::BundleError;
use super::schema::{BATCH_ROWS, Content, SCHEMA_KEY, Table};

/// An open segment of a table, read from front to back.
pub(super) struct Decoder {
    reader: ParquetRecordBatchReader,
}

impl Decoder {
    /// Opens a file, and checks that it can be read as the table: its version, its columns, and that what the footer
    /// tells of the file's parts can be true.
    pub(super) fn open(path: &Path, table: &'static Table) -> Result<Self, BundleError> {
        let parquet = |cause| BundleError::Parquet { path: path.to_owned(), cause };
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
        let stored = ArrowReaderMetadata::load(&file, options.clone()).map_err(parquet)?;
        check_version(path, table, stored.metadata())?;
        check_parts(stored.metadata(), length).map_err(refuse)?;
        let wanted = wanted_schema(stored.schema(), table).map_err(refuse)?;
        let typed = ArrowReaderMetadata::try_new(Arc::clone(stored.metadata()), options.with_schema(wanted))
            .map_err(parquet)?;

        let names: Vec<&str> = table.columns.iter().map(|column| column.name).collect();
        let columns = ProjectionMask::columns(typed.parquet_schema(), names);
        let reader = ParquetRecordBatchReaderBuilder::new_with_metadata(file, typed)
            .with_projection(columns)
            .with_batch_size(BATCH_ROWS)
            .build()
            .map_err(parquet)?;
        Ok(Self { reader })
    }

    /// The next rows, or nothing at the end.
    pub(super) fn next(&mut self) -> Result<Option<RecordBatch>, ParquetError> {
        self.reader.next().transpose().map_err(ParquetError::from)
    }
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

/// Every row group's columns have the group's rows, and lie within the file.
fn check_parts(metadata: &ParquetMetaData, length: u64) -> Result<(), String> {
    for (number, group) in metadata.row_groups().iter().enumerate() {
        if group.num_rows() < 0 {
            return Err(format!("row group {number} claims {} rows", group.num_rows()));
        }
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
    Ok(())
}

/// The file's columns with the names as dictionaries, whatever way of packing their writer chose.
fn wanted_schema(stored: &SchemaRef, table: &Table) -> Result<SchemaRef, String> {
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
    Ok(Arc::new(Schema::new(fields)))
}
