//! The answer before all figures: is this machine quiet, what is the top source, what was not seen.

use becalm_analyze::summary::{SourceSummary, Summary};
use becalm_model::node::{Rung, Warning};
use becalm_model::warning::{Bearing, Code};

use crate::Value;
use crate::form::field::Field;
use crate::form::section::{Block, Grade, Section, Tile};
use crate::form::words::capital;
use crate::record::conclusion::{Cause, Conclusion};
use crate::record::figures::{CpuRow, cpu, interval_note, source};
use crate::record::verdict::{MAX_QUIET, NOISE_QUIET, Verdict, limits};
use crate::record::{header, tails};
use becalm_units::plural;

/// Whether a warning says that the recording is incomplete or unreliable; readers of only the top of a page must see it.
pub(in crate::record) fn is_grave(warning: &Warning) -> bool {
    warning.bearing() == Bearing::NotEnough || matches!(warning.known(), Some(Code::TraceChanged | Code::BooksOpen))
}

/// The lost time and its causes, before everything else.
pub(in crate::record) fn section(summary: &Summary) -> Section {
    let conclusion = Conclusion::from_run(summary);
    let mut blocks = vec![Block::OnPage(vec![verdict(summary)]), Block::Lead(conclusion.sentence.clone())];
    blocks.extend(conclusion.scale().map(Block::Lead));
    blocks.push(Block::Tiles(tiles(summary)));
    blocks.extend((1..).zip(&conclusion.causes).map(|(place, cause)| remark(format!("{place}. "), cause)));
    blocks.extend(conclusion.longest.iter().map(|cause| {
        let most = Value::Time(cause.max_ns.unwrap_or(0)).cell();
        remark(format!("Longest, {most} at once: "), cause)
    }));
    blocks.extend(conclusion.own().map(Block::Text));
    blocks.push(Block::Lines(vec![String::new()]));
    let mut limits: Vec<Block> = header::warnings(summary, is_grave).collect();
    let rest = summary.warnings.len() - limits.len();
    if rest > 0 {
        let what = plural(rest as u64, "warning limits", "warnings limit");
        limits.push(Block::Note(format!("{rest} {what} what these numbers say: see the machine.")));
    }
    blocks.push(Block::OnPage(limits));
    Section::new("headline", "Summary", "Is this machine quiet?", blocks)
}

/// A cause with its figures and the fix.
fn remark(first: String, cause: &Cause<'_>) -> Block {
    let advice = cause.advice.map_or_else(String::new, |advice| format!(". {}", capital(advice)));
    Block::Remark(first + &cause.name(), cause.figures() + &advice)
}

/// A figure of all CPUs together, as text.
fn total(summary: &Summary, field: &Field<CpuRow>) -> String {
    field.cell(&CpuRow::total(summary))
}

fn verdict(summary: &Summary) -> Block {
    let Verdict { word, reason, tone } = Verdict::new(summary);
    let text = format!("{}: {reason}.", capital(&word.to_lowercase()));
    let cpus = match summary.cpus.len() {
        1 => "1 CPU was".to_owned(),
        cpus => format!("{} CPUs were", crate::form::value::grouped(cpus as u64)),
    };
    let basis = format!("{cpus} watched, {} of CPU time in all. {}", total(summary, &cpu::DURATION_NS), limits());
    Block::Verdict { tone, text, basis }
}

fn tiles(summary: &Summary) -> Vec<Tile> {
    let figures = &summary.total;
    let interval = match interval_note(figures) {
        None => {
            format!("95 %: {} to {}", total(summary, &cpu::NOISE_RATIO_LOW), total(summary, &cpu::NOISE_RATIO_HIGH))
        }
        Some(note) => note,
    };
    let noisy = figures.noise_ratio().is_some_and(|noise| noise > NOISE_QUIET);
    let long = figures.durations.max().is_some_and(|ns| ns > MAX_QUIET.get());
    let tone = |bad: bool| if bad { Grade::Bad } else { Grade::Good };
    let mut tiles = vec![
        tile("Noise", total(summary, &cpu::NOISE_RATIO), interval, tone(noisy)),
        tile(
            "Longest detour",
            total(summary, &cpu::MAX_NS),
            format!("median {}, p99.9 {}", total(summary, &cpu::MEDIAN_NS), total(summary, &cpu::P999_NS)),
            tone(long),
        ),
        tile(
            "Detours",
            total(summary, &cpu::DETOURS),
            format!("{} on a CPU", total(summary, &cpu::RATE_HZ)),
            Grade::Plain,
        ),
    ];
    tiles.extend(expected(summary));
    tiles.push(worst(summary));
    tiles.push(not_seen(summary));
    tiles
}

fn tile(name: &str, figure: String, detail: String, tone: Grade) -> Tile {
    Tile { name: name.to_owned(), figure, detail, tone }
}

/// The source with the largest total.
fn worst_source(summary: &Summary) -> Option<&SourceSummary> {
    summary.sources.first()
}

fn worst(summary: &Summary) -> Tile {
    match worst_source(summary) {
        Some(worst) => tile(
            "Worst source",
            worst.source.clone(),
            format!(
                "{}, {} of noise, {} in all",
                worst.kind,
                source::SHARE_RATIO.cell(worst),
                source::WHOLE_NS.cell(worst)
            ),
            Grade::Plain,
        ),
        None if summary.total.detours() == 0 => {
            tile("Worst source", "none".to_owned(), "no detour was seen".to_owned(), Grade::Good)
        }
        None => tile(
            "Worst source",
            "not known".to_owned(),
            "the kernel\u{2019}s tracepoints were not recorded".to_owned(),
            Grade::Fair,
        ),
    }
}

fn not_seen(summary: &Summary) -> Tile {
    let lost = header::lost(summary);
    match summary.total.unseen_ns {
        Some(unseen) => {
            let noise = summary.total.durations.total();
            let share =
                if noise > 0 { Value::Share(unseen as f64 / noise as f64).cell() } else { Value::Share(0.0).cell() };
            let tone = if summary.total.lost_events.is_some_and(|lost| lost > 0) { Grade::Fair } else { Grade::Plain };
            let detail = format!("{share} of noise had no kernel event; lost: {lost}");
            tile("Not seen", total(summary, &cpu::UNSEEN_NS), detail, tone)
        }
        None => {
            let what = match summary.rung {
                Rung::Loop => "the loops alone were recorded",
                Rung::Tracepoints => "what no event shows, as no loop ran",
                _ => "only the loops, and the kernel\u{2019}s counters",
            };
            tile("Not seen", "the sources".to_owned(), format!("{what}; lost: {lost}"), Grade::Fair)
        }
    }
}

/// The longest detour to expect on all CPUs together.
fn expected(summary: &Summary) -> Option<Tile> {
    let row = CpuRow::total(summary);
    let refused = row.figures.tail.as_ref()?.as_ref().err();
    let (figure, detail) = match refused {
        None => (
            format!("over {}", cpu::RETURN_LEVEL_NS.cell(&row)),
            format!(
                "once in {}, 95 %: {} to {}",
                cpu::RETURN_PERIOD_NS.cell(&row),
                cpu::RETURN_LEVEL_LOW_NS.cell(&row),
                cpu::RETURN_LEVEL_HIGH_NS.cell(&row)
            ),
        ),
        Some(_) => ("not known".to_owned(), row.figures.tail.as_ref().and_then(tails::note).unwrap_or_default()),
    };
    Some(Tile { name: "Longest to expect".to_owned(), figure, detail, tone: Grade::Plain })
}
