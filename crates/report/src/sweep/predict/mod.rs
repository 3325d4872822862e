//! Predictions over several noises, payloads and alignments: tables, a surface, and `becalm.predict-sweep/1`.

mod view;

use becalm_model::node::Warning;
use becalm_scale::collective::Collective;
use becalm_scale::predict::{Question, RankPrediction};
use becalm_scale::{Alignment, Noise};
use becalm_units::Nanos;
use serde::Serialize;

use super::figure::RANKS;
use super::{Axes, Axis, short_names};
use crate::catalogue;
use crate::form::field::{Field, Object, fields};
use crate::form::figure::Ratio;
use crate::form::sheet::Form;
use crate::form::value::grouped;
use crate::html::{AxisUnit, Page};
use crate::predict::{self, PredictedRow, job_of};
use crate::report::Report;

/// One of the noises of a sweep.
#[derive(Clone, Debug)]
pub struct SweptNoise {
    /// The noise as given on the command line.
    pub asked: String,
    /// The recording or the formula behind it.
    name: String,
    nodes: usize,
    cpus: usize,
    detours: usize,
    noise_ratio: f64,
    alignment: Alignment,
    alignment_name: &'static str,
    ranks_per_node: u64,
    warnings: Vec<Warning>,
}

impl SweptNoise {
    /// The properties of a noise for a sweep, with `ranks_per_node` ranks on each node.
    pub fn new(asked: String, name: String, noise: &Noise, ranks_per_node: u64, warnings: Vec<Warning>) -> Self {
        Self {
            asked,
            name,
            nodes: noise.nodes().len(),
            cpus: noise.traces().count(),
            detours: predict::detours(noise),
            noise_ratio: noise.noise_ratio(),
            alignment: noise.alignment(),
            alignment_name: predict::alignment(noise),
            ranks_per_node,
            warnings,
        }
    }
}

/// The answer for one value of each parameter.
#[derive(Clone, PartialEq, Debug)]
pub struct SweptCell {
    /// The index of the noise.
    pub noise: usize,
    /// The coalescing window; zero for none.
    pub coalesced: Nanos,
    /// Whether the noise of all ranks coincides.
    pub synchronized: bool,
    /// The payload of the collective, in bytes.
    pub bytes: u64,
    /// The prediction, with its ranks, grain and collective.
    pub row: RankPrediction,
}

/// Predictions for several noises: the question and the answers.
pub struct PredictSweepReport<'a> {
    /// The noises.
    pub noises: &'a [SweptNoise],
    /// The names of the sources removed from all of them.
    pub without: &'a [String],
    /// The settings common to all cells.
    pub question: Question,
    /// The collectives.
    pub collectives: &'a [Collective],
    /// The payloads, in bytes.
    pub bytes: &'a [u64],
    /// Whether noise coincides on all ranks.
    pub synchronized: &'a [bool],
    /// The coalescing windows; zero for none.
    pub coalesced: &'a [Nanos],
    /// The grains (compute time of a phase).
    pub grains: &'a [Nanos],
    /// The numbers of ranks.
    pub ranks: &'a [u64],
    /// One cell per combination, in this order: collective, bytes, synchronized, coalescing window, noise, grain, ranks. The ranks vary fastest.
    pub cells: &'a [SweptCell],
    /// The node-hours of such jobs per year, if known.
    pub node_hours: Option<f64>,
}

fields! {
    noise: SweptNoise {
        NOISE = "noise", "noise", |row| row.asked.clone();
        NODES = "nodes", "nodes", |row| row.nodes;
        CPUS = "cpus", "CPUs", |row| row.cpus;
        RANKS_PER_NODE = "ranks_per_node", "ranks a node", |row| row.ranks_per_node;
        DETOURS = "detours", "detours", |row| row.detours;
        NOISE_RATIO = catalogue::NOISE_RATIO, |row| Ratio(row.noise_ratio);
    }
}

#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub(crate) struct SweepDocument<'a> {
    noises: Vec<NoiseDocument<'a>>,
    without: &'a [String],
    seed: u64,
    replicas: u64,
    node_hours: Option<f64>,
    network: Option<String>,
    cells: Vec<CellDocument<'a>>,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
struct NoiseDocument<'a> {
    noise: &'a str,
    name: &'a str,
    nodes: usize,
    cpus: usize,
    detours: usize,
    noise_ratio: f64,
    ranks_per_node: u64,
    alignment: &'static str,
    warnings: &'a [Warning],
}

#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
struct CellDocument<'a> {
    noise: &'a str,
    synchronized: bool,
    coalesced_ns: i64,
    bytes: Option<u64>,
    #[serde(flatten)]
    row: Object<PredictedRow>,
}

impl PredictSweepReport<'_> {
    fn has_messages(&self) -> bool {
        self.collectives.iter().any(|collective| *collective != Collective::Ideal)
    }

    fn line(&self, cell: &SweptCell) -> PredictedRow {
        PredictedRow::new(cell.row.clone(), self.question.replicas).with_node_hours(self.node_hours)
    }

    fn noise_document<'a>(&self, noise: &'a SweptNoise) -> NoiseDocument<'a> {
        NoiseDocument {
            noise: &noise.asked,
            name: &noise.name,
            nodes: noise.nodes,
            cpus: noise.cpus,
            detours: noise.detours,
            noise_ratio: noise.noise_ratio,
            ranks_per_node: noise.ranks_per_node,
            alignment: noise.alignment_name,
            warnings: &noise.warnings,
        }
    }

    fn cell_document(&self, cell: &SweptCell) -> CellDocument<'_> {
        CellDocument {
            noise: &self.noises[cell.noise].asked,
            synchronized: cell.synchronized,
            coalesced_ns: cell.coalesced.get(),
            bytes: (cell.row.collective != Collective::Ideal).then_some(cell.bytes),
            row: Object::new(&self.line(cell)),
        }
    }

    fn short_names(&self) -> Vec<String> {
        short_names(&self.noises.iter().map(|noise| noise.asked.clone()).collect::<Vec<_>>())
    }

    fn axes(&self) -> Axes {
        let window = |window: &Nanos| if *window == Nanos::ZERO { "no".to_owned() } else { window.to_string() };
        let yes = |yes: &bool| if *yes { "yes" } else { "no" }.to_owned();
        let time = |time: Nanos| time.get() as f64;
        let count = |count: &u64| grouped(*count);
        let names = self.collectives.iter().map(Collective::to_string).collect();
        Axes::new(vec![
            Axis::named("collective", names).apart(),
            Axis::numbered("bytes", self.bytes, AxisUnit::Count, count, |bytes| bytes as f64).apart(),
            Axis::named("synchronized", self.synchronized.iter().map(yes).collect()).apart(),
            Axis::numbered("coalesced", self.coalesced, AxisUnit::Time, window, time),
            Axis::named("noise", self.short_names()),
            Axis::numbered("grain", self.grains, AxisUnit::Time, Nanos::to_string, time),
            Axis::numbered(RANKS, self.ranks, AxisUnit::Ranks, count, |ranks| ranks as f64),
        ])
    }

    /// The columns of the table of noises.
    fn noise_fields(&self) -> Vec<&'static Field<SweptNoise>> {
        let mut shown: Vec<&'static Field<SweptNoise>> = vec![&noise::NOISE];
        if self.noises.iter().any(|noise| noise.cpus > 1) {
            shown.push(&noise::NODES);
            shown.push(&noise::CPUS);
        }
        // If they differ, the line below shows only those of the first.
        if self.noises.iter().any(|noise| noise.ranks_per_node != self.noises[0].ranks_per_node) {
            shown.push(&noise::RANKS_PER_NODE);
        }
        shown.push(&noise::DETOURS);
        shown.push(&noise::NOISE_RATIO);
        shown
    }

    /// The settings common to all cells, in words.
    fn job(&self) -> String {
        let alignment = self.noises.first().map_or(Alignment::Independent, |noise| noise.alignment);
        job_of(&self.question, alignment, self.collectives)
    }

    /// The warnings of all noises, each once, with the name of its noise if there are several.
    fn warnings(&self) -> Vec<Warning> {
        let mut said: Vec<&Warning> = Vec::new();
        let mut warnings = Vec::new();
        for noise in self.noises {
            for warning in &noise.warnings {
                if !said.contains(&warning) {
                    said.push(warning);
                    let prefix = if self.noises.len() > 1 { format!("{}: ", noise.asked) } else { String::new() };
                    warnings.push(Warning { message: format!("{prefix}{}", warning.message), ..warning.clone() });
                }
            }
        }
        warnings
    }
}

/// The slowdown; if there are too many ranks for a replay, the expectation by order statistics.
fn slowdown(cell: &SweptCell) -> Option<f64> {
    cell.row.slowdown.map(|slowdown| slowdown.mean).or(cell.row.expected_ratio)
}

impl Report for PredictSweepReport<'_> {
    fn schema(&self) -> &'static str {
        "becalm.predict-sweep/1"
    }

    fn document(&self) -> impl Serialize {
        SweepDocument {
            noises: self.noises.iter().map(|noise| self.noise_document(noise)).collect(),
            without: self.without,
            seed: self.question.seed,
            replicas: self.question.replicas,
            node_hours: self.node_hours,
            network: self.has_messages().then(|| self.question.network.to_string()),
            cells: self.cells.iter().map(|cell| self.cell_document(cell)).collect(),
        }
    }

    fn view(&self, _: Form) -> Page {
        view::page(self)
    }
}
