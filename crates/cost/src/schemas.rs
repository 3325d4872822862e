//! The JSON schemas of documents that `becalm cost` prints or stores.

use crate::{documents, report};

becalm_report::documents! {
    "cost-clock": report::clock::ClockDocument, "becalm cost clock", "what reading a clock costs";
    "cost-trap": report::probe::ProbeDocument, "becalm cost trap", "what entering the kernel costs";
    "cost-detours": report::probe::ProbeDocument, "becalm cost detours", "what common detours cost";
    "cost-scheduler": report::scheduler::SchedulerDocument, "becalm cost scheduler", "what ticks and switches cost";
    "cost-placement": report::placement::PlacementDocument, "becalm cost placement", "what an interrupt costs by where work runs";
    "cost-tick": report::tick::TickDocument, "becalm cost tick", "what a tick costs in all";
    "cost": documents::CostDoc, "runs/node=HOST.json of becalm cost", "what was measured, but for the times";
    "tick-campaign": documents::tick::Campaign, "runs/node=HOST.json of becalm cost tick", "the plan of a campaign and its cells";
}
