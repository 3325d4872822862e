//! The comparison in sentences.

use becalm_analyze::compare::{
    Basis, ComparedRun, Comparison, FLOOR, Limit, Metric, Side, TestFamily, Verdict, run_name,
};
use becalm_model::Kind;
use becalm_units::counted;

use super::LimitCheck;
use super::doubt::reason;
use super::figures::{change, figure, ratio, title};
use crate::form::figure::Figure;
use crate::form::known::system;
use crate::form::value::{grouped, signed, three_digits, time};

/// The number of sources in the headline.
pub const NAMED: usize = 3;

/// The number of nodes of a recording that are named; the others are counted.
const NODES_NAMED: usize = 8;

/// The answer in a sentence: whether the second side is quieter, by how much, and which sources made the difference.
pub fn headline(comparison: &Comparison) -> String {
    let mut text = answer(comparison);
    for (_, name, how) in changed(comparison).take(NAMED) {
        text += &format!("; {name} {how}");
    }
    text
}

/// Whether the second side is quieter, and by how much.
fn answer(comparison: &Comparison) -> String {
    let Some(noise) = comparison.total(Metric::NoiseRatio) else { return "there is nothing to compare".to_owned() };
    let answer = match noise.verdict {
        Verdict::Better => "B is quieter",
        Verdict::Worse => "B is noisier",
        Verdict::Lower => "B has less noise, by more than two recordings of one machine differ",
        Verdict::Higher => "B has more noise, by more than two recordings of one machine differ",
        Verdict::NoDifferenceShown => "No difference in noise is shown",
        Verdict::NotEnoughData => "Not enough data to compare the noise",
    };
    let mut text = format!(
        "{answer}: noise {} -> {}",
        figure(noise, noise.a).value().cell(),
        figure(noise, noise.b).value().cell()
    );
    match (noise.low, noise.high, noise.doubt) {
        (Some(low), Some(high), _) => {
            text += &format!(" (95 %: {} to {} points)", signed(low * 100.0), signed(high * 100.0));
        }
        (.., Some(doubt)) => text += &format!("; {}", reason(doubt)),
        _ => {}
    }
    if comparison.basis == Basis::WithinRuns && !noise.verdict.is_difference() {
        text += "; one recording a side cannot show more: record three before the change and three after it, each time by becalm compare \
                 --record 3";
    }
    text
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
pub(crate) fn legend(comparison: &Comparison) -> String {
    let tested = comparison.rows.iter().filter(|row| row.p_value.is_some()).count();
    let rests = match comparison.basis {
        Basis::WithinRuns => {
            "With one recording a side it allows for how each recording scatters within itself, and for how recordings of one unchanged \
             machine were found to differ; higher and lower go beyond both. Three a side show smaller differences: becalm compare A1 A2 A3 \
             -- B1 B2 B3"
        }
        Basis::BetweenRuns => {
            "A and B are typical runs, geometric means; worse and better are said of the two sides, by how the runs of each differ from \
             each other (Welch's t of the logarithms; of the figures themselves where a run has 0)"
        }
    };
    format!(
        "low and high: the 95 % interval of the change, of each row by itself. {rests}. The difference is said at the 5 % \
         level and from {}% on: of noise by itself, of the other {} tested rows with allowance for their number (Holm; figures, \
         sources{} and CPUs each on their own). 'none shown' does not say that there is none",
        three_digits(100.0 * FLOOR),
        tested.saturating_sub(1),
        if comparison.rows.iter().any(|row| row.family == TestFamily::Nodes) { ", nodes" } else { "" }
    )
}

/// The result of a limit, in a sentence.
pub fn check_text(comparison: &Comparison, check: &LimitCheck) -> String {
    let row = comparison.total(check.metric);
    let name = row.map_or_else(|| check.metric.name().to_owned(), title);
    let share = three_digits(check.share * 100.0);
    match check.outcome {
        Limit::Exceeded => match row.and_then(|row| row.effect).and_then(|effect| effect.ratio_low) {
            Some(low) => format!(
                "{name}: B is worse than A by more than {share}%: by at least {}%, with 95 % confidence",
                three_digits((low - 1.0) * 100.0)
            ),
            None => format!("{name}: B is worse than A by more than {share}%: A has none"),
        },
        Limit::NotShown => format!("{name}: it is not shown that B is worse than A by more than {share}%"),
        Limit::Unknown => {
            format!("{name}: there is not enough data to say whether B is worse than A by more than {share}%")
        }
    }
}

/// The recordings of both sides by name, one per line.
pub(crate) fn runs(comparison: &Comparison) -> Vec<(String, String)> {
    let of_side = |name: &'static str, side: &Side| -> Vec<(String, String)> {
        side.runs
            .iter()
            .enumerate()
            .map(|(at, compared)| (run_name(name, at, side.runs.len()), run(compared)))
            .collect()
    };
    [of_side("A", &comparison.a), of_side("B", &comparison.b)].concat()
}

fn run(run: &ComparedRun) -> String {
    let named: Vec<&str> = run.docs.iter().take(NODES_NAMED).map(|doc| doc.node.as_str()).collect();
    let more = run.docs.len().saturating_sub(NODES_NAMED);
    let more =
        if more > 0 { format!(" and {}", counted(more as u64, "more node", "more nodes")) } else { String::new() };
    let mut parts = vec![format!("{}: {}{more}", run.path.display(), named.join(", "))];
    parts.push(format!("CPU {} over {}", run.cpus(), time(run.length_ns)));
    parts.push(format!("{} detours", grouped(run.detours)));
    parts.extend(run.t_min_ns.map(|ns| format!("t_min {}", time(ns))));
    parts.extend(run.threshold_ns.map(|ns| format!("threshold {}", time(ns))));
    if let Some(doc) = run.docs.first() {
        parts.push(system(&doc.machine.kernel, &doc.machine.processor));
    }
    parts.join(", ")
}
