//! Raw rows from a file: the values of each column, not yet checked.

use super::names::NameTable;

pub(super) struct Rows {
    columns: Vec<ReadColumn>,
}

pub(super) struct ReadColumn {
    pub(super) name: &'static str,
    pub(super) values: Values,
    /// Whether any row has no value; there are then fewer values than rows.
    pub(super) has_gaps: bool,
}

/// Values, one per row.
pub(super) enum Values {
    Int32(Vec<i32>),
    Int64(Vec<i64>),
    Flags(Vec<bool>),
    Names { keys: Vec<i32>, table: NameTable },
}

impl Rows {
    pub(super) const fn new(columns: Vec<ReadColumn>) -> Self {
        Self { columns }
    }

    /// Takes the CPUs or ranks of the rows.
    pub(super) fn int32(&mut self, name: &str) -> Result<Vec<i32>, String> {
        match self.values(name)? {
            Some(Values::Int32(values)) => Ok(values),
            _ => Err(missing(name)),
        }
    }

    /// Takes the times or amounts of the rows.
    pub(super) fn int64(&mut self, name: &str) -> Result<Vec<i64>, String> {
        match self.values(name)? {
            Some(Values::Int64(values)) => Ok(values),
            _ => Err(missing(name)),
        }
    }

    /// Takes the flags of the rows; `None` if the file has no such column.
    pub(super) fn flags(&mut self, name: &str) -> Result<Option<Vec<bool>>, String> {
        match self.values(name)? {
            Some(Values::Flags(values)) => Ok(Some(values)),
            _ => Ok(None),
        }
    }

    pub(super) fn names(&mut self, name: &str) -> Result<NameColumn, String> {
        match self.values(name)? {
            Some(Values::Names { keys, table }) => Ok(NameColumn { keys, table }),
            _ => Err(missing(name)),
        }
    }

    fn values(&mut self, name: &str) -> Result<Option<Values>, String> {
        let Some(at) = self.columns.iter().position(|column| column.name == name) else { return Ok(None) };
        let column = self.columns.swap_remove(at);
        if column.has_gaps {
            Err(format!("the column {name} has rows without a value"))
        } else {
            Ok(Some(column.values))
        }
    }
}

fn missing(name: &str) -> String {
    format!("it has no column {name}")
}

/// A column of names: one key per row, one name per key.
#[derive(Clone, Debug)]
pub(super) struct NameColumn {
    keys: Vec<i32>,
    table: NameTable,
}

impl NameColumn {
    /// The index of a row's name in [`Self::values`].
    pub(super) fn key(&self, row: usize) -> usize {
        self.keys[row] as usize
    }

    pub(super) fn name(&self, row: usize) -> &str {
        &self.table[self.key(row)]
    }

    /// The names by key. There may be duplicates and unused ones.
    pub(super) fn values(&self) -> Vec<&str> {
        self.table.iter().map(|name| &**name).collect()
    }
}
