//! Networks as users write them: a preset, parameters, or a preset with some of its parameters changed.

use std::fmt;
use std::str::FromStr;

use becalm_units::{ByteCount, Nanos};

use super::presets::PRESETS;
use super::{Links, MessageCosts, Network};
use crate::ScaleError;

const FORM: &str = "write bgl, infiniband, ndr, slingshot, slingshot11, ethernet, or own parameters like \
                    L=2500ns,o=1500ns,g=1000ns,G=6ns, or a preset with other parameters like infiniband,S=8Ki (G, O and R are the \
                    times of a byte on the wire, of its CPUs, and of its reduction, and may be fractions, like 0.04ns; above S \
                    bytes messages are asked for first; T is what of a link's time a message takes where all send to all, a \
                    number or torus, and P its least bytes; B and b are the wire and the CPU steps of a hardware barrier; nL, no, \
                    ng, nG and nO are L, o, g, G and O of messages within a node)";

/// The parameters; those from the fifth on are optional.
const NAMES: [&str; 16] = ["L", "o", "g", "G", "B", "b", "O", "R", "S", "T", "P", "nL", "no", "ng", "nG", "nO"];

/// The index of the first parameter of messages within a node.
const WITHIN: usize = 11;

impl FromStr for Network {
    type Err = ScaleError;

    fn from_str(text: &str) -> Result<Self, ScaleError> {
        let err = |why: String| ScaleError::Text { text: text.to_owned(), expected: "a network", why, form: FORM };
        let (first, rest) = text.split_once(',').map_or((text, None), |(first, rest)| (first, Some(rest)));
        let preset = PRESETS.iter().find(|(name, _, _)| *name == first).map(|(_, _, network)| *network);
        let Some(base) = preset else { return own(text, None, &err) };
        rest.map_or(Ok(base), |rest| own(rest, Some(base), &err))
    }
}

/// Reads parameters that override those of a preset, or are complete on their own.
fn own(text: &str, base: Option<Network>, err: &impl Fn(String) -> ScaleError) -> Result<Network, ScaleError> {
    let mut values: [Option<&str>; NAMES.len()] = [None; NAMES.len()];
    for part in text.split(',') {
        let (key, value) =
            part.split_once('=').ok_or_else(|| err(format!("'{part}' is no preset and no parameter")))?;
        let at = NAMES.iter().position(|name| *name == key).ok_or_else(|| err(format!("'{key}' is unknown")))?;
        if values[at].replace(value).is_some() {
            return Err(err(format!("{key} is given twice")));
        }
    }
    let missing = |at: usize| err(format!("{} is missing", NAMES[at]));
    let time = |at: usize, base: Option<Nanos>| match values[at] {
        Some(value) => value.parse::<Nanos>().map_err(|error| err(error.to_string())),
        None => base.ok_or_else(|| missing(at)),
    };
    let byte = |at: usize, base: Option<i64>| match values[at] {
        Some(value) => picoseconds(NAMES[at], value).map_err(err),
        None => base.ok_or_else(|| missing(at)),
    };
    let bytes = |at: usize, base: Option<u64>| match values[at] {
        Some(value) => {
            value.parse::<ByteCount>().map(|count| Some(count.get())).map_err(|error| err(error.to_string()))
        }
        None => Ok(base),
    };
    let times =
        [0, 1, 2].map(|at| time(at, base.map(|base| [base.costs.latency, base.costs.overhead, base.costs.gap][at])));
    let [latency, overhead, gap] = times;
    let plain = Network::new(latency?, overhead?, gap?, byte(3, base.map(|base| base.costs.byte_gap_ps))?)?;
    let base = base.unwrap_or(plain);
    let wire = time(4, Some(base.barrier_wire))?;
    let step = time(5, Some(base.barrier_step))?;
    let (byte_overhead, reduction) =
        (byte(6, Some(base.costs.byte_overhead_ps))?, byte(7, Some(base.byte_reduction_ps))?);
    let eager_limit = bytes(8, base.eager_limit)?;
    let links = values[9].map_or(Ok(base.links), |value| links(value).map_err(err))?;
    let packet = bytes(10, Some(base.packet))?.unwrap_or(0);
    let network = plain.with_hardware_barrier(wire, step)?.with_cpu_bytes(byte_overhead, reduction)?;
    let network = network.with_links(links, packet)?;
    let network = eager_limit.map_or(network, |limit| network.with_rendezvous_above(limit));
    if base.within.is_none() && values[WITHIN..].iter().all(Option::is_none) {
        return Ok(network);
    }
    // Missing ones are the preset's, or those between nodes.
    let own = base.within.unwrap_or(network.costs);
    network.with_node(MessageCosts {
        latency: time(WITHIN, Some(own.latency))?,
        overhead: time(WITHIN + 1, Some(own.overhead))?,
        gap: time(WITHIN + 2, Some(own.gap))?,
        byte_gap_ps: byte(WITHIN + 3, Some(own.byte_gap_ps))?,
        byte_overhead_ps: byte(WITHIN + 4, Some(own.byte_overhead_ps))?,
    })
}

/// A duration with up to three decimals of a nanosecond. A thousandth of each unit down to the nanosecond is again a unit, so the text is read one
/// unit up.
fn picoseconds(name: &str, text: &str) -> Result<i64, String> {
    let finer = match text.strip_suffix("ns") {
        Some(number) => format!("{number}us"),
        None => match text.strip_suffix("ps") {
            Some(number) => format!("{number}ns"),
            None => {
                return text.parse::<Nanos>().map_err(|e| e.to_string()).and_then(|time| {
                    time.get().checked_mul(1_000).ok_or_else(|| format!("{name} is {text}, which is too long"))
                });
            }
        },
    };
    let time = finer.parse::<Nanos>().map(Nanos::get);
    time.map_err(|_| format!("{name} is '{text}', not a duration of whole picoseconds"))
}

/// `full`, `torus`, or a number with up to three decimals.
fn links(text: &str) -> Result<Links, String> {
    match text {
        "full" => return Ok(Links::Full),
        "torus" => return Ok(Links::Torus),
        _ => {}
    }
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let number = (digits(whole) && digits(part) && part.len() <= 3 && !whole.is_empty())
        .then(|| format!("{whole}{part:0<3}").parse::<u64>().ok())
        .flatten();
    let why = || format!("T is '{text}', not full, torus, or a number with up to three decimals");
    number.map(|share| if share == 1_000 { Links::Full } else { Links::Tapered(share) }).ok_or_else(why)
}

/// A number of thousandths, without trailing zeros.
pub(super) fn thousandths(number: u64) -> String {
    (number as f64 / 1e3).to_string()
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nanos = |picoseconds: i64| picoseconds as f64 / 1e3;
        let MessageCosts { latency, overhead, gap, byte_gap_ps, byte_overhead_ps } = self.costs;
        let Self { barrier_wire, barrier_step, .. } = self;
        write!(f, "L={latency},o={overhead},g={gap},G={}ns", nanos(byte_gap_ps))?;
        write!(f, ",B={barrier_wire},b={barrier_step}")?;
        for (name, value) in [("O", byte_overhead_ps), ("R", self.byte_reduction_ps)] {
            if value > 0 {
                write!(f, ",{name}={}ns", nanos(value))?;
            }
        }
        if let Some(limit) = self.eager_limit {
            write!(f, ",S={limit}")?;
        }
        match self.links {
            Links::Full => {}
            Links::Tapered(share) => write!(f, ",T={}", thousandths(share))?,
            Links::Torus => write!(f, ",T=torus")?,
        }
        if self.packet > 0 {
            write!(f, ",P={}", self.packet)?;
        }
        if let Some(own) = self.within {
            let MessageCosts { latency, overhead, gap, byte_gap_ps, byte_overhead_ps } = own;
            write!(f, ",nL={latency},no={overhead},ng={gap},nG={}ns", nanos(byte_gap_ps))?;
            if byte_overhead_ps != self.costs.byte_overhead_ps {
                write!(f, ",nO={}ns", nanos(byte_overhead_ps))?;
            }
        }
        Ok(())
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
    fn further_parameters_and_changed_presets() {
        let plain: Network = "L=1us,o=100ns,g=10ns,G=0.1ns".parse().unwrap();
        let more: Network = "L=1us,o=100ns,g=10ns,G=0.1ns,O=0.2ns,R=0.05ns,S=8Ki,T=2.5,P=64".parse().unwrap();
        assert_eq!((plain.cpu_time(11), more.cpu_time(11)), (Ok(Nanos::new(100)), Ok(Nanos::new(102))));
        assert_eq!((plain.reduction_time(100), more.reduction_time(100)), (Ok(Nanos::ZERO), Ok(Nanos::new(5))));
        assert!(!plain.waits_for_receiver(u64::MAX));
        assert!(!more.waits_for_receiver(8_192) && more.waits_for_receiver(8_193));
        assert_eq!((more.share(5, 1), more.gap_after(1, 2_500)), (2_500, Ok(Nanos::new(10 + 16))));
        assert_eq!(more.to_string().parse(), Ok(more));
        let changed: Network = "slingshot11,S=1Ki,O=0.1ns".parse().unwrap();
        let base: Network = "slingshot11".parse().unwrap();
        assert_eq!(changed, base.with_rendezvous_above(1_024).with_cpu_bytes(100, 0).unwrap());
        assert_eq!("bgl,T=full,P=0".parse::<Network>().unwrap().gap_after(1, 1_000), Ok(Nanos::ZERO));
    }

    /// A cube of 8 x 8 x 8 nodes: half of all messages over 2 x 64 links is as if each had one for itself.
    #[test]
    fn a_torus_saturates_from_eight_nodes_a_side() {
        let torus: Network = "L=0ns,o=0ns,g=0ns,G=1ns,T=torus".parse().unwrap();
        let shares: Vec<u64> = [1, 512, 513, 4_096, 32_768].iter().map(|ranks| torus.share(*ranks, 1)).collect();
        assert_eq!(shares, [1_000, 1_000, 1_125, 2_000, 4_000]);
        // Two ranks of a node share its card, so their messages take as long as those of one alone.
        assert_eq!(torus.share(8_192, 2), 2_000);
    }

    #[test]
    fn messages_within_a_node_have_costs_of_their_own() {
        let plain: Network = "L=1us,o=100ns,g=10ns,G=0.1ns,O=0.2ns,T=4,P=64".parse().unwrap();
        let same = plain.within_node();
        assert_eq!((plain.within(), same.latency(), same.cpu_time(11)), (None, plain.latency(), plain.cpu_time(11)));
        assert_eq!(same.gap_after(1, same.share(8, 2)), Ok(Nanos::new(10)), "shared links are between nodes");
        let own: Network = "L=1us,o=100ns,g=10ns,G=0.1ns,O=0.2ns,nL=300ns,no=50ns,nG=1ns".parse().unwrap();
        let within = own.within_node();
        assert_eq!(
            (within.latency(), within.overhead(), within.gap()),
            (Nanos::new(300), Nanos::new(50), Nanos::new(10))
        );
        assert_eq!((within.bytes_time(11), within.cpu_time(11)), (Ok(Nanos::new(10)), Ok(Nanos::new(52))));
        assert_eq!(own.to_string().parse(), Ok(own));
        let without_copy: Network = "L=1us,o=100ns,g=10ns,G=0.1ns,O=0.2ns,nO=0ns".parse().unwrap();
        assert_eq!(without_copy.within_node().cpu_time(11), Ok(Nanos::new(100)));
        assert_eq!(without_copy.to_string().parse(), Ok(without_copy));
        let preset: Network = "infiniband,nL=1us".parse().unwrap();
        assert_eq!(preset.latency(), "infiniband".parse::<Network>().unwrap().latency());
        assert_eq!(preset.within_node().latency(), Nanos::from_micros(1));
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
            ("bgl,O=0.0001ns", "O is"),
            ("bgl,S=-1", "-1"),
            ("bgl,nL=1h", "nL is"),
            ("bgl,nG=0.0001ns", "nG is"),
            ("bgl,nS=8", "'nS' is unknown"),
            ("bgl,T=0.5", "T is 0.5"),
            ("bgl,T=1.0001", "three decimals"),
            ("bgl,ndr", "no parameter"),
        ] {
            let error = text.parse::<Network>().unwrap_err().to_string();
            assert!(error.contains(why), "{text}: {error}");
        }
    }

    proptest! {
        #[test]
        fn parsing_never_panics(text in "(bgl,)?(n?[LogGBbORSTP]=[0-9nmus.]*,?)*") {
            let _ = text.parse::<Network>();
        }
    }
}
