use becalm_account::Owner;
use becalm_bundle::Bundle;
use becalm_condense::{ActivityRow, Condenser};
use becalm_fixtures::mixed::{write_mixed, write_stops};
use becalm_model::node::CpuDoc;
use becalm_scale::Alignment;
use becalm_scale::blame::{BlameWanted, blame};
use becalm_scale::predict::{Prediction, Question};
use becalm_scale::watch::ReplayWatch;
use becalm_units::CpuId;

use super::*;
use crate::condense::condense;
use crate::summary::{Detail, summarize};

const RANKS: [u64; 3] = [64, 1 << 10, 1 << 14];

fn question(grain: Nanos) -> Question {
    Question {
        grain,
        phases: 2_000,
        collective: "ideal".parse().unwrap(),
        network: "infiniband".parse().unwrap(),
        bytes: 0,
        per_node: 1,
        synchronized: false,
        seed: 1,
        replicas: 3,
    }
}

/// The added time for each number of ranks, relative to the time without noise.
fn added(input: &NoiseInput, grain: Nanos) -> Vec<f64> {
    let noise = input.noise.clone().aligned(Alignment::Independent).unwrap();
    let prediction = Prediction::new(&noise, question(grain)).unwrap();
    RANKS.iter().map(|ranks| prediction.slowdown(*ranks).unwrap().unwrap().mean - 1.0).collect()
}

/// A stored recording with the mixed noise of the fixtures.
fn mixed(seed: u64) -> (tempfile::TempDir, Bundle) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mixed.becalm");
    write_mixed(&path, seed);
    let bundle = Bundle::open(&path).unwrap();
    (folder, bundle)
}

/// The full recording, and its summary form for phases of a grain.
fn both(bundle: &Bundle, grain: Nanos) -> (NoiseInput, NoiseInput) {
    let digest = condense(bundle, &bundle.nodes()[0].node).unwrap();
    let full = NoiseInput::from_run(bundle, &Selection::default(), true).unwrap();
    (full, NoiseInput::from_digests(&[digest], "mixed", true, grain).unwrap())
}

/// The loss of the summary form as stated in the book, for jobs whose phases take no more CPU time than was recorded.
#[test]
fn predictions_lose_little() {
    let mut losses = Vec::new();
    for seed in 1..=3 {
        let (_folder, bundle) = mixed(seed);
        for (grain_us, carried) in [(100, 3), (200, 3), (1_000, 3), (2_000, 3), (10_000, 2)] {
            let grain = Nanos::from_micros(grain_us);
            let (full, short) = both(&bundle, grain);
            for (all, drawn) in full.noise.traces().zip(short.noise.traces()) {
                let (all, drawn) = (all.noise_ratio(), drawn.noise_ratio());
                assert!((drawn / all - 1.0).abs() < 0.01, "{drawn} for {all}");
            }
            let (all, drawn) = (added(&full, grain), added(&short, grain));
            losses.extend(all.iter().zip(&drawn).take(carried).map(|(all, drawn)| (drawn / all - 1.0).abs()));
        }
    }
    let (mean, most) = (losses.iter().sum::<f64>() / losses.len() as f64, losses.iter().copied().fold(0.0, f64::max));
    assert!(mean < 0.03 && most < 0.11, "{mean} {most} {losses:?}");
}

/// Noise with dependent detours: drawn source by source, each detour independently, it costs 1.6 to 9 times too much.
#[test]
fn turns_bursts_and_ticks_cost_what_they_cost() {
    let mut random = SplitMix64::new(9);
    let mut jitter = |ns: f64| (ns * (0.95 + 0.1 * random.uniform())) as i64;
    let end = 20_000_000_000;
    // A thread that alternates with the job; ticks of 3 to 7 us alone; two threads that come and go.
    let mut turns = Vec::new();
    let mut at = 0;
    while at < end {
        let turn = jitter(3e6);
        turns.push((at, turn, "turns"));
        at += turn + jitter(3e6);
    }
    let mut random = SplitMix64::new(10);
    let ticks: Vec<_> =
        (0..end / 4_000_000).map(|tick| (tick * 4_000_000, 3_000 + random.below(4_000) as i64, "tick")).collect();
    let mut hogs = Vec::new();
    let mut at = 0;
    while at < end {
        let until = at + 300_000_000 + random.below(500_000_000) as i64;
        while at < until {
            let (turn, hog) = (jitter(3e6) * (1 + random.below(2) as i64), random.below(2));
            hogs.push((at, turn, ["hog", "pig"][hog as usize]));
            at += turn + jitter(3e6);
        }
        at += 200_000_000 + random.below(900_000_000) as i64;
    }
    let (_folder, bundle) = mixed(1);
    for (name, detours) in [("turns", turns), ("ticks", ticks), ("hogs", hogs)] {
        let mut condenser = Condenser::new(0, [CpuId::new(0)], true);
        for (number, (start_ns, ns, source)) in (0..).zip(&detours) {
            let owner = Owner::itself(condenser.sources().id(Kind::Task, source), Kind::Task);
            let row = ActivityRow { detour: number, start_ns: *start_ns, self_ns: *ns, owner };
            condenser.activity(0, &row);
            condenser.detour(0, *start_ns, *ns, false);
        }
        let mut run = bundle.nodes()[0].clone();
        run.cpus = vec![CpuDoc { duration_ns: Nanos::new(end), ..CpuDoc::new(CpuId::new(0)) }];
        let digest = condenser.document(run);
        let pairs = detours.iter().map(|(start, ns, _)| (Nanos::new(*start), Nanos::new(*ns))).collect();
        let full = NoiseInput::from_cpus("n0", Nanos::new(end + 10_000_000), vec![pairs]).unwrap();
        for grain_us in [100, 1_000, 10_000] {
            let grain = Nanos::from_micros(grain_us);
            let short = NoiseInput::from_digests(std::slice::from_ref(&digest), "n0", false, grain).unwrap();
            let (all, drawn) = (added(&full, grain), added(&short, grain));
            for (all, drawn) in all.iter().zip(&drawn) {
                assert!((drawn / all - 1.0).abs() < 0.1, "{name} at {grain}: {drawn:?} for {all:?}");
            }
        }
    }
}

/// The blame on each source equals that of the full recording within a few percent of the total.
#[test]
fn blame_falls_on_the_same_sources() {
    let (_folder, bundle) = mixed(1);
    let (full, short) = both(&bundle, Nanos::from_millis(1));
    let shares = |input: &NoiseInput| {
        let booked = input.booked.as_ref().unwrap();
        let wanted = BlameWanted { without: 0, detours: 0 };
        let out = vec![false; booked.sources().len()];
        let found =
            blame(booked, question(Nanos::from_millis(1)), &RANKS[1..2], wanted, &out, ReplayWatch::NOBODY).unwrap();
        let closed = found[0].books.as_ref().unwrap();
        let mut shares = vec![0.0; booked.sources().len()];
        closed.sources().iter().for_each(|one| shares[one.source.unwrap()] = one.share);
        let mut named: Vec<(String, f64)> = booked.sources().iter().cloned().zip(shares).collect();
        named.sort_by(|a, b| a.0.cmp(&b.0));
        named
    };
    for ((name, all), (same, drawn)) in shares(&full).into_iter().zip(shares(&short)) {
        assert!(name == same && (all - drawn).abs() < 0.03, "{name}: {all} {drawn}");
    }
}

#[test]
fn a_part_of_a_long_recording_is_drawn() {
    let (_folder, bundle) = mixed(1);
    let mut digest = condense(&bundle, "mixed").unwrap();
    let grain = Nanos::from_millis(1);
    let whole = NoiseInput::from_digests(std::slice::from_ref(&digest), "mixed", false, grain).unwrap();
    // As if the recording had been a thousand times as long.
    for (cpu, doc) in digest.cpus.iter_mut().zip(&mut digest.run.cpus) {
        doc.duration_ns = Nanos::new(doc.duration_ns.get() * 1_000);
        for cell in cpu.delays.iter_mut().flat_map(|delays| &mut delays.cells.0) {
            cell.windows *= 1_000;
            cell.delay_ns *= 1_000;
            cell.parts.iter_mut().for_each(|part| part.1 *= 1_000);
        }
    }
    let part = NoiseInput::from_digests(&[digest], "mixed", false, grain).unwrap();
    let detours: usize = part.noise.traces().map(|trace| trace.len()).sum();
    assert!((3 << 20..5 << 20).contains(&detours), "{detours}");
    let ratio = |input: &NoiseInput| input.noise.traces().map(|trace| trace.noise_ratio()).sum::<f64>();
    assert!((ratio(&part) / ratio(&whole) - 1.0).abs() < 0.02, "{} for {}", ratio(&part), ratio(&whole));
    assert!(part.warnings.iter().any(|warning| warning.message.contains("of the 60000")), "{:?}", part.warnings);
}

/// The host stops both CPUs of a node at once: its ranks meet that once, in predictions of either form and in the report.
#[test]
fn what_comes_to_both_cpus_at_once_costs_what_it_costs() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("stops.becalm");
    write_stops(&path);
    let bundle = Bundle::open(&path).unwrap();
    let grain = Nanos::from_millis(1);
    let (full, short) = both(&bundle, grain);
    let digest = condense(&bundle, "stops").unwrap();
    let (losses, recorded) = draw_losses(&digest, grain, 1, |_, name| name.to_owned());
    assert_eq!(recorded, Nanos::from_secs(40));
    let report = summarize(&bundle, &Selection::default().with_detail(Detail::Scale)).unwrap();
    let question = Question { per_node: 2, phases: 20_000, ..question(grain) };
    for ranks in [16, 64, 256] {
        let row = |noise| Prediction::new(noise, question).unwrap().row(ranks).unwrap();
        let predicted = |noise| row(noise).slowdown.unwrap().mean - 1.0;
        let all = row(&full.noise).mean_phase_ns.unwrap() / grain.get() as f64 - 1.0;
        let reported = report.phases.as_ref().unwrap().at(ranks).unwrap().slowdown - 1.0;
        let others = [predicted(&short.noise), losses.slowdown(ranks, None) - 1.0, reported];
        assert!(others.iter().all(|other| (other / all - 1.0).abs() < 0.12), "{ranks} ranks: {others:?} for {all}");
    }
}
