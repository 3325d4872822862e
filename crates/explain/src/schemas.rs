//! The documents of `becalm explain`.

use crate::document::ExplainedDoc;

becalm_report::documents! {
    "explained": ExplainedDoc, "becalm explain", "why slow spans of a program were slow";
}
