//! The contents of a bundle, according to its nodes' documents: a recording, one in summary form, an imported distribution, a measurement of costs, a
//! tick campaign, or a parallel benchmark.

/// The contents of a bundle, the same for all of its nodes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Contents {
    /// Detours, or samples of work; see [`Bundle`](super::Bundle).
    Recording,
    /// A recording in summary form; see [`SummaryBundle`](super::SummaryBundle).
    Summary,
    /// A distribution that another program measured, imported by the crate `foreign`.
    Distribution,
    /// Samples of the costs of operations; see [`series`](super::series).
    Costs,
    /// Measurements of the same work at several interrupt rates; see [`node_document`](super::node_document).
    Campaign,
    /// Observed threads; see [`ObservedWriter`](super::ObservedWriter).
    Observed,
    /// Phases of a parallel benchmark; see [`PhaseRun`](super::PhaseRun).
    Phases,
}

impl Contents {
    /// The contents that belong to a schema; `None` if the schema is unknown.
    pub(super) fn from_schema(schema: &str) -> Option<Self> {
        [Self::Recording, Self::Summary, Self::Distribution, Self::Costs, Self::Campaign, Self::Observed, Self::Phases]
            .into_iter()
            .find(|contents| contents.schema() == schema)
    }

    /// The schema of its documents.
    pub const fn schema(self) -> &'static str {
        match self {
            Self::Recording => becalm_model::node::SCHEMA,
            Self::Summary => becalm_model::digest::SCHEMA,
            Self::Distribution => "becalm.distribution/1",
            Self::Costs => "becalm.cost/1",
            Self::Campaign => "becalm.tick-campaign/1",
            Self::Observed => "becalm.observed/1",
            Self::Phases => becalm_model::phases::SCHEMA,
        }
    }

    /// A phrase that follows "it holds".
    pub const fn words(self) -> &'static str {
        match self {
            Self::Recording => "a recording with its single detours",
            Self::Summary => "a recording in summary form",
            Self::Distribution => "a distribution of lengths that another program measured",
            Self::Costs => "costs that becalm cost measured",
            Self::Campaign => "a campaign of becalm cost tick",
            Self::Observed => "observed threads",
            Self::Phases => "phases of a parallel benchmark by becalm-mpi",
        }
    }

    /// Why no other contents can be stored there.
    pub(super) const fn occupies(self) -> &'static str {
        match self {
            Self::Recording => "it holds a recording",
            Self::Summary => "it holds a recording in summary form",
            Self::Distribution => "it holds a distribution of lengths that another program measured",
            Self::Costs => "it holds costs that becalm cost measured",
            Self::Campaign => "it holds a campaign of becalm cost tick",
            Self::Observed => "it holds observed threads",
            Self::Phases => "it holds phases of a parallel benchmark by becalm-mpi",
        }
    }
}
