//! Does every recording in a series end correctly, some of them next to busy neighbors and in storms of short detours?

use std::hint::black_box;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use crate::claims::{Claims, Figure};
use crate::effort::Effort;
use crate::programs;
use becalm_bundle::Bundle;
use becalm_linux::sched;
use becalm_model::node::{CpuDoc, Ended, NodeDoc};

/// The number of successive recordings.
const RECORDINGS: u64 = 30;
/// The number of detours per second on every CPU that makes a storm.
const DETOURS_PER_SECOND: f64 = 1e6;
/// The memory that a neighbor writes to, in bytes: more than most caches hold.
const NEIGHBORS_MEMORY: usize = 64 << 20;

/// Programs that run next to a recording.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Neighborhood {
    Nothing,
    Neighbor,
    Storm,
}

pub fn run() -> ExitCode {
    let effort = Effort::from_arguments();
    let mut claims = Claims::begin("Storms: recordings that nothing ends before their time", effort);
    if let Err(error) = recordings(&mut claims, effort) {
        claims.fail_as_root("every recording is complete", &error);
    }
    claims.end()
}

/// The duration from the arguments; `None` keeps the default of `becalm record`.
fn duration() -> Option<String> {
    std::env::args().skip_while(|word| word != "--duration").nth(1)
}

/// A busy thread on every CPU, until dropped.
struct Neighbors {
    over: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Neighbors {
    fn start() -> Result<Self, String> {
        let over = Arc::new(AtomicBool::new(false));
        let cpus = sched::allowed_cpus().map_err(|error| error.to_string())?;
        let threads = cpus.iter().map(|cpu| {
            let over = Arc::clone(&over);
            std::thread::spawn(move || {
                // A thread that cannot be placed disturbs from another CPU.
                let _ = sched::pin_current_thread(cpu);
                write_all_over(&over);
            })
        });
        Ok(Self { threads: threads.collect(), over })
    }
}

impl Drop for Neighbors {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

/// Writes to scattered cache lines until it is over.
fn write_all_over(over: &AtomicBool) {
    let mut memory = vec![0_u8; NEIGHBORS_MEMORY];
    let mut place = 1_usize;
    while !over.load(Ordering::Relaxed) {
        for _ in 0..1_000 {
            // The constants of Knuth's MMIX (The Art of Computer Programming, volume 2, section 3.3.4).
            place = place.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let at = (place >> 20) % memory.len();
            memory[at] = memory[at].wrapping_add(1);
        }
        black_box(&mut memory);
    }
}

fn recordings(claims: &mut Claims, effort: Effort) -> Result<(), String> {
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let quick = (effort == Effort::Quick).then(|| "1s".to_owned());
    let duration = duration().or(quick);
    let t_min = record(&folder.path().join("first.becalm"), Some("1s"), None, true)?
        .cpus
        .iter()
        .map(|cpu| cpu.t_min_ns.get())
        .max()
        .ok_or("no CPU was measured")?;
    let (mut incomplete, mut storms, mut counted) = (Vec::new(), Vec::new(), 0_u64);
    let count = effort.share(RECORDINGS).max(3);
    for number in 0..count {
        let neighborhood = [Neighborhood::Nothing, Neighborhood::Neighbor, Neighborhood::Storm][number as usize % 3];
        let path = folder.path().join(format!("{number}.becalm"));
        let threshold = (neighborhood == Neighborhood::Storm).then(|| format!("{}ns", t_min + 1));
        let neighbors = (neighborhood != Neighborhood::Nothing).then(Neighbors::start).transpose()?;
        let recorded = record(&path, duration.as_deref(), threshold.as_deref(), false);
        drop(neighbors);
        match recorded {
            Err(error) => incomplete.push(format!("recording {number}: {error}")),
            Ok(node) => {
                if node.ended != Some(Ended::Duration) || node.cpus.iter().any(|cpu| cpu.cut_short) {
                    incomplete.push(format!("recording {number} ended early"));
                }
                if neighborhood == Neighborhood::Storm {
                    storms.push(node.cpus.iter().map(detours_per_second).fold(f64::INFINITY, f64::min));
                    counted += node.cpus.iter().map(|cpu| cpu.unstored).sum::<u64>();
                }
            }
        }
        std::fs::remove_dir_all(&path).map_err(|error| error.to_string())?;
    }
    claims.none(&format!("{count} recordings of all CPUs in a row: not complete"), incomplete.len() as u64);
    let each = duration.map_or_else(|| "the default duration".to_owned(), |duration| duration.clone());
    claims.remark(&format!("{each} each; in turn alone, with neighbors, and with neighbors in a storm"));
    incomplete.iter().for_each(|what| claims.remark(what));
    // The processor determines their number, which changes from minute to minute on a virtual machine.
    let (weakest, strongest) =
        (storms.iter().copied().fold(f64::INFINITY, f64::min), storms.iter().copied().fold(0.0, f64::max));
    claims.at_least(
        "  detours in the strongest storm, the slowest CPU",
        Figure::a_second(strongest.floor()),
        DETOURS_PER_SECOND,
    );
    claims.state("  in the weakest one", Figure::a_second(weakest.floor()), "the slowest CPU");
    claims.state("  of them only counted", Figure::count(counted), "below 1 us each, for want of room");
    Ok(())
}

fn detours_per_second(cpu: &CpuDoc) -> f64 {
    (cpu.detours + cpu.unstored) as f64 / cpu.duration_ns.as_secs_f64()
}

/// Records all CPUs with the program itself, and returns the document. Fails unless it ended with exit code 0.
fn record(path: &Path, duration: Option<&str>, threshold: Option<&str>, short: bool) -> Result<NodeDoc, String> {
    let mut command = Command::new(programs::becalm());
    command.args(["record", "--quiet", "--output"]).arg(path);
    command.args(duration.iter().flat_map(|duration| ["--duration", duration]));
    command.args(threshold.iter().flat_map(|threshold| ["--threshold", threshold]));
    if short {
        // Only the shortest step matters.
        command.arg("--no-sources");
    }
    let cost = programs::cost(&mut command, None).map_err(|error| format!("cannot run becalm: {error}"))?;
    if !cost.success {
        return Err("becalm record failed".to_owned());
    }
    let bundle = Bundle::open(path).map_err(|error| error.to_string())?;
    Ok(bundle.nodes()[0].clone())
}
