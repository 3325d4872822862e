//! The capabilities of the calling thread.

use std::io;

use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, clear_ambient_capability_set, remove_capability_from_bounding_set,
    set_capabilities,
};

use crate::procfs::status::Capabilities;

/// Those that the kernel grants now.
pub(super) fn effective() -> io::Result<Capabilities> {
    Ok(Capabilities(capabilities(None)?.effective.bits()))
}

/// Whether there is none to be given up.
pub(super) fn has_none() -> io::Result<bool> {
    Ok(capabilities(None)?.permitted.is_empty())
}

/// Gives up all but these, and leaves none to be inherited by programs. Makes system calls only, so that a child may call it
/// between fork and its own life.
pub(crate) fn keep_of_this_thread(kept: Capabilities) -> io::Result<()> {
    // Kernels before 4.3 have no ambient set.
    let _ = clear_ambient_capability_set();
    let left = capabilities(None)?.permitted & CapabilitySet::from_bits_retain(kept.0);
    set_capabilities(None, CapabilitySets { effective: left, permitted: left, inheritable: CapabilitySet::empty() })?;
    Ok(())
}

/// Puts all of them down, such that [`take_up`] can bring them back.
pub(super) fn put_down() -> io::Result<()> {
    Ok(set_capabilities(None, CapabilitySets { effective: CapabilitySet::empty(), ..capabilities(None)? })?)
}

/// Takes up all that the thread was not made to give up.
pub(super) fn take_up() -> io::Result<()> {
    let sets = capabilities(None)?;
    Ok(set_capabilities(None, CapabilitySets { effective: sets.permitted, ..sets })?)
}

/// Takes every capability from what programs that this thread starts may ever have. Without `CAP_SETPCAP` it stays, and what is
/// started would still have no more than its user.
pub(super) fn empty_bounding_set() {
    // The kernel answers EINVAL for the first number that it does not know.
    for number in 0..u64::BITS {
        if remove_capability_from_bounding_set(CapabilitySet::from_bits_retain(1 << number)).is_err() {
            return;
        }
    }
}
