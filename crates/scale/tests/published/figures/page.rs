//! The list as a page of the book has it: between two marks, the tables are written from here.

use super::{Figure, Published, Unit};

pub const BEGIN: &str = "<!-- What follows is written by a test; see the end of the page. -->";
pub const END: &str = "<!-- End of what is written by a test. -->";

/// A line of the table, with its number and ours.
#[derive(Clone, Debug)]
pub struct Row {
    pub figure: Figure,
    /// The paper and its line.
    pub number: String,
    /// Ours, with the digits that are printed.
    pub ours: f64,
}

/// What our number is worth.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Verdict {
    Holds,
    Not,
    /// There is no published number, or none that it could miss.
    Stated,
}

/// Four digits that count, all before the point, and no more than three behind it.
fn digits(value: f64) -> String {
    match value.abs() {
        0.0 => "0".to_owned(),
        v if v >= 999.5 => {
            let whole = format!("{v:.0}");
            let mut text = String::new();
            for (at, digit) in whole.chars().enumerate() {
                if at > 0 && (whole.len() - at).is_multiple_of(3) {
                    text.push(',');
                }
                text.push(digit);
            }
            if value < 0.0 { format!("-{text}") } else { text }
        }
        v if v >= 99.995 => format!("{value:.1}"),
        v if v >= 9.9995 => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    }
}

/// A number as a paper gives it.
fn as_given(value: f64) -> String {
    if value.abs() >= 999.5 { digits(value) } else { value.to_string() }
}

/// A number with its unit.
fn text(unit: Unit, number: String) -> String {
    match unit {
        Unit::Times => format!("{number} x"),
        Unit::Percent => format!("{number} %"),
        Unit::Micros => format!("{number} us"),
        Unit::Millis => format!("{number} ms"),
        Unit::Detours if number == "1" => "1 detour".to_owned(),
        Unit::Detours => format!("{number} detours"),
        Unit::Number => number,
    }
}

/// The number of a cell that [`text`] wrote.
fn number_of(cell: &str) -> Option<f64> {
    cell.split_whitespace().next()?.replace(',', "").parse().ok()
}

impl Published {
    fn text(self, unit: Unit) -> String {
        let given = |value| text(unit, as_given(value));
        match self {
            Self::Is(value) | Self::ByConstruction(value) => given(value),
            Self::About(value) => format!("about {}", given(value)),
            Self::AtMost(value) => format!("at most {}", given(value)),
            Self::AtLeast(value) => format!("at least {}", given(value)),
            Self::Between(low, high) => format!("{} to {}", given(low), given(high)),
            Self::Unknown => "no number".to_owned(),
        }
    }

    /// The published number that ours is nearest to, and the share by which it may miss that.
    fn nearest(self, ours: f64) -> Option<(f64, f64)> {
        match self {
            Self::Is(value) => Some((value, 0.10)),
            Self::About(value) => Some((value, 0.25)),
            Self::AtMost(value) => Some((ours.min(value), 0.0)),
            Self::AtLeast(value) => Some((ours.max(value), 0.0)),
            Self::Between(low, high) => Some((ours.clamp(low, high), 0.0)),
            Self::ByConstruction(_) | Self::Unknown => None,
        }
    }
}

impl Row {
    /// With ours as it will be printed, so that what is read from a page is what was found.
    pub fn new(figure: Figure, number: String, ours: f64) -> Self {
        let ours = number_of(&digits(ours)).expect("a number was written");
        Self { figure, number, ours }
    }

    /// Whether ours is where a change has not moved it.
    pub fn is_in_band(&self) -> bool {
        (self.figure.band.0..=self.figure.band.1).contains(&self.ours)
    }

    fn verdict(&self) -> Verdict {
        match self.figure.published.nearest(self.ours) {
            None => Verdict::Stated,
            Some((value, share)) if (self.ours - value).abs() <= share * value.abs() * (1.0 + 1e-9) => Verdict::Holds,
            Some(_) => Verdict::Not,
        }
    }

    /// By how much it differs; nothing inside of a bound.
    fn difference(&self) -> String {
        match self.figure.published.nearest(self.ours) {
            Some((value, _)) if value == self.ours => String::new(),
            Some((value, _)) if self.ours > 10.0 * value => format!("{:.0} times", self.ours / value),
            Some((value, _)) => format!("{:+.1} %", 100.0 * (self.ours / value - 1.0)),
            None => String::new(),
        }
    }

    /// Our number, as it is printed.
    pub fn here(&self) -> String {
        text(self.figure.unit(), digits(self.ours))
    }

    /// A remark on a number that is not where it was.
    pub fn moved(&self) -> String {
        let (low, high) = self.figure.band;
        format!("{} ({}): {}, not {low} to {high}", self.number, self.figure.what, self.here())
    }

    fn line(&self) -> String {
        let Figure { place, what, published, long, .. } = &self.figure;
        let verdict = match self.verdict() {
            Verdict::Holds => "holds",
            Verdict::Not => "**no**",
            Verdict::Stated => "stated",
        };
        let published = published.text(self.figure.unit());
        let [here, difference] = [self.here(), self.difference()];
        let star = if *long { " *" } else { "" };
        let number = &self.number;
        format!("| {number} | {what} | {published} ({place}) | {here}{star} | {difference} | {verdict} |")
    }
}

/// The page of the book.
pub struct Page {
    text: String,
}

impl Page {
    /// # Panics
    /// Without the marks between which the tables stand.
    pub fn new(text: String) -> Self {
        assert!(text.contains(BEGIN) && text.contains(END), "the page has no marks for its tables");
        Self { text }
    }

    /// Our number in the line of a figure.
    pub fn number(&self, row: &str) -> Option<f64> {
        let line = self.text.lines().find(|line| line.starts_with(&format!("| {row} |")))?;
        number_of(line.split('|').nth(4)?)
    }

    /// The whole page with these rows.
    pub fn filled(&self, rows: &[Row]) -> String {
        let (before, rest) = self.text.split_once(BEGIN).expect("it has both marks");
        let (_, after) = rest.split_once(END).expect("it has both marks");
        format!("{before}{BEGIN}\n\n{}\n{END}{after}", tables(rows))
    }

    pub fn text(&self) -> &str {
        &self.text
    }
}

/// A table a paper, with notes.
fn tables(rows: &[Row]) -> String {
    let mut text = String::new();
    let count = |verdict: Verdict| rows.iter().filter(|row| row.verdict() == verdict).count();
    let [holds, not, stated] = [Verdict::Holds, Verdict::Not, Verdict::Stated].map(count);
    text += &format!("{} figures: {holds} hold, {not} do not, {stated} are stated without a verdict.\n", rows.len());
    for same in rows.chunk_by(|a, b| a.figure.paper == b.figure.paper) {
        text += &format!("\n## {}\n\n", same[0].figure.paper);
        text += "| | what | published | here | difference | |\n| --- | --- | --- | --- | --- | --- |\n";
        text += &same.iter().map(|row| row.line() + "\n").collect::<String>();
        let noted: Vec<&Row> = same.iter().filter(|row| !row.figure.note.is_empty()).collect();
        text += if noted.is_empty() { "" } else { "\n" };
        for notes in noted.chunk_by(|a, b| a.figure.note == b.figure.note) {
            let numbers: Vec<&str> = notes.iter().map(|row| row.number.as_str()).collect();
            text += &wrapped(&format!("- *{}*: {}.", numbers.join(", "), notes[0].figure.note));
        }
    }
    text
}

/// An item of a list in lines of at most 120 letters.
fn wrapped(item: &str) -> String {
    let mut text = String::new();
    let mut length = 0;
    for word in item.split_whitespace() {
        let letters = word.chars().count();
        if length > 0 && length + 1 + letters > 120 {
            text += "\n ";
            length = 1;
        }
        text += if length > 0 { " " } else { "" };
        text += word;
        length += letters + 1;
    }
    text + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_four_digits() {
        let numbers = [0.0, 0.0164, 0.9996, 9.9994, 9.9996, 99.994, 99.996, 999.4, 999.6, 1_068.47, -1_234_567.0];
        let printed =
            ["0", "0.016", "1.000", "9.999", "10.00", "99.99", "100.0", "999.4", "1,000", "1,068", "-1,234,567"];
        assert_eq!(numbers.map(digits), printed);
        assert_eq!([0.5, 268.0, 1_000.0].map(as_given), ["0.5", "268", "1,000"]);
    }

    #[test]
    fn what_holds() {
        let figure = &super::super::numbered()[0].1;
        let verdict = |published, ours| Row::new(Figure { published, ..figure.clone() }, String::new(), ours).verdict();
        for (published, inside, outside) in [
            (Published::Is(100.0), [90.0, 110.0], [89.0, 111.0]),
            (Published::About(100.0), [75.0, 125.0], [74.0, 126.0]),
            (Published::AtMost(100.0), [0.0, 100.0], [101.0, 200.0]),
            (Published::AtLeast(100.0), [100.0, 1e6], [0.0, 99.0]),
            (Published::Between(100.0, 200.0), [100.0, 200.0], [99.0, 201.0]),
        ] {
            assert_eq!(inside.map(|ours| verdict(published, ours)), [Verdict::Holds; 2], "{published:?}");
            assert_eq!(outside.map(|ours| verdict(published, ours)), [Verdict::Not; 2], "{published:?}");
        }
        assert_eq!(verdict(Published::Unknown, 5.0), Verdict::Stated);
    }
}
