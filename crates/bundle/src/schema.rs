//! The columns of the tables, their versions, and how they are packed.

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

/// The key under which Arrow's readers look for a schema.
const ARROW_KEY: &str = "ARROW:schema";

/// The key in a Parquet file's metadata under which its version stands. Files without it were made by others, and are
/// read if their columns fit.
pub(super) const SCHEMA_KEY: &str = "becalm.schema";

/// How many rows are read at a time.
pub(super) const BATCH_ROWS: usize = 1 << 16;

/// How many rows are encoded at a time: some tens of microseconds of work a column. A multiple of what the encoder looks at
/// before it ends a page.
pub(super) const SLICE_ROWS: usize = 1 << 11;

/// How many rows make a data page at most, since one is compressed in one go.
const PAGE_ROWS: usize = 1 << 12;

pub(super) const GROUP_ROWS: usize = 1 << 18;

/// A table of the bundle: its name, its version and its columns.
pub(super) struct Table {
    /// Its folder in the bundle, and its name in messages.
    pub(super) name: &'static str,
    /// The version that a file of the table names.
    pub(super) schema: &'static str,
    /// Its columns, in their order.
    pub(super) columns: &'static [Column],
    /// The same columns as an Arrow schema, packed as in Arrow's files and in base64. Readers that know it give the columns the
    /// types that the writer had: names as dictionaries (categories), not as texts.
    arrow: &'static str,
}

pub(super) struct Column {
    pub(super) name: &'static str,
    pub(super) content: Content,
    /// Whether a file without it can be read.
    pub(super) optional: bool,
}

/// What a column holds.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Content {
    /// A CPU's number: few different ones, in long runs.
    Cpu,
    /// A rank's number: the same for all of its rows.
    Rank,
    /// A number that rises along the rows of a CPU: a time, or the number of a detour.
    Rising,
    /// A length of time, in nanoseconds or, of costs, picoseconds.
    Length,
    /// A number of things, 0 or more.
    Amount,
    /// A truth value, one bit a row.
    Flag,
    Name,
}

const fn column(name: &'static str, content: Content) -> Column {
    Column { name, content, optional: false }
}

/// A row a detour, as [`becalm_model::Detour`] tells.
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

/// The column of [`ACTIVITIES`] whose names whoever adds up a run keeps.
pub(super) const SOURCE: &str = "source";

/// A row an activity, as [`becalm_model::Activity`] tells.
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

/// A row a sample of work, as [`becalm_model::Sample`] tells.
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

/// A row a sample of a probe, as [`super::series`] tells.
pub(super) const COSTS: Table = Table {
    name: "costs",
    schema: COSTS_SCHEMA,
    columns: &[column("probe", Content::Name), column("round", Content::Rising), column("time_ps", Content::Length)],
    arrow: include_str!("arrow/costs.base64"),
};

/// A row a phase of one rank, as [`super::PhaseRun`] tells.
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

    /// What the type is called in messages.
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
    /// The schema of the table's files. Its root has the name that Arrow's writers give.
    pub(super) fn parquet(&self) -> TypePtr {
        let columns = self.columns.iter().map(|column| Arc::new(column.parquet())).collect();
        let root = Type::group_type_builder("arrow_schema").with_fields(columns).build();
        Arc::new(root.expect("a group may hold any columns"))
    }

    /// How the table is packed.
    ///
    /// Integers as differences, which for times is a third of their plain size and also faster to read than a
    /// dictionary of nearly as many entries as rows; CPUs and names by dictionary and run lengths.
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
        for table in [&DETOURS, &ACTIVITIES, &SAMPLES, &COSTS, &PHASES] {
            let data_type = |content| match content {
                Content::Cpu | Content::Rank => DataType::Int32,
                Content::Rising | Content::Length | Content::Amount => DataType::Int64,
                Content::Flag => DataType::Boolean,
                Content::Name => DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8)),
            };
            let field = |column: &Column| Field::new(column.name, data_type(column.content), false);
            let schema = Schema::new(table.columns.iter().map(field).collect::<Vec<_>>());
            // What stands on the left is what belongs into the file beside this one.
            assert_eq!(encode_arrow_schema(&schema), table.arrow, "{}", table.name);
        }
    }
}
