//! Names of formats, and their common properties.

use std::fs;

use becalm_units::{CpuList, Named};
use proptest::prelude::*;

use super::file::sysctl_name;
use super::*;
use crate::{LiveMachine, Request, plan};

#[test]
fn names_read_back() {
    for format in Format::ALL.iter().copied() {
        assert_eq!(format.to_string().parse(), Ok(format));
    }
    assert!(
        "table"
            .parse::<Format>()
            .unwrap_err()
            .to_string()
            .contains("'table' is no format; choose one of tuned, systemd")
    );
}

#[test]
fn names_of_sysctls() {
    assert_eq!(sysctl_name("/proc/sys/kernel/timer_migration").unwrap(), "kernel.timer_migration");
    assert_eq!(sysctl_name("/proc/sys/net/ipv4/conf/eth0.7/mtu").unwrap(), "net.ipv4.conf.eth0/7.mtu");
    assert_eq!(sysctl_name("/sys/kernel/mm/ksm/run"), None);
}

/// Packages, cores and threads as Linux numbers them on a machine of two packages: the first threads of all cores first.
fn tree(packages: u32, cores: u32, threads: u32) -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    let all = packages * cores;
    let base = root.path().join("sys/devices/system/cpu");
    fs::create_dir_all(&base).unwrap();
    fs::write(base.join("online"), format!("0-{}\n", all * threads - 1)).unwrap();
    for cpu in 0..all * threads {
        let core = cpu % all;
        let siblings: Vec<String> = (0..threads).map(|thread| (core + thread * all).to_string()).collect();
        let folder = base.join(format!("cpu{cpu}/topology"));
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("thread_siblings_list"), siblings.join(",")).unwrap();
        // Cores alternate between the packages, as with some firmware.
        fs::write(folder.join("physical_package_id"), (core % packages).to_string()).unwrap();
    }
    root
}

#[test]
fn a_name_that_is_none_stays_out_of_files() {
    let root = tree(1, 2, 1);
    let folder = root.path().join("proc/sys/kernel");
    fs::create_dir_all(&folder).unwrap();
    for (hostname, node) in
        [("node7.cluster\n", "node7"), ("rack-1_a\n", "rack-1_a"), ("a\nFORGED=yes.b", ""), ("a\u{1b}[2J", "")]
    {
        fs::write(folder.join("hostname"), hostname).unwrap();
        assert_eq!(Topology::read(root.path()).unwrap().node, node, "{hostname:?}");
    }
}

#[test]
fn settings_of_a_control_group_stay_out_of_files_wherever_it_is_mounted() {
    for place in ["sys/fs/cgroup/cpuset", "sys/fs/elsewhere", "sys/fs/\u{1b}[2J"] {
        let root = tree(1, 2, 1);
        let write = |path: &str, text: &str| {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write("proc/self/mountinfo", &format!("1 2 0:1 / /{place} rw - cgroup none rw,cpuset\n"));
        for (file, text) in [("cpus", "0-1\n"), ("mems", "0\n"), ("sched_load_balance", "1\n")] {
            write(&format!("{place}/cpuset.{file}"), text);
        }
        write("sys/kernel/mm/ksm/run", "1\n");
        let request = Request { cpus: "1".parse().unwrap(), ..Request::default() };
        let plan = plan(&LiveMachine::for_root(root.path()), &request).unwrap();
        assert!(plan.steps.iter().any(|change| change.knob.to_string().contains("cpuset.cpus")), "{:?}", plan.steps);
        let topology = Topology::read(root.path()).unwrap();
        let texts =
            |format: Format| files(format, &plan, &topology).into_iter().map(|file| file.text).collect::<String>();
        for text in Format::ALL.iter().copied().map(texts) {
            assert!(!text.contains("cpuset.") && !text.contains("elsewhere") && !text.contains('\u{1b}'), "{text}");
        }
        assert!(texts(Format::Tuned).contains("/sys/kernel/mm/ksm/run=0"), "{}", texts(Format::Tuned));
    }
}

#[test]
fn slurm_counts_threads_of_a_core_beside_each_other() {
    let root = tree(1, 4, 2);
    let topology = Topology::read(root.path()).unwrap();
    let ids = |list: &str| topology.abstract_ids(&list.parse().unwrap()).to_string();
    // Core 0 has CPUs 0 and 4 of Linux, 0 and 1 of Slurm.
    assert_eq!((ids("0"), ids("4"), ids("0,4"), ids("3,7")), ("0".into(), "1".into(), "0-1".into(), "6-7".into()));
    let (whole, part) = topology.split(&"0,4,1".parse().unwrap());
    assert_eq!((whole, part), (1, vec![&"1,5".parse().unwrap()]));
}

#[test]
fn slurm_counts_package_by_package() {
    let topology = Topology::read(tree(2, 2, 1).path()).unwrap();
    let ids = |list: &str| topology.abstract_ids(&list.parse().unwrap()).to_string();
    // CPUs 0 and 2 are in the first package.
    assert_eq!((ids("0"), ids("2"), ids("1"), ids("3")), ("0".into(), "1".into(), "2".into(), "3".into()));
}

#[test]
fn a_machine_that_does_not_tell_its_topology_has_cores_of_one_thread() {
    let root = tempfile::tempdir().unwrap();
    fs::create_dir_all(root.path().join("sys/devices/system/cpu")).unwrap();
    fs::write(root.path().join("sys/devices/system/cpu/online"), "0,2-3\n").unwrap();
    let topology = Topology::read(root.path()).unwrap();
    assert_eq!(topology.abstract_ids(&"2".parse().unwrap()).to_string(), "1");
    assert!(Topology::read(tempfile::tempdir().unwrap().path()).unwrap_err().to_string().contains("online"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn every_cpu_has_one_number(packages in 1_u32..4, cores in 1_u32..5, threads in 1_u32..4) {
        let topology = Topology::read(tree(packages, cores, threads).path()).unwrap();
        let all = packages * cores * threads;
        let numbers: CpuList = (0..all).flat_map(|cpu| {
            let ids = topology.abstract_ids(&cpu.to_string().parse().unwrap());
            ids.iter().collect::<Vec<_>>()
        }).collect();
        prop_assert_eq!(numbers.to_string(), format!("0-{}", all - 1).parse::<CpuList>().unwrap().to_string());
    }
}
