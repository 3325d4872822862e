//! Frames of threads that were switched away within a work item, a threaded softirq or a fault.

use becalm_model::Pid;

use super::frame::Frame;

/// The number of threads kept. Threads that never return to this CPU (their work moved on, or they ended) would stay forever, so the one
/// that left longest ago is dropped.
const THREADS: usize = 64;

/// The suspended threads of a CPU with frames, the first to leave first.
///
/// They are few, so linear search is fastest; vectors are passed around rather than allocated.
#[derive(Default, Debug)]
pub(super) struct Suspended {
    threads: Vec<SuspendedThread>,
    spare: Vec<Vec<Frame>>,
}

#[derive(Debug)]
struct SuspendedThread {
    pid: Pid,
    frames: Vec<Frame>,
    /// The number of the detour when the thread left: its frames' rows belong to that one.
    detour: u64,
}

impl Suspended {
    /// Takes the frames of a thread that leaves, and leaves an empty vector. Returns the number of frames dropped: older ones of the same
    /// thread, or those of the thread that left longest ago.
    pub fn suspend(&mut self, pid: Pid, frames: &mut Vec<Frame>, detour: u64) -> usize {
        if frames.is_empty() {
            return 0;
        }
        let stale = self.position(pid).or((self.threads.len() >= THREADS).then_some(0));
        let given_up = stale.map_or(0, |at| self.remove(at));
        let mut kept = self.spare.pop().unwrap_or_default();
        std::mem::swap(frames, &mut kept);
        self.threads.push(SuspendedThread { pid, frames: kept, detour });
        given_up
    }

    /// Moves a thread's frames back into an empty vector. Rows from an earlier detour are cleared.
    pub fn resume(&mut self, pid: Pid, frames: &mut Vec<Frame>, detour: u64) {
        let Some(at) = self.position(pid) else { return };
        let mut thread = self.threads.remove(at);
        std::mem::swap(frames, &mut thread.frames);
        self.recycle(thread.frames);
        if thread.detour != detour {
            frames.iter_mut().for_each(|frame| frame.row = None);
        }
    }

    /// The frames of a suspended thread.
    pub fn frames(&self, pid: Pid) -> &[Frame] {
        self.position(pid).map_or(&[], |at| &self.threads[at].frames)
    }

    /// Drops the frames of all threads but keeps their memory.
    pub fn clear(&mut self) {
        while let Some(thread) = self.threads.pop() {
            self.recycle(thread.frames);
        }
    }

    fn position(&self, pid: Pid) -> Option<usize> {
        self.threads.iter().position(|thread| thread.pid == pid)
    }

    fn remove(&mut self, at: usize) -> usize {
        let frames = self.threads.remove(at).frames;
        let given_up = frames.len();
        self.recycle(frames);
        given_up
    }

    fn recycle(&mut self, mut frames: Vec<Frame>) {
        frames.clear();
        self.spare.push(frames);
    }
}

#[cfg(test)]
mod tests {
    use becalm_model::Label;
    use becalm_units::Nanos;

    use super::*;
    use crate::frame::{FrameName, What};
    use crate::ledger::LedgerRow;

    fn frame(work: u64) -> Frame {
        Frame {
            what: What::Work(work),
            source: Label::EMPTY,
            detail: Label::EMPTY,
            named: FrameName { source: Label::EMPTY, detail: Label::EMPTY, cause: Label::EMPTY, raises: Label::EMPTY },
            ran: false,
            row: Some(LedgerRow::default()),
            in_detour: true,
            since: Nanos::ZERO,
            before: Nanos::ZERO,
        }
    }

    #[test]
    fn frames_come_back_once_and_rows_only_within_their_detour() {
        let mut suspended = Suspended::default();
        let mut frames = vec![frame(1), frame(2)];
        assert_eq!(suspended.suspend(Pid(5), &mut frames, 3), 0);
        assert!(frames.is_empty());
        assert_eq!(suspended.frames(Pid(5)).len(), 2);
        suspended.resume(Pid(5), &mut frames, 3);
        assert!(frames.len() == 2 && frames.iter().all(|frame| frame.row.is_some()));
        suspended.suspend(Pid(5), &mut frames, 3);
        suspended.resume(Pid(5), &mut frames, 4);
        assert!(frames.len() == 2 && frames.iter().all(|frame| frame.row.is_none()));
        frames.clear();
        suspended.resume(Pid(5), &mut frames, 4);
        assert!(frames.is_empty());
    }

    #[test]
    fn a_stale_thread_is_replaced_and_the_oldest_makes_room() {
        let mut suspended = Suspended::default();
        suspended.suspend(Pid(1), &mut vec![frame(1), frame(2)], 0);
        assert_eq!(suspended.suspend(Pid(1), &mut vec![frame(3)], 0), 2);
        for pid in 2..=THREADS as i32 {
            assert_eq!(suspended.suspend(Pid(pid), &mut vec![frame(0)], 0), 0);
        }
        assert_eq!(suspended.suspend(Pid(0), &mut vec![frame(0)], 0), 1);
        assert!(suspended.frames(Pid(1)).is_empty());
        assert_eq!(suspended.frames(Pid(2)).len(), 1);
    }
}
