//! A line of a settings file: `key = value`, a section in brackets, or a comment after `#`.

use crate::printable;

/// The content of a line of a settings file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SettingLine<'a> {
    /// A blank line or a comment.
    Nothing,
    /// The start of a section with this name; its words are separated by single spaces.
    Section(&'a str),
    /// A setting. The value may be empty.
    Setting {
        /// Its name.
        key: &'a str,
        /// Its value, without quotes around it.
        value: &'a str,
    },
}

impl<'a> SettingLine<'a> {
    /// Parses a line. Quotes around a value make all characters in it literal; outside of them a space and `#` start a comment. Fails if it
    /// is none of the three.
    pub fn parse(line: &'a str) -> Result<Self, String> {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            return Ok(Self::Nothing);
        }
        if let Some(section) = line.strip_prefix('[') {
            let (name, rest) = section.split_once(']').ok_or("a bracket is not closed")?;
            refuse_rest("section", rest)?;
            let name = name.trim();
            if name.is_empty() || name.split(' ').any(str::is_empty) {
                return Err(format!("'{}' is no name of a section: write it like [record]", printable(name)));
            }
            return Ok(Self::Section(name));
        }
        let (key, value) = line.split_once('=').ok_or_else(|| format!("'{}' is not key = value", printable(line)))?;
        let value = value.trim();
        let value = if let Some(quoted) = value.strip_prefix('"') {
            let (value, rest) = quoted.split_once('"').ok_or("a quote is not closed")?;
            refuse_rest("value", rest)?;
            value
        } else if value.starts_with('#') {
            ""
        } else {
            let remark = value.match_indices('#').map(|(at, _)| at).find(|at| value[..*at].ends_with([' ', '\t']));
            remark.map_or(value, |at| value[..at].trim_end())
        };
        Ok(Self::Setting { key: key.trim(), value })
    }
}

/// Refuses text after `what`, except for a comment.
fn refuse_rest(what: &str, rest: &str) -> Result<(), String> {
    let rest = rest.trim();
    if rest.is_empty() || rest.starts_with('#') {
        return Ok(());
    }
    Err(format!("unexpected '{}' behind the {what}", printable(rest)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_settings_sections_or_nothing() {
        let setting = |key, value| Ok(SettingLine::Setting { key, value });
        for (line, said) in [
            ("", Ok(SettingLine::Nothing)),
            ("  # remark = no", Ok(SettingLine::Nothing)),
            ("[record]", Ok(SettingLine::Section("record"))),
            (" [ tune plan ] # of plans", Ok(SettingLine::Section("tune plan"))),
            ("duration = 10s", setting("duration", "10s")),
            ("duration=10s\t# short", setting("duration", "10s")),
            ("node = a#b", setting("node", "a#b")),
            ("node = \"a # b\" # c", setting("node", "a # b")),
            ("pager =", setting("pager", "")),
            ("pager = # none", setting("pager", "")),
            ("trigger = \"detour>1ms\"", setting("trigger", "detour>1ms")),
            ("a = b = c", setting("a", "b = c")),
        ] {
            assert_eq!(SettingLine::parse(line), said, "{line}");
        }
        for (line, why) in [
            ("duration", "'duration' is not key = value"),
            ("[record", "a bracket is not closed"),
            ("[record] x", "unexpected 'x' behind the section"),
            ("[]", "'' is no name of a section"),
            ("[tune  plan]", "'tune  plan' is no name of a section"),
            ("a = \"b", "a quote is not closed"),
            ("a = \"b\" c", "unexpected 'c' behind the value"),
            ("\u{1b}[2J", "'\u{fffd}[2J' is not key = value"),
        ] {
            let error = SettingLine::parse(line).unwrap_err();
            assert!(error.starts_with(why), "{line}: {error}");
        }
    }
}
