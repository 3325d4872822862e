//! The view's styles: few colors, of the sixteen that every terminal has in its own theme, and none where they are
//! unwanted. Whatever a color says is also said by a sign or a word.

use std::env;

use ratatui::style::{Color, Modifier, Style};

/// How things look.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Theme {
    colored: bool,
}

impl Theme {
    /// As the environment wants it: no colors with `NO_COLOR` set to anything or `CLICOLOR=0`.
    pub fn from_environment() -> Self {
        let set = |name| env::var_os(name).filter(|value| !value.is_empty());
        Self { colored: set("NO_COLOR").is_none() && set("CLICOLOR").is_none_or(|value| value != "0") }
    }

    /// Without colors.
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

    /// Titles of columns, lines, what explains.
    pub const fn quiet(self) -> Style {
        self.color(Color::DarkGray)
    }

    /// The title and the line of the table that the keys act on.
    pub const fn focus(self) -> Style {
        self.color(Color::Cyan).add_modifier(Modifier::BOLD)
    }

    /// Noise over time.
    pub const fn spark(self) -> Style {
        self.color(Color::Cyan)
    }

    /// What must not be overlooked.
    pub const fn warning(self) -> Style {
        self.color(Color::Yellow)
    }

    /// The chosen row.
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
