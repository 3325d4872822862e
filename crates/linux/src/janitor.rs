//! A tiny process that removes becalm's trace instances if becalm is killed.
//!
//! A trace instance outlives its process and keeps recording, and not all signals can be caught. So a child, forked before anything else happens,
//! waits for the end of a socket whose other end only becalm has. The kernel closes that end however becalm dies; the child then removes what it
//! guards, and exits. While waiting, it sleeps in one system call and is never woken. If it is killed too, the next run removes the leftovers
//! ([`remove_dead`](crate::ftrace::remove_dead)).
//!
//! The janitor also removes instances while becalm runs: by the end of a recording, becalm has given up the necessary rights. The janitor keeps them,
//! does nothing else, and accepts no further paths once becalm has given them up.
//!
//! It guards only trace instances, and their mount if becalm made it. Other changed settings are restored from a journal.

use std::ffi::{CStr, CString, OsStr};
use std::fs;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::fs::{Mode, OFlags, open, openat, rmdir};
use rustix::io::{Errno, retry_on_intr};
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socketpair};

use crate::procfs::status::{Capabilities, Capability};
use crate::rights::keep_of_this_thread;
use crate::sched::Policy;
use crate::signal_sets::{self, mask};
use crate::stuck::{self, Stuck};

/// The maximum number of guarded instances.
const SLOTS: usize = 16;
/// The longest path of an instance, including the terminating zero.
const PATH_MAX: usize = 512;
/// The number of removal attempts, 20 ms apart: the files of a dying process may still be open.
const ATTEMPTS: u32 = 100;

/// Guard the instance with this path.
const ADD: u8 = b'+';
/// Stop guarding it.
const REMOVE: u8 = b'-';
/// Remove it now, and answer.
const TAKE_AWAY: u8 = b'!';
/// Guard the mount at this path; there is at most one.
const ADD_MOUNT: u8 = b'm';
/// Undo it now, and answer.
const UNMOUNT: u8 = b'u';
/// Guard nothing more.
const SEAL: u8 = b'.';

/// The rights for removing an instance and undoing a mount, if the user has them only by capabilities.
const KEPT: Capabilities = Capabilities::from_list(&[Capability::DacOverride, Capability::SysAdmin]);
/// The time limit for an answer: longer than all attempts to remove an instance.
const ANSWER: Duration = Duration::from_secs(5);

/// The time limit for its end: longer than it tries to remove leftovers.
const END: Duration = Duration::from_secs(5);

/// The janitor's process, as seen by its parent. Dropping it makes the janitor finish and remove what it still guards, and waits for it, which takes
/// no time if nothing is left. See also [`unfinished`].
#[derive(Debug)]
pub struct Janitor {
    socket: Option<OwnedFd>,
    process: libc::pid_t,
    guarded: Mutex<GuardedInstances>,
}

/// The instances that the janitor guards, as known to the parent.
#[derive(Debug, Default)]
struct GuardedInstances {
    instances: Vec<CString>,
    sealed: bool,
}

/// No janitor could be started.
#[derive(Debug, thiserror::Error)]
pub enum JanitorError {
    /// The process has other threads, whose locks a fork would leave held forever.
    #[error("cannot start the janitor: the process already has {0} threads")]
    Threads(usize),
    /// A system call that starting the janitor needs failed: to `fork`, for example.
    #[error("cannot start the janitor: {0}: {1}")]
    System(&'static str, io::Error),
}

impl Janitor {
    /// Forks the janitor. Must be called first of all, while the process has one thread and little memory. Fails if the process has several threads
    /// according to `PROC_ROOT/self/task`, or if no process or socket is available.
    pub fn spawn(proc_root: &Path) -> Result<Self, JanitorError> {
        let system = |action| move |source| JanitorError::System(action, source);
        let threads = fs::read_dir(proc_root.join("self/task")).map_err(system("count the threads"))?.count();
        if threads != 1 {
            return Err(JanitorError::Threads(threads));
        }
        // Packets keep the messages apart. Programs that becalm starts must not inherit an end, so both close on exec.
        let ends = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None);
        let (ours, theirs) = ends.map_err(|error| system("make a socket pair")(error.into()))?;
        // The child keeps all signals blocked from its first instruction on: signals from the terminal to becalm's process group must not reach it.
        // The kernel still kills it for its own faults.
        let before = mask(libc::SIG_SETMASK, &signal_sets::all());
        // SAFETY: the process has one thread, so the child's copy is complete; the child only ever runs `tend`, which makes system calls on its own
        // stack and does not return.
        let forked = unsafe { libc::fork() };
        let error = io::Error::last_os_error();
        if forked == 0 {
            tend(theirs);
        }
        mask(libc::SIG_SETMASK, &before);
        if forked == -1 {
            return Err(system("fork")(error));
        }
        // Keeps the parent from waiting forever for an answer if the janitor is stopped. If the call failed, which it cannot, there would be no limit.
        let _ = set_socket_timeout(&ours, Timeout::Recv, Some(ANSWER));
        Ok(Self { socket: Some(ours), process: forked, guarded: Mutex::default() })
    }

    /// The janitor's process ID, which identifies becalm's own processes in a recording.
    pub fn pid(&self) -> i32 {
        self.process
    }

    /// Has the trace instance in that directory removed when this process ends, for whatever reason. It need not exist yet. Fails if the path is
    /// relative, too long or contains a zero; too many are guarded; it is sealed; or the janitor is gone.
    pub fn guard(&self, instance: &Path) -> io::Result<()> {
        let path = path_of(instance)?;
        let mut guarded = self.guarded();
        if guarded.instances.contains(&path) {
            return Ok(());
        }
        if guarded.sealed {
            return Err(invalid("the janitor guards nothing more, as rights were given up"));
        }
        if guarded.instances.len() == SLOTS {
            return Err(invalid("the janitor guards 16 instances at most"));
        }
        self.tell(ADD, &path)?;
        guarded.instances.push(path);
        Ok(())
    }

    /// Stops guarding an instance that was removed.
    pub fn release(&self, instance: &Path) -> io::Result<()> {
        let mut guarded = self.guarded();
        let Some(at) = guarded.position(instance) else { return Ok(()) };
        let path = guarded.instances.swap_remove(at);
        self.tell(REMOVE, &path)
    }

    /// Removes a guarded instance, with rights that this process may have given up. All its readers must be closed. Fails if it is not guarded, with
    /// the kernel's error, or if the janitor is gone. It is still guarded then.
    pub fn take_away(&self, instance: &Path) -> io::Result<()> {
        let mut guarded = self.guarded();
        let at = guarded.position(instance).ok_or_else(|| invalid("the janitor does not guard it"))?;
        self.tell(TAKE_AWAY, &guarded.instances[at])?;
        self.answer()?;
        guarded.instances.swap_remove(at);
        Ok(())
    }

    /// Has a mount that this process is about to make undone when it ends, for whatever reason. Fails if the path is relative, too long or contains a
    /// zero; it is sealed; or the janitor is gone.
    pub fn guard_mount(&self, point: &Path) -> io::Result<()> {
        if self.guarded().sealed {
            return Err(invalid("the janitor guards nothing more, as rights were given up"));
        }
        self.tell(ADD_MOUNT, &path_of(point)?)
    }

    /// Undoes the guarded mount.
    pub fn unmount(&self, point: &Path) -> io::Result<()> {
        // Keeps other threads from taking the answer.
        let _guarded = self.guarded();
        self.tell(UNMOUNT, &path_of(point)?)?;
        self.answer()
    }

    /// Makes the janitor accept no more paths. Must be called before this process gives up its rights: an attacker who takes it over afterwards must
    /// not be able to make the janitor remove anything that is not becalm's.
    pub fn seal(&self) -> io::Result<()> {
        let mut guarded = self.guarded();
        guarded.sealed = true;
        self.tell(SEAL, c"/")
    }

    fn guarded(&self) -> MutexGuard<'_, GuardedInstances> {
        self.guarded.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tell(&self, what: u8, path: &CStr) -> io::Result<()> {
        let Some(socket) = &self.socket else { return Err(io::ErrorKind::NotConnected.into()) };
        let message = [&[what], path.to_bytes_with_nul()].concat();
        // A janitor that is gone is an error here, not a signal.
        send(socket, &message, SendFlags::NOSIGNAL)?;
        Ok(())
    }

    /// Waits for the result of the last request.
    fn answer(&self) -> io::Result<()> {
        let Some(socket) = &self.socket else { return Err(io::ErrorKind::NotConnected.into()) };
        let mut error = [0_u8; 4];
        match retry_on_intr(|| recv(socket, &mut error, RecvFlags::empty())) {
            Ok((_, 4)) => {}
            Ok((_, 0)) => return Err(io::ErrorKind::BrokenPipe.into()),
            Ok(_) => return Err(io::ErrorKind::InvalidData.into()),
            Err(Errno::WOULDBLOCK) => {
                let stuck = Stuck::look(Path::new("/"), self.process);
                return Err(io::Error::new(io::ErrorKind::TimedOut, format!("no answer from {stuck}")));
            }
            Err(error) => return Err(error.into()),
        }
        match i32::from_ne_bytes(error) {
            0 => Ok(()),
            error => Err(io::Error::from_raw_os_error(error)),
        }
    }
}

impl GuardedInstances {
    fn position(&self, instance: &Path) -> Option<usize> {
        self.instances.iter().position(|path| OsStr::from_bytes(path.as_bytes()) == instance)
    }
}

fn invalid(message: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, message.to_owned())
}

/// A path in the janitor's format.
fn path_of(path: &Path) -> io::Result<CString> {
    let taken = CString::new(path.as_os_str().as_bytes())?;
    if !path.is_absolute() || taken.as_bytes_with_nul().len() > PATH_MAX {
        return Err(invalid("the janitor takes absolute paths of up to 511 bytes"));
    }
    Ok(taken)
}

impl Drop for Janitor {
    fn drop(&mut self) {
        // Closes our end, which makes the janitor finish.
        self.socket = None;
        if let Err(stuck) = stuck::wait_for_child(self.process, END) {
            left().push(stuck);
        }
    }
}

/// Janitors that did not finish.
static LEFT: Mutex<Vec<Stuck>> = Mutex::new(Vec::new());

fn left() -> MutexGuard<'static, Vec<Stuck>> {
    LEFT.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The janitors of this process that did not finish in time because they are stopped or frozen: what they guard may remain until they continue. Must
/// be called last of all.
pub fn unfinished() -> Vec<Stuck> {
    std::mem::take(&mut *left())
}

/// A path with its terminating zero.
type Slot = [u8; PATH_MAX];

struct GuardedInstancesPaths {
    /// An empty path is a free slot.
    instances: [Slot; SLOTS],
    /// Empty if there is none.
    mount: Slot,
    sealed: bool,
}

/// The janitor's main loop. Makes system calls and uses its stack; allocates nothing.
fn tend(socket: OwnedFd) -> ! {
    settle(socket.as_raw_fd());
    let mut kept = GuardedInstancesPaths { instances: [[0; PATH_MAX]; SLOTS], mount: [0; PATH_MAX], sealed: false };
    let mut message = [0_u8; PATH_MAX + 1];
    loop {
        match recv(&socket, &mut message, RecvFlags::empty()) {
            Err(Errno::INTR) => {}
            Ok((_, length @ 1..)) => {
                if let Some(error) = note(&mut kept, &message[..length]) {
                    // A parent that is gone wants no answer.
                    let _ = send(&socket, &error.to_ne_bytes(), SendFlags::NOSIGNAL);
                }
            }
            _ => break,
        }
    }
    for slot in &kept.instances {
        if slot[0] != 0 {
            remove(slot);
        }
    }
    if kept.mount[0] != 0 {
        unmount(&kept.mount);
    }
    // SAFETY: ends the process at once, without running anything that the parent registered for its own end.
    unsafe { libc::_exit(0) }
}

/// Becomes independent of everything but the socket's end: the terminal's signals, the parent's files (a pipe that becalm writes to must end when
/// becalm does) and its scheduling class.
fn settle(socket: i32) {
    // If one of these fails, the result is less tidy, but sound. A janitor that keeps more than it needs still does nothing else.
    let _ = rustix::process::setsid();
    let _ = rustix::thread::set_name(c"becalm-janitor");
    let _ = Policy::Other.set_for_calling_thread();
    let _ = keep_of_this_thread(KEPT);
    let _ = rustix::process::chdir(c"/");
    // SAFETY: the closed descriptors are not used in this process, which is a copy that runs only this.
    unsafe {
        let is_closed_below =
            socket == 0 || libc::syscall(libc::SYS_close_range, 0_u32, (socket - 1) as u32, 0_u32) == 0;
        let is_closed_above = libc::syscall(libc::SYS_close_range, (socket + 1) as u32, u32::MAX, 0_u32) == 0;
        if !(is_closed_below && is_closed_above) {
            // Kernels before 5.9. Early in a process's life its descriptors are low.
            for descriptor in (0..4096).filter(|descriptor| *descriptor != socket) {
                libc::close(descriptor);
            }
        }
    }
}

/// Handles a message of the parent: a byte for the request, then a path with its terminating zero. Returns the answer if one is due: an error number,
/// or 0.
fn note(kept: &mut GuardedInstancesPaths, message: &[u8]) -> Option<i32> {
    let (&what, path) = message.split_first()?;
    if path.len() < 2 || path.len() > PATH_MAX || path.last() != Some(&0) {
        return None;
    }
    let has = |slot: &Slot| slot.get(..path.len()) == Some(path);
    let known = kept.instances.iter_mut().find(|slot| has(slot));
    match (what, known) {
        (SEAL, _) => kept.sealed = true,
        (REMOVE, Some(slot)) => *slot = [0; PATH_MAX],
        (ADD, None) if !kept.sealed => {
            if let Some(slot) = kept.instances.iter_mut().find(|slot| slot[0] == 0) {
                slot[..path.len()].copy_from_slice(path);
            }
        }
        (ADD_MOUNT, _) if !kept.sealed => kept.mount[..path.len()].copy_from_slice(path),
        (TAKE_AWAY, Some(slot)) => {
            let error = remove(slot);
            if error == 0 {
                *slot = [0; PATH_MAX];
            }
            return Some(error);
        }
        (UNMOUNT, _) if has(&kept.mount) => {
            let error = unmount(&kept.mount);
            kept.mount = [0; PATH_MAX];
            return Some(error);
        }
        (TAKE_AWAY | UNMOUNT, _) => return Some(libc::ENOENT),
        _ => {}
    }
    None
}

/// Stops and removes an instance. Returns the error number if it still exists, otherwise 0.
fn remove(instance: &Slot) -> i32 {
    write_zero(instance, c"tracing_on");
    write_zero(instance, c"events/enable");
    let mut error = 0;
    for _ in 0..ATTEMPTS {
        match rmdir(path(instance)) {
            Ok(()) => return 0,
            Err(failed) => error = failed.raw_os_error(),
        }
        if error != libc::EBUSY {
            break;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    if error == libc::ENOENT { 0 } else { error }
}

/// Undoes a mount, even while another process uses it. Returns the error number, or 0.
fn unmount(point: &Slot) -> i32 {
    // SAFETY: the path ends in a zero, as `note` made sure.
    match unsafe { libc::umount2(point.as_ptr().cast(), libc::MNT_DETACH) } {
        0 => 0,
        _ => io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO),
    }
}

/// Writes `0` to a file of the instance, as far as possible.
fn write_zero(instance: &Slot, file: &CStr) {
    let folder = open(path(instance), OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty());
    let file = folder.and_then(|folder| openat(folder, file, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty()));
    let _ = file.and_then(|file| rustix::io::write(file, b"0"));
}

fn path(slot: &Slot) -> &CStr {
    CStr::from_bytes_until_nul(slot).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept_after(messages: &[&[u8]]) -> (Vec<Vec<u8>>, Vec<u8>) {
        let mut kept = GuardedInstancesPaths { instances: [[0; PATH_MAX]; SLOTS], mount: [0; PATH_MAX], sealed: false };
        for message in messages {
            note(&mut kept, message);
        }
        let path = |slot: &Slot| slot.iter().copied().take_while(|byte| *byte != 0).collect::<Vec<u8>>();
        (kept.instances.iter().map(path).filter(|path| !path.is_empty()).collect(), path(&kept.mount))
    }

    fn instances_after(messages: &[&[u8]]) -> Vec<Vec<u8>> {
        kept_after(messages).0
    }

    #[test]
    fn paths_are_noted_and_forgotten() {
        assert_eq!(instances_after(&[b"+/a\0", b"+/ab\0", b"+/a\0", b"-/ab\0", b"-/x\0"]), [b"/a"]);
        assert_eq!(kept_after(&[b"m/t\0"]).1, b"/t");
    }

    #[test]
    fn nothing_is_added_once_it_is_sealed() {
        let (instances, mount) = kept_after(&[b"+/a\0", b"./\0", b"+/etc\0", b"m/home\0"]);
        assert_eq!((instances, mount), (vec![b"/a".to_vec()], Vec::new()));
    }

    #[test]
    fn what_is_not_guarded_is_not_removed() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("x");
        fs::create_dir(&folder).unwrap();
        let mut kept = GuardedInstancesPaths { instances: [[0; PATH_MAX]; SLOTS], mount: [0; PATH_MAX], sealed: false };
        let message = |what: u8| [&[what], folder.as_os_str().as_bytes(), b"\0"].concat();
        assert_eq!(note(&mut kept, &message(TAKE_AWAY)), Some(libc::ENOENT));
        assert_eq!(note(&mut kept, &message(UNMOUNT)), Some(libc::ENOENT));
        assert!(folder.exists());
        assert_eq!(note(&mut kept, &message(ADD)), None);
        assert_eq!(note(&mut kept, &message(TAKE_AWAY)), Some(0));
        assert!(!folder.exists() && kept.instances.iter().all(|slot| slot[0] == 0));
    }

    #[test]
    fn nonsense_is_ignored() {
        let long = [b"+/".as_slice(), &[b'a'; PATH_MAX], b"\0"].concat();
        assert!(instances_after(&[b"", b"+", b"+\0", b"+/a", b"?/a\0", &long]).is_empty());
    }

    #[test]
    fn a_process_with_threads_gets_no_janitor() {
        // The test harness has at least its own thread in addition to this one.
        assert!(matches!(Janitor::spawn(Path::new("/proc")), Err(JanitorError::Threads(2..))));
    }
}
