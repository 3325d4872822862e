//! becalm beside rtla and cyclictest, under noise that was planted: `compare` shows no difference where they measure the same, one
//! where the noise is another, and refuses what is not the same.

use std::ffi::OsStr;
use std::path::PathBuf;

use becalm_lab::Outcome;
use becalm_testing::attempts;
use serde_json::Value;

use crate::guests::{Lab, json, tell};
use crate::recording::each;

/// How long the detours are that both scenarios plant, in nanoseconds.
const PLANTED_NS: f64 = 20e6;

/// By which factor numbers of detours may differ from how many were planted: the emulator adds gaps of its own.
const COUNTS_AGREE: f64 = 1.3;

/// By which factor their median may differ: a detour lasts longer when the emulator gets no time within it.
const LENGTHS_AGREE: f64 = 1.25;

/// How often a guest is booted until figures hold that its machine can spoil.
const ATTEMPTS: u32 = 3;

/// Two series beside each other, as `becalm compare --json` has them.
struct Pair(Value);

impl Pair {
    /// The pair whose series are called so.
    fn named(comparison: &Value, series: &str) -> Self {
        let pair = each(comparison, "pairs").find(|pair| pair["series"] == series);
        Self(pair.unwrap_or_else(|| panic!("no pair '{series}' in {comparison}")).clone())
    }

    /// A figure of both sides.
    fn figures(&self, figure: &str) -> [f64; 2] {
        let row = each(&self.0, "figures").find(|row| row["figure"] == figure);
        let row = row.unwrap_or_else(|| panic!("no figure '{figure}' in {}", self.0));
        ["a", "b"].map(|side| row[side].as_f64().unwrap_or_else(|| panic!("{side} has no {figure}: {}", self.0)))
    }

    /// What was tested of a figure: the lower and the upper end of the interval of B / A, and whether a difference is shown.
    fn tested(&self, figure: &str) -> Result<(f64, f64, bool), String> {
        let row = self.0["tested"].as_array().into_iter().flatten().find(|row| row["figure"] == figure);
        let row = row.ok_or_else(|| format!("{figure} is not tested: {}", self.0["untested"]))?;
        let (low, high) = (row["low"].as_f64(), row["high"].as_f64());
        Ok((low.unwrap_or(0.0), high.unwrap_or(f64::INFINITY), is_difference(row)))
    }

    /// The figures of which a difference is shown.
    fn differences(&self) -> Vec<String> {
        each(&self.0, "tested").filter(|row| is_difference(row)).map(Value::to_string).collect()
    }
}

fn is_difference(row: &Value) -> bool {
    let verdict = row["verdict"].as_str().expect("what was tested has a verdict");
    ["higher", "lower", "differs"].contains(&verdict)
}

fn ensure(holds: bool, what: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(what()) }
}

/// Two positive numbers are no farther apart than by a factor.
fn is_within(factor: f64, a: f64, b: f64) -> bool {
    (a / b).ln().abs() <= factor.ln()
}

/// How many detours were planted a second.
fn planted_hz(outcome: &Outcome, name: &str) -> f64 {
    let planted = json(&outcome.path(name));
    let cpu = &planted["cpus"][0];
    let (count, observed) = (cpu["delivered"]["count"].as_f64(), cpu["observed_ns"].as_f64());
    count.zip(observed).map_or_else(|| panic!("no count and no time: {planted}"), |(count, ns)| count / ns * 1e9)
}

/// Stores what another program wrote as becalm has it.
fn imported(lab: &Lab, outcome: &Outcome, name: &str) -> PathBuf {
    let (from, to) = (outcome.path(name), outcome.path(&format!("{name}.becalm")));
    let output = lab.answer(&["import".as_ref(), from.as_ref(), "-o".as_ref(), to.as_ref()]);
    assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
    to
}

/// Compares runs, one a side or several, in lengths from `least` on.
fn compared(lab: &Lab, a: &[&PathBuf], b: &[&PathBuf], least: &str) -> Value {
    let mut arguments: Vec<&OsStr> = vec!["compare".as_ref(), "--min-length".as_ref(), least.as_ref()];
    arguments.extend(a.iter().map(|path| path.as_os_str()));
    arguments.push("--".as_ref());
    arguments.extend(b.iter().map(|path| path.as_os_str()));
    lab.ask(&arguments)
}

#[test]
fn osnoise_and_becalm_find_the_same_planted_noise() {
    let Some(lab) = Lab::open() else { return };
    attempts(ATTEMPTS, || the_same_noise(&lab, &lab.run("beside")));
}

/// In both turns the two agree on how many detours were planted and how long they were, and tell them from longer ones.
fn the_same_noise(lab: &Lab, outcome: &Outcome) -> Result<(), String> {
    // For how long each looked, and from which length on lengths are held against each other.
    const SECONDS: f64 = 5.0;
    const LEAST: &str = "15ms";
    let wanted = SECONDS * planted_hz(outcome, "planted_20ms.json");
    let osnoise = [1, 2].map(|turn| imported(lab, outcome, &format!("osnoise_{turn}")));
    let becalm = [1, 2].map(|turn| outcome.path(&format!("becalm_{turn}.becalm")));
    let longer = outcome.path("longer.becalm");
    let pair = |a: &PathBuf, b: &PathBuf| Pair::named(&compared(lab, &[a], &[b], LEAST), "CPU 1");
    // A machine that is busier for a while makes detours longer indeed, and spoils one of the four.
    let mut differences = Vec::new();
    for (a, b) in osnoise.iter().flat_map(|a| becalm.iter().map(move |b| (a, b))) {
        let same = pair(a, b);
        let (counts, medians) = (same.figures("count"), same.figures("median_ns"));
        let (low, high, _) = same.tested("median_ns")?;
        tell(&format!(
            "beside: {wanted:.0} planted, osnoise {} of {:.1} ms, becalm {} of {:.1} ms: {:+.0} % to {:+.0} %",
            counts[0],
            medians[0] / 1e6,
            counts[1],
            medians[1] / 1e6,
            (low - 1.0) * 100.0,
            (high - 1.0) * 100.0
        ));
        for (count, median) in counts.into_iter().zip(medians) {
            ensure(is_within(COUNTS_AGREE, count, wanted), || format!("{wanted} planted, found {counts:?}"))?;
            ensure(is_within(LENGTHS_AGREE, median, PLANTED_NS), || format!("lengths of {medians:?} ns"))?;
        }
        let (_, _, rates_differ) = same.tested("rate_hz")?;
        ensure(!rates_differ, || format!("as many of both differ: {}", same.0))?;
        differences.push(same.differences());
    }
    ensure(differences.iter().any(Vec::is_empty), || format!("they differ at all times: {differences:?}"))?;
    for other in osnoise.iter().map(|a| pair(a, &longer)) {
        let (low, _, lengths_differ) = other.tested("median_ns")?;
        ensure(lengths_differ && low > LENGTHS_AGREE, || format!("longer ones are not told apart: {}", other.0))?;
        let (_, _, rates_differ) = other.tested("rate_hz")?;
        ensure(!rates_differ, || format!("as many that are longer differ: {}", other.0))?;
    }
    Ok(())
}

#[test]
fn timerlat_and_cyclictest_wake_as_late_and_no_such_thing_is_lost_time() {
    let Some(lab) = Lab::open() else { return };
    attempts(ATTEMPTS, || as_late(&lab, &lab.run("wakeups")));
}

/// A thread below the noise wakes late once a detour, by what is left of it, in both programs; the timer's interrupt and a thread above the
/// noise do not. becalm holds no such latency against time that was lost.
fn as_late(lab: &Lab, outcome: &Outcome) -> Result<(), String> {
    const SECONDS: f64 = 3.0;
    const LEAST: &str = "10ms";
    const THREADS: &str = "CPU 1 thread, thread 0 on CPU 1";
    let import = |name: &str| imported(lab, outcome, name);
    let cyclictest = [1, 2].map(|turn| import(&format!("cyclictest_{turn}")));
    let timerlat = [1, 2].map(|turn| import(&format!("timerlat_{turn}")));
    refused(lab, &[cyclictest[0].clone(), timerlat[0].clone()], &outcome.path("lost.becalm"));

    let wanted = SECONDS * planted_hz(outcome, "planted.json");
    for turn in 0..2 {
        let pair = Pair::named(&compared(lab, &[&timerlat[turn]], &[&cyclictest[turn]], LEAST), THREADS);
        let counts = pair.figures("count");
        // Sides without any have no median.
        let all_there = counts.into_iter().all(|count| is_within(COUNTS_AGREE, count, wanted));
        ensure(all_there, || format!("{wanted} planted, late {counts:?}"))?;
        let medians = pair.figures("median_ns");
        tell(&format!(
            "wakeups: {wanted:.0} planted, late in timerlat {} by {:.1} ms, in cyclictest {} by {:.1} ms",
            counts[0],
            medians[0] / 1e6,
            counts[1],
            medians[1] / 1e6
        ));
        for median in medians {
            ensure(is_within(LENGTHS_AGREE, median, PLANTED_NS), || format!("late by {medians:?} ns"))?;
        }
    }
    let [timerlat, cyclictest] = [&timerlat, &cyclictest].map(|[first, second]| [first, second]);
    let both = compared(lab, &timerlat, &cyclictest, LEAST);
    let pair = Pair::named(&both, THREADS);
    ensure(pair.differences().is_empty(), || format!("they differ: {:?}", pair.differences()))?;
    pair.tested("median_ns")?;
    assert!(both["single"].to_string().contains("CPU 1 irq"), "cyclictest has no interrupt: {}", both["single"]);

    let turns = compared(lab, &timerlat[..1], &timerlat[1..], LEAST);
    let (irqs, threads) = (Pair::named(&turns, "CPU 1 irq"), Pair::named(&turns, "CPU 1 thread"));
    let [lower, higher] =
        Pair::named(&compared(lab, &cyclictest[..1], &[&import("above")], LEAST), "thread 0 on CPU 1").figures("count");
    let (irqs, threads) = (irqs.figures("count"), threads.figures("count"));
    tell(&format!(
        "wakeups: of interrupts {irqs:?}, of threads {threads:?} late; below the noise {lower}, above it {higher}"
    ));
    ensure(irqs[0] < threads[0] / 2.0 && irqs[1] < threads[1] / 2.0, || format!("interrupts came late: {irqs:?}"))?;
    ensure(higher < lower / 2.0, || format!("above the noise {higher} were late, below it {lower}"))
}

/// Latencies are refused beside lost time, whichever comes first, and the reason is said.
fn refused(lab: &Lab, latencies: &[PathBuf], lost: &PathBuf) {
    for late in latencies {
        for [a, b] in [[late, lost], [lost, late]] {
            let output = lab.answer(&["compare".as_ref(), a.as_ref(), b.as_ref()]);
            let said = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(2), "{said}");
            for part in ["wake-up latencies", "time taken from a loop", "they are not the same, and are not compared"] {
                assert!(said.contains(part), "{said}");
            }
        }
    }
}
