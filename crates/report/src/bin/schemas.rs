//! Writes the JSON schemas of becalm's documents into the book, and the page that lists them: `becalm-schemas docs/src`.

use std::path::Path;

fn main() -> std::io::Result<()> {
    let book = std::env::args_os().nth(1).unwrap_or_else(|| "docs/src".into());
    becalm_report::schemas::write(Path::new(&book))
}
