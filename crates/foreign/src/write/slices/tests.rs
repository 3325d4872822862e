use super::*;
use becalm_model::node::CpuDoc;
use becalm_model::{Label, NodeDoc};
use becalm_units::{CpuId, Nanos};
use proptest::prelude::*;

/// A node with CPU 0, whose origin is so many nanoseconds after 1970.
pub fn node(name: &str, origin: i128) -> NodeDoc {
    let text = r#"{"schema": "becalm.run/1", "node": "", "program": "", "origin": "1970-01-01T00:00:00Z", "ended": null,
        "machine": {"kernel": "", "processor": "", "hypervisor": null, "architecture": "", "online": "", "isolated": "",
                    "nohz_full": "", "command_line": ""},
        "clock": {"counter": "tsc", "origin_ticks": 77, "rate_hz": 2.5e9, "rate_error_ratio": 0.0, "resolution_ns": 0,
                  "cross_cpu_ns": null, "backwards": 0},
        "settings": {"sched": "", "threshold": "", "duration_ns": null, "command": []},
        "rung": "tracepoints", "cpus": [], "tracing": null, "counters": [], "warnings": []}"#;
    let doc: NodeDoc = serde_json::from_str(text).unwrap();
    let origin = Some(jiff::Timestamp::from_nanosecond(origin).unwrap());
    NodeDoc { node: name.to_owned(), origin, cpus: vec![CpuDoc::new(CpuId::new(0))], ..doc }
}

pub fn detour(start: i64, duration: i64) -> Detour {
    Detour { cpu: CpuId::new(0), start: Nanos::new(start), duration: Nanos::new(duration), incomplete: false }
}

pub fn activity(start: i64, self_time: i64, kind: Kind) -> Activity {
    let (start, self_time) = (Nanos::new(start), Nanos::new(self_time));
    let (source, detail) = (Label::EMPTY, Label::EMPTY);
    Activity { cpu: CpuId::new(0), detour: 0, start, self_time, kind, source, detail }
}

fn found(detour: &Detour, activities: &[Activity]) -> Vec<(usize, i64, i64)> {
    let mut into = Vec::new();
    slices(detour, activities, &mut into);
    into.iter().map(|slice| (slice.activity, slice.begin, slice.end)).collect()
}

#[test]
fn what_interrupts_lies_within_what_it_interrupts() {
    // The way in until 100, a softirq from there to 950, in it an irq from 200 to 500, in that an nmi from 300 to 350; the way out.
    let activities = [
        activity(0, 100, Kind::Edge),
        activity(100, 550, Kind::Softirq),
        activity(200, 250, Kind::Irq),
        activity(300, 50, Kind::Nmi),
        activity(950, 50, Kind::Edge),
    ];
    let expected = [(0, 0, 100), (1, 100, 950), (2, 200, 500), (3, 300, 350), (4, 950, 1_000)];
    assert_eq!(found(&detour(0, 1_000), &activities), expected);
}

#[test]
fn what_took_no_time_and_what_goes_over_the_end() {
    let activities = [activity(10, 0, Kind::Irq), activity(10, 30, Kind::Softirq), activity(35, 20, Kind::Edge)];
    assert_eq!(found(&detour(10, 40), &activities), [(1, 10, 50), (0, 10, 10), (2, 35, 50)]);
    let activities = [activity(0, 30, Kind::Edge), activity(10, 5, Kind::Irq), activity(15, 5, Kind::Unseen)];
    assert_eq!(found(&detour(0, 40), &activities), [(0, 0, 10), (1, 10, 15), (2, 15, 20)]);
    assert_eq!(found(&detour(10, 40), &[]), []);
    assert_eq!(found(&detour(10, 0), &[activity(5, 9, Kind::Task)]), [(0, 10, 10)]);
}

pub fn any_activities() -> impl Strategy<Value = Vec<Activity>> {
    let one = (-50_i64..1_100, 0_i64..400, 0_usize..Kind::ALL.len());
    let one = one.prop_map(|(start, self_time, kind)| activity(start, self_time, Kind::ALL[kind]));
    prop::collection::vec(one, 0..30)
}

proptest! {
    #[test]
    fn slices_always_nest(activities in any_activities(), duration in 0_i64..1_000) {
        let mut into = Vec::new();
        slices(&detour(0, duration), &activities, &mut into);
        prop_assert_eq!(into.len(), activities.len());
        prop_assert!(into.is_sorted_by_key(|slice| slice.begin));
        for (at, slice) in into.iter().enumerate() {
            prop_assert!(0 <= slice.begin && slice.begin <= slice.end && slice.end <= duration);
            for later in &into[at + 1..] {
                prop_assert!(later.begin >= slice.end || later.end <= slice.end, "{:?} {:?}", slice, later);
            }
            // Without what lies within it, it is no longer than its own time.
            let own = slice.end - slice.begin - covered(slice, &into[at + 1..]);
            prop_assert!(own <= activities[slice.activity].self_time.get(), "{:?}", slice);
        }
    }

    /// Of books that close and activities that follow each other or interrupt, slices have exactly the self times.
    #[test]
    fn self_times_are_what_slices_have_alone(cuts in prop::collection::vec((1_i64..200, 0_usize..3), 1..20)) {
        let (mut activities, mut time): (Vec<Activity>, i64) = (Vec::new(), 0);
        let kinds = [Kind::Softirq, Kind::Irq, Kind::Nmi];
        for (length, depth) in cuts {
            // A softirq; or one with an interrupt in its middle; or that with an nmi in its own.
            let base = time;
            for level in 0..=depth as i64 {
                let own = if level < depth as i64 { 2 * length } else { length };
                activities.push(activity(base + level * length, own, kinds[level as usize]));
                time += own;
            }
        }
        let mut into = Vec::new();
        slices(&detour(0, time), &activities, &mut into);
        for (at, slice) in into.iter().enumerate() {
            let own = slice.end - slice.begin - covered(slice, &into[at + 1..]);
            prop_assert_eq!(own, activities[slice.activity].self_time.get());
        }
    }
}

/// How much of a slice the outermost ones within it take.
fn covered(slice: &Slice, later: &[Slice]) -> i64 {
    let (mut until, mut sum) = (slice.begin, 0);
    for inner in later.iter().filter(|inner| inner.begin < slice.end) {
        sum += (inner.end - inner.begin.max(until)).max(0);
        until = until.max(inner.end);
    }
    sum
}
