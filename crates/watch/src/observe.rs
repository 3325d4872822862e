//! The standing trace: always on if little happens, otherwise as often as its half of the budget allows.
//!
//! A buffer that is half full wakes the watch before its interval ends, so at any event rate at most the contents of the buffers are read late. The
//! trace is off while a window is measured, so the window sees what `becalm record` would see.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use becalm_attribute::{Interruptions, Presence};
use becalm_linux::clock::thread_time;
use becalm_linux::procfs::kallsyms::Kallsyms;
use becalm_measure::{Disturbance, Drained, Names, RecordPlan, StandingTrace};
use becalm_model::node::Warning;
use becalm_model::{Event, Kind, Pid, root};
use becalm_record::Session;
use becalm_units::{CpuId, CpuList, Nanos, Share};

use crate::lead_up;
use crate::schedule::Allowance;
use crate::server::Shared;
use crate::trace::{Opener, Trace};
use crate::traced::TraceState;

/// The total size limit of the buffers of all CPUs, and the minimum and maximum size per CPU, in bytes.
const BUFFERS: (usize, usize, usize) = (64 << 20, 64 << 10, 512 << 10);

/// The maximum number of interruptions remembered from the read before the last, over all CPUs, to be stored with an alert.
const REMEMBERED: usize = lead_up::MOST;

/// The assumed cost of the trace's setup until it was measured: reading the kernel's names, and measuring the cost of an event.
const SET_UP: Nanos = Nanos::from_millis(80);

/// How long the names of the kernel's functions are used, because modules may be loaded and unloaded.
const SYMBOLS_LAST: Duration = Duration::from_secs(3_600);

struct FollowedCpu {
    cpu: CpuId,
    presence: Presence,
    /// The results of the last read, and of the one before.
    found: Interruptions,
    before: Interruptions,
    gap: Nanos,
}

/// The interruptions found on a CPU before an alert.
pub struct RecentInterruptions<'a> {
    pub cpu: CpuId,
    /// The results of the last two reads, the older first.
    pub found: [&'a Interruptions; 2],
}

/// The longest interruption of a read.
pub struct Longest {
    /// The interrupted CPU.
    pub cpu: CpuId,
    /// The length.
    pub duration: Nanos,
    /// The kind of the source to which most of it is charged.
    pub kind: Kind,
    /// The name of that source.
    pub source: String,
}

/// Observes events between the windows.
pub struct Observer<'a> {
    open: Opener<'a>,
    trace: Option<Box<dyn Trace>>,
    followed: Vec<FollowedCpu>,
    allowance: Allowance,
    state: TraceState,
    /// The instant on the trace's axis since which tracing time is not counted yet.
    since: Nanos,
    /// The CPU time of this thread for setup and reading.
    reading: Nanos,
    /// The cost of the last setup.
    set_up: Nanos,
    /// Whether the last call of `look` read anything.
    is_read: bool,
    root: PathBuf,
    /// When the names of the kernel's functions were read.
    named: Instant,
    /// A change of the trace that was not reported yet.
    changed: Option<Disturbance>,
    /// Whether the last trace never contained what the kernel counted.
    lacked: bool,
}

impl<'a> Observer<'a> {
    /// Observes nothing yet.
    pub fn new(open: Opener<'a>, budget: Share, root: &Path) -> Self {
        Self {
            open,
            trace: None,
            followed: Vec::new(),
            allowance: Allowance::half_of(budget),
            state: TraceState::Off,
            since: Nanos::ZERO,
            reading: Nanos::ZERO,
            set_up: SET_UP,
            is_read: false,
            root: root.to_owned(),
            named: Instant::now(),
            changed: None,
            lacked: false,
        }
    }

    /// Sets the total budget from now on.
    pub const fn set_budget(&mut self, budget: Share) {
        self.allowance.set_budget(budget);
    }

    /// The cost of observing these CPUs from now on; `None` if they are already observed.
    pub fn cost_of(&self, cpus: &CpuList) -> Option<Nanos> {
        let known = |cpu| self.followed.iter().any(|followed| followed.cpu == cpu);
        // A CPU that went offline is kept: it may come back.
        let goes_on = if cpus.is_empty() { self.followed.is_empty() } else { cpus.iter().all(known) };
        (!goes_on).then_some(if cpus.is_empty() { Nanos::ZERO } else { self.set_up })
    }

    /// Observes these CPUs from now on; an empty list ends it. Returns the reason if the kernel cannot be traced.
    pub fn observe(&mut self, cpus: &CpuList, shared: &Shared) -> Option<String> {
        self.end();
        if cpus.is_empty() {
            return None;
        }
        let before = thread_time();
        let opened = (self.open)(cpus);
        self.set_up = thread_time() - before;
        self.reading += self.set_up;
        self.allowance.begin(self.set_up);
        self.named = Instant::now();
        self.followed = cpus.iter().map(FollowedCpu::new).collect();
        let trace = match opened {
            Ok(trace) => self.trace.insert(trace),
            Err(why) => return Some(why),
        };
        shared.totals().traced.event_cost = trace.event_cost();
        // It starts with the next call of `look`.
        self.state = TraceState::Resting;
        None
    }

    /// Ends the trace and discards the buffers.
    pub fn end(&mut self) {
        (self.trace, self.state) = (None, TraceState::Off);
        self.followed.clear();
    }

    /// Descriptors that become readable when a buffer fills up.
    pub fn filling(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.trace.iter().filter(|_| self.state == TraceState::On).flat_map(|trace| trace.filling())
    }

    /// Reads new events, and continues or rests the trace, depending on its allowance and on whether the total is within the budget. The error says
    /// what went wrong.
    pub fn look(&mut self, shared: &Shared, most_sources: usize, is_within: bool) -> Result<(), String> {
        self.is_read = false;
        let looked = match self.state {
            TraceState::Off => Ok(()),
            TraceState::On => {
                let read = self.read(shared, most_sources);
                if read.is_ok() && self.trace.is_some() && !(is_within && self.allowance.may_go_on(shared.elapsed())) {
                    shared.totals().traced.rests += 1;
                    self.rest()
                } else {
                    read
                }
            }
            TraceState::Resting if is_within && self.allowance.may_begin(shared.elapsed()) => self.switch_on(shared),
            TraceState::Resting => Ok(()),
        };
        if looked.is_err() {
            self.end();
        }
        shared.totals().traced.state = self.state;
        looked
    }

    /// Switches the trace off while a window is measured. Returns whether to resume it afterward.
    pub fn pause(&mut self, shared: &Shared, most_sources: usize) -> Result<bool, String> {
        if self.state != TraceState::On {
            return Ok(false);
        }
        self.switch_off(shared, most_sources)?;
        Ok(true)
    }

    /// Resumes after a pause.
    pub fn resume(&mut self, shared: &Shared) -> Result<(), String> {
        self.switch_on(shared)
    }

    /// The change of the trace since the last call, if any.
    pub const fn take_change(&mut self) -> Option<Disturbance> {
        self.changed.take()
    }

    /// Ends the trace if it was changed, so it will be set up again. Returns whether it was; fails if setting it up again does not help.
    fn end_if_changed(&mut self, shared: &Shared) -> Result<bool, String> {
        let Some(trace) = &self.trace else { return Ok(false) };
        let (disturbance, is_confirmed) = (trace.disturbance(), trace.is_confirmed());
        self.lacked &= !is_confirmed;
        let Some(disturbance) = disturbance else { return Ok(false) };
        let lacks = matches!(disturbance, Disturbance::Softirqs { .. });
        if lacks && self.lacked {
            return Err(format!("{disturbance}, also after it was set up again"));
        }
        self.end();
        self.lacked = lacks;
        self.changed = Some(disturbance);
        let mut totals = shared.totals();
        totals.traced.disturbed += 1;
        totals.traced.end_interval();
        Ok(true)
    }

    /// The longest interruption of the last read, with its largest part.
    pub fn longest(&self) -> Option<Longest> {
        let trace = self.trace.as_ref().filter(|_| self.is_read)?;
        let longest = |followed: &'_ FollowedCpu| {
            followed
                .found
                .detours
                .iter()
                .map(|detour| detour.duration)
                .enumerate()
                .max_by_key(|(_, duration)| *duration)
        };
        let (followed, (number, duration)) = self
            .followed
            .iter()
            .filter_map(|followed| Some((followed, longest(followed)?)))
            .max_by_key(|(_, (_, duration))| *duration)?;
        let rows = &followed.found.activities;
        let first = rows.first()?.detour + number as u64;
        let labels = &trace.names().labels;
        let mut totals: BTreeMap<(&str, Kind), Nanos> = BTreeMap::new();
        for row in rows.iter().filter(|row| row.detour == first) {
            let (kind, source) = root::row_root(row.kind, labels.text(row.source), labels.text(row.detail));
            *totals.entry((source, kind)).or_default() += row.self_time;
        }
        let ((source, kind), _) = totals.into_iter().max_by_key(|(_, time)| *time)?;
        Some(Longest { cpu: followed.cpu, duration, kind, source: source.to_owned() })
    }

    /// The names of the kernel's functions, if known.
    pub fn symbols(&self) -> Option<Arc<Kallsyms>> {
        self.trace.as_ref()?.symbols().cloned()
    }

    /// The cost of setup and reading so far.
    pub const fn reading(&self) -> Nanos {
        self.reading
    }

    /// The instant up to which the trace was read, on its axis.
    pub const fn until(&self) -> Nanos {
        self.since
    }

    /// Whether the last two reads found anything.
    pub fn remembers_any(&self) -> bool {
        let any = |followed: &FollowedCpu| followed.remembered().found.iter().any(|found| !found.detours.is_empty());
        self.followed.iter().any(any)
    }

    /// The results of the last two reads; `None` if nothing is traced.
    pub fn remembered(&self) -> Option<(&dyn Trace, impl Iterator<Item = RecentInterruptions<'_>>)> {
        Some((self.trace.as_deref()?, self.followed.iter().map(FollowedCpu::remembered)))
    }

    fn switch_on(&mut self, shared: &Shared) -> Result<(), String> {
        if self.end_if_changed(shared)? {
            return Ok(());
        }
        let Some(trace) = &mut self.trace else { return Ok(()) };
        trace.turn(true)?;
        self.since = trace.now();
        self.followed.iter_mut().for_each(|followed| followed.presence.begin(self.since));
        self.state = TraceState::On;
        Ok(())
    }

    fn switch_off(&mut self, shared: &Shared, most_sources: usize) -> Result<(), String> {
        let Some(trace) = &mut self.trace else { return Ok(()) };
        trace.turn(false)?;
        self.read(shared, most_sources)?;
        if self.trace.is_none() {
            return Ok(());
        }
        for followed in &mut self.followed {
            followed.presence.end(&mut followed.found);
        }
        self.state = TraceState::Resting;
        Ok(())
    }

    /// Rests right after a read. Discards events since then, because as a read of their own they would hide the results of the previous one.
    fn rest(&mut self) -> Result<(), String> {
        let Some(trace) = &mut self.trace else { return Ok(()) };
        trace.turn(false)?;
        trace.drain(&mut |_, _, _| ()).map_err(|error| format!("cannot read the kernel's trace: {error}"))?;
        self.followed.iter_mut().for_each(|followed| followed.presence.end(&mut Interruptions::default()));
        self.state = TraceState::Resting;
        Ok(())
    }

    /// Empties the buffers and counts their contents.
    fn read(&mut self, shared: &Shared, most_sources: usize) -> Result<(), String> {
        let Some(trace) = &mut self.trace else { return Ok(()) };
        let before = thread_time();
        let now = trace.now();
        let most = REMEMBERED / self.followed.len().max(1);
        let followed = &mut self.followed;
        let drained: io::Result<Drained> =
            trace.drain(&mut |index, events: &[Event], names: &mut Names| followed[index].take(events, names, most));
        // The data may be affected by a change, and an error may be its consequence.
        if self.end_if_changed(shared)? {
            self.spend(drained.map_or(Nanos::ZERO, |drained| shared.totals().traced.count(drained)), before);
            return Ok(());
        }
        let Some(trace) = &mut self.trace else { return Ok(()) };
        let drained = drained.map_err(|error| format!("cannot read the kernel's trace: {error}"))?;
        let passed = (now - self.since).max(Nanos::ZERO);
        self.since = now;
        let mut totals = shared.totals();
        let cost = totals.traced.count(drained);
        for followed in &mut self.followed {
            let observed = (passed - std::mem::take(&mut followed.gap)).max(Nanos::ZERO);
            let labels = &trace.names().labels;
            totals.traced.add(followed.cpu, observed, &followed.found, labels);
        }
        totals.traced.sources.settle(most_sources);
        drop(totals);
        let is_old = self.named.elapsed() > SYMBOLS_LAST;
        if is_old || trace.knows_many() {
            if is_old {
                trace.read_symbols(&self.root);
                self.named = Instant::now();
            } else {
                trace.forget_names(&self.root);
            }
            self.followed.iter_mut().for_each(|followed| followed.forget(now));
        }
        self.spend(cost, before);
        self.is_read = true;
        Ok(())
    }

    /// Charges the cost of events, and of reading since `before` on the thread's CPU clock.
    fn spend(&mut self, events: Nanos, before: Nanos) {
        let reading = thread_time() - before;
        self.reading += reading;
        self.allowance.spend(events + reading);
    }
}

/// Returns a function that sets up the kernel's trace. `own` are threads of becalm.
pub fn opener<'a>(session: &'a Session, own: &'a [Pid], root: &'a Path) -> Opener<'a> {
    Box::new(move |cpus| {
        let (all, least, most) = BUFFERS;
        let plan = RecordPlan {
            trace_bytes: (all / cpus.len()).clamp(least, most),
            root: root.to_owned(),
            ..RecordPlan::new()
        };
        let mut warnings = Vec::new();
        match StandingTrace::set_up(&plan, cpus, own, session.guard(), &mut warnings) {
            Some(trace) => Ok(Box::new(trace)),
            None => Err(why(&warnings)),
        }
    })
}

impl FollowedCpu {
    fn new(cpu: CpuId) -> Self {
        let (found, before) = (Interruptions::default(), Interruptions::default());
        Self { cpu, presence: Presence::new(cpu), found, before, gap: Nanos::ZERO }
    }

    fn take(&mut self, events: &[Event], names: &mut Names, most: usize) {
        std::mem::swap(&mut self.found, &mut self.before);
        self.found.detours.clear();
        self.found.activities.clear();
        let Names { tasks, labels, .. } = names;
        for event in events {
            self.presence.take(event, tasks, labels, &mut self.found);
        }
        self.gap += self.presence.take_gap();
        keep_newest(&mut self.before, most);
    }

    const fn remembered(&self) -> RecentInterruptions<'_> {
        RecentInterruptions { cpu: self.cpu, found: [&self.before, &self.found] }
    }

    /// Earlier labels are now invalid.
    fn forget(&mut self, at: Nanos) {
        self.presence.end(&mut Interruptions::default());
        self.presence.begin(at);
        (self.found, self.before) = (Interruptions::default(), Interruptions::default());
    }
}

/// Drops the oldest, and frees the memory of a burst.
fn keep_newest(found: &mut Interruptions, most: usize) {
    let over = found.detours.len().saturating_sub(most);
    if over > 0 {
        let first = found.activities.first().map_or(0, |row| row.detour) + over as u64;
        let rows = found.activities.partition_point(|row| row.detour < first);
        found.detours.drain(..over);
        found.activities.drain(..rows);
    }
    found.detours.shrink_to(most);
    found.activities.shrink_to(4 * most);
}

fn why(warnings: &[Warning]) -> String {
    warnings.last().map_or_else(|| "the kernel cannot be traced".to_owned(), |warning| warning.message.clone())
}
