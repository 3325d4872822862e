//! The documents of `becalm top`.

use crate::grids::TopDocument;
use crate::observed::TopObservedDocument;

becalm_report::documents! {
    "top": TopDocument, "becalm top", "the live view, update by update";
    "top-observed": TopObservedDocument, "becalm top --observe", "an update of the live view of threads, one per line";
}
