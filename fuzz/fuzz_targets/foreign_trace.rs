//! Any bytes as a kernel trace of another program, of Perfetto or in the format selected by the first byte: it is refused with a location, or its events
//! become detours that do not overlap and whose times add up.
#![no_main]

use becalm_foreign::read::{Source, osnoise, perf_data, perf_script, perfetto, trace_dat};
use becalm_foreign::trace::{
    self, DetourSearch, KernelTrace, NoiseNamer, NoiseTrace, PagedTrace, PerfTrace, StampClock, TextNamer,
};
use becalm_measure::Names;
use becalm_model::node::{ClockDoc, MachineDoc, NodeDoc, SCHEMA, SettingsDoc};
use becalm_record::MemoryStore;
use becalm_units::Nanos;
use libfuzzer_sys::fuzz_target;
use serde_json::json;

fuzz_target!(|bytes: &[u8]| {
    let Some((first, bytes)) = bytes.split_first() else { return };
    let source = Source { name: "file", bytes };
    let names = &mut Names::for_file();
    if perfetto::is_perfetto(source) {
        let mut namer = TextNamer::default();
        if perfetto::read(source, &mut |_| {}, &mut (&mut namer, &mut *names)).is_err() {
            return;
        }
        if let Ok((mut trace, _)) = namer.finish() {
            attribute(&mut trace, names);
        }
        return;
    }
    match first % 4 {
        0 => {
            let Ok(file) = trace_dat::read(source) else { return };
            let clock = match file.tsc {
                Some(rate) => StampClock::Scaled { mult: rate.mult, shift: rate.shift },
                None => StampClock::Nanos,
            };
            if let Ok(mut trace) = PagedTrace::new(file, clock, names) {
                attribute(&mut trace, names);
            }
        }
        1 => {
            let mut told = |_| {};
            let Ok(lines) = perf_script::read(source, &mut told) else { return };
            let mut namer = TextNamer::default();
            for line in lines {
                let Ok(line) = line else { return };
                namer.take(&line, names);
            }
            if let Ok((mut trace, _)) = namer.finish() {
                attribute(&mut trace, names);
            }
        }
        2 => follow_tracer(source, names),
        _ => {
            let Ok(file) = perf_data::read(source) else { return };
            if let Ok(PerfTrace { mut trace, .. }) = PerfTrace::new(&file, names, &mut |_| {}) {
                attribute(&mut trace, names);
            }
        }
    }
});

/// A trace of the kernel's noise tracers: the gaps of its loop, or the interruptions if it has none.
fn follow_tracer(source: Source<'_>, names: &mut Names) {
    let mut told = |_| {};
    let Ok(lines) = osnoise::read(source, &mut told) else { return };
    let mut namer = NoiseNamer::default();
    for line in lines {
        let Ok(line) = line else { return };
        if namer.take(&line, names).is_err() {
            return;
        }
    }
    let Ok(NoiseTrace { mut trace, loops, .. }) = namer.finish() else { return };
    let cpus: Vec<usize> = (0..trace.cpus().len()).collect();
    run(&mut trace, names, &DetourSearch::Interruptions { cpus: cpus.clone(), has_switches: true });
    let cpus = cpus.into_iter().filter(|index| !loops[*index].steps.is_empty()).collect();
    run(&mut trace, names, &DetourSearch::Gaps { cpus, loops });
}

/// All interruptions, and the books of all threads.
fn attribute(trace: &mut dyn KernelTrace, names: &mut Names) {
    let cpus: Vec<usize> = (0..trace.cpus().len()).collect();
    for index in &cpus {
        if trace.each(*index, names, &mut |_, _| Ok(())).is_err() {
            return;
        }
    }
    run(trace, names, &DetourSearch::Interruptions { cpus, has_switches: true });
    let books = trace::books_of_all_threads(trace, names).expect("it was read before");
    for (_, _, books) in books.threads() {
        assert!(books.is_none_or(|books| books.imbalance() == Nanos::ZERO), "the books of {books:?} are open");
    }
}

fn run(trace: &mut dyn KernelTrace, names: &mut Names, wanted: &DetourSearch) {
    let (mut kept, mut node) = (MemoryStore::default(), document());
    trace::store::<MemoryStore>(trace, names, wanted, &mut kept, &mut node).expect("it was read before");
    for lane in &kept.lanes {
        let (mut until, mut rows) = (Nanos::ZERO, lane.activities.iter().peekable());
        for (number, detour) in lane.detours.iter().enumerate() {
            assert!(detour.start >= until, "{detour:?} starts before {until}");
            until = detour.start + detour.duration;
            let mut sum = Nanos::ZERO;
            while let Some(row) = rows.next_if(|row| row.detour == number as u64) {
                sum += row.self_time;
            }
            assert_eq!(sum, detour.duration, "the books of {detour:?} are open");
        }
    }
}

fn document() -> NodeDoc {
    let text = json!({
        "schema": SCHEMA, "node": "imported", "program": "fuzz", "origin": "1970-01-01T00:00:00Z", "ended": null,
        "machine": MachineDoc::default(), "clock": ClockDoc::default(), "settings": SettingsDoc::default(),
        "rung": "tracepoints", "cpus": [], "tracing": null, "counters": [], "warnings": []
    });
    serde_json::from_value(text).expect("it is a document")
}
