//! Sums over threads: the rules for what others took from them, and for threads that only help.

use becalm_model::observed::Owner;
use becalm_report::form::value::Value;
use becalm_units::{Nanos, printable};

use crate::document::{ObservedDoc, PartDoc, TakerDoc, ThreadDoc};

/// Threads that sleep for more than this share of their time are left out of the default report.
const HELPER: f64 = 0.99;

/// Whether a thread or several sleep nearly all the time.
pub fn is_helper(asleep: i64, wall: i64) -> bool {
    ratio(asleep, wall) > HELPER
}

/// A share; 0 of nothing.
pub fn ratio(part: i64, whole: i64) -> f64 {
    if whole > 0 { part as f64 / whole as f64 } else { 0.0 }
}

/// Whether a taker is an observed thread, too. Its time is not lost to others.
pub const fn is_sibling(owner: Owner) -> bool {
    matches!(owner, Owner::Process | Owner::Chosen)
}

/// Whether a part of the time on a CPU is work of the kernel on behalf of the thread.
pub fn is_own(part: &PartDoc) -> bool {
    part.kind == "own"
}

/// Whether a part of the time on a CPU is an interrupt on top.
pub fn is_interrupt(part: &PartDoc) -> bool {
    !matches!(part.kind.as_str(), "program" | "own" | "host")
}

/// Sums over the shown threads.
pub struct Totals<'a> {
    /// The shown threads.
    pub shown: Vec<&'a ThreadDoc>,
    /// Threads that are left out.
    pub helpers: Vec<&'a ThreadDoc>,
    /// The length of their lives.
    pub wall: i64,
    /// The time that they could have run.
    pub waited: i64,
    /// Interrupts on top of running threads.
    pub interrupts: i64,
    /// The time that the hypervisor took.
    pub host: i64,
    /// The time that observed threads took from each other.
    pub siblings: i64,
}

impl<'a> Totals<'a> {
    /// Over the threads of a document, all of them or without those that sleep all the time.
    pub fn new(doc: &'a ObservedDoc, all: bool) -> Self {
        let is_helper = |thread: &&ThreadDoc| !all && is_helper(thread.asleep_ns.get(), thread.wall_ns.get());
        let (mut helpers, mut shown): (Vec<&ThreadDoc>, Vec<&ThreadDoc>) = doc.threads.iter().partition(is_helper);
        if shown.is_empty() {
            std::mem::swap(&mut helpers, &mut shown);
        }
        Self { helpers, ..Self::of(shown) }
    }

    /// Over these threads.
    pub fn of(shown: Vec<&'a ThreadDoc>) -> Self {
        let sum = |of: &dyn Fn(&ThreadDoc) -> i64| shown.iter().map(|thread| of(thread)).sum::<i64>();
        let parts = |is_it: &dyn Fn(&PartDoc) -> bool| {
            sum(&|thread| thread.ran.iter().filter(|part| is_it(part)).map(|part| part.ns.get()).sum())
        };
        let siblings = |thread: &ThreadDoc| {
            let is_sibling = |taker: &&TakerDoc| is_sibling(taker.owner);
            thread.takers.iter().filter(is_sibling).map(|taker| taker.ns.get()).sum()
        };
        Self {
            wall: sum(&|thread| thread.wall_ns.get()),
            waited: sum(&|thread| thread.waited_ns.get()),
            interrupts: parts(&is_interrupt),
            host: parts(&|part| part.kind == "host"),
            siblings: sum(&siblings),
            shown,
            helpers: Vec::new(),
        }
    }

    /// The sum of a time.
    pub fn sum(&self, of: impl Fn(&ThreadDoc) -> Nanos) -> i64 {
        self.shown.iter().map(|thread| of(thread).get()).sum()
    }

    /// What others took: waits without those for each other, interrupts on top, the hypervisor.
    pub const fn lost(&self) -> i64 {
        self.waited - self.siblings + self.interrupts + self.host
    }

    /// The time by parts; interrupts, own work and the hypervisor are parts of the time on a CPU.
    pub fn parts(&self) -> [(&'static str, i64); 10] {
        let own = |thread: &ThreadDoc| thread.ran.iter().filter(|part| is_own(part)).map(|part| part.ns).sum();
        [
            ("ran", self.sum(|thread| thread.ran_ns)),
            ("ran, interrupts on top", self.interrupts),
            ("ran, kernel work of its own", self.sum(own)),
            ("ran, hypervisor", self.host),
            ("queued", self.sum(|thread| thread.queued_ns)),
            ("quota", self.sum(|thread| thread.quota_ns)),
            ("on the way to a CPU", self.sum(|thread| thread.on_the_way_ns)),
            ("asleep", self.sum(|thread| thread.asleep_ns - thread.stopped_ns)),
            ("stopped", self.sum(|thread| thread.stopped_ns)),
            ("not known", self.sum(|thread| thread.unknown_ns)),
        ]
    }

    /// The largest parts of the threads' time by name, for a table cell.
    pub fn largest(&self, of: impl Fn(&ThreadDoc) -> &[PartDoc], is_it: impl Fn(&PartDoc) -> bool) -> String {
        let mut sums: Vec<(String, i64)> = Vec::new();
        for part in self.shown.iter().flat_map(|thread| of(thread)).filter(|part| is_it(part)) {
            match sums.iter_mut().find(|(name, _)| *name == part.source) {
                Some((_, sum)) => *sum += part.ns.get(),
                None => sums.push((part.source.clone(), part.ns.get())),
            }
        }
        sums.retain(|(name, ns)| *ns > 0 && !name.is_empty());
        sums.sort_by_key(|(_, ns)| std::cmp::Reverse(*ns));
        let phrase = |(name, ns): &(String, i64)| format!("{} {}", printable(name), Value::Time(*ns).cell());
        sums.iter().take(2).map(phrase).collect::<Vec<_>>().join(", ")
    }
}
