//! The functions of becalm's catalogue of fixes, in the kernel of a guest.

use std::collections::BTreeSet;

use becalm_model::remedy::Function;

use crate::guests::{Lab, tell, text};

/// The kernels that have each function, as the catalogue stores them: `ipi_mb 5.10 6.1`, `gc_worker 6.1/module`.
const SYMBOLS: &str = include_str!("../../../crates/model/src/remedy/functions/symbols.txt");

#[test]
fn the_kernel_has_the_functions_of_the_catalogue() {
    let Some(lab) = Lab::open() else { return };
    let outcome = lab.run("functions");
    let functions = text(&outcome, "functions");
    // The compiler appends to some: `purge_vmap_node.isra.0`.
    let functions: BTreeSet<&str> = functions.lines().filter_map(|name| name.split('.').next()).collect();
    let release = text(&outcome, "release");
    let version = release.split('.').take(2).collect::<Vec<_>>().join(".");
    let stored: BTreeSet<&str> = SYMBOLS
        .lines()
        .filter(|line| line.split(' ').skip(1).any(|kernel| kernel == version))
        .filter_map(|line| line.split(' ').next())
        .collect();
    if stored.is_empty() {
        tell(&format!("functions: the catalogue stores no functions of Linux {version}"));
        return;
    }
    let missing: Vec<_> = stored.difference(&functions).collect();
    assert!(missing.is_empty(), "Linux {release} lacks {missing:?}");
    // The guest has hardly any modules, so it has only what is built in.
    let rows = Function::all().filter(|row| row.names.iter().any(|name| functions.contains(name))).count();
    assert!(rows >= 60, "{rows} of the catalogue's functions are in Linux {release}");
    tell(&format!("functions: {rows} of {} are built into Linux {release}", Function::all().count()));
}
