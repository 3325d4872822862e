//! Compares a published number with one of this machine.

use becalm_report::form::value::grouped;
use serde::Deserialize;

use super::catalogue::Unit;

/// The relative tolerance for a published number: what seeds and the digits of a printed figure leave open.
const NUMBER: f64 = 0.10;

/// The relative tolerance for a number that the paper gives with an "about".
const ABOUT: f64 = 0.25;

/// A published value, in the figure's unit.
#[derive(Clone, Copy, PartialEq, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Published {
    /// A number, reproduced within 10 %.
    Is(f64),
    /// A number that the paper gives with an "about", reproduced within 25 %.
    About(f64),
    /// An upper bound.
    AtMost(f64),
    /// A lower bound.
    AtLeast(f64),
    /// Two bounds.
    Between(f64, f64),
    /// A number that becalm's model was made from. Reproducing it shows nothing.
    ByConstruction(f64),
    /// The paper did it, but prints no number.
    Unknown,
}

/// The verdict on a number of this machine.
#[derive(Clone, PartialEq, Debug)]
pub enum Verdict {
    /// It equals the published one within the tolerance, or is within the published bounds.
    Holds,
    /// It does not, by this share of the published value.
    Not(f64),
    /// There is no published number, or none that it could miss.
    Stated,
    /// It is a time of another machine: shown, but no reproduction.
    OtherMachine,
    /// It is missing here, for this reason.
    Lacking(String),
    /// The document of its step should have it and does not: becalm and its catalogue of papers do not match. In words, where.
    Broken(String),
}

impl Published {
    /// The published number nearest to ours, and the relative tolerance.
    fn nearest(self, ours: f64) -> Option<(f64, f64)> {
        match self {
            Self::Is(value) => Some((value, NUMBER)),
            Self::About(value) => Some((value, ABOUT)),
            Self::AtMost(value) => Some((ours.min(value), 0.0)),
            Self::AtLeast(value) => Some((ours.max(value), 0.0)),
            Self::Between(low, high) => Some((ours.clamp(low, high), 0.0)),
            Self::ByConstruction(_) | Self::Unknown => None,
        }
    }

    /// The verdict on a number of this machine; `of_machine` if it is a time of the paper's machine.
    #[must_use]
    pub fn verdict(self, ours: f64, of_machine: bool) -> Verdict {
        if of_machine {
            return Verdict::OtherMachine;
        }
        let Some((published, tolerance)) = self.nearest(ours) else { return Verdict::Stated };
        let miss = ours / published - 1.0;
        if (ours - published).abs() <= tolerance * published.abs() { Verdict::Holds } else { Verdict::Not(miss) }
    }

    /// The relative difference from the published number; `None` if that is a bound, or unknown.
    #[must_use]
    pub fn difference(self, ours: f64) -> Option<f64> {
        match self {
            Self::Is(value) | Self::About(value) | Self::ByConstruction(value) => Some(ours / value - 1.0),
            _ => None,
        }
    }

    /// The value in the paper's notation.
    #[must_use]
    pub fn text(self, unit: Unit) -> String {
        let given = |value: f64| {
            let number = if value.abs() >= 999.5 { digits(value) } else { value.to_string() };
            unit.text(&number)
        };
        match self {
            Self::Is(value) | Self::ByConstruction(value) => given(value),
            Self::About(value) => format!("about {}", given(value)),
            Self::AtMost(value) => format!("at most {}", given(value)),
            Self::AtLeast(value) => format!("at least {}", given(value)),
            Self::Between(low, high) => format!("{} to {}", given(low), given(high)),
            Self::Unknown => "no number".to_owned(),
        }
    }
}

impl Unit {
    /// A number as it is written, with this unit.
    #[must_use]
    pub fn text(self, number: &str) -> String {
        match self {
            Self::Times => format!("{number} x"),
            Self::Percent => format!("{number} %"),
            Self::Nanos => format!("{number} ns"),
            Self::Micros => format!("{number} us"),
            Self::Millis => format!("{number} ms"),
            Self::Detours if number == "1" => "1 detour".to_owned(),
            Self::Detours => format!("{number} detours"),
            Self::Number => number.to_owned(),
        }
    }
}

/// Four significant digits, all of the integer part, and no more than three decimals.
pub fn digits(value: f64) -> String {
    let size = value.abs();
    if size >= 999.5 {
        let sign = if value < 0.0 { "-" } else { "" };
        return format!("{sign}{}", grouped(size.round_ties_even() as u64));
    }
    let behind = if size >= 99.995 {
        1
    } else if size >= 9.9995 {
        2
    } else {
        3
    };
    if value == 0.0 { "0".to_owned() } else { format!("{value:.behind$}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verdicts() {
        assert_eq!(Published::Is(100.0).verdict(109.0, false), Verdict::Holds);
        assert!(matches!(Published::Is(100.0).verdict(111.0, false), Verdict::Not(by) if (by - 0.11).abs() < 1e-9));
        assert_eq!(Published::About(100.0).verdict(80.0, false), Verdict::Holds);
        assert_eq!(Published::AtMost(26.0).verdict(25.0, false), Verdict::Holds);
        assert!(matches!(Published::AtMost(26.0).verdict(52.0, false), Verdict::Not(_)));
        assert!(matches!(Published::AtLeast(26.0).verdict(13.0, false), Verdict::Not(by) if by == -0.5));
        assert_eq!(Published::Between(1.0, 2.0).verdict(1.5, false), Verdict::Holds);
        assert_eq!(Published::Unknown.verdict(1.5, false), Verdict::Stated);
        assert_eq!(Published::ByConstruction(268.0).verdict(1.5, false), Verdict::Stated);
        assert_eq!(Published::Is(1.0).verdict(1.0, true), Verdict::OtherMachine);
    }

    #[test]
    fn numbers_are_written_with_four_digits() {
        let written = [0.0, 1.0, 39.456, 261.54, 1_078.4, -1_234_567.0].map(digits);
        assert_eq!(written, ["0", "1.000", "39.46", "261.5", "1,078", "-1,234,567"]);
        assert_eq!(Published::AtLeast(1_000.0).text(Unit::Micros), "at least 1,000 us");
        assert_eq!(Published::Is(1.0).text(Unit::Detours), "1 detour");
    }
}
