//! Waits in the books: quotas, the hypervisor, gaps of the trace, and who had the CPU during a wait.

use becalm_model::observed::{LifePart, OwnedActivity, Owner, Stay, StayReason, ThreadDetour, ThreadId};
use becalm_model::{Kind, Label, Labels};
use becalm_units::Nanos;

use super::thread::{Condition, EarlierPart, Sleep, Stretch, Taken, Wait};
use super::{Books, LEAST_STEAL, Ledger, Occupant, Present};

impl Books {
    /// The group above, or itself, that the kernel throttled.
    pub(super) fn limit(&mut self, group: Label, labels: &Labels) -> Option<Label> {
        if self.throttled.is_empty() {
            return None;
        }
        let throttled = &self.throttled;
        *self.limits.entry(group).or_insert_with(|| {
            let path = labels.text(group);
            let above = |limit: &&Label| {
                let limit = labels.text(**limit);
                path == limit || path.strip_prefix(limit).is_some_and(|rest| rest.starts_with('/'))
            };
            throttled.iter().filter(above).max_by_key(|limit| labels.text(**limit).len()).copied()
        })
    }

    /// The kernel gives a group CPU time again: its threads on this CPU waited for that.
    pub(super) fn refill(&mut self, place: usize, at: Nanos, labels: &Labels) {
        if self.throttled.is_empty() {
            return;
        }
        let places = if self.has_calls { place..place + 1 } else { 0..self.cpus.len() };
        for place in places {
            let Some(cpu) = &self.cpus[place] else { continue };
            for thread in cpu.waiting.clone() {
                let group = self.threads[thread.0 as usize].identity.group;
                let Some(limit) = self.limit(group, labels) else { continue };
                let left = self.at(place).last_left.get(&limit).copied();
                let observed = &mut self.threads[thread.0 as usize];
                if let (Condition::Queued { .. }, Some(wait)) = (observed.condition, &mut observed.wait) {
                    let from = wait.since().max(left.unwrap_or(Nanos::new(i64::MIN)));
                    wait.add_quota(from, at);
                }
            }
        }
    }

    /// Books what the hypervisor took from a thread on the CPU. The excess of a stay is settled at its end, or once it is large.
    pub(super) fn settle_host(&mut self, thread: ThreadId, at: Nanos, ledger: &mut impl Ledger) {
        let observed = &mut self.threads[thread.0 as usize];
        let excess = observed.excess;
        if excess < LEAST_STEAL {
            return;
        }
        observed.excess = Nanos::ZERO;
        let Some(books) = observed.books.as_mut().filter(|_| self.is_open) else { return };
        let time = books.move_to_host(excess);
        if time > Nanos::ZERO {
            let (kind, source) = (Kind::Unseen, self.names.hypervisor);
            let row = OwnedActivity { owner: Owner::Host, kind, source, thread: None, time, visits: 1 };
            ledger.detour(&ThreadDetour { thread, cpu: observed.cpu, start: at - time, duration: time }, &[row]);
        }
    }

    /// Events of a CPU were lost.
    pub(super) fn lose(&mut self, place: usize, count: Option<u64>, at: Nanos, ledger: &mut impl Ledger) {
        self.tally.lost_events = self.tally.lost_events.saturating_add(count.unwrap_or(1));
        // Nothing is known since the event before.
        let since = self.at(place).since;
        let present = self.at(place).present;
        let mut affected = std::mem::take(&mut self.at(place).waiting);
        if let Present::Thread(thread) = present {
            affected.push(thread);
        }
        self.end_on_top(place, ledger);
        let cpu = self.at(place);
        cpu.stack.clear();
        cpu.present = Present::Unknown;
        self.occupy(place, since, true);
        for thread in affected {
            let observed = &self.threads[thread.0 as usize];
            let now = observed.wait.as_ref().map_or(since, |wait| wait.latest().max(since)).max(observed.since);
            self.leave(thread, now, ledger);
            self.threads[thread.0 as usize].condition = Condition::Unknown;
        }
        self.at(place).since = at;
    }

    /// Ends the current stay of a thread.
    pub(super) fn leave(&mut self, thread: ThreadId, at: Nanos, ledger: &mut impl Ledger) {
        let observed = &mut self.threads[thread.0 as usize];
        let wait = observed.wait.take();
        if let Some(wait) = &wait {
            for cpu in wait.cpus() {
                if let Some(cpu) = self.cpus.get_mut(cpu.get() as usize).and_then(Option::as_mut) {
                    cpu.waiting.retain(|other| *other != thread);
                }
            }
        }
        let start = std::mem::replace(&mut observed.since, at);
        let length = at - start;
        if !self.is_open || length <= Nanos::ZERO {
            return;
        }
        let Some(books) = &mut observed.books else { return };
        books.end = at;
        let (condition, cpu) = (observed.condition, observed.cpu);
        let (reason, mut context, by) = condition.told();
        if condition == Condition::Ran {
            context = observed.works.last().copied().unwrap_or(Label::EMPTY);
        }
        let stay = |part, start, duration| Stay { thread, cpu, start, duration, part, reason, context, by };
        if let (Condition::Queued { reason, .. }, Some(wait)) = (condition, &wait) {
            self.end_wait(thread, wait, reason, at, ledger);
            for (part, from, until) in wait.parts(at) {
                if until > from {
                    ledger.stay(&stay(part, from, until - from));
                }
            }
            return;
        }
        let observed = &mut self.threads[thread.0 as usize];
        let Some(books) = &mut observed.books else { return };
        let part = condition.part();
        books.add(part, length);
        if let Condition::Asleep { state, context } | Condition::Stopped { state, context } = condition {
            books.sleeps.entry(Sleep { state, context }).or_default().add(length, 1);
        }
        ledger.stay(&stay(part, start, length));
    }

    /// Ends a wait: finds out who had the CPU meanwhile. Returns that together with the wait's part in earlier books.
    pub(super) fn end_wait(
        &mut self,
        thread: ThreadId,
        wait: &Wait,
        reason: StayReason,
        at: Nanos,
        ledger: &mut impl Ledger,
    ) -> EarlierPart {
        let mut whole = wait.before.clone().unwrap_or_default();
        whole.has_moved = wait.has_moved();
        let mut taken = std::mem::take(&mut self.taken);
        taken.clear();
        let mut quota = Nanos::ZERO;
        for Stretch { cpu, from, until, is_quota, is_first, goes_on } in wait.stretches(at) {
            // An occupant comes once per stretch.
            if !goes_on {
                whole.visits.clear();
            }
            if is_quota {
                quota += until - from;
                continue;
            }
            // A preempted thread that waits for an idle CPU is kept from running; one that was moved there waits for it to wake up.
            let is_limited = reason == StayReason::Preempted && is_first;
            let Some(book) = self.cpus.get_mut(cpu.get() as usize).and_then(Option::as_mut) else { continue };
            let earlier = taken.len();
            let visits = &mut whole.visits;
            book.occupancy.shares(from, until, |occupant, mut share, came| {
                match visits.iter_mut().find(|(known, _)| *known == occupant) {
                    // It was counted before a division.
                    Some((_, before)) => {
                        share.visits = (*before + came).max(1) - (*before).max(1);
                        *before += came;
                    }
                    None => visits.push((occupant, came)),
                }
                let known = taken[..earlier].iter_mut().find(|known| known.0 == occupant && known.1 == is_limited);
                match known {
                    Some(known) => (known.2, known.3) = (known.2 + share.time, known.3 + share.visits),
                    None => taken.push((occupant, is_limited, share.time, share.visits)),
                }
            });
        }
        // The next stretch starts at this very instant.
        if wait.latest() > wait.since() && wait.latest() >= at {
            whole.visits.clear();
        }
        let mut rows: Vec<OwnedActivity> = taken
            .iter()
            .map(|(occupant, is_limited, time, visits)| self.owned(thread, *occupant, *is_limited, *time, *visits))
            .collect();
        if quota > Nanos::ZERO {
            let (kind, source) = (Kind::Throttling, self.names.quota);
            rows.push(OwnedActivity { owner: Owner::Quota, kind, source, thread: None, time: quota, visits: 1 });
        }
        self.taken = taken;
        let start = wait.since();
        // Before a CPU's first event, nothing is known of it.
        let rest = at - start - rows.iter().map(|row| row.time).sum::<Nanos>();
        if rest > Nanos::ZERO {
            rows.push(self.owned(thread, Occupant::Unknown, false, rest, 1));
        }
        let observed = &mut self.threads[thread.0 as usize];
        let cpu = observed.cpu;
        let Some(books) = &mut observed.books else { return whole };
        books.add(LifePart::Queued, at - start - quota);
        books.add(LifePart::Quota, quota);
        for row in &rows {
            let key = Taken { owner: row.owner, kind: row.kind, source: row.source, thread: row.thread };
            let lost = match whole.taken.iter_mut().find(|(taken, _)| *taken == key) {
                Some((_, lost)) => {
                    *lost += row.time;
                    *lost
                }
                None => {
                    whole.taken.push((key, row.time));
                    row.time
                }
            };
            books.takers.entry(key).or_default().add_part(row.time, row.visits, lost);
        }
        ledger.detour(&ThreadDetour { thread, cpu, start, duration: at - start }, &rows);
        whole
    }

    /// An occupant of a CPU as the taker of a waiting thread's time.
    pub(super) fn owned(
        &self,
        victim: ThreadId,
        occupant: Occupant,
        is_limited: bool,
        time: Nanos,
        visits: u64,
    ) -> OwnedActivity {
        let (owner, kind, source, thread) = match occupant {
            Occupant::Activity(kind @ Kind::Workqueue, source) => (Owner::Kernel, kind, source, None),
            Occupant::Activity(kind, source) => (Owner::Interrupt, kind, source, None),
            Occupant::Idle if is_limited => (Owner::Quota, Kind::Throttling, self.names.limit, None),
            Occupant::Idle => (Owner::Kernel, Kind::Kthread, self.names.idle_exit, None),
            Occupant::Unknown => (Owner::Unknown, Kind::NotTraced, self.names.lost, None),
            Occupant::Thread(taker) => {
                let [of, by] = [victim, taker].map(|thread| &self.threads[thread.0 as usize].identity);
                let owner = if by.is_becalm {
                    Owner::Becalm
                } else if by.is_kernel {
                    Owner::Kernel
                } else if by.process == of.process {
                    Owner::Process
                } else if by.chosen {
                    Owner::Chosen
                } else if by.group == of.group && by.group != Label::EMPTY {
                    Owner::Group
                } else {
                    Owner::Others
                };
                let kind = if by.is_becalm {
                    Kind::Becalm
                } else if by.is_kernel {
                    Kind::Kthread
                } else {
                    Kind::Task
                };
                (owner, kind, by.name, Some(taker))
            }
        };
        OwnedActivity { owner, kind, source, thread, time, visits }
    }
}
