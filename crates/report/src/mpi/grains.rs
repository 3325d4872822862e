//! A job of `becalm-mpi` with several grains, one run after the other: a table, and `becalm.mpi-sweep/1`.

use becalm_analyze::job::JobPhases;
use becalm_model::phases::{CollectiveCall, JobDoc};
use serde::Serialize;

use super::run::{PhaseRow, job, job_words, phase_row, total, warnings};
use crate::form::field::{Field, Object, fields};
use crate::form::figure::Time;
use crate::form::section::{Block, Opening, Page, Section};
use crate::form::sheet::Form;
use crate::form::table::Table;
use crate::report::Report;

/// The runs of a job, one per grain.
pub struct JobGrainsReport<'a> {
    /// The path and the phases of each run, in the order of their measurement; at least one.
    pub runs: &'a [(String, JobPhases)],
}

/// The largest time of each phase over the ranks, compute and collective together, and its run.
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

    /// Everything that limits the numbers of each run, without repetitions.
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

    fn view(&self, _: Form) -> Page {
        let job = |(run, phases): &(String, JobPhases)| ("job".to_owned(), format!("{run}: {}", job_words(phases)));
        let mut head = vec![Block::Facts(self.runs.iter().map(job).collect())];
        head.extend(self.warnings().into_iter().map(Block::warning));
        let fields: Vec<&Field<GrainRow>> = ROW.iter().collect();
        let rows: Vec<GrainRow> = self.rows().collect();
        let meaning = "each phase's largest time over the ranks, compute and collective together (qtbt); worst 1%: the mean of the \
                       largest hundredth; over grain: the average by the work";
        let table = vec![
            Block::Table(Table::filled(&fields, &rows).captioned("Phases of each grain")),
            Block::Text(meaning.to_owned()),
        ];
        let title = "A parallel job with several grains";
        Page {
            title: title.to_owned(),
            subtitle: String::new(),
            sections: vec![
                Section::new("jobs", "Jobs", "The jobs", head),
                Section::new("grains", "Grains", title, table).opened(Opening::Gap),
            ],
            foot: Vec::new(),
        }
    }
}
