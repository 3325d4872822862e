//! Tick campaigns in bundles: what is stored is read, and what contradicts itself is refused by name.

use std::fs;
use std::path::Path;

use becalm_bundle::BundleError;
use becalm_bundle::node_document::{self, NodeDocument, create};
use becalm_cost::documents::tick::{Campaign, CampaignCell, CampaignPlan, CellKind, CellResult, SCHEMA};
use becalm_model::event_count::{CountedIn, EventCount};
use becalm_model::node::MachineDoc;
use becalm_units::CpuId;

fn load(path: &Path, node: Option<&str>) -> Result<NodeDocument<Campaign>, BundleError> {
    node_document::load(path, node)
}

fn campaign() -> Campaign {
    Campaign {
        schema: SCHEMA.into(),
        program: "becalm".into(),
        node: "n".into(),
        machine: MachineDoc::default(),
        plan: CampaignPlan {
            cpu: CpuId::new(1),
            rates_hz: vec![0, 1_000],
            copies: vec![1, 2],
            processes: true,
            rounds: 3,
            sched: "other".into(),
            cell_ns: 1_000_000,
            seed: 7,
            events: Vec::new(),
        },
        array_bytes: 1,
        sorts: 2,
        max_sample_rate_hz: 100_000,
        cpu_time_max_percent: Some(25),
        not_counted: Vec::new(),
        cells: Vec::new(),
        warnings: Vec::new(),
    }
}

#[test]
fn what_is_stored_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tick.becalm");
    let mut campaign = campaign();
    create(&path, &campaign).unwrap();
    let sorts = CellResult::Sorts { copies: 2, sorts: 9, elapsed_ns: 10, interrupts: 3, window_ns: 11 };
    campaign.cells.push(CampaignCell { round: 1, added_hz: 1_000, measured: sorts.clone() });
    campaign.cells.push(CampaignCell {
        round: 1,
        added_hz: 0,
        measured: CellResult::Trap { calls: 5, call_ns: 71.25 },
    });
    node_document::replace(&path, &campaign).unwrap();
    let NodeDocument { bundle, doc: read } = load(&folder.path().join("tick"), None).unwrap();
    assert_eq!((&bundle, &read), (&path, &campaign));
    assert_eq!(load(&path, Some("n")).unwrap().doc, campaign);
    assert_eq!(read.find(1, 1_000, CellKind::Sorts { copies: 2 }), Some(&sorts));
    assert_eq!(read.find(0, 1_000, CellKind::Sorts { copies: 2 }), None);
    assert_eq!(read.find(1, 1_000, CellKind::Sorts { copies: 1 }), None);
    assert_eq!(read.cells_planned(), 3 * (2 * 3 + 1));
    assert_eq!(fs::read_dir(path.join("runs")).unwrap().count(), 1, "the draft has become the document");
    assert!(create(&path, &campaign).unwrap_err().to_string().contains("is there already"));
}

#[test]
fn what_is_no_campaign_is_refused_with_its_path() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tick.becalm");
    create(&path, &campaign()).unwrap();
    let error = |text: &str| {
        fs::write(path.join("runs/node=n.json"), text).unwrap();
        load(&path, None).unwrap_err().to_string()
    };
    assert!(error("{").contains("node=n.json as a node's document"));
    assert!(error("{\"schema\": \"becalm.tick-campaign/2\"}").contains("has the schema 'becalm.tick-campaign/2'"));
    assert!(
        error("{\"schema\": \"becalm.run/1\"}")
            .contains("holds a recording with its single detours and not a campaign")
    );
    assert!(error("{\"schema\": \"becalm.tick-campaign/1\"}").contains("missing field"));
    let wrong = |spoil: &dyn Fn(&mut Campaign)| {
        let mut campaign = campaign();
        let trap = CellResult::Trap { calls: 1, call_ns: 100.0 };
        campaign.cells.push(CampaignCell { round: 0, added_hz: 0, measured: trap });
        spoil(&mut campaign);
        error(&serde_json::to_string(&campaign).unwrap())
    };
    let cell = |round, added_hz, measured| CampaignCell { round, added_hz, measured };
    let handler =
        |interrupts, handler_ns, window_ns| CellResult::Handler { interrupts, handler_ns, window_ns, lost_events: 0 };
    let sorts =
        |copies, sorts, elapsed_ns| CellResult::Sorts { copies, sorts, elapsed_ns, interrupts: 1, window_ns: 1 };
    let trap = |call_ns| CellResult::Trap { calls: 1, call_ns };
    let events = |enabled_ns, running_ns| {
        let counts =
            vec![EventCount { event: "cycles".into(), space: CountedIn::User, value: 1, enabled_ns, running_ns }];
        CellResult::Events { sorts: 1, interrupts: 1, window_ns: 1, counts }
    };
    assert!(wrong(&|campaign| campaign.plan.copies.clear()).contains("its plan has no cells"));
    assert!(
        wrong(&|campaign| campaign.plan.rounds = u32::MAX)
            .contains("4294967295 rounds, but at most 100000 are possible")
    );
    assert!(wrong(&|campaign| campaign.plan.rates_hz = vec![1_000, 0]).contains("do not rise"));
    assert!(wrong(&|campaign| campaign.node = "other".into()).contains("of node 'other'"));
    assert!(
        wrong(&|campaign| campaign.cells.push(campaign.cells[0].clone())).contains("cell 1 repeats an earlier cell")
    );
    for measured in
        [cell(3, 0, trap(1.0)), cell(1, 7, handler(1, 1, 1)), cell(1, 0, sorts(3, 1, 1)), cell(1, 0, events(1, 1))]
    {
        assert!(
            wrong(&|campaign| campaign.cells.push(measured.clone())).contains("cell 1 is not part of its plan"),
            "{measured:?}"
        );
    }
    for measured in [
        cell(1, 0, trap(-1.0)),
        cell(1, 0, handler(u64::MAX, 1, 1)),
        cell(1, 0, handler(1, -1, 1)),
        cell(1, 0, handler(1, 1, 0)),
        cell(1, 0, sorts(1, 0, 1)),
        cell(1, 0, sorts(1, u64::MAX, 1)),
        cell(1, 0, sorts(1, 1, i64::MAX)),
    ] {
        assert!(wrong(&|campaign| campaign.cells.push(measured.clone())).contains("cell 1: "), "{measured:?}");
    }
    for (enabled, running) in [(1, 2), (-1, -1)] {
        let error = wrong(&|campaign| {
            campaign.plan.events.push("cycles".into());
            campaign.cells.push(cell(1, 0, events(enabled, running)));
        });
        assert!(error.contains("cell 1: "), "{error}");
    }
    fs::remove_file(path.join("runs/node=n.json")).unwrap();
    assert!(load(&path, None).unwrap_err().to_string().contains("it holds no node's document"));
}
