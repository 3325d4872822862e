//! The terminal that a stream writes to.

use std::os::fd::AsFd;

use rustix::termios::tcgetwinsize;

/// The size of a terminal, in characters; `None` if the terminal does not know it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TerminalSize {
    /// Its width.
    pub columns: Option<u16>,
    /// Its height.
    pub rows: Option<u16>,
}

/// The size of the terminal behind a stream; unknown if there is no terminal.
pub fn size(stream: impl AsFd) -> TerminalSize {
    let Ok(size) = tcgetwinsize(stream) else { return TerminalSize::default() };
    let known = |characters: u16| Some(characters).filter(|characters| *characters > 0);
    TerminalSize { columns: known(size.ws_col), rows: known(size.ws_row) }
}
