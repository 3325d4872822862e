//! The view's styles: few colors, from the sixteen of every terminal's theme, or none. A sign or a word accompanies every color.

use std::env;
use std::ffi::OsString;

use ratatui::style::{Color, Modifier, Style};

/// The styles of the view, with or without colors.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Theme {
    colored: bool,
}

impl Theme {
    /// The theme for the environment: no colors with any `NO_COLOR` (<https://no-color.org>) or with `CLICOLOR=0`.
    pub fn from_environment() -> Self {
        Self::from_variables(env::var_os("NO_COLOR"), env::var_os("CLICOLOR"))
    }

    /// The theme for these two variables; an empty one counts as unset.
    fn from_variables(no_color: Option<OsString>, clicolor: Option<OsString>) -> Self {
        let [no_color, clicolor] = [no_color, clicolor].map(|value| value.filter(|value| !value.is_empty()));
        Self { colored: no_color.is_none() && clicolor.is_none_or(|value| value != "0") }
    }

    /// The styles of a terminal without colors.
    #[cfg(test)]
    pub const fn plain() -> Self {
        Self { colored: false }
    }

    const fn color(self, color: Color) -> Style {
        if self.colored { Style::new().fg(color) } else { Style::new() }
    }

    /// The program's name and the title of the active table.
    pub const fn strong(self) -> Style {
        Style::new().add_modifier(Modifier::BOLD)
    }

    /// Column titles, lines and explanations.
    pub const fn quiet(self) -> Style {
        self.color(Color::DarkGray)
    }

    /// The title and the line of the active table.
    pub const fn focus(self) -> Style {
        self.color(Color::Cyan).add_modifier(Modifier::BOLD)
    }

    /// The bars of noise over time.
    pub const fn spark(self) -> Style {
        self.color(Color::Cyan)
    }

    /// Anything that must not be overlooked.
    pub const fn warning(self) -> Style {
        self.color(Color::Yellow)
    }

    /// The chosen row.
    pub const fn chosen(self) -> Style {
        Style::new().add_modifier(Modifier::REVERSED)
    }

    /// A noise ratio: plain below 0.1 %, alarming from 1 % on.
    pub fn noise(self, ratio: f64) -> Style {
        match ratio {
            ratio if ratio >= 0.01 => self.color(Color::Red),
            ratio if ratio >= 0.001 => self.color(Color::Yellow),
            _ => Style::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colors_are_as_the_environment_wants_them() {
        for (no_color, clicolor, colored) in [
            (None, None, true),
            (Some("1"), None, false),
            // Whatever its value.
            (Some("0"), None, false),
            (Some(""), None, true),
            (None, Some("0"), false),
            (None, Some("1"), true),
            (None, Some(""), true),
            (Some("1"), Some("1"), false),
        ] {
            let theme = Theme::from_variables(no_color.map(Into::into), clicolor.map(Into::into));
            assert_eq!(theme.colored, colored, "NO_COLOR={no_color:?} CLICOLOR={clicolor:?}");
            assert_eq!(theme.noise(0.5).fg.is_some(), colored);
        }
    }

    #[test]
    fn without_colors_what_matters_stands_out_all_the_same() {
        let theme = Theme::plain();
        for style in [theme.strong(), theme.focus(), theme.chosen()] {
            assert!(style.fg.is_none() && !style.add_modifier.is_empty(), "{style:?}");
        }
    }
}
