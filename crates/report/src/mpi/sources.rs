//! The noise sources within the worst phases of a job, as `becalm.phase-sources/1`.

use becalm_analyze::phase_sources::{LongPhase, PhaseSource, PhaseSources, Waiting};
use serde::Serialize;

use crate::Value;
use crate::catalogue;
use crate::form::field::{Object, fields};
use crate::form::figure::{Share, Time};
use crate::form::section::{Block, Page, Section};
use crate::form::sheet::Form;
use crate::form::table::Table;
use crate::form::value::{grouped, time};
use crate::report::Report;

/// The number of sources on a terminal unless all are wanted.
const SHOWN: usize = 20;

/// The recorded sources within the worst phases of a job.
pub struct PhaseSourcesReport<'a> {
    /// The result of the analysis.
    pub found: &'a PhaseSources,
}

/// A source, with the time of the phases beyond the median.
struct SourceRow {
    source: PhaseSource,
    beyond_ns: i64,
}

fields! {
    SOURCE, source: SourceRow {
        SOURCE = catalogue::SOURCE, |row| row.source.source.clone();
        KIND = catalogue::KIND, |row| row.source.kind.name();
        PHASES = "phases", "phases", |row| row.source.phases;
        COUNT = catalogue::COUNT, |row| row.source.count;
        HIGHEST_NS = "highest_ns", "longest", |row| Time(row.source.highest_ns);
        TOTAL_NS = catalogue::TOTAL_NS, |row| Time(row.source.total_ns);
        BEYOND_RATIO = "beyond_ratio", "of what is beyond", |row| match row.beyond_ns {
            ..=0 => None,
            beyond => Some(Share(row.source.total_ns as f64 / beyond as f64)),
        };
    }
}

fields! {
    PHASE, phase: LongPhase {
        PHASE = "phase", "phase", |row| row.phase;
        RANK = "rank", "rank", |row| row.rank;
        COMPUTE_NS = "compute_ns", "compute", |row| Time(row.compute_ns);
        MOST = "most", "most of it", |row| row.most.as_ref().map(|most| most.source.clone());
        MOST_NS = "most_ns", "time", |row| row.most.as_ref().map(|most| Time(most.time_ns));
    }
}

#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub(crate) struct PhaseSourcesDocument {
    phases: usize,
    worst: usize,
    seen: usize,
    median_ns: i64,
    mean_ns: f64,
    beyond_ns: i64,
    loop_ns: i64,
    sources: Vec<Object<SourceRow>>,
    longest: Vec<Object<LongPhase>>,
    /// The sources that ran while ranks waited; `null` if no waiting was recorded.
    waiting: Option<WaitingPart>,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
struct WaitingPart {
    waits: usize,
    total_ns: i64,
    job_ns: i64,
    loop_ns: i64,
    sources: Vec<Object<WaitingRow>>,
}

/// A source while ranks waited, and for how long.
struct WaitingRow {
    source: PhaseSource,
    total_ns: i64,
}

fields! {
    WAITING, waiting: WaitingRow {
        SOURCE = catalogue::SOURCE, |row| row.source.source.clone();
        KIND = catalogue::KIND, |row| row.source.kind.name();
        PHASES = "phases", "phases", |row| row.source.phases;
        COUNT = catalogue::COUNT, |row| row.source.count;
        HIGHEST_NS = "highest_ns", "longest", |row| Time(row.source.highest_ns);
        TOTAL_NS = catalogue::TOTAL_NS, |row| Time(row.source.total_ns);
        WAITING_RATIO = "waiting_ratio", "of the waiting",
            |row| Share(row.source.total_ns as f64 / row.total_ns.max(1) as f64);
    }
}

fn waiting_rows(waiting: &Waiting) -> impl Iterator<Item = WaitingRow> + '_ {
    waiting.sources.iter().map(|source| WaitingRow { source: source.clone(), total_ns: waiting.total_ns })
}

/// The sources that ran while ranks waited, in the same phases.
fn waiting_section(waiting: &Waiting) -> Section {
    let Waiting { waits, total_ns, job_ns, loop_ns, sources } = waiting;
    let title = "Meanwhile, on the CPUs of ranks that waited";
    let share = |part: i64| Value::Share(part as f64 / (*total_ns).max(1) as f64).cell();
    let text = format!(
        "{} for {} in all: the job itself, asking whether the others have come, had {} ({}), the recording's own loop, which takes what nobody \
         else wants, {} ({})",
        becalm_units::counted(*waits as u64, "wait", "waits"),
        time(*total_ns),
        time(*job_ns),
        share(*job_ns),
        time(*loop_ns),
        share(*loop_ns),
    );
    let mut blocks = vec![Block::Text(text)];
    if sources.is_empty() {
        blocks.push(Block::Text("nothing else ran there".to_owned()));
    } else {
        let fields: Vec<_> = WAITING.iter().collect();
        let rows: Vec<WaitingRow> = waiting_rows(waiting).collect();
        blocks.push(Block::Table(most_important(Table::filled(&fields, &rows).captioned(title))));
    }
    Section::new("waiting", "Waiting", title, blocks).titled()
}

fn most_important(table: Table) -> Table {
    table.with_most_important(SHOWN, |more| format!("and {} more", grouped(more as u64)))
}

impl PhaseSourcesReport<'_> {
    fn rows(&self) -> impl Iterator<Item = SourceRow> + '_ {
        self.found.sources.iter().map(|source| SourceRow { source: source.clone(), beyond_ns: self.found.beyond_ns })
    }
}

impl Report for PhaseSourcesReport<'_> {
    fn schema(&self) -> &'static str {
        "becalm.phase-sources/1"
    }

    fn document(&self) -> impl Serialize {
        let PhaseSources { phases, worst, seen, median_ns, mean_ns, beyond_ns, loop_ns, longest, .. } = self.found;
        PhaseSourcesDocument {
            phases: *phases,
            worst: *worst,
            seen: *seen,
            median_ns: *median_ns,
            mean_ns: *mean_ns,
            beyond_ns: *beyond_ns,
            loop_ns: *loop_ns,
            sources: self.rows().map(|row| Object::new(&row)).collect(),
            longest: longest.iter().map(Object::new).collect(),
            waiting: self.found.waiting.as_ref().map(|waiting| WaitingPart {
                waits: waiting.waits,
                total_ns: waiting.total_ns,
                job_ns: waiting.job_ns,
                loop_ns: waiting.loop_ns,
                sources: waiting_rows(waiting).map(|row| Object::new(&row)).collect(),
            }),
        }
    }

    fn view(&self, _: Form) -> Page {
        let mut sections = vec![self.worst(), self.sources(), self.longest()];
        sections.extend(self.found.waiting.as_ref().map(waiting_section));
        Page {
            title: "Sources within the worst phases".to_owned(),
            subtitle: String::new(),
            sections,
            foot: Vec::new(),
        }
    }
}

impl PhaseSourcesReport<'_> {
    fn worst(&self) -> Section {
        let found = self.found;
        let seen = if found.seen == found.worst {
            "all of them recorded".to_owned()
        } else {
            format!("{} of them recorded", grouped(found.seen as u64))
        };
        let worst = format!(
            "{} of {} phases with the longest compute time, {seen}: {} on average, where the median is {}",
            grouped(found.worst as u64),
            grouped(found.phases as u64),
            time(found.mean_ns.round() as i64),
            time(found.median_ns)
        );
        let beyond = format!("{} more than as many phases of the median", time(found.beyond_ns));
        let own = format!("the recording's own loop had the CPU for {} of these phases", time(found.loop_ns));
        let facts = Block::facts([("worst", worst), ("beyond", beyond), ("loop", own)]);
        Section::new("worst", "Worst", "The worst phases", vec![facts])
    }

    fn sources(&self) -> Section {
        let title = "Sources within them, on the CPU of the rank that computed longest";
        let fields: Vec<_> = SOURCE.iter().collect();
        let rows: Vec<SourceRow> = self.rows().collect();
        let table = most_important(Table::filled(&fields, &rows).captioned(title));
        Section::new("sources", "Sources", title, vec![Block::Table(table)]).titled()
    }

    fn longest(&self) -> Section {
        let title = "The longest of these phases";
        let fields: Vec<_> = PHASE.iter().collect();
        let table = Table::filled(&fields, &self.found.longest).captioned(title);
        Section::new("longest", "Longest", title, vec![Block::Table(table)]).titled()
    }
}
