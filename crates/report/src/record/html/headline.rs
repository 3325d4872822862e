//! The answer before all figures: is this machine quiet, what is the top source, what was not seen.

use std::iter;

use becalm_analyze::summary::{SourceSummary, Summary};
use becalm_model::node::{Rung, Warning};
use becalm_model::warning::{Bearing, Code};

use crate::Value;
use crate::form::field::Field;
use crate::form::section::{Block, Grade, Section, Tile};
use crate::form::value::grouped;
use crate::form::words::capital;
use crate::record::conclusion::{Cause, Conclusion};
use crate::record::figures::{CpuRow, cpu, source};
use crate::record::header;
use crate::record::verdict::{Verdict, limits};
use becalm_units::counted;

/// The hint on a page without sources.
const UNNAMED: &str = "Sources are not named, because the kernel\u{2019}s events were not recorded: run sudo becalm record, or see what is \
                       missing with becalm doctor.";

/// Whether a warning says that the recording is incomplete or unreliable; readers of only the top of a page must see it.
pub(in crate::record) fn is_grave(warning: &Warning) -> bool {
    warning.bearing() == Bearing::NotEnough || matches!(warning.known(), Some(Code::TraceChanged | Code::BooksOpen))
}

/// The lost time and its causes, before everything else.
pub(in crate::record) fn section(summary: &Summary) -> Section {
    let conclusion = Conclusion::from_run(summary);
    let grave = header::warnings(summary, is_grave);
    let notes: Vec<Block> = header::warnings(summary, |warning| !is_grave(warning)).collect();
    let mut blocks = vec![Block::OnPage(iter::once(verdict(summary)).chain(grave).collect())];
    blocks.extend((!notes.is_empty()).then_some(Block::OnPage(notes)));
    // The page's verdict has these figures.
    blocks.push(Block::OnTerminal(vec![Block::Lead(conclusion.sentence.clone())]));
    blocks.extend(conclusion.scale().map(Block::Lead));
    blocks.push(Block::Tiles(tiles(summary)));
    if summary.rung != Rung::Tracepoints && summary.total.detours() > 0 {
        blocks.push(Block::OnPage(vec![Block::Text(UNNAMED.to_owned())]));
    }
    blocks.extend((1..).zip(&conclusion.causes).flat_map(|(place, cause)| remark(&format!("{place}. "), "", cause)));
    blocks.extend(conclusion.longest.iter().flat_map(|cause| {
        let most = Value::Time(cause.max_ns.unwrap_or(0)).cell();
        remark("", &format!("Longest, {most} at once: "), cause)
    }));
    blocks.extend(conclusion.own().map(Block::Text));
    blocks.push(Block::Lines(vec![String::new()]));
    Section::new("headline", "Summary", "Is this machine quiet?", blocks)
}

/// A cause with its figures and the fix, after a number or other words.
fn remark(number: &str, words: &str, cause: &Cause<'_>) -> [Block; 2] {
    let advice = cause.advice.map_or_else(String::new, |advice| format!(". {}", capital(advice)));
    let (name, figures) = (format!("{words}{}", cause.name()), cause.figures() + &advice);
    [
        Block::OnTerminal(vec![Block::entry(format!("  {number:<3}"), format!("{name}: {figures}"))]),
        Block::OnPage(vec![Block::Remark(format!("{number}{name}"), figures)]),
    ]
}

/// A figure of all CPUs together, as text.
fn total(summary: &Summary, field: &Field<CpuRow>) -> String {
    field.cell(&CpuRow::total(summary))
}

fn verdict(summary: &Summary) -> Block {
    let Verdict { word, reason, tone } = Verdict::new(summary);
    let text = format!("{}: {reason}.", capital(&word.to_lowercase()));
    let cpus = counted(summary.cpus.len() as u64, "CPU", "CPUs");
    let basis = format!("Measured on {cpus}, {} of CPU time in total. {}", total(summary, &cpu::DURATION_NS), limits());
    Block::Verdict { tone, text, basis }
}

/// Figures that the verdict does not have; none without an answer.
fn tiles(summary: &Summary) -> Vec<Tile> {
    let mut tiles = vec![tile(
        "Interruptions",
        total(summary, &cpu::DETOURS),
        format!("{} per CPU", total(summary, &cpu::RATE_HZ)),
        Grade::Plain,
    )];
    if summary.total.detours() > 0 {
        tiles.push(tile(
            "Median interruption",
            total(summary, &cpu::MEDIAN_NS),
            format!("99.9 % take at most {}", total(summary, &cpu::P999_NS)),
            Grade::Plain,
        ));
        tiles.extend(summary.total.long_noise_ratio().map(|ratio| {
            let detail = "of CPU time, in interruptions of 1 us and more".to_owned();
            tile("Lost in longer ones", Value::Ratio(ratio).cell(), detail, Grade::Plain)
        }));
    }
    tiles.extend(expected(summary));
    tiles.extend(summary.sources.first().map(top_source));
    tiles.extend(unseen(summary));
    tiles
}

fn tile(name: &str, figure: String, detail: String, tone: Grade) -> Tile {
    Tile { name: name.to_owned(), figure, detail, tone }
}

fn top_source(top: &SourceSummary) -> Tile {
    let share = source::SHARE_RATIO.cell(top);
    let detail = format!("{}, {share} of noise, {} in total", top.kind, source::WHOLE_NS.cell(top));
    tile("Top source", top.source.clone(), detail, Grade::Plain)
}

/// The time that no kernel event explains, if it is known.
fn unseen(summary: &Summary) -> Option<Tile> {
    let unseen = summary.total.unseen_ns?;
    let noise = summary.total.durations.total();
    let share = Value::Share(if noise > 0 { unseen as f64 / noise as f64 } else { 0.0 }).cell();
    let lost = summary.total.lost_events;
    let dropped = lost.map_or_else(|| "not known".to_owned(), grouped);
    let tone = if lost.is_some_and(|lost| lost > 0) { Grade::Fair } else { Grade::Plain };
    let detail = format!("{share} of noise; dropped events: {dropped}");
    Some(tile("No kernel event", total(summary, &cpu::UNSEEN_NS), detail, tone))
}

/// The longest interruption to expect on all CPUs together, if it can be estimated.
fn expected(summary: &Summary) -> Option<Tile> {
    let row = CpuRow::total(summary);
    row.figures.tail.as_ref()?.as_ref().ok()?;
    let detail = format!(
        "once in {}, 95 % CI {} to {}",
        cpu::RETURN_PERIOD_NS.cell(&row),
        cpu::RETURN_LEVEL_LOW_NS.cell(&row),
        cpu::RETURN_LEVEL_HIGH_NS.cell(&row)
    );
    Some(tile("Longest to expect", format!("over {}", cpu::RETURN_LEVEL_NS.cell(&row)), detail, Grade::Plain))
}
