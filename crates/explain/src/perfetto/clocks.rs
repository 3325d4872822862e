//! The clocks of a trace. Each packet's time is on one of them; snapshots have several at one instant.

use std::collections::{BTreeMap, HashMap};

use super::messages::{ClockSnapshot, TracePacket};

/// `CLOCK_REALTIME`, as Perfetto numbers the clocks.
pub const REALTIME: u32 = 1;
/// `CLOCK_MONOTONIC`.
pub const MONOTONIC: u32 = 3;
/// `CLOCK_BOOTTIME`.
pub const BOOTTIME: u32 = 6;

/// The first clock that belongs to one sequence of packets, and the first that is no such clock any more.
const OF_SEQUENCES: std::ops::Range<u32> = 64..128;

/// The clocks of a trace, from its packets so far.
#[derive(Clone, Debug, Default)]
pub struct TraceClocks {
    /// The clock of the trace's own times; 0 until a snapshot names it.
    primary: u32,
    /// The nanoseconds of the kernel's clocks in each snapshot.
    snapshots: Vec<BTreeMap<u32, u64>>,
    /// Other clocks, by sequence and number.
    others: HashMap<(u32, u32), OtherClock>,
    /// The clock of each sequence's packets that name none.
    defaults: HashMap<u32, u32>,
}

/// A clock that a writer of packets defined.
#[derive(Clone, Copy, Debug)]
struct OtherClock {
    /// Its latest time, in its own unit, and that time on the primary clock.
    own: u64,
    primary: i64,
    unit_ns: u64,
    is_incremental: bool,
}

impl TraceClocks {
    /// The clock of the times that [`Self::time`] returns: that of the trace, mostly [`BOOTTIME`].
    pub fn primary(&self) -> u32 {
        if self.primary == 0 { BOOTTIME } else { self.primary }
    }

    /// The kernel's clocks in each snapshot, in nanoseconds.
    pub fn snapshots(&self) -> &[BTreeMap<u32, u64>] {
        &self.snapshots
    }

    /// Takes the next packet, and returns its time in nanoseconds on the primary clock; `None` if it has none. Fails if its clock is not known.
    pub fn time(&mut self, packet: &TracePacket) -> Result<Option<i64>, String> {
        let sequence = packet.trusted_packet_sequence_id;
        if packet.clears_state() {
            self.defaults.remove(&sequence);
        }
        if let Some(snapshot) = &packet.clock_snapshot {
            self.snapshot(sequence, snapshot);
        }
        if let Some(clock) = packet.trace_packet_defaults.as_ref().and_then(|defaults| defaults.timestamp_clock_id) {
            self.defaults.insert(sequence, clock);
        }
        let Some(time) = packet.timestamp else { return Ok(None) };
        let clock = packet.timestamp_clock_id.or_else(|| self.defaults.get(&sequence).copied());
        let clock = clock.unwrap_or(self.primary());
        let too_late = || format!("the time {time} is too late");
        if let Some(other) = self.others.get_mut(&owner(sequence, clock)) {
            let ticks = if other.is_incremental { i128::from(time) } else { i128::from(time) - i128::from(other.own) };
            let at = i128::from(other.primary) + ticks * i128::from(other.unit_ns);
            let at = i64::try_from(at).map_err(|_| too_late())?;
            if other.is_incremental {
                other.primary = at;
            }
            return Ok(Some(at));
        }
        let time = i64::try_from(time).map_err(|_| too_late())?;
        self.to_primary(clock, time).map(Some).ok_or_else(|| format!("no snapshot has the clock {clock}"))
    }

    /// Enters the readings of a snapshot.
    fn snapshot(&mut self, sequence: u32, snapshot: &ClockSnapshot) {
        if self.primary == 0 {
            self.primary = snapshot.primary_trace_clock;
        }
        let is_other = |clock: u32| clock >= OF_SEQUENCES.start;
        let kernels: BTreeMap<u32, u64> = (snapshot.clocks.iter())
            .filter(|clock| !is_other(clock.clock_id))
            .map(|clock| (clock.clock_id, clock.timestamp))
            .collect();
        let as_primary = |(clock, time): (&u32, &u64)| self.to_primary(*clock, i64::try_from(*time).ok()?);
        let of_primary = kernels.get_key_value(&self.primary()).and_then(as_primary);
        let known = of_primary.or_else(|| kernels.iter().find_map(as_primary));
        if let Some(primary) = known {
            for clock in snapshot.clocks.iter().filter(|clock| is_other(clock.clock_id)) {
                let other = OtherClock {
                    own: clock.timestamp,
                    primary,
                    unit_ns: clock.unit_multiplier_ns.max(1),
                    is_incremental: clock.is_incremental,
                };
                self.others.insert(owner(sequence, clock.clock_id), other);
            }
        }
        if kernels.len() > 1 {
            self.snapshots.push(kernels);
        }
    }

    /// Converts a time of one of the kernel's clocks by the latest snapshot with both.
    pub fn to_primary(&self, clock: u32, time: i64) -> Option<i64> {
        if clock == self.primary() {
            return Some(time);
        }
        let both = self.snapshots.iter().rev().find_map(|at| Some((at.get(&clock)?, at.get(&self.primary())?)));
        let (own, primary) = both?;
        time.checked_sub(i64::try_from(*own).ok()?)?.checked_add(i64::try_from(*primary).ok()?)
    }
}

/// The key of a clock: those of a sequence are other clocks in another one.
fn owner(sequence: u32, clock: u32) -> (u32, u32) {
    (if OF_SEQUENCES.contains(&clock) { sequence } else { 0 }, clock)
}
