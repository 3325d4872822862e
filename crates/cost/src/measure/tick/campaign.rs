//! The campaign: every cell of rates and copies, in rounds, each in its own random order.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use becalm_linux::janitor::Janitor;
use becalm_linux::perf::{CpuClock, SampleLimits};
use becalm_linux::procfs::kernel;
use becalm_linux::sched::AffinityGuard;
use becalm_linux::signals::StopSignals;
use becalm_measure::machine;
use becalm_measure::work::{Body, Work};
use becalm_model::{node_name, warning};
use becalm_units::{Nanos, fault};

use super::{SortJob, TickError, events, record_timer, shuffled, time_work, trap};
use crate::documents::tick::{Campaign, CampaignCell, CampaignPlan, CellKind, CellResult, SCHEMA};

/// The progress of a campaign.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CampaignProgress {
    /// Finished cells, including earlier sessions.
    pub done: usize,
    /// All cells of the plan.
    pub planned: usize,
    /// Expected remaining time, extrapolated from this session's cells.
    pub left: Duration,
}

/// How a session of a campaign ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CampaignEnd {
    /// Every cell of the campaign is measured.
    Complete,
    /// A signal ended it between two cells.
    Interrupted,
}

/// Starts a campaign: checks that it is possible, which of the plan's events the processor counts, and how many sorts a cell takes.
pub fn begin(root: &Path, mut plan: CampaignPlan) -> Result<Campaign, TickError> {
    machine::select_cpus(root, Some(&[plan.cpu].into_iter().collect()))?;
    let limits = limits(root, &plan)?;
    // Detects missing rights now instead of midway.
    if let Some(rate_hz) = plan.rates_hz.iter().copied().find(|rate_hz| *rate_hz > 0) {
        CpuClock::start(plan.cpu, rate_hz)?.stop()?;
    }
    let away = AffinityGuard::keep_off(&plan.cpu.into())?;
    let policy = plan.sched.parse()?;
    let job = |pieces| SortJob {
        root,
        cpu: plan.cpu,
        interrupted: plan.cpu,
        policy,
        copies: 1,
        processes: plan.processes,
        body: Body::Sort,
        iterations: 1,
        pieces,
    };
    let mut pieces = 4;
    let sorts = loop {
        let elapsed = time_work(job(pieces))?.elapsed_ns;
        // A tenth of a second, or the cell itself, is accurate enough.
        if elapsed >= plan.cell_ns.min(100_000_000) / 2 {
            break (plan.cell_ns as f64 / elapsed as f64 * pieces as f64).round().max(1.0) as u64;
        }
        pieces *= 4;
    };
    drop(away);
    let (events, not_counted) = events::counted(&plan.events);
    plan.events = events;
    let array_bytes = Work::new(Body::Sort, root, plan.cpu)?.memory_bytes();
    Ok(Campaign {
        schema: SCHEMA.to_owned(),
        program: concat!("becalm ", env!("CARGO_PKG_VERSION")).to_owned(),
        node: node_name(&kernel::hostname(root)?),
        machine: machine::describe(root),
        array_bytes,
        // Every copy takes part.
        sorts: sorts.max(u64::from(plan.copies.iter().copied().max().unwrap_or(1))),
        plan,
        max_sample_rate_hz: limits.max_sample_rate_hz,
        cpu_time_max_percent: limits.cpu_time_max_percent,
        not_counted,
        cells: Vec::new(),
        warnings: Vec::new(),
    })
}

/// The kernel's limits, which must allow the plan.
fn limits(root: &Path, plan: &CampaignPlan) -> Result<SampleLimits, TickError> {
    let limits = SampleLimits::read(root)?.ok_or(TickError::NoPerf)?;
    match plan.rates_hz.iter().copied().find(|rate_hz| *rate_hz > limits.max_sample_rate_hz) {
        Some(rate_hz) => Err(TickError::RateLimit { rate_hz, limit_hz: limits.max_sample_rate_hz }),
        None => Ok(limits),
    }
}

/// Restores the kernel's limit if a killed session left it lowered; returns a message if so.
fn put_back(root: &Path, begun_with_hz: u32) -> Result<Option<String>, TickError> {
    let begun_with = SampleLimits { max_sample_rate_hz: begun_with_hz, cpu_time_max_percent: None };
    let lowered = begun_with.restore(root)?;
    Ok(lowered.map(|lowered_hz| {
        format!(
            "kernel.perf_event_max_sample_rate was {lowered_hz} when the campaign went on, and {begun_with_hz} when it began: \
             the kernel lowers it by itself; it was put back"
        )
    }))
}

/// Measures the missing cells, round by round, and stores each one. A signal ends it between two cells. Fails if a cell cannot be measured
/// or stored; earlier cells stay.
pub fn go_on(
    campaign: &mut Campaign,
    root: &Path,
    guard: &Result<Arc<Janitor>, String>,
    signals: &StopSignals,
    store: &mut dyn FnMut(&Campaign) -> fault::Result<()>,
    progress: &mut dyn FnMut(CampaignProgress),
) -> Result<CampaignEnd, TickError> {
    if let Some(warning) = put_back(root, campaign.max_sample_rate_hz)? {
        campaign.warnings.push(warning);
    }
    if let Err(why) = guard {
        let warning = warning::no_janitor(why).message;
        // A resumed campaign may have this warning already.
        if !campaign.warnings.contains(&warning) {
            campaign.warnings.push(warning);
        }
    }
    let limits = limits(root, &campaign.plan)?;
    let _away = AffinityGuard::keep_off(&campaign.plan.cpu.into())?;
    let began = Instant::now();
    let before = campaign.cells.len();
    let planned = campaign.cells_planned();
    for round in 0..campaign.plan.rounds {
        for (added_hz, kind) in shuffled(campaign.plan.cells(), campaign.plan.seed, round) {
            if campaign.find(round, added_hz, kind).is_some() {
                continue;
            }
            let done = campaign.cells.len();
            let each = began.elapsed().as_secs_f64() / (done - before).max(1) as f64;
            let each = if done == before { campaign.plan.cell_ns as f64 / 1e9 } else { each };
            progress(CampaignProgress { done, planned, left: Duration::from_secs_f64(each * (planned - done) as f64) });
            if signals.take().is_some() {
                return Ok(CampaignEnd::Interrupted);
            }
            let measured = measure(campaign, root, guard.as_ref().ok(), added_hz, kind);
            // Also after a failure: nothing else restores it.
            let lowered = limits.restore(root);
            let measured = measured?;
            if let Some(lowered_hz) = lowered? {
                campaign.warnings.push(format!(
                    "the kernel lowered kernel.perf_event_max_sample_rate to {lowered_hz} in round {round} at {added_hz} Hz; it was put back to {}",
                    limits.max_sample_rate_hz
                ));
            }
            campaign.cells.push(CampaignCell { round, added_hz, measured });
            store(campaign).map_err(TickError::Store)?;
        }
    }
    Ok(CampaignEnd::Complete)
}

fn measure(
    campaign: &Campaign,
    root: &Path,
    janitor: Option<&Arc<Janitor>>,
    added_hz: u32,
    kind: CellKind,
) -> Result<CellResult, TickError> {
    let cpu = campaign.plan.cpu;
    let policy = campaign.plan.sched.parse()?;
    // Ends with the cell, even on an error.
    let _clock = if added_hz > 0 { Some(CpuClock::start(cpu, added_hz)?) } else { None };
    let job = |copies, pieces| SortJob {
        root,
        cpu,
        interrupted: cpu,
        policy,
        copies,
        processes: campaign.plan.processes,
        body: Body::Sort,
        iterations: 1,
        pieces,
    };
    Ok(match kind {
        CellKind::Trap => trap(cpu)?,
        CellKind::Sorts { copies } => {
            let timed = time_work(job(copies, campaign.sorts))?;
            CellResult::Sorts {
                copies,
                sorts: campaign.sorts,
                elapsed_ns: timed.elapsed_ns,
                interrupts: timed.interrupts,
                window_ns: timed.window_ns,
            }
        }
        CellKind::Handler => {
            // A few seconds of events suffice and fit the buffer.
            let pieces = if campaign.plan.cell_ns > RECORD_MAX.get() {
                (campaign.sorts as f64 * RECORD_MAX.get() as f64 / campaign.plan.cell_ns as f64).ceil() as u64
            } else {
                campaign.sorts
            };
            let (_, record) = record_timer(root, cpu, janitor.cloned(), || time_work(job(1, pieces)))?;
            CellResult::Handler {
                interrupts: record.interrupts,
                handler_ns: record.handler_ns,
                window_ns: record.window_ns,
                lost_events: record.lost_events,
            }
        }
        CellKind::Events => {
            let (counted, window) = events::count(job(1, campaign.sorts), &campaign.plan.events)?;
            CellResult::Events {
                sorts: campaign.sorts,
                interrupts: counted.interrupts,
                window_ns: window.get(),
                counts: counted.counts,
            }
        }
    })
}

/// The maximum length of a record of kernel events.
const RECORD_MAX: Nanos = Nanos::from_secs(2);

#[cfg(test)]
mod tests {
    use becalm_linux::sched;

    use super::*;
    use becalm_units::CpuId;
    use becalm_units::fault::Fault;

    fn plan() -> CampaignPlan {
        let cpu = sched::allowed_cpus().unwrap().iter().last().unwrap();
        CampaignPlan {
            cpu,
            rates_hz: vec![0, 1_000],
            copies: vec![1, 2],
            processes: true,
            rounds: 2,
            sched: "other".to_owned(),
            cell_ns: 1_000_000,
            seed: 1,
            events: Vec::new(),
        }
    }

    #[test]
    fn a_round_has_every_cell_once() {
        let mut plan = plan();
        assert_eq!(plan.cells().len(), 2 * 3 + 1);
        plan.events.push("cycles".to_owned());
        let cells = plan.cells();
        assert_eq!(cells.len(), 2 * 4 + 1);
        for (at, cell) in cells.iter().enumerate() {
            assert!(!cells[..at].contains(cell), "{cell:?}");
        }
    }

    #[test]
    fn a_rate_above_the_limit_is_refused_before_anything_is_measured() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("proc/sys/kernel");
        std::fs::create_dir_all(&folder).unwrap();
        assert!(matches!(limits(root.path(), &plan()), Err(TickError::NoPerf)));
        std::fs::write(folder.join("perf_event_max_sample_rate"), "999\n").unwrap();
        let error = limits(root.path(), &plan()).unwrap_err();
        assert!(error.is_usage() && error.to_string().contains("1000 interrupts a second exceed"), "{error}");
        std::fs::write(folder.join("perf_event_max_sample_rate"), "1000\n").unwrap();
        assert!(limits(root.path(), &plan()).is_ok());
    }

    #[test]
    fn a_limit_that_a_killed_session_left_lowered_is_put_back_and_said() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("proc/sys/kernel");
        std::fs::create_dir_all(&folder).unwrap();
        let file = folder.join("perf_event_max_sample_rate");
        std::fs::write(&file, "8000\n").unwrap();
        let said = put_back(root.path(), 100_000).unwrap().unwrap();
        assert!(said.contains("was 8000 when the campaign went on, and 100000 when it began"), "{said}");
        assert_eq!(std::fs::read_to_string(&file).unwrap().trim(), "100000");
        assert_eq!(put_back(root.path(), 100_000).unwrap(), None);
        // What somebody has raised meanwhile stays.
        assert_eq!(put_back(root.path(), 50_000).unwrap(), None);
    }

    #[test]
    fn a_cpu_that_does_not_exist_is_refused() {
        let error = begin(Path::new("/"), CampaignPlan { cpu: CpuId::new(4_000), ..plan() }).unwrap_err();
        assert!(error.is_usage(), "{error}");
    }
}
