//! The sources of kind `not_traced`: why the kernel's trace does not tell who had the time. The host of a guest, firmware and
//! hardware, which are `unseen`, are not meant.

/// Another program changed the trace.
pub const TRACE_CHANGED: &str = "trace_changed";
/// The kernel lost events of its trace.
pub const LOST_EVENTS: &str = "lost_events";
/// The trace lacks a switch, so the time belongs to one of two threads.
pub const MISSING_SWITCH: &str = "missing_switch";
