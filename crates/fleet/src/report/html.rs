//! The page of a fleet: who differs and why, the nodes ranked, a map of node and time, and what strikes nodes at the same time.

use becalm_report::Value;
use becalm_report::form::field::Field;
use becalm_report::form::table::Table;
use becalm_report::form::value::three_digits;
use becalm_report::html::{
    Axis, AxisScale, AxisUnit, Bar, Bars, Block, Chart, Grade, Heat, HeatLabel, Opening, Page, Section, Spec, Tile,
    foot, sentence,
};
use becalm_stats::outliers::PEERS_MIN;
use becalm_units::{Nanos, printable};

use super::{NODE, STRUCK, conclusion, how_named, how_together};
use crate::heat::Heat as NodeHeat;
use crate::survey::{Fleet, FleetNode};
use crate::together::{Struck, Together};

/// So many of the noisiest nodes are on the map.
const ON_MAP: usize = 100;

/// So many of them are in the table.
const IN_TABLE: usize = 1_000;

/// So many of them have bars.
const BARS: usize = 20;

/// The page of a fleet, made by `program`: `becalm 0.1.0`.
pub(super) fn page(fleet: &Fleet, program: &str) -> Page {
    let nodes = Value::Count(fleet.nodes.len() as u64).cell();
    let mut sections = vec![headline(fleet), ranking(fleet)];
    sections.extend(fleet.heat.as_ref().and_then(|heat| map(fleet, heat)));
    sections.push(together(&fleet.together));
    sections.extend(missing(fleet));
    Page {
        title: "Which node is noisy, and why".to_owned(),
        subtitle: format!("{nodes} nodes"),
        sections,
        foot: foot(format!("Made by {program} fleet.")),
    }
}

fn headline(fleet: &Fleet) -> Section {
    let differ = fleet.nodes.iter().filter(|node| node.differs.is_some()).count();
    let tone = match differ {
        _ if fleet.compared < PEERS_MIN => Grade::Plain,
        0 => Grade::Good,
        _ => Grade::Bad,
    };
    let mut tiles = vec![
        tile("nodes", fleet.nodes.len() as u64, "that were read"),
        tile("differ", differ as u64, "from their equals"),
        tile("with remarks", fleet.problems.len() as u64, "things to know of nodes, at the end"),
    ];
    tiles.push(Tile {
        name: "median node".to_owned(),
        figure: Value::Ratio(fleet.median_ratio).cell(),
        detail: "of its time is lost".to_owned(),
        tone: Grade::Plain,
    });
    Section {
        opening: Opening::None,
        id: "headline",
        title: "Does a node differ from the others?".to_owned(),
        short: "Summary",
        reading: String::new(),
        blocks: vec![
            Block::Verdict { tone, text: conclusion(fleet), basis: sentence(&how_named(fleet)) },
            Block::Tiles(tiles),
        ],
    }
}

fn tile(name: &str, count: u64, detail: &str) -> Tile {
    let figure = Value::Count(count).cell();
    Tile { name: name.to_owned(), figure, detail: detail.to_owned(), tone: Grade::Plain }
}

fn ranking(fleet: &Fleet) -> Section {
    let fields: Vec<&Field<FleetNode>> = NODE.iter().collect();
    let mut table = Table::new(&fields).captioned("The nodes, the noisiest first");
    fleet.nodes.iter().take(IN_TABLE).for_each(|node| {
        table.row(&fields, node);
    });
    if fleet.nodes.len() > IN_TABLE {
        table.note = format!("The {IN_TABLE} noisiest of {}; becalm fleet --json has all.", fleet.nodes.len());
    }
    let bars = fleet.nodes.iter().take(BARS).map(|node| Bar {
        name: printable(&node.node).into_owned(),
        value: node.ratio,
        text: Value::Ratio(node.ratio).cell(),
        kind: node.largest.as_ref().map(|((kind, _), _)| kind.name()),
    });
    let bars: Vec<Bar> = bars.collect();
    let most = fleet.nodes.first().map_or_else(String::new, |node| format!("most {}", printable(&node.node)));
    let chart = Chart {
        id: "noisiest",
        title: format!("The {} noisiest, in the color of their largest source", bars.len()),
        label: format!("The part of their time that the noisiest nodes lost; {most}."),
        height: bars.len() as u32 * 26 + 70,
        spec: Spec::Bars(Bars { x: Axis::new("of the time lost", AxisScale::Linear, AxisUnit::Ratio), bars }),
        figures: None,
    };
    Section {
        opening: Opening::None,
        id: "nodes",
        title: "The nodes".to_owned(),
        short: "Nodes",
        reading: "Beside the part of the time that each node lost stands its 95 % interval, and the source that took most of it, with all \
                  that goes with it."
            .to_owned(),
        blocks: vec![Block::Charts(vec![chart]), Block::Table(table)],
    }
}

/// The map; nothing of a fleet whose nodes have no time in common, or lost nothing.
fn map(fleet: &Fleet, heat: &NodeHeat) -> Option<Section> {
    let most = heat.rows.iter().flatten().copied().fold(0.0, f64::max);
    if most <= 0.0 {
        return None;
    }
    let shown = fleet.nodes.len().min(ON_MAP);
    let rows = fleet.nodes[..shown].iter().map(|node| {
        let name = printable(&node.node).into_owned();
        HeatLabel { short: name.clone(), long: format!("node {name}") }
    });
    let cells = heat.rows[..shown]
        .iter()
        .map(|row| row.iter().map(|ratio| (ratio * heat.column_ns as f64).round() as i64).collect());
    let column = Nanos::new(heat.column_ns);
    let chart = Chart {
        id: "node-time",
        title: String::new(),
        label: format!(
            "What each node lost in each stretch of {column:.3}, at most {}% of it.",
            three_digits(most * 100.0)
        ),
        height: (shown as u32 * 16).clamp(80, 1_600) + 110,
        spec: Spec::Heat(Heat {
            start_ns: 0,
            cell_ns: heat.column_ns,
            last_cell_ns: heat.column_ns,
            row_title: "node",
            rows: rows.collect(),
            cells: cells.collect(),
        }),
        figures: None,
    };
    let mut note = format!("A cell is {column:.3} wide: the time of all watched CPUs of the node.");
    if shown < fleet.nodes.len() {
        note.push_str(&format!(" The {shown} noisiest of {} nodes.", fleet.nodes.len()));
    }
    Some(Section {
        opening: Opening::None,
        id: "map",
        title: "When the noise came".to_owned(),
        short: "Node and time",
        reading: "Each row is a node and each column a stretch of time by the wall clock: a row that stands out is a node with noise of its \
                  own, a column is something that struck all at once."
            .to_owned(),
        blocks: vec![Block::Charts(vec![chart]), Block::Note(note)],
    })
}

fn together(together: &Result<Together, String>) -> Section {
    let blocks = match together {
        Err(why) => {
            vec![Block::Text(format!("What strikes nodes at the same time cannot be told: {}.", printable(why)))]
        }
        Ok(found) if found.sources.is_empty() => {
            vec![Block::Text("No source came on three nodes, so that none strikes nodes at the same time.".to_owned())]
        }
        Ok(found) => {
            let fields: Vec<&Field<Struck>> = STRUCK.iter().collect();
            let mut table = Table::new(&fields).captioned("The sources that came on several nodes");
            found.sources.iter().for_each(|source| {
                table.row(&fields, source);
            });
            vec![Block::Table(table), Block::Note(sentence(&how_together(found)))]
        }
    };
    Section {
        opening: Opening::None,
        id: "together",
        title: "What strikes nodes at the same time".to_owned(),
        short: "At the same time",
        reading: "A source that strikes nodes at once costs a job once; one that strikes them apart delays it again and again.".to_owned(),
        blocks,
    }
}

/// What is to be known of single nodes.
fn missing(fleet: &Fleet) -> Option<Section> {
    if fleet.problems.is_empty() {
        return None;
    }
    let facts = fleet
        .problems
        .iter()
        .map(|problem| (printable(&problem.node).into_owned(), sentence(&printable(&problem.what()))));
    Some(Section {
        opening: Opening::None,
        id: "remarks",
        title: "What is to be known of single nodes".to_owned(),
        short: "Remarks",
        reading: "The rest was read.".to_owned(),
        blocks: vec![Block::Facts(facts.take(IN_TABLE).collect())],
    })
}

#[cfg(test)]
mod tests {
    use becalm_bundle::StoredNodes;
    use becalm_fixtures::fleet::{Planted, write_fleet};

    use super::*;
    use crate::survey;

    #[test]
    fn the_page_says_what_the_terminal_says() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("cluster.becalm");
        write_fleet(&path, Planted::SlowNodeAndBroken, 1);
        let fleet = survey(&[StoredNodes::open(&path).unwrap()]).unwrap();
        let page = page(&fleet, "becalm 0.1.0");
        let ids: Vec<&str> = page.sections.iter().map(|section| section.id).collect();
        assert_eq!(ids, ["headline", "nodes", "map", "together", "remarks"]);
        let Block::Verdict { tone: Grade::Bad, text, .. } = &page.sections[0].blocks[0] else { panic!("{page:?}") };
        assert!(text.contains("n17") && text.contains("kworker:nfs_writeback"), "{text}");
        let Block::Charts(charts) = &page.sections[2].blocks[0] else { panic!("{page:?}") };
        let Spec::Heat(heat) = &charts[0].spec else { panic!("{charts:?}") };
        assert_eq!((heat.rows.len(), heat.cells[0].len()), (31, 48));
    }
}
