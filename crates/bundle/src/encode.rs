//! From rows to Parquet: the contents of one segment's two files.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::sync::Arc;

use arrow_array::{
    ArrayRef, BooleanArray, DictionaryArray, Int32Array, Int64Array, RecordBatch, StringArray, types::Int32Type,
};
use arrow_schema::SchemaRef;
use becalm_units::CpuId;
use parquet::arrow::ArrowWriter;
use parquet::errors::ParquetError;

use super::BundleError;
use super::draft::Draft;
use super::error::plain_words;
use super::order::{RowOrder, check_intervals};
use super::phase::Phase;
use super::schema::{ACTIVITIES, BATCH_ROWS, COSTS, DETOURS, PHASES, SAMPLES, Table};
use becalm_model::{Activity, Detour, Kind, Labels, Sample};

/// One Parquet file on its way.
struct Encoder<'a> {
    draft: &'a Draft,
    table: &'static Table,
    schema: SchemaRef,
    writer: ArrowWriter<&'a File>,
}

impl<'a> Encoder<'a> {
    fn new(draft: &'a Draft, table: &'static Table) -> Result<Self, BundleError> {
        let schema = table.arrow();
        let writer = ArrowWriter::try_new(draft.file(), Arc::clone(&schema), Some(table.packing()))
            .map_err(|cause| encoding_error(draft, cause))?;
        Ok(Self { draft, table, schema, writer })
    }

    fn write(&mut self, columns: Vec<ArrayRef>) -> Result<(), BundleError> {
        RecordBatch::try_new(Arc::clone(&self.schema), columns)
            .map_err(ParquetError::from)
            .and_then(|batch| self.writer.write(&batch))
            .map_err(|cause| encoding_error(self.draft, cause))
    }

    fn refuse(&self, why: String) -> BundleError {
        BundleError::Table { path: self.draft.target().to_owned(), table: self.table.name, why }
    }

    fn finish(self) -> Result<(), BundleError> {
        self.writer.close().map_err(|cause| encoding_error(self.draft, cause))?;
        Ok(())
    }
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
    for rows in rows.chunks(BATCH_ROWS) {
        let cpus: Vec<i32> = rows.iter().map(|row| stored_cpu(row.cpu)).collect();
        let starts: Vec<i64> = rows.iter().map(|row| row.start.get()).collect();
        let durations: Vec<i64> = rows.iter().map(|row| row.duration.get()).collect();
        let incomplete: BooleanArray = rows.iter().map(|row| Some(row.incomplete)).collect();
        order
            .check(segment, &cpus, &starts)
            .and_then(|()| check_intervals(&starts, &durations))
            .map_err(|why| encoder.refuse(why))?;
        counts.add(&cpus);
        encoder.write(vec![
            Arc::new(Int32Array::from(cpus)),
            Arc::new(Int64Array::from(starts)),
            Arc::new(Int64Array::from(durations)),
            Arc::new(incomplete),
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
    for rows in rows.chunks(BATCH_ROWS) {
        let cpus: Vec<i32> = rows.iter().map(|row| stored_cpu(row.cpu)).collect();
        let starts: Vec<i64> = rows.iter().map(|row| row.start.get()).collect();
        let durations: Vec<i64> = rows.iter().map(|row| row.duration.get()).collect();
        let work: Vec<i64> = rows.iter().map(|row| i64::try_from(row.work).unwrap_or(i64::MAX)).collect();
        let incomplete: BooleanArray = rows.iter().map(|row| Some(row.incomplete)).collect();
        order
            .check(segment, &cpus, &starts)
            .and_then(|()| check_intervals(&starts, &durations))
            .map_err(|why| encoder.refuse(why))?;
        counts.add(&cpus);
        encoder.write(vec![
            Arc::new(Int32Array::from(cpus)),
            Arc::new(Int64Array::from(starts)),
            Arc::new(Int64Array::from(durations)),
            Arc::new(Int64Array::from(work)),
            Arc::new(incomplete),
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
    let kinds: ArrayRef = Arc::new(StringArray::from_iter_values(Kind::ALL.iter().map(|kind| kind.name())));
    let texts: ArrayRef = Arc::new(StringArray::from_iter_values(labels.iter()));
    let names = |keys: Vec<i32>, values: &ArrayRef| -> Result<ArrayRef, BundleError> {
        let names = DictionaryArray::<Int32Type>::try_new(keys.into(), Arc::clone(values));
        Ok(Arc::new(names.map_err(|cause| encoding_error(draft, cause.into()))?))
    };
    order.begin_segment();
    for rows in rows.chunks(BATCH_ROWS) {
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
            Arc::new(Int32Array::from(cpus)),
            Arc::new(Int64Array::from(detours)),
            Arc::new(Int64Array::from(starts)),
            Arc::new(Int64Array::from(self_times)),
            names(rows.iter().map(|row| row.kind as i32).collect(), &kinds)?,
            names(rows.iter().map(|row| row.source.index() as i32).collect(), &texts)?,
            names(rows.iter().map(|row| row.detail.index() as i32).collect(), &texts)?,
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
    for (name, rounds) in probes {
        let rows: Vec<(i64, i64)> =
            (0_i64..).zip(rounds).flat_map(|(round, times)| times.iter().map(move |time| (round, *time))).collect();
        let value: ArrayRef = Arc::new(StringArray::from_iter_values([name]));
        for rows in rows.chunks(BATCH_ROWS) {
            let names = DictionaryArray::<Int32Type>::try_new(vec![0; rows.len()].into(), Arc::clone(&value));
            encoder.write(vec![
                Arc::new(names.map_err(|cause| encoding_error(draft, cause.into()))?),
                Arc::new(Int64Array::from_iter_values(rows.iter().map(|row| row.0))),
                Arc::new(Int64Array::from_iter_values(rows.iter().map(|row| row.1))),
            ])?;
        }
    }
    encoder.finish()
}

/// Writes the phases of ranks: of each its number, and its phases.
pub(super) fn phases<'a>(draft: &Draft, ranks: impl Iterator<Item = (u32, &'a [Phase])>) -> Result<(), BundleError> {
    let mut encoder = Encoder::new(draft, &PHASES)?;
    for (rank, phases) in ranks {
        // No job has more ranks than that; a reader would miss the number.
        let rank = i32::try_from(rank).unwrap_or(-1);
        for rows in phases.chunks(BATCH_ROWS) {
            encoder.write(vec![
                Arc::new(Int32Array::from(vec![rank; rows.len()])),
                Arc::new(Int64Array::from_iter_values(rows.iter().map(|row| row.start_ns))),
                Arc::new(Int64Array::from_iter_values(rows.iter().map(|row| row.compute_ns))),
                Arc::new(Int64Array::from_iter_values(rows.iter().map(|row| row.collective_ns))),
            ])?;
        }
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
