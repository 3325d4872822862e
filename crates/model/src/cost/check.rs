//! What the types of a measurement's document do not say: times that can be, names that are told apart.

use becalm_units::CpuId;

use super::{ClockWayDoc, CostDoc, InstrumentDoc, Measured, PlacementDoc, ProbeDoc, SCHEMA, SchedulerDoc};
use crate::Document;
use crate::event_count::EventCount;

impl Document for CostDoc {
    const SCHEMA: &'static str = SCHEMA;

    fn schema(&self) -> &str {
        &self.schema
    }

    fn node(&self) -> &str {
        &self.node
    }

    fn check(&self) -> Result<(), String> {
        if self.cpu.get() >= CpuId::LIMIT {
            return Err(format!("CPU {} is above the limit of {}", self.cpu, CpuId::LIMIT - 1));
        }
        let series = self.series();
        for (at, (name, of)) in series.iter().enumerate() {
            if series[..at].iter().any(|(other, _)| other == name) {
                return Err(format!("'{name}' stands there twice"));
            }
            if of.batch == 0 || of.samples == 0 {
                return Err(format!("'{name}' has samples of {} repetitions, {} of them", of.batch, of.samples));
            }
            of.counts.iter().try_for_each(EventCount::check).map_err(|why| format!("'{name}': {why}"))?;
        }
        match &self.measured {
            Measured::Trap(costs) | Measured::Detours(costs) => {
                costs.probes.iter().try_for_each(ProbeDoc::check)?;
                check_instrument(costs.instrument.as_ref(), costs.probes.is_empty())
            }
            Measured::Clock(costs) => {
                costs.clocks.iter().try_for_each(ClockWayDoc::check)?;
                check_instrument(costs.instrument.as_ref(), costs.clocks.is_empty())
            }
            Measured::Scheduler(costs) => costs.rows.iter().try_for_each(SchedulerDoc::check),
            Measured::Placement(costs) => costs.results.iter().try_for_each(PlacementDoc::check),
        }
    }
}

/// No time here is longer: a day. Sums of them stay far from where integers end.
const LONGEST_NS: i64 = 86_400_000_000_000;

/// No time of a sample is longer, in picoseconds: a day.
pub const LONGEST_PS: i64 = LONGEST_NS * 1_000;

fn check_time(name: &str, ns: i64, shortest: i64) -> Result<(), String> {
    let range = shortest..=LONGEST_NS;
    if range.contains(&ns) { Ok(()) } else { Err(format!("{name} is {ns}, outside of {shortest} to {LONGEST_NS}")) }
}

fn check_picos(name: &str, of: &str, ps: i64) -> Result<(), String> {
    if (0..=LONGEST_PS).contains(&ps) { Ok(()) } else { Err(format!("{name} of '{of}' is {ps}")) }
}

/// What has samples was timed by something.
fn check_instrument(instrument: Option<&InstrumentDoc>, nothing_timed: bool) -> Result<(), String> {
    match instrument {
        None if nothing_timed => Ok(()),
        None => Err("it does not tell what timed the samples".to_owned()),
        Some(of) if of.rate_hz > 0.0 && of.rate_error_ratio >= 0.0 => {
            check_picos("overhead_ps", "the instrument", of.overhead_ps)
        }
        Some(of) => Err(format!("{} Hz, known to {}, is no rate of a counter", of.rate_hz, of.rate_error_ratio)),
    }
}

impl ProbeDoc {
    fn check(&self) -> Result<(), String> {
        match (&self.series, &self.not_measured) {
            (Some(_), None) | (None, Some(_)) => Ok(()),
            _ => Err(format!("'{}' has both samples and a reason why it has none, or neither", self.name)),
        }
    }
}

impl ClockWayDoc {
    fn check(&self) -> Result<(), String> {
        let steps = [("smallest_step_ps", self.smallest_step_ps), ("median_step_ps", self.median_step_ps)];
        let cross = [("largest_ps", self.cross.map(|cross| cross.largest_ps))];
        let mut all = steps.into_iter().chain(cross);
        all.try_for_each(|(name, ps)| check_picos(name, &self.name, ps.unwrap_or(0)))
    }
}

impl SchedulerDoc {
    fn check(&self) -> Result<(), String> {
        if self.runnable == 0 {
            return Err("a row is of no runnable thread".to_owned());
        }
        check_time("elapsed_ns", self.elapsed_ns, 0)?;
        self.counts.iter().try_for_each(EventCount::check)?;
        let Some(ticks) = self.ticks else { return Ok(()) };
        check_time("handler_ns", ticks.handler_ns, 0)?;
        check_time("handler_max_ns", ticks.handler_max_ns, 0)?;
        check_time("window_ns", ticks.window_ns, 0)
    }
}

impl PlacementDoc {
    fn check(&self) -> Result<(), String> {
        for timed in [self.quiet, self.raised] {
            check_time("elapsed_ns", timed.elapsed_ns, 1)?;
            check_time("window_ns", timed.window_ns, 1)?;
        }
        let mut counts = self.counted.iter().flat_map(|pair| pair.quiet.counts.iter().chain(&pair.raised.counts));
        counts.try_for_each(EventCount::check)
    }
}
