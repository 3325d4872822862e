//! CPU by CPU: what each lost, and when.

use std::cmp::Ordering;

use becalm_analyze::picture::Picture;
use becalm_analyze::summary::Summary;

use super::chart::{Chart, Heat, HeatLabel, Spec};
use super::page::{Block, Section};
use super::{HtmlTable, run};
use crate::Value;
use crate::field::columns;
use crate::figures::{CPU, CpuRow, interval_note};
use crate::value::{grouped, time};
use crate::{sure, text};

/// How many CPUs the table has at most: the noisiest.
const ROWS: usize = 256;

pub(super) fn section(summary: &Summary, picture: &Picture) -> Option<Section> {
    let worst = summary.cpus.iter().max_by(|a, b| {
        let noise = |cpu: &becalm_analyze::summary::CpuSummary| cpu.figures.noise_ratio().unwrap_or(0.0);
        noise(a).partial_cmp(&noise(b)).unwrap_or(Ordering::Equal)
    })?;
    let mut most = format!(
        "{} lost most: {} of its time.",
        run::place(summary, &worst.node, worst.cpu),
        worst.figures.noise_ratio().map_or(Value::Missing, Value::Ratio).cell()
    );
    if summary.cpus.len() > 1 {
        let all = CpuRow::total(summary);
        let noise = (columns(CPU, &["noise_ratio"])[0].get)(&all).cell();
        most.push_str(&format!(" All {} together lost {noise}.", grouped(summary.cpus.len() as u64)));
    }
    let mut blocks = vec![Block::Text(most.clone())];
    let heat = &picture.heat;
    if picture.lengths.count() > 0 {
        let rows = heat.rows.iter().map(|row| {
            let node = summary.nodes.get(row.node as usize).map_or("", |node| node.doc.node.as_str());
            let short = if summary.nodes.len() > 1 { format!("{node} {}", row.cpus) } else { row.cpus.to_string() };
            let long = run::place(summary, node, &row.cpus);
            HeatLabel { short, long }
        });
        let rows: Vec<HeatLabel> = rows.collect();
        let spec = Spec::Heat(Heat {
            start_ns: heat.start_ns,
            cell_ns: heat.cell_ns,
            last_cell_ns: heat.last_cell_ns,
            row_title: "CPU",
            cells: heat.rows.iter().map(|row| row.noise_ns.clone()).collect(),
            rows,
        });
        let height = (heat.rows.len() as u32 * 22).clamp(60, 420) + 110;
        let (title, label) =
            (String::new(), format!("What each CPU lost in each stretch of {}. {most}", time(heat.cell_ns)));
        blocks.push(Block::Charts(vec![Chart { id: "heat", title, label, height, spec, figures: None }]));
        let mut note = format!("A cell is {} wide.", time(heat.cell_ns));
        if heat.together() > 1 {
            note.push_str(&format!(
                " A row is up to {} CPUs that follow each other, and a cell shows the one that lost most.",
                heat.together()
            ));
        }
        if summary.nodes.len() > 1 {
            note.push_str(" Each node\u{2019}s time begins with its own recording.");
        }
        blocks.push(Block::Note(note));
    }
    blocks.push(Block::Table(table(summary)));
    let rows: Vec<CpuRow> = summary.cpus.iter().map(CpuRow::of).collect();
    let notes = text::notes(summary, &rows, |row| interval_note(&row.figures));
    blocks.extend(notes.into_iter().map(|(place, note)| Block::Note(format!("{place}: {note}."))));
    blocks.extend(
        sure::equals(summary).into_iter().map(|(who, what)| Block::Text(format!("Equals compared, {who}: {what}."))),
    );
    // Without a detour there is no map to read.
    let (title, reading) = match picture.lengths.count() {
        0 => ("CPUs", ""),
        _ => (
            "CPUs against time",
            "Each row is a CPU and each column a stretch of time, the brighter against the ground the more of it was lost: \
             a row that stands out is a CPU with noise of its own, a column is something that struck all at once.",
        ),
    };
    Some(Section { id: "cpus", title: title.to_owned(), short: "CPUs", reading: reading.to_owned(), blocks })
}

fn table(summary: &Summary) -> HtmlTable {
    let mut names = vec!["cpu", "detours", "rate_hz", "noise_ratio", "noise_ratio_low", "noise_ratio_high"];
    names.extend(["median_ns", "mean_ns", "p99_ns", "p999_ns", "max_ns"]);
    if summary.nodes.len() > 1 {
        names.insert(0, "node");
    }
    let fields = columns(CPU, &names);
    let mut rows: Vec<CpuRow> = summary.cpus.iter().map(CpuRow::of).collect();
    let all = rows.len();
    let mut table = HtmlTable::new("CPUs", &fields);
    table.note = "low and high: the noise ratio\u{2019}s 95 % interval (circular block bootstrap).".to_owned();
    if all > ROWS {
        let noise = |row: &CpuRow| row.figures.noise_ratio().unwrap_or(0.0);
        rows.sort_by(|a, b| noise(b).partial_cmp(&noise(a)).unwrap_or(Ordering::Equal));
        rows.truncate(ROWS);
        table.note.push_str(&format!(" The noisiest {ROWS} of {} CPUs.", grouped(all as u64)));
    }
    rows.iter().for_each(|row| {
        table.row(&fields, row);
    });
    if all > 1 {
        table.total(&fields, &CpuRow::total(summary), "all");
    }
    table
}
