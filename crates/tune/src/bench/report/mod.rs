//! Repetitions of a program on quiet CPUs, for a terminal, as `becalm.bench/1`, and as JSON for hyperfine.

mod words;

use becalm_report::catalogue;
use becalm_report::form::field::{Field, Object, fields};
use becalm_report::form::figure::{Fine, Number, Ratio, Time};
use becalm_report::form::section::{Block, Grade, Page, Section};
use becalm_report::form::table::Table;
use becalm_report::{Form, Report};
use becalm_units::CpuList;
use serde::Serialize;

use super::repetitions::{Judged, LostTo, Repetition, Spread, SpreadVerdict};
use super::slow::{self, SlowRuns};

/// How what was lost was seen.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum SeenBy {
    /// By the kernel's trace: every interruption, by its source.
    Trace,
    /// By the kernel's counters alone: how long the program waited, and what was counted.
    Counters,
}

/// The program and the result of its repetitions.
#[derive(Clone, Debug)]
pub struct BenchReport<'a> {
    /// The program and its arguments.
    pub command: &'a [String],
    /// Its CPUs.
    pub cpus: &'a CpuList,
    /// Whether these CPUs were made quiet for it.
    pub is_tuned: bool,
    /// How what was lost was seen.
    pub seen_by: SeenBy,
    /// Limitations, each a sentence without its full stop.
    pub not_done: &'a [String],
    /// The number of warmup repetitions.
    pub warmup: u64,
    /// The repetitions that count.
    pub runs: &'a [Repetition],
    /// Their evaluation.
    pub judged: &'a Judged,
}

/// A repetition with its number, and whether noise disturbed it.
struct RunRow {
    number: u64,
    touched: bool,
    run: Repetition,
}

impl RunRow {
    fn cause(&self) -> Option<&LostTo> {
        self.run.sources.first()
    }

    fn lost_ratio(&self) -> Option<Ratio> {
        let ratio = |lost: i64| lost as f64 / self.run.time_ns as f64;
        self.run.lost_ns.filter(|_| self.run.time_ns > 0).map(|lost| Ratio(ratio(lost)))
    }
}

fields! {
    /// The fields of a repetition.
    RUN, run: RunRow {
        NUMBER = "run", "run", |row| Number(row.number);
        TIME_NS = "time_ns", "time", |row| Fine(row.run.time_ns);
        USER_NS = "user_ns", "user", |row| Time(row.run.user_ns);
        SYSTEM_NS = "system_ns", "system", |row| Time(row.run.system_ns);
        LOST_NS = "lost_ns", "lost", |row| row.run.lost_ns.map(Time);
        LOST_RATIO = "lost_ratio", "of time", RunRow::lost_ratio;
        INTERRUPTIONS = "interruptions", "times", |row| row.run.interruptions;
        LOST_EVENTS = catalogue::LOST_EVENTS, |row| row.run.lost_events;
        TOUCHED = "touched", "touched", |row| row.touched;
        EXIT_CODE = "exit_code", "exit code", |row| row.run.exit_code;
        CAUSE = "cause", "mainly", |row| row.cause().map(|cause| cause.source.clone());
        CAUSE_KIND = "cause_kind", "kind",
            |row| row.cause().and_then(|cause| cause.kind).map(|kind| kind.name());
        CAUSE_NS = "cause_ns", "took", |row| row.cause().map(|cause| Time(cause.ns));
    }
}

fields! {
    /// The fields of a source within a repetition.
    LOST_TO, lost_to: LostTo {
        SOURCE = catalogue::SOURCE, |row| row.source.clone();
        KIND = catalogue::KIND, |row| row.kind.map(|kind| kind.name());
        TOTAL_NS = catalogue::TOTAL_NS, |row| Time(row.ns);
    }
}

/// Statistics of repetition times, with the name of their subset.
struct SpreadRow(&'static str, Spread);

fields! {
    /// The fields of these statistics.
    SPREAD, spread: SpreadRow {
        WHICH = "of", "of", |row| row.0;
        RUNS = "runs", "runs", |row| row.1.runs;
        MEAN_NS = catalogue::MEAN_NS, |row| Fine::rounded(row.1.mean_ns);
        STDDEV_NS = catalogue::STDDEV_NS, |row| row.1.stddev_ns.and_then(Time::rounded);
        MEDIAN_NS = catalogue::MEDIAN_NS, |row| Fine(row.1.median_ns);
        MIN_NS = catalogue::MIN_NS, |row| Fine(row.1.min_ns);
        MAX_NS = catalogue::MAX_NS, |row| Fine(row.1.max_ns);
    }
}

impl BenchReport<'_> {
    fn rows(&self) -> Vec<RunRow> {
        let rows = (1..).zip(self.runs.iter().zip(&self.judged.touched));
        rows.map(|(number, (run, touched))| RunRow { number, touched: *touched, run: run.clone() }).collect()
    }

    fn spreads(&self) -> Vec<SpreadRow> {
        let Judged { all, untouched, without_lost, .. } = self.judged;
        let mut spreads = vec![SpreadRow("all", *all)];
        let is_other = |spread: &Spread| spread.runs < all.runs;
        spreads.extend(untouched.filter(is_other).map(|spread| SpreadRow("untouched", spread)));
        spreads.extend(without_lost.map(|spread| SpreadRow("all, without what was lost", spread)));
        spreads
    }

    /// The JSON that hyperfine exports: one result with all repetitions. Times are in seconds.
    pub fn hyperfine(&self) -> String {
        let seconds = |ns: f64| ns / 1e9;
        let all = &self.judged.all;
        let mean = |time: fn(&Repetition) -> i64| {
            seconds(self.runs.iter().map(|run| time(run) as f64).sum::<f64>() / self.runs.len().max(1) as f64)
        };
        let document = serde_json::json!({ "results": [{
            "command": self.command.join(" "),
            "mean": seconds(all.mean_ns),
            "stddev": all.stddev_ns.map(seconds),
            "median": seconds(all.median_ns as f64),
            "user": mean(|run| run.user_ns),
            "system": mean(|run| run.system_ns),
            "min": seconds(all.min_ns as f64),
            "max": seconds(all.max_ns as f64),
            "times": self.runs.iter().map(|run| seconds(run.time_ns as f64)).collect::<Vec<_>>(),
            "exit_codes": self.runs.iter().map(|run| run.exit_code).collect::<Vec<_>>(),
        }] });
        let text = serde_json::to_string_pretty(&document).expect("the keys are texts and numbers are finite or null");
        text + "\n"
    }
}

#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub(crate) struct BenchDocument<'a> {
    command: &'a [String],
    cpus: String,
    tuned: bool,
    seen_by: SeenBy,
    not_done: &'a [String],
    warmup: u64,
    verdict: &'static str,
    explained_ratio: Option<f64>,
    text: String,
    usual_lost_ns: Option<i64>,
    times: Vec<Object<SpreadRow>>,
    explained: Option<&'a SlowRuns>,
    runs: Vec<RunDocument>,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
struct RunDocument {
    #[serde(flatten)]
    run: Object<RunRow>,
    sources: Vec<Object<LostTo>>,
}

impl Report for BenchReport<'_> {
    fn schema(&self) -> &'static str {
        "becalm.bench/1"
    }

    fn document(&self) -> impl Serialize {
        let run = |row: &RunRow| RunDocument {
            run: Object::new(row),
            sources: row.run.sources.iter().map(Object::new).collect(),
        };
        BenchDocument {
            command: self.command,
            cpus: self.cpus.to_string(),
            tuned: self.is_tuned,
            seen_by: self.seen_by,
            not_done: self.not_done,
            warmup: self.warmup,
            verdict: words::verdict_name(self.judged.verdict),
            explained_ratio: match self.judged.verdict {
                SpreadVerdict::Machines(share) | SpreadVerdict::Programs(share) => Some(share),
                _ => None,
            },
            text: words::verdict(self),
            usual_lost_ns: self.judged.usual_lost_ns,
            times: self.spreads().iter().map(Object::new).collect(),
            explained: self.judged.explained.as_ref(),
            runs: self.rows().iter().map(run).collect(),
        }
    }

    fn view(&self, form: Form) -> Page {
        let mut sections = vec![self.summary(), self.repetitions(), self.times()];
        sections.extend(self.judged.explained.as_ref().map(|found| slow::section(found, form)));
        Page {
            title: "A program on isolated CPUs".to_owned(),
            subtitle: self.command.join(" "),
            sections,
            foot: Vec::new(),
        }
    }
}

impl BenchReport<'_> {
    fn summary(&self) -> Section {
        let tone = match self.judged.verdict {
            SpreadVerdict::Steady(_) => Grade::Good,
            SpreadVerdict::Machines(_) => Grade::Bad,
            _ => Grade::Plain,
        };
        let verdict = Block::Verdict { tone, text: words::verdict(self), basis: String::new() };
        let mut blocks = vec![verdict, Block::Text(words::place(self))];
        blocks.extend(self.not_done.iter().map(Block::warning));
        Section::new("summary", "Summary", "How long it takes", blocks)
    }

    fn repetitions(&self) -> Section {
        let rows = self.rows();
        let mut fields: Vec<&Field<RunRow>> =
            vec![&run::NUMBER, &run::TIME_NS, &run::LOST_NS, &run::LOST_RATIO, &run::INTERRUPTIONS, &run::TOUCHED];
        if rows.iter().any(|row| row.run.exit_code != 0) {
            fields.push(&run::EXIT_CODE);
        }
        fields.extend([&run::CAUSE_KIND, &run::CAUSE, &run::CAUSE_NS]);
        let table = Table::filled(&fields, &rows).captioned("Repetitions");
        let touched =
            "touched: lost unusually much, more than three standard deviations and 0.5 % of the time above the median"
                .to_owned();
        Section::new("repetitions", "Repetitions", "Repetitions", vec![Block::Table(table), Block::Text(touched)])
            .titled()
    }

    fn times(&self) -> Section {
        let fields: Vec<&Field<SpreadRow>> = SPREAD.iter().collect();
        let mut table = Table::filled(&fields, &self.spreads()).captioned("Times");
        table.keep_whole(0);
        Section::new("times", "Times", "Times", vec![Block::Table(table)]).titled()
    }
}
