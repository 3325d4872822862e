//! Threads that parse untrusted input, which needs no privileges.

use std::sync::mpsc;
use std::{io, thread};

use becalm_linux::{rights, sched};
use becalm_model::Pid;

/// Starts a thread that first drops its privileges, and returns its thread ID. Fails, and ends the thread, if it cannot drop them.
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
