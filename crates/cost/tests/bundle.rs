//! Measurements of costs: what is stored reads back, other kinds of bundles are told apart, and what is damaged or
//! contradicts itself is refused by name.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::{ArrayRef, Int32Array, Int64Array, RecordBatch, StringArray};
use becalm_bundle::Contents;
use becalm_bundle::series::SeriesWriter;
use becalm_bundle::{Bundle, BundleError, BundleWriter};
use becalm_cost::documents::{
    BY_SYSCALL, ClockCosts, ClockWayDoc, CostDoc, CostRun, CostSamples, Costs, CountedDoc, CountedPairDoc,
    InstrumentDoc, PlaceDoc, PlacementCosts, PlacementDoc, ProbeCosts, ProbeDoc, ProcessDoc, ReadBy, SCHEMA,
    SchedulerCosts, SchedulerDoc, SeriesDoc, SpreadDoc, TicksDoc, TimedDoc, WorkPlace,
};
use becalm_model::event_count::{CountedIn, EventCount};
use becalm_model::node::{Ended, MachineDoc};
use becalm_units::CpuId;
use parquet::arrow::ArrowWriter;
use proptest::prelude::*;

fn cost_doc(node: &str, measured: Costs) -> CostDoc {
    CostDoc {
        schema: SCHEMA.to_owned(),
        node: node.to_owned(),
        program: "becalm 0.1.0".to_owned(),
        begun: jiff::Timestamp::UNIX_EPOCH,
        ended: Some(Ended::Duration),
        machine: MachineDoc::default(),
        cpu: CpuId::new(3),
        cpu_reason: "as asked".to_owned(),
        other_cpu: Some(CpuId::new(1)),
        sched: "other".to_owned(),
        spread: None,
        measured,
    }
}

fn event(enabled_ns: i64, running_ns: i64) -> EventCount {
    EventCount { event: "cycles".to_owned(), space: CountedIn::User, value: 9, enabled_ns, running_ns }
}

fn series(samples: u64) -> SeriesDoc {
    let counts = vec![event(2, 1)];
    SeriesDoc {
        batch: 2,
        samples,
        rounds_by_process: Vec::new(),
        interrupts: Some(7),
        preempted: 1,
        interruptions: false,
        counts,
        counted: 3,
    }
}

fn instrument() -> InstrumentDoc {
    InstrumentDoc {
        counter: "tsc".to_owned(),
        rate_hz: 2.6e9,
        rate_error_ratio: 1e-7,
        overhead_ps: 20_000,
        not_counted: vec!["none".to_owned()],
    }
}

/// Two probes with samples and one without.
fn traps(node: &str) -> CostRun {
    let probe = |name: &str, series: Option<SeriesDoc>| ProbeDoc {
        name: name.to_owned(),
        what: format!("the {name}"),
        method: "by hand".to_owned(),
        not_measured: if series.is_none() { Some("this machine has no swap".to_owned()) } else { None },
        not_in_all: None,
        series,
    };
    let probes = vec![probe("syscall", Some(series(5))), probe("swap_in", None), probe("signal", Some(series(3)))];
    let costs = ProbeCosts { instrument: Some(instrument()), probes };
    let samples = CostSamples::from([
        ("syscall".to_owned(), vec![vec![100_000, 101_000], vec![99_000, -1_000, 100_500]]),
        ("signal".to_owned(), vec![vec![1_700_000], vec![1_800_000, 1_750_000]]),
    ]);
    CostRun { doc: cost_doc(node, Costs::Trap(costs)), samples }
}

fn write(path: &Path, run: &CostRun) -> Result<(), BundleError> {
    SeriesWriter::create(path, &run.doc)?.store(run)
}

/// A bundle of [`traps`], its document, and its table.
fn stored(folder: &tempfile::TempDir) -> (PathBuf, PathBuf, PathBuf) {
    let path = folder.path().join("trap.becalm");
    write(&path, &traps("a")).unwrap();
    (path.clone(), path.join("runs/node=a.json"), path.join("costs/node=a/0000.parquet"))
}

#[test]
fn every_kind_of_measurement_reads_back() {
    let folder = tempfile::tempdir().unwrap();
    let way = ClockWayDoc {
        name: "CLOCK_TAI".to_owned(),
        path: ReadBy::Vdso,
        series: series(2),
        by_syscall: Some(series(1)),
        stated_ns: Some(1),
        readings: 10_000,
        smallest_step_ps: Some(1_000),
        median_step_ps: None,
        backwards: 0,
        cross: None,
    };
    let clocks = ClockCosts {
        instrument: Some(instrument()),
        not_counted: Some("no tracefs".into()),
        clocks: vec![way],
        successive: None,
    };
    let clock_samples = CostSamples::from([
        ("CLOCK_TAI".to_owned(), vec![vec![21_000, 21_500]]),
        (format!("CLOCK_TAI{BY_SYSCALL}"), vec![vec![150_000]]),
    ]);
    let ticks =
        TicksDoc { interrupts: 9, handler_ns: 10, handler_max_ns: 2, switches: 0, window_ns: 11, lost_events: 0 };
    let row = SchedulerDoc {
        runnable: 4,
        ticks: Some(ticks),
        yields: 5,
        switches: 4,
        elapsed_ns: 12,
        counts: vec![event(20, 20)],
        counted_yields: 3,
    };
    let scheduler = SchedulerCosts {
        window_ns: 1,
        runnable: vec![4, 8],
        not_counted: vec!["no".to_owned()],
        warnings: vec![becalm_model::warning::no_janitor("it could not")],
        rows: vec![row],
        ..SchedulerCosts::default()
    };
    let timed = TimedDoc { elapsed_ns: 10, interrupts: 3, window_ns: 11 };
    let counted = |interrupts| CountedDoc { interrupts, counts: vec![event(20, 10)] };
    let placement = PlacementCosts {
        added_hz: 1_000,
        rounds: 1,
        bodies: vec!["add".to_owned()],
        places: vec![PlaceDoc { place: WorkPlace::Sibling, cpu: CpuId::new(5) }],
        results: vec![PlacementDoc {
            place: WorkPlace::Sibling,
            body: "add".to_owned(),
            quiet: timed,
            raised: timed,
            counted: Some(CountedPairDoc { quiet: counted(0), raised: counted(7) }),
            roamed: None,
        }],
        ..PlacementCosts::default()
    };
    let runs = [
        traps("a"),
        CostRun { doc: cost_doc("a", Costs::Clock(clocks)), samples: clock_samples },
        CostRun { doc: cost_doc("a", Costs::Scheduler(scheduler)), samples: CostSamples::new() },
        CostRun { doc: cost_doc("a", Costs::Placement(placement)), samples: CostSamples::new() },
    ];
    for run in runs {
        let path = folder.path().join(format!("{}.becalm", run.doc.measured.command()));
        write(&path, &run).unwrap();
        assert_eq!(Contents::read(&path).unwrap(), Contents::Costs);
        assert_eq!(CostRun::load(&path, None).unwrap(), run);
        // As with any bundle, the ending may be left out.
        assert_eq!(CostRun::load(&path.with_extension(""), Some("a")).unwrap(), run);
    }
}

#[test]
fn what_was_never_stored_leaves_nothing_and_a_killed_writer_leaves_a_document_of_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trap.becalm");
    let nothing = CostDoc { ended: None, ..cost_doc("a", Costs::Trap(ProbeCosts::default())) };
    let writer = SeriesWriter::create(&path, &nothing).unwrap();
    let run = CostRun::load(&path, None).unwrap();
    assert!(run.doc.is_empty() && run.doc.ended.is_none());
    let second = SeriesWriter::create(&path, &nothing).err().unwrap().to_string();
    assert!(second.contains("runs/node=a.json is there already"), "{second}");
    drop(writer);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn nodes_stand_side_by_side_and_kinds_do_not() {
    let folder = tempfile::tempdir().unwrap();
    let (path, ..) = stored(&folder);
    write(&path, &traps("b")).unwrap();
    assert_eq!(CostRun::load(&path, Some("b")).unwrap(), traps("b"));
    let error = |node| CostRun::load(&path, node).unwrap_err().to_string();
    assert!(error(None).contains("holds the nodes a, b"), "{}", error(None));
    assert!(error(Some("c")).contains("holds no node 'c'; it holds a, b"));

    // A recording of another node does not go where costs are, nor the other way round.
    let recording = folder.path().join("run.becalm");
    becalm_fixtures::write_named(&recording, "a");
    let recorded = Bundle::open(&recording).unwrap().nodes()[0].clone();
    let into = BundleWriter::create(&path, &recorded).err().unwrap().to_string();
    assert!(into.contains("it holds costs that becalm cost measured"), "{into}");
    assert!(!path.join("detours").exists());
    let into = SeriesWriter::create(&recording, &traps("c").doc).err().unwrap().to_string();
    assert!(into.contains("it holds a recording"), "{into}");

    let opened = Bundle::open(&path).unwrap_err().to_string();
    assert!(
        opened.contains("holds costs that becalm cost measured and not a recording with its single detours"),
        "{opened}"
    );
    let opened = CostRun::load(&recording, None).unwrap_err().to_string();
    assert!(opened.contains("holds a recording with its single detours and not costs"), "{opened}");
}

/// Loads the bundle with these bytes as one of its files: it is refused, and the error names the file and says why.
fn refused(bundle: &Path, file: &Path, bytes: &[u8], why: &str) {
    let before = fs::read(file).unwrap();
    fs::write(file, bytes).unwrap();
    let error = CostRun::load(bundle, None).unwrap_err().to_string();
    assert!(error.contains(&file.display().to_string()) && error.contains(why), "{error} does not say {why}");
    fs::write(file, before).unwrap();
}

/// The text with its first `from` replaced, as the bytes of a file.
fn spoiled(text: &str, from: &str, to: &str) -> Vec<u8> {
    assert!(text.contains(from), "{from}");
    text.replacen(from, to, 1).into_bytes()
}

#[test]
fn damaged_documents_are_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let (path, document, _) = stored(&folder);
    let text = fs::read_to_string(&document).unwrap();
    for (from, to, why) in [
        ("becalm.cost/1", "becalm.cost/9", "this program reads 'becalm.cost/1'"),
        ("\"node\": \"a\"", "\"node\": \"b\"", "it is of node 'b'"),
        ("\"command\": \"trap\"", "\"command\": \"teapot\"", "unknown variant `teapot`"),
        ("\"cpu\": 3", "\"cpu\": 4000000", "above the limit"),
        ("\"batch\": 2", "\"batch\": 0", "samples of 0 repetitions"),
        ("\"name\": \"signal\"", "\"name\": \"syscall\"", "appears twice"),
        ("\"running_ns\": 1", "\"running_ns\": 3", "cycles cannot have been counted for 3 of 2 ns"),
        ("\"rate_hz\": 2600000000.0", "\"rate_hz\": -1.0", "its counter cannot have a rate of"),
        ("\"rate_hz\": 2600000000.0", "\"rate_hz\": 1e999", "number out of range"),
        ("\"overhead_ps\": 20000", "\"overhead_ps\": -20000", "overhead_ps of 'the instrument' is -20000"),
        ("\"not_measured\": \"this machine has no swap\"", "\"not_measured\": null", "'swap_in' has both samples"),
        ("{", "", "expected"),
    ] {
        refused(&path, &document, &spoiled(&text, from, to), why);
    }
}

#[test]
fn a_table_that_contradicts_its_document_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let (path, document, _) = stored(&folder);
    let text = fs::read_to_string(&document).unwrap();
    for (from, to, why) in [
        ("\"samples\": 5", "\"samples\": 6", "5 samples of 'syscall', and the document tells of 6"),
        ("\"name\": \"signal\"", "\"name\": \"sigmal\"", "samples of 'signal', which the document does not mention"),
    ] {
        fs::write(&document, spoiled(&text, from, to)).unwrap();
        let error = CostRun::load(&path, None).unwrap_err().to_string();
        assert!(error.contains("0000.parquet is not a table of costs") && error.contains(why), "{error}");
    }
}

#[test]
fn rounds_of_processes_that_contradict_each_other_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let spread = |by_process: &[u32]| {
        let process = |n: i64| ProcessDoc { begun_ns: 10 * n, ended_ns: 10 * n + 5 };
        let mut run = traps("a");
        let processes = (0..2).map(process).collect();
        run.doc.spread = Some(SpreadDoc { planned: 8, over_ns: 80, processes });
        let Costs::Trap(costs) = &mut run.doc.measured else { panic!("they are traps") };
        costs.probes[0].series.as_mut().unwrap().rounds_by_process = by_process.to_vec();
        run
    };
    let (path, run) = (folder.path().join("spread.becalm"), spread(&[0, 2]));
    write(&path, &run).unwrap();
    assert_eq!(CostRun::load(&path, None).unwrap(), run);
    for (number, (by_process, why)) in [
        (&[1, 2][..], "it has 2 rounds of 'syscall', and the document tells of 3 of its processes"),
        (&[2], "'syscall' has rounds of 1 processes, and 2 measured"),
    ]
    .into_iter()
    .enumerate()
    {
        let error =
            write(&folder.path().join(format!("{number}.becalm")), &spread(by_process)).unwrap_err().to_string();
        assert!(error.contains(why), "{error}");
    }
}

#[test]
fn damaged_tables_are_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let (path, _, table) = stored(&folder);
    let bytes = fs::read(&table).unwrap();
    refused(&path, &table, &bytes[..bytes.len() / 2], "as Parquet");
    refused(&path, &table, b"", "as Parquet");
    let rewrite = |columns: Vec<(&str, ArrayRef)>, why: &str| {
        let batch = RecordBatch::try_from_iter(columns).unwrap();
        let mut file = Vec::new();
        let mut writer = ArrowWriter::try_new(&mut file, batch.schema(), None).unwrap();
        writer.write(&batch).unwrap();
        writer.close().unwrap();
        refused(&path, &table, &file, why);
    };
    let names = |values: &[&str]| -> ArrayRef { Arc::new(StringArray::from(values.to_vec())) };
    let numbers = |values: &[i64]| -> ArrayRef { Arc::new(Int64Array::from(values.to_vec())) };
    let table_of = |probes: &[&str], rounds: &[i64], times: &[i64]| {
        vec![("probe", names(probes)), ("round", numbers(rounds)), ("time_ps", numbers(times))]
    };
    rewrite(vec![("probe", names(&["syscall"]))], "no column round");
    rewrite(
        vec![
            ("probe", names(&["syscall"])),
            ("round", Arc::new(Int32Array::from(vec![0]))),
            ("time_ps", numbers(&[1])),
        ],
        "column round is of type Int32",
    );
    rewrite(table_of(&["syscall", "syscall"], &[1, 1], &[1, 1]), "round 1 of 'syscall' comes after 0 rounds");
    rewrite(table_of(&["syscall", "syscall"], &[0, -1], &[1, 1]), "round -1 of 'syscall' comes after 1 rounds");
    rewrite(table_of(&["syscall", "syscall"], &[0, i64::MAX], &[1, 1]), "comes after 1 rounds");
    rewrite(
        table_of(&["syscall", "signal", "syscall"], &[0, 0, 0], &[1, 1, 1]),
        "'syscall' are not in consecutive rows",
    );
    rewrite(table_of(&["syscall"; 4], &[0; 4], &[1; 4]), "4 samples of 'syscall', and the document tells of 5");
    let five = ["syscall", "syscall", "syscall", "syscall", "syscall", "signal", "signal", "signal", "x"];
    rewrite(table_of(&five[..8], &[0; 8], &[1, 1, i64::MIN, 1, 1, 1, 1, 1]), "is -9223372036854775808 ps long");
    rewrite(table_of(&five, &[0; 9], &[1; 9]), "samples of 'x', which the document does not mention");
    rewrite(table_of(&["syscall"; 5], &[0; 5], &[1; 5]), "it has no sample of 'signal'");
    // What is too much is refused as soon as it comes, before the wrong round behind it.
    rewrite(
        table_of(&["syscall"; 7], &[0, 0, 0, 0, 0, 0, 9], &[1; 7]),
        "it has more samples of 'syscall' than the 5 in the document",
    );
    rewrite(table_of(&["x"; 2], &[0, 9], &[1; 2]), "samples of 'x', which the document does not mention");
    fs::remove_file(&table).unwrap();
    assert!(CostRun::load(&path, None).unwrap_err().to_string().contains("0000.parquet"));
}

#[test]
fn times_that_cannot_be_are_refused_before_they_are_stored() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("placement.becalm");
    let timed = TimedDoc { elapsed_ns: 10, interrupts: 3, window_ns: 0 };
    let result = PlacementDoc {
        place: WorkPlace::Same,
        body: "add".to_owned(),
        quiet: timed,
        raised: timed,
        counted: None,
        roamed: None,
    };
    let timed = TimedDoc { window_ns: 1, ..timed };
    let wrong = CountedDoc { interrupts: 1, counts: vec![event(1, 2)] };
    let pair = CountedPairDoc { quiet: CountedDoc { interrupts: 1, counts: Vec::new() }, raised: wrong };
    let counted = PlacementDoc { quiet: timed, raised: timed, counted: Some(pair), ..result.clone() };
    let costs = PlacementCosts { results: vec![counted], ..PlacementCosts::default() };
    let error = SeriesWriter::create(&path, &cost_doc("a", Costs::Placement(costs))).err().unwrap().to_string();
    assert!(error.contains("cycles cannot have been counted for 2 of 1 ns"), "{error}");
    let row = SchedulerDoc { runnable: 1, counts: vec![event(1, 2)], ..SchedulerDoc::default() };
    let costs = SchedulerCosts { rows: vec![row], ..SchedulerCosts::default() };
    let error = SeriesWriter::create(&path, &cost_doc("a", Costs::Scheduler(costs))).err().unwrap().to_string();
    assert!(error.contains("cycles cannot have been counted for 2 of 1 ns"), "{error}");
    let costs = PlacementCosts { results: vec![result], ..PlacementCosts::default() };
    let error = SeriesWriter::create(&path, &cost_doc("a", Costs::Placement(costs))).err().unwrap().to_string();
    assert!(error.contains("window_ns is 0, outside of 1 to"), "{error}");
    let row = SchedulerDoc { yields: 1, switches: 1, elapsed_ns: 1, ..SchedulerDoc::default() };
    let costs = SchedulerCosts { rows: vec![row], ..SchedulerCosts::default() };
    let error = SeriesWriter::create(&path, &cost_doc("a", Costs::Scheduler(costs))).err().unwrap().to_string();
    assert!(error.contains("no runnable thread"), "{error}");
    assert!(!path.exists());
    // Samples that the document does not tell of.
    let mut run = traps("a");
    run.samples.insert("more".to_owned(), vec![vec![1]]);
    assert!(write(&path, &run).unwrap_err().to_string().contains("samples of 'more'"));
    assert!(!path.exists(), "what was never stored leaves nothing");
}

proptest! {
    /// Bytes changed anywhere: it opens or is refused, and never ends the program.
    #[test]
    fn no_damage_ends_the_program(in_table: bool, patches in proptest::collection::vec((any::<u16>(), any::<u8>()), 1..6), cut in 0_usize..4) {
        let folder = tempfile::tempdir().unwrap();
        let (path, document, table) = stored(&folder);
        let file = if in_table { table } else { document };
        let mut bytes = fs::read(&file).unwrap();
        for (place, change) in patches {
            let place = usize::from(place) % bytes.len();
            bytes[place] = bytes[place].wrapping_add(change);
        }
        bytes.truncate(bytes.len() - bytes.len() / 4 * cut);
        fs::write(&file, bytes).unwrap();
        if let Ok(run) = CostRun::load(&path, None) {
            for (name, series) in run.doc.series() {
                prop_assert_eq!(run.rounds(&name).iter().map(Vec::len).sum::<usize>() as u64, series.samples);
            }
        }
    }
}
