//! A machine as a tree of kernel files: four CPUs, with arbitrary contents from firmware and users.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::sync::LazyLock;

use serde_json::{Map, Value};

use crate::tree;

/// The files by path.
pub static MACHINE: LazyLock<Value> = LazyLock::new(|| {
    // Files that exist once.
    let mut files: Map<String, Value> = serde_json::from_str(include_str!("machine.json")).expect("texts by path");
    let mut add = |path: String, text: &str| drop(files.insert(path, text.into()));
    for cpu in 0..4 {
        let folder = format!("/sys/devices/system/cpu/cpu{cpu}");
        add(format!("{folder}/topology/thread_siblings_list"), ["0,2\n", "1,3\n"][cpu % 2]);
        add(format!("{folder}/topology/physical_package_id"), "0\n");
        add(format!("{folder}/cpufreq/scaling_available_governors"), "performance powersave\n");
        add(format!("{folder}/cpufreq/scaling_governor"), "powersave\n");
        add(format!("{folder}/cpufreq/scaling_driver"), "intel_pstate\n");
        add(format!("{folder}/cpufreq/related_cpus"), &format!("{cpu}\n"));
        add(format!("{folder}/cpuidle/state1/name"), "C6\n");
        add(format!("{folder}/cpuidle/state1/latency"), "133\n");
        add(format!("{folder}/cpuidle/state1/disable"), "0\n");
        if cpu > 0 {
            add(format!("{folder}/online"), "1\n");
        }
    }
    files.into()
});

/// Writes the machine that edits made of [`MACHINE`] to the directory. The next call undoes the differences, so an input costs only its
/// edits. Panics if the directory cannot be written.
pub fn put(root: &Path, edited: &Value, before: &mut BTreeSet<String>) {
    let valid = MACHINE.as_object().expect("files by path");
    let none = Map::new();
    let edited = edited.as_object().unwrap_or(&none);
    if before.is_empty() {
        valid.iter().for_each(|(path, value)| tree::write(root, path, &tree::contents(value)));
    }
    for path in std::mem::take(before) {
        remove(root, &path);
        if let Some(value) = valid.get(&path) {
            tree::write(root, &path, &tree::contents(value));
        }
    }
    for path in valid.keys().chain(edited.keys()).filter(|path| valid.get(*path) != edited.get(*path)) {
        remove(root, path);
        if let Some(value) = edited.get(path) {
            tree::write(root, path, &tree::contents(value));
        }
        before.insert(path.clone());
    }
    // The valid files exist from now on.
    before.insert(String::new());
}

fn remove(root: &Path, path: &str) {
    let Some(place) = tree::place(root, path) else { return };
    let _ = fs::remove_file(&place);
    // An input may have replaced a directory by a file, or created directories.
    let mut parent = place.parent();
    while let Some(folder) = parent.filter(|folder| *folder != root && fs::remove_dir(folder).is_ok()) {
        parent = folder.parent();
    }
}
