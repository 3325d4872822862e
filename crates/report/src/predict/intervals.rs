//! The meaning of the intervals of predicted slowdowns, in sentences.

use becalm_scale::predict::RankPrediction;
use becalm_scale::uncertainty::{Missed, RecordingBounds};
use becalm_units::{Count, plural};

use crate::Value;
use crate::form::value::{factor, time};
use crate::record::missed;

/// All sentences about the intervals of rows, for one recording or formula.
pub(crate) fn sentences(rows: &[RankPrediction], replicas: u64) -> Vec<String> {
    let mut sentences: Vec<String> = meaning(rows, replicas).into_iter().collect();
    sentences.extend(open(rows));
    for (row, bounds) in bounded(rows) {
        sentences.extend(shares(bounds).map(|shares| format!("{}: {shares}", job(rows, row))));
    }
    sentences.extend(seeds(rows, replicas));
    sentences.extend(recorded(rows));
    sentences.extend(together(rows));
    sentences
}

/// Which slowdowns are not from replays.
fn recorded(rows: &[RankPrediction]) -> Option<String> {
    let recorded = rows.iter().any(|row| !row.replayed);
    recorded
        .then(|| "slowdown: of all recorded phases, as in becalm report; phases and blame: of the replay".to_owned())
}

/// The slowdowns that differ from a report's because the CPUs of a node were replayed together.
pub fn together(rows: &[RankPrediction]) -> impl Iterator<Item = String> + '_ {
    rows.iter().filter_map(|row| {
        let (apart, together) = (factor(row.apart?), factor(row.slowdown?.mean));
        let job = job(rows, row);
        Some(format!(
            "{job}: {together} with the CPUs of a node replayed together, {apart} one by one as in becalm report"
        ))
    })
}

/// The meaning of low and high.
pub fn meaning(rows: &[RankPrediction], replicas: u64) -> Option<String> {
    if bounded(rows).next().is_some() {
        let text = "low and high: the 95 % interval of what the machine costs, as another recording of it, or a longer one, \
                    would show";
        return Some(text.to_owned());
    }
    let formula = replicas > 1 && rows.iter().any(|row| row.formula && row.slowdown.is_some());
    formula.then(|| format!("low and high: the 95 % interval of the mean over {replicas} replicas"))
}

/// The rows without an upper end, and the length of a recording that would have one.
pub fn open(rows: &[RankPrediction]) -> impl Iterator<Item = String> + '_ {
    rows.iter().filter_map(|row| {
        // A recording in summary form has no interval.
        let low = match (&row.recording, row.slowdown) {
            (Some(bounds), _) => bounds.high.is_none().then_some(bounds.low)?,
            (None, slowdown) => row.missed.and(slowdown)?.mean,
        };
        let least = format!("{}: at least {}", job(rows, row), factor(low));
        let least = match row.missed {
            Some(Missed { every, phases }) => format!("{least}; {}", missed(every.get(), phases)),
            None => format!("{least}; the recording is too short for an upper end"),
        };
        Some(match row.recording.and_then(|bounds| bounds.needed) {
            Some(needed) => format!("{least}; a recording of about {} would have an upper end", time(needed.get())),
            None => least,
        })
    })
}

fn bounded(rows: &[RankPrediction]) -> impl Iterator<Item = (&RankPrediction, &RecordingBounds)> {
    rows.iter().filter_map(|row| Some((row, row.recording.as_ref()?)))
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

/// How much of the added time depends on the longest detours; `None` without any.
fn shares(bounds: &RecordingBounds) -> Option<String> {
    let [one, three, ten] = bounds.longest.map(|share| Value::Share(share).cell());
    (bounds.longest[2] > 0.0).then(|| {
        format!("{one} of the added time comes from the longest detour recorded, {three} from the longest 3, {ten} from the longest 10")
    })
}

/// How far other offsets move the slowdown, unless low and high already say so.
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
    Some(format!("seeds: other offsets on this recording move slowdown by {most} (95 %, {replicas} replicas)"))
}
