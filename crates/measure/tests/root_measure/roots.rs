//! What goes away with a source: predicted from a recording with it, and recorded with less of it.

use becalm_linux::perf::CpuClock;
use becalm_linux::sched::allowed_cpus;
use becalm_measure::RecordPlan;
use becalm_model::{Kind, root};
use becalm_scale::books::{BookEntry, BookedNoise, BookedTrace};
use becalm_stats::median_mid;
use becalm_testing::{Need, attempts, machine_has};
use becalm_units::{CpuId, Nanos};

use crate::recording::{Recorded, recorded};

/// Ticks a second that are added, and half as many.
const ADDED_HZ: [u32; 2] = [10_000, 5_000];
/// Recordings of each rate, by turns.
const ROUNDS: usize = 5;

/// The noise of a CPU, as a share of its time: as recorded, and without the ticks and all that goes with them.
struct WithAndWithout {
    noise: f64,
    without: f64,
    ticks_hz: f64,
}

fn with_and_without(run: &Recorded, cpu: CpuId) -> WithAndWithout {
    let (index, doc) = run.cpu(cpu);
    let lane = &run.memory.lanes[index];
    let text = |label| run.memory.labels.text(label);
    let mut names = Vec::new();
    let mut number = |kind: Kind, source: &str| {
        let name = root::text(kind, source);
        let place = names.iter().position(|known| *known == name);
        place.unwrap_or_else(|| {
            names.push(name);
            names.len() - 1
        }) as u32
    };
    let entries = lane.activities.iter().map(|row| {
        let (kind, source) = root::of_row(row.kind, text(row.source), text(row.detail));
        BookEntry {
            detour: row.detour as usize,
            source: number(row.kind, text(row.source)),
            root: number(kind, source),
            self_time: row.self_time,
        }
    });
    let entries: Vec<_> = entries.collect();
    let detours = lane.detours.iter().map(|detour| (detour.start, detour.duration)).collect();
    let trace = BookedTrace::new(doc.start_ns, doc.duration_ns, detours, entries, names.len()).expect("books close");
    let booked = BookedNoise::new(names, vec![("here".to_owned(), vec![trace])]).expect("one CPU");
    let out: Vec<bool> = booked.sources().iter().map(|name| name == "irq:local_timer").collect();
    WithAndWithout {
        noise: booked.without(&vec![false; out.len()]).expect("it was recorded").noise_ratio(),
        without: booked.without(&out).expect("less of what was recorded").noise_ratio(),
        ticks_hz: run.growth(cpu, "interrupts/LOC") as f64 / doc.duration_ns.as_secs_f64(),
    }
}

/// What becalm says would go with half of the ticks is what is gone when there are half as many: the handler, the softirqs that it
/// raises, the ways in and out and what follows.
#[test]
fn without_half_of_the_ticks_the_noise_is_what_becalm_says() {
    if !machine_has(&[Need::Root, Need::TwoCpus]) {
        return;
    }
    let cpu = allowed_cpus().expect("the kernel tells where we may run").iter().last().expect("we run somewhere");
    let record = |hz| {
        let clock = CpuClock::start(cpu, hz).expect("root may open a perf event on a CPU");
        let mut plan = RecordPlan::new();
        (plan.cpus, plan.duration) = (Some([cpu].into_iter().collect()), Some(Nanos::from_secs(1)));
        let run = recorded(plan);
        drop(clock);
        with_and_without(&run, cpu)
    };
    // A neighbor on the host may slow one of the two rates only.
    attempts(3, || {
        let mut shares = Vec::new();
        for _ in 0..ROUNDS {
            let [all, half] = ADDED_HZ.map(record);
            let said = (all.noise - all.without) * (1.0 - half.ticks_hz / all.ticks_hz);
            let gone = all.noise - half.noise;
            eprintln!(
                "{:.0} ticks/s: noise {:.3} %, {:.3} % without; {:.0} ticks/s: {:.3} %; gone {:.3} %, said {:.3} %",
                all.ticks_hz,
                all.noise * 100.0,
                all.without * 100.0,
                half.ticks_hz,
                half.noise * 100.0,
                gone * 100.0,
                said * 100.0
            );
            shares.push(said / gone);
        }
        let share = median_mid(&mut shares).expect("there were rounds");
        if (0.9..1.1).contains(&share) { Ok(()) } else { Err(format!("said {share:.3} times what was gone")) }
    });
}
