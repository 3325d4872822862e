use ratatui::Terminal;
use ratatui::backend::TestBackend;

use super::*;
use crate::since::tests::{taker, update};

fn shown() -> Shown {
    let mut shown = Shown::default();
    for update in [update(10, &[taker("hog", 100), taker("daemon", 20)]), update(10, &[taker("hog", 300)])] {
        shown.since.add(&update);
        shown.update = update;
    }
    shown
}

#[test]
fn an_update_as_text_starts_with_the_answer_and_names_the_takers() {
    let mut text = Vec::new();
    shown().print(&mut text, false).unwrap();
    let text = String::from_utf8(text).unwrap();
    let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    let answer =
        "becalm top: solver (1 thread) could have run 300ms longer, 30.0% of its time; hog had 300ms of that (100%)";
    assert_eq!(lines[0], answer);
    assert_eq!(lines[1], "last 1.00s; observed 2.00s, waited 420ms");
    assert_eq!((lines[2], lines[3]), ("", "Threads"));
    let words = |line: usize| lines[line].split_whitespace().collect::<Vec<_>>();
    assert_eq!(words(5), ["solver", "(10)", "70.0%", "30.0%", "300ms", "420ms"]);
    assert_eq!(lines[7], "Takers of the CPU during waits");
    assert_eq!(words(9), ["hog", "others", "300ms", "100.0%", "2", "150ms", "400ms", "4", "150ms"]);
    // One that took nothing in this update keeps its sum.
    assert_eq!((words(10)[0], words(10)[6]), ("daemon", "20.0ms"));
    assert_eq!(lines.last(), Some(&""), "a blank line ends the block");
}

#[test]
fn lost_events_and_unknown_time_are_reported() {
    let mut lost = update(10, &[]);
    lost.lost_events = 7;
    lost.threads[0].ran_ns = Nanos::from_millis(600);
    lost.threads[0].unknown_ns = Nanos::from_millis(400);
    let mut shown = Shown::default();
    shown.since.add(&lost);
    shown.update = lost;
    let basis = shown.basis().join("; ");
    assert!(basis.ends_with("dropped events: 7, since start 7; not known 400ms"), "{basis}");
    let grid = shown.threads(false);
    assert!(fit(&grid, 80, &THREAD_RANKS).iter().any(|fitted| grid.columns[fitted.column].title == "not known"));
}

#[test]
fn it_fits_any_terminal() {
    let shown = shown();
    for (width, height) in [(1, 1), (20, 4), (32, 8), (80, 24), (140, 40)] {
        for helps in [false, true] {
            let choices = Choices { helps, ..Choices::default() };
            let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
            terminal.draw(|frame| draw(frame, &shown, &choices, Theme::plain())).unwrap();
            let text = format!("{}", terminal.backend());
            if width >= 80 && !helps {
                assert!(text.contains("could have run 300ms longer") && text.contains("hog"), "{text}");
            }
        }
    }
}

#[test]
fn keys_pause_help_and_quit() {
    let shown = shown();
    let mut choices = Choices::default();
    let mut press = |code| choices.key(KeyEvent::new(code, KeyModifiers::NONE), &shown);
    assert_eq!(press(KeyCode::Char('?')), Reaction::None);
    assert_eq!(press(KeyCode::Char('q')), Reaction::None, "q closes the help");
    assert_eq!(press(KeyCode::Char('p')), Reaction::None);
    assert_eq!(press(KeyCode::Char('q')), Reaction::Quit);
    assert!(choices.paused.is_some());
}
