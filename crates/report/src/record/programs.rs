//! Threads of one program as one source, for the short report.

use std::cmp::Reverse;
use std::collections::HashMap;

use becalm_analyze::summary::SourceSummary;
use becalm_model::plain_name::plain_name;
use becalm_model::{Kind, Platform};

/// The shortest name of a program that threads can share: `x11` and `x264` are two programs.
const SHORTEST: usize = 3;

/// A source, or the threads of a program with their sums.
pub(super) struct Program {
    /// The sums of several threads have the name of the program.
    pub(super) source: SourceSummary,
    threads: usize,
}

impl Program {
    /// The plain name on this platform: `thread sshd`, and `tokio-worker (8 threads)` of several.
    pub(super) fn name(&self, platform: Option<Platform>) -> String {
        let SourceSummary { kind, source, .. } = &self.source;
        match (self.threads, kind) {
            (1, _) => plain_name(*kind, source, platform),
            (threads, Kind::Kthread) => format!("{source} ({threads} kernel threads)"),
            (threads, _) => format!("{source} ({threads} threads)"),
        }
    }

    fn add(&mut self, name: &str, other: &SourceSummary) {
        self.threads += 1;
        let sums = &mut self.source;
        name.clone_into(&mut sums.source);
        sums.times.merge(&other.times);
        sums.whole_ns = sums.whole_ns.saturating_add(other.whole_ns);
        let sum = |one: Option<f64>, other: Option<f64>| Some(one? + other?);
        sums.share = sum(sums.share, other.share);
        sums.time_ratio = sum(sums.time_ratio, other.time_ratio);
        sums.run_at_least_ns = None;
    }
}

/// The sources that have a total, with the threads of each program together; the largest total first.
pub(super) fn programs(sources: &[SourceSummary]) -> Vec<Program> {
    let mut programs: Vec<Program> = Vec::new();
    let mut places: HashMap<(&str, &str), usize> = HashMap::new();
    for source in sources.iter().filter(|source| source.whole_ns > 0) {
        let is_thread = matches!(source.kind, Kind::Task | Kind::Kthread);
        let name = if is_thread { program(&source.source) } else { &source.source };
        let place = *places.entry((source.kind.name(), name)).or_insert(programs.len());
        match programs.get_mut(place) {
            Some(program) => program.add(name, source),
            None => programs.push(Program { source: source.clone(), threads: 1 }),
        }
    }
    programs.sort_by_key(|program| Reverse(program.source.whole_ns));
    programs
}

/// The part of a thread's name that the threads of its program share: up to the first blank, digit, slash or colon. Threads of interrupts keep
/// their names, because each interrupt has its own fix.
fn program(thread: &str) -> &str {
    if thread.starts_with("irq/") {
        return thread;
    }
    let ends = |letter: char| letter.is_ascii_digit() || matches!(letter, ' ' | '/' | ':');
    let name = thread.split(ends).next().unwrap_or(thread).trim_end_matches(|letter: char| !letter.is_alphanumeric());
    if name.len() < SHORTEST { thread } else { name }
}

#[cfg(test)]
mod tests {
    use becalm_stats::Moments;

    use super::*;

    fn source(kind: Kind, name: &str, own: &[i64], whole_ns: i64) -> SourceSummary {
        let mut times = Moments::EMPTY;
        own.iter().for_each(|ns| times.add(*ns));
        SourceSummary {
            place: None,
            source: name.to_owned(),
            kind,
            times,
            whole_ns,
            share: Some(whole_ns as f64 / 100.0),
            time_ratio: Some(whole_ns as f64 / 10_000.0),
            run_at_least_ns: None,
        }
    }

    #[test]
    fn threads_share_the_name_of_their_program() {
        for (name, threads) in [
            ("tokio-worker", &["tokio-worker-0", "tokio-worker-17"][..]),
            ("opt", &["opt cgu.02", "opt cgu.03", "opt eyjfnb3ydtr"]),
            ("kworker", &["kworker", "kworker/1:0", "kworker/1:1H", "kworker/u8:3-events", "kworker/R-rcu_gp"]),
            ("ksoftirqd", &["ksoftirqd/0", "ksoftirqd/1"]),
            ("sugov", &["sugov:0"]),
            ("python", &["python3.11", "python"]),
        ] {
            threads.iter().for_each(|thread| assert_eq!(program(thread), name, "{thread}"));
        }
        for thread in ["sshd", "x11", "x264", "cc1", "cc1plus", "7z", "", "irq/virtio1-req", "irq/virtio2-req"] {
            assert_eq!(program(thread), thread);
        }
    }

    #[test]
    fn threads_of_a_program_are_one_source_with_their_sums() {
        let sources = [
            source(Kind::Irq, "virtio1", &[30], 30),
            source(Kind::Task, "make", &[25], 25),
            source(Kind::Task, "opt cgu.02", &[4, 9], 20),
            source(Kind::Irq, "virtio2", &[15], 15),
            source(Kind::Task, "opt cgu.03", &[12], 14),
            source(Kind::Kthread, "opt", &[1], 1),
            source(Kind::Task, "opt cgu.04", &[1], 0),
        ];
        let rows: Vec<(String, i64, u64, Option<i64>)> = programs(&sources)
            .iter()
            .map(|row| (row.name(None), row.source.whole_ns, row.source.times.count(), row.source.times.max()))
            .collect();
        let row = |name: &str, whole, count, max| (name.to_owned(), whole, count, Some(max));
        assert_eq!(
            rows,
            [
                row("opt (2 threads)", 34, 3, 12),
                row("interrupt virtio1", 30, 1, 30),
                row("thread make", 25, 1, 25),
                row("interrupt virtio2", 15, 1, 15),
                row("kernel thread opt", 1, 1, 1),
            ]
        );
        let opt = &programs(&sources)[0].source;
        assert!((opt.share.unwrap() - 0.34).abs() < 1e-9 && (opt.time_ratio.unwrap() - 0.0034).abs() < 1e-9);
    }
}
