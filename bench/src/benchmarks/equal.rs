//! Does `compare` call equal recordings equal? This machine, recorded again and again, each held against each; and sides of
//! three recordings each.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use crate::claims::{Claims, Figure};
use crate::effort::Effort;
use crate::programs;
use becalm_analyze::compare::{Comparison, Metric, compare_sides};
use becalm_analyze::summary::Selection;
use becalm_bundle::Bundle;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

/// How many recordings are made in a row.
const RECORDINGS: usize = 12;
/// How long each of them is, in milliseconds.
const LENGTH_MS: u64 = 10_000;
/// How many recordings a side has, where it has several.
const SIDE: usize = 3;
/// How many pairs of such sides are drawn from the recordings.
const SIDES: u64 = 60;
/// The seed by which they are drawn.
const SEED: u64 = 14;

pub fn run() -> ExitCode {
    let effort = Effort::from_arguments();
    let mut claims = Claims::begin("Equal: recordings of an unchanged machine, compared", effort);
    if let Err(error) = measure(&mut claims, effort) {
        claims.fail("recordings of an unchanged machine", &error);
    }
    claims.end()
}

fn measure(claims: &mut Claims, effort: Effort) -> Result<(), String> {
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let length = format!("{}ms", effort.share(LENGTH_MS));
    let paths = (0..RECORDINGS).map(|at| record(folder.path(), at, &length)).collect::<Result<Vec<_>, _>>()?;
    let runs = paths.iter().map(|path| Bundle::open(path)).collect::<Result<Vec<_>, _>>();
    let runs = runs.map_err(|error| error.to_string())?;
    claims.remark(&format!("{RECORDINGS} recordings of {length} each, in a row"));

    let mut pairs = Tally::default();
    for b in 1..RECORDINGS {
        for a in 0..b {
            pairs.add(&compared(&runs, &[a], &[b])?);
        }
    }
    pairs.state(claims, "one run a side", "recordings that differ");

    let mut random = Xoshiro256PlusPlus::seed_from_u64(SEED);
    let mut sides = Tally::default();
    for _ in 0..effort.share(SIDES) {
        let mut order: Vec<usize> = (0..RECORDINGS).collect();
        for at in (1..RECORDINGS).rev() {
            order.swap(at, (random.next_u64() % (at as u64 + 1)) as usize);
        }
        sides.add(&compared(&runs, &order[..SIDE], &order[SIDE..2 * SIDE])?);
    }
    sides.state(claims, "three runs a side", "false alarms");
    Ok(())
}

fn record(folder: &Path, at: usize, length: &str) -> Result<PathBuf, String> {
    let path = folder.join(format!("{at}.becalm"));
    let mut command = Command::new(programs::becalm());
    command.args(["record", "--quiet", "--duration", length, "--output"]).arg(&path);
    let cost = programs::cost(&mut command, None).map_err(|error| format!("cannot run becalm: {error}"))?;
    if cost.success { Ok(path) } else { Err("becalm record failed".to_owned()) }
}

fn compared(runs: &[Bundle], a: &[usize], b: &[usize]) -> Result<Comparison, String> {
    let everything = Selection { node: None, cpus: None, with_self: false };
    let side = |runs_of: &[usize]| runs_of.iter().map(|at| (&runs[*at], &everything)).collect::<Vec<_>>();
    compare_sides(&side(a), &side(b)).map_err(|error| error.to_string())
}

/// How many comparisons show a difference, of how many.
#[derive(Default)]
struct Tally {
    all: u32,
    noise: u32,
    total: u32,
    any: u32,
}

impl Tally {
    fn add(&mut self, comparison: &Comparison) {
        let shown = comparison.rows.iter().filter(|row| row.verdict.is_difference());
        self.all += 1;
        self.noise += u32::from(comparison.total(Metric::NoiseRatio).is_some_and(|row| row.verdict.is_difference()));
        self.total += u32::from(shown.clone().any(|row| row.source.is_none() && row.place.is_none()));
        self.any += u32::from(shown.count() > 0);
    }

    fn state(&self, claims: &mut Claims, what: &str, meaning: &str) {
        let rows = [("the noise", self.noise), ("any figure of all CPUs", self.total), ("any row", self.any)];
        for (row, count) in rows {
            let share = Figure::percent(100.0 * f64::from(count) / f64::from(self.all.max(1)));
            claims.state(&format!("{what}: {row}"), share, &format!("{count} of {}, {meaning}", self.all));
        }
    }
}
