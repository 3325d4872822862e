//! Barriers beside LogGOPSim: the same messages, the same noise at the same instants on every rank, in one go.
//!
//! The variable `LOGGOPSIM` names the folder in which its programs `LogGOPSim` and `txt2bin` were built. Both sides get
//! dissemination barriers back to back, L = 2.5 us, o = 1.5 us, g = 1 us, G = 6 ns, and one noise trace, which LogGOPSim
//! reads from the file that `becalm export` writes. It draws each rank's offset on the trace from the wall clock; its
//! generator is known, so that the offsets are drawn again here and no difference is left to chance.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use becalm_bench::arrivals::{Costs, Rules, simulate};
use becalm_bench::claims::{Claims, Figure};
use becalm_bench::effort::Effort;
use becalm_bench::mersenne::Mersenne;
use becalm_bundle::exchange::loggopsim;
use becalm_scale::NoiseTrace;
use becalm_scale::collective::{Barrier, Collective};
use becalm_scale::machine::JobMachine;
use becalm_scale::network::Network;
use becalm_scale::spec::NoiseSpec;
use becalm_units::Nanos;

const BARRIER: Collective = Collective::Barrier(Barrier::Dissemination);
const COSTS: Costs = Costs { latency: 2_500, overhead: 1_500, gap: 1_000, grain: 0 };

/// Ranks, and barriers in a run: more take LogGOPSim gigabytes.
const SIZES: [(usize, u64); 3] = [(64, 400), (256, 200), (1_024, 100)];
/// Work before each barrier: none, and D09's.
const GRAINS: [i64; 2] = [0, 1_000_000];
/// Noise, and whether it is light: then both sides are to agree on phases of 1 ms.
const NOISES: [(&str, bool); 4] = [
    ("poisson:rate=100Hz,detour=5us", true),
    ("poisson:rate=1kHz,detour=1us", true),
    ("poisson:rate=10Hz,detour=100us", true),
    ("poisson:rate=1kHz,detour=200us", false),
];
/// Percent of the phase.
const AGREEMENT: f64 = 1.5;

fn main() -> ExitCode {
    let mut claims = Claims::begin("LogGOPSim: dissemination barriers, mean phase", Effort::from_arguments());
    let Some(folder) = std::env::var_os("LOGGOPSIM") else {
        claims.skip("barriers, against LogGOPSim", "set LOGGOPSIM to the folder of its programs: spcl/LogGOPSim");
        return claims.end();
    };
    match Peer::new(PathBuf::from(folder)).and_then(|peer| compare(&peer, &mut claims)) {
        Ok(()) => claims.end(),
        Err(error) => {
            claims.fail("barriers, against LogGOPSim", &error.to_string());
            ExitCode::FAILURE
        }
    }
}

fn compare(peer: &Peer, claims: &mut Claims) -> io::Result<()> {
    let silence = NoiseTrace::silent(Nanos::from_secs(10)).map_err(io::Error::other)?;
    for (ranks, barriers) in SIZES {
        for grain in GRAINS {
            let job = Job { costs: Costs { grain, ..COSTS }, ranks, barriers };
            let named = format!("{ranks} ranks, {}, ", Nanos::new(grain));
            peer.schedule(&job)?;
            let (ours, theirs) = (job.run(&silence, &vec![0; ranks])?, peer.run(None)?);
            let apart = |a: i64, b: i64| Figure::ns((a - b).abs() as f64);
            claims.state_beside(&format!("{named}no noise"), job.phase(ours.end), job.phase(theirs.end), "");
            claims.at_most("  difference", apart(ours.end, theirs.end), 0.0);
            claims.state_beside("  rank-rounds", job.rate(&ours), job.rate(&theirs), "");
            for (spec, light) in NOISES {
                let trace = spec.parse::<NoiseSpec>().map_err(io::Error::other)?.trace(1).map_err(io::Error::other)?;
                let theirs = peer.run(Some(&trace))?;
                let offsets = offsets(theirs.seed, ranks, trace.length().get());
                let ours = job.run(&trace, &offsets)?;
                let percent = |end: i64| (end - theirs.end) as f64 / theirs.end as f64 * 100.0;
                let what = format!("{named}{spec}");
                let remark = format!("{:+.2}%", percent(ours.end));
                claims.state_beside(&what, job.phase(ours.end), job.phase(theirs.end), &remark);
                if light && grain > 0 {
                    claims.at_most("  difference", Figure::percent(percent(ours.end).abs()), AGREEMENT);
                }
                // Rule by rule from ours to theirs.
                let end = |leaves_on_time, noise_is_simple| {
                    simulate(job.costs, Rules { leaves_on_time, noise_is_simple }, &trace, &offsets, barriers)
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

/// What both sides simulate.
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
        Figure::a_second((ranks * BARRIER.rounds(ranks) * self.barriers) as f64 / ended.time.as_secs_f64())
    }

    fn run(&self, trace: &NoiseTrace, offsets: &[i64]) -> io::Result<Ended> {
        let Costs { latency, overhead, gap, grain } = self.costs;
        let [latency, overhead, gap, grain] = [latency, overhead, gap, grain].map(Nanos::new);
        let network = Network::new(latency, overhead, gap, 6_000).map_err(io::Error::other)?;
        let begin = Instant::now();
        let starts: Vec<(&NoiseTrace, i64)> = offsets.iter().map(|offset| (trace, *offset)).collect();
        let mut machine = JobMachine::new(network, &starts).map_err(io::Error::other)?;
        for _ in 0..self.barriers {
            machine.work(grain).and_then(|()| BARRIER.run(&mut machine, 1, 1)).map_err(io::Error::other)?;
        }
        Ok(Ended { end: machine.latest().get(), seed: 0, time: begin.elapsed() })
    }
}

/// What came out of a simulation by one of the two programs.
struct Ended {
    /// When the last rank was through the last barrier, in nanoseconds.
    end: i64,
    /// The wall clock's second in which it began.
    seed: u32,
    time: Duration,
}

/// Where on the trace LogGOPSim's ranks start: one number is drawn before theirs.
fn offsets(seed: u32, ranks: usize, length: i64) -> Vec<i64> {
    let draws = Mersenne::new(seed).skip(1).take(ranks);
    draws.map(|draw| (f64::from(draw) / f64::from(u32::MAX) * length as f64) as i64).collect()
}

/// LogGOPSim's programs, and a folder for what they read.
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

    /// Writes the program of each rank: each operation begins when the one in front of it is over.
    fn schedule(&self, job: &Job) -> io::Result<()> {
        let (text, ranks) = (self.file("goal"), job.ranks);
        let mut out = BufWriter::new(File::create(&text)?);
        let rounds = BARRIER.rounds(ranks as u64);
        writeln!(out, "num_ranks {ranks}")?;
        for rank in 0..ranks {
            writeln!(out, "rank {rank} {{")?;
            let mut label = 0;
            for round in 0..job.barriers * rounds {
                let distance = 1 << (round % rounds);
                let (to, from) = ((rank + distance) % ranks, (rank + ranks - distance) % ranks);
                let work = (job.costs.grain > 0 && round % rounds == 0).then(|| format!("calc {}", job.costs.grain));
                let messages = [format!("send 1b to {to} tag {round}"), format!("recv 1b from {from} tag {round}")];
                for operation in work.into_iter().chain(messages) {
                    label += 1;
                    writeln!(out, "l{label}: {operation}")?;
                    if label > 1 {
                        writeln!(out, "l{label} requires l{}", label - 1)?;
                    }
                }
            }
            writeln!(out, "}}")?;
        }
        out.into_inner().map_err(io::IntoInnerError::into_error)?.flush()?;
        let mut command = Command::new(self.programs.join("txt2bin"));
        self.output(command.arg("-i").arg(&text).arg("-o").arg(self.file("bin")))?;
        fs::remove_file(text)
    }

    /// Simulates the schedule, with the noise of a trace.
    fn run(&self, trace: Option<&NoiseTrace>) -> io::Result<Ended> {
        let noise = self.file("noise");
        if let Some(trace) = trace {
            let mut out = BufWriter::new(File::create(&noise)?);
            loggopsim::write(trace.length(), trace.detours().collect::<Vec<_>>(), &mut out)?;
            out.flush()?;
        }
        let mut command = Command::new(self.programs.join("LogGOPSim"));
        for (name, value) in [("-L", COSTS.latency), ("-o", COSTS.overhead), ("-g", COSTS.gap), ("-G", 6)] {
            command.arg(name).arg(value.to_string());
        }
        command.arg("-f").arg(self.file("bin"));
        if trace.is_some() {
            command.arg(format!("--noise-trace={}", noise.display()));
        }
        // Its seed is the second in which it reads the clock, soon after its start.
        std::thread::sleep(until_next_second());
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

/// In `Maximum finishing time at host 3: 33000 (3.3e-05 s)`.
fn finishing_time(text: &str) -> Option<i64> {
    let line = text.lines().find_map(|line| line.strip_prefix("Maximum finishing time at host "))?;
    line.split_whitespace().nth(1)?.parse().ok()
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
        assert_eq!(finishing_time("Host 0: 1"), None);
    }
}
