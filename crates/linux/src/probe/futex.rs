//! Sleeping and waking by futex(2), private to the process.

use std::sync::atomic::AtomicU32;

/// Sleeps until the word is woken, unless it no longer contains `expected`. May return spuriously.
#[inline(always)]
pub fn wait(word: &AtomicU32, expected: u32) {
    // SAFETY: the word outlives the call; there is no timeout.
    unsafe {
        libc::syscall(
            libc::SYS_futex,
            word.as_ptr(),
            libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG,
            expected,
            std::ptr::null::<libc::timespec>(),
        )
    };
}

/// Wakes one thread that sleeps on the word; returns whether there was one.
#[inline(always)]
pub fn wake(word: &AtomicU32) -> bool {
    // SAFETY: the word's address is only compared with those that threads sleep on.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG, 1) == 1 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::Ordering;

    #[test]
    fn a_sleeper_is_woken_and_nobody_else() {
        let word = AtomicU32::new(0);
        assert!(!wake(&word));
        wait(&word, 1);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while word.load(Ordering::Acquire) == 0 {
                    wait(&word, 0);
                }
            });
            // It may not sleep yet.
            while !wake(&word) {
                std::thread::yield_now();
            }
            word.store(1, Ordering::Release);
            wake(&word);
        });
    }
}
