//! An observation that is worked out while it runs, for `becalm top --observe`: pages are decoded as they are taken, and the books are divided at each
//! update. Only sums stay, so an observation may last as long as anyone likes.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::os::fd::BorrowedFd;
use std::path::PathBuf;
use std::time::Duration;

use becalm_attribute::books::{BookTally, Books, MissingSwitches};
use becalm_command::output::PROGRAM;
use becalm_linux::clock::{self, Anchor, Counter, MonotonicRaw};
use becalm_linux::rights::RemainingRights;
use becalm_linux::sysfs::cgroup::ThrottleCounts;
use becalm_measure::machine::Host;
use becalm_measure::{Spool, describe_machine};
use becalm_model::Document;
use becalm_record::Session;
use becalm_units::fault::{self, Context};
use becalm_units::{Nanos, Ticks, TicksToNanos};

use crate::choice::Choice;
use crate::document::ObservedDoc;
use crate::look::{Lookout, SeenThread};
use crate::merge::{Interjection, Merge, TraceBuffer, Until};
use crate::recorder::{self, ObservePlan, TraceParts, Traces};
use crate::replay::{Decoding, Pages, meet};
use crate::summing;

/// The least time between two takings of pages: each disturbs those observed.
pub const LEAST_INTERVAL: Duration = recorder::INTERVAL;

/// An event becomes readable this much after its time, at most.
const DELAY: Nanos = Nanos::from_millis(1);

/// Updates wait this long for the instant of a missing switch, which a busy CPU without ticks shows once a second.
const PATIENCE: Nanos = Nanos::from_secs(2);

/// A live observation as requested.
#[derive(Debug)]
pub struct LivePlan {
    /// The threads.
    pub choice: Choice,
    /// The rights after setup.
    pub rights: RemainingRights,
    /// The root of the file system: `/` outside of tests.
    pub root: PathBuf,
}

/// A running observation.
pub struct LiveObservation {
    traces: Traces,
    buffers: Vec<TraceBuffer>,
    parts: Vec<TraceParts>,
    spool: Spool,
    decoding: Decoding,
    merge: Merge<'static, SeenThread>,
    books: Books,
    lookout: Lookout,
    own: Vec<i32>,
    axis: TicksToNanos,
    now: fn() -> u64,
    anchor: fn() -> Anchor,
    /// The instant up to which all events are in the books, and that of the last update.
    fed: Nanos,
    updated: Nanos,
    counted: (BookTally, MissingSwitches),
    ranks: HashMap<i32, u32>,
    /// Control groups that were looked at, and the last counts of those with a limit.
    groups: HashSet<String>,
    throttled: BTreeMap<String, ThrottleCounts>,
    /// An update without its books.
    blank: ObservedDoc,
}

impl LiveObservation {
    /// Starts to observe. Fails if the kernel cannot be traced.
    pub fn start(plan: LivePlan, session: &Session) -> fault::Result<Self> {
        match clock::choose(&plan.root).source {
            #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
            clock::Source::Native => start::<clock::Native>(plan, session),
            _ => start::<MonotonicRaw>(plan, session),
        }
    }

    /// Buffers of the trace that should be emptied early, for poll.
    pub fn full_fds(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.traces.full_fds()
    }

    /// Takes and decodes what the kernel has recorded.
    pub fn take(&mut self) -> fault::Result<()> {
        let arrived = self.axis.instant(Ticks::new((self.now)())) - DELAY;
        self.traces.take(&mut self.spool, false).context("cannot read the trace")?;
        self.decoding.advance((self.anchor)());
        self.look()?;
        let Self { spool, buffers, parts, decoding, merge, books, own, .. } = self;
        let until = Until { arrived, at_least: arrived - PATIENCE };
        let fed = merge.feed(
            &mut Pages::new(spool, buffers, parts, decoding),
            Some(until),
            |seen, at, books, labels| meet(&seen, own, at, books, labels),
            books,
        )?;
        self.fed = self.fed.max(fed);
        self.spool.clear();
        Ok(())
    }

    /// Looks at new processes, and which control groups were throttled since the last look.
    fn look(&mut self) -> fault::Result<()> {
        for mut seen in self.lookout.look(self.now)? {
            // Each would be kept forever, and no table shows them.
            seen.command.clear();
            if !self.groups.contains(&seen.group) {
                for group in recorder::with_ancestors(&[seen.group.clone()]) {
                    let counts = self.lookout.groups.throttling(&group);
                    self.throttled.extend(counts.map(|counts| (group, counts)));
                }
                self.groups.insert(seen.group.clone());
            }
            self.ranks.extend(seen.rank.map(|rank| (seen.process, rank)));
            self.merge.interject(self.axis.instant(Ticks::new(seen.at)), Interjection::Fact(seen));
        }
        let mut grown = Vec::new();
        let groups = &self.lookout.groups;
        self.throttled.retain(|group, before| {
            let Some(now) = groups.throttling(group) else { return false };
            if now.since(before).throttled > 0 {
                grown.push(group.clone());
            }
            *before = now;
            true
        });
        self.books.set_throttled(&grown, self.decoding.labels());
        Ok(())
    }

    /// The books since the last update; `None` if no time has passed in them. Fails if another program has changed the trace, or the books are wrong.
    pub fn update(&mut self) -> fault::Result<Option<ObservedDoc>> {
        self.traces.refuse_changed()?;
        let (start, end) = (self.updated, self.fed);
        if end <= start {
            return Ok(None);
        }
        let labels = self.decoding.labels();
        let portion = self.books.divide(end, &self.merge.in_doubt(), labels);
        let mut doc = ObservedDoc { start_ns: start, duration_ns: end - start, ..self.blank.clone() };
        let threads = portion.iter().map(|(thread, books)| (self.books.identity(*thread), books));
        summing::enter_threads(&mut doc, (&self.books, labels), threads);
        for thread in &mut doc.threads {
            thread.rank = self.ranks.get(&thread.process).copied();
        }
        let (tally, missing) = (self.books.tally(), self.merge.missing());
        let (before, lacked) = std::mem::replace(&mut self.counted, (tally, missing));
        doc.events = tally.events - before.events;
        doc.lost_events = tally.lost_events - before.lost_events;
        doc.repaired_switches = missing.repaired - lacked.repaired;
        doc.unknown_switches = missing.unknown - lacked.unknown;
        self.updated = end;
        if let Err(why) = doc.check() {
            fault::bail!("the books of this update are wrong: {why}; please report this bug: becalm doctor");
        }
        Ok(Some(doc))
    }

    /// Ends the observation and removes its traces.
    pub fn end(self) -> fault::Result<()> {
        self.traces.turn(false)?;
        self.traces.remove()
    }
}

fn start<C: Counter>(plan: LivePlan, session: &Session) -> fault::Result<LiveObservation> {
    let LivePlan { choice, rights, root } = plan;
    let calibration = clock::calibrate::<C>(recorder::CALIBRATION)?;
    let machine = describe_machine(&root);
    let followed = choice.among(&Lookout::new(&root).look(C::read)?);
    let own = recorder::own_numbers(session);
    let mut warnings = Vec::new();
    let plan = ObservePlan {
        choice: choice.clone(),
        duration: None,
        calls: false,
        causes: false,
        buffer_bytes: recorder::buffer_bytes(&root),
        command: None,
        rights,
        folder: PathBuf::new(),
        root,
    };
    let is_guest = machine.hypervisor.is_some();
    let traces = recorder::set_up(&plan, &machine.online, is_guest, C::NAME, followed, session, &mut warnings)?;
    let Some(mut traces) = traces else {
        let why = warnings.last().map_or("the kernel cannot be traced", |warning| &warning.message);
        fault::bail!("cannot observe live: {why}; becalm observe also works without the kernel's trace");
    };
    let (readers, page_size) = traces.pages();
    let spool = Spool::in_memory(readers, page_size);
    let buffers = recorder::buffers(&traces);
    let parts = recorder::parts(&mut traces);
    let start = Anchor::take::<C>();
    recorder::leave_rights(&plan.rights, session)?;
    traces.turn(true)?;
    let axis = TicksToNanos::new(start.ticks, calibration.rate);
    let mut decoding = Decoding::new(&parts, C::NAME != MonotonicRaw::NAME, axis, start);
    let choose = Box::new(choice.clone().function());
    let books = Books::new(choose, &[], parts[0].has_calls, decoding.labels());
    let host = Host::read(&plan.root);
    let blank = ObservedDoc {
        machine,
        choice: choice.doc(&[], false),
        warnings: host.warning.into_iter().chain(warnings).collect(),
        ..ObservedDoc::new(host.node, PROGRAM.to_owned())
    };
    let mut observation = LiveObservation {
        merge: Merge::new(&buffers, [].into(), None),
        traces,
        buffers,
        parts,
        spool,
        decoding,
        books,
        lookout: Lookout::new(&plan.root),
        own,
        axis,
        now: C::read,
        anchor: Anchor::take::<C>,
        fed: Nanos::ZERO,
        updated: Nanos::ZERO,
        counted: <(BookTally, MissingSwitches)>::default(),
        ranks: HashMap::new(),
        groups: HashSet::new(),
        throttled: BTreeMap::new(),
        blank,
    };
    // A look at every thread while the trace runs, so each one's state is known from its look or from its first event.
    observation.look()?;
    let opened = axis.instant(Ticks::new(C::read()));
    observation.merge.interject(opened, Interjection::Open);
    (observation.fed, observation.updated) = (opened, opened);
    Ok(observation)
}
