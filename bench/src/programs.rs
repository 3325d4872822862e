//! Child processes of a benchmark, with their resource usage.

use std::io;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use becalm_linux::sched;
use becalm_units::CpuId;

/// The resources used by a program.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Cost {
    /// Wall-clock time.
    pub wall: Duration,
    /// Processor time, in user and kernel mode.
    pub cpu: Duration,
    /// Peak memory. The kernel includes the peak of the parent process, so this is rather too large than too small.
    pub peak_bytes: u64,
    /// Whether its exit code was 0.
    pub success: bool,
}

/// The `becalm` built with this benchmark, or the one in the variable `BECALM`.
pub fn becalm() -> PathBuf {
    std::env::var_os("BECALM")
        .map_or_else(|| std::env::current_exe().unwrap_or_default().with_file_name("becalm"), PathBuf::from)
}

/// Runs a program, on one CPU if given, without its output, and returns its resource usage. Fails if it cannot be started there.
pub fn cost(command: &mut Command, cpu: Option<CpuId>) -> io::Result<Cost> {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let began = Instant::now();
    let child = run_pinned(cpu, || command.spawn())?;
    let mut status = 0;
    // SAFETY: all-zero bytes are a valid rusage.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: both pointers are valid for writes, and the child is ours and not waited for elsewhere.
    let waited = unsafe { libc::wait4(child.id() as libc::pid_t, &raw mut status, 0, &raw mut usage) };
    if waited < 0 {
        return Err(io::Error::last_os_error());
    }
    let time = |at: libc::timeval| Duration::new(at.tv_sec as u64, at.tv_usec as u32 * 1000);
    Ok(Cost {
        wall: began.elapsed(),
        cpu: time(usage.ru_utime) + time(usage.ru_stime),
        peak_bytes: usage.ru_maxrss as u64 * 1024,
        success: libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0,
    })
}

/// Runs a program on one CPU and returns its output. Fails if it cannot be started there.
pub fn output(command: &mut Command, cpu: CpuId) -> io::Result<Output> {
    run_pinned(Some(cpu), || command.stdin(Stdio::null()).output())
}

/// Runs `start` in a thread pinned to a CPU; child processes inherit that.
fn run_pinned<T: Send>(cpu: Option<CpuId>, start: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
    let Some(cpu) = cpu else { return start() };
    std::thread::scope(|scope| {
        let pinned = scope.spawn(|| {
            sched::pin_current_thread(cpu).map_err(io::Error::other)?;
            start()
        });
        pinned.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_accounted_for() {
        let burn = "i=0; while [ $i -lt 20000 ]; do i=$((i + 1)); done";
        let cost = cost(Command::new("sh").args(["-c", burn]), None).unwrap();
        assert!(cost.success && cost.cpu > Duration::ZERO && cost.wall >= cost.cpu / 2, "{cost:?}");
        assert!(cost.peak_bytes > 100_000, "{cost:?}");
        let failing = super::cost(Command::new("sh").args(["-c", "exit 3"]), None).unwrap();
        assert!(!failing.success);
    }

    #[test]
    fn a_program_runs_where_it_shall() {
        let cpu = sched::allowed_cpus().unwrap().iter().last().unwrap();
        let output = output(Command::new("grep").args(["Cpus_allowed_list", "/proc/self/status"]), cpu).unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        assert_eq!(text.split_whitespace().last(), Some(cpu.to_string().as_str()));
    }
}
