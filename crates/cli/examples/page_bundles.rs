//! Writes the bundles for the browser tests, and figures as the terminal formats them: see `crates/report/tests/browser`.
//!
//! `page_bundles FOLDER [--huge]`; `--huge` adds a run of 4.4 million detours.

#![forbid(unsafe_code)]

use std::path::{Path, PathBuf};

use becalm_fixtures::fleet::{Planted, write_fleet};
use becalm_fixtures::{causes, costs, observed, pages, phases, work};
use becalm_report::Value;

fn main() -> std::io::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let Some(folder) = arguments.next().map(PathBuf::from) else {
        return Err(std::io::Error::other("usage: page_bundles FOLDER [--huge]"));
    };
    std::fs::create_dir_all(&folder)?;
    becalm_fixtures::write_all(&folder);
    pages::write_all(&folder);
    work::write_all(&folder);
    observed::write_observed(&folder);
    causes::write_causes(&folder.join("causes.becalm"));
    becalm_fixtures::write_study(&folder.join("node1.study"));
    write_fleet(&folder.join("nodes.becalm"), Planted::SlowNodeAndBroken, 1);
    // Recordings use their default names.
    for (name, write) in [("costs", costs::write_costs as fn(&Path)), ("jobs", write_jobs)] {
        std::fs::create_dir_all(folder.join(name))?;
        write(&folder.join(name));
    }
    if arguments.next().is_some() {
        pages::huge().write(&folder.join("huge.becalm"));
    }
    std::fs::write(folder.join("figures.json"), figures())
}

/// Short jobs, and one of a million phases.
fn write_jobs(folder: &Path) {
    phases::write_phases(folder);
    phases::write_long(folder);
}

/// The unit, value and text of figures; the page's script must format them like this program.
fn figures() -> String {
    let mut rows: Vec<(&str, f64, String)> = Vec::new();
    let mut seed = 1_u64;
    let mut next = || {
        // Knuth's generator: any spread of values will do.
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        seed >> 11
    };
    let edges =
        [0, 1, 7, 999, 1_000, 9_995, 15_249, 99_949, 99_950, 999_499, 999_500, 9_999_999_999, 86_400_000_000_000];
    let times: Vec<u64> = edges.into_iter().chain((0..3_000).map(|at| next() >> (at % 50))).collect();
    for ns in times {
        rows.push(("time", ns as f64, Value::Time(ns as i64).cell()));
        rows.push(("picos", ns as f64, Value::Picos(ns as i64).cell()));
        rows.push(("grouped", ns as f64, Value::Count(ns).cell()));
    }
    let halves = [0.0, 0.000_5, 0.001_25, 0.012_25, 0.062_5, 0.122_5, 0.5, 0.999_96, 1.0, 0.000_000_29];
    let ratios: Vec<f64> =
        halves.into_iter().chain((0..3_000).map(|at| next() as f64 / 2_f64.powi(53 + at % 30))).collect();
    for ratio in ratios {
        rows.push(("ratio", ratio, Value::Ratio(ratio).cell()));
        rows.push(("share", ratio, Value::Share(ratio).cell()));
        rows.push(("factor", 1.0 + 300.0 * ratio * ratio, Value::Factor(1.0 + 300.0 * ratio * ratio).cell()));
        rows.push(("rate", ratio * 1e4, Value::Rate(ratio * 1e4).cell()));
    }
    serde_json::to_string(&rows).expect("figures are finite")
}
