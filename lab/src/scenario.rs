//! The scenarios: shell scripts that say in their first lines what they show and which machine they want.
//!
//! ```text
//! # A CPU that the boot parameters freed from the scheduler, the tick and RCU.
//! #: kernel rt
//! #: parameters isolcpus=1 nohz_full=1 rcu_nocbs=1
//! ```
//!
//! What they leave is judged in `tests/lab.rs`, not here.

use std::fs;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use crate::{Flavor, LabError};

/// How many CPUs a guest may have. One leaves no CPU that is not measured; more than four emulated ones starve each
/// other on the machines that run tests.
pub const CPUS: RangeInclusive<u32> = 2..=4;

/// What a scenario may use of this machine's `/usr/bin`: the front end of the kernel's osnoise and timerlat tracers and
/// cyclictest, of packages of their own, and what sets the scheduling class of a process, which every Debian has and its
/// busybox lacks.
pub const PROGRAMS: [&str; 3] = ["rtla", "chrt", "cyclictest"];

/// A scenario and the machine that it wants; everything but its name may be changed before it is booted.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Scenario {
    /// By which it is chosen: the name of its file without `.sh`.
    pub name: String,
    /// What it shows, in a sentence.
    pub summary: String,
    /// The script that the guest runs.
    pub path: PathBuf,
    /// The kernel that it runs on.
    pub flavor: Flavor,
    /// What is added to the kernel's command line.
    pub parameters: String,
    /// How many CPUs its guest has, within [`CPUS`].
    pub cpus: u32,
    /// What it uses beside becalm and busybox, of `PROGRAMS` in `program.rs`.
    pub programs: Vec<&'static str>,
}

impl Scenario {
    /// All scenarios of this lab, by name. Fails if one cannot be read, or its first lines are not as they must be.
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

    /// The scenario of that name; the ending `.sh` may be there. Fails if there is none, with the names of those that
    /// there are, and when one cannot be read.
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
            .ok_or_else(|| wrong("does not begin with a comment that says what it shows".to_owned()))?;
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

/// Reads how many CPUs a guest is to have. Fails if that is no number within [`CPUS`].
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
            ("becalm\n", "does not begin with a comment"),
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
