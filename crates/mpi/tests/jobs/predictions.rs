//! Predictions held against jobs, on a machine that does nothing else: where other threads wait for a CPU, the kernel gives them
//! a twentieth of the time of real-time ranks, which no prediction knows of.

use std::fs;

use becalm_testing::{Need, attempts, machine_has};

use crate::{document, job};

/// What is held together: noise slows the job down by about what is predicted, and more apart than together.
#[test]
fn hold() {
    // To make noise.
    if !machine_has(&[Need::Root]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let figure = folder.path().join("figure.svg");
    // Real-time ranks, as other programs would be noise that nobody measured.
    let mut arguments = vec!["validate", "--intervals", "1ms,10ms", "--detours", "200us", "--ratios", "none"];
    arguments.extend(["--sched", "fifo:40", "--time", "100ms", "--repetitions", "3", "--noise-time", "1s"]);
    arguments.extend(["--json", "--figure", figure.to_str().unwrap()]);
    // Another machine on the same hardware may spoil one attempt.
    attempts(3, || {
        let json = document(&job(2, &arguments));
        let errors = &json["errors"];
        let error = |pairing: &str| errors[pairing]["mean_error_ratio"].as_f64().unwrap_or(f64::INFINITY);
        let measured = |row: usize| json["rows"][row]["measured_ratio"].as_f64().unwrap_or(0.0);
        // 200us of every 1ms: a fifth of the time together, and up to two fifths apart.
        let shows = measured(0) > 1.3 && measured(2) > 1.15 && measured(0) > measured(2);
        let near = error("apart") < 0.15 && error("together") < 0.15 && errors["all"]["cells"].as_u64() == Some(4);
        // What the predictions say of messages is tested, too: messages that cost next to nothing were the answer of every fit.
        let fits = json["fit_factor"].as_f64().is_some_and(|factor| (0.02..50.0).contains(&factor))
            && json["quiet_compute_ns"].as_f64() < json["quiet_phase_ns"].as_f64()
            && !json["warnings"].to_string().contains("not tested");
        // No interval reaches below no effect, and those of 200us of every 1ms are narrow beside it.
        let low = |row: usize| json["rows"][row]["predicted_low"].as_f64().unwrap_or(0.0);
        let pairs = (0..4).all(|row| low(row) >= 1.0) && low(0) > 1.2 && low(2) > 1.1;
        if shows && near && fits && pairs && errors["all"]["telling"].as_u64() >= Some(2) {
            Ok(())
        } else {
            Err(json.to_string())
        }
    });
    assert!(fs::read_to_string(&figure).unwrap().contains("<circle"));
}

/// Twice as many ranks as CPUs, which take turns: each CPU is predicted as one rank that computes for all of its ranks.
#[test]
fn hold_where_ranks_share_cpus() {
    // To make noise.
    if !machine_has(&[Need::Root]) {
        return;
    }
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    // A grain long enough that taking turns costs little beside it, and detours that are longer than a phase.
    let mut arguments =
        vec!["validate", "--intervals", "20ms", "--detours", "4ms", "--ratios", "none", "--grain", "500us"];
    arguments.extend(["--sched", "fifo:40", "--time", "400ms", "--repetitions", "3", "--noise-time", "1s", "--json"]);
    attempts(3, || {
        let json = document(&job(2 * cpus, &arguments));
        assert_eq!(json["ranks"].as_u64(), Some(2 * cpus as u64));
        assert_eq!(json["cpus"].as_u64(), Some(cpus as u64), "{json}");
        assert_eq!(json["own_noise_ratio"].as_array().map(Vec::len), Some(cpus), "{json}");
        assert!(json["warnings"].to_string().contains("ranks share a CPU"), "{json}");
        // The ranks of a CPU one after the other.
        let (compute, phase) = (json["quiet_compute_ns"].as_f64().unwrap(), json["quiet_phase_ns"].as_f64().unwrap());
        let turns = (0.8e6..1.6e6).contains(&compute) && phase < 2.0 * compute;
        let measured = |row: usize| json["rows"][row]["measured_ratio"].as_f64().unwrap_or(0.0);
        let error = json["errors"]["all"]["mean_error_ratio"].as_f64().unwrap_or(f64::INFINITY);
        if turns && measured(0) > 1.15 && measured(1) > 1.1 && error < 0.2 { Ok(()) } else { Err(json.to_string()) }
    });
}
