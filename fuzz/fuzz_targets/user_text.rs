//! Any text as each kind of user input, and as a table: accepted input is printed in an accepted form, formulas of noise are noise or are
//! refused, the costs of a tick from two tables have a report, and Slurm jobs have sizes.
//!
//! A line `==` separates the tables of times and of direct costs.
#![no_main]

use std::fmt::{Debug, Display};
use std::str::FromStr;

use becalm_cost::analysis::tick::{Analysis, TableFile, read_tables};
use becalm_cost::report::TickReport;
use becalm_fleet::sacct;
use becalm_fuzz::truths::check_report;
use becalm_linux::sched::Policy;
use becalm_measure::Threshold;
use becalm_measure::work::Body;
use becalm_model::Kind;
use becalm_research::study::Configuration;
use becalm_scale::collective::Collective;
use becalm_scale::network::Network;
use becalm_scale::spec::NoiseSpec;
use becalm_tune::format::Format;
use becalm_tune::{Family, Profile};
use becalm_units::{Count, CpuList, Nanos, SettingLine, Share};
use becalm_watch::{Hosts, Reading, WatchConfig, read_request};
use libfuzzer_sys::fuzz_target;

/// Parses a word of the command line.
fn word<T>(text: &str) -> Option<T>
where
    T: FromStr + Display + Debug,
    T::Err: Display + Debug,
{
    match text.parse::<T>() {
        Ok(value) => {
            // Parsing rounds times; the printed form is accepted again and then printed identically.
            let printed = value.to_string();
            let again = printed.parse::<T>().unwrap_or_else(|error| panic!("'{printed}' was printed: {error}"));
            assert_eq!(again.to_string(), printed, "printed from {value:?}");
            Some(value)
        }
        Err(error) => {
            assert!(!error.to_string().is_empty(), "an error without words");
            None
        }
    }
}

fn words(text: &str) {
    if let Some(cpus) = word::<CpuList>(text) {
        // The mask of a very high CPU is long, so print only those of plausible machines.
        if cpus.iter().last().is_none_or(|cpu| cpu.get() < 1 << 13) {
            assert_eq!(CpuList::from_mask(&cpus.to_mask()), Ok(cpus));
        }
    }
    let _ = CpuList::from_mask(text);
    if let Ok(share) = text.parse::<Share>() {
        // Printing rounds a percentage once more.
        let again = share.to_string().parse::<Share>().expect("what is printed is a share").ratio();
        let close = (again - share.ratio()).abs() <= share.ratio() * 4.0 * f64::EPSILON;
        assert!((0.0..=1.0).contains(&share.ratio()) && close, "{share:?}");
    }
    let _ = (word::<Nanos>(text), text.parse::<Count>(), word::<Policy>(text), word::<Threshold>(text));
    let _ = (word::<Collective>(text), word::<Network>(text), word::<Body>(text), word::<Kind>(text));
    let _ = (word::<Family>(text), word::<Profile>(text), word::<Format>(text), word::<Configuration>(text));
}

/// A settings file: its sections and keys are parts of the line, and stay the same.
fn settings(text: &str) {
    for line in text.lines() {
        match SettingLine::parse(line) {
            Ok(SettingLine::Nothing) => {}
            Ok(SettingLine::Section(name)) => assert!(line.contains(name) && !name.trim().is_empty()),
            Ok(SettingLine::Setting { key, value }) => assert!(line.contains(key) && line.contains(value)),
            Err(error) => assert!(!error.contains('\n'), "an error of several lines"),
        }
    }
}

/// A trigger, a configuration and a request of `becalm watch`.
fn watched(text: &str) {
    if let Ok(trigger) = text.parse::<becalm_watch::Trigger>() {
        assert!(trigger.to_string().parse::<becalm_watch::Trigger>().is_ok(), "{trigger} was printed");
    }
    if let Err(error) = WatchConfig::parse(text).and_then(WatchConfig::settle) {
        assert!(!error.to_string().contains('\n'), "an error of several lines");
    }
    let whole = read_request(text.as_bytes(), &Hosts::all());
    assert!(whole != Reading::More || text.len() < 8 << 10, "a request without an end");
}

fn noise(text: &str) {
    let Some(spec) = word::<NoiseSpec>(text) else { return };
    if let Ok(trace) = spec.trace(1) {
        let noise: i128 = trace.detours().map(|(_, duration)| i128::from(duration.get())).sum();
        assert!(noise < i128::from(trace.length().get()), "{spec} is nothing but noise");
    }
}

fn tables(text: &str) {
    let (times, direct) = text.split_once("\n==\n").unwrap_or((text, "processor,trap_us,handler_us\nA,1,2\n"));
    let file = |name, text| TableFile { name, text };
    match read_tables(file("times.csv", times), file("direct.csv", direct), None) {
        Ok(processors) => check_report(&TickReport::from_tables(processors.iter().map(Analysis::new).collect())),
        Err(error) => assert!(!error.to_string().is_empty(), "an error without words"),
    }
}

/// Slurm's accounting: node-hours are numbers, and sizes are ascending.
fn accounting(text: &str) {
    match sacct::parse(text, 64) {
        Ok(jobs) => {
            assert!(jobs.sizes.is_sorted_by(|a, b| a.ranks < b.ranks) && jobs.per_year() >= 0.0, "{jobs:?}");
            assert!(jobs.sizes.iter().all(|size| size.node_hours.is_finite() && size.node_hours > 0.0), "{jobs:?}");
        }
        Err(error) => assert!(!error.is_empty(), "an error without words"),
    }
}

fuzz_target!(|text: &str| {
    words(text);
    watched(text);
    settings(text);
    noise(text);
    tables(text);
    accounting(text);
});
