//! The document of `becalm top`.

use crate::grids::TopDocument;

becalm_report::documents! {
    "top": TopDocument, "becalm top", "the live view, update by update";
}
