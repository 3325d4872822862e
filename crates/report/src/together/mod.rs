//! Simultaneous detours on several CPUs: how long how many CPUs were in a detour, and whose detours coincide with those of other CPUs.

use becalm_analyze::together::{BusyTime, Meeting, SharedStretch, Together};
use becalm_model::node::Warning;
use becalm_units::{CpuList, cpus, printable};
use serde::Serialize;

use crate::Value;
use crate::catalogue;
use crate::form::field::{Object, fields};
use crate::form::figure::{Factor, Often, Ratio, Share, Time};
use crate::form::section::{Block, Page, Section};
use crate::form::sheet::Form;
use crate::form::table::Table;
use crate::form::value::grouped;
use crate::report::Report;

/// The number of sources on a terminal unless all are wanted.
const SHOWN: usize = 20;

/// Simultaneous detours on the CPUs of a node, as `becalm.together/1`.
pub struct TogetherReport<'a> {
    /// The result of the analysis.
    pub together: &'a Together,
}

/// How long so many CPUs were in a detour.
struct AtOnceRow {
    at_once: BusyTime,
    length: i64,
}

/// The detours of a source, or of all.
struct MeetingRow {
    source: Option<String>,
    meeting: Meeting,
}

/// The ratio to the value expected by chance; `None` if that is 0.
fn times_chance(found: f64, by_chance: f64) -> Option<Factor> {
    (by_chance > 0.0).then(|| Factor(found / by_chance))
}

fields! {
    AT_ONCE, at_once: AtOnceRow {
        CPUS = "cpus", "cpus", |row| row.at_once.cpus;
        TIME_NS = "time_ns", "time", |row| Time(row.at_once.time);
        TIME_RATIO = catalogue::TIME_RATIO, |row| Ratio(row.at_once.time as f64 / row.length.max(1) as f64);
        BY_CHANCE_NS = "by_chance_ns", "by chance", |row| Time::rounded(row.at_once.by_chance);
        TIMES_CHANCE = "times_chance", "times chance", |row| times_chance(row.at_once.time as f64, row.at_once.by_chance);
    }
}

fields! {
    MEETING, meeting: MeetingRow {
        SOURCE = catalogue::SOURCE, |row| row.source.clone();
        DETOURS = "detours", "detours", |row| row.meeting.count;
        MET = "met", "met", |row| row.meeting.met;
        MET_RATIO = "met_ratio", "share", |row| Share(row.meeting.met as f64 / row.meeting.count.max(1) as f64);
        BY_CHANCE = "by_chance", "by chance", |row| Often(row.meeting.by_chance);
        TIMES_CHANCE = "times_chance", "times chance", |row| times_chance(row.meeting.met as f64, row.meeting.by_chance);
    }
}

fields! {
    STRETCH, stretch: SharedStretch {
        START_NS = catalogue::START_NS, |row| Time(row.stretch.start);
        DURATION_NS = catalogue::DURATION_NS, |row| Time(row.stretch.end - row.stretch.start);
        CPUS = "cpus", "cpus", |row| row.stretch.cpus;
        SOURCES = "sources", "sources", |row| row.sources.join(", ");
    }
}

#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub(crate) struct TogetherDocument<'a> {
    node: &'a str,
    cpus: String,
    duration_ns: i64,
    within_ns: i64,
    at_once: Vec<Object<AtOnceRow>>,
    all: Object<MeetingRow>,
    sources: Vec<Object<MeetingRow>>,
    stretches: usize,
    longest: Vec<Object<SharedStretch>>,
    warnings: &'a [Warning],
}

impl TogetherReport<'_> {
    fn at_once(&self) -> Vec<AtOnceRow> {
        let length = self.together.length.get();
        self.together.at_once.iter().map(|at_once| AtOnceRow { at_once: *at_once, length }).collect()
    }

    fn sources(&self) -> Vec<MeetingRow> {
        let row = |source: &becalm_analyze::together::SourceMeeting| MeetingRow {
            source: Some(source.source.clone()),
            meeting: source.meeting,
        };
        self.together.sources.iter().map(row).collect()
    }

    fn all(&self) -> MeetingRow {
        MeetingRow { source: None, meeting: self.together.all }
    }

    fn cpus(&self) -> CpuList {
        self.together.cpus.iter().copied().collect()
    }
}

impl Report for TogetherReport<'_> {
    fn schema(&self) -> &'static str {
        "becalm.together/1"
    }

    fn document(&self) -> impl Serialize {
        let together = self.together;
        TogetherDocument {
            node: &together.node,
            cpus: self.cpus().to_string(),
            duration_ns: together.length.get(),
            within_ns: together.within.get(),
            at_once: self.at_once().iter().map(Object::new).collect(),
            all: Object::new(&self.all()),
            sources: self.sources().iter().map(Object::new).collect(),
            stretches: together.stretches,
            longest: together.longest.iter().map(Object::new).collect(),
            warnings: &together.warnings,
        }
    }

    fn view(&self, form: Form) -> Page {
        let mut sections = vec![self.node(), self.at_once_section(form), self.meetings()];
        sections.extend(self.longest());
        let warnings = self.together.warnings.iter().map(|warning| Block::warning(&warning.message));
        sections.push(Section::new("warnings", "Warnings", "Warnings", warnings.collect()));
        Page {
            title: "CPUs that lose time at once".to_owned(),
            subtitle: self.together.node.clone(),
            sections,
            foot: Vec::new(),
        }
    }
}

impl TogetherReport<'_> {
    fn node(&self) -> Section {
        let length = Value::Time(self.together.length.get()).cell();
        let text = format!("{}, {}, all watched for {length}", printable(&self.together.node), cpus(&self.cpus()));
        Section::new("node", "Node", "The node", vec![Block::facts([("node", text)])])
    }

    fn at_once_section(&self, form: Form) -> Section {
        let title = "CPUs within a detour at once";
        let fields: Vec<_> = AT_ONCE.iter().collect();
        let rows = self.at_once();
        // Omits numbers of CPUs that were never in a detour at once, nor would be by chance.
        let is_telling = |row: &&AtOnceRow| row.at_once.time > 0 || row.at_once.by_chance >= 1.0 || form.all();
        let table = Table::filled(&fields, rows.iter().filter(is_telling)).captioned(title);
        Section::new("at-once", "At once", title, vec![Block::Table(table)]).titled()
    }

    fn meetings(&self) -> Section {
        let title = "Detours that meet one of another CPU";
        let fields: Vec<_> = MEETING.iter().collect();
        let sources = self.sources();
        let mut table = Table::filled(&fields, &sources).captioned(title);
        table.total(&fields, &self.all(), "all");
        let table = table
            .with_most_important(SHOWN, |_| format!("the {SHOWN} of {} sources that come most often", sources.len()));
        let meets = match self.together.within.get() {
            0 => "a detour meets another if both are under way at the same instant".to_owned(),
            within => format!("a detour meets another if less than {} is between them", Value::Time(within).cell()),
        };
        let chance = "by chance: what is expected if each CPU had the same detours, later by any time of its own";
        let blocks = vec![Block::Table(table), Block::Text(format!("{meets}; {chance}"))];
        Section::new("meetings", "Meetings", title, blocks).titled()
    }

    fn longest(&self) -> Option<Section> {
        let Together { longest, stretches, .. } = self.together;
        let most = longest.first()?.stretch.cpus;
        let which = if most == self.together.cpus.len() { "all".to_owned() } else { format!("most, {most},") };
        let title = format!("The longest stretches with time lost on {which} CPUs at once");
        let fields: Vec<_> = STRETCH.iter().collect();
        let mut blocks = vec![Block::Table(Table::filled(&fields, longest).captioned(&title))];
        if longest.len() < *stretches {
            blocks.push(Block::Text(format!("the longest {} of {}", longest.len(), grouped(*stretches as u64))));
        }
        Some(Section::new("longest", "Longest", title, blocks).titled())
    }
}
