//! LogGP parameters (Culler 1993, Alexandrov 1995) of networks.
//!
//! Presets are order-of-magnitude figures for questions such as "does the network matter here"; for a real machine,
//! measure L, o, g and G and give them. A published latency fixes L + 2 o only; the split is stated with each.

use std::fmt;
use std::str::FromStr;

use becalm_units::Nanos;

use crate::ScaleError;

/// The largest parameter, 2^40 ns (18 minutes), and the largest time that a message's bytes may take.
const LIMIT: Nanos = Nanos::new(1 << 40);

/// What a message costs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Network {
    latency: Nanos,
    overhead: Nanos,
    gap: Nanos,
    byte_gap_ps: i64,
    barrier_wire: Nanos,
    barrier_step: Nanos,
}

/// Named networks, where their figures come from, and their parameters. What no source states is called assumed.
const PRESETS: [(&str, &str, Network); 4] = [
    (
        "bgl",
        "Blue Gene/L: torus links of 175 MB/s (Adiga et al., IBM J. R&D 49, 2005), so G = 5.7 ns; hardware barrier of \
         1.5 us in all for two processes a node (Beckman et al. 2007), of which each of three CPU steps is assumed to be \
         200 ns; L = 2.5 us, o = 1.5 us and g = 1 us are assumed: they are LogGOPSim's defaults, so that both can be compared",
        Network::from_nanos(2_500, 1_500, 1_000, 5_700, 900, 200),
    ),
    (
        "infiniband",
        "InfiniBand HDR, ConnectX-6: 200 Gb/s, so G = 0.04 ns; 215 million messages a second, so g = 5 ns; latency below \
         600 ns (NVIDIA, ConnectX-6 user manual, introduction), taken as L = 0.6 us; o = 0.2 us is assumed, with which an MPI \
         message of a few bytes takes 1 us",
        Network::from_nanos(600, 200, 5, 40, 600, 200),
    ),
    (
        "slingshot",
        "Slingshot: 200 Gb/s, so G = 0.04 ns; switches of about 350 ns, at most three hops between them (De Sensi et al., An \
         In-Depth Analysis of the Slingshot Interconnect, SC20); a path through three switches and 250 ns of cables and \
         adapters is assumed, so L = 1.3 us; o = 0.3 us and g = 10 ns are assumed",
        Network::from_nanos(1_300, 300, 10, 40, 1_300, 300),
    ),
    (
        "ethernet",
        "25 Gb/s Ethernet (IEEE 802.3by), so G = 0.32 ns; all else is assumed, for TCP through the kernel without busy \
         polling: 15 us from program to program, as L = 5 us and o = 5 us; g = 1 us, a million small messages a second of one \
         thread",
        Network::from_nanos(5_000, 5_000, 1_000, 320, 5_000, 5_000),
    ),
];

const FORM: &str = "write bgl, infiniband, slingshot, ethernet, or own parameters like L=2500ns,o=1500ns,g=1000ns,G=6ns \
                    (G is the time of a byte; it may be a fraction, like 0.04ns), with B=900ns,b=200ns for the wire and the CPU \
                    steps of a hardware barrier";

impl Network {
    const fn from_nanos(latency: i64, overhead: i64, gap: i64, byte_gap_ps: i64, wire: i64, step: i64) -> Self {
        Self {
            latency: Nanos::new(latency),
            overhead: Nanos::new(overhead),
            gap: Nanos::new(gap),
            byte_gap_ps,
            barrier_wire: Nanos::new(wire),
            barrier_step: Nanos::new(step),
        }
    }

    /// Takes LogGP's parameters: latency L, overhead o of a send and of a receive, gap g between messages of one rank,
    /// time G of a byte in picoseconds. A hardware barrier is taken to need L on the wire and o for each step.
    ///
    /// # Errors
    /// [`ScaleError::Range`] for what is negative or above 18 minutes.
    pub fn new(latency: Nanos, overhead: Nanos, gap: Nanos, byte_gap_ps: i64) -> Result<Self, ScaleError> {
        Self { latency, overhead, gap, byte_gap_ps, barrier_wire: latency, barrier_step: overhead }.checked()
    }

    /// Takes other costs of a hardware barrier: on the wire, and for each of a rank's steps.
    ///
    /// # Errors
    /// As [`Network::new`].
    pub fn with_hardware_barrier(self, wire: Nanos, step: Nanos) -> Result<Self, ScaleError> {
        Self { barrier_wire: wire, barrier_step: step, ..self }.checked()
    }

    fn checked(self) -> Result<Self, ScaleError> {
        let barrier = [("B", self.barrier_wire), ("b", self.barrier_step)];
        for (name, value) in [("L", self.latency), ("o", self.overhead), ("g", self.gap)].into_iter().chain(barrier) {
            if value < Nanos::ZERO || value > LIMIT {
                return Err(ScaleError::Range { name, value: value.to_string(), allowed: "0ns to 18 minutes" });
            }
        }
        if !(0..=LIMIT.get()).contains(&self.byte_gap_ps) {
            let value = format!("{}ps", self.byte_gap_ps);
            return Err(ScaleError::Range { name: "G", value, allowed: "0 to 1 s a byte" });
        }
        Ok(self)
    }

    /// A preset's name, the source of its figures, and its parameters.
    pub fn presets() -> impl Iterator<Item = (&'static str, &'static str, Self)> {
        PRESETS.into_iter()
    }

    /// L: time on the wire.
    #[must_use]
    pub fn latency(&self) -> Nanos {
        self.latency
    }

    /// o: CPU time of a send, and of a receive.
    #[must_use]
    pub fn overhead(&self) -> Nanos {
        self.overhead
    }

    /// g: least time between two sends of a rank, and between two receives.
    #[must_use]
    pub fn gap(&self) -> Nanos {
        self.gap
    }

    /// Wire time of a hardware barrier.
    #[must_use]
    pub fn barrier_wire(&self) -> Nanos {
        self.barrier_wire
    }

    /// CPU time of each step of a rank in a hardware barrier: entering, arming the wire, leaving.
    #[must_use]
    pub fn barrier_step(&self) -> Nanos {
        self.barrier_step
    }

    /// (bytes - 1) G: what the bytes after the first add, to the nanosecond above.
    ///
    /// # Errors
    /// [`ScaleError::Overflow`] above 18 minutes.
    pub fn bytes_time(&self, bytes: u64) -> Result<Nanos, ScaleError> {
        let picoseconds = u128::from(bytes.saturating_sub(1)) * self.byte_gap_ps as u128;
        let time = i64::try_from(picoseconds.div_ceil(1_000)).map_or(Nanos::MAX, Nanos::new);
        if time > LIMIT {
            return Err(ScaleError::Overflow {
                what: "the time of one message",
                limit: LIMIT,
                advice: "send fewer bytes",
            });
        }
        Ok(time)
    }
}

impl FromStr for Network {
    type Err = ScaleError;

    fn from_str(text: &str) -> Result<Self, ScaleError> {
        if let Some((_, _, network)) = PRESETS.iter().find(|(name, _, _)| *name == text) {
            return Ok(*network);
        }
        let err = |why: String| ScaleError::Text { text: text.to_owned(), expected: "a network", why, form: FORM };
        const NAMES: [&str; 6] = ["L", "o", "g", "G", "B", "b"];
        let mut values: [Option<&str>; 6] = [None; 6];
        for part in text.split(',') {
            let (key, value) =
                part.split_once('=').ok_or_else(|| err(format!("'{part}' is no preset and no parameter")))?;
            let at = NAMES.iter().position(|name| *name == key).ok_or_else(|| err(format!("'{key}' is unknown")))?;
            if values[at].replace(value).is_some() {
                return Err(err(format!("{key} is given twice")));
            }
        }
        let needed = |at: usize| values[at].ok_or_else(|| err(format!("{} is missing", NAMES[at])));
        let time = |value: &str| value.parse::<Nanos>().map_err(|error| err(error.to_string()));
        let byte_gap_ps = picoseconds(needed(3)?).map_err(err)?;
        let network = Self::new(time(needed(0)?)?, time(needed(1)?)?, time(needed(2)?)?, byte_gap_ps)?;
        let wire = values[4].map_or(Ok(network.barrier_wire), time)?;
        let step = values[5].map_or(Ok(network.barrier_step), time)?;
        network.with_hardware_barrier(wire, step)
    }
}

/// A duration with up to three decimals of a nanosecond. A thousandth of each unit down to the nanosecond is again a
/// unit, so the text is read one unit up.
fn picoseconds(text: &str) -> Result<i64, String> {
    let finer = match text.strip_suffix("ns") {
        Some(number) => format!("{number}us"),
        None => match text.strip_suffix("ps") {
            Some(number) => format!("{number}ns"),
            None => {
                return text.parse::<Nanos>().map_err(|e| e.to_string()).and_then(|time| {
                    time.get().checked_mul(1_000).ok_or_else(|| format!("G is {text}, which is too long"))
                });
            }
        },
    };
    finer.parse::<Nanos>().map(Nanos::get).map_err(|_| format!("G is '{text}', not a duration of whole picoseconds"))
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let byte_gap = self.byte_gap_ps as f64 / 1e3;
        let Self { latency, overhead, gap, barrier_wire, barrier_step, .. } = self;
        write!(f, "L={latency},o={overhead},g={gap},G={byte_gap}ns,B={barrier_wire},b={barrier_step}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn reads_presets_and_parameters() {
        let own: Network = "L=2500ns,o=1.5us,g=1us,G=6ns".parse().unwrap();
        assert_eq!(own, Network::new(Nanos::new(2_500), Nanos::new(1_500), Nanos::new(1_000), 6_000).unwrap());
        assert_eq!(own.bytes_time(1).unwrap(), Nanos::ZERO);
        assert_eq!(own.bytes_time(11).unwrap(), Nanos::new(60));
        assert!(own.bytes_time(u64::MAX).is_err());
        for (name, source, network) in Network::presets() {
            assert_eq!(name.parse::<Network>().unwrap(), network);
            assert_eq!(network.to_string().parse::<Network>().unwrap(), network);
            assert!(!source.is_empty());
        }
        assert_eq!("L=0ns,o=0ns,g=0ns,G=40ps".parse::<Network>().unwrap().bytes_time(26).unwrap(), Nanos::new(1));
    }

    #[test]
    fn refuses_the_rest_and_says_why() {
        for (text, why) in [
            ("myrinet", "no preset"),
            ("L=1us,o=1us,g=1us", "G is missing"),
            ("L=1us,o=1us,g=1us,G=1ns,x=1ns", "'x' is unknown"),
            ("L=1us,L=1us,o=1us,g=1us,G=1ns", "twice"),
            ("L=1,o=1us,g=1us,G=1ns", "no unit"),
            ("L=1h,o=1us,g=1us,G=1ns", "L is"),
            ("L=1us,o=1us,g=1us,G=0.0001ns", "picoseconds"),
        ] {
            let error = text.parse::<Network>().unwrap_err().to_string();
            assert!(error.contains(why), "{text}: {error}");
        }
    }

    proptest! {
        #[test]
        fn parsing_never_panics(text in "[LogGB=0-9nmus,.]*") {
            let _ = text.parse::<Network>();
        }
    }
}
