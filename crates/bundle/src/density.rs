//! Limits how many rows a table may claim for its size on disk.
//!
//! A page of some twenty bytes can repeat a value two billion times, and its document can claim as many rows. Collecting such rows would exhaust
//! memory, and counting them would never end. Measured data needs at least a few bits per row, because no clock is regular enough for more
//! compression.

/// This many rows are always read, because a few rows may well be equal. Collected, they take about half a gigabyte.
const ALWAYS: u64 = 1 << 24;

/// The most rows per byte beyond that. The quietest machine with the coarsest clock has about ten.
const A_BYTE: u64 = 64;

/// The rows of a table, and the bytes that contain them.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Density {
    rows: u64,
    bytes: u64,
}

impl Density {
    /// Creates the density of one file. Fails if it claims more rows than its bytes can hold.
    pub(super) fn for_file(rows: u64, bytes: u64) -> Result<Self, String> {
        let mut density = Self::default();
        density.add(Self { rows, bytes })?;
        Ok(density)
    }

    /// The claimed number of rows.
    pub(super) const fn rows(self) -> u64 {
        self.rows
    }

    /// Adds a part of the table. Fails if the table then claims more rows than its bytes can hold.
    pub(super) fn add(&mut self, part: Self) -> Result<(), String> {
        self.rows = self.rows.saturating_add(part.rows);
        self.bytes = self.bytes.saturating_add(part.bytes);
        if self.rows <= ALWAYS || self.rows <= self.bytes.saturating_mul(A_BYTE) {
            return Ok(());
        }
        let Self { rows, bytes } = self;
        Err(format!("it claims {rows} rows in {bytes} bytes; no recording is so regular that {A_BYTE} rows fit a byte"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_bytes_hold_few_rows() {
        Density::for_file(1 << 24, 0).unwrap();
        assert!(Density::for_file((1 << 24) + 1, 600).unwrap_err().contains("16777217 rows in 600 bytes"));
        Density::for_file(64 << 20, 1 << 20).unwrap();
        Density::for_file((64 << 20) + 1, 1 << 20).unwrap_err();
        Density::for_file(u64::MAX, u64::MAX).unwrap();
    }

    #[test]
    fn the_files_of_a_table_are_added_up() {
        let part = Density::for_file(1 << 20, 100).unwrap();
        let mut table = Density::default();
        for _ in 0..16 {
            table.add(part).unwrap();
        }
        assert!(table.add(part).unwrap_err().contains("17825792 rows in 1700 bytes"));
    }
}
