//! A recording checked against limits, for a terminal, as `becalm.check/1`, and as files for CI systems: JUnit XML and SARIF.

mod junit;
mod sarif;
mod words;

use becalm_analyze::limits::{Answer, Limit, LimitCheck, bearing_warnings};
use becalm_analyze::summary::Summary;
use becalm_model::node::Warning;
use becalm_units::{Nanos, Share};
use serde::Serialize;

use crate::Value;
use crate::catalogue;
use crate::form::field::{Field, Object, fields};
use crate::form::figure::{self, Ratio, Time};
use crate::form::section::{Block, Grade, Opening, Page, Section};
use crate::form::sheet::Form;
use crate::form::table::Table;
use crate::report::Report;

/// A recording and the results of its limits.
#[derive(Clone, Debug)]
pub struct CheckReport<'a> {
    /// The recording.
    pub summary: &'a Summary,
    /// Each limit on each CPU.
    pub rows: &'a [LimitCheck],
}

const fn is_on_noise(row: &LimitCheck) -> bool {
    matches!(row.limit, Limit::Noise(_))
}

fn ratio(row: &LimitCheck, ratio: Option<f64>) -> Option<Ratio> {
    ratio.filter(|_| is_on_noise(row)).map(Ratio)
}

fields! {
    /// The fields of a row.
    ROW, row: LimitCheck {
        NODE = catalogue::NODE, |row| row.node.clone();
        CPU = catalogue::CPU, |row| row.cpu;
        LIMIT = "limit", "limit", |row| match row.limit {
            Limit::Noise(_) => "max_noise",
            Limit::Detour(_) => "max_detour",
        };
        ANSWER = "answer", "answer", |row| match row.answer {
            Answer::Holds => "holds",
            Answer::Exceeded => "exceeded",
            Answer::NotEnoughData(_) => "not_enough_data",
        };
        MAX_NOISE_RATIO = "max_noise_ratio", "limit", |row| match row.limit {
            Limit::Noise(most) => Some(Ratio(most.ratio())),
            Limit::Detour(_) => None,
        };
        NOISE_RATIO = catalogue::NOISE_RATIO, |row| ratio(row, row.noise_ratio);
        LOW_RATIO = "noise_ratio_low", "low", |row| ratio(row, row.interval.and_then(|found| found.low()));
        HIGH_RATIO = "noise_ratio_high", "high", |row| ratio(row, row.interval.and_then(|found| found.high()));
        MAX_DETOUR_NS = "max_detour_ns", "limit", |row| match row.limit {
            Limit::Detour(most) => Some(most),
            Limit::Noise(_) => None,
        };
        LONGEST_NS = "longest_ns", "longest", |row| match row.limit {
            Limit::Detour(_) => Some(row.longest),
            Limit::Noise(_) => None,
        };
        RAREST_SEEN_NS = "rarest_seen_ns", "may miss", |row| row.rarest_seen_ns.map(Time);
        OBSERVED_NS = catalogue::OBSERVED_NS, |row| row.duration_ns.map(Time);
        CAUSE = "cause", "mainly", |row| row.cause.as_ref().map(|cause| cause.source.clone());
        CAUSE_KIND = "cause_kind", "kind", |row| row.cause.as_ref().map(|cause| cause.kind.name());
        CAUSE_SHARE_RATIO = "cause_share_ratio", "of noise",
            |row| row.cause.as_ref().and_then(|cause| cause.share).map(figure::Share);
        CAUSE_LONGEST_NS = "cause_longest_ns", "longest",
            |row| row.cause.as_ref().and_then(|cause| cause.longest_ns).map(Time);
        TEXT = "text", "text", words::sentence;
    }
}

fields! {
    /// The columns of the table, where both kinds of limits share them.
    shown: LimitCheck {
        ASKED = "asked", "at most", |row| match row.limit {
            Limit::Noise(most) => words::percent(most),
            Limit::Detour(most) => most.to_string(),
        };
        FOUND = "found", "found", |row| match row.limit {
            Limit::Noise(_) => row::NOISE_RATIO.cell(row),
            Limit::Detour(_) => row::LONGEST_NS.cell(row),
        };
        INTERVAL = "interval", "95 % CI", |row| {
            let end = |end: Option<f64>| ratio(row, end);
            row.interval.and_then(|found| figure::interval(end(found.low()), end(found.high())))
        };
        LIMIT = "limit", "limit", |row| match row.limit {
            Limit::Noise(_) => "noise",
            Limit::Detour(_) => "longest",
        };
        ANSWER = "answer", "answer", |row| row::ANSWER.cell(row).replace('_', " ");
        CAUSE = "cause", "mainly",
            |row| row.cause.as_ref().map(|cause| format!("{} {}", cause.kind, cause.source));
    }
}

/// The number of rows with each answer.
#[derive(Clone, Copy, Default, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
struct Counts {
    held: u64,
    exceeded: u64,
    not_enough_data: u64,
}

impl CheckReport<'_> {
    fn counts(&self) -> Counts {
        let mut counts = Counts::default();
        for row in self.rows {
            *match row.answer {
                Answer::Holds => &mut counts.held,
                Answer::Exceeded => &mut counts.exceeded,
                Answer::NotEnoughData(_) => &mut counts.not_enough_data,
            } += 1;
        }
        counts
    }

    /// The warnings that affect the answers, in words.
    fn warnings(&self) -> impl Iterator<Item = String> {
        bearing_warnings(self.summary).map(|(node, warning)| {
            let node = if self.has_nodes() { format!("{node}: ") } else { String::new() };
            format!("{node}{} ({}); {}", warning.message, warning.code, warning.advice)
        })
    }

    /// Whether any limit is exceeded.
    pub fn is_exceeded(&self) -> bool {
        self.rows.iter().any(|row| row.answer == Answer::Exceeded)
    }

    /// Whether the recording has several nodes.
    fn has_nodes(&self) -> bool {
        self.summary.nodes.len() > 1
    }

    /// The CPU of a row, with its node if there are several.
    fn place(&self, row: &LimitCheck) -> String {
        if self.has_nodes() { format!("{}, CPU {}", row.node, row.cpu) } else { format!("CPU {}", row.cpu) }
    }

    /// JUnit XML: a test case for each limit on each CPU, skipped if there is not enough data.
    pub fn junit(&self) -> String {
        junit::document(self)
    }

    /// SARIF 2.1.0: a result for each exceeded limit, and a notification if there is not enough data. `program` is like `becalm 0.1.0`.
    pub fn sarif(&self, program: &str) -> String {
        sarif::document(self, program)
    }
}

#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub(crate) struct CheckDocument {
    path: String,
    max_noise_ratio: Option<f64>,
    max_detour_ns: Option<i64>,
    #[serde(flatten)]
    counts: Counts,
    rows: Vec<Object<LimitCheck>>,
    warnings: Vec<NodeWarning>,
}

/// A warning that bears on the answers.
#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
struct NodeWarning {
    node: String,
    #[serde(flatten)]
    warning: Warning,
}

impl Report for CheckReport<'_> {
    fn schema(&self) -> &'static str {
        "becalm.check/1"
    }

    fn document(&self) -> impl Serialize {
        let noise = self.rows.iter().find_map(|row| if let Limit::Noise(most) = row.limit { Some(most) } else { None });
        let detour =
            self.rows.iter().find_map(|row| if let Limit::Detour(most) = row.limit { Some(most) } else { None });
        CheckDocument {
            path: self.summary.path.display().to_string(),
            max_noise_ratio: noise.map(Share::ratio),
            max_detour_ns: detour.map(Nanos::get),
            counts: self.counts(),
            rows: self.rows.iter().map(Object::new).collect(),
            warnings: bearing_warnings(self.summary)
                .map(|(node, warning)| NodeWarning { node: node.clone(), warning: warning.clone() })
                .collect(),
        }
    }

    fn view(&self, _: Form) -> Page {
        Page {
            title: "Limits of noise".to_owned(),
            subtitle: self.summary.path.display().to_string(),
            sections: vec![self.answers(), self.limits()],
            foot: Vec::new(),
        }
    }
}

impl CheckReport<'_> {
    /// The answer, and a sentence for each limit that does not hold.
    fn answers(&self) -> Section {
        let counts = self.counts();
        let text = words::headline(&counts);
        let tone = match counts {
            Counts { exceeded: 1.., .. } => Grade::Bad,
            Counts { not_enough_data: 1.., .. } => Grade::Fair,
            _ => Grade::Good,
        };
        let mut blocks = vec![
            Block::OnTerminal(vec![Block::Lines(vec![text.clone()])]),
            Block::OnPage(vec![Block::Verdict { tone, text, basis: String::new() }]),
        ];
        // The row of a limit that holds says enough.
        for row in self.rows.iter().filter(|row| row.answer != Answer::Holds) {
            let node = if self.has_nodes() { format!("{}: ", row.node) } else { String::new() };
            let text = format!("{node}{}", words::sentence(row));
            blocks.push(match row.answer {
                Answer::Exceeded => Block::warning(text),
                _ => Block::Item(text),
            });
        }
        blocks.extend(self.warnings().map(|text| Block::Remark("warning".to_owned(), text)));
        Section::new("answer", "Answer", "Do the limits hold?", blocks)
    }

    /// Each limit on each CPU.
    fn limits(&self) -> Section {
        let mut fields: Vec<&Field<LimitCheck>> = vec![&row::CPU, &shown::LIMIT, &shown::ASKED, &shown::FOUND];
        if self.has_nodes() {
            fields.insert(0, &row::NODE);
        }
        if self.rows.iter().any(is_on_noise) {
            fields.push(&shown::INTERVAL);
        }
        fields.extend([&shown::ANSWER, &shown::CAUSE]);
        let mut table = Table::filled(&fields, self.rows).captioned("Each limit on each CPU");
        table.keep_verdicts(fields.len() - 2);
        let mut blocks = vec![Block::Table(table)];
        blocks.extend(Block::texts(words::missed(self)));
        Section::new("limits", "Limits", "The limits", blocks).opened(Opening::Gap)
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}
