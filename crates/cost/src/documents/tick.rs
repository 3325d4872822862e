//! A tick campaign: the measurements of `becalm cost tick`, in one JSON document per node, `runs/node=HOST.json` of a bundle.
//!
//! Each finished cell is stored before the next one starts, so an interrupted or killed campaign resumes there.

use std::collections::HashSet;

use becalm_bundle::{Contents, Stored};
use becalm_model::Document;
use becalm_model::event_count::EventCount;
use becalm_model::node::MachineDoc;
use becalm_units::CpuId;
use serde::{Deserialize, Serialize};

use super::check::{LONGEST_NS, check_count, check_time};

/// The version of the document's schema that this program writes and reads.
pub const SCHEMA: &str = Contents::Campaign.schema();

/// Measurements of the same work at several interrupt rates.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct Campaign {
    /// The schema that the document follows: [`SCHEMA`], or it is refused.
    pub schema: String,
    /// Program that wrote it: `becalm 0.1.0`.
    pub program: String,
    /// The host's name, as in the file's name.
    pub node: String,
    /// The machine on which the campaign runs.
    pub machine: MachineDoc,
    /// The measurements in their order.
    pub plan: CampaignPlan,
    /// The bytes that each copy of the work sorts.
    pub array_bytes: u64,
    /// Sorts a timed cell, all copies together.
    pub sorts: u64,
    /// The limit that the kernel set to the rate, in Hz: `kernel.perf_event_max_sample_rate`.
    pub max_sample_rate_hz: u32,
    /// The share of a CPU, in percent, that perf interrupts may take: `kernel.perf_cpu_time_max_percent`; `None` if it
    /// cannot be read.
    pub cpu_time_max_percent: Option<u32>,
    /// Events of the processor that are not counted, with a line for each reason.
    #[serde(default)]
    pub not_counted: Vec<String>,
    /// The finished cells, in the order of measurement.
    pub cells: Vec<CampaignCell>,
    /// Limits of the numbers for the reader.
    pub warnings: Vec<String>,
}

/// The measurements of a campaign in their order.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct CampaignPlan {
    /// The CPU on which all copies of the work run.
    pub cpu: CpuId,
    /// Interrupts a second that are added to the CPU's own, in rising order; 0 adds none.
    pub rates_hz: Vec<u32>,
    /// Numbers of copies of the work that share the CPU.
    pub copies: Vec<u32>,
    /// True if the copies are processes, so the kernel also switches address spaces; threads of one process otherwise, also in older
    /// campaigns.
    #[serde(default)]
    pub processes: bool,
    /// Number of measurements of each cell.
    pub rounds: u32,
    /// The scheduling class of the copies: `other`, `rr:1`.
    pub sched: String,
    /// Planned duration of a cell without added interrupts.
    pub cell_ns: i64,
    /// Gives the order of the cells in each round.
    pub seed: u64,
    /// The events that the processor counts in cells of their own, by their names: `cycles`, `cache_misses`; often none on
    /// a virtual machine.
    #[serde(default)]
    pub events: Vec<String>,
}

impl CampaignPlan {
    /// The cells of a round, each as the added interrupts and the kind of measurement.
    pub fn cells(&self) -> Vec<(u32, CellKind)> {
        let of_rate = |rate_hz: &u32| {
            let rate_hz = *rate_hz;
            let sorts = self.copies.iter().map(|copies| CellKind::Sorts { copies: *copies });
            let events = (!self.events.is_empty()).then_some(CellKind::Events);
            sorts.chain([CellKind::Handler]).chain(events).map(move |kind| (rate_hz, kind)).collect::<Vec<_>>()
        };
        self.rates_hz.iter().flat_map(of_rate).chain([(0, CellKind::Trap)]).collect()
    }
}

/// One measurement of a campaign: a rate of interrupts, in one round.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct CampaignCell {
    /// The number of the round that it was measured in, from 0.
    pub round: u32,
    /// Interrupts a second added to the CPU's own.
    pub added_hz: u32,
    /// The result of its measurement.
    #[serde(flatten)]
    pub measured: CellResult,
}

/// The measurement of a cell.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum CellResult {
    /// The time of a fixed number of sorts, all copies together, from the first one's start to the last one's end.
    Sorts {
        /// Number of copies that shared the CPU.
        copies: u32,
        /// Number of sorts of all copies together; at least 1.
        sorts: u64,
        /// Time of all sorts together, in nanoseconds; above 0.
        elapsed_ns: i64,
        /// Timer interrupts that the CPU took in `window_ns`.
        interrupts: u64,
        /// The time between both readings of the count of interrupts: a little longer than the sorts.
        window_ns: i64,
    },
    /// The kernel's own record of its timer interrupts while one copy sorted.
    Handler {
        /// Interrupts recorded from entry to exit.
        interrupts: u64,
        /// Time from entry to exit of all of them.
        handler_ns: i64,
        /// For how long the kernel recorded, in nanoseconds; above 0.
        window_ns: i64,
        /// Events that the kernel lost.
        lost_events: u64,
    },
    /// System calls that do nothing, one after the other.
    Trap {
        /// Number of calls.
        calls: u64,
        /// The mean time of one, in nanoseconds and parts of it: that of the median batch of equal batches.
        call_ns: f64,
    },
    /// Counts of the processor while one copy sorted, in the sorts and in what interrupted them apart.
    Events {
        /// Number of sorts of all copies together; at least 1.
        sorts: u64,
        /// Timer interrupts that the CPU took in `window_ns`.
        interrupts: u64,
        /// The time between both readings of the count of interrupts.
        window_ns: i64,
        /// The counts by event, the sorts and the kernel apart.
        counts: Vec<EventCount>,
    },
}

impl CellResult {
    /// The part that distinguishes the cells of a round and a rate.
    pub fn key(&self) -> CellKind {
        match self {
            Self::Sorts { copies, .. } => CellKind::Sorts { copies: *copies },
            Self::Handler { .. } => CellKind::Handler,
            Self::Trap { .. } => CellKind::Trap,
            Self::Events { .. } => CellKind::Events,
        }
    }
}

/// The kinds of cells, unique within a round and a rate.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum CellKind {
    /// The time of a fixed number of sorts, [`CellResult::Sorts`].
    Sorts {
        /// Number of copies sharing the CPU.
        copies: u32,
    },
    /// The time of the kernel's handler, [`CellResult::Handler`].
    Handler,
    /// The time of an empty system call, [`CellResult::Trap`].
    Trap,
    /// Counts of the processor, [`CellResult::Events`].
    Events,
}

impl Campaign {
    /// The number of planned cells.
    pub fn cells_planned(&self) -> usize {
        self.plan.rounds as usize * self.plan.cells().len()
    }

    /// The cell of a round, if it is finished.
    pub fn find(&self, round: u32, added_hz: u32, kind: CellKind) -> Option<&CellResult> {
        let is = |cell: &&CampaignCell| cell.round == round && cell.added_hz == added_hz && cell.measured.key() == kind;
        self.cells.iter().find(is).map(|cell| &cell.measured)
    }
}

impl Stored for Campaign {
    const CONTENTS: Contents = Contents::Campaign;
}

impl Document for Campaign {
    const SCHEMA: &'static str = SCHEMA;

    fn schema(&self) -> &str {
        &self.schema
    }

    fn node(&self) -> &str {
        &self.node
    }

    /// Checks that the plan has cells, that each cell belongs to it and is unique, and that its figures are plausible.
    fn check(&self) -> Result<(), String> {
        let plan = &self.plan;
        if plan.rounds == 0 || plan.copies.is_empty() || plan.rates_hz.is_empty() {
            return Err("its plan has no cells".to_owned());
        }
        if plan.rounds > ROUNDS_MAX {
            return Err(format!("its plan has {} rounds, but at most {ROUNDS_MAX} are possible", plan.rounds));
        }
        let rising = |list: &[u32]| list.windows(2).all(|pair| pair[0] < pair[1]);
        if !rising(&plan.rates_hz) || !rising(&plan.copies) {
            return Err("the rates or the numbers of copies of its plan do not rise".to_owned());
        }
        let planned: HashSet<(u32, CellKind)> = plan.cells().into_iter().collect();
        let mut seen = HashSet::with_capacity(self.cells.len());
        for (at, cell) in self.cells.iter().enumerate() {
            let key = cell.measured.key();
            // A trap needs no added interrupts but tolerates them.
            let of_plan = key == CellKind::Trap || planned.contains(&(cell.added_hz, key));
            if cell.round >= plan.rounds || !of_plan {
                return Err(format!("cell {at} is not part of its plan"));
            }
            if !seen.insert((cell.round, cell.added_hz, key)) {
                return Err(format!("cell {at} repeats an earlier cell"));
            }
            cell.measured.check().map_err(|why| format!("cell {at}: {why}"))?;
        }
        Ok(())
    }
}

/// The maximum number of rounds.
pub const ROUNDS_MAX: u32 = 100_000;

fn check_sorts(sorts: u64) -> Result<(), String> {
    if sorts == 0 { Err("it has no sorts".to_owned()) } else { check_count("sorts", sorts) }
}

impl CellResult {
    fn check(&self) -> Result<(), String> {
        match self {
            &Self::Sorts { sorts, elapsed_ns, interrupts, window_ns, .. } => {
                check_sorts(sorts)?;
                check_time("elapsed_ns", elapsed_ns, 1)?;
                check_time("window_ns", window_ns, 1)?;
                check_count("interrupts", interrupts)
            }
            &Self::Handler { interrupts, handler_ns, window_ns, lost_events } => {
                check_time("handler_ns", handler_ns, 0)?;
                check_time("window_ns", window_ns, 1)?;
                check_count("interrupts", interrupts)?;
                check_count("lost_events", lost_events)
            }
            &Self::Trap { call_ns, .. } if call_ns > 0.0 && call_ns < LONGEST_NS as f64 => Ok(()),
            Self::Trap { call_ns, .. } => Err(format!("call_ns cannot be {call_ns}")),
            Self::Events { sorts, interrupts, window_ns, counts } => {
                check_sorts(*sorts)?;
                check_time("window_ns", *window_ns, 1)?;
                check_count("interrupts", *interrupts)?;
                counts.iter().try_for_each(EventCount::check)
            }
        }
    }
}
