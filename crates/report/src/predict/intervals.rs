//! The meaning of the intervals of predicted slowdowns, in sentences.

use becalm_scale::predict::RankPrediction;
use becalm_scale::uncertainty::Missed;
use becalm_units::{Count, plural};

use crate::Value;
use crate::form::value::time;
use crate::predict::rounded::times;
use crate::record::missed;

/// All sentences about the intervals of rows, for one recording or formula.
pub(crate) fn sentences(rows: &[RankPrediction], replicas: u64) -> Vec<String> {
    let mut sentences: Vec<String> = meaning(rows, replicas).into_iter().collect();
    sentences.extend(open(rows));
    sentences.extend(seeds(rows, replicas));
    sentences.extend(recorded(rows));
    sentences.extend(together(rows));
    sentences
}

/// Which slowdowns are not from replays.
fn recorded(rows: &[RankPrediction]) -> Option<String> {
    let recorded = rows.iter().any(|row| !row.replayed);
    recorded
        .then(|| "slowdown: of all recorded phases, as in becalm report; phases and blame: of the replays".to_owned())
}

/// The slowdowns that differ from a report's because the CPUs of a node were replayed together.
pub fn together(rows: &[RankPrediction]) -> impl Iterator<Item = String> + '_ {
    rows.iter().filter_map(|row| {
        let (apart, together) = (times(row.apart?), times(row.slowdown?.mean));
        let job = job(rows, row);
        Some(format!(
            "{job}: {together} with the CPUs of a node replayed together, {apart} one by one as in becalm report"
        ))
    })
}

/// The meaning of the interval.
pub fn meaning(rows: &[RankPrediction], replicas: u64) -> Option<String> {
    if rows.iter().any(|row| row.recording.is_some()) {
        return Some("95 % CI: of what another or longer recording of the machine would show".to_owned());
    }
    let formula = replicas > 1 && rows.iter().any(|row| row.formula && row.slowdown.is_some());
    formula.then(|| format!("95 % CI: of the mean over {replicas} replicas"))
}

/// Why rows have no upper end, and the length of a recording that would have one.
pub fn open(rows: &[RankPrediction]) -> impl Iterator<Item = String> + '_ {
    rows.iter().filter_map(|row| {
        // A recording in summary form has no interval.
        let is_open = match &row.recording {
            Some(bounds) => bounds.high.is_none(),
            None => row.missed.is_some() && row.slowdown.is_some(),
        };
        let why = row.missed.map_or_else(
            || "the recording is too short".to_owned(),
            |Missed { every, phases }| missed(every.get(), phases),
        );
        let needed = row.recording.and_then(|bounds| bounds.needed);
        let advice = needed.map_or_else(String::new, |needed| format!("; record about {}", time(needed.get())));
        is_open.then(|| format!("{}: no upper bound because {why}{advice}", job(rows, row)))
    })
}

/// A row's ranks, with the grain and the collective if there are several.
fn job(rows: &[RankPrediction], row: &RankPrediction) -> String {
    let mut job = format!("{} {}", Count::new(row.ranks), plural(row.ranks, "rank", "ranks"));
    if rows.iter().any(|other| other.grain != row.grain) {
        job = format!("{job}, grain {}", row.grain);
    }
    if rows.iter().any(|other| other.collective != row.collective) {
        job = format!("{job}, {}", row.collective);
    }
    job
}

/// How far other offsets move the slowdown, unless the interval already contains it.
fn seeds(rows: &[RankPrediction], replicas: u64) -> Option<String> {
    if replicas < 2 {
        return None;
    }
    let part = |row: &RankPrediction| {
        let slowdown = row.slowdown.filter(|_| row.replayed && !row.formula)?;
        Some((slowdown.high - slowdown.low) / 2.0 / slowdown.mean)
    };
    let most = rows.iter().filter_map(part).max_by(f64::total_cmp)?;
    let most = Value::Ratio(most).cell();
    Some(format!("other random offsets on this recording move the slowdown by {most} (95 % CI, {replicas} replicas)"))
}
