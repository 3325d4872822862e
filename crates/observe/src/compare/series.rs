//! The lives of the compared threads of one recording over time, from its tables.

use std::collections::{BTreeMap, HashMap, HashSet};

use becalm_bundle::ObservedTables;
use becalm_model::observed::{LifePart, Owner, ThreadId};
use becalm_model::{Kind, Label, Labels};
use becalm_stats::TimeCells;
use becalm_units::{Nanos, fault};

use super::sides::ReadRun;
use crate::places::places;
use crate::totals::{Totals, is_sibling};
use crate::words::{taker_names, taker_thread};

/// A taker of time, the same in all recordings. Its control group is not part of it, because containers have another one each time.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct TakerKey {
    /// Whether it interrupted a running thread, which was in no queue.
    pub on_top: bool,
    /// Its owner, relative to the choice.
    pub owner: Owner,
    /// The kind.
    pub kind: Kind,
    /// The name.
    pub source: String,
}

/// The time of threads with one name.
#[derive(Clone, Debug)]
pub struct GroupSeries {
    /// The length of their lives.
    pub wall: TimeCells,
    /// The time that others took from them.
    pub lost: TimeCells,
}

/// The lives of threads over time.
#[derive(Clone, Debug)]
pub struct RunSeries {
    /// Cells without time, like all others.
    pub empty: TimeCells,
    /// The groups, in the order of the names.
    pub groups: Vec<GroupSeries>,
    /// The takers of the shown groups.
    pub takers: BTreeMap<TakerKey, TimeCells>,
}

impl RunSeries {
    /// Reads the lives of threads with these names, and the takers of the shown ones. Fails if a table is missing, damaged, or contradicts the document.
    pub fn read(run: &ReadRun, names: &[String], shown: &[bool]) -> fault::Result<Self> {
        let doc = &run.doc;
        if doc.tracing.is_none() {
            return Ok(Self::from_accounts(run, names));
        }
        let empty = TimeCells::new(doc.start_ns.get(), doc.duration_ns.get());
        let mut groups = vec![GroupSeries { wall: empty.clone(), lost: empty.clone() }; names.len()];
        let tables = ObservedTables::new(&run.bundle, &doc.node, doc.rows);
        let mut labels = Labels::new();
        let rows = tables.threads(&mut labels)?;
        let group_of = |place: usize| names.iter().position(|name| *name == doc.threads[place].name);
        let groups_of: HashMap<ThreadId, usize> = places(&rows, doc.threads.iter())
            .into_iter()
            .filter_map(|(thread, place)| Some((thread, group_of(place)?)))
            .collect();
        // Interruptions that start like a wait are waits.
        let mut waits: HashSet<(ThreadId, Nanos)> = HashSet::new();
        tables.stays(&mut labels, &mut |stay, _| {
            let Some(group) = groups_of.get(&stay.thread) else { return };
            let (start, duration) = (stay.start.get(), stay.duration.get());
            groups[*group].wall.add(start, duration);
            match stay.part {
                LifePart::OnTheWay => groups[*group].lost.add(start, duration),
                LifePart::Queued | LifePart::Quota => {
                    waits.insert((stay.thread, stay.start));
                }
                LifePart::Ran | LifePart::Asleep | LifePart::Stopped | LifePart::Unknown => {}
            }
        })?;
        let texts = labels.clone();
        let names = taker_names(&rows, &texts);
        let mut numbers: HashMap<(bool, Owner, Kind, Label, Option<ThreadId>), usize> = HashMap::new();
        let mut known: BTreeMap<TakerKey, usize> = BTreeMap::new();
        let mut cells: Vec<TimeCells> = Vec::new();
        tables.detours(&mut labels, &mut |detour, activities, labels| {
            let Some(group) = groups_of.get(&detour.thread) else { return };
            let start = detour.start.get();
            let is_wait = waits.contains(&(detour.thread, detour.start));
            for row in activities {
                if !is_sibling(row.owner) {
                    groups[*group].lost.add(start, row.time.get());
                }
                if !shown[*group] {
                    continue;
                }
                let on_top = !is_wait || row.owner == Owner::Host;
                let number =
                    numbers.entry((on_top, row.owner, row.kind, row.source, row.thread)).or_insert_with(|| {
                        let thread = row.thread.and_then(|thread| rows.get(thread.0 as usize)).map(taker_thread);
                        let source = names.source(row.owner, labels.text(row.source), thread);
                        let key = TakerKey { on_top, owner: row.owner, kind: row.kind, source };
                        *known.entry(key).or_insert_with(|| {
                            cells.push(empty.clone());
                            cells.len() - 1
                        })
                    });
                cells[*number].add(start, row.time.get());
            }
        })?;
        let takers = known.into_iter().map(|(key, number)| (key, cells[number].clone())).collect();
        Ok(Self { empty, groups, takers })
    }

    /// Accounts have no course over time: all of it is one cell, which is too little for a test.
    fn from_accounts(run: &ReadRun, names: &[String]) -> Self {
        let one = |sum: i64| TimeCells::from_sums(run.doc.duration_ns.get(), vec![sum]);
        let group = |name: &String| {
            let totals = Totals::of(run.threads(name).collect());
            GroupSeries { wall: one(totals.wall), lost: one(totals.lost()) }
        };
        Self { empty: one(0), groups: names.iter().map(group).collect(), takers: BTreeMap::new() }
    }
}
