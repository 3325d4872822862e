//! The error that becalm ended with last, kept for `becalm doctor`: in the state folder of its user, for nobody else, and without what is
//! nobody's business. It is written when all else is over, and that it cannot be is no error.

use std::env;
use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::process;

use becalm_command::looks;
use becalm_linux::{private, trusted};
use becalm_report::LastError;
use jiff::Timestamp;

use crate::command_line;
use crate::discretion::Discretion;
use crate::settings::{are_off, command_shape, user_folder};

/// The file in the folder.
const NAME: &str = "last-error";

/// Texts are cut behind so many characters.
const LONGEST: usize = 2_000;

/// The largest file that is read, in bytes.
const LARGEST: u64 = 64 << 10;

/// The folder of what becalm keeps for its user; `None` without a home.
fn folder() -> Option<PathBuf> {
    let variable = |name| env::var_os(name);
    let folder = user_folder(variable("XDG_STATE_HOME").as_deref(), variable("HOME").as_deref(), ".local/state")?;
    // No home is made, and none is in the first folder of all.
    let base =
        variable("XDG_STATE_HOME").filter(|base| !base.is_empty()).or_else(|| variable("HOME")).map(PathBuf::from)?;
    (base.is_dir() && base.parent().is_some()).then_some(folder)
}

/// Keeps an error in place of the one before, unless that is not wanted: by an option, or as another program started this one and tells
/// of it.
pub fn keep(error: &str) {
    if are_off() || !looks::keeps_errors() {
        return;
    }
    let words: Vec<_> = env::args_os().collect();
    let (shape, values) = command_shape(&command_line(), &words);
    let discretion = Discretion::for_process().and_words(values.iter().map(String::as_str));
    let cut = |text: String| text.chars().take(LONGEST).collect();
    let kept = LastError {
        when: Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        command: cut(shape),
        error: cut(discretion.hide(error)),
    };
    // Nobody is helped by an error about an error.
    let _ = write(&kept);
}

fn write(kept: &LastError) -> Option<()> {
    // Refused where somebody else could have put a link, or put another folder in its place.
    let folder = private::make_folder(&folder()?).ok()?;
    let draft = folder.join(format!("{NAME}.{}", process::id()));
    let mut file = private::create(&draft).ok()?;
    let written = serde_json::to_writer(&mut file, kept).is_ok() && file.write_all(b"\n").is_ok();
    if !written || fs::rename(&draft, folder.join(NAME)).is_err() {
        let _ = fs::remove_file(&draft);
    }
    Some(())
}

/// The error that was kept last. Fails if it is there and cannot be read.
pub fn read() -> Result<Option<LastError>, String> {
    let Some(path) = folder().map(|folder| folder.join(NAME)) else { return Ok(None) };
    let Some(text) = trusted::read(&path, LARGEST).map_err(|error| error.to_string())? else { return Ok(None) };
    serde_json::from_str(&text).map(Some).map_err(|error| format!("it is no error that becalm kept: {error}"))
}
