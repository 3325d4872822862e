//! `becalm inject`: known noise on chosen CPUs.

use std::ffi::OsString;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::os::unix::process::parent_id;
use std::path::{Path, PathBuf};
use std::process;
use std::time::{Duration, Instant};

use becalm_analyze::summary::Selection;
use becalm_bundle::Bundle;
use becalm_command::Exit;
use becalm_command::Task;
use becalm_command::arguments::FormArgs;
#[cfg(not(feature = "research"))]
use becalm_command::built_without;
use becalm_command::noise;
use becalm_command::output::emit;
use becalm_command::progress::{Bar, Tail};
use becalm_command::rights::{CommandUserArgs, left_as};
use becalm_linux::procfs::kernel;
use becalm_linux::procfs::status::Capability;
use becalm_linux::rights::{self, RemainingRights, User};
use becalm_linux::sched::Policy;
use becalm_linux::signals::{self, StopSignals};
use becalm_linux::{clock, memory, sched};
use becalm_measure::{Companion, PlannedCommand, select_cpus};
#[cfg(feature = "research")]
use becalm_research::sweep::InjectSweep;
use becalm_scale::NoiseTrace;
use becalm_scale::spec::NoiseSpec;
#[cfg(feature = "research")]
use becalm_units::Named;
use becalm_units::fault::{self, Context, Result, UsageError};
use becalm_units::{CpuList, Nanos, Share};
use clap::{ArgGroup, Args};

use crate::document::{FairServerDoc, InjectDoc, InjectedPlace, InjectionWay, SharedToll, Together};
use crate::{
    Burst, CpuDelivery, Fit, Grounds, Injection, KnownTolls, PreemptPlan, SignalNoise, SignalPlan, coalesced, program,
};

/// Inject noise of known length and rate
///
/// Real-time threads take the CPUs, which needs root or CAP_SYS_NICE. With --signal, a timer signal delays only the
/// threads of COMMAND, which needs no rights. At the end, becalm reports requested and delivered noise. A list of
/// values runs one injection after the other. `becalm predict` simulates the same noise from the same options and seed.
#[derive(Args, Debug)]
#[command(group(ArgGroup::new("how often").required(true).args(["interval", "rate", "ratio", "replay"])))]
pub struct InjectArgs {
    /// Time between the starts of two detours (interruptions), e.g. 1ms
    #[arg(long, value_name = "LIST", value_delimiter = ',', requires = "detour", allow_hyphen_values = true)]
    interval: Vec<Nanos>,

    /// Rate of random, independent detours (Poisson process), e.g. 10Hz
    #[arg(long, value_name = "LIST", value_delimiter = ',', requires = "detour", allow_hyphen_values = true)]
    rate: Vec<String>,

    /// Share of time for regular detours of the given length, e.g. 1%
    #[arg(long, value_name = "LIST", value_delimiter = ',', requires = "detour", allow_hyphen_values = true)]
    ratio: Vec<Share>,

    /// Length of each detour, e.g. 50us
    #[arg(long, value_name = "LIST", value_delimiter = ',', conflicts_with = "replay", allow_hyphen_values = true)]
    detour: Vec<Nanos>,

    /// Random delay of each detour, at most
    #[arg(long, value_name = "TIME", conflicts_with_all = ["rate", "replay"], allow_hyphen_values = true)]
    jitter: Option<Nanos>,

    /// Bursts of COUNT detours with starts TIME apart, e.g. 5x100us
    #[arg(long, value_name = "COUNTxTIME", conflicts_with = "replay", allow_hyphen_values = true)]
    burst: Option<Burst>,

    /// Recording to replay in a loop, its first CPU on the first CPU
    #[arg(long, value_name = "RUN")]
    replay: Option<PathBuf>,

    /// Source to replay alone, with its time in each detour; repeatable
    #[arg(long, value_name = "NAME", requires = "replay")]
    source: Vec<String>,

    /// Factor for the length of each recorded detour [default: 1]
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0, hide_default_value = true, requires = "replay", value_parser = factor, allow_hyphen_values = true)]
    scale: f64,

    /// Delay the threads of COMMAND and its child processes on this machine, by a signal
    #[arg(long, conflicts_with_all = ["cpus", "sched"], requires = "command")]
    signal: bool,

    /// Take the time with loopback packets (softirq net_rx), at least one per detour
    #[arg(long, conflicts_with = "signal")]
    packets: bool,

    /// Delay only the first thread of each process
    #[arg(long, requires = "signal")]
    main_thread: bool,

    /// CPUs to take, e.g. 0-3,8 [default: all online]
    #[arg(short, long, value_name = "LIST", allow_hyphen_values = true)]
    cpus: Option<CpuList>,

    /// Interrupt all CPUs or threads at the same time, on all nodes or on each
    #[arg(
        long,
        value_name = "all|node",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "all",
        default_value_t = Together::Apart,
        hide_default_value = true
    )]
    sync: Together,

    /// Accept random or replayed noise below 90 % of the requested time
    #[arg(long, conflicts_with_all = ["interval", "ratio"])]
    partly: bool,

    /// Windows at whose ends all CPUs take their noise, e.g. 10ms
    #[arg(long, value_name = "TIME", conflicts_with_all = ["signal", "sync"], allow_hyphen_values = true)]
    coalesce: Option<Nanos>,

    /// Seed of random offsets and detours [default: 1]
    #[arg(long, value_name = "SEED", default_value_t = 1, hide_default_value = true)]
    seed: u64,

    /// Time to inject [default: until Ctrl-C or the end of COMMAND]
    #[arg(short, long, value_name = "TIME", allow_hyphen_values = true)]
    duration: Option<Nanos>,

    /// Real-time class of the injecting threads, e.g. rr:40 [default: fifo:51]
    #[arg(long, value_name = "CLASS", default_value = "fifo:51", hide_default_value = true)]
    sched: Policy,

    #[command(flatten)]
    form: FormArgs,

    /// Print no result
    #[arg(short, long)]
    quiet: bool,

    #[command(flatten)]
    command_user: CommandUserArgs,

    /// Command to run under the noise; its user is the one who called sudo, if any
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
}

fn factor(text: &str) -> Result<f64, String> {
    let factor = text.parse().ok().filter(|factor: &f64| factor.is_finite() && (1e-6..=1e6).contains(factor));
    factor.ok_or_else(|| format!("'{text}' is not a factor: write a number above 0, like 0.5"))
}

#[cfg(feature = "research")]
impl InjectArgs {
    /// The options that all noises of a sweep share.
    fn common(&self) -> Vec<String> {
        let given = [
            self.jitter.map(|jitter| format!("--jitter={jitter}")),
            self.burst.map(|burst| format!("--burst={burst}")),
            self.packets.then(|| "--packets".to_owned()),
            self.main_thread.then(|| "--main-thread".to_owned()),
            self.cpus.as_ref().map(|cpus| format!("--cpus={cpus}")),
            (self.sync != Together::Apart).then(|| format!("--sync={}", self.sync.name())),
            self.coalesce.map(|window| format!("--coalesce={window}")),
            self.duration.map(|duration| format!("--duration={duration}")),
            self.command_user.as_root.then(|| "--as-root".to_owned()),
            Some(format!("--seed={}", self.seed)),
            Some(if self.signal { "--signal".to_owned() } else { format!("--sched={}", self.sched) }),
        ];
        given.into_iter().flatten().collect()
    }
}

impl Task for InjectArgs {
    fn run(self: Box<Self>, out: &mut dyn Write) -> Result<Exit> {
        run(&self, out)
    }
}

/// Injects noise and reports what was delivered. Fails if this machine cannot make it, the command fails, or `out` cannot be written.
fn run(args: &InjectArgs, out: &mut dyn Write) -> Result<Exit> {
    let root = Path::new("/");
    if !args.sched.is_realtime() {
        let why =
            format!("--sched {} would not take a CPU from anybody: write fifo:PRIORITY or rr:PRIORITY", args.sched);
        return Err(UsageError::new(why).into());
    }
    if [args.detour.len(), args.interval.len(), args.rate.len(), args.ratio.len()].iter().any(|values| *values > 1) {
        #[cfg(feature = "research")]
        return sweep(args, out);
        #[cfg(not(feature = "research"))]
        return Err(built_without("research").into());
    }
    let user = args.command_user.user();
    let left = left_as(user.clone(), !args.command.is_empty());
    if args.signal {
        // Only a replayed recording may belong to another user; the files that COMMAND opens must be its user's.
        let kept = if args.replay.is_some() { left.kept.with_capability(Capability::DacReadSearch) } else { left.kept };
        rights::give_up(&RemainingRights { kept, ..left.clone() })?;
    }
    let (name, traces) = noise(args)?;
    let request = request(args, root, traces, user.as_ref())?;
    let output = args.form.output_after_set_up()?;
    let parent = end_with_parent(None)?;
    let stop = StopSignals::block().context("cannot block signals")?;
    let allowed = sched::allowed_cpus()?;
    let injector = request.start(root, &left)?;
    // Repeated because the kernel forgets it when a process changes its user.
    end_with_parent(Some(parent))?;
    let started = Instant::now();
    let command = args.command.split_first().map(|(program, arguments)| {
        let mut command = process::Command::new(program);
        command.args(arguments).envs(injector.environment());
        if let Some(user) = &user {
            user.equip(&mut command);
        }
        if args.form.takes_output() {
            // Keep standard output for the one document.
            command.stdout(io::stderr());
        }
        PlannedCommand { command, written: args.command.clone() }
    });
    let mut command = Companion::start(command, &allowed, &stop)
        .map_err(|(program, error)| fault::Error::new(format!("cannot start the command '{program}': {error}")))?;
    let stopped = wait(args, &mut command, &stop, started)?;
    let (tolls, fair_servers) = injector.prepared();
    let stopped_noise = injector.stop()?;
    let status = if stopped { command.end() } else { command.wait() };
    let (way, places) = stopped_noise.delivered(args)?;

    if args.form.is_given() || !args.quiet {
        let (together, seed) = (args.sync, args.seed);
        let coalesced = args.coalesce;
        let done = InjectDoc { noise: name, together, coalesced, seed, way, tolls, fair_servers, places };
        emit(&done, output, out)?;
    }
    if let Some(status) = status
        && !stopped
        && !status.success()
    {
        fault::bail!("the command '{}' ended with {status}", args.command.join(" "));
    }
    Ok(Exit::Done)
}

/// Injects several noises, one after the other.
#[cfg(feature = "research")]
fn sweep(args: &InjectArgs, out: &mut dyn Write) -> Result<Exit> {
    if args.duration.is_none() && args.command.is_empty() {
        let text = "several noises come one after the other, so each needs an end: give --duration or a command";
        return Err(UsageError::new(text).into());
    }
    let texts = |values: &[Nanos]| values.iter().map(ToString::to_string).collect();
    let (option, often) = match args {
        InjectArgs { interval, .. } if !interval.is_empty() => ("interval", texts(interval)),
        InjectArgs { rate, .. } if !rate.is_empty() => ("rate", rate.clone()),
        InjectArgs { ratio, .. } => ("ratio", ratio.iter().map(ToString::to_string).collect()),
    };
    // No further noise starts after the parent has ended; the current one ends then, too.
    end_with_parent(None)?;
    let InjectArgs { detour, command, form, quiet, .. } = args;
    let sweep = InjectSweep { option, often, detours: detour, options: args.common(), command, form, quiet: *quiet };
    becalm_research::sweep::run(&sweep, out)
}

/// Makes the kernel end this process when its parent ends. Returns the parent's number. Fails if the parent has already ended, as far as `known`
/// shows.
fn end_with_parent(known: Option<u32>) -> Result<u32> {
    let parent = known.unwrap_or_else(parent_id);
    signals::end_with_parent().context("cannot ask to end with the process that started this one")?;
    fault::ensure!(parent_id() == parent, "the process that started this one has ended");
    Ok(parent)
}

/// Noise to be made.
enum NoiseRequest {
    Cpus(PreemptPlan),
    Command(SignalPlan),
}

enum Injector {
    Cpus(Injection),
    Command(SignalNoise),
}

/// The result of an injector that has ended.
enum Finished {
    Cpus(Vec<CpuDelivery>),
    /// Its figures are read after the command has ended.
    Command(SignalNoise),
}

fn request(args: &InjectArgs, root: &Path, traces: Vec<NoiseTrace>, user: Option<&User>) -> Result<NoiseRequest> {
    let node = kernel::hostname(root).map_or(0, |host| number(&host));
    // Random detours may overlap; if regular ones do, the request is wrong.
    let fit = match args.replay.is_none() && args.rate.is_empty() {
        true => Fit::Exact,
        false if args.partly => Fit::Part,
        false => Fit::Most,
    };
    let (together, seed) = (args.sync, args.seed);
    if args.signal {
        program::check(&args.command[0])?;
        // The launcher's number tells the ranks on one node apart.
        let rank = RANKS.iter().find_map(|name| std::env::var(name).ok());
        let host = node;
        let node = host ^ rank.map_or(0, |rank| number(&rank));
        let main_thread_only = args.main_thread;
        return Ok(NoiseRequest::Command(SignalPlan {
            traces,
            together,
            seed,
            node,
            host,
            fit,
            main_thread_only,
            user: user.cloned(),
        }));
    }
    let cpus = select_cpus(root, args.cpus.as_ref())?.cpus;
    let mut cpus: Vec<_> = cpus.iter().zip(traces.iter().cycle().cloned()).collect();
    let mut together = together;
    if let Some(window) = args.coalesce {
        if window <= Nanos::ZERO {
            return Err(UsageError::new(format!("--coalesce {window} is no window: it must be longer than 0")).into());
        }
        cpus =
            coalesced(cpus, window, seed, node).with_context(|| format!("cannot coalesce in windows of {window}"))?;
        together = Together::All;
    }
    Ok(NoiseRequest::Cpus(PreemptPlan {
        cpus,
        together,
        seed,
        node,
        policy: args.sched,
        fit,
        packets: args.packets,
        log: 0,
    }))
}

/// Variables that launchers of parallel jobs set to the rank: PMIx and Open MPI, MPICH and its derivatives, Slurm.
const RANKS: [&str; 4] = ["PMIX_RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID"];

impl NoiseRequest {
    /// Starts the noise. Gives up the rights that placing threads takes once they are placed.
    fn start(self, root: &Path, left: &RemainingRights) -> Result<Injector> {
        match self {
            Self::Cpus(plan) => {
                let grounds = Grounds::read(root, plan.cpus.iter().map(|(cpu, _)| *cpu));
                memory::lock_current_pages();
                let give_up = || rights::give_up(left);
                let source = clock::choose(root).source;
                let mut steps = None;
                let mut told = |done: usize, kinds: usize| {
                    let steps = steps
                        .get_or_insert_with(|| Bar::new("measuring what a detour costs", kinds as u64, Tail::TimeLeft));
                    steps.advance(u64::from(done > 0));
                };
                let injection =
                    Injection::start_after(&plan, source, &grounds, &mut KnownTolls::default(), &mut told, give_up);
                Ok(Injector::Cpus(injection?))
            }
            Self::Command(plan) => {
                // The process already runs as the user; the right to read a recording is no longer needed.
                rights::give_up(&RemainingRights { user: None, ..left.clone() })?;
                Ok(Injector::Command(SignalNoise::prepare(&plan)?))
            }
        }
    }
}

impl Injector {
    /// The environment variables that give the command noise.
    fn environment(&self) -> Vec<(&'static str, OsString)> {
        match self {
            Self::Cpus(_) => Vec::new(),
            Self::Command(noise) => noise.environment().into(),
        }
    }

    /// The measured costs of a detour, with their CPUs, and the time that fair servers may take.
    fn prepared(&self) -> (Vec<SharedToll>, Vec<FairServerDoc>) {
        match self {
            Self::Cpus(injection) => (injection.tolls.clone(), injection.fair_servers.clone()),
            Self::Command(_) => (Vec::new(), Vec::new()),
        }
    }

    fn stop(self) -> Result<Finished> {
        match self {
            Self::Cpus(injection) => Ok(Finished::Cpus(injection.stop()?)),
            Self::Command(noise) => {
                noise.stop();
                Ok(Finished::Command(noise))
            }
        }
    }
}

impl Finished {
    fn delivered(self, args: &InjectArgs) -> Result<(InjectionWay, Vec<InjectedPlace>)> {
        match self {
            Self::Cpus(delivered) => {
                let class = args.sched.to_string();
                let sent = delivered.iter().map(|cpu| cpu.packets).sum();
                let way =
                    if args.packets { InjectionWay::Packets { class, sent } } else { InjectionWay::Preempt(class) };
                Ok((way, delivered.iter().map(CpuDelivery::place).collect()))
            }
            Self::Command(noise) => {
                let delivered = noise.delivered()?;
                Ok((InjectionWay::Signal(delivered.counts), delivered.threads))
            }
        }
    }
}

/// Waits for the end, whichever comes first; returns whether it was a signal. If the end is known and nothing else writes to the terminal, a bar
/// shows the progress. It moves at most once per second, because each move is work on some CPU.
fn wait(args: &InjectArgs, command: &mut Companion, stop: &StopSignals, started: Instant) -> Result<bool> {
    let duration = args.duration.map(Nanos::to_std);
    let bar = duration
        .filter(|_| args.command.is_empty() && !args.quiet)
        .map_or_else(Bar::hidden, |duration| Bar::new("injecting", duration.as_millis() as u64, Tail::TimeLeft));
    let step = duration.map_or(Duration::MAX, |duration| (duration / 100).max(Duration::from_secs(1)));
    loop {
        if stop.take().is_some() {
            return Ok(true);
        }
        let elapsed = started.elapsed();
        let left = duration.map(|duration| duration.saturating_sub(elapsed));
        if left == Some(Duration::ZERO) || !args.command.is_empty() && !command.is_running() {
            return Ok(false);
        }
        // Without a descriptor for the command's end, poll.
        let nap = if args.command.is_empty() || command.end_fd().is_some() { 3_600_000 } else { 100 };
        let mut nap = Duration::from_millis(nap).min(left.unwrap_or(Duration::MAX));
        if !bar.is_hidden() {
            bar.reach(elapsed.as_millis() as u64);
            nap = nap.min(step);
        }
        signals::wait_readable([Some(stop.as_fd()), command.end_fd()], nap)?;
    }
}

/// The noise of each CPU in turn, and its name.
fn noise(args: &InjectArgs) -> Result<(String, Vec<NoiseTrace>)> {
    if let Some(path) = &args.replay {
        return replay(args, path);
    }
    if !args.source.is_empty() {
        return Err(UsageError::new("--source chooses among what was recorded: it needs --replay").into());
    }
    let detour = *args.detour.first().expect("the arguments require it");
    if detour <= Nanos::ZERO {
        return Err(UsageError::new(format!("--detour {detour} would be no noise: it must be longer than 0")).into());
    }
    let spec = spec(args, detour)?;
    let Some(burst) = args.burst else { return Ok((spec.to_string(), vec![spec.trace(args.seed)?])) };
    // Bursts at regular times must not overlap; those at random times may.
    let place_holder = match &spec {
        NoiseSpec::Poisson { interval, .. } => NoiseSpec::poisson(*interval, Nanos::new(1)),
        NoiseSpec::Periodic { interval, jitter, .. } => NoiseSpec::periodic(*interval, burst.lasts(detour), *jitter),
        other => other.clone(),
    };
    let named = || format!("bursts of {burst}: each takes {}", burst.lasts(detour));
    let trace = burst.apply(&place_holder.trace(args.seed).with_context(named)?, detour);
    let trace = trace.map_err(|why| UsageError::new(format!("--burst {burst}: {why}")))?;
    Ok((format!("{spec} in bursts of {burst}"), vec![trace]))
}

/// The formula that the arguments give; with bursts, that of their first detours.
fn spec(args: &InjectArgs, detour: Nanos) -> Result<NoiseSpec> {
    let jitter = args.jitter.unwrap_or(Nanos::ZERO);
    Ok(match (args.interval.first(), args.rate.first(), args.ratio.first()) {
        (Some(interval), ..) => NoiseSpec::periodic(*interval, detour, jitter),
        (_, Some(rate), _) => format!("poisson:rate={rate},detour={detour}").parse()?,
        (_, _, Some(ratio)) => {
            let detours = args.burst.map_or(1, Burst::count);
            let interval = detour.get() as f64 * f64::from(detours) / ratio.ratio();
            if !(1.0..1e18).contains(&interval) {
                return Err(UsageError::new(format!("detours of {detour} do not make up {ratio} of the time")).into());
            }
            NoiseSpec::periodic(Nanos::new(interval.round() as i64), detour, jitter)
        }
        _ => unreachable!("the arguments require one"),
    })
}

/// The recorded detours of each CPU.
fn replay(args: &InjectArgs, path: &Path) -> Result<(String, Vec<NoiseTrace>)> {
    let source = noise::from_run(&Bundle::open(path)?, &Selection::default(), !args.source.is_empty())?;
    let noise = match &source.booked {
        Some(booked) if !args.source.is_empty() => {
            let mut out = vec![true; booked.sources().len()];
            for name in &args.source {
                for number in source.source_numbers(name)? {
                    out[number] = false;
                }
            }
            booked.without(&out)?
        }
        _ => source.noise,
    };
    let longer = |trace: &NoiseTrace| {
        let scaled = |length: Nanos| Nanos::new((length.get() as f64 * args.scale).round() as i64);
        NoiseTrace::new(trace.length(), trace.detours().map(|(start, length)| (start, scaled(length))))
    };
    let traces: Result<Vec<NoiseTrace>, _> = match args.scale {
        1.0 => Ok(noise.traces().cloned().collect()),
        factor => {
            noise.traces().map(longer).collect::<Result<_, _>>().with_context(|| format!("{factor} times as long"))
        }
    };
    Ok((format!("replay of {}", path.display()), traces?))
}

/// A number for a node's name, the same on all machines (FNV-1a).
fn number(name: &str) -> u64 {
    name.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_nodes_are_numbers_that_stay() {
        assert_eq!(number(""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(number("a"), 0xaf63_dc4c_8601_ec8c);
        assert_ne!(number("node1"), number("node2"));
    }

    #[test]
    fn factors_are_above_zero() {
        assert_eq!(factor("0.5"), Ok(0.5));
        for text in ["", "0", "-1", "nan", "inf", "1e9"] {
            assert!(factor(text).is_err(), "{text}");
        }
    }
}
