//! A job of `becalm-mpi` with several grains, one run after the other: a table, and `becalm.mpi-sweep/1`.

use std::io::{self, Write};

use becalm_analyze::job::JobPhases;
use becalm_model::phases::{CollectiveCall, JobDoc};
use serde::Serialize;

use super::run::{PhaseRow, job, job_words, phase_row, total, warnings};
use crate::form::field::{Field, Object, fields};
use crate::form::figure::Time;
use crate::form::paragraph::{line, paragraph};
use crate::form::sheet::Sheet;
use crate::form::table::Table;
use crate::report::Report;

/// The runs of a job, a grain each.
pub struct JobGrainsReport<'a> {
    /// The path of each run and its phases, in the order in which they were measured; at least one.
    pub runs: &'a [(String, JobPhases)],
}

/// The largest time of each phase over the ranks, compute and collective together, and the run that it is from.
struct GrainRow {
    run: String,
    total: PhaseRow,
}

fields! {
    ROW, row: GrainRow {
        RUN = "run", "run", |row| row.run.clone();
        GRAIN_NS = "grain_ns", "grain", |row| Time(row.total.grain_ns);
        MEAN_NS = phase_row::MEAN_NS => |row| &row.total;
        MEDIAN_NS = phase_row::MEDIAN_NS => |row| &row.total;
        WORST_NS = phase_row::WORST_NS => |row| &row.total;
        MAX_NS = phase_row::MAX_NS => |row| &row.total;
        SLOWDOWN_RATIO = phase_row::SLOWDOWN_RATIO => |row| &row.total;
    }
}

#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub(crate) struct GrainsDocument {
    ranks: u32,
    nodes: u32,
    phases: u64,
    collective: CollectiveCall,
    bytes: u64,
    sched: String,
    rows: Vec<Object<GrainRow>>,
    warnings: Vec<String>,
}

impl JobGrainsReport<'_> {
    fn rows(&self) -> impl Iterator<Item = GrainRow> {
        self.runs.iter().filter_map(|(run, phases)| Some(GrainRow { run: run.clone(), total: total(phases)? }))
    }

    /// What limits the numbers of each run, each said once.
    fn warnings(&self) -> Vec<String> {
        let mut all: Vec<String> = Vec::new();
        for warning in self.runs.iter().flat_map(|(_, phases)| warnings(phases)) {
            if !all.contains(&warning) {
                all.push(warning);
            }
        }
        all
    }
}

impl Report for JobGrainsReport<'_> {
    fn schema(&self) -> &'static str {
        "becalm.mpi-sweep/1"
    }

    fn document(&self) -> impl Serialize {
        let JobDoc { ranks, nodes, phases, collective, bytes, sched, .. } = job(&self.runs[0].1).clone();
        let rows = self.rows().map(|row| Object::new(&row)).collect();
        GrainsDocument { ranks, nodes, phases, collective, bytes, sched, rows, warnings: self.warnings() }
    }

    fn text(&self, out: &mut Sheet<'_>) -> io::Result<()> {
        for (run, phases) in self.runs {
            line(out, "job", &format!("{run}: {}", job_words(phases)))?;
        }
        for warning in self.warnings() {
            paragraph(out, "  ! ", &warning)?;
        }
        writeln!(out)?;
        let shown: Vec<&Field<GrainRow>> = ROW.iter().collect();
        let mut table = Table::new(&shown);
        self.rows().for_each(|row| table.row(&shown, &row));
        table.print(out)?;
        paragraph(
            out,
            "  ",
            "each phase's largest time over the ranks, compute and collective together (qtbt); worst 1%: the mean of the largest \
             hundredth; over grain: the average by the work",
        )
    }
}
