//! What `becalm tune` has to say: what stands in the way, what would be changed, what was changed, and what each
//! configuration of a study came to.

pub(crate) mod check;
pub(crate) mod done;
pub(crate) mod knob;
pub(crate) mod plan;
pub(crate) mod study;
