//! Why the slow repetitions were slow, with the code of `becalm explain`. A program without that command does not tell it.

#[cfg(feature = "explain")]
pub use with::{SlowRuns, section, slow_runs};
#[cfg(not(feature = "explain"))]
pub use without::{SlowRuns, section, slow_runs};

#[cfg(feature = "explain")]
mod with {
    use becalm_explain::causes::{Cause, Class};
    use becalm_explain::document::ExplanationDoc;
    use becalm_explain::repetitions::{Repeated, explain_repetitions};
    use becalm_explain::report::causes;
    use becalm_model::observed::Owner;
    use becalm_report::Form;
    use becalm_report::form::section::{Block, Section};

    use crate::bench::repetitions::{LostTo, Repetition, STEAL};

    /// The explanation of the slow repetitions.
    pub type SlowRuns = ExplanationDoc;

    /// Explains the slow repetitions; `None` for too few, or if their losses were not observable.
    pub fn slow_runs(runs: &[Repetition]) -> Option<SlowRuns> {
        let repeated: Option<Vec<Repeated>> = runs.iter().map(repeated).collect();
        explain_repetitions(&repeated?)
    }

    /// A repetition with the causes of the lost time; `None` if that was not observable.
    fn repeated(run: &Repetition) -> Option<Repeated> {
        let cause = |lost: &LostTo| match lost.kind {
            Some(kind) => Cause::of_interruption(kind, &lost.source, ""),
            None if lost.source == STEAL => Cause::new(Class::Host, Owner::Host, STEAL),
            None => Cause::new(Class::Queued, Owner::Others, &lost.source),
        };
        let mut taken: Vec<(Cause, i64)> = run.sources.iter().map(|lost| (cause(lost), lost.ns)).collect();
        let rest = run.lost_ns? - taken.iter().map(|(_, ns)| ns).sum::<i64>();
        taken.push((Cause::new(Class::OnTop, Owner::Unknown, "other sources"), rest));
        Some(Repeated { ns: run.time_ns, taken })
    }

    /// The section of a report.
    pub fn section(found: &SlowRuns, form: Form) -> Section {
        let mut blocks = vec![Block::Text(found.sentence.clone())];
        let causes = causes(found, form.all());
        if !causes.is_empty() {
            blocks.push(Block::Table(causes));
        }
        if !found.advice.is_empty() {
            blocks.push(Block::Text(found.advice.clone()));
        }
        Section::named("slow", "Slow runs", blocks)
    }
}

#[cfg(not(feature = "explain"))]
mod without {
    use becalm_report::Form;
    use becalm_report::form::section::Section;
    use serde::Serialize;

    use crate::bench::repetitions::Repetition;

    /// No explanation of slow repetitions.
    #[derive(Clone, PartialEq, Debug, Serialize)]
    pub enum SlowRuns {}

    /// Explains nothing.
    pub const fn slow_runs(_: &[Repetition]) -> Option<SlowRuns> {
        None
    }

    /// The section of a report, for no explanation.
    pub fn section(found: &SlowRuns, _: Form) -> Section {
        match *found {}
    }
}
