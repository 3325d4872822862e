//! Runs every benchmark, one after another, and sums up; with `--quick` a small part of each.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};

use becalm_bench::claims::Verdict;
use becalm_bench::effort::Effort;

/// The programs in `bin/`, in the order in which they run.
const BENCHMARKS: [&str; 12] = [
    "sharp",
    "quiet",
    "storms",
    "equal",
    "afterwards",
    "replay",
    "published",
    "recordings",
    "books",
    "collectives",
    "loggopsim",
    "checks",
];

fn main() -> ExitCode {
    let folder = std::env::current_exe().ok().and_then(|program| program.parent().map(Path::to_owned));
    let folder = folder.unwrap_or_default();
    let effort = Effort::from_arguments();
    let (mut lines, mut failed) = (Vec::new(), Vec::new());
    for name in BENCHMARKS {
        match run(&folder.join(name), effort, &mut lines) {
            Ok(true) => {}
            Ok(false) => failed.push(name.to_owned()),
            Err(error) => failed.push(format!("{name} ({error})")),
        }
    }
    say("\nSummary");
    lines.iter().for_each(|line| say(line));
    let count = |verdict| lines.iter().filter(|line| Verdict::of_line(line) == Some(verdict)).count();
    let counts = Verdict::ALL.map(|verdict| format!("{} {verdict}", count(verdict)));
    say(&format!("\n{}", counts.join(", ")));
    if failed.is_empty() {
        return ExitCode::SUCCESS;
    }
    say(&format!("not everything holds: {}", failed.join(", ")));
    ExitCode::FAILURE
}

/// Runs a program, shows what it prints, and keeps the lines with verdicts. Tells whether it succeeded.
fn run(program: &Path, effort: Effort, lines: &mut Vec<String>) -> std::io::Result<bool> {
    let quick = (effort == Effort::Quick).then_some(Effort::QUICK);
    let mut child = Command::new(program).args(quick).stdout(Stdio::piped()).spawn()?;
    for line in BufReader::new(child.stdout.take().expect("its output is piped")).lines() {
        let line = line?;
        say(&line);
        if Verdict::of_line(&line).is_some() {
            lines.push(line);
        }
    }
    Ok(child.wait()?.success())
}

fn say(text: &str) {
    let mut out = std::io::stdout().lock();
    // Whoever closed the pipe does not want to know.
    let _ = writeln!(out, "{text}").and_then(|()| out.flush());
}
