//! The terminal while the view is on it, and as it was before.
//!
//! It is written to through a descriptor of its own: the main thread holds standard output locked.

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

/// The terminal that ratatui draws on, by way of a buffered file.
pub type Drawing = Terminal<CrosstermBackend<BufWriter<File>>>;

/// The terminal, taken. Dropping it gives the terminal back.
pub struct Screen {
    /// What is drawn on the terminal.
    pub drawing: Drawing,
    /// Whether the terminal is the view's; a panic changes that.
    taken: Arc<AtomicBool>,
}

impl Screen {
    /// Takes the terminal: keys come at once and unseen, and the screen is another one than before. Also after a panic,
    /// of whichever thread, it is given back.
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

    /// Clears the terminal, so that everything is drawn again.
    pub fn wipe(&mut self) -> io::Result<()> {
        // Not by `Terminal::clear`, which asks the terminal where its cursor is, through the locked standard output.
        execute!(self.drawing.backend_mut(), Clear(ClearType::All))?;
        self.drawing = drawing()?;
        Ok(())
    }

    /// Gives the terminal back for a while.
    pub fn leave(&mut self) {
        restore(&self.taken);
    }

    /// Whether it is the view's: a panic elsewhere gives it back.
    pub fn is_taken(&self) -> bool {
        self.taken.load(Ordering::SeqCst)
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        restore(&self.taken);
    }
}

/// Makes the terminal that is drawn on, with nothing drawn yet.
fn drawing() -> io::Result<Drawing> {
    Terminal::new(CrosstermBackend::new(BufWriter::new(output()?)))
}

/// Standard output, beside the lock on it.
pub fn output() -> io::Result<File> {
    Ok(File::from(io::stdout().as_fd().try_clone_to_owned()?))
}

/// Gives the terminal back, if it is taken. A terminal that is gone need not be restored.
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

/// Before a panic's message is printed, the terminal is restored, so that it can be read.
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

    /// Run by the test below, on a terminal of its own.
    #[test]
    #[ignore = "takes the terminal that the tests run on"]
    fn a_thread_panics_while_the_terminal_is_taken() {
        let screen = Screen::take().unwrap();
        assert!(screen.is_taken());
        thread::spawn(|| panic!("the reason")).join().unwrap_err();
        assert!(!screen.is_taken());
    }

    /// The message of a panic stands on the screen that stays, and lines are edited and echoed again.
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
