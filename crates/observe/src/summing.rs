//! The document of an observation, from its books.

use std::collections::{BTreeMap, HashMap};

use becalm_attribute::books::{Books, RanAs, Taken, ThreadBooks, ThreadIdentity, TimeCount};
use becalm_bundle::{BundleError, ObservedWriter, ThreadRow};
use becalm_model::node::Ended;
use becalm_model::observed::{ObservedRows, Owner, ThreadId};
use becalm_model::{Kind, Labels, ThreadState, warning};
use becalm_units::Nanos;

use crate::document::{ChoiceDoc, CostDoc, GroupPair, ObservedDoc, PartDoc, QuotaDoc, TakerDoc, ThreadDoc};
use crate::merge::WorkedOut;
use crate::recorder::{Observation, ThrottledGroup};
use crate::replay::Replayed;
use crate::words::{TakerNames, TakerThread};

/// The document before anything is worked out.
pub fn begun(observation: &Observation, choice: ChoiceDoc, program: &str) -> ObservedDoc {
    ObservedDoc {
        origin: jiff::Timestamp::from_nanosecond(i128::from(observation.anchors.0.wall_ns)).ok(),
        machine: observation.machine.clone(),
        clock: observation.clock.clone(),
        choice,
        tracing: Some(observation.tracing.clone()),
        cost: CostDoc { trace_bytes: observation.spool.bytes(), cpu_ns: observation.cpu_time },
        warnings: observation.warnings.clone(),
        ..ObservedDoc::new(observation.host.clone(), program.to_owned())
    }
}

/// Completes the document of an observation with its books.
pub fn complete(doc: &mut ObservedDoc, observation: &Observation, replayed: &Replayed) {
    doc.ended = Some(observation.ended);
    doc.clock.pairs = observation.clocks.pairs(replayed.axis);
    let causes = doc.tracing.as_mut().and_then(|tracing| tracing.causes.as_mut());
    if let (Some(doc), Some(found)) = (causes, &replayed.causes) {
        (doc.taken, doc.lost, doc.rows) = (found.taken, found.lost, Some(found.stored));
    }
    enter(doc, &replayed.worked);
    if doc.lost_events > 0 {
        doc.warnings.push(warning::lost_events(doc.lost_events, 0));
    }
    let ranks: HashMap<i32, u32> =
        observation.seen.iter().filter_map(|seen| Some((seen.stat.pid, seen.rank?))).collect();
    for thread in &mut doc.threads {
        thread.rank = ranks.get(&thread.process).copied();
    }
    let quota = |group: &ThrottledGroup| {
        let is_in = |path: &str| {
            path == group.group || path.strip_prefix(&group.group).is_some_and(|rest| rest.starts_with('/'))
        };
        QuotaDoc {
            cgroup: group.group.clone(),
            periods: group.grown.periods,
            throttled: group.grown.throttled,
            throttled_ns: group.grown.throttled_time,
            waited_ns: doc.threads.iter().filter(|thread| is_in(&thread.cgroup)).map(|thread| thread.quota_ns).sum(),
        }
    };
    doc.quotas = observation.throttled.iter().map(quota).collect();
    for compared in &replayed.compared {
        let check = &mut doc.checked;
        check.threads += 1;
        check.kernel_switches += compared.kernel.runs;
        check.switches += compared.books.runs;
        check.kernel_ran_ns += compared.kernel.ran;
        check.ran_ns += compared.books.ran;
        check.kernel_queued_ns += compared.kernel.waited;
        check.queued_ns += compared.books.waited;
    }
    debug_assert!(doc.ended != Some(Ended::Failed), "a failed observation has no books");
}

/// Enters the books: the span, the counts of events, the threads, and who had the CPU instead of them.
pub fn enter(doc: &mut ObservedDoc, worked: &WorkedOut) {
    let (start, end) = worked.span;
    (doc.start_ns, doc.duration_ns) = (start, end - start);
    let tally = worked.books.tally();
    (doc.events, doc.lost_events) = (tally.events, tally.lost_events);
    (doc.repaired_switches, doc.unknown_switches) = (worked.missing.repaired, worked.missing.unknown);
    let threads = worked.books.threads().filter_map(|(_, identity, books)| Some((identity, books?)));
    enter_threads(doc, (&worked.books, &worked.labels), threads);
}

/// Enters the books of these threads, and who had the CPU instead of them. The names are those of all threads.
pub fn enter_threads<'a>(
    doc: &mut ObservedDoc,
    (books, labels): (&Books, &Labels),
    threads: impl Iterator<Item = (&'a ThreadIdentity, &'a ThreadBooks)>,
) {
    let all = books;
    let names = TakerNames::new(all.threads().map(|(_, known, _)| (taker_thread(known), labels.text(known.name))));
    let mut all_takers = Takers::default();
    let mut groups: BTreeMap<(String, String), Nanos> = BTreeMap::new();
    for (identity, books) in threads.filter(|(_, books)| books.wall() > Nanos::ZERO) {
        let mut takers = Takers::default();
        let victim = labels.text(identity.group).to_owned();
        for (taken, sum) in &books.takers {
            takers.add(taken, sum, (all, labels), &names);
            all_takers.add(taken, sum, (all, labels), &names);
            let pair = groups.entry((victim.clone(), culprit(taken, (all, labels)))).or_default();
            // A damaged file may hold any time; the document is refused then.
            *pair = pair.saturating_add(sum.time);
        }
        let mut thread = thread_doc(identity, books, labels);
        thread.takers = takers.sorted();
        doc.threads.push(thread);
    }
    doc.threads.sort_by(|one, other| {
        other.waited_ns.cmp(&one.waited_ns).then_with(|| (one.process, one.tid).cmp(&(other.process, other.tid)))
    });
    doc.takers = all_takers.sorted();
    doc.groups = groups.into_iter().map(|((victim, culprit), ns)| GroupPair { victim, culprit, ns }).collect();
    doc.groups.sort_by_key(|pair| std::cmp::Reverse(pair.ns));
}

fn thread_doc(identity: &ThreadIdentity, books: &ThreadBooks, labels: &Labels) -> ThreadDoc {
    let text = |label| labels.text(label).to_owned();
    let mut ran: Vec<PartDoc> = books
        .ran_as
        .iter()
        .map(|(part, TimeCount { time, count, .. })| {
            let (kind, source) = match part {
                RanAs::Program => ("program", String::new()),
                RanAs::Own(work) => ("own", text(*work)),
                RanAs::Activity(kind, source) => (kind.name(), text(*source)),
                RanAs::Host => ("host", "hypervisor".to_owned()),
            };
            PartDoc { kind: kind.to_owned(), source, ns: *time, count: *count }
        })
        .collect();
    let mut asleep: Vec<PartDoc> = books
        .sleeps
        .iter()
        .map(|(sleep, TimeCount { time, count, .. })| {
            let kind = if sleep.state == ThreadState::UNKNOWN { '?' } else { sleep.state.letter() };
            PartDoc { kind: kind.to_string(), source: text(sleep.context), ns: *time, count: *count }
        })
        .collect();
    for parts in [&mut ran, &mut asleep] {
        parts.sort_by(|one, other| other.ns.cmp(&one.ns).then_with(|| one.source.cmp(&other.source)));
    }
    ThreadDoc {
        tid: identity.pid.0,
        process: identity.process.0,
        name: text(identity.name),
        command: text(identity.command),
        cgroup: text(identity.group),
        rank: None,
        start_ns: books.start,
        wall_ns: books.wall(),
        ran_ns: books.ran,
        waited_ns: books.queued + books.on_the_way + books.quota,
        queued_ns: books.queued,
        on_the_way_ns: books.on_the_way,
        quota_ns: books.quota,
        asleep_ns: books.asleep + books.stopped,
        stopped_ns: books.stopped,
        unknown_ns: books.unknown,
        switches: books.switches,
        ran,
        asleep,
        takers: Vec::new(),
        imbalance_ns: books.imbalance(),
    }
}

/// The takers of one or all threads. Threads of a program with the same name and owner are one.
#[derive(Default)]
struct Takers {
    sums: HashMap<TakerKey, TakerDoc>,
}

#[derive(PartialEq, Eq, Hash)]
struct TakerKey {
    owner: Owner,
    kind: Kind,
    source: String,
    group: String,
}

impl Takers {
    fn add(&mut self, taken: &Taken, sum: &TimeCount, (books, labels): (&Books, &Labels), names: &TakerNames<'_>) {
        let identity = taken.thread.map(|thread| books.identity(thread));
        let name = labels.text(taken.source);
        let is_kernel = identity.is_some_and(|identity| identity.is_kernel);
        let source = names.source(taken.owner, name, identity.map(taker_thread));
        let group = identity.map_or("", |identity| labels.text(identity.group)).to_owned();
        let process = identity.filter(|_| !is_kernel).map(|identity| identity.process.0);
        let command = identity.map_or("", |identity| labels.text(identity.command)).to_owned();
        let key = TakerKey { owner: taken.owner, kind: taken.kind, source: source.clone(), group: group.clone() };
        let doc = self.sums.entry(key).or_insert_with(|| TakerDoc {
            kind: taken.kind,
            source,
            owner: taken.owner,
            ns: Nanos::ZERO,
            count: 0,
            longest_ns: Nanos::ZERO,
            process,
            command,
            cgroup: group,
        });
        if doc.process != process {
            doc.process = None;
        }
        doc.ns = doc.ns.saturating_add(sum.time);
        doc.count += sum.count;
        doc.longest_ns = doc.longest_ns.max(sum.longest);
    }

    fn sorted(self) -> Vec<TakerDoc> {
        let mut takers: Vec<TakerDoc> = self.sums.into_values().collect();
        takers.sort_by(|one, other| {
            other
                .ns
                .cmp(&one.ns)
                .then_with(|| (one.kind, &one.source, &one.cgroup).cmp(&(other.kind, &other.source, &other.cgroup)))
        });
        takers
    }
}

const fn taker_thread(identity: &ThreadIdentity) -> TakerThread {
    TakerThread { tid: identity.pid.0, process: identity.process.0, is_kernel: identity.is_kernel }
}

/// The group of a taker, or what it is instead.
fn culprit(taken: &Taken, (books, labels): (&Books, &Labels)) -> String {
    match (taken.owner, taken.thread) {
        (Owner::Kernel, _) => "kernel".to_owned(),
        (_, Some(thread)) => labels.text(books.identity(thread).group).to_owned(),
        (Owner::Interrupt, None) => "interrupts".to_owned(),
        (Owner::Quota, None) => "quota".to_owned(),
        (_, None) => "not known".to_owned(),
    }
}

/// The rows of the table of threads: the observed ones, and those that had the CPU meanwhile.
fn thread_rows(worked: &WorkedOut) -> Vec<ThreadRow> {
    let number = |thread: ThreadId| i32::try_from(thread.0).unwrap_or(-1);
    let row = |(thread, identity, books): (ThreadId, &ThreadIdentity, Option<&ThreadBooks>)| ThreadRow {
        thread: number(thread),
        tid: identity.pid.0,
        process: identity.process.0,
        parent: identity.parent.map_or(-1, number),
        name: identity.name,
        command: identity.command,
        group: identity.group,
        start_ns: books.map_or(identity.started, |books| Some(books.start)).unwrap_or(worked.span.0).get(),
        end_ns: books.map_or(identity.ended, |books| Some(books.end)).unwrap_or(worked.span.1).get(),
        chosen: books.is_some(),
        kernel: identity.is_kernel,
    };
    worked.books.threads().map(row).collect()
}

/// Completes the tables and the document of worked-out threads. Fails if the document is invalid, or the system refuses.
pub fn finish(doc: &mut ObservedDoc, worked: &WorkedOut, writer: &mut ObservedWriter) -> Result<(), BundleError> {
    let threads = thread_rows(worked);
    doc.rows = ObservedRows { threads: threads.len() as u64, ..writer.rows() };
    writer.finish(doc, &threads, &worked.labels)
}
