//! The lives of threads in the books: what each event makes of a thread.

use becalm_model::observed::{StayReason, ThreadId};
use becalm_model::{Label, Labels, Life, Pid, ThreadState};
use becalm_units::{CpuId, Nanos};

use super::switches::UNKNOWN_THREAD;
use super::thread::{Condition, RanAs, ThreadBooks, ThreadIdentity, Wait};
use super::{Books, DEPTH, Ledger, Present, REMEMBERED};

impl Books {
    pub(super) fn switch(
        &mut self,
        place: usize,
        (prev, prev_state): (Pid, ThreadState),
        next: Pid,
        at: Nanos,
        labels: &Labels,
        ledger: &mut impl Ledger,
    ) {
        self.credit(place, at);
        self.at(place).stack.clear();
        self.end_on_top(place, ledger);
        if let Some(left) = self.numbers.get(&prev).copied().filter(|_| prev.0 > 0) {
            self.depart(left, place, prev_state, at, labels, ledger);
        }
        let present = match next {
            UNKNOWN_THREAD => Present::Unknown,
            Pid::IDLE => Present::Idle,
            pid => Present::Thread(self.thread(pid)),
        };
        self.arrive(place, present, at, ledger);
    }

    /// A thread leaves the CPU.
    pub(super) fn depart(
        &mut self,
        thread: ThreadId,
        place: usize,
        state: ThreadState,
        at: Nanos,
        labels: &Labels,
        ledger: &mut impl Ledger,
    ) {
        let cpu = self.at(place).cpu;
        if matches!(self.threads[thread.0 as usize].condition, Condition::Ran) {
            if self.threads[thread.0 as usize].cpu != cpu {
                self.take_off(thread, at, ledger);
            }
            self.settle_host(thread, at, ledger);
        }
        self.leave(thread, at, ledger);
        let limit = self.limit(self.threads[thread.0 as usize].identity.group, labels);
        let observed = &mut self.threads[thread.0 as usize];
        observed.cpu = cpu;
        let pending = observed.pending.take();
        if state == ThreadState::UNKNOWN {
            observed.condition = Condition::Left;
            observed.wait = Some(Wait::new(cpu, at));
            self.at(place).waiting.push(thread);
        } else if state.is_runnable() {
            if let Some(limit) = limit {
                self.at(place).last_left.insert(limit, at);
            }
            self.queue(thread, cpu, StayReason::Preempted, at);
        } else if state.is_dead() {
            observed.condition = Condition::Dead;
            observed.identity.ended = Some(at);
        } else if let Some(by) = pending {
            observed.condition = Condition::OnTheWay { by };
        } else {
            let context = observed.sleeps_in(self.names.dirty, self.names.page_fault);
            observed.condition = Condition::asleep(state, context);
        }
        let observed = &mut self.threads[thread.0 as usize];
        (observed.faults, observed.is_paused) = (false, false);
    }

    /// A thread has the CPU from now on.
    pub(super) fn arrive(&mut self, place: usize, present: Present, at: Nanos, ledger: &mut impl Ledger) {
        if let Present::Thread(left) = self.at(place).present
            && matches!(self.threads[left.0 as usize].condition, Condition::Ran)
        {
            // Without a switch, it is not known why it left.
            self.leave(left, at, ledger);
            self.threads[left.0 as usize].condition = Condition::Unknown;
        }
        self.end_on_top(place, ledger);
        let cpu = self.at(place);
        cpu.present = present;
        cpu.stack.clear();
        let id = cpu.cpu;
        if let Present::Thread(thread) = present {
            match self.threads[thread.0 as usize].condition {
                // It waited since it left, or the trace would have shown a waking.
                Condition::Left => {
                    let observed = &mut self.threads[thread.0 as usize];
                    observed.condition = Condition::Queued { reason: StayReason::Preempted, by: None };
                }
                Condition::Asleep { .. } | Condition::Stopped { .. } => self.tally.unexpected_runs += 1,
                // Its way to the run queue takes microseconds: the event of its arrival there is not in the trace.
                Condition::OnTheWay { by } if at - self.threads[thread.0 as usize].since <= REMEMBERED => {
                    let observed = &mut self.threads[thread.0 as usize];
                    observed.condition = Condition::Queued { reason: StayReason::Woken, by };
                    observed.wait = Some(Wait::new(id, observed.since));
                    observed.cpu = id;
                }
                Condition::Ran => self.take_off(thread, at, ledger),
                _ => {}
            }
            self.leave(thread, at, ledger);
            let observed = &mut self.threads[thread.0 as usize];
            observed.condition = Condition::Ran;
            observed.cpu = id;
            observed.accounted_until = at;
            observed.excess = Nanos::ZERO;
            if observed.identity.chosen && observed.books.is_none() && self.is_open {
                self.begin_books(thread, at);
            }
            if let Some(books) = &mut self.threads[thread.0 as usize].books {
                books.switches += 1;
            }
        }
        self.occupy(place, at, true);
    }

    /// A running thread is elsewhere or ends: the switch from it is not in the trace.
    fn take_off(&mut self, thread: ThreadId, at: Nanos, ledger: &mut impl Ledger) {
        let place = self.place(self.threads[thread.0 as usize].cpu, at);
        self.credit(place, at);
        self.end_on_top(place, ledger);
        let cpu = self.at(place);
        cpu.present = Present::Unknown;
        cpu.stack.clear();
        self.occupy(place, at, true);
    }

    /// A thread waits for a CPU from now on.
    pub(super) fn queue(&mut self, thread: ThreadId, cpu: CpuId, reason: StayReason, at: Nanos) {
        let place = self.place(cpu, at);
        let observed = &mut self.threads[thread.0 as usize];
        let by = observed.condition.by();
        observed.condition = Condition::Queued { reason, by };
        observed.cpu = cpu;
        observed.wait = Some(Wait::new(cpu, at));
        self.at(place).waiting.push(thread);
    }

    pub(super) fn waking(&mut self, place: usize, pid: Pid, at: Nanos, ledger: &mut impl Ledger) {
        let cpu = self.at(place);
        let by = match cpu.present {
            Present::Thread(thread) if cpu.stack.is_empty() => Some(thread),
            _ => None,
        };
        let thread = self.thread(pid);
        match self.threads[thread.0 as usize].condition {
            Condition::Ran => self.threads[thread.0 as usize].pending = Some(by),
            Condition::Asleep { .. } | Condition::Stopped { .. } | Condition::Unknown | Condition::Left => {
                self.slept(thread);
                self.leave(thread, at, ledger);
                self.threads[thread.0 as usize].condition = Condition::OnTheWay { by };
            }
            _ => {}
        }
    }

    pub(super) fn woken(
        &mut self,
        pid: Pid,
        cpu: CpuId,
        is_new: bool,
        at: Nanos,
        labels: &Labels,
        ledger: &mut impl Ledger,
    ) {
        if cpu.get() >= CpuId::LIMIT {
            return;
        }
        let thread = self.thread(pid);
        match self.threads[thread.0 as usize].condition {
            Condition::Ran => self.threads[thread.0 as usize].pending = None,
            Condition::Queued { .. } | Condition::Dead => {}
            Condition::Unborn => {
                self.threads[thread.0 as usize].since = at;
                self.queue(thread, cpu, StayReason::New, at);
                self.choose_again(thread, at, labels);
            }
            _ => {
                self.slept(thread);
                self.leave(thread, at, ledger);
                self.queue(thread, cpu, if is_new { StayReason::New } else { StayReason::Woken }, at);
            }
        }
    }

    /// A thread is woken: if the switch from it is not in the trace, it slept since.
    pub(super) fn slept(&mut self, thread: ThreadId) {
        let observed = &mut self.threads[thread.0 as usize];
        if observed.condition == Condition::Left {
            observed.condition = Condition::asleep(ThreadState::UNKNOWN, Label::EMPTY);
        }
    }

    pub(super) fn live(&mut self, place: usize, life: Life, at: Nanos, labels: &Labels, ledger: &mut impl Ledger) {
        match life {
            Life::Moved { thread, cpu } => self.moved(thread, cpu, at),
            Life::Created { thread, name, in_process } => self.created(place, thread, name, in_process, at, ledger),
            Life::Renamed { thread, name } => self.rename(thread, name, at, labels),
            Life::Accounted { thread, ran } => {
                if let Some(thread) = self.numbers.get(&thread).copied()
                    && self.at(place).present == Present::Thread(thread)
                {
                    let observed = &mut self.threads[thread.0 as usize];
                    observed.excess += at - observed.accounted_until - ran;
                    observed.accounted_until = at;
                    self.settle_host(thread, at, ledger);
                }
            }
            Life::WorkBegan { work } => self.begin_work(place, work, at, ledger),
            Life::WorkEnded { work } => self.end_work(place, |known| known == work, at, ledger),
            Life::CallBegan { call } => {
                self.end_work(place, |_| true, at, ledger);
                self.begin_work(place, call, at, ledger);
                if let Some(thread) = self.own_context(place) {
                    thread.faults = false;
                }
            }
            Life::CallEnded => self.end_work(place, |_| true, at, ledger),
            Life::Dirtied { is_paused } => {
                if let Some(thread) = self.own_context(place) {
                    thread.is_paused = is_paused;
                }
            }
        }
    }

    /// The thread on a CPU starts work of the kernel on its own behalf.
    pub(super) fn begin_work(&mut self, place: usize, work: Label, at: Nanos, ledger: &mut impl Ledger) {
        self.credit(place, at);
        let Some(thread) = self.in_own_context(place) else { return };
        self.leave(thread, at, ledger);
        let observed = &mut self.threads[thread.0 as usize];
        if observed.works.len() >= DEPTH {
            observed.works.clear();
        }
        observed.works.push(work);
        if let Some(books) = &mut observed.books {
            books.ran_as.entry(RanAs::Own(work)).or_default().count += 1;
        }
    }

    /// The thread on a CPU ends the outermost such work that `is_it`, and all within.
    pub(super) fn end_work(
        &mut self,
        place: usize,
        is_it: impl Fn(Label) -> bool,
        at: Nanos,
        ledger: &mut impl Ledger,
    ) {
        self.credit(place, at);
        let Some(thread) = self.in_own_context(place) else { return };
        if let Some(depth) = self.threads[thread.0 as usize].works.iter().position(|work| is_it(*work)) {
            self.leave(thread, at, ledger);
            self.threads[thread.0 as usize].works.truncate(depth);
        }
    }

    /// A waiting thread was moved to the run queue of another CPU.
    pub(super) fn moved(&mut self, pid: Pid, cpu: CpuId, at: Nanos) {
        let known = self.numbers.get(&pid).copied().filter(|_| cpu.get() < CpuId::LIMIT);
        let Some(thread) = known else { return };
        let observed = &mut self.threads[thread.0 as usize];
        if observed.condition == Condition::Left {
            // A sleeping thread would have been woken first.
            observed.condition = Condition::Queued { reason: StayReason::Preempted, by: None };
        }
        let Some(wait) = observed.wait.as_mut().filter(|_| matches!(observed.condition, Condition::Queued { .. }))
        else {
            return;
        };
        let from = std::mem::replace(&mut observed.cpu, cpu);
        if from == cpu {
            return;
        }
        wait.go_on(cpu, at);
        let [from, to] = [from, cpu].map(|cpu| self.place(cpu, at));
        self.at(from).waiting.retain(|other| *other != thread);
        self.at(to).waiting.push(thread);
    }

    pub(super) fn created(
        &mut self,
        place: usize,
        pid: Pid,
        name: Label,
        in_process: bool,
        at: Nanos,
        ledger: &mut impl Ledger,
    ) {
        let creator = match self.at(place).present {
            Present::Thread(thread) => Some(thread),
            _ => None,
        };
        if let Some(earlier) = self.numbers.remove(&pid)
            && !matches!(self.threads[earlier.0 as usize].condition, Condition::Dead)
        {
            // Its end is not in the trace, and its number is used again.
            if matches!(self.threads[earlier.0 as usize].condition, Condition::Ran) {
                self.take_off(earlier, at, ledger);
            }
            self.leave(earlier, at, ledger);
            let earlier = &mut self.threads[earlier.0 as usize];
            earlier.condition = Condition::Dead;
            earlier.identity.ended = Some(at);
        }
        let parent = creator.map(|creator| &self.threads[creator.0 as usize].identity);
        let identity = ThreadIdentity {
            pid,
            process: if in_process { parent.map_or(pid, |parent| parent.process) } else { pid },
            parent: creator,
            name,
            command: if in_process { parent.map_or(Label::EMPTY, |parent| parent.command) } else { Label::EMPTY },
            group: parent.map_or(Label::EMPTY, |parent| parent.group),
            is_kernel: parent.is_some_and(|parent| parent.is_kernel),
            is_becalm: parent.is_some_and(|parent| parent.is_becalm && in_process),
            chosen: false,
            started: Some(at),
            ended: None,
        };
        let thread = self.register(pid, identity);
        let observed = &mut self.threads[thread.0 as usize];
        observed.condition = Condition::Unborn;
        observed.is_named = true;
        observed.since = at;
    }

    /// Looks whether a thread is chosen now; its books then start.
    pub(super) fn choose_again(&mut self, thread: ThreadId, at: Nanos, labels: &Labels) {
        let observed = &self.threads[thread.0 as usize];
        if observed.identity.chosen {
            if self.is_open && observed.books.is_none() {
                self.begin_books(thread, at);
            }
            return;
        }
        let parent = observed.identity.parent.map(|parent| &self.threads[parent.0 as usize].identity);
        // Children of becalm, such as the command, are chosen by their own numbers.
        let is_child = parent.is_some_and(|parent| parent.chosen);
        if is_child || (self.choose)(&observed.identity, labels) {
            self.threads[thread.0 as usize].identity.chosen = true;
            if self.is_open {
                self.begin_books(thread, at);
            }
        }
    }

    pub(super) fn begin_books(&mut self, thread: ThreadId, at: Nanos) {
        let observed = &mut self.threads[thread.0 as usize];
        if matches!(observed.condition, Condition::Unborn | Condition::Dead) {
            return;
        }
        observed.books = Some(ThreadBooks::new(at));
        observed.since = at;
        if let Some(wait) = &mut observed.wait {
            wait.restart(observed.cpu, at);
        }
        if matches!(observed.condition, Condition::Ran)
            && let Some(place) =
                self.cpus.iter().position(|cpu| cpu.as_ref().is_some_and(|cpu| cpu.present == Present::Thread(thread)))
        {
            // The time before belongs to no books.
            self.at(place).since = at;
        }
    }
}
