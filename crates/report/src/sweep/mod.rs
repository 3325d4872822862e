//! Figures over several parameters at once: a table with a column for each value of the last parameter that varies, and a surface of
//! shades with the same rows and columns.

mod html;
pub(crate) mod law;
pub(crate) mod predict;

use std::io;

use crate::Value;
use crate::form::plot::{self, Curve};
use crate::form::section::{Block, Section};
use crate::form::sheet::Sheet;
use crate::form::table::Table;
use crate::form::terminal;
use crate::html::AxisUnit;

/// How values are shaded, from the lowest fifth of their range to the highest.
const SHADES: [char; 5] = ['\u{b7}', '\u{2591}', '\u{2592}', '\u{2593}', '\u{2588}'];
/// Above this ratio of the highest to the lowest value fifths are those of logarithms.
const LINEAR_UP_TO: f64 = 10.0;
/// How many columns of characters a cell of a surface has at least.
const NARROWEST: usize = 4;
/// As many curves are drawn in one plot at most: more have no marks of their own.
const CURVES: usize = 6;

/// A parameter with the values that it takes.
pub struct Axis {
    pub(crate) title: &'static str,
    pub(crate) labels: Vec<String>,
    /// The values as numbers with their unit, where a chart can have them along its axis.
    pub(crate) numbers: Option<(Vec<f64>, AxisUnit)>,
    /// Whether each of its values has a chart of its own.
    pub(crate) apart: bool,
}

impl Axis {
    /// A parameter whose values are names.
    pub const fn named(title: &'static str, labels: Vec<String>) -> Self {
        Self { title, labels, numbers: None, apart: false }
    }

    /// A parameter whose values are numbers in this unit.
    pub fn numbered<T: Copy>(
        title: &'static str,
        values: &[T],
        unit: AxisUnit,
        label: impl Fn(&T) -> String,
        number: impl Fn(T) -> f64,
    ) -> Self {
        let labels = values.iter().map(label).collect();
        let numbers = values.iter().map(|value| number(*value)).collect();
        Self { title, labels, numbers: Some((numbers, unit)), apart: false }
    }

    /// The same, with a chart for each value.
    pub fn apart(self) -> Self {
        Self { apart: true, ..self }
    }
}

/// The parameters of a sweep that vary. Cells are in the order of their values, those of the last parameter next to each other.
pub struct Axes {
    /// Those that rows are told apart by.
    rows: Vec<Axis>,
    /// That which has a column for each of its values, if at least two parameters vary.
    columns: Option<Axis>,
}

impl Axes {
    /// Of all parameters, the first of which varies slowest.
    pub fn new(axes: Vec<Axis>) -> Self {
        let mut rows: Vec<Axis> = axes.into_iter().filter(|axis| axis.labels.len() > 1).collect();
        let columns = if rows.len() > 1 { rows.pop() } else { None };
        Self { rows, columns }
    }

    fn column_count(&self) -> usize {
        self.columns.as_ref().map_or(1, |axis| axis.labels.len())
    }

    /// All that vary, the one that varies slowest first.
    fn all(&self) -> Vec<&Axis> {
        self.rows.iter().chain(&self.columns).collect()
    }

    /// The titles of all that vary.
    fn all_titles(&self) -> Vec<&'static str> {
        self.all().iter().map(|axis| axis.title).collect()
    }

    /// The values of all that vary in the cell of this number.
    fn labels_of(&self, cell: usize) -> Vec<String> {
        let (mut labels, mut rest) = (Vec::new(), cell);
        for axis in self.all().iter().rev() {
            let count = axis.labels.len();
            labels.push(axis.labels[rest % count].clone());
            rest /= count;
        }
        labels.reverse();
        labels
    }

    /// The same in words: `grain 1ms, ranks 64`.
    fn name_of(&self, cell: usize) -> String {
        let named = self.all_titles().into_iter().zip(self.labels_of(cell));
        named.map(|(title, label)| format!("{title} {label}")).collect::<Vec<_>>().join(", ")
    }

    /// What stands in front of each row.
    fn names(&self) -> Vec<Vec<String>> {
        let mut names: Vec<Vec<String>> = vec![Vec::new()];
        for axis in &self.rows {
            let with = |name: &Vec<String>| {
                let name = name.clone();
                axis.labels.iter().map(move |label| name.iter().chain([label]).cloned().collect())
            };
            names = names.iter().flat_map(with).collect();
        }
        names
    }

    fn titles(&self) -> Vec<&'static str> {
        self.rows.iter().map(|axis| axis.title).collect()
    }

    /// What the columns are, for a heading: nothing where there is one only.
    pub fn columns_are(&self) -> String {
        self.columns.as_ref().map_or_else(String::new, |axis| format!("; columns: {}", axis.title))
    }

    /// A table of values; `title` stands over a column that is the only one.
    pub fn table(&self, title: &str, values: &[Value], out: &mut Sheet<'_>) -> io::Result<()> {
        let columns = self.columns.as_ref().map_or_else(|| vec![title.to_owned()], |axis| axis.labels.clone());
        let mut table = Table::matrix(&self.titles(), columns);
        let rows = values.chunks(self.column_count());
        self.with_rules(&mut table, rows.map(|row| row.iter().map(Value::cell).collect()));
        table.print(out)
    }

    /// The same as shades, for a terminal. Draws nothing where values do not differ.
    pub fn surface(
        &self,
        title: &str,
        values: &[Option<f64>],
        written: fn(f64) -> String,
        out: &mut Sheet<'_>,
    ) -> io::Result<()> {
        terminal::write(&[Section::new("surface", "", "", self.shades(title, values, written))], out)
    }

    /// The blocks of a surface.
    pub(crate) fn shades(&self, title: &str, values: &[Option<f64>], written: fn(f64) -> String) -> Vec<Block> {
        let Some(fifths) = Fifths::new(values) else { return Vec::new() };
        let labels = self.columns.as_ref().map_or(&[][..], |axis| axis.labels.as_slice());
        let width = labels.iter().map(|label| label.chars().count() + 1).max().unwrap_or(0).max(NARROWEST);
        let head: String = labels.iter().map(|label| format!("{label:<width$}")).collect();
        let names = [self.titles(), vec![""]].concat();
        let mut table = Table::matrix(&names, Vec::new());
        table.keep_whole(names.len() - 1);
        table.name_column(names.len() - 1, head.trim_end().to_owned());
        let shaded = |row: &[Option<f64>]| {
            let cell = |value: &Option<f64>| value.map_or(' ', |value| SHADES[fifths.fifth(value)]);
            vec![row.iter().map(|value| cell(value).to_string().repeat(width)).collect::<String>()]
        };
        self.with_rules(&mut table, values.chunks(self.column_count()).map(shaded));
        let upper = |at: usize| written(fifths.upper(at));
        let legend = (0..SHADES.len()).map(|at| format!("{} to {}", SHADES[at], upper(at)));
        let legend = format!("{}, from {}", legend.collect::<Vec<_>>().join(", "), written(fifths.lowest));
        let title = format!("{title}{}", self.columns_are());
        vec![Block::OnTerminal(vec![Block::Heading(title), Block::Table(table), Block::Text(legend)])]
    }

    /// Fills a table with names and cells, with a line wherever a parameter but the last of the rows changes.
    fn with_rules(&self, table: &mut Table, rows: impl Iterator<Item = Vec<String>>) {
        let names = self.names();
        for (at, (name, cells)) in names.iter().zip(rows).enumerate() {
            let outer = name.len().saturating_sub(1);
            if at > 0 && name[..outer] != names[at - 1][..outer] {
                table.rule();
            }
            table.cells(name.iter().cloned().chain(cells));
        }
    }

    /// Curves over the counts that the columns stand for, where there are few enough of them.
    pub fn plot(&self, title: &str, counts: &[u64], values: &[Option<f64>], out: &mut Sheet<'_>) -> io::Result<()> {
        let names = self.names();
        if counts.len() < 2 || names.len() > CURVES || self.column_count() != counts.len() {
            return Ok(());
        }
        let curve = |(name, row): (&Vec<String>, &[Option<f64>])| {
            let mut points: Vec<(u64, f64)> =
                counts.iter().zip(row).filter_map(|(count, value)| Some((*count, (*value)?))).collect();
            points.sort_by_key(|point| point.0);
            Curve { name: name.join(", "), points }
        };
        let curves: Vec<Curve> = names.iter().zip(values.chunks(counts.len())).map(curve).collect();
        plot::draw(&curves, title, out)
    }
}

/// The range of values in five equal parts, of their logarithms where it is wide.
struct Fifths {
    lowest: f64,
    highest: f64,
    by_logarithm: bool,
}

impl Fifths {
    fn new(values: &[Option<f64>]) -> Option<Self> {
        let finite = values.iter().flatten().copied().filter(|value| value.is_finite());
        let lowest = finite.clone().min_by(f64::total_cmp)?;
        let highest = finite.max_by(f64::total_cmp)?;
        let by_logarithm = lowest > 0.0 && highest / lowest > LINEAR_UP_TO;
        (lowest < highest).then_some(Self { lowest, highest, by_logarithm })
    }

    /// Where a value lies between the lowest, 0, and the highest, 1.
    fn fifth(&self, value: f64) -> usize {
        let along = if self.by_logarithm {
            (value / self.lowest).ln() / (self.highest / self.lowest).ln()
        } else {
            (value - self.lowest) / (self.highest - self.lowest)
        };
        // What lies on the edge of two fifths belongs to the lower one.
        ((along * SHADES.len() as f64).ceil() as usize).saturating_sub(1).min(SHADES.len() - 1)
    }

    /// Where the fifth of this number ends.
    fn upper(&self, at: usize) -> f64 {
        let along = (at + 1) as f64 / SHADES.len() as f64;
        if self.by_logarithm {
            self.lowest * (self.highest / self.lowest).powf(along)
        } else {
            self.lowest + (self.highest - self.lowest) * along
        }
    }
}

/// Names without what all of them begin and end with, cut where a part of a name ends: `interval=1ms` of
/// `periodic:interval=1ms,detour=50us` among others with such detours.
pub(crate) fn short_names(names: &[String]) -> Vec<String> {
    let Some(first) = names.first().filter(|first| names.iter().any(|name| name != *first)) else {
        return names.to_vec();
    };
    let same = |other: &String| first.bytes().zip(other.bytes()).take_while(|(a, b)| a == b).count();
    let begin = names.iter().map(same).min().unwrap_or(0);
    let begin = first.as_bytes()[..begin].iter().rposition(|byte| b":,".contains(byte)).map_or(0, |at| at + 1);
    let rest: Vec<&[u8]> = names.iter().map(|name| &name.as_bytes()[begin..]).collect();
    let same = |other: &&[u8]| rest[0].iter().rev().zip(other.iter().rev()).take_while(|(a, b)| a == b).count();
    let end = rest.iter().map(same).min().unwrap_or(0);
    let tail = &rest[0][rest[0].len() - end..];
    let end = tail.iter().position(|byte| *byte == b',').map_or(0, |at| tail.len() - at);
    let short = |name: &String| name.get(begin..name.len() - end).unwrap_or(name).to_owned();
    let short: Vec<String> = names.iter().map(short).collect();
    if short.iter().any(String::is_empty) { names.to_vec() } else { short }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::form::sheet::Form;
    use crate::form::value::factor;

    fn axis(title: &'static str, labels: &[&str]) -> Axis {
        Axis::named(title, labels.iter().map(|label| (*label).to_owned()).collect())
    }

    fn written(write: impl Fn(&mut Sheet<'_>) -> io::Result<()>) -> String {
        let mut out = Vec::new();
        write(&mut Sheet::new(&mut out, Form::default())).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn the_last_parameter_that_varies_has_the_columns() {
        let axes = Axes::new(vec![
            axis("sync", &["no", "yes"]),
            axis("bytes", &["8"]),
            axis("grain", &["1ms", "2ms"]),
            axis("ranks", &["64", "1,024", "16,384"]),
        ]);
        let values: Vec<Option<f64>> = (1..=12).map(|at| (at != 5).then_some(f64::from(at) * 10.0)).collect();
        let cells: Vec<Value> = values.iter().map(|value| value.map_or(Value::Missing, Value::Factor)).collect();
        let table = written(|out| axes.table("slowdown", &cells, out));
        let lines: Vec<&str> = table.lines().collect();
        assert_eq!(lines[0].split_whitespace().collect::<Vec<_>>(), ["sync", "grain", "64", "1,024", "16,384"]);
        assert_eq!(lines[3].split_whitespace().collect::<Vec<_>>(), ["no", "2ms", "40.00", "-", "60.00"], "{table}");
        // A line between those that are synchronized and those that are not.
        assert!(lines[4].contains('\u{2500}') && lines[5].contains("yes") && lines.len() == 7, "{table}");
        let surface = written(|out| axes.surface("Surface", &values, factor, out));
        let shades: Vec<String> =
            surface.lines().map(|line| line.chars().filter(|sign| SHADES.contains(sign)).collect()).collect();
        let width = "16,384 ".len();
        let row = |fifths: &[usize]| -> String {
            fifths.iter().map(|fifth| SHADES[*fifth].to_string().repeat(width)).collect()
        };
        // 12 times as much at most: logarithms.
        assert_eq!(shades[4], row(&[0, 1, 2]), "{surface}");
        assert_eq!(shades[5], row(&[2, 3]), "{surface}");
        assert_eq!(shades[8], row(&[4, 4, 4]), "{surface}");
        assert!(surface.contains("\u{2588} to 120.0") && surface.contains("from 10.0"), "{surface}");
        assert!(surface.contains("; columns: ranks"));
    }

    #[test]
    fn one_parameter_has_the_rows() {
        let axes = Axes::new(vec![axis("noise", &["a", "b"]), axis("ranks", &["64"])]);
        let table = written(|out| axes.table("slowdown", &[Value::Factor(1.5), Value::Factor(2.0)], out));
        let lines: Vec<Vec<&str>> = table.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!((&lines[0], &lines[3]), (&vec!["noise", "slowdown"], &vec!["b", "2.0000"]));
        assert_eq!(written(|out| axes.surface("Surface", &[Some(1.0), Some(1.0)], factor, out)), "");
    }

    #[test]
    fn names_say_what_differs() {
        let short = |names: &[&str]| short_names(&names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>());
        let (a, b) = ("periodic:interval=1ms,detour=16us", "periodic:interval=10ms,detour=16us");
        assert_eq!(short(&[a, b]), ["interval=1ms", "interval=10ms"]);
        assert_eq!(short(&[a, "periodic:interval=1ms,detour=50us"]), ["detour=16us", "detour=50us"]);
        assert_eq!(short(&[a, "poisson:rate=1Hz,detour=16us"]), ["periodic:interval=1ms", "poisson:rate=1Hz"]);
        assert_eq!(short(&[a]), [a]);
        assert_eq!(short(&[a, a]), [a, a]);
        assert_eq!(short(&["node1", "node1+poisson:rate=1Hz,detour=1ms"])[0], "node1");
        assert_eq!(short(&["\u{e4}", "\u{f6}"]), ["\u{e4}", "\u{f6}"]);
    }
}
