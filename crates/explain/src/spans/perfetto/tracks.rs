//! The tracks of a trace, and the threads to which they belong.

use std::collections::HashMap;

use crate::perfetto::messages::{ThreadDescriptor, TrackDescriptor};

/// The most tracks from one up to that of its thread.
const MOST_PARENTS: usize = 16;

/// A process and a thread, as far as they are known.
pub(super) type Owner = (Option<i64>, Option<i64>);

/// A track: its owner, and the track above it.
#[derive(Clone, Copy, Default)]
struct Track {
    thread: Option<Owner>,
    process: Option<i64>,
    parent: u64,
}

/// The tracks described so far.
#[derive(Default)]
pub(super) struct Tracks(HashMap<u64, Track>);

impl Tracks {
    pub fn describe(&mut self, track: &TrackDescriptor) {
        let known = self.0.entry(track.uuid).or_default();
        if let Some(thread) = &track.thread {
            known.thread = Some(numbers(thread));
        }
        if let Some(process) = &track.process {
            known.process = Some(process.pid.into());
        }
        if track.parent_uuid != 0 {
            known.parent = track.parent_uuid;
        }
    }

    /// The owner of a track: the thread of the nearest track above that has one, else the process of the track itself.
    pub fn owner(&self, mut uuid: u64) -> Owner {
        let process = self.0.get(&uuid).and_then(|track| track.process);
        for _ in 0..MOST_PARENTS {
            let Some(track) = self.0.get(&uuid) else { break };
            if let Some(thread) = track.thread {
                return thread;
            }
            uuid = track.parent;
        }
        // Tracks below that of a process are of no thread, such as those of operations that several threads continue.
        (process, None)
    }
}

/// The owner that a descriptor names.
pub(super) fn numbers(thread: &ThreadDescriptor) -> Owner {
    (Some(thread.pid.into()), Some(thread.tid))
}
