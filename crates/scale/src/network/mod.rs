//! The costs of messages: LogGOPS (Culler 1993, Alexandrov 1995, Ino 2001, Hoefler 2010), plus reductions and shared links.
//!
//! A message of b bytes occupies its sender's CPU for o + (b-1) O, is on the way for L + (b-1) G, and occupies its receiver's CPU for o + (b-1) O.
//! The card takes the next one g + (b-1) G after the last. Above S bytes a message is announced first, and sent when its receiver requests it (see
//! [`crate::machine`]).
//!
//! Messages between ranks of one node may have their own costs: a second L, o, g, G and O, for shared memory. All messages from the ranks of a node
//! to other nodes use one card.
//!
//! Presets are order-of-magnitude figures for questions such as "does the network matter here"; for a real machine, measure the parameters
//! (`becalm-mpi network` does) and specify them. A published latency only determines L + 2 o; the split is stated with each.

mod presets;
mod text;

use becalm_units::Nanos;

use crate::ScaleError;

/// The maximum of a parameter, and of the time for a message's bytes: 2^40 ns (18 minutes).
const LIMIT: Nanos = Nanos::new(1 << 40);

/// The largest share of links, in thousandths: a million ranks behind one.
const SHARE_LIMIT: u64 = 1_000_000_000;

/// The costs of a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Network {
    costs: MessageCosts,
    byte_reduction_ps: i64,
    eager_limit: Option<u64>,
    links: Links,
    packet: u64,
    barrier_wire: Nanos,
    barrier_step: Nanos,
    within: Option<MessageCosts>,
}

/// The costs of a message between two ranks: L, o, g, and G and O in picoseconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MessageCosts {
    /// L: from the end of a send until the message can be received.
    pub latency: Nanos,
    /// o: CPU time of a send, and of a receive.
    pub overhead: Nanos,
    /// g: minimum time between two sends of a rank, and between two receives.
    pub gap: Nanos,
    /// G: transfer time per byte, in picoseconds.
    pub byte_gap_ps: i64,
    /// O: CPU time per byte, in picoseconds.
    pub byte_overhead_ps: i64,
}

/// The costs of a message between two ranks of a node, if different from those between nodes.
pub type WithinNode = MessageCosts;

/// How the links within the network are shared when all ranks send to all.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Links {
    /// Every rank can send at full speed to any other.
    Full,
    /// The bisection has this many times less capacity, in thousandths: 2,000 halves the speed of all.
    Tapered(u64),
    /// A torus of three equal dimensions, of k nodes each: half of all messages cross the 2 k^2 links of its middle, so a node's messages take k / 8
    /// times as long.
    Torus,
}

impl Network {
    /// LogGP's parameters: latency L, overhead o of a send and of a receive, gap g between messages of one rank, time G of a byte in picoseconds. By
    /// default a hardware barrier takes L on the wire and o per step, bytes take no CPU time, all messages are eager, and links are not shared. Fails
    /// for negative values or values above 18 minutes.
    pub fn new(latency: Nanos, overhead: Nanos, gap: Nanos, byte_gap_ps: i64) -> Result<Self, ScaleError> {
        Self::plain(latency, overhead, gap, byte_gap_ps).checked()
    }

    const fn plain(latency: Nanos, overhead: Nanos, gap: Nanos, byte_gap_ps: i64) -> Self {
        Self {
            costs: MessageCosts { latency, overhead, gap, byte_gap_ps, byte_overhead_ps: 0 },
            byte_reduction_ps: 0,
            eager_limit: None,
            links: Links::Full,
            packet: 0,
            barrier_wire: latency,
            barrier_step: overhead,
            within: None,
        }
    }

    /// Sets the costs of a hardware barrier: on the wire, and per step of a rank.
    pub fn with_hardware_barrier(self, wire: Nanos, step: Nanos) -> Result<Self, ScaleError> {
        Self { barrier_wire: wire, barrier_step: step, ..self }.checked()
    }

    /// Sets the CPU times of a byte in picoseconds: O of its send and of its receive, and R of its reduction.
    pub fn with_cpu_bytes(self, byte_overhead_ps: i64, byte_reduction_ps: i64) -> Result<Self, ScaleError> {
        Self { costs: MessageCosts { byte_overhead_ps, ..self.costs }, byte_reduction_ps, ..self }.checked()
    }

    /// Sets the costs of messages within a node.
    pub fn with_node(self, within: WithinNode) -> Result<Self, ScaleError> {
        Self { within: Some(within), ..self }.checked()
    }

    /// The costs of messages within a node, if given.
    pub const fn within(&self) -> Option<WithinNode> {
        self.within
    }

    /// The network for messages between ranks of a node: with their own costs, or by default those between nodes, and always with enough links.
    pub fn within_node(&self) -> Self {
        Self { links: Links::Full, packet: 0, costs: self.within.unwrap_or(self.costs), ..*self }
    }

    /// Makes messages of more than `bytes` wait until their receiver requests them.
    #[must_use]
    pub const fn with_rendezvous_above(self, bytes: u64) -> Self {
        Self { eager_limit: Some(bytes), ..self }
    }

    /// Sets how links are shared, and the minimum size of a message on them, in bytes. Fails for a taper of less than 1 or more than a million.
    pub fn with_links(self, links: Links, packet: u64) -> Result<Self, ScaleError> {
        Self { links, packet, ..self }.checked()
    }

    fn checked(self) -> Result<Self, ScaleError> {
        let costs = self.costs;
        let between = [("L", costs.latency), ("o", costs.overhead), ("g", costs.gap)];
        let barrier = [("B", self.barrier_wire), ("b", self.barrier_step)];
        let within = self.within.map(|own| [("nL", own.latency), ("no", own.overhead), ("ng", own.gap)]);
        for (name, value) in between.into_iter().chain(barrier).chain(within.into_iter().flatten()) {
            if value < Nanos::ZERO || value > LIMIT {
                return Err(ScaleError::Range(name, value.to_string(), "0ns to 18 minutes"));
            }
        }
        let bytes = [("G", costs.byte_gap_ps), ("O", costs.byte_overhead_ps), ("R", self.byte_reduction_ps)];
        let within = self.within.map(|own| [("nG", own.byte_gap_ps), ("nO", own.byte_overhead_ps)]);
        for (name, value) in bytes.into_iter().chain(within.into_iter().flatten()) {
            if !(0..=LIMIT.get()).contains(&value) {
                return Err(ScaleError::Range(name, format!("{value}ps"), "0 to 1 s a byte"));
            }
        }
        if let Links::Tapered(share) = self.links
            && !(1_000..=SHARE_LIMIT).contains(&share)
        {
            return Err(ScaleError::Range("T", text::thousandths(share), "1 to 1000000"));
        }
        Ok(self)
    }

    /// The name, the source of the figures, and the parameters of each preset.
    pub fn presets() -> impl Iterator<Item = (&'static str, &'static str, Self)> {
        presets::PRESETS.into_iter()
    }

    /// L: time on the wire.
    pub const fn latency(&self) -> Nanos {
        self.costs.latency
    }

    /// o: CPU time of a send, and of a receive.
    pub const fn overhead(&self) -> Nanos {
        self.costs.overhead
    }

    /// g: minimum time between two sends of a rank, and between two receives.
    pub const fn gap(&self) -> Nanos {
        self.costs.gap
    }

    /// G: transfer time per byte, in picoseconds.
    pub const fn byte_gap_ps(&self) -> i64 {
        self.costs.byte_gap_ps
    }

    /// O: CPU time per byte, in picoseconds.
    pub const fn byte_overhead_ps(&self) -> i64 {
        self.costs.byte_overhead_ps
    }

    /// Wire time of a hardware barrier.
    pub const fn barrier_wire(&self) -> Nanos {
        self.barrier_wire
    }

    /// CPU time of each step of a rank in a hardware barrier: entering, arming the wire, leaving.
    pub const fn barrier_step(&self) -> Nanos {
        self.barrier_step
    }

    /// S: the largest eager message; `None` if all are eager.
    pub const fn eager_limit(&self) -> Option<u64> {
        self.eager_limit
    }

    /// Whether a message waits for its receiver.
    pub fn waits_for_receiver(&self, bytes: u64) -> bool {
        self.eager_limit.is_some_and(|limit| bytes > limit)
    }

    /// (bytes - 1) G: the transfer time of the bytes after the first, rounded up to the nanosecond.
    pub fn bytes_time(&self, bytes: u64) -> Result<Nanos, ScaleError> {
        time_of(bytes.saturating_sub(1), self.costs.byte_gap_ps, 1_000)
    }

    /// o + (bytes - 1) O: the CPU time of a send, and of a receive.
    pub fn cpu_time(&self, bytes: u64) -> Result<Nanos, ScaleError> {
        Ok(self.costs.overhead + time_of(bytes.saturating_sub(1), self.costs.byte_overhead_ps, 1_000)?)
    }

    /// bytes R: the CPU time for reducing this many bytes.
    pub fn reduction_time(&self, bytes: u64) -> Result<Nanos, ScaleError> {
        time_of(bytes, self.byte_reduction_ps, 1_000)
    }

    /// g + (bytes - 1) G: the time until a card takes the next message, with links on which each message waits for `share` thousandths (see
    /// [`Network::share`]).
    pub fn gap_after(&self, bytes: u64, share: u64) -> Result<Nanos, ScaleError> {
        let taken = bytes.max(self.packet).saturating_sub(1);
        Ok(self.costs.gap
            + time_of(taken, self.costs.byte_gap_ps.saturating_mul(share.min(SHARE_LIMIT) as i64), 1_000_000)?)
    }

    /// The time of a link that each message takes, in thousandths, when all ranks send to all.
    pub fn share(&self, ranks: u64, per_node: u64) -> u64 {
        match self.links {
            Links::Full => 1_000,
            Links::Tapered(share) => share,
            Links::Torus => {
                let nodes = ranks.div_ceil(per_node.max(1)).max(1);
                let side = (1_u64..).find(|side| side.saturating_pow(3) >= nodes).unwrap_or(1);
                // Each of k^3 nodes sends m messages to others. Half of them use 2 k^2 links that carry one message at a time: they take m k / 4 of a
                // message's time in two directions, so m k / 8. That is k / 8 for each message of the node, whichever of its ranks sends it: the
                // ranks share the card, where their messages wait for each other anyway, so their number must not be counted again.
                (1_000 * side / 8).clamp(1_000, SHARE_LIMIT)
            }
        }
    }
}

/// The time for this many bytes at `each` parts of a nanosecond, rounded up to the nanosecond.
fn time_of(bytes: u64, each: i64, parts: u128) -> Result<Nanos, ScaleError> {
    let sum = u128::from(bytes) * each.unsigned_abs() as u128;
    let time = i64::try_from(sum.div_ceil(parts)).map_or(Nanos::MAX, Nanos::new);
    if time > LIMIT {
        return Err(ScaleError::Overflow("the time of one message", LIMIT, "send fewer bytes"));
    }
    Ok(time)
}
