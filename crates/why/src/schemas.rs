//! The documents of `becalm why`.

use crate::document::WhyDoc;

becalm_report::documents! {
    "why": WhyDoc, "becalm why", "who requested the activities of a recording";
}
