//! The report of injected noise: its text and its document as snapshots, and with hostile names.

use becalm_inject::{InjectDoc, Injected, InjectedPlace, InjectionWay, NoisePlace, Shortfall, SignalCounts, Together};
use becalm_report::{Form, Report};
use becalm_testing::hostile::{STEERING, check_text, forging};
use becalm_units::{CpuId, Nanos};
use proptest::prelude::*;

/// Checks each form of a report's text.
fn check_harmless(report: &impl Report) {
    for width in [None, Some(100), Some(40)] {
        for all in [false, true] {
            check_text(&becalm_report::text(report, Form::within(width).with_all(all)));
        }
    }
}

/// Compares the text, the document and the page of a report with the snapshots of that name.
fn check(name: &str, report: &InjectDoc) {
    insta::assert_snapshot!(format!("{name}_text"), becalm_report::text(report, Form::within(Some(100))));
    insta::assert_snapshot!(format!("{name}_json"), becalm_report::json(report));
    let mut page = Vec::new();
    report.page("becalm 0.0.0").expect("it has a page").write(&mut page).unwrap();
    let page = String::from_utf8(page).unwrap();
    insta::assert_snapshot!(format!("{name}_page"), becalm_testing::page::contents(&page));
}

fn place(place: NoisePlace, missed: u64) -> InjectedPlace {
    let requested = Injected {
        count: 2_000,
        interval_ns: Some(1e6),
        interval_stddev_ns: Some(0.0),
        length_ns: Some(50_000.0),
        length_stddev_ns: Some(0.0),
        ends: Some((Nanos::new(50_000), Nanos::new(50_000))),
        ratio: Some(0.05),
    };
    InjectedPlace {
        place,
        observed: Nanos::from_secs(2),
        requested,
        delivered: Injected { count: 2_000 - missed, ..requested },
        missed,
        joined: 1,
        overtaken: missed - missed.min(1),
        late: Some((Nanos::new(900), Nanos::new(5_000))),
        shortest: Nanos::new(12_000),
        left_out: Shortfall { count: missed, time: Nanos::new(9_000) },
        merged: 1,
    }
}

fn report(way: InjectionWay, places: Vec<InjectedPlace>) -> InjectDoc {
    let noise = "periodic:interval=1ms,detour=50us".to_owned();
    let (tolls, fair_servers) = (Vec::new(), Vec::new());
    InjectDoc { noise, together: Together::Apart, coalesced: None, seed: 1, way, tolls, fair_servers, places }
}

#[test]
fn noise_on_cpus_with_one_and_with_several_exceptions() {
    let places = vec![place(NoisePlace::Cpu(CpuId::new(2)), 1), place(NoisePlace::Cpu(CpuId::new(3)), 2)];
    check("inject_cpus", &report(InjectionWay::Preempt("fifo:51".to_owned()), places));
}

#[test]
fn noise_in_threads_that_are_more_than_are_shown() {
    let way = InjectionWay::Signal(SignalCounts { processes: 2, unattended: 1, given_up: 2, without_signal: 1 });
    let threads = (0..17).map(|tid| place(NoisePlace::Thread { pid: 7, tid: 100 + tid }, 0)).collect();
    check("inject_threads", &report(way, threads));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]
    #[test]
    fn no_text_steers_the_terminal_or_forges_a_line(name in STEERING) {
        let name = forging(&name);
        let noise = InjectDoc { noise: name.clone(), ..report(InjectionWay::Preempt(name), Vec::new()) };
        check_harmless(&noise);
    }
}
