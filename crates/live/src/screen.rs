//! The terminal while it shows the view, and its previous state.
//!
//! It is written to through a separate descriptor, because the main thread keeps standard output locked.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::os::fd::AsFd;
use std::panic;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::cursor::{Hide, Show};
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{
    Clear, ClearType, EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};

/// The terminal that ratatui draws on, through a buffered file.
pub type Drawing = Terminal<CrosstermBackend<BufWriter<File>>>;

/// The terminal in use by the view. Dropping it restores the terminal.
pub struct Screen {
    /// The terminal to draw on.
    pub drawing: Drawing,
    /// Whether the view uses the terminal; a panic resets that.
    taken: Arc<AtomicBool>,
}

impl Screen {
    /// Takes the terminal: raw mode without echo, on the alternate screen. A panic of any thread restores it as well.
    pub fn take() -> io::Result<Self> {
        let taken = Arc::new(AtomicBool::new(false));
        restore_at_panic(Arc::clone(&taken));
        let mut screen = Self { drawing: drawing()?, taken };
        screen.enter()?;
        Ok(screen)
    }

    /// Takes the terminal again.
    pub fn enter(&mut self) -> io::Result<()> {
        self.taken.store(true, Ordering::SeqCst);
        enable_raw_mode()?;
        execute!(self.drawing.backend_mut(), EnterAlternateScreen, Hide)?;
        self.wipe()
    }

    /// Clears the terminal, to redraw everything.
    pub fn wipe(&mut self) -> io::Result<()> {
        // `Terminal::clear` would ask the terminal for its cursor through the locked standard output.
        execute!(self.drawing.backend_mut(), Clear(ClearType::All))?;
        self.drawing = drawing()?;
        Ok(())
    }

    /// Restores the terminal for a while.
    pub fn leave(&mut self) {
        restore(&self.taken);
    }

    /// Whether the view uses it: a panic elsewhere restores it.
    pub fn is_taken(&self) -> bool {
        self.taken.load(Ordering::SeqCst)
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        restore(&self.taken);
    }
}

/// The terminal to draw on, with nothing drawn yet.
fn drawing() -> io::Result<Drawing> {
    Terminal::new(CrosstermBackend::new(BufWriter::new(output()?)))
}

/// Standard output, bypassing its lock.
pub fn output() -> io::Result<File> {
    Ok(File::from(io::stdout().as_fd().try_clone_to_owned()?))
}

/// Restores the terminal if it is in use. A terminal that is gone needs no restoring.
fn restore(taken: &AtomicBool) {
    if !taken.swap(false, Ordering::SeqCst) {
        return;
    }
    let _ = disable_raw_mode();
    if let Ok(mut output) = output() {
        let _ = execute!(output, LeaveAlternateScreen, Show);
        let _ = output.flush();
    }
}

/// Restores the terminal before a panic's message is printed, to keep it readable.
fn restore_at_panic(taken: Arc<AtomicBool>) {
    let before = panic::take_hook();
    panic::set_hook(Box::new(move |panic| {
        restore(&taken);
        before(panic);
    }));
}

#[cfg(test)]
mod tests {
    use std::env;
    use std::process::{Command, Stdio};
    use std::thread;

    use becalm_testing::{Need, machine_has};

    use super::*;

    /// Run by the test below, on a separate terminal.
    #[test]
    #[ignore = "takes the terminal that the tests run on"]
    fn a_thread_panics_while_the_terminal_is_taken() {
        let screen = Screen::take().unwrap();
        assert!(screen.is_taken());
        thread::spawn(|| panic!("the reason")).join().unwrap_err();
        assert!(!screen.is_taken());
    }

    /// The message of a panic is on the normal screen, and line editing and echo work again.
    #[test]
    fn a_panic_gives_the_terminal_back() {
        if !machine_has(&[Need::Program("script")]) {
            return;
        }
        let program = env::current_exe().unwrap();
        let test = "screen::tests::a_thread_panics_while_the_terminal_is_taken";
        let line = format!("{} --exact {test} --ignored --nocapture; stty -a", program.display());
        let mut script = Command::new("script");
        script.args(["-qec", &line, "/dev/null"]).env("TERM", "xterm").stdin(Stdio::null());
        let output = script.output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).replace("\r\n", " ");
        let place = |what: &str| text.find(what).unwrap_or_else(|| panic!("no {what:?} in {text:?}"));
        let taken = place("\u{1b}[?1049h");
        let given_back = place("\u{1b}[?1049l");
        assert!(taken < given_back && given_back < place("the reason"), "{text:?}");
        assert!(place("\u{1b}[?25h") < place("the reason"), "the cursor shows again: {text:?}");
        for setting in [" icanon", " echo ", " isig", " opost"] {
            place(setting);
        }
        place("1 passed");
    }
}
