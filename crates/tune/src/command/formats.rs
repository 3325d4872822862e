//! `becalm tune plan --format`: a plan as files of another program.

use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use becalm_bundle::Draft;
use becalm_command::Exit;
use becalm_linux::{file, folder};
use becalm_units::fault::{self, Context};
use clap::Args;

use crate::Plan;
use crate::format::{ConfigFile, Format, Topology, files};

/// Which files, and where to.
#[derive(Args, Debug)]
pub struct FormatArgs {
    /// Print the plan as config files of tuned, systemd or slurm, which then makes the changes at every boot
    #[arg(long, value_name = "FORMAT", conflicts_with_all = ["json", "run", "full"])]
    format: Option<Format>,

    /// Write these files below this directory, each at its place under /; files that becalm did not write stay
    #[arg(short, long, value_name = "DIR", requires = "format")]
    output: Option<PathBuf>,
}

/// The largest file written by becalm, in bytes.
const LARGEST: u64 = 1 << 20;

/// The first line of every file written by becalm; it identifies them.
const MARK: &str = "# Written by becalm";

impl FormatArgs {
    /// Whether files are wanted at all.
    pub const fn are_wanted(&self) -> bool {
        self.format.is_some()
    }

    /// Writes or prints a plan's files, for the machine below a root. Fails if the machine's topology cannot be read, a foreign file is in the way,
    /// or a file cannot be written.
    pub fn write(&self, plan: &Plan, root: &Path, out: &mut dyn Write) -> fault::Result<Exit> {
        let Some(format) = self.format else { return Ok(Exit::Done) };
        let files = files(format, plan, &Topology::read(root)?);
        let Some(folder) = &self.output else {
            for (number, file) in files.iter().enumerate() {
                let gap = if number > 0 { "\n" } else { "" };
                write!(out, "{gap}==> /{}\n{}", file.path.display(), file.text)?;
            }
            return Ok(Exit::Done);
        };
        // All or none, as far as that can be checked in advance.
        for file in &files {
            let path = folder.join(&file.path);
            match file::read_regular_text(&path, LARGEST) {
                Ok(text) if text.starts_with(MARK) => {}
                Ok(_) => fault::bail!("{} is there and not written by becalm; nothing was written", path.display()),
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) => return Err(error).with_context(|| format!("cannot look at {}", path.display())),
            }
        }
        for file in &files {
            put(folder, file)?;
            writeln!(out, "{}", folder.join(&file.path).display())?;
        }
        Ok(Exit::Done)
    }
}

fn put(folder: &Path, file: &ConfigFile) -> fault::Result<()> {
    let path = folder.join(&file.path);
    let parent = path.parent().unwrap_or(folder);
    folder::make_all(parent).with_context(|| format!("cannot make {}", parent.display()))?;
    let mut draft = Draft::replace(&path)?;
    draft.write_all(file.text.as_bytes()).with_context(|| format!("cannot write {}", path.display()))?;
    Ok(draft.finish()?)
}
