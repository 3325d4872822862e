//! The document of a node's part of a parallel benchmark, `runs/node=HOST.json` of a bundle from `becalm-mpi`: the job, the node's ranks, and the
//! relation of the node's clock to that of rank 0. The phases are in a separate table; the crate `bundle` reads and writes both.
//!
//! Results of the phases are not stored; readers compute them.

use becalm_units::{CpuId, Nanos, UnknownName};
use serde::{Deserialize, Serialize};

use crate::Document;
use crate::node::{ClockDoc, MachineDoc};

/// The version of the document's schema that this program writes and reads.
pub const SCHEMA: &str = "becalm.mpi-run/1";

/// One node's part of a parallel benchmark.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct PhasesDoc {
    /// The schema that the document follows: [`SCHEMA`], or it is refused.
    pub schema: String,
    /// The host's name, as in the file's name.
    pub node: String,
    /// Who wrote it: `becalm-mpi 0.1.0`.
    pub program: String,
    /// When the node's clock was 0, as RFC 3339 in UTC: shortly before the first phase.
    pub origin: jiff::Timestamp,
    /// Whether the job came to its end and every phase is there.
    pub complete: bool,
    /// The machine on which the node's ranks ran.
    pub machine: MachineDoc,
    /// The counter that the ranks of the node read.
    pub clock: ClockDoc,
    /// How the node's clock relates to that of rank 0.
    pub relation: ClockRelationDoc,
    /// The job, the same in every node's document.
    pub job: JobDoc,
    /// The ranks of the node, in rising order.
    pub ranks: Vec<RankDoc>,
    /// Facts that the reader must know before believing the numbers.
    pub warnings: Vec<String>,
}

/// What ends a phase of a job.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[derive(strum::Display, strum::EnumString, strum::IntoStaticStr, strum::VariantArray)]
#[strum(serialize_all = "snake_case", parse_err_ty = UnknownName, parse_err_fn = unknown)]
pub enum CollectiveCall {
    /// Nothing: the ranks do not wait for each other.
    None,
    /// All ranks wait for each other: MPI_Barrier.
    Barrier,
    /// All ranks get the sum of all their doubles: MPI_Allreduce.
    Allreduce,
    /// Every rank sends a part to every other: MPI_Alltoall.
    Alltoall,
}

fn unknown(text: &str) -> UnknownName {
    UnknownName::new::<CollectiveCall>("collective", text)
}

/// The work of a job, the same in the documents of all of its nodes.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct JobDoc {
    /// The MPI library's own words.
    pub library: String,
    /// Ranks of the job.
    pub ranks: u32,
    /// Nodes of the job.
    pub nodes: u32,
    /// Useful CPU time of a phase; 0 of collectives back to back.
    pub grain_ns: Nanos,
    /// Phases of every rank.
    pub phases: u64,
    /// What ends a phase.
    pub collective: CollectiveCall,
    /// Bytes of its payload; for `alltoall` those of each pair.
    pub bytes: u64,
    /// The scheduling class of the ranks: `other`, `fifo:40`.
    pub sched: String,
}

/// A rank of the job that ran on this node.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct RankDoc {
    /// The number of the rank in the job, from 0.
    pub rank: u32,
    /// The CPU to which it is pinned.
    pub cpu: CpuId,
    /// Steps of the generator in a compute phase.
    pub iterations: u64,
    /// Their calibrated time, on the quiet CPU.
    pub calibrated_ns: Nanos,
}

/// Time of rank 0's node = time + offset + drift x time, for every time of this node's clock.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct ClockRelationDoc {
    /// The offset at this node's time 0, in nanoseconds.
    pub offset_ns: f64,
    /// Gained by rank 0's clock on this one, as parts of 1.
    pub drift_ratio: f64,
    /// The relation is not further off than this, anywhere between the first and the last message.
    pub error_ns: f64,
    /// The shortest round trip of a message.
    pub round_trip_ns: Nanos,
    /// Round trips made; 0 on the node of rank 0, whose clock it is.
    pub round_trips: u64,
}

/// The longest time in these documents: a week.
pub const LONGEST_NS: i64 = 7 * 86_400_000_000_000;

/// The maximum number of phases per rank.
pub const PHASES_MAX: u64 = 1 << 32;

impl Document for PhasesDoc {
    const SCHEMA: &'static str = SCHEMA;

    fn schema(&self) -> &str {
        &self.schema
    }

    fn node(&self) -> &str {
        &self.node
    }

    fn check(&self) -> Result<(), String> {
        let JobDoc { ranks, nodes, grain_ns, phases, .. } = &self.job;
        if *phases == 0 || *phases > PHASES_MAX {
            return Err(format!("its ranks have {phases} phases, outside of 1 to {PHASES_MAX}"));
        }
        if !(0..=LONGEST_NS).contains(&grain_ns.get()) {
            return Err(format!("grain_ns is {}, outside of 0 to {LONGEST_NS}", grain_ns.get()));
        }
        if *nodes == 0 || nodes > ranks {
            return Err(format!("its {ranks} ranks cannot be on {nodes} nodes"));
        }
        if self.ranks.is_empty() {
            return Err("it has no ranks".to_owned());
        }
        if let Some(pair) = self.ranks.windows(2).find(|pair| pair[0].rank >= pair[1].rank) {
            return Err(format!("its ranks are not in rising order: {} is followed by {}", pair[0].rank, pair[1].rank));
        }
        for RankDoc { rank, cpu, calibrated_ns, .. } in &self.ranks {
            if rank >= ranks {
                return Err(format!(
                    "it lists rank {rank}, and the job has the ranks 0 to {}",
                    ranks.saturating_sub(1)
                ));
            }
            if cpu.get() >= CpuId::LIMIT {
                return Err(format!("CPU {cpu} is above the limit of {}", CpuId::LIMIT - 1));
            }
            if !(0..=LONGEST_NS).contains(&calibrated_ns.get()) {
                return Err(format!(
                    "calibrated_ns of rank {rank} is {}, outside of 0 to {LONGEST_NS}",
                    calibrated_ns.get()
                ));
            }
        }
        let ClockRelationDoc { offset_ns, drift_ratio, error_ns, .. } = self.relation;
        if !(offset_ns.is_finite() && drift_ratio.abs() < 1.0 && error_ns >= 0.0 && error_ns.is_finite()) {
            return Err(format!(
                "its clock cannot be {offset_ns} ns off with a drift of {drift_ratio} and an error of {error_ns} ns"
            ));
        }
        Ok(())
    }
}
