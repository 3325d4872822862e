//! Names made to steer the terminal of a report's reader.

/// The start of a line that such a name forges.
const FORGED: &str = "FORGED";

/// A regular expression for names that move the cursor or turn the direction of writing.
pub const STEERING: &str = "[a-z]{0,3}[\\x1b\\x07\\x7f\\u{9b}\\u{85}\\u{202e}\\u{2066}\\t\\r]{1,4}[a-z ]{0,3}";

/// A steering name that starts lines as well.
#[must_use]
pub fn forging(name: &str) -> String {
    format!("{name}\n{FORGED}{name}\r{FORGED}\u{2028}{FORGED}\u{85}{FORGED}")
}

/// Checks a report's text that shows such names.
///
/// # Panics
/// If the text steers the terminal, or one of its lines is forged.
pub fn check_text(text: &str) {
    assert_eq!(becalm_units::printable_lines(text), text, "it would steer the terminal");
    assert!(!text.lines().any(|line| line.starts_with(FORGED)), "a line is forged:\n{text}");
}
