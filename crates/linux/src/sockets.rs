//! Sockets: one opened by a service manager, and waiting for many at once.

use std::env;
use std::io;
use std::net::TcpListener;
use std::os::fd::{BorrowedFd, FromRawFd, OwnedFd};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::sockopt;

/// The first descriptor passed by a service manager.
const FIRST: i32 = 3;

/// A passed socket that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum InheritedError {
    /// More or fewer than one.
    #[error("the service manager passed {0} sockets (LISTEN_FDS); pass one, a TCP socket that listens")]
    Count(String),
    /// It is something else.
    #[error("descriptor 3, which the service manager passed (LISTEN_FDS), is not a TCP socket that listens{0}")]
    Other(String),
}

becalm_units::fault::faultless!(InheritedError);

/// The socket that the service manager opened for this process (`LISTEN_FDS`), if any. Must be called once, before any file is opened or thread is
/// started. Fails if there are several, or it is not a listening TCP socket.
pub fn inherited_listener() -> Result<Option<TcpListener>, InheritedError> {
    let is_for_us = env::var("LISTEN_PID").is_ok_and(|pid| pid == std::process::id().to_string());
    let Ok(count) = env::var("LISTEN_FDS") else { return Ok(None) };
    if !is_for_us {
        return Ok(None);
    }
    if count != "1" {
        return Err(InheritedError::Count(becalm_units::printable(&count).to_string()));
    }
    let other = |error: rustix::io::Errno| InheritedError::Other(format!(": {}", io::Error::from(error)));
    // SAFETY: only reads the descriptor's flags, which fails if there is none.
    if unsafe { libc::fcntl(FIRST, libc::F_GETFD) } < 0 {
        return Err(other(rustix::io::Errno::BADF));
    }
    // SAFETY: it is open, and by the protocol this process owns it; nothing else here uses it yet.
    let fd = unsafe { OwnedFd::from_raw_fd(FIRST) };
    rustix::io::fcntl_setfd(&fd, rustix::io::FdFlags::CLOEXEC).map_err(other)?;
    let listens = sockopt::socket_acceptconn(&fd).map_err(other)?;
    let listener = TcpListener::from(fd);
    // The address of a socket of another family is an error here.
    if !listens || listener.local_addr().is_err() {
        return Err(InheritedError::Other(String::new()));
    }
    Ok(Some(listener))
}

/// Makes a listening socket queue up to this many connections that are not accepted yet, up to the kernel's own limit (`net.core.somaxconn`). Further
/// ones wait for a second or longer before they retry. Fails if the kernel refuses, as for a socket that does not listen.
pub fn set_backlog(listener: &TcpListener, connections: i32) -> io::Result<()> {
    Ok(rustix::net::listen(listener, connections)?)
}

/// The readiness to wait for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Await {
    /// A read or an accept is possible.
    Readable,
    /// A write is possible.
    Writable,
}

/// Sleeps until one of the descriptors is ready or the time is over (`None`: never); returns which are ready. One that has failed or was closed by
/// the other side is also ready. Fails if the kernel refuses to poll; an interruption counts as nothing ready.
pub fn wait_ready(fds: &[(BorrowedFd<'_>, Await)], timeout: Option<Duration>) -> io::Result<Vec<bool>> {
    let flags = |what| if what == Await::Readable { PollFlags::IN } else { PollFlags::OUT };
    let mut polled: Vec<_> = fds.iter().map(|(fd, what)| PollFd::from_borrowed_fd(*fd, flags(*what))).collect();
    let timeout = timeout.map(|time| Timespec {
        tv_sec: time.as_secs().try_into().unwrap_or(i64::MAX),
        tv_nsec: time.subsec_nanos().into(),
    });
    match poll(&mut polled, timeout.as_ref()) {
        Ok(_) => Ok(polled.iter().map(|fd| !fd.revents().is_empty()).collect()),
        Err(rustix::io::Errno::INTR) => Ok(vec![false; fds.len()]),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpStream;
    use std::os::fd::AsFd;

    #[test]
    fn it_tells_which_are_ready() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let idle = TcpListener::bind("127.0.0.1:0").unwrap();
        let both = [(idle.as_fd(), Await::Readable), (listener.as_fd(), Await::Readable)];
        assert_eq!(wait_ready(&both, Some(Duration::from_millis(1))).unwrap(), [false, false]);
        let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        assert_eq!(wait_ready(&both, None).unwrap(), [false, true]);
        assert_eq!(wait_ready(&[(stream.as_fd(), Await::Writable)], None).unwrap(), [true]);
    }

    #[test]
    fn without_a_service_manager_there_is_no_socket() {
        assert!(inherited_listener().unwrap().is_none());
    }
}
