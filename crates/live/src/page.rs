//! The building blocks of the view: texts, labeled figures, lines with titles, table rows.

use crate::grid::Grid;
use becalm_report::Value;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;

use crate::columns::FittedColumn;
use crate::theme::Theme;

/// The screen to draw the view on.
pub struct Canvas<'a> {
    /// The cells of the terminal.
    pub buffer: &'a mut Buffer,
    /// The styles of the view.
    pub theme: Theme,
}

impl Canvas<'_> {
    /// Writes a text, cut to a width; returns the column after it.
    pub fn text(&mut self, x: u16, y: u16, width: u16, text: &str, style: Style) -> u16 {
        self.buffer.set_stringn(x, y, text, width.into(), style).0
    }

    /// Labeled figures next to each other, separated by two blanks, as many as fit.
    pub fn parts<'a>(&mut self, mut x: u16, y: u16, right: u16, parts: impl Iterator<Item = (&'a str, &'a str)>) {
        for (label, value) in parts {
            let gap = if x == 0 { 0 } else { 2 };
            let blank = u16::from(!label.is_empty());
            let length = gap + label.chars().count() as u16 + blank + value.chars().count() as u16;
            if x + length > right {
                return;
            }
            x = self.text(x + gap, y, right, label, self.theme.quiet()) + blank;
            x = self.text(x, y, right, value, Style::new());
        }
    }

    /// The line above a table.
    pub fn title(&mut self, area: Rect, title: &str, focused: bool) {
        let (line, style) = if focused { ("\u{2501}", self.theme.focus()) } else { ("\u{2500}", self.theme.quiet()) };
        self.text(area.x, area.y, area.width, &line.repeat(area.width.into()), style);
        let title = format!(" {} ", shortened(title, usize::from(area.width).saturating_sub(4)));
        self.text(area.x + 1, area.y, area.width - 1, &title, if focused { style } else { self.theme.strong() });
    }

    /// The titles of the columns, with a sign at the sort column; returns where they end.
    pub fn titles(&mut self, area: Rect, grid: &Grid, fitted: &[FittedColumn], sorted: Option<(usize, char)>) -> u16 {
        let mut x = area.x + 2;
        for (at, FittedColumn { column, width }) in fitted.iter().enumerate() {
            if at > 0 {
                x += 2;
            }
            let heading = &grid.columns[*column];
            let sign = sorted.filter(|(key, _)| key == column).map(|(_, sign)| sign);
            let title: String = heading.title.chars().chain(sign).collect();
            let style = if sign.is_some() { self.theme.strong() } else { self.theme.quiet() };
            self.cell(x, area.y, *width, &title, heading.is_text, style);
            x += *width as u16;
        }
        x
    }

    /// A row of a table, in the columns that fit.
    pub fn row(&mut self, area: Rect, row: &[Value], grid: &Grid, fitted: &[FittedColumn]) {
        let mut x = area.x + 2;
        for (at, FittedColumn { column, width }) in fitted.iter().enumerate() {
            if at > 0 {
                x += 2;
            }
            let value = &row[*column];
            let style = match (grid.columns[*column].name, value) {
                ("noise_ratio" | "recent_noise_ratio", Value::Ratio(ratio)) => self.theme.noise(*ratio),
                ("bar", _) => self.theme.spark(),
                _ => Style::new(),
            };
            self.cell(x, area.y, *width, &value.cell(), grid.columns[*column].is_text, style);
            x += *width as u16;
        }
    }

    fn cell(&mut self, x: u16, y: u16, width: usize, text: &str, left: bool, style: Style) {
        let text = shortened(text, width);
        let pad = if left { 0 } else { width - text.chars().count() };
        self.text(x + pad as u16, y, width as u16, &text, style);
    }
}

/// A text shortened to a width, with an ellipsis if it was cut.
pub fn shortened(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    let mut short: String = text.chars().take(width.saturating_sub(1)).collect();
    if width > 0 {
        short.push('\u{2026}');
    }
    short
}
