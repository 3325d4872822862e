//! The documents of `becalm fleet`.

use crate::report::FleetDocument;
use crate::report::jobs::{CostDocument, SweepDocument};

becalm_report::documents! {
    "fleet": FleetDocument, "becalm fleet RUN", "nodes ranked, and which differ";
    "fleet-predict": CostDocument, "becalm fleet predict RUN", "what the noise of many nodes costs their jobs";
    "fleet-predict-sweep": SweepDocument, "becalm fleet predict RUN --grain LIST", "the same for several grains";
}
