//! The keys: all of them for the help, and the relevant ones for the last line.

use crate::table::Panel;
use crate::view::{Cover, View};

const KEYS: [(&str, &str); 16] = [
    ("tab, 1 2 3", "select the next table, or one by its number"),
    ("up, down", "select a row; also k and j, page up and down, home and end"),
    ("< >", "sort by the previous or next column; also left and right"),
    ("r", "reverse the order"),
    ("enter", "on a CPU: show only its sources and detours, or all again"),
    ("", "on a detour (interruption): show its activities"),
    ("t", "the same for the selected detour, from any table"),
    ("a, esc", "show all CPUs again"),
    ("p, blank", "pause the display; measuring goes on"),
    ("s", "save a recording for becalm report"),
    ("z", "start all sums again from zero"),
    ("w", "the limits of these numbers"),
    ("ctrl-l", "draw everything again"),
    ("ctrl-z", "suspend; the shell's fg continues"),
    ("q, ctrl-c", "quit; unsaved data is lost"),
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
