//! The layouts and numbers that the library writes down by itself are those of crate `libc`.

#![cfg(all(target_os = "linux", target_env = "gnu", any(target_arch = "x86_64", target_arch = "aarch64")))]

use std::mem::{offset_of, size_of};

use becalm_preload_library::abi;
use becalm_preload_library::process::actions;
use becalm_preload_library::process::calls::{self, Unfit};

#[test]
fn layouts_are_those_of_the_c_library() {
    assert_eq!(size_of::<abi::SigSet>(), size_of::<libc::sigset_t>());
    assert_eq!(size_of::<abi::SigAction>(), size_of::<libc::sigaction>());
    assert_eq!(offset_of!(abi::SigAction, handler), offset_of!(libc::sigaction, sa_sigaction));
    assert_eq!(offset_of!(abi::SigAction, mask), offset_of!(libc::sigaction, sa_mask));
    assert_eq!(offset_of!(abi::SigAction, flags), offset_of!(libc::sigaction, sa_flags));
    assert_eq!(offset_of!(abi::SigAction, restorer), offset_of!(libc::sigaction, sa_restorer));
    assert_eq!(size_of::<abi::SigInfo>(), size_of::<libc::siginfo_t>());
    assert_eq!(offset_of!(abi::SigInfo, signal), offset_of!(libc::siginfo_t, si_signo));
    assert_eq!(offset_of!(abi::SigInfo, errno), offset_of!(libc::siginfo_t, si_errno));
    assert_eq!(offset_of!(abi::SigInfo, code), offset_of!(libc::siginfo_t, si_code));
    assert_eq!(size_of::<abi::SigEvent>(), size_of::<libc::sigevent>());
    assert_eq!(offset_of!(abi::SigEvent, signal), offset_of!(libc::sigevent, sigev_signo));
    assert_eq!(offset_of!(abi::SigEvent, notify), offset_of!(libc::sigevent, sigev_notify));
    assert_eq!(offset_of!(abi::SigEvent, tid), offset_of!(libc::sigevent, sigev_notify_thread_id));
    assert_eq!(size_of::<abi::TimeSpec>(), size_of::<libc::timespec>());
    assert_eq!(size_of::<abi::TimerSpec>(), size_of::<libc::itimerspec>());
    assert_eq!(size_of::<abi::Statx>(), size_of::<libc::statx>());
    assert_eq!(offset_of!(abi::Statx, user), offset_of!(libc::statx, stx_uid));
    assert_eq!(offset_of!(abi::Statx, mode), offset_of!(libc::statx, stx_mode));
    assert_eq!(offset_of!(abi::Statx, size), offset_of!(libc::statx, stx_size));
}

#[test]
fn constants_are_those_of_the_c_library() {
    assert_eq!((abi::SIG_DFL, abi::SIG_IGN), (libc::SIG_DFL, libc::SIG_IGN));
    let flags = (abi::SA_SIGINFO, abi::SA_ONSTACK, abi::SA_RESTART);
    assert_eq!(flags, (libc::SA_SIGINFO, libc::SA_ONSTACK, libc::SA_RESTART));
    let how = (abi::SIG_BLOCK, abi::SIG_UNBLOCK, abi::SIG_SETMASK);
    assert_eq!(how, (libc::SIG_BLOCK, libc::SIG_UNBLOCK, libc::SIG_SETMASK));
    assert_eq!((abi::CLOCK_REALTIME, abi::CLOCK_MONOTONIC), (libc::CLOCK_REALTIME, libc::CLOCK_MONOTONIC));
    assert_eq!((abi::SI_TIMER, abi::ESRCH), (libc::SI_TIMER, libc::ESRCH));
    assert_eq!((abi::SIGEV_THREAD_ID, abi::TIMER_ABSTIME), (libc::SIGEV_THREAD_ID, libc::TIMER_ABSTIME));
    assert_eq!((abi::O_RDWR_CLOEXEC, abi::ENOSYS), (libc::O_RDWR | libc::O_CLOEXEC, libc::ENOSYS));
    assert_eq!((abi::LOCK_SH_NB, abi::SOL_SOCKET), (libc::LOCK_SH | libc::LOCK_NB, libc::SOL_SOCKET));
    assert_eq!(abi::SO_TIMEOUTS[..2], [libc::SO_RCVTIMEO, libc::SO_SNDTIMEO]);
    assert_eq!((abi::AT_EMPTY_PATH, abi::STATX_BASIC_STATS), (libc::AT_EMPTY_PATH, libc::STATX_BASIC_STATS as i32));
    assert_eq!((u32::from(abi::S_IFMT), u32::from(abi::S_IFREG)), (libc::S_IFMT, libc::S_IFREG));
    assert_eq!((abi::PROT_READ_WRITE, abi::MAP_SHARED), (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED));
    assert_eq!(abi::RTLD_NEXT, libc::RTLD_NEXT);
    // The real-time signals that programs have.
    assert_eq!((libc::SIGRTMIN(), libc::SIGRTMAX()), (34, 64));
}

/// System calls by their effect, which shows that their numbers are right.
#[test]
fn system_calls_are_those_that_are_meant() {
    const SIGNAL: i32 = 40;
    const BIT: u64 = 1 << (SIGNAL - 1);
    assert_eq!(calls::pid(), std::process::id() as i32);
    assert!(calls::is_alive(calls::pid()) && !calls::is_alive(i32::MAX));
    let before = calls::mask(abi::SIG_BLOCK, BIT);
    assert_eq!(before & BIT, 0);
    assert_ne!(calls::mask(abi::SIG_BLOCK, 0) & BIT, 0);
    // A timer's signal that is blocked waits for this thread.
    let timer = calls::timer_create(SIGNAL, 7, calls::tid()).unwrap();
    calls::timer_set(timer, calls::clock_ns(abi::CLOCK_MONOTONIC) + 1_000_000);
    std::thread::sleep(std::time::Duration::from_millis(20));
    let status = std::fs::read_to_string("/proc/thread-self/status").unwrap();
    let pending = status.lines().find_map(|line| line.strip_prefix("SigPnd:")).unwrap().trim();
    assert_eq!(u64::from_str_radix(pending, 16).unwrap(), BIT);
    // Ignored, it is gone; otherwise it would end the process now.
    calls::timer_delete(timer);
    assert!(actions::is_default(SIGNAL));
    actions::ignore(SIGNAL);
    assert!(!actions::is_default(SIGNAL));
    calls::mask(abi::SIG_SETMASK, before);
    actions::reset(SIGNAL);
    assert!(actions::is_default(SIGNAL));
}

/// A file of words is mapped as it is, and what one writes the other reads, as long as its maker holds it.
#[test]
fn a_mapped_file_is_shared() {
    use std::fs::{self, File, Permissions};
    use std::os::unix::fs::{PermissionsExt, chown};
    use std::sync::atomic::Ordering::Relaxed;

    let file = std::env::temp_dir().join(format!("becalm-preload-{}", std::process::id()));
    fs::write(&file, [1_u64.to_ne_bytes(), 2_u64.to_ne_bytes()].concat()).unwrap();
    let mode = |mode| fs::set_permissions(&file, Permissions::from_mode(mode)).unwrap();
    mode(0o600);
    let path = std::ffi::CString::new(file.to_str().unwrap()).unwrap();
    let maker = File::open(&file).unwrap();
    maker.lock().unwrap();
    let words = calls::map_shared(&path).unwrap();
    assert_eq!((words.len(), words[0].load(Relaxed), words[1].load(Relaxed)), (2, 1, 2));
    words[1].store(7, Relaxed);
    assert_eq!(fs::read(&file).unwrap()[8..], 7_u64.to_ne_bytes());
    // Others could have written it.
    for (bits, why) in [(0o620, Some(Unfit::Refused)), (0o602, Some(Unfit::Refused)), (0o600, None)] {
        mode(bits);
        assert_eq!(calls::map_shared(&path).err(), why, "{bits:o}");
    }
    // SAFETY: takes nothing.
    if unsafe { libc::geteuid() } == 0 {
        chown(&file, Some(65_534), None).unwrap();
        assert_eq!(calls::map_shared(&path).err(), Some(Unfit::Refused));
        chown(&file, Some(0), None).unwrap();
    }
    // Its maker is gone.
    drop(maker);
    assert_eq!(calls::map_shared(&path).err(), Some(Unfit::Abandoned));
    // Neither a file without words nor one that is not there.
    fs::write(&file, b"").unwrap();
    let maker = File::open(&file).unwrap();
    maker.lock().unwrap();
    assert_eq!(calls::map_shared(&path).err(), Some(Unfit::Refused));
    fs::remove_file(&file).unwrap();
    assert_eq!(calls::map_shared(&path).err(), Some(Unfit::Refused));
}
