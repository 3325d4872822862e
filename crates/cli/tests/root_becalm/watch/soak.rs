//! A watch at its default settings for as long as one likes to wait: `make soak`. No lane runs it.

use std::env;
use std::fs;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use becalm_linux::usage::cpu_time_of;
use becalm_testing::program::{instances_of, path};
use becalm_testing::watched::{WatchProcess, get};

use crate::robust::alone;

/// What the watch holds, as the kernel counts it.
#[derive(Clone, Copy, Debug)]
struct Held {
    resident_kb: u64,
    descriptors: usize,
    files: usize,
    instances: usize,
    /// CPU time of all its threads, those that have ended included, as the kernel counts it (`clock_getcpuclockid`), in seconds.
    cpu: f64,
}

impl Held {
    fn now(pid: u32, ring: &Path) -> Self {
        let of = |file: &str| fs::read_to_string(format!("/proc/{pid}/{file}")).unwrap();
        let status = of("status");
        let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:")?.trim().strip_suffix(" kB"));
        Self {
            resident_kb: resident.unwrap().trim().parse().unwrap(),
            descriptors: fs::read_dir(format!("/proc/{pid}/fd")).unwrap().count(),
            files: files_below(ring),
            instances: instances_of(pid).len(),
            cpu: cpu_time_of(i32::try_from(pid).unwrap()).get() as f64 / 1e9,
        }
    }
}

fn files_below(folder: &Path) -> usize {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    entries.map(|path| if path.is_dir() { files_below(&path) } else { 1 }).sum()
}

#[test]
#[ignore = "takes half an hour; make soak starts it"]
fn nothing_grows_and_the_budget_holds() {
    let Some(_alone) = alone() else { return };
    let minutes: u64 = env::var("MINUTES").ok().and_then(|text| text.parse().ok()).unwrap_or(30);
    let ring = tempfile::tempdir().unwrap();
    // CPUs that others use are measured as well, so that there is something to grow.
    let watched = WatchProcess::with_options(&["--busy", "100%", "--keep", "1MiB", "-o", path(ring.path())]);
    let begin = Instant::now();
    let mut settled: Option<Held> = None;
    for minute in 1..=minutes {
        thread::sleep(Duration::from_secs(60 * minute).saturating_sub(begin.elapsed()));
        let held = Held::now(watched.pid(), ring.path());
        let ratio = held.cpu / begin.elapsed().as_secs_f64();
        eprintln!("minute {minute}: {held:?}; {:.3} % of a CPU", ratio * 100.0);
        let settled = settled.get_or_insert(held);
        // The first windows take memory that is kept from then on.
        let windows = watched.value(r#"becalm_windows_total{result="measured"}"#);
        if windows < 2.0 {
            *settled = held;
        }
        assert!(minute < 20 || windows >= 1.0, "no window in {minute} minutes");
        assert!(held.resident_kb < settled.resident_kb + 4_096, "{settled:?} {held:?}");
        assert!(held.files <= 400, "{held:?}");
        assert!(held.descriptors <= settled.descriptors && held.instances <= 1, "{settled:?} {held:?}");
        // From the first minute on. What may be above: the start of a program built for tests, and a window that took longer than those
        // before it let expect.
        let (passed, above) = (begin.elapsed().as_secs_f64(), 0.06);
        assert!(held.cpu < 0.001 * passed + above, "{held:?} after {passed} s");
        // What it tells is what the kernel says, within what it took since.
        let told = watched.value("becalm_own_cpu_seconds_total");
        assert!((told - held.cpu).abs() < 0.02, "{told} s are told; {held:?}");
    }
    let text = get(watched.address(), "/metrics").unwrap();
    for line in text.lines().filter(|line| line.starts_with("becalm_own_") || line.starts_with("becalm_trace_")) {
        eprintln!("{line}");
    }
    watched.end();
}
