//! The terminal that a stream writes to.

use std::os::fd::AsFd;

use rustix::termios::tcgetwinsize;

/// The size of a terminal, in characters.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TerminalSize {
    /// Its width.
    pub columns: u16,
    /// Its height.
    pub rows: u16,
}

/// The size of the terminal behind a stream; `None` if there is no terminal, or it does not know its size.
#[must_use]
pub fn size(stream: impl AsFd) -> Option<TerminalSize> {
    let size = tcgetwinsize(stream).ok()?;
    (size.ws_col > 0 && size.ws_row > 0).then_some(TerminalSize { columns: size.ws_col, rows: size.ws_row })
}
