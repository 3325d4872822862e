//! Traces that other programs record on this machine.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::Duration;

use becalm_testing::program::{document, path, report, run_becalm, warning_codes};

use crate::robust::alone;

const TRACING: &str = "/sys/kernel/tracing";
const SWITCHES: &str = "events/sched/sched_switch/enable";

fn write(file: &str, text: &str) {
    fs::write(Path::new(TRACING).join(file), text).unwrap();
}

/// The files of the top level as they were.
struct AsBefore(Vec<(&'static str, String)>);

impl Drop for AsBefore {
    fn drop(&mut self) {
        write("trace", "\n");
        self.0.iter().for_each(|(file, text)| write(file, text));
    }
}

/// What `trace-cmd record -e sched_switch` does for so long; some kernels refuse it a file that it does not need. The file lists
/// the formats of all events, and has events of one.
fn record_switches(file: &Path, length: Duration) {
    let read = |file| (file, fs::read_to_string(Path::new(TRACING).join(file)).unwrap());
    let _as_before = AsBefore(vec![read(SWITCHES), read("tracing_on")]);
    for (file, text) in [("tracing_on", "0"), ("trace", "\n"), (SWITCHES, "1"), ("tracing_on", "1")] {
        write(file, text);
    }
    thread::sleep(length);
    write("tracing_on", "0");
    let extracted = Command::new("trace-cmd").args(["extract", "-o", path(file)]).output();
    assert!(extracted.expect("trace-cmd is installed").status.success());
}

/// Interrupts that were not recorded are not known: neither is there none of them, nor is every source known.
#[test]
fn what_trace_cmd_did_not_record_is_not_known() {
    let Some(_alone) = alone() else { return };
    let folder = tempfile::tempdir().unwrap();
    let (file, bundle) = (folder.path().join("trace.dat"), folder.path().join("switches.becalm"));
    record_switches(&file, Duration::from_millis(500));
    run_becalm(&["import", path(&file), "-o", path(&bundle)]).expect(0, &["trace-dat"]);
    let missing = document(&bundle)["tracing"]["missing"].to_string();
    for event in ["irq/irq_handler_entry", "irq/softirq_entry", "irq_vectors/*", "nmi/nmi_handler"] {
        assert!(missing.contains(event), "{event}: {missing}");
    }
    let report = report(&bundle);
    assert!(warning_codes(&report).contains(&"missing_events"), "{report:#}");
    assert!(report["checked"].is_null() && report["lost_events"].is_null(), "{report:#}");
    let sources = report["sources"].as_array().unwrap();
    assert!(!sources.is_empty(), "threads of the kernel ran: {report:#}");
    assert!(sources.iter().all(|source| source["kind"] == "kthread"), "{sources:#?}");
    let text = run_becalm(&["report", path(&bundle), "--full"]).stdout;
    for words in ["not seen irq/irq_handler_entry", "some of the kernel's tracepoints alone", "dropped  not known"] {
        assert!(text.contains(words), "{words}: {text}");
    }
    for words in ["every source by its name", "dropped  no events", "Loops that measured"] {
        assert!(!text.contains(words), "{words}: {text}");
    }
}
