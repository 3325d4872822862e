//! Collectives with per-rank clocks: rank-rounds a second, with noise and without.
//!
//! A rank-round is one rank's send and receive of one round of a dissemination barrier. One thread below 65,536 ranks, all
//! cores above.

#![allow(clippy::print_stdout, reason = "what is printed is the result")]

use std::time::Instant;

use becalm_scale::NoiseTrace;
use becalm_scale::collective::{Barrier, Collective};
use becalm_scale::machine::Machine;
use becalm_scale::network::Network;
use becalm_scale::random::{Purpose, Stream};
use becalm_scale::spec::NoiseSpec;
use becalm_units::Nanos;

fn main() {
    let network: Network = "L=2500ns,o=1500ns,g=1000ns,G=6ns".parse().expect("a network");
    let collective = Collective::Barrier(Barrier::Dissemination);
    let noise = |text: &str| text.parse::<NoiseSpec>().and_then(|spec| Ok(spec.trace(1)?)).expect("a trace");
    let traces = [
        ("none", NoiseTrace::silent(Nanos::from_secs(1)).expect("a trace")),
        ("200Hz 50us", noise("poisson:rate=200Hz,detour=50us")),
        ("1kHz 200us", noise("poisson:rate=1kHz,detour=200us")),
    ];
    println!(
        "{:>9} {:>11} {:>7} {:>16} {:>14}  (target at 16,384 with noise: 100 million)",
        "ranks", "noise", "grain", "rank-rounds/s", "us a phase"
    );
    for (ranks, phases) in [(1_u64 << 10, 4_000), (1 << 14, 300), (1 << 20, 3)] {
        for (name, trace) in &traces {
            for grain in [Nanos::ZERO, Nanos::from_millis(1)] {
                let mut stream = Stream::new(1, Purpose::Offsets, 0);
                let starts: Vec<(&NoiseTrace, i64)> =
                    (0..ranks).map(|_| (trace, stream.below(trace.length().get() as u64) as i64)).collect();
                let mut machine = Machine::new(network, &starts).expect("a machine");
                let begin = Instant::now();
                for _ in 0..phases {
                    machine.work(grain).expect("work");
                    collective.run(&mut machine, 1, 1).expect("a barrier");
                }
                let rank_rounds = ranks * collective.rounds(ranks) * phases;
                let rate = rank_rounds as f64 / begin.elapsed().as_secs_f64() / 1e6;
                let phase = machine.latest().get() as f64 / phases as f64 / 1e3;
                println!("{ranks:>9} {name:>11} {:>7} {rate:>13.1} M {phase:>14.1}", grain.to_string());
            }
        }
    }
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).map_or("unknown", str::trim);
    println!("peak memory {peak} (target at 1,048,576 ranks: 1 GB)");
}
