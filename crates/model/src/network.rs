//! The document of a measured network, stored and printed by `becalm-mpi network`: the costs of messages between two ranks, and the parameters
//! derived from them.

use becalm_units::Nanos;
use serde::{Deserialize, Serialize};

/// The version of the document's schema that this program writes and reads.
pub const SCHEMA: &str = "becalm.network/1";

/// What messages cost between two nodes and within one.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct NetworkDoc {
    /// The schema that the document follows: [`SCHEMA`].
    pub schema: String,
    /// The parameters that follow, as `becalm predict --network` takes them: `L=1us,o=200ns,g=50ns,G=0.1ns`. Where only one pair could
    /// measure, they are those of its messages, for all.
    pub network: String,
    /// Nodes of the job that measured.
    pub nodes: u32,
    /// The MPI library's own words.
    pub library: String,
    /// What rank 0 measured with a rank of another node; `None` where there was none.
    pub between: Option<MessagesDoc>,
    /// What rank 0 measured with another rank of its node; `None` where there was none.
    pub within: Option<MessagesDoc>,
    /// Facts that the reader must know before believing the numbers.
    pub warnings: Vec<String>,
}

/// What messages between two ranks took. Times are medians.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct MessagesDoc {
    /// The two ranks: rank 0, which measured, and the one that answered.
    pub ranks: [u32; 2],
    /// A round trip of messages of 8 bytes.
    pub round_trip_ns: Nanos,
    /// How long sending 8 bytes keeps the sender.
    pub send_ns: Nanos,
    /// How long sending `copied_bytes` keeps it.
    pub copied_send_ns: Nanos,
    /// The bytes of the longer of these two messages, whose sender does not wait for a receiver.
    pub copied_bytes: u64,
    /// From one message of a burst to the next.
    pub burst_ns: Nanos,
    /// A round trip of messages of 256 KiB.
    pub round_trip_256k_ns: Nanos,
    /// A round trip of messages of 1 MiB.
    pub round_trip_1m_ns: Nanos,
    /// The largest message whose sender did not wait for a receiver that stayed away, in bytes; `None` where no sender waited.
    pub eager_bytes: Option<u64>,
}
