//! A report as a value: sections with blocks, which [`terminal`](super::terminal) and [`html`](crate::html) write.

use becalm_model::audit::{Answer, Availability, FirstStep};
use becalm_model::node::Warning;
use becalm_units::Named;

use crate::form::plot::Curve;
use crate::form::table::Table;
use crate::html::Chart;

/// A report for people: sections, and for a page also header and footer.
#[derive(Clone, Default, Debug)]
pub struct Page {
    /// Its title, also that of the browser window.
    pub title: String,
    /// The line below the title.
    pub subtitle: String,
    /// The sections, from top to bottom.
    pub sections: Vec<Section>,
    /// The footer.
    pub foot: Vec<String>,
}

/// A section of a report; on a page it can be linked to.
#[derive(Clone, Debug)]
pub struct Section {
    /// Its anchor, of letters and hyphens.
    pub id: &'static str,
    /// The heading of the section on a page.
    pub title: String,
    /// How the section starts on a terminal.
    pub opening: Opening,
    /// Its title in the table of contents: a word or two.
    pub short: &'static str,
    /// How to read it, in one sentence; may be empty.
    pub reading: String,
    /// The blocks of the section, from top to bottom.
    pub blocks: Vec<Block>,
}

impl Section {
    /// A section that directly follows the one before it on a terminal.
    pub fn new(id: &'static str, short: &'static str, title: impl Into<String>, blocks: Vec<Block>) -> Self {
        Self { id, title: title.into(), opening: Opening::None, short, reading: String::new(), blocks }
    }

    /// A section with a short title, also shown on a terminal.
    pub fn named(id: &'static str, title: &'static str, blocks: Vec<Block>) -> Self {
        Self::new(id, title, title, blocks).titled()
    }

    /// Sets how it starts on a terminal.
    #[must_use]
    pub fn opened(self, opening: Opening) -> Self {
        Self { opening, ..self }
    }

    /// Shows its title on a terminal as well.
    #[must_use]
    pub fn titled(self) -> Self {
        Self { opening: Opening::Title(self.title.clone()), ..self }
    }

    /// Adds a sentence on how to read it, for a page.
    #[must_use]
    pub fn explained(self, reading: &str) -> Self {
        Self { reading: reading.to_owned(), ..self }
    }

    /// Whether a page shows any of it.
    pub(crate) fn is_on_page(&self) -> bool {
        !self.blocks.iter().all(Block::is_for_terminal)
    }
}

/// How a section starts on a terminal.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub enum Opening {
    /// Directly after the section before it.
    #[default]
    None,
    /// An empty line.
    Gap,
    /// An empty line and a title.
    Title(String),
}

/// A part of a section. Texts are phrases; a page turns them into sentences.
#[derive(Clone, Debug)]
pub enum Block {
    /// Blocks only for a terminal.
    OnTerminal(Vec<Block>),
    /// Blocks only for a page.
    OnPage(Vec<Block>),
    /// Curves over a logarithmic axis of counts, drawn with characters, with their title; a page has charts instead.
    Plot(String, Vec<Curve>),
    /// Verbatim lines for a terminal.
    Lines(Vec<String>),
    /// The answer to the page's question, with its basis.
    Verdict {
        /// How good the answer is, for its color.
        tone: Grade,
        /// The answer, in a sentence.
        text: String,
        /// The basis of the answer, in a sentence; may be empty.
        basis: String,
    },
    /// Figures side by side.
    Tiles(Vec<Tile>),
    /// Charts, side by side if there is room.
    Charts(Vec<Chart>),
    /// A table of figures.
    Table(Table),
    /// The title of the blocks that follow.
    Heading(String),
    /// A paragraph at the start of a report, which a terminal does not indent.
    Lead(String),
    /// A paragraph of running text.
    Text(String),
    /// A smaller paragraph: what was left out, how it was found.
    Note(String),
    /// Names with texts.
    Facts(Vec<(String, String)>),
    /// Names with verdicts and reasons.
    Findings(Vec<Finding>),
    /// Suggested commands.
    Commands(Vec<FirstStep>),
    /// A name with a comment.
    Remark(String, String),
    /// A list item.
    Item(String),
    /// First words in a terminal's layout, blanks included, such as a label or a command, and their text.
    Entry(String, String),
    /// A name with files next to the page: paths relative to its directory, of letters, digits, dots, hyphens and slashes.
    Files(&'static str, Vec<String>),
    /// A limit of the numbers, and what to do about it.
    Warning {
        /// The warning, in a sentence.
        text: String,
        /// What to do about it; empty if nothing can be done.
        advice: String,
    },
    /// The place for the detour that was clicked on.
    Detour,
}

impl Finding {
    /// The availability of an ability.
    pub fn from_answer(answer: &Answer, text: String) -> Self {
        let verdict = match answer.access {
            Availability::Available => "yes",
            Availability::Limited => "in part",
            Availability::Missing => "no",
        };
        Self { name: answer.ability.name().replace('_', " "), verdict, text }
    }
}

impl Block {
    const fn is_for_terminal(&self) -> bool {
        matches!(self, Self::OnTerminal(_) | Self::Plot(..) | Self::Lines(_))
    }

    /// An empty line on a terminal.
    pub fn gap() -> Self {
        Self::Lines(vec![String::new()])
    }

    /// First words with their text.
    pub fn entry(first: impl Into<String>, text: impl Into<String>) -> Self {
        Self::Entry(first.into(), text.into())
    }

    /// Names with texts.
    pub fn facts<'a>(facts: impl IntoIterator<Item = (&'a str, String)>) -> Self {
        Self::Facts(facts.into_iter().map(|(name, text)| (name.to_owned(), text)).collect())
    }

    /// A warning without advice.
    pub fn warning(text: impl Into<String>) -> Self {
        Self::Warning { text: text.into(), advice: String::new() }
    }

    /// Comments, one paragraph each.
    pub fn texts(texts: impl IntoIterator<Item = String>) -> Vec<Self> {
        texts.into_iter().map(Self::Text).collect()
    }
}

/// A result of a check.
#[derive(Clone, Debug)]
pub struct Finding {
    /// Its name.
    pub name: String,
    /// The verdict in a word, such as `ok`.
    pub verdict: &'static str,
    /// The reason for the verdict.
    pub text: String,
}

impl From<&Warning> for Block {
    fn from(warning: &Warning) -> Self {
        Self::Warning { text: warning.message.clone(), advice: warning.advice.clone() }
    }
}

/// A figure with a name.
#[derive(Clone, Debug)]
pub struct Tile {
    /// The name of the figure.
    pub name: String,
    /// The figure as text.
    pub figure: String,
    /// An explanation of the figure.
    pub detail: String,
    /// How good the figure is, for its color.
    pub tone: Grade,
}

/// How good something is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Grade {
    /// As it should be.
    Good,
    /// Worth a look.
    Fair,
    /// Needs a fix.
    Bad,
    /// Neither good nor bad.
    Plain,
}

impl Grade {
    /// Its name in the style sheet.
    pub const fn class(self) -> &'static str {
        match self {
            Self::Good => "good",
            Self::Fair => "fair",
            Self::Bad => "bad",
            Self::Plain => "plain",
        }
    }
}

/// The footer of a page: the program that made it, and the chart library.
pub fn foot(made: String) -> Vec<String> {
    let drawn = "Drawn with Apache ECharts 6.1.0, which is part of this file; nothing is loaded from elsewhere.";
    vec![made, drawn.to_owned()]
}

/// A phrase as a sentence: with a capital letter and a full stop.
pub fn sentence(remark: &str) -> String {
    let mut letters = remark.chars();
    let stop = if remark.ends_with(['.', ':', '?', '!']) { "" } else { "." };
    letters.next().map_or_else(String::new, |first| format!("{}{}{stop}", first.to_uppercase(), letters.as_str()))
}
