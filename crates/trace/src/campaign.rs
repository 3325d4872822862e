//! A tick campaign: the measurements of `becalm cost tick`, in one JSON document of a folder.
//!
//! Each finished cell is stored before the next begins: the document is written anew under another name, and takes the
//! place of the old one in one step. So a campaign that is interrupted, or killed, goes on where it was.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use becalm_units::CpuId;
use serde::{Deserialize, Serialize};

use crate::node::Machine;

/// The version of the document's schema that this program writes and reads.
pub const SCHEMA: &str = "becalm.tick-campaign/1";

/// The document's name in its folder.
pub const FILE: &str = "campaign.json";

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
}

/// One measurement.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
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
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
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
}

impl Measured {
    /// What tells the cells of a round and a rate apart.
    #[must_use]
    pub fn key(&self) -> CellKind {
        match self {
            Self::Sorts { copies, .. } => CellKind::Sorts { copies: *copies },
            Self::Handler { .. } => CellKind::Handler,
            Self::Trap { .. } => CellKind::Trap,
        }
    }
}

/// The kind of a cell.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
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
}

/// A campaign that cannot be stored or read.
#[derive(Debug, thiserror::Error)]
pub enum CampaignError {
    /// The system refuses.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// What was attempted.
        action: &'static str,
        /// On which file.
        path: PathBuf,
        /// Why it failed.
        source: io::Error,
    },
    /// The file is not a campaign that this program knows.
    #[error("{} is no tick campaign that this program can read: {why}", path.display())]
    Content {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
}

impl Campaign {
    /// The number of cells that the plan asks for.
    #[must_use]
    pub fn cells_planned(&self) -> usize {
        let (rates, copies) = (self.plan.rates_hz.len(), self.plan.copies.len());
        self.plan.rounds as usize * (rates * (copies + 1) + 1)
    }

    /// The cell of a round, if it is finished.
    #[must_use]
    pub fn find(&self, round: u32, added_hz: u32, kind: CellKind) -> Option<&Measured> {
        let is = |cell: &&Cell| cell.round == round && cell.added_hz == added_hz && cell.measured.key() == kind;
        self.cells.iter().find(is).map(|cell| &cell.measured)
    }

    /// Stores it in its folder, which must exist, in place of what was stored before.
    ///
    /// # Errors
    /// The system's. What was stored before is still there then.
    pub fn store(&self, folder: &Path) -> Result<(), CampaignError> {
        let path = folder.join(FILE);
        let draft = folder.join(format!(".{FILE}.draft"));
        let io = |action, path: &Path| {
            let path = path.to_owned();
            move |source| CampaignError::Io { action, path, source }
        };
        let mut text = serde_json::to_string_pretty(self).map_err(|error| io("write", &draft)(error.into()))?;
        text.push('\n');
        let mut file = File::create(&draft).map_err(io("create", &draft))?;
        file.write_all(text.as_bytes()).map_err(io("write", &draft))?;
        // Before it gets its name: a crash of the machine must not leave an empty file under it.
        file.sync_all().map_err(io("write", &draft))?;
        fs::rename(&draft, &path).map_err(io("replace", &path))
    }

    /// Reads what is stored in a folder.
    ///
    /// # Errors
    /// If it cannot be read, or is not a campaign of this schema.
    pub fn load(folder: &Path) -> Result<Self, CampaignError> {
        let path = folder.join(FILE);
        let text = fs::read_to_string(&path);
        let text = text.map_err(|source| CampaignError::Io { action: "read", path: path.clone(), source })?;
        let content = |why: String| CampaignError::Content { path: path.clone(), why };
        // The schema first, since a later one may say anything else.
        #[derive(Deserialize)]
        struct Head {
            schema: String,
        }
        let head: Head = serde_json::from_str(&text).map_err(|error| content(error.to_string()))?;
        if head.schema != SCHEMA {
            return Err(content(format!("its schema is '{}', not '{SCHEMA}'", head.schema)));
        }
        let campaign: Self = serde_json::from_str(&text).map_err(|error| content(error.to_string()))?;
        let plan = &campaign.plan;
        if plan.rounds == 0 || plan.copies.is_empty() || plan.rates_hz.is_empty() {
            return Err(content("its plan has no cells".to_owned()));
        }
        Ok(campaign)
    }
}

#[cfg(test)]
mod tests {
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
            },
            array_bytes: 1,
            sorts: 2,
            max_sample_rate_hz: 100_000,
            cpu_time_max_percent: Some(25),
            cells: Vec::new(),
            warnings: Vec::new(),
        }
    }

    #[test]
    fn what_is_stored_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let mut campaign = campaign();
        campaign.store(folder.path()).unwrap();
        let sorts = Measured::Sorts { copies: 2, sorts: 9, elapsed_ns: 10, interrupts: 3, window_ns: 11 };
        campaign.cells.push(Cell { round: 1, added_hz: 1_000, measured: sorts });
        campaign.cells.push(Cell { round: 1, added_hz: 0, measured: Measured::Trap { calls: 5, call_ns: 71.25 } });
        campaign.store(folder.path()).unwrap();
        let read = Campaign::load(folder.path()).unwrap();
        assert_eq!(read, campaign);
        assert_eq!(read.find(1, 1_000, CellKind::Sorts { copies: 2 }), Some(&sorts));
        assert_eq!(read.find(0, 1_000, CellKind::Sorts { copies: 2 }), None);
        assert_eq!(read.find(1, 1_000, CellKind::Sorts { copies: 1 }), None);
        assert_eq!(read.cells_planned(), 3 * (2 * 3 + 1));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "the draft has become the document");
    }

    #[test]
    fn what_is_no_campaign_is_refused_with_its_path() {
        let folder = tempfile::tempdir().unwrap();
        let error = |text: &str| {
            fs::write(folder.path().join(FILE), text).unwrap();
            Campaign::load(folder.path()).unwrap_err().to_string()
        };
        assert!(error("{").contains("campaign.json is no tick campaign"));
        assert!(error("{\"schema\": \"becalm.tick-campaign/2\"}").contains("its schema is 'becalm.tick-campaign/2'"));
        assert!(error("{\"schema\": \"becalm.tick-campaign/1\"}").contains("missing field"));
        let mut empty = campaign();
        empty.plan.copies.clear();
        assert!(error(&serde_json::to_string(&empty).unwrap()).contains("its plan has no cells"));
        fs::remove_file(folder.path().join(FILE)).unwrap();
        assert!(Campaign::load(folder.path()).unwrap_err().to_string().starts_with("cannot read "));
    }
}
