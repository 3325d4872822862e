use std::collections::HashMap;

use ratatui::Terminal;
use ratatui::backend::TestBackend;
use serde_json::Value;

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

/// The sums of all lines are those since the start.
#[test]
fn an_update_for_scripts_is_one_line_whose_parts_add_up() {
    let (mut shown, mut sum, mut grown) = (Shown::default(), HashMap::new(), 0);
    let updates = [
        update(10, &[taker("hog", 100), taker("daemon", 20)]),
        update(10, &[taker("hog", 300)]),
        ObservedDoc { lost_events: 7, ..update(11, &[]) },
    ];
    for (number, update) in updates.into_iter().enumerate() {
        shown.since.add(&update);
        shown.update = update;
        let mut text = Vec::new();
        line::print(&shown, &mut text).unwrap();
        let text = String::from_utf8(text).unwrap();
        assert_eq!(text.find('\n'), Some(text.len() - 1), "{text}");
        let line: Value = serde_json::from_str(&text).unwrap();
        assert_eq!((&line["schema"], &line["headline"]), (&"becalm.top-observed/1".into(), &shown.answer().into()));
        let ns = |value: &Value, name: &str| value[name].as_i64().unwrap();
        let second = 1_000_000_000;
        assert_eq!((ns(&line, "start_ns"), ns(&line, "duration_ns")), (number as i64 * second, second));
        let thread = &line["threads"][0];
        let parts = ["ran_ns", "waited_ns", "asleep_ns", "unknown_ns"].map(|name| ns(thread, name));
        assert_eq!(parts.iter().sum::<i64>(), ns(thread, "wall_ns"));
        grown += ns(thread, "waited_ns");
        let since = &line["since_start"];
        assert_eq!((ns(since, "waited_ns"), ns(since, "taken_ns")), (grown, grown));
        assert_eq!(ns(since, "observed_ns"), (number as i64 + 1) * second);
        assert_eq!(ns(&line, "lost_events"), ns(since, "lost_events"));
        for taker in line["takers"].as_array().unwrap() {
            let so_far: &mut (i64, i64) = sum.entry(taker["source"].as_str().unwrap().to_owned()).or_default();
            *so_far = (so_far.0 + ns(taker, "ns"), so_far.1 + ns(taker, "count"));
            assert_eq!(*so_far, (ns(taker, "since_ns"), ns(taker, "since_count")), "{taker}");
        }
        assert_eq!(line["takers"].as_array().unwrap().len(), 2, "one that took nothing keeps its sum: {line}");
    }
    assert_eq!(sum["hog"], (400_000_000, 4));
    assert_eq!(shown.since.waited(10, 10), Nanos::ZERO, "the first thread has ended");
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
