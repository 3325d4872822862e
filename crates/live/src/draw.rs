//! Draws the view on a terminal of any size: less important parts are dropped first.

use std::iter;

use becalm_report::Value;
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::Style;

use crate::columns::{fit, widen_names};
use crate::grid::Grid;
use crate::grids;
use crate::live::Live;
use crate::page::{Canvas, shortened};
use crate::table::{Panel, PanelTable, RowKey};
use crate::tables::{tables, total};
use crate::theme::Theme;
use crate::view::{Cover, View};
use crate::{help, spark};

/// The smallest terminal that shows anything.
const SMALLEST: (u16, u16) = (32, 8);

/// The lines of a table in addition to its rows: its title and those of its columns.
const HEAD: u16 = 2;

/// The columns of the line with the totals.
pub(crate) const TOTALS: [&str; 7] =
    ["noise_ratio", "rate_hz", "detours", "max_ns", "mean_ns", "total_ns", "incomplete"];

/// Information from the session.
#[derive(Clone, Default, Debug)]
pub struct StatusLines {
    /// The latest event or activity.
    pub message: Option<String>,
    /// The CPUs used for drawing, and the contents of a save.
    pub standing: Vec<String>,
}

/// Draws everything; returns the tables on the screen, for the keys.
pub fn draw(frame: &mut Frame<'_>, live: &Live, view: &View, status: &StatusLines, theme: Theme) -> [PanelTable; 3] {
    let tables = tables(live, view);
    let area = frame.area();
    let mut page = Canvas { buffer: frame.buffer_mut(), theme };
    if area.width < SMALLEST.0 || area.height < SMALLEST.1 {
        let text = format!("{}x{} is too small: {}x{}", area.width, area.height, SMALLEST.0, SMALLEST.1);
        page.text(area.x, area.y, area.width, &text, theme.warning());
        return tables;
    }
    let top = page.head(area, live, view);
    let bottom = page.foot(area, live, view, status);
    let body = Rect { y: top, height: bottom.saturating_sub(top), ..area };
    match &view.cover {
        None => page.tables(body, &tables, live, view),
        Some(Cover::Help) => page.lines(body, "Keys", &help::lines(), view.scroll),
        Some(Cover::Warnings) => page.lines(body, "Limits of these numbers", &warnings(live, area.width), view.scroll),
        Some(Cover::Detour(detour)) => {
            let incomplete = if detour.incomplete { ", INCOMPLETE: kernel events were dropped" } else { "" };
            let duration = Value::Time(detour.duration.get()).cell();
            let start = Value::Time(detour.start.get()).cell();
            let title = format!("Detour of {duration} on CPU {}, started at {start}{incomplete}", detour.id.cpu);
            page.detour(body, &title, &grids::activities(detour), view.scroll);
        }
    }
    tables
}

impl Canvas<'_> {
    /// The lines above the tables; returns the first one below.
    fn head(&mut self, area: Rect, live: &Live, view: &View) -> u16 {
        let right = area.right();
        let mut clock = Value::Time(live.elapsed().get()).cell();
        if view.paused.is_some() {
            clock = format!("PAUSED  {clock}");
        }
        let clock_at = right.saturating_sub(clock.chars().count() as u16);
        let x = self.text(area.x, area.y, area.width, "becalm top", self.theme.strong());
        let style = if view.paused.is_some() { self.theme.warning() } else { Style::new() };
        self.text(clock_at, area.y, right - clock_at, &clock, style);
        if let Some(node) = live.node() {
            let settings = &node.settings;
            // Defaults need no mention.
            let set = [("scheduling class", &settings.sched, "other"), ("threshold", &settings.threshold, "auto")];
            let set = set.into_iter().filter(|(_, value, default)| *value != default);
            let facts: Vec<String> = [node.node.clone(), format!("CPUs {}", live.cpu_list())]
                .into_iter()
                .chain(set.map(|(name, value, _)| format!("{name} {value}")))
                .collect();
            self.parts(x, area.y, clock_at.saturating_sub(1), facts.iter().map(|fact| ("", fact.as_str())));
        }
        let total = total(live, view.pick);
        let name = view.pick.map_or_else(|| "all CPUs".to_owned(), |cpu| format!("CPU {cpu}"));
        let columns = TOTALS.iter().filter_map(|name| total.column(name));
        // Errors are shown only if there are any.
        let columns =
            columns.filter(|at| total.columns[*at].name != "incomplete" || total.rows[0][*at] != Value::Count(0));
        let cells = columns.map(|at| (total.columns[at].title, total.rows[0][at].cell()));
        let cells: Vec<(&str, String)> = cells.collect();
        let parts = cells.iter().map(|(title, value)| (*title, value.as_str()));
        self.parts(area.x, area.y + 1, right, iter::once(("", name.as_str())).chain(parts));
        let mut y = area.y + 2;
        if let (Some(warning), true) = (live.warnings().first(), area.height >= 16) {
            let more = if live.warnings().len() > 1 {
                format!("  (w: all {})", live.warnings().len())
            } else {
                "  (w: why)".to_owned()
            };
            let room = area.width.saturating_sub(more.chars().count() as u16);
            let text = shortened(&format!("! {}", warning.message), room.into());
            let x = self.text(area.x, y, room, &text, self.theme.warning());
            self.text(x, y, right - x, &more, self.theme.quiet());
            y += 1;
        }
        y
    }

    /// The lines below the tables; returns the first of them.
    fn foot(&mut self, area: Rect, live: &Live, view: &View, status: &StatusLines) -> u16 {
        let mut y = area.bottom() - 1;
        let mut x = area.x;
        for (key, what) in help::footer(view) {
            let gap = if x == area.x { 0 } else { 2 };
            if x + gap + (key.chars().count() + 1 + what.chars().count()) as u16 > area.right() {
                continue;
            }
            x = self.text(x + gap, y, area.width, key, self.theme.strong()) + 1;
            x = self.text(x, y, area.width, what, self.theme.quiet());
        }
        if area.height >= 12 {
            y -= 1;
            if let Some(message) = &status.message {
                self.text(area.x, y, area.width, &shortened(message, area.width.into()), self.theme.focus());
            } else {
                let own = live.own_ratio().map(|ratio| Value::Ratio(ratio).cell());
                let own = own.map(|own| format!("becalm itself {own} (not counted)"));
                let parts = own.iter().chain(&status.standing).map(|part| ("", part.as_str()));
                self.parts(area.x, y, area.right(), parts);
            }
        }
        y
    }

    fn tables(&mut self, area: Rect, tables: &[PanelTable; 3], live: &Live, view: &View) {
        let least = 3 * (HEAD + 2);
        if area.height < least {
            let table = &tables[view.panel as usize];
            return self.table(area, table, live, view);
        }
        let mut y = area.y;
        let wanted = tables.each_ref().map(|table| table.rows.len().max(1) as u16);
        for (table, rows) in tables.iter().zip(shares(area.height - 3 * HEAD, wanted)) {
            self.table(Rect { y, height: HEAD + rows, ..area }, table, live, view);
            y += HEAD + rows;
        }
    }

    fn table(&mut self, area: Rect, table: &PanelTable, live: &Live, view: &View) {
        let focused = view.panel == table.panel;
        let number = table.panel as usize + 1;
        let title = format!("{number} {}", table.title);
        self.title(area, &title, focused);
        let body = Rect { y: area.y + 1, height: area.height - 1, ..area };
        if table.rows.is_empty() {
            self.text(area.x + 2, body.y, area.width - 2, table.empty, self.theme.quiet());
            return;
        }
        // On a narrow terminal the noise over time gets the room left by the figures.
        let with_sparks = table.panel == Panel::Cpus && usize::from(area.width) >= 3 * spark::LEAST;
        let spark_width = if with_sparks { spark::LEAST } else { 0 };
        let for_figures = (area.width as usize).saturating_sub(2);
        let mut fitted = fit(&table.grid, table.sorted_by, for_figures.saturating_sub(spark_width), table.panel);
        if table.panel == Panel::Sources {
            widen_names(&mut fitted, for_figures);
        }
        let sign = if view.order(table.panel).reverse { '\u{25b4}' } else { '\u{25be}' };
        let end = self.titles(body, &table.grid, &fitted, table.sorted_by.map(|column| (column, sign)));
        let rows = usize::from(body.height - 1);
        let at = view.selected(table);
        let first = if focused { (at + 1).saturating_sub(rows) } else { 0 };
        for (line, row) in (first..table.rows.len()).take(rows).enumerate() {
            let y = body.y + 1 + line as u16;
            let chosen = focused && row == at;
            self.row(Rect { y, height: 1, ..body }, &table.grid.rows[row], &table.grid, &fitted);
            let picked = matches!((&table.rows[row], view.pick), (RowKey::Cpu(cpu), Some(pick)) if *cpu == pick);
            let sign = match (chosen, picked) {
                (true, _) => "\u{25b8}",
                (false, true) => "\u{2022}",
                (false, false) => " ",
            };
            self.text(body.x, y, 1, sign, self.theme.focus());
            if chosen {
                self.buffer.set_style(Rect { x: body.x, y, width: end - body.x, height: 1 }, self.theme.chosen());
            }
        }
        if table.panel == Panel::Cpus {
            let area = Rect { x: end + 2, width: (body.right()).saturating_sub(end + 2), ..body };
            let shown: Vec<&RowKey> = table.rows.iter().skip(first).take(rows).collect();
            self.sparks(area, &shown, live);
        }
    }

    fn sparks(&mut self, area: Rect, rows: &[&RowKey], live: &Live) {
        if usize::from(area.width) < spark::LEAST.saturating_sub(2) {
            return;
        }
        let width = usize::from(area.width).min(spark::MOST);
        let histories: Vec<Vec<f64>> = rows
            .iter()
            .map(|row| match row {
                RowKey::Cpu(cpu) => live.history(*cpu, width),
                _ => Vec::new(),
            })
            .collect();
        let top = histories.iter().flatten().copied().fold(0.0, f64::max);
        let scale = if top > 0.0 {
            format!("last {width}s, \u{2588} = {}", Value::Ratio(top).cell())
        } else {
            format!("last {width}s")
        };
        self.text(area.x, area.y, area.width, &scale, self.theme.quiet());
        for (line, history) in histories.iter().enumerate() {
            let drawn = spark::line(history, top);
            let x = area.x + (width - drawn.chars().count()) as u16;
            self.text(x, area.y + 1 + line as u16, area.width, &drawn, self.theme.spark());
        }
    }

    /// A full-screen text.
    pub fn lines(&mut self, area: Rect, title: &str, lines: &[(String, String)], scroll: usize) {
        self.title(area, title, true);
        let rows = usize::from(area.height - 1);
        let first = scroll.min(lines.len().saturating_sub(rows));
        for (line, (key, what)) in lines.iter().skip(first).take(rows).enumerate() {
            let y = area.y + 1 + line as u16;
            let x = self.text(area.x + 2, y, area.width - 2, key, self.theme.strong());
            self.text(x, y, area.right().saturating_sub(x), what, Style::new());
        }
    }

    /// The activities of a detour, full-screen.
    fn detour(&mut self, area: Rect, title: &str, activities: &Grid, scroll: usize) {
        self.title(area, title, true);
        let body = Rect { y: area.y + 1, height: area.height - 1, ..area };
        if activities.rows.is_empty() {
            let why = "no kernel event was recorded in it";
            self.text(body.x + 2, body.y, body.width - 2, why, self.theme.quiet());
            return;
        }
        let rows = usize::from(body.height - 1);
        let fitted = fit(activities, None, usize::from(body.width) - 2, Panel::Detours);
        self.titles(body, activities, &fitted, None);
        let first = scroll.min(activities.rows.len().saturating_sub(rows));
        for (line, row) in activities.rows.iter().skip(first).take(rows).enumerate() {
            self.row(Rect { y: body.y + 1 + line as u16, height: 1, ..body }, row, activities, &fitted);
        }
    }
}

/// Distributes lines among tables: each gets what it wants if there is enough, else a fair share. The last one gets the remainder.
fn shares<const N: usize>(lines: u16, wanted: [u16; N]) -> [u16; N] {
    let mut shares = [0; N];
    let mut left = lines;
    while left > 0 {
        let hungry: Vec<usize> = (0..N).filter(|at| shares[*at] < wanted[*at]).collect();
        if hungry.is_empty() {
            shares[N - 1] += left;
            break;
        }
        for at in hungry {
            if left > 0 {
                shares[at] += 1;
                left -= 1;
            }
        }
    }
    shares
}

/// The warnings, wrapped, each with its fix.
fn warnings(live: &Live, width: u16) -> Vec<(String, String)> {
    let mut lines = Vec::new();
    for warning in live.warnings() {
        for (sign, text) in [("! ", &warning.message), ("\u{2192} ", &warning.advice)] {
            let indent = if sign == "! " { 0 } else { 2 };
            let mut lead = format!("{}{sign}", " ".repeat(indent));
            for line in becalm_report::wrap(text, usize::from(width).saturating_sub(6 + indent)) {
                let blank = " ".repeat(lead.chars().count());
                lines.push((std::mem::replace(&mut lead, blank), line));
            }
        }
    }
    if lines.is_empty() {
        lines.push((String::new(), "no known limits: every source is seen, and no event was dropped".to_owned()));
    }
    lines
}

#[cfg(test)]
mod tests;
