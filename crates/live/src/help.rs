//! The keys: all of them for the help, and the relevant ones for the last line.

use crate::table::Panel;
use crate::view::{Cover, View};

const KEYS: [(&str, &str); 16] = [
    ("tab, 1 2 3", "go to the next table, or to one of them"),
    ("up, down", "choose a row; also k and j, page up and down, home and end"),
    ("< >", "sort by the column before or behind; also left and right"),
    ("r", "turn the order round"),
    ("enter", "on a CPU: show only its sources and detours, or all again"),
    ("", "on a detour: show what happened in it, activity by activity"),
    ("t", "the same for the chosen detour, from any table"),
    ("a, esc", "show all CPUs again"),
    ("p, blank", "pause: the picture stands still, measuring goes on"),
    ("s", "save what was recorded as a run for becalm report"),
    ("z", "start all sums again from zero"),
    ("w", "what limits these numbers"),
    ("ctrl-l", "draw everything again"),
    ("ctrl-z", "stop, as a job of the shell"),
    ("q, ctrl-c", "quit; what was not saved is gone"),
    ("?", "this help; esc closes it"),
];

/// The text of the help, one line per key: the key and its action.
pub fn lines() -> Vec<(String, String)> {
    KEYS.iter().map(|(key, what)| (format!("{key:<12}"), (*what).to_owned())).collect()
}

/// The relevant keys by rank: those at the end are dropped first if there is little room.
pub fn footer(view: &View) -> Vec<(&'static str, &'static str)> {
    let leave = match &view.cover {
        Some(Cover::Detour(_) | Cover::Warnings | Cover::Help) => {
            return vec![("esc", "back"), ("\u{2191}\u{2193}", "scroll"), ("s", "save")];
        }
        None => ("q", "quit"),
    };
    let pause = ("p", if view.paused.is_some() { "go on" } else { "pause" });
    let enter = match view.panel {
        Panel::Cpus if view.pick.is_some() => ("\u{21b5}", "all CPUs"),
        Panel::Cpus => ("\u{21b5}", "only this CPU"),
        Panel::Sources => ("t", "detour"),
        Panel::Detours => ("\u{21b5}", "timeline"),
    };
    vec![
        leave,
        ("?", "help"),
        pause,
        ("s", "save"),
        enter,
        ("tab", "next table"),
        ("\u{2191}\u{2193}", "row"),
        ("<>", "sort"),
        ("r", "reverse"),
    ]
}
