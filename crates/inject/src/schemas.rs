//! The document of `becalm inject`.

use crate::report::InjectDocument;

becalm_report::documents! {
    "inject": InjectDocument, "becalm inject", "noise that was made";
}
