//! The thread that measures: windows as often as the budget allows, alerts, and signals in between.

use std::io;
use std::net::TcpListener;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use becalm_linux::ftrace::{self, Tracefs};
use becalm_linux::procfs::kernel::hostname;
use becalm_linux::procfs::stat::Stat;
use becalm_linux::signals::is_hangup;
use becalm_linux::sockets::{Await, wait_ready};
use becalm_linux::{alarm, usage};
use becalm_measure::{RecordError, RecordPlan};
use becalm_model::{NodeDoc, Pid};
use becalm_record::{DetourStore, Session};
use becalm_units::{CpuId, CpuList, Nanos, printable};

use crate::before;
use crate::choice::Round;
use crate::config::WatchSettings;
use crate::feed::{Failure, WindowFeed, WindowSums};
use crate::kernel::KernelReader;
use crate::observe::{Observer, opener};
use crate::otlp;
use crate::ring::{Holds, Ring, RingError};
use crate::said::Said;
use crate::schedule::Schedule;
use crate::server::{Server, Shared};
use crate::totals::{Measured, Outcome, Totals};

/// Why nothing can be watched.
#[derive(Debug, thiserror::Error)]
pub enum WatchError {
    /// The folder cannot be used.
    #[error(transparent)]
    Ring(#[from] RingError),
    /// The thread that answers cannot be started.
    #[error("cannot answer on the socket: {0}")]
    Server(io::Error),
    /// The thread that sends to a collector cannot be started.
    #[error("cannot send to a collector: {0}")]
    Sender(io::Error),
    /// Signals cannot be waited for.
    #[error("cannot wait: {0}")]
    Wait(io::Error),
}

/// What watching came to, and what it took.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ran {
    /// For how long.
    pub elapsed: Nanos,
    /// CPU time of the whole process.
    pub cpu: Nanos,
}

/// What was asked of the thread by a signal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Asked {
    Nothing,
    Reload,
    Stop,
}

/// What a watch has around it.
pub struct Surroundings<'a> {
    /// Gives the plan of a recording, of which CPUs and duration are set here.
    pub plan: &'a dyn Fn() -> RecordPlan,
    /// Reads the configuration anew.
    pub reload: &'a dyn Fn() -> Result<WatchSettings, String>,
    /// Tells the administrator.
    pub say: &'a dyn Fn(&str),
    /// Where time is to fly, as in tests: called instead of sleeping, with how long that would have been, after which so much has passed.
    /// The answer tells whether to go on.
    pub instead_of_sleep: Option<&'a dyn Fn(Nanos) -> bool>,
}

/// Watches until a signal asks to end.
///
/// # Errors
/// If the folder or the socket cannot be used. A window that fails is counted and said, and watching goes on.
pub fn watch(
    session: &Session,
    settings: WatchSettings,
    listener: TcpListener,
    around: &Surroundings<'_>,
) -> Result<Ran, WatchError> {
    let ring = settings.output.as_deref().map(Ring::open).transpose()?;
    let shared = Arc::new(Shared::new(Totals::new(settings.budget)));
    let server = Server::start(listener, Arc::clone(&shared)).map_err(WatchError::Server)?;
    let root = (around.plan)().root;
    remove_dead(&root);
    let mut own = vec![server];
    if let Some(collector) = &settings.otlp {
        let host = hostname(&root).unwrap_or_default();
        let sender = otlp::start(collector.clone(), settings.otlp_interval, host, Arc::clone(&shared));
        own.push(sender.map_err(WatchError::Sender)?);
    }
    let observer = Observer::new(opener(session, &own, &root), settings.budget, &root);
    let mut watcher = Watcher::new(session, settings, observer, (shared, own.clone()), around);
    watcher.ring = ring;
    watcher.keep_to_bound();
    let mut kernel = KernelReader::new(&root);
    loop {
        match watcher.look(&mut kernel)? {
            Asked::Nothing => {}
            Asked::Stop => return Ok(Ran { elapsed: watcher.shared.elapsed(), cpu: watcher.spent() }),
            Asked::Reload => watcher.reload((around.reload)()),
        }
    }
}

/// Removes the traces of watches that were killed together with their guards, as service managers do: each costs every event of everybody
/// until a new one is set up, which may be a while.
fn remove_dead(root: &Path) {
    if let Ok(tracefs) = Tracefs::find(root) {
        // What cannot be removed now is tried again then.
        let _ = ftrace::remove_dead(&tracefs, &root.join("proc"));
    }
}

/// A recording that was made.
struct Window {
    /// Whether it raised an alert.
    is_alert: bool,
    node: NodeDoc,
}

struct Watcher<'a> {
    session: &'a Session,
    settings: WatchSettings,
    observer: Observer<'a>,
    schedule: Schedule,
    shared: Arc<Shared>,
    /// The threads that answer and send.
    own: Vec<Pid>,
    ring: Option<Ring>,
    round: Round,
    around: &'a Surroundings<'a>,
    /// What went wrong, which is not said again soon.
    said: Said,
    /// The kernel cannot be traced; a new configuration has it tried again.
    not_traced: bool,
}

impl<'a> Watcher<'a> {
    /// One that has seen nothing yet, and stores nothing.
    fn new(
        session: &'a Session,
        settings: WatchSettings,
        observer: Observer<'a>,
        (shared, own): (Arc<Shared>, Vec<Pid>),
        around: &'a Surroundings<'a>,
    ) -> Self {
        Self {
            session,
            observer,
            schedule: Schedule::new(settings.budget, settings.window),
            settings,
            shared,
            own,
            ring: None,
            round: Round::default(),
            around,
            said: Said::default(),
            not_traced: false,
        }
    }
}

impl Watcher<'_> {
    /// An interval: the kernel's counters, a window if one is due, and then sleep until the next or a signal.
    fn look(&mut self, kernel: &mut KernelReader<'_>) -> Result<Asked, WatchError> {
        let mut began = Instant::now();
        let mut asked = Asked::Nothing;
        let unsent = self.shared.totals().unsent.take();
        if let Some(why) = unsent {
            self.say_once(why.clone(), &format!("metrics could not be sent to {why}"));
        }
        if let Some((stat, counts)) = kernel.read() {
            self.round.look(&stat);
            self.shared.totals().kernel = counts;
            self.observe(&stat);
            asked = self.look_at_the_trace();
            if asked == Asked::Nothing && self.is_due() {
                asked = self.window();
                // A whole interval follows, so that the trace is on between windows also where one takes longer than that.
                began = Instant::now();
            }
        }
        // The first two looks are a second apart, as only the second tells which CPUs are idle.
        let interval =
            if self.round.knows() { self.settings.interval } else { Nanos::from_secs(1).min(self.settings.interval) };
        if asked == Asked::Nothing {
            asked = self.sleep(began + interval.to_std())?;
            if asked == Asked::Nothing {
                asked = meaning(self.session.signals().take());
            }
            if asked != Asked::Stop {
                let _ = self.session.signals().take_last();
            }
        }
        Ok(asked)
    }

    /// Sleeps until then, or a signal. A buffer of the trace that fills up meanwhile is emptied.
    fn sleep(&mut self, until: Instant) -> Result<Asked, WatchError> {
        if let Some(instead) = self.around.instead_of_sleep {
            let left = until.saturating_duration_since(Instant::now()).as_nanos();
            let left = Nanos::new(i64::try_from(left).unwrap_or(i64::MAX));
            self.shared.skip(left);
            return Ok(if instead(left) { Asked::Nothing } else { Asked::Stop });
        }
        loop {
            let signals = [(self.session.signals().as_fd(), Await::Readable)];
            let fds: Vec<_> =
                signals.into_iter().chain(self.observer.filling().map(|fd| (fd, Await::Readable))).collect();
            let ready =
                wait_ready(&fds, Some(until.saturating_duration_since(Instant::now()))).map_err(WatchError::Wait)?;
            if ready[0] || until <= Instant::now() {
                return Ok(Asked::Nothing);
            }
            if ready[1..].contains(&true) {
                let asked = self.look_at_the_trace();
                if asked != Asked::Nothing {
                    return Ok(asked);
                }
            }
        }
    }

    /// Whether the budget allows a window by now.
    fn is_due(&self) -> bool {
        self.schedule.is_due(self.spent(), self.shared.elapsed())
    }

    /// CPU time that the whole took, by the kernel's count, with what events cost others.
    fn spent(&self) -> Nanos {
        let guard = self.session.guard().as_ref().map_or(Nanos::ZERO, |guard| usage::cpu_time_of(guard.pid()));
        let mut totals = self.shared.totals();
        totals.parts.guard = guard;
        totals.parts.trace = self.observer.reading();
        usage::cpu_time() + guard + totals.traced.cost()
    }

    /// Has the CPUs traced that are online and wanted, as soon as the budget allows setting that up.
    fn observe(&mut self, stat: &Stat) {
        let cpus: CpuList = stat.cpus.iter().map(|(cpu, _)| *cpu).collect();
        let cpus = match &self.settings.cpus {
            Some(wanted) => cpus.intersection(wanted),
            None => cpus,
        };
        self.shared.totals().keep_cpus(&cpus);
        let cpus = if self.settings.trace && !self.not_traced { cpus } else { CpuList::default() };
        let Some(cost) = self.observer.cost_of(&cpus) else { return };
        if cost > Nanos::ZERO && !self.schedule.affords(cost, self.spent(), self.shared.elapsed()) {
            return;
        }
        if let Some(why) = self.observer.observe(&cpus, &self.shared) {
            self.not_traced = true;
            (self.around.say)(&format!("the kernel is not traced between windows: {why}"));
        }
    }

    /// Counts what the trace saw by now. Where that raises an alert, the CPU is recorded, if the budget allows it.
    fn look_at_the_trace(&mut self) -> Asked {
        let is_within = self.schedule.is_within(self.spent(), self.shared.elapsed());
        if let Err(why) = self.observer.look(&self.shared, self.settings.sources as usize, is_within) {
            self.give_the_trace_up(&why);
        }
        let Some(longest) = self.observer.longest() else { return Asked::Nothing };
        let Some(trigger) = self.settings.triggers.iter().find(|trigger| trigger.is_raised(longest.duration, 0.0))
        else {
            return Asked::Nothing;
        };
        self.shared.totals().traced.alerts += 1;
        let alert = format!(
            "{trigger} on CPU {}, seen by the kernel's trace: an interruption of {} by {} ({})",
            longest.cpu,
            longest.duration,
            printable(&longest.source),
            longest.kind
        );
        if !self.schedule.is_due_out_of_turn(self.spent(), self.shared.elapsed()) {
            return Asked::Nothing;
        }
        (self.around.say)(&format!("alert: {alert}; the CPU is recorded now"));
        self.quietly(|watcher| {
            let before = usage::cpu_time();
            let (asked, after) = watcher.measure(longest.cpu, watcher.settings.alert, Holds::After);
            if let Some(after) = after {
                watcher.store_before(&after.node);
            }
            watcher.schedule.took_for_alert(usage::cpu_time() - before);
            watcher.schedule.took_out_of_turn();
            asked
        })
    }

    /// Does something that takes a CPU while the trace is off.
    fn quietly(&mut self, act: impl FnOnce(&mut Self) -> Asked) -> Asked {
        let goes_on = self.observer.pause(&self.shared, self.settings.sources as usize);
        let before = usage::cpu_time();
        let asked = act(self);
        self.shared.totals().parts.windows += usage::cpu_time() - before;
        self.keep_to_bound();
        let went_on = goes_on.and_then(|goes_on| if goes_on { self.observer.resume() } else { Ok(()) });
        if let Err(why) = went_on {
            self.give_the_trace_up(&why);
        }
        asked
    }

    fn give_the_trace_up(&mut self, why: &str) {
        self.observer.end();
        self.not_traced = true;
        (self.around.say)(&format!("the kernel is not traced between windows any more: {why}"));
    }

    /// Measures a CPU, if one is idle, and once more if that raises an alert.
    fn window(&mut self) -> Asked {
        if !self.round.knows() {
            return Asked::Nothing;
        }
        let Some(cpu) = self.round.next(self.settings.cpus.as_ref(), self.settings.busy) else {
            self.shared.totals().miss(Outcome::Busy);
            return Asked::Nothing;
        };
        self.quietly(|watcher| {
            let before = usage::cpu_time();
            let (mut asked, window) = watcher.measure(cpu, watcher.settings.window, Holds::Window);
            if let Some(window) = window.filter(|window| window.is_alert) {
                let before = usage::cpu_time();
                watcher.store_before(&window.node);
                if asked == Asked::Nothing {
                    asked = watcher.measure(cpu, watcher.settings.alert, Holds::After).0;
                }
                watcher.schedule.took_for_alert(usage::cpu_time() - before);
            }
            watcher.schedule.took(usage::cpu_time() - before);
            asked
        })
    }

    /// One recording. Tells what a signal asked meanwhile, and what came of it; `None` if it failed.
    fn measure(&mut self, cpu: CpuId, duration: Nanos, holds: Holds) -> (Asked, Option<Window>) {
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
        // What cannot be stored is in the feed.
        let _ = recorded.complete();
        let (watched, lost) =
            recorded.node.cpus.first().map_or((Nanos::ZERO, 0), |doc| (doc.duration_ns, doc.lost_events));
        let sums = std::mem::take(&mut recorded.store.sums);
        let measured = Measured {
            cpu,
            watched,
            sums: &sums,
            lost_events: lost,
            rung: recorded.node.rung,
            at_ns: alarm::wall_ns(),
        };
        let raised = if holds == Holds::Window { self.raised(&measured, &sums) } else { None };
        {
            let mut totals = self.shared.totals();
            totals.add(&measured, self.settings.sources as usize);
            totals.alerts += u64::from(raised.is_some());
        }
        let failure = recorded.store.failure.take();
        let window = Window { is_alert: raised.is_some(), node: recorded.node.clone() };
        drop(recorded);
        let holds = if raised.is_some() { Holds::Alert } else { holds };
        let kept = path.as_deref().and_then(|path| self.keep(path, holds, failure));
        if let Some(raised) = &raised {
            (self.around.say)(&format!(
                "alert: {raised}{}",
                kept.map_or_else(String::new, |path| format!("; see {}", path.display()))
            ));
        }
        (asked, Some(window))
    }

    /// Stores what the trace saw before a window that raised an alert.
    fn store_before(&mut self, window: &NodeDoc) {
        if !self.observer.remembers_any() {
            return;
        }
        let Some(path) = self.ring.as_mut().map(|ring| ring.next(Holds::Before)) else { return };
        let Some((trace, remembered)) = self.observer.remembered() else { return };
        let stored = before::store(&path, window, trace, remembered, self.observer.until());
        let failure = stored.err().map(|error| Failure { why: error.to_string(), disk_is_full: error.is_full() });
        self.keep(&path, Holds::Before, failure);
    }

    /// What a window raised, in words; `None` if it raised nothing.
    fn raised(&self, window: &Measured<'_>, sums: &WindowSums) -> Option<String> {
        let trigger =
            self.settings.triggers.iter().find(|trigger| trigger.is_raised(sums.longest, window.noise_ratio()))?;
        let most = sums.sources.iter().max_by_key(|(_, time)| **time);
        let most =
            most.map_or_else(String::new, |((kind, name), _)| format!(", most of it by {} ({kind})", printable(name)));
        let noise = window.noise_ratio() * 100.0;
        Some(format!(
            "{trigger} on CPU {}: the longest detour took {}, noise was {noise:.3}%{most}",
            window.cpu, sums.longest
        ))
    }

    /// Keeps a bundle, or removes what there is of it; gives its path.
    fn keep(&mut self, path: &Path, holds: Holds, failure: Option<Failure>) -> Option<PathBuf> {
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
        // On a small disk this one comes again and again, in one file or another; and each recording has a name of its own.
        let path = path.display().to_string();
        let what = if failure.disk_is_full { "full".to_owned() } else { failure.why.replace(&path, "") };
        self.say_once(what, &format!("a recording could not be stored: {}", failure.why));
        None
    }

    fn fail(&mut self, cpu: CpuId, error: &RecordError<io::Error>) {
        self.shared.totals().miss(Outcome::Failed);
        self.say_once(error.to_string(), &format!("CPU {cpu} could not be measured: {error}"));
    }

    /// Says what went wrong, unless that is still going on; `what` is the same each time.
    fn say_once(&mut self, what: String, text: &str) {
        if self.said.is_new(what, self.shared.elapsed()) {
            (self.around.say)(text);
        }
    }

    fn keep_to_bound(&mut self) {
        if let Some(ring) = &mut self.ring {
            ring.shrink(self.settings.keep.get());
            self.shared.totals().ring = (ring.bytes(), ring.len() as u64);
        }
    }

    /// Takes new settings, but for the socket, the folder and the collector, which stay until the next start.
    fn reload(&mut self, settings: Result<WatchSettings, String>) {
        match settings {
            Ok(settings) => {
                let WatchSettings { listen, output, otlp, otlp_interval, .. } = &self.settings;
                if (listen, output) != (&settings.listen, &settings.output)
                    || (otlp, otlp_interval) != (&settings.otlp, &settings.otlp_interval)
                {
                    (self.around.say)("another address, folder or collector is used from the next start on");
                }
                if settings.cpus != self.settings.cpus {
                    // It is set up anew, of those alone.
                    self.observer.end();
                }
                let (listen, output) = (self.settings.listen, self.settings.output.take());
                let (otlp, otlp_interval) = (self.settings.otlp.take(), self.settings.otlp_interval);
                self.settings = WatchSettings { listen, output, otlp, otlp_interval, ..settings };
                self.schedule.set(self.settings.budget, self.settings.window);
                self.observer.set_budget(self.settings.budget);
                self.not_traced = false;
                self.said = Said::default();
                let mut totals = self.shared.totals();
                totals.budget = self.settings.budget;
                totals.sources.rank(self.settings.sources as usize);
                totals.reloads.0 += 1;
                drop(totals);
                self.keep_to_bound();
                (self.around.say)("the configuration was read again");
            }
            Err(why) => {
                self.shared.totals().reloads.1 += 1;
                (self.around.say)(&format!("the configuration stays as it was: {why}"));
            }
        }
    }
}

const fn meaning(signal: Option<i32>) -> Asked {
    match signal {
        None => Asked::Nothing,
        Some(signal) if is_hangup(signal) => Asked::Reload,
        Some(_) => Asked::Stop,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use becalm_linux::clock::{Anchor, MonotonicRaw};
    use becalm_linux::procfs::kallsyms::Kallsyms;
    use becalm_measure::{Drained, Names};
    use becalm_model::node::TracingDoc;
    use becalm_model::{Event, Happening, Label};
    use std::cell::{Cell, RefCell};
    use std::io::Write;
    use std::os::fd::BorrowedFd;

    use crate::config::WatchConfig;
    use crate::trace::{Take, Trace};

    /// A trace of which the first reading tells of an interrupt on its first CPU, and of so many events in all.
    struct Planted {
        names: Names,
        doc: TracingDoc,
        interrupt: Nanos,
        events: u64,
        readings: u32,
    }

    impl Planted {
        fn new(interrupt: Nanos, events: u64) -> Self {
            let doc = TracingDoc {
                clock: "planted".to_owned(),
                events: Vec::new(),
                missing: Vec::new(),
                buffer_bytes: 0,
                event_cost_ns: None,
            };
            Self { names: Names::new(Path::new("/nowhere")), doc, interrupt, events, readings: 0 }
        }
    }

    impl Trace for Planted {
        fn event_cost(&self) -> Nanos {
            Nanos::from_micros(1)
        }

        fn doc(&self) -> &TracingDoc {
            &self.doc
        }

        fn origin(&self) -> Anchor {
            Anchor::take::<MonotonicRaw>()
        }

        fn now(&self) -> Nanos {
            Nanos::from_secs(i64::from(self.readings))
        }

        fn symbols(&self) -> Option<&Arc<Kallsyms>> {
            None
        }

        fn names(&self) -> &Names {
            &self.names
        }

        fn knows_many(&self) -> bool {
            false
        }

        fn forget_names(&mut self, _: &Path) {}

        fn read_symbols(&mut self, _: &Path) {}

        fn filling(&self) -> Vec<BorrowedFd<'_>> {
            Vec::new()
        }

        fn turn(&self, _: bool) -> Result<(), String> {
            Ok(())
        }

        fn drain(&mut self, take: &mut Take<'_>) -> io::Result<Drained> {
            self.readings += 1;
            let (source, detail) = (self.names.labels.intern("disk"), Label::EMPTY);
            let event = |time, what| Event { time, thread: Pid(7), what };
            let start = Nanos::from_micros(10);
            let interrupt = [
                event(start, Happening::IrqEntry { source, detail }),
                event(start + self.interrupt, Happening::IrqExit { source, detail }),
            ];
            let events = if self.readings == 1 { &interrupt[..] } else { &[] };
            take(0, events, &mut self.names);
            Ok(Drained { events: if self.readings == 1 { self.events } else { 0 }, lost: 0, broken: 0 })
        }
    }

    fn settings(text: &str) -> WatchSettings {
        WatchConfig::parse(text).unwrap().settle().unwrap()
    }

    /// What is said, and a watch of these settings that cannot record, whose trace is planted.
    fn beside<T>(
        text: &str,
        open: impl FnMut(&CpuList) -> Result<Box<dyn Trace>, String>,
        act: impl FnOnce(&mut Watcher<'_>, &RefCell<Vec<String>>) -> T,
    ) -> T {
        let nowhere = Path::new("/nowhere");
        let session = Session::begin(nowhere, false).unwrap();
        let said = RefCell::new(Vec::new());
        let around = Surroundings {
            plan: &|| RecordPlan { root: nowhere.to_owned(), ..RecordPlan::new() },
            reload: &|| Err("nothing is reloaded".to_owned()),
            say: &|text| said.borrow_mut().push(text.to_owned()),
            instead_of_sleep: None,
        };
        let settings = settings(text);
        let observer = Observer::new(Box::new(open), settings.budget, nowhere);
        let shared = Arc::new(Shared::new(Totals::new(settings.budget)));
        // Enough is saved for whatever a test does.
        shared.skip(Nanos::from_secs(3_600));
        act(&mut Watcher::new(&session, settings, observer, (shared, vec![Pid(1)]), &around), &said)
    }

    fn stat(cpus: u32) -> Stat {
        let lines: Vec<String> = (0..cpus).map(|cpu| format!("cpu{cpu} 1 0 0 9")).collect();
        Stat::parse(&lines.join("\n"), 100).unwrap()
    }

    #[test]
    fn an_alert_is_raised_by_the_look_that_sends_the_trace_to_rest() {
        // An hour's half of the budget is 1.8 s; at 1 us each these events are far above it.
        let planted = |_: &CpuList| -> Result<Box<dyn Trace>, String> {
            Ok(Box::new(Planted::new(Nanos::from_millis(2), 10_000_000)))
        };
        beside("trigger = detour>1ms", planted, |watcher, said| {
            watcher.observe(&stat(1));
            assert_eq!(watcher.look_at_the_trace(), Asked::Nothing);
            assert!(watcher.observer.longest().is_none());
            // It was switched on by the look before. What the events cost leaves nothing for a recording.
            assert_eq!(watcher.look_at_the_trace(), Asked::Nothing);
            assert_eq!(watcher.shared.totals().traced.rests, 1);
            let longest = watcher.observer.longest().expect("what the last reading found");
            assert_eq!((longest.duration, longest.source.as_str()), (Nanos::from_millis(2), "disk"));
            assert_eq!((watcher.shared.totals().traced.alerts, said.borrow().len()), (1, 0));
        });
    }

    #[test]
    fn a_reload_with_fewer_cpus_sets_the_trace_up_for_those_alone() {
        let asked = RefCell::new(Vec::new());
        let planted = |cpus: &CpuList| -> Result<Box<dyn Trace>, String> {
            asked.borrow_mut().push(cpus.to_string());
            Ok(Box::new(Planted::new(Nanos::ZERO, 0)))
        };
        beside("", planted, |watcher, _| {
            watcher.observe(&stat(4));
            watcher.observe(&stat(4));
            // One that goes away may come back.
            watcher.observe(&stat(3));
            watcher.reload(Ok(settings("cpus = 1-2")));
            watcher.observe(&stat(4));
            assert_eq!(watcher.observer.remembered().unwrap().1.map(|cpu| cpu.cpu.get()).collect::<Vec<_>>(), [1, 2]);
            watcher.reload(Ok(settings("trace = no")));
            watcher.observe(&stat(4));
            assert!(watcher.observer.remembered().is_none());
        });
        assert_eq!(*asked.borrow(), ["0-3", "1-2"]);
    }

    #[test]
    fn the_trace_is_set_up_once_that_is_saved() {
        let opened = Cell::new(0);
        let planted = |_: &CpuList| -> Result<Box<dyn Trace>, String> {
            opened.set(opened.get() + 1);
            Err("it cannot be had".to_owned())
        };
        // What this process took until now is within the budget, and setting up is not.
        let text =
            format!("budget = {:.6}%", 100.0 * (usage::cpu_time() + Nanos::from_millis(20)).get() as f64 / 3.6e12);
        beside(&text, planted, |watcher, said| {
            watcher.observe(&stat(2));
            assert_eq!((opened.get(), said.borrow().len()), (0, 0));
            watcher.shared.skip(Nanos::from_secs(1_000_000));
            (0..3).for_each(|_| watcher.observe(&stat(2)));
            // Where it cannot be had it is tried again after a reload only.
            assert_eq!((opened.get(), said.borrow().len()), (1, 1));
        });
    }

    #[test]
    fn a_disk_that_is_full_again_and_again_is_said_once() {
        let none = |_: &CpuList| -> Result<Box<dyn Trace>, String> { Err("not wanted".to_owned()) };
        let folder = tempfile::tempdir().unwrap();
        beside("trace = no", none, |watcher, said| {
            watcher.ring = Some(Ring::open(folder.path()).unwrap());
            for round in 0..50 {
                let path = watcher.ring.as_mut().unwrap().next(Holds::Window);
                let why = format!("cannot write {}/a: no space left on device", path.display());
                // Every other one finds the room that the one before has made.
                let failure = (round % 2 == 0).then_some(Failure { why, disk_is_full: true });
                watcher.keep(&path, Holds::Window, failure);
                watcher.shared.skip(Nanos::from_secs(300));
            }
            assert_eq!(watcher.shared.totals().store_failures, 25);
            assert_eq!(said.borrow().len(), 1, "{said:?}");
            assert!(said.borrow()[0].contains("00000001-window.becalm/a: no space left"), "{said:?}");
            // After a quiet time it is news again.
            watcher.shared.skip(Nanos::from_secs(4_000));
            let path = watcher.ring.as_mut().unwrap().next(Holds::Window);
            let failure = Failure { why: "no space left".to_owned(), disk_is_full: true };
            watcher.keep(&path, Holds::Window, Some(failure));
            assert_eq!(said.borrow().len(), 2);
        });
    }

    #[test]
    fn a_machine_with_work_to_do_is_left_alone_until_it_is_idle() {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir(root.path().join("proc")).unwrap();
        // Hundredths of a second since the start: first all of them for programs, or at once interrupts and the hypervisor, later idle.
        let ticks = RefCell::new([0_u64; 8]);
        let tell = |busy: usize| {
            let mut ticks = ticks.borrow_mut();
            ticks[busy] += 11;
            ticks[3] += 89;
            let fields = ticks.map(|ticks| ticks.to_string()).join(" ");
            std::fs::write(root.path().join("proc/stat"), format!("cpu0 {fields}\nctxt 1\n")).unwrap();
        };
        tell(0);
        let session = Session::begin(root.path(), false).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        // An answer is given again for half a second, of each format its own.
        let counts = |result: &str, format: &str| {
            let mut stream = std::net::TcpStream::connect(address).unwrap();
            write!(stream, "GET /metrics HTTP/1.0\r\nAccept: {format}\r\n\r\n").unwrap();
            let text = std::io::read_to_string(stream).unwrap();
            let series = format!("becalm_windows_total{{result=\"{result}\"}} ");
            text.lines().find_map(|line| line.strip_prefix(&series)?.parse::<u64>().ok()).unwrap()
        };
        let looks = Cell::new(0);
        let around = Surroundings {
            plan: &|| RecordPlan {
                root: root.path().to_owned(),
                ring_bytes: 1 << 20,
                sources: false,
                ..RecordPlan::new()
            },
            reload: &|| Err("nothing is reloaded".to_owned()),
            say: &|text| panic!("nothing is to be said: {text}"),
            instead_of_sleep: Some(&|_| {
                looks.set(looks.get() + 1);
                // User, system, irq, softirq and steal are work of others; idle and waiting for a disk are not.
                tell([0, 2, 5, 6, 7, 4].get(looks.get() / 3).copied().unwrap_or(3));
                if looks.get() == 15 {
                    assert_eq!(counts("measured", "text/plain"), 0);
                }
                looks.get() < 20
            }),
        };
        let settings = settings("window = 10ms\nbudget = 100%\nbusy = 10%\ntrace = no\ninterval = 1h");
        watch(&session, settings, listener, &around).unwrap();
        let [busy, measured, failed] =
            ["busy", "measured", "failed"].map(|result| counts(result, "application/openmetrics-text"));
        assert!(busy >= 12 && measured >= 2 && failed == 0, "{busy} busy, {measured} measured, {failed} failed");
    }
}
