//! The network option of a command: a preset, parameters, or the file from `becalm-mpi network`.

use std::path::Path;

use becalm_linux::file::read_regular_text;
use becalm_model::network::SCHEMA;
use becalm_scale::network::Network;
use becalm_units::printable;
use serde_json::Value;

/// The maximum size of such a file in bytes; it has a few hundred.
const LONGEST: u64 = 1 << 16;

/// Parses the option. A text that is neither a preset nor contains parameters is a path if there is a file. Fails if it is none of these,
/// or the file is not such a document.
pub fn network(text: &str) -> Result<Network, String> {
    match text.parse::<Network>() {
        Err(_) if Path::new(text).exists() => {
            from_file(Path::new(text)).map_err(|why| format!("{}: {why}", printable(text)))
        }
        parsed => parsed.map_err(|error| error.to_string()),
    }
}

fn from_file(path: &Path) -> Result<Network, String> {
    let text = read_regular_text(path, LONGEST).map_err(|error| error.to_string())?;
    let document: Value = serde_json::from_str(&text)
        .map_err(|error| format!("not a document of becalm-mpi network: {}", printable(&error.to_string())))?;
    // The other fields describe the measurement.
    let field = |name: &str| document.get(name).and_then(Value::as_str).unwrap_or_default();
    if field("schema") != SCHEMA {
        return Err(format!("its schema is '{}', not {SCHEMA}", printable(field("schema"))));
    }
    let network = field("network").parse::<Network>();
    network.map_err(|error| printable(&error.to_string()).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_measured_network_is_read_from_its_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("net.json");
        let read = |text: &str| {
            std::fs::write(&path, text).unwrap();
            network(path.to_str().unwrap())
        };
        let good = r#"{"schema":"becalm.network/1","network":"L=1us,o=200ns,g=50ns,G=0.1ns,S=8192","ranks":2}"#;
        assert_eq!(read(good), Ok("L=1us,o=200ns,g=50ns,G=0.1ns,S=8Ki".parse().unwrap()));
        for (text, why) in [
            ("{", "not a document"),
            (r#"{"schema":"becalm.run/1","network":"bgl"}"#, "its schema is"),
            (r#"{"schema":"becalm.network/1","network":"L=1us"}"#, "is missing"),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.contains(why), "{error}");
        }
        assert!(network("no-such-file").unwrap_err().contains("no preset"));
        assert_eq!(network("bgl"), Ok("bgl".parse().unwrap()));
    }
}
