//! The formats that can be read, by name.

use becalm_units::UnknownName;

/// A format that can be read. The order is that of the book's page.
#[derive(
    Clone,
    Copy,
    PartialEq,
    Eq,
    Hash,
    Debug,
    strum::Display,
    strum::EnumString,
    strum::IntoStaticStr,
    strum::VariantArray,
)]
#[strum(serialize_all = "kebab-case", parse_err_ty = UnknownName, parse_err_fn = unknown)]
pub enum Format {
    /// Detours as selfish benchmarks print them, among them netgauge's.
    Selfish,
    /// What `trace-cmd record` writes.
    TraceDat,
    /// What `perf script` prints of kernel events.
    PerfScript,
}

fn unknown(text: &str) -> UnknownName {
    UnknownName::new::<Format>("format", text)
}
