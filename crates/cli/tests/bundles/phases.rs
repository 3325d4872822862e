//! Bundles of parallel benchmarks, with known contents.

use std::path::Path;

use becalm_bundle::{Phase, PhaseWriter};
use becalm_model::node::{ClockDoc, Machine};
use becalm_model::phases::{ClockRelationDoc, JobDoc, PhasesDoc, RankDoc, SCHEMA};
use becalm_units::{CpuId, Nanos};

/// Phases of every rank.
const PHASES: u64 = 400;

/// Writes all of them into a folder: a job on two nodes, one of which one node's part is missing, and one that was killed.
pub fn write_phases(folder: &Path) {
    for (name, nodes, complete) in [("job", 0..2, true), ("half", 0..1, true), ("begun", 0..1, false)] {
        let path = folder.join(format!("{name}.becalm"));
        for node in nodes {
            let doc = PhasesDoc { complete, ..doc(node) };
            let ranks: Vec<Vec<Phase>> = doc.ranks.iter().map(|rank| phases(rank.rank)).collect();
            let mut writer = PhaseWriter::create(&path, &doc).unwrap();
            writer.store(&doc, &ranks).unwrap();
        }
    }
}

fn doc(node: u32) -> PhasesDoc {
    let relation = ClockRelationDoc {
        offset_ns: -12_345.0,
        drift_ratio: 3e-6,
        error_ns: 740.0,
        round_trip_ns: Nanos::new(1_420),
        round_trips: 2_000,
    };
    let rank = |cpu: u32| RankDoc {
        rank: 2 * node + cpu,
        cpu: CpuId::new(cpu),
        iterations: 52_000,
        calibrated_ns: Nanos::from_millis(1),
    };
    PhasesDoc {
        schema: SCHEMA.to_owned(),
        node: format!("node{}", node + 1),
        program: "becalm-mpi 0.1.0".to_owned(),
        origin: "2026-03-04T05:06:07Z".parse().unwrap(),
        complete: true,
        machine: Machine {
            kernel: "6.12.9".to_owned(),
            processor: "Example CPU at 2.6 GHz".to_owned(),
            architecture: "x86_64".to_owned(),
            online: "0-1".parse().unwrap(),
            ..Machine::default()
        },
        clock: ClockDoc::default(),
        relation: if node == 0 { ClockRelationDoc::default() } else { relation },
        job: JobDoc {
            library: "Some MPI 4.1".to_owned(),
            ranks: 4,
            nodes: 2,
            grain_ns: Nanos::from_millis(1),
            phases: PHASES,
            collective: "barrier".to_owned(),
            bytes: 8,
            sched: "other".to_owned(),
        },
        ranks: (0..2).map(rank).collect(),
        warnings: Vec::new(),
    }
}

/// Every rank loses 40 us in every tenth phase, each in another one; the others wait for it.
fn phases(rank: u32) -> Vec<Phase> {
    let late = |number: u64, of: u64| if number % 10 == of { 40_000 } else { 0 };
    let mut start_ns = 0;
    let phase = |number: u64| {
        let slowest = (0..4).map(|of| late(number, of)).max().unwrap_or(0);
        let compute_ns = 1_000_000 + late(number, rank.into());
        let phase = Phase { start_ns, compute_ns, collective_ns: 1_000_000 + slowest + 3_000 - compute_ns };
        start_ns += phase.compute_ns + phase.collective_ns;
        phase
    };
    (0..PHASES).map(phase).collect()
}
