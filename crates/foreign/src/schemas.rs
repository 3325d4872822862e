//! The JSON schemas of the documents of imported histograms.

use crate::distribution::{DistributionDoc, DistributionsDocument, SideBySideDocument};

becalm_report::documents! {
    "distribution-report": DistributionsDocument, "becalm report RUN", "histograms and statistics of other programs";
    "compare-distributions": SideBySideDocument, "becalm compare A B", "two of these side by side";
    "distribution": DistributionDoc, "runs/node=HOST.json of becalm import",
        "what another program's histogram or statistics say";
}
