//! The comparison in sentences.

use std::path::Path;

use becalm_analyze::compare::{Basis, ComparedFigure, ComparedRun, Comparison, FLOOR, Limit, Metric, Side, Verdict};
use becalm_model::Kind;
use becalm_units::{counted, plural};

use super::LimitCheck;
use super::doubt::reason;
use super::figures::{change, figure, interval, ratio, title};
use crate::form::figure::Figure;
use crate::form::known::system;
use crate::form::value::{grouped, three_digits, time};

/// The number of sources in the headline.
pub const NAMED: usize = 3;

/// The figures of the headline next to the share of time lost.
const FIGURES: [(Metric, &str); 5] = [
    (Metric::Rate, "the rate"),
    (Metric::Mean, "the mean"),
    (Metric::P99, "the 99th percentile"),
    (Metric::P999, "the 99.9th percentile"),
    (Metric::StretchMax, "the longest interruption"),
];

/// The number of nodes of a recording that are named; the others are counted.
const NODES_NAMED: usize = 8;

/// The answer in sentences: which figures changed significantly, which did not, and which sources made the difference.
pub fn headline(comparison: &Comparison) -> String {
    let Some(noise) = comparison.total(Metric::NoiseRatio) else { return "There is nothing to compare.".to_owned() };
    let mut text = format!("{}.", [vec![time_lost(noise)], others(comparison, noise)].concat().join("; "));
    let sources: Vec<String> = changed(comparison).take(NAMED).map(|(_, name, how)| format!("{name} {how}")).collect();
    if !sources.is_empty() {
        text += &format!(" Sources: {}.", sources.join(", "));
    }
    if comparison.basis == Basis::WithinRuns && !noise.verdict.is_difference() {
        text += " One recording per side shows only large changes: record three before and three after the change, with becalm compare --record 3.";
    }
    text
}

/// Whether the share of time lost changed.
fn time_lost(noise: &ComparedFigure) -> String {
    let [a, b] = [noise.a, noise.b].map(|number| figure(noise, number).value().cell());
    let interval = interval(noise).map_or_else(String::new, |interval| format!(", 95 % CI of the change {interval}"));
    match (noise.verdict, noise.doubt) {
        (Verdict::Better | Verdict::Lower, _) => format!("B loses less time than A ({b} instead of {a}{interval})"),
        (Verdict::Worse | Verdict::Higher, _) => format!("B loses more time than A ({b} instead of {a}{interval})"),
        (Verdict::NoDifferenceShown, _) => {
            format!("The share of time lost did not change significantly ({a} and {b}{interval})")
        }
        (Verdict::NotEnoughData, doubt) => {
            let why = doubt.map_or_else(String::new, |doubt| format!(": {}", reason(doubt)));
            format!("There is not enough data to compare the share of time lost ({a} and {b}){why}")
        }
    }
}

/// Which other figures changed, in clauses.
fn others(comparison: &Comparison, noise: &ComparedFigure) -> Vec<String> {
    let names = |wanted: [Verdict; 2]| {
        let all = FIGURES.iter().filter_map(|(metric, name)| Some((comparison.total(*metric)?.verdict, *name)));
        all.filter(|(verdict, _)| wanted.contains(verdict)).map(|(_, name)| name).collect::<Vec<_>>()
    };
    let changed = |wanted: [Verdict; 2], how: &str| {
        let names = names(wanted);
        let are = plural(names.len() as u64, "is", "are");
        (!names.is_empty()).then(|| format!("{} {are} {how}", listed(&names, "and")))
    };
    let same = names([Verdict::NoDifferenceShown; 2]);
    let same = (!same.is_empty()).then(|| match noise.verdict {
        Verdict::NoDifferenceShown => format!("nor did {}", listed(&same, "or")),
        _ => format!("{} did not change significantly", listed(&same, "and")),
    });
    let lower = changed([Verdict::Better, Verdict::Lower], "lower");
    let higher = changed([Verdict::Worse, Verdict::Higher], "higher");
    // "Nor did" continues the clause before it.
    let order = if noise.verdict.is_difference() { [lower, higher, same] } else { [same, lower, higher] };
    order.into_iter().flatten().collect()
}

fn listed(names: &[&str], word: &str) -> String {
    match names {
        [all @ .., last] if !all.is_empty() => format!("{} {word} {last}", all.join(", ")),
        names => names.join(""),
    }
}

/// The sources whose share of time changed significantly, with their kinds, and how.
pub fn changed(comparison: &Comparison) -> impl Iterator<Item = (Kind, String, String)> {
    let rows = comparison.rows.iter().filter(|row| row.metric == Metric::TimeRatio);
    let shown = rows.filter(|row| row.verdict.is_difference());
    shown.filter_map(|row| {
        let (kind, name) = row.source.as_ref()?;
        let how = match (row.a, row.b) {
            (_, Some(0.0)) => "gone".to_owned(),
            (Some(0.0), _) => "new".to_owned(),
            _ => change(ratio(row)).value().cell(),
        };
        Some((*kind, shown_source(*kind, name), how))
    })
}

/// The name of a source in a sentence or a narrow column: with its kind if the name alone is unclear (`unseen long`).
pub(crate) fn shown_source(kind: Kind, source: &str) -> String {
    if kind.is_rest() { format!("{kind} {source}") } else { source.to_owned() }
}

/// How to read the columns.
pub(crate) fn legend() -> String {
    format!("{}; 95 % CI: of each row alone", significant())
}

/// How to read the verdicts.
pub fn significant() -> String {
    format!("higher, lower: a significant change of {} % or more (5 % level, Holm)", 100.0 * FLOOR)
}

/// The result of a limit, in a sentence.
pub fn check_text(comparison: &Comparison, check: &LimitCheck) -> String {
    let row = comparison.total(check.metric);
    let name = row.map_or_else(|| check.metric.name().to_owned(), title);
    limit_text(&name, row, check.share, check.outcome)
}

/// The result of a limit on a figure with this name, in a sentence.
pub fn limit_text(name: &str, row: Option<&ComparedFigure>, share: f64, outcome: Limit) -> String {
    let share = three_digits(share * 100.0);
    match outcome {
        Limit::Exceeded => match row.and_then(|row| row.effect).and_then(|effect| effect.ratio_low) {
            Some(low) => format!(
                "{name}: B is worse than A by more than {share}%: by at least {}%, with 95 % confidence",
                three_digits((low - 1.0) * 100.0)
            ),
            None => format!("{name}: B is worse than A by more than {share}%: A has none"),
        },
        Limit::NotShown => format!("{name}: B is not significantly worse than A by more than {share}%"),
        Limit::Unknown => {
            format!("{name}: there is not enough data to test whether B is worse than A by more than {share}%")
        }
    }
}

/// The recordings of each side. What all of a side have in common is there once.
pub(crate) fn runs(comparison: &Comparison) -> Vec<(String, String)> {
    let of_side = |name: &str, side: &Side| (name.to_owned(), recordings(&side.runs));
    vec![of_side("A", &comparison.a), of_side("B", &comparison.b)]
}

fn recordings(runs: &[ComparedRun]) -> String {
    let each = |part: &dyn Fn(&ComparedRun) -> Option<String>| {
        let mut texts: Vec<String> = runs.iter().filter_map(part).collect();
        if texts.iter().all(|text| *text == texts[0]) {
            texts.truncate(1);
        }
        (!texts.is_empty()).then(|| texts.join(" / "))
    };
    let detours = runs.iter().map(|run| run.detours).max().unwrap_or(0);
    let parts = [
        each(&|run| Some(nodes(run))),
        each(&|run| Some(format!("CPU {} over {}", run.cpus(), time(run.length_ns)))),
        each(&|run| Some(grouped(run.detours)))
            .map(|counts| format!("{counts} {}", plural(detours, "interruption", "interruptions"))),
        each(&|run| run.t_min_ns.map(|ns| format!("t_min {}", time(ns)))),
        each(&|run| run.threshold_ns.map(|ns| format!("threshold {}", time(ns)))),
        each(&|run| run.docs.first().map(|doc| system(&doc.machine.kernel, &doc.machine.processor))),
    ];
    format!("{}: {}", paths(runs), parts.into_iter().flatten().collect::<Vec<_>>().join(", "))
}

/// The paths of recordings. Those in the directory of the first one are only named.
fn paths(runs: &[ComparedRun]) -> String {
    let folder = runs.first().and_then(|run| run.path.parent());
    let path = |(at, run): (usize, &ComparedRun)| match run.path.file_name() {
        Some(name) if at > 0 && run.path.parent() == folder => Path::new(name).display().to_string(),
        _ => run.path.display().to_string(),
    };
    runs.iter().enumerate().map(path).collect::<Vec<_>>().join(", ")
}

fn nodes(run: &ComparedRun) -> String {
    let named: Vec<&str> = run.docs.iter().take(NODES_NAMED).map(|doc| doc.node.as_str()).collect();
    let more = run.docs.len().saturating_sub(NODES_NAMED);
    let more =
        if more > 0 { format!(" and {}", counted(more as u64, "more node", "more nodes")) } else { String::new() };
    format!("{}{more}", named.join(", "))
}
