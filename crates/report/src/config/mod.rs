//! The defaults in force and where each is set, for a terminal and as `becalm.config/1`.

use std::io::{self, Write};

use serde::Serialize;

use crate::form::paragraph::paragraph;
use crate::form::sheet::{Sheet, Style};
use crate::report::Report;

/// The defaults in force.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct ConfigReport {
    /// Whether no default is read at all, because `BECALM_CONFIG` is empty or `--no-config` was given.
    pub off: bool,
    /// Where files were looked for, the one that is over the others last.
    pub files: Vec<ConfigFile>,
    /// The defaults, command by command; with `--all` also those that are not set.
    pub settings: Vec<ConfigSetting>,
    /// The error in them; null if there is none. Other commands then refuse to run.
    pub error: Option<String>,
}

/// A file of defaults.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct ConfigFile {
    /// Whose it is.
    pub of: ConfigFileOf,
    /// Its path.
    pub path: String,
    /// Whether it is there.
    pub state: ConfigFileState,
    /// Why it was refused; null if it was read.
    pub why: Option<String>,
}

/// Whose a file of defaults is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ConfigFileOf {
    /// Of all users of the machine.
    System,
    /// Of one user.
    User,
    /// Named by `BECALM_CONFIG` instead of the others.
    Named,
}

/// What became of a file of defaults.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ConfigFileState {
    /// There is none.
    Absent,
    /// It is there and was read.
    Read,
    /// It is there and was not read.
    Refused,
}

impl ConfigFileState {
    const fn words(self) -> &'static str {
        match self {
            Self::Absent => "not there",
            Self::Read => "read",
            Self::Refused => "refused",
        }
    }
}

/// A default of an option.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct ConfigSetting {
    /// The words of the command, like `tune plan`; empty for what all commands have.
    pub command: String,
    /// The option's long name.
    pub option: String,
    /// Its values; none where what becalm does by itself depends on something.
    pub values: Vec<String>,
    /// The origin of the value: a file and a line, or a variable; null if it is not set.
    pub origin: Option<String>,
}

impl Report for ConfigReport {
    fn schema(&self) -> &'static str {
        "becalm.config/1"
    }

    fn document(&self) -> impl Serialize {
        self
    }

    fn text(&self, out: &mut Sheet<'_>) -> io::Result<()> {
        if let Some(error) = &self.error {
            paragraph(out, "  ! ", error)?;
        }
        if self.off {
            writeln!(out, "# no defaults are read")?;
        } else if self.settings.is_empty() {
            writeln!(out, "# no defaults are set; becalm config example prints a file to start with")?;
        }
        let mut section = "";
        let all: Vec<Vec<String>> = self.settings.iter().map(lines).collect();
        let widths = all.iter().flatten().map(|line| line.chars().count());
        let width = widths.filter(|width| *width <= REMARK).max().unwrap_or(0);
        for (at, (setting, lines)) in self.settings.iter().zip(&all).enumerate() {
            if setting.command != section {
                section = &setting.command;
                if at > 0 {
                    writeln!(out)?;
                }
                out.paint(Some(Style::Heading), &format!("[{section}]"))?;
                writeln!(out)?;
            }
            let remark = setting.origin.as_deref().unwrap_or("by itself");
            lines.iter().try_for_each(|line| writeln!(out, "{line:<width$}  # {remark}"))?;
        }
        Ok(())
    }
}

/// The column of the comments; longer lines do not shift those of the others.
const REMARK: usize = 40;

/// A setting as in a config file, one line per value.
fn lines(setting: &ConfigSetting) -> Vec<String> {
    let quoted = |value: &String| {
        let is_plain =
            value.trim() == value && !value.starts_with(['"', '#']) && !value.contains(" #") && !value.contains("\t#");
        if is_plain { value.clone() } else { format!("\"{value}\"") }
    };
    let key = &setting.option;
    match &setting.values[..] {
        [] => vec![format!("# {key}")],
        values => values.iter().map(|value| format!("{key} = {}", quoted(value))).collect(),
    }
}

/// Prints only the files. Fails if `out` cannot be written.
pub fn config_files(report: &ConfigReport, out: &mut Sheet<'_>) -> io::Result<()> {
    if report.off {
        return writeln!(out, "no file is read: BECALM_CONFIG is empty, or --no-config was given");
    }
    let width = report.files.iter().map(|file| file.path.chars().count()).max().unwrap_or(0);
    for file in &report.files {
        let why = file.why.as_ref().map_or_else(String::new, |why| format!(": {why}"));
        writeln!(out, "{:<width$}  {}{why}", file.path, file.state.words())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Form, text};

    fn setting(command: &str, option: &str, values: &[&str], origin: Option<&str>) -> ConfigSetting {
        let values = values.iter().map(|value| (*value).to_owned()).collect();
        ConfigSetting { command: command.into(), option: option.into(), values, origin: origin.map(str::to_owned) }
    }

    #[test]
    fn what_is_shown_can_stand_in_a_file() {
        let report = ConfigReport {
            off: false,
            files: Vec::new(),
            settings: vec![
                setting("", "color", &["never"], Some("BECALM_COLOR")),
                setting("record", "duration", &["10s"], Some("/etc/becalm/config:3")),
                setting("record", "cpus", &[], None),
                setting("predict", "without", &["a # b", "c"], Some("/etc/becalm/config:9")),
            ],
            error: None,
        };
        let text = text(&report, Form::default());
        assert_eq!(
            text,
            "color = never      # BECALM_COLOR\n\n[record]\nduration = 10s     # /etc/becalm/config:3\n# cpus             # by itself\n\n\
             [predict]\nwithout = \"a # b\"  # /etc/becalm/config:9\nwithout = c        # /etc/becalm/config:9\n"
        );
    }
}
