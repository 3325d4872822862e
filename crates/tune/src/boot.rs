//! Kernel command-line parameters, for settings that need a reboot.

use becalm_linux::procfs::config::KernelConfig;
use becalm_linux::procfs::kernel::{command_line, parameter};
use becalm_units::CpuList;

use crate::machine::Machine;
use crate::request::{Division, Request};
use crate::{BootParameter, Family, Profile};

/// The parameters with which the kernel should be booted, for settings impossible at run time. Parameters that already cover the CPUs are left out;
/// incomplete lists are completed. The second list has a reason for each parameter that this kernel does not support.
pub(crate) fn parameters(
    machine: &dyn Machine,
    request: &Request,
    division: &Division,
) -> (Vec<BootParameter>, Vec<&'static str>) {
    let line = command_line(machine.root()).unwrap_or_default();
    let config = KernelConfig::read(machine.root()).ok().flatten();
    let is_able = |option: &str| config.as_ref().is_none_or(|config| config.has(option));
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
        if is_able("NO_HZ_FULL") {
            list(
                "nohz_full",
                "",
                &cpus,
                "the tick stops while a CPU runs a single thread",
                Some("every entry into the kernel takes some 100 ns longer on these CPUs"),
            );
        } else {
            notes.push("this kernel cannot stop the tick: CONFIG_NO_HZ_FULL is not set");
        }
        if is_able("RCU_NOCB_CPU") {
            list(
                "rcu_nocbs",
                "",
                &cpus,
                "callbacks of the kernel's memory reclaiming (RCU) run in threads that can be moved",
                None,
            );
        } else {
            notes.push("this kernel cannot move the callbacks of RCU: CONFIG_RCU_NOCB_CPU is not set");
        }
        list(
            "isolcpus",
            "managed_irq,domain,",
            &cpus,
            "interrupts that the kernel manages itself stay away, and nothing is ever placed on the CPUs by itself",
            Some("programs that do not choose their CPU never get one of these"),
        );
    }
    if request.wants(Family::Irq) && parameter(&line, "irqaffinity").is_none() {
        let rest = division.online.without(&cpus);
        list("irqaffinity", "", &rest, "interrupts keep to the other CPUs from the start", None);
    }
    if request.profile == Profile::Rt && parameter(&line, "skew_tick") != Some("1") {
        wanted.push(BootParameter {
            name: "skew_tick".to_owned(),
            value: Some("1".to_owned()),
            from: parameter(&line, "skew_tick").map(str::to_owned),
            reason: "the ticks of the CPUs do not come at one instant, and do not wait for each other's locks"
                .to_owned(),
            risk: Some("more power, since CPUs wake one after another".to_owned()),
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

    /// The parameters and the notes.
    fn planned(line: &str, profile: Profile, config: Option<&str>) -> (String, Vec<&'static str>) {
        let root = tempfile::tempdir().unwrap();
        for folder in ["proc/sys/kernel", "boot"] {
            std::fs::create_dir_all(root.path().join(folder)).unwrap();
        }
        std::fs::write(root.path().join("proc/cmdline"), line).unwrap();
        std::fs::write(root.path().join("proc/sys/kernel/osrelease"), "6.18.1").unwrap();
        if let Some(config) = config {
            std::fs::write(root.path().join("boot/config-6.18.1"), config).unwrap();
        }
        let list = |text: &str| text.parse::<CpuList>().unwrap();
        let division = Division {
            online: list("0-7"),
            cpus: list("2-3"),
            left_idle: list(""),
            siblings: list("6-7"),
            housekeeping: list("0-1,4-5"),
        };
        let request = Request { cpus: list("2-3"), profile, ..Request::default() };
        let (found, notes) = parameters(&LiveMachine::for_root(root.path()), &request, &division);
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
        let tick = "this kernel cannot stop the tick: CONFIG_NO_HZ_FULL is not set";
        let (wanted, notes) = planned("quiet", Profile::Hpc, Some(config));
        assert_eq!((wanted, notes), (format!("rcu_nocbs=2-3,6-7 {rest}"), vec![tick]));
        let (wanted, notes) = planned("quiet", Profile::Hpc, Some("CONFIG_HZ=250\n"));
        assert_eq!((wanted.as_str(), notes.len()), (rest, 2));
    }
}
