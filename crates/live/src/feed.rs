//! From the recorder to the view: each batch is attributed as `becalm record` does it, counted in the view, and stored.

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

/// How often what was recorded is stored.
const SEGMENT: Duration = Duration::from_secs(10);

/// One recording on its way into the view.
pub struct ViewFeed<'a> {
    /// Attributes the batches and writes them into the bundle that can be saved.
    detours: DetourStore,
    session: &'a Arc<LiveSession>,
    watcher: &'a mut ViewThread,
    /// With more bytes stored than this, the recording is to be renewed.
    bound: u64,
    stored: Instant,
}

impl<'a> ViewFeed<'a> {
    /// The feed of a recording that is about to begin.
    pub fn new(detours: DetourStore, session: &'a Arc<LiveSession>, watcher: &'a mut ViewThread, bound: u64) -> Self {
        Self { detours, session, watcher, bound, stored: Instant::now() }
    }

    /// The view is worth more than what could be saved of it.
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
        // The recorder has gone to the CPUs that are not measured, and whom it starts inherits that.
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
