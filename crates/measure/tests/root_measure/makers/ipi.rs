//! Storms of inter-processor interrupts, sent from one CPU to a thread that runs on another.
//!
//! The kernel interrupts only CPUs that run a thread of the sending process just then, so the storms hit nothing while
//! the measured CPU idles or runs another process.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use becalm_units::CpuId;

use super::Maker;

/// How often the storm asked the kernel to interrupt the others. Not every asking ends in an interrupt of each CPU.
pub type SentCount = u64;

const PAGE: usize = 4096;

/// Changes the protection of a page of this process's memory again and again. Whenever the right to write is taken,
/// every CPU that runs one of its threads must drop its translations (`TLB` in /proc/interrupts, newer kernels count it
/// as `CAL` too; the vector call_function on x86). A round makes one or two interrupts.
pub fn mprotect_storm(from: CpuId, pause: Duration) -> Maker<SentCount> {
    Maker::start("storm-mprotect", from, move |stop| {
        // SAFETY: an anonymous mapping at a place of the kernel's choice touches no other memory.
        let page = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                PAGE,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
                0,
            )
        };
        assert_ne!(page, libc::MAP_FAILED, "a page can be mapped");
        // SAFETY: the page is mapped, aligned for any type and shared with nobody.
        let cell = unsafe { &*page.cast::<AtomicU64>() };
        let mut sent = 0;
        while !stop.load(Ordering::Relaxed) {
            // A page that was never written has no translation that could be stale.
            cell.store(sent, Ordering::Relaxed);
            // SAFETY: the range is the mapped page; it is written only while it may be.
            let done = unsafe {
                libc::mprotect(page, PAGE, libc::PROT_READ)
                    | libc::mprotect(page, PAGE, libc::PROT_READ | libc::PROT_WRITE)
            };
            assert_eq!(done, 0, "the protection of a mapped page can be changed");
            sent += 1;
            std::thread::sleep(pause);
        }
        // SAFETY: the page is unmapped once, and `cell` is not used any more.
        unsafe { libc::munmap(page, PAGE) };
        sent
    })
}

/// The membarrier command that interrupts other CPUs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Barrier {
    /// To the CPUs that run this process.
    Private,
    /// To the CPUs that run any process that registered, this one among them.
    Global,
}

/// Calls membarrier(2) again and again: each call interrupts every CPU that runs a registered process (`CAL`, the
/// vector call_function or call_function_single on x86).
pub fn membarrier_storm(from: CpuId, barrier: Barrier, pause: Duration) -> Maker<SentCount> {
    let (register, command) = match barrier {
        Barrier::Private => (libc::MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, libc::MEMBARRIER_CMD_PRIVATE_EXPEDITED),
        Barrier::Global => (libc::MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED, libc::MEMBARRIER_CMD_GLOBAL_EXPEDITED),
    };
    // For the whole process, and before anything else: it waits for an RCU grace period, which a real-time loop that is
    // already spinning can hold up for seconds.
    membarrier(register);
    Maker::start("storm-barrier", from, move |stop| {
        let mut sent = 0;
        while !stop.load(Ordering::Relaxed) {
            membarrier(command);
            sent += 1;
            std::thread::sleep(pause);
        }
        sent
    })
}

fn membarrier(command: libc::c_int) {
    // SAFETY: membarrier takes three integers and touches no memory of ours.
    let done = unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) };
    assert_eq!(done, 0, "membarrier {command}: {}", std::io::Error::last_os_error());
}
