//! A page: sections that follow each other, and what stands in them.

use super::{Chart, HtmlTable};

/// A page.
#[derive(Clone, Debug)]
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

/// A section.
#[derive(Clone, Debug)]
pub struct Section {
    /// Its name in links, of letters and hyphens.
    pub id: &'static str,
    /// Its title.
    pub title: String,
    /// Its title in the list of sections: a word or two.
    pub short: &'static str,
    /// How to read it, in one sentence; empty where nothing is to be said.
    pub reading: String,
    /// What stands in it.
    pub blocks: Vec<Block>,
}

/// What stands in a section.
#[derive(Clone, Debug)]
pub enum Block {
    /// The answer to the page's question, and what it rests on.
    Verdict {
        /// How good it is.
        tone: Tone,
        /// The answer.
        text: String,
        /// How it was found.
        basis: String,
    },
    /// Figures side by side.
    Tiles(Vec<Tile>),
    /// Charts, side by side where there is room.
    Charts(Vec<Chart>),
    /// A table.
    Table(HtmlTable),
    /// A paragraph.
    Text(String),
    /// A smaller paragraph: what was left out, how it was found.
    Note(String),
    /// Names with what they say.
    Facts(Vec<(String, String)>),
    /// Something to be known before the numbers are believed, and what to do about it.
    Warning {
        /// What.
        text: String,
        /// What to do.
        advice: String,
    },
    /// Where a detour is shown that was clicked on.
    Detour,
}

/// A figure with its name.
#[derive(Clone, Debug)]
pub struct Tile {
    /// What it is.
    pub name: String,
    /// The figure.
    pub figure: String,
    /// What belongs to it.
    pub detail: String,
    /// How good it is.
    pub tone: Tone,
}

/// How good something is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Tone {
    /// As it should be.
    Good,
    /// Worth a look.
    Fair,
    /// To be acted on.
    Bad,
    /// Neither.
    Plain,
}

impl Tone {
    /// Its name in the style sheet.
    pub(crate) const fn class(self) -> &'static str {
        match self {
            Self::Good => "good",
            Self::Fair => "fair",
            Self::Bad => "bad",
            Self::Plain => "plain",
        }
    }
}
