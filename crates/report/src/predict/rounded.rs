//! Slowdowns for readers: three digits, and more only near 1.

use crate::form::figure;
use crate::form::table::Table;
use crate::form::value::three_digits;

/// A closer slowdown is shown as 1.
const NEAR: f64 = 1e-6;

/// A slowdown in three digits; near 1, with two digits of the excess but at most four decimals, and always with one: `4.20`, `1.017`, `1.0004`.
pub fn digits(ratio: f64) -> String {
    let excess = (ratio - 1.0).abs();
    if !(NEAR..0.1).contains(&excess) {
        return three_digits(ratio);
    }
    let first = -excess.log10().floor() as usize;
    let decimals = first.max(4).min(first + 1);
    format!("{ratio:.decimals$}")
}

/// The same in a sentence, without zeros at the end: `4.2`.
pub fn times(ratio: f64) -> String {
    let text = digits(ratio);
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

/// The interval of a slowdown by its ends: `3.40 to 22.0`.
pub fn interval(low: Option<f64>, high: Option<f64>) -> Option<String> {
    figure::interval(low.map(digits), high.map(digits))
}

/// Rounds the slowdowns in a column of a table. They still sort by all digits.
pub fn round(table: &mut Table, column: usize) {
    let cells = table.rows.iter_mut().filter_map(|row| row.cells.get_mut(column));
    for cell in cells {
        if let Some(ratio) = cell.key {
            cell.text = digits(ratio);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_have_the_ends_that_are_known() {
        for (low, high, text) in [
            (Some(3.4), Some(22.0), Some("3.40 to 22.0")),
            (Some(1.000_4), None, Some("from 1.0004")),
            (None, Some(300.0), Some("up to 300")),
            (None, None, None),
        ] {
            assert_eq!(interval(low, high).as_deref(), text);
        }
    }

    #[test]
    fn slowdowns_have_three_digits_and_more_near_1() {
        for (ratio, column, sentence) in [
            (1.0, "1.00", "1"),
            (1.000_000_2, "1.00", "1"),
            (1.000_41, "1.0004", "1.0004"),
            (1.003_4, "1.0034", "1.0034"),
            (1.05, "1.050", "1.05"),
            (1.034, "1.034", "1.034"),
            (4.195_6, "4.20", "4.2"),
            (10.59, "10.6", "10.6"),
            (268.04, "268", "268"),
            (300.0, "300", "300"),
            (f64::INFINITY, "-", "-"),
        ] {
            assert_eq!((digits(ratio), times(ratio)), (column.to_owned(), sentence.to_owned()));
        }
    }
}
