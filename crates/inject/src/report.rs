//! Injected noise, delivered against requested: `becalm.inject/1`, and as tables.

use becalm_report::Report;
use becalm_report::Value;
use becalm_report::catalogue;
use becalm_report::form::field::{Field, Object, fields};
use becalm_report::form::figure::{Ratio, Time};
use becalm_report::form::section::{Block, Page, Section};
use becalm_report::form::sheet::Form;
use becalm_report::form::table::Table;
use becalm_units::plural;
use becalm_units::{CpuId, CpuList, Named, Nanos};
use serde::Serialize;

use crate::document::{
    FairServerDoc, InjectDoc, Injected, InjectedPlace, InjectionWay, NoisePlace, SharedToll, Shortfall, SignalCounts,
    Together,
};
use crate::total::{exceptions, together};

fields! {
    FIGURES, figures: Injected {
        COUNT = "count", "detours", |row| row.count;
        INTERVAL_NS = catalogue::INTERVAL_NS, |row| row.interval_ns.and_then(Time::rounded);
        INTERVAL_STDDEV_NS = "interval_stddev_ns", "stddev", |row| row.interval_stddev_ns.and_then(Time::rounded);
        LENGTH_NS = catalogue::LENGTH_NS, |row| row.length_ns.and_then(Time::rounded);
        LENGTH_STDDEV_NS = "length_stddev_ns", "stddev", |row| row.length_stddev_ns.and_then(Time::rounded);
        LENGTH_MIN_NS = "length_min_ns", "min", |row| row.ends.map(|ends| ends.0);
        LENGTH_MAX_NS = "length_max_ns", "max", |row| row.ends.map(|ends| ends.1);
        RATIO = "ratio", "noise", |row| row.ratio.map(Ratio);
    }
}

/// Maximum number of threads in the table.
const SHOWN: usize = 16;

/// A line of the table: requested or delivered noise of a CPU or a thread.
struct InjectLine {
    place: Option<NoisePlace>,
    what: &'static str,
    figures: Injected,
    late: Option<(Nanos, Nanos)>,
}

fields! {
    LINE, line: InjectLine {
        CPU = catalogue::CPU, place;
        THREAD = "thread", "thread", place;
        WHAT = "what", "", |line| line.what;
        COUNT = figures::COUNT => |line| &line.figures;
        INTERVAL_NS = figures::INTERVAL_NS => |line| &line.figures;
        INTERVAL_STDDEV_NS = figures::INTERVAL_STDDEV_NS => |line| &line.figures;
        LENGTH_NS = figures::LENGTH_NS => |line| &line.figures;
        LENGTH_STDDEV_NS = figures::LENGTH_STDDEV_NS => |line| &line.figures;
        LENGTH_MIN_NS = figures::LENGTH_MIN_NS => |line| &line.figures;
        LENGTH_MAX_NS = figures::LENGTH_MAX_NS => |line| &line.figures;
        RATIO = figures::RATIO => |line| &line.figures;
        LATE_MEDIAN_NS = "late_median_ns", "late", |line| line.late.map(|late| late.0);
        LATE_P99_NS = "late_p99_ns", "late p99", |line| line.late.map(|late| late.1);
    }
}

fn place(line: &InjectLine) -> Value {
    match line.place {
        None => Value::Text(String::new()),
        Some(NoisePlace::Cpu(cpu)) => Value::Number(cpu.get().into()),
        Some(NoisePlace::Thread { tid, .. }) => Value::Number(tid.into()),
    }
}

impl Report for InjectDoc {
    fn schema(&self) -> &'static str {
        "becalm.inject/1"
    }

    fn document(&self) -> impl Serialize {
        document(self)
    }

    fn view(&self, _: Form) -> Page {
        let mut blocks = vec![Block::entry("  ", heading(self))];
        blocks.extend(self.tolls.iter().filter_map(toll));
        blocks.extend([Block::gap(), Block::Table(table(self))]);
        blocks.extend(remarks(self).into_iter().map(Block::warning));
        let sections = vec![Section::new("noise", "Noise", "Noise requested and delivered", blocks)];
        Page { title: "Injected noise".to_owned(), subtitle: self.noise.clone(), sections, foot: Vec::new() }
    }
}

#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
struct InjectedPlaceDoc {
    #[serde(skip_serializing_if = "Option::is_none")]
    cpu: Option<CpuId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pid: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tid: Option<u32>,
    observed_ns: i64,
    requested: Object<Injected>,
    delivered: Object<Injected>,
    missed: u64,
    joined: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    overtaken: Option<u64>,
    late_median_ns: Option<i64>,
    late_p99_ns: Option<i64>,
    shortest_ns: i64,
    left_out: u64,
    left_out_ns: i64,
    merged: usize,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub(crate) struct InjectDocument<'a> {
    noise: &'a str,
    synchronized: bool,
    together: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    coalesced_ns: Option<i64>,
    seed: u64,
    way: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    class: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    packets: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    processes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    unattended_threads: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    signals_given_up: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    processes_without_signal: Option<u64>,
    requested: Object<Injected>,
    delivered: Object<Injected>,
    tolls: Vec<TollDoc<'a>>,
    fair_servers: Vec<FairServerObject<'a>>,
    cpus: Vec<InjectedPlaceDoc>,
    threads: Vec<InjectedPlaceDoc>,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
struct TollDoc<'a> {
    measured_on: CpuId,
    cpus: &'a CpuList,
    shortest_ns: i64,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
struct FairServerObject<'a> {
    cpus: &'a CpuList,
    runtime_ns: i64,
    period_ns: i64,
    assumed: bool,
}

impl<'a> TollDoc<'a> {
    fn new(SharedToll { measured_on, cpus, shortest }: &'a SharedToll) -> Self {
        Self { measured_on: *measured_on, cpus, shortest_ns: shortest.get() }
    }
}

impl<'a> FairServerObject<'a> {
    fn new(FairServerDoc { cpus, runtime, period, assumed }: &'a FairServerDoc) -> Self {
        Self { cpus, runtime_ns: runtime.get(), period_ns: period.get(), assumed: *assumed }
    }
}

/// The noise requested of all places together, and the noise delivered.
fn all_places(report: &InjectDoc) -> [Injected; 2] {
    let places = &report.places;
    [together(places.iter().map(|place| &place.requested)), together(places.iter().map(|place| &place.delivered))]
}

/// The report as the document `becalm.inject/1`.
fn document(report: &InjectDoc) -> InjectDocument<'_> {
    let [requested, delivered] = all_places(report);
    let is_cpu = |place: &&InjectedPlace| matches!(place.place, NoisePlace::Cpu(_));
    let (cpus, threads): (Vec<_>, Vec<_>) = report.places.iter().partition(is_cpu);
    let (class, signal) = match &report.way {
        InjectionWay::Preempt(class) | InjectionWay::Packets { class, .. } => (Some(class.as_str()), None),
        InjectionWay::Signal(counts) => (None, Some(*counts)),
    };
    InjectDocument {
        noise: &report.noise,
        synchronized: report.together == Together::All,
        together: report.together.name(),
        coalesced_ns: report.coalesced.map(Nanos::get),
        seed: report.seed,
        way: match &report.way {
            InjectionWay::Preempt(_) => "preempt",
            InjectionWay::Packets { .. } => "packets",
            InjectionWay::Signal(_) => "signal",
        },
        class,
        packets: match report.way {
            InjectionWay::Packets { sent, .. } => Some(sent),
            _ => None,
        },
        processes: signal.map(|counts| counts.processes),
        unattended_threads: signal.map(|counts| counts.unattended),
        signals_given_up: signal.map(|counts| counts.given_up),
        processes_without_signal: signal.map(|counts| counts.without_signal),
        requested: Object::new(&requested),
        delivered: Object::new(&delivered),
        tolls: report.tolls.iter().map(TollDoc::new).collect(),
        fair_servers: report.fair_servers.iter().map(FairServerObject::new).collect(),
        cpus: cpus.into_iter().map(document_of).collect(),
        threads: threads.into_iter().map(document_of).collect(),
    }
}

fn document_of(cpu: &InjectedPlace) -> InjectedPlaceDoc {
    let (number, pid, tid) = match cpu.place {
        NoisePlace::Cpu(number) => (Some(number), None, None),
        NoisePlace::Thread { pid, tid } => (None, Some(pid), Some(tid)),
    };
    InjectedPlaceDoc {
        cpu: number,
        pid,
        tid,
        observed_ns: cpu.observed.get(),
        requested: Object::new(&cpu.requested),
        delivered: Object::new(&cpu.delivered),
        missed: cpu.missed,
        joined: cpu.joined,
        // Not counted in threads of a program.
        overtaken: number.map(|_| cpu.overtaken),
        late_median_ns: cpu.late.map(|late| late.0.get()),
        late_p99_ns: cpu.late.map(|late| late.1.get()),
        shortest_ns: cpu.shortest.get(),
        left_out: cpu.left_out.count,
        left_out_ns: cpu.left_out.time.get(),
        merged: cpu.merged,
    }
}

/// One sentence about the noise.
fn heading(report: &InjectDoc) -> String {
    let (each, way) = match &report.way {
        InjectionWay::Preempt(class) => ("CPU", format!("by threads of class {class}")),
        InjectionWay::Packets { class, sent } => {
            let packets = plural(*sent, "packet", "packets");
            ("CPU", format!("by {sent} {packets} over loopback, of threads of class {class}"))
        }
        InjectionWay::Signal(SignalCounts { processes, .. }) => {
            ("thread", format!("by signals in {processes} {}", plural(*processes, "process", "processes")))
        }
    };
    let seed = report.seed;
    let places = match report.together {
        _ if let Some(window) = report.coalesced => {
            format!("each {each} from a random place, seed {seed}, coalesced in windows of {window}")
        }
        Together::All => format!("each {each} at the same instants"),
        Together::Node => format!("each {each} of a node at the same instants, nodes apart, seed {seed}"),
        Together::Apart => format!("each {each} from a random place, seed {seed}"),
    };
    format!("{}, {places}, {way}", report.noise)
}

/// The lowest cost of a detour. `None` for a single CPU, which needs no name.
fn toll(SharedToll { measured_on, cpus, shortest }: &SharedToll) -> Option<Block> {
    let text = format!(
        "what a detour costs was measured on CPU {measured_on} for CPUs {cpus}, which are alike: {shortest} at least"
    );
    (cpus.len() > 1).then_some(Block::Text(text))
}

/// Two lines per CPU or thread.
fn table(report: &InjectDoc) -> Table {
    let is_signal = matches!(report.way, InjectionWay::Signal(_));
    let unwanted = if is_signal { line::CPU.name } else { line::THREAD.name };
    let fields: Vec<&Field<InjectLine>> = LINE.iter().filter(|field| field.name != unwanted).collect();
    let mut table = Table::new(&fields).captioned("Noise requested and delivered");
    table.sorts = false;
    let mut row = |place, what, figures, late| table.row(&fields, &InjectLine { place, what, figures, late });
    let shown = if is_signal { report.places.len().min(SHOWN) } else { report.places.len() };
    for place in &report.places[..shown] {
        row(Some(place.place), "requested", place.requested, None);
        row(None, "delivered", place.delivered, place.late);
    }
    if shown < report.places.len() {
        let [requested, delivered] = all_places(report);
        row(None, "all requested", requested, None);
        row(None, "all delivered", delivered, None);
    }
    table
}

/// Deviations from the request.
fn remarks(report: &InjectDoc) -> Vec<String> {
    let mut remarks = Vec::new();
    let mut say = |count: u64, text: String| {
        if count > 0 {
            remarks.push(text);
        }
    };
    let hidden = report.places.len().saturating_sub(SHOWN);
    if let InjectionWay::Signal(SignalCounts { unattended, given_up, without_signal, .. }) = report.way {
        let hidden = hidden as u64;
        let more = plural(hidden, "more thread is", "more threads are");
        say(hidden, format!("{hidden} {more} in the last two lines and in --json"));
        let threads = plural(unattended, "thread", "threads");
        say(unattended, format!("{unattended} {threads} had no noise: too many at a time, or no timer was left"));
        let times = plural(given_up, "time", "times");
        say(
            given_up,
            format!("{given_up} {times} the program started to use the signal of the noise, which switched to another"),
        );
        let (processes, they) =
            (plural(without_signal, "process", "processes"), plural(without_signal, "it uses", "they use"));
        say(
            without_signal,
            format!(
                "in {without_signal} {processes} the noise ended early or never started: {they} all real-time signals"
            ),
        );
    }
    match &report.way {
        InjectionWay::Preempt(_) | InjectionWay::Packets { .. } => {
            for place in &report.places {
                let NoisePlace::Cpu(cpu) = place.place else { continue };
                let missed = "the CPU could not be had in time";
                say_of(&mut say, &format!("CPU {cpu}"), missed, "of every lap ", place);
                let (times, taken) = (place.overtaken, overtaken(report, cpu));
                let many = plural(times, "time", "times");
                say(
                    times,
                    format!("CPU {cpu}: {times} {many} the kernel took the CPU from a detour in the middle; {taken}"),
                );
            }
        }
        // One line per thread would fill a page.
        InjectionWay::Signal(_) => {
            if let Some(all) = exceptions(&report.places) {
                let missed = "their threads slept, had no CPU, or blocked the signal meanwhile";
                say_of(&mut say, "all threads", missed, "", &all);
            }
        }
    }
    remarks
}

/// Which threads run before those that make the noise.
fn overtaken(report: &InjectDoc, cpu: CpuId) -> String {
    let server = report.fair_servers.iter().find(|server| server.cpus.contains(cpu));
    let Some(FairServerDoc { runtime, period, assumed, .. }) = server else {
        return "threads of a higher class or priority come before it".to_owned();
    };
    let known = if *assumed { " unless that was changed, which debugfs does not tell" } else { "" };
    format!(
        "threads of a higher class or priority come before it, and the fair server, which runs ordinary threads for {runtime} of every \
         {period}{known} where real-time threads keep them waiting"
    )
}

/// Deviations from the request in one place.
fn say_of(say: &mut impl FnMut(u64, String), name: &str, missed: &str, lap: &str, place: &InjectedPlace) {
    let many = |count: u64, one: &str, many: &str| format!("{count} {}", plural(count, one, many));
    say(place.missed, format!("{name}: {}: {missed}", many(place.missed, "detour was missed", "detours were missed")));
    say(
        place.joined,
        format!("{name}: {} late and joined the one before", many(place.joined, "detour came", "detours came")),
    );
    let (Shortfall { count, time: sum }, shortest) = (place.left_out, place.shortest);
    say(
        count,
        match count {
            1 => format!(
                "{name}: {lap}1 detour, {sum}, is shorter than the {shortest} that one takes here, and was left out"
            ),
            _ => format!(
                "{name}: {lap}{count} detours, {sum} together, are shorter than the {shortest} that one takes here, and were left out"
            ),
        },
    );
    let merged = place.merged as u64;
    let came = many(merged, "detour came", "detours came");
    say(merged, format!("{name}: {lap}{came} too close to the one before and became one with it"));
}

#[cfg(test)]
mod tests {
    use super::*;
    use becalm_report as report;

    fn place(place: NoisePlace) -> InjectedPlace {
        let requested = Injected {
            count: 2000,
            interval_ns: Some(1e6),
            interval_stddev_ns: Some(0.0),
            length_ns: Some(50_000.0),
            length_stddev_ns: Some(0.0),
            ends: Some((Nanos::new(50_000), Nanos::new(50_000))),
            ratio: Some(0.05),
        };
        let delivered = Injected {
            count: 1999,
            interval_ns: Some(1_000_500.25),
            length_ns: Some(50_012.5),
            ends: Some((Nanos::new(49_990), Nanos::new(61_000))),
            ratio: Some(0.0499),
            ..requested
        };
        InjectedPlace {
            place,
            observed: Nanos::from_secs(2),
            requested,
            delivered,
            missed: 1,
            joined: 0,
            overtaken: 0,
            late: Some((Nanos::new(900), Nanos::new(5_000))),
            shortest: Nanos::new(12_000),
            left_out: Shortfall { count: 3, time: Nanos::new(9_000) },
            merged: 0,
        }
    }

    fn report(way: InjectionWay, places: Vec<InjectedPlace>) -> InjectDoc {
        let noise = "periodic:interval=1ms,detour=50us".to_owned();
        let (tolls, fair_servers) = (Vec::new(), Vec::new());
        InjectDoc { noise, together: Together::Apart, coalesced: None, seed: 1, way, tolls, fair_servers, places }
    }

    fn text(report: &InjectDoc) -> String {
        report::text(report, Form::default())
    }

    #[test]
    fn a_cpu_has_two_lines_and_what_was_not_as_asked_for() {
        let report = report(InjectionWay::Preempt("fifo:51".to_owned()), vec![place(NoisePlace::Cpu(CpuId::new(3)))]);
        assert_eq!(text(&report), CPU_TEXT);
        let document: serde_json::Value = serde_json::from_str(&report::json(&report)).unwrap();
        assert_eq!(document["schema"], "becalm.inject/1");
        assert_eq!((&document["way"], &document["class"]), (&"preempt".into(), &"fifo:51".into()));
        assert_eq!(document["cpus"][0]["cpu"], 3);
        assert_eq!(document["cpus"][0]["delivered"]["count"], 1999);
        assert_eq!(document["requested"]["ratio"], 0.05);
        assert!(document["threads"].as_array().unwrap().is_empty() && document.get("processes").is_none());
    }

    #[test]
    fn shared_tolls_and_who_overtook_the_noise_are_told() {
        let cpu = |cpu| InjectedPlace { overtaken: u64::from(cpu), ..place(NoisePlace::Cpu(CpuId::new(cpu))) };
        let mut report = report(InjectionWay::Preempt("fifo:51".to_owned()), vec![cpu(0), cpu(1), cpu(2)]);
        let list = |text: &str| text.parse::<CpuList>().unwrap();
        let toll = |on, cpus| SharedToll { measured_on: CpuId::new(on), cpus: list(cpus), shortest: Nanos::new(9_000) };
        report.tolls = vec![toll(0, "0-1"), toll(2, "2")];
        let (runtime, period) = (Nanos::from_millis(50), Nanos::from_secs(1));
        report.fair_servers = vec![FairServerDoc { cpus: list("1"), runtime, period, assumed: true }];
        report.together = Together::Node;
        let text = text(&report).split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(text.contains("each CPU of a node at the same instants, nodes apart, seed 1"), "{text}");
        assert!(
            text.contains("measured on CPU 0 for CPUs 0-1, which are alike: 9us at least")
                && !text.contains("on CPU 2"),
            "{text}"
        );
        assert!(
            text.contains("! CPU 1: 1 time the kernel took the CPU from a detour")
                && text.contains("50ms of every 1s unless"),
            "{text}"
        );
        assert!(text.contains("! CPU 2: 2 times") && !text.contains("! CPU 0: 0 times"), "{text}");
        let document: serde_json::Value = serde_json::from_str(&report::json(&report)).unwrap();
        assert_eq!((&document["together"], &document["synchronized"]), (&"node".into(), &false.into()));
        assert_eq!(
            (&document["tolls"][0]["cpus"], &document["fair_servers"][0]["assumed"]),
            (&"0-1".into(), &true.into())
        );
        assert_eq!(document["cpus"][2]["overtaken"], 2);
    }

    const CPU_TEXT: &str =
        "  periodic:interval=1ms,detour=50us, each CPU from a random place, seed 1, by threads of class fifo:51

  cpu             detours  interval  stddev  length  stddev     min     max  noise   late  late p99
  ─────────────────────────────────────────────────────────────────────────────────────────────────
  3    requested    2,000    1.00ms     0ns  50.0us     0ns  50.0us  50.0us  5.00%      -         -
       delivered    1,999    1.00ms     0ns  50.0us     0ns  50.0us  61.0us  4.99%  900ns    5.00us
  ! CPU 3: 1 detour was missed: the CPU could not be had in time
  ! CPU 3: of every lap 3 detours, 9us together, are shorter than the 12us that one takes here, and were left
    out
";

    #[test]
    fn of_many_threads_the_first_are_shown_and_all_are_summed_up() {
        let way = InjectionWay::Signal(SignalCounts { processes: 2, unattended: 0, given_up: 1, without_signal: 0 });
        let threads = (0..20).map(|tid| place(NoisePlace::Thread { pid: 7, tid: 100 + tid })).collect();
        let report = report(way, threads);
        let text = text(&report);
        assert!(text.contains("each thread from a random place, seed 1, by signals in 2 processes"), "{text}");
        assert!(text.contains("115 ") && !text.contains("116 "), "{text}");
        assert!(text.contains("all requested   40,000") && text.contains("all delivered   39,980"), "{text}");
        assert!(text.contains("! 4 more threads"), "{text}");
        assert!(text.contains("! all threads: 20 detours were missed"), "{text}");
        assert!(text.contains("! all threads: 60 detours, 180us together"), "{text}");
        assert!(text.contains("1 time the program started to use the signal"), "{text}");
        let document: serde_json::Value = serde_json::from_str(&report::json(&report)).unwrap();
        assert_eq!((&document["way"], &document["processes"]), (&"signal".into(), &2.into()));
        assert_eq!((&document["threads"][19]["tid"], &document["threads"][19]["pid"]), (&119.into(), &7.into()));
        assert_eq!(document["delivered"]["count"], 39_980);
        assert!(document.get("class").is_none());
    }
}
