//! The document of a resumed run of work: the totals of its sessions.

use becalm_model::node::{CpuDoc, NodeDoc, TraceChange, WorkCount, WorkDoc, WorkSession};
use becalm_units::Nanos;

/// Adds a session to the run's document; its origin is `offset` after that of the run.
pub fn joined(before: &NodeDoc, session: &NodeDoc, offset: Nanos) -> NodeDoc {
    let mut node = before.clone();
    node.ended = session.ended;
    for (cpu, new) in node.cpus.iter_mut().zip(&session.cpus) {
        add_cpu(cpu, new);
    }
    for counter in &session.counters {
        match node.counters.iter_mut().find(|known| known.cpu == counter.cpu && known.name == counter.name) {
            Some(known) => {
                known.growth = known.growth.saturating_add(counter.growth);
                known.traced = known.traced.zip(counter.traced).map(|(before, now)| before.plus(now));
            }
            None => node.counters.push(counter.clone()),
        }
    }
    for warning in &session.warnings {
        if !node.warnings.contains(warning) {
            node.warnings.push(warning.clone());
        }
    }
    if let (Some(tracing), Some(new)) = (&mut node.tracing, &session.tracing) {
        let moved =
            |change: &TraceChange| TraceChange { traced_until_ns: change.traced_until_ns + offset, ..change.clone() };
        tracing.changed = tracing.changed.take().or_else(|| new.changed.as_ref().map(moved));
    }
    // Sources of the whole are only known if they are known for each session.
    if session.tracing.is_none() {
        node.tracing = None;
        node.rung = node.rung.min(session.rung);
    }
    node.clock.rate_error_ratio = node.clock.rate_error_ratio.max(session.clock.rate_error_ratio);
    if let (Some(work), Some(new)) = (&mut node.settings.work, &session.settings.work) {
        add_work(work, new);
        work.sessions.push(WorkSession { start_ns: offset, ended: session.ended });
    }
    node
}

fn add_cpu(cpu: &mut CpuDoc, new: &CpuDoc) {
    cpu.duration_ns += new.duration_ns;
    cpu.iterations += new.iterations;
    cpu.max_ns = cpu.max_ns.max(new.max_ns);
    cpu.incomplete += new.incomplete;
    cpu.lost_events += new.lost_events;
    cpu.events += new.events;
    cpu.unmatched_events += new.unmatched_events;
    cpu.faults += new.faults;
    cpu.voluntary_switches += new.voluntary_switches;
    cpu.smis = cpu.smis.zip(new.smis).map(|(before, now)| before.saturating_add(now));
    cpu.involuntary_switches += new.involuntary_switches;
    cpu.cut_short |= new.cut_short;
}

/// Whether both counts are of the same event on the same CPU and in the same space.
fn count_the_same(a: &WorkCount, b: &WorkCount) -> bool {
    (a.cpu, &a.count.event, a.count.space) == (b.cpu, &b.count.event, b.count.space)
}

fn add_work(work: &mut WorkDoc, new: &WorkDoc) {
    for one in &mut work.loops {
        let others = new.loops.iter().find(|other| other.cpu == one.cpu).map_or(0, |other| other.others_iterations);
        one.others_iterations = one.others_iterations.saturating_add(others);
    }
    for count in &new.counts {
        match work.counts.iter_mut().find(|known| count_the_same(known, count)) {
            Some(known) => known.count.add(&count.count),
            None => work.counts.push(count.clone()),
        }
    }
    for line in &new.not_counted {
        if !work.not_counted.contains(line) {
            work.not_counted.push(line.clone());
        }
    }
}
