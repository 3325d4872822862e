//! The columns of the tables, their versions, and how they are packed.

use std::sync::Arc;

use arrow_schema::{DataType, Field, Schema, SchemaRef};
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::schema::types::ColumnPath;

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

/// The key in a Parquet file's metadata under which its version stands. Files without it were made by others, and are
/// read if their columns fit.
pub(super) const SCHEMA_KEY: &str = "becalm.schema";

/// How many rows are written and read at a time.
pub(super) const BATCH_ROWS: usize = 1 << 16;

/// How many rows make a row group, which is what a writer must hold in memory, packed: below 10 MB.
const GROUP_ROWS: usize = 1 << 18;

/// One of the tables.
pub(super) struct Table {
    /// Its folder in the bundle, and its name in messages.
    pub(super) name: &'static str,
    /// The version that a file of the table names.
    pub(super) schema: &'static str,
    /// Its columns, in their order.
    pub(super) columns: &'static [Column],
}

/// One column of a table.
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
    /// A length of time.
    Length,
    /// A number of things, 0 or more.
    Amount,
    /// True or false.
    Flag,
    /// One of a few names.
    Name,
}

const fn column(name: &'static str, content: Content) -> Column {
    Column { name, content, optional: false }
}

/// See [`becalm_model::Detour`].
pub(super) const DETOURS: Table = Table {
    name: "detours",
    schema: DETOURS_SCHEMA,
    columns: &[
        column("cpu", Content::Cpu),
        column("start_ns", Content::Rising),
        column("duration_ns", Content::Length),
        Column { name: "incomplete", content: Content::Flag, optional: true },
    ],
};

/// See [`becalm_model::Activity`].
pub(super) const ACTIVITIES: Table = Table {
    name: "activities",
    schema: ACTIVITIES_SCHEMA,
    columns: &[
        column("cpu", Content::Cpu),
        column("detour", Content::Rising),
        column("start_ns", Content::Rising),
        column("self_ns", Content::Length),
        column("kind", Content::Name),
        column("source", Content::Name),
        column("detail", Content::Name),
    ],
};

/// See [`becalm_model::Sample`].
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
};

/// See [`super::cost`].
pub(super) const COSTS: Table = Table {
    name: "costs",
    schema: COSTS_SCHEMA,
    columns: &[column("probe", Content::Name), column("round", Content::Rising), column("time_ps", Content::Length)],
};

/// See [`super::PhaseRun`].
pub(super) const PHASES: Table = Table {
    name: "phases",
    schema: PHASES_SCHEMA,
    columns: &[
        column("rank", Content::Rank),
        column("start_ns", Content::Rising),
        column("compute_ns", Content::Length),
        column("collective_ns", Content::Length),
    ],
};

impl Content {
    /// The type in memory, and the one by which Arrow's readers know the column.
    pub(super) fn data_type(self) -> DataType {
        match self {
            Self::Cpu | Self::Rank => DataType::Int32,
            Self::Rising | Self::Length | Self::Amount => DataType::Int64,
            Self::Flag => DataType::Boolean,
            Self::Name => DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8)),
        }
    }

    /// The type that a Parquet file tells, which has no dictionaries: they are a way of packing.
    pub(super) fn stored_type(self) -> DataType {
        match self {
            Self::Name => DataType::Utf8,
            other => other.data_type(),
        }
    }
}

impl Table {
    /// The table's columns in memory.
    pub(super) fn arrow(&self) -> SchemaRef {
        let field = |column: &Column| Field::new(column.name, column.content.data_type(), false);
        Arc::new(Schema::new(self.columns.iter().map(field).collect::<Vec<_>>()))
    }

    /// How the table is packed.
    ///
    /// Integers as differences, which for times is a third of their plain size and also faster to read than a
    /// dictionary of nearly as many entries as rows; CPUs and names by dictionary and run lengths.
    pub(super) fn packing(&self) -> WriterProperties {
        let mut packing = WriterProperties::builder()
            .set_created_by(concat!("becalm ", env!("CARGO_PKG_VERSION")).to_owned())
            .set_key_value_metadata(Some(vec![KeyValue::new(SCHEMA_KEY.to_owned(), self.schema.to_owned())]))
            .set_compression(Compression::ZSTD(ZstdLevel::default()))
            .set_statistics_enabled(EnabledStatistics::Chunk)
            .set_offset_index_disabled(true)
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
