//! Memory barriers on other CPUs by membarrier(2): the only way for every user to interrupt another CPU.

use super::ProbeError;

/// Registers this process for [`private`]. May take some milliseconds, once. Fails if the kernel has no membarrier
/// (before 4.14, or built without).
pub fn register() -> Result<(), ProbeError> {
    call(libc::MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED)
        .then_some(())
        .ok_or_else(|| ProbeError::last("register for memory barriers on other CPUs"))
}

/// Interrupts every other CPU that runs a thread of this process, and waits until each has answered; returns whether it succeeded. The process must
/// be registered.
#[inline(always)]
pub fn private() -> bool {
    call(libc::MEMBARRIER_CMD_PRIVATE_EXPEDITED)
}

#[inline(always)]
fn call(command: libc::c_int) -> bool {
    // SAFETY: the call takes integers only.
    unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) == 0 }
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_registered_process_may() {
        super::register().unwrap();
        assert!(super::private());
    }
}
