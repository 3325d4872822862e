//! The measuring thread: windows as often as the budget allows, alerts, and signals in between; `window` measures a window.

mod window;

use std::io;
use std::net::TcpListener;
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use becalm_linux::ftrace::{self, Tracefs};
use becalm_linux::procfs::kernel::hostname;
use becalm_linux::procfs::stat::Stat;
use becalm_linux::signals::is_hangup;
use becalm_linux::sockets::{Await, wait_ready};
use becalm_linux::usage;
use becalm_measure::{Disturbance, RecordPlan};
use becalm_model::Pid;
use becalm_record::Session;
use becalm_units::{CpuList, Nanos, printable};

use crate::choice::Round;
use crate::config::WatchSettings;
use crate::host::Hosts;
use crate::kernel::KernelReader;
use crate::observe::{Observer, opener};
use crate::otlp;
use crate::ring::{Holds, Ring, RingError};
use crate::schedule::Schedule;
use crate::server::{Server, Shared};
use crate::throttle::LogThrottle;
use crate::totals::{RingSize, Totals};

/// The reason why watching is impossible.
#[derive(Debug, thiserror::Error)]
pub enum WatchError {
    /// The directory cannot be used.
    #[error(transparent)]
    Ring(#[from] RingError),
    /// The answering thread cannot be started.
    #[error("cannot answer on the socket: {0}")]
    Server(io::Error),
    /// The thread that sends to a collector cannot be started.
    #[error("cannot send to a collector: {0}")]
    Sender(io::Error),
    /// Waiting for signals failed.
    #[error("cannot wait: {0}")]
    Wait(io::Error),
}

becalm_units::fault::faultless!(WatchError);

/// The duration and the cost of a watch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ran {
    /// The duration.
    pub elapsed: Nanos,
    /// CPU time of the whole process.
    pub cpu: Nanos,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum SignalRequest {
    Nothing,
    Reload,
    Stop,
}

/// The environment of a watch.
pub struct Surroundings<'a> {
    /// Returns the plan of a recording; the watch sets its CPUs and duration.
    pub plan: &'a dyn Fn() -> RecordPlan,
    /// Reads the configuration again.
    pub reload: &'a dyn Fn() -> Result<WatchSettings, String>,
    /// Writes a message to the administrator without waiting for a reader; `false` if it was dropped.
    pub say: &'a dyn Fn(&str) -> bool,
    /// The thread that writes these messages, which belongs to becalm.
    pub voice: Option<Pid>,
    /// For tests that skip time: called instead of sleeping, with the length of the sleep, which then counts as passed. Returns whether to continue.
    pub instead_of_sleep: Option<&'a dyn Fn(Nanos) -> bool>,
}

/// Watches until a signal ends it. Fails if the directory or the socket cannot be used. A window that fails is counted and reported, and watching
/// continues.
pub fn watch(
    session: &Session,
    settings: WatchSettings,
    listener: TcpListener,
    around: &Surroundings<'_>,
) -> Result<Ran, WatchError> {
    let ring = settings.output.as_deref().map(Ring::open).transpose()?;
    let shared = Arc::new(Shared::new(Totals::new(settings.budget)));
    let root = (around.plan)().root;
    let host = hostname(&root).unwrap_or_default();
    let listens_at = listener.local_addr().map_err(WatchError::Server)?.ip();
    let hosts = Hosts::new(listens_at, &host, &settings.allow_host);
    let server = Server::start(listener, Arc::clone(&shared), hosts).map_err(WatchError::Server)?;
    remove_dead(&root);
    let mut own = vec![server];
    own.extend(around.voice);
    if let Some(collector) = &settings.otlp {
        let sender = otlp::start(collector.clone(), settings.otlp_interval, host, Arc::clone(&shared));
        own.push(sender.map_err(WatchError::Sender)?);
    }
    let observer = Observer::new(opener(session, &own, &root), settings.budget, &root);
    let mut watcher = Watcher::new(session, settings, observer, shared, own.clone(), around);
    if let Some(remark) = ring.as_ref().and_then(Ring::remark) {
        watcher.say(&remark);
    }
    watcher.ring = ring;
    watcher.keep_to_bound();
    let mut kernel = KernelReader::new(&root);
    loop {
        match watcher.look(&mut kernel)? {
            SignalRequest::Nothing => {}
            SignalRequest::Stop => return Ok(Ran { elapsed: watcher.shared.elapsed(), cpu: watcher.spent() }),
            SignalRequest::Reload => watcher.reload((around.reload)()),
        }
    }
}

/// Removes the traces of watches that were killed together with their guards, as service managers do: each slows down every event for all users until
/// a new one is set up, which may take a while.
fn remove_dead(root: &Path) {
    if let Ok(tracefs) = Tracefs::find(root) {
        // Traces that cannot be removed now are tried again then.
        let _ = ftrace::remove_dead(&tracefs, &root.join("proc"));
    }
}

struct Watcher<'a> {
    session: &'a Session,
    settings: WatchSettings,
    observer: Observer<'a>,
    schedule: Schedule,
    shared: Arc<Shared>,
    /// The answering and the sending thread.
    own: Vec<Pid>,
    ring: Option<Ring>,
    round: Round,
    around: &'a Surroundings<'a>,
    /// Reported problems, which are not reported again soon.
    throttle: LogThrottle,
    /// The kernel cannot be traced; a new configuration triggers another attempt.
    not_traced: bool,
}

impl<'a> Watcher<'a> {
    /// A watcher without results that stores nothing.
    fn new(
        session: &'a Session,
        settings: WatchSettings,
        observer: Observer<'a>,
        shared: Arc<Shared>,
        own: Vec<Pid>,
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
            throttle: LogThrottle::default(),
            not_traced: false,
        }
    }
}

impl Watcher<'_> {
    /// One interval: reads the kernel's counters, measures a window if one is due, and sleeps until the next interval or a signal.
    fn look(&mut self, kernel: &mut KernelReader<'_>) -> Result<SignalRequest, WatchError> {
        let mut began = Instant::now();
        let mut asked = SignalRequest::Nothing;
        let unsent = self.shared.totals().unsent.take();
        if let Some(why) = unsent {
            self.say_once(why.clone(), &format!("metrics could not be sent to {why}"));
        }
        if let Some((stat, counts)) = kernel.read() {
            self.round.look(&stat);
            self.shared.totals().kernel = counts;
            self.observe(&stat);
            asked = self.look_at_the_trace();
            if asked == SignalRequest::Nothing && self.is_due() {
                asked = self.window();
                // A complete interval follows, so the trace is on between windows even if one takes longer than an interval.
                began = Instant::now();
            }
        }
        // The first two reads are a second apart, because idle CPUs are only known after the second.
        let interval =
            if self.round.knows() { self.settings.interval } else { Nanos::from_secs(1).min(self.settings.interval) };
        if asked == SignalRequest::Nothing {
            asked = self.sleep(began + interval.to_std())?;
            if asked == SignalRequest::Nothing {
                asked = meaning(self.session.signals().take());
            }
            if asked != SignalRequest::Stop {
                let _ = self.session.signals().take_last();
            }
        }
        Ok(asked)
    }

    /// Sleeps until then, or until a signal. Empties buffers of the trace that fill up meanwhile.
    fn sleep(&mut self, until: Instant) -> Result<SignalRequest, WatchError> {
        if let Some(instead) = self.around.instead_of_sleep {
            let left = until.saturating_duration_since(Instant::now()).as_nanos();
            let left = Nanos::new(i64::try_from(left).unwrap_or(i64::MAX));
            self.shared.skip(left);
            return Ok(if instead(left) { SignalRequest::Nothing } else { SignalRequest::Stop });
        }
        loop {
            let signals = [(self.session.signals().as_fd(), Await::Readable)];
            let fds: Vec<_> =
                signals.into_iter().chain(self.observer.filling().map(|fd| (fd, Await::Readable))).collect();
            let ready =
                wait_ready(&fds, Some(until.saturating_duration_since(Instant::now()))).map_err(WatchError::Wait)?;
            if ready[0] || until <= Instant::now() {
                return Ok(SignalRequest::Nothing);
            }
            if ready[1..].contains(&true) {
                let asked = self.look_at_the_trace();
                if asked != SignalRequest::Nothing {
                    return Ok(asked);
                }
            }
        }
    }

    /// Whether the budget allows a window now.
    fn is_due(&self) -> bool {
        self.schedule.is_due(self.spent(), self.shared.elapsed())
    }

    /// The CPU time of observing by the kernel's count, plus the cost of events for others. Responses have their own allowance.
    fn spent(&self) -> Nanos {
        let guard = self.session.guard().as_ref().map_or(Nanos::ZERO, |guard| usage::cpu_time_of(guard.pid()));
        let observing = self.shared.observing();
        let mut totals = self.shared.totals();
        totals.parts.guard = guard;
        totals.parts.trace = self.observer.reading();
        observing + guard + totals.traced.cost()
    }

    /// Traces the online and wanted CPUs, once the budget allows the setup.
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
            self.say(&format!("the kernel is not traced between windows: {why}"));
        }
    }

    /// Counts the trace's new events. If they raise an alert, the CPU is recorded, if the budget allows it.
    fn look_at_the_trace(&mut self) -> SignalRequest {
        let is_within = self.schedule.is_within(self.spent(), self.shared.elapsed());
        if let Err(why) = self.observer.look(&self.shared, self.settings.sources as usize, is_within) {
            self.give_the_trace_up(&why);
        }
        self.say_change();
        let Some(longest) = self.observer.longest() else { return SignalRequest::Nothing };
        let Some(trigger) = self.settings.triggers.iter().find(|trigger| trigger.is_raised(longest.duration, 0.0))
        else {
            return SignalRequest::Nothing;
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
            return SignalRequest::Nothing;
        }
        self.say(&format!("alert: {alert}; the CPU is recorded now"));
        self.quietly(|watcher| {
            let before = watcher.shared.observing();
            let (asked, after) = watcher.measure(longest.cpu, watcher.settings.alert, Holds::After);
            if let Some(after) = after {
                watcher.store_before(&after.node);
            }
            watcher.schedule.took_for_alert(watcher.shared.observing() - before);
            watcher.schedule.took_out_of_turn();
            asked
        })
    }

    /// Does something that takes a CPU while the trace is off.
    fn quietly(&mut self, act: impl FnOnce(&mut Self) -> SignalRequest) -> SignalRequest {
        let goes_on = self.observer.pause(&self.shared, self.settings.sources as usize);
        let before = self.shared.observing();
        let asked = act(self);
        let took = self.shared.observing() - before;
        self.shared.totals().parts.windows += took;
        self.keep_to_bound();
        let went_on = goes_on.and_then(|goes_on| if goes_on { self.observer.resume(&self.shared) } else { Ok(()) });
        if let Err(why) = went_on {
            self.give_the_trace_up(&why);
        }
        self.say_change();
        asked
    }

    /// Reports a change of the trace, if any.
    fn say_change(&mut self) {
        if let Some(disturbance) = self.observer.take_change() {
            self.say_changed(&disturbance);
        }
    }

    fn say_changed(&mut self, disturbance: &Disturbance) {
        let text = format!(
            "{disturbance}: that time counts as not traced, and the trace is set up again; \
             trace-cmd reset -a resets the tracing instances of all programs, trace-cmd reset only its own"
        );
        self.say_once("the trace was changed".to_owned(), &text);
    }

    fn give_the_trace_up(&mut self, why: &str) {
        self.observer.end();
        self.not_traced = true;
        self.say(&format!("the kernel is not traced between windows any more: {why}"));
    }

    /// Writes a message to the administrator.
    fn say(&self, text: &str) {
        let is_said = (self.around.say)(text);
        self.shared.totals().unsaid += u64::from(!is_said);
    }

    /// Reports a problem unless it is still going on; `what` identifies it.
    fn say_once(&mut self, what: String, text: &str) {
        if self.throttle.is_new(what, self.shared.elapsed()) {
            self.say(text);
        }
    }

    fn keep_to_bound(&mut self) {
        if let Some(ring) = &mut self.ring {
            ring.shrink(self.settings.keep.get());
            self.shared.totals().ring = RingSize { bytes: ring.bytes(), bundles: ring.len() as u64 };
        }
    }

    /// Applies new settings, except for the socket, the host names, the directory and the collector, which need a restart.
    fn reload(&mut self, settings: Result<WatchSettings, String>) {
        match settings {
            Ok(settings) => {
                let WatchSettings { listen, allow_host, output, otlp, otlp_interval, .. } = &self.settings;
                if (listen, allow_host, output) != (&settings.listen, &settings.allow_host, &settings.output)
                    || (otlp, otlp_interval) != (&settings.otlp, &settings.otlp_interval)
                {
                    self.say("another address, host name, directory or collector is used from the next start on");
                }
                if settings.cpus != self.settings.cpus {
                    // It is set up again for these CPUs only.
                    self.observer.end();
                }
                let (listen, output) = (self.settings.listen, self.settings.output.take());
                let (otlp, otlp_interval) = (self.settings.otlp.take(), self.settings.otlp_interval);
                self.settings = WatchSettings { listen, output, otlp, otlp_interval, ..settings };
                self.schedule.set(self.settings.budget, self.settings.window);
                self.observer.set_budget(self.settings.budget);
                self.not_traced = false;
                self.throttle = LogThrottle::default();
                let mut totals = self.shared.totals();
                totals.budget = self.settings.budget;
                totals.sources.settle(self.settings.sources as usize);
                totals.traced.sources.settle(self.settings.sources as usize);
                totals.reloads.taken += 1;
                drop(totals);
                self.keep_to_bound();
                self.say("the configuration was read again");
            }
            Err(why) => {
                self.shared.totals().reloads.refused += 1;
                self.say(&format!("the configuration stays as it was: {why}"));
            }
        }
    }
}

const fn meaning(signal: Option<i32>) -> SignalRequest {
    match signal {
        None => SignalRequest::Nothing,
        Some(signal) if is_hangup(signal) => SignalRequest::Reload,
        Some(_) => SignalRequest::Stop,
    }
}

#[cfg(test)]
mod tests;
