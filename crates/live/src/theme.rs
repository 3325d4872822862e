//! The view's styles: few colors, of the sixteen that every terminal has in its own theme, and none where they are
//! unwanted. Whatever a color says is also said by a sign or a word.

use std::env;
use std::ffi::OsString;

use ratatui::style::{Color, Modifier, Style};

/// The styles of the view, with colors or without.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Theme {
    colored: bool,
}

impl Theme {
    /// As the environment wants it: no colors with `NO_COLOR` set to anything (<https://no-color.org>) or
    /// `CLICOLOR=0`.
    pub fn from_environment() -> Self {
        Self::from_variables(env::var_os("NO_COLOR"), env::var_os("CLICOLOR"))
    }

    /// As the values of these two variables want it; one that is empty counts as not set.
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

    /// The name of the program, the title of the table that the keys act on.
    pub const fn strong(self) -> Style {
        Style::new().add_modifier(Modifier::BOLD)
    }

    /// The titles of columns, lines, and explanations.
    pub const fn quiet(self) -> Style {
        self.color(Color::DarkGray)
    }

    /// The title and the line of the table that the keys act on.
    pub const fn focus(self) -> Style {
        self.color(Color::Cyan).add_modifier(Modifier::BOLD)
    }

    /// The bars that show noise over time.
    pub const fn spark(self) -> Style {
        self.color(Color::Cyan)
    }

    /// What must not be overlooked.
    pub const fn warning(self) -> Style {
        self.color(Color::Yellow)
    }

    /// The row that the user has chosen.
    pub const fn chosen(self) -> Style {
        Style::new().add_modifier(Modifier::REVERSED)
    }

    /// A noise ratio: plain below a thousandth, from a hundredth on alarming.
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
            // Whatever it says.
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
