//! Some rows of a table, column by column.

use std::str::FromStr;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type};
use arrow_array::{Array, RecordBatch, StringArray};
use arrow_buffer::{BooleanBuffer, ScalarBuffer};

use super::order::check_intervals;
use super::schema::{ACTIVITIES, DETOURS, SAMPLES, Table};
use becalm_model::Kind;

/// A batch of a table, as the reader makes it of what the decoder gives.
pub(super) trait Batch: Sized {
    /// The table of which it is a part.
    const TABLE: &'static Table;

    /// Takes the columns, which have the schema's types already.
    ///
    /// # Errors
    /// Says which column holds what it must not.
    fn take(segment: u32, record: &RecordBatch) -> Result<Self, String>;

    /// The rows' CPUs, and what must not decrease within a CPU.
    fn order(&self) -> (&[i32], &[i64]);
}

/// Consecutive detours of one segment, in the file's order: CPU after CPU, each in order of time.
#[derive(Clone, Debug)]
pub struct DetourBatch {
    segment: u32,
    cpus: ScalarBuffer<i32>,
    starts: ScalarBuffer<i64>,
    durations: ScalarBuffer<i64>,
    incomplete: Option<BooleanBuffer>,
}

impl DetourBatch {
    /// How many detours.
    #[must_use]
    pub fn len(&self) -> usize {
        self.cpus.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.cpus.is_empty()
    }

    /// The CPU of each, from 0 to below [`CpuId::LIMIT`](becalm_units::CpuId::LIMIT).
    #[must_use]
    pub fn cpus(&self) -> &[i32] {
        &self.cpus
    }

    /// When each began, in nanoseconds since the run's origin.
    #[must_use]
    pub fn starts(&self) -> &[i64] {
        &self.starts
    }

    /// How long each is, in nanoseconds, at least 0. Start and duration add up without overflow; whether the
    /// durations of many detours do is for the caller to see to.
    #[must_use]
    pub fn durations(&self) -> &[i64] {
        &self.durations
    }

    /// Whether kernel events were lost during a detour. No, in files that do not say.
    ///
    /// # Panics
    /// If there is no such row.
    #[must_use]
    pub fn incomplete(&self, row: usize) -> bool {
        assert!(row < self.len(), "row {row} of {}", self.len());
        self.incomplete.as_ref().is_some_and(|flags| flags.value(row))
    }

    /// The number of the segment that holds them.
    #[must_use]
    pub const fn segment(&self) -> u32 {
        self.segment
    }
}

impl Batch for DetourBatch {
    const TABLE: &'static Table = &DETOURS;

    fn take(segment: u32, record: &RecordBatch) -> Result<Self, String> {
        let batch = Self {
            segment,
            cpus: column(record, "cpu")?.as_primitive::<Int32Type>().values().clone(),
            starts: column(record, "start_ns")?.as_primitive::<Int64Type>().values().clone(),
            durations: column(record, "duration_ns")?.as_primitive::<Int64Type>().values().clone(),
            incomplete: optional_flags(record, "incomplete")?,
        };
        check_intervals(&batch.starts, &batch.durations)?;
        Ok(batch)
    }

    fn order(&self) -> (&[i32], &[i64]) {
        (&self.cpus, &self.starts)
    }
}

/// Consecutive samples of one segment, in the file's order: CPU after CPU, each in order of time.
#[derive(Clone, Debug)]
pub struct SampleBatch {
    segment: u32,
    cpus: ScalarBuffer<i32>,
    starts: ScalarBuffer<i64>,
    durations: ScalarBuffer<i64>,
    work: ScalarBuffer<i64>,
    incomplete: Option<BooleanBuffer>,
}

impl SampleBatch {
    /// How many samples.
    #[must_use]
    pub fn len(&self) -> usize {
        self.cpus.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.cpus.is_empty()
    }

    /// The CPU of each, from 0 to below [`CpuId::LIMIT`](becalm_units::CpuId::LIMIT).
    #[must_use]
    pub fn cpus(&self) -> &[i32] {
        &self.cpus
    }

    /// When each began, in nanoseconds since the run's origin.
    #[must_use]
    pub fn starts(&self) -> &[i64] {
        &self.starts
    }

    /// How long each took, in nanoseconds, at least 0. Start and duration add up without overflow.
    #[must_use]
    pub fn durations(&self) -> &[i64] {
        &self.durations
    }

    /// The iterations done in each, at least 0.
    #[must_use]
    pub fn work(&self) -> &[i64] {
        &self.work
    }

    /// Whether kernel events were lost during a sample. No, in files that do not say.
    ///
    /// # Panics
    /// If there is no such row.
    #[must_use]
    pub fn incomplete(&self, row: usize) -> bool {
        assert!(row < self.len(), "row {row} of {}", self.len());
        self.incomplete.as_ref().is_some_and(|flags| flags.value(row))
    }

    /// The number of the segment that holds them.
    #[must_use]
    pub const fn segment(&self) -> u32 {
        self.segment
    }
}

impl Batch for SampleBatch {
    const TABLE: &'static Table = &SAMPLES;

    fn take(segment: u32, record: &RecordBatch) -> Result<Self, String> {
        let batch = Self {
            segment,
            cpus: column(record, "cpu")?.as_primitive::<Int32Type>().values().clone(),
            starts: column(record, "start_ns")?.as_primitive::<Int64Type>().values().clone(),
            durations: column(record, "duration_ns")?.as_primitive::<Int64Type>().values().clone(),
            work: column(record, "work")?.as_primitive::<Int64Type>().values().clone(),
            incomplete: optional_flags(record, "incomplete")?,
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

/// Consecutive activities of one segment, in the file's order: CPU after CPU, and within one detour after detour.
#[derive(Clone, Debug)]
pub struct ActivityBatch {
    segment: u32,
    cpus: ScalarBuffer<i32>,
    detours: ScalarBuffer<i64>,
    starts: ScalarBuffer<i64>,
    self_times: ScalarBuffer<i64>,
    kinds: ScalarBuffer<i32>,
    kind_values: Vec<Kind>,
    sources: Names,
    details: Names,
}

impl ActivityBatch {
    /// How many activities.
    #[must_use]
    pub fn len(&self) -> usize {
        self.cpus.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.cpus.is_empty()
    }

    /// The CPU of each, from 0 to below [`CpuId::LIMIT`](becalm_units::CpuId::LIMIT).
    #[must_use]
    pub fn cpus(&self) -> &[i32] {
        &self.cpus
    }

    /// The number of the detour (or sample) of each, counted on its CPU from 0 over the whole run, never falling within
    /// a CPU.
    #[must_use]
    pub fn detours(&self) -> &[i64] {
        &self.detours
    }

    /// When each began, in nanoseconds since the run's origin.
    #[must_use]
    pub fn starts(&self) -> &[i64] {
        &self.starts
    }

    /// The self time of each, in nanoseconds, at least 0.
    #[must_use]
    pub fn self_times(&self) -> &[i64] {
        &self.self_times
    }

    /// The kind of one.
    ///
    /// # Panics
    /// If there is no such row.
    #[must_use]
    pub fn kind(&self, row: usize) -> Kind {
        self.kind_values[self.kind_key(row)]
    }

    /// The source of one.
    ///
    /// # Panics
    /// If there is no such row.
    #[must_use]
    pub fn source(&self, row: usize) -> &str {
        self.sources.values.value(self.source_key(row))
    }

    /// Which instance one is.
    ///
    /// # Panics
    /// If there is no such row.
    #[must_use]
    pub fn detail(&self, row: usize) -> &str {
        self.details.values.value(self.detail_key(row))
    }

    /// Where in [`Self::kind_values`] the kind of one stands. Keys and values are good for this batch only.
    ///
    /// # Panics
    /// If there is no such row.
    #[must_use]
    pub fn kind_key(&self, row: usize) -> usize {
        self.kinds[row] as usize
    }

    /// The kinds by key. One may stand there more than once, or be that of no row.
    #[must_use]
    pub fn kind_values(&self) -> &[Kind] {
        &self.kind_values
    }

    /// Where in [`Self::source_values`] the source of one stands. Keys and values are good for this batch only.
    ///
    /// # Panics
    /// If there is no such row.
    #[must_use]
    pub fn source_key(&self, row: usize) -> usize {
        self.sources.keys[row] as usize
    }

    /// The sources by key. One may stand there more than once, or be that of no row.
    #[must_use]
    pub fn source_values(&self) -> Vec<&str> {
        self.sources.to_vec()
    }

    /// Where in [`Self::detail_values`] the detail of one stands. Keys and values are good for this batch only.
    ///
    /// # Panics
    /// If there is no such row.
    #[must_use]
    pub fn detail_key(&self, row: usize) -> usize {
        self.details.keys[row] as usize
    }

    /// The details by key. One may stand there more than once, or be that of no row.
    #[must_use]
    pub fn detail_values(&self) -> Vec<&str> {
        self.details.to_vec()
    }

    /// The number of the segment that holds them.
    #[must_use]
    pub const fn segment(&self) -> u32 {
        self.segment
    }
}

impl Batch for ActivityBatch {
    const TABLE: &'static Table = &ACTIVITIES;

    fn take(segment: u32, record: &RecordBatch) -> Result<Self, String> {
        let kinds = Names::take(record, "kind")?;
        let kind_values = kinds.to_vec().into_iter().map(Kind::from_str).collect::<Result<_, _>>();
        let batch = Self {
            segment,
            cpus: column(record, "cpu")?.as_primitive::<Int32Type>().values().clone(),
            detours: column(record, "detour")?.as_primitive::<Int64Type>().values().clone(),
            starts: column(record, "start_ns")?.as_primitive::<Int64Type>().values().clone(),
            self_times: column(record, "self_ns")?.as_primitive::<Int64Type>().values().clone(),
            kinds: kinds.keys,
            kind_values: kind_values.map_err(|error| error.to_string())?,
            sources: Names::take(record, "source")?,
            details: Names::take(record, "detail")?,
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

/// A column of names: for each row a key, for each key a name.
#[derive(Clone, Debug)]
pub(super) struct Names {
    keys: ScalarBuffer<i32>,
    values: StringArray,
}

impl Names {
    pub(super) fn take(record: &RecordBatch, name: &str) -> Result<Self, String> {
        let names = column(record, name)?.as_dictionary::<Int32Type>();
        let values: &StringArray = names.values().as_string();
        if values.null_count() > 0 {
            return Err(no_value(name));
        }
        // The decoder does not look at the keys where the dictionary is empty.
        let keys = names.keys().values().clone();
        if keys.iter().any(|key| usize::try_from(*key).map_or(true, |key| key >= values.len())) {
            return Err(format!("the column {name} has rows outside of its dictionary"));
        }
        Ok(Self { keys, values: values.clone() })
    }

    /// The name of a row.
    pub(super) fn of_row(&self, row: usize) -> &str {
        self.values.value(self.keys[row] as usize)
    }

    fn to_vec(&self) -> Vec<&str> {
        (0..self.values.len()).map(|key| self.values.value(key)).collect()
    }
}

/// A column of yes and no that a file need not have.
fn optional_flags(record: &RecordBatch, name: &str) -> Result<Option<BooleanBuffer>, String> {
    match record.schema_ref().index_of(name) {
        Ok(_) => Ok(Some(column(record, name)?.as_boolean().values().clone())),
        Err(_) => Ok(None),
    }
}

/// A column without gaps, of the type that the decoder was told to give.
pub(super) fn column<'a>(record: &'a RecordBatch, name: &str) -> Result<&'a dyn Array, String> {
    let column = record.column_by_name(name).ok_or_else(|| format!("it has no column {name}"))?;
    if column.null_count() > 0 { Err(no_value(name)) } else { Ok(column.as_ref()) }
}

fn no_value(name: &str) -> String {
    format!("the column {name} has rows without a value")
}
