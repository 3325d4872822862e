//! Finds out what becalm can see on this machine: `becalm` without a command.
//!
//! A recording needs abilities: a counter, CPUs, the kernel's trace. Each [`Answer`](becalm_model::audit::Answer) reports the availability of one of
//! them, the consequence for a recording, and the fix. [`check`](crate::check) looks for disturbances of quiet CPUs. Everything is read below a root
//! directory, including the identity and rights of the process, so fake trees can test every kind of machine. Nothing is changed to try it out.

mod cpus;
mod kernel;
mod machine;

use std::path::Path;

use becalm_linux::identity::Identity;
use becalm_linux::procfs::cpuinfo::CpuInfo;
use becalm_linux::procfs::kernel::{hostname, release};
use becalm_linux::sched::try_realtime;
use becalm_model::audit::{Ability, Audit, FirstStep};

/// Examines the machine with its files below `root`. Never fails: what cannot be read becomes an answer.
pub fn look(root: &Path) -> Audit {
    let identity = Identity::read(root);
    let mut answers = vec![machine::counter(root)];
    let cpus::Reachable { measurable, isolated } = cpus::reachable(root, &identity, &mut answers);
    // Only on this machine; it changes only a thread that ends at once.
    let attempt = (root == Path::new("/")).then(try_realtime);
    answers.extend(cpus::realtime(root, &identity, &measurable, attempt));
    answers.push(cpus::memory(root, &identity));
    answers.extend(kernel::tracing(root, &identity));
    answers.push(kernel::symbols(root));
    answers.push(kernel::counters(root));
    answers.push(machine::hypervisor(root));
    answers.extend(machine::power(root, &measurable));
    let mut audit = Audit {
        node: hostname(root).unwrap_or_default(),
        kernel: release(root).unwrap_or_default(),
        processor: CpuInfo::read(root).unwrap_or_default().model,
        answers,
        measurable,
        isolated,
        first_steps: Vec::new(),
    };
    audit.first_steps = first_steps(&audit, identity.status.uid == 0);
    audit
}

/// The commands to start with; none if nothing can be measured.
fn first_steps(audit: &Audit, is_root: bool) -> Vec<FirstStep> {
    let Some(last) = audit.measurable.iter().last() else { return Vec::new() };
    let step = |command: String, why: &str| FirstStep { command, why: why.to_owned() };
    let sudo = if is_root { "" } else { "sudo " };
    let mut steps = vec![step(format!("{sudo}becalm record"), "10 s on all CPUs: how noisy, who, and what to do")];
    if !audit.isolated.is_empty() {
        let sched = if audit.has(Ability::Realtime) { " --sched fifo:80" } else { "" };
        let command = format!("{sudo}becalm record --cpus {}{sched}", audit.isolated);
        steps.push(step(command, "what still reaches the isolated CPUs"));
    }
    steps.push(step(format!("{sudo}becalm top"), "the same, live"));
    steps.push(step(
        format!("{sudo}becalm tune audit --cpus {last}"),
        "settings that let noise onto a CPU, and how to fix them",
    ));
    steps.push(step(format!("{sudo}becalm bench -- COMMAND"), "run a benchmark on an isolated CPU"));
    steps
}

#[cfg(test)]
mod tests;
