//! Any text as each of the kernel's files: the result can be queried, counts of the same moment do not grow, and lists of CPUs survive
//! printing and parsing. The target `machine_tree` covers trees of such files.
#![no_main]

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use becalm_fuzz::tree::{scratch, write};
use becalm_fuzz::truths::check_reads_back;
use becalm_linux::ftrace::{CpuStats, InstanceName};
use becalm_linux::perf::SampleLimits;
use becalm_linux::procfs::cmdline::{CommandLine, IsolCpus};
use becalm_linux::procfs::config::KernelConfig;
use becalm_linux::procfs::cpuinfo::CpuInfo;
use becalm_linux::procfs::interrupts::Interrupts;
use becalm_linux::procfs::kallsyms::Kallsyms;
use becalm_linux::procfs::locks::lock_holder;
use becalm_linux::procfs::mountinfo::mounts;
use becalm_linux::procfs::names::stable_name;
use becalm_linux::procfs::softirqs::Softirqs;
use becalm_linux::procfs::stat::Stat;
use becalm_linux::procfs::status::Status;
use becalm_linux::procfs::swaps::swaps;
use becalm_linux::procfs::task::TaskStat;
use becalm_linux::procfs::{kernel, limits, parse_kernel_list};
use becalm_linux::sysfs::cgroup::CgroupLimits;
use becalm_linux::sysfs::machine::Lockdown;
use libfuzzer_sys::fuzz_target;

/// The largest number of CPUs in kernel builds.
const CPUS: u32 = 8_192;

/// Counters of interrupts, softirqs and time.
fn counters(text: &str) {
    if let Ok(interrupts) = Interrupts::parse(text) {
        let none = interrupts.since(&interrupts);
        // The kernel names each interrupt and CPU once. A damaged file may repeat them, and each is then compared with one of the
        // duplicates.
        let ids: BTreeSet<_> = interrupts.lines.iter().map(|line| &line.id).collect();
        let cpus: BTreeSet<_> = interrupts.cpus.iter().collect();
        let distinct = ids.len() == interrupts.lines.len() && cpus.len() == interrupts.cpus.len();
        assert!(!distinct || none.lines.iter().all(|line| line.total() == 0), "{none:?} grew at once");
        for line in &interrupts.lines {
            let _ = (line.device.is_some(), interrupts.count(&line.id, interrupts.cpus[0]));
        }
    }
    if let Ok(softirqs) = Softirqs::parse(text) {
        let none = softirqs.since(&softirqs);
        assert_eq!(none.lines.len(), softirqs.lines.len());
    }
    if let Ok(stat) = Stat::parse(text, 100) {
        for (_, times) in &stat.cpus {
            assert!(times.since(times).fields().iter().all(|(_, time)| time.get() == 0), "{times:?} grew at once");
        }
    }
    if let Ok(stats) = CpuStats::parse(text) {
        let _ = stats.lost();
    }
}

/// Threads and processes.
fn tasks(text: &str) {
    check_reads_back(&Status::parse(text).cpus_allowed);
    if let Ok(task) = TaskStat::parse(text) {
        let (name, instance) = stable_name(&task.comm, task.kthread);
        assert!(name.len() + instance.len() <= task.comm.len(), "{task:?}");
    }
    if let Ok(name) = text.parse::<InstanceName>() {
        assert_eq!(name.to_string(), text);
    }
}

/// The kernel's build, its symbols, and its boot parameters.
fn kernel_itself(text: &str) {
    if let Ok(Some(symbols)) = Kallsyms::parse(text) {
        for line in text.lines() {
            let address = line.split_ascii_whitespace().next().and_then(|word| u64::from_str_radix(word, 16).ok());
            if let Some(symbol) = address.and_then(|address| symbols.symbol(address)) {
                assert!(text.contains(symbol.name), "a symbol that is not there: {symbol:?}");
            }
        }
    }
    let line = CommandLine::parse(text);
    for parameter in line.iter() {
        assert!(line.has(&parameter.name), "{parameter:?} is not found by its name");
        let value = parameter.value.as_deref().unwrap_or_default();
        if let Ok(isolated) = IsolCpus::parse(value, CPUS) {
            check_reads_back(&isolated.cpus);
        }
        if let Ok(list) = parse_kernel_list(value, CPUS) {
            check_reads_back(&list);
            assert!(list.iter().all(|cpu| cpu.get() < CPUS), "{list} has CPUs that cannot be");
        }
    }
    let _ =
        (KernelConfig::parse("config", text).has("NO_HZ_FULL"), CpuInfo::parse(text).has("tsc"), Lockdown::parse(text));
    let _ = kernel::parameter(text, "nohz_full");
}

/// Readers with their own parsers.
fn readers(root: &Path, bytes: &[u8]) {
    for name in
        ["proc/self/mountinfo", "proc/swaps", "proc/config.gz", "proc/locks", "proc/self/cgroup", "proc/self/limits"]
    {
        write(root, name, bytes);
    }
    write(root, "proc/sys/kernel/perf_event_max_sample_rate", bytes);
    let _ = (mounts(root), swaps(root), KernelConfig::read(root), CgroupLimits::read(root), SampleLimits::read(root));
    let _ = (limits::rt_priority(root), limits::locked_memory(root));
    if let Ok(file) = File::open(root.join("proc/locks")) {
        let _ = lock_holder(root, &file);
    }
}

fuzz_target!(|bytes: &[u8]| {
    static ROOT: LazyLock<PathBuf> = LazyLock::new(|| {
        let root = scratch().join("kernel");
        fs::create_dir_all(&root).expect("a directory of our own");
        root
    });
    readers(&ROOT, bytes);
    let text = String::from_utf8_lossy(bytes);
    counters(&text);
    tasks(&text);
    kernel_itself(&text);
});
