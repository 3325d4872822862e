//! Directories of files from inputs.

use std::fs;
use std::path::{Component, Path, PathBuf};
use std::sync::OnceLock;

use serde_json::Value;
use tempfile::TempDir;

/// A directory of this process, in memory by TMPDIR; see .ci/fuzz, which also removes it, because libFuzzer ends a process abruptly. Panics
/// if it cannot be created.
pub fn scratch() -> &'static Path {
    static SCRATCH: OnceLock<TempDir> = OnceLock::new();
    SCRATCH.get_or_init(|| tempfile::tempdir().expect("a directory for this process")).path()
}

/// The path of a file in a directory; `None` for names that lead outside or are invalid.
pub fn place(folder: &Path, name: &str) -> Option<PathBuf> {
    let relative = Path::new(name.trim_start_matches('/'));
    let plain = relative.components().all(|part| matches!(part, Component::Normal(part) if part.len() < 256));
    let usable = plain && !relative.as_os_str().is_empty() && name.len() < 1_000 && !name.contains('\0');
    usable.then(|| folder.join(relative))
}

/// Writes a file in a directory, creating parent directories. Skips files that cannot be written because a directory has their name.
pub fn write(folder: &Path, name: &str, bytes: &[u8]) {
    let Some(path) = place(folder, name) else { return };
    if let Some(parent) = path.parent() {
        let _ = fs::create_dir_all(parent);
    }
    let _ = fs::write(path, bytes);
}

/// The contents of a file for a JSON value: a text unchanged, anything else as JSON.
pub fn contents(value: &Value) -> Vec<u8> {
    match value {
        Value::String(text) => text.clone().into_bytes(),
        other => other.to_string().into_bytes(),
    }
}

/// Every file below a directory with its relative name, sorted. Panics if it cannot be read.
pub fn files(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(&next).expect("our own directory") {
            let path = entry.expect("our own directory").path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let name = path.strip_prefix(folder).expect("it is below").to_str().expect("our own name").to_owned();
            found.push((name, fs::read(&path).expect("our own file")));
        }
    }
    found.sort();
    found
}
