//! Single waits and interruptions, compared with plain sums of the stored tables.

use std::fmt;
use std::path::Path;

use becalm_analyze::summary::Selection;
use becalm_answer::sources::{SourcesQuestion, SourcesWanted};
use becalm_answer::{Asker, Steps};
use becalm_bundle::{Bundle, ObservedTables, node_document};
use becalm_model::Labels;
use becalm_model::observed::{LifePart, OwnedActivity, ThreadDetour};
use becalm_report::{Form, Report};
use becalm_units::fault;
use serde_json::Value;

use super::answer;
use crate::document::ObservedDoc;

/// The document and the text of an answer.
#[derive(Default)]
struct Shown {
    document: Value,
    text: String,
}

struct NoSteps;

impl Steps for NoSteps {
    fn say(&self, _: String) {}
    fn advance(&self, _: u64) {}
    fn reach(&self, _: u64) {}
}

impl Asker for Shown {
    fn show(&mut self, report: &impl Report) -> fault::Result<()> {
        self.document = serde_json::from_str(&becalm_report::json(report)).unwrap();
        self.text = becalm_report::text(report, Form::within(Some(80)));
        Ok(())
    }

    fn tell(&self, _: fmt::Arguments<'_>) {}
    fn reading(&self, _: &Bundle, _: u64) -> impl Sized {}
    fn comparing<'a>(&self, _: impl Iterator<Item = &'a Bundle> + Clone) -> impl Sized {}
    fn predicting(&self, _: u64) -> impl Steps {
        NoSteps
    }
}

fn ask(run: &Path, wanted: SourcesWanted, selection: Selection) -> Result<Shown, String> {
    let mut shown = Shown::default();
    let question = SourcesQuestion { run: run.to_owned(), selection, wanted };
    answer(&question, &mut shown).map_err(|error| error.to_string())?;
    Ok(shown)
}

/// A detour with its number and its activities.
type Numbered = (u64, ThreadDetour, Vec<OwnedActivity>);

/// All detours of a recording, and the starts of its waits.
fn stored(run: &Path) -> (Vec<Numbered>, Vec<i64>, Labels) {
    let doc = node_document::load::<ObservedDoc>(run, None).unwrap().doc;
    let tables = ObservedTables::new(run, &doc.node, doc.rows);
    let (mut all, mut waits, mut labels) = (Vec::new(), Vec::new(), Labels::new());
    tables.detours(&mut labels, &mut |detour, rows, _| all.push((all.len() as u64, *detour, rows.to_vec()))).unwrap();
    tables
        .stays(&mut labels, &mut |stay, _| {
            if stay.part == LifePart::Queued {
                waits.push(stay.start.get());
            }
        })
        .unwrap();
    (all, waits, labels)
}

#[test]
fn the_longest_are_those_of_the_tables() {
    let folder = tempfile::tempdir().unwrap();
    becalm_fixtures::observed::write_observed(folder.path());
    let run = folder.path().join("observed.becalm");
    let (mut all, waits, labels) = stored(&run);
    // A stable sort: of equally long ones, the first stays first.
    all.sort_by_key(|(_, detour, _)| std::cmp::Reverse(detour.duration));
    for count in [1, 7, all.len() - 1, all.len() + 5] {
        let shown = ask(&run, SourcesWanted::Longest(count as u32), Selection::default()).unwrap();
        assert_eq!(shown.document["schema"], "becalm.detours-observed/1");
        let found = shown.document["detours"].as_array().unwrap();
        assert_eq!(found.len(), count.min(all.len()));
        for ((number, detour, rows), found) in all.iter().zip(found) {
            let figures =
                ["detour", "thread", "start_ns", "duration_ns", "cpu"].map(|name| found[name].as_i64().unwrap());
            let (start, duration) = (detour.start.get(), detour.duration.get());
            let thread = i64::from(detour.thread.0);
            assert_eq!(figures, [*number as i64, thread, start, duration, i64::from(detour.cpu.get())]);
            assert_eq!((&found["name"], &found["tid"]), (&"solver".into(), &4242.into()));
            assert_eq!(found["waited"], waits.contains(&start), "{found}");
            let activities = found["activities"].as_array().unwrap();
            let sum: i64 = activities.iter().map(|row| row["self_ns"].as_i64().unwrap()).sum();
            assert_eq!((sum, activities.len()), (duration, rows.len()));
            for row in activities {
                let same = |known: &&OwnedActivity| {
                    let name = labels.text(known.source);
                    known.kind.name() == row["kind"] && name == row["source"] && known.time.get() == row["self_ns"]
                };
                assert!(rows.iter().any(|known| same(&known)), "{row}");
            }
        }
    }
}

#[test]
fn each_has_a_number_and_a_title() {
    let folder = tempfile::tempdir().unwrap();
    becalm_fixtures::observed::write_observed(folder.path());
    let run = folder.path().join("observed.becalm");
    let of = |name: &str| ask(&run, SourcesWanted::Detour(name.parse().unwrap()), Selection::default());
    let (all, waits, _) = stored(&run);
    for (number, detour, _) in &all[..40] {
        let shown = of(&number.to_string()).unwrap();
        let found = &shown.document["detours"][0];
        assert_eq!((&found["detour"], &found["start_ns"]), (&(*number).into(), &detour.start.get().into()));
        let is_wait = waits.contains(&detour.start.get());
        let verb = if is_wait { "solver (4242) waited " } else { "solver (4242) was interrupted for " };
        assert!(shown.text.starts_with(&format!("Detour {number}: {verb}")), "{}", shown.text);
        assert!(shown.text.lines().all(|line| line.chars().count() <= 80), "{}", shown.text);
    }
    let wait = all.iter().find(|(_, detour, _)| detour.duration.get() > 1_000_000).unwrap();
    let text = of(&wait.0.to_string()).unwrap().text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("after it was preempted") && text.contains("100.0% task grem1 others 1 77"), "{text}");
    let error = of(&all.len().to_string()).err().unwrap();
    assert!(error.contains(&format!("the recording has {} of them, numbered from 0", all.len())), "{error}");
}

#[test]
fn questions_about_cpus_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    becalm_fixtures::observed::write_observed(folder.path());
    let run = folder.path().join("observed.becalm");
    let longest = || SourcesWanted::Longest(1);
    let cpus = Selection { cpus: Some("1".parse().unwrap()), ..Selection::default() };
    let own = Selection { with_self: true, ..Selection::default() };
    for (wanted, selection, why) in [
        (SourcesWanted::Together { within: Default::default() }, Selection::default(), "only a recording of CPUs"),
        (SourcesWanted::Ranked { per_cpu: false }, Selection::default(), "becalm report"),
        (SourcesWanted::Detour("1:2".parse().unwrap()), Selection::default(), "numbers without a CPU"),
        (longest(), cpus, "leave `cpus` out"),
        (longest(), own, "leave `with_self` out"),
    ] {
        let error = ask(&run, wanted, selection).err().unwrap();
        assert!(error.contains(why), "{error}");
    }
}
