//! Checks that the trace is still as becalm set it up; otherwise until when it was, and the change.

use becalm_linux::ftrace::Instance;
use becalm_model::node::TraceChange;
use becalm_units::Nanos;

/// The state of a recording's trace.
#[derive(Clone, Debug)]
pub struct Unchanged {
    /// The last time at which the kernel had reported no change.
    noticed: Nanos,
    /// The last time at which its files had the expected contents.
    read: Nanos,
    change: Option<TraceChange>,
}

impl Unchanged {
    /// The trace was just switched on.
    pub const fn since(now: Nanos) -> Self {
        Self { noticed: now, read: now, change: None }
    }

    /// Checks the trace. `before` is an instant before data was last taken from it; `read` is whether its files may be read. On a virtual machine
    /// with 2 CPUs (Linux 6.18), this took 55 us right after the previous check, and 0.3 ms after 100 ms. Returns when tracing ended, if it has.
    pub fn look(&mut self, instance: &Instance, before: Nanos, read: bool) -> Option<Nanos> {
        if self.change.is_none() {
            let (mut files, mut until) = (instance.noticed_changes(), self.noticed);
            if files.is_empty() && read {
                (files, until) = (instance.changed(), self.read);
                self.read = before;
            }
            self.noticed = before;
            self.change = (!files.is_empty()).then_some(TraceChange { traced_until_ns: until, files });
        }
        self.change.as_ref().map(|change| change.traced_until_ns)
    }

    /// The change by another program.
    pub const fn change(&self) -> Option<&TraceChange> {
        self.change.as_ref()
    }
}
