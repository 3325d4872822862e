//! The kernel's estimate of the wall clock's error.

/// The kernel's state of the wall clock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WallError {
    /// The maximum error in nanoseconds: the value from the NTP or PTP daemon, growing since. Meaningless without a daemon.
    pub most_ns: i64,
    /// Whether such a daemon keeps it synchronized.
    pub synchronized: bool,
}

/// Asks the kernel, which needs no privilege; `None` if it does not answer.
pub fn wall_error() -> Option<WallError> {
    // SAFETY: all-zero bytes are a valid timex, and with no mode set nothing is changed.
    let mut state: libc::timex = unsafe { std::mem::zeroed() };
    // SAFETY: it is a valid place to write to.
    let told = unsafe { libc::adjtimex(&raw mut state) };
    if told < 0 {
        return None;
    }
    let synchronized = told != libc::TIME_ERROR && state.status & libc::STA_UNSYNC == 0;
    #[allow(clippy::useless_conversion, reason = "a long is shorter on some machines")]
    let most_us = i64::from(state.maxerror);
    Some(WallError { most_ns: most_us.saturating_mul(1_000), synchronized })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_says_how_right_its_clock_is() {
        let error = wall_error().expect("Linux says it to everybody");
        assert!(error.most_ns >= 0, "{error:?}");
    }
}
