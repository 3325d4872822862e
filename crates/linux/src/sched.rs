//! Where and how a thread runs: CPU affinity through the raw system call, scheduling classes, and the kernel's statistics of a thread's faults and
//! switches.

use std::fmt;
use std::io;
use std::marker::PhantomData;
use std::str::FromStr;

use becalm_units::{CpuId, CpuList};

use crate::rights::Need;

/// A thread could not be placed or given its scheduling class.
#[derive(Debug, thiserror::Error)]
pub enum SchedError {
    /// The kernel refused to let the thread run on these CPUs only.
    #[error("cannot run on CPU {cpus}: {source}{}", affinity_hint(source))]
    Affinity {
        /// The CPUs that the thread was to run on.
        cpus: CpuList,
        /// The error of the system call.
        r#source: io::Error,
    },
    /// The affinity of the thread with this number could not be read.
    #[error("cannot read on which CPUs thread {0} may run: {1}")]
    ReadAffinity(i32, io::Error),
    /// A thread of becalm, with this name, could not be started.
    #[error("cannot start the thread {0}: {1}")]
    Start(String, io::Error),
    /// A thread of becalm, with this name, ended before it was ready, which only a bug can cause.
    #[error("the thread {0} ended before it was ready")]
    Ended(String),
    /// The kernel refused the scheduling class.
    #[error("cannot set the scheduling class {0}: {1}{hint}", hint = class_hint(.1))]
    Class(Policy, io::Error),
}

becalm_units::fault::faultless!(SchedError);

fn affinity_hint(error: &io::Error) -> &'static str {
    match error.raw_os_error() {
        Some(libc::EINVAL) => " (the CPU is offline, or the cgroup's cpuset does not hold it)",
        _ => "",
    }
}

fn class_hint(error: &io::Error) -> String {
    match error.raw_os_error() {
        Some(libc::EPERM) => {
            format!(
                "; {}; on a kernel with CONFIG_RT_GROUP_SCHED the control group needs a budget as well: cpu.rt_runtime_us > 0 in \
                 cgroup v1, the top group in v2",
                Need::Realtime.advice()
            )
        }
        _ => String::new(),
    }
}

/// The scheduling classes for a loop.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Policy {
    /// `SCHED_OTHER`, the default of every thread.
    #[default]
    Other,
    /// `SCHED_BATCH`: like `SCHED_OTHER`, but its wake-ups do not preempt others.
    Batch,
    /// `SCHED_FIFO` with a priority of 1 to 99.
    Fifo(u8),
    /// `SCHED_RR` with a priority of 1 to 99.
    RoundRobin(u8),
}

impl Policy {
    /// Whether the class is a real-time one.
    pub const fn is_realtime(self) -> bool {
        matches!(self, Self::Fifo(_) | Self::RoundRobin(_))
    }

    /// The class to request from the kernel; `None` for [`Self::Other`], with which a thread keeps its inherited class.
    pub fn unless_other(self) -> Option<Self> {
        (self != Self::Other).then_some(self)
    }

    /// The real-time priority; 0 outside of the real-time classes.
    pub const fn priority(self) -> u8 {
        match self {
            Self::Other | Self::Batch => 0,
            Self::Fifo(priority) | Self::RoundRobin(priority) => priority,
        }
    }

    const fn number(self) -> libc::c_int {
        match self {
            Self::Other => libc::SCHED_OTHER,
            Self::Batch => libc::SCHED_BATCH,
            Self::Fifo(_) => libc::SCHED_FIFO,
            Self::RoundRobin(_) => libc::SCHED_RR,
        }
    }
}

impl Policy {
    /// Puts the calling thread into the class; allocates nothing.
    pub(crate) fn set_for_calling_thread(self) -> io::Result<()> {
        let parameter = libc::sched_param { sched_priority: i32::from(self.priority()) };
        // SAFETY: the raw call reads one sched_param, which is alive. The C library's wrapper works on glibc, but always fails on musl.
        let result = unsafe { libc::syscall(libc::SYS_sched_setscheduler, 0, self.number(), &raw const parameter) };
        if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Other => f.write_str("other"),
            Self::Batch => f.write_str("batch"),
            Self::Fifo(priority) => write!(f, "fifo:{priority}"),
            Self::RoundRobin(priority) => write!(f, "rr:{priority}"),
        }
    }
}

/// A text that is not a scheduling class.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "'{0}' is not a scheduling class: write other, batch, fifo:PRIORITY or rr:PRIORITY with a priority from 1 to 99"
)]
pub struct ParsePolicyError(String);

impl FromStr for Policy {
    type Err = ParsePolicyError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let err = || ParsePolicyError(text.to_owned());
        let (name, priority) = match text.split_once(':') {
            Some((name, priority)) => {
                let priority: u8 = priority.parse().map_err(|_| err())?;
                (name, Some(priority).filter(|priority| (1..=99).contains(priority)).ok_or_else(err)?)
            }
            None if text == "other" => return Ok(Self::Other),
            None if text == "batch" => return Ok(Self::Batch),
            None => return Err(err()),
        };
        match name {
            "fifo" => Ok(Self::Fifo(priority)),
            "rr" => Ok(Self::RoundRobin(priority)),
            _ => Err(err()),
        }
    }
}

/// The calling thread's number, as used in the kernel's trace.
pub fn current_tid() -> i32 {
    rustix::thread::gettid().as_raw_nonzero().get()
}

/// The CPU on which the calling thread runs at this moment.
///
/// Calls the C library, which takes it from the thread's rseq area or the vDSO, without a system call on kernels since 4.18 with a C library of 2022
/// or later.
#[inline]
pub fn current_cpu() -> Option<CpuId> {
    // SAFETY: the function takes nothing and only returns a number.
    let cpu = unsafe { libc::sched_getcpu() };
    u32::try_from(cpu).ok().map(CpuId::new)
}

/// Lets the calling thread run on these CPUs only.
///
/// Uses the raw system call with a mask as long as needed: the C library's `cpu_set_t` ends at 1,024 CPUs, and many libraries omit isolated CPUs from
/// the available ones. Fails if the kernel knows or allows none of the CPUs.
pub fn set_affinity(cpus: &CpuList) -> Result<(), SchedError> {
    set_affinity_of(0, cpus)
}

/// Lets a thread run on these CPUs only; thread 0 is the calling one. Fails if the kernel knows or allows none of the CPUs, or the thread is gone or
/// another user's.
pub fn set_affinity_of(tid: i32, cpus: &CpuList) -> Result<(), SchedError> {
    set_affinity_mask(tid, &affinity_mask(cpus)).map_err(|source| SchedError::Affinity { cpus: cpus.clone(), source })
}

/// The same for a mask in the kernel's format; allocates nothing.
pub(crate) fn set_affinity_mask(tid: i32, mask: &[libc::c_ulong]) -> io::Result<()> {
    // SAFETY: the kernel reads `size_of_val(mask)` bytes from the mask, which is alive.
    let result = unsafe { libc::syscall(libc::SYS_sched_setaffinity, tid, size_of_val(mask), mask.as_ptr()) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// The bits of a list of CPUs, in the kernel's format.
pub(crate) fn affinity_mask(cpus: &CpuList) -> Vec<libc::c_ulong> {
    let bits = libc::c_ulong::BITS;
    let words = cpus.iter().last().map_or(1, |last| (last.get() / bits) as usize + 1);
    let mut mask: Vec<libc::c_ulong> = vec![0; words];
    for cpu in cpus.iter() {
        mask[(cpu.get() / bits) as usize] |= 1 << (cpu.get() % bits);
    }
    mask
}

/// Keeps the calling thread, and threads that it starts meanwhile, on certain CPUs. Restores its previous CPUs on drop.
#[derive(Debug)]
pub struct AffinityGuard {
    /// The CPUs to restore; `None` if nothing was changed.
    before: Option<CpuList>,
    /// The affinity is that of the thread that created the guard.
    _here: PhantomData<*const ()>,
}

impl AffinityGuard {
    /// Keeps the calling thread on these CPUs. An empty list changes nothing. Fails if the kernel knows or allows none
    /// of the CPUs.
    pub fn keep_on(cpus: &CpuList) -> Result<Self, SchedError> {
        let before = if cpus.is_empty() { None } else { Some(allowed_cpus()?) };
        if before.is_some() {
            set_affinity(cpus)?;
        }
        Ok(Self { before, _here: PhantomData })
    }

    /// Keeps the calling thread off these CPUs. Changes nothing if it may run on no others.
    pub fn keep_off(cpus: &CpuList) -> Result<Self, SchedError> {
        Self::keep_on(&allowed_cpus()?.without(cpus))
    }
}

impl Drop for AffinityGuard {
    fn drop(&mut self) {
        if let Some(before) = &self.before {
            // If it fails, this thread and those that it starts later only run on fewer CPUs.
            let _ = set_affinity(before);
        }
    }
}

/// Binds the calling thread to one CPU and checks that it runs there. Fails if the CPU is offline, unknown or not allowed.
pub fn pin_current_thread(cpu: CpuId) -> Result<(), SchedError> {
    let cpus: CpuList = [cpu].into_iter().collect();
    set_affinity(&cpus)?;
    match current_cpu() {
        Some(now) if now != cpu => Err(SchedError::Affinity {
            cpus,
            source: io::Error::other(format!("the kernel accepted the affinity but left the thread on CPU {now}")),
        }),
        _ => Ok(()),
    }
}

/// The CPUs on which the calling thread may run.
pub fn allowed_cpus() -> Result<CpuList, SchedError> {
    allowed_cpus_of(0)
}

/// The CPUs on which a thread may run; thread 0 is the calling one.
fn allowed_cpus_of(tid: i32) -> Result<CpuList, SchedError> {
    let bits = libc::c_ulong::BITS;
    let mut mask: Vec<libc::c_ulong> = vec![0; 128];
    loop {
        // SAFETY: the kernel writes at most `size_of_val(mask)` bytes into the mask, which is alive.
        let written =
            unsafe { libc::syscall(libc::SYS_sched_getaffinity, tid, size_of_val(&mask[..]), mask.as_mut_ptr()) };
        if written >= 0 {
            break;
        }
        let source = io::Error::last_os_error();
        // The kernel's mask is longer than ours: it returns EINVAL, and a longer one is tried.
        if source.raw_os_error() == Some(libc::EINVAL) && mask.len() < CpuId::LIMIT as usize / 64 {
            mask = vec![0; mask.len() * 2];
        } else {
            return Err(SchedError::ReadAffinity(tid, source));
        }
    }
    let set = |cpu: &u32| mask[(cpu / bits) as usize] & (1 << (cpu % bits)) != 0;
    Ok((0..mask.len() as u32 * bits).filter(set).map(CpuId::new).collect())
}

/// Puts the calling thread into a scheduling class. In a real-time class, threads of a higher priority still go first. Fails if the user may not use
/// that class or priority.
pub fn set_policy(policy: Policy) -> Result<(), SchedError> {
    policy.set_for_calling_thread().map_err(|source| SchedError::Class(policy, source))?;
    if policy.is_realtime() {
        // Linux lets normal threads run before real-time ones for 5 % of the time. A thread that becomes a real-time one just then is not compared
        // with those that wait (seen on 6.18), and would keep the CPU from a higher priority until it sleeps.
        std::thread::yield_now();
    }
    Ok(())
}

/// Checks that a thread of this process can become a real-time one: a new one tries, at the lowest priority, and ends.
pub fn try_realtime() -> io::Result<()> {
    let attempt = || Policy::Fifo(1).set_for_calling_thread();
    let thread = std::thread::Builder::new().name("becalm/class".to_owned()).spawn(attempt);
    thread.map_or(Ok(()), |thread| thread.join().unwrap_or(Ok(())))
}

/// How many page faults of the calling thread had to wait for a disk: swapped-out pages and files.
pub fn major_faults() -> u64 {
    rusage(libc::RUSAGE_THREAD).ru_majflt as u64
}

/// The use by the calling thread (`RUSAGE_THREAD`), or by all children that have ended (`RUSAGE_CHILDREN`).
pub(crate) fn rusage(who: libc::c_int) -> libc::rusage {
    // SAFETY: all-zero bytes are a valid rusage, which the call fills in.
    unsafe {
        let mut usage = std::mem::zeroed();
        libc::getrusage(who, &raw mut usage);
        usage
    }
}

/// The kernel's statistics of the calling thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ThreadUsage {
    /// Page faults, minor and major together.
    pub faults: u64,
    /// How often the thread slept or yielded.
    pub voluntary_switches: u64,
    /// How often it was preempted.
    pub involuntary_switches: u64,
}

impl ThreadUsage {
    /// Reads the usage of the calling thread since it started.
    pub fn for_current_thread() -> Self {
        let usage = rusage(libc::RUSAGE_THREAD);
        Self {
            faults: (usage.ru_minflt + usage.ru_majflt) as u64,
            voluntary_switches: usage.ru_nvcsw as u64,
            involuntary_switches: usage.ru_nivcsw as u64,
        }
    }

    /// The difference since an earlier reading.
    pub const fn since(self, earlier: Self) -> Self {
        Self {
            faults: self.faults - earlier.faults,
            voluntary_switches: self.voluntary_switches - earlier.voluntary_switches,
            involuntary_switches: self.involuntary_switches - earlier.involuntary_switches,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_read_and_print() {
        for text in ["other", "batch", "fifo:80", "rr:1", "fifo:99"] {
            assert_eq!(text.parse::<Policy>().unwrap().to_string(), text);
        }
        for text in ["", "fifo", "fifo:0", "fifo:100", "rr:-1", "idle", "other:3"] {
            assert!(text.parse::<Policy>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_thread_can_be_pinned_to_each_allowed_cpu() {
        for cpu in allowed_cpus().unwrap().iter() {
            std::thread::spawn(move || {
                pin_current_thread(cpu).unwrap();
                assert_eq!(current_cpu(), Some(cpu));
                assert_eq!(allowed_cpus().unwrap().to_string(), cpu.to_string());
            })
            .join()
            .unwrap();
        }
    }

    /// As in sandboxes and control groups, whatever rights the process has. The emulator that runs tests of other architectures has no such filters.
    #[cfg(target_arch = "x86_64")]
    #[test]
    fn a_denied_class_is_found_by_trying() {
        let denied = || {
            let statement = |code: u32, k: u32| libc::sock_filter { code: code as u16, jt: 0, jf: 0, k };
            let deny = libc::SECCOMP_RET_ERRNO | libc::EPERM as u32;
            let mut filter = [
                // The number of the system call, which is the first field of struct seccomp_data.
                statement(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0),
                libc::sock_filter {
                    jf: 1,
                    ..statement(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, libc::SYS_sched_setscheduler as u32)
                },
                statement(libc::BPF_RET | libc::BPF_K, deny),
                statement(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_ALLOW),
            ];
            let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_mut_ptr() };
            // SAFETY: neither changes memory, and the program outlives the call, which copies it.
            let filtered = unsafe {
                libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
                    && libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program) == 0
            };
            assert!(filtered, "{}", io::Error::last_os_error());
            try_realtime().map_err(|error| error.raw_os_error())
        };
        // The filter belongs to the thread, and ends with it.
        assert_eq!(std::thread::spawn(denied).join().unwrap(), Err(Some(libc::EPERM)));
    }

    #[test]
    fn a_guard_gives_the_cpus_back() {
        std::thread::spawn(|| {
            let all = allowed_cpus().unwrap();
            let one: CpuList = all.iter().take(1).collect();
            {
                let _guard = AffinityGuard::keep_on(&one).unwrap();
                assert_eq!(allowed_cpus().unwrap(), one);
                // There is no other CPU left to go to.
                let _inner = AffinityGuard::keep_off(&one).unwrap();
                assert_eq!(allowed_cpus().unwrap(), one);
            }
            assert_eq!(allowed_cpus().unwrap(), all);
            let others = all.without(&one);
            let guard = AffinityGuard::keep_off(&one).unwrap();
            assert_eq!(allowed_cpus().unwrap(), if others.is_empty() { all.clone() } else { others });
            drop(guard);
            assert_eq!(allowed_cpus().unwrap(), all);
            assert!(AffinityGuard::keep_on(&"5000".parse().unwrap()).is_err());
        })
        .join()
        .unwrap();
    }

    #[test]
    fn a_cpu_that_is_not_there_is_refused_with_the_reason() {
        for cpu in ["1023", "5000"] {
            let error = set_affinity(&cpu.parse().unwrap()).unwrap_err().to_string();
            assert!(error.contains(cpu) && error.contains("offline"), "{error}");
        }
    }
}
