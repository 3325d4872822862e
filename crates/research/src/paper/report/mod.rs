//! A reproduced paper, with published figures next to those of this machine: for a terminal, as `becalm.paper/1`, and as a page.

mod view;

use std::collections::{HashMap, HashSet};

use becalm_report::form::field::{Field, Object, field, fields};
use becalm_report::form::figure::Change;
use becalm_report::form::section::Page;
use becalm_report::form::sheet::Form;
use becalm_report::{Report, Value};
use becalm_units::counted;
use serde::Serialize;

use super::catalogue::{Figure, Item, Limit, Paper, Step};
use super::reading::at;
use super::verdict::{Verdict, digits};

/// A paper, and the results of a campaign of its steps.
#[derive(Clone, Debug)]
pub struct PaperReport {
    /// Its name in commands, like `beckman2007`.
    pub name: String,
    /// The paper.
    pub paper: Paper,
    /// The requested tables and figures.
    pub items: Vec<Item>,
    /// Whether the campaign was a quick one.
    pub quick: bool,
    /// This machine, in words.
    pub here: String,
    /// The documents of completed steps, by step name.
    pub documents: HashMap<String, serde_json::Value>,
    /// The command of each step, from `becalm` on.
    pub commands: HashMap<String, String>,
    /// The steps with pages in the campaign's directory.
    pub pages: HashSet<String>,
    /// Why the others were not completed, by step name.
    pub lacking: HashMap<String, String>,
    /// Errors of steps that cannot fail on any machine, by step name.
    pub broken: HashMap<String, String>,
}

/// A published figure with that of this machine.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    figure: Figure,
    ours: Option<f64>,
    verdict: Verdict,
}

fields! {
    /// The fields of a figure.
    pub(crate) ROW, row: Row {
        WHAT = "what", "what", |row| row.figure.what.clone();
        PUBLISHED = "published", "published", |row| row.figure.published.text(row.figure.unit);
        HERE = "here", "this machine", |row| {
            row.ours.map(|ours| row.figure.unit.text(&digits(ours)))
        };
        DIFFERENCE = "difference_ratio", "difference", |row| {
            let of_machine = row.figure.of_machine;
            let difference = row.ours.filter(|_| !of_machine).and_then(|ours| row.figure.published.difference(ours));
            difference.map(Change)
        };
        VERDICT = "verdict", "verdict", |row| row.verdict();
    }
}

/// The figure of this machine for people.
const SHORT_HERE: Field<Row> =
    field!("here", "this machine", |row| { row.ours.map(|ours| row.figure.unit.text(&Value::Often(ours).cell())) });

/// The verdict for people; the reasons for missing figures are printed separately.
const SHORT_VERDICT: Field<Row> = field!("verdict", "verdict", |row| {
    match row.verdict {
        Verdict::Holds => "reproduced".to_owned(),
        Verdict::Stated => "no verdict".to_owned(),
        Verdict::OtherMachine => "depends on the machine".to_owned(),
        Verdict::Lacking(_) => "not measured".to_owned(),
        Verdict::Not(_) | Verdict::Broken(_) => row.verdict(),
    }
});

impl Row {
    fn verdict(&self) -> String {
        match &self.verdict {
            Verdict::Holds => "holds".to_owned(),
            Verdict::Not(by) => format!("no, by {}", Value::Change(*by).cell()),
            Verdict::Stated => "stated".to_owned(),
            Verdict::OtherMachine => "another machine".to_owned(),
            Verdict::Lacking(why) => format!("not here: {why}"),
            Verdict::Broken(why) => format!("an error of becalm: {why}"),
        }
    }
}

/// The number of lines with outcomes above the items.
const OUTCOMES: usize = 8;

/// The number of failed figures that are named per item.
const WORST: usize = 3;

/// How many figures came to what.
#[derive(Clone, Copy, Default, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
struct Counts {
    figures: usize,
    hold: usize,
    not: usize,
    stated: usize,
    other_machine: usize,
    lacking: usize,
    broken: usize,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
struct ItemDocument {
    name: String,
    title: String,
    lacking: Option<String>,
    figures: Vec<Object<Row>>,
    commands: Vec<String>,
    files: Vec<String>,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub(crate) struct PaperDocument {
    paper: String,
    citation: String,
    published_machine: String,
    here: String,
    quick: bool,
    counts: Counts,
    items: Vec<ItemDocument>,
}

impl PaperReport {
    fn rows(&self, item: &Item) -> Vec<Row> {
        let row = |figure: &Figure| {
            let ours = figure.reading.value(|step| self.documents.get(step));
            let verdict = match ours {
                Some(_) if figure.beside => Verdict::Stated,
                Some(ours) => figure.published.verdict(ours, figure.of_machine),
                None => self.why(figure),
            };
            Row { figure: figure.clone(), ours, verdict }
        };
        item.figures.iter().map(row).collect()
    }

    /// Why this machine has no figure.
    fn why(&self, figure: &Figure) -> Verdict {
        let first = |reasons: &HashMap<String, String>| {
            figure.reading.terms().find_map(|term| reasons.get(&term.step)).cloned()
        };
        if let Some(why) = first(&self.broken) {
            return Verdict::Broken(why);
        }
        if let Some(why) = first(&self.lacking) {
            return Verdict::Lacking(why);
        }
        let document = self.documents.get(&figure.reading.of.step);
        let limit = figure.limit.as_ref().and_then(|limit| match limit {
            Limit::Is(why) => Some(why.clone()),
            Limit::Says(place) => Some(at(document?, place)?.as_str()?.to_owned()),
        });
        limit.map_or_else(
            || Verdict::Broken(format!("{} of the step {} is no number", figure.reading.of.at, figure.reading.of.step)),
            Verdict::Lacking,
        )
    }

    /// Why figures and drawings of an item are missing, each reason once; also if it has only drawings.
    fn reasons(&self, item: &Item) -> Vec<String> {
        let of_rows = self.rows(item).into_iter().filter_map(|row| match row.verdict {
            Verdict::Lacking(why) => Some(why),
            _ => None,
        });
        let of_steps = item.steps().filter_map(|step| self.lacking.get(step).cloned());
        let mut reasons = Vec::new();
        for reason in of_rows.chain(of_steps) {
            if !reasons.contains(&reason) {
                reasons.push(reason);
            }
        }
        reasons
    }

    /// Mismatches of becalm and its catalogue of papers, in words; each is an error of becalm, not of the machine.
    pub fn errors(&self) -> Vec<String> {
        let mut errors = Vec::new();
        for item in &self.items {
            let rows = self.rows(item).into_iter();
            errors.extend(rows.filter_map(|row| match row.verdict {
                Verdict::Broken(why) => Some(format!("{}, {}: {why}", item.name(), row.figure.what)),
                _ => None,
            }));
            let empty = item
                .bars
                .iter()
                .filter(|bars| self.documents.get(&bars.step).is_some_and(|document| bars.pairs(document).is_empty()));
            errors.extend(empty.map(|bars| format!("{}: there are no bars of the step {}", item.name(), bars.step)));
            for chart in &item.charts {
                let empty = chart.curves.iter().filter(|curve| !curve.may_lack).filter(|curve| {
                    self.documents
                        .get(&curve.step)
                        .is_some_and(|document| chart.points(curve, document).points.is_empty())
                });
                errors.extend(empty.map(|curve| format!("{}: the curve {} has no points", item.name(), curve.name)));
            }
        }
        errors
    }

    /// The steps behind an item, in their order, with those that make their input.
    fn steps(&self, item: &Item) -> Vec<&Step> {
        let is_named = |name: &str| item.steps().any(|step| step == name);
        let is_needed = |step: &&Step| {
            let read = self.paper.steps.iter().filter(|other| is_named(&other.name));
            is_named(&step.name) || read.flat_map(|other| &other.after).any(|name| *name == step.name)
        };
        self.paper.steps.iter().filter(is_needed).collect()
    }

    /// The commands behind an item, each once.
    fn commands(&self, item: &Item) -> Vec<String> {
        let mut commands = Vec::new();
        for command in self.steps(item).into_iter().filter_map(|step| self.commands.get(&step.name)) {
            if !commands.contains(command) {
                commands.push(command.clone());
            }
        }
        commands
    }

    /// The files behind an item, relative to the campaign's directory: documents of steps, recordings, and their pages.
    fn files(&self, item: &Item) -> Vec<String> {
        let files = |step: &Step| {
            let page = step.page_file().filter(|_| self.pages.contains(&step.name));
            std::iter::once(format!("steps/{}.json", step.name))
                .chain(step.makes.clone())
                .chain(page)
                .collect::<Vec<_>>()
        };
        let done = self.steps(item).into_iter().filter(|step| self.documents.contains_key(&step.name));
        done.flat_map(files).collect()
    }

    fn counts(&self) -> Counts {
        let mut counts = Counts::default();
        for row in self.items.iter().flat_map(|item| self.rows(item)) {
            counts.figures += 1;
            *match row.verdict {
                Verdict::Holds => &mut counts.hold,
                Verdict::Not(_) => &mut counts.not,
                Verdict::Stated => &mut counts.stated,
                Verdict::OtherMachine => &mut counts.other_machine,
                Verdict::Lacking(_) => &mut counts.lacking,
                Verdict::Broken(_) => &mut counts.broken,
            } += 1;
        }
        counts
    }

    /// The outcomes of items with verdicts: the name, and the figures that do not hold. At most [`OUTCOMES`] lines.
    fn outcomes(&self) -> Vec<(String, String)> {
        let outcome = |item: &Item| {
            let rows = self.rows(item);
            let hold = rows.iter().filter(|row| row.verdict == Verdict::Holds).count();
            let missed = |row: &Row| match row.verdict {
                Verdict::Not(by) => Some((by, row.figure.what.clone())),
                _ => None,
            };
            let mut not: Vec<(f64, String)> = rows.iter().filter_map(missed).collect();
            not.sort_by(|a, b| b.0.abs().total_cmp(&a.0.abs()));
            let all = hold + not.len();
            let worst: Vec<String> =
                (not.iter().take(WORST)).map(|(by, what)| format!("{what} ({})", Value::Change(*by).cell())).collect();
            let more = if not.len() > WORST { format!(" and {} more", not.len() - WORST) } else { String::new() };
            let but = if not.is_empty() { String::new() } else { format!("; not: {}{more}", worst.join(", ")) };
            (all > 0).then(|| (item.name(), format!("{hold} of {all} reproduced{but}")))
        };
        let mut outcomes: Vec<(String, String)> = self.items.iter().filter_map(outcome).collect();
        let more = outcomes.len().saturating_sub(OUTCOMES);
        if more > 0 {
            outcomes.truncate(OUTCOMES - 1);
            outcomes.push(("others".to_owned(), counted(more as u64 + 1, "item", "items")));
        }
        outcomes
    }

    /// The outcomes of all figures, in a sentence without a period.
    fn summary(&self) -> String {
        let Counts { hold, not, stated, other_machine, lacking, broken, .. } = self.counts();
        let compared = hold + not;
        let compared = match compared {
            0 => "no figure can be compared".to_owned(),
            _ => {
                format!("{hold} of {} reproduced", counted(compared as u64, "comparable figure", "comparable figures"))
            }
        };
        let others = [
            (stated, "cannot be compared", "cannot be compared"),
            (other_machine, "depends on the machine", "depend on the machine"),
            (lacking, "could not be measured here", "could not be measured here"),
            (broken, "failed because of an error in becalm", "failed because of errors in becalm"),
        ];
        let others = others.into_iter().filter(|(number, ..)| *number > 0);
        let others = others.map(|(number, one, many)| counted(number as u64, one, many));
        std::iter::once(compared).chain(others).collect::<Vec<_>>().join("; ")
    }
}

impl Report for PaperReport {
    fn schema(&self) -> &'static str {
        "becalm.paper/1"
    }

    fn document(&self) -> impl Serialize {
        let item = |item: &Item| ItemDocument {
            name: item.name(),
            title: item.title.clone(),
            lacking: Some(item.lacking.clone()).filter(|why| !why.is_empty()),
            figures: self.rows(item).iter().map(Object::new).collect(),
            commands: self.commands(item),
            files: self.files(item),
        };
        PaperDocument {
            paper: self.name.clone(),
            citation: self.paper.citation.clone(),
            published_machine: self.paper.machine.clone(),
            here: self.here.clone(),
            quick: self.quick,
            counts: self.counts(),
            items: self.items.iter().map(item).collect(),
        }
    }

    fn view(&self, _: Form) -> Page {
        view::page(self)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::paper::catalogue::{self, ItemKind};

    /// The report of a paper before any step.
    pub(super) fn empty(name: &str) -> PaperReport {
        let paper = catalogue::paper(name).unwrap();
        PaperReport {
            name: name.to_owned(),
            items: paper.items.clone(),
            paper,
            quick: true,
            here: "nowhere".to_owned(),
            documents: HashMap::new(),
            commands: HashMap::new(),
            pages: HashSet::new(),
            lacking: HashMap::new(),
            broken: HashMap::new(),
        }
    }

    /// A reason is printed once below a table, and also if only drawings are missing.
    #[test]
    fn reasons_are_said_once_and_also_for_drawings() {
        let lacking = [("tick", "no right to that"), ("rates", "no such event"), ("trap", "no clock")];
        let mut report = empty("tsafrir2007");
        report.items.retain(|item| [2, 13].contains(&item.number) && item.kind == ItemKind::Figure);
        report.lacking = lacking.map(|(step, why)| (step.to_owned(), why.to_owned())).into();
        let text = becalm_report::text(&report, Form::default());
        for (_, why) in lacking {
            assert_eq!(text.matches(&format!("  ! not measured: {why}")).count(), 1, "{text}");
            assert_eq!(text.matches(why).count(), 1, "{text}");
        }
        let mut page = Vec::new();
        report.page("becalm 0.0.0").unwrap().write(&mut page).unwrap();
        let page = String::from_utf8(page).unwrap();
        for (_, why) in lacking {
            assert_eq!(page.matches(&format!("<p>not measured: {why}</p>")).count(), 1, "{why}");
        }
    }

    /// A quantity that was published for several machines is one row, with this machine's figure once.
    #[test]
    fn a_figure_of_this_machine_is_there_once() {
        let mut report = empty("tsafrir2007");
        report.items.retain(|item| item.number == 2 && item.kind == ItemKind::Figure);
        report.items[0].table.clear();
        report.documents = HashMap::from([
            ("trap".to_owned(), json!({ "rows": [{ "mean_ps": 217_600 }] })),
            ("tick".to_owned(), json!({ "campaign": { "handler_ns": 5_840.0 } })),
        ]);
        assert_eq!(report.counts().other_machine, 18);
        let text = becalm_report::text(&report, Form::default());
        let row = |name: &str| -> Vec<&str> {
            let line = text.lines().find(|line| line.trim_start().starts_with(name)).expect("it has a row");
            line.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).collect()
        };
        let published = ["1.7 us", "1.91 us", "0.98 us", "0.52 us", "0.32 us", "0.72 us"];
        let cells = [&["trap by getpid", "0.218 us"][..], &published, &["depends on the machine"]].concat();
        assert_eq!(row("trap by getpid"), cells);
        assert_eq!(row("handler by interval timer")[1..3], ["5.84 us", "5.53 us"]);
        assert_eq!((text.matches("0.218 us").count(), text.matches("5.84 us").count()), (1, 2), "{text}");
    }

    /// Items with verdicts list their worst figures, and published tables as they are printed. Another estimator has no verdict.
    #[test]
    fn outcomes_name_what_does_not_hold() {
        let mut report = empty("radojkovic2008");
        assert!(report.outcomes().is_empty());
        let row =
            |ranks: u32, grain: u64, ratio: f64| json!({ "ranks": ranks, "grain_ns": grain, "slowdown_ratio": ratio });
        let rows = json!({ "rows": [row(1024, 100_000, 3.0), row(1024, 1_000_000, 1.5)] });
        report.documents.insert("figure1".to_owned(), rows);
        assert_eq!(report.outcomes().len(), 1);
        let (name, outcome) = &report.outcomes()[0];
        assert_eq!(
            (name.as_str(), outcome.as_str()),
            ("Figure 1", "1 of 2 reproduced; not: 1,024 CPUs, phases of 1 ms (+150%)")
        );

        report.items[0].figures[1].beside = true;
        assert_eq!((report.counts().stated, report.counts().not), (1, 0));
        assert!(report.summary().starts_with("1 of 1 comparable figure reproduced; "), "{}", report.summary());
        report.items[0].table = "tsafrir2007_table2.csv".to_owned();
        let text = becalm_report::text(&report, Form::default());
        assert!(text.contains("processor") && text.contains("PIII-1.133"), "{text}");
    }

    /// A figure that another machine may lack is reported. A figure that no machine may lack is an error, and so is a step that only
    /// computes and fails.
    #[test]
    fn errors_of_becalm_are_not_limits_of_the_machine() {
        let mut report = empty("de2009");
        let names: Vec<String> = report.paper.steps.iter().map(|step| step.name.clone()).collect();
        for name in &names {
            report.lacking.insert(name.clone(), "takes too long".to_owned());
        }
        assert_eq!(report.errors(), [""; 0]);
        let figures = report.counts().figures;
        assert_eq!((report.counts().lacking, report.counts().broken), (figures, 0));

        // All steps were run, and none has its results. The recording needs tracing, the study needs configurations that a machine may
        // lack, and the comparison needs their jobs; the output of a job and the ten simulations have no such reason.
        report.lacking.clear();
        report.documents = names.iter().map(|name| (name.clone(), json!({}))).collect();
        assert_eq!((report.counts().lacking, report.counts().broken), (figures - 10 - 8, 10 + 8));
        let errors = report.errors();
        assert_eq!(
            errors.len(),
            10 + 8 + 4 + 1 + 8 + 1,
            "figures, curves of Figures 4, 6 and 7, bars of Figure 8: {errors:?}"
        );
        assert!(
            errors[0]
                .starts_with("Figure 4, slowdown of baseline: /rows/4/slowdown_ratio of the step figure4-baseline")
        );

        // A step that only computes has failed.
        report.broken.insert("figure4-isolated".to_owned(), "no such file".to_owned());
        assert!(report.errors().contains(&"Figure 4, slowdown of isolated CPUs: no such file".to_owned()));
    }
}
