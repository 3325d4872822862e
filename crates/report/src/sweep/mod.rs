//! Figures over several parameters at once: a table with a column per value of the last parameter that varies, and a surface of shades like it.

pub(crate) mod figure;
pub(crate) mod law;
pub(crate) mod predict;

use crate::html::AxisUnit;

pub use self::figure::SweepFigure;

/// The shades of values, from the lowest to the highest fifth of their range.
const SHADES: [char; 5] = ['\u{b7}', '\u{2591}', '\u{2592}', '\u{2593}', '\u{2588}'];
/// Above this ratio of the highest to the lowest value, fifths are logarithmic.
const LINEAR_UP_TO: f64 = 10.0;

/// A parameter and its values.
pub struct Axis {
    pub(crate) title: &'static str,
    pub(crate) labels: Vec<String>,
    /// The values as numbers with their unit, if a chart can have them on its axis.
    pub(crate) numbers: Option<(Vec<f64>, AxisUnit)>,
    /// Whether each of its values has a separate chart.
    pub(crate) apart: bool,
}

impl Axis {
    /// A parameter with named values.
    pub const fn named(title: &'static str, labels: Vec<String>) -> Self {
        Self { title, labels, numbers: None, apart: false }
    }

    /// A parameter with numeric values in this unit.
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

    /// Gives each value a separate chart.
    pub fn apart(self) -> Self {
        Self { apart: true, ..self }
    }
}

/// The parameters of a sweep that vary. Cells are in the order of their values; the last parameter varies fastest.
pub struct Axes {
    /// The parameters of the rows.
    rows: Vec<Axis>,
    /// The parameter of the columns, if at least two parameters vary.
    columns: Option<Axis>,
}

impl Axes {
    /// From all parameters, slowest first.
    pub fn new(axes: Vec<Axis>) -> Self {
        let mut rows: Vec<Axis> = axes.into_iter().filter(|axis| axis.labels.len() > 1).collect();
        let columns = if rows.len() > 1 { rows.pop() } else { None };
        Self { rows, columns }
    }

    fn column_count(&self) -> usize {
        self.columns.as_ref().map_or(1, |axis| axis.labels.len())
    }

    /// All parameters that vary, slowest first.
    fn all(&self) -> Vec<&Axis> {
        self.rows.iter().chain(&self.columns).collect()
    }

    /// The titles of all parameters that vary.
    fn all_titles(&self) -> Vec<&'static str> {
        self.all().iter().map(|axis| axis.title).collect()
    }

    /// The values of all parameters that vary, for the cell with this index.
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

    /// These values in words: `grain 1ms, ranks 64`.
    fn name_of(&self, cell: usize) -> String {
        let named = self.all_titles().into_iter().zip(self.labels_of(cell));
        named.map(|(title, label)| format!("{title} {label}")).collect::<Vec<_>>().join(", ")
    }

    /// The names in front of each row.
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

    /// The parameter of the columns, for a heading; empty if there is only one column.
    pub fn columns_are(&self) -> String {
        self.columns.as_ref().map_or_else(String::new, |axis| format!("; columns: {}", axis.title))
    }
}

/// The range of values in five equal parts, logarithmic if it is wide.
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

    /// The fifth of a value, from 0, the lowest.
    fn fifth(&self, value: f64) -> usize {
        let along = if self.by_logarithm {
            (value / self.lowest).ln() / (self.highest / self.lowest).ln()
        } else {
            (value - self.lowest) / (self.highest - self.lowest)
        };
        // An edge belongs to the lower fifth.
        ((along * SHADES.len() as f64).ceil() as usize).saturating_sub(1).min(SHADES.len() - 1)
    }

    /// The upper end of this fifth.
    fn upper(&self, at: usize) -> f64 {
        let along = (at + 1) as f64 / SHADES.len() as f64;
        if self.by_logarithm {
            self.lowest * (self.highest / self.lowest).powf(along)
        } else {
            self.lowest + (self.highest - self.lowest) * along
        }
    }
}

/// Names without their common prefix and suffix, cut between parts of a name: `interval=1ms` from `periodic:interval=1ms,detour=50us` if all have
/// such detours.
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
    use crate::Value;
    use crate::form::section::Block;
    use crate::form::sheet::{Form, Sheet};
    use crate::form::terminal::write_blocks;

    fn axis(title: &'static str, labels: &[&str]) -> Axis {
        Axis::named(title, labels.iter().map(|label| (*label).to_owned()).collect())
    }

    fn slowdown(axes: &Axes, values: Vec<Option<f64>>) -> SweepFigure<'_> {
        SweepFigure::new(axes, "slowdown", AxisUnit::Factor, Value::Factor, values)
    }

    fn written(blocks: &[Block]) -> String {
        let mut out = Vec::new();
        write_blocks(blocks, &mut Sheet::new(&mut out, Form::default())).unwrap();
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
        let figure = slowdown(&axes, values);
        let table = written(&[figure.table("")]);
        let lines: Vec<&str> = table.lines().collect();
        assert_eq!(lines[0].split_whitespace().collect::<Vec<_>>(), ["sync", "grain", "64", "1,024", "16,384"]);
        assert_eq!(lines[3].split_whitespace().collect::<Vec<_>>(), ["no", "2ms", "40.0", "-", "60.0"], "{table}");
        // A line separates synchronized rows from the others.
        assert!(lines[4].contains('\u{2500}') && lines[5].contains("yes") && lines.len() == 7, "{table}");
        let surface = written(&figure.shades("Surface"));
        let shades: Vec<String> =
            surface.lines().map(|line| line.chars().filter(|sign| SHADES.contains(sign)).collect()).collect();
        let width = "16,384 ".len();
        let row = |fifths: &[usize]| -> String {
            fifths.iter().map(|fifth| SHADES[*fifth].to_string().repeat(width)).collect()
        };
        // The range is a factor of 12: logarithmic.
        assert_eq!(shades[4], row(&[0, 1, 2]), "{surface}");
        assert_eq!(shades[5], row(&[2, 3]), "{surface}");
        assert_eq!(shades[8], row(&[4, 4, 4]), "{surface}");
        assert!(surface.contains("\u{2588} to 120") && surface.contains("from 10.0"), "{surface}");
        assert!(surface.contains("; columns: ranks"));
    }

    #[test]
    fn one_parameter_has_the_rows() {
        let axes = Axes::new(vec![axis("noise", &["a", "b"]), axis("ranks", &["64"])]);
        let table = written(&[slowdown(&axes, vec![Some(1.5), Some(2.0)]).table("")]);
        let lines: Vec<Vec<&str>> = table.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!((&lines[0], &lines[3]), (&vec!["noise", "slowdown"], &vec!["b", "2.00"]));
        assert!(slowdown(&axes, vec![Some(1.0), Some(1.0)]).shades("Surface").is_empty());
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
