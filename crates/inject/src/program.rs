//! Checks whether a library can be preloaded into a program, and refuses before the program runs if not.
//!
//! The dynamic linker reports nothing if a program has none, and skips a wrong library with a line on standard error: the noise would just be
//! missing.

use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use becalm_linux::file::open_regular;
use becalm_units::fault::{Fault, Wording};

/// Reasons why no library can be preloaded into a program.
#[derive(Debug, thiserror::Error)]
pub enum ProgramError {
    /// There is no such program.
    #[error("cannot find the command '{name}' in any directory of PATH")]
    NotFound {
        /// The name of the command, as it was given.
        name: String,
    },
    /// The program cannot be inspected.
    #[error("cannot read {path}: {1}", path = .0.display())]
    Read(PathBuf, io::Error),
    /// The program has no dynamic linker to load the library.
    #[error("no library can be preloaded into {}: it is linked statically", path.display())]
    Static {
        /// The path of the program.
        path: PathBuf,
    },
    /// The program cannot or must not load the library, for this reason.
    #[error("no library can be preloaded into {path}: {1}", path = .0.display())]
    Refused(PathBuf, &'static str),
}

impl Fault for ProgramError {
    fn is_usage(&self) -> bool {
        true
    }

    fn hint(&self) -> Option<Wording> {
        let help = || Wording::new("; noise by pre-emption, without {signal!}, reaches every program");
        matches!(self, Self::Static { .. }).then(help)
    }
}

/// The maximum depth of scripts that interpret each other.
const SCRIPTS: usize = 4;

/// The maximum number of bytes to read at once from a program.
const LIMIT: usize = 1 << 16;

/// Checks the program that a command names, or the interpreter if it is a script.
pub fn check(name: &str) -> Result<PathBuf, ProgramError> {
    let mut path = find(name)?;
    for _ in 0..SCRIPTS {
        let read = |cause| ProgramError::Read(path.clone(), cause);
        let refused = |why| ProgramError::Refused(path.clone(), why);
        // A pipe in place of an interpreter would block forever.
        let mut file = open_regular(&path).map_err(read)?;
        let meta = file.metadata().map_err(read)?;
        let mut head = Vec::new();
        Read::by_ref(&mut file).take(LIMIT as u64).read_to_end(&mut head).map_err(read)?;
        if let Some(line) = head.strip_prefix(b"#!") {
            let line = line.split(|byte| *byte == b'\n').next().unwrap_or_default();
            let interpreter = String::from_utf8_lossy(line);
            let mut words = interpreter.split_ascii_whitespace();
            let program = words.next().ok_or_else(|| refused("it is a script that names no interpreter"))?;
            path = match program.rsplit('/').next() {
                // env searches PATH for its command.
                Some("env") => {
                    find(words.find(|word| !word.starts_with('-') && !word.contains('=')).unwrap_or(program))?
                }
                _ => PathBuf::from(program),
            };
            continue;
        }
        let interpreter = interpreter(&head, |at, length| {
            let mut bytes = vec![0; length];
            file.seek(SeekFrom::Start(at))?;
            file.read_exact(&mut bytes)?;
            Ok(bytes)
        });
        let Some(linker) = interpreter.map_err(refused)? else {
            return Err(ProgramError::Static { path });
        };
        if meta.mode() & 0o6000 != 0 && !gives_our_rights(&meta) {
            return Err(refused("it runs with the rights of another user"));
        }
        if linker.windows(4).any(|part| part == b"musl") {
            return Err(refused("it uses another C library than glibc"));
        }
        return Ok(path);
    }
    Err(ProgramError::Refused(path, "its interpreters are scripts of scripts"))
}

/// Whether a set-id file gives the same rights that this process has.
fn gives_our_rights(meta: &std::fs::Metadata) -> bool {
    let same = |bit: u32, theirs: u32, ours: u32| meta.mode() & bit == 0 || theirs == ours;
    let (user, group) = becalm_linux::signals::effective_ids();
    same(0o4000, meta.uid(), user) && same(0o2000, meta.gid(), group)
}

/// Finds a command as the shell does.
fn find(name: &str) -> Result<PathBuf, ProgramError> {
    if name.contains('/') {
        return Ok(PathBuf::from(name));
    }
    let path = std::env::var_os("PATH").unwrap_or_else(|| "/usr/local/bin:/usr/bin:/bin".into());
    let is_program = |path: &Path| path.metadata().is_ok_and(|meta| meta.is_file() && meta.mode() & 0o111 != 0);
    let mut candidates = std::env::split_paths(&path).map(|folder| folder.join(name));
    candidates.find(|path| is_program(path)).ok_or_else(|| ProgramError::NotFound { name: name.to_owned() })
}

/// The dynamic linker that a program for this kind of machine requests, given its first bytes and a function to read others; `None` if it requests
/// none.
fn interpreter(
    head: &[u8],
    mut read: impl FnMut(u64, usize) -> io::Result<Vec<u8>>,
) -> Result<Option<Vec<u8>>, &'static str> {
    const NO_PROGRAM: &str = "it is no program of this kind of machine";
    const INTERP: u32 = 3;
    // ELF, 64 bits, in this machine's byte order. Offsets as in elf(5).
    let order = if cfg!(target_endian = "little") { 1 } else { 2 };
    if head.get(..6) != Some(&[0x7f, b'E', b'L', b'F', 2, order]) {
        return Err(NO_PROGRAM);
    }
    let half = |at: usize| Some(u16::from_ne_bytes(head.get(at..at + 2)?.try_into().ok()?));
    let long = |bytes: &[u8], at: usize| Some(u64::from_ne_bytes(bytes.get(at..at + 8)?.try_into().ok()?));
    let machine = match () {
        () if cfg!(target_arch = "x86_64") => 62,
        () if cfg!(target_arch = "aarch64") => 183,
        () => return Err("there is no library for this kind of processor"),
    };
    if half(18) != Some(machine) {
        return Err(NO_PROGRAM);
    }
    let (Some(table), Some(size), Some(count)) = (long(head, 32), half(54), half(56)) else { return Err(NO_PROGRAM) };
    if size < 56 {
        return Err(NO_PROGRAM);
    }
    let length = usize::from(size) * usize::from(count);
    // The kernel also refuses a longer table.
    if length > LIMIT {
        return Err(NO_PROGRAM);
    }
    let headers = read(table, length).map_err(|_| NO_PROGRAM)?;
    for header in headers.chunks_exact(usize::from(size)) {
        let kind = u32::from_ne_bytes([header[0], header[1], header[2], header[3]]);
        if kind == INTERP {
            let (Some(at), Some(length)) = (long(header, 8), long(header, 32)) else { return Err(NO_PROGRAM) };
            let length = usize::try_from(length).ok().filter(|length| *length <= LIMIT).ok_or(NO_PROGRAM)?;
            return read(at, length).map(Some).map_err(|_| NO_PROGRAM);
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reader(bytes: &[u8]) -> impl FnMut(u64, usize) -> io::Result<Vec<u8>> + '_ {
        |at, length| {
            let at = usize::try_from(at).unwrap_or(usize::MAX);
            let found = at.checked_add(length).and_then(|end| bytes.get(at..end));
            found.map(<[u8]>::to_vec).ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
        }
    }

    #[test]
    fn programs_of_the_system_are_fine() {
        let shell = check("sh").unwrap();
        assert!(shell.is_absolute());
        // This very test is one, and a script is what interprets it.
        let this = std::env::current_exe().unwrap();
        assert_eq!(check(this.to_str().unwrap()).unwrap(), this);
        let folder = std::env::temp_dir().join(format!("becalm-program-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let script = |name: &str, text: &str| {
            std::fs::write(folder.join(name), text).unwrap();
            folder.join(name).to_str().unwrap().to_owned()
        };
        assert_eq!(check(&script("a", "#!/bin/sh -e\nexit\n")).unwrap(), Path::new("/bin/sh"));
        assert_eq!(check(&script("b", "#! /usr/bin/env -S A=b sh\n")).unwrap(), shell);
        for (name, text, why) in [
            ("c", "#!\n", "names no interpreter"),
            ("d", "hello", "no program of this kind"),
            ("e", "\x7fELF", "no program of this kind"),
        ] {
            let error = check(&script(name, text)).unwrap_err().to_string();
            assert!(error.contains(why), "{error}");
        }
        let piped = script("g", &format!("#!{}\n", folder.join("pipe").display()));
        assert!(std::process::Command::new("mkfifo").arg(folder.join("pipe")).status().unwrap().success());
        assert!(check(&piped).unwrap_err().to_string().contains("it is a pipe"));
        let own = script("f", "");
        std::fs::write(&own, format!("#!{own}\n")).unwrap();
        assert!(check(&own).unwrap_err().to_string().contains("scripts of scripts"));
        std::fs::remove_dir_all(folder).unwrap();
        assert!(check("/nowhere/at/all").unwrap_err().to_string().contains("cannot read /nowhere/at/all"));
        assert!(check("no-such-command-anywhere").unwrap_err().to_string().contains("PATH"));
    }

    #[test]
    fn no_more_is_read_than_the_kernel_would() {
        let mut program = std::fs::read("/proc/self/exe").unwrap();
        program.truncate(LIMIT);
        // A table of 65,535 entries of 65,535 bytes.
        program[54..58].fill(0xff);
        let refused = interpreter(&program, |_, length| {
            assert!(length <= LIMIT, "{length} bytes were to be read");
            Ok(vec![0; length])
        });
        assert!(refused.unwrap_err().contains("no program of this kind"));
    }

    proptest::proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes: Vec<u8>, at in 0_usize..64, value: u8) {
            let mut program = b"\x7fELF\x02\x01".to_vec();
            program.extend(&bytes);
            let _ = interpreter(&program, reader(&program));
            let mut this = std::fs::read("/proc/self/exe").unwrap();
            this.truncate(4096);
            this[at] = value;
            let _ = interpreter(&this, reader(&this));
        }
    }
}
