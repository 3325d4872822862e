//! The names of nodes in documents and file names.

/// The longest name of a node, in bytes. With `.node=` and `.json.0.draft` added, a file name stays below the limit of 255 bytes.
const LONGEST: usize = 200;

/// The name in a host's files: the host's name with `_` for each character that is invalid in a file name, or that readers of `node=HOST` directories
/// would parse as syntax.
pub fn node_name(host: &str) -> String {
    let name: String = host.chars().map(|c| if is_plain(c) { c } else { '_' }).take(LONGEST).collect();
    if name.is_empty() { "localhost".to_owned() } else { name }
}

const fn is_plain(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.')
}

/// Refuses node names that [`node_name`] would not return.
pub fn check_node_name(name: &str) -> Result<(), &'static str> {
    if name.is_empty() {
        Err("it is empty")
    } else if name.len() > LONGEST {
        Err("it is longer than 200 bytes")
    } else if !name.chars().all(is_plain) {
        Err("it may hold only letters, digits, '-', '_' and '.'")
    } else {
        Ok(())
    }
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
            let error = check_node_name(name).unwrap_err();
            assert!(error.contains(why), "{error}");
        }
        assert!(check_node_name(&"x".repeat(201)).is_err());
    }
}
