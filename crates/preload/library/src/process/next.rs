//! The C library's own functions, which this library overrides by functions of the same names.

use core::ffi::CStr;
use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use crate::process::calls;

/// A function in the libraries after this one.
#[derive(Debug)]
pub struct Next {
    name: &'static CStr,
    /// Zero until it was looked up.
    found: AtomicUsize,
}

impl Next {
    /// The function with a name that ends with a zero.
    const fn new(name: &'static str) -> Self {
        match CStr::from_bytes_with_nul(name.as_bytes()) {
            Ok(name) => Self { name, found: AtomicUsize::new(0) },
            Err(_) => panic!("the name ends with a zero and has no other"),
        }
    }

    /// Its address; zero if there is no such function, as in a C library that is older than it.
    pub fn find(&self) -> usize {
        let mut found = self.found.load(Relaxed);
        if found == 0 {
            // Several threads may look it up at the same time, with the same result.
            found = calls::next_symbol(self.name);
            self.found.store(found, Relaxed);
        }
        found
    }

    /// Its address. Ends the process if there is no such function; every glibc has the functions requested in this way.
    pub fn address(&self) -> usize {
        match self.find() {
            0 => calls::exit_now(127),
            found => found,
        }
    }
}

/// Looks up all functions now rather than later: the dynamic linker takes locks and memory for that, which the program's signal handlers must not do.
pub fn find_all() {
    for next in ALL {
        next.find();
    }
}

/// A static for each function, with the function's name.
macro_rules! functions {
    ($($name:ident)*) => {
        $(
            #[allow(non_upper_case_globals)]
            pub(crate) static $name: Next = Next::new(concat!(stringify!($name), "\0"));
        )*
        static ALL: &[&Next] = &[$(&$name),*];
    };
}

functions! {
    sigaction signal bsd_signal ssignal sysv_signal __sysv_signal sigset sigignore siginterrupt sighold
    sigprocmask pthread_sigmask sigwait sigwaitinfo sigtimedwait signalfd sigpending sigsuspend __xpg_sigpause
    pthread_create
    poll __poll_chk select epoll_wait ppoll __ppoll_chk pselect epoll_pwait epoll_pwait2
    nanosleep clock_nanosleep thrd_sleep usleep sleep pause
    semop semtimedop msgsnd msgrcv sem_timedwait sem_clockwait aio_suspend aio_suspend64
    setsockopt connect accept accept4 recv __recv_chk recvfrom __recvfrom_chk recvmsg recvmmsg send sendto sendmsg sendmmsg
    read __read_chk readv write writev
}

/// The C library's function with a name and a type.
macro_rules! next {
    ($name:ident as $kind:ty) => {{
        // SAFETY: the address is not null and is that of the function that the C library declares with this name and type.
        unsafe { core::mem::transmute::<usize, $kind>($crate::process::next::$name.address()) }
    }};
}
pub(crate) use next;
