//! Threads that read what strangers send, for which they need no rights.

use std::sync::mpsc;
use std::{io, thread};

use becalm_linux::{rights, sched};
use becalm_model::Pid;

/// Starts a thread that gives up its rights first; gives its number. Fails if it cannot give them up, and it ends then.
pub fn start(name: &str, run: impl FnOnce() + Send + 'static) -> io::Result<Pid> {
    let (sender, receiver) = mpsc::channel();
    thread::Builder::new().name(name.to_owned()).stack_size(256 << 10).spawn(move || {
        let left = rights::give_up_of_this_thread();
        let is_left = left.is_ok();
        let _ = sender.send(left.map(|()| Pid(sched::current_tid())));
        if is_left {
            run();
        }
    })?;
    receiver.recv().map_err(|_| io::Error::other("the thread ended at once"))?
}
