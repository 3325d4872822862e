//! The names of a bundle's directories and files.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::BundleError;

/// The suffix of a bundle's name.
pub const SUFFIX: &str = ".becalm";

/// The directory of the nodes' documents; its presence makes a directory a bundle.
pub(super) const RUNS: &str = "runs";

/// Refuses node names that [`becalm_model::node_name`] would not return.
pub(super) fn check_node_name(name: &str) -> Result<(), BundleError> {
    let error = |why| BundleError::Other(format!("'{name}' cannot be the name of a node: {why}"));
    becalm_model::check_node_name(name).map_err(error)
}

/// The file of a node's document, `runs/node=HOST.json`.
pub(super) fn document(bundle: &Path, node: &str) -> PathBuf {
    bundle.join(RUNS).join(format!("node={node}.json"))
}

/// The bundle of a document with a path from [`document`].
pub(super) fn bundle_of(document: &Path) -> &Path {
    document.parent().and_then(Path::parent).unwrap_or(document)
}

/// The node in the file name of a document; `None` for other files.
pub(super) fn node_of_document(file_name: &str) -> Option<&str> {
    file_name.strip_prefix("node=")?.strip_suffix(".json")
}

/// The directory of a node's segments of a table: `detours/node=HOST`, `activities/node=HOST`.
pub(super) fn table_folder(bundle: &Path, table: &str, node: &str) -> PathBuf {
    bundle.join(table).join(format!("node={node}"))
}

/// The name of a segment's file, numbered from 0: `0000.parquet`.
pub(super) fn segment(number: u32) -> String {
    format!("{number:04}.parquet")
}

/// The number of a segment's file; `None` for other files.
fn segment_number(file_name: &str) -> Option<u32> {
    let number = file_name.strip_suffix(".parquet")?.parse().ok()?;
    (segment(number) == file_name).then_some(number)
}

/// The number of segments in a table's directory, 0 if there is no directory. Fails if the directory cannot be read, or a segment is missing in
/// between: the detours after it would have wrong numbers.
pub(super) fn count_segments(folder: &Path) -> Result<u32, BundleError> {
    let entries = match fs::read_dir(folder) {
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => return Ok(0),
        entries => entries.map_err(BundleError::io("read the directory", folder))?,
    };
    let mut numbers = Vec::new();
    for entry in entries {
        let name = entry.map_err(BundleError::io("read the directory", folder))?.file_name();
        numbers.extend(name.to_str().and_then(segment_number));
    }
    numbers.sort_unstable();
    for (expected, &found) in (0..).zip(&numbers) {
        if found != expected {
            let [path, witness] = [expected, found].map(|number| folder.join(segment(number)));
            return Err(BundleError::missing(&path, &witness));
        }
    }
    Ok(u32::try_from(numbers.len()).expect("the numbers are different and fit u32"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_canonical_names_are_segments() {
        for (name, number) in [
            ("0000.parquet", Some(0)),
            ("9999.parquet", Some(9_999)),
            ("10000.parquet", Some(10_000)),
            ("00001.parquet", None),
            ("+001.parquet", None),
            (".0001.parquet", None),
            ("0001.parquet.draft", None),
        ] {
            assert_eq!(segment_number(name), number, "{name}");
        }
    }
}
