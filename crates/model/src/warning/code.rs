//! The codes of all warnings, and their effect on a verdict: whether limits are kept, what changed, which node differs.

use becalm_units::counted;

use crate::NodeDoc;
use crate::node::Warning;

/// The effect of a warning on a verdict.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Bearing {
    /// It does not concern how much time was lost, how, or to what.
    None,
    /// It limits the figures, and is shown with each verdict on them.
    Shown,
    /// The data does not support a verdict: the result is "not enough data".
    NotEnough,
}

macro_rules! codes {
    ($($code:ident: $bearing:ident,)+) => {
        /// The subject of a warning. Its name in documents is the code.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        #[derive(strum::Display, strum::EnumString, strum::IntoStaticStr, strum::VariantArray)]
        #[strum(serialize_all = "snake_case")]
        #[expect(missing_docs, reason = "the functions that make the warnings say what each is about")]
        pub enum Code {
            $($code,)+
        }

        impl Code {
            /// The warning's effect on a verdict.
            pub const fn bearing(self) -> Bearing {
                match self {
                    $(Self::$code => Bearing::$bearing,)+
                }
            }
        }
    };
}

codes! {
    BeganLate: Shown,
    BelowCommonThreshold: Shown,
    BooksOpen: Shown,
    BrokenPages: Shown,
    BuffersLeftOut: Shown,
    CacheUnknown: None,
    ClocksDiffer: Shown,
    ClocksDisagree: NotEnough,
    CoarseStamps: Shown,
    CounterBackwards: NotEnough,
    CountersDiffer: Shown,
    CpusDiffer: None,
    CpusLeftOut: Shown,
    CpusTogether: None,
    CutShort: NotEnough,
    CutToCommon: Shown,
    DrawnOfSummary: Shown,
    Failed: NotEnough,
    FairServer: Shown,
    GrainTooShort: None,
    Imported: Shown,
    ImportedCut: NotEnough,
    ImportedEndToEnd: Shown,
    ImportedEndUnknown: Shown,
    ImportedLinesLeftOut: Shown,
    ImportedRowsMissing: NotEnough,
    ImportedStoreFull: Shown,
    ImportedValuesPutIn: Shown,
    ImportedWidthUnknown: Shown,
    LateStart: None,
    LoopDisturbed: Shown,
    LostEvents: Shown,
    MemoryNotLocked: Shown,
    MissingEvents: None,
    NoBlame: None,
    NoCauses: None,
    NoFreeCpu: None,
    NoHostName: None,
    NoJanitor: None,
    NoLoop: Shown,
    NoSymbols: None,
    NoTracing: None,
    NodeLeftOut: Shown,
    NotCompared: None,
    NotEnded: NotEnough,
    RowsDiffer: NotEnough,
    RowsUnlisted: NotEnough,
    RtThrottling: Shown,
    SchedDiffers: None,
    SeenDifferently: None,
    ShortFormula: Shown,
    ShortRecording: Shown,
    SlowClock: Shown,
    SourcesUnknown: None,
    StealUnknown: Shown,
    SummaryForm: Shown,
    TMinDiffers: None,
    TakenForPrograms: Shown,
    ThreadsLeftOut: Shown,
    TraceChanged: Shown,
    TracerPaused: NotEnough,
    TracerTainted: NotEnough,
    UnmatchedEvents: None,
    Unstored: Shown,
    UntracedInterrupts: None,
    WallClockOff: None,
}

impl Warning {
    /// The known code; `None` for a code of another program.
    pub fn known(&self) -> Option<Code> {
        self.code.parse().ok()
    }

    /// The effect on a verdict. Warnings of other programs may have any effect, and are shown.
    pub fn bearing(&self) -> Bearing {
        self.known().map_or(Bearing::Shown, Code::bearing)
    }
}

/// The warnings of some nodes that affect a verdict, each code once: many nodes often have the same warning.
pub fn bearing_warnings<'a>(docs: impl IntoIterator<Item = &'a NodeDoc>) -> Vec<Warning> {
    let mut found: Vec<(&Warning, &str, u64)> = Vec::new();
    let mut nodes = 0_usize;
    for doc in docs {
        nodes += 1;
        for warning in doc.bearing_warnings() {
            match found.iter_mut().find(|(first, ..)| first.code == warning.code) {
                Some((_, node, others)) if *node != doc.node => *others += 1,
                Some((first, ..)) if **first == *warning => {}
                _ => found.push((warning, &doc.node, 0)),
            }
        }
    }
    let told = |(warning, node, others): (&Warning, &str, u64)| {
        let message = match (nodes, others) {
            (..=1, _) => warning.message.clone(),
            (_, 0) => format!("{node}: {}", warning.message),
            (_, others) => {
                format!(
                    "{node}: {}; {} of other nodes",
                    warning.message,
                    counted(others, "such warning", "such warnings")
                )
            }
        };
        Warning { message, ..warning.clone() }
    };
    found.into_iter().map(told).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_is_known_by_its_name() {
        let warning = Warning::new(Code::NotEnded, "", "");
        assert_eq!((warning.code.as_str(), warning.known()), ("not_ended", Some(Code::NotEnded)));
        assert_eq!(warning.bearing(), Bearing::NotEnough);
        let foreign = Warning { code: "of_tomorrow".to_owned(), ..warning };
        assert_eq!((foreign.known(), foreign.bearing()), (None, Bearing::Shown));
    }
}
