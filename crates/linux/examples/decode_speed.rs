//! Measures the cost of decoding: nanoseconds per event, over synthesized pages with the event mix of a busy CPU.
//!
//! `cargo run --release -p becalm-linux --example decode_speed`
#![allow(clippy::print_stdout, reason = "prints what it measured")]

use std::hint::black_box;
use std::time::Instant;

use becalm_linux::ftrace::synth::{Long, SynthKernel};
use becalm_linux::ftrace::{RawEvent, RawHappening};

const EVENTS: usize = 2_000_000;

fn main() {
    let kernel = SynthKernel::new(Long::Bits64, 4096);
    let timer = kernel.decoder().vectors().find(|(_, name)| *name == "local_timer").map(|(name, _)| name);
    let timer = timer.expect("a synthetic kernel has a local timer");
    let switch = |prev_pid, next_pid| RawHappening::SchedSwitch {
        prev_comm: b"becalm",
        prev_pid,
        prev_prio: 120,
        prev_state: 0,
        next_comm: b"kworker/0:1",
        next_pid,
        next_prio: 120,
    };
    let cycle = [
        RawHappening::VectorEntry { name: timer, vector: 236 },
        RawHappening::VectorExit { name: timer, vector: 236 },
        RawHappening::SoftirqEntry { vec: 1 },
        RawHappening::SoftirqExit { vec: 1 },
        switch(100, 200),
        RawHappening::WorkStart { work: 0xffff_8880_0000_1000, function: 0xffff_ffff_8123_4567 },
        RawHappening::WorkEnd { work: 0xffff_8880_0000_1000, function: Some(0xffff_ffff_8123_4567) },
        switch(200, 100),
        RawHappening::IrqHandlerEntry { irq: 27, name: b"virtio1-req.0" },
        RawHappening::IrqHandlerExit { irq: 27 },
    ];
    let events: Vec<RawEvent<'_>> = cycle
        .iter()
        .cycle()
        .take(EVENTS)
        .enumerate()
        .map(|(index, what)| RawEvent {
            time: (1 << 40) + index as u64 * 977,
            pid: 100,
            in_interrupt: false,
            what: *what,
        })
        .collect();
    let pages = kernel.pages(&events);
    let mut best = f64::INFINITY;
    for _ in 0..10 {
        let start = Instant::now();
        let mut count = 0;
        for page in &pages {
            let decoded = kernel.decoder().page(black_box(page), &mut |event| {
                black_box(&event);
            });
            count += decoded.expect("pages of our own").events;
        }
        assert_eq!(count as usize, EVENTS);
        best = best.min(start.elapsed().as_secs_f64() * 1e9 / EVENTS as f64);
    }
    let megabytes = pages.iter().map(Vec::len).sum::<usize>() as f64 / 1e6;
    println!(
        "{best:.1} ns an event, best of 10 rounds over {EVENTS} events in {} pages ({megabytes:.0} MB)",
        pages.len()
    );
}
