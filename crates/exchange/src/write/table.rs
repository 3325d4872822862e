//! Tables, column by column, as the writers of tables take them.

/// What a column holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ColumnType {
    /// Numbers of 32 bits.
    Int32,
    /// Numbers of 64 bits.
    Int64,
    /// Yes or no.
    Flag,
    /// Texts.
    Text,
}

/// The values of some rows in a column.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Column<'a> {
    /// Of [`ColumnType::Int32`].
    Int32(Vec<i32>),
    /// Of [`ColumnType::Int64`].
    Int64(Vec<i64>),
    /// Of [`ColumnType::Flag`].
    Flag(Vec<bool>),
    /// Of [`ColumnType::Text`].
    Text(Vec<&'a str>),
}

impl Column<'_> {
    /// How many rows.
    #[must_use]
    pub const fn len(&self) -> usize {
        match self {
            Self::Int32(values) => values.len(),
            Self::Int64(values) => values.len(),
            Self::Flag(values) => values.len(),
            Self::Text(values) => values.len(),
        }
    }

    /// Whether there is no row.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// The columns of a table, by name.
pub type Schema = [(&'static str, ColumnType)];
