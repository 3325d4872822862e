//! Numbers of sources.

use std::collections::HashMap;

use becalm_model::Kind;
use becalm_model::digest::OTHERS;

/// The number of a source, as [`SourceIds`] gave it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct SourceId(u32);

impl SourceId {
    /// The number, counted from 0, for lists with an element for each source.
    pub const fn index(self) -> usize {
        self.0 as usize
    }

    /// The number.
    pub const fn get(self) -> u32 {
        self.0
    }
}

/// Sources by kind and name, numbered in the order of their first appearance.
#[derive(Clone, Debug)]
pub struct SourceIds {
    names: Vec<(Kind, String)>,
    /// By the number of the kind.
    ids: Vec<HashMap<String, SourceId>>,
    limit: usize,
}

impl Default for SourceIds {
    fn default() -> Self {
        Self::with_limit(usize::MAX)
    }
}

impl SourceIds {
    /// Distinguishes at most `limit` names; further ones are merged by kind, under the name [`OTHERS`].
    #[must_use]
    pub fn with_limit(limit: usize) -> Self {
        Self { names: Vec::new(), ids: vec![HashMap::new(); Kind::ALL.len()], limit }
    }

    /// The number of a source, which gets the next one if it is new.
    pub fn id(&mut self, kind: Kind, source: &str) -> SourceId {
        if let Some(id) = self.ids[kind as usize].get(source) {
            return *id;
        }
        if self.names.len() >= self.limit && source != OTHERS {
            return self.id(kind, OTHERS);
        }
        let id = SourceId(self.names.len() as u32);
        self.names.push((kind, source.to_owned()));
        self.ids[kind as usize].insert(source.to_owned(), id);
        id
    }

    /// Kind and name of a source. Panics if another `SourceIds` gave the number.
    pub fn name(&self, id: SourceId) -> (Kind, &str) {
        let (kind, name) = &self.names[id.index()];
        (*kind, name)
    }

    /// Kind and name of each source, in the order of their numbers.
    pub fn names(&self) -> &[(Kind, String)] {
        &self.names
    }

    /// The number of sources.
    pub const fn len(&self) -> usize {
        self.names.len()
    }

    /// Whether there is no source.
    pub const fn is_empty(&self) -> bool {
        self.names.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_have_numbers_and_too_many_are_merged_by_kind() {
        let mut ids = SourceIds::with_limit(2);
        let asked = [(Kind::Irq, "timer"), (Kind::Softirq, "timer"), (Kind::Irq, "timer"), (Kind::Irq, "eth0")];
        assert_eq!(asked.map(|(kind, name)| ids.id(kind, name).index()), [0, 1, 0, 2]);
        assert_eq!(ids.id(Kind::Irq, "eth1").index(), 2);
        assert_eq!(ids.id(Kind::Task, "sshd").index(), 3);
        assert_eq!(ids.name(ids.ids[Kind::Irq as usize][OTHERS]), (Kind::Irq, OTHERS));
        assert_eq!((ids.len(), ids.is_empty()), (4, false));
    }
}
