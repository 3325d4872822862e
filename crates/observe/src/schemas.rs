//! The documents of `becalm observe`.

use crate::compare::CompareObservedDoc;
use crate::detours::DetoursObservedDoc;
use crate::document::ObservedDoc;

becalm_report::documents! {
    "observed": ObservedDoc, "becalm observe, becalm report RUN, runs/node=HOST.json", "where the time of observed threads went";
    "compare-observed": CompareObservedDoc, "becalm compare A B", "whether observed threads got their CPU better or worse";
    "detours-observed": DetoursObservedDoc, "becalm detours RUN", "single waits and interruptions of observed threads";
}
