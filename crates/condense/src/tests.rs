use becalm_model::digest::{BYTES_A_CPU, LONGEST, OTHERS, SLOTS, SOURCES};
use becalm_model::node::{CpuDoc, NodeDoc, Rung};
use becalm_model::{Document, node};
use becalm_testing::noise::Source;
use becalm_units::CpuId;

use super::*;

const HOUR: f64 = 3.6e12;

fn doc() -> NodeDoc {
    NodeDoc {
        schema: node::SCHEMA.to_owned(),
        node: "n0".to_owned(),
        program: "becalm 0.1.0".to_owned(),
        origin: Some("2026-01-01T00:00:00Z".parse().unwrap()),
        ended: None,
        machine: node::MachineDoc::default(),
        clock: node::ClockDoc::default(),
        settings: node::SettingsDoc::default(),
        rung: Rung::Tracepoints,
        cpus: vec![CpuDoc::new(CpuId::new(0))],
        tracing: None,
        stored: None,
        counters: Vec::new(),
        warnings: Vec::new(),
    }
}

fn condenser() -> Condenser {
    Condenser::new(doc().origin_ns() as i64, [CpuId::new(0)], true)
}

/// A source that is its own root.
fn named(counts: &mut Condenser, kind: Kind, source: &str) -> Owner {
    Owner::itself(counts.sources().id(kind, source), kind)
}

/// An activity alone in its detour.
fn one(counts: &mut Condenser, detour: u64, start_ns: i64, ns: i64, owner: Owner) {
    counts.activity(0, &ActivityRow { detour, start_ns, self_ns: ns, owner });
    counts.detour(0, start_ns, ns, false);
}

/// A quiet hour: a tick every 4 ms and some rare ones.
#[test]
fn an_hour_of_a_cpu_takes_little_and_adds_up() {
    let mut counts = condenser();
    let (mut random, mut noise, mut number) = (Source::seeded(1), 0, 0);
    let tick = named(&mut counts, Kind::Irq, "local_timer");
    let rare: Vec<Owner> = (0..12).map(|at| named(&mut counts, Kind::Task, &format!("daemon{at}"))).collect();
    for at in 0..900_000_i64 {
        let ns = 3_000 + (random.uniform() * 2_000.0) as i64;
        one(&mut counts, number, at * 4_000_000, ns, tick);
        (noise, number) = (noise + ns, number + 1);
        if at % 97 == 0 {
            let ns = random.pareto(20_000.0, 0.3) as i64;
            one(&mut counts, number, at * 4_000_000 + 1_000_000, ns, rare[at as usize / 97 % 12]);
            (noise, number) = (noise + ns, number + 1);
        }
    }
    let digest = counts.document(doc());
    digest.check().unwrap();
    let cpu = &digest.cpus[0];
    assert_eq!((cpu.durations.total_ns, cpu.noise_ns.iter().sum::<i64>()), (noise, noise));
    assert_eq!(cpu.sources.iter().map(|source| source.whole_ns).sum::<i64>(), noise);
    assert_eq!((cpu.lengths.count(), cpu.began.iter().sum::<u64>()), (number, number));
    assert!(cpu.books_closed && cpu.longest.len() == LONGEST && digest.slots <= SLOTS, "{}", digest.slots);
    let tick = &cpu.sources[0];
    assert_eq!(tick.source, "local_timer");
    let bytes = serde_json::to_vec(&digest).unwrap().len();
    assert!(bytes < 64 << 10, "{bytes} bytes of an hour");
}

/// The worst case: all possible lengths and gaps, with more sources than are kept.
#[test]
fn no_recording_takes_more_than_is_stated() {
    let mut counts = condenser();
    let mut random = Source::seeded(2);
    let names: Vec<Owner> =
        (0..3_000).map(|at| named(&mut counts, Kind::ALL[at % 8], &format!("source-{at:056}"))).collect();
    let mut start = 0.0;
    for number in 0..1_500_000_u64 {
        let ns = 10_f64.powf(2.0 + 5.0 * random.uniform());
        let source = names[(3_000.0 * random.uniform().powi(4)) as usize];
        one(&mut counts, number, start as i64, ns as i64, source);
        start += ns + 10_f64.powf(2.0 + 8.0 * random.uniform());
    }
    assert!(start > 1_000.0 * HOUR / 3_600.0, "{start}");
    let digest = counts.document(doc());
    digest.check().unwrap();
    let cpu = &digest.cpus[0];
    assert!(cpu.sources.len() > SOURCES && cpu.sources[SOURCES..].iter().all(|source| source.source == OTHERS));
    assert_eq!(cpu.sources.iter().map(|source| source.whole_ns).sum::<i64>(), cpu.durations.total_ns);
    let bytes = serde_json::to_vec(&digest).unwrap().len() as u64;
    assert!(bytes < BYTES_A_CPU, "{bytes}");
}

#[test]
fn becalms_own_time_is_kept_apart() {
    let mut counts = condenser();
    let (tick, own) = (named(&mut counts, Kind::Irq, "tick"), named(&mut counts, Kind::Becalm, "becalm"));
    for (detour, self_ns, owner) in [(0, 5_000, tick), (0, 70_000, own), (1, 40_000, own), (2, 6_000, tick)] {
        counts.activity(0, &ActivityRow { detour, start_ns: detour as i64 * 1_000_000, self_ns, owner });
    }
    for (at, ns) in [75_000, 40_000, 6_000].into_iter().enumerate() {
        counts.detour(0, at as i64 * 1_000_000, ns, at == 0);
    }
    let digest = counts.document(doc());
    let cpu = &digest.cpus[0];
    assert_eq!((cpu.stored.count, cpu.stored.total_ns), (3, 121_000));
    assert_eq!((cpu.durations.count, cpu.durations.total_ns, cpu.durations.max_ns), (2, 11_000, 6_000));
    assert_eq!((cpu.own_ns, cpu.own_longest_ns, cpu.incomplete), (110_000, 70_000, 1));
    assert!(cpu.books_closed);
    assert_eq!(cpu.longest.iter().map(|detour| detour.duration_ns).collect::<Vec<_>>(), [5_000, 6_000]);
}

#[test]
fn books_that_do_not_close_are_seen() {
    let mut counts = condenser();
    let owner = named(&mut counts, Kind::Irq, "tick");
    counts.activity(0, &ActivityRow { detour: 0, start_ns: 5, self_ns: 50, owner });
    counts.detour(0, 5, 60, false);
    assert!(!counts.document(doc()).cpus[0].books_closed);
}
