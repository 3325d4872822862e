//! Division of the books: what each portion has, and what is forgotten, so books may be kept for as long as anyone likes.

use becalm_model::observed::{OwnedActivity, Stay, StayReason, ThreadDetour, ThreadId};
use becalm_model::{Labels, Pid};
use becalm_units::{CpuId, Nanos};

use super::thread::{Condition, ObservedThread, Sleep, ThreadBooks, ThreadIdentity, Wait};
use super::{Books, Ledger, Occupant};

/// Keeps nothing: portions are read from the books.
struct NoLedger;

impl Ledger for NoLedger {
    fn stay(&mut self, _: &Stay) {}

    fn detour(&mut self, _: &ThreadDetour, _: &[OwnedActivity]) {}
}

impl Books {
    /// Sets the paths of the groups that the kernel throttled, for the events from now on.
    pub fn set_throttled(&mut self, groups: &[String], labels: &mut Labels) {
        self.throttled = groups.iter().map(|group| labels.intern(group)).collect();
        self.limits.clear();
    }

    /// Divides the books at an instant up to which all events have been taken, and returns the portion since the last division: the books of each
    /// chosen thread that lived meanwhile. Of the CPUs in doubt, events before this instant are known to be lost: nothing is known of them since
    /// their last event. Threads that ended before the last division are forgotten.
    pub fn divide(&mut self, at: Nanos, in_doubt: &[CpuId], labels: &Labels) -> Vec<(ThreadId, ThreadBooks)> {
        for cpu in in_doubt {
            let place = self.place(*cpu, at);
            self.lose(place, Some(0), at, &mut NoLedger);
        }
        for place in 0..self.cpus.len() {
            self.credit(place, at);
        }
        let numbers = (0..self.threads.len()).map(|number| ThreadId(number as u32));
        let portion = numbers.filter_map(|thread| Some((thread, self.divide_thread(thread, at, labels)?))).collect();
        for cpu in self.cpus.iter_mut().flatten() {
            // Waits of chosen threads start at this instant in the new books; no others are looked up.
            cpu.occupancy.restart(at);
        }
        if let Some(divided) = self.divided {
            self.forget_ended(divided);
        }
        self.divided = Some(at);
        portion
    }

    /// The books of a thread since the last division; new ones start, unless it has ended.
    fn divide_thread(&mut self, thread: ThreadId, at: Nanos, labels: &Labels) -> Option<ThreadBooks> {
        let observed = &mut self.threads[thread.0 as usize];
        let condition = observed.condition;
        if matches!(condition, Condition::Unborn | Condition::Dead) {
            return observed.books.take().filter(|books| books.wall() > Nanos::ZERO);
        }
        observed.books.as_ref()?;
        if let (Condition::Queued { reason, .. }, Some(wait)) = (condition, observed.wait.take()) {
            self.divide_wait(thread, wait, reason, at, labels);
        } else {
            let length = at - observed.since;
            if let Some(books) = observed.books.as_mut().filter(|_| length > Nanos::ZERO) {
                books.add(condition.part(), length);
                if let Condition::Asleep { state, context } | Condition::Stopped { state, context } = condition {
                    // It counts when it ends.
                    books.sleeps.entry(Sleep { state, context }).or_default().add(length, 0);
                }
            }
            if condition == Condition::Left {
                let cpu = observed.cpu;
                observed.wait = Some(Wait::new(cpu, at));
            }
        }
        let observed = &mut self.threads[thread.0 as usize];
        observed.since = at;
        let mut books = observed.books.replace(ThreadBooks::new(at))?;
        books.end = at;
        Some(books).filter(|books| books.wall() > Nanos::ZERO)
    }

    fn divide_wait(&mut self, thread: ThreadId, mut wait: Wait, reason: StayReason, at: Nanos, labels: &Labels) {
        let cpu = self.threads[thread.0 as usize].cpu;
        let place = self.place(cpu, at);
        let occupant = self.at(place).occupancy.last();
        let limit = self.limit(self.threads[thread.0 as usize].identity.group, labels);
        // A later event cannot say so for this portion. An idle CPU does not leave a preempted thread waiting for any other reason.
        if let Some(limit) = limit
            && reason == StayReason::Preempted
            && occupant == Some(Occupant::Idle)
        {
            let left = self.at(place).last_left.get(&limit).copied().unwrap_or(Nanos::new(i64::MIN));
            wait.add_quota(wait.since().max(left), at);
        }
        let before = Some(self.end_wait(thread, &wait, reason, at, &mut NoLedger));
        let mut rest = Wait::new(cpu, at);
        rest.before = before;
        self.threads[thread.0 as usize].wait = Some(rest);
    }

    /// Forgets threads that ended by this instant: no portion from now on has them. Their numbers are free for others.
    fn forget_ended(&mut self, until: Nanos) {
        let Self { threads, numbers, free, .. } = self;
        let mut freed = Vec::new();
        for (number, observed) in (0..).zip(threads.iter_mut()) {
            let thread = ThreadId(number);
            if observed.condition == Condition::Dead && observed.identity.ended.take_if(|at| *at <= until).is_some() {
                let pid = observed.identity.pid;
                if numbers.get(&pid) == Some(&thread) {
                    numbers.remove(&pid);
                }
                *observed = ObservedThread::new(ThreadIdentity::unknown(Pid(-1)));
                observed.condition = Condition::Dead;
                freed.push(thread);
            }
        }
        if !freed.is_empty() {
            for observed in threads.iter_mut() {
                observed.identity.parent.take_if(|parent| freed.binary_search(parent).is_ok());
            }
            free.append(&mut freed);
        }
    }
}
