//! Interned names, so millions of activities share a few hundred strings.

use std::collections::HashMap;
use std::sync::Arc;

/// A short handle for a string in [`Labels`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Label(u32);

impl Label {
    /// The empty string, which is in every table.
    pub const EMPTY: Self = Self(0);

    /// The position of the string in its table.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// A growing table of strings. Handles are only valid for their own table.
#[derive(Clone, Debug)]
pub struct Labels {
    texts: Vec<Arc<str>>,
    index: HashMap<Arc<str>, Label>,
}

impl Default for Labels {
    fn default() -> Self {
        let mut labels = Self { texts: Vec::new(), index: HashMap::new() };
        labels.intern("");
        labels
    }
}

impl Labels {
    /// Creates a table with only the empty string.
    pub fn new() -> Self {
        Self::default()
    }

    /// The handle of a string, which is added if it is new. Panics with more than 2^32 distinct strings.
    pub fn intern(&mut self, text: &str) -> Label {
        if let Some(label) = self.index.get(text) {
            return *label;
        }
        let label = Label(u32::try_from(self.texts.len()).expect("fewer than 2^32 different names"));
        let text: Arc<str> = text.into();
        self.texts.push(Arc::clone(&text));
        self.index.insert(text, label);
        label
    }

    /// The string of a handle. Panics on a handle from another, larger table.
    pub fn text(&self, label: Label) -> &str {
        &self.texts[label.index()]
    }

    /// All strings, in the order of their handles.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &str> {
        self.texts.iter().map(AsRef::as_ref)
    }

    /// The number of strings, at least 1.
    pub fn len(&self) -> usize {
        self.texts.len()
    }

    /// Always false: the empty string is there from the start.
    pub fn is_empty(&self) -> bool {
        self.texts.is_empty()
    }
}
