//! The cost of a tick for a terminal.

use std::io::{self, Write};

use becalm_report::form::field::{Field, columns};
use becalm_report::form::paragraph::paragraph;
use becalm_report::form::plot::{self, Curve};
use becalm_report::form::sheet::Sheet;
use becalm_report::form::table::Table;
use becalm_report::form::value::{three_digits, time};

use super::figures::{CONTRIBUTION, EVENT, HANDLER, MODE, MODE_OF, ModeRow, PROCESSOR, RATE, by_rate};
use super::{TickReport, contributions, modes, panel, panel::Panel};
use crate::analysis::tick::{Analysis, CampaignAnalysis};
use crate::documents::tick::Campaign;
use crate::report::events;

/// Prints the costs, and for each processor the panel of its pairs and the model beside the measurements.
pub(super) fn render(report: &TickReport, out: &mut Sheet<'_>) -> io::Result<()> {
    if let Some((campaign, live)) = &report.live {
        heading(campaign, live, out)?;
    }
    writeln!(out, "Percent of a CPU that 1,000 timer interrupts a second take")?;
    let with_rounds = report.rows.iter().any(|row| row.sum.is_some());
    let mut names = vec!["name", "trap_percent", "handler_percent", "indirect_percent"];
    if with_rounds {
        names.extend(["indirect_percent_low", "indirect_percent_high"]);
    }
    names.extend(["indirect_trimmed_percent", "sum_percent"]);
    if with_rounds {
        names.extend(["sum_percent_low", "sum_percent_high"]);
    }
    names.extend(["pairs", "indirect_share_median"]);
    let fields = columns(PROCESSOR, &names);
    let mut table = Table::new(&fields);
    report.rows.iter().for_each(|row| table.row(&fields, row));
    table.print(out)?;
    handlers_in_its_place(report, out)?;
    writeln!(out)?;
    writeln!(out, "How well overhead = interrupts x cost explains the times")?;
    let fields = columns(PROCESSOR, &["name", "r2_ratio", "residual_max_ratio", "line_percent", "line_r2_ratio"]);
    let mut table = Table::new(&fields);
    report.rows.iter().for_each(|row| table.row(&fields, row));
    table.print(out)?;
    for row in &report.rows {
        processor(&row.analysis, out)?;
    }
    if let Some((campaign, live)) = &report.live {
        handlers(live, out)?;
        counters(live, out)?;
        remarks(campaign, live, out)?;
    }
    Ok(())
}

/// The costs with each handler, where a table gives several.
fn handlers_in_its_place(report: &TickReport, out: &mut Sheet<'_>) -> io::Result<()> {
    let several = report.rows.iter().filter(|row| !row.analysis.other_handlers.is_empty());
    let rows: Vec<ModeRow> = several.flat_map(|row| modes(&row.analysis)).collect();
    if rows.is_empty() {
        return Ok(());
    }
    writeln!(out)?;
    let title =
        "The same with each handler: times are those with the first one, and the indirect cost follows from them";
    paragraph(out, "", title)?;
    let names = ["mode", "trap_percent", "handler_percent", "indirect_percent", "sum_percent", "sum_trimmed_percent"];
    let mut fields = columns(MODE, &names);
    fields.insert(0, &MODE_OF);
    let mut table = Table::new(&fields);
    rows.iter().for_each(|row| table.row(&fields, row));
    table.print(out)
}

fn heading(campaign: &Campaign, live: &CampaignAnalysis, out: &mut Sheet<'_>) -> io::Result<()> {
    let (plan, machine) = (&campaign.plan, &campaign.machine);
    let on = machine.hypervisor.as_ref().map_or_else(String::new, |name| format!(", a virtual machine of {name}"));
    let text = format!(
        "CPU {} of {} (Linux {}{on}); {} of {} rounds complete, sorts of {} KiB in {}, class {}, seed {}; \
         kernel.perf_event_max_sample_rate {}{}",
        plan.cpu,
        campaign.node,
        machine.kernel,
        live.rounds.count,
        plan.rounds,
        campaign.array_bytes >> 10,
        if plan.processes { "processes" } else { "threads" },
        plan.sched,
        plan.seed,
        campaign.max_sample_rate_hz,
        campaign
            .cpu_time_max_percent
            .map_or_else(String::new, |percent| format!(", kernel.perf_cpu_time_max_percent {percent}")),
    );
    paragraph(out, "", &text)?;
    writeln!(out)
}

fn processor(analysis: &Analysis, out: &mut Sheet<'_>) -> io::Result<()> {
    writeln!(out)?;
    let title = "indirect cost by each pair of rates, in percent per 1,000; marks are numbers of processes";
    paragraph(out, "", &format!("{}: {title}", analysis.name))?;
    panel::draw(&analysis.pairs, Panel::costs(analysis.indirect_percent), out)?;
    if let Some(share) = analysis.indirect_share_median() {
        writeln!(out)?;
        let title = "share of the indirect cost in what each pair of rates lost, in percent";
        paragraph(out, "", &format!("{}: {title}", analysis.name))?;
        panel::draw(&analysis.pairs, Panel::shares(share * 100.0), out)?;
    }
    writeln!(out)?;
    let title = "share of the CPU that the parts of an interrupt take at each rate, by the model";
    paragraph(out, "", &format!("{}: {title}", analysis.name))?;
    let parts = contributions(analysis);
    // Where there is one handler only it needs no name.
    let from = if analysis.other_handlers.is_empty() { 1 } else { 0 };
    let fields: Vec<&Field<_>> = CONTRIBUTION.iter().skip(from).collect();
    let mut table = Table::new(&fields);
    parts.iter().for_each(|row| table.row(&fields, row));
    table.print(out)?;
    let rows = by_rate(&analysis.comparisons);
    if rows.is_empty() {
        return paragraph(out, "  ! ", "the model leaves this CPU no time at the highest rate, and predicts nothing");
    }
    writeln!(out)?;
    let title = "time of the work by that without any tick, mean over the numbers of processes";
    paragraph(out, "", &format!("{}: {title}", analysis.name))?;
    let fields = columns(RATE, &["rate_hz", "observed_ratio", "predicted_ratio", "residual_ratio"]);
    let mut table = Table::new(&fields);
    rows.iter().for_each(|row| table.row(&fields, row));
    table.print(out)?;
    let curve = |name: &str, value: fn(&super::figures::RateRow) -> f64| Curve {
        name: name.to_owned(),
        points: rows
            .iter()
            .filter(|row| row.rate_hz >= 1.0)
            .map(|row| (row.rate_hz.round() as u64, value(row)))
            .collect(),
    };
    let curves = [curve("observed", |row| row.observed_ratio), curve("predicted", |row| row.predicted_ratio)];
    plot::draw(&curves, &format!("{}: time by that without any tick, by interrupts a second", analysis.name), out)
}

fn handlers(live: &CampaignAnalysis, out: &mut Sheet<'_>) -> io::Result<()> {
    writeln!(out)?;
    writeln!(
        out,
        "The direct part: trap {}, handler {} (mean of all rates), beside the kernel's record of the handler",
        time(live.direct.trap_ns.round() as i64),
        time(live.direct.handler_ns.round() as i64)
    )?;
    let names = ["rate_hz", "handler_ns", "recorded_ratio", "model_ratio", "lost_events"];
    let fields = columns(HANDLER, &names);
    let mut table = Table::new(&fields);
    live.handlers.iter().for_each(|row| table.row(&fields, row));
    table.print(out)
}

fn counters(live: &CampaignAnalysis, out: &mut Sheet<'_>) -> io::Result<()> {
    let title = ": in a sort itself (user), and in what interrupted it (kernel)";
    let names = ["rate_hz", "event", "user_per_sort", "kernel_per_sort", "counted_ratio"];
    let fields = columns(EVENT, &names);
    events::table(title, Table::new(&fields), &fields, &live.events, out)
}

fn remarks(campaign: &Campaign, live: &CampaignAnalysis, out: &mut Sheet<'_>) -> io::Result<()> {
    writeln!(out)?;
    if campaign.machine.hypervisor.is_some() {
        let text = "on a virtual machine the hypervisor's part of every interrupt lies outside of trap and handler, and \
                    counts as indirect here";
        paragraph(out, "  ! ", text)?;
    }
    if live.rounds.sum_percent.is_none() {
        paragraph(out, "  ! ", "one round has no interval; measure at least three (--rounds)")?;
    }
    let top = live.rounds.analysis.comparisons.iter().map(|row| row.rate_hz).fold(0.0, f64::max);
    let taken = live.rounds.analysis.overhead_ratio(top);
    if taken > 0.1 {
        let text = format!(
            "at {}/s the interrupts take {}% of the CPU; a pair of rates overstates the cost by the share that its lower \
             rate takes, the line does not",
            three_digits(top),
            three_digits(taken * 100.0)
        );
        paragraph(out, "  ! ", &text)?;
    }
    events::not_counted(&campaign.not_counted, out)?;
    for warning in &campaign.warnings {
        paragraph(out, "  ! ", warning)?;
    }
    Ok(())
}
