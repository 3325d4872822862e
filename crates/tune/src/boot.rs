//! Kernel command-line parameters, for settings that need a reboot.

use std::path::Path;

use becalm_linux::file::path_below;
use becalm_linux::procfs::config::KernelConfig;
use becalm_linux::procfs::kernel::{command_line, parameter};
use becalm_units::CpuList;

use crate::machine::Machine;
use crate::request::{Division, Request};
use crate::{BootParameter, Family, Profile};

/// The option with which a kernel that can stop the tick was built.
pub(crate) const STOPPABLE_TICK: &str = "NO_HZ_FULL";
/// The option with which a kernel that can move RCU callbacks was built.
pub(crate) const MOVABLE_CALLBACKS: &str = "RCU_NOCB_CPU";
/// The list of tickless CPUs, in kernels that can stop the tick.
pub(crate) const TICKLESS: &str = "/sys/devices/system/cpu/nohz_full";

/// Whether the kernel was built with an option that a boot parameter needs; `None` if unknown.
pub(crate) fn is_built_with(root: &Path, config: Option<&KernelConfig>, option: &str) -> Option<bool> {
    let shows_it = || (option == STOPPABLE_TICK && path_below(root, TICKLESS).exists()).then_some(true);
    config.map_or_else(shows_it, |config| Some(config.has(option)))
}

/// The parameters with which the kernel should be booted, for settings impossible at run time. Parameters that already cover the CPUs are left out;
/// incomplete lists are completed. The second list has a reason for each parameter that this kernel does not support.
pub(crate) fn parameters(
    machine: &dyn Machine,
    request: &Request,
    division: &Division,
) -> (Vec<BootParameter>, Vec<String>) {
    let line = command_line(machine.root()).unwrap_or_default();
    let config = KernelConfig::read(machine.root()).ok().flatten();
    let mut notes = Vec::new();
    let cpus = division.cleared();
    let mut wanted = Vec::new();
    let mut list = |name: &str, flags: &str, cpus: &CpuList, reason: &str, risk: Option<&str>| {
        let from = parameter(&line, name);
        let held = from.map(listed).unwrap_or_default();
        let complete: CpuList = held.iter().chain(cpus.iter()).collect();
        let has_flags = flags.split(',').all(|flag| flag.is_empty() || from.is_some_and(|from| has_flag(from, flag)));
        if complete != held || !has_flags {
            wanted.push(BootParameter {
                name: name.to_owned(),
                value: Some(format!("{flags}{complete}")),
                from: from.map(str::to_owned),
                reason: reason.to_owned(),
                risk: risk.map(str::to_owned),
            });
        }
    };
    if request.wants(Family::Cpuset) {
        for (name, option, reason, risk) in [
            (
                "nohz_full",
                STOPPABLE_TICK,
                "the tick stops while a CPU runs a single thread",
                Some("every entry into the kernel takes about 100 ns longer on these CPUs"),
            ),
            ("rcu_nocbs", MOVABLE_CALLBACKS, "RCU callbacks run in threads that can be moved", None),
        ] {
            match is_built_with(machine.root(), config.as_ref(), option) {
                Some(true) => list(name, "", &cpus, reason, risk),
                Some(false) => {
                    notes.push(format!("{name}= is left out: this kernel was built without CONFIG_{option}"));
                }
                None => {
                    let reason = format!("{reason}, if the kernel was built with CONFIG_{option}");
                    list(name, "", &cpus, &reason, risk);
                }
            }
        }
        list(
            "isolcpus",
            "managed_irq,domain,",
            &cpus,
            "interrupts that the kernel manages stay away, and the scheduler places no thread on the CPUs",
            Some("only programs that choose these CPUs run on them"),
        );
    }
    if request.wants(Family::Irq) && parameter(&line, "irqaffinity").is_none() {
        let rest = division.online.without(&cpus);
        list("irqaffinity", "", &rest, "interrupts stay on the other CPUs from the start", None);
    }
    if request.profile == Profile::Rt && parameter(&line, "skew_tick") != Some("1") {
        wanted.push(BootParameter {
            name: "skew_tick".to_owned(),
            value: Some("1".to_owned()),
            from: parameter(&line, "skew_tick").map(str::to_owned),
            reason: "the CPUs do not tick at the same moment and wait for each other's locks".to_owned(),
            risk: Some("more power, because CPUs wake one after another".to_owned()),
        });
    }
    (wanted, notes)
}

/// The list of CPUs in a value with optional flags in front: `managed_irq,domain,2-3`.
fn listed(value: &str) -> CpuList {
    let numbers = value.split(',').filter(|part| part.starts_with(|first: char| first.is_ascii_digit()));
    numbers.collect::<Vec<_>>().join(",").parse().unwrap_or_default()
}

/// Whether a value has a leading flag; `isolcpus` without any means `domain`.
fn has_flag(value: &str, flag: &str) -> bool {
    let mut flags =
        value.split(',').take_while(|part| !part.starts_with(|first: char| first.is_ascii_digit())).peekable();
    if flags.peek().is_none() { flag == "domain" } else { flags.any(|part| part == flag) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::LiveMachine;

    fn wanted(line: &str, profile: Profile) -> String {
        planned(line, profile, None).0
    }

    fn machine(line: &str, config: Option<&str>) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for folder in ["proc/sys/kernel", "boot"] {
            std::fs::create_dir_all(root.path().join(folder)).unwrap();
        }
        std::fs::write(root.path().join("proc/cmdline"), line).unwrap();
        std::fs::write(root.path().join("proc/sys/kernel/osrelease"), "6.18.1").unwrap();
        if let Some(config) = config {
            std::fs::write(root.path().join("boot/config-6.18.1"), config).unwrap();
        }
        root
    }

    fn parameters_of(root: &Path, profile: Profile) -> (Vec<BootParameter>, Vec<String>) {
        let list = |text: &str| text.parse::<CpuList>().unwrap();
        let division = Division {
            online: list("0-7"),
            cpus: list("2-3"),
            left_idle: list(""),
            siblings: list("6-7"),
            housekeeping: list("0-1,4-5"),
        };
        let request = Request { cpus: list("2-3"), profile, ..Request::default() };
        parameters(&LiveMachine::for_root(root), &request, &division)
    }

    /// The parameters and the notes.
    fn planned(line: &str, profile: Profile, config: Option<&str>) -> (String, Vec<String>) {
        let root = machine(line, config);
        let (found, notes) = parameters_of(root.path(), profile);
        (found.iter().map(BootParameter::text).collect::<Vec<_>>().join(" "), notes)
    }

    #[test]
    fn what_is_missing_is_added_and_what_is_there_is_not() {
        assert_eq!(
            wanted("quiet", Profile::Hpc),
            "nohz_full=2-3,6-7 rcu_nocbs=2-3,6-7 isolcpus=managed_irq,domain,2-3,6-7 irqaffinity=0-1,4-5"
        );
        let whole = "nohz_full=1-7 rcu_nocbs=2-3,6-7 isolcpus=domain,managed_irq,2-7 irqaffinity=0";
        assert_eq!(wanted(whole, Profile::Hpc), "");
        assert_eq!(wanted(whole, Profile::Rt), "skew_tick=1");
        let part = "nohz_full=1-2 rcu_nocbs=1-7 isolcpus=2-3,6-7 irqaffinity=0";
        assert_eq!(wanted(part, Profile::Hpc), "nohz_full=1-3,6-7 isolcpus=managed_irq,domain,2-3,6-7");
    }

    #[test]
    fn nothing_is_wanted_that_the_kernel_was_not_built_for() {
        let rest = "isolcpus=managed_irq,domain,2-3,6-7 irqaffinity=0-1,4-5";
        let config = "# CONFIG_NO_HZ_FULL is not set\nCONFIG_RCU_NOCB_CPU=y\n";
        let tick = "nohz_full= is left out: this kernel was built without CONFIG_NO_HZ_FULL";
        let (wanted, notes) = planned("quiet", Profile::Hpc, Some(config));
        assert_eq!((wanted, notes), (format!("rcu_nocbs=2-3,6-7 {rest}"), vec![tick.to_owned()]));
        let (wanted, notes) = planned("quiet", Profile::Hpc, Some("CONFIG_HZ=250\n"));
        assert_eq!((wanted.as_str(), notes.len()), (rest, 2));
    }

    #[test]
    fn without_a_configuration_the_condition_is_named() {
        let root = machine("quiet", None);
        let reasons = || -> Vec<String> {
            parameters_of(root.path(), Profile::Hpc).0.into_iter().map(|parameter| parameter.reason).collect()
        };
        assert!(reasons()[0].ends_with("if the kernel was built with CONFIG_NO_HZ_FULL"), "{:?}", reasons());
        assert!(reasons()[1].ends_with("if the kernel was built with CONFIG_RCU_NOCB_CPU"), "{:?}", reasons());
        // Only kernels with the option have this file.
        std::fs::create_dir_all(root.path().join("sys/devices/system/cpu")).unwrap();
        std::fs::write(path_below(root.path(), TICKLESS), "\n").unwrap();
        assert!(!reasons()[0].contains("CONFIG"), "{:?}", reasons());
    }
}
