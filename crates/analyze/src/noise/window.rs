//! The part of a recording during which all CPUs of a node were watched.

use becalm_model::node::{NodeDoc, Warning};
use becalm_model::warning;
use becalm_units::Nanos;

use super::NoiseError;

/// A span of time in a recording.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Window {
    /// Its start, since the run's origin.
    pub begin: Nanos,
    /// Its length.
    pub length: Nanos,
}

impl Window {
    /// The time when all loops of a node ran. Ranks of a node replay its CPUs side by side, so time that only one CPU was watched is dropped. A
    /// recording that did not end is cut at `last`, the end of its last detour.
    pub fn common_to_all_cpus(doc: &NodeDoc, last: Option<Nanos>, warnings: &mut Vec<Warning>) -> Self {
        let begin = doc.cpus.iter().map(|cpu| cpu.start_ns).max().unwrap_or(Nanos::ZERO);
        let ends = doc.cpus.iter().map(|cpu| cpu.start_ns.saturating_add(cpu.duration_ns));
        let end = if doc.ended.is_some() {
            ends.min()
        } else {
            warnings.push(warning::not_ended_on(&doc.node));
            last
        };
        let end = end.unwrap_or(Nanos::ZERO);
        let longest = doc.cpus.iter().map(|cpu| cpu.duration_ns).max().unwrap_or(Nanos::ZERO);
        let length = end.checked_sub(begin).unwrap_or(Nanos::ZERO);
        if doc.ended.is_some() && length.as_secs_f64() < 0.99 * longest.as_secs_f64() {
            warnings.push(warning::cut_to_common(&doc.node, longest, length));
        }
        Self { begin, length }
    }
}

/// The time that a node was watched, in nanoseconds of the wall clock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WatchedTime {
    /// `None` if the start of the node is unknown.
    begin: Option<i128>,
    /// Its length.
    pub length: Nanos,
}

impl WatchedTime {
    /// Converts from the node's origin to the wall clock.
    pub fn new(doc: &NodeDoc, window: Window) -> Self {
        let begin = doc.origin.map(|origin| origin.as_nanosecond() + i128::from(window.begin.get()));
        Self { begin, length: window.length }
    }

    /// The time from this start to that of `other`, which is within this one.
    pub fn until(self, other: Self) -> Nanos {
        let apart = other.begin.zip(self.begin).map_or(0, |(other, own)| other - own);
        Nanos::new(i64::try_from(apart).unwrap_or(i64::MAX))
    }

    /// The time when all were watched. Fails if that is less than half of the longest, or a start is unknown.
    pub fn common(all: &[Self]) -> Result<Self, NoiseError> {
        let begins: Option<Vec<i128>> = all.iter().map(|own| own.begin).collect();
        let begins = begins.ok_or(NoiseError::StartUnknown)?;
        let ends = begins.iter().zip(all).map(|(begin, own)| begin + i128::from(own.length.get()));
        let (begin, end) = (begins.iter().copied().max().unwrap_or(0), ends.min().unwrap_or(0));
        let longest = all.iter().map(|own| own.length).max().unwrap_or(Nanos::ZERO);
        let common = i64::try_from((end - begin).max(0)).map_or(Nanos::MAX, Nanos::new);
        if common == Nanos::ZERO || common.get() < longest.get() / 2 {
            return Err(NoiseError::NotAtOneTime { common, longest });
        }
        Ok(Self { begin: Some(begin), length: common })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_are_cut_to_the_time_that_they_share() {
        let time = |begin: i128, length: i64| WatchedTime { begin: Some(begin), length: Nanos::new(length) };
        let nodes = [time(1_000, 100), time(1_030, 100)];
        let common = WatchedTime::common(&nodes).unwrap();
        assert_eq!(common, time(1_030, 70));
        assert_eq!(nodes.map(|own| own.until(common)), [Nanos::new(30), Nanos::ZERO]);
        for apart in [[time(1_000, 100), time(1_051, 100)], [time(0, 10), time(50, 10)]] {
            assert!(matches!(WatchedTime::common(&apart), Err(NoiseError::NotAtOneTime { .. })), "{apart:?}");
        }
        let unknown = WatchedTime { begin: None, length: Nanos::new(100) };
        assert!(matches!(WatchedTime::common(&[nodes[0], unknown]), Err(NoiseError::StartUnknown)));
    }
}
