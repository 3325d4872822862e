//! Distributions that were imported, one document a node and no tables.

use std::path::{Path, PathBuf};

use becalm_model::distribution::DistributionDoc;

use super::{BundleError, document, nodes, place};

/// Opens the bundle at `path`, or at `path` with [`SUFFIX`](crate::SUFFIX), and reads the distributions of all of its nodes, or of `node`.
/// Gives them with the folder in which they were found.
///
/// # Errors
/// If there is no bundle, it holds something else, or no such node, and if a document is damaged or of another version.
pub fn load(path: &Path, node: Option<&str>) -> Result<(PathBuf, Vec<DistributionDoc>), BundleError> {
    let (bundle, documents) = match node {
        Some(_) => {
            let node = nodes::open_node(path, node)?;
            (node.bundle, vec![(node.name, node.document)])
        }
        None => {
            let (bundle, documents) = nodes::open(path)?;
            (bundle, documents.into_iter().collect())
        }
    };
    let docs = documents.iter().map(|(node, path)| document::read(path, node)).collect::<Result<Vec<_>, _>>()?;
    Ok((bundle, docs))
}

/// Writes a node's distribution: makes the bundle, or joins the one of other nodes.
///
/// # Errors
/// If the place is taken, its parent is missing, the document is not valid, and if the system refuses. The place is then left as it was.
pub fn store(path: &Path, doc: &DistributionDoc) -> Result<(), BundleError> {
    place::create(path, doc)?.keep();
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use becalm_model::distribution::{Quantity, SCHEMA, Series};

    use super::*;
    use crate::{Bundle, Contents};

    fn doc(node: &str) -> DistributionDoc {
        DistributionDoc {
            schema: SCHEMA.to_owned(),
            node: node.to_owned(),
            program: "becalm".to_owned(),
            format: "hiccups".to_owned(),
            tool: "hiccups".to_owned(),
            command: None,
            kernel: None,
            begun: None,
            ended: None,
            quantity: Quantity::Stolen,
            loop_subtracted: Some(false),
            series: vec![Series { name: "CPU 0".to_owned(), count: Some(3), ..Series::default() }],
            warnings: Vec::new(),
        }
    }

    #[test]
    fn what_is_stored_is_read_and_is_no_recording() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("theirs.becalm");
        store(&path, &doc("n1")).unwrap();
        store(&path, &doc("n0")).unwrap();
        assert!(store(&path, &doc("n1")).is_err());
        assert_eq!(load(&folder.path().join("theirs"), None).unwrap().1, [doc("n0"), doc("n1")]);
        assert_eq!(load(&path, Some("n1")).unwrap().1, [doc("n1")]);
        assert!(load(&path, Some("n2")).is_err());
        assert_eq!(Contents::read(&path).unwrap(), Contents::Distribution);
        let error = Bundle::open(&path).unwrap_err().to_string();
        assert!(error.contains("holds a distribution of lengths that another program measured"), "{error}");
        let file = path.join("runs/node=n0.json");
        let text = fs::read_to_string(&file).unwrap();
        fs::write(&file, text.replace("\"count\": 3", "\"count\": 3, \"max_ns\": -3")).unwrap();
        assert!(load(&path, None).unwrap_err().to_string().contains("a time is negative"));
    }
}
