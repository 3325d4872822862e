//! A report as a value: sections with blocks, which [`terminal`](super::terminal) and [`html`](crate::html) write.

use becalm_model::audit::{Answer, Availability, FirstStep};
use becalm_model::node::Warning;
use becalm_units::Named;

use crate::form::plot::Curve;
use crate::form::table::Table;
use crate::html::Chart;

/// A report for people: its sections, and on a page what stands around them.
#[derive(Clone, Default, Debug)]
pub struct Page {
    /// Its title, also that of the window.
    pub title: String,
    /// What stands below the title.
    pub subtitle: String,
    /// The sections, from top to bottom.
    pub sections: Vec<Section>,
    /// What stands at the very end.
    pub foot: Vec<String>,
}

/// A part of a report; on a page it can be linked to.
#[derive(Clone, Debug)]
pub struct Section {
    /// Its name in links, of letters and hyphens.
    pub id: &'static str,
    /// The title that stands above the section on a page.
    pub title: String,
    /// The beginning of the section on a terminal.
    pub opening: Opening,
    /// Its title in the list of sections: a word or two.
    pub short: &'static str,
    /// How to read it, in one sentence; empty where nothing is to be said.
    pub reading: String,
    /// The blocks of the section, from top to bottom.
    pub blocks: Vec<Block>,
}

impl Section {
    /// A section that a terminal shows below the one before it.
    pub fn new(id: &'static str, short: &'static str, title: impl Into<String>, blocks: Vec<Block>) -> Self {
        Self { id, title: title.into(), opening: Opening::None, short, reading: String::new(), blocks }
    }

    /// A section of a word or two, which is its title on a terminal as well.
    pub fn named(id: &'static str, title: &'static str, blocks: Vec<Block>) -> Self {
        Self::new(id, title, title, blocks).titled()
    }

    /// The same, with another beginning on a terminal.
    #[must_use]
    pub fn opened(self, opening: Opening) -> Self {
        Self { opening, ..self }
    }

    /// The same, with its title on a terminal as well.
    #[must_use]
    pub fn titled(self) -> Self {
        Self { opening: Opening::Title(self.title.clone()), ..self }
    }

    /// The same, with a sentence on how to read it on a page.
    #[must_use]
    pub fn explained(self, reading: &str) -> Self {
        Self { reading: reading.to_owned(), ..self }
    }

    /// Whether a page shows anything of it.
    pub(crate) fn is_on_page(&self) -> bool {
        !self.blocks.iter().all(Block::is_for_terminal)
    }
}

/// The beginning of a section on a terminal.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub enum Opening {
    /// It follows the section before it.
    #[default]
    None,
    /// An empty line.
    Gap,
    /// An empty line and a title.
    Title(String),
}

/// What stands in a section. Texts are remarks: a page makes sentences of them.
#[derive(Clone, Debug)]
pub enum Block {
    /// Blocks for a terminal alone.
    OnTerminal(Vec<Block>),
    /// Blocks for a page alone.
    OnPage(Vec<Block>),
    /// Curves over a logarithmic axis of counts, drawn with characters, with their title; a page has charts.
    Plot(String, Vec<Curve>),
    /// Lines as they are, for a terminal.
    Lines(Vec<String>),
    /// The answer to the page's question, and what it rests on.
    Verdict {
        /// How good the answer is, for its color.
        tone: Grade,
        /// The answer, in a sentence.
        text: String,
        /// What the answer rests on, in a sentence; may be empty.
        basis: String,
    },
    /// Figures side by side.
    Tiles(Vec<Tile>),
    /// Charts, side by side where there is room.
    Charts(Vec<Chart>),
    /// A table of figures.
    Table(Table),
    /// The title of the blocks that follow.
    Heading(String),
    /// A paragraph at the beginning of a report, which a terminal does not indent.
    Lead(String),
    /// A paragraph of running text.
    Text(String),
    /// A smaller paragraph: what was left out, how it was found.
    Note(String),
    /// Names with what they say.
    Facts(Vec<(String, String)>),
    /// Names with a verdict and the reason for it.
    Findings(Vec<Finding>),
    /// Commands to continue with.
    Commands(Vec<FirstStep>),
    /// A name with a remark on it.
    Remark(String, String),
    /// A remark in a list.
    Item(String),
    /// First words as a terminal lays them out, blanks included, such as a label or a command, with their text.
    Entry(String, String),
    /// A name with files that lie beside the page: their paths from its folder, of letters, digits, dots, hyphens and slashes.
    Files(&'static str, Vec<String>),
    /// Something to be known before the numbers are believed, and what to do about it.
    Warning {
        /// What is to be known, in a sentence.
        text: String,
        /// What to do about it; empty where nothing can be done.
        advice: String,
    },
    /// Where a detour is shown that was clicked on.
    Detour,
}

impl Finding {
    /// How well an ability can be had.
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

    /// Names with what they say.
    pub fn facts<'a>(facts: impl IntoIterator<Item = (&'a str, String)>) -> Self {
        Self::Facts(facts.into_iter().map(|(name, text)| (name.to_owned(), text)).collect())
    }

    /// Something to be known, without advice.
    pub fn warning(text: impl Into<String>) -> Self {
        Self::Warning { text: text.into(), advice: String::new() }
    }

    /// Remarks, a paragraph each.
    pub fn texts(texts: impl IntoIterator<Item = String>) -> Vec<Self> {
        texts.into_iter().map(Self::Text).collect()
    }
}

/// Something that was looked at.
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

/// A figure with its name.
#[derive(Clone, Debug)]
pub struct Tile {
    /// What the figure is of.
    pub name: String,
    /// The figure, as it is written.
    pub figure: String,
    /// The words that explain the figure.
    pub detail: String,
    /// How good the figure is, for its color.
    pub tone: Grade,
}

/// How good something is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Grade {
    /// It is as it should be.
    Good,
    /// It is worth a look.
    Fair,
    /// Something should be done about it.
    Bad,
    /// It is neither good nor bad.
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

/// The end of a page: its maker, and the library that draws its charts.
pub fn foot(made: String) -> Vec<String> {
    let drawn = "Drawn with Apache ECharts 6.1.0, which is part of this file; nothing is loaded from elsewhere.";
    vec![made, drawn.to_owned()]
}

/// A remark as a sentence: with a capital letter and a full stop.
pub fn sentence(remark: &str) -> String {
    let mut letters = remark.chars();
    let stop = if remark.ends_with(['.', ':', '?', '!']) { "" } else { "." };
    letters.next().map_or_else(String::new, |first| format!("{}{}{stop}", first.to_uppercase(), letters.as_str()))
}
