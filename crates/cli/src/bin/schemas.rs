//! Writes the JSON schemas of becalm's documents into the book, and the page that lists them: `becalm-schemas docs/src`.

use std::path::Path;

use becalm_report::schemas::{self, Document};

fn main() -> std::io::Result<()> {
    let book = std::env::args_os().nth(1).unwrap_or_else(|| "docs/src".into());
    let lists = [
        schemas::DOCUMENTS,
        becalm_cost::schemas::DOCUMENTS,
        becalm_fleet::schemas::DOCUMENTS,
        becalm_foreign::schemas::DOCUMENTS,
        becalm_inject::schemas::DOCUMENTS,
        becalm_live::schemas::DOCUMENTS,
        becalm_explain::schemas::DOCUMENTS,
        becalm_observe::schemas::DOCUMENTS,
        becalm_research::schemas::DOCUMENTS,
        becalm_tune::schemas::DOCUMENTS,
        becalm_why::schemas::DOCUMENTS,
    ];
    let documents: Vec<&Document> = lists.into_iter().flatten().collect();
    schemas::write(Path::new(&book), &documents)
}
