//! Detours from outside: the tick and device interrupts in a short recording, kept in memory.

use becalm_command::rights;
use becalm_measure::RecordPlan;
use becalm_model::node::Ended;
use becalm_record::{MemoryStore, Session};
use becalm_units::{CpuList, Nanos};

use crate::analysis::{not_recorded, recorded};
use crate::documents::Probe;
use crate::measure::Site;

/// The duration of the recording in one process.
const LENGTH: Nanos = Nanos::from_millis(500);

/// Records the CPU for half a second and returns the probes of the tick and of device interrupts; `None` if a signal ended the recording.
/// Other failures are reported in the probes.
pub fn probes(site: &Site, session: &Session) -> Option<Vec<Probe>> {
    let root = site.root();
    let mut plan = RecordPlan::new();
    plan.cpus = Some([site.cpu].into_iter().collect::<CpuList>());
    plan.duration = Some(LENGTH);
    plan.policy = site.policy;
    plan.root = root.to_owned();
    // The other probes follow.
    plan.rights = rights::lower_while_recording();
    plan.limit_trace_buffers();
    let (node, memory) = match session.record(plan, MemoryStore::default(), &mut |_| {}) {
        Ok(recording) => (recording.node, recording.store),
        Err(failure) => return Some(not_recorded(&failure.error.to_string())),
    };
    if node.ended == Some(Ended::Signal) {
        return None;
    }
    // The recording covers one CPU.
    let (mut detours, mut activities) = (Vec::new(), Vec::new());
    for lane in memory.lanes {
        detours.extend(lane.detours);
        activities.extend(lane.activities);
    }
    Some(recorded(site.cpu, LENGTH, &node, &detours, &activities, &memory.labels))
}
