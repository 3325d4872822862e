//! The sources of kind `not_traced`: reasons why the kernel's trace does not show who used the time. Sources of kind `unseen` (the host of a guest,
//! firmware, hardware) are separate.

/// Another program changed the trace.
pub const TRACE_CHANGED: &str = "trace_changed";
/// The kernel lost events of its trace.
pub const LOST_EVENTS: &str = "lost_events";
/// The trace lacks a switch, so the time belongs to one of two threads.
pub const MISSING_SWITCH: &str = "missing_switch";
