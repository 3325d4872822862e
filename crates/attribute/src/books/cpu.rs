//! A CPU in the books: who has it now, and the time of what is on top of observed threads.

use becalm_model::carried::{Carrier, runs};
use becalm_model::observed::{OwnedActivity, Owner, ThreadDetour, ThreadId};
use becalm_model::{Kind, Label, Labels};
use becalm_units::Nanos;

use super::thread::{ObservedThread, RanAs};
use super::{Books, DEPTH, Layer, Ledger, Occupant, OnTop, Present, REMEMBERED};

impl Books {
    /// Credits the time until now to the top of the CPU's stack.
    pub(super) fn credit(&mut self, place: usize, at: Nanos) {
        let Some(cpu) = &mut self.cpus[place] else { return };
        let length = at - cpu.since;
        if length <= Nanos::ZERO {
            return;
        }
        let start = std::mem::replace(&mut cpu.since, at);
        let Present::Thread(thread) = cpu.present else { return };
        let observed = &mut self.threads[thread.0 as usize];
        let Some(books) = observed.books.as_mut().filter(|_| self.is_open) else { return };
        let as_what = match cpu.stack.last() {
            Some(layer) => {
                let row = cpu.rows.iter_mut().rev().find(|row| row.kind == layer.kind && row.source == layer.shown);
                match row {
                    Some(row) => row.time += length,
                    None => cpu.rows.push(OwnedActivity {
                        owner: Owner::Interrupt,
                        kind: layer.kind,
                        source: layer.shown,
                        thread: None,
                        time: length,
                        visits: 1,
                    }),
                }
                cpu.on_top = Some(OnTop { start: cpu.on_top.map_or(start, |open| open.start), until: at });
                RanAs::Activity(layer.kind, layer.shown)
            }
            None => observed.works.last().map_or(RanAs::Program, |work| RanAs::Own(*work)),
        };
        books.ran += length;
        books.ran_as.entry(as_what).or_default().add(length, 0);
    }

    /// Passes the interruption of the chosen thread on a CPU that has ended.
    pub(super) fn end_on_top(&mut self, place: usize, ledger: &mut impl Ledger) {
        let Some(cpu) = &mut self.cpus[place] else { return };
        if let (Some(OnTop { start, until }), Present::Thread(thread)) = (cpu.on_top.take(), cpu.present) {
            let duration = cpu.rows.iter().map(|row| row.time).sum();
            debug_assert!(duration <= until - start, "no more is credited than has passed");
            ledger.detour(&ThreadDetour { thread, cpu: cpu.cpu, start, duration }, &cpu.rows);
        }
        cpu.rows.clear();
    }

    /// Notes who has the CPU from now on.
    pub(super) fn occupy(&mut self, place: usize, at: Nanos, is_visit: bool) {
        let Some(cpu) = &mut self.cpus[place] else { return };
        let occupant = match (cpu.stack.last(), cpu.present) {
            (Some(layer), _) => Occupant::Activity(layer.kind, layer.shown),
            (None, Present::Unknown) => Occupant::Unknown,
            (None, Present::Idle) => Occupant::Idle,
            (None, Present::Thread(thread)) => match self.threads[thread.0 as usize].item {
                Some(item) => Occupant::Activity(Kind::Workqueue, item),
                None => Occupant::Thread(thread),
            },
        };
        cpu.occupancy.enter(at, occupant, is_visit);
        if cpu.occupancy.len().is_multiple_of(1 << 14) {
            let threads = &self.threads;
            let oldest = cpu.waiting.iter().map(|thread| threads[thread.0 as usize].waits_since()).min();
            cpu.occupancy.forget_before(oldest.unwrap_or(at).min(at - REMEMBERED));
        }
    }

    pub(super) fn enter(&mut self, place: usize, kind: Kind, source: Label, at: Nanos, ledger: &mut impl Ledger) {
        self.credit(place, at);
        let cpu = self.at(place);
        if cpu.stack.len() >= DEPTH {
            cpu.stack.clear();
            self.end_on_top(place, ledger);
        }
        self.at(place).stack.push(Layer { kind, source, shown: source, is_named: false });
        self.occupy(place, at, true);
    }

    /// Ends the innermost matching layer and all above it.
    pub(super) fn exit(&mut self, place: usize, kind: Kind, source: Label, at: Nanos, ledger: &mut impl Ledger) {
        self.credit(place, at);
        let cpu = self.at(place);
        let Some(depth) = cpu.stack.iter().rposition(|layer| layer.kind == kind && layer.source == source) else {
            return;
        };
        let layer = cpu.stack[depth];
        cpu.stack.truncate(depth);
        self.count(place, layer);
        if self.at(place).stack.is_empty() {
            self.end_on_top(place, ledger);
        }
        self.occupy(place, at, false);
    }

    /// Counts an interrupt or softirq that ended on top of a chosen thread.
    pub(super) fn count(&mut self, place: usize, layer: Layer) {
        if let Present::Thread(thread) = self.at(place).present
            && self.is_open
            && let Some(books) = &mut self.threads[thread.0 as usize].books
        {
            books.ran_as.entry(RanAs::Activity(layer.kind, layer.shown)).or_default().count += 1;
        }
    }

    /// An interrupt or softirq runs a function, whose name it gets if it is the first.
    pub(super) fn name_layer(&mut self, place: usize, source: Label, carrier: Carrier, at: Nanos, labels: &Labels) {
        let Some(layer) = self.at(place).stack.last_mut() else { return };
        let text = labels.text(layer.source);
        if source == Label::EMPTY || carrier == Carrier::Tasklet || !runs(layer.kind, text, carrier) {
            return;
        }
        let renamed = Layer { shown: source, is_named: true, ..*layer };
        if layer.is_named {
            let ended = *layer;
            self.credit(place, at);
            self.count(place, ended);
            self.at(place).stack.pop();
            self.at(place).stack.push(renamed);
            self.occupy(place, at, true);
        } else {
            // From its start, which is the last change of this CPU.
            *layer = renamed;
            self.at(place).occupancy.rename_last(Occupant::Activity(renamed.kind, source));
        }
    }

    /// A kworker starts or ends a work item.
    pub(super) fn set_item(&mut self, place: usize, item: Option<Label>, at: Nanos) {
        self.credit(place, at);
        // Softirqs run work items as well.
        if let Some(thread) = self.own_context(place) {
            thread.item = item;
            self.occupy(place, at, item.is_some());
        }
    }

    /// The thread in whose own context an event was written; `None` for one within an interrupt.
    pub(super) fn in_own_context(&mut self, place: usize) -> Option<ThreadId> {
        let cpu = self.at(place);
        match cpu.present {
            Present::Thread(thread) if cpu.stack.is_empty() => Some(thread),
            _ => None,
        }
    }

    /// The same thread, to be changed.
    pub(super) fn own_context(&mut self, place: usize) -> Option<&mut ObservedThread> {
        self.in_own_context(place).map(|thread| &mut self.threads[thread.0 as usize])
    }
}
