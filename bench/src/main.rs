//! Runs every benchmark in sequence, and summarizes; with `--quick` a small part of each. A first argument selects one by name; `recording`
//! and `computing` select those that record on this machine, and the others.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};

use becalm_bench::benchmarks::{COMPUTING, RECORDING, Run, all};
use becalm_bench::claims::Verdict;
use becalm_bench::effort::Effort;

fn main() -> ExitCode {
    let word = std::env::args().nth(1);
    if let Some(option) = word.as_deref().filter(|word| word.starts_with('-') && *word != Effort::QUICK) {
        let usage =
            format!("usage: becalm-bench [BENCHMARK|recording|computing] [{}]\nbenchmarks: {}", Effort::QUICK, names());
        let asked = matches!(option, "-h" | "--help");
        say(&if asked { usage } else { format!("there is no option {option}\n{usage}") });
        return ExitCode::from(if asked { 0 } else { 2 });
    }
    let named = word.filter(|word| !word.starts_with('-'));
    match named.as_deref() {
        None => each_of(all()),
        Some("recording") => each_of(RECORDING),
        Some("computing") => each_of(COMPUTING),
        Some(name) => match all().find(|(known, _)| *known == name) {
            Some((_, run)) => run(),
            None => {
                say(&format!("there is no such benchmark; there are: {}", names()));
                ExitCode::from(2)
            }
        },
    }
}

fn names() -> String {
    all().map(|(name, _)| name).collect::<Vec<_>>().join(", ")
}

/// Each in its own process, because the kernel counts peak memory per process.
fn each_of(benchmarks: impl IntoIterator<Item = (&'static str, Run)>) -> ExitCode {
    let program = match std::env::current_exe() {
        Ok(program) => program,
        Err(error) => {
            say(&format!("cannot tell which program this is: {error}"));
            return ExitCode::FAILURE;
        }
    };
    let effort = Effort::from_arguments();
    let (mut lines, mut failed) = (Vec::new(), Vec::new());
    for (name, _) in benchmarks {
        match run(&program, name, effort, &mut lines) {
            Ok(true) => {}
            Ok(false) => failed.push(name.to_owned()),
            Err(error) => failed.push(format!("{name} ({error})")),
        }
    }
    say("\nSummary");
    lines.iter().for_each(|line| say(line));
    let count = |verdict| lines.iter().filter(|line| Verdict::from_line(line) == Some(verdict)).count();
    let counts = Verdict::ALL.map(|verdict| format!("{} {verdict}", count(verdict)));
    say(&format!("\n{}", counts.join(", ")));
    if failed.is_empty() {
        return ExitCode::SUCCESS;
    }
    say(&format!("not everything holds: {}", failed.join(", ")));
    ExitCode::FAILURE
}

/// Runs a benchmark, prints its output, and keeps the lines with verdicts. Returns whether it succeeded.
fn run(program: &Path, name: &str, effort: Effort, lines: &mut Vec<String>) -> std::io::Result<bool> {
    let quick = (effort == Effort::Quick).then_some(Effort::QUICK);
    let mut child = Command::new(program).arg(name).args(quick).stdout(Stdio::piped()).spawn()?;
    for line in BufReader::new(child.stdout.take().expect("its output is piped")).lines() {
        let line = line?;
        say(&line);
        if Verdict::from_line(&line).is_some() {
            lines.push(line);
        }
    }
    Ok(child.wait()?.success())
}

fn say(text: &str) {
    let mut out = std::io::stdout().lock();
    // Ignore a closed pipe.
    let _ = writeln!(out, "{text}").and_then(|()| out.flush());
}
