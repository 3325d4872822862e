//! `becalm watch`, with its arguments.

use std::io::Write;
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};

use becalm_command::voice::Voice;
use becalm_command::{Exit, Task, rights};
use becalm_linux::file::read_regular_text;
use becalm_linux::signals::heed_hangup;
use becalm_linux::sockets::inherited_listener;
use becalm_measure::RecordPlan;
use becalm_record::Session;
use becalm_units::fault::{Context, Result, UsageError};
use becalm_units::{ByteCount, CpuList, Nanos, Share};
use clap::Args;

use crate::config::{LARGEST, WatchConfig, WatchSettings};
use crate::host::HostName;
use crate::otlp::Collector;
use crate::trigger::Trigger;
use crate::watch::{Surroundings, watch};

/// Monitor a machine continuously (Prometheus, OpenTelemetry)
///
/// Measures idle CPUs one after another within a budget of CPU time, and serves the results and its own cost to
/// Prometheus under /metrics. With --output, it keeps recordings up to a size limit, and makes a longer one after each
/// alert.
///
/// Options can also be set in a config file as `key = value`; SIGHUP reads it again. SIGINT and SIGTERM end it.
#[derive(Args, Debug)]
pub struct WatchArgs {
    /// Config file; the command line takes precedence
    #[arg(short, long, value_name = "FILE")]
    config: Option<PathBuf>,

    /// CPUs to measure, such as 0-3,8 [default: all online]
    #[arg(long, value_name = "LIST", allow_hyphen_values = true)]
    cpus: Option<CpuList>,

    /// Length of one measurement of a CPU, from 10ms to 60s [default: 200ms]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    window: Option<Nanos>,

    /// Share of one CPU that becalm may use on average in total [default: 0.1%]
    #[arg(long, value_name = "SHARE")]
    budget: Option<Share>,

    /// Time between readings of the kernel counters, from 100ms to 1h [default: 10s]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    interval: Option<Nanos>,

    /// Skip CPUs that were busier than this in the last interval [default: 10%]
    #[arg(long, value_name = "SHARE")]
    busy: Option<Share>,

    /// Address to serve metrics at, unless a service manager passes a socket [default: 127.0.0.1:9749]
    #[arg(long, value_name = "ADDRESS:PORT")]
    listen: Option<SocketAddr>,

    /// Additional host name to answer requests for, or * for any; repeatable
    #[arg(long, value_name = "NAME")]
    allow_host: Vec<HostName>,

    /// Also send metrics to this OpenTelemetry collector (OTLP over HTTP)
    #[arg(long, value_name = "URL")]
    otlp: Option<Collector>,

    /// Time between two deliveries to the collector, from 1s to 1h [default: 60s]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    otlp_interval: Option<Nanos>,

    /// Keep recordings in this directory
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,

    /// Size limit of these recordings, such as 512MiB [default: 1GiB]
    #[arg(long, value_name = "BYTES")]
    keep: Option<ByteCount>,

    /// Condition for an alert, per measurement: detour>TIME (an interruption) or noise>SHARE; repeatable
    #[arg(long, value_name = "CONDITION")]
    trigger: Vec<Trigger>,

    /// Length of the recording after an alert, from 10ms to 60s [default: 1s]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    alert: Option<Nanos>,

    /// Do not trace the kernel between measurements
    #[arg(long)]
    no_trace: bool,

    /// Number of sources with a series of their own, at most 1000; the others share one [default: 20]
    #[arg(long, value_name = "N")]
    sources: Option<u32>,
}

impl WatchArgs {
    fn said(&self) -> WatchConfig {
        WatchConfig {
            cpus: self.cpus.clone(),
            window: self.window,
            alert: self.alert,
            budget: self.budget,
            interval: self.interval,
            busy: self.busy,
            listen: self.listen,
            allow_host: self.allow_host.clone(),
            otlp: self.otlp.clone(),
            otlp_interval: self.otlp_interval,
            output: self.output.clone(),
            keep: self.keep,
            triggers: self.trigger.clone(),
            sources: self.sources,
            trace: self.no_trace.then_some(false),
        }
    }

    /// The settings from the command line and the current file.
    fn settings(&self) -> Result<WatchSettings> {
        let file = self.config.as_deref().map(read).transpose()?.unwrap_or_default();
        Ok(self.said().with_defaults(file).settle().map_err(|error| UsageError::new(error.to_string()))?)
    }
}

impl Task for WatchArgs {
    fn is_service(&self) -> bool {
        true
    }

    fn run(self: Box<Self>, _out: &mut dyn Write) -> Result<Exit> {
        run(&self)
    }
}

/// Watches until it is asked to end. Fails if the configuration, the address or the directory cannot be used.
fn run(args: &WatchArgs) -> Result<Exit> {
    // Before any file is opened.
    let inherited = inherited_listener()?;
    let settings = args.settings()?;
    let root = Path::new("/");
    // SIGHUP does not end it, so nohup need not block the signal.
    heed_hangup();
    // While the process is single-threaded.
    let session = Session::begin(root, true).context("cannot block signals")?;
    let listener = match inherited {
        Some(listener) => listener,
        None => TcpListener::bind(settings.listen).with_context(|| format!("cannot listen at {}", settings.listen))?,
    };
    let address = listener.local_addr().context("cannot ask for the socket's address")?;
    let voice = Voice::start().context("cannot start the thread that writes messages")?;
    voice.say(format!("watching; metrics are at http://{address}/metrics, the budget is {} of a CPU", settings.budget));
    let rights = rights::lower_while_recording();
    let plan = || RecordPlan {
        ring_bytes: 1 << 20,
        trace_bytes: 1 << 20,
        rights: rights.clone(),
        root: root.to_owned(),
        ..RecordPlan::new()
    };
    let reload = || args.settings().map_err(|error| format!("{error}"));
    let around = Surroundings {
        plan: &plan,
        reload: &reload,
        say: &|text| voice.say(text.to_owned()),
        voice: Some(voice.pid),
        instead_of_sleep: None,
    };
    let ran = watch(&session, settings, listener, &around);
    if let Ok(ran) = &ran {
        let share = ran.cpu.get() as f64 / ran.elapsed.get().max(1) as f64 * 100.0;
        voice.say(format!("watched for {}; that took {} of CPU time, {share:.3}% of a CPU", ran.elapsed, ran.cpu));
    }
    voice.end();
    ran?;
    Ok(Exit::Done)
}

/// Reads a configuration file.
fn read(path: &Path) -> Result<WatchConfig> {
    let text = read_regular_text(path, LARGEST)
        .with_context(|| format!("cannot read the configuration {}", path.display()))?;
    Ok(WatchConfig::parse(&text).map_err(|error| UsageError::new(format!("{}: {error}", path.display())))?)
}
