//! The last error of becalm, kept for `becalm doctor`: in the user's state directory, readable only by that user, without private data.
//! Written last; failing to write it is not an error.

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

/// The name of the file.
const NAME: &str = "last-error";

/// The maximum length of texts, in characters.
const LONGEST: usize = 2_000;

/// The maximum size of the file, in bytes.
const LARGEST: u64 = 64 << 10;

/// becalm's state directory of the user; `None` without a home.
fn folder() -> Option<PathBuf> {
    let variable = |name| env::var_os(name);
    let folder = user_folder(variable("XDG_STATE_HOME").as_deref(), variable("HOME").as_deref(), ".local/state")?;
    // Do not create a home, and none in the root directory.
    let base =
        variable("XDG_STATE_HOME").filter(|base| !base.is_empty()).or_else(|| variable("HOME")).map(PathBuf::from)?;
    (base.is_dir() && base.parent().is_some()).then_some(folder)
}

/// Replaces the kept error, unless an option forbids it, or another program started this one and reports its errors.
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
    // An error about an error helps no one.
    let _ = write(&kept);
}

fn write(kept: &LastError) -> Option<()> {
    // Refused if another user could have placed a link or another directory here.
    let folder = private::make_folder(&folder()?).ok()?;
    let draft = folder.join(format!("{NAME}.{}", process::id()));
    let mut file = private::create(&draft).ok()?;
    let written = serde_json::to_writer(&mut file, kept).is_ok() && file.write_all(b"\n").is_ok();
    if !written || fs::rename(&draft, folder.join(NAME)).is_err() {
        let _ = fs::remove_file(&draft);
    }
    Some(())
}

/// The error kept last. Fails if it exists but cannot be read.
pub fn read() -> Result<Option<LastError>, String> {
    let Some(path) = folder().map(|folder| folder.join(NAME)) else { return Ok(None) };
    let Some(text) = trusted::read(&path, LARGEST).map_err(|error| error.to_string())? else { return Ok(None) };
    serde_json::from_str(&text).map(Some).map_err(|error| format!("it is no error that becalm kept: {error}"))
}
