//! The cost of an interrupt with each measured handler, and the shares of its parts at each rate.

use super::{Analysis, percent_per_1000};

/// The cost of an interrupt with one handler, in percent of a CPU per 1,000 interrupts per second. The trap and the indirect cost are the
/// same for all handlers of a processor, because they come from the same measurements.
#[derive(Clone, PartialEq, Debug)]
pub struct HandlerMode {
    /// The handler's name: `pit`, `tsc`, or `measured` for the one that ran while the work was timed and has no other name.
    pub mode: String,
    /// The share of kernel entry and exit.
    pub trap_percent: f64,
    /// The share of this handler.
    pub handler_percent: f64,
    /// The indirect cost as the plain mean over the pairs.
    pub indirect_percent: f64,
    /// The same as a trimmed mean.
    pub indirect_trimmed_percent: f64,
}

/// The parts of an interrupt at one rate, as shares of a CPU: f(n) = n (trap + handler + indirect).
#[derive(Clone, PartialEq, Debug)]
pub struct Contribution {
    /// The handler's name.
    pub mode: String,
    /// Interrupts per second.
    pub rate_hz: f64,
    /// The share of the traps.
    pub trap_ratio: f64,
    /// The share of the handler.
    pub handler_ratio: f64,
    /// The share of the indirect cost.
    pub indirect_ratio: f64,
}

impl HandlerMode {
    /// The costs of an interrupt with each handler: first the one that ran while the work was timed.
    pub(super) fn all(analysis: &Analysis) -> Vec<Self> {
        let mode = |mode: &str, handler_percent| Self {
            mode: mode.to_owned(),
            trap_percent: analysis.trap_percent,
            handler_percent,
            indirect_percent: analysis.indirect_percent,
            indirect_trimmed_percent: analysis.indirect_trimmed_percent,
        };
        let others = analysis.other_handlers.iter();
        let others = others.map(|other| mode(&other.name, percent_per_1000(other.handler_ns)));
        std::iter::once(mode(&analysis.handler, analysis.handler_percent)).chain(others).collect()
    }

    /// Trap, handler and indirect cost together.
    pub fn sum_percent(&self) -> f64 {
        self.trap_percent + self.handler_percent + self.indirect_percent
    }

    /// The same with the trimmed mean of the indirect costs.
    pub fn sum_trimmed_percent(&self) -> f64 {
        self.trap_percent + self.handler_percent + self.indirect_trimmed_percent
    }

    /// The shares of its parts at a rate, in interrupts per second.
    pub fn contribution(&self, rate_hz: f64) -> Contribution {
        let ratio = |percent: f64| rate_hz * percent / 100.0 / 1_000.0;
        Contribution {
            mode: self.mode.clone(),
            rate_hz,
            trap_ratio: ratio(self.trap_percent),
            handler_ratio: ratio(self.handler_percent),
            indirect_ratio: ratio(self.indirect_percent),
        }
    }
}

impl Contribution {
    /// The share of all parts together.
    pub fn total_ratio(&self) -> f64 {
        self.trap_ratio + self.handler_ratio + self.indirect_ratio
    }
}
