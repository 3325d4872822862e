//! A tick campaign: the measurements of `becalm cost tick`, in one JSON document a node, `runs/node=HOST.json` of a bundle.
//!
//! Each finished cell is stored before the next begins: the document is written anew under another name, and takes the
//! place of the old one in one step. So a campaign that is interrupted, or killed, goes on where it was.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use becalm_units::CpuId;
use serde::{Deserialize, Serialize};

use crate::bundle::document::{self, Document};
use crate::bundle::{BundleError, Contents, contents};
use crate::event_count::EventCount;
use crate::node::Machine;

/// The version of the document's schema that this program writes and reads.
pub const SCHEMA: &str = "becalm.tick-campaign/1";

/// Measurements of the same work at several interrupt rates.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Campaign {
    /// Always [`SCHEMA`].
    pub schema: String,
    /// Who wrote it: `becalm 0.1.0`.
    pub program: String,
    /// The host's name.
    pub node: String,
    /// The machine.
    pub machine: Machine,
    /// What was asked for.
    pub plan: CampaignPlan,
    /// The bytes that each copy of the work sorts.
    pub array_bytes: u64,
    /// Sorts a timed cell, all copies together.
    pub sorts: u64,
    /// `kernel.perf_event_max_sample_rate`, in Hz.
    pub max_sample_rate_hz: u32,
    /// `kernel.perf_cpu_time_max_percent`.
    pub cpu_time_max_percent: Option<u32>,
    /// Which events of the processor are not counted, and why, a line for each reason.
    #[serde(default)]
    pub not_counted: Vec<String>,
    /// The finished cells, in the order in which they were measured.
    pub cells: Vec<Cell>,
    /// What the reader must know before believing the numbers.
    pub warnings: Vec<String>,
}

/// What a campaign measures, and in which order.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct CampaignPlan {
    /// The measured CPU.
    pub cpu: CpuId,
    /// Interrupts a second that are added to the CPU's own, in rising order; 0 adds none.
    pub rates_hz: Vec<u32>,
    /// Numbers of copies of the work that share the CPU.
    pub copies: Vec<u32>,
    /// How often each cell is measured.
    pub rounds: u32,
    /// The scheduling class of the copies: `other`, `rr:1`.
    pub sched: String,
    /// How long a cell is to take without added interrupts.
    pub cell_ns: i64,
    /// Gives the order of the cells in each round.
    pub seed: u64,
    /// The events that the processor counts in cells of their own, by their names: `cycles`, `cache_misses`; often none on
    /// a virtual machine.
    #[serde(default)]
    pub events: Vec<String>,
}

impl CampaignPlan {
    /// The cells of a round, each as the interrupts that are added and what is measured.
    #[must_use]
    pub fn cells(&self) -> Vec<(u32, CellKind)> {
        let of_rate = |rate_hz: &u32| {
            let rate_hz = *rate_hz;
            let sorts = self.copies.iter().map(|copies| CellKind::Sorts { copies: *copies });
            let events = (!self.events.is_empty()).then_some(CellKind::Events);
            sorts.chain([CellKind::Handler]).chain(events).map(move |kind| (rate_hz, kind)).collect::<Vec<_>>()
        };
        self.rates_hz.iter().flat_map(of_rate).chain([(0, CellKind::Trap)]).collect()
    }
}

/// One measurement.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Cell {
    /// In which round, from 0.
    pub round: u32,
    /// Interrupts a second added to the CPU's own.
    pub added_hz: u32,
    /// What was measured.
    #[serde(flatten)]
    pub measured: Measured,
}

/// What a cell measures.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Measured {
    /// The time of a fixed number of sorts, all copies together, from the first one's start to the last one's end.
    Sorts {
        /// How many copies shared the CPU.
        copies: u32,
        /// Sorts done.
        sorts: u64,
        /// How long they took.
        elapsed_ns: i64,
        /// Timer interrupts that the CPU took in `window_ns`.
        interrupts: u64,
        /// The time between both readings of the count of interrupts: a little longer than the sorts.
        window_ns: i64,
    },
    /// The kernel's own record of its timer interrupts while one copy sorted.
    Handler {
        /// Interrupts recorded from entry to exit.
        interrupts: u64,
        /// Time from entry to exit of all of them.
        handler_ns: i64,
        /// The time recorded.
        window_ns: i64,
        /// Events that the kernel lost.
        lost_events: u64,
    },
    /// System calls that do nothing, one after the other.
    Trap {
        /// How many.
        calls: u64,
        /// The mean time of one, in nanoseconds and parts of it: that of the median batch of equal batches.
        call_ns: f64,
    },
    /// What the processor counted while one copy sorted, in the sorts and in what interrupted them apart.
    Events {
        /// Sorts done.
        sorts: u64,
        /// Timer interrupts that the CPU took in `window_ns`.
        interrupts: u64,
        /// The time between both readings of the count of interrupts.
        window_ns: i64,
        /// The counts.
        counts: Vec<EventCount>,
    },
}

impl Measured {
    /// What tells the cells of a round and a rate apart.
    #[must_use]
    pub fn key(&self) -> CellKind {
        match self {
            Self::Sorts { copies, .. } => CellKind::Sorts { copies: *copies },
            Self::Handler { .. } => CellKind::Handler,
            Self::Trap { .. } => CellKind::Trap,
            Self::Events { .. } => CellKind::Events,
        }
    }
}

/// The kind of a cell.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum CellKind {
    /// See [`Measured::Sorts`].
    Sorts {
        /// How many copies share the CPU.
        copies: u32,
    },
    /// See [`Measured::Handler`].
    Handler,
    /// See [`Measured::Trap`].
    Trap,
    /// See [`Measured::Events`].
    Events,
}

impl Campaign {
    /// The number of cells that the plan asks for.
    #[must_use]
    pub fn cells_planned(&self) -> usize {
        self.plan.rounds as usize * self.plan.cells().len()
    }

    /// The cell of a round, if it is finished.
    #[must_use]
    pub fn find(&self, round: u32, added_hz: u32, kind: CellKind) -> Option<&Measured> {
        let is = |cell: &&Cell| cell.round == round && cell.added_hz == added_hz && cell.measured.key() == kind;
        self.cells.iter().find(is).map(|cell| &cell.measured)
    }

    /// Makes a bundle, or joins the one of other nodes, and stores the campaign in it.
    ///
    /// # Errors
    /// If the place is taken, its parent is missing, the campaign is not valid, and if the system refuses. The place is then
    /// left as it was.
    pub fn create(&self, bundle: &Path) -> Result<(), BundleError> {
        document::create(bundle, self)?.keep();
        Ok(())
    }

    /// Stores it in the bundle that [`Self::create`] made, in place of what was stored before.
    ///
    /// # Errors
    /// If the campaign is not valid, and if the system refuses. What was stored before is still there then.
    pub fn store(&self, bundle: &Path) -> Result<(), BundleError> {
        document::replace(bundle, &self.node, self)
    }

    /// Reads the campaign of a node, or that of the only one, from the bundle at `path`, or at `path` with
    /// [`SUFFIX`](crate::bundle::SUFFIX). Returns the bundle's folder with it.
    ///
    /// # Errors
    /// If there is no bundle, it holds something else, no such node or several, and if the document is damaged or of
    /// another version.
    pub fn load(path: &Path, node: Option<&str>) -> Result<(PathBuf, Self), BundleError> {
        let (bundle, node, document) = contents::open_node(path, node)?;
        Ok((bundle, document::read(&document, &node)?))
    }
}

impl Document for Campaign {
    const CONTENTS: Contents = Contents::Campaign;

    fn schema(&self) -> &str {
        &self.schema
    }

    fn node(&self) -> &str {
        &self.node
    }

    /// That the plan has cells, that each cell is of the plan and stands there once, and that its figures can be true.
    fn check(&self) -> Result<(), String> {
        let plan = &self.plan;
        if plan.rounds == 0 || plan.copies.is_empty() || plan.rates_hz.is_empty() {
            return Err("its plan has no cells".to_owned());
        }
        if plan.rounds > ROUNDS_MAX {
            return Err(format!("its plan has {} rounds; the most are {ROUNDS_MAX}", plan.rounds));
        }
        let rising = |list: &[u32]| list.windows(2).all(|pair| pair[0] < pair[1]);
        if !rising(&plan.rates_hz) || !rising(&plan.copies) {
            return Err("the rates or the numbers of copies of its plan do not rise".to_owned());
        }
        let planned: HashSet<(u32, CellKind)> = plan.cells().into_iter().collect();
        let mut seen = HashSet::with_capacity(self.cells.len());
        for (at, cell) in self.cells.iter().enumerate() {
            let key = cell.measured.key();
            // A trap takes no added interrupts, and where they were added does no harm.
            let of_plan = key == CellKind::Trap || planned.contains(&(cell.added_hz, key));
            if cell.round >= plan.rounds || !of_plan {
                return Err(format!("cell {at} is none of its plan"));
            }
            if !seen.insert((cell.round, cell.added_hz, key)) {
                return Err(format!("cell {at} stands there twice"));
            }
            cell.measured.check().map_err(|why| format!("cell {at}: {why}"))?;
        }
        Ok(())
    }
}

/// More rounds are not planned.
pub const ROUNDS_MAX: u32 = 100_000;

/// No cell is longer than a day, and none has more interrupts than nanoseconds: sums stay far from where integers end.
const LONGEST_NS: i64 = 86_400_000_000_000;

impl Measured {
    fn check(&self) -> Result<(), String> {
        let time = |name: &str, ns: i64, shortest: i64| match (shortest..=LONGEST_NS).contains(&ns) {
            true => Ok(()),
            false => Err(format!("{name} is {ns}, outside of {shortest} to {LONGEST_NS}")),
        };
        let count = |name: &str, count: u64| match i64::try_from(count).is_ok_and(|count| count <= LONGEST_NS) {
            true => Ok(()),
            false => Err(format!("{name} is {count}, and cannot be")),
        };
        match self {
            &Self::Sorts { sorts, elapsed_ns, interrupts, window_ns, .. } => {
                if sorts == 0 {
                    return Err("it has no sorts".to_owned());
                }
                time("elapsed_ns", elapsed_ns, 1)?;
                time("window_ns", window_ns, 1)?;
                count("interrupts", interrupts)
            }
            &Self::Handler { interrupts, handler_ns, window_ns, lost_events } => {
                time("handler_ns", handler_ns, 0)?;
                time("window_ns", window_ns, 1)?;
                count("interrupts", interrupts)?;
                count("lost_events", lost_events)
            }
            &Self::Trap { call_ns, .. } if call_ns > 0.0 && call_ns < LONGEST_NS as f64 => Ok(()),
            Self::Trap { call_ns, .. } => Err(format!("call_ns is {call_ns}, and cannot be")),
            Self::Events { sorts, interrupts, window_ns, counts } => {
                if *sorts == 0 {
                    return Err("it has no sorts".to_owned());
                }
                time("window_ns", *window_ns, 1)?;
                count("interrupts", *interrupts)?;
                counts.iter().try_for_each(EventCount::check)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn campaign() -> Campaign {
        Campaign {
            schema: SCHEMA.into(),
            program: "becalm".into(),
            node: "n".into(),
            machine: Machine::default(),
            plan: CampaignPlan {
                cpu: CpuId::new(1),
                rates_hz: vec![0, 1_000],
                copies: vec![1, 2],
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
        campaign.create(&path).unwrap();
        let sorts = Measured::Sorts { copies: 2, sorts: 9, elapsed_ns: 10, interrupts: 3, window_ns: 11 };
        campaign.cells.push(Cell { round: 1, added_hz: 1_000, measured: sorts.clone() });
        campaign.cells.push(Cell { round: 1, added_hz: 0, measured: Measured::Trap { calls: 5, call_ns: 71.25 } });
        campaign.store(&path).unwrap();
        let (found, read) = Campaign::load(&folder.path().join("tick"), None).unwrap();
        assert_eq!((found, &read), (path.clone(), &campaign));
        assert_eq!(Campaign::load(&path, Some("n")).unwrap().1, campaign);
        assert_eq!(read.find(1, 1_000, CellKind::Sorts { copies: 2 }), Some(&sorts));
        assert_eq!(read.find(0, 1_000, CellKind::Sorts { copies: 2 }), None);
        assert_eq!(read.find(1, 1_000, CellKind::Sorts { copies: 1 }), None);
        assert_eq!(read.cells_planned(), 3 * (2 * 3 + 1));
        assert_eq!(fs::read_dir(path.join("runs")).unwrap().count(), 1, "the draft has become the document");
        assert!(campaign.create(&path).unwrap_err().to_string().contains("is there already"));
    }

    #[test]
    fn what_is_no_campaign_is_refused_with_its_path() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tick.becalm");
        campaign().create(&path).unwrap();
        let error = |text: &str| {
            fs::write(path.join("runs/node=n.json"), text).unwrap();
            Campaign::load(&path, None).unwrap_err().to_string()
        };
        assert!(error("{").contains("node=n.json as a node's document"));
        assert!(error("{\"schema\": \"becalm.tick-campaign/2\"}").contains("has the schema 'becalm.tick-campaign/2'"));
        assert!(error("{\"schema\": \"becalm.run/1\"}").contains("holds a recording and not a campaign"));
        assert!(error("{\"schema\": \"becalm.tick-campaign/1\"}").contains("missing field"));
        let wrong = |spoil: &dyn Fn(&mut Campaign)| {
            let mut campaign = campaign();
            let trap = Measured::Trap { calls: 1, call_ns: 100.0 };
            campaign.cells.push(Cell { round: 0, added_hz: 0, measured: trap });
            spoil(&mut campaign);
            error(&serde_json::to_string(&campaign).unwrap())
        };
        let cell = |round, added_hz, measured| Cell { round, added_hz, measured };
        let handler =
            |interrupts, handler_ns, window_ns| Measured::Handler { interrupts, handler_ns, window_ns, lost_events: 0 };
        let sorts =
            |copies, sorts, elapsed_ns| Measured::Sorts { copies, sorts, elapsed_ns, interrupts: 1, window_ns: 1 };
        let trap = |call_ns| Measured::Trap { calls: 1, call_ns };
        let events = |enabled_ns, running_ns| {
            let counts =
                vec![EventCount { event: "cycles".into(), space: "user".into(), value: 1, enabled_ns, running_ns }];
            Measured::Events { sorts: 1, interrupts: 1, window_ns: 1, counts }
        };
        assert!(wrong(&|of| of.plan.copies.clear()).contains("its plan has no cells"));
        assert!(wrong(&|of| of.plan.rounds = u32::MAX).contains("4294967295 rounds; the most are 100000"));
        assert!(wrong(&|of| of.plan.rates_hz = vec![1_000, 0]).contains("do not rise"));
        assert!(wrong(&|of| of.node = "other".into()).contains("of node 'other'"));
        assert!(wrong(&|of| of.cells.push(of.cells[0].clone())).contains("cell 1 stands there twice"));
        for measured in
            [cell(3, 0, trap(1.0)), cell(1, 7, handler(1, 1, 1)), cell(1, 0, sorts(3, 1, 1)), cell(1, 0, events(1, 1))]
        {
            assert!(
                wrong(&|of| of.cells.push(measured.clone())).contains("cell 1 is none of its plan"),
                "{measured:?}"
            );
        }
        for measured in [
            cell(1, 0, trap(-1.0)),
            cell(1, 0, handler(u64::MAX, 1, 1)),
            cell(1, 0, handler(1, -1, 1)),
            cell(1, 0, handler(1, 1, 0)),
            cell(1, 0, sorts(1, 0, 1)),
            cell(1, 0, sorts(1, 1, i64::MAX)),
        ] {
            assert!(wrong(&|of| of.cells.push(measured.clone())).contains("cell 1: "), "{measured:?}");
        }
        for (enabled, running) in [(1, 2), (-1, -1)] {
            let error = wrong(&|of| {
                of.plan.events.push("cycles".into());
                of.cells.push(cell(1, 0, events(enabled, running)));
            });
            assert!(error.contains("cell 1: "), "{error}");
        }
        fs::remove_file(path.join("runs/node=n.json")).unwrap();
        assert!(Campaign::load(&path, None).unwrap_err().to_string().contains("it holds no node's document"));
    }
}
