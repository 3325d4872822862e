//! A tiny process that removes becalm's trace instances should becalm be killed.
//!
//! A trace instance outlives the process that made it, and goes on recording. Signals can be caught, but not all: so a
//! child, forked before anything else happens, waits for the end of a socket whose other end only becalm holds. The
//! kernel closes that end however becalm dies; the child then removes what it was told to guard, and exits. While it
//! waits it sleeps in one system call and is never woken. Should it be killed too, the next run removes the leftovers
//! ([`remove_dead`](crate::ftrace::remove_dead)).
//!
//! Only trace instances are guarded. Settings that becalm changes elsewhere are restored from a journal.

use std::ffi::{CString, OsStr};
use std::fs;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

/// How many instances can be guarded at a time.
const SLOTS: usize = 16;
/// The longest path of one, with its final zero.
const PATH_MAX: usize = 512;
/// How often a removal is tried, 20 ms apart: the files of a dying process may still be open.
const ATTEMPTS: u32 = 100;

const ADD: u8 = b'+';
const REMOVE: u8 = b'-';

/// The janitor's process, as its parent sees it. On drop it is told to finish, removes what is still guarded, and is
/// waited for, which takes no time where nothing is left.
#[derive(Debug)]
pub struct Janitor {
    socket: Option<OwnedFd>,
    process: libc::pid_t,
    guarded: Mutex<Vec<CString>>,
}

/// No janitor could be started.
#[derive(Debug, thiserror::Error)]
pub enum JanitorError {
    /// The process has other threads, whose locks a fork would leave held forever.
    #[error("cannot start the janitor: the process already has {0} threads")]
    Threads(usize),
    /// A system call that starting the janitor needs failed.
    #[error("cannot start the janitor: {action}: {source}")]
    System {
        /// What was attempted: `count the threads`, `make a socket pair`, `fork`.
        action: &'static str,
        /// The error of the system call.
        r#source: io::Error,
    },
}

impl Janitor {
    /// Forks the janitor. To be called first of all, while the process has one thread and little memory.
    ///
    /// # Errors
    /// The process has several threads, as `PROC_ROOT/self/task` says; or no process or socket can be had.
    pub fn spawn(proc_root: &Path) -> Result<Self, JanitorError> {
        let system = |action| move |source| JanitorError::System { action, source };
        let threads = fs::read_dir(proc_root.join("self/task")).map_err(system("count the threads"))?.count();
        if threads != 1 {
            return Err(JanitorError::Threads(threads));
        }
        let mut ends = [0; 2];
        // Packets keep the messages apart. No program that becalm starts may hold an end, so both close on exec.
        let kind = libc::SOCK_SEQPACKET | libc::SOCK_CLOEXEC;
        // SAFETY: `ends` has room for the two descriptors that the call writes.
        if unsafe { libc::socketpair(libc::AF_UNIX, kind, 0, ends.as_mut_ptr()) } != 0 {
            return Err(system("make a socket pair")(io::Error::last_os_error()));
        }
        // SAFETY: the call above just made both descriptors, and nothing else owns them.
        let (ours, theirs) = unsafe { (OwnedFd::from_raw_fd(ends[0]), OwnedFd::from_raw_fd(ends[1])) };
        // The child keeps all signals blocked, from its first instruction on: what the terminal sends to becalm's process
        // group must not reach it. The kernel still kills it for its own faults.
        let before = block_signals();
        // SAFETY: the process has one thread, so the child's copy is whole; the child only ever runs `tend`, which makes
        // system calls on its own stack and does not return.
        let forked = unsafe { libc::fork() };
        let error = io::Error::last_os_error();
        if forked == 0 {
            tend(theirs.as_raw_fd());
        }
        // SAFETY: the mask is the one that the call above filled in.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const before, std::ptr::null_mut()) };
        if forked == -1 {
            return Err(system("fork")(error));
        }
        Ok(Self { socket: Some(ours), process: forked, guarded: Mutex::default() })
    }

    /// The janitor's process id, by which becalm's own processes are recognized in a recording.
    #[must_use]
    pub fn pid(&self) -> i32 {
        self.process
    }

    /// Has the trace instance in that folder removed when this process ends, in whatever way. It need not exist yet.
    ///
    /// # Errors
    /// The path is relative, too long or holds a zero; too many are guarded; or the janitor is gone.
    pub fn guard(&self, instance: &Path) -> io::Result<()> {
        let invalid = |message: &str| io::Error::new(io::ErrorKind::InvalidInput, message.to_owned());
        let path = CString::new(instance.as_os_str().as_bytes())?;
        if !instance.is_absolute() || path.as_bytes_with_nul().len() > PATH_MAX {
            return Err(invalid("the janitor takes absolute paths of up to 511 bytes"));
        }
        let mut guarded = self.guarded.lock().unwrap_or_else(PoisonError::into_inner);
        if guarded.contains(&path) {
            return Ok(());
        }
        if guarded.len() == SLOTS {
            return Err(invalid("the janitor guards 16 instances at most"));
        }
        self.tell(ADD, &path)?;
        guarded.push(path);
        Ok(())
    }

    /// Guards it no longer, as it was removed.
    ///
    /// # Errors
    /// The janitor is gone.
    pub fn release(&self, instance: &Path) -> io::Result<()> {
        let mut guarded = self.guarded.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(at) = guarded.iter().position(|path| OsStr::from_bytes(path.as_bytes()) == instance) else {
            return Ok(());
        };
        let path = guarded.swap_remove(at);
        self.tell(REMOVE, &path)
    }

    fn tell(&self, what: u8, path: &CString) -> io::Result<()> {
        let Some(socket) = &self.socket else { return Err(io::ErrorKind::NotConnected.into()) };
        let message = [&[what], path.as_bytes_with_nul()].concat();
        // A janitor that is gone is an error here, and no signal.
        // SAFETY: the message is readable for its whole length.
        let sent =
            unsafe { libc::send(socket.as_raw_fd(), message.as_ptr().cast(), message.len(), libc::MSG_NOSIGNAL) };
        if sent == message.len() as isize { Ok(()) } else { Err(io::Error::last_os_error()) }
    }
}

impl Drop for Janitor {
    fn drop(&mut self) {
        // Closes our end, on which the janitor finishes.
        self.socket = None;
        let mut status = 0;
        // SAFETY: `status` is writable; the process is our child and nobody else waits for it.
        while unsafe { libc::waitpid(self.process, &raw mut status, 0) } == -1
            && io::Error::last_os_error().kind() == io::ErrorKind::Interrupted
        {}
    }
}

/// A path, with its final zero.
type Slot = [u8; PATH_MAX];

/// The janitor's life. Makes system calls and uses its stack; allocates nothing.
fn tend(socket: i32) -> ! {
    settle(socket);
    // An empty path is a free slot.
    let mut slots = [[0_u8; PATH_MAX]; SLOTS];
    let mut message = [0_u8; PATH_MAX + 1];
    loop {
        // SAFETY: the message is writable for the length given.
        let length = unsafe { libc::recv(socket, message.as_mut_ptr().cast(), message.len(), 0) };
        match length {
            -1 if io::Error::last_os_error().raw_os_error() == Some(libc::EINTR) => {}
            1.. => note(&mut slots, &message[..length as usize]),
            _ => break,
        }
    }
    for slot in &slots {
        if slot[0] != 0 {
            remove(slot);
        }
    }
    // SAFETY: ends the process at once, without running anything that the parent registered for its own end.
    unsafe { libc::_exit(0) }
}

/// Blocks all signals of this thread, and gives the mask before.
fn block_signals() -> libc::sigset_t {
    // SAFETY: a signal set is plain bytes, all zeros is a valid one, and both calls only fill sets in.
    unsafe {
        let (mut all, mut before) = (std::mem::zeroed(), std::mem::zeroed());
        libc::sigfillset(&raw mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, &raw mut before);
        before
    }
}

/// Becomes a process of its own that nothing but the socket's end concerns: not the terminal's signals, not the
/// parent's files (a pipe that becalm writes to must end when becalm does), not its scheduling class.
fn settle(socket: i32) {
    // SAFETY: system calls on plain values and constant strings; those that fail leave something less tidy, but nothing
    // unsound. The descriptors that are closed belong to nobody in this process, which is a copy that runs only this.
    unsafe {
        libc::setsid();
        libc::prctl(libc::PR_SET_NAME, c"becalm-janitor".as_ptr());
        let ordinary = libc::sched_param { sched_priority: 0 };
        libc::sched_setscheduler(0, libc::SCHED_OTHER, &raw const ordinary);
        libc::chdir(c"/".as_ptr());
        let below = socket == 0 || libc::syscall(libc::SYS_close_range, 0_u32, (socket - 1) as u32, 0_u32) == 0;
        let above = libc::syscall(libc::SYS_close_range, (socket + 1) as u32, u32::MAX, 0_u32) == 0;
        if !(below && above) {
            // Kernels before 5.9. Early in a process's life its descriptors are low.
            for descriptor in (0..4096).filter(|descriptor| *descriptor != socket) {
                libc::close(descriptor);
            }
        }
    }
}

/// Takes a message of the parent: one byte what, then a path with its final zero.
fn note(slots: &mut [Slot; SLOTS], message: &[u8]) {
    let Some((&what, path)) = message.split_first() else { return };
    if path.len() < 2 || path.len() > PATH_MAX || path.last() != Some(&0) {
        return;
    }
    let known = slots.iter_mut().find(|slot| slot.get(..path.len()) == Some(path));
    match (what, known) {
        (REMOVE, Some(slot)) => *slot = [0; PATH_MAX],
        (ADD, None) => {
            if let Some(slot) = slots.iter_mut().find(|slot| slot[0] == 0) {
                slot[..path.len()].copy_from_slice(path);
            }
        }
        _ => {}
    }
}

/// Stops an instance and removes it.
fn remove(instance: &Slot) {
    write_zero(instance, b"/tracing_on\0");
    write_zero(instance, b"/events/enable\0");
    for _ in 0..ATTEMPTS {
        // SAFETY: the path ends in a zero, as `note` made sure.
        let result = unsafe { libc::rmdir(instance.as_ptr().cast()) };
        if result == 0 || io::Error::last_os_error().raw_os_error() != Some(libc::EBUSY) {
            return;
        }
        let pause = libc::timespec { tv_sec: 0, tv_nsec: 20_000_000 };
        // SAFETY: the duration is readable; no remainder is asked for.
        unsafe { libc::nanosleep(&raw const pause, std::ptr::null_mut()) };
    }
}

/// Writes `0` to a file of the instance. `file` begins with a slash and ends in a zero.
fn write_zero(instance: &Slot, file: &[u8]) {
    let mut path = [0_u8; PATH_MAX + 32];
    let length = instance.iter().position(|byte| *byte == 0).unwrap_or(PATH_MAX);
    path[..length].copy_from_slice(&instance[..length]);
    path[length..length + file.len()].copy_from_slice(file);
    // SAFETY: the path ends in a zero; the descriptor, if any, is ours to write to and to close.
    unsafe {
        let descriptor = libc::open(path.as_ptr().cast(), libc::O_WRONLY | libc::O_CLOEXEC);
        if descriptor >= 0 {
            libc::write(descriptor, b"0".as_ptr().cast(), 1);
            libc::close(descriptor);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slots_after(messages: &[&[u8]]) -> Vec<Vec<u8>> {
        let mut slots = [[0; PATH_MAX]; SLOTS];
        for message in messages {
            note(&mut slots, message);
        }
        let path = |slot: &Slot| slot.iter().copied().take_while(|byte| *byte != 0).collect::<Vec<u8>>();
        slots.iter().map(path).filter(|path| !path.is_empty()).collect()
    }

    #[test]
    fn paths_are_noted_and_forgotten() {
        assert_eq!(slots_after(&[b"+/a\0", b"+/ab\0", b"+/a\0", b"-/ab\0", b"-/x\0"]), [b"/a"]);
    }

    #[test]
    fn nonsense_is_ignored() {
        let long = [b"+/".as_slice(), &[b'a'; PATH_MAX], b"\0"].concat();
        assert!(slots_after(&[b"", b"+", b"+\0", b"+/a", b"?/a\0", &long]).is_empty());
    }

    #[test]
    fn a_process_with_threads_gets_no_janitor() {
        // The test harness has at least its own thread beside this one.
        assert!(matches!(Janitor::spawn(Path::new("/proc")), Err(JanitorError::Threads(2..))));
    }
}
