//! From the recorder to the view: each batch is attributed like in `becalm record`, counted in the view, and stored.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use becalm_attribute::Tally;
use becalm_linux::sched;
use becalm_measure::Names;
use becalm_model::node::CpuDoc;
use becalm_model::{LoopThread, NodeDoc, Pid};
use becalm_record::{DetourStore, LanePart, Store};
use becalm_units::CpuList;

use crate::session::{LiveSession, ViewRequest};
use crate::watch::ViewThread;

/// How often recorded data is stored.
const SEGMENT: Duration = Duration::from_secs(10);

/// The path of one recording into the view.
pub struct ViewFeed<'a> {
    /// Attributes the batches and writes them into the hidden recording.
    detours: DetourStore,
    session: &'a Arc<LiveSession>,
    watcher: &'a mut ViewThread,
    /// The number of stored bytes beyond which the recording is replaced.
    bound: u64,
    stored: Instant,
}

impl<'a> ViewFeed<'a> {
    /// The feed of a recording that will start next.
    pub fn new(detours: DetourStore, session: &'a Arc<LiveSession>, watcher: &'a mut ViewThread, bound: u64) -> Self {
        Self { detours, session, watcher, bound, stored: Instant::now() }
    }

    /// The view matters more than the recording.
    fn go_on_without_storing(&mut self, why: &dyn std::fmt::Display) {
        self.detours.stop_storing();
        self.session.set_storing(false);
        self.session.say(Some(format!("nothing can be saved: {why}")));
    }
}

impl Store for ViewFeed<'_> {
    type Error = io::Error;

    fn begin(&mut self, node: &NodeDoc, threads: &[LoopThread], names: &mut Names) -> io::Result<()> {
        if let Err(error) = self.detours.begin(node, threads, names) {
            self.go_on_without_storing(&error);
        } else {
            self.session.set_storing(true);
        }
        self.session.begin(node, threads);
        // The recorder has moved to CPUs that are not measured, and its children inherit that.
        let measured: CpuList = threads.iter().map(|thread| thread.cpu).collect();
        let free = sched::allowed_cpus().map(|allowed| allowed.without(&measured)).unwrap_or_default();
        let tid = self.watcher.start(self.session, free)?;
        names.set_own(Pid(tid));
        Ok(())
    }

    fn take(&mut self, part: LanePart<'_>, names: &Names, pause: &mut dyn FnMut()) -> io::Result<()> {
        self.session.update(|live| live.take(part, &names.labels));
        if let Err(error) = self.detours.take(part, names, pause) {
            self.go_on_without_storing(&error);
        }
        Ok(())
    }

    fn end_segment(&mut self, names: &Names, pause: &mut dyn FnMut()) -> io::Result<()> {
        // The recorder's segments are as short as the view's interval.
        if self.stored.elapsed() < SEGMENT {
            return Ok(());
        }
        self.stored = Instant::now();
        if let Err(error) = self.detours.end_segment(names, pause) {
            self.go_on_without_storing(&error);
        }
        if self.detours.bytes_written() > self.bound {
            self.session.ask(ViewRequest::Renew);
        }
        Ok(())
    }
    fn enter(&mut self, cpus: &mut [CpuDoc], tallies: &[Tally]) {
        self.detours.enter(cpus, tallies);
    }

    fn close(&mut self, node: &mut NodeDoc) -> io::Result<()> {
        self.detours.close(node).map_err(io::Error::other)
    }
}
