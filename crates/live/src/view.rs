//! The user's choices: table, row, order and CPU; and the effect of keys on them. No drawing.

use std::sync::Arc;

use becalm_analyze::summary::Timeline;
use becalm_units::CpuId;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use crate::live::Live;
use crate::table::{Order, Panel, PanelTable, RowKey};

/// A screen in place of the tables.
#[derive(Clone, Debug)]
pub enum Cover {
    /// The help: the action of each key.
    Help,
    /// Everything that limits the numbers.
    Warnings,
    Detour(Arc<Timeline>),
}

/// The action requested by a key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Action {
    /// Nothing has to be done; the view itself may have changed.
    None,
    /// Quit the program; the key `q`.
    Quit,
    /// Save the recording.
    Save,
    /// Stop the process as a job of the shell.
    Suspend,
    /// Reset all sums to zero.
    Forget,
    /// Redraw the whole screen, for example after another program wrote on it.
    Redraw,
}

/// The chosen row, and its last position.
#[derive(Clone, Default, Debug)]
struct Cursor {
    row: Option<RowKey>,
    at: usize,
}

/// The user's choices.
#[derive(Clone, Debug)]
pub struct View {
    /// The table that the keys act on.
    pub panel: Panel,
    /// The screen in place of the tables, if any.
    pub cover: Option<Cover>,
    /// The CPU to which sources and detours are limited; `None` for all.
    pub pick: Option<CpuId>,
    /// The frozen data while paused. Measuring continues.
    pub paused: Option<Arc<Live>>,
    orders: [Order; 3],
    cursors: [Cursor; 3],
    /// The first line of the cover that is shown.
    pub scroll: usize,
}

impl Default for View {
    fn default() -> Self {
        let order = |column| Order { column, reverse: false };
        Self {
            panel: Panel::Cpus,
            cover: None,
            pick: None,
            paused: None,
            orders: [order("cpu"), order("whole_ns"), order("duration_ns")],
            cursors: Default::default(),
            scroll: 0,
        }
    }
}

impl View {
    /// The sort order of a table.
    pub const fn order(&self, panel: Panel) -> Order {
        self.orders[panel as usize]
    }

    /// The index of the chosen row in the present order: that of the same row, or the nearest to its last position.
    pub fn selected(&self, table: &PanelTable) -> usize {
        let cursor = &self.cursors[table.panel as usize];
        let found = cursor.row.as_ref().and_then(|row| table.rows.iter().position(|other| other == row));
        found.unwrap_or(cursor.at).min(table.rows.len().saturating_sub(1))
    }

    /// Handles a key. `tables` are those on the screen, `live` the present data.
    pub fn key(&mut self, key: KeyEvent, tables: &[PanelTable; 3], live: impl FnOnce() -> Arc<Live>) -> Action {
        if key.kind == KeyEventKind::Release {
            return Action::None;
        }
        if key.modifiers.contains(KeyModifiers::CONTROL) {
            return match key.code {
                KeyCode::Char('c') => Action::Quit,
                KeyCode::Char('z') => Action::Suspend,
                KeyCode::Char('l') => Action::Redraw,
                _ => Action::None,
            };
        }
        match key.code {
            KeyCode::Char('q') if self.cover.is_none() => return Action::Quit,
            KeyCode::Char('s') => return Action::Save,
            KeyCode::Char('z') => {
                self.paused = None;
                return Action::Forget;
            }
            KeyCode::Char('p' | ' ') => self.paused = if self.paused.is_some() { None } else { Some(live()) },
            KeyCode::Char('?' | 'h') | KeyCode::F(1) => self.toggle(Cover::Help),
            KeyCode::Char('w') => self.toggle(Cover::Warnings),
            _ if self.cover.is_some() => self.key_on_cover(key.code),
            _ => self.key_on_tables(key.code, tables),
        }
        Action::None
    }

    fn toggle(&mut self, cover: Cover) {
        let same =
            self.cover.as_ref().is_some_and(|other| std::mem::discriminant(other) == std::mem::discriminant(&cover));
        self.cover = if same { None } else { Some(cover) };
        self.scroll = 0;
    }

    fn key_on_cover(&mut self, code: KeyCode) {
        match code {
            KeyCode::Esc | KeyCode::Enter | KeyCode::Char('q' | 't') | KeyCode::Backspace => self.cover = None,
            KeyCode::Up | KeyCode::Char('k') => self.scroll = self.scroll.saturating_sub(1),
            KeyCode::Down | KeyCode::Char('j') => self.scroll += 1,
            KeyCode::PageUp => self.scroll = self.scroll.saturating_sub(10),
            KeyCode::PageDown => self.scroll += 10,
            KeyCode::Home => self.scroll = 0,
            _ => {}
        }
    }

    fn key_on_tables(&mut self, code: KeyCode, tables: &[PanelTable; 3]) {
        let table = &tables[self.panel as usize];
        let at = self.selected(table);
        match code {
            KeyCode::Tab => self.panel = Panel::ALL[(self.panel as usize + 1) % 3],
            KeyCode::BackTab => self.panel = Panel::ALL[(self.panel as usize + 2) % 3],
            KeyCode::Char(digit @ '1'..='3') => self.panel = Panel::ALL[digit as usize - '1' as usize],
            KeyCode::Up | KeyCode::Char('k') => self.move_to(table, at.saturating_sub(1)),
            KeyCode::Down | KeyCode::Char('j') => self.move_to(table, at + 1),
            KeyCode::PageUp => self.move_to(table, at.saturating_sub(10)),
            KeyCode::PageDown => self.move_to(table, at + 10),
            KeyCode::Home | KeyCode::Char('g') => self.move_to(table, 0),
            KeyCode::End | KeyCode::Char('G') => self.move_to(table, usize::MAX),
            KeyCode::Char('>' | 'o') | KeyCode::Right => self.sort_by_next(table, 1),
            KeyCode::Char('<' | 'O') | KeyCode::Left => self.sort_by_next(table, -1),
            KeyCode::Char('r') => {
                let order = &mut self.orders[self.panel as usize];
                order.reverse = !order.reverse;
            }
            KeyCode::Esc | KeyCode::Char('a') => self.pick = None,
            KeyCode::Char('t') => self.show_detour(&tables[Panel::Detours as usize]),
            KeyCode::Enter => match table.rows.get(at) {
                Some(RowKey::Cpu(cpu)) => self.pick = if self.pick == Some(*cpu) { None } else { Some(*cpu) },
                Some(RowKey::Detour(_)) => self.show_detour(table),
                _ => {}
            },
            _ => {}
        }
    }

    fn show_detour(&mut self, table: &PanelTable) {
        if let Some(RowKey::Detour(detour)) = table.rows.get(self.selected(table)) {
            self.cover = Some(Cover::Detour(Arc::clone(detour)));
            self.scroll = 0;
        }
    }

    fn move_to(&mut self, table: &PanelTable, at: usize) {
        let at = at.min(table.rows.len().saturating_sub(1));
        self.cursors[table.panel as usize] = Cursor { row: table.rows.get(at).cloned(), at };
    }

    fn sort_by_next(&mut self, table: &PanelTable, step: isize) {
        let columns = &table.grid.columns;
        let Some(last) = columns.len().checked_sub(1) else { return };
        let order = &mut self.orders[table.panel as usize];
        let now = columns.iter().position(|column| column.name == order.column).unwrap_or(0);
        let next = match now.checked_add_signed(step) {
            Some(next) if next <= last => next,
            Some(_) => 0,
            None => last,
        };
        *order = Order { column: columns[next].name, reverse: false };
    }
}

#[cfg(test)]
mod tests;
