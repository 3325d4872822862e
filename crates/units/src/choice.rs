//! Kernel settings with several words, the chosen one in brackets: `always [madvise] never`.

/// The chosen word of such a setting. A text without brackets is itself the choice.
pub fn chosen(text: &str) -> &str {
    bracketed(text).unwrap_or(text).trim()
}

/// The text in the first pair of brackets; `None` without one.
pub fn bracketed(text: &str) -> Option<&str> {
    let (_, rest) = text.split_once('[')?;
    rest.split_once(']').map(|(inside, _)| inside)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_word_in_brackets_is_chosen() {
        assert_eq!(
            (chosen("always [madvise] never\n"), bracketed("always [madvise] never")),
            ("madvise", Some("madvise"))
        );
        assert_eq!((bracketed("local global [x86-tsc]\n"), bracketed("local global\n")), (Some("x86-tsc"), None));
        assert_eq!((chosen("performance"), chosen("a ] b [")), ("performance", "a ] b ["));
    }
}
