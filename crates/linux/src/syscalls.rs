//! The names of system calls.

use syscalls::Sysno;

/// The name of a system call of this architecture by its number; `None` for an unknown one.
pub fn syscall_name(number: i64) -> Option<&'static str> {
    usize::try_from(number).ok().and_then(Sysno::new).map(|call| call.name())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_the_names_of_this_architecture() {
        assert_eq!(syscall_name(libc::SYS_read), Some("read"));
        assert_eq!(syscall_name(libc::SYS_futex), Some("futex"));
        assert_eq!((syscall_name(-1), syscall_name(100_000)), (None, None));
    }
}
