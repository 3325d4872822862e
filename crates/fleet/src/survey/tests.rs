use becalm_fixtures::fleet::{Planted, write_fleet, write_fleet_with};
use becalm_model::node::FARTHEST;

use super::*;
use crate::heat::COLUMNS;
use crate::jobs;
use crate::together::Verdict;

fn fleet(planted: Planted, seed: u64) -> Fleet {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("fleet.becalm");
    write_fleet(&path, planted, seed);
    survey(&[StoredNodes::open(&path).unwrap()]).unwrap()
}

#[test]
fn a_slow_node_is_the_first_with_its_source() {
    let fleet = fleet(Planted::SlowNode, 1);
    let first = &fleet.nodes[0];
    assert_eq!((first.node.as_str(), fleet.nodes.len(), fleet.compared), ("n17", 32, 32));
    let differs = first.differs.as_ref().unwrap();
    let (name, part) = differs.reason.as_ref().unwrap();
    assert_eq!(name, &(Kind::Workqueue, "kworker:nfs_writeback".to_owned()));
    assert!(differs.factor > 4.0 && *part > 0.9, "{differs:?}");
    assert!(fleet.nodes[1..].iter().all(|node| node.differs.is_none()));
    assert!(fleet.problems.is_empty(), "{:?}", fleet.problems);
}

#[test]
fn among_equals_seldom_is_one_named() {
    let wrong = (0..20).filter(|seed| fleet(Planted::Nothing, *seed).nodes.iter().any(|node| node.differs.is_some()));
    let wrong = wrong.count();
    assert!(wrong <= 1, "{wrong} of 20 fleets of equals name a node");
}

/// The summary form of a fleet gives the same results as the full one, and so does a mixture.
#[test]
fn summary_forms_say_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let (full, short) = (folder.path().join("full.becalm"), folder.path().join("short.becalm"));
    write_fleet(&full, Planted::SlowNode, 5);
    let nodes = StoredNodes::open(&full).unwrap();
    for (at, node) in nodes.names().enumerate() {
        let digest = digest(nodes.read(node).unwrap()).unwrap();
        if at % 2 == 0 {
            drop(becalm_bundle::SummaryWriter::create(&short, &digest).unwrap());
        }
    }
    let all = survey(&[StoredNodes::open(&full).unwrap()]).unwrap();
    // Nodes of the second recording already read from the first are reported.
    let mixed = survey(&[StoredNodes::open(&short).unwrap(), StoredNodes::open(&full).unwrap()]).unwrap();
    assert_eq!(format!("{:?}", all.nodes), format!("{:?}", mixed.nodes));
    assert_eq!(all.heat.unwrap().rows, mixed.heat.unwrap().rows);
    assert_eq!((mixed.problems.len(), mixed.problems[0].node.as_str()), (16, "n00"));
    assert!(mixed.problems[0].what().contains("a node of this name was read already"), "{:?}", mixed.problems[0]);
}

/// The readable recording of a node counts, whichever is first and whatever is damaged in the other; and the fleet's cost includes the notes on its
/// nodes.
#[test]
fn a_damaged_recording_hides_no_other_of_the_same_node() {
    for damaged in ["runs/node=n17.json", "detours/node=n17/0000.parquet"] {
        let folder = tempfile::tempdir().unwrap();
        let (bad, good) = (folder.path().join("bad.becalm"), folder.path().join("good.becalm"));
        write_fleet(&bad, Planted::SlowNode, 5);
        write_fleet(&good, Planted::SlowNode, 5);
        std::fs::write(bad.join(damaged), "nothing that could be read").unwrap();
        let bundles = [&bad, &good].map(|path| StoredNodes::open(path).unwrap());
        let fleet = survey(&bundles).unwrap();
        assert_eq!((fleet.nodes.len(), fleet.nodes[0].node.as_str()), (32, "n17"), "{damaged}: {:?}", fleet.problems);
        let cost = jobs::fleet_cost(&bundles, &fleet, Nanos::from_millis(1), &[64], None).unwrap();
        let found: Vec<_> = fleet.problems.iter().map(|problem| (problem.node.clone(), problem.what())).collect();
        assert_eq!((cost.nodes, cost.problems), (32, found), "{damaged}");
    }
}

/// Damaged documents can add up to more than a time can represent.
#[test]
fn what_a_fleet_costs_may_be_of_any_time() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("fleet.becalm");
    let most = Nanos::new(FARTHEST / 2);
    let longest = |_, doc: &mut NodeDoc| doc.cpus.iter_mut().for_each(|cpu| cpu.duration_ns = most);
    write_fleet_with(&path, Planted::Nothing, 1, longest);
    let bundles = [StoredNodes::open(&path).unwrap()];
    let fleet = survey(&bundles).unwrap();
    let cost = jobs::fleet_cost(&bundles, &fleet, Nanos::from_millis(1), &[64], None).unwrap();
    assert_eq!(cost.recorded, Nanos::MAX);
}

#[test]
fn nodes_that_were_recorded_otherwise_are_told_and_not_named() {
    let fleet = fleet(Planted::Unlike, 3);
    let told = |node: &str, what: &str| {
        let found = fleet.problems.iter().any(|problem| problem.node == node && problem.what().contains(what));
        assert!(found, "{node}: {what} is not in {:?}", fleet.problems);
    };
    told(
        "n02",
        "its threshold is 5us, that of most nodes about 105ns, so it sees other interruptions; it is not compared",
    );
    told("n04", "it was recorded for 3.0s, most nodes for 10.0s");
    told("n06", "at another time than most");
    told("n08", "its loops read the counter monotonic_raw, those of most nodes tsc");
    told("n10", "1 CPU was recorded, 2 on most nodes");
    told("n10", "fewer than 6 nodes have as many CPUs; it is not compared");
    assert_eq!((fleet.nodes.len(), fleet.compared, fleet.problems.len()), (32, 30, 6), "{:?}", fleet.problems);
    let differs: Vec<&str> =
        fleet.nodes.iter().filter(|node| node.differs.is_some()).map(|node| node.node.as_str()).collect();
    assert!(!differs.contains(&"n02"), "{differs:?}");
}

#[test]
fn a_source_of_all_nodes_at_once_is_told_from_others() {
    let together = fleet(Planted::SlowNode, 2).together.unwrap();
    let verdict =
        |name: &str| together.sources.iter().find(|source| source.name.1 == name).map(|source| source.verdict);
    assert_eq!(verdict("flush"), Some(Verdict::Together), "{together:?}");
    assert_ne!(verdict("kworker:nfs_writeback"), Some(Verdict::Together), "{together:?}");
}

/// A fleet with modified node documents.
fn changed(planted: Planted, seed: u64, change: impl Fn(u64, &mut NodeDoc)) -> Fleet {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("fleet.becalm");
    write_fleet_with(&path, planted, seed, change);
    survey(&[StoredNodes::open(&path).unwrap()]).unwrap()
}

/// Clocks wrong by their stated error: slots are wide enough for most of them, and a worse one is reported and left out.
#[test]
fn what_comes_at_once_is_told_within_the_stated_errors_of_the_clocks() {
    let stating = |usual_ms: i64, worst_ms: i64| {
        changed(Planted::Nothing, 2, |number, doc| {
            let off = if number == 7 { worst_ms } else { usual_ms };
            doc.clock.wall_error_ns = Some(Nanos::from_millis(off));
            // The clocks are alternately late and early.
            let by = std::time::Duration::from_millis(usual_ms.min(40) as u64 / 2);
            doc.origin = doc.origin.map(|origin| if number % 2 == 0 { origin + by } else { origin - by });
        })
    };
    let flush = |fleet: &Fleet| {
        let together = fleet.together.as_ref().unwrap();
        let flush = together.sources.iter().find(|source| source.name.1 == "flush").unwrap();
        (together.nodes, together.slot_ns >> 24, together.clock_error_ns, flush.verdict)
    };
    let good = stating(2, 2);
    assert_eq!(flush(&good), (32, 2, Some(2_000_000), Verdict::Together));
    assert!(good.problems.is_empty(), "{:?}", good.problems);
    // Slots of 33.6 ms would separate them.
    assert_eq!(flush(&stating(40, 40)), (32, 8, Some(40_000_000), Verdict::Together));
    let one = stating(2, 900);
    assert_eq!(flush(&one), (31, 2, Some(2_000_000), Verdict::Together));
    let told = ("n07".to_owned(), "its clock may be off by 900.0ms, more than half a slot of 33.6ms".to_owned());
    assert!(
        one.problems.iter().any(|problem| problem.node == told.0 && problem.what().starts_with(&told.1)),
        "{:?}",
        one.problems
    );
    let none = stating(16_000, 16_000);
    let why = none.together.unwrap_err();
    assert!(why.starts_with("the clocks of 32 nodes may be off by up to 16.0s"), "{why}");
}

/// A CPU that is offline or was not watched does not make a node an outlier; it is reported.
#[test]
fn nodes_with_other_numbers_of_cpus_are_told_and_not_named() {
    // Half of the nodes have an offline CPU, and half the noise.
    let fleet = changed(Planted::SlowNode, 1, |number, doc| {
        let online = if number % 2 == 0 { "0" } else { "0-1" };
        doc.machine.online = online.parse().unwrap();
        if number == 3 {
            doc.machine.online = "0-7".parse().unwrap();
        }
        doc.cpus[0].cut_short = number == 5;
    });
    let told = |node: &str, what: &str| {
        assert!(
            fleet.problems.iter().any(|problem| problem.node == node && problem.what().contains(what)),
            "{what}: {:?}",
            fleet.problems
        );
    };
    told("n03", "8 CPUs were online, 1 on most nodes");
    told("n03", "fewer than 6 nodes have as many CPUs; it is not compared");
    told("n01", "2 CPUs were online, 1 on most nodes; it is only compared with nodes of its size");
    told("n05", "CPU 0 went offline or was full before the end; it is not compared");
    let named: Vec<&str> =
        fleet.nodes.iter().filter(|node| node.differs.is_some()).map(|node| node.node.as_str()).collect();
    assert_eq!((fleet.compared, named), (30, vec!["n17"]));
}

#[test]
fn what_is_missing_is_told_and_the_rest_is_read() {
    let fleet = fleet(Planted::SlowNodeAndBroken, 1);
    let remark = |node: &str| {
        let found = fleet.problems.iter().find(|problem| problem.node == node);
        found.map_or_else(String::new, super::Problem::what)
    };
    assert!(remark("n03").contains("has no end"), "{:?}", fleet.problems);
    assert!(remark("n05").contains("becalm 0.0.9"), "{:?}", fleet.problems);
    assert!(remark("n30").contains("becalm.run/99"), "{:?}", fleet.problems);
    assert_eq!((fleet.nodes.len(), fleet.nodes[0].node.as_str()), (31, "n17"));
}

/// The map adds up to the noise.
#[test]
fn the_map_holds_all_noise() {
    let fleet = fleet(Planted::SlowNode, 3);
    let heat = fleet.heat.as_ref().unwrap();
    for (node, row) in fleet.nodes.iter().zip(&heat.rows) {
        let mean = row.iter().sum::<f64>() / COLUMNS as f64;
        assert!((mean / node.ratio - 1.0).abs() < 0.02, "{}: {mean} and {}", node.node, node.ratio);
    }
}
