//! The results of limits in words.

use becalm_analyze::limits::{Answer, Cause, Limit, LimitCheck, Shortage};
use becalm_stats::TooLittle;
use becalm_units::{Share, counted, plural};

use super::{CheckReport, Counts};
use crate::form::value::{three_digits, time};

/// A share as typed, without the digits added by binary fractions.
pub(super) fn percent(share: Share) -> String {
    let text = format!("{:.9}", share.ratio() * 100.0);
    format!("{}%", text.trim_end_matches('0').trim_end_matches('.'))
}

/// The overall answer.
pub(super) fn headline(counts: &Counts) -> String {
    let all = counts.held + counts.exceeded + counts.not_enough_data;
    let mut text = match counts.exceeded {
        0 if counts.not_enough_data == 0 => {
            format!("{} {}", counted(all, "limit", "limits"), plural(all, "holds", "hold"))
        }
        0 => format!("No limit is exceeded, and {} of {all} {}", counts.held, plural(counts.held, "holds", "hold")),
        some => format!("{some} of {} {} exceeded", counted(all, "limit", "limits"), plural(some, "is", "are")),
    };
    if counts.not_enough_data > 0 {
        text += &format!("; {} cannot be decided for lack of data", counts.not_enough_data);
    }
    text + "."
}

/// The result of one limit on one CPU, in a sentence.
pub(super) fn sentence(row: &LimitCheck) -> String {
    let found = match row.limit {
        Limit::Noise(_) => match row.noise_ratio {
            Some(lost) => format!("CPU {} lost {}% of its time{}", row.cpu, three_digits(lost * 100.0), between(row)),
            None => format!("the share of time that CPU {} lost is not known", row.cpu),
        },
        Limit::Detour(_) => match row.longest.get() {
            0 => format!("CPU {} had no interruption", row.cpu),
            longest => format!("CPU {} lost at most {} at once", row.cpu, time(longest)),
        },
    };
    let limit = match row.limit {
        Limit::Noise(most) => percent(most),
        Limit::Detour(most) => most.to_string(),
    };
    let cause = row.cause.as_ref().map(|cause| format!("; {}", because(cause))).unwrap_or_default();
    match row.answer {
        Answer::Holds => format!("{found}, no more than the {limit} allowed{cause}"),
        Answer::Exceeded => format!("{found}, more than the {limit} allowed{cause}"),
        Answer::NotEnoughData(why) => {
            format!("{found}, which does not show that the limit of {limit} holds: {}{cause}", lacking(why))
        }
    }
}

fn between(row: &LimitCheck) -> String {
    let interval = row.interval;
    let ends = interval.and_then(|interval| Some((interval.low()?, interval.high()?)));
    ends.map_or_else(String::new, |(low, high)| {
        format!(" (95 % CI {}% to {}%)", three_digits(low * 100.0), three_digits(high * 100.0))
    })
}

fn because(cause: &Cause) -> String {
    let Cause { kind, source, share, longest_ns } = cause;
    match (share, longest_ns) {
        (Some(share), _) => format!("{:.0} % of that is {kind} {source}", share * 100.0),
        (None, Some(longest)) => format!("the longest activity there is {kind} {source} with {}", time(*longest)),
        (None, None) => format!("mainly {kind} {source}"),
    }
}

fn lacking(why: Shortage) -> String {
    let longer = |needed_ns| format!("record about {}", time(needed_ns));
    match why {
        Shortage::Unobserved => "the observed time of the CPU is not known".to_owned(),
        Shortage::Doubtful(code) => format!("the recording has not enough data for a verdict (warning {code})"),
        Shortage::Wide => "the interval reaches above it; record for longer".to_owned(),
        Shortage::Unstored(count) => {
            format!(
                "{} only counted, because there was no room",
                counted(count, "interruption was", "interruptions were")
            )
        }
        Shortage::NoInterval(TooLittle::NoDetour) => "no interruption was seen".to_owned(),
        Shortage::NoInterval(TooLittle::FewTrains { trains, needed_ns }) => {
            let stretches = three_digits(trains);
            format!("nearly all of that is from about {stretches} stretches of time; {}", longer(needed_ns))
        }
        Shortage::NoInterval(TooLittle::LongTrains { block_ns }) => {
            let needed = longer(becalm_stats::run_for_blocks(block_ns));
            format!("the noise drifts over stretches of about {}; {needed}", time(block_ns))
        }
        Shortage::NoInterval(TooLittle::ShortRun) => {
            "the recording is too short to be cut into 20 parts; record for longer".to_owned()
        }
    }
}

/// The events that a longer recording may find although these limits hold.
pub(super) fn missed(report: &CheckReport<'_>) -> Option<String> {
    let rarest = report.rows.iter().filter_map(|row| row.rarest_seen_ns).max()?;
    Some(format!("events rarer than once in {} per CPU may be missing", time(rarest)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_written_as_it_was_typed() {
        for text in ["0.1%", "0.05%", "7%", "100%", "0.000001%", "0%"] {
            assert_eq!(percent(text.parse().unwrap()), text);
        }
    }

    #[test]
    fn the_answer_counts() {
        let said = |held, exceeded, not_enough_data| headline(&Counts { held, exceeded, not_enough_data });
        assert_eq!(said(1, 0, 0), "1 limit holds.");
        assert_eq!(said(4, 0, 0), "4 limits hold.");
        assert_eq!(said(1, 0, 1), "No limit is exceeded, and 1 of 2 holds; 1 cannot be decided for lack of data.");
        assert_eq!(said(1, 2, 1), "2 of 4 limits are exceeded; 1 cannot be decided for lack of data.");
    }
}
