//! Limits of the process that end it by a signal unless it asks for errors instead.

/// From now on a write beyond the limit of a file's size (`ulimit -f`) fails with an error, and no longer ends the process.
///
/// The signal gets a handler that does nothing. To ignore it would do as well, but would be inherited by the programs that the process
/// starts; these get the default action back.
pub fn report_file_size() {
    extern "C" fn nothing(_: libc::c_int) {}
    // SAFETY: all-zero bytes are a valid sigaction, and the handler may run at any time, as it does nothing. A refusal, of which there
    // is none for this signal, would leave all as it was.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = nothing as extern "C" fn(libc::c_int) as libc::sighandler_t;
        action.sa_flags = libc::SA_RESTART;
        libc::sigaction(libc::SIGXFSZ, &raw const action, std::ptr::null_mut());
    }
}
