//! The names of a bundle's folders and files.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::BundleError;

/// The ending of a bundle's name.
pub const SUFFIX: &str = ".becalm";

/// The folder of the nodes' documents, which is also what makes a folder a bundle.
pub(super) const RUNS: &str = "runs";

/// The longest name of a node. With `.node=` and `.json.0.draft` around it, a file's name stays below the 255 bytes that
/// file systems allow.
const NODE_NAME_LIMIT: usize = 200;

/// The name that a host's files bear: the host's name, with `_` for each character that could not stand in a file's
/// name or would be taken for syntax by readers of `node=HOST` folders.
#[must_use]
pub fn node_name(host: &str) -> String {
    let name: String = host.chars().map(|c| if is_plain(c) { c } else { '_' }).take(NODE_NAME_LIMIT).collect();
    if name.is_empty() { "localhost".to_owned() } else { name }
}

const fn is_plain(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.')
}

/// Refuses names of nodes that [`node_name`] would not give.
pub(super) fn check_node_name(name: &str) -> Result<(), BundleError> {
    let why = if name.is_empty() {
        "it is empty"
    } else if name.len() > NODE_NAME_LIMIT {
        "it is longer than 200 bytes"
    } else if !name.chars().all(is_plain) {
        "only letters, digits, '-', '_' and '.' may stand in it"
    } else {
        return Ok(());
    };
    Err(BundleError::NodeName { name: name.to_owned(), why })
}

/// `runs/node=HOST.json`.
pub(super) fn document(bundle: &Path, node: &str) -> PathBuf {
    bundle.join(RUNS).join(format!("node={node}.json"))
}

/// The bundle of a document that [`document`] names.
pub(super) fn bundle_of(document: &Path) -> &Path {
    document.parent().and_then(Path::parent).unwrap_or(document)
}

/// The node that a document's file name tells, if it is one.
pub(super) fn node_of_document(file_name: &str) -> Option<&str> {
    file_name.strip_prefix("node=")?.strip_suffix(".json")
}

/// `detours/node=HOST`, `activities/node=HOST`.
pub(super) fn table_folder(bundle: &Path, table: &str, node: &str) -> PathBuf {
    bundle.join(table).join(format!("node={node}"))
}

/// `0000.parquet`.
pub(super) fn segment(number: u32) -> String {
    format!("{number:04}.parquet")
}

/// The number of a segment's file, or nothing for a file that is none.
fn segment_number(file_name: &str) -> Option<u32> {
    let number = file_name.strip_suffix(".parquet")?.parse().ok()?;
    (segment(number) == file_name).then_some(number)
}

/// How many segments a table's folder holds. A missing folder holds none.
///
/// # Errors
/// If the folder cannot be read, or a segment is missing among them: the detours after it would have wrong numbers.
pub(super) fn count_segments(folder: &Path) -> Result<u32, BundleError> {
    let entries = match fs::read_dir(folder) {
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => return Ok(0),
        entries => entries.map_err(BundleError::io("read the folder", folder))?,
    };
    let mut numbers = Vec::new();
    for entry in entries {
        let name = entry.map_err(BundleError::io("read the folder", folder))?.file_name();
        numbers.extend(name.to_str().and_then(segment_number));
    }
    numbers.sort_unstable();
    for (expected, &found) in (0..).zip(&numbers) {
        if found != expected {
            let [path, witness] = [expected, found].map(|number| folder.join(segment(number)));
            return Err(BundleError::Missing { path, witness });
        }
    }
    Ok(u32::try_from(numbers.len()).expect("the numbers are different and fit u32"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_host_gets_a_name_that_passes() {
        for (host, name) in [
            ("node-01.cluster_a", "node-01.cluster_a"),
            ("", "localhost"),
            ("../etc", ".._etc"),
            ("a b=c", "a_b_c"),
            ("h\u{e4}user", "h_user"),
        ] {
            assert_eq!(node_name(host), name);
            check_node_name(name).unwrap();
        }
        check_node_name(&node_name(&"x".repeat(1000))).unwrap();
    }

    #[test]
    fn refuses_names_that_are_no_file_names() {
        for (name, why) in [("", "empty"), ("a/b", "only letters"), ("a\0", "only letters"), ("a=b", "only letters")] {
            let error = check_node_name(name).unwrap_err().to_string();
            assert!(error.contains(why), "{error}");
        }
        assert!(check_node_name(&"x".repeat(201)).is_err());
    }

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
