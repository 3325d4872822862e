//! The sections on the cost of a timer interrupt.

use becalm_report::Value;
use becalm_report::form::field::{Field, columns};
use becalm_report::form::known::machine;
use becalm_report::form::plot::Curve;
use becalm_report::form::table::Table;
use becalm_report::form::value::{three_digits, time};
use becalm_report::html::{Block, Chart, Grade, Opening, Page, Section};
use becalm_report::predict::rounded::round;

use super::figures::{
    CONTRIBUTION, EVENT, MODE, MODE_OF, ModeRow, PROCESSOR, RateRow, by_rate, processor, processor_columns,
};
use super::panel::{self, Panel};
use super::{TickReport, charts, contributions, modes};
use crate::analysis::tick::{Analysis, CampaignAnalysis, TRIMMED};
use crate::documents::tick::Campaign;
use crate::report::view::{counters, losses};

/// An interrupt is cheap up to this loss, in percent of a CPU per 1,000 interrupts per second: the processors of the paper.
const CHEAP_PERCENT: f64 = 1.0;

pub(super) fn page(report: &TickReport) -> Page {
    let mut sections = vec![headline(report), costs(report), processors(report)];
    if let Some((campaign, live)) = &report.live {
        sections.push(handlers(live));
        sections.extend(counters(
            ": in a sort itself (user), and in what interrupted it (kernel)",
            &EVENT[1..],
            &live.events,
        ));
        sections.push(losses(&campaign.not_counted, remarks(campaign, live)).opened(Opening::Gap));
    }
    let names: Vec<&str> = report.rows.iter().map(|row| row.analysis.name.as_str()).collect();
    let subtitle = match &report.live {
        Some((campaign, _)) => format!("{} \u{b7} Linux {}", campaign.node, campaign.machine.kernel),
        None => names.join(", "),
    };
    let foot = vec!["The method is that of D. Tsafrir, ExpCS 2007, section 2.".to_owned()];
    Page { title: "Cost of a timer interrupt".to_owned(), subtitle, sections, foot }
}

fn headline(report: &TickReport) -> Section {
    let dearest = report.rows.iter().max_by(|a, b| a.analysis.sum_percent().total_cmp(&b.analysis.sum_percent()));
    let verdict = dearest.map(|row| {
        let analysis = &row.analysis;
        let sum = analysis.sum_percent();
        let share = analysis.indirect_share_median().map_or_else(|| "-".to_owned(), |share| Value::Share(share).cell());
        let on = if report.rows.len() > 1 { format!(" on {}", analysis.name) } else { String::new() };
        Block::Verdict {
            tone: if sum <= CHEAP_PERCENT { Grade::Good } else { Grade::Fair },
            text: format!("1,000 timer interrupts per second take {} % of a CPU{on}.", Value::Points(sum).cell()),
            basis: format!(
                "{share} of that is indirect: cold caches and predictors. This is the median over {} pairs of rates.",
                analysis.pairs.len()
            ),
        }
    });
    let site = report.live.iter().flat_map(|(campaign, live)| {
        [Block::Remark(campaign.node.clone(), machine(&campaign.machine)), Block::Text(setting(campaign, live))]
    });
    Section::new("headline", "Summary", "What does a tick cost?", verdict.into_iter().chain(site).collect())
}

fn setting(campaign: &Campaign, live: &CampaignAnalysis) -> String {
    let plan = &campaign.plan;
    format!(
        "CPU {}, class {}; {} of {} rounds complete, sorts of {} KiB in {}, seed {}; kernel.perf_event_max_sample_rate {}{}",
        plan.cpu,
        plan.sched,
        live.rounds.count,
        plan.rounds,
        campaign.array_bytes >> 10,
        if plan.processes { "processes" } else { "threads" },
        plan.seed,
        campaign.max_sample_rate_hz,
        campaign
            .cpu_time_max_percent
            .map_or_else(String::new, |percent| format!(", kernel.perf_cpu_time_max_percent {percent}")),
    )
}

fn costs(report: &TickReport) -> Section {
    let title = "Percent of a CPU that 1,000 timer interrupts per second take";
    let with_rounds = report.rows.iter().any(|row| row.sum.is_some());
    let mut fields = vec![
        &processor::NAME,
        &processor::TRAP_PERCENT,
        &processor::HANDLER_PERCENT,
        &processor::INDIRECT_PERCENT,
        &processor_columns::INDIRECT_INTERVAL,
        &processor::INDIRECT_TRIMMED_PERCENT,
        &processor::SUM_PERCENT,
        &processor_columns::SUM_INTERVAL,
        &processor::PAIRS,
        &processor::INDIRECT_SHARE_MEDIAN,
    ];
    fields.retain(|field| with_rounds || !field.name.ends_with("interval"));
    let table = Table::filled(&fields, &report.rows).captioned(title);
    let mut blocks = vec![Block::Table(table)];
    let several = report.rows.iter().filter(|row| !row.analysis.other_handlers.is_empty());
    let handlers: Vec<ModeRow> = several.flat_map(|row| modes(&row.analysis)).collect();
    if !handlers.is_empty() {
        let title =
            "The same with each handler: times are those with the first one, and the indirect cost follows from them";
        let names =
            ["mode", "trap_percent", "handler_percent", "indirect_percent", "sum_percent", "sum_trimmed_percent"];
        let mut fields = columns(MODE, &names);
        fields.insert(0, &MODE_OF);
        let table = Table::filled(&fields, &handlers).captioned("The same with each handler");
        blocks.extend([Block::Heading(title.to_owned()), Block::Table(table)]);
    }
    let names = ["name", "r2_ratio", "residual_max_ratio", "line_percent", "line_r2_ratio"];
    blocks.push(Block::Heading("How well overhead = interrupts x cost explains the times".to_owned()));
    let mut fit = Table::filled(&columns(PROCESSOR, &names), &report.rows).captioned("Fit of the model");
    round(&mut fit, 1);
    round(&mut fit, 4);
    blocks.push(Block::Table(fit));
    Section::new("cost", "Cost", title, blocks).opened(Opening::Title(title.to_owned())).explained(&format!(
        "\u{201c}Indirect\u{201d} is the mean over the pairs of rates, \u{201c}trimmed\u{201d} that without the {} % with the \
         lowest and the {0} % with the highest cost.",
        (TRIMMED * 100.0).round()
    ))
}

fn processors(report: &TickReport) -> Section {
    let rows = report.rows.iter().enumerate();
    let mut blocks: Vec<Block> = rows.flat_map(|(at, row)| processor(at, &row.analysis)).collect();
    if report.rows.len() > charts::PROCESSORS {
        let note = format!("Charts of the first {} of {} processors.", charts::PROCESSORS, report.rows.len());
        blocks.push(Block::OnPage(vec![Block::Note(note)]));
    }
    Section::new("processors", "By rate", "Rates, pairs of rates, and the model", blocks).explained(
        "If the points of all pairs agree, the method measures one cost. Pairs of close rates, on the left, scatter most. The parts of an \
         interrupt are stacked: trap, handler, and indirect cost. Dashed lines are a handler that did not run while the work was timed.",
    )
}

/// The panel of the pairs of a processor, and the model compared with the measurements.
fn processor(at: usize, analysis: &Analysis) -> Vec<Block> {
    let titled = |title: &str| Block::Heading(format!("{}: {title}", analysis.name));
    let drawn = |draw: fn(usize, &Analysis) -> Chart| {
        Block::Charts((at < charts::PROCESSORS).then(|| draw(at, analysis)).into_iter().collect())
    };
    let pairs = "indirect cost by pair of rates, in percent per 1,000; marks are numbers of processes";
    let mut blocks = vec![
        Block::OnPage(vec![titled("share of the CPU that is lost, by the number of processes"), drawn(charts::lost)]),
        Block::OnTerminal(vec![
            titled(pairs),
            Block::Lines(panel::lines(&analysis.pairs, &Panel::costs(analysis.indirect_percent))),
        ]),
    ];
    if let Some(share) = analysis.indirect_share_median() {
        blocks.push(titled("share of the indirect cost by pair of rates, in percent"));
        blocks.push(Block::Lines(panel::lines(&analysis.pairs, &Panel::shares(share * 100.0))));
        blocks.push(drawn(charts::shares));
    }
    // A single handler needs no name.
    let from = usize::from(analysis.other_handlers.is_empty());
    let fields: Vec<&Field<_>> = CONTRIBUTION.iter().skip(from).collect();
    blocks.push(titled("share of the CPU that the parts of an interrupt take at each rate, by the model"));
    let parts = Table::filled(&fields, &contributions(analysis)).captioned("Parts by rate");
    blocks.extend([drawn(charts::parts), Block::Table(parts)]);
    let rows = by_rate(&analysis.comparisons);
    if rows.is_empty() {
        let text = "the model predicts nothing, because at the highest rate interrupts would take the whole CPU";
        blocks.push(Block::warning(text));
        return blocks;
    }
    blocks.push(titled("time of the work divided by that without ticks, mean over the numbers of processes"));
    let mut table = Table::whole(&rows).captioned("Times by rate");
    round(&mut table, 1);
    round(&mut table, 2);
    blocks.extend([drawn(charts::model), Block::Table(table)]);
    blocks.push(plot(&analysis.name, &rows));
    blocks
}

fn plot(name: &str, rows: &[RateRow]) -> Block {
    let curve = |name: &str, value: fn(&RateRow) -> f64| {
        let counted = rows.iter().filter(|row| row.rate_hz >= 1.0);
        let points = counted.map(|row| (row.rate_hz.round() as u64, value(row))).collect();
        Curve { name: name.to_owned(), points }
    };
    let curves = vec![curve("observed", |row| row.observed_ratio), curve("predicted", |row| row.predicted_ratio)];
    Block::Plot(format!("{name}: time divided by that without ticks, by interrupts per second"), curves)
}

/// The kernel's record of the handler.
fn handlers(live: &CampaignAnalysis) -> Section {
    let title = format!(
        "Direct cost: trap {}, handler {} (mean of all rates), and the kernel's record of the handler",
        time(live.direct.trap_ns.round() as i64),
        time(live.direct.handler_ns.round() as i64)
    );
    let table = Table::whole(&live.handlers).without_on_terminal(&["added"]);
    let table = table.captioned("The kernel\u{2019}s record of the handler");
    Section::new("handler", "Handler", title.clone(), vec![Block::Table(table)]).opened(Opening::Title(title))
}

fn remarks(campaign: &Campaign, live: &CampaignAnalysis) -> Vec<String> {
    let mut remarks = Vec::new();
    if campaign.machine.hypervisor.is_some() {
        let text = "on a virtual machine, the hypervisor's part of every interrupt is not in trap and handler, and counts as indirect";
        remarks.push(text.to_owned());
    }
    if live.rounds.sum_percent.is_none() {
        remarks.push("one round gives no interval; measure at least three (--rounds)".to_owned());
    }
    let top = live.rounds.analysis.comparisons.iter().map(|row| row.rate_hz).fold(0.0, f64::max);
    let taken = live.rounds.analysis.overhead_ratio(top);
    if taken > 0.1 {
        remarks.push(format!(
            "at {}/s, the interrupts take {}% of the CPU; a pair of rates overstates the cost by the share that its lower rate takes, \
             the line does not",
            three_digits(top),
            three_digits(taken * 100.0)
        ));
    }
    remarks.extend(campaign.warnings.iter().cloned());
    remarks
}
