//! The documents of research, for their JSON schemas.

use crate::{paper, platforms};

becalm_report::documents! {
    "paper": paper::report::PaperDocument, "becalm paper NAME", "the figures of a paper, published and found again";
    "paper-step": paper::StepDocument, "steps/NAME.json of becalm paper", "a step of a campaign, and what it printed";
    "platforms": platforms::PlatformsDocument, "becalm report RUN --platforms", "published platforms beside these runs";
}
