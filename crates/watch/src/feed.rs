//! Sums up a window from the recorder's data: each part is attributed like in `becalm record`, counted, and stored if possible.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::io;

use becalm_account::{CpuAccount, LabelOwners, SourceIds};
use becalm_attribute::Tally;
use becalm_bundle::BundleError;
use becalm_measure::Names;
use becalm_model::node::CpuDoc;
use becalm_model::{Activity, Detour, Kind, LoopThread, NodeDoc, Pid};
use becalm_record::{DetourStore, LanePart, Store};
use becalm_units::Nanos;

use crate::histogram::Lengths;

/// The results of a window on its CPU.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct WindowSums {
    pub lengths: Lengths,
    /// The time of all detours, without becalm's own.
    pub noise: Nanos,
    /// The longest one, also without becalm's own time.
    pub longest: Nanos,
    /// becalm's own time in the loop.
    pub own: Nanos,
    /// Detours that the loop only counted.
    pub unstored: u64,
    /// Detours with dropped kernel events.
    pub incomplete: u64,
    /// The time charged to each source, with everything that belongs to it. The times add up to the noise, except for unstored detours.
    pub sources: HashMap<(Kind, String), Nanos>,
}

impl WindowSums {
    /// The source with the largest total; `None` without sources.
    pub fn top_source(&self) -> Option<&(Kind, String)> {
        let largest = self.sources.iter().max_by_key(|((kind, name), time)| (**time, Reverse((name, kind.name()))));
        largest.map(|(source, _)| source)
    }
}

/// The reason why a window is not stored.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Failure {
    /// The reason in words.
    pub why: String,
    pub disk_is_full: bool,
}

pub struct WindowFeed {
    store: DetourStore,
    /// becalm's own threads that answer and send.
    own: Vec<Pid>,
    /// The reason why storing has stopped.
    pub failure: Option<Failure>,
    /// The results so far.
    pub sums: WindowSums,
    account: CpuAccount,
    names: SourceIds,
    owners: LabelOwners,
    /// The time of each source in the current part.
    times: Vec<Nanos>,
}

impl WindowFeed {
    /// For a window that is about to start.
    pub fn new(store: DetourStore, own: Vec<Pid>) -> Self {
        Self {
            store,
            own,
            failure: None,
            sums: WindowSums::default(),
            account: CpuAccount::default(),
            names: SourceIds::default(),
            owners: LabelOwners::default(),
            times: Vec::new(),
        }
    }

    /// Measurements are worth more than their storage.
    fn go_on_without_storing(&mut self, error: &BundleError) {
        self.store.stop_storing();
        self.failure = Some(Failure { why: error.to_string(), disk_is_full: error.is_full() });
    }

    /// Counts a detour with these activities.
    fn add(&mut self, detour: &Detour, rows: &[Activity], names: &Names) {
        for row in rows {
            let owner = self.owners.owner(&mut self.names, &names.labels, row);
            self.times.resize(self.names.len(), Nanos::ZERO);
            if self.account.activity(row.detour, row.self_time.get(), owner) {
                self.times[owner.root.index()] += row.self_time;
            } else {
                self.sums.own += row.self_time;
            }
        }
        if let Some(left) = self.account.detour(detour.duration.get()).map(Nanos::new) {
            self.sums.lengths.add(left);
            self.sums.noise += left;
            self.sums.longest = self.sums.longest.max(left);
            self.sums.incomplete += u64::from(detour.incomplete);
        }
    }
}

impl Store for WindowFeed {
    type Error = io::Error;

    fn begin(&mut self, node: &NodeDoc, threads: &[LoopThread], names: &mut Names) -> io::Result<()> {
        if let Err(error) = self.store.begin(node, threads, names) {
            self.go_on_without_storing(&error);
        }
        self.own.iter().for_each(|own| names.set_own(*own));
        Ok(())
    }

    fn take(&mut self, part: LanePart<'_>, names: &Names, pause: &mut dyn FnMut()) -> io::Result<()> {
        let mut activities = part.activities;
        for detour in part.detours {
            let number = self.account.detours();
            let count = activities.iter().take_while(|row| row.detour == number).count();
            let (rows, rest) = activities.split_at(count);
            activities = rest;
            self.add(detour, rows, names);
        }
        for (name, time) in self.names.names().iter().zip(&mut self.times) {
            if *time > Nanos::ZERO {
                *self.sums.sources.entry(name.clone()).or_default() += std::mem::take(time);
            }
        }
        self.sums.unstored += part.unstored.count;
        self.sums.noise += part.unstored.total;
        if let Err(error) = self.store.take(part, names, pause) {
            self.go_on_without_storing(&error);
        }
        Ok(())
    }

    fn end_segment(&mut self, names: &Names, pause: &mut dyn FnMut()) -> io::Result<()> {
        if let Err(error) = self.store.end_segment(names, pause) {
            self.go_on_without_storing(&error);
        }
        Ok(())
    }

    fn enter(&mut self, cpus: &mut [CpuDoc], tallies: &[Tally]) {
        self.store.enter(cpus, tallies);
    }

    fn close(&mut self, node: &mut NodeDoc) -> io::Result<()> {
        if let Err(error) = self.store.close(node) {
            self.go_on_without_storing(&error);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::path::Path;

    use becalm_fixtures::account::AccountedRun;
    use becalm_measure::Unstored;
    use becalm_units::CpuId;
    use proptest::prelude::*;

    use super::*;
    use crate::sources::Sources;

    /// The number of sources with a series.
    const TOP: usize = 2;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        /// A window accounts for its detours and ranks their sources like a report, in any number of parts.
        #[test]
        fn a_window_accounts_as_the_rule_says(seed in 0_u64..1 << 40, parts in 1_usize..5) {
            let run = AccountedRun::random(seed);
            let mut names = Names::new(Path::new("/"));
            names.labels = run.labels.clone();
            for (cpu, expected) in (0..).zip(&run.expected) {
                let thread = LoopThread { cpu: CpuId::new(cpu), pid: Pid(1), t_min: Nanos::new(9), realtime: false };
                let mut window = WindowFeed::new(DetourStore::unstored(), Vec::new());
                window.begin(&run.doc, &[thread], &mut names).unwrap();
                for (detours, activities) in run.parts(cpu, parts) {
                    let part = LanePart {
                        index: 0, thread, steps: &[], work: &[], detours: &detours, activities: &activities,
                        began: Some(Nanos::ZERO), complete_until: Nanos::MAX, unstored: Unstored::default(),
                    };
                    window.take(part, &names, &mut || {}).unwrap();
                }
                let sums = &window.sums;
                prop_assert_eq!((sums.noise.get(), sums.longest.get()), (expected.noise_ns, expected.longest_ns));
                prop_assert_eq!((sums.own.get(), sums.incomplete), (expected.own_ns, expected.incomplete));
                prop_assert_eq!(sums.lengths.count(), expected.detours);
                let sources = sums.sources.iter().map(|(name, time)| (name.clone(), time.get()));
                prop_assert_eq!(&sources.collect::<BTreeMap<_, _>>(), &expected.sources);
                let top = sums.top_source().cloned();
                prop_assert!(top.is_some() != expected.sources.is_empty());
                prop_assert!(expected.are_top(top.as_slice()));
                let mut series = Sources::default();
                sums.sources.iter().for_each(|((kind, name), time)| series.add(*kind, name, *time));
                series.settle(TOP);
                let mut named = series.tell().0;
                named.sort_by_key(|(_, time)| Reverse(*time));
                let named: Vec<_> = named.into_iter().map(|(name, _)| name).collect();
                prop_assert_eq!(named.len(), TOP.min(expected.sources.len()));
                prop_assert!(expected.are_top(&named));
            }
        }
    }
}
