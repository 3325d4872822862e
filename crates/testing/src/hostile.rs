//! Names with terminal control characters.

/// The start of a line forged by such a name.
const FORGED: &str = "FORGED";

/// A regular expression for names that move the cursor or change the writing direction.
pub const STEERING: &str = "[a-z]{0,3}[\\x1b\\x07\\x7f\\u{9b}\\u{85}\\u{202e}\\u{2066}\\t\\r]{1,4}[a-z ]{0,3}";

/// A control name that also starts lines.
#[must_use]
pub fn forging(name: &str) -> String {
    format!("{name}\n{FORGED}{name}\r{FORGED}\u{2028}{FORGED}\u{85}{FORGED}")
}

/// Checks the text of a report with such names.
///
/// # Panics
/// If the text contains control characters, or a forged line.
pub fn check_text(text: &str) {
    assert_eq!(becalm_units::printable_lines(text), text, "it would steer the terminal");
    assert!(!text.lines().any(|line| line.starts_with(FORGED)), "a line is forged:\n{text}");
}
