//! A figure for the reader: in full for scripts, with three digits for people.

use becalm_units::{Nanos, printable};
use serde::{Serialize, Serializer};

use crate::form::figure::{Figure, Time};

/// A figure. [`Value::Missing`] is `null` in JSON and `-` in a table, never 0 and never NaN.
#[derive(Clone, PartialEq, Debug)]
pub enum Value {
    /// The figure does not exist.
    Missing,
    /// A name or a word.
    Text(String),
    /// A count of things.
    Count(u64),
    /// A number that identifies something, such as a CPU.
    Number(u64),
    /// A duration; in JSON, whole nanoseconds.
    Time(i64),
    /// A duration compared with others that are nearly equal, so with five digits; in JSON, whole nanoseconds.
    Fine(i64),
    /// A duration in picoseconds, possibly below a nanosecond; in JSON, whole picoseconds.
    Picos(i64),
    /// A frequency, in 1/s.
    Rate(f64),
    /// A share, with three digits because it may be tiny.
    Ratio(f64),
    /// A share, shown together with the others of the same whole, with one decimal.
    Share(f64),
    /// Percentage points of the quantity in the column's title, with three decimals.
    Points(f64),
    /// A multiple, 1 or more; the decimals matter.
    Factor(f64),
    /// A relative change: 0.1 is 10 % more.
    Change(f64),
    /// A plain number, with three digits.
    Real(f64),
    /// An average count, with three digits or, if that is more, in whole numbers.
    Often(f64),
    /// Yes or no; a table shows only the yes.
    Flag(bool),
}

impl Value {
    /// A duration in fractions of a nanosecond, rounded.
    pub fn time(ns: f64) -> Self {
        Time::rounded(ns).value()
    }

    /// The cell of a table. Texts lose everything that would control a terminal.
    pub fn cell(&self) -> String {
        match self {
            Self::Missing => "-".to_owned(),
            Self::Text(text) => printable(text).into_owned(),
            Self::Count(count) => grouped(*count),
            Self::Number(number) => number.to_string(),
            Self::Time(ns) => time(*ns),
            Self::Fine(ns) => fine(*ns),
            Self::Picos(ps) => picos(*ps),
            Self::Rate(hz) if *hz >= 999.5 && *hz < 1e18 => format!("{}/s", grouped(hz.round() as u64)),
            Self::Rate(hz) => format!("{}/s", three_digits(*hz)),
            Self::Ratio(ratio) => format!("{}%", three_digits(ratio * 100.0)),
            Self::Share(share) if *share > 0.0 && *share < 0.0005 => "<0.1%".to_owned(),
            Self::Share(share) => format!("{:.1}%", share * 100.0),
            Self::Points(points) if points.is_finite() => format!("{points:.3}"),
            Self::Points(_) => "-".to_owned(),
            Self::Factor(ratio) => factor(*ratio),
            Self::Change(change) => match change {
                change if !change.is_finite() => "-".to_owned(),
                change if *change >= 9.0 => format!("x{}", three_digits(change + 1.0)),
                0.0 => "0.0%".to_owned(),
                // Whole percents if a tenth of one is below a thousandth of the figure.
                change if change.abs() >= 0.9995 => format!("{:+.0}%", change * 100.0),
                change => format!("{:+.1}%", change * 100.0),
            },
            Self::Real(number) => three_digits(*number),
            Self::Often(count) if *count >= 999.5 && *count < 1e18 => grouped(count.round() as u64),
            Self::Often(count) => three_digits(*count),
            Self::Flag(flag) => if *flag { "yes" } else { "" }.to_owned(),
        }
    }

    /// The sort key of a figure; `None` for texts, which sort by themselves.
    pub fn key(&self) -> Option<f64> {
        match self {
            Self::Missing | Self::Text(_) => None,
            Self::Count(number) | Self::Number(number) => Some(*number as f64),
            Self::Time(number) | Self::Fine(number) | Self::Picos(number) => Some(*number as f64),
            Self::Rate(number)
            | Self::Ratio(number)
            | Self::Share(number)
            | Self::Points(number)
            | Self::Factor(number)
            | Self::Change(number)
            | Self::Real(number)
            | Self::Often(number) => Some(*number).filter(|number| number.is_finite()),
            Self::Flag(flag) => Some(f64::from(u8::from(*flag))),
        }
    }

    /// Whether a table aligns it to the left.
    pub const fn is_text(&self) -> bool {
        matches!(self, Self::Text(_))
    }
}

impl Serialize for Value {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Text(text) => serializer.serialize_str(text),
            Self::Count(number) | Self::Number(number) => serializer.serialize_u64(*number),
            Self::Time(number) | Self::Fine(number) | Self::Picos(number) => serializer.serialize_i64(*number),
            Self::Rate(number)
            | Self::Ratio(number)
            | Self::Share(number)
            | Self::Points(number)
            | Self::Factor(number)
            | Self::Change(number)
            | Self::Real(number)
            | Self::Often(number)
                if number.is_finite() =>
            {
                serializer.serialize_f64(*number)
            }
            Self::Flag(flag) => serializer.serialize_bool(*flag),
            Self::Missing
            | Self::Rate(_)
            | Self::Ratio(_)
            | Self::Share(_)
            | Self::Points(_)
            | Self::Factor(_)
            | Self::Change(_)
            | Self::Real(_)
            | Self::Often(_) => serializer.serialize_none(),
        }
    }
}

/// A duration in three digits: `850ns`, `15.2us`, `1.00ms`, `123s`.
pub fn time(ns: i64) -> String {
    digits(ns, 3)
}

/// A duration in five digits: `850ns`, `15.249us`, `1.0048ms`.
pub fn fine(ns: i64) -> String {
    digits(ns, 5)
}

/// A duration with `count` digits, but at most whole nanoseconds.
fn digits(ns: i64, count: u32) -> String {
    // Rounded before the unit is chosen: 999.7us becomes 1.00ms, not 1000us.
    let magnitude = ns.unsigned_abs();
    let step = 10_u64.pow(magnitude.checked_ilog10().unwrap_or(0).saturating_sub(count - 1));
    let rounded = (magnitude / step + u64::from(magnitude % step * 2 >= step)).saturating_mul(step);
    let rounded = Nanos::new(i64::try_from(rounded).unwrap_or(i64::MAX) * ns.signum());
    let place = rounded.get().unsigned_abs().checked_ilog10().unwrap_or(0);
    // Seconds are the largest unit and may have more digits before the decimal point.
    let unit = (place / 3).min(3) * 3;
    // Nanoseconds have no decimals.
    let decimals = (count + unit).saturating_sub(place + 1).min(unit) as usize;
    format!("{rounded:.decimals$}")
}

/// A duration given in picoseconds, in three digits: `0.385ns`, `23.4ns`, `1.20us`.
pub fn picos(ps: i64) -> String {
    // From a microsecond on, like every other duration.
    if ps.unsigned_abs() >= 999_500 {
        time((ps / 500 + ps.signum()) / 2)
    } else {
        format!("{}ns", three_digits(ps as f64 / 1e3))
    }
}

/// A number in three digits, without an exponent down to 1e-7: `12.3`, `0.000123`.
pub fn three_digits(number: f64) -> String {
    if !number.is_finite() {
        return "-".to_owned();
    }
    if number == 0.0 {
        return "0".to_owned();
    }
    let decimals_of = |number: f64| (2 - number.abs().log10().floor() as i32).clamp(0, 9) as usize;
    // Rounding may add a digit: 9.996 is 10.0.
    let decimals = decimals_of(number);
    let rounded: f64 = format!("{number:.decimals$}").parse().unwrap_or(number);
    let decimals = decimals_of(if rounded == 0.0 { number } else { rounded });
    format!("{number:.decimals$}")
}

/// A number in three digits with its sign: `+12.3`, `-0.850`, `0`.
pub fn signed(number: f64) -> String {
    let text = three_digits(number);
    if number > 0.0 { format!("+{text}") } else { text }
}

/// A multiple: four decimals near 1, fewer for larger ones.
pub fn factor(ratio: f64) -> String {
    match ratio {
        ratio if !ratio.is_finite() => "-".to_owned(),
        ratio if ratio < 9.999_95 => format!("{ratio:.4}"),
        ratio if ratio < 99.995 => format!("{ratio:.2}"),
        ratio => format!("{ratio:.1}"),
    }
}

/// A count with thousands separators: `1,234,567`.
pub fn grouped(count: u64) -> String {
    let digits = count.to_string();
    let mut text = String::with_capacity(digits.len() * 4 / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn frequent_things_are_counted_in_whole_ones() {
        for (count, text) in [(0.0, "0"), (6.833, "6.83"), (999.4, "999"), (999.6, "1,000"), (1_845_000.2, "1,845,000")]
        {
            assert_eq!(Value::Often(count).cell(), text);
        }
        assert_eq!(Value::Often(f64::NAN).cell(), "-");
    }

    #[test]
    fn what_is_nearly_the_same_has_five_digits() {
        for (ns, text) in [
            (0, "0ns"),
            (850, "850ns"),
            (1_000, "1.000us"),
            (15_249, "15.249us"),
            (999_994, "999.99us"),
            (999_996, "1.0000ms"),
            (1_004_849, "1.0048ms"),
            (-1_004_849, "-1.0048ms"),
            (50_012_345, "50.012ms"),
            (1_012_345_678, "1.0123s"),
            (123_456_000_000, "123.46s"),
            (86_400_000_000_000, "86400s"),
        ] {
            assert_eq!(Value::Fine(ns).cell(), text);
        }
    }

    #[test]
    fn durations_have_three_digits() {
        for (ns, text) in [
            (0, "0ns"),
            (7, "7ns"),
            (850, "850ns"),
            (999, "999ns"),
            (1_000, "1.00us"),
            (15_249, "15.2us"),
            (999_499, "999us"),
            (999_500, "1.00ms"),
            (50_012_345, "50.0ms"),
            (9_999_999_999, "10.0s"),
            (123_456_000_000, "123s"),
            (86_400_000_000_000, "86400s"),
            (-15_249, "-15.2us"),
        ] {
            assert_eq!(time(ns), text);
        }
    }

    #[test]
    fn picoseconds_join_the_other_durations() {
        for (ps, text) in [
            (0, "0ns"),
            (385, "0.385ns"),
            (1_130, "1.13ns"),
            (23_449, "23.4ns"),
            (999_499, "999ns"),
            (999_500, "1.00us"),
            (15_249_400, "15.2us"),
            (-2_500, "-2.50ns"),
            (4_000_000_000, "4.00ms"),
        ] {
            assert_eq!(Value::Picos(ps).cell(), text);
        }
        assert_eq!(serde_json::to_string(&Value::Picos(385)).unwrap(), "385");
    }

    #[test]
    fn ratios_have_three_digits_however_small() {
        for (ratio, text) in [
            (0.0, "0%"),
            (0.000_000_29, "0.0000290%"),
            (0.000_123_4, "0.0123%"),
            (0.099_96, "10.0%"),
            (0.5, "50.0%"),
            (1.0, "100%"),
        ] {
            assert_eq!(Value::Ratio(ratio).cell(), text);
        }
        assert_eq!(Value::Share(0.0001).cell(), "<0.1%");
        assert_eq!(Value::Share(0.0).cell(), "0.0%");
    }

    #[test]
    fn factors_keep_what_matters() {
        for (ratio, text) in
            [(1.0, "1.0000"), (1.000_06, "1.0001"), (9.999_96, "10.00"), (99.996, "100.0"), (268.04, "268.0")]
        {
            assert_eq!(Value::Factor(ratio).cell(), text);
        }
    }

    #[test]
    fn changes_have_a_sign() {
        for (change, text) in [
            (0.0, "0.0%"),
            (0.000_2, "+0.0%"),
            (0.123, "+12.3%"),
            (-0.5, "-50.0%"),
            (-1.0, "-100%"),
            (1.5, "+150%"),
            (9.0, "x10.0"),
            (f64::NAN, "-"),
        ] {
            assert_eq!(Value::Change(change).cell(), text);
        }
    }

    #[test]
    fn picoseconds_are_rounded_to_nanoseconds_however_many_there_are() {
        for (ps, text) in [
            (385, "0.385ns"),
            (999_499, "999ns"),
            (1_234_499, "1.23us"),
            (-1_235_500, "-1.24us"),
            (i64::MAX, "9220000s"),
            (i64::MIN, "-9220000s"),
        ] {
            assert_eq!(picos(ps), text);
        }
    }

    #[test]
    fn what_does_not_exist_is_null() {
        for value in [Value::Missing, Value::Ratio(f64::NAN), Value::Rate(f64::INFINITY), Value::time(f64::NAN)] {
            assert_eq!(serde_json::to_string(&value).unwrap(), "null");
        }
    }

    proptest! {
        #[test]
        fn a_printed_duration_is_right_to_half_a_percent(ns in 0_i64..1 << 45) {
            let printed: Nanos = time(ns).parse().unwrap();
            prop_assert!((printed.get() - ns).abs() as f64 <= 0.005_000_1 * ns as f64, "{} for {}", printed, ns);
        }

        #[test]
        fn grouping_only_adds_commas(count: u64) {
            prop_assert_eq!(grouped(count).replace(',', "").parse::<u64>().unwrap(), count);
        }
    }
}
