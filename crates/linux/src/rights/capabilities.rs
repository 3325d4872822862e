//! The capabilities of the calling thread.

use std::io;

use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, clear_ambient_capability_set, remove_capability_from_bounding_set,
    set_capabilities,
};

use crate::procfs::status::Capabilities;

/// The current effective capabilities.
pub(super) fn effective() -> io::Result<Capabilities> {
    Ok(Capabilities(capabilities(None)?.effective.bits()))
}

/// Whether there are none to give up.
pub(super) fn has_none() -> io::Result<bool> {
    Ok(capabilities(None)?.permitted.is_empty())
}

/// Gives up all but these, and leaves none for programs to inherit. Makes only system calls, so a child may call it right after fork.
pub(crate) fn keep_of_this_thread(kept: Capabilities) -> io::Result<()> {
    // Kernels before 4.3 have no ambient set.
    let _ = clear_ambient_capability_set();
    let left = capabilities(None)?.permitted & CapabilitySet::from_bits_retain(kept.0);
    set_capabilities(None, CapabilitySets { effective: left, permitted: left, inheritable: CapabilitySet::empty() })?;
    Ok(())
}

/// Drops all of them in such a way that [`take_up`] can restore them.
pub(super) fn put_down() -> io::Result<()> {
    Ok(set_capabilities(None, CapabilitySets { effective: CapabilitySet::empty(), ..capabilities(None)? })?)
}

/// Restores all that the thread has not given up permanently.
pub(super) fn take_up() -> io::Result<()> {
    let sets = capabilities(None)?;
    Ok(set_capabilities(None, CapabilitySets { effective: sets.permitted, ..sets })?)
}

/// Removes every capability that programs started by this thread could ever gain. Without `CAP_SETPCAP` the set remains; started programs would still
/// have only their user's rights.
pub(super) fn empty_bounding_set() {
    // The kernel returns EINVAL for the first number that it does not know.
    for number in 0..u64::BITS {
        if remove_capability_from_bounding_set(CapabilitySet::from_bits_retain(1 << number)).is_err() {
            return;
        }
    }
}
