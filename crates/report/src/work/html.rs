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
use becalm_units::counted;

/// The charts of a run of work, after the answer.
pub(super) fn sections(summary: &WorkSummary) -> Vec<Section> {
    let cpus = by_name(summary);
    let Some(worst) = slowest(&cpus) else { return Vec::new() };
    let mut sections = vec![headline(summary, &cpus, worst), distribution(&cpus, worst), series(&cpus, worst)];
    sections.push(histogram(&cpus));
    sections.extend(repetitions(&cpus));
    sections.extend(subtraction(&cpus, worst));
    sections.extend(spectrum(&cpus));
    sections
}

/// The CPUs with their names.
pub(super) fn by_name(summary: &WorkSummary) -> Vec<NamedCpu<'_>> {
    let nodes = summary.nodes.len() > 1;
    let place =
        |cpu: &CpuWork| if nodes { format!("{} CPU {}", cpu.node, cpu.cpu) } else { format!("CPU {}", cpu.cpu) };
    summary.cpus.iter().map(|cpu| NamedCpu { name: place(cpu), cpu }).collect()
}

/// The CPU with the highest cost.
pub(super) fn slowest<'a, 'b>(cpus: &'a [NamedCpu<'b>]) -> Option<&'a NamedCpu<'b>> {
    cpus.iter().max_by(|a, b| cost(a.cpu).total_cmp(&cost(b.cpu)))
}

/// The excess of the mean over the middle of the main body, relative to it.
pub(super) fn cost(cpu: &CpuWork) -> f64 {
    cpu.spread.mean_ns / cpu.body.middle_ns.max(1) as f64 - 1.0
}

/// The cost of interruptions in a sentence, with its grade.
pub(super) fn answer(cpus: &[NamedCpu<'_>], worst: &NamedCpu<'_>) -> (Grade, String) {
    let longer = cost(worst.cpu);
    let on_cpu = if cpus.len() > 1 { format!(" on {}", worst.name) } else { String::new() };
    let (grade, by) = match longer {
        longer if longer <= NOISE_QUIET => (Grade::Good, "about as long as".to_owned()),
        longer => {
            let grade = if longer <= 10.0 * NOISE_QUIET { Grade::Fair } else { Grade::Bad };
            (grade, format!("{} longer than", Value::Ratio(longer).cell()))
        }
    };
    let (mean, middle) = (cpu::MEAN_NS.cell(worst.cpu), fine(worst.cpu.body.middle_ns));
    (grade, format!("A sample takes {mean} on average{on_cpu}, {by} undisturbed ({middle})."))
}

fn headline(summary: &WorkSummary, cpus: &[NamedCpu<'_>], worst: &NamedCpu<'_>) -> Section {
    let quiet = Value::Ratio(NOISE_QUIET).cell();
    let (tone, text) = answer(cpus, worst);
    let work = summary.nodes.iter().find_map(|doc| doc.settings.work.as_ref()).map(view::done).unwrap_or_default();
    let samples: u64 = cpus.iter().map(|shown| shown.cpu.spread.count).sum();
    let basis = format!(
        "{} samples of {work}. Undisturbed is the median sample; up to {quiet} more counts as equal.",
        grouped(samples)
    );
    let mut blocks = vec![Block::Verdict { tone, text, basis }, Block::Tiles(tiles(worst.cpu))];
    let warnings: usize = summary.nodes.iter().map(|doc| doc.warnings.len()).sum();
    if warnings > 0 {
        let what = counted(warnings as u64, "warning limits", "warnings limit");
        blocks.push(Block::Note(format!("{what} these numbers: see Samples.")));
    }
    drawn("headline", "Summary", "How much do interruptions slow this work down?", blocks)
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
            "Long outliers",
            figure(&cpu::SLOWIES),
            format!("{} of samples; over {}", share(cpu.body.slowies), fine(cpu.body.high_ns)),
        ),
        tile(
            "Short outliers",
            figure(&cpu::FASTIES),
            format!("{} of samples; under {}", share(cpu.body.fasties), fine(cpu.body.low_ns)),
        ),
    ];
    if let Some(last) = cpu.subtraction.last() {
        tiles.truncate(5);
        let without = format!("standard deviation {} without all sources", time(last.left.stddev_ns.round() as i64));
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
        "The share of samples up to a time, then of those that take at least a time: each line further down is ten times as rare. The \
         last chart is the first one on such an axis, which shows the few shortest samples.",
    )
}

/// A note if the charts leave out CPUs.
fn left_out(cpus: &[NamedCpu<'_>]) -> Option<Block> {
    let text = || format!("The charts show the first {CURVES} of {} CPUs.", grouped(cpus.len() as u64));
    (cpus.len() > CURVES).then(|| Block::Note(text()))
}

fn series(cpus: &[NamedCpu<'_>], worst: &NamedCpu<'_>) -> Section {
    let text = quantiles(worst, cpus.len() > 1);
    drawn("series", "Series", "Consecutive samples", vec![Block::Charts(vec![charts::series(cpus, &text)])])
        .explained("Samples in chronological order: each point is the longest, or the shortest, of a part of the run.")
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
        "A second peak to the right of the first is a source that hits some of the samples, and takes about the same time in each.",
    )
}

fn repetitions(cpus: &[NamedCpu<'_>]) -> Option<Section> {
    let longer = cpus.iter().filter_map(|shown| Some((shown, shown.cpu.cumulative.as_ref()?)));
    let (worst, cumulative) = longer.max_by(|(_, a), (_, b)| a.cost_ratio().total_cmp(&b.cost_ratio()))?;
    let on = if cpus.len() > 1 { format!(" on {}", worst.name) } else { String::new() };
    let text = format!(
        "A repetition of {} undisturbed takes {} on average{on}, and {} at most.",
        cumulative::UNDISTURBED_NS.cell(cumulative),
        cumulative::MEAN_NS.cell(cumulative),
        cumulative::MAX_NS.cell(cumulative)
    );
    let blocks = vec![Block::Text(text.clone()), Block::Charts(vec![charts::repetitions(cpus, &text)])];
    Some(
        drawn("repetitions", "A second", "Repetitions of one second", blocks)
            .explained("Consecutive samples together, about a second each. 1 is undisturbed."),
    )
}

fn subtraction(cpus: &[NamedCpu<'_>], worst: &NamedCpu<'_>) -> Option<Section> {
    let shown = if worst.cpu.subtraction.is_empty() {
        cpus.iter().find(|shown| !shown.cpu.subtraction.is_empty())?
    } else {
        worst
    };
    let last = shown.cpu.subtraction.last()?;
    let on = if cpus.len() > 1 { format!("On {}, ", shown.name) } else { "On average ".to_owned() };
    let deviations =
        [shown.cpu.spread.stddev_ns, last.left.stddev_ns].map(|stddev| time(stddev.round() as i64)).join(" to ");
    let text = match shown.cpu.beyond_middle_ns() {
        Some((all, rest)) => format!(
            "{on}{} of the {} that a sample takes beyond the median remains without the direct time of all sources. The standard \
             deviation changes from {deviations}.",
            time(rest.round() as i64),
            time(all.round() as i64)
        ),
        None => format!(
            "Without the direct time of all sources, the standard deviation changes from {deviations}; {}.",
            view::IN_MOST
        ),
    };
    let blocks = vec![
        Block::Text(text.clone()),
        Block::Charts(vec![charts::left(shown.cpu, &text), charts::survival_left(shown.cpu, &text)]),
    ];
    Some(drawn("subtraction", "Subtraction", "Samples without the time of their sources", blocks).explained(
        "The samples minus the direct time of one source after another. The rest is indirect cost, such as cold caches, and time that no \
         kernel trace shows.",
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
        None => "No period was found.".to_owned(),
    };
    let mut blocks = vec![Block::Text(text.clone()), Block::Charts(vec![charts::spectrum(cpus, &text)])];
    blocks.push(Block::Note(format!(
        "The mean of {} parts of the run, with a resolution of {}. A frequency is named if its power is above that around it, or if \
         the slowest samples have its period; chance names one in at most 1 of {} runs. It gets a source if the source has that \
         period.",
        tones.stretches,
        view::hertz(tones.resolution_hz),
        grouped((1.0 / FALSE_ALARM).round() as u64)
    )));
    Some(drawn("spectrum", "Spectrum", "Frequencies of lost time", blocks).explained(
        "A peak is a source with a constant period, the further right the more frequent; its multiples are to the right of it.",
    ))
}

/// A section that only a page shows.
fn drawn(id: &'static str, short: &'static str, title: &str, blocks: Vec<Block>) -> Section {
    Section::new(id, short, title, vec![Block::OnPage(blocks)])
}
