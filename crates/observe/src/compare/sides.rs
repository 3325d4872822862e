//! The two sides: their recordings, the threads that both have, and the compared figures.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use becalm_analyze::compare::lives::{ComparedLives, Shares, compare_lives};
use becalm_analyze::compare::series::RatioOfSums;
use becalm_stats::TimeCells;
use becalm_units::{fault, printable};

use super::series::{RunSeries, TakerKey};
use crate::command;
use crate::document::{ObservedDoc, ThreadDoc};
use crate::totals::{Totals, is_helper};

/// The names of threads in an error.
const NAMED: usize = 4;

/// A recording.
#[derive(Clone, Debug)]
pub struct ReadRun {
    /// The path as it was given.
    pub path: PathBuf,
    /// The directory of the bundle.
    pub bundle: PathBuf,
    /// The document.
    pub doc: ObservedDoc,
}

impl ReadRun {
    /// Reads the document of a node, or of the only one.
    pub fn read(path: &Path, node: Option<&str>) -> fault::Result<Self> {
        let stored = command::load(path, node)?;
        Ok(Self { path: path.to_owned(), bundle: stored.bundle, doc: stored.doc })
    }

    /// The threads with this name.
    pub fn threads<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a ThreadDoc> {
        self.doc.threads.iter().filter(move |thread| thread.name == name)
    }
}

/// Two sides, and the names of their threads.
#[derive(Debug)]
pub struct Sides {
    /// The recordings of both sides.
    pub runs: [Vec<ReadRun>; 2],
    /// The names that both sides have, in the order of A's waits.
    pub names: Vec<String>,
    /// Which of them are shown: the others nearly always sleep, on both sides.
    pub shown: Vec<bool>,
    /// The names that only one side has.
    pub alone: [Vec<String>; 2],
}

/// The comparison of two sides.
#[derive(Debug)]
pub struct Compared {
    /// The sides.
    pub sides: Sides,
    /// The shares of time lost to others, in the order of names, and of the takers.
    pub lives: ComparedLives,
    /// The takers, the largest difference first, with their time on both sides, in the order of their shares.
    pub takers: Vec<(TakerKey, [i64; 2])>,
}

impl Sides {
    /// Joins the threads of both sides by name. Fails if they have no name in common.
    pub fn new(runs: [Vec<ReadRun>; 2]) -> fault::Result<Self> {
        let all = runs.each_ref().map(|side| in_order(side));
        let of_other = all.each_ref().map(|names| names.iter().copied().collect::<BTreeSet<&str>>());
        let (common, alone_a): (Vec<&str>, Vec<&str>) = all[0].iter().partition(|name| of_other[1].contains(*name));
        let alone_b = all[1].iter().filter(|name| !of_other[0].contains(*name));
        fault::ensure!(
            !common.is_empty(),
            "{} and {} have no thread of the same name: A has {}, and B has {}; observe the same program on both sides",
            path(&runs[0]),
            path(&runs[1]),
            some(&all[0]),
            some(&all[1])
        );
        let owned = |names: Vec<&str>| names.into_iter().map(str::to_owned).collect::<Vec<String>>();
        let (alone, names) = ([owned(alone_a), owned(alone_b.copied().collect())], owned(common));
        let helps = |name: &String| {
            runs.iter().all(|side| {
                let totals = Totals::of(side.iter().flat_map(|run| run.threads(name)).collect());
                is_helper(totals.sum(|thread| thread.asleep_ns), totals.wall)
            })
        };
        let mut shown: Vec<bool> = names.iter().map(|name| !helps(name)).collect();
        if !shown.contains(&true) {
            shown.fill(true);
        }
        Ok(Self { runs, names, shown, alone })
    }

    /// The sums over the threads of one name, or over those of all shown names, of one side.
    pub fn totals(&self, side: usize, name: Option<usize>) -> Totals<'_> {
        let is_in = |thread: &&ThreadDoc| {
            let place = self.names.iter().position(|known| *known == thread.name);
            place.is_some_and(|place| name.map_or(self.shown[place], |name| name == place))
        };
        Totals::of(self.runs[side].iter().flat_map(|run| &run.doc.threads).filter(is_in).collect())
    }

    /// Reads the lives of the threads, and compares them. Fails if tables cannot be read.
    pub fn compared(self) -> fault::Result<Compared> {
        let read = |runs: &[ReadRun]| -> fault::Result<Vec<RunSeries>> {
            runs.iter().map(|run| RunSeries::read(run, &self.names, &self.shown)).collect()
        };
        let series = [read(&self.runs[0])?, read(&self.runs[1])?];
        let walls = series.each_ref().map(|side| {
            side.iter().map(|run| self.sum(run, |place| &run.groups[place].wall)).collect::<Vec<TimeCells>>()
        });
        // A share for each run.
        let shares = |part: &dyn Fn(&RunSeries) -> TimeCells| -> Shares {
            [0, 1].map(|side| {
                let runs = series[side].iter().zip(&walls[side]);
                runs.map(|(run, wall)| RatioOfSums::per_count(&part(run), wall)).collect()
            })
        };
        let total = shares(&|run| self.sum(run, |place| &run.groups[place].lost));
        let groups = (0..self.names.len()).map(|place| {
            [0, 1].map(|side| {
                let of_group = series[side].iter().map(|run| &run.groups[place]);
                of_group.map(|group| RatioOfSums::per_count(&group.lost, &group.wall)).collect()
            })
        });
        let keys: BTreeSet<&TakerKey> = series.iter().flatten().flat_map(|run| run.takers.keys()).collect();
        let cells = |run: &RunSeries, key: &TakerKey| run.takers.get(key).unwrap_or(&run.empty).clone();
        let taken = |key: &&TakerKey| (key.kind, key.source.clone(), shares(&|run| cells(run, key)));
        let mut lives = compare_lives(total, groups.collect(), keys.iter().map(taken).collect());
        let time = |side: usize, key: &TakerKey| {
            let runs = series[side].iter().filter_map(|run| run.takers.get(key));
            runs.map(|cells| cells.noise().iter().sum::<i64>()).sum::<i64>()
        };
        let times = keys.into_iter().map(|key| (key.clone(), [0, 1].map(|side| time(side, key))));
        let mut rows: Vec<_> = times.zip(std::mem::take(&mut lives.takers)).collect();
        let change = |share: Option<f64>| share.unwrap_or_default().abs();
        rows.sort_by(|(_, one), (_, other)| change(other.difference).total_cmp(&change(one.difference)));
        let (takers, shares) = rows.into_iter().unzip();
        lives.takers = shares;
        Ok(Compared { sides: self, lives, takers })
    }

    /// The sum over the shown groups.
    fn sum<'a>(&self, run: &RunSeries, of: impl Fn(usize) -> &'a TimeCells) -> TimeCells {
        let mut sum = run.empty.clone();
        (0..self.names.len()).filter(|place| self.shown[*place]).for_each(|place| sum.merge(of(place)));
        sum
    }
}

/// The names of the threads of a side, those that waited longest first.
fn in_order(side: &[ReadRun]) -> Vec<&str> {
    let mut known = BTreeSet::new();
    let names = side.iter().flat_map(|run| &run.doc.threads).map(|thread| thread.name.as_str());
    names.filter(|name| known.insert(*name)).collect()
}

fn some(names: &[&str]) -> String {
    let more = names.len().saturating_sub(NAMED);
    let named: Vec<_> = names.iter().take(NAMED).map(|name| printable(name)).collect();
    if more > 0 { format!("{} and {more} more", named.join(", ")) } else { named.join(", ") }
}

fn path(side: &[ReadRun]) -> String {
    side.first().map_or_else(String::new, |run| run.path.display().to_string())
}
