//! The layouts and numbers that the preloaded library writes down by itself are those of crate `libc`.

#![cfg(all(target_os = "linux", target_env = "gnu", any(target_arch = "x86_64", target_arch = "aarch64")))]

#[allow(dead_code, unused_imports, unused_macros)]
#[path = "../object/abi.rs"]
mod abi;

use std::mem::{offset_of, size_of};

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
}

#[test]
fn constants_are_those_of_the_c_library() {
    assert_eq!((abi::SIG_DFL, abi::SIG_IGN), (libc::SIG_DFL, libc::SIG_IGN));
    let flags = (abi::SA_SIGINFO, abi::SA_ONSTACK, abi::SA_RESTART);
    assert_eq!(flags, (libc::SA_SIGINFO, libc::SA_ONSTACK, libc::SA_RESTART));
    let how = (abi::SIG_BLOCK, abi::SIG_UNBLOCK, abi::SIG_SETMASK);
    assert_eq!(how, (libc::SIG_BLOCK, libc::SIG_UNBLOCK, libc::SIG_SETMASK));
    assert_eq!((abi::CLOCK_REALTIME, abi::CLOCK_MONOTONIC), (libc::CLOCK_REALTIME, libc::CLOCK_MONOTONIC));
    assert_eq!(abi::SI_TIMER, libc::SI_TIMER);
    // The real-time signals that programs have.
    assert_eq!((libc::SIGRTMIN(), libc::SIGRTMAX()), (34, 64));
}

/// System calls by their effect, as their numbers are private.
#[test]
fn system_calls_are_those_that_are_meant() {
    const SIGNAL: i32 = 40;
    const BIT: u64 = 1 << (SIGNAL - 1);
    assert_eq!(abi::pid(), std::process::id() as i32);
    assert!(abi::is_alive(abi::pid()) && !abi::is_alive(i32::MAX));
    let before = abi::mask(abi::SIG_BLOCK, BIT);
    assert_eq!(before & BIT, 0);
    assert_ne!(abi::mask(abi::SIG_BLOCK, 0) & BIT, 0);
    // A timer's signal that is blocked waits for this thread.
    let timer = abi::timer_create(SIGNAL, 7, abi::tid()).unwrap();
    abi::timer_set(timer, abi::clock_ns(abi::CLOCK_MONOTONIC) + 1_000_000);
    std::thread::sleep(std::time::Duration::from_millis(20));
    let status = std::fs::read_to_string("/proc/thread-self/status").unwrap();
    let pending = status.lines().find_map(|line| line.strip_prefix("SigPnd:")).unwrap().trim();
    assert_eq!(u64::from_str_radix(pending, 16).unwrap(), BIT);
    // Ignored, it is gone; otherwise it would end the process now.
    abi::timer_delete(timer);
    let ignored = abi::SigAction { handler: abi::SIG_IGN, mask: abi::SigSet::EMPTY, flags: 0, restorer: 0 };
    assert_eq!(abi::sigaction(SIGNAL, &raw const ignored, std::ptr::null_mut()), 0);
    abi::mask(abi::SIG_SETMASK, before);
}
