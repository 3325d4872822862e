//! From rows to Parquet: the contents of one segment's two files.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::sync::Arc;

use becalm_units::CpuId;
use parquet::column::writer::ColumnWriterImpl;
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};

use super::BundleError;
use super::draft::Draft;
use super::error::plain_words;
use super::order::{RowOrder, check_intervals};
use super::phase::Phase;
use super::schema::{ACTIVITIES, BATCH_ROWS, COSTS, DETOURS, GROUP_ROWS, PHASES, SAMPLES, Table};
use becalm_model::{Activity, Detour, Kind, Labels, Sample};

/// One Parquet file on its way.
struct Encoder<'a> {
    draft: &'a Draft,
    table: &'static Table,
    writer: SerializedFileWriter<&'a File>,
}

/// The values of a column in one row group.
enum ColumnValues<'a> {
    Int32(Vec<i32>),
    Int64(Vec<i64>),
    Flags(Vec<bool>),
    /// For each row the place of its name.
    Names(Vec<usize>, &'a [ByteArray]),
}

impl<'a> Encoder<'a> {
    fn new(draft: &'a Draft, table: &'static Table) -> Result<Self, BundleError> {
        let writer = SerializedFileWriter::new(draft.file(), table.parquet(), Arc::new(table.packing()))
            .map_err(|cause| encoding_error(draft, cause))?;
        Ok(Self { draft, table, writer })
    }

    /// Writes a row group: at most [`GROUP_ROWS`] rows, by the table's columns.
    fn write(&mut self, columns: Vec<ColumnValues<'_>>) -> Result<(), BundleError> {
        self.write_group(columns).map_err(|cause| encoding_error(self.draft, cause))
    }

    fn write_group(&mut self, columns: Vec<ColumnValues<'_>>) -> Result<(), ParquetError> {
        let mut group = self.writer.next_row_group()?;
        for column in columns {
            let Some(mut writer) = group.next_column()? else { break };
            match column {
                ColumnValues::Int32(values) => write_values::<Int32Type>(&mut writer, &values)?,
                ColumnValues::Int64(values) => write_values::<Int64Type>(&mut writer, &values)?,
                ColumnValues::Flags(values) => write_values::<BoolType>(&mut writer, &values)?,
                ColumnValues::Names(keys, names) => {
                    for keys in keys.chunks(BATCH_ROWS) {
                        // The names share their texts.
                        let values: Vec<ByteArray> = keys.iter().map(|key| names[*key].clone()).collect();
                        write_values::<ByteArrayType>(&mut writer, &values)?;
                    }
                }
            }
            writer.close()?;
        }
        // This fails if a column is missing or has other rows than the first.
        group.close()?;
        Ok(())
    }

    fn refuse(&self, why: String) -> BundleError {
        BundleError::Table { path: self.draft.target().to_owned(), table: self.table.name, why }
    }

    fn finish(self) -> Result<(), BundleError> {
        self.writer.close().map_err(|cause| encoding_error(self.draft, cause))?;
        Ok(())
    }
}

fn write_values<T: DataType>(writer: &mut SerializedColumnWriter<'_>, values: &[T::T]) -> Result<(), ParquetError> {
    let column: &mut ColumnWriterImpl<'_, T> = writer.typed();
    column.write_batch(values, None, None)?;
    Ok(())
}

/// Names as the files hold them.
fn stored_names<'a>(names: impl IntoIterator<Item = &'a str>) -> Vec<ByteArray> {
    names.into_iter().map(ByteArray::from).collect()
}

/// What the system said if it was the system that refused.
fn encoding_error(draft: &Draft, cause: ParquetError) -> BundleError {
    let path = draft.target().to_owned();
    let cause = match cause {
        ParquetError::External(cause) => match cause.downcast::<io::Error>() {
            Ok(cause) => return BundleError::Io { action: "write", path, cause: *cause },
            Err(cause) => ParquetError::External(cause),
        },
        cause => cause,
    };
    BundleError::Encoding { path, why: plain_words(&cause) }
}

/// A CPU as the files hold it. Numbers above the limit become negative ones, which the check of the rows refuses.
fn stored_cpu(cpu: CpuId) -> i32 {
    i32::try_from(cpu.get()).unwrap_or(-1)
}

/// How many detours (or samples) each CPU has.
#[derive(Clone, Default)]
pub(super) struct Counts(HashMap<i32, i64>);

impl Counts {
    fn count(&self, cpu: i32) -> i64 {
        self.0.get(&cpu).copied().unwrap_or(0)
    }

    pub(super) fn add(&mut self, cpus: &[i32]) {
        for run in cpus.chunk_by(|a, b| a == b) {
            *self.0.entry(run[0]).or_default() += i64::try_from(run.len()).expect("a batch is small");
        }
    }
}

/// Writes the detours of a segment, and counts them.
pub(super) fn detours(
    draft: &Draft,
    segment: u32,
    rows: &[Detour],
    order: &mut RowOrder,
    counts: &mut Counts,
) -> Result<(), BundleError> {
    let mut encoder = Encoder::new(draft, &DETOURS)?;
    order.begin_segment();
    for rows in rows.chunks(GROUP_ROWS) {
        let cpus: Vec<i32> = rows.iter().map(|row| stored_cpu(row.cpu)).collect();
        let starts: Vec<i64> = rows.iter().map(|row| row.start.get()).collect();
        let durations: Vec<i64> = rows.iter().map(|row| row.duration.get()).collect();
        let incomplete = rows.iter().map(|row| row.incomplete).collect();
        order
            .check(segment, &cpus, &starts)
            .and_then(|()| check_intervals(&starts, &durations))
            .map_err(|why| encoder.refuse(why))?;
        counts.add(&cpus);
        encoder.write(vec![
            ColumnValues::Int32(cpus),
            ColumnValues::Int64(starts),
            ColumnValues::Int64(durations),
            ColumnValues::Flags(incomplete),
        ])?;
    }
    encoder.finish()
}

/// Writes the samples of a segment, and counts them.
pub(super) fn samples(
    draft: &Draft,
    segment: u32,
    rows: &[Sample],
    order: &mut RowOrder,
    counts: &mut Counts,
) -> Result<(), BundleError> {
    let mut encoder = Encoder::new(draft, &SAMPLES)?;
    order.begin_segment();
    for rows in rows.chunks(GROUP_ROWS) {
        let cpus: Vec<i32> = rows.iter().map(|row| stored_cpu(row.cpu)).collect();
        let starts: Vec<i64> = rows.iter().map(|row| row.start.get()).collect();
        let durations: Vec<i64> = rows.iter().map(|row| row.duration.get()).collect();
        let work: Vec<i64> = rows.iter().map(|row| i64::try_from(row.work).unwrap_or(i64::MAX)).collect();
        let incomplete = rows.iter().map(|row| row.incomplete).collect();
        order
            .check(segment, &cpus, &starts)
            .and_then(|()| check_intervals(&starts, &durations))
            .map_err(|why| encoder.refuse(why))?;
        counts.add(&cpus);
        encoder.write(vec![
            ColumnValues::Int32(cpus),
            ColumnValues::Int64(starts),
            ColumnValues::Int64(durations),
            ColumnValues::Int64(work),
            ColumnValues::Flags(incomplete),
        ])?;
    }
    encoder.finish()
}

/// Writes the activities of a segment, which holds each CPU's detours from number `before` until `after`.
pub(super) fn activities(
    draft: &Draft,
    segment: u32,
    rows: &[Activity],
    labels: &Labels,
    order: &mut RowOrder,
    (before, after): (&Counts, &Counts),
) -> Result<(), BundleError> {
    let mut encoder = Encoder::new(draft, &ACTIVITIES)?;
    let kinds = stored_names(Kind::ALL.iter().map(|kind| kind.name()));
    let texts = stored_names(labels.iter());
    order.begin_segment();
    for rows in rows.chunks(GROUP_ROWS) {
        let cpus: Vec<i32> = rows.iter().map(|row| stored_cpu(row.cpu)).collect();
        let detours: Vec<i64> = rows.iter().map(|row| i64::try_from(row.detour).unwrap_or(i64::MAX)).collect();
        let starts: Vec<i64> = rows.iter().map(|row| row.start.get()).collect();
        let self_times: Vec<i64> = rows.iter().map(|row| row.self_time.get()).collect();
        order
            .check(segment, &cpus, &detours)
            .and_then(|()| check_intervals(&starts, &self_times))
            .and_then(|()| check_numbers(&cpus, &detours, before, after))
            .map_err(|why| encoder.refuse(why))?;
        encoder.write(vec![
            ColumnValues::Int32(cpus),
            ColumnValues::Int64(detours),
            ColumnValues::Int64(starts),
            ColumnValues::Int64(self_times),
            ColumnValues::Names(rows.iter().map(|row| row.kind as usize).collect(), &kinds),
            ColumnValues::Names(rows.iter().map(|row| row.source.index()).collect(), &texts),
            ColumnValues::Names(rows.iter().map(|row| row.detail.index()).collect(), &texts),
        ])?;
    }
    encoder.finish()
}

/// Writes the samples of probes: of each its name, and its rounds.
pub(super) fn costs<'a>(
    draft: &Draft,
    probes: impl Iterator<Item = (&'a str, &'a [Vec<i64>])>,
) -> Result<(), BundleError> {
    let mut encoder = Encoder::new(draft, &COSTS)?;
    let (names, probes): (Vec<&str>, Vec<&[Vec<i64>]>) = probes.unzip();
    let names = stored_names(names);
    let times = probes.into_iter().enumerate().flat_map(|(probe, rounds)| {
        let rounds = (0_i64..).zip(rounds);
        rounds.flat_map(move |(round, times)| times.iter().map(move |time| (probe, round, *time)))
    });
    let rows: Vec<(usize, i64, i64)> = times.collect();
    for rows in rows.chunks(GROUP_ROWS) {
        encoder.write(vec![
            ColumnValues::Names(rows.iter().map(|row| row.0).collect(), &names),
            ColumnValues::Int64(rows.iter().map(|row| row.1).collect()),
            ColumnValues::Int64(rows.iter().map(|row| row.2).collect()),
        ])?;
    }
    encoder.finish()
}

/// Writes the phases of ranks: of each its number, and its phases.
pub(super) fn phases<'a>(draft: &Draft, ranks: impl Iterator<Item = (u32, &'a [Phase])>) -> Result<(), BundleError> {
    let mut encoder = Encoder::new(draft, &PHASES)?;
    let rows: Vec<(i32, Phase)> = ranks
        .flat_map(|(rank, phases)| {
            // No job has more ranks than that; a reader would miss the number.
            let rank = i32::try_from(rank).unwrap_or(-1);
            phases.iter().map(move |phase| (rank, *phase))
        })
        .collect();
    for rows in rows.chunks(GROUP_ROWS) {
        encoder.write(vec![
            ColumnValues::Int32(rows.iter().map(|row| row.0).collect()),
            ColumnValues::Int64(rows.iter().map(|row| row.1.start_ns).collect()),
            ColumnValues::Int64(rows.iter().map(|row| row.1.compute_ns).collect()),
            ColumnValues::Int64(rows.iter().map(|row| row.1.collective_ns).collect()),
        ])?;
    }
    encoder.finish()
}

/// Every activity belongs to a detour of its own segment.
fn check_numbers(cpus: &[i32], detours: &[i64], before: &Counts, after: &Counts) -> Result<(), String> {
    let mut detours = detours;
    for run in cpus.chunk_by(|a, b| a == b) {
        let (head, tail) = detours.split_at(run.len());
        detours = tail;
        let numbers = before.count(run[0])..after.count(run[0]);
        if let Some(stray) = head.iter().find(|number| !numbers.contains(number)) {
            return Err(format!(
                "an activity belongs to detour {stray} of CPU {}, but the segment holds its detours {} until {}",
                run[0], numbers.start, numbers.end
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::types::Int32Type as ArrowInt32;
    use arrow_array::{ArrayRef, BooleanArray, DictionaryArray, Int32Array, Int64Array, RecordBatch, StringArray};
    use becalm_units::Nanos;
    use parquet::arrow::ArrowWriter;
    use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

    /// Columns as Arrow's own writer packs them.
    fn written_by_arrow(table: &Table, columns: Vec<ArrayRef>) -> Vec<u8> {
        let named = table.columns.iter().map(|column| column.name).zip(columns);
        let batch =
            RecordBatch::try_from_iter_with_nullable(named.map(|(name, column)| (name, column, false))).unwrap();
        let mut bytes = Vec::new();
        let mut writer = ArrowWriter::try_new(&mut bytes, batch.schema(), Some(table.packing())).unwrap();
        for begin in (0..batch.num_rows()).step_by(BATCH_ROWS) {
            writer.write(&batch.slice(begin, BATCH_ROWS.min(batch.num_rows() - begin))).unwrap();
        }
        writer.close().unwrap();
        bytes
    }

    fn written(folder: &tempfile::TempDir, write: impl FnOnce(&Draft) -> Result<(), BundleError>) -> Vec<u8> {
        let path = folder.path().join("0000.parquet");
        let draft = Draft::within(folder.path(), path.clone()).unwrap();
        write(&draft).unwrap();
        draft.sync().unwrap();
        draft.publish().unwrap();
        std::fs::read(path).unwrap()
    }

    fn dictionary(keys: Vec<i32>, names: &[&str]) -> ArrayRef {
        Arc::new(
            DictionaryArray::<ArrowInt32>::try_new(keys.into(), Arc::new(StringArray::from(names.to_vec()))).unwrap(),
        )
    }

    /// Other programs read the files through Arrow. What its own writer makes of the same columns is the measure.
    #[test]
    fn files_are_those_that_arrow_would_write() {
        let folder = tempfile::tempdir().unwrap();
        // More than a row group, with a value here and there that stands out.
        let count = GROUP_ROWS as i64 + 70_000;
        let rows: Vec<Detour> = (0..count)
            .map(|row| Detour {
                cpu: CpuId::new((row / 100_000) as u32),
                start: Nanos::new(row * 1_000 + row % 7),
                duration: Nanos::new(if row % 1_000 == 0 { 1 << 33 } else { row % 300 }),
                incomplete: row % 11 == 0,
            })
            .collect();
        let found =
            written(&folder, |draft| detours(draft, 0, &rows, &mut RowOrder::default(), &mut Counts::default()));
        let expected = written_by_arrow(
            &DETOURS,
            vec![
                Arc::new(Int32Array::from_iter_values(rows.iter().map(|row| row.cpu.get() as i32))),
                Arc::new(Int64Array::from_iter_values(rows.iter().map(|row| row.start.get()))),
                Arc::new(Int64Array::from_iter_values(rows.iter().map(|row| row.duration.get()))),
                Arc::new(rows.iter().map(|row| Some(row.incomplete)).collect::<BooleanArray>()),
            ],
        );
        assert!(found == expected, "{} and {} bytes", found.len(), expected.len());
    }

    #[test]
    fn names_are_packed_as_arrow_packs_them() {
        let folder = tempfile::tempdir().unwrap();
        for (count, distinct) in [(0, 1), (1, 1), (100_000, 3), (300_000, 90_000)] {
            let names: Vec<String> =
                (0..distinct).map(|name| format!("task:{name} {}", "x".repeat(name % 40))).collect();
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            let mut labels = Labels::default();
            let texts: Vec<_> = names.iter().map(|name| labels.intern(name)).collect();
            let rows: Vec<Activity> = (0..count)
                .map(|row: usize| Activity {
                    cpu: CpuId::new(3),
                    detour: row as u64 / 4,
                    start: Nanos::new(row as i64 * 10),
                    self_time: Nanos::new(row as i64 % 1_000),
                    kind: Kind::ALL[row % 5],
                    source: texts[row * 7 % distinct],
                    detail: texts[row / 3 % distinct],
                })
                .collect();
            let mut after = Counts::default();
            after.add(&vec![3; count]);
            let found = written(&folder, |draft| {
                activities(draft, 0, &rows, &labels, &mut RowOrder::default(), (&Counts::default(), &after))
            });
            let kinds: Vec<&str> = Kind::ALL.iter().map(|kind| kind.name()).collect();
            let all: Vec<&str> = labels.iter().collect();
            let expected = written_by_arrow(
                &ACTIVITIES,
                vec![
                    Arc::new(Int32Array::from(vec![3; count])),
                    Arc::new(Int64Array::from_iter_values(rows.iter().map(|row| row.detour as i64))),
                    Arc::new(Int64Array::from_iter_values(rows.iter().map(|row| row.start.get()))),
                    Arc::new(Int64Array::from_iter_values(rows.iter().map(|row| row.self_time.get()))),
                    dictionary(rows.iter().map(|row| row.kind as i32).collect(), &kinds),
                    dictionary(rows.iter().map(|row| row.source.index() as i32).collect(), &all),
                    dictionary(rows.iter().map(|row| row.detail.index() as i32).collect(), &all),
                ],
            );
            // Where a dictionary becomes too large, the two give it up at different rows.
            if distinct < 1_000 {
                assert!(found == expected, "{count} rows: {} and {} bytes", found.len(), expected.len());
            } else {
                assert!(read_by_arrow(found) == read_by_arrow(expected), "{count} rows");
            }
        }
    }

    fn read_by_arrow(bytes: Vec<u8>) -> Vec<RecordBatch> {
        let reader = ParquetRecordBatchReaderBuilder::try_new(bytes::Bytes::from(bytes)).unwrap();
        reader.with_batch_size(1 << 20).build().unwrap().map(Result::unwrap).collect()
    }
}
