//! Programs that start in a certain place.
//!
//! Everything is set in the new process before the program starts, so none of its instructions runs elsewhere.

use std::ffi::CString;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use becalm_units::CpuList;
use rustix::fs::{Mode, OFlags};

use crate::relay::Relay;
use crate::rights::{User, becoming_in_child};
use crate::sched::{Policy, affinity_mask, set_affinity_mask};
use crate::signal_sets;

/// Settings for the start of a program. `None` leaves a setting unchanged.
#[derive(Clone, Copy, Debug, Default)]
pub struct ProgramStart<'a> {
    /// The control group's directory, which has `cgroup.procs`.
    pub group: Option<&'a Path>,
    /// The CPUs that the program may run on.
    pub cpus: Option<&'a CpuList>,
    /// The scheduling class of the program.
    pub policy: Option<Policy>,
    /// The user that it runs as, without capabilities. Everything else is set before, with the rights of this process, and remains: changing the user
    /// changes neither CPUs nor class nor group.
    pub user: Option<&'a User>,
}

/// Makes a program start there, with the signal mask from before the relay blocked signals.
///
/// Later failures make starting the program fail: `EINVAL` for CPUs outside of the group, `EPERM` for rights. Fails if the group's path contains a
/// zero.
pub fn begin_in(command: &mut Command, start: ProgramStart<'_>, relay: Option<&Relay>) -> io::Result<()> {
    let procs = start.group.map(|group| CString::new(group.join("cgroup.procs").as_os_str().as_bytes())).transpose()?;
    let mask = start.cpus.map(affinity_mask);
    let policy = start.policy;
    let signals = relay.map(Relay::previous);
    let become_user = start.user.map(becoming_in_child);
    if let Some(user) = start.user {
        user.equip(command);
    }
    let settle = move || {
        if let Some(procs) = &procs {
            enter(procs)?;
        }
        if let Some(mask) = &mask {
            set_affinity_mask(0, mask)?;
        }
        if let Some(policy) = policy {
            policy.set_for_calling_thread()?;
        }
        if let Some(signals) = &signals {
            signal_sets::mask(libc::SIG_SETMASK, signals);
        }
        become_user.as_ref().map_or(Ok(()), |become_user| become_user())
    };
    // SAFETY: the closure makes system calls on memory allocated before the fork, allocates nothing itself, and takes no lock.
    unsafe { command.pre_exec(settle) };
    Ok(())
}

/// Makes a program start with all signals blocked, in its own session: signals that a terminal, a service manager or `pkill` sends to the processes
/// around it do not end it. SIGKILL does.
pub fn apart_from_signals(command: &mut Command) {
    let settle = || {
        signal_sets::mask(libc::SIG_SETMASK, &signal_sets::all());
        // Fails only for the leader of a process group, which a new process is not.
        let _ = rustix::process::setsid();
        Ok(())
    };
    // SAFETY: the closure makes system calls on its own stack, allocates nothing, and takes no lock.
    unsafe { command.pre_exec(settle) };
}

/// Makes the calling process adopt its children's orphans, so all descendants of a child can be found by their parents.
pub fn adopt_orphans() -> io::Result<()> {
    Ok(rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?)
}

/// Moves the calling process into the group of a `cgroup.procs`.
fn enter(procs: &CString) -> io::Result<()> {
    let file = rustix::fs::open(procs, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())?;
    rustix::io::write(file, b"0")?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_may_begin_apart_from_signals() {
        let mut command = Command::new("sh");
        // Nothing that forks: a waiting shell lets signals through.
        command.args(["-c", "kill -TERM $$; kill -HUP $$; read -r stat </proc/$$/stat; echo \"$stat\""]);
        apart_from_signals(&mut command);
        let output = command.output().unwrap();
        assert!(output.status.success(), "{output:?}");
        let said = String::from_utf8(output.stdout).unwrap();
        let (pid, rest) = said.split_once(" (").expect("the line of proc(5)");
        // State, parent, process group, session.
        let session = rest.rsplit_once(") ").and_then(|(_, rest)| rest.split(' ').nth(3)).expect("a session");
        assert_eq!(session, pid);
    }

    #[test]
    fn a_program_begins_where_it_was_told_to() {
        let last: CpuList = crate::sched::allowed_cpus().unwrap().iter().last().into_iter().collect();
        let folder = tempfile::tempdir().unwrap();
        let procs = folder.path().join("cgroup.procs");
        std::fs::write(&procs, "").unwrap();
        let mut command = Command::new("grep");
        command.args(["Cpus_allowed_list", "/proc/self/status"]);
        let start =
            ProgramStart { group: Some(folder.path()), cpus: Some(&last), policy: Some(Policy::Batch), user: None };
        begin_in(&mut command, start, None).unwrap();
        let output = command.output().unwrap();
        assert_eq!(String::from_utf8(output.stdout).unwrap(), format!("Cpus_allowed_list:\t{last}\n"));
        assert_eq!(std::fs::read_to_string(&procs).unwrap(), "0");
        // A group that does not exist, and a CPU that does not exist.
        let start = ProgramStart { group: Some(Path::new("/none")), ..ProgramStart::default() };
        let mut command = Command::new("true");
        begin_in(&mut command, start, None).unwrap();
        assert_eq!(command.status().unwrap_err().kind(), io::ErrorKind::NotFound);
        let none: CpuList = "5000".parse().unwrap();
        let mut command = Command::new("true");
        begin_in(&mut command, ProgramStart { cpus: Some(&none), ..ProgramStart::default() }, None).unwrap();
        assert_eq!(command.status().unwrap_err().raw_os_error(), Some(libc::EINVAL));
    }
}
