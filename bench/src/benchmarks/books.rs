//! Exact accounts at scale compared with blame by removal, and inputs that used to make predictions slow: processor time of the whole
//! program, i.e. figures of one core.
//!
//! The recording is synthetic, and as large as a real one of 20 s on two busy CPUs: 600,000 detours of 60 sources.

use std::hint::black_box;
use std::process::ExitCode;
use std::time::Duration;

use crate::claims::{Claims, Figure};
use crate::effort::Effort;
use becalm_scale::Noise;
use becalm_scale::blame::{BlameWanted, blame, blame_by_removal};
use becalm_scale::books::{BookEntry, BookedNode, BookedNoise, BookedTrace};
use becalm_scale::delay::DelayTable;
use becalm_scale::placement::Placement;
use becalm_scale::predict::{Prediction, Question};
use becalm_scale::random::{Purpose, Stream};
use becalm_scale::replay::{Method, replay, replay_each};
use becalm_scale::spec::NoiseSpec;
use becalm_scale::watch::ReplayWatch;
use becalm_units::Nanos;
use rustix::time::{ClockId, clock_gettime};

const SECONDS: i64 = 20;
const CPUS: u64 = 2;
const DETOURS: usize = 300_000;
const SOURCES: u64 = 60;
const RANKS: [u64; 4] = [64, 1 << 10, 1 << 14, 1 << 20];
const WANTED: BlameWanted = BlameWanted { without: 3, detours: 10 };

/// One CPU: most detours last 1 to 4 us, a few thousand up to 1 ms. Each has one to three sources.
fn cpu(number: u64) -> BookedTrace {
    let mut stream = Stream::new(2, Purpose::Detours, number);
    let length = Nanos::from_secs(SECONDS);
    let mut starts: Vec<i64> = (0..DETOURS).map(|_| stream.below(length.get() as u64 - 200_000_000) as i64).collect();
    starts.sort_unstable();
    let (mut end, mut detours, mut entries) = (0, Vec::new(), Vec::new());
    for start in starts {
        let mut scale = 1_000;
        while scale < 100_000 && stream.below(20) == 0 {
            scale *= 10;
        }
        let duration = scale + stream.below(3 * scale as u64) as i64;
        let start = start.max(end);
        end = start + duration;
        let parts = 1 + stream.below(3) as i64;
        for _ in 0..parts {
            // A few sources have most of the detours.
            let source = (stream.below(SOURCES) * stream.below(SOURCES) / SOURCES) as u32;
            entries.push(BookEntry {
                detour: detours.len(),
                source,
                root: source,
                self_time: Nanos::new(duration / parts),
            });
        }
        detours.push((Nanos::new(start), Nanos::new(duration)));
    }
    BookedTrace::new(Nanos::ZERO, length, detours, entries, SOURCES as usize).expect("sorted and apart")
}

fn recording() -> BookedNoise {
    let names = (0..SOURCES).map(|source| format!("source {source}")).collect();
    BookedNoise::new(names, vec![BookedNode { name: "node".to_owned(), cpus: (0..CPUS).map(cpu).collect() }])
        .expect("a node")
}

fn question(phases: u64, replicas: u64) -> Question {
    Question {
        grain: Nanos::from_millis(1),
        phases,
        collective: "ideal".parse().expect("it is known"),
        network: "infiniband".parse().expect("it is known"),
        bytes: 8,
        per_node: 1,
        synchronized: false,
        seed: 1,
        replicas,
    }
}

/// Measures the processor time of all threads.
fn timed<T>(what: impl FnOnce() -> T) -> (T, Duration) {
    let now = || {
        let time = clock_gettime(ClockId::ProcessCPUTime);
        Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
    };
    let start = now();
    let value = what();
    (value, now() - start)
}

fn seconds(time: Duration) -> Figure {
    Figure::seconds(time.as_secs_f64())
}

fn rows(noise: &Noise, question: Question, ranks: &[u64]) {
    let prediction = Prediction::new(noise, question).expect("a prediction");
    for ranks in ranks {
        black_box(prediction.row(*ranks).expect("a row"));
    }
}

fn one_recording(claims: &mut Claims, effort: Effort) {
    let booked = recording();
    let out = vec![false; SOURCES as usize];
    let noise = booked.without(&out).expect("noise");
    let question = question(effort.share(10_000), 5);
    let (_, plain) = timed(|| rows(&noise, question, &RANKS));
    claims.at_most("64, 1k, 16k and 1M ranks, without blame", seconds(plain), 4.0);
    let blamed =
        |question, ranks: &[u64]| blame(&booked, question, ranks, WANTED, &out, ReplayWatch::NOBODY).expect("blame");
    let (blames, books) = timed(|| {
        rows(&noise, question, &RANKS);
        blamed(question, &RANKS)
    });
    claims.at_most("  the same with blame", seconds(books), 10.0);
    let open = blames.iter().filter_map(|blame| blame.books.as_ref()).filter(|books| {
        let lost = |replica: &becalm_scale::closed::ReplicaBooks| {
            replica.outcome.total.get() - replica.outcome.grain.get() * replica.outcome.phases as i64
        };
        books.added().get() != books.replicas.iter().map(lost).sum::<i64>()
    });
    claims.none("  books that do not add up to the added time", open.count() as u64);
    // All sources cost the same: a quick benchmark removes a few of them.
    let out: Vec<bool> = (0..SOURCES).map(|source| source >= effort.share(SOURCES)).collect();
    let (_, one) = timed(|| blame(&booked, question, &[1 << 10], WANTED, &out, ReplayWatch::NOBODY).expect("blame"));
    let (_, removal) =
        timed(|| blame_by_removal(&booked, question, &[1 << 10], 1, &out, ReplayWatch::NOBODY).expect("blame"));
    claims.state_beside("blame at 1k ranks, against each source removed once", seconds(one), seconds(removal), "");
    let few = Question { phases: 10, replicas: 1, ..question };
    let (_, short) = timed(|| blamed(few, &[64]));
    claims.at_most("blame of 10 phases at 64 ranks: tables alone", seconds(short), 2.0);
}

fn formula(text: &str) -> Noise {
    let trace = text.parse::<NoiseSpec>().expect("a formula").trace(1).expect("its detours");
    Noise::apart(text, trace)
}

/// Inputs with formerly unpredictable cost.
fn cliffs(claims: &mut Claims, effort: Effort) {
    let sparse = formula("poisson:rate=10Hz,detour=50us");
    let table = DelayTable::new(&sparse, 1, Nanos::from_millis(1)).expect("a table");
    let replay_all = |synchronized| {
        let placement = Placement { ranks: 1 << 20, per_node: 1, synchronized };
        let offsets = placement.draw(&table, 1, 0).expect("offsets");
        timed(|| black_box(replay(&table, &offsets, effort.share(10_000)).expect("a replay"))).1
    };
    let (together, apart) = (replay_all(true), replay_all(false));
    claims.at_most_times("1M ranks at one offset, against each at its own", seconds(together), seconds(apart), 1.0);

    let dense = formula("poisson:rate=18kHz,detour=50us");
    let long = DelayTable::new(&dense, 1, Nanos::from_secs(1)).expect("a table");
    let offsets = Placement { ranks: 64, per_node: 1, synchronized: false }.draw(&long, 1, 0).expect("offsets");
    let phases = effort.share(1_000);
    let delays = |method| {
        let mut delays = Vec::with_capacity(phases as usize);
        let (_, time) = timed(|| {
            replay_each(&long, &offsets, phases, method, |delay| delays.push(delay)).expect("a replay");
        });
        (delays, time)
    };
    let ((fast, chosen), (plain, slow)) = (delays(None), delays(Some(Method::Plain)));
    let what = "grains of 1 s under 18 kHz, 64 ranks, against plain";
    claims.at_most_times(what, seconds(chosen), seconds(slow), 0.05);
    claims.none("  delays that differ", plain.iter().zip(&fast).filter(|(plain, fast)| plain != fast).count() as u64);
    let in_seconds = |question: Question| Question { grain: Nanos::from_secs(1), ..question };
    let (_, all) = timed(|| rows(&dense, in_seconds(question(effort.share(10_000), 5)), &[64]));
    claims.at_most("  the same, 5 times 10,000 phases", seconds(all), 1.0);
    let barrier = Question { collective: "barrier".parse().expect("it is known"), ..question(phases, 1) };
    let (_, time) = timed(|| rows(&dense, in_seconds(barrier), &[1 << 10]));
    let (_, short) = timed(|| rows(&dense, barrier, &[1 << 10]));
    claims.at_most_times("  1,000 barriers of 1k ranks, against grains of 1 ms", seconds(time), seconds(short), 3.0);
}

pub fn run() -> ExitCode {
    let effort = Effort::from_arguments();
    let mut claims = Claims::begin("Books: 600,000 detours of 60 sources, 10,000 phases, 5 replicas, one core", effort);
    one_recording(&mut claims, effort);
    cliffs(&mut claims, effort);
    claims.end()
}
