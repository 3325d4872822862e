//! The columns of the tables, their versions and their encoding.

use std::sync::Arc;

use parquet::basic::{Compression, Encoding, LogicalType, Repetition, Type as Physical, ZstdLevel};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::schema::types::{ColumnPath, Type, TypePtr};

/// The version of the detours' table that this program writes and reads.
pub const DETOURS_SCHEMA: &str = "becalm.detours/1";

/// The version of the activities' table that this program writes and reads.
pub const ACTIVITIES_SCHEMA: &str = "becalm.activities/1";

/// The version of the samples' table that this program writes and reads.
pub const SAMPLES_SCHEMA: &str = "becalm.samples/1";

/// The version of the table of costs' samples that this program writes and reads.
pub const COSTS_SCHEMA: &str = "becalm.costs/1";

/// The version of the table of a parallel benchmark's phases that this program writes and reads.
pub const PHASES_SCHEMA: &str = "becalm.phases/1";

/// The version of the table of observed threads that this program writes.
pub const THREADS_SCHEMA: &str = "becalm.threads/1";

/// The version of the table of the parts of their lives that this program writes.
pub const STAYS_SCHEMA: &str = "becalm.stays/1";

/// The version of the table of their interruptions that this program writes.
pub const THREAD_DETOURS_SCHEMA: &str = "becalm.thread-detours/1";

/// The version of the table of the activities in these that this program writes.
pub const OWNED_ACTIVITIES_SCHEMA: &str = "becalm.owned-activities/1";

/// The version of the table of causes that this program writes and reads.
pub const CAUSES_SCHEMA: &str = "becalm.causes/1";

/// The key under which Arrow's readers look for a schema.
const ARROW_KEY: &str = "ARROW:schema";

/// The key of a Parquet file's metadata that contains its version. Files without it are from other programs, and are read if their columns fit.
pub(super) const SCHEMA_KEY: &str = "becalm.schema";

/// The number of rows read at a time.
pub(super) const BATCH_ROWS: usize = 1 << 16;

/// The number of rows encoded at a time: some tens of microseconds of work per column. A multiple of the number of values that the encoder checks
/// before it ends a page.
pub(super) const SLICE_ROWS: usize = 1 << 11;

/// The maximum number of rows per data page, because a page is compressed in one go.
const PAGE_ROWS: usize = 1 << 12;

pub(super) const GROUP_ROWS: usize = 1 << 18;

/// A table of the bundle: its name, its version and its columns.
pub(super) struct Table {
    /// Its directory in the bundle, and its name in messages.
    pub(super) name: &'static str,
    /// The version named in the table's files.
    pub(super) schema: &'static str,
    /// Its columns, in order.
    pub(super) columns: &'static [Column],
    /// The same columns as an Arrow schema, encoded as in Arrow's files and in base64. Readers that know it use the writer's types: names as
    /// dictionaries (categories), not as texts.
    arrow: &'static str,
}

pub(super) struct Column {
    pub(super) name: &'static str,
    pub(super) content: Content,
    /// Whether files without it can be read.
    pub(super) optional: bool,
}

/// The contents of a column.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Content {
    /// A CPU's number: few distinct values, in long runs.
    Cpu,
    /// The number of a rank or of a thread: few distinct values.
    Rank,
    /// A number that increases along the rows of a CPU: a time, or the number of a detour.
    Rising,
    /// A duration, in nanoseconds or, for costs, in picoseconds.
    Length,
    /// A count, at least 0.
    Amount,
    /// A truth value, one bit per row.
    Flag,
    Name,
}

const fn column(name: &'static str, content: Content) -> Column {
    Column { name, content, optional: false }
}

/// One row per detour, see [`becalm_model::Detour`].
pub(super) const DETOURS: Table = Table {
    name: "detours",
    schema: DETOURS_SCHEMA,
    columns: &[
        column("cpu", Content::Cpu),
        column("start_ns", Content::Rising),
        column("duration_ns", Content::Length),
        Column { name: "incomplete", content: Content::Flag, optional: true },
    ],
    arrow: include_str!("arrow/detours.base64"),
};

/// The column of [`ACTIVITIES`] whose names stay in memory when a run is added up.
pub(super) const SOURCE: &str = "source";

/// One row per activity, see [`becalm_model::Activity`].
pub(super) const ACTIVITIES: Table = Table {
    name: "activities",
    schema: ACTIVITIES_SCHEMA,
    columns: &[
        column("cpu", Content::Cpu),
        column("detour", Content::Rising),
        column("start_ns", Content::Rising),
        column("self_ns", Content::Length),
        column("kind", Content::Name),
        column(SOURCE, Content::Name),
        column("detail", Content::Name),
    ],
    arrow: include_str!("arrow/activities.base64"),
};

/// One row per sample of work, see [`becalm_model::Sample`].
pub(super) const SAMPLES: Table = Table {
    name: "samples",
    schema: SAMPLES_SCHEMA,
    columns: &[
        column("cpu", Content::Cpu),
        column("start_ns", Content::Rising),
        column("duration_ns", Content::Length),
        column("work", Content::Amount),
        Column { name: "incomplete", content: Content::Flag, optional: true },
    ],
    arrow: include_str!("arrow/samples.base64"),
};

/// One row per sample of a probe, see [`super::series`].
pub(super) const COSTS: Table = Table {
    name: "costs",
    schema: COSTS_SCHEMA,
    columns: &[column("probe", Content::Name), column("round", Content::Rising), column("time_ps", Content::Length)],
    arrow: include_str!("arrow/costs.base64"),
};

/// One row per phase of a rank, see [`super::PhaseRun`].
pub(super) const PHASES: Table = Table {
    name: "phases",
    schema: PHASES_SCHEMA,
    columns: &[
        column("rank", Content::Rank),
        column("start_ns", Content::Rising),
        column("compute_ns", Content::Length),
        column("collective_ns", Content::Length),
    ],
    arrow: include_str!("arrow/phases.base64"),
};

/// One row per observed thread.
pub(super) const THREADS: Table = Table {
    name: "threads",
    schema: THREADS_SCHEMA,
    columns: &[
        column("thread", Content::Rank),
        column("tid", Content::Rank),
        column("process", Content::Rank),
        column("parent", Content::Rank),
        column("name", Content::Name),
        column("command", Content::Name),
        column("cgroup", Content::Name),
        column("start_ns", Content::Rising),
        column("end_ns", Content::Rising),
        column("chosen", Content::Flag),
        column("kernel", Content::Flag),
    ],
    arrow: include_str!("arrow/threads.base64"),
};

/// One row per part of the life of an observed thread, see [`becalm_model::observed::Stay`].
pub(super) const STAYS: Table = Table {
    name: "stays",
    schema: STAYS_SCHEMA,
    columns: &[
        column("thread", Content::Rank),
        column("cpu", Content::Cpu),
        column("start_ns", Content::Rising),
        column("duration_ns", Content::Length),
        column("state", Content::Name),
        column("why", Content::Name),
        column("context", Content::Name),
        column("waker", Content::Rank),
    ],
    arrow: include_str!("arrow/stays.base64"),
};

/// One row per interruption of an observed thread, see [`becalm_model::observed::ThreadDetour`].
pub(super) const THREAD_DETOURS: Table = Table {
    name: "detours",
    schema: THREAD_DETOURS_SCHEMA,
    columns: &[
        column("thread", Content::Rank),
        column("cpu", Content::Cpu),
        column("start_ns", Content::Rising),
        column("duration_ns", Content::Length),
    ],
    arrow: include_str!("arrow/thread_detours.base64"),
};

/// One row per activity in such an interruption, see [`becalm_model::observed::OwnedActivity`]. `detour` counts the rows of that table from 0.
pub(super) const OWNED_ACTIVITIES: Table = Table {
    name: "activities",
    schema: OWNED_ACTIVITIES_SCHEMA,
    columns: &[
        column("detour", Content::Rising),
        column("self_ns", Content::Length),
        column("visits", Content::Amount),
        column("owner", Content::Name),
        column("kind", Content::Name),
        column("source", Content::Name),
        column("taker", Content::Rank),
    ],
    arrow: include_str!("arrow/owned_activities.base64"),
};

/// One row per activity whose cause was recorded, see [`becalm_model::cause::Cause`]. `tid`, `by_tid` and `delay_ns` are -1 if there is none.
pub(super) const CAUSES: Table = Table {
    name: "causes",
    schema: CAUSES_SCHEMA,
    columns: &[
        column("cpu", Content::Cpu),
        column("start_ns", Content::Rising),
        column("duration_ns", Content::Length),
        column("kind", Content::Name),
        column(SOURCE, Content::Name),
        column("tid", Content::Rank),
        column("owner", Content::Name),
        column("by", Content::Name),
        column("by_tid", Content::Rank),
        column("context", Content::Name),
        column("site", Content::Name),
        column("delay_ns", Content::Length),
    ],
    arrow: include_str!("arrow/causes.base64"),
};

impl Content {
    /// The type of the column's values in a Parquet file.
    pub(super) const fn physical(self) -> Physical {
        match self {
            Self::Cpu | Self::Rank => Physical::INT32,
            Self::Rising | Self::Length | Self::Amount => Physical::INT64,
            Self::Flag => Physical::BOOLEAN,
            Self::Name => Physical::BYTE_ARRAY,
        }
    }

    /// The name of the type in messages.
    pub(super) const fn type_name(self) -> &'static str {
        match self {
            Self::Cpu | Self::Rank => "Int32",
            Self::Rising | Self::Length | Self::Amount => "Int64",
            Self::Flag => "Boolean",
            Self::Name => "Utf8",
        }
    }
}

impl Column {
    fn parquet(&self) -> Type {
        let logical = matches!(self.content, Content::Name).then_some(LogicalType::String);
        Type::primitive_type_builder(self.name, self.content.physical())
            .with_repetition(Repetition::REQUIRED)
            .with_logical_type(logical)
            .build()
            .expect("texts are byte arrays, and nothing else has a logical type")
    }
}

impl Table {
    /// The schema of the table's files. Its root is named like that of Arrow's writers.
    pub(super) fn parquet(&self) -> TypePtr {
        let columns = self.columns.iter().map(|column| Arc::new(column.parquet())).collect();
        let root = Type::group_type_builder("arrow_schema").with_fields(columns).build();
        Arc::new(root.expect("a group may hold any columns"))
    }

    /// The encoding of the table.
    ///
    /// Integers are stored as deltas, which for times takes a third of their plain size and is faster to read than a dictionary with nearly as many
    /// entries as rows. CPUs and names use dictionaries and run lengths.
    pub(super) fn packing(&self) -> WriterProperties {
        let mut packing = WriterProperties::builder()
            .set_created_by(concat!("becalm ", env!("CARGO_PKG_VERSION")).to_owned())
            .set_key_value_metadata(Some(vec![
                KeyValue::new(SCHEMA_KEY.to_owned(), self.schema.to_owned()),
                KeyValue::new(ARROW_KEY.to_owned(), self.arrow.to_owned()),
            ]))
            .set_compression(Compression::ZSTD(ZstdLevel::default()))
            .set_statistics_enabled(EnabledStatistics::Chunk)
            .set_offset_index_disabled(true)
            .set_data_page_row_count_limit(PAGE_ROWS)
            .set_max_row_group_row_count(Some(GROUP_ROWS));
        for column in self.columns {
            if matches!(column.content, Content::Rising | Content::Length | Content::Amount) {
                let path = ColumnPath::from(column.name);
                packing = packing
                    .set_column_dictionary_enabled(path.clone(), false)
                    .set_column_encoding(path, Encoding::DELTA_BINARY_PACKED);
            }
        }
        packing.build()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_schema::{DataType, Field, Schema};
    use parquet::arrow::encode_arrow_schema;

    #[test]
    fn arrow_would_describe_the_columns_alike() {
        let tables = [
            &DETOURS,
            &ACTIVITIES,
            &SAMPLES,
            &COSTS,
            &PHASES,
            &THREADS,
            &STAYS,
            &THREAD_DETOURS,
            &OWNED_ACTIVITIES,
            &CAUSES,
        ];
        for table in tables {
            let data_type = |content| match content {
                Content::Cpu | Content::Rank => DataType::Int32,
                Content::Rising | Content::Length | Content::Amount => DataType::Int64,
                Content::Flag => DataType::Boolean,
                Content::Name => DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8)),
            };
            let field = |column: &Column| Field::new(column.name, data_type(column.content), false);
            let schema = Schema::new(table.columns.iter().map(field).collect::<Vec<_>>());
            // The left side is the value for the file next to this one.
            assert_eq!(encode_arrow_schema(&schema), table.arrow, "{}", table.name);
        }
    }
}
