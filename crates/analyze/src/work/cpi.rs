//! Cycles per instruction (CPI) of a body (Radojković et al. 2008, Table 1: the higher it is, the less a tick on the sibling thread costs).

use becalm_model::node::WorkLoopDoc;

use super::counts::EventTotal;

/// The source of the cycles and instructions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CpiFrom {
    /// The processor's own counters, in the loop itself.
    Counters,
    /// The body's number of instructions, the calibrated time of an iteration, and the core's speed measured by additions just before the run.
    CoreClock,
}

impl CpiFrom {
    /// Its name in documents.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Counters => "counters",
            Self::CoreClock => "core_clock",
        }
    }
}

/// Cycles per instruction.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Cpi {
    /// Cycles per instruction of the loop.
    pub cycles: f64,
    /// The same with the core's speed in all but the slowest and the fastest twentieth of the trials; equal to `cycles` if counted.
    pub low: f64,
    /// The other end.
    pub high: f64,
    /// Its source.
    pub from: CpiFrom,
}

/// From the processor's counters if they counted, else from the core's speed; `None` without either.
pub(super) fn cpi(counts: &[EventTotal], work_loop: Option<&WorkLoopDoc>) -> Option<Cpi> {
    counted(counts).or_else(|| work_loop.and_then(estimated))
}

fn counted(counts: &[EventTotal]) -> Option<Cpi> {
    let user = |event: &str| counts.iter().find(|count| count.event == event).and_then(|count| count.user);
    let cycles = user("cycles")? / user("instructions").filter(|count| *count > 0.0)?;
    Some(Cpi { cycles, low: cycles, high: cycles, from: CpiFrom::Counters })
}

fn estimated(work_loop: &WorkLoopDoc) -> Option<Cpi> {
    let clock = work_loop.core_clock?;
    let instructions = work_loop.iterations as f64 * clock.instructions as f64;
    if instructions <= 0.0 {
        return None;
    }
    let cycles = |hz: u64| work_loop.calibrated_ns.get() as f64 * 1e-9 * hz as f64 / instructions;
    Some(Cpi {
        cycles: cycles(clock.hz),
        low: cycles(clock.low_hz),
        high: cycles(clock.high_hz),
        from: CpiFrom::CoreClock,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use becalm_model::node::CoreClockDoc;
    use becalm_units::{CpuId, Nanos};

    fn work_loop(core_clock: Option<CoreClockDoc>) -> WorkLoopDoc {
        WorkLoopDoc {
            cpu: CpuId::new(0),
            iterations: 100,
            calibrated_ns: Nanos::from_micros(257),
            others_iterations: 0,
            core_clock,
        }
    }

    fn count(event: &str, user: Option<f64>) -> EventTotal {
        EventTotal { event: event.to_owned(), user, kernel: Some(9e9), counted_ratio: 1.0, samples: 10 }
    }

    #[test]
    fn counters_come_before_the_cores_speed() {
        let clock =
            CoreClockDoc { instructions: 514, hz: 2_000_000_000, low_hz: 1_900_000_000, high_hz: 2_100_000_000 };
        // 257 us at 2 GHz are 514,000 cycles for 51,400 instructions.
        let estimated = cpi(&[], Some(&work_loop(Some(clock)))).unwrap();
        assert_eq!((estimated.cycles, estimated.from), (10.0, CpiFrom::CoreClock));
        assert_eq!((estimated.low, estimated.high), (9.5, 10.5));
        assert_eq!(estimated.from.name(), "core_clock");
        let both = [count("instructions", Some(1e6)), count("cycles", Some(1.1e7))];
        let counted = cpi(&both, Some(&work_loop(Some(clock)))).unwrap();
        assert_eq!((counted.cycles, counted.low, counted.from), (11.0, 11.0, CpiFrom::Counters));
    }

    #[test]
    fn what_is_not_known_is_not_told() {
        assert_eq!(cpi(&[count("cycles", Some(1e6))], Some(&work_loop(None))), None);
        assert_eq!(cpi(&[count("cycles", None), count("instructions", Some(1.0))], None), None);
        assert_eq!(cpi(&[count("cycles", Some(1.0)), count("instructions", Some(0.0))], None), None);
    }
}
