//! Keys, from the bytes that a terminal sends for them.
//!
//! Only the view's keys are recognized; other sequences are skipped as a whole. The drawing library's reader is not used: it installs a signal
//! handler, loses keys that arrive together with a new size, and never returns once the terminal is gone.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use becalm_linux::signals;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

/// How long to wait for the rest of a key: terminals send its bytes at once, but a network may split them. In tests, the sending thread may have to
/// wait for a CPU.
const REST: Duration = Duration::from_millis(if cfg!(test) { 2_000 } else { 25 });

/// The most bytes of a key.
const LONGEST: usize = 4_096;

/// The keyboard of a terminal in raw mode.
pub struct Keyboard(File);

impl Keyboard {
    /// The keyboard of standard input, bypassing its buffer. Fails if there is none.
    pub fn new() -> io::Result<Self> {
        Ok(Self(File::from(io::stdin().as_fd().try_clone_to_owned()?)))
    }

    /// The pressed keys, after waiting at most `patience` for one. The error is [`io::ErrorKind::UnexpectedEof`] if the terminal is gone.
    pub fn read(&mut self, patience: Duration) -> io::Result<Vec<KeyEvent>> {
        if signals::wait_readable([Some(self.0.as_fd())], patience)? == [false] {
            return Ok(Vec::new());
        }
        let mut bytes = Vec::new();
        self.take(&mut bytes)?;
        while is_part(&bytes)
            && bytes.len() < LONGEST
            && signals::wait_readable([Some(self.0.as_fd())], REST)? == [true]
        {
            self.take(&mut bytes)?;
        }
        Ok(parse(&bytes))
    }

    /// The descriptor to wait for.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }

    /// Appends the bytes that the terminal has sent, without waiting.
    fn take(&mut self, bytes: &mut Vec<u8>) -> io::Result<()> {
        let mut some = [0; 256];
        match self.0.read(&mut some)? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            length => {
                bytes.extend_from_slice(&some[..length]);
                Ok(())
            }
        }
    }
}

/// Whether the last of these bytes may be the start of an incomplete key.
fn is_part(bytes: &[u8]) -> bool {
    if std::str::from_utf8(bytes).is_err_and(|error| error.error_len().is_none()) {
        return true;
    }
    let Some(escape) = bytes.iter().rposition(|byte| *byte == 0x1b) else { return false };
    match &bytes[escape + 1..] {
        [] | [b'O'] => true,
        [b'[', parameters @ ..] => parameters.iter().all(|byte| (0x20..0x40).contains(byte)),
        _ => false,
    }
}

fn parse(mut bytes: &[u8]) -> Vec<KeyEvent> {
    let mut keys = Vec::new();
    while let Some((&first, rest)) = bytes.split_first() {
        let (key, length) = match first {
            0x1b => escape(rest),
            b'\r' | b'\n' => (Some(KeyCode::Enter), 1),
            b'\t' => (Some(KeyCode::Tab), 1),
            0x08 | 0x7f => (Some(KeyCode::Backspace), 1),
            0x01..=0x1a => {
                keys.push(KeyEvent::new(KeyCode::Char((first + b'a' - 1).into()), KeyModifiers::CONTROL));
                (None, 1)
            }
            _ => character(bytes),
        };
        keys.extend(key.map(|key| KeyEvent::new(key, KeyModifiers::NONE)));
        bytes = &bytes[length.min(bytes.len())..];
    }
    keys
}

/// The key after an escape, and its length in bytes including the escape. An escape before anything else is itself the key.
fn escape(rest: &[u8]) -> (Option<KeyCode>, usize) {
    let (body, lead) = match rest.first() {
        Some(b'[') => (&rest[1..], 2),
        // Keypads in application mode send one byte.
        Some(b'O') => return (rest.get(1).and_then(|last| named(b"", *last)), 3),
        _ => return (Some(KeyCode::Esc), 1),
    };
    match body.iter().position(|byte| (0x40..=0x7e).contains(byte)) {
        Some(end) => (named(&body[..end], body[end]), lead + end + 1),
        None => (None, lead + body.len()),
    }
}

/// The key of a sequence with these parameters and this last byte. Modifiers, after a semicolon, are ignored.
fn named(parameters: &[u8], last: u8) -> Option<KeyCode> {
    let number = parameters.split(|byte| *byte == b';').next().unwrap_or_default();
    match (last, number) {
        (b'A', _) => Some(KeyCode::Up),
        (b'B', _) => Some(KeyCode::Down),
        (b'C', _) => Some(KeyCode::Right),
        (b'D', _) => Some(KeyCode::Left),
        (b'H', _) | (b'~', b"1" | b"7") => Some(KeyCode::Home),
        (b'F', _) | (b'~', b"4" | b"8") => Some(KeyCode::End),
        (b'~', b"5") => Some(KeyCode::PageUp),
        (b'~', b"6") => Some(KeyCode::PageDown),
        (b'P', b"") | (b'~', b"11") => Some(KeyCode::F(1)),
        (b'Z', _) => Some(KeyCode::BackTab),
        _ => None,
    }
}

/// The first character and its length in bytes; invalid bytes are skipped.
fn character(bytes: &[u8]) -> (Option<KeyCode>, usize) {
    let valid = match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => std::str::from_utf8(&bytes[..error.valid_up_to()]).unwrap_or_default(),
    };
    match valid.chars().next() {
        Some(character) => (Some(KeyCode::Char(character)), character.len_utf8()),
        None => (None, 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn codes(bytes: &[u8]) -> Vec<KeyCode> {
        parse(bytes).into_iter().map(|key| key.code).collect()
    }

    #[test]
    fn keys_of_usual_terminals() {
        for (bytes, key) in [
            (&b"\x1b[A"[..], KeyCode::Up),
            (b"\x1bOB", KeyCode::Down),
            (b"\x1b[1;5C", KeyCode::Right),
            (b"\x1b[1~", KeyCode::Home),
            (b"\x1b[6~", KeyCode::PageDown),
            (b"\x1b[Z", KeyCode::BackTab),
            (b"\x1bOP", KeyCode::F(1)),
            (b"\x1b", KeyCode::Esc),
            (b"\r", KeyCode::Enter),
            (b"\t", KeyCode::Tab),
            ("\u{e4}".as_bytes(), KeyCode::Char('\u{e4}')),
        ] {
            assert_eq!(codes(bytes), [key], "{bytes:?}");
        }
        assert_eq!(parse(b"\x03"), [KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL)]);
    }

    #[test]
    fn keys_that_come_together() {
        assert_eq!(codes(b"\x1bq"), [KeyCode::Esc, KeyCode::Char('q')]);
        assert_eq!(codes(b"\x1b[B\x1b[B>s"), [KeyCode::Down, KeyCode::Down, KeyCode::Char('>'), KeyCode::Char('s')]);
        // Unknown and truncated sequences are skipped as a whole.
        assert_eq!(codes(b"\x1b[200~x\x1b[24;5~\xff\x1b[12"), [KeyCode::Char('x')]);
    }

    /// Writes each part after the previous one was awaited.
    fn read(parts: &[&[u8]]) -> Vec<KeyCode> {
        let (reader, mut writer) = io::pipe().unwrap();
        let mut keyboard = Keyboard(File::from(std::os::fd::OwnedFd::from(reader)));
        let parts: Vec<Vec<u8>> = parts.iter().map(|part| part.to_vec()).collect();
        let writing = std::thread::spawn(move || {
            for part in parts {
                io::Write::write_all(&mut writer, &part).unwrap();
                std::thread::sleep(Duration::from_millis(2));
            }
            writer
        });
        let keys = keyboard.read(Duration::from_secs(10)).unwrap();
        drop(writing.join().unwrap());
        keys.into_iter().map(|key| key.code).collect()
    }

    #[test]
    fn a_key_that_comes_in_parts_is_one() {
        assert_eq!(read(&[b"\x1b", b"[", b"A"]), [KeyCode::Up]);
        assert_eq!(read(&[b"q\x1b[1;", b"5C"]), [KeyCode::Char('q'), KeyCode::Right]);
        assert_eq!(
            read(&["\u{e4}".as_bytes().split_at(1).0, "\u{e4}".as_bytes().split_at(1).1]),
            [KeyCode::Char('\u{e4}')]
        );
        assert_eq!(read(&[b"\x1b"]), [KeyCode::Esc]);
        assert_eq!(read(&[b"\r"]), [KeyCode::Enter]);
    }

    #[test]
    fn a_keyboard_that_is_gone_says_so() {
        let (reader, writer) = io::pipe().unwrap();
        drop(writer);
        let error = Keyboard(File::from(std::os::fd::OwnedFd::from(reader))).read(Duration::from_secs(1)).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
    }

    proptest! {
        /// Wherever a key is split, the reader waits for the rest.
        #[test]
        fn no_part_of_a_key_is_taken_for_one(
            keys in proptest::collection::vec(
                prop_oneof![Just("\x1b[A"), Just("\x1b[15;2~"), Just("\x1bOP"), Just("q"), Just("\u{20ac}"), Just("\r")], 1..6,
            ),
            at in 0_usize..24,
        ) {
            let bytes = keys.concat().into_bytes();
            let (first, second) = bytes.split_at(at.min(bytes.len()));
            if !is_part(first) {
                prop_assert_eq!(codes(&bytes), [codes(first), codes(second)].concat());
            }
        }

        #[test]
        fn no_bytes_are_too_much(bytes: Vec<u8>) {
            prop_assert!(parse(&bytes).len() <= bytes.len());
        }
    }
}
