//! From the recorder to the sums of a window: each part is attributed as `becalm record` does it, counted, and stored if it can be.

use std::collections::HashMap;
use std::io;

use becalm_attribute::Tally;
use becalm_bundle::BundleError;
use becalm_measure::Names;
use becalm_model::node::CpuDoc;
use becalm_model::{Activity, Kind, Label, LoopThread, NodeDoc, Pid, root};
use becalm_record::{DetourStore, LanePart, Store};
use becalm_units::Nanos;

use crate::histogram::Lengths;

/// What a window found on its CPU.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct WindowSums {
    /// Detours by length.
    pub lengths: Lengths,
    /// The time of all detours, without becalm's own.
    pub noise: Nanos,
    /// The longest one, likewise.
    pub longest: Nanos,
    /// What becalm took of the loop itself.
    pub own: Nanos,
    /// Detours that the loop only counted.
    pub unstored: u64,
    /// Detours in which kernel events were lost.
    pub incomplete: u64,
    /// What each source took by itself.
    pub sources: HashMap<(Kind, String), Nanos>,
}

/// Why a window is not stored.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Failure {
    /// In words.
    pub why: String,
    /// Whether that is since the disk is full.
    pub disk_is_full: bool,
}

/// One window on its way.
pub struct WindowFeed {
    store: DetourStore,
    /// The threads that answer and send, which are becalm's own.
    own: Vec<Pid>,
    /// Why nothing is stored any more.
    pub failure: Option<Failure>,
    /// What was found so far.
    pub sums: WindowSums,
    /// Those of the part that is taken, by their labels.
    ids: HashMap<(Kind, Label), Nanos>,
    number: u64,
}

impl WindowFeed {
    /// Of a window that is about to begin.
    pub fn new(store: DetourStore, own: Vec<Pid>) -> Self {
        Self { store, own, failure: None, sums: WindowSums::default(), ids: HashMap::new(), number: 0 }
    }

    /// What was measured is worth more than what could be stored of it.
    fn go_on_without_storing(&mut self, error: &BundleError) {
        self.store.stop_storing();
        self.failure = Some(Failure { why: error.to_string(), disk_is_full: error.is_full() });
    }

    /// Counts a detour whose activities are these.
    fn add(&mut self, duration: Nanos, rows: &[Activity], names: &Names) {
        let mut own = Nanos::ZERO;
        for row in rows {
            let detail = names.labels.text(row.detail);
            if root::of_row(row.kind, "", detail).0 == Kind::Becalm {
                own += row.self_time;
            } else {
                *self.ids.entry((row.kind, row.source)).or_default() += row.self_time;
            }
        }
        self.sums.own += own;
        let rest = (duration - own).max(Nanos::ZERO);
        if rest > Nanos::ZERO {
            self.sums.lengths.add(rest);
            self.sums.noise += rest;
            self.sums.longest = self.sums.longest.max(rest);
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
            let count = activities.iter().take_while(|row| row.detour == self.number).count();
            let (rows, rest) = activities.split_at(count);
            activities = rest;
            self.number += 1;
            self.sums.incomplete += u64::from(detour.incomplete);
            self.add(detour.duration, rows, names);
        }
        for ((kind, source), time) in self.ids.drain() {
            *self.sums.sources.entry((kind, names.labels.text(source).to_owned())).or_default() += time;
        }
        self.sums.unstored += part.unstored.0;
        self.sums.noise += part.unstored.1;
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
