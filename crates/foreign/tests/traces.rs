//! The documents made from traces of real programs.

use becalm_foreign::document;
use becalm_foreign::read::{Format, Source};
use becalm_foreign::trace::{TraceRequest, find};
use becalm_model::node::{Ended, NodeDoc, Rung};
use becalm_record::MemoryStore;
use becalm_units::fault::{self, option};
use becalm_units::{CpuList, Nanos};

fn import(format: Format, name: &str, request: &TraceRequest<'_>) -> fault::Result<NodeDoc> {
    let bytes = std::fs::read(format!("{}/samples/{name}", env!("CARGO_MANIFEST_DIR"))).unwrap();
    let found = find(format, Source { name, bytes: &bytes }, request, &mut |_| {})?;
    let node = document::recording(found.host().unwrap_or("unnamed").to_owned(), format, Vec::new());
    Ok(found.store(node, &mut MemoryStore::default())?)
}

fn import_all(format: Format, name: &str) -> NodeDoc {
    import(format, name, &TraceRequest::default()).unwrap()
}

fn refused(name: &str, request: &TraceRequest<'_>) -> String {
    import(Format::TraceDat, name, request).unwrap_err().message(option)
}

fn codes(node: &NodeDoc) -> Vec<&str> {
    node.warnings.iter().map(|warning| warning.code.as_str()).collect()
}

#[test]
fn a_file_of_trace_cmd_describes_its_machine() {
    let node = import_all(Format::TraceDat, "trace-dat/v7-local.dat");
    let tracing = node.tracing.as_ref().unwrap();
    assert_eq!((node.node.as_str(), node.rung, node.ended), ("vm", Rung::Tracepoints, Some(Ended::Unknown)));
    assert_eq!((node.machine.kernel.as_str(), node.machine.architecture.as_str()), ("6.18.44-fc-v657", "x86_64"));
    assert_eq!(node.machine.online, "0-1".parse().unwrap());
    assert_eq!((node.clock.counter.as_str(), node.clock.rate_hz, tracing.clock.as_str()), ("local", 1e9, "local"));
    assert!(tracing.events.iter().any(|event| event == "sched/sched_switch"), "{tracing:?}");
    assert_eq!(
        tracing.missing[0],
        "nmi/nmi_handler (it is not in the trace): non-maskable interrupts (watchdog, profiling)"
    );
    // Each purpose of interrupts once.
    assert_eq!(tracing.missing.len(), 6, "{:?}", tracing.missing);
    assert_eq!(codes(&node), ["no_loop", "clocks_differ", "missing_events", "taken_for_programs"]);
    assert_eq!(node.settings.threshold, "none");
}

#[test]
fn the_rate_of_a_counter_is_that_which_is_given() {
    let name = "trace-dat/v7-tsc.dat";
    let unknown = refused(name, &TraceRequest::default());
    assert!(unknown.contains("ticks of the clock 'x86-tsc'") && unknown.contains("give --rate"), "{unknown}");
    let length = |hz| {
        let node = import(Format::TraceDat, name, &TraceRequest { rate_hz: Some(hz), ..TraceRequest::default() });
        let node = node.unwrap();
        assert_eq!((node.clock.counter.as_str(), node.clock.rate_hz), ("x86-tsc", hz));
        node.cpus[0].duration_ns.get()
    };
    let off = length(1.3e9) - 2 * length(2.6e9);
    assert!(off.abs() <= 2, "half the rate is twice the time, and not {off} ns more");
}

#[test]
fn texts_describe_the_little_that_they_hold() {
    for (format, name, counter, origin_ticks, resolution) in [
        (Format::PerfScript, "perf-script/microseconds.txt", "perf", 3_307_834_617_000, 1_000),
        (Format::Ftrace, "ftrace/report.txt", "the trace's", 3_264_136_007_971, 1),
    ] {
        let node = import_all(format, name);
        assert_eq!((node.node.as_str(), node.machine.kernel.as_str()), ("unnamed", "unknown"));
        assert_eq!((node.clock.counter.as_str(), node.clock.origin_ticks), (counter, origin_ticks));
        assert_eq!(node.clock.resolution_ns, Nanos::new(resolution));
        assert_eq!(codes(&node).contains(&"coarse_stamps"), resolution > 1);
    }
    let node = import_all(Format::PerfData, "perf-data/tracepoints.data");
    assert_eq!((node.machine.kernel.as_str(), node.clock.counter.as_str()), ("6.18.44-fc-v782", "perf"));
    assert_eq!(node.tracing.as_ref().unwrap().events.len(), 11);
    let missing = node.warnings.iter().find(|warning| warning.code == "missing_events").unwrap();
    assert!(!missing.message.contains("does not say whether they were recorded"), "the file lists them: {missing:?}");
}

#[test]
fn the_loop_of_a_tracer_has_a_threshold_and_no_events_of_ours() {
    let node = import_all(Format::Osnoise, "osnoise/rtla.txt");
    let tracing = node.tracing.as_ref().unwrap();
    assert_eq!((node.settings.threshold.as_str(), tracing.events.len(), tracing.missing.len()), ("the tracer's", 0, 0));
    assert!(node.cpus.iter().all(|cpu| cpu.threshold_ns >= Nanos::from_micros(5)), "rtla was given 5 us");
    assert_eq!(codes(&node), ["imported", "imported_end_unknown", "tracer_paused"]);
    assert!(codes(&import_all(Format::Osnoise, "osnoise/lost.txt")).contains(&"lost_events"));
    let timerlat = import_all(Format::Osnoise, "osnoise/timerlat.txt");
    assert_eq!((timerlat.settings.threshold.as_str(), codes(&timerlat)[0]), ("none", "no_loop"));
}

#[test]
fn requests_that_a_trace_cannot_answer_are_refused() {
    let cpus: CpuList = "0-3".parse().unwrap();
    let error = refused("trace-dat/v7-local.dat", &TraceRequest { cpus: Some(&cpus), rate_hz: None });
    assert_eq!(error, "the trace holds CPUs 0-1, and not all of --cpus 0-3");
}
