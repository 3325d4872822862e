//! Which columns of a table fit into a width, and their widths.

use crate::grid::Grid;
use becalm_report::Value;

use crate::table::Panel;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FittedColumn {
    /// Its index in the grid.
    pub column: usize,
    /// Its width in characters.
    pub width: usize,
}

/// The number of blanks between two columns.
const GAP: usize = 2;

/// The smallest width of a shortened name; below that, columns are dropped.
const SHORTEST: usize = 14;

/// The largest width of a name that gets the room left by the figures.
const LONGEST: usize = 60;

/// The columns of a table by rank: unlisted ones are dropped first, then those at the end.
const fn ranks(panel: Panel) -> &'static [&'static str] {
    match panel {
        Panel::Cpus => &[
            "cpu",
            "noise_ratio",
            "max_ns",
            "last_ns",
            "rate_hz",
            "recent_noise_ratio",
            "detours",
            "mean_ns",
            "total_ns",
        ],
        Panel::Sources => &[
            "source",
            "name",
            "share_ratio",
            "time_ratio",
            "growth",
            "max_ns",
            "count",
            "rate_hz",
            "whole_ns",
            "kind",
            "mean_ns",
            "total_ns",
        ],
        Panel::Detours => &[
            "cpu",
            "duration_ns",
            "mostly",
            "start_ns",
            // For a single detour.
            "nested",
            "self_ns",
            "bar",
            "kind",
            "offset_ns",
            "share_ratio",
            "detail",
        ],
    }
}

/// The minimum width of a value, which keeps columns in place while figures change.
const fn least(value: &Value) -> usize {
    match value {
        Value::Time(_) => 6,
        Value::Rate(_) | Value::Ratio(_) => 8,
        Value::Share(_) | Value::Count(_) => 6,
        _ => 0,
    }
}

/// The columns that fit, in the table's order. Names are shortened first, then columns are dropped; the sort column, which has a sign, and the first
/// of the ranks stay. A column without information is hidden (no row has its flag, or an error count is zero in all).
pub fn fit(grid: &Grid, sorted_by: Option<usize>, width: usize, panel: Panel) -> Vec<FittedColumn> {
    fit_by(grid, sorted_by, width, ranks(panel))
}

/// The same for a table with these ranks of its columns.
pub fn fit_by(grid: &Grid, sorted_by: Option<usize>, width: usize, ranks: &[&str]) -> Vec<FittedColumn> {
    let rank = |column: usize| {
        let rank = ranks.iter().position(|name| *name == grid.columns[column].name).unwrap_or(ranks.len());
        // Errors matter more than any figure.
        if grid.columns[column].name == "incomplete" { 1 } else { rank }
    };
    let says_something = |column: usize| {
        let silent = |value: &Value| matches!(value, Value::Flag(false) | Value::Count(0));
        grid.columns[column].name != "incomplete" || !grid.rows.iter().all(|row| silent(&row[column]))
    };
    let natural = |column: usize| {
        let title = grid.columns[column].title.chars().count() + usize::from(sorted_by == Some(column));
        let cells = grid.rows.iter().map(|row| row[column].cell().chars().count().max(least(&row[column])));
        cells.max().unwrap_or(0).max(title)
    };
    let mut shown: Vec<FittedColumn> = (0..grid.columns.len())
        .filter(|column| says_something(*column))
        .map(|column| FittedColumn { column, width: natural(column) })
        .collect();
    loop {
        let needed = shown.iter().map(|fitted| fitted.width + GAP).sum::<usize>().saturating_sub(GAP);
        let Some(mut excess) = needed.checked_sub(width).filter(|excess| *excess > 0) else { return shown };
        // The width that names can give up, the longest first.
        let give = |fitted: &FittedColumn| {
            let is_name = grid.columns[fitted.column].is_text && grid.columns[fitted.column].name != "bar";
            if is_name { fitted.width.saturating_sub(SHORTEST) } else { 0 }
        };
        if shown.iter().map(give).sum::<usize>() >= excess {
            while excess > 0 {
                let Some(longest) = shown.iter_mut().max_by_key(|fitted| give(fitted)) else { break };
                longest.width -= 1;
                excess -= 1;
            }
            return shown;
        }
        let least = (0..shown.len())
            .filter(|at| sorted_by != Some(shown[*at].column) && shown.len() > 1)
            .max_by_key(|at| rank(shown[*at].column));
        match least {
            Some(least) => drop(shown.remove(least)),
            None => return shown,
        }
    }
}

/// Gives names in the first column the room that is left, so figures stay in place while names change.
pub fn widen_names(fitted: &mut [FittedColumn], width: usize) {
    let taken = fitted.iter().map(|fitted| fitted.width + GAP).sum::<usize>().saturating_sub(GAP);
    if let Some(first) = fitted.first_mut() {
        first.width = (first.width + width.saturating_sub(taken)).min(LONGEST.max(first.width));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grid::GridColumn;
    use crate::grids;
    use crate::live::tests::fixture::live;
    use crate::view::View;
    use proptest::prelude::*;

    fn grid(columns: &[(&'static str, Value)]) -> Grid {
        Grid {
            columns: columns
                .iter()
                .map(|(name, value)| GridColumn { name, title: name, is_text: value.is_text() })
                .collect(),
            rows: vec![columns.iter().map(|(_, value)| value.clone()).collect()],
        }
    }

    fn sources() -> Grid {
        grid(&[
            ("source", Value::Text("kworker:page_reporting_process".to_owned())),
            ("kind", Value::Text("workqueue".to_owned())),
            ("count", Value::Count(16)),
            ("max_ns", Value::Time(3_210_000)),
            ("mean_ns", Value::Time(662_000)),
            ("total_ns", Value::Time(10_600_000)),
            ("share_ratio", Value::Share(0.137)),
        ])
    }

    fn names(grid: &Grid, fitted: &[FittedColumn]) -> Vec<&'static str> {
        fitted.iter().map(|fitted| grid.columns[fitted.column].name).collect()
    }

    #[test]
    fn names_are_shortened_before_columns_go() {
        let grid = sources();
        let all = fit(&grid, None, 200, Panel::Sources);
        assert_eq!((all.len(), all[0].width), (7, 30));
        let narrow = fit(&grid, None, 76, Panel::Sources);
        assert_eq!(narrow.len(), 7);
        assert!((SHORTEST..30).contains(&narrow[0].width));
        let narrower = fit(&grid, None, 40, Panel::Sources);
        assert_eq!(names(&grid, &narrower), ["source", "max_ns", "share_ratio"]);
    }

    #[test]
    fn names_get_the_room_that_is_left() {
        let width = |width| {
            let mut fitted = fit(&sources(), None, width, Panel::Sources);
            widen_names(&mut fitted, width);
            fitted[0].width
        };
        assert!(width(76) < 30);
        assert!((31..LONGEST).contains(&width(100)));
        assert_eq!(width(200), LONGEST);
    }

    #[test]
    fn the_column_that_is_sorted_by_stays() {
        let grid = sources();
        let mean = grid.column("mean_ns");
        assert_eq!(names(&grid, &fit(&grid, mean, 26, Panel::Sources)), ["source", "mean_ns"]);
    }

    /// Columns are identified by their JSON names. A renamed one would silently lose its rank, its color or its order.
    #[test]
    fn every_column_that_is_named_is_in_its_table() {
        let live = live();
        let longest = live.longest(None);
        let timeline = longest.first().expect("it has detours");
        let grids = |panel| match panel {
            Panel::Cpus => vec![grids::live_cpus(&live.cpus())],
            Panel::Sources => vec![grids::sources(&live.sources(None)), grids::counters(&[], None)],
            Panel::Detours => vec![grids::detours(&[timeline]), grids::activities(timeline)],
        };
        let has = |panel, name| grids(panel).iter().any(|grid| grid.column(name).is_some());
        for panel in Panel::ALL {
            let missing: Vec<&&str> = ranks(panel).iter().filter(|name| !has(panel, name)).collect();
            assert!(missing.is_empty(), "{panel:?}: {missing:?}");
            let order = View::default().order(panel);
            assert!(has(panel, order.column), "{panel:?}: {}", order.column);
        }
        for name in ["incomplete", "noise_ratio", "recent_noise_ratio"].into_iter().chain(crate::draw::TOTALS) {
            assert!(has(Panel::Cpus, name), "{name}");
        }
        assert!(has(Panel::Detours, "bar"));
    }

    #[test]
    fn what_went_wrong_is_shown_only_where_something_did() {
        let cpus = |incomplete| grid(&[("cpu", Value::Number(1)), ("incomplete", Value::Count(incomplete))]);
        assert_eq!(names(&cpus(0), &fit(&cpus(0), None, 80, Panel::Cpus)), ["cpu"]);
        assert_eq!(names(&cpus(2), &fit(&cpus(2), None, 80, Panel::Cpus)), ["cpu", "incomplete"]);
    }

    proptest! {
        #[test]
        fn columns_fit_the_width(width in 20_usize..200) {
            let fitted = fit(&sources(), None, width, Panel::Sources);
            prop_assert!(!fitted.is_empty());
            let taken = fitted.iter().map(|fitted| fitted.width + GAP).sum::<usize>() - GAP;
            prop_assert!(taken <= width, "{} of {}", taken, width);
        }
    }
}
