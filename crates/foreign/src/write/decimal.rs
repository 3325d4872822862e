//! Decimal numbers with all of their digits.

use std::fmt;

/// A whole number of the unit of the last of these decimals, printed as a number of the unit in front of the point.
#[derive(Clone, Copy)]
pub(super) struct Decimal<const DIGITS: usize>(pub i128);

impl<const DIGITS: usize> fmt::Display for Decimal<DIGITS> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.0 < 0 { "-" } else { "" };
        let (number, unit) = (self.0.unsigned_abs(), 10_u128.pow(DIGITS as u32));
        write!(f, "{sign}{}.{:0DIGITS$}", number / unit, number % unit)
    }
}
