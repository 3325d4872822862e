//! Barriers compared with LogGOPSim, including long messages: the same messages, and the same noise at the same instants on every rank, in
//! one run.
//!
//! The variable `LOGGOPSIM` names the directory of its programs `LogGOPSim` and `txt2bin`. Both sides get successive dissemination
//! barriers, L = 2.5 us, o = 1.5 us, g = 1 us, G = 6 ns, and one noise trace, which LogGOPSim reads from a file by `becalm export`.
//! LogGOPSim draws each rank's offset on the trace from the wall clock; its generator is known, so this code draws the same offsets and no
//! difference is left to chance.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::arrivals::{Costs, Rules, simulate};
use crate::claims::{Claims, Figure};
use crate::effort::Effort;
use crate::mersenne::Mersenne;
use becalm_foreign::write::loggopsim::NoiseFile;
use becalm_scale::NoiseTrace;
use becalm_scale::collective::{Barrier, Collective};
use becalm_scale::machine::{JobMachine, RankStart};
use becalm_scale::network::Network;
use becalm_scale::spec::NoiseSpec;
use becalm_units::Nanos;

const BARRIER: Collective = Collective::Barrier(Barrier::Dissemination);
const COSTS: Costs = Costs {
    latency: 2_500,
    overhead: 1_500,
    gap: 1_000,
    grain: 0,
    bytes: 1,
    byte_gap: 6,
    byte_overhead: 0,
    eager_limit: 65_535,
};

/// Sizes of messages, up to the largest that does not wait for its receiver, and above.
const BYTES: [i64; 7] = [1, 2, 100, 4_096, 65_535, 65_536, 1 << 20];
/// Numbers of ranks and barriers for these sizes.
const SIZED: [(usize, u64); 3] = [(2, 20), (13, 20), (64, 10)];

/// Numbers of ranks and barriers per run: LogGOPSim needs gigabytes for more.
const SIZES: [(usize, u64); 3] = [(64, 400), (256, 200), (1_024, 100)];
/// Work before each barrier: none, and D09's.
const GRAINS: [i64; 2] = [0, 1_000_000];
/// Noise, and whether it is light: if so, both sides must agree on phases of 1 ms.
const NOISES: [(&str, bool); 4] = [
    ("poisson:rate=100Hz,detour=5us", true),
    ("poisson:rate=1kHz,detour=1us", true),
    ("poisson:rate=10Hz,detour=100us", true),
    ("poisson:rate=1kHz,detour=200us", false),
];
/// The maximum difference, in percent of the phase.
const AGREEMENT: f64 = 1.5;

pub fn run() -> ExitCode {
    let mut claims = Claims::begin("LogGOPSim: dissemination barriers, mean phase", Effort::from_arguments());
    let Some(folder) = std::env::var_os("LOGGOPSIM") else {
        claims.skip("barriers, against LogGOPSim", "set LOGGOPSIM to the directory of its programs: spcl/LogGOPSim");
        return claims.end();
    };
    let sides = |peer: Peer, claims: &mut Claims| {
        compare_sizes(&peer, claims)?;
        compare(&peer, claims)
    };
    match Peer::new(PathBuf::from(folder)).and_then(|peer| sides(peer, &mut claims)) {
        Ok(()) => claims.end(),
        Err(error) => {
            claims.fail("barriers, against LogGOPSim", &error.to_string());
            ExitCode::FAILURE
        }
    }
}

/// Messages of any size, under LogGOPSim's rules: the end must equal LogGOPSim's to the nanosecond, with noise and without.
fn compare_sizes(peer: &Peer, claims: &mut Claims) -> io::Result<()> {
    let silence = NoiseTrace::silent(Nanos::from_secs(10)).map_err(io::Error::other)?;
    let noisy = NOISES[2].0.parse::<NoiseSpec>().map_err(io::Error::other)?.trace(1).map_err(io::Error::other)?;
    for (ranks, barriers) in SIZED {
        for bytes in BYTES {
            for (grain, byte_overhead) in [(0, 0), (100_000, 3), (5_000, 9)] {
                let costs = Costs { grain, bytes, byte_overhead, ..COSTS };
                let job = Job { costs, ranks, barriers };
                peer.schedule(&job)?;
                let apart = |ours: i64, theirs: &Ended| Figure::ns((ours - theirs.end).abs() as f64);
                let quiet = peer.run(&costs, None)?;
                let ours = simulate(costs, Rules::LOGGOPSIM, &silence, &vec![0; ranks], barriers);
                let what = format!("{ranks} ranks, {bytes} bytes, O = {byte_overhead} ns, grain {}", Nanos::new(grain));
                claims.at_most(&format!("{what}, no noise"), apart(ours, &quiet), 0.0);
                let theirs = peer.run(&costs, Some(&noisy))?;
                let offsets = offsets(theirs.seed, ranks, noisy.length().get());
                let ours = simulate(costs, Rules::LOGGOPSIM, &noisy, &offsets, barriers);
                claims.at_most("  with noise", apart(ours, &theirs), 0.0);
            }
        }
    }
    Ok(())
}

fn compare(peer: &Peer, claims: &mut Claims) -> io::Result<()> {
    let silence = NoiseTrace::silent(Nanos::from_secs(10)).map_err(io::Error::other)?;
    for (ranks, barriers) in SIZES {
        for grain in GRAINS {
            let job = Job { costs: Costs { grain, ..COSTS }, ranks, barriers };
            let named = format!("{ranks} ranks, {}, ", Nanos::new(grain));
            peer.schedule(&job)?;
            let (ours, theirs) = (job.run(&silence, &vec![0; ranks])?, peer.run(&COSTS, None)?);
            let apart = |a: i64, b: i64| Figure::ns((a - b).abs() as f64);
            claims.state_beside(&format!("{named}no noise"), job.phase(ours.end), job.phase(theirs.end), "");
            claims.at_most("  difference", apart(ours.end, theirs.end), 0.0);
            claims.state_beside("  rank-rounds", job.rate(&ours), job.rate(&theirs), "");
            for (spec, light) in NOISES {
                let trace = spec.parse::<NoiseSpec>().map_err(io::Error::other)?.trace(1).map_err(io::Error::other)?;
                let theirs = peer.run(&COSTS, Some(&trace))?;
                let offsets = offsets(theirs.seed, ranks, trace.length().get());
                let ours = job.run(&trace, &offsets)?;
                let percent = |end: i64| (end - theirs.end) as f64 / theirs.end as f64 * 100.0;
                let what = format!("{named}{spec}");
                let remark = format!("{:+.2}%", percent(ours.end));
                claims.state_beside(&what, job.phase(ours.end), job.phase(theirs.end), &remark);
                if light && grain > 0 {
                    claims.at_most("  difference", Figure::percent(percent(ours.end).abs()), AGREEMENT);
                }
                // Switch from becalm's rules to LogGOPSim's, one by one.
                let end = |leaves_on_time, noise_is_simple| {
                    let rules = Rules { leaves_on_time, noise_is_simple, bytes_keep_receiver: true };
                    simulate(job.costs, rules, &trace, &offsets, barriers)
                };
                let [arrivals, on_time] = [end(false, false), end(true, false)].map(percent);
                let theirs_again = end(true, true);
                claims.at_most("  difference under its rules", apart(theirs_again, theirs.end), 0.0);
                claims.remark(&format!(
                    "messages taken as they arrive: {arrivals:+.2}%; and leaving on time: {on_time:+.2}%; and noise not \
                     compounded: {:+.2}%",
                    percent(theirs_again)
                ));
                claims.state_beside("  rank-rounds", job.rate(&ours), job.rate(&theirs), "");
            }
        }
    }
    Ok(())
}

/// The simulated job.
struct Job {
    costs: Costs,
    ranks: usize,
    barriers: u64,
}

impl Job {
    fn phase(&self, end: i64) -> Figure {
        Figure::ns(end as f64 / self.barriers as f64)
    }

    fn rate(&self, ended: &Ended) -> Figure {
        let ranks = self.ranks as u64;
        Figure::a_second((ranks * BARRIER.rounds(ranks, 1, 1) * self.barriers) as f64 / ended.time.as_secs_f64())
    }

    fn run(&self, trace: &NoiseTrace, offsets: &[i64]) -> io::Result<Ended> {
        let Costs { latency, overhead, gap, grain, .. } = self.costs;
        let [latency, overhead, gap, grain] = [latency, overhead, gap, grain].map(Nanos::new);
        let network = Network::new(latency, overhead, gap, 6_000).map_err(io::Error::other)?;
        let begin = Instant::now();
        let starts: Vec<RankStart<'_>> = offsets.iter().map(|offset| RankStart { trace, offset: *offset }).collect();
        let mut machine = JobMachine::new(network, &starts).map_err(io::Error::other)?;
        for _ in 0..self.barriers {
            machine.work(grain).and_then(|()| BARRIER.run(&mut machine, 1)).map_err(io::Error::other)?;
        }
        Ok(Ended { end: machine.latest().get(), seed: 0, time: begin.elapsed() })
    }
}

/// The result of a simulation by either program.
struct Ended {
    /// The end of the last barrier on the last rank, in nanoseconds.
    end: i64,
    /// The wall clock at its start, in seconds.
    seed: u32,
    time: Duration,
}

/// The places on the trace where LogGOPSim's ranks start: one number is drawn before theirs.
fn offsets(seed: u32, ranks: usize, length: i64) -> Vec<i64> {
    let draws = Mersenne::new(seed).skip(1).take(ranks);
    draws.map(|draw| (f64::from(draw) / f64::from(u32::MAX) * length as f64) as i64).collect()
}

/// LogGOPSim's programs, and a directory for their input.
struct Peer {
    programs: PathBuf,
    files: tempfile::TempDir,
}

impl Peer {
    fn new(programs: PathBuf) -> io::Result<Self> {
        Ok(Self { programs, files: tempfile::tempdir()? })
    }

    fn file(&self, name: &str) -> PathBuf {
        self.files.path().join(name)
    }

    /// Writes the program of each rank: each operation starts when the previous ones have ended, but a receive when the previous send has
    /// started.
    fn schedule(&self, job: &Job) -> io::Result<()> {
        let (text, ranks) = (self.file("goal"), job.ranks);
        let mut out = BufWriter::new(File::create(&text)?);
        let rounds = BARRIER.rounds(ranks as u64, 1, 1);
        writeln!(out, "num_ranks {ranks}")?;
        for rank in 0..ranks {
            writeln!(out, "rank {rank} {{")?;
            // The operations that the next one waits for.
            let (mut label, mut before) = (0, Vec::new());
            for round in 0..job.barriers * rounds {
                let distance = 1 << (round % rounds);
                let (to, from) = ((rank + distance) % ranks, (rank + ranks - distance) % ranks);
                if job.costs.grain > 0 && round % rounds == 0 {
                    label += 1;
                    writeln!(out, "l{label}: calc {}", job.costs.grain)?;
                    require(&mut out, label, &before)?;
                    before = vec![label];
                }
                let (send, receive) = (label + 1, label + 2);
                label = receive;
                let bytes = job.costs.bytes;
                writeln!(out, "l{send}: send {bytes}b to {to} tag {round}")?;
                require(&mut out, send, &before)?;
                writeln!(out, "l{receive}: recv {bytes}b from {from} tag {round}")?;
                writeln!(out, "l{receive} irequires l{send}")?;
                before = vec![send, receive];
            }
            writeln!(out, "}}")?;
        }
        out.into_inner().map_err(io::IntoInnerError::into_error)?.flush()?;
        let mut command = Command::new(self.programs.join("txt2bin"));
        self.output(command.arg("-i").arg(&text).arg("-o").arg(self.file("bin")))?;
        fs::remove_file(text)
    }

    /// Simulates the schedule with these costs and the noise of a trace.
    fn run(&self, costs: &Costs, trace: Option<&NoiseTrace>) -> io::Result<Ended> {
        let noise = self.file("noise");
        if let Some(trace) = trace {
            let mut file = NoiseFile::begin(BufWriter::new(File::create(&noise)?))?;
            // The part of the last detour beyond the end wraps around to the start of the trace.
            let over = |(start, time): (Nanos, Nanos)| start + time - trace.length();
            if let Some(over) = trace.detours().last().map(over).filter(|over| *over > Nanos::ZERO) {
                file.detour(Nanos::ZERO, over)?;
            }
            for (start, time) in trace.detours() {
                file.detour(start, time.min(trace.length() - start))?;
            }
            file.end(trace.length())?.flush()?;
        }
        let mut command = Command::new(self.programs.join("LogGOPSim"));
        let times = [("-L", costs.latency), ("-o", costs.overhead), ("-g", costs.gap)];
        let sizes = [("-G", costs.byte_gap), ("-O", costs.byte_overhead), ("-S", costs.eager_limit)];
        for (name, value) in times.into_iter().chain(sizes) {
            command.arg(name).arg(value.to_string());
        }
        command.arg("-f").arg(self.file("bin"));
        if trace.is_some() {
            command.arg(format!("--noise-trace={}", noise.display()));
        }
        // Its seed is the time in seconds soon after its start.
        if trace.is_some() {
            std::thread::sleep(until_next_second());
        }
        let (seed, begin) = (second(), Instant::now());
        let text = self.output(&mut command)?;
        let time = begin.elapsed();
        let end = finishing_time(&text).ok_or_else(|| io::Error::other("LogGOPSim printed no finishing time"))?;
        Ok(Ended { end, seed, time })
    }

    fn output(&self, command: &mut Command) -> io::Result<String> {
        let shown = |command: &Command| Path::new(command.get_program()).display().to_string();
        let output = command
            .output()
            .map_err(|error| io::Error::new(error.kind(), format!("cannot run {}: {error}", shown(command))))?;
        if !output.status.success() {
            return Err(io::Error::other(format!("{} failed: {}", shown(command), output.status)));
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }
}

/// Writes that an operation starts after others have ended.
fn require(out: &mut impl Write, label: u64, before: &[u64]) -> io::Result<()> {
    before.iter().try_for_each(|before| writeln!(out, "l{label} requires l{before}"))
}

/// Parses `Maximum finishing time at host 3: 33000 (3.3e-05 s)`, or with few ranks the largest in lines like `Host 3: 33000`.
fn finishing_time(text: &str) -> Option<i64> {
    let line = text.lines().find_map(|line| line.strip_prefix("Maximum finishing time at host "));
    if let Some(line) = line {
        return line.split_whitespace().nth(1)?.parse().ok();
    }
    let host = |line: &str| line.strip_prefix("Host ")?.split_once(": ")?.1.trim().parse().ok();
    text.lines().filter_map(host).max()
}

fn since_epoch() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

fn second() -> u32 {
    since_epoch().as_secs() as u32
}

fn until_next_second() -> Duration {
    Duration::from_nanos(1_000_000_000 - u64::from(since_epoch().subsec_nanos()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finishing_time_is_found() {
        let text = "size: 64\nMaximum finishing time at host 3: 33000 (3.3e-05 s)\n";
        assert_eq!(finishing_time(text), Some(33_000));
        assert_eq!(finishing_time("Times: \nHost 0: 1200\nHost 1: 3400\nHost 2: 7\n"), Some(3_400));
        assert_eq!(finishing_time("size: 64\n"), None);
    }
}
