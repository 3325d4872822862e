//! The destination of recordings.

use std::path::{Path, PathBuf};

use becalm_linux::folder;
use becalm_linux::procfs::kernel;
use becalm_units::fault::{self, Context, Result, UsageError};
use clap::Args;

/// The directory of recordings that are given no name.
#[derive(Args, Clone, Default, Debug)]
pub struct FolderArgs {
    /// Directory for recordings without --output, created if missing [default: the current one]
    #[arg(long, value_name = "DIR", conflicts_with = "output")]
    folder: Option<PathBuf>,
}

impl FolderArgs {
    /// The path of a recording: `output`, else the name `HOST-TIME.becalm`, or `HOST-TIME-2.becalm` and so on within the same second. A
    /// node may have another name than its host.
    pub fn place(&self, output: Option<&PathBuf>, node: Option<&str>, root: &Path) -> Result<PathBuf> {
        if let Some(output) = output {
            return Ok(output.clone());
        }
        let folder = self.folder.as_deref().unwrap_or(Path::new(""));
        if self.folder.is_some() {
            folder::make_all(folder).with_context(|| format!("cannot create the directory {}", folder.display()))?;
        }
        let host = || kernel::hostname(root).unwrap_or_else(|_| "localhost".to_owned());
        let node = node.map_or_else(host, str::to_owned);
        let now = jiff::Timestamp::now().strftime("%Y%m%dT%H%M%SZ");
        Ok(free_name(folder, &format!("{node}-{now}")))
    }
}

/// The first unused of these names in a directory.
fn free_name(folder: &Path, stem: &str) -> PathBuf {
    let mut path = folder.join(format!("{stem}.becalm"));
    let mut number = 2_u64;
    while path.symlink_metadata().is_ok() {
        path = folder.join(format!("{stem}-{number}.becalm"));
        number += 1;
    }
    path
}

/// The bundle's writer checks more, and reliably; this check saves the user ten seconds.
pub fn refuse_existing(path: &Path) -> Result<()> {
    if path.as_os_str().is_empty() {
        return Err(UsageError::new("the name of the recording is empty; give one, like -o quiet.becalm").into());
    }
    if path.exists() && !path.is_dir() {
        fault::bail!(
            "cannot store the recording in {}: it exists and is not a directory; give another name",
            path.display()
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recording_without_a_name_lies_in_the_folder() {
        let place = tempfile::tempdir().unwrap();
        let root = Path::new("/");
        let folder = place.path().join("a/b");
        let args = FolderArgs { folder: Some(folder.clone()) };
        let path = args.place(None, Some("n1"), root).unwrap();
        assert!(folder.is_dir() && path.starts_with(&folder), "{path:?}");
        assert!(path.file_name().unwrap().to_str().unwrap().starts_with("n1-2"), "{path:?}");
        let named = PathBuf::from("x.becalm");
        assert_eq!(args.place(Some(&named), None, root).unwrap(), named);
        let path = FolderArgs::default().place(None, Some("n1"), root).unwrap();
        assert_eq!(path.parent(), Some(Path::new("")));
        std::fs::write(place.path().join("file"), "").unwrap();
        let args = FolderArgs { folder: Some(place.path().join("file/x")) };
        assert!(args.place(None, None, root).unwrap_err().to_string().starts_with("cannot create the directory "));
    }

    #[test]
    fn recordings_of_the_same_second_have_names_of_their_own() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["vm-T.becalm", "vm-T-2.becalm", "vm-T-3.becalm"] {
            let path = free_name(folder.path(), "vm-T");
            assert_eq!(path, folder.path().join(name));
            std::fs::create_dir(path).unwrap();
        }
    }
}
