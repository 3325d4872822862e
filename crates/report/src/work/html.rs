//! The page of a run of work.

use becalm_analyze::work::{CpuWork, FALSE_ALARM, RULE, WorkSummary};

use super::charts::{self, CURVES, NamedCpu};
use super::fields::{COUNT, CUMULATIVE, STEP, Subtracted, against, cpu, cumulative};
use super::text::{self, cpi_note};
use crate::Value;
use crate::form::field::Field;
use crate::form::table::Table;
use crate::form::value::{fine, grouped, time};
use crate::html::{Block, Grade, Opening, Page, Section, Tile};
use crate::record::NOISE_QUIET;
use crate::record::header;
use becalm_units::plural;

/// How many sources the table of the subtraction has at most.
const STEPS: usize = 40;
/// How many CPUs a table has at most, and have one of their own.
const ROWS: usize = 256;
/// CPUs beyond this have no table of their own.
const TABLES: usize = 8;

/// The page of a run of work, made by `program`: `becalm 0.1.0`.
pub(super) fn page(summary: &WorkSummary, program: &str) -> Page {
    let nodes = summary.nodes.len() > 1;
    let place =
        |cpu: &CpuWork| if nodes { format!("{} CPU {}", cpu.node, cpu.cpu) } else { format!("CPU {}", cpu.cpu) };
    let cpus: Vec<NamedCpu<'_>> = summary.cpus.iter().map(|cpu| NamedCpu { name: place(cpu), cpu }).collect();
    let Some(worst) = cpus.iter().max_by(|a, b| cost(a.cpu).total_cmp(&cost(b.cpu))) else {
        return framed(summary, program, Vec::new());
    };
    let mut sections = vec![headline(summary, &cpus, worst), distribution(&cpus, worst)];
    sections.push(series(&cpus, worst));
    sections.push(histogram(&cpus));
    sections.extend(repetitions(&cpus));
    sections.extend(subtraction(&cpus, worst));
    sections.extend(spectrum(&cpus));
    sections.extend(counters(&cpus));
    sections.extend(baseline(&cpus));
    sections.push(machine(summary, &cpus));
    framed(summary, program, sections)
}

fn framed(summary: &WorkSummary, program: &str, sections: Vec<Section>) -> Page {
    let name = summary.path.file_stem().map_or_else(|| summary.path.to_string_lossy(), |name| name.to_string_lossy());
    let nodes: Vec<&str> = summary.nodes.iter().map(|doc| doc.node.as_str()).collect();
    let when = summary.nodes.iter().map(header::when).min().unwrap_or_default();
    Page {
        title: format!("{name}: work and what interrupts it"),
        subtitle: format!("{} \u{b7} {when}", nodes.join(", ")),
        sections,
        foot: vec![
            format!("Made by {program} from {}.", summary.path.display()),
            "Drawn with Apache ECharts 6.1.0, which is part of this file; nothing is loaded from elsewhere.".to_owned(),
        ],
    }
}

/// How much longer samples take on the average than the main body's middle, as parts of it.
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
    let work = summary.nodes.iter().find_map(|doc| doc.settings.work.as_ref()).map(text::done).unwrap_or_default();
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
        blocks.push(Block::Note(format!("{warnings} {what} what these numbers say: see the end of the page.")));
    }
    let title = "How much longer does work take here?".to_owned();
    Section { opening: Opening::None, id: "headline", title, short: "Summary", reading: String::new(), blocks }
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
    blocks.push(Block::Table(samples(cpus)));
    blocks.extend(drawn(cpus));
    blocks.push(Block::Note(format!("Fasties and slowies: {RULE}.")));
    Section {
        opening: Opening::None,
        id: "distribution",
        title: "How long samples take".to_owned(),
        short: "Distribution",
        reading: "First, how many of the samples take at most so long; then, how many take at least so long: there each further \
                  line down is ten times as rare; then the first one again on such an axis, where the few shortest are seen."
            .to_owned(),
        blocks,
    }
}

/// A note where CPUs are left out of the charts.
fn drawn(cpus: &[NamedCpu<'_>]) -> Option<Block> {
    let text = || format!("Charts are of the first {CURVES} of {} CPUs.", grouped(cpus.len() as u64));
    (cpus.len() > CURVES).then(|| Block::Note(text()))
}

fn samples(cpus: &[NamedCpu<'_>]) -> Table {
    let nodes = cpus.windows(2).any(|pair| pair[0].cpu.node != pair[1].cpu.node);
    let mut fields = vec![
        &cpu::CPU,
        &cpu::SAMPLES,
        &cpu::MEAN_NS,
        &cpu::STDDEV_NS,
        &cpu::MIN_NS,
        &cpu::P25_NS,
        &cpu::MEDIAN_NS,
        &cpu::P75_NS,
        &cpu::P99_NS,
        &cpu::P999_NS,
        &cpu::MAX_NS,
        &cpu::FASTIES,
        &cpu::SLOWIES,
    ];
    if nodes {
        fields.insert(0, &cpu::NODE);
    }
    if cpus.iter().any(|shown| shown.cpu.cpi.is_some()) {
        fields.extend([&cpu::CPI, &cpu::CPI_LOW, &cpu::CPI_HIGH]);
    }
    let mut table = Table::new(&fields).captioned("Samples");
    cpus.iter().take(ROWS).for_each(|shown| {
        table.row(&fields, shown.cpu);
    });
    let rows = (cpus.len() > ROWS).then(|| format!("The first {ROWS} of {} CPUs.", grouped(cpus.len() as u64)));
    let cpi = cpus.iter().find_map(|shown| cpi_note(std::slice::from_ref(shown.cpu))).map(|note| format!("{note}."));
    table.note = rows.into_iter().chain(cpi).collect::<Vec<_>>().join(" ");
    table
}

fn series(cpus: &[NamedCpu<'_>], worst: &NamedCpu<'_>) -> Section {
    let text = quantiles(worst, cpus.len() > 1);
    Section {
        opening: Opening::None,
        id: "series",
        title: "Consecutive samples".to_owned(),
        short: "Series",
        reading: "One sample after another, in order of time: each point is the longest, or the shortest, of a part of the run."
            .to_owned(),
        blocks: vec![Block::Charts(vec![charts::series(cpus, &text)])],
    }
}

fn histogram(cpus: &[NamedCpu<'_>]) -> Section {
    let text = charts::histogram_text(cpus);
    Section {
        opening: Opening::None,
        id: "histogram",
        title: "Histogram".to_owned(),
        short: "Histogram",
        reading: "A second hill to the right of the first is a source that hits a part of the samples, and takes about the same \
                  each time."
            .to_owned(),
        blocks: vec![Block::Charts(vec![charts::histogram(cpus, &text)]), Block::Note(text)],
    }
}

/// A table for each CPU, named after it where there are several.
fn tables<R>(
    cpus: &[NamedCpu<'_>],
    caption: &str,
    fields: &[&Field<R>],
    rows: impl Fn(&CpuWork, &mut Table),
) -> Vec<Block> {
    let mut blocks = Vec::new();
    for shown in cpus.iter().take(TABLES) {
        let caption = if cpus.len() > 1 { format!("{caption}, {}", shown.name) } else { caption.to_owned() };
        let mut table = Table::new(fields).captioned(&caption);
        rows(shown.cpu, &mut table);
        if !table.is_empty() {
            blocks.push(Block::Table(table));
        }
    }
    if cpus.len() > TABLES && !blocks.is_empty() {
        blocks.push(Block::Note(format!("The first {TABLES} of {} CPUs.", grouped(cpus.len() as u64))));
    }
    blocks
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
    let fields: Vec<&Field<_>> = CUMULATIVE.iter().collect();
    let mut blocks = vec![Block::Text(text.clone()), Block::Charts(vec![charts::repetitions(cpus, &text)])];
    blocks.extend(tables(cpus, "Repetitions of a second", &fields, |cpu, table| {
        cpu.cumulative.iter().for_each(|cumulative| {
            table.row(&fields, cumulative);
        });
    }));
    Some(Section {
        opening: Opening::None,
        id: "repetitions",
        title: "What adds up over a second".to_owned(),
        short: "A second",
        reading:
            "Consecutive samples together, so that each repetition takes about a second; at 1 nothing interrupts it."
                .to_owned(),
        blocks,
    })
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
            text::IN_MOST
        ),
    };
    let fields: Vec<&Field<Subtracted>> = STEP.iter().collect();
    let mut blocks = vec![
        Block::Text(text.clone()),
        Block::Charts(vec![charts::left(shown.cpu, &text), charts::survival_left(shown.cpu, &text)]),
    ];
    blocks.extend(tables(cpus, "Sources taken out, one after another", &fields, |cpu, table| {
        if cpu.subtraction.is_empty() {
            return;
        }
        table.row(&fields, &Subtracted { step: None, left: cpu.spread, all_ns: cpu.duration_ns });
        for step in cpu.subtraction.iter().take(STEPS) {
            table.row(&fields, &Subtracted { step: Some(step.clone()), left: step.left, all_ns: cpu.duration_ns });
        }
        if cpu.subtraction.len() > STEPS {
            table.note = format!("The first {STEPS} of {} steps.", grouped(cpu.subtraction.len() as u64));
        }
    }));
    blocks.push(Block::Note(
        "\u{201c}There\u{201d}: the samples in which the source came, after it was taken out.".to_owned(),
    ));
    Some(Section {
        opening: Opening::None,
        id: "subtraction",
        title: "What is left without its sources".to_owned(),
        short: "Subtraction",
        reading:
            "The samples less the direct time of each source in turn. What is left is the indirect cost, caches and \
                  predictors, and what no trace of the kernel shows."
                .to_owned(),
        blocks,
    })
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
            format!("The strongest of {} named frequencies: {}{source}.", named.len(), text::hertz(tone.hz))
        }
        None => "Nothing comes with a period.".to_owned(),
    };
    let fields = text::TONES;
    let mut blocks = vec![Block::Text(text.clone()), Block::Charts(vec![charts::spectrum(cpus, &text)])];
    blocks.extend(tables(cpus, "Frequencies", fields, |cpu, table| {
        cpu.tones.iter().flat_map(|tones| &tones.tones).for_each(|tone| {
            table.row(fields, tone);
        });
    }));
    blocks.push(Block::Note(format!(
        "The mean of {} stretches; frequencies {} apart can be told apart. A frequency is named if its power stands out of that \
         around it, or if the slowest samples have its period, both by what chance gives once in {} runs at most; a source \
         beside it if its own samples have that period.",
        tones.stretches,
        text::hertz(tones.resolution_hz),
        grouped((1.0 / FALSE_ALARM).round() as u64)
    )));
    Some(Section {
        opening: Opening::None,
        id: "spectrum",
        title: "Frequencies in the time that was lost".to_owned(),
        short: "Spectrum",
        reading:
            "A peak is something that comes again and again after the same time, the further right the more often; its \
                  multiples stand to the right of it."
                .to_owned(),
        blocks,
    })
}

fn counters(cpus: &[NamedCpu<'_>]) -> Option<Section> {
    let fields: Vec<&Field<_>> = COUNT.iter().collect();
    let blocks = tables(cpus, "Counts", &fields, |cpu, table| {
        cpu.counts.iter().for_each(|count| {
            table.row(&fields, count);
        });
    });
    (!blocks.is_empty()).then(|| Section {
        opening: Opening::None,
        id: "counters",
        title: "The processor\u{2019}s counters".to_owned(),
        short: "Counters",
        reading: "What the processor counted in the loop itself (user), and in what interrupted it (kernel); counted for a part of \
                  the time only, figures are scaled up."
            .to_owned(),
        blocks,
    })
}

fn baseline(cpus: &[NamedCpu<'_>]) -> Option<Section> {
    let first = cpus.iter().find_map(|shown| shown.cpu.baseline.as_ref())?;
    let text = format!(
        "The mean is {} times that of the baseline, the 99th percentile {} times.",
        against::MEAN_RATIO.cell(first),
        against::P99_RATIO.cell(first)
    );
    let mut blocks = vec![Block::Text(text)];
    for (caption, fields, fits) in [
        ("Samples, by those of the baseline", text::AGAINST_SAMPLES, true),
        (
            "Repetitions of a second, by the baseline\u{2019}s mean",
            text::AGAINST_REPETITIONS,
            first.repetitions.is_some(),
        ),
    ] {
        if fits {
            blocks.extend(tables(cpus, caption, fields, |cpu, table| {
                cpu.baseline.iter().for_each(|against| {
                    table.row(fields, against);
                });
            }));
        }
    }
    Some(Section {
        opening: Opening::None,
        id: "baseline",
        title: "BaselineComparison a quiet baseline".to_owned(),
        short: "Baseline",
        reading: "The same work on a quieter CPU, kernel or machine; 1 is the same.".to_owned(),
        blocks,
    })
}

fn machine(summary: &WorkSummary, cpus: &[NamedCpu<'_>]) -> Section {
    let mut blocks: Vec<Block> = Vec::new();
    for doc in &summary.nodes {
        for warning in &doc.warnings {
            let node_prefix = if summary.nodes.len() > 1 { format!("{}: ", doc.node) } else { String::new() };
            blocks.push(Block::Warning {
                text: format!("{node_prefix}{}", warning.message),
                advice: warning.advice.clone(),
            });
        }
    }
    for doc in &summary.nodes {
        let lines = text::head_lines(doc).into_iter();
        blocks.push(Block::Facts(lines.map(|(label, text)| (label.to_owned(), text)).collect()));
    }
    let mut fields = vec![
        &cpu::CPU,
        &cpu::ITERATIONS,
        &cpu::CALIBRATED_NS,
        &cpu::DURATION_NS,
        &cpu::ALL_ITERATIONS,
        &cpu::INCOMPLETE,
    ];
    if summary.nodes.len() > 1 {
        fields.insert(0, &cpu::NODE);
    }
    let mut table = Table::new(&fields).captioned("Loops that worked");
    cpus.iter().take(ROWS).for_each(|shown| {
        table.row(&fields, shown.cpu);
    });
    blocks.push(Block::Table(table));
    Section {
        opening: Opening::None,
        id: "machine",
        title: "Machine, clock and losses".to_owned(),
        short: "Machine",
        reading: "Read this before believing the numbers: what was done and how, how well the clock is known, and what was lost or \
                  could not be seen."
            .to_owned(),
        blocks,
    }
}
