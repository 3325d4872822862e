//! Spans in a Parquet file, with the columns of the comma-separated form.

use bytes::Bytes;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;

use super::SpanSink;
use super::table::SpanColumns;

/// Reads a file. The error names the row.
pub(super) fn read(bytes: Vec<u8>, sink: &mut SpanSink<'_>) -> Result<(), String> {
    let damaged = |error: parquet::errors::ParquetError| format!("the Parquet file is damaged: {error}");
    let reader = becalm_bundle::fenced(|| SerializedFileReader::new(Bytes::from(bytes))).map_err(damaged)?;
    let schema = reader.metadata().file_metadata().schema();
    let names: Vec<String> = schema.get_fields().iter().map(|field| field.name().to_owned()).collect();
    let columns = SpanColumns::find(names.iter().map(String::as_str), sink.by())?;
    let mut rows = reader.get_row_iter(None).map_err(damaged)?;
    let mut texts: Vec<String> = vec![String::new(); names.len()];
    let mut number = 1_u64;
    while let Some(row) = becalm_bundle::fenced(|| rows.next().transpose()).map_err(damaged)? {
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
        number += 1;
    }
    Ok(())
}
