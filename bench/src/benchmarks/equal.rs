//! Does `compare` call equal recordings equal? Records this machine repeatedly, and compares all pairs, and sides of three recordings each.
//! Then adds half as much noise, and compares each recording with each of those.

use std::borrow::Borrow;
use std::path::Path;
use std::process::{Command, ExitCode};

use crate::claims::{Claims, Figure};
use crate::effort::Effort;
use crate::programs;
use becalm_analyze::compare::{Comparison, Metric, compare_sides};
use becalm_analyze::summary::Selection;
use becalm_bundle::Bundle;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

/// The number of successive recordings.
const RECORDINGS: usize = 12;
/// The length of each recording, in milliseconds.
const LENGTH_MS: u64 = 10_000;
/// The number of recordings per side, with several.
const SIDE: usize = 3;
/// The number of pairs of such sides drawn from the recordings.
const SIDES: u64 = 60;
/// The number of recordings with added noise.
const PLANTED: usize = 6;
/// The added noise, relative to the noise of the recordings before.
const ADDED: f64 = 0.5;
/// The seed for drawing the sides.
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
    let runs = record_all(folder.path(), "equal", RECORDINGS, &length, None)?;
    claims.remark(&format!("{RECORDINGS} recordings of {length} each, in a row"));

    let mut pairs = Tally::default();
    for b in 1..RECORDINGS {
        for a in 0..b {
            pairs.add(&compared(&runs, &[a], &[b])?);
        }
    }
    pairs.state(claims, "one run a side", "false alarms");

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
    match planted(folder.path(), &length, &runs) {
        Ok(found) => found.state(claims, "one run a side, half as much noise added", "found"),
        Err(error) => claims.fail_as_root("half as much noise added", &error),
    }
    Ok(())
}

/// Adds half as much noise as usual, and compares each recording with each of those made meanwhile.
fn planted(folder: &Path, length: &str, runs: &[Bundle]) -> Result<Tally, String> {
    let mut noises = Vec::new();
    for at in 1..runs.len() {
        noises.extend(compared(runs, &[0], &[at])?.total(Metric::NoiseRatio).and_then(|row| row.b));
    }
    noises.sort_by(f64::total_cmp);
    let noise = *noises.get(noises.len() / 2).ok_or("there is no noise to add to")?;
    let planted = record_all(folder, "planted", PLANTED, length, Some(ADDED * noise))?;
    let all: Vec<&Bundle> = runs.iter().chain(&planted).collect();
    let mut found = Tally::default();
    for b in runs.len()..all.len() {
        for a in 0..runs.len() {
            found.add(&compared(&all, &[a], &[b])?);
        }
    }
    Ok(found)
}

/// Makes successive recordings while this share of the time is taken from all CPUs.
fn record_all(
    folder: &Path,
    name: &str,
    number: usize,
    length: &str,
    added: Option<f64>,
) -> Result<Vec<Bundle>, String> {
    let recorded = (0..number).map(|at| {
        let path = folder.join(format!("{name}-{at}.becalm"));
        record(&path, length, added)?;
        Bundle::open(&path).map_err(|error| error.to_string())
    });
    recorded.collect()
}

fn record(path: &Path, length: &str, added: Option<f64>) -> Result<(), String> {
    let mut command = Command::new(programs::becalm());
    if let Some(added) = added {
        let ratio = format!("{}%", 100.0 * added);
        command.args(["inject", "--detour", "200us", "--ratio", &ratio, "--"]).arg(programs::becalm());
    }
    command.args(["record", "--quiet", "--duration", length, "--output"]).arg(path);
    let cost = programs::cost(&mut command, None).map_err(|error| format!("cannot run becalm: {error}"))?;
    if cost.success { Ok(()) } else { Err("becalm record failed".to_owned()) }
}

fn compared<B: Borrow<Bundle>>(runs: &[B], a: &[usize], b: &[usize]) -> Result<Comparison, String> {
    let everything = Selection::default();
    let side = |runs_of: &[usize]| runs_of.iter().map(|at| (runs[*at].borrow(), &everything)).collect::<Vec<_>>();
    compare_sides(&side(a), &side(b)).map_err(|error| error.to_string())
}

/// The number of comparisons with a difference, and of all.
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
