//! The documents of this crate, for their JSON schemas.

use crate::{paper, platforms, study, sweep};

becalm_report::documents! {
    "paper": paper::report::PaperDocument, "becalm paper NAME", "the figures of a paper, published and reproduced";
    "paper-step": paper::step_document::StepDocument, "steps/NAME.json of becalm paper", "a step of a campaign, and what it printed";
    "platforms": platforms::PlatformsDocument, "becalm report RUN --platforms", "published platforms next to these recordings";
    "study-report": study::report::StudyDocument, "becalm study", "configurations of a machine compared";
    "study": study::StudyDoc, "study.json of becalm study", "configurations and their recordings";
    "inject-sweep": sweep::SweepDocument, "becalm inject with lists", "many noises that were made one after the other";
}
