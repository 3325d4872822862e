//! The activities of a detour as slices of time that nest: what interrupts lies within what it interrupts.

use becalm_model::{Activity, Detour, Kind};

/// The time from the begin to the end of an activity, with all that interrupted it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Slice {
    /// When it begins, in nanoseconds since the run's origin.
    pub begin: i64,
    pub end: i64,
    /// Which of the detour's activities it is.
    pub activity: usize,
}

/// How urgent a kind is: what interrupts is more urgent than what it interrupts.
const fn urgency(kind: Kind) -> u8 {
    match kind {
        Kind::Nmi => 3,
        Kind::Irq => 2,
        Kind::Softirq => 1,
        _ => 0,
    }
}

/// Finds from when until when each activity of a detour lasts: in order of their begin, an outer one before an inner one. Any two of them lie
/// apart or one within the other, and all within the detour.
///
/// Replays the detour: time between two starts is taken off the innermost activity that still has self time, which ends when it has
/// none; what then begins lies within all that have not ended, but for rests and unseen time, which end there. What would go on behind the detour's end is cut there: the loop's
/// shortest step, which is taken off a detour, may stand in the middle of its activities.
pub fn slices(detour: &Detour, activities: &[Activity], into: &mut Vec<Slice>) {
    into.clear();
    let begin = detour.start.get();
    let end = begin.saturating_add(detour.duration.get().max(0));
    let start = |activity: usize| activities[activity].start.get().clamp(begin, end);
    let mut order: Vec<usize> = (0..activities.len()).collect();
    order.sort_by_key(|activity| (start(*activity), urgency(activities[*activity].kind)));
    // The slice of what has not ended, and its self time that is left.
    let mut open: Vec<(usize, i64)> = Vec::new();
    let mut now = begin;
    for activity in order {
        pass(&mut open, &mut now, start(activity), into);
        while let Some((rest, _)) = open.pop_if(|(rest, _)| activities[into[*rest].activity].kind.is_rest()) {
            into[rest].end = now;
        }
        open.push((into.len(), activities[activity].self_time.get().max(0)));
        into.push(Slice { begin: now, end, activity });
    }
    pass(&mut open, &mut now, end, into);
}

/// Lets time pass until an instant: innermost slices whose time is used up end.
fn pass(open: &mut Vec<(usize, i64)>, now: &mut i64, until: i64, slices: &mut [Slice]) {
    while let Some((slice, left)) = open.last_mut() {
        let elapsed = until - *now;
        if *left > elapsed {
            *left -= elapsed;
            break;
        }
        *now += *left;
        slices[*slice].end = *now;
        open.pop();
    }
    *now = until;
}

#[cfg(test)]
pub(super) mod tests;
