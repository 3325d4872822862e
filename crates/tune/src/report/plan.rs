//! A tuning plan for a terminal and as `becalm.tune-plan/1`.
//!
//! Similar changes, such as those of many threads, share a row of the table; the document has each of them.

use becalm_model::tune::{Family, Profile};
use becalm_report::Report;
use becalm_report::catalogue;
use becalm_report::form::field::{Object, columns, fields};
use becalm_report::form::figure::{Factor, Number};
use becalm_report::form::section::{Block, Page, Section};
use becalm_report::form::sheet::Form;
use becalm_report::form::table::Table;
use becalm_report::form::value::grouped;
use becalm_report::predict::rounded::{self, round, times};
use becalm_units::{CpuList, cpus};
use serde::Serialize;

use super::knob::{alike, shown, transition};
use super::listed;
use crate::document::{BootParameter, Change, Gain, GainJob, Gains, Note, Plan, PredictedSlowdown, StepGain};

/// A plan, and its gain if there is a recording.
#[derive(Clone, Copy, Debug)]
pub struct TunePlanReport<'a> {
    /// The changes and the boot parameters.
    pub plan: &'a Plan,
    /// The gains of its changes; `None` without a recording.
    pub gains: Option<&'a Gains>,
}

impl Report for TunePlanReport<'_> {
    fn schema(&self) -> &'static str {
        "becalm.tune-plan/1"
    }

    fn document(&self) -> impl Serialize {
        document(self.plan, self.gains)
    }

    fn view(&self, form: Form) -> Page {
        let plan = self.plan;
        let mut blocks = changes(self, form.all());
        blocks.extend(self.gains.into_iter().flat_map(|gains| gain_blocks(plan, gains)));
        blocks.extend(risks(plan));
        blocks.extend(plan.notes.first().map(|_| Block::gap()));
        blocks.extend(plan.notes.iter().map(|note| Block::warning(format!("{}: {}", note.family, note.text))));
        blocks.extend(boot(plan));
        let (title, subtitle) =
            ("Plan to isolate CPUs".to_owned(), format!("{}, for {}", cpus(&plan.cpus), plan.profile));
        let sections = vec![Section::new("plan", "Plan", "Changes", blocks)];
        Page { title, subtitle, sections, foot: Vec::new() }
    }
}

/// A row of the table: one change, or several similar ones.
struct PlannedChange {
    number: u64,
    family: Family,
    knob: String,
    from: String,
    to: String,
    reason: String,
    /// The slowdown without it, at the most ranks.
    without: Option<f64>,
}

fields! {
    CHANGE, change: PlannedChange {
        STEP = "step", "step", |row| Number(row.number);
        FAMILY = catalogue::FAMILY, |row| row.family.to_string();
        KNOB = catalogue::KNOB, |row| row.knob.clone();
        FROM = "from", "now", |row| row.from.clone();
        TO = "to", "to", |row| row.to.clone();
        REASON = "reason", "why", |row| row.reason.clone();
        WITHOUT_RATIO = "without_ratio", "slowdown without", |row| row.without.map(Factor);
    }
}

fields! {
    GAIN, gain: Gain {
        GRAIN_NS = "grain_ns", "grain", |row| row.job.grain;
        RANKS = catalogue::RANKS, |row| row.job.ranks;
        SLOWDOWN_RATIO = catalogue::SLOWDOWN_RATIO, |row| Factor(row.slowdown.mean);
        SLOWDOWN_LOW = "slowdown_low", "low", |row| row.slowdown.low.map(Factor);
        SLOWDOWN_HIGH = "slowdown_high", "high", |row| row.slowdown.high.map(Factor);
        WITHOUT_RATIO = "without_ratio", "with the plan, at best", |row| Factor(row.without.mean);
        WITHOUT_LOW = "without_low", "low", |row| row.without.low.map(Factor);
        WITHOUT_HIGH = "without_high", "high", |row| row.without.high.map(Factor);
    }
}

fields! {
    /// Fields only of tables.
    gain_columns: Gain {
        INTERVAL = "interval", "95 % CI", |row| interval(&row.slowdown);
        WITHOUT_INTERVAL = "without_interval", "95 % CI", |row| interval(&row.without);
    }
}

fn interval(slowdown: &PredictedSlowdown) -> Option<String> {
    rounded::interval(slowdown.low, slowdown.high)
}

#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub(crate) struct PlanDocument<'a> {
    cpus: &'a CpuList,
    left_idle: &'a CpuList,
    siblings: &'a CpuList,
    housekeeping: &'a CpuList,
    profile: Profile,
    steps: Vec<StepDocument<'a>>,
    boot: &'a [BootParameter],
    command_line: String,
    notes: &'a [Note],
    gains: Vec<Object<Gain>>,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
struct StepDocument<'a> {
    step: u64,
    family: Family,
    knob: String,
    from: &'a str,
    to: &'a str,
    or_else: &'a [String],
    reason: &'a str,
    risk: &'a str,
    sources: &'a [String],
    gains: Vec<WithoutDocument>,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
struct WithoutDocument {
    grain_ns: i64,
    ranks: u64,
    without_ratio: f64,
    without_low: Option<f64>,
    without_high: Option<f64>,
}

fn document<'a>(plan: &'a Plan, gains: Option<&'a Gains>) -> PlanDocument<'a> {
    PlanDocument {
        cpus: &plan.cpus,
        left_idle: &plan.left_idle,
        siblings: &plan.siblings,
        housekeeping: &plan.housekeeping,
        profile: plan.profile,
        steps: numbered(plan, gains).map(|(number, change, gain)| step_document(number, change, gain)).collect(),
        boot: &plan.boot,
        command_line: plan.command_line(),
        notes: &plan.notes,
        gains: gains.iter().flat_map(|gains| &gains.total).map(Object::new).collect(),
    }
}

/// The steps of a plan with their numbers, from 1, and their gains.
fn numbered<'a>(
    plan: &'a Plan,
    gains: Option<&'a Gains>,
) -> impl Iterator<Item = (u64, &'a Change, Option<&'a StepGain>)> {
    let gain = move |at: usize| gains.and_then(|gains| gains.steps.get(at));
    plan.steps.iter().enumerate().map(move |(at, change)| (at as u64 + 1, change, gain(at)))
}

fn step_document<'a>(number: u64, change: &'a Change, gain: Option<&'a StepGain>) -> StepDocument<'a> {
    let without = gain.map_or(&[][..], |gain| &gain.without);
    StepDocument {
        step: number,
        family: change.family,
        knob: change.knob.to_string(),
        from: &change.from,
        to: &change.to,
        or_else: &change.or_else,
        reason: &change.reason,
        risk: change.risk.as_deref().unwrap_or_default(),
        sources: gain.map_or(&[][..], |gain| &gain.sources),
        gains: without.iter().map(without_document).collect(),
    }
}

fn without_document((job, without): &(GainJob, PredictedSlowdown)) -> WithoutDocument {
    WithoutDocument {
        grain_ns: job.grain.get(),
        ranks: job.ranks,
        without_ratio: without.mean,
        without_low: without.low,
        without_high: without.high,
    }
}

/// The CPUs and the changes. Similar changes share a row, unless `all`.
fn changes(report: &TunePlanReport<'_>, all: bool) -> Vec<Block> {
    let TunePlanReport { plan, gains } = *report;
    let mut facts = vec![("isolate".to_owned(), format!("{}, for {}", cpus(&plan.cpus), plan.profile))];
    let others = [("idle", &plan.left_idle), ("offline", &plan.siblings)];
    let others = others.into_iter().filter(|(_, cpus)| !cpus.is_empty()).chain([("housekeeping", &plan.housekeeping)]);
    facts.extend(others.map(|(label, list)| (label.to_owned(), cpus(list))));
    let mut names = vec!["step", "family", "knob", "from", "to", "reason"];
    names.extend(gains.map(|_| "without_ratio"));
    let rows = rows(plan, gains, !all);
    let mut blocks = vec![Block::Facts(facts), Block::gap()];
    if plan.steps.is_empty() {
        blocks.push(Block::Text("nothing to change: every setting already has its value".to_owned()));
    } else {
        let mut table = Table::filled(&columns(CHANGE, &names), &rows).captioned("The changes");
        if gains.is_some() {
            round(&mut table, names.len() - 1);
        }
        blocks.extend(listed(table, rows.iter().flat_map(entries).collect()));
    }
    blocks
}

/// A change, and its reason below it.
fn entries(row: &PlannedChange) -> [Block; 2] {
    let without = row.without.map(|ratio| format!("; slowdown without it {}", times(ratio))).unwrap_or_default();
    let first = format!("  {:>4}  {:<10}  ", row.number, row.family.to_string());
    let blank = " ".repeat(first.chars().count());
    let change = transition(&row.knob, &row.from, &row.to);
    [Block::entry(first, change), Block::entry(blank, format!("{}{without}", row.reason))]
}

fn gain_blocks(plan: &Plan, gains: &Gains) -> Vec<Block> {
    let Some(shown) = gains.total.get(shown_job(gains)) else { return Vec::new() };
    let grains: Vec<&[Gain]> = gains.total.chunk_by(|one, other| one.job.grain == other.job.grain).collect();
    let phases = if let [one] = grains[..] { format!(", in phases of {}", one[0].job.grain) } else { String::new() };
    let from = format!("the noise of {} in {}{phases}", cpus(&plan.cpus), gains.run.display());
    let mut fields = if grains.len() > 1 { vec![&gain::GRAIN_NS] } else { Vec::new() };
    fields.extend([&gain::RANKS, &gain::SLOWDOWN_RATIO, &gain_columns::INTERVAL]);
    fields.extend([&gain::WITHOUT_RATIO, &gain_columns::WITHOUT_INTERVAL]);
    let mut table = Table::new(&fields).captioned("The slowdown now and with the plan");
    for rows in &grains {
        table.rule();
        rows.iter().for_each(|row| table.row(&fields, row));
    }
    round(&mut table, fields.len() - 4);
    round(&mut table, fields.len() - 2);
    let phases = if grains.len() > 1 { format!(" and phases of {}", shown.job.grain) } else { String::new() };
    let text = format!(
        "a change's slowdown is for {} ranks{phases}, now {}, if it removes all of the noise that it targets",
        grouped(shown.job.ranks),
        times(shown.slowdown.mean)
    );
    let title = format!("largest possible gain, predicted from {from}:");
    vec![Block::gap(), Block::Text(title), Block::gap(), Block::Table(table), Block::Text(text)]
}

/// The index of the job next to the changes: the last one of the first grain, with the most ranks.
fn shown_job(gains: &Gains) -> usize {
    let first = gains.total.first().map(|gain| gain.job.grain);
    gains.total.iter().take_while(|gain| Some(gain.job.grain) == first).count().saturating_sub(1)
}

fn risks(plan: &Plan) -> Vec<Block> {
    let mut risks: Vec<String> = Vec::new();
    for change in &plan.steps {
        let risk = change.risk.as_ref().map(|risk| format!("{}: {risk}", change.family));
        risks.extend(risk.filter(|risk| !risks.contains(risk)));
    }
    if risks.is_empty() {
        return Vec::new();
    }
    let title = [Block::gap(), Block::Text("risks".to_owned())];
    title.into_iter().chain(risks.into_iter().map(|risk| Block::entry("    ", risk))).collect()
}

fn boot(plan: &Plan) -> Vec<Block> {
    if plan.boot.is_empty() {
        return Vec::new();
    }
    let line = plan.command_line();
    let title = "needs a reboot, with these parameters on the kernel's command line:".to_owned();
    // On one line of any length, for copying.
    let lines = vec![String::new(), format!("    {line}"), String::new()];
    let line = Block::OnPage(vec![Block::entry("", line)]);
    let mut blocks = vec![Block::gap(), Block::Text(title), Block::Lines(lines), line];
    blocks.extend(plan.boot.iter().map(|parameter| {
        let risk = parameter.risk.as_ref().map(|risk| format!(" (but {risk})")).unwrap_or_default();
        Block::entry("    ", format!("{}: {}{risk}", parameter.name, parameter.reason))
    }));
    blocks
}

/// Follows the reason of the first of several.
const MORE: &str = ", and others";

/// The rows of the table. Similar changes may be merged into the first, except those with a gain of their own.
fn rows(plan: &Plan, gains: Option<&Gains>, merge: bool) -> Vec<PlannedChange> {
    let mut merged: Vec<(u64, &Change, PlannedChange)> = Vec::new();
    let key = |change: &Change| (alike(change), change.from.clone(), change.to.clone());
    for (number, change, gain) in numbered(plan, gains) {
        let without = gain.zip(gains).and_then(|(gain, gains)| gain.without.get(shown_job(gains)));
        let without = without.map(|(_, without)| without.mean);
        let may_join = merge && without.is_none() && alike(change).is_some();
        let same = |seen: &Change, row: &PlannedChange| row.without.is_none() && key(seen) == key(change);
        match merged.iter_mut().find(|(_, seen, row)| may_join && same(seen, row)) {
            Some((count, seen, row)) => {
                *count += 1;
                row.knob = format!("{count} {}", alike(seen).unwrap_or_default());
                if row.reason != change.reason && !row.reason.ends_with(MORE) {
                    row.reason += MORE;
                }
            }
            None => merged.push((1, change, row(number, change, without))),
        }
    }
    merged.into_iter().map(|(_, _, row)| row).collect()
}

fn row(number: u64, change: &Change, without: Option<f64>) -> PlannedChange {
    let or_else = change.or_else.iter().map(|value| format!("else {value}"));
    PlannedChange {
        number,
        family: change.family,
        knob: change.knob.to_string(),
        from: shown(&change.knob, &change.from),
        to: std::iter::once(shown(&change.knob, &change.to)).chain(or_else).collect::<Vec<_>>().join(", "),
        reason: change.reason.clone(),
        without,
    }
}

#[cfg(test)]
mod tests {
    use crate::document::Knob;
    use becalm_units::Nanos;

    use super::*;
    use becalm_report as report;

    fn thread(tid: i32, comm: &str) -> Change {
        Change {
            family: Family::Affinity,
            knob: Knob::Affinity { tid, start_ticks: 0, comm: comm.into() },
            from: "0-1".into(),
            to: "0".into(),
            or_else: Vec::new(),
            after: false,
            reason: "it may run on any CPU".into(),
            risk: Some("a risk".into()),
            removes: Vec::new(),
        }
    }

    fn plan(steps: Vec<Change>) -> Plan {
        Plan {
            cpus: "1".parse().unwrap(),
            left_idle: CpuList::default(),
            siblings: CpuList::default(),
            housekeeping: "0".parse().unwrap(),
            profile: Profile::Hpc,
            steps,
            boot: Vec::new(),
            notes: Vec::new(),
        }
    }

    fn text(plan: &Plan, gains: Option<&Gains>, all: bool) -> String {
        report::text(&TunePlanReport { plan, gains }, Form::default().with_all(all))
    }

    #[test]
    fn what_is_alike_is_one_row_in_the_table_and_apart_in_the_document() {
        let group = Change { knob: Knob::Group { path: "/sys/fs/cgroup/becalm".into() }, ..thread(0, "") };
        let plan = plan(vec![thread(7, "a"), thread(8, "b"), group]);
        let (short, long) = (text(&plan, None, false), text(&plan, None, true));
        assert!(short.contains("2 tasks and kernel threads") && !short.contains("CPUs of b"), "{short}");
        assert!(long.contains("CPUs of b (8)"));
        // Each risk once.
        assert_eq!(short.matches("a risk").count(), 1);
        let document: serde_json::Value =
            serde_json::from_str(&report::json(&TunePlanReport { plan: &plan, gains: None })).unwrap();
        assert_eq!(document["schema"], "becalm.tune-plan/1");
        assert_eq!(document["steps"].as_array().unwrap().len(), 3);
        assert_eq!(document["steps"][1]["knob"], "CPUs of b (8)");
    }

    #[test]
    fn what_has_a_gain_of_its_own_is_a_row_of_its_own() {
        let plan = plan(vec![thread(7, "a"), thread(8, "b"), thread(9, "c")]);
        let slowdown = |mean| PredictedSlowdown { mean, low: Some(1.1), high: None };
        let gains = |jobs: &[(i64, f64, f64)]| {
            let job = |millis: i64| GainJob { grain: Nanos::from_millis(millis), ranks: 64 };
            let without = jobs.iter().map(|(grain, _, left)| (job(*grain), slowdown(*left))).collect();
            let gaining = StepGain { sources: vec!["task b".into()], without };
            let total = jobs.iter().map(|(grain, now, left)| Gain {
                job: job(*grain),
                slowdown: slowdown(*now),
                without: slowdown(*left),
            });
            let steps = vec![StepGain::default(), gaining, StepGain::default()];
            Gains { run: "run.becalm".into(), total: total.collect(), steps }
        };
        let one = text(&plan, Some(&gains(&[(1, 1.5, 1.25)])), false);
        assert!(one.contains("2 tasks and kernel threads") && one.contains("CPUs of b (8)"), "{one}");
        assert!(one.contains("1.25") && one.contains("in phases of 1ms:") && !one.contains("grain"), "{one}");
        assert_eq!(one.matches("from 1.10").count(), 2, "{one}");

        // With several grains, each has rows, and the first is next to the changes.
        let two = gains(&[(1, 1.5, 1.25), (2, 1.75, 1.375)]);
        let both = text(&plan, Some(&two), false);
        assert!(both.contains("grain") && both.contains("2.00ms") && !both.contains("in phases of"), "{both}");
        assert!(both.contains("for 64 ranks and phases of 1ms, now 1.5,"), "{both}");
        assert_eq!((both.matches("1.25").count(), both.matches("1.38").count()), (2, 1), "{both}");
        let document: serde_json::Value =
            serde_json::from_str(&report::json(&TunePlanReport { plan: &plan, gains: Some(&two) })).unwrap();
        assert_eq!(document["gains"][1]["grain_ns"], 2_000_000);
        assert_eq!(document["steps"][1]["gains"][1]["grain_ns"], 2_000_000);
    }
}
