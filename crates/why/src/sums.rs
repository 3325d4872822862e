//! Adds up the time that each cause brought about.

use std::collections::{BTreeMap, HashMap};

use becalm_account::{BatchOwners, SourceId, SourceIds};
use becalm_bundle::{Bundle, BundleError, CauseTable, ObservedTables};
use becalm_model::carried::TICK;
use becalm_model::cause::{Cause, Requester};
use becalm_model::node::MachineDoc;
use becalm_model::observed::OwnedActivity;
use becalm_model::{Kind, Label, Labels, Pid, remedy};
use becalm_stats::median_low;
use becalm_units::{CpuId, CpuList, Nanos};

use crate::document::{CauseDoc, CoverageDoc, FunctionDoc, RequesterDoc};
use crate::index::{CauseIndex, Ran};

/// What activities have in common that are one row of the report.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
struct Group {
    source: SourceId,
    requester: Requester,
    by: Label,
    context: Label,
    site: Label,
}

impl Group {
    fn new(source: SourceId, cause: Option<&Cause>) -> Self {
        let (requester, by, context, site) = match cause {
            Some(cause) => (cause.requester, cause.by, cause.context, cause.site),
            None => (Requester::Unknown, Label::EMPTY, Label::EMPTY, Label::EMPTY),
        };
        Self { source, requester, by, context, site }
    }
}

#[derive(Clone, Debug, Default)]
struct Sum {
    count: u64,
    total: Nanos,
    whole: Nanos,
    delays: Vec<i64>,
    /// The thread that made the requests; `None` for several.
    thread: Option<Pid>,
}

/// Sums by cause.
#[derive(Debug, Default)]
pub struct CauseSums {
    index: CauseIndex,
    labels: Labels,
    ids: SourceIds,
    groups: HashMap<Group, Sum>,
    /// The last activity of each source on each CPU.
    last: HashMap<(CpuId, SourceId), Group>,
}

/// An activity of a detour.
#[derive(Clone, Copy)]
struct Row {
    source: SourceId,
    root: SourceId,
    kind: Kind,
    start: i64,
    self_ns: i64,
}

/// Kinds of activities that something requests.
const REQUESTED: [Kind; 5] = [Kind::Irq, Kind::Softirq, Kind::Workqueue, Kind::Kthread, Kind::Task];

impl CauseSums {
    /// Reads the causes of a node. Fails if they cannot be read.
    pub fn new(table: &CauseTable) -> Result<Self, BundleError> {
        let (mut labels, mut causes) = (Labels::new(), Vec::new());
        table.read(&mut labels, &mut |cause| causes.push(cause))?;
        Ok(Self { index: CauseIndex::new(causes), labels, ..Self::default() })
    }

    /// Adds the activities of a node's recording of CPUs. Fails if they cannot be read.
    pub fn add_recording(&mut self, bundle: &Bundle, node: &str, cpus: &CpuList) -> Result<(), BundleError> {
        let mut open: Option<(i32, i64)> = None;
        let mut rows: Vec<Row> = Vec::new();
        for batch in bundle.activities(node)? {
            let batch = batch?;
            let (sources, details) = (batch.source_values(), batch.detail_values());
            let mut owners = BatchOwners::new(&sources, &details);
            for row in 0..batch.len() {
                let place = (batch.cpus()[row], batch.detours()[row]);
                if open.is_some_and(|open| open != place) {
                    self.add_detour(open, &mut rows);
                }
                open = Some(place);
                if !cpus.contains(CpuId::new(place.0.unsigned_abs())) {
                    continue;
                }
                let kind = batch.kind(row);
                let owner = owners.owner(&mut self.ids, kind, batch.source_key(row), batch.detail_key(row));
                let (start, self_ns) = (batch.starts()[row], batch.self_times()[row]);
                rows.push(Row { source: owner.source, root: owner.root, kind, start, self_ns });
            }
        }
        self.add_detour(open, &mut rows);
        Ok(())
    }

    /// Adds the activities of a detour, and empties the list.
    fn add_detour(&mut self, place: Option<(i32, i64)>, rows: &mut Vec<Row>) {
        let Some((cpu, _)) = place else { return };
        let cpu = CpuId::new(cpu.unsigned_abs());
        let (mut groups, is_root) = (Vec::new(), |row: &Row| row.source == row.root && REQUESTED.contains(&row.kind));
        for row in rows.iter().filter(|row| is_root(row)) {
            let cause = self.index.at(cpu, row.kind, Nanos::new(row.start));
            let group = Group::new(row.source, cause);
            groups.push((row.source, row.start, group));
            self.last.insert((cpu, row.source), group);
            let (delay, thread) = (cause.and_then(|cause| cause.delay), cause.map(|cause| cause.thread));
            self.sum(group, thread).add(1, Nanos::new(row.self_ns), delay);
        }
        // Time that is charged to a source belongs to its last activity before in the detour, or else to its first one after.
        for row in rows.iter().filter(|row| !is_root(row)) {
            let of_root = groups.iter().filter(|(source, ..)| *source == row.root);
            let before = of_root.clone().filter(|(_, start, _)| *start <= row.start).max_by_key(|(_, start, _)| *start);
            let group = match before.or_else(|| of_root.min_by_key(|(_, start, _)| *start)) {
                Some((.., group)) => *group,
                None if !REQUESTED.contains(&self.ids.name(row.root).0) => continue,
                // The cold caches after an earlier detour.
                None if row.kind == Kind::Edge => {
                    let last = self.last.get(&(cpu, row.root)).copied();
                    last.unwrap_or_else(|| Group::new(row.root, None))
                }
                // An interrupt that wakes a thread, which runs later.
                None => Group::new(row.root, self.index.at(cpu, row.kind, Nanos::new(row.start))),
            };
            let sum = self.groups.entry(group).or_default();
            sum.whole = sum.whole.saturating_add(Nanos::new(row.self_ns));
        }
        rows.clear();
    }

    /// Adds what had the CPUs instead of observed threads. Fails if it cannot be read.
    pub fn add_observed(&mut self, tables: &ObservedTables, cpus: Option<&CpuList>) -> Result<(), BundleError> {
        let Self { index, ids, groups, labels, .. } = self;
        let mut read = std::mem::take(labels);
        let tids: Vec<Pid> = tables.threads(&mut read)?.iter().map(|thread| Pid(thread.tid)).collect();
        tables.detours(&mut read, &mut |detour, rows, labels| {
            if cpus.is_some_and(|cpus| !cpus.contains(detour.cpu)) {
                return;
            }
            // A CPU's way out of idle is the row of no thread.
            let is_thread = |kind| matches!(kind, Kind::Task | Kind::Kthread);
            let is_requested =
                |row: &&OwnedActivity| REQUESTED.contains(&row.kind) && (row.thread.is_some() || !is_thread(row.kind));
            for row in rows.iter().filter(is_requested) {
                let source = ids.id(row.kind, labels.text(row.source));
                let span = (detour.start, detour.start + detour.duration);
                let who = match row.thread.filter(|_| is_thread(row.kind)) {
                    Some(thread) => Ran::Thread(tids[thread.0 as usize]),
                    None => Ran::Source(row.source),
                };
                let found: Vec<(&Cause, Nanos)> = index.between((detour.cpu, row.kind), who, span).collect();
                let all: i128 = found.iter().map(|(_, time)| i128::from(time.get())).sum();
                let mut left = (row.time, row.visits);
                for (number, (cause, time)) in found.iter().enumerate() {
                    // By the time of each, and the visits in their order.
                    let is_last = number + 1 == found.len();
                    let part = i128::from(row.time.get()) * i128::from(time.get()) / all.max(1);
                    let part = if is_last { left.0 } else { Nanos::new(part as i64) };
                    let visits = if is_last { left.1 } else { left.1.min(1) };
                    left = (left.0 - part, left.1 - visits);
                    let group = Group::new(source, Some(cause));
                    sum(groups, group, Some(cause.thread)).add(visits, part, cause.delay);
                }
                if found.is_empty() {
                    sum(groups, Group::new(source, None), None).add(row.visits, row.time, None);
                }
            }
        })?;
        self.labels = read;
        Ok(())
    }

    fn sum(&mut self, group: Group, thread: Option<Pid>) -> &mut Sum {
        sum(&mut self.groups, group, thread)
    }

    /// How much has a known cause, without the tick.
    pub fn coverage(&self) -> CoverageDoc {
        let mut coverage = CoverageDoc::default();
        for (group, sum) in &self.groups {
            if self.ids.name(group.source).1 == TICK {
                continue;
            }
            let known = group.requester != Requester::Unknown;
            coverage.activities = coverage.activities.saturating_add(sum.count);
            coverage.total_ns = coverage.total_ns.saturating_add(sum.whole);
            if known {
                coverage.known = coverage.known.saturating_add(sum.count);
                coverage.known_ns = coverage.known_ns.saturating_add(sum.whole);
            }
        }
        coverage
    }

    /// The causes of the sources that are wanted, those that brought about most time first.
    pub fn causes(&self, is_wanted: impl Fn(Kind, &str) -> bool) -> Vec<CauseDoc> {
        let text = |label| self.labels.text(label).to_owned();
        let mut causes: Vec<CauseDoc> = self
            .groups
            .iter()
            .map(|(group, sum)| (self.ids.name(group.source), group, sum))
            .filter(|((kind, source), ..)| is_wanted(*kind, source))
            .map(|((kind, source), group, sum)| CauseDoc {
                kind,
                source: source.to_owned(),
                function: function(source).to_owned(),
                by: text(group.by),
                tid: sum.thread.filter(|thread| *thread != Pid::IDLE).map(|thread| thread.0),
                owner: group.requester,
                context: text(group.context),
                site: text(group.site),
                count: sum.count,
                total_ns: sum.total,
                whole_ns: sum.whole,
                delay_median_ns: median(&sum.delays),
            })
            .collect();
        let order = |cause: &CauseDoc| {
            let CauseDoc { kind, source, by, context, site, .. } = cause.clone();
            (std::cmp::Reverse(cause.whole_ns), kind, source, by, context, site)
        };
        causes.sort_by_cached_key(order);
        causes
    }
}

/// The sum of a group, with the thread of a further activity.
fn sum(groups: &mut HashMap<Group, Sum>, group: Group, thread: Option<Pid>) -> &mut Sum {
    let sum = groups.entry(group).or_default();
    sum.thread = if sum.count == 0 || sum.thread == thread { thread } else { None };
    sum
}

impl Sum {
    fn add(&mut self, count: u64, own: Nanos, delay: Option<Nanos>) {
        // A damaged recording may have any numbers.
        self.count = self.count.saturating_add(count);
        self.total = self.total.saturating_add(own);
        self.whole = self.whole.saturating_add(own);
        self.delays.extend(delay.map(Nanos::get));
    }
}

fn median(delays: &[i64]) -> Option<Nanos> {
    median_low(&mut delays.to_vec()).map(Nanos::new)
}

/// The function in the name of a source: the part after its colon.
fn function(source: &str) -> &str {
    source.split_once(':').map_or(source, |(_, function)| function)
}

/// The functions of the first sources.
const FUNCTIONS: usize = 3;

/// The kernel functions that took most time, with their fixes on this machine.
pub fn functions(causes: &[CauseDoc], machine: &MachineDoc) -> Vec<FunctionDoc> {
    let mut found: Vec<FunctionDoc> = Vec::new();
    for CauseDoc { kind, source, .. } in causes {
        let is_new = found.iter().all(|known| known.source != *source);
        if found.len() < FUNCTIONS
            && is_new
            && let Some(function) = remedy::function_of_source(*kind, source)
        {
            let fix = function.advice([machine]).map(ToOwned::to_owned);
            found.push(FunctionDoc { source: source.clone(), does: function.does.to_owned(), fix });
        }
    }
    found
}

/// The same by those who made the requests, those who brought about most time first.
pub fn requesters(causes: &[CauseDoc]) -> Vec<RequesterDoc> {
    let mut all: BTreeMap<(Requester, &str), RequesterDoc> = BTreeMap::new();
    for cause in causes {
        let requester = all.entry((cause.owner, &cause.by)).or_insert_with(|| RequesterDoc {
            by: cause.by.clone(),
            owner: cause.owner,
            count: 0,
            whole_ns: Nanos::ZERO,
            sources: Vec::new(),
        });
        requester.count = requester.count.saturating_add(cause.count);
        requester.whole_ns = requester.whole_ns.saturating_add(cause.whole_ns);
        if !requester.sources.contains(&cause.source) {
            requester.sources.push(cause.source.clone());
        }
    }
    let mut all: Vec<RequesterDoc> = all.into_values().collect();
    all.sort_by_key(|requester| std::cmp::Reverse(requester.whole_ns));
    all
}

#[cfg(test)]
mod tests {
    use becalm_account::LabelOwners;

    use super::*;

    /// Sums by plain reading: the time of each source that something requests, by its kind and name.
    fn plain(bundle: &Bundle) -> BTreeMap<(Kind, String), i64> {
        let (mut sums, mut ids) = (BTreeMap::new(), SourceIds::default());
        for batch in bundle.activities("node1").unwrap() {
            let batch = batch.unwrap();
            for row in 0..batch.len() {
                let mut labels = Labels::new();
                let [source, detail] = [batch.source(row), batch.detail(row)].map(|text| labels.intern(text));
                let activity = becalm_model::Activity {
                    cpu: CpuId::new(0),
                    detour: 0,
                    start: Nanos::ZERO,
                    self_time: Nanos::ZERO,
                    kind: batch.kind(row),
                    source,
                    detail,
                };
                let root = LabelOwners::default().owner(&mut ids, &labels, &activity).root;
                let (kind, name) = ids.name(root);
                if REQUESTED.contains(&kind) {
                    *sums.entry((kind, name.to_owned())).or_default() += batch.self_times()[row];
                }
            }
        }
        sums
    }

    #[test]
    fn no_time_is_lost_between_causes() {
        let folder = tempfile::tempdir().unwrap();
        becalm_fixtures::write_all(folder.path());
        becalm_fixtures::causes::write_causes(&folder.path().join("causes.becalm"));
        for name in ["causes", "busy", "twins"] {
            let bundle = Bundle::open(&folder.path().join(format!("{name}.becalm"))).unwrap();
            let causes = bundle.nodes()[0].tracing.as_ref().and_then(|tracing| tracing.causes.as_ref()?.rows);
            let mut sums = match causes {
                Some(rows) => CauseSums::new(&CauseTable::new(bundle.path(), "node1", rows)).unwrap(),
                None => CauseSums::default(),
            };
            sums.add_recording(&bundle, "node1", &bundle.nodes()[0].cpus.iter().map(|cpu| cpu.cpu).collect()).unwrap();
            let mut found = BTreeMap::new();
            for cause in sums.causes(|_, _| true) {
                *found.entry((cause.kind, cause.source)).or_default() += cause.whole_ns.get();
            }
            assert_eq!(found, plain(&bundle), "{name}");
            assert_eq!(sums.coverage().known == 0, causes.is_none(), "{name}");
        }
    }

    #[test]
    fn time_that_threads_waited_is_divided_among_causes() {
        let folder = tempfile::tempdir().unwrap();
        becalm_fixtures::observed::write_observed(folder.path());
        let path = folder.path().join("observed.becalm");
        let head = becalm_bundle::node_document::load::<becalm_bundle::ObservedHead>(&path, None).unwrap().doc;
        let tables = ObservedTables::new(&path, &head.node, head.rows);
        let (mut plain, mut labels, mut causes) = (BTreeMap::<_, i64>::new(), Labels::new(), Vec::new());
        let tids: Vec<Pid> = tables.threads(&mut labels).unwrap().iter().map(|thread| Pid(thread.tid)).collect();
        let mut take = |detour: &becalm_model::observed::ThreadDetour, rows: &[OwnedActivity], labels: &Labels| {
            for row in rows.iter().filter(|row| REQUESTED.contains(&row.kind)) {
                *plain.entry((row.kind, labels.text(row.source).to_owned())).or_default() += row.time.get();
                // Three in each wait, so shares of its time are rounded.
                causes.extend((0..3).map(|number| Cause {
                    cpu: detour.cpu,
                    start: detour.start + Nanos::new(7 * number),
                    duration: Nanos::new(7),
                    kind: row.kind,
                    source: row.source,
                    task: row.thread.map_or(Pid::IDLE, |thread| tids[thread.0 as usize]),
                    requester: Requester::Timer,
                    by: row.source,
                    thread: Pid::IDLE,
                    context: Label::EMPTY,
                    site: Label::EMPTY,
                    delay: None,
                }));
            }
        };
        tables.detours(&mut labels, &mut take).unwrap();
        assert!(plain.remove(&(Kind::Kthread, "idle_exit".to_owned())).is_some());
        let with = CauseSums { index: CauseIndex::new(causes), labels, ..CauseSums::default() };
        for (mut sums, is_known) in [(CauseSums::default(), false), (with, true)] {
            sums.add_observed(&tables, None).unwrap();
            let mut found = BTreeMap::new();
            for cause in sums.causes(|_, _| true) {
                *found.entry((cause.kind, cause.source)).or_default() += cause.whole_ns.get();
            }
            assert_eq!(found, plain);
            assert_eq!(sums.coverage().known > 0, is_known);
        }
    }
}
