//! Batches of rows of a table, by column.

use std::str::FromStr;

use super::order::check_intervals;
use super::rows::{NameColumn, Rows};
use super::schema::{ACTIVITIES, DETOURS, SAMPLES, Table};
use becalm_model::Kind;

/// A batch of a table, made from decoded rows.
pub(super) trait RowBatch: Sized {
    const TABLE: &'static Table;

    /// Takes the columns, which already have the schema's types. The error names the column with an invalid value.
    fn take(segment: u32, rows: Rows) -> Result<Self, String>;

    /// The rows' CPUs, and the values that must not decrease within a CPU.
    fn order(&self) -> (&[i32], &[i64]);
}

macro_rules! columns_of_all_batches {
    ($($batch:ty),+) => {
        $(impl $batch {
            /// The number of rows in the batch, at most the number of rows read at a time.
            pub fn len(&self) -> usize {
                self.cpus.len()
            }

            /// Whether the batch is empty.
            pub fn is_empty(&self) -> bool {
                self.cpus.is_empty()
            }

            /// The CPU of each row, from 0 to below [`CpuId::LIMIT`](becalm_units::CpuId::LIMIT).
            pub fn cpus(&self) -> &[i32] {
                &self.cpus
            }

            /// The start of each row, in nanoseconds since the run's origin.
            pub fn starts(&self) -> &[i64] {
                &self.starts
            }

            /// The number of the rows' segment.
            pub const fn segment(&self) -> u32 {
                self.segment
            }
        })+
    };
}

columns_of_all_batches!(DetourBatch, SampleBatch, ActivityBatch);

/// Consecutive detours of one segment, in the file's order: CPU by CPU, each in order of time.
#[derive(Clone, Debug)]
pub struct DetourBatch {
    segment: u32,
    cpus: Vec<i32>,
    starts: Vec<i64>,
    durations: Vec<i64>,
    incomplete: Option<Vec<bool>>,
}

impl DetourBatch {
    /// The length of each detour, in nanoseconds, at least 0. Start and duration add up without overflow; sums of many durations may overflow.
    pub fn durations(&self) -> &[i64] {
        &self.durations
    }

    /// Whether kernel events were lost during a detour; `false` if the file has no such column. Panics if there is no such row.
    pub fn incomplete(&self, row: usize) -> bool {
        assert!(row < self.len(), "row {row} of {}", self.len());
        self.incomplete.as_ref().is_some_and(|flags| flags[row])
    }
}

impl RowBatch for DetourBatch {
    const TABLE: &'static Table = &DETOURS;

    fn take(segment: u32, mut rows: Rows) -> Result<Self, String> {
        let batch = Self {
            segment,
            cpus: rows.int32("cpu")?,
            starts: rows.int64("start_ns")?,
            durations: rows.int64("duration_ns")?,
            incomplete: rows.flags("incomplete")?,
        };
        check_intervals(&batch.starts, &batch.durations)?;
        Ok(batch)
    }

    fn order(&self) -> (&[i32], &[i64]) {
        (&self.cpus, &self.starts)
    }
}

/// Consecutive samples of one segment, in the file's order: CPU by CPU, each in order of time.
#[derive(Clone, Debug)]
pub struct SampleBatch {
    segment: u32,
    cpus: Vec<i32>,
    starts: Vec<i64>,
    durations: Vec<i64>,
    work: Vec<i64>,
    incomplete: Option<Vec<bool>>,
}

impl SampleBatch {
    /// The duration of each sample, in nanoseconds, at least 0. Start and duration add up without overflow.
    pub fn durations(&self) -> &[i64] {
        &self.durations
    }

    /// The iterations in each sample, at least 0.
    pub fn work(&self) -> &[i64] {
        &self.work
    }

    /// Whether kernel events were lost during a sample; `false` if the file has no such column. Panics if there is no such row.
    pub fn incomplete(&self, row: usize) -> bool {
        assert!(row < self.len(), "row {row} of {}", self.len());
        self.incomplete.as_ref().is_some_and(|flags| flags[row])
    }
}

impl RowBatch for SampleBatch {
    const TABLE: &'static Table = &SAMPLES;

    fn take(segment: u32, mut rows: Rows) -> Result<Self, String> {
        let batch = Self {
            segment,
            cpus: rows.int32("cpu")?,
            starts: rows.int64("start_ns")?,
            durations: rows.int64("duration_ns")?,
            work: rows.int64("work")?,
            incomplete: rows.flags("incomplete")?,
        };
        check_intervals(&batch.starts, &batch.durations)?;
        match batch.work.iter().find(|work| **work < 0) {
            Some(work) => Err(format!("a sample cannot have done {work} iterations")),
            None => Ok(batch),
        }
    }

    fn order(&self) -> (&[i32], &[i64]) {
        (&self.cpus, &self.starts)
    }
}

/// Consecutive activities of one segment, in the file's order: CPU by CPU, and detour by detour.
#[derive(Clone, Debug)]
pub struct ActivityBatch {
    segment: u32,
    cpus: Vec<i32>,
    detours: Vec<i64>,
    starts: Vec<i64>,
    self_times: Vec<i64>,
    kinds: NameColumn,
    kind_values: Vec<Kind>,
    sources: NameColumn,
    details: NameColumn,
}

impl ActivityBatch {
    /// The number of each activity's detour (or sample), counted per CPU from 0 over the whole run, never decreasing within a CPU.
    pub fn detours(&self) -> &[i64] {
        &self.detours
    }

    /// The self time of each activity, in nanoseconds, at least 0.
    pub fn self_times(&self) -> &[i64] {
        &self.self_times
    }

    /// The kind of an activity. Panics if there is no such row.
    pub fn kind(&self, row: usize) -> Kind {
        self.kind_values[self.kinds.key(row)]
    }

    /// The source of an activity. Panics if there is no such row.
    pub fn source(&self, row: usize) -> &str {
        self.sources.name(row)
    }

    /// The instance of an activity. Panics if there is no such row.
    pub fn detail(&self, row: usize) -> &str {
        self.details.name(row)
    }

    /// The index of an activity's source in [`Self::source_values`]. Keys and values are valid for this batch only. Panics if there is no such row.
    pub fn source_key(&self, row: usize) -> usize {
        self.sources.key(row)
    }

    /// The sources by key. There may be duplicates and unused ones.
    pub fn source_values(&self) -> Vec<&str> {
        self.sources.values()
    }

    /// The index of an activity's detail in [`Self::detail_values`]. Keys and values are valid for this batch only. Panics if there is no such row.
    pub fn detail_key(&self, row: usize) -> usize {
        self.details.key(row)
    }

    /// The details by key. There may be duplicates and unused ones.
    pub fn detail_values(&self) -> Vec<&str> {
        self.details.values()
    }
}

impl RowBatch for ActivityBatch {
    const TABLE: &'static Table = &ACTIVITIES;

    fn take(segment: u32, mut rows: Rows) -> Result<Self, String> {
        let kinds = rows.names("kind")?;
        let kind_values = kinds.values().into_iter().map(Kind::from_str).collect::<Result<_, _>>();
        let batch = Self {
            segment,
            cpus: rows.int32("cpu")?,
            detours: rows.int64("detour")?,
            starts: rows.int64("start_ns")?,
            self_times: rows.int64("self_ns")?,
            kinds,
            kind_values: kind_values.map_err(|error| error.to_string())?,
            sources: rows.names("source")?,
            details: rows.names("detail")?,
        };
        check_intervals(&batch.starts, &batch.self_times)?;
        match batch.detours.iter().find(|detour| **detour < 0) {
            Some(detour) => Err(format!("there is no detour {detour}")),
            None => Ok(batch),
        }
    }

    fn order(&self) -> (&[i32], &[i64]) {
        (&self.cpus, &self.detours)
    }
}
