//! The page of what a timer interrupt costs.

use becalm_report::Value;
use becalm_report::form::field::{Field, columns};
use becalm_report::form::table::Table;
use becalm_report::html::{Block, Chart, Grade, Opening, Page, Section};

use super::figures::{CONTRIBUTION, HANDLER, MODE, MODE_OF, ModeRow, PROCESSOR};
use super::{TickReport, charts, contributions, modes};
use crate::analysis::tick::{Analysis, TRIMMED};

/// Up to this share of a CPU lost per 1,000 interrupts a second, in percent, an interrupt is cheap: the processors of the paper.
const CHEAP_PERCENT: f64 = 1.0;

/// The page of what an interrupt costs, made by `program`: `becalm 0.1.0`.
pub(super) fn page(report: &TickReport, program: &str) -> Page {
    let mut sections = vec![headline(report), lost(report), shares(report), parts(report), model(report)];
    sections.extend(live(report));
    let names: Vec<&str> = report.rows.iter().map(|row| row.analysis.name.as_str()).collect();
    let subtitle = match &report.live {
        Some((campaign, _)) => format!("{} \u{b7} Linux {}", campaign.node, campaign.machine.kernel),
        None => names.join(", "),
    };
    Page {
        title: "What a timer interrupt costs".to_owned(),
        subtitle,
        sections,
        foot: vec![
            format!("Made by {program}. The method is that of D. Tsafrir, ExpCS 2007, section 2."),
            "Drawn with Apache ECharts 6.1.0, which is part of this file; nothing is loaded from elsewhere.".to_owned(),
        ],
    }
}

fn headline(report: &TickReport) -> Section {
    let mut blocks = Vec::new();
    let dearest = report.rows.iter().max_by(|a, b| a.analysis.sum_percent().total_cmp(&b.analysis.sum_percent()));
    if let Some(row) = dearest {
        let analysis = &row.analysis;
        let sum = analysis.sum_percent();
        let share = analysis.indirect_share_median().map_or_else(|| "-".to_owned(), |share| Value::Share(share).cell());
        let on = if report.rows.len() > 1 { format!(" on {}", analysis.name) } else { String::new() };
        blocks.push(Block::Verdict {
            tone: if sum <= CHEAP_PERCENT { Grade::Good } else { Grade::Fair },
            text: format!("1,000 timer interrupts a second take {} % of a CPU{on}.", Value::Points(sum).cell()),
            basis: format!(
                "Of what they take, {share} is indirect: caches and predictors that are cold again. Each of {} pairs of rates says \
                 so for itself, and that is their median.",
                analysis.pairs.len()
            ),
        });
    }
    let mut names = vec!["name", "trap_percent", "handler_percent", "indirect_percent", "indirect_trimmed_percent"];
    if report.rows.iter().any(|row| row.indirect.is_some()) {
        names.extend(["indirect_percent_low", "indirect_percent_high"]);
    }
    names.extend(["sum_percent", "pairs", "indirect_share_median", "residual_max_ratio", "r2_ratio", "line_percent"]);
    let fields = columns(PROCESSOR, &names);
    let mut table = Table::new(&fields).captioned("Percent of a CPU that 1,000 timer interrupts a second take");
    report.rows.iter().for_each(|row| {
        table.row(&fields, row);
    });
    blocks.push(Block::Table(table));
    let rows: Vec<ModeRow> = report
        .rows
        .iter()
        .filter(|row| !row.analysis.other_handlers.is_empty())
        .flat_map(|row| modes(&row.analysis))
        .collect();
    if !rows.is_empty() {
        let mut fields: Vec<&Field<_>> = vec![&MODE_OF];
        fields.extend(MODE);
        let mut table = Table::new(&fields).captioned("The same with each handler");
        rows.iter().for_each(|row| {
            table.row(&fields, row);
        });
        blocks.push(Block::Table(table));
    }
    blocks.push(Block::Note(format!(
        "\u{201c}Indirect\u{201d} is the plain mean over the pairs of rates, \u{201c}trimmed\u{201d} that without the {} % of them \
         with the least and the {0} % with the greatest cost.",
        (TRIMMED * 100.0).round()
    )));
    Section {
        opening: Opening::None,
        id: "cost",
        title: "Trap, handler, and what comes after".to_owned(),
        short: "Cost",
        reading: String::new(),
        blocks,
    }
}

/// A chart for each processor.
fn drawn(report: &TickReport, draw: fn(usize, &Analysis) -> Chart) -> Vec<Block> {
    let rows = report.rows.iter().take(charts::PROCESSORS).enumerate();
    let mut blocks = vec![Block::Charts(rows.map(|(at, row)| draw(at, &row.analysis)).collect())];
    if report.rows.len() > charts::PROCESSORS {
        blocks.push(Block::Note(format!("The first {} of {} processors.", charts::PROCESSORS, report.rows.len())));
    }
    blocks
}

fn lost(report: &TickReport) -> Section {
    Section {
        opening: Opening::None,
        id: "processes",
        title: "By the number of processes".to_owned(),
        short: "Processes",
        reading: "What is lost of the CPU while so many processes share it; by the time that a system without ticks would need."
            .to_owned(),
        blocks: drawn(report, charts::lost),
    }
}

fn shares(report: &TickReport) -> Section {
    Section {
        opening: Opening::None,
        id: "indirect",
        title: "The indirect part, pair by pair".to_owned(),
        short: "Indirect part",
        reading: "Each point is a pair of rates: where they lie together the method measures one thing; pairs of close rates, on \
                  the left, scatter most. Pairs whose higher rate was measured no slower have no point."
            .to_owned(),
        blocks: drawn(report, charts::shares),
    }
}

fn parts(report: &TickReport) -> Section {
    let mut blocks = drawn(report, charts::parts);
    for row in report.rows.iter().take(charts::PROCESSORS) {
        let fields: Vec<&Field<_>> = CONTRIBUTION.iter().collect();
        let mut table = Table::new(&fields).captioned(&format!("{}: parts by rate", row.analysis.name));
        contributions(&row.analysis).iter().for_each(|part| {
            table.row(&fields, part);
        });
        blocks.push(Block::Table(table));
    }
    Section {
        opening: Opening::None,
        id: "parts",
        title: "What the parts take at each rate".to_owned(),
        short: "Parts",
        reading: "One upon the other: the trap, the handler, and the indirect cost. Broken lines are a handler that did not run \
                  while the work was timed, beside the same indirect cost."
            .to_owned(),
        blocks,
    }
}

fn model(report: &TickReport) -> Section {
    Section {
        opening: Opening::None,
        id: "model",
        title: "The model beside the measurements".to_owned(),
        short: "Model",
        reading: "The time of the work by that on a system without any tick: measured, and as interrupts times their cost explain \
                  it."
        .to_owned(),
        blocks: drawn(report, charts::model),
    }
}

/// What a campaign has beside: the kernel's record of its handler, and what is to be known.
fn live(report: &TickReport) -> Option<Section> {
    let (campaign, live) = report.live.as_ref()?;
    let fields: Vec<&Field<_>> = HANDLER.iter().collect();
    let mut table = Table::new(&fields).captioned("The kernel\u{2019}s record of the handler beside the model");
    live.handlers.iter().for_each(|row| {
        table.row(&fields, row);
    });
    let warning = |text: &String| Block::Warning { text: text.clone(), advice: String::new() };
    let mut blocks: Vec<Block> = campaign.warnings.iter().chain(&campaign.not_counted).map(warning).collect();
    let (plan, machine) = (&campaign.plan, &campaign.machine);
    let facts = [
        ("processor", machine.processor.clone()),
        ("hypervisor", machine.hypervisor.clone().unwrap_or_else(|| "none".to_owned())),
        ("CPU", plan.cpu.to_string()),
        ("class", plan.sched.clone()),
        ("rounds", format!("{} of {}", live.rounds.count, plan.rounds)),
        ("seed", plan.seed.to_string()),
    ];
    blocks.push(Block::Facts(facts.map(|(name, text)| (name.to_owned(), text)).to_vec()));
    blocks.push(Block::Table(table));
    Some(Section {
        opening: Opening::None,
        id: "machine",
        title: "Machine, handler and losses".to_owned(),
        short: "Machine",
        reading: "Read this before believing the numbers.".to_owned(),
        blocks,
    })
}
