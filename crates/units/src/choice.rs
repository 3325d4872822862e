//! Settings that offer several words, as the kernel writes them: the chosen one in brackets, `always [madvise] never`.

/// The chosen word of such a setting. A text without brackets is the choice itself.
pub fn chosen(text: &str) -> &str {
    bracketed(text).unwrap_or(text).trim()
}

/// The text between the first bracket and the one that closes it; `None` without brackets.
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
