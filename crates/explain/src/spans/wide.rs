//! Spans in a Parquet file, with the columns of the comma-separated form.

use std::sync::Arc;

use becalm_bundle::{Bounded, fenced};
use bytes::Bytes;
use parquet::errors::ParquetError;
use parquet::file::metadata::ParquetMetaDataReader;
use parquet::file::properties::ReaderProperties;
use parquet::file::reader::RowGroupReader;
use parquet::file::serialized_reader::SerializedRowGroupReader;
use parquet::record::Field;

use super::SpanSink;
use super::table::SpanColumns;

/// The most rows per byte of a file: constant columns take next to nothing, and times in equal steps little.
const ROWS_PER_BYTE: u64 = 64;

/// Reads a file. The error names the row.
pub(super) fn read(bytes: Vec<u8>, sink: &mut SpanSink<'_>) -> Result<(), String> {
    let damaged = |error: ParquetError| format!("the Parquet file is damaged: {error}");
    let most = ROWS_PER_BYTE.saturating_mul(bytes.len() as u64);
    let bytes = Bytes::from(bytes);
    let metadata = fenced(|| ParquetMetaDataReader::new().parse_and_finish(&bytes)).map_err(damaged)?;
    let schema = metadata.file_metadata().schema();
    let names: Vec<String> = schema.get_fields().iter().map(|field| field.name().to_owned()).collect();
    let columns = SpanColumns::find(names.iter().map(String::as_str), sink.by())?;
    let (pages, properties) = (Arc::new(Bounded::new(bytes)), Arc::new(ReaderProperties::builder().build()));
    let mut texts: Vec<String> = vec![String::new(); names.len()];
    let mut number = 1_u64;
    for group in 0..metadata.num_row_groups() {
        let group = fenced(|| {
            let index = metadata.page_index_for_row_group(group);
            SerializedRowGroupReader::new(Arc::clone(&pages), metadata.row_group(group), index, Arc::clone(&properties))
        })
        .map_err(damaged)?;
        let mut rows = fenced(|| group.get_row_iter(None)).map_err(damaged)?;
        while let Some(row) = fenced(|| rows.next().transpose()).map_err(damaged)? {
            for (text, (_, field)) in texts.iter_mut().zip(row.get_column_iter()) {
                text.clear();
                match field {
                    Field::Null => {}
                    Field::Str(value) => text.push_str(value),
                    Field::Bytes(value) => text.push_str(&String::from_utf8_lossy(value.data())),
                    // Nanoseconds since 1970 are the unit of columns without one.
                    Field::TimestampMillis(value) => *text = format!("{value}000000"),
                    Field::TimestampMicros(value) => *text = format!("{value}000"),
                    other => *text = other.to_string(),
                }
            }
            columns
                .pass(|place| texts.get(place).map_or("", String::as_str), sink)
                .map_err(|why| format!("row {number}: {why}"))?;
            if number == most {
                return Err(format!("row {number}: a file of this size cannot have that many spans"));
            }
            number += 1;
        }
    }
    Ok(())
}
