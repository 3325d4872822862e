//! Are the intervals of `becalm cost` reproducible? Runs the same command repeatedly, and compares each interval with that of the same row
//! in every other run.

use std::path::Path;
use std::process::{Command, ExitCode};

use crate::claims::{Claims, Figure};
use crate::effort::Effort;
use crate::programs;
use becalm_cost::analysis::MeasuredCost;
use becalm_cost::documents::CostRun;

/// The commands with such intervals.
const COMMANDS: [&str; 3] = ["trap", "clock", "detours"];
/// Number of successive runs, and the share of pairs of intervals that must overlap.
const RUNS: usize = 6;
const MEET_PERCENT: f64 = 90.0;

/// The interval of each row of a run, in the order of rows; `None` for a row without one.
type Intervals = Vec<Option<(i64, i64)>>;

pub fn run() -> ExitCode {
    let effort = Effort::from_arguments();
    let mut claims = Claims::begin("Costs: intervals of runs in a row", effort);
    for command in COMMANDS {
        if let Err(error) = measure(&mut claims, effort, command) {
            claims.fail(&format!("becalm cost {command}"), &error);
        }
    }
    claims.end()
}

fn measure(claims: &mut Claims, effort: Effort, command: &str) -> Result<(), String> {
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let (runs, over) = match effort {
        Effort::Full => (RUNS, None),
        Effort::Quick => (2, Some("1s")),
    };
    let runs = (0..runs).map(|at| cost(folder.path(), command, at, over)).collect::<Result<Vec<_>, _>>()?;
    let count = |interval: fn(&CostRun, &str) -> Option<(i64, i64)>| {
        let names: Vec<&String> = runs[0].samples.keys().collect();
        let intervals_of_run = |run| names.iter().map(|name| interval(run, name)).collect();
        meeting(&runs.iter().map(intervals_of_run).collect::<Vec<Intervals>>())
    };
    let ((meet, pairs), (meet_of_one, pairs_of_one)) = (count(over_processes), count(over_rounds_of_one));
    let percent = |meet: usize, pairs: usize| Figure::percent(100.0 * meet as f64 / pairs.max(1) as f64);
    claims.at_least(&format!("cost {command}: pairs that meet"), percent(meet, pairs), MEET_PERCENT);
    claims.remark(&format!("{meet} of {pairs} pairs of intervals, of {} runs in a row", runs.len()));
    claims.state(
        &format!("cost {command}: the same of one process"),
        percent(meet_of_one, pairs_of_one),
        &format!("{meet_of_one} of {pairs_of_one}; from the least to the largest of its rounds"),
    );
    Ok(())
}

fn cost(folder: &Path, subcommand: &str, at: usize, over: Option<&str>) -> Result<CostRun, String> {
    let path = folder.join(format!("{at}.becalm"));
    let mut command = Command::new(programs::becalm());
    command.args(["cost", subcommand, "--output"]).arg(&path);
    over.into_iter().for_each(|over| {
        command.args(["--over", over]);
    });
    let cost = programs::cost(&mut command, None).map_err(|error| format!("cannot run becalm: {error}"))?;
    if !cost.success {
        return Err(format!("becalm cost {subcommand} failed"));
    }
    CostRun::load(&path, None).map_err(|error| error.to_string())
}

/// The printed interval.
fn over_processes(run: &CostRun, name: &str) -> Option<(i64, i64)> {
    let (_, series) = run.doc.series().into_iter().find(|(known, _)| known == name)?;
    MeasuredCost::new(&series, run.samples.get(name)?)?.cost.interval_ps
}

/// The range of the rounds' medians in the first process, ignoring the others.
fn over_rounds_of_one(run: &CostRun, name: &str) -> Option<(i64, i64)> {
    let (_, series) = run.doc.series().into_iter().find(|(known, _)| known == name)?;
    let taken = *series.rounds_by_process.iter().find(|taken| **taken > 0)?;
    let rounds = run.samples.get(name)?.get(..taken as usize)?;
    let median = |round: &Vec<i64>| {
        let mut sorted = round.clone();
        sorted.sort_unstable();
        sorted.get(sorted.len().checked_sub(1)? / 2).copied()
    };
    let medians: Vec<i64> = rounds.iter().filter_map(median).collect();
    Some((*medians.iter().min()?, *medians.iter().max()?))
}

/// The number of pairs of intervals of the same row in two runs that overlap, and of all pairs.
fn meeting(runs: &[Intervals]) -> (usize, usize) {
    let (mut meet, mut pairs) = (0, 0);
    for (at, later) in runs.iter().enumerate() {
        for earlier in &runs[..at] {
            for (a, b) in earlier.iter().zip(later).filter_map(|(a, b)| (*a).zip(*b)) {
                pairs += 1;
                meet += usize::from(a.0 <= b.1 && b.0 <= a.1);
            }
        }
    }
    (meet, pairs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_that_touch_meet() {
        let runs = [vec![Some((1, 3)), Some((5, 6)), None], vec![Some((3, 9)), Some((7, 8)), Some((1, 2))]];
        assert_eq!(meeting(&runs), (1, 2));
        assert_eq!(meeting(&runs[..1]), (0, 0));
    }
}
