//! The report of observed threads.

use becalm_model::observed::Owner;
use becalm_report::form::field::{Field, fields};
use becalm_report::form::figure::Share;
use becalm_report::form::section::{Block, Grade, Page, Section};
use becalm_report::form::table::Table;
use becalm_report::form::value::{Value, grouped};
use becalm_report::html::Chart;
use becalm_report::{Form, Report};
use becalm_units::{Nanos, counted, printable};
use serde::Serialize;

use crate::document::{CostDoc, ObservedDoc, QuotaDoc, TakerDoc, ThreadDoc};
use crate::totals::{Totals, is_interrupt, is_own, is_sibling, ratio};
use crate::words;

/// The rows of a table in the default report.
const ROWS: usize = 8;

/// The report of one node.
#[derive(Clone, Copy, Debug)]
pub struct ObservedReport<'a> {
    /// The document.
    pub doc: &'a ObservedDoc,
    /// Whether waits are shown by control groups.
    pub by_group: bool,
    /// The lives of the threads over time, for a page.
    pub lanes: Option<&'a Chart>,
}

/// A part of the threads' time.
struct TimeRow {
    name: &'static str,
    ns: i64,
    whole: i64,
    /// The largest uses or takers.
    detail: String,
}

/// A taker, and the time that is divided among all.
struct TakerRow {
    taker: TakerDoc,
    waited: i64,
}

/// A thread.
struct ThreadRow {
    thread: ThreadDoc,
}

fields! {
    time_row: TimeRow {
        NAME = "part", "", |row| row.name;
        TIME = "ns", "time", |row| Nanos::new(row.ns);
        SHARE = "share", "share", |row| Share(ratio(row.ns, row.whole));
        DETAIL = "detail", "most of it", |row| row.detail.clone();
    }
}

fields! {
    taker_row: TakerRow {
        SOURCE = "source", "who had the CPU", |row| taker_name(&row.taker);
        OWNER = "owner", "whose", |row| words::owner(row.taker.owner);
        TIME = "ns", "time", |row| row.taker.ns;
        SHARE = "share", "of waits", |row| Share(ratio(row.taker.ns.get(), row.waited));
        COUNT = "count", "times", |row| row.taker.count;
        LONGEST = "longest_ns", "longest", |row| row.taker.longest_ns;
        GROUP = "cgroup", "control group", |row| words::group_name(&row.taker.cgroup);
    }
}

fields! {
    thread_row: ThreadRow {
        NAME = "name", "thread", |row| thread_name(&row.thread);
        WALL = "wall_ns", "observed", |row| row.thread.wall_ns;
        RAN = "ran", "ran", |row| Share(ratio(row.thread.ran_ns.get(), row.thread.wall_ns.get()));
        WAITED = "waited", "waited", |row| Share(ratio(row.thread.waited_ns.get(), row.thread.wall_ns.get()));
        ASLEEP = "asleep", "asleep", |row| Share(ratio(row.thread.asleep_ns.get(), row.thread.wall_ns.get()));
        WAIT = "waited_ns", "time waited", |row| row.thread.waited_ns;
        SWITCHES = "switches", "switches", |row| row.thread.switches;
        TAKER = "taker", "most to", |row| row.thread.takers.first().map(taker_name);
    }
}

/// The columns of takers in the default report, without that of control groups.
const TAKER_COLUMNS: [&Field<TakerRow>; 6] = [
    &taker_row::SOURCE,
    &taker_row::OWNER,
    &taker_row::TIME,
    &taker_row::SHARE,
    &taker_row::COUNT,
    &taker_row::LONGEST,
];

fn taker_name(taker: &TakerDoc) -> String {
    words::taker_name(taker.kind, &taker.source)
}

/// The name of a thread, with its rank in a job.
pub fn thread_name(thread: &ThreadDoc) -> String {
    match thread.rank {
        Some(rank) => format!("rank {rank} ({}, {})", printable(&thread.name), thread.tid),
        None => format!("{} ({})", printable(&thread.name), thread.tid),
    }
}

/// The name of the observed program, or of its first thread.
pub fn program(doc: &ObservedDoc, totals: &Totals<'_>) -> String {
    let choice = &doc.choice;
    let names: Vec<&str> = totals.shown.iter().map(|thread| thread.name.as_str()).collect();
    let command = choice.command.first().map(|command| command.rsplit('/').next().unwrap_or(command));
    // A command may only have started the program, such as taskset.
    let command = command.filter(|command| names.iter().any(|name| command.starts_with(name) && !name.is_empty()));
    let name = command.or(choice.names.first().map(String::as_str)).or(names.first().copied());
    printable(name.unwrap_or("no thread")).into_owned()
}

impl ObservedReport<'_> {
    /// The program or threads observed, in a few words.
    fn subject(&self, totals: &Totals<'_>) -> String {
        format!("{} ({})", program(self.doc, totals), counted(self.doc.threads.len() as u64, "thread", "threads"))
    }

    fn verdict(&self, totals: &Totals<'_>) -> (Grade, String) {
        let lost = totals.lost();
        let share = ratio(lost, totals.wall);
        let text = |ns: i64| Value::Time(ns).cell();
        if totals.wall == 0 {
            return (Grade::Plain, "no chosen thread was alive during the observation".to_owned());
        }
        let subject = self.subject(totals);
        let share_text = Value::Ratio(share).cell();
        let top = self.doc.takers.iter().find(|taker| !is_sibling(taker.owner));
        let own = if totals.siblings > totals.waited / 2 && totals.siblings > 0 {
            format!("; its threads waited {} for each other's CPU", text(totals.siblings))
        } else {
            String::new()
        };
        if share < 0.01 {
            let rest = if totals.siblings > totals.wall / 100 { own } else { "; look in the program".to_owned() };
            return (Grade::Good, format!("{subject}: others took {} of its time, {share_text}{rest}", text(lost)));
        }
        let to = top.filter(|taker| taker.ns.get() * 5 >= lost).map_or_else(String::new, |taker| {
            let part = Value::Ratio(ratio(taker.ns.get(), lost)).cell();
            format!("; {} had {} of that ({part})", taker_name(taker), text(taker.ns.get()))
        });
        let tone = if share < 0.05 { Grade::Fair } else { Grade::Bad };
        (tone, format!("{subject} could have run {} longer, {share_text} of its time{to}{own}", text(lost)))
    }

    fn parts(&self, totals: &Totals<'_>) -> Table {
        let taker = || {
            let most: Vec<String> = self
                .doc
                .takers
                .iter()
                .filter(|taker| taker.owner != Owner::Quota)
                .take(2)
                .map(|taker| format!("{} {}", taker_name(taker), Value::Time(taker.ns.get()).cell()))
                .collect();
            most.join(", ")
        };
        let detail = |name: &str| match name {
            "ran, interrupts on top" => totals.largest(|thread| &thread.ran, is_interrupt),
            "ran, kernel work of its own" => totals.largest(|thread| &thread.ran, is_own),
            "queued" => taker(),
            "asleep" => totals.largest(|thread| &thread.asleep, |_| true),
            _ => String::new(),
        };
        let rows: Vec<TimeRow> = totals
            .parts()
            .into_iter()
            .filter(|(name, ns)| *ns > 0 || *name == "ran")
            .map(|(name, ns)| TimeRow { name, ns, whole: totals.wall, detail: detail(name) })
            .collect();
        let fields = [&time_row::NAME, &time_row::TIME, &time_row::SHARE, &time_row::DETAIL];
        let mut table = Table::filled(&fields, &rows).captioned("The time by parts");
        table.keep_whole(0);
        table.keep_whole(3);
        table.may_leave_out(3);
        table.sorts = false;
        table
    }

    fn takers(&self, all: bool) -> Option<Table> {
        let waited = self.doc.threads.iter().map(|thread| thread.queued_ns.get() + thread.quota_ns.get()).sum();
        let rows: Vec<TakerRow> =
            self.doc.takers.iter().map(|taker| TakerRow { taker: taker.clone(), waited }).collect();
        if rows.is_empty() {
            return None;
        }
        let mut columns = TAKER_COLUMNS.to_vec();
        if rows.iter().any(|row| !row.taker.cgroup.is_empty()) {
            columns.push(&taker_row::GROUP);
        }
        let mut table = Table::filled(&columns, &rows).captioned("Takers of the CPU during waits");
        table.keep_whole(1);
        if columns.len() > TAKER_COLUMNS.len() {
            table.may_leave_out(TAKER_COLUMNS.len());
        }
        let rows = if all { usize::MAX } else { ROWS };
        Some(table.with_most_important(rows, |more| format!("{more} more")))
    }

    fn threads(&self, totals: &Totals<'_>) -> Option<Table> {
        if totals.shown.len() < 2 {
            return None;
        }
        let rows: Vec<ThreadRow> = totals.shown.iter().map(|thread| ThreadRow { thread: (*thread).clone() }).collect();
        let fields = [
            &thread_row::NAME,
            &thread_row::RAN,
            &thread_row::WAITED,
            &thread_row::ASLEEP,
            &thread_row::WAIT,
            &thread_row::SWITCHES,
            &thread_row::TAKER,
        ];
        let mut table = Table::filled(&fields, &rows).captioned("Threads");
        table.may_leave_out(5);
        Some(table.with_most_important(ROWS, |more| format!("{more} more")))
    }

    fn groups(&self) -> Option<Table> {
        if !self.by_group || self.doc.groups.is_empty() {
            return None;
        }
        let names = |path: &str| if path.is_empty() { "/".to_owned() } else { words::group_name(path) };
        let mut culprits: Vec<&str> = Vec::new();
        for pair in &self.doc.groups {
            if !culprits.contains(&pair.culprit.as_str()) {
                culprits.push(&pair.culprit);
            }
        }
        let mut victims: Vec<&str> = Vec::new();
        for pair in &self.doc.groups {
            if !victims.contains(&pair.victim.as_str()) {
                victims.push(&pair.victim);
            }
        }
        let titles = culprits.iter().map(|culprit| names(culprit)).collect();
        let mut table = Table::matrix(&["waited \\ had the CPU"], titles).captioned("Waits by control group");
        for victim in victims {
            let cell = |culprit: &&str| {
                let pair = self.doc.groups.iter().find(|pair| pair.victim == victim && pair.culprit == **culprit);
                pair.map_or(Value::Missing, |pair| Value::Time(pair.ns.get()))
            };
            table.values(&[names(victim)], culprits.iter().map(cell));
        }
        Some(table)
    }

    /// How far the figures can be trusted.
    fn trust(&self) -> Vec<String> {
        let doc = self.doc;
        let imbalance: i64 = doc.threads.iter().map(|thread| thread.imbalance_ns.get()).sum();
        let exact = match imbalance {
            0 => "accounting is exact".to_owned(),
            off => format!("accounting is off by {}", Value::Time(off).cell()),
        };
        let lost = if doc.lost_events == 0 {
            "none dropped".to_owned()
        } else {
            format!("{} dropped", grouped(doc.lost_events))
        };
        if doc.tracing.is_none() {
            let text = "from the kernel's own accounts (/proc/PID/schedstat), which do not name who had the CPU";
            return vec![text.to_owned()];
        }
        let mut text = vec![format!("{}; {} kernel events, {lost}", exact, grouped(doc.events))];
        let checked = &doc.checked;
        if checked.threads > 0 {
            let off = |ours: Nanos, kernels: Nanos| Value::Time((ours - kernels).get().abs()).cell();
            text.push(format!(
                "/proc/PID/schedstat of {}: {} switches, counted here {}; run time differs by {}, waits by {}",
                counted(checked.threads, "thread", "threads"),
                grouped(checked.kernel_switches),
                grouped(checked.switches),
                off(checked.ran_ns, checked.kernel_ran_ns),
                off(checked.queued_ns, checked.kernel_queued_ns),
            ));
        }
        if doc.repaired_switches + doc.unknown_switches > 0 {
            text.push(format!(
                "the trace lacks {} switches; the instants of {} were found",
                grouped(doc.repaired_switches + doc.unknown_switches),
                grouped(doc.repaired_switches)
            ));
        }
        // A trace that another program recorded cost becalm nothing.
        if doc.cost != CostDoc::default() {
            text.push(format!(
                "becalm used {} of CPU time meanwhile, and {} MB of trace",
                Value::Time(doc.cost.cpu_ns.get()).cell(),
                doc.cost.trace_bytes / 1_000_000
            ));
        }
        text
    }

    fn quotas(&self) -> Vec<String> {
        let told = |quota: &QuotaDoc| {
            format!(
                "control group {} used up its CPU time in {} of {} periods; the kernel stopped it for {}, and observed \
                 threads waited {} for that",
                words::group_name(&quota.cgroup),
                quota.throttled,
                quota.periods,
                Value::Time(quota.throttled_ns.get()).cell(),
                Value::Time(quota.waited_ns.get()).cell()
            )
        };
        self.doc.quotas.iter().filter(|quota| quota.throttled > 0).map(told).collect()
    }

    /// What to do about the first taker.
    fn advice(&self, totals: &Totals<'_>) -> Option<String> {
        let taker = self.doc.takers.first()?;
        if ratio(taker.ns.get(), totals.wall) < 0.005 {
            return None;
        }
        words::advice(taker.owner, taker.kind, &taker.source, taker.process)
    }
}

impl Report for ObservedReport<'_> {
    fn schema(&self) -> &'static str {
        crate::document::SCHEMA
    }

    fn document(&self) -> impl Serialize {
        self.doc
    }

    fn named_document(&self) -> impl Serialize {
        self.doc
    }

    fn answer(&self) -> Option<String> {
        Some(self.verdict(&Totals::new(self.doc, false)).1)
    }

    fn view(&self, form: Form) -> Page {
        let all = form.all();
        // The answer does not depend on the form.
        let totals = Totals::new(self.doc, false);
        let (tone, text) = self.verdict(&totals);
        let basis = format!(
            "observed for {} on {}",
            Value::Time(self.doc.duration_ns.get()).cell(),
            becalm_report::form::known::machine(&self.doc.machine)
        );
        let verdict = Section::new("verdict", "Verdict", "Verdict", vec![Block::Verdict { tone, text, basis }]);
        let mut time = vec![Block::Table(self.parts(&totals))];
        if !totals.helpers.is_empty() {
            let helpers = counted(totals.helpers.len() as u64, "thread is", "threads are");
            time.push(Block::Note(format!(
                "{helpers} left out: asleep for more than 99 % of the time; --all shows all"
            )));
        }
        time.extend(self.quotas().into_iter().map(Block::Text));
        let mut sections = vec![verdict, Section::named("time", "Time", time)];
        if let Some(lanes) = self.lanes {
            let blocks = vec![Block::OnPage(vec![Block::Charts(vec![lanes.clone()])])];
            sections.push(Section::new("lives", "Lives", "The threads over time", blocks));
        }
        let tables = [
            ("takers", "Waits", self.takers(all)),
            ("threads", "Threads", self.threads(&Totals::new(self.doc, all))),
            ("groups", "Control groups", self.groups()),
        ];
        for (id, title, table) in tables {
            sections.extend(table.map(|table| Section::named(id, title, vec![Block::Table(table)])));
        }
        if let Some(advice) = self.advice(&totals) {
            sections.push(Section::named("fix", "What to do", vec![Block::Text(advice)]));
        }
        let mut trust: Vec<Block> = self.trust().into_iter().map(Block::Text).collect();
        trust.extend(self.doc.warnings.iter().map(Block::from));
        sections.push(Section::named("trust", "Trust", trust));
        Page {
            title: format!("{}: where the time went", self.doc.node),
            subtitle: self.subject(&totals),
            sections,
            foot: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use becalm_model::Kind;
    use becalm_model::node::Ended;
    use becalm_report::text;

    use super::*;
    use becalm_model::node::{ClockDoc, ClockPair};

    use crate::document::SCHEMA;

    /// A busy thread that loses 100 of 1,000 ms to a program, and a helper that sleeps.
    fn doc() -> ObservedDoc {
        let ms = Nanos::from_millis;
        let taker = TakerDoc {
            kind: Kind::Task,
            source: "grem1".to_owned(),
            owner: Owner::Others,
            ns: ms(100),
            count: 20,
            longest_ns: ms(5),
            process: Some(77),
            command: String::new(),
            cgroup: String::new(),
        };
        let busy = ThreadDoc {
            tid: 10,
            name: "solver".to_owned(),
            wall_ns: ms(1_000),
            ran_ns: ms(900),
            waited_ns: ms(100),
            queued_ns: ms(100),
            takers: vec![taker.clone()],
            ..ThreadDoc::default()
        };
        let helper = ThreadDoc {
            tid: 11,
            name: "helper".to_owned(),
            wall_ns: ms(1_000),
            asleep_ns: ms(1_000),
            ..ThreadDoc::default()
        };
        ObservedDoc {
            schema: SCHEMA.to_owned(),
            node: "node1".to_owned(),
            ended: Some(Ended::Duration),
            duration_ns: ms(1_000),
            threads: vec![busy, helper],
            takers: vec![taker],
            ..ObservedDoc::default()
        }
    }

    #[test]
    fn the_answer_is_the_same_with_all_threads() {
        let doc = doc();
        let report = ObservedReport { doc: &doc, by_group: false, lanes: None };
        let shown = |all| text(&report, Form::default().with_all(all));
        let answer =
            "solver (2 threads) could have run 100ms longer, 10.0% of its time; grem1 had 100ms of that (100%)";
        assert!(shown(false).contains(answer) && shown(true).contains(answer), "{}", shown(true));
        assert!(shown(true).contains("helper (11)") && !shown(false).contains("helper (11)"), "{}", shown(false));
        assert!(shown(false).contains("taskset -acp CPUS 77"), "{}", shown(false));
    }

    #[test]
    fn a_document_whose_parts_do_not_add_up_is_refused() {
        use becalm_model::Document;
        assert_eq!(doc().check(), Ok(()));
        let mut wrong = doc();
        wrong.threads[0].ran_ns += Nanos::new(1);
        assert!(wrong.check().unwrap_err().contains("add up to 1000000001 ns"));
        let pair = |at, width| ClockPair {
            at_ns: Nanos::new(at),
            monotonic_ns: 1,
            realtime_ns: 1,
            boottime_ns: 1,
            width_ns: Nanos::new(width),
        };
        for pairs in [
            [pair(5, 1), pair(4, 1)],
            [pair(i64::MIN, 1), pair(0, 1)],
            [pair(0, -1), pair(1, 1)],
            [pair(0, 1), pair(1, i64::MAX)],
        ] {
            let clock = ClockDoc { pairs: pairs.to_vec(), ..ClockDoc::default() };
            let wrong = ObservedDoc { clock, ..doc() };
            assert!(wrong.check().unwrap_err().contains("its clocks were read at"));
        }
        let clock = ClockDoc { pairs: vec![pair(-5, 0), pair(4, 1)], ..ClockDoc::default() };
        assert_eq!(ObservedDoc { clock, ..doc() }.check(), Ok(()));
        let mut wrong = doc();
        wrong.takers[0].ns = Nanos::new(-1);
        assert!(wrong.check().unwrap_err().contains("negative"));
        wrong.takers[0].ns = Nanos::MAX;
        assert!(wrong.check().unwrap_err().contains("longer than any observation"));
    }
}
