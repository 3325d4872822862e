//! Encoding of rows to Parquet: the contents of one segment's two files.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::sync::Arc;

use becalm_units::{CpuId, Named, Nanos};
use parquet::column::writer::ColumnWriterImpl;
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};

use super::BundleError;
use super::draft::Draft;
use super::error::plain_words;
use super::order::{RowOrder, check_intervals};
use super::phase::Phase;
use super::schema::{ACTIVITIES, CAUSES, COSTS, DETOURS, GROUP_ROWS, PHASES, SAMPLES, SLICE_ROWS, Table};
use becalm_model::cause::{Cause, Requester};
use becalm_model::{Activity, Detour, Kind, Labels, Pid, Sample};

/// A Parquet file being written.
struct Encoder<'a> {
    draft: &'a Draft,
    table: &'static Table,
    writer: SerializedFileWriter<&'a File>,
}

/// Gets a column's value from a row.
pub(super) enum Accessor<'a, R> {
    Int32(fn(&R) -> i32),
    Int64(fn(&R) -> i64),
    Flags(fn(&R) -> bool),
    /// The index of its name in these.
    Names(fn(&R) -> usize, &'a [ByteArray]),
}

impl<'a> Encoder<'a> {
    fn new(draft: &'a Draft, table: &'static Table) -> Result<Self, BundleError> {
        let writer = SerializedFileWriter::new(draft.file(), table.parquet(), Arc::new(table.packing()))
            .map_err(|cause| encoding_error(draft, cause))?;
        Ok(Self { draft, table, writer })
    }

    /// Writes a row group by the table's columns, in slices, with a call of `pause` after each.
    fn write<R>(
        &mut self,
        group: &[&[R]],
        columns: &[Accessor<'_, R>],
        pause: &mut dyn FnMut(),
    ) -> Result<(), BundleError> {
        self.write_group(group, columns, pause).map_err(|cause| encoding_error(self.draft, cause))
    }

    fn write_group<R>(
        &mut self,
        slices: &[&[R]],
        columns: &[Accessor<'_, R>],
        pause: &mut dyn FnMut(),
    ) -> Result<(), ParquetError> {
        let mut group = self.writer.next_row_group()?;
        for column in columns {
            let Some(mut writer) = group.next_column()? else { break };
            for rows in slices {
                match column {
                    Accessor::Int32(value) => write_values::<Int32Type>(&mut writer, rows.iter().map(value))?,
                    Accessor::Int64(value) => write_values::<Int64Type>(&mut writer, rows.iter().map(value))?,
                    Accessor::Flags(value) => write_values::<BoolType>(&mut writer, rows.iter().map(value))?,
                    Accessor::Names(key, names) => {
                        // The names share their text.
                        write_values::<ByteArrayType>(&mut writer, rows.iter().map(|row| names[key(row)].clone()))?;
                    }
                }
                pause();
            }
            writer.close()?;
            pause();
        }
        // Fails if a column is missing or has a different number of rows.
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

fn write_values<T: DataType>(
    writer: &mut SerializedColumnWriter<'_>,
    values: impl Iterator<Item = T::T>,
) -> Result<(), ParquetError> {
    let column: &mut ColumnWriterImpl<'_, T> = writer.typed();
    column.write_batch(&values.collect::<Vec<_>>(), None, None)?;
    Ok(())
}

/// Cuts rows into row groups of [`GROUP_ROWS`], and these into slices of at most [`SLICE_ROWS`], wherever the rows are.
fn row_groups<'a, R>(parts: &[&'a [R]]) -> Vec<Vec<&'a [R]>> {
    let mut groups: Vec<Vec<&[R]>> = Vec::new();
    let mut room = 0;
    for mut part in parts.iter().copied() {
        while !part.is_empty() {
            if room == 0 {
                groups.push(Vec::new());
                room = GROUP_ROWS;
            }
            let (slice, rest) = part.split_at(part.len().min(SLICE_ROWS).min(room));
            groups.last_mut().expect("one was begun").push(slice);
            (part, room) = (rest, room - slice.len());
        }
    }
    groups
}

/// Names as stored in the files.
pub(super) fn stored_names<'a>(names: impl IntoIterator<Item = &'a str>) -> Vec<ByteArray> {
    names.into_iter().map(ByteArray::from).collect()
}

/// The system's error if it caused the failure.
fn encoding_error(draft: &Draft, cause: ParquetError) -> BundleError {
    let path = draft.target().to_owned();
    let cause = match cause {
        ParquetError::External(cause) => match cause.downcast::<io::Error>() {
            Ok(cause) => return BundleError::Io("write", path, *cause),
            Err(cause) => ParquetError::External(cause),
        },
        cause => cause,
    };
    BundleError::Other(format!("cannot write {}: {}", path.display(), plain_words(&cause)))
}

/// A CPU as stored in the files. Numbers above the limit become negative, and the check of the rows refuses them.
pub(super) fn stored_cpu(cpu: CpuId) -> i32 {
    i32::try_from(cpu.get()).unwrap_or(-1)
}

/// The number of detours (or samples) of each CPU.
#[derive(Clone, Default)]
pub(super) struct Counts(HashMap<i32, i64>);

impl Counts {
    fn count(&self, cpu: i32) -> i64 {
        self.0.get(&cpu).copied().unwrap_or(0)
    }

    /// The total of all CPUs.
    pub(super) fn rows(&self) -> u64 {
        self.0.values().map(|count| count.unsigned_abs()).sum()
    }

    pub(super) fn add(&mut self, cpus: &[i32]) {
        for run in cpus.chunk_by(|a, b| a == b) {
            *self.0.entry(run[0]).or_default() += i64::try_from(run.len()).expect("a batch is small");
        }
    }
}

struct CheckedRow {
    cpu: i32,
    /// The number that must not decrease within a CPU.
    key: i64,
    start: i64,
    duration: i64,
}

/// Checked columns of rows.
struct CheckedColumns {
    cpus: Vec<i32>,
    keys: Vec<i64>,
    starts: Vec<i64>,
    durations: Vec<i64>,
}

impl CheckedColumns {
    fn from_rows<R>(rows: &[R], checked_row: impl Fn(&R) -> CheckedRow) -> Self {
        let room = || Vec::with_capacity(rows.len());
        let mut checked =
            Self { cpus: Vec::with_capacity(rows.len()), keys: room(), starts: room(), durations: room() };
        for CheckedRow { cpu, key, start, duration } in rows.iter().map(checked_row) {
            checked.cpus.push(cpu);
            checked.keys.push(key);
            checked.starts.push(start);
            checked.durations.push(duration);
        }
        checked
    }

    fn check(&self, segment: u32, order: &mut RowOrder) -> Result<(), String> {
        order.check(segment, &self.cpus, &self.keys)?;
        check_intervals(&self.starts, &self.durations)
    }
}

/// Writes the detours of a segment, and counts them.
pub(super) fn detours(
    draft: &Draft,
    segment: u32,
    rows: &[&[Detour]],
    order: &mut RowOrder,
    counts: &mut Counts,
    pause: &mut dyn FnMut(),
) -> Result<(), BundleError> {
    let mut encoder = Encoder::new(draft, &DETOURS)?;
    order.begin_segment();
    for group in row_groups(rows) {
        for rows in &group {
            let checked = CheckedColumns::from_rows(rows, |row| {
                let (cpu, start) = (stored_cpu(row.cpu), row.start.get());
                CheckedRow { cpu, key: start, start, duration: row.duration.get() }
            });
            checked.check(segment, order).map_err(|why| encoder.refuse(why))?;
            counts.add(&checked.cpus);
            pause();
        }
        let columns = [
            Accessor::Int32(|row: &Detour| stored_cpu(row.cpu)),
            Accessor::Int64(|row| row.start.get()),
            Accessor::Int64(|row| row.duration.get()),
            Accessor::Flags(|row| row.incomplete),
        ];
        encoder.write(&group, &columns, pause)?;
    }
    encoder.finish()
}

/// Writes the samples of a segment, and counts them.
pub(super) fn samples(
    draft: &Draft,
    segment: u32,
    rows: &[&[Sample]],
    order: &mut RowOrder,
    counts: &mut Counts,
    pause: &mut dyn FnMut(),
) -> Result<(), BundleError> {
    let mut encoder = Encoder::new(draft, &SAMPLES)?;
    order.begin_segment();
    for group in row_groups(rows) {
        for rows in &group {
            let checked = CheckedColumns::from_rows(rows, |row| {
                let (cpu, start) = (stored_cpu(row.cpu), row.start.get());
                CheckedRow { cpu, key: start, start, duration: row.duration.get() }
            });
            checked.check(segment, order).map_err(|why| encoder.refuse(why))?;
            counts.add(&checked.cpus);
            pause();
        }
        let columns = [
            Accessor::Int32(|row: &Sample| stored_cpu(row.cpu)),
            Accessor::Int64(|row| row.start.get()),
            Accessor::Int64(|row| row.duration.get()),
            Accessor::Int64(|row| i64::try_from(row.work).unwrap_or(i64::MAX)),
            Accessor::Flags(|row| row.incomplete),
        ];
        encoder.write(&group, &columns, pause)?;
    }
    encoder.finish()
}

/// Activities, and the labels of their names.
#[derive(Clone, Copy)]
pub(super) struct LabeledActivities<'a> {
    pub rows: &'a [&'a [Activity]],
    pub labels: &'a Labels,
}

/// The detours of a segment: on each CPU those from number `before` until `after`.
#[derive(Clone, Copy)]
pub(super) struct SegmentDetours<'a> {
    pub before: &'a Counts,
    pub after: &'a Counts,
}

/// Writes the activities of a segment. Each must belong to one of the segment's detours.
pub(super) fn activities(
    draft: &Draft,
    segment: u32,
    LabeledActivities { rows, labels }: LabeledActivities<'_>,
    order: &mut RowOrder,
    SegmentDetours { before, after }: SegmentDetours<'_>,
    pause: &mut dyn FnMut(),
) -> Result<(), BundleError> {
    let mut encoder = Encoder::new(draft, &ACTIVITIES)?;
    let kinds = stored_names(Kind::ALL.iter().map(|kind| kind.name()));
    let texts = stored_names(labels.iter());
    let detour = |row: &Activity| i64::try_from(row.detour).unwrap_or(i64::MAX);
    order.begin_segment();
    for group in row_groups(rows) {
        for rows in &group {
            let checked = CheckedColumns::from_rows(rows, |row| CheckedRow {
                cpu: stored_cpu(row.cpu),
                key: detour(row),
                start: row.start.get(),
                duration: row.self_time.get(),
            });
            checked
                .check(segment, order)
                .and_then(|()| check_numbers(&checked.cpus, &checked.keys, before, after))
                .map_err(|why| encoder.refuse(why))?;
            pause();
        }
        let columns = [
            Accessor::Int32(|row: &Activity| stored_cpu(row.cpu)),
            Accessor::Int64(detour),
            Accessor::Int64(|row| row.start.get()),
            Accessor::Int64(|row| row.self_time.get()),
            Accessor::Names(|row| row.kind as usize, &kinds),
            Accessor::Names(|row| row.source.index(), &texts),
            Accessor::Names(|row| row.detail.index(), &texts),
        ];
        encoder.write(&group, &columns, pause)?;
    }
    encoder.finish()
}

/// Writes the rows of a table.
pub(super) fn rows<R>(
    draft: &Draft,
    table: &'static Table,
    rows: &[R],
    columns: &[Accessor<'_, R>],
) -> Result<(), BundleError> {
    let mut encoder = Encoder::new(draft, table)?;
    for group in row_groups(&[rows]) {
        encoder.write(&group, columns, &mut || {})?;
    }
    encoder.finish()
}

/// Writes the causes of activities. Panics on labels of another table than `labels`.
pub(super) fn causes(draft: &Draft, causes: &[Cause], labels: &Labels) -> Result<(), BundleError> {
    let texts = stored_names(labels.iter());
    let kinds = stored_names(Kind::ALL.iter().map(|kind| kind.name()));
    let requesters = stored_names(Requester::ALL.iter().map(|requester| requester.name()));
    let columns = [
        Accessor::Int32(|row: &Cause| stored_cpu(row.cpu)),
        Accessor::Int64(|row| row.start.get()),
        Accessor::Int64(|row| row.duration.get()),
        Accessor::Names(|row| row.kind as usize, &kinds),
        Accessor::Names(|row| row.source.index(), &texts),
        Accessor::Int32(|row| number(row.task)),
        Accessor::Names(|row| row.requester as usize, &requesters),
        Accessor::Names(|row| row.by.index(), &texts),
        Accessor::Int32(|row| number(row.thread)),
        Accessor::Names(|row| row.context.index(), &texts),
        Accessor::Names(|row| row.site.index(), &texts),
        Accessor::Int64(|row| row.delay.map_or(-1, Nanos::get)),
    ];
    rows(draft, &CAUSES, causes, &columns)
}

/// The number of a thread as stored.
const fn number(thread: Pid) -> i32 {
    if thread.0 == Pid::IDLE.0 { -1 } else { thread.0 }
}

/// Writes the samples of probes, each with its name and rounds.
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
    for group in row_groups(&[&rows]) {
        let columns = [
            Accessor::Names(|row: &(usize, i64, i64)| row.0, &names),
            Accessor::Int64(|row| row.1),
            Accessor::Int64(|row| row.2),
        ];
        encoder.write(&group, &columns, &mut || {})?;
    }
    encoder.finish()
}

/// Writes the phases of ranks, each with its number and phases.
pub(super) fn phases<'a>(draft: &Draft, ranks: impl Iterator<Item = (u32, &'a [Phase])>) -> Result<(), BundleError> {
    let mut encoder = Encoder::new(draft, &PHASES)?;
    let rows: Vec<(i32, Phase)> = ranks
        .flat_map(|(rank, phases)| {
            // No job has more ranks; a reader would notice the missing number.
            let rank = i32::try_from(rank).unwrap_or(-1);
            phases.iter().map(move |phase| (rank, *phase))
        })
        .collect();
    for group in row_groups(&[&rows]) {
        let columns = [
            Accessor::Int32(|row: &(i32, Phase)| row.0),
            Accessor::Int64(|row| row.1.start_ns),
            Accessor::Int64(|row| row.1.compute_ns),
            Accessor::Int64(|row| row.1.collective_ns),
        ];
        encoder.write(&group, &columns, &mut || {})?;
    }
    encoder.finish()
}

/// Checks that every activity belongs to a detour of its own segment.
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
    use super::super::schema::BATCH_ROWS;
    use super::*;
    use arrow_array::types::Int32Type as ArrowInt32;
    use arrow_array::{ArrayRef, BooleanArray, DictionaryArray, Int32Array, Int64Array, RecordBatch, StringArray};
    use becalm_units::Nanos;
    use parquet::arrow::ArrowWriter;
    use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

    /// Columns as packed by Arrow's own writer.
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
        let draft = Draft::for_bundle(folder.path(), path.clone()).unwrap();
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

    /// Other programs read the files through Arrow, so its own writer is the reference for the same columns.
    #[test]
    fn files_are_those_that_arrow_would_write() {
        let folder = tempfile::tempdir().unwrap();
        // More than a row group, with an outlier here and there.
        let count = GROUP_ROWS as i64 + 70_000;
        let rows: Vec<Detour> = (0..count)
            .map(|row| Detour {
                cpu: CpuId::new((row / 100_000) as u32),
                start: Nanos::new(row * 1_000 + row % 7),
                duration: Nanos::new(if row % 1_000 == 0 { 1 << 33 } else { row % 300 }),
                incomplete: row % 11 == 0,
            })
            .collect();
        let found = written(&folder, |draft| {
            detours(draft, 0, &[&rows], &mut RowOrder::default(), &mut Counts::default(), &mut || {})
        });
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
                let rows = LabeledActivities { rows: &[&rows], labels: &labels };
                let detours = SegmentDetours { before: &Counts::default(), after: &after };
                activities(draft, 0, rows, &mut RowOrder::default(), detours, &mut || {})
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
            // If a dictionary becomes too large, the two abandon it at different rows.
            if distinct < 1_000 {
                assert!(found == expected, "{count} rows: {} and {} bytes", found.len(), expected.len());
            } else {
                assert!(read_by_arrow(found) == read_by_arrow(expected), "{count} rows");
            }
        }
    }

    /// Rows in several pieces are read like rows in one piece.
    #[test]
    fn rows_in_pieces_are_the_rows_in_one() {
        let folder = tempfile::tempdir().unwrap();
        let rows: Vec<Detour> = (0..GROUP_ROWS as i64 + 9_000)
            .map(|row| Detour {
                cpu: CpuId::new((row / 150_000) as u32),
                start: Nanos::new(row * 10),
                duration: Nanos::new(row % 7),
                incomplete: row % 2 == 0,
            })
            .collect();
        let mut pauses = 0;
        let mut file = |parts: &[&[Detour]]| {
            let (order, counts) = (&mut RowOrder::default(), &mut Counts::default());
            written(&folder, |draft| detours(draft, 0, parts, order, counts, &mut || pauses += 1))
        };
        let (head, tail) = rows.split_at(77_777);
        let pieces: Vec<&[Detour]> = head.chunks(5_000).chain([&[][..]]).chain(tail.chunks(3_000)).collect();
        let (whole, in_pieces) = (file(&[&rows]), file(&pieces));
        assert!(read_by_arrow(whole) == read_by_arrow(in_pieces));
        // There is a pause for each slice of each column, and of the checks.
        assert!(pauses > 2 * 5 * rows.len() / SLICE_ROWS, "{pauses}");
    }

    fn read_by_arrow(bytes: Vec<u8>) -> Vec<RecordBatch> {
        let reader = ParquetRecordBatchReaderBuilder::try_new(bytes::Bytes::from(bytes)).unwrap();
        reader.with_batch_size(1 << 20).build().unwrap().map(Result::unwrap).collect()
    }
}
