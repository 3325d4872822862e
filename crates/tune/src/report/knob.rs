//! Knobs and their values as text.

use becalm_model::tune::Family;

use crate::document::{Change, Knob};

/// The most characters of a value in a column; documents have all of it.
const LONGEST: usize = 24;

/// A value for a column: only the chosen word of a choice, and shortened if necessary.
pub(crate) fn shown(knob: &Knob, text: &str) -> String {
    let value = knob.value(text);
    if value.is_empty() {
        "-".to_owned()
    } else if value.chars().count() <= LONGEST {
        value.to_owned()
    } else {
        value.chars().take(LONGEST - 1).chain(['\u{2026}']).collect()
    }
}

/// The common key of changes that may share a row; `None` for a change with its own row.
pub(crate) fn alike(change: &Change) -> Option<String> {
    let path = match &change.knob {
        Knob::Affinity { .. } => return Some("tasks and kernel threads".to_owned()),
        Knob::File { path, .. } => path,
        _ => return None,
    };
    let text = path.to_string_lossy();
    if text.starts_with("/proc/irq/") && text.ends_with("_list") {
        return Some("interrupts".to_owned());
    }
    // The name of files that differ only in the CPU or the queue.
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    match change.family {
        Family::Cpuset | Family::Workqueue => None,
        _ => Some(format!("files {name}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_values_are_cut_and_choices_shown() {
        assert_eq!(shown(&Knob::choice("/x"), "always [madvise] never"), "madvise");
        assert_eq!(shown(&Knob::word("/x"), ""), "-");
        assert_eq!(shown(&Knob::cpu_mask("/x"), &"f".repeat(90)).chars().count(), 24);
    }
}
