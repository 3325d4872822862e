//! `becalm import`: detours that another program has measured, as a run.

use std::path::PathBuf;

use anyhow::Context;
use becalm_bundle::BundleWriter;
use becalm_exchange::read::selfish::{self, SelfishError};
use becalm_linux::file;
use becalm_model::node::{ClockDoc, CpuDoc, Ended, MachineDoc, NodeDoc, Rung, SCHEMA, SettingsDoc};
use becalm_model::warning;
use becalm_model::{Detour, Labels};
use becalm_units::{CpuId, Nanos};
use clap::{Args, ValueEnum};

use crate::exit::{Exit, UsageError};
use crate::progress::Steps;

/// Store the detours that another program has measured as a run
///
/// selfish is what selfish benchmarks print: a line for each detour with its offset and its duration; lines that begin with
/// # are skipped.
#[derive(Args, Debug)]
pub struct ImportArgs {
    /// The format of the file
    #[arg(long, value_name = "FORMAT")]
    from: ImportFormat,

    /// The file to read
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// Where to store the run
    #[arg(short, long, value_name = "RUN")]
    output: PathBuf,

    /// The unit of the file's numbers
    #[arg(long, value_name = "UNIT", default_value = "ns")]
    unit: TimeUnit,

    /// How long was measured [default: what netgauge's remark says, else until the last detour's end]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    length: Option<Nanos>,
}

/// How many detours a segment of the run has.
const SEGMENT: usize = 1 << 20;

/// No larger file is read, in bytes. It takes five times its size of memory.
const LARGEST: u64 = 1 << 30;

/// After so many bytes progress is told.
const STEP: usize = 1 << 16;

/// Formats that can be read.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum ImportFormat {
    Selfish,
}

/// Units of numbers that are written without one.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum TimeUnit {
    Ns,
    Us,
    Ms,
    S,
}

impl TimeUnit {
    const fn name(self) -> &'static str {
        match self {
            Self::Ns => "ns",
            Self::Us => "us",
            Self::Ms => "ms",
            Self::S => "s",
        }
    }
}

/// Reads the file and writes the run.
///
/// # Errors
/// If the file cannot be read or is not in the format, its detours last longer than what was measured, or the run cannot be
/// written.
pub fn run(args: &ImportArgs) -> anyhow::Result<Exit> {
    let path = args.file.display();
    let text = file::read_regular_text(&args.file, LARGEST).with_context(|| format!("cannot read {path}"))?;
    let ImportFormat::Selfish = args.from;
    // Reading and storing, which take about as long.
    let mut progress = Steps::new("reading", 2 * text.len() as u64);
    let detours = read(&text, args.unit, &mut progress).with_context(|| format!("cannot import {path}"))?;
    let end = detours.last().map_or(Nanos::ZERO, |(start, duration)| *start + *duration);
    // netgauge rounds it, so that it may end before the last detour.
    let length = args.length.unwrap_or_else(|| selfish::measured(&text).unwrap_or(end).max(end));
    if length < end {
        return Err(UsageError(format!("--length {length} ends before the last detour, which ends at {end}")).into());
    }
    if length <= Nanos::ZERO {
        anyhow::bail!("{path} holds no detour; say how long was measured with --length");
    }
    let cpu = CpuId::new(0);
    let rows: Vec<Detour> = detours
        .iter()
        .map(|(start, duration)| Detour { cpu, start: *start, duration: *duration, incomplete: false })
        .collect();
    let doc = document(cpu, length, &rows);
    progress.say("storing");
    // Complete when all of it is there.
    let mut writer = BundleWriter::create(&args.output, &NodeDoc { ended: None, ..doc.clone() })?;
    for segment in rows.chunks(SEGMENT) {
        writer.write_segment(segment, &[], &Labels::new())?;
        progress.advance((text.len() as f64 * segment.len() as f64 / rows.len() as f64) as u64);
    }
    writer.write_doc(&doc)?;
    Ok(Exit::Done)
}

/// Reads the file's detours: start and duration of each.
fn read(text: &str, unit: TimeUnit, progress: &mut Steps) -> Result<Vec<(Nanos, Nanos)>, SelfishError> {
    let mut lines = selfish::SelfishDetours::new(text, unit.name());
    let (mut detours, mut told) = (Vec::new(), text.len());
    while let Some(detour) = lines.next() {
        detours.push(detour?);
        let left = lines.bytes_left();
        if told - left >= STEP {
            progress.advance((told - left) as u64);
            told = left;
        }
    }
    progress.advance(told as u64);
    Ok(detours)
}

/// What is known of the recording: its detours, and nothing of the machine.
fn document(cpu: CpuId, length: Nanos, detours: &[Detour]) -> NodeDoc {
    let unknown = || "unknown".to_owned();
    let shortest = detours.iter().map(|detour| detour.duration).min();
    NodeDoc {
        schema: SCHEMA.to_owned(),
        node: "imported".to_owned(),
        program: format!("becalm {}, import", env!("CARGO_PKG_VERSION")),
        origin: jiff::Timestamp::UNIX_EPOCH,
        ended: Some(Ended::Duration),
        machine: MachineDoc { kernel: unknown(), online: [cpu].into_iter().collect(), ..MachineDoc::default() },
        clock: ClockDoc { counter: unknown(), rate_error_ratio: 1.0, ..ClockDoc::default() },
        settings: SettingsDoc {
            sched: unknown(),
            threshold: unknown(),
            duration_ns: Some(length),
            ..SettingsDoc::default()
        },
        rung: Rung::Loop,
        cpus: vec![CpuDoc {
            duration_ns: length,
            // The file does not say it; no detour is shorter.
            threshold_ns: shortest.unwrap_or(Nanos::ZERO),
            detours: detours.len() as u64,
            total_ns: detours.iter().map(|detour| detour.duration).sum(),
            max_ns: detours.iter().map(|detour| detour.duration).max().unwrap_or(Nanos::ZERO),
            ..CpuDoc::new(cpu)
        }],
        tracing: None,
        counters: Vec::new(),
        warnings: vec![warning::imported()],
    }
}
