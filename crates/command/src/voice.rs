//! Messages of a command that must never wait for a reader: a pipe that no one reads, or a stopped terminal, blocks only the thread that
//! writes them.

use std::convert::Infallible;
use std::io;
use std::sync::mpsc::{Receiver, SyncSender, channel, sync_channel};
use std::thread;
use std::time::Duration;

use becalm_linux::{rights, sched};
use becalm_model::Pid;

use crate::messages::{say, say_error};

/// The maximum number of queued messages.
const MOST: usize = 16;

/// The maximum time that the end of the command waits for a reader.
const PATIENCE: Duration = Duration::from_secs(1);

/// A thread that prints messages.
#[derive(Debug)]
pub struct Voice {
    queue: SyncSender<String>,
    /// Disconnected when the thread has ended.
    ended: Receiver<Infallible>,
    /// The thread.
    pub pid: Pid,
}

impl Voice {
    /// Starts the thread. Fails if the system cannot create it, or it cannot drop its rights.
    pub fn start() -> io::Result<Self> {
        let (queue, messages) = sync_channel::<String>(MOST);
        let (ready, started) = channel();
        let (end, ended) = channel();
        thread::Builder::new().name("becalm-messages".to_owned()).stack_size(256 << 10).spawn(move || {
            let _end = end;
            let left = rights::give_up_of_this_thread();
            let is_left = left.is_ok();
            let _ = ready.send(left.map(|()| Pid(sched::current_tid())));
            if is_left {
                messages.iter().for_each(|message| say(format_args!("{message}")));
            }
        })?;
        let pid = started.recv().map_err(|_| io::Error::other("the thread that writes messages ended at once"))??;
        Ok(Self { queue, ended, pid })
    }

    /// Queues a message; false if the queue is full and the message was dropped.
    pub fn say(&self, message: String) -> bool {
        self.queue.try_send(message).is_ok()
    }

    /// Waits until the messages are written, with a limit.
    pub fn end(self) {
        drop(self.queue);
        let _ = self.ended.recv_timeout(PATIENCE);
    }
}

/// Prints the command's final error, with a limit on waiting for a reader.
pub fn say_last_error(text: &str) {
    let message = text.to_owned();
    let (end, ended) = channel::<Infallible>();
    let writer = thread::Builder::new().spawn(move || {
        let _end = end;
        say_error(format_args!("{message}"));
    });
    match writer {
        Ok(_) => _ = ended.recv_timeout(PATIENCE),
        Err(_) => say_error(format_args!("{text}")),
    }
}
