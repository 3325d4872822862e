//! The documents of research, for their JSON schemas.

use crate::paper;

becalm_report::documents! {
    "paper": paper::report::PaperDocument, "becalm paper NAME", "the figures of a paper, published and found again";
    "paper-step": paper::StepDocument, "steps/NAME.json of becalm paper", "a step of a campaign, and what it printed";
}
