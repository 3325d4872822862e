//! The page of a run of work.

use becalm_analyze::work::{CpuWork, FALSE_ALARM, WorkSummary};

use super::charts::{self, CURVES, NamedCpu};
use super::fields::{cpu, cumulative};
use super::view;
use crate::Value;
use crate::form::field::Field;
use crate::form::section::{Block, Grade, Section, Tile};
use crate::form::value::{fine, grouped, time};
use crate::record::NOISE_QUIET;
use becalm_units::plural;

/// The charts of a run of work, after the answer.
pub(super) fn sections(summary: &WorkSummary) -> Vec<Section> {
    let nodes = summary.nodes.len() > 1;
    let place =
        |cpu: &CpuWork| if nodes { format!("{} CPU {}", cpu.node, cpu.cpu) } else { format!("CPU {}", cpu.cpu) };
    let cpus: Vec<NamedCpu<'_>> = summary.cpus.iter().map(|cpu| NamedCpu { name: place(cpu), cpu }).collect();
    let Some(worst) = cpus.iter().max_by(|a, b| cost(a.cpu).total_cmp(&cost(b.cpu))) else { return Vec::new() };
    let mut sections = vec![headline(summary, &cpus, worst), distribution(&cpus, worst), series(&cpus, worst)];
    sections.push(histogram(&cpus));
    sections.extend(repetitions(&cpus));
    sections.extend(subtraction(&cpus, worst));
    sections.extend(spectrum(&cpus));
    sections
}

/// How much longer samples take on average than the middle of the main body, as a fraction of it.
fn cost(cpu: &CpuWork) -> f64 {
    cpu.spread.mean_ns / cpu.body.middle_ns.max(1) as f64 - 1.0
}

fn headline(summary: &WorkSummary, cpus: &[NamedCpu<'_>], worst: &NamedCpu<'_>) -> Section {
    let figure = |field: &Field<CpuWork>| field.cell(worst.cpu);
    let longer = cost(worst.cpu);
    let quiet = Value::Ratio(NOISE_QUIET).cell();
    let on_cpu = if cpus.len() > 1 { format!(" on {}", worst.name) } else { String::new() };
    let (tone, text) = match longer {
        longer if longer <= NOISE_QUIET => (
            Grade::Good,
            format!("Samples take {} on the average{on_cpu}, no longer than undisturbed.", figure(&cpu::MEAN_NS)),
        ),
        longer => {
            let tone = if longer <= 10.0 * NOISE_QUIET { Grade::Fair } else { Grade::Bad };
            let by = Value::Change(longer).cell();
            let text = format!(
                "Samples take {} on the average{on_cpu}: {by} on what they take undisturbed.",
                figure(&cpu::MEAN_NS)
            );
            (tone, text)
        }
    };
    let work = summary.nodes.iter().find_map(|doc| doc.settings.work.as_ref()).map(view::done).unwrap_or_default();
    let samples: u64 = cpus.iter().map(|shown| shown.cpu.spread.count).sum();
    let basis = format!(
        "{} samples of {work}. Undisturbed is the middle of the main body, {}; up to {quiet} on that counts as no longer.",
        grouped(samples),
        fine(worst.cpu.body.middle_ns)
    );
    let mut blocks = vec![Block::Verdict { tone, text, basis }, Block::Tiles(tiles(worst.cpu))];
    let warnings: usize = summary.nodes.iter().map(|doc| doc.warnings.len()).sum();
    if warnings > 0 {
        let what = plural(warnings as u64, "warning limits", "warnings limit");
        blocks.push(Block::Note(format!("{warnings} {what} what these numbers say: see what was measured.")));
    }
    drawn("headline", "Summary", "How much longer does work take here?", blocks)
}

fn tiles(cpu: &CpuWork) -> Vec<Tile> {
    let figure = |field: &Field<CpuWork>| field.cell(cpu);
    let tile =
        |name: &str, figure: String, detail: String| Tile { name: name.to_owned(), figure, detail, tone: Grade::Plain };
    let share = |count: u64| Value::Ratio(count as f64 / cpu.spread.count.max(1) as f64).cell();
    let mut tiles = vec![
        tile("Mean", figure(&cpu::MEAN_NS), format!("standard deviation {}", figure(&cpu::STDDEV_NS))),
        tile("Median", figure(&cpu::MEDIAN_NS), format!("p25 {}, p75 {}", figure(&cpu::P25_NS), figure(&cpu::P75_NS))),
        tile("Longest", figure(&cpu::MAX_NS), format!("p99 {}, p99.9 {}", figure(&cpu::P99_NS), figure(&cpu::P999_NS))),
        tile("Shortest", figure(&cpu::MIN_NS), format!("calibrated {}", figure(&cpu::CALIBRATED_NS))),
        tile(
            "Slowies",
            figure(&cpu::SLOWIES),
            format!("{} of samples; over {}", share(cpu.body.slowies), fine(cpu.body.high_ns)),
        ),
        tile(
            "Fasties",
            figure(&cpu::FASTIES),
            format!("{} of samples; under {}", share(cpu.body.fasties), fine(cpu.body.low_ns)),
        ),
    ];
    if let Some(last) = cpu.subtraction.last() {
        tiles.truncate(5);
        let without = format!("standard deviation {} without every source", time(last.left.stddev_ns.round() as i64));
        let rest = cpu.beyond_middle_ns().map_or_else(|| "-".to_owned(), |(_, rest)| time(rest.round() as i64));
        tiles.push(tile("Not explained", rest, without));
    }
    tiles
}

fn quantiles(worst: &NamedCpu<'_>, named: bool) -> String {
    let figure = |field: &Field<CpuWork>| field.cell(worst.cpu);
    format!(
        "{}Half of the samples take at most {}, 99 of 100 at most {}, 999 of 1,000 at most {}, and the longest {}.",
        if named { format!("{}: ", worst.name) } else { String::new() },
        figure(&cpu::MEDIAN_NS),
        figure(&cpu::P99_NS),
        figure(&cpu::P999_NS),
        figure(&cpu::MAX_NS)
    )
}

fn distribution(cpus: &[NamedCpu<'_>], worst: &NamedCpu<'_>) -> Section {
    let text = quantiles(worst, cpus.len() > 1);
    let mut blocks = vec![
        Block::Text(text.clone()),
        Block::Charts(vec![charts::cumulative(cpus, &text), charts::survival(cpus, &text), charts::head(cpus, &text)]),
    ];
    blocks.extend(left_out(cpus));
    drawn("distribution", "Distribution", "How long samples take", blocks).explained(
        "First, how many of the samples take at most so long; then, how many take at least so long: there each further line down is ten \
         times as rare; then the first one again on such an axis, where the few shortest are seen.",
    )
}

/// A note if the charts leave out CPUs.
fn left_out(cpus: &[NamedCpu<'_>]) -> Option<Block> {
    let text = || format!("Charts are of the first {CURVES} of {} CPUs.", grouped(cpus.len() as u64));
    (cpus.len() > CURVES).then(|| Block::Note(text()))
}

fn series(cpus: &[NamedCpu<'_>], worst: &NamedCpu<'_>) -> Section {
    let text = quantiles(worst, cpus.len() > 1);
    drawn("series", "Series", "Consecutive samples", vec![Block::Charts(vec![charts::series(cpus, &text)])]).explained(
        "One sample after another, in order of time: each point is the longest, or the shortest, of a part of the run.",
    )
}

fn histogram(cpus: &[NamedCpu<'_>]) -> Section {
    let text = charts::histogram_text(cpus);
    drawn(
        "histogram",
        "Histogram",
        "Histogram",
        vec![Block::Charts(vec![charts::histogram(cpus, &text)]), Block::Note(text)],
    )
    .explained(
        "A second hill to the right of the first is a source that hits a part of the samples, and takes about the same \
                  each time.",
    )
}

fn repetitions(cpus: &[NamedCpu<'_>]) -> Option<Section> {
    let longer = cpus.iter().filter_map(|shown| Some((shown, shown.cpu.cumulative.as_ref()?)));
    let (worst, cumulative) = longer.max_by(|(_, a), (_, b)| a.cost_ratio().total_cmp(&b.cost_ratio()))?;
    let on = if cpus.len() > 1 { format!(" on {}", worst.name) } else { String::new() };
    let text = format!(
        "A repetition that would take {} undisturbed takes {} on the average{on}, and {} at most.",
        cumulative::UNDISTURBED_NS.cell(cumulative),
        cumulative::MEAN_NS.cell(cumulative),
        cumulative::MAX_NS.cell(cumulative)
    );
    let blocks = vec![Block::Text(text.clone()), Block::Charts(vec![charts::repetitions(cpus, &text)])];
    Some(drawn("repetitions", "A second", "What adds up over a second", blocks).explained(
        "Consecutive samples together, so that each repetition takes about a second; at 1 nothing interrupts it.",
    ))
}

fn subtraction(cpus: &[NamedCpu<'_>], worst: &NamedCpu<'_>) -> Option<Section> {
    let shown = if worst.cpu.subtraction.is_empty() {
        cpus.iter().find(|shown| !shown.cpu.subtraction.is_empty())?
    } else {
        worst
    };
    let last = shown.cpu.subtraction.last()?;
    let on = if cpus.len() > 1 { format!("On {}, ", shown.name) } else { "On the average ".to_owned() };
    let deviations =
        [shown.cpu.spread.stddev_ns, last.left.stddev_ns].map(|stddev| time(stddev.round() as i64)).join(" to ");
    let text = match shown.cpu.beyond_middle_ns() {
        Some((all, rest)) => format!(
            "{on}{} of the {} that a sample takes beyond the main body\u{2019}s middle is left when the direct time of every \
             source is taken out; the standard deviation goes from {deviations}.",
            time(rest.round() as i64),
            time(all.round() as i64)
        ),
        None => format!(
            "Without the direct time of every source the standard deviation goes from {deviations}; {}.",
            view::IN_MOST
        ),
    };
    let blocks = vec![
        Block::Text(text.clone()),
        Block::Charts(vec![charts::left(shown.cpu, &text), charts::survival_left(shown.cpu, &text)]),
    ];
    Some(drawn("subtraction", "Subtraction", "What is left without its sources", blocks).explained(
        "The samples less the direct time of each source in turn. What is left is the indirect cost, caches and \
                  predictors, and what no trace of the kernel shows.",
    ))
}

fn spectrum(cpus: &[NamedCpu<'_>]) -> Option<Section> {
    let tones = cpus
        .iter()
        .find_map(|shown| shown.cpu.tones.as_ref().filter(|tones| tones.power.iter().any(|power| *power > 0.0)))?;
    let named: Vec<&becalm_analyze::work::Tone> =
        cpus.iter().filter_map(|shown| shown.cpu.tones.as_ref()).flat_map(|tones| &tones.tones).collect();
    let text = match named.iter().max_by(|a, b| a.amplitude_ns.total_cmp(&b.amplitude_ns)) {
        Some(tone) => {
            let source = tone.source.as_ref().map_or_else(String::new, |source| format!(" ({source})"));
            format!("The strongest of {} named frequencies: {}{source}.", named.len(), view::hertz(tone.hz))
        }
        None => "Nothing comes with a period.".to_owned(),
    };
    let mut blocks = vec![Block::Text(text.clone()), Block::Charts(vec![charts::spectrum(cpus, &text)])];
    blocks.push(Block::Note(format!(
        "The mean of {} stretches; frequencies {} apart can be told apart. A frequency is named if its power stands out of that \
         around it, or if the slowest samples have its period, both by what chance gives once in {} runs at most; a source \
         beside it if its own samples have that period.",
        tones.stretches,
        view::hertz(tones.resolution_hz),
        grouped((1.0 / FALSE_ALARM).round() as u64)
    )));
    Some(drawn("spectrum", "Spectrum", "Frequencies in the time that was lost", blocks).explained(
        "A peak is something that comes again and again after the same time, the further right the more often; its \
                  multiples stand to the right of it.",
    ))
}

/// A section that only a page shows.
fn drawn(id: &'static str, short: &'static str, title: &str, blocks: Vec<Block>) -> Section {
    Section::new(id, short, title, vec![Block::OnPage(blocks)])
}
