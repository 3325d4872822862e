//! The detours that come from outside: a short recording, kept in memory, of which the tick and the interrupts of devices
//! are taken out.

use becalm_command::rights;
use becalm_measure::RecordPlan;
use becalm_model::node::Ended;
use becalm_record::{MemoryStore, Session};
use becalm_units::{CpuList, Nanos};

use crate::analysis::{not_recorded, recorded};
use crate::documents::Probe;
use crate::measure::Site;

/// The duration of a recording in one process.
const LENGTH: Nanos = Nanos::from_millis(500);

/// Records the CPU for half a second, and gives the probes of the tick and of the devices' interrupts;
/// `None` if a signal ended the recording. What else goes wrong is said in the probes.
pub fn probes(site: &Site, session: &Session) -> Option<Vec<Probe>> {
    let root = site.root();
    let mut plan = RecordPlan::new();
    plan.cpus = Some([site.cpu].into_iter().collect::<CpuList>());
    plan.duration = Some(LENGTH);
    plan.policy = site.policy;
    plan.root = root.to_owned();
    // The other probes come after it.
    plan.rights = rights::lower_while_recording();
    plan.limit_trace_buffers();
    let (node, memory) = match session.record(plan, MemoryStore::default(), &mut |_| {}) {
        Ok(recording) => (recording.node, recording.store),
        Err(failure) => return Some(not_recorded(&failure.error.to_string())),
    };
    if node.ended == Some(Ended::Signal) {
        return None;
    }
    // One CPU was measured.
    let (mut detours, mut activities) = (Vec::new(), Vec::new());
    for lane in memory.lanes {
        detours.extend(lane.detours);
        activities.extend(lane.activities);
    }
    Some(recorded(site.cpu, LENGTH, &node, &detours, &activities, &memory.labels))
}
