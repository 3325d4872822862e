//! Parts of sentences.

/// A number with its noun, whose plural ends in `s`: `1 thread`, `2 threads`.
pub(crate) fn counted(number: usize, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}
