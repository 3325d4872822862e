//! Roots: the activity that started a chain on its CPU, to which the whole chain can be charged.
//!
//! The softirqs of a tick, its entry and exit overhead and the cold caches after it disappear with the tick. An interrupt or a timer that wakes a
//! thread disappears with that thread. Rows that belong to another activity name it in their `detail`, as `kind:source`.

use crate::Kind;

/// Separates the tasklets of a softirq from its root: `irq:eth0 → tcp_tasklet_func`.
pub const RAN: &str = " \u{2192} ";

/// The form of a root in the `detail` of a row: `irq:tick`.
pub fn text(kind: Kind, source: &str) -> String {
    format!("{kind}:{source}")
}

/// Whether rows of a kind may name another root in their `detail`.
pub const fn may_be_anothers(kind: Kind) -> bool {
    matches!(kind, Kind::Edge | Kind::Softirq | Kind::Irq)
}

/// The kind and the source of a row's root: the row itself, unless its kind can belong to another and its detail names one.
pub fn row_root<'a>(kind: Kind, source: &'a str, detail: &'a str) -> (Kind, &'a str) {
    if may_be_anothers(kind) { named(detail).unwrap_or((kind, source)) } else { (kind, source) }
}

/// The kind and the source of the root in a `detail`, if any: the inverse of [`text`].
pub fn named(detail: &str) -> Option<(Kind, &str)> {
    let text = detail.split_once(RAN).map_or(detail, |(root, _)| root);
    let (kind, source) = text.split_once(':')?;
    Some((kind.parse().ok()?, source))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rests_softirqs_and_interrupts_belong_to_what_they_name() {
        for (kind, source) in [
            (Kind::Irq, "tick"),
            (Kind::Irq, "timer:hrtimer_wakeup"),
            (Kind::Workqueue, "kworker:vmstat_update"),
            (Kind::Becalm, ""),
        ] {
            let detail = text(kind, source);
            assert_eq!(row_root(Kind::Edge, "entry", &detail), (kind, source));
            assert_eq!(row_root(Kind::Softirq, "rcu", &detail), (kind, source));
            assert_eq!(row_root(Kind::Irq, "timer:hrtimer_wakeup", &detail), (kind, source));
            let with_functions = format!("{detail}{RAN}process_timeout, wake_q");
            assert_eq!(row_root(Kind::Softirq, "timer", &with_functions), (kind, source));
            // A thread with this name is still a thread.
            assert_eq!(row_root(Kind::Task, "sshd", &detail), (Kind::Task, "sshd"));
        }
        for detail in ["", "vector 236", "nothing:of the kind", "process_timeout"] {
            assert_eq!(row_root(Kind::Edge, "edge", detail), (Kind::Edge, "edge"), "{detail}");
            assert_eq!(row_root(Kind::Irq, "eth0", detail), (Kind::Irq, "eth0"), "{detail}");
        }
    }
}
