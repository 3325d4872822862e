//! The output of a becalm process started by another one.

use std::io::{self, Read};
use std::thread::{self, JoinHandle};

/// Reads a child's output in a thread, while the caller waits for the child: without a reader, the child would block forever.
pub fn reader(from: Option<impl Read + Send + 'static>) -> Option<JoinHandle<io::Result<String>>> {
    let mut from = from?;
    Some(thread::spawn(move || {
        let mut text = Vec::new();
        from.read_to_end(&mut text)?;
        Ok(String::from_utf8_lossy(&text).into_owned())
    }))
}

/// The complete output; empty without a reader. Fails if it cannot be read.
pub fn text(reader: Option<JoinHandle<io::Result<String>>>) -> io::Result<String> {
    match reader.map(JoinHandle::join) {
        Some(Ok(read)) => read,
        _ => Ok(String::new()),
    }
}

/// The last line of messages, without the program's name; `None` if there is none.
pub fn last_words(said: &str) -> Option<&str> {
    let last = said.lines().rev().map(str::trim).find(|line| !line.is_empty())?;
    Some(last.strip_prefix("becalm: ").unwrap_or(last))
}

#[cfg(test)]
mod tests {
    use super::last_words;

    #[test]
    fn the_last_words_say_why() {
        assert_eq!(last_words("becalm: 1\nbecalm: cannot set the class rr:80\n\n"), Some("cannot set the class rr:80"));
        assert_eq!(last_words(" \n"), None);
    }
}
