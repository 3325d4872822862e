//! Reads the tables of a run into contiguous columns.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::builder::BooleanBufferBuilder;
use arrow_array::types::Int32Type;
use arrow_array::{ArrayRef, BooleanArray, DictionaryArray, Int32Array, Int64Array, RecordBatch, StringArray};
use arrow_schema::{ArrowError, DataType, Field, Schema};
use becalm_analyze::summary::Selection;
use becalm_bundle::Bundle;
use becalm_model::Kind;
use becalm_units::fault;

/// A column of names: a key for each row, and the distinct names in order of appearance.
#[derive(Default)]
pub struct Names {
    keys: Vec<i32>,
    numbers: HashMap<Arc<str>, i32>,
    names: Vec<Arc<str>>,
}

impl Names {
    /// The key of a name; adds the name if it is new.
    fn key(&mut self, name: &str) -> i32 {
        if let Some(key) = self.numbers.get(name) {
            return *key;
        }
        let (key, name) = (i32::try_from(self.names.len()).unwrap_or(i32::MAX), Arc::<str>::from(name));
        self.numbers.insert(Arc::clone(&name), key);
        self.names.push(name);
        key
    }

    /// Adds a row with a name.
    pub fn push(&mut self, name: &str) {
        let key = self.key(name);
        self.keys.push(key);
    }

    /// The column.
    pub fn array(self) -> Result<ArrayRef, ArrowError> {
        let names = StringArray::from_iter_values(&self.names);
        Ok(Arc::new(DictionaryArray::<Int32Type>::try_new(Int32Array::from(self.keys), Arc::new(names))?))
    }
}

/// The common part of rows of detours, samples and activities.
#[derive(Default)]
struct Place {
    nodes: Names,
    cpus: Vec<i32>,
    numbers: Vec<i64>,
}

/// The selected CPUs of a node, with the number of rows so far.
struct Counted {
    rows: HashMap<i32, i64>,
    chosen: Option<Vec<i32>>,
}

impl Counted {
    fn new(selection: &Selection) -> Self {
        let chosen =
            selection.cpus.as_ref().map(|cpus| cpus.iter().filter_map(|cpu| cpu.get().try_into().ok()).collect());
        Self { rows: HashMap::new(), chosen }
    }

    fn takes(&self, cpu: i32) -> bool {
        self.chosen.as_ref().is_none_or(|chosen| chosen.contains(&cpu))
    }

    /// Splits rows into ranges of one selected CPU: the range, the CPU, and the number of its first row on that CPU.
    fn stretches(&mut self, cpus: &[i32]) -> Vec<(std::ops::Range<usize>, i32, i64)> {
        let (mut found, mut begin) = (Vec::new(), 0);
        for stretch in cpus.chunk_by(|a, b| a == b) {
            let (cpu, range) = (stretch[0], begin..begin + stretch.len());
            begin = range.end;
            let rows = self.rows.entry(cpu).or_default();
            let first = *rows;
            *rows += stretch.len() as i64;
            if self.takes(cpu) {
                found.push((range, cpu, first));
            }
        }
        found
    }
}

impl Place {
    fn add(&mut self, node: i32, cpu: i32, count: usize) {
        self.nodes.keys.resize(self.nodes.keys.len() + count, node);
        self.cpus.resize(self.cpus.len() + count, cpu);
    }
}

/// The detours of the selected nodes and CPUs, in the order of the bundle: by node, then by segment. Fails if the run cannot be read or
/// lacks the selected part.
pub fn detours(bundle: &Bundle, selection: &Selection) -> fault::Result<RecordBatch> {
    let (mut place, mut starts, mut durations) = (Place::default(), Vec::new(), Vec::new());
    let mut incomplete = BooleanBufferBuilder::new(0);
    for node in nodes(bundle, selection)? {
        let (key, mut counted) = (place.nodes.key(&node), Counted::new(selection));
        for batch in bundle.detours(&node)? {
            let batch = batch?;
            for (range, cpu, first) in counted.stretches(batch.cpus()) {
                place.add(key, cpu, range.len());
                place.numbers.extend(first..first + range.len() as i64);
                starts.extend_from_slice(&batch.starts()[range.clone()]);
                durations.extend_from_slice(&batch.durations()[range.clone()]);
                range.for_each(|row| incomplete.append(batch.incomplete(row)));
            }
        }
    }
    table(vec![
        ("node", place.nodes.array()),
        ("cpu", int32(place.cpus)),
        ("detour", int64(place.numbers)),
        ("start_ns", int64(starts)),
        ("duration_ns", int64(durations)),
        ("incomplete", Ok(Arc::new(BooleanArray::new(incomplete.finish(), None)))),
    ])
}

/// The samples of a run of work, likewise.
pub fn samples(bundle: &Bundle, selection: &Selection) -> fault::Result<RecordBatch> {
    let (mut place, mut starts, mut durations, mut work) = (Place::default(), Vec::new(), Vec::new(), Vec::new());
    let mut incomplete = BooleanBufferBuilder::new(0);
    for node in nodes(bundle, selection)? {
        let (key, mut counted) = (place.nodes.key(&node), Counted::new(selection));
        for batch in bundle.samples(&node)? {
            let batch = batch?;
            for (range, cpu, first) in counted.stretches(batch.cpus()) {
                place.add(key, cpu, range.len());
                place.numbers.extend(first..first + range.len() as i64);
                starts.extend_from_slice(&batch.starts()[range.clone()]);
                durations.extend_from_slice(&batch.durations()[range.clone()]);
                work.extend_from_slice(&batch.work()[range.clone()]);
                range.for_each(|row| incomplete.append(batch.incomplete(row)));
            }
        }
    }
    table(vec![
        ("node", place.nodes.array()),
        ("cpu", int32(place.cpus)),
        ("sample", int64(place.numbers)),
        ("start_ns", int64(starts)),
        ("duration_ns", int64(durations)),
        ("work", int64(work)),
        ("incomplete", Ok(Arc::new(BooleanArray::new(incomplete.finish(), None)))),
    ])
}

/// The activities, likewise; `detour` is the number of the detour (or sample) on its CPU.
pub fn activities(bundle: &Bundle, selection: &Selection) -> fault::Result<RecordBatch> {
    let (mut place, mut starts, mut self_times) = (Place::default(), Vec::new(), Vec::new());
    let (mut kinds, mut sources, mut details) = (Names::default(), Names::default(), Names::default());
    let by_kind: Vec<i32> = Kind::ALL.iter().map(|kind| kinds.key(kind.name())).collect();
    for node in nodes(bundle, selection)? {
        let (key, mut counted) = (place.nodes.key(&node), Counted::new(selection));
        for batch in bundle.activities(&node)? {
            let batch = batch?;
            // Keys are local to a batch. Take only names that rows use.
            let (source_names, detail_names) = (batch.source_values(), batch.detail_values());
            let mut source_keys: Vec<Option<i32>> = vec![None; source_names.len()];
            let mut detail_keys: Vec<Option<i32>> = vec![None; detail_names.len()];
            for (range, cpu, _) in counted.stretches(batch.cpus()) {
                place.add(key, cpu, range.len());
                place.numbers.extend_from_slice(&batch.detours()[range.clone()]);
                starts.extend_from_slice(&batch.starts()[range.clone()]);
                self_times.extend_from_slice(&batch.self_times()[range.clone()]);
                for row in range {
                    kinds.keys.push(by_kind[batch.kind(row) as usize]);
                    let (source, detail) = (batch.source_key(row), batch.detail_key(row));
                    let source = *source_keys[source].get_or_insert_with(|| sources.key(source_names[source]));
                    sources.keys.push(source);
                    let detail = *detail_keys[detail].get_or_insert_with(|| details.key(detail_names[detail]));
                    details.keys.push(detail);
                }
            }
        }
    }
    table(vec![
        ("node", place.nodes.array()),
        ("cpu", int32(place.cpus)),
        ("detour", int64(place.numbers)),
        ("start_ns", int64(starts)),
        ("self_ns", int64(self_times)),
        ("kind", kinds.array()),
        ("source", sources.array()),
        ("detail", details.array()),
    ])
}

/// The names of the selected nodes. Checks once for all nodes that the selected CPUs exist.
fn nodes(bundle: &Bundle, selection: &Selection) -> fault::Result<Vec<String>> {
    if bundle.nodes().iter().all(|doc| doc.settings.work.is_none()) {
        return Ok(selection.documents(bundle)?.into_iter().map(|doc| doc.node).collect());
    }
    let names = bundle.nodes().iter().map(|doc| doc.node.clone());
    match &selection.node {
        // The bundle's own error lists the nodes.
        Some(node) => Ok(bundle.samples(node).map(|_| vec![node.clone()])?),
        None => Ok(names.collect()),
    }
}

/// A column of whole numbers.
#[expect(clippy::unnecessary_wraps, reason = "it is listed with columns that can fail")]
pub fn int64(values: Vec<i64>) -> Result<ArrayRef, ArrowError> {
    Ok(Arc::new(Int64Array::from(values)))
}

/// The same in 32 bits.
#[expect(clippy::unnecessary_wraps, reason = "it is listed with columns that can fail")]
pub fn int32(values: Vec<i32>) -> Result<ArrayRef, ArrowError> {
    Ok(Arc::new(Int32Array::from(values)))
}

/// A table of named columns of equal length.
pub fn table(columns: Vec<(&str, Result<ArrayRef, ArrowError>)>) -> fault::Result<RecordBatch> {
    let made = || -> Result<RecordBatch, ArrowError> {
        let (mut fields, mut arrays) = (Vec::new(), Vec::new());
        for (name, array) in columns {
            let array = array?;
            fields.push(field(name, array.data_type()));
            arrays.push(array);
        }
        RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays)
    };
    // Cannot fail for any bundle: all columns have equal length, and keys are in their dictionaries.
    made().map_err(|error| fault::Error::new(error.to_string()))
}

fn field(name: &str, data_type: &DataType) -> Field {
    Field::new(name, data_type.clone(), false)
}
