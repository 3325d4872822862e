//! `becalm-mpi network`: the cost of messages between two ranks, in a file for `becalm predict --network`.
//!
//! Rank 0 measures with a rank of another node, and then with one of its own; the others wait. One pair does not show the effect of shared
//! links or other distances.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::Duration;

use becalm_linux::clock::{self, Counter, MonotonicRaw, Native, Source};
use becalm_linux::sched::Policy;
use becalm_model::network::{MessagesDoc, NetworkDoc, SCHEMA};
use becalm_scale::network::{Network, WithinNode};
use becalm_stats::median_high;
use becalm_units::fault::{Context, Result, UsageError};
use becalm_units::{Nanos, printable};
use clap::Args;
use mpi::topology::SimpleCommunicator;
use mpi::traits::{Communicator, CommunicatorCollectives, Destination, Root, Source as _};

use crate::job::{Job, library};
use crate::node::Seat;

/// Round trips per size.
const TRIPS: usize = 1_000;
/// Messages per burst, and number of bursts.
const BURST: usize = 64;
const BURSTS: usize = 100;
/// Message sizes in bytes: a small one; the largest one for measuring CPU time per byte, because its sender must not wait for the receiver;
/// and two whose difference gives the time per byte on the wire.
const SMALL: usize = 8;
const COPIED: usize = 1 << 13;
/// These sizes are in the document.
const LARGE: [usize; 2] = [1 << 18, 1 << 20];
/// The maximum size tested for senders that wait, and how long its receiver is away.
const WAITED: usize = 1 << 22;
const AWAY: Duration = Duration::from_millis(5);

/// Measure message costs for becalm predict --network
///
/// Start it with two ranks on each of two nodes. With one rank on each, messages within a node are not measured; with
/// all ranks on one node, messages between nodes are not.
#[derive(Args, Debug)]
pub struct NetworkArgs {
    /// Write the figures to this file
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    /// Print one JSON document (becalm.network/1)
    #[arg(long)]
    json: bool,
}

/// Derives the parameters from the measurement. A round trip is 2 (L + 2 o), messages of a burst are apart by the larger of o and g, and
/// large messages differ by the time of their bytes on the wire.
fn parameters(messages: &MessagesDoc) -> Result<Network, becalm_scale::ScaleError> {
    let measured = |time: Nanos| time.get() as f64;
    let nanos = |time: f64| Nanos::new(time.max(0.0).round() as i64);
    let picoseconds = |time: f64| (time.max(0.0) * 1e3).round() as i64;
    let (trip, send) = (measured(messages.round_trip_ns), measured(messages.send_ns));
    let longer = measured(messages.round_trip_1m_ns) - measured(messages.round_trip_256k_ns);
    let byte = longer / 2.0 / (LARGE[1] - LARGE[0]) as f64;
    let overhead = send.min(trip / 4.0);
    let latency = trip / 2.0 - 2.0 * overhead;
    let copied = messages.copied_bytes.saturating_sub(SMALL as u64).max(1) as f64;
    let copy = (measured(messages.copied_send_ns) - send) / copied;
    let network = Network::new(nanos(latency), nanos(overhead), messages.burst_ns, picoseconds(byte))?;
    let network = network.with_cpu_bytes(picoseconds(copy), 0)?;
    Ok(messages.eager_bytes.map_or(network, |limit| network.with_rendezvous_above(limit)))
}

/// Measures, stores, and on rank 0 prints. Fails for a job of one rank, or if a rank cannot be placed or the file cannot be written.
pub fn run(args: &NetworkArgs, job: &Job, out: &mut dyn Write) -> Result<()> {
    let alone = (job.ranks() < 2).then(|| UsageError::new("a network needs two ranks: start the job with two"));
    job.agree(alone.map_or(Ok(()), |error| Err(error.into())))?;
    match clock::choose(Path::new("/")).source {
        Source::Native => run_with::<Native>(args, job, out),
        Source::MonotonicRaw => run_with::<MonotonicRaw>(args, job, out),
    }
}

/// The pairs of a job that could be measured.
#[derive(Clone, Copy, Default)]
struct Pairs {
    between: Option<MessagesDoc>,
    within: Option<MessagesDoc>,
}

impl Pairs {
    /// The parameters of both; if only one pair could be measured, its parameters.
    fn network(&self) -> Result<Option<Network>, becalm_scale::ScaleError> {
        let network = |pair: Option<MessagesDoc>| pair.as_ref().map(parameters).transpose();
        let (between, within) = (network(self.between)?, network(self.within)?);
        Ok(match (between, within) {
            (Some(between), Some(within)) => Some(between.with_node(WithinNode {
                latency: within.latency(),
                overhead: within.overhead(),
                gap: within.gap(),
                byte_gap_ps: within.byte_gap_ps(),
                byte_overhead_ps: within.byte_overhead_ps(),
            })?),
            (one, other) => one.or(other),
        })
    }

    /// Limitations of the figures.
    fn warnings(&self) -> Vec<String> {
        let mut out = Vec::new();
        if self.between.is_none() {
            out.push(
                "messages between nodes were not measured, as all ranks share one node: the figures are those of messages within \
                 it, for both; start the job with ranks on two nodes"
                    .to_owned(),
            );
        }
        if self.within.is_none() {
            out.push(
                "messages within a node were not measured, as rank 0 is alone on its node: they will cost the same as between \
                 nodes; start the job with two ranks on each"
                    .to_owned(),
            );
        }
        out
    }
}

/// The partners of rank 0: the last rank of another node, and the first other rank of its own.
fn partners(job: &Job) -> (Option<i32>, Option<i32>) {
    let mut leader = job.rank();
    job.shared.process_at_rank(0).broadcast_into(&mut leader);
    let mut leaders = vec![0; job.ranks() as usize];
    job.world.all_gather_into(&leader, &mut leaders[..]);
    others(&leaders)
}

/// The same, given the first rank of each rank's node.
fn others(leaders: &[i32]) -> (Option<i32>, Option<i32>) {
    let shares = |rank: &i32| leaders[*rank as usize] == leaders[0];
    let ranks = || 1..leaders.len() as i32;
    (ranks().rfind(|rank| !shares(rank)), ranks().find(shares))
}

fn run_with<C: Counter>(args: &NetworkArgs, job: &Job, out: &mut dyn Write) -> Result<()> {
    let open = |path: &PathBuf| File::create(path).with_context(|| format!("cannot write {}", path.display()));
    let file = job.agree(args.output.as_ref().filter(|_| job.is_first()).map(open).transpose())?;
    let seat = Seat::take::<C>(job, Policy::Other)?;
    let (_, nodes) = job.nodes();
    let (far, near) = partners(job);
    let pair = |other: Option<i32>| measure(&job.world, other?, || seat.now::<C>());
    let pairs = Pairs { between: pair(far), within: pair(near) };
    job.world.barrier();
    let Some(network) = pairs.network()? else { return Ok(()) };
    let document = NetworkDoc {
        schema: SCHEMA.to_owned(),
        network: network.to_string(),
        nodes: nodes.unsigned_abs(),
        library: library(),
        between: pairs.between,
        within: pairs.within,
        warnings: [pairs.warnings(), seat.warnings()].concat(),
    };
    let text = serde_json::to_string_pretty(&document).map_err(io::Error::from)?;
    if let Some(mut file) = file {
        writeln!(file, "{text}").context("cannot write the network's file")?;
    }
    if args.json { Ok(writeln!(out, "{text}")?) } else { print(&document, args, out) }
}

fn print(document: &NetworkDoc, args: &NetworkArgs, out: &mut dyn Write) -> Result<()> {
    writeln!(out, "  network  {}", document.network)?;
    writeln!(out, "  library  {}", printable(&document.library))?;
    for (name, place, pair) in
        [("between", "on two nodes", document.between), ("within", "on one node", document.within)]
    {
        if let Some(MessagesDoc { ranks: [first, other], .. }) = pair {
            writeln!(out, "  {name:<8} rank {first} and rank {other}, {place}")?;
        }
    }
    for warning in &document.warnings {
        writeln!(out, "  ! {}", printable(warning))?;
    }
    match &args.output {
        Some(path) => {
            writeln!(out, "  stored in {0}: becalm predict --network {0}", printable(&path.to_string_lossy()))?
        }
        None => writeln!(out, "  -o FILE stores it for becalm predict --network FILE")?,
    }
    Ok(())
}

/// Called by all ranks; rank 0 gets the figures.
fn measure(world: &SimpleCommunicator, last: i32, clock: impl Fn() -> i64) -> Option<MessagesDoc> {
    let pair = Pair { world, last, clock };
    // Open the connections first.
    pair.trips(SMALL, 100);
    let small = pair.trips(SMALL, TRIPS);
    let eager = pair.eager();
    let mut copied_bytes = eager.map_or(COPIED, |limit| usize::try_from(limit).unwrap_or(COPIED)).clamp(SMALL, COPIED);
    world.process_at_rank(0).broadcast_into(&mut copied_bytes);
    let copied = pair.trips(copied_bytes, TRIPS);
    let large = LARGE.map(|bytes| pair.trips(bytes, TRIPS / 10));
    let burst = pair.burst();
    if world.rank() != 0 {
        return None;
    }
    let (send, trip) = small?;
    let (copied, _) = copied?;
    let [first, second] = large.map(|times| times.map(|(_, trip)| trip));
    Some(MessagesDoc {
        ranks: [0, last.unsigned_abs()],
        round_trip_ns: trip,
        send_ns: send,
        copied_send_ns: copied,
        copied_bytes: copied_bytes as u64,
        burst_ns: burst?,
        round_trip_256k_ns: first?,
        round_trip_1m_ns: second?,
        eager_bytes: eager,
    })
}

/// The two measuring ranks.
struct Pair<'a, F> {
    world: &'a SimpleCommunicator,
    last: i32,
    clock: F,
}

impl<F: Fn() -> i64> Pair<'_, F> {
    fn is_first(&self) -> bool {
        self.world.rank() == 0
    }

    fn is_last(&self) -> bool {
        self.world.rank() == self.last
    }

    /// The median time of a send on rank 0, and the median round trip.
    fn trips(&self, bytes: usize, count: usize) -> Option<(Nanos, Nanos)> {
        let (message, mut answer) = (vec![0_u8; bytes], vec![0_u8; bytes]);
        let (mut sends, mut trips) = (Vec::with_capacity(count), Vec::with_capacity(count));
        for _ in 0..count {
            if self.is_first() {
                let other = self.world.process_at_rank(self.last);
                let before = (self.clock)();
                other.send(&message[..]);
                sends.push((self.clock)() - before);
                other.receive_into(&mut answer[..]);
                trips.push((self.clock)() - before);
            } else if self.is_last() {
                let other = self.world.process_at_rank(0);
                other.receive_into(&mut answer[..]);
                other.send(&message[..]);
            }
        }
        Some((Nanos::new(median_high(&mut sends)?), Nanos::new(median_high(&mut trips)?)))
    }

    /// The median time between messages of a burst.
    fn burst(&self) -> Option<Nanos> {
        let (message, mut answer) = ([0_u8; SMALL], [0_u8; SMALL]);
        let mut times = Vec::with_capacity(BURSTS);
        for _ in 0..BURSTS {
            if self.is_first() {
                let other = self.world.process_at_rank(self.last);
                let before = (self.clock)();
                (0..BURST).for_each(|_| other.send(&message[..]));
                times.push(((self.clock)() - before) / BURST as i64);
                other.receive_into(&mut answer[..]);
            } else if self.is_last() {
                let other = self.world.process_at_rank(0);
                (0..BURST).for_each(|_| {
                    other.receive_into(&mut answer[..]);
                });
                other.send(&message[..]);
            }
        }
        median_high(&mut times).map(Nanos::new)
    }

    /// The largest size that a sender sends without waiting for the receiver, by powers of two.
    fn eager(&self) -> Option<u64> {
        let mut limit = None;
        let mut bytes = SMALL;
        while bytes <= WAITED {
            let (message, mut answer) = (vec![0_u8; bytes], vec![0_u8; bytes]);
            // Use the shortest of several tries: noise may delay a sender as well.
            let mut shortest = i64::MAX;
            for _ in 0..3 {
                if self.is_first() {
                    let other = self.world.process_at_rank(self.last);
                    let before = (self.clock)();
                    other.send(&message[..]);
                    shortest = shortest.min((self.clock)() - before);
                    other.receive_into(&mut answer[..1]);
                } else if self.is_last() {
                    let other = self.world.process_at_rank(0);
                    sleep(AWAY);
                    other.receive_into(&mut answer[..]);
                    other.send(&message[..1]);
                }
            }
            if self.is_first() && limit.is_none() && shortest > AWAY.as_nanos() as i64 / 2 {
                limit = Some(bytes as u64 / 2);
            }
            bytes *= 2;
        }
        limit
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a network of known parameters would show gives these parameters again.
    #[test]
    fn parameters_follow_from_what_they_make() {
        let (latency, overhead, gap, byte, copy) = (1_000.0, 150.0, 200.0, 0.08, 0.05);
        let nanos = |time: f64| Nanos::new(time.round() as i64);
        let trip = |bytes: usize| nanos(2.0 * (latency + 2.0 * overhead + (bytes - 1) as f64 * byte));
        let measured = MessagesDoc {
            ranks: [0, 1],
            round_trip_ns: nanos(2.0 * (latency + 2.0 * overhead)),
            send_ns: nanos(overhead),
            copied_send_ns: nanos(overhead + (COPIED - SMALL) as f64 * copy),
            copied_bytes: COPIED as u64,
            burst_ns: nanos(gap),
            round_trip_256k_ns: trip(LARGE[0]),
            round_trip_1m_ns: trip(LARGE[1]),
            eager_bytes: Some(4_096),
        };
        assert_eq!(parameters(&measured), "L=1us,o=150ns,g=200ns,G=0.08ns,O=0.05ns,S=4Ki".parse());
        // Both sets in one; one alone stands for both, and says so.
        let cheap =
            MessagesDoc { round_trip_ns: nanos(600.0), send_ns: nanos(50.0), burst_ns: nanos(60.0), ..measured };
        let both = Pairs { between: Some(measured), within: Some(cheap) };
        let text = both.network().unwrap().unwrap().to_string();
        assert_eq!(both.warnings(), Vec::<String>::new());
        assert!(text.starts_with("L=1us,o=150ns,g=200ns") && text.contains(",nL=200ns,no=50ns,ng=60ns"), "{text}");
        assert_eq!(text.parse(), Ok(both.network().unwrap().unwrap()));
        let one_node = Pairs { between: None, ..both };
        assert_eq!(one_node.network().unwrap(), Some(parameters(&cheap).unwrap()));
        assert!(one_node.warnings()[0].contains("between nodes were not measured"), "{:?}", one_node.warnings());
        assert!(Pairs { within: None, ..both }.warnings()[0].contains("within a node were not measured"));
        // Noise may make a large message faster than a small one.
        let odd = MessagesDoc {
            copied_send_ns: Nanos::ZERO,
            copied_bytes: SMALL as u64,
            round_trip_256k_ns: Nanos::new(5),
            round_trip_1m_ns: Nanos::new(4),
            eager_bytes: None,
            send_ns: Nanos::new(1_000_000),
            ..measured
        };
        assert_eq!(parameters(&odd), "L=0ns,o=650ns,g=200ns,G=0ns".parse());
    }

    #[test]
    fn one_partner_is_on_another_node_and_one_on_its_own() {
        assert_eq!(others(&[0, 0, 2, 2]), (Some(3), Some(1)));
        assert_eq!(others(&[0, 1]), (Some(1), None));
        assert_eq!(others(&[0, 0]), (None, Some(1)));
        assert_eq!(others(&[0, 1, 0]), (Some(1), Some(2)), "ranks dealt round");
    }
}
