//! Owners of activities.

use std::collections::HashMap;

use becalm_model::{Activity, Kind, Label, Labels, root};

use crate::{SourceId, SourceIds};

/// Owner of an activity.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Owner {
    /// The source of the activity itself.
    pub source: SourceId,
    /// The source that accounts for its time: its root.
    pub root: SourceId,
    /// Whether that root is a thread of becalm.
    pub is_becalms: bool,
}

impl Owner {
    /// The owner of an activity that is its own root.
    pub fn itself(source: SourceId, kind: Kind) -> Self {
        Self { source, root: source, is_becalms: kind == Kind::Becalm }
    }
}

/// Whether a thread of becalm is the root of an activity of this kind and detail.
pub fn is_becalms(kind: Kind, detail: &str) -> bool {
    root::row_root(kind, "", detail).0 == Kind::Becalm
}

/// The owners of the activities of a batch, with sources and details given as keys into small tables. Names are looked up once per batch and key, not
/// once per row.
#[derive(Debug)]
pub struct BatchOwners<'a> {
    sources: &'a [&'a str],
    details: &'a [&'a str],
    /// By kind and key of the source.
    ids: Vec<Option<SourceId>>,
    /// The root that a detail names, if it names one, by the key of the detail.
    roots: Vec<Option<Option<(SourceId, Kind)>>>,
}

impl<'a> BatchOwners<'a> {
    /// Prepares the lookup for a batch with these names of sources and these details.
    pub fn new(sources: &'a [&'a str], details: &'a [&'a str]) -> Self {
        let ids = vec![None; Kind::ALL.len() * sources.len()];
        Self { sources, details, ids, roots: vec![None; details.len()] }
    }

    /// The owner of an activity with this kind and the keys of its source and of its detail.
    #[inline]
    pub fn owner(&mut self, known: &mut SourceIds, kind: Kind, source: usize, detail: usize) -> Owner {
        let place = kind as usize * self.sources.len() + source;
        let source = *self.ids[place].get_or_insert_with(|| known.id(kind, self.sources[source]));
        if !root::may_be_anothers(kind) {
            return Owner::itself(source, kind);
        }
        let details = self.details;
        let named = *self.roots[detail]
            .get_or_insert_with(|| root::named(details[detail]).map(|(kind, name)| (known.id(kind, name), kind)));
        match named {
            Some((root, owner)) => Owner { source, root, is_becalms: owner == Kind::Becalm },
            None => Owner::itself(source, kind),
        }
    }
}

/// Maximum number of cached combinations: details contain process numbers and function names, so there is no limit to them.
const COMBINATIONS: usize = 1 << 16;

/// The owners of activities as they are measured, by the labels of their recording.
#[derive(Clone, Default, Debug)]
pub struct LabelOwners {
    owners: HashMap<(Kind, Label, Label), Owner>,
}

impl LabelOwners {
    /// The owner of an activity.
    pub fn owner(&mut self, known: &mut SourceIds, labels: &Labels, activity: &Activity) -> Owner {
        let Activity { kind, source, detail, .. } = *activity;
        if let Some(owner) = self.owners.get(&(kind, source, detail)) {
            return *owner;
        }
        let itself = Owner::itself(known.id(kind, labels.text(source)), kind);
        let owner = match root::row_root(kind, labels.text(source), labels.text(detail)) {
            (owner, name) if (owner, name) != (kind, labels.text(source)) => {
                Owner { root: known.id(owner, name), is_becalms: owner == Kind::Becalm, ..itself }
            }
            _ => itself,
        };
        if self.owners.len() >= COMBINATIONS {
            self.owners.clear();
        }
        self.owners.insert((kind, source, detail), owner);
        owner
    }

    /// Forgets all labels. To be called before the labels of another recording come.
    pub fn clear(&mut self) {
        self.owners.clear();
    }
}

#[cfg(test)]
mod tests {
    use becalm_units::{CpuId, Nanos};
    use proptest::prelude::*;

    use super::*;

    const SOURCES: [&str; 4] = ["timer", "net_rx", "becalm", "sshd"];
    const DETAILS: [&str; 6] =
        ["", "irq:timer", "self:becalm", "task:sshd \u{2192} process_timeout", "vector 236", "edge:"];

    proptest! {
        /// Both tables of owners agree with the rows.
        #[test]
        fn owners_are_what_rows_say(rows in proptest::collection::vec((0..Kind::ALL.len(), 0_usize..4, 0_usize..6), 1..60)) {
            let mut labels = Labels::new();
            let (mut by_key, mut by_label) = (SourceIds::default(), SourceIds::default());
            let mut batch = BatchOwners::new(&SOURCES, &DETAILS);
            let mut live = LabelOwners::default();
            for (kind, source, detail) in rows {
                let kind = Kind::ALL[kind];
                let activity = Activity {
                    cpu: CpuId::new(0), detour: 0, start: Nanos::ZERO, self_time: Nanos::ZERO, kind,
                    source: labels.intern(SOURCES[source]), detail: labels.intern(DETAILS[detail]),
                };
                let expected = root::row_root(kind, SOURCES[source], DETAILS[detail]);
                let found = batch.owner(&mut by_key, kind, source, detail);
                let other = live.owner(&mut by_label, &labels, &activity);
                for (owner, ids) in [(found, &by_key), (other, &by_label)] {
                    prop_assert_eq!(ids.name(owner.source), (kind, SOURCES[source]));
                    prop_assert_eq!(ids.name(owner.root), expected);
                    prop_assert_eq!(owner.is_becalms, expected.0 == Kind::Becalm);
                    prop_assert_eq!(owner.is_becalms, is_becalms(kind, DETAILS[detail]));
                }
            }
        }
    }
}
