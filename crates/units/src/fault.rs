//! Errors that know whether the user caused them and which parameter helps.
//!
//! A library states the facts and names a parameter as `{node}` in a [`Wording`]. Each front end formats it: the command line as `--node`,
//! Python as `node=`.

use std::error::Error as StdError;
use std::fmt::{self, Display};
use std::io;
use std::iter::successors;

pub use crate::{bail, ensure, faultless};

/// An error that the user may have caused or may be able to fix.
pub trait Fault: StdError {
    /// Whether the user requested something invalid.
    fn is_usage(&self) -> bool {
        false
    }

    /// The text of the error, with parameters by name.
    fn wording(&self) -> Wording {
        Wording::from(self.to_string())
    }

    /// A fix that follows the text, with the punctuation between them.
    fn hint(&self) -> Option<Wording> {
        None
    }
}

/// States that these errors are never the user's fault and have no hint.
#[macro_export]
macro_rules! faultless {
    ($($error:ty),+ $(,)?) => { $(impl $crate::fault::Fault for $error {})+ };
}

faultless!(io::Error, crate::UnknownName);

/// How a front end formats a parameter.
pub type Dialect = fn(Param<'_>) -> String;

/// A parameter in a text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Param<'a> {
    /// The name, with `_` between words.
    pub name: &'a str,
    /// The value mentioned in the text.
    pub setting: Setting<'a>,
}

/// The value of a parameter in a text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Setting<'a> {
    /// Any value.
    Any,
    /// Switched on.
    On,
    /// This value.
    To(&'a str),
}

/// The parameter as an option of a command line.
pub fn option(param: Param<'_>) -> String {
    let name = param.name.replace('_', "-");
    match param.setting {
        Setting::To(value) => format!("--{name} {value}"),
        Setting::Any | Setting::On => format!("--{name}"),
    }
}

/// The plain name, for texts outside front ends.
fn neutral(param: Param<'_>) -> String {
    format!("`{}`", param.name)
}

/// A text with parameters. `{}` stands for the next value, `{node}` for a parameter, `{partly!}` for one that is switched on, and `{node=}`
/// for one that is set to the next value.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Wording {
    template: &'static str,
    values: Vec<String>,
}

impl Wording {
    /// A text without values.
    pub const fn new(template: &'static str) -> Self {
        Self { template, values: Vec::new() }
    }

    /// The same with one more value.
    #[must_use]
    pub fn with(mut self, value: impl Display) -> Self {
        self.values.push(value.to_string());
        self
    }

    /// The text in the format of a front end.
    pub fn shown(&self, dialect: Dialect) -> String {
        let (mut text, mut rest) = (String::new(), self.template);
        let mut values = self.values.iter().map(String::as_str);
        while let Some((before, name, after)) = braces(rest) {
            let mut value = || values.next().unwrap_or_default();
            let param = |name, setting| dialect(Param { name, setting });
            let shown = match (name, name.strip_suffix('!'), name.strip_suffix('=')) {
                ("", ..) => value().to_owned(),
                (_, Some(name), _) => param(name, Setting::On),
                (_, _, Some(name)) => param(name, Setting::To(value())),
                _ => param(name, Setting::Any),
            };
            text = text + before + &shown;
            rest = after;
        }
        text + rest
    }
}

/// The first braces of a template: the text before, inside, and after them.
fn braces(template: &str) -> Option<(&str, &str, &str)> {
    let (before, rest) = template.split_once('{')?;
    let (name, after) = rest.split_once('}')?;
    Some((before, name, after))
}

impl<T: Into<String>> From<T> for Wording {
    /// A text that names no parameter.
    fn from(text: T) -> Self {
        Self { template: "{}", values: vec![text.into()] }
    }
}

impl Display for Wording {
    /// The text with names of parameters in backticks.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown(neutral))
    }
}

/// Arguments that can be parsed but are invalid, detected at their use.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct UsageError(Wording);

impl UsageError {
    /// A usage error with this text.
    pub fn new(text: impl Into<Wording>) -> Self {
        Self(text.into())
    }
}

impl Fault for UsageError {
    fn is_usage(&self) -> bool {
        true
    }

    fn wording(&self) -> Wording {
        self.0.clone()
    }
}

/// A plain text as an error.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Message(String);

faultless!(Message);

/// Any error, with the actions that failed because of it. For commands, which only report errors.
#[derive(Debug)]
pub struct Error {
    cause: Box<dyn Fault + Send + Sync>,
    /// The innermost first.
    attempts: Vec<String>,
}

/// A result that fails with any error.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// An error with this text.
    pub fn new(text: impl Into<String>) -> Self {
        Message(text.into()).into()
    }

    /// Adds the action that failed because of this error.
    #[must_use]
    pub fn context(mut self, attempt: impl Display) -> Self {
        self.attempts.push(attempt.to_string());
        self
    }

    /// Whether the user requested something invalid.
    pub fn is_usage(&self) -> bool {
        self.cause.is_usage()
    }

    /// The error and its causes, the outermost first.
    pub fn causes(&self) -> impl Iterator<Item = &(dyn StdError + 'static)> {
        let error: &(dyn StdError + 'static) = &*self.cause;
        successors(Some(error), |&error| error.source())
    }

    /// Actions, error and causes in one line, in the format of a front end.
    pub fn text(&self, dialect: Dialect) -> String {
        let attempts = self.attempts.iter().rev().cloned();
        let causes = self.causes().skip(1).map(ToString::to_string);
        attempts.chain([self.cause.wording().shown(dialect)]).chain(causes).collect::<Vec<_>>().join(": ")
    }

    /// A fix, to follow the text.
    pub fn hint(&self) -> Option<Wording> {
        self.cause.hint()
    }

    /// The text and the hint.
    pub fn message(&self, dialect: Dialect) -> String {
        self.text(dialect) + &self.hint().map(|hint| hint.shown(dialect)).unwrap_or_default()
    }
}

impl Display for Error {
    /// The text with names of parameters in backticks.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text(neutral))
    }
}

impl<E: Fault + Send + Sync + 'static> From<E> for Error {
    fn from(cause: E) -> Self {
        Self { cause: Box::new(cause), attempts: Vec::new() }
    }
}

/// Adds the action that failed to an error. For a missing value, the action is the error.
pub trait Context<T>: Sized {
    /// Adds an action that is computed only for an error. Fails if there is an error, or no value.
    fn with_context<D: Display>(self, attempt: impl FnOnce() -> D) -> Result<T>;

    /// Adds this action. Fails if there is an error, or no value.
    fn context(self, attempt: impl Display) -> Result<T> {
        self.with_context(|| attempt)
    }
}

impl<T, E: Into<Error>> Context<T> for Result<T, E> {
    fn with_context<D: Display>(self, attempt: impl FnOnce() -> D) -> Result<T> {
        self.map_err(|error| error.into().context(attempt()))
    }
}

impl<T> Context<T> for Option<T> {
    fn with_context<D: Display>(self, attempt: impl FnOnce() -> D) -> Result<T> {
        self.ok_or_else(|| Error::new(attempt().to_string()))
    }
}

/// Returns an [`Error`] with a formatted text.
#[macro_export]
macro_rules! bail {
    ($($text:tt)+) => { return Err($crate::fault::Error::new(format!($($text)+))) };
}

/// Returns an [`Error`] with a formatted text unless a condition holds.
#[macro_export]
macro_rules! ensure {
    ($holds:expr, $($text:tt)+) => { if !$holds { $crate::bail!($($text)+) } };
}

#[cfg(test)]
mod tests {
    use super::*;

    fn python(param: Param<'_>) -> String {
        let value = match param.setting {
            Setting::Any => "",
            Setting::On => "True",
            Setting::To(value) => value,
        };
        format!("{}={value}", param.name)
    }

    #[test]
    fn each_front_end_names_parameters_its_own_way() {
        let text = Wording::new("{}: {as_recorded!} or {phases=}, not {node_a} {}").with("a{b}c").with(5).with("{x}");
        assert_eq!(text.shown(option), "a{b}c: --as-recorded or --phases 5, not --node-a {x}");
        assert_eq!(text.shown(python), "a{b}c: as_recorded=True or phases=5, not node_a= {x}");
        assert_eq!(text.to_string(), "a{b}c: `as_recorded` or `phases`, not `node_a` {x}");
        let plain = Wording::from("interval={1ms,10ms}");
        assert_eq!(plain.shown(option), "interval={1ms,10ms}");
    }

    #[derive(Debug, thiserror::Error)]
    #[error("the library is missing")]
    struct Missing(#[source] io::Error);

    impl Fault for Missing {
        fn hint(&self) -> Option<Wording> {
            Some(Wording::new("; leave out {signal}"))
        }
    }

    #[test]
    fn a_message_has_attempts_causes_and_a_hint() {
        let failed: Result<(), Missing> = Err(Missing(io::Error::other("it is gone")));
        let error = failed.context("inner").with_context(|| "outer").unwrap_err();
        let text = "outer: inner: the library is missing: it is gone";
        assert_eq!(error.to_string(), text);
        assert_eq!(error.message(option), format!("{text}; leave out --signal"));
        assert!(error.causes().any(|cause| cause.is::<io::Error>()) && !error.is_usage());
    }

    #[test]
    fn usage_is_known_within_contexts() {
        let error = Error::from(UsageError::new(Wording::new("leave {node} out"))).context("x");
        assert!(error.is_usage());
        assert_eq!(error.message(option), "x: leave --node out");
        let refused = |is_even: bool| {
            ensure!(is_even, "{} is odd", 3);
            bail!("nothing");
        };
        let (odd, even): (Result<()>, Result<()>) = (refused(false), refused(true));
        assert_eq!([odd, even].map(|failed| failed.unwrap_err().to_string()), ["3 is odd", "nothing"]);
    }
}
