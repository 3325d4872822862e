//! The scenarios: shell scripts whose first lines contain their summary and their machine.
//!
//! ```text
//! # A CPU that the boot parameters freed from the scheduler, the tick and RCU.
//! #: kernel rt
//! #: parameters isolcpus=1 nohz_full=1 rcu_nocbs=1
//! ```
//!
//! `tests/lab.rs` checks their results.

use std::fs;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use crate::{Flavor, LabError};

/// The number of CPUs of a guest. With one, no CPU is left unmeasured; more than four emulated ones starve each other on test machines.
pub const CPUS: RangeInclusive<u32> = 2..=4;

/// Programs of this machine's `/usr/bin` that scenarios may use: the front end of the kernel's osnoise and timerlat tracers and cyclictest,
/// from separate packages, and the tool for scheduling classes, which every Debian has and its busybox lacks.
pub const PROGRAMS: [&str; 3] = ["rtla", "chrt", "cyclictest"];

/// A scenario and its machine; everything but its name may be changed before booting.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Scenario {
    /// Its name for selection: the name of its file without `.sh`.
    pub name: String,
    /// A summary, in one sentence.
    pub summary: String,
    /// The script to run in the guest.
    pub path: PathBuf,
    /// Its kernel.
    pub flavor: Flavor,
    /// Additional parameters of the kernel's command line.
    pub parameters: String,
    /// The number of CPUs, within [`CPUS`].
    pub cpus: u32,
    /// The programs it uses besides becalm and busybox, from `PROGRAMS` in `program.rs`.
    pub programs: Vec<&'static str>,
}

impl Scenario {
    /// All scenarios of this lab, by name. Fails if one cannot be read, or its first lines are invalid.
    pub fn all() -> Result<Vec<Self>, LabError> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios");
        let mut scenarios = Vec::new();
        for entry in fs::read_dir(&folder).map_err(LabError::file("list", &folder))? {
            let path = entry.map_err(LabError::file("list", &folder))?.path();
            if path.extension().is_some_and(|extension| extension == "sh") {
                let text = fs::read_to_string(&path).map_err(LabError::file("read", &path))?;
                scenarios.push(Self::parse(&path, &text)?);
            }
        }
        scenarios.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(scenarios)
    }

    /// The scenario with this name; the suffix `.sh` is optional. Fails if there is none, with the valid names, or if one cannot be read.
    pub fn named(name: &str) -> Result<Self, LabError> {
        let wanted = name.strip_suffix(".sh").unwrap_or(name);
        let mut scenarios = Self::all()?;
        let Some(position) = scenarios.iter().position(|scenario| scenario.name == wanted) else {
            let names: Vec<String> = scenarios.into_iter().map(|scenario| scenario.name).collect();
            let names = names.join(", ");
            return Err(LabError::Other(format!("there is no scenario '{name}'; choose one of {names}")));
        };
        Ok(scenarios.swap_remove(position))
    }

    fn parse(path: &Path, text: &str) -> Result<Self, LabError> {
        let wrong = |what: String| LabError::Other(format!("the scenario {} {what}", path.display()));
        let head = || text.lines().take_while(|line| line.starts_with('#'));
        let summary = head()
            .next()
            .and_then(|line| line.strip_prefix("# "))
            .ok_or_else(|| wrong("does not start with a comment that says what it shows".to_owned()))?;
        let mut scenario = Self {
            name: path.file_stem().unwrap_or_default().to_string_lossy().into_owned(),
            summary: summary.to_owned(),
            path: path.to_owned(),
            flavor: Flavor::Stock,
            parameters: String::new(),
            cpus: *CPUS.start(),
            programs: Vec::new(),
        };
        for line in head() {
            let Some(line) = line.strip_prefix("#:") else { continue };
            let (key, value) = line.trim().split_once(' ').unwrap_or((line.trim(), ""));
            match key {
                "kernel" => {
                    scenario.flavor =
                        value.parse().map_err(|error: becalm_units::UnknownName| wrong(error.to_string()))?
                }
                "parameters" => value.clone_into(&mut scenario.parameters),
                "cpus" => scenario.cpus = parse_cpus(value).map_err(wrong)?,
                "with" => {
                    let known = PROGRAMS.into_iter().find(|program| *program == value);
                    scenario
                        .programs
                        .push(known.ok_or_else(|| wrong(format!("wants '{value}', not one of {PROGRAMS:?}")))?);
                }
                _ => {
                    return Err(wrong(format!("has a line '{line}', which is none of kernel, parameters, cpus, with")));
                }
            }
        }
        Ok(scenario)
    }
}

/// Parses the number of CPUs of a guest. Fails if it is not within [`CPUS`].
pub fn parse_cpus(text: &str) -> Result<u32, String> {
    let cpus = text.parse().ok().filter(|cpus| CPUS.contains(cpus));
    cpus.ok_or_else(|| format!("'{text}' CPUs: a guest has {} to {}", CPUS.start(), CPUS.end()))
}

#[cfg(test)]
mod tests {
    use becalm_units::Named;

    use super::*;

    fn parse(text: &str) -> Result<Scenario, String> {
        Scenario::parse(Path::new("lab/scenarios/quiet.sh"), text).map_err(|error| error.to_string())
    }

    #[test]
    fn a_scenario_says_which_machine_it_wants() {
        let text = "# A quiet CPU.\n# More of it.\n#: kernel rt\n#: parameters nohz_full=1 rcu_nocbs=1\n#: cpus 4\n\
                    #: with rtla\n#: with chrt\n#: with cyclictest\n\n#: kernel nonsense\nbecalm\n";
        let scenario = parse(text).unwrap();
        assert_eq!((scenario.name.as_str(), scenario.summary.as_str()), ("quiet", "A quiet CPU."));
        assert_eq!(scenario.flavor, Flavor::Realtime);
        assert_eq!(scenario.parameters, "nohz_full=1 rcu_nocbs=1");
        assert_eq!((scenario.cpus, scenario.programs), (4, PROGRAMS.to_vec()));

        let plain = parse("# Plain.\n").unwrap();
        assert_eq!((plain.flavor, plain.parameters.as_str(), plain.cpus), (Flavor::Stock, "", 2));
    }

    #[test]
    fn what_a_scenario_cannot_want_is_refused() {
        for (text, what) in [
            ("becalm\n", "does not start with a comment"),
            ("# X.\n#: kernel bsd\n", "'bsd'"),
            ("# X.\n#: cpus 64\n", "'64' CPUs: a guest has 2 to 4"),
            ("# X.\n#: memory 1G\n", "memory 1G"),
            ("# X.\n#: with python\n", "'python'"),
        ] {
            let error = parse(text).expect_err(text);
            assert!(error.contains(what) && error.contains("lab/scenarios/quiet.sh"), "{error}");
        }
    }

    #[test]
    fn the_scenarios_are_found_by_name_and_their_names_are_told() {
        assert_eq!(Scenario::named("isolated").unwrap(), Scenario::named("isolated.sh").unwrap());
        let error = Scenario::named("izolated").expect_err("there is no such scenario").to_string();
        assert!(error.contains("'izolated'") && error.contains("isolated, "), "{error}");
    }

    #[test]
    fn the_table_of_the_readme_tells_what_the_scenarios_want() {
        let readme = include_str!("../README.md");
        for scenario in Scenario::all().unwrap() {
            let row = readme.lines().find(|line| line.starts_with(&format!("| `{}` |", scenario.name)));
            let row = row.unwrap_or_else(|| panic!("README.md has no row for {}", scenario.name));
            let cells: Vec<&str> = row.split('|').map(str::trim).collect();
            let parameters = match scenario.parameters.as_str() {
                "" => "none".to_owned(),
                parameters => format!("`{parameters}`"),
            };
            assert_eq!(cells[2..5], [scenario.flavor.name(), &scenario.cpus.to_string(), &parameters], "{row}");
        }
    }
}
