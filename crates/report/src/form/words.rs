//! Words and names for sentences and shells.

/// A path, quoted for a shell if necessary.
pub fn quoted(path: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+=:@%,".contains(c);
    if !path.is_empty() && path.chars().all(plain) {
        path.to_owned()
    } else {
        format!("'{}'", path.replace('\'', r"'\''"))
    }
}

/// Capitalizes a text.
pub fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_takes_a_path_as_one_word() {
        assert_eq!(quoted("quiet-1.becalm"), "quiet-1.becalm");
        assert_eq!(quoted("it's quiet.becalm"), r"'it'\''s quiet.becalm'");
        assert_eq!(quoted(""), "''");
    }
}
