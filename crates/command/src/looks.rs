//! The appearance of texts: colors, width, and pager. As in git, becalm's own settings (options, variables like `BECALM_COLOR`, files) take
//! precedence over those of all programs: `NO_COLOR`, `CLICOLOR_FORCE`, `COLUMNS` and `PAGER`.

use std::ffi::OsString;
use std::process::Command;
use std::sync::OnceLock;

use clap::{Args, ValueEnum};

use crate::color;

/// The heading of these options.
const HEADING: &str = "Options of every command";

/// The appearance of texts, and which defaults are read: options of every command.
#[derive(Args, Clone, Default, Debug)]
pub struct LooksArgs {
    /// When to color texts: auto, always or never; auto means on a terminal, unless NO_COLOR is set, or if CLICOLOR_FORCE is
    #[arg(
        long, global = true, value_name = "WHEN", default_value = "auto", hide_possible_values = true, hide_short_help = true,
        hide_long_help = true, help_heading = HEADING
    )]
    color: When,

    /// Width of texts, in characters [default: COLUMNS, or the width of the terminal]
    #[arg(
        long, global = true, value_name = "CHARACTERS", hide_short_help = true, hide_long_help = true, help_heading = HEADING,
        value_parser = clap::value_parser!(u16).range(40..)
    )]
    width: Option<u16>,

    /// Program that shows texts higher than the terminal; cat for none [default: PAGER, or less]
    #[arg(long, global = true, value_name = "COMMAND", hide_short_help = true, hide_long_help = true, help_heading = HEADING)]
    pager: Option<String>,

    /// Also page short texts, and texts of commands that measure
    #[arg(long, global = true, overrides_with = "no_pager", hide_short_help = true, hide_long_help = true, help_heading = HEADING)]
    paginate: bool,

    /// Use no pager
    #[arg(long, global = true, overrides_with = "paginate", hide_short_help = true, hide_long_help = true, help_heading = HEADING)]
    no_pager: bool,

    /// Ignore config files and variables such as BECALM_WIDTH
    #[arg(long, global = true, hide_short_help = true, hide_long_help = true, help_heading = HEADING)]
    no_config: bool,

    /// Do not save the error of a failed command for becalm doctor
    #[arg(long, global = true, hide_short_help = true, hide_long_help = true, help_heading = HEADING)]
    no_last_error: bool,
}

/// When to color.
#[derive(Clone, Copy, PartialEq, Eq, Default, ValueEnum, Debug)]
pub enum When {
    /// On a terminal, unless environment variables say otherwise.
    #[default]
    Auto,
    /// In files and pipes, too.
    Always,
    /// Nowhere.
    Never,
}

/// The options of the command line.
static LOOKS: OnceLock<LooksArgs> = OnceLock::new();

/// The options found before the command line was parsed, for help and errors.
static SEEN: OnceLock<LooksArgs> = OnceLock::new();

/// Sets the appearance of all texts from now on.
pub fn choose(looks: &LooksArgs) {
    color::choose(looks.color);
    // Set once: there is one command line.
    let _ = LOOKS.set(looks.clone());
}

/// Applies the options to the parser's own messages, even if the command line is invalid; `default` gives the default of an option.
pub fn choose_early(words: &[OsString], default: impl Fn(&str) -> Option<String>) {
    let mut seen = LooksArgs { pager: default("pager"), ..LooksArgs::default() };
    let mut color = default("color");
    let mut words = words.iter().map(|word| word.to_string_lossy()).take_while(|word| word != "--");
    while let Some(word) = words.next() {
        let (option, value) =
            word.split_once('=').map_or((&*word, None), |(option, value)| (option, Some(value.to_owned())));
        let mut value = || value.clone().or_else(|| words.next().map(|word| word.into_owned()));
        match option {
            "--color" => color = value(),
            "--pager" => seen.pager = value(),
            "--no-pager" => seen.no_pager = true,
            _ => {}
        }
    }
    seen.color = color.and_then(|color| When::from_str(&color, false).ok()).unwrap_or_default();
    color::choose(seen.color);
    let _ = SEEN.set(seen);
}

fn said() -> Option<&'static LooksArgs> {
    LOOKS.get().or_else(|| SEEN.get())
}

/// The requested width, in characters.
pub fn width() -> Option<usize> {
    said().and_then(|looks| looks.width).map(usize::from)
}

/// Whether colors are disabled.
pub fn forbids_color() -> bool {
    said().is_some_and(|looks| looks.color == When::Never)
}

/// Whether the user disabled defaults.
pub fn reads_no_defaults() -> bool {
    said().is_some_and(|looks| looks.no_config)
}

/// Whether the command's final error is kept.
pub fn keeps_errors() -> bool {
    !said().is_some_and(|looks| looks.no_last_error)
}

/// The choice of a pager, the program that shows long texts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PagerChoice {
    /// The program and its arguments; empty or `cat` for none.
    pub program: Option<&'static str>,
    /// Whether short texts go there as well; `Some(false)` if none does.
    pub wanted: Option<bool>,
}

/// The user's choice of a pager.
pub fn pager() -> PagerChoice {
    let Some(looks) = said() else { return PagerChoice { program: None, wanted: None } };
    let wanted = match (looks.paginate, looks.no_pager) {
        (true, _) => Some(true),
        (_, true) => Some(false),
        _ => None,
    };
    PagerChoice { program: looks.pager.as_deref(), wanted }
}

/// Makes another becalm, whose text appears within this one's, look the same.
pub fn pass_on(command: &mut Command) {
    command.arg("--no-pager");
    let Some(looks) = said() else { return };
    if let Some(color) = looks.color.to_possible_value().filter(|_| looks.color != When::Auto) {
        command.args(["--color", color.get_name()]);
    }
    if let Some(width) = looks.width {
        command.args(["--width", &width.to_string()]);
    }
}
