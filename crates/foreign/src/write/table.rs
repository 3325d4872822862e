//! Rows of a table, column by column.

/// The values of some rows in a column.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Column<'a> {
    /// Numbers of 32 bits.
    Int32(Vec<i32>),
    /// Numbers of 64 bits.
    Int64(Vec<i64>),
    /// Yes or no.
    Flag(Vec<bool>),
    /// Texts.
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
