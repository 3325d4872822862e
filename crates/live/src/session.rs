//! The shared state of the measuring and the drawing thread, and the requests between them.

use std::collections::VecDeque;
use std::process;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use becalm_linux::signals;
use becalm_model::{LoopThread, NodeDoc};

use crate::live::Live;

/// How long a message is shown.
const NEWS: Duration = Duration::from_secs(10);

/// A request to the measuring thread. Each ends the present recording.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ViewRequest {
    /// Save the recording under its own name, and start another.
    Save,
    /// Drop the recording, which has become too large, and start another.
    Renew,
    /// Drop the recording, stop the process as a job of the shell, and start another when it continues.
    Suspend,
    /// Drop the recording and end the program.
    Quit,
}

/// The state of the measuring thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LivePhase {
    /// Between two recordings, or before the first.
    Preparing,
    /// During a recording.
    Measuring,
    /// The last recording has ended.
    Over,
}

#[derive(Debug)]
struct State {
    live: Arc<Live>,
    phase: LivePhase,
    requests: VecDeque<ViewRequest>,
    message: Option<(Instant, String)>,
    /// Whether the recording is stored and can be saved.
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

    /// The present data.
    pub fn live(&self) -> Arc<Live> {
        Arc::clone(&self.lock().live)
    }

    /// Updates the data. References that others still have stay unchanged.
    pub fn update(&self, update: impl FnOnce(&mut Live)) {
        update(Arc::make_mut(&mut self.lock().live));
    }

    /// Notes the start of a recording with these loops.
    pub fn begin(&self, node: &NodeDoc, threads: &[LoopThread]) {
        let mut state = self.lock();
        state.phase = LivePhase::Measuring;
        Arc::make_mut(&mut state.live).begin(node, threads);
    }

    /// Notes the end of a recording; another may follow.
    pub fn pause(&self) {
        self.lock().phase = LivePhase::Preparing;
    }

    /// Notes that no other recording will follow.
    pub fn end(&self) {
        self.lock().phase = LivePhase::Over;
    }

    /// The state of the measuring thread.
    pub fn phase(&self) -> LivePhase {
        self.lock().phase
    }

    /// Sends a request to the measuring thread; returns whether it will be handled: one at a time, but quitting always.
    pub fn ask(&self, request: ViewRequest) -> bool {
        let mut state = self.lock();
        let busy = state.phase != LivePhase::Measuring || !state.requests.is_empty();
        if busy && request != ViewRequest::Quit {
            return false;
        }
        state.requests.push_back(request);
        drop(state);
        // It sleeps until a signal arrives. If none can be sent, it checks at the end of a segment.
        let _ = signals::terminate(process::id());
        true
    }

    /// Takes the oldest open request, if there is one.
    pub fn take_request(&self) -> Option<ViewRequest> {
        self.lock().requests.pop_front()
    }

    /// Replaces the message in the view; `None` removes it.
    pub fn say(&self, message: Option<String>) {
        self.lock().message = message.map(|message| (Instant::now(), message));
    }

    /// The message to show, for `NEWS` after it was set.
    pub fn message(&self) -> Option<String> {
        let state = self.lock();
        state.message.as_ref().filter(|(said, _)| said.elapsed() < NEWS).map(|(_, message)| message.clone())
    }

    /// Notes whether the recording is stored and can be saved.
    pub fn set_storing(&self, storing: bool) {
        self.lock().storing = storing;
    }

    /// Whether the recording is stored.
    pub fn is_storing(&self) -> bool {
        self.lock().storing
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // After a panic the data is an old state at worst.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
