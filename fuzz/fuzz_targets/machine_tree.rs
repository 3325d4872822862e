//! Edited machines, as kernel files in a directory: the results of `becalm`, `becalm tune audit` and `becalm tune plan`, as text, as JSON,
//! and as files of tuned, systemd and Slurm. There is an answer for any contents, and no plan leaves other tasks without a CPU.
//!
//! The first line may name a profile, and `idle` for one CPU that is left idle.
#![no_main]

use std::collections::BTreeSet;
use std::path::{Component, PathBuf};
use std::sync::{LazyLock, Mutex};

use becalm_fuzz::edits::{self, Edits};
use becalm_fuzz::machine::{MACHINE, put};
use becalm_fuzz::tree::scratch;
use becalm_fuzz::truths::{check_report, check_text};
use becalm_linux::procfs::cpuinfo::CpuInfo;
use becalm_linux::procfs::{kernel, meminfo};
use becalm_linux::sysfs::{cache, cpu, machine, partition};
use becalm_tune::check::{check, choose};
use becalm_tune::format::{Format, Topology, files};
use becalm_tune::see::look;
use becalm_tune::{LiveMachine, Profile, Request, TuneAuditReport, TunePlanReport, plan};
use becalm_units::{CpuId, Named};
use libfuzzer_sys::{fuzz_mutator, fuzz_target};

const WORDS: [&str; 5] = ["hpc", "rt", "benchmark", "cloud-guest", "idle"];

/// Readers that no command uses on a tree of files.
fn read_more(root: &std::path::Path) {
    let _ = (machine::clocksource(root), machine::hypervisor(root), machine::Lockdown::read(root));
    let _ = (partition::partitions(root), cpu::frequency_policy(root, CpuId::new(0)), meminfo::total_bytes(root));
    if let Ok(caches) = cache::caches(root, CpuId::new(0)) {
        let levels = cache::data_levels(&caches);
        assert!(levels.windows(2).all(|pair| pair[0].0 <= pair[1].0), "caches out of order");
    }
}

fuzz_target!(|input: &str| {
    static ROOT: LazyLock<PathBuf> = LazyLock::new(|| scratch().join("machine"));
    static CHANGED: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    let edits = Edits::parse(input);
    let root = ROOT.as_path();
    put(root, &edits.applied_to(&MACHINE), &mut CHANGED.lock().expect("no thread panicked with it"));
    read_more(root);
    check_report(&look(root));
    let Ok(choice) = choose(root, None) else { return };
    assert!(!choice.cpus.is_empty(), "no CPU was chosen");
    let cpus = choice.cpus.clone();
    check_report(&TuneAuditReport {
        node: &kernel::hostname(root).unwrap_or_default(),
        kernel: &kernel::release(root).unwrap_or_default(),
        processor: &CpuInfo::read(root).unwrap_or_default().model,
        check: &check(root, choice, &[]),
        run: None,
        not_counted: None,
        ticks: &[],
    });
    let profile = Profile::ALL.iter().copied().find(|profile| edits.has(profile.name())).unwrap_or_default();
    let request = Request { cpus, profile, leave_idle: edits.has("idle").into(), ..Request::default() };
    let Ok(plan) = plan(&LiveMachine::for_root(root), &request) else { return };
    assert!(!plan.housekeeping.is_empty() && plan.housekeeping.intersection(&plan.cpus).is_empty(), "{plan:?}");
    check_report(&TunePlanReport { plan: &plan, gains: None });
    let Ok(topology) = Topology::read(root) else { return };
    for format in Format::ALL.iter().copied() {
        for file in files(format, &plan, &topology) {
            assert!(file.path.components().all(|part| matches!(part, Component::Normal(_))), "{file:?}");
            check_text(&file.text);
            // Such a line would be a setting of its own, forged by a file of the machine.
            assert!(!file.text.lines().any(|line| line.starts_with("FORGED")), "a name started a line: {file:?}");
        }
    }
});

fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    edits::mutate(data, size, max_size, seed, |_| Some(&MACHINE), &WORDS)
});
