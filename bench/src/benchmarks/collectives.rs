//! Collectives with per-rank clocks: rank-rounds per second, with noise and without.
//!
//! A rank-round is one rank's send and receive in one round of a dissemination barrier. One thread below 65,536 ranks, all cores above.

use std::process::{Command, ExitCode};
use std::time::Instant;

use crate::claims::{Claims, Figure};
use crate::effort::Effort;
use crate::programs;
use becalm_scale::NoiseTrace;
use becalm_scale::collective::{Barrier, Collective};
use becalm_scale::machine::{JobMachine, RankStart};
use becalm_scale::network::Network;
use becalm_scale::random::{Purpose, Stream};
use becalm_scale::spec::NoiseSpec;
use becalm_units::Nanos;

const BARRIER: Collective = Collective::Barrier(Barrier::Dissemination);
/// The noise of a desktop, and an extreme: 20 % of the time.
const NOISES: [&str; 3] =
    ["periodic:interval=1ms,detour=0ns", "poisson:rate=200Hz,detour=50us", "poisson:rate=1kHz,detour=200us"];

pub fn run() -> ExitCode {
    let effort = Effort::from_arguments();
    let mut claims = Claims::begin("Collectives: dissemination barriers, rank-rounds a second", effort);
    memory(&mut claims);
    for (ranks, phases) in [(1_u64 << 10, 4_000), (1 << 14, 300), (1 << 20, 3)] {
        for noise in NOISES {
            let trace = noise.parse::<NoiseSpec>().and_then(|spec| spec.trace(1)).expect("a trace");
            for grain in [Nanos::ZERO, Nanos::from_millis(1)] {
                let rate = rank_rounds(&trace, ranks, effort.share(phases), grain);
                let what = format!("{ranks} ranks, {grain}, {noise}");
                if ranks == 1 << 14 && !trace.is_empty() {
                    claims.at_least(&what, Figure::a_second(rate), 1e8);
                } else {
                    claims.state(&what, Figure::a_second(rate), "");
                }
            }
        }
    }
    claims.end()
}

/// Rank-rounds per second.
fn rank_rounds(trace: &NoiseTrace, ranks: u64, phases: u64, grain: Nanos) -> f64 {
    let network: Network = "L=2500ns,o=1500ns,g=1000ns,G=6ns".parse().expect("a network");
    let mut stream = Stream::new(1, Purpose::Offsets, 0);
    let mut offset = || stream.below(trace.length().get() as u64) as i64;
    let starts: Vec<RankStart<'_>> = (0..ranks).map(|_| RankStart { trace, offset: offset() }).collect();
    let mut machine = JobMachine::new(network, &starts).expect("a machine");
    let begin = Instant::now();
    for _ in 0..phases {
        machine.work(grain).expect("work");
        BARRIER.run(&mut machine, 1).expect("a barrier");
    }
    (ranks * BARRIER.rounds(ranks, 1, 1) * phases) as f64 / begin.elapsed().as_secs_f64()
}

/// The memory of the released program.
fn memory(claims: &mut Claims) {
    let what = "peak memory of becalm predict, 1,048,576 ranks, with noise";
    let mut command = Command::new(programs::becalm());
    command.args(["predict", NOISES[1], "--ranks", "1Mi", "--collective", "barrier", "--phases", "3"]);
    match programs::cost(&mut command, None) {
        Ok(cost) if cost.success => {
            claims.at_most(what, Figure::megabytes(cost.peak_bytes), 1_000.0);
            claims.state("  5 replicas of 3 phases", Figure::seconds(cost.wall.as_secs_f64()), "");
        }
        Ok(_) => claims.fail(what, "it failed"),
        Err(error) => claims.fail(what, &error.to_string()),
    }
}
