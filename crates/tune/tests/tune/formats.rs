//! Plans as files of tuned, systemd and Slurm: as they were before, and as these programs themselves read them.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use becalm_testing::{Need, find_program, machine_has};
use becalm_tune::format::{ConfigFile, Format, Topology, files};
use becalm_tune::{Family, Plan, Profile, Request, plan};
use becalm_units::Named;

use crate::fake::{Fake, Groups, machine};

/// A plan for three of four CPUs of a fake machine, the last of which is left to the system.
fn planned(root: &Path, profile: Profile, skip: &[Family]) -> Plan {
    machine(root, 4, false, Groups::Two).file("/proc/sys/kernel/hostname", "node7.cluster\n");
    let request = Request {
        cpus: "1-3".parse().unwrap(),
        profile,
        leave_idle: 1,
        skip: skip.iter().copied().collect::<BTreeSet<_>>(),
        ..Request::default()
    };
    plan(&Fake::new(root), &request).unwrap()
}

fn written(format: Format, profile: Profile) -> Vec<ConfigFile> {
    let root = tempfile::tempdir().unwrap();
    let plan = planned(root.path(), profile, &[]);
    files(format, &plan, &Topology::read(root.path()).unwrap())
}

fn one_text(files: &[ConfigFile]) -> String {
    files.iter().map(|file| format!("==> {}\n{}\n", file.path.display(), file.text)).collect()
}

/// Puts files below a folder.
fn put(files: &[ConfigFile], root: &Path) {
    for file in files {
        let path = root.join(&file.path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, &file.text).unwrap();
    }
}

/// Runs a program; `None` where it is not installed.
fn tool(name: &str, arguments: &[&str]) -> Option<Output> {
    machine_has(&[Need::Program(name)]).then(|| {
        let program = find_program(name).expect("it was found before");
        Command::new(program).args(arguments).output().expect("a program that is there can be run")
    })
}

#[track_caller]
fn succeeded(output: &Output) -> String {
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{}: {out}{err}", output.status);
    format!("{out}{err}")
}

#[test]
fn they_are_as_before() {
    for format in Format::ALL.iter().copied() {
        insta::assert_snapshot!(format!("{format}"), one_text(&written(format, Profile::Rt)));
    }
}

#[test]
fn what_is_skipped_is_in_no_file() {
    let root = tempfile::tempdir().unwrap();
    let skip: Vec<Family> = Family::ALL.iter().copied().filter(|family| *family != Family::Vmstat).collect();
    let plan = planned(root.path(), Profile::Hpc, &skip);
    let topology = Topology::read(root.path()).unwrap();
    let tuned = one_text(&files(Format::Tuned, &plan, &topology));
    assert!(tuned.contains("vm.stat_interval=120") && !tuned.contains("[scheduler]") && !tuned.contains("[cpu]"));
    assert!(!tuned.contains("[sysfs]") && !tuned.contains("[irqbalance]"), "{tuned}");
    let systemd = files(Format::Systemd, &plan, &topology);
    let paths: Vec<_> = systemd.iter().map(|file| file.path.to_str().unwrap()).collect();
    assert_eq!(paths, ["etc/systemd/system/becalm.slice", "etc/sysctl.d/50-becalm.conf"]);
}

#[test]
fn python_reads_the_profile_as_tuned_does() {
    let folder = tempfile::tempdir().unwrap();
    put(&written(Format::Tuned, Profile::Rt), folder.path());
    // The options of tuned/utils/config_parser.py and its users.
    let program = "\
import configparser, sys
it = configparser.ConfigParser(delimiters=('='), inline_comment_prefixes=('#'), strict=True, interpolation=None)
it.optionxform = str
it.read_file(open(sys.argv[1]))
for section in it.sections():
    for name, value in it.items(section):
        print(section, name, value, sep='|')
";
    let path = folder.path().join("etc/tuned/profiles/becalm/tuned.conf");
    let Some(output) = tool("python3", &["-c", program, path.to_str().unwrap()]) else {
        return;
    };
    let text = succeeded(&output);
    for line in [
        "variables|isolated_cores|1-2",
        "variables|housekeeping_cores|0,3",
        "sysctl|vm.stat_interval|120",
        "sysfs|/sys/kernel/mm/ksm/run|0",
        "scheduler|isolated_cores|${isolated_cores}",
        "irqbalance|banned_cpus|${isolated_cores}",
        "cpu|governor|performance",
    ] {
        assert!(text.lines().any(|it| it == line), "no {line} in {text}");
    }
    assert!(
        text.contains("bootloader|cmdline_becalm|+nohz_full=1-2 rcu_nocbs=1-2 isolcpus=managed_irq,domain,1-2"),
        "{text}"
    );
}

#[test]
fn tuned_loads_the_profile() {
    let folder = tempfile::tempdir().unwrap();
    put(&written(Format::Tuned, Profile::Rt), folder.path());
    let program = "\
import sys
from tuned.profiles.factory import Factory
from tuned.profiles.loader import Loader
from tuned.profiles.locator import Locator
from tuned.profiles.merger import Merger
from tuned.profiles.variables import Variables
from tuned.utils.global_config import GlobalConfig
variables = Variables()
profile = Loader(Locator([sys.argv[1]]), Factory(), Merger(), GlobalConfig(), variables).load(['becalm'])
for name, unit in profile.units.items():
    print(name, 'devices', unit.devices, sep='|')
    for option, value in unit.options.items():
        print(name, option, variables.expand(value), sep='|')
";
    let profiles = folder.path().join("etc/tuned/profiles");
    let Some(output) = tool("tuned-adm", &["--version"]) else { return };
    succeeded(&output);
    let Some(output) = tool("/usr/bin/python3", &["-c", program, profiles.to_str().unwrap()]) else {
        return;
    };
    let text = succeeded(&output);
    for line in [
        "sysctl|vm.stat_interval|120",
        "scheduler|isolated_cores|1-2",
        "cpu|devices|cpu1,cpu2",
        "irqbalance|banned_cpus|1-2",
    ] {
        assert!(text.lines().any(|it| it == line), "no {line} in {text}");
    }
}

#[test]
fn systemd_verifies_the_units() {
    let folder = tempfile::tempdir().unwrap();
    put(&written(Format::Systemd, Profile::Rt), folder.path());
    let unit = folder.path().join("etc/systemd/system/becalm.slice");
    let Some(output) = tool("systemd-analyze", &["verify", "--man=no", unit.to_str().unwrap()]) else {
        return;
    };
    let said = succeeded(&output);
    assert!(!said.contains("becalm"), "{said}");
    // The drop-ins, as a unit of each kind.
    for (unit, kind) in [("system.slice", "Slice"), ("init.scope", "Scope"), ("irqbalance.service", "Service")] {
        let drop_in = folder.path().join(format!("etc/systemd/system/{unit}.d/50-becalm.conf"));
        let text = fs::read_to_string(&drop_in).unwrap();
        assert!(text.contains(&format!("[{kind}]\n")), "{text}");
    }
    let service = folder.path().join("dropped.service");
    let drop_in =
        fs::read_to_string(folder.path().join("etc/systemd/system/irqbalance.service.d/50-becalm.conf")).unwrap();
    fs::write(&service, format!("{drop_in}Type=oneshot\nExecStart=/bin/true\nAllowedCPUs=0\nCPUAffinity=0\n")).unwrap();
    let output = tool("systemd-analyze", &["verify", "--man=no", service.to_str().unwrap()]);
    let said = succeeded(&output.unwrap());
    assert!(!said.contains("dropped.service"), "{said}");
}

#[test]
fn systemd_writes_the_settings() {
    let machine_root = tempfile::tempdir().unwrap();
    let plan = planned(machine_root.path(), Profile::Rt, &[]);
    let root = machine_root.path();
    let all = files(Format::Systemd, &plan, &Topology::read(root).unwrap());
    put(&all, root);
    let arguments = [&format!("--root={}", root.display()), "--create", "50-becalm.conf"];
    let Some(output) = tool("systemd-tmpfiles", &arguments) else { return };
    succeeded(&output);
    let text = |path: &str| fs::read_to_string(root.join(path)).unwrap();
    assert_eq!(text("sys/kernel/mm/ksm/run").trim(), "0");
    assert_eq!(text("sys/devices/system/cpu/cpu2/cpufreq/scaling_governor").trim(), "performance");
    assert_eq!(text("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor").trim(), "powersave");
    assert_eq!(text("sys/devices/virtual/workqueue/cpumask").trim(), "00000009");
}

#[test]
fn slurm_reads_its_settings() {
    let folder = tempfile::tempdir().unwrap();
    put(&written(Format::Slurm, Profile::Rt), folder.path());
    let path = folder.path().join("etc/slurm/slurm.conf.becalm");
    let text = fs::read_to_string(&path).unwrap();
    let node = text.lines().find(|line| line.starts_with("NodeName=")).unwrap();
    assert_eq!(node, "NodeName=node7 CpuSpecList=0,3");
    // What the file is merged into.
    let whole = format!(
        "ClusterName=test\nSlurmctldHost=node7\nAuthType=auth/none\nCryptoType=crypto/none\n{}\nPartitionName=all Nodes=node7\n",
        text.replace("CpuSpecList", "CPUs=4 CpuSpecList")
    );
    let conf = folder.path().join("slurm.conf");
    fs::write(&conf, whole).unwrap();
    let Some(output) = tool("slurmd", &["-f", conf.to_str().unwrap(), "-N", "node7", "-G"]) else {
        return;
    };
    let said = succeeded(&output);
    for word in ["Parsing error", "Parse error", "Invalid", "unrecognized", "CpuSpecList", "TaskPluginParam"] {
        assert!(!said.contains(word), "{said}");
    }
}
