//! The sources to blame at scale: the contribution of each, from the closed books of one replay, and the slowdown without the largest few.
//!
//! All replays draw the same offsets, so they differ by the sources and not by chance. For too many ranks to replay there are no books; then each
//! source is removed in turn, with one prediction per source.

use becalm_model::Estimate;
use becalm_units::Nanos;

use crate::ScaleError;
use crate::books::BookedNoise;
use crate::closed::{ClosedBooks, DetourBooks, ReplicaBooks, books_along_the_path, closed_books};
use crate::collective::Collective;
use crate::delay::DelayTable;
use crate::estimate::from_replicas;
use crate::placement::{Placement, RANKS_LIMIT};
use crate::predict::{MESSAGES_LIMIT, Prediction, Question, together};
use crate::replay::{ReplayOutcome, replay};
use crate::watch::ReplayWatch;
use crate::workers::side_by_side;

/// The slowdown without some sources.
#[derive(Clone, PartialEq, Debug)]
pub struct Removal {
    /// Ranks of the job.
    pub ranks: u64,
    /// The numbers of the removed sources, in order of removal; empty for the noise as it is.
    pub sources: Vec<usize>,
    /// The remaining slowdown: the mean over replicas.
    pub slowdown: f64,
    /// The reduction of the slowdown, with the interval over replicas with the same offsets; only with closed books.
    pub gain: Option<Estimate>,
}

/// The blame for one number of ranks.
#[derive(Clone, PartialEq, Debug)]
pub struct Blame {
    /// The noise as it is.
    pub all: Removal,
    /// The contribution of each source, and the most expensive detours.
    pub books: Option<ClosedBooks>,
    /// Each source removed alone, the largest gain first; with closed books only the largest contributors.
    pub each: Vec<Removal>,
    /// The best source removed, then the next best one too, and so on.
    pub next: Vec<Removal>,
}

/// The requested amount of detail.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BlameWanted {
    /// The number of largest contributors to remove: each alone, and cumulatively.
    pub without: usize,
    /// The number of most expensive detours to list.
    pub detours: usize,
}

/// The contribution of every source at each number of ranks, and the slowdown without the largest contributors at any. `out` marks sources to remove
/// from the start; `watch` is notified of the phases of all replays.
pub fn blame(
    noise: &BookedNoise,
    question: Question,
    ranks: &[u64],
    wanted: BlameWanted,
    out: &[bool],
    watch: ReplayWatch<'_>,
) -> Result<Vec<Blame>, ScaleError> {
    if !has_books(&question, ranks) {
        return blame_by_removal(noise, question, ranks, wanted.without, out, watch);
    }
    let closed = books_of_all(noise, &question, ranks, wanted.detours, out, watch)?;
    let blamed = most_blamed(&closed, wanted.without);
    let mut blames: Vec<Blame> = closed.into_iter().map(Blame::from_books).collect();
    let mut sets: Vec<Vec<usize>> = blamed.iter().map(|source| vec![*source]).collect();
    sets.extend((2..=blamed.len()).map(|count| blamed[..count].to_vec()));
    for set in sets {
        let mut gone = out.to_vec();
        set.iter().for_each(|source| gone[*source] = true);
        // One table without these serves all numbers of ranks.
        let left = noise.without(&gone)?;
        let table = match question.collective {
            Collective::Ideal => Some(DelayTable::new(&left, question.per_node, question.grain)?),
            _ => None,
        };
        let slowdowns = |ranks: u64| match &table {
            Some(table) => replays(table, &question, ranks, watch),
            None => Prediction::new(&left, question)?.watched(watch).slowdowns(ranks),
        };
        for blame in &mut blames {
            let without = blame.removal(&set, &slowdowns(blame.all.ranks)?);
            if set.len() == 1 {
                blame.each.push(without.clone());
            }
            // The cumulative removal ends when nothing is gained any more.
            let last = blame.next.last().unwrap_or(&blame.all).slowdown;
            if blamed.starts_with(&set) && blame.next.len() + 1 == set.len() && without.slowdown < last {
                blame.next.push(without);
            }
        }
    }
    for blame in &mut blames {
        blame.each.sort_by(|a, b| a.slowdown.total_cmp(&b.slowdown));
    }
    Ok(blames)
}

/// Whether a question has closed books at these numbers of ranks.
pub fn has_books(question: &Question, ranks: &[u64]) -> bool {
    let limit = if question.collective == Collective::Ideal { RANKS_LIMIT } else { MESSAGES_LIMIT };
    ranks.iter().all(|ranks| *ranks <= limit)
}

fn books_of_all(
    noise: &BookedNoise,
    question: &Question,
    ranks: &[u64],
    dearest: usize,
    out: &[bool],
    watch: ReplayWatch<'_>,
) -> Result<Vec<ClosedBooks>, ScaleError> {
    let as_it_is = noise.without(out)?;
    let books = DetourBooks::new(noise, &as_it_is, out);
    if question.collective != Collective::Ideal {
        let prediction = Prediction::new(&as_it_is, *question)?.watched(watch);
        let books = |ranks: &u64| books_along_the_path(&prediction, &as_it_is, &books, *ranks, dearest);
        return ranks.iter().map(books).collect();
    }
    let table = DelayTable::new(&as_it_is, question.per_node, question.grain)?;
    ranks.iter().map(|ranks| closed_books(&table, &as_it_is, &books, question, *ranks, dearest, watch)).collect()
}

/// The sources with the largest shares at any number of ranks, the largest first; on ties the lower number.
fn most_blamed(closed: &[ClosedBooks], most: usize) -> Vec<usize> {
    let mut shares: Vec<(usize, f64)> = Vec::new();
    for share in closed.iter().flat_map(ClosedBooks::sources) {
        let Some(source) = share.source else { continue };
        match shares.iter_mut().find(|(other, _)| *other == source) {
            Some((_, largest)) => *largest = largest.max(share.share),
            None => shares.push((source, share.share)),
        }
    }
    shares.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    shares.into_iter().take(most).map(|(source, _)| source).collect()
}

/// The slowdowns of the replicas of a question for one table.
fn replays(
    table: &DelayTable<'_>,
    question: &Question,
    ranks: u64,
    watch: ReplayWatch<'_>,
) -> Result<Vec<f64>, ScaleError> {
    let table = table.for_ranks(ranks)?;
    let placement = Placement { ranks, per_node: question.per_node, synchronized: question.synchronized };
    let one = |replica: &u64| -> Result<ReplayOutcome, ScaleError> {
        let outcome = replay(&table, &placement.draw(&table, question.seed, *replica)?, question.phases)?;
        watch.count(ranks, 1).phases(question.phases);
        Ok(outcome)
    };
    let replicas: Vec<u64> = (0..question.replicas).collect();
    let mut outcomes = Vec::with_capacity(replicas.len());
    for some in replicas.chunks(together(ranks, question.replicas)) {
        outcomes.extend(side_by_side(some, one)?);
    }
    Ok(outcomes.iter().map(ReplayOutcome::slowdown).collect())
}

impl Blame {
    /// From books, with nothing removed yet.
    fn from_books(books: ClosedBooks) -> Self {
        let slowdowns: Vec<f64> = books.replicas.iter().map(ReplicaBooks::slowdown).collect();
        let slowdown = from_replicas(&slowdowns).map_or(1.0, |slowdown| slowdown.mean);
        let all = Removal { ranks: books.ranks, sources: Vec::new(), slowdown, gain: None };
        Self { all, books: Some(books), each: Vec::new(), next: Vec::new() }
    }

    /// The same replicas without some sources.
    fn removal(&self, sources: &[usize], slowdowns: &[f64]) -> Removal {
        let replicas = self.books.iter().flat_map(|books| &books.replicas);
        let gains = replicas.zip(slowdowns).map(|(replica, left)| replica.slowdown() - left);
        Removal {
            ranks: self.all.ranks,
            sources: sources.to_vec(),
            slowdown: from_replicas(slowdowns).map_or(1.0, |slowdown| slowdown.mean),
            gain: from_replicas(&gains.collect::<Vec<_>>()),
        }
    }
}

/// Predicts without each source, and without the best ones cumulatively until `steps` are removed, nothing is gained, or no source is left. `out`
/// marks sources to remove from the start.
///
/// `watch` is notified of the phases of all predictions.
///
/// Used if there are no books, and as the reference for them. Ties go to the source with the lower number. With too many ranks to replay, order
/// statistics are used.
pub fn blame_by_removal(
    noise: &BookedNoise,
    question: Question,
    ranks: &[u64],
    steps: usize,
    out: &[bool],
    watch: ReplayWatch<'_>,
) -> Result<Vec<Blame>, ScaleError> {
    let slowdowns = |out: &[bool], ranks: &[u64]| -> Result<Vec<f64>, ScaleError> {
        let noise = noise.without(out)?;
        let prediction = Prediction::new(&noise, question)?.watched(watch);
        let slowdown = |ranks: &u64| -> Result<f64, ScaleError> {
            let row = prediction.row(*ranks)?;
            Ok(row.slowdown.map(|slowdown| slowdown.mean).or(row.expected_ratio).unwrap_or(1.0))
        };
        ranks.iter().map(slowdown).collect()
    };
    let without = |out: &[bool], source: usize| {
        let mut more = out.to_vec();
        more[source] = true;
        more
    };
    let all = slowdowns(out, ranks)?;
    let mut blames: Vec<Blame> = ranks
        .iter()
        .zip(&all)
        .map(|(ranks, slowdown)| Blame {
            all: Removal { ranks: *ranks, sources: Vec::new(), slowdown: *slowdown, gain: None },
            books: None,
            each: Vec::new(),
            next: Vec::new(),
        })
        .collect();
    // A source that is nowhere a root is removed together with others, not alone.
    let candidates: Vec<usize> = noise
        .totals()
        .iter()
        .enumerate()
        .filter(|(_, whole)| **whole > Nanos::ZERO)
        .map(|(source, _)| source)
        .filter(|source| !out[*source])
        .collect();
    for source in &candidates {
        // One table without a source serves all numbers of ranks.
        for (blame, slowdown) in blames.iter_mut().zip(slowdowns(&without(out, *source), ranks)?) {
            blame.each.push(Removal { ranks: blame.all.ranks, sources: vec![*source], slowdown, gain: None });
        }
    }
    for blame in &mut blames {
        blame.each.sort_by(|a, b| a.slowdown.total_cmp(&b.slowdown));
        let Some(first) = blame.each.first().filter(|first| first.slowdown < blame.all.slowdown && steps > 0) else {
            continue;
        };
        blame.next.push(first.clone());
        while blame.next.len() < steps {
            let last = &blame.next[blame.next.len() - 1];
            let gone = last.sources.iter().fold(out.to_vec(), |out, source| without(&out, *source));
            let mut best: Option<(usize, f64)> = None;
            for source in candidates.iter().filter(|source| !gone[**source]) {
                let slowdown = slowdowns(&without(&gone, *source), &[last.ranks])?[0];
                if best.is_none_or(|(_, lowest)| slowdown < lowest) {
                    best = Some((*source, slowdown));
                }
            }
            let Some((source, slowdown)) = best.filter(|(_, slowdown)| *slowdown < last.slowdown) else { break };
            let mut sources = last.sources.clone();
            sources.push(source);
            blame.next.push(Removal { ranks: last.ranks, sources, slowdown, gain: None });
        }
    }
    Ok(blames)
}
