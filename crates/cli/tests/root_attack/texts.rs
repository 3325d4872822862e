//! Texts, tables, formulas and arguments from elsewhere; names and sizes that nobody expects.

use std::fmt::Write as _;
use std::fs;
use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use becalm_bundle::BundleWriter;
use becalm_model::{Activity, Detour, Kind, Labels};
use becalm_testing::attack::{Random, Tries, attack, attack_side_by_side, is_full};
use becalm_testing::program::{document, document_path, path, within_memory};
use becalm_units::{CpuId, Nanos};
use serde_json::{Value, json};

use crate::bundles::folder;
use crate::damage;
use crate::views::{MEMORY, all_views, answers};

/// Imports a text, and looks at what came of it in every view; tells whether it was taken.
fn imported(text: &[u8]) -> bool {
    let folder = folder();
    let (file, bundle) = (folder.path().join("text"), folder.path().join("run.becalm"));
    fs::write(&file, text).unwrap();
    let ended = answers(&["import", "--from", "selfish", path(&file), "-o", path(&bundle)]);
    assert_eq!(bundle.exists(), ended.code == 0, "{ended:#?}");
    if bundle.exists() {
        let report = answers(&["report", path(&bundle), "--json"]);
        report.expect(0, &[]);
        all_views(&bundle, &bundle, folder.path());
    }
    bundle.exists()
}

#[test]
fn imports_by_hand() {
    const TEXTS: [&[u8]; 20] = [
        b"",
        b"\n",
        b"\0",
        b"#",
        b"# Measurement period: 1e300 s\n1 1\n",
        b"1",
        b"1 ",
        b"1 2 3",
        b"1 2\n5 6\n",
        b"4 2\n7 0\n",
        b"0 0\n0 0\n",
        b"-1 1",
        b"1 -1",
        b"1e999 1",
        b"NaN 1",
        b"inf inf",
        b"9223372036854775806 1",
        b"9223372036854775807 9223372036854775807",
        b"1\t1\r\n3\t1\r\n",
        b"\xff\xfe1 1\n",
    ];
    within_memory(MEMORY, || {
        let tries = Tries { all: 20, few: 20 };
        attack_side_by_side("texts to import, made by hand", tries, |number, _| {
            imported(TEXTS[number as usize]);
        });
    });
}

/// Lines that look like a measurement, most of the time.
fn measurement(random: &mut Random) -> Vec<u8> {
    let mut text = String::new();
    let mut at = 0.0;
    for _ in 0..random.below(60) {
        let (magnitude, shorter) = (random.below(30), random.below(20));
        let step = random.below(1 << magnitude) as f64 / 8.0;
        let length = random.below(1 << shorter) as f64 / 8.0;
        at += step;
        let _ = match random.below(400) {
            0 => writeln!(text, "# {at}"),
            1 => writeln!(text, "# Measurement period: {at} s"),
            2 => writeln!(text, "{at} -{length}"),
            3 => writeln!(text, "{at:e} {length:e}"),
            4 => writeln!(text, "{at}"),
            5 => writeln!(text, "  {at}\t\t{length}  "),
            _ => writeln!(text, "{at} {length}"),
        };
        at += length;
    }
    let mut bytes = text.into_bytes();
    if random.once_in(4) && !bytes.is_empty() {
        for _ in 0..random.below(5) {
            let place = random.below(bytes.len());
            bytes[place] = random.number() as u8;
        }
    }
    bytes
}

#[test]
fn imports_at_random() {
    let taken = AtomicUsize::new(0);
    within_memory(MEMORY, || {
        let row = "texts to import, at random, each put through 11 views";
        attack_side_by_side(row, Tries { all: 400, few: 6 }, |_, random| {
            taken.fetch_add(usize::from(imported(&measurement(random))), Ordering::Relaxed);
        });
    });
    assert_ne!(taken.into_inner(), 0, "all were refused");
}

#[test]
fn imports_of_many_lines() {
    within_memory(MEMORY, || {
        attack("a text of 10 M lines imported", Tries { all: 1, few: 1 }, |_, _| {
            let lines = if is_full() { 10_000_000_u64 } else { 100_000 };
            let folder = folder();
            let (file, bundle) = (folder.path().join("text"), folder.path().join("run.becalm"));
            let mut text = BufWriter::new(fs::File::create(&file).unwrap());
            for line in 0..lines {
                writeln!(text, "{} {}", line * 1_000, 10 + line % 90).unwrap();
            }
            text.into_inner().unwrap();
            answers(&["import", "--from", "selfish", path(&file), "-o", path(&bundle)]).expect(0, &[]);
            let report: Value = serde_json::from_str(&answers(&["report", path(&bundle), "--json"]).stdout).unwrap();
            assert_eq!(report["cpus"][0]["detours"], lines);
        });
    });
}

#[test]
fn tables() {
    const WORDS: [&str; 16] = [
        "",
        "0",
        "-1",
        "1e308",
        "-0.0",
        "NaN",
        "inf",
        "1e-320",
        "12.67",
        "x",
        "\"",
        "\"\"",
        ",",
        "\n",
        "\u{1b}[2J",
        "PIII-664",
    ];
    let published = Path::new(env!("CARGO_MANIFEST_DIR")).join("../research/data");
    let read = |name: &str| fs::read_to_string(published.join(name)).unwrap();
    let tables = [read("tsafrir2007_sort.csv"), read("tsafrir2007_direct.csv")];
    let damaged = |table: &str, random: &mut Random| {
        let mut lines: Vec<Vec<String>> =
            table.lines().map(|line| line.split(',').map(str::to_owned).collect()).collect();
        for _ in 0..random.below(4) {
            let line = random.below(lines.len());
            let field = random.below(lines[line].len().max(1));
            match random.below(6) {
                0 => drop(lines.remove(line)),
                1 => lines[line].push((*random.one(&WORDS)).to_owned()),
                2 if !lines[line].is_empty() => drop(lines[line].remove(field)),
                _ if !lines[line].is_empty() => lines[line][field] = (*random.one(&WORDS)).to_owned(),
                _ => {}
            }
            if lines.is_empty() {
                break;
            }
        }
        lines.iter().map(|line| line.join(",") + "\n").collect::<String>()
    };
    within_memory(MEMORY, || {
        attack_side_by_side("tables of cost tick --from, damaged", Tries { all: 400, few: 6 }, |_, random| {
            let folder = folder();
            let files = [folder.path().join("sort.csv"), folder.path().join("direct.csv")];
            for (file, table) in files.iter().zip(&tables) {
                fs::write(file, damaged(table, random)).unwrap();
            }
            let words = ["cost", "tick", "--from", path(&files[0]), "--direct", path(&files[1]), "--json"];
            let with_direct = if random.once_in(2) { 6 } else { 4 };
            answers(&words[..with_direct]);
            answers(&[&words[..with_direct], &words[6..]].concat());
        });
    });
}

/// A time, share, rate or count that may mean anything, or nothing.
fn word(random: &mut Random) -> String {
    const UNITS: [&str; 16] =
        ["ns", "us", "ms", "s", "m", "h", "Hz", "kHz", "%", "k", "M", "G", "T", "", "x", "\u{b5}s"];
    const NUMBERS: [&str; 16] = [
        "0",
        "1",
        "10",
        "50",
        "0.5",
        "1e3",
        "1e300",
        "-1",
        "1e-9",
        "NaN",
        "inf",
        "9223372036854775807",
        "18446744073709551615",
        "",
        ".",
        "99999999999999999999999",
    ];
    format!("{}{}", random.one(&NUMBERS), random.one(&UNITS))
}

#[test]
fn formulas() {
    const KEYS: [&str; 7] = ["interval", "detour", "jitter", "rate", "", "x", "seed"];
    within_memory(MEMORY, || {
        attack_side_by_side("formulas of noise", Tries { all: 400, few: 8 }, |_, random| {
            let mut formula =
                (*random.one(&["periodic:", "poisson:", "periodic:", "poisson:", "periodc:", "periodic", ":"]))
                    .to_owned();
            // Half of them can be meant.
            if random.once_in(2) {
                let unit = random.one(&["ns", "us", "ms", "s"]);
                let (interval, detour) = (1 + random.below(100), 1 + random.below(100));
                let _ = match formula.as_str() {
                    "poisson:" => write!(formula, "rate={interval}Hz,detour={detour}{unit}"),
                    _ => write!(formula, "interval={interval}ms,detour={detour}{unit}"),
                };
            } else {
                let fields: Vec<String> =
                    (0..random.below(5)).map(|_| format!("{}={}", random.one(&KEYS), word(random))).collect();
                formula += &fields.join(",");
            }
            answers(&["predict", &formula, "--ranks", "64", "--phases", "20", "--replicas", "2", "--json"]);
        });
    });
}

#[test]
fn laws() {
    attack_side_by_side("arguments of law", Tries { all: 400, few: 8 }, |_, random| {
        let (grain, delay, often) = (word(random), word(random), word(random));
        let option = *random.one(&["--probability", "--rate"]);
        let ranks: Vec<String> = (0..1 + random.below(3)).map(|_| word(random)).collect();
        let ranks = if random.once_in(2) { ranks.join(",") } else { "64,1Ki".to_owned() };
        let mut words =
            vec!["predict", "--law", "--grain", &grain, "--delay", &delay, option, &often, "--ranks", &ranks];
        if random.once_in(2) {
            words.push("--json");
        }
        answers(&words);
    });
}

/// A bundle whose node has another name, in its document and, as far as a file can be called that, in its files.
fn renamed(folder: &Path, name: &str) -> PathBuf {
    let bundle = folder.join("run.becalm");
    becalm_fixtures::write_named(&bundle, "a source");
    let mut doc = document(&bundle);
    doc["node"] = name.into();
    let file = document_path(&bundle).unwrap();
    fs::write(&file, doc.to_string()).unwrap();
    if !name.contains('/') {
        fs::rename(&file, file.with_file_name(format!("node={name}.json"))).unwrap();
        for table in ["detours", "activities"] {
            let folder = bundle.join(table);
            fs::rename(folder.join("node=node1"), folder.join(format!("node={name}"))).unwrap();
        }
    }
    bundle
}

/// A bundle with so many sources, one a detour.
fn of_sources(folder: &Path, count: u64) -> PathBuf {
    let bundle = folder.join("run.becalm");
    becalm_fixtures::write_named(&bundle, "a source");
    let doc: becalm_model::node::NodeDoc = serde_json::from_value(document(&bundle)).unwrap();
    fs::remove_dir_all(&bundle).unwrap();
    let mut labels = Labels::new();
    let (mut detours, mut activities) = (Vec::new(), Vec::new());
    for number in 0..count {
        let start = doc.cpus[0].start_ns + Nanos::new(10_000 * number as i64);
        detours.push(Detour { cpu: CpuId::new(0), start, duration: Nanos::new(2_000), incomplete: false });
        activities.push(Activity {
            cpu: CpuId::new(0),
            detour: number,
            start,
            self_time: Nanos::new(2_000),
            kind: Kind::Task,
            source: labels.intern(&format!("source {number}")),
            detail: labels.intern(""),
        });
    }
    let mut writer = BundleWriter::create(&bundle, &doc).unwrap();
    writer.write_segment(&detours, &activities, &labels).unwrap();
    writer.write_doc(&doc).unwrap();
    bundle
}

/// A bundle with so many millions of detours, of different lengths as in any recording.
fn of_rows(folder: &Path, segments: u64) -> PathBuf {
    const ROWS: i64 = 1_000_000;
    let bundle = folder.join("run.becalm");
    becalm_fixtures::write_named(&bundle, "a source");
    let mut doc: becalm_model::node::NodeDoc = serde_json::from_value(document(&bundle)).unwrap();
    doc.cpus[0].duration_ns = Nanos::from_millis(1_000 * segments as i64);
    fs::remove_dir_all(&bundle).unwrap();
    let mut writer = BundleWriter::create(&bundle, &doc).unwrap();
    for segment in 0..segments as i64 {
        let of = |row| Detour {
            cpu: CpuId::new(0),
            start: doc.cpus[0].start_ns + Nanos::new(1_000 * (segment * ROWS + row)),
            duration: Nanos::new(100 + row * 7_919 % 797),
            incomplete: false,
        };
        let detours: Vec<Detour> = (0..ROWS).map(of).collect();
        writer.write_segment(&detours, &[], &Labels::new()).unwrap();
    }
    writer.write_doc(&doc).unwrap();
    bundle
}

#[test]
fn names_and_giants() {
    const NAMES: [&str; 7] = ["..", ".", "../x", "a/b", "x%2f..", "e\u{1b}[2J", "\u{e9}"];
    let row = "node names .. . ../x a/b x%2f.. ESC e-acute; 200,000 brackets, 20,000 CPUs, 130,000 sources, 50 M rows";
    within_memory(MEMORY, || {
        attack(row, Tries { all: 11, few: 11 }, |number, _| {
            let (folder, number) = (folder(), number as usize);
            let scale = |all: u32, few: u32| if is_full() { all } else { few };
            let bundle = match number {
                0..=6 => renamed(folder.path(), NAMES[number]),
                7 => {
                    let bundle = renamed(folder.path(), "node1");
                    fs::write(document_path(&bundle).unwrap(), "[".repeat(200_000)).unwrap();
                    bundle
                }
                8 => {
                    let bundle = renamed(folder.path(), "node1");
                    let mut doc = document(&bundle);
                    let one = doc["cpus"][0].clone();
                    let cpu = |number: u32| {
                        let mut cpu = one.clone();
                        cpu["cpu"] = json!(number);
                        cpu
                    };
                    doc["cpus"] = (0..scale(20_000, 2_000)).map(cpu).collect();
                    fs::write(document_path(&bundle).unwrap(), doc.to_string()).unwrap();
                    bundle
                }
                9 => of_sources(folder.path(), u64::from(scale(130_000, 5_000))),
                _ => of_rows(folder.path(), u64::from(scale(50, 1))),
            };
            let before = damage::files(folder.path(), None);
            if number < 8 {
                all_views(&bundle, &bundle, folder.path());
            } else {
                // Of giants not what rightly takes long.
                let ended = answers(&["report", path(&bundle)]);
                ended.expect(0, &[]);
                answers(&["report", path(&bundle), "--json"]).expect(0, &[]);
                answers(&["report", "--sources", path(&bundle)]).expect(0, &[]);
            }
            // Nothing is written elsewhere, wherever a name may point.
            let mut after = damage::files(folder.path(), None);
            after.retain(|file| !file.ends_with("page.html") && !file.ends_with("noise.txt"));
            assert_eq!(before, after);
        });
    });
}
