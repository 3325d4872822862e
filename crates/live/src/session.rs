//! What the thread that measures and the one that draws share, and what the one asks of the other.

use std::collections::VecDeque;
use std::process;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use becalm_linux::signals;
use becalm_model::{LoopThread, NodeDoc};

use crate::live::Live;

/// How long a message is shown.
const NEWS: Duration = Duration::from_secs(10);

/// What can be asked of the thread that measures. Each ends the present recording.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ViewRequest {
    /// Keep the recording under a name of its own, and begin another.
    Save,
    /// Drop the recording, which has become too large, and begin another.
    Renew,
    /// Drop the recording, stop the process as a shell's job, and begin another when it goes on.
    Suspend,
    /// Drop the recording and end the program.
    Quit,
}

/// What the thread that measures is doing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LivePhase {
    /// Between two recordings, or before the first.
    Preparing,
    /// A recording is being made.
    Measuring,
    /// The last recording has ended, and no other will begin.
    Over,
}

#[derive(Debug)]
struct State {
    live: Arc<Live>,
    phase: LivePhase,
    requests: VecDeque<ViewRequest>,
    message: Option<(Instant, String)>,
    /// Whether the recording is stored, so that it can be saved.
    storing: bool,
}

/// A view and its recordings.
#[derive(Debug)]
pub struct LiveSession(Mutex<State>);

impl LiveSession {
    /// The state before the first recording.
    pub fn new() -> Self {
        Self(Mutex::new(State {
            live: Arc::default(),
            phase: LivePhase::Preparing,
            requests: VecDeque::new(),
            message: None,
            storing: false,
        }))
    }

    /// What the view shows, as of now.
    pub fn live(&self) -> Arc<Live> {
        Arc::clone(&self.lock().live)
    }

    /// Brings what is known up to date. What others still look at stays as it was.
    pub fn update(&self, update: impl FnOnce(&mut Live)) {
        update(Arc::make_mut(&mut self.lock().live));
    }

    /// Notes that a recording begins, of these loops.
    pub fn begin(&self, node: &NodeDoc, threads: &[LoopThread]) {
        let mut state = self.lock();
        state.phase = LivePhase::Measuring;
        Arc::make_mut(&mut state.live).begin(node, threads);
    }

    /// Notes that the recording has ended and that another may follow.
    pub fn pause(&self) {
        self.lock().phase = LivePhase::Preparing;
    }

    /// Notes that no other recording will follow.
    pub fn end(&self) {
        self.lock().phase = LivePhase::Over;
    }

    /// What the thread that measures is doing.
    pub fn phase(&self) -> LivePhase {
        self.lock().phase
    }

    /// Asks something of the thread that measures, and tells whether it will be done: one thing at a time, but quitting
    /// always.
    pub fn ask(&self, request: ViewRequest) -> bool {
        let mut state = self.lock();
        let busy = state.phase != LivePhase::Measuring || !state.requests.is_empty();
        if busy && request != ViewRequest::Quit {
            return false;
        }
        state.requests.push_back(request);
        drop(state);
        // It sleeps until a signal comes. Where that cannot be sent it looks when a segment is over.
        let _ = signals::terminate(process::id());
        true
    }

    /// Takes the oldest request that is still open, if there is one.
    pub fn take_request(&self) -> Option<ViewRequest> {
        self.lock().requests.pop_front()
    }

    /// Replaces the message that the view shows; `None` takes it away.
    pub fn say(&self, message: Option<String>) {
        self.lock().message = message.map(|message| (Instant::now(), message));
    }

    /// The message to show, for `NEWS` after it was given.
    pub fn message(&self) -> Option<String> {
        let state = self.lock();
        state.message.as_ref().filter(|(said, _)| said.elapsed() < NEWS).map(|(_, message)| message.clone())
    }

    /// Notes whether the recording is stored, so that it can be saved.
    pub fn set_storing(&self, storing: bool) {
        self.lock().storing = storing;
    }

    /// Whether the recording is stored.
    pub fn is_storing(&self) -> bool {
        self.lock().storing
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Whoever panicked with it, what is in it is a view of the past at worst.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
