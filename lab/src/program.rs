//! Programs of this machine with their shared libraries, which a guest lacks.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::LabError;

/// The shared libraries of a program and their loader, by the absolute paths that the program uses; empty for a static program. Fails if
/// they cannot be listed, or one of them is missing on this machine.
pub(crate) fn libraries(program: &Path) -> Result<Vec<PathBuf>, LabError> {
    let output = Command::new("ldd").arg(program).output().map_err(LabError::start("ldd", "libc-bin"))?;
    // ldd fails for a static program, which is a valid result.
    parse(&String::from_utf8_lossy(&output.stdout)).map_err(|library| LabError::lacks(program.display(), library))
}

/// Parses the output of `ldd`: `NAME => PATH (ADDRESS)` for libraries, `PATH (ADDRESS)` for the loader, and no path for the kernel's own.
/// Fails with the name of a missing library.
fn parse(text: &str) -> Result<Vec<PathBuf>, &str> {
    let mut libraries = Vec::new();
    for line in text.lines() {
        let (name, place) = line.trim().split_once(" => ").unwrap_or(("", line.trim()));
        if place == "not found" {
            return Err(name);
        }
        if let Some((path, _)) = place.split_once(" (")
            && path.starts_with('/')
        {
            libraries.push(PathBuf::from(path));
        }
    }
    Ok(libraries)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_and_loader_are_read() {
        let text = "\tlinux-vdso.so.1 (0x00007ffd5a5f2000)\n\
                    \tlibtracefs.so.1 => /lib/x86_64-linux-gnu/libtracefs.so.1 (0x00007f0e2d1b8000)\n\
                    \t/lib64/ld-linux-x86-64.so.2 (0x00007f0e2d5ef000)\n";
        let paths = ["/lib/x86_64-linux-gnu/libtracefs.so.1", "/lib64/ld-linux-x86-64.so.2"].map(PathBuf::from);
        assert_eq!(parse(text).unwrap(), paths);
        assert_eq!(parse("\tstatically linked\n").unwrap(), [""; 0].map(PathBuf::from));
        assert_eq!(parse("\tlibtracefs.so.1 => not found\n"), Err("libtracefs.so.1"));
    }
}
