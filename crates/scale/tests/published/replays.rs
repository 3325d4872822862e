//! What replays must agree with, be the paper what it may.

use becalm_scale::collective::{Barrier, Collective};
use becalm_scale::predict::{Prediction, Question};
use becalm_scale::spec::NoiseSpec;
use becalm_scale::{Noise, NoiseTrace};
use becalm_units::Nanos;

use crate::figures::blue_gene;

/// Phases of 1 ms with the ideal collective.
fn question() -> Question {
    Question {
        grain: Nanos::from_millis(1),
        phases: 20_000,
        collective: Collective::Ideal,
        network: blue_gene(),
        bytes: 1,
        per_node: 1,
        synchronized: false,
        seed: 1,
        replicas: 3,
    }
}

/// Replays, order statistics and law of independent noise agree where all hold.
#[test]
fn three_ways_to_one_figure() {
    let trace = "poisson:rate=10Hz,detour=50us".parse::<NoiseSpec>().unwrap().trace(4).unwrap();
    let noise = Noise::apart("poisson", trace);
    let question = Question { phases: 50_000, replicas: 8, ..question() };
    let prediction = Prediction::new(&noise, question).unwrap();
    for ranks in [1, 4, 64, 1_024] {
        let row = prediction.row(ranks).unwrap();
        let expected = prediction.distribution().unwrap().expected_slowdown(ranks);
        let slowdown = row.slowdown.unwrap();
        let half = slowdown.high - slowdown.mean;
        assert!((slowdown.mean - expected).abs() < 3.0 * half + 1e-6, "{ranks}: {slowdown:?} {expected}");
        assert!((row.law.unwrap().slowdown_ratio / expected - 1.0).abs() < 0.03, "{ranks}: {row:?}");
    }
    // Beyond what can be replayed, order statistics answer; 2^40 in no time.
    let row = prediction.row(1 << 40).unwrap();
    assert!(row.slowdown.is_none() && row.expected_ratio.unwrap() >= 1.05);
}

/// The same numbers with any number of threads.
#[test]
fn threads_change_nothing() {
    let trace = "poisson:rate=200Hz,detour=50us".parse::<NoiseSpec>().unwrap().trace(4).unwrap();
    let noise = Noise::apart("poisson", trace);
    let question = Question { phases: 2_000, replicas: 5, ..question() };
    let row = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| Prediction::new(&noise, question).unwrap().row(4_096).unwrap())
    };
    assert_eq!(row(1), row(4));
}

#[test]
fn bad_questions_are_refused() {
    let noise = Noise::apart("silence", NoiseTrace::silent(Nanos::from_secs(1)).unwrap());
    let good = question();
    for bad in [
        Question { phases: 0, ..good },
        Question { replicas: 0, ..good },
        Question { grain: Nanos::ZERO, ..good },
        Question { per_node: 0, ..good },
    ] {
        assert!(Prediction::new(&noise, bad).is_err(), "{bad:?}");
    }
    let prediction = Prediction::new(&noise, good).unwrap();
    assert!(prediction.row(0).is_err());
    let barrier = Question { collective: Collective::Barrier(Barrier::Dissemination), ..good };
    assert!(Prediction::new(&noise, barrier).unwrap().row(1 << 40).is_err());
    let nothing = "L=0ns,o=0ns,g=0ns,G=0ns".parse().unwrap();
    let instant = Question { grain: Nanos::ZERO, network: nothing, ..barrier };
    assert!(Prediction::new(&noise, instant).unwrap().row(8).is_err());
    let nodes = Question { per_node: 3, ..good };
    // The last node may have fewer ranks.
    assert!(Prediction::new(&noise, nodes).unwrap().row(8).is_ok());
}
