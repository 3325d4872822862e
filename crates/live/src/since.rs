//! The sums of an observation since its start. They stay small however long it lasts: takers by name, and the waits of threads that still live.

use std::collections::HashMap;

use becalm_model::Kind;
use becalm_model::observed::Owner;
use becalm_observe::document::{ObservedDoc, TakerDoc};
use becalm_units::Nanos;

/// The most takers whose sums are kept; those that took least are dropped.
const MOST_TAKERS: usize = 4_096;

/// A taker: its kind, name, owner and control group.
type TakerKey = (Kind, String, Owner, String);

/// Time that a taker had.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TakenTime {
    /// The sum.
    pub ns: Nanos,
    /// How often it came.
    pub count: u64,
    /// The most that one wait lost to it.
    pub longest: Nanos,
}

/// The sums of all updates.
#[derive(Clone, Debug, Default)]
pub struct SinceStart {
    /// The time observed.
    pub elapsed: Nanos,
    /// The time that threads waited, those that have ended included.
    pub waited: Nanos,
    /// The time queued or kept by a quota, which takers share.
    pub taken: Nanos,
    /// Dropped events.
    pub lost_events: u64,
    takers: HashMap<TakerKey, TakenTime>,
    threads: HashMap<(i32, i32), Nanos>,
}

impl SinceStart {
    /// Adds an update.
    pub fn add(&mut self, update: &ObservedDoc) {
        self.elapsed += update.duration_ns;
        self.lost_events += update.lost_events;
        let before = std::mem::take(&mut self.threads);
        for thread in &update.threads {
            self.waited += thread.waited_ns;
            self.taken += thread.queued_ns + thread.quota_ns;
            let key = (thread.process, thread.tid);
            let waited = before.get(&key).copied().unwrap_or_default() + thread.waited_ns;
            self.threads.insert(key, waited);
        }
        for taker in &update.takers {
            let sum = self.takers.entry(key(taker)).or_default();
            sum.ns += taker.ns;
            sum.count += taker.count;
            sum.longest = sum.longest.max(taker.longest_ns);
        }
        if self.takers.len() > MOST_TAKERS {
            let mut times: Vec<Nanos> = self.takers.values().map(|sum| sum.ns).collect();
            let (_, median, _) = times.select_nth_unstable(MOST_TAKERS / 2);
            let least = *median;
            self.takers.retain(|_, sum| sum.ns > least);
        }
    }

    /// The time of a taker.
    pub fn of(&self, taker: &TakerDoc) -> TakenTime {
        self.takers.get(&key(taker)).copied().unwrap_or_default()
    }

    /// How long a thread of the last update waited.
    pub fn waited(&self, process: i32, tid: i32) -> Nanos {
        self.threads.get(&(process, tid)).copied().unwrap_or_default()
    }

    /// The takers with the largest sums that are not among these, without a time of their own.
    pub fn others(&self, present: &[TakerDoc], most: usize) -> Vec<TakerDoc> {
        let known: Vec<TakerKey> = present.iter().map(key).collect();
        let mut others: Vec<(&TakerKey, &TakenTime)> =
            self.takers.iter().filter(|(key, _)| !known.contains(key)).collect();
        others.sort_by(|one, other| other.1.ns.cmp(&one.1.ns).then_with(|| one.0.1.cmp(&other.0.1)));
        let taker = |((kind, source, owner, cgroup), _): (&TakerKey, &TakenTime)| TakerDoc {
            kind: *kind,
            source: source.clone(),
            owner: *owner,
            ns: Nanos::ZERO,
            count: 0,
            longest_ns: Nanos::ZERO,
            process: None,
            command: String::new(),
            cgroup: cgroup.clone(),
        };
        others.into_iter().take(most).map(taker).collect()
    }
}

fn key(taker: &TakerDoc) -> TakerKey {
    (taker.kind, taker.source.clone(), taker.owner, taker.cgroup.clone())
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use becalm_observe::document::ThreadDoc;

    pub fn taker(source: &str, ms: i64) -> TakerDoc {
        TakerDoc {
            kind: Kind::Task,
            source: source.to_owned(),
            owner: Owner::Others,
            ns: Nanos::from_millis(ms),
            count: 2,
            longest_ns: Nanos::from_millis(ms / 2),
            process: None,
            command: String::new(),
            cgroup: String::new(),
        }
    }

    /// A second during which a thread waits for takers.
    pub fn update(tid: i32, takers: &[TakerDoc]) -> ObservedDoc {
        let second = Nanos::from_secs(1);
        let queued = takers.iter().map(|taker| taker.ns).sum();
        let thread = ThreadDoc {
            tid,
            process: tid,
            name: "solver".to_owned(),
            wall_ns: second,
            ran_ns: second - queued,
            waited_ns: queued,
            queued_ns: queued,
            takers: takers.to_vec(),
            ..ThreadDoc::default()
        };
        let takers = takers.to_vec();
        ObservedDoc { duration_ns: second, threads: vec![thread], takers, ..ObservedDoc::default() }
    }

    #[test]
    fn updates_add_up_and_ended_threads_are_dropped() {
        let mut since = SinceStart::default();
        since.add(&update(1, &[taker("hog", 100), taker("daemon", 10)]));
        since.add(&update(1, &[taker("hog", 300)]));
        assert_eq!(since.waited(1, 1), Nanos::from_millis(410));
        let hog = since.of(&taker("hog", 0));
        assert_eq!((hog.ns, hog.count, hog.longest), (Nanos::from_millis(400), 4, Nanos::from_millis(150)));
        since.add(&update(2, &[]));
        assert_eq!((since.threads.len(), since.waited(1, 1)), (1, Nanos::ZERO));
        assert_eq!((since.waited, since.elapsed), (Nanos::from_millis(410), Nanos::from_secs(3)));
        let others = since.others(&[taker("hog", 0)], 5);
        assert_eq!(others.iter().map(|taker| taker.source.as_str()).collect::<Vec<_>>(), ["daemon"]);
    }

    #[test]
    fn however_many_takers_come_the_costly_ones_are_kept() {
        let mut since = SinceStart::default();
        for round in 0..10 {
            let many: Vec<TakerDoc> = (0..1_000).map(|number| taker(&format!("t{round}-{number}"), 0)).collect();
            since.add(&update(1, &[vec![taker("hog", 50)], many].concat()));
        }
        assert!(since.takers.len() <= MOST_TAKERS, "{}", since.takers.len());
        assert_eq!(since.of(&taker("hog", 0)).ns, Nanos::from_millis(500));
    }
}
