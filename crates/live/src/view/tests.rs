use super::*;
use crate::live::tests::fixture;
use crate::tables::tables;

/// A view of a small recording, for pressing keys one by one.
struct Desk {
    live: Arc<Live>,
    view: View,
}

impl Desk {
    fn new() -> Self {
        Self { live: Arc::new(fixture::live()), view: View::default() }
    }

    fn tables(&self) -> [PanelTable; 3] {
        tables(self.view.paused.as_ref().unwrap_or(&self.live), &self.view)
    }

    fn press(&mut self, code: KeyCode) -> Action {
        self.view.key(KeyEvent::new(code, KeyModifiers::NONE), &self.tables(), || Arc::clone(&self.live))
    }

    fn types(&mut self, keys: &str) {
        for key in keys.chars() {
            assert_eq!(self.press(KeyCode::Char(key)), Action::None);
        }
    }

    fn chosen(&self) -> RowKey {
        let tables = self.tables();
        let table = &tables[self.view.panel as usize];
        table.rows[self.view.selected(table)].clone()
    }

    fn cpus(&self) -> Vec<u32> {
        let number = |row: &RowKey| match row {
            RowKey::Cpu(cpu) => cpu.get(),
            other => panic!("{other:?} is no CPU"),
        };
        self.tables()[0].rows.iter().map(number).collect()
    }
}

#[test]
fn a_table_is_sorted_by_each_of_its_columns() {
    let mut desk = Desk::new();
    assert_eq!(desk.cpus(), [0, 1, 2]);
    // By noise, the noisiest first; then reversed.
    desk.types(">");
    assert_eq!(desk.view.order(Panel::Cpus).column, "noise_ratio");
    assert_eq!(desk.cpus(), [1, 2, 0]);
    desk.types("r");
    assert_eq!(desk.cpus(), [0, 2, 1]);
    // Cycles through all of them and back.
    let columns = desk.tables()[0].grid.columns.len();
    desk.types(&">".repeat(columns));
    assert_eq!(desk.view.order(Panel::Cpus), Order { column: "noise_ratio", reverse: false });
    desk.types("<<");
    assert_eq!(desk.view.order(Panel::Cpus).column, desk.tables()[0].grid.columns[columns - 1].name);
}

#[test]
fn the_chosen_row_stays_chosen_where_the_order_changes() {
    let mut desk = Desk::new();
    desk.press(KeyCode::Down);
    assert_eq!(desk.chosen(), RowKey::Cpu(CpuId::new(1)));
    desk.types(">");
    assert_eq!((desk.chosen(), desk.cpus()[0]), (RowKey::Cpu(CpuId::new(1)), 1));
    // The cursor stops at the ends.
    desk.press(KeyCode::PageUp);
    desk.press(KeyCode::Up);
    assert_eq!(desk.view.selected(&desk.tables()[0]), 0);
    desk.press(KeyCode::End);
    desk.press(KeyCode::Down);
    assert_eq!(desk.view.selected(&desk.tables()[0]), 2);
}

#[test]
fn a_picked_cpu_has_its_own_sources_and_detours() {
    let mut desk = Desk::new();
    let all = desk.tables().map(|table| table.rows.len());
    desk.types("j");
    desk.press(KeyCode::Enter);
    assert_eq!(desk.view.pick, Some(CpuId::new(1)));
    let tables_of_one = desk.tables();
    assert_eq!(tables_of_one[0].rows.len(), all[0]);
    assert!(tables_of_one[1].title.ends_with("of CPU 1") && tables_of_one[2].rows.len() < all[2]);
    for row in &tables_of_one[2].rows {
        assert!(matches!(row, RowKey::Detour(detour) if detour.id.cpu == CpuId::new(1)));
    }
    desk.press(KeyCode::Esc);
    assert_eq!(desk.view.pick, None);
}

#[test]
fn a_detour_is_opened_and_closed() {
    let mut desk = Desk::new();
    desk.press(KeyCode::BackTab);
    assert_eq!(desk.view.panel, Panel::Detours);
    let RowKey::Detour(longest) = desk.chosen() else { panic!("the panel holds detours") };
    desk.press(KeyCode::Enter);
    assert!(matches!(&desk.view.cover, Some(Cover::Detour(shown)) if shown.start == longest.start));
    // Keys of the tables have no effect below it.
    desk.types(">");
    desk.press(KeyCode::Tab);
    assert_eq!((desk.view.panel, desk.view.order(Panel::Detours).column), (Panel::Detours, "duration_ns"));
    assert_eq!(desk.press(KeyCode::Char('q')), Action::None);
    assert!(desk.view.cover.is_none());
    desk.types("1t");
    assert!(desk.view.cover.is_some());
}

#[test]
fn a_pause_holds_the_picture() {
    let mut desk = Desk::new();
    desk.types("p");
    let before = desk.tables()[0].grid.clone();
    Arc::make_mut(&mut desk.live).forget();
    assert_eq!(desk.tables()[0].grid, before);
    desk.types("p");
    assert_ne!(desk.tables()[0].grid, before);
}

#[test]
fn keys_that_others_answer() {
    let mut desk = Desk::new();
    for (key, action) in [('q', Action::Quit), ('s', Action::Save), ('z', Action::Forget), ('x', Action::None)] {
        assert_eq!(desk.press(KeyCode::Char(key)), action);
    }
    for (key, action) in [('c', Action::Quit), ('z', Action::Suspend), ('l', Action::Redraw), ('s', Action::None)] {
        let key = KeyEvent::new(KeyCode::Char(key), KeyModifiers::CONTROL);
        assert_eq!(desk.view.key(key, &desk.tables(), || Arc::clone(&desk.live)), action);
    }
    // Key releases, which some terminals report, do nothing.
    let release = KeyEvent::new_with_kind(KeyCode::Char('q'), KeyModifiers::NONE, KeyEventKind::Release);
    assert_eq!(desk.view.key(release, &desk.tables(), || Arc::clone(&desk.live)), Action::None);
}

#[test]
fn an_empty_view_bears_every_key() {
    let mut desk = Desk { live: Arc::default(), view: View::default() };
    for key in "jkgG<>or123tahw?p za".chars() {
        desk.press(KeyCode::Char(key));
        desk.tables();
    }
    desk.press(KeyCode::Enter);
}
