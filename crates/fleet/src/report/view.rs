//! The sections on a fleet: the outliers with their reasons, the ranked nodes, a map of nodes over time, and simultaneous noise on several nodes.

use becalm_report::form::table::Table;
use becalm_report::form::value::three_digits;
use becalm_report::html::{
    Axis, AxisScale, AxisUnit, Bar, Bars, Block, Chart, Grade, Heat, HeatLabel, Opening, Page, Section, Spec, Tile,
};
use becalm_report::{Form, Value};
use becalm_stats::outliers::{FALSE_ALARM, PEERS_MIN};
use becalm_units::{counted, printable};

use super::{NODE_COLUMNS, conclusion};
use crate::heat::Heat as NodeHeat;
use crate::survey::{Fleet, FleetNode, Problem};
use crate::together::{Together, Verdict};

/// The number of nodes on a terminal unless all are wanted.
const SHOWN: usize = 20;

/// The number of nodes, the noisiest, on the map of a page.
const ON_MAP: usize = 100;

/// The number of them with bars.
const BARS: usize = 20;

/// The shades of the map on a terminal, from no noise to the most.
const SHADES: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

pub(super) fn page(fleet: &Fleet, form: Form) -> Page {
    let shown = if form.all() { &fleet.nodes[..] } else { &fleet.nodes[..fleet.nodes.len().min(SHOWN)] };
    let mut sections = vec![headline(fleet), notes(fleet), ranking(fleet, shown)];
    sections.extend(fleet.heat.as_ref().and_then(|heat| map(fleet, shown, heat)));
    sections.push(together(&fleet.together));
    Page {
        title: "Which node is noisy, and why".to_owned(),
        subtitle: format!("{} nodes", Value::Count(fleet.nodes.len() as u64).cell()),
        sections,
        foot: Vec::new(),
    }
}

fn headline(fleet: &Fleet) -> Section {
    let differ = fleet.nodes.iter().filter(|node| node.differs.is_some()).count();
    let tone = match differ {
        _ if fleet.compared < PEERS_MIN => Grade::Plain,
        0 => Grade::Good,
        _ => Grade::Bad,
    };
    let median = Value::Ratio(fleet.median_ratio).cell();
    let tiles = vec![
        tile("nodes", fleet.nodes.len() as u64, "that were read"),
        tile("outliers", differ as u64, "nodes that differ from their peers"),
        tile("notes", fleet.problems.len() as u64, "on single nodes, below"),
    ];
    let basis = format!("The median node lost {median} of its time.");
    let blocks = vec![Block::Verdict { tone, text: conclusion(fleet), basis }, Block::Tiles(tiles)];
    Section::new("headline", "Summary", "Is a node an outlier?", blocks)
}

fn tile(name: &str, count: u64, detail: &str) -> Tile {
    let figure = Value::Count(count).cell();
    Tile { name: name.to_owned(), figure, detail: detail.to_owned(), tone: Grade::Plain }
}

/// Notes on single nodes.
fn notes(fleet: &Fleet) -> Section {
    let note = |problem: &Problem| Block::warning(format!("{}: {}", problem.node, problem.what()));
    let blocks = fleet.problems.iter().map(note).collect();
    Section::new("notes", "Notes", "Notes on single nodes", blocks).explained("All other nodes were read completely.")
}

fn ranking(fleet: &Fleet, shown: &[FleetNode]) -> Section {
    let title = "Nodes, the noisiest first";
    let table = Table::filled(&NODE_COLUMNS, shown).captioned(title);
    let mut blocks = vec![Block::Charts(vec![noisiest(fleet)]), Block::Table(table)];
    if shown.len() < fleet.nodes.len() {
        blocks.push(Block::Text(format!("{} more with --full", fleet.nodes.len() - shown.len())));
    }
    blocks.push(Block::Text(how_named(fleet)));
    Section::new("nodes", "Nodes", title, blocks).opened(Opening::Title(title.to_owned()))
}

fn noisiest(fleet: &Fleet) -> Chart {
    let bars = fleet.nodes.iter().take(BARS).map(|node| Bar {
        name: printable(&node.node).into_owned(),
        value: node.ratio,
        text: Value::Ratio(node.ratio).cell(),
        kind: node.largest.as_ref().map(|((kind, _), _)| kind.name()),
    });
    let bars: Vec<Bar> = bars.collect();
    let most = fleet.nodes.first().map_or_else(String::new, |node| format!("most {}", printable(&node.node)));
    Chart {
        id: "noisiest",
        title: format!("The {} noisiest, in the color of their largest source", bars.len()),
        label: format!("The share of time that the noisiest nodes lost; {most}."),
        height: bars.len() as u32 * 26 + 70,
        spec: Spec::Bars(Bars { x: Axis::new("of the time lost", AxisScale::Linear, AxisUnit::Ratio), bars }),
        figures: None,
    }
}

/// The meaning of the nodes' figures, and the rule for outliers.
fn how_named(fleet: &Fleet) -> String {
    let mut note = "largest source: by total time".to_owned();
    if fleet.compared >= PEERS_MIN {
        note += &format!(
            ". A node is an outlier if its noise differs from the median by more than the scatter of all nodes and its own interval \
             explain, at the {} % level for all {} together",
            FALSE_ALARM * 100.0,
            fleet.compared
        );
    }
    note
}

/// The map; `None` for a fleet whose nodes lost nothing.
fn map(fleet: &Fleet, shown: &[FleetNode], heat: &NodeHeat) -> Option<Section> {
    let most = heat.rows.iter().flatten().copied().fold(0.0, f64::max);
    if most <= 0.0 {
        return None;
    }
    let share = three_digits(most * 100.0);
    let column = Value::Time(heat.column_ns).cell();
    let title = format!("Noise by node and time, {column} per column");
    let mut note = format!("A cell is the time of all watched CPUs of the node within {column}.");
    if ON_MAP < fleet.nodes.len() {
        note.push_str(&format!(" The {ON_MAP} noisiest of {} nodes.", fleet.nodes.len()));
    }
    let blocks = vec![
        Block::Lines(shades(shown, heat, most)),
        Block::OnTerminal(vec![Block::Text(format!("a full block is {share}% of the time of a column"))]),
        Block::Charts(vec![node_time(fleet, heat, &share)]),
        Block::OnPage(vec![Block::Note(note)]),
    ];
    let section = Section::new("map", "Node and time", title.clone(), blocks).opened(Opening::Title(title)).explained(
        "Each row is a node and each column a stretch of wall-clock time. A row that stands out is a node with noise of its own. A \
         column that stands out is noise that hit all nodes at once.",
    );
    Some(section)
}

fn shades(shown: &[FleetNode], heat: &NodeHeat, most: f64) -> Vec<String> {
    let width = shown.iter().map(|node| printable(&node.node).chars().count()).max().unwrap_or(0);
    let steps = (SHADES.len() - 1) as f64;
    let shade = |ratio: &f64| SHADES[(ratio / most * steps).ceil().clamp(0.0, steps) as usize];
    let row = |(node, row): (&FleetNode, &Vec<f64>)| {
        let shades: String = row.iter().map(shade).collect();
        format!("  {:<width$}  {}", printable(&node.node), shades.trim_end())
    };
    shown.iter().zip(&heat.rows).map(row).collect()
}

fn node_time(fleet: &Fleet, heat: &NodeHeat, most: &str) -> Chart {
    let rows: Vec<HeatLabel> = fleet.nodes.iter().take(ON_MAP).map(label).collect();
    let cells = heat.rows.iter().take(ON_MAP).map(|row| {
        let lost = row.iter().map(|ratio| (ratio * heat.column_ns as f64).round() as i64);
        lost.collect()
    });
    let column = Value::Time(heat.column_ns).cell();
    Chart {
        id: "node-time",
        title: String::new(),
        label: format!("The time that each node lost in each stretch of {column}, at most {most}% of it."),
        height: (rows.len() as u32 * 16).clamp(80, 1_600) + 110,
        spec: Spec::Heat(Heat {
            start_ns: 0,
            cell_ns: heat.column_ns,
            last_cell_ns: heat.column_ns,
            row_title: "node",
            rows,
            cells: cells.collect(),
        }),
        figures: None,
    }
}

fn label(node: &FleetNode) -> HeatLabel {
    let name = printable(&node.node).into_owned();
    HeatLabel { short: name.clone(), long: format!("node {name}") }
}

fn together(together: &Result<Together, String>) -> Section {
    let title = "Sources that hit several nodes at the same time";
    let section = |blocks| Section::new("together", "At the same time", title, blocks);
    let found = match together {
        Err(why) => return section(vec![Block::Text(format!("{title} cannot be determined: {why}"))]),
        Ok(found) if found.sources.is_empty() => {
            let text = "No source came on three nodes, so none is tested for coincidence";
            return section(vec![Block::Text(text.to_owned())]);
        }
        Ok(found) => found,
    };
    let table = Table::whole(&found.sources).captioned("Sources on several nodes");
    section(vec![Block::Table(table), Block::Text(how_together(found))])
        .opened(Opening::Title("Sources on several nodes".to_owned()))
        .explained(
            "A source that hits all nodes at once delays a job once. One that hits them at different times delays it again and again.",
        )
}

/// The test for noise that hits nodes at the same time.
fn how_together(found: &Together) -> String {
    let slot = Value::Time(found.slot_ns).cell();
    let tested = found.sources.iter().filter(|source| source.verdict != Verdict::Everywhere).count() as u64;
    let clocks = match (found.clock_error_ns, found.unstated as u64) {
        (None, _) => "the nodes do not report their clock errors".to_owned(),
        (Some(error), 0) => format!("reported clock errors are at most {}", Value::Time(error).cell()),
        (Some(error), unstated) => format!(
            "reported clock errors are at most {}; {} none",
            Value::Time(error).cell(),
            counted(unstated, "node reports", "nodes report")
        ),
    };
    format!(
        "at the same time: within a slot of {slot}, on {} nodes; {clocks}; most at once: in one slot; chance: of as much coincidence \
         among independent nodes, from 999 random shifts; the verdict is at the 5 % level for {} together",
        found.nodes,
        counted(tested, "tested source", "tested sources")
    )
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
        let page = page(&fleet, Form::default().with_all(true));
        let ids: Vec<&str> = page.sections.iter().map(|section| section.id).collect();
        assert_eq!(ids, ["headline", "notes", "nodes", "map", "together"]);
        let Block::Verdict { tone: Grade::Bad, text, .. } = &page.sections[0].blocks[0] else { panic!("{page:?}") };
        assert!(text.contains("n17") && text.contains("kworker:nfs_writeback"), "{text}");
        let Block::Charts(charts) = &page.sections[3].blocks[2] else { panic!("{page:?}") };
        let Spec::Heat(heat) = &charts[0].spec else { panic!("{charts:?}") };
        assert_eq!((heat.rows.len(), heat.cells[0].len()), (31, 48));
    }
}
