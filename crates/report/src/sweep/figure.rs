//! A figure of a sweep: tables, surfaces, and curves over one parameter, one per value of the others.

use super::{Axes, Axis, Fifths, SHADES};
use crate::Value;
use crate::form::plot::Curve;
use crate::form::section::{Opening, Section};
use crate::form::table::Table;
use crate::form::words::capital;
use crate::html::{Axis as ChartAxis, AxisScale, AxisUnit, Bar, Bars, Block, Chart, ChartSeries, Lines, Spec, Surface};
use crate::predict::rounded::{digits, round};
use crate::predict::view::{round_up, upward, wide_scale};

/// The smallest width of a shade, in characters.
const NARROWEST: usize = 4;
/// The most curves in one plot of a terminal: more have no marks of their own.
const PLOTTED: usize = 6;
/// The most charts.
const CHARTS: usize = 12;

/// The most curves in a chart: the colors of more would not be distinguishable.
const CURVES: usize = 16;
/// The number of curves with their own colors; further ones reuse the colors with dashed lines.
const COLORS: usize = 8;
/// The most bars.
const BARS: usize = 40;
/// The most rows of a surface.
const SURFACE_ROWS: usize = 64;

/// The name of the parameter for the number of ranks.
pub(super) const RANKS: &str = "ranks";

/// A figure for each cell of a sweep.
pub struct SweepFigure<'a> {
    axes: &'a Axes,
    title: &'static str,
    unit: AxisUnit,
    /// Formats a value.
    cell: fn(f64) -> Value,
    values: Vec<Option<f64>>,
    /// The ends of each cell's interval, if it has one; the upper end is infinite if there is none. Empty if no cell has an interval.
    pub(super) intervals: Vec<Option<[f64; 2]>>,
    /// The complete curve over ranks through a given cell, if more points than the cells are known.
    pub(super) whole: Option<WholeCurve<'a>>,
}

/// The points of the curve over ranks through the cell with this index.
type WholeCurve<'a> = &'a dyn Fn(usize) -> Vec<[f64; 2]>;

/// Which parameter is on the axis, which have curves, and which have separate charts; all as indices among those that vary.
struct Layout {
    along: usize,
    apart: Vec<usize>,
    curves: Vec<usize>,
}

impl<'a> SweepFigure<'a> {
    /// A figure with its name, such as `slowdown`, its unit on the axes, and the format of a cell.
    pub fn new(
        axes: &'a Axes,
        title: &'static str,
        unit: AxisUnit,
        cell: fn(f64) -> Value,
        values: Vec<Option<f64>>,
    ) -> Self {
        Self { axes, title, unit, cell, values, intervals: Vec::new(), whole: None }
    }

    /// The charts with these names, side by side; a bar per cell if no numeric parameter varies.
    pub fn charts(&self, id: &'static str) -> Vec<Block> {
        let all = self.axes.all();
        let Some(layout) = Layout::new(&all) else { return self.bars(id, &all).into_iter().collect() };
        let (charts, left_out) = self.curves(id, &all, &layout);
        let mut blocks = Vec::new();
        if !charts.is_empty() {
            blocks.push(Block::Charts(charts));
        }
        if left_out > 0 {
            let text = format!("{left_out} more curves are not drawn; the table has all figures.");
            blocks.push(Block::OnPage(vec![Block::Note(text)]));
        }
        blocks
    }

    /// The charts of curves, and the number of curves left out.
    fn curves(&self, id: &'static str, all: &[&Axis], layout: &Layout) -> (Vec<Chart>, usize) {
        let (charts, curves) = (combinations(all, &layout.apart), combinations(all, &layout.curves));
        let drawn_charts = charts.len().min(CHARTS);
        let left_out = charts.len() * curves.len() - drawn_charts * curves.len().min(CURVES);
        let y = self.upward();
        let chart = |chart: &Vec<usize>| {
            let of_chart: Vec<(usize, usize)> = layout.apart.iter().copied().zip(chart.iter().copied()).collect();
            let curve = |(at, curve): (usize, &Vec<usize>)| {
                let of_curve = layout.curves.iter().copied().zip(curve.iter().copied());
                let fixed: Vec<(usize, usize)> = of_chart.iter().copied().chain(of_curve).collect();
                self.curve(all, layout, &fixed, at)
            };
            let series: Vec<ChartSeries> = curves.iter().take(CURVES).enumerate().map(curve).collect();
            let series: Vec<ChartSeries> = series.into_iter().filter(|series| !series.points.is_empty()).collect();
            let title = names(all, &of_chart).join(", ");
            let along = all[layout.along];
            (!series.is_empty()).then(|| Chart {
                id,
                label: format!("{}: {} by {}.", if title.is_empty() { "All" } else { &title }, self.title, along.title),
                title,
                height: 330 + 12 * series.len() as u32,
                spec: Spec::Lines(Lines { x: along_axis(along), y: y.clone(), series, marks: Vec::new() }),
                figures: None,
            })
        };
        (charts.iter().take(CHARTS).filter_map(chart).collect(), left_out)
    }

    /// The curve of the cells with fixed values of all other parameters.
    fn curve(&self, all: &[&Axis], layout: &Layout, fixed: &[(usize, usize)], at: usize) -> ChartSeries {
        let numbers = all[layout.along].numbers.as_ref().map_or(&[][..], |(numbers, _)| numbers.as_slice());
        let cell = |(place, x): (usize, &f64)| {
            let index = index(all, fixed, (layout.along, place));
            let value = (*self.values.get(index)?)?;
            let ends = self.intervals.get(index).copied().flatten().unwrap_or([value; 2]);
            Some(([*x, value], ends))
        };
        let mut points: Vec<([f64; 2], [f64; 2])> = numbers.iter().enumerate().filter_map(cell).collect();
        points.sort_by(|a, b| a.0[0].total_cmp(&b.0[0]));
        let of_curve: Vec<(usize, usize)> =
            fixed.iter().copied().filter(|(axis, _)| layout.curves.contains(axis)).collect();
        let (points, band): (Vec<_>, Vec<_>) = points.into_iter().unzip();
        let whole = self.whole.filter(|_| all[layout.along].title == RANKS);
        ChartSeries {
            name: names(all, &of_curve).join(", "),
            points: whole.map_or(points, |whole| whole(index(all, fixed, (layout.along, 0)))),
            band: if self.intervals.is_empty() { Vec::new() } else { band },
            dots: whole.is_none(),
            dashed: at >= COLORS,
            ..ChartSeries::default()
        }
    }

    /// The vertical axis, common to all charts for comparison.
    fn upward(&self) -> ChartAxis {
        let values = self.values.iter().flatten().copied();
        let ends = self.intervals.iter().flatten().flatten().copied();
        let from = self.start();
        let (low, high) = extent(values.chain(ends).chain(from));
        let scale = wide_scale(low, high);
        if from.is_some() {
            let (scale, top) = upward(high, self.intervals.iter().flatten().any(|[_, high]| high.is_infinite()));
            return ChartAxis::new(self.title, scale, self.unit).between(from, Some(top));
        }
        let (bottom, top) = match scale {
            AxisScale::Log => (Some(10_f64.powf(low.log10().floor())), Some(round_up(high))),
            // Values far from zero that differ little need an axis that starts near them.
            AxisScale::Linear if high > low && high < 2.0 * low => {
                let step = round_up(high - low) / 10.0;
                (Some((low / step).floor() * step), Some((high / step).ceil() * step))
            }
            AxisScale::Linear if low < 0.0 => (None, None),
            AxisScale::Linear => (Some(0.0), Some(round_up(high)).filter(|top| *top > 0.0)),
        };
        ChartAxis::new(self.title, scale, self.unit).between(bottom, top)
    }

    /// The start of the vertical axis, if known: slowdowns start at 1, unless something ended early.
    fn start(&self) -> Option<f64> {
        let mut all = self.values.iter().flatten().chain(self.intervals.iter().flatten().flatten());
        (self.unit == AxisUnit::Factor && all.all(|value| *value >= 1.0)).then_some(1.0)
    }

    /// One bar per cell.
    fn bars(&self, id: &'static str, all: &[&Axis]) -> Option<Block> {
        let every: Vec<usize> = (0..all.len()).collect();
        let bar = |(names_at, value): (Vec<usize>, &Option<f64>)| {
            let fixed: Vec<(usize, usize)> = names_at.into_iter().enumerate().collect();
            let value = (*value)?;
            Some(Bar { name: names(all, &fixed).join(", "), value, text: self.written(value), kind: None })
        };
        let bars = combinations(all, &every).into_iter().zip(&self.values).filter_map(bar);
        let bars: Vec<Bar> = bars.take(BARS).collect();
        (bars.len() > 1).then(|| {
            Block::Charts(vec![Chart {
                id,
                title: String::new(),
                label: format!("The {} of {} cells.", self.title, bars.len()),
                height: 44 + 30 * bars.len() as u32,
                spec: Spec::Bars(Bars {
                    x: ChartAxis::new("", AxisScale::Linear, self.unit).between(self.start(), None),
                    bars,
                }),
                figures: None,
            }])
        })
    }

    /// A section with its charts, whose names end with a hyphen, and its table.
    pub fn section(&self, id: &'static str, short: &'static str, title: &str) -> Section {
        let mut blocks = self.charts(id);
        blocks.push(self.table(title));
        Section::new(id.trim_end_matches('-'), short, title, blocks)
            .opened(Opening::Title(format!("{title}{}", self.axes.columns_are())))
    }

    /// A section with the surface, and for a terminal curves over these counts below it.
    pub fn surface_section(&self, title: &str, counts: &[u64]) -> Section {
        let mut blocks = vec![Block::OnTerminal(self.shades(title))];
        blocks.extend(self.surface("surface"));
        blocks.push(self.plot(counts));
        Section::new("surface", "Surface", title, blocks)
    }

    /// The surface on a page: the table's rows and columns, with shades for figures.
    pub fn surface(&self, id: &'static str) -> Option<Block> {
        let columns = self.axes.columns.as_ref()?;
        let (low, high) = extent(self.values.iter().flatten().copied());
        let rows: Vec<String> = self.axes.names().iter().take(SURFACE_ROWS).map(|names| names.join(", ")).collect();
        let cells = self.values.chunks(self.axes.column_count()).take(SURFACE_ROWS).map(<[_]>::to_vec).collect();
        let title = format!("{} by {} and {}", capital(self.title), self.axes.titles().join(", "), columns.title);
        (low < high).then(|| {
            Block::Charts(vec![Chart {
                id,
                title,
                label: format!("The {} as shades, from {} to {}.", self.title, self.written(low), self.written(high)),
                height: 100 + 26 * rows.len().max(2) as u32,
                spec: Spec::Surface(Surface {
                    title: self.title.to_owned(),
                    unit: self.unit,
                    scale: wide_scale(low, high),
                    column_title: columns.title.to_owned(),
                    columns: columns.labels.clone(),
                    rows,
                    cells,
                }),
                figures: None,
            }])
        })
    }

    fn written(&self, value: f64) -> String {
        if self.unit == AxisUnit::Factor { digits(value) } else { (self.cell)(value).cell() }
    }

    /// The surface on a terminal; empty if all values are equal.
    pub fn shades(&self, title: &str) -> Vec<Block> {
        let Some(fifths) = Fifths::new(&self.values) else { return Vec::new() };
        let labels = self.axes.columns.as_ref().map_or(&[][..], |axis| axis.labels.as_slice());
        let width = labels.iter().map(|label| label.chars().count() + 1).max().unwrap_or(0).max(NARROWEST);
        let head: String = labels.iter().map(|label| format!("{label:<width$}")).collect();
        let names = [self.axes.titles(), vec![""]].concat();
        let mut table = Table::matrix(&names, Vec::new());
        table.keep_whole(names.len() - 1);
        table.name_column(names.len() - 1, head.trim_end().to_owned());
        let shade = |value: &Option<f64>| value.map_or(' ', |value| SHADES[fifths.fifth(value)]);
        self.fill(&mut table, |row| {
            vec![Value::Text(row.iter().map(|value| shade(value).to_string().repeat(width)).collect())]
        });
        let legend = (0..SHADES.len()).map(|at| format!("{} to {}", SHADES[at], self.written(fifths.upper(at))));
        let legend = format!("{}, from {}", legend.collect::<Vec<_>>().join(", "), self.written(fifths.lowest));
        let title = format!("{title}{}", self.axes.columns_are());
        vec![Block::Heading(title), Block::Table(table), Block::Text(legend)]
    }

    /// The table, with a column per value of the last parameter that varies.
    pub fn table(&self, caption: &str) -> Block {
        let columns =
            self.axes.columns.as_ref().map_or_else(|| vec![self.title.to_owned()], |axis| axis.labels.clone());
        let caption = format!("{caption}{}", self.axes.columns_are());
        let mut table = Table::matrix(&self.axes.titles(), columns).captioned(&caption);
        self.fill(&mut table, |row| row.iter().map(|value| value.map_or(Value::Missing, self.cell)).collect());
        if self.unit == AxisUnit::Factor {
            (self.axes.titles().len()..table.columns.len()).for_each(|column| round(&mut table, column));
        }
        Block::Table(table)
    }

    /// Fills a table with names and cells, and a line wherever a parameter other than the last of the rows changes.
    fn fill(&self, table: &mut Table, cells: impl Fn(&[Option<f64>]) -> Vec<Value>) {
        let names = self.axes.names();
        for (at, (name, row)) in names.iter().zip(self.values.chunks(self.axes.column_count())).enumerate() {
            let outer = name.len().saturating_sub(1);
            if at > 0 && name[..outer] != names[at - 1][..outer] {
                table.rule();
            }
            table.values(name, cells(row).into_iter());
        }
    }

    /// Curves over the counts of the columns for a terminal, if they are few enough.
    pub fn plot(&self, counts: &[u64]) -> Block {
        let names = self.axes.names();
        let is_plotted = counts.len() > 1 && names.len() <= PLOTTED && self.axes.column_count() == counts.len();
        let curve = |(name, row): (&Vec<String>, &[Option<f64>])| {
            let mut points: Vec<(u64, f64)> =
                counts.iter().zip(row).filter_map(|(count, value)| Some((*count, (*value)?))).collect();
            points.sort_by_key(|point| point.0);
            Curve { name: name.join(", "), points }
        };
        let curves = names.iter().zip(self.values.chunks(self.axes.column_count())).map(curve);
        Block::Plot(format!("{} against ranks", capital(self.title)), curves.filter(|_| is_plotted).collect())
    }
}

impl Layout {
    /// The last numeric parameter that varies is on the axis. Parameters marked `apart` have separate charts, and so have further ones if a chart
    /// would have too many curves. `None` if no numeric parameter varies.
    fn new(all: &[&Axis]) -> Option<Self> {
        let differ = |axis: &Axis| {
            let numbers = axis.numbers.as_ref().map_or(&[][..], |(numbers, _)| numbers.as_slice());
            numbers.iter().any(|number| *number != numbers[0])
        };
        let along = (0..all.len()).rev().find(|at| differ(all[*at]))?;
        let (mut apart, mut curves): (Vec<usize>, Vec<usize>) =
            (0..all.len()).filter(|at| *at != along).partition(|at| all[*at].apart);
        let count = |curves: &[usize]| curves.iter().map(|at| all[*at].labels.len()).product::<usize>();
        while curves.len() > 1 && count(&curves) > CURVES {
            apart.push(curves.remove(0));
        }
        apart.sort_unstable();
        Some(Self { along, apart, curves })
    }
}

/// The axis of the parameter: logarithmic unless a value is 0 or below.
fn along_axis(axis: &Axis) -> ChartAxis {
    let (numbers, unit) =
        axis.numbers.as_ref().map_or((&[][..], AxisUnit::Plain), |(all, unit)| (all.as_slice(), *unit));
    let scale = if numbers.iter().all(|number| *number > 0.0) { AxisScale::Log } else { AxisScale::Linear };
    ChartAxis::new(axis.title, scale, unit)
}

/// All combinations of values of some parameters, as indices; the last parameter varies fastest.
fn combinations(all: &[&Axis], axes: &[usize]) -> Vec<Vec<usize>> {
    let mut found: Vec<Vec<usize>> = vec![Vec::new()];
    for axis in axes {
        let with = |places: &Vec<usize>| {
            let places = places.clone();
            (0..all[*axis].labels.len()).map(move |place| places.iter().copied().chain([place]).collect())
        };
        found = found.iter().flat_map(with).collect();
    }
    found
}

/// The index of the cell with these values, given as pairs of parameter and value indices.
fn index(all: &[&Axis], fixed: &[(usize, usize)], along: (usize, usize)) -> usize {
    let place = |axis: usize| {
        let mut places = fixed.iter().chain([&along]);
        places.find(|(number, _)| *number == axis).map_or(0, |(_, place)| *place)
    };
    all.iter().enumerate().fold(0, |index, (number, axis)| index * axis.labels.len() + place(number))
}

/// The names of some values, with their parameter except for noises and configurations, which explain themselves.
fn names(all: &[&Axis], fixed: &[(usize, usize)]) -> Vec<String> {
    let mut fixed = fixed.to_vec();
    fixed.sort_unstable();
    let name = |(axis, place): &(usize, usize)| {
        let Axis { title, labels, .. } = all[*axis];
        if ["noise", "configuration"].contains(title) {
            labels[*place].clone()
        } else {
            format!("{title} {}", labels[*place])
        }
    };
    fixed.iter().map(name).collect()
}

/// The smallest and the largest value.
fn extent(values: impl Iterator<Item = f64>) -> (f64, f64) {
    let finite = values.filter(|value| value.is_finite());
    finite.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| (low.min(value), high.max(value)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn axis(title: &'static str, numbers: &[f64], apart: bool) -> Axis {
        let label = |number: &f64| number.to_string();
        let axis = Axis::numbered(title, numbers, AxisUnit::Plain, label, |number| number);
        if apart { axis.apart() } else { axis }
    }

    fn figure(axes: &Axes, values: Vec<Option<f64>>) -> SweepFigure<'_> {
        SweepFigure::new(axes, "slowdown", AxisUnit::Factor, Value::Factor, values)
    }

    fn lines(blocks: &[Block]) -> Vec<(String, Lines)> {
        let charts =
            blocks.iter().flat_map(|block| if let Block::Charts(charts) = block { charts.as_slice() } else { &[] });
        let lines = |chart: &Chart| match &chart.spec {
            Spec::Lines(lines) => (chart.title.clone(), lines.clone()),
            other => panic!("no lines: {other:?}"),
        };
        charts.map(lines).collect()
    }

    #[test]
    fn each_cell_is_a_point_of_its_curve_in_its_chart() {
        let named = Axis::named("noise", vec!["x=1".to_owned(), "x=2".to_owned()]);
        let axes = Axes::new(vec![axis("sync", &[0.0, 1.0], true), named, axis(RANKS, &[64.0, 16.0, 256.0], false)]);
        // The value of a cell encodes its place.
        let values: Vec<Option<f64>> = (0..12).map(|at| (at != 4).then_some(1.0 + f64::from(at) / 4.0)).collect();
        let charts = lines(&figure(&axes, values).charts("a-"));
        assert_eq!(charts.iter().map(|chart| chart.0.as_str()).collect::<Vec<_>>(), ["sync 0", "sync 1"]);
        let names = |lines: &Lines| lines.series.iter().map(|series| series.name.clone()).collect::<Vec<_>>();
        assert_eq!(names(&charts[1].1), ["x=1", "x=2"]);
        // Points are in the order of the axis, without cells that have no value.
        assert_eq!(charts[0].1.series[1].points, [[64.0, 1.75], [256.0, 2.25]]);
        assert_eq!(charts[1].1.series[1].points, [[16.0, 3.5], [64.0, 3.25], [256.0, 3.75]]);
        // Charts side by side share an axis.
        assert_eq!((charts[0].1.y.min, charts[0].1.y.max), (charts[1].1.y.min, charts[1].1.y.max));
        assert_eq!(charts[0].1.y.max, Some(4.0));
    }

    #[test]
    fn too_many_curves_are_taken_apart_and_counted() {
        let many: Vec<f64> = (1..=20).map(f64::from).collect();
        let axes = Axes::new(vec![
            axis("delay", &[1.0, 2.0], false),
            axis("grain", &many, false),
            axis(RANKS, &[1.0, 2.0], false),
        ]);
        let blocks = figure(&axes, vec![Some(2.0); 80]).charts("a-");
        let charts = lines(&blocks[..1]);
        assert_eq!(
            charts.iter().map(|(title, lines)| (title.as_str(), lines.series.len())).collect::<Vec<_>>(),
            [("delay 1", CURVES), ("delay 2", CURVES)]
        );
        assert!(charts[0].1.series[COLORS].dashed && !charts[0].1.series[COLORS - 1].dashed);
        let Block::OnPage(notes) = &blocks[1] else { panic!("{blocks:?}") };
        assert!(matches!(&notes[..], [Block::Note(text)] if text.starts_with("8 more curves")), "{notes:?}");
    }

    #[test]
    fn names_alone_have_bars_and_one_parameter_no_surface() {
        let axes = Axes::new(vec![Axis::named("noise", vec!["a".to_owned(), "b".to_owned()])]);
        let figure = figure(&axes, vec![Some(1.5), Some(2.0)]);
        let blocks = figure.charts("a-");
        let [Block::Charts(charts)] = blocks.as_slice() else { panic!("{blocks:?}") };
        let Spec::Bars(bars) = &charts[0].spec else { panic!("{charts:?}") };
        assert_eq!(
            bars.bars.iter().map(|bar| (bar.name.as_str(), bar.text.as_str())).collect::<Vec<_>>(),
            [("a", "1.50"), ("b", "2.00")]
        );
        assert!(figure.surface("s").is_none());
    }

    #[test]
    fn the_upward_axis_holds_every_value_and_tells_them_apart() {
        let axes = Axes::new(Vec::new());
        let ends = |from: Option<f64>, values: &[f64]| {
            let values: Vec<Option<f64>> = values.iter().copied().map(Some).collect();
            let unit = if from.is_some() { AxisUnit::Factor } else { AxisUnit::Time };
            let y = SweepFigure { unit, ..figure(&axes, values) }.upward();
            (y.scale, y.min.unwrap(), y.max.unwrap())
        };
        assert_eq!(ends(Some(1.0), &[1.0, 1.005]), (AxisScale::Linear, 1.0, 1.01));
        assert_eq!(ends(Some(1.0), &[1.0, 1.37]), (AxisScale::Linear, 1.0, 1.4));
        assert_eq!(ends(Some(1.0), &[1.1, 14.2]), (AxisScale::Log, 1.0, 15.0));
        assert_eq!(ends(None, &[150.0, 70_000.0]), (AxisScale::Log, 100.0, 80_000.0));
        assert_eq!(ends(None, &[3.0, 7.0]), (AxisScale::Linear, 0.0, 8.0));
        let (scale, low, high) = ends(None, &[10_000.0, 10_590.0]);
        assert!(scale == AxisScale::Linear && low <= 10_000.0 && low > 9_900.0 && (10_590.0..10_700.0).contains(&high));
        assert_eq!(ends(None, &[5.0, 5.0]), (AxisScale::Linear, 0.0, 5.0));
        let errors = figure(&axes, vec![Some(-0.1), Some(0.2)]).upward();
        assert_eq!((errors.scale, errors.min, errors.max), (AxisScale::Linear, None, None));
    }

    proptest! {
        #[test]
        fn axes_end_above_their_values_and_not_far_above(value in 1e-9..1e9_f64) {
            let top = round_up(value);
            prop_assert!(top >= value && top <= value * 2.0 * (1.0 + 1e-12), "{} for {}", top, value);
        }

        /// Compares with a plain reference that counts cells one by one.
        #[test]
        fn places_of_cells_are_those_of_the_plain_way(sizes in proptest::collection::vec(1_usize..5, 1..5)) {
            let axes: Vec<Axis> = sizes.iter().map(|size| {
                let numbers: Vec<f64> = (0..*size).map(|at| at as f64).collect();
                axis("x", &numbers, false)
            }).collect();
            let all: Vec<&Axis> = axes.iter().collect();
            let every: Vec<usize> = (0..all.len()).collect();
            for (number, places) in combinations(&all, &every).into_iter().enumerate() {
                let fixed: Vec<(usize, usize)> = places.iter().copied().enumerate().skip(1).collect();
                prop_assert_eq!(index(&all, &fixed, (0, places[0])), number);
            }
        }
    }
}
