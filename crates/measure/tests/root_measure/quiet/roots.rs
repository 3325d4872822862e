//! What goes away with a source: predicted from a recording with it, and recorded with less of it.

use becalm_linux::perf::CpuClock;
use becalm_linux::sched::allowed_cpus;
use becalm_measure::RecordPlan;
use becalm_model::{Kind, root};
use becalm_scale::books::{BookEntry, BookedNode, BookedNoise, BookedTrace};
use becalm_stats::median_mid;
use becalm_testing::{Need, attempts, machine_has};
use becalm_units::{CpuId, Nanos};

use super::AHEAD_OF_PROGRAMS;
use crate::recording::{Recorded, recorded};

/// Ticks a second that are added, and half as many.
const ADDED_HZ: [u32; 2] = [10_000, 5_000];
/// Recordings of each rate, by turns.
const ROUNDS: usize = 10;

/// The noise of a CPU, as a share of its time: as recorded, and without the ticks and all that goes with them.
struct WithAndWithout {
    noise: f64,
    without: f64,
    ticks_hz: f64,
}

impl WithAndWithout {
    /// What is booked on ticks.
    const fn ticks(&self) -> f64 {
        self.noise - self.without
    }
}

/// The kernel's own ticks, and those that the test adds.
fn is_tick(root: &str) -> bool {
    matches!(root, "irq:tick" | "irq:timer:perf_swevent_hrtimer")
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
        let (kind, source) = root::row_root(row.kind, text(row.source), text(row.detail));
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
    let booked =
        BookedNoise::new(names, vec![BookedNode { name: "here".to_owned(), cpus: vec![trace] }]).expect("one CPU");
    let out: Vec<bool> = booked.sources().iter().map(|name| is_tick(name)).collect();
    WithAndWithout {
        noise: booked.without(&vec![false; out.len()]).expect("it was recorded").noise_ratio(),
        without: booked.without(&out).expect("less of what was recorded").noise_ratio(),
        ticks_hz: run.growth(cpu, "interrupts/LOC") as f64 / doc.duration_ns.as_secs_f64(),
    }
}

/// Half of the ticks take half of what becalm books on ticks with them, and nothing else: the handler, the softirqs that it raises, the
/// ways in and out and what follows. So the noise falls by what the books of the ticks fall by, and what is said to stay without any
/// ticks is the same at both rates.
///
/// That half of the ticks cost half as much is for the machine to say: where others want the CPUs of the host, a rarer tick finds colder
/// caches and costs more. Where each costs the same, what `--without` says goes with half of them is what is gone.
#[test]
fn without_half_of_the_ticks_the_noise_is_what_becalm_says() {
    if !machine_has(&[Need::Root, Need::TwoCpus]) {
        return;
    }
    let cpu = allowed_cpus().expect("the kernel tells where we may run").iter().last().expect("we run somewhere");
    let record = |hz| {
        let clock = CpuClock::start(cpu, hz).expect("root may open a perf event on a CPU");
        let mut plan = RecordPlan::new();
        (plan.cpus, plan.duration) = (Some([cpu].into_iter().collect()), Some(Nanos::from_millis(500)));
        plan.policy = AHEAD_OF_PROGRAMS;
        let run = recorded(plan);
        drop(clock);
        with_and_without(&run, cpu)
    };
    // A neighbor on the host may slow one of the two rates only.
    attempts(3, || {
        let rounds: Vec<[WithAndWithout; 2]> = (0..ROUNDS).map(|_| ADDED_HZ.map(record)).collect();
        let median = |figure: &dyn Fn(&[WithAndWithout; 2]) -> f64| {
            let mut values: Vec<f64> = rounds.iter().map(figure).collect();
            median_mid(&mut values).expect("there were rounds")
        };
        let gone = median(&|[all, half]| all.noise - half.noise);
        let booked = median(&|[all, half]| all.ticks() - half.ticks());
        let said = median(&|[all, half]| all.ticks() * (1.0 - half.ticks_hz / all.ticks_hz));
        let stays = [0, 1].map(|rate: usize| median(&|pair| pair[rate].without));
        let dearer = median(&|[all, half]| (half.ticks() / half.ticks_hz) / (all.ticks() / all.ticks_hz));
        eprintln!(
            "with half of the ticks {:.3} % of the time is gone, by the books {:.3} %, said {:.3} %; without any {:.3} % and {:.3} % would \
             stay; a rarer tick costs {dearer:.3} times as much",
            gone * 100.0,
            booked * 100.0,
            said * 100.0,
            stays[0] * 100.0,
            stays[1] * 100.0
        );
        // A tick that waited while the host had the CPU ends that detour, which is booked on it: the rarer the ticks, the fewer.
        let host_bound = 0.25 * stays[1];
        if (stays[0] - stays[1]).abs() > 0.1 * gone + host_bound {
            return Err(format!("without ticks {stays:?} of the time would stay, which depends on the ticks"));
        }
        if (dearer - 1.0).abs() < 0.05 && (said - gone).abs() > 0.15 * gone + host_bound {
            return Err(format!("said {:.3} times what is gone", said / gone));
        }
        Ok(())
    });
}
