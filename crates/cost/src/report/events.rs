//! Counts of the processor in a measurement, as fields.

use becalm_analyze::events::EventRate;
use becalm_report::catalogue;
use becalm_report::form::field::{Field, Title, field, fields};
use becalm_report::form::figure::{Often, Share};

use crate::analysis::{MeasuredCost, tick};

/// An event with the measurement that it was counted in.
pub(crate) struct EventRow<A> {
    /// The measurement.
    pub(crate) counted_in: A,
    /// The frequency of the event in it.
    pub(crate) rate: EventRate,
}

/// A row with the frequency of an event.
pub(crate) trait EventTimes {
    /// The frequency of the event.
    fn rate(&self) -> &EventRate;
}

impl<A> EventTimes for EventRow<A> {
    fn rate(&self) -> &EventRate {
        &self.rate
    }
}

impl EventTimes for tick::EventAtRate {
    fn rate(&self) -> &EventRate {
        &self.rate
    }
}

/// The name of the event.
pub(crate) const fn event<R: EventTimes>() -> Field<R> {
    field!(catalogue::EVENT, |row| row.rate().event.clone())
}

/// Its frequency outside the kernel.
pub(crate) const fn user<R: EventTimes>(name: &'static str, title: &'static str) -> Field<R> {
    field!(Title::new(name, title), |row| row.rate().user.map(Often))
}

/// Its frequency in the kernel.
pub(crate) const fn kernel<R: EventTimes>(name: &'static str, title: &'static str) -> Field<R> {
    field!(Title::new(name, title), |row| row.rate().kernel.map(Often))
}

/// The share of the time that it was counted.
pub(crate) const fn counted<R: EventTimes>() -> Field<R> {
    field!(catalogue::COUNTED_RATIO, |row| Share(row.rate().counted_ratio))
}

/// An event of a probe, by the probe's name.
pub(crate) type ProbeEvent = EventRow<String>;

/// The events of probes, by the probes' names.
pub(crate) fn rows<'a>(costs: impl Iterator<Item = (&'a str, Option<&'a MeasuredCost>)>) -> Vec<ProbeEvent> {
    let probe_rows = |(name, cost): (&'a str, Option<&'a MeasuredCost>)| {
        let row = move |rate: &EventRate| ProbeEvent { counted_in: name.to_owned(), rate: rate.clone() };
        cost.into_iter().flat_map(move |cost| cost.events.iter().map(row))
    };
    costs.flat_map(probe_rows).collect()
}

fields! {
    /// The fields of an event of a probe.
    pub(crate) ROW, row: ProbeEvent {
        NAME = "name", "of", |row| row.counted_in.clone();
        EVENT = event();
        USER_PER_REPETITION = user("user_per_repetition", "user, each");
        KERNEL_PER_REPETITION = kernel("kernel_per_repetition", "kernel, each");
        COUNTED_RATIO = counted();
    }
}
