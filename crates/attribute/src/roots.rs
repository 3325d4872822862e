//! Roots as labels: `irq:local_timer`.

use becalm_model::{Kind, Label, Labels, root};
use becalm_units::NumberMap;

/// Cached labels of roots, so a repeated root is not formatted again.
#[derive(Default, Debug)]
pub(super) struct RootLabels {
    labels: NumberMap<(Kind, Label), Label>,
}

impl RootLabels {
    /// The label of the root of that kind and source.
    pub fn label(&mut self, kind: Kind, source: Label, labels: &mut Labels) -> Label {
        *self.labels.entry((kind, source)).or_insert_with(|| {
            let text = root::text(kind, labels.text(source));
            labels.intern(&text)
        })
    }
}
