//! Makes foreign texts safe for a terminal.

use std::borrow::Cow;

/// A text that is safe within a line on a terminal. Names of threads, paths and contents of foreign files may contain characters that move
/// the cursor, start a line or change the writing direction. Each becomes U+FFFD, so the length stays the same.
pub fn printable(text: &str) -> Cow<'_, str> {
    replaced(text, is_printable)
}

/// The same for whole lines: line feeds stay.
pub fn printable_lines(text: &str) -> Cow<'_, str> {
    replaced(text, |c| c == '\n' || is_printable(c))
}

fn replaced(text: &str, stays: impl Fn(char) -> bool) -> Cow<'_, str> {
    if text.chars().all(&stays) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(text.chars().map(|c| if stays(c) { c } else { char::REPLACEMENT_CHARACTER }).collect())
}

fn is_printable(c: char) -> bool {
    // Separators of lines and paragraphs, and marks of the writing direction.
    let turns = matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    !c.is_control() && !turns
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_steers_a_terminal_is_replaced() {
        assert!(matches!(printable("k\u{e4}fer \u{1f980}: 100%"), Cow::Borrowed(_)));
        assert_eq!(
            printable("\u{1b}[2J\u{1b}]0;x\u{7}a\nb\tc\r\u{7f}\u{9b}1m"),
            "\u{fffd}[2J\u{fffd}]0;x\u{fffd}a\u{fffd}b\u{fffd}c\u{fffd}\u{fffd}\u{fffd}1m"
        );
        assert_eq!(printable("a\u{202e}b\u{2066}c\u{200f}d\u{2028}"), "a\u{fffd}b\u{fffd}c\u{fffd}d\u{fffd}");
        assert_eq!(printable_lines("a\nb\u{1b}"), "a\nb\u{fffd}");
    }

    proptest! {
        #[test]
        fn nothing_of_the_kind_is_left(text: String) {
            let shown = printable(&text);
            prop_assert!(shown.chars().all(is_printable));
            prop_assert_eq!(shown.chars().count(), text.chars().count());
            prop_assert!(printable_lines(&text).chars().all(|c| c == '\n' || is_printable(c)));
        }
    }
}
