//! What a bundle goes through: writers that are killed, that meet each other, or that are given wrong rows.

use std::fs;
use std::path::Path;

use becalm_bundle::{Bundle, BundleWriter, StoredNodes};
use becalm_model::node::Ended;
use becalm_model::{Labels, NodeDoc};
use becalm_units::{CpuId, Nanos};

use crate::recording::{Rows, doc, documents, ended, read_activities, read_all, read_detours, rows, store};

/// The names in a folder, hidden ones too.
pub fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn what_a_killed_writer_leaves_is_readable() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.becalm");
    let mut labels = Labels::new();
    let mut writer = BundleWriter::create(&path, &doc("a")).unwrap();
    let rows = rows(&[0, 1], 0, 20, &mut labels);
    writer.write_segment(&rows.detours, &rows.activities, &labels).unwrap();
    // As after kill -9: nothing is dropped.
    std::mem::forget(writer);
    // It had published the activities of the next segment and was writing its detours, and its document.
    fs::copy(path.join("activities/node=a/0000.parquet"), path.join("activities/node=a/0001.parquet")).unwrap();
    fs::write(path.join("detours/node=a/.0001.parquet.0.draft"), "PAR1").unwrap();
    fs::write(path.join("runs/.node=a.json.0.draft"), "{").unwrap();
    // And somebody left notes.
    fs::write(path.join("runs/README"), "").unwrap();
    fs::write(path.join("detours/node=a/notes.txt"), "").unwrap();
    fs::write(path.join("notes.txt"), "").unwrap();

    let bundle = Bundle::open(&path).unwrap();
    assert_eq!(documents(&bundle), [doc("a")]);
    assert_eq!(bundle.nodes()[0].ended, None);
    assert_eq!(read_detours(&bundle, "a").unwrap().len(), 40);
    assert_eq!(read_activities(&bundle, "a").unwrap().len(), 80);
}

#[test]
fn a_run_killed_before_its_first_segment_is_empty() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.becalm");
    std::mem::forget(BundleWriter::create(&path, &doc("a")).unwrap());
    assert_eq!(read_all(&path).unwrap(), 0);
    // Nor must the folders be there: some copying programs leave empty ones out.
    fs::remove_dir_all(path.join("detours")).unwrap();
    fs::remove_dir_all(path.join("activities")).unwrap();
    assert_eq!(read_all(&path).unwrap(), 0);
}

#[test]
fn missing_segments_are_noticed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.becalm");
    store(&path, 3);
    let bundle = Bundle::open(&path).unwrap();
    let activities = path.join("activities/node=a/0002.parquet");
    fs::remove_file(&activities).unwrap();
    assert_eq!(read_detours(&bundle, "a").unwrap().len(), 120);
    let error = read_activities(&bundle, "a").unwrap_err();
    assert!(error.to_string().starts_with(&format!("{} is missing", activities.display())), "{error}");

    let detours = path.join("detours/node=a/0001.parquet");
    fs::remove_file(&detours).unwrap();
    let error = read_detours(&bundle, "a").unwrap_err();
    assert!(error.to_string().starts_with(&format!("{} is missing", detours.display())), "{error}");
}

/// What opening says of a recording of three segments, 40 detours and 80 activities each, from which `part` was removed.
fn opened_without(part: &str, document: &NodeDoc) -> Result<(), String> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.becalm");
    let mut labels = Labels::new();
    let mut writer = BundleWriter::create(&path, &doc("a")).unwrap();
    for segment in 0..3 {
        let rows = rows(&[0, 1], segment * 20, 20, &mut labels);
        writer.write_segment(&rows.detours, &rows.activities, &labels).unwrap();
    }
    writer.write_doc(document).unwrap();
    let part = path.join(part);
    if part.is_dir() { fs::remove_dir_all(part) } else { fs::remove_file(part) }.unwrap();
    let opened = [
        Bundle::open(&path).map(drop),
        Bundle::open_readable(&path).map(drop),
        StoredNodes::open(&path).unwrap().read("a").map(drop),
        Bundle::open_held(writer.held()).map(drop),
    ];
    let said = opened.map(|opened| opened.map_err(|error| error.to_string()));
    assert!(said.iter().all(|one| one.is_ok() == said[0].is_ok()), "{said:?}");
    said.into_iter().next().unwrap()
}

#[test]
fn missing_rows_are_noticed_when_a_recording_is_opened() {
    for (part, why) in [
        ("detours", "holds 0 detours of node 'a', but 120 were recorded; copy the whole recording"),
        ("detours/node=a", "detours/node=a holds 0 detours of node 'a', but 120 were recorded"),
        ("detours/node=a/0002.parquet", "holds 80 detours of node 'a', but 120 were recorded"),
        ("activities", "activities/node=a/0000.parquet is missing"),
        ("activities/node=a/0002.parquet", "activities/node=a/0002.parquet is missing"),
    ] {
        // One that goes on, or failed, holds at least what its last document counts.
        for doc in [ended("a"), doc("a"), NodeDoc { ended: Some(Ended::Failed), ..doc("a") }] {
            let error = opened_without(part, &doc).unwrap_err();
            assert!(error.contains(why), "{part}: {error}");
        }
    }
}

#[test]
fn rows_that_no_document_counts_are_those_of_a_recording_that_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.becalm");
    let mut labels = Labels::new();
    let mut writer = BundleWriter::create(&path, &doc("a")).unwrap();
    let rows = rows(&[0], 0, 20, &mut labels);
    writer.write_segment(&rows.detours, &rows.activities, &labels).unwrap();
    assert_eq!(read_all(&path).unwrap(), 60);
    // A document that counts another recording's rows does not belong to these tables.
    let document = path.join("runs/node=a.json");
    let former = fs::read(&document).unwrap();
    writer.write_doc(&ended("a")).unwrap();
    assert_eq!(read_all(&path).unwrap(), 60);
    let text = String::from_utf8(former).unwrap();
    fs::write(&document, text.replace("\"ended\": null", "\"ended\": \"duration\"")).unwrap();
    let error = read_all(&path).unwrap_err().to_string();
    assert!(error.contains("holds 20 detours of node 'a', but 0 were recorded"), "{error}");
}

#[test]
fn only_the_node_that_lacks_rows_is_left_out() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.becalm");
    let mut labels = Labels::new();
    for node in ["a", "b"] {
        let mut writer = BundleWriter::create(&path, &doc(node)).unwrap();
        let rows = rows(&[0], 0, 20, &mut labels);
        writer.write_segment(&rows.detours, &rows.activities, &labels).unwrap();
        writer.write_doc(&ended(node)).unwrap();
    }
    fs::remove_dir_all(path.join("detours/node=a")).unwrap();
    assert!(Bundle::open(&path).unwrap_err().to_string().contains("of node 'a', but 20 were recorded"));
    let (bundle, left_out) = Bundle::open_readable(&path).unwrap();
    assert_eq!((bundle.nodes().len(), left_out.len(), left_out[0].0.as_str()), (1, 1, "a"));
}

#[test]
fn after_an_error_the_batches_end() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.becalm");
    store(&path, 3);
    let bundle = Bundle::open(&path).unwrap();
    fs::write(path.join("detours/node=a/0001.parquet"), "no").unwrap();
    let batches: Vec<bool> = bundle.detours("a").unwrap().map(|batch| batch.is_ok()).collect();
    assert_eq!(batches, [true, false]);
}

#[test]
fn segments_that_do_not_follow_each_other_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.becalm");
    store(&path, 2);
    let [first, second] = ["0000", "0001"].map(|number| path.join(format!("detours/node=a/{number}.parquet")));
    fs::copy(&second, folder.path().join("kept")).unwrap();
    fs::rename(&first, &second).unwrap();
    fs::rename(folder.path().join("kept"), &first).unwrap();
    let error = read_all(&path).unwrap_err().to_string();
    assert!(error.contains("0001.parquet") && error.contains("rows of CPU 0 are not in order"), "{error}");
}

#[test]
fn nodes_write_side_by_side() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.becalm");
    std::thread::scope(|scope| {
        for node in 0..8_u32 {
            let path = &path;
            scope.spawn(move || {
                let name = format!("n{node}");
                let mut labels = Labels::new();
                let mut writer = BundleWriter::create(path, &doc(&name)).unwrap();
                for segment in 0..5 {
                    let rows = rows(&[node], segment * 10, 10, &mut labels);
                    writer.write_segment(&rows.detours, &rows.activities, &labels).unwrap();
                }
                writer.write_doc(&ended(&name)).unwrap();
            });
        }
    });
    let bundle = Bundle::open(&path).unwrap();
    assert_eq!(bundle.nodes().len(), 8);
    for (node, doc) in (0..).zip(bundle.nodes()) {
        assert_eq!(doc.ended, Some(Ended::Duration));
        let detours = read_detours(&bundle, &doc.node).unwrap();
        assert_eq!(detours.len(), 50);
        assert!(detours.iter().all(|(_, detour)| detour.cpu == CpuId::new(node)));
    }
}

#[test]
fn one_of_the_writers_of_a_node_wins() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.becalm");
    let mut winners = std::thread::scope(|scope| {
        let writers: Vec<_> = (0..8).map(|_| scope.spawn(|| BundleWriter::create(&path, &doc("a")))).collect();
        let mut winners = Vec::new();
        for writer in writers {
            match writer.join().unwrap() {
                Ok(writer) => winners.push(writer),
                Err(error) => assert!(error.to_string().contains("is there already"), "{error}"),
            }
        }
        winners
    });
    assert_eq!(winners.len(), 1);
    assert_eq!(names(&path.join("runs")), ["node=a.json"]);
    // Its folders are there, whoever made them.
    winners[0].write_segment(&[], &[], &Labels::new()).unwrap();
}

#[test]
fn a_recording_is_never_overwritten() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.becalm");
    store(&path, 1);
    let error = BundleWriter::create(&path, &doc("a")).err().unwrap().to_string();
    assert!(error.contains("node=a.json") || error.contains("detours/node=a"), "{error}");
    assert!(error.contains("choose another path"), "{error}");
    // Without its document the segments are still somebody's.
    fs::remove_file(path.join("runs/node=a.json")).unwrap();
    let error = BundleWriter::create(&path, &doc("a")).err().unwrap().to_string();
    assert!(error.contains("detours/node=a"), "{error}");
    // Another node may join.
    BundleWriter::create(&path, &doc("b")).unwrap();
}

#[test]
fn places_that_are_taken_are_refused_and_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "mine").unwrap();
    let other = folder.path().join("other");
    fs::create_dir(&other).unwrap();
    fs::write(other.join("thesis.tex"), "mine").unwrap();
    for (path, why) in [
        (file.clone(), "it is a file"),
        (other.clone(), "not a run bundle"),
        (file.join("run.becalm"), "Not a directory"),
        (folder.path().join("missing/run.becalm"), "missing does not exist; create it first"),
    ] {
        let error = BundleWriter::create(&path, &doc("a")).err().unwrap().to_string();
        assert!(error.contains(why) && error.contains(&path.display().to_string()), "{error}");
    }
    assert_eq!(fs::read(&file).unwrap(), b"mine");
    assert_eq!(names(&other), ["thesis.tex"]);
    // A folder made for the purpose is welcome.
    let empty = folder.path().join("empty");
    fs::create_dir(&empty).unwrap();
    BundleWriter::create(&empty, &doc("a")).unwrap();
}

#[test]
fn a_refused_document_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.becalm");
    for (doc, why) in [
        (doc("a/b"), "cannot be the name of a node"),
        (becalm_model::NodeDoc { schema: "becalm.run/2".to_owned(), ..doc("a") }, "becalm.run/2"),
    ] {
        let error = BundleWriter::create(&path, &doc).err().unwrap().to_string();
        assert!(error.contains(why), "{error}");
        assert!(!path.exists());
    }
    let mut writer = BundleWriter::create(&path, &doc("a")).unwrap();
    let error = writer.write_doc(&doc("b")).unwrap_err().to_string();
    assert!(error.contains("node=a.json") && error.contains("it is of node 'b'"), "{error}");
}

#[test]
fn wrong_rows_are_refused_and_cost_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.becalm");
    let mut labels = Labels::new();
    let mut writer = BundleWriter::create(&path, &doc("a")).unwrap();
    let good = rows(&[0, 1], 0, 10, &mut labels);
    writer.write_segment(&good.detours, &good.activities, &labels).unwrap();

    let next = rows(&[0, 1], 10, 10, &mut labels);
    type Spoil = fn(&mut Rows);
    let spoils: [(Spoil, &str); 7] = [
        (|rows| rows.detours.swap(0, 1), "rows of CPU 0 are not in order"),
        (|rows| rows.detours.rotate_right(1), "rows of CPU 1 are not consecutive"),
        (|rows| rows.detours[3].duration = Nanos::new(-1), "cannot be -1 ns long"),
        (|rows| rows.detours[0].start = Nanos::ZERO, "rows of CPU 0 are not in order"),
        (|rows| rows.detours[19].cpu = CpuId::new(u32::MAX), "outside of 0 to"),
        (|rows| rows.activities[0].detour = 9, "detour 9 of CPU 0, but the segment holds its detours 10 until 20"),
        (|rows| rows.activities[39].detour = 20, "detour 20 of CPU 1"),
    ];
    for (spoil, why) in spoils {
        let mut spoiled = next.clone();
        spoil(&mut spoiled);
        let error = writer.write_segment(&spoiled.detours, &spoiled.activities, &labels).unwrap_err().to_string();
        assert!(error.contains(why) && error.contains("0001.parquet"), "{error}");
        for table in ["detours/node=a", "activities/node=a"] {
            assert_eq!(names(&path.join(table)), ["0000.parquet"], "{why}");
        }
    }
    writer.write_segment(&next.detours, &next.activities, &labels).unwrap();
    assert_eq!(read_all(&path).unwrap(), 40 + 80);
}

#[test]
fn segments_without_rows_are_segments() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.becalm");
    let mut labels = Labels::new();
    let mut writer = BundleWriter::create(&path, &doc("a")).unwrap();
    writer.write_segment(&[], &[], &labels).unwrap();
    let rows = rows(&[0], 0, 10, &mut labels);
    writer.write_segment(&rows.detours, &rows.activities, &labels).unwrap();
    let detours = read_detours(&Bundle::open(&path).unwrap(), "a").unwrap();
    assert_eq!(detours.len(), 10);
    assert!(detours.iter().all(|(segment, _)| *segment == 1));
}
