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

/// Watch the machine all the time, quietly, and tell a monitoring system
///
/// Measures one idle CPU after the other for a moment, as `becalm record` does, and as often as a budget of CPU time allows, by default
/// 0.1 % of one CPU for everything, which is saved first. Serves what it found, and what it cost, to Prometheus under /metrics. With --output it keeps the
/// recordings in a folder with a bound, and after an alert records at once for longer.
///
/// Each option can stand in a configuration file as `key = value`, too; SIGHUP has it read again. SIGINT and SIGTERM end it.
#[derive(Args, Debug)]
pub struct WatchArgs {
    /// The configuration file; what the command line says is over it
    #[arg(short, long, value_name = "FILE")]
    config: Option<PathBuf>,

    /// The CPUs to measure, like 0-3,8 [default: all that are online]
    #[arg(short, long, value_name = "LIST", allow_hyphen_values = true)]
    cpus: Option<CpuList>,

    /// How long a CPU is measured at a time, from 10ms to 60s [default: 200ms]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    window: Option<Nanos>,

    /// How much CPU time the whole may take on average, as a share of one CPU [default: 0.1%]
    #[arg(long, value_name = "SHARE")]
    budget: Option<Share>,

    /// How often the kernel's counters are read, from 100ms to 1h [default: 10s]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    interval: Option<Nanos>,

    /// A CPU that was busier than this in the last interval is not measured [default: 10%]
    #[arg(long, value_name = "SHARE")]
    busy: Option<Share>,

    /// Serve metrics at this address, unless a service manager passes a socket [default: 127.0.0.1:9749]
    #[arg(long, value_name = "ADDRESS:PORT")]
    listen: Option<SocketAddr>,

    /// Answer requests for this host name, too; * for any name; may be given several times
    #[arg(long, value_name = "NAME")]
    allow_host: Vec<HostName>,

    /// Send metrics to a collector of OpenTelemetry, too, by OTLP over HTTP
    #[arg(long, value_name = "URL")]
    otlp: Option<Collector>,

    /// How often it gets them, from 1s to 1h [default: 60s]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    otlp_interval: Option<Nanos>,

    /// Keep the recordings in this folder
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,

    /// How much the recordings may take there, like 512MiB [default: 1GiB]
    #[arg(long, value_name = "BYTES")]
    keep: Option<ByteCount>,

    /// Raise an alert if a window has such a detour or so much noise: detour>TIME or noise>SHARE; may be given several times
    #[arg(long, value_name = "CONDITION")]
    trigger: Vec<Trigger>,

    /// How long the recording after an alert is, from 10ms to 60s [default: 1s]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    alert: Option<Nanos>,

    /// Do not trace the kernel between the windows
    #[arg(long)]
    no_trace: bool,

    /// How many sources have a series of their own, at most 1000; the rest is one [default: 20]
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
