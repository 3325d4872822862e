//! The rows of a stored run, one by one, in memory that does not grow with the run.

mod detours;
mod stacks;
mod traces;

pub use detours::{AttributedDetour, attributed_detours};
pub use stacks::{Stack, stacks, stacks_of_digest};
pub use traces::{Overlap, TraceTime, traces};

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::path::Path;

    use becalm_bundle::{Bundle, BundleError, BundleWriter};
    use becalm_model::{Activity, Detour, Kind, Labels, NodeDoc};
    use becalm_units::{CpuId, Nanos};

    use super::*;
    use becalm_analyze::condense::condense;
    use becalm_analyze::noise::NoiseInput;
    use becalm_analyze::summary::{Selection, summarize};

    /// CPU, start, duration, and the parts of each detour: start, self time, kind, source, detail.
    type Shown = (u32, i64, i64, Vec<(i64, i64, Kind, String, String)>);

    fn shown(bundle: &Bundle, doc: &NodeDoc) -> (Vec<Shown>, u64) {
        let mut all = Vec::new();
        let strays = attributed_detours::<BundleError>(bundle, doc, &mut |shown| {
            let name = |label| shown.labels.text(label).to_owned();
            let part =
                |row: &Activity| (row.start.get(), row.self_time.get(), row.kind, name(row.source), name(row.detail));
            let parts = shown.activities.iter().map(part).collect();
            let detour = shown.detour;
            all.push((detour.cpu.get(), detour.start.get(), detour.duration.get(), parts));
            Ok(())
        });
        (all, strays.unwrap())
    }

    fn fixtures(test: impl Fn(&Path)) {
        let folder = tempfile::tempdir().unwrap();
        becalm_fixtures::write_all(folder.path());
        test(folder.path());
    }

    #[test]
    fn every_detour_comes_with_its_books() {
        fixtures(|folder| {
            for name in ["busy", "pair", "twins", "killed"] {
                let bundle = Bundle::open(&folder.join(name)).unwrap();
                for doc in Selection::default().documents(&bundle).unwrap() {
                    let (all, strays) = shown(&bundle, &doc);
                    let stored: u64 = bundle.detours(&doc.node).unwrap().map(|batch| batch.unwrap().len() as u64).sum();
                    let parts: usize = bundle.activities(&doc.node).unwrap().map(|batch| batch.unwrap().len()).sum();
                    assert_eq!((all.len() as u64, strays), (stored, 0), "{name}");
                    assert_eq!(all.iter().map(|detour| detour.3.len()).sum::<usize>(), parts, "{name}");
                    for (cpu, start, duration, parts) in &all {
                        let sum: i64 = parts.iter().map(|part| part.1).sum();
                        assert_eq!(sum, *duration, "{name}: CPU {cpu} at {start}");
                    }
                    // The same for some CPUs.
                    let one = NodeDoc { cpus: doc.cpus[..1].to_vec(), ..doc.clone() };
                    let cpu = one.cpus[0].cpu.get();
                    all.into_iter().filter(|detour| detour.0 == cpu).zip(shown(&bundle, &one).0).for_each(|(a, b)| {
                        assert_eq!(a, b);
                    });
                    assert_eq!(shown(&bundle, &one).1, 0);
                }
            }
        });
    }

    /// Two segments with detours on CPUs 0 and 1 each.
    #[test]
    fn segments_are_joined() {
        fixtures(|folder| {
            let mut doc = Bundle::open(&folder.join("busy")).unwrap().nodes()[0].clone();
            doc.node = "joined".to_owned();
            let path = folder.join("joined.becalm");
            let mut writer = BundleWriter::create(&path, &doc).unwrap();
            let mut labels = Labels::new();
            let mut expected = Vec::new();
            for segment in 0..2_i64 {
                let (mut detours, mut activities) = (Vec::new(), Vec::new());
                for cpu in 0..2_u32 {
                    for at in 0..3_i64 {
                        let number = (segment * 3 + at) as u64;
                        let start = 1_000 + segment * 1_000 + at * 100;
                        let id = CpuId::new(cpu);
                        let parts = if at == 1 { 0 } else { 2 };
                        detours.push(Detour {
                            cpu: id,
                            start: Nanos::new(start),
                            duration: Nanos::new(5 * parts),
                            incomplete: false,
                        });
                        let name = format!("source {cpu} {number}");
                        let part = |offset: i64| (start + offset, 5, Kind::Irq, name.clone(), String::new());
                        let parts: Vec<_> = (0..parts).map(part).collect();
                        for (start, ns, kind, name, _) in &parts {
                            activities.push(Activity {
                                cpu: id,
                                detour: number,
                                start: Nanos::new(*start),
                                self_time: Nanos::new(*ns),
                                kind: *kind,
                                source: labels.intern(name),
                                detail: labels.intern(""),
                            });
                        }
                        expected.push((cpu, start, 5 * parts.len() as i64, parts));
                    }
                }
                writer.write_segment(&detours, &activities, &labels).unwrap();
            }
            writer.write_doc(&doc).unwrap();
            let bundle = Bundle::open(&path).unwrap();
            assert_eq!(shown(&bundle, &bundle.nodes()[0]), (expected, 0));
        });
    }

    /// becalm never writes this: activities of another recording, which has more detours on one CPU, and another CPU.
    #[test]
    fn activities_without_a_detour_are_counted_and_left_out() {
        fixtures(|folder| {
            let table = |run: &str, table: &str| folder.join(format!("{run}.becalm/{table}/node=node1/0000.parquet"));
            let all = shown(&Bundle::open(&folder.join("twins")).unwrap(), &twins(folder)).0;
            let doc = twins(folder);
            // No end, so there may be more rows than the document counts.
            let one = NodeDoc { cpus: doc.cpus[..1].to_vec(), node: "node1".to_owned(), ended: None, ..doc.clone() };
            let few: Vec<Detour> = all.iter().filter(|shown| shown.0 == 0).take(10).map(plain).collect();
            let mut writer = BundleWriter::create(&folder.join("few.becalm"), &one).unwrap();
            writer.write_segment(&few, &[], &Labels::new()).unwrap();
            writer.write_doc(&one).unwrap();
            std::fs::copy(table("twins", "activities"), table("few", "activities")).unwrap();
            let bundle = Bundle::open(&folder.join("few")).unwrap();
            let (kept, strays) = shown(&bundle, &one);
            assert_eq!(kept[..], all[..10]);
            let parts = |shown: &[Shown]| shown.iter().map(|detour| detour.3.len() as u64).sum::<u64>();
            assert_eq!(strays, parts(&all) - parts(&kept));
        });
    }

    /// becalm's own time and everything charged to it is no noise; detours that touch are one in a trace.
    #[test]
    fn own_time_is_left_out_and_touching_detours_are_one() {
        fixtures(|folder| {
            let mut doc = NodeDoc { cpus: twins(folder).cpus[..1].to_vec(), ..twins(folder) };
            (doc.cpus[0].start_ns, doc.cpus[0].duration_ns) = (Nanos::ZERO, Nanos::new(1_000));
            let (mut labels, mut detours, mut activities) = (Labels::new(), Vec::new(), Vec::new());
            type Part = (i64, Kind, &'static str, &'static str);
            let parts: [(i64, &[Part]); 4] = [
                (0, &[(10, Kind::Irq, "eth0", "41")]),
                (10, &[(5, Kind::Edge, "after", "irq:eth0")]),
                (
                    100,
                    &[
                        (12, Kind::Becalm, "becalm", ""),
                        (3, Kind::Softirq, "rcu", "self:becalm"),
                        (5, Kind::Irq, "eth0", ""),
                    ],
                ),
                (200, &[(10, Kind::Becalm, "becalm", "")]),
            ];
            for (number, (start, parts)) in (0..).zip(parts) {
                let cpu = doc.cpus[0].cpu;
                let duration = Nanos::new(parts.iter().map(|part| part.0).sum());
                detours.push(Detour { cpu, start: Nanos::new(start), duration, incomplete: false });
                for (ns, kind, source, detail) in parts {
                    activities.push(Activity {
                        cpu,
                        detour: number,
                        start: Nanos::new(start),
                        self_time: Nanos::new(*ns),
                        kind: *kind,
                        source: labels.intern(source),
                        detail: labels.intern(detail),
                    });
                }
            }
            let path = folder.join("own.becalm");
            let mut writer = BundleWriter::create(&path, &doc).unwrap();
            writer.write_segment(&detours, &activities, &labels).unwrap();
            writer.write_doc(&doc).unwrap();
            let bundle = Bundle::open(&path).unwrap();
            let found = stacks(&bundle, &doc).unwrap();
            let found: Vec<_> =
                found.iter().map(|stack| (stack.part.clone().map(|part| part.1), stack.count, stack.ns)).collect();
            assert_eq!(found, [(None, 2, 15), (Some("after".to_owned()), 1, 5)]);
            let time = TraceTime::for_node(&bundle, &doc).unwrap();
            let mut trace = Vec::new();
            traces::<Box<dyn std::error::Error>>(&bundle, &doc, &time, &mut |_, start, duration| {
                trace.push((start.get(), duration.get()));
                Ok(())
            })
            .unwrap();
            assert_eq!((time.length, trace), (Nanos::new(1_000), vec![(0, 15), (100, 5)]));
        });
    }

    fn twins(folder: &Path) -> NodeDoc {
        Bundle::open(&folder.join("twins")).unwrap().nodes()[0].clone()
    }

    fn plain((cpu, start, duration, _): &Shown) -> Detour {
        let (cpu, start, duration) = (CpuId::new(*cpu), Nanos::new(*start), Nanos::new(*duration));
        Detour { cpu, start, duration, incomplete: false }
    }

    #[test]
    fn stacks_add_up_to_the_wholes_of_the_report() {
        fixtures(|folder| {
            for name in ["busy", "twins", "pair", "plain"] {
                let bundle = Bundle::open(&folder.join(name)).unwrap();
                let summary = summarize(&bundle, &Selection::default()).unwrap();
                let mut wholes: BTreeMap<(String, u32, Kind, String), i64> = BTreeMap::new();
                for source in &summary.cpu_sources {
                    let (node, cpu) = source.place.clone().unwrap();
                    *wholes.entry((node, cpu.get(), source.kind, source.source.clone())).or_default() +=
                        source.whole_ns;
                }
                let (mut found, mut noise) = (BTreeMap::new(), 0);
                for doc in bundle.nodes() {
                    for stack in stacks(&bundle, doc).unwrap() {
                        noise += stack.ns;
                        let Some((kind, source)) = stack.root else { continue };
                        *found.entry((doc.node.clone(), stack.cpu.get(), kind, source)).or_default() += stack.ns;
                    }
                }
                wholes.retain(|_, ns| *ns > 0);
                found.retain(|_, ns: &mut i64| *ns > 0);
                assert_eq!((found, noise), (wholes, summary.total.durations.total()), "{name}");
            }
        });
    }

    #[test]
    fn stacks_of_the_summary_form_are_the_wholes() {
        fixtures(|folder| {
            let bundle = Bundle::open(&folder.join("busy")).unwrap();
            let digest = condense(&bundle, "node1").unwrap();
            let mut wholes: BTreeMap<_, i64> = BTreeMap::new();
            for stack in stacks(&bundle, &bundle.nodes()[0]).unwrap() {
                *wholes.entry((stack.cpu, stack.root)).or_default() += stack.ns;
            }
            let found = digest
                .cpus
                .iter()
                .flat_map(|cpu| stacks_of_digest("node1", cpu))
                .map(|stack| ((stack.cpu, stack.root), stack.ns));
            assert_eq!(found.collect::<BTreeMap<_, _>>(), wholes);
        });
    }

    /// Predictions compute their noise in another way.
    #[test]
    fn traces_are_those_of_predictions() {
        fixtures(|folder| {
            for name in ["busy", "twins", "pair", "quieter", "killed"] {
                let bundle = Bundle::open(&folder.join(name)).unwrap();
                let noise = NoiseInput::from_run(&bundle, &Selection::default(), false).unwrap().noise;
                let mut expected = noise.traces();
                for doc in Selection::default().documents(&bundle).unwrap() {
                    let time = TraceTime::for_node(&bundle, &doc).unwrap();
                    let mut found = vec![Vec::new(); doc.cpus.len()];
                    traces::<Box<dyn std::error::Error>>(&bundle, &doc, &time, &mut |place, start, duration| {
                        found[place].push((start, duration));
                        Ok(())
                    })
                    .unwrap();
                    for detours in found {
                        let trace = expected.next().unwrap();
                        assert_eq!(time.length, trace.length(), "{name}");
                        assert_eq!(detours, trace.detours().collect::<Vec<_>>(), "{name}");
                    }
                }
                assert!(expected.next().is_none());
            }
        });
    }
}
