//! What do overflow checks in becalm's own arithmetic cost? Compares the program with a build without checks.

use std::ffi::OsString;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::{env, fs};

use crate::claims::{Claims, Figure};
use crate::effort::Effort;
use crate::figures::Repetitions;
use crate::{large_bundle, programs};
use becalm_linux::sched;

/// Lines of the imported text, i.e. detours of the compared runs.
const LINES: u64 = 1_500_000;
/// Detours of the reported run.
const DETOURS: u64 = 5_000_000;
/// Number of runs per side.
const TURNS: u64 = 15;
/// The limit on the cost of checks: the interval of the median ratio must not be above it.
const LIMIT: f64 = 1.02;
/// The variable with the path of the program without checks.
const UNCHECKED: &str = "UNCHECKED";

pub fn run() -> ExitCode {
    let effort = Effort::from_arguments();
    let mut claims = Claims::begin("What checked arithmetic costs", effort);
    match env::var_os(UNCHECKED) {
        None => {
            claims.skip("becalm against one without checks", &format!("{UNCHECKED} names none: see bench/README.md"))
        }
        Some(unchecked) => {
            if let Err(why) = compare(&mut claims, effort, &unchecked) {
                claims.fail("becalm against one without checks", &why);
            }
        }
    }
    claims.end()
}

fn compare(claims: &mut Claims, effort: Effort, unchecked: &OsString) -> Result<(), String> {
    let memory = Path::new("/dev/shm");
    let place = if memory.is_dir() { memory.to_owned() } else { env::temp_dir() };
    let folder = tempfile::tempdir_in(place).map_err(|error| error.to_string())?;
    let [text, text_of_other, run, other, large] =
        ["text", "text-2", "run", "other", "large"].map(|name| folder.path().join(name));
    // becalm does not compare a recording with a copy of itself.
    for (text, longest) in [(&text, 400), (&text_of_other, 390)] {
        fs::write(text, lines(effort.share(LINES), longest)).map_err(|error| error.to_string())?;
    }
    let import = |text: &Path, into: &Path| {
        let mut arguments = words("import --from selfish");
        arguments.extend([text.into(), "-o".into(), into.into()]);
        arguments
    };
    let read = |command: &str, runs: &[&Path], options: &str| {
        let mut arguments = words(command);
        arguments.extend(runs.iter().map(OsString::from));
        arguments.extend(words(options));
        arguments
    };
    // Use names of equal length: the length of its path changes a program's time by up to 7 %.
    let both = [("0", programs::becalm()), ("1", PathBuf::from(unchecked))];
    let both =
        both.map(|(name, program)| fs::copy(program, folder.path().join(name)).map(|_| folder.path().join(name)));
    let [ours, without] = both.map(|copied| copied.map_err(|error| format!("cannot copy becalm: {error}")));
    let both = [ours?, without?];
    for (text, bundle) in [(&text, &run), (&text_of_other, &other)] {
        processor_time(&both[0], &import(text, bundle))?;
    }
    large_bundle::write(&large, effort.share(DETOURS)).map_err(|error| error.to_string())?;
    let (periodic, poisson) = ("periodic:interval=1ms,jitter=100us,detour=50us", "poisson:rate=200Hz,detour=50us");
    let commands = [
        ("import", import(&text, &folder.path().join("imported"))),
        ("report", read("report", &[&large], "")),
        ("compare", read("compare", &[&run, &other], "")),
        ("predict", words(&format!("predict {periodic} --ranks 64,1Ki,16Ki"))),
        ("predict, of a run", read("predict", &[&run], "--ranks 16Ki --phases 1000")),
        ("predict, a barrier", words(&format!("predict {poisson} --ranks 64Ki --collective barrier --phases 20"))),
    ];
    for (what, arguments) in commands {
        let mut sides = [Vec::new(), Vec::new()];
        for turn in 0..effort.share(TURNS) {
            for side in [turn % 2, 1 - turn % 2].map(|side| side as usize) {
                sides[side].push(processor_time(&both[side], &arguments)?);
                let _ = fs::remove_dir_all(folder.path().join("imported"));
            }
        }
        // Compare pairs, because a shared machine is sometimes slower.
        let ratios = sides[0].iter().zip(&sides[1]).map(|(checked, other)| checked / other);
        let ratios = Repetitions::new(ratios.collect());
        let (low, high) = ratios.median_interval();
        claims.at_most(&format!("{what}: checks take at least"), Figure::times(low), LIMIT);
        let [checked, other] = sides.map(Repetitions::new);
        claims.remark(&format!(
            "median {:.3} (95 % interval {low:.3} to {high:.3}); with checks {}, without {}",
            ratios.median(),
            checked.range("s"),
            other.range("s")
        ));
    }
    Ok(())
}

/// One detour per microsecond, of 100 ns to just below `longest`.
fn lines(count: u64, longest: u64) -> String {
    let mut text = String::new();
    for line in 0..count {
        let _ = writeln!(text, "{} {}", 1_000 * line, 100 + line % (longest - 100));
    }
    text
}

fn words(text: &str) -> Vec<OsString> {
    text.split_whitespace().map(OsString::from).collect()
}

/// The processor time of a program on the last CPU, in seconds.
fn processor_time(program: &Path, arguments: &[OsString]) -> Result<f64, String> {
    let cpu = sched::allowed_cpus().map_err(|error| error.to_string())?.iter().last();
    let cost = programs::cost(Command::new(program).args(arguments), cpu);
    let cost = cost.map_err(|error| format!("cannot run {}: {error}", program.display()))?;
    if cost.success { Ok(cost.cpu.as_secs_f64()) } else { Err(format!("{} {arguments:?} failed", program.display())) }
}
