//! `becalm top --observe`: observes threads and shows, update by update, where their time went and who had the CPU instead.

mod line;

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use becalm_linux::sockets::{Await, wait_ready};
use becalm_observe::document::{ObservedDoc, TakerDoc, ThreadDoc};
use becalm_observe::report::{ObservedReport, thread_name};
use becalm_observe::{LEAST_INTERVAL, LiveObservation, LivePlan, is_helper, words};
use becalm_record::Session;
use becalm_report::form::field::fields;
use becalm_report::form::figure::Share;
use becalm_report::{Report, Value};
use becalm_units::Nanos;
use becalm_units::fault::{self, Context};
use ratatui::Frame;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use ratatui::layout::Rect;

use crate::columns::{FittedColumn, fit_by};
use crate::grid::Grid;
use crate::keys::Keyboard;
use crate::page::{Canvas, shortened};
use crate::plain::{WIDTH, write_rows};
use crate::screen::{Screen, output};
use crate::since::{SinceStart, TakenTime};
use crate::theme::Theme;

#[cfg(feature = "schemas")]
pub use line::TopObservedDocument;

/// Rows of a table by default.
const ROWS: usize = 20;

const KEYS: [(&str, &str); 8] = [
    ("p, blank", "pause the display; the observation goes on"),
    ("a", "show all threads, or only those that do not sleep all the time"),
    ("ctrl-l", "draw everything again"),
    ("q, ctrl-c", "quit; nothing is stored"),
    ("?", "this help; esc closes it"),
    ("", ""),
    ("waited", "could have run: queued, on the way to a CPU, or kept by a quota"),
    ("since start", "sums of all updates"),
];

/// The destination of updates.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ObservedFront {
    /// A view on the terminal.
    Terminal,
    /// Tables on standard output, this many times.
    Text(u32),
    /// Lines of JSON on standard output, this many.
    Lines(u32),
}

/// How to show an observation.
#[derive(Clone, Copy, Debug)]
pub struct ObservedSettings {
    /// The destination of updates.
    pub front: ObservedFront,
    /// The time between updates.
    pub interval: Duration,
    /// Whether threads that sleep all the time are shown as well.
    pub all: bool,
}

/// A thread in an update.
struct ThreadRow {
    thread: ThreadDoc,
    since: Nanos,
}

/// A taker in an update.
struct TakerRow {
    taker: TakerDoc,
    /// The time that all takers share.
    waited: Nanos,
    since: TakenTime,
}

impl ThreadRow {
    fn share(&self, part: Nanos) -> Option<Share> {
        (part > Nanos::ZERO).then(|| Share(ratio(part, self.thread.wall_ns)))
    }

    fn interrupts(&self) -> Nanos {
        let is_it = |kind: &str| !matches!(kind, "program" | "own" | "host");
        self.thread.ran.iter().filter(|part| is_it(&part.kind)).map(|part| part.ns).sum()
    }
}

fields! {
    THREADS, thread_row: ThreadRow {
        NAME = "name", "thread", |row| thread_name(&row.thread);
        RAN = "ran", "ran", |row| row.share(row.thread.ran_ns);
        INTERRUPTS = "interrupts", "interrupts", |row| row.share(row.interrupts());
        QUEUED = "queued", "queued", |row| row.share(row.thread.queued_ns);
        ON_THE_WAY = "on_the_way", "on the way", |row| row.share(row.thread.on_the_way_ns);
        QUOTA = "quota", "quota", |row| row.share(row.thread.quota_ns);
        ASLEEP = "asleep", "asleep", |row| row.share(row.thread.asleep_ns);
        UNKNOWN = "unknown", "not known", |row| row.share(row.thread.unknown_ns);
        WAITED = "waited_ns", "waited", |row| row.thread.waited_ns;
        SINCE = "since_ns", "since start", |row| row.since;
    }
}

fields! {
    TAKERS, taker_row: TakerRow {
        SOURCE = "source", "who had the CPU", |row| words::taker_name(row.taker.kind, &row.taker.source);
        OWNER = "owner", "whose", |row| words::owner(row.taker.owner);
        TIME = "ns", "time", |row| row.taker.ns;
        SHARE = "share", "of waits", |row| Share(ratio(row.taker.ns, row.waited));
        COUNT = "count", "visits", |row| row.taker.count;
        LONGEST = "longest_ns", "longest", |row| row.taker.longest_ns;
        ALL_TIME = "since_ns", "since start", |row| row.since.ns;
        ALL_COUNT = "since_count", "visits", |row| row.since.count;
        ALL_LONGEST = "since_longest_ns", "longest", |row| row.since.longest;
    }
}

/// The columns by rank: those at the end are dropped first if there is little room.
const THREAD_RANKS: [&str; 10] =
    ["name", "waited_ns", "ran", "queued", "unknown", "asleep", "interrupts", "quota", "since_ns", "on_the_way"];
const TAKER_RANKS: [&str; 9] =
    ["source", "ns", "share", "owner", "longest_ns", "count", "since_ns", "since_longest_ns", "since_count"];

fn ratio(part: Nanos, whole: Nanos) -> f64 {
    if whole > Nanos::ZERO { part.get() as f64 / whole.get() as f64 } else { 0.0 }
}

/// An update with the sums since the start.
#[derive(Clone, Debug, Default)]
struct Shown {
    update: ObservedDoc,
    since: SinceStart,
}

impl Shown {
    /// The first line: how much longer the threads could have run, and because of whom.
    fn answer(&self) -> String {
        let report = ObservedReport { doc: &self.update, by_group: false, lanes: None };
        match report.answer() {
            Some(answer) if !self.update.threads.is_empty() => answer,
            _ => "no chosen thread is alive".to_owned(),
        }
    }

    /// The length of the update and of the observation, and what limits the numbers.
    fn basis(&self) -> Vec<String> {
        let time = |time: Nanos| Value::Time(time.get()).cell();
        let mut basis = vec![format!("last {}", time(self.update.duration_ns))];
        basis.push(format!("observed {}, waited {}", time(self.since.elapsed), time(self.since.waited)));
        if self.since.lost_events > 0 {
            let (now, all) = (self.update.lost_events, self.since.lost_events);
            basis.push(format!("dropped events: {now}, since start {all}"));
        }
        let unknown: Nanos = self.update.threads.iter().map(|thread| thread.unknown_ns).sum();
        if unknown > Nanos::ZERO {
            basis.push(format!("not known {}", time(unknown)));
        }
        basis
    }

    /// The threads, those that waited longest first.
    fn threads(&self, all: bool) -> Grid {
        let is_helper = |thread: &&ThreadDoc| is_helper(thread.asleep_ns.get(), thread.wall_ns.get());
        let all = all || self.update.threads.iter().all(|thread| is_helper(&thread));
        let row = |thread: &ThreadDoc| ThreadRow {
            since: self.since.waited(thread.process, thread.tid),
            thread: thread.clone(),
        };
        let shown = self.update.threads.iter().filter(|thread| all || !is_helper(thread));
        let rows: Vec<ThreadRow> = shown.map(row).collect();
        let fields: Vec<_> = THREADS.iter().collect();
        Grid::new(&fields, &rows)
    }

    /// The takers, the most costly of this update first.
    fn takers(&self) -> Grid {
        let waited = self.update.threads.iter().map(|thread| thread.queued_ns + thread.quota_ns).sum();
        let others = self.since.others(&self.update.takers, ROWS);
        let takers = self.update.takers.iter().cloned().chain(others);
        let row = |taker: TakerDoc| TakerRow { since: self.since.of(&taker), taker, waited };
        let rows: Vec<TakerRow> = takers.map(row).collect();
        let fields: Vec<_> = TAKERS.iter().collect();
        Grid::new(&fields, &rows)
    }

    fn print(&self, out: &mut impl Write, all: bool) -> io::Result<()> {
        writeln!(out, "becalm top: {}", self.answer())?;
        writeln!(out, "{}", self.basis().join("; "))?;
        for (title, grid, ranks) in [
            ("Threads", self.threads(all), &THREAD_RANKS[..]),
            ("Takers of the CPU during waits", self.takers(), &TAKER_RANKS[..]),
        ] {
            writeln!(out, "\n{title}")?;
            match grid.rows.is_empty() {
                true => writeln!(out, "  none")?,
                false => write_rows(out, &grid, &fit(&grid, WIDTH, ranks))?,
            }
        }
        writeln!(out)?;
        out.flush()
    }
}

/// The columns that fit, without those that are empty in all rows.
fn fit(grid: &Grid, width: usize, ranks: &[&str]) -> Vec<FittedColumn> {
    let is_empty = |column: usize| grid.rows.iter().all(|row| matches!(row[column], Value::Missing));
    let filled: Vec<usize> = (0..grid.columns.len()).filter(|column| !is_empty(*column)).collect();
    let columns = filled.iter().map(|column| grid.columns[*column]).collect();
    let rows = grid.rows.iter().map(|row| filled.iter().map(|column| row[*column].clone()).collect()).collect();
    let mut fitted = fit_by(&Grid { columns, rows }, None, width, ranks);
    fitted.iter_mut().for_each(|fitted| fitted.column = filled[fitted.column]);
    fitted
}

/// The state of the view on a terminal.
#[derive(Debug, Default)]
struct Choices {
    all: bool,
    helps: bool,
    paused: Option<Box<Shown>>,
}

/// Observes and shows until the user or a signal ends it. Fails if it cannot observe, or show.
pub fn show(plan: LivePlan, session: &Session, settings: ObservedSettings) -> fault::Result<()> {
    let mut observation = LiveObservation::start(plan, session)?;
    let shown = match settings.front {
        ObservedFront::Text(updates) => {
            as_text(&mut observation, session, settings, updates, &|shown, out| shown.print(out, settings.all))
        }
        ObservedFront::Lines(updates) => as_text(&mut observation, session, settings, updates, &line::print),
        ObservedFront::Terminal => on_terminal(&mut observation, session, settings),
    };
    let ended = observation.end();
    shown.and(ended)
}

/// When pages are taken, and after how many times an update follows.
struct Rhythm {
    step: Duration,
    steps: u32,
    taken: u32,
    next: Instant,
}

impl Rhythm {
    fn new(interval: Duration) -> Self {
        let steps = (interval.as_millis() / LEAST_INTERVAL.as_millis()).max(1) as u32;
        let step = interval / steps;
        Self { step, steps, taken: 0, next: Instant::now() + step }
    }

    fn left(&self) -> Duration {
        self.next.saturating_duration_since(Instant::now())
    }

    /// Notes that the time for taking pages has come; returns whether an update follows.
    fn tick(&mut self) -> bool {
        self.taken += 1;
        // A late one does not make the next one early: pages are taken twice a second at most.
        self.next = (self.next + self.step).max(Instant::now() + self.step / 2);
        self.taken.is_multiple_of(self.steps)
    }
}

/// Sleeps until there are keys, a signal, or pages to take; returns whether the view continues.
fn wait(
    observation: &LiveObservation,
    session: &Session,
    keyboard: Option<&Keyboard>,
    left: Duration,
) -> fault::Result<bool> {
    let fds: Vec<_> = [Some(session.signals().as_fd()), keyboard.map(Keyboard::fd)]
        .into_iter()
        .flatten()
        .chain(observation.full_fds())
        .map(|fd| (fd, Await::Readable))
        .collect();
    wait_ready(&fds, Some(left)).context("cannot wait for the trace")?;
    Ok(session.signals().take().is_none())
}

/// Prints updates until there were this many, or a signal comes.
fn as_text(
    observation: &mut LiveObservation,
    session: &Session,
    settings: ObservedSettings,
    updates: u32,
    print: &dyn Fn(&Shown, &mut File) -> io::Result<()>,
) -> fault::Result<()> {
    let mut out = output().context("cannot print")?;
    let (mut rhythm, mut shown, mut printed) = (Rhythm::new(settings.interval), Shown::default(), 0);
    while printed < updates && wait(observation, session, None, rhythm.left())? {
        observation.take()?;
        if rhythm.left().is_zero()
            && rhythm.tick()
            && let Some(update) = observation.update()?
        {
            shown.since.add(&update);
            shown.update = update;
            print(&shown, &mut out)?;
            printed += 1;
        }
    }
    Ok(())
}

fn on_terminal(observation: &mut LiveObservation, session: &Session, settings: ObservedSettings) -> fault::Result<()> {
    let theme = Theme::from_environment();
    let mut screen = Screen::take().context("cannot use the terminal")?;
    let mut keyboard = Keyboard::new().context("cannot read keys")?;
    let (mut rhythm, mut shown) = (Rhythm::new(settings.interval), Shown::default());
    let mut choices = Choices { all: settings.all, ..Choices::default() };
    while screen.is_taken() {
        let present = choices.paused.as_deref().unwrap_or(&shown);
        screen.drawing.draw(|frame| draw(frame, present, &choices, theme)).context("cannot draw")?;
        if !wait(observation, session, Some(&keyboard), rhythm.left())? {
            break;
        }
        // A terminal that is gone has no keys.
        let Ok(keys) = keyboard.read(Duration::ZERO) else { break };
        let has_keys = !keys.is_empty();
        for key in keys {
            match choices.key(key, &shown) {
                Reaction::None => {}
                Reaction::Redraw => screen.wipe().context("cannot draw")?,
                Reaction::Quit => return Ok(()),
            }
        }
        let is_time = rhythm.left().is_zero();
        // Without keys, it is a buffer that is half full.
        if is_time || !has_keys {
            observation.take()?;
            if is_time
                && rhythm.tick()
                && let Some(update) = observation.update()?
            {
                shown.since.add(&update);
                shown.update = update;
            }
        }
    }
    Ok(())
}

/// The action that a key asks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Reaction {
    None,
    Redraw,
    Quit,
}

impl Choices {
    fn key(&mut self, key: KeyEvent, shown: &Shown) -> Reaction {
        if key.kind == KeyEventKind::Release {
            return Reaction::None;
        }
        match (key.code, key.modifiers.contains(KeyModifiers::CONTROL)) {
            (KeyCode::Char('c'), true) => return Reaction::Quit,
            (KeyCode::Char('l'), true) => return Reaction::Redraw,
            (KeyCode::Char('q') | KeyCode::Esc | KeyCode::Enter, false) if self.helps => self.helps = false,
            (KeyCode::Char('q'), false) => return Reaction::Quit,
            (KeyCode::Char('?' | 'h') | KeyCode::F(1), false) => self.helps = !self.helps,
            (KeyCode::Char('a'), false) => self.all = !self.all,
            (KeyCode::Char('p' | ' '), false) => {
                self.paused = if self.paused.is_some() { None } else { Some(Box::new(shown.clone())) };
            }
            _ => {}
        }
        Reaction::None
    }
}

/// Draws an update on a terminal of any size.
fn draw(frame: &mut Frame<'_>, shown: &Shown, choices: &Choices, theme: Theme) {
    let area = frame.area();
    let mut page = Canvas { buffer: frame.buffer_mut(), theme };
    let width = usize::from(area.width);
    if area.height < 5 {
        page.text(area.x, area.y, area.width, &shortened(&shown.answer(), width), theme.strong());
        return;
    }
    let answer = if shown.update.duration_ns == Nanos::ZERO { "observing\u{2026}".to_owned() } else { shown.answer() };
    let mut y = area.y;
    for line in becalm_report::wrap(&answer, width).into_iter().take(2) {
        page.text(area.x, y, area.width, &line, theme.strong());
        y += 1;
    }
    let mut basis = shown.basis();
    if choices.paused.is_some() {
        basis.insert(0, "PAUSED".to_owned());
    }
    let style = if choices.paused.is_some() { theme.warning() } else { theme.quiet() };
    page.text(area.x, y, area.width, &shortened(&basis.join("; "), width), style);
    y += 1;
    let pause = if choices.paused.is_some() { "p go on" } else { "p pause" };
    let keys = if choices.helps { "esc back".to_owned() } else { format!("q quit  ? help  {pause}  a all threads") };
    page.text(area.x, area.bottom() - 1, area.width, &shortened(&keys, width), theme.quiet());
    let body = Rect { y, height: (area.bottom() - 1).saturating_sub(y), ..area };
    if choices.helps {
        let lines: Vec<_> = KEYS.iter().map(|(key, what)| (format!("{key:<13}"), (*what).to_owned())).collect();
        page.lines(body, "Keys", &lines, 0);
        return;
    }
    let (threads, takers) = (shown.threads(choices.all), shown.takers());
    // Each table has a title and those of its columns; the takers get at least half of the lines.
    let most = (body.height / 2).max(3);
    let height = (threads.rows.len().max(1) as u16 + 2).min(most);
    page.observed(Rect { height, ..body }, "Threads", &threads, &THREAD_RANKS);
    let rest = Rect { y: body.y + height, height: body.height - height, ..body };
    page.observed(rest, "Takers of the CPU during waits", &takers, &TAKER_RANKS);
}

impl Canvas<'_> {
    /// A table with its title, as far as there is room.
    fn observed(&mut self, area: Rect, title: &str, grid: &Grid, ranks: &[&str]) {
        if area.height < 3 {
            return;
        }
        self.title(area, title, false);
        let body = Rect { y: area.y + 1, ..area };
        if grid.rows.is_empty() {
            self.text(body.x + 2, body.y, body.width.saturating_sub(2), "none", self.theme.quiet());
            return;
        }
        let fitted = fit(grid, usize::from(area.width).saturating_sub(2), ranks);
        self.titles(body, grid, &fitted, None);
        for (line, row) in grid.rows.iter().take(usize::from(area.height) - 2).enumerate() {
            self.row(Rect { y: body.y + 1 + line as u16, height: 1, ..body }, row, grid, &fitted);
        }
    }
}

#[cfg(test)]
mod tests;
