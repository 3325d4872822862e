//! The document of a measurement of costs, `runs/node=HOST.json` of a bundle by `becalm cost`: what was measured, where and how. The
//! samples of its probes are in a separate table; see [`becalm_bundle::series`].
//!
//! It contains no statistics of the samples: each reader of the bundle recomputes them.

mod check;
mod clock;
mod placement;
mod probe;
mod scheduler;
mod spread;
pub mod tick;

use becalm_bundle::series::{Sampled, SampledRun, Samples, ToldSeries};
use becalm_bundle::{Contents, Stored};
use becalm_model::Document;
use becalm_model::event_count::EventCount;
use becalm_model::node::{Ended, MachineDoc};
use becalm_units::CpuId;
use serde::{Deserialize, Serialize};

pub use self::clock::{BY_SYSCALL, ClockCosts, ClockWayDoc, CrossDoc, ReadBy, StepDoc, SuccessiveDoc};
pub use self::placement::{
    CountedDoc, CountedPairDoc, PlaceDoc, PlacementCosts, PlacementDoc, RoamedDoc, TimedDoc, WorkPlace,
};
use self::probe::check_instrument;
pub use self::probe::{InstrumentDoc, Probe, ProbeCosts, ProbeDoc, ProbeSamples, ROUNDS, SeriesDoc, into_rounds};
pub use self::scheduler::{SchedulerCosts, SchedulerDoc, TicksDoc};
pub use self::spread::{MOST_PROCESSES, PROCESSES, ProcessCosts, ProcessDoc, SpreadDoc};

/// The version of the document's schema that this program writes and reads.
pub const SCHEMA: &str = Contents::Costs.schema();

/// Samples by series name: the rounds of each, in picoseconds per repetition.
pub type CostSamples = Samples;

/// A measurement of costs: its document and its samples.
pub type CostRun = SampledRun<CostDoc>;

/// One node's measurement of costs.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct CostDoc {
    /// The schema that the document follows: [`SCHEMA`], or it is refused.
    pub schema: String,
    /// The host's name, as in the file's name.
    pub node: String,
    /// Program that wrote it: `becalm 0.1.0`.
    pub program: String,
    /// Start as RFC 3339 in UTC.
    pub begun: jiff::Timestamp,
    /// End; `None` while it is measured, and forever if it was killed.
    pub ended: Option<Ended>,
    /// The machine on which it was measured.
    pub machine: MachineDoc,
    /// The CPU that was measured.
    pub cpu: CpuId,
    /// Reason for the choice of this CPU, in words.
    pub cpu_reason: String,
    /// The CPU that took part in what needs two.
    pub other_cpu: Option<CpuId>,
    /// The scheduling class of what was measured: `other`, `fifo:80`.
    pub sched: String,
    /// The processes over which probes were spread; `None` of other measurements, which one process makes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spread: Option<SpreadDoc>,
    /// The measurement, by its command.
    pub measured: Costs,
}

/// The measurement, by its command.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(tag = "command", rename_all = "snake_case")]
pub enum Costs {
    /// The ways to read the time, by `becalm cost clock`.
    Clock(ClockCosts),
    /// The ways into the kernel and back, by `becalm cost trap`.
    Trap(ProbeCosts),
    /// The catalogue of detours, by `becalm cost detours`.
    Detours(ProbeCosts),
    /// The scheduler's own time, by `becalm cost scheduler`.
    Scheduler(SchedulerCosts),
    /// The placement of the loop's thread and of interrupts, by `becalm cost placement`.
    Placement(PlacementCosts),
}

impl Costs {
    /// The subcommand of `becalm cost`.
    pub const fn command(&self) -> &'static str {
        match self {
            Self::Clock(_) => "clock",
            Self::Trap(_) => "trap",
            Self::Detours(_) => "detours",
            Self::Scheduler(_) => "scheduler",
            Self::Placement(_) => "placement",
        }
    }
}

impl Document for CostDoc {
    const SCHEMA: &'static str = SCHEMA;

    fn schema(&self) -> &str {
        &self.schema
    }

    fn node(&self) -> &str {
        &self.node
    }

    fn check(&self) -> Result<(), String> {
        if self.cpu.get() >= CpuId::LIMIT {
            return Err(format!("CPU {} is above the limit of {}", self.cpu, CpuId::LIMIT - 1));
        }
        self.spread.as_ref().map_or(Ok(()), SpreadDoc::check)?;
        let series = self.series();
        for (at, (name, one)) in series.iter().enumerate() {
            if series[..at].iter().any(|(other, _)| other == name) {
                return Err(format!("'{name}' appears twice"));
            }
            if one.batch == 0 || one.samples == 0 {
                return Err(format!("'{name}' cannot have {} samples of {} repetitions", one.samples, one.batch));
            }
            let processes = self.spread.as_ref().map_or(0, |spread| spread.processes.len());
            if !one.rounds_by_process.is_empty() && one.rounds_by_process.len() != processes {
                let told = one.rounds_by_process.len();
                return Err(format!("'{name}' has rounds of {told} processes, and {processes} measured"));
            }
            one.counts.iter().try_for_each(EventCount::check).map_err(|why| format!("'{name}': {why}"))?;
        }
        match &self.measured {
            Costs::Trap(costs) | Costs::Detours(costs) => {
                costs.probes.iter().try_for_each(ProbeDoc::check)?;
                check_instrument(costs.instrument.as_ref(), costs.probes.is_empty())
            }
            Costs::Clock(costs) => {
                costs.clocks.iter().try_for_each(ClockWayDoc::check)?;
                costs.successive.as_ref().map_or(Ok(()), SuccessiveDoc::check)?;
                check_instrument(costs.instrument.as_ref(), costs.clocks.is_empty())
            }
            Costs::Scheduler(costs) => costs.rows.iter().try_for_each(SchedulerDoc::check),
            Costs::Placement(costs) => costs.results.iter().try_for_each(PlacementDoc::check),
        }
    }
}

impl Stored for CostDoc {
    const CONTENTS: Contents = Contents::Costs;
}

impl Sampled for CostDoc {
    fn told_series(&self) -> Vec<ToldSeries> {
        let told = |(name, series): (String, SeriesDoc)| {
            let rounds = series.rounds_by_process.iter().map(|rounds| u64::from(*rounds)).sum();
            let rounds = (!series.rounds_by_process.is_empty()).then_some(rounds);
            ToldSeries { name, samples: series.samples, rounds }
        };
        self.series().into_iter().map(told).collect()
    }
}

impl CostDoc {
    /// The series of samples in the document, in its order, each with its name.
    pub fn series(&self) -> Vec<(String, SeriesDoc)> {
        let mut all = Vec::new();
        match &self.measured {
            Costs::Trap(costs) | Costs::Detours(costs) => {
                let with_samples = |probe: &ProbeDoc| Some((probe.name.clone(), probe.series.clone()?));
                all.extend(costs.probes.iter().filter_map(with_samples));
            }
            Costs::Clock(costs) => {
                for clock in &costs.clocks {
                    all.push((clock.name.clone(), clock.series.clone()));
                    all.extend(clock.by_syscall.clone().map(|series| (format!("{}{BY_SYSCALL}", clock.name), series)));
                }
            }
            Costs::Scheduler(_) | Costs::Placement(_) => {}
        }
        all
    }

    /// Whether nothing was measured yet.
    pub fn is_empty(&self) -> bool {
        match &self.measured {
            Costs::Clock(costs) => costs.clocks.is_empty(),
            Costs::Trap(costs) | Costs::Detours(costs) => costs.probes.is_empty(),
            Costs::Scheduler(costs) => costs.rows.is_empty(),
            Costs::Placement(costs) => costs.results.is_empty(),
        }
    }
}
