//! The thread that shows the view. It runs on CPUs that are not measured, or is known as becalm's own. It handles keys, draws at each interval and
//! after each key, and sleeps otherwise.

use std::io;
use std::path::PathBuf;
use std::sync::mpsc;
use std::sync::{Arc, mpsc::Sender};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use becalm_linux::rights;
use becalm_linux::sched::{self, Policy};
use becalm_measure::KernelCounters;
use becalm_report::Value;
use becalm_units::CpuList;
use ratatui::crossterm::event::KeyEvent;
use ratatui::crossterm::terminal;

use crate::draw::{StatusLines, draw};
use crate::keys::Keyboard;
use crate::live::Live;
use crate::plain::Plain;
use crate::screen::Screen;
use crate::session::{LivePhase, LiveSession, ViewRequest};
use crate::tables::tables;
use crate::theme::Theme;
use crate::view::{Action, View};

/// The time within which a view notices that it has ended.
const PATIENCE: Duration = Duration::from_millis(250);

/// How long a view may take to end.
const LAST_PATIENCE: Duration = Duration::from_secs(5);

/// The form of the view.
#[derive(Clone, Debug)]
pub enum Front {
    /// Drawn on a terminal repeatedly.
    Terminal,
    /// As text, a number of times; or as one JSON document at the end.
    Text {
        /// The number of printed updates before the program ends.
        iterations: u32,
        /// Whether one JSON document is printed at the end instead of text.
        json: bool,
    },
}

#[derive(Clone, Debug)]
pub struct ViewThreadSettings {
    /// Whether it is drawn on a terminal or printed as text.
    pub front: Front,
    /// The time between two drawings.
    pub interval: Duration,
    /// The scheduling class of the loops.
    pub policy: Policy,
    /// The root directory of the kernel's counters.
    pub root: PathBuf,
}

/// The thread that shows the view, once started.
pub struct ViewThread {
    settings: ViewThreadSettings,
    thread: Option<(i32, JoinHandle<io::Result<()>>)>,
}

impl ViewThread {
    /// The thread's state before its start.
    pub const fn new(settings: ViewThreadSettings) -> Self {
        Self { settings, thread: None }
    }

    /// Starts it unless it is running; returns its thread ID.
    pub fn start(&mut self, session: &Arc<LiveSession>, free: CpuList) -> io::Result<i32> {
        if let Some((tid, _)) = &self.thread {
            return Ok(*tid);
        }
        let (settings, session) = (self.settings.clone(), Arc::clone(session));
        let (sender, receiver) = mpsc::channel();
        let thread = thread::Builder::new().name("becalm-view".to_owned());
        let thread = thread.spawn(move || show(&settings, &session, &free, &sender))?;
        let tid = receiver.recv().map_err(|_| io::Error::other("the thread that draws ended at once"))?;
        self.thread = Some((tid, thread));
        Ok(tid)
    }

    /// Waits for its end. The session must be over.
    pub fn join(&mut self) -> io::Result<()> {
        match self.thread.take() {
            Some((_, thread)) => {
                let give_up = Instant::now() + LAST_PATIENCE;
                while !thread.is_finished() {
                    if Instant::now() > give_up {
                        // It ends with the process.
                        return Err(io::Error::other("the thread that draws does not end"));
                    }
                    thread::sleep(Duration::from_millis(5));
                }
                // The panic has printed its message.
                thread.join().unwrap_or_else(|_| Err(io::Error::other("the thread that draws failed")))
            }
            None => Ok(()),
        }
    }
}

/// Ends the session when the thread ends, for whatever reason.
struct QuitAtEnd<'a>(&'a LiveSession);

impl Drop for QuitAtEnd<'_> {
    fn drop(&mut self) {
        if self.0.phase() != LivePhase::Over {
            self.0.ask(ViewRequest::Quit);
        }
    }
}

fn show(settings: &ViewThreadSettings, session: &LiveSession, free: &CpuList, tid: &Sender<i32>) -> io::Result<()> {
    let _quit = QuitAtEnd(session);
    if free.is_empty() && settings.policy.is_realtime() {
        // Next to real-time loops on every CPU it would never run.
        let _ = sched::set_policy(Policy::Fifo((settings.policy.priority() + 1).min(99)));
    }
    // Reading keys and drawing foreign names needs no rights.
    rights::give_up_of_this_thread()?;
    let _ = tid.send(sched::current_tid());
    let mut counters = CountersShown::new(settings);
    match settings.front {
        Front::Terminal => on_terminal(settings, session, free, &mut counters),
        Front::Text { iterations, json } => {
            let mut plain = Plain::new(json)?;
            // The loops start now.
            counters.look(session);
            let mut shown = Duration::ZERO;
            for _ in 0..iterations {
                if !wait_for_interval(session, settings.interval, shown) {
                    break;
                }
                counters.look(session);
                let live = session.live();
                plain.show(&live)?;
                shown = live.elapsed().to_std();
            }
            plain.end()
        }
    }
}

/// Sleeps until the loops, however long their preparation takes, have observed a whole number of intervals beyond `shown`; returns whether the
/// session still continues then.
fn wait_for_interval(session: &LiveSession, interval: Duration, shown: Duration) -> bool {
    let intervals = shown.as_nanos() / interval.as_nanos().max(1) + 1;
    let end = interval.saturating_mul(u32::try_from(intervals).unwrap_or(u32::MAX));
    while session.phase() != LivePhase::Over {
        let left = end.saturating_sub(session.live().elapsed().to_std());
        if left.is_zero() {
            return true;
        }
        thread::sleep(left.min(PATIENCE));
    }
    false
}

/// The kernel's counters, if they are the only source information.
struct CountersShown {
    root: PathBuf,
    since: Option<KernelCounters>,
}

impl CountersShown {
    fn new(settings: &ViewThreadSettings) -> Self {
        Self { root: settings.root.clone(), since: None }
    }

    /// Enters the growth of the counters since they were first read.
    fn look(&mut self, session: &LiveSession) {
        let live = session.live();
        if live.is_tracing() || !live.has_begun() {
            return;
        }
        let now = KernelCounters::take(&self.root);
        match &self.since {
            Some(since) => {
                let grown = now.since(since, &live.cpu_list(), |_, _| None);
                drop(live);
                session.update(|live| live.set_counters(grown));
            }
            None => self.since = Some(now),
        }
    }

    /// Restarts counting at the next reading.
    fn forget(&mut self) {
        self.since = None;
    }
}

fn on_terminal(
    settings: &ViewThreadSettings,
    session: &LiveSession,
    free: &CpuList,
    counters: &mut CountersShown,
) -> io::Result<()> {
    let theme = Theme::from_environment();
    let place = if free.is_empty() { "drawn on measured CPUs".to_owned() } else { format!("drawn on CPU {free}") };
    let mut view = View::default();
    let mut screen = Screen::take()?;
    let mut keyboard = Keyboard::new()?;
    let mut next = Instant::now();
    while session.phase() != LivePhase::Over && screen.is_taken() {
        if Instant::now() >= next {
            counters.look(session);
            next = Instant::now() + settings.interval;
        }
        let live = view.paused.clone().unwrap_or_else(|| session.live());
        let status = status(session, &live, &place);
        let mut drawn = None;
        screen.drawing.draw(|frame| drawn = Some(draw(frame, &live, &view, &status, theme)))?;
        // Released as soon as possible: the measuring thread copies data that is still referenced.
        drop(live);
        let (Some(drawn), Some(keys)) = (drawn, wait_for_keys(&mut keyboard, session, next)) else { break };
        for (number, key) in keys.into_iter().enumerate() {
            // Of several keys at once, each acts on the tables as changed by the previous ones.
            let now = || tables(&view.paused.clone().unwrap_or_else(|| session.live()), &view);
            let shown = if number == 0 { drawn.clone() } else { now() };
            let action = view.key(key, &shown, || session.live());
            if !act(action, session, &mut screen, counters)? {
                return Ok(());
            }
        }
    }
    Ok(())
}

/// Sleeps until there is something to draw: new data, keys, a new terminal size. `None` if the terminal is gone.
fn wait_for_keys(keyboard: &mut Keyboard, session: &LiveSession, next: Instant) -> Option<Vec<KeyEvent>> {
    let size = terminal::size().ok();
    loop {
        let left = next.saturating_duration_since(Instant::now());
        if left.is_zero() || session.phase() == LivePhase::Over || terminal::size().ok() != size {
            return Some(Vec::new());
        }
        let keys = keyboard.read(left.min(PATIENCE)).ok()?;
        if !keys.is_empty() {
            return Some(keys);
        }
    }
}

/// Performs the action of a key; returns whether the view continues.
fn act(action: Action, session: &LiveSession, screen: &mut Screen, counters: &mut CountersShown) -> io::Result<bool> {
    match action {
        Action::None => {}
        Action::Redraw => screen.wipe()?,
        Action::Quit => return Ok(false),
        Action::Save => save(session),
        Action::Forget => {
            session.update(Live::forget);
            counters.forget();
        }
        Action::Suspend => suspend(session, screen)?,
    }
    Ok(true)
}

fn save(session: &LiveSession) {
    if !session.is_storing() {
        session.say(Some("nothing can be saved: nothing is stored".to_owned()));
    } else if session.ask(ViewRequest::Save) {
        session.say(Some("saving; a new recording starts".to_owned()));
    }
}

/// Restores the terminal until the process continues.
fn suspend(session: &LiveSession, screen: &mut Screen) -> io::Result<()> {
    screen.leave();
    if session.ask(ViewRequest::Suspend) {
        while session.phase() == LivePhase::Measuring {
            thread::sleep(Duration::from_millis(10));
        }
        while session.phase() == LivePhase::Preparing {
            thread::sleep(Duration::from_millis(10));
        }
    }
    if session.phase() == LivePhase::Over { Ok(()) } else { screen.enter() }
}

fn status(session: &LiveSession, live: &Live, place: &str) -> StatusLines {
    let mut standing = vec![place.to_owned()];
    if session.is_storing() {
        standing.push(format!("s saves the last {}", Value::Time(live.recording().get()).cell()));
    }
    let message = match session.phase() {
        LivePhase::Preparing if live.has_begun() => Some("a new recording starts".to_owned()),
        _ => session.message(),
    };
    StatusLines { message, standing }
}
