//! One window: a short measurement of a CPU, its alerts, and its storage.

use std::path::{Path, PathBuf};

use becalm_linux::alarm;
use becalm_measure::{Disturbance, RecordError, RecordPlan};
use becalm_model::NodeDoc;
use becalm_record::DetourStore;
use becalm_units::{CpuId, CpuList, Nanos, printable};

use super::{SignalRequest, Watcher, meaning};
use crate::feed::{Failure, WindowFeed, WindowSums};
use crate::lead_up;
use crate::ring::{Holds, Ring};
use crate::totals::{MeasuredWindow, Miss};

/// A finished recording.
pub(super) struct Window {
    /// Whether it raised an alert.
    is_alert: bool,
    pub(super) node: NodeDoc,
}

impl Watcher<'_> {
    /// Measures a CPU, if one is idle, and again if that raises an alert.
    pub(super) fn window(&mut self) -> SignalRequest {
        if !self.round.knows() {
            return SignalRequest::Nothing;
        }
        let Some(cpu) = self.round.next(self.settings.cpus.as_ref(), self.settings.busy) else {
            self.shared.totals().miss(Miss::Busy);
            return SignalRequest::Nothing;
        };
        self.quietly(|watcher| {
            let before = watcher.shared.observing();
            let (mut asked, window) = watcher.measure(cpu, watcher.settings.window, Holds::Window);
            if let Some(window) = window.filter(|window| window.is_alert) {
                let before = watcher.shared.observing();
                watcher.store_before(&window.node);
                if asked == SignalRequest::Nothing {
                    asked = watcher.measure(cpu, watcher.settings.alert, Holds::After).0;
                }
                watcher.schedule.took_for_alert(watcher.shared.observing() - before);
            }
            watcher.schedule.took(watcher.shared.observing() - before);
            asked
        })
    }

    /// Makes one recording. Returns the request of a signal in the meantime, and the result; `None` if it failed.
    pub(super) fn measure(&mut self, cpu: CpuId, duration: Nanos, holds: Holds) -> (SignalRequest, Option<Window>) {
        let path = self.ring.as_mut().map(|ring| ring.next(holds));
        let store = path.as_deref().map_or_else(DetourStore::unstored, DetourStore::new);
        let plan = RecordPlan {
            cpus: Some(CpuList::from_iter([cpu])),
            duration: Some(duration),
            segment: Some(duration + Nanos::from_secs(3_600)),
            symbols: self.observer.symbols(),
            ..(self.around.plan)()
        };
        let recorded = self.session.record(plan, WindowFeed::new(store, self.own.clone()), &mut |_| {});
        let asked = meaning(self.session.signals().take_last());
        let mut recorded = match recorded {
            Ok(recorded) => recorded,
            Err(failure) => {
                self.fail(cpu, &failure.error);
                path.iter().for_each(|path| Ring::drop_bundle(path));
                return (asked, None);
            }
        };
        // The error of storing is in the feed.
        let _ = recorded.complete();
        let (watched, lost) =
            recorded.node.cpus.first().map_or((Nanos::ZERO, 0), |doc| (doc.duration_ns, doc.lost_events));
        let sums = std::mem::take(&mut recorded.store.sums);
        let measured = MeasuredWindow {
            cpu,
            watched,
            sums: &sums,
            lost_events: lost,
            rung: recorded.node.rung,
            at_ns: alarm::wall_ns(),
        };
        let changed = recorded.node.trace_change().cloned();
        let raised = if holds == Holds::Window { self.raised(&measured, &sums) } else { None };
        {
            let mut totals = self.shared.totals();
            totals.add(&measured, self.settings.sources as usize);
            totals.alerts += u64::from(raised.is_some());
            totals.traced.disturbed += u64::from(changed.is_some());
        }
        if let Some(change) = &changed {
            self.say_changed(&Disturbance::Files(change.files.clone()));
        }
        let failure = recorded.store.failure.take();
        let window = Window { is_alert: raised.is_some(), node: recorded.node.clone() };
        drop(recorded);
        let holds = if raised.is_some() { Holds::Alert } else { holds };
        let kept = path.as_deref().and_then(|path| self.keep(path, holds, failure));
        if let Some(raised) = &raised {
            self.say(&format!(
                "alert: {raised}{}",
                kept.map_or_else(String::new, |path| format!("; see {}", path.display()))
            ));
        }
        (asked, Some(window))
    }

    /// Stores the traced events before a window that raised an alert.
    pub(super) fn store_before(&mut self, window: &NodeDoc) {
        if !self.observer.remembers_any() {
            return;
        }
        let Some(path) = self.ring.as_mut().map(|ring| ring.next(Holds::Before)) else { return };
        let Some((trace, remembered)) = self.observer.remembered() else { return };
        let stored = lead_up::store(&path, window, trace, remembered, self.observer.until());
        let failure = stored.err().map(|error| Failure { why: error.to_string(), disk_is_full: error.is_full() });
        self.keep(&path, Holds::Before, failure);
    }

    /// The alert that a window raised, in words; `None` if it raised nothing.
    fn raised(&self, window: &MeasuredWindow<'_>, sums: &WindowSums) -> Option<String> {
        let trigger =
            self.settings.triggers.iter().find(|trigger| trigger.is_raised(sums.longest, window.noise_ratio()))?;
        let top = sums.top_source();
        let top = top.map_or_else(String::new, |(kind, name)| format!(", most of it by {} ({kind})", printable(name)));
        let noise = window.noise_ratio() * 100.0;
        Some(format!(
            "{trigger} on CPU {}: the longest detour took {}, noise was {noise:.3}%{top}",
            window.cpu, sums.longest
        ))
    }

    /// Keeps a bundle, or removes its remains; returns its path.
    pub(super) fn keep(&mut self, path: &Path, holds: Holds, failure: Option<Failure>) -> Option<PathBuf> {
        let ring = self.ring.as_mut()?;
        let failure = match failure {
            Some(failure) => {
                Ring::drop_bundle(path);
                if failure.disk_is_full {
                    ring.make_room();
                }
                failure
            }
            None => match ring.keep(path, holds) {
                Ok(path) => return Some(path),
                Err(error) => Failure { why: error.to_string(), disk_is_full: false },
            },
        };
        self.shared.totals().store_failures += 1;
        // On a small disk this error recurs, in one file or another; and each recording has a name of its own.
        let path = path.display().to_string();
        let what = if failure.disk_is_full { "full".to_owned() } else { failure.why.replace(&path, "") };
        self.say_once(what, &format!("a recording could not be stored: {}", failure.why));
        None
    }

    fn fail(&mut self, cpu: CpuId, error: &RecordError<std::io::Error>) {
        self.shared.totals().miss(Miss::Failed);
        self.say_once(error.to_string(), &format!("CPU {cpu} could not be measured: {error}"));
    }
}
