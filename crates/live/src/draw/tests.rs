use std::sync::Arc;

use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::style::Color;

use super::*;
use crate::live::tests::fixture;

/// The lines of a terminal of this size after these keys.
fn screen(size: (u16, u16), keys: &[KeyCode]) -> Vec<String> {
    let (live, mut view) = (Arc::new(fixture::live()), View::default());
    let status =
        StatusLines { message: None, standing: vec!["drawn on CPU 3".to_owned(), "s saves the last 5.00s".to_owned()] };
    let mut terminal = Terminal::new(TestBackend::new(size.0, size.1)).unwrap();
    for key in keys {
        let mut tables = None;
        terminal.draw(|frame| tables = Some(draw(frame, &live, &view, &status, Theme::plain()))).unwrap();
        view.key(KeyEvent::new(*key, KeyModifiers::NONE), &tables.unwrap(), || Arc::clone(&live));
    }
    terminal.draw(|frame| drop(draw(frame, &live, &view, &status, Theme::plain()))).unwrap();
    let buffer = terminal.backend().buffer();
    assert!(
        buffer.content.iter().all(|cell| cell.fg == Color::Reset && cell.bg == Color::Reset),
        "no colors were wanted"
    );
    (0..size.1)
        .map(|y| (0..size.0).map(|x| buffer[(x, y)].symbol()).collect::<String>().trim_end().to_owned())
        .collect()
}

#[test]
fn a_usual_terminal() {
    insta::assert_snapshot!(screen((80, 24), &[]).join("\n"));
}

#[test]
fn a_large_terminal() {
    insta::assert_snapshot!(screen((120, 40), &[KeyCode::Char('>'), KeyCode::Down]).join("\n"));
}

#[test]
fn a_small_terminal_shows_one_table() {
    insta::assert_snapshot!(screen((40, 10), &[KeyCode::Char('2')]).join("\n"));
}

#[test]
fn a_detour_in_a_usual_terminal() {
    insta::assert_snapshot!(screen((80, 24), &[KeyCode::Char('t')]).join("\n"));
}

#[test]
fn a_terminal_that_is_too_small_says_so() {
    assert_eq!(screen((31, 8), &[])[0], "31x8 is too small: 32x8");
    assert!(screen((12, 2), &[])[0].starts_with("12x2 is too"));
}

#[test]
fn every_size_bears_every_cover() {
    for width in [1, 7, 32, 33, 47, 79, 80, 133, 300] {
        for height in [1, 2, 8, 9, 12, 16, 24, 70] {
            for keys in
                [&[][..], &[KeyCode::Char('?')], &[KeyCode::Char('w')], &[KeyCode::Char('t')], &[KeyCode::Char('3')]]
            {
                let lines = screen((width, height), keys);
                assert_eq!(lines.len(), usize::from(height));
            }
        }
    }
}

#[test]
fn the_figures_are_those_of_the_report() {
    let screen = screen((120, 40), &[]);
    let live = fixture::live();
    let cpu = &live.cpus()[1];
    let line = screen.iter().find(|line| line.starts_with("     1 ")).expect("CPU 1 has a line");
    for value in [Value::Ratio(cpu.figures.noise_ratio().unwrap()), Value::Time(cpu.figures.durations.max().unwrap())] {
        assert!(line.contains(&value.cell()), "{} in {line}", value.cell());
    }
}

#[test]
fn lines_are_shared_fairly() {
    assert_eq!(shares(15, [2, 30, 30]), [2, 7, 6]);
    assert_eq!(shares(30, [2, 3, 4]), [2, 3, 25]);
    assert_eq!(shares(2, [5, 5, 5]), [1, 1, 0]);
}
