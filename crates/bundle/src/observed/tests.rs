use becalm_model::observed::{LifePart, OwnedActivity, Owner, Stay, StayReason, ThreadDetour, ThreadId};
use becalm_model::{Kind, Labels};
use becalm_units::{CpuId, Nanos};

use becalm_model::node::MachineDoc;

use super::*;

fn row(thread: i32, label: Label) -> ThreadRow {
    ThreadRow {
        thread,
        tid: 100 + thread,
        process: 100,
        parent: thread - 1,
        name: label,
        command: Label::EMPTY,
        group: label,
        start_ns: -5,
        end_ns: 50,
        chosen: thread == 0,
        kernel: thread == 1,
    }
}

#[test]
fn the_tables_are_read_as_they_were_written() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.becalm");
    let mut labels = Labels::new();
    let name = labels.intern("solver");
    let doc = ObservedHead {
        schema: ObservedHead::SCHEMA.to_owned(),
        node: "n".to_owned(),
        tracing: None,
        machine: MachineDoc::default(),
        rows: ObservedRows::default(),
        warnings: Vec::new(),
    };
    let mut writer = ObservedWriter::create(&path, &doc).unwrap();
    let reasons = [
        StayReason::None,
        StayReason::Preempted,
        StayReason::Woken,
        StayReason::New,
        StayReason::Left(ThreadState::UNKNOWN),
        StayReason::Left(ThreadState::SLEEPING),
        StayReason::Left(ThreadState::STOPPED),
    ];
    let stay = |number: usize, reason| Stay {
        thread: ThreadId((number % 2) as u32),
        cpu: CpuId::new(3),
        start: Nanos::new(number as i64),
        duration: Nanos::new(2),
        part: LifePart::Asleep,
        reason,
        context: name,
        by: (number > 2).then_some(ThreadId(1)),
    };
    let stays: Vec<Stay> = reasons.iter().enumerate().map(|(number, reason)| stay(number, *reason)).collect();
    let detour = |start| ThreadDetour {
        thread: ThreadId(0),
        cpu: CpuId::new(1),
        start: Nanos::new(start),
        duration: Nanos::new(7),
    };
    let activity = |time, thread| OwnedActivity {
        owner: Owner::Others,
        kind: Kind::Task,
        source: name,
        thread,
        time: Nanos::new(time),
        visits: 3,
    };
    let detours = vec![detour(1), detour(20)];
    let activities = vec![(0, activity(3, Some(ThreadId(1)))), (0, activity(4, None)), (1, activity(7, None))];
    // The numbers of detours go on from segment to segment.
    for _ in 0..2 {
        let segment =
            ObservedSegment { stays: stays.clone(), detours: detours.clone(), activities: activities.clone() };
        writer.write_segment(&segment, &labels).unwrap();
    }
    let threads = [row(0, name), row(1, Label::EMPTY)];
    let rows = ObservedRows { threads: 2, ..writer.rows() };
    assert_eq!(rows, ObservedRows { threads: 2, stays: 14, detours: 4, activities: 6 });
    writer.finish(&doc, &threads, &labels).unwrap();

    let tables = ObservedTables::new(&path, "n", rows);
    assert_eq!(tables.threads(&mut labels).unwrap(), threads);
    let mut read = Vec::new();
    tables.stays(&mut labels, &mut |stay, _| read.push(*stay)).unwrap();
    assert_eq!(read, [stays.clone(), stays].concat());
    let mut read = Vec::new();
    tables.detours(&mut labels, &mut |detour, rows, _| read.push((*detour, rows.to_vec()))).unwrap();
    let one = (detours[0], vec![activities[0].1, activities[1].1]);
    let other = (detours[1], vec![activities[2].1]);
    assert_eq!(read, [one.clone(), other.clone(), one, other]);

    // A copy that lacks rows is not a quiet one.
    for (rows, table) in [
        (ObservedRows { stays: 15, ..rows }, "stays"),
        (ObservedRows { detours: 5, ..rows }, "detours"),
        (ObservedRows { activities: 7, ..rows }, "activities"),
        (ObservedRows { threads: 3, ..rows }, "threads"),
    ] {
        let tables = ObservedTables::new(&path, "n", rows);
        let failed = [
            tables.threads(&mut labels).err(),
            tables.stays(&mut labels, &mut |_, _| {}).err(),
            tables.detours(&mut labels, &mut |_, _, _| {}).err(),
        ];
        let texts: Vec<String> = failed.into_iter().flatten().map(|error| error.to_string()).collect();
        assert_eq!(texts.len(), 1, "{texts:?}");
        assert!(texts[0].contains(table) && texts[0].contains("the document tells of"), "{texts:?}");
    }
    // A thread that is in no table of threads.
    let tables = ObservedTables::new(&path, "n", ObservedRows { threads: 1, ..rows });
    let error = tables.stays(&mut labels, &mut |_, _| {}).unwrap_err().to_string();
    assert!(error.contains("thread 1 is not in the table of threads"), "{error}");
}
