//! What `becalm tune` has to say: what stands in the way, what would be changed, and what was changed.

pub(crate) mod check;
pub(crate) mod done;
pub(crate) mod knob;
pub(crate) mod plan;
