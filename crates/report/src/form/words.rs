//! Words and names as a sentence or a shell takes them.

/// A path as a shell takes it.
pub(crate) fn quoted(path: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+=:@%,".contains(c);
    if !path.is_empty() && path.chars().all(plain) {
        path.to_owned()
    } else {
        format!("'{}'", path.replace('\'', r"'\''"))
    }
}

/// A text with its first letter as sentences have it.
pub(crate) fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// The word for so many things: `one` for a single one, else `many`.
pub(crate) const fn plural<'a>(count: u64, one: &'a str, many: &'a str) -> &'a str {
    if count == 1 { one } else { many }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_one_is_singular() {
        assert_eq!([0, 1, 2].map(|count| plural(count, "rank", "ranks")), ["ranks", "rank", "ranks"]);
    }

    #[test]
    fn a_shell_takes_a_path_as_one_word() {
        assert_eq!(quoted("quiet-1.becalm"), "quiet-1.becalm");
        assert_eq!(quoted("it's quiet.becalm"), r"'it'\''s quiet.becalm'");
        assert_eq!(quoted(""), "''");
    }
}
