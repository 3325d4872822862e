//! A site in summary form: 1,000 nodes with 64 CPUs for an hour, and ten times as many, read and ranked by `becalm fleet` on one core.
//!
//! The nodes are synthetic: 16 CPUs are counted detour by detour, like a recording (a tick every 4 ms, and fifteen random daemons and
//! interrupts), and each node has them in another order, at other times.

use std::fs;
use std::io;
use std::path::Path;
use std::process::{Command, ExitCode};

use becalm_account::Owner;
use becalm_condense::{ActivityRow, Condenser};
use becalm_linux::sched;
use becalm_model::digest::{CpuDigest, DigestDoc};
use becalm_model::node::{CpuDoc, Ended, MachineDoc, NodeDoc, Rung, SCHEMA, SettingsDoc};
use becalm_model::{Kind, node};
use becalm_units::{CpuId, Nanos};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

use crate::claims::{Claims, Figure};
use crate::effort::Effort;
use crate::programs::{self, Cost};

const NODES: u64 = 1_000;
/// CPUs per node.
const CPUS: u32 = 64;
/// The CPUs counted detour by detour.
const COUNTED: u32 = 16;
/// The duration of the recordings.
const HOUR: Nanos = Nanos::from_secs(3_600);
/// The node to be named: it has more noise from one source than the total noise of any other.
const NOISY: u64 = 17;

/// The promised time and memory for the first site.
const SECONDS: f64 = 30.0;
const MEGABYTES: f64 = 1_000.0;

pub fn run() -> ExitCode {
    let effort = Effort::from_arguments();
    let mut claims =
        Claims::begin("Fleet: nodes of 64 CPUs and one hour in summary form, read and ranked on one core", effort);
    if let Err(error) = sites(&mut claims, effort) {
        claims.fail("a site in summary form", &error.to_string());
    }
    claims.end()
}

fn sites(claims: &mut Claims, effort: Effort) -> io::Result<()> {
    let folder = tempfile::tempdir()?;
    let site = folder.path().join("site.becalm");
    // The smallest site with the noisy node; and twice as many for ten times.
    let (nodes, times) = match effort {
        Effort::Full => (NODES, 10),
        Effort::Quick => (NOISY + 1, 2),
    };
    let before = own_seconds();
    let template = template();
    let bytes = write(&site, &template, 0..nodes)?;
    let generating = own_seconds() - before;
    claims.state("  bytes of a node", Figure::megabytes(bytes / nodes), "64 CPUs, an hour");
    let first = read(&site)?;
    let reading = first.cpu.as_secs_f64();
    claims.at_most(
        &format!("{nodes} nodes: processor time of making them up, reading and ranking"),
        Figure::seconds(generating + reading),
        SECONDS,
    );
    claims.state(
        "  generating them",
        Figure::seconds(generating),
        "16 CPUs counted detour by detour, all nodes written",
    );
    claims.at_most("  most memory of reading", Figure::megabytes(first.peak_bytes), MEGABYTES);
    claims.at_most("  most memory of making them up", Figure::megabytes(own_peak_bytes()?), MEGABYTES);
    claims
        .none("  runs that failed, or did not name the noisy node", u64::from(!first.success || !names_noisy(&site)?));
    let needed = bytes.saturating_mul(times - 1) + (4 << 30);
    if free_bytes(folder.path())? < needed {
        claims
            .skip(&format!("{times} times as many nodes"), &format!("it takes {:.0} GB of disk", needed as f64 / 1e9));
        return Ok(());
    }
    write(&site, &template, nodes..times * nodes)?;
    let more = read(&site)?;
    let seconds = |cost: &Cost| Figure::seconds(cost.cpu.as_secs_f64());
    claims.at_most(&format!("{} nodes: processor time", times * nodes), seconds(&more), times as f64 * SECONDS);
    claims.state_beside(
        "  against the first ones",
        seconds(&more),
        seconds(&first),
        "files are not in memory any more",
    );
    claims.at_most("  most memory", Figure::megabytes(more.peak_bytes), MEGABYTES);
    claims.none("  runs that failed", u64::from(!more.success));
    Ok(())
}

fn command(site: &Path) -> Command {
    let mut command = Command::new(programs::becalm());
    command.arg("fleet").arg("--json").arg(site);
    command
}

fn read(site: &Path) -> io::Result<Cost> {
    let cpu = sched::allowed_cpus().ok().and_then(|cpus| cpus.iter().next());
    programs::cost(&mut command(site), cpu)
}

/// Whether the noisy node is the first outlier.
fn names_noisy(site: &Path) -> io::Result<bool> {
    let output = command(site).output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    Ok(text.contains(&format!("\"summary\": \"{}: ", name(NOISY))))
}

/// The processor time of this process, in seconds.
fn own_seconds() -> f64 {
    let taken = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    taken.tv_sec as f64 + taken.tv_nsec as f64 / 1e9
}

/// The peak memory of this process.
fn own_peak_bytes() -> io::Result<u64> {
    let status = fs::read_to_string("/proc/self/status")?;
    let kilobytes =
        status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB")?.parse().ok());
    kilobytes
        .map(|kilobytes: u64| kilobytes * 1024)
        .ok_or_else(|| io::Error::other("/proc/self/status states no VmHWM"))
}

fn free_bytes(folder: &Path) -> io::Result<u64> {
    let found = rustix::fs::statvfs(folder)?;
    Ok(found.f_bavail.saturating_mul(found.f_frsize))
}

fn name(number: u64) -> String {
    format!("n{number:05}")
}

/// A node with some counted CPUs, and others like them.
fn template() -> DigestDoc {
    let cpu = |number| CpuDoc {
        duration_ns: HOUR,
        t_min_ns: Nanos::new(20),
        threshold_ns: Nanos::new(80),
        ..CpuDoc::new(CpuId::new(number))
    };
    let run = NodeDoc {
        schema: SCHEMA.to_owned(),
        node: name(0),
        program: "becalm 0.1.0".to_owned(),
        origin: Some("2026-01-01T00:00:00Z".parse().expect("an instant")),
        ended: Some(Ended::Duration),
        machine: MachineDoc::default(),
        clock: node::ClockDoc { counter: "tsc".to_owned(), ..node::ClockDoc::default() },
        settings: SettingsDoc { duration_ns: Some(HOUR), ..SettingsDoc::default() },
        rung: Rung::Tracepoints,
        cpus: (0..CPUS).map(cpu).collect(),
        tracing: None,
        stored: None,
        counters: Vec::new(),
        warnings: Vec::new(),
    };
    let origin = run.origin_ns() as i64;
    let mut counts = Condenser::new(origin, run.cpus.iter().take(COUNTED as usize).map(|cpu| cpu.cpu), true);
    let mut random = Xoshiro256PlusPlus::seed_from_u64(1);
    let mut itself = |kind, source: &str| Owner::itself(counts.sources().id(kind, source), kind);
    let tick = itself(Kind::Irq, "tick");
    let others: Vec<_> =
        (0..15).map(|at| itself([Kind::Task, Kind::Irq, Kind::Workqueue][at % 3], &format!("source{at}"))).collect();
    for place in 0..COUNTED as usize {
        for number in 0..HOUR.get() as u64 / 4_000_000 {
            let bits = random.next_u64();
            let ticks = number % 97 != 0;
            let owner = if ticks { tick } else { others[(bits >> 40) as usize % others.len()] };
            // Ticks of 3 to 5 us; others up to a hundred times as long, with rarer long ones.
            let self_ns =
                (3_000 + (bits & 2_047) as i64) * if ticks { 1 } else { 1 + 100 / (1 + (bits >> 12 & 127) as i64) };
            let start_ns = number as i64 * 4_000_000 + (bits >> 30 & 1_023) as i64;
            counts.activity(place, &ActivityRow { detour: number, start_ns, self_ns, owner });
            counts.detour(place, start_ns, self_ns, false);
        }
    }
    let mut digest = counts.document(NodeDoc { cpus: run.cpus[..COUNTED as usize].to_vec(), ..run.clone() });
    let counted = digest.cpus.clone();
    digest.cpus =
        (0..CPUS).map(|at| CpuDigest { cpu: CpuId::new(at), ..counted[(at % COUNTED) as usize].clone() }).collect();
    digest.run = run;
    for (doc, cpu) in digest.run.cpus.iter_mut().zip(&digest.cpus) {
        (doc.detours, doc.total_ns, doc.max_ns) =
            (cpu.stored.count, Nanos::new(cpu.stored.total_ns), Nanos::new(cpu.stored.max_ns));
    }
    digest
}

/// Writes nodes like their recorders, and returns the number of bytes.
fn write(site: &Path, template: &DigestDoc, numbers: std::ops::Range<u64>) -> io::Result<u64> {
    let runs = site.join("runs");
    fs::create_dir_all(&runs)?;
    let (mut bytes, mut digest, mut text) = (0, template.clone(), Vec::new());
    for number in numbers {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(number);
        digest.run.node = name(number);
        for (cpu, counted) in digest.cpus.iter_mut().zip(&template.cpus) {
            let slots = counted.noise_ns.len();
            let (earlier, later) = counted.noise_ns.split_at(random.next_u64() as usize % slots);
            // Peers differ by a few percent.
            let more = 100 + (random.next_u64() % 8) as i64;
            let added = if number == NOISY { counted.durations.total_ns } else { 0 };
            cpu.sources[1].whole_ns = counted.sources[1].whole_ns + added;
            for (ns, counted) in cpu.noise_ns.iter_mut().zip(later.iter().chain(earlier)) {
                *ns = *counted * more / 100 + added / slots as i64;
            }
        }
        text.clear();
        serde_json::to_writer(&mut text, &digest)?;
        bytes += text.len() as u64;
        fs::write(runs.join(format!("node={}.json", name(number))), &text)?;
    }
    Ok(bytes)
}
