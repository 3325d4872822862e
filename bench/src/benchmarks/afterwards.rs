//! Is becalm fast afterwards, and small? Attribution of ten million events, a report on ten million detours, the trace of 256 CPUs on one
//! core, and the recorder's memory.

use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use crate::claims::{Claims, Figure};
use crate::effort::Effort;
use crate::figures::Repetitions;
use crate::interrupts::Interrupts;
use crate::kernel_load::{Attributed, MadeUpMachine, Stretch};
use crate::{large_bundle, programs};
use becalm_linux::sched;
use becalm_units::{CpuId, Nanos};

/// Kernel events to attribute, and detours to report on.
const TEN_MILLION: u64 = 10_000_000;
/// Events per piece, like a segment of a busy CPU.
const PIECE: u64 = 100_000;
/// The large machine: its CPUs, events per second, and duration.
const CPUS: u32 = 256;
const EVENTS_PER_SECOND: u64 = 10_000;
const SECONDS: u64 = 4;
/// Number of reports.
const REPORTS: u64 = 5;
/// Interrupts per second on each CPU during the measurement of the recorder's memory.
const INTERRUPTS_HZ: u32 = 10_000;

pub fn run() -> ExitCode {
    let effort = Effort::from_arguments();
    let mut claims = Claims::begin("Fast afterwards, and small", effort);
    let cpu = match sched::allowed_cpus() {
        Ok(allowed) => allowed.iter().last(),
        Err(_) => None,
    };
    // Run programs first, because the kernel includes this process's memory, which grows, in theirs.
    if let Err(why) = recording_memory(&mut claims, effort) {
        claims.fail_as_root("peak memory while recording", &why);
    }
    if let Err(why) = report(&mut claims, effort, cpu) {
        claims.fail("report on 10 million detours", &why);
    }
    if let Some(cpu) = cpu {
        // Everything from here on uses one core.
        let _ = sched::pin_current_thread(cpu);
    }
    attribution(&mut claims, effort);
    large_machine(&mut claims, effort);
    claims.end()
}

fn recording_memory(claims: &mut Claims, effort: Effort) -> Result<(), String> {
    let allowed = sched::allowed_cpus().map_err(|error| error.to_string())?;
    let interrupts: Result<Vec<_>, _> = allowed.iter().map(|cpu| Interrupts::start(cpu, INTERRUPTS_HZ)).collect();
    let _interrupts = interrupts.map_err(|error| format!("no perf event: {error}"))?;
    let peak = |duration: u64, segment: &[&str]| {
        let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
        let duration = format!("{}s", effort.share(duration));
        let mut command = Command::new(programs::becalm());
        command.args(["record", "--quiet", "--duration", &duration]).args(segment).arg("--output");
        let cost = programs::cost(command.arg(folder.path().join("run.becalm")), None);
        let cost = cost.map_err(|error| format!("cannot run becalm: {error}"))?;
        if cost.success { Ok(cost.peak_bytes) } else { Err("becalm record failed".to_owned()) }
    };
    let segments = ["--segment", "5s"];
    // A busy moment enlarges a segment; both sides have the same time to encounter one.
    let short = [peak(10, &segments)?, peak(10, &segments)?, peak(10, &segments)?].into_iter().fold(0, u64::max);
    let (short, long) = (Figure::megabytes(short), Figure::megabytes(peak(30, &segments)?));
    claims.at_most_times("peak memory of recording 30s in segments of 5s, against 10s three times", long, short, 1.25);
    claims.at_most("  of 30s in one segment, as it is without --segment", Figure::megabytes(peak(30, &[])?), 250.0);
    claims.remark(&format!("{INTERRUPTS_HZ} interrupts/s on each of {} CPUs, all of them measured", allowed.len()));
    Ok(())
}

fn report(claims: &mut Claims, effort: Effort, cpu: Option<CpuId>) -> Result<(), String> {
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let path = folder.path().join("large.becalm");
    let activities = large_bundle::write(&path, effort.share(TEN_MILLION)).map_err(|error| error.to_string())?;
    // A report that reads only a part would be fast, too.
    let shown = Command::new(programs::becalm()).args(["report", "--full"]).arg(&path).output();
    let shown = shown.map_err(|error| format!("cannot run becalm: {error}"))?;
    let all = match effort {
        Effort::Full => "10,000,000 detours",
        Effort::Quick => "500,000 detours",
    };
    if !String::from_utf8_lossy(&shown.stdout).contains(all) {
        return Err(format!("becalm report does not tell of {all} whose books close"));
    }
    let (mut wall, mut processor, mut peak) = (Vec::new(), Vec::new(), 0);
    for _ in 0..effort.share(REPORTS) {
        let mut command = Command::new(programs::becalm());
        let cost = programs::cost(command.arg("report").arg(&path), cpu);
        let cost = cost.map_err(|error| format!("cannot run becalm: {error}"))?;
        if !cost.success {
            return Err("becalm report failed".to_owned());
        }
        wall.push(cost.wall.as_secs_f64());
        processor.push(cost.cpu.as_secs_f64());
        peak = peak.max(cost.peak_bytes);
    }
    let (wall, processor) = (Repetitions::new(wall), Repetitions::new(processor));
    claims.at_most(&format!("report on {all}, processor time"), Figure::seconds(processor.median()), 1.0);
    claims.remark(&format!("{activities} activities; {}; by the wall {}", processor.range("s"), wall.range("s")));
    claims.at_most(&format!("report on {all}, peak memory"), Figure::megabytes(peak), 300.0);
    Ok(())
}

fn attribution(claims: &mut Claims, effort: Effort) {
    let machine = MadeUpMachine::default();
    let cpu = CpuId::new(0);
    let (mut translator, mut names) = machine.translator();
    let mut attributor = machine.attributor(cpu, &mut names);
    let length = Nanos::from_secs(10);
    let piece = machine.stretch(cpu, PIECE, length);
    let (mut events, mut attributed) = (Vec::new(), Attributed::default());
    let (mut decoding, mut attributing, mut count, mut closed) = (Duration::ZERO, Duration::ZERO, 0, true);
    for number in 0..effort.share(TEN_MILLION).div_ceil(PIECE) {
        let piece = piece.later(machine.ticks(length) * number);
        let steps = piece.steps(machine.axis);
        events.clear();
        attributed.detours.clear();
        attributed.activities.clear();
        let began = Instant::now();
        machine.decode(&piece, &mut translator, &mut names, &mut events);
        decoding += began.elapsed();
        let began = Instant::now();
        attributed.attribute(&mut attributor, &steps, &events, &mut names);
        attributing += began.elapsed();
        count += events.len() as u64;
        closed &= attributed.closes();
    }
    let scale = TEN_MILLION as f64 / count as f64;
    let seconds = |time: Duration| Figure::seconds(time.as_secs_f64() * scale);
    claims.at_most("10 million kernel events attributed", seconds(attributing), 3.0);
    claims.at_most("10 million kernel events decoded, named, attributed", seconds(decoding + attributing), 3.0);
    claims.none("  books that do not close", u64::from(!closed));
}

fn large_machine(claims: &mut Claims, effort: Effort) {
    let machine = MadeUpMachine::default();
    let (mut translator, mut names) = machine.translator();
    let second = Nanos::from_secs(1);
    let mut cpus: Vec<_> = (0..CPUS)
        .map(CpuId::new)
        .map(|cpu| (machine.stretch(cpu, EVENTS_PER_SECOND, second), machine.attributor(cpu, &mut names)))
        .collect();
    let seconds = effort.share(SECONDS);
    let mut events = Vec::new();
    let (mut busy, mut count, mut closed) = (Duration::ZERO, 0, true);
    for number in 0..seconds {
        let ticks = machine.ticks(second) * number;
        // As in the collector, the data of a second is in memory before decoding starts.
        let arrived: Vec<Stretch> = cpus.iter().map(|(stretch, _)| stretch.later(ticks)).collect();
        let mut attributed: Vec<Attributed> = cpus.iter().map(|_| Attributed::default()).collect();
        let began = Instant::now();
        for ((stretch, (_, attributor)), attributed) in arrived.iter().zip(&mut cpus).zip(&mut attributed) {
            events.clear();
            machine.decode(stretch, &mut translator, &mut names, &mut events);
            attributed.attribute(attributor, &stretch.steps(machine.axis), &events, &mut names);
            count += events.len() as u64;
        }
        busy += began.elapsed();
        closed &= attributed.iter().all(Attributed::closes);
    }
    let factor = seconds as f64 / busy.as_secs_f64();
    claims.at_least("256 CPUs at 10,000 events/s, faster than they arrive", Figure::times(factor), 1.0);
    let speed = count as f64 / busy.as_secs_f64() / 1e6;
    claims.remark(&format!("{count} events decoded, named and attributed on one core, {speed:.1} million a second"));
    claims.none("  books that do not close", u64::from(!closed));
}
